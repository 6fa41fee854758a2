/* SPDX-License-Identifier: BSD-3-Clause */
/* sparse.cuh - what the SpMM and SDDMM kernels share: the matrix as kernels
 * see it, and the choice of types at the launch. */
#ifndef SPS_CUDA_SPARSE_CUH
#define SPS_CUDA_SPARSE_CUH

#include <math.h>

#include "device.cuh"
#include "kernel.h"
#include "machine.h"

namespace {

/* I: int32_t where the offsets allow, else int64_t; V: double or float. */
template <class I, class V> struct matrix {
    int64_t nrow;
    const I *__restrict__ rowptr;
    const int32_t *__restrict__ col;
    const V *__restrict__ val;
};

template <class I, class V> matrix<I, V> matrix_of(const sps_csr_local *A)
{
    matrix<I, V> m;

    m.nrow = A->nrow;
    m.rowptr = sizeof(I) == 4 ? (const I *)A->rowptr32 : (const I *)A->rowptr;
    m.col = A->col;
    m.val = (const V *)A->val;
    return m;
}

/* Y = alpha A X + beta Y as kernels see it; T: double or float. */
template <class T> struct blocks {
    double alpha, beta;
    const double *scalars; /* on the device, or NULL */
    const T *__restrict__ x;
    int64_t ldx;
    T *__restrict__ y;
    int64_t ldy;
    int k;
    /* An epilogue's (kernel.h); W has Y's ld, and so has X then. */
    bool fused;
    const double *d;
    const T *w;
    double gamma, delta;

    /* First thing in a kernel: scalars that lie on the device. */
    __device__ __forceinline__ void resolve()
    {
        if (scalars) {
            alpha = scalars[0];
            beta = scalars[1];
        }
    }
    /* alpha sum + beta old, where a zero scalar hides what it meets.  old is
     * read only when beta is not zero. */
    template <class S>
    __device__ __forceinline__ T join(S sum, const T *old) const
    {
        S r = alpha != 0 ? (S)alpha * sum : S(0);

        return (T)(beta != 0 ? fma((S)beta, (S)*old, r) : r);
    }
    /* The same with what an epilogue adds; old is in row i.  Kernels that
     * fuse call this one. */
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

/* The epilogue hook: a row-parallel kernel calls finish(i, j, sum) once for
 * each element, from the lane that owns it, with the sum over the row.  This
 * one is Y = alpha A X + beta Y; a fused form (a residual F - A X, a three-term
 * recurrence, a scaling by rows) is another struct with the same call. */
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

/* call(matrix) with the types of A. */
template <class F> sps_status with_types(const sps_csr_local *A, const F &call)
{
    if (A->dtype == SPS_F64)
        return A->rowptr32 ? call(matrix_of<int32_t, double>(A))
                           : call(matrix_of<int64_t, double>(A));
    return A->rowptr32 ? call(matrix_of<int32_t, float>(A))
                       : call(matrix_of<int64_t, float>(A));
}

/* call(matrix, blocks) with the types of A, X and Y; floats in blocks come
 * with floats in A (lib/planner.c sees to it). */
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

/* Nothing to multiply: Y = beta Y, reading neither A nor X.  Scalars on the
 * device are not known here: then only an empty A is trivial. */
inline bool trivial(const sps_plan *plan, const sps_spmm_args *args)
{
    return (!args->scalars && args->alpha == 0) || plan->A->nnz == 0;
}

template <class T>
__global__ void __launch_bounds__(256) scale_kernel(blocks<T> b, int64_t n)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, i = e / b.k;
    T *y = b.y + i * b.ldy + e % b.k;

    b.resolve();
    b.alpha = 0;
    if (i < n) *y = b.join(T(0), y);
}

inline sps_status scale_only(const sps_spmm_args *args)
{
    const sps_block *Y = args->Y;
    sps_context *ctx = Y->ctx;
    unsigned grid = (unsigned)ceil_div(Y->n * Y->k, 256);
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;

    if (!args->scalars && args->beta == 1) return SPS_OK;
    if (Y->dtype == SPS_F64)
        scale_kernel<<<grid, 256, 0, stream>>>(blocks_of<double>(args), Y->n);
    else
        scale_kernel<<<grid, 256, 0, stream>>>(blocks_of<float>(args), Y->n);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

/* What a kernel makes of the machine, for predictions.  A product moves A, X
 * and Y once (stream), and the rows of X that the SMs ask of L2 (gathered: one
 * for each entry that does not find its row in L1):
 *
 *     seconds = (stream / beta + gathered / rate) / together + entries * entry
 *
 * with beta and rate as machine.h has them, blocks in the lines of 128 bytes
 * that their rows lie in.  Constants are fitted to spbench -tsv; they are
 * right within a fifth on the systems of doc/benchmarks.md. */
struct skill {
    double together; /* 1: one after the other; 2: the two hide each other */
    double missed;   /* share of the entries that miss L1 even if one of the
                        64 rows around has used the row of X */
    double entry;    /* seconds for each entry beside */
    double ragged;   /* more of it all when rows of X end within a sector */
    double half;     /* times all, when rows of X are 64 to 127 bytes */
    double serial;   /* seconds for each entry of the longest row, where one
                        owner walks it; 0: long rows are split */
    int group;       /* rows with the same columns that share the work on
                        entries, at most; 0 and 1: none */
};

/* Bytes of a row of X or Y that move: lines, or sectors when short. */
inline double moved_row(const sps_problem *p)
{
    const double row = p->k * (double)spsi_dtype_size(p->block);

    return row > 64 ? 128 * ceil(row / 128) : row;
}

/* Bytes of X that are in use at a time.  Rows of a band reach over a window
 * of which a wave of blocks works on some thousand rows, others over all of
 * X; in a graph with a power law half of the rows do nearly all. */
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
    const double nnz = (double)f->nnz, beta = p->bandwidth;
    const double distinct = f->distinct64 > 0 ? f->distinct64 : 1.0;
    const double missed = s.missed + (1 - s.missed) * distinct;
    const double stream = spsi_spmm_floor(p) + (row - p->k * number) *
                          (double)(f->nrow + f->ncol);
    const double rate = spsi_gather_rate(beta, footprint_of(p, sectors),
                                         sectors);
    const int group = f->block < s.group ? f->block : s.group;
    double t = (stream / beta + nnz * sectors * missed / rate) / s.together +
               nnz * s.entry / (group > 1 ? group : 1);

    if (p->k * (int)number % 32) t *= 1 + s.ragged;
    if (p->k * number >= 64 && p->k * number < 128) t *= s.half;
    return t + s.serial * (double)f->max_length + 3e-6;
}

/* Seconds in which sectors of X come out of L2, one for each entry that meets
 * no neighbour, where rows reach over all of X; in narrower bands L1 and the
 * stream hide them.  distinct64 stands for what L1 keeps. */
inline double scattered(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double row = spsi_sectors(p->k * (double)spsi_dtype_size(p->block));

    const double whole = (double)f->ncol * p->k *
                         (double)spsi_dtype_size(p->block);

    if (f->bandwidth <= f->ncol / 8) return 0;
    return (double)f->nnz * f->distinct64 * row /
           spsi_gather_rate(p->bandwidth, whole, row);
}

/* Share of the entries in the `count` columns of most use, as far as columns
 * are like rows (a symmetric pattern). */
inline double near_share(const sps_problem *p, double count)
{
    const sps_features *f = p->f;
    double held = 0;

    for (int b = SPS_LENGTH_BINS - 1; b > 0 && count > 0; b--) {
        const double rows = (double)f->lengths[b];
        const double taken = rows < count ? rows : count;

        held += taken * 0.72 * ldexp(1.0, b); /* of 2^(b-1) .. 2^b - 1 */
        count -= taken;
    }
    return f->nnz > 0 ? fmin(held / (double)f->nnz, 1.0) : 0;
}

/* Seconds of the bytes that must move, at a share of the copy bandwidth. */
inline double stream_seconds(const sps_problem *p, double share)
{
    return spsi_spmm_floor(p) / (share * p->bandwidth);
}

/* Whether A, X and Y stay in L2 from one product to the next. */
inline bool stays_in_l2(const sps_problem *p)
{
    return spsi_spmm_floor(p) < 30e6;
}

/* Seconds that a group of threads takes from one step along a row to the next:
 * two loads in turn, out of L2 when A stays there, else out of memory. */
inline double step_seconds(const sps_problem *p)
{
    return stays_in_l2(p) ? 0.36e-6 : 0.7e-6;
}

/* The same and a launch. */
inline double seconds(const sps_problem *p, double share)
{
    return spsi_spmm_floor(p) / (share * p->bandwidth) + 3e-6;
}

} // namespace

#endif
