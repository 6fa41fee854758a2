/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_backend.c - every operation of the backend under test is compared
 * with plain loops: integer data bit for bit first, then random numbers with
 * error bounds.  Blocks are in guarded memory.  SPS_TEST_QUICK=1 takes every
 * fifth shape. */
#include "tests/conform/kernels/conform_backend.h"

static const int widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16,
                             17, 20, 23, 24, 31, 32, 33, 48, 64, 65, 96, 100,
                             128};
static const int64_t lengths[] = {1, 2, 3, 7, 31, 127, 128, 129,
                                  1023, 1024, 1025, 2049, 4100};
static const int few[] = {1, 3, 8, 16};

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* Five is coprime to the 3 layouts per width and the 4 widths per length, so
 * that every fifth shape still covers all of them. */
bool shape_at(int number, shape *s)
{
    const int i = runner_quick() ? 5 * number : number;
    const int w = i / 3, rest = i - 3 * COUNT(widths);

    *s = (shape){.n = 77, .k = 1, .offset = 0};
    if (rest < 0) {
        s->k = widths[w];
        s->ld = i % 3 == 0 ? s->k : i % 3 == 1 ? spsi_block_ld(s->k)
                                               : s->k + 3 - s->k % 2;
        s->offset = i % 3 == 2 ? 1 : 0;
        return true;
    }
    if (rest >= COUNT(lengths) * COUNT(few)) return false;
    s->n = lengths[rest / COUNT(few)];
    s->k = few[rest % COUNT(few)];
    s->ld = rest % 2 ? s->k + 5 : spsi_block_ld(s->k);
    s->offset = rest % 2;
    return true;
}

frame shape_frame(sps_context *ctx, const shape *s, uint64_t seed,
                  zoo_values values, double **x_p)
{
    double *x = zoo_block(s->n, s->k, s->k, seed, values);
    frame f = frame_make(ctx, s->n, s->k, s->ld, s->offset, x, s->k);

    if (x_p) *x_p = x;
    else free(x);
    return f;
}

sps_small *shape_small(sps_context *ctx, int rows, int cols, uint64_t seed,
                       zoo_values values, double **c_p)
{
    sps_small *C = NULL;
    double *c = zoo_block(cols, rows, rows, seed, values);

    OK(ctx, spsi_small_create(ctx, rows + 2, cols + 1, &C));
    spsi_small_shape(C, rows, cols);
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++)
            *spsi_small_at(C, i, j) = c[j * rows + i];
    if (c_p) *c_p = c;
    else free(c);
    return C;
}

void shape_equals(frame *f, int k, const double *x, const char *what)
{
    double *y = malloc((size_t)(f->n * k + 1) * sizeof *y);
    int64_t at;

    frame_read(f, k, y);
    at = oracle_differs(f->n, k, y, k, x, k);
    ck_assert_msg(at < 0, "%s: n %ld k %d ld %ld: (%ld, %ld) is %.17g, not "
                  "%.17g", what, (long)f->n, k, (long)f->ld, (long)(at / k),
                  (long)(at % k), y[at < 0 ? 0 : at], x[at < 0 ? 0 : at]);
    free(y);
}

void small_equals(const sps_small *C, int rows, int cols, const double *c,
                  const char *what)
{
    ck_assert_int_eq(C->rows, rows);
    ck_assert_int_eq(C->cols, cols);
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++)
            ck_assert_msg(*spsi_small_at(C, i, j) == c[j * rows + i],
                          "%s: %d x %d: (%d, %d) is %.17g, not %.17g", what,
                          rows, cols, i, j, *spsi_small_at(C, i, j),
                          c[j * rows + i]);
}

void small_near(const sps_small *C, int rows, int cols, const double *c,
                const double *bound, int64_t length, const char *what)
{
    double ratio;

    ck_assert_int_eq(C->rows, rows);
    ck_assert_int_eq(C->cols, cols);
    ratio = oracle_ratio(cols, rows, C->v, rows, c, rows, bound,
                         length);
    ck_assert_msg(ratio <= 1, "%s: %d x %d, length %ld: %g times the bound",
                  what, rows, cols, (long)length, ratio);
}

int main(void)
{
    Suite *s = suite_create("backend");

    conform_moves(runner_case(s, "moves"));
    conform_sums(runner_case(s, "sums"));
    conform_fused(runner_case(s, "fused"));
    conform_small(runner_case(s, "small"));
    conform_matrix(runner_case(s, "matrix"));
    conform_basis(runner_case(s, "basis"));
    conform_own(runner_case(s, "own"));
    return runner_run(s);
}
