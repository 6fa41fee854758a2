/* SPDX-License-Identifier: BSD-3-Clause */
/* ilut.c - incomplete LU by threshold with column pivoting (Saad, Numer.
 * Linear Algebra Appl. 1, 1994, and Iterative Methods for Sparse Linear
 * Systems, 2003, section 10.4):
 *
 *   w = b_i;  for the columns k < i of w, rising:
 *     |w_k| <= tol ||b_i||: dropped;  else l_ik = w_k / u_kk, w -= l_ik u_k
 *   of the rest of w: |w_j| <= tol ||b_i|| is dropped, of what stays in each
 *   triangle the `most` largest; the largest right of the diagonal becomes the
 *   pivot where the diagonal is below `pivot` times it.
 *
 * With tol = 0 and no bound on the row this is Gaussian elimination.  A pivot
 * that vanishes is replaced by sqrt(eps) ||b_i|| (static pivoting as in Li and
 * Demmel, ACM Trans. Math. Softw. 29, 2003) and counted.
 *
 * Columns swap places while rows are made: U keeps their names, and place[] is
 * put in at the end.  Serial: row i needs all rows before it. */
#include "lib/ilut.h"
#include "lib/timer.h"
#include "rows.h"

#include <float.h>
#include <math.h>

/* A factor that grows by rows. */
typedef struct factor {
    int64_t *start;
    int32_t *col;
    double *val;
    int64_t used, room;
} factor;

typedef struct work {
    sps_context *ctx;
    const sps_csr *B;
    const sps_ilut_options *o;
    factor L, U;
    double *inverse;          /* 1 / u_kk */
    int32_t *column, *place;  /* name at a place, place of a name */
    double *w;                /* by name */
    int64_t *seen;            /* row that met the name last, + 1 */
    int32_t *heap;            /* places left of the diagonal, to eliminate */
    int64_t heap_size;
    int32_t *lower, *upper;   /* places, names of this row */
    double *low;              /* l of lower */
    int64_t lower_count, upper_count;
    double *size;             /* scratch of selection */
    int64_t replaced;
} work;

/* ------------------------------------------------------------------- heap */

static void push(work *s, int32_t place)
{
    int64_t at = s->heap_size++;

    for (; at > 0 && s->heap[(at - 1) / 2] > place; at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = place;
}

static int32_t pop(work *s)
{
    const int32_t top = s->heap[0], last = s->heap[--s->heap_size];
    int64_t at = 0;

    for (int64_t c = 1; c < s->heap_size; c = 2 * at + 1) {
        if (c + 1 < s->heap_size && s->heap[c + 1] < s->heap[c]) c++;
        if (s->heap[c] >= last) break;
        s->heap[at] = s->heap[c];
        at = c;
    }
    s->heap[at] = last;
    return top;
}

/* -------------------------------------------------------------- selection */

/* The value that `keep` of size[0 .. count-1] reach or exceed; reorders. */
static double threshold(double *size, int64_t count, int64_t keep)
{
    int64_t low = 0, high = count - 1, want = keep - 1;

    while (low < high) {
        const double pivot = size[low + (high - low) / 2];
        int64_t i = low, j = high;

        while (i <= j) {
            while (size[i] > pivot) i++;
            while (size[j] < pivot) j--;
            if (i > j) break;
            const double t = size[i];
            size[i++] = size[j];
            size[j--] = t;
        }
        if (want <= j) high = j;
        else if (want >= i) low = i;
        else break;
    }
    return size[want];
}

/* ------------------------------------------------------------------- rows */

static void meet(work *s, int64_t i, int32_t name)
{
    s->seen[name] = i + 1;
    s->w[name] = 0;
    if (s->place[name] < i) push(s, s->place[name]);
    else s->upper[s->upper_count++] = name;
}

/* w = b_i; its largest entry. */
static double load(work *s, int64_t i)
{
    double largest = 0;

    s->heap_size = s->lower_count = s->upper_count = 0;
    for (int64_t p = s->B->rowptr[i]; p < s->B->rowptr[i + 1]; p++) {
        const double b = spsi_csr_value(s->B, p);

        meet(s, i, s->B->col[p]);
        s->w[s->B->col[p]] = b;
        largest = fmax(largest, fabs(b));
    }
    if (s->seen[s->column[i]] != i + 1) meet(s, i, s->column[i]);
    return largest;
}

static void eliminate(work *s, int64_t i, double drop)
{
    const factor *U = &s->U;

    while (s->heap_size) {
        const int32_t k = pop(s);
        const double w = s->w[s->column[k]], l = w * s->inverse[k];

        if (!(fabs(w) > drop)) continue;
        s->lower[s->lower_count] = k;
        s->low[s->lower_count++] = l;
        for (int64_t q = U->start[k]; q < U->start[k + 1]; q++) {
            if (s->seen[U->col[q]] != i + 1) meet(s, i, U->col[q]);
            s->w[U->col[q]] -= l * U->val[q];
        }
    }
}

/* The name that becomes the pivot of row i; it takes place i. */
static int32_t choose_pivot(work *s, int64_t i)
{
    int32_t best = s->column[i];
    const int32_t own = best;

    for (int64_t t = 0; t < s->upper_count; t++)
        if (fabs(s->w[s->upper[t]]) > fabs(s->w[best])) best = s->upper[t];
    if (fabs(s->w[own]) >= s->o->pivot * fabs(s->w[best])) return own;
    s->column[s->place[best]] = own;
    s->place[own] = s->place[best];
    s->column[i] = best;
    s->place[best] = (int32_t)i;
    return best;
}

static sps_status room(work *s, factor *f, int64_t more)
{
    sps_status st = SPS_OK;

    if (f->used + more <= f->room) return SPS_OK;
    f->room = 2 * f->room + more;
    SPS_TRY(spsi_resize(s->ctx, (size_t)f->room * sizeof *f->col,
                        (void **)&f->col));
    SPS_TRY(spsi_resize(s->ctx, (size_t)f->room * sizeof *f->val,
                        (void **)&f->val));
fail:
    return st;
}

/* What of the row's lower part is kept: the largest by |l_ik u_kk|. */
static sps_status keep_lower(work *s, int64_t i)
{
    const int64_t most = s->o->most;
    double least = 0;
    int64_t kept = 0;
    sps_status st;

    SPS_TRY(room(s, &s->L, s->lower_count));
    for (int64_t t = 0; t < s->lower_count; t++)
        s->size[t] = fabs(s->w[s->column[s->lower[t]]]);
    if (s->lower_count > most)
        least = threshold(s->size, s->lower_count, most);
    for (int64_t t = 0; t < s->lower_count && kept < most; t++) {
        if (fabs(s->w[s->column[s->lower[t]]]) < least) continue;
        s->L.col[s->L.used] = s->lower[t];
        s->L.val[s->L.used++] = s->low[t];
        kept++;
    }
    s->L.start[i + 1] = s->L.used;
fail:
    return st;
}

static sps_status keep_upper(work *s, int64_t i, int32_t pivot, double drop)
{
    const int64_t most = s->o->most;
    double least = 0;
    int64_t count = 0, kept = 0;
    sps_status st;

    SPS_TRY(room(s, &s->U, s->upper_count));
    for (int64_t t = 0; t < s->upper_count; t++)
        if (s->upper[t] != pivot && fabs(s->w[s->upper[t]]) > drop) {
            s->size[count] = fabs(s->w[s->upper[t]]);
            s->upper[count++] = s->upper[t];
        }
    if (count > most) least = threshold(s->size, count, most);
    for (int64_t t = 0; t < count && kept < most; t++) {
        if (fabs(s->w[s->upper[t]]) < least) continue;
        s->U.col[s->U.used] = s->upper[t];
        s->U.val[s->U.used++] = s->w[s->upper[t]];
        kept++;
    }
    s->U.start[i + 1] = s->U.used;
fail:
    return st;
}

static sps_status make_row(work *s, int64_t i)
{
    const double norm = load(s, i), drop = s->o->drop * norm;
    int32_t pivot;
    double u;
    sps_status st;

    eliminate(s, i, drop);
    pivot = choose_pivot(s, i);
    u = s->w[pivot];
    if (!(fabs(u) > DBL_EPSILON * norm) || !isfinite(u)) {
        u = norm > 0 && isfinite(norm) ? sqrt(DBL_EPSILON) * norm : 1;
        s->replaced++;
    }
    s->inverse[i] = 1 / u;
    SPS_TRY(keep_lower(s, i));
    SPS_TRY(keep_upper(s, i, pivot, drop));
fail:
    return st;
}

/* ------------------------------------------------------------------- life */

static sps_status open_work(work *s)
{
    const int64_t n = s->B->nrow;
    sps_context *ctx = s->ctx;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, n + 1, &s->L.start));
    SPS_TRY(SPS_NEW(ctx, n + 1, &s->U.start));
    SPS_TRY(SPS_NEW(ctx, n, &s->place));
    SPS_TRY(SPS_NEW(ctx, n, &s->w));
    SPS_TRY(SPS_NEW(ctx, n, &s->seen));
    SPS_TRY(SPS_NEW(ctx, n, &s->heap));
    SPS_TRY(SPS_NEW(ctx, n, &s->lower));
    SPS_TRY(SPS_NEW(ctx, n, &s->upper));
    SPS_TRY(SPS_NEW(ctx, n, &s->low));
    SPS_TRY(SPS_NEW(ctx, n, &s->size));
    SPS_TRY(room(s, &s->L, 2 * s->B->nnz + 1));
    SPS_TRY(room(s, &s->U, 2 * s->B->nnz + 1));
    for (int64_t i = 0; i < n; i++) s->column[i] = s->place[i] = (int32_t)i;
fail:
    return st;
}

static void close_work(work *s)
{
    void *arrays[] = { s->L.start, s->L.col, s->L.val, s->U.start, s->U.col,
                       s->U.val, s->place, s->w, s->seen, s->heap, s->lower,
                       s->upper, s->low, s->size };

    for (size_t t = 0; t < sizeof arrays / sizeof *arrays; t++)
        spsi_free(s->ctx, arrays[t]);
}

static sps_status to_csr(work *s, const factor *f, sps_csr **F_p)
{
    const int64_t n = s->B->nrow;
    sps_status st;

    SPS_TRY(sps_csr_create(s->ctx, n, n, f->used, SPS_F64, F_p));
    memcpy((*F_p)->rowptr, f->start, (size_t)(n + 1) * sizeof *f->start);
    if (f->used == 0) return SPS_OK;
    memcpy((*F_p)->col, f->col, (size_t)f->used * sizeof *f->col);
    memcpy((*F_p)->val, f->val, (size_t)f->used * sizeof *f->val);
fail:
    return st;
}

sps_status spsi_cpu_csr_ilut(sps_context *ctx, const sps_csr *B,
                             const sps_ilut_options *o, sps_ilut_result *r)
{
    work s = { .ctx = ctx, .B = B, .o = o, .inverse = r->inverse,
               .column = r->column };
    sps_status st;

    SPS_TRY(open_work(&s));
    for (r->rows = 0; r->rows < B->nrow; r->rows++) {
        if (spsi_cancelled(ctx) ||
            (o->deadline > 0 && spsi_now() > o->deadline))
            break;
        SPS_TRY(make_row(&s, r->rows));
    }
    r->replaced = s.replaced;
    if (r->rows < B->nrow) goto fail;
    for (int64_t p = 0; p < s.U.used; p++) s.U.col[p] = s.place[s.U.col[p]];
    SPS_TRY(to_csr(&s, &s.L, &r->L));
    SPS_TRY(to_csr(&s, &s.U, &r->U));
fail:
    close_work(&s);
    return st;
}
