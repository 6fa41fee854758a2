/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h - the contract of a kernel.
 *
 * For a problem a kernel says whether it fits, predicts its cost, and makes a
 * plan.  One const table in one file; the file's line in the build list
 * registers it.
 *
 * spmm:   Y = alpha A X + beta Y.  Asynchronous on ctx->stream, allocates
 *         nothing; any width 1 .. plan->k; any ld, data aligned to their type
 *         only; beta = 0 does not read Y; alpha = 0 reads neither A nor X;
 *         every row of Y is written once; of its padding only that of an
 *         allocated block at full width may be written, with zeros (block.h).
 * sddmm:  val[p] = alpha (u_i . v_j) [* a_p] + beta val[p] for stored (i, j).
 *
 * Blocks are double; a kernel with SPS_SINGLE_BLOCKS also accepts blocks of
 * floats, with a matrix of floats, and then sums in single precision or better,
 * an epilogue too.
 */
#ifndef SPS_KERNEL_H
#define SPS_KERNEL_H

#include "block/block.h"
#include "core/backend.h"
#include "matrix/csr.h"
#include "matrix/traits.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sps_opcode { SPS_OP_SPMM, SPS_OP_SDDMM } sps_opcode;

/* Guarantees; a kernel may bid if it gives all that the problem requires. */
enum {
    SPS_REPRODUCIBLE = 1,    /* same bits at every run */
    SPS_FULL_PRECISION = 2,  /* no bits of the values or of X are dropped */
    SPS_NAN_STAYS_IN_ROW = 4,/* no 0 * NaN for entries that are not stored */
    SPS_VENDOR = 8,          /* not a guarantee: "measure" always times the best
                                of the vendor's kernels */
    SPS_SINGLE_BLOCKS = 16,  /* not a guarantee: accepts blocks of floats,
                                too */
    SPS_STREAMS = 64,        /* not a guarantee: is made for a matrix in host
                                memory, too (sps_csr_local.far); the others
                                must be requested by name for that */
    SPS_FOR_CHECKS = 32      /* not a guarantee: the plain product of its place,
                                which shares no code or format with the fast
                                ones; one kernel of a backend */
};

/* Makes rows first .. first + count - 1 of a matrix that is nowhere as a whole:
 * count + 1 offsets from 0 on, sorted columns, values of the dtype of A.
 * Threads call it side by side for different rows. */
typedef struct sps_row_source {
    void (*make)(void *data, int64_t first, int64_t count, int64_t *rowptr,
                 int32_t *col, void *val);
    void *data;
} sps_row_source;

typedef struct sps_problem {
    sps_opcode op;
    const sps_csr *A;          /* shape; on the host arrays, sorted, unique */
    const sps_csr_local *local;/* the same in the backend's memory */
    const sps_features *f;
    int k;                     /* width of the block; SpMV is k = 1 */
    sps_dtype block;           /* of X and Y, or of U, V and val */
    unsigned need;             /* guarantees that a kernel must give */
    const sps_machine *machine;/* its rates, for cost */
    bool timed;                /* measure: plans are timed, so that a plan may
                                  compare variants by the clock */
    const sps_row_source *source; /* NULL; or A and local are shapes only, and
                                  rows come from here (SPS_STREAMS) */
    size_t room;               /* of a matrix that is far: bytes of device
                                  memory that its plan may take */
    bool pinned;               /* requested by name: fits rejects only what
                                  cannot run, not what would be slow */
} sps_problem;

struct sps_kernel;
struct sps_plan_memory;

/* First member of each kernel's own plan. */
typedef struct sps_plan {
    const struct sps_kernel *kernel;
    sps_context *ctx;
    const sps_csr_local *A;
    int k;
    sps_dtype block;
    size_t bytes;              /* of device or host memory owned by the plan */
    struct sps_plan_memory *memory; /* what spsi_plan_take has made */
    char detail[48];           /* e.g. the vendor's algorithm; for reports */
    double aside;              /* vendor's kernels, when timed: seconds of the
                                  best run on column-major blocks, which are
                                  not used; for comparison */
    size_t resident, streamed; /* of a matrix in host memory: bytes that stay
                                  on the GPU, and bytes that a product copies
                                  there; 0: not such a plan */
} sps_plan;

/* Operations that may be fused into a product:
 *
 *     Y = D (alpha A X + gamma W) + beta Y + delta X
 *
 * the residual W - A X (alpha = -1, gamma = 1), row scaling, and with both the
 * three-term recurrence of the Chebyshev iteration.  W shares no memory with X
 * or Y.  Operands with a zero factor are not read. */
typedef struct sps_epilogue {
    const sps_block *D;        /* n x 1, doubles; NULL: 1 */
    const sps_block *W;        /* as Y, and of its type; NULL: 0 */
    double gamma;
    double delta;              /* nonzero only if A is square */
} sps_epilogue;

/* Arguments of spmm: a struct, so that fused forms need no new slot. */
typedef struct sps_spmm_args {
    double alpha;
    const sps_block *X;
    double beta;
    sps_block *Y;
    const double *scalars;     /* NULL, or alpha and beta in the backend's
                                  memory: read when the kernel runs, so that a
                                  recorded product can be replayed with others;
                                  alpha and beta above are ignored then */
    const sps_epilogue *epilogue; /* NULL, or for kernels that fuse it; alpha
                                  and nnz are not zero then, and X, W and Y
                                  have the same ld */
} sps_spmm_args;

/* The scalars of a product, on the host. */
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
    void *val;                 /* nnz numbers of the blocks' dtype in the
                                  backend's memory, whatever A's dtype */
} sps_sddmm_args;

typedef struct sps_kernel {
    const char *name;          /* "spmm.plain": reports, wisdom, tests */
    sps_opcode op;
    unsigned gives;
    /* Without SPS_FULL_PRECISION: unit roundoff of the values and of X in the
     * kernel, 2^-11 for tf32 and half, 2^-8 for bf16.  It sums in single
     * precision or better, and integers that its format represents give exact
     * sums below 2^24.  0: values keep the precision of their types. */
    double roundoff;
    /* Its spmm supports an epilogue; for other kernels the operator composes it
     * in several passes. */
    bool fuses;
    size_t size;               /* of its plan; 0: sps_plan alone */
    /* Whether it can run; otherwise *why_not is a static text.  NULL: always. */
    bool (*fits)(const sps_problem *p, const char **why_not);
    /* Predicted seconds of one run. */
    double (*cost)(const sps_problem *p);
    /* Completes a plan of which only the first member is filled, the rest zero;
     * on failure the planner destroys whatever it holds.  NULL: nothing to
     * do. */
    sps_status (*plan)(sps_plan *plan, const sps_problem *p);
    sps_status (*spmm)(const sps_plan *plan, const sps_spmm_args *args);
    sps_status (*sddmm)(const sps_plan *plan, const sps_sddmm_args *args);
    /* The values of plan->A have changed, the pattern has not; plan->A->val may
     * be another address.  NULL: nothing to do. */
    sps_status (*refresh)(sps_plan *plan);
    /* Frees what spsi_plan_take has not made; NULL: there is nothing else. */
    void (*destroy)(sps_plan *plan);
} sps_kernel;

/* Memory of the backend for a plan: counted in plan->bytes, and released with
 * the plan.  0 bytes: *p_p = NULL. */
sps_status spsi_plan_take(sps_plan *plan, size_t bytes, void **p_p);
/* Releases earlier what spsi_plan_take has made; *p_p = NULL. */
void spsi_plan_give(sps_plan *plan, void **p_p);

/* Generated from the build lists, NULL-terminated: the host's kernels, and the
 * names of all kernels of the CUDA module, built here or not. */
extern const sps_kernel *const spsi_kernels_host[];
extern const char *const spsi_kernel_names_cuda[];

/* Device memory that panels leave to the blocks of a solver, in bytes: twelve
 * blocks of n rows and k columns, and 4 MB for what does not grow with them. */
static inline size_t spsi_blocks_room(int64_t n, int k)
{
    return 12 * (size_t)n * (size_t)spsi_block_ld(k) * sizeof(double) +
           ((size_t)4 << 20);
}

/* Minimum traffic of Y = A X in bytes: A, X and Y once, values and blocks in
 * their types, int32 columns and offsets (doc/numerics.md). */
double spsi_spmm_floor(const sps_problem *p);
static inline size_t spsi_dtype_size(sps_dtype dtype)
{
    return dtype == SPS_F64 ? sizeof(double) : sizeof(float);
}

#ifdef __cplusplus
}
#endif
#endif
