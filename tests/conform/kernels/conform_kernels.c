/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels.c - every listed SpMM kernel of the device against the
 * contract in kernel.h, selected by name, whether or not the planner would
 * choose it.
 *
 * Integer data first: all sums are exact, so results must equal the oracle bit
 * for bit in whatever order they are summed.  Then random data within the
 * row-wise error bound.  SPS_TEST_KERNEL=name selects one kernel;
 * SPS_TEST_LONG=1 takes all sizes and products of 2^31 numbers.
 *
 * SPS_TEST_QUICK=1 is the small set, for sanitizers, which take seconds for a
 * thousand launches: every test, every kernel, all types, all widths (each in
 * some of the types) in an aligned and another layout, offsets of 32 and 64
 * bits, every list of row lengths; families, scalars and repetitions are
 * limited so that each kernel runs some thousand times.  Tests that need much
 * memory (2^31 numbers, millions of rows) are left out. */
#include "tests/conform/kernels/conform_kernels.h"

sps_context *ctx;
int layout;

static void open_context(void)
{
    ctx = runner_context();
    layout = 0;
}

static void close_context(void) { fixture_close(&ctx); }

const types TYPE[TYPES] = {
    { SPS_F64, SPS_F64, ZOO_INTEGER }, { SPS_F32, SPS_F64, ZOO_INTEGER },
    { SPS_F32, SPS_F32, ZOO_SMALL },   { SPS_F64, SPS_F64, ZOO_SMALL },
    { SPS_F32, SPS_F64, ZOO_SMALL },
};

const int WIDTHS[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,   10,
                       11, 12, 13, 14, 15, 16, 17, 24, 31,  32,
                       33, 48, 63, 64, 65, 100, 127, 128, 130, 200 };
const int FEW[] = { 1, 3, 8, 17, 33 };
const int WIDTH_COUNT = COUNT(WIDTHS), FEW_COUNT = COUNT(FEW);

bool takes(const sps_kernel *kernel, const types *t)
{
    const bool full = kernel->gives & SPS_FULL_PRECISION;

    if (t->block == SPS_F32) return kernel->gives & SPS_SINGLE_BLOCKS;
    return full == (t->exact == ZOO_INTEGER);
}

bool wanted(const types *t)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        if (takes(kernel, t)) return true;
    return false;
}

double *constant(int64_t n, double value)
{
    double *x = malloc((size_t)(n + 1) * sizeof *x);

    for (int64_t i = 0; i < n; i++) x[i] = value;
    return x;
}

/* ----------------------------------------------- one matrix and its results */

/* sum = A X and size = |A| |X| in long double, X and both with ld k. */
void exam_solve(exam *e)
{
    const sps_csr *A = e->r.A;
    const size_t count = (size_t)A->nrow * (size_t)e->k + 1;

    free(e->sum);
    free(e->size);
    e->sum = calloc(count, sizeof *e->sum);
    e->size = calloc(count, sizeof *e->size);
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const double a = A->dtype == SPS_F64 ? ((double *)A->val)[p]
                                                 : ((float *)A->val)[p];
            const double *x = e->x + (int64_t)A->col[p] * e->k;

            for (int j = 0; j < e->k; j++) {
                const long double term = (long double)a * x[j];

                e->sum[i * e->k + j] += term;
                e->size[i * e->k + j] += fabsl(term);
            }
        }
}

static double *numbers(int64_t n, const exam *e, uint64_t seed)
{
    /* Blocks have integer or random data; the other kinds are for matrices. */
    const bool whole = e->values == ZOO_INTEGER || e->values == ZOO_SMALL;
    double *x = zoo_block(n, e->k, e->k, seed, whole ? e->values : ZOO_RANDOM);

    if (e->t->block == SPS_F32)
        for (int64_t i = 0; i < n * e->k; i++) x[i] = (float)x[i];
    return x;
}

void exam_take(exam *e, const char *what, sps_csr *A, zoo_values values,
               const types *t, int k)
{
    void *room;

    *e = (exam){ .t = t, .values = values, .k = k };
    rig_take(&e->r, ctx, what, A);
    e->r.block = t->block;
    e->x = numbers(A->ncol, e, 3);
    e->y = numbers(A->nrow, e, 5);
    exam_solve(e);
    OK(ctx, ctx->backend->alloc(ctx, 3 * sizeof(double), &room));
    e->scalars = room;
}

void exam_open(exam *e, int family, int64_t n, zoo_values values,
               const types *t, int k)
{
    exam_take(e, zoo_name(family), zoo_matrix(family, n, 7, values, t->matrix),
              values, t, k);
}

void exam_close(exam *e)
{
    ctx->backend->release(ctx, e->scalars, 3 * sizeof(double));
    free(e->x);
    free(e->y);
    free(e->sum);
    free(e->size);
    rig_close(&e->r);
}

/* ----------------------------------------------------------------- trials */

/* Error bound of a sum of `length` products.  Rounding of sums: 4 (length + 4)
 * u |terms|.  Operands that are rounded: |a|, |x| <= 1/2 have errors of up to
 * roundoff |a|, or the same fraction of 2^-13 times the largest value, where
 * the exponent range of half precision ends. */
long double allowed(const exam *e, const trial *t, int64_t i, int j)
{
    const sps_csr *A = e->r.A;
    const sps_kernel *kernel = e->r.plan->kernel;
    const bool full = kernel->gives & SPS_FULL_PRECISION;
    const double u = full && e->t->block == SPS_F64 ? ldexp(1, -53)
                                                    : ldexp(1, -24);
    const double length = (double)(A->rowptr[i + 1] - A->rowptr[i]);
    const long double size = t->alpha == 0 ? 0 :
        fabsl(t->alpha * e->size[i * e->k + j]);
    const long double old = t->beta == 0 ? 0 :
        fabsl((long double)t->beta * e->y[i * e->k + j]);

    return 4 * (length + 4) * u * (size + old) + 2.1L * kernel->roundoff *
           (size + fabs(t->alpha) * ldexp(length, -15));
}

void judge(const exam *e, const trial *t, const image *Y, const char *what)
{
    const bool exact = e->values == ZOO_INTEGER || e->values == ZOO_SMALL;

    for (int64_t i = 0; i < e->r.A->nrow; i++)
        for (int j = 0; j < t->k; j++) {
            const double y = Y->out[i * Y->ld + j];
            const long double right =
                (t->alpha == 0 ? 0 : t->alpha * e->sum[i * e->k + j]) +
                (t->beta == 0 ? 0 : (long double)t->beta * e->y[i * e->k + j]);

            if (y == right) continue;
            demand(!exact, "%s: row %lld column %d is %.17g, not %.17Lg",
                   what, (long long)i, j, y, right);
            demand(fabsl(y - right) <= allowed(e, t, i, j), "%s: row "
                   "%lld column %d is off by %.3Lg, allowed is %.3Lg",
                   what, (long long)i, j, fabsl(y - right),
                   allowed(e, t, i, j));
        }
}

void run(const exam *e, const trial *t, const sps_block *X, sps_block *Y)
{
    const double pair[] = { t->alpha, t->beta };
    sps_spmm_args args = { .alpha = t->alpha, .X = X, .beta = t->beta,
                           .Y = Y };

    if (t->placed) {
        OK(ctx, ctx->backend->upload(ctx, e->scalars + 1, pair, sizeof pair));
        args.alpha = args.beta = NAN;
        args.scalars = e->scalars + 1;
    }
    OK(ctx, e->r.plan->kernel->spmm(e->r.plan, &args));
    OK(ctx, ctx->backend->sync(ctx));
}

static void name_trial(const exam *e, const trial *t, char *what, size_t size)
{
    const sps_csr *A = e->r.A;

    snprintf(what, size, "%s on %s (%lld x %lld, f%d times f%d) k %d of %d "
             "layout %d alpha %g beta %g%s", e->r.plan->kernel->name,
             e->r.what, (long long)A->nrow, (long long)A->ncol,
             A->dtype == SPS_F64 ? 64 : 32, e->t->block == SPS_F64 ? 64 : 32,
             t->k, e->r.plan->k, t->layout, t->alpha, t->beta,
             t->placed ? " in the place" : "");
}

void try(const exam *e, const trial *t)
{
    const sps_csr *A = e->r.A;
    char what[240];
    image X, Y;

    name_trial(e, t, what, sizeof what);
    image_take(&X, ctx, e->t->block, A->ncol, t->k, t->layout,
               t->alpha == 0 ? NULL : e->x, e->k);
    image_take(&Y, ctx, e->t->block, A->nrow, t->k,
               t->layout + t->layout / LAYOUTS, t->beta == 0 ? NULL : e->y,
               e->k);
    run(e, t, X.B, Y.B);
    image_read(&Y, what);
    judge(e, t, &Y, what);
    image_close(&X);
    image_close(&Y);
}

void try_in_turn(const exam *e, int k)
{
    static const double pairs[][2] = { { 1, 0 },  { -1, 1 }, { 2, -3 },
                                       { 0, 2 },  { 1, 0 },  { 3, 1 },
                                       { 0, 0 } };
    const double *s = pairs[layout % COUNT(pairs)];
    const trial t = { k, layout, s[0], s[1], layout % 3 == 2 };

    layout++;
    try(e, &t);
}

/* CK_RUN_CASE=name runs one of them. */
static const struct {
    const char *name;
    void (*add)(TCase *t);
} CASES[] = {
    { "exact", add_exact }, { "scalars", add_scalars },
    { "bounds", add_bounds }, { "finite", add_finite },
    { "bits", add_bits }, { "memory", add_memory },
    { "large", add_large },
};

int main(void)
{
    Suite *s = suite_create("conform_kernels");

    for (int i = 0; i < COUNT(CASES); i++) {
        TCase *t = runner_case(s, CASES[i].name);

        tcase_set_timeout(t, 600);
        tcase_add_checked_fixture(t, open_context, close_context);
        CASES[i].add(t);
    }
    return runner_run(s);
}
