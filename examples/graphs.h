/* SPDX-License-Identifier: BSD-3-Clause */
/* graphs.h - graphs for effective_resistance.c, read from a file or generated,
 * and their Laplacians. */
#ifndef EXAMPLES_GRAPHS_H
#define EXAMPLES_GRAPHS_H

#include <spsolve.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static sps_context *ctx;

static void check(sps_status st)
{
    if (st == SPS_OK)
        return;
    fprintf(stderr, "%s: %s\n", sps_status_string(st),
            sps_context_error(ctx));
    exit(1);
}

static void *array(int64_t count, size_t size)
{
    void *p = calloc((size_t)count + 1, size);

    if (!p) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return p;
}

/* A graph of n vertices and m edges (u, v, w); the arrays may be longer. */
typedef struct graph {
    int64_t n, m;
    int32_t *u, *v;
    double *w;
} graph;

static graph graph_new(int64_t n, int64_t room)
{
    return (graph){n, 0, array(room, sizeof(int32_t)),
                   array(room, sizeof(int32_t)), array(room, sizeof(double))};
}

static void graph_free(graph *g)
{
    free(g->u);
    free(g->v);
    free(g->w);
}

static void edge(graph *g, int64_t u, int64_t v, double w)
{
    g->u[g->m] = (int32_t)u;
    g->v[g->m] = (int32_t)v;
    g->w[g->m++] = w;
}

/* Returns the Laplacian D - W, both triangles; sps_csr_check sorts the rows. */
static sps_csr *laplacian(const graph *g)
{
    int64_t *next = array(g->n, sizeof *next);
    sps_csr *L;
    double *val;

    check(sps_csr_create(ctx, g->n, g->n, g->n + 2 * g->m, SPS_F64, &L));
    val = L->val;
    for (int64_t i = 0; i < g->n; i++) L->rowptr[i + 1] = 1;
    for (int64_t e = 0; e < g->m; e++) {
        L->rowptr[g->u[e] + 1]++;
        L->rowptr[g->v[e] + 1]++;
    }
    for (int64_t i = 0; i < g->n; i++) {
        L->rowptr[i + 1] += L->rowptr[i];
        /* The diagonal entry comes first. */
        L->col[L->rowptr[i]] = (int32_t)i;
        next[i] = L->rowptr[i] + 1;
    }
    for (int64_t e = 0; e < g->m; e++) {
        const int32_t end[] = {g->u[e], g->v[e]};

        for (int s = 0; s < 2; s++) {
            L->col[next[end[s]]] = end[1 - s];
            val[next[end[s]]++] = -g->w[e];
            val[L->rowptr[end[s]]] += g->w[e];
        }
    }
    free(next);
    check(sps_csr_check(ctx, L));
    L->props |= SPS_SYMMETRIC;
    return L;
}

/* Reads a graph.  Weights are the off-diagonal entries, which may all be
 * negative (the file of a Laplacian); the diagonal is ignored. */
static graph graph_read(const char *path)
{
    sps_csr *A;
    graph g;
    bool symmetric = false;
    int sign = 0;

    check(sps_csr_read(ctx, path, NULL, NULL, &A));
    if (A->nrow == A->ncol)
        check(sps_csr_symmetric(ctx, A, 1e-12, &symmetric, NULL));
    g = graph_new(A->nrow, A->nnz / 2 + 1);
    for (int64_t i = 0; symmetric && i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const double a = ((double *)A->val)[p];

            if (A->col[p] <= i || a == 0)
                continue;
            if (sign == 0)
                sign = a > 0 ? 1 : -1;
            symmetric = sign * a > 0;
            edge(&g, i, A->col[p], fabs(a));
        }
    if (!symmetric) {
        fprintf(stderr, "%s: not an adjacency matrix: it must be symmetric, "
                "with weights of one sign\n", path);
        exit(1);
    }
    sps_csr_destroy(ctx, &A);
    return g;
}

/* Returns 64 random bits (splitmix64). */
static uint64_t bits(uint64_t x)
{
    x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Adds the edges of the torus with vertices base .. base + side^2 - 1. */
static void torus(graph *g, int64_t base, int64_t side)
{
    for (int64_t i = 0; i < side * side; i++) {
        const int64_t x = i % side, y = i / side;

        edge(g, base + i, base + y * side + (x + 1) % side, 1);
        edge(g, base + i, base + (y + 1) % side * side + x, 1);
    }
}

/* Returns a torus with a random perfect matching of its vertices as additional
 * edges. */
static graph world(int64_t side)
{
    const int64_t n = side * side;
    graph g = graph_new(n, 3 * n);
    int32_t *pair = array(n, sizeof *pair);

    torus(&g, 0, side);
    for (int64_t i = 0; i < n; i++) {
        const int64_t j = (int64_t)(bits((uint64_t)i) % (uint64_t)(i + 1));

        pair[i] = pair[j];
        pair[j] = (int32_t)i;
    }
    for (int64_t i = 0; i + 1 < n; i += 2) {
        const int64_t d = labs((long)pair[i] - pair[i + 1]);
        const bool near = d == 1 || d == side - 1 || d % (n - side) == 0 ||
                          d == side;

        if (!near) edge(&g, pair[i], pair[i + 1], 1);
    }
    free(pair);
    return g;
}

#endif
