/* SPDX-License-Identifier: BSD-3-Clause */
/* check_amg_floats.c - the multigrid cycle in single precision: magnitudes of A
 * and R that leave the range of floats, tolerances beyond their precision, and
 * iterations as in doubles. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "tests/check/amg/amg_fixture.h"
#include "tests/support/runner.h"

/* Applies M to random columns times `scale`; the result, to be freed. */
static double *apply_scaled(amg_case *c, double scale)
{
    const int64_t n = c->A->nrow;
    double *z = malloc((size_t)(n * c->k) * sizeof *z);
    sps_block *R = fixture_block(c->ctx, n, c->k, NULL, 0);
    sps_block *Z = fixture_block(c->ctx, n, c->k, NULL, 0);

    OK(c->ctx, sps_block_random(R, 5));
    OK(c->ctx, spsi_axpby(scale, R, 0.0, R));
    OK(c->ctx, sps_precond_apply(c->M, R, Z));
    OK(c->ctx, sps_block_get(Z, 0, c->k, z, c->k, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    return z;
}

/* A times `scale`: whatever it is, and whatever R is, a cycle in floats gives
 * the same numbers, scaled. */
static double *apply_to_matrix(double scale, bool *floats)
{
    static const double size[] = { 0x1p-900, 0x1p+900 };
    amg_case c;
    double *z;

    amg_open(&c, "poisson7 13", 2, 3);
    for (int64_t p = 0; p < c.A->nnz; p++) c.w.val[p] *= scale;
    OK(c.ctx, sps_operator_set_values(c.op, c.w.val, SPS_HOST));
    *floats = amg_make(&c)->floats;
    z = apply_scaled(&c, 1);
    for (int t = 0; *floats && t < 2; t++) {
        double *other = apply_scaled(&c, size[t]);

        for (int64_t i = 0; i < 3 * c.A->nrow; i++)
            ck_assert_msg(other[i] == z[i] * size[t], "number %lld: %g, not "
                          "%g times %g", (long long)i, other[i], size[t],
                          z[i]);
        free(other);
    }
    for (int64_t i = 0; i < 3 * c.A->nrow; i++) z[i] *= scale;
    amg_close(&c);
    return z;
}

START_TEST(floats_stand_any_scale)
{
    static const double scale[] = { 1, 0x1p-90, 0x1p+90, 0x1p-200 };
    bool floats;
    double *z = apply_to_matrix(1, &floats), largest = 0;

    for (int64_t i = 0; i < 3 * 13 * 13 * 13; i++)
        largest = fmax(largest, fabs(z[i]));
    for (int t = 0; t < 4; t++) {
        double *other = apply_to_matrix(scale[t], &floats);

        ck_assert_int_eq(floats, t < 3);
        for (int64_t i = 0; i < 3 * 13 * 13 * 13; i++)
            ck_assert_double_le(fabs(other[i] - z[i]), 1e-5 * largest);
        free(other);
    }
    free(z);
}
END_TEST

/* A diagonal over more than 20 decades, from the start or by an update. */
START_TEST(what_floats_cannot_hold_is_in_doubles)
{
    for (int late = 0; late < 2; late++) {
        amg_case c;
        sps_result result;

        amg_open(&c, "poisson7 13", 2, 3);
        if (late) ck_assert(amg_make(&c)->floats);
        c.w.val[0] = 1e25;
        OK(c.ctx, sps_operator_set_values(c.op, c.w.val, SPS_HOST));
        if (late) OK(c.ctx, sps_precond_update(c.M));
        else (void)amg_make(&c);
        ck_assert(!((const amg *)c.M)->floats);
        ck_assert(amg_describes(c.M, "in double precision"));
        result = amg_solve(&c);
        ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
        amg_close(&c);
    }
}
END_TEST

/* To 1e-8 no more iterations than in doubles, to 1e-12 at most one more, by
 * each method; tall residuals and small ones. */
START_TEST(floats_take_no_more_iterations)
{
    static const char *const method[] = { "block_cg", "cg" };
    static const char *const line[] = { "poisson7 20", "elasticity 8",
                                        "laplace27 16 -aniso 0.1" };

    for (int t = 0; t < 12; t++) {
        sps_result result[2];

        for (int floats = 0; floats < 2; floats++) {
            amg_case c;

            amg_open(&c, line[t % 3], 2, 8);
            c.opt.precision = floats ? "auto" : "double";
            c.opt.solver = method[t / 3 % 2];
            c.opt.rtol = t < 6 ? 1e-8 : 1e-12;
            ck_assert_int_eq(amg_make(&c)->floats, floats);
            result[floats] = amg_solve(&c);
            amg_close(&c);
            ck_assert_int_eq(result[floats].stop, SPS_STOP_CONVERGED);
            if (t < 3)      /* block_cg: no cycle behind the last step */
                ck_assert_int_eq(result[floats].applies_M,
                                 result[floats].iterations);
            ck_assert_double_le(result[floats].worst_residual,
                                t < 6 ? 1e-8 : 1e-12);
        }
        ck_assert_msg(result[1].iterations <= result[0].iterations + t / 6,
                      "%s, %s: %d iterations in floats, %d in doubles",
                      line[t % 3], method[t / 3 % 2], result[1].iterations,
                      result[0].iterations);
    }
}
END_TEST

static bool goes_on(const sps_progress *p, void *steps)
{
    return p->iteration < *(const int *)steps;
}

/* Wherever block_cg is stopped, by its limit or by the caller's function, its X
 * is as good as by a cycle in doubles: X is formed from directions kept in
 * floats, after 12 steps a second time. */
START_TEST(any_stop_has_the_sum_of_the_steps)
{
    for (int t = 2; t < 30; t++) {
        int steps = t / 2;
        double residual[2];

        for (int floats = 0; floats < 2; floats++) {
            amg_case c;

            amg_open(&c, "laplace27 10 -aniso 0.1", 1, 5);
            c.opt.precision = floats ? "auto" : "double";
            c.opt.rtol = 1e-15;
            if (t % 2) c.opt.max_iterations = steps;
            else c.opt.monitor = goes_on;
            c.opt.monitor_data = &steps;
            c.opt.check_every = 1;
            ck_assert_int_eq(amg_make(&c)->floats, floats);
            residual[floats] = amg_solve(&c).worst_residual;
            amg_close(&c);
        }
        ck_assert_double_le(residual[1], 1.2 * residual[0] + 1e-13);
        ck_assert_double_ge(residual[1], 0.8 * residual[0] - 1e-13);
    }
}
END_TEST

/* A clamped beam without coordinates, whose residuals rise now and then: X has
 * all steps before it is stored, and none but these. */
START_TEST(residuals_that_rise_leave_the_sum_right)
{
    sps_result result[2];

    for (int floats = 0; floats < 2; floats++) {
        amg_case c;

        amg_open(&c, "elasticity 40 3 3", 2, 5);
        c.opt.coords = NULL;
        c.opt.precision = floats ? "auto" : "double";
        ck_assert_int_eq(amg_make(&c)->floats, floats);
        result[floats] = amg_solve(&c);
        amg_close(&c);
        ck_assert_int_eq(result[floats].stop, SPS_STOP_CONVERGED);
        ck_assert_int_eq(result[floats].restarts, 0);
    }
    ck_assert_msg(result[1].iterations <= 3 * result[0].iterations,
                  "%d iterations in floats, %d in doubles",
                  result[1].iterations, result[0].iterations);
}
END_TEST

/* Stiff parts held by soft ones, in a beam: the coarsest matrix multiplies the
 * rounding of floats so that they do not converge, from the start or by an
 * update; a beam of one material keeps them. */
START_TEST(soft_joints_are_in_doubles)
{
    for (int late = 0; late < 2; late++) {
        amg_case c, soft;
        sps_result result;

        amg_open(&soft, "elasticity 30 4 4 -jump", 2, 5);
        amg_open(&c, late ? "elasticity 30 4 4" : "elasticity 30 4 4 -jump", 2,
                 5);
        c.opt.coords = NULL;
        ck_assert_int_eq(amg_make(&c)->floats, late);
        if (late) {
            OK(c.ctx, sps_operator_set_values(c.op, soft.w.val, SPS_HOST));
            OK(c.ctx, sps_precond_update(c.M));
        }
        ck_assert(!((const amg *)c.M)->floats);
        c.opt.max_iterations = 200;
        result = amg_solve(&c);
        ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
        amg_close(&c);
        amg_close(&soft);
    }
}
END_TEST

/* Products load rows of 4 floats as vectors, but not rows of 2; where the
 * result has rows of 2 floats, those of all blocks are alike. */
START_TEST(two_columns_are_as_far_apart_as_four)
{
    enum { N = 12 * 12 * 12 };
    amg_case c;
    const amg *m;
    double *z, *two, largest = 0;
    sps_block *R = NULL, *Z = NULL;

    amg_open(&c, "poisson7 12", 2, 4);
    m = amg_make(&c);
    ck_assert(m->floats);
    ck_assert_int_eq(m->level[0].parts.r->ld, 4); /* by the test of the cycle */
    z = apply_scaled(&c, 1);
    c.k = 2;
    two = apply_scaled(&c, 1);
    for (int i = 0; i < m->levels; i++)
        if (m->level[i].parts.t) ck_assert_int_eq(m->level[i].parts.t->ld, 4);
    for (int i = 0; i < 4 * N; i++) largest = fmax(largest, fabs(z[i]));
    for (int i = 0; i < 2 * N; i++)
        ck_assert_double_le(fabs(two[i] - z[i / 2 * 4 + i % 2]),
                            1e-5 * largest);
    R = fixture_block(c.ctx, N, 2, NULL, 0);
    OK(c.ctx, sps_block_random(R, 5));
    OK(c.ctx, spsi_block_create(c.ctx, N, 2, SPS_F32, &Z));
    OK(c.ctx, sps_precond_apply(c.M, R, Z));
    ck_assert_int_eq(m->level[0].parts.t->ld, Z->ld);
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    free(z);
    free(two);
    amg_close(&c);
}
END_TEST

/* Makes a random block and a copy of it. */
static void random_pair(amg_case *c, int k, uint64_t seed, sps_block **X_p,
                        sps_block **Y_p)
{
    *X_p = fixture_block(c->ctx, c->A->nrow, k, NULL, 0);
    *Y_p = fixture_block(c->ctx, c->A->nrow, k, NULL, 0);
    OK(c->ctx, sps_block_random(*X_p, seed));
    OK(c->ctx, spsi_copy(*X_p, *Y_p));
}

/* Compares R -= Q a and Z = M R in two passes with that where M takes in R. */
static void enter_at_once(int k, int r)
{
    amg_case c;
    sps_block *R[2], *Q[2], *Z[2];
    sps_small *a = NULL, *norm2[2] = { NULL };
    double norm[16], most[16], off[16];
    bool served;

    amg_open(&c, "poisson7 11", 2, 16);
    ck_assert(amg_make(&c)->floats);
    random_pair(&c, k, 5, &R[0], &R[1]);
    random_pair(&c, r, 6, &Q[0], &Q[1]);
    OK(c.ctx, spsi_norms(R[0], norm));
    OK(c.ctx, spsi_small_create(c.ctx, r, k, &a));
    for (int i = 0; i < r * k; i++) a->v[i] = (i % 7 - 3) / 8.0;
    for (int i = 0; i < 2; i++) {
        OK(c.ctx, spsi_small_create(c.ctx, 1, k, &norm2[i]));
        OK(c.ctx, spsi_block_create(c.ctx, c.A->nrow, k, SPS_F32, &Z[i]));
    }
    OK(c.ctx, spsi_subtract(Q[0], a, R[0], norm2[0]));
    c.M->norms = norm;
    OK(c.ctx, c.M->type->subtract(c.M, Q[1], a, R[1], norm2[1], &served));
    ck_assert_int_eq(served, fixture_place() != SPS_HOST);
    if (served) {
        OK(c.ctx, sps_precond_apply(c.M, R[0], Z[0]));
        c.M->follows = true;
        OK(c.ctx, sps_precond_apply(c.M, R[1], Z[1]));
        c.M->follows = false;
        for (int j = 0; j < k; j++)
            ck_assert_double_le(fabs(norm2[0]->v[j] - norm2[1]->v[j]),
                                1e-13 * norm2[0]->v[j]);
        OK(c.ctx, spsi_axpby(-1.0, R[0], 1.0, R[1]));
        OK(c.ctx, spsi_largest(R[1], off));
        for (int j = 0; j < k; j++) ck_assert_double_le(off[j], 1e-14);
        OK(c.ctx, spsi_copy(Z[0], R[0]));
        OK(c.ctx, spsi_largest(R[0], most));
        OK(c.ctx, spsi_copy(Z[1], R[1]));
        OK(c.ctx, spsi_axpby(-1.0, R[0], 1.0, R[1]));
        OK(c.ctx, spsi_largest(R[1], off));
        for (int j = 0; j < k; j++)
            ck_assert_double_le(off[j], 1e-6 * most[j]);
    }
    c.M->norms = NULL;
    for (int i = 0; i < 2; i++) {
        sps_block_destroy(&R[i]);
        sps_block_destroy(&Q[i]);
        sps_block_destroy(&Z[i]);
        spsi_small_destroy(&norm2[i]);
    }
    spsi_small_destroy(&a);
    amg_close(&c);
}

START_TEST(a_residual_enters_as_it_is_made)
{
    static const int k[] = { 2, 5, 8, 15, 16, 16 };
    static const int r[] = { 2, 5, 7, 16, 16, 3 };

    for (int t = 0; t < 6; t++) enter_at_once(k[t], r[t]);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(floats_stand_any_scale),
    RUNNER_TEST(what_floats_cannot_hold_is_in_doubles),
    RUNNER_TEST(floats_take_no_more_iterations),
    RUNNER_TEST(any_stop_has_the_sum_of_the_steps),
    RUNNER_TEST(residuals_that_rise_leave_the_sum_right),
    RUNNER_TEST(soft_joints_are_in_doubles),
    RUNNER_TEST(two_columns_are_as_far_apart_as_four),
    RUNNER_TEST(a_residual_enters_as_it_is_made),
};
RUNNER_MAIN("amg_floats", tests)
