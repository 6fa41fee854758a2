/* SPDX-License-Identifier: BSD-3-Clause */
/* row_blocks.c - prefix sums over the chunks; see row_blocks.h. */
#include "formats/row_blocks.h"

sps_row_tally spsi_row_blocks_scan(sps_row_tally *tally, int64_t chunks)
{
    sps_row_tally sum = { 0, 0, 0 };

    for (int64_t c = 0; c < chunks; c++) {
        const sps_row_tally own = tally[c];

        tally[c] = sum;
        sum.blocks += own.blocks;
        sum.longs += own.longs;
        sum.parts += own.parts;
    }
    return sum;
}
