/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_sums.c - see chunk_sums.h. */
#include "block/chunk_sums.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "block/small.h"
#include "core/backend.h"
#include "core/comm.h"

/* LEVELS: levels of the tree of 1024 chunks, log2(1024) + 1; AT_ONCE: largest
 * number of doubles in one sum over processes. */
enum { LEVELS = 11, AT_ONCE = 4096 };

typedef struct node {
    int level;
    int64_t at;
} node;

typedef struct tree {
    sps_context *ctx;
    int64_t rows, chunks;     /* rows of a chunk, number of chunks */
    int64_t first, whole;     /* first row of this process, number of rows of
                                 all processes */
    int levels;               /* the root is node 0 of this level */
    double *offset;           /* first row of each process, and `whole` */
    node *part;               /* the gathered nodes, by process */
    int64_t parts, own, mine; /* number of gathered nodes; index of the first
                                 one of this process, number of its nodes */
    int64_t items;            /* numbers that are summed over the rows */
    spsi_chunk_fn *fn;        /* sums over a chunk */
    void *data;               /* argument of fn */
    double *room;             /* scratch: levels * items */
} tree;

/* ---------------------------------------------------------- the division */

/* Sets the first rows of all processes. */
static sps_status gather_offsets(sps_context *ctx, int64_t n, double *offset)
{
    const int size = spsi_comm_size(ctx);
    double end = 0;
    sps_status st;

    SPS_TRY(spsi_comm_gather(ctx, (double)n, offset));
    for (int r = 0; r <= size; r++) {
        const double rows = r < size ? offset[r] : 0;

        offset[r] = end;
        end += rows;
    }
fail:
    return st;
}

sps_status spsi_chunk_first(sps_context *ctx, int64_t n, int64_t *first)
{
    double *offset = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, spsi_comm_size(ctx) + 1, &offset));
    SPS_TRY(gather_offsets(ctx, n, offset));
    *first = (int64_t)offset[spsi_comm_rank(ctx)];
fail:
    spsi_free(ctx, offset);
    return st;
}

/* Appends the largest nodes whose chunks are from .. to - 1. */
static void add_nodes(tree *t, int64_t from, int64_t to)
{
    while (from < to && from < t->chunks) {
        int level = 0;

        while (level < t->levels && from % (INT64_C(2) << level) == 0 &&
               from + (INT64_C(2) << level) <= to)
            level++;
        t->part[t->parts++] = (node){ level, from >> level };
        from += INT64_C(1) << level;
    }
}

static sps_status divide(tree *t)
{
    const int size = spsi_comm_size(t->ctx), rank = spsi_comm_rank(t->ctx);
    const int64_t last = INT64_C(1) << t->levels;
    sps_status st = SPS_OK;

    for (int r = 0; r < size; r++) {
        const int64_t from = (int64_t)t->offset[r];
        const int64_t to = (int64_t)t->offset[r + 1];

        SPS_REQUIRE(t->ctx, from == t->whole || from % t->rows == 0,
                    SPS_EUNFIT, "across_ranks: the rows of process %d begin at "
                    "%lld; with %lld rows in all, the first row of a process "
                    "must be a multiple of %lld", r, (long long)from,
                    (long long)t->whole,
                    (long long)t->rows);
        if (r == rank) t->own = t->parts;
        if (from < to)
            add_nodes(t, from / t->rows, to == t->whole ? last : to / t->rows);
        if (r == rank) t->mine = t->parts - t->own;
    }
fail:
    return st;
}

static sps_status plant(tree *t, int64_t n)
{
    const int size = spsi_comm_size(t->ctx);
    sps_status st;

    SPS_TRY(SPS_NEW(t->ctx, size + 1, &t->offset));
    SPS_TRY(gather_offsets(t->ctx, n, t->offset));
    t->first = (int64_t)t->offset[spsi_comm_rank(t->ctx)];
    t->whole = (int64_t)t->offset[size];
    t->rows = spsi_comm_chunk(t->whole);
    t->chunks = (t->whole + t->rows - 1) / t->rows;
    while (INT64_C(1) << t->levels < t->chunks) t->levels++;
    assert(t->levels < LEVELS);
    SPS_TRY(SPS_NEW(t->ctx, 2 * LEVELS * (int64_t)size, &t->part));
    SPS_TRY(divide(t));
    SPS_TRY(SPS_NEW(t->ctx, (t->levels + 1) * t->items, &t->room));
fail:
    return st;
}

static void fell(tree *t)
{
    spsi_free(t->ctx, t->offset);
    spsi_free(t->ctx, t->part);
    spsi_free(t->ctx, t->room);
}

/* ---------------------------------------------------------------- sums */

/* Returns whether the right child of a node has chunks. */
static bool has_right(const tree *t, int level, int64_t at)
{
    return (2 * at + 1) << (level - 1) < t->chunks;
}

static void add(double *to, const double *from, int64_t items)
{
    for (int64_t j = 0; j < items; j++) to[j] += from[j];
}

/* Computes the sum of node `at` of `level`, whose rows belong to this process.
 * A leaf of -0 becomes 0, as it does in the sum over processes, to which the
 * others contribute 0. */
static sps_status own_node(const tree *t, int level, int64_t at, double *out)
{
    double *right = t->room + (level - 1) * t->items;
    sps_status st;

    if (level == 0) {
        const int64_t begin = at * t->rows, left = t->whole - begin;

        SPS_TRY(t->fn(t->data, begin - t->first,
                      left < t->rows ? left : t->rows, out));
        for (int64_t j = 0; j < t->items; j++) out[j] += 0.0;
        return SPS_OK;
    }
    SPS_TRY(own_node(t, level - 1, 2 * at, out));
    if (!has_right(t, level, at)) return SPS_OK;
    SPS_TRY(own_node(t, level - 1, 2 * at + 1, right));
    add(out, right, t->items);
fail:
    return st;
}

/* Computes the sum of node `at` of `level` from the gathered nodes below it,
 * `items` numbers each; *next is the first of them that was not used yet. */
static void whole_node(const tree *t, int level, int64_t at, int64_t items,
                       const double *value, int64_t *next, double *out)
{
    const node *p = &t->part[*next];
    double *right = t->room + (level - 1) * items;

    if (p->level == level && p->at == at) {
        memcpy(out, value + *next * items, (size_t)items * sizeof *out);
        ++*next;
        return;
    }
    whole_node(t, level - 1, 2 * at, items, value, next, out);
    if (!has_right(t, level, at)) return;
    whole_node(t, level - 1, 2 * at + 1, items, value, next, right);
    add(out, right, items);
}

/* Gathers numbers j .. j + items - 1 of all nodes, and adds them up. */
static sps_status sum_slice(const tree *t, const double *own, int64_t j,
                            int64_t items, double *value, double *sums)
{
    int64_t next = 0;
    sps_status st;

    memset(value, 0, (size_t)(t->parts * items) * sizeof *value);
    for (int64_t p = 0; p < t->mine; p++)
        memcpy(value + (t->own + p) * items, own + p * t->items + j,
               (size_t)items * sizeof *value);
    SPS_TRY(spsi_reduce(t->ctx, value, (int)(t->parts * items)));
    whole_node(t, t->levels, 0, items, value, &next, sums + j);
fail:
    return st;
}

static sps_status sum_tree(const tree *t, double *sums)
{
    const int64_t slice = t->parts < AT_ONCE ? AT_ONCE / t->parts : 1;
    const int64_t most = slice < t->items ? slice : t->items;
    double *own = NULL, *value = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(t->ctx, t->mine * t->items + 1, &own));
    SPS_TRY(SPS_NEW(t->ctx, t->parts * most, &value));
    for (int64_t p = 0; p < t->mine; p++) {
        const node *n = &t->part[t->own + p];

        SPS_TRY(own_node(t, n->level, n->at, own + p * t->items));
    }
    for (int64_t j = 0; j < t->items; j += most)
        SPS_TRY(sum_slice(t, own, j, t->items - j < most ? t->items - j : most,
                          value, sums));
fail:
    spsi_free(t->ctx, own);
    spsi_free(t->ctx, value);
    return st;
}

sps_status spsi_chunk_sum(sps_context *ctx, int64_t n, int64_t items,
                            spsi_chunk_fn *fn, void *data, double *sums)
{
    tree t = { .ctx = ctx, .items = items, .fn = fn, .data = data };
    sps_status st = SPS_OK;

    if (items == 0) return st;
    memset(sums, 0, (size_t)items * sizeof *sums);
    SPS_TRY(plant(&t, n));
    if (t.whole > 0) SPS_TRY(sum_tree(&t, sums));
fail:
    fell(&t);
    return st;
}

/* ------------------------------------------------------ dots, X'Y, maxima */

typedef struct pair {
    const sps_block *X, *Y;
} pair;

sps_block spsi_chunk_view(const sps_block *X, int64_t first, int64_t n)
{
    const int64_t item = X->dtype == SPS_F64 ? (int64_t)sizeof(double)
                                             : (int64_t)sizeof(float);
    sps_block part = *X;

    part.n = n;
    part.bytes = 0;
    part.data = (char *)X->data + first * X->ld * item;
    return part;
}

static sps_status part_dots(void *data, int64_t first, int64_t n, double *sums)
{
    const pair *p = data;
    const sps_block X = spsi_chunk_view(p->X, first, n);
    const sps_block Y = spsi_chunk_view(p->Y, first, n);

    return X.ctx->backend->dots(&X, &Y, sums);
}

sps_status spsi_chunk_dots(const sps_block *X, const sps_block *Y,
                             double *out)
{
    return spsi_chunk_sum(X->ctx, X->n, X->k, part_dots, &(pair){ X, Y },
                            out);
}

static sps_status part_gram(void *data, int64_t first, int64_t n, double *sums)
{
    const pair *p = data;
    const sps_block X = spsi_chunk_view(p->X, first, n);
    const sps_block Y = spsi_chunk_view(p->Y, first, n);
    sps_small C = { .ctx = X.ctx, .place = SPS_HOST, .rows = X.k, .cols = Y.k,
                    .max_rows = X.k, .max_cols = Y.k, .v = sums };

    return X.ctx->backend->gram(&X, &Y, &C);
}

sps_status spsi_chunk_gram(const sps_block *X, const sps_block *Y,
                             sps_small *C)
{
    return spsi_chunk_sum(X->ctx, X->n, (int64_t)X->k * Y->k, part_gram,
                            &(pair){ X, Y }, C->v);
}

sps_status spsi_chunk_largest(sps_context *ctx, int k, double *out)
{
    const int size = spsi_comm_size(ctx);
    double *all = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, (int64_t)size * k + 1, &all));
    memcpy(all + (int64_t)spsi_comm_rank(ctx) * k, out,
           (size_t)k * sizeof *out);
    SPS_TRY(spsi_reduce(ctx, all, size * k));
    for (int i = 0; i < size * k; i++)
        if (!(all[i] <= out[i % k]) && out[i % k] == out[i % k])
            out[i % k] = all[i];
fail:
    spsi_free(ctx, all);
    return st;
}
