/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_prolongator.cu - the filtered matrix, and P = T - w D_F^-1 (A_F T), on the
 * device; solvers/amg/filter.c and prolongator.c have the formulas.
 *
 * A_F T is a product of sparse matrices, whose sums are chains of fused
 * multiply-adds; all else rounds each product and sum. */
#include "cuda/amg/coarse.cuh"

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

    /* b_k / b_i, 1 where that is not possible. */
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
        int own = 0;

        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
            own |= A.col[p] == i;
        count[i] = own + (int32_t)(strong.rowptr[i + 1] - strong.rowptr[i]);
    }
};

struct fill_filtered : filter_view {
    const int64_t *rowptr;
    int32_t *col;
    double *val;
    const double *scale;
    double *factor;           /* d_i^(-1/2), 0 where the level's scale is */

    __device__ void operator()(int64_t i) const
    {
        const int64_t last = strong.rowptr[i + 1];
        int64_t to = rowptr[i], at = strong.rowptr[i], middle = -1;
        double diagonal = 0, own = 0;

        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++) {
            const int32_t k = A.col[p];
            const bool is_strong = at < last && strong.col[at] == k;
            const double v = A.val[p];

            if (k == i) middle = to;
            else if (!is_strong) diagonal += v * ratio(i, k);
            if (k == i) own = v;
            if (k != i && !is_strong) continue;
            at += is_strong;
            col[to] = k;
            val[to++] = v;
        }
        if (middle >= 0)
            val[middle] = fmax(own + diagonal, SPS_COARSE_LEAST * own);
        own = middle >= 0 ? val[middle] : 0;
        factor[i] = scale[i] > 0 && own > 0 ? 1 / sqrt(own) : 0;
    }
};

/* ------------------------------------------------------------------ smooth */

/* Rows of P = T - w D_F^-1 (A_F T), in place of A_F T; the pattern of T is
 * within that of A_F T. */
struct combine {
    const double *factor;     /* d_i^(-1/2) of F */
    double omega;
    entries T;
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
    st = open_csr(ctx, count, n, n, &made);
    if (st == SPS_OK)
        st = each(ctx, n, fill_filtered{v, made.rowptr, made.col,
                                        (double *)made.val, l->scale,
                                        l->factor});
    return spsi_cuda_csr_finish(ctx, st, &made, &l->F);
}

sps_status spsi_coarse_prolong(sps_coarse *l, bool smooth, double omega,
                               sps_csr **P_p)
{
    const sps_csr *F = l->F ? l->F : &l->A;
    sps_csr *P = NULL;
    sps_status st;

    if (!smooth)
        return sps_csr_wrap(l->ctx, l->T->nrow, l->T->ncol, l->T->nnz,
                            l->T->rowptr, l->T->col, l->T->val, SPS_F64,
                            SPS_CUDA, SPS_COPY, P_p);
    SPS_TRY_RETURN(spsi_cuda_csr_multiply(l->ctx, F, l->T, &P));
    st = each_group(l->ctx, l->A.nrow, P->nnz / (l->A.nrow + 1), NULL,
                    combine{l->F ? l->factor : l->scale, omega,
                            entries_of(l->T), P->rowptr, P->col,
                            (double *)P->val});
    if (st != SPS_OK) sps_csr_destroy(l->ctx, &P);
    else *P_p = P;
    return st;
}
