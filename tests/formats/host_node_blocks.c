/* SPDX-License-Identifier: BSD-3-Clause */
/* host_node_blocks.c - conversion of node blocks back to CSR. */
#include "tests/formats/host_formats.h"

static double number(const sps_node_blocks *n, int64_t at)
{
    return n->dtype == SPS_F64 ? ((const double *)n->val)[at]
                               : (double)((const float *)n->val)[at];
}

/* The nonzeros of row i: counts them, and stores them if A has its arrays. */
static int64_t read_row(const sps_node_blocks *n, int64_t i, sps_csr *A,
                        int64_t to)
{
    const int b = n->b;
    int64_t count = 0;

    for (int64_t e = n->start[i / b] * b; e < n->start[i / b + 1] * b; e++) {
        const double v = number(n, e * b + i % b);

        if (v == 0.0) continue;
        if (A) {
            A->col[to + count] = (int32_t)(n->column[e / b] * b + e % b);
            if (n->dtype == SPS_F64) ((double *)A->val)[to + count] = v;
            else ((float *)A->val)[to + count] = (float)v;
        }
        count++;
    }
    return count;
}

sps_status spsi_node_to_csr(sps_context *ctx, const sps_node_blocks *n,
                            sps_csr **A_p)
{
    sps_status st;
    sps_csr *A = NULL;
    int64_t nnz = 0;

    for (int64_t i = 0; i < n->nrow; i++) nnz += read_row(n, i, NULL, 0);
    SPS_TRY(sps_csr_create(ctx, n->nrow, n->ncol, nnz, n->dtype, &A));
    for (int64_t i = 0; i < n->nrow; i++)
        A->rowptr[i + 1] = A->rowptr[i] + read_row(n, i, A, A->rowptr[i]);
    *A_p = A;
fail:
    return st;
}
