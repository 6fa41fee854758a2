/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tiles.cu - Y = alpha A X + beta Y by windows of 8 rows on fp64 tensor
 * cores: each distinct column of a window is gathered once for all its rows.
 * Format: kernels/formats/row_windows.h; assignment to lanes: spmm_tiles.cuh.
 *
 * Bytes: values once, from a copy in the order of the tiles; 1.7 to 2.2 bytes
 * of tile descriptors (`words`) per entry instead of 4 of columns; Y once; rows
 * of X again whenever L1 and L2 have evicted them.  An X of 16 columns of floats
 * needs no copy in doubles: 128 bytes a row less for X and 192 for the copy. */
#include "cuda/sparse/ordered.cuh"
#include "cuda/sparse/spmm_rode.cuh"
#include "cuda/sparse/spmm_tiles.cuh"

#include <stdio.h>

namespace {

constexpr sps_window_rule rule = { 2048, 10, 4 };
constexpr int32_t piece = 512;           /* number of entries of a segment of a
                                            long row */

/* Shapes, chosen by measurements on 27-point 128^3 (doc/log/spmm-tiles.md).
 * threads_of: threads of a block, where one block fills a multiprocessor;
 * together: number of tiles loaded together. */
template <int Q>
constexpr int threads_of = Q == 0 ? 1024 : Q == 1 ? 640 : 512;
template <int Q> constexpr int together = Q < 3 ? SPSI_WINDOW_GROUP : 2;

/* Arguments of a product besides the plan. */
struct job {
    const sps_window_plan *p;
    padded_blocks<double> b;
    bool pairs;
};

template <int Q, bool TAIL, access M, class I, class V, class X = double>
sps_status launch(const job &o)
{
    constexpr int threads = threads_of<Q>, warps = threads / 32;
    const sps_window_plan *p = o.p;
    const sps_row_windows *w = &p->windows;
    constexpr access pairs = M == WHOLE ? PAIRS : M;   /* the same code */
    auto kernel = tiles_kernel<threads, Q, TAIL, together<Q>, M, X, I, V>;
    sps_context *ctx = p->super.ctx;
    const int64_t resident = spsi_cuda_state(ctx)->sms;
    const int64_t wanted = ceil_div(w->count, warps);
    const tiled<I, V> m = { matrix_of<I, V>(p->super.A), w->at, w->word,
                            (const V *)p->val, w->rest, (int)w->count,
                            (int)w->bare, p->rule.lead, p->rule.longest };

    if (w->count > 0)
        SPS_TRY_RETURN(run_kernel(ctx, (unsigned)min(resident, wanted), threads,
                                  kernel, m, o.b,
                                  (uint32_t)(o.b.ldx * (int64_t)sizeof(X))));
    if (w->bare > 0)
        SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(w->bare, 8), 256,
                                  rest_kernel<sixteens_in<Q> + TAIL, pairs, X,
                                              I, V>, m, o.b));
    return SPS_OK;
}

template <access M, class I, class V> sps_status shape(const job &o)
{
    if (o.b.k <= 8) return launch<0, false, M, I, V>(o);
    if (o.b.k <= 16) return launch<1, false, M, I, V>(o);
    if constexpr (M == PAIRS)
        if (o.b.k > 32) return launch<3, false, M, I, V>(o);
    return launch<2, false, M, I, V>(o);
}

/* Launches the shape for 16, 32 or 48 columns, of which the last 16 may be
 * incomplete; for 1 to 4 additional columns the tail form costs less. */
template <class I, class V> sps_status choose(const job &o)
{
    const int k = o.b.k, rest = k % 16;

    if (!o.pairs) return shape<SINGLES, I, V>(o);
    if (k > 16 && rest >= 1 && rest <= 4)
        return k < 32 ? launch<1, true, WHOLE, I, V>(o)
                      : launch<2, true, WHOLE, I, V>(o);
    if ((rest == 0 && k < 48) || k == 8) return shape<WHOLE, I, V>(o);
    return o.b.padded || k < 8 || rest == 0 ? shape<PAIRS, I, V>(o)
                                          : shape<SINGLES, I, V>(o);
}

/* Returns the number of columns of the next slice when `left` are left.  Slices
 * are launched one after the other: each has the kernel shape for its width,
 * and the whole GPU. */
int pass_of(int left, bool pairs, bool padded)
{
    const bool wide = pairs && (left <= 36 || left == 48 ||
                                (padded && left < 48));

    return left <= 32 || wide ? left : 32;
}

template <class I, class V> sps_status passes(const job &o)
{
    job part = o;

    for (int c = 0; c < o.b.k; c += part.b.k) {
        part.b = o.b.columns(c, pass_of(o.b.k - c, o.pairs, o.b.padded));
        SPS_TRY_RETURN((choose<I, V>(part)));
    }
    return SPS_OK;
}

/* Computes the rows longer than rule.longest: sums their segments, then adds
 * the sums of each row in order. */
template <bool PAIRED, class V>
sps_status long_rows(const sps_window_plan *p, const padded_blocks<double> &b)
{
    const sps_segments *s = &p->parts;
    const sps_csr_local *A = p->super.A;
    sps_context *ctx = p->super.ctx;
    pieces_of<double> list = { s->segment, s->count, (double *)p->part, p->ld };
    dim3 grid((unsigned)ceil_div(s->count, 8), (unsigned)ceil_div(b.k, 16));
    int width = power_above(b.k < 32 ? b.k : 32);
    auto kernel = segments_kernel<PAIRED ? 8 : 16, 1, PAIRED ? 2 : 1, BARE,
                                  double, V, uint64_t>;

    if (s->count == 0) return SPS_OK;
    SPS_TRY_RETURN(run_kernel(ctx, grid, 256, kernel, A->col,
                              (const V *)A->val, (int32_t)(A->ncol - 1), b,
                              list, 16, (uint64_t)(b.ldx * sizeof(double))));
    if (s->joins == 0) return SPS_OK;
    return run_kernel(ctx,
                      dim3((unsigned)s->joins, (unsigned)ceil_div(b.k, width)),
                      256, joins_kernel<double>, s->join, list, b, width);
}

template <class V> sps_status product(const job &o)
{
    SPS_TRY_RETURN((o.pairs ? long_rows<true, V>(o.p, o.b)
                            : long_rows<false, V>(o.p, o.b)));
    return o.p->super.A->rowptr32 ? passes<int32_t, V>(o)
                                  : passes<int64_t, V>(o);
}

/* Products with 16 columns of floats. */
bool mixes(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_window_plan *w = (const sps_window_plan *)plan;

    return plan->A->dtype == SPS_F64 && plan->A->rowptr32 &&
           w->parts.count == 0 && args->X->dtype == SPS_F32 &&
           args->Y->dtype == SPS_F64 && args->Y->k == 16 && !args->epilogue &&
           !args->scalars && args->beta == 0 && args->X->ld % 2 == 0 &&
           (uintptr_t)args->X->data % 8 == 0 && paired(args->Y) &&
           near_rows(args->X);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const job o = { (const sps_window_plan *)plan,
                    with_padding(blocks_of(args), args),
                    paired(args->X) && paired(args->Y) };

    if (args->X->dtype != args->Y->dtype)
        return launch<1, false, WHOLE, int32_t, double, float>(o);
    return plan->A->dtype == SPS_F64 ? product<double>(o) : product<float>(o);
}

sps_status plan_long_rows(sps_window_plan *w, const sps_problem *p)
{
    if (p->f->max_length <= rule.longest) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_segments(&w->super, {rule.longest, piece, 1}, 1,
                                      &w->parts));
    w->ld = ceil_div(p->k, 4) * 4;
    SPS_TRY_RETURN(spsi_plan_take(&w->super, (size_t)(w->parts.slots * w->ld) *
                                                 sizeof(double), &w->part));
    return SPS_OK;
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    sps_window_plan *w = (sps_window_plan *)super;

    SPS_TRY_RETURN(window_plan_fill(w, p, rule));
    SPS_TRY_RETURN(plan_long_rows(w, p));
    snprintf(w->super.detail, sizeof w->super.detail,
             "rows %d apart, %.1f entries a tile", (int)w->rule.lead,
             w->windows.tiles > 0
                 ? (double)w->windows.entries / (double)w->windows.tiles : 0.0);
    return SPS_OK;
}

bool fits(const sps_problem *p, const char **why_not)
{
    if (p->A->nrow >= 1 << 29) {
        *why_not = "A has 2^29 rows or more";
        return false;
    }
    return windows_pay(p, why_not);
}

/* Returns the predicted seconds of a pass of k columns.  It streams values and
 * descriptors; then each slot loads its row of X, usually from L2, and each
 * entry its value, a third of that cost: fitted to 27-point 80^3 and 128^3 and
 * elasticity 64^3 (where 48 columns take a quarter more).  A window of few
 * slots is bound by the latency of its dependent loads; small matrices have too
 * few windows resident to hide it (luxembourg_laplacian: 12 slots per window,
 * 19 us with 16 columns). */
double pass_cost(const sps_problem *p, int k)
{
    static const struct {
        int k;
        double slot, window;
    } shape[] = { { 4, 3e-12, 0.5e-9 },     { 8, 4e-12, 0.5e-9 },
                  { 16, 6.2e-12, 0.9e-9 },  { 20, 10.5e-12, 1.3e-9 },
                  { 32, 11.3e-12, 1.7e-9 }, { 36, 16e-12, 2.0e-9 },
                  { 48, 19.5e-12, 2.2e-9 } };
    const sps_features *f = p->f;
    const double slots = (double)f->nnz * f->distinct8;
    const double A = (double)f->nnz *
                     (double)spsi_dtype_size(p->A->dtype) + 5 * slots;
    int s = 0;

    while (shape[s].k < k) s++;
    return A / p->machine->copy +
           p->machine->work * fmax((slots + (double)f->nnz / 3) * shape[s].slot,
                                   0.125 * (double)f->nrow * shape[s].window);
}

/* Predicted seconds for blocks that own their memory, whose rows are
 * aligned. */
double cost(const sps_problem *p)
{
    double sum = 8e-6;

    for (int c = 0, k; c < p->k; c += k) {
        k = pass_of(p->k - c, true, true);
        sum += pass_cost(p, k);
    }
    return sum;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tiles) = {
    .name = "spmm.tiles",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .fuses = true,
    .size = sizeof(sps_window_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<near_only<spmm>>,
    .mixes = mixes,
    .refresh = window_plan_refresh,
};
