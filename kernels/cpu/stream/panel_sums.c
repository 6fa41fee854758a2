/* SPDX-License-Identifier: BSD-3-Clause */
/* panel_sums.c - see panel_sums.h.
 *
 * The list of columns is decoded once for all strips (rows or parts of rows)
 * that share it.  Up to three such strips are summed side by side, so that the
 * processor has several independent chains of multiply-adds and loads x once
 * for them.  Blocks are processed in slices of columns, whose sums are in
 * registers.  The values of the three strips are three streams with short steps
 * within a page, which processors hardly prefetch by themselves: they are
 * requested AHEAD bytes before they are used.
 *
 * Bytes: those of the panel, X again whenever the caches have evicted it, and
 * the sums. */
#include "cpu/stream/panel_sums.h"
#include "cpu/isa.h"

enum { STRIPS = 3, AHEAD = 4096 };

/* The columns of a strip in `col`, counted from the first column of x, and the
 * values of the strips that share them, decoded to `room` unless they are
 * doubles. */
typedef struct lists {
    int64_t col[SPS_PANEL_SEGMENT];
    double room[STRIPS][SPS_PANEL_SEGMENT];
    const double *val[STRIPS];
    int count;
} lists;

INLINE void decode_list(const sps_panel_sums *t, const sps_panel_window *w,
                        const sps_strip *s, lists *l)
{
    const uint16_t *delta = (const uint16_t *)(const void *)
        ((const char *)t->image + t->panel->deltas) + w->delta;
    const int32_t *whole = (const int32_t *)(const void *)delta;

    l->count = s[1].value - s[0].value;
    for (int e = 0; e < l->count; e++) {
        const uint16_t d = delta[s->delta + e];

        l->col[e] = (w->whole ? whole[s->delta + e]
                              : w->base[d >> SPS_PACKED_BITS] +
                                d % SPS_PACKED_REACH) - t->first_column;
    }
}

INLINE void decode_values(const sps_panel_sums *t, const sps_panel_window *w,
                          const sps_strip *s, lists *l, int r)
{
    const char *from = (const char *)t->image + t->panel->values;
    const double *table = (const double *)(const void *)
        ((const char *)t->image + t->panel->table);
    const int64_t first = (int64_t)w->value + s->value;

    l->val[r] = (const double *)(const void *)from + first;
    if (t->panel->kind == SPS_PANEL_DOUBLE) return;
    l->val[r] = l->room[r];
    for (int e = 0; e < l->count; e++)
        l->room[r][e] = t->panel->kind == SPS_PANEL_FLOAT
            ? (double)((const float *)(const void *)from)[first + e]
            : table[((const uint8_t *)from)[first + e]];
}

/* Computes N sums of each of R strips, from column j on; R and N are constants
 * after inlining. */
INLINE void sum_slice(const sps_panel_sums *t, const lists *l, const int R,
                      const int N, int j, double *to)
{
    double sum[STRIPS][16] = {{0}};

    for (int e = 0; e < l->count; e++) {
        const double *x = t->x + l->col[e] * t->k + j;

        if (j == 0)
            __builtin_prefetch((const char *)(l->val[0] + e * R) + AHEAD);
        for (int r = 0; r < R; r++)
            for (int i = 0; i < N; i++)
                sum[r][i] = __builtin_fma(l->val[r][e], x[i], sum[r][i]);
    }
    for (int r = 0; r < R; r++)
        for (int i = 0; i < N; i++) to[r * t->k + j + i] = sum[r][i];
}

/* Slices of several strips have up to 8 columns, so that the registers hold
 * their sums. */
INLINE void sum_block(const sps_panel_sums *t, const lists *l, const int R,
                      double *to)
{
    int j = 0;

    for (; R == 1 && j + 16 <= t->k; j += 16) sum_slice(t, l, R, 16, j, to);
    for (; j + 8 <= t->k; j += 8) sum_slice(t, l, R, 8, j, to);
    for (; j + 4 <= t->k; j += 4) sum_slice(t, l, R, 4, j, to);
    for (; j + 2 <= t->k; j += 2) sum_slice(t, l, R, 2, j, to);
    for (; j < t->k; j++) sum_slice(t, l, R, 1, j, to);
}

/* Returns how many strips from s on share one list, three at most. */
INLINE int sharing(const sps_strip *s, int left)
{
    int r = 1;

    while (r < left && r < STRIPS && s[r].delta == s[0].delta &&
           s[r].value > s[r - 1].value) r++;
    return r;
}

INLINE void sums_of(const sps_panel_sums *t, const sps_panel_window *w,
                    lists *l)
{
    const sps_strip *s = spsi_panel_strips(t->image, t->panel) + w->strip;
    double *to = t->sum + (w->row - t->first_row) * t->k;

    for (int i = 0, some; i < w->strips; i += some, to += some * t->k) {
        some = sharing(s + i, w->strips - i);
        decode_list(t, w, s + i, l);
        for (int r = 0; r < some; r++) decode_values(t, w, s + i + r, l, r);
        if (some == 1) sum_block(t, l, 1, to);
        if (some == 2) sum_block(t, l, 2, to);
        if (some == 3) sum_block(t, l, 3, to);
    }
}
CLONED(static, sums, (const sps_panel_sums *t, const sps_panel_window *w,
                      lists *l), (t, w, l))

void spsi_cpu_panel_sums(const sps_panel_sums *t, int32_t first, int32_t last)
{
    lists l;

    for (int32_t i = first; i < last; i++)
        sums(t, spsi_panel_windows(t->image) + i, &l);
}
