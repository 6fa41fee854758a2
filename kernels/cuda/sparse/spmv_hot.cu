/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_hot.cu - y = alpha A x + beta y if few columns have most entries.
 *
 * In power-law graphs no neighbourhood of rows is small enough for L1: almost
 * every entry requests a sector of x from L2, which delivers 160 G of them per
 * second (machine.h), and this limits the product.  But the same few thousand
 * entries of x are requested again and again.  So the plan sorts the columns by
 * use (kernels/formats/column_order.h) and stores the columns of A renumbered.
 * A product first copies x into that order; then each multiprocessor loads the
 * first part of x, the most used columns (`near`), into its shared memory for
 * the whole kernel, and the other entries of x, packed by use, are cached in
 * the rest of L1.
 *
 * Rows of such a graph have 1 to 10^5 entries: therefore warps process equal
 * ranges of entries (spmv_hot.cuh).  No floating-point atomics; the order of
 * the sums is fixed by the plan.
 *
 * Bytes: A once plus one bit per entry, y three times, x twice more, the near
 * entries of x once per multiprocessor.  The plan holds 4 bytes per entry, 12
 * per row and 12 per column; it has no copy of the values, so that new values
 * cost nothing. */
#include "cuda/base/shared_limit.cuh"
#include "cuda/sparse/spmv_hot.cuh"

#include <stdio.h>

namespace {

/* Most bytes of shared memory used for entries of x; the rest of the on-chip
 * memory is L1. */
constexpr int most_shared = 192 << 10;

template <class T>
__global__ void __launch_bounds__(256)
pack_kernel(const T *__restrict__ x, int64_t ldx,
            const int32_t *__restrict__ column, int64_t n, T *packed)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) packed[i] = __ldg(x + column[i] * ldx);
}

template <class T> hot_rows<T> rows_of(const sps_hot_plan *h)
{
    hot_rows<T> r;

    r.nnz = h->rows.nnz;
    r.nrow = h->rows.nrow;
    r.filled = h->rows.filled;
    r.reach = h->reach;
    r.col = h->columns.col;
    r.heads = h->rows.heads;
    r.row = h->rows.row;
    r.first = h->first;
    r.packed = (const T *)h->packed;
    r.sum = (T *)h->sum;
    r.open = h->open;
    r.lead = (T *)h->lead;
    r.trail = (T *)h->trail;
    r.done = h->done;
    r.ranges = h->ranges;
    r.near = h->near;
    return r;
}

template <bool PAIRED, class V, class T>
sps_status launch(const sps_hot_plan *h, const V *val, const blocks<T> &b)
{
    sps_context *ctx = h->super.ctx;
    const sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t most = ceil_div(h->ranges, hot_warps), n = h->super.A->ncol;
    unsigned grid = (unsigned)(most < s->sms ? most : s->sms);
    size_t shared = (size_t)h->near * sizeof(T);
    auto kernel = hot_kernel<PAIRED, V, T>;

    SPS_TRY_RETURN(run_items(ctx, n, pack_kernel<T>, b.x, b.ldx,
                             h->columns.column, n, (T *)h->packed));
    SPS_TRY_RETURN(allow_shared(ctx, kernel, shared));
    kernel<<<grid, hot_threads, shared, s->stream>>>(rows_of<T>(h), val);
    SPS_LAUNCHED(ctx);
    put_kernel<<<(unsigned)ceil_div(h->rows.nrow, 256), 256, 0, s->stream>>>(
        rows_of<T>(h), epilogue_of(b));
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    return with_all_types(plan->A, args, [&](auto A, auto b) -> sps_status {
        const sps_hot_plan *h = (const sps_hot_plan *)plan;
        bool pairs = (uintptr_t)A.val % (2 * sizeof *A.val) == 0;

        return pairs ? launch<true>(h, A.val, b) : launch<false>(h, A.val, b);
    });
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "it multiplies single vectors only";
    if (p->k != 1) return false;
    *why_not = "A has 2^31 rows or more";
    return p->A->nrow <= INT32_MAX;
}

/* Predicted seconds, the larger of two times.  One is that of CSR-Adaptive,
 * except that entries in near columns request nothing from L2 and that there is
 * an additional pass over x; the other is that of the segmented scans, 3.9 ps
 * per entry and 24 ps per row on an H200 (machine.h). */
double cost(const sps_problem *p)
{
    const double size = (double)spsi_dtype_size(p->block);
    const double near = near_share(p, most_shared / size);
    const double pack = 2.0 * size * (double)p->f->ncol / p->machine->copy;
    const double come = stream_seconds(p, 0.85) + (1.0 - near) * scattered(p) +
                        pack;
    const double scans = 3.9e-12 * (double)p->f->nnz +
                         24e-12 * (double)p->f->nrow;

    return 8e-6 + fmax(come, scans * p->machine->work);
}

/* Returns the number of entries of x held in shared memory. */
int near_count(const sps_context *ctx, const sps_problem *p)
{
    const sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t limit = s->shared_limit < most_shared ? s->shared_limit
                                                  : most_shared;
    int64_t count = limit / (int64_t)spsi_dtype_size(p->block);

    return (int)(count < p->A->ncol ? count : p->A->ncol);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    sps_context *ctx = super->ctx;
    sps_hot_plan *h = (sps_hot_plan *)super;

    h->number = spsi_dtype_size(p->block);
    if (p->A->nnz == 0) return SPS_OK; /* a matrix without entries needs no
                                          plan, since products do not read it */
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    h->near = near_count(ctx, p);
    SPS_TRY_RETURN(spsi_cuda_column_plan_make(super, h->near, &h->columns));
    SPS_TRY_RETURN(spsi_cuda_hot_rows(
        h, hot_step, (int64_t)spsi_cuda_state(ctx)->sms * hot_warps));
    snprintf(h->super.detail, sizeof h->super.detail,
             "%d columns with %.0f %% of the entries", h->near,
             100.0 * (double)h->columns.held / (double)p->A->nnz);
    return SPS_OK;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_hot) = {
    .name = "spmv.hot",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .size = sizeof(sps_hot_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<spmm>,
};
