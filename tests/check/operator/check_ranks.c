/* SPDX-License-Identifier: BSD-3-Clause */
/* check_ranks.c - matrices whose rows are spread over processes: products are
 * those of the whole matrix, in integers exactly; symmetry; new values. */
#include "tests/check/operator/ranks_fixture.h"

/* ----------------------------------------------------------------- products */

static sps_status twofold(const crew_member *m, const work *w,
                          const sps_operator *op, const sps_block *X,
                          sps_block *Y)
{
    sps_block *V = NULL, *L = NULL;
    double c[MOST];
    sps_status st = part(m, w, w->v, &V);

    for (int j = 0; j < w->k; j++) c[j] = w->alpha;
    if (!st) st = part(m, w, NULL, &L);
    if (!st)
        st = spsi_operator_twofold(op, &(sps_twofold_args){
            .c = c, .X = X, .W = Y, .V = V, .H = Y, .L = L }, NULL);
    if (!st) st = keep(m, w, L, w->low);
    sps_block_destroy(&V);
    sps_block_destroy(&L);
    return st;
}

/* Y = D (alpha A X + 2 V) + beta Y + 3 X, D the first column of V. */
static sps_status fused(const crew_member *m, const work *w,
                        const sps_operator *op, const sps_block *X,
                        sps_block *Y)
{
    const int64_t first = crew_first(w->A->nrow, m->all->size, m->rank);
    sps_block *V = NULL, *D = NULL, *room = NULL;
    sps_status st = part(m, w, w->v, &V);

    if (!st) st = part(m, w, NULL, &room);
    if (!st) st = sps_block_create(m->ctx, Y->n, 1, &D);
    if (!st)
        st = sps_block_set(D, 0, 1, w->v + first * w->k, w->k, SPS_ROW_MAJOR,
                           SPS_HOST);
    if (!st)
        st = spsi_operator_apply_fused(op, false, w->alpha, X, w->beta, Y,
                                       &(sps_epilogue){ D, V, 2, 3 }, room);
    sps_block_destroy(&V);
    sps_block_destroy(&D);
    sps_block_destroy(&room);
    return st;
}

static void multiply(crew_member *m)
{
    const work *w = m->data;
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_block *X = NULL, *Y = NULL;
    const int64_t at = crew_first(w->A->nrow, m->all->size, m->rank);

    m->st = crew_rows(m, w->A, &own);
    if (!m->st)
        m->st = w->single ? spsi_operator_single(m->ctx, own, WIDTH, SPS_F32,
                                                 NULL, &op)
                          : sps_operator_csr(m->ctx, own, WIDTH, NULL, &op);
    if (!m->st) m->st = part(m, w, w->x, &X);
    if (!m->st) m->st = part(m, w, w->y, &Y);
    if (!m->st && w->val)
        m->st = sps_operator_set_values(op, w->val + w->A->rowptr[at],
                                        SPS_HOST);
    if (m->st) return;
    if (w->aside && op->ranks) op->ranks->halo->aside = true;
    if (w->twofold) m->st = twofold(m, w, op, X, Y);
    else if (w->fused) m->st = fused(m, w, op, X, Y);
    else if (w->plain)
        m->st = spsi_operator_apply_plain(op, w->alpha, X, w->beta, Y);
    else m->st = sps_operator_apply(op, w->alpha, X, w->beta, Y);
    if (!m->st) m->st = keep(m, w, Y, w->result);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_operator_destroy(&op);
    sps_csr_destroy(m->ctx, &own);
}

/* All patterns of the zoo; with beta = 0 Y is NaN at first. */
static void compare_products(work w, int64_t n, int k)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, n, 3, ZOO_INTEGER,
                                w.floats ? SPS_F32 : SPS_F64);
        double *new = NULL;

        if (A->nrow == A->ncol && A->nrow >= CREW) {
            const size_t numbers = (size_t)(A->nrow * k);
            double *x = zoo_block(A->nrow, k, k, 4, ZOO_INTEGER);
            double *y = zoo_block(A->nrow, k, k, 5, ZOO_INTEGER);
            double *v = zoo_block(A->nrow, k, k, 6, ZOO_INTEGER);
            double *result = calloc(2 * numbers, sizeof *result);

            if (w.beta == 0)
                for (size_t i = 0; i < numbers; i++) y[i] = NAN;
            w.A = A;
            w.k = k;
            w.x = x;
            w.y = y;
            w.v = v;
            w.result = result;
            w.low = result + numbers;
            if (w.val) {
                new = zoo_block(A->nnz + 1, 1, 1, 7, ZOO_INTEGER);
                w.val = new;
            }
            for (int i = 0; i < SIZES; i++) {
                if (brief() && i != f % SIZES) continue;
                memset(result, 0, numbers * sizeof *result);
                all_went_well(crew_run(member, sizes[i], multiply, &w),
                              zoo_name(f), sizes[i]);
                expect(&w, new ? new : A->val);
            }
            free(x);
            free(y);
            free(v);
            free(result);
            free(new);
        }
        zoo_free(&A);
    }
}

START_TEST(products_are_those_of_the_whole)
{
    compare_products((work){ .alpha = 1, .beta = 0 }, 97, 3);
    compare_products((work){ .alpha = -2, .beta = 3 }, 160, 1);
    compare_products((work){ .alpha = 1, .beta = 1, .floats = true }, 53, 2);
    compare_products((work){ .alpha = 1, .beta = 1, .aside = true }, 150, 8);
    /* More columns than the operator's width, in slices. */
    compare_products((work){ .alpha = 2, .beta = -1 }, 41, WIDTH + 5);
}
END_TEST

START_TEST(products_of_checks_are_those_of_the_whole)
{
    compare_products((work){ .alpha = 3, .beta = 1, .plain = true }, 61, 2);
    compare_products((work){ .alpha = -1, .beta = 1, .twofold = true }, 61,
                     WIDTH + 1);
}
END_TEST

START_TEST(products_with_epilogues_are_those_of_the_whole)
{
    compare_products((work){ .alpha = 2, .beta = 0, .fused = true }, 57, 3);
    compare_products((work){ .alpha = -1, .beta = 2, .fused = true }, 45,
                     WIDTH + 2);
}
END_TEST

START_TEST(products_of_floats_are_those_of_the_whole)
{
    compare_products((work){ .alpha = 2, .beta = -1, .single = true }, 97, 16);
    compare_products((work){ .alpha = 1, .beta = 0, .single = true }, 61, 1);
    compare_products((work){ .alpha = 2, .beta = 0, .fused = true,
                             .single = true }, 57, 3);
    compare_products((work){ .alpha = 1, .beta = 0, .fused = true,
                             .single = true }, 43, 1);
}
END_TEST

/* ----------------------------------------------------- rectangular matrices */

/* Y = alpha A X + beta Y, with rows of X divided by columns of A. */
static void multiply_across(crew_member *m)
{
    const work *w = m->data;
    const int64_t first = crew_first(w->A->ncol, m->all->size, m->rank);
    const int64_t last = crew_first(w->A->ncol, m->all->size, m->rank + 1);
    sps_csr *own = NULL, rows;
    sps_operator *op = NULL;
    sps_block *X = NULL, *Y = NULL;

    m->st = crew_rows(m, w->A, &own);
    if (!m->st) m->st = spsi_comm_begin(m->ctx);
    if (!m->st) {
        rows = *own;
        rows.first = first;
        rows.ncol = rows.whole = w->A->ncol;
        m->st = spsi_comm_end(m->ctx, spsi_operator_across(
            m->ctx, &rows, last - first, WIDTH,
            w->single ? SPS_F32 : SPS_F64, &op));
    }
    if (!m->st) m->st = part_of(m, w, w->A->ncol, w->x, &X);
    if (!m->st) m->st = part(m, w, w->y, &Y);
    if (!m->st) m->st = sps_operator_apply(op, w->alpha, X, w->beta, Y);
    if (!m->st) m->st = keep(m, w, Y, w->result);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_operator_destroy(&op);
    sps_csr_destroy(m->ctx, &own);
}

static void compare_across(work w, int64_t n)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, n, 3, ZOO_INTEGER, SPS_F64);
        double *x = zoo_block(A->ncol, w.k, w.k, 4, ZOO_INTEGER);
        double *y = zoo_block(A->nrow, w.k, w.k, 5, ZOO_INTEGER);
        double *result = calloc((size_t)(A->nrow * w.k + 1), sizeof *result);

        w.A = A;
        w.x = x;
        w.y = y;
        w.result = result;
        for (int i = 1; i < SIZES && A->nrow >= CREW && A->ncol > 0; i++) {
            if (brief() && i != 1 + f % (SIZES - 1)) continue;
            all_went_well(crew_run(member, sizes[i], multiply_across, &w),
                          zoo_name(f), sizes[i]);
            expect(&w, A->val);
        }
        free(x);
        free(y);
        free(result);
        zoo_free(&A);
    }
}

/* Of some matrices ranks own no column. */
START_TEST(rectangular_products_are_those_of_the_whole)
{
    compare_across((work){ .alpha = 1, .beta = 1, .k = 3 }, 83);
    compare_across((work){ .alpha = -2, .beta = 1, .k = 5, .single = true },
                   37);
}
END_TEST

START_TEST(new_values_reach_interior_and_boundary_rows)
{
    static const double some = 0;

    compare_products((work){ .alpha = 1, .beta = 1, .val = &some }, 50, 2);
}
END_TEST

/* ------------------------------------------------------- rows of another */

static sps_status is_bug(sps_status st)
{
    return st == SPS_EBUG ? SPS_OK : SPS_EINVAL;
}

/* Makes an operator of D A, which shares the rows of A: it multiplies, but
 * neither gives nor changes them. */
static void share(crew_member *m)
{
    const work *w = m->data;
    const sps_operator *diagonal = NULL;
    sps_csr *own = NULL;
    sps_operator *op = NULL, *scaled = NULL;
    double by[MOST];

    for (int i = 0; i < MOST; i++) by[i] = 2;
    m->st = crew_rows(m, w->A, &own);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, 1, NULL, &op);
    if (!m->st) m->st = spsi_comm_begin(m->ctx);
    if (!m->st)
        m->st = spsi_comm_end(m->ctx, spsi_ranks_scaled(op, by, &scaled));
    if (!m->st) m->st = is_bug(spsi_ranks_own(scaled, &diagonal));
    if (!m->st) m->st = is_bug(spsi_ranks_set_values(scaled, own->val));
    if (!m->st) m->st = is_bug(spsi_ranks_set_there(scaled, own, NULL));
    if (!m->st) m->st = spsi_ranks_own(op, &diagonal);
    if (!m->st && diagonal->n != own->nrow) m->st = SPS_EBUG;
    sps_operator_destroy(&scaled);
    sps_operator_destroy(&op);
    sps_csr_destroy(m->ctx, &own);
}

START_TEST(an_operator_that_shares_rows_does_not_change_them)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 36, 1, ZOO_SPD, SPS_F64);
    work w = { .A = A };

    all_went_well(crew_run(member, 3, share, &w), "shared", 3);
    zoo_free(&A);
}
END_TEST

/* --------------------------------------------------------------------- halo */

typedef struct halo {
    const sps_csr *A;
    int64_t rows[CREW], most[CREW];
    int neighbours[CREW];
} halo;

static void look_at_halo(crew_member *m)
{
    halo *h = m->data;
    sps_csr *own = NULL;
    sps_operator *op = NULL;

    m->st = crew_rows(m, h->A, &own);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, 1, NULL, &op);
    sps_operator_halo(op, &h->rows[m->rank], &h->most[m->rank],
                      &h->neighbours[m->rank]);
    sps_operator_halo(op, NULL, NULL, NULL);
    sps_operator_destroy(&op);
    sps_csr_destroy(m->ctx, &own);
}

/* 5 x 5 points: a process needs the 5 rows before its own and the 5 after them,
 * as far as they exist; the shares of five begin at 0, 1, 5, 10 and 16. */
START_TEST(all_processes_know_what_a_product_exchanges)
{
    static const struct { int size, rows, most, neighbours; } cases[] = {
        { 1, 0, 0, 0 }, { 2, 10, 5, 1 }, { 5, 32, 10, 3 } };
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 25, 1, ZOO_SPD, SPS_F64);
    halo h = { .A = A };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        all_went_well(crew_run(member, cases[i].size, look_at_halo, &h), "halo",
                      cases[i].size);
        for (int r = 0; r < cases[i].size; r++) {
            ck_assert_int_eq(h.rows[r], cases[i].rows);
            ck_assert_int_eq(h.most[r], cases[i].most);
            ck_assert_int_eq(h.neighbours[r], cases[i].neighbours);
        }
    }
    zoo_free(&A);
}
END_TEST

/* ----------------------------------------------------------------- symmetry */

static void look_for_symmetry(crew_member *m)
{
    work *w = m->data;
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    bool symmetric = false;
    double difference = -1;

    m->st = crew_rows(m, w->A, &own);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, 1, NULL, &op);
    if (!m->st)
        m->st = spsi_ranks_symmetric(op, 1e-10, &symmetric, &difference);
    if (m->rank == 0) {
        w->symmetric = symmetric;
        w->difference = difference;
    }
    sps_operator_destroy(&op);
    sps_csr_destroy(m->ctx, &own);
}

/* Each entry in turn is changed, so that those between processes are, too. */
START_TEST(an_entry_without_mirror_image_is_found)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 25, 1, ZOO_SPD, SPS_F64);
    double *val = A->val;
    work w = { .A = A };

    if (runner_place() == SPS_CUDA)
        runner_leave_out("the host compares the entries");
    for (int64_t p = -1; p < A->nnz; p += brief() ? 7 : 1) {
        const double before = p < 0 ? 0 : val[p];
        int64_t row = 0;

        while (p >= 0 && A->rowptr[row + 1] <= p) row++;
        if (p >= 0 && A->col[p] == row) continue;
        if (p >= 0) val[p] += 1;
        all_went_well(crew_run(member, 4, look_for_symmetry, &w), "symmetry",
                      4);
        ck_assert_msg(w.symmetric == (p < 0), "entry %d", (int)p);
        ck_assert_msg(fabs(w.difference - (p >= 0)) < 1e-12, "entry %d: %g",
                      (int)p, w.difference);
        if (p >= 0) val[p] = before;
    }
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(products_are_those_of_the_whole),
    RUNNER_TEST(products_of_checks_are_those_of_the_whole),
    RUNNER_TEST(products_with_epilogues_are_those_of_the_whole),
    RUNNER_TEST(products_of_floats_are_those_of_the_whole),
    RUNNER_TEST(rectangular_products_are_those_of_the_whole),
    RUNNER_TEST(new_values_reach_interior_and_boundary_rows),
    RUNNER_TEST(an_operator_that_shares_rows_does_not_change_them),
    RUNNER_TEST(all_processes_know_what_a_product_exchanges),
    RUNNER_TEST(an_entry_without_mirror_image_is_found),
};

RUNNER_MAIN("ranks", tests)
