/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_twofold.c - H + L = W + V + A X diag(c) in twice the working precision
 * (backend.h), by rows; A may be the identity.
 *
 * Each product a x is p + e, where p = fl(a x) and e is its rounding error;
 * each sum s + p is s' + f with s' = fl(s + p).  The e and f are accumulated
 * separately (Ogita, Rump and Oishi, SIAM J. Sci. Comput. 26, 2005, algorithm
 * 5.3, Dot2).  With a fused multiply-add e = fma(a, x, -p), without one e is
 * computed by Dekker's splitting (Numer. Math. 18, 1971).  Both are exact as
 * long as nothing underflows, which callers ensure by scaling the
 * right-hand sides (lib/driver/rhs.c, verify.c).
 *
 * Bytes: A once, rows of X again whenever the caches have evicted them, each of
 * W, V, H, L once.  Operations: 10 per entry and column, and 17 more without
 * fused multiply-add; with vectors of four doubles they take about as long as
 * the bytes. */
#include "cpu/rows.h"
#include "matrix/csr.h"

#include <float.h>
#include <math.h>

/* A compiler that assumes real arithmetic would remove the error terms. */
#if defined(__FAST_MATH__) || FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 2
#error "sums in twice the precision need IEEE arithmetic: compile without \
-ffast-math, on x86 of 32 bits with -msse2 -mfpmath=sse"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

enum { STRIP = 8 };   /* columns whose sums stay in registers */
enum { AHEAD = 16 };  /* entries whose rows of X are fetched beforehand: the
                         sums of one depend on each other for so long that few
                         others are begun meanwhile */

/* Returns sum = fl(a + b); sum + *error = a + b exactly (Knuth). */
INLINE double two_sum(double a, double b, double *error)
{
    const double sum = a + b, z = sum - a;

    *error = (a - (sum - z)) + (b - z);
    return sum;
}

/* Returns the upper 26 bits of a; a - high_part(a) is the rest. */
INLINE double high_part(double a)
{
    const double c = 0x1p27 + 1, t = c * a;

    return t - (t - a);
}

/* Returns a b - p exactly, for p = fl(a b). */
INLINE double product_error(bool fused, double a, double b, double p)
{
    if (fused) return __builtin_fma(a, b, -p);

    const double ah = high_part(a), al = a - ah;
    const double bh = high_part(b), bl = b - bh;

    return al * bl - (((p - ah * bh) - al * bh) - ah * bl);
}

typedef struct job {
    const sps_csr_local *A;
    const sps_twofold_args *args;
} job;

/* Returns the address of element (i, j), or NULL if X is NULL. */
INLINE double *at(const sps_block *X, int64_t i, int j)
{
    return X ? (double *)X->data + i * X->ld + j : NULL;
}

/* Computes h + l = w + v + c (s + e). */
INLINE void finish(bool fused, double c, double s, double e, double w,
                   double v, double *h, double *l)
{
    const double plain = w + c * s;
    double low, f, p;

    s = two_sum(s, e, &e);
    p = c * s;
    f = product_error(fused, c, s, p);
    if (!fused && isnan(f)) f = __builtin_fma(c, s, -p);
    low = f + c * e;
    *h = two_sum(w, p, &f);
    low = (low + f) + v;
    p = two_sum(*h, low, l);
    *h = isfinite(p) ? p : plain;
    *l = isfinite(p) ? *l : 0;
}

/* Computes s + e of columns j .. j+k-1 of row i; k is a constant after
 * inlining. */
INLINE void sums(bool fused, bool single, const job *o, int64_t i, int j,
                 int k, double *s, double *e)
{
    const sps_csr_local *A = o->A;
    const double *own = at(o->args->X, i, j);

    for (int t = 0; t < k; t++) {
        s[t] = A ? 0 : own[t];
        e[t] = 0;
    }
    if (!A) return;
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const double *x = at(o->args->X, A->col[p], j);
        const double a = single ? (double)((const float *)A->val)[p]
                                : ((const double *)A->val)[p];

        if (p + AHEAD < A->nnz)
            __builtin_prefetch(at(o->args->X, A->col[p + AHEAD], j));
        /* gcc makes vectors of this loop only if it is left as a loop. */
#pragma GCC unroll 1
        for (int t = 0; t < k; t++) {
            const double q = a * x[t];
            double f;

            s[t] = two_sum(s[t], q, &f);
            e[t] += f + product_error(fused, a, x[t], q);
        }
    }
}

/* Returns whether splitting has overflowed although the product has not, which
 * is possible for magnitudes of at least 2^996. */
INLINE bool spoiled(const double *s, const double *e, int k)
{
    bool any = false;

    for (int t = 0; t < k; t++) any = any || (isfinite(s[t]) && isnan(e[t]));
    return any;
}

INLINE void strip(bool fused, bool single, const job *o, int64_t i, int j,
                  int k)
{
    const sps_twofold_args *g = o->args;
    const double *w = at(g->W, i, j), *v = at(g->V, i, j);
    double *h = at(g->H, i, j), *l = at(g->L, i, j);
    double s[STRIP], e[STRIP], low;

    sums(fused, single, o, i, j, k, s, e);
    if (!fused && spoiled(s, e, k)) sums(true, single, o, i, j, k, s, e);
    for (int t = 0; t < k; t++) {
        finish(fused, g->c ? g->c[j + t] : -1, s[t], e[t], w ? w[t] : 0,
               v ? v[t] : 0, h + t, &low);
        if (l) l[t] = low;
    }
}

INLINE void rows(bool fused, bool single, const job *o, int64_t first,
                 int64_t last)
{
    const int k = o->args->H->k;

    for (int64_t i = first; i < last; i++) {
        int j = 0;

        for (; j + STRIP <= k; j += STRIP) strip(fused, single, o, i, j, STRIP);
        if (j + 4 <= k) {
            strip(fused, single, o, i, j, 4);
            j += 4;
        }
        if (j + 2 <= k) {
            strip(fused, single, o, i, j, 2);
            j += 2;
        }
        if (j < k) strip(fused, single, o, i, j, 1);
    }
}

/* There are two versions; the one with fused multiply-add is used if the
 * processor supports it. */
#if defined(FUSED)   /* defined by a test that includes this file */
#elif defined(__FP_FAST_FMA)
#define FUSED 1
#define FUSED_ONLY
#elif defined(__x86_64__) && defined(__GNUC__)
#define FUSED (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"))
#define FUSED_ONLY __attribute__((target("avx2,fma")))
#else
#define FUSED 0
#define FUSED_ONLY
#endif

FUSED_ONLY static void rows_fused(void *data, int64_t first, int64_t last)
{
    const job *o = data;

    if (!o->A || o->A->dtype == SPS_F64) rows(true, false, o, first, last);
    else rows(true, true, o, first, last);
}

static void rows_split(void *data, int64_t first, int64_t last)
{
    const job *o = data;

    if (!o->A || o->A->dtype == SPS_F64) rows(false, false, o, first, last);
    else rows(false, true, o, first, last);
}

sps_status spsi_cpu_twofold(const sps_csr_local *A,
                            const sps_twofold_args *args)
{
    const sps_block *H = args->H;
    job o = { A, args };

    spsi_team_run(H->ctx, H->n, work_ns((A ? A->nnz : 0) + H->n, 1, 8 * H->k),
                  FUSED ? rows_fused : rows_split, &o);
    return SPS_OK;
}
