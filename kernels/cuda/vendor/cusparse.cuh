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

/* Y = alpha t + beta Y for the product t = A X that cuSPARSE has computed, with
 * leading dimension ld.  Used where cuSPARSE does not accept alpha and beta in
 * device memory, or writes the NaN of a product to Y although alpha = 0. */
sps_status spsi_cusparse_join(const sps_spmm_args *args, const void *t,
                              int64_t ld);
/* Copies the first column of a block to that of another block, bit for bit. */
sps_status spsi_cusparse_copy(const sps_block *from, const sps_block *to);

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
