/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_write.c - writes a csr or a block as Matrix Market text, with the
 * shortest digits that read back to the same bits. */
#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "matrix/csr.h"
#include "io/number/number.h"
#include "io/files/writer.h"
#include "core/team.h"

#define INDEX_WIDTH 10                        /* 2147483647 */
#define ENTRY_WIDTH (2 * INDEX_WIDTH + SPSI_NUMBER_WIDTH + 3)
#define VALUE_WIDTH (2 * SPSI_NUMBER_WIDTH + 2)

#define ROW_WIDTH (SPSI_NUMBER_WIDTH + 1)

enum { GROUP = 8,                             /* columns copied at once */
       ITEMS = 4096,                          /* rows printed as a piece */
       TEXT = 1 << 26 };                      /* bytes printed at a time */

static size_t header_text(const void *data, int64_t first, int64_t last,
                          char *text)
{
    size_t length = strlen(data);

    (void)first;
    (void)last;
    memcpy(text, data, length);
    return length;
}

static sps_status write_header(spsi_sink *s, const char *text)
{
    return spsi_sink_write(s, header_text, text, 1, strlen(text));
}

/* ------------------------------------------------------------------- csr */

typedef struct matrix {
    const sps_csr *A;
    bool lower;              /* entries above the diagonal are not written */
} matrix;

static int64_t row_of(const sps_csr *A, int64_t entry)
{
    int64_t low = 0, high = A->nrow;          /* rowptr[low] <= entry */

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (A->rowptr[middle] <= entry)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static size_t entry_text(const void *data, int64_t first, int64_t last,
                         char *text)
{
    const matrix *m = data;
    const sps_csr *A = m->A;
    int64_t i = row_of(A, first);
    char *t = text;

    for (int64_t p = first; p < last; p++) {
        while (p >= A->rowptr[i + 1]) i++;
        if (m->lower && A->col[p] > i) continue;
        t += spsi_number_print_integer(i + 1, t);
        *t++ = ' ';
        t += spsi_number_print_integer((int64_t)A->col[p] + 1, t);
        *t++ = ' ';
        t += spsi_number_print(spsi_csr_value(A, p), t);
        *t++ = '\n';
    }
    return (size_t)(t - text);
}

typedef struct count_job {
    const sps_csr *A;
    int64_t count;
} count_job;

static void count_lower(void *data, int64_t first, int64_t last)
{
    count_job *j = data;
    int64_t count = 0;

    for (int64_t i = first; i < last; i++)
        for (int64_t p = j->A->rowptr[i]; p < j->A->rowptr[i + 1]; p++)
            count += j->A->col[p] <= i;
    spsi_team_add(&j->count, count);
}

static int64_t count_written(sps_context *ctx, const matrix *m)
{
    count_job j = { m->A, 0 };

    if (!m->lower) return m->A->nnz;
    spsi_team_run(ctx, m->A->nrow, m->A->nnz, count_lower, &j);
    return j.count;
}

static sps_status write_csr(sps_context *ctx, spsi_sink *s, const sps_csr *A,
                            bool symmetric)
{
    const matrix m = {A, symmetric};
    char header[160];
    sps_status st;

    snprintf(header, sizeof header, "%%%%MatrixMarket matrix coordinate real "
             "%s\n%lld %lld %lld\n", symmetric ? "symmetric" : "general",
             (long long)A->nrow, (long long)A->ncol,
             (long long)count_written(ctx, &m));
    SPS_TRY(write_header(s, header));
    SPS_TRY(spsi_sink_write(s, entry_text, &m, A->nnz, ENTRY_WIDTH));
fail:
    return st;
}

/* ----------------------------------------------------------------- block */

typedef struct values {
    const double *x;
    int numbers;             /* 2 for complex values in interleaved form */
} values;

static size_t value_text(const void *data, int64_t first, int64_t last,
                         char *text)
{
    const values *v = data;
    char *t = text;

    for (int64_t i = first; i < last; i++) {
        t += spsi_number_print(v->x[v->numbers * i], t);
        if (v->numbers == 2) {
            *t++ = ' ';
            t += spsi_number_print(v->x[2 * i + 1], t);
        }
        *t++ = '\n';
    }
    return (size_t)(t - text);
}

static sps_status write_columns(const sps_block *X, spsi_sink *s, int numbers)
{
    sps_context *ctx = X->ctx;
    values v = {.numbers = numbers};
    double *x = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, X->n * (X->k < GROUP ? X->k : GROUP), &x));
    v.x = x;
    for (int first = 0; first < X->k; first += GROUP) {
        int k = X->k - first < GROUP ? X->k - first : GROUP;
        SPS_TRY(sps_block_get(X, first, k, x, X->n, SPS_COL_MAJOR, SPS_HOST));
        SPS_TRY(spsi_sink_write(s, value_text, &v, X->n * k / numbers,
                                VALUE_WIDTH));
    }
fail:
    spsi_free(ctx, x);
    return st;
}

static void print_header(char header[128], bool interleaved, int64_t n, int k)
{
    snprintf(header, 128, "%%%%MatrixMarket matrix array %s general\n%lld "
             "%d\n", interleaved ? "complex" : "real", (long long)n, k);
}

static sps_status write_block(spsi_sink *s, const sps_block *X,
                              bool interleaved)
{
    int numbers = interleaved ? 2 : 1;
    char header[128];
    sps_status st;

    print_header(header, interleaved, X->n / numbers, X->k);
    SPS_TRY(write_header(s, header));
    SPS_TRY(write_columns(X, s, numbers));
fail:
    return st;
}

/* ------------------------------------------------ rows of several processes */

/* The own rows of some columns as text: piece p of column c, of ITEMS rows, is
 * at text + (c * pieces + p) * ITEMS * ROW_WIDTH. */
typedef struct printed {
    const double *x;             /* column-major values */
    int64_t n, pieces;           /* number of rows; of pieces per column */
    char *text;
    size_t *length;              /* bytes of text of each piece */
} printed;

static void print_pieces(void *data, int64_t first, int64_t last)
{
    const printed *p = data;

    for (int64_t i = first; i < last; i++) {
        const int64_t from = i % p->pieces * ITEMS;
        const int64_t to = from + ITEMS < p->n ? from + ITEMS : p->n;
        const values v = { p->x + i / p->pieces * p->n, 1 };

        p->length[i] = value_text(&v, from, to, p->text +
                                  (size_t)i * ITEMS * ROW_WIDTH);
    }
}

/* Writes k columns that have been printed; the first begins at *at, which
 * becomes the offset of the column after the last. */
static sps_status put_columns(spsi_shared *s, const printed *p, int k,
                              uint64_t *at)
{
    double lengths[GROUP] = { 0 }, starts[GROUP];
    sps_status st;

    for (int64_t i = 0; i < k * p->pieces; i++)
        lengths[i / p->pieces] += (double)p->length[i];
    SPS_TRY(spsi_shared_place(s, k, lengths, starts));
    for (int c = 0; c < k; c++) {
        uint64_t to = *at + (uint64_t)starts[c];

        for (int64_t i = c * p->pieces; i < (c + 1) * p->pieces; i++) {
            SPS_TRY(spsi_shared_put(s, p->text + (size_t)i * ITEMS * ROW_WIDTH,
                                    p->length[i], to));
            to += p->length[i];
        }
        *at += (uint64_t)lengths[c];
    }
fail:
    return st;
}

/* Returns how many columns all processes print at a time: as many as take about
 * TEXT bytes of text in each process, up to GROUP. */
static int columns_at_a_time(sps_context *ctx, int64_t whole, int k)
{
    const int64_t each = whole / spsi_comm_size(ctx) + 1;
    const int64_t group = TEXT / (each * ROW_WIDTH);
    const int most = k < GROUP ? k : GROUP;

    return group < 1 ? 1 : group < most ? (int)group : most;
}

static sps_status write_rows(spsi_shared *s, const sps_block *X, int64_t first,
                             int64_t whole)
{
    sps_context *ctx = X->ctx;
    const int group = columns_at_a_time(ctx, whole, X->k);
    printed p = { .n = X->n, .pieces = (X->n + ITEMS - 1) / ITEMS };
    char header[128];
    double *x = NULL;
    uint64_t at;
    sps_status st;

    print_header(header, false, whole, X->k);
    at = strlen(header);
    SPS_TRY(SPS_NEW(ctx, X->n * group, &x));
    SPS_TRY(SPS_NEW(ctx, p.pieces * group, &p.length));
    SPS_TRY(spsi_new_raw(ctx, (size_t)(p.pieces * group) * ITEMS * ROW_WIDTH +
                         1, (void **)&p.text));
    p.x = x;
    if (first == 0) SPS_TRY(spsi_shared_put(s, header, strlen(header), 0));
    for (int c = 0; c < X->k; c += group) {
        const int k = X->k - c < group ? X->k - c : group;

        SPS_TRY(sps_block_get(X, c, k, x, X->n, SPS_COL_MAJOR, SPS_HOST));
        spsi_team_run(ctx, k * p.pieces, 100 * k * X->n, print_pieces, &p);
        SPS_TRY(put_columns(s, &p, k, &at));
    }
fail:
    spsi_free(ctx, x);
    spsi_free(ctx, p.length);
    spsi_free(ctx, p.text);
    return st;
}

SPS_DEFINE(spsi_writer, spsi_writer_mtx) = {
    .suffix = "", .csr = write_csr, .block = write_block, .rows = write_rows,
};
