/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_rode.cu - Y = alpha A X + beta Y after RoDe (Pang et al., "RoDe: A
 * Row Decomposition-based Approach for Sparse Matrix Multiplication on GPUs",
 * PPoPP 2024), with one owner for each row of Y.
 *
 * RoDe cuts each row into blocks of 32 entries and a residue, two kernels
 * that meet in Y by atomic additions after Y was cleared.  Here a row, residue
 * and all, is summed by one group of lanes and stored once; only rows much
 * longer than others are cut (kernels/formats/segments.h), and their parts are
 * added in order.  Kernels: spmm_rode.cuh.
 *
 * Where lengths are alike there is no plan at all.  Bytes: A, Y once, X as
 * often as L1 and L2 forget it. */
#include "segments.h"
#include "spmm_rode.cuh"

extern "C" const sps_kernel spsi_kernel_spmm_rode;

namespace {

/* One block fills a multiprocessor, so that its rows share one window of L1;
 * measured in doc/benchmarks.md, "H200: block operations and SpMM". */
constexpr int threads = 768, longest_run = 1536;

struct rode_plan {
    sps_segments_plan base;    /* no segments: every row is short */
    int64_t ld;                /* of partial sums */
    void *part;                /* slots times ld numbers */
    size_t part_bytes;
};

/* Rows of a run: long enough to meet neighbours, short enough that every
 * multiprocessor gets several. */
int64_t run_of(const sps_context *ctx, int64_t nrow)
{
    int64_t run = longest_run, least = threads / 32 * 8;

    while (run > least && ceil_div(nrow, run) < 4 * spsi_cuda_state(ctx)->sms)
        run /= 2;
    return run;
}

template <class V> rows_of<V> rows(const sps_csr_local *A)
{
    return { A->nrow, A->rowptr, A->rowptr32, A->col, (const V *)A->val };
}

template <class T> pieces_of<T> pieces(const rode_plan *r)
{
    const sps_segments *s = &r->base.parts;

    return { s->segment, s->count, (T *)r->part, r->ld };
}

template <int L, int C, int W, class T, class V>
sps_status run(const rode_plan *r, const blocks<T> &b, int width)
{
    const sps_segments *s = &r->base.parts;
    sps_context *ctx = r->base.super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    int64_t nrow = r->base.super.A->nrow, each = run_of(ctx, nrow);
    ranges_of ranges = { s->range, s->range ? s->ranges : ceil_div(nrow, each),
                         each, nrow, s->cut };
    int64_t grid = spsi_cuda_state(ctx)->sms;
    unsigned strips = (unsigned)ceil_div(b.k, width);
    rows_of<V> A = rows<V>(r->base.super.A);

    if (grid > ranges.count) grid = ranges.count;
    if (s->count > 0) {
        dim3 warps((unsigned)ceil_div(s->count, 8), strips);

        segments_kernel<L, C, W, T, V>
            <<<warps, 256, 0, stream>>>(A, b, pieces<T>(r), width);
        SPS_LAUNCHED(ctx);
    }
    rows_kernel<threads, L, C, W, T, V>
        <<<(unsigned)grid, threads, 0, stream>>>(A, b, ranges, width);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

template <class T>
sps_status join_rows(const rode_plan *r, const blocks<T> &b)
{
    const sps_segments *s = &r->base.parts;
    sps_context *ctx = r->base.super.ctx;
    int width = power_above(b.k < 32 ? b.k : 32);
    dim3 grid((unsigned)s->joins, (unsigned)ceil_div(b.k, width));

    if (s->joins == 0) return SPS_OK;
    joins_kernel<T><<<grid, 256, 0, spsi_cuda_state(ctx)->stream>>>(
        s->join, pieces<T>(r), b, width);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

/* Blocks that 16-byte accesses suit, else one number at a time. */
template <int L, int C, class T, class V>
sps_status align(const rode_plan *r, const blocks<T> &b, bool aligned,
                 int width)
{
    constexpr int W = 16 / sizeof(T);

    return aligned ? run<L, C, W, T, V>(r, b, width)
                   : run<L, C * W, 1, T, V>(r, b, width);
}

/* The smallest shape that holds a strip: L C lumps of 16 bytes. */
template <class T, class V>
sps_status shape(const rode_plan *r, const blocks<T> &b, bool aligned)
{
    constexpr int W = 16 / sizeof(T), widest = 64 * W;
    int lumps = (int)ceil_div(ceil_div(b.k, ceil_div(b.k, widest)), W);
    int width = lumps * W;

    if (lumps <= 2) return align<2, 1, T, V>(r, b, aligned, width);
    if (lumps <= 4) return align<4, 1, T, V>(r, b, aligned, width);
    if (lumps <= 6) return align<2, 3, T, V>(r, b, aligned, width);
    if (lumps <= 8) return align<4, 2, T, V>(r, b, aligned, width);
    if (lumps <= 12) return align<4, 3, T, V>(r, b, aligned, width);
    if (lumps <= 16) return align<8, 2, T, V>(r, b, aligned, width);
    if (lumps <= 24) return align<8, 3, T, V>(r, b, aligned, width);
    if (lumps <= 32) return align<16, 2, T, V>(r, b, aligned, width);
    if (lumps <= 48) return align<16, 3, T, V>(r, b, aligned, width);
    return align<32, 2, T, V>(r, b, aligned, width);
}

template <class T, class V>
sps_status product(const rode_plan *r, const sps_spmm_args *args)
{
    constexpr int64_t W = 16 / sizeof(T);
    blocks<T> b = blocks_of<T>(args);
    bool aligned = b.ldx % W == 0 && b.ldy % W == 0 &&
                   (uintptr_t)b.x % 16 == 0 && (uintptr_t)b.y % 16 == 0;

    SPS_TRY_RETURN((shape<T, V>(r, b, aligned)));
    return join_rows(r, b);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const rode_plan *r = (const rode_plan *)plan;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    if (args->Y->dtype == SPS_F32) return product<float, float>(r, args);
    return plan->A->dtype == SPS_F64 ? product<double, double>(r, args)
                                     : product<double, float>(r, args);
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    int64_t ranges = ceil_div(p->local->nrow, run_of(ctx, p->local->nrow));
    int32_t cut, most;
    sps_segments *s;
    rode_plan *r;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmm_rode, p,
                                 sizeof(rode_plan), plan_p));
    r = (rode_plan *)*plan_p;
    s = &r->base.parts;
    s->cut = INT32_MAX;
    r->ld = ceil_div(p->k, 4) * 4;
    if (!spsi_segments_pay(p->f, &cut, &most)) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_segments(ctx, p->local, cut, most, ranges, s,
                                      &r->base.super.bytes));
    if (s->slots > 0) {
        r->part_bytes = (size_t)(s->slots * r->ld) *
                        spsi_dtype_size(p->block);
        SPS_TRY_RETURN(spsi_cuda_alloc(ctx, r->part_bytes, &r->part));
        r->base.super.bytes += r->part_bytes;
    }
    snprintf(r->base.super.detail, sizeof r->base.super.detail,
             "rows beyond %d in %lld segments", (int)cut,
             (long long)s->count);
    return SPS_OK;
}

void destroy(sps_plan *plan)
{
    rode_plan *r = (rode_plan *)plan;

    spsi_cuda_segments_clear(plan->ctx, &r->base.parts);
    if (r->part) spsi_cuda_release(plan->ctx, r->part, r->part_bytes);
}

bool fits(const sps_problem *p, const char **why_not)
{
    (void)p;
    (void)why_not;
    return true;
}

/* As spmm.plain where rows are alike: without neighbours in L1 every entry
 * fetches its row of X from L2, about 1.3 times as fast as memory. */
double cost(const sps_problem *p)
{
    double number = (double)spsi_dtype_size(p->block);
    double entries = (double)p->f->nnz * (number * p->k + 12.0);
    double distinct = p->f->distinct64 > 0 ? p->f->distinct64 : 1.0;
    double gather = entries * (0.3 + 0.7 * distinct) / (1.3 * p->bandwidth);
    double memory = seconds(p, p->k < 8 ? 0.35 : 0.65);

    return memory > gather ? memory : gather;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_rode) = {
    .name = "spmm.rode",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = NULL,
    .destroy = destroy,
};
