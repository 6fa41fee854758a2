/* SPDX-License-Identifier: BSD-3-Clause */
/* column_order.h - columns ordered by decreasing number of entries, so that the
 * entries of x that are used most are contiguous and can be held in fast
 * memory.
 *
 * Columns are sorted by a key derived from their number of entries, eight keys
 * per factor of two, equal keys by index: one pass of a counting sort, on the
 * host or on a device, with the same result. */
#ifndef SPS_COLUMN_ORDER_H
#define SPS_COLUMN_ORDER_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_COLUMN_KEYS 256

/* Functions for host and device. */
#ifdef __CUDACC__
#define SPS_COLUMN_INLINE static __host__ __device__ inline
#else
#define SPS_COLUMN_INLINE static inline
#endif

typedef struct sps_column_order {
    int32_t *column;   /* for each position, its column */
    int32_t *rank;     /* for each column, its position */
} sps_column_order;

/* Returns the sort key of a column with `uses` entries: the smaller the more
 * entries; 255 for a column without entries. */
SPS_COLUMN_INLINE uint32_t spsi_column_key(uint32_t uses)
{
    uint32_t octave = 0, eighth;

    if (uses == 0) return SPS_COLUMN_KEYS - 1;
    while (uses >> octave > 1) octave++;
    eighth = octave >= 3 ? uses >> (octave - 3) : uses << (3 - octave);
    return SPS_COLUMN_KEYS - 2 - (8 * octave + (eighth & 7));
}

#ifdef __cplusplus
}
#endif
#endif
