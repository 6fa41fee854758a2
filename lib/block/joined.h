/* SPDX-License-Identifier: BSD-3-Clause */
/* joined.h - small matrices whose sums over processes are formed together.
 *
 * A block operation that sums over rows (block.h) waits for the other
 * processes.  With a result from spsi_joined_small it does not: the result has
 * the sums over own rows, and is complete after spsi_joined_sum, one sum for
 * all such results.  The bits are those of single sums, if the caller's
 * function sums a number in the same order whatever is beside it. */
#ifndef SPS_JOINED_H
#define SPS_JOINED_H

#include "block/small.h"
#include "core/owner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The place of such results, by which block operations recognise them.  No
 * other small matrix has it. */
#define SPS_JOINED SPS_AUTO

typedef struct sps_joined {
    sps_context *ctx;
    double *sums;
    int64_t most, used;       /* doubles */
} sps_joined;

/* *j_p has room for results of `most` doubles, or is NULL where nothing is to
 * be joined: one process, sums in the order of across_ranks, or a GPU. */
sps_status spsi_own_joined(sps_owner *o, int64_t most, sps_joined **j_p);
/* Begins anew. */
void spsi_joined_open(sps_joined *j);
/* Returns a matrix for a result of at most so many rows and columns. */
sps_small spsi_joined_small(sps_joined *j, int rows, int cols);
/* Sums the results since spsi_joined_open over the processes. */
sps_status spsi_joined_sum(sps_joined *j);
/* to = from, one of these results, with its shape. */
void spsi_joined_take(const sps_small *from, sps_small *to);
/* Whether C is such a result. */
static inline bool spsi_small_joined(const sps_small *C)
{
    return C->place == SPS_JOINED;
}

#ifdef __cplusplus
}
#endif
#endif
