/* SPDX-License-Identifier: BSD-3-Clause */
/* examine.c - what is asked of a matrix before a method is chosen for it:
 * whether it is symmetric, the kinds of its rows (row_kinds.h), the inverse of
 * its diagonal.
 *
 * A matrix in the memory of a GPU is examined there, and some 100 bytes of
 * counts come back; results are the same as on the host.  One that the GPU
 * reads over the link (far) is examined on the host, which has it, and so is
 * every matrix where the GPU has too little memory. */
#include "matrix/coarsening.h"
#include "operator/operator_matrix.h"

/* Opens A where its arrays are on a GPU; otherwise *l_p becomes NULL. */
static sps_status open_there(const sps_operator *A, sps_coarse **l_p)
{
    const sps_coarsening *c = spsi_coarsening(A->ctx);
    sps_status st = SPS_OK;

    *l_p = NULL;
    if (c && A->A && !A->local.far && A->local.nnz > 0)
        st = c->open(A->ctx, &A->local, l_p);
    return st == SPS_EDEVMEM ? SPS_OK : st;
}

static void close_there(const sps_operator *A, sps_coarse **l_p)
{
    if (*l_p) spsi_coarsening(A->ctx)->close(l_p);
}

static sps_status compare(const sps_operator *A, bool *symmetric,
                          double *difference)
{
    const double tol = 1e-10;
    sps_coarse *l = NULL;
    double worst;
    sps_status st = SPS_OK;

    if (A->n != A->ncol) {
        *symmetric = false;
        if (difference) *difference = 0;
        return st;
    }
    SPS_TRY(open_there(A, &l));
    if (l) {
        SPS_TRY(spsi_coarsening(A->ctx)->symmetric(l, tol, symmetric, &worst));
        if (difference) *difference = worst;
    } else {
        SPS_TRY(spsi_operator_fetch(A));
        SPS_TRY(sps_csr_symmetric(A->ctx, A->A, tol, symmetric, difference));
    }
fail:
    close_there(A, &l);
    return st;
}

sps_status spsi_operator_symmetric(const sps_operator *op, bool *symmetric,
                                   double *difference)
{
    sps_operator_cache *c = op->cache;
    sps_status st = SPS_OK;

    if (!c->transpose.known || c->transpose.version != op->version ||
        (difference && c->transpose.difference < 0)) {
        c->transpose.difference = -1;     /* not measured */
        SPS_TRY(compare(op, &c->transpose.symmetric,
                        difference ? &c->transpose.difference : NULL));
        c->transpose.known = true;
        c->transpose.version = op->version;
    }
    *symmetric = c->transpose.symmetric;
    if (difference) *difference = c->transpose.difference;
fail:
    return st;
}

sps_status spsi_matrix_kinds(const sps_operator *A, bool projected,
                             sps_row_kinds *k)
{
    sps_coarse *l = NULL;
    sps_status st;

    SPS_TRY(open_there(A, &l));
    if (l) {
        SPS_TRY(spsi_coarsening(A->ctx)->kinds(l, projected, k));
    } else {
        SPS_TRY(spsi_operator_fetch(A));
        spsi_row_kinds_count(A->ctx, A->A, projected, k);
    }
fail:
    close_there(A, &l);
    return st;
}

sps_status spsi_matrix_known(const sps_operator *A, int b, int64_t *known)
{
    sps_coarse *l = NULL;
    sps_status st;

    SPS_TRY(open_there(A, &l));
    if (l) {
        SPS_TRY(spsi_coarsening(A->ctx)->known(l, b, known));
    } else {
        SPS_TRY(spsi_operator_fetch(A));
        *known = spsi_rows_known(A->ctx, A->A, b);
    }
fail:
    close_there(A, &l);
    return st;
}

static sps_status invert_into(const sps_operator *A, double *d,
                              sps_diagonal_kinds *k)
{
    sps_status st;

    SPS_TRY(spsi_matrix_inverse_diagonal(A, d, &k->zero, &k->negative));
    k->other = 0;
    for (int64_t i = 1; i < A->n && !k->other; i++) k->other = d[i] != d[0];
fail:
    return st;
}

/* By way of the host.  Nothing is allocated for a block that is there: new
 * values of a matrix need no memory. */
static sps_status invert_by_host(const sps_operator *A, sps_block *inverse,
                                 sps_diagonal_kinds *k)
{
    double *d = NULL;
    sps_status st;

    if (A->ctx->backend->place == SPS_HOST && inverse->ld == 1)
        return invert_into(A, inverse->data, k);
    SPS_TRY(SPS_NEW(A->ctx, A->n + 1, &d));
    SPS_TRY(invert_into(A, d, k));
    SPS_TRY(sps_block_set(inverse, 0, 1, d, A->n > 0 ? A->n : 1, SPS_COL_MAJOR,
                          SPS_HOST));
fail:
    spsi_free(A->ctx, d);
    return st;
}

sps_status spsi_matrix_inverse_block(const sps_operator *A, sps_block *inverse,
                                     sps_diagonal_kinds *k)
{
    sps_coarse *l = NULL;
    sps_status st;

    SPS_TRY(open_there(A, &l));
    SPS_TRY(l ? spsi_coarsening(A->ctx)->diagonal(l, inverse, k)
              : invert_by_host(A, inverse, k));
fail:
    close_there(A, &l);
    return st;
}
