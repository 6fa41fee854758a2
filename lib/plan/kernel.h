/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h - the contract of a kernel.
 *
 * A kernel is one const table in one file; the file's line in the build list
 * registers it.  For a problem it states whether it fits, predicts its time, and
 * makes a plan.
 *
 * spmm computes Y = alpha A X + beta Y.  It runs asynchronously on ctx->stream
 * and allocates nothing.  It accepts every width 1 .. plan->k, every ld, and
 * data that are aligned to their type only.  It does not read Y if beta = 0, nor
 * A and X if alpha = 0, and writes every row of Y once.  It may write padding of
 * Y, with zeros, only if Y is an allocated block at full width (block.h).
 * sddmm computes val[p] = alpha (u_i . v_j) [* a_p] + beta val[p] for stored
 * (i, j).
 *
 * Blocks are of doubles.  A kernel with SPS_SINGLE_BLOCKS also accepts blocks of
 * floats with a matrix of floats; it then sums, and applies an epilogue, in
 * single precision or better. */
#ifndef SPS_KERNEL_H
#define SPS_KERNEL_H

#include "block/block.h"
#include "core/backend.h"
#include "matrix/csr.h"
#include "matrix/row_portion.h"
#include "matrix/traits.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sps_opcode { SPS_OP_SPMM, SPS_OP_SDDMM } sps_opcode;

/* Properties of a kernel.  It is a candidate for a problem only if it
 * guarantees all that the problem requires. */
enum {
    SPS_REPRODUCIBLE = 1,    /* the same bits in every run */
    SPS_FULL_PRECISION = 2,  /* no bits of the values or of X are rounded
                                away */
    SPS_NAN_STAYS_IN_ROW = 4,/* no 0 * NaN for entries that are not stored */
    SPS_VENDOR = 8,          /* not a guarantee: a kernel of cuSPARSE, of
                                which "measure" always times the best */
    SPS_SINGLE_BLOCKS = 16,  /* not a guarantee: also accepts blocks of
                                floats */
    SPS_STREAMS = 64,        /* not a guarantee: also accepts a matrix in
                                host memory (sps_csr_local.far); the other
                                kernels must be requested by name for such a
                                matrix */
    SPS_FOR_CHECKS = 32      /* not a guarantee: the plain product of its
                                backend, one kernel of each, which shares no
                                code or format with the fast ones */
};

typedef struct sps_problem {
    sps_opcode op;
    const sps_csr *A;          /* the shape of A; on the host also sorted arrays
                                  without duplicates */
    const sps_csr_local *local;/* A in the memory of the backend */
    const sps_features *f;
    int k;                     /* width of the block; 1 for SpMV */
    sps_dtype block;           /* type of X and Y, or of U, V and val */
    unsigned need;             /* guarantees that a kernel must give */
    const sps_machine *machine;/* rates, for predictions */
    bool timed;                /* by "measure": a plan may compare variants
                                  by the clock */
    const sps_row_source *source; /* if not NULL, A and local have the shape
                                     only, and this computes the rows
                                     (SPS_STREAMS) */
    size_t room;               /* bytes of device memory that its plan may take;
                                  of a matrix that is there, if not 0 */
    bool pinned;               /* requested by name: `fits` refuses only what
                                  cannot run, not what would be slow */
} sps_problem;

struct sps_kernel;
struct sps_plan_memory;

/* The first member of every kernel's own plan. */
typedef struct sps_plan {
    const struct sps_kernel *kernel;
    sps_context *ctx;
    const sps_csr_local *A;
    int k;
    sps_dtype block;
    size_t bytes;              /* device or host memory that the plan owns */
    struct sps_plan_memory *memory; /* allocations of spsi_plan_take */
    char detail[48];           /* text for reports, such as cuSPARSE's
                                  algorithm */
    double aside;              /* cuSPARSE only, when timed: seconds of the
                                  best run on column-major blocks, for
                                  comparison only */
    size_t resident, streamed; /* for a matrix in host memory: bytes that
                                  stay on the GPU, and bytes that each
                                  product copies there; otherwise 0 */
} sps_plan;

/* Operations that may be fused into a product:
 *
 *     Y = D (alpha A X + gamma W) + beta Y + delta X
 *
 * the residual W - A X (alpha = -1, gamma = 1), row scaling, and with both the
 * three-term recurrence of the Chebyshev iteration.  W shares no memory with X
 * or Y.  Operands with a zero factor are not read. */
typedef struct sps_epilogue {
    const sps_block *D;        /* n x 1, double precision; NULL means ones */
    const sps_block *W;        /* of the shape and type of Y; NULL means 0 */
    double gamma;
    double delta;              /* nonzero only if A is square */
} sps_epilogue;

/* Arguments of spmm, in a struct, so that new fused forms do not change its
 * signature. */
typedef struct sps_spmm_args {
    double alpha;
    const sps_block *X;
    double beta;
    sps_block *Y;
    const double *scalars;     /* NULL, or alpha and beta in the backend's
                                  memory, which replace the two above: they
                                  are read when the kernel runs, so that a
                                  recorded product can be replayed with
                                  others */
    const sps_epilogue *epilogue; /* NULL, or an epilogue, for kernels that
                                     fuse it; then alpha and nnz are not
                                     zero, and X, W and Y have the same ld */
} sps_spmm_args;

/* The scalars of a product as values on the host. */
static inline double spsi_alpha(const sps_spmm_args *a)
{
    return a->scalars ? a->scalars[0] : a->alpha;
}
static inline double spsi_beta(const sps_spmm_args *a)
{
    return a->scalars ? a->scalars[1] : a->beta;
}

typedef struct sps_sddmm_args {
    double alpha;
    const sps_block *U, *V;
    bool multiply;
    double beta;
    void *val;                 /* nnz values of the blocks' dtype in the
                                  backend's memory, whatever the dtype of A */
} sps_sddmm_args;

typedef struct sps_kernel {
    const char *name;          /* OPERATION.FORM; used in reports, wisdom and
                                  tests */
    sps_opcode op;
    unsigned gives;
    /* For kernels without SPS_FULL_PRECISION: the unit roundoff of values and X
     * in the kernel, 2^-11 for tf32 and half, 2^-8 for bf16.  It sums in single
     * precision or better, and integers that its format represents give exact
     * sums below 2^24.  0 if values keep the precision of their types. */
    double roundoff;
    /* Whether its spmm supports an epilogue; for other kernels the operator
     * composes one in several passes. */
    bool fuses;
    size_t size;               /* sizeof its plan; 0 for sps_plan */
    /* Returns whether the kernel can run; if not, *why_not is a static text.
     * If NULL, it always can. */
    bool (*fits)(const sps_problem *p, const char **why_not);
    /* Returns the predicted seconds of one run. */
    double (*cost)(const sps_problem *p);
    /* Completes a plan whose first member is filled in and whose rest is zero;
     * on failure the planner destroys what it contains.  NULL if there is
     * nothing to do. */
    sps_status (*plan)(sps_plan *plan, const sps_problem *p);
    sps_status (*spmm)(const sps_plan *plan, const sps_spmm_args *args);
    /* Returns whether spmm computes this product with an X of floats and a Y of
     * doubles, A having doubles; NULL: never. */
    bool (*mixes)(const sps_plan *plan, const sps_spmm_args *args);
    sps_status (*sddmm)(const sps_plan *plan, const sps_sddmm_args *args);
    /* Called when the values of plan->A have changed and its pattern has not;
     * plan->A->val may be another address.  NULL if there is nothing to do. */
    sps_status (*refresh)(sps_plan *plan);
    /* Frees what spsi_plan_take has not allocated; NULL if there is nothing
     * else. */
    void (*destroy)(sps_plan *plan);
} sps_kernel;

/* Allocates memory of the backend for a plan: it is counted in plan->bytes and
 * released with the plan.  For 0 bytes, *p_p = NULL. */
sps_status spsi_plan_take(sps_plan *plan, size_t bytes, void **p_p);
/* Releases memory of spsi_plan_take before the plan ends; *p_p = NULL. */
void spsi_plan_give(sps_plan *plan, void **p_p);

/* Generated from the build lists and NULL-terminated: the kernels of the host,
 * and the names of all kernels of the CUDA module, whether it is built here or
 * not. */
extern const sps_kernel *const spsi_kernels_host[];
extern const char *const spsi_kernel_names_cuda[];

/* Returns the bytes of device memory that a streamed matrix leaves to the
 * blocks of a solver: twelve blocks of n rows and k columns, and 4 MB for all
 * that does not grow with them. */
static inline size_t spsi_blocks_room(int64_t n, int k)
{
    return 12 * (size_t)n * (size_t)spsi_block_ld(k) * sizeof(double) +
           ((size_t)4 << 20);
}

/* Returns the minimum traffic of Y = A X in bytes: A, X and Y once, values and
 * blocks in their types, int32 columns and offsets (doc/numerics.md). */
double spsi_spmm_floor(const sps_problem *p);
static inline size_t spsi_dtype_size(sps_dtype dtype)
{
    return dtype == SPS_F64 ? sizeof(double) : sizeof(float);
}

#ifdef __cplusplus
}
#endif
#endif
