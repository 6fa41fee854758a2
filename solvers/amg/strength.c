/* SPDX-License-Identifier: BSD-3-Clause */
/* strength.c - finds which nodes of a level are strongly coupled.
 *
 * The coupling is c_ij = -a_ij s_i s_j for nodes of one row, and c_ij = || S_i
 * A_ij S_j ||_F for node blocks, S the scaling to unit diagonal.  With m_i the
 * largest c_ik, k != i, the edge i - j is strong if
 *
 *     c_ij > 0  and  c_ij >= theta min(m_i, m_j).
 *
 * The sign matters: couplings of positive sign, as of anisotropic elements, do
 * not make an error smooth.  A threshold relative to m, not to the diagonal,
 * keeps edges on coarse levels, where all couplings become small.
 *
 * A first pass counts, a second one fills, and a third one selects in place. */
#include "solvers/amg/amg.h"

#include <math.h>

/* Estimated nanoseconds for an entry of A. */
#define ENTRY_NS 3

typedef struct job {
    const amg_level *l;
    const int32_t *node;      /* node of each row; NULL if every row is a
                                 node */
    amg_graph *g;
    double *most;             /* m_v, the largest coupling of each node v */
    int64_t *length;          /* length of each row, which may end before the
                                 next one begins */
} job;

static int32_t node_of(const job *j, int32_t row)
{
    return j->node ? j->node[row] : row;
}

/* Sets g->rowptr[v + 1] to a bound of the number of couplings of node v: one
 * for each run of entries of a row that belong to one node. */
static void count_runs(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const sps_csr *A = j->l->A;

    for (int64_t v = first; v < last; v++) {
        int64_t runs = 0;

        for (int64_t i = j->l->start[v]; i < j->l->start[v + 1]; i++) {
            int32_t before = -1;

            for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
                const int32_t u = node_of(j, A->col[p]);

                runs += u != v && u != before;
                before = u;
            }
        }
        j->g->rowptr[v + 1] = runs;
    }
}

/* Adds c to the coupling with node u in a list of `count` ascending couplings;
 * its position is at or after *at.  Returns the new length of the list. */
static int64_t add(int32_t *col, double *weight, int64_t count, int64_t *at,
                   int32_t u, double c)
{
    while (*at < count && col[*at] < u) ++*at;
    if (*at < count && col[*at] == u) {
        weight[*at] += c;
        return count;
    }
    for (int64_t q = count; q > *at; q--) {
        col[q] = col[q - 1];
        weight[q] = weight[q - 1];
    }
    col[*at] = u;
    weight[*at] = c;
    return count + 1;
}

/* Writes all couplings of node v; returns their number. */
static int64_t couplings(const job *j, int64_t v, int32_t *col, double *weight)
{
    const sps_csr *A = j->l->A;
    const double *val = A->val, *s = j->l->scale;
    int64_t count = 0;

    for (int64_t i = j->l->start[v]; i < j->l->start[v + 1]; i++) {
        int64_t at = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const int32_t u = node_of(j, A->col[p]);
            const double c = val[p] * s[i] * s[A->col[p]];

            if (u == v) continue;
            count = add(col, weight, count, &at, u, j->node ? c * c : -c);
        }
    }
    return count;
}

static void fill_nodes(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t v = first; v < last; v++) {
        const int64_t at = j->g->rowptr[v];
        double *weight = j->g->weight + at, most = 0;

        j->length[v] = couplings(j, v, j->g->col + at, weight);
        for (int64_t q = 0; q < j->length[v]; q++) {
            if (j->node) weight[q] = sqrt(weight[q]);
            if (weight[q] > most) most = weight[q];
        }
        j->most[v] = most;
    }
}

/* Moves the strong couplings of each row to its front. */
static void select_strong(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const double theta = j->node ? SPS_COARSE_THETA_BLOCKS
                                 : SPS_COARSE_THETA;

    for (int64_t v = first; v < last; v++) {
        int64_t at = j->g->rowptr[v];

        for (int64_t p = at; p < j->g->rowptr[v] + j->length[v]; p++) {
            const int32_t u = j->g->col[p];
            const double c = j->g->weight[p];

            if (!(c > 0 && c >= theta * fmin(j->most[v], j->most[u])))
                continue;
            j->g->col[at] = u;
            j->g->weight[at++] = c;
        }
        j->length[v] = at - j->g->rowptr[v];
    }
}

/* Closes the gaps that select_strong leaves. */
static void close_gaps(amg_graph *g, const int64_t *length)
{
    int64_t to = 0;

    for (int64_t v = 0; v < g->n; v++) {
        const int64_t from = g->rowptr[v];

        g->rowptr[v] = to;
        for (int64_t q = 0; q < length[v]; q++, to++) {
            g->col[to] = g->col[from + q];
            g->weight[to] = g->weight[from + q];
        }
    }
    g->rowptr[g->n] = to;
}

static sps_status number_rows(sps_context *ctx, const amg_level *l,
                              int32_t **node_p)
{
    sps_status st = SPS_OK;

    if (l->single_rows) return SPS_OK;
    SPS_TRY(SPS_NEW(ctx, l->n + 1, node_p));
    for (int64_t v = 0; v < l->nodes; v++)
        for (int64_t i = l->start[v]; i < l->start[v + 1]; i++)
            (*node_p)[i] = (int32_t)v;
fail:
    return st;
}

sps_status spsi_amg_strength(sps_context *ctx, const amg_level *l,
                             amg_graph *g)
{
    const int64_t ns = ENTRY_NS * l->A->nnz;
    job j = { .l = l, .g = g };
    int32_t *node = NULL;
    sps_status st;

    g->n = l->nodes;
    SPS_TRY(number_rows(ctx, l, &node));
    j.node = node;
    SPS_TRY(SPS_NEW(ctx, l->nodes + 1, &j.most));
    SPS_TRY(SPS_NEW(ctx, l->nodes + 1, &j.length));
    SPS_TRY(SPS_NEW(ctx, l->nodes + 1, &g->rowptr));
    SPS_TRY(spsi_team_run_in_time(ctx, l->nodes, ns, count_runs, &j, "amg"));
    for (int64_t v = 0; v < l->nodes; v++) g->rowptr[v + 1] += g->rowptr[v];
    SPS_TRY(SPS_NEW(ctx, g->rowptr[l->nodes] + 1, &g->col));
    SPS_TRY(SPS_NEW(ctx, g->rowptr[l->nodes] + 1, &g->weight));
    SPS_TRY(spsi_team_run_in_time(ctx, l->nodes, ns, fill_nodes, &j, "amg"));
    spsi_team_run(ctx, l->nodes, g->rowptr[l->nodes], select_strong, &j);
    close_gaps(g, j.length);
fail:
    spsi_free(ctx, node);
    spsi_free(ctx, j.most);
    spsi_free(ctx, j.length);
    if (st != SPS_OK) spsi_amg_graph_free(ctx, g);
    return st;
}

void spsi_amg_graph_free(sps_context *ctx, amg_graph *g)
{
    spsi_free(ctx, g->rowptr);
    spsi_free(ctx, g->col);
    spsi_free(ctx, g->weight);
    *g = (amg_graph){ 0 };
}
