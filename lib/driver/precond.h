/* SPDX-License-Identifier: BSD-3-Clause */
/* precond.h - the contract of a preconditioner: built by the matrix operations
 * of the backend, composed of operators and row scalings, applied to blocks. */
#ifndef SPS_PRECOND_H
#define SPS_PRECOND_H

#include "block/owned.h"
#include "core/deadline.h"
#include "operator/operator.h"
#include "operator/operator_matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPS_NEEDS_CSR = 1,        /* not a callback operator */
    SPS_NEEDS_SPD = 2,        /* meant for SPD matrices */
    SPS_NEEDS_SYMMETRIC = 4,
    SPS_WANTS_DIAGONAL = 8,   /* for a method: M should be a diagonal */
    SPS_LEAST_SQUARES = 16,   /* for a method: solves least-squares problems
                                 with any A, by products with A and A' */
    SPS_READS_THERE = 32      /* with SPS_NEEDS_CSR: reads the matrix where it
                                 lies, its diagonal by spsi_matrix_diagonal,
                                 and fetches entries to the host itself if it
                                 must */
};

typedef struct sps_precond_type {
    const char *name;
    /* For names that stand for others, such as auto: creates one of those; the
     * members below are unused then.  conjugate, passes: see
     * spsi_precond_create and spsi_precond_create_passes. */
    sps_status (*choose)(const sps_operator *A, int width,
                         const sps_options *opt, bool conjugate, int passes,
                         sps_precond **M_p);
    bool always;              /* cheap to build, for any matrix: replaces one
                                 that did not finish within the time limit */
    unsigned needs;
    bool symmetric;           /* M is symmetric when A is */
    bool floats;              /* supports M->single */
    bool columns;             /* supports M->columns */
    enum {
        SPS_RANKS_NOT,        /* of a matrix over several processes: none, */
        SPS_RANKS_OWN,        /* M of the diagonal block of each process: A is
                                 that block (spsi_ranks_own) */
        SPS_RANKS_WHOLE       /* M of the whole, by products with A */
    } ranks;
    /* *type_p: the type that takes the place of this one for A over several
     * processes, or is left; collective.  May be NULL. */
    sps_status (*over)(const sps_operator *A, const sps_options *opt,
                       const struct sps_precond_type **type_p);
    size_t size;              /* of its struct, whose first member is
                                 sps_precond */
    /* build and update call spsi_check_deadline in long loops and pass its
     * failure on. */
    sps_status (*build)(sps_precond *M, const sps_options *opt);
    sps_status (*update)(sps_precond *M);    /* same pattern, new values */
    sps_status (*apply)(const sps_precond *M, const sps_block *R,
                        sps_block *Z);       /* Z = M R; R != Z */
    void (*destroy)(sps_precond *M);         /* frees what is not M->own's; may
                                                be NULL */
    /* As sps_precond_describe; NULL: its name alone. */
    size_t (*describe)(const sps_precond *M, char *text, size_t size);
} sps_precond_type;

extern const sps_precond_type *const spsi_preconds[]; /* registry.sh */

struct sps_precond {
    const sps_precond_type *type;
    sps_context *ctx;
    sps_owner own;            /* of what build has made */
    const sps_operator *A;
    int64_t n;
    int width;                /* widest block it is applied to */
    double seconds;           /* time limit of a build, 0: none */
    bool single;              /* store values in single precision (option
                                 precision) */
    bool columns;             /* for least squares, A of any shape: a diagonal
                                 M of A->ncol rows that scales the columns of A
                                 M to norm 1 */
    double roundoff;          /* unit roundoff of apply, where that is not
                                 the one of doubles; else 0 */
    bool gives_floats;        /* apply takes a Z of floats, too, whose columns
                                 it multiplies by powers of two as it likes */
    bool identity;            /* a positive multiple of the identity: methods
                                 invariant to its factor may use R for Z */
    const sps_block *diagonal;/* d, n x 1, if M is exactly diag(d): others may
                                 fuse it into their own passes; or NULL */
    double rate;              /* of the error that I - M A leaves, as measured
                                 by build; 0: not measured */
    int64_t zero_pivots;      /* of factors of the whole matrix, taken for zero:
                                 where there are some, it is singular to
                                 rounding */
    bool of_block;            /* A is the diagonal block of this process */
    int products;             /* products with A in one application */
    int passes;               /* block reads and writes of the method for each
                                 application of M */
    const double *norms;      /* during apply: norms of the columns of R, about
                                 right, where its caller knows them, or NULL */
    sps_apply_fn user;        /* of sps_precond_user */
    void *user_data;
};

/* precond.c: the type of that name, or NULL. */
const sps_precond_type *spsi_precond_type(const char *name);
/* The type with `always`. */
const sps_precond_type *spsi_precond_always(void);
/* Creates the preconditioner of that name; opt complete (options.h). */
sps_status spsi_precond_named(const sps_operator *A, int width,
                              const char *name, const sps_options *opt,
                              int passes, sps_precond **M_p);

/* As sps_precond_create.  conjugate: M is for conjugate gradients with a
 * symmetric A, for which auto may choose a polynomial. */
sps_status spsi_precond_create(const sps_operator *A, int width,
                               const sps_options *opt, bool conjugate,
                               sps_precond **M_p);

/* The preconditioner of that name with `columns`.  EUNFIT: it has no such
 * form. */
sps_status spsi_precond_columns(const sps_operator *A, int width,
                                const char *name, const sps_options *opt,
                                sps_precond **M_p);

#define SPS_PASSES_LINEAR 18   /* of block_cg: sps_precond_create assumes it */
/* As sps_precond_create, for a method that makes `passes` reads and writes of
 * a block for each application of M: auto and chebyshev weigh the cost of M
 * against them. */
sps_status spsi_precond_create_passes(const sps_operator *A, int width,
                                      const sps_options *opt, int passes,
                                      sps_precond **M_p);

/* A preconditioner that has not been built, of a type that need not be in the
 * registry; destroyed as others. */
sps_status spsi_precond_new(sps_context *ctx, const sps_precond_type *type,
                            int64_t n, sps_precond **M_p);

/* List a place for an operator, or for a csr on the host. */
sps_status spsi_own_operator(sps_owner *o, sps_operator **op_p);
sps_status spsi_own_csr(sps_owner *o, sps_csr **A_p);
/* T as an operator for blocks of M's width, owned by M, its values in single
 * precision if M->single is set and they fit its range; T must outlive it. */
sps_status spsi_precond_operator(sps_precond *M, sps_csr *T,
                                 sps_operator **op_p);
/* Sets new values val, on the pattern of T and in its place, in that operator.
 * If they leave the range of single precision, *op_p is replaced by one in
 * doubles. */
sps_status spsi_precond_values(const sps_precond *M, sps_csr *T, double *val,
                               sps_operator **op_p);

/* Adds the note that values stay in double precision because of their range. */
void spsi_precond_note_double(const sps_precond *M);

#ifdef __cplusplus
}
#endif
#endif
