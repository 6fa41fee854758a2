/* SPDX-License-Identifier: BSD-3-Clause */
/* features_device.cu - the integers from which features of a matrix in device
 * memory are computed (lib/matrix/windows.h), the same as on the host.
 *
 * Sums and maxima of integers by atomics, whose order is irrelevant.  One pass
 * reads the offsets and the first and last column of each row; samples read up
 * to 1024 windows each.  A thread block examines a window, each thread some of
 * its entries. */
#include "cuda/plan/sample.cuh"

namespace {

typedef unsigned long long word;

/* Partial results of one thread, then of its thread block. */
struct row_sums {
    word slack, longest, bandwidth, squares[2], padded32;
};

__device__ __forceinline__ void raise(word &most, word value)
{
    if (value > most) most = value;
}

/* Adds a row of `length` entries, whose first and last columns are at p and at
 * p + length - 1, to the sums of a thread. */
__device__ __forceinline__ void add_row(row_sums &s, int64_t i, int64_t p,
                                        int64_t length, int64_t mean,
                                        const int32_t *__restrict__ col)
{
    const word off = (word)(length - mean), square = off * off;

    raise(s.slack, (word)(INT64_MAX - length));
    raise(s.longest, (word)length);
    s.squares[0] += square & 0xffffffffu;
    s.squares[1] += square >> 32;
    if (length == 0) return;
    const int64_t before = i - col[p], behind = col[p + length - 1] - i;

    if (before > 0) raise(s.bandwidth, (word)before);
    if (behind > 0) raise(s.bandwidth, (word)behind);
}

__device__ __forceinline__ void join(row_sums *to, const row_sums &s)
{
    atomicMax(&to->slack, s.slack);
    atomicMax(&to->longest, s.longest);
    atomicMax(&to->bandwidth, s.bandwidth);
    atomicAdd(&to->squares[0], s.squares[0]);
    atomicAdd(&to->squares[1], s.squares[1]);
    atomicAdd(&to->padded32, s.padded32);
}

/* A warp takes 32 rows, one slice of padded32, at a time.  bin SPS_LENGTH_BINS
 * is of lanes without a row. */
template <class I>
__global__ void __launch_bounds__(256)
row_kernel(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
           int64_t nrow, int64_t mean, sps_raw_features *raw)
{
    __shared__ row_sums all;
    __shared__ word lengths[SPS_LENGTH_BINS + 1];
    const int lane = (int)threadIdx.x % 32;
    row_sums own = {};

    if (threadIdx.x == 0) all = row_sums();
    for (int b = (int)threadIdx.x; b <= SPS_LENGTH_BINS; b += 256)
        lengths[b] = 0;
    __syncthreads();
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
         i - lane < nrow; i += (int64_t)gridDim.x * 256) {
        const int64_t p = i < nrow ? rowptr[i] : 0;
        const int64_t length = i < nrow ? rowptr[i + 1] - p : 0;
        const int64_t most = __reduce_max_sync(all_lanes, (unsigned)length);
        int bin = i < nrow ? length > 0 ? 64 - __clzll(length) : 0
                           : SPS_LENGTH_BINS;

        if (i < nrow && bin >= SPS_LENGTH_BINS) bin = SPS_LENGTH_BINS - 1;
        const unsigned same = __match_any_sync(all_lanes, bin);

        if (lane == __ffs(same) - 1)
            atomicAdd(&lengths[bin], (word)__popc(same));
        if (lane == 0) own.padded32 += 32 * (word)most;
        if (i < nrow) add_row(own, i, p, length, mean, col);
    }
    join(&all, own);
    __syncthreads();
    if (threadIdx.x < SPS_LENGTH_BINS && lengths[threadIdx.x] > 0)
        atomicAdd((word *)&raw->lengths[threadIdx.x], lengths[threadIdx.x]);
    if (threadIdx.x > 0) return;
    atomicMax((word *)&raw->slack, all.slack);
    atomicMax((word *)&raw->longest, all.longest);
    atomicMax((word *)&raw->bandwidth, all.bandwidth);
    atomicAdd((word *)&raw->squares[0], all.squares[0]);
    atomicAdd((word *)&raw->squares[1], all.squares[1]);
    atomicAdd((word *)&raw->padded32, all.padded32);
}

/* A set of block columns in shared memory: how many of a window differ does not
 * depend on the order in which they come. */
constexpr int seen_most = 8192;

/* Its size for so many entries, twice as many at least; 0: they do not fit. */
__device__ inline int seen_size(int64_t entries)
{
    int size = 256;

    if (2 * entries > seen_most) return 0;
    while (size < 2 * entries) size *= 2;
    return size;
}

/* Whether block column j was not in the set. */
__device__ inline bool seen_insert(int32_t *seen, int size, int32_t j)
{
    int at = (int)((uint32_t)j * 2654435769u >> 16) & (size - 1);

    for (;; at = (at + 1) & (size - 1)) {
        const int32_t held = atomicCAS(seen + at, -1, j);

        if (held == -1) return true;
        if (held == j) return false;
    }
}

/* Thread block x of row y examines windows x, x + grid, ... of sample y. */
template <class I>
__global__ void __launch_bounds__(sample_threads)
sample_kernel(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
              int64_t nrow, int64_t nnz, sps_raw_features *raw)
{
    __shared__ sample_rows<64> rows;
    __shared__ int32_t seen[seen_most];
    const int t = (int)blockIdx.y;
    const sps_sample s = spsi_sample_of(nrow, nnz, t);
    sps_sample_sums *to = &raw->sample[t];

    if (t >= SPS_SAMPLE_WIDEST &&
        !spsi_sample_even(nrow, nnz, raw->longest, s.b)) return;
    for (int64_t w = blockIdx.x; w < s.windows; w += gridDim.x) {
        const int64_t i = spsi_sample_row(&s, nrow, w);
        int64_t columns = 0, full = 0;

        rows.open(s.rows, [&](int r, int64_t *begin, int64_t *end) {
            *begin = i + r < nrow ? rowptr[i + r] : 0;
            *end = i + r < nrow ? rowptr[i + r + 1] : 0;
        });
        const int64_t entries = min(rows.at[s.rows], s.cut);

        const int size = seen_size(entries);

        if (entries > s.skip) continue;
        for (int q = (int)threadIdx.x; q < size; q += sample_threads)
            seen[q] = -1;
        __syncthreads();
        rows.each(s.rows, entries, [&](int r, int64_t p) {
            columns += size ? seen_insert(seen, size, col[p] / s.b)
                            : spsi_sample_first(col, rows.begin, rows.end, r,
                                                p, s.b);
            if (s.full && r == 0 && p < rows.begin[0] + SPS_SAMPLE_ENTRIES &&
                spsi_sample_full(col, rows.begin, rows.end, p, s.b))
                full += s.b * s.b;
        });
        columns = sum_over_block(columns);
        full = sum_over_block(full);
        if (threadIdx.x > 0) continue;
        atomicAdd((word *)&to->entries, (word)entries);
        atomicAdd((word *)&to->columns, (word)columns);
        atomicAdd((word *)&to->full, (word)full);
        atomicMax((word *)&to->most, (word)columns);
    }
}

/* One thread block per window: the segments are found one after another. */
template <class I>
__global__ void __launch_bounds__(SPS_NEAR_ROWS)
near_kernel(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
            int64_t nrow, int64_t windows, sps_raw_features *raw)
{
    __shared__ unsigned next;
    const int64_t row = (int64_t)blockIdx.x * (nrow / windows);
    const int64_t first = rowptr[row], i = row + threadIdx.x;
    const int rows = __syncthreads_count(
        i < nrow && rowptr[i + 1] - first <= SPS_NEAR_ENTRIES);
    const int64_t last = rowptr[row + rows];
    int64_t from = 0;
    int used = 0;

    for (;; used++) {
        unsigned least = UINT_MAX;

        if (threadIdx.x == 0) next = UINT_MAX;
        for (int64_t p = first + threadIdx.x; p < last; p += SPS_NEAR_ROWS)
            if (col[p] >= from && (unsigned)col[p] < least)
                least = (unsigned)col[p];
        least = __reduce_min_sync(all_lanes, least);
        __syncthreads();
        if (threadIdx.x % 32 == 0) atomicMin(&next, least);
        __syncthreads();
        least = next;
        __syncthreads();
        if (least == UINT_MAX || used == SPS_NEAR_SEGMENTS) {
            if (threadIdx.x == 0 && least == UINT_MAX)
                atomicAdd((word *)&raw->near, (word)1);
            return;
        }
        from = (int64_t)least + SPS_NEAR_REACH;
    }
}

__global__ void __launch_bounds__(256)
exact_kernel(const double *__restrict__ val, int64_t nnz,
             sps_raw_features *raw)
{
    const int64_t step = nnz / SPS_SAMPLE_VALUES + 1;
    const int64_t e = ((int64_t)blockIdx.x * 256 + threadIdx.x) * step;

    if (e < nnz && (double)(float)val[e] != val[e])
        atomicAdd((word *)&raw->inexact, (word)1);
}

template <class I>
sps_status launch(sps_context *ctx, const sps_csr_local *A, const I *rowptr,
                  sps_raw_features *raw)
{
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    const int64_t grid = 8 * (int64_t)spsi_cuda_state(ctx)->sms;
    const int64_t near = min(A->nrow, (int64_t)SPS_NEAR_WINDOWS);

    row_kernel<<<(unsigned)min(ceil_div(A->nrow, 256), grid), 256, 0, stream>>>(
        rowptr, A->col, A->nrow, A->nnz / A->nrow, raw);
    SPS_LAUNCHED(ctx);
    sample_kernel<<<dim3((unsigned)min(A->nrow, (int64_t)SPS_SAMPLE_WINDOWS),
                         SPS_SAMPLES), sample_threads, 0, stream>>>(
        rowptr, A->col, A->nrow, A->nnz, raw);
    SPS_LAUNCHED(ctx);
    near_kernel<<<(unsigned)near, SPS_NEAR_ROWS, 0, stream>>>(
        rowptr, A->col, A->nrow, near, raw);
    SPS_LAUNCHED(ctx);
    if (A->dtype != SPS_F64 || A->nnz == 0) return SPS_OK;
    exact_kernel<<<SPS_SAMPLE_VALUES / 256, 256, 0, stream>>>(
        (const double *)A->val, A->nnz, raw);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

} // namespace

sps_status spsi_cuda_csr_features(sps_context *ctx, const sps_csr_local *A,
                                  sps_raw_features *raw)
{
    sps_raw_features *there;

    *raw = sps_raw_features();
    if (A->nrow == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, sizeof *raw));
    there = (sps_raw_features *)spsi_cuda_state(ctx)->d_scratch;
    SPS_CUDA(ctx, cudaMemsetAsync(there, 0, sizeof *raw,
                                  spsi_cuda_state(ctx)->stream));
    SPS_TRY_RETURN(A->rowptr32 ? launch(ctx, A, A->rowptr32, there)
                               : launch(ctx, A, A->rowptr, there));
    return ctx->backend->download(ctx, raw, there, sizeof *raw);
}
