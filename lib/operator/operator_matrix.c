/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_matrix.c - matrix operations for building preconditioners: the
 * backend's function if there is one, otherwise the CPU's. */
#include "operator/operator_matrix.h"
#include "operator/operator_ranks.h"

#include <math.h>
#include <string.h>

#include "core/team.h"

/* The backend of the context if it has this function, else the host's. */
#define WITH(ctx, function)                                                    \
    ((ctx)->backend->function ? (ctx)->backend : spsi_backends[0])

sps_status spsi_matrix_diagonal(const sps_operator *A, double *diagonal)
{
    const sps_backend *b = A->ctx->backend;
    sps_status st;

    if (A->ranks) {
        SPS_TRY(spsi_ranks_own(A, &A));
        return spsi_matrix_diagonal(A, diagonal);
    }
    if (A->diagonal) {
        if (A->n > 0)
            memcpy(diagonal, A->diagonal, (size_t)A->n * sizeof *diagonal);
        return SPS_OK;
    }
    if (b->local_diagonal)
        return b->local_diagonal(A->ctx, &A->local, diagonal);
    SPS_TRY(spsi_operator_fetch(A));
    SPS_TRY(WITH(A->ctx, csr_diagonal)->csr_diagonal(A->ctx, A->A, diagonal));
fail:
    return st;
}

sps_status spsi_matrix_cancels(const sps_operator *A, double tol, bool *some)
{
    const sps_backend *b = A->ctx->backend;
    sps_status st;

    if (b->local_cancels) return b->local_cancels(A->ctx, &A->local, tol, some);
    SPS_TRY(spsi_operator_fetch(A));
    *some = spsi_components_possible(A->ctx, A->A, tol);
fail:
    return st;
}

sps_status spsi_matrix_block_inverse(const sps_operator *A,
                                     const int64_t *start, int64_t blocks,
                                     double *inverse, int64_t *bad)
{
    sps_status st;

    SPS_TRY(spsi_operator_fetch(A));
    SPS_TRY(WITH(A->ctx, csr_block_inverse)->csr_block_inverse(
        A->ctx, A->A, start, blocks, inverse, bad));
fail:
    return st;
}

sps_status spsi_matrix_ilu0(sps_context *ctx, sps_csr *F,
                            const int64_t *diagonal, const sps_levels *levels,
                            bool positive, int64_t *bad)
{
    return WITH(ctx, csr_ilu0)->csr_ilu0(ctx, F, diagonal, levels, positive,
                                         bad);
}

sps_status spsi_matrix_fsai(sps_context *ctx, const sps_csr *A, sps_csr *G,
                            double *v, bool symmetric, int64_t *bad)
{
    return WITH(ctx, csr_fsai)->csr_fsai(ctx, A, G, v, symmetric, bad);
}

sps_status spsi_matrix_ilut(sps_context *ctx, const sps_csr *B,
                            const sps_ilut_options *o, sps_ilut_result *r)
{
    return WITH(ctx, csr_ilut)->csr_ilut(ctx, B, o, r);
}

/* --- products */

typedef struct widen_job {
    const sps_csr *A;
    double *wide;
} widen_job;

static void widen(void *data, int64_t first, int64_t last)
{
    const widen_job *j = data;

    for (int64_t p = first; p < last; p++)
        j->wide[p] = spsi_csr_value(j->A, p);
}

/* Sets *same to A, with its values converted to doubles if `wide`; then *own is
 * the array of these, which the caller frees. */
static sps_status as_doubles(sps_context *ctx, const sps_csr *A, bool wide,
                             sps_csr *same, double **own)
{
    sps_status st = SPS_OK;

    *same = *A;
    if (!wide || A->dtype == SPS_F64) return SPS_OK;
    SPS_TRY(SPS_NEW(ctx, A->nnz, own));
    spsi_team_run(ctx, A->nnz, A->nnz, widen, &(widen_job){ A, *own });
    same->val = *own;
    same->dtype = SPS_F64;
fail:
    return st;
}

/* Products of matrices in host memory whose arrays have so many bytes are
 * computed on the GPU of the context, which the host would take several times
 * as long for. */
static const size_t LARGE = (size_t)64 << 20;

/* Creates C = A B for matrices in host memory.  The bits are the same on host
 * and GPU. */
static sps_status multiply_host(sps_context *ctx, const sps_csr *A,
                                const sps_csr *B, sps_csr **C_p)
{
    const sps_backend *gpu = ctx->backend;
    sps_status st = SPS_EDEVMEM;

    if (gpu->place == SPS_CUDA && gpu->csr_multiply && A->nrow > 0 &&
        12 * (size_t)(A->nnz + B->nnz) >= LARGE)
        st = gpu->csr_multiply(ctx, A, B, C_p);
    if (st != SPS_EDEVMEM && st != SPS_EUNFIT && st != SPS_ENOMEM) return st;
    return spsi_backends[0]->csr_multiply(ctx, A, B, C_p);
}

/* Computes *C_p = A B, or, if C_p is NULL, the values of C. */
static sps_status multiply(sps_context *ctx, const sps_csr *A, const sps_csr *B,
                           sps_csr *C, sps_csr **C_p)
{
    const bool mixed = A->place == SPS_HOST && A->dtype != B->dtype;
    const sps_backend *on = A->place == SPS_HOST ? spsi_backends[0]
                                                 : ctx->backend;
    double *a = NULL, *b = NULL;
    sps_csr same_A, same_B;
    sps_status st;

    SPS_TRY(as_doubles(ctx, A, mixed, &same_A, &a));
    SPS_TRY(as_doubles(ctx, B, mixed, &same_B, &b));
    if (C_p && A->place == SPS_HOST)
        SPS_TRY(multiply_host(ctx, &same_A, &same_B, C_p));
    else
        SPS_TRY(C_p ? on->csr_multiply(ctx, &same_A, &same_B, C_p)
                    : on->csr_multiply_values(ctx, &same_A, &same_B, C));
fail:
    spsi_free(ctx, a);
    spsi_free(ctx, b);
    return st;
}

sps_status spsi_matrix_multiply(sps_context *ctx, const sps_csr *A,
                                const sps_csr *B, sps_csr **C_p)
{
    return multiply(ctx, A, B, NULL, C_p);
}

sps_status spsi_matrix_multiply_values(sps_context *ctx, const sps_csr *A,
                                       const sps_csr *B, sps_csr *C)
{
    return multiply(ctx, A, B, C, NULL);
}

/* --- inverse of the diagonal */

/* Computes the norms of the columns.  Each is scaled by its largest entry, so
 * that none overflows or underflows; entries are added in the order of rows. */
static sps_status column_norms(const sps_operator *A, double *norm)
{
    const sps_csr *C = A->A;
    double *sum = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(A->ctx, C->ncol, &sum));
    memset(norm, 0, (size_t)C->ncol * sizeof *norm);
    for (int64_t p = 0; p < C->nnz; p++)
        norm[C->col[p]] = fmax(norm[C->col[p]], fabs(spsi_csr_value(C, p)));
    for (int64_t p = 0; p < C->nnz; p++) {
        const double ratio = spsi_csr_value(C, p) / norm[C->col[p]];

        if (norm[C->col[p]] > 0) sum[C->col[p]] += ratio * ratio;
    }
    for (int64_t j = 0; j < C->ncol; j++) norm[j] *= sqrt(sum[j]);
fail:
    spsi_free(A->ctx, sum);
    return st;
}

typedef struct invert_job {
    double *d;
    int64_t zeros, below;
} invert_job;

static void invert(void *data, int64_t first, int64_t last)
{
    invert_job *j = data;
    int64_t zeros = 0, below = 0;

    for (int64_t i = first; i < last; i++) {
        const double d = j->d[i];

        zeros += d == 0;
        below += d < 0;
        j->d[i] = spsi_diagonal_inverse(d);
    }
    spsi_team_add(&j->zeros, zeros);
    spsi_team_add(&j->below, below);
}

sps_status spsi_matrix_inverse_columns(const sps_operator *A, double *inverse,
                                       int64_t *zero)
{
    invert_job j = { .d = inverse };
    sps_status st;

    SPS_TRY(spsi_operator_fetch(A));
    SPS_TRY(column_norms(A, inverse));
    spsi_team_run(A->ctx, A->ncol, 4 * A->ncol, invert, &j);
    *zero = j.zeros;
fail:
    return st;
}

sps_status spsi_matrix_inverse_diagonal(const sps_operator *A, double *inverse,
                                        int64_t *zero, int64_t *negative)
{
    invert_job j = { .d = inverse };
    sps_status st = SPS_OK;

    SPS_TRY(spsi_matrix_diagonal(A, inverse));
    spsi_team_run(A->ctx, A->n, 4 * A->n, invert, &j);
    *zero = j.zeros;
    *negative = j.below;
fail:
    return st;
}
