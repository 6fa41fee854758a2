/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_sddmm_others.c - random data, comparison with SpMM, reproducible
 * bits, NaN, a block beyond 2^31 numbers. */
#include "tests/conform/kernels/conform_sddmm.h"

/* ---------------------------------------------------------------- bounds */

START_TEST(sddmm_of_random_data_stays_within_the_bound)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel) {
        if (!(kernel->gives & SPS_FULL_PRECISION)) continue;
        for (int f = 0; f < zoo_count(); f++)
            for (int w = f % 3; w < WIDTH_COUNT; w += 3) {
                const types *t = &TYPE[(f + w) % TYPES];
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

/* sum over p in row i of a_p (u_i . v_j) = u_i . (A V)_i, exactly. */
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

/* Runs with random data; the caller frees the returned array. */
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

/* Runs repeatedly with the same plan, and finally with a new one. */
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

/* Twenty runs for kernels that distribute rows over many thread blocks, two for
 * the others. */
static int runs_of(int family)
{
    static const char *const split[] = { "power_law", "edges", "dense_row",
                                         "rmat", "arrow" };

    if (fixture_env("SPS_TEST_LONG")) return 20;
    for (int s = 0; s < COUNT(split); s++)
        if (ctx->backend->place == SPS_CUDA &&
            !strcmp(split[s], zoo_name(family)))
            return 20;
    return 2;
}

static void repeat_on(const sps_kernel *kernel, int family, const types *t,
                      int k)
{
    rig r;

    rig_open_as(&r, family, 1500, ZOO_RANDOM, t);
    if (rig_plan(&r, kernel, k)) repeat(&r, kernel, k, runs_of(family));
    rig_close(&r);
}

/* One width and type for each family in turn; the long form takes all widths
 * with each. */
START_TEST(reproducible_kernels_repeat_their_bits)
{
    static const int widths[] = { 3, 16, 33, 8, 64, 129 };
    const bool all = fixture_env("SPS_TEST_LONG");
    const sps_kernel *kernel;

    FOR_KERNELS(kernel) {
        if (!(kernel->gives & SPS_REPRODUCIBLE)) continue;
        for (int f = 0; f < zoo_count(); f++)
            for (int w = 0; w < (all ? COUNT(widths) : 3); w++)
                if (all || w == f % 3)
                    repeat_on(kernel, f, &TYPE[(f + w / 3) % TYPES], widths[w]);
    }
}
END_TEST

/* ---------------------------------------------------------- NaN, big blocks */

/* A NaN in row `poison` of V reaches the entries of that column only; the
 * padding is NaN all the time. */
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

            rig_open_as(&r, f, 70, ZOO_SMALL, &TYPE[f % TYPES]);
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

/* A block of n rows that spans 2^31 numbers, of which only the first k of each
 * row exist: all equal to the row number mod 7. */
static void open_vast(sps_block *B, int64_t n, int k, void **room,
                      size_t *bytes)
{
    const int64_t ld = (INT64_C(1) << 31) / (n - 1) + 2;
    double row[64];

    *bytes = ((size_t)(n - 1) * (size_t)ld + (size_t)k) * sizeof *row;
    ck_assert_msg(ctx->backend->alloc(ctx, *bytes, room) == SPS_OK, "no memory "
                  "for a block of %.1f GB", 1e-9 * (double)*bytes);
    *B = (sps_block){ .ctx = ctx, .n = n, .k = k, .ld = ld, .data = *room,
                      .dtype = SPS_F64, .width = k };
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < k; j++) row[j] = (double)(i % 7);
        OK(ctx, ctx->backend->upload(ctx, (double *)*room + i * ld, row,
                                     (size_t)k * sizeof *row));
    }
}

START_TEST(blocks_beyond_2_31_numbers_are_exact)
{
    const sps_kernel *kernel;
    sps_block V;
    void *room;
    size_t bytes;
    rig r;

    if (!fixture_env("SPS_TEST_LONG") || fixture_env("SPS_TEST_QUICK"))
        runner_leave_out("the long form's");
    open_vast(&V, 1000, 16, &room, &bytes);
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

void add_others(TCase *t)
{
    tcase_add_test(t, sddmm_of_random_data_stays_within_the_bound);
    tcase_add_test(t, samples_of_a_row_sum_to_what_spmm_says);
    tcase_add_test(t, reproducible_kernels_repeat_their_bits);
    tcase_add_test(t, nan_of_a_row_stays_with_its_entries);
    tcase_add_test(t, blocks_beyond_2_31_numbers_are_exact);
}
