/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h - one matrix of the zoo brought to the place under test, and a plan
 * of one kernel for it.  For Check tests of kernels. */
#ifndef SPS_TEST_RIG_H
#define SPS_TEST_RIG_H

#include "fixture.h"
#include "operator.h"
#include "registry.h"
#include "zoo.h"

typedef struct rig {
    sps_context *ctx;
    const char *what;        /* the family */
    sps_csr *A;
    sps_operator *op;        /* holds the copy in the place */
    sps_plan *plan;          /* of the kernel that rig_plan got */
} rig;

/* Kernel number i of this opcode, as far as SPS_TEST_KERNEL lets it. */
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

static inline void rig_open(rig *r, sps_context *ctx, int family, int64_t n,
                            zoo_values values, sps_dtype dtype)
{
    *r = (rig){ .ctx = ctx, .what = zoo_name(family) };
    r->A = zoo_matrix(family, n, 7, values, dtype);
    OK(ctx, sps_operator_csr(ctx, r->A, 1, NULL, &r->op));
}

static inline sps_problem rig_problem(const rig *r, sps_opcode op, int k)
{
    return (sps_problem){ .op = op, .A = r->op->A, .local = &r->op->local,
                          .f = &r->op->f, .k = k, .bandwidth = 1e11,
                          /* what operators ask for by default */
                          .need = SPS_REPRODUCIBLE | SPS_FULL_PRECISION };
}

/* Whether the kernel fits; then its plan is r->plan. */
static inline bool rig_plan(rig *r, const sps_kernel *kernel, int k)
{
    const sps_problem p = rig_problem(r, kernel->op, k);
    const char *why;

    spsi_plan_destroy(&r->plan);
    if (!kernel->fits(&p, &why)) return false;
    OK(r->ctx, spsi_planner_pin(r->ctx, &p, kernel, &r->plan));
    return true;
}

/* Other integers on the same pattern, known to the plan. */
static inline void rig_new_values(rig *r)
{
    for (int64_t p = 0; p < r->A->nnz; p++) {
        const double a = (double)((p * 37 + 11) % 1000 - 500);

        if (r->A->dtype == SPS_F64)
            ((double *)r->A->val)[p] = a;
        else
            ((float *)r->A->val)[p] = (float)a;
    }
    OK(r->ctx, sps_operator_set_values(r->op, r->A->val, SPS_HOST));
    if (r->plan->kernel->refresh)
        OK(r->ctx, r->plan->kernel->refresh(r->plan));
}

static inline void rig_close(rig *r)
{
    spsi_plan_destroy(&r->plan);
    sps_operator_destroy(&r->op);
    zoo_free(&r->A);
}

#endif
