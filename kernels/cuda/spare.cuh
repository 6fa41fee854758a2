/* SPDX-License-Identifier: BSD-3-Clause */
/* spare.cuh - what lies behind the columns of a block and may be written.
 *
 * Of an own block with all its columns nobody has anything behind the last one
 * (a view has its neighbours' columns there, a wrapped block its owner's
 * numbers, a narrowed one what may come back).  Memory is written in sectors of
 * 32 bytes, and one that is written in part is read first; so such rows go out
 * to the end of the last sector.  What is there may be loaded beside an odd
 * last column of any own block; it never reaches a result. */
#ifndef SPS_CUDA_SPARE_CUH
#define SPS_CUDA_SPARE_CUH

#include "state.h"

namespace {

/* Columns of X that may be written when all of X are. */
inline int writable_columns(const sps_block *X)
{
    int64_t whole = ((int64_t)X->k + 3) & ~(int64_t)3;

    if (X->bytes == 0 || X->k < X->width) return X->k;
    return (int)(whole < X->ld ? whole : X->ld);
}

/* Whether the first k columns of X are whole pairs, or what is behind the last
 * one may be loaded: 16 bytes at a time, then, without a look at each. */
inline bool pairs_throughout(const sps_block *X, int k)
{
    return X->ld % 2 == 0 && (uintptr_t)X->data % 16 == 0 &&
           (k % 2 == 0 || X->bytes > 0);
}

/* Two neighbours, or zeros. */
__device__ __forceinline__ double2 whole_pair(const double *p, bool some)
{
    return some ? *reinterpret_cast<const double2 *>(p)
                : make_double2(0.0, 0.0);
}

} // namespace

#endif
