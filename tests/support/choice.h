/* SPDX-License-Identifier: BSD-3-Clause */
/* choice.h - the planner on one matrix: which kernel it chooses, and what it
 * does when the plan of a candidate runs out of memory.  For Check tests. */
#ifndef SPS_TEST_CHOICE_H
#define SPS_TEST_CHOICE_H

#include "tests/support/fixture.h"
#include "operator/operator.h"
#include "core/module.h"
#include "plan/planner.h"
#include "tests/support/rig.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;
static rig r;

static inline void choice_open(void)
{
    ctx = runner_context();
    rig_open(&r, ctx, zoo_find("grid7"), 400, ZOO_RANDOM, SPS_F64);
}

static inline void choice_close(void)
{
    rig_close(&r);
    fixture_close(&ctx);
}

/* Runs the planner on the rig's matrix; the result is in *bids and r.plan. */
static inline sps_status choose(int k, const char *name, const char *wisdom,
                                sps_bids *bids)
{
    const sps_problem p = rig_problem(&r, SPS_OP_SPMM, k);

    spsi_plan_destroy(&r.plan);
    return spsi_planner_choose(ctx, &p, name, wisdom, bids, &r.plan);
}

static inline const sps_bid *chosen(const sps_bids *bids)
{
    const sps_bid *found = NULL;

    for (int i = 0; i < bids->count; i++)
        if (bids->bid[i].chosen) {
            ck_assert_msg(!found, "two are chosen");
            found = &bids->bid[i];
        }
    ck_assert_msg(found != NULL, "none is chosen");
    return found;
}

/* A kernel whose estimated cost is the lowest and whose plan fails for lack of
 * memory. */
static inline double nothing(const sps_problem *p)
{
    (void)p;
    return 0.0;
}

static inline sps_status no_memory(sps_plan *plan, const sps_problem *p)
{
    (void)p;
    return spsi_fail(plan->ctx, SPS_ENOMEM, "no memory for the plan");
}

/* Runs the planner with that kernel added to those of the device, by a
 * temporary catalogue in the context. */
static inline sps_status choose_beside(const char *name, const char *wisdom,
                                       sps_bids *bids)
{
    static sps_kernel starved = { .name = "spmm.starved", .op = SPS_OP_SPMM,
                                  .gives = ~0u, .cost = nothing,
                                  .plan = no_memory };
    const sps_kernel *kernels[128] = { &starved }, *kernel;
    const sps_module catalogue = { .kernels = kernels }, *old = ctx->module;
    const sps_place place = ctx->opt.place;
    sps_status st;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++) {
        ck_assert_int_lt(i, 126);
        kernels[i + 1] = kernel;
    }
    ctx->module = &catalogue;
    ctx->opt.place = SPS_CUDA;
    st = choose(16, name, wisdom, bids);
    ctx->module = old;
    ctx->opt.place = place;
    return st;
}

#endif
