/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_rode_paper.cu - RoDe's SpMM as published (Pang et al., PPoPP 2024), for
 * comparison with spmm.rode, which was derived from it.
 *
 * Rows are decomposed (formats/rode.h) into segments of whole tiles of 32
 * slots, at most 512, and residuals of less than a tile.  Y is cleared (or
 * scaled), then two kernels in two streams add to it.  A thread block is one
 * warp, four sub-warps of 8 lanes; each sub-warp processes one segment or
 * residual and a tile of 32 or 64 columns, one or two vectors of 4 columns per
 * lane.
 *
 * Segments, the sub-block pipeline: a tile of A is copied asynchronously to
 * shared memory; rows of X are loaded to registers, D at a time, into two
 * buffers in turn, so that the loads of one step overlap with the sums of the
 * step before, and the copy of the next tile of A with the last sums.  The
 * result is added by atomics.  Residuals: staged in shared memory by ordinary
 * loads, four rows of X at a time; added by atomics if the row also has
 * segments, otherwise stored.
 *
 * Bytes: A once for each tile of columns, Y cleared and then read and written
 * by atomics, rows of X again whenever L1 and L2 have evicted them.
 *
 * Deviations from the paper: 64-bit offsets and addresses; explicit lengths;
 * slots before and after an item load no row of X, while in the paper they
 * multiply row 0 by zero; alpha, beta; and predicated loads if the width is not
 * a multiple of 32 or X or Y is not aligned.  The order in which the
 * partial sums of a row are added is not fixed, so results may differ in
 * rounding between runs. */
#include <unistd.h>

#include "cuda/base/scan.h"
#include "cuda/papers/spmm_rode_paper.cuh"

namespace {

struct paper_plan {
    spsi_rode_plan base;
    cudaStream_t side;       /* stream of the residuals */
    cudaEvent_t fork, join;
};

/* ----------------------------------------------------------------- launch */

template <class T> bool aligned_quads(const sps_block *X)
{
    constexpr int64_t wide = 16 / sizeof(T);

    return X->ld % wide == 0 && (uintptr_t)X->data % 16 == 0;
}

/* Computes Y = beta Y, before the kernels add to it. (cudaMemset2DAsync, which
 * would skip padding columns, takes 0.6 ns per row.) */
sps_status prepare(sps_context *ctx, const sps_spmm_args *args)
{
    const sps_block *Y = args->Y;
    size_t bytes = (size_t)Y->n * (size_t)Y->k * spsi_dtype_size(Y->dtype);

    if (args->scalars || args->beta != 0 || Y->ld != Y->k)
        return spsi_cuda_scale(args);
    return clear(ctx, (int64_t)bytes, (char *)Y->data);
}

/* Launches the kernel of the segments on the stream of the context, and that of
 * the residuals on p->side. */
template <int N, int D, bool WHOLE, class V, class T>
sps_status launch(const paper_plan *p, const V *val, const blocks<T> &b,
                  bool aligned)
{
    const sps_plan *plan = &p->base.super;
    const spsi_rode *R = &p->base.parts;
    const int32_t *col = plan->A->col;
    sps_context *ctx = plan->ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    bool two = R->blocks > 0 && R->residuals > 0;
    bool even = ((uintptr_t)col | (uintptr_t)val) % 16 == 0;
    unsigned tiles = (unsigned)ceil_div(b.k, N);
    dim3 cta(lanes, subs);

    if (two) {
        SPS_CUDA(ctx, cudaEventRecord(p->fork, stream));
        SPS_CUDA(ctx, cudaStreamWaitEvent(p->side, p->fork, 0));
    }
    if (R->blocks > 0) {
        dim3 grid((unsigned)ceil_div(R->blocks, subs), tiles);

        SPS_TRY_RETURN(run_kernel(ctx, grid, cta,
                                  block_kernel<T, V, N, D, WHOLE>, R->block,
                                  R->blocks, col, val, b, even, aligned));
    }
    if (R->residuals > 0) {
        dim3 grid((unsigned)ceil_div(R->residuals, subs), tiles);

        residual_kernel<T, V, N, WHOLE>
            <<<grid, cta, 0, two ? p->side : stream>>>(
                R->residual, R->residuals, col, val, b, aligned);
        SPS_LAUNCHED(ctx);
    }
    if (two) {
        SPS_CUDA(ctx, cudaEventRecord(p->join, p->side));
        SPS_CUDA(ctx, cudaStreamWaitEvent(stream, p->join, 0));
    }
    return SPS_OK;
}

/* Chooses the tile as in the paper where that is possible: 64 columns if the
 * width is a multiple of 64, otherwise 32.  D, the rows of X loaded at a time,
 * is only 4 with 64 columns in double precision, because of the registers. */
template <class V, class T>
sps_status multiply(const paper_plan *p, const V *val,
                    const sps_spmm_args *args)
{
    constexpr int wide_step = sizeof(T) == 8 ? 4 : 8;
    blocks<T> b = blocks_of<T>(args);
    bool aligned = aligned_quads<T>(args->X);

    if (aligned && b.k % 64 == 0)
        return launch<64, wide_step, true>(p, val, b, aligned);
    if (aligned && b.k % 32 == 0)
        return launch<32, 8, true>(p, val, b, aligned);
    return launch<32, 4, false>(p, val, b, aligned);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const paper_plan *p = (const paper_plan *)plan;
    const void *val = plan->A->val;

    SPS_TRY_RETURN(prepare(plan->ctx, args));
    if (args->Y->dtype == SPS_F32)
        return multiply<float, float>(p, (const float *)val, args);
    if (plan->A->dtype == SPS_F32)
        return multiply<float, double>(p, (const float *)val, args);
    return multiply<double, double>(p, (const double *)val, args);
}

/* ------------------------------------------------------------------- plan */

/* Counts the segments (block[i]) and residuals (residual[i]) of each row i. */
template <class I>
__global__ void __launch_bounds__(256)
count_kernel(const I *__restrict__ rowptr, int64_t nrow, int32_t *block,
             int32_t *residual)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x, slots;

    if (i >= nrow) return;
    slots = spsi_rode_slots(rowptr[i], rowptr[i + 1]);
    block[i] = spsi_rode_blocks(slots);
    residual[i] = spsi_rode_residuals(slots);
}

template <class I>
__global__ void __launch_bounds__(256)
fill_kernel(const I *__restrict__ rowptr, int64_t nrow,
            const int64_t *__restrict__ block_at,
            const int64_t *__restrict__ residual_at, spsi_rode R)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < nrow)
        spsi_rode_row((int32_t)i, rowptr[i], rowptr[i + 1],
                      R.block + block_at[i], R.residual + residual_at[i]);
}

/* For the list of segments (0) and that of residuals (1): the number of items
 * of each row, and its prefix sums. */
struct work {
    int32_t *count[2];
    int64_t *at[2];
};

sps_status work_take(holder *memory, int64_t nrow, work *w)
{
    for (int l = 0; l < 2; l++) {
        SPS_TRY_RETURN(memory->take(nrow + 1, &w->at[l]));
        SPS_TRY_RETURN(memory->take(nrow + 1, &w->count[l]));
    }
    return SPS_OK;
}

sps_status take_items(sps_plan *plan, const int64_t *total, int64_t *count,
                      spsi_rode_item **list)
{
    sps_context *ctx = plan->ctx;

    SPS_TRY_RETURN(ctx->backend->download(ctx, count, total, sizeof *count));
    return plan_take(plan, *count, list);
}

/* Builds the lists of segments and of residuals: a counting pass, two prefix
 * sums, a writing pass. */
template <class I>
sps_status build(paper_plan *p, const I *rowptr, const work *w)
{
    sps_plan *super = &p->base.super;
    sps_context *ctx = super->ctx;
    int64_t nrow = super->A->nrow;
    unsigned grid = (unsigned)ceil_div(nrow, 256);
    spsi_rode *R = &p->base.parts;

    SPS_TRY_RETURN(run_kernel(ctx, grid, 256, count_kernel<I>, rowptr, nrow,
                              w->count[0], w->count[1]));
    for (int l = 0; l < 2; l++)
        SPS_TRY_RETURN(spsi_cuda_scan(ctx, w->count[l], nrow, w->at[l]));
    SPS_TRY_RETURN(take_items(super, w->at[0] + nrow, &R->blocks, &R->block));
    SPS_TRY_RETURN(take_items(super, w->at[1] + nrow, &R->residuals,
                              &R->residual));
    SPS_TRY_RETURN(run_kernel(ctx, grid, 256, fill_kernel<I>, rowptr, nrow,
                              w->at[0], w->at[1], *R));
    return spsi_cuda_wait(ctx);
}

sps_status open_streams(sps_context *ctx, paper_plan *p)
{
    SPS_CUDA(ctx, cudaStreamCreateWithFlags(&p->side, cudaStreamNonBlocking));
    SPS_CUDA(ctx, cudaEventCreateWithFlags(&p->fork, cudaEventDisableTiming));
    SPS_CUDA(ctx, cudaEventCreateWithFlags(&p->join, cudaEventDisableTiming));
    return SPS_OK;
}

sps_status plan(sps_plan *super, const sps_problem *problem)
{
    const sps_csr_local *A = problem->local;
    sps_context *ctx = super->ctx;
    paper_plan *p = (paper_plan *)super;
    holder memory(ctx);
    work w;

    if (A->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(open_streams(ctx, p));
    SPS_TRY_RETURN(work_take(&memory, A->nrow, &w));
    return A->rowptr32 ? build(p, A->rowptr32, &w) : build(p, A->rowptr, &w);
}

/* In a process made by fork() nothing is released, since the CUDA objects
 * belong to the parent. */
void destroy(sps_plan *plan)
{
    paper_plan *p = (paper_plan *)plan;

    if (spsi_cuda_state(plan->ctx)->pid != getpid()) return;
    if (p->fork) cudaEventDestroy(p->fork);
    if (p->join) cudaEventDestroy(p->join);
    if (p->side) cudaStreamDestroy(p->side);
}

bool fits(const sps_problem *p, const char **why_not)
{
    if (p->A->nrow > INT32_MAX) {
        *why_not = "A has 2^31 rows or more";
        return false;
    }
    return true;
}

/* Predicted seconds, fitted to an H200 (copy bandwidth 4.2 TB/s; 7-point,
 * 27-point, elasticity and R-MAT matrices; 8 to 128 columns in double
 * precision): for each tile of 32 columns 20 ps per entry and 125 ps per row,
 * which are the times of 84 and 525 bytes at copy bandwidth; plus the time of
 * clearing Y. */
double cost(const sps_problem *p)
{
    double tiles = (double)ceil_div(p->k, 32);
    double work = 84.0 * (double)p->f->nnz + 525.0 * (double)p->f->nrow;
    double y = (double)p->f->nrow * p->k * (double)spsi_dtype_size(p->block);

    return (tiles * work + y) / p->machine->copy + 8e-6;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_rode_paper) = {
    .name = "spmm.rode_paper",
    .op = SPS_OP_SPMM,
    .gives = SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW | SPS_SINGLE_BLOCKS,
    .size = sizeof(paper_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<spmm>,
    .destroy = destroy,
};
