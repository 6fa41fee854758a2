/* SPDX-License-Identifier: BSD-3-Clause */
/* fused_step.h - the state of fused iterations (driver/fused_cg.h), which their
 * three passes in the backends share with the driver. */
#ifndef SPS_FUSED_STEP_H
#define SPS_FUSED_STEP_H

#include "block/block.h"

#define SPS_FUSED_QUEUE 16   /* steps whose norms are stored */
#define SPS_FUSED_WIDEST 32  /* largest number of columns of a block */
#define SPS_FUSED_PARTS 16   /* largest number of partial sums of a reduction */
#define SPS_FUSED_NARROW 16  /* largest number of columns with several
                                partial sums; wider blocks have one */
#define SPS_FUSED_CACHED (INT64_C(1) << 18)   /* see `cached` below */
#define SPS_FUSED_LARGE 65536   /* with more rows, P in single precision is
                                   orthonormalised less often: the passes over
                                   the blocks cost more than the iterations
                                   that they save */

/* Reasons to stop, as bits. */
enum {
    SPS_FUSED_CHECK = 1,     /* all columns, or all but `few`, are below their
                                limits, or a norm is not finite */
    SPS_FUSED_BASIS = 2,     /* P may be ill-conditioned: S must be examined */
    SPS_FUSED_LENGTHS = 4,   /* G is not regular; the step was not taken */
    SPS_FUSED_BROKEN = 8,    /* G, C or a norm is not finite; the step was not
                                taken: X is unchanged */
    SPS_FUSED_STORE = 16     /* `directions` has not run: columns of X are best
                                iterates that have to be stored first */
};

/* True if the best iterate of a column, with residual `least`, would be lost if
 * X moved on to a residual `now`: neither `now` nor the residual `kept` of the
 * stored iterate is within a factor 1 + SPS_SLACK of `least` (best.c). */
#define SPS_SLACK (1.0 / 24)
#define SPS_BEST_LOST(now, least, kept)                                        \
    (!((now) <= (1 + SPS_SLACK) * (least)) &&                                  \
     (kept) > (1 + SPS_SLACK) * (least))

typedef struct sps_fused_cg_state {
    int stop;                /* reasons; 0: continue */
    int go;                  /* 1 if `residual` was regular, so that
                                `directions` runs; 2 if it runs again after
                                best iterates were stored */
    int taken;               /* steps since create, modulo 2^30 */
    int unchecked;           /* 1 if S belongs to P and P was not examined
                                yet */
    int given;               /* 1 if C is in its own array, not after S */
    int parts;               /* partial sums of S and C */
    int pending;             /* reasons that take effect after the step */
    int arrived;             /* thread blocks that have finished */
} sps_fused_cg_state;

/* Limits and norms of the columns, k values each. */
typedef struct sps_fused_cg_known {
    double *limit;           /* a column at or below it is converged */
    /* As in best.c: the lowest norm so far, the norm of the stored iterate, and
     * the correction that is added to norms. */
    double *least, *kept_norm, *gap;
} sps_fused_cg_known;

/* Arrays in host memory. */
typedef struct sps_fused_cg_host {
    size_t bytes;            /* of the arrays in the blocks' memory */
    double *seen;            /* state, norms, last, and, with scalars by
                                column, C */
    double *limits;          /* copy of `known` */
    double *sums;            /* partial sums of S and C */
    double *far;             /* k: log(||r_j|| / limit_j) */
} sps_fused_cg_host;

/* The arguments for which a recorded graph is valid. */
typedef struct sps_fused_cg_key {
    const void *X, *R, *D;
    int64_t ld;
    int k;
    int64_t version;
    int64_t frees;           /* frees of device memory so far: whether
                                scratch memory has moved */
} sps_fused_cg_key;

typedef struct sps_fused_cg_queue {
    double distance;         /* log(||r_j|| / limit_j) of the column whose
                                convergence stops the queue, before the steps
                                queued last */
    int since;               /* number of those steps that were completed */
    int burst;               /* largest number of steps queued at once: 1
                                after a step that stopped with
                                SPS_FUSED_STORE, then doubled each time,
                                because steps queued after such a step are
                                wasted */
    int taken, given, parts, unchecked;   /* copied from the last state */
    int plain;               /* steps of this key queued without recording */
    bool stopped;
    void *recording;         /* recorded step with r = k, or NULL */
    sps_fused_cg_key key;
} sps_fused_cg_queue;

typedef struct sps_fused_cg {
    sps_context *ctx;
    bool columns;            /* scalars by column */
    int most;                /* largest number of columns */
    double condition;        /* largest condition of P for a regular step */
    int r, k;                /* columns of P; of X and R.  r = k with scalars by
                                column */
    int few;                 /* number of open columns at which the queue
                                stops */
    const double *D;         /* diagonal of the preconditioner, n values in
                                the blocks' memory; NULL for Z = R */
    int most_parts;          /* largest number of partial sums of G, W and S */
    int64_t cached;          /* largest number of rows for which blocks stay
                                in a GPU's cache and the passes have another
                                form: SPS_FUSED_CACHED */
    /* Arrays in the blocks' memory; matrices are packed column by column.  What
     * one pass reduces is contiguous: W with the squared norms, S with C.
     * Their partial sums follow one another. */
    sps_fused_cg_state *state;
    double *norms;           /* SPS_FUSED_QUEUE rows of `most` values:
                                ||r_j|| */
    double *last;            /* k: current ||r_j|| */
    sps_fused_cg_known known;
    double *G;               /* r x r */
    double *F;               /* r x r, G^-1 = F'F */
    double *a, *b;           /* r x k */
    double *W;               /* r x k, then k squared norms */
    double *S;               /* k x k */
    double *C;               /* r x k, from spsi_fused_cg_begin, or k values */
    /* Where the passes write G, W, and S with C, as sums over the rows of this
     * process.  With one process these are G, W and S themselves; with several,
     * G, W and S are the sums of `own` over the processes and have one partial
     * sum. */
    struct { double *G, *W, *S; } own;
    int *kept;               /* host memory: two values that only the backend
                                uses, initially 0 */
    sps_fused_cg_host host;
    sps_fused_cg_queue queue;
} sps_fused_cg;

#endif
