/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_finite.c - NaN and infinity propagate to the results that
 * depend on them, and to no others. */
#include "tests/conform/kernels/conform_kernels.h"

/* Entry (i, c) of A; 0: not stored (the zoo stores no zeros). */
static double entry(const sps_csr *A, int64_t i, int64_t c)
{
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        if (A->col[p] == c) return spsi_csr_value(A, p);
    return 0;
}

/* Y = A X where X is finite except for (c, j): a row that stores column c is
 * not finite in column j, everything else is correct; only kernels without
 * SPS_NAN_STAYS_IN_ROW may make other rows of column j not finite.  Kernels
 * with it, in full precision, must give an infinity its sign, and not a NaN
 * from a product with a zero. */
static void poison_x(const exam *e, int k, int64_t c, int j, double value)
{
    const sps_kernel *kernel = e->r.plan->kernel;
    const bool strict = kernel->gives & SPS_NAN_STAYS_IN_ROW;
    const bool exact = strict && kernel->gives & SPS_FULL_PRECISION;
    const trial t = { k, layout++, 1, 0, false };
    const sps_csr *A = e->r.A;
    image X, Y;

    image_take(&X, ctx, e->t->block, A->ncol, k, t.layout, e->x, e->k);
    image_take(&Y, ctx, e->t->block, A->nrow, k, t.layout, NULL, k);
    X.data[c * X.ld + j] = value;
    image_upload(&X);
    run(e, &t, X.B, Y.B);
    image_read(&Y, kernel->name);
    for (int64_t i = 0; i < A->nrow; i++) {
        const double a = entry(A, i, c);

        for (int l = 0; l < k; l++) {
            const double y = Y.out[i * Y.ld + l];

            if (l == j && a != 0)
                demand(exact && isinf(value) ? y == a * value : !isfinite(y),
                       "%s on %s: row %lld made %g of a %g", kernel->name,
                       e->r.what, (long long)i, y, value);
            else if (l != j || strict)
                demand(y == e->sum[i * e->k + l], "%s on %s k %d: %g "
                       "at (%lld, %d) of X reached (%lld, %d) of Y",
                       kernel->name, e->r.what, k, value, (long long)c,
                       j, (long long)i, l);
        }
    }
    image_close(&X);
    image_close(&Y);
}

/* NaN or infinity in one entry of A: only that row is not finite. */
static void poison_a(exam *e, int k, double value)
{
    const trial t = { k, layout, 1, 0, layout % 2 == 0 };
    const char *name = e->r.plan->kernel->name;
    const sps_csr *A = e->r.A;
    const int64_t p = A->nnz / 2;
    const double good = spsi_csr_value(A, p);
    image X, Y;

    layout++;
    image_take(&X, ctx, e->t->block, A->ncol, k, t.layout, e->x, e->k);
    image_take(&Y, ctx, e->t->block, A->nrow, k, t.layout, NULL, k);
    rig_set_value(&e->r, p, value);
    rig_refresh(&e->r);
    run(e, &t, X.B, Y.B);
    image_read(&Y, name);
    for (int64_t i = 0; i < A->nrow; i++)
        for (int j = 0; j < k; j++) {
            const bool hit = A->rowptr[i] <= p && p < A->rowptr[i + 1];
            const double y = Y.out[i * Y.ld + j];

            demand(hit ? !isfinite(y) : y == e->sum[i * e->k + j],
                   "%s on %s k %d: %g in A gives %g at (%lld, %d)",
                   name, e->r.what, k, value, y, (long long)i, j);
        }
    rig_set_value(&e->r, p, good);
    rig_refresh(&e->r);
    image_close(&X);
    image_close(&Y);
}

START_TEST(nan_and_infinity_stay_where_they_belong)
{
    const int step = quick() ? 9 : 1;
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = 0; f < zoo_count() && wanted(&TYPE[d]); f += step) {
            exam e;

            exam_open(&e, f, 90, TYPE[d].exact, &TYPE[d], 33);
            for (int w = f % 2; e.r.A->ncol > 0 && w < FEW_COUNT; w += 2)
                FOR_KERNELS(kernel) {
                    const int k = FEW[w];

                    if (!takes(kernel, &TYPE[d]) ||
                        !rig_plan(&e.r, kernel, k))
                        continue;
                    poison_x(&e, k, e.r.A->ncol / 2, k / 2, NAN);
                    poison_x(&e, k, e.r.A->ncol / 2, k - 1, INFINITY);
                    poison_x(&e, k, 0, 0, NAN);
                    if (e.r.A->nnz == 0) continue;
                    poison_a(&e, k, NAN);
                    poison_a(&e, k, -INFINITY);
                }
            exam_close(&e);
        }
}
END_TEST

/* ---------------------------------------------------------- unused columns */

/* Rows of X that no row of A references are NaN: all of them for kernels with
 * SPS_NAN_STAYS_IN_ROW, otherwise those without a referenced row within 32. */
static void poison_unused(const exam *e, int k)
{
    const sps_kernel *kernel = e->r.plan->kernel;
    const bool strict = kernel->gives & SPS_NAN_STAYS_IN_ROW;
    const trial t = { k, layout++, 1, 0, false };
    const sps_csr *A = e->r.A;
    const int64_t near = strict ? 0 : 32;
    bool *used = calloc((size_t)A->ncol + 1, sizeof *used);
    image X, Y;

    for (int64_t p = 0; p < A->nnz; p++)
        for (int64_t c = A->col[p] - near; c <= A->col[p] + near; c++)
            if (c >= 0 && c < A->ncol) used[c] = true;
    image_take(&X, ctx, e->t->block, A->ncol, k, t.layout, e->x, e->k);
    image_take(&Y, ctx, e->t->block, A->nrow, k, t.layout, NULL, k);
    for (int64_t c = 0; c < A->ncol; c++)
        for (int j = 0; j < k && !used[c]; j++) X.data[c * X.ld + j] = NAN;
    image_upload(&X);
    run(e, &t, X.B, Y.B);
    image_read(&Y, kernel->name);
    judge(e, &t, &Y, kernel->name);
    image_close(&X);
    image_close(&Y);
    free(used);
}

START_TEST(columns_that_no_row_uses_are_not_read)
{
    static const int32_t length[] = { 3, 9, 0, 17, 1, 33, 64, 2, 129, 5 };
    static const int64_t first[] = { 1, 160 };
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int i = 0; i < 2 && wanted(&TYPE[d]); i++) {
            exam e;

            exam_take(&e, "rows that leave the first columns unused",
                      zoo_rows(95, 470, length, COUNT(length), first[i], 7,
                               TYPE[d].exact, TYPE[d].matrix),
                      TYPE[d].exact, &TYPE[d], 33);
            for (int w = 0; w < FEW_COUNT; w++)
                FOR_KERNELS(kernel)
                    if (takes(kernel, &TYPE[d]) &&
                        rig_plan(&e.r, kernel, FEW[w]))
                        poison_unused(&e, FEW[w]);
            exam_close(&e);
        }
}
END_TEST

/* Windows without entries have no row of X to pad their slots with. */
START_TEST(windows_without_entries_read_nothing)
{
    const sps_kernel *kernel;
    int32_t length[512] = { 0 };

    for (int i = 256; i < 512; i++) length[i] = 150;
    for (int d = 0; d < TYPES; d++) {
        exam e;

        if (!wanted(&TYPE[d])) continue;
        exam_take(&e, "rows of which half are empty",
                  zoo_rows(512, 512, length, 512, 300, 7, TYPE[d].exact,
                           TYPE[d].matrix), TYPE[d].exact, &TYPE[d], 17);
        for (int w = 0; w < FEW_COUNT && FEW[w] <= 17; w++)
            FOR_KERNELS(kernel)
                if (takes(kernel, &TYPE[d]) &&
                    rig_plan(&e.r, kernel, FEW[w]))
                    poison_unused(&e, FEW[w]);
        exam_close(&e);
    }
}
END_TEST

/* The rows that a NaN in row c of X may reach where a kernel multiplies dense
 * blocks of up to 32 x 32: rows within 31 of a row that stores a column within
 * 31 of c. */
enum { BESIDE = 31 };

static bool *rows_beside(const sps_csr *A, int64_t c)
{
    bool *may = calloc((size_t)A->nrow + 1, sizeof *may);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            if (A->col[p] < c - BESIDE || A->col[p] > c + BESIDE) continue;
            for (int64_t r = i - BESIDE; r <= i + BESIDE; r++)
                if (r >= 0 && r < A->nrow) may[r] = true;
            break;
        }
    return may;
}

/* A NaN at (c, 0) of X reaches no other rows. */
static void spoil(const exam *e, int k, int64_t c)
{
    const trial t = { k, layout++, 1, 0, false };
    const sps_csr *A = e->r.A;
    bool *may = rows_beside(A, c);
    image X, Y;

    image_take(&X, ctx, e->t->block, A->ncol, k, t.layout, e->x, e->k);
    image_take(&Y, ctx, e->t->block, A->nrow, k, t.layout, NULL, k);
    X.data[c * X.ld] = NAN;
    image_upload(&X);
    run(e, &t, X.B, Y.B);
    image_read(&Y, e->r.plan->kernel->name);
    for (int64_t i = 0; i < A->nrow; i++)
        demand(may[i] || Y.out[i * Y.ld] == e->sum[i * e->k], "%s on %s: a "
               "NaN in row %lld of X reached row %lld",
               e->r.plan->kernel->name, e->r.what, (long long)c,
               (long long)i);
    image_close(&X);
    image_close(&Y);
    free(may);
}

/* Kernels that multiply dense blocks may propagate a NaN to other rows, but
 * only within blocks that contain its column. */
START_TEST(nan_leaves_no_block)
{
    static const char *const patterns[] = { "diagonal", "nodes2", "band",
                                            "nodes7", "grid7", "nodes6",
                                            "grid27_dof3", "blocks8" };
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = quick() ? d % 2 : 0;
             f < COUNT(patterns) && wanted(&TYPE[d]); f += quick() ? 2 : 1) {
            exam e;

            exam_open(&e, zoo_find(patterns[f]), 8000, TYPE[d].exact,
                      &TYPE[d], 8);
            FOR_KERNELS(kernel)
                for (int k = 8; k >= 1; k -= 7)
                    if (!(kernel->gives & SPS_NAN_STAYS_IN_ROW) &&
                        takes(kernel, &TYPE[d]) && rig_plan(&e.r, kernel, k))
                        for (int64_t c = 0; c < e.r.A->ncol; c += 1999)
                            spoil(&e, k, c);
            exam_close(&e);
        }
}
END_TEST

void add_finite(TCase *t)
{
    tcase_add_test(t, nan_and_infinity_stay_where_they_belong);
    tcase_add_test(t, columns_that_no_row_uses_are_not_read);
    tcase_add_test(t, windows_without_entries_read_nothing);
    tcase_add_test(t, nan_leaves_no_block);
}
