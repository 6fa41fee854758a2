/* SPDX-License-Identifier: BSD-3-Clause */
/* precond.h - the contract of a preconditioner: built through the backend's
 * matrix operations, made of operators and row scalings, applied to blocks. */
#ifndef SPS_PRECOND_H
#define SPS_PRECOND_H

#include "operator.h"
#include "ilut.h"
#include "triangle.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPS_NEEDS_CSR = 1,        /* not a callback operator */
    SPS_NEEDS_SPD = 2,        /* meant for SPD matrices */
    SPS_NEEDS_SYMMETRIC = 4,
    SPS_WANTS_DIAGONAL = 8    /* a method: M should be a diagonal */
};

typedef struct sps_precond_type {
    const char *name;
    unsigned needs;
    bool symmetric;           /* M is symmetric when A is */
    bool floats;              /* it heeds M->single */
    size_t size;              /* of its struct, whose first member is sps_precond */
    sps_status (*build)(sps_precond *M, const sps_options *opt);
    sps_status (*update)(sps_precond *M);    /* same pattern, new values */
    sps_status (*apply)(const sps_precond *M, const sps_block *R,
                        sps_block *Z);       /* Z = M R; R != Z */
    void (*destroy)(sps_precond *M);         /* what it owns; may be NULL */
} sps_precond_type;

struct sps_precond {
    const sps_precond_type *type;
    sps_context *ctx;
    const sps_operator *A;
    int64_t n;
    int width;                /* widest block it will see */
    bool single;              /* values in floats (option precond_precision) */
    bool identity;            /* a positive multiple of the identity: methods
                                 that do not mind a factor may take R for Z */
    const sps_block *diagonal;/* n x 1 where M is diag of it and no more: others
                                 may fold it into their own passes; or NULL */
    int products;             /* with A, in an application */
    int passes;               /* reads and writes of a block that the method
                                 makes beside it */
    sps_apply_fn user;        /* of sps_precond_user */
    void *user_data;
};

/* precond.c: the kind of that name, or NULL. */
const sps_precond_type *spsi_precond_type(const char *name);

/* As sps_precond_create.  conjugate: M is for conjugate gradients, A
 * being symmetric, and auto may take a polynomial. */
sps_status spsi_precond_create(const sps_operator *A, int width,
                               const sps_options *opt, bool conjugate,
                               sps_precond **M_p);

#define SPS_PASSES_LINEAR 18   /* block_cg at the right; what M->passes is */
/* As sps_precond_create, for a method of so many passes. */
sps_status spsi_precond_create_beside(const sps_operator *A, int width,
                                      const sps_options *opt, int passes,
                                      sps_precond **M_p);

/* T as an operator for the blocks of M, its values in floats where M
 * wants that and they can be; T must outlive it.  And new values of the same
 * T: where they cannot be in floats *op_p is made again, in doubles. */
sps_status spsi_precond_operator(const sps_precond *M, sps_csr *T,
                                 sps_operator **op_p);
sps_status spsi_precond_values(const sps_precond *M, sps_csr *T, double *val,
                               sps_operator **op_p);

/* The note that values in floats would leave their range. */
void spsi_precond_say_doubles(const sps_precond *M);

/* matrix.c: what a build may ask of the matrix; host results.  They run on
 * the backend where it has a body, else on the CPU. */

/* diagonal[i] = a_ii, 0 where none is stored; n numbers. */
sps_status spsi_matrix_diagonal(const sps_operator *A, double *diagonal);
/* inverse[i] = 1 / |a_ii|, and 1 where that is not finite; how many entries
 * were zero, and negative. */
sps_status spsi_matrix_inverse_diagonal(const sps_operator *A, double *inverse,
                                        int64_t *zero, int64_t *negative);
/* Inverses of the diagonal blocks of rows start[b] .. start[b+1]-1, column by
 * column, one after another; *bad: the first singular block, or -1 (its
 * inverse is then undefined, as are those behind it). */
sps_status spsi_matrix_block_inverse(const sps_operator *A,
                                     const int64_t *start, int64_t blocks,
                                     double *inverse, int64_t *bad);
/* F = L + U - I, incomplete factors in F's pattern (backend.h). */
sps_status spsi_matrix_ilu0(sps_context *ctx, sps_csr *F,
                            const int64_t *diagonal, const sps_levels *levels,
                            bool positive, int64_t *bad);
/* Factored approximate inverse in the pattern of G (backend.h). */
sps_status spsi_matrix_fsai(sps_context *ctx, const sps_csr *A, sps_csr *G,
                            double *v, bool symmetric, int64_t *bad);
/* Incomplete factors by threshold; r->inverse and r->column are the
 * caller's. */
sps_status spsi_matrix_ilut(sps_context *ctx, const sps_csr *B,
                            const sps_ilut_options *o, sps_ilut_result *r);

#ifdef __cplusplus
}
#endif
#endif
