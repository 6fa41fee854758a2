/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tca_paper.cu - TCA-SpMM as published, in fp16 on mma.m16n8k8, for
 * comparison with the version derived from it (tca_direct.cuh).
 *
 * A team of 8 warps processes rows of up to 64 entries, with g = 1, 2, 4 or 8
 * warps per row depending on its length; of a longer row it processes 64
 * entries at a time.  Each warp has a part of shared memory for: the row's
 * values (scratch pad), the rows of X that it needs (compressed buffer, entries
 * in pairs in the layout of the instruction), and the results (output buffer).
 * The warps of a row divide its columns: D is up to 8 chunks of 16 / g columns,
 * S the chunks of the row, and the partial trace of O = D S is computed by
 * shuffles (formats/tca.h).
 *
 * Deviations from the paper: rows of A and columns of X are scaled
 * (tca_half.cuh); rows of more than 1024 entries are divided into pieces whose
 * sums are added in order, while the paper starts more blocks for a row than it
 * has columns for; entries are prefetched one row ahead; alpha, beta, any width
 * and ld.
 *
 * Bytes: A once (longer rows: once for each tile of columns), Y once, rows of X
 * in fp16 again whenever L1 and L2 have evicted them, and all of X that is used
 * written to and read from shared memory.
 *
 * Rows of X whose column is not stored in a row are never loaded: slots past
 * the end of a row hold 0 for the value and 0 for X, so NaN and infinity reach
 * only the rows that store their column, in their own column. */
#include "cuda/papers/tca_half.cuh"

namespace {

constexpr int team_threads = 32 * SPSI_TCA_TEAM;

/* Bounds of one row, and up to 8 of its entries, one in each of lanes 0 .. 7
 * (col, val). */
struct share {
    int32_t row;
    int64_t begin;
    int length, own; /* number of entries of the row, and of those that this
                        warp holds */
    int32_t col;
    double val;
};

/* Shared memory of a team; element w of each array belongs to warp w. */
template <class F> struct team_memory {
    alignas(16) typename F::word rhs[SPSI_TCA_TEAM][F::slice];
    alignas(16) typename F::number value[SPSI_TCA_TEAM][8];
    alignas(16) typename F::sum out[SPSI_TCA_TEAM][F::tile];
};

/* Barrier for the warps of a row; a single warp only synchronises its lanes.
 * Each position and size of a group of warps has its own named barrier, so
 * that warps that are one row ahead are not counted for others. */
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

/* Layout of fp16 in a warp's part of shared memory, the slice: word [pair
 * p][column] holds entries 2p and 2p + 1, 8 x tile numbers in all.  Pairs are 8
 * banks apart, chunks 4. */
template <int TILE> struct staged16 {
    typedef uint32_t word;
    typedef uint16_t number, element;
    typedef float sum;
    static constexpr int tile = TILE, stride = tile + 8, slice = 4 * stride + 4;
    static constexpr int products = tile / 16; /* matrix products of a warp for
                                                  a tile */

    static __device__ __forceinline__ uint16_t convert(double v, int exponent)
    {
        return half_float::round(exponent ? scalbn(v, -exponent) : v);
    }
    /* Loads the rows of X of the warp's entries; x points to the tile's first
     * column, of which `left` exist. */
    static __device__ __forceinline__ void
    gather(uint32_t *slice, const uint16_t *x, int64_t ld, const share &s,
           int lane, int left)
    {
        constexpr int units = tile / 4, steps = units / 8;
        uint32_t v[steps][2][2];

#pragma unroll
        for (int i = 0; i < steps; i++) {
            int n = lane + 32 * i, u = 4 * (n % units), entry = 2 * (n / units);

#pragma unroll
            for (int h = 0; h < 2; h++) {
                int32_t j = __shfl_sync(all_lanes, s.col, entry + h);

                load_words(row_of(x, j, ld) + u,
                           entry + h < s.own && u < left, v[i][h]);
            }
        }
#pragma unroll
        for (int i = 0; i < steps; i++) {
            int n = lane + 32 * i, u = 4 * (n % units), p = n / units;
            const uint32_t *a = v[i][0], *b = v[i][1];

            *(uint4 *)(slice + p * stride + u) =
                make_uint4(__byte_perm(a[0], b[0], 0x5410),
                           __byte_perm(a[0], b[0], 0x7632),
                           __byte_perm(a[1], b[1], 0x5410),
                           __byte_perm(a[1], b[1], 0x7632));
        }
    }
    /* Returns this lane's element of S: entries 2t and 2t + 1 of chunk gid of
     * the row. */
    typedef uint32_t values;
    static __device__ __forceinline__ values
    load_values(const uint16_t (*value)[8], int g, int gid, int t)
    {
        return gid < g ? *(const uint32_t *)(value[gid] + 2 * t) : 0u;
    }
    /* O += D S for columns j and j + 1 of this lane's chunk. */
    static __device__ __forceinline__ void
    multiply(float *o, const uint32_t *slice, int j, int t, values s)
    {
        uint2 d = *(const uint2 *)(slice + t * stride + j);

        half_float::multiply(o, d.x, d.y, s);
    }
};

/* Computes the partial trace of O: lanes 4 gid, gid a multiple of g, get the
 * sums of their two columns in two[]. */
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

/* Copies columns c .. c + width - 1 of a row from the output buffer to Y,
 * undoing the scaling. */
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

        y[j] = b.join(scaled(out[j], e), y + j);
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

/* Computes the product of one row, by all of its warps; s: the entries of this
 * warp. */
template <class F, class T>
__device__ __forceinline__ void
finish_row(team_memory<F> &m, const tca_work &w,
           const source<typename F::element> &x, const blocks<T> &b,
           const share &s, int warp, int lane)
{
    int g = spsi_tca_chunks(s.length), mine = warp & (g - 1);
    int first = warp - mine, wide = spsi_tca_width(g);
    int gid = lane / 4, t = lane % 4;
    int q = spsi_tca_chunk(g, gid), j = spsi_tca_column(g, gid);
    int of_row = w.exponent ? w.exponent[s.row] : 0;

    if (lane < 8) m.value[warp][lane] = F::convert(s.val, of_row);
    for (int c = 0; c < b.k; c += F::tile) {
        int left = b.k - c < F::tile ? b.k - c : F::tile;

        F::gather(m.rhs[warp], x.x + c, x.ld, s, lane, left);
        meet(first, g);
        typename F::values v = F::load_values(m.value + first, g, gid, t);
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
        if (mine == 0) flush<F>(m.out[warp], w, x, b, s.row, c, left, lane);
    }
}

/* Computes Y in the rows of up to 64 entries.  A thread block processes a run
 * of teams of the work list one after the other, and prefetches the bounds of
 * the row after next and the entries of the next row. */
template <class F, class T>
__global__ void __launch_bounds__(team_threads)
rows_kernel(tca_work w, source<typename F::element> x, blocks<T> b, int run)
{
    __shared__ team_memory<F> m;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
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
        if (s.row >= 0) finish_row<F>(m, w, x, b, s, warp, lane);
        s = next;
        next = then;
    }
}

/* Computes the pieces of longer rows.  The whole team processes 64 entries at a
 * time and keeps all products of its tile of columns; each tile of columns is a
 * separate thread block. */
template <class F, class T>
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
            F::gather(m.rhs[warp], x.x + c, x.ld, s, lane, left);
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

/* Computes Y from x, the scaled X in fp16. */
template <class F, class T>
sps_status launch_staged(const sps_tca_plan *plan, const blocks<T> &b,
                         const source<uint16_t> &x)
{
    sps_context *ctx = plan->super.ctx;
    const spsi_tca *list = &plan->work;
    int tiles = (int)ceil_div(b.k, F::tile);
    tca_work w = work_of(plan);

    if (list->n.pieces > 0) {
        int run = run_of(ctx, list->n.pieces, 1, 8);

        w.count = list->n.pieces;
        SPS_TRY_RETURN(run_kernel(ctx,
                                  (unsigned)(ceil_div(w.count, run) * tiles),
                                  team_threads, pieces_kernel<F, T>, w, x, b,
                                  run, tiles, (float *)plan->partial));
    }
    if (list->n.teams > 0) {
        int run = run_of(ctx, list->n.teams, 1, 64);

        w.count = list->n.teams;
        SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(w.count, run),
                                  team_threads, rows_kernel<F, T>, w, x, b,
                                  run));
    }
    return finish_rows<float>(plan, b, x);
}

struct variant {
    template <class T>
    static sps_status product(const sps_tca_plan *plan, const blocks<T> &b)
    {
        source<uint16_t> x;

        SPS_TRY_RETURN(half_x(plan, b, &x));
        return b.k <= 32 ? launch_staged<staged16<32>>(plan, b, x)
                         : launch_staged<staged16<64>>(plan, b, x);
    }
};

double cost(const sps_problem *p)
{
    return predicted(p, {0.23, 0.87, 0, 0.06, 1.7, 0, 0});
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tca_paper) = {
    .name = "spmm.tca_paper",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_NAN_STAYS_IN_ROW | SPS_SINGLE_BLOCKS,
    .roundoff = 0x1p-11,
    .size = sizeof(sps_tca_plan),
    .fits = spsi_cuda_tca_fits,
    .cost = cost,
    .plan = half_plan,
    .spmm = guarded<low_spmm<variant>>,
    .refresh = half_refresh,
};
