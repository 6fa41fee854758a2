/* SPDX-License-Identifier: BSD-3-Clause */
/* transpose.c - A' as an operator with plans of its own: for a csr from the
 * transposed arrays, which take as much memory as those of A; for a callback by
 * the caller's second function. */
#include "operator/operator.h"
#include "core/options.h"

static sps_status of_callback(const sps_operator *A, sps_operator **T_p)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(A->ctx, A->callback.transposed, SPS_EUNFIT, "this method needs "
                "products with A', and the operator is a callback without "
                "them: create it by sps_operator_user_pair");
    SPS_TRY(spsi_operator_new(A->ctx, T_p));
    (*T_p)->n = A->ncol;
    (*T_p)->ncol = A->n;
    (*T_p)->width = A->width;
    (*T_p)->callback.apply = A->callback.transposed;
    (*T_p)->callback.transposed = A->callback.apply;
    (*T_p)->callback.data = A->callback.data;
fail:
    return st;
}

sps_status spsi_operator_transposed(const sps_operator *A,
                                    const sps_options *opt, int width,
                                    sps_operator **T_p)
{
    sps_options plain = *opt;
    sps_csr *C = NULL;
    sps_status st;

    if (A->callback.apply) return of_callback(A, T_p);
    if (A->ranks)
        return spsi_fail(A->ctx, SPS_EUNFIT, "a matrix over several processes "
                         "has no products with its transpose");
    SPS_REQUIRE(A->ctx, A->n <= INT32_MAX, SPS_EMATRIX, "%lld rows of A would "
                "become columns of A', of which at most %d are possible",
                (long long)A->n, INT32_MAX);
    plain.reorder = "none";
    SPS_TRY(spsi_operator_fetch(A));
    SPS_TRY(spsi_csr_transpose(A->ctx, A->A, &C));
    C->props |= SPS_SORTED;
    SPS_TRY(spsi_operator_create(A->ctx, C, width, A->dtype, &plain, false,
                                 T_p));
    (*T_p)->own_A = C;
    C = NULL;
fail:
    sps_csr_destroy(A->ctx, &C);
    return st;
}

sps_status spsi_operator_transposed_follow(const sps_operator *A,
                                           sps_operator *T)
{
    sps_csr *C = NULL;
    sps_status st = SPS_OK;

    if (A->callback.apply) return SPS_OK;
    SPS_TRY(spsi_operator_fetch(A));
    SPS_TRY(spsi_csr_transpose(A->ctx, A->A, &C));
    SPS_TRY(sps_operator_set_values(T, C->val, SPS_HOST));
fail:
    sps_csr_destroy(A->ctx, &C);
    return st;
}
