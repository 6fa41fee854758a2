/* SPDX-License-Identifier: BSD-3-Clause */
/* callback.h - callbacks of a user who has host code only, on any device: the
 * blocks are wrapped, copied to the host, processed there and copied back, by
 * public calls only. */
#ifndef SPS_TEST_CALLBACK_H
#define SPS_TEST_CALLBACK_H

#include <stdlib.h>

#include "spsolve.h"

typedef struct callback {
    sps_context *ctx;
    sps_apply_fn host;        /* gets host arrays with ld k, and data */
    void *data;
} callback;

enum { CALLBACK_FAILED = 1000 };   /* offset added to a status, so that it
                                      differs from the host code's own values */

/* Columns 0 .. k-1 at data, copied into a host array. */
static inline sps_status callback_take(const callback *c, double *data,
                                       int64_t ld, int64_t n, int k,
                                       sps_block **block, double *copy)
{
    sps_status st = sps_block_wrap(c->ctx, n, k, data, ld, block);

    if (st != SPS_OK) return st;
    return sps_block_get(*block, 0, k, copy, k, SPS_ROW_MAJOR, SPS_HOST);
}

/* The sps_apply_fn to register, with a callback struct as its data. */
static inline int callback_anywhere(double alpha, const double *X, int64_t ldx,
                                    double beta, double *Y, int64_t ldy,
                                    int64_t n, int k, void *stream, void *data)
{
    const callback *c = data;
    const size_t bytes = (size_t)(n * k + 1) * sizeof(double);
    double *x = malloc(bytes), *y = malloc(bytes);
    sps_block *from = NULL, *to = NULL;
    int code = 0;
    sps_status st = callback_take(c, (double *)(uintptr_t)X, ldx, n, k, &from,
                                  x);

    if (st == SPS_OK) st = callback_take(c, Y, ldy, n, k, &to, y);
    if (st == SPS_OK) {
        code = c->host(alpha, x, k, beta, y, k, n, k, stream, c->data);
        st = sps_block_set(to, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST);
    }
    sps_block_destroy(&from);
    sps_block_destroy(&to);
    free(x);
    free(y);
    return st == SPS_OK ? code : CALLBACK_FAILED + (int)st;
}

#endif
