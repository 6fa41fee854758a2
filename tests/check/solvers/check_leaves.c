/* SPDX-License-Identifier: BSD-3-Clause */
/* check_leaves.c - queued iterations, without host synchronisation, stop before
 * an update in which a column of X would lose its best iterate: R and its norms
 * are those of the iteration, X and P are still the old ones, and after the
 * host has saved the iterate the step continues.  Integers, so that all bits
 * are known. */
#include "tests/support/runner.h"
#include "tests/support/step_data.h"

/* What is known of the column that would lose its best iterate, relative to its
 * next residual norm. */
typedef struct column {
    double least, kept, gap;
    bool leaves;
} column;

static const column columns[] = {
    { 2, 2, 0, false },                 /* no earlier iterate was better */
    { 0.5, INFINITY, 0, true },
    { 0.5, 1, 0, true },
    { 0.5, 0.5, 0, false },             /* already saved */
    { 0.5, 0.51, 0, false },            /* saved one as good to 1 / 24 */
    { 0.97, 2, 0, false },              /* next one as good to 1 / 24 */
    { 0.95, 2, 0, true },
    { 0.97, 2, 0.5, true },             /* not with the rounding gap */
    { 2, 4, 0.5, false },
};
enum { COLUMNS = sizeof columns / sizeof *columns };

typedef struct step {
    sps_context *ctx;
    int64_t n;
    int k;
    sps_dtype type;
    double *p, *q, *x, *res, *norm;
    sps_block *P, *Q, *X, *R;
    sps_small *a, *b, *C;
    sps_owner own;               /* of w */
    sps_fused_cg *w;
} step;

static void open_step(step *s, int64_t near)
{
    const int64_t n = s->n;
    const int k = s->k;

    s->P = integers(s->ctx, s->type, n, k, 7, &s->p);
    s->Q = integers(s->ctx, s->type, n, k, 8, &s->q);
    s->X = integers(s->ctx, s->type, n, k, 9, &s->x);
    s->R = integers(s->ctx, s->type, n, k, 10, &s->res);
    s->norm = calloc((size_t)k, sizeof *s->norm);
    OK(s->ctx, spsi_small_create(s->ctx, k + 1, k, &s->a));
    OK(s->ctx, spsi_small_create(s->ctx, k + 1, k, &s->b));
    OK(s->ctx, spsi_small_create(s->ctx, k + 1, k, &s->C));
    s->own.ctx = s->ctx;
    OK(s->ctx, spsi_fused_cg_create(&s->own, k, false, 1e3, &s->w));
    s->w->r = s->w->k = k;
    s->w->D = NULL;
    s->w->cached = near;
}

static void close_step(step *s)
{
    double *arrays[] = { s->p, s->q, s->x, s->res, s->norm };

    spsi_owner_release(&s->own);
    spsi_small_destroy(&s->a);
    spsi_small_destroy(&s->b);
    spsi_small_destroy(&s->C);
    sps_block_destroy(&s->P);
    sps_block_destroy(&s->Q);
    sps_block_destroy(&s->X);
    sps_block_destroy(&s->R);
    for (int i = 0; i < 5; i++) free(arrays[i]);
}

/* R -= Q a; and in W, whose sums may be large, -b above the squared norms. */
static void take_residual(step *s)
{
    sps_fused_cg *w = s->w;
    const int k = s->k;

    fill_small(s->a, k, k, 0);
    fill_small(s->b, k, k, 3);
    prepare(w, s->a, s->C);
    OK(s->ctx, s->ctx->backend->fused_cg_residual(w, s->Q, s->R));
    times_small(s->n, -1, s->q, k, s->a, 1, s->res, k);
    equals(s->R, s->res, "residual");
    fetch(w, w->W, w->most_parts, (k + 1) * k, k * k, 1, k, s->C);
    for (int j = 0; j < k; j++) {
        double square = 0;

        for (int64_t i = 0; i < s->n; i++)
            square += s->res[i * k + j] * s->res[i * k + j];
        ck_assert(s->C->v[j] == square);
        s->norm[j] = sqrt(square);
    }
    spsi_small_shape(s->a, k + 1, k);    /* W has k + 1 rows; same packing */
    for (int e = 0; e < k * k; e++) s->a->v[e] = -s->b->v[e];
    for (int j = 0; j < k; j++) s->a->v[k * k + j] = s->C->v[j];
    send(w, w->W, 1, s->a, w->most_parts, (k + 1) * k);
    fill_small(s->a, k, k, 0);
}

/* Column `at` has the state c; no other has had a better iterate, none is
 * converged. */
static void tell(step *s, const column *c, int at)
{
    const sps_backend *f = s->ctx->backend;
    double v[4][32];
    const sps_fused_cg_known *known = &s->w->known;
    double *to[] = { known->limit, known->least, known->kept_norm, known->gap };

    for (int j = 0; j < s->k; j++) {
        const column other = { 2, 2, 0, false };
        const column *mine = j == at ? c : &other;

        v[0][j] = -1;
        v[1][j] = mine->least * s->norm[j];
        v[2][j] = mine->kept * s->norm[j];
        v[3][j] = mine->gap * s->norm[j];
    }
    for (int i = 0; i < 4; i++)
        OK(s->ctx, f->upload(s->ctx, to[i], v[i],
                             (size_t)s->k * sizeof **v));
}

static sps_fused_cg_state state_of(const step *s)
{
    sps_fused_cg_state state;

    OK(s->ctx, s->ctx->backend->download(s->ctx, &state, s->w->state,
                                         sizeof state));
    return state;
}

static void norms_are_told(const step *s)
{
    double norms[32];

    OK(s->ctx, s->ctx->backend->download(s->ctx, norms, s->w->norms,
                                         (size_t)s->k * sizeof *norms));
    for (int j = 0; j < s->k; j++) ck_assert(norms[j] == s->norm[j]);
}

static void x_and_p_are(const step *s, const char *what)
{
    equals(s->X, s->x, what);
    equals(s->P, s->p, what);
}

static void try_step(sps_context *ctx, sps_dtype type, int64_t n, int k,
                     const column *c, int at, int64_t near)
{
    step s = { .ctx = ctx, .n = n, .k = k, .type = type };
    double *z = malloc((size_t)(n * k) * sizeof *z);
    sps_fused_cg_state state;

    open_step(&s, near);
    take_residual(&s);
    if (s.norm[at] == 0) c = &columns[0];
    tell(&s, c, at);
    OK(ctx, ctx->backend->fused_cg_directions(s.w, s.P, s.X, s.R));
    state = state_of(&s);
    norms_are_told(&s);
    if (c->leaves) {
        ck_assert_int_eq(state.stop, SPS_FUSED_STORE);
        ck_assert_int_eq(state.taken, 0);
        x_and_p_are(&s, "before it was kept");
        state.stop = 0;
        state.go = 2;
        OK(ctx, ctx->backend->upload(ctx, s.w->state, &state, sizeof state));
        OK(ctx, ctx->backend->fused_cg_directions(s.w, s.P, s.X, s.R));
        state = state_of(&s);
        norms_are_told(&s);
    }
    ck_assert_int_eq(state.stop, 0);
    ck_assert_int_eq(state.taken, 1);
    times_small(n, 1, s.p, k, s.a, 1, s.x, k);
    memcpy(z, s.res, (size_t)(n * k) * sizeof *z);
    times_small(n, 1, s.p, k, s.b, 1, z, k);
    memcpy(s.p, z, (size_t)(n * k) * sizeof *z);
    x_and_p_are(&s, "when the step was complete");
    equals(s.R, s.res, "residual at the end");
    free(z);
    close_step(&s);
}

/* Each form of an iteration: 2 to 32 columns, blocks within and beyond the
 * cache. */
START_TEST(a_step_stops_before_it_leaves_the_best_and_goes_on)
{
    static const int widths[] = { 2, 3, 8, 12, 16, 17, 20, 24, 29, 32 };
    static const int64_t lengths[] = { 7, 65, 1000 };
    sps_context *ctx = runner_context();

    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 10; i++)
            for (int c = 0; c < COLUMNS; c++) {
                const int k = widths[i], at = (7 * c + i) % k;

                try_step(ctx, c % 2 ? SPS_F32 : SPS_F64, lengths[t], k,
                         &columns[c], at, SPS_FUSED_CACHED);
                try_step(ctx, c % 2 ? SPS_F64 : SPS_F32, lengths[t], k,
                         &columns[c], at, SPS_FUSED_CACHED);
                if (k == 16)
                    try_step(ctx, SPS_F64, lengths[t], k, &columns[c], at, 0);
            }
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_step_stops_before_it_leaves_the_best_and_goes_on),
};

RUNNER_MAIN("leaves", tests)
