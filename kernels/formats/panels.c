/* SPDX-License-Identifier: BSD-3-Clause */
/* panels.c - packs rows into panels (panels.h).  For each panel these are made,
 * in order: windows and strips from the lengths of rows, in one thread; the
 * segments of columns and the lists that strips share, in parallel over
 * windows; the kind of its values; then deltas and values, in parallel over
 * windows. */
#include <string.h>

#include "core/team.h"
#include "formats/panels.h"
#include "matrix/windows.h"

/* Largest number of bytes of a window without its strips, and of a strip of
 * `entries` entries.  The 4 bytes are for one delta that a window with 32-bit
 * columns may skip. */
enum { WINDOW_BYTES = sizeof(sps_panel_window) + sizeof(sps_strip) + 4 };
#define STRIP_BYTES(entries) (sizeof(sps_strip) + 12 * (size_t)(entries))
#define SECTIONS_BYTES ((size_t)5 * 16)

static size_t aligned(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

void spsi_packer_open(sps_packer *k, size_t room)
{
    *k = (sps_packer){ .room = room & ~(size_t)15 };
}

void spsi_packer_close(sps_context *ctx, sps_packer *k)
{
    spsi_free(ctx, k->long_row);
    spsi_free(ctx, k->long_part);
    spsi_free(ctx, k->window);
    spsi_free(ctx, k->strip);
    *k = (sps_packer){ 0 };
}

/* Enlarges *array to at least `count` elements of `size` bytes. */
static sps_status hold(sps_context *ctx, int64_t count, size_t size,
                       int64_t *room, void **array)
{
    const int64_t more = 2 * *room + 1024;
    sps_status st = SPS_OK;

    if (count <= *room) return SPS_OK;
    SPS_TRY(spsi_resize(ctx, (size_t)more * size, array));
    *room = more;
fail:
    return st;
}

/* ---------------------------------------------------------------- the cut */

typedef struct cut {
    sps_context *ctx;
    sps_packer *k;
    const sps_panel_rows *rows;
    sps_panel *panel;
    int64_t begin;             /* offset of the first entry of the panel */
    int64_t strips;            /* strips so far, with one more for each
                                  window */
    size_t bytes;              /* upper bound of the panel's bytes so far */
} cut;

static sps_status add_long(sps_context *ctx, sps_packer *k, int64_t row)
{
    int64_t room = k->longs_room;
    sps_status st;

    SPS_TRY(hold(ctx, k->longs + 1, sizeof *k->long_row, &room,
                 (void **)&k->long_row));
    SPS_TRY(hold(ctx, k->longs + 1, sizeof *k->long_part, &k->longs_room,
                 (void **)&k->long_part));
    k->long_row[k->longs] = row;
    k->long_part[k->longs++] = k->parts;
fail:
    return st;
}

static sps_status open_window(cut *c, bool parts, sps_panel_window **w_p)
{
    sps_packer *k = c->k;
    sps_status st;

    SPS_TRY(hold(c->ctx, c->panel->windows + 1, sizeof *k->window,
                 &k->windows_room, (void **)&k->window));
    *w_p = &k->window[c->panel->windows++];
    **w_p = (sps_panel_window){
        .row = parts ? k->parts : k->row, .parts = parts,
        .strip = (uint32_t)c->strips, .value = (uint32_t)c->panel->entries };
    /* A further strip, whose beginning is the end of the last one. */
    c->strips++;
    c->bytes += WINDOW_BYTES;
fail:
    return st;
}

/* Adds a strip of `entries` entries to the last window, or to a new one; *full
 * is set if the panel has no space for it. */
static sps_status add_strip(cut *c, sps_panel_window **w_p, bool parts,
                            int64_t entries, bool *full)
{
    sps_packer *k = c->k;
    sps_panel_window *w = *w_p;
    const bool fresh = !w || w->parts != parts ||
                       w->strips == SPS_PANEL_STRIPS ||
                       w->entries + entries > SPS_PANEL_ENTRIES;
    sps_status st = SPS_OK;

    *full = c->bytes + (fresh ? WINDOW_BYTES : 0) + STRIP_BYTES(entries) >
            k->room;
    if (*full) return SPS_OK;
    if (fresh) SPS_TRY(open_window(c, parts, w_p));
    w = *w_p;
    SPS_TRY(hold(c->ctx, c->strips + 1, sizeof *k->strip, &k->strips_room,
                 (void **)&k->strip));
    k->strip[w->strip + w->strips++].value = (uint16_t)w->entries;
    w->entries += (uint32_t)entries;
    k->strip[w->strip + w->strips].value = (uint16_t)w->entries;
    c->strips++;
    c->panel->entries += entries;
    c->bytes += STRIP_BYTES(entries);
fail:
    return st;
}

/* Adds the next strip: a row, or a segment of a long row. */
static sps_status next_strip(cut *c, sps_panel_window **w_p, bool *full)
{
    sps_packer *k = c->k;
    const int64_t *ptr = c->rows->rowptr + (k->row - c->rows->first);
    const int64_t length = ptr[1] - ptr[0];
    const bool parts = length > SPS_PANEL_SEGMENT;
    const int64_t left = length - k->segment * SPS_PANEL_SEGMENT;
    const bool last = left <= SPS_PANEL_SEGMENT;
    sps_status st;

    SPS_TRY(add_strip(c, w_p, parts, last ? left : SPS_PANEL_SEGMENT, full));
    if (*full) return SPS_OK;
    if (parts && k->segment == 0) SPS_TRY(add_long(c->ctx, k, k->row));
    k->parts += parts;
    k->segment = last ? 0 : k->segment + 1;
    k->row += last;
    c->panel->rows += last;
fail:
    return st;
}

static sps_status cut_panel(cut *c)
{
    sps_packer *k = c->k;
    const int64_t end = c->rows->first + c->rows->count;
    sps_panel_window *w = NULL;
    sps_status st = SPS_OK;
    bool full = false;

    c->begin = c->rows->rowptr[k->row - c->rows->first] +
               k->segment * SPS_PANEL_SEGMENT;
    c->bytes = SECTIONS_BYTES;
    while (k->row < end && !full) SPS_TRY(next_strip(c, &w, &full));
fail:
    return st;
}

/* ----------------------------------------------------------------- columns */

typedef struct job {
    const sps_panel_rows *rows;
    sps_packer *k;
    const sps_panel *panel;
    int64_t begin;
    char *image;
    const struct dictionary *table;
    int64_t inexact;
    int64_t least, greatest;   /* smallest column, and negative of the largest
                                  one */
} job;

/* Returns the columns of strip s of a window, and their number in *count. */
static const int32_t *columns_of(const job *j, const sps_panel_window *w,
                                 int s, int64_t *count)
{
    const sps_strip *strip = j->k->strip + w->strip + s;

    *count = strip[1].value - strip[0].value;
    return j->rows->col + j->begin + w->value + strip->value;
}

static bool same_list(const job *j, const sps_panel_window *w, int s)
{
    int64_t before, here;
    const int32_t *a, *b;

    if (s == 0) return false;
    a = columns_of(j, w, s - 1, &before);
    b = columns_of(j, w, s, &here);
    return before == here && !memcmp(a, b, (size_t)here * sizeof *a);
}

static void note_range(job *j, const sps_panel_window *w)
{
    const int32_t *col = j->rows->col + j->begin + w->value;

    for (uint32_t e = 0; e < w->entries; e++) {
        if (col[e] < __atomic_load_n(&j->least, __ATOMIC_RELAXED))
            spsi_team_least(&j->least, col[e]);
        if (-(int64_t)col[e] < __atomic_load_n(&j->greatest, __ATOMIC_RELAXED))
            spsi_team_least(&j->greatest, -(int64_t)col[e]);
    }
}

/* Computes the bases of the windows, and where the list of each strip
 * begins. */
static void cover_windows(void *data, int64_t from, int64_t to)
{
    job *j = data;

    for (int64_t i = from; i < to; i++) {
        sps_panel_window *w = &j->k->window[i];
        sps_strip *strip = j->k->strip + w->strip;
        const int used = spsi_columns_cover(
            j->rows->col + j->begin + w->value, w->entries, SPS_PACKED_REACH,
            SPS_PACKED_SEGMENTS, w->base);
        uint32_t lists = 0;

        note_range(j, w);
        w->whole = used > SPS_PACKED_SEGMENTS;
        for (int s = used; s < SPS_PACKED_SEGMENTS; s++)
            w->base[s] = used > 0 ? w->base[used - 1] : 0;
        for (int s = 0; s < w->strips; s++) {
            const bool same = same_list(j, w, s);

            strip[s].delta = same ? strip[s - 1].delta : (uint16_t)lists;
            if (!same) lists += strip[s + 1].value - strip[s].value;
        }
        strip[w->strips].delta = (uint16_t)lists;
        w->lists = lists;
    }
}

/* Places the deltas of all windows one after the other; returns their
 * number. */
static size_t place_lists(sps_packer *k, const sps_panel *panel)
{
    size_t at = 0;

    for (int32_t i = 0; i < panel->windows; i++) {
        sps_panel_window *w = &k->window[i];

        if (w->whole) at += at % 2;
        w->delta = (uint32_t)at;
        at += (w->whole ? 2 : 1) * (size_t)w->lists;
    }
    return at;
}

static uint16_t delta_of(int32_t col, const int32_t *base)
{
    int s = SPS_PACKED_SEGMENTS - 1;

    while (base[s] > col) s--;
    return (uint16_t)(s << SPS_PACKED_BITS | (col - base[s]));
}

static void write_lists(const job *j, const sps_panel_window *w)
{
    const sps_strip *strip = j->k->strip + w->strip;
    uint16_t *to = (uint16_t *)(j->image + j->panel->deltas) + w->delta;

    for (int s = 0; s < w->strips; s++) {
        int64_t count;
        const int32_t *col = columns_of(j, w, s, &count);

        /* The strip shares the list of the strip before, unless that one is
         * empty and has none. */
        if (s > 0 && strip[s].delta == strip[s - 1].delta &&
            strip[s].value > strip[s - 1].value) continue;
        if (w->whole)
            memcpy((int32_t *)(void *)to + strip[s].delta, col,
                   (size_t)count * sizeof *col);
        else
            for (int64_t e = 0; e < count; e++)
                to[strip[s].delta + e] = delta_of(col[e], w->base);
    }
}

/* ------------------------------------------------------------------ values */

/* Distinct values, compared by their bits; a float counts as the double that
 * equals it. */
typedef struct dictionary {
    int count;
    double value[SPS_PANEL_VALUES];
    uint16_t slot[1024];       /* number of a value plus 1; 0 if the slot is
                                  free */
} dictionary;

static uint64_t bits_of(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* Returns the slot of v in the hash table, or the free slot where it
 * belongs. */
static uint32_t slot_of(const dictionary *d, double v)
{
    const uint64_t bits = bits_of(v);
    uint32_t i = (uint32_t)((bits * 0x9e3779b97f4a7c15u) >> 54);

    while (d->slot[i] && bits_of(d->value[d->slot[i] - 1]) != bits)
        i = (i + 1) % 1024;
    return i;
}

static double value_at(const sps_panel_rows *rows, int64_t e)
{
    return rows->dtype == SPS_F64 ? ((const double *)rows->val)[e]
                                  : (double)((const float *)rows->val)[e];
}

/* Returns whether the distinct values of the panel fit a table; a panel of few
 * entries has no table. */
static bool tabulate(const job *j, dictionary *d)
{
    memset(d, 0, sizeof *d);
    if (j->panel->entries < 4 * SPS_PANEL_VALUES) return false;
    for (int64_t e = 0; e < j->panel->entries; e++) {
        const double v = value_at(j->rows, j->begin + e);
        const uint32_t i = slot_of(d, v);

        if (d->slot[i]) continue;
        if (d->count == SPS_PANEL_VALUES) return false;
        d->value[d->count++] = v;
        d->slot[i] = (uint16_t)d->count;
    }
    return true;
}

static void count_inexact(void *data, int64_t from, int64_t to)
{
    job *j = data;
    const double *v = (const double *)j->rows->val + j->begin;

    for (int64_t e = from; e < to; e++)
        if (bits_of((double)(float)v[e]) != bits_of(v[e])) {
            spsi_team_add(&j->inexact, 1);
            return;
        }
}

static sps_panel_kind kind_of(sps_context *ctx, job *j, dictionary *d)
{
    if (tabulate(j, d)) return SPS_PANEL_TABLE;
    if (j->rows->dtype == SPS_F32) return SPS_PANEL_FLOAT;
    j->inexact = 0;
    spsi_team_run(ctx, j->panel->entries, j->panel->entries, count_inexact, j);
    return j->inexact ? SPS_PANEL_DOUBLE : SPS_PANEL_FLOAT;
}

static size_t value_size(sps_panel_kind kind)
{
    return kind == SPS_PANEL_DOUBLE ? 8 : kind == SPS_PANEL_FLOAT ? 4 : 1;
}

static void write_values(const job *j, const sps_panel_window *w)
{
    char *to = j->image + j->panel->values;
    const int64_t first = w->value, end = first + w->entries;

    for (int64_t e = first; e < end; e++) {
        const double v = value_at(j->rows, j->begin + e);

        if (j->panel->kind == SPS_PANEL_DOUBLE)
            ((double *)(void *)to)[e] = v;
        else if (j->panel->kind == SPS_PANEL_FLOAT)
            ((float *)(void *)to)[e] = (float)v;
        else
            ((uint8_t *)to)[e] =
                (uint8_t)(j->table->slot[slot_of(j->table, v)] - 1);
    }
}

static void write_windows(void *data, int64_t from, int64_t to)
{
    const job *j = data;

    for (int64_t i = from; i < to; i++) {
        write_lists(j, &j->k->window[i]);
        write_values(j, &j->k->window[i]);
    }
}

/* ------------------------------------------------------------------- panel */

/* Sets the offsets of the sections. */
static void lay_out(sps_panel *p, int64_t strips, size_t deltas)
{
    p->strips = aligned((size_t)p->windows * sizeof(sps_panel_window));
    p->deltas = aligned(p->strips + (size_t)strips * sizeof(sps_strip));
    p->table = aligned(p->deltas + deltas * sizeof(uint16_t));
    p->values = p->table;
    if (p->kind == SPS_PANEL_TABLE)
        p->values += SPS_PANEL_VALUES * sizeof(double);
    p->bytes = aligned(p->values + (size_t)p->entries * value_size(p->kind));
}

sps_status spsi_packer_next(sps_context *ctx, sps_packer *k,
                            const sps_panel_rows *rows, void *image,
                            sps_panel *panel)
{
    cut c = { .ctx = ctx, .k = k, .rows = rows, .panel = panel };
    job j = { .rows = rows, .k = k, .panel = panel, .image = image };
    dictionary table;
    sps_status st;

    *panel = (sps_panel){ .row = k->row };
    SPS_TRY(cut_panel(&c));
    j.begin = c.begin;
    j.least = j.greatest = panel->entries > 0 ? INT32_MAX : 0;
    j.table = &table;
    panel->kind = kind_of(ctx, &j, &table);
    spsi_team_run(ctx, panel->windows, 4 * panel->entries, cover_windows, &j);
    panel->first_column = (int32_t)j.least;
    panel->last_column = (int32_t)(panel->entries > 0 ? -j.greatest : -1);
    lay_out(panel, c.strips, place_lists(k, panel));
    memcpy(image, k->window, (size_t)panel->windows * sizeof *k->window);
    memcpy(j.image + panel->strips, k->strip,
           (size_t)c.strips * sizeof *k->strip);
    if (panel->kind == SPS_PANEL_TABLE)
        memcpy(j.image + panel->table, table.value, sizeof table.value);
    spsi_team_run(ctx, panel->windows, 4 * panel->entries, write_windows, &j);
fail:
    return st;
}
