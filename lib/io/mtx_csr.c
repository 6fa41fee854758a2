/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_csr.c - entries of a Matrix Market file to a csr.
 *
 * A counting sort by rows: count, running sum, place.  The rows are divided
 * into ranges, which threads process in parallel.  For a range all pieces of
 * the file are visited in order, except those whose smallest and largest row
 * (and column, if entries are mirrored) show that they have no entry in it; so
 * in a file sorted by rows or columns few entries are visited in vain.  No two
 * threads write to the same row, and the order within a row is the file's,
 * whatever the number of threads.
 *
 * Bytes for a real entry: 8 read by counting, 16 by placing, 12 written (24 if
 * it is mirrored).  Memory: the entries and the csr. */
#include <string.h>

#include "matrix/csr.h"
#include "io/mtx.h"
#include "core/team.h"

enum { SMALL = 1 << 14 };    /* number of entries that one thread places by
                                itself */

typedef struct builder {
    spsi_mtx *m;
    bool mirror;             /* entries off the diagonal are stored twice */
    int words;               /* 2 if an entry becomes a 2 x 2 block */
    double sign;             /* factor of the real part of a mirror image */
    double conjugate;        /* factor of its imaginary part */
    int64_t parts;           /* ranges of rows, one for each thread */
    int64_t low, high;       /* rows of the file low .. high - 1 are built */
    bool global;             /* with global columns */
    sps_csr *A;
} builder;

typedef struct range {
    int64_t low, high;       /* rows of the file low .. high - 1 */
} range;

static bool owns(range own, int32_t i)
{
    return (uint64_t)(i - own.low) < (uint64_t)(own.high - own.low);
}

static bool concerns(const builder *b, const spsi_mtx_piece *piece, range own)
{
    if (piece->count == 0) return false;
    return (piece->row_low < own.high && piece->row_high >= own.low) ||
           (b->mirror && piece->col_low < own.high &&
            piece->col_high >= own.low);
}

/* Counts the entries of row low + i of the file in rowptr[i + 1], of a complex
 * file in rowptr[2 i + 1], for the rows of `own`. */
static void count_piece(const builder *b, const spsi_mtx_segment *s,
                        const spsi_mtx_piece *piece, range own)
{
    int64_t *count = b->A->rowptr + 1;
    int64_t scale = b->words == 2 ? 2 : 1, low = b->low;

    for (int64_t p = piece->at; p < piece->at + piece->count; p++) {
        int32_t i = s->row[p], j = s->col[p];
        if (owns(own, i)) count[scale * (i - low)]++;
        if (b->mirror && i != j && owns(own, j)) count[scale * (j - low)]++;
    }
}

static inline void put_column(const builder *b, int64_t at, int32_t j)
{
    if (b->global) b->A->global[at] = j;
    else b->A->col[at] = j;
}

/* Stores an entry of row low + i of the file. */
static inline void put(const builder *b, int64_t i, int32_t j, double re,
                       double im)
{
    int64_t *next = b->A->rowptr;
    double *val = b->A->val;
    int64_t at, below;

    if (b->words < 2) {
        at = next[i]++;
        put_column(b, at, j);
        val[at] = re;
        return;
    }
    at = next[2 * i];
    below = next[2 * i + 1];
    next[2 * i] += 2;
    next[2 * i + 1] += 2;
    put_column(b, at, 2 * j);
    put_column(b, below, 2 * j);
    put_column(b, at + 1, 2 * j + 1);
    put_column(b, below + 1, 2 * j + 1);
    val[at] = re;
    val[at + 1] = -im;
    val[below] = im;
    val[below + 1] = re;
}

/* Stores the entries of the rows of `own`.  rowptr[i] is the offset of the next
 * entry of row i of the csr, and is advanced. */
static void place_piece(const builder *b, const spsi_mtx_segment *s,
                        const spsi_mtx_piece *piece, range own)
{
    for (int64_t p = piece->at; p < piece->at + piece->count; p++) {
        int32_t i = s->row[p], j = s->col[p];
        double im, re = spsi_mtx_value(b->m, s, p, &im);
        if (owns(own, i)) put(b, i - b->low, j, re, im);
        if (b->mirror && i != j && owns(own, j))
            put(b, j - b->low, i, b->sign * re, b->conjugate * im);
    }
}

static void sweep(const builder *b, range own,
                  void (*visit)(const builder *, const spsi_mtx_segment *,
                                const spsi_mtx_piece *, range))
{
    for (int64_t k = 0; k < b->m->segments; k++) {
        const spsi_mtx_segment *s = &b->m->segment[k];
        for (int64_t i = 0; i < s->pieces; i++)
            if (concerns(b, &s->piece[i], own))
                visit(b, s, &s->piece[i], own);
    }
}

/* Returns the first row of the file whose first entry has an offset >= goal. */
static int64_t row_at(const builder *b, int64_t goal)
{
    int64_t low = b->low, high = b->high, scale = b->words == 2 ? 2 : 1;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (b->A->rowptr[scale * (middle - b->low)] < goal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

typedef struct sweep_job {
    const builder *b;
    const int64_t *bound;    /* place_rows: first row of each range */
} sweep_job;

static void count_parts(void *data, int64_t first, int64_t last)
{
    const builder *b = ((const sweep_job *)data)->b;
    int64_t rows = b->high - b->low, parts = b->parts;

    for (int64_t t = first; t < last; t++)
        sweep(b, (range){b->low + rows * t / parts,
                         b->low + rows * (t + 1) / parts}, count_piece);
}

static void place_parts(void *data, int64_t first, int64_t last)
{
    const sweep_job *j = data;

    for (int64_t t = first; t < last; t++)
        sweep(j->b, (range){j->bound[t], j->bound[t + 1]}, place_piece);
}

static void count_rows(const builder *b)
{
    spsi_team_run(b->m->ctx, b->parts, 4 * b->m->stored, count_parts,
                  &(sweep_job){ b, NULL });
}

/* Replaces the counts, that of row i in rowptr[i + 1], by offsets.  A complex
 * entry counted for row 2 i becomes two in row 2 i and two in row 2 i + 1. */
static void sum_rows(const builder *b)
{
    int64_t *rowptr = b->A->rowptr, nrow = b->A->nrow;

    if (b->words == 2)
        for (int64_t i = 0; i < nrow; i += 2)
            rowptr[i + 2] = rowptr[i + 1] *= 2;
    for (int64_t i = 0; i < nrow; i++) rowptr[i + 1] += rowptr[i];
}

static sps_status place_rows(const builder *b)
{
    int64_t parts = b->parts, nnz = b->A->nnz;
    int64_t *rowptr = b->A->rowptr, *bound = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(b->m->ctx, parts + 1, &bound));
    for (int64_t t = 1; t < parts; t++)
        bound[t] = row_at(b, (int64_t)((double)nnz * (double)t /
                                       (double)parts));
    bound[0] = b->low;
    bound[parts] = b->high;
    spsi_team_run(b->m->ctx, parts, 10 * b->m->stored, place_parts,
                  &(sweep_job){ b, bound });
    /* Each rowptr[i] has been advanced to the beginning of row i + 1. */
    memmove(rowptr + 1, rowptr, (size_t)b->A->nrow * sizeof *rowptr);
    rowptr[0] = 0;
fail:
    spsi_free(b->m->ctx, bound);
    return st;
}

/* Allocates the columns and values. */
static sps_status give_room(const builder *b)
{
    const size_t n = (size_t)b->A->nnz + 1;
    sps_context *ctx = b->m->ctx;
    sps_csr *A = b->A;
    sps_status st;

    if (b->global) {
        spsi_free(ctx, A->col);
        A->col = NULL;
        SPS_TRY(spsi_new_raw(ctx, n * sizeof *A->global, (void **)&A->global));
    } else {
        SPS_TRY(spsi_resize(ctx, n * sizeof *A->col, (void **)&A->col));
    }
    SPS_TRY(spsi_resize(ctx, n * sizeof(double), &A->val));
fail:
    return st;
}

static sps_status assemble(builder *b)
{
    const spsi_mtx *m = b->m;
    const spsi_mtx_header *h = &m->header;
    int64_t scale = b->words == 2 ? 2 : 1;
    sps_status st;

    SPS_TRY(sps_csr_create(m->ctx, scale * (b->high - b->low), scale * h->ncol,
                           0, SPS_F64, &b->A));
    count_rows(b);
    sum_rows(b);
    b->A->nnz = b->A->rowptr[b->A->nrow];
    SPS_TRY(give_room(b));
    SPS_TRY(place_rows(b));
    if (b->words == 2) b->A->props |= SPS_INTERLEAVED;
    if (h->symmetry == SPSI_MTX_HERMITIAN ||
        (h->symmetry == SPSI_MTX_SYMMETRIC && b->words < 2))
        b->A->props |= SPS_SYMMETRIC;
fail:
    return st;
}

/* --------------------------------------------------------------- checks */

/* Returns the number in the file of the nth entry at (i, j), or, if `either`,
 * at (i, j) or (j, i), counted from 0; -1 if there is none. */
static int64_t find(const spsi_mtx *m, int64_t i, int64_t j, bool either,
                    int nth)
{
    int64_t number = 0;

    for (int64_t k = 0; k < m->segments; k++)
        for (int64_t q = 0; q < m->segment[k].pieces; q++) {
            const spsi_mtx_segment *s = &m->segment[k];
            const spsi_mtx_piece *piece = &s->piece[q];
            for (int64_t p = piece->at; p < piece->at + piece->count;
                 p++, number++)
                if (((s->row[p] == i && s->col[p] == j) ||
                     (either && s->row[p] == j && s->col[p] == i)) &&
                    nth-- == 0)
                    return number;
        }
    return -1;
}

/* For option strict: returns EPARSE for the first row that has a column
 * twice. */
static sps_status refuse_duplicates(const builder *b)
{
    const sps_csr *A = b->A;
    int64_t *seen = NULL;            /* seen[j]: 1 + last row with column j */
    sps_status st;
    bool sorted;

    SPS_TRY(spsi_csr_inspect(b->m->ctx, A, &sorted));
    if (sorted) return SPS_OK;
    SPS_TRY(SPS_NEW(b->m->ctx, A->ncol, &seen));
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            int64_t scale = b->words == 2 ? 2 : 1;
            int64_t row = i / scale, col = A->col[p] / scale;
            SPS_REQUIRE(b->m->ctx, seen[A->col[p]] != i + 1, SPS_EPARSE,
                        "%s:%lld: entry (%lld, %lld) was given before, on "
                        "line %lld (without strict reading they are summed)",
                        b->m->name,
                        (long long)spsi_mtx_line(b->m, find(b->m, row, col,
                                                            b->mirror, 1)),
                        (long long)row + 1, (long long)col + 1,
                        (long long)spsi_mtx_line(b->m, find(b->m, row, col,
                                                            b->mirror, 0)));
            seen[A->col[p]] = i + 1;
        }
fail:
    spsi_free(b->m->ctx, seen);
    return st;
}

static sps_status refuse_pair(const builder *b, int64_t i, int64_t j)
{
    int64_t scale = b->words == 2 ? 2 : 1, second;

    i /= scale;
    j /= scale;
    second = find(b->m, i, j, true, 1);
    if (second < 0) second = find(b->m, i, j, true, 0);
    return spsi_fail(b->m->ctx, SPS_EPARSE, "%s:%lld: entry (%lld, %lld) and "
                     "its mirror image do not make a %s matrix",
                     b->m->name, (long long)spsi_mtx_line(b->m, second),
                     (long long)i + 1, (long long)j + 1,
                     spsi_mtx_symmetry_name(b->m->header.symmetry));
}

/* For option lenient: returns EPARSE if a file with both triangles is not
 * exactly symmetric (skew-symmetric, Hermitian), as its banner claims.  With
 * allow_nonfinite only the pattern is compared.  In the interleaved form the
 * entries with even i + j are real parts. */
static sps_status refuse_asymmetry(const builder *b)
{
    const sps_csr *A = b->A;
    double odd = b->words == 2 ? -b->conjugate : b->sign;
    sps_csr *T = NULL;
    sps_status st;

    SPS_TRY(spsi_csr_transpose(b->m->ctx, A, &T));
    for (int64_t i = 0; i < A->nrow; i++) {
        int64_t t = T->rowptr[i];
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++, t++) {
            double sign = (i + A->col[p]) % 2 == 0 ? b->sign : odd;
            if (t >= T->rowptr[i + 1] || T->col[t] > A->col[p])
                SPS_TRY(refuse_pair(b, i, A->col[p]));
            if (T->col[t] < A->col[p])
                SPS_TRY(refuse_pair(b, i, T->col[t]));
            if (spsi_csr_value(A, p) != sign * spsi_csr_value(T, t) &&
                !b->m->options.allow_nonfinite)
                SPS_TRY(refuse_pair(b, i, A->col[p]));
        }
        if (t < T->rowptr[i + 1]) SPS_TRY(refuse_pair(b, i, T->col[t]));
    }
fail:
    sps_csr_destroy(b->m->ctx, &T);
    return st;
}

/* Returns whether the entries have their mirror images placed with them: a file
 * with entries in both triangles has them already. */
static bool mirrored(const spsi_mtx *m)
{
    return spsi_mtx_mirrors(m) && (m->lower == 0 || m->upper == 0);
}

int64_t spsi_mtx_summed(const spsi_mtx *m, int64_t kept, int64_t diagonal)
{
    return m->stored - (mirrored(m) ? (kept + diagonal) / 2 : kept);
}

/* Returns the number of entries of the file that were summed into others;
 * `placed` is the number of entries of the csr before duplicates were
 * summed. */
static int64_t duplicates(const builder *b, int64_t placed)
{
    const sps_csr *A = b->A;
    int64_t scale = b->words == 2 ? 2 : 1, diagonal = 0;

    if (placed == A->nnz) return 0;
    for (int64_t i = 0; b->mirror && i < A->nrow; i += scale)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            diagonal += A->col[p] == i;
    return spsi_mtx_summed(b->m, A->nnz / (scale * scale), diagonal);
}

static builder builder_of(spsi_mtx *m, int64_t low, int64_t high)
{
    const spsi_mtx_symmetry symmetry = m->header.symmetry;

    return (builder){
        .m = m, .mirror = mirrored(m), .words = m->words,
        .sign = symmetry == SPSI_MTX_SKEW ? -1 : 1,
        .conjugate = symmetry == SPSI_MTX_SYMMETRIC ? 1 : -1,
        .parts = m->stored < SMALL ? 1 : m->ctx->threads,
        .low = low, .high = high,
    };
}

sps_status spsi_mtx_rows(spsi_mtx *m, int64_t low, int64_t high, sps_csr **A_p)
{
    builder b = builder_of(m, low, high);
    sps_status st;

    b.global = true;
    st = assemble(&b);
    *A_p = b.A;
    return st;
}

static sps_status build(spsi_mtx *m, builder *b, int64_t *duplicates_p)
{
    bool both = m->lower > 0 && m->upper > 0;
    sps_status st = SPS_OK;
    int64_t placed;

    if (m->header.array) SPS_TRY(spsi_mtx_expand(m));
    *b = builder_of(m, 0, m->header.nrow);
    SPS_TRY(assemble(b));
    if (m->options.strict) SPS_TRY(refuse_duplicates(b));
    both = both && spsi_mtx_mirrors(m);
    if (!both) spsi_mtx_drop(m);
    placed = b->A->nnz;
    SPS_TRY(sps_csr_check(m->ctx, b->A));
    if (both) SPS_TRY(refuse_asymmetry(b));
    *duplicates_p = duplicates(b, placed);
fail:
    return st;
}

sps_status spsi_mtx_read_csr(const spsi_file *f, sps_read_info *info,
                             sps_csr **A_p)
{
    sps_status st;
    spsi_mtx *m = NULL;
    builder b = {0};
    int64_t summed = 0;

    SPS_TRY(spsi_mtx_load(f, &m));
    SPS_TRY(build(m, &b, &summed));
    spsi_mtx_notes(m);
    if (info) spsi_mtx_info(m, summed, info);
    *A_p = b.A;
    b.A = NULL;

fail:
    sps_csr_destroy(f->ctx, &b.A);
    spsi_mtx_free(&m);
    return st;
}
