/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_sddmm.c - every listed SDDMM kernel of the place against the
 * contract in kernel.h: val = alpha (u_i . v_j) [a_ij] + beta val on the
 * stored entries.  Integers bit for bit, random data within the bound, in
 * blocks of doubles and of floats.  SPS_TEST_KERNEL=name looks at one kernel
 * only; SPS_TEST_QUICK=1 takes few sizes, SPS_TEST_LONG=1 many repetitions and
 * a block beyond 2^31 numbers. */
#include <check.h>
#include <math.h>

#include "block.h"
#include "image.h"
#include "oracle.h"
#include "rig.h"
#include "runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

/* Inner dimensions at the edges of pairs, fragments and groups of lanes. */
static const int WIDTHS[] = { 1,  2,  3,  4,  5,  7,  8,   9,   15, 16,
                              17, 31, 32, 33, 64, 100, 128, 129 };

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define FOR_KERNELS(kernel)                                                    \
    for (int i_ = 0; (kernel = rig_kernel(ctx, SPS_OP_SDDMM, i_)); i_++)

/* Types of A and of the blocks, and the integers that stay exact in them. */
typedef struct types {
    sps_dtype matrix, block;
    zoo_values exact;
} types;

static const types TYPE[] = {
    { SPS_F64, SPS_F64, ZOO_INTEGER },
    { SPS_F32, SPS_F64, ZOO_INTEGER },
    { SPS_F32, SPS_F32, ZOO_SMALL },
};

static bool quick(void) { return fixture_env("SPS_TEST_QUICK"); }

typedef struct trial {
    const rig *r;
    int k, layout;           /* of U, and LAYOUTS times that of V */
    double alpha, beta;
    bool multiply;
    zoo_values values;
} trial;

static void rig_open_as(rig *r, int family, int64_t n, zoo_values values,
                        const types *t)
{
    rig_open(r, ctx, family, n, values, t->matrix);
    r->block = t->block;
}

/* --------------------------------------------------------------- one run */

static void sample(const rig *r, const trial *t, const image *U,
                   const image *V, const image *val)
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

/* Old values are NaN when beta = 0, U and V are NaN when alpha = 0. */
static void try(const trial *t)
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

/* Integers: layouts and scalars take turns. */
static void try_in_turn(const rig *r, const types *t, int k)
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

/* ----------------------------------------------------------------- exact */

/* All families at all widths; how many plans there were. */
static int try_zoo(const sps_kernel *kernel, const types *t, int step)
{
    int fitted = 0;

    for (int f = 0; f < zoo_count(); f++) {
        rig r;

        rig_open_as(&r, f, 70, t->exact, t);
        for (int w = 0; w < COUNT(WIDTHS); w += step)
            if (rig_plan(&r, kernel, WIDTHS[w])) {
                try_in_turn(&r, t, WIDTHS[w]);
                fitted++;
            }
        rig_close(&r);
    }
    return fitted;
}

START_TEST(sddmm_equals_the_oracle_exactly_on_integers)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int d = 0; d < COUNT(TYPE); d++) {
            const types *t = &TYPE[d];

            if (t->block == SPS_F32 && !(kernel->gives & SPS_SINGLE_BLOCKS))
                continue;
            ck_assert_msg(try_zoo(kernel, t, quick() ? 4 : 1) > 0,
                          "%s fits nothing of the zoo", kernel->name);
        }
}
END_TEST

/* Blocks as the library makes them, aligned, whatever is left of a piece. */
START_TEST(every_width_is_exact_in_own_blocks)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int d = 0; d < COUNT(TYPE); d++) {
            rig r;

            rig_open_as(&r, zoo_find("uniform"), 60, TYPE[d].exact, &TYPE[d]);
            for (int k = 1; k <= 140; k += quick() ? 6 : 1) {
                const trial t = { &r, k, 0, 2.0, k % 3, k % 2 == 0,
                                  TYPE[d].exact };

                if (rig_plan(&r, kernel, k)) try(&t);
            }
            rig_close(&r);
        }
}
END_TEST

START_TEST(sddmm_of_tiny_and_of_many_rows_is_exact)
{
    const int64_t sizes[] = { 0, 1, 2, 9, 1100 };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++)
            for (int s = 0; s < COUNT(sizes); s++) {
                const types *t = &TYPE[(f + s) % COUNT(TYPE)];
                rig r;

                rig_open_as(&r, f, sizes[s], t->exact, t);
                if (rig_plan(&r, kernel, 5)) try_in_turn(&r, t, 5);
                rig_close(&r);
            }
}
END_TEST

/* Lengths at the edges of pieces of rows, of stretches of rows and entries,
 * and far beyond; columns side by side and far apart. */
START_TEST(rows_of_all_lengths_are_exact)
{
    static const int32_t length[] = {
        7,   0,   8,   9,   1,   15,  16,  17,  31,  32,   33,   63,  64,
        65,  127, 128, 129, 0,   0,   0,   238, 239, 240,  241,  242, 478,
        479, 480, 481, 255, 256, 257, 511, 512, 513, 1023, 1025, 2,   4097,
    };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int d = 0; d < COUNT(TYPE); d++)
            for (int w = d; w < COUNT(WIDTHS); w += quick() ? 6 : 3) {
                const types *t = &TYPE[d];
                rig r;

                rig_take(&r, ctx, "rows of all lengths",
                         zoo_rows(2 * COUNT(length) + 1, 9000, length,
                                  COUNT(length), 3, 7, t->exact, t->matrix));
                r.block = t->block;
                if (rig_plan(&r, kernel, WIDTHS[w]))
                    try_in_turn(&r, t, WIDTHS[w]);
                rig_close(&r);
            }
}
END_TEST

/* More empty rows than any stretch of work holds, before, between and after. */
START_TEST(deserts_of_empty_rows_are_exact)
{
    static const int64_t at[] = { 0, 700, 701, 5000, 5031, 20000 };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int a = 0; a < COUNT(at); a++)
            for (int d = 0; d < COUNT(TYPE); d++) {
                int32_t *length = calloc(20001, sizeof *length);
                const types *t = &TYPE[d];
                rig r;

                for (int b = 0; b <= a; b++) length[at[b]] = 3 + 40 * b;
                rig_take(&r, ctx, "deserts",
                         zoo_rows(20001, 300, length, 20001, 0, 7, t->exact,
                                  t->matrix));
                r.block = t->block;
                if (rig_plan(&r, kernel, 16)) try_in_turn(&r, t, 16);
                rig_close(&r);
                free(length);
            }
}
END_TEST

START_TEST(offsets_of_64_bits_are_exact_too)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++) {
            const types *t = &TYPE[f % COUNT(TYPE)];
            rig r;

            rig_open_as(&r, f, 300, t->exact, t);
            rig_wide(&r);
            if (rig_plan(&r, kernel, 16)) try_in_turn(&r, t, 16);
            if (rig_plan(&r, kernel, 33)) try_in_turn(&r, t, 33);
            rig_close(&r);
        }
}
END_TEST

/* Drops the last entry of every `step`-th row. */
static void drop_entries(sps_csr *A, int64_t step)
{
    const size_t size = A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    int64_t to = 0, from = 0;

    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t all = A->rowptr[i + 1] - from;
        const int64_t kept = all - (i % step == 0 && all > 0);

        memmove(A->col + to, A->col + from, (size_t)kept * sizeof *A->col);
        memmove((char *)A->val + (size_t)to * size,
                (char *)A->val + (size_t)from * size, (size_t)kept * size);
        from += all;
        to += kept;
        A->rowptr[i + 1] = to;
    }
    A->nnz = to;
}

/* Nodes of several unknowns: rows that store the same columns; some that
 * nearly do; rows left over. */
START_TEST(rows_of_nodes_are_exact)
{
    static const int widths[] = { 4, 8, 16, 32, 33, 64, 128 };
    static const struct { const char *name; int64_t n, step; } shape[] = {
        { "grid27_dof3", 1029, 2000 }, { "grid27_dof3", 1030, 50 },
        { "block_dense", 402, 2000 },  { "block_dense", 403, 50 },
        { "grid27_dof3", 1029, 4 },
    };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int n = 0; n < COUNT(shape); n++)
            for (int d = 0; d < COUNT(TYPE); d++) {
                const types *t = &TYPE[d];
                sps_csr *A = zoo_matrix(zoo_find(shape[n].name), shape[n].n, 7,
                                        t->exact, t->matrix);
                rig r;

                drop_entries(A, shape[n].step);
                rig_take(&r, ctx, shape[n].name, A);
                r.block = t->block;
                for (int w = 0; w < COUNT(widths); w += quick() ? 3 : 1)
                    if (rig_plan(&r, kernel, widths[w]))
                        for (int i = 0; i < 2; i++)
                            try_in_turn(&r, t, widths[w]);
                rig_close(&r);
            }
}
END_TEST

START_TEST(an_sddmm_plan_serves_every_narrower_width)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int d = 0; d < COUNT(TYPE); d++) {
            rig r;

            rig_open_as(&r, zoo_find("uniform"), 80, TYPE[d].exact, &TYPE[d]);
            if (rig_plan(&r, kernel, 33))
                for (int k = 1; k <= 33; k++) try_in_turn(&r, &TYPE[d], k);
            rig_close(&r);
        }
}
END_TEST

START_TEST(sddmm_sees_refreshed_values)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++) {
            const types *t = &TYPE[f % COUNT(TYPE)];
            rig r;
            const trial one = { &r, 9, 0, 1.0, 0.0, true, t->exact };

            rig_open_as(&r, f, 90, t->exact, t);
            if (rig_plan(&r, kernel, 9)) {
                try(&one);
                rig_other_values(&r, 8);
                try(&one);
            }
            rig_close(&r);
        }
}
END_TEST

/* ---------------------------------------------------------------- bounds */

START_TEST(sddmm_of_random_data_stays_within_the_bound)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel) {
        if (!(kernel->gives & SPS_FULL_PRECISION)) continue;
        for (int f = 0; f < zoo_count(); f++)
            for (int w = f % 3; w < COUNT(WIDTHS); w += 3) {
                const types *t = &TYPE[(f + w) % COUNT(TYPE)];
                const bool scales = t->block == SPS_F64 && f % 2 == 0;
                rig r;
                const trial one = { &r, WIDTHS[w], (w + 6 * f) %
                                    (LAYOUTS * LAYOUTS), 0.37, -1.25,
                                    w % 2 == 0, ZOO_RANDOM };

                rig_open_as(&r, f, 150, scales ? ZOO_SCALES : ZOO_RANDOM, t);
                if (rig_plan(&r, kernel, WIDTHS[w])) try(&one);
                rig_close(&r);
            }
    }
}
END_TEST

/* ------------------------------------------------------------------ SpMM */

/* sum over p in row i of a_p (u_i . v_j) = u_i . (A V)_i: exactly. */
static void compare_with_spmm(rig *r, int k)
{
    const sps_csr *A = r->A;
    double *u = zoo_block(A->nrow, k, k, 3, ZOO_SMALL);
    double *v = zoo_block(A->ncol, k, k, 4, ZOO_SMALL);
    double *y = malloc((size_t)(A->nrow * k + 1) * sizeof *y);
    sps_block *V = fixture_block(ctx, A->ncol, k, v, k);
    sps_block *Y = fixture_block(ctx, A->nrow, k, NULL, k);
    const trial t = { r, k, 0, 1.0, 0.0, true, ZOO_SMALL };
    image left, right, val;

    OK(ctx, sps_operator_apply(r->op, 1.0, V, 0.0, Y));
    OK(ctx, sps_block_get(Y, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST));
    image_take(&left, ctx, SPS_F64, A->nrow, k, 0, u, k);
    image_take(&right, ctx, SPS_F64, A->ncol, k, 0, v, k);
    image_open(&val, ctx, A->nnz, 1, 1, 0, ZOO_INTEGER);
    sample(r, &t, &left, &right, &val);
    image_read(&val, r->plan->kernel->name);
    for (int64_t i = 0; i < A->nrow; i++) {
        double samples = 0, product = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            samples += val.out[p];
        for (int j = 0; j < k; j++) product += u[i * k + j] * y[i * k + j];
        ck_assert_msg(samples == product, "%s on %s, k %d, row %lld: samples "
                      "sum to %.17g, the product says %.17g",
                      r->plan->kernel->name, r->what, k, (long long)i, samples,
                      product);
    }
    image_close(&left);
    image_close(&right);
    image_close(&val);
    sps_block_destroy(&V);
    sps_block_destroy(&Y);
    free(u);
    free(v);
    free(y);
}

START_TEST(samples_of_a_row_sum_to_what_spmm_says)
{
    const int widths[] = { 1, 4, 17, 33 };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++)
            for (int w = 0; w < COUNT(widths); w++) {
                rig r;

                rig_open(&r, ctx, f, 400, ZOO_INTEGER, SPS_F64);
                if (r.A->nnz > 0 && rig_plan(&r, kernel, widths[w]))
                    compare_with_spmm(&r, widths[w]);
                rig_close(&r);
            }
}
END_TEST

/* ------------------------------------------------------------------ bits */

/* Runs with random data; the caller frees what comes back. */
static double *samples(const rig *r, int k)
{
    const trial t = { r, k, 0, 0.7, 0.0, true, ZOO_RANDOM };
    double *out = malloc((size_t)(r->A->nnz + 1) * sizeof *out);
    image U, V, val;

    image_open_as(&U, ctx, r->block, r->A->nrow, k, 0, 3, ZOO_RANDOM);
    image_open_as(&V, ctx, r->block, r->A->ncol, k, 0, 4, ZOO_RANDOM);
    image_open_as(&val, ctx, r->block, r->A->nnz, 1, 1, 0, ZOO_RANDOM);
    sample(r, &t, &U, &V, &val);
    image_read(&val, r->plan->kernel->name);
    memcpy(out, val.out, (size_t)r->A->nnz * sizeof *out);
    image_close(&U);
    image_close(&V);
    image_close(&val);
    return out;
}

/* Runs again with the same plan, and at last with a fresh one. */
static void repeat(rig *r, const sps_kernel *kernel, int k, int runs)
{
    double *first = samples(r, k);

    for (int i = 0; i < runs; i++) {
        double *again;

        if (i == runs - 1) rig_plan(r, kernel, k);
        again = samples(r, k);
        ck_assert_msg(!memcmp(first, again, (size_t)r->A->nnz * sizeof *again),
                      "%s on %s, k %d: other bits at another run",
                      kernel->name, r->what, k);
        free(again);
    }
    free(first);
}

START_TEST(reproducible_kernels_repeat_their_bits)
{
    const int runs = fixture_env("SPS_TEST_LONG") ? 20 : 2;
    const int widths[] = { 3, 16, 33 };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel) {
        if (!(kernel->gives & SPS_REPRODUCIBLE)) continue;
        for (int f = 0; f < zoo_count(); f++) {
            rig r;

            rig_open_as(&r, f, 1500, ZOO_RANDOM, &TYPE[f % COUNT(TYPE)]);
            if (rig_plan(&r, kernel, widths[f % COUNT(widths)]))
                repeat(&r, kernel, widths[f % COUNT(widths)], runs);
            rig_close(&r);
        }
    }
}
END_TEST

/* ---------------------------------------------------------- NaN, big blocks */

/* A NaN in row `poison` of V reaches the entries of that column and no
 * others; padding is NaN all the time. */
START_TEST(nan_of_a_row_stays_with_its_entries)
{
    const int widths[] = { 8, 5, 33 };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++) {
            const int k = widths[f % COUNT(widths)];
            image U, V, val;
            rig r;
            const trial t = { &r, k, 0, 1.0, 0.0, false, ZOO_SMALL };

            rig_open_as(&r, f, 70, ZOO_SMALL, &TYPE[f % COUNT(TYPE)]);
            if (r.A->ncol == 0 || !rig_plan(&r, kernel, k)) {
                rig_close(&r);
                continue;
            }
            image_open_as(&U, ctx, r.block, r.A->nrow, k, 2, 3, ZOO_SMALL);
            image_open_as(&V, ctx, r.block, r.A->ncol, k, 3, 4, ZOO_SMALL);
            image_open_as(&val, ctx, r.block, r.A->nnz, 1, 1, 0, ZOO_SMALL);
            V.data[r.A->ncol / 2 * V.ld + 3] = NAN;
            image_upload(&V);
            sample(&r, &t, &U, &V, &val);
            image_read(&val, kernel->name);
            for (int64_t p = 0; p < r.A->nnz; p++)
                ck_assert_msg(isnan(val.out[p]) ==
                              (r.A->col[p] == r.A->ncol / 2),
                              "%s on %s: entry %lld", kernel->name, r.what,
                              (long long)p);
            image_close(&U);
            image_close(&V);
            image_close(&val);
            rig_close(&r);
        }
}
END_TEST

/* A block of n rows, 2^31 numbers from end to end, of which the first k of
 * each row are there: ones times the number of the row in 0 .. 6.  false: the
 * place has no room for it. */
static bool open_vast(sps_block *B, int64_t n, int k, void **room,
                      size_t *bytes)
{
    const int64_t ld = (INT64_C(1) << 31) / (n - 1) + 2;
    double row[64];

    *bytes = ((size_t)(n - 1) * (size_t)ld + (size_t)k) * sizeof *row;
    if (ctx->backend->alloc(ctx, *bytes, room) != SPS_OK) return false;
    *B = (sps_block){ .ctx = ctx, .n = n, .k = k, .ld = ld, .data = *room,
                      .dtype = SPS_F64, .width = k };
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < k; j++) row[j] = (double)(i % 7);
        OK(ctx, ctx->backend->upload(ctx, (double *)*room + i * ld, row,
                                     (size_t)k * sizeof *row));
    }
    return true;
}

START_TEST(blocks_beyond_2_31_numbers_are_exact)
{
    const sps_kernel *kernel;
    sps_block V;
    void *room;
    size_t bytes;
    rig r;

    if (!fixture_env("SPS_TEST_LONG") ||
        !open_vast(&V, 1000, 16, &room, &bytes))
        return;
    rig_open(&r, ctx, zoo_find("uniform"), 1000, ZOO_INTEGER, SPS_F64);
    FOR_KERNELS(kernel) {
        image val;
        const trial t = { &r, 16, 0, 1.0, 0.0, false, ZOO_INTEGER };

        if (!rig_plan(&r, kernel, 16)) continue;
        image_open(&val, ctx, r.A->nnz, 1, 1, 0, ZOO_INTEGER);
        sample(&r, &t, &(image){ .B = &V }, &(image){ .B = &V }, &val);
        image_read(&val, kernel->name);
        for (int64_t i = 0; i < r.A->nrow; i++)
            for (int64_t p = r.A->rowptr[i]; p < r.A->rowptr[i + 1]; p++)
                ck_assert_msg(val.out[p] == 16.0 * (double)(i % 7) *
                              (r.A->col[p] % 7), "%s: row %lld, column %d",
                              kernel->name, (long long)i, r.A->col[p]);
        image_close(&val);
    }
    ctx->backend->release(ctx, room, bytes);
    rig_close(&r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conform_sddmm");
    TCase *t = tcase_create("sddmm");

    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, open_context, close_context);
    tcase_add_test(t, sddmm_equals_the_oracle_exactly_on_integers);
    tcase_add_test(t, every_width_is_exact_in_own_blocks);
    tcase_add_test(t, sddmm_of_tiny_and_of_many_rows_is_exact);
    tcase_add_test(t, rows_of_all_lengths_are_exact);
    tcase_add_test(t, deserts_of_empty_rows_are_exact);
    tcase_add_test(t, offsets_of_64_bits_are_exact_too);
    tcase_add_test(t, rows_of_nodes_are_exact);
    tcase_add_test(t, an_sddmm_plan_serves_every_narrower_width);
    tcase_add_test(t, sddmm_sees_refreshed_values);
    tcase_add_test(t, sddmm_of_random_data_stays_within_the_bound);
    tcase_add_test(t, samples_of_a_row_sum_to_what_spmm_says);
    tcase_add_test(t, reproducible_kernels_repeat_their_bits);
    tcase_add_test(t, nan_of_a_row_stays_with_its_entries);
    tcase_add_test(t, blocks_beyond_2_31_numbers_are_exact);
    suite_add_tcase(s, t);
    return runner_run(s);
}
