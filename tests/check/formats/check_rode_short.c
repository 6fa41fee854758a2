/* SPDX-License-Identifier: BSD-3-Clause */
/* check_rode_short.c - spmm.rode on grids, whose rows have similar lengths:
 * each row of Y is written once, with exact sums, whatever the number of rows,
 * the width and the epilogue; and products with an X of floats and a Y of
 * doubles, by other kernels, too. */
#include <check.h>
#include <math.h>

#include "tests/support/image.h"
#include "tests/support/rig.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

static const sps_kernel *named(const char *name)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (strcmp(kernel->name, name) == 0) break;
    return kernel;
}

static const sps_kernel *rode(void) { return named("spmm.rode"); }

/* A grid of nx x ny x nz points and its couplings.  One of `odd` rows (0: none)
 * has one more entry. */
typedef struct mesh {
    const char *what;
    int nx, ny, nz;
    bool corners;              /* 27 points, or 7 */
    int64_t odd;
} mesh;

static const mesh MESHES[] = {
    { "7 points", 107, 36, 32, false, 0 },
    { "27 points", 28, 27, 26, true, 0 },
    { "5 points", 170, 131, 1, false, 0 },
    { "7 points and others", 33, 31, 30, false, 997 },
    { "few rows", 3, 3, 1, false, 0 },
};

static bool coupled(const mesh *m, int dx, int dy, int dz)
{
    return m->corners || abs(dx) + abs(dy) + abs(dz) <= 1;
}

/* Appends the columns of row i, in ascending order, to col; returns their
 * number. */
static int row_of(const mesh *m, int64_t n, int64_t i, int32_t *col)
{
    const int64_t plane = (int64_t)m->nx * m->ny;
    const int x = (int)(i % m->nx), y = (int)(i / m->nx % m->ny);
    const int z = (int)(i / plane);
    int count = 0;

    for (int dz = -1; dz <= 1; dz++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                const int64_t j = i + dx + dy * m->nx + dz * plane;

                if (coupled(m, dx, dy, dz) && x + dx >= 0 && x + dx < m->nx &&
                    y + dy >= 0 && y + dy < m->ny && z + dz >= 0 &&
                    z + dz < m->nz)
                    col[count++] = (int32_t)j;
            }
    if (m->odd && i % m->odd == 0 && col[count - 1] < n - 8)
        col[count++] = (int32_t)(n - 1 - i % 7);
    return count;
}

static sps_csr *mesh_matrix(const mesh *m, sps_dtype dtype)
{
    const int64_t n = (int64_t)m->nx * m->ny * m->nz;
    sps_csr *A = NULL;
    int32_t col[28];
    int64_t nnz = 0;

    for (int64_t i = 0; i < n; i++) nnz += row_of(m, n, i, col);
    OK(ctx, sps_csr_create(ctx, n, n, nnz, dtype, &A));
    for (int64_t i = 0, p = 0; i < n; i++) {
        const int count = row_of(m, n, i, col);

        for (int e = 0; e < count; e++, p++) {
            const double a = (double)((i * 5 + e * 3) % 7 - 3);

            A->col[p] = col[e];
            if (dtype == SPS_F64) ((double *)A->val)[p] = a;
            else ((float *)A->val)[p] = (float)a;
        }
        A->rowptr[i + 1] = p;
    }
    return A;
}

/* Row i of D (alpha A X + gamma W) + beta Y + delta X with alpha = -2, gamma =
 * 3, delta = 5. */
static double right_at(const sps_csr *A, const image *X, const image *W,
                       const image *Y, const double *d, double beta, int64_t i,
                       int j)
{
    double sum = 0;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        sum += (A->dtype == SPS_F64 ? ((const double *)A->val)[p]
                                    : ((const float *)A->val)[p]) *
               X->data[A->col[p] * X->ld + j];
    sum *= -2;
    if (W) sum = d[i] * (sum + 3 * W->data[i * W->ld + j]) +
                 5 * X->data[i * X->ld + j];
    return beta != 0 ? sum + beta * Y->data[i * Y->ld + j] : sum;
}

static void judge(const rig *r, const image *X, const image *W, image *Y,
                  const double *d, double beta, int k)
{
    image_read(Y, r->what);
    for (int64_t i = 0; i < r->A->nrow; i++)
        for (int j = 0; j < k; j++) {
            const double right = right_at(r->A, X, W, Y, d, beta, i, j);
            const double y = Y->out[i * Y->ld + j];

            ck_assert_msg(y == right || (isnan(y) && isnan(right)),
                          "%s, k %d, beta %g%s: row %lld column %d is %g, not "
                          "%g", r->what, k, beta, W ? ", fused" : "",
                          (long long)i, j, y, right);
        }
}

/* A product of k columns, with an epilogue or without. */
static void try_width(const rig *r, int k, double beta, bool fused)
{
    const int64_t n = r->A->nrow;
    double *d = malloc((size_t)n * sizeof *d);
    sps_epilogue e = { .gamma = 3, .delta = 5 };
    sps_spmm_args args = { .alpha = -2, .beta = beta };
    image X, W, Y;
    sps_block *D = NULL;

    for (int64_t i = 0; i < n; i++) d[i] = (double)(i % 5 - 2);
    image_open_as(&X, ctx, r->block, n, k, 0, 3, ZOO_INTEGER);
    image_open_as(&W, ctx, r->block, n, k, 0, 4, ZOO_INTEGER);
    image_open_as(&Y, ctx, r->block, n, k, 0, beta != 0 ? 5 : 0, ZOO_INTEGER);
    OK(ctx, sps_block_create(ctx, n, 1, &D));
    OK(ctx, sps_block_set(D, 0, 1, d, 1, SPS_ROW_MAJOR, SPS_HOST));
    args.X = X.B;
    args.Y = Y.B;
    e.W = W.B;
    e.D = D;
    if (fused) args.epilogue = &e;
    OK(ctx, r->plan->kernel->spmm(r->plan, &args));
    OK(ctx, ctx->backend->sync(ctx));
    judge(r, &X, fused ? &W : NULL, &Y, d, beta, k);
    image_close(&X);
    image_close(&W);
    image_close(&Y);
    sps_block_destroy(&D);
    free(d);
}

/* A product of doubles with an X of floats, by a kernel that takes 16 columns;
 * `odd` becomes one element of X. */
static void try_mixed(const rig *r, const sps_kernel *kernel, int k, double odd)
{
    double *x = zoo_block(r->A->nrow, k, k, 3, ZOO_INTEGER);
    sps_spmm_args args = { .alpha = -2 };
    image X, Y;

    x[r->A->nrow / 2 * k + k / 2] = odd;
    image_take(&X, ctx, SPS_F32, r->A->nrow, k, 0, x, k);
    free(x);
    image_open_as(&Y, ctx, SPS_F64, r->A->nrow, k, 0, 0, ZOO_INTEGER);
    args.X = X.B;
    args.Y = Y.B;
    ck_assert_int_eq(kernel->mixes(r->plan, &args), k == 16);
    if (k == 16) {
        OK(ctx, kernel->spmm(r->plan, &args));
        OK(ctx, ctx->backend->sync(ctx));
        judge(r, &X, NULL, &Y, NULL, 0, k);
    }
    image_close(&X);
    image_close(&Y);
}

static void try_mesh(const mesh *m, sps_dtype dtype)
{
    const int widths[] = { 8, 15, 16, 32 };
    sps_csr *A = mesh_matrix(m, dtype);
    rig r;

    rig_take(&r, ctx, m->what, A);
    r.block = dtype;
    for (int w = 0; w < 4; w++) {
        ck_assert(rig_plan(&r, rode(), widths[w]));
        try_width(&r, widths[w], 0, false);
        try_width(&r, widths[w], 3, false);
        try_width(&r, widths[w], 0, true);
        try_width(&r, widths[w], -1, true);
        if (dtype == SPS_F64) try_mixed(&r, rode(), widths[w], NAN);
    }
    try_width(&r, 16, 0, false);
    r.A = NULL;
    rig_close(&r);
    sps_csr_destroy(ctx, &A);
}

START_TEST(products_of_doubles_on_grids_are_exact)
{
    if (!rode()) runner_skip("no kernel spmm.rode here");
    for (size_t m = 0; m < sizeof MESHES / sizeof *MESHES; m++)
        try_mesh(&MESHES[m], SPS_F64);
}
END_TEST

START_TEST(products_of_floats_on_grids_are_exact)
{
    if (!rode()) runner_skip("no kernel spmm.rode here");
    for (size_t m = 0; m < sizeof MESHES / sizeof *MESHES; m++)
        try_mesh(&MESHES[m], SPS_F32);
}
END_TEST

/* The mesh with blocks of b x b in place of its entries. */
static sps_csr *node_matrix(const mesh *m, int b)
{
    const int64_t n = (int64_t)m->nx * m->ny * m->nz;
    sps_csr *points = mesh_matrix(m, SPS_F64), *A = NULL;

    OK(ctx, sps_csr_create(ctx, n * b, n * b, points->nnz * b * b, SPS_F64,
                           &A));
    for (int64_t i = 0, p = 0; i < n * b; i++) {
        for (int64_t q = points->rowptr[i / b]; q < points->rowptr[i / b + 1];
             q++)
            for (int c = 0; c < b; c++, p++) {
                A->col[p] = points->col[q] * b + c;
                ((double *)A->val)[p] = (double)((i * 5 + p * 3) % 7 - 3);
            }
        A->rowptr[i + 1] = p;
    }
    sps_csr_destroy(ctx, &points);
    return A;
}

START_TEST(products_of_blocks_and_floats_are_exact)
{
    const sps_kernel *blocks = named("spmm.blocks");
    const mesh m = { "nodes", 14, 13, 12, true, 0 };
    const int sizes[] = { 2, 3, 6 };

    if (!blocks) runner_skip("no kernel spmm.blocks here");
    for (int t = 0; t < 3; t++) {
        sps_csr *A = node_matrix(&m, sizes[t]);
        rig r;

        rig_take(&r, ctx, m.what, A);
        r.block = SPS_F64;
        ck_assert(rig_plan(&r, blocks, 16));
        try_mixed(&r, blocks, 16, 1);
        try_mixed(&r, blocks, 15, 1);
        r.A = NULL;
        rig_close(&r);
        sps_csr_destroy(ctx, &A);
    }
}
END_TEST

START_TEST(products_of_tiles_and_floats_are_exact)
{
    const sps_kernel *tiles = named("spmm.tiles");

    if (!tiles) runner_skip("no kernel spmm.tiles here");
    for (size_t m = 0; m < sizeof MESHES / sizeof *MESHES; m++) {
        sps_csr *A = mesh_matrix(&MESHES[m], SPS_F64);
        rig r;

        rig_take(&r, ctx, MESHES[m].what, A);
        r.block = SPS_F64;
        ck_assert(rig_plan(&r, tiles, 16));
        try_mixed(&r, tiles, 16, 1);
        try_mixed(&r, tiles, 16, NAN);
        try_mixed(&r, tiles, 15, 1);
        r.A = NULL;
        rig_close(&r);
        sps_csr_destroy(ctx, &A);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(products_of_tiles_and_floats_are_exact),
    RUNNER_TEST(products_of_blocks_and_floats_are_exact),
    RUNNER_TEST(products_of_doubles_on_grids_are_exact),
    RUNNER_TEST(products_of_floats_on_grids_are_exact),
};
RUNNER_MAIN_WITHIN("rode_short", tests, open_context, close_context)
