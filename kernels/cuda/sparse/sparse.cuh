/* SPDX-License-Identifier: BSD-3-Clause */
/* sparse.cuh - common code of the SpMM and SDDMM kernels: blocks and epilogues
 * as passed to kernels, the selection of data types at launch, and predicted
 * run times. */
#ifndef SPS_CUDA_SPARSE_CUH
#define SPS_CUDA_SPARSE_CUH

#include <math.h>

#include "cuda/base/csr_view.cuh"
#include "cuda/base/device.cuh"
#include "cuda/plan/plan_memory.cuh"
#include "plan/kernel.h"
#include "cuda/base/machine.h"

/* Functions of spmm_plain.cu that other kernels call, so that they are compiled
 * once: Y = beta Y; and the product by one thread per row, for an X whose rows
 * are 4 GB or more apart (near_only, ordered.cuh). */
sps_status spsi_cuda_scale(const sps_spmm_args *args);
sps_status spsi_cuda_far_product(const sps_plan *plan,
                                 const sps_spmm_args *args);

namespace {

/* Y = alpha A X + beta Y as passed to kernels; T: double or float. */
template <class T> struct blocks {
    double alpha, beta;
    const double *scalars; /* alpha and beta in device memory, or NULL: those
                              above are used */
    const T *__restrict__ x;
    int64_t ldx;
    T *__restrict__ y;
    int64_t ldy;
    int k;
    /* The operands of the epilogue (kernel.h), with which X, W and Y have the
     * same ld. */
    bool fused;
    const double *d;
    const T *w;
    double gamma, delta;

    /* To be called first in a kernel: loads scalars in device memory. */
    __device__ __forceinline__ void resolve()
    {
        if (scalars) {
            alpha = scalars[0];
            beta = scalars[1];
        }
    }
    /* Returns alpha sum + beta old.  A zero scalar suppresses its term even if
     * the other factor is not finite; old is read only if beta is not zero. */
    template <class S>
    __device__ __forceinline__ T join(S sum, const T *old) const
    {
        S r = alpha != 0 ? (S)alpha * sum : S(0);

        return (T)(beta != 0 ? fma((S)beta, (S)*old, r) : r);
    }
    /* Returns D (alpha sum + gamma W) + beta old + delta X if there is an
     * epilogue, else alpha sum + beta old; the element old is in row i.
     * Kernels that fuse epilogues call this function. */
    template <class S>
    __device__ __forceinline__ T join(S sum, const T *old, int64_t i) const
    {
        if (!fused) return join(sum, old);
        int64_t at = old - y;
        S r = (S)alpha * sum;

        if (w) r = fma((S)gamma, (S)w[at], r);
        if (d) r *= (S)d[i];
        if (beta != 0) r = fma((S)beta, (S)*old, r);
        return (T)(delta != 0 ? fma((S)delta, (S)x[at], r) : r);
    }
};

template <class T = double> blocks<T> blocks_of(const sps_spmm_args *args)
{
    blocks<T> b = {};

    b.alpha = args->alpha;
    b.beta = args->beta;
    b.scalars = args->scalars;
    b.x = (const T *)args->X->data;
    b.ldx = args->X->ld;
    b.y = (T *)args->Y->data;
    b.ldy = args->Y->ld;
    b.k = args->Y->k;
    b.fused = args->epilogue != NULL;
    if (b.fused) {
        const sps_epilogue *e = args->epilogue;

        b.d = e->D ? (const double *)e->D->data : NULL;
        b.w = e->W ? (const T *)e->W->data : NULL;
        b.gamma = e->gamma;
        b.delta = e->delta;
    }
    return b;
}

/* The epilogue interface: a row-parallel kernel calls finish(i, j, sum) once
 * for each element, in the lane that owns it, with the sum over the row.  This
 * one is Y = alpha A X + beta Y; a fused form (a residual F - A X, a three-term
 * recurrence, a row scaling) is another structure with the same call. */
template <class T> struct axpby_epilogue {
    blocks<T> b;

    __device__ __forceinline__ void begin() { b.resolve(); }
    template <class S>
    __device__ __forceinline__ void operator()(int64_t i, int j, S sum) const
    {
        T *p = b.y + i * b.ldy + j;

        *p = b.join(sum, p);
    }
};

template <class T> axpby_epilogue<T> epilogue_of(const blocks<T> &b)
{
    return axpby_epilogue<T>{b};
}

/* Calls call(M, b) with the matrix M and the blocks b in the data types of A, X
 * and Y; single-precision blocks imply a single-precision A (lib/plan/planner.c
 * ensures this). */
template <class F>
sps_status with_all_types(const sps_csr_local *A, const sps_spmm_args *args,
                          const F &call)
{
    if (args->Y->dtype == SPS_F64)
        return with_types(A, [&](auto M) -> sps_status {
            return call(M, blocks_of<double>(args));
        });
    return A->rowptr32
        ? call(matrix_of<int32_t, float>(A), blocks_of<float>(args))
        : call(matrix_of<int64_t, float>(A), blocks_of<float>(args));
}

/* Returns whether the product is Y = beta Y, which reads neither A nor X.  The
 * values of scalars in device memory are unknown here; with them it is so only
 * for an empty A. */
inline bool trivial(const sps_plan *plan, const sps_spmm_args *args)
{
    return (!args->scalars && args->alpha == 0) || plan->A->nnz == 0;
}

/* The function spmm of a kernel: calls `product` if A has entries, Y has
 * columns and alpha is not zero, otherwise only multiplies Y by beta. */
template <sps_status (*product)(const sps_plan *, const sps_spmm_args *)>
sps_status guarded(const sps_plan *plan, const sps_spmm_args *args)
{
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return spsi_cuda_scale(args);
    return product(plan, args);
}

/* Parameters of a kernel for the prediction of its run time.  A product moves
 * A, X and Y once (stream), plus the rows of X that the multiprocessors request
 * from L2 (gathered: one for each entry that does not find its row in L1):
 *
 *     seconds = (stream / beta + gathered / rate) / together + entries * entry
 *
 * where beta is the copy bandwidth and rate that of gathers (machine.h); rows
 * of blocks count with all 128-byte lines that they touch.  The constants are
 * fitted to times of spbench; the error is at most a fifth on the systems of
 * doc/benchmarks.md. */
struct skill {
    double together; /* 1: no overlap of the two terms; 2: complete overlap */
    double missed;   /* fraction of the entries that miss L1 even if one of the
                        64 rows around has used the row of X */
    double entry;    /* additional seconds per entry */
    double ragged;   /* relative increase of the total if rows of X end within a
                        sector */
    double half;     /* factor of the total if rows of X have 64 to 127 bytes */
    double serial;   /* seconds per entry of the longest row, if one group of
                        lanes processes it; 0: long rows are split */
    int group;       /* maximal number of rows with the same columns that share
                        the work per entry; 0 and 1: none */
};

/* Returns the bytes moved for a row of X or Y: whole cache lines, or its own
 * bytes if it is short. */
inline double moved_row(const sps_problem *p)
{
    const double row = p->k * (double)spsi_dtype_size(p->block);

    return row > 64 ? 128 * ceil(row / 128) : row;
}

/* Returns the bytes of X in use at the same time.  A row of a band matrix needs
 * a window of X, and the resident thread blocks process some thousand rows;
 * other matrices need all of X.  In a power-law graph half of the rows have
 * nearly all entries. */
inline double footprint_of(const sps_problem *p, double row)
{
    const sps_features *f = p->f;
    const double reach = 2.0 * (double)f->bandwidth + 32768.0;
    const double columns = (double)f->ncol;

    return (reach < columns ? reach : columns) * row *
           (f->deviation > 2 * f->mean_length ? 0.5 : 1.0);
}

inline double predicted(const sps_problem *p, const skill &s)
{
    const sps_features *f = p->f;
    const double row = moved_row(p), sectors = spsi_sectors(row);
    const double number = (double)spsi_dtype_size(p->block);
    const double nnz = (double)f->nnz, beta = p->machine->copy;
    const double distinct = f->distinct64 > 0 ? f->distinct64 : 1.0;
    const double missed = s.missed + (1 - s.missed) * distinct;
    const double stream = spsi_spmm_floor(p) + (row - p->k * number) *
                          (double)(f->nrow + f->ncol);
    const double rate = spsi_gather_rate(p->machine, footprint_of(p, sectors),
                                         sectors);
    const int group = f->block < s.group ? f->block : s.group;
    double t = (stream / beta + nnz * sectors * missed / rate) / s.together +
               nnz * s.entry * p->machine->work / (group > 1 ? group : 1);

    if (p->k * (int)number % 32) t *= 1 + s.ragged;
    if (p->k * number >= 64 && p->k * number < 128) t *= s.half;
    return t + s.serial * (double)f->max_length + 3e-6;
}

/* Returns the seconds for gathering nnz distinct64 rows of X, in whole sectors:
 * distinct64, the fraction of entries whose column no neighbouring row has,
 * estimates the L1 miss rate. 0 for bands narrower than a quarter of the
 * columns (bandwidth <= ncol / 8), where the gather overlaps with L1 hits and
 * streaming. */
inline double scattered(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double row = spsi_sectors(p->k * (double)spsi_dtype_size(p->block));

    const double whole = (double)f->ncol * p->k *
                         (double)spsi_dtype_size(p->block);

    if (f->bandwidth <= f->ncol / 8) return 0;
    return (double)f->nnz * f->distinct64 * row /
           spsi_gather_rate(p->machine, whole, row);
}

/* Returns the fraction of the entries that are in the `count` most used
 * columns, assuming column lengths distributed like row lengths (exact for a
 * symmetric pattern). */
inline double near_share(const sps_problem *p, double count)
{
    const sps_features *f = p->f;
    double held = 0;

    for (int b = SPS_LENGTH_BINS - 1; b > 0 && count > 0; b--) {
        const double rows = (double)f->lengths[b];
        const double taken = rows < count ? rows : count;

        held += taken * 0.72 * ldexp(1.0, b); /* mean length of the rows with
                                                 2^(b-1) .. 2^b - 1 entries */
        count -= taken;
    }
    return f->nnz > 0 ? fmin(held / (double)f->nnz, 1.0) : 0;
}

/* Returns the seconds for moving A, X and Y once at `share` times the copy
 * bandwidth. */
inline double stream_seconds(const sps_problem *p, double share)
{
    return spsi_spmm_floor(p) / (share * p->machine->copy);
}

/* Returns whether A, X and Y stay in L2 between consecutive products. */
inline bool stays_in_l2(const sps_problem *p)
{
    return spsi_spmm_floor(p) < p->machine->kept;
}

/* Returns the seconds of one step of a group of lanes along a row: two
 * dependent loads, from L2 if A stays there, otherwise from memory. */
inline double step_seconds(const sps_problem *p)
{
    return stays_in_l2(p) ? p->machine->l2_step : p->machine->memory_step;
}

/* Returns stream_seconds plus 3 us for the launch. */
inline double seconds(const sps_problem *p, double share)
{
    return spsi_spmm_floor(p) / (share * p->machine->copy) + 3e-6;
}

} // namespace

#endif
