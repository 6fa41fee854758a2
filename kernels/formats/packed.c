/* SPDX-License-Identifier: BSD-3-Clause */
/* packed.c - covers the columns of windows by segments of columns; see
 * packed.h. */
#include "formats/packed.h"

#include "matrix/windows.h"

_Static_assert((int)SPS_PACKED_SEGMENTS == (int)SPS_NEAR_SEGMENTS &&
               (int)SPS_PACKED_REACH == (int)SPS_NEAR_REACH,
               "what the feature `near` foretells");

int spsi_packed_cover(const int32_t *col, int64_t count, int32_t *base)
{
    const int used = spsi_columns_cover(col, count, SPS_PACKED_REACH,
                                        SPS_PACKED_SEGMENTS, base);

    if (used > SPS_PACKED_SEGMENTS) return 0;
    for (int s = used; s < SPS_PACKED_SEGMENTS; s++)
        base[s] = used > 0 ? base[used - 1] : 0;
    return used > 0 ? used : 1; /* a window of empty rows */
}
