/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_device.cuh - device code around TCA-SpMM: the matrix and its work list
 * (formats/tca.h), loads without branches, split and empty rows, launches. */
#ifndef SPS_CUDA_TCA_CUH
#define SPS_CUDA_TCA_CUH

#include "cuda/sparse/sparse.cuh"
#include "cuda/papers/tca_plan.h"

namespace {

struct tca_work {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ rowptr32; /* NULL: use rowptr */
    const int32_t *__restrict__ col;
    const void *__restrict__ val;
    bool wide;               /* values are in double precision */
    const int32_t *__restrict__ slot;
    const spsi_tca_piece *__restrict__ piece;
    int64_t count;           /* number of teams, or of pieces */

    __device__ __forceinline__ int64_t begin(int64_t i) const
    {
        return rowptr32 ? (int64_t)__ldg(rowptr32 + i) : __ldg(rowptr + i);
    }
    __device__ __forceinline__ double value(int64_t p) const
    {
        return wide ? __ldg((const double *)val + p)
                    : (double)__ldg((const float *)val + p);
    }
};

/* Row j >= 0 of X. */
__device__ __forceinline__ const double *row_of(const double *x, int32_t j,
                                                int64_t ld)
{
    return x + (uint64_t)(uint32_t)j * (uint64_t)ld;
}

/* Consecutive numbers of a row of X, of which the first `left` exist; the
 * others are zero and not read.  Predicated, without branches: otherwise lanes
 * that read nothing would clear registers which are the destination of pending
 * loads of other lanes, and each load would wait for the one before.  ALIGNED:
 * p is aligned to the whole vector. */
template <bool ALIGNED>
__device__ __forceinline__ double2 load_two(const double *p, int left)
{
    double2 v;

    if (ALIGNED)
        asm("{.reg .pred a, b;\n\t"
            "setp.ge.s32 a, %3, 2;\n\tsetp.eq.s32 b, %3, 1;\n\t"
            "mov.f64 %0, 0d0000000000000000;\n\t"
            "mov.f64 %1, 0d0000000000000000;\n\t"
            "@a ld.global.nc.v2.f64 {%0, %1}, [%2];\n\t"
            "@b ld.global.nc.f64 %0, [%2];}"
            : "=&d"(v.x), "=&d"(v.y) : "l"(p), "r"(left));
    else
        asm("{.reg .pred a, b;\n\t"
            "setp.ge.s32 a, %3, 2;\n\tsetp.ge.s32 b, %3, 1;\n\t"
            "mov.f64 %0, 0d0000000000000000;\n\t"
            "mov.f64 %1, 0d0000000000000000;\n\t"
            "@a ld.global.nc.f64 %1, [%2+8];\n\t"
            "@b ld.global.nc.f64 %0, [%2];}"
            : "=&d"(v.x), "=&d"(v.y) : "l"(p), "r"(left));
    return v;
}

/* Y of split rows: adds their partial sums in order; one thread per element. */
__global__ void __launch_bounds__(256)
join_kernel(const spsi_tca_split *__restrict__ split, int64_t splits,
            const double *__restrict__ partial, blocks<double> b)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, i = e / b.k;
    int j = (int)(e % b.k);

    b.resolve();
    if (i >= splits) return;
    spsi_tca_split r = split[i];
    double *y = b.y + (int64_t)r.row * b.ldy + j;
    double sum = 0;

    for (int s = 0; s < r.count; s++) sum += partial[(r.first + s) * b.k + j];
    *y = b.join(sum, y);
}

/* Y = beta Y in rows without entries. */
__global__ void __launch_bounds__(256)
empty_kernel(const int32_t *__restrict__ empty, int64_t count,
             blocks<double> b)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, i = e / b.k;

    b.resolve();
    if (i >= count) return;
    double *y = b.y + (int64_t)empty[i] * b.ldy + e % b.k;

    *y = b.join(0.0, y);
}

inline tca_work work_of(const sps_tca_plan *plan)
{
    const sps_csr_local *A = plan->super.A;
    tca_work w;

    w.rowptr = A->rowptr;
    w.rowptr32 = A->rowptr32;
    w.col = A->col;
    w.val = A->val;
    w.wide = A->dtype == SPS_F64;
    w.slot = plan->work.slot;
    w.piece = plan->work.piece;
    w.count = 0;
    return w;
}

/* Teams or pieces per thread block: up to the limit if there are many, so that
 * neighbouring rows share X in L1, but never so many that multiprocessors are
 * idle. */
inline int run_of(const sps_context *ctx, int64_t count, int least, int most)
{
    int64_t run = count / (4 * (int64_t)spsi_cuda_state(ctx)->sms);

    return run < least ? least : run > most ? most : (int)run;
}

/* The remaining rows, after teams and pieces: sums of split rows, and empty
 * rows. */
inline sps_status finish_rows(const sps_tca_plan *plan,
                              const blocks<double> &b)
{
    sps_context *ctx = plan->super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    const spsi_tca *list = &plan->work;

    if (list->n.splits > 0) {
        join_kernel<<<(unsigned)ceil_div(list->n.splits * b.k, 256), 256, 0,
                      stream>>>(list->split, list->n.splits, plan->partial, b);
        SPS_LAUNCHED(ctx);
    }
    if (list->n.empties > 0) {
        empty_kernel<<<(unsigned)ceil_div(list->n.empties * b.k, 256), 256, 0,
                       stream>>>(list->empty, list->n.empties, b);
        SPS_LAUNCHED(ctx);
    }
    return SPS_OK;
}

} // namespace

#endif
