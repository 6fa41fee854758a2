/* SPDX-License-Identifier: BSD-3-Clause */
/* features_device.cu - counts the integers from which the features of a matrix
 * in device memory are computed (lib/matrix/windows.h); they are the same as on
 * the host.
 *
 * Sums and maxima of integers are formed by atomics, whose order is irrelevant.
 * One pass reads the offsets and the first and last column of each row; samples
 * read up to 1024 windows each.  A thread block examines a window, each thread
 * some of its entries. */
#include "cuda/plan/sample.cuh"

namespace {

typedef unsigned long long word;

/* Partial sums and maxima of features over the rows of one thread, then of its
 * thread block. */
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

/* Adds up the features of rows.  A warp processes 32 rows at a time, which are
 * one slice of padded32.  Bin SPS_LENGTH_BINS is for lanes without a row. */
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

/* Distinct block columns of a window are counted by a set in shared memory of
 * `words` words, whose result does not depend on the order of insertion: a hash
 * table that is at most half full, or, for more entries, one bit for each block
 * column between the first and the last, range after range, if there are few
 * ranges. */
constexpr int words_of_64 = 8192, words_of_others = 2048, ranges_most = 16;
/* Number of threads for windows of 64 rows: their sets leave room for few
 * thread blocks on a multiprocessor. */
constexpr int threads_of_64 = 256;

/* Inserts block column j; returns whether it was not in the table. */
__device__ inline bool table_insert(int32_t *table, int size, int32_t j)
{
    int at = (int)((uint32_t)j * 2654435769u >> 16) & (size - 1);

    for (;; at = (at + 1) & (size - 1)) {
        const int32_t held = atomicCAS(table + at, -1, j);

        if (held == -1) return true;
        if (held == j) return false;
    }
}

__device__ inline void fill_set(int32_t *set, int words, int32_t value)
{
    __syncthreads();
    for (int q = (int)threadIdx.x; q < words; q += (int)blockDim.x)
        set[q] = value;
    __syncthreads();
}

/* A window of rows of a sample, of which only the first `entries` entries are
 * examined. */
struct window {
    const int32_t *__restrict__ col;
    const sample_rows<64> &rows;
    const sps_sample &s;
    int64_t entries;
    int32_t *set;
    int words;

    /* Returns, in each thread, the number of columns that it was first to
     * insert. */
    __device__ int64_t by_table(void) const
    {
        int64_t columns = 0;
        int size = 64;

        while (size < 2 * entries) size *= 2;
        fill_set(set, size, -1);
        rows.each(s.rows, entries, [&](int, int64_t p) {
            columns += table_insert(set, size, col[p] / s.b);
        });
        return columns;
    }
    /* Returns, in each thread, the number of block columns whose bit it was
     * first to set; the set has bits for block columns first .. last. */
    __device__ int64_t by_bits(int32_t first, int32_t last) const
    {
        int64_t columns = 0;

        for (int64_t from = first; from <= last; from += 32 * words) {
            fill_set(set, (int)min((int64_t)words, (last - from) / 32 + 1), 0);
            rows.each(s.rows, entries, [&](int, int64_t p) {
                const int64_t j = col[p] / s.b - from;

                if (j < 0 || j >= 32 * words) return;
                columns += !(atomicOr(set + j / 32, (int)(1u << j % 32)) >>
                             j % 32 & 1);
            });
        }
        return columns;
    }
    __device__ int64_t by_search(void) const
    {
        int64_t columns = 0;

        rows.each(s.rows, entries, [&](int r, int64_t p) {
            columns += spsi_sample_first(col, rows.begin, rows.end, r, p, s.b);
        });
        return columns;
    }
    /* Finds the first and the last block column of the rows, in every
     * thread. */
    __device__ void span(int32_t *first, int32_t *last) const
    {
        *first = INT32_MAX;
        *last = -1;
        for (int r = (int)threadIdx.x % 32; r < s.rows; r += 32) {
            if (rows.begin[r] == rows.end[r]) continue;
            *first = min(*first, col[rows.begin[r]] / s.b);
            *last = max(*last, col[rows.end[r] - 1] / s.b);
        }
        *first = __reduce_min_sync(all_lanes, *first);
        *last = __reduce_max_sync(all_lanes, *last);
    }
    __device__ int64_t columns(void) const
    {
        int32_t first, last;

        if (2 * entries <= words) return by_table();
        span(&first, &last);
        return (int64_t)last - first < (int64_t)ranges_most * 32 * words
                   ? by_bits(first, last) : by_search();
    }
    /* Counts the entries of full blocks that begin with an entry of this
     * thread. */
    __device__ int64_t full(void) const
    {
        const int64_t end = min(rows.end[0],
                                rows.begin[0] + SPS_SAMPLE_ENTRIES);
        int64_t found = 0;

        for (int64_t p = rows.begin[0] + threadIdx.x; p < end;
             p += blockDim.x)
            found += spsi_sample_full(col, rows.begin, rows.end, p, s.b);
        return found * s.b * s.b;
    }
};

/* Examines samples of windows.  Thread block x of row y examines windows x, x +
 * grid, ... of sample first + y, with a set of `words` words. */
template <class I>
__global__ void __launch_bounds__(threads_of_64)
sample_kernel(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
              int64_t nrow, int64_t nnz, int first, int words,
              sps_raw_features *raw)
{
    extern __shared__ int32_t sample_set[];
    __shared__ sample_rows<64> rows;
    const int t = first + (int)blockIdx.y;
    const sps_sample s = spsi_sample_of(nrow, nnz, t);
    sps_sample_sums *to = &raw->sample[t];

    if (t == SPS_SAMPLE_64 && words < words_of_64) return;
    if (t >= SPS_SAMPLE_WIDEST &&
        !spsi_sample_even(nrow, nnz, raw->longest, s.b)) return;
    for (int64_t w = blockIdx.x; w < s.windows; w += gridDim.x) {
        const int64_t i = spsi_sample_row(&s, nrow, w);

        rows.open(s.rows, [&](int r, int64_t *begin, int64_t *end) {
            *begin = i + r < nrow ? rowptr[i + r] : 0;
            *end = i + r < nrow ? rowptr[i + r + 1] : 0;
        });
        const window now = {col, rows, s, min(rows.at[s.rows], s.cut),
                            sample_set, words};

        if (now.entries > s.skip) continue;
        const int64_t columns = sum_over_block(now.columns());
        const int64_t full = s.full ? sum_over_block(now.full()) : 0;

        if (threadIdx.x > 0) continue;
        atomicAdd((word *)&to->entries, (word)now.entries);
        atomicAdd((word *)&to->columns, (word)columns);
        atomicAdd((word *)&to->full, (word)full);
        atomicMax((word *)&to->most, (word)columns);
    }
}

/* Tests whether the columns of windows fit 16 bits (feature `near`).  One
 * thread block processes a window and finds its segments of columns one after
 * another. */
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

/* Examines samples first .. first + count - 1. */
template <class I>
sps_status sample(sps_context *ctx, const sps_csr_local *A, const I *rowptr,
                  int first, int count, int threads, int words,
                  sps_raw_features *raw)
{
    const dim3 grid((unsigned)min(A->nrow, (int64_t)SPS_SAMPLE_WINDOWS),
                    (unsigned)count);

    sample_kernel<<<grid, threads, words * sizeof(int32_t),
                    spsi_cuda_state(ctx)->stream>>>(
        rowptr, A->col, A->nrow, A->nnz, first, words, raw);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

template <class I>
sps_status launch(sps_context *ctx, const sps_csr_local *A, const I *rowptr,
                  sps_raw_features *raw)
{
    const int64_t grid = 8 * (int64_t)spsi_cuda_state(ctx)->sms;
    const int64_t near = min(A->nrow, (int64_t)SPS_NEAR_WINDOWS);

    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)min(ceil_div(A->nrow, 256), grid),
                              256, row_kernel<I>, rowptr, A->col, A->nrow,
                              A->nnz / A->nrow, raw));
    SPS_TRY_RETURN(sample(ctx, A, rowptr, SPS_SAMPLE_64, 1, threads_of_64,
                          words_of_64, raw));
    SPS_TRY_RETURN(sample(ctx, A, rowptr, 0, SPS_SAMPLES, sample_threads,
                          words_of_others, raw));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)near, SPS_NEAR_ROWS,
                              near_kernel<I>, rowptr, A->col, A->nrow, near,
                              raw));
    if (A->dtype != SPS_F64 || A->nnz == 0) return SPS_OK;
    return run_kernel(ctx, SPS_SAMPLE_VALUES / 256, 256, exact_kernel,
                      (const double *)A->val, A->nnz, raw);
}

} // namespace

sps_status spsi_cuda_csr_features(sps_context *ctx, const sps_csr_local *A,
                                  sps_raw_features *raw)
{
    sps_raw_features *there;

    *raw = sps_raw_features();
    if (A->nrow == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(take_scratch(ctx, 1, &there));
    SPS_TRY_RETURN(clear(ctx, 1, there));
    SPS_TRY_RETURN(A->rowptr32 ? launch(ctx, A, A->rowptr32, there)
                               : launch(ctx, A, A->rowptr, there));
    return download(ctx, 1, there, raw);
}
