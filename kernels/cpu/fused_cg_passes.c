/* SPDX-License-Identifier: BSD-3-Clause */
/* fused_cg_passes.c - the three passes over the blocks in one iteration of
 * block CG (driver/fused_cg.h), on the host.  They make 2, 3 and 5 reads and
 * writes of a block, where separate operations need 3, 6, 2, 2 and 3.  A strip
 * of rows (rows.h) goes through all parts of a pass while it is in the L1
 * cache.
 *
 * The dense operations are those of kernels/cuda/fused_cg/steps_small.cuh: with
 * D A D scaled to unit diagonal, elimination of [D A D | I] gives F with A^-1 =
 * F'F. */
#include <float.h>
#include <math.h>

#include "cpu/rows.h"
#include "block/fused_step.h"

#define WIDEST SPS_FUSED_WIDEST
/* If a pivot is smaller than this, the method's own step() performs the step,
 * as on the GPU. */
#define LEAST_PIVOT 1e-13

typedef struct dense {
    double m[WIDEST][2 * WIDEST];  /* [A | I] before elimination */
    double d[WIDEST];
} dense;

/* m = [U | L^-1]; returns false if A is not numerically positive definite. */
static bool eliminate(dense *s, const double *A, int n)
{
    for (int i = 0; i < n; i++) {
        double a = A[i * n + i];

        if (!(a > 0 && a <= DBL_MAX)) return false;
        s->d[i] = 1 / sqrt(a);
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double a = 0.5 * A[j * n + i] + 0.5 * A[i * n + j];

            s->m[i][j] = a * s->d[i] * s->d[j];
            s->m[i][n + j] = i == j;
            if (!(fabs(s->m[i][j]) <= 2)) return false;
        }
    for (int p = 0; p < n; p++) {
        if (!(s->m[p][p] > LEAST_PIVOT)) return false;
        for (int i = p + 1; i < n; i++) {
            double f = s->m[i][p] / s->m[p][p];

            for (int j = p + 1; j <= n + p; j++) s->m[i][j] -= f * s->m[p][j];
        }
    }
    return true;
}

/* F = diag(U)^-1/2 L^-1 D, row-major and packed. */
static void keep_factor(const dense *s, double *F, int n)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            F[j * n + i] = j > i ? 0 : s->m[i][n + j] * s->d[j] /
                                           sqrt(s->m[i][i]);
}

/* out = sign F'F B, where B is n x k. */
static void apply_inverse(const double *F, const double *B, double sign, int n,
                          int k, double *out)
{
    double t[WIDEST];

    for (int j = 0; j < k; j++) {
        for (int i = 0; i < n; i++) {
            t[i] = 0;
            for (int l = 0; l <= i; l++) t[i] += F[l * n + i] * B[j * n + l];
        }
        for (int i = 0; i < n; i++) {
            double sum = 0;

            for (int l = i; l < n; l++) sum += F[i * n + l] * t[l];
            out[j * n + i] = sign * sum;
        }
    }
}

static bool all_finite(const double *A, int count)
{
    for (int e = 0; e < count; e++)
        if (!isfinite(A[e])) return false;
    return true;
}

/* Stores the norms of this step, from their squares.  Returns SPS_FUSED_BROKEN
 * if one is not finite, SPS_FUSED_STORE if X must be stored as best iterate
 * before it changes, otherwise 0. */
static int pass_norms(const sps_fused_cg *w, const double *squares)
{
    double *row = w->norms + w->state->taken % SPS_FUSED_QUEUE * w->most;
    const sps_fused_cg_known *known = &w->known;
    bool finite = true, leaves = false;

    for (int j = 0; j < w->k; j++) {
        const double norm = sqrt(squares[j]), now = norm + known->gap[j];

        row[j] = w->last[j] = norm;
        finite = finite && norm <= DBL_MAX;
        leaves = leaves || SPS_BEST_LOST(now, known->least[j],
                                         known->kept_norm[j]);
        if (now < known->least[j]) known->least[j] = now;
    }
    if (!finite) return SPS_FUSED_BROKEN;
    return leaves && w->state->go < 2 ? SPS_FUSED_STORE : 0;
}

/* Returns SPS_FUSED_CHECK if the driver must decide on convergence or
 * deflation, by the same conditions as in lib/driver (solve.c, columns.c); else
 * 0. */
static int look(const sps_fused_cg *w)
{
    int open = 0;

    for (int j = 0; j < w->k; j++) open += !(w->last[j] <= w->known.limit[j]);
    return open == 0 || (open < w->k && open <= w->few) ? SPS_FUSED_CHECK : 0;
}

/* ------------------------------------------------------------------- passes */

/* Returns rows of z = D r, or of r itself if there is no D. */
static const double *scaled(const double *d, int64_t first, int64_t m,
                            const double *r, int64_t ld, int k, double *z,
                            int64_t *ldz)
{
    *ldz = d ? k : ld;
    if (!d) return r;
    for (int64_t i = 0; i < m; i++)
        for (int j = 0; j < k; j++) z[i * k + j] = d[first + i] * r[i * ld + j];
    return z;
}

typedef struct job {
    const sps_fused_cg *w;
    chunks c;
    const sps_block *Q;
    sps_block *P, *X;
    const sps_block *R;      /* chunk_residual() also writes R */
    const double *a, *b;     /* packed small matrices by which the blocks are
                                multiplied */
    int64_t items;
    double *partial;
} job;

static double *partial_of(const job *j, int64_t row)
{
    return j->partial + row / j->c.rows * j->items;
}

/* R -= Q a;  adds W = Q'Z with Z = D R, r x k row-major, and then the k squared
 * norms of R to the chunk's sum. */
static void chunk_residual(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const sps_fused_cg *w = j->w;
    const sps_block *Q = j->Q;
    sps_block R = *j->R;
    double *sum = partial_of(j, first);
    int64_t step = strip_rows(w->k > w->r ? w->k : w->r), ldq, ldr, ldz;
    double qs[SINGLE_ROOM], rs[SINGLE_ROOM], zs[SINGLE_ROOM];

    memset(sum, 0, (size_t)((w->r + 1) * w->k) * sizeof *sum);
    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        const double *q = spsi_cpu_strip_in(Q, i, m, qs, &ldq);
        double *r = spsi_cpu_strip_in(&R, i, m, rs, &ldr);
        const double *z;

        spsi_cpu_strip_mul(m, q, ldq, w->r, j->a, w->k, 1.0, r, ldr, r, ldr);
        spsi_cpu_strip_out(&R, i, m, r, ldr);
        z = scaled(w->D, i, m, r, ldr, w->k, zs, &ldz);
        spsi_cpu_strip_gram(m, q, ldq, w->r, z, ldz, w->k, sum, w->k);
        spsi_cpu_strip_dots(m, r, ldr, r, ldr, w->k, sum + w->r * w->k);
    }
}

/* X += P a, P = Z + P b;  adds S = P'P and then C = P'R, both k x k row-major,
 * to the chunk's sum. */
static void chunk_directions(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const sps_fused_cg *w = j->w;
    const sps_block *R = j->R;
    sps_block *P = j->P, *X = j->X;
    double *sum = partial_of(j, first);
    const bool single = P->dtype == SPS_F32;
    int64_t step = strip_rows(w->k > w->r ? w->k : w->r), ldp, ldr, ldx, ldz;
    double ps[SINGLE_ROOM], rs[SINGLE_ROOM], xs[SINGLE_ROOM], zs[SINGLE_ROOM];
    double room[SINGLE_ROOM];
    sps_block wide = *P;        /* P with k columns instead of r */
    int k = wide.k = w->k;

    memset(sum, 0, (size_t)(2 * k * k) * sizeof *sum);
    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        double *p = spsi_cpu_strip_in(P, i, m, ps, &ldp);
        double *x = spsi_cpu_strip_in(X, i, m, xs, &ldx);
        const double *r = spsi_cpu_strip_in(R, i, m, rs, &ldr);
        const double *z = scaled(w->D, i, m, r, ldr, k, zs, &ldz);
        double *now = single ? room : p;
        int64_t ldn = single ? k : ldp;

        spsi_cpu_strip_mul(m, p, ldp, w->r, j->a, k, 1.0, x, ldx, x, ldx);
        spsi_cpu_strip_out(X, i, m, x, ldx);
        spsi_cpu_strip_mul(m, p, ldp, w->r, j->b, k, 1.0, z, ldz, now, ldn);
        spsi_cpu_strip_out(&wide, i, m, now, ldn);
        spsi_cpu_strip_gram(m, now, ldn, k, now, ldn, k, sum, k);
        spsi_cpu_strip_gram(m, now, ldn, k, r, ldr, k, sum + k * k, k);
    }
}

/* C(i, j) = rows[i * cols + j], stored column-major. */
static void unpack(const double *rows, int n, int cols, double *C)
{
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < n; i++) C[j * n + i] = rows[i * cols + j];
}

/* Returns a small matrix of the step as an argument of block operations. */
static sps_small small_of(const sps_fused_cg *w, double *v, int rows, int cols)
{
    return (sps_small){ .ctx = w->ctx, .place = SPS_HOST, .rows = rows,
                        .cols = cols, .max_rows = rows, .max_cols = cols,
                        .v = v };
}

/* Packs `sign` times an r x k matrix of the step for products
 * (spsi_cpu_pack). */
static void pack(const sps_fused_cg *w, double sign, double *v, double *packed)
{
    sps_small C = small_of(w, v, w->r, w->k);

    spsi_cpu_pack(sign, &C, packed);
}

/* Returns whether P may be ill-conditioned: the square of its condition number
 * is at most trace(S) trace(S^-1), with S scaled to unit diagonal. */
static bool suspect(const sps_fused_cg *w)
{
    dense s;
    double trace = 0;
    bool regular = eliminate(&s, w->S, w->r);

    for (int i = 0; regular && i < w->r; i++)
        for (int j = 0; j <= i; j++)
            trace += s.m[i][w->r + j] * s.m[i][w->r + j] / s.m[i][i];
    w->state->unchecked = 0;
    return !(regular && w->r * trace <= w->condition * w->condition);
}

/* Computes the step lengths a = G^-1 C. Returns 0, or the reason SPS_FUSED_...
 * why that cannot be done. */
static int lengths(const sps_fused_cg *w)
{
    const double *C = w->state->given ? w->C : w->S + w->k * w->k;
    dense s;

    if (w->state->unchecked && suspect(w)) return SPS_FUSED_BASIS;
    if (!all_finite(w->G, w->r * w->r) || !all_finite(C, w->r * w->k))
        return SPS_FUSED_BROKEN;
    if (!eliminate(&s, w->G, w->r)) return SPS_FUSED_LENGTHS;
    keep_factor(&s, w->F, w->r);
    apply_inverse(w->F, C, 1.0, w->r, w->k, w->a);
    return 0;
}

sps_status spsi_cpu_fused_cg_lengths(const sps_fused_cg *w, const sps_block *P,
                                     const sps_block *Q)
{
    sps_small G = small_of(w, w->own.G, w->r, w->r);

    return w->state->stop ? SPS_OK : spsi_cpu_gram(P, Q, &G);
}

sps_status spsi_cpu_fused_cg_residual(const sps_fused_cg *w, const sps_block *Q,
                                      sps_block *R)
{
    int64_t items = (int64_t)(w->r + 1) * w->k;
    int64_t size = w->r * packed_cols(w->k);
    chunks c = chunks_of(R->n, items);
    double *minus, *partial;
    sps_status st = SPS_OK;

    if (w->state->stop) return st;
    w->state->stop = lengths(w);
    if (w->state->stop) return st;
    SPS_TRY(spsi_cpu_scratch(w->ctx, size + c.count * items, &minus));
    partial = minus + size;
    pack(w, -1.0, w->a, minus);
    spsi_cpu_over_chunks(w->ctx, c, work_ns(c.n, w->r + 2 * w->k, 2 * items),
                         chunk_residual,
                         &(job){ .w = w, .c = c, .Q = Q, .a = minus, .R = R,
                                 .items = items, .partial = partial });
    spsi_cpu_sum_chunks(w->ctx, c.count, items, partial);
    unpack(partial, w->r, w->k, w->own.W);
    memcpy(w->own.W + w->r * w->k, partial + w->r * w->k,
           (size_t)w->k * sizeof *partial);
fail:
    return st;
}

sps_status spsi_cpu_fused_cg_directions(const sps_fused_cg *w, sps_block *P,
                                        sps_block *X, const sps_block *R)
{
    int k = w->k;
    int64_t items = 2 * (int64_t)k * k, size = w->r * packed_cols(k);
    chunks c = chunks_of(R->n, items);
    double *a, *b, *partial;
    sps_status st = SPS_OK;

    if (w->state->stop) return st;
    w->state->stop = pass_norms(w, w->W + w->r * w->k);
    if (w->state->stop) return st;
    apply_inverse(w->F, w->W, -1.0, w->r, w->k, w->b);
    SPS_TRY(spsi_cpu_scratch(w->ctx, 2 * size + c.count * items, &a));
    b = a + size;
    partial = b + size;
    pack(w, 1.0, w->a, a);
    pack(w, 1.0, w->b, b);
    spsi_cpu_over_chunks(w->ctx, c, work_ns(c.n, 5 * k, 2 * items),
                         chunk_directions,
                         &(job){ .w = w, .c = c, .P = P, .X = X, .R = R,
                                 .a = a, .b = b, .items = items,
                                 .partial = partial });
    spsi_cpu_sum_chunks(w->ctx, c.count, items, partial);
    unpack(partial, k, k, w->own.S);
    unpack(partial + k * k, k, k, w->own.S + k * k);
    w->state->stop = look(w);
    w->state->go = 0;
    w->state->taken = (w->state->taken + 1) & 0x3fffffff;
    w->state->unchecked = 1;
    w->state->given = 0;
    w->state->parts = 1;
fail:
    return st;
}
