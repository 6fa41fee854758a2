/* SPDX-License-Identifier: BSD-3-Clause */
/* image.h - a block in memory that is watched: n rows of k numbers, ld apart,
 * beginning offset doubles into an allocation that is NaN elsewhere.  What
 * lies between and around the numbers must come back bit for bit.  For Check
 * tests of kernels; works in any place through the backend. */
#ifndef SPS_TEST_IMAGE_H
#define SPS_TEST_IMAGE_H

#include <math.h>

#include "backend.h"
#include "fixture.h"
#include "zoo.h"

typedef struct image {
    sps_context *ctx;
    int64_t n, ld, offset;
    int k;
    size_t bytes;
    double *host, *back;     /* as uploaded, as downloaded */
    double *data;            /* host numbers: element (i, j) at [i * ld + j] */
    double *out;             /* the same of what came back */
    void *memory;            /* in the place */
    sps_block *B;
} image;

/* How blocks lie in memory; every kernel must take all of them. */
enum { LAYOUTS = 4 };

static inline void image_layout(int which, int k, int64_t *ld,
                                int64_t *offset)
{
    const int64_t lds[LAYOUTS] = { spsi_block_ld(k), k, k + 3, 2 * k + 2 };
    const int64_t offsets[LAYOUTS] = { 0, 0, 1, 2 };

    *ld = lds[which % LAYOUTS];
    *offset = offsets[which % LAYOUTS];
}

static inline void image_upload(image *m)
{
    OK(m->ctx, m->ctx->backend->upload(m->ctx, m->memory, m->host, m->bytes));
}

/* values: ZOO_INTEGER or ZOO_RANDOM from seed; NaN everywhere: seed 0. */
static inline void image_open(image *m, sps_context *ctx, int64_t n, int k,
                              int layout, uint64_t seed, zoo_values values)
{
    size_t count;

    *m = (image){ .ctx = ctx, .n = n, .k = k };
    image_layout(layout, k, &m->ld, &m->offset);
    count = (size_t)(n * m->ld + m->offset + 4);
    m->bytes = count * sizeof(double);
    m->host = malloc(m->bytes);
    m->back = malloc(m->bytes);
    for (size_t i = 0; i < count; i++) m->host[i] = NAN;
    m->data = m->host + m->offset;
    m->out = m->back + m->offset;
    if (seed > 0 && n > 0) {
        double *x = zoo_block(n, k, k, seed, values);

        for (int64_t i = 0; i < n; i++)
            memcpy(m->data + i * m->ld, x + i * k, (size_t)k * sizeof *x);
        free(x);
    }
    OK(ctx, ctx->backend->alloc(ctx, m->bytes, &m->memory));
    image_upload(m);
    OK(ctx, sps_block_wrap(ctx, n, k, (double *)m->memory + m->offset, m->ld,
                           &m->B));
}

/* Downloads, and checks that nothing outside the block has changed. */
static inline void image_read(image *m, const char *what)
{
    const size_t count = m->bytes / sizeof(double);

    OK(m->ctx, m->ctx->backend->download(m->ctx, m->back, m->memory,
                                         m->bytes));
    for (size_t s = 0; s < count; s++) {
        const int64_t at = (int64_t)s - m->offset;
        const bool inside = at >= 0 && at / m->ld < m->n && at % m->ld < m->k;

        ck_assert_msg(inside || !memcmp(&m->back[s], &m->host[s], 8),
                      "%s: wrote outside the block at %lld (ld %d, k %d)",
                      what, (long long)at, (int)m->ld, m->k);
    }
}

static inline void image_close(image *m)
{
    sps_block_destroy(&m->B);
    m->ctx->backend->release(m->ctx, m->memory, m->bytes);
    free(m->host);
    free(m->back);
}

#endif
