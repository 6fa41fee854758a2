/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_ranks.c - a coordinate file read by several processes, each of which gets
 * its rows.
 *
 *   1. each parses its part of the text, of about equal bytes
 *   2. entries are counted in buckets of rows, mirrored ones too, in a large
 *      file one of eight; their sums give the rows of each process
 *      (own_rows.h), unless the caller has chosen them
 *   3. an entry is sent to each process that owns its row or, in a file with a
 *      symmetry, its column, but is not the one that has parsed it
 *   4. each builds its rows from the segments in the order of the file: those
 *      received from lower ranks, its own, those from higher ranks
 *
 * So a row has its entries in the order of the file, and duplicates sum to the
 * same bits as with one process.  In a file sorted by rows or columns few
 * pieces have entries of other processes, and the others are not looked at in
 * step 3.
 *
 * Whatever fails on one process is agreed upon by the next sum, and all read
 * the file as a whole: the text and line of an error are those of one
 * process. */
#include <string.h>

#include "core/comm.h"
#include "core/team.h"
#include "io/mtx.h"
#include "io/own_rows.h"
#include "matrix/csr.h"

enum { MANY = 1 << 20,       /* in a file of at least so many entries one in */
       STEP = 8 };           /* STEP of each piece is counted */

/* What the processes tell each other of their parts; from ROWS to KIND it must
 * be the same on all. */
enum { BAD, ROWS, COUNT, SIZE, KIND, STORED, DIAGONAL, ROUNDED, TINY, LINES,
       LOWER, UPPER, BYTES, FACTS };

typedef struct ranks {
    sps_context *ctx;
    int rank, size;
    spsi_file file;
    spsi_mtx *m;
    spsi_mtx_part part;
    double fact[FACTS];      /* facts of this process, then sums over all */
    spsi_share wanted;
    spsi_own own;
    int64_t *tally;          /* number of entries per thread and bucket */
    double *entries;         /* number of the counted entries in each bucket */
    int64_t *first;          /* size + 1: first row of each process */
    int32_t *owner;          /* process that owns the first row of each
                                bucket */
    int64_t *send_at, *receive_at;   /* size + 1: entries for, from process r */
    spsi_mtx_segment out;    /* entries that are sent, by process */
    int64_t stored;          /* entries of the part of this process */
    sps_csr *A;
    bool sorted;
    int64_t summed;          /* entries of A summed into others */
} ranks;

/* ----------------------------------------------------------------- counting */

static void tally_piece(const ranks *k, const spsi_mtx_segment *s,
                        const spsi_mtx_piece *piece, int64_t *tally)
{
    const bool mirror = spsi_mtx_mirrors(k->m);
    const int64_t step = k->m->header.count < MANY ? 1 : STEP;

    for (int64_t p = piece->at; p < piece->at + piece->count; p += step) {
        const int32_t i = s->row[p], j = s->col[p];

        tally[spsi_own_bucket(&k->own, i)]++;
        if (mirror && i != j) tally[spsi_own_bucket(&k->own, j)]++;
    }
}

static void tally_segments(void *data, int64_t first, int64_t last)
{
    const ranks *k = data;
    int64_t *tally = k->tally + spsi_team_self() * k->own.buckets;

    for (int64_t g = first; g < last; g++)
        for (int64_t i = 0; i < k->m->segment[g].pieces; i++)
            tally_piece(k, &k->m->segment[g], &k->m->segment[g].piece[i],
                        tally);
}

static sps_status count(ranks *k)
{
    const int64_t buckets = k->own.buckets, threads = k->ctx->threads;
    const double step = k->m->header.count < MANY ? 1 : STEP;
    sps_status st;

    SPS_TRY(SPS_NEW(k->ctx, threads * buckets, &k->tally));
    spsi_team_run(k->ctx, k->m->segments, 3 * k->m->stored, tally_segments, k);
    for (int64_t t = 0; t < threads; t++)
        for (int64_t b = 0; b < buckets; b++)
            k->entries[b] += step * (double)k->tally[t * buckets + b];
fail:
    return st;
}

/* ------------------------------------------------------------------ parsing */

static sps_status read_part(ranks *k, const char *path,
                            const sps_read_options *ro)
{
    const spsi_format *format;
    sps_status st;

    SPS_TRY(spsi_file_open(&k->file, path, ro, &format));
    SPS_REQUIRE(k->ctx, !format && spsi_text_seekable(k->file.text),
                SPS_EUNFIT, "%s: not a plain Matrix Market file", path);
    k->fact[SIZE] = (double)spsi_text_size(k->file.text);
    SPS_TRY(spsi_mtx_load_part(&k->file, &k->part, &k->m));
    k->own = spsi_own_of(k->m->header.nrow, k->size);
    k->own.ordered = spsi_comm_ordered(k->ctx);
    SPS_REQUIRE(k->ctx, k->own.buckets > 0, SPS_EUNFIT, "%s: no rows", path);
    SPS_REQUIRE(k->ctx, k->wanted.whole == 0 ||
                k->wanted.whole == k->m->header.nrow, SPS_EUNFIT, "%s: other "
                "rows", path);
    SPS_TRY(SPS_NEW(k->ctx, k->own.buckets, &k->entries));
    SPS_TRY(SPS_NEW(k->ctx, k->own.buckets, &k->owner));
    SPS_TRY(SPS_NEW(k->ctx, k->size + 1, &k->first));
    SPS_TRY(SPS_NEW(k->ctx, k->size + 1, &k->send_at));
    SPS_TRY(SPS_NEW(k->ctx, k->size + 1, &k->receive_at));
    if (k->wanted.whole == 0 && !k->wanted.even) SPS_TRY(count(k));
fail:
    return st;
}

static void state_facts(ranks *k)
{
    const spsi_mtx *m = k->m;
    double *f = k->fact;

    f[ROWS] = (double)m->header.nrow;
    f[COUNT] = (double)m->header.count;
    f[KIND] = 8 * (int)m->header.field + (int)m->header.symmetry;
    f[STORED] = (double)m->stored;
    f[DIAGONAL] = (double)m->diagonal;
    f[ROUNDED] = (double)m->rounded;
    f[TINY] = (double)m->tiny;
    f[LINES] = (double)(m->line - k->part.header_lines);
    f[LOWER] = m->lower > 0;
    f[UPPER] = m->upper > 0;
    f[BYTES] = (double)k->part.bytes;
}

/* Sums the facts.  Returns whether they make one valid file, as far as this
 * process can tell. */
static sps_status sum_facts(ranks *k, sps_status part, bool *fits)
{
    double mine[FACTS];
    sps_status st;

    if (part == SPS_OK) state_facts(k);
    k->fact[BAD] = part != SPS_OK;
    memcpy(mine, k->fact, sizeof mine);
    SPS_TRY(spsi_reduce(k->ctx, k->fact, FACTS));
    *fits = k->fact[BAD] == 0 &&
            k->fact[STORED] == mine[COUNT] &&
            k->fact[BYTES] == (double)k->part.body &&
            (k->fact[LOWER] == 0 || k->fact[UPPER] == 0);
    for (int i = ROWS; i <= KIND; i++)
        *fits = *fits && k->fact[i] == k->size * mine[i];
fail:
    return st;
}

/* Sums over the processes how many entries each bucket of rows has, and divides
 * the rows so that all processes have about as many. */
static sps_status cut(ranks *k)
{
    const sps_status st = spsi_reduce_long(k->ctx, k->entries, k->own.buckets);

    if (st == SPS_OK) spsi_own_cut(&k->own, k->entries, k->first);
    return st;
}

/* Finds the rows of each process. */
static sps_status divide(ranks *k)
{
    sps_status st;

    SPS_TRY(k->wanted.whole > 0
            ? spsi_own_given(k->ctx, &k->wanted, k->first) : cut(k));
    for (int64_t b = 0, r = 0; b < k->own.buckets; b++) {
        while (spsi_own_row(&k->own, b) >= k->first[r + 1]) r++;
        k->owner[b] = (int32_t)r;
    }
fail:
    return st;
}

static int owner_of(const ranks *k, int32_t row)
{
    int r = k->owner[spsi_own_bucket(&k->own, row)];

    while (row >= k->first[r + 1]) r++;
    return r;
}

/* ---------------------------------------------------------- entries to send */

static bool crosses(const ranks *k, const spsi_mtx_piece *piece)
{
    const int64_t low = k->first[k->rank], high = k->first[k->rank + 1];

    if (piece->count == 0) return false;
    return piece->row_low < low || piece->row_high >= high ||
           (spsi_mtx_mirrors(k->m) &&
            (piece->col_low < low || piece->col_high >= high));
}

/* Appends entry p of s to what is sent to process r. */
static void append(ranks *k, const spsi_mtx_segment *s, int64_t p, int r)
{
    const size_t words = (size_t)k->m->words;
    const int64_t at = k->send_at[r]++;

    k->out.row[at] = s->row[p];
    k->out.col[at] = s->col[p];
    if (words > 0)
        memcpy(k->out.val + (size_t)at * words, s->val + (size_t)p * words,
               words * sizeof *s->val);
}

/* Counts the entries for each other process in send_at[r + 1], or, when there
 * is memory for them, appends them. */
static void sort_piece(ranks *k, const spsi_mtx_segment *s,
                       const spsi_mtx_piece *piece, bool placing)
{
    const bool mirror = spsi_mtx_mirrors(k->m);

    for (int64_t p = piece->at; p < piece->at + piece->count; p++) {
        const int a = owner_of(k, s->row[p]);
        const int b = mirror ? owner_of(k, s->col[p]) : a;

        if (a != k->rank && placing) append(k, s, p, a);
        else if (a != k->rank) k->send_at[a + 1]++;
        if (b != k->rank && b != a && placing) append(k, s, p, b);
        else if (b != k->rank && b != a) k->send_at[b + 1]++;
    }
}

static void sort_entries(ranks *k, bool placing)
{
    for (int64_t g = 0; g < k->m->segments; g++) {
        const spsi_mtx_segment *s = &k->m->segment[g];

        for (int64_t i = 0; i < s->pieces; i++)
            if (crosses(k, &s->piece[i]))
                sort_piece(k, s, &s->piece[i], placing);
    }
}

static sps_status pack(ranks *k)
{
    sps_status st;

    sort_entries(k, false);
    for (int r = 0; r < k->size; r++) k->send_at[r + 1] += k->send_at[r];
    SPS_TRY(spsi_mtx_give_room(k->m, &k->out, k->send_at[k->size], true));
    sort_entries(k, true);
    /* Each send_at[r] has been advanced to the beginning of r + 1. */
    memmove(k->send_at + 1, k->send_at, (size_t)k->size * sizeof *k->send_at);
    k->send_at[0] = 0;
fail:
    return st;
}

/* ----------------------------------------------------------------- exchange */

/* received[r] = the number of entries that process r sends. */
static sps_status trade_counts(const ranks *k, int64_t *sent,
                               int64_t *received, sps_message *m)
{
    int others = 0;

    for (int r = 0; r < k->size; r++) {
        sent[r] = k->send_at[r + 1] - k->send_at[r];
        if (r == k->rank) continue;
        m[others] = (sps_message){ r, &sent[r], sizeof *sent };
        m[k->size + others++] = (sps_message){ r, &received[r],
                                               sizeof *received };
    }
    return spsi_comm_exchange(k->ctx, m, others, m + k->size, others);
}

/* Appends a segment of one piece for the entries from each other process. */
static sps_status make_segments(ranks *k, const int64_t *received)
{
    spsi_mtx_segment *s;
    sps_status st = SPS_OK;

    for (int r = 0; r < k->size; r++) {
        k->receive_at[r + 1] = k->receive_at[r] + received[r];
        if (received[r] == 0) continue;
        SPS_TRY(spsi_mtx_add_segment(k->m, 1, &s));
        SPS_TRY(spsi_mtx_give_room(k->m, s, received[r], true));
        s->piece->count = received[r];
        s->piece->row_high = s->piece->col_high =
            (int32_t)k->m->header.nrow - 1;
    }
fail:
    return st;
}

/* Makes the messages for `count` entries of s from offset `at` on; returns how
 * many. */
static int messages(const ranks *k, int peer, const spsi_mtx_segment *s,
                    int64_t at, int64_t count, sps_message *m)
{
    const size_t n = (size_t)count, from = (size_t)at;
    const size_t words = (size_t)k->m->words;

    if (count == 0) return 0;
    m[0] = (sps_message){ peer, s->row + from, n * sizeof *s->row };
    m[1] = (sps_message){ peer, s->col + from, n * sizeof *s->col };
    if (words == 0) return 2;
    m[2] = (sps_message){ peer, s->val + words * from,
                          n * words * sizeof *s->val };
    return 3;
}

/* Exchanges entries; `own` is the number of segments of the part itself, which
 * those received follow. */
static sps_status trade_entries(ranks *k, int64_t own, sps_message *m)
{
    sps_message *in = m + 3 * k->size;
    int sends = 0, receives = 0;
    int64_t g = own;

    for (int r = 0; r < k->size; r++) {
        const int64_t given = k->send_at[r + 1] - k->send_at[r];
        const int64_t taken = k->receive_at[r + 1] - k->receive_at[r];

        sends += messages(k, r, &k->out, k->send_at[r], given, m + sends);
        if (taken > 0)
            receives += messages(k, r, &k->m->segment[g++], 0, taken,
                                 in + receives);
    }
    return spsi_comm_exchange(k->ctx, m, sends, in, receives);
}

/* Moves the segments from lower ranks before the own ones. */
static sps_status order_segments(ranks *k, int64_t own)
{
    const size_t each = sizeof *k->m->segment;
    spsi_mtx_segment *s = k->m->segment, *copy = NULL;
    int64_t lower = 0;
    sps_status st;

    for (int r = 0; r < k->rank; r++)
        lower += k->receive_at[r + 1] > k->receive_at[r];
    if (lower == 0) return SPS_OK;
    SPS_TRY(SPS_NEW(k->ctx, lower, &copy));
    memcpy(copy, s + own, (size_t)lower * each);
    memmove(s + lower, s, (size_t)own * each);
    memcpy(s, copy, (size_t)lower * each);
fail:
    spsi_free(k->ctx, copy);
    return st;
}

static sps_status trade(ranks *k, bool *wrong)
{
    const int64_t size = k->size, own = k->m->segments;
    int64_t *counts = NULL;
    sps_message *m = NULL;
    bool bad = pack(k) != SPS_OK || SPS_NEW(k->ctx, 2 * size, &counts) ||
               SPS_NEW(k->ctx, 6 * size, &m);
    sps_status st;

    SPS_TRY(spsi_comm_any(k->ctx, bad, wrong));
    if (*wrong) goto fail;
    SPS_TRY(trade_counts(k, counts, counts + size, m));
    bad = make_segments(k, counts + size) != SPS_OK;
    SPS_TRY(spsi_comm_any(k->ctx, bad, wrong));
    if (*wrong) goto fail;
    SPS_TRY(trade_entries(k, own, m));
    bad = order_segments(k, own) != SPS_OK;
    SPS_TRY(spsi_comm_any(k->ctx, bad, wrong));
fail:
    spsi_free(k->ctx, counts);
    spsi_free(k->ctx, m);
    return st;
}

/* --------------------------------------------------------------------- rows */

/* Builds the own rows, sorted and with duplicates summed. */
static sps_status build(ranks *k)
{
    const int64_t scale = k->m->words == 2 ? 2 : 1;
    const int64_t low = k->first[k->rank], high = k->first[k->rank + 1];
    sps_status st;

    SPS_TRY(spsi_mtx_rows(k->m, low, high, &k->A));
    spsi_mtx_drop(k->m);
    k->A->first = scale * low;
    k->A->whole = scale * k->m->header.nrow;
    k->summed = k->A->nnz;
    SPS_TRY(spsi_own_order(k->ctx, k->A, &k->sorted));
    k->summed -= k->A->nnz;
fail:
    return st;
}

/* Returns the number of entries of A on the diagonal, for a complex file that
 * of 2 x 2 blocks. */
static double diagonal_entries(const sps_csr *A, int64_t scale)
{
    int64_t count = 0;

    for (int64_t i = 0; i < A->nrow; i += scale)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            count += A->global[p] == A->first + i;
    return (double)count;
}

/* Sums over the processes.  *wrong: a process has failed, or there are
 * duplicates that the options forbid; *duplicates: number of entries of the
 * file that were summed into others. */
static sps_status sum_rows(ranks *k, bool bad, bool *wrong,
                           int64_t *duplicates)
{
    const int64_t scale = k->m->words == 2 ? 2 : 1;
    double sum[4] = { bad, 0, 0, 0 }, kept[2];
    sps_status st;

    if (!bad) {
        sum[1] = !k->sorted;
        sum[2] = (double)k->summed;
        sum[3] = (double)(k->A->nnz / (scale * scale));
    }
    SPS_TRY(spsi_reduce(k->ctx, sum, 4));
    *wrong = sum[0] > 0 || (k->m->options.strict && sum[2] > 0);
    *duplicates = 0;
    if (*wrong) return SPS_OK;
    kept[0] = sum[3];
    kept[1] = sum[2] > 0 ? diagonal_entries(k->A, scale) : 0;
    SPS_TRY(spsi_reduce(k->ctx, kept + 1, 1));
    if (sum[2] > 0)
        *duplicates = spsi_mtx_summed(k->m, (int64_t)kept[0],
                                      (int64_t)kept[1]);
    if (sum[1] > 0) spsi_csr_order_note(k->ctx, (int64_t)sum[2]);
fail:
    return st;
}

/* Makes the counts of k->m those of the whole file. */
static void take_sums(ranks *k)
{
    k->m->stored = (int64_t)k->fact[STORED];
    k->m->diagonal = (int64_t)k->fact[DIAGONAL];
    k->m->rounded = (int64_t)k->fact[ROUNDED];
    k->m->tiny = (int64_t)k->fact[TINY];
    k->m->line = k->part.header_lines + (int64_t)k->fact[LINES];
    k->m->lower = k->fact[LOWER] > 0;
    k->m->upper = k->fact[UPPER] > 0;
}

/* ---------------------------------------------------------------------- all */

/* *wrong: all processes give up. */
static sps_status read_rows(ranks *k, const char *path,
                            const sps_read_options *ro, bool *wrong,
                            int64_t *duplicates)
{
    bool fits = false;
    sps_status st = read_part(k, path, ro);

    SPS_TRY(sum_facts(k, st, &fits));
    *wrong = k->fact[BAD] > 0;
    if (*wrong) return SPS_OK;
    SPS_TRY(spsi_comm_any(k->ctx, !fits, wrong));
    if (*wrong) return SPS_OK;
    SPS_TRY(divide(k));
    SPS_TRY(trade(k, wrong));
    if (*wrong) return SPS_OK;
    st = build(k);
    take_sums(k);
    SPS_TRY(sum_rows(k, st != SPS_OK, wrong, duplicates));
fail:
    return st;
}

static void release(ranks *k)
{
    spsi_free(k->ctx, k->tally);
    spsi_free(k->ctx, k->entries);
    spsi_free(k->ctx, k->owner);
    spsi_free(k->ctx, k->first);
    spsi_free(k->ctx, k->send_at);
    spsi_free(k->ctx, k->receive_at);
    spsi_free(k->ctx, k->out.row);
    spsi_free(k->ctx, k->out.col);
    spsi_free(k->ctx, k->out.val);
    sps_csr_destroy(k->ctx, &k->A);
    spsi_mtx_free(&k->m);
    spsi_file_close(&k->file);
}

sps_status spsi_mtx_read_ranks(sps_context *ctx, const char *path,
                               const sps_read_options *ro, sps_read_info *info,
                               const spsi_share *wanted, sps_csr **A_p,
                               bool *done)
{
    ranks k = { .ctx = ctx, .wanted = *wanted, .rank = spsi_comm_rank(ctx),
                .size = spsi_comm_size(ctx), .file = { .ctx = ctx } };
    int64_t duplicates = 0;
    bool wrong = false;
    sps_status st;

    k.part = (spsi_mtx_part){ .part = k.rank, .parts = k.size };
    SPS_TRY(read_rows(&k, path, ro, &wrong, &duplicates));
    *done = !wrong;
    if (wrong) goto fail;
    spsi_mtx_notes(k.m);
    if (info) spsi_mtx_info(k.m, duplicates, info);
    *A_p = k.A;
    k.A = NULL;
fail:
    release(&k);
    return st;
}
