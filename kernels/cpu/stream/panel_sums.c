/* SPDX-License-Identifier: BSD-3-Clause */
/* panel_sums.c - see panel_sums.h.
 *
 * The list of columns is decoded once for all strips (rows or parts of rows)
 * that share it.  With one column of X, up to three such strips are summed side
 * by side, so that the processor has three independent chains of multiply-adds
 * and loads x once for them.  Blocks are processed in slices of up to 16
 * columns, whose sums are in registers.
 *
 * Bytes: those of the panel, X again whenever the caches have evicted it, and
 * the sums. */
#include "cpu/stream/panel_sums.h"
#include "cpu/isa.h"

enum { STRIPS = 3 };

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

/* Computes R sums with one column of X; R is a constant after inlining. */
INLINE void sum_vector(const sps_panel_sums *t, const lists *l, const int R,
                       double *to)
{
    double sum[STRIPS] = {0};

    for (int e = 0; e < l->count; e++) {
        const double x = t->x[l->col[e]];

        for (int r = 0; r < R; r++)
            sum[r] = __builtin_fma(l->val[r][e], x, sum[r]);
    }
    for (int r = 0; r < R; r++) to[r] = sum[r];
}

/* Computes N sums of one strip, from column j on; N is a constant after
 * inlining. */
INLINE void sum_slice(const sps_panel_sums *t, const lists *l, int r,
                      const int N, int j, double *to)
{
    double sum[16] = {0};

    for (int e = 0; e < l->count; e++) {
        const double *x = t->x + l->col[e] * t->k + j;

        for (int i = 0; i < N; i++)
            sum[i] = __builtin_fma(l->val[r][e], x[i], sum[i]);
    }
    for (int i = 0; i < N; i++) to[j + i] = sum[i];
}

INLINE void sum_block(const sps_panel_sums *t, const lists *l, int r,
                      double *to)
{
    int j = 0;

    for (; j + 16 <= t->k; j += 16) sum_slice(t, l, r, 16, j, to);
    for (; j + 8 <= t->k; j += 8) sum_slice(t, l, r, 8, j, to);
    for (; j + 4 <= t->k; j += 4) sum_slice(t, l, r, 4, j, to);
    for (; j + 2 <= t->k; j += 2) sum_slice(t, l, r, 2, j, to);
    for (; j < t->k; j++) sum_slice(t, l, r, 1, j, to);
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
        for (int r = 0; r < some && t->k > 1; r++)
            sum_block(t, l, r, to + r * t->k);
        if (t->k == 1 && some == 1) sum_vector(t, l, 1, to);
        if (t->k == 1 && some == 2) sum_vector(t, l, 2, to);
        if (t->k == 1 && some == 3) sum_vector(t, l, 3, to);
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
