/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tiles.cu - Y = alpha A X + beta Y by windows of 8 rows on fp64 tensor
 * cores: each distinct column of a window is gathered once for all its rows.
 * Format: kernels/formats/row_windows.h; lanes: spmm_tiles.cuh.
 *
 * Bytes: values once, out of a copy in the order of the tiles, 1.7 to 2.2 bytes
 * of words an entry instead of 4 of columns, Y once, X as often as L1 and L2
 * forget it. */
#include "ordered.cuh"
#include "segments.h"
#include "spmm_rode.cuh"
#include "spmm_tiles.cuh"
#include "window_plan.h"

extern "C" const sps_kernel spsi_kernel_spmm_tiles;

namespace {

constexpr sps_window_rule rule = { 2048, 10, 4 };
constexpr int32_t piece = 512;           /* entries of a segment */

/* Shapes, by measurement on 27-point 128^3 (doc/benchmarks.md): threads of a
 * block, of which a multiprocessor has one, and tiles loaded together. */
template <int Q>
constexpr int threads_of = Q == 0 ? 1024 : Q == 1 ? 640 : 512;
template <int Q> constexpr int together = Q < 3 ? SPSI_WINDOW_GROUP : 2;

template <int Q, access M, class I, class V>
sps_status launch(const sps_window_plan *p, const blocks<double> &b)
{
    constexpr int threads = threads_of<Q>, warps = threads / 32;
    const sps_row_windows *w = &p->windows;
    sps_context *ctx = p->super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    const int strips = (int)ceil_div(b.k, strip_of<Q>);
    const int64_t resident = max(spsi_cuda_state(ctx)->sms / strips, 1);
    const int64_t wanted = ceil_div(w->count, warps);
    const tiled<I, V> m = { matrix_of<I, V>(p->super.A), w->at, w->word,
                            (const V *)p->val, w->rest, (int)w->count,
                            (int)w->bare, p->rule.lead, p->rule.longest };

    if (w->count > 0) {
        tiles_kernel<threads, Q, together<Q>, M, I, V>
            <<<(unsigned)(min(resident, wanted) * strips), threads, 0,
               stream>>>(m, b, (uint32_t)(b.ldx * (int64_t)sizeof(double)),
                         strips);
        SPS_LAUNCHED(ctx);
    }
    if (w->bare > 0) {
        rest_kernel<Q, M, I, V>
            <<<dim3((unsigned)ceil_div(w->bare, 8), (unsigned)strips), 256, 0,
               stream>>>(m, b);
        SPS_LAUNCHED(ctx);
    }
    return SPS_OK;
}

template <access M, class I, class V>
sps_status shape(const sps_window_plan *p, const blocks<double> &b, int lumps)
{
    if (b.k <= 8) return launch<0, M, I, V>(p, b);
    if (lumps == 1) return launch<1, M, I, V>(p, b);
    if constexpr (M != SINGLES)
        if (lumps == 3) return launch<3, M, I, V>(p, b);
    return launch<2, M, I, V>(p, b);
}

/* Strips of at most 32 columns and of equal shape, or one of 48 in pairs. */
int strips_of(int k, bool pairs)
{
    return pairs && k <= 48 ? 1 : (int)ceil_div(k, 32);
}

template <class I, class V>
sps_status choose(const sps_window_plan *p, const blocks<double> &b, bool pairs)
{
    pairs = pairs && b.k % 2 == 0;
    int lumps = (int)ceil_div(ceil_div(b.k, strips_of(b.k, pairs)), 16);
    bool full = b.k % (b.k <= 8 ? 8 : 16 * lumps) == 0;

    if constexpr (sizeof(I) == 4 && sizeof(V) == 8)
        if (pairs && full) return shape<WHOLE, I, V>(p, b, lumps);
    return pairs ? shape<PAIRS, I, V>(p, b, lumps)
                 : shape<SINGLES, I, V>(p, b, lumps);
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

template <class V>
sps_status product(const sps_window_plan *p, const blocks<double> &b,
                   bool pairs)
{
    SPS_TRY_RETURN((pairs ? long_rows<true, V>(p, b)
                          : long_rows<false, V>(p, b)));
    return p->super.A->rowptr32 ? choose<int32_t, V>(p, b, pairs)
                                : choose<int64_t, V>(p, b, pairs);
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
    return plan->A->dtype == SPS_F64 ? product<double>(p, b, pairs)
                                     : product<float>(p, b, pairs);
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

sps_status refresh(sps_plan *plan)
{
    sps_window_plan *w = (sps_window_plan *)plan;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    return spsi_cuda_windows_values(plan->ctx, plan->A, w->rule.lead,
                                    &w->windows, w->val);
}

sps_status plan_values(sps_window_plan *w)
{
    w->val_bytes = (size_t)(w->windows.entries + 1) *
                   spsi_dtype_size(w->super.A->dtype);
    SPS_TRY_RETURN(spsi_cuda_alloc(w->super.ctx, w->val_bytes, &w->val));
    return refresh(&w->super);
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    sps_window_plan *w;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmm_tiles, p, sizeof *w,
                                 plan_p));
    w = (sps_window_plan *)*plan_p;
    w->rule = rule;
    w->rule.lead = spsi_window_lead(p->A);
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_windows_build(ctx, p->local, w->rule,
                                           &w->windows));
    SPS_TRY_RETURN(plan_values(w));
    w->super.bytes += spsi_window_list_bytes(&w->windows) +
                      spsi_window_word_bytes(&w->windows) +
                      spsi_window_rest_bytes(&w->windows) + w->val_bytes;
    SPS_TRY_RETURN(plan_long_rows(w, p));
    snprintf(w->super.detail, sizeof w->super.detail,
             "rows %d apart, %.1f entries a tile", (int)w->rule.lead,
             w->windows.tiles > 0
                 ? (double)w->windows.entries / (double)w->windows.tiles : 0.0);
    return SPS_OK;
}

void destroy(sps_plan *plan)
{
    sps_window_plan *w = (sps_window_plan *)plan;

    spsi_cuda_windows_clear(plan->ctx, &w->windows);
    if (w->val) spsi_cuda_release(plan->ctx, w->val, w->val_bytes);
    spsi_cuda_segments_clear(plan->ctx, &w->parts);
    if (w->part) spsi_cuda_release(plan->ctx, w->part, w->part_bytes);
}

/* Tiles of windows hold 4 / distinct8 entries; with few of them spmm.rode is
 * faster (7-point grids: 5), and so it may be on matrices too small to fill the
 * device, where this was not measured. */
bool fits(const sps_problem *p, const char **why_not)
{
    if (p->A->nrow >= 1 << 29) {
        *why_not = "2^29 rows or more";
        return false;
    }
    if (p->pinned) return true;
    *why_not = p->f->distinct8 > 0.5
        ? "rows of a window share too few columns" : "few windows of rows";
    return p->f->distinct8 <= 0.5 && p->f->nrow >= 100000;
}

/* For each strip values and words go by, then each slot takes its row of X, out
 * of L2 as a rule.  Between what 27-point 128^3 takes, whose pairs of lines
 * have a fifth less slots than 8 neighbours (0.8 of this), and elasticity 64^3
 * (1.2).  A window of few slots waits for its chain of loads; small matrices
 * have too few of them at once (luxembourg_laplacian: 12 slots a window, 19 us
 * with 16 columns). */
double cost(const sps_problem *p)
{
    static const double slot[] = { 8.5e-12, 15.5e-12, 30e-12, 38e-12 };
    static const double window[] = { 0.5e-9, 0.9e-9, 1.7e-9, 2.2e-9 };
    const sps_features *f = p->f;
    const double slots = (double)f->nnz * f->distinct8;
    const double A = (double)f->nnz *
                     (double)spsi_dtype_size(p->A->dtype) + 5 * slots;
    const bool pairs = p->k % 2 == 0;
    const int strips = strips_of(p->k, pairs);
    const int q = p->k <= 8 ? 0 : (int)ceil_div(ceil_div(p->k, strips), 16);
    const double part = p->k <= 4 ? 0.75 : p->k > 8 && !pairs ? 1.1 : 1.0;

    return strips * (A / p->bandwidth +
                     fmax(slots * slot[q] * part,
                          0.125 * (double)f->nrow * window[q])) + 8e-6;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tiles) = {
    .name = "spmm.tiles",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .fuses = true,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = refresh,
    .destroy = destroy,
};
