/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tiles_single.cu - spmm.tiles for single-precision blocks: the same
 * windows of 8 rows (kernels/formats/row_windows.h, spmm_tiles.cuh), each
 * distinct column gathered once and converted in registers; products and sums
 * are in double precision on the fp64 tensor cores.
 *
 * 8 neighbouring lanes load the 16 columns of a row of X, 64 bytes; the
 * shuffles that transpose move floats, half as many as for doubles.
 * Neighbouring rows of X share a cache line, so there are fewer L1 lookups.
 *
 * Bytes: 4 per entry for values, 1.7 to 2.2 for tile descriptors, Y once, rows
 * of X again whenever L1 and L2 have evicted them. */
#include "cuda/sparse/ordered.cuh"
#include "cuda/sparse/spmm_tiles.cuh"

namespace {

constexpr sps_window_rule rule = { 2048, 10, 4 };
constexpr int wide_slice = 32;           /* most columns of a pass */
template <int Q> constexpr int threads_of = Q == 1 ? 768 : 640;

/* What a lane loads of rows of X: from slot lane / 8 of each 4, columns 2 (lane
 * % 8) and the next one of each 16.  Columns that do not exist are replaced by
 * the first one: their sums are not stored. */
template <int Q, bool PAIRS> struct float_columns {
    const char *x;
    int slot, at[Q], next[Q];

    __device__ __forceinline__ float_columns(const blocks<float> &b, int c)
        : x(reinterpret_cast<const char *>(b.x + c))
    {
        const int lane = (int)threadIdx.x % 32;

        slot = lane / 8;
#pragma unroll
        for (int q = 0; q < Q; q++) {
            const int own = 16 * q + lane % 8 * 2;

            at[q] = c + own < b.k ? own : 0;
            next[q] = c + own + 1 < b.k ? own + 1 : 0;
        }
    }
    /* Loads this lane's pairs of columns of row j of X. */
    __device__ __forceinline__ void fetch(int32_t j, uint32_t stride,
                                          float2 *v) const
    {
        const float *row = reinterpret_cast<const float *>(
            x + (uint64_t)(uint32_t)j * stride);

#pragma unroll
        for (int q = 0; q < Q; q++) {
            if (PAIRS)
                v[q] = fetch_both(row + at[q]);
            else
                v[q] = make_float2(fetch_number(row + at[q]),
                                   fetch_number(row + next[q]));
        }
    }
};

/* acc += the products of a group of TILES tiles with X, all loaded together;
 * value: index of the first value of its first mask. */
template <int TILES, int Q, bool PAIRS>
__device__ __forceinline__ void
add_group(const group_words &words, const float_columns<Q, PAIRS> &columns,
          uint32_t stride, const float *val, int32_t &value,
          double (*acc)[4])
{
    constexpr int halves = 2 * TILES;
    const int lane = (int)threadIdx.x % 32;
    const uint32_t below = (1u << lane) - 1;
    float2 x[halves][Q];
    float a[halves];
    double wide[halves];

#pragma unroll
    for (int h = 0; h < halves; h++) {
        const uint32_t mask = __shfl_sync(all_lanes, words.mask, h);
        const int32_t mine = value + __popc(mask & below);

        columns.fetch(__shfl_sync(all_lanes, words.col, 4 * h + columns.slot),
                      stride, x[h]);
        a[h] = fetch_number(val + (mask >> lane & 1 ? mine : 0));
        value += __popc(mask);
    }
#pragma unroll
    for (int h = 0; h < halves; h++) wide[h] = (double)a[h];
#pragma unroll
    for (int h = 0; h < halves; h += 2)
        multiply<Q>(x + h, wide + h, acc);
}

/* alpha and beta, which may be in device memory, in double precision like the
 * sums. */
struct factors_of {
    double alpha, beta;

    __device__ __forceinline__ explicit factors_of(const blocks<float> &b)
        : alpha(b.scalars ? b.scalars[0] : b.alpha),
          beta(b.scalars ? b.scalars[1] : b.beta)
    {
    }
    /* Returns alpha sum + beta old.  A zero scalar suppresses its term, even if
     * the other factor is not finite. */
    __device__ __forceinline__ float join(double sum, const float *old) const
    {
        const double r = alpha != 0 ? alpha * sum : 0.0;

        return (float)(beta != 0 ? fma(beta, (double)*old, r) : r);
    }
};

__device__ __forceinline__ double2 times(double a, double2 v)
{
    return make_double2(a * v.x, a * v.y);
}

/* Returns sum + a times the floats at p and p + 1, of which the first `left`
 * exist. */
template <bool PAIRS>
__device__ __forceinline__ double2 plus(double a, const float *p, int left,
                                        double2 sum)
{
    const double2 v = load_pair<PAIRS>(p, left);

    return make_double2(fma(a, v.x, sum.x), fma(a, v.y, sum.y));
}

/* Stores columns c and c + 1 of a row at p, of which the first `left` exist. */
template <bool PAIRS>
__device__ __forceinline__ void put_floats(float *p, int left, float2 v)
{
    if (PAIRS && left >= 2) {
        __stcs(reinterpret_cast<float2 *>(p), v);
    } else {
        if (left >= 1) __stcs(p, v.x);
        if (left >= 2) __stcs(p + 1, v.y);
    }
}

/* Stores the result of the epilogue for columns c and c + 1 of row i, of which
 * the first `left` exist.  Not inlined, because the tiles need the
 * registers. */
template <bool PAIRS>
__device__ __noinline__ void join_pair(const blocks<float> &b,
                                       const factors_of &f, int64_t i, int c,
                                       int left, double x, double y)
{
    const int64_t at = i * b.ldy + c;
    double2 r = times(f.alpha, make_double2(x, y));

    if (b.w) r = plus<PAIRS>(b.gamma, b.w + at, left, r);
    if (b.d) r = times(b.d[i], r);
    if (f.beta != 0) r = plus<PAIRS>(f.beta, b.y + at, left, r);
    if (b.delta != 0) r = plus<PAIRS>(b.delta, b.x + at, left, r);
    put_floats<PAIRS>(b.y + at, left, make_float2((float)r.x, (float)r.y));
}

/* Stores Y = alpha sum + beta Y, or the result of the epilogue, for columns c
 * and c + 1 of row i. */
template <bool PAIRS>
__device__ __forceinline__ void put_pair(const blocks<float> &b,
                                         const factors_of &f, int64_t i, int c,
                                         int right, double x, double y)
{
    float *to = b.y + i * b.ldy + c;
    float2 v = make_float2(0.0f, 0.0f);

    if (b.fused) {
        join_pair<PAIRS>(b, f, i, c, right - c, x, y);
        return;
    }
    if (c < right) v.x = f.join(x, to);
    if (c + 1 < right) v.y = f.join(y, to + 1);
    put_floats<PAIRS>(to, right - c, v);
}

/* Stores the sums of a window; returns false if they contain NaN. */
template <int Q, bool PAIRS>
__device__ __forceinline__ bool
put_window(int64_t nrow, int lead, const blocks<float> &b, const factors_of &f,
           uint32_t rows, int c, const double (*acc)[4])
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x & 3;
    const int right = min(b.k, c + 16 * Q);
    const int64_t i = spsi_window_row(nrow, lead, rows, 2 * t);
    const bool below = spsi_window_row(nrow, lead, rows, 2 * t + 1) < nrow;
    double all = 0;

#pragma unroll
    for (int q = 0; q < Q; q++)
        all += (acc[q][0] + acc[q][1]) + (acc[q][2] + acc[q][3]);
    if (__any_sync(all_lanes, all != all)) return false;
#pragma unroll
    for (int q = 0; q < Q; q++) {
        const int at = c + 16 * q + 2 * g;

        if (i < nrow)
            put_pair<PAIRS>(b, f, i, at, right, acc[q][0], acc[q][2]);
        if (below)
            put_pair<PAIRS>(b, f, i + 1, at, right, acc[q][1], acc[q][3]);
    }
    return true;
}

/* Sums a window row by row from the CSR, columns c .. right - 1: the pairs of
 * row and column are distributed over the lanes.  Not inlined, since it is
 * rare. */
__device__ __noinline__ void add_rows(const tiled<int32_t, float> &m,
                                      const blocks<float> &b, uint32_t rows,
                                      int c, int right)
{
    const int width = right - c;
    const factors_of f(b);

    for (int e = (int)threadIdx.x % 32; e < SPSI_WINDOW_ROWS * width; e += 32) {
        const int64_t i = spsi_window_row(m.A.nrow, m.lead, rows, e / width);
        const int j = c + e % width;
        double sum = 0;

        if (i >= m.A.nrow) continue;
        for (int32_t p = m.A.rowptr[i]; p < m.A.rowptr[i + 1]; p++)
            sum = fma((double)m.A.val[p],
                      (double)b.x[m.A.col[p] * b.ldx + j], sum);
        put_pair<false>(b, f, i, j, j + 1, sum, 0.0);
    }
}

/* Computes Y in the windows with tiles.  The thread blocks process neighbouring
 * windows in turn, each block one slice of the columns. */
template <int Q, bool PAIRS>
__global__ void __launch_bounds__(threads_of<Q>)
windows_kernel(const __grid_constant__ tiled<int32_t, float> m,
               const __grid_constant__ blocks<float> b, uint32_t stride,
               int slices)
{
    constexpr unsigned warps = threads_of<Q> / 32;
    const unsigned step = gridDim.x / slices * warps;
    const int c = (int)(blockIdx.x % slices) * 16 * Q;
    const float_columns<Q, PAIRS> columns(b, c);
    unsigned w = blockIdx.x / slices * warps + threadIdx.x / 32;

    if (w >= (unsigned)m.windows) return;
    const factors_of f(b);
    window_loop<int32_t> at(m, w, step);

    for (; w < (unsigned)m.windows; w += step) {
        double acc[Q][4] = {};

        at.groups(m, w + 2 * step,
                  [&]<int TILES>(const group_words &words, int32_t &value) {
            add_group<TILES>(words, columns, stride, m.val, value, acc);
        });
        if (!put_window<Q, PAIRS>(m.A.nrow, m.lead, b, f, at.now.rows, c, acc))
            add_rows(m, b, at.now.rows, c, min(b.k, c + 16 * Q));
        at.advance();
    }
}

/* Computes Y in the windows without tiles, one warp each. */
__global__ void __launch_bounds__(256)
bare_kernel(const __grid_constant__ tiled<int32_t, float> m,
            const __grid_constant__ blocks<float> b)
{
    const int w = (int)(blockIdx.x * 8 + threadIdx.x / 32);

    if (w < m.bare) add_rows(m, b, m.rest[w], 0, b.k);
}

template <int Q, bool PAIRS>
sps_status launch(const sps_window_plan *p, const blocks<float> &b)
{
    const sps_row_windows *w = &p->windows;
    sps_context *ctx = p->super.ctx;
    const int slices = (int)ceil_div(b.k, 16 * Q);
    const int64_t resident = max(spsi_cuda_state(ctx)->sms / slices, 1);
    const int64_t wanted = ceil_div(w->count, threads_of<Q> / 32);
    const tiled<int32_t, float> m = {
        matrix_of<int32_t, float>(p->super.A), w->at, w->word,
        (const float *)p->val, w->rest, (int)w->count, (int)w->bare,
        p->rule.lead, p->rule.longest };

    if (w->count > 0)
        SPS_TRY_RETURN(run_kernel(ctx,
                                  (unsigned)(min(resident, wanted) * slices),
                                  threads_of<Q>, windows_kernel<Q, PAIRS>, m, b,
                                  stride_of<float>(b.ldx), slices));
    if (w->bare > 0)
        SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(w->bare, 8), 256,
                                  bare_kernel, m, b));
    return SPS_OK;
}

bool even(const sps_block *X)
{
    return X->ld % 2 == 0 && (uintptr_t)X->data % 8 == 0 && X->k % 2 == 0;
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_window_plan *p = (const sps_window_plan *)plan;
    const blocks<float> b = blocks_of<float>(args);
    const sps_block *W = args->epilogue ? args->epilogue->W : NULL;
    const bool pairs = even(args->X) && even(args->Y) && (!W || even(W));

    if (b.k <= 16)
        return pairs ? launch<1, true>(p, b) : launch<1, false>(p, b);
    return pairs ? launch<2, true>(p, b) : launch<2, false>(p, b);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    return window_plan_fill((sps_window_plan *)super, p, rule);
}

/* Fits where spmm.tiles does in double precision, except for rows so long that
 * they would be divided into segments. */
bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "it multiplies blocks of floats only";
    if (p->block != SPS_F32) return false;
    *why_not = "A has 2^29 rows or more, or offsets of 64 bits";
    if (p->A->nrow >= 1 << 29 || !p->local->rowptr32) return false;
    *why_not = "A has a row of more than 2048 entries";
    if (p->f->max_length > rule.longest) return false;
    return windows_pay(p, why_not);
}

/* Predicted seconds: for each slice values and descriptors are streamed, then
 * each slot loads its row of X, usually from L2.  Fitted to
 * doc/log/spmm-tiles.md. */
double cost(const sps_problem *p)
{
    const double slots = (double)p->f->nnz * p->f->distinct8;
    const int slices = p->k <= 16 ? 1 : (int)ceil_div(p->k, wide_slice);
    const double slot = p->k <= 8 ? 9.5e-12 : p->k <= 16 ? 11e-12 : 17e-12;

    return slices * ((4.0 * (double)p->f->nnz + 5 * slots) / p->machine->copy +
                     slots * slot * p->machine->work) + 8e-6;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tiles_single) = {
    .name = "spmm.tiles_single",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .fuses = true,
    .size = sizeof(sps_window_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<near_only<spmm>>,
    .refresh = window_plan_refresh,
};
