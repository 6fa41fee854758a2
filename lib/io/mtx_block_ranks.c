/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_block_ranks.c - a real array file read by several processes, each of
 * which gets its rows.
 *
 * Value number e of the file is element (e mod n, e / n).  Each process parses
 * its part of the text, the values from number begin to end-1, and sends to
 * each other process those in its rows: in each column a run of consecutive
 * values.
 * All processes know begin, end and the rows of each, and so the runs: values
 * are sent without indices, 8 bytes each.
 *
 * Whatever fails on one process is agreed upon by the next sum, and all read
 * the file as a whole. */
#include <string.h>

#include "block/block.h"
#include "core/comm.h"
#include "core/owner.h"
#include "io/mtx.h"

/* What the processes tell each other; from ROWS to KIND it must be the same on
 * all. */
enum { BAD, ROWS, COLUMNS, SIZE, KIND, BYTES, FACTS };

typedef struct ranks {
    sps_context *ctx;
    int rank, size;
    spsi_file *file;
    spsi_mtx *m;
    spsi_mtx_part part;
    double fact[FACTS];      /* facts of this process, then sums over all */
    sps_owner arrays;        /* owner of those that follow, except for values,
                                out and in */
    double *number, *first, *rows;   /* for each process: number of its values,
                                        first own row, number of own rows */
    int64_t *begin;          /* size + 1: values begin[r] .. begin[r+1]-1 */
    double *values;          /* values of this process's part of the file */
    double *out, *in;        /* values sent, received; by process */
    int64_t *out_at, *in_at; /* size + 1 offsets: in out, in `in` */
    sps_message *message;    /* 2 size elements */
    double *x;               /* own rows, by columns */
} ranks;

/* ------------------------------------------------------------------ parsing */

/* Copies the values of the part to one array. */
static sps_status join_values(ranks *k)
{
    double *to;
    sps_status st;

    SPS_TRY(spsi_new_raw(k->ctx, (size_t)(k->m->stored + 1) * sizeof *to,
                         (void **)&k->values));
    to = k->values;
    for (int64_t g = 0; g < k->m->segments; g++)
        for (int64_t i = 0; i < k->m->segment[g].pieces; i++) {
            const spsi_mtx_piece *p = &k->m->segment[g].piece[i];

            if (p->count == 0) continue;
            memcpy(to, k->m->segment[g].val + p->at,
                   (size_t)p->count * sizeof *to);
            to += p->count;
        }
    spsi_mtx_drop(k->m);
fail:
    return st;
}

static sps_status read_part(ranks *k, const char *path,
                            const sps_read_options *ro)
{
    const spsi_format *format;
    sps_status st;

    SPS_TRY(spsi_file_open(k->file, path, ro, &format));
    SPS_REQUIRE(k->ctx, !format && spsi_text_seekable(k->file->text),
                SPS_EUNFIT, "%s: not a plain Matrix Market file", path);
    k->fact[SIZE] = (double)spsi_text_size(k->file->text);
    SPS_TRY(spsi_mtx_load_part(k->file, &k->part, &k->m));
    SPS_REQUIRE(k->ctx, k->m->header.nrow == k->file->whole, SPS_EUNFIT,
                "%s: other rows", path);
    SPS_TRY(SPS_OWN(&k->arrays, k->size, &k->number));
    SPS_TRY(SPS_OWN(&k->arrays, k->size, &k->first));
    SPS_TRY(SPS_OWN(&k->arrays, k->size, &k->rows));
    SPS_TRY(SPS_OWN(&k->arrays, k->size + 1, &k->begin));
    SPS_TRY(SPS_OWN(&k->arrays, k->size + 1, &k->out_at));
    SPS_TRY(SPS_OWN(&k->arrays, k->size + 1, &k->in_at));
    SPS_TRY(SPS_OWN(&k->arrays, 2 * (int64_t)k->size, &k->message));
    SPS_TRY(join_values(k));
    k->fact[ROWS] = (double)k->m->header.nrow;
    k->fact[COLUMNS] = (double)k->m->header.ncol;
    k->fact[KIND] = (double)k->m->header.field;
    k->fact[BYTES] = (double)k->part.bytes;
fail:
    return st;
}

/* Sums the facts, and gathers how many values each process has and which rows
 * it wants.  *wrong: the parts do not make one valid file. */
static sps_status compare(ranks *k, sps_status part, bool *wrong)
{
    double mine[FACTS];
    bool differs;
    sps_status st;

    k->fact[BAD] = part != SPS_OK;
    memcpy(mine, k->fact, sizeof mine);
    SPS_TRY(spsi_reduce(k->ctx, k->fact, FACTS));
    *wrong = k->fact[BAD] > 0;
    if (*wrong) return SPS_OK;
    differs = k->fact[BYTES] != (double)k->part.body;
    for (int i = ROWS; i <= KIND; i++)
        differs = differs || k->fact[i] != k->size * mine[i];
    SPS_TRY(spsi_comm_gather(k->ctx, (double)k->m->stored, k->number));
    SPS_TRY(spsi_comm_gather(k->ctx, (double)k->file->first, k->first));
    SPS_TRY(spsi_comm_gather(k->ctx, (double)k->file->rows, k->rows));
    for (int r = 0; r < k->size; r++)
        k->begin[r + 1] = k->begin[r] + (int64_t)k->number[r];
    differs = differs || k->begin[k->size] != k->m->header.count;
    SPS_TRY(spsi_comm_any(k->ctx, differs, wrong));
fail:
    return st;
}

/* ----------------------------------------------------------------- exchange */

/* Visits the runs of values that process `from` has parsed in the rows of
 * process `to`, in order, and returns the number of values.  Copies them from
 * `parsed`, the values of `from`, to `packed`, where they have no gaps; and
 * from there to x, the rows of `to` by columns; unless these are NULL. */
static int64_t visit(const ranks *k, int from, int to, double *packed,
                     const double *parsed, double *x)
{
    const int64_t n = k->m->header.nrow, rows = (int64_t)k->rows[to];
    const int64_t begin = k->begin[from], end = k->begin[from + 1];
    int64_t count = 0;

    for (int64_t c = n > 0 ? begin / n : 0; c * n < end; c++) {
        const int64_t own = c * n + (int64_t)k->first[to];
        const int64_t low = own > begin ? own : begin;
        const int64_t high = own + rows < end ? own + rows : end;
        const size_t bytes = low < high ? (size_t)(high - low) * 8 : 0;

        if (bytes == 0) continue;
        if (parsed) memcpy(packed + count, parsed + (low - begin), bytes);
        if (x) memcpy(x + c * rows + (low - own), packed + count, bytes);
        count += high - low;
    }
    return count;
}

/* Allocates the arrays, and packs what is sent. */
static sps_status pack(ranks *k)
{
    const int64_t own = k->file->rows * k->m->header.ncol;
    sps_status st;

    for (int r = 0; r < k->size; r++) {
        k->out_at[r + 1] = k->out_at[r] +
                           visit(k, k->rank, r, NULL, NULL, NULL);
        k->in_at[r + 1] = k->in_at[r] + (r == k->rank ? 0 :
                          visit(k, r, k->rank, NULL, NULL, NULL));
    }
    SPS_TRY(spsi_new_raw(k->ctx, (size_t)(k->out_at[k->size] + 1) * 8,
                         (void **)&k->out));
    SPS_TRY(spsi_new_raw(k->ctx, (size_t)(k->in_at[k->size] + 1) * 8,
                         (void **)&k->in));
    SPS_TRY(SPS_OWN(&k->arrays, own, &k->x));
    for (int r = 0; r < k->size; r++)
        visit(k, k->rank, r, k->out + k->out_at[r], k->values, NULL);
fail:
    return st;
}

static int messages(const ranks *k, double *values, const int64_t *at,
                    sps_message *m)
{
    int count = 0;

    for (int r = 0; r < k->size; r++)
        if (r != k->rank && at[r + 1] > at[r])
            m[count++] = (sps_message){ r, values + at[r],
                                        (size_t)(at[r + 1] - at[r]) * 8 };
    return count;
}

static sps_status trade(ranks *k)
{
    sps_message *in = k->message + k->size;
    const int sends = messages(k, k->out, k->out_at, k->message);
    const int receives = messages(k, k->in, k->in_at, in);
    sps_status st;

    SPS_TRY(spsi_comm_exchange(k->ctx, k->message, sends, in, receives));
    for (int r = 0; r < k->size; r++)
        visit(k, r, k->rank, r == k->rank ? k->out + k->out_at[r]
                                          : k->in + k->in_at[r], NULL, k->x);
fail:
    return st;
}

static sps_status make_block(const ranks *k, sps_block **X_p)
{
    const int columns = (int)k->m->header.ncol;
    sps_block *X = NULL;
    sps_status st;

    SPS_TRY(sps_block_create(k->ctx, k->file->rows, columns, &X));
    if (k->file->rows > 0)
        SPS_TRY(sps_block_set(X, 0, columns, k->x, k->file->rows,
                              SPS_COL_MAJOR, SPS_HOST));
    *X_p = X;
    return SPS_OK;

fail:
    sps_block_destroy(&X);
    return st;
}

/* ---------------------------------------------------------------------- all */

static void release(ranks *k)
{
    spsi_owner_release(&k->arrays);
    spsi_free(k->ctx, k->values);
    spsi_free(k->ctx, k->out);
    spsi_free(k->ctx, k->in);
    spsi_mtx_free(&k->m);
    spsi_file_close(k->file);
}

sps_status spsi_mtx_read_block_ranks(spsi_file *f, const char *path,
                                     const sps_read_options *ro,
                                     sps_block **X_p, bool *done)
{
    ranks k = { .ctx = f->ctx, .rank = spsi_comm_rank(f->ctx),
                .size = spsi_comm_size(f->ctx), .file = f,
                .arrays = { .ctx = f->ctx } };
    bool wrong = false;
    sps_status st;

    k.part = (spsi_mtx_part){ .part = k.rank, .parts = k.size, .block = true };
    SPS_TRY(compare(&k, read_part(&k, path, ro), &wrong));
    if (!wrong) SPS_TRY(spsi_comm_any(k.ctx, pack(&k) != SPS_OK, &wrong));
    *done = !wrong;
    if (wrong) goto fail;
    SPS_TRY(trade(&k));
    SPS_TRY(make_block(&k, X_p));
fail:
    release(&k);
    return st;
}
