/* SPDX-License-Identifier: BSD-3-Clause */
/* dissection.c - nested dissection of the pattern of A + A' by METIS (Karypis
 * and Kumar, SIAM J. Sci. Comput. 20, 1998), for a MUMPS that was built without
 * METIS. */
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
        spsi_standins.armed = true;
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

#else

int32_t *spsi_dissection(const sps_factor_matrix *A)
{
    (void)A;
    return NULL;
}

#endif
