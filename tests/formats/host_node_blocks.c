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

/* ------------------------------------------------------------------- leads */

/* Number of block columns in which the first rows of block rows I and J both
 * have entries; *all is increased by the number of those in the first row of
 * I. */
static int64_t common_blocks(const sps_csr *A, int b, int64_t I, int64_t J,
                             int64_t *all)
{
    int64_t p = A->rowptr[I * b], q = A->rowptr[J * b], common = 0;
    const int64_t p_end = A->rowptr[I * b + 1], q_end = A->rowptr[J * b + 1];
    int32_t last = -1;

    for (; p < p_end; p++) {
        const int32_t j = A->col[p] / b;

        if (j == last) continue;
        last = j;
        ++*all;
        while (q < q_end && A->col[q] / b < j) q++;
        common += q < q_end && A->col[q] / b == j;
    }
    return common;
}

int64_t spsi_node_lead(const sps_csr *A, int b)
{
    const int64_t middle = A->nrow / b / 2 * b;
    int64_t lead[SPS_NODE_LEADS], sum[SPS_NODE_LEADS][2] = {{ 0 }};
    int count;

    if (A->nrow / b < SPS_NODE_ROWS) return 0;
    count = spsi_node_leads(A->col, A->rowptr[middle], A->rowptr[middle + 1],
                            A->nrow, b, lead);
    for (int c = 0; c < count; c++)
        for (int n = 0; n < SPS_NODE_SAMPLE; n++) {
            const int64_t I = spsi_node_lead_row(A->nrow, b, lead[c], n);

            sum[c][0] += common_blocks(A, b, I, I + lead[c], &sum[c][1]);
        }
    return spsi_node_choose_lead(lead, count, (const int64_t (*)[2])sum);
}
