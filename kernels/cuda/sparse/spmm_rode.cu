/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_rode.cu - Y = alpha A X + beta Y after RoDe (Pang et al., "RoDe: A Row
 * Decomposition-based Approach for Sparse Matrix Multiplication on GPUs", PPoPP
 * 2024); each row of Y is written by one group of lanes.
 *
 * RoDe divides each row into blocks of 32 entries and a residue, processed by
 * two kernels that clear Y and then add to it by atomics.  Here a whole row is
 * summed by one group of lanes and stored once; only rows much longer than
 * others are divided into segments (kernels/formats/segments.h), whose partial
 * sums are added in order.  Rows with the same columns, such as those of the
 * unknowns of one node, are summed together: each row of X is loaded once for
 * two or three of them.  Kernels: spmm_rode.cuh.
 *
 * If row lengths are similar and the columns of neighbouring rows differ, no
 * lists are needed, and products with 16 columns of floats are computed by
 * spmm_rode_short.cu.  Bytes: A and Y once, rows of X again whenever L1 and
 * L2 have evicted them. */
#include <cmath>
#include <stdio.h>
#include <type_traits>

#include "cuda/plan/segments_device.h"
#include "cuda/sparse/spmm_rode.cuh"
#include "cuda/sparse/spmm_rode_short.h"

namespace {

/* One thread block fills a multiprocessor, so that all its rows share the L1
 * cache; fewer threads if each processes several rows.  Neighbouring blocks
 * process neighbouring runs of consecutive rows: long enough that rows share X
 * in L1, short enough that the rows of X in use on the whole device stay in L2;
 * measured in doc/log/spmm-rode.md. */
constexpr int threads = 768, group_threads = 512;
constexpr int run_bytes = 48 << 10;
/* Limits of a pass.  The width of a pass decides how many lanes share a
 * segment, and so the order of its sums; so these limits are constants and do
 * not depend on the L2 of the device. */
constexpr double kept_in_l2 = 18e6; /* bytes of X that stay in L2 beside the
                                       streamed data */
constexpr double wide_window = 6e6; /* bytes of rows of X, each of three cache
                                       lines, that stay in L2 until they are
                                       used again */
constexpr double hopeless = 1e8;    /* a window of this size in bytes does
                                       not stay in L2, however narrow the
                                       pass */

struct rode_plan {
    sps_segments_plan base;    /* the segments of long rows; none if every row
                                  is short */
    int64_t bandwidth;
    int64_t ld;                /* leading dimension of the partial sums */
    void *part;                /* partial sums of the segments, slots x ld
                                  elements */
    bool lists;                /* some rows are divided, or in groups */
};

/* Returns the number of rows of a run: about run_bytes of X, a multiple of the
 * rows that a thread block processes at a time, and several runs per
 * multiprocessor. bytes: bytes of a row of the block. */
int run_of(const sps_context *ctx, int64_t nrow, size_t bytes)
{
    int step = threads / (bytes <= 192 ? 4 : bytes <= 384 ? 8 : 16);
    int run = (int)(run_bytes / (bytes < 64 ? 64 : bytes)) / step * step;

    if (run < step) run = bytes > 768 ? 144 : step;
    while (run > step && ceil_div(nrow, run) < 4 * spsi_cuda_state(ctx)->sms)
        run -= step;
    return run;
}

/* Returns the number of groups of rows per run: as many as a thread block
 * processes at a time, or four times as many if rows of the block have more
 * than 48 vectors. */
int run_of_groups(int vectors)
{
    int lanes = vectors <= 8 ? 4 : vectors <= 24 ? 8 : 16;

    return group_threads / lanes * (vectors > 48 ? 2 : 1);
}

template <class T> pieces_of<T> pieces(const rode_plan *r)
{
    const sps_segments *s = &r->base.parts;

    return { s->segment, s->count, (T *)r->part, r->ld };
}

/* Returns the index of the last row of X; after it there may be no memory. */
int32_t last_row(const rode_plan *r)
{
    return (int32_t)(r->base.super.A->ncol - 1);
}

/* Arguments of a launch besides the plan. */
template <class T> struct job {
    const rode_plan *r;
    padded_blocks<T> b;
    int width;                 /* number of columns of a slice */
    ranges_of ranges;
};

template <int L, int C, int W, form F, class T, class V, class S>
sps_status run_segments(const job<T> &o, const int32_t *col, const V *val,
                        S stride)
{
    sps_context *ctx = o.r->base.super.ctx;
    int64_t count = o.r->base.parts.count;
    dim3 grid((unsigned)ceil_div(count, 8), (unsigned)ceil_div(o.b.k, o.width));

    if (count == 0) return SPS_OK;
    return run_kernel(ctx, grid, 256, segments_kernel<L, C, W, F, T, V, S>, col,
                      val, last_row(o.r), o.b, pieces<T>(o.r), o.width, stride);
}

/* Returns the number of threads of a block: less than `most` if that would
 * leave multiprocessors idle.  Without a list of ranges, a run is then as many
 * rows as a block processes at a time. */
int block_of(ranges_of *ranges, int64_t items, int lanes, int most, int sms)
{
    int block = most;

    while (block > 96 && items * lanes < (int64_t)block * 2 * sms) block /= 2;
    if (block < most && !ranges->first) {
        ranges->run = block / lanes;
        ranges->count = (int)ceil_div(items, ranges->run);
    }
    return block;
}

/* Launches the kernels: R rows of A per group of L lanes. */
template <int L, int C, int W, int R, form F, class T, class I, class V>
sps_status launch(const job<T> &o, const matrix<I, V> &A)
{
    constexpr int batch = L > 8 ? L : 8, THREADS = R > 1 ? group_threads
                                                         : threads;
    constexpr int U = depth<C, W> < batch ? depth<C, W> : batch;
    sps_context *ctx = o.r->base.super.ctx;
    int sms = spsi_cuda_state(ctx)->sms;
    ranges_of ranges = o.ranges;
    int block = block_of(&ranges, A.nrow / R, L, THREADS, sms);
    int grid = THREADS / block * sms;
    constexpr form some = F == FULL ? PADDED : F; /* in form FULL the groups
                                                     hold their vectors in
                                                     different orders, but here
                                                     their sums are added */
    std::conditional_t<W == 1, uint64_t, uint32_t> stride;

    stride = (decltype(stride))(o.b.ldx * (int64_t)sizeof(T));
    /* For segments, 8 lanes with one vector each (128 contiguous bytes) are
     * faster. */
    if (L == 4 && C == 2 && W > 1 && o.width > 6 * W)
        SPS_TRY_RETURN((run_segments<8, 1, W, some>(o, A.col, A.val,
                                                    stride)));
    else
        SPS_TRY_RETURN((run_segments<L, C, W, some>(o, A.col, A.val,
                                                    stride)));
    if (grid > ranges.count) grid = ranges.count;
    if (grid == 0) return SPS_OK;
    return run_kernel(ctx, (unsigned)grid, (unsigned)block,
                      rows_kernel<THREADS, L, C, W, F, U, R, T, I, V,
                                  decltype(stride)>,
                      A, last_row(o.r), o.b, ranges, o.width, stride);
}

/* Chooses whether loads test columns.  No tests are needed if the slices fill
 * their shape, or if the memory after the last column may be read.  Shapes of
 * three vectors with 8 and more lanes are faster with tests than with three
 * addresses (R-MAT, 33 columns: 1.46 ms instead of 1.52). */
template <int L, int C, int W, int R, class T, class I, class V>
sps_status run(const job<T> &o, const matrix<I, V> &A)
{
    if constexpr (sizeof(I) == 4 && W > 1) {
        if constexpr (C == 2)
            if (o.width == L * C * W && o.b.k % o.width == 0)
                return launch<L, C, W, R, FULL>(o, A);
        if constexpr (C < 3 || L == 4)
            if (o.b.padded || o.b.k % W == 0)
                return launch<L, C, W, R, PADDED>(o, A);
    }
    return launch<L, C, W, R, BARE>(o, A);
}

template <class T>
sps_status join_rows(const rode_plan *r, const blocks<T> &b)
{
    const sps_segments *s = &r->base.parts;
    sps_context *ctx = r->base.super.ctx;
    int width = power_above(b.k < 32 ? b.k : 32);
    dim3 grid((unsigned)s->joins, (unsigned)ceil_div(b.k, width));

    if (s->joins == 0) return SPS_OK;
    return run_kernel(ctx, grid, 256, joins_kernel<T>, s->join, pieces<T>(r), b,
                      width);
}

/* Launches kernels that load one number at a time, for blocks that are not
 * 16-byte aligned: more lanes per row, so that their loads are equally
 * contiguous. */
template <class T, class I, class V>
sps_status run_any(const job<T> &o, const matrix<I, V> &A)
{
    constexpr int most = 1024 / sizeof(T); /* largest number of columns of a
                                              slice */

    if constexpr (sizeof(I) == 4) {
        if (o.width <= 4) return run<4, 1, 1, 1>(o, A);
        if (o.width <= 8) return run<8, 1, 1, 1>(o, A);
    }
    if (o.width <= 16) return run<8, 2, 1, 1>(o, A);
    if constexpr (sizeof(I) == 4)
        if (o.width <= 32) return run<16, 2, 1, 1>(o, A);
    if (o.width <= 64) return run<32, 2, 1, 1>(o, A);
    return run<32, most / 32, 1, 1>(o, A);
}

/* Launches the smallest kernel shape that holds the vectors of a slice; there
 * are more shapes for matrices below 2^31 entries. */
template <class T, class I, class V>
sps_status run_aligned(const job<T> &o, const matrix<I, V> &A, int vectors)
{
    constexpr int W = 16 / sizeof(T);

    if constexpr (sizeof(I) == 4) {
        if (vectors <= 2) return run<2, 1, W, 1>(o, A);
        if (vectors > 8 && vectors <= 12) return run<4, 3, W, 1>(o, A);
        if (vectors > 16 && vectors <= 24) return run<8, 3, W, 1>(o, A);
        if (vectors > 32 && vectors <= 48) return run<16, 3, W, 1>(o, A);
    }
    if (vectors <= 4) return run<4, 1, W, 1>(o, A);
    if (vectors <= 8) return run<4, 2, W, 1>(o, A);
    if (vectors <= 16) return run<8, 2, W, 1>(o, A);
    if (vectors <= 32) return run<16, 2, W, 1>(o, A);
    return run<32, 2, W, 1>(o, A);
}

/* Launches the kernels for groups of R rows with the same columns. */
template <int R, class T, class V>
sps_status run_groups(const job<T> &o, const matrix<int32_t, V> &A, int vectors)
{
    constexpr int W = 16 / sizeof(T);

    if (vectors <= 4) return run<4, 1, W, R>(o, A);
    if (vectors <= 8) return run<4, 2, W, R>(o, A);
    if (vectors <= 16) return run<8, 2, W, R>(o, A);
    if (vectors <= 24) return run<8, 3, W, R>(o, A);
    if (vectors <= 32) return run<16, 2, W, R>(o, A);
    if (vectors <= 48) return run<16, 3, W, R>(o, A);
    return run<32, 2, W, R>(o, A);
}

/* Returns the number of vectors per slice if k columns are divided into as few
 * slices as possible, of at most 64 vectors, equal except for the last.  The
 * last slice, too, must fill the L (C - 1) vectors that its shape does not
 * test: half the power of two at or above the number of vectors. */
int vectors_of(int k, int W)
{
    for (int slices = (int)ceil_div(k, 64 * W);; slices++) {
        int vectors = (int)ceil_div(ceil_div(k, slices), W);
        int last = k - (slices - 1) * vectors * W;
        int whole = vectors > 4 ? power_above(vectors) / 2 : 0;

        if (slices == 1 || (last > 0 && last >= whole * W)) return vectors;
    }
}

/* Returns the ranges over `items` rows or groups of rows, `each` in a run if
 * there is no list. */
ranges_of ranges_for(const rode_plan *r, int64_t items, int each)
{
    const sps_segments *s = &r->base.parts;
    bool all = s->odd == 0 &&
               s->groups * s->limits.group == r->base.super.A->nrow;

    return { s->range, all ? NULL : s->alike,
             s->range ? (int)s->ranges : (int)ceil_div(items, each), each,
             s->limits.group, s->limits.cut };
}

/* Chooses the ranges and the kind of kernel, and launches it.  Groups of rows
 * need 32-bit offsets I, and values in the type of the blocks. */
template <class I, class T, class V>
sps_status choose(job<T> &o, const matrix<I, V> &A, bool aligned, int vectors)
{
    const rode_plan *r = o.r;
    int group = r->base.parts.limits.group;
    int each = run_of(r->base.super.ctx, A.nrow, o.b.k * sizeof(T));

    if constexpr (sizeof(I) == 4 && sizeof(T) == sizeof(V))
        if (aligned && group > 1) {
            each = run_of_groups(vectors);
            o.ranges = ranges_for(r, A.nrow / group, each);
            return group == 2 ? run_groups<2>(o, A, vectors)
                              : run_groups<3>(o, A, vectors);
        }
    o.ranges = ranges_for(r, A.nrow, each);
    return aligned ? run_aligned(o, A, vectors) : run_any(o, A);
}

/* Returns the number of columns of one pass over A.  Rows of X within a
 * bandwidth of the current row are used again.  If a narrower pass keeps them
 * in L2, and A is small compared with X, reading A again costs less (7-point
 * 160^3, where 32 columns stay in L2: 57 columns take 1.65 ms in two passes, 56
 * take 1.92 in one). */
int pass_of(const rode_plan *r, int k, size_t size)
{
    const sps_csr_local *A = r->base.super.A;
    double window = 2.0 * (double)r->bandwidth * (double)size;
    int fit = window > 0 ? (int)fmin(kept_in_l2 / window, 4096.0) / 32 * 32
                         : k;
    int passes = fit >= 32 && k > fit ? (k + fit / 2 - 1) / fit : 1;
    double again = 12.0 * (double)A->nnz * (passes - 1);

    if (passes == 1 || again > 0.35 * (double)A->nrow * k * (double)size)
        return k;
    return (int)ceil_div(ceil_div(k, passes), 8) * 8;
}

/* Returns the columns of the next pass when `left` are left, at most `most`: up
 * to 512 bytes of a row of X, which use all lanes.  A pass of 256 to 384 bytes
 * leaves lanes idle; it is divided if L2 is the limit, which is the case if
 * rows of X have three cache lines (ld) and so many other rows are used before
 * a row is used again that they do not stay in L2 (wide_window).  33 to 40
 * columns of doubles are then divided after 16, others after 32, since a narrow
 * pass requests as many rows from L2 as a wide one (7-point 160^3: 1 column
 * after 32 others needs 0.42 ms; on their own 16 need 0.44, 17 0.63, 32 0.80).
 * One pass is faster with shorter rows (33 columns with ld 36: 1.08 ms instead
 * of 1.21); if rows of A are processed in groups, where A is a larger part of
 * the traffic; and if columns are scattered (hopeless), where the second gather
 * of an entry costs as much as the first. */
int next_pass(const rode_plan *r, int left, int most, int64_t ld, size_t size)
{
    const int wide = (int)(512 / size), half = wide / 2;
    const int width = left < most ? left : most;
    const double window = 2.0 * (double)r->bandwidth * width * (double)size;

    if (r->base.parts.limits.group > 1) return width;
    if (width > wide) return wide;
    if (width <= half || width > half + half / 2 || ld < half + half / 2 ||
        window <= wide_window || window >= hopeless)
        return width;
    return width == left && width <= half + half / 4 ? half / 2 : half;
}

/* Computes the columns of one pass. narrow: these columns follow those of an
 * earlier pass, so each of their rows of X is a part of a longer row and
 * touches two sectors rather than one; the shape with 2 lanes is then not
 * used. */
template <class T, class V>
sps_status pass(const rode_plan *r, const padded_blocks<T> &b, bool aligned,
                bool narrow)
{
    constexpr int W = 16 / sizeof(T);
    const sps_csr_local *A = r->base.super.A;
    int vectors = vectors_of(b.k, W);
    job<T> o = { r, b, vectors * W, {} };

    if (narrow && vectors < 3) vectors = 3;
    SPS_TRY_RETURN(A->rowptr32
        ? choose(o, matrix_of<int32_t, V>(A), aligned, vectors)
        : choose(o, matrix_of<int64_t, V>(A), aligned, vectors));
    return join_rows(r, b);
}

template <class T, class V>
sps_status product(const rode_plan *r, const sps_spmm_args *args)
{
    constexpr int W = 16 / sizeof(T);
    const sps_csr_local *A = r->base.super.A;
    const padded_blocks<T> b = with_padding(blocks_of<T>(args), args);
    int most = pass_of(r, b.k, sizeof(T));
    bool aligned = b.ldx % W == 0 && b.ldy % W == 0 &&
                   (uintptr_t)b.x % 16 == 0 && (uintptr_t)b.y % 16 == 0 &&
                   (uintptr_t)A->col % 16 == 0 &&
                   (uintptr_t)A->val % 16 == 0 &&
                   b.ldx < (int64_t)(UINT32_MAX / sizeof(T));

    for (int c = 0, k; c < b.k; c += k) {
        k = next_pass(r, b.k - c, most, b.ldx, sizeof(T));
        SPS_TRY_RETURN((pass<T, V>(r, b.columns(c, k), aligned, c > 0)));
    }
    return SPS_OK;
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const rode_plan *r = (const rode_plan *)plan;

    if (!r->lists && spsi_cuda_rode_serves(plan, args))
        return spsi_cuda_rode_short(plan, args);
    if (args->Y->dtype == SPS_F32) return product<float, float>(r, args);
    return plan->A->dtype == SPS_F64 ? product<double, double>(r, args)
                                     : product<double, float>(r, args);
}

bool mixes(const sps_plan *plan, const sps_spmm_args *args)
{
    const rode_plan *r = (const rode_plan *)plan;

    return !r->lists && spsi_cuda_rode_serves(plan, args);
}

sps_status make_lists(rode_plan *r, const sps_problem *p,
                      sps_segments_limits limits)
{
    sps_plan *super = &r->base.super;
    const sps_segments *s = &r->base.parts;
    const size_t number = spsi_dtype_size(p->block);
    const int64_t nrow = p->local->nrow;
    const int64_t run = run_of(super->ctx, nrow, (size_t)p->k * number);

    SPS_TRY_RETURN(spsi_cuda_segments_alike(super, limits, ceil_div(nrow, run),
                                            &r->base.parts));
    return spsi_plan_take(super, (size_t)(s->slots * r->ld) * number,
                          &r->part);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    sps_segments_limits limits;
    rode_plan *r = (rode_plan *)super;
    sps_segments *s = &r->base.parts;

    r->ld = ceil_div(p->k, 4) * 4;
    r->bandwidth = p->f->bandwidth;
    s->limits = { INT32_MAX, 0, 1 };
    r->lists = spsi_segments_pay(p->f, &limits);
    if (!r->lists) return SPS_OK;
    SPS_TRY_RETURN(make_lists(r, p, limits));
    spsi_cuda_segments_tell(super, s);
    return SPS_OK;
}

bool fits(const sps_problem *p, const char **why_not)
{
    if (p->A->nnz <= INT32_MAX && p->A->nrow > INT32_MAX - 4 * threads) {
        *why_not = "A has about 2^31 rows or more, with row offsets of 32 bits";
        return false;
    }
    return true;
}

/* Returns the time of spmm_rode_short.cu, where it is used, relative to that of
 * the kernels to which `predicted` was fitted (doc/log/amg-loop.md). */
double by_short(const sps_problem *p)
{
    sps_segments_limits limits;

    return p->block == SPS_F32 && p->k == 16 && p->A->nnz <= INT32_MAX &&
                   !spsi_segments_pay(p->f, &limits)
               ? 0.5 : 1.0;
}

/* Predicted seconds.  The work per entry is divided by the number of rows with
 * the same columns, at most 4, although at most three are processed together.
 * chain: the latency of a long row, of its segments and of the kernel that adds
 * their sums, which matters for small matrices only. */
double cost(const sps_problem *p)
{
    const sps_features *f = p->f;
    const bool split = (f->mean_length > 32 || f->max_length > 128) &&
                       f->block < 2;
    const double longest = (double)f->max_length;
    double chain = longest > 32 ? fmin(longest, 61) : 0;

    chain *= (split ? 4.6e-7 : 2.5e-7) * (p->k > 32 ? 0.72 : 1.0);
    return by_short(p) * predicted(p, {1.4, 0.17, 1.9e-12, 0.04, 0.95, 0, 4}) +
           chain + (p->k == 1 ? 1e-5 : 0);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_rode) = {
    .name = "spmm.rode",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .fuses = true,
    .size = sizeof(rode_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<spmm>,
    .mixes = mixes,
};
