/* SPDX-License-Identifier: BSD-3-Clause */
/* cycle_parts.c - what the cycle (cycle.c) is made of: the roots of the
 * smoothers' polynomials, the operators D^-1 A, P and D_c^-1 P'D of all levels
 * with their values, in single precision if these fit, and blocks. */
#include "solvers/amg/amg.h"

#include <float.h>
#include <math.h>

#include "core/options.h"
#include "core/team.h"

#define SPREAD 1e20          /* largest ratio of diagonal entries in single
                                precision */
#define TINY 1e-30
enum { MATRICES = 4 * AMG_LEVELS + 1 };

/* Roots of 1 - x p_d(x) for L = 1, the largest first; row d of the array is for
 * degree d.  Computed from the weights of Lottes' table 1. */
static const double roots[AMG_DEGREE + 1][AMG_DEGREE] = {
    { 0 },
    { 0.666666666666667 },
    { 0.894427190999916, 0.276393202250022 },
    { 0.947904916398314, 0.591009048506100, 0.145967180593476 },
    { 0.968908795874241, 0.742227198968555, 0.394930843634698,
      0.0895235543024204 },
};

/* Sets the roots of the polynomial on a coarsest level without a dense inverse:
 * the largest and the smallest in turn, so that intermediate results stay
 * small. */
static void set_last_roots(amg_smoother *s)
{
    enum { D = AMG_LAST_DEGREE };
    const double lower = 1.0 / (2 * D * D);

    s->degree = D;
    for (int i = 0; i < D; i++) {
        const int k = i % 2 ? D - 1 - i / 2 : i / 2;

        s->root[i] = s->upper * (0.5 * (1 + lower) + 0.5 * (1 - lower) *
                     cos(acos(-1.0) * (2 * k + 1) / (2 * D)));
    }
}

static void set_roots(amg_level *l, bool last)
{
    amg_smoother *s = &l->smoother;

    if (last) set_last_roots(s);
    for (int i = 0; i < s->degree && l->nonsymmetric; i++)
        s->root[i] = 0.75 * s->upper;
    if (last || l->nonsymmetric) return;
    for (int i = 0; i < s->degree; i++)
        s->root[i] = s->upper * roots[s->degree][i];
}

void spsi_amg_set_roots(amg_level *l) { set_roots(l, false); }

/* Returns whether level i is solved by the dense inverse. */
static bool is_dense(const amg *m, int i)
{
    return i + 1 == m->levels && m->inverse;
}

/* ------------------------------------------------- operators in their types */

/* Factors of a matrix of the hierarchy as the cycle applies it: row i is
 * multiplied by the D^-1 of level `row`, column j divided by that of level
 * `col`; NULL means 1. */
typedef struct entry_factors {
    const amg_level *row, *col;
} entry_factors;

static double inverse_of(const amg_level *l, int64_t i)
{
    return l && l->scale[i] > 0 ? l->scale[i] * l->scale[i] : 1;
}

static void scale_here(const sps_csr *T, entry_factors f, double *val)
{
    const double *from = T->val;

    for (int64_t i = 0; i < T->nrow; i++) {
        const double by = inverse_of(f.row, i);

        for (int64_t p = T->rowptr[i]; p < T->rowptr[i + 1]; p++)
            val[p] = by * from[p] / inverse_of(f.col, T->col[p]);
    }
}

enum { PARTS = 256 };

typedef struct clearing {
    double *val, largest[PARTS], least;
    int64_t count;
} clearing;

static int64_t part_at(const clearing *c, int64_t i)
{
    return c->count / PARTS * i + (i < c->count % PARTS ? i : c->count % PARTS);
}

static void find_largest(void *data, int64_t first, int64_t last)
{
    clearing *c = data;

    for (int64_t i = first; i < last; i++) {
        c->largest[i] = 0;
        for (int64_t p = part_at(c, i); p < part_at(c, i + 1); p++)
            c->largest[i] = fmax(c->largest[i], fabs(c->val[p]));
    }
}

static void clear_parts(void *data, int64_t first, int64_t last)
{
    clearing *c = data;

    for (int64_t p = part_at(c, first); p < part_at(c, last); p++)
        if (fabs(c->val[p]) < c->least) c->val[p] = 0;
}

/* (In device memory the conversion rounds such values to zero.) */
void spsi_amg_clear_tiny(sps_context *ctx, double *val, int64_t count)
{
    clearing c = { .val = val, .count = count };

    spsi_team_run(ctx, PARTS, count, find_largest, &c);
    for (int i = 0; i < PARTS; i++) c.least = fmax(c.least, c.largest[i]);
    c.least = fmin(TINY, 1e-20 * c.least);
    spsi_team_run(ctx, PARTS, count, clear_parts, &c);
}

/* Returns the type in which a scaled copy of T stores its values: floats if the
 * levels are in floats and T lies in device memory, else doubles. */
static sps_dtype type_of(const amg *m, const sps_csr *T)
{
    return m->floats && T->place != SPS_HOST ? SPS_F32 : SPS_F64;
}

static size_t bytes_of(const sps_csr *S)
{
    return spsi_dtype_size(S->dtype) * (size_t)(S->nnz + 1);
}

/* Makes *S a matrix that shares the pattern of T and has memory of its own for
 * values, in the place of T; the values are not set yet. */
static sps_status open_scaled(const amg *m, const sps_csr *T, sps_csr *S)
{
    sps_context *ctx = m->super.ctx;

    *S = *T;
    S->val = NULL;
    S->struct_size = sizeof *S;
    S->dtype = type_of(m, T);
    S->props &= ~(unsigned)(SPS_SYMMETRIC | SPS_SPD);
    return T->place == SPS_HOST ? spsi_new(ctx, bytes_of(S), &S->val)
                                : ctx->backend->alloc(ctx, bytes_of(S),
                                                      &S->val);
}

/* Computes the values of *S, those of T with these factors, in device
 * memory. */
static sps_status scaled_there(amg *m, const sps_csr *T, entry_factors f,
                               sps_csr *S)
{
    return m->device->cycle.weigh(m->super.ctx, T,
                                  f.row ? f.row->parts.inverse : NULL,
                                  f.col ? f.col->parts.inverse : NULL,
                                  S->dtype, S->val, m->largest, m->measured++);
}

sps_status spsi_amg_open_largest(amg *m)
{
    sps_status st = SPS_OK;

    m->measured = 0;
    if (!m->device || !m->floats) return SPS_OK;
    if (!m->largest)
        SPS_TRY(sps_block_create(m->super.ctx, MATRICES, 1, &m->largest));
    SPS_TRY(spsi_fill(m->largest, 0));
fail:
    return st;
}

sps_status spsi_amg_check_largest(const amg *m)
{
    sps_context *ctx = m->super.ctx;
    double largest[MATRICES];
    sps_status st;

    if (!m->device || !m->floats) return SPS_OK;
    SPS_TRY(ctx->backend->download(ctx, largest, m->largest->data,
                                   sizeof largest));
    for (int t = 0; t < m->measured; t++)
        SPS_TRY(spsi_operator_fits_single(ctx, largest[t]));
fail:
    return st;
}

/* Sets *S to T with these factors: it shares the pattern of T, and its values
 * are in new memory in the place of T. */
static sps_status scaled(amg *m, const sps_csr *T, entry_factors f,
                         sps_csr *S)
{
    sps_status st;

    SPS_TRY(open_scaled(m, T, S));
    if (T->place != SPS_HOST) return scaled_there(m, T, f, S);
    scale_here(T, f, S->val);
    if (m->floats) spsi_amg_clear_tiny(m->super.ctx, S->val, T->nnz);
fail:
    return st;
}

static void drop_scaled(const amg *m, sps_csr *S)
{
    sps_context *ctx = m->super.ctx;

    if (S->place == SPS_HOST) spsi_free(ctx, S->val);
    else if (S->val)
        ctx->backend->release(ctx, S->val, bytes_of(S));
}

/* Makes *op_p, the operator of S; an existing operator receives the values.  A
 * new one may take them over: S->val is NULL then. */
static sps_status set_values(const amg *m, sps_csr *S,
                             sps_operator **op_p)
{
    sps_status st = SPS_OK;

    if (!*op_p)
        SPS_TRY(spsi_operator_valued(m->super.ctx, S, m->super.width,
                                     m->floats ? SPS_F32 : SPS_F64, op_p));
    else if (m->floats)
        SPS_TRY(spsi_operator_single_follow(S, *op_p));
    else
        SPS_TRY(sps_operator_set_values(*op_p, S->val, S->place));
fail:
    return st;
}

/* Makes *op_p, the operator of T, a matrix of the hierarchy, with these
 * factors; an existing operator receives the values. */
static sps_status set_operator(amg *m, const sps_csr *T,
                               entry_factors f, sps_operator **op_p)
{
    sps_csr S;
    sps_status st;

    SPS_TRY(scaled(m, T, f, &S));
    SPS_TRY(set_values(m, &S, op_p));
fail:
    drop_scaled(m, &S);
    return st;
}

/* Makes the operator of the finest matrix, which shares the caller's
 * pattern. */
static sps_status set_finest(amg *m, amg_level *l)
{
    sps_options o;
    sps_csr S;
    sps_status st;

    if (!m->floats) return set_operator(m, l->A, (entry_factors){ l, NULL },
                                        &l->parts.own_op);
    SPS_TRY(spsi_options_take(m->super.ctx, NULL, &o));
    SPS_TRY(scaled(m, l->A, (entry_factors){ l, NULL }, &S));
    SPS_TRY(spsi_operator_single_like(m->super.A, &S, &o, &l->parts.own_op));
fail:
    drop_scaled(m, &S);
    return st;
}

static sps_status new_block(const amg *m, int64_t n, sps_block **X_p)
{
    return spsi_block_create(m->super.ctx, n, m->super.width,
                             m->floats ? SPS_F32 : SPS_F64, X_p);
}

/* Sets m->unit, the exponent to which columns are scaled; returns SPS_EUNFIT if
 * the diagonal entries are too far apart. */
static sps_status set_unit(amg *m)
{
    double most[2];
    sps_status st;

    SPS_TRY(spsi_amg_spread(m, m->level, most));
    m->unit = most[0] > 0 ? ilogb(most[1] / most[0]) : 0;
    if (most[0] * most[1] > sqrt(SPREAD)) st = SPS_EUNFIT;
fail:
    return st;
}

static sps_status set_matrix(amg *m, int i)
{
    amg_level *l = &m->level[i];

    return i > 0 ? set_operator(m, l->A, (entry_factors){ l, NULL },
                                &l->parts.own_op)
                 : set_finest(m, l);
}

static sps_status open_smoother(amg *m, int i)
{
    amg_level *l = &m->level[i];
    sps_status st;

    SPS_TRY(sps_block_create(m->super.ctx, l->n, 1, &l->parts.inverse));
    SPS_TRY(spsi_amg_inverse(m, l, l->parts.inverse));
    if (l->eliminates) {
        SPS_TRY(sps_block_create(m->super.ctx, l->n, 1, &l->parts.mask));
        return spsi_amg_mask(m->super.ctx, l, l->parts.mask);
    }
    SPS_TRY(set_matrix(m, i));
    SPS_TRY(new_block(m, l->n, &l->parts.t));
    set_roots(l, i + 1 == m->levels);
fail:
    return st;
}

/* Makes the operator `ahead`, if the pattern of A P has all entries of P. */
static sps_status set_ahead(amg *m, amg_level *l)
{
    bool within;
    sps_csr S;
    sps_status st;

    SPS_TRY(open_scaled(m, l->AP, &S));
    SPS_TRY(spsi_amg_ahead(m, l, &S, &within));
    if (!within) goto fail;
    if (m->floats && S.place == SPS_HOST)
        spsi_amg_clear_tiny(m->super.ctx, S.val, S.nnz);
    SPS_TRY(set_values(m, &S, &l->parts.ahead));
fail:
    drop_scaled(m, &S);
    return st;
}

/* Sets the operators between level i and the next. */
static sps_status set_transfers(amg *m, int i)
{
    amg_level *l = &m->level[i];
    const entry_factors down = { is_dense(m, i + 1) ? NULL : l + 1, l };
    sps_status st = SPS_OK;

    if (l->AP) SPS_TRY(set_ahead(m, l));
    if (!l->parts.ahead)
        SPS_TRY(set_operator(m, l->P, (entry_factors){ NULL, NULL },
                             &l->parts.prolong));
    SPS_TRY(set_operator(m, l->R, down, &l->parts.restrict_op));
fail:
    return st;
}

static sps_status open_level(amg *m, int i)
{
    amg_level *l = &m->level[i];
    sps_status st = SPS_OK;

    if (!is_dense(m, i)) SPS_TRY(open_smoother(m, i));
    SPS_TRY(new_block(m, l->n, &l->parts.r));
    if (i > 0 || m->floats) SPS_TRY(new_block(m, l->n, &l->parts.x));
    if (i > 0) SPS_TRY(set_transfers(m, i - 1));
fail:
    return st;
}

static sps_status set_inverse(amg *m)
{
    return m->inverse ? set_operator(m, m->inverse,
                                     (entry_factors){ NULL, NULL },
                                     &m->inverse_op)
                      : SPS_OK;
}

static sps_status open_levels(amg *m)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_amg_open_largest(m));
    for (int i = 0; i < m->levels; i++) {
        SPS_TRY(spsi_check_deadline(m->super.ctx, "amg"));
        SPS_TRY(open_level(m, i));
    }
    SPS_TRY(set_inverse(m));
    SPS_TRY(spsi_amg_check_largest(m));
fail:
    return st;
}

/* Makes the operators and blocks of all levels again, in double precision. */
static sps_status open_in_doubles(amg *m)
{
    spsi_amg_close(m);
    m->floats = false;
    m->super.roundoff = 0;
    m->super.gives_floats = false;
    return open_levels(m);
}

/* Called after operators were made or changed, with status st: changes to
 * double precision if single precision does not represent the values or would
 * lose too much accuracy. */
static sps_status settle_precision(amg *m, sps_status st)
{
    bool fits = false;

    if (!m->floats) return st;
    if (st == SPS_OK) SPS_TRY(spsi_amg_fits_floats(m, &fits));
    if (st == SPS_EUNFIT) spsi_precond_note_double(&m->super);
    if (st == SPS_EUNFIT || (st == SPS_OK && !fits)) st = open_in_doubles(m);
fail:
    return st;
}

sps_status spsi_amg_open(amg *m)
{
    sps_status st;

    SPS_TRY(spsi_reserve(m->super.ctx, m->super.n, m->super.width));
    st = m->floats ? set_unit(m) : SPS_OK;
    if (st == SPS_OK) st = open_levels(m);
    st = settle_precision(m, st);
    m->super.roundoff = m->floats ? 0.5 * FLT_EPSILON : 0;
    m->super.gives_floats = m->floats;
fail:
    return st;
}

static sps_status refresh(amg *m)
{
    sps_status st;

    SPS_TRY(spsi_amg_open_largest(m));
    for (int i = 0; i < m->levels; i++) {
        amg_level *l = &m->level[i];

        if (!is_dense(m, i)) {
            SPS_TRY(spsi_amg_inverse(m, l, l->parts.inverse));
            if (!l->eliminates) SPS_TRY(set_matrix(m, i));
            set_roots(l, i + 1 == m->levels);
        }
        if (i > 0) SPS_TRY(set_transfers(m, i - 1));
    }
    SPS_TRY(set_inverse(m));
    SPS_TRY(spsi_amg_check_largest(m));
fail:
    return st;
}

sps_status spsi_amg_refresh(amg *m)
{
    sps_status st = m->floats ? set_unit(m) : SPS_OK;

    if (st == SPS_OK) st = refresh(m);
    return settle_precision(m, st);
}

void spsi_amg_close(amg *m)
{
    for (int i = 0; i < m->levels; i++) {
        amg_level *l = &m->level[i];

        sps_operator_destroy(&l->parts.own_op);
        sps_operator_destroy(&l->parts.prolong);
        sps_operator_destroy(&l->parts.ahead);
        sps_operator_destroy(&l->parts.restrict_op);
        sps_block_destroy(&l->parts.inverse);
        sps_block_destroy(&l->parts.mask);
        sps_block_destroy(&l->parts.r);
        sps_block_destroy(&l->parts.x);
        sps_block_destroy(&l->parts.t);
    }
    sps_operator_destroy(&m->inverse_op);
    sps_block_destroy(&m->largest);
}
