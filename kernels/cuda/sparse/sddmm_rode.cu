/* SPDX-License-Identifier: BSD-3-Clause */
/* sddmm_rode.cu - val[p] = alpha (u_i . v_j) [* a_p] + beta val[p] for each
 * stored (i, j), after RoDe (Pang et al., "RoDe: A Row Decomposition-based
 * Approach for Sparse Matrix Multiplication on GPUs", PPoPP 2024): rows are
 * divided into items of a few entries, a group of lanes processes an item, and
 * a butterfly of shuffles adds the lanes' partial sums of all its entries at
 * once.  Kernels: sddmm_rode.cuh.
 *
 * RoDe divides every row into blocks of 32 entries and a residue and computes
 * in single precision with an inner dimension known at compile time.  Here one
 * group of lanes processes a row in items of 8 entries, and only rows much
 * longer than others are divided into segments (kernels/formats/segments.h),
 * which get warps of their own; double or single precision, any inner dimension
 * and alignment.  Each sample is computed by one group, so there is no
 * reduction between groups and there are no atomics.
 *
 * If all rows have similar lengths no plan data are needed.  Bytes: columns and
 * val once, U once; for each entry a row of V, again from memory if L1 and L2
 * have evicted it.  A thread block processes consecutive rows, so that the rows
 * of V that the rows of a stencil share are still in L1. */
#include "cuda/base/machine.h"
#include "cuda/sparse/sddmm_rode.cuh"
#include "cuda/plan/segments_device.h"

#include <stdio.h>

namespace {

constexpr int widest = 256;          /* most bytes of a row of V in a slice of
                                        columns */
/* Mean number of rows of a range, which is the work of a thread block if row
 * lengths are uneven. */
constexpr int uneven_run = 384;

struct rode_plan {
    sps_plan super;
    sps_segments parts;        /* segments of long rows, in device memory; empty
                                  if row lengths are similar */
};

/* Returns the number of threads of a block.  For slices of 256 bytes (L C = 16)
 * in form FULL one block fills a multiprocessor. */
template <class T> constexpr int threads_of(int L, int C, form F)
{
    if (L * C < 16 || F != FULL) return 512;
    return sizeof(T) == 8 ? 1024 : 768;
}

/* Returns the number of rows of a run (the work of a thread block), a multiple
 * of `step`: so few that the rows of V used by the runs of all multiprocessors
 * at the same time, including the neighbouring planes of a grid, stay in L2,
 * and that every multiprocessor gets several runs; but so many that
 * neighbouring rows share V in L1. row: bytes of a row of V. */
int run_of(const sps_context *ctx, int64_t nrow, int64_t row, int step,
           bool wide)
{
    int64_t want = (wide ? 96 << 10 : 36 << 10) / row;
    int64_t least = ceil_div(nrow, 4 * spsi_cuda_state(ctx)->sms);

    if (want > least) want = least;
    want = (want + step / 2) / step * step;
    return (int)(want > step ? want : step);
}

pattern pattern_of(const sps_csr_local *A)
{
    return { (int32_t)A->nrow, A->rowptr32, A->rowptr, A->col, A->val,
             A->dtype == SPS_F32 };
}

/* Returns the arguments in the form passed to kernels, with the columns divided
 * into slices of equal width: at most `widest` bytes, and a multiple of the W
 * numbers of a vector load. */
template <class T>
sample<T> sample_of(const sps_sddmm_args *args, int W)
{
    const sps_block *U = args->U, *V = args->V;
    int pieces = U->k / W, most = widest / (W * (int)sizeof(T));
    int slices = (int)ceil_div(pieces, most);

    return { args->alpha, args->beta, (const T *)U->data, U->ld,
             (const T *)V->data, V->ld, U->k, slices,
             (int)ceil_div(pieces, slices) * W, args->multiply,
             (T *)args->val };
}

/* Launches the kernel in which a group of lanes processes R rows at once. */
template <class T, int W, int L, int C, int R, form F>
sps_status launch_rows(const sps_plan *plan, const sample<T> &s)
{
    constexpr int threads = R > 1 ? 512 : threads_of<T>(L, C, F);
    const sps_segments *parts = &((const rode_plan *)plan)->parts;
    sps_context *ctx = plan->ctx;
    pattern A = pattern_of(plan->A);
    int run = run_of(ctx, A.nrow / R, (int64_t)(s.d * sizeof(T) * R),
                     threads / L, threads > 512);
    int64_t grid = parts->range ? parts->ranges : ceil_div(A.nrow / R, run);
    ranges_of ranges = { parts->range, parts->odd > 0 ? parts->alike : NULL,
                         run, parts->limits.cut, parts->limits.group };

    if (R == 1 && parts->limits.group > 1) ranges.alike = parts->alike;
    if (grid == 0) return SPS_OK;
    return run_kernel(ctx, (unsigned)grid, threads,
                      rows_kernel<T, W, L, C, R, F, threads>, A, s, ranges);
}

template <class T, int W, int L, int C, form F>
sps_status launch_once(const sps_plan *plan, const sample<T> &s)
{
    const sps_segments *parts = &((const rode_plan *)plan)->parts;
    sps_context *ctx = plan->ctx;
    int group = parts->limits.group;

    if (parts->count > 0)
        SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(parts->count, 8), 256,
                                  segments_kernel<T, W, L, C, F, 256>,
                                  pattern_of(plan->A), s, parts->segment,
                                  parts->count));
    if constexpr (F == FULL) {
        if (group == 2) return launch_rows<T, W, L, C, 2, F>(plan, s);
        if (group == 3) return launch_rows<T, W, L, C, 3, F>(plan, s);
    }
    return launch_rows<T, W, L, C, 1, F>(plan, s);
}

/* Launches the kernel for all slices of columns.  If rows share columns with
 * their neighbours, one launch processes all slices of a run, whose rows of V
 * stay in the caches.  Otherwise there is one launch per slice: then a slice of
 * V is found in L2 more often because all thread blocks use it at the same
 * time. */
template <class T, int W, int L, int C, form F>
sps_status launch(const sps_plan *plan, const sample<T> &s)
{
    sample<T> one = s;

    if (!((const rode_plan *)plan)->parts.range)
        return launch_once<T, W, L, C, F>(plan, s);
    one.slices = 1;
    for (int t = 0; t < s.slices; t++) {
        one.d = t + 1 < s.slices ? s.width : s.d - t * s.width;
        SPS_TRY_RETURN((launch_once<T, W, L, C, F>(plan, one)));
        one.u += s.width;
        one.v += s.width;
        one.beta = 1;
    }
    return SPS_OK;
}

template <class T, int L, int C>
sps_status shape(const sps_plan *plan, const sample<T> &s, int W)
{
    constexpr int most = 16 / sizeof(T);

    if (W == 1) return launch<T, 1, L, C * most, SINGLE>(plan, s);
    if (s.width == L * C * most && s.d % s.width == 0)
        return launch<T, most, L, C, FULL>(plan, s);
    return launch<T, most, L, C, SOME>(plan, s);
}

/* Returns the number of numbers per vector load: those of 16 bytes if U and V
 * are aligned to them and have as many columns, and if the row stride of V in
 * bytes fits 32 bits (row_of); else 1. */
template <class T> int piece_of(const sps_sddmm_args *args)
{
    constexpr int W = 16 / sizeof(T);
    const sps_block *U = args->U, *V = args->V;
    bool aligned = ((uintptr_t)U->data | (uintptr_t)V->data) % 16 == 0 &&
                   U->ld % W == 0 && V->ld % W == 0 && U->k >= W &&
                   V->ld <= (int64_t)(UINT32_MAX / sizeof(T));

    return aligned ? W : 1;
}

/* Launches the smallest kernel shape that holds a slice: L C vectors of 16
 * bytes, and one lane for each of the remaining columns. */
template <class T>
sps_status run(const sps_plan *plan, const sps_sddmm_args *args)
{
    sps_context *ctx = plan->ctx;
    int64_t nnz = plan->A->nnz;

    if (args->alpha == 0 || args->U->k == 0)
        return run_items(ctx, nnz, scale_samples<T>, args->beta, (T *)args->val,
                         nnz);
    int W = piece_of<T>(args);
    sample<T> s = sample_of<T>(args, W);
    int bytes = s.width * (int)sizeof(T);

    if (bytes <= 32 && s.d % W <= 2) return shape<T, 2, 1>(plan, s, W);
    if (bytes <= 64) return shape<T, 4, 1>(plan, s, W);
    if (bytes > 128) return shape<T, 8, 2>(plan, s, W);
    if constexpr (sizeof(T) == 8) return shape<T, 4, 2>(plan, s, W);
    else return shape<T, 8, 1>(plan, s, W);
}

sps_status sddmm(const sps_plan *plan, const sps_sddmm_args *args)
{
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (plan->A->nnz == 0) return SPS_OK;
    return args->U->dtype == SPS_F64 ? run<double>(plan, args)
                                     : run<float>(plan, args);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    sps_segments_limits limits;
    sps_segments *s = &((rode_plan *)super)->parts;

    s->limits = { INT32_MAX, 0, 1 };
    if (p->local->nnz == 0 || !spsi_segments_pay(p->f, &limits)) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_segments_alike(
        super, limits, ceil_div(super->A->nrow, uneven_run), s));
    spsi_cuda_segments_tell(super, s);
    return SPS_OK;
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "A has 2^31 rows or more";
    return p->A->nrow < INT32_MAX;
}

/* Predicted seconds, the larger of two times.  One: columns, samples (again for
 * each slice), U and V from memory, plus the rows of V not shared by 64
 * neighbouring rows from L2, which overlaps in part.  The other, if rows share
 * much: the work of the multiprocessors, which for each entry takes the time of
 * 27 bytes of memory traffic per slice and of a fifth of the bytes of its row.
 * Within a third of the times measured on the H200, except for matrices with
 * several unknowns per node, which are faster. */
double cost(const sps_problem *p)
{
    const sps_features *f = p->f;
    double beta = p->machine->copy, width = (double)spsi_dtype_size(p->block);
    double row = p->k * width, nnz = (double)f->nnz;
    double slices = (double)ceil_div((int64_t)row, widest);
    double window = 2.0 * (double)f->bandwidth + 1e5;
    bool near = window < (double)f->ncol;
    double footprint = row * (near ? window : (double)f->ncol);
    double distinct = f->distinct64 > 0 ? f->distinct64 : 1.0;
    double bytes = nnz * ((2.0 * slices - 1.0) * width + 4.0) +
                   (double)(f->nrow + f->ncol) * row;
    double moved = bytes / (0.9 * beta) + (near ? 0.5 : 0.75) * nnz * row *
                   distinct / spsi_gather_rate(p->machine, footprint, row);
    double work = nnz * (27.0 * slices + 0.2 * row) / beta;

    return (moved > work ? moved : work) + p->machine->launch;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_sddmm_rode) = {
    .name = "sddmm.rode",
    .op = SPS_OP_SDDMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .size = sizeof(rode_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .sddmm = sddmm,
};
