/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_share.cu - Y = alpha A X + beta Y with the entries divided into equal
 * shares (kernels/formats/shares.h): for matrices so small, or with row lengths
 * so different, that the longest sequential loop along a row would determine
 * the run time.
 *
 * A share needs three loads that depend on each other, a descriptor, entries
 * and rows of X, and no share is longer than another.  Small shares occupy the
 * whole GPU already with 10^5 entries.  The bits of the result depend on the
 * matrix, the width of the plan and the size of the GPU.  Kernel:
 * spmm_share.cuh.
 *
 * Bytes: A once for each slice of columns and 16 per share, Y once, a row of X
 * for each entry from L1 or L2. */
#include "cuda/plan/share_plan.h"
#include "cuda/sparse/spmm_share.cuh"

#include <stdio.h>

namespace {

typedef sps_share_plan share_plan;

/* How the columns are divided: L lanes with C pairs each, and shares of at
 * least `size` entries. */
struct shape {
    int lanes, pairs, size;
};

/* Returns the shape: as many columns at a time as the lanes can hold without
 * idle lanes, and the smallest suitable shares. */
shape shape_of(const sps_problem *p)
{
    const int k = p->k, rest = k % 64;
    shape s = { k <= 4 ? 2 : k <= 8 ? 4 : 8, k <= 16 ? 1 : 2, 8 };

    if (k > 32 && (rest == 0 || rest > 32)) s.lanes = 16;
    if (s.pairs > 1) s.size = 16;
    return s;
}

/* Returns the number of shares of `size` entries that are resident on the
 * device at once (a wave). */
int64_t one_wave(const share_plan *s, int size)
{
    return (int64_t)spsi_cuda_state(s->super.ctx)->sms *
           sm_threads(s->pairs, size) / ((int64_t)s->slices * s->lanes);
}

/* Chooses shares so small that all are resident at once, if possible: slightly
 * more than one wave of thread blocks costs more than shares of twice the size.
 * Few lanes cannot hold large shares.  *n_p: index of the chosen one among the
 * sizes counted. */
sps_status choose(share_plan *s, int size, int *n_p)
{
    const sps_csr_local *A = s->super.A;
    const int most = s->lanes == 2 ? 8 : s->lanes == 4 ? 16 : 32;
    sps_shares h[SPS_SHARE_SIZES] = {};
    int sizes = 0, n = 0;

    /* Skips sizes with more shares than one wave even if all were full. */
    while (size < most && A->nnz > size * one_wave(s, size)) size *= 2;
    for (; size <= most; size *= 2) {
        h[sizes].team = block_threads(s->pairs) / s->lanes;
        h[sizes++].size = size;
    }
    SPS_TRY_RETURN(spsi_cuda_shares_tally(s->super.ctx, A, sizes, h));
    while (n + 1 < sizes && h[n].count > one_wave(s, h[n].size)) n++;
    s->shares = h[*n_p = n];
    if (s->shares.spans <= SPS_SHARE_SPANS) return SPS_OK;
    return spsi_fail(s->super.ctx, SPS_EUNFIT, "spmm.share: A has %lld rows of "
                     "more than %lld entries, but at most 2^17 are "
                     "supported; take another kernel",
                     (long long)s->shares.spans,
                     (long long)s->shares.size * s->shares.team);
}

template <class T> dealt<T> dealt_of(const share_plan *s)
{
    const sps_shares *h = &s->shares;

    return { h->share, h->span, h->row, h->no_entries,
             (int)(h->count / h->team), (int)h->empty, s->slices, (T *)s->part,
             s->ld, s->arrived };
}

template <int L, int C, int SIZE, columns M, class I, class V, class T>
sps_status launch_typed(const share_plan *s, const matrix<I, V> &A,
                        const blocks<T> &b)
{
    constexpr int threads = block_threads(C);
    sps_context *ctx = s->super.ctx;
    const dealt<T> d = dealt_of<T>(s);
    const int64_t each = threads / L * empty_each;
    const dim3 grid((unsigned)(d.blocks + ceil_div(d.empty, each)),
                    (unsigned)ceil_div(b.k, 2 * L * C));

    share_kernel<L, C, SIZE, M, T>
        <<<grid, threads, 0, spsi_cuda_state(ctx)->stream>>>(A.col, A.val, d,
                                                             b);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

template <int L, int C, int SIZE, columns M>
sps_status launch(const sps_plan *plan, const sps_spmm_args *args)
{
    const share_plan *s = (const share_plan *)plan;

    return with_all_types(plan->A, args, [&](auto A, auto b) -> sps_status {
        return launch_typed<L, C, SIZE, M>(s, A, b);
    });
}

/* Launches the kernel for shares of SIZE entries, or, if X or Y is not aligned,
 * the kernel for MOST entries, the largest share that these lanes
 * process. */
template <int L, int C, int SIZE, int MOST>
sps_status by_columns(const sps_plan *plan, const sps_spmm_args *args)
{
    if (!paired(args->X) || !paired(args->Y))
        return launch<L, C, MOST, SINGLE>(plan, args);
    return args->Y->k % (2 * L * C) == 0 && !args->scalars &&
                   args->beta == 0 && !args->epilogue
        ? launch<L, C, SIZE, WHOLE>(plan, args)
        : launch<L, C, SIZE, PAIRS>(plan, args);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const share_plan *s = (const share_plan *)plan;

    switch (s->lanes * s->pairs * 100 + s->shares.size) {
    case 208: return by_columns<2, 1, 8, 8>(plan, args);
    case 408: return by_columns<4, 1, 8, 16>(plan, args);
    case 416: return by_columns<4, 1, 16, 16>(plan, args);
    case 808: return by_columns<8, 1, 8, 32>(plan, args);
    case 816: return by_columns<8, 1, 16, 32>(plan, args);
    case 832: return by_columns<8, 1, 32, 32>(plan, args);
    case 1616: return by_columns<8, 2, 16, 32>(plan, args);
    case 1632: return by_columns<8, 2, 32, 32>(plan, args);
    case 3216: return by_columns<16, 2, 16, 32>(plan, args);
    default: return by_columns<16, 2, 32, 32>(plan, args);
    }
}

/* Allocates all arrays, cleared to zero: then shares have no entries, and the
 * counters of arrived blocks are 0. */
sps_status place(share_plan *s)
{
    sps_plan *super = &s->super;
    sps_shares *h = &s->shares;

    SPS_TRY_RETURN(plan_take_zeros(super, h->count, &h->share));
    SPS_TRY_RETURN(plan_take_zeros(super, h->spans * s->slices, &s->arrived));
    SPS_TRY_RETURN(plan_take_zeros(super, h->spans, &h->span));
    SPS_TRY_RETURN(plan_take_zeros(super, h->empty ? h->rows : 0, &h->row));
    SPS_TRY_RETURN(plan_take_zeros(super, h->empty, &h->no_entries));
    return plan_take_zeros(super, h->parts * s->ld *
                               (int64_t)spsi_dtype_size(super->block),
                           (char **)&s->part);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    const shape use = shape_of(p);
    share_plan *s = (share_plan *)super;
    int n = 0;

    s->lanes = use.lanes;
    s->pairs = use.pairs;
    s->slices = (int)ceil_div(p->k, 2 * use.lanes * use.pairs);
    s->ld = (int64_t)s->slices * 2 * use.lanes * use.pairs;
    SPS_TRY_RETURN(choose(s, use.size, &n));
    SPS_TRY_RETURN(place(s));
    SPS_TRY_RETURN(spsi_cuda_shares_fill(super->ctx, p->local, n, &s->shares));
    snprintf(s->super.detail, sizeof s->super.detail,
             "%lld shares of %d entries", (long long)s->shares.count,
             s->shares.size);
    return SPS_OK;
}

/* Matrices of more than 2^22 entries are left to spmm.rode: on R-MAT graphs it
 * is 1 to 10 % slower than this kernel at 8, 16, 32, .. columns, but unlike
 * this one not abruptly slower at the widths just above these. */
bool fits(const sps_problem *p, const char **why_not)
{
    const sps_features *f = p->f;

    *why_not = "A has 2^31 entries or rows, or more";
    if (f->nnz >= INT32_MAX || f->nrow >= INT32_MAX) return false;
    *why_not = "other kernels are faster beyond 2^22 entries";
    return p->pinned || f->nnz <= 1 << 22;
}

/* Returns the seconds for planning, measured for 300 to 4 10^6 rows: sequential
 * loops along chunks of rows and over the chunks.  The predicted time of a
 * product includes a thousandth of it, since one or two solves perform about so
 * many products. */
constexpr double uses = 1000;

double planning(const sps_features *f)
{
    return 6e-5 + 2e-7 * sqrt((double)f->nrow) + 1e-11 * (double)f->nnz;
}

/* Predicted seconds: the times of memory, L2 and instructions are added, since
 * with one wave of short shares there is little overlap.  Data that stay in the
 * caches between products are read faster.  Constants fitted to the small
 * matrices of doc/benchmarks.md at 16 and 64 columns and to three large
 * systems: within 13 % (rms).  Slices that the columns do not fill are tested
 * column by column. */
double cost(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double nnz = (double)f->nnz, stream = spsi_spmm_floor(p);
    const sps_machine *m = p->machine;
    const double row = spsi_sectors(moved_row(p));
    const double out = fmin(fmax(stream / (4 * m->kept / 3) - 1, 0), 1);
    const shape s = shape_of(p);
    const int width = 2 * s.lanes * s.pairs;
    const double walked = (double)(ceil_div(p->k, width) * width);

    return planning(f) / uses + 2.3e-6 +
           stream / m->copy * (0.27 + 0.23 * out) +
           0.28 * nnz * row * f->distinct64 /
               spsi_gather_rate(m, footprint_of(p, row), row) +
           nnz * (3e-12 + 5e-13 * walked) * m->work *
               (p->k % width ? 1.5 : 1) +
           (p->k == 1 ? 6e-6 : 0);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_share) = {
    .name = "spmm.share",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .fuses = true,
    .size = sizeof(share_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<spmm>,
};
