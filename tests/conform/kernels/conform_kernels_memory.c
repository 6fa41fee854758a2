/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_memory.c - products allocate no memory, plans free theirs,
 * and nothing is written outside of allocations. */
#include "tests/conform/kernels/conform_kernels.h"

static void expect_no_memory(const exam *e, int k)
{
    sps_context_info before = { .struct_size = sizeof before };
    sps_context_info after = { .struct_size = sizeof after };
    const trial t = { k, 0, 1, 0, false };
    image X, Y;

    image_take(&X, ctx, e->t->block, e->r.A->ncol, k, 0, e->x, e->k);
    image_take(&Y, ctx, e->t->block, e->r.A->nrow, k, 0, NULL, k);
    /* Reset the peaks to the memory held now. */
    ctx->memory.host_peak = ctx->memory.host;
    ctx->memory.device_peak = ctx->memory.device;
    sps_context_information(ctx, &before);
    run(e, &t, X.B, Y.B);
    sps_context_information(ctx, &after);
    demand(after.host_peak == before.host_peak &&
           after.device_peak == before.device_peak, "%s allocated",
           e->r.plan->kernel->name);
    image_close(&X);
    image_close(&Y);
}

START_TEST(a_product_allocates_nothing)
{
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = d; f < zoo_count() && wanted(&TYPE[d]);
             f += quick() ? 9 : 2) {
            exam e;

            exam_open(&e, f, 300, ZOO_RANDOM, &TYPE[d], 16);
            FOR_KERNELS(kernel)
                for (int k = 1; k <= 16; k += 15)
                    if (takes(kernel, e.t) && rig_plan(&e.r, kernel, k))
                        expect_no_memory(&e, k);
            exam_close(&e);
        }
}
END_TEST

/* Destroying a plan frees the plan and all that it holds. */
START_TEST(plans_give_back_their_memory)
{
    const sps_kernel *kernel;
    exam e;

    exam_open(&e, zoo_find("power_law"), 1500, ZOO_RANDOM, &TYPE[1], 1);
    FOR_KERNELS(kernel)
        for (int k = 1; k <= 33; k += 8) {
            size_t host, device;

            /* A first plan, since the context keeps what the first plan of a
             * kind creates. */
            if (!rig_plan(&e.r, kernel, k)) continue;
            spsi_plan_destroy(&e.r.plan);
            host = ctx->memory.host;
            device = ctx->memory.device;
            rig_plan(&e.r, kernel, k);
            demand(e.r.plan->bytes <= ctx->memory.device - device +
                   ctx->memory.host - host, "%s: a plan of %zu bytes "
                   "holds %zu", kernel->name, e.r.plan->bytes,
                   ctx->memory.device - device + ctx->memory.host - host);
            spsi_plan_destroy(&e.r.plan);
            demand(ctx->memory.host == host &&
                   ctx->memory.device == device,
                   "%s keeps memory of a plan", kernel->name);
        }
    exam_close(&e);
}
END_TEST

/* ------------------------------------------------------------------ guards */

enum { GUARD = 256, MARK = 0xa5 };

/* An allocator with a guard on both sides of each block; damaged: a guard was
 * overwritten. */
typedef struct guards {
    sps_context *lender;     /* NULL: host memory */
    bool damaged;
} guards;

static void mark(const guards *g, char *p)
{
    char text[GUARD];

    memset(text, MARK, sizeof text);
    if (!g->lender) memcpy(p, text, sizeof text);
    else OK(g->lender, g->lender->backend->upload(g->lender, p, text, GUARD));
}

static void look(guards *g, const char *p)
{
    char text[GUARD];

    if (!g->lender) memcpy(text, p, sizeof text);
    else OK(g->lender, g->lender->backend->download(g->lender, text, p, GUARD));
    for (int i = 0; i < GUARD; i++)
        if ((unsigned char)text[i] != MARK) g->damaged = true;
}

static void *lend(size_t bytes, void *data)
{
    const guards *g = data;
    void *base = NULL;

    if (!g->lender) base = malloc(bytes + 2 * GUARD);
    else OK(g->lender, g->lender->backend->alloc(g->lender, bytes + 2 * GUARD,
                                                 &base));
    mark(g, base);
    mark(g, (char *)base + GUARD + bytes);
    return (char *)base + GUARD;
}

static void take_back(void *p, size_t bytes, void *data)
{
    guards *g = data;
    char *base = (char *)p - GUARD;

    look(g, base);
    look(g, base + GUARD + bytes);
    if (!g->lender) free(base);
    else g->lender->backend->release(g->lender, base, bytes + 2 * GUARD);
}

static sps_context *open_guarded(guards *g)
{
    const sps_allocator hook = { sizeof hook, lend, take_back, g };
    sps_context_options o;
    sps_context *guarded = NULL;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = ctx->backend->place;
    o.threads = 2;
    if (o.place == SPS_HOST) o.host = &hook;
    else o.gpu = &hook;
    g->lender = o.place == SPS_HOST ? NULL : ctx;
    demand(sps_context_create(&o, &guarded, &why) == SPS_OK, "%s", why);
    return guarded;
}

/* The kernel at this width, and with the same plan at one column. */
static void try_guarded(exam *e, const sps_kernel *kernel, int k, guards *g)
{
    if (!takes(kernel, e->t) || !rig_plan(&e->r, kernel, k)) return;
    try_in_turn(e, k);
    try_in_turn(e, 1);
    spsi_plan_destroy(&e->r.plan);
    demand(!g->damaged, "%s on %s, k %d, wrote beside its memory",
           kernel->name, e->r.what, k);
}

/* The GPU's allocator rounds up to 256 bytes and more, so that a small overrun
 * is not detected by itself, but would overwrite other data where a caller's
 * allocator is tighter. */
START_TEST(nobody_writes_beside_what_was_allocated)
{
    const int step = quick() ? 9 : 1;
    sps_context *plain = ctx;
    const sps_kernel *kernel;
    guards g = { NULL, false };

    ctx = open_guarded(&g);
    for (int d = 0; d < TYPES; d++)
        for (int f = d % step; f < zoo_count() && wanted(&TYPE[d]);
             f += step) {
            exam e;

            exam_open(&e, f, f % 2 ? 70 : 301, TYPE[d].exact, &TYPE[d], 33);
            for (int w = f % 2; w < FEW_COUNT; w += 2)
                FOR_KERNELS(kernel) try_guarded(&e, kernel, FEW[w], &g);
            exam_close(&e);
        }
    fixture_close(&ctx);
    ctx = plain;
    demand(!g.damaged, "somebody wrote beside memory");
}
END_TEST

void add_memory(TCase *t)
{
    tcase_add_test(t, a_product_allocates_nothing);
    tcase_add_test(t, plans_give_back_their_memory);
    tcase_add_test(t, nobody_writes_beside_what_was_allocated);
}
