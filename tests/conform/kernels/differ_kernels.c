/* SPDX-License-Identifier: BSD-3-Clause */
/* differ_kernels.c - every listed kernel against another implementation, on
 * small random matrices: cuSPARSE on a GPU, the plain loops on the host.
 * Shapes, widths, leading dimensions, alignments, scalars, types, widths of
 * plans, and whether the run is captured and replayed as a graph, are random
 * too.  Half of the data are small integers, whose sums are exact in any order
 * and precision: results must be equal.  The other half, exact in float or not,
 * may differ by twice the row-wise error bound of the less precise type.
 *
 * Each kernel is tested with 500 draws: 50 with SPS_TEST_QUICK=1, 5000 with
 * SPS_TEST_LONG=1.  SPS_TEST_SEED=n runs one draw, as a failure names it;
 * SPS_TEST_KERNEL=name selects one kernel. */
#include <check.h>
#include <math.h>

#include "tests/support/draw.h"
#include "tests/support/image.h"
#include "tests/support/oracle.h"
#include "tests/support/rig.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

enum { KERNELS = 64 };

/* One draw.  SpMM: x is X, y the old Y; SDDMM: x is U, z is V, y old val. */
typedef struct trial {
    uint64_t seed;
    sps_opcode op;
    draw d;                  /* what x, z and y are drawn from */
    draw_data data;
    bool placed, multiply, recorded;
    sps_dtype matrix, block;
    int k, extra;            /* columns; how much wider the plan is */
    int64_t ld[2], offset[2];
    double alpha, beta;
    sps_csr *A;
    double *x, *z, *y;
    int64_t rows;            /* of the result */
    int wide;                /* columns of the result */
    double *right, *size;    /* the other implementation's result; bounds */
    void *scalars;           /* two scalars in device memory */
} trial;

/* --------------------------------------------------------------- one draw */

/* Single vectors often, since they have kernels of their own. */
static int draw_width(draw *d)
{
    switch (draw_int(d, 0, 4)) {
    case 0:
        return 1;
    case 1:
        return draw_int(d, 1, 17);
    case 2:
        return 8 * draw_int(d, 1, 16);
    case 3:
        return draw_int(d, 18, 66);
    default:
        return draw_int(d, 67, 140);
    }
}

/* Leading dimension and offset: tight, even, or anything. */
static void draw_layout(draw *d, int k, int64_t *ld, int64_t *offset)
{
    const int kind = draw_int(d, 0, 2);

    *ld = kind == 0 ? k : kind == 1 ? (k + 3) / 4 * 4 + 4 * draw_int(d, 0, 3)
                                    : k + draw_int(d, 0, 40);
    *offset = kind == 2 ? draw_int(d, 0, 3) : 0;
}

static void draw_types(draw *d, trial *t)
{
    const int types = draw_int(d, 0, 3);

    t->matrix = types < 2 ? SPS_F64 : SPS_F32;
    t->block = types < 3 ? SPS_F64 : SPS_F32;
}

/* Half of the data are integers; numbers for blocks of floats are exact in
 * float. */
static draw_data draw_kind(draw *d, sps_dtype block)
{
    const int kind = draw_int(d, 0, 3);

    if (kind < 2) return DRAW_INTEGERS;
    return kind == 2 || block == SPS_F32 ? DRAW_FLOATS : DRAW_DOUBLES;
}

/* Draws everything except the blocks. */
static void trial_draw(trial *t, sps_opcode op, uint64_t seed)
{
    static const double scalar[] = { 1, 1, -1, 0, 2, 0.5, -3 };
    draw d = { seed * 2 + (op == SPS_OP_SDDMM) };

    *t = (trial){ .seed = seed, .op = op };
    draw_types(&d, t);
    t->data = draw_kind(&d, t->block);
    t->A = draw_matrix(&d, t->data, t->matrix);
    t->k = draw_width(&d);
    t->extra = draw_int(&d, 0, 3) ? 0 : draw_int(&d, 1, 40);
    for (int i = 0; i < 2; i++)
        draw_layout(&d, t->k, &t->ld[i], &t->offset[i]);
    t->alpha = scalar[draw_int(&d, 0, 6)];
    t->beta = draw_int(&d, 0, 1) ? 0.0 : scalar[draw_int(&d, 0, 6)];
    t->placed = op == SPS_OP_SPMM && draw_int(&d, 0, 3) == 0;
    t->multiply = draw_int(&d, 0, 1);
    t->recorded = draw_int(&d, 0, 3) == 0 && ctx->backend->record_begin;
    t->rows = op == SPS_OP_SPMM ? t->A->nrow : t->A->nnz;
    t->wide = op == SPS_OP_SPMM ? t->k : 1;
    t->d = d;
}

static void trial_fill(trial *t)
{
    const int64_t tall = t->op == SPS_OP_SPMM ? t->A->ncol : t->A->nrow;

    t->x = draw_values(&t->d, tall * t->k, t->data);
    t->z = draw_values(&t->d, t->A->ncol * t->k, t->data);
    t->y = draw_values(&t->d, t->rows * t->wide, t->data);
    OK(ctx, ctx->backend->alloc(ctx, 2 * sizeof(double), &t->scalars));
    OK(ctx, ctx->backend->upload(ctx, t->scalars,
                                 (double[]){ t->alpha, t->beta },
                                 2 * sizeof(double)));
}

static void trial_free(trial *t)
{
    ctx->backend->release(ctx, t->scalars, 2 * sizeof(double));
    free(t->x);
    free(t->z);
    free(t->y);
    free(t->right);
    free(t->size);
}

/* The error bound of each number of the result. */
static void trial_bound(trial *t)
{
    const size_t count = (size_t)(t->rows * t->wide) + 1;
    double *y = malloc(count * sizeof *y);

    memcpy(y, t->y, (count - 1) * sizeof *y);
    t->size = calloc(count, sizeof *t->size);
    if (t->op == SPS_OP_SPMM)
        oracle_spmm(t->A, t->alpha, t->x, t->k, t->beta, y, t->k, t->k,
                    t->size);
    else
        oracle_sddmm(t->A, t->alpha, t->x, t->k, t->z, t->k, t->k,
                     t->multiply, t->beta, y, t->size);
    free(y);
}

/* ------------------------------------------------------------------- runs */

/* How a run is made: layout of the blocks, scalars in device memory, captured
 * and replayed. */
typedef struct manner {
    int64_t ld[2], offset[2];
    bool placed, recorded;
} manner;

/* One of the two arguments is not NULL. */
static void launch(const rig *r, bool recorded, const sps_spmm_args *spmm,
                   const sps_sddmm_args *sddmm)
{
    const sps_kernel *kernel = r->plan->kernel;
    void *recording = NULL;

    if (recorded) OK(ctx, ctx->backend->record_begin(ctx));
    if (spmm) OK(ctx, kernel->spmm(r->plan, spmm));
    else OK(ctx, kernel->sddmm(r->plan, sddmm));
    if (!recorded) return;
    OK(ctx, ctx->backend->record_end(ctx, &recording));
    OK(ctx, ctx->backend->replay(ctx, recording));
    OK(ctx, ctx->backend->sync(ctx));
    ctx->backend->record_drop(ctx, recording);
}

static void run_spmm(const trial *t, const rig *r, const manner *m,
                     image *Y, const char *what)
{
    sps_spmm_args args = { .alpha = t->alpha, .beta = t->beta };
    image X;

    if (m->placed)
        args = (sps_spmm_args){ .alpha = NAN, .beta = NAN,
                                .scalars = t->scalars };
    image_place(&X, ctx, r->block, t->A->ncol, t->k, m->ld[0], m->offset[0],
                t->alpha == 0.0 ? NULL : t->x, t->k);
    image_place(Y, ctx, r->block, t->rows, t->wide, m->ld[1], m->offset[1],
                t->beta == 0.0 ? NULL : t->y, t->wide);
    args.X = X.B;
    args.Y = Y->B;
    launch(r, m->recorded, &args, NULL);
    image_read(Y, what);
    image_read(&X, what);
    image_close(&X);
}

static void run_sddmm(const trial *t, const rig *r, const manner *m,
                      image *val, const char *what)
{
    sps_sddmm_args args = { .alpha = t->alpha, .beta = t->beta,
                            .multiply = t->multiply };
    image U, V;

    image_place(&U, ctx, r->block, t->A->nrow, t->k, m->ld[0], m->offset[0],
                t->alpha == 0.0 ? NULL : t->x, t->k);
    image_place(&V, ctx, r->block, t->A->ncol, t->k, m->ld[1], m->offset[1],
                t->alpha == 0.0 ? NULL : t->z, t->k);
    image_place(val, ctx, r->block, t->rows, 1, 1, m->offset[0] % 2,
                t->beta == 0.0 ? NULL : t->y, 1);
    args.U = U.B;
    args.V = V.B;
    args.val = val->first;
    launch(r, m->recorded, NULL, &args);
    image_read(val, what);
    image_close(&U);
    image_close(&V);
}

static void run(const trial *t, const rig *r, const manner *m, image *out,
                const char *what)
{
    if (t->op == SPS_OP_SPMM) run_spmm(t, r, m, out, what);
    else run_sddmm(t, r, m, out, what);
}

/* The kernel with which all others are compared. */
static const sps_kernel *other(sps_opcode op)
{
    const bool host = ctx->backend->place == SPS_HOST;
    const char *name = op == SPS_OP_SPMM ? host ? "spmm.ref" : "spmm.cusparse"
                       : host ? "sddmm.ref" : "sddmm.cusparse";
    const sps_kernel *kernel;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (strcmp(kernel->name, name) == 0) return kernel;
    ck_abort_msg("no kernel %s", name);
}

/* The same numbers as doubles. */
static sps_csr *widened(const sps_csr *A)
{
    sps_csr *B = calloc(1, sizeof *B);
    const size_t rows = (size_t)(A->nrow + 1) * sizeof *A->rowptr;

    *B = (sps_csr){ .nrow = A->nrow, .ncol = A->ncol, .nnz = A->nnz,
                    .dtype = SPS_F64, .place = SPS_HOST,
                    .struct_size = sizeof *B };
    B->rowptr = memcpy(malloc(rows), A->rowptr, rows);
    B->col = malloc((size_t)A->nnz * sizeof *B->col + 1);
    B->val = malloc((size_t)A->nnz * sizeof(double) + 1);
    for (int64_t p = 0; p < A->nnz; p++) {
        B->col[p] = A->col[p];
        ((double *)B->val)[p] = A->dtype == SPS_F64 ? ((double *)A->val)[p]
                                                    : ((float *)A->val)[p];
    }
    return B;
}

/* t->right: computed by the other kernel, in doubles, on tight blocks. */
static void trial_solve(trial *t)
{
    const manner plain = { .ld = { t->k, t->k } };
    image out;
    rig r;

    rig_take(&r, ctx, "drawn", widened(t->A));
    ck_assert(rig_plan(&r, other(t->op), t->k));
    run(t, &r, &plain, &out, r.plan->kernel->name);
    t->right = malloc((size_t)(t->rows * t->wide + 1) * sizeof *t->right);
    for (int64_t i = 0; i < t->rows; i++)
        for (int j = 0; j < t->wide; j++)
            t->right[i * t->wide + j] = out.out[i * out.ld + j];
    image_close(&out);
    rig_close(&r);
    trial_bound(t);
}

/* --------------------------------------------------------------- comparison */

static void judge(const trial *t, const image *out, const char *what)
{
    const double coarse = t->block == SPS_F64 ? 1.0 : 0x1p29;
    const int64_t longest = t->op == SPS_OP_SPMM ? oracle_longest(t->A) : t->k;
    int64_t at;
    double ratio;

    if (t->data == DRAW_INTEGERS) {
        at = oracle_differs(t->rows, t->wide, out->out, out->ld, t->right,
                            t->wide);
        ck_assert_msg(at < 0, "%s: (%lld, %lld) is %.17g, not %.17g", what,
                      (long long)(at / t->wide), (long long)(at % t->wide),
                      out->out[at / t->wide * out->ld + at % t->wide],
                      t->right[at]);
        return;
    }
    ratio = oracle_ratio(t->rows, t->wide, out->out, out->ld, t->right,
                         t->wide, t->size, longest) / coarse;
    ck_assert_msg(ratio <= 2.0, "%s: differs by %g bounds", what, ratio);
}

/* Whether the kernel fits, and its declared precision allows such data. */
static bool takes(const sps_kernel *kernel, const rig *r, const trial *t)
{
    return (t->data == DRAW_INTEGERS || (kernel->gives & SPS_FULL_PRECISION)) &&
           rig_fits(r, kernel, t->k + t->extra);
}

static void compare(const trial *t, rig *r, const sps_kernel *kernel)
{
    const manner m = { .ld = { t->ld[0], t->ld[1] },
                       .offset = { t->offset[0], t->offset[1] },
                       .placed = t->placed, .recorded = t->recorded };
    char what[200];
    image out;

    ck_assert(rig_plan(r, kernel, t->k + t->extra));
    snprintf(what, sizeof what, "SPS_TEST_SEED=%llu %s (%lld x %lld, %lld "
             "entries, f%d, blocks f%d) k %d ld %d %d alpha %g beta %g%s%s%s",
             (unsigned long long)t->seed, kernel->name, (long long)t->A->nrow,
             (long long)t->A->ncol, (long long)t->A->nnz,
             t->matrix == SPS_F64 ? 64 : 32, t->block == SPS_F64 ? 64 : 32,
             t->k, (int)t->ld[0], (int)t->ld[1], t->alpha, t->beta,
             t->placed ? " placed" : "", t->recorded ? " recorded" : "",
             t->op == SPS_OP_SDDMM && t->multiply ? " multiply" : "");
    run(t, r, &m, &out, what);
    judge(t, &out, what);
    image_close(&out);
}

/* The kernels that accept this draw and still need draws; if there is none only
 * the matrix has been generated. */
static int wanted(const trial *t, const rig *r, const int *done, int enough,
                  int *which)
{
    const sps_kernel *kernel;
    int count = 0;

    for (int i = 0; (kernel = rig_kernel(ctx, t->op, i)); i++)
        if (kernel != other(t->op) && done[i] < enough && takes(kernel, r, t))
            which[count++] = i;
    return count;
}

/* Runs one draw; `done` counts the draws of each kernel. */
static void differ(sps_opcode op, uint64_t seed, int *done, int enough)
{
    int which[KERNELS], count;
    trial t;
    rig r;

    trial_draw(&t, op, seed);
    rig_take(&r, ctx, "drawn", t.A);
    r.block = t.block;
    count = wanted(&t, &r, done, enough, which);
    if (count > 0) {
        trial_fill(&t);
        trial_solve(&t);
        for (int i = 0; i < count; i++) {
            compare(&t, &r, rig_kernel(ctx, op, which[i]));
            done[which[i]]++;
        }
        trial_free(&t);
    }
    rig_close(&r);
}

/* The first kernel that has not had enough draws; NULL: all have. */
static const sps_kernel *lagging(sps_opcode op, const int *done, int enough)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = rig_kernel(ctx, op, i)); i++)
        if (kernel != other(op) && done[i] < enough) return kernel;
    return NULL;
}

/* A tenth of the draws are single vectors of the matrix's type; a twentieth
 * have integers in blocks of floats and a pattern that fills large dense
 * blocks.  So some kernels accept few of the draws: 32 times as many draws
 * suffice for each. */
static void differ_all(sps_opcode op)
{
    const int enough = fixture_env("SPS_TEST_QUICK") ? 50
                       : fixture_env("SPS_TEST_LONG") ? 5000 : 500;
    const char *one = getenv("SPS_TEST_SEED");
    const sps_kernel *late;
    int done[KERNELS] = { 0 };

    if (one) {
        differ(op, strtoull(one, NULL, 10), done, enough);
        return;
    }
    for (int s = 1; s <= 32 * enough && lagging(op, done, enough); s++)
        differ(op, (uint64_t)s, done, enough);
    late = lagging(op, done, enough);
    ck_assert_msg(!late, "%s took fewer than %d of %d draws",
                  late ? late->name : "", enough, 32 * enough);
}

START_TEST(spmm_agrees_with_another_implementation)
{
    differ_all(SPS_OP_SPMM);
}
END_TEST

START_TEST(sddmm_agrees_with_another_implementation)
{
    differ_all(SPS_OP_SDDMM);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("differ_kernels");
    TCase *t = tcase_create("differ_kernels");

    tcase_set_timeout(t, fixture_env("SPS_TEST_LONG") ? 3600 : 600);
    tcase_add_checked_fixture(t, open_context, close_context);
    tcase_add_test(t, spmm_agrees_with_another_implementation);
    tcase_add_test(t, sddmm_agrees_with_another_implementation);
    suite_add_tcase(s, t);
    return runner_run(s);
}
