/* SPDX-License-Identifier: BSD-3-Clause */
/* host_formats.h - the formats of plans built on the host, and conversions back
 * to CSR: the GPU's builders must give the same arrays.  Arrays are from
 * spsi_new. */
#ifndef HOST_FORMATS_H
#define HOST_FORMATS_H

#include "formats/blocked_ell.h"
#include "formats/column_order.h"
#include "formats/node_blocks.h"
#include "formats/packed.h"
#include "formats/rode.h"
#include "formats/row_blocks.h"
#include "formats/row_heads.h"
#include "formats/row_windows.h"
#include "formats/segments.h"
#include "formats/shares.h"
#include "formats/tca.h"

/* --- blocked_ell.h */
/* Structure and values, from a sorted host csr.  Must be cleared after failure,
 * too. */
sps_status spsi_blocked_ell_from_csr(sps_context *ctx, const sps_csr *A, int b,
                                     sps_blocked_ell *e);
/* Updates the values from a csr with the same pattern, in one pass. */
void spsi_blocked_ell_refresh(const sps_csr *A, sps_blocked_ell *e);
/* The nonzero entries as a new host csr. */
sps_status spsi_blocked_ell_to_csr(sps_context *ctx, const sps_blocked_ell *e,
                                   sps_csr **A_p);
void spsi_blocked_ell_clear(sps_context *ctx, sps_blocked_ell *e);
/* The largest number of blocks of a block row of a sorted host csr. */
int64_t spsi_blocked_ell_width(const sps_csr *A, int b);

/* --- column_order.h */
/* On failure *order is empty. */
sps_status spsi_column_order_make(sps_context *ctx, const sps_csr *A,
                                  sps_column_order *order);
void spsi_column_order_free(sps_context *ctx, sps_column_order *order);

/* --- node_blocks.h */
/* The nonzero entries as a new host csr. */
sps_status spsi_node_to_csr(sps_context *ctx, const sps_node_blocks *n,
                            sps_csr **A_p);

/* The lead that plans choose, by merging the rows of the sample. */
int64_t spsi_node_lead(const sps_csr *A, int b);

/* --- packed.h */
/* Packs the columns of A by the windows b, whose blocks are those of A. On
 * failure *p is empty. */
sps_status spsi_packed_make(sps_context *ctx, const sps_csr *A,
                            const sps_row_blocks *b, sps_packed *p);
/* Recovers the nnz columns; those of windows that are not packed are copied
 * from `full`. */
void spsi_packed_expand(const sps_packed *p, const sps_row_blocks *b,
                        const int32_t *full, int32_t *col);
void spsi_packed_free(sps_context *ctx, sps_packed *p);

/* --- rode.h */
/* R is cleared on failure. */
sps_status spsi_rode_build(sps_context *ctx, int64_t nrow,
                           const int64_t *rowptr, spsi_rode *R);
void spsi_rode_clear(sps_context *ctx, spsi_rode *R);
/* Conversion back to CSR: the nrow + 1 offsets from which R (host arrays) was
 * built; columns and values are never moved.  SPS_EMATRIX when the items do not
 * cover each entry once, in the order of rows. */
sps_status spsi_rode_offsets(sps_context *ctx, const spsi_rode *R,
                             int64_t nrow, int64_t *rowptr);

/* --- row_blocks.h */
/* Fewer than 2^31 rows.  On failure *b is empty. */
sps_status spsi_row_blocks_make(sps_context *ctx, const sps_csr *A,
                                const sps_row_rule *rule, sps_row_blocks *b);
void spsi_row_blocks_free(sps_context *ctx, sps_row_blocks *b);

/* --- row_heads.h */
/* Fewer than 2^31 rows.  On failure *h is empty. */
sps_status spsi_row_heads_make(sps_context *ctx, const sps_csr *A,
                               sps_row_heads *h);
/* Recovers the offsets: rowptr of nrow + 1 numbers. */
void spsi_row_heads_expand(const sps_row_heads *h, int64_t *rowptr);
void spsi_row_heads_free(sps_context *ctx, sps_row_heads *h);

/* --- row_windows.h */
/* From a sorted host csr of fewer than 2^29 rows; arrays from spsi_new.  On
 * failure *w is empty. */
sps_status spsi_row_windows_make(sps_context *ctx, const sps_csr *A,
                                 sps_window_rule rule, sps_row_windows *w);
void spsi_row_windows_free(sps_context *ctx, sps_row_windows *w);
/* The lead that plans choose, by merging the rows of the sample. */
int32_t spsi_window_lead(const sps_csr *A);

/* --- segments.h */
/* rowptr, col: of the matrix, on the host; col is read for groups only; most: a
 * multiple of 32. */
sps_status spsi_segments_build(sps_context *ctx, int64_t nrow,
                               const int64_t *rowptr, const int32_t *col,
                               sps_segments_limits limits, int64_t ranges,
                               sps_segments **s_p);
void spsi_segments_destroy(sps_segments **s_p);

/* --- shares.h */
/* Counts the parts of the format; *s gets the numbers, but no arrays. rowptr:
 * of fewer than 2^31 entries; size and team within the limits above. */
void spsi_shares_tally(int64_t nrow, const int64_t *rowptr, int32_t size,
                       int32_t team, sps_shares *s);
/* The arrays for these counts.  SPS_EUNFIT: 2^17 spans or more.  On failure *s
 * is empty. */
sps_status spsi_shares_fill(sps_context *ctx, int64_t nrow,
                            const int64_t *rowptr, sps_shares *s);
void spsi_shares_free(sps_context *ctx, sps_shares *s);

/* --- tca.h */
/* The work list of a host matrix; arrays from spsi_new. */
sps_status spsi_tca_build(sps_context *ctx, int64_t nrow,
                          const int64_t *rowptr, spsi_tca *w);
void spsi_tca_clear(sps_context *ctx, spsi_tca *w);

#endif
