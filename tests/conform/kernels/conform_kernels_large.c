/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_large.c - blocks of more than 2^31 numbers: a small matrix is
 * stretched, so that its rows and columns lie far apart, and the reference
 * result remains that of the small one.  On a GPU without enough memory the
 * test fails, since nothing was tested; SPS_TEST_QUICK leaves it out.
 *
 * More than 2^31 entries are tested with small matrices and 64-bit offsets:
 * offsets_of_64_bits_are_exact. */
#include "tests/conform/kernels/conform_kernels.h"

enum { ROWS = 300, LD = 1024, WIDEST = 128 };   /* of the small matrix */

/* Row i of A becomes row (i + 1) rows - 1, column j becomes (j + 1) cols -
 * 1. */
static sps_csr *stretch(const sps_csr *A, int64_t rows, int64_t cols)
{
    sps_csr *B = zoo_copy(A);

    free(B->rowptr);
    B->nrow = A->nrow * rows;
    B->ncol = A->ncol * cols;
    B->rowptr = malloc((size_t)(B->nrow + 1) * sizeof *B->rowptr);
    for (int64_t i = 0; i < B->nrow; i++) B->rowptr[i] = A->rowptr[i / rows];
    B->rowptr[B->nrow] = A->nnz;
    for (int64_t p = 0; p < A->nnz; p++)
        B->col[p] = (int32_t)((A->col[p] + 1) * cols - 1);
    return B;
}

/* A block of n rows, of which only every step-th is used. */
typedef struct field {
    sps_block block;
    int64_t step;
    size_t bytes, size;      /* of the whole block; of one number */
} field;

static void field_open(field *b, sps_dtype dtype, int64_t n, int64_t ld,
                       int64_t step)
{
    *b = (field){ .step = step, .size = dtype == SPS_F64 ? 8 : 4 };
    b->bytes = (size_t)n * (size_t)ld * b->size;
    b->block = (sps_block){ .ctx = ctx, .n = n, .k = WIDEST, .ld = ld,
                            .dtype = dtype, .width = WIDEST };
    OK(ctx, ctx->backend->alloc(ctx, b->bytes, &b->block.data));
}

static void field_close(field *b)
{
    ctx->backend->release(ctx, b->block.data, b->bytes);
}

/* Sets every number to `value` (doubles), or NaN in either type; where n
 * exceeds LD rows, only those that are used. */
static void field_fill(field *b, double value)
{
    const uint64_t both = UINT64_C(0x7ff800007fc00000);
    sps_block all = b->block;

    all.dtype = SPS_F64;
    all.ld = b->block.ld * (int64_t)b->size / 8;
    all.k = (int)(b->block.ld > LD ? WIDEST * (int64_t)b->size / 8 : all.ld);
    all.width = all.k;
    if (isnan(value)) memcpy(&value, &both, sizeof value);
    OK(ctx, ctx->backend->fill(&all, value));
}

static void *field_row(const field *b, int64_t i)
{
    return (char *)b->block.data + (size_t)i * (size_t)b->block.ld * b->size;
}

/* Copies row i of the small block to its row in the large one. */
static void field_put(const field *b, int64_t i, const double *x, int k)
{
    char row[LD * sizeof(double)];

    for (int j = 0; j < k; j++)
        if (b->size == 8) ((double *)row)[j] = x[j];
        else ((float *)row)[j] = (float)x[j];
    OK(ctx, ctx->backend->upload(ctx, field_row(b, (i + 1) * b->step - 1), row,
                                 (size_t)k * b->size));
}

/* Row i of the large block. */
static void field_get(const field *b, int64_t i, double *y, int k)
{
    char row[LD * sizeof(double)];

    OK(ctx, ctx->backend->download(ctx, row, field_row(b, i),
                                   (size_t)k * b->size));
    for (int j = 0; j < k; j++)
        y[j] = b->size == 8 ? ((double *)row)[j] : (double)((float *)row)[j];
}

/* Checks the rows of the small matrix, and one empty row between each two. */
static void judge_rows(const exam *e, const rig *big, const field *Y, int k)
{
    double y[LD];

    for (int64_t i = 0; i < e->r.A->nrow; i++) {
        const int64_t at = (i + 1) * Y->step - 1;

        field_get(Y, at, y, k);
        for (int j = 0; j < k; j++)
            demand(y[j] == e->sum[i * e->k + j], "%s on %s, k %d, f%d: "
                   "(%lld, %d) is %g, not %Lg",
                   big->plan->kernel->name, big->what, k,
                   Y->size == 8 ? 64 : 32, (long long)at, j, y[j],
                   e->sum[i * e->k + j]);
        if (Y->step == 1) continue;
        field_get(Y, at - 1 - i % (Y->step - 1), y, k);
        for (int j = 0; j < k; j++)
            demand(y[j] == 0, "%s on %s, k %d: an empty row is %g",
                   big->plan->kernel->name, big->what, k, y[j]);
    }
}

/* Checks the largest number of all: an empty row, or padding, would show
 * NaN. */
static void judge_all(const rig *big, const field *Y, int k, double right)
{
    double most[LD];

    if (Y->size != 8) return;
    OK(ctx, ctx->backend->maxabs(&Y->block, most));
    for (int j = 0; j < k; j++)
        demand(right < 0 ? isfinite(most[j]) : most[j] == right,
               "%s on %s, k %d: the largest of column %d is %g",
               big->plan->kernel->name, big->what, k, j, most[j]);
}

static void multiply(const exam *e, rig *big, field *X, field *Y, int k)
{
    X->block.k = Y->block.k = k;
    field_fill(Y, NAN);
    OK(ctx, big->plan->kernel->spmm(big->plan, &(sps_spmm_args){
        .alpha = 1, .X = &X->block, .Y = &Y->block }));
    judge_rows(e, big, Y, k);
    judge_all(big, Y, k, -1);
    if (Y->size != 8) return;
    field_fill(Y, 3);
    OK(ctx, big->plan->kernel->spmm(big->plan, &(sps_spmm_args){
        .beta = 2, .X = &X->block, .Y = &Y->block }));
    judge_all(big, Y, k, 6);
}

/* X stretched; the rows in between are NaN for kernels that must not read them,
 * and 11 for those that may multiply them by explicit zeros of their blocks. */
static void fill_x(const exam *e, field *X, bool strict)
{
    field_fill(X, strict ? NAN : 11);
    for (int64_t i = 0; i < e->r.A->ncol; i++)
        field_put(X, i, e->x + i * e->k, WIDEST);
}

/* The widest plan that the kernel can make, at its width and below. */
static void multiply_all(const exam *e, rig *big, field *X, field *Y)
{
    static const int widths[] = { WIDEST, 33, 4, 1 };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel) {
        bool planned = false;

        if (!takes(kernel, e->t)) continue;
        fill_x(e, X, kernel->gives & SPS_NAN_STAYS_IN_ROW);
        for (int w = 0; w < COUNT(widths); w++) {
            planned = planned || rig_plan(big, kernel, widths[w]);
            if (planned) multiply(e, big, X, Y, widths[w]);
        }
    }
}

static void need_memory(size_t bytes)
{
    size_t free_bytes = 0, total;

    OK(ctx, ctx->backend->memory(ctx, &free_bytes, &total));
    demand(bytes <= free_bytes, "%.1f GB of the GPU's memory are needed, %.1f "
           "are free: SPS_TEST_QUICK=1 leaves this out", 1e-9 * (double)bytes,
           1e-9 * (double)free_bytes);
}

/* A matrix of n rows with rows and columns spread by these factors, and blocks
 * with this ld. */
static void stretched(const types *t, const char *family, int64_t n,
                      int64_t rows, int64_t cols, int64_t ld)
{
    const size_t size = t->block == SPS_F64 ? 8 : 4;
    const size_t numbers = (size_t)(n * (rows + cols) * ld);
    field X, Y;
    exam e;
    rig big;

    need_memory(numbers * size + ((size_t)6 << 30));
    exam_open(&e, zoo_find(family), n, t->exact, t, WIDEST);
    rig_take(&big, ctx, rows > cols ? "rows far apart" : "columns far apart",
             stretch(e.r.A, rows, cols));
    big.block = t->block;
    field_open(&X, t->block, n * cols, ld, cols);
    field_open(&Y, t->block, n * rows, ld, rows);
    multiply_all(&e, &big, &X, &Y);
    field_close(&X);
    field_close(&Y);
    rig_close(&big);
    exam_close(&e);
}

static bool small_machine(void)
{
    return ctx->backend->place == SPS_HOST || fixture_env("SPS_TEST_QUICK");
}

#define LARGE "gigabytes of a GPU, in the whole form"

/* 2^31 numbers are 17 GB of doubles; 7000 x 300 rows of 1024 are more. */
START_TEST(rows_of_x_beyond_2_to_31_numbers_are_reached)
{
    if (small_machine()) runner_leave_out(LARGE);
    for (int d = 0; d < TYPES; d++)
        if (wanted(&TYPE[d]))
            stretched(&TYPE[d], "uniform", ROWS, 1, 7000, LD);
}
END_TEST

START_TEST(rows_of_y_beyond_2_to_31_numbers_are_written)
{
    if (small_machine()) runner_leave_out(LARGE);
    for (int d = 0; d < TYPES; d++)
        if (wanted(&TYPE[d]))
            stretched(&TYPE[d], "uniform", ROWS, 7000, 1, LD);
}
END_TEST

/* Eight rows more than 2^32 bytes apart, with enough columns in common that
 * formats of row windows and dense blocks combine them. */
START_TEST(rows_may_be_4_gigabytes_apart)
{
    if (small_machine()) runner_leave_out(LARGE);
    for (int d = 0; d < TYPES; d++) {
        const int64_t size = TYPE[d].block == SPS_F64 ? 8 : 4;

        if (wanted(&TYPE[d]))
            stretched(&TYPE[d], "blocks8", 8, 1, 1,
                      (INT64_C(1) << 32) / size + 8);
    }
}
END_TEST

/* Without padding: 17 million rows of 128. */
START_TEST(a_block_of_2_to_31_numbers_is_written_whole)
{
    if (small_machine() || !fixture_env("SPS_TEST_LONG"))
        runner_leave_out(LARGE ", SPS_TEST_LONG");
    for (int d = 0; d < TYPES; d += 2)
        if (wanted(&TYPE[d]))
            stretched(&TYPE[d], "uniform", ROWS, 56000, 1, WIDEST);
}
END_TEST

void add_large(TCase *t)
{
    tcase_add_test(t, rows_of_x_beyond_2_to_31_numbers_are_reached);
    tcase_add_test(t, rows_of_y_beyond_2_to_31_numbers_are_written);
    tcase_add_test(t, rows_may_be_4_gigabytes_apart);
    tcase_add_test(t, a_block_of_2_to_31_numbers_is_written_whole);
}
