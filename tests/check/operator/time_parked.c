/* SPDX-License-Identifier: BSD-3-Clause */
/* time_parked.c - how many rows block CG has room for on a GPU of limited
 * memory, and the time of its iterations, with and without blocks in host
 * memory (driver/parked.c, block/owned.h).  Run by name
 * (run-gpu-tests time_parked):
 *
 *   time_parked [LIMIT_MB [COLUMNS]]
 *
 * The matrix is that of `mtxgen poisson7 64 64 LAYERS -perturb 1`; the context
 * takes LIMIT_MB (default 1000) of the GPU, in which A, B and X are, with
 * COLUMNS (default 16) columns.  Without blocks in host memory the backend has
 * none to share.  The largest number of layers is found by bisection, for A on
 * the GPU, whatever the operator would choose, for A streamed, and for those of
 * which the operator keeps A on the GPU, with options that name method and
 * preconditioner and without.  It prints these rows, and milliseconds an
 * iteration with them and with those of the first line. */
#include <stdio.h>
#include <stdlib.h>

#include "core/backend.h"
#include "core/context.h"
#include "core/timer.h"
#include "operator/operator.h"
#include "tools/generator/gen.h"

static size_t limit;
static int columns;

typedef struct way {
    const char *name;
    bool resident;           /* the operator is made without the limit */
    bool parks;
    bool named;              /* the operator's options are the solver's */
} way;

static const way ways[] = {
    { "A on the GPU, nothing parked", true, false, false },
    { "A on the GPU, blocks parked", true, true, false },
    { "A streamed, nothing parked", false, false, false },
    { "A streamed, blocks parked", false, true, false },
    { "A streamed, options named", false, true, true },
};
enum { WAYS = sizeof ways / sizeof *ways };

typedef struct outcome {
    bool room, far;
    double ms;               /* an iteration */
    int64_t rows;
} outcome;

static void need(sps_context *ctx, sps_status st)
{
    if (st == SPS_OK) return;
    printf("%s: %s\n", sps_status_string(st), sps_context_error(ctx));
    exit(1);
}

/* Returns whether there was device memory for it. */
static bool had_room(sps_context *ctx, sps_status st)
{
    if (st != SPS_EDEVMEM) need(ctx, st);
    return st == SPS_OK;
}

static int make_rows(int64_t first, int64_t count, int64_t *rowptr,
                     int32_t *col, void *val, void *data)
{
    rowptr[0] = 0;
    for (int64_t r = 0; r < count; r++)
        rowptr[r + 1] = rowptr[r] + gen_row(data, first + r, col + rowptr[r],
                                            (double *)val + rowptr[r]);
    return 0;
}

static gen grid(int64_t layers)
{
    gen_spec spec;
    char error[160];
    gen g;

    gen_default(&spec);
    spec.kind = GEN_POISSON7;
    spec.n[0] = spec.n[1] = 64;
    spec.n[2] = layers;
    spec.perturb = true;
    spec.perturb_seed = 1;
    if (gen_open(&spec, &g, error)) return g;
    printf("%s\n", error);
    exit(1);
}

static sps_context *open_gpu(void)
{
    sps_context_options o;
    sps_context *ctx = NULL;

    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    if (sps_context_create(&o, &ctx, NULL) == SPS_OK) return ctx;
    puts("no GPU");
    exit(77);
}

static void choose(sps_options *o, int most)
{
    sps_options_default(o);
    o->solver = "block_cg";
    o->precond = "jacobi";
    o->rtol = 1e-14;
    o->max_iterations = most;
}

/* *room: whether a solve of `most` iterations has room.  Returns its
 * seconds. */
static double solve(sps_operator *op, const sps_block *B, sps_block *X,
                    int most, bool *room)
{
    sps_context *ctx = op->ctx;
    sps_result result = { .struct_size = sizeof result };
    sps_solver *s = NULL;
    sps_options o;
    double start;

    choose(&o, most);
    *room = had_room(ctx, sps_solver_create(op, NULL, columns, &o, &s));
    if (!*room) return 0;
    need(ctx, ctx->backend->fill(X, 0.0));
    need(ctx, ctx->backend->sync(ctx));
    start = spsi_now();
    *room = had_room(ctx, sps_solver_linear(s, B, X, &result));
    start = spsi_now() - start;
    sps_solver_destroy(&s);
    return start;
}

/* The first solve finds the host's share of the products. */
static void run(sps_operator *op, const sps_block *B, sps_block *X, bool timed,
                outcome *is)
{
    double more, few;

    (void)solve(op, B, X, 10, &is->room);
    if (!is->room || !timed) return;
    more = solve(op, B, X, 60, &is->room);
    few = solve(op, B, X, 10, &is->room);
    is->ms = 1e3 * (more - few) / 50;
}

static sps_operator *operator_of(sps_context *ctx, gen *g, bool named)
{
    sps_csr shape = { .struct_size = sizeof shape, .nrow = g->rows,
                      .ncol = g->rows, .nnz = g->nnz, .dtype = SPS_F64,
                      .props = SPS_SYMMETRIC | SPS_SPD };
    sps_operator *op = NULL;
    sps_options o;

    choose(&o, 1);
    if (had_room(ctx, sps_operator_rows(ctx, &shape, g->widest, make_rows, g,
                                        columns, named ? &o : NULL, &op)))
        return op;
    return NULL;
}

static outcome attempt(const way *w, int64_t layers, bool timed)
{
    gen g = grid(layers);
    sps_context *ctx = open_gpu();
    const sps_backend *real = ctx->backend;
    sps_backend table = *real;
    outcome is = { .rows = g.rows };
    sps_block *X = NULL, *B = NULL;
    sps_operator *op;

    if (!w->resident) ctx->opt.max_device_bytes = limit;
    op = operator_of(ctx, &g, w->named);
    is.far = op && op->local.far;
    ctx->opt.max_device_bytes = limit;
    table.share = NULL;
    if (!w->parks) ctx->backend = &table;
    if (op && had_room(ctx, sps_block_create(ctx, g.rows, columns, &B)) &&
        had_room(ctx, sps_block_create(ctx, g.rows, columns, &X))) {
        need(ctx, sps_block_random(B, 5));
        run(op, B, X, timed, &is);
    }
    ctx->backend = real;
    sps_block_destroy(&X);
    sps_block_destroy(&B);
    sps_operator_destroy(&op);
    gen_close(&g);
    sps_context_destroy(&ctx);
    return is;
}

/* Returns the largest number of layers of the grid for which a solve has room,
 * or, if `kept`, for which the operator still keeps A on the GPU. */
static int64_t most_layers(const way *w, bool kept)
{
    int64_t least = 1, over = (int64_t)(limit / 3 / 8) / columns / 4096;

    while (over - least > 1) {
        const int64_t middle = (least + over) / 2;
        const outcome is = attempt(w, middle, false);

        if (kept ? !is.far : is.room) least = middle;
        else over = middle;
    }
    return least;
}

static void print(const char *name, outcome is, int64_t first)
{
    printf("%-30s %9lld rows, %.3f of the first line; %.3f ms an iteration, "
           "%.3f ns a row%s\n", name, (long long)is.rows,
           (double)is.rows / (double)first, is.ms, 1e6 * is.ms /
           (double)is.rows, is.far ? "; streamed" : "");
}

int main(int argc, char **argv)
{
    int64_t first = 0, rows = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    limit = (size_t)(argc > 1 ? atoll(argv[1]) : 1000) * 1000000;
    columns = argc > 2 ? atoi(argv[2]) : 16;
    for (int i = 0; i < WAYS; i++) {
        const int64_t layers = most_layers(&ways[i], false);
        const outcome is = attempt(&ways[i], layers, true);

        if (i == 0) first = layers;
        if (i == 0) rows = is.rows;
        print(ways[i].name, is, rows);
        if (i > 0) print("  the same", attempt(&ways[i], first, true), rows);
    }
    for (int i = 3; i < WAYS; i++)
        print(i == 3 ? "kept on the GPU" : "kept, options named",
              attempt(&ways[i], most_layers(&ways[i], true), true), rows);
    return 0;
}
