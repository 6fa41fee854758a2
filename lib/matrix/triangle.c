/* SPDX-License-Identifier: BSD-3-Clause */
/* triangle.c - level sets of a triangular pattern, and the handle of a triangle
 * prepared by the backend. */
#include "matrix/triangle.h"

#include "core/backend.h"

/* Returns 1 + the largest level among the rows on which row i depends. */
static int32_t level_of(const sps_csr *A, int64_t i, bool upper,
                        const int32_t *level)
{
    int32_t deepest = -1;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int32_t j = A->col[p];

        if ((upper ? j > i : j < i) && level[j] > deepest) deepest = level[j];
    }
    return deepest + 1;
}

sps_status spsi_levels_find(sps_context *ctx, const sps_csr *A, bool upper,
                            sps_levels *levels)
{
    const int64_t n = A->nrow;
    sps_status st;
    int32_t *level = NULL;

    *levels = (sps_levels){ 0 };
    SPS_TRY(SPS_NEW(ctx, n, &level));
    SPS_TRY(SPS_NEW(ctx, n, &levels->row));
    for (int64_t t = 0; t < n; t++) {
        const int64_t i = upper ? n - 1 - t : t;

        level[i] = level_of(A, i, upper, level);
        if (level[i] >= levels->count) levels->count = level[i] + 1;
    }
    SPS_TRY(SPS_NEW(ctx, levels->count + 2, &levels->start));
    for (int64_t i = 0; i < n; i++) levels->start[level[i] + 2]++;
    for (int64_t l = 2; l <= levels->count; l++)
        levels->start[l] += levels->start[l - 1];
    for (int64_t i = 0; i < n; i++)
        levels->row[levels->start[level[i] + 1]++] = (int32_t)i;
fail:
    spsi_free(ctx, level);
    if (st != SPS_OK) spsi_levels_clear(ctx, levels);
    return st;
}

void spsi_levels_clear(sps_context *ctx, sps_levels *levels)
{
    spsi_free(ctx, levels->start);
    spsi_free(ctx, levels->row);
    *levels = (sps_levels){ 0 };
}

static void drop_parts(sps_context *ctx, sps_triangle_parts *part)
{
    sps_csr_destroy(ctx, &part->S);
    spsi_free(ctx, part->inverse);
    spsi_free(ctx, part->from);
    spsi_free(ctx, part->to);
}

sps_status spsi_triangle_create(sps_context *ctx,
                                const sps_triangle_parts *part,
                                sps_triangle **t_p)
{
    sps_triangle_parts own = *part;
    sps_status st;
    sps_triangle *t = NULL;

    SPS_REQUIRE(ctx, ctx->backend->triangle_open, SPS_EABSENT,
                "triangular systems are not supported by backend %s",
                ctx->backend->name);
    SPS_TRY(SPS_NEW(ctx, 1, &t));
    t->ctx = ctx;
    t->n = own.S->nrow;
    t->part = own;
    own = (sps_triangle_parts){ 0 };
    SPS_TRY(spsi_levels_find(ctx, t->part.S, t->part.upper, &t->levels));
    for (int64_t p = 0; t->part.to && p < t->part.S->nnz; p++)
        t->part.S->col[p] = t->part.to[t->part.S->col[p]];
    SPS_TRY(ctx->backend->triangle_open(t));
    *t_p = t;
    return SPS_OK;

fail:
    drop_parts(ctx, &own);
    spsi_triangle_destroy(&t);
    return st;
}

sps_status spsi_triangle_refresh(sps_triangle *t)
{
    return t->ctx->backend->triangle_refresh(t);
}

sps_status spsi_triangle_solve(const sps_triangle *t, const sps_block *B,
                               sps_block *X)
{
    if (t->n == 0 || B->k == 0) return SPS_OK;
    return t->ctx->backend->triangle_solve(t, B, X);
}

void spsi_triangle_destroy(sps_triangle **t_p)
{
    sps_triangle *t = *t_p;

    if (!t) return;
    t->ctx->backend->triangle_close(t);
    spsi_levels_clear(t->ctx, &t->levels);
    drop_parts(t->ctx, &t->part);
    spsi_free(t->ctx, t);
    *t_p = NULL;
}
