/* SPDX-License-Identifier: BSD-3-Clause */
/* wave.h - several products with a square matrix in one pass over its panels,
 * as a function of the columns that each panel contains.
 *
 * Products 1 .. m compute Z_j from A Z_(j-1), and, in the row that is computed,
 * from Z_(j-1), Z_(j-2) and other blocks.  Z_j is stored in the block of
 * Z_(j-2).  Each product takes the panels in the order of the pass, at
 * positions 0, 1, ...; product j may take position s when product j - 1 has
 * taken
 *
 *     all positions with rows that occur as columns of s, and s itself;
 *     all positions whose columns occur as rows of s: product j - 1 reads there
 *     Z_(j-2), which product j overwrites.
 *
 * after[s] is the largest of these positions.  A panel is needed from product 1
 * to product m: of a matrix whose columns reach over b panels, m b + 1 panels
 * at most are needed at a time, whatever their number. */
#ifndef SPS_WAVE_H
#define SPS_WAVE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_WAVE_MOST = 32 };     /* largest number of products of a pass */

/* A panel: its first row, and the range of columns that occur; last < first if
 * there are none. */
typedef struct sps_wave_panel {
    int64_t row, first, last;
} sps_wave_panel;

typedef struct sps_wave {
    const int64_t *after;
    int64_t panels;
    int products;
    int64_t done[SPS_WAVE_MOST + 1]; /* done[j]: number of positions that
                                        product j has taken */
} sps_wave;

static inline void spsi_wave_open(sps_wave *w, const int64_t *after,
                                  int64_t panels, int products)
{
    *w = (sps_wave){ .after = after, .panels = panels, .products = products };
}

/* Returns the product that takes its next position, done[product], which the
 * caller then increases; the last product that can, so that panels are released
 * early.  0 if all products are complete. */
static inline int spsi_wave_next(const sps_wave *w)
{
    int j = w->products;

    while (j > 1 && (w->done[j] == w->panels ||
                     w->after[w->done[j]] >= w->done[j - 1])) j--;
    return w->done[j] < w->panels ? j : 0;
}

/* Sets after[0 .. panels - 1] for passes in this direction.  Panels are in the
 * order of their rows and each contains at least one. */
void spsi_wave_order(const sps_wave_panel *panel, int64_t panels,
                     bool backward, int64_t *after);
/* Returns the largest number of panels that `products` products in one pass
 * need at a time. */
int64_t spsi_wave_held(const int64_t *after, int64_t panels, int products);

#ifdef __cplusplus
}
#endif
#endif
