/* SPDX-License-Identifier: BSD-3-Clause */
/* check_ranks.c - matrices whose rows are spread over processes: products are
 * those of the whole matrix, in integers exactly; symmetry; new values; what is
 * rejected; and a failure of one process, which ends the call on all. */
#include <math.h>

#include "operator/operator_ranks.h"
#include "tests/problems/zoo.h"
#include "tests/support/absent.h"
#include "tests/processes/crew_system.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

enum { WIDTH = 16, MOST = 40 };

static const int sizes[] = { 1, 2, 3, 5, 8, 16 };
enum { SIZES = sizeof sizes / sizeof *sizes };

/* What all ranks share. */
typedef struct work {
    const sps_csr *A;
    const double *val;        /* new values, or NULL */
    int k;
    double alpha, beta;
    bool plain, twofold, fused, symmetric, floats;
    bool single;              /* the blocks are of floats */
    bool aside;               /* messages pass beside the product */
    const double *x, *y, *v;  /* n x k */
    double *result, *low;     /* n x k */
    const char *solver, *precond, *reorder;
    int odd;                  /* the rank that does something else, or -1; in
                                 fail_at a count of allocations, -1: all */
    int iterations;           /* at most, or 0 */
    bool all;                 /* what is odd is told to all ranks alike */
    void (*change)(sps_csr *own);
    double difference;
} work;

static crew_member member[CREW];

static void all_went_well(bool good, const char *what, int size)
{
    for (int r = 0; r < size; r++)
        ck_assert_msg(!member[r].st, "%s, rank %d of %d: %s", what, r, size,
                      member[r].error);
    ck_assert_msg(good, "%s, %d ranks: a deadlock, or a lost message", what,
                  size);
}

/* Replaces the block of doubles by one of floats. */
static sps_status narrow(sps_block **X_p)
{
    sps_block *X = NULL;
    sps_status st = spsi_block_create((*X_p)->ctx, (*X_p)->n, (*X_p)->k,
                                      SPS_F32, &X);

    if (!st) st = spsi_copy(*X_p, X);
    sps_block_destroy(X_p);
    *X_p = X;
    return st;
}

/* The rows of this rank of `from`, of `whole` rows. */
static sps_status part_of(const crew_member *m, const work *w, int64_t whole,
                          const double *from, sps_block **X_p)
{
    const int64_t first = crew_first(whole, m->all->size, m->rank);
    const int64_t n = crew_first(whole, m->all->size, m->rank + 1) - first;
    sps_status st = sps_block_create(m->ctx, n, w->k, X_p);

    if (!st && from)
        st = sps_block_set(*X_p, 0, w->k, from + first * w->k, w->k,
                           SPS_ROW_MAJOR, SPS_HOST);
    return !st && w->single ? narrow(X_p) : st;
}

static sps_status part(const crew_member *m, const work *w, const double *from,
                       sps_block **X_p)
{
    return part_of(m, w, w->A->nrow, from, X_p);
}

static sps_status keep(const crew_member *m, const work *w, const sps_block *X,
                       double *to)
{
    const int64_t first = crew_first(w->A->nrow, m->all->size, m->rank);
    sps_block *wide = NULL;
    sps_status st = sps_block_create(m->ctx, X->n, X->k, &wide);

    if (!st) st = spsi_copy(X, wide);
    if (!st)
        st = sps_block_get(wide, 0, w->k, to + first * w->k, w->k,
                           SPS_ROW_MAJOR, SPS_HOST);
    sps_block_destroy(&wide);
    return st;
}

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

/* result = alpha A x + beta y, in the order of the columns. */
static void expect(const work *w, const double *val)
{
    for (int64_t i = 0; i < w->A->nrow; i++)
        for (int j = 0; j < w->k; j++) {
            double sum = 0;

            for (int64_t p = w->A->rowptr[i]; p < w->A->rowptr[i + 1]; p++)
                sum += (w->floats ? ((const float *)w->A->val)[p] : val[p]) *
                       w->x[(int64_t)w->A->col[p] * w->k + j];
            if (w->fused)
                sum = w->v[i * w->k] * (w->alpha * sum +
                                        2 * w->v[i * w->k + j]) +
                      3 * w->x[i * w->k + j];
            else sum *= w->alpha;
            sum = sum + (w->beta == 0 ? 0 : w->beta *
                                                       w->y[i * w->k + j]);
            if (w->twofold) sum += w->v[i * w->k + j];
            ck_assert_msg(fabs(w->result[i * w->k + j] - sum) <=
                          (w->single ? 2e-7 : 0) * fabs(sum),
                          "row %d, column %d: %g, not %g", (int)i, j, w->result[i * w->k + j],
                          sum);
        }
}

/* Sanitizers, and contexts on a GPU, take long: one number of ranks for each
 * matrix in turn. */
static bool brief(void)
{
    return runner_quick() || runner_place() == SPS_CUDA;
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

/* --------------------------------------------------------------- rejections */

static void set_up(crew_member *m)
{
    const work *w = m->data;
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_options opt;

    sps_options_default(&opt);
    if (w->solver) opt.solver = w->solver;
    if (w->precond) opt.precond = w->precond;
    if (w->reorder) opt.reorder = w->reorder;
    m->st = crew_rows(m, w->A, &own);
    if (!m->st && w->change && (w->odd < 0 || w->odd == m->rank))
        w->change(own);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, 2, &opt, &op);
    if (!m->st) m->st = sps_solver_create(op, NULL, 2, &opt, &s);
    if (m->st)
        strncpy(m->error, sps_context_error(m->ctx), sizeof m->error - 1);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_csr_destroy(m->ctx, &own);
}

/* All ranks fail; those that are not odd with EPEER, if there is an odd one. */
static void refused(work w, sps_status st, const char *text)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_SPD, SPS_F64);

    w.A = A;
    ck_assert_msg(crew_run(member, 3, set_up, &w), "%s: a deadlock", text);
    for (int r = 0; r < 3; r++) {
        const bool told = w.odd >= 0 && r != w.odd && !w.all;

        ck_assert_msg(member[r].st == (told ? SPS_EPEER : st) &&
                      (told || strstr(member[r].error, text)),
                      "%s, rank %d: %d, %s", text, r, (int)member[r].st,
                      member[r].error);
    }
    zoo_free(&A);
}

static void complex_values(sps_csr *A) { A->props |= SPS_INTERLEAVED; }
static void shift_rows(sps_csr *A) { A->first++; }
static void longer(sps_csr *A) { A->whole++; A->ncol++; }
static void unsorted(sps_csr *A) { A->global[1] = A->global[0]; }
static void far_column(sps_csr *A) { A->global[A->nnz - 1] = 1000; }

START_TEST(what_does_not_count_there_is_refused_by_name)
{
    refused((work){ .odd = -1, .precond = "dense" }, SPS_EUNFIT, "dense");
    refused((work){ .odd = -1, .solver = "lsqr" }, SPS_EUNFIT, "lsqr");
    refused((work){ .odd = -1, .reorder = "rcm" }, SPS_EUNFIT, "rcm");
    refused((work){ .odd = -1, .change = complex_values }, SPS_EUNFIT,
            "complex");
}
END_TEST

START_TEST(what_is_wrong_on_one_process_ends_the_call_on_all)
{
    refused((work){ .odd = 1, .change = unsorted }, SPS_EMATRIX,
            "do not ascend");
    refused((work){ .odd = 2, .change = far_column }, SPS_EMATRIX,
            "has column 1000");
}
END_TEST

static void unmark(sps_csr *A) { A->props = 0; }

/* Otherwise some would look for symmetry together, and others not. */
START_TEST(rows_marked_on_some_processes_are_not_marked)
{
    const char *const methods[] = { "auto", "block_cg", "minres" };
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_SPD, SPS_F64);
    work w = { .A = A, .odd = 1, .change = unmark };

    for (int i = 0; i < 3; i++) {
        w.solver = methods[i];
        w.precond = i ? "amg" : NULL;
        all_went_well(crew_run(member, 3, set_up, &w), methods[i], 3);
    }
    zoo_free(&A);
}
END_TEST

START_TEST(rows_that_do_not_follow_are_refused_on_all)
{
    refused((work){ .odd = 0, .all = true, .change = shift_rows }, SPS_EINVAL,
            "the rows of process 0 begin at 1");
    refused((work){ .odd = -1, .change = longer }, SPS_EINVAL,
            "the processes have 49 rows, the whole matrix 50");
}
END_TEST

START_TEST(half_an_exchange_is_refused)
{
    sps_comm_calls calls = { .struct_size = sizeof calls, .sum = crew_sum };
    sps_comm *comm = NULL;

    calls.start = crew_start;
    ck_assert_int_eq(sps_comm_user(0, 2, &calls, NULL, &comm), SPS_EINVAL);
    ck_assert(!comm && strstr(sps_context_error(NULL), "start and finish"));
    calls.finish = crew_finish;
    ck_assert_int_eq(sps_comm_user(0, 2, &calls, NULL, &comm), SPS_OK);
    sps_comm_destroy(&comm);
}
END_TEST

/* --------------------------------------------------------------- failures */

/* Once the blocks are made, w->odd allocations of rank 1 succeed; then every one
 * fails. */
static void solve(crew_member *m)
{
    const work *w = m->data;
    crew_system c = { .A = w->A, .b = w->x, .k = w->k, .allowed = w->odd };

    sps_options_default(&c.opt);
    c.opt.solver = w->solver;
    c.opt.precond = w->precond;
    if (w->iterations) c.opt.max_iterations = w->iterations;
    crew_solve(m, &c);
}

/* Allocation `allowed` of rank 1, if it has so many, and all later ones fail;
 * returns how many it has. */
static long fail_at(work *w, long allowed, bool *failed)
{
    fail_alloc f = { .allowed = -1 };

    w->odd = (int)allowed;
    member[1].host = fail_alloc_host(&f);
    ck_assert_msg(crew_run(member, 3, solve, w), "%s, %s: a deadlock when "
                  "allocation %ld fails", w->solver, w->precond, allowed);
    member[1].host = NULL;
    for (int r = 0; r < 3; r++)
        ck_assert_msg(member[r].st == (!f.fired ? SPS_OK : r == 1 ? SPS_ENOMEM
                      : SPS_EPEER), "%s, %s, allocation %ld, rank %d: %d, %s",
                      w->solver, w->precond, allowed, r, (int)member[r].st,
                      member[r].error);
    ck_assert_int_eq(f.live, 0);
    *failed = f.fired;
    return f.calls;
}

/* Rank 1 of three runs out of memory at every allocation whose number is a
 * multiple of `step`.  The brief form takes a few of them, since on a GPU each
 * takes three contexts. */
static void run_out_of_memory(const char *solver, const char *precond, int step)
{
    enum { FEW = 5 };
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_SPD, SPS_F64);
    double *b = zoo_block(A->nrow, 2, 2, 1, ZOO_RANDOM);
    work w = { .A = A, .k = 2, .x = b, .solver = solver, .precond = precond };
    bool failed;
    const long all = fail_at(&w, -1, &failed);
    const long by = brief() ? all / FEW : step;

    ck_assert(!failed && all > 30);
    for (long allowed = 0; allowed < all; allowed += by) {
        fail_at(&w, allowed, &failed);
        ck_assert_msg(failed, "%s, %s: allocation %ld of %ld did not fail",
                      solver, precond, allowed, all);
    }
    free(b);
    zoo_free(&A);
}

START_TEST(a_process_out_of_memory_ends_the_call_on_all)
{
    run_out_of_memory("block_cg", "chebyshev", 1);
    run_out_of_memory("gmres", "ilu0", 3);
    run_out_of_memory("idr", "block_jacobi", 3);
    run_out_of_memory("block_cg", "amg", 5);
    run_out_of_memory("gmres", "ilut", 3);
    run_out_of_memory("gmres", "isai", 3);
    run_out_of_memory("gmres", "fsai", 3);
    if (!absent("factor")) run_out_of_memory("gmres", "factor", 3);
}
END_TEST

/* Makes an operator until memory suffices, with one allocation more each time,
 * and multiplies. */
static void try_again(crew_member *m)
{
    work *w = m->data;
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_block *X = NULL, *Y = NULL;

    m->st = crew_rows(m, w->A, &own);
    for (int allowed = 0; !m->st; allowed++) {
        if (m->host) fail_alloc_allow(m->host->data, allowed);
        m->st = sps_operator_csr(m->ctx, own, w->k, NULL, &op);
        if (m->host) fail_alloc_allow(m->host->data, -1);
        if (m->host) w->odd = allowed;
        if (m->st != (m->rank == 1 ? SPS_ENOMEM : SPS_EPEER)) break;
        m->st = SPS_OK;
    }
    if (!m->st) m->st = part(m, w, w->x, &X);
    if (!m->st) m->st = part(m, w, NULL, &Y);
    if (!m->st) m->st = sps_operator_apply(op, 1, X, 0, Y);
    if (!m->st) m->st = keep(m, w, Y, w->result);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_operator_destroy(&op);
    sps_csr_destroy(m->ctx, &own);
}

/* On a GPU the first attempts end within the opening of the wire, too. */
START_TEST(a_call_without_memory_can_be_repeated)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_INTEGER, SPS_F64);
    double *x = zoo_block(A->nrow, 2, 2, 1, ZOO_INTEGER), result[2 * 49];
    work w = { .A = A, .k = 2, .x = x, .alpha = 1, .result = result };
    fail_alloc f = { .allowed = -1 };

    member[1].host = fail_alloc_host(&f);
    all_went_well(crew_run(member, 3, try_again, &w), "again", 3);
    member[1].host = NULL;
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_gt(w.odd, 10);
    expect(&w, A->val);
    free(x);
    zoo_free(&A);
}
END_TEST

/* From so many sums, sendings and receipts of rank 1 on all of them fail, as
 * where a connection is lost or a test waits too long. */
static int calls_left;

static void lose(crew_member *m)
{
    if (m->rank != 1 || calls_left-- > 0) return;
    pthread_mutex_lock(&m->all->lock);
    m->all->broken = true;
    pthread_cond_broadcast(&m->all->met);
    for (int r = 0; r < m->all->size; r++)
        pthread_cond_signal(&m->all->mail[r]);
    pthread_mutex_unlock(&m->all->lock);
}

static void lose_others(const char *solver, const char *precond, int step)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_SPD, SPS_F64);
    double *b = zoo_block(A->nrow, 2, 2, 1, ZOO_RANDOM);
    work w = { .A = A, .k = 2, .x = b, .solver = solver, .precond = precond,
               .odd = -1 };
    fail_alloc f = { .allowed = -1 };
    int failures = -1;
    bool ended = false;

    if (brief()) step *= 25;
    crew_pace = lose;
    for (int calls = 0; !ended; calls += step, failures++) {
        calls_left = calls;
        member[1].host = fail_alloc_host(&f);
        ended = crew_run(member, 3, solve, &w);
        for (int r = 0; r < 3; r++)
            ck_assert_msg(!member[r].st == ended, "%s, %s, call %d, rank %d: "
                          "%d, %s", solver, precond, calls, r,
                          (int)member[r].st, member[r].error);
        ck_assert_int_eq(f.live, 0);
    }
    crew_pace = NULL;
    member[1].host = NULL;
    ck_assert_int_gt(failures, brief() ? 1 : 10);
    free(b);
    zoo_free(&A);
}

START_TEST(a_lost_connection_ends_the_call_on_all)
{
    lose_others("block_cg", "chebyshev", 1);
    lose_others("block_cg", "amg", 2);
    lose_others("gmres", "ilu0", 2);
    lose_others("idr", "fsai", 2);
}
END_TEST

/* ---------------------------------------------------------------- traffic */

/* Sums and exchanges of a solve of so many iterations. */
static void count_traffic(work *w, int iterations, long *sums, long *exchanges)
{
    w->iterations = iterations;
    all_went_well(crew_run(member, 3, solve, w), "traffic", 3);
    *sums = member[0].all->sums;
    *exchanges = member[0].all->exchanges;
}

/* Two sums and an exchange, and of several that are queued at once one more
 * sum at most. */
START_TEST(an_iteration_of_block_cg_sends_little)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 400, 1, ZOO_SPD, SPS_F64);
    double *b = zoo_block(A->nrow, 3, 3, 1, ZOO_RANDOM);
    work w = { .A = A, .k = 3, .x = b, .solver = "block_cg" };
    long sums[2], exchanges[2];

    if (runner_place() == SPS_CUDA)
        runner_leave_out("staged messages have sums of their own");
    for (int jacobi = 0; jacobi < 2; jacobi++) {
        w.precond = jacobi ? "jacobi" : "none";
        count_traffic(&w, 5, &sums[0], &exchanges[0]);
        count_traffic(&w, 8, &sums[1], &exchanges[1]);
        ck_assert_int_eq(exchanges[1] - exchanges[0], 3);
        ck_assert_msg(sums[1] - sums[0] <= 6, "%s: %ld sums in 3 iterations",
                      w.precond, sums[1] - sums[0]);
    }
    free(b);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(an_iteration_of_block_cg_sends_little),
    RUNNER_TEST(products_are_those_of_the_whole),
    RUNNER_TEST(products_of_checks_are_those_of_the_whole),
    RUNNER_TEST(products_with_epilogues_are_those_of_the_whole),
    RUNNER_TEST(products_of_floats_are_those_of_the_whole),
    RUNNER_TEST(rectangular_products_are_those_of_the_whole),
    RUNNER_TEST(new_values_reach_interior_and_boundary_rows),
    RUNNER_TEST(all_processes_know_what_a_product_exchanges),
    RUNNER_TEST(an_entry_without_mirror_image_is_found),
    RUNNER_TEST(what_does_not_count_there_is_refused_by_name),
    RUNNER_TEST(what_is_wrong_on_one_process_ends_the_call_on_all),
    RUNNER_TEST(rows_marked_on_some_processes_are_not_marked),
    RUNNER_TEST(rows_that_do_not_follow_are_refused_on_all),
    RUNNER_TEST(half_an_exchange_is_refused),
    RUNNER_TEST(a_process_out_of_memory_ends_the_call_on_all),
    RUNNER_TEST(a_call_without_memory_can_be_repeated),
    RUNNER_TEST(a_lost_connection_ends_the_call_on_all),
};

RUNNER_MAIN("ranks", tests)
