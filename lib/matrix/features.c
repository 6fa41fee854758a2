/* SPDX-License-Identifier: BSD-3-Clause */
/* features.c - measures the features of a matrix for the cost models of
 * kernels.
 *
 * Row lengths are found from the offsets, and the bandwidth from the ends of
 * the sorted rows (one read of the offsets and one cache line of the columns of
 * each row); reuse of columns and full blocks are counted on samples of windows
 * (features_sample.c).  A hash of offsets and columns (one read of the pattern)
 * is computed on request.  No number depends on the number of threads or on the
 * place: integers are added (windows.h), and the hash is a commutative sum of
 * the hashes of chunks. */
#include <math.h>
#include <string.h>

#include "core/backend.h"
#include "core/team.h"
#include "matrix/features_sample.h"

enum { CHUNK = 1 << 14 };    /* rows, or words of the hash, of one chunk; a
                                multiple of 32 */

/* Returns the slots that row i needs in a slice of 32 rows of equal length. */
static int64_t padded(const sps_csr *A, int64_t i)
{
    int64_t most = 0;

    for (int64_t r = i; r < i + 32 && r < A->nrow; r++)
        if (A->rowptr[r + 1] - A->rowptr[r] > most)
            most = A->rowptr[r + 1] - A->rowptr[r];
    return 32 * most;
}

static void count_length(int64_t length, int64_t mean, sps_raw_features *sum)
{
    const int64_t off = length - mean;
    const uint64_t square = (uint64_t)(off * off);
    int bin = 0;

    while (bin < SPS_LENGTH_BINS - 1 && length >> bin) bin++;
    sum->lengths[bin]++;
    if (INT64_MAX - length > sum->slack) sum->slack = INT64_MAX - length;
    if (length > sum->longest) sum->longest = length;
    sum->squares[0] += square & UINT32_MAX;
    sum->squares[1] += square >> 32;
}

static void measure_chunk(const sps_csr *A, int64_t mean, int64_t first,
                          int64_t last, sps_raw_features *sum)
{
    for (int64_t i = first; i < last; i++) {
        const int64_t p = A->rowptr[i], q = A->rowptr[i + 1];

        count_length(q - p, mean, sum);
        if (i % 32 == 0) sum->padded32 += padded(A, i);
        if (p == q) continue;
        if (i - A->col[p] > sum->bandwidth) sum->bandwidth = i - A->col[p];
        if (A->col[q - 1] - i > sum->bandwidth)
            sum->bandwidth = A->col[q - 1] - i;
    }
}

static void add_chunk(const sps_raw_features *sum, sps_raw_features *raw)
{
    if (sum->slack > raw->slack) raw->slack = sum->slack;
    if (sum->longest > raw->longest) raw->longest = sum->longest;
    if (sum->bandwidth > raw->bandwidth) raw->bandwidth = sum->bandwidth;
    for (int b = 0; b < SPS_LENGTH_BINS; b++)
        raw->lengths[b] += sum->lengths[b];
    raw->squares[0] += sum->squares[0];
    raw->squares[1] += sum->squares[1];
    raw->padded32 += sum->padded32;
}

typedef struct measure_job {
    const sps_csr *A;
    int64_t mean;
    sps_raw_features *sum;   /* an element for each chunk: its features */
} measure_job;

static void measure_chunks(void *data, int64_t first, int64_t last)
{
    const measure_job *j = data;
    const int64_t nrow = j->A->nrow;

    for (int64_t c = first; c < last; c++)
        measure_chunk(j->A, j->mean, c * CHUNK,
                      (c + 1) * CHUNK < nrow ? (c + 1) * CHUNK : nrow,
                      &j->sum[c]);
}

static sps_status measure_rows(sps_context *ctx, const sps_csr *A,
                               sps_raw_features *raw)
{
    const int64_t chunks = (A->nrow + CHUNK - 1) / CHUNK;
    sps_raw_features *sum = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, chunks, &sum));
    spsi_team_run(ctx, chunks, 8 * A->nrow, measure_chunks, &(measure_job){
        A, A->nrow > 0 ? A->nnz / A->nrow : 0, sum });
    for (int64_t c = 0; c < chunks; c++) add_chunk(&sum[c], raw);
fail:
    spsi_free(ctx, sum);
    return st;
}

/* Computes the variance from the squares of the distances d from m, the integer
 * part of the mean: the mean of d^2 minus the square of the mean of d, which
 * lies in [0, 1). */
static double deviation(const sps_raw_features *raw, int64_t nrow, int64_t nnz)
{
    const double squares = 4294967296.0 * (double)raw->squares[1] +
                           (double)raw->squares[0];
    double d, variance;

    if (nrow == 0) return 0.0;
    d = (double)(nnz % nrow) / (double)nrow;
    variance = squares / (double)nrow - d * d;
    return variance > 0.0 ? sqrt(variance) : 0.0;
}

static double share(int64_t part, int64_t all, double none)
{
    return all > 0 ? (double)part / (double)all : none;
}

/* Sets f->block to the largest size for which at least 90 % of the entries are
 * in full blocks. */
static void finish_blocks(const sps_raw_features *raw, sps_features *f)
{
    f->block = 1;
    f->block_fill = 1.0;
    for (int b = 8; b >= 2; b--) {
        const sps_sample_sums *s = &raw->sample[SPS_SAMPLE_BLOCKS + b];
        const double full = share(s->full, s->entries, 0.0);

        f->fill[b] = s->columns > 0 ? (double)s->entries /
                                      ((double)s->columns * b * b) : 0.0;
        if (f->block > 1 || full < 0.9) continue;
        f->block = b;
        f->block_fill = full;
    }
}

static void finish_for_gpus(const sps_raw_features *raw, sps_features *f)
{
    const int64_t windows = f->nrow < SPS_NEAR_WINDOWS ? f->nrow
                                                       : SPS_NEAR_WINDOWS;

    f->near = share(raw->near, windows, 1.0);
    f->exact = raw->inexact == 0;
    for (int i = 0; i < 3; i++) {
        const int b = 8 << i;
        const int64_t row = (f->max_length + b - 1) / b;
        const int64_t most = raw->sample[SPS_SAMPLE_WIDEST + i].most;

        f->widest[i] = most > row ? most : row;
    }
}

void spsi_features_finish(const sps_raw_features *raw, int64_t nrow,
                          int64_t ncol, int64_t nnz, sps_features *f)
{
    const sps_sample_sums *few = &raw->sample[SPS_SAMPLE_8];
    const sps_sample_sums *many = &raw->sample[SPS_SAMPLE_64];

    memset(f, 0, sizeof *f);
    f->nrow = nrow;
    f->ncol = ncol;
    f->nnz = nnz;
    f->min_length = nrow > 0 ? INT64_MAX - raw->slack : 0;
    f->max_length = raw->longest;
    f->mean_length = share(nnz, nrow, 0.0);
    f->deviation = deviation(raw, nrow, nnz);
    f->empty_rows = raw->lengths[0];
    memcpy(f->lengths, raw->lengths, sizeof f->lengths);
    f->bandwidth = raw->bandwidth;
    f->distinct8 = share(few->columns, few->entries, 1.0);
    f->distinct64 = share(many->columns, many->entries, 1.0);
    f->padded32 = raw->padded32;
    finish_blocks(raw, f);
    finish_for_gpus(raw, f);
}

sps_status spsi_features_measure(sps_context *ctx, const sps_csr *A,
                                 sps_features *f)
{
    sps_raw_features raw = { 0 };
    sps_status st;

    SPS_TRY(measure_rows(ctx, A, &raw));
    SPS_TRY(spsi_features_sample(ctx, A, &raw));
    if (ctx->backend->place == SPS_CUDA)
        SPS_TRY(spsi_features_sample_gpu(ctx, A, &raw));
    spsi_features_finish(&raw, A->nrow, A->ncol, A->nnz, f);
fail:
    return st;
}

sps_status spsi_features_there(sps_context *ctx, const sps_csr_local *A,
                               sps_features *f)
{
    sps_raw_features raw;
    sps_status st;

    SPS_TRY(ctx->backend->csr_features(ctx, A, &raw));
    spsi_features_finish(&raw, A->nrow, A->ncol, A->nnz, f);
fail:
    return st;
}

/* ------------------------------------------------------------------- hash */

/* Finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of the result
 * depends on every bit of x. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

typedef struct hash_job {
    const int64_t *wide;
    const int32_t *narrow;
    int64_t count;
    uint64_t sum;
} hash_job;

static void hash_chunks(void *data, int64_t first, int64_t last)
{
    hash_job *j = data;

    for (int64_t c = first; c < last; c++) {
        const int64_t next = (c + 1) * CHUNK;
        const int64_t end = next < j->count ? next : j->count;
        uint64_t h = mix((uint64_t)c + 1);

        for (int64_t p = c * CHUNK; p < end; p++) {
            const uint64_t w = j->wide ? (uint64_t)j->wide[p]
                                       : (uint32_t)j->narrow[p];

            h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
            h ^= h >> 29;
        }
        __atomic_fetch_add(&j->sum, mix(h), __ATOMIC_RELAXED);
    }
}

/* Returns a hash of count words of 4 or 8 bytes: chunks are hashed separately,
 * with their number mixed in, and the hashes are summed. */
static uint64_t hash_array(sps_context *ctx, const int64_t *wide,
                           const int32_t *narrow, int64_t count)
{
    hash_job j = { wide, narrow, count, mix((uint64_t)count) };

    spsi_team_run(ctx, (count + CHUNK - 1) / CHUNK, 2 * count, hash_chunks,
                  &j);
    return j.sum;
}

uint64_t spsi_features_hash(sps_context *ctx, const sps_csr *A)
{
    uint64_t h = mix((uint64_t)A->nrow * 3 + mix((uint64_t)A->ncol));

    h = mix(h ^ hash_array(ctx, A->rowptr, NULL, A->nrow + 1));
    return mix(h + hash_array(ctx, NULL, A->col, A->nnz));
}
