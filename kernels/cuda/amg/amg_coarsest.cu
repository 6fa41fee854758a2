/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_coarsest.cu - the dense inverse of the coarsest matrix, by Gauss-Jordan
 * elimination; solvers/amg/coarsest.c has the formulas.
 *
 * A step is a kernel that reads one copy of the matrix and writes the other: 16
 * n^2 bytes, in L2.  The host waits once, for whether there is an inverse. */
#include "cuda/amg/coarse.cuh"

namespace {

struct clear_dense {
    double *X;

    __device__ void operator()(int64_t e) const { X[e] = 0; }
};

struct load_dense {
    entries A;
    const double *s;
    int64_t n;
    double *X;

    __device__ void operator()(int64_t i) const
    {
        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
            X[i * n + A.col[p]] = A.val[p] * s[i] * s[A.col[p]];
        if (s[i] == 0) X[i * n + i] = 1;
    }
};

/* Y = the mean of X and X'; *bad: an element is beyond SPS_COARSE_LARGE. */
struct mean_of_both {
    const double *X;
    int64_t n;
    double *Y;
    int *bad;                 /* NULL: not wanted */

    __device__ void operator()(int64_t e) const
    {
        const int64_t i = e / n, j = e % n;
        const double x = X[e], y = X[j * n + i];

        Y[e] = i == j ? x : i < j ? 0.5 * x + 0.5 * y : 0.5 * y + 0.5 * x;
        if (bad && !(fabs(x) <= SPS_COARSE_LARGE)) *bad = 1;
    }
};

/* b = S^-1 near-null vector v, and the terms of ||b||^2 and ||C b||^2. */
struct null_terms {
    entries A;
    const double *s, *near;
    int vectors, v;
    double *b, *length, *image;

    __device__ void operator()(int64_t i) const
    {
        double sum = 0;

        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
            sum += A.val[p] * near[(int64_t)A.col[p] * vectors + v];
        b[i] = s[i] > 0 ? near[i * vectors + v] / s[i] : 0;
        length[i] = b[i] * b[i];
        image[i] = sum * s[i] * sum * s[i];
    }
};

/* *found = ||b||^2 if C b = 0, else 0; one thread. */
struct judge_null {
    const double *length, *image;
    int64_t n;
    double *found;

    __device__ void operator()(int64_t) const
    {
        double whole = 0, other = 0;

        for (int64_t i = 0; i < n; i++) {
            whole += length[i];
            other += image[i];
        }
        *found = whole > 0 &&
                 other <= SPS_COARSE_ZERO * SPS_COARSE_ZERO * whole ? whole : 0;
    }
};

struct add_null {
    const double *b, *found;
    int64_t n;
    double *X;

    __device__ void operator()(int64_t e) const
    {
        if (*found > 0) X[e] += b[e / n] * b[e % n] / *found;
    }
};

/* Y: X with unknown k exchanged for its right-hand side. */
struct eliminate {
    const double *X;
    int64_t n, k;
    double *Y;
    int *bad;

    __device__ void operator()(int64_t e) const
    {
        const int64_t i = e / n, j = e % n;
        const double pivot = X[k * n + k], r = 1 / pivot;
        const double row = X[k * n + j] * r;

        if (i == k && j == k && !(pivot > 0)) *bad = 1;
        Y[e] = i == k ? (j == k ? r : row)
             : j == k ? -(X[i * n + k] * r) : X[e] - X[i * n + k] * row;
    }
};

struct store_dense {
    const double *Z, *s;
    int64_t n;
    double *val;

    __device__ void operator()(int64_t e) const
    {
        const double left = s[e / n] > 0 ? s[e / n] : 1;
        const double right = s[e % n] > 0 ? s[e % n] : 1;

        val[e] = left * Z[e] * right;
    }
};

struct full_pattern {
    int64_t n, *rowptr;
    int32_t *col;

    __device__ void operator()(int64_t e) const
    {
        if (e <= n) rowptr[e] = e * n;
        if (e < n * n) col[e] = (int32_t)(e % n);
    }
};

struct dense {
    sps_coarse *l;
    double *X, *Y, *b, *found;
    int *bad;
};

sps_status lift(const dense *d)
{
    sps_coarse *l = d->l;
    sps_context *ctx = l->ctx;
    const int64_t n = l->A.nrow;
    double *length = d->b + n, *image = d->b + 2 * n;

    for (int v = 0; v < l->vectors; v++) {
        SPS_TRY_RETURN(each(ctx, n, null_terms{entries_of(&l->A), l->scale,
                                               l->near, l->vectors, v, d->b,
                                               length, image}));
        SPS_TRY_RETURN(each(ctx, 1, judge_null{length, image, n, d->found}));
        SPS_TRY_RETURN(each(ctx, n * n, add_null{d->b, d->found, n, d->X}));
    }
    return SPS_OK;
}

void exchange(dense *d)
{
    double *spare = d->X;

    d->X = d->Y;
    d->Y = spare;
}

/* d->X: the inverse. */
sps_status invert(dense *d)
{
    sps_coarse *l = d->l;
    sps_context *ctx = l->ctx;
    const int64_t n = l->A.nrow;

    SPS_TRY_RETURN(clear(ctx, 1, d->bad));
    SPS_TRY_RETURN(each(ctx, n * n, clear_dense{d->Y}));
    SPS_TRY_RETURN(each(ctx, n, load_dense{entries_of(&l->A), l->scale, n,
                                           d->Y}));
    SPS_TRY_RETURN(each(ctx, n * n, mean_of_both{d->Y, n, d->X, NULL}));
    SPS_TRY_RETURN(lift(d));
    for (int64_t k = 0; k < n; k++) {
        SPS_TRY_RETURN(each(ctx, n * n, eliminate{d->X, n, k, d->Y, d->bad}));
        exchange(d);
    }
    SPS_TRY_RETURN(each(ctx, n * n, mean_of_both{d->X, n, d->Y, d->bad}));
    exchange(d);
    return SPS_OK;
}

sps_status open_full(sps_context *ctx, int64_t n, sps_csr *made)
{
    void *got;

    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)(n + 1) * sizeof(int64_t),
                                   &got));
    made->rowptr = (int64_t *)got;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)(n * n) * sizeof(int32_t),
                                   &got));
    made->col = (int32_t *)got;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)(n * n) * sizeof(double),
                                   &got));
    made->val = got;
    return each(ctx, n * n + n + 1, full_pattern{n, made->rowptr, made->col});
}

} // namespace

sps_status spsi_coarse_invert(sps_coarse *l, sps_csr **Z_p, bool *regular)
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->A.nrow;
    holder h(ctx);
    dense d = {l};
    sps_csr made = {};
    int bad;

    made.nrow = made.ncol = n;
    made.nnz = n * n;
    made.dtype = SPS_F64;
    if (!*Z_p)
        SPS_TRY_RETURN(spsi_cuda_csr_finish(ctx, open_full(ctx, n, &made),
                                            &made, Z_p));
    SPS_TRY_RETURN(h.take(n * n, &d.X));
    SPS_TRY_RETURN(h.take(n * n, &d.Y));
    SPS_TRY_RETURN(h.take(3 * n, &d.b));
    SPS_TRY_RETURN(h.take(1, &d.found));
    SPS_TRY_RETURN(h.take(1, &d.bad));
    SPS_TRY_RETURN(invert(&d));
    SPS_TRY_RETURN(each(ctx, n * n, store_dense{d.X, l->scale, n,
                                                (double *)(*Z_p)->val}));
    SPS_TRY_RETURN(fetch(ctx, 1, d.bad, &bad));
    *regular = bad == 0;
    return SPS_OK;
}
