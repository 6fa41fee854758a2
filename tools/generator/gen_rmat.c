/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_rmat.c - R-MAT graphs (Chakrabarti, Zhan and Faloutsos, A recursive model
 * for graph mining, SDM 2004).  Each edge is placed by `scale` recursive
 * subdivisions of the adjacency matrix into the quadrants a, b, c, d with
 * probabilities .57 .19 .19 .05; loops are dropped, repeated edges are kept
 * once, and both directions are stored.
 *
 * The weight of an edge is 1, or with perturb a number in [3/4, 5/4) that
 * depends on its two vertices only.  D - W is positive semidefinite: its
 * quadratic form is the sum over the edges of w (x_i - x_j)^2; its null space
 * consists of the vectors that are constant on each component.
 *
 * Memory: 8 bytes per drawn edge while sorting, then 8 bytes per stored
 * edge. */
#include "tools/generator/gen.h"

#include <stdio.h>
#include <stdlib.h>

/* Draws the vertices of edge e; each level uses one random word. */
static void draw(const gen_spec *s, int64_t e, int32_t *row, int32_t *col)
{
    uint32_t w[4] = {0}, r = 0, c = 0;

    for (int level = 0; level < s->scale; level++) {
        if (level % 4 == 0)
            gen_philox(s->seed, (uint64_t)e, (uint32_t)level, w);
        double u = w[level % 4] * 0x1p-32;
        r = r << 1 | (u >= .76);
        c = c << 1 | ((u >= .57 && u < .76) || u >= .95);
    }
    *row = (int32_t)r;
    *col = (int32_t)c;
}

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* Sorts each row and removes duplicate columns; length[i] becomes the remaining
 * length. */
static void sort_rows(const gen *g, int64_t *length)
{
#pragma omp parallel for schedule(dynamic, 256)
    for (int64_t i = 0; i < g->rows; i++) {
        int32_t *c = g->col + g->rowptr[i];
        int64_t count = g->rowptr[i + 1] - g->rowptr[i], kept = 0;

        qsort(c, (size_t)count, sizeof *c, ascending);
        for (int64_t p = 0; p < count; p++)
            if (!kept || c[p] != c[kept - 1])
                c[kept++] = c[p];
        length[i] = kept;
    }
}

/* Removes the gaps that sort_rows leaves. */
static void close_rows(gen *g, const int64_t *length)
{
    int64_t to = 0;

    for (int64_t i = 0; i < g->rows; i++) {
        int64_t from = g->rowptr[i];

        g->rowptr[i] = to;
        for (int64_t p = 0; p < length[i]; p++)
            g->col[to++] = g->col[from + p];
        if (length[i] > g->widest)
            g->widest = length[i];
    }
    g->rowptr[g->rows] = g->nnz = to;
}

/* Sorts the drawn edges, in both directions, into rowptr and col by
 * counting. */
static bool build(gen *g, int64_t edges, int32_t (*edge)[2], int64_t *next)
{
#pragma omp parallel for
    for (int64_t e = 0; e < edges; e++)
        draw(&g->spec, e, &edge[e][0], &edge[e][1]);
    for (int64_t e = 0; e < edges; e++)
        if (edge[e][0] != edge[e][1]) {
            g->rowptr[edge[e][0] + 1]++;
            g->rowptr[edge[e][1] + 1]++;
        }
    for (int64_t i = 0; i < g->rows; i++) {
        g->rowptr[i + 1] += g->rowptr[i];
        next[i] = g->rowptr[i];
    }
    g->col = malloc(sizeof *g->col * (size_t)(g->rowptr[g->rows] + 1));
    if (!g->col)
        return false;
    for (int64_t e = 0; e < edges; e++)
        if (edge[e][0] != edge[e][1]) {
            g->col[next[edge[e][0]]++] = edge[e][1];
            g->col[next[edge[e][1]]++] = edge[e][0];
        }
    sort_rows(g, next);
    close_rows(g, next);
    return true;
}

bool gen_rmat_open(gen *g, char error[160])
{
    const gen_spec *s = &g->spec;
    int64_t n = (int64_t)1 << s->scale, edges = n * s->edges;
    int32_t (*edge)[2] = malloc(sizeof *edge * (size_t)edges);
    int64_t *next = malloc(sizeof *next * (size_t)n);
    bool good;

    g->rows = n;
    g->symmetric = true;
    g->rowptr = calloc((size_t)n + 1, sizeof *g->rowptr);
    good = edge && next && g->rowptr && build(g, edges, edge, next);
    free(edge);
    free(next);
    if (!good) {
        snprintf(error, 160, "out of memory: the graph needs %lld bytes",
                 (long long)(edges * 16 + n * 16));
        return false;
    }
    if (s->laplacian) {
        g->diagonal = n;
        g->nnz += n;
        g->widest++;
    }
    return true;
}

static double weight(const gen *g, int64_t i, int64_t j)
{
    const gen_spec *s = &g->spec;
    int64_t low = i < j ? i : j, high = i < j ? j : i;

    if (!s->perturb)
        return 1;
    return 1 + gen_uniform(s->perturb_seed,
                           (uint64_t)low << 32 | (uint64_t)high, 0) / 4;
}

int64_t gen_rmat_row(const gen *g, int64_t i, int32_t *col, double *val)
{
    const bool laplacian = g->spec.laplacian;
    int64_t count = 0, middle = -1;
    double sum = g->spec.shift;

    for (int64_t p = g->rowptr[i]; p < g->rowptr[i + 1]; p++) {
        double w = weight(g, i, g->col[p]);

        if (laplacian && middle < 0 && g->col[p] > i)
            middle = count++;
        col[count] = g->col[p];
        val[count++] = laplacian ? -w : w;
        sum += w;
    }
    if (!laplacian)
        return count;
    if (middle < 0)
        middle = count++;
    col[middle] = (int32_t)i;
    val[middle] = sum;
    return count;
}

int64_t gen_rmat_count(const gen *g, int64_t i)
{
    return g->rowptr[i + 1] - g->rowptr[i] + g->spec.laplacian;
}
