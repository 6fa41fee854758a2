/* SPDX-License-Identifier: BSD-3-Clause */
/* row_sums.cuh - sums over the entries of each row, which are added one after
 * the other as on the host.  All threads of a block load the entries of its
 * rows, neighbouring threads neighbouring entries, and store the terms in
 * shared memory; then each thread adds those of one row.  The matrix is read
 * once, in whole cache lines. */
#ifndef SPS_CUDA_AMG_ROWS_CUH
#define SPS_CUDA_AMG_ROWS_CUH

#include "cuda/amg/coarse.cuh"

namespace {

constexpr int row_threads = 256, row_terms = 2048;

/* Returns the position of term i; a gap after every 32 terms prevents bank
 * conflicts of threads whose rows have even lengths. */
__device__ __forceinline__ int term_place(int i) { return i + i / 32; }

/* Returns the rows of a thread block: so many that their entries fill about one
 * tile and most threads add at once, but few enough that long rows use the
 * whole device. */
inline int rows_together(int64_t n, int64_t nnz)
{
    const int64_t mean = nnz / n + 1, rows = row_terms / mean;

    return rows < 8 ? 8 : rows < row_threads ? (int)rows : row_threads;
}

/* For each row i, with x = f.begin(): sum = f.open(i), then f.add(sum, term)
 * for the terms f.term(x, a_ik, k), then f.close(x, i, sum).  Threads without a
 * row call f.close with i = -1. */
template <class F> __global__ void __launch_bounds__(row_threads)
run_rows(int64_t n, int together, const entries A, const F f)
{
    typedef typename F::number number;
    __shared__ number terms[row_terms + row_terms / 32];
    __shared__ int64_t start[row_threads + 1];
    const int64_t first = (int64_t)blockIdx.x * together;
    const int rows = (int)min((int64_t)together, n - first);
    const int t = (int)threadIdx.x;
    const auto x = f.begin();
    auto sum = f.open(t < rows ? first + t : -1);

    for (int i = t; i <= rows; i += row_threads) start[i] = A.rowptr[first + i];
    __syncthreads();
    const int64_t begin = start[min(t, rows)], end = start[min(t + 1, rows)];

    for (int64_t tile = start[0]; tile < start[rows]; tile += row_terms) {
        const int count = (int)min((int64_t)row_terms, start[rows] - tile);
        const int from = (int)max(begin - tile, (int64_t)0);
        const int to = (int)min(end - tile, (int64_t)count);

#pragma unroll 4
        for (int q = t; q < count; q += row_threads) {
            const int64_t p = tile + q;

            terms[term_place(q)] = f.term(x, A.val[p], A.col[p]);
        }
        __syncthreads();
        for (int q = from; q < to; q++) f.add(sum, terms[term_place(q)]);
        __syncthreads();
    }
    f.close(x, t < rows ? first + t : -1, sum);
}

template <class F>
sps_status each_row(sps_context *ctx, int64_t n, int64_t nnz, const entries &A,
                    const F &f)
{
    if (n == 0) return SPS_OK;
    const int together = rows_together(n, nnz);

    return run_kernel(ctx, (unsigned)ceil_div(n, together), row_threads,
                      run_rows<F>, n, together, A, f);
}

} // namespace

#endif
