/* SPDX-License-Identifier: BSD-3-Clause */
/* node_blocks_device.cuh - common code of the kernels on node blocks
 * (kernels/formats/node_blocks.h): the blocks as passed to kernels, their plan,
 * the refresh of values, and the predicted bytes. */
#ifndef SPS_CUDA_NODE_BLOCKS_CUH
#define SPS_CUDA_NODE_BLOCKS_CUH

#include "cuda/plan/leads_device.h"
#include "cuda/plan/node_plan.h"
#include "cuda/sparse/ordered.cuh"

#include <stdio.h>

namespace {

template <class V> struct node_matrix {
    int b;
    int64_t nrow, ncol, mb;
    const int64_t *__restrict__ start;
    const int32_t *__restrict__ column;
    const V *__restrict__ val;
};

template <class V> node_matrix<V> node_matrix_of(const sps_node_blocks *n)
{
    return { n->b, n->nrow, n->ncol, n->mb, n->start, n->column,
             (const V *)n->val };
}

/* Calls call(N, b) with the node_matrix N and the blocks b in the data types of
 * A, X and Y. */
template <class F>
sps_status with_node_types(const sps_plan *plan, const sps_spmm_args *args,
                           const F &call)
{
    const sps_node_blocks *n = &((const sps_node_plan *)plan)->blocks;

    if (args->Y->dtype == SPS_F32)
        return call(node_matrix_of<float>(n), blocks_of<float>(args));
    if (n->dtype == SPS_F32)
        return call(node_matrix_of<float>(n), blocks_of<double>(args));
    return call(node_matrix_of<double>(n), blocks_of<double>(args));
}

inline sps_status node_plan_fill(sps_node_plan *self, const sps_problem *p)
{
    const double value = (double)spsi_dtype_size(p->A->dtype);
    sps_node_blocks *n = &self->blocks;

    SPS_TRY_RETURN(spsi_cuda_node_plan(&self->super,
                                       spsi_node_choose(p->f, value), n));
    snprintf(self->super.detail, sizeof self->super.detail,
             "%d x %d blocks, %.3g %% full", n->b, n->b,
             100.0 * (double)p->f->nnz / ((double)n->count * n->b * n->b));
    return SPS_OK;
}

inline sps_status node_refresh(sps_plan *plan)
{
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    return spsi_cuda_node_values(plan->ctx, plan->A,
                                 &((sps_node_plan *)plan)->blocks);
}

/* Returns the bytes moved if the blocks, X and Y are each read or written
 * once. */
inline double node_floor(const sps_problem *p, int *b_p)
{
    const sps_features *f = p->f;
    const double value = (double)spsi_dtype_size(p->A->dtype);
    const int b = spsi_node_choose(f, value);

    *b_p = b;
    return spsi_spmm_floor(p) - (double)f->nnz * (value + 4.0) +
           (double)f->nnz * spsi_node_bytes(b, f->fill[b], value);
}

} // namespace

#endif
