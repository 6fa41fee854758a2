/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tiles.cu - Y = alpha A X + beta Y by windows of 8 rows on fp64 tensor
 * cores: each distinct column of a window is gathered once for all its rows.
 * Format: kernels/formats/row_windows.h; lanes: spmm_tiles.cuh.
 *
 * Bytes: values once, 1.7 to 2.2 bytes of words an entry instead of 4 of
 * columns, Y once, X as often as L1 and L2 forget it.  Beside that a tile costs
 * L1 about 12 cycles at 16 columns: 4 that load X, 4 that transpose it, the
 * rest for columns and values. */
#include "ordered.cuh"
#include "segments.h"
#include "spmm_rode.cuh"
#include "spmm_tiles.cuh"
#include "window_plan.h"

extern "C" const sps_kernel spsi_kernel_spmm_tiles;

namespace {

constexpr sps_window_rule rule = { 2048, 5, 4 };
constexpr int32_t piece = 512;           /* entries of a segment */

/* Shapes, by measurement on 27-point 128^3 (doc/benchmarks.md). */
template <int Q> constexpr int threads_of = Q > 1 ? 512 : Q > 0 ? 640 : 768;
template <int Q> constexpr int unroll_of = Q == 0 ? 8 : Q > 2 ? 2 : 4;
constexpr int shared_most = 96 << 10;    /* the rest is L1's */

/* Values of half a window to hold: none where rows are too long for that, or
 * where copies of 16 bytes do not suit. */
template <class V> int held_by(const sps_window_plan *p, int warps)
{
    int64_t most = 4 * p->longest + 16 / (int64_t)sizeof(V);

    most = ceil_div(most * (int64_t)sizeof(V), 16) * 16;
    if ((uintptr_t)p->super.A->val % 16 || 4 * warps * most > shared_most)
        return 0;
    return (int)(most / (int64_t)sizeof(V));
}

/* Windows of a run: some steps of a block of threads, several runs for every
 * multiprocessor. */
int run_of(const sps_window_plan *p, int warps, int sms)
{
    int run = 2 * warps;

    while (run > warps && ceil_div(p->windows.count, run) < 4 * sms)
        run -= warps;
    return run;
}

template <int Q, bool PAIRED, bool FULL, bool HELD, class I, class V>
sps_status launch(const sps_window_plan *p, const blocks<double> &b)
{
    constexpr int threads = threads_of<Q>, warps = threads / 32;
    auto kernel = tiles_kernel<threads, Q, unroll_of<Q>, PAIRED, FULL, HELD, I,
                               V>;
    sps_context *ctx = p->super.ctx;
    int sms = spsi_cuda_state(ctx)->sms, run = run_of(p, warps, sms);
    int64_t runs = ceil_div(p->windows.count, run);
    int held = HELD ? held_by<V>(p, warps) : 0;
    size_t shared = (size_t)(4 * warps * held) * sizeof(V);
    tiled<I, V> m = { matrix_of<I, V>(p->super.A), p->windows.first,
                      p->windows.word, (int)p->windows.count, p->rule.lead,
                      run, p->rule.longest, (I)p->super.A->nnz, held };

    SPS_CUDA(ctx, cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_most));
    kernel<<<(unsigned)(runs < sms ? runs : sms), threads, shared,
             spsi_cuda_state(ctx)->stream>>>(
        m, b, (uint32_t)(b.ldx * (int64_t)sizeof(double)));
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

template <bool PAIRED, bool FULL, bool HELD, class I, class V>
sps_status shape(const sps_window_plan *p, const blocks<double> &b, int tiles)
{
    if (b.k <= 8) return launch<0, PAIRED, FULL, HELD, I, V>(p, b);
    if (tiles == 1) return launch<1, PAIRED, FULL, HELD, I, V>(p, b);
    if (tiles == 2) return launch<2, PAIRED, FULL, HELD, I, V>(p, b);
    if (tiles == 3) return launch<3, PAIRED, FULL, HELD, I, V>(p, b);
    return launch<4, PAIRED, FULL, HELD, I, V>(p, b);
}

/* As few strips of at most 64 columns as will do, of equal shape. */
template <bool PAIRED, class I, class V>
sps_status choose(const sps_window_plan *p, const blocks<double> &b)
{
    int strips = (int)ceil_div(b.k, 64);
    int tiles = (int)ceil_div(ceil_div(b.k, strips), 16);
    bool full = b.k % (b.k <= 8 ? 8 : 16 * tiles) == 0;

    if constexpr (PAIRED && sizeof(I) == 4) {
        bool held = held_by<V>(p, threads_of<0> / 32) > 0;

        if (held && full && sizeof(V) == 8)
            return shape<true, true, true, I, V>(p, b, tiles);
        if (held) return shape<true, false, true, I, V>(p, b, tiles);
    }
    return shape<PAIRED, false, false, I, V>(p, b, tiles);
}

/* Rows beyond rule.longest: pieces of them, then their sums in order. */
template <bool PAIRED, class V>
sps_status long_rows(const sps_window_plan *p, const blocks<double> &b)
{
    const sps_segments *s = &p->parts;
    const sps_csr_local *A = p->super.A;
    sps_context *ctx = p->super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    pieces_of<double> list = { s->segment, s->count, (double *)p->part, p->ld };
    dim3 grid((unsigned)ceil_div(s->count, 8), (unsigned)ceil_div(b.k, 16));
    int width = power_above(b.k < 32 ? b.k : 32);

    if (s->count == 0) return SPS_OK;
    segments_kernel<PAIRED ? 8 : 16, 1, PAIRED ? 2 : 1, double, V>
        <<<grid, 256, 0, stream>>>(A->col, (const V *)A->val,
                                   (int32_t)(A->ncol - 1), b, list, 16,
                                   (uint64_t)(b.ldx * sizeof(double)));
    SPS_LAUNCHED(ctx);
    if (s->joins == 0) return SPS_OK;
    joins_kernel<double><<<dim3((unsigned)s->joins,
                                (unsigned)ceil_div(b.k, width)),
                           256, 0, stream>>>(s->join, list, b, width);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

template <bool PAIRED, class V>
sps_status product(const sps_window_plan *p, const blocks<double> &b)
{
    SPS_TRY_RETURN((long_rows<PAIRED, V>(p, b)));
    return p->super.A->rowptr32 ? choose<PAIRED, int32_t, V>(p, b)
                                : choose<PAIRED, int64_t, V>(p, b);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_window_plan *p = (const sps_window_plan *)plan;
    blocks<double> b = blocks_of(args);
    bool pairs = paired(args->X) && paired(args->Y);

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (b.k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    if (!near_rows(args->X)) return far_product(plan, args);
    if (plan->A->dtype == SPS_F64)
        return pairs ? product<true, double>(p, b)
                     : product<false, double>(p, b);
    return pairs ? product<true, float>(p, b) : product<false, float>(p, b);
}

sps_status plan_long_rows(sps_window_plan *w, const sps_problem *p)
{
    sps_context *ctx = w->super.ctx;
    size_t bytes = 0;

    if (p->f->max_length <= rule.longest) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_segments(ctx, p->local, {rule.longest, piece, 1},
                                      1, &w->parts, &bytes));
    w->ld = ceil_div(p->k, 4) * 4;
    w->part_bytes = (size_t)(w->parts.slots * w->ld) * sizeof(double);
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, w->part_bytes, &w->part));
    w->super.bytes += bytes + w->part_bytes;
    return SPS_OK;
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    sps_window_plan *w;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmm_tiles, p, sizeof *w,
                                 plan_p));
    w = (sps_window_plan *)*plan_p;
    w->rule = rule;
    w->rule.lead = spsi_window_lead(p->A);
    w->longest = p->f->max_length;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_windows_build(ctx, p->local, w->rule,
                                           &w->windows));
    w->super.bytes += spsi_window_first_bytes(&w->windows) +
                      spsi_window_word_bytes(&w->windows);
    SPS_TRY_RETURN(plan_long_rows(w, p));
    snprintf(w->super.detail, sizeof w->super.detail,
             "rows %d apart, %.2f words an entry", (int)w->rule.lead,
             p->f->nnz > 0
                 ? (double)w->windows.words / (double)p->f->nnz : 0.0);
    return SPS_OK;
}

void destroy(sps_plan *plan)
{
    sps_window_plan *w = (sps_window_plan *)plan;

    spsi_cuda_windows_clear(plan->ctx, &w->windows);
    spsi_cuda_segments_clear(plan->ctx, &w->parts);
    if (w->part) spsi_cuda_release(plan->ctx, w->part, w->part_bytes);
}

/* Tiles of windows hold 4 / distinct8 entries; with few of them spmm.rode is
 * faster (7-point grids: 5), and so it may be on matrices too small to fill the
 * device, where this was not measured. */
bool fits(const sps_problem *p, const char **why_not)
{
    if (p->A->nrow > 1 << 30) {
        *why_not = "more than 2^30 rows";
        return false;
    }
    if (p->pinned) return true;
    *why_not = p->f->distinct8 > 0.5
        ? "rows of a window share too few columns" : "few windows of rows";
    return p->f->distinct8 <= 0.5 && p->f->nrow >= 100000;
}

/* The stream, and what a tile takes beside it by its columns; fitted to
 * 27-point 128^3, twice as much where values are not held (elasticity 64^3). */
double cost(const sps_problem *p)
{
    static const double tile[] = { 27e-12, 46e-12, 65e-12, 110e-12, 164e-12 };
    const sps_features *f = p->f;
    const double tiles = (double)f->nnz * f->distinct8 / 4;
    const bool held = (4 * f->max_length + 2) * 8 * 4 * 24 <= shared_most;
    const int strips = (int)ceil_div(p->k, 64);
    const int q = p->k <= 8 ? 0 : (int)ceil_div(ceil_div(p->k, strips), 16);
    const bool full = p->k % (q == 0 ? 8 : 16 * q) == 0;

    return spsi_spmm_floor(p) / p->bandwidth +
           tiles * strips * tile[q] * (held ? 1 : 2) * (full ? 1 : 1.25) + 5e-6;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tiles) = {
    .name = "spmm.tiles",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .roundoff = 0,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = NULL,
    .destroy = destroy,
};
