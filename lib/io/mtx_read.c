/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_read.c - a Matrix Market file from text to entries, in parallel.
 *
 *   batch of text (1 .. 16 MiB) -> pieces of 256 KiB, cut at line ends
 *     1. lines of each piece counted (parallel)   -> line numbers, room
 *     2. pieces parsed (parallel) while one thread reads the next batch
 *     3. the first error in the order of the file is the one reported
 *
 * Memory: two batches and the entries.  The sizes in the header are compared
 * with the size of the file and with the memory of the machine (size.c);
 * memory for entries is allocated batch by batch, for the lines read. */
#include <stdio.h>
#include <string.h>

#include "core/abi.h"
#include "io/mtx.h"
#include "io/stream/size.h"
#include "core/team.h"

#define PIECE ((size_t)1 << 18)
#define SMALLEST ((size_t)1 << 20)   /* bytes of a batch */
#define LARGEST ((size_t)1 << 24)    /* most bytes of batch, line, header */
#define SLACK 64                     /* bytes after a batch: a newline, and
                                        bytes that number parsing may read */

typedef struct batch {
    char *text;
    size_t length;
} batch;

typedef struct reader {
    spsi_mtx *m;
    batch now, next;
    size_t capacity;
    bool ended;                      /* `next` has the end of the text */
    bool banner;                     /* the first line has been read */
    bool ready;                      /* the whole header, with the sizes, has
                                        been read */
    bool block;
    bool peek;                       /* read only the header */
    int shares;                      /* processes that read a part each, or 0 */
    uint64_t header_bytes;
} reader;

/* ---------------------------------------------------------------- pieces */

/* Returns whether an error found later may have to name the line of an
 * entry. */
static bool lines_wanted(const spsi_mtx *m)
{
    return m->options.strict || m->options.lenient ||
           (m->header.array && m->header.symmetry == SPSI_MTX_HERMITIAN);
}

static void count_lines(void *data, int64_t first, int64_t last)
{
    spsi_mtx_segment *s = data;

    for (int64_t i = first; i < last; i++) spsi_mtx_count_lines(&s->piece[i]);
}

/* Creates a segment whose pieces are the whole lines in [begin, end), with the
 * lines counted and memory for as many entries as the text can contain. */
static sps_status cut(spsi_mtx *m, const char *begin, const char *end,
                      spsi_mtx_segment **s_p)
{
    int64_t pieces = (int64_t)(((size_t)(end - begin) + PIECE - 1) / PIECE);
    int64_t least = spsi_mtx_least(&m->header), capacity = 0;
    int64_t line = m->line + 1;
    spsi_mtx_segment *s;
    const char *at = begin;
    sps_status st;

    SPS_TRY(spsi_mtx_add_segment(m, pieces, &s));
    for (int64_t i = 0; i < pieces; i++) {
        const char *stop = begin + (size_t)(i + 1) * PIECE;
        s->piece[i].begin = at;
        if (i == pieces - 1)
            at = end;
        else if (stop > at)
            at = (const char *)memchr(stop - 1, '\n',
                                      (size_t)(end - stop) + 1) + 1;
        s->piece[i].end = at;
    }
    spsi_team_run(m->ctx, pieces, (end - begin) / 8, count_lines, s);
    for (int64_t i = 0; i < pieces; i++) {
        spsi_mtx_piece *piece = &s->piece[i];
        int64_t most = (piece->end - piece->begin) / least;
        piece->first_line = line;
        piece->at = capacity;
        line += piece->lines;
        capacity += piece->lines < most ? piece->lines : most;
    }
    SPS_TRY(spsi_mtx_give_room(m, s, capacity, !m->header.array));
    *s_p = s;
fail:
    return st;
}

/* Returns EPARSE with the line of the first entry beyond the header's count. */
static sps_status too_many(const spsi_mtx *m, const spsi_mtx_piece *piece)
{
    int64_t count = m->header.count - m->stored + 1;
    int32_t *line = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(m->ctx, count, &line));
    spsi_mtx_find_lines(piece, count, line);
    st = spsi_mtx_complain(m, SPSI_MTX_TOO_MANY, "\n",
                           piece->first_line + line[count - 1]);
fail:
    spsi_free(m->ctx, line);
    return st;
}

/* Adds the counts of a parsed piece to m, or fails with its error.  Called in
 * the order of the file, so that the file's first error is reported. */
static sps_status account(spsi_mtx *m, spsi_mtx_piece *piece)
{
    sps_status st = SPS_OK;

    if (m->stored + piece->count > m->header.count)
        return too_many(m, piece);
    if (piece->error != SPSI_MTX_FINE)
        return spsi_mtx_complain(m, piece->error, piece->where,
                                 piece->error_line);
    if (lines_wanted(m) && piece->count < piece->lines) {
        SPS_TRY(SPS_NEW(m->ctx, piece->count, &piece->line));
        spsi_mtx_find_lines(piece, piece->count, piece->line);
    }
    m->line += piece->lines;
    m->stored += piece->count;
    m->diagonal += piece->diagonal;
    m->rounded += piece->rounded;
    m->tiny += piece->tiny;
    if (m->lower == 0) m->lower = piece->lower;
    if (m->upper == 0) m->upper = piece->upper;
fail:
    return st;
}

/* If more than a quarter of the segment is unused (blank lines, comments),
 * moves its `used` entries to smaller arrays. */
static sps_status repack(spsi_mtx *m, spsi_mtx_segment *s, int64_t used)
{
    spsi_mtx_segment to = *s;
    size_t w = (size_t)m->words;
    sps_status st = SPS_OK;
    int64_t at = 0;

    if (used >= s->capacity - s->capacity / 4) return SPS_OK;
    to.row = to.col = NULL;
    to.val = NULL;
    SPS_TRY(spsi_mtx_give_room(m, &to, used, !m->header.array));
    for (int64_t i = 0; i < s->pieces; i++) {
        spsi_mtx_piece *piece = &s->piece[i];
        size_t n = (size_t)piece->count, from = (size_t)piece->at;
        if (to.row && n > 0) {
            memcpy(to.row + at, s->row + from, n * sizeof *to.row);
            memcpy(to.col + at, s->col + from, n * sizeof *to.col);
        }
        if (w > 0 && n > 0)
            memcpy(to.val + w * (size_t)at, s->val + w * from,
                   n * w * sizeof *to.val);
        piece->at = at;
        at += piece->count;
    }
    spsi_mtx_segment old = *s;
    *s = to;
    to = old;
fail:
    spsi_free(m->ctx, to.row);         /* old arrays; after a failure new */
    spsi_free(m->ctx, to.col);
    spsi_free(m->ctx, to.val);
    return st;
}

/* --------------------------------------------------------------- batches */

/* Appends text to r->next; sets r->ended at the end of the text. */
static sps_status fill(reader *r)
{
    size_t room = r->capacity - r->next.length, got = 0;
    sps_status st;

    SPS_TRY(spsi_text_fill(r->m->text, r->next.text + r->next.length, room,
                           &got));
    r->next.length += got;
    memset(r->next.text + r->next.length, 0, SLACK);
    r->ended = got < room;
fail:
    return st;
}

typedef struct parse_job {
    reader *r;
    spsi_mtx_segment *s;
    bool read_on;
    sps_status read;
} parse_job;

/* Item 0 fills r->next if j->read_on; item i > 0 parses piece i - 1. */
static void run_parse(void *data, int64_t first, int64_t last)
{
    parse_job *j = data;

    if (first == 0 && j->read_on) j->read = fill(j->r);
    for (int64_t i = first > 0 ? first : 1; i < last; i++)
        spsi_mtx_parse(j->r->m, j->s, &j->s->piece[i - 1]);
}

/* Parses [begin, end), estimated at 15 ns per character, and with read_on fills
 * r->next at the same time. */
static sps_status parse(reader *r, const char *begin, const char *end,
                        bool read_on)
{
    spsi_mtx *m = r->m;
    spsi_mtx_segment *s = NULL;
    sps_status st;
    int64_t before = m->stored;
    parse_job j = { .r = r, .read_on = read_on, .read = SPS_OK };

    SPS_TRY(cut(m, begin, end, &s));
    j.s = s;
    spsi_team_run(m->ctx, s->pieces + 1, 15 * (end - begin), run_parse, &j);
    for (int64_t i = 0; i < s->pieces; i++)
        SPS_TRY(account(m, &s->piece[i]));
    SPS_TRY(j.read);
    SPS_TRY(repack(m, s, m->stored - before));
fail:
    return st;
}

/* Checks the size of the result for a text of at most `bytes` bytes. */
static sps_status check_size(const reader *r, uint64_t bytes)
{
    const spsi_mtx_header *h = &r->m->header;
    char where[256];

    snprintf(where, sizeof where, "%.200s:%lld", r->m->name,
             (long long)r->m->line);
    return spsi_size_check(r->m->ctx, &r->m->options,
                           &(spsi_size){where, h->nrow, h->ncol, h->count,
                                        h->field == SPSI_MTX_COMPLEX,
                                        spsi_mtx_mirrors(r->m), r->shares},
                           r->block, bytes);
}

/* Reads the part of the header in [*begin, end), and advances *begin past it.
 * Its sizes are checked when the size line has been read. */
static sps_status read_header(reader *r, const char **begin, const char *end)
{
    const char *next = *begin;
    sps_status st;

    SPS_TRY(spsi_mtx_header_read(r->m, *begin, end, &r->banner, &next,
                                 &r->ready));
    if (r->ready && !r->peek)
        SPS_TRY(check_size(r, spsi_text_bound(r->m->text)));
    r->header_bytes += (uint64_t)(next - *begin);
    SPS_REQUIRE(r->m->ctx, r->ready || r->header_bytes <= LARGEST, SPS_EPARSE,
                "%s:%lld: no size line in the first %llu bytes", r->m->name,
                (long long)r->m->line, (unsigned long long)r->header_bytes);
    *begin = next;
fail:
    return st;
}

/* For a line longer than a batch: doubles both batches, up to LARGEST bytes,
 * and fills r->next. */
static sps_status grow(reader *r)
{
    size_t larger = r->capacity < LARGEST / 2 ? 2 * r->capacity : LARGEST;
    sps_status st;

    SPS_REQUIRE(r->m->ctx, r->capacity < LARGEST, SPS_EPARSE, "%s:%lld: a "
                "line of more than %zu bytes", r->m->name,
                (long long)r->m->line + 1, r->capacity);
    SPS_TRY(spsi_resize(r->m->ctx, larger + SLACK, (void **)&r->next.text));
    SPS_TRY(spsi_resize(r->m->ctx, larger + SLACK, (void **)&r->now.text));
    r->capacity = larger;
    st = fill(r);
fail:
    return st;
}

/* Exchanges r->next and r->now; an incomplete line at the end of the text is
 * copied to the beginning of the new r->next.  Returns the end of the whole
 * lines in r->now. */
static const char *turn(reader *r)
{
    batch b = r->next;
    size_t whole;

    if (r->ended && b.length > 0 && b.text[b.length - 1] != '\n')
        b.text[b.length++] = '\n';
    const char *last = memrchr(b.text, '\n', b.length);
    whole = last ? (size_t)(last - b.text) + 1 : 0;
    r->next = r->now;
    r->now = b;
    r->next.length = b.length - whole;
    memcpy(r->next.text, b.text + whole, r->next.length);
    return b.text + whole;
}

/* Reads batches, the first of which is in r->next, to the end of the text, or
 * with r->peek to the end of the header. */
static sps_status read_batches(reader *r)
{
    spsi_mtx *m = r->m;
    sps_status st = SPS_OK;

    for (bool ended = false; !ended;) {
        ended = r->ended;
        if (!ended && !memrchr(r->next.text, '\n', r->next.length)) {
            SPS_TRY(grow(r));
            continue;
        }
        const char *end = turn(r), *begin = r->now.text;
        if (!r->ready) SPS_TRY(read_header(r, &begin, end));
        if (r->ready && r->peek) return SPS_OK;
        if (r->ready && begin < end)
            SPS_TRY(parse(r, begin, end, !ended));
        else if (!ended)
            SPS_TRY(fill(r));
        if (m->options.progress)
            m->options.progress(spsi_text_done(m->text),
                                spsi_text_size(m->text),
                                m->options.progress_data);
    }
fail:
    return st;
}

static sps_status read_all(reader *r)
{
    spsi_mtx *m = r->m;
    sps_status st;

    SPS_TRY(fill(r));
    SPS_TRY(spsi_mtx_foreign(m, r->next.text, r->next.length));
    SPS_TRY(read_batches(r));
    if (r->ready && r->peek) return SPS_OK;
    SPS_REQUIRE(m->ctx, r->banner, SPS_EPARSE, "%s:1: the file is empty",
                m->name);
    SPS_REQUIRE(m->ctx, r->ready, SPS_EPARSE, "%s:%lld: the file ends before "
                "its size line", m->name, (long long)m->line);
    SPS_REQUIRE(m->ctx, m->stored == m->header.count, SPS_EPARSE, "%s:%lld: "
                "too few entries: the file ends after %lld of %lld (cut off?)",
                m->name, (long long)m->line, (long long)m->stored,
                (long long)m->header.count);
    SPS_TRY(check_size(r, spsi_text_produced(m->text)));
fail:
    return st;
}

/* Returns EPARSE, unless the option is lenient, if a file with a symmetry has
 * entries on both sides of the diagonal. */
static sps_status check_triangles(const spsi_mtx *m)
{
    sps_status st = SPS_OK;
    bool above = m->upper > m->lower;

    SPS_REQUIRE(m->ctx, !spsi_mtx_mirrors(m) || m->options.lenient ||
                m->lower == 0 || m->upper == 0, SPS_EPARSE, "%s:%lld: an "
                "entry %s the diagonal, but line %lld has one %s it: a %s "
                "file stores one triangle (lenient reading accepts both if "
                "they agree)", m->name,
                (long long)(above ? m->upper : m->lower),
                above ? "above" : "below",
                (long long)(above ? m->lower : m->upper),
                above ? "below" : "above",
                spsi_mtx_symmetry_name(m->header.symmetry));
fail:
    return st;
}

/* Returns a sixteenth of the file, but at least SMALLEST and at most LARGEST
 * bytes; for a text shorter than SMALLEST its length + 1. */
static size_t batch_size(const spsi_text *text)
{
    uint64_t size = spsi_text_size(text) / 16, whole = spsi_text_bound(text);

    if (whole < SMALLEST) return (size_t)whole + 1;
    return size < SMALLEST ? SMALLEST : size > LARGEST ? LARGEST
                                                       : (size_t)size;
}

static sps_status read_file(reader *r, sps_status (*read)(reader *))
{
    spsi_mtx *m = r->m;
    sps_status st;

    r->capacity = r->peek ? SMALLEST : batch_size(m->text);
    SPS_TRY(spsi_new_raw(m->ctx, r->capacity + SLACK, (void **)&r->now.text));
    SPS_TRY(spsi_new_raw(m->ctx, r->capacity + SLACK, (void **)&r->next.text));
    SPS_TRY(read(r));
    SPS_TRY(check_triangles(m));
fail:
    spsi_free(m->ctx, r->now.text);
    spsi_free(m->ctx, r->next.text);
    return st;
}

static sps_status create(const spsi_file *f, spsi_mtx **m_p)
{
    spsi_mtx *m = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(f->ctx, 1, &m));
    m->ctx = f->ctx;
    m->text = f->text;
    m->name = f->name;
    m->options = f->options;
    *m_p = m;
fail:
    return st;
}

sps_status spsi_mtx_load(const spsi_file *f, spsi_mtx **m_p)
{
    sps_status st;
    spsi_mtx *m = NULL;

    SPS_TRY(create(f, &m));
    SPS_TRY(read_file(&(reader){.m = m, .block = f->block, .peek = f->peek},
                      read_all));
    *m_p = m;
    m = NULL;

fail:
    spsi_mtx_free(&m);
    return st;
}

static sps_status read_part(reader *r)
{
    sps_status st;

    SPS_TRY(fill(r));
    SPS_TRY(read_batches(r));
fail:
    return st;
}

/* Makes the text of m end and begin at line ends, so that it is part p->part of
 * p->parts; `header` is the number of bytes of the header. */
static sps_status take_part(const spsi_mtx *m, uint64_t header,
                            spsi_mtx_part *p)
{
    const uint64_t size = spsi_text_size(m->text);
    const uint64_t body = size > header ? size - header : 0;
    const uint64_t each = body / (uint64_t)p->parts, part = (uint64_t)p->part;
    uint64_t begin = header, end = size;
    sps_status st = SPS_OK;

    if (part > 0)
        SPS_TRY(spsi_text_line(m->text, header + part * each, &begin));
    if (p->part < p->parts - 1)
        SPS_TRY(spsi_text_line(m->text, header + (part + 1) * each, &end));
    SPS_TRY(spsi_text_part(m->text, begin, end));
    p->bytes = end - begin;
    p->body = body;
    p->header_lines = m->line;
fail:
    return st;
}

/* Returns whether a file is of the kind that is read in parts. */
static bool fits(const spsi_mtx_header *h, bool block)
{
    if (!block) return !h->array && h->nrow == h->ncol;
    return h->array && h->symmetry == SPSI_MTX_GENERAL &&
           h->field != SPSI_MTX_COMPLEX;
}

sps_status spsi_mtx_load_part(const spsi_file *f, spsi_mtx_part *p,
                              spsi_mtx **m_p)
{
    spsi_mtx *m = NULL;
    reader head = {.peek = true, .shares = p->parts, .block = p->block};
    sps_status st;

    SPS_TRY(create(f, &m));
    head.m = m;
    SPS_TRY(read_file(&head, read_all));
    SPS_TRY(check_size(&head, spsi_text_bound(m->text)));
    SPS_REQUIRE(m->ctx, fits(&m->header, p->block), SPS_EUNFIT, "%s: this kind "
                "of file is not read in parts", m->name);
    SPS_TRY(take_part(m, head.header_bytes, p));
    SPS_TRY(read_file(&(reader){.m = m, .banner = true, .ready = true},
                      read_part));
    *m_p = m;
    return SPS_OK;

fail:
    spsi_mtx_free(&m);
    return st;
}

sps_status spsi_mtx_sizes(const spsi_file *f, spsi_content *c)
{
    spsi_mtx *m = NULL;
    sps_status st;

    SPS_TRY(spsi_mtx_load(f, &m));
    c->nrow = m->header.nrow;
    c->ncol = m->header.ncol;
    c->count = m->header.count;
fail:
    spsi_mtx_free(&m);
    return st;
}

/* ----------------------------------------------------------------- facts */

void spsi_mtx_info(const spsi_mtx *m, int64_t summed, sps_read_info *info)
{
    const spsi_mtx_header *h = &m->header;
    sps_read_info found = {.array = h->array, .lines = m->line,
                           .stored = h->count, .rounded = m->rounded,
                           .underflows = m->tiny, .duplicates = summed};

    strcpy(found.field, spsi_mtx_field_name(h->field));
    strcpy(found.symmetry, spsi_mtx_symmetry_name(h->symmetry));
    found.upper = spsi_mtx_mirrors(m) && m->upper > 0 && m->lower == 0;
    found.struct_size = sizeof found;
    spsi_abi_copy(&found, info);
}

void spsi_mtx_notes(const spsi_mtx *m)
{
    const spsi_mtx_header *h = &m->header;

    if (h->field == SPSI_MTX_PATTERN)
        spsi_note(m->ctx, "%s: a pattern without values; every stored entry "
                          "is 1",
                  m->name);
    if (h->field == SPSI_MTX_COMPLEX)
        spsi_note(m->ctx, "%s: complex; converted to the real form of "
                  "interleaved 2 x 2 blocks [Re -Im; Im Re]", m->name);
    if (spsi_mtx_mirrors(m) && m->upper > 0 && m->lower == 0)
        spsi_note(m->ctx, "%s: %s, but stored by the upper triangle; mirrored",
                  m->name, spsi_mtx_symmetry_name(h->symmetry));
    if (m->rounded > 0)
        spsi_note(m->ctx, "%s: %lld integers beyond 2^53 were rounded",
                  m->name, (long long)m->rounded);
    if (m->tiny > 0)
        spsi_note(m->ctx, "%s: %lld values lie below the normal range of "
                  "doubles", m->name, (long long)m->tiny);
}
