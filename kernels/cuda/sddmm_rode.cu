/* SPDX-License-Identifier: BSD-3-Clause */
/* sddmm_rode.cu - val[p] = alpha (u_i . v_j) [* a_p] + beta val[p] for each
 * stored (i, j), after RoDe (PPoPP'24): rows fall into pieces, a few lanes
 * take a piece, and a butterfly joins the lanes' parts of all its entries at
 * once.
 *
 * Pieces.  A row is cut into items of at most 8 entries.  A warp takes the
 * items of a chunk: a stretch of fixed length on the merge path of rows and
 * entries (row i, entry p lies at i + p), so that neither a hub of 10^5
 * entries nor 10^5 empty rows make a warp late.  The plan holds the row in
 * which each chunk begins; lanes take the rows of the chunk, a scan over the
 * numbers of items tells each group of lanes what it has to do.
 *
 * Item.  L lanes share the columns, 16 bytes each at a time; the fragment of
 * the row of U stays in registers for the entries of the item, the rows of V
 * of all of them are in flight together, the columns of the next item are
 * fetched meanwhile.  The 8 x L partial sums are added by recursive halving:
 * at distance L/2, ..., 1 a lane keeps the entries whose number has its own
 * bit and swaps the others away, so that in the end it owns entries l, l + L,
 * ...: 8 - 8/L exchanges and not 8 log2 L, and stores that lie together.
 *
 * An entry's sum is the same tree whatever the piece it came in; one owner,
 * no atomics.  Bytes: columns and val once, U about once, a row of V for each
 * entry as often as L1 and L2 forget it; chunks follow each other in a block
 * of threads that fills a multiprocessor, so that L1 remembers most of what
 * neighbouring rows of a stencil share. */
#include <cstring>

#include "sparse.cuh"

extern "C" const sps_kernel spsi_kernel_sddmm_rode;

namespace {

constexpr int threads = 512, warps = threads / 32, batch = 8;
/* Fragments of V that a lane has under way. */
constexpr int flight = 8;
/* Rows and entries of a chunk; chunks of a warp, at most. */
constexpr int chunk_length = 240, longest_run = 4;

struct pattern {
    int32_t nrow;
    int64_t nnz;
    const int32_t *__restrict__ rowptr32; /* or NULL */
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col;
    const void *__restrict__ val;
    bool single;

    __device__ __forceinline__ int64_t begin(int32_t i) const
    {
        return rowptr32 ? (int64_t)__ldg(rowptr32 + i) : __ldg(rowptr + i);
    }
    __device__ __forceinline__ double value(int64_t p) const
    {
        return single ? (double)__ldg((const float *)val + p)
                      : __ldg((const double *)val + p);
    }
};

/* Chunk c begins in row first[c], at entry c length - first[c].  A block of
 * threads takes `warps` neighbouring chunks at a time, `run` times, each time
 * `stride` further; blocks cover a slab of run * stride chunks by `across`
 * such strips. */
struct chunks {
    const int32_t *__restrict__ first; /* count + 1 */
    int64_t count;
    int length, run, stride, across;

    /* First chunk of a warp; count: it has none. */
    __device__ __forceinline__ int64_t begin(int64_t block, int warp) const
    {
        int64_t slab = block / across;
        int64_t within = block % across * warps + warp;

        return within < stride ? slab * run * stride + within : count;
    }
};

template <class T> struct sample {
    double alpha, beta;
    const T *__restrict__ u;
    int64_t ldu;
    const T *__restrict__ v;
    int64_t ldv;
    int d;
    bool multiply, aligned;
    T *__restrict__ out;
};

/* Columns are read once: they need not push rows of V out of L1. */
__device__ __forceinline__ int32_t once(const int32_t *p)
{
    int32_t v;

    asm("ld.global.nc.L1::no_allocate.s32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

/* 16 bytes of a row. */
template <class T> struct fragment {
    static constexpr int width = 16 / sizeof(T);
    T x[width];

    /* Of the numbers at p, `left` belong to the row; the others are zero and
     * not read.  WHOLE: p is 16-byte aligned, left a multiple of width. */
    template <bool WHOLE>
    __device__ __forceinline__ void fetch(const T *p, int left, bool aligned)
    {
        if ((WHOLE || aligned) && left >= width) {
            int4 raw = __ldg(reinterpret_cast<const int4 *>(p));

            memcpy(x, &raw, sizeof x);
            return;
        }
#pragma unroll
        for (int e = 0; e < width; e++)
            x[e] = !WHOLE && e < left ? __ldg(p + e) : T(0);
    }
    __device__ __forceinline__ T dot(const fragment &v, T sum) const
    {
#pragma unroll
        for (int e = 0; e < width; e++) sum = fma(x[e], v.x[e], sum);
        return sum;
    }
};

/* At most `batch` entries of one row, the same in the L lanes of a group but
 * for col, which lane l has of the entries l, l + L, ... (-1: no such). */
template <int L> struct item {
    int32_t row;
    int count;
    int64_t p;
    int32_t col[batch / L];
};

/* The items of `left` chunks from c on, 32 / L at a time.  A window
 * is 32 rows of a chunk, lane r has row number r; the bounds of the window
 * after the present one are under way while its items are handed out. */
template <int L> struct cursor {
    const pattern &A;
    const chunks &q;
    int64_t c;              /* chunk of the coming window */
    int left;               /* chunks from there on */
    int32_t row, last;      /* its first row; the last row of the chunk */
    int32_t first, beyond;  /* the same of the chunk after it */
    int64_t p0;             /* where the chunk begins, and its length */
    int length;
    int64_t from, to;       /* bounds of row number lane */
    int64_t origin;         /* of the present window: p0, and its first row */
    int32_t base;
    int span, upto, total;  /* begin and end of row number lane; its items
                               and those before; all items */
    int at;                 /* items handed out */

    __device__ __forceinline__ cursor(const pattern &A, const chunks &q)
        : A(A), q(q), c(q.begin(blockIdx.x, (int)threadIdx.x / 32)),
          left(q.run), row(0), last(-1), first(0), beyond(0), p0(0),
          length(0), from(0), to(0), origin(0), base(0), span(0), upto(0),
          total(0), at(0)
    {
        look(c);
        enter();
    }
    __device__ __forceinline__ void look(int64_t at)
    {
        if (at >= q.count) return;
        first = __ldg(q.first + at);
        beyond = __ldg(q.first + at + 1);
    }
    /* Begins chunk c, whose rows first and beyond tell, if there is one. */
    __device__ __forceinline__ void enter()
    {
        int64_t stop = (c + 1) * q.length, all = A.nrow + A.nnz;

        if (c >= q.count) left = 0;
        if (left == 0) return;
        row = first;
        last = beyond;
        p0 = c * q.length - row;
        length = (int)((stop < all ? stop : all) - last - p0);
        if (left > 1) look(c + q.stride);
        bounds();
    }
    __device__ __forceinline__ void bounds()
    {
        int32_t i = row + (int32_t)threadIdx.x % 32;

        from = to = p0;
        if (i <= last && i < A.nrow) {
            from = A.begin(i);
            to = A.begin(i + 1);
        }
    }
    /* The coming window becomes the present one; asks for the next. */
    __device__ __forceinline__ void open()
    {
        int64_t stop = p0 + length;
        int begin = from > p0 ? (int)(from - p0) : 0;
        int close = to < stop ? (int)(to - p0) : length;

        origin = p0;
        base = row;
        span = begin | close << 16;
        upto = (close - begin + batch - 1) / batch;
#pragma unroll
        for (int far = 1; far < 32; far *= 2) {
            int before = __shfl_up_sync(all_lanes, upto, far);

            if ((int)threadIdx.x % 32 >= far) upto += before;
        }
        total = __shfl_sync(all_lanes, upto, 31);
        at = 0;
        row += 32;
        if (row <= last) {
            bounds();
        } else {
            c += q.stride;
            left--;
            enter();
        }
    }
    /* One item for each group of lanes; false: there are no more.  The same
     * in all lanes of a warp. */
    __device__ __forceinline__ bool next(item<L> *it)
    {
        int k, r = 0, begin, before;

        while (at >= total) {
            if (left == 0) return false;
            open();
        }
        k = at + (int)threadIdx.x % 32 / L;
        at += 32 / L;
        /* The row is the number of rows whose items all lie before k. */
#pragma unroll
        for (int half = 16; half > 0; half /= 2)
            if (__shfl_sync(all_lanes, upto, r + half - 1) <= k) r += half;
        before = __shfl_up_sync(all_lanes, upto, 1);
        if ((int)threadIdx.x % 32 == 0) before = 0;
        before = __shfl_sync(all_lanes, before, r);
        begin = __shfl_sync(all_lanes, span, r);
        it->count = (begin >> 16) - (begin & 0xffff) - (k - before) * batch;
        if (it->count > batch) it->count = batch;
        if (k >= total) it->count = 0;
        it->row = base + r;
        it->p = origin + (begin & 0xffff) + (k - before) * batch;
#pragma unroll
        for (int e = 0; e < batch / L; e++) {
            int number = (int)threadIdx.x % L + e * L;

            it->col[e] = number < it->count ? once(A.col + it->p + number)
                                            : -1;
        }
        return true;
    }
};

/* sum[e] += u . v_e over all columns that belong to this lane: C fragments,
 * L apart, and again from far on for as long as there are columns. */
template <class T, int L, int C, bool WHOLE>
__device__ __forceinline__ void products(const sample<T> &s,
                                         const item<L> &it, T *sum)
{
    constexpr int width = fragment<T>::width, step = L * width;
    constexpr int unroll = flight / C < batch ? flight / C : batch;
    int mine = (int)threadIdx.x % L * width;

    for (int far = mine; far - mine < s.d; far += C * step) {
        const T *v = s.v + far;
        fragment<T> u[C];

#pragma unroll
        for (int w = 0; w < C; w++)
            u[w].template fetch<WHOLE>(
                s.u + it.row * s.ldu + far + w * step,
                it.count > 0 ? s.d - far - w * step : 0, s.aligned);
#pragma unroll
        for (int e0 = 0; e0 < batch; e0 += unroll) {
            fragment<T> there[unroll][C];

#pragma unroll
            for (int e = 0; e < unroll; e++) {
                int32_t j = __shfl_sync(all_lanes, it.col[(e0 + e) / L],
                                        (e0 + e) % L, L);
#pragma unroll
                for (int w = 0; w < C; w++)
                    there[e][w].template fetch<WHOLE>(
                        v + j * s.ldv + w * step,
                        j >= 0 ? s.d - far - w * step : 0, s.aligned);
            }
#pragma unroll
            for (int e = 0; e < unroll; e++)
#pragma unroll
                for (int w = 0; w < C; w++)
                    sum[e0 + e] = u[w].dot(there[e][w], sum[e0 + e]);
        }
    }
}

/* Recursive halving: sum[e] of entry e over the L lanes; lane l ends with the
 * entries l, l + L, ... in sum[0], sum[L], .... */
template <class T, int L> __device__ __forceinline__ void halve(T *sum)
{
#pragma unroll
    for (int half = L / 2; half > 0; half /= 2) {
        bool upper = ((int)threadIdx.x & half) != 0;

#pragma unroll
        for (int e = 0; e < batch; e += L)
#pragma unroll
            for (int x = e; x < e + half; x++) {
                T keep = upper ? sum[x + half] : sum[x];
                T give = upper ? sum[x] : sum[x + half];

                sum[x] = keep + __shfl_xor_sync(all_lanes, give, half);
            }
    }
}

template <class T, int L>
__device__ __forceinline__ void store(const pattern &A, const sample<T> &s,
                                      const item<L> &it, const T *sum)
{
#pragma unroll
    for (int e = 0; e < batch / L; e++) {
        int number = (int)threadIdx.x % L + e * L;

        if (number < it.count) {
            int64_t p = it.p + number;
            T r = (T)s.alpha * sum[e * L];

            if (s.multiply) r *= (T)A.value(p);
            s.out[p] = s.beta != 0 ? fma((T)s.beta, s.out[p], r) : r;
        }
    }
}

template <class T, int L, int C, bool WHOLE>
__global__ void __launch_bounds__(threads)
sddmm_kernel(pattern A, sample<T> s, chunks q)
{
    cursor<L> cursor(A, q);
    item<L> coming;
    bool more = cursor.next(&coming);

    while (more) {
        item<L> now = coming;
        T sum[batch] = {};

        more = cursor.next(&coming);
        products<T, L, C, WHOLE>(s, now, sum);
        halve<T, L>(sum);
        store<T, L>(A, s, now, sum);
    }
}

/* alpha = 0: U, V and A are not read. */
template <class T>
__global__ void __launch_bounds__(256)
scale_samples(double beta, T *val, int64_t nnz)
{
    int64_t p = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (p < nnz) val[p] = beta != 0 ? (T)beta * val[p] : T(0);
}

/* first[c]: the row where the merge path crosses c length: the last one with
 * rowptr[i] + i <= c length. */
__global__ void __launch_bounds__(256)
find_chunks(pattern A, int length, int32_t *first, int64_t count)
{
    int64_t c = (int64_t)blockIdx.x * 256 + threadIdx.x;
    int64_t at = c * length;
    int32_t low = 0, high = A.nrow; /* row low begins at or before at */

    if (c > count) return;
    while (low < high) {
        int32_t mid = low + (high - low + 1) / 2;

        if (A.begin(mid) + mid <= at) low = mid;
        else high = mid - 1;
    }
    first[c] = low;
}

/* ------------------------------------------------------------- host side */

struct rode_plan {
    sps_plan super;
    int32_t *first;
    int64_t count;
};

pattern pattern_of(const sps_csr_local *A)
{
    pattern m;

    m.nrow = (int32_t)A->nrow;
    m.nnz = A->nnz;
    m.rowptr32 = A->rowptr32;
    m.rowptr = A->rowptr;
    m.col = A->col;
    m.val = A->val;
    m.single = A->dtype == SPS_F32;
    return m;
}

template <class T> sample<T> sample_of(const sps_sddmm_args *args)
{
    const sps_block *U = args->U, *V = args->V;
    constexpr int width = fragment<T>::width;
    sample<T> s;

    s.alpha = args->alpha;
    s.beta = args->beta;
    s.u = (const T *)U->data;
    s.ldu = U->ld;
    s.v = (const T *)V->data;
    s.ldv = V->ld;
    s.d = U->k;
    s.multiply = args->multiply;
    s.aligned = ((uintptr_t)U->data | (uintptr_t)V->data) % 16 == 0 &&
                U->ld % width == 0 && V->ld % width == 0;
    s.out = (T *)args->val;
    return s;
}

template <class T, int L, int C>
sps_status launch(const sps_plan *plan, const sample<T> &s)
{
    sps_context *ctx = plan->ctx;
    const rode_plan *rode = (const rode_plan *)plan;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    pattern A = pattern_of(plan->A);
    chunks q = {rode->first, rode->count, chunk_length, longest_run, warps, 1};
    unsigned grid;

    /* Every multiprocessor gets several blocks. */
    while (q.run > 1 && ceil_div(q.count, q.run * warps) <
                            4 * spsi_cuda_state(ctx)->sms)
        q.run /= 2;
    grid = (unsigned)ceil_div(q.count, q.run * warps);
    if (s.aligned && s.d % fragment<T>::width == 0)
        sddmm_kernel<T, L, C, true><<<grid, threads, 0, stream>>>(A, s, q);
    else
        sddmm_kernel<T, L, C, false><<<grid, threads, 0, stream>>>(A, s, q);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

template <class T>
sps_status run(const sps_plan *plan, const sps_sddmm_args *args)
{
    sps_context *ctx = plan->ctx;
    sample<T> s = sample_of<T>(args);
    int64_t nnz = plan->A->nnz;
    size_t bytes = (size_t)s.d * sizeof(T);

    if (s.alpha == 0 || s.d == 0) {
        scale_samples<<<(unsigned)ceil_div(nnz, 256), 256, 0,
                        spsi_cuda_state(ctx)->stream>>>(s.beta, s.out, nnz);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    }
    if (bytes <= 32) return launch<T, 2, 1>(plan, s);
    if (bytes <= 64) return launch<T, 4, 1>(plan, s);
    if (bytes <= 128) return launch<T, 4, 2>(plan, s);
    return launch<T, 8, 2>(plan, s);
}

sps_status sddmm(const sps_plan *plan, const sps_sddmm_args *args)
{
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (plan->A->nnz == 0) return SPS_OK;
    return args->U->dtype == SPS_F64 ? run<double>(plan, args)
                                     : run<float>(plan, args);
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    const sps_csr_local *A = p->local;
    rode_plan *rode;
    void *room;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_sddmm_rode, p,
                                 sizeof(rode_plan), plan_p));
    rode = (rode_plan *)*plan_p;
    if (A->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    rode->count = ceil_div(A->nrow + A->nnz, chunk_length);
    rode->super.bytes = (size_t)(rode->count + 1) * sizeof(int32_t);
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, rode->super.bytes, &room));
    rode->first = (int32_t *)room;
    find_chunks<<<(unsigned)ceil_div(rode->count + 1, 256), 256, 0,
                  spsi_cuda_state(ctx)->stream>>>(pattern_of(A), chunk_length,
                                                  rode->first, rode->count);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

void destroy(sps_plan *plan)
{
    rode_plan *rode = (rode_plan *)plan;

    if (rode->first)
        spsi_cuda_release(plan->ctx, rode->first, rode->super.bytes);
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "2^31 rows or more";
    return p->A->nrow < INT32_MAX;
}

/* A row of V for each entry from L2, about 1.3 times as fast as memory, where
 * no neighbour brought it to L1; columns, samples and U from memory. */
double cost(const sps_problem *p)
{
    double width = (double)spsi_dtype_size(p->block);
    double distinct = p->f->distinct64 > 0 ? p->f->distinct64 : 1.0;
    double rows = (double)(p->f->nrow + p->f->ncol) * p->k * width;
    double memory = (double)p->f->nnz * (width + 4.0) + rows;
    double gather = (double)p->f->nnz * p->k * width * (0.2 + 0.8 * distinct);

    gather /= 1.3;
    return (memory > gather ? memory : gather) / (0.7 * p->bandwidth) + 4e-6;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_sddmm_rode) = {
    .name = "sddmm.rode",
    .op = SPS_OP_SDDMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = NULL,
    .sddmm = sddmm,
    .refresh = NULL,
    .destroy = destroy,
};
