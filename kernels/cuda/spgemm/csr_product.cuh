/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_product.cuh - common code of the kernels of C = A B for sparse matrices
 * on the device: the order of sums, and the hash table that holds the columns
 * of a row of C.
 *
 * A row is processed by a group of 4 to 32 threads of one warp.  The group
 * visits the entries a_ik of the row in ascending order, and its threads share
 * the entries of row k of B.  The columns within a row of B differ, so that no
 * two threads add to the same sum, and __syncwarp separates one k from the
 * next: every c_ij is a chain of fused multiply-adds over ascending k that
 * starts from -0, on any device and for any size of the group, as on the host,
 * without floating-point atomics.
 *
 * Rows are ordered into tiers by the size of the table that they need (after
 * ApSpGEMM, ACM TACO 2024; nsparse, Nagasaka et al., ICPP 2017): 8 to 2048
 * columns in shared memory, filled up to five eighths, the larger ones up to
 * four fifths.  csr_windows.cuh processes the rest. */
#ifndef SPS_CUDA_CSR_PRODUCT_CUH
#define SPS_CUDA_CSR_PRODUCT_CUH

#include "cuda/base/device.cuh"

namespace {

constexpr int least_bits = 3, most_bits = 11;
constexpr int tiers = most_bits - least_bits + 2, window_tier = tiers - 1;

/* Returns the number of columns that a table of 2^bits places may hold. */
__host__ __device__ constexpr int table_limit(int bits)
{
    return bits < 8 ? (5 << bits) / 8 : (4 << bits) / 5;
}

/* Returns the smallest tier for a row of n columns, or -1 for none. */
__host__ __device__ inline int tier_of(int n)
{
    int bits = least_bits;

    while (bits <= most_bits && n > table_limit(bits)) bits++;
    return n > 0 ? bits - least_bits : -1;
}

template <class V> struct csr_factor {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col;
    const V *__restrict__ val;
    const uint8_t *__restrict__ same;   /* for B: whether row k has the columns
                                           of row k - 1; NULL if not known */
};

/* Returns whether row k = A.col[p] of B has the columns of the row that the
 * entry before p selects, so that entry p need not add to a pattern. */
template <class V>
__device__ __forceinline__ bool
goes_on(const csr_factor<V> &A, const csr_factor<V> &B, int64_t begin,
        int64_t p)
{
    return B.same && p > begin && A.col[p - 1] == A.col[p] - 1 &&
           B.same[A.col[p]];
}

/* Returns A in the form that kernels take.  If only the pattern is needed, V is
 * float, which stays within the arrays of either type. */
template <class V> csr_factor<V> factor_of(const sps_csr *A)
{
    return {A->rowptr, A->col, (const V *)A->val, NULL};
}

/* The rows that a launch processes: those of a list, or all. */
struct row_list {
    const int32_t *row;      /* numbers of the rows; NULL: rows 0 .. count -
                                1 */
    int64_t count;

    __device__ int64_t at(int64_t i) const { return row ? row[i] : i; }
};

/* G threads of a warp that process a row.  All groups of a warp run in
 * lock-step: loops have the trip count of the longest group, and a group that
 * has less to do adds nothing. (With masks of single groups their instructions
 * would be issued one group after the other.) */
template <int G> struct group {
    int lane;

    __device__ group() : lane((int)threadIdx.x % G) {}
    template <class X> __device__ X get(X x, int from) const
    {
        return __shfl_sync(all_lanes, x, from, G);
    }
    template <class X> __device__ X sum(X x) const
    {
#pragma unroll
        for (int d = G / 2; d > 0; d /= 2)
            x += __shfl_xor_sync(all_lanes, x, d, G);
        return x;
    }
    /* Returns the threads t of the group with says = true, as bits t. */
    __device__ unsigned ballot(bool says) const
    {
        return __ballot_sync(all_lanes, says) >> (threadIdx.x % 32 / G * G) &
               (all_lanes >> (32 - G));
    }
    /* Returns the maximum over all groups of the warp. */
    __device__ int most(int x) const
    {
        return __reduce_max_sync(all_lanes, x);
    }
    __device__ void sync() const { __syncwarp(); }
};

/* Entries of a row of A; the length is 0 for a group that has no row. */
struct row_part {
    int64_t begin;
    int length;
};

template <class V>
__device__ __forceinline__ row_part part_of(const csr_factor<V> &A, int64_t row)
{
    const int64_t begin = row >= 0 ? A.rowptr[row] : 0;

    return {begin, row >= 0 ? (int)(A.rowptr[row + 1] - begin) : 0};
}

__device__ __forceinline__ int table_place(int32_t col, int bits)
{
    return (int)((uint32_t)col * 2654435769u >> (32 - bits));
}

/* Inserts col into the table of 2^bits columns (-1 marks a free place) unless
 * it is there.  Returns its position, or -1 after `limit` places without
 * success. *fresh: whether it was inserted. */
__device__ __forceinline__ int table_insert(int32_t *key, int bits,
                                            int32_t col, int limit,
                                            bool *fresh)
{
    int at = table_place(col, bits);

    for (int probe = 0; probe < limit; probe++) {
#ifdef SPS_RACECHECK
        int32_t held = -1;   /* read by an atomic, since racecheck reports a
                                plain read as a race */
#else
        int32_t held = *(volatile int32_t *)(key + at);
#endif

        if (held == -1) {
            held = atomicCAS(key + at, -1, col);
            if (held == -1) {
                *fresh = true;
                return at;
            }
        }
        if (held == col) return at;
        at = (at + 1) & ((1 << bits) - 1);
    }
    return -1;
}

/* The entry of A that a thread of a group holds: its value a, and the row of B
 * that it selects, with `length` entries from `start` on. */
template <class V> struct factor_entry {
    int64_t start;
    int length;
    V a;
};

template <class V>
__device__ __forceinline__ factor_entry<V>
load_entry(const csr_factor<V> &A, const csr_factor<V> &B, int64_t p,
           int64_t end)
{
    factor_entry<V> e = {0, 0, 0};

    if (p < end) {
        int32_t k = A.col[p];

        e.start = B.rowptr[k];
        e.length = (int)(B.rowptr[k + 1] - e.start);
        e.a = A.val[p];
    }
    return e;
}

/* Calls add(a, b, column) for each product of a row, by the threads of the
 * group, in ascending order of k.  The values of the next entry are loaded
 * while those of the present one are added. */
template <int G, class V, class F>
__device__ __forceinline__ void
walk_row(const group<G> &g, const csr_factor<V> &A, const csr_factor<V> &B,
         row_part row, const F &add)
{
    const int longest = g.most(row.length);

    for (int base = 0; base < longest; base += G) {
        const factor_entry<V> mine = load_entry(
            A, B, row.begin + base + g.lane, row.begin + row.length);
        const int entries = min(longest - base, G);
        int64_t start = g.get(mine.start, 0);
        int length = g.get(mine.length, 0);
        int32_t c = -1;
        V b = 0;

        if (g.lane < length) {
            c = B.col[start + g.lane];
            b = B.val[start + g.lane];
        }
#pragma unroll 1
        for (int e = 0; e < entries; e++) {
            const int after = min(e + 1, G - 1);
            const int64_t start2 = g.get(mine.start, after);
            const int length2 = e + 1 < entries ? g.get(mine.length, after) : 0;
            const V a = g.get(mine.a, e);
            int32_t c2 = -1;
            V b2 = 0;

            if (g.lane < length2) {
                c2 = B.col[start2 + g.lane];
                b2 = B.val[start2 + g.lane];
            }
            if (c >= 0) add(a, b, c);
            for (int q = G + g.lane; __any_sync(all_lanes, q < length); q += G)
                if (q < length) add(a, B.val[start + q], B.col[start + q]);
            g.sync();
            start = start2;
            length = length2;
            c = c2;
            b = b2;
        }
    }
}

} // namespace

#endif
