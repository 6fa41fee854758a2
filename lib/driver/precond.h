/* SPDX-License-Identifier: BSD-3-Clause */
/* precond.h - the contract of a preconditioner, which is built by matrix
 * operations of the backend, composed of operators and row scalings, and
 * applied to blocks. */
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
    SPS_NEEDS_CSR = 1,        /* A is not a callback operator */
    SPS_NEEDS_SPD = 2,        /* intended for SPD matrices */
    SPS_NEEDS_SYMMETRIC = 4,
    SPS_WANTS_DIAGONAL = 8,   /* for a method: M should be a diagonal */
    SPS_LEAST_SQUARES = 16,   /* for a method: solves least-squares problems
                                 with any A, by products with A and A' */
    SPS_DIAGONAL_ONLY = 64,   /* with SPS_NEEDS_CSR: for a square matrix its
                                 diagonal and products suffice */
    SPS_READS_THERE = 32      /* with SPS_NEEDS_CSR: reads the matrix in the
                                 memory where it is stored, its diagonal by
                                 spsi_matrix_diagonal, and copies entries to
                                 the host itself if necessary */
};

typedef struct sps_precond_type {
    const char *name;
    /* For names that choose among other types, such as auto: creates one of
     * those, and the members below are unused.  For `conjugate` and `passes`
     * see spsi_precond_create. */
    sps_status (*choose)(const sps_operator *A, int width,
                         const sps_options *opt, bool conjugate, int passes,
                         sps_precond **M_p);
    bool always;              /* cheap to build for any matrix: replaces one
                                 that was not built within the time limit */
    unsigned needs;
    bool symmetric;           /* M is symmetric when A is */
    bool floats;              /* supports M->single */
    bool columns;             /* supports M->columns */
    enum {
        SPS_RANKS_NOT,        /* not for a matrix distributed over processes */
        SPS_RANKS_OWN,        /* each process builds M for its diagonal
                                 block, which is A (spsi_ranks_own) */
        SPS_RANKS_OWN_OR_SAME,    /* as SPS_RANKS_SAME with across_ranks, else
                                 as SPS_RANKS_OWN */
        SPS_RANKS_WHOLE,      /* M for the whole matrix, by products with A */
        SPS_RANKS_SAME        /* and it does not depend on the division of rows
                                 among processes */
    } ranks;
    /* Sets *type_p to the type that replaces this one for an A distributed over
     * processes, if there is one; collective.  May be NULL. */
    sps_status (*over)(const sps_operator *A, const sps_options *opt,
                       const struct sps_precond_type **type_p);
    size_t size;              /* of its struct, whose first member is
                                 sps_precond */
    /* build and update call spsi_check_deadline in long loops and return its
     * failure. */
    sps_status (*build)(sps_precond *M, const sps_options *opt);
    sps_status (*update)(sps_precond *M);    /* same pattern, new values */
    sps_status (*apply)(const sps_precond *M, const sps_block *R,
                        sps_block *Z);       /* Z = M R; Z and R differ */
    /* R -= Q a, with the squared norms of the columns of R in norm2, 1 x k; and
     * keeps what `apply` needs of R, if *served.  M->norms belong to the R
     * before.  May be NULL. */
    sps_status (*subtract)(const sps_precond *M, const sps_block *Q,
                           const sps_small *a, sps_block *R, sps_small *norm2,
                           bool *served);
    void (*destroy)(sps_precond *M);         /* frees what M->own does not
                                                release; may be NULL */
    /* As sps_precond_describe; if NULL, the name is printed. */
    size_t (*describe)(const sps_precond *M, char *text, size_t size);
    /* Returns the columns of device memory that M takes for blocks of `width`
     * columns; NULL: more than a few blocks, or not known. */
    int64_t (*room)(int width);
} sps_precond_type;

extern const sps_precond_type *const spsi_preconds[]; /* by registry.sh */

struct sps_precond {
    const sps_precond_type *type;
    sps_context *ctx;
    sps_owner own;            /* releases what build has created */
    const sps_operator *A;
    int64_t n;
    int width;                /* largest number of columns */
    double seconds;           /* time limit of a build; 0 for none */
    bool single;              /* store values in single precision (option
                                 precision) */
    bool columns;             /* for least squares with A of any shape: M is
                                 a diagonal of A->ncol rows that scales the
                                 columns of A M to norm 1 */
    double roundoff;          /* unit roundoff of apply if it is not that of
                                 doubles, else 0 */
    bool gives_floats;        /* apply also accepts a Z of floats, whose
                                 columns it may scale by any powers of two */
    bool identity;            /* a positive multiple of the identity: methods
                                 invariant to its factor may use R for Z */
    const sps_block *diagonal;/* d, n x 1, if M is exactly diag(d), which
                                 others may fuse into their own passes; else
                                 NULL */
    double rate;              /* error reduction of I - M A per application,
                                 measured by build; 0 if not measured */
    int64_t zero_pivots;      /* for factors of the whole matrix: pivots
                                 treated as zero; if there are any, it is
                                 singular to rounding */
    const int32_t *zero_rows; /* their rows, counting from 1.  R - A M R is the
                                 part of R that no X removes, in these rows */
    bool of_block;            /* A is the diagonal block of this process */
    int products;             /* products with A in one application */
    int passes;               /* block reads and writes of the method for
                                 each application of M */
    const double *norms;      /* during apply: approximate norms of the
                                 columns of R if the caller knows them, or
                                 NULL */
    bool follows;             /* during apply: R is what the last `subtract`
                                 has left, and Z is of floats */
    sps_apply_fn user;        /* function given to sps_precond_user */
    void *user_data;
};

/* precond.c: returns the type of that name, or NULL. */
const sps_precond_type *spsi_precond_type(const char *name);
/* Returns the type with `always`. */
const sps_precond_type *spsi_precond_always(void);
/* Creates the preconditioner of that name; opt must be complete (options.h). */
sps_status spsi_precond_named(const sps_operator *A, int width,
                              const char *name, const sps_options *opt,
                              int passes, sps_precond **M_p);

#define SPS_PASSES_LINEAR 18   /* of block conjugate gradients; assumed by
                                  sps_precond_create */
/* Builds opt->precond for A and blocks of up to `width` columns.  `conjugate`
 * means that M is for conjugate gradients with a symmetric A, for which auto
 * may choose a polynomial.  `passes` is how often the method reads or writes a
 * block for each application of M: against that a polynomial weighs the cost
 * of M. */
sps_status spsi_precond_create(const sps_operator *A, int width,
                               const sps_options *opt, bool conjugate,
                               int passes, sps_precond **M_p);

/* Creates the preconditioner of that name with `columns`; EUNFIT if it has no
 * such form. */
sps_status spsi_precond_columns(const sps_operator *A, int width,
                                const char *name, const sps_options *opt,
                                sps_precond **M_p);

/* Creates a preconditioner that has not been built, of a type that need not be
 * registered; it is destroyed like others. */
sps_status spsi_precond_new(sps_context *ctx, const sps_precond_type *type,
                            int64_t n, sps_precond **M_p);

/* Lists a pointer to an operator, or to a csr in host memory, for release. */
sps_status spsi_own_operator(sps_owner *o, sps_operator **op_p);
sps_status spsi_own_csr(sps_owner *o, sps_csr **A_p);
/* Creates an operator of T for blocks of M's width, owned by M, with values in
 * single precision if M->single is set and they fit its range; T must outlive
 * it. */
sps_status spsi_precond_operator(sps_precond *M, sps_csr *T,
                                 sps_operator **op_p);
/* Sets new values `val` of that operator, on the pattern of T and in the memory
 * where T is stored.  If they leave the range of single precision, *op_p is
 * replaced by an operator in doubles. */
sps_status spsi_precond_values(const sps_precond *M, sps_csr *T, double *val,
                               sps_operator **op_p);

/* Adds the note that values stay in double precision because of their range. */
void spsi_precond_note_double(const sps_precond *M);

#ifdef __cplusplus
}
#endif
#endif
