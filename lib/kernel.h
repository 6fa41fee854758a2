/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h - the contract of a kernel.
 *
 * A kernel looks at a problem, says whether it fits and what it would cost,
 * and makes a plan.  One const table in one file; the file's line in the build
 * list registers it.
 *
 * spmm:   Y = alpha A X + beta Y.  Asynchronous on ctx->stream, allocates
 *         nothing; runs for every width 1 .. plan->k; any ld, data aligned to
 *         their type alone; beta = 0 does not read Y; alpha = 0 reads neither
 *         A nor X; every row of Y is written once; of its padding at most
 *         that of an own block that is not narrowed, with zeros (block.h).
 * sddmm:  val[p] = alpha (u_i . v_j) [* a_p] + beta val[p] for stored (i, j).
 *
 * Blocks are double; a kernel that says SPS_SINGLE_BLOCKS takes blocks of
 * float as well, with a matrix of floats, and then sums in float or better.
 */
#ifndef SPS_KERNEL_H
#define SPS_KERNEL_H

#include "backend.h"
#include "traits.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sps_opcode { SPS_OP_SPMM, SPS_OP_SDDMM } sps_opcode;

/* Guarantees; a kernel may bid when it gives all that the problem needs. */
enum {
    SPS_REPRODUCIBLE = 1,    /* same bits at every run */
    SPS_FULL_PRECISION = 2,  /* no bits of the values or of X dropped */
    SPS_NAN_STAYS_IN_ROW = 4,/* 0 * NaN of absent entries never appears */
    SPS_VENDOR = 8,          /* no guarantee, a mark: "measure" always times
                                the best of the vendor's kernels */
    SPS_SINGLE_BLOCKS = 16   /* a mark: takes blocks of float too */
};

typedef struct sps_problem {
    sps_opcode op;
    const sps_csr *A;          /* host arrays, sorted, unique */
    const sps_csr_local *local;/* the same in the place of the context */
    const sps_features *f;
    int k;                     /* width of the block; SpMV is k = 1 */
    sps_dtype block;           /* of X and Y, or of U, V and val */
    unsigned need;
    double bandwidth;          /* bytes/s of the place, for cost */
    bool timed;                /* measure: plans will be timed, not guessed */
    bool pinned;               /* asked for by name: fits refuses what cannot
                                  be run, not what would not pay */
} sps_problem;

struct sps_kernel;

/* First member of each kernel's own plan. */
typedef struct sps_plan {
    const struct sps_kernel *kernel;
    sps_context *ctx;
    const sps_csr_local *A;
    int k;
    sps_dtype block;
    size_t bytes;              /* of the place, held by the plan */
    char detail[48];           /* e.g. the vendor's algorithm; for reports */
    double aside;              /* vendor's kernels, when timed: seconds of the
                                  best run on column-major blocks, which
                                  nothing here uses; for comparison */
} sps_plan;

/* What may be done to a product while its rows are at hand:
 *
 *     Y = D (alpha A X + gamma W) + beta Y + delta X
 *
 * the residual W - A X (alpha = -1, gamma = 1), a scaling by rows, and with
 * both the three-term recurrence of Chebyshev's iteration.  W shares no memory
 * with X or Y.  Factors that are zero hide what they multiply. */
typedef struct sps_epilogue {
    const sps_block *D;        /* n x 1; NULL: 1 */
    const sps_block *W;        /* as Y; NULL: 0 */
    double gamma;
    double delta;              /* not zero: A is square */
} sps_epilogue;

/* Argument of spmm: a struct, so that fused forms need no new slot. */
typedef struct sps_spmm_args {
    double alpha;
    const sps_block *X;
    double beta;
    sps_block *Y;
    const double *scalars;     /* NULL, or alpha and beta in the place: read
                                  when the kernel runs, so that a recorded
                                  product can be replayed with others; the
                                  members above are not looked at then */
    const sps_epilogue *epilogue; /* NULL, or for kernels that fuse it, doubles
                                  all; alpha and nnz are not zero then, and the
                                  ld of X, W and Y are the same */
} sps_spmm_args;

/* The scalars of a product on the host. */
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
    void *val;                 /* nnz numbers of the blocks' dtype, in the
                                  place, whatever A's dtype */
} sps_sddmm_args;

typedef struct sps_kernel {
    const char *name;          /* "spmm.plain": reports, wisdom, tests */
    sps_opcode op;
    sps_place where;
    unsigned gives;
    /* Without SPS_FULL_PRECISION: unit roundoff of the values and of X as the
     * kernel sees them, 2^-11 for tf32 and half, 2^-8 for bf16; it sums in
     * float or better, and integers that its numbers hold give exact sums
     * below 2^24.  0: they keep the bits of their types. */
    double roundoff;
    /* Its spmm takes an epilogue; what does not is served by the operator,
     * in several passes. */
    bool fuses;
    /* Whether it can run; *why_not a static text when not. */
    bool (*fits)(const sps_problem *p, const char **why_not);
    /* Predicted seconds of one run. */
    double (*cost)(const sps_problem *p);
    /* *plan_p is calloc-like zeroed memory got by spsi_new, with super filled
     * by the kernel through spsi_plan_new; on failure the planner destroys
     * whatever *plan_p holds. */
    sps_status (*plan)(sps_context *ctx, const sps_problem *p,
                       sps_plan **plan_p);
    sps_status (*spmm)(const sps_plan *plan, const sps_spmm_args *args);
    sps_status (*sddmm)(const sps_plan *plan, const sps_sddmm_args *args);
    /* The values of plan->A changed, pattern did not; plan->A->val may point
     * elsewhere now.  NULL: nothing to do. */
    sps_status (*refresh)(sps_plan *plan);
    void (*destroy)(sps_plan *plan);  /* what it owns; NULL: nothing but itself */
} sps_kernel;

/* A zeroed plan of size bytes with its first member filled in. */
sps_status spsi_plan_new(sps_context *ctx, const sps_kernel *kernel,
                         const sps_problem *p, size_t size,
                         sps_plan **plan_p);

/* Bytes that Y = A X must move: A, X and Y once, values and blocks in their
 * types, int32 columns and offsets (doc/numerics.md). */
double spsi_spmm_floor(const sps_problem *p);
static inline size_t spsi_dtype_size(sps_dtype dtype)
{
    return dtype == SPS_F64 ? sizeof(double) : sizeof(float);
}

#ifdef __cplusplus
}
#endif
#endif
