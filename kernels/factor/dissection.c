/* SPDX-License-Identifier: BSD-3-Clause */
/* dissection.c - nested dissection of the pattern of A + A' by METIS (Karypis
 * and Kumar, SIAM J. Sci. Comput. 20, 1998), for a MUMPS that was built without
 * METIS, and parts of a graph for several processes. */
#include "factor/dissection.h"

#include <stdlib.h>

#if SPS_HAVE_METIS
#include <limits.h>
#include <metis.h>

#include "factor/standins.h"

_Static_assert(sizeof(idx_t) == sizeof(int32_t), "METIS of 64 bits");

/* An adjacency list for each vertex: list i, counted from 1, begins at
 * next[start[i]], and lists follow each other.  A list may contain a neighbour
 * more than once. */
typedef struct graph {
    idx_t *start, *next, *turn, *place;
} graph;

static void count(const sps_factor_matrix *A, idx_t *start)
{
    for (int64_t p = 0; p < A->nnz; p++)
        if (A->row[p] != A->col[p]) {
            start[A->row[p]]++;
            start[A->col[p]]++;
        }
    for (int32_t i = 1; i <= A->n; i++) start[i] += start[i - 1];
}

/* Fills the lists from their ends: start[i], the end of list i at first,
 * becomes its beginning. */
static void fill(const sps_factor_matrix *A, graph *g)
{
    for (int64_t p = 0; p < A->nnz; p++)
        if (A->row[p] != A->col[p]) {
            g->next[--g->start[A->row[p]]] = A->col[p] - 1;
            g->next[--g->start[A->col[p]]] = A->row[p] - 1;
        }
}

static bool make(const sps_factor_matrix *A, graph *g)
{
    const size_t n = (size_t)A->n + 2;

    g->start = calloc(n, sizeof *g->start);
    g->turn = malloc(n * sizeof *g->turn);
    g->place = malloc(n * sizeof *g->place);
    if (!g->start || !g->turn || !g->place || A->nnz >= INT_MAX / 2)
        return false;
    count(A, g->start);
    g->start[A->n + 1] = g->start[A->n];
    g->next = malloc(((size_t)g->start[A->n] + 1) * sizeof *g->next);
    if (!g->next) return false;
    fill(A, g);
    return true;
}

static bool dissect(const sps_factor_matrix *A, graph *g)
{
    idx_t n = A->n, options[METIS_NOPTIONS];
    bool good = false;

    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    spsi_standins_seed();
    if (setjmp(spsi_standins.back) == 0) {
        spsi_standins_arm();
        good = METIS_NodeND(&n, g->start + 1, g->next, NULL, options, g->turn,
                            g->place) == METIS_OK;
    }
    spsi_standins.armed = false;
    return good;
}

int32_t *spsi_dissection(const sps_factor_matrix *A)
{
    graph g = { 0 };
    const bool good = make(A, &g) && dissect(A, &g);

    free(g.start);
    free(g.next);
    free(g.turn);
    for (int32_t i = 0; good && i < A->n; i++) g.place[i]++;
    if (!good) free(g.place);
    return good ? g.place : NULL;
}

/* ------------------------------------------------------------------- parts */

static int ascending(const void *a, const void *b)
{
    const idx_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Sorts each list and removes repeated neighbours. */
static void unite(const sps_factor_matrix *A, graph *g)
{
    idx_t at = 0, begin = g->start[1];

    for (int32_t i = 1; i <= A->n; i++) {
        const idx_t end = g->start[i + 1];

        if (end > begin)
            qsort(g->next + begin, (size_t)(end - begin), sizeof *g->next,
                  ascending);
        g->start[i] = at;
        for (idx_t p = begin; p < end; p++)
            if (p == begin || g->next[p] != g->next[p - 1])
                g->next[at++] = g->next[p];
        begin = end;
    }
    g->start[A->n + 1] = at;
}

/* Recursive bisection, in which parts of near numbers are near each other, so
 * that it matters little if rows move to the next part for equal sizes: these
 * may differ by 0.1 %. */
static bool divide(const sps_factor_matrix *A, graph *g, int parts,
                   float *share, idx_t *part)
{
    idx_t n = A->n, count = parts, weights = 1, cut;
    idx_t options[METIS_NOPTIONS];
    bool good = false;

    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    options[METIS_OPTION_UFACTOR] = 1;
    spsi_standins_seed();
    if (setjmp(spsi_standins.back) == 0) {
        spsi_standins_arm();
        good = METIS_PartGraphRecursive(&n, &weights, g->start + 1, g->next,
                                        NULL, NULL, NULL, &count, share, NULL,
                                        options, &cut, part) == METIS_OK;
    }
    spsi_standins.armed = false;
    return good;
}

int spsi_parts(const sps_factor_matrix *A, int parts, const float *share,
               int32_t *part)
{
    float *target = malloc((size_t)parts * sizeof *target);
    graph g = { 0 };
    int code = SPS_FACTOR_MEMORY;

    for (int32_t i = 0; i < A->n; i++) part[i] = 0;
    for (int r = 0; target && r < parts; r++) target[r] = share[r];
    if (target && make(A, &g)) {
        unite(A, &g);
        code = parts == 1 || divide(A, &g, parts, target, part)
             ? SPS_FACTOR_OK : SPS_FACTOR_FAILED;
    }
    free(target);
    free(g.start);
    free(g.next);
    free(g.turn);
    free(g.place);
    return code;
}

#else

int32_t *spsi_dissection(const sps_factor_matrix *A)
{
    (void)A;
    return NULL;
}

#endif
