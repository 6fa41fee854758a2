/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_kinds.cu - what is counted of the rows of a matrix before a method is
 * chosen (lib/matrix/row_kinds.h), and the inverse of its diagonal.
 *
 * A thread adds the entries of a row in their order, as the host does; counts
 * are integers, whose sum does not depend on the order.  One read of the
 * matrix. */
#include "cuda/amg/coarse.cuh"

namespace {

typedef unsigned long long word;

__device__ __forceinline__ void add_counts(word *to, int64_t value)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        value += __shfl_xor_sync(all_lanes, value, d);
    if (threadIdx.x % 32 == 0 && value) atomicAdd(to, (word)value);
}

/* to: the members of an sps_row_kinds. */
__global__ void __launch_bounds__(256)
count_kinds(entries A, int64_t n, bool projected, sps_row_kinds *to)
{
    const int64_t step = (int64_t)gridDim.x * 256;
    sps_row_kinds k = {};

    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n;
         i += step) {
        const int64_t first = A.rowptr[i], last = A.rowptr[i + 1];
        sps_row_sums s = {};

        s.alone = true;
        for (int64_t p = first; p < last; p++)
            spsi_row_add(&s, A.col[p] == i, A.val[p]);
        spsi_row_count(&s, last - first, projected, &k);
    }
    add_counts((word *)&to->zero, k.zero);
    add_counts((word *)&to->negative, k.negative);
    add_counts((word *)&to->weak, k.weak);
    add_counts((word *)&to->dominated, k.dominated);
    add_counts((word *)&to->near, k.near);
    add_counts((word *)&to->strong, k.strong);
    add_counts((word *)&to->odd, k.odd);
    add_counts((word *)&to->squares, k.squares);
}

struct row_known {
    entries A;
    int b;

    __device__ int64_t operator()(int64_t i) const
    {
        sps_row_constants s = {};

        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
            spsi_constants_add(&s, A.col[p] == i, A.col[p] % b, A.val[p]);
        return spsi_constants_known(&s, b);
    }
};

struct invert_diagonal {
    entries A;
    double *inverse;
    int64_t ld;
    sps_diagonal_kinds *k;

    __device__ double at(int64_t i) const
    {
        const int64_t p = diagonal_place(A, i);

        return p < 0 ? 0 : A.val[p];
    }
    __device__ void operator()(int64_t i) const
    {
        const double d = at(i), own = spsi_diagonal_inverse(d);

        inverse[i * ld] = own;
        if (d == 0) atomicAdd((word *)&k->zero, (word)1);
        if (d < 0) atomicAdd((word *)&k->negative, (word)1);
        if (own != spsi_diagonal_inverse(at(0)) &&
            !*(volatile int64_t *)&k->other)
            k->other = 1;
    }
};

} // namespace

sps_status spsi_coarse_kinds(sps_coarse *l, bool projected, sps_row_kinds *k)
{
    sps_context *ctx = l->ctx;
    const int64_t blocks = ceil_div(l->A.nrow, 256);
    const int64_t most = 16 * (int64_t)spsi_cuda_state(ctx)->sms;
    sps_row_kinds *there;
    holder h(ctx);

    *k = {};
    if (l->A.nrow == 0) return SPS_OK;
    SPS_TRY_RETURN(h.take(1, &there));
    SPS_TRY_RETURN(clear(ctx, 1, there));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)(blocks < most ? blocks : most),
                              256, count_kinds, entries_of(&l->A), l->A.nrow,
                              projected, there));
    return download(ctx, 1, there, k);
}

sps_status spsi_coarse_known(sps_coarse *l, int b, int64_t *known)
{
    sps_context *ctx = l->ctx;
    word *sum, host;
    holder h(ctx);

    SPS_TRY_RETURN(h.take(1, &sum));
    SPS_TRY_RETURN(clear(ctx, 1, sum));
    SPS_TRY_RETURN(count(ctx, l->A.nrow, row_known{entries_of(&l->A), b},
                         sum));
    SPS_TRY_RETURN(download(ctx, 1, sum, &host));
    *known = (int64_t)host;
    return SPS_OK;
}

sps_status spsi_coarse_diagonal(sps_coarse *l, sps_block *inverse,
                                sps_diagonal_kinds *k)
{
    sps_context *ctx = l->ctx;
    sps_diagonal_kinds *there;
    holder h(ctx);

    SPS_TRY_RETURN(h.take(1, &there));
    SPS_TRY_RETURN(clear(ctx, 1, there));
    SPS_TRY_RETURN(each(ctx, l->A.nrow,
                        invert_diagonal{entries_of(&l->A), numbers(inverse),
                                        inverse->ld, there}));
    return download(ctx, 1, there, k);
}
