/* SPDX-License-Identifier: BSD-3-Clause */
/* order_degree.c - minimum degree ordering on the quotient graph, with the
 * approximate external degrees of Amestoy, Davis and Duff (SIAM J. Matrix Anal.
 * Appl. 17, 1996, section 4), absorption of covered elements, and dense rows
 * last.
 *
 * A vertex i not yet eliminated has a list of vertices and one of elements
 * (cliques of eliminated vertices), in the memory of its row: eliminating a
 * neighbour removes at least one entry for the one it adds.  The pivot p
 * creates the element L_p, all its neighbours through both lists.  For i in L_p
 *   degree(i) <= |A_i \ L_p| + |L_p \ i| + sum over i's elements of |L_e \ L_p|
 * and |L_e \ L_p| is counted once for all i. */
#include <math.h>
#include <string.h>

#include "matrix/order.h"
#include "core/deadline.h"

typedef struct state {
    int64_t n, left;          /* number of vertices; those not ordered yet */
    int64_t *start;           /* offset in `list` of the lists of vertex i */
    int32_t *list;            /* lists of vertices, then of elements */
    int32_t *vertices, *elements;  /* number of both in the lists of vertex i;
                                      elements < 0 if it is eliminated */
    int64_t *element_start;   /* offset of L_e in `pool` */
    int32_t *element_length;  /* |L_e|; 0 if there is no element e or it was
                                 absorbed */
    int32_t *pool;            /* the vertices of the elements */
    int64_t used, room;       /* elements of `pool` in use, and allocated */
    int32_t *degree, *head, *forward, *back;    /* upper bounds of degrees;
                                 doubly linked lists of the vertices of each
                                 degree */
    int32_t least;            /* no vertex has a smaller degree */
    int64_t *mark, stamp;     /* of elements: stamp + |L_e \ L_p| */
    int64_t *in;              /* of each vertex: stamp of the last L_p that
                                 contains it */
} state;

/* ---------------------------------------------------------------- buckets */

static void put(state *s, int32_t i, int32_t degree)
{
    const int32_t next = s->head[degree];

    s->degree[i] = degree;
    if (degree < s->least) s->least = degree;
    s->forward[i] = next;
    s->back[i] = -1;
    if (next >= 0) s->back[next] = i;
    s->head[degree] = i;
}

static void take(state *s, int32_t i)
{
    if (s->forward[i] >= 0) s->back[s->forward[i]] = s->back[i];
    if (s->back[i] >= 0) s->forward[s->back[i]] = s->forward[i];
    else s->head[s->degree[i]] = s->forward[i];
}

/* ------------------------------------------------------------- elimination */

static sps_status need(sps_context *ctx, state *s, int64_t more)
{
    sps_status st = SPS_OK;

    if (s->used + more <= s->room) return SPS_OK;
    s->room = 2 * s->room + more;
    SPS_TRY(spsi_resize(ctx, (size_t)s->room * sizeof *s->pool,
                        (void **)&s->pool));
fail:
    return st;
}

/* Appends vertex j to the element under construction. */
static void gather(state *s, int32_t p, int32_t j)
{
    if (j == p || s->elements[j] < 0 || s->in[j] == s->stamp) return;
    s->in[j] = s->stamp;
    s->pool[s->used++] = j;
}

/* Forms L_p from the neighbours of p; the elements of p are absorbed in it. */
static sps_status make_element(sps_context *ctx, state *s, int32_t p)
{
    const int32_t *own = s->list + s->start[p];
    int64_t size = s->vertices[p];
    sps_status st;

    for (int32_t t = 0; t < s->elements[p]; t++)
        size += s->element_length[own[s->vertices[p] + t]];
    SPS_TRY(need(ctx, s, size));
    s->element_start[p] = s->used;
    for (int32_t t = 0; t < s->vertices[p]; t++) gather(s, p, own[t]);
    for (int32_t t = 0; t < s->elements[p]; t++) {
        const int32_t e = own[s->vertices[p] + t];
        const int32_t *l = s->pool + s->element_start[e];

        for (int32_t u = 0; u < s->element_length[e]; u++)
            gather(s, p, l[u]);
        s->element_length[e] = 0;
    }
    s->element_length[p] = (int32_t)(s->used - s->element_start[p]);
    s->elements[p] = -1;
fail:
    return st;
}

/* Sets mark[e] = stamp + |L_e \ L_p| for the elements e that intersect L_p. */
static void count_outside(state *s, int32_t p)
{
    const int32_t *l = s->pool + s->element_start[p];

    for (int32_t t = 0; t < s->element_length[p]; t++) {
        const int32_t i = l[t];
        const int32_t *e = s->list + s->start[i] + s->vertices[i];

        for (int32_t u = 0; u < s->elements[i]; u++) {
            if (s->element_length[e[u]] == 0) continue;
            if (s->mark[e[u]] < s->stamp)
                s->mark[e[u]] = s->stamp + s->element_length[e[u]];
            s->mark[e[u]]--;
        }
    }
}

/* For vertex i of L_p: removes what L_p covers from its lists, and adds p;
 * returns its new degree. */
static int32_t update(state *s, int32_t p, int32_t i)
{
    int32_t *own = s->list + s->start[i];
    const int32_t vertices = s->vertices[i], elements = s->elements[i];
    int32_t v = 0, e = 0;
    int64_t degree = s->element_length[p] - 1, bound;

    for (int32_t t = 0; t < vertices; t++) {
        const int32_t j = own[t];

        if (j != p && s->elements[j] >= 0 && s->in[j] != s->stamp)
            own[v++] = j;
    }
    degree += v;
    for (int32_t t = 0; t < elements; t++) {
        const int32_t f = own[vertices + t];

        if (s->element_length[f] == 0) continue;
        if (s->mark[f] == s->stamp) continue;     /* L_f is a subset of L_p */
        degree += s->mark[f] - s->stamp;
        own[v + e++] = f;
    }
    own[v + e++] = p;
    s->vertices[i] = v;
    s->elements[i] = e;
    bound = (int64_t)s->degree[i] + s->element_length[p] - 1;
    if (degree > bound) degree = bound;
    return (int32_t)(degree < s->left - 1 ? degree : s->left - 1);
}

static sps_status eliminate(sps_context *ctx, state *s, int32_t p)
{
    const int32_t *l;
    sps_status st;

    s->stamp += s->n + 1;
    take(s, p);
    SPS_TRY(make_element(ctx, s, p));
    s->left--;
    count_outside(s, p);
    l = s->pool + s->element_start[p];
    for (int32_t t = 0; t < s->element_length[p]; t++) {
        take(s, l[t]);
        put(s, l[t], update(s, p, l[t]));
    }
fail:
    return st;
}

/* ---------------------------------------------------- creation, destruction */

static sps_status open_state(sps_context *ctx, const sps_graph *g, state *s)
{
    const int64_t n = g->n;
    sps_status st;

    s->n = s->left = n;
    s->start = g->start;
    SPS_TRY(SPS_NEW(ctx, g->start[n] + 1, &s->list));
    memcpy(s->list, g->next, (size_t)g->start[n] * sizeof *s->list);
    SPS_TRY(SPS_NEW(ctx, n, &s->vertices));
    SPS_TRY(SPS_NEW(ctx, n, &s->elements));
    SPS_TRY(SPS_NEW(ctx, n, &s->element_start));
    SPS_TRY(SPS_NEW(ctx, n, &s->element_length));
    SPS_TRY(SPS_NEW(ctx, n, &s->degree));
    SPS_TRY(SPS_NEW(ctx, n + 1, &s->head));
    SPS_TRY(SPS_NEW(ctx, n, &s->forward));
    SPS_TRY(SPS_NEW(ctx, n, &s->back));
    SPS_TRY(SPS_NEW(ctx, n, &s->mark));
    SPS_TRY(SPS_NEW(ctx, n, &s->in));
    s->room = g->start[n] + 1;
    SPS_TRY(spsi_new(ctx, (size_t)s->room * sizeof *s->pool,
                     (void **)&s->pool));
    for (int64_t i = 0; i <= n; i++) s->head[i] = -1;
fail:
    return st;
}

static void close_state(sps_context *ctx, state *s)
{
    void *arrays[] = { s->list, s->vertices, s->elements, s->element_start,
                       s->element_length, s->degree, s->head, s->forward,
                       s->back, s->mark, s->in, s->pool };

    for (size_t t = 0; t < sizeof arrays / sizeof *arrays; t++)
        spsi_free(ctx, arrays[t]);
}

/* Returns the number of entries above which a row is ordered last, in any
 * order, because it is adjacent to nearly all vertices. */
static int64_t dense_length(int64_t n)
{
    const double d = 10 * sqrt((double)n);

    return d < 16 ? 16 : (int64_t)d;
}

static void count_fill(double length, sps_fill *fill)
{
    if (!fill) return;
    fill->entries += length;
    fill->operations += length * length;
}

sps_status spsi_order_degree(sps_context *ctx, const sps_graph *g,
                             int32_t *order, sps_fill *fill)
{
    sps_status st;
    state s = { 0 };
    int64_t count = 0, last = g->n;

    SPS_TRY(open_state(ctx, g, &s));
    for (int32_t i = (int32_t)g->n - 1; i >= 0; i--) {
        const int64_t length = g->start[i + 1] - g->start[i];

        s.vertices[i] = (int32_t)length;
        if (length <= dense_length(g->n)) {
            put(&s, i, (int32_t)length);
            continue;
        }
        s.elements[i] = -1;
        s.left--;
        order[--last] = i;
    }
    while (count < last) {
        while (s.head[s.least] < 0) s.least++;
        order[count] = s.head[s.least];
        SPS_TRY(spsi_check_deadline(ctx, "the ordering"));
        SPS_TRY(eliminate(ctx, &s, order[count]));
        count_fill((double)(s.element_length[order[count++]] + g->n - last),
                   fill);
    }
    for (; count < g->n; count++) count_fill((double)(g->n - count - 1), fill);
fail:
    close_state(ctx, &s);
    return st;
}
