/* SPDX-License-Identifier: BSD-3-Clause */
/* check_wave.c - several products in one pass over panels: played with rows
 * that know which product made them, through a ring of slots whose copies are
 * counted. */
#include <check.h>

#include "formats/ring.h"
#include "formats/wave.h"
#include "tests/support/draw.h"
#include "tests/support/runner.h"

enum { PANELS = 60, ROWS = 6 * PANELS };

/* Panels of 1 to 5 rows, whose columns are a range each. */
typedef struct matrix {
    sps_wave_panel panel[PANELS + 1];
    int64_t panels, n;
    int64_t after[2][PANELS];
} matrix;

/* A matrix whose columns are at most `reach` rows away. */
static void random_panels(matrix *m, draw *d, int panels,
                          int reach)
{
    m->panels = panels;
    m->n = 0;
    for (int64_t i = 0; i < panels; i++) {
        m->panel[i].row = m->n;
        m->n += draw_int(d, 1, 5);
    }
    m->panel[panels].row = m->n;
    for (int64_t i = 0; i < panels; i++) {
        sps_wave_panel *p = &m->panel[i];
        const int64_t span = draw_int(d, 0, reach);

        p->first = p->row > span ? p->row - span : 0;
        p->last = p[1].row - 1 + draw_int(d, 0, reach);
        if (p->last >= m->n) p->last = m->n - 1;
        if (draw_int(d, 1, 8) == 1) p->last = p->first - 1;   /* no columns */
    }
    for (int back = 0; back < 2; back++)
        spsi_wave_order(m->panel, panels, back, m->after[back]);
}

/* Rows of both blocks, as the numbers of the products that made them, and the
 * panels in the slots of a ring. */
typedef struct play {
    const matrix *m;
    int made[2][ROWS];
    sps_ring ring;
    int64_t panel[SPS_RING_MOST];
    int64_t copies;
} play;

static void begin_products(play *p)
{
    for (int64_t i = 0; i < p->m->n; i++) {
        p->made[0][i] = 0;
        p->made[1][i] = -1;
    }
}

static void copy(play *p, int64_t step)
{
    p->panel[spsi_ring_slot(&p->ring, step)] = spsi_ring_panel(&p->ring, step);
    p->copies++;
}

/* Product j of panel i: whether all that it reads is there. */
static bool multiply(play *p, int j, int64_t i)
{
    const sps_wave_panel *q = &p->m->panel[i];
    const int *x = p->made[(j - 1) % 2];
    int *y = p->made[j % 2];
    bool right = true;

    for (int64_t c = q->first; c <= q->last; c++)
        right = right && x[c] == j - 1;
    for (int64_t r = q->row; r < q[1].row; r++) {
        right = right && x[r] == j - 1 && y[r] == j - 2;
        y[r] = j;
    }
    return right;
}

/* Plays one pass of `products` products, in which a slot is released after the
 * last product of its panel.  Returns whether each product found the panel it
 * needs in its slot and the rows that it reads as the product before left
 * them. */
static bool pass(play *p, int products)
{
    const sps_ring *r = &p->ring;
    bool right = true;
    sps_wave w;

    begin_products(p);
    for (int64_t t = r->held; t < r->slots && t < r->panels; t++) copy(p, t);
    spsi_wave_open(&w, p->m->after[r->backward], r->panels, products);
    for (int j; (j = spsi_wave_next(&w)) > 0;) {
        const int64_t t = w.done[j]++, i = spsi_ring_panel(r, t);

        right = right && p->panel[spsi_ring_slot(r, t)] == i;
        right = multiply(p, j, i) && right;
        if (j == products && t + r->slots < r->panels) copy(p, t + r->slots);
    }
    for (int j = 1; j <= products; j++)
        ck_assert_int_eq(w.done[j], r->panels);
    spsi_ring_turn(&p->ring);
    return right;
}

static int64_t held(const matrix *m, int products)
{
    const int64_t a = spsi_wave_held(m->after[0], m->panels, products);
    const int64_t b = spsi_wave_held(m->after[1], m->panels, products);

    return a > b ? a : b;
}

START_TEST(every_product_reads_what_the_one_before_has_made)
{
    draw d = { 5 };
    static matrix m;
    static play p;

    for (int round = 0; round < 4000; round++) {
        const int products = 1 + round % 9;

        random_panels(&m, &d, draw_int(&d, 1, PANELS),
                      draw_int(&d, 0, 39));
        p = (play){ .m = &m };
        spsi_ring_open(&p.ring, m.panels, (int)held(&m, products));
        for (int i = 0; i < 4; i++) ck_assert(pass(&p, products));
    }
}
END_TEST

/* With one slot less a panel is replaced before its last product. */
START_TEST(no_fewer_slots_suffice)
{
    draw d = { 6 };
    static matrix m;
    static play p;

    for (int round = 0; round < 300; round++) {
        random_panels(&m, &d, PANELS, 4);
        p = (play){ .m = &m };
        spsi_ring_open(&p.ring, m.panels, (int)held(&m, 4) - 1);
        ck_assert(!(pass(&p, 4) && pass(&p, 4)));
    }
}
END_TEST

/* A product that does not wait for the last position of `after` reads, or
 * replaces, what it must not. */
START_TEST(no_position_may_be_taken_earlier)
{
    draw d = { 7 };
    static matrix m;
    static play p;

    for (int round = 0; round < 2000; round++) {
        const int64_t s = draw_int(&d, 0, PANELS - 1);

        random_panels(&m, &d, PANELS, 20);
        if (s > 0 && m.after[0][s] == m.after[0][s - 1]) continue;
        m.after[0][s]--;
        p = (play){ .m = &m };
        spsi_ring_open(&p.ring, PANELS, PANELS);
        ck_assert(!pass(&p, 2));
    }
}
END_TEST

/* Seven products, Chebyshev of degree 8, with a band of half a panel: one copy
 * of each panel in all, where one product a pass makes almost seven. */
START_TEST(a_band_passes_once_for_a_polynomial)
{
    static matrix m = { .panels = PANELS, .n = 4 * PANELS };
    static play p = { .m = &m };

    for (int64_t i = 0; i <= PANELS; i++)
        m.panel[i] = (sps_wave_panel){ 4 * i, i ? 4 * i - 2 : 0,
                                       4 * i + (i < PANELS - 1 ? 5 : 3) };
    for (int back = 0; back < 2; back++)
        spsi_wave_order(m.panel, PANELS, back, m.after[back]);
    ck_assert_int_eq(held(&m, 7), 7);
    spsi_ring_open(&p.ring, PANELS, 9);
    for (int i = 0; i < 3; i++) {
        const int64_t before = p.copies;

        ck_assert(pass(&p, 7));
        ck_assert_int_eq(p.copies - before, i ? PANELS - 9 : PANELS);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_product_reads_what_the_one_before_has_made),
    RUNNER_TEST(no_fewer_slots_suffice),
    RUNNER_TEST(no_position_may_be_taken_earlier),
    RUNNER_TEST(a_band_passes_once_for_a_polynomial),
};
RUNNER_MAIN("wave", tests)
