/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_blocks.c - block operations as solvers use them, called through the
 * backend's table (internal headers, as doc/rooms.txt allows).
 *
 *     gram        G = X'Y                       reads 2
 *     gram_self   G = X'X                       reads 1
 *     gram_pair   G = P'Q, C = P'R              reads 3
 *     multiply    Y = X C                       reads 1, writes 1
 *     update      Y += X C                      reads 2, writes 1
 *     subtract    R -= Q a, norms               reads 2, writes 1
 *     subtract_gram  the same, R'R              reads 2, writes 1
 *     combine     P = Z + P b, G = P'P          reads 2, writes 1
 *     axpby       Y = a X + b Y                 reads 2, writes 1
 *
 * Reads and writes count blocks of 8 n k bytes.  Each product takes 2 n k^2
 * floating-point operations, half of that where it is symmetric.  The lower
 * bound of the time is the larger of bytes / copy bandwidth and operations /
 * peak, where the peak is that of the fp64 tensor cores on a GPU (67e12
 * operations/s, H200) and infinite on a CPU. Small matrices are in device
 * memory: there is no synchronisation between runs. */
#include "tools/bench/bench.h"

#include "core/backend.h"
#include "block/block.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double gpu_peak = 67e12;

enum { GRAM, GRAM_SELF, GRAM_PAIR, MULTIPLY, UPDATE, SUBTRACT,
       SUBTRACT_GRAM, COMBINE, AXPBY, OPERATIONS };

static const struct { const char *name; int reads, writes; double products; }
operation[OPERATIONS] = {
    {"gram", 2, 0, 1},        {"gram_self", 1, 0, 0.5},
    {"gram_pair", 3, 0, 2},   {"multiply", 1, 1, 1},
    {"update", 2, 1, 1},      {"subtract", 2, 1, 1},
    {"subtract_gram", 2, 1, 1.5}, {"combine", 2, 1, 1.5},
    {"axpby", 2, 1, 0},
};

typedef struct set {
    const sps_backend *f;
    sps_block *W[4];              /* all n x k */
    sps_small *G, *C, *norm2;     /* results; norm2 is 1 x k */
    sps_small *tiny, *unit;       /* coefficients that change the blocks little:
                                     tiny, near 0; unit, upper triangular and
                                     near I */
    sps_small *host;              /* host copy of any of them */
    int which;
} set;

/* -------------------------------------------------------------- operations */

static sps_status run(void *data)
{
    set *s = data;
    const sps_backend *f = s->f;

    switch (s->which) {
    case GRAM:
        return f->gram(s->W[0], s->W[1], s->G);
    case GRAM_SELF:
        return f->gram(s->W[0], s->W[0], s->G);
    case GRAM_PAIR:
        return f->gram_pair(s->W[0], s->W[1], s->W[2], s->G, s->C);
    case MULTIPLY:
        return f->mul_small(1, s->W[0], s->unit, 0, s->W[1]);
    case UPDATE:
        return f->mul_small(1, s->W[0], s->tiny, 1, s->W[1]);
    case SUBTRACT:
        return f->subtract(s->W[0], s->tiny, s->W[1], s->norm2);
    case SUBTRACT_GRAM:
        return f->subtract(s->W[0], s->tiny, s->W[1], s->G);
    case COMBINE:
        return f->combine(s->W[0], s->tiny, s->W[1], s->G);
    default:
        return f->axpby(0.5, s->W[0], 0.5, s->W[1]);
    }
}

static bool offered(const set *s, int which)
{
    const sps_backend *f = s->f;

    return !(which == GRAM_PAIR && !f->gram_pair) &&
           !((which == SUBTRACT || which == SUBTRACT_GRAM) &&
             !f->subtract) &&
           !(which == COMBINE && !f->combine);
}

static void close_set(set *s)
{
    for (int i = 0; i < 4; i++)
        sps_block_destroy(&s->W[i]);
    sps_small *all[] = {s->G, s->C, s->norm2, s->tiny, s->unit, s->host};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        spsi_small_destroy(&all[i]);
}

/* Sets tiny to entries of at most 5e-5, so that values stay finite over
 * repeated runs, and unit to 1 on the diagonal, the entries of tiny above it
 * and 0 below. */
static sps_status set_coefficients(set *s, int k)
{
    sps_status st;
    double *v = s->host->v;

    for (int j = 0; j < k; j++)
        for (int i = 0; i < k; i++)
            v[j * k + i] = 1e-6 * (((j * k + i) * 7919 + 13) % 101 - 50);
    st = spsi_small_copy(s->host, s->tiny);
    for (int j = 0; j < k; j++)
        for (int i = j; i < k; i++) v[j * k + i] = i == j;
    return st == SPS_OK ? spsi_small_copy(s->host, s->unit) : st;
}

static sps_status open_set(bench *b, int64_t n, int k, set *s)
{
    sps_status st = SPS_OK;
    sps_small **near[] = {&s->G, &s->C, &s->norm2, &s->tiny, &s->unit};

    memset(s, 0, sizeof *s);
    s->f = b->ctx->backend;
    for (size_t i = 0; i < sizeof near / sizeof *near && st == SPS_OK; i++)
        st = spsi_small_create_device(b->ctx, near[i] == &s->norm2 ? 1 : k, k,
                                      near[i]);
    if (st == SPS_OK) st = spsi_small_create(b->ctx, k, k, &s->host);
    if (st == SPS_OK) st = set_coefficients(s, k);
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
    /* The comparison is false for NaN. */
    return fabs(got - (double)right) <= scale;
}

/* Returns a copy of a small matrix on the host, which is valid until the next
 * call. */
static const sps_small *seen(const set *s, const sps_small *C)
{
    return spsi_small_copy(C, s->host) == SPS_OK ? s->host : NULL;
}

/* Returns whether `got` is the dot product of column i of X and column j of Y
 * up to rounding. */
static bool good_dot(const host *h, const double *X, int i, const double *Y,
                     int j, double got)
{
    long double sum = 0;

    for (int64_t r = 0; r < h->n; r++)
        sum += (long double)X[r * h->k + i] * Y[r * h->k + j];
    return near(got, sum, DBL_EPSILON * (double)h->n);
}

static bool good_gram(const host *h, const double *X, const double *Y,
                      const sps_small *G)
{
    for (int i = 0; G && i < h->k; i++)
        for (int j = 0; j < h->k; j++)
            if (!good_dot(h, X, i, Y, j, *spsi_small_at(G, i, j)))
                return false;
    return G;
}

/* Returns whether Y = Z + sign X C up to rounding; Z may be NULL, which means
 * 0. */
static bool good_update(const host *h, const double *Y, const double *Z,
                        const double *X, const sps_small *C, int sign)
{
    if (!C) return false;
    for (int64_t r = 0; r < h->n; r++)
        for (int j = 0; j < h->k; j++) {
            long double sum = 0;

            for (int i = 0; i < h->k; i++)
                sum += (long double)X[r * h->k + i] * *spsi_small_at(C, i, j);
            if (!near(Y[r * h->k + j],
                      (Z ? Z[r * h->k + j] : 0) + sign * sum,
                      DBL_EPSILON * (2 + h->k)))
                return false;
        }
    return true;
}

static bool good_axpby(const host *h, const double *Y, const double *X,
                       const double *Z)
{
    for (int64_t e = 0; e < h->n * h->k; e++)
        if (!near(Y[e], 0.5L * X[e] + 0.5L * Z[e], DBL_EPSILON)) return false;
    return true;
}

static bool good_norms(const host *h, const double *R, const sps_small *norm2)
{
    for (int j = 0; norm2 && j < h->k; j++)
        if (!good_dot(h, R, j, R, j, norm2->v[j])) return false;
    return norm2;
}

/* Returns whether the operation of s transforms the blocks p into the blocks
 * q. */
static bool right(const set *s, const host *h, double *const *p,
                  double *const *q)
{
    switch (s->which) {
    case GRAM:
        return good_gram(h, p[0], p[1], seen(s, s->G));
    case GRAM_SELF:
        return good_gram(h, p[0], p[0], seen(s, s->G));
    case GRAM_PAIR:
        return good_gram(h, p[0], p[1], seen(s, s->G)) &&
               good_gram(h, p[0], p[2], seen(s, s->C));
    case MULTIPLY:
        return good_update(h, q[1], NULL, p[0], seen(s, s->unit), 1);
    case UPDATE:
        return good_update(h, q[1], p[1], p[0], seen(s, s->tiny), 1);
    case SUBTRACT:
    case SUBTRACT_GRAM:
        return good_update(h, q[1], p[1], p[0], seen(s, s->tiny), -1) &&
               (s->which == SUBTRACT
                    ? good_norms(h, q[1], seen(s, s->norm2))
                    : good_gram(h, q[1], q[1], seen(s, s->G)));
    case COMBINE:
        return good_update(h, q[1], p[0], p[1], seen(s, s->tiny), 1) &&
               good_gram(h, q[1], q[1], seen(s, s->G));
    default:
        return good_axpby(h, q[1], p[0], p[1]);
    }
}

/* Runs operation `which` once on a small block and compares the result. */
static sps_status check(bench *b, int k, int which, bool *good)
{
    host before = {0}, after = {0};
    set s;
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
    *good = right(&s, &before, before.W, after.W);
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
        if (b->once) good = true;
        else st = check(b, k, i, &good);
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
