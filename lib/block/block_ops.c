/* SPDX-License-Identifier: BSD-3-Clause */
/* block_ops.c - block operations as called by solvers.  Shapes are asserted,
 * empty blocks are handled here and never reach a backend, sums are reduced
 * over processes, and fused operations that a backend lacks are composed of
 * simple ones. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "block/block.h"
#include "block/chunk_sums.h"
#include "block/joined.h"
#include "block/small.h"
#include "core/backend.h"
#include "core/comm.h"

static const sps_backend *of(const sps_block *X)
{
    return X->ctx->backend;
}

static bool empty(const sps_block *X)
{
    return X->n == 0 || X->k == 0;
}

static inline bool alike(const sps_block *X, const sps_block *Y)
{
    return X->n == Y->n && X->k == Y->k && X->ctx == Y->ctx;
}

/* Returns whether sums over rows must be formed by chunk_sums.h.  Then fused
 * operations, which sum over the rows of one process, are replaced by several
 * simple ones. */
static bool ordered(const sps_block *X)
{
    return spsi_comm_ordered(X->ctx);
}

sps_status spsi_small_reduce(sps_small *C)
{
    if (spsi_small_joined(C)) return SPS_OK;
    assert(!spsi_comm_many(C->ctx) || C->place == SPS_HOST);
    return spsi_reduce(C->ctx, C->v, C->rows * C->cols);
}

sps_status spsi_fill(sps_block *X, double value)
{
    return empty(X) ? SPS_OK : of(X)->fill(X, value);
}

sps_status spsi_copy(const sps_block *X, sps_block *Y)
{
    return spsi_axpby(1.0, X, 0.0, Y);
}

sps_status spsi_gather(const sps_block *X, const int *index, sps_block *Y)
{
    assert(X->n == Y->n && X->data != Y->data);
    return empty(Y) ? SPS_OK : of(X)->gather(X, index, Y);
}

sps_status spsi_scatter(const sps_block *X, const int *index, sps_block *Y)
{
    assert(X->n == Y->n && X->data != Y->data);
    return empty(X) ? SPS_OK : of(X)->scatter(X, index, Y);
}

sps_status spsi_take_rows(const sps_block *X, const int32_t *index,
                          sps_block *Y)
{
    assert(X->k == Y->k);
    return empty(Y) ? SPS_OK : of(X)->take_rows(X, index, Y);
}

sps_status spsi_put_rows(const sps_block *X, const int32_t *index,
                         sps_block *Y)
{
    assert(X->k == Y->k);
    return empty(X) ? SPS_OK : of(X)->put_rows(X, index, Y);
}

sps_status spsi_axpby(double a, const sps_block *X, double b, sps_block *Y)
{
    assert(alike(X, Y));
    return empty(X) ? SPS_OK : of(X)->axpby(a, X, b, Y);
}

sps_status spsi_axpby_cols(const double *a, const sps_block *X,
                           const double *b, sps_block *Y)
{
    assert(alike(X, Y));
    return empty(X) ? SPS_OK : of(X)->axpby_cols(a, X, b, Y);
}

sps_status spsi_scale_rows(const sps_block *d, const sps_block *X,
                           sps_block *Y)
{
    assert(alike(X, Y) && d->n == X->n && d->k == 1);
    return empty(X) ? SPS_OK : of(X)->scale_rows(d, X, Y);
}

static sps_status own_dots(const sps_block *X, const sps_block *Y, double *out)
{
    if (!empty(X)) return of(X)->dots(X, Y, out);
    memset(out, 0, (size_t)X->k * sizeof *out);
    return SPS_OK;
}

sps_status spsi_dots(const sps_block *X, const sps_block *Y, double *out)
{
    sps_status st;

    assert(alike(X, Y));
    if (ordered(X)) return spsi_chunk_dots(X, Y, out);
    SPS_TRY(own_dots(X, Y, out));
    SPS_TRY(spsi_reduce(X->ctx, out, X->k));
fail:
    return st;
}

/* ------------------------------------------------------------------- norms */

/* Plain sums of squares are accurate between TINY and DBL_MAX: above TINY the
 * squares that underflow, each below DBL_MIN, are together less than the
 * rounding error of the sum; a finite sum has not overflowed. */
#define TINY (DBL_MIN / (DBL_EPSILON * DBL_EPSILON))
#define CHUNK 2048

/* out[j] = sum over rows (x_ij / scale_j)^2, on the host, a few rows at a time.
 * Used only for columns whose squares leave the range of doubles, which are
 * rare. */
static sps_status scaled_squares(const sps_block *X, const double *scale,
                                 double *out)
{
    double rows[CHUNK];
    int64_t step = CHUNK / X->k;
    sps_block part = *X;
    sps_status st = SPS_OK;

    memset(out, 0, (size_t)X->k * sizeof *out);
    for (int64_t i = 0; i < X->n; i += step) {
        part.n = X->n - i < step ? X->n - i : step;
        part.data = (double *)X->data + i * X->ld;
        SPS_TRY(of(X)->get(&part, rows, X->k, SPS_ROW_MAJOR, SPS_HOST));
        for (int64_t p = 0; p < part.n * X->k; p++) {
            double x = rows[p] / scale[p % X->k];

            out[p % X->k] += x * x;
        }
    }
fail:
    return st;
}

sps_status spsi_largest(const sps_block *X, double *out)
{
    sps_status st;

    memset(out, 0, (size_t)X->k * sizeof *out);
    if (!empty(X)) SPS_TRY(of(X)->maxabs(X, out));
    if (ordered(X)) return spsi_chunk_largest(X->ctx, X->k, out);
    SPS_TRY(spsi_reduce(X->ctx, out, X->k));
fail:
    return st;
}

typedef struct scaled {
    const sps_block *X;
    const double *scale;
} scaled;

static sps_status part_squares(void *data, int64_t first, int64_t n,
                               double *sums)
{
    const scaled *s = data;
    const sps_block X = spsi_chunk_view(s->X, first, n);

    return scaled_squares(&X, s->scale, sums);
}

static sps_status sum_scaled_squares(const sps_block *X, const double *scale,
                                     double *out)
{
    sps_status st;

    if (ordered(X))
        return spsi_chunk_sum(X->ctx, X->n, X->k, part_squares,
                                &(scaled){ X, scale }, out);
    SPS_TRY(scaled_squares(X, scale, out));
    SPS_TRY(spsi_reduce(X->ctx, out, X->k));
fail:
    return st;
}

/* Computes norms by m sqrt(sum (x/m)^2) with m = max_i |x_ij|.  Over several
 * processes m is the sum of their maxima, between the maximum and `size` times
 * that. */
static sps_status scaled_norms(const sps_block *X, double *out)
{
    double top[SPS_BLOCK_MAX], scale[SPS_BLOCK_MAX];
    bool plain = true;
    sps_status st;

    SPS_TRY(spsi_largest(X, top));
    for (int j = 0; j < X->k; j++) {
        bool usable = top[j] > 0 && top[j] < HUGE_VAL;

        scale[j] = usable ? top[j] : 1.0;
        plain = plain && !usable;
    }
    if (!plain) SPS_TRY(sum_scaled_squares(X, scale, out));
    for (int j = 0; j < X->k; j++) /* m = 0, infinity or NaN is the norm */
        out[j] = top[j] > 0 && top[j] < HUGE_VAL ? top[j] * sqrt(out[j])
                                                 : top[j];
fail:
    return st;
}

static bool in_range(const double *squares, int k)
{
    for (int j = 0; j < k; j++)
        if (!(squares[j] >= TINY && squares[j] <= DBL_MAX)) return false;
    return true;
}

sps_status spsi_norms(const sps_block *X, double *out)
{
    double safe[SPS_BLOCK_MAX];
    sps_status st;

    SPS_TRY(spsi_dots(X, X, out));
    if (!in_range(out, X->k)) {
        SPS_TRY(scaled_norms(X, safe));
        for (int j = 0; j < X->k; j++)
            out[j] = in_range(&out[j], 1) ? sqrt(out[j]) : safe[j];
    } else {
        for (int j = 0; j < X->k; j++) out[j] = sqrt(out[j]);
    }
fail:
    return st;
}

/* ---------------------------------------------------------- small products */

/* Clears C: the sum over no rows is zero. */
static sps_status clear_small(sps_small *C)
{
    static const double zeros[SPS_BLOCK_MAX];
    size_t column = (size_t)C->rows * sizeof(double);
    sps_status st = SPS_OK;

    assert(C->rows <= SPS_BLOCK_MAX);
    for (int j = 0; column && j < C->cols; j++) {
        double *v = spsi_small_at(C, 0, j);

        if (C->place == SPS_HOST || spsi_small_joined(C))
            memset(v, 0, column);
        else SPS_TRY(C->ctx->backend->upload(C->ctx, v, zeros, column));
    }
fail:
    return st;
}

static sps_status own_gram(const sps_block *X, const sps_block *Y, sps_small *C)
{
    assert(X->n == Y->n && X->k <= C->max_rows && Y->k <= C->max_cols);
    spsi_small_shape(C, X->k, Y->k);
    return empty(X) || empty(Y) ? clear_small(C) : of(X)->gram(X, Y, C);
}

sps_status spsi_gram(const sps_block *X, const sps_block *Y, sps_small *C)
{
    sps_status st;

    if (ordered(X)) {
        spsi_small_shape(C, X->k, Y->k);
        return spsi_chunk_gram(X, Y, C);
    }
    SPS_TRY(own_gram(X, Y, C));
    SPS_TRY(spsi_small_reduce(C));
fail:
    return st;
}

sps_status spsi_mul_small(double a, const sps_block *X, const sps_small *C,
                          double b, sps_block *Y)
{
    assert(X->n == Y->n && C->rows == X->k && C->cols == Y->k);
    if (empty(Y)) return SPS_OK;
    if (X->k == 0) return b == 1.0 ? SPS_OK : of(Y)->axpby(0.0, Y, b, Y);
    return of(X)->mul_small(a, X, C, b, Y);
}

/* ------------------------------------------------------------- fused forms */

/* Sums G and C over processes, at once unless they are large. */
static sps_status reduce_pair(sps_small *G, sps_small *C)
{
    enum { MOST = 2048 };
    const int g = G->rows * G->cols, c = C->rows * C->cols;
    double both[MOST];
    sps_status st;

    if (!spsi_comm_many(G->ctx) || spsi_small_joined(G)) return SPS_OK;
    if (g + c > MOST) {
        SPS_TRY(spsi_small_reduce(G));
        return spsi_small_reduce(C);
    }
    memcpy(both, G->v, (size_t)g * sizeof *both);
    memcpy(both + g, C->v, (size_t)c * sizeof *both);
    SPS_TRY(spsi_reduce(G->ctx, both, g + c));
    memcpy(G->v, both, (size_t)g * sizeof *both);
    memcpy(C->v, both + g, (size_t)c * sizeof *both);
fail:
    return st;
}

static sps_status own_pair(const sps_block *P, const sps_block *Q,
                           const sps_block *R, sps_small *G, sps_small *C)
{
    sps_status st;

    if (!of(P)->gram_pair || empty(P) || empty(Q) || empty(R) ||
        (P->dtype == SPS_F32 && of(P)->place == SPS_HOST)) {
        SPS_TRY(own_gram(P, Q, G));
        return own_gram(P, R, C);
    }
    assert(P->n == Q->n && P->n == R->n);
    spsi_small_shape(G, P->k, Q->k);
    spsi_small_shape(C, P->k, R->k);
    return of(P)->gram_pair(P, Q, R, G, C);
fail:
    return st;
}

sps_status spsi_gram_pair(const sps_block *P, const sps_block *Q,
                          const sps_block *R, sps_small *G, sps_small *C)
{
    sps_status st;

    if (ordered(P)) {
        SPS_TRY(spsi_gram(P, Q, G));
        return spsi_gram(P, R, C);
    }
    SPS_TRY(own_pair(P, Q, R, G, C));
    SPS_TRY(reduce_pair(G, C));
fail:
    return st;
}

/* S = squared norms of the columns of R if S is 1 x k, R'R if it is k x k. */
static sps_status squares(const sps_block *R, sps_small *S)
{
    double norm2[SPS_BLOCK_MAX];
    sps_status st;

    if (S->rows > 1) return spsi_gram(R, R, S);
    if (spsi_small_joined(S)) return own_dots(R, R, S->v);
    if (S->place == SPS_HOST) return spsi_dots(R, R, S->v);
    SPS_TRY(spsi_dots(R, R, norm2));
    SPS_TRY(S->ctx->backend->upload(S->ctx, S->v, norm2,
                                    (size_t)R->k * sizeof *norm2));
fail:
    return st;
}

sps_status spsi_subtract(const sps_block *Q, const sps_small *a, sps_block *R,
                         sps_small *S)
{
    sps_status st;

    assert(Q->n == R->n && a->rows == Q->k && a->cols == R->k);
    assert((S->rows == 1 || S->rows == R->k) && S->cols == R->k);
    if (!of(R)->subtract || ordered(R) || empty(Q) || empty(R)) {
        SPS_TRY(spsi_mul_small(-1.0, Q, a, 1.0, R));
        SPS_TRY(squares(R, S));
        return SPS_OK;
    }
    SPS_TRY(of(R)->subtract(Q, a, R, S));
    SPS_TRY(spsi_small_reduce(S));
fail:
    return st;
}

sps_status spsi_subtract_cols(const sps_block *Q, const double *a,
                              sps_block *R, double *norm2)
{
    double one[SPS_BLOCK_MAX], minus[SPS_BLOCK_MAX];
    sps_status st;

    assert(alike(Q, R));
    if (!of(R)->subtract_cols || ordered(R) || empty(R)) {
        for (int j = 0; j < R->k; j++) {
            one[j] = 1.0;
            minus[j] = -a[j];
        }
        SPS_TRY(spsi_axpby_cols(minus, Q, one, R));
        SPS_TRY(spsi_dots(R, R, norm2));
        return SPS_OK;
    }
    SPS_TRY(of(R)->subtract_cols(Q, a, R, norm2));
    SPS_TRY(spsi_reduce(R->ctx, norm2, R->k));
fail:
    return st;
}

/* P = Z + P b.  Old and new P, of r and k columns, share memory, which
 * spsi_mul_small allows: each row is read before it is written. */
static sps_status combine(const sps_block *Z, const sps_small *b, sps_block *P)
{
    sps_block old = *P;
    sps_status st;

    spsi_block_narrow(P, Z->k);
    SPS_TRY(spsi_mul_small(1.0, &old, b, 0.0, P));
    SPS_TRY(spsi_axpby(1.0, Z, 1.0, P));
fail:
    return st;
}

/* P = Z + P b for a Z of floats: P is rounded to floats, and Z becomes a copy
 * of it. */
static sps_status combine_rounded(const sps_block *Z, const sps_small *b,
                                 sps_block *P)
{
    sps_block floats = *Z;
    sps_status st;

    SPS_TRY(combine(Z, b, P));
    SPS_TRY(spsi_copy(P, &floats));
    SPS_TRY(spsi_copy(&floats, P));
fail:
    return st;
}

sps_status spsi_combine(const sps_block *Z, const sps_small *b, sps_block *P,
                        sps_small *G)
{
    sps_status st;

    assert(Z->n == P->n && Z->k <= P->width);
    assert(b->rows == P->k && b->cols == Z->k);
    const bool single = Z->dtype == SPS_F32;

    if (!of(Z)->combine || ordered(Z) || empty(Z) || empty(P) ||
        (single && of(Z)->place == SPS_HOST)) {
        SPS_TRY(single ? combine_rounded(Z, b, P) : combine(Z, b, P));
        if (G) SPS_TRY(spsi_gram(P, P, G));
        return SPS_OK;
    }
    if (G) spsi_small_shape(G, Z->k, Z->k);
    SPS_TRY(of(Z)->combine(Z, b, P, G));
    if (G) SPS_TRY(spsi_small_reduce(G));
fail:
    return st;
}

sps_status spsi_combine_single(sps_block *Z, const sps_small *b,
                               const sps_block *P, sps_small *G)
{
    sps_block old = *P;
    sps_status st;

    assert(Z->n == P->n && Z->dtype == SPS_F32 && P->dtype == SPS_F32);
    assert(b->rows == P->k && b->cols == Z->k);
    if (!of(Z)->combine || empty(Z) || empty(P) || of(Z)->place == SPS_HOST) {
        SPS_TRY(spsi_mul_small(1.0, P, b, 1.0, Z));
        if (G) SPS_TRY(spsi_gram(Z, Z, G));
        return SPS_OK;
    }
    if (G) spsi_small_shape(G, Z->k, Z->k);
    SPS_TRY(of(Z)->combine(Z, b, &old, G));
    if (G) SPS_TRY(spsi_small_reduce(G));
fail:
    return st;
}
