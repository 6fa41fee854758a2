/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_sddmm.c - every listed SDDMM kernel of the device against the
 * contract in kernel.h: val = alpha (u_i . v_j) [a_ij] + beta val on the stored
 * entries.  Integer data bit for bit, random data within the error bound, in
 * blocks of doubles and of floats.  SPS_TEST_KERNEL=name selects one kernel;
 * SPS_TEST_QUICK=1 takes few sizes, SPS_TEST_LONG=1 many repetitions and a
 * block beyond 2^31 numbers. */
#include "tests/conform/kernels/conform_sddmm.h"

sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

const int WIDTHS[] = { 1,  2,  3,  4,  5,  7,  8,   9,   15, 16,
                       17, 31, 32, 33, 64, 100, 128, 129 };
const int WIDTH_COUNT = COUNT(WIDTHS);

const types TYPE[TYPES] = {
    { SPS_F64, SPS_F64, ZOO_INTEGER },
    { SPS_F32, SPS_F64, ZOO_INTEGER },
    { SPS_F32, SPS_F32, ZOO_SMALL },
};

void rig_open_as(rig *r, int family, int64_t n, zoo_values values,
                 const types *t)
{
    rig_open(r, ctx, family, n, values, t->matrix);
    r->block = t->block;
}

void sample(const rig *r, const trial *t, const image *U, const image *V,
            const image *val)
{
    OK(ctx, r->plan->kernel->sddmm(r->plan, &(sps_sddmm_args){
        t->alpha, U->B, V->B, t->multiply, t->beta, val->first }));
    OK(ctx, ctx->backend->sync(ctx));
}

static void judge(const trial *t, image *val, const double *right,
                  const double *bound)
{
    const int64_t nnz = t->r->A->nnz;
    const bool wide = t->r->block == SPS_F64;
    char what[200];

    snprintf(what, sizeof what, "%s on %s (f%d, blocks f%d) k %d layout %d "
             "alpha %g beta %g multiply %d", t->r->plan->kernel->name,
             t->r->what, t->r->A->dtype == SPS_F64 ? 64 : 32, wide ? 64 : 32,
             t->k, t->layout, t->alpha, t->beta, t->multiply);
    image_read(val, what);
    if (t->values == ZOO_RANDOM) {
        const double ratio = oracle_ratio(nnz, 1, val->out, 1, right, 1,
                                          bound, t->k);

        ck_assert_msg(ratio <= (wide ? 1 : ldexp(1, 29)),
                      "%s: error is %g bounds", what, ratio);
    } else {
        const int64_t p = oracle_differs(nnz, 1, val->out, 1, right, 1);

        ck_assert_msg(p < 0, "%s: entry %lld is %.17g, not %.17g", what,
                      (long long)p, val->out[p], right[p]);
    }
}

void try(const trial *t)
{
    const sps_csr *A = t->r->A;
    const sps_dtype type = t->r->block;
    const size_t count = (size_t)A->nnz + 1;
    double *right = calloc(count, sizeof *right);
    double *bound = calloc(count, sizeof *bound);
    image U, V, val;

    image_open_as(&U, ctx, type, A->nrow, t->k, t->layout,
                  t->alpha == 0.0 ? 0 : 3, t->values);
    image_open_as(&V, ctx, type, A->ncol, t->k, t->layout / LAYOUTS,
                  t->alpha == 0.0 ? 0 : 4, t->values);
    image_open_as(&val, ctx, type, A->nnz, 1, 1, t->beta == 0.0 ? 0 : 5,
                  t->values);
    memcpy(right, val.data, (size_t)A->nnz * sizeof *right);
    oracle_sddmm(A, t->alpha, U.data, U.ld, V.data, V.ld, t->k, t->multiply,
                 t->beta, right, bound);
    sample(t->r, t, &U, &V, &val);
    judge(t, &val, right, bound);
    image_close(&U);
    image_close(&V);
    image_close(&val);
    free(right);
    free(bound);
}

void try_in_turn(const rig *r, const types *t, int k)
{
    static const double scalars[][2] = { { 1, 0 }, { -1, 1 }, { 2, -3 },
                                         { 0, 2 }, { 0, 0 } };
    static int turn;
    const double *s = scalars[turn % COUNT(scalars)];
    const trial one = { r, k, turn * 7 / 3 % (LAYOUTS * LAYOUTS), s[0], s[1],
                        turn % 2 == 0, t->exact };

    turn++;
    try(&one);
}

int main(void)
{
    Suite *s = suite_create("conform_sddmm");
    TCase *t = tcase_create("sddmm");

    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, open_context, close_context);
    add_exact(t);
    add_others(t);
    suite_add_tcase(s, t);
    return runner_run(s);
}
