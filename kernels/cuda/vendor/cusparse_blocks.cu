/* SPDX-License-Identifier: BSD-3-Clause */
/* cusparse_blocks.cu - what our kernels do before and after cuSPARSE's: columns
 * copied from strided blocks, and products joined with Y (cusparse.cuh). */
#include "cuda/vendor/cusparse.cuh"

namespace {

/* Y = alpha t + beta Y, where b.x is t. */
template <class T>
__global__ void __launch_bounds__(256) join_kernel(blocks<T> b, int64_t n)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, i = e / b.k;
    int64_t j = e % b.k;
    T *y = b.y + i * b.ldy + j;

    b.resolve();
    if (i < n) *y = b.join(b.x[i * b.ldx + j], y);
}

template <class T>
sps_status launch_join_product(const sps_spmm_args *args, const void *t,
                               int64_t ld)
{
    const sps_block *Y = args->Y;
    blocks<T> b = blocks_of<T>(args);

    b.x = (const T *)t;
    b.ldx = ld;
    return run_items(Y->ctx, Y->n * Y->k, join_kernel<T>, b, Y->n);
}

template <class T>
__global__ void __launch_bounds__(256)
copy_column(const T *__restrict__ from, int64_t from_ld, T *__restrict__ to,
            int64_t to_ld, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) to[i * to_ld] = from[i * from_ld];
}

} // namespace

sps_status spsi_cusparse_join(const sps_spmm_args *args, const void *t,
                              int64_t ld)
{
    return args->Y->dtype == SPS_F64
        ? launch_join_product<double>(args, t, ld)
        : launch_join_product<float>(args, t, ld);
}

sps_status spsi_cusparse_copy(const sps_block *from, const sps_block *to)
{
    if (to->dtype == SPS_F64)
        return run_items(to->ctx, to->n, copy_column<double>,
                         (const double *)from->data, from->ld,
                         (double *)to->data, to->ld, to->n);
    return run_items(to->ctx, to->n, copy_column<float>,
                     (const float *)from->data, from->ld, (float *)to->data,
                     to->ld, to->n);
}
