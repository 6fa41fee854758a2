/* SPDX-License-Identifier: BSD-3-Clause */
/* cusparse.cuh - common code of the kernels that call cuSPARSE: its names of
 * data types, scalars alpha and beta in memory from which it cannot read them,
 * copies of strided columns, timing.
 *
 * Runs neither allocate memory nor synchronise, so all of them can be captured
 * in CUDA graphs: descriptors are in host memory, buffers belong to plans. */
#ifndef SPS_CUDA_CUSPARSE_CUH
#define SPS_CUDA_CUSPARSE_CUH

#include "cuda/base/library_check.h"
#include "cuda/sparse/sparse.cuh"

namespace {

inline cudaDataType_t number_type(sps_dtype type)
{
    return type == SPS_F64 ? CUDA_R_64F : CUDA_R_32F;
}

/* Returns whether the row offsets fit into 32 bits, the type of those passed to
 * cuSPARSE. */
inline bool vendor_size(const sps_problem *p, const char **why_not)
{
    *why_not = "A has 2^31 or more entries or rows";
    return p->local->rowptr32 && p->A->nrow <= INT32_MAX;
}

/* SpMM and SpMV of cuSPARSE require a single data type for all operands. */
inline bool vendor_fits(const sps_problem *p, const char **why_not)
{
    if (p->A->dtype != p->block) {
        *why_not = "cuSPARSE needs values of A and blocks of one type";
        return false;
    }
    return vendor_size(p, why_not);
}

/* Returns the bytes to allocate for a buffer of cuSPARSE: reported sizes that
 * are not a multiple of the size of an element were observed to be too small
 * (12.6.3: 7 bytes, of which 8 were written). */
inline size_t roomy(size_t bytes) { return (bytes + 511) / 256 * 256; }

inline sps_status describe_csr(sps_context *ctx, const sps_csr_local *A,
                               const void *val, sps_dtype type,
                               cusparseSpMatDescr_t *csr)
{
    SPS_CUSPARSE(ctx, cusparseCreateCsr(csr, A->nrow, A->ncol, A->nnz,
                                        (void *)A->rowptr32, (void *)A->col,
                                        (void *)val, CUSPARSE_INDEX_32I,
                                        CUSPARSE_INDEX_32I,
                                        CUSPARSE_INDEX_BASE_ZERO,
                                        number_type(type)));
    return SPS_OK;
}

/* ---------------------------------------------------------------- scalars */

/* One and zero in host memory, in both types. */
struct unit_scalars {
    double wide[2] = {1.0, 0.0};
    float narrow[2] = {1.0f, 0.0f};

    const void *one(sps_dtype type) const
    {
        return type == SPS_F64 ? (const void *)&wide[0] : &narrow[0];
    }
    const void *zero(sps_dtype type) const
    {
        return type == SPS_F64 ? (const void *)&wide[1] : &narrow[1];
    }
};

/* Y = alpha t + beta Y, where b.x is the product t = A X that cuSPARSE has
 * computed.  Used where cuSPARSE does not accept alpha and beta in device
 * memory, or lets a NaN pass although alpha = 0. */
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

inline sps_status join_product(const sps_spmm_args *args, const void *t,
                               int64_t ld)
{
    return args->Y->dtype == SPS_F64
        ? launch_join_product<double>(args, t, ld)
        : launch_join_product<float>(args, t, ld);
}

/* Calls call(alpha, beta) with pointers to host values of the blocks' type. */
template <class F>
sps_status with_host_scalars(const sps_spmm_args *args, const F &call)
{
    float narrow[2] = {(float)args->alpha, (float)args->beta};

    if (args->Y->dtype == SPS_F32)
        return call((const void *)&narrow[0], (const void *)&narrow[1]);
    return call((const void *)&args->alpha, (const void *)&args->beta);
}

/* ------------------------------------------------------------- one column */

template <class T>
__global__ void __launch_bounds__(256)
copy_column(const T *__restrict__ from, int64_t from_ld, T *__restrict__ to,
            int64_t to_ld, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) to[i * to_ld] = from[i * from_ld];
}

/* Copies the first column of a block to that of another block, bit for bit. */
inline sps_status move_column(const sps_block *from, const sps_block *to)
{
    if (to->dtype == SPS_F64)
        return run_items(to->ctx, to->n, copy_column<double>,
                         (const double *)from->data, from->ld,
                         (double *)to->data, to->ld, to->n);
    return run_items(to->ctx, to->n, copy_column<float>,
                     (const float *)from->data, from->ld, (float *)to->data,
                     to->ld, to->n);
}

/* Returns a block of one column whose elements are contiguous at `data`, with
 * the other properties of X. */
inline sps_block packed(const sps_block *X, void *data)
{
    sps_block v = *X;

    v.data = data;
    v.ld = 1;
    v.k = v.width = 1;
    v.bytes = 0;
    return v;
}

/* ----------------------------------------------------------------- timing */

/* *best becomes the shortest of three runs after a warm-up, in milliseconds;
 * only one run is timed if it takes more than three times `rival`. */
template <class F>
sps_status time_best(sps_context *ctx, float rival, const F &run, float *best)
{
    struct events {
        cudaEvent_t begin = NULL, end = NULL;

        ~events()
        {
            if (begin) cudaEventDestroy(begin);
            if (end) cudaEventDestroy(end);
        }
    } e;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;

    SPS_CUDA(ctx, cudaEventCreate(&e.begin));
    SPS_CUDA(ctx, cudaEventCreate(&e.end));
    *best = 1e30f;
    SPS_TRY_RETURN(run());
    for (int i = 0; i < 3 && (i == 0 || *best <= 3 * rival); i++) {
        float ms = 0;

        SPS_CUDA(ctx, cudaEventRecord(e.begin, stream));
        SPS_TRY_RETURN(run());
        SPS_CUDA(ctx, cudaEventRecord(e.end, stream));
        SPS_CUDA(ctx, cudaEventSynchronize(e.end));
        SPS_CUDA(ctx, cudaEventElapsedTime(&ms, e.begin, e.end));
        if (ms < *best) *best = ms;
    }
    return SPS_OK;
}

} // namespace

#endif
