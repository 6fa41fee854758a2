/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_sums.h - sums over the rows of all processes whose bits do not depend
 * on the number of processes (sps_context_options.across_ranks).
 *
 * The rows of all processes are divided into at most 1024 chunks of equal
 * numbers of rows (spsi_comm_chunk).  Partial sums of chunks are added by a
 * binary tree over the chunk numbers: node i of level l is the sum of nodes 2i
 * and 2i + 1 of level l - 1.  A process computes the largest nodes that lie in
 * its rows; these, at most 20 for each process, are gathered, and every process
 * adds up the rest of the tree.  The rows of each process must begin with a
 * chunk, otherwise EUNFIT. */
#ifndef SPS_CHUNK_SUMS_H
#define SPS_CHUNK_SUMS_H

#include "block/block.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes partial sums over own rows first .. first + n - 1. */
typedef sps_status spsi_chunk_fn(void *data, int64_t first, int64_t n,
                                   double *sums);

/* sums[j], j < items, = the sums over the rows of all processes, of which this
 * one has n.  Collective. */
sps_status spsi_chunk_sum(sps_context *ctx, int64_t n, int64_t items,
                            spsi_chunk_fn *fn, void *data, double *sums);

/* Returns rows first .. first + n - 1 of X. */
sps_block spsi_chunk_view(const sps_block *X, int64_t first, int64_t n);

/* out[j] = x_j' y_j. */
sps_status spsi_chunk_dots(const sps_block *X, const sps_block *Y,
                             double *out);
/* C = X'Y. */
sps_status spsi_chunk_gram(const sps_block *X, const sps_block *Y,
                             sps_small *C);
/* Replaces out[j], j < k, by the largest of all processes; NaN if there is
 * one. */
sps_status spsi_chunk_largest(sps_context *ctx, int k, double *out);
/* *first = the number of rows of the processes before this one. */
sps_status spsi_chunk_first(sps_context *ctx, int64_t n, int64_t *first);

#ifdef __cplusplus
}
#endif
#endif
