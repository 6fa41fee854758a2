/* SPDX-License-Identifier: BSD-3-Clause */
/* node_blocks.c - CSR to node blocks and back, on the host.  Blocks are counted
 * first, then written: each entry is looked at twice; block rows in
 * parallel. */
#include "kernels/formats/node_blocks.h"

#include <string.h>

#include "kernels/formats/block_merge.h"

_Static_assert((int)SPS_NODE_MAX <= (int)SPS_MERGE_MAX, "a cursor a row");

/* ------------------------------------------------------------------ choice */

int spsi_node_choose(const sps_features *f, double value)
{
    int best = SPS_NODE_MIN;

    for (int b = SPS_NODE_MIN + 1; b <= SPS_NODE_MAX; b++)
        if (spsi_node_bytes(b, f->fill[b], value) <
            spsi_node_bytes(best, f->fill[best], value))
            best = b;
    return best;
}

bool spsi_node_fits(const sps_problem *p, const char **why_not)
{
    const double value = (double)spsi_dtype_size(p->A->dtype);
    const int b = spsi_node_choose(p->f, value);
    const double fill = p->f->fill[b];

    if (p->A->nnz == 0 || fill < 0.25) {
        *why_not = "entries do not come in blocks";
        return false;
    }
    *why_not = "blocks would hold more zeros than they save columns";
    return p->pinned || spsi_node_bytes(b, fill, value) < value + 4;
}

sps_status spsi_node_check(sps_context *ctx, const sps_csr_local *A,
                           const sps_node_blocks *n)
{
    const double numbers = (double)n->count * n->b * n->b;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, numbers <= 5.0 * (double)A->nnz, SPS_EUNFIT,
                "blocks of %d x %d hold %.3g numbers for %lld entries: at most "
                "five for each are served", n->b, n->b, numbers,
                (long long)A->nnz);
fail:
    return st;
}

/* ------------------------------------------------------------------- lines */

enum { SAMPLE = 16, LEADS = 32, NEAREST = 8 };

/* Block columns that the first rows of two block rows have in common; *all:
 * those of the first. */
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

/* The share of block columns that block rows d apart have in common. */
static double share_at(const sps_csr *A, int b, int64_t d)
{
    const int64_t span = A->nrow / b - d;
    int64_t common = 0, all = 0;

    for (int n = 0; n < SAMPLE; n++)
        common += common_blocks(A, b, (2 * n + 1) * span / (2 * SAMPLE),
                                (2 * n + 1) * span / (2 * SAMPLE) + d, &all);
    return all > 0 ? (double)common / (double)all : 0.0;
}

int64_t spsi_node_lead(const sps_csr *A, int b)
{
    const int64_t middle = A->nrow / b / 2;
    double most = 0.4;
    int64_t lead = 0, last = 0;

    if (A->nrow < 64 * b) return 0;
    for (int64_t p = A->rowptr[middle * b], tried = 0;
         p < A->rowptr[middle * b + 1] && tried < LEADS; p++) {
        const int64_t d = A->col[p] / b - middle;
        double share;

        if (d < NEAREST || d == last || d > A->nrow / b / 4) continue;
        last = d;
        tried++;
        share = share_at(A, b, d);
        if (share <= most) continue;
        most = 1.1 * share; /* nearer lines rather than farther ones */
        lead = d;
    }
    return lead;
}

/* ------------------------------------------------------------------- build */

void spsi_node_shape(int64_t nrow, int64_t ncol, sps_dtype dtype, int b,
                     sps_node_blocks *n)
{
    *n = (sps_node_blocks){ .b = b, .nrow = nrow, .ncol = ncol,
                            .mb = (nrow + b - 1) / b,
                            .nb = (ncol + b - 1) / b, .dtype = dtype };
}

/* The block columns of a block row, to `column` unless NULL; how many. */
static int64_t list_blocks(const sps_csr_local *A, int b, int64_t block_row,
                           int32_t *column)
{
    const sps_block_rows rows = { A->rowptr, A->col, A->nrow, b };
    int64_t count = 0;
    int32_t next;
    sps_block_merge m;

    spsi_block_merge_open(&m, &rows, block_row);
    for (; (next = spsi_block_merge_next(&m)) >= 0; count++)
        if (column) column[count] = next;
    return count;
}

/* Entries of row i: each block of the block row in turn, each entry into it. */
static void write_row(const sps_csr_local *A, const sps_node_blocks *n,
                      int64_t i, size_t size)
{
    const int b = n->b;
    int64_t s = n->start[i / b];

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int32_t j = A->col[p] / b;

        while (n->column[s] < j) s++;
        memcpy((char *)n->val +
                   (size_t)((s * b + A->col[p] - (int64_t)j * b) * b + i % b) *
                       size,
               (const char *)A->val + (size_t)p * size, size);
    }
}

void spsi_node_refresh(const sps_csr_local *A, sps_node_blocks *n, int threads)
{
    const size_t size = spsi_dtype_size(n->dtype);

#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < A->nrow; i++) {
        if (size == 8) write_row(A, n, i, 8);
        else write_row(A, n, i, 4);
    }
    (void)threads;
}

sps_status spsi_node_from_csr(sps_context *ctx, const sps_csr_local *A, int b,
                              sps_node_blocks *n)
{
    sps_status st;

    spsi_node_shape(A->nrow, A->ncol, A->dtype, b, n);
    SPS_TRY(SPS_NEW(ctx, n->mb + 1, &n->start));
#pragma omp parallel for schedule(static) num_threads(ctx->threads)
    for (int64_t I = 0; I < n->mb; I++)
        n->start[I + 1] = list_blocks(A, b, I, NULL);
    for (int64_t I = 0; I < n->mb; I++) n->start[I + 1] += n->start[I];
    n->count = n->start[n->mb];
    SPS_TRY(spsi_node_check(ctx, A, n));
    SPS_TRY(SPS_NEW(ctx, n->count, &n->column));
    SPS_TRY(spsi_new(ctx, (size_t)n->count * (size_t)(b * b) *
                              spsi_dtype_size(n->dtype), &n->val));
#pragma omp parallel for schedule(static) num_threads(ctx->threads)
    for (int64_t I = 0; I < n->mb; I++)
        list_blocks(A, b, I, n->column + n->start[I]);
    /* spsi_new gave zeros that nobody touched yet: whose block rows they are
     * writes them first, and has them near. */
    spsi_node_refresh(A, n, ctx->threads);
fail:
    return st;
}

void spsi_node_clear(sps_context *ctx, sps_node_blocks *n)
{
    spsi_free(ctx, n->start);
    spsi_free(ctx, n->column);
    spsi_free(ctx, n->val);
    n->start = NULL;
    n->column = NULL;
    n->val = NULL;
}

size_t spsi_node_size(const sps_node_blocks *n)
{
    const size_t block = (size_t)(n->b * n->b) * spsi_dtype_size(n->dtype);

    return (size_t)(n->mb + 1) * sizeof *n->start +
           (size_t)n->count * (sizeof *n->column + block);
}

/* ------------------------------------------------------------------ back */

static double number(const sps_node_blocks *n, int64_t at)
{
    return n->dtype == SPS_F64 ? ((const double *)n->val)[at]
                               : (double)((const float *)n->val)[at];
}

/* Row i: its nonzeros, counted, and kept when A has room for them. */
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
