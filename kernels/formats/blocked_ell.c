/* SPDX-License-Identifier: BSD-3-Clause */
/* blocked_ell.c - the dimensions of a Blocked-ELL matrix. */
#include "formats/blocked_ell.h"

void spsi_blocked_ell_shape(int64_t nrow, int64_t ncol, sps_dtype dtype, int b,
                            sps_blocked_ell *e)
{
    *e = (sps_blocked_ell){ .b = b, .nrow = nrow, .ncol = ncol,
                             .mb = (nrow + b - 1) / b,
                             .nb = (ncol + b - 1) / b, .dtype = dtype };
}
