/* SPDX-License-Identifier: BSD-3-Clause */
/* size.h - whether the sizes in the header of a file are plausible, and memory
 * for the result can be had; checked before it is allocated. */
#ifndef SPS_SIZE_H
#define SPS_SIZE_H

#include "core/context.h"

#define SPSI_SIZE_LARGEST INT32_MAX  /* rows, columns */

typedef struct spsi_size {
    const char *where;         /* FILE or FILE:LINE, for messages */
    int64_t nrow, ncol, count; /* count: entries of the file */
    bool complex, mirrors;     /* mirrors: one triangle is stored */
    int shares;                /* processes among which the result is divided,
                                  0 and 1 for one: what each must hold */
} spsi_size;

/* Returns ENOMEM if the result, a block or a csr of these sizes, exceeds the
 * memory limit, or, if there is none, the memory of the machine; EPARSE if it has
 * too many columns or is implausibly large for a text of at most `bytes`
 * bytes. */
sps_status spsi_size_check(sps_context *ctx, const sps_read_options *options,
                           const spsi_size *s, bool block, uint64_t bytes);

#endif
