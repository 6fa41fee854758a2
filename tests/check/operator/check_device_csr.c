/* SPDX-License-Identifier: BSD-3-Clause */
/* check_device_csr.c - an operator of a csr on a GPU: checked, measured and
 * planned there, equal in everything to that of the same csr on the host.
 *
 * On the host, what the kernels of a GPU would count entry by entry is counted
 * so. */
#include <check.h>

#include "matrix/windows.h"
#include "tests/check/operator/device_csr_fixture.h"
#include "tests/problems/zoo.h"
#include "tests/support/absent.h"
#include "tests/support/apply.h"

/* ----------------------------------------------------- features, by entries */

/* The entries of a window one by one, in any order, as a GPU takes them. */
static void look_at(const sps_csr *A, const sps_sample *s, int64_t i,
                    sps_sample_sums *sum)
{
    int64_t begin[64], end[64], columns = 0, entries = 0, full = 0;

    for (int r = 0; r < s->rows; r++) {
        begin[r] = i + r < A->nrow ? A->rowptr[i + r] : 0;
        end[r] = i + r < A->nrow ? A->rowptr[i + r + 1] : 0;
        entries += end[r] - begin[r];
    }
    if (entries > s->skip) return;
    if (entries > s->cut) entries = s->cut;
    for (int64_t e = 0, at = 0, r = 0; e < entries; e++) {
        while (e - at >= end[r] - begin[r]) {
            at += end[r] - begin[r];
            r++;
        }
        columns += spsi_sample_first(A->col, begin, end, (int)r,
                                     begin[r] + e - at, s->b);
        if (s->full && r == 0 && e < SPS_SAMPLE_ENTRIES)
            full += spsi_sample_full(A->col, begin, end, begin[0] + e, s->b)
                        ? s->b * s->b : 0;
    }
    sum->entries += entries;
    sum->columns += columns;
    sum->full += full;
    if (columns > sum->most) sum->most = columns;
}

static void by_entries(const sps_csr *A, sps_raw_features *raw)
{
    for (int t = 0; t < SPS_SAMPLE_WIDEST; t++) {
        const sps_sample s = spsi_sample_of(A->nrow, A->nnz, t);

        for (int64_t w = 0; w < s.windows; w++)
            look_at(A, &s, spsi_sample_row(&s, A->nrow, w), &raw->sample[t]);
    }
}

START_TEST(entry_by_entry_and_merged_windows_agree)
{
    static const int64_t sizes[] = { 1, 7, 64, 333, 9000 };

    for (int f = 0; f < zoo_count(); f++)
        for (int i = 0; i < (runner_quick() ? 4 : 5); i++) {
            sps_csr *A = zoo_matrix(f, sizes[i], 7, ZOO_RANDOM, SPS_F64);
            sps_raw_features raw = { 0 };
            sps_features right, got;

            OK(ctx, spsi_features_measure(ctx, A, &right));
            by_entries(A, &raw);
            spsi_features_finish(&raw, A->nrow, A->ncol, A->nnz, &got);
            ck_assert_msg(got.distinct8 == right.distinct8 &&
                          got.distinct64 == right.distinct64 &&
                          got.block == right.block &&
                          got.block_fill == right.block_fill &&
                          !memcmp(got.fill, right.fill, sizeof got.fill),
                          "%s, %lld rows: other samples", zoo_name(f),
                          (long long)A->nrow);
            zoo_free(&A);
        }
}
END_TEST

START_TEST(features_of_the_device_are_those_of_the_host)
{
    static const int64_t sizes[] = { 1, 7, 64, 333, 9000, 60000 };

    if (!on_gpu()) runner_leave_out("features measured on a GPU");
    for (int f = 0; f < zoo_count(); f++)
        for (int i = 0; i < (runner_quick() ? 4 : 6); i++) {
            const sps_dtype dtype = i % 2 ? SPS_F32 : SPS_F64;
            sps_csr *A = zoo_matrix(f, sizes[i], 7, i % 3 ? ZOO_RANDOM
                                                          : ZOO_INTEGER, dtype);
            sps_csr *D = lay_down(A);
            sps_operator *op = operator_of(ctx, D, 1);
            sps_features right;

            OK(ctx, spsi_features_measure(ctx, A, &right));
            ck_assert_msg(!memcmp(&right, &op->f, sizeof right),
                          "%s, %lld rows: other features", zoo_name(f),
                          (long long)A->nrow);
            sps_operator_destroy(&op);
            sps_csr_destroy(ctx, &D);
            zoo_free(&A);
        }
}
END_TEST

/* --------------------------------------------------- choices and products */

static void same_plan(const sps_plan *a, const sps_plan *b, const char *what)
{
    ck_assert_msg(a->kernel == b->kernel && !strcmp(a->detail, b->detail),
                  "%s: %s (%s) from the host, %s (%s) from the GPU", what,
                  a->kernel->name, a->detail, b->kernel->name, b->detail);
}

static void same_product(const sps_operator *a, const sps_operator *b, int k,
                         const char *what)
{
    double *x = zoo_block(a->ncol, k, k, 3, ZOO_RANDOM);
    double *y = zeros(a->n * k), *z = zeros(a->n * k);

    apply(a, 1.0, x, 0.0, y, k);
    apply(b, 1.0, x, 0.0, z, k);
    ck_assert_msg(!memcmp(y, z, (size_t)(a->n * k) * sizeof *y),
                  "%s, k %d: another product", what, k);
    free(x);
    free(y);
    free(z);
}

START_TEST(the_same_kernels_are_chosen_and_give_the_same_bits)
{
    static const int widths[] = { 1, 4, 16 };

    if (!on_gpu()) runner_leave_out("a csr on a GPU");
    for (int f = 0; f < zoo_count(); f++)
        for (int w = 0; w < 3; w++) {
            sps_csr *A = zoo_matrix(f, runner_quick() ? 700 : 20000, 7,
                                    ZOO_RANDOM, SPS_F64);
            sps_csr *D = lay_down(A);
            sps_operator *a = operator_of(ctx, A, widths[w]);
            sps_operator *d = operator_of(ctx, D, widths[w]);

            same_plan(a->block, d->block, zoo_name(f));
            same_plan(a->vector, d->vector, zoo_name(f));
            same_product(a, d, widths[w], zoo_name(f));
            sps_operator_destroy(&a);
            sps_operator_destroy(&d);
            sps_csr_destroy(ctx, &D);
            zoo_free(&A);
        }
}
END_TEST

/* Every kernel, chosen by name, for a csr of 58 MB. */
START_TEST(every_kernel_plans_without_the_host)
{
    const sps_kernel *kernel;
    sps_csr *A, *D;

    if (!on_gpu()) runner_leave_out("a csr on a GPU");
    A = zoo_matrix(zoo_find("grid27_dof3"), 60000, 7, ZOO_RANDOM, SPS_F64);
    D = lay_down(A);
    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++) {
        sps_operator *op = NULL;
        sps_options o;
        int64_t before;
        sps_status st;

        if (kernel->op != SPS_OP_SPMM) continue;
        sps_options_default(&o);
        o.kernel = kernel->name;
        before = bytes_moved();
        st = sps_operator_csr(ctx, D, 16, &o, &op);
        ck_assert_msg(st == SPS_OK || st == SPS_EUNFIT, "%s: %s", kernel->name,
                      sps_context_error(ctx));
        ck_assert_msg(bytes_moved() - before < 65536, "%s moves %lld bytes",
                      kernel->name, (long long)(bytes_moved() - before));
        sps_operator_destroy(&op);
    }
    sps_csr_destroy(ctx, &D);
    zoo_free(&A);
}
END_TEST

START_TEST(an_operator_moves_less_than_64_kB)
{
    static const int widths[] = { 1, 4, 16 };

    if (!on_gpu()) runner_leave_out("a csr on a GPU");
    for (int f = 0; f < zoo_count(); f++)
        for (int w = 0; w < 3; w++) {
            sps_csr *A = zoo_matrix(f, 30000, 7, ZOO_RANDOM, SPS_F64);
            sps_csr *D = lay_down(A);
            const int64_t before = bytes_moved();
            sps_operator *op = operator_of(ctx, D, widths[w]);

            ck_assert_msg(bytes_moved() - before < 65536,
                          "%s, %d columns, kernel %s: %lld bytes", zoo_name(f),
                          widths[w], sps_operator_kernel(op),
                          (long long)(bytes_moved() - before));
            ck_assert_ptr_null(op->A->rowptr);
            sps_operator_destroy(&op);
            sps_csr_destroy(ctx, &D);
            zoo_free(&A);
        }
}
END_TEST

/* A preconditioner checks that coordinates are finite where they are stored. */
START_TEST(coordinates_stay_on_the_gpu)
{
    sps_precond *M = NULL;
    sps_block *X = NULL;
    sps_operator *op;
    sps_csr *A, *D;
    sps_options o;
    int64_t before;

    if (!on_gpu()) runner_leave_out("coordinates on a GPU");
    A = zoo_matrix(zoo_find("grid5"), 30000, 7, ZOO_RANDOM, SPS_F64);
    D = lay_down(A);
    op = operator_of(ctx, D, 4);
    OK(ctx, sps_block_create(ctx, A->nrow, 3, &X));
    OK(ctx, sps_block_random(X, 5));
    sps_options_default(&o);
    o.precond = "jacobi";
    o.coords = X;
    before = bytes_moved();
    OK(ctx, sps_precond_create(op, 4, &o, &M));
    ck_assert_msg(bytes_moved() - before < 65536, "%lld bytes",
                  (long long)(bytes_moved() - before));
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_block_destroy(&X);
    sps_csr_destroy(ctx, &D);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(entry_by_entry_and_merged_windows_agree),
    RUNNER_TEST(features_of_the_device_are_those_of_the_host),
    RUNNER_TEST(the_same_kernels_are_chosen_and_give_the_same_bits),
    RUNNER_TEST(every_kernel_plans_without_the_host),
    RUNNER_TEST(an_operator_moves_less_than_64_kB),
    RUNNER_TEST(coordinates_stay_on_the_gpu),
};
RUNNER_MAIN_WITHIN("csr of the device", tests, open_context, close_context)
