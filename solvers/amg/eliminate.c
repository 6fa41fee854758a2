/* SPDX-License-Identifier: BSD-3-Clause */
/* eliminate.c - exact elimination of nodes with one or two neighbours, for
 * power-law graphs and road networks (Livne and Brandt, arXiv 1108.1310,
 * section 3.2; Konolige and Brown, PASC 2018).  With F an independent set of
 * such nodes and C the other nodes, the next level is the Schur complement
 *
 *     A_c = P'A P,   P = [ I; -A_FF^-1 A_FC ],   A_FF diagonal,
 *     A^-1 = P A_c^-1 P' + [ A_FF^-1 0; 0 0 ],
 *
 * so that this level needs no smoother.  The Schur complement of a Laplacian is
 * a Laplacian with at most as many edges.  Columns of P are scaled so that A_c
 * is scaled like S A S, the matrix with unit diagonal.
 *
 * F is maximal: of the nodes that may belong to it, those of highest priority
 * (coarsening.h) among their neighbours are added, in rounds.  Nodes are
 * eliminated only on levels whose nodes have one row, on the host, on at most
 * ROUNDS levels, and only if at least one node in five is removed. */
#include "solvers/amg/amg.h"

enum { ROUNDS = 3, NEIGHBOURS = 2 };
#define LEAST 0.2

enum { OPEN, IN, OUT };       /* states of a node: undecided, in F, not in F */

typedef struct job {
    const amg_level *l;
    char *state, *next;
    uint64_t round;
} job;

/* Returns the number of neighbours of node i, or any number above NEIGHBOURS if
 * it has more than that. */
static int degree(const amg_level *l, int64_t i)
{
    const sps_csr *A = l->A;
    const double *val = A->val;
    int count = 0;

    for (int64_t p = A->rowptr[i];
         p < A->rowptr[i + 1] && count <= NEIGHBOURS; p++)
        count += A->col[p] != i && val[p] != 0;
    return count;
}

static void mark(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++) {
        const int d = j->l->scale[i] > 0 ? degree(j->l, i) : 0;

        j->state[i] = d > 0 && d <= NEIGHBOURS ? OPEN : OUT;
    }
}

/* Decides the state of an undecided node after a round: OUT if a neighbour is
 * in F, IN if no undecided neighbour has a higher priority. */
static void decide(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const sps_csr *A = j->l->A;

    for (int64_t i = first; i < last; i++) {
        const uint64_t own = spsi_coarse_priority((uint64_t)i, j->round);
        bool highest = true, beside = false;

        j->next[i] = j->state[i];
        if (j->state[i] != OPEN) continue;
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const int32_t k = A->col[p];

            if (k == i) continue;
            beside |= j->state[k] == IN;
            highest &= j->state[k] != OPEN ||
                       spsi_coarse_priority((uint64_t)k, j->round) < own;
        }
        j->next[i] = beside ? OUT : highest ? IN : OPEN;
    }
}

static int64_t count(const job *j, int state)
{
    int64_t nodes = 0;

    for (int64_t i = 0; i < j->l->n; i++) nodes += j->state[i] == state;
    return nodes;
}

static void choose(sps_context *ctx, job *j)
{
    spsi_team_run(ctx, j->l->n, j->l->A->nnz, mark, j);
    if ((double)count(j, OPEN) < LEAST * (double)j->l->n) return;
    for (; count(j, OPEN) > 0; j->round++) {
        char *now = j->state;

        spsi_team_run(ctx, j->l->n, j->l->A->nnz, decide, j);
        j->state = j->next;
        j->next = now;
    }
}

/* Numbers the nodes that remain as if each were an aggregate. */
static sps_status number(sps_context *ctx, const char *state, amg_level *l)
{
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, l->n + 1, &l->aggregate));
    for (int64_t i = 0; i < l->n; i++)
        l->aggregate[i] = state[i] == IN ? -1 : (int32_t)l->aggregates++;
    SPS_TRY(SPS_NEW(ctx, l->aggregates + 1, &l->place));
    for (int64_t a = 0; a <= l->aggregates; a++) l->place[a] = a;
    l->eliminates = true;
fail:
    return st;
}

sps_status spsi_amg_eliminate(amg *m, amg_level *l)
{
    sps_context *ctx = m->super.ctx;
    job j = { .l = l };
    sps_status st = SPS_OK;

    if (l->part || !l->single_rows || l->nonsymmetric || l->n <= AMG_DENSE ||
        l - m->level >= ROUNDS || (l > m->level && !l[-1].eliminates))
        return SPS_OK;
    SPS_TRY(SPS_NEW(ctx, l->n + 1, &j.state));
    SPS_TRY(SPS_NEW(ctx, l->n + 1, &j.next));
    choose(ctx, &j);
    if ((double)count(&j, IN) >= LEAST * (double)l->n)
        SPS_TRY(number(ctx, j.state, l));
fail:
    spsi_free(ctx, j.state);
    spsi_free(ctx, j.next);
    return st;
}

/* ------------------------------------------------------------ P, near-null */

/* Returns the length of row i of P; unless P is NULL, stores its entries from
 * position `to` on. */
static int64_t row(const amg_level *l, int64_t i, int64_t to, sps_csr *P)
{
    const double *val = l->A->val, d = l->scale[i] * l->scale[i];
    const bool stays = l->aggregate[i] >= 0;
    int64_t length = 0;

    for (int64_t p = l->A->rowptr[i]; p < l->A->rowptr[i + 1]; p++) {
        const int32_t k = l->A->col[p];

        if (stays ? k != i : k == i || l->aggregate[k] < 0) continue;
        if (P) {
            P->col[to + length] = l->aggregate[k];
            ((double *)P->val)[to + length] =
                (stays ? 1 : -val[p] * d) * l->scale[k];
        }
        length++;
    }
    return length;
}

sps_status spsi_amg_reduce(sps_context *ctx, const amg_level *l,
                           sps_csr **P_p, double **near_p)
{
    const int q = l->vectors;
    int64_t nnz = 0;
    double *near;
    sps_status st;

    for (int64_t i = 0; i < l->n; i++) nnz += row(l, i, 0, NULL);
    SPS_TRY(sps_csr_create(ctx, l->n, l->aggregates, nnz, SPS_F64, P_p));
    SPS_TRY(SPS_NEW(ctx, l->aggregates * q + 1, near_p));
    near = *near_p;
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t at = (*P_p)->rowptr[i], a = l->aggregate[i];

        (*P_p)->rowptr[i + 1] = at + row(l, i, at, *P_p);
        for (int c = 0; a >= 0 && c < q; c++)
            near[a * q + c] =
                l->scale[i] > 0 ? l->near[i * q + c] / l->scale[i] : 0;
    }
fail:
    return st;
}

/* X = 1 for eliminated nodes.  An empty row that remains is treated like an
 * eliminated one, since it has no part in the next level. */
sps_status spsi_amg_mask(sps_context *ctx, const amg_level *l, sps_block *X)
{
    double *d = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, l->n + 1, &d));
    for (int64_t i = 0; i < l->n; i++)
        d[i] = l->aggregate[i] < 0 || l->scale[i] == 0;
    SPS_TRY(sps_block_set(X, 0, 1, d, l->n, SPS_COL_MAJOR, SPS_HOST));
fail:
    spsi_free(ctx, d);
    return st;
}
