/* SPDX-License-Identifier: BSD-3-Clause */
/* partition_metis.c - parts of the graph of a distributed matrix, by METIS in
 * the factor module.  Process 0 gets the graph of all nodes, 8 bytes for an
 * edge and its reverse from each process that has it, and returns the parts. */
#include <stdlib.h>

#include "core/comm.h"
#include "matrix/order.h"
#include "operator/direct.h"
#include "operator/operator_ranks.h"
#include "operator/partition.h"
#include "halo/trade.h"

typedef struct edge {
    int32_t low, high;        /* global numbers of the nodes, from 1 on */
} edge;

/* Finds the edges of own rows, each once. */
static sps_status find_edges(const sps_operator *op, const sps_partition *p,
                             edge **edge_p, int64_t *count)
{
    const sps_csr *A = op->ranks->A;
    int64_t found = 0, kept = 0;
    edge *e = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(op->ctx, A->nnz, &e));
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++) {
            const int32_t a = (int32_t)((A->first + i) / p->unknowns) + 1;
            const int32_t b = (int32_t)(A->global[q] / p->unknowns) + 1;

            if (a != b) e[found++] = a < b ? (edge){ a, b } : (edge){ b, a };
        }
    if (found > 0) qsort(e, (size_t)found, sizeof *e, spsi_by_pair);
    for (int64_t i = 0; i < found; i++)
        if (i == 0 || spsi_by_pair(&e[i - 1], &e[i])) e[kept++] = e[i];
    *edge_p = e;
    *count = kept;
fail:
    return st;
}

/* Process 0 assigns the nodes to parts. */
static sps_status assign(const sps_partition *p, const edge *e, int64_t edges,
                         int32_t *part)
{
    const int size = spsi_comm_size(p->ctx);
    const double all = (double)p->offset[size];
    sps_factor_matrix G = { .n = (int32_t)p->offset[size], .nnz = edges };
    float *share = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(p->ctx, size, &share));
    SPS_TRY(SPS_NEW(p->ctx, edges, &G.row));
    SPS_TRY(SPS_NEW(p->ctx, edges, &G.col));
    for (int r = 0; r < size; r++)
        share[r] = (float)((double)(p->offset[r + 1] - p->offset[r]) / all);
    for (int64_t i = 0; i < edges; i++) {
        G.row[i] = e[i].high;
        G.col[i] = e[i].low;
    }
    SPS_TRY(spsi_direct_partition(p->ctx, &G, size, share, part));
fail:
    spsi_free(p->ctx, share);
    spsi_free(p->ctx, G.row);
    spsi_free(p->ctx, G.col);
    return st;
}

/* Sends `count` own edges to process 0, and receives the parts of own nodes. */
static sps_status ask(const sps_partition *p, const edge *e, int64_t count,
                      int64_t *at, int32_t *own)
{
    const int size = spsi_comm_size(p->ctx), rank = spsi_comm_rank(p->ctx);
    const int64_t nodes = rank == 0 ? p->offset[size] : 0;
    int64_t *in_at = at + size + 1, *out_at = at + 2 * (size + 1);
    int64_t *node_at = at + 3 * (size + 1);
    int32_t *part = NULL;
    edge *all = NULL;
    sps_status st;

    for (int r = 1; r <= size; r++) at[r] = count;
    SPS_TRY(spsi_trade_counts(p->ctx, at, in_at));
    SPS_TRY(SPS_NEW(p->ctx, in_at[size], &all));
    SPS_TRY(SPS_NEW(p->ctx, nodes, &part));
    SPS_TRY(spsi_trade(p->ctx, at, e, in_at, all, sizeof *all));
    if (rank == 0) SPS_TRY(assign(p, all, in_at[size], part));
    for (int r = 1; r <= size; r++) {
        out_at[r] = rank == 0 ? p->offset[r] : 0;
        node_at[r] = p->nodes;
    }
    SPS_TRY(spsi_trade(p->ctx, out_at, part, node_at, own, sizeof *own));
fail:
    spsi_free(p->ctx, all);
    spsi_free(p->ctx, part);
    return st;
}

sps_status spsi_partition_metis(const sps_operator *op, const sps_partition *p,
                                uint64_t *key)
{
    const int size = spsi_comm_size(op->ctx);
    int64_t *at = NULL, count;
    int32_t *own = NULL;
    edge *e = NULL;
    sps_status st = SPS_OK;

    SPS_REQUIRE(op->ctx, p->offset[size] < INT32_MAX, SPS_EUNFIT, "partition "
                "metis: %lld nodes; fewer than 2^31 - 1 are supported",
                (long long)p->offset[size]);
    SPS_TRY(find_edges(op, p, &e, &count));
    SPS_TRY(SPS_NEW(op->ctx, 4 * ((int64_t)size + 1), &at));
    SPS_TRY(SPS_NEW(op->ctx, p->nodes, &own));
    SPS_TRY(ask(p, e, count, at, own));
    for (int64_t i = 0; i < p->nodes; i++) key[i] = (uint64_t)own[i];
fail:
    spsi_free(op->ctx, at);
    spsi_free(op->ctx, own);
    spsi_free(op->ctx, e);
    return st;
}
