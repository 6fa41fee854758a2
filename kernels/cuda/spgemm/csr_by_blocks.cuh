/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_by_blocks.cuh - C = A B by dense blocks (csr_blocks.cuh): determines
 * whether A and B consist of blocks, computes the product of their patterns by
 * the other methods, and launches the kernels. */
#ifndef SPS_CUDA_CSR_BY_BLOCKS_CUH
#define SPS_CUDA_CSR_BY_BLOCKS_CUH

#include "cuda/spgemm/csr_blocks.cuh"
#include "cuda/spgemm/csr_once.cuh"

namespace {

/* *faults becomes the faults (csr_block_pattern.cuh) of the rows of A, which is
 * in device memory. */
sps_status look_for_faults(const product &p, const sps_csr *A, int *faults)
{
    const int64_t blocks = ceil_div(A->nrow, 32);
    const int64_t most = 16 * (int64_t)spsi_cuda_state(p.ctx)->sms;

    if (A->nrow == 0) return SPS_OK;
    return run_kernel(p.ctx, (unsigned)(blocks < most ? blocks : most), 256,
                      find_faults, A->rowptr, A->col, A->nrow, faults);
}

/* Returns whether a matrix with these faults consists of r x s blocks. */
bool has_blocks(int faults, int r, int s)
{
    for (int t = 0; t < block_kinds; t++)
        if ((block_size(t) == r && faults >> t & 1) ||
            (block_size(t) == s && faults >> (block_kinds + t) & 1))
            return false;
    return true;
}

/* Determines p->shape from the faults of the rows of A and of B; returns if
 * both have blocks. */
bool has_shape(product *p, const int faults[2])
{
    constexpr int rows = (1 << block_kinds) - 1;
    const int a = faults[0] | faults_of_size(p->A);
    const int b = faults[1] | faults_of_size(p->B);

    p->shape.r = size_without(a, false);
    p->shape.k = size_without(a >> block_kinds | (b & rows), false);
    p->shape.s = size_without(b, true);
    return p->shape.r && p->shape.k && p->shape.s &&
           p->longest[1] <= block_row_most;
}

/* *to becomes the pattern of the r x s blocks of A; its values are not set. */
sps_status take_blocks(const product &p, holder *h, const sps_csr *A, int r,
                       int s, sps_csr *to)
{
    *to = {};
    to->nrow = A->nrow / r;
    to->ncol = A->ncol / s;
    to->nnz = A->nnz / (r * s);
    to->dtype = SPS_F32;
    to->val = A->val;
    SPS_TRY_RETURN(h->take(to->nrow + 1, &to->rowptr));
    SPS_TRY_RETURN(h->take(to->nnz, &to->col));
    list_blocks<<<(unsigned)ceil_div(to->nrow + 1, 32), 256, 0, p.stream()>>>(
        A->rowptr, A->col, to->nrow, r, s, to->rowptr, to->col);
    SPS_LAUNCHED(p.ctx);
    return SPS_OK;
}

block_pattern pattern_of_blocks(const sps_csr *A)
{
    return {A->rowptr, A->col};
}

template <class V>
sps_status launch_warps(const product &p, void (*kernel)(const blocks_task<V>),
                        size_t each, const blocks_task<V> &t)
{
    int warps = 8;

    while (warps > 1 && warps * each > (size_t)100 << 10) warps /= 2;
    SPS_TRY_RETURN(allow_shared(p.ctx, kernel, warps * each));
    kernel<<<(unsigned)ceil_div(t.rows.count * t.parts, warps), 32 * warps,
             warps * each, p.stream()>>>(t);
    SPS_LAUNCHED(p.ctx);
    return SPS_OK;
}

template <int R, bool split, class V>
sps_status launch_blocks(const product &p, const blocks_task<V> &t, size_t each)
{
    return p.shape.k == 6
               ? launch_warps(p, fill_blocks<R, 6, split, V>, each, t)
         : p.shape.k == 3
               ? launch_warps(p, fill_blocks<R, 3, split, V>, each, t)
               : launch_warps(p, fill_blocks<R, 2, split, V>, each, t);
}

/* Block rows of 6 rows always take the kernel for split rows, since few of them
 * are short. */
template <class V>
sps_status launch_blocks(const product &p, const blocks_task<V> &t, size_t each)
{
    return p.shape.r == 6 ? launch_blocks<6, true>(p, t, each)
         : p.shape.r == 3 ? t.parts > 1 ? launch_blocks<3, true>(p, t, each)
                                        : launch_blocks<3, false>(p, t, each)
         : t.parts > 1    ? launch_blocks<2, true>(p, t, each)
                          : launch_blocks<2, false>(p, t, each);
}

template <int R, class V>
sps_status launch_single(const product &p, const blocks_task<V> &t, size_t each)
{
    return p.shape.k == 6 ? launch_warps(p, fill_single<R, 6, V>, each, t)
         : p.shape.k == 3 ? launch_warps(p, fill_single<R, 3, V>, each, t)
                          : launch_warps(p, fill_single<R, 2, V>, each, t);
}

/* Returns the number of segments for block rows of C of up to `most` blocks:
 * sums of a segment take segment_bytes at most, and there are warps for the
 * whole device if segments get shorter by that, but not shorter than
 * segment_least. */
int segments_of(const product &p, int64_t rows, int most, size_t number)
{
    constexpr int64_t segment_bytes = 12 << 10, segment_least = 16;
    const int64_t bytes = (int64_t)number * p.shape.r * p.shape.s * most;
    const int64_t least = ceil_div(bytes, segment_bytes);
    const int64_t warps = 8 * (int64_t)spsi_cuda_state(p.ctx)->sms;
    const int64_t wanted = ceil_div(warps, rows);
    const int64_t longest = ceil_div(most, segment_least);
    const int64_t more = wanted < longest ? wanted : longest;

    return (int)(least > more ? least : more);
}

/* Computes the rows of a tier: if block rows of B have one block at most, and
 * whole block rows of C fit into shared memory, by fill_single. */
template <class V>
sps_status fill_tier_by_blocks(const product &p, blocks_task<V> t)
{
    const block_shape &b = p.shape;
    size_t each = blocks_shared(b.r, b.k, b.s, t.most, t.places, sizeof(V));

    if (p.longest[1] <= b.s && each <= (size_t)64 << 10)
        return b.r == 6 ? launch_single<6>(p, t, each)
             : b.r == 3 ? launch_single<3>(p, t, each)
                        : launch_single<2>(p, t, each);
    t.parts = segments_of(p, t.rows.count, t.most, sizeof(V));
    t.most = (int)ceil_div(t.most, t.parts);
    each = blocks_shared(b.r, b.k, b.s, t.most, t.places, sizeof(V));
    return launch_blocks(p, t, each);
}

/* Computes the values of C and, unless they are `known`, its columns; `blocks`
 * are the patterns of A, B and C. */
template <class V>
sps_status fill_by_blocks(const product &p, const sps_csr *const blocks[3],
                          row_list *tier, bool known, const sps_csr *C,
                          unsigned long long *bad)
{
    const int longest = p.longest[1] / p.shape.s;

    for (int t = 0; t < window_tier; t++) {
        const blocks_task<V> task = {
            pattern_of_blocks(blocks[0]), pattern_of_blocks(blocks[1]),
            pattern_of_blocks(blocks[2]), (const V *)p.A->val,
            (const V *)p.B->val, tier[t], 1,
            longest < places_most ? longest : places_most, p.shape.s,
            (int)ceil_div(65536, p.shape.s), table_limit(least_bits + t), known,
            C->col, (V *)C->val, bad};

        if (tier[t].count == 0) continue;
        SPS_TRY_RETURN(fill_tier_by_blocks(p, task));
    }
    return SPS_OK;
}

sps_status fill_blocks_of(const product &p, const sps_csr *const blocks[3],
                          row_list *tier, bool known, const sps_csr *C,
                          unsigned long long *bad)
{
    return C->dtype == SPS_F64
               ? fill_by_blocks<double>(p, blocks, tier, known, C, bad)
               : fill_by_blocks<float>(p, blocks, tier, known, C, bad);
}

/* Allocates C, whose blocks have this pattern, and sets its offsets. */
sps_status open_blocks(const product &p, const sps_csr *blocks, sps_csr *C)
{
    C->nnz = blocks->nnz * p.shape.r * p.shape.s;
    SPS_TRY_RETURN(take_offsets(p, C));
    SPS_TRY_RETURN(run_items(p.ctx, C->nrow + 1, spread_offsets, blocks->rowptr,
                             blocks->nrow, p.shape.r, p.shape.s, C->rowptr));
    return take_entries(p, C);
}

/* Returns the product of the patterns A and B of the blocks of p.  Its rows
 * hardly ever have the same columns as the row before. */
product product_of_patterns(const product &p, const sps_csr *A,
                            const sps_csr *B)
{
    product q = {};

    q.ctx = p.ctx;
    q.A = A;
    q.B = B;
    q.longest[0] = p.longest[0] / p.shape.k;
    q.longest[1] = p.longest[1] / p.shape.s;
    q.way = merges(q) ? MERGED : SINGLE;
    return q;
}

/* Computes the pattern of the blocks of C, and sorts its rows into tiers. */
sps_status make_pattern(product *q, holder *h, sps_csr *C, row_list *tier)
{
    int longest;
    bool made = false;

    SPS_TRY_RETURN(open_product(q, h));
    if (q->way == SINGLE) {
        SPS_TRY_RETURN(take_sample(q));
        SPS_TRY_RETURN(multiply_once(q, h, C, &made));
    }
    if (made)
        return q->all_once
                   ? list_rows_of_tiers(*q, q->count, 1, q->sample, tier)
                   : make_tiers(*q, q->count, 1, tier);
    SPS_TRY_RETURN(count_all(q, h));
    SPS_TRY_RETURN(open_result(*q, C, q->count, tier, &longest));
    if (C->nnz > 0)
        SPS_TRY_RETURN(fill_all<float>(*q, tier, false, longest, C, NULL));
    return q->way == MERGED || C->nnz == 0 ? make_tiers(*q, q->count, 1, tier)
                                           : SPS_OK;
}

/* *made is false if there are block rows of C of more blocks than a table
 * holds. */
sps_status multiply_blocks(const product &p, sps_csr *C, bool *made)
{
    holder h(p.ctx);
    sps_csr A, B, pattern = {}, *found = NULL;
    row_list tier[tiers];
    sps_status st;

    SPS_TRY_RETURN(take_blocks(p, &h, p.A, p.shape.r, p.shape.k, &A));
    SPS_TRY_RETURN(take_blocks(p, &h, p.B, p.shape.k, p.shape.s, &B));
    pattern.nrow = A.nrow;
    pattern.ncol = B.ncol;
    pattern.dtype = SPS_F32;
    product q = product_of_patterns(p, &A, &B);

    st = make_pattern(&q, &h, &pattern, tier);
    st = spsi_cuda_csr_finish(p.ctx, st, &pattern, &found);
    if (st != SPS_OK) return st;
    const sps_csr *const blocks[] = {&A, &B, found};

    *made = tier[window_tier].count == 0;
    if (*made) st = open_blocks(p, found, C);
    if (*made && st == SPS_OK)
        st = fill_blocks_of(p, blocks, tier, false, C, NULL);
    sps_csr_destroy(p.ctx, &found);
    return st;
}

/* Computes new values of C if it consists of blocks; *made is false if it does
 * not, or if it has block rows of more blocks than a table holds. */
sps_status renew_blocks(const product &p, const sps_csr *C,
                        unsigned long long *bad, bool *made)
{
    holder h(p.ctx);
    sps_csr A, B, pattern;
    product q = p;
    row_list tier[tiers];
    int faults;

    SPS_TRY_RETURN(clear(p.ctx, 1, p.number));
    SPS_TRY_RETURN(look_for_faults(p, C, p.number));
    SPS_TRY_RETURN(read_numbers(p, p.number, 1, &faults));
    *made = has_blocks(faults, p.shape.r, p.shape.s);
    if (!*made) return SPS_OK;
    SPS_TRY_RETURN(take_blocks(p, &h, p.A, p.shape.r, p.shape.k, &A));
    SPS_TRY_RETURN(take_blocks(p, &h, p.B, p.shape.k, p.shape.s, &B));
    SPS_TRY_RETURN(take_blocks(p, &h, C, p.shape.r, p.shape.s, &pattern));
    const sps_csr *const blocks[] = {&A, &B, &pattern};

    q.A = &A;
    q.B = &B;
    SPS_TRY_RETURN(open_product(&q, &h));
    SPS_TRY_RETURN(count_known(q, &pattern));
    SPS_TRY_RETURN(make_tiers(q, q.count, 2, tier));
    *made = tier[window_tier].count == 0;
    return *made ? fill_blocks_of(p, blocks, tier, true, C, bad) : SPS_OK;
}

} // namespace

#endif
