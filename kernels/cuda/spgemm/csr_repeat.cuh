/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_repeat.cuh - determines whether a row of C = A B has the pattern of
 * another row with all columns shifted by the same amount, as for the rows of a
 * node, and for points along a grid line.  Such a row need not be counted.
 *
 * It has this pattern if the columns of the row of A are those of the other row
 * shifted by one amount, and the columns of the rows of B that they select are
 * shifted by another.  If the first amount is 0, both select the same rows, and
 * nothing needs to be compared in B. */
#ifndef SPS_CUDA_CSR_REPEAT_CUH
#define SPS_CUDA_CSR_REPEAT_CUH

#include "cuda/spgemm/csr_product.cuh"

namespace {

/* Returns whether the entries of two rows of A, of equal number, have columns
 * that differ by *move. */
template <int G>
__device__ __forceinline__ bool
moved_columns(const group<G> &g, const int32_t *__restrict__ col, row_part row,
              row_part before, int32_t *move)
{
    bool same = row.length == before.length;
    const int length = same ? row.length : 0;

    *move = length > 0 ? col[row.begin] - col[before.begin] : 0;
    for (int t = g.lane; t < length; t += G)
        same = same && col[row.begin + t] - col[before.begin + t] == *move;
    return g.ballot(!same) == 0;
}

/* Returns whether the rows of B that entries p and h of A select have columns
 * that differ by one amount; a group that has nothing to compare has length
 * 0. */
template <int G>
__device__ __forceinline__ bool
moved_rows(const group<G> &g, const csr_factor<float> &A,
           const csr_factor<float> &B, int64_t p, int64_t h, int length)
{
    const int longest = g.most(length);
    bool known = false, same = true;
    int32_t move = 0;

    for (int base = 0; base < longest; base += G) {
        int64_t mine = 0, other = 0;
        int n = 0;

        if (base + g.lane < length) {
            const int32_t k = A.col[p + base + g.lane];
            const int32_t l = A.col[h + base + g.lane];

            mine = B.rowptr[k];
            other = B.rowptr[l];
            n = (int)(B.rowptr[k + 1] - mine);
            if (B.rowptr[l + 1] - other != n) {
                same = false;
                n = 0;
            }
        }
#pragma unroll 1
        for (int e = 0; e < min(longest - base, G); e++) {
            const int64_t q = g.get(mine, e), r = g.get(other, e);
            const int entries = g.get(n, e);

            if (!known && entries > 0) move = B.col[q] - B.col[r];
            known = known || entries > 0;
            for (int t = g.lane; t < entries; t += G)
                same = same && B.col[q + t] - B.col[r + t] == move;
        }
        if (g.ballot(!same)) length = 0;
        if (!__any_sync(all_lanes, length > 0)) break;
    }
    return g.ballot(!same) == 0;
}

/* Returns whether the row of each group has the pattern of its row `before`,
 * shifted. */
template <int G>
__device__ __forceinline__ bool
row_repeats(const group<G> &g, const csr_factor<float> &A,
            const csr_factor<float> &B, row_part row, row_part before)
{
    int32_t move;
    const bool moved = moved_columns(g, A.col, row, before, &move);
    const int length = moved && move != 0 ? row.length : 0;

    return moved_rows(g, A, B, row.begin, before.begin, length) && moved;
}

} // namespace

#endif
