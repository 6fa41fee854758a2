/* SPDX-License-Identifier: BSD-3-Clause */
/* node_blocks.h - node-block CSR: aligned b x b blocks, b = 2 .. 8, with one
 * column index each (the BCSR of Im and Yelick, "Optimizing sparse matrix
 * computations for register reuse in SPARSITY", ICCS 2001).
 *
 * Block row I consists of rows b I .. b I + b - 1.  It has those of its blocks
 * that contain a stored entry, in ascending order.  A block is stored
 * column-major, so that the b values that multiply one row of X are contiguous,
 * and the values of a block row are one K x b array, where K is b times the
 * number of its blocks:
 *
 *   column[s]                      block column of block s
 *   val[(s b + c) b + r]           its entry (r, c)
 *
 * Entries of blocks that the matrix does not store, also in rows and columns
 * beyond its edge, are zeros.  Bytes: 8 b b + 4 per block, where CSR needs 12 b
 * b.
 *
 * The arrays are in host memory here; plans use the same structure with arrays
 * in the memory of their backend. */
#ifndef SPS_FORMAT_NODE_BLOCKS_H
#define SPS_FORMAT_NODE_BLOCKS_H

#include "matrix/windows.h"
#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_NODE_MIN = 2, SPS_NODE_MAX = 8 };   /* limits of b */

typedef struct sps_node_blocks {
    int b;
    int64_t nrow, ncol;        /* dimensions of the matrix */
    int64_t mb, nb;            /* number of block rows and of block columns */
    int64_t count;             /* number of blocks */
    int64_t *start;            /* mb + 1 elements: first block of each block
                                  row */
    int32_t *column;           /* count elements */
    void *val;                 /* count b b values; on the host SPS_NODE_MAX
                                  more, so that whole vectors may be loaded at
                                  the end */
    sps_dtype dtype;
} sps_node_blocks;

/* Returns the bytes per entry of A in blocks of size b, if a fraction `fill` of
 * the stored values are entries and a value has `value` bytes. */
static inline double spsi_node_bytes(int b, double fill, double value)
{
    return (value + 4.0 / (b * b)) / fill;
}

/* Returns the b for which the fewest bytes are stored, estimated from the
 * sample in the features. */
int spsi_node_choose(const sps_features *f, double value);
/* Returns whether kernels on these blocks suit the matrix: a quarter of the
 * stored values must be entries and, unless p->pinned, the blocks must need
 * fewer bytes than CSR.  If not, *why_not is set to a static text. */
bool spsi_node_fits(const sps_problem *p, const char **why_not);

/* Limits of the choice of a distance between grid lines.  The lead is the
 * distance, in block rows, from one line of grid nodes to another whose blocks
 * have most block columns in common.  It is chosen by a sample of pairs of
 * block rows, of which only the first row is examined.  Candidates are the
 * distances of the middle block row from its block columns. */
enum {
    SPS_NODE_LEADS = 32,       /* largest number of candidates */
    SPS_NODE_SAMPLE = 16,      /* pairs of the sample for each candidate */
    SPS_NODE_ROWS = 64         /* with fewer block rows no lead is chosen */
};

/* Finds candidates from the columns of the first row of block row nrow / b / 2,
 * which are col[first .. last-1]; returns their number. */
SPS_BOTH int spsi_node_leads(const int32_t *col, int64_t first, int64_t last,
                             int64_t nrow, int b, int64_t *lead)
{
    return spsi_row_leads(col, first, last, nrow / b / 2, b, 8, nrow / b / 4,
                          SPS_NODE_LEADS, lead);
}
/* Returns the first block row of pair n of the sample; the second is `lead`
 * block rows after it. */
SPS_BOTH int64_t spsi_node_lead_row(int64_t nrow, int b, int64_t lead, int n)
{
    return (2 * n + 1) * (nrow / b - lead) / (2 * SPS_NODE_SAMPLE);
}
/* Returns the candidate whose pairs have most in common: of the sum[c][1] block
 * columns of the first block rows of its pairs, sum[c][0] are also in the
 * second ones.  Returns 0 if block rows at all of these distances have few in
 * common. */
int64_t spsi_node_choose_lead(const int64_t *lead, int count,
                              const int64_t (*sum)[2]);

/* Sets the dimensions only: no arrays. */
void spsi_node_shape(int64_t nrow, int64_t ncol, sps_dtype dtype, int b,
                     sps_node_blocks *n);
/* Builds the blocks from a sorted csr on the host.  spsi_node_clear must be
 * called also after a failure. */
sps_status spsi_node_from_csr(sps_context *ctx, const sps_csr_local *A, int b,
                              sps_node_blocks *n);
/* Returns SPS_EUNFIT if n, after counting, would store more than five values
 * per entry: the sample was not representative. */
sps_status spsi_node_check(sps_context *ctx, const sps_csr_local *A,
                           const sps_node_blocks *n);
/* Updates the values from a csr with the same pattern, in one pass. */
void spsi_node_refresh(sps_context *ctx, const sps_csr_local *A,
                       sps_node_blocks *n);
void spsi_node_clear(sps_context *ctx, sps_node_blocks *n);
/* Returns the bytes of the arrays. */
size_t spsi_node_size(const sps_node_blocks *n);

/* The plans of kernels for blocks of nodes begin with these members.  The
 * arrays are in the memory of the kernel's backend. */
typedef struct sps_node_plan {
    sps_plan super;
    sps_node_blocks blocks;
} sps_node_plan;

#ifdef __cplusplus
}
#endif
#endif
