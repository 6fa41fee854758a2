/* SPDX-License-Identifier: BSD-3-Clause */
/* cover.cuh - how thread blocks are mapped to the rows of an n x k block, for
 * element-wise operations and for sums of columns. */
#ifndef SPS_CUDA_COVER_CUH
#define SPS_CUDA_COVER_CUH

#include "cuda/base/device.cuh"

namespace {

/* Mapping of a thread block of up to 256 threads: `lanes` neighbouring threads
 * take the pairs of columns of a row, and `rows` rows are processed at once;
 * wide blocks take several passes over the columns. */
struct cover {
    int lanes, rows;
    unsigned blocks;
};

/* Returns the mapping for blocks of n x k in which a thread processes `each`
 * rows.  If the rows of a block (with padding) are not whole cache lines of 128
 * bytes, the threads also cover the padding, and a thread block covers a
 * multiple of 4 rows, which is a number of whole lines.  So no two warps share
 * a line, where a store of one would wait for loads of the other
 * (doc/log/block-rows.md). lanes * rows may then be less than 256. */
inline cover cover_lines(const sps_context *ctx, int64_t n, int k, int each)
{
    const int ld = (int)spsi_block_ld(k), most = 8 * spsi_cuda_state(ctx)->sms;
    const bool parts = ld > 8 && ld % 16 != 0;
    cover c;

    c.lanes = parts ? ld / 2 : min(power_above((k + 1) / 2), 256);
    c.rows = parts ? 256 / c.lanes / 4 * 4 : 256 / c.lanes;
    const int64_t want = ceil_div(n, (int64_t)c.rows * each);

    c.blocks = want > most ? (unsigned)most : want > 0 ? (unsigned)want : 1;
    return c;
}

inline unsigned threads_of(const cover &c)
{
    return (unsigned)(c.lanes * c.rows);
}

/* Reduces the values of the rows of a thread block by a tree; the result is in
 * the threads of the first row. */
template <class J>
__device__ double2 join_rows(double2 v, double2 *shared, int lanes)
{
    int t = (int)threadIdx.x, row = t / lanes;

    __syncthreads(); /* shared memory is used again for the next columns */
    shared[t] = v;
    for (int left = (int)blockDim.x / lanes, half; left > 1; left = half) {
        half = (left + 1) / 2;
        __syncthreads();
        if (row < left - half) {
            const double2 w = shared[t + half * lanes];

            shared[t].x = J::one(shared[t].x, w.x);
            shared[t].y = J::one(shared[t].y, w.y);
        }
    }
    return shared[t];
}

} // namespace

#endif
