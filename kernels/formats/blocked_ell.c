/* SPDX-License-Identifier: BSD-3-Clause */
/* blocked_ell.c - dimensions of a Blocked-ELL, from the matrix on the host. */
#include "formats/blocked_ell.h"

#include "formats/block_merge.h"

_Static_assert((int)SPS_BELL_MAX <= (int)SPS_MERGE_MAX, "a cursor a row");

static sps_block_rows rows_of(const sps_csr *A, int b)
{
    return (sps_block_rows){ A->rowptr, A->col, A->nrow, b };
}

void spsi_blocked_ell_shape(int64_t nrow, int64_t ncol, sps_dtype dtype, int b,
                            sps_blocked_ell *e)
{
    *e = (sps_blocked_ell){ .b = b, .nrow = nrow, .ncol = ncol,
                             .mb = (nrow + b - 1) / b,
                             .nb = (ncol + b - 1) / b, .dtype = dtype };
}

int64_t spsi_blocked_ell_width(const sps_csr *A, int b, int64_t step,
                               int64_t most)
{
    const int64_t mb = (A->nrow + b - 1) / b;
    const sps_block_rows rows = rows_of(A, b);
    int64_t w = 0;

    for (int64_t block = 0; block < mb && w <= most; block += step) {
        int64_t count = 0;
        sps_block_merge m;

        spsi_block_merge_open(&m, &rows, block);
        while (count <= most && spsi_block_merge_next(&m) >= 0) count++;
        if (count > w) w = count;
    }
    return w;
}
