/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_rode_short.cu - spmm.rode for an X of 16 columns of floats, whose rows
 * are 4 vectors, and a Y of floats or of doubles.
 *
 * 4 lanes sum a row, in the same order as rows_kernel (spmm_rode.cuh).  What
 * differs is when loads are issued: offsets two chunks of 8 rows ahead, entries
 * one chunk ahead, and the rows of W and of the old Y before the rows of X for
 * the same chunk, so that a chunk waits for memory once, not three times.
 *
 * Bytes: A, X, W and Y are read or written once; a row of X is read again when
 * it has left L1 and L2.  With A and Y in floats, and without W, these are
 * 8 nnz + 4 n + (64 + 64) n: 769 MB for the 7-point grid of 160^3. */
#include "cuda/sparse/vectors.cuh"
#include "cuda/sparse/spmm_rode_short.h"

namespace {

constexpr int threads = 768, warps = threads / 32;
constexpr int chunk = 8;               /* rows of a warp, 4 lanes each */

/* Returns *p, which is not kept in L1, if `some`, else a value that is not
 * used. */
template <class T>
__device__ __forceinline__ T read_once(const T *p, bool some);

template <>
__device__ __forceinline__ int32_t read_once(const int32_t *p, bool some)
{
    int32_t v = -1;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
                 "@q ld.global.nc.L1::no_allocate.s32 %0, [%1]; }"
                 : "+r"(v) : "l"(p), "r"((int)some)
                 : "memory");
    return v;
}
template <>
__device__ __forceinline__ float read_once(const float *p, bool some)
{
    float v = 0;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
                 "@q ld.global.nc.L1::no_allocate.f32 %0, [%1]; }"
                 : "+f"(v) : "l"(p), "r"((int)some)
                 : "memory");
    return v;
}
template <>
__device__ __forceinline__ double read_once(const double *p, bool some)
{
    double v = 0;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
                 "@q ld.global.nc.L1::no_allocate.f64 %0, [%1]; }"
                 : "+d"(v) : "l"(p), "r"((int)some)
                 : "memory");
    return v;
}

/* Loads 4 floats from p into v if `some`.  The compiler must not move this load
 * (volatile), nor use the read-only cache, since p may be in Y, which this lane
 * writes later. */
__device__ __forceinline__ void read_vector(const float *p, bool some,
                                            vec<float, 4> &v)
{
    asm volatile("{ .reg .pred q; setp.ne.s32 q, %5, 0;\n\t"
                 "@q ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4]; }"
                 : "+f"(v.v[0]), "+f"(v.v[1]), "+f"(v.v[2]), "+f"(v.v[3])
                 : "l"(p), "r"((int)some)
                 : "memory");
}

/* The rows in `count` chunks of 8, of which `run` make a range, the work of a
 * thread block. */
struct chunks {
    int count, run, ranges;
};

/* Position of a warp. */
struct position {
    const chunks &o;
    int range, at, last;

    __device__ __forceinline__ explicit position(const chunks &of)
        : o(of), range((int)blockIdx.x)
    {
        open();
        settle();
    }
    __device__ __forceinline__ void open()
    {
        at = range * o.run + (int)(threadIdx.x >> 5);
        last = min((range + 1) * o.run, o.count);
    }
    __device__ __forceinline__ bool done() const { return range >= o.ranges; }
    __device__ __forceinline__ void settle()
    {
        while (at >= last && !done()) {
            range += (int)gridDim.x;
            open();
        }
    }
    __device__ __forceinline__ void advance()
    {
        at += warps;
        settle();
    }
    /* Returns row number `sub` of the current chunk, or -1 if there is none. */
    __device__ __forceinline__ int row(int sub, int nrow) const
    {
        return !done() && chunk * at + sub < nrow ? chunk * at + sub : -1;
    }
};

/* A pipeline over the rows of a lane, one in each chunk: of the next row the
 * first entries are loaded ahead, of the row after it the offsets. */
template <class T> struct rows_ahead {
    static constexpr int L = 4, own = chunk / L;
    const matrix<int32_t, T> &A;
    position at;              /* two chunks ahead */
    const int sub, l;         /* row within a chunk; lane of the row */
    bool live;                /* the next chunk exists */
    int row, length;          /* the next row, or -1; number of its entries, of
                                 which the first ones are in col and val */
    int32_t from;
    int row2;                 /* the row after it, or -1, and its offsets */
    int32_t begin2, end2;
    int32_t col[own];
    T val[own];

    __device__ __forceinline__ rows_ahead(const matrix<int32_t, T> &of,
                                          const chunks &o)
        : A(of), at(o), sub((int)threadIdx.x % 32 / L),
          l((int)threadIdx.x % L)
    {
        look();
        turn();
        entries(from, length, 0);
        look();
    }
    /* Loads the offsets of the row at `at`. */
    __device__ __forceinline__ void look()
    {
        row2 = at.row(sub, (int)A.nrow);
        begin2 = read_once(A.rowptr + row2, row2 >= 0);
        end2 = read_once(A.rowptr + row2 + 1, row2 >= 0);
    }
    __device__ __forceinline__ void turn()
    {
        row = row2;
        from = begin2;
        length = row2 >= 0 ? end2 - begin2 : 0;
        live = !at.done();
        at.advance();
    }
    /* Loads entries done .. done + chunk - 1 of the row that begins at
     * `first`. */
    __device__ __forceinline__ void entries(int32_t first, int count, int done)
    {
#pragma unroll
        for (int e = 0; e < own; e++) {
            const int number = done + l + e * L;

            col[e] = read_once(A.col + (first + number), number < count);
            val[e] = read_once(A.val + (first + number), number < count);
        }
    }
};

/* The elements of W and of the old Y for an epilogue. */
struct operands {
    vec<float, 4> w, old;

    __device__ __forceinline__ void read(const blocks<float> &b, int64_t at,
                                         bool some)
    {
        if (b.w) read_vector(b.w + at, some, w);
        if (b.beta != 0) read_vector(b.y + at, some, old);
    }
};

/* Returns the elements of Y for 4 sums of row i, by the formula of join in
 * sparse.cuh; `at` is their offset in X. */
__device__ __forceinline__ vec<float, 4>
joined(const blocks<float> &b, const vec<float, 4> &sum, const operands &o,
       int64_t i, int64_t at)
{
    vec<float, 4> r, own = {};
    const float d = b.d ? (float)b.d[i] : 1.0f;

    if (b.delta != 0) whole(b.x + at, own);
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float v = b.fused || b.alpha != 0 ? (float)b.alpha * sum.v[e] : 0.0f;

        if (b.w) v = fma((float)b.gamma, o.w.v[e], v);
        if (b.d) v *= d;
        if (b.beta != 0) v = fma((float)b.beta, o.old.v[e], v);
        if (b.delta != 0) v = fma((float)b.delta, own.v[e], v);
        r.v[e] = v;
    }
    return r;
}

/* Stores 4 sums of doubles. */
__device__ __forceinline__ void put(double *y, const vec<double, 4> &r)
{
    put(y, vec<double, 2>{{ r.v[0], r.v[1] }});
    put(y + 2, vec<double, 2>{{ r.v[2], r.v[3] }});
}

/* acc += a v. */
template <class T>
__device__ __forceinline__ void add_vector(T a, const vec<float, 4> &v,
                                           vec<T, 4> &acc)
{
#pragma unroll
    for (int w = 0; w < 4; w++) acc.v[w] = fma(a, (T)v.v[w], acc.v[w]);
}

/* v[u] = this lane's vector of row j[u] of X, zero if j[u] < 0. */
template <bool ALL>
__device__ __forceinline__ void gather(const int32_t (&j)[chunk], const char *x,
                                       uint32_t stride,
                                       vec<float, 4> (&v)[chunk])
{
#pragma unroll
    for (int u = 0; u < chunk; u++)
        v[u] = fetch<4>(reinterpret_cast<const float *>(
                            x + (uint64_t)(uint32_t)j[u] * stride),
                        ALL || j[u] >= 0 ? 4 : 0);
}

/* T: the type of A and Y; only floats have an epilogue.  EARLY: the epilogue
 * has W or an old Y, which are read before the gathers. */
template <class T, bool EARLY>
__global__ void __launch_bounds__(threads)
short_kernel(matrix<int32_t, T> A, blocks<T> b,
             const __grid_constant__ chunks o)
{
    constexpr int W = 4, L = 4, own = chunk / L;
    const int l = (int)threadIdx.x % L;
    const char *const x = reinterpret_cast<const char *>(b.x) + 16 * l;
    const uint32_t stride = (uint32_t)(b.ldx * (int64_t)sizeof(float));
    rows_ahead<T> next(A, o);

    b.resolve();
    while (next.live) {
        vec<T, W> acc = {};
        operands early = {};
        const int i = next.row, mine = next.length;
        const int32_t here = next.from;
        const int most = __reduce_max_sync(all_lanes, mine);
        const int least = __reduce_min_sync(all_lanes, mine);
        const int64_t at = (int64_t)i * b.ldy + W * l;

        if constexpr (EARLY) early.read(b, at, i >= 0);
        next.turn();
        next.look();

        for (int done = 0;; done += chunk) {
            int32_t now[own], j[chunk];
            T times[own];
            vec<float, W> v[chunk];
            const bool more = done + chunk < most;

#pragma unroll
            for (int e = 0; e < own; e++) {
                now[e] = next.col[e];
                times[e] = next.val[e];
            }
            if (more) next.entries(here, mine, done + chunk);
            else next.entries(next.from, next.length, 0);
#pragma unroll
            for (int u = 0; u < chunk; u++)
                j[u] = __shfl_sync(all_lanes, now[u / L], u % L, L);
            if (done + chunk <= least) gather<true>(j, x, stride, v);
            else gather<false>(j, x, stride, v);
#pragma unroll
            for (int u = 0; u < chunk; u++)
                add_vector(__shfl_sync(all_lanes, times[u / L], u % L, L), v[u],
                           acc);
            if (!more) break;
        }
        if (i >= 0) {
            if constexpr (sizeof(T) == 8) {
#pragma unroll
                for (int w = 0; w < W; w++) acc.v[w] *= b.alpha;
                put(b.y + at, acc);
            } else {
                put(b.y + at, joined(b, acc, early, i,
                                     (int64_t)i * b.ldx + W * l));
            }
        }
    }
}

template <class T>
sps_status launch(const sps_plan *plan, const chunks &o,
                  const sps_spmm_args *args)
{
    sps_context *ctx = plan->ctx;
    const blocks<T> b = blocks_of<T>(args);
    const int sms = spsi_cuda_state(ctx)->sms;
    auto kernel = short_kernel<T, false>;

    if constexpr (sizeof(T) == 4)
        if (b.scalars || b.beta != 0 || b.w) kernel = short_kernel<T, true>;
    return run_kernel(ctx, (unsigned)(sms < o.ranges ? sms : o.ranges), threads,
                      kernel, matrix_of<int32_t, T>(plan->A), b, o);
}

/* Returns the chunks of a range: 48 KB of X, as in spmm_rode.cu, but several
 * ranges for a multiprocessor. */
int run_of(const sps_plan *plan, const sps_spmm_args *args)
{
    const int row = args->X->k * (int)sizeof(float);
    const int64_t count = ceil_div(plan->A->nrow, chunk);
    const int64_t least = 4 * spsi_cuda_state(plan->ctx)->sms;
    int run = (48 << 10) / row / chunk / warps * warps;

    while (run > warps && ceil_div(count, run) < least) run -= warps;
    return run;
}

/* Returns whether rows of this block are whole vectors. */
bool whole_vectors(const sps_block *Y)
{
    const int64_t size = (int64_t)spsi_dtype_size(Y->dtype);

    return Y->ld * size % 16 == 0 && (uintptr_t)Y->data % 16 == 0 &&
           Y->ld < (int64_t)(UINT32_MAX / (uint32_t)size);
}

} // namespace

bool spsi_cuda_rode_serves(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_csr_local *A = plan->A;
    const sps_block *X = args->X, *Y = args->Y;
    const sps_block *W = args->epilogue ? args->epilogue->W : NULL;

    if (!A->rowptr32 || A->dtype != Y->dtype || A->nrow >= INT32_MAX / 2 ||
        X->dtype != SPS_F32 || X->k != 16)
        return false;
    if (Y->dtype == SPS_F64 &&
        (args->epilogue || args->scalars || args->beta != 0))
        return false;
    return whole_vectors(X) && whole_vectors(Y) && (!W || whole_vectors(W));
}

sps_status spsi_cuda_rode_short(const sps_plan *plan, const sps_spmm_args *args)
{
    const int count = (int)ceil_div(plan->A->nrow, chunk);
    const int run = run_of(plan, args);
    const chunks c = { count, run, (int)ceil_div(count, run) };

    return args->Y->dtype == SPS_F32 ? launch<float>(plan, c, args)
                                     : launch<double>(plan, c, args);
}
