/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_bits.c - bitwise reproducibility: the same bits from the same
 * plan and from others, after a refresh, on any stream, captured and replayed,
 * concurrently with other work, with any number of threads; and no memory
 * allocated meanwhile. */
#include "tests/conform/kernels/conform_kernels.h"

/* 0.7 A X by the rig's plan in its context, X of the exam; the caller frees the
 * returned array, rows of k numbers. */
static double *product(const rig *r, const exam *e, int k)
{
    sps_spmm_args args = { .alpha = 0.7 };
    double *y = malloc((size_t)(r->A->nrow * k + 1) * sizeof *y);
    image X, Y;

    image_take(&X, r->ctx, e->t->block, r->A->ncol, k, 0, e->x, e->k);
    image_take(&Y, r->ctx, e->t->block, r->A->nrow, k, 0, NULL, k);
    args.X = X.B;
    args.Y = Y.B;
    OK(r->ctx, r->plan->kernel->spmm(r->plan, &args));
    image_read(&Y, r->plan->kernel->name);
    for (int64_t i = 0; i < r->A->nrow; i++)
        memcpy(y + i * k, Y.out + i * Y.ld, (size_t)k * sizeof *y);
    image_close(&X);
    image_close(&Y);
    return y;
}

static void same_bits(const rig *r, int k, const double *a, const double *b,
                      const char *what)
{
    demand(!memcmp(a, b, (size_t)(r->A->nrow * k) * sizeof *a),
           "%s on %s, f%d, k %d: other bits %s",
           r->plan->kernel->name, r->what,
           r->block == SPS_F64 ? 64 : 32, k, what);
}

/* Another run must have these bits. */
static void expect_bits(const rig *r, const exam *e, int k,
                        const double *first, const char *what)
{
    double *again = product(r, e, k);

    same_bits(r, k, first, again, what);
    free(again);
}

static bool repeats(const sps_kernel *kernel, const types *t)
{
    return kernel->gives & SPS_REPRODUCIBLE && takes(kernel, t);
}

/* Repeatedly with the same plan, then with a new one. */
static void repeat(exam *e, const sps_kernel *kernel, int k, int runs)
{
    double *first = product(&e->r, e, k);

    for (int i = 1; i < runs; i++)
        expect_bits(&e->r, e, k, first, "at another run");
    rig_plan(&e->r, kernel, k);
    expect_bits(&e->r, e, k, first, "with another plan");
    free(first);
}

/* Twenty runs for kernels that distribute rows over many thread blocks, three
 * for the others. */
START_TEST(reproducible_kernels_repeat_their_bits)
{
    static const char *const split[] = { "power_law", "edges", "dense_row",
                                         "rmat", "arrow" };
    const bool all = fixture_env("SPS_TEST_LONG");
    const bool gpu = ctx->backend->place == SPS_CUDA;
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = 0; f < zoo_count() && wanted(&TYPE[d]);
             f += quick() ? 5 : 1) {
            int runs = all ? 20 : 2;
            exam e;

            for (int s = 0; s < COUNT(split) && gpu; s++)
                if (!strcmp(split[s], zoo_name(f))) runs = 20;
            exam_open(&e, f, 1500, ZOO_RANDOM, &TYPE[d], 33);
            for (int w = (f + d) % 2; w < FEW_COUNT; w += 2)
                FOR_KERNELS(kernel)
                    if (repeats(kernel, e.t) &&
                        rig_plan(&e.r, kernel, FEW[w]))
                        repeat(&e, kernel, FEW[w], runs);
            exam_close(&e);
        }
}
END_TEST

/* That the vendor's kernels are reproducible is an observation, not documented:
 * it is checked with enough work to occupy the whole GPU, too. */
START_TEST(kernels_of_vendors_repeat_their_bits_on_a_full_gpu)
{
    static const char *const patterns[] = { "grid27_dof3", "nodes6",
                                            "uniform", "blocks8" };
    const bool gpu = ctx->backend->place == SPS_CUDA;
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = 0; f < COUNT(patterns) && gpu && !quick(); f++) {
            exam e;

            if (!wanted(&TYPE[d])) continue;
            exam_open(&e, zoo_find(patterns[f]), 96000, ZOO_RANDOM, &TYPE[d],
                      4);
            FOR_KERNELS(kernel)
                for (int k = 1; k <= 4; k += 3)
                    if (kernel->gives & SPS_VENDOR &&
                        repeats(kernel, e.t) && rig_plan(&e.r, kernel, k))
                        repeat(&e, kernel, k, 20);
            exam_close(&e);
        }
}
END_TEST

/* A plan whose values were refreshed, and one created for these values. */
START_TEST(refreshed_plans_have_the_bits_of_fresh_ones)
{
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = d; f < zoo_count() && wanted(&TYPE[d]);
             f += quick() ? 9 : 3) {
            exam e;
            int64_t turn = 1;

            exam_open(&e, f, 300, ZOO_RANDOM, &TYPE[d], 17);
            FOR_KERNELS(kernel) {
                double *refreshed;
                int k = f % 2 ? 17 : 1;

                if (!repeats(kernel, e.t) || !rig_plan(&e.r, kernel, k))
                    continue;
                free(product(&e.r, &e, k));
                for (int64_t p = 0; p < e.r.A->nnz; p++)
                    rig_set_value(&e.r, p, 1.0 / (double)(1 + ++turn % 97));
                rig_refresh(&e.r);
                refreshed = product(&e.r, &e, k);
                rig_plan(&e.r, kernel, k);
                expect_bits(&e.r, &e, k, refreshed, "after a refresh");
                free(refreshed);
            }
            exam_close(&e);
        }
}
END_TEST

/* ---------------------------------------------------------- other contexts */

typedef struct pair {
    sps_context *a, *b;
} pair;

static void close_pair(pair *p)
{
    fixture_close(&p->b);
    fixture_close(&p->a);
}

/* The same bits from plans of two contexts, at a few widths. */
static void compare_contexts(const pair *p, const char *what)
{
    const sps_kernel *kernel;

    for (int f = 0; f < zoo_count(); f += quick() ? 5 : 1) {
        rig r, s;
        exam e;

        exam_open(&e, f, 2100, ZOO_RANDOM, &TYPE[0], 33);
        rig_open(&r, p->a, f, 2100, ZOO_RANDOM, SPS_F64);
        rig_open(&s, p->b, f, 2100, ZOO_RANDOM, SPS_F64);
        for (int w = f % 2; w < FEW_COUNT; w += 2)
            FOR_KERNELS(kernel)
                if (repeats(kernel, e.t) && rig_plan(&r, kernel, FEW[w]) &&
                    rig_plan(&s, kernel, FEW[w])) {
                    double *first = product(&r, &e, FEW[w]);

                    expect_bits(&s, &e, FEW[w], first, what);
                    free(first);
                }
        rig_close(&r);
        rig_close(&s);
        exam_close(&e);
    }
}

START_TEST(threads_do_not_change_bits_on_the_host)
{
    pair p;

    if (ctx->backend->place != SPS_HOST) runner_leave_out("threads of the host");
    p.a = fixture_open_with(SPS_HOST, 1, true);
    p.b = fixture_open_with(SPS_HOST, 3, true);
    compare_contexts(&p, "with other threads");
    close_pair(&p);
}
END_TEST

/* A context on a stream of the caller. */
static sps_context *open_on_stream(void *stream)
{
    sps_context_options o;
    sps_context *with = NULL;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    o.stream = stream;
    demand(sps_context_create(&o, &with, &why) == SPS_OK, "%s", why);
    return with;
}

START_TEST(streams_do_not_change_bits)
{
    pair p;

    if (ctx->backend->place == SPS_HOST) runner_skip("streams of a GPU");
    p.a = fixture_open_with(SPS_CUDA, 1, true);
    p.b = open_on_stream(p.a->stream);
    ck_assert_ptr_eq(p.a->stream, p.b->stream);
    compare_contexts(&p, "on a caller's stream");
    close_pair(&p);
}
END_TEST

/* Queues products of this rig without synchronising. */
static void keep_busy(rig *r, const image *X, image *Y, int runs)
{
    for (int i = 0; i < runs; i++)
        OK(r->ctx, r->plan->kernel->spmm(r->plan, &(sps_spmm_args){
            .alpha = 1, .X = X->B, .Y = Y->B }));
}

START_TEST(other_work_on_the_gpu_does_not_change_bits)
{
    sps_context *other;
    const sps_kernel *kernel;
    image X, Y;
    exam e;
    rig r;

    if (ctx->backend->place == SPS_HOST) runner_skip("streams of a GPU");
    other = fixture_open_with(SPS_CUDA, 1, true);
    rig_open(&r, other, zoo_find("grid27"), quick() ? 1000 : 30000, ZOO_RANDOM, SPS_F64);
    image_open(&X, other, r.A->ncol, 32, 0, 3, ZOO_RANDOM);
    image_open(&Y, other, r.A->nrow, 32, 0, 0, ZOO_RANDOM);
    exam_open(&e, zoo_find("edges"), 1500, ZOO_RANDOM, &TYPE[0], 33);
    FOR_KERNELS(kernel)
        for (int w = 0; w < FEW_COUNT; w++) {
            double *first;

            if (!repeats(kernel, e.t) || !rig_plan(&e.r, kernel, FEW[w]) ||
                !rig_plan(&r, kernel, FEW[w] < 4 ? 1 : 32))
                continue;
            spsi_block_narrow(X.B, r.plan->k);
            spsi_block_narrow(Y.B, r.plan->k);
            first = product(&e.r, &e, FEW[w]);
            for (int i = 0; i < (quick() ? 1 : 4); i++) {
                keep_busy(&r, &X, &Y, 8);
                expect_bits(&e.r, &e, FEW[w], first, "beside other work");
            }
            OK(other, other->backend->sync(other));
            free(first);
        }
    exam_close(&e);
    image_close(&X);
    image_close(&Y);
    rig_close(&r);
    fixture_close(&other);
}
END_TEST

/* -------------------------------------------------------------- CUDA graphs */

/* Captures Y = alpha A X + beta Y with scalars in device memory, and replays it
 * with these scalars, with others, and with another X. */
static void record_and_replay(const exam *e, int k)
{
    const sps_backend *b = ctx->backend;
    const trial t = { k, layout++, 2, 1, true };
    const trial again[] = { { k, 0, 2, 1, true }, { k, 0, 3, 0, true },
                            { k, 0, -1, -2, true } };
    const char *name = e->r.plan->kernel->name;
    sps_spmm_args args = { .alpha = NAN, .beta = NAN,
                           .scalars = e->scalars + 1 };
    void *recording = NULL;
    image X, Y;

    image_take(&X, ctx, e->t->block, e->r.A->ncol, k, t.layout, e->x, e->k);
    image_take(&Y, ctx, e->t->block, e->r.A->nrow, k, t.layout, e->y, e->k);
    args.X = X.B;
    args.Y = Y.B;
    OK(ctx, b->record_begin(ctx));
    OK(ctx, e->r.plan->kernel->spmm(e->r.plan, &args));
    OK(ctx, b->record_end(ctx, &recording));
    image_read(&Y, name);
    demand(!memcmp(Y.back, Y.host, Y.bytes),
           "%s: ran while it was recorded", name);
    for (int i = 0; i < COUNT(again); i++) {
        const double pair[] = { again[i].alpha, again[i].beta };

        OK(ctx, b->upload(ctx, e->scalars + 1, pair, sizeof pair));
        image_upload(&Y);
        OK(ctx, b->replay(ctx, recording));
        image_read(&Y, name);
        judge(e, &again[i], &Y, name);
    }
    b->record_drop(ctx, recording);
    image_close(&X);
    image_close(&Y);
}

START_TEST(products_can_be_recorded_and_replayed)
{
    const sps_kernel *kernel;

    if (!ctx->backend->record_begin) runner_skip("nothing records here");
    for (int d = 0; d < TYPES; d++)
        for (int f = 0; f < zoo_count() && wanted(&TYPE[d]);
             f += quick() ? 5 : 1) {
            exam e;

            exam_open(&e, f, f % 2 ? 1100 : 70, TYPE[d].exact, &TYPE[d], 33);
            for (int w = (f + d) % 2; w < FEW_COUNT; w += 2)
                FOR_KERNELS(kernel)
                    if (takes(kernel, e.t) && rig_plan(&e.r, kernel, FEW[w]))
                        record_and_replay(&e, FEW[w]);
            exam_close(&e);
        }
}
END_TEST

/* A replay gives the bits of a direct run; a hundred replays in a row (three in
 * the small set). */
static void replay_bits(const exam *e, int k)
{
    const sps_backend *b = ctx->backend;
    const char *name = e->r.plan->kernel->name;
    double *first = product(&e->r, e, k);
    void *recording = NULL;
    image X, Y;

    image_take(&X, ctx, e->t->block, e->r.A->ncol, k, 0, e->x, e->k);
    image_take(&Y, ctx, e->t->block, e->r.A->nrow, k, 0, NULL, k);
    OK(ctx, b->record_begin(ctx));
    OK(ctx, e->r.plan->kernel->spmm(e->r.plan, &(sps_spmm_args){
        .alpha = 0.7, .X = X.B, .Y = Y.B }));
    OK(ctx, b->record_end(ctx, &recording));
    for (int i = 0; i < (quick() ? 3 : 100); i++)
        OK(ctx, b->replay(ctx, recording));
    image_read(&Y, name);
    for (int64_t i = 0; i < e->r.A->nrow; i++)
        demand(!memcmp(first + i * k, Y.out + i * Y.ld,
                       (size_t)k * sizeof *first), "%s on %s k %d: "
               "other bits when replayed", name, e->r.what, k);
    b->record_drop(ctx, recording);
    image_close(&X);
    image_close(&Y);
    free(first);
}

START_TEST(replays_have_the_bits_of_runs)
{
    static const char *const patterns[] = { "edges", "power_law", "grid7" };
    const sps_kernel *kernel;

    if (!ctx->backend->record_begin) runner_skip("nothing records here");
    for (int d = 0; d < TYPES; d++)
        for (int f = quick() ? d % COUNT(patterns) : 0;
             f < COUNT(patterns) && wanted(&TYPE[d]);
             f += quick() ? COUNT(patterns) : 1) {
            exam e;

            exam_open(&e, zoo_find(patterns[f]), 1500, ZOO_RANDOM, &TYPE[d],
                      33);
            for (int w = 0; w < FEW_COUNT; w += quick() ? 2 : 1)
                FOR_KERNELS(kernel)
                    if (repeats(kernel, e.t) &&
                        rig_plan(&e.r, kernel, FEW[w]))
                        replay_bits(&e, FEW[w]);
            exam_close(&e);
        }
}
END_TEST

void add_bits(TCase *t)
{
    tcase_add_test(t, reproducible_kernels_repeat_their_bits);
    tcase_add_test(t, kernels_of_vendors_repeat_their_bits_on_a_full_gpu);
    tcase_add_test(t, refreshed_plans_have_the_bits_of_fresh_ones);
    tcase_add_test(t, threads_do_not_change_bits_on_the_host);
    tcase_add_test(t, streams_do_not_change_bits);
    tcase_add_test(t, other_work_on_the_gpu_does_not_change_bits);
    tcase_add_test(t, products_can_be_recorded_and_replayed);
    tcase_add_test(t, replays_have_the_bits_of_runs);
}
