/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_block.c - entries of a Matrix Market file to a block of columns.
 *
 * An array file is stored by columns, a block by rows: GROUP columns at a time
 * are copied to a host buffer and set.  Entries of a coordinate file, or of an
 * array with a symmetry, are added into a host buffer of all columns first. */
#include <string.h>

#include "io/mtx.h"

enum { GROUP = 8 };          /* columns in one sps_block_set */

typedef struct target {
    spsi_mtx *m;
    int scale;               /* rows of the block for a row of the file: 1 or
                                2 */
    int64_t n;               /* rows of the file, times scale */
    int64_t first;           /* which of these n rows is row 0 of the block */
    sps_block *X;
} target;

/* A cursor over the values of an array file. */
typedef struct position {
    int64_t segment, piece, entry;
} position;

static double next_value(const spsi_mtx *m, position *at, double *im)
{
    const spsi_mtx_segment *s = &m->segment[at->segment];

    while (at->entry == s->piece[at->piece].count) {
        at->entry = 0;
        if (++at->piece == s->pieces) {
            at->piece = 0;
            s = &m->segment[++at->segment];
        }
    }
    return spsi_mtx_value(m, s, s->piece[at->piece].at + at->entry++, im);
}

static void store(const target *t, double *x, int64_t i, double re, double im)
{
    x[t->scale * i] = re;
    if (t->scale == 2) x[2 * i + 1] = im;
}

static sps_status copy_array(const target *t)
{
    const spsi_mtx *m = t->m;
    double *x = NULL, re, im;
    position at = {0, 0, 0};
    sps_status st;

    SPS_TRY(SPS_NEW(m->ctx, GROUP * t->n, &x));
    for (int64_t first = 0; first < m->header.ncol; first += GROUP) {
        int64_t k = m->header.ncol - first;
        if (k > GROUP) k = GROUP;
        for (int64_t j = 0; j < k && t->n > 0; j++)
            for (int64_t i = 0; i < m->header.nrow; i++) {
                re = next_value(m, &at, &im);
                store(t, x + j * t->n, i, re, im);
            }
        SPS_TRY(sps_block_set(t->X, (int)first, (int)k, x + t->first, t->n,
                              SPS_COL_MAJOR, SPS_HOST));
    }
fail:
    spsi_free(m->ctx, x);
    return st;
}

static sps_status refuse_again(const target *t, int64_t number, int64_t i,
                               int64_t j)
{
    return spsi_fail(t->m->ctx, SPS_EPARSE, "%s:%lld: entry (%lld, %lld) was "
                     "given before (without strict reading they are summed)",
                     t->m->name, (long long)spsi_mtx_line(t->m, number),
                     (long long)i + 1, (long long)j + 1);
}

static void add(const target *t, double *x, int64_t i, int64_t j, double re,
                double im)
{
    x[j * t->n + t->scale * i] += re;
    if (t->scale == 2) x[j * t->n + 2 * i + 1] += im;
}

/* Adds entry p of s, number `number` of the file, and in a file with a symmetry
 * its mirror image, to x (column-major).  `seen` has a bit for each (i, j) that
 * was stored before; *summed counts entries that repeat an (i, j). */
static sps_status spread_entry(const target *t, const spsi_mtx_segment *s,
                               int64_t p, int64_t number, double *x,
                               uint8_t *seen, int64_t *summed)
{
    spsi_mtx_symmetry symmetry = t->m->header.symmetry;
    bool both = t->m->lower > 0 && t->m->upper > 0;
    int64_t i = s->row[p], j = s->col[p], bit = j * t->m->header.nrow + i;
    double im, re = spsi_mtx_value(t->m, s, p, &im);
    uint8_t mask = (uint8_t)(1 << bit % 8);

    if (seen[bit / 8] & mask) {
        ++*summed;
        if (t->m->options.strict) return refuse_again(t, number, i, j);
    }
    seen[bit / 8] |= mask;
    add(t, x, i, j, re, im);
    if (spsi_mtx_mirrors(t->m) && !both && i != j)
        add(t, x, j, i, symmetry == SPSI_MTX_SKEW ? -re : re,
            symmetry == SPSI_MTX_SYMMETRIC ? im : -im);
    return SPS_OK;
}

static sps_status spread(const target *t)
{
    const spsi_mtx *m = t->m;
    int64_t places = m->header.nrow * m->header.ncol, number = 0, summed = 0;
    uint8_t *seen = NULL;
    double *x = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(m->ctx, t->n * m->header.ncol, &x));
    SPS_TRY(SPS_NEW(m->ctx, places / 8 + 1, &seen));
    for (int64_t k = 0; k < m->segments; k++)
        for (int64_t q = 0; q < m->segment[k].pieces; q++) {
            const spsi_mtx_piece *piece = &m->segment[k].piece[q];
            for (int64_t p = piece->at; p < piece->at + piece->count; p++)
                SPS_TRY(spread_entry(t, &m->segment[k], p, number++, x, seen,
                                     &summed));
        }
    if (summed > 0)
        spsi_note(m->ctx, "%s: %lld duplicate %s summed", m->name,
                  (long long)summed, summed == 1 ? "entry was"
                                                 : "entries were");
    SPS_TRY(sps_block_set(t->X, 0, (int)m->header.ncol, x + t->first, t->n,
                          SPS_COL_MAJOR, SPS_HOST));
fail:
    spsi_free(m->ctx, seen);
    spsi_free(m->ctx, x);
    return st;
}

static sps_status check_shape(const spsi_mtx *m, bool interleaved)
{
    const spsi_mtx_header *h = &m->header;
    sps_status st = SPS_OK;

    SPS_REQUIRE(m->ctx, interleaved || h->field != SPSI_MTX_COMPLEX,
                SPS_EPARSE, "%s:1: the block is complex; with a real "
                "matrix, or none, it must be real", m->name);
    SPS_REQUIRE(m->ctx, !spsi_mtx_mirrors(m) || m->lower == 0 || m->upper == 0,
                SPS_EPARSE, "%s:%lld: entries on both sides of the diagonal "
                "of a %s block", m->name,
                (long long)(m->lower > m->upper ? m->lower : m->upper),
                spsi_mtx_symmetry_name(h->symmetry));
fail:
    return st;
}

sps_status spsi_mtx_read_block(const spsi_file *f, bool interleaved,
                               sps_block **X_p)
{
    sps_status st;
    target t = {.scale = interleaved ? 2 : 1, .first = f->first};

    SPS_TRY(spsi_mtx_load(f, &t.m));
    SPS_TRY(check_shape(t.m, interleaved));
    t.n = t.scale * t.m->header.nrow;
    SPS_TRY(spsi_file_rows(f, t.n));
    SPS_TRY(sps_block_create(f->ctx, f->whole > 0 ? f->rows : t.n,
                             (int)t.m->header.ncol, &t.X));
    if (t.m->header.array && t.m->header.symmetry == SPSI_MTX_GENERAL) {
        SPS_TRY(copy_array(&t));
    } else {
        if (t.m->header.array) SPS_TRY(spsi_mtx_expand(t.m));
        SPS_TRY(spread(&t));
    }
    *X_p = t.X;
    t.X = NULL;

fail:
    sps_block_destroy(&t.X);
    spsi_mtx_free(&t.m);
    return st;
}
