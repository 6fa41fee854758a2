/* SPDX-License-Identifier: BSD-3-Clause */
/* check_tca_lanes.c - the matricisation of TCA-SpMM: what the lanes load,
 * multiply and add is simulated on the host, with the register layout of
 * mma.m16n8k8 as PTX defines it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "formats/tca.h"
#include "tests/support/runner.h"

enum form { WIDE, PAIRS }; /* fp64 and tf32; bf16 and half */

typedef struct lane {
    double d[4], s[2], o[4];
} lane;

/* O += D S, registers as PTX defines them for m16n8k8.  PAIRS: d[0], d[1] are
 * the halves of the first register, s[0], s[1] those of the only one. */
static void mma(enum form form, lane l[32])
{
    double D[16][8], S[8][8];

    for (int gid = 0; gid < 8; gid++)
        for (int t = 0; t < 4; t++) {
            const lane *a = &l[4 * gid + t];

            if (form == WIDE) {
                D[gid][t] = a->d[0];
                D[gid + 8][t] = a->d[1];
                D[gid][t + 4] = a->d[2];
                D[gid + 8][t + 4] = a->d[3];
                S[t][gid] = a->s[0];
                S[t + 4][gid] = a->s[1];
            } else {
                D[gid][2 * t] = a->d[0];
                D[gid][2 * t + 1] = a->d[1];
                D[gid + 8][2 * t] = a->d[2];
                D[gid + 8][2 * t + 1] = a->d[3];
                S[2 * t][gid] = a->s[0];
                S[2 * t + 1][gid] = a->s[1];
            }
        }
    for (int r = 0; r < 16; r++)
        for (int q = 0; q < 8; q++)
            for (int k = 0; k < 8; k++)
                l[4 * (r % 8) + q / 2].o[2 * (r / 8) + q % 2] +=
                    D[r][k] * S[k][q];
}

/* One row: values, and the rows of X for its columns (length x n). */
typedef struct example {
    int length, n;
    double *a, *x;
} example;

/* Values and X, 0 beyond the end of the row or the block. */
static double value(const example *e, int p)
{
    return p < e->length ? e->a[p] : 0.0;
}
static double number(const example *e, int p, int j)
{
    return p < e->length && j < e->n ? e->x[p * e->n + j] : 0.0;
}

/* ----------------------------------------------------------- as published */

/* What lane 4 gid + t loads for columns from j on, entries from p on. */
static void load(enum form form, lane *l, const example *e, int g, int gid,
                 int t, int p, int j)
{
    const int chunk = p + 8 * spsi_tca_chunk(g, gid);
    const int left = j + spsi_tca_column(g, gid);
    const int low = form == WIDE ? t : 2 * t;
    const int high = form == WIDE ? t + 4 : 2 * t + 1;

    l->d[0] = number(e, chunk + low, left);
    l->d[form == WIDE ? 1 : 2] = number(e, chunk + low, left + 1);
    l->d[form == WIDE ? 2 : 1] = number(e, chunk + high, left);
    l->d[3] = number(e, chunk + high, left + 1);
    l->s[0] = gid < g ? value(e, p + 8 * gid + low) : 0.0;
    l->s[1] = gid < g ? value(e, p + 8 * gid + high) : 0.0;
}

/* The partial trace by shuffles down, as diagonal_sums in tca_device.cuh. */
static void trace(const lane l[32], int g, double two[32][2])
{
    for (int i = 0; i < 32; i++)
        for (int h = 0; h < 2; h++)
            two[i][h] = spsi_tca_diagonal(g, i / 4, i % 4)
                ? l[i].o[2 * h + spsi_tca_register(g, i / 4)] : 0.0;
    for (int s = 0; 1 << s < g; s++)
        for (int i = 0; i < 32; i++) { /* ascending: reads the old values */
            const int from = i + spsi_tca_distance(s);

            for (int h = 0; h < 2; h++)
                two[i][h] += two[from < 32 ? from : i][h];
        }
}

/* y of a row, tensor core product by product; y[n] is NaN where nothing was
 * written. */
static void play(enum form form, const example *e, double *y)
{
    const int g = spsi_tca_chunks(e->length), width = spsi_tca_width(g);

    for (int j = 0; j < e->n; j++) y[j] = NAN;
    for (int f = 0; f * width < e->n; f++) {
        lane l[32] = { 0 };
        double two[32][2];

        for (int p = 0; p < e->length; p += SPSI_TCA_STEP) {
            for (int i = 0; i < 32; i++)
                load(form, &l[i], e, g, i / 4, i % 4, p, f * width);
            mma(form, l);
        }
        trace(l, g, two);
        for (int gid = 0; gid < 8; gid += g)
            for (int h = 0; h < 2; h++) {
                const int j = f * width + spsi_tca_column(g, gid) + h;

                if (j < e->n) {
                    ck_assert(isnan(y[j]));
                    y[j] = two[4 * gid][h];
                }
            }
    }
}

typedef void (*player)(enum form form, const example *e, double *y);

/* scale(chunk) multiplies the values and divides X, so that the sums stay the
 * same. */
static void play_length(player play_it, int length, int n,
                        double (*scale)(int chunk))
{
    example e = { .length = length, .n = n };
    double *y = malloc((size_t)n * sizeof *y);

    e.a = malloc((size_t)length * sizeof *e.a);
    e.x = malloc((size_t)(length * n) * sizeof *e.x);
    for (int p = 0; p < length; p++) {
        e.a[p] = (p * 37 + 11) % 41 - 20;
        for (int j = 0; j < n; j++) e.x[p * n + j] = (p * 7 + j * 29) % 53 - 26;
    }
    for (enum form form = WIDE; form <= PAIRS; form++) {
        double *right = calloc((size_t)n, sizeof *right);
        example scaled = e;

        for (int p = 0; p < length; p++)
            for (int j = 0; j < n; j++) right[j] += e.a[p] * e.x[p * n + j];
        scaled.a = malloc((size_t)length * sizeof *e.a);
        scaled.x = malloc((size_t)(length * n) * sizeof *e.x);
        for (int p = 0; p < length; p++) {
            scaled.a[p] = e.a[p] * scale(p / 8);
            for (int j = 0; j < n; j++)
                scaled.x[p * n + j] = e.x[p * n + j] / scale(p / 8);
        }
        play_it(form, &scaled, y);
        for (int j = 0; j < n; j++)
            ck_assert_msg(y[j] == right[j], "length %d, form %d, column %d of "
                          "%d: %g, not %g", length, (int)form, j, n, y[j],
                          right[j]);
        free(right);
        free(scaled.a);
        free(scaled.x);
    }
    free(e.a);
    free(e.x);
    free(y);
}

static double one(int chunk) { return chunk >= 0 ? 1.0 : 0.0; }
/* Products of one chunk's values with another chunk's X overflow. */
static double huge(int chunk) { return chunk % 2 ? 0x1p-700 : 0x1p700; }

static const int LENGTHS[] = { 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65,
                               127, 128, 129, 1000 };

START_TEST(lanes_compute_the_dot_products)
{
    for (int l = 0; l < 17; l++)
        for (int n = 1; n <= 40; n++) play_length(play, LENGTHS[l], n, one);
}
END_TEST

START_TEST(what_overflows_off_the_diagonal_is_never_added)
{
    for (int l = 0; l < 12; l++)
        for (int n = 1; n <= 18; n++) play_length(play, LENGTHS[l], n, huge);
}
END_TEST

/* ------------------------------------------------------------------ direct */

/* Fragment f covers 16 consecutive columns for fp64; otherwise each lane has 2
 * * parts consecutive columns, 2 per fragment. */
static int direct_column(enum form form, int parts, int f, int gid)
{
    return form == WIDE && parts > 0 ? 16 * f + 2 * gid
                                     : 2 * (abs(parts) * gid + f);
}

/* parts < 0: tf32, with the register layout of fp64 and the column order of
 * bf16. */
static void play_direct(enum form form, int parts, const example *e, double *y)
{
    const int count = abs(parts);

    for (int j = 0; j < e->n; j++) y[j] = NAN;
    for (int first = 0; first < e->n; first += 16 * count) {
        lane l[4][32] = { 0 };

        for (int p = 0; p < e->length; p += 8)
            for (int f = 0; f < count; f++) {
                for (int i = 0; i < 32; i++) {
                    const int gid = i / 4, t = i % 4;
                    const int low = form == WIDE ? t : 2 * t;
                    const int high = form == WIDE ? t + 4 : 2 * t + 1;
                    const int j = first + direct_column(form, parts, f, gid);
                    lane *a = &l[f][i];

                    a->d[0] = number(e, p + low, j);
                    a->d[form == WIDE ? 1 : 2] = number(e, p + low, j + 1);
                    a->d[form == WIDE ? 2 : 1] = number(e, p + high, j);
                    a->d[3] = number(e, p + high, j + 1);
                    a->s[0] = value(e, p + low);
                    a->s[1] = value(e, p + high);
                }
                mma(form, l[f]);
            }
        for (int i = 0; i < 32; i++)
            for (int h = 0; h < 2 && i % 4 < count; h++) {
                const int j = first + h +
                    direct_column(form, parts, i % 4, i / 4);

                if (j < e->n) {
                    ck_assert(isnan(y[j]));
                    y[j] = l[i % 4][i].o[2 * h];
                }
            }
    }
}

static void direct_1(enum form form, const example *e, double *y)
{
    play_direct(form, 1, e, y);
}
static void direct_2(enum form form, const example *e, double *y)
{
    play_direct(form, 2, e, y);
}
static void direct_4(enum form form, const example *e, double *y)
{
    play_direct(form, 4, e, y);
}
static void direct_tf32(enum form form, const example *e, double *y)
{
    play_direct(form, -4, e, y);
}

START_TEST(lanes_without_a_trace_compute_the_same)
{
    static const player players[] = { direct_1, direct_2, direct_4,
                                      direct_tf32 };

    for (int p = 0; p < 4; p++)
        for (int l = 0; l < 17; l++)
            for (int n = 1; n <= 70; n += n < 18 ? 1 : 7)
                play_length(players[p], LENGTHS[l], n, one);
}
END_TEST

/* ------------------------------------------------------------------ narrow */

/* Four chunks: row[c] of chunk c, -1: none; rows begin at chunk `begin`. */
typedef struct quartet {
    int row[4], at[4]; /* index of the chunk within its row */
    int warps[4];      /* number of warps of the row */
} quartet;

/* Loads G chunks from c0 on. */
static void narrow_load(lane l[32], int G, const quartet *q, int c0,
                        const example *rows)
{
    for (int i = 0; i < 32; i++) {
        const int gid = i / 4, t = i % 4;
        const int c = c0 + spsi_tca_narrow_chunk(G, gid);
        const int j = spsi_tca_narrow_column(G, gid);
        const example none = { 0 };
        const example *e = q->row[c] < 0 ? &none : &rows[q->row[c]];
        const int p = 8 * q->at[c] + t;

        l[i].d[0] = number(e, p, j);
        l[i].d[1] = number(e, p, j + 1);
        l[i].d[2] = number(e, p + 4, j);
        l[i].d[3] = number(e, p + 4, j + 1);
        l[i].s[0] = value(e, p);
        l[i].s[1] = value(e, p + 4);
    }
}

/* The rows that end in these chunks: y[row * n + column]. */
static void narrow_sums(const lane l[32], int G, const quartet *q, int c0,
                        const example *rows, double *y)
{
    double two[32][2];

    for (int i = 0; i < 32; i++)
        for (int h = 0; h < 2; h++) two[i][h] = l[i].o[2 * h];
    for (int step = 1; step < G; step *= 2)
        for (int i = 0; i < 32; i++) {
            const int c = c0 + spsi_tca_narrow_chunk(G, i / 4);
            const int from = i + spsi_tca_narrow_distance(G, step);
            const int warps = q->row[c] < 0 ? 1 : q->warps[c];

            for (int h = 0; h < 2 && step < (warps < G ? warps : G); h++)
                two[i][h] += two[from < 32 ? from : i][h];
        }
    for (int i = 0; i < 32; i++) {
        const int mine = spsi_tca_narrow_chunk(G, i / 4), c = c0 + mine;
        const int span = q->warps[c] < G ? q->warps[c] : G;
        const int j = spsi_tca_narrow_column(G, i / 4);

        if (q->row[c] < 0 || mine % span ||
            i % 4 != spsi_tca_narrow_lane(G, i / 4))
            continue;
        for (int h = 0; h < 2 && j + h < rows[q->row[c]].n; h++)
            y[q->row[c] * rows[0].n + j + h] = two[i][h];
    }
}

/* Rows of these lengths, packed in order, longest first. */
static void play_narrow(int G, int n, const int *lengths, int count)
{
    example rows[8] = { 0 };
    double *y = calloc((size_t)(count * n), sizeof *y);
    quartet q[4];
    lane l[32] = { 0 };
    int at = 0;

    for (int r = 0; r < count; r++) {
        const int g = spsi_tca_chunks(lengths[r]);

        rows[r] = (example){ lengths[r], n, NULL, NULL };
        rows[r].a = malloc((size_t)lengths[r] * sizeof(double));
        rows[r].x = malloc((size_t)(lengths[r] * n) * sizeof(double));
        for (int p = 0; p < lengths[r]; p++) {
            /* Rows scaled very differently: any mixing of rows would show. */
            rows[r].a[p] = ldexp((p * 37 + r) % 41 - 20, r % 2 ? 600 : -600);
            for (int j = 0; j < n; j++)
                rows[r].x[p * n + j] = ldexp((p * 7 + j * 29 + r) % 53 - 26,
                                             r % 2 ? -600 : 600);
        }
        for (int c = 0; c < g; c++, at++) {
            q[at / 4].row[at % 4] = r;
            q[at / 4].at[at % 4] = c;
            q[at / 4].warps[at % 4] = g;
        }
    }
    for (; at % 4; at++) {
        q[at / 4].row[at % 4] = -1;
        q[at / 4].at[at % 4] = 0;
        q[at / 4].warps[at % 4] = 1;
    }
    for (int c = 0; c < at; c += G) {
        const quartet *u = &q[c / 4];
        bool ends = false;

        narrow_load(l, G, u, c % 4, rows);
        mma(WIDE, l);
        for (int s = c % 4; s < c % 4 + G; s++)
            ends = ends || (u->row[s] >= 0 && u->at[s] == u->warps[s] - 1);
        if (!ends) continue;
        narrow_sums(l, G, u, c % 4, rows, y);
        for (int i = 0; i < 32; i++)
            for (int o = 0; o < 4; o++) l[i].o[o] = 0;
    }
    for (int r = 0; r < count; r++) {
        for (int j = 0; j < n; j++) {
            double right = 0;

            for (int p = 0; p < lengths[r]; p++)
                right += rows[r].a[p] * rows[r].x[p * n + j];
            ck_assert_msg(y[r * n + j] == right, "%d chunks, %d columns, row "
                          "%d of %d entries, column %d: %g, not %g", G, n, r,
                          lengths[r], j, y[r * n + j], right);
        }
        free(rows[r].a);
        free(rows[r].x);
    }
    free(y);
}

START_TEST(chunks_that_share_a_product_keep_apart)
{
    static const int packs[][8] = { { 8, 7, 5, 1 }, { 16, 8, 3 }, { 15, 9 },
                                    { 32 }, { 20, 11, 2, 8 }, { 60, 3 },
                                    { 64, 30, 12, 4 }, { 33, 9, 1 }, { 2 } };

    for (int s = 0; s < 9; s++) {
        int count = 0;

        while (count < 8 && packs[s][count] > 0) count++;
        for (int G = 2; G <= 4; G *= 2)
            for (int n = 1; n <= 16 / G; n++)
                play_narrow(G, n, packs[s], count);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(lanes_compute_the_dot_products),
    RUNNER_TEST(what_overflows_off_the_diagonal_is_never_added),
    RUNNER_TEST(lanes_without_a_trace_compute_the_same),
    RUNNER_TEST(chunks_that_share_a_product_keep_apart),
};
RUNNER_MAIN("tca_lanes", tests)
