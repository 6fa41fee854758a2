/* SPDX-License-Identifier: BSD-3-Clause */
/* halo.h - rows of blocks that products need from other processes.
 *
 * A process owns the consecutive rows first .. first+n-1 of the whole, in the
 * order of the processes.  Columns of its rows that other processes own are
 * called its ghosts.  Ghosts are in ascending order, so that those of one
 * neighbour are consecutive: they are received in place, in one message for all
 * columns of a block.  The operand of a product consists of the ghosts below
 * the own rows, the own rows that boundary rows use, and the ghosts above the
 * own rows.
 *
 * Neighbours are mutual: a process that receives from another and sends it
 * nothing counts as its neighbour all the same. */
#ifndef SPS_HALO_H
#define SPS_HALO_H

#include "block/block.h"
#include "core/comm.h"
#include "core/owner.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_halo {
    sps_context *ctx;
    sps_owner own;            /* releases the arrays */
    int64_t first, n, whole;
    int64_t *offset;          /* first row of each process; size + 1 */
    int64_t *ghost;           /* global row numbers of the ghosts, ascending */
    int64_t ghosts, low;      /* number of ghosts; number of ghosts below the
                                 own rows */
    int neighbours;           /* number of neighbours */
    int *peer;                /* their process numbers, ascending */
    int64_t *send_at;         /* rows sent to peer[i]: send[send_at[i]] to
                                 send[send_at[i+1] - 1] */
    int64_t *ghost_at;        /* ghosts owned by peer[i]: ghost[ghost_at[i]] to
                                 ghost[ghost_at[i+1] - 1] */
    int32_t *send;            /* own rows to be sent */
    bool runs;                /* those for each neighbour are consecutive */
    sps_message *out, *in;    /* messages sent and received, at most one each
                                 for each neighbour */
    bool aside;               /* messages pass while the product runs
                                 (sps_wire, core/comm.h) */
} sps_halo;

/* Creates the halo; collective.  ghost has `ghosts` distinct global row numbers
 * outside the own rows, ascending; they are copied.  EINVAL if the rows of all
 * processes together are not the whole. */
sps_status spsi_halo_create(sps_context *ctx, int64_t first, int64_t n,
                            int64_t whole, const int64_t *ghost, int64_t ghosts,
                            sps_halo **h_p);
void spsi_halo_destroy(sps_halo **h_p);
/* Returns the process that owns a row of the whole. */
int spsi_halo_owner(const sps_halo *h, int64_t row);
/* Returns the index of a ghost by its global row number, or -1. */
int64_t spsi_halo_ghost(const sps_halo *h, int64_t row);

/* Returns the global number of column `col` of spsi_ranks_rows. */
int64_t spsi_halo_row(const sps_halo *h, int64_t col);
/* global[p] = the global number of column col[p], or without h col[p] itself. */
void spsi_halo_rows(sps_context *ctx, const sps_halo *h, const int32_t *col,
                    int64_t count, int64_t *global);

/* Fills in m with one message for each neighbour that has items, of `each`
 * bytes an item; those of peer[i] are numbers at[i] .. at[i+1] - 1.  Returns
 * the number of messages. */
int spsi_halo_messages(const sps_halo *h, const int64_t *at, void *items,
                       size_t each, sps_message *m);

/* Receives what the owners of the ghosts have for them: `each` bytes for each
 * own row, and for each ghost; host memory. */
sps_status spsi_halo_trade(sps_halo *h, const void *own, size_t each,
                           void *ghost);

/* The same if `out` has the items of the rows send[], in this order. */
sps_status spsi_halo_trade_packed(sps_halo *h, const void *out, size_t each,
                                  void *ghost);

/* Allocates memory for exchanges of `width` columns, if the wire needs it. */
sps_status spsi_halo_reserve(sps_halo *h, int width);
/* Sets h->aside: whether exchanges of `packed` and `operand` pass during
 * products that take `seconds`; collective.  Overwrites *operand. */
sps_status spsi_halo_choose(sps_halo *h, double seconds,
                            const sps_block *packed, sps_block *operand);
/* Starts to send `from`, the rows send[] of a block, or, with `whole` and
 * h->runs, that block itself, and to receive the ghosts: those with smaller
 * numbers than the own rows into the first rows of `operand`, those with larger
 * ones into its last rows.  `from` and `operand` have the same k, ld and type,
 * and these are the same on all processes.  spsi_halo_finish waits for the
 * exchange. */
sps_status spsi_halo_start(sps_halo *h, const sps_block *from, bool whole,
                           sps_block *operand);
sps_status spsi_halo_finish(sps_halo *h);

#ifdef __cplusplus
}
#endif
#endif
