/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.c - blocks inside guarded memory, see frame.h. */
#include "tests/support/frame.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 64

static const uint64_t mark = 0x7ff8dead0000beef;   /* a quiet NaN */

static bool marked(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits == mark;
}

frame frame_make(sps_context *ctx, int64_t n, int k, int64_t ld,
                 int64_t offset, const double *x, int64_t ldx)
{
    frame f = {.ctx = ctx, .n = n, .k = k, .ld = ld, .offset = offset};
    size_t bytes;

    f.doubles = offset + n * ld + GUARD;
    bytes = (size_t)f.doubles * sizeof(double);
    f.image = malloc(bytes);
    ck_assert_ptr_nonnull(f.image);
    for (int64_t t = 0; t < f.doubles; t++) memcpy(&f.image[t], &mark, 8);
    for (int64_t i = 0; x && i < n; i++)
        memcpy(f.image + offset + i * ld, x + i * ldx,
               (size_t)k * sizeof(double));
    ck_assert_int_eq(ctx->backend->alloc(ctx, bytes, &f.memory), SPS_OK);
    ck_assert_int_eq(ctx->backend->upload(ctx, f.memory, f.image, bytes),
                     SPS_OK);
    ck_assert_int_eq(sps_block_wrap(ctx, n, k, (double *)f.memory + offset, ld,
                                    &f.X), SPS_OK);
    return f;
}

void frame_read(frame *f, int k, double *x)
{
    size_t bytes = (size_t)f->doubles * sizeof(double);

    ck_assert_int_eq(f->ctx->backend->sync(f->ctx), SPS_OK);
    ck_assert_int_eq(f->ctx->backend->download(f->ctx, f->image, f->memory,
                                               bytes), SPS_OK);
    for (int64_t t = 0; t < f->doubles; t++) {
        int64_t at = t - f->offset, i = at / f->ld, j = at % f->ld;

        if (at >= 0 && i < f->n && j < k)
            x[i * k + j] = f->image[t];
        else if (at < 0 || i >= f->n || j >= f->k)
            ck_assert_msg(marked(f->image[t]),
                          "memory around the block was written: n %ld, k %d, "
                          "ld %ld, at row %ld column %ld", (long)f->n, k,
                          (long)f->ld, (long)i, (long)j);
    }
}

void frame_free(frame *f)
{
    sps_block_destroy(&f->X);
    f->ctx->backend->release(f->ctx, f->memory,
                             (size_t)f->doubles * sizeof(double));
    free(f->image);
}
