/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h - one matrix of the zoo, copied to the device under test (CPU or GPU),
 * and a plan of one kernel for it.  For Check tests of kernels. */
#ifndef SPS_TEST_RIG_H
#define SPS_TEST_RIG_H

#include "tests/support/fixture.h"
#include "operator/operator.h"
#include "plan/planner.h"
#include "tests/problems/zoo.h"

typedef struct rig {
    sps_context *ctx;
    const char *what;        /* the family */
    sps_dtype block;         /* element type of the blocks that the plans
                                multiply */
    sps_csr *A;
    sps_csr_local local;     /* the view that plans get; rig_wide changes it */
    sps_machine machine;     /* that of the context with one bandwidth for all
                                places */
    sps_operator *op;        /* holds the copy on the device */
    sps_plan *plan;          /* of the kernel that rig_plan got */
    void *offsets;           /* 64-bit row offsets on the device, made by
                                rig_wide */
} rig;

/* Kernel number i for this opcode among those that SPS_TEST_KERNEL admits; NULL
 * past the last. */
static inline const sps_kernel *rig_kernel(const sps_context *ctx,
                                           sps_opcode op, int i)
{
    const char *only = getenv("SPS_TEST_KERNEL");
    const sps_kernel *kernel;

    for (int a = 0; (kernel = spsi_registry_kernel(ctx, a)); a++)
        if (kernel->op == op && !(only && strcmp(only, kernel->name)) &&
            i-- == 0)
            return kernel;
    return NULL;
}

/* Initialises the rig; takes ownership of A. */
static inline void rig_take(rig *r, sps_context *ctx, const char *what,
                            sps_csr *A)
{
    *r = (rig){ .ctx = ctx, .what = what, .A = A };
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &r->op));
    r->local = r->op->local;
    r->machine = ctx->machine;
    r->machine.copy = 1e11;
}

static inline void rig_open(rig *r, sps_context *ctx, int family, int64_t n,
                            zoo_values values, sps_dtype dtype)
{
    rig_take(r, ctx, zoo_name(family),
             zoo_matrix(family, n, 7, values, dtype));
}

/* From here on plans get 64-bit row offsets only, as for 2^31 entries. */
static inline void rig_wide(rig *r)
{
    const sps_csr *A = r->op->A;
    const size_t bytes = (size_t)(A->nrow + 1) * sizeof *A->rowptr;

    OK(r->ctx, r->ctx->backend->alloc(r->ctx, bytes, &r->offsets));
    OK(r->ctx, r->ctx->backend->upload(r->ctx, r->offsets, A->rowptr, bytes));
    r->local.rowptr = r->offsets;
    r->local.rowptr32 = NULL;
}

static inline sps_problem rig_problem(const rig *r, sps_opcode op, int k)
{
    return (sps_problem){ .op = op, .A = r->op->A, .local = &r->local,
                          .f = &r->op->f, .k = k, .block = r->block,
                          .machine = &r->machine,
                          /* what operators ask for by default */
                          .need = SPS_REPRODUCIBLE | SPS_FULL_PRECISION };
}

/* Whether the kernel supports the data types and accepts this matrix. */
static inline bool rig_fits(const rig *r, const sps_kernel *kernel, int k)
{
    sps_problem p = rig_problem(r, kernel->op, k);
    const char *why;

    p.pinned = true;
    return spsi_kernel_fits(kernel, &p, &why);
}

/* If rig_fits: makes the plan, r->plan. */
static inline bool rig_plan(rig *r, const sps_kernel *kernel, int k)
{
    sps_problem p = rig_problem(r, kernel->op, k);

    p.pinned = true;
    spsi_plan_destroy(&r->plan);
    if (!rig_fits(r, kernel, k)) return false;
    OK(r->ctx, spsi_planner_pin(r->ctx, &p, kernel, &r->plan));
    return true;
}

/* Passes the present values of r->A on to the operator and the plan. */
static inline void rig_refresh(rig *r)
{
    OK(r->ctx, sps_operator_set_values(r->op, r->A->val, SPS_HOST));
    r->local.val = r->op->local.val;
    if (r->plan && r->plan->kernel->refresh)
        OK(r->ctx, r->plan->kernel->refresh(r->plan));
}

static inline void rig_set_value(rig *r, int64_t p, double a)
{
    if (r->A->dtype == SPS_F64) ((double *)r->A->val)[p] = a;
    else ((float *)r->A->val)[p] = (float)a;
}

/* Other integer values, |v| <= most, on the same pattern, also in the plan. */
static inline void rig_other_values(rig *r, int most)
{
    for (int64_t p = 0; p < r->A->nnz; p++)
        rig_set_value(r, p, (double)((p * 37 + 11) % (2 * most) - most));
    rig_refresh(r);
}

static inline void rig_new_values(rig *r) { rig_other_values(r, 500); }

static inline void rig_close(rig *r)
{
    spsi_plan_destroy(&r->plan);
    if (r->offsets)
        r->ctx->backend->release(r->ctx, r->offsets, (size_t)(r->A->nrow + 1) *
                                 sizeof *r->A->rowptr);
    sps_operator_destroy(&r->op);
    zoo_free(&r->A);
}

#endif
