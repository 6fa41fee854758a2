/* SPDX-License-Identifier: BSD-3-Clause */
/* block_fixture.h - contexts and blocks for the suites about blocks. */
#ifndef SPS_TEST_BLOCK_FIXTURE_H
#define SPS_TEST_BLOCK_FIXTURE_H

#include "block/block.h"
#include "core/context.h"
#include "tests/support/runner.h"

static inline sps_context *open_with(int threads)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *error;

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = threads;
    ck_assert_msg(sps_context_create(&o, &ctx, &error) == SPS_OK, "%s", error);
    return ctx;
}

static inline void close_empty(sps_context **ctx)
{
    ck_assert_int_eq((*ctx)->live, 0);
    sps_context_destroy(ctx);
}

static inline void download(const sps_block *X, double *out)
{
    int64_t n;
    int k;

    sps_block_shape(X, &n, &k);
    ck_assert_int_eq(sps_block_get(X, 0, k, out, k, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
}

#endif
