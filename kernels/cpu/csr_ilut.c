/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_ilut.c - incomplete LU by threshold with column pivoting (Saad, Numer.
 * Linear Algebra Appl. 1, 1994, and Iterative Methods for Sparse Linear
 * Systems, 2003, section 10.4):
 *
 *   w = b_i (row i);  for the columns k < i of w, in ascending order:
 *     |w_k| <= tol ||b_i||: dropped;  else l_ik = w_k / u_kk, w -= l_ik u_k
 *   of the rest of w: |w_j| <= tol ||b_i|| is dropped, of the others in each
 *   triangle the `most` largest are kept; the largest to the right of the
 *   diagonal becomes the pivot if the diagonal is below `pivot` times it.
 *
 * With tol = 0 and no limit per row this is Gaussian elimination.  A zero pivot
 * is replaced by sqrt(eps) ||b_i|| (static pivoting as in Li and Demmel, ACM
 * Trans. Math. Softw. 29, 2003) and counted.
 *
 * Columns are permuted during the factorisation: U stores original column
 * indices, and the permutation place[] is applied at the end.
 *
 * Row i depends on all rows before it.  Rows are processed in batches.  First
 * the rows before the batch are eliminated from all rows of the batch,
 * independently and in parallel; then, row by row, those of the batch itself.
 * Column exchanges in the batch only move positions of the batch and after it.
 * The order of k within a row and of the lists is the same as without batches,
 * so the batch size, and with it the number of threads, does not change any
 * bit. */
#include "matrix/incomplete_rows.h"
#include "core/deadline.h"
#include "cpu/rows.h"

#include <float.h>
#include <math.h>

/* A factor, which grows row by row. */
typedef struct factor {
    int64_t *start;
    int32_t *col;
    double *val;
    int64_t used, room;
} factor;

/* Work arrays of a row, 40 n bytes.  A column is an original column index, its
 * position is its place in the permuted order. */
typedef struct row {
    int64_t i, first;         /* i: row number; first: the rows before this one
                                 are being eliminated */
    double norm, drop;
    double *w;                /* w[column]: the value of the row */
    int32_t *seen;            /* seen[column]: 1 + the last row in which the
                                 column occurred */
    int32_t *heap;            /* positions below `first` that are still to be
                                 eliminated, as a heap */
    int64_t heap_size;
    int32_t *lower, *upper;   /* positions of the entries of the lower part,
                                 columns of those of the upper part */
    double *low;              /* l_ik of the entries in lower */
    int64_t lower_count, upper_count, loaded;   /* lower_count, upper_count:
                                                   lengths of these lists;
                                                   loaded: number of columns in
                                                   upper that come from b_i */
} row;

typedef struct work {
    sps_context *ctx;
    const sps_csr *B;
    const sps_ilut_options *o;
    factor L, U;
    double *inverse;          /* 1 / u_kk */
    int32_t *column, *place;  /* column[p]: original column at position p;
                                 place[j]: position of original column j */
    row *rows;
    int batch;
    double *size;             /* work array for selecting the largest entries */
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

/* Returns the `keep`-th largest of size[0 .. count-1]; reorders the array. */
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

/* Sets w to b_i, row i of the matrix. */
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

/* Eliminates the rows before r->first from this row. */
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

/* Called when the rows before i are complete.  Columns in upper whose position
 * is before i are moved to the heap; the column at position i, if it is not in
 * b_i, is placed directly after those of b_i. */
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

/* Chooses the pivot of the row and moves its column to position i. */
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
    /* Large arrays are remapped by the system, not copied. */
    f->room += f->room / 4 + more;
    SPS_TRY(spsi_resize(s->ctx, (size_t)f->room * sizeof *f->col,
                        (void **)&f->col));
    SPS_TRY(spsi_resize(s->ctx, (size_t)f->room * sizeof *f->val,
                        (void **)&f->val));
fail:
    return st;
}

/* Keeps the largest entries of the row's lower part, compared by |l_ik
 * u_kk|. */
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

static void begin_rows(void *data, int64_t first, int64_t last)
{
    work *s = data;

    for (int64_t t = first; t < last; t++) {
        load(s, &s->rows[t]);
        eliminate(s, &s->rows[t]);
    }
}

/* Makes `count` rows from row `first` on.  The time of a row is estimated from
 * the rows before, as 1 ns per product of entries of L and U. */
static sps_status make_rows(work *s, int64_t first, int count)
{
    const int64_t done = first > 0 ? first : 1;
    const int64_t row_ns = s->L.used / done * (s->U.used / done);
    sps_status st = SPS_OK;

    for (int t = 0; t < count; t++) {
        s->rows[t].i = first + t;
        s->rows[t].first = first;
    }
    spsi_team_run(s->ctx, count, count * row_ns, begin_rows, s);
    for (int t = 0; t < count; t++) SPS_TRY(finish(s, &s->rows[t]));
fail:
    return st;
}

/* ---------------------------------------------------- creation, destruction */

/* Returns the number of rows of a batch: many per thread, since their costs
 * differ, but few relative to the length of expensive rows; the work arrays use
 * at most 256 MB. */
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

/* Makes a csr that owns the arrays of f, after releasing their unused part. */
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

        if (spsi_expired(ctx)) break;
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
