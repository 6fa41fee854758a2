/* SPDX-License-Identifier: BSD-3-Clause */
/* steps.h - iterations of conjugate directions that the host does not wait
 * for.
 *
 * Three passes, whose small results stay in the place of the blocks:
 *
 *   lengths      G = P'Q
 *   residual     a = G^-1 C, C = P'R;  R -= Q a;  W = Q'Z, Z = D R;  R'R
 *   directions   b = -G^-1 W;  X += P a;  P = Z + P b;
 *                S = P'P, C = P'R of the next step
 *
 * A sum over rows may be left in parts, for the pass that needs it to add up in
 * order: where a pass takes microseconds, whoever added them up between
 * two of them would cost as much again.
 *
 * or, with own scalars for each column, a_j = c_j / p_j'q_j with c_j = r_j'z_j
 * and b_j = c_j (new) / c_j (old), S not needed.
 *
 * A step is regular or it is not taken.  `residual` looks at S, G and C and
 * sets a reason to stop before anything changed, `directions` when the step is
 * complete; once there is a reason, whatever is queued behind does nothing.  So
 * a count of steps can be queued at once, and how many at once changes no bit
 * of any result.
 * What is not regular is left to the method's step, which has LAPACK and the
 * host's judgement. */
#ifndef SPS_STEPS_H
#define SPS_STEPS_H

#include "block.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_STEPS_AHEAD 16   /* steps whose norms are kept */
#define SPS_STEPS_WIDEST 32  /* columns of a block */
#define SPS_STEPS_PARTS 16   /* of a sum over rows, at most, for blocks */
#define SPS_STEPS_NARROW 16  /* of so many columns; wider ones: one part */
#define SPS_STEPS_NEAR (INT64_C(1) << 18)
#define SPS_STEPS_LARGE 65536   /* rows from which it costs more to wait for a
                                   look at P than to go without */

/* Reasons to stop, bits. */
enum {
    SPS_STEPS_LOOK = 1,      /* all columns are below their limits, all but
                                `few`, or a norm is not finite */
    SPS_STEPS_BASIS = 2,     /* P may be ill-conditioned: S wants a look */
    SPS_STEPS_LENGTHS = 4,   /* G is not regular; the step was not taken */
    SPS_STEPS_BROKEN = 8     /* G or C is not finite; neither was it taken */
};

typedef struct sps_steps_state {
    int stop;                /* reasons; 0: go on */
    int go;                  /* `directions` follows a regular `residual` */
    int taken;               /* steps since create, modulo 2^30 */
    int unseen;              /* S belongs to P, and nobody has looked at it */
    int given;               /* C is in its own array, not behind S */
    int parts;               /* that S and C are sums of */
    int pending;             /* reasons that count when the step is complete */
    int arrived;             /* blocks of threads */
} sps_steps_state;

typedef struct sps_steps {
    sps_context *ctx;
    bool columns;            /* own scalars for each column */
    int most;                /* columns, at most */
    double condition;        /* of P, at most, for a step that is regular */
    int r, k;                /* of P; of X and R.  r = k with own scalars */
    int few;                 /* open columns at which the driver looks */
    const double *D;         /* n numbers in the place; NULL: Z = R */
    int most_parts;          /* that G, W and S are sums of */
    int64_t near;            /* rows up to which blocks stay in a GPU's cache,
                                and passes have another form; SPS_STEPS_NEAR */
    /* Arrays in the place, matrices packed column by column.  Those that one
     * pass sums up follow each other without gaps: W and the squares of the
     * norms; S and C.  So do the parts of each. */
    sps_steps_state *state;
    double *norms;           /* SPS_STEPS_AHEAD rows of most: ||r_j|| */
    double *last;            /* k: ||r_j|| now */
    double *limit;           /* k: a column at or below it is done */
    double *G;               /* r x r */
    double *F;               /* r x r, G^-1 = F'F */
    double *a, *b;           /* r x k */
    double *W;               /* r x k, then k squares */
    double *S;               /* k x k */
    double *C;               /* r x k of spsi_steps_begin, or k numbers */
    /* The host's. */
    size_t bytes;
    double *seen;            /* state, norms, last, and C with own scalars */
    double *limits;          /* what limit holds */
    int *kept;               /* 2 numbers for the place to keep, 0 at first */
    double *sums;            /* the parts of S and C */
    double *far;             /* k: how far columns are from their limits */
    double distance;         /* to the next look, before the last steps */
    int since;               /* that these were */
    int taken, given, parts, unseen;   /* of the state, as last seen */
    int plain;               /* steps of this key, queued as they are */
    bool stopped;
    void *recording;         /* of a step with r = k */
    struct sps_steps_key {
        const void *X, *R, *D;
        int64_t ld;
        int k;
        int64_t version;
        int64_t frees;       /* of the context: scratch that moved shows */
    } key;                   /* that the recording was made for */
} sps_steps;

/* condition: of P (unit columns), above which S wants a look; no matter with own
 * scalars.  *w_p stays NULL where the place has no such steps, or not so
 * wide. */
sps_status spsi_steps_create(sps_context *ctx, int k, bool columns,
                             double condition, sps_steps **w_p);
void spsi_steps_destroy(sps_steps **w_p);
/* Whether solver s may take steps by w: sums that stay in the place, a
 * diagonal preconditioner, nothing projected. */
bool spsi_steps_serve(const sps_solver *s, const sps_steps *w);
/* What the next step needs, unless the last one was one of these: C = P'R, or
 * the k numbers c with own scalars, and the norms of R. */
sps_status spsi_steps_begin(sps_solver *s, sps_steps *w, const sps_block *P,
                            const double *c);
/* The same for a P that nobody has looked at, of as many columns as R, without
 * own scalars: S = P'P with C, and nobody waits for either. */
sps_status spsi_steps_start(sps_solver *s, sps_steps *w, const sps_block *P);
/* What the place holds: S, packed, k x k; C with own scalars. */
sps_status spsi_steps_basis(sps_steps *w, sps_small *S);
void spsi_steps_scalars(const sps_steps *w, double *c);
/* Queues up to *count steps <= SPS_STEPS_AHEAD for X and R of s, with P and Q
 * the search block and its product, and waits once.  *count: how many it were,
 * fewer where the driver will soon have to look; *taken of them were taken;
 * norms[i * s->k + j] is ||r_j|| after step i; *why: reasons to stop. */
sps_status spsi_steps_take(sps_solver *s, sps_steps *w, sps_block *P,
                           sps_block *Q, int *count, int *taken, double *norms,
                           int *why);

#ifdef __cplusplus
}
#endif
#endif
