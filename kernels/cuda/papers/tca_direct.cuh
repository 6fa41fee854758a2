/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_direct.cuh - TCA-SpMM with loads from memory directly to registers.
 *
 * The paper stages rows of X in shared memory because its 16 rows of D are 16 /
 * g columns of g chunks of one row of A.  Here, if the block is wide enough,
 * the 16 rows of D are 16 columns of a single chunk, so that the operands of a
 * lane are contiguous in a row of X, and the chunks of a row are added one
 * after the other in the same accumulators.  The number of products is the
 * same; no shared memory, no barriers, no trace.  Every column of S holds the
 * chunk's values, so all columns of O are equal to the result, and every lane
 * that stores a column has it.
 *
 * Blocks of up to 8 columns would leave rows of D unused: then D holds 2 or 4
 * chunks, S holds each chunk's values in the columns that its lanes own, and
 * the partial trace adds the chunks of a row by shuffles.
 *
 * A warp does the work of a whole team of the work list: 8 chunks, 4 at a time,
 * whose 32 entries its lanes prefetch one batch ahead; so all warps have the
 * same amount of work.
 *
 * Slots past the end of a row hold 0 and load nothing, so NaN and infinity
 * reach only the rows that store their column, in their own column: chunks of
 * different rows that share a product are different rows of D, and an element
 * of O depends on one row of D only. */
#ifndef SPS_CUDA_TCA_DIRECT_CUH
#define SPS_CUDA_TCA_DIRECT_CUH

#include "cuda/papers/tca_device.cuh"

namespace {

/* The 4 chunks that a warp processes at a time: lane 8 c + l has entry l of
 * chunk c, and the data of its row. */
struct batch {
    int32_t row;             /* row of the chunk; -1: no chunk */
    int64_t begin;
    int length;              /* entries of the row; for pieces 64
                                (SPSI_TCA_STEP) */
    bool last;               /* whether this is the last chunk of its row */
    int32_t col;             /* column of the entry; -1: no entry */
    double val;
    int exponent;            /* scaling exponent of the row */
};

/* --- Variants of the kernel, by precision. parts: number of matrix products
 * per chunk, for 16 columns each; column(f, gid): first of the two columns of
 * part f that the lanes with index gid hold.  The threads of a block and the
 * blocks per multiprocessor of each variant (threads, rows_held, pieces_held)
 * were the fastest on an H200. */

/* fp64 */
template <int PARTS> struct direct64 {
    typedef double sum, element, number;
    static constexpr int parts = PARTS, tile = 16 * parts;
    static constexpr int at_once = 4 / parts; /* number of chunks whose rows of
                                                 X are being loaded at the same
                                                 time */
    static constexpr int threads = 256, rows_held = parts == 1 ? 3 : 2;
    static constexpr int pieces_held = 2;
    struct rows {
        double2 low[PARTS], high[PARTS];
    };
    struct values {
        double v[2];
    };
    static __device__ __forceinline__ int column(int f, int gid)
    {
        return 16 * f + 2 * gid;
    }
    static __device__ __forceinline__ double round(double v, int)
    {
        return v;
    }
    template <bool ALIGNED>
    static __device__ __forceinline__ void
    load(const double *x, int64_t ld, int32_t col, int c, int left, int gid,
         int t, rows *r)
    {
        int32_t low = __shfl_sync(all_lanes, col, 8 * c + t);
        int32_t high = __shfl_sync(all_lanes, col, 8 * c + t + 4);

#pragma unroll
        for (int f = 0; f < parts; f++) {
            int j = column(f, gid);

            r->low[f] = load_two<ALIGNED>(row_of(x, low, ld) + j,
                                          low >= 0 ? left - j : 0);
            r->high[f] = load_two<ALIGNED>(row_of(x, high, ld) + j,
                                           high >= 0 ? left - j : 0);
        }
    }
    static __device__ __forceinline__ values spread(double v, int c, int t)
    {
        return values{{__shfl_sync(all_lanes, v, 8 * c + t),
                       __shfl_sync(all_lanes, v, 8 * c + t + 4)}};
    }
    static __device__ __forceinline__ void
    multiply(double (*o)[4], const rows &r, const values &s)
    {
#pragma unroll
        for (int f = 0; f < parts; f++) {
            double d[4] = {r.low[f].x, r.low[f].y, r.high[f].x, r.high[f].y};

            dmma16x8(o[f], d, s.v);
        }
    }
};

/* Adds a batch to the sums o.  For all rows that end in it, calls put(row, j,
 * sum of column j, sum of column j + 1) for the columns of this lane; sums of a
 * row that goes on remain in o.
 *
 * o is cleared after a row, not before one: CUDA 13.0's ptxas translates "0 for
 * the first chunk, else o" before an fp64 product into code that adds wrong
 * registers. */
template <class F, bool ALIGNED, class P>
__device__ __forceinline__ void
take_batch(const batch &s, const typename F::element *x, int64_t ld, int left,
           int gid, int t, typename F::sum (*o)[4], const P &put)
{
    unsigned lasts = __ballot_sync(all_lanes, s.last);
    typename F::number number = F::round(s.val, s.exponent);

#pragma unroll
    for (int c0 = 0; c0 < 4; c0 += F::at_once) {
        typename F::rows r[F::at_once];
        typename F::values v[F::at_once];

#pragma unroll
        for (int u = 0; u < F::at_once; u++)
            F::template load<ALIGNED>(x, ld, s.col, c0 + u, left, gid, t,
                                      &r[u]);
#pragma unroll
        for (int u = 0; u < F::at_once; u++)
            v[u] = F::spread(number, c0 + u, t);
#pragma unroll
        for (int u = 0; u < F::at_once; u++) {
            F::multiply(o, r[u], v[u]);
            if (lasts >> 8 * (c0 + u) & 1) {
                int32_t row = __shfl_sync(all_lanes, s.row, 8 * (c0 + u));
                typename F::sum a = o[0][0], b = o[0][2];

                /* The lanes with index t store part t. */
#pragma unroll
                for (int f = 1; f < F::parts; f++)
                    if (t == f) a = o[f][0], b = o[f][2];
                if (t < F::parts) put(row, F::column(t, gid), a, b);
#pragma unroll
                for (int f = 0; f < F::parts; f++)
                    o[f][0] = o[f][1] = o[f][2] = o[f][3] = 0;
            }
        }
    }
}

/* fp64 with G = 2 or 4 chunks per product, for narrow blocks: the lanes with
 * index gid hold chunk gid / (8 / G) and of it the columns 2 (gid mod 8 / G)
 * and the next. */
template <int G> struct narrow64 {
    typedef double sum, element, number;
    static constexpr int parts = 1, tile = 16 / G;
    static constexpr int threads = 512, rows_held = 2, pieces_held = 1;
};

template <class F, bool ALIGNED, int G, class P>
__device__ __forceinline__ void
take_narrow(const batch &s, const double *x, int64_t ld, int left, int gid,
            int t, double *o, const P &put)
{
    constexpr int products = 4 / G;
    int mine = spsi_tca_narrow_chunk(G, gid);
    int j = spsi_tca_narrow_column(G, gid);
    unsigned lasts = __ballot_sync(all_lanes, s.last);
    double2 low[products], high[products];
    double v[products][2];

#pragma unroll
    for (int m = 0; m < products; m++) {
        int at = 8 * (m * G + mine) + t;
        int32_t a = __shfl_sync(all_lanes, s.col, at);
        int32_t b = __shfl_sync(all_lanes, s.col, at + 4);

        v[m][0] = __shfl_sync(all_lanes, s.val, at);
        v[m][1] = __shfl_sync(all_lanes, s.val, at + 4);
        low[m] = load_two<ALIGNED>(row_of(x, a, ld) + j, a >= 0 ? left - j : 0);
        high[m] = load_two<ALIGNED>(row_of(x, b, ld) + j,
                                    b >= 0 ? left - j : 0);
    }
#pragma unroll
    for (int m = 0; m < products; m++) {
        double d[4] = {low[m].x, low[m].y, high[m].x, high[m].y}, two[2];
        int at = 8 * (m * G + mine), span;
        int32_t row;

        dmma16x8(o, d, v[m]);
        /* If several rows share a product, all of them end in it; if it belongs
         * to one row, that row may go on. */
        if (!(lasts >> 8 * m * G & ((1ull << 8 * G) - 1))) continue;
        row = __shfl_sync(all_lanes, s.row, at);
        span = spsi_tca_chunks(__shfl_sync(all_lanes, s.length, at));
        if (span > G) span = G;
        two[0] = o[0];
        two[1] = o[2];
#pragma unroll
        for (int step = 1; step < G; step *= 2) {
            int above = spsi_tca_narrow_distance(G, step);
            double a = __shfl_down_sync(all_lanes, two[0], above);
            double b = __shfl_down_sync(all_lanes, two[1], above);

            if (step < span) two[0] += a, two[1] += b;
        }
        if (t == spsi_tca_narrow_lane(G, gid) && (mine & (span - 1)) == 0 &&
            row >= 0)
            put(row, j, two[0], two[1]);
        o[0] = o[1] = o[2] = o[3] = 0;
    }
}

template <class F, bool ALIGNED, class P>
__device__ __forceinline__ void
take(const batch &s, const typename F::element *x, int64_t ld, int left,
     int gid, int t, typename F::sum (*o)[4], const P &put)
{
    if constexpr (F::tile < 16)
        take_narrow<F, ALIGNED, 16 / F::tile>(s, x, ld, left, gid, t, o[0],
                                              put);
    else
        take_batch<F, ALIGNED>(s, x, ld, left, gid, t, o, put);
}

/* Loads entry l of the chunk that begins at entry `from`, where the row has
 * `have` entries left. */
__device__ __forceinline__ void load_entry(const tca_work &w, int64_t from,
                                           int l, int have, batch *s)
{
    s->col = -1;
    s->val = 0;
    if (l < have) {
        s->col = __ldg(w.col + from + l);
        s->val = w.value(from + l);
    }
}

/* Stores two consecutive columns of a row of Y; c + 1 may be past the end. */
template <class F, class T> struct writer {
    const tca_work &w;
    const source<typename F::element> &x;
    const blocks<T> &b;
    int first;   /* first column of the tile */
    bool pairs;  /* Y is aligned to two numbers, and ld is even */

    __device__ __forceinline__ void operator()(int32_t row, int c,
                                               typename F::sum s0,
                                               typename F::sum s1) const
    {
        T *y = b.y + (int64_t)row * b.ldy + first + c;
        int left = b.k - first - c;
        double v0 = s0, v1 = s1;

        if (w.exponent && left > 0) {
            int e = w.exponent[row];

            v0 = scaled(s0, e + x.exponent_of(first + c));
            if (left > 1) v1 = scaled(s1, e + x.exponent_of(first + c + 1));
        }
        if (pairs && left >= 2) {
            T two[2] = {};

            if (b.beta != 0) read_two(y, two);
            two[0] = b.join(v0, &two[0]);
            two[1] = b.join(v1, &two[1]);
            write_two(y, two);
        } else {
            if (left >= 1) y[0] = b.join(v0, y);
            if (left >= 2) y[1] = b.join(v1, y + 1);
        }
    }
    static __device__ __forceinline__ void read_two(const double *y, double *v)
    {
        double2 p = *(const double2 *)y;

        v[0] = p.x;
        v[1] = p.y;
    }
    static __device__ __forceinline__ void read_two(const float *y, float *v)
    {
        float2 p = *(const float2 *)y;

        v[0] = p.x;
        v[1] = p.y;
    }
    static __device__ __forceinline__ void write_two(double *y, const double *v)
    {
        *(double2 *)y = make_double2(v[0], v[1]);
    }
    static __device__ __forceinline__ void write_two(float *y, const float *v)
    {
        *(float2 *)y = make_float2(v[0], v[1]);
    }
};

/* Computes Y in the rows of up to 64 entries.  A thread block processes
 * consecutive teams of the work list (8 chunks of 8 entries each), so that
 * neighbouring rows share X in L1.  A warp processes a team in two batches of 4
 * chunks.  While it loads the rows of X for a batch, the entries of the next
 * batch, the row bounds of the second next and the row numbers of the third are
 * also being loaded. */
template <class F, class T, bool ALIGNED>
__global__ void __launch_bounds__(F::threads, F::rows_held)
direct_rows(tca_work w, source<typename F::element> x, blocks<T> b, int run,
            int tiles, bool pairs)
{
    constexpr int warps = F::threads / 32;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int first = (int)(blockIdx.x % (unsigned)tiles) * F::tile;
    int64_t at = (int64_t)(blockIdx.x / (unsigned)tiles) * run;
    int64_t last = at + run < w.count ? at + run : w.count;
    typename F::sum o[F::parts][4] = {};
    batch s = {}, next = {}, then;
    int32_t after;

    at += warp;
    auto row_at = [&](int64_t n) -> int32_t {
        int64_t team = at + n / 2 * warps;

        return team < last ? __ldg(w.slot + SPSI_TCA_TEAM * team +
                                   4 * (n % 2) + lane / 8) : -1;
    };
    auto bounds = [&](int32_t row, batch *e) {
        e->row = row;
        e->begin = 0;
        e->length = 0;
        e->exponent = 0;
        if (row >= 0) {
            e->begin = w.begin(row);
            e->length = (int)(w.begin((int64_t)row + 1) - e->begin);
            e->exponent = w.exponent_of(row);
        }
    };
    auto entries = [&](int64_t n, batch *e) {
        int g = spsi_tca_chunks(e->length);
        int chunk = (4 * (int)(n % 2) + lane / 8) & (g - 1);

        e->last = e->row >= 0 && chunk == g - 1;
        load_entry(w, e->begin + 8 * chunk, lane % 8, e->length - 8 * chunk, e);
    };

    b.resolve();
    writer<F, T> put = {w, x, b, first, pairs};

    bounds(row_at(0), &s);
    bounds(row_at(1), &next);
    after = row_at(2);
    entries(0, &s);
    for (int64_t n = 0; at + n / 2 * warps < last; n++) {
        entries(n + 1, &next);
        bounds(after, &then);
        after = row_at(n + 3);
        take<F, ALIGNED>(s, x.x + first, x.ld, b.k - first, lane / 4, lane % 4,
                         o, put);
        s = next;
        next = then;
    }
}

/* Computes the pieces of longer rows, one warp for each, 32 entries at a
 * time. */
template <class F, class T, bool ALIGNED>
__global__ void __launch_bounds__(F::threads, F::pieces_held)
direct_pieces(tca_work w, source<typename F::element> x, blocks<T> b, int run,
              int tiles, bool pairs, typename F::sum *__restrict__ partial)
{
    constexpr int warps = F::threads / 32;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int first = (int)(blockIdx.x % (unsigned)tiles) * F::tile;
    int64_t at = (int64_t)(blockIdx.x / (unsigned)tiles) * run;
    int64_t last = at + run < w.count ? at + run : w.count;
    typename F::sum o[F::parts][4] = {};
    spsi_tca_piece now, next_piece;
    batch s, next;
    int done = 0;

    at += warp;
    if (at >= last) return;
    b.resolve();
    writer<F, T> put = {w, x, b, first, pairs};
    auto piece_at = [&](int64_t p) {
        return w.piece[p < last ? p : last - 1];
    };
    auto entries = [&](const spsi_tca_piece &p, int from, batch *e) {
        int have = p.length - from - 8 * (lane / 8);

        e->row = have > 0 ? p.row : -1;
        e->length = SPSI_TCA_STEP;
        e->exponent = have > 0 ? w.exponent_of(p.row) : 0;
        e->last = have > 0 && have <= 8;
        load_entry(w, p.begin + from + lane / 8 * 8, lane % 8, have, e);
    };

    now = piece_at(at);
    next_piece = piece_at(at + warps);
    entries(now, 0, &s);
    while (at < last) {
        spsi_tca_piece p = now;

        done += 32;
        if (done >= now.length) {
            done = 0;
            at += warps;
            now = next_piece;
            next_piece = piece_at(at + warps);
        }
        entries(now, done, &next);
        take<F, ALIGNED>(s, x.x + first, x.ld, b.k - first, lane / 4, lane % 4,
                         o, [&](int32_t row, int c, typename F::sum s0,
                                typename F::sum s1) {
            typename F::sum *to = partial + p.partial * b.k + first + c;

            if (p.partial < 0) {
                put(row, c, s0, s1);
            } else {
                if (first + c < b.k) to[0] = s0;
                if (first + c + 1 < b.k) to[1] = s1;
            }
        });
        s = next;
    }
}

/* Computes Y from x, which is X in the element type of the variant F, with its
 * scaling exponents. */
template <class F, class T, bool ALIGNED>
sps_status launch_direct(const sps_tca_plan *plan, const blocks<T> &b,
                         const source<typename F::element> &x)
{
    sps_context *ctx = plan->super.ctx;
    const spsi_tca *list = &plan->work;
    int tiles = (int)ceil_div(b.k, F::tile);
    bool pairs = b.ldy % 2 == 0 && (uintptr_t)b.y % (2 * sizeof(T)) == 0;
    tca_work w = work_of(plan);

    if (list->n.pieces > 0) {
        int run = run_of(ctx, list->n.pieces, F::threads / 32, 256);

        w.count = list->n.pieces;
        SPS_TRY_RETURN(run_kernel(ctx,
                                  (unsigned)(ceil_div(w.count, run) * tiles),
                                  F::threads, direct_pieces<F, T, ALIGNED>, w,
                                  x, b, run, tiles, pairs,
                                  (typename F::sum *)plan->partial));
    }
    if (list->n.teams > 0) {
        int run = run_of(ctx, list->n.teams, F::threads / 32, 256);

        w.count = list->n.teams;
        SPS_TRY_RETURN(run_kernel(ctx,
                                  (unsigned)(ceil_div(w.count, run) * tiles),
                                  F::threads, direct_rows<F, T, ALIGNED>, w, x,
                                  b, run, tiles, pairs));
    }
    return finish_rows<typename F::sum>(plan, b, x);
}

} // namespace

#endif
