/* SPDX-License-Identifier: BSD-3-Clause */
/* column_order.h - columns by falling use, so that the numbers of x that most
 * entries want stand together and can be kept near.
 *
 * Columns are sorted by a key of their count of entries, eight keys to a
 * factor of two, equal keys by number: one pass of a counting sort, on the
 * host or on a device, with the same result. */
#ifndef SPS_COLUMN_ORDER_H
#define SPS_COLUMN_ORDER_H

#include "csr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_COLUMN_KEYS 256

/* For host and device. */
#ifdef __CUDACC__
#define SPS_COLUMN_INLINE static __host__ __device__ inline
#else
#define SPS_COLUMN_INLINE static inline
#endif

typedef struct sps_column_order {
    int32_t *column;   /* ncol: the column that stands at each place */
    int32_t *rank;     /* ncol: the place of each column */
} sps_column_order;

/* 255 for a column without entries, less the more there are. */
SPS_COLUMN_INLINE uint32_t spsi_column_key(uint32_t uses)
{
    uint32_t octave = 0, eighth;

    if (uses == 0) return SPS_COLUMN_KEYS - 1;
    while (uses >> octave > 1) octave++;
    eighth = octave >= 3 ? uses >> (octave - 3) : uses << (3 - octave);
    return SPS_COLUMN_KEYS - 2 - (8 * octave + (eighth & 7));
}

/* On failure *order holds nothing. */
sps_status spsi_column_order_make(sps_context *ctx, const sps_csr *A,
                                  sps_column_order *order);
void spsi_column_order_free(sps_context *ctx, sps_column_order *order);

#ifdef __cplusplus
}
#endif
#endif
