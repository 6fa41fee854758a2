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
 * put in at the end.
 *
 * Row i needs all rows before it.  A batch of rows first takes off what those
 * before the batch give, each row by itself and in parallel, then one row after
 * the other what the batch itself gives: swaps within the batch move places of
 * the batch and behind it only.  The k of a row rise in both halves, and lists
 * have the order that single rows would have had, so the size of a batch, and
 * with it the number of threads, changes no bit. */
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

/* A row under way: 40 n bytes. */
typedef struct row {
    int64_t i, first;         /* rows before `first` are being taken off */
    double norm, drop;
    double *w;                /* by name */
    int32_t *seen;            /* row that met the name last, + 1 */
    int32_t *heap;            /* places left of first, to eliminate */
    int64_t heap_size;
    int32_t *lower, *upper;   /* places, names */
    double *low;              /* l of lower */
    int64_t lower_count, upper_count, loaded;   /* loaded: of upper, from b_i */
} row;

typedef struct work {
    sps_context *ctx;
    const sps_csr *B;
    const sps_ilut_options *o;
    factor L, U;
    double *inverse;          /* 1 / u_kk */
    int32_t *column, *place;  /* name at a place, place of a name */
    row *rows;
    int batch;
    double *size;             /* scratch of selection */
    int64_t replaced;
} work;

/* ------------------------------------------------------------------- heap */

static void push(row *s, int32_t place)
{
    int64_t at = s->heap_size++;

    for (; at > 0 && s->heap[(at - 1) / 2] > place; at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = place;
}

static int32_t pop(row *s)
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

static void meet(const work *s, row *r, int32_t name)
{
    r->seen[name] = (int32_t)(r->i + 1);
    r->w[name] = 0;
    if (s->place[name] < r->first) push(r, s->place[name]);
    else r->upper[r->upper_count++] = name;
}

/* w = b_i. */
static void load(const work *s, row *r)
{
    double largest = 0;

    r->heap_size = r->lower_count = r->upper_count = 0;
    for (int64_t p = s->B->rowptr[r->i]; p < s->B->rowptr[r->i + 1]; p++) {
        const double b = spsi_csr_value(s->B, p);

        meet(s, r, s->B->col[p]);
        r->w[s->B->col[p]] = b;
        largest = fmax(largest, fabs(b));
    }
    r->loaded = r->upper_count;
    r->norm = largest;
    r->drop = s->o->drop * largest;
}

/* Takes off the rows before r->first. */
static void eliminate(const work *s, row *r)
{
    const factor *U = &s->U;
    const int32_t met = (int32_t)(r->i + 1);

    while (r->heap_size) {
        const int32_t k = pop(r);
        const double w = r->w[s->column[k]], l = w * s->inverse[k];

        if (!(fabs(w) > r->drop)) continue;
        r->lower[r->lower_count] = k;
        r->low[r->lower_count++] = l;
        for (int64_t q = U->start[k]; q < U->start[k + 1]; q++) {
            if (r->seen[U->col[q]] != met) meet(s, r, U->col[q]);
            r->w[U->col[q]] -= l * U->val[q];
        }
    }
}

/* Rows up to i are there now: names of their places go to the heap, and the
 * name at place i stands behind those of b_i where it is not among them. */
static void advance(const work *s, row *r)
{
    const int32_t own = s->column[r->i];
    int64_t kept = 0, loaded = 0, at;

    r->first = r->i;
    for (int64_t t = 0; t < r->upper_count; t++) {
        const int32_t name = r->upper[t];

        if (s->place[name] < r->i) {
            push(r, s->place[name]);
        } else {
            loaded += t < r->loaded;
            r->upper[kept++] = name;
        }
    }
    r->upper_count = kept;
    if (r->seen[own] != r->i + 1) meet(s, r, own);
    for (at = 0; r->upper[at] != own;) at++;
    if (at < loaded) return;
    memmove(r->upper + loaded + 1, r->upper + loaded,
            (size_t)(at - loaded) * sizeof own);
    r->upper[loaded] = own;
}

/* The name that becomes the pivot of the row; it takes place i. */
static int32_t choose_pivot(work *s, const row *r)
{
    const int32_t own = s->column[r->i];
    int32_t best = own;

    for (int64_t t = 0; t < r->upper_count; t++)
        if (fabs(r->w[r->upper[t]]) > fabs(r->w[best])) best = r->upper[t];
    if (fabs(r->w[own]) >= s->o->pivot * fabs(r->w[best])) return own;
    s->column[s->place[best]] = own;
    s->place[own] = s->place[best];
    s->column[r->i] = best;
    s->place[best] = (int32_t)r->i;
    return best;
}

static sps_status room(work *s, factor *f, int64_t more)
{
    sps_status st = SPS_OK;

    if (f->used + more <= f->room) return SPS_OK;
    f->room += f->room / 4 + more;   /* pages move, and are not copied */
    SPS_TRY(spsi_resize(s->ctx, (size_t)f->room * sizeof *f->col,
                        (void **)&f->col));
    SPS_TRY(spsi_resize(s->ctx, (size_t)f->room * sizeof *f->val,
                        (void **)&f->val));
fail:
    return st;
}

/* What of the row's lower part is kept: the largest by |l_ik u_kk|. */
static sps_status keep_lower(work *s, const row *r)
{
    const int64_t most = s->o->most;
    double least = 0;
    int64_t kept = 0;
    sps_status st;

    SPS_TRY(room(s, &s->L, r->lower_count));
    for (int64_t t = 0; t < r->lower_count; t++)
        s->size[t] = fabs(r->w[s->column[r->lower[t]]]);
    if (r->lower_count > most)
        least = threshold(s->size, r->lower_count, most);
    for (int64_t t = 0; t < r->lower_count && kept < most; t++) {
        if (fabs(r->w[s->column[r->lower[t]]]) < least) continue;
        s->L.col[s->L.used] = r->lower[t];
        s->L.val[s->L.used++] = r->low[t];
        kept++;
    }
    s->L.start[r->i + 1] = s->L.used;
fail:
    return st;
}

static sps_status keep_upper(work *s, row *r, int32_t pivot)
{
    const int64_t most = s->o->most;
    double least = 0;
    int64_t count = 0, kept = 0;
    sps_status st;

    SPS_TRY(room(s, &s->U, r->upper_count));
    for (int64_t t = 0; t < r->upper_count; t++)
        if (r->upper[t] != pivot && fabs(r->w[r->upper[t]]) > r->drop) {
            s->size[count] = fabs(r->w[r->upper[t]]);
            r->upper[count++] = r->upper[t];
        }
    if (count > most) least = threshold(s->size, count, most);
    for (int64_t t = 0; t < count && kept < most; t++) {
        if (fabs(r->w[r->upper[t]]) < least) continue;
        s->U.col[s->U.used] = r->upper[t];
        s->U.val[s->U.used++] = r->w[r->upper[t]];
        kept++;
    }
    s->U.start[r->i + 1] = s->U.used;
fail:
    return st;
}

static sps_status finish(work *s, row *r)
{
    int32_t pivot;
    double u;
    sps_status st;

    advance(s, r);
    eliminate(s, r);
    pivot = choose_pivot(s, r);
    u = r->w[pivot];
    if (!(fabs(u) > DBL_EPSILON * r->norm) || !isfinite(u)) {
        u = r->norm > 0 && isfinite(r->norm) ? sqrt(DBL_EPSILON) * r->norm : 1;
        s->replaced++;
    }
    s->inverse[r->i] = 1 / u;
    SPS_TRY(keep_lower(s, r));
    SPS_TRY(keep_upper(s, r, pivot));
fail:
    return st;
}

static sps_status make_rows(work *s, int64_t first, int count)
{
    sps_status st = SPS_OK;

#pragma omp parallel for num_threads(s->ctx->threads) schedule(dynamic, 1)     \
    if (count > 1)
    for (int t = 0; t < count; t++) {
        s->rows[t].i = first + t;
        s->rows[t].first = first;
        load(s, &s->rows[t]);
        eliminate(s, &s->rows[t]);
    }
    for (int t = 0; t < count; t++) SPS_TRY(finish(s, &s->rows[t]));
fail:
    return st;
}

/* ------------------------------------------------------------------- life */

/* Rows of a batch: many for each thread, since their costs differ, few beside
 * the length of rows whose factoring takes long; in 256 MB at most. */
static int batch_of(const work *s)
{
    const int64_t fit = ((int64_t)1 << 28) / (40 * s->B->nrow + 1);
    const int64_t want = s->ctx->threads < 4 ? 16 * s->ctx->threads : 64;

    return s->ctx->threads == 1 || fit < 2 ? 1 : (int)(fit < want ? fit : want);
}

static sps_status open_row(work *s, row *r)
{
    const int64_t n = s->B->nrow;
    sps_context *ctx = s->ctx;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, n, &r->w));
    SPS_TRY(SPS_NEW(ctx, n, &r->seen));
    SPS_TRY(SPS_NEW(ctx, n, &r->heap));
    SPS_TRY(SPS_NEW(ctx, n, &r->lower));
    SPS_TRY(SPS_NEW(ctx, n, &r->upper));
    SPS_TRY(SPS_NEW(ctx, n, &r->low));
fail:
    return st;
}

static sps_status open_work(work *s)
{
    const int64_t n = s->B->nrow;
    sps_context *ctx = s->ctx;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, n + 1, &s->L.start));
    SPS_TRY(SPS_NEW(ctx, n + 1, &s->U.start));
    SPS_TRY(SPS_NEW(ctx, n, &s->place));
    SPS_TRY(SPS_NEW(ctx, n, &s->size));
    SPS_TRY(SPS_NEW(ctx, batch_of(s), &s->rows));
    for (s->batch = 0; s->batch < batch_of(s); s->batch++)
        SPS_TRY(open_row(s, &s->rows[s->batch]));
    SPS_TRY(room(s, &s->L, 2 * s->B->nnz + 1));
    SPS_TRY(room(s, &s->U, 2 * s->B->nnz + 1));
    for (int64_t i = 0; i < n; i++) s->column[i] = s->place[i] = (int32_t)i;
fail:
    return st;
}

static void close_row(sps_context *ctx, const row *r)
{
    void *arrays[] = { r->w, r->seen, r->heap, r->lower, r->upper, r->low };

    for (size_t t = 0; t < sizeof arrays / sizeof *arrays; t++)
        spsi_free(ctx, arrays[t]);
}

static void close_work(work *s)
{
    void *arrays[] = { s->L.start, s->L.col, s->L.val, s->U.start, s->U.col,
                       s->U.val, s->place, s->size };

    for (int t = 0; s->rows && t < batch_of(s); t++)
        close_row(s->ctx, &s->rows[t]);
    spsi_free(s->ctx, s->rows);
    for (size_t t = 0; t < sizeof arrays / sizeof *arrays; t++)
        spsi_free(s->ctx, arrays[t]);
}

/* The arrays of f, without their slack, become those of a csr. */
static sps_status to_csr(work *s, factor *f, sps_csr **F_p)
{
    const int64_t n = s->B->nrow, used = f->used > 0 ? f->used : 1;
    sps_csr *F;
    sps_status st;

    SPS_TRY(spsi_resize(s->ctx, (size_t)used * sizeof *f->col,
                        (void **)&f->col));
    SPS_TRY(spsi_resize(s->ctx, (size_t)used * sizeof *f->val,
                        (void **)&f->val));
    SPS_TRY(sps_csr_create(s->ctx, n, n, 0, SPS_F64, F_p));
    F = *F_p;
    F->nnz = f->used;
    memcpy(F->rowptr, f->start, (size_t)(n + 1) * sizeof *f->start);
    spsi_free(s->ctx, F->col);
    spsi_free(s->ctx, F->val);
    F->col = f->col;
    F->val = f->val;
    f->col = NULL;
    f->val = NULL;
fail:
    return st;
}

sps_status spsi_cpu_csr_ilut(sps_context *ctx, const sps_csr *B,
                             const sps_ilut_options *o, sps_ilut_result *r)
{
    work s = { .ctx = ctx, .B = B, .o = o, .inverse = r->inverse,
               .column = r->column };
    sps_status st;

    r->rows = 0;
    SPS_TRY(open_work(&s));
    while (r->rows < B->nrow) {
        const int64_t left = B->nrow - r->rows;
        const int count = left < s.batch ? (int)left : s.batch;

        if (spsi_cancelled(ctx) ||
            (o->deadline > 0 && spsi_now() > o->deadline))
            break;
        SPS_TRY(make_rows(&s, r->rows, count));
        r->rows += count;
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
