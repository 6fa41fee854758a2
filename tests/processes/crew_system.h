/* SPDX-License-Identifier: BSD-3-Clause */
/* crew_system.h - a linear system that a crew solves together: each rank has
 * its rows of a whole matrix and of whole right-hand sides.  For Check tests. */
#ifndef SPS_TEST_CREW_SYSTEM_H
#define SPS_TEST_CREW_SYSTEM_H

#include "operator/operator_ranks.h"
#include "tests/processes/crew.h"
#include "tests/support/fail_alloc.h"

enum { CREW_COLUMNS = 4 };

typedef struct crew_system {
    const sps_csr *A;         /* the whole matrix */
    const double *b;          /* n x k, row-major; NULL: random */
    double *x;                /* n x k: gets the solution, or NULL */
    int k;                    /* at most CREW_COLUMNS */
    const double *near;       /* n x vectors, row-major: near_null_basis */
    int vectors;
    const double *coords;     /* n x 3: each row is a node */
    int allowed;              /* once the blocks are made, allocations of a
                                 member with an allocator that succeed */
    int64_t gathered;         /* of sps_ranks */
    sps_options opt;
    sps_result result;        /* without arrays */
    sps_stop column[CREW_COLUMNS];
} crew_system;

/* *X_p = n rows of `from`, k numbers each, from row `first` on; NULL if there
 * are none. */
static inline sps_status crew_part(const crew_member *m, const double *from,
                                   int k, int64_t first, int64_t n,
                                   sps_block **X_p)
{
    sps_status st = from ? sps_block_create(m->ctx, n, k, X_p) : SPS_OK;

    return st || !from ? st
         : sps_block_set(*X_p, 0, k, from + first * k, k, SPS_ROW_MAJOR,
                         SPS_HOST);
}

/* Solves; m->st is the status. */
static inline void crew_solve(crew_member *m, crew_system *c)
{
    const int64_t first = crew_first(c->A->nrow, m->all->size, m->rank);
    const int64_t n = crew_first(c->A->nrow, m->all->size, m->rank + 1) - first;
    const int k = c->k;
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL, *near = NULL, *at = NULL;
    sps_result r = { .struct_size = sizeof r };

    m->st = crew_rows(m, c->A, &own);
    if (!m->st) m->st = sps_block_create(m->ctx, n, k, &B);
    if (!m->st) m->st = sps_block_create(m->ctx, n, k, &X);
    if (!m->st)
        m->st = c->b ? sps_block_set(B, 0, k, c->b + first * k, k,
                                     SPS_ROW_MAJOR, SPS_HOST)
                     : sps_block_random(B, 3);
    if (!m->st) m->st = crew_part(m, c->near, c->vectors, first, n, &near);
    if (!m->st) m->st = crew_part(m, c->coords, 3, first, n, &at);
    c->opt.near_null_basis = near;
    c->opt.coords = at;
    if (m->host) fail_alloc_allow(m->host->data, c->allowed);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, k, &c->opt, &op);
    if (!m->st && op->ranks) op->ranks->gathered = c->gathered;
    if (!m->st) m->st = sps_solver_create(op, NULL, k, &c->opt, &s);
    if (!m->st) m->st = sps_solver_linear(s, B, X, &r);
    if (!m->st && c->x)
        m->st = sps_block_get(X, 0, k, c->x + first * k, k, SPS_ROW_MAJOR,
                              SPS_HOST);
    for (int j = 0; j < k && r.column; j++) c->column[j] = r.column[j];
    c->result = r;
    c->result.residual = c->result.backward = c->result.normal = NULL;
    c->result.column = NULL;
    if (m->st)
        strncpy(m->error, sps_context_error(m->ctx), sizeof m->error - 1);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_block_destroy(&near);
    sps_block_destroy(&at);
    sps_csr_destroy(m->ctx, &own);
}

#endif
