/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_rows.cu - what is computed row by row for a level: the scaling to unit
 * diagonal, whether a matrix is symmetric, and products that may take too many
 * operations.
 *
 * Diagonal entries, and in the test of symmetry the mirror image of each entry,
 * are found by bisection.  The mirror image of (i, j) is first looked for where
 * it is in grids and meshes: at the position in row j that mirrors the position
 * of the entry in row i. */
#include "cuda/amg/coarse.cuh"

#include <cfloat>
#include <climits>

namespace {

/* The first row whose diagonal entry is not valid, and this entry; the number
 * of rows without a stored one. */
struct fault {
    unsigned long long row;
    double value;
    unsigned long long without;
};

struct set_scale {
    entries A;
    bool finest;
    double *scale;
    fault *bad;

    __device__ bool empty(int64_t i) const
    {
        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
            if (A.val[p] != 0) return false;
        return true;
    }
    __device__ void operator()(int64_t i) const
    {
        const int64_t p = diagonal_place(A, i);
        const double d = p < 0 ? 0 : A.val[p];
        const bool none = finest ? d == 0 && empty(i) : d <= SPS_COARSE_NOTHING;

        if (!none && !(d >= DBL_MIN && d <= DBL_MAX))
            atomicMin(&bad->row, (unsigned long long)i);
        if (p < 0) atomicAdd(&bad->without, 1ull);
        scale[i] = none ? 0 : 1 / sqrt(d);
    }
};

struct set_fault {
    set_scale s;

    __device__ void operator()(int64_t) const
    {
        const int64_t i = (int64_t)s.bad->row;

        if (s.bad->row == ULLONG_MAX) return;
        const int64_t p = diagonal_place(s.A, i);

        s.bad->value = p < 0 ? 0 : s.A.val[p];
    }
};

/* -------------------------------------------------------------- symmetry */

struct findings {
    unsigned long long broken;   /* not 0 if some row is not symmetric */
    unsigned long long worst;    /* bits of the largest difference */
};

/* Compares the entries of a row with their mirror images, by a group of
 * lanes. */
struct compare_mirror {
    entries A;
    double tol;
    findings *f;

    /* Returns the index of entry (i, j), or -1 if it is not stored.  The search
     * begins where the entry is in a grid, which follows from `before`, the
     * number of entries that precede (j, i) in row j. */
    __device__ int64_t find(int64_t i, int32_t j, int64_t before) const
    {
        int64_t lo = A.rowptr[i], hi = A.rowptr[i + 1];
        const int64_t end = hi;
        int64_t at = hi - 1 - before;

        for (int t = 0; t < 2 && at >= lo && at < hi; t++) {
            const int32_t c = A.col[at];

            if (c == j) return at;
            at += j - c;
        }
        while (lo < hi) {
            const int64_t mid = lo + (hi - lo) / 2;

            if (A.col[mid] < j) lo = mid + 1;
            else hi = mid;
        }
        return lo < end && A.col[lo] == j ? lo : -1;
    }
    __device__ double diagonal_scale(int64_t i, int32_t j) const
    {
        const int64_t p = diagonal_place(A, i), q = diagonal_place(A, j);

        if (p < 0 || q < 0) return 0;
        return sqrt(fabs(A.val[p])) * sqrt(fabs(A.val[q]));
    }
    __device__ bool differs(double gap, double a, double b, int64_t i,
                            int32_t j) const
    {
        return isinf(gap) ||
               (gap > 0 && !(gap <= tol * fmax(fabs(a), fabs(b))) &&
                !(gap <= tol * diagonal_scale(i, j)));
    }
    template <int G> __device__ void run(int64_t i, int lane) const
    {
        const int64_t first = i < 0 ? 0 : A.rowptr[i];
        const int64_t end = i < 0 ? 0 : A.rowptr[i + 1];
        double worst = 0;
        bool same = true;

        for (int64_t p = first + lane; p < end; p += G) {
            const int32_t j = A.col[p];
            const int64_t q = find(j, (int32_t)i, p - first);
            const double a = A.val[p], b = q >= 0 ? A.val[q] : 0;
            const double gap = a == b ? 0
                             : isnan(a - b) ? INFINITY : fabs(a - b);

            if (differs(gap, a, b, i, j)) same = false;
            worst = fmax(worst, gap);
        }
        same = __all_sync(all_lanes, same);
        worst = group_most<32>(worst);
        if (threadIdx.x % 32 > 0) return;
        if (!same) atomicAdd(&f->broken, 1ull);
        if (worst > 0)
            atomicMax(&f->worst,
                      (unsigned long long)__double_as_longlong(worst));
    }
};

/* ------------------------------------------------------------------ others */

struct set_inverse {
    const double *scale;
    double *d;
    int64_t ld;

    __device__ void operator()(int64_t i) const
    {
        d[i * ld] = scale[i] > 0 ? scale[i] * scale[i] : 1;
    }
};

struct scale_of {
    const double *scale;

    __device__ double operator()(int64_t i) const { return scale[i]; }
};

struct scale_inverse {
    const double *scale;

    __device__ double operator()(int64_t i) const
    {
        return scale[i] > 0 ? 1 / scale[i] : 0;
    }
};

struct row_length {
    const int32_t *__restrict__ col;
    const int64_t *__restrict__ rowptr;

    __device__ int64_t operator()(int64_t p) const
    {
        return rowptr[col[p] + 1] - rowptr[col[p]];
    }
};

} // namespace

sps_status spsi_coarse_scale(sps_coarse *l, bool finest, int64_t *bad,
                             double *value)
{
    sps_context *ctx = l->ctx;
    fault *found, host;
    holder h(ctx);

    SPS_TRY_RETURN(keep(l, l->A.nrow, &l->scale));
    SPS_TRY_RETURN(h.take(1, &found));
    SPS_TRY_RETURN(clear(ctx, 1, found, 0xff));
    SPS_TRY_RETURN(clear(ctx, 1, &found->without));
    const set_scale s = {entries_of(&l->A), finest, l->scale, found};

    SPS_TRY_RETURN(each(ctx, l->A.nrow, s));
    SPS_TRY_RETURN(each(ctx, 1, set_fault{s}));
    SPS_TRY_RETURN(download(ctx, 1, found, &host));
    *bad = host.row == ULLONG_MAX ? -1 : (int64_t)host.row;
    *value = host.value;
    l->diagonals = l->A.nrow - (int64_t)host.without;
    return SPS_OK;
}

sps_status spsi_coarse_symmetric(sps_coarse *l, double tol, bool *symmetric,
                                 double *difference)
{
    sps_context *ctx = l->ctx;
    findings *found, host;
    holder h(ctx);

    SPS_TRY_RETURN(h.take(1, &found));
    SPS_TRY_RETURN(clear(ctx, 1, found));
    SPS_TRY_RETURN(each_group(ctx, l->A.nrow, l->A.nnz / (l->A.nrow + 1), NULL,
                              compare_mirror{entries_of(&l->A), tol, found}));
    SPS_TRY_RETURN(download(ctx, 1, found, &host));
    *symmetric = host.broken == 0;
    memcpy(difference, &host.worst, sizeof *difference);
    return SPS_OK;
}

sps_status spsi_coarse_inverse(const sps_coarse *l, sps_block *d)
{
    return each(l->ctx, l->A.nrow, set_inverse{l->scale, numbers(d), d->ld});
}

/* most[0] and most[1] become the largest scale and the largest inverse of a
 * scale, by two reads of l->scale. */
sps_status spsi_coarse_spread(const sps_coarse *l, double most[2])
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->A.nrow;
    double *part, *found;
    holder h(ctx);

    SPS_TRY_RETURN(h.take(part_room(n), &part));
    SPS_TRY_RETURN(h.take(2, &found));
    SPS_TRY_RETURN(reduce<most_of>(ctx, n, scale_of{l->scale}, part, found));
    SPS_TRY_RETURN(reduce<most_of>(ctx, n, scale_inverse{l->scale}, part,
                                   found + 1));
    return download(ctx, 2, found, most);
}

/* Usually the longest row of B tells that there are not too many products, and
 * they need not be counted. */
sps_status spsi_coarse_multiply(sps_context *ctx, const sps_csr *A,
                                const sps_csr *B, int64_t most, sps_csr **C_p)
{
    unsigned long long *sum, products;
    holder h(ctx);

    SPS_TRY_RETURN(spsi_cuda_csr_multiply_within(ctx, A, B, most, C_p));
    if (*C_p) return SPS_OK;
    SPS_TRY_RETURN(h.take(1, &sum));
    SPS_TRY_RETURN(clear(ctx, 1, sum));
    SPS_TRY_RETURN(count(ctx, A->nnz, row_length{A->col, B->rowptr}, sum));
    SPS_TRY_RETURN(download(ctx, 1, sum, &products));
    return products > (unsigned long long)most
               ? SPS_OK : spsi_cuda_csr_multiply(ctx, A, B, C_p);
}
