/* SPDX-License-Identifier: BSD-3-Clause */
/* window_rows.cuh - the windows of spmm.tiles as passed to its kernels; the
 * code for windows that are summed row by row from the CSR, because they have
 * no tiles, or NaN in their sums; and the plan of these kernels. */
#ifndef SPS_CUDA_WINDOW_ROWS_CUH
#define SPS_CUDA_WINDOW_ROWS_CUH

#include "cuda/plan/leads_device.h"
#include "cuda/plan/segments_device.h"
#include "cuda/plan/window_plan.h"
#include "cuda/sparse/vectors.cuh"

namespace {

/* The matrix and its windows as passed to kernels.  I: type of offsets in A and
 * in the values. word: tile descriptors; rest: the windows without tiles,
 * `bare` of them. */
template <class I, class V> struct tiled {
    matrix<I, V> A;
    const sps_window *__restrict__ at;
    const int32_t *__restrict__ word;
    const V *__restrict__ val;
    const uint32_t *__restrict__ rest;
    int windows, bare, lead;
    int32_t longest;           /* rows of more entries are summed as segments */
};

/* How rows of X and Y are accessed.  WHOLE: all 16 Q columns exist, 16-byte
 * accesses.  PAIRS: of the last 16 columns some exist, and the memory after
 * them may be loaded with them.  SINGLES: one number at a time. */
enum access { WHOLE, PAIRS, SINGLES };

/* Stores the first `left` of two columns, and zeros as far as the padding
 * (`room`) reaches. */
template <access M>
__device__ __forceinline__ void put_pair(double *y, int left, int room,
                                         double2 v)
{
    if (left < 1) v.x = 0;
    if (left < 2) v.y = 0;
    if (M != SINGLES && room >= 2) {
        __stcs(reinterpret_cast<double2 *>(y), v);
    } else {
        if (room >= 1) __stcs(y, v.x);
        if (room >= 2) __stcs(y + 1, v.y);
    }
}

/* Stores Y = alpha sum + beta Y, or the result of the epilogue, for columns c
 * and c + 1 of row i, of which the first `left` exist. */
template <access M>
__device__ __forceinline__ void finish_pair(const blocks<double> &b, int64_t i,
                                            int c, int left, int room,
                                            double2 sum)
{
    double *y = b.y + i * b.ldy + c;

    if (left >= 1) sum.x = b.join(sum.x, y, i);
    if (left >= 2) sum.y = b.join(sum.y, y + 1, i);
    put_pair<M>(y, left, room, sum);
}

/* Sums a window row by row from the CSR: 8 lanes per row, each with C pairs of
 * columns, 16 columns apart; 8 entries in flight.  Not inlined, since it is
 * rare and the tiles need the registers. */
template <int C, access M, class X, class I, class V>
__device__ __noinline__ void sum_by_rows(const tiled<I, V> &m,
                                         const padded_blocks<double> &given,
                                         uint32_t rows)
{
    padded_blocks<double> b = given;
    const int l = (int)threadIdx.x & 7, left = b.k - 2 * l;

    b.resolve();
    for (int some = 0; some < SPSI_WINDOW_ROWS; some += 4) {
        int64_t i = spsi_window_row(m.A.nrow, m.lead, rows,
                                    some + (int)threadIdx.x % 32 / 8);
        I p = i < m.A.nrow ? m.A.rowptr[i] : 0;
        I n = i < m.A.nrow ? m.A.rowptr[i + 1] - p : 0;
        int length = n <= m.longest ? (int)n : 0;
        int most = __reduce_max_sync(all_lanes, length);
        double2 sum[C] = {};

        for (int d = 0; d < most; d += 8) {
            int32_t col = 0;
            double val = 0;

            if (d + l < length) {
                col = __ldg(m.A.col + p + d + l);
                val = (double)__ldg(m.A.val + p + d + l);
            }
#pragma unroll
            for (int u = 0; u < 8; u++) {
                int32_t j = __shfl_sync(all_lanes, col, u, 8);
                double a = __shfl_sync(all_lanes, val, u, 8);
                const X *x = reinterpret_cast<const X *>(b.x) + j * b.ldx +
                             2 * l;

#pragma unroll
                for (int q = 0; q < C; q++) {
                    double2 v = fetch_pair<M != SINGLES>(
                        x + 16 * q, d + u < length ? left - 16 * q : 0);

                    sum[q].x = fma(a, v.x, sum[q].x);
                    sum[q].y = fma(a, v.y, sum[q].y);
                }
            }
        }
        if (i < m.A.nrow && n <= m.longest)
#pragma unroll
            for (int q = 0; q < C; q++)
                finish_pair<M>(b, i, 2 * l + 16 * q, left - 16 * q,
                               b.room - 2 * l - 16 * q, sum[q]);
    }
}

/* Computes Y in the windows that store no tiles, one warp each, for a block of
 * 16 C columns. */
template <int C, access M, class X, class I, class V>
__global__ void __launch_bounds__(256)
rest_kernel(const __grid_constant__ tiled<I, V> m,
            const __grid_constant__ padded_blocks<double> b)
{
    const int w = (int)(blockIdx.x * 8 + threadIdx.x / 32);

    if (w < m.bare) sum_by_rows<C, M, X>(m, b, m.rest[w]);
}

/* ----------------------------------------------------------------- plan */

inline sps_status window_plan_refresh(sps_plan *plan)
{
    sps_window_plan *w = (sps_window_plan *)plan;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    return spsi_cuda_windows_values(plan->ctx, plan->A, w->rule.lead,
                                    &w->windows, w->val);
}

/* Builds the windows and copies the values to tile order. */
inline sps_status window_plan_fill(sps_window_plan *w, const sps_problem *p,
                                   const sps_window_rule &rule)
{
    sps_context *ctx = w->super.ctx;

    w->rule = rule;
    SPS_TRY_RETURN(spsi_cuda_window_lead(ctx, p->local, &w->rule.lead));
    SPS_TRY_RETURN(spsi_cuda_windows_build(&w->super, w->rule, &w->windows));
    SPS_TRY_RETURN(spsi_plan_take(&w->super,
                                  (size_t)(w->windows.entries + 1) *
                                      spsi_dtype_size(p->A->dtype), &w->val));
    return window_plan_refresh(&w->super);
}

/* Returns whether windows are likely to be faster than spmm.rode.  A tile holds
 * about 8 / distinct8 entries.  With few of them spmm.rode is faster (7-point
 * grids: distinct8 = 42 / 56, 10.7 entries), and possibly on matrices too small
 * to fill the device, where this was not measured. */
inline bool windows_pay(const sps_problem *p, const char **why_not)
{
    if (p->pinned) return true;
    *why_not = p->f->distinct8 > 0.5
        ? "neighbouring rows share too few columns"
        : "A has fewer than 100000 rows";
    return p->f->distinct8 <= 0.5 && p->f->nrow >= 100000;
}

} // namespace

#endif
