/* SPDX-License-Identifier: BSD-3-Clause */
/* reorder.c - reorders the unknowns of an operator by reverse Cuthill-McKee or
 * along Morton's curve.
 *
 * Neighbours in the graph become neighbours in memory, so that rows processed
 * together read the same rows of X.  Solvers permute B and X once, by products
 * with P, and use the inner operator; everything else uses the original.  The
 * matrix is stored twice.
 *
 * auto is RCM: it is tried for matrices of at least FEW rows if the bandwidth
 * is above a quarter of n and no row is much longer than the others, and is
 * used if a gain of 15 % is predicted by the model bytes of a nonzero = 12 + 8
 * min(k, 64) (distinct columns / entries, both in 64 consecutive rows). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/measure.h"
#include "matrix/order.h"
#include "operator/reorder.h"

#define GAIN 1.15
enum { FEW = 4096, HUB = 50 };

/* ------------------------------------------------------------------ matrix */

static void take_values(const sps_csr *A, const int64_t *entry, void *val)
{
    const size_t size = spsi_dtype_size(A->dtype);

    for (int64_t p = 0; p < A->nnz; p++)
        memcpy((char *)val + (size_t)p * size,
               (const char *)A->val + (size_t)entry[p] * size, size);
}

/* Creates r->A = P A P'; its row i is row order[i] of A. */
static sps_status permute(sps_context *ctx, const sps_csr *A,
                          const sps_features *f, const int32_t *order,
                          sps_reordering *r)
{
    const int64_t n = A->nrow;
    sps_status st;
    int32_t *place = NULL;
    sps_keyed *row = NULL;
    int64_t q = 0;

    SPS_TRY(sps_csr_create(ctx, n, n, A->nnz, A->dtype, &r->A));
    SPS_TRY(SPS_NEW(ctx, A->nnz, &r->entry));
    SPS_TRY(SPS_NEW(ctx, n, &place));
    SPS_TRY(SPS_NEW(ctx, f->max_length + 1, &row));
    for (int64_t i = 0; i < n; i++) place[order[i]] = (int32_t)i;
    for (int64_t i = 0; i < n; i++) {
        const int64_t p = A->rowptr[order[i]];
        const int64_t length = A->rowptr[order[i] + 1] - p;

        for (int64_t t = 0; t < length; t++)
            row[t] = (sps_keyed){ place[A->col[p + t]], p + t };
        qsort(row, (size_t)length, sizeof *row, spsi_by_key);
        for (int64_t t = 0; t < length; t++, q++) {
            r->A->col[q] = (int32_t)row[t].key;
            r->entry[q] = row[t].at;
        }
        r->A->rowptr[i + 1] = q;
    }
    take_values(A, r->entry, r->A->val);
    r->A->props = A->props;
fail:
    spsi_free(ctx, place);
    spsi_free(ctx, row);
    return st;
}

/* ---------------------------------------------------------------- decision */

/* Returns whether auto tries RCM; otherwise a note says why not. */
static bool worth_a_try(sps_context *ctx, const sps_features *f)
{
    if (f->nrow < FEW)
        spsi_note(ctx, "reorder: the original order is kept, since there are "
                  "fewer than %d rows", FEW);
    else if (f->bandwidth <= f->nrow / 4)
        spsi_note(ctx, "reorder: the original order is kept, since the "
                  "bandwidth is at most a quarter of the number of rows");
    else if ((double)f->max_length > HUB * f->mean_length)
        spsi_note(ctx, "reorder: the original order is kept, since a row has "
                  "more than %d times the mean number of entries", HUB);
    else
        return true;
    return false;
}

/* Returns the predicted speed-up of a product, by the model above. */
static double predicted_gain(const sps_features *before,
                             const sps_features *after, int k)
{
    const double width = k < 64 ? k : 64;

    return (12 + 8 * width * before->distinct64) /
           (12 + 8 * width * after->distinct64);
}

static void note_kept(const sps_operator *op, const sps_features *after,
                      double gain)
{
    spsi_note(op->ctx, "reorder: RCM would change the bandwidth from %lld to "
              "%lld and the ratio of distinct columns to entries in 64 rows "
              "from %.2f to %.2f; products of %d columns are predicted to be "
              "only %.2f times as fast, so the original order is kept",
              (long long)op->f.bandwidth,
              (long long)after->bandwidth, op->f.distinct64,
              after->distinct64, op->width, gain);
}

/* Times are reported but do not decide: a choice by the clock would not be
 * reproducible. */
static sps_status note_reordered(const sps_operator *op, const char *name,
                                 const sps_features *after, double gain)
{
    const sps_operator *inner = op->reordered->inner;
    double before, now;
    sps_status st;

    SPS_TRY(spsi_measure_plan(op->ctx, op->A, op->block, &before));
    SPS_TRY(spsi_measure_plan(op->ctx, inner->A, inner->block, &now));
    spsi_note(op->ctx, "reorder: %s changes the bandwidth from %lld to %lld "
              "and the ratio of distinct columns to entries in 64 rows from "
              "%.2f to %.2f; products of %d columns are %.2f times as fast by "
              "prediction, %.2f by measurement", name,
              (long long)op->f.bandwidth,
              (long long)after->bandwidth, op->f.distinct64,
              after->distinct64, op->width, gain, before / now);
fail:
    return st;
}

static sps_status make_inner(sps_operator *op, const sps_options *o,
                             const int32_t *order)
{
    sps_reordering *r = op->reordered;
    sps_options plain = *o, of_order;
    sps_status st;

    plain.reorder = "none";
    sps_options_default(&of_order);
    of_order.strict_nonfinite = o->strict_nonfinite;
    SPS_TRY(spsi_permutation(op->ctx, op->n, order, &r->P));
    SPS_TRY(spsi_csr_transpose(op->ctx, r->P, &r->T));
    SPS_TRY(spsi_new(op->ctx, (size_t)r->A->nnz *
                     spsi_dtype_size(r->A->dtype), &r->val));
    SPS_TRY(spsi_operator_csr(op->ctx, r->A, op->width, &plain, 0, &r->inner));
    SPS_TRY(spsi_operator_csr(op->ctx, r->P, op->width, &of_order, 0,
                              &r->forth));
    SPS_TRY(spsi_operator_csr(op->ctx, r->T, op->width, &of_order, 0,
                              &r->back));
fail:
    return st;
}

static sps_status order_rcm(const sps_operator *op, int32_t *order)
{
    sps_graph g = { 0 };
    sps_status st;

    SPS_TRY(spsi_graph_create(op->ctx, op->A, &g));
    SPS_TRY(spsi_order_rcm(op->ctx, &g, order));
fail:
    spsi_graph_clear(op->ctx, &g);
    return st;
}

/* Only if some coordinate is not finite, all of them come to the host, since
 * the error names the first such one. */
static sps_status check_finite(const sps_block *coords)
{
    sps_context *ctx = coords->ctx;
    const int64_t m = coords->n, d = coords->k;
    double *x = NULL, most[3] = { 0 };
    sps_status st;

    if (m == 0) return SPS_OK;
    SPS_TRY(ctx->backend->maxabs(coords, most));
    if (isfinite(most[0]) && isfinite(most[1]) && isfinite(most[2])) return st;
    SPS_TRY(SPS_NEW(ctx, m * d, &x));
    SPS_TRY(sps_block_get(coords, 0, (int)d, x, d, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t e = 0; e < m * d; e++)
        SPS_REQUIRE(ctx, isfinite(x[e]), SPS_EINVAL, "coords: coordinate %lld "
                    "of node %lld is not finite", (long long)(e % d + 1),
                    (long long)(e / d + 1));
fail:
    spsi_free(ctx, x);
    return st;
}

sps_status spsi_coords_check(const sps_operator *op, const sps_options *o)
{
    const sps_block *c = o->coords;
    sps_status st = SPS_OK;

    if (!c) return st;
    SPS_REQUIRE(op->ctx, c->k <= 3 && (op->n == c->n ||
                (c->n > 0 && op->n > 0 && op->n % c->n == 0)), SPS_ESHAPE,
                "coords has %lld nodes with %d coordinates; at most 3 are "
                "possible, and the %lld unknowns must be a multiple of the "
                "nodes", (long long)c->n, c->k, (long long)op->n);
    SPS_TRY(check_finite(c));
fail:
    return st;
}

/* Computes Morton's order of the nodes from the caller's coordinates; a node
 * has op->n / m unknowns. */
static sps_status order_morton(const sps_operator *op, const sps_options *o,
                               int32_t *order)
{
    const sps_block *coords = o->coords;
    sps_context *ctx = op->ctx;
    double *x = NULL;
    sps_status st = SPS_OK;
    int64_t m;
    int d;

    SPS_REQUIRE(ctx, coords && coords->ctx == ctx, SPS_EINVAL,
                "reorder morton needs the coordinates of the nodes: set "
                "coords, a block of the same context");
    SPS_TRY(spsi_coords_check(op, o));
    m = coords->n;
    d = coords->k;
    SPS_TRY(SPS_NEW(ctx, m * d, &x));
    SPS_TRY(sps_block_get(coords, 0, d, x, d, SPS_ROW_MAJOR, SPS_HOST));
    SPS_TRY(spsi_order_morton(ctx, x, m, d, (int)(op->n / m), order));
fail:
    spsi_free(ctx, x);
    return st;
}

sps_status spsi_operator_reorder(sps_operator *op, const sps_options *o)
{
    const bool automatic = !strcmp(o->reorder, "auto");
    const bool morton = !strcmp(o->reorder, "morton");
    sps_context *ctx = op->ctx;
    sps_features after;
    sps_status st = SPS_OK;
    int32_t *order = NULL;
    double gain;

    /* metis divides rows among processes: here is one. */
    if (!strcmp(o->reorder, "none") || !strcmp(o->reorder, "metis") ||
        op->n == 0 ||
        (automatic && (op->n != op->ncol || !worth_a_try(ctx, &op->f))))
        return SPS_OK;
    if (op->n != op->ncol) {
        spsi_note(ctx, "reorder: the original order is kept, since the matrix "
                  "is not square");
        return SPS_OK;
    }
    SPS_TRY(spsi_operator_fetch(op));
    SPS_TRY(SPS_NEW(ctx, 1, &op->reordered));
    SPS_TRY(SPS_NEW(ctx, op->n, &order));
    SPS_TRY(morton ? order_morton(op, o, order)
                   : order_rcm(op, order));
    SPS_TRY(permute(ctx, op->A, &op->f, order, op->reordered));
    SPS_TRY(spsi_features_measure(ctx, op->reordered->A, &after));
    gain = predicted_gain(&op->f, &after, op->width);
    if (automatic && gain < GAIN) {
        note_kept(op, &after, gain);
        spsi_operator_reorder_drop(op);
    } else {
        SPS_TRY(make_inner(op, o, order));
        if (morton) op->reordered->unknowns = (int)(op->n / o->coords->n);
        SPS_TRY(note_reordered(op, morton ? "Morton" : "RCM", &after, gain));
    }
fail:
    spsi_free(ctx, order);
    return st;
}

sps_status spsi_operator_reorder_values(sps_operator *op)
{
    sps_reordering *r = op->reordered;
    sps_status st = SPS_OK;

    if (!r) return SPS_OK;
    SPS_TRY(spsi_operator_fetch(op));
    take_values(op->A, r->entry, r->val);
    SPS_TRY(sps_operator_set_values(r->inner, r->val, SPS_HOST));
fail:
    return st;
}

void spsi_operator_reorder_drop(sps_operator *op)
{
    sps_reordering *r = op->reordered;

    if (!r) return;
    sps_operator_destroy(&r->inner);
    sps_operator_destroy(&r->forth);
    sps_operator_destroy(&r->back);
    sps_csr_destroy(op->ctx, &r->A);
    sps_csr_destroy(op->ctx, &r->P);
    sps_csr_destroy(op->ctx, &r->T);
    spsi_free(op->ctx, r->entry);
    spsi_free(op->ctx, r->val);
    spsi_moves_destroy(op->ctx, &r->moves);
    spsi_free(op->ctx, r);
    op->reordered = NULL;
}
