/* SPDX-License-Identifier: BSD-3-Clause */
/* incomplete.c - factors in the pattern of the matrix, for ilu0 and ic0.
 *
 * If a pivot vanishes (or, for ic0, is not positive), A + alpha diag(s) is
 * factored instead, where s_i is |a_ii|, or the largest magnitude in its row if
 * that is 0, with the sign of a_ii.  alpha is 0 at first, then 1e-3, and
 * doubles until it suffices (Manteuffel, Math. Comp. 34, 1980).  For a large
 * enough alpha every row is diagonally dominant, so this terminates.  A note
 * reports the shift.
 *
 * The factors may be stored in single precision (option precision), rounded
 * after the factorisation; sums are in double precision.  Those of ic0 are then
 * G = L D^(1/2) and G', with the same rounded values, so that M is as symmetric
 * as in double precision.
 *
 * For k columns one application reads 12 bytes for each entry of L and of U (8
 * in single precision) and 16 k + 8 bytes for each row of each triangle, in
 * addition to the rows of the block to which the entries refer. */
#include "solvers/precond/incomplete.h"

#include <math.h>
#include <string.h>

#include "halo/trade.h"

#define FIRST_SHIFT 1e-3
#define LAST_SHIFT 1e6

/* ---------------------------------------------------------------- factors */

sps_status spsi_factors_apply(const struct factors *f, const sps_block *R,
                              sps_block *Z)
{
    sps_status st;

    spsi_block_narrow(f->W, R->k);
    SPS_TRY(spsi_triangle_solve(f->L, R, f->W));
    SPS_TRY(spsi_triangle_solve(f->U, f->W, Z));
fail:
    return st;
}

void spsi_factors_clear(struct factors *f)
{
    spsi_triangle_destroy(&f->L);
    spsi_triangle_destroy(&f->U);
    sps_block_destroy(&f->W);
}

/* ---------------------------------------------------------------- pattern */

/* Returns the number of rows without a stored diagonal entry. */
static int64_t count_absent(const sps_csr *A)
{
    int64_t absent = 0;

    for (int64_t i = 0; i < A->nrow; i++) {
        bool stored = false;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            stored |= A->col[p] == i;
        absent += !stored;
    }
    return absent;
}

/* Sets m->A, with the present values. */
static sps_status take_matrix(struct incomplete *m)
{
    const sps_operator *A = m->super.A;
    sps_status st = SPS_OK;

    m->A = A->A;
    if (!A->ranks) return SPS_OK;
    spsi_near_clear(A->ctx, &m->near);
    SPS_TRY(spsi_near_rows_of(A, 1, &m->near));
    m->A = m->near.A;
fail:
    return st;
}

/* Removes all but the own rows from the levels. */
static void keep_own(const sps_halo *h, sps_levels *levels)
{
    int64_t kept = 0, begin = 0;

    for (int64_t v = 0; v < levels->count; v++) {
        const int64_t end = levels->start[v + 1];

        for (; begin < end; begin++) {
            const int32_t row = levels->row[begin];

            if (row >= h->low && row < h->low + h->n) levels->row[kept++] = row;
        }
        levels->start[v + 1] = kept;
    }
}

/* Makes F, the pattern of A with its complete diagonal, sorted. */
static sps_status make_pattern(struct incomplete *m)
{
    const sps_csr *A = m->A;
    sps_context *ctx = m->super.ctx;
    sps_status st;
    int64_t q = 0;

    SPS_TRY(spsi_own_csr(&m->super.own, &m->F));
    SPS_TRY(sps_csr_create(ctx, A->nrow, A->nrow, A->nnz + count_absent(A),
                           SPS_F64, &m->F));
    SPS_TRY(SPS_OWN(&m->super.own, A->nrow, &m->diagonal));
    for (int64_t i = 0; i < A->nrow; i++) {
        int64_t p = A->rowptr[i];

        while (p < A->rowptr[i + 1] && A->col[p] < i)
            m->F->col[q++] = A->col[p++];
        m->diagonal[i] = q;
        m->F->col[q++] = (int32_t)i;
        if (p < A->rowptr[i + 1] && A->col[p] == i) p++;
        while (p < A->rowptr[i + 1]) m->F->col[q++] = A->col[p++];
        m->F->rowptr[i + 1] = q;
    }
    SPS_TRY(spsi_levels_find(ctx, m->F, false, &m->levels));
    if (!m->near.halo) return SPS_OK;
    keep_own(m->near.halo, &m->levels);
    SPS_TRY(SPS_OWN(&m->super.own, q, &m->global));
    for (int64_t p = 0; p < q; p++)
        m->global[p] = spsi_near_global(m->near.halo, m->F->col[p]);
fail:
    return st;
}

/* ----------------------------------------------------------------- values */

/* F = A + alpha diag(s). */
static void load(struct incomplete *m, double alpha)
{
    const sps_csr *A = m->A, *F = m->F;
    double *f = F->val;

    for (int64_t i = 0; i < F->nrow; i++) {
        double *d = f + m->diagonal[i], s, largest = 0;
        int64_t p = A->rowptr[i];

        for (int64_t q = F->rowptr[i]; q < F->rowptr[i + 1]; q++) {
            const bool stored = p < A->rowptr[i + 1] && A->col[p] == F->col[q];

            f[q] = stored ? spsi_csr_value(A, p++) : 0;
            largest = fmax(largest, fabs(f[q]));
        }
        if (largest == 0) largest = 1;
        s = *d != 0 ? fabs(*d) : largest;
        *d += alpha * (*d < 0 && !m->symmetric ? -s : s);
    }
}

/* Receives the rows of F that have been factored by other processes. */
static sps_status receive_rows(struct incomplete *m)
{
    const sps_halo *h = m->near.halo;
    const sps_csr *F = m->F;
    sps_csr own = *F;
    spsi_row_list in = { 0 };
    int64_t p = 0;
    sps_status st;

    own.nrow = h->n;
    own.rowptr = F->rowptr + h->low;
    own.global = m->global;
    SPS_TRY(spsi_trade_rows(h, &own, 0, &in));
    for (int64_t g = 0; g < h->ghosts; g++) {
        int64_t q = F->rowptr[g < h->low ? g : g + h->n];

        for (const int64_t end = p + in.length[g]; p < end; p++) {
            const int64_t j = spsi_near_number(h, in.col[p]);

            if (j < 0) continue;
            while (F->col[q] != j) q++;
            ((double *)F->val)[q] = in.val[p];
        }
    }
fail:
    spsi_row_list_clear(h->ctx, &in);
    return st;
}

/* Factors the own rows in the turn of this process; *bad: the lowest row of all
 * without a usable pivot, or -1. */
static sps_status factor_in_turn(struct incomplete *m, int64_t *bad)
{
    const sps_halo *h = m->near.halo;
    double first = -(double)h->whole;
    sps_status st = SPS_OK;

    *bad = -1;
    for (int r = 0; r < spsi_comm_size(h->ctx); r++) {
        if (r == spsi_comm_rank(h->ctx))
            SPS_TRY(spsi_matrix_ilu0(h->ctx, m->F, m->diagonal, &m->levels,
                                     m->symmetric, bad));
        SPS_TRY(receive_rows(m));
        SPS_TRY(spsi_check_deadline(h->ctx, m->super.type->name));
    }
    if (*bad >= 0) first = -(double)spsi_near_global(h, *bad);
    SPS_TRY(spsi_comm_largest(h->ctx, &first));
    *bad = -first < (double)h->whole ? -(int64_t)first : -1;
fail:
    return st;
}

static sps_status factor(struct incomplete *m)
{
    sps_precond *M = &m->super;
    sps_status st = SPS_OK;
    int64_t bad = -1, first = -1;
    double alpha = 0;

    for (;; alpha = alpha > 0 ? 2 * alpha : FIRST_SHIFT) {
        load(m, alpha);
        SPS_TRY(m->near.halo
                    ? factor_in_turn(m, &bad)
                    : spsi_matrix_ilu0(M->ctx, m->F, m->diagonal, &m->levels,
                                       m->symmetric, &bad));
        if (bad < 0) break;
        if (first < 0) first = bad;
        SPS_REQUIRE(M->ctx, alpha < LAST_SHIFT, SPS_EUNFIT,
                    "%s: row %lld has no usable pivot for any shift of the "
                    "diagonal: the matrix has entries that are not finite or "
                    "out of range", M->type->name,
                    (long long)bad + 1);
    }
    if (alpha > 0)
        spsi_note(M->ctx, "%s: no usable pivot in row %lld; the diagonal was "
                  "shifted by %.3g of itself for the factors%s",
                  M->type->name, (long long)first + 1, alpha, m->symmetric ?
                  "" : "; ilut permutes rows to avoid zeros on the diagonal");
fail:
    return st;
}

static bool left_alone(const char *word)
{
    return !strcmp(word, "auto") || !strcmp(word, "none");
}

void spsi_incomplete_unordered(sps_precond *M, const sps_options *opt)
{
    if (!left_alone(opt->scale) || !left_alone(opt->order))
        spsi_note(M->ctx, "%s: the options scale %s and order %s apply to ilut "
                  "only and have no effect; option reorder permutes the whole "
                  "system",
                  M->type->name, opt->scale, opt->order);
}

/* Stores value `p` of S.  Returns false if it is outside the range of single
 * precision (with a margin of some powers of ten). */
static bool put(sps_csr *S, int64_t p, double value)
{
    const double size = fabs(value);

    if (S->dtype == SPS_F64) {
        ((double *)S->val)[p] = value;
        return true;
    }
    ((float *)S->val)[p] = (float)value;
    return value == 0 || (size >= 1e-30 && size <= 1e30);
}

/* Splits F by rows of L: l receives the strict part of unit L, u that of U = D
 * L' and 1 / d.  In single precision both receive G = L D^(1/2) and
 * d^(-1/2). */
static bool split_symmetric(const struct incomplete *m, sps_triangle_parts *l,
                            sps_triangle_parts *u)
{
    const sps_csr *F = m->F;
    const double *f = F->val;
    const bool single = l->S->dtype == SPS_F32;
    bool good = true;
    int64_t q = 0;

    for (int64_t i = 0; i < F->nrow; i++) m->cursor[i] = u->S->rowptr[i];
    for (int64_t i = 0; i < F->nrow; i++) {
        const double d = f[m->diagonal[i]];

        u->inverse[i] = single ? 1 / sqrt(d) : 1 / d;
        if (single) l->inverse[i] = u->inverse[i];
        for (int64_t p = F->rowptr[i]; p < m->diagonal[i]; p++) {
            const double dj = f[m->diagonal[F->col[p]]];
            const double g = f[p] * (single ? sqrt(dj) : 1);

            good &= put(l->S, q++, g);
            good &= put(u->S, m->cursor[F->col[p]]++, single ? g : g * dj);
        }
    }
    return good;
}

/* Sets the values of the triangles from F: L strict, U strict and 1 / pivot.
 * Returns false if they are stored in single precision and exceed its range. */
static bool split(const struct incomplete *m, sps_triangle_parts *l,
                  sps_triangle_parts *u)
{
    const sps_csr *F = m->F;
    const double *f = F->val;
    bool good = true;
    int64_t ql = 0, qu = 0;

    if (m->symmetric) return split_symmetric(m, l, u);
    for (int64_t i = 0; i < F->nrow; i++) {
        const int64_t d = m->diagonal[i];

        for (int64_t p = F->rowptr[i]; p < d; p++)
            good &= put(l->S, ql++, f[p]);
        u->inverse[i] = 1 / f[d];
        for (int64_t p = d + 1; p < F->rowptr[i + 1]; p++)
            good &= put(u->S, qu++, f[p]);
    }
    return good;
}

/* ------------------------------------------------ patterns of the triangles */

static sps_status make_lower(const struct incomplete *m, sps_dtype dtype,
                             sps_csr **L_p)
{
    const sps_csr *F = m->F;
    sps_status st;
    int64_t q = 0;

    for (int64_t i = 0; i < F->nrow; i++) q += m->diagonal[i] - F->rowptr[i];
    SPS_TRY(sps_csr_create(m->super.ctx, F->nrow, F->nrow, q, dtype, L_p));
    q = 0;
    for (int64_t i = 0; i < F->nrow; i++) {
        for (int64_t p = F->rowptr[i]; p < m->diagonal[i]; p++)
            (*L_p)->col[q++] = F->col[p];
        (*L_p)->rowptr[i + 1] = q;
    }
fail:
    return st;
}

static sps_status make_upper(const struct incomplete *m, const sps_csr *L,
                             sps_csr **U_p)
{
    const sps_csr *F = m->F;
    sps_status st;
    int64_t q = 0;

    if (m->symmetric) return spsi_csr_transpose(m->super.ctx, L, U_p);
    SPS_TRY(sps_csr_create(m->super.ctx, F->nrow, F->nrow,
                           F->nnz - L->nnz - F->nrow, L->dtype, U_p));
    for (int64_t i = 0; i < F->nrow; i++) {
        for (int64_t p = m->diagonal[i] + 1; p < F->rowptr[i + 1]; p++)
            (*U_p)->col[q++] = F->col[p];
        (*U_p)->rowptr[i + 1] = q;
    }
fail:
    return st;
}

static void drop(sps_context *ctx, sps_triangle_parts *part)
{
    sps_csr_destroy(ctx, &part->S);
    spsi_free(ctx, part->inverse);
    *part = (sps_triangle_parts){ .upper = part->upper };
}

/* Allocates and fills the parts of both triangles, with values of dtype; *good
 * is false if values exceed the range of single precision. */
static sps_status make_parts(struct incomplete *m, sps_dtype dtype,
                             sps_triangle_parts *l, sps_triangle_parts *u,
                             bool *good)
{
    sps_context *ctx = m->super.ctx;
    sps_status st;

    SPS_TRY(make_lower(m, dtype, &l->S));
    SPS_TRY(make_upper(m, l->S, &u->S));
    SPS_TRY(SPS_NEW(ctx, m->F->nrow, &u->inverse));
    if (m->symmetric && dtype == SPS_F32)
        SPS_TRY(SPS_NEW(ctx, m->F->nrow, &l->inverse));
    *good = split(m, l, u);
fail:
    return st;
}

static sps_status make_triangles(struct incomplete *m)
{
    sps_context *ctx = m->super.ctx;
    sps_status st;
    bool good = false;
    sps_triangle_parts l = { 0 }, u = { .upper = true };

    if (!m->cursor)
        SPS_TRY(SPS_OWN(&m->super.own, m->F->nrow, &m->cursor));
    if (m->super.single) {
        SPS_TRY(make_parts(m, SPS_F32, &l, &u, &good));
        if (!good) {
            spsi_precond_note_double(&m->super);
            drop(ctx, &l);
            drop(ctx, &u);
        }
    }
    if (!good) SPS_TRY(make_parts(m, SPS_F64, &l, &u, &good));
    st = spsi_triangle_create(ctx, &l, &m->f.L);
    l = (sps_triangle_parts){ 0 };
    if (st != SPS_OK) goto fail;
    return spsi_triangle_create(ctx, &u, &m->f.U);

fail:
    drop(ctx, &l);
    drop(ctx, &u);
    return st;
}

/* ---------------------------------------------------- creation, destruction */

sps_status spsi_incomplete_open(sps_precond *M, bool symmetric)
{
    struct incomplete *m = (struct incomplete *)M;
    sps_status st;

    m->symmetric = symmetric;
    SPS_TRY(take_matrix(m));
    SPS_TRY(make_pattern(m));
    SPS_TRY(spsi_check_deadline(M->ctx, M->type->name));
    SPS_TRY(factor(m));
    SPS_TRY(spsi_check_deadline(M->ctx, M->type->name));
fail:
    return st;
}

sps_status spsi_incomplete_factor(sps_precond *M)
{
    struct incomplete *m = (struct incomplete *)M;
    sps_status st;

    SPS_TRY(take_matrix(m));
    SPS_TRY(factor(m));
fail:
    return st;
}

sps_status spsi_incomplete_build(sps_precond *M, bool symmetric)
{
    struct incomplete *m = (struct incomplete *)M;
    sps_status st;

    SPS_TRY(spsi_incomplete_open(M, symmetric));
    SPS_TRY(make_triangles(m));
    SPS_TRY(sps_block_create(M->ctx, M->n, M->width, &m->f.W));
fail:
    return st;
}

sps_status spsi_incomplete_update(sps_precond *M)
{
    struct incomplete *m = (struct incomplete *)M;
    sps_status st;

    SPS_TRY(spsi_incomplete_factor(M));
    if (!m->f.L || !m->f.U || !split(m, &m->f.L->part, &m->f.U->part)) {
        spsi_triangle_destroy(&m->f.L);
        spsi_triangle_destroy(&m->f.U);
        return make_triangles(m);
    }
    SPS_TRY(spsi_triangle_refresh(m->f.L));
    SPS_TRY(spsi_triangle_refresh(m->f.U));
fail:
    return st;
}

sps_status spsi_incomplete_apply(const sps_precond *M, const sps_block *R,
                                 sps_block *Z)
{
    return spsi_factors_apply(&((const struct incomplete *)M)->f, R, Z);
}

void spsi_incomplete_destroy(sps_precond *M)
{
    struct incomplete *m = (struct incomplete *)M;

    spsi_factors_clear(&m->f);
    spsi_levels_clear(M->ctx, &m->levels);
    spsi_near_clear(M->ctx, &m->near);
}
