/* SPDX-License-Identifier: BSD-3-Clause */
/* match.c - a permutation that moves large entries to the diagonal: the
 * matching of rows and columns with maximal product of |a_ij| (Duff and Koster,
 * SIAM J. Matrix Anal. Appl. 22, 2001), by shortest augmenting paths.
 *
 * Costs c_ij = log max_j |a_ij| - log |a_ij| >= 0.  Potentials u, v satisfy
 * c_ij - u_i - v_j >= 0, with 0 on matched pairs.  For each free row Dijkstra's
 * algorithm on reduced costs finds the nearest free column; the potentials of
 * the columns reached are updated so that the path becomes tight.  Finally
 * exp(u_i) / max_j |a_ij| and exp(v_j) scale the matrix to entries of at most
 * 1, with 1 on the matching. */
#include <math.h>
#include <string.h>

#include "matrix/order.h"
#include "core/deadline.h"

typedef struct matching {
    const sps_csr *A;
    int64_t n;
    double *largest;          /* log max_j |a_ij| */
    double *cost;             /* c_ij by entry; INFINITY where a_ij is 0 or not
                                 finite */
    double *u, *v;            /* potentials of rows and of columns */
    int32_t *column, *row;    /* column[i] is matched to row i, and row[j] to
                                 column j; -1 for none */
    /* State of one search: */
    double *distance;         /* length of the path to each column */
    int32_t *from;            /* row before each column on its path */
    int64_t *place;           /* of each column: position in the heap; -1 if
                                 not reached, -2 if done */
    int32_t *heap;            /* columns by distance */
    int64_t heap_size;
    int32_t *touched;         /* columns reached by the search */
    int64_t touched_count;
} matching;

static bool stored(const matching *m, int64_t p)
{
    const double a = spsi_csr_value(m->A, p);

    return a != 0 && isfinite(a);
}

/* ------------------------------------------------------------------- heap */

static void heap_set(matching *m, int64_t at, int32_t j)
{
    m->heap[at] = j;
    m->place[j] = at;
}

static void heap_up(matching *m, int32_t j)
{
    int64_t at = m->place[j];

    while (at > 0) {
        const int32_t above = m->heap[(at - 1) / 2];

        if (m->distance[above] <= m->distance[j]) break;
        heap_set(m, at, above);
        at = (at - 1) / 2;
    }
    heap_set(m, at, j);
}

static int32_t heap_pop(matching *m)
{
    const int32_t top = m->heap[0], j = m->heap[--m->heap_size];
    int64_t at = 0;

    m->place[top] = -2;
    if (m->heap_size == 0) return top;
    for (;;) {
        int64_t c = 2 * at + 1;

        if (c >= m->heap_size) break;
        if (c + 1 < m->heap_size && m->distance[m->heap[c + 1]] <
                                        m->distance[m->heap[c]]) c++;
        if (m->distance[m->heap[c]] >= m->distance[j]) break;
        heap_set(m, at, m->heap[c]);
        at = c;
    }
    heap_set(m, at, j);
    return top;
}

/* ----------------------------------------------------------------- search */

/* Lowers distance[j] to `distance`, with row i as predecessor of column j; does
 * nothing if it is not lower or column j is done. */
static void reach(matching *m, int32_t i, int32_t j, double distance)
{
    if (m->place[j] == -2) return;
    if (m->place[j] == -1) {
        m->touched[m->touched_count++] = j;
        m->place[j] = m->heap_size++;
        m->heap[m->place[j]] = j;
    } else if (distance >= m->distance[j]) {
        return;
    }
    m->distance[j] = distance;
    m->from[j] = i;
    heap_up(m, j);
}

static void relax(matching *m, int32_t i, double base)
{
    for (int64_t p = m->A->rowptr[i]; p < m->A->rowptr[i + 1]; p++) {
        const int32_t j = m->A->col[p];

        if (m->cost[p] < INFINITY)
            reach(m, i, j, base + fmax(0, m->cost[p] - m->u[i] - m->v[j]));
    }
}

/* Returns the free column nearest to the free row i by reduced costs
 * (Dijkstra), or -1 if no free column can be reached. */
static int32_t search(matching *m, int32_t i)
{
    double base = 0;

    m->heap_size = m->touched_count = 0;
    for (;;) {
        int32_t j;

        relax(m, i, base);
        if (m->heap_size == 0) return -1;
        j = heap_pop(m);
        if (m->row[j] < 0) return j;
        i = m->row[j];
        base = m->distance[j];
    }
}

/* Updates the potentials so that the path from row i to column `end` is tight,
 * and exchanges matched and unmatched pairs along it. */
static void augment(matching *m, int32_t i, int32_t end)
{
    const double length = m->distance[end];

    for (int64_t t = 0; t < m->touched_count; t++) {
        const int32_t j = m->touched[t];

        if (m->place[j] != -2 || j == end) continue;
        m->v[j] -= length - m->distance[j];
        m->u[m->row[j]] += length - m->distance[j];
    }
    m->u[i] += length;
    for (int32_t j = end, next; j >= 0; j = next) {
        const int32_t r = m->from[j];

        next = m->column[r];
        m->column[r] = j;
        m->row[j] = r;
        if (r == i) break;
    }
}

static void forget(matching *m)
{
    for (int64_t t = 0; t < m->touched_count; t++)
        m->place[m->touched[t]] = -1;
}

/* ------------------------------------------------------------------ start */

/* Computes the costs c_ij and v_j = min_i c_ij; no row is matched yet.
 * (match_tight then sets u_i = min_j (c_ij - v_j), and matches row i to a free
 * column where this minimum is attained.) */
static void begin(matching *m)
{
    for (int64_t j = 0; j < m->n; j++) {
        m->v[j] = INFINITY;
        m->row[j] = -1;
        m->place[j] = -1;
    }
    for (int64_t i = 0; i < m->n; i++) {
        double largest = 0;

        for (int64_t p = m->A->rowptr[i]; p < m->A->rowptr[i + 1]; p++)
            if (stored(m, p))
                largest = fmax(largest, fabs(spsi_csr_value(m->A, p)));
        m->largest[i] = log(largest);
        m->column[i] = -1;
        for (int64_t p = m->A->rowptr[i]; p < m->A->rowptr[i + 1]; p++) {
            double *v = &m->v[m->A->col[p]];

            m->cost[p] = stored(m, p) ? m->largest[i] -
                             log(fabs(spsi_csr_value(m->A, p))) : INFINITY;
            *v = fmin(*v, m->cost[p]);
        }
    }
}

static void match_tight(matching *m)
{
    for (int64_t i = 0; i < m->n; i++) {
        int32_t best = -1;

        m->u[i] = INFINITY;
        for (int64_t p = m->A->rowptr[i]; p < m->A->rowptr[i + 1]; p++) {
            const int32_t j = m->A->col[p];
            const double c = m->cost[p] < INFINITY ? m->cost[p] - m->v[j]
                                                   : INFINITY;

            if (c < m->u[i] || (c == m->u[i] && best >= 0 && m->row[best] >= 0))
                best = j;
            m->u[i] = fmin(m->u[i], c);
        }
        if (best < 0 || m->row[best] >= 0) continue;
        m->column[i] = best;
        m->row[best] = (int32_t)i;
    }
}

/* ---------------------------------------------------- creation, destruction */

static sps_status open_matching(sps_context *ctx, matching *m)
{
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, m->n, &m->largest));
    SPS_TRY(SPS_NEW(ctx, m->A->nnz, &m->cost));
    SPS_TRY(SPS_NEW(ctx, m->n, &m->u));
    SPS_TRY(SPS_NEW(ctx, m->n, &m->v));
    SPS_TRY(SPS_NEW(ctx, m->n, &m->row));
    SPS_TRY(SPS_NEW(ctx, m->n, &m->distance));
    SPS_TRY(SPS_NEW(ctx, m->n, &m->from));
    SPS_TRY(SPS_NEW(ctx, m->n, &m->place));
    SPS_TRY(SPS_NEW(ctx, m->n, &m->heap));
    SPS_TRY(SPS_NEW(ctx, m->n, &m->touched));
fail:
    return st;
}

static void close_matching(sps_context *ctx, matching *m)
{
    void *arrays[] = { m->largest, m->cost, m->u, m->v, m->row, m->distance,
                       m->from, m->place, m->heap, m->touched };

    for (size_t t = 0; t < sizeof arrays / sizeof *arrays; t++)
        spsi_free(ctx, arrays[t]);
}

/* Returns exp(x) rounded to a power of two and limited to 2^-500 .. 2^500. */
static double power_of_two(double x)
{
    const double e = rint(x / log(2.0));

    return isfinite(e) ? ldexp(1, (int)fmax(-500, fmin(500, e))) : 1;
}

sps_status spsi_match(sps_context *ctx, const sps_csr *A, int32_t *column,
                      double *row, double *col, int64_t *rank)
{
    sps_status st;
    matching m = { .A = A, .n = A->nrow, .column = column };

    *rank = 0;
    SPS_TRY(open_matching(ctx, &m));
    begin(&m);
    match_tight(&m);
    for (int32_t i = 0; i < m.n; i++) {
        if (column[i] < 0 && isfinite(m.u[i])) {
            int32_t end;

            SPS_TRY(spsi_check_deadline(ctx, "the matching"));
            end = search(&m, i);
            if (end >= 0) augment(&m, i, end);
            forget(&m);
        }
        *rank += column[i] >= 0;
    }
    for (int64_t i = 0; i < m.n; i++) {
        row[i] = power_of_two(m.u[i] - m.largest[i]);
        col[i] = power_of_two(m.v[i]);
    }
fail:
    close_matching(ctx, &m);
    return st;
}

/* ------------------------------------------------------------ equilibration */

/* Returns 1 / sqrt(largest) as a power of two, or 1 if largest is 0 or not
 * finite.  Between 1/2 and 2 the nearest one is 1, without a logarithm. */
static double root_of(double largest)
{
    if (largest > 0.5 && largest < 2) return 1;
    return largest > 0 && isfinite(largest)
               ? power_of_two(-0.5 * log(largest)) : 1;
}

static bool scale_by(double factor, double *scale)
{
    *scale *= factor;
    return factor != 1;
}

/* Scales repeatedly by the square roots of the largest entries of rows and
 * columns (Ruiz, RAL-TR-2001-034). */
sps_status spsi_equilibrate(sps_context *ctx, const sps_csr *A, double *row,
                            double *col)
{
    const int64_t n = A->nrow;
    sps_status st;
    double *largest = NULL;   /* largest scaled |a_ij| of each column */
    bool changed = true;

    SPS_TRY(SPS_NEW(ctx, n, &largest));
    for (int64_t i = 0; i < n; i++) row[i] = col[i] = 1;
    for (int sweep = 0; sweep < 6 && changed; sweep++) {
        changed = false;
        memset(largest, 0, (size_t)n * sizeof *largest);
        for (int64_t i = 0; i < n; i++) {
            double own = 0;

            for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
                const int32_t j = A->col[p];
                const double a = fabs(spsi_csr_value(A, p)) * row[i] * col[j];

                if (a > own) own = a;
                if (a > largest[j]) largest[j] = a;
            }
            changed |= scale_by(root_of(own), &row[i]);   /* row[i] is not read
                                                             again this sweep */
        }
        for (int64_t j = 0; j < n; j++)
            changed |= scale_by(root_of(largest[j]), &col[j]);
    }
fail:
    spsi_free(ctx, largest);
    return st;
}
