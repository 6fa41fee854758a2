/* SPDX-License-Identifier: BSD-3-Clause */
/* row_padding.cuh - which padding after the columns of a block may be written.
 *
 * If a block owns its memory and has all its columns, the rest of each row is
 * unused padding.  (In a view it belongs to other columns of the parent, in a
 * wrapped block to the caller, in a narrowed block to columns that may be used
 * again.)  Memory is written in sectors of 32 bytes, and a partly written
 * sector is read first; so such rows are written to the end of the last sector.
 * The padding may also be loaded together with an odd last column of any block
 * that owns its memory; it never influences a result. */
#ifndef SPS_CUDA_ROW_PADDING_CUH
#define SPS_CUDA_ROW_PADDING_CUH

#include "cuda/base/state.h"

namespace {

/* Returns the number of columns of X that may be written when all columns of X
 * are written. */
inline int writable_columns(const sps_block *X)
{
    int64_t whole = ((int64_t)X->k + 3) & ~(int64_t)3;

    if (X->bytes == 0 || X->k < X->width) return X->k;
    return (int)(whole < X->ld ? whole : X->ld);
}

/* Returns whether the first k columns of X can be loaded as 16-byte pairs
 * without checking each: k is even, or the padding after the last column may be
 * loaded. */
inline bool pairs_throughout(const sps_block *X, int k)
{
    return X->ld % 2 == 0 && (uintptr_t)X->data % 16 == 0 &&
           (k % 2 == 0 || X->bytes > 0);
}

/* Loads a pair of neighbouring elements, or zeros if !some. */
__device__ __forceinline__ double2 whole_pair(const double *p, bool some)
{
    return some ? *reinterpret_cast<const double2 *>(p)
                : make_double2(0.0, 0.0);
}

} // namespace

#endif
