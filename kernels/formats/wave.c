/* SPDX-License-Identifier: BSD-3-Clause */
/* wave.c - see wave.h. */
#include "formats/wave.h"

static int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smallest(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns the position of the panel that contains a row. */
static int64_t position_of(const sps_wave_panel *panel, int64_t panels,
                           bool backward, int64_t row)
{
    int64_t low = 0, high = panels;

    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if (panel[middle].row <= row) low = middle;
        else high = middle;
    }
    return backward ? panels - 1 - low : low;
}

void spsi_wave_order(const sps_wave_panel *panel, int64_t panels,
                     bool backward, int64_t *after)
{
    for (int64_t s = 0; s < panels; s++) after[s] = s;
    for (int64_t s = 0; s < panels; s++) {
        const sps_wave_panel *p = panel + (backward ? panels - 1 - s : s);

        if (p->last < p->first) continue;
        const int64_t a = position_of(panel, panels, backward, p->first);
        const int64_t b = position_of(panel, panels, backward, p->last);
        const int64_t low = smallest(a, b);

        after[s] = largest(after[s], largest(a, b));
        after[low] = largest(after[low], s);
    }
    /* Product j has taken the positions before s, under their conditions. */
    for (int64_t s = 1; s < panels; s++)
        after[s] = largest(after[s], after[s - 1]);
}

int64_t spsi_wave_held(const int64_t *after, int64_t panels, int products)
{
    int64_t most = 0;
    sps_wave w;

    spsi_wave_open(&w, after, panels, products);
    for (int j; (j = spsi_wave_next(&w)) > 0;) {
        w.done[j]++;
        if (j == 1) most = largest(most, w.done[1] - w.done[products]);
    }
    return products == 1 ? smallest(1, panels) : most;
}
