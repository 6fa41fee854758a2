/* SPDX-License-Identifier: BSD-3-Clause */
/* check_inverse_ranks.c - fsai, and isai with across_ranks, of a matrix over
 * processes: M R has the bits of one process, with values in floats and with
 * new values, too, and where pivots vanish; without across_ranks the M of fsai
 * is the same. */
#include <math.h>

#include "tests/problems/zoo.h"
#include "tests/processes/crew_system.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

enum { K = 3, N = 60 };

typedef struct work {
    const sps_csr *A;
    const char *precond, *precision;
    int power;
    bool anew;                /* built for 3 A, then given the values of A */
    int allowed;              /* allocations of a member with an allocator that
                                 succeed, once the blocks are made */
    double z[2 * N * K];      /* M R, all rows */
} work;

static crew_member member[CREW];

/* Creates M of 3 A, whose values become those of A. */
static sps_status create_anew(sps_operator *op, const sps_csr *own,
                              const sps_options *opt, sps_precond **M_p)
{
    double *val = malloc((size_t)(own->nnz + 1) * sizeof *val);
    sps_status st;

    for (int64_t p = 0; p < own->nnz; p++)
        val[p] = 3 * ((const double *)own->val)[p];
    st = sps_operator_set_values(op, val, SPS_HOST);
    if (!st) st = sps_precond_create(op, K, opt, M_p);
    if (!st) st = sps_operator_set_values(op, own->val, SPS_HOST);
    if (!st) st = sps_precond_update(*M_p);
    free(val);
    return st;
}

static void apply(crew_member *m)
{
    work *w = m->data;
    const int64_t first = crew_first(w->A->nrow, m->all->size, m->rank);
    const int64_t n = crew_first(w->A->nrow, m->all->size, m->rank + 1) - first;
    sps_block *R = NULL, *Z = NULL;
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_options opt;

    sps_options_default(&opt);
    opt.precond = w->precond;
    opt.precision = w->precision;
    opt.power = w->power;
    m->st = crew_rows(m, w->A, &own);
    if (!m->st) m->st = sps_block_create(m->ctx, n, K, &R);
    if (!m->st) m->st = sps_block_create(m->ctx, n, K, &Z);
    if (!m->st) m->st = sps_block_random_rows(R, 5, first);
    if (m->host) fail_alloc_allow(m->host->data, w->allowed);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, K, &opt, &op);
    if (!m->st)
        m->st = w->anew ? create_anew(op, own, &opt, &M)
                        : sps_precond_create(op, K, &opt, &M);
    if (!m->st) m->st = sps_precond_apply(M, R, Z);
    if (!m->st)
        m->st = sps_block_get(Z, 0, K, w->z + first * K, K, SPS_ROW_MAJOR,
                              SPS_HOST);
    if (m->st)
        strncpy(m->error, sps_context_error(m->ctx), sizeof m->error - 1);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    sps_csr_destroy(m->ctx, &own);
}

static void run(work *w, int size, bool across)
{
    for (int r = 0; r < CREW; r++) member[r].across = across;
    memset(w->z, 0, sizeof w->z);
    ck_assert_msg(crew_run(member, size, apply, w), "%s, %d processes: a "
                  "deadlock", w->precond, size);
    for (int r = 0; r < size; r++)
        ck_assert_msg(!member[r].st, "%s, process %d of %d: %s", w->precond, r,
                      size, member[r].error);
}

static void compare(work *w, const char *family)
{
    static const int sizes[] = { 2, 3, 5, 8 };
    double one[2 * N * K];

    run(w, 1, true);
    memcpy(one, w->z, sizeof one);
    for (int i = 0; i < 4; i++) {
        if (sizes[i] > w->A->nrow) continue;
        run(w, sizes[i], true);
        ck_assert_msg(!memcmp(w->z, one, sizeof one), "%s, %s, %s, power %d, "
                      "%d processes: other bits", family, w->precond,
                      w->precision, w->power, sizes[i]);
        if (strcmp(w->precond, "fsai")) continue;
        run(w, sizes[i], false);
        for (int64_t e = 0; e < w->A->nrow * K; e++)
            ck_assert_msg(fabs(w->z[e] - one[e]) <= 1e-5 * (1 + fabs(one[e])),
                          "%s, %d processes: %g, not %g", family, sizes[i],
                          w->z[e], one[e]);
    }
}

static void on_all_patterns(work *w, int kind)
{
    const int every = fixture_env("SPS_TEST_LONG") ? 1 : runner_quick() ? 7 : 3;
    static int turn;

    for (int f = turn++ % every; f < zoo_count(); f += every) {
        sps_csr *A;

        if (kind == ZOO_SPD && !zoo_symmetric(f)) continue;
        A = zoo_matrix(f, N, 5, kind, SPS_F64);
        w->A = A;
        if (A->nrow == A->ncol && A->nrow >= 8 && A->nrow <= 2 * N)
            compare(w, zoo_name(f));
        zoo_free(&A);
    }
}


START_TEST(fsai_is_that_of_one_process)
{
    for (int power = 1; power <= 3; power++) {
        work w = { .precond = "fsai", .precision = "double", .power = power };

        on_all_patterns(&w, ZOO_SPD);
        w.anew = power == 2;
        on_all_patterns(&w, ZOO_RANDOM);
    }
}
END_TEST

/* Of random values some pivots vanish, and the diagonal is shifted. */
START_TEST(isai_across_ranks_is_that_of_one_process)
{
    work w = { .precond = "isai", .precision = "double", .power = 1 };

    on_all_patterns(&w, ZOO_SPD);
    on_all_patterns(&w, ZOO_RANDOM);
    w.anew = true;
    on_all_patterns(&w, ZOO_SPD);
    on_all_patterns(&w, ZOO_RANDOM);
}
END_TEST

START_TEST(values_in_floats_are_those_of_one_process)
{
    static const char *const name[] = { "fsai", "isai" };

    for (int i = 0; i < 2; i++) {
        work w = { .precond = name[i], .precision = "single_precond",
                   .power = 1 };

        on_all_patterns(&w, ZOO_SPD);
        w.anew = true;
        on_all_patterns(&w, ZOO_SPD);
    }
}
END_TEST

/* A value beyond the range of floats in the rows of the last process: all keep
 * doubles. */
START_TEST(a_range_that_floats_do_not_have_is_agreed_on)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), N, 5, ZOO_SPD, SPS_F64);
    double *val = A->val;
    work w = { .A = A, .precond = "fsai", .precision = "single_precond",
               .power = 1 };

    for (int64_t p = A->rowptr[A->nrow - 1]; p < A->nnz; p++)
        val[p] = A->col[p] == A->nrow - 1 ? 1e70 : 0;
    for (int64_t p = 0; p < A->rowptr[A->nrow - 1]; p++)
        if (A->col[p] == A->nrow - 1) val[p] = 0;
    compare(&w, "grid5");
    w.anew = true;
    compare(&w, "grid5");
    zoo_free(&A);
}
END_TEST

/* Rank 1 of three runs out of memory at its allocations in turn. */
START_TEST(a_process_out_of_memory_ends_the_call_on_all)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), N, 5, ZOO_RANDOM, SPS_F64);
    work w = { .A = A, .precond = "isai", .precision = "double", .power = 1 };
    const int step = fixture_env("SPS_TEST_LONG") ? 1 : 7;
    fail_alloc f;

    for (int r = 0; r < CREW; r++) member[r].across = true;
    do {
        memset(&f, 0, sizeof f);
        f.allowed = -1;
        member[1].host = fail_alloc_host(&f);
        ck_assert_msg(crew_run(member, 3, apply, &w), "allocation %d: a "
                      "deadlock", w.allowed);
        for (int r = 0; r < 3; r++)
            ck_assert_msg(member[r].st == (!f.fired ? SPS_OK : r == 1
                          ? SPS_ENOMEM : SPS_EPEER), "allocation %d, rank %d: "
                          "%d, %s", w.allowed, r, (int)member[r].st,
                          member[r].error);
        ck_assert_int_eq(f.live, 0);
        w.allowed += step;
    } while (f.fired);
    ck_assert_int_gt(w.allowed, 100);
    member[1].host = NULL;
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(fsai_is_that_of_one_process),
    RUNNER_TEST(isai_across_ranks_is_that_of_one_process),
    RUNNER_TEST(values_in_floats_are_those_of_one_process),
    RUNNER_TEST(a_range_that_floats_do_not_have_is_agreed_on),
    RUNNER_TEST(a_process_out_of_memory_ends_the_call_on_all),
};

RUNNER_MAIN("inverse_ranks", tests)
