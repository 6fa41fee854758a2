/* SPDX-License-Identifier: BSD-3-Clause */
/* tca.cuh - TCA-SpMM on the device, staged as in its paper: the entries of
 * a row in a scratch pad, the rows of X that they ask for in a compressed
 * buffer, both in shared memory; products of small matrices on tensor cores;
 * the partial trace by shuffles; an output buffer.  formats/tca.h has the work
 * list and the matricisation.
 *
 * A form (below, and in the files of the low precisions) says how numbers lie
 * in the buffer and which instruction multiplies.  Each warp of a row owns
 * 8 entries: it loads them, one row ahead, and gathers their rows of X.
 *
 * What X has where the row stores nothing is never loaded: slots past the end
 * of a row hold 0 for the value and 0 for X, so NaN and infinity reach the
 * rows that store their column, in their column, and nothing else. */
#ifndef SPS_CUDA_TCA_CUH
#define SPS_CUDA_TCA_CUH

#include "sparse.cuh"
#include "tca_plan.h"

namespace {

constexpr int team_threads = 32 * SPSI_TCA_TEAM;

/* The matrix and the work list as kernels see them. */
struct tca_work {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ rowptr32; /* NULL: take the other */
    const int32_t *__restrict__ col;
    const void *__restrict__ val;
    bool wide;                            /* values are doubles */
    const int16_t *__restrict__ exponent; /* of rows; NULL: all 0 */
    const int32_t *__restrict__ slot;
    const spsi_tca_piece *__restrict__ piece;
    int64_t count;                        /* teams, or pieces */

    __device__ __forceinline__ int64_t begin(int64_t i) const
    {
        return rowptr32 ? (int64_t)__ldg(rowptr32 + i) : __ldg(rowptr + i);
    }
    __device__ __forceinline__ double value(int64_t p) const
    {
        return wide ? __ldg((const double *)val + p)
                    : (double)__ldg((const float *)val + p);
    }
};

/* X as it is gathered: of the form's own type, columns from 0 to k. */
template <class X> struct source {
    const X *__restrict__ x;
    int64_t ld;
    const int *__restrict__ exponent; /* of columns; NULL: all 0 */
};

/* One row's bounds, and 8 of its entries spread over lanes 0 .. 7. */
struct share {
    int32_t row;
    int64_t begin;
    int length, own; /* entries of the row, of this warp */
    int32_t col;
    double val;
};

/* Shared memory of a team; slice w of each belongs to warp w. */
template <class F> struct team_memory {
    alignas(16) typename F::word rhs[SPSI_TCA_TEAM][F::slice];
    alignas(16) typename F::number value[SPSI_TCA_TEAM][8];
    alignas(16) typename F::sum out[SPSI_TCA_TEAM][F::tile];
};

/* All warps of a row meet; a warp by itself needs no barrier.  Each place
 * and size of group has a barrier of its own, so that warps which are a row
 * ahead cannot count for others. */
__device__ __forceinline__ void meet(int first, int warps)
{
    if (warps == 1) {
        __syncwarp();
    } else {
        int id = warps == 8 ? 1 : warps == 4 ? 2 + first / 4 : 4 + first / 2;

        asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(32 * warps)
                     : "memory");
    }
}

/* --- fp64: mma.m16n8k8, the paper's shape; 8 x tile doubles a slice. */
template <int TILE> struct form64 {
    typedef double word, number, sum, element;
    /* Entries 8 banks apart and chunks 4: no conflicts in 16-byte reads. */
    static constexpr int tile = TILE, stride = tile + 4, slice = 8 * stride + 2;
    static constexpr int products = tile / 16; /* of a warp in a tile */

    static __device__ __forceinline__ double convert(double v, int)
    {
        return v;
    }
    /* Rows of X of the warp's entries; x at the tile's first column, of which
     * left exist. */
    template <bool ALIGNED>
    static __device__ __forceinline__ void
    gather(double *slice, const double *x, int64_t ld, const share &s, int lane,
           int left)
    {
        constexpr int units = tile / 2, at_once = 32 / units, steps = 8 / at_once;
        int u = 2 * (lane % units), e = lane / units;
        double2 v[steps];

#pragma unroll
        for (int i = 0; i < steps; i++) {
            int entry = e + i * at_once;
            int32_t j = __shfl_sync(all_lanes, s.col, entry);

            v[i] = fetch_pair<ALIGNED>(x + (int64_t)j * ld + u,
                                       entry < s.own ? left - u : 0);
        }
#pragma unroll
        for (int i = 0; i < steps; i++)
            *(double2 *)(slice + (e + i * at_once) * stride + u) = v[i];
    }
    struct values {
        double b[2];
    };
    /* S: chunk gid of the row, entries t and t + 4. */
    static __device__ __forceinline__ values
    load_values(const double (*value)[8], int g, int gid, int t)
    {
        values s = {};

        if (gid < g) {
            s.b[0] = value[gid][t];
            s.b[1] = value[gid][t + 4];
        }
        return s;
    }
    /* O += D S for columns j, j + 1 of this lane's chunk. */
    static __device__ __forceinline__ void
    multiply(double *o, const double *slice, int j, int t, const values &s)
    {
        double2 low = *(const double2 *)(slice + t * stride + j);
        double2 high = *(const double2 *)(slice + (t + 4) * stride + j);
        double d[4] = {low.x, low.y, high.x, high.y};

        dmma16x8(o, d, s.b);
    }
};

/* The partial trace of O: lanes 4 gid, gid a multiple of g, end up with the
 * sums of their two columns. */
template <class S>
__device__ __forceinline__ void diagonal_sums(const S *o, int g, int gid, int t,
                                              S *two)
{
    bool odd = spsi_tca_register(g, gid), mine = spsi_tca_diagonal(g, gid, t);

    two[0] = mine ? (odd ? o[1] : o[0]) : S(0);
    two[1] = mine ? (odd ? o[3] : o[2]) : S(0);
    for (int s = 0; 1 << s < g; s++) {
        int above = spsi_tca_distance(s);

        two[0] += __shfl_down_sync(all_lanes, two[0], above);
        two[1] += __shfl_down_sync(all_lanes, two[1], above);
    }
}

/* Sum times 2^exponent, exactly unless the result is out of range. */
template <class F>
__device__ __forceinline__ double scaled(typename F::sum v, int exponent)
{
    return exponent ? scalbn((double)v, exponent) : (double)v;
}

/* Columns c .. c + width - 1 of a row, from the output buffer to Y. */
template <class F, class T>
__device__ __forceinline__ void
flush(const typename F::sum *out, const tca_work &w,
      const source<typename F::element> &x, const blocks<T> &b, int32_t row,
      int c, int width, int lane)
{
    T *y = b.y + (int64_t)row * b.ldy + c;
    int of_row = w.exponent ? w.exponent[row] : 0;

    for (int j = lane; j < width; j += 32) {
        int e = of_row + (x.exponent ? x.exponent[c + j] : 0);

        y[j] = b.join(scaled<F>(out[j], e), y + j);
    }
}

__device__ __forceinline__ void load_entries(const tca_work &w, int64_t begin,
                                             int left, int lane, share *s)
{
    s->own = left < 0 ? 0 : left > 8 ? 8 : left;
    s->col = 0;
    s->val = 0;
    if (lane < s->own) {
        s->col = __ldg(w.col + begin + lane);
        s->val = w.value(begin + lane);
    }
}

/* Rows of up to 64 entries: a team walks work lists run by run, and has the
 * bounds of the row after next and the entries of the next row under way. */
template <class F, class T, bool ALIGNED>
__global__ void __launch_bounds__(team_threads)
rows_kernel(tca_work w, source<typename F::element> x, blocks<T> b, int run)
{
    __shared__ team_memory<F> m;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int gid = lane / 4, t = lane % 4;
    int64_t at = (int64_t)blockIdx.x * run;
    int64_t last = at + run < w.count ? at + run : w.count;
    share s = {}, next = {};
    int32_t after;

    auto row_of = [&](int64_t team) -> int32_t {
        return team < last ? __ldg(w.slot + SPSI_TCA_TEAM * team + warp) : -1;
    };
    auto bounds = [&](int32_t row, share *e) {
        e->row = row;
        e->begin = 0;
        e->length = 0;
        if (row >= 0) {
            e->begin = w.begin(row);
            e->length = (int)(w.begin((int64_t)row + 1) - e->begin);
        }
    };
    auto entries = [&](share *e) {
        int before = 8 * (warp & (spsi_tca_chunks(e->length) - 1));

        load_entries(w, e->begin + before, e->length - before, lane, e);
    };

    b.resolve();
    bounds(row_of(at), &s);
    bounds(row_of(at + 1), &next);
    after = row_of(at + 2);
    entries(&s);
    for (; at < last; at++) {
        share then;

        entries(&next);
        bounds(after, &then);
        after = row_of(at + 3);
        if (s.row >= 0) {
            int g = spsi_tca_chunks(s.length), mine = warp & (g - 1);
            int first = warp - mine, wide = spsi_tca_width(g);
            int q = spsi_tca_chunk(g, gid), j = spsi_tca_column(g, gid);
            int of_row = w.exponent ? w.exponent[s.row] : 0;

            if (lane < 8) m.value[warp][lane] = F::convert(s.val, of_row);
            for (int c = 0; c < b.k; c += F::tile) {
                int left = b.k - c < F::tile ? b.k - c : F::tile;

                F::template gather<ALIGNED>(m.rhs[warp], x.x + c, x.ld, s, lane,
                                            left);
                meet(first, g);
                typename F::values v = F::load_values(m.value + first, g, gid,
                                                      t);
#pragma unroll
                for (int f = 0; f < F::products; f++) {
                    int column = (mine + f * g) * wide;
                    typename F::sum o[4] = {}, two[2];

                    if (column >= left) break;
                    F::multiply(o, m.rhs[first + q], column + j, t, v);
                    diagonal_sums(o, g, gid, t, two);
                    if (t == 0 && q == 0) {
                        m.out[first][column + j] = two[0];
                        m.out[first][column + j + 1] = two[1];
                    }
                }
                meet(first, g);
                if (mine == 0)
                    flush<F>(m.out[warp], w, x, b, s.row, c, left, lane);
            }
        }
        s = next;
        next = then;
    }
}

/* Pieces of longer rows: the whole team takes 64 entries at a time and keeps
 * all products of its tile of columns; tiles of a row are blocks of their
 * own. */
template <class F, class T, bool ALIGNED>
__global__ void __launch_bounds__(team_threads)
pieces_kernel(tca_work w, source<typename F::element> x, blocks<T> b, int run,
              int tiles, typename F::sum *__restrict__ partial)
{
    __shared__ team_memory<F> m;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int gid = lane / 4, t = lane % 4;
    int c = (int)(blockIdx.x % (unsigned)tiles) * F::tile;
    int left = b.k - c < F::tile ? b.k - c : F::tile;
    int64_t at = (int64_t)(blockIdx.x / (unsigned)tiles) * run;
    int64_t last = at + run < w.count ? at + run : w.count;

    b.resolve();
    for (; at < last; at++) {
        spsi_tca_piece p = w.piece[at];
        typename F::sum o[F::products][4] = {};
        int of_row = w.exponent ? w.exponent[p.row] : 0;
        share s, next;

        load_entries(w, p.begin + 8 * warp, p.length - 8 * warp, lane, &s);
        for (int done = 0; done < p.length; done += SPSI_TCA_STEP) {
            int before = done + SPSI_TCA_STEP + 8 * warp;

            load_entries(w, p.begin + before, p.length - before, lane, &next);
            if (lane < 8) m.value[warp][lane] = F::convert(s.val, of_row);
            F::template gather<ALIGNED>(m.rhs[warp], x.x + c, x.ld, s, lane,
                                        left);
            meet(0, SPSI_TCA_TEAM);
            typename F::values v = F::load_values(m.value, 8, gid, t);
#pragma unroll
            for (int f = 0; f < F::products; f++)
                F::multiply(o[f], m.rhs[gid], 2 * (warp + 8 * f), t, v);
            meet(0, SPSI_TCA_TEAM);
            s = next;
        }
#pragma unroll
        for (int f = 0; f < F::products; f++) {
            typename F::sum two[2];

            diagonal_sums(o[f], 8, gid, t, two);
            if (lane == 0) {
                m.out[0][2 * (warp + 8 * f)] = two[0];
                m.out[0][2 * (warp + 8 * f) + 1] = two[1];
            }
        }
        meet(0, SPSI_TCA_TEAM);
        if (warp > 0) continue;
        if (p.partial < 0)
            flush<F>(m.out[0], w, x, b, p.row, c, left, lane);
        else
            for (int j = lane; j < left; j += 32)
                partial[p.partial * b.k + c + j] = m.out[0][j];
    }
}

/* Y of split rows: their pieces in order; a thread makes one number. */
template <class F, class T>
__global__ void __launch_bounds__(256)
join_kernel(tca_work w, const spsi_tca_split *__restrict__ split, int64_t splits,
            const typename F::sum *__restrict__ partial,
            source<typename F::element> x, blocks<T> b)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, i = e / b.k;
    int j = (int)(e % b.k);

    b.resolve();
    if (i >= splits) return;
    spsi_tca_split r = split[i];
    T *y = b.y + (int64_t)r.row * b.ldy + j;
    int exponent = (w.exponent ? w.exponent[r.row] : 0) +
                   (x.exponent ? x.exponent[j] : 0);
    double sum = 0;

    for (int s = 0; s < r.count; s++)
        sum += (double)partial[(r.first + s) * b.k + j];
    *y = b.join(exponent ? scalbn(sum, exponent) : sum, y);
}

/* Y = beta Y in rows without entries. */
template <class T>
__global__ void __launch_bounds__(256)
empty_kernel(const int32_t *__restrict__ empty, int64_t count, blocks<T> b)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, i = e / b.k;

    b.resolve();
    if (i >= count) return;
    T *y = b.y + (int64_t)empty[i] * b.ldy + e % b.k;

    *y = b.join(T(0), y);
}

inline tca_work work_of(const sps_tca_plan *plan)
{
    const sps_csr_local *A = plan->super.A;
    tca_work w;

    w.rowptr = A->rowptr;
    w.rowptr32 = A->rowptr32;
    w.col = A->col;
    w.val = A->val;
    w.wide = A->dtype == SPS_F64;
    w.exponent = (const int16_t *)plan->scale;
    w.slot = plan->work.slot;
    w.piece = plan->work.piece;
    w.count = 0;
    return w;
}

/* Teams, or pieces, that a block walks: many when there are many. */
inline int run_of(const sps_context *ctx, int64_t count, int most)
{
    int64_t run = count / (16 * (int64_t)spsi_cuda_state(ctx)->sms);

    return run < 1 ? 1 : run > most ? most : (int)run;
}

/* All of Y, X and its scales being ready. */
template <class F, class T, bool ALIGNED>
sps_status launch_tca(const sps_tca_plan *plan, const blocks<T> &b,
                      const source<typename F::element> &x)
{
    typedef typename F::sum sum;
    sps_context *ctx = plan->super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    const spsi_tca *list = &plan->work;
    tca_work w = work_of(plan);

    if (list->n.pieces > 0) {
        int run = run_of(ctx, list->n.pieces, 8);
        int tiles = (int)ceil_div(b.k, F::tile);

        w.count = list->n.pieces;
        pieces_kernel<F, T, ALIGNED>
            <<<(unsigned)(ceil_div(w.count, run) * tiles), team_threads, 0,
               stream>>>(w, x, b, run, tiles, (sum *)plan->partial);
        SPS_LAUNCHED(ctx);
    }
    if (list->n.teams > 0) {
        int run = run_of(ctx, list->n.teams, 64);

        w.count = list->n.teams;
        rows_kernel<F, T, ALIGNED>
            <<<(unsigned)ceil_div(w.count, run), team_threads, 0, stream>>>(
                w, x, b, run);
        SPS_LAUNCHED(ctx);
    }
    if (list->n.splits > 0) {
        join_kernel<F, T>
            <<<(unsigned)ceil_div(list->n.splits * b.k, 256), 256, 0, stream>>>(
                w, list->split, list->n.splits, (const sum *)plan->partial, x,
                b);
        SPS_LAUNCHED(ctx);
    }
    if (list->n.empties > 0) {
        empty_kernel<T>
            <<<(unsigned)ceil_div(list->n.empties * b.k, 256), 256, 0,
               stream>>>(list->empty, list->n.empties, b);
        SPS_LAUNCHED(ctx);
    }
    return SPS_OK;
}

} // namespace

#endif
