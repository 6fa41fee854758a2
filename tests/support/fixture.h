/* SPDX-License-Identifier: BSD-3-Clause */
/* fixture.h - what tests of matrices and operators share: a context on the
 * device under test, copies between host arrays and blocks, and a check that a
 * call succeeds.  For Check tests; include after check.h. */
#ifndef SPS_TEST_FIXTURE_H
#define SPS_TEST_FIXTURE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/limit.h"
#include "tests/support/marks.h"
#include "spsolve.h"

/* The call must succeed; otherwise the test fails with the library's error
 * text. */
#define OK(ctx, call)                                                          \
    do {                                                                       \
        sps_status ok_ = (call);                                               \
        ck_assert_msg(ok_ == SPS_OK, "%s: %s (%s)", #call,                     \
                      sps_status_string(ok_),                                  \
                      (ctx) ? sps_context_error(ctx) : "");                    \
    } while (0)

/* SPS_TEST_PLACE=cuda selects the GPU, anything else the host. */
static inline sps_place fixture_place(void)
{
    const char *place = getenv("SPS_TEST_PLACE");

    return place && strcmp(place, "cuda") == 0 ? SPS_CUDA : SPS_HOST;
}

static inline bool fixture_env(const char *name)
{
    const char *text = getenv(name);

    return text && *text && strcmp(text, "0") != 0;
}

static inline sps_context *fixture_open_with(sps_place place, int threads,
                                             bool reproducible)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = place;
    o.threads = threads;
    o.reproducible = reproducible;
    o.max_device_bytes = limit_device_bytes();
    ck_assert_msg(sps_context_create(&o, &ctx, &why) == SPS_OK, "%s", why);
    return ctx;
}

static inline sps_context *fixture_open(void)
{
    return fixture_open_with(fixture_place(), 2, true);
}

/* Destroys the context; fails if a handle is still alive. */
static inline void fixture_close(sps_context **ctx_p)
{
    sps_context_info info = { .struct_size = sizeof info };

    OK(*ctx_p, sps_context_information(*ctx_p, &info));
    ck_assert_msg(info.live_objects == 0, "%d handles left",
                  (int)info.live_objects);
    sps_context_destroy(ctx_p);
}

static inline sps_block *fixture_block(sps_context *ctx, int64_t n, int k,
                                       const double *x, int64_t ld)
{
    sps_block *X = NULL;

    OK(ctx, sps_block_create(ctx, n, k, &X));
    if (x) OK(ctx, sps_block_set(X, 0, k, x, ld, SPS_ROW_MAJOR, SPS_HOST));
    return X;
}

static inline bool fixture_noted(const sps_context *ctx, const char *part)
{
    const char *note;

    for (int i = 0; (note = sps_context_note(ctx, i)); i++)
        if (strstr(note, part)) return true;
    return false;
}

#endif
