/* SPDX-License-Identifier: BSD-3-Clause */
/* time_ranks.c - the time of an iteration of a method by several processes with
 * a GPU each, on the 7-point Laplacian: run by name, not a test.
 *   usage: mpirun -n P time_ranks X Y Z [COLUMNS [PRECOND [ITERATIONS [HOW]]]]
 * HOW: cpu: on the host; aside, before: messages pass beside the product of the
 * interior rows, or before it, whatever the library would choose; nodes: each
 * point has three unknowns, coupled to those of 27 points as in elasticity.
 * X x Y x Z points of the grid for each process, in slabs along z, so that the
 * system grows with P.  The second of two solves is shown, of as many
 * iterations on all.  With `stages` in place of PRECOND, the parts of a product
 * and the sums are timed instead, each in a loop of ITERATIONS; with 0
 * ITERATIONS, set-ups of the preconditioner, and new values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block/block.h"
#include "core/backend.h"
#include "core/comm.h"
#include "core/timer.h"
#include "operator/operator_ranks.h"

static sps_comm *comm;
static int rank, size;

static void check(sps_status st, const char *text)
{
    if (st == SPS_OK) return;
    fprintf(stderr, "process %d: %s\n", rank, text);
    sps_comm_abort(comm, 1);
    exit(1);
}

typedef struct slab_of {
    int64_t n[3], whole;      /* points of a process; points of all along z */
    int unknowns, reach;      /* of a point; coordinates that neighbours differ
                                 in: 1 for 7 points, 3 for 27 */
} slab_of;

static int64_t row_of(const slab_of *g, int64_t row, int64_t *column,
                      double *value)
{
    const int64_t q = g->unknowns, point = row / q, x = point % g->n[0];
    const int64_t y = point / g->n[0] % g->n[1], z = point / g->n[0] / g->n[1];
    int64_t count = 0;

    for (int s = 0; s < 27; s++) {
        const int64_t d[3] = { s % 3 - 1, s / 3 % 3 - 1, s / 9 - 1 };

        if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > g->reach) continue;
        if (x + d[0] < 0 || x + d[0] >= g->n[0] || y + d[1] < 0 ||
            y + d[1] >= g->n[1] || z + d[2] < 0 || z + d[2] >= g->whole)
            continue;
        for (int64_t b = 0; b < q; b++) {
            column[count] = q * (point + d[0] + g->n[0] *
                                 (d[1] + g->n[1] * d[2])) + b;
            value[count] = column[count] == row ? (q > 1 ? 81 : 6) : -1;
            count++;
        }
    }
    return count;
}

static sps_csr *slab(sps_context *ctx, const slab_of *g)
{
    const int64_t rows = g->n[0] * g->n[1] * g->n[2] * g->unknowns;
    const int64_t first = rank * rows, most = g->unknowns > 1 ? 81 : 7;
    int64_t *rowptr = malloc((size_t)(rows + 1) * sizeof *rowptr), nnz = 0;
    int64_t *column = malloc((size_t)(most * rows) * sizeof *column);
    double *value = malloc((size_t)(most * rows) * sizeof *value);
    sps_csr *A = NULL;

    if (!rowptr || !column || !value) check(SPS_ENOMEM, "no memory");
    rowptr[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        nnz += row_of(g, first + i, column + nnz, value + nnz);
        rowptr[i + 1] = nnz;
    }
    check(sps_csr_wrap_rows(ctx, first, rows, rows * size, nnz, rowptr, column,
                            value, SPS_F64, SPS_ADOPT, &A),
          sps_context_error(ctx));
    A->props |= SPS_SPD | SPS_SYMMETRIC;
    return A;
}

static void solve(sps_context *ctx, sps_solver *s, const sps_block *B,
                  int64_t n, int k, bool shown)
{
    sps_result r = { .struct_size = sizeof r };
    sps_block *X = NULL;

    check(sps_block_create(ctx, n, k, &X), "no memory for X");
    check(sps_solver_linear(s, B, X, &r), sps_context_error(ctx));
    sps_block_destroy(&X);
    if (rank > 0 || !shown) return;
    printf("%d processes, %d iterations, %s, %s, %s: %.1f us an iteration "
           "(product %.1f, blocks %.1f, precond %.1f); residual %.1e\n", size,
           r.iterations, r.solver, r.precond, r.kernel,
           1e6 * r.seconds.solve / r.iterations,
           1e6 * r.seconds.spmm / r.iterations,
           1e6 * r.seconds.gram / r.iterations,
           1e6 * r.seconds.precond / r.iterations, r.worst_residual);
    for (int i = 0; sps_context_note(ctx, i); i++)
        printf("    %s\n", sps_context_note(ctx, i));
}

/* ------------------------------------------------------------------ stages */

typedef struct stage {
    sps_context *ctx;
    const sps_operator *op;
    const sps_ranks *r;
    sps_block *X, *Y;
    double *sums;             /* in the memory of the blocks */
} stage;

static sps_status pack(const stage *s)
{
    return spsi_take_rows(s->X, s->r->at.send, s->r->packed);
}

/* The rows of the operand that are own rows. */
static sps_block own_rows(const stage *s)
{
    sps_block own = *s->r->operand;

    own.n = s->r->touched;
    own.data = (double *)own.data + s->r->halo->low * own.ld;
    return own;
}

static sps_status gather(const stage *s)
{
    sps_block own = own_rows(s);

    return spsi_take_rows(s->X, s->r->at.touch, &own);
}

static sps_status interior(const stage *s)
{
    return sps_operator_apply(s->r->interior, 1, s->X, 0, s->Y);
}

static sps_status boundary(const stage *s)
{
    return sps_operator_apply(s->r->boundary, 1, s->r->operand, 0,
                              s->r->result[0]);
}

static sps_status put(const stage *s)
{
    return spsi_put_rows(s->r->result[0], s->r->at.row, s->Y);
}

static sps_status around(const stage *s, sps_status (*inner)(const stage *))
{
    sps_status st = spsi_halo_start(s->r->halo, s->r->packed, false,
                                    s->r->operand);

    if (st == SPS_OK && inner) st = inner(s);
    return st == SPS_OK ? spsi_halo_finish(s->r->halo) : st;
}

static sps_status halo(const stage *s) { return around(s, NULL); }

static sps_status beside(const stage *s)
{
    const bool before = s->r->halo->aside;
    sps_status st;

    s->r->halo->aside = true;
    st = around(s, interior);
    s->r->halo->aside = before;
    return st;
}

static sps_status edge(const stage *s)
{
    const sps_edge e = spsi_ranks_edge(s->r);

    return s->r->adds ? spsi_wire(s->ctx)->add_edge(&e, 1, NULL, s->X,
                                                    s->r->operand, s->Y)
                      : SPS_OK;
}

static sps_status product(const stage *s)
{
    return sps_operator_apply(s->op, 1, s->X, 0, s->Y);
}

static sps_status sum_of(const stage *s, int count)
{
    const sps_wire *wire = spsi_wire(s->ctx);

    return wire && wire->queued(s->ctx)
        ? wire->sum(s->ctx, s->sums, s->sums, count) : SPS_OK;
}

/* The sums of an iteration of block_cg: 3 k^2 and k^2 + k numbers. */
static sps_status first_sum(const stage *s)
{
    return sum_of(s, 3 * s->X->k * s->X->k);
}

static sps_status second_sum(const stage *s)
{
    return sum_of(s, s->X->k * (s->X->k + 1));
}

static sps_status product_sums(const stage *s)
{
    sps_status st = product(s);

    if (st == SPS_OK) st = first_sum(s);
    return st == SPS_OK ? second_sum(s) : st;
}

static void show(const stage *s, const char *name,
                 sps_status (*run)(const stage *), int times)
{
    double seconds = 0, here = 0;

    for (int i = -10; i < times; i++) {
        if (i == 0) {
            check(s->ctx->backend->sync(s->ctx), "no end of the stage");
            check(sps_comm_sum(comm, &here, 1), "no sum");
            seconds = spsi_now();
        }
        check(run(s), sps_context_error(s->ctx));
    }
    check(s->ctx->backend->sync(s->ctx), "no end of the stage");
    seconds = (spsi_now() - seconds) / times;
    printf("process %d of %d: %-28s %8.1f us\n", rank, size, name,
           1e6 * seconds);
    fflush(stdout);
}

static void show_stages(sps_context *ctx, const sps_operator *op, int k,
                        int times)
{
    stage s = { .ctx = ctx, .op = op, .r = op->ranks };
    void *room = NULL;

    check(sps_block_create(ctx, op->n, k, &s.X), "no memory for X");
    check(sps_block_create(ctx, op->n, k, &s.Y), "no memory for Y");
    check(sps_block_random(s.X, 1), sps_context_error(ctx));
    check(ctx->backend->alloc(ctx, (size_t)(3 * k * k + k) * sizeof(double),
                              &room), "no memory for sums");
    s.sums = room;
    if (s.r) {
        printf("process %d: %lld rows at the border, %lld sent, %lld received, "
               "%s the product; interior %s, boundary %s\n", rank,
               (long long)s.r->rows,
               (long long)s.r->halo->send_at[s.r->halo->neighbours],
               (long long)s.r->halo->ghosts,
               s.r->halo->aside ? "beside" : "before",
               s.r->interior->block->kernel->name,
               s.r->boundary->block->kernel->name);
        show(&s, "pack", pack, times);
        show(&s, "gather", gather, times);
        show(&s, "exchange", halo, times);
        show(&s, "interior", interior, times);
        show(&s, "interior beside exchange", beside, times);
        show(&s, "boundary", boundary, times);
        show(&s, "put", put, times);
        show(&s, "boundary in its place", edge, times);
        show(&s, "sum of 3 k^2", first_sum, times);
        show(&s, "sum of k^2 + k", second_sum, times);
        show(&s, "product and sums", product_sums, times);
    }
    show(&s, "product", product, times);
    ctx->backend->release(ctx, room, (size_t)(3 * k * k + k) * sizeof(double));
    sps_block_destroy(&s.X);
    sps_block_destroy(&s.Y);
}

/* ------------------------------------------------------------------ set-up */

static double together(sps_context *ctx)
{
    double here = 0;

    check(ctx->backend->sync(ctx), "no end of the work");
    check(sps_comm_sum(comm, &here, 1), "no sum");
    return spsi_now();
}

static void show_set_ups(sps_context *ctx, sps_csr *A, int k,
                         const sps_options *opt)
{
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    char text[4096];
    double t[5];

    for (int i = 0; i < 3; i++) {
        t[0] = together(ctx);
        check(sps_operator_csr(ctx, A, k, opt, &op), sps_context_error(ctx));
        t[1] = together(ctx);
        check(sps_precond_create(op, k, opt, &M), sps_context_error(ctx));
        t[2] = together(ctx);
        if (i == 0) sps_precond_describe(M, text, sizeof text);
        if (i == 0 && rank == 0) printf("%s", text);
        check(sps_operator_set_values(op, A->val, SPS_HOST),
              sps_context_error(ctx));
        t[3] = together(ctx);
        check(sps_precond_update(M), sps_context_error(ctx));
        t[4] = together(ctx);
        if (i == 2) sps_precond_describe(M, text, sizeof text);
        if (i == 2 && rank == 0) printf("%s", text);
        if (rank == 0)
            printf("%d processes: operator %.1f ms, set-up %.1f, values %.1f, "
                   "update %.1f\n", size, 1e3 * (t[1] - t[0]),
                   1e3 * (t[2] - t[1]), 1e3 * (t[3] - t[2]),
                   1e3 * (t[4] - t[3]));
        sps_precond_destroy(&M);
        sps_operator_destroy(&op);
    }
}

int main(int argc, char **argv)
{
    slab_of g = { .n = { argc > 1 ? atoi(argv[1]) : 64,
                         argc > 2 ? atoi(argv[2]) : 64,
                         argc > 3 ? atoi(argv[3]) : 64 } };
    const bool nodes = argc > 7 && !strcmp(argv[7], "nodes");
    const int k = argc > 4 ? atoi(argv[4]) : 16;
    const bool stages = argc > 5 && !strcmp(argv[5], "stages");
    const bool host = argc > 7 && !strcmp(argv[7], "cpu");
    sps_context_options co;
    sps_context *ctx = NULL;
    sps_operator *op = NULL;
    sps_solver *solver = NULL;
    sps_block *B = NULL;
    sps_options opt;
    const char *why = "";
    sps_csr *A;

    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE"))
        check(sps_comm_mpi(SPS_MPI_WORLD, &comm), sps_context_error(NULL));
    sps_comm_shape(comm, &rank, &size);
    sps_context_options_default(&co);
    co.place = host ? SPS_HOST : SPS_CUDA;
    co.comm = comm;
    check(sps_context_create(&co, &ctx, &why), why);
    g.whole = g.n[2] * size;
    g.unknowns = nodes ? 3 : 1;
    g.reach = nodes ? 3 : 1;
    A = slab(ctx, &g);
    sps_options_default(&opt);
    opt.solver = "block_cg";
    opt.precond = argc > 5 && !stages ? argv[5] : "none";
    opt.max_iterations = argc > 6 ? atoi(argv[6]) : 200;
    opt.rtol = 1e-12;
    opt.nullspace = "none";
    check(sps_operator_csr(ctx, A, k, &opt, &op), sps_context_error(ctx));
    if (op->ranks && argc > 7 && !host && !nodes)
        op->ranks->halo->aside = !strcmp(argv[7], "aside");
    if (opt.max_iterations == 0) {
        sps_operator_destroy(&op);
        opt.max_iterations = 1;
        show_set_ups(ctx, A, k, &opt);
    } else if (stages) {
        show_stages(ctx, op, k, opt.max_iterations);
    } else {
        check(sps_block_create(ctx, A->nrow, k, &B), "no memory for B");
        check(sps_block_random(B, 1), sps_context_error(ctx));
        check(sps_solver_create(op, NULL, k, &opt, &solver),
              sps_context_error(ctx));
        solve(ctx, solver, B, A->nrow, k, false);
        solve(ctx, solver, B, A->nrow, k, true);
    }
    sps_solver_destroy(&solver);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    sps_comm_destroy(&comm);
    return 0;
}
