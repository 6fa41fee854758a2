/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_prolongator.cu - computes on the device the filtered matrix A_F, from
 * which weak couplings are removed, and the prolongator P = T - w D_F^-1 (A_F
 * T); solvers/amg/filter.c and prolongator.c have the formulas.
 *
 * A_F T is a product of sparse matrices, whose sums are chains of fused
 * multiply-adds; everything else rounds each product and each sum.  With one
 * near-null vector T has at most one entry in each row, and rows of P are
 * formed in registers. */
#include "cuda/amg/coarse.cuh"
#include "cuda/base/watch.h"

namespace {

struct strong_view {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col;
};

struct filter_view {
    entries A;
    strong_view strong;
    const double *__restrict__ near;
    int vectors;

    /* Returns b_k / b_i for the first near-null vector b, or 1 where b_i = 0 or
     * the quotient is not usable. */
    __device__ double ratio(int64_t i, int64_t k) const
    {
        const double r = near[k * vectors] / near[i * vectors];

        return isfinite(r) ? r : 1;
    }
};

struct count_filtered : filter_view {
    int32_t *count;

    __device__ void operator()(int64_t i) const
    {
        count[i] = (diagonal_place(A, i) >= 0) +
                   (int32_t)(strong.rowptr[i + 1] - strong.rowptr[i]);
    }
};

/* Computes a row of the filtered matrix by a group of lanes, fewer than the row
 * has entries: the lanes add weak couplings one after the other, and the groups
 * of a warp do so together. */
struct fill_filtered : filter_view {
    const int64_t *rowptr;
    int32_t *col;
    double *val;
    const double *scale;
    double *factor;           /* d_i^(-1/2) for the diagonal d of the filtered
                                 matrix, or 0 where the scale of the level is
                                 0 */

    /* Returns whether column k is among the strong columns number *at .. end -
     * 1 of the row, and advances *at past the columns below k. */
    __device__ bool is_strong(int64_t *at, int64_t end, int32_t k) const
    {
        int64_t high = end;

        while (*at < high) {
            const int64_t middle = *at + (high - *at) / 2;

            if (strong.col[middle] < k) *at = middle + 1;
            else high = middle;
        }
        return *at < end && strong.col[*at] == k;
    }
    /* Returns sum plus the x of all G lanes, which are added one after the
     * other; those that are 0 change nothing. */
    template <int G> __device__ double sum_on(double sum, double x) const
    {
        unsigned left = group_ballot<G>(x != 0);

        while (__any_sync(all_lanes, left != 0)) {
            const double y = __shfl_sync(all_lanes, x,
                                         left ? __ffs((int)left) - 1 : 0, G);

            if (left) sum += y;
            left &= left - 1;
        }
        return sum;
    }
    /* Completes a row: `weak` is the sum of its weak couplings, `own` is a_ii,
     * which is stored at `middle`. */
    __device__ void close(int64_t i, int64_t middle, double own,
                          double weak) const
    {
        double d = 0;

        if (middle >= 0)
            val[middle] = d = fmax(own + weak, SPS_COARSE_LEAST * own);
        factor[i] = scale[i] > 0 && d > 0 ? 1 / sqrt(d) : 0;
    }
    template <int G> __device__ void run(int64_t i, int lane) const
    {
        const int64_t first = i < 0 ? 0 : A.rowptr[i];
        const int64_t last = i < 0 ? 0 : A.rowptr[i + 1];
        const int64_t end = i < 0 ? 0 : strong.rowptr[i + 1];
        const int64_t to = i < 0 ? 0 : rowptr[i];
        const int64_t begin = i < 0 ? 0 : strong.rowptr[i];
        const int64_t longest = group_most<32>(last - first);
        const bool whole = i >= 0 && diagonal_place(A, i) >= 0;
        int64_t at = begin, middle = -1;
        double own = 0, weak = 0;

        for (int64_t base = first; base - first < longest; base += G) {
            const int64_t p = base + lane;
            const bool some = p < last;
            const int32_t k = some ? A.col[p] : -1;
            const double v = some ? A.val[p] : 0;
            const bool held = some && is_strong(&at, end, k);
            const int64_t place = to + (at - begin) + (whole && k > i);

            if (held) {
                col[place] = k;
                val[place] = v;
            }
            weak = sum_on<G>(weak, some && !held && k != i ? v * ratio(i, k)
                                                           : 0);
            if (some && k == i) {
                middle = to + (at - begin);
                own = v;
                col[middle] = k;
            }
        }
        const int who = group_most<G>(middle >= 0 ? lane : -1);

        if (i >= 0 && lane == (who < 0 ? 0 : who)) close(i, middle, own, weak);
    }
};

/* ------------------------------------------------------------------ smooth */

/* Computes the rows of P = T - w D_F^-1 (A_F T) in place of A_F T, whose
 * pattern includes that of T. */
struct combine {
    const double *factor;     /* d_i^(-1/2) for the diagonal d of the filtered
                                 matrix F */
    double omega;
    entries T;                /* from the row of the first one of P on */
    const int64_t *rowptr;
    const int32_t *col;
    double *val;

    template <int G> __device__ void run(int64_t i, int lane) const
    {
        if (i < 0) return;
        const double f = -omega * factor[i] * factor[i];
        const int64_t first = T.rowptr[i], end = T.rowptr[i + 1];

        for (int64_t p = rowptr[i] + lane; p < rowptr[i + 1]; p += G) {
            double x = val[p] * f;

            for (int64_t at = first; at < end; at++)
                if (T.col[at] == col[p]) x += T.val[at];
            val[p] = x;
        }
    }
};

/* Rows of A_F T for a T with at most one entry in each row: of a row in a group
 * of G lanes, lanes hold one column each.  The products of a column are added
 * in ascending order of the entries of A_F, as in a product of sparse
 * matrices. */
struct single_product {
    entries F, T;

    /* Sets *col and *sum of this lane; returns the number of columns, which is
     * more than G if they do not fit: lane t has the column that appears as
     * number t. */
    template <int G> __device__ int gather(int64_t i, int lane, int32_t *col,
                                           double *sum) const
    {
        const int64_t first = i < 0 ? 0 : F.rowptr[i];
        const int64_t end = i < 0 ? 0 : F.rowptr[i + 1];
        const int longest = __reduce_max_sync(all_lanes, (int)(end - first));
        int count = 0;

        *col = -1;
        *sum = -0.0;
        for (int base = 0; base < longest; base += G) {
            const int64_t p = first + base + lane;
            const int32_t k = p < end ? F.col[p] : -1;
            const int64_t at = k < 0 ? 0 : T.rowptr[k];
            const bool some = k >= 0 && at < T.rowptr[k + 1];
            const int32_t c = some ? T.col[at] : -1;
            const double a = some ? F.val[p] : 0, b = some ? T.val[at] : 0;

            for (int u = 0; u < min(longest - base, G); u++) {
                const int32_t next = __shfl_sync(all_lanes, c, u, G);
                const double x = __shfl_sync(all_lanes, a, u, G);
                const double y = __shfl_sync(all_lanes, b, u, G);
                const bool own = next >= 0 && *col == next;
                const bool held = group_ballot<G>(own) != 0;
                const bool fresh = next >= 0 && !held;

                if (own || (fresh && lane == count)) {
                    *sum = fma(x, y, *sum);
                    *col = next;
                }
                count += fresh;
            }
        }
        return count;
    }
};

struct count_single : single_product {
    int32_t *count, *over;    /* *over is set if a row does not fit */

    template <int G> __device__ void run(int64_t i, int lane) const
    {
        int32_t col;
        double sum;
        const int columns = gather<G>(i, lane, &col, &sum);

        if (i < 0 || lane > 0) return;
        count[i] = columns;
        if (columns > G) *over = 1;
    }
};

/* Computes rows of P. */
struct smooth_single : single_product {
    const double *factor;     /* as in `combine` */
    double omega;
    int64_t low;              /* row of T of the first one of P */
    const int64_t *rowptr;
    int32_t *to_col;
    double *to_val;

    template <int G> __device__ void run(int64_t i, int lane) const
    {
        int32_t col;
        double sum;
        const int columns = gather<G>(i, lane, &col, &sum);
        const int longest = __reduce_max_sync(all_lanes, columns);
        int64_t to = i < 0 ? 0 : rowptr[i];

        for (int u = 0; u < longest; u++) {
            const int32_t other = __shfl_sync(all_lanes, col, u, G);

            to += other >= 0 && other < col;
        }
        if (i < 0 || lane >= columns) return;
        const int64_t own = T.rowptr[low + i];
        double x = sum * (-omega * factor[i] * factor[i]);

        if (own < T.rowptr[low + i + 1] && T.col[own] == col) x += T.val[own];
        to_col[to] = col;
        to_val[to] = x;
    }
};

/* What P is made of. */
struct smoothing {
    const sps_csr *F, *T;
    const double *factor;     /* as in `combine` */
    double omega;
    int64_t low;              /* row of T of the first one of P */
};

/* Counts the entries of P, which has `count` in each row, and reads whether all
 * rows have fitted. */
sps_status open_single(sps_context *ctx, const smoothing &s,
                       const int32_t *count, sps_csr *P, bool *fits)
{
    const int64_t n = s.F->nrow;
    int64_t nnz;
    int32_t over;

    SPS_TRY_RETURN(open_offsets(ctx, count, n, s.T->ncol, P));
    const sps_cuda_piece found[] = {{P->rowptr + n, &nnz, sizeof nnz},
                                    {count + n, &over, sizeof over}};

    SPS_TRY_RETURN(spsi_cuda_read(ctx, found, 2));
    *fits = over == 0;
    return *fits ? open_entries(ctx, nnz, P) : SPS_OK;
}

/* Creates P for a T with at most one entry in each row, by groups of lanes for
 * rows of A_F of this mean length; *P_p stays NULL if a row of P has more
 * entries than a group has lanes. */
sps_status prolong_single(sps_context *ctx, const smoothing &s, int64_t mean,
                          sps_csr **P_p)
{
    const single_product t = {entries_of(s.F), entries_of(s.T)};
    const int64_t n = s.F->nrow;
    holder h(ctx);
    int32_t *count;
    sps_csr made = {};
    bool fits = true;
    sps_status st;

    SPS_TRY_RETURN(h.take(n + 1, &count));
    SPS_TRY_RETURN(clear(ctx, 1, count + n));
    SPS_TRY_RETURN(each_group(ctx, n, mean, NULL,
                              count_single{t, count, count + n}));
    st = open_single(ctx, s, count, &made, &fits);
    if (st == SPS_OK && fits)
        st = each_group(ctx, n, mean, NULL,
                        smooth_single{t, s.factor, s.omega, s.low, made.rowptr,
                                      made.col, (double *)made.val});
    if (st == SPS_OK && !fits) {
        spsi_cuda_release(ctx, made.rowptr, (size_t)(n + 1) * sizeof(int64_t));
        return SPS_OK;
    }
    return spsi_cuda_csr_finish(ctx, st, &made, P_p);
}

/* Creates P; `single`: T has at most one entry in each row. */
sps_status smooth(sps_context *ctx, const smoothing &s, bool single,
                  sps_csr **P_p)
{
    const int64_t mean = s.F->nnz / (s.F->nrow + 1);
    entries T = entries_of(s.T);
    sps_csr *P = NULL;
    sps_status st;

    if (single) SPS_TRY_RETURN(prolong_single(ctx, s, mean, P_p));
    if (single && !*P_p && mean < 32)
        SPS_TRY_RETURN(prolong_single(ctx, s, 32, P_p));
    if (*P_p) return SPS_OK;
    T.rowptr += s.low;
    SPS_TRY_RETURN(spsi_cuda_csr_multiply(ctx, s.F, s.T, &P));
    st = each_group(ctx, P->nrow, P->nnz / (P->nrow + 1), NULL,
                    combine{s.factor, s.omega, T, P->rowptr, P->col,
                            (double *)P->val});
    if (st != SPS_OK) sps_csr_destroy(ctx, &P);
    else *P_p = P;
    return st;
}

struct put_factors {
    const int32_t *__restrict__ row;
    const double *__restrict__ from;
    double *factor;

    __device__ void operator()(int64_t t) const { factor[row[t]] = from[t]; }
};

/* Copies factors from host memory to those of rows row[0], row[1], ... */
sps_status replace_factors(sps_context *ctx, const int32_t *row,
                           const double *from, int64_t rows, double *factor)
{
    holder h(ctx);
    int32_t *list;
    double *there;

    if (rows == 0) return SPS_OK;
    SPS_TRY_RETURN(h.take(rows, &list));
    SPS_TRY_RETURN(h.take(rows, &there));
    SPS_TRY_RETURN(ctx->backend->upload(ctx, list, row,
                                        (size_t)rows * sizeof *list));
    SPS_TRY_RETURN(ctx->backend->upload(ctx, there, from,
                                        (size_t)rows * sizeof *there));
    return each(ctx, rows, put_factors{list, there, factor});
}

} // namespace

sps_status spsi_coarse_filter(sps_coarse *l, bool *filtered)
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->A.nrow;
    const filter_view v = {entries_of(&l->A), {l->rowptr, l->col}, l->near,
                           l->vectors};
    holder h(ctx);
    int32_t *count;
    sps_csr made = {};
    sps_status st;

    sps_csr_destroy(ctx, &l->F);
    *filtered = l->node == NULL && l->edges + n != l->A.nnz;
    if (!*filtered) return SPS_OK;
    SPS_TRY_RETURN(h.take(n, &count));
    SPS_TRY_RETURN(keep(l, n, &l->factor));
    SPS_TRY_RETURN(each(ctx, n, count_filtered{v, count}));
    st = open_offsets(ctx, count, n, n, &made);
    if (st == SPS_OK) st = open_entries(ctx, l->edges + l->diagonals, &made);
    if (st == SPS_OK)
        st = each_group(ctx, n, l->A.nnz / (n + 1) / 4, NULL,
                        fill_filtered{v, made.rowptr, made.col,
                                      (double *)made.val, l->scale,
                                      l->factor});
    return spsi_cuda_csr_finish(ctx, st, &made, &l->F);
}

sps_status spsi_coarse_prolong(sps_coarse *l, bool smoothed, double omega,
                               sps_csr **P_p)
{
    const smoothing s = {l->F ? l->F : &l->A, l->T,
                         l->F ? l->factor : l->scale, omega, 0};

    *P_p = NULL;
    if (!smoothed)
        return sps_csr_wrap(l->ctx, l->T->nrow, l->T->ncol, l->T->nnz,
                            l->T->rowptr, l->T->col, l->T->val, SPS_F64,
                            SPS_CUDA, SPS_COPY, P_p);
    return smooth(l->ctx, s, l->vectors == 1, P_p);
}

sps_status spsi_coarse_smooth(sps_coarse *l, const sps_csr *F,
                              const sps_csr *all, int64_t low, double omega,
                              const int32_t *row, const double *factor,
                              int64_t rows, sps_csr **P_p)
{
    const int64_t n = F->nrow;
    holder h(l->ctx);
    smoothing s = {F, all, NULL, omega, low};
    double *mine;

    *P_p = NULL;
    SPS_TRY_RETURN(spsi_cuda_enter(l->ctx));
    SPS_TRY_RETURN(h.take(n + 1, &mine));
    SPS_TRY_RETURN(copy(l->ctx, n, (const double *)(l->F ? l->factor
                                                         : l->scale), mine));
    SPS_TRY_RETURN(replace_factors(l->ctx, row, factor, rows, mine));
    s.factor = mine;
    return smooth(l->ctx, s, l->vectors == 1, P_p);
}
