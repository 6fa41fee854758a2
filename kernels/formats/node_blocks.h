/* SPDX-License-Identifier: BSD-3-Clause */
/* node_blocks.h - node-block CSR: aligned b x b blocks, b = 2 .. 8, one column
 * index for each (the BCSR of Im and Yelick, "Optimizing sparse matrix
 * computations for register reuse in SPARSITY", ICCS 2001).
 *
 * Block row I holds rows b I .. b I + b - 1 and, ascending, the blocks with a
 * stored entry.  A block is stored by columns, so that the b numbers that meet
 * one row of X lie side by side, and those of a block row are one array of
 * K x b numbers, K = b times its blocks:
 *
 *   column[s]                      block column of block s
 *   val[(s b + c) b + r]           its entry (r, c)
 *
 * Entries that are not stored in the matrix, also those of rows and columns
 * beyond its edge, are zeros.  Bytes: 8 b b + 4 a block where CSR has 12 b b.
 *
 * The arrays lie on the host here; plans hold the same struct with arrays in
 * their place. */
#ifndef SPS_FORMAT_NODE_BLOCKS_H
#define SPS_FORMAT_NODE_BLOCKS_H

#include "lib/csr.h"
#include "lib/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_NODE_MIN = 2, SPS_NODE_MAX = 8 };   /* b */

typedef struct sps_node_blocks {
    int b;
    int64_t nrow, ncol;        /* of the matrix */
    int64_t mb, nb;            /* block rows and block columns */
    int64_t count;             /* blocks */
    int64_t *start;            /* mb + 1: first block of each block row */
    int32_t *column;           /* count */
    void *val;                 /* count b b */
    sps_dtype dtype;
} sps_node_blocks;

/* Bytes of A for each of its entries, when a share `fill` of the numbers in
 * blocks of b are entries. */
static inline double spsi_node_bytes(int b, double fill, double value)
{
    return (value + 4.0 / (b * b)) / fill;
}

/* The b that stores the fewest bytes, by the sample of the features. */
int spsi_node_choose(const sps_features *f, double value);
/* Whether kernels on blocks of that b should bid: p->pinned asks only for a
 * fill that does not blow up memory; else it must store fewer bytes than CSR.
 * *why_not is a static text when not. */
bool spsi_node_fits(const sps_problem *p, const char **why_not);

/* Block rows from a line of nodes to the next, whose blocks have most of their
 * columns in common, by a sample; 0 where rows so far apart share few.  A: on
 * the host, sorted. */
int64_t spsi_node_lead(const sps_csr *A, int b);

/* The sizes alone: no arrays. */
void spsi_node_shape(int64_t nrow, int64_t ncol, sps_dtype dtype, int b,
                     sps_node_blocks *n);
/* All of it, from a sorted host csr.  Clear also after failure. */
sps_status spsi_node_from_csr(sps_context *ctx, const sps_csr_local *A, int b,
                              sps_node_blocks *n);
/* EUNFIT when a counted n would hold more than five numbers for each entry: the
 * sample was not like the rest. */
sps_status spsi_node_check(sps_context *ctx, const sps_csr_local *A,
                           const sps_node_blocks *n);
/* The values again, from a csr of the same pattern: one pass. */
void spsi_node_refresh(const sps_csr_local *A, sps_node_blocks *n, int threads);
/* The entries that are not zero, as an own host csr. */
sps_status spsi_node_to_csr(sps_context *ctx, const sps_node_blocks *n,
                            sps_csr **A_p);
void spsi_node_clear(sps_context *ctx, sps_node_blocks *n);
/* Bytes of the arrays. */
size_t spsi_node_size(const sps_node_blocks *n);

/* What the plans of kernels on blocks begin with; arrays in the place. */
typedef struct sps_node_plan {
    sps_plan super;
    sps_node_blocks blocks;
} sps_node_plan;

#ifdef __cplusplus
}
#endif
#endif
