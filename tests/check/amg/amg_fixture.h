/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_fixture.h - a generated system with a preconditioner amg, and comparison
 * of hierarchies.  For Check tests. */
#ifndef SPS_TEST_AMG_FIXTURE_H
#define SPS_TEST_AMG_FIXTURE_H

#include <math.h>

#include "solvers/amg/amg.h"
#include "tests/problems/whole.h"
#include "tests/support/fixture.h"

typedef struct amg_case {
    sps_context *ctx;
    whole w;
    sps_csr *A;
    sps_block *coords;        /* NULL: none */
    sps_operator *op;
    sps_precond *M;
    sps_options opt;
    int k;
} amg_case;

/* The matrix of a line of mtxgen as a csr of the context. */
static inline sps_csr *amg_wrap(sps_context *ctx, const whole *w)
{
    sps_csr *A = NULL;

    OK(ctx, sps_csr_wrap(ctx, w->g.rows, w->g.rows, w->g.nnz, w->rowptr, w->col,
                         w->val, SPS_F64, SPS_HOST, SPS_BORROW, &A));
    return A;
}

static inline void amg_coordinates(amg_case *c)
{
    const int64_t nodes = gen_nodes(&c->w.g);
    double *x = malloc((size_t)nodes * 3 * sizeof *x);

    for (int64_t i = 0; i < 3 * nodes; i++)
        x[i] = gen_coordinate(&c->w.g, i / 3, (int)(i % 3));
    c->coords = fixture_block(c->ctx, nodes, 3, x, 3);
    c->opt.coords = c->coords;
    free(x);
}

/* Opens the system for k columns, in a context of its own in that place. */
static inline void amg_open_in(amg_case *c, sps_place place, const char *line,
                               int threads, int k)
{
    memset(c, 0, sizeof *c);
    c->ctx = fixture_open_with(place, threads, true);
    c->w = make(line);
    c->A = amg_wrap(c->ctx, &c->w);
    c->k = k;
    sps_options_default(&c->opt);
    c->opt.precond = "amg";
    c->opt.solver = "block_cg";
    if (c->w.g.spec.kind == GEN_ELASTICITY) amg_coordinates(c);
    OK(c->ctx, sps_operator_csr(c->ctx, c->A, k, NULL, &c->op));
}

static inline void amg_open(amg_case *c, const char *line, int threads, int k)
{
    amg_open_in(c, fixture_place(), line, threads, k);
}

static inline const amg *amg_make(amg_case *c)
{
    OK(c->ctx, sps_precond_create(c->op, c->k, &c->opt, &c->M));
    return (const amg *)c->M;
}

static inline void amg_close(amg_case *c)
{
    sps_precond_destroy(&c->M);
    sps_operator_destroy(&c->op);
    sps_block_destroy(&c->coords);
    sps_csr_destroy(c->ctx, &c->A);
    drop(&c->w);
    fixture_close(&c->ctx);
}

static inline double amg_complexity(const amg *m)
{
    double entries = 0;

    for (int i = 0; i < m->levels; i++) entries += (double)m->level[i].A->nnz;
    return entries / (double)m->level[0].A->nnz;
}

/* Whether the text that describes M has these words. */
static inline bool amg_describes(const sps_precond *M, const char *words)
{
    char text[2000], part[40];
    const size_t length = sps_precond_describe(M, text, sizeof text);

    ck_assert_uint_eq(length, strlen(text));
    ck_assert_uint_eq(sps_precond_describe(M, NULL, 0), length);
    ck_assert_uint_eq(sps_precond_describe(M, part, sizeof part), length);
    ck_assert(!strncmp(part, text, sizeof part - 1));
    return strstr(text, words) != NULL;
}

static inline bool amg_same_csr(const sps_csr *A, const sps_csr *B)
{
    if (!A || !B) return A == B;
    return A->nrow == B->nrow && A->ncol == B->ncol && A->nnz == B->nnz &&
           !memcmp(A->rowptr, B->rowptr,
                   (size_t)(A->nrow + 1) * sizeof *A->rowptr) &&
           !memcmp(A->col, B->col, (size_t)A->nnz * sizeof *A->col) &&
           !memcmp(A->val, B->val, (size_t)A->nnz * sizeof(double));
}

/* What is compared of a level, on the host. */
typedef struct amg_image {
    sps_csr *A, *P, *R;
    int32_t *aggregate;       /* NULL: of the coarsest level */
    double *scale, *near;
} amg_image;

/* A copy of A on the host. */
static inline sps_csr *amg_host_csr(sps_context *ctx, const sps_csr *A)
{
    sps_csr *B = NULL;

    if (!A) return NULL;
    if (A->place != SPS_HOST) OK(ctx, spsi_csr_download(ctx, A, &B));
    else OK(ctx, sps_csr_wrap(ctx, A->nrow, A->ncol, A->nnz, A->rowptr, A->col,
                              A->val, A->dtype, SPS_HOST, SPS_COPY, &B));
    return B;
}

/* An array of a level, which is at `here` unless the level has a part; to be
 * freed. */
static inline void *amg_array(const amg *m, const amg_level *l,
                              sps_coarse_array which, const void *here,
                              size_t bytes)
{
    void *to = calloc(bytes + 1, 1);

    if (l->part)
        OK(m->super.ctx, m->device->fetch(l->part, which, to));
    else if (bytes > 0)
        memcpy(to, here, bytes);
    return to;
}

static inline int32_t *amg_aggregates(const amg *m, int level)
{
    const amg_level *l = &m->level[level];

    return amg_array(m, l, SPS_COARSE_AGGREGATE, l->aggregate,
                     (size_t)l->nodes * sizeof *l->aggregate);
}

static inline amg_image amg_look(const amg *m, int level)
{
    const amg_level *l = &m->level[level];
    sps_context *ctx = m->super.ctx;
    amg_image x = { amg_host_csr(ctx, l->A), amg_host_csr(ctx, l->P),
                    amg_host_csr(ctx, l->R), NULL, NULL, NULL };

    if (level + 1 < m->levels) x.aggregate = amg_aggregates(m, level);
    x.scale = amg_array(m, l, SPS_COARSE_SCALE, l->scale,
                        (size_t)l->n * sizeof *l->scale);
    x.near = amg_array(m, l, SPS_COARSE_NEAR, l->near,
                       (size_t)(l->n * l->vectors) * sizeof *l->near);
    return x;
}

static inline void amg_forget(sps_context *ctx, amg_image *x)
{
    sps_csr_destroy(ctx, &x->A);
    sps_csr_destroy(ctx, &x->P);
    sps_csr_destroy(ctx, &x->R);
    free(x->aggregate);
    free(x->scale);
    free(x->near);
}

static inline bool amg_same_image(const amg_level *l, const amg_image *x,
                                  const amg_image *y)
{
    const size_t n = (size_t)l->n;

    return amg_same_csr(x->A, y->A) && amg_same_csr(x->P, y->P) &&
           amg_same_csr(x->R, y->R) &&
           !memcmp(x->scale, y->scale, n * sizeof *x->scale) &&
           !memcmp(x->near, y->near,
                   n * (size_t)l->vectors * sizeof *x->near) &&
           (!x->aggregate || !memcmp(x->aggregate, y->aggregate,
                                     (size_t)l->nodes * sizeof *x->aggregate));
}

/* Whether all matrices, aggregates and bounds of two hierarchies are the same
 * bits; they may lie in different places. */
static inline bool amg_same(const amg *a, const amg *b)
{
    sps_csr *Y = amg_host_csr(a->super.ctx, a->inverse);
    sps_csr *Z = amg_host_csr(b->super.ctx, b->inverse);
    bool same = a->levels == b->levels && amg_same_csr(Y, Z);

    sps_csr_destroy(a->super.ctx, &Y);
    sps_csr_destroy(b->super.ctx, &Z);

    for (int i = 0; same && i < a->levels; i++) {
        const amg_level *x = &a->level[i], *y = &b->level[i];
        amg_image X, Y;

        same = x->n == y->n && x->nodes == y->nodes &&
               x->vectors == y->vectors && x->rho == y->rho &&
               x->smoother.upper == y->smoother.upper &&
               x->smoother.degree == y->smoother.degree &&
               x->aggregates == y->aggregates;
        if (!same) break;
        X = amg_look(a, i);
        Y = amg_look(b, i);
        same = amg_same_image(x, &X, &Y);
        amg_forget(a->super.ctx, &X);
        amg_forget(b->super.ctx, &Y);
    }
    return same;
}

/* A preconditioner for c is refused with this code and a text that has these
 * words. */
static inline void amg_refused(const amg_case *c, sps_status code,
                               const char *words)
{
    sps_precond *M = NULL;

    ck_assert_int_eq(sps_precond_create(c->op, c->k, &c->opt, &M), code);
    ck_assert_msg(strstr(sps_context_error(c->ctx), words) != NULL, "%s",
                  sps_context_error(c->ctx));
    ck_assert_ptr_null(M);
}

/* Solves for random right-hand sides with M; result->column and others are
 * not kept. */
static inline sps_result amg_solve(amg_case *c)
{
    sps_result result = { .struct_size = sizeof result };
    sps_block *B = NULL, *X = NULL;
    sps_solver *s = NULL;

    OK(c->ctx, sps_block_create(c->ctx, c->A->nrow, c->k, &B));
    OK(c->ctx, sps_block_create(c->ctx, c->A->nrow, c->k, &X));
    OK(c->ctx, sps_block_random(B, 3));
    OK(c->ctx, sps_solver_create(c->op, c->M, c->k, &c->opt, &s));
    OK(c->ctx, sps_solver_project(s, B));
    OK(c->ctx, sps_solver_linear(s, B, X, &result));
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    return result;
}

#endif
