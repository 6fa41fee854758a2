/* SPDX-License-Identifier: BSD-3-Clause */
/* node_blocks.c - converts CSR to node blocks on the host.  Blocks are counted
 * first and then written, so each entry is read twice; block rows are processed
 * in parallel. */
#include "formats/node_blocks.h"

#include <string.h>

#include "formats/block_merge.h"
#include "core/team.h"

_Static_assert((int)SPS_NODE_MAX <= (int)SPS_MERGE_MAX, "one cursor per row");

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
        *why_not = "too few entries are in dense blocks";
        return false;
    }
    *why_not = "the zeros in blocks would need more bytes than the blocks save "
               "for columns";
    return p->pinned || spsi_node_bytes(b, fill, value) < value + 4;
}

sps_status spsi_node_check(sps_context *ctx, const sps_csr_local *A,
                           const sps_node_blocks *n)
{
    const double numbers = (double)n->count * n->b * n->b;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, numbers <= 5.0 * (double)A->nnz, SPS_EUNFIT,
                "blocks of %d x %d store %.3g values for %lld entries: at most "
                "five values per entry are supported", n->b, n->b, numbers,
                (long long)A->nnz);
fail:
    return st;
}

/* -------------------------------------------------------------- grid lines */

int64_t spsi_node_choose_lead(const int64_t *lead, int count,
                              const int64_t (*sum)[2])
{
    double most = 0.4;
    int64_t best = 0;

    for (int c = 0; c < count; c++) {
        const double share = sum[c][1] > 0
            ? (double)sum[c][0] / (double)sum[c][1] : 0.0;

        if (share <= most) continue;
        /* Another distance must be at least 10 % better: nearer grid lines are
         * preferred. */
        most = 1.1 * share;
        best = lead[c];
    }
    return best;
}

/* ------------------------------------------------------------------- build */

void spsi_node_shape(int64_t nrow, int64_t ncol, sps_dtype dtype, int b,
                     sps_node_blocks *n)
{
    *n = (sps_node_blocks){ .b = b, .nrow = nrow, .ncol = ncol,
                            .mb = (nrow + b - 1) / b,
                            .nb = (ncol + b - 1) / b, .dtype = dtype };
}

/* Writes the block columns of a block row to `column` unless it is NULL, and
 * returns their number. */
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

/* Writes row i, which stores all columns, to the blocks of its block row. */
static void write_full_row(const sps_csr_local *A, const sps_node_blocks *n,
                           int64_t i, size_t size)
{
    const size_t step = (size_t)n->b * size;
    const char *from = (const char *)A->val + (size_t)A->rowptr[i] * size;
    char *to = (char *)n->val +
               (size_t)n->start[i / n->b] * step * (size_t)n->b +
               (size_t)(i % n->b) * size;

    for (int64_t j = 0; j < A->ncol; j++, from += size, to += step)
        memcpy(to, from, size);
}

/* Writes the entries of row i to the blocks of its block row. */
static void write_row(const sps_csr_local *A, const sps_node_blocks *n,
                      int64_t i, size_t size)
{
    const int b = n->b;
    int64_t s = n->start[i / b], first = 0; /* the columns of block s begin */

    if (A->rowptr[i + 1] - A->rowptr[i] == A->ncol) {
        write_full_row(A, n, i, size);
        return;
    }
    if (A->rowptr[i] < A->rowptr[i + 1]) first = (int64_t)n->column[s] * b;
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        while (A->col[p] >= first + b) first = (int64_t)n->column[++s] * b;
        memcpy((char *)n->val +
                   (size_t)((s * b + A->col[p] - first) * b + i % b) * size,
               (const char *)A->val + (size_t)p * size, size);
    }
}

typedef struct job {
    const sps_csr_local *A;
    sps_node_blocks *n;
} job;

static void write_rows(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const size_t size = spsi_dtype_size(j->n->dtype);

    for (int64_t i = first; i < last; i++) {
        if (size == 8) write_row(j->A, j->n, i, 8);
        else write_row(j->A, j->n, i, 4);
    }
}

/* Writing an entry takes about 3 ns. */
void spsi_node_refresh(sps_context *ctx, const sps_csr_local *A,
                       sps_node_blocks *n)
{
    spsi_team_run(ctx, A->nrow, 3 * A->nnz, write_rows, &(job){ A, n });
}

static void count_blocks(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t I = first; I < last; I++)
        j->n->start[I + 1] = list_blocks(j->A, j->n->b, I, NULL);
}

static void write_blocks(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t I = first; I < last; I++)
        list_blocks(j->A, j->n->b, I, j->n->column + j->n->start[I]);
}

sps_status spsi_node_from_csr(sps_context *ctx, const sps_csr_local *A, int b,
                              sps_node_blocks *n)
{
    job j = { A, n };
    sps_status st;

    spsi_node_shape(A->nrow, A->ncol, A->dtype, b, n);
    SPS_TRY(SPS_NEW(ctx, n->mb + 1, &n->start));
    spsi_team_run(ctx, n->mb, 3 * A->nnz, count_blocks, &j);
    for (int64_t I = 0; I < n->mb; I++) n->start[I + 1] += n->start[I];
    n->count = n->start[n->mb];
    SPS_TRY(spsi_node_check(ctx, A, n));
    SPS_TRY(SPS_NEW(ctx, n->count, &n->column));
    SPS_TRY(spsi_new(ctx, ((size_t)n->count * (size_t)(b * b) + SPS_NODE_MAX) *
                              spsi_dtype_size(n->dtype), &n->val));
    spsi_team_run(ctx, n->mb, 3 * A->nnz, write_blocks, &j);
    /* The pages from spsi_new are not mapped yet: the thread that processes a
     * block row writes them first, so they are placed in its NUMA node. */
    spsi_node_refresh(ctx, A, n);
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
