/* SPDX-License-Identifier: BSD-3-Clause */
/* cusparse_bsr.cuh - node blocks as cuSPARSE's BSR: row offsets in 32 bits, and
 * the values of a block column-major as stored, or transposed.
 *
 * Only for matrices whose dimensions are multiples of b: cuSPARSE reads and
 * writes whole blocks.  Positions of a block that the matrix does not store are
 * zeros that are multiplied by X.  Bytes: the values of all stored blocks and
 * one index for each block, X, and Y. */
#ifndef SPS_CUDA_CUSPARSE_BSR_CUH
#define SPS_CUDA_CUSPARSE_BSR_CUH

#include "cuda/vendor/cusparse_spmv.cuh"
#include "cuda/plan/node_plan.h"

#include <stdio.h>

namespace {

struct bsr {
    sps_node_blocks blocks;
    int32_t *start;          /* row offsets of the mb block rows, mb + 1
                                numbers */
    void *turned;            /* copy of the values with row-major blocks; NULL:
                                the column-major ones of `blocks` are used */
};

inline bool bsr_fits(const sps_problem *p, const char **why_not)
{
    const int b = spsi_node_choose(p->f,
                                   (double)spsi_dtype_size(p->A->dtype));

    if (!vendor_fits(p, why_not) || !spsi_node_fits(p, why_not)) return false;
    *why_not = "the rows or columns are not a multiple of the block size";
    return p->A->nrow % b == 0 && p->A->ncol % b == 0;
}

/* ------------------------------------------------------------- the arrays */

template <class T>
__global__ void __launch_bounds__(256)
turn_blocks(const T *__restrict__ from, int b, int64_t numbers, T *to)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, s = e / (b * b);
    int i = (int)(e % (b * b));

    if (e < numbers) to[s * b * b + i % b * b + i / b] = from[e];
}

inline sps_status bsr_turn(sps_context *ctx, const bsr *m)
{
    const sps_node_blocks *n = &m->blocks;
    int64_t numbers = n->count * n->b * n->b;
    unsigned grid = (unsigned)ceil_div(numbers, 256);

    if (n->dtype == SPS_F64)
        return run_kernel(ctx, grid, 256, turn_blocks<double>,
                          (const double *)n->val, n->b, numbers,
                          (double *)m->turned);
    return run_kernel(ctx, grid, 256, turn_blocks<float>, (const float *)n->val,
                      n->b, numbers, (float *)m->turned);
}

inline sps_status bsr_values(sps_context *ctx, const sps_csr_local *A,
                             const bsr *m)
{
    if (A->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_node_values(ctx, A, &m->blocks));
    return m->turned ? bsr_turn(ctx, m) : SPS_OK;
}

inline sps_status bsr_make(sps_plan *plan, const sps_problem *p, bsr *m)
{
    const int b = spsi_node_choose(p->f,
                                   (double)spsi_dtype_size(p->A->dtype));

    SPS_TRY_RETURN(spsi_cuda_node_plan(plan, b, &m->blocks));
    return narrow_offsets(plan, m->blocks.start, m->blocks.mb + 1, &m->start);
}

/* Makes a copy with row-major blocks, which is used from now on. */
inline sps_status bsr_turn_over(sps_plan *plan, bsr *m)
{
    const sps_node_blocks *n = &m->blocks;

    SPS_TRY_RETURN(spsi_plan_take(plan, (size_t)(n->count * n->b * n->b) *
                                            spsi_dtype_size(n->dtype),
                                  &m->turned));
    return bsr_turn(plan->ctx, m);
}

inline sps_status bsr_describe(sps_context *ctx, const bsr *m,
                               cusparseSpMatDescr_t *A)
{
    const sps_node_blocks *n = &m->blocks;

    SPS_CUSPARSE(ctx, cusparseCreateBsr(
                          A, n->mb, n->nb, n->count, n->b, n->b, m->start,
                          n->column, m->turned ? m->turned : n->val,
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                          CUSPARSE_INDEX_BASE_ZERO, number_type(n->dtype),
                          m->turned ? CUSPARSE_ORDER_ROW
                                    : CUSPARSE_ORDER_COL));
    return SPS_OK;
}

inline void bsr_detail(const bsr *m, sps_plan *plan)
{
    snprintf(plan->detail, sizeof plan->detail, "%d x %d, by %s",
             m->blocks.b, m->blocks.b, m->turned ? "rows" : "columns");
}

} // namespace

#endif
