/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_blocks.c - block operations as solvers use them, called through the
 * backend's table (internal headers: tests/check_layers.sh knows).
 *
 *     gram        G = X'Y                       reads 2
 *     gram_pair   G = P'Q, C = P'R              reads 3
 *     update      Y += X C                      reads 2, writes 1
 *     update_pair X += P a, R -= Q a, norms     reads 4, writes 2
 *     combine     P = Z + P b, G = P'P          reads 2, writes 1
 *
 * in blocks of 8 n k bytes; each product is 2 n k^2 flops.  The floor is the
 * larger of bytes / copy bandwidth and flops / peak, the peak being that of
 * fp64 tensor cores on a GPU (67 TF/s, H200) and unlimited on a CPU. */
#include "bench.h"

#include "backend.h"
#include "block.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double gpu_peak = 67e12;

enum { GRAM, GRAM_PAIR, UPDATE, UPDATE_PAIR, COMBINE, OPERATIONS };

static const struct { const char *name; int reads, writes, products; }
operation[OPERATIONS] = {
    {"gram", 2, 0, 1},        {"gram_pair", 3, 0, 2}, {"update", 2, 1, 1},
    {"update_pair", 4, 2, 2}, {"combine", 2, 1, 2},
};

typedef struct set {
    const sps_backend *f;
    sps_block *W[4];              /* all n x k */
    sps_small G, C, norm2;        /* results; norm2 is 1 x k */
    sps_small tiny;               /* coefficients that change little */
    int which;
} set;

/* ----------------------------------------------------------- the bandwidth */

typedef struct copying { sps_context *ctx; char *to, *from; size_t bytes; }
copying;

/* The host copies by all threads: one core does not fill the memory. */
static sps_status copy(void *data)
{
    copying *c = data;
    size_t piece = (c->bytes + 1023) / 1024;

    if (c->ctx->backend->place == SPS_CUDA)
        return c->ctx->backend->copy(c->ctx, c->to, c->from, c->bytes);
#pragma omp parallel for num_threads(c->ctx->threads)
    for (size_t i = 0; i < 1024; i++) {
        size_t at = i * piece;

        if (at < c->bytes)
            memcpy(c->to + at, c->from + at,
                   piece < c->bytes - at ? piece : c->bytes - at);
    }
    return SPS_OK;
}

sps_status bench_copy(bench *b, size_t bytes, double *bandwidth)
{
    copying c = {.ctx = b->ctx, .bytes = bytes};
    sps_block *X = NULL, *Y = NULL;
    bench_times t = {0};
    bool cold = b->cold;
    int64_t n = (int64_t)(bytes / sizeof(double));
    sps_status st = sps_block_create(b->ctx, n, 1, &X);

    if (st == SPS_OK)
        st = sps_block_create(b->ctx, n, 1, &Y);
    if (st == SPS_OK) {
        c.from = X->data;
        c.to = Y->data;
        b->cold = false;
        st = bench_time(b, copy, &c, &t);
        b->cold = cold;
    }
    if (st == SPS_OK)
        *bandwidth = 2 * (double)bytes / t.median;
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    return st;
}

/* -------------------------------------------------------------- operations */

static sps_status run(void *data)
{
    set *s = data;
    const sps_backend *f = s->f;

    switch (s->which) {
    case GRAM:
        return f->gram(s->W[0], s->W[1], &s->G);
    case GRAM_PAIR:
        return f->gram_pair(s->W[0], s->W[1], s->W[2], &s->G, &s->C);
    case UPDATE:
        return f->mul_small(1, s->W[0], &s->tiny, 1, s->W[1]);
    case UPDATE_PAIR:
        return f->update_pair(s->W[0], s->W[1], &s->tiny, s->W[2], s->W[3],
                              &s->norm2);
    default:
        return f->combine(s->W[0], &s->tiny, s->W[1], &s->G);
    }
}

static bool offered(const set *s, int which)
{
    const sps_backend *f = s->f;

    return which == GRAM || which == UPDATE ||
           (which == GRAM_PAIR && f->gram_pair) ||
           (which == UPDATE_PAIR && f->update_pair) ||
           (which == COMBINE && f->combine);
}

static void close_set(set *s)
{
    for (int i = 0; i < 4; i++)
        sps_block_destroy(&s->W[i]);
    free(s->G.v);
    free(s->C.v);
    free(s->tiny.v);
    free(s->norm2.v);
}

static bool open_small(sps_context *ctx, int rows, int cols, sps_small *C)
{
    C->ctx = ctx;
    C->place = SPS_HOST;
    C->rows = C->max_rows = rows;
    C->cols = C->max_cols = cols;
    C->v = calloc((size_t)rows * (size_t)cols, sizeof *C->v);
    return C->v;
}

static sps_status open_set(bench *b, int64_t n, int k, set *s)
{
    sps_status st = SPS_OK;

    memset(s, 0, sizeof *s);
    s->f = b->ctx->backend;
    if (!open_small(b->ctx, 1, k, &s->norm2) ||
        !open_small(b->ctx, k, k, &s->G) || !open_small(b->ctx, k, k, &s->C) ||
        !open_small(b->ctx, k, k, &s->tiny))
        return SPS_ENOMEM;
    for (int i = 0; i < k * k; i++)      /* 1e-6: repeated runs stay finite */
        s->tiny.v[i] = 1e-6 * ((i * 7919 + 13) % 101 - 50);
    for (int i = 0; i < 4 && st == SPS_OK; i++) {
        st = sps_block_create(b->ctx, n, k, &s->W[i]);
        if (st == SPS_OK)
            st = sps_block_random(s->W[i], (uint64_t)i + 1);
    }
    return st == SPS_OK ? s->f->reserve(b->ctx, n, k) : st;
}

/* ----------------------------------------------------------------- checks */

typedef struct host { int64_t n; int k; double *W[4]; } host;

static sps_status fetch(const set *s, host *h)
{
    sps_status st = SPS_OK;

    sps_block_shape(s->W[0], &h->n, &h->k);
    for (int i = 0; i < 4 && st == SPS_OK; i++) {
        if (!h->W[i])
            h->W[i] = malloc((size_t)h->n * (size_t)h->k * sizeof(double));
        if (!h->W[i])
            return SPS_ENOMEM;
        st = sps_block_get(s->W[i], 0, h->k, h->W[i], h->k, SPS_ROW_MAJOR,
                           SPS_HOST);
    }
    return st;
}

static bool near(double got, long double right, double scale)
{
    return fabs(got - (double)right) <= scale;   /* false for NaN */
}

/* Whether G = X'Y. */
static bool good_gram(const host *h, const double *X, const double *Y,
                      const sps_small *G)
{
    for (int i = 0; i < h->k; i++)
        for (int j = 0; j < h->k; j++) {
            long double sum = 0;

            for (int64_t r = 0; r < h->n; r++)
                sum += (long double)X[r * h->k + i] * Y[r * h->k + j];
            if (!near(*spsi_small_at(G, i, j), sum,
                      DBL_EPSILON * (double)h->n))
                return false;
        }
    return true;
}

/* Whether Y = Z + sign X C. */
static bool good_update(const host *h, const double *Y, const double *Z,
                        const double *X, const sps_small *C, int sign)
{
    for (int64_t r = 0; r < h->n; r++)
        for (int j = 0; j < h->k; j++) {
            long double sum = 0;

            for (int i = 0; i < h->k; i++)
                sum += (long double)X[r * h->k + i] * *spsi_small_at(C, i, j);
            if (!near(Y[r * h->k + j], Z[r * h->k + j] + sign * sum,
                      DBL_EPSILON * (2 + h->k)))
                return false;
        }
    return true;
}

static bool good_norms(const host *h, const double *R, const double *norm2)
{
    for (int j = 0; j < h->k; j++) {
        long double sum = 0;

        for (int64_t r = 0; r < h->n; r++)
            sum += (long double)R[r * h->k + j] * R[r * h->k + j];
        if (!near(norm2[j], sum, DBL_EPSILON * (double)h->n))
            return false;
    }
    return true;
}

/* Runs operation which once on a small block and recomputes it. */
static sps_status check(bench *b, int k, int which, bool *good)
{
    host before = {0}, after = {0};
    set s;
    double *const *p = before.W, *const *q = after.W;
    sps_status st = open_set(b, 1009, k, &s);

    *good = true;
    if (st != SPS_OK || !offered(&s, which))
        goto done;
    s.which = which;
    st = fetch(&s, &before);
    if (st == SPS_OK)
        st = run(&s);
    if (st == SPS_OK)
        st = fetch(&s, &after);
    if (st != SPS_OK)
        goto done;
    if (which == GRAM || which == GRAM_PAIR)
        *good = good_gram(&before, p[0], p[1], &s.G) &&
                (which == GRAM || good_gram(&before, p[0], p[2], &s.C));
    else if (which == UPDATE)
        *good = good_update(&before, q[1], p[1], p[0], &s.tiny, 1);
    else if (which == UPDATE_PAIR)
        *good = good_update(&before, q[2], p[2], p[0], &s.tiny, 1) &&
                good_update(&before, q[3], p[3], p[1], &s.tiny, -1) &&
                good_norms(&before, q[3], s.norm2.v);
    else
        *good = good_update(&before, q[1], p[0], p[1], &s.tiny, 1) &&
                good_gram(&before, q[1], q[1], &s.G);
done:
    for (int i = 0; i < 4; i++) {
        free(before.W[i]);
        free(after.W[i]);
    }
    close_set(&s);
    return st;
}

/* ------------------------------------------------------------------ table */

static void print_row(const bench *b, int64_t n, int k, int which,
                      const bench_times *t)
{
    double bytes = 8.0 * (double)n * k *
                   (operation[which].reads + operation[which].writes);
    double flops = 2.0 * (double)n * k * k * operation[which].products;
    double least = bytes / b->bandwidth;

    if (b->place == SPS_CUDA && flops / gpu_peak > least)
        least = flops / gpu_peak;
    printf("| %-11s | %4d | %9.4f | %9.4f | %9.4f | %7.0f | %8.2f | %6.1f "
           "|\n", operation[which].name, k, t->median * 1e3, t->low * 1e3,
           t->high * 1e3, bytes / t->median / 1e9, flops / t->median / 1e12,
           100 * least / t->median);
    fflush(stdout);
}

static sps_status one_width(bench *b, int64_t n, int k, int *wrong)
{
    set s;
    bench_times t;
    sps_status st = open_set(b, n, k, &s);

    for (int i = 0; i < OPERATIONS && st == SPS_OK; i++) {
        bool good;

        if (!offered(&s, i))
            continue;
        st = check(b, k, i, &good);
        if (st == SPS_OK && !good) {
            printf("| %-11s | %4d | WRONG RESULT |\n", operation[i].name, k);
            ++*wrong;
            continue;
        }
        s.which = i;
        if (st == SPS_OK)
            st = bench_time(b, run, &s, &t);
        if (st == SPS_OK)
            print_row(b, n, k, i, &t);
    }
    close_set(&s);
    return st;
}

sps_status bench_blocks(bench *b, int *wrong)
{
    int64_t n = b->n ? b->n : b->place == SPS_CUDA ? 4000000 : 400000;
    sps_status st = SPS_OK;

    printf("\nblock operations, %lld rows; %s, copy %.1f GB/s\n\n"
           "| operation   |    k |        ms |       p10 |       p90 |    GB/s "
           "|     TF/s | floor%% |\n|---|---|---|---|---|---|---|---|\n",
           (long long)n, b->device, b->bandwidth / 1e9);
    for (int i = 0; i < b->widths && st == SPS_OK; i++)
        st = one_width(b, n, b->k[i], wrong);
    return st;
}
