/* SPDX-License-Identifier: BSD-3-Clause */
/* block_jacobi.c - Z = diag(A_11, A_22, ...)^-1 R: the inverses of the diagonal
 * blocks form a block-diagonal matrix, applied by SpMM.
 *
 * Blocks: opt->block_size rows each; with 0 they are detected: the node blocks
 * of the pattern (several unknowns at a node), otherwise runs of consecutive
 * rows with equal patterns, otherwise 8 rows each.  A singular block is
 * replaced by its diagonal, with a note.  Each inverse is replaced by its
 * symmetric part, so that rounding does not make M nonsymmetric. */
#include "driver/precond.h"

#include <math.h>
#include <string.h>

#define LARGEST_BLOCK 64
#define LARGEST_FOUND 16
#define DEFAULT_BLOCK 8

struct block_jacobi {
    sps_precond super;
    int64_t blocks, entries;
    int64_t *start;          /* row numbers, blocks + 1 elements */
    double *inverse;         /* inverse blocks, column-major, one after the
                                other */
    double *diagonal;        /* n elements */
    sps_csr *csr;            /* the block-diagonal matrix */
    sps_operator *op;
};

/* Returns whether rows i and i + 1 have the same columns. */
static bool same_pattern(const sps_csr *A, int64_t i)
{
    int64_t a = A->rowptr[i], b = A->rowptr[i + 1], c = A->rowptr[i + 2];

    return b - a == c - b &&
           !memcmp(A->col + a, A->col + b, (size_t)(b - a) * sizeof *A->col);
}

/* Returns the first row after the block that begins with row i. */
static int64_t block_end(const sps_precond *M, int64_t i, int size, bool runs)
{
    int64_t end = i + 1;

    if (!runs) return i + size < M->n ? i + size : M->n;
    while (end < M->n && end - i < LARGEST_FOUND &&
           same_pattern(M->A->A, end - 1))
        end++;
    return end;
}

static int64_t count_blocks(const sps_precond *M, int size, bool runs)
{
    int64_t count = 0;

    for (int64_t i = 0; i < M->n; i = block_end(M, i, size, runs)) count++;
    return count;
}

static sps_status find_blocks(struct block_jacobi *m, int size)
{
    sps_precond *M = &m->super;
    sps_status st = SPS_OK;
    bool runs = false;
    int64_t i = 0, b = 0;

    if (size == 0 && M->A->f.block > 1) size = M->A->f.block;
    if (size == 0) {
        m->blocks = count_blocks(M, 0, true);
        runs = 2 * m->blocks <= M->n;
        size = DEFAULT_BLOCK;
    }
    m->blocks = count_blocks(M, size, runs);
    SPS_TRY(SPS_OWN(&M->own, m->blocks + 1, &m->start));
    for (; i < M->n; i = block_end(M, i, size, runs)) m->start[b++] = i;
    m->start[b] = M->n;
    for (b = 0; b < m->blocks; b++) {
        int64_t r = m->start[b + 1] - m->start[b];
        m->entries += r * r;
    }
fail:
    return st;
}

/* a = (a + a') / 2, for the r x r inverse of a block. */
static void symmetrise(double *a, int64_t r)
{
    for (int64_t j = 0; j < r; j++)
        for (int64_t i = 0; i < j; i++)
            a[j * r + i] = a[i * r + j] = 0.5 * (a[j * r + i] + a[i * r + j]);
}

static void use_diagonal(const struct block_jacobi *m, int64_t b, double *a)
{
    int64_t r = m->start[b + 1] - m->start[b];

    memset(a, 0, (size_t)(r * r) * sizeof *a);
    for (int64_t i = 0; i < r; i++) {
        double d = fabs(m->diagonal[m->start[b] + i]);
        a[i * r + i] = d > 0 && isfinite(1 / d) ? 1 / d : 1;
    }
}

/* Computes all inverses; singular blocks are replaced one by one. */
static sps_status invert(struct block_jacobi *m)
{
    sps_precond *M = &m->super;
    sps_status st = SPS_OK;
    int64_t first = 0, bad, offset = 0, replaced = 0, r;

    SPS_TRY(spsi_matrix_diagonal(M->A, m->diagonal));
    while (first < m->blocks) {
        SPS_TRY(spsi_matrix_block_inverse(M->A, m->start + first,
                                          m->blocks - first,
                                          m->inverse + offset, &bad));
        if (bad < 0) break;
        for (; bad >= 0; bad--, first++) {
            r = m->start[first + 1] - m->start[first];
            if (bad == 0) use_diagonal(m, first, m->inverse + offset);
            offset += r * r;
        }
        replaced++;
    }
    offset = 0;
    for (int64_t b = 0; b < m->blocks; b++) {
        r = m->start[b + 1] - m->start[b];
        symmetrise(m->inverse + offset, r);
        offset += r * r;
    }
    if (replaced)
        spsi_note(M->ctx, "block_jacobi: %lld of %lld blocks are singular; "
                  "only their diagonals are used", (long long)replaced,
                  (long long)m->blocks);
fail:
    return st;
}

/* Fills the pattern of the block-diagonal csr: a row of block b has columns
 * start[b] .. start[b + 1] - 1. */
static sps_status fill_pattern(struct block_jacobi *m)
{
    sps_precond *M = &m->super;
    sps_status st = SPS_OK;
    int64_t p = 0;

    SPS_TRY(spsi_own_csr(&M->own, &m->csr));
    SPS_TRY(sps_csr_create(M->ctx, M->n, M->n, m->entries, SPS_F64, &m->csr));
    for (int64_t b = 0; b < m->blocks; b++)
        for (int64_t i = m->start[b]; i < m->start[b + 1]; i++) {
            m->csr->rowptr[i] = p;
            for (int64_t j = m->start[b]; j < m->start[b + 1]; j++)
                m->csr->col[p++] = (int32_t)j;
        }
    m->csr->rowptr[M->n] = p;
    m->csr->props = SPS_SYMMETRIC;
fail:
    return st;
}

/* The inverses are symmetric, so their column-major values are also the
 * row-major values of the csr. */
static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct block_jacobi *m = (struct block_jacobi *)M;
    sps_status st = SPS_OK;

    SPS_REQUIRE(M->ctx, opt->block_size >= 0 &&
                opt->block_size <= LARGEST_BLOCK, SPS_EINVAL,
                "block_jacobi: block size %d is not possible; 1 to %d are, and "
                "0 detects the blocks",
                opt->block_size, LARGEST_BLOCK);
    SPS_TRY(find_blocks(m, opt->block_size));
    SPS_TRY(SPS_OWN(&M->own, m->entries, &m->inverse));
    SPS_TRY(SPS_OWN(&M->own, M->n, &m->diagonal));
    SPS_TRY(invert(m));
    SPS_TRY(fill_pattern(m));
    SPS_TRY(spsi_check_deadline(M->ctx, "block_jacobi"));
    if (m->entries)
        memcpy(m->csr->val, m->inverse,
               (size_t)m->entries * sizeof *m->inverse);
    SPS_TRY(spsi_precond_operator(M, m->csr, &m->op));
fail:
    return st;
}

static sps_status update(sps_precond *M)
{
    struct block_jacobi *m = (struct block_jacobi *)M;
    sps_status st = SPS_OK;

    SPS_TRY(invert(m));
    SPS_TRY(spsi_precond_values(M, m->csr, m->inverse, &m->op));
fail:
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    return sps_operator_apply(((const struct block_jacobi *)M)->op, 1.0, R,
                              0.0, Z);
}

SPS_DEFINE(sps_precond_type, spsi_precond_block_jacobi) = {
    .name = "block_jacobi", .floats = true, .needs = SPS_NEEDS_CSR,
    .symmetric = true,
    .ranks = SPS_RANKS_OWN,
    .size = sizeof(struct block_jacobi),
    .build = build, .update = update, .apply = apply,
};
