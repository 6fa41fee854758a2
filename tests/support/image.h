/* SPDX-License-Identifier: BSD-3-Clause */
/* image.h - a block inside guarded memory: n rows of k numbers with leading
 * dimension ld, at an offset into an allocation that is filled with marked NaN.
 * All numbers between and around the rows must come back unchanged, bit for
 * bit.  For Check tests of kernels; works on any device through the backend.
 *
 *     device memory:        [ guard | offset | n rows, ld apart | guard ]
 *                                     ^ memory  ^ first
 *
 * A block in the library's own layout is complete: the padding of its last row
 * is there, and any padding may come back as zeros.  With SPS_TEST_QUICK, meant
 * for sanitizers, nothing is allocated after it, nor after the last number of
 * other blocks, so that reads beyond the end are detected.
 *
 * The test works with doubles whatever the type on the device. */
#ifndef SPS_TEST_IMAGE_H
#define SPS_TEST_IMAGE_H

#include <math.h>

#include "block/block.h"
#include "block/small.h"
#include "core/backend.h"
#include "matrix/csr.h"
#include "tests/support/fixture.h"
#include "tests/problems/zoo.h"

typedef struct image {
    sps_context *ctx;
    sps_dtype dtype;         /* of the numbers on the device */
    int64_t n, ld, offset;
    int k;
    size_t count, bytes;     /* of the allocation */
    double *data;            /* element (i, j) at [i * ld + j], to upload */
    double *out;             /* the same of what came back */
    char *host, *back;       /* as uploaded; as downloaded */
    void *base, *memory, *first; /* on the device, see above */
    sps_block *B, block;     /* B points at block */
} image;

/* Memory layouts; every kernel must accept all of them: the library's own
 * leading dimension; tight; odd; even rows of any even length; even ld at an
 * address not aligned to pairs. */
enum { LAYOUTS = 5, IMAGE_GUARD = 32 };

static inline void image_layout(int which, int k, int64_t *ld,
                                int64_t *offset)
{
    const int64_t lds[LAYOUTS] = { spsi_block_ld(k), k, k + 3, 2 * k + 2,
                                   (k + 5) / 2 * 2 };
    const int64_t offsets[LAYOUTS] = { 0, 0, 1, 2, 1 };

    *ld = lds[which % LAYOUTS];
    *offset = offsets[which % LAYOUTS];
}

/* Index of element (i, 0) within the allocation. */
static inline size_t image_row_(const image *m, int64_t i)
{
    return (size_t)(IMAGE_GUARD + m->offset + i * m->ld);
}

static inline bool image_tight_(void) { return fixture_env("SPS_TEST_QUICK"); }

static inline size_t image_size_(const image *m)
{
    return m->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
}

/* Capacity that block.h records for an owned block; 0 for a wrapped block. */
static inline size_t image_owned_(const image *m)
{
    if (m->offset != 0 || m->ld != spsi_block_ld(m->k)) return 0;
    return (size_t)(m->n * m->ld) * image_size_(m);
}

/* Numbers up to the end of the last row, including the padding and guard that
 * follow it. */
static inline size_t image_count_(const image *m)
{
    const int64_t end = m->n > 0 ? (m->n - 1) * m->ld + m->k : 0;
    const size_t owned = image_owned_(m) / image_size_(m);

    return image_row_(m, 0) + (owned ? owned : (size_t)end) +
           (image_tight_() ? 0 : (size_t)(m->ld - m->k + IMAGE_GUARD));
}

/* Fills with NaN that no arithmetic produces, with a different payload at each
 * index. */
static inline void image_mark_(image *m)
{
    for (size_t s = 0; s < m->count; s++)
        if (m->dtype == SPS_F64)
            ((uint64_t *)m->host)[s] = UINT64_C(0x7ffabad000000000) + s;
        else
            ((uint32_t *)m->host)[s] = UINT32_C(0x7fea0000) +
                                       (uint32_t)(s & 0xffff);
}

/* Uploads data to the device. */
static inline void image_upload(image *m)
{
    for (int64_t i = 0; i < m->n; i++) {
        const double *row = m->data + i * m->ld;
        const size_t at = image_row_(m, i);

        if (m->dtype == SPS_F64)
            memcpy((double *)m->host + at, row, (size_t)m->k * sizeof *row);
        else
            for (int j = 0; j < m->k; j++)
                ((float *)m->host)[at + (size_t)j] = (float)row[j];
    }
    OK(m->ctx, m->ctx->backend->upload(m->ctx, m->base, m->host, m->bytes));
}

/* Element (i, j) = from[i * kx + j]; NULL: all NaN. */
static inline void image_place(image *m, sps_context *ctx, sps_dtype dtype,
                               int64_t n, int k, int64_t ld, int64_t offset,
                               const double *from, int64_t kx)
{
    size_t size;

    *m = (image){ .ctx = ctx, .dtype = dtype, .n = n, .k = k, .ld = ld,
                  .offset = offset };
    size = image_size_(m);
    m->count = image_count_(m);
    m->bytes = m->count * size;
    m->host = malloc(m->bytes);
    m->back = malloc(m->bytes);
    m->data = malloc((size_t)(n * m->ld + 1) * sizeof *m->data);
    m->out = malloc((size_t)(n * m->ld + 1) * sizeof *m->out);
    image_mark_(m);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m->ld; j++)
            m->data[i * m->ld + j] = from && j < k ? from[i * kx + j] : NAN;
    OK(ctx, ctx->backend->alloc(ctx, m->bytes, &m->base));
    m->memory = (char *)m->base + IMAGE_GUARD * size;
    m->first = (char *)m->memory + (size_t)m->offset * size;
    m->block = (sps_block){ .ctx = ctx, .n = n, .k = k, .ld = m->ld,
                            .dtype = dtype, .data = m->first, .width = k,
                            .bytes = image_owned_(m) };
    m->B = &m->block;
    image_upload(m);
}

/* The same, in one of the layouts above. */
static inline void image_take(image *m, sps_context *ctx, sps_dtype dtype,
                              int64_t n, int k, int layout,
                              const double *from, int64_t kx)
{
    int64_t ld, offset;

    image_layout(layout, k, &ld, &offset);
    image_place(m, ctx, dtype, n, k, ld, offset, from, kx);
}

/* Values as in zoo_block from this seed; seed 0: NaN everywhere. */
static inline void image_open_as(image *m, sps_context *ctx, sps_dtype dtype,
                                 int64_t n, int k, int layout, uint64_t seed,
                                 zoo_values values)
{
    double *x = seed > 0 ? zoo_block(n, k, k, seed, values) : NULL;

    if (x && dtype == SPS_F32)
        for (int64_t i = 0; i < n * k; i++) x[i] = (float)x[i];
    image_take(m, ctx, dtype, n, k, layout, x, k);
    free(x);
}

static inline void image_open(image *m, sps_context *ctx, int64_t n, int k,
                              int layout, uint64_t seed, zoo_values values)
{
    image_open_as(m, ctx, SPS_F64, n, k, layout, seed, values);
}

/* Numbers from .. to-1 of the allocation must be unchanged. */
static inline void image_same_(const image *m, const char *what, size_t from,
                               size_t to)
{
    const size_t size = m->bytes / m->count;

    if (to > m->count) to = m->count;
    if (from >= to || !memcmp(m->back + from * size, m->host + from * size,
                              (to - from) * size))
        return;
    while (!memcmp(m->back + from * size, m->host + from * size, size)) from++;
    ck_abort_msg("%s: wrote outside the block at %lld (ld %d, k %d)", what,
                 (long long)from - IMAGE_GUARD - (long long)m->offset,
                 (int)m->ld, m->k);
}

/* Narrows the block to k columns; the columns behind them must be unchanged,
 * too. */
static inline void image_narrow(image *m, int k)
{
    m->k = m->block.k = k;
}

/* Zeros in the padding of an owned block count as unchanged. */
static inline void image_padding_(image *m, size_t from, size_t to)
{
    const size_t size = image_size_(m);
    static const char zero[sizeof(double)];

    if (m->block.bytes == 0 || m->block.k < m->block.width) return;
    for (; from < to; from++)
        if (!memcmp(m->back + from * size, zero, size))
            memcpy(m->back + from * size, m->host + from * size, size);
}

/* Downloads, and checks that nothing outside of the block has changed. */
static inline void image_read(image *m, const char *what)
{
    OK(m->ctx, m->ctx->backend->download(m->ctx, m->back, m->base,
                                         m->bytes));
    image_same_(m, what, 0, image_row_(m, 0));
    for (int64_t i = 0; i < m->n; i++) {
        const size_t at = image_row_(m, i);

        for (int j = 0; j < m->k; j++)
            m->out[i * m->ld + j] = m->dtype == SPS_F64
                ? ((double *)m->back)[at + (size_t)j]
                : (double)((float *)m->back)[at + (size_t)j];
        image_padding_(m, at + (size_t)m->k, at + (size_t)m->ld);
        image_same_(m, what, at + (size_t)m->k, image_row_(m, i + 1));
    }
    image_same_(m, what, image_row_(m, m->n), m->count);
}

static inline void image_close(image *m)
{
    m->ctx->backend->release(m->ctx, m->base, m->bytes);
    free(m->host);
    free(m->back);
    free(m->data);
    free(m->out);
}

#endif
