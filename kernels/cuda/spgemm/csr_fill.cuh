/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_fill.cuh - computes the columns and values of C = A B, or values on a
 * known pattern, in tiers of rows by their entries. */
#ifndef SPS_CUDA_CSR_FILL_CUH
#define SPS_CUDA_CSR_FILL_CUH

#include "cuda/spgemm/csr_count.cuh"

namespace {

template <class V>
sps_status fill_tier(const product &p, row_list rows, int bits, bool known,
                     const sps_csr *C, unsigned long long *bad)
{
    if (rows.count == 0) return SPS_OK;
    return with_group(group_of(p, bits), [&](auto constant) -> sps_status {
        constexpr int G = constant.value;
        const csr_factor<V> A = factor_of<V>(p.A), B = factor_of<V>(p.B);
        unsigned blocks, threads;
        size_t shared;

        SPS_TRY_RETURN(launch_tier(p, fill_rows<G, V>, G, bits,
                                   sizeof(V) + sizeof(int32_t), rows.count,
                                   &blocks, &threads, &shared));
        SPS_TRY_RETURN(launch_tier(p, renew_rows<G, V>, G, bits,
                                   sizeof(V) + sizeof(int32_t), rows.count,
                                   &blocks, &threads, &shared));
        if (known)
            renew_rows<G, V><<<blocks, threads, shared, p.stream()>>>(
                A, B, rows, bits, C->rowptr, C->col, (V *)C->val, bad);
        else
            fill_rows<G, V><<<blocks, threads, shared, p.stream()>>>(
                A, B, rows, bits, C->rowptr, C->col, (V *)C->val);
        SPS_LAUNCHED(p.ctx);
        return SPS_OK;
    });
}

template <class V>
sps_status fill_long(const product &p, bool known, const sps_csr *C,
                     unsigned long long *bad)
{
    const size_t shared = window_warps * (window_columns * sizeof(V) +
                                          window_words * sizeof(unsigned));

    if (p.w.items == 0) return SPS_OK;
    SPS_TRY_RETURN(allow_shared(p.ctx, fill_windows<V>, shared));
    fill_windows<V><<<(unsigned)ceil_div(p.w.items, window_warps),
                      32 * window_warps, shared, p.stream()>>>(
        factor_of<V>(p.A), factor_of<V>(p.B), p.w, known, C->rowptr, C->col,
        (V *)C->val, bad);
    SPS_LAUNCHED(p.ctx);
    return SPS_OK;
}

template <class V>
sps_status fill_by_merging(const product &p, bool known, int longest,
                           const sps_csr *C, unsigned long long *bad)
{
    const csr_factor<V> A = factor_of<V>(p.A), B = factor_of<V>(p.B);
    const unsigned blocks = (unsigned)ceil_div(C->nrow, merge_threads);
    const bool staged = longest <= merge_stage / merge_threads;
    const size_t shared = staged ? (size_t)longest * merge_threads *
                                       (sizeof(V) + sizeof(int32_t)) : 0;

    if (known)
        return run_kernel(p.ctx, blocks, merge_threads, renew_merged<V>, A, B,
                          C->nrow, C->rowptr, C->col, (V *)C->val, bad);
    SPS_TRY_RETURN(allow_shared(p.ctx, fill_merged<V>, shared));
    fill_merged<V><<<blocks, merge_threads, shared, p.stream()>>>(
        A, B, C->nrow, staged, C->rowptr, C->col, (V *)C->val);
    SPS_LAUNCHED(p.ctx);
    return SPS_OK;
}

/* Calls call(G, R) with the group size G and the largest number of rows R of a
 * leader as integral constants. */
template <class F> sps_status with_alike(int group, int together, const F &call)
{
    using few = std::integral_constant<int, 3>;
    using many = std::integral_constant<int, alike_most>;
    using narrow = std::integral_constant<int, 8>;
    using wide = std::integral_constant<int, 32>;

    if (group <= 8)
        return together <= 3 ? call(narrow(), few()) : call(narrow(), many());
    return together <= 3 ? call(wide(), few()) : call(wide(), many());
}

template <class V>
sps_status fill_alike_tier(const product &p, row_list rows, int bits,
                           bool known, const sps_csr *C,
                           unsigned long long *bad)
{
    if (rows.count == 0) return SPS_OK;
    return with_alike(p.group, p.together, [&](auto g, auto r) -> sps_status {
        constexpr int G = g.value, R = r.value;
        const int own = G == 32 && bits < 5 ? 5 : bits;
        const size_t each = (R * sizeof(V) + sizeof(int32_t) << own) +
                            R * G * sizeof(V);
        csr_factor<V> B = factor_of<V>(p.B);
        int groups = 128 / G;

        B.same = p.same;
        while (groups * G > 32 && groups * each > (size_t)100 << 10)
            groups /= 2;
        if (groups * each > (size_t)spsi_cuda_state(p.ctx)->shared_limit)
            return spsi_fail(p.ctx, SPS_EUNFIT, "a product of sparse matrices "
                             "needs %zu bytes of shared memory per thread "
                             "block, but this GPU has %d", groups * each,
                             spsi_cuda_state(p.ctx)->shared_limit);
        SPS_TRY_RETURN(allow_shared(p.ctx, fill_alike<G, R, V>, groups * each));
        fill_alike<G, R, V><<<(unsigned)ceil_div(rows.count, groups),
                              groups * G, groups * each, p.stream()>>>(
            factor_of<V>(p.A), B,
            alike_task{rows, p.leads, own, known, C->rowptr, bad}, C->col,
            (V *)C->val);
        SPS_LAUNCHED(p.ctx);
        return SPS_OK;
    });
}

/* tier: the rows by their entries, unless the method is `merged`. */
template <class V>
sps_status fill_all(const product &p, const row_list *tier, bool known,
                    int longest, const sps_csr *C, unsigned long long *bad)
{
    if (p.way == MERGED)
        return fill_by_merging<V>(p, known, longest, C, bad);
    for (int t = 0; t < window_tier; t++)
        SPS_TRY_RETURN(p.way == ALIKE
                           ? fill_alike_tier<V>(p, tier[t], least_bits + t,
                                                known, C, bad)
                           : fill_tier<V>(p, tier[t], least_bits + t, known,
                                          C, bad));
    return fill_long<V>(p, known, C, bad);
}

/* Allocates C, with offsets from the counts of its rows and memory for its
 * entries, and sorts the rows into tiers by `size`: one wait for both.  With
 * the method `merged` *longest becomes the length of the longest row of C
 * instead. */
sps_status open_result(const product &p, sps_csr *C, int32_t *size,
                       row_list *tier, int *longest)
{
    const size_t bytes = (p.way == MERGED ? 1 : tiers) * sizeof(int);
    int number[tiers];

    SPS_TRY_RETURN(take_offsets(p, C));
    SPS_TRY_RETURN(spsi_cuda_scan(p.ctx, p.count, C->nrow, C->rowptr));
    if (p.way == ALIKE) SPS_TRY_RETURN(only_leaders(p, size, size));
    if (p.way != MERGED) SPS_TRY_RETURN(count_rows_of_tiers(p, size, 1));
    const sps_cuda_piece found[] = {
        {C->rowptr + C->nrow, &C->nnz, sizeof C->nnz},
        {p.number, number, bytes}};

    SPS_TRY_RETURN(spsi_cuda_read(p.ctx, found, 2));
    *longest = number[0];
    SPS_TRY_RETURN(take_entries(p, C));
    return p.way == MERGED || C->nnz == 0
               ? SPS_OK : list_rows_of_tiers(p, size, 1, number, tier);
}

} // namespace

#endif
