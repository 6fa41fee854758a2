/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c - makes and destroys the plans of kernels; their memory; whether a
 * kernel fits, and the least traffic that it has. */
#include "core/timer.h"
#include "plan/planner.h"

struct sps_plan_memory {
    struct sps_plan_memory *next;
    void *p;
    size_t bytes;
};

sps_status spsi_plan_take(sps_plan *plan, size_t bytes, void **p_p)
{
    sps_context *ctx = plan->ctx;
    struct sps_plan_memory *m = NULL;
    sps_status st = SPS_OK;

    *p_p = NULL;
    if (bytes == 0) return st;
    SPS_TRY(SPS_NEW(ctx, 1, &m));
    SPS_TRY(ctx->backend->alloc(ctx, bytes, p_p));
    *m = (struct sps_plan_memory){ plan->memory, *p_p, bytes };
    plan->memory = m;
    plan->bytes += bytes;
    return st;

fail:
    spsi_free(ctx, m);
    return st;
}

void spsi_plan_give(sps_plan *plan, void **p_p)
{
    struct sps_plan_memory **at = &plan->memory, *m;

    while (*at && (*at)->p != *p_p) at = &(*at)->next;
    m = *at;
    *p_p = NULL;
    if (!m) return;
    *at = m->next;
    plan->bytes -= m->bytes;
    plan->ctx->backend->release(plan->ctx, m->p, m->bytes);
    spsi_free(plan->ctx, m);
}

void spsi_plan_destroy(sps_plan **plan_p)
{
    sps_plan *plan = plan_p ? *plan_p : NULL;
    sps_context *ctx;

    if (!plan) return;
    ctx = plan->ctx;
    if (plan->kernel->destroy) plan->kernel->destroy(plan);
    while (plan->memory) {
        void *p = plan->memory->p;

        spsi_plan_give(plan, &p);
    }
    spsi_free(ctx, plan);
    *plan_p = NULL;
}

sps_status spsi_planner_pin(sps_context *ctx, const sps_problem *p,
                            const sps_kernel *kernel, sps_plan **plan_p)
{
    sps_status st = SPS_OK;
    const char *why;
    sps_plan *plan = NULL;

    SPS_REQUIRE(ctx, kernel->op == p->op, SPS_EUNFIT, "kernel %s is for "
                "another operation (spmm or sddmm) than this one",
                kernel->name);
    SPS_REQUIRE(ctx, spsi_kernel_fits(kernel, p, &why), SPS_EUNFIT,
                "kernel %s does not fit: %s", kernel->name, why);
    SPS_TRY(spsi_new(ctx, kernel->size ? kernel->size : sizeof *plan,
                     (void **)&plan));
    *plan = (sps_plan){ .kernel = kernel, .ctx = ctx, .A = p->local,
                        .k = p->k, .block = p->block };
    if (kernel->plan) SPS_TRY(kernel->plan(plan, p));
    *plan_p = plan;
    return SPS_OK;

fail:
    spsi_plan_destroy(&plan);
    return st;
}

sps_status spsi_planner_take(sps_context *ctx, const sps_problem *p,
                             sps_bid *bid, sps_plan **plan_p)
{
    const double start = spsi_now();
    sps_status st;

    SPS_TRY(spsi_planner_pin(ctx, p, bid->kernel, plan_p));
    SPS_REQUIRE(ctx, p->local->far || p->pinned || p->room == 0 ||
                (*plan_p)->bytes <= p->room, SPS_EDEVMEM,
                "%s: a plan of %zu bytes leaves the blocks of a solver too "
                "little device memory", bid->kernel->name, (*plan_p)->bytes);
    SPS_TRY(ctx->backend->sync(ctx));
    bid->planning = spsi_now() - start;
    return SPS_OK;

fail:
    spsi_plan_destroy(plan_p);
    return st;
}

/* Returns the minimum traffic of one product in bytes: A, X and Y once each. */
double spsi_spmm_floor(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double value = (double)spsi_dtype_size(p->A->dtype);
    const double number = (double)spsi_dtype_size(p->block);

    return (double)f->nnz * (value + 4.0) + (double)(f->nrow + 1) * 4.0 +
           (double)(f->nrow + f->ncol) * p->k * number;
}

/* Returns why the kernel does not support the types, or NULL if it does. */
static const char *mistyped(const sps_problem *p, unsigned gives)
{
    if (p->block == SPS_F64) return NULL;
    if (p->A->dtype != SPS_F32) return "blocks of floats need a matrix of "
                                       "floats";
    return gives & SPS_SINGLE_BLOCKS ? NULL : "takes blocks of doubles only";
}

bool spsi_kernel_fits(const sps_kernel *kernel, const sps_problem *p,
                      const char **why_not)
{
    *why_not = mistyped(p, kernel->gives);
    if (*why_not) return false;
    *why_not = "does not fit";
    return !kernel->fits || kernel->fits(p, why_not);
}
