/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_device.cu - copies rows of one block, selected by number, to consecutive
 * rows of another, and back.  An operator distributed over processes packs the
 * rows that other processes need in this way, and gathers rows of X for its
 * boundary rows.  Traffic: each row twice, and 4 bytes for its number. */
#include "cuda/base/cover.cuh"
#include "cuda/base/wire_device.h"

namespace {

constexpr int each = 2; /* number of rows for each thread */

/* Row i of Y becomes row index[i] of X; with PUT row index[i] of Y becomes row
 * i of X. */
template <bool PAIRED, bool PUT>
__global__ void __launch_bounds__(256)
move_rows(const double *x, int64_t ldx, const int32_t *__restrict__ index,
          double *y, int64_t ldy, int64_t n, int k, int lanes)
{
    const int rows = (int)blockDim.x / lanes;
    const int64_t step = (int64_t)gridDim.x * rows;
    int64_t i = (int64_t)blockIdx.x * rows + threadIdx.x / lanes;

    for (; i < n; i += step) {
        const int64_t far = index[i];
        const double *from = x + (PUT ? i : far) * ldx;
        double *to = y + (PUT ? far : i) * ldy;

        for (int c = 2 * ((int)threadIdx.x % lanes); c < k; c += 2 * lanes)
            store_pair<PAIRED>(to + c, k - c,
                               load_pair<PAIRED>(from + c, k - c));
    }
}

/* The same for floats; a thread moves one element. */
template <bool PUT>
__global__ void __launch_bounds__(256)
move_floats(const float *x, int64_t ldx, const int32_t *__restrict__ index,
            float *y, int64_t ldy, int64_t n, int k, int lanes)
{
    const int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t i = t / lanes;

    if (i >= n) return;
    for (int c = (int)(t % lanes); c < k; c += lanes) {
        const int64_t far = index[i];

        y[(PUT ? far : i) * ldy + c] = x[(PUT ? i : far) * ldx + c];
    }
}

template <bool PUT>
sps_status move_single(const sps_block *X, const int32_t *index, sps_block *Y)
{
    const int64_t n = PUT ? X->n : Y->n;
    const int lanes = min(power_above(Y->k), 32);

    SPS_TRY_RETURN(spsi_cuda_enter(Y->ctx));
    return run_kernel(Y->ctx, (unsigned)ceil_div(n * lanes, 256), 256,
                      move_floats<PUT>, (const float *)X->data, X->ld, index,
                      (float *)Y->data, Y->ld, n, Y->k, lanes);
}

template <bool PUT>
sps_status move(const sps_block *X, const int32_t *index, sps_block *Y)
{
    const int64_t n = PUT ? X->n : Y->n;

    if (Y->dtype == SPS_F32) return move_single<PUT>(X, index, Y);
    const cover c = cover_lines(Y->ctx, n, Y->k, each);
    auto kernel = paired(X) && paired(Y) ? move_rows<true, PUT>
                                         : move_rows<false, PUT>;

    SPS_TRY_RETURN(spsi_cuda_enter(Y->ctx));
    return run_kernel(Y->ctx, c.blocks, threads_of(c), kernel, numbers(X),
                      X->ld, index, numbers(Y), Y->ld, n, Y->k, c.lanes);
}

} // namespace

sps_status spsi_cuda_take_rows(const sps_block *X, const int32_t *index,
                               sps_block *Y)
{
    return move<false>(X, index, Y);
}

sps_status spsi_cuda_put_rows(const sps_block *X, const int32_t *index,
                              sps_block *Y)
{
    return move<true>(X, index, Y);
}
