/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_multiply_device.cu - C = A B for sparse matrices in device memory: the
 * choice of the method, and the functions of the backend.
 *
 *   merged   rows of A have 8 entries at most, and those of B not many:
 *            csr_merge.cuh;
 *   blocks   A and B consist of dense blocks of 2, 3 or 6 rows and columns:
 *            csr_blocks.cuh, on the product of the patterns of blocks;
 *   alike    rows of A follow each other with the same columns:
 *            csr_alike.cuh;
 *   single   others: csr_rows.cuh and csr_windows.cuh.
 *
 * The passes over the tiers of rows (csr_tiers.cuh, csr_count.cuh,
 * csr_fill.cuh):
 *
 * First C is computed in one pass, csr_once.cuh, if a sample of its rows allows
 * it; otherwise:
 *
 *   bounds   products of each row, unless the longest rows of A and B bound
 *            all of them to one tier;
 *   count    entries of each row of C, tier by tier: rows of many products try
 *            tables of 256, 1024 and 2048 columns, then windows;
 *   offsets  by a scan, which tells how much memory C takes;
 *   fill     columns and values, in tiers by the entries of C.
 *
 * csr_product.cuh has the order of sums, which is the same in all ways.  Work
 * memory: 8 to 24 bytes for each row, 4 for each window; in one pass also room
 * for a C whose rows all fill their tables, at most 1 GB and a quarter of what
 * is left. */
#include "cuda/spgemm/csr_by_blocks.cuh"

#include <climits>

namespace {

/* -------------------------------------------------------------------- ways */

/* Returns whether B has the rows of A. */
bool same_matrix(const product &p)
{
    return p.A->rowptr == p.B->rowptr && p.A->nrow == p.B->nrow;
}

/* p->longest becomes the lengths of the longest rows of A and of B, and faults[]
 * their faults (csr_block_pattern.cuh) if `blocks`: one wait for both. */
sps_status look_at_rows(product *p, bool blocks, int *faults)
{
    int found[4];

    SPS_TRY_RETURN(clear(p->ctx, 4, p->number));
    SPS_TRY_RETURN(run_kernel(p->ctx, 1024, 256, longest_row, p->A->rowptr,
                              p->A->nrow, p->number));
    if (!same_matrix(*p))
        SPS_TRY_RETURN(run_kernel(p->ctx, 1024, 256, longest_row, p->B->rowptr,
                                  p->B->nrow, p->number + 1));
    if (blocks) {
        SPS_TRY_RETURN(look_for_faults(*p, p->A, p->number + 2));
        SPS_TRY_RETURN(look_for_faults(*p, p->B, p->number + 3));
    }
    SPS_TRY_RETURN(read_numbers(*p, p->number, 4, found));
    if (same_matrix(*p)) found[1] = found[0];
    memcpy(p->longest, found, sizeof p->longest);
    memcpy(faults, found + 2, 2 * sizeof *faults);
    return SPS_OK;
}

/* Returns whether rows of A may be short enough to be merged. */
bool may_merge(const product *p)
{
    return p->A->nnz <= merge_heads * p->A->nrow;
}

/* Determines p->longest, whether rows can be merged, and if not, and `blocks`,
 * whether A and B consist of blocks. */
sps_status look_for_blocks(product *p, bool blocks, bool *merge, bool *found)
{
    int faults[2];
    const bool known = blocks && !may_merge(p);

    SPS_TRY_RETURN(look_at_rows(p, known, faults));
    *merge = merges(*p);
    if (blocks && !*merge && !known)
        SPS_TRY_RETURN(look_at_rows(p, true, faults));
    *found = blocks && !*merge && has_shape(p, faults);
    return SPS_OK;
}

/* same[i] becomes whether row i of A has the columns of row i - 1. */
sps_status find_alike(const product &p, const sps_csr *A, uint8_t *same)
{
    if (A->nrow == 0) return SPS_OK;
    return run_kernel(p.ctx, (unsigned)ceil_div(A->nrow, 32), 256, compare_rows,
                      A->rowptr, A->col, A->nrow, same);
}

/* Computes p->leads, and counts a sample of rows of C; *pays: whether rows of A
 * have the same columns often enough. */
sps_status count_alike(product *p, holder *h, bool *pays)
{
    const int64_t n = p->A->nrow;
    const unsigned blocks = (unsigned)ceil_div(n, 256);
    int found[2 + tiers];
    uint8_t *same;

    SPS_TRY_RETURN(h->take(n, &same));
    SPS_TRY_RETURN(h->take(n, &p->leads));
    SPS_TRY_RETURN(find_alike(*p, p->A, same));
    SPS_TRY_RETURN(clear(p->ctx, 2 + tiers, p->number));
    SPS_TRY_RETURN(run_kernel(p->ctx, blocks, 256, count_off, same, n,
                              p->leads));
    SPS_TRY_RETURN(run_kernel(p->ctx, blocks < 1024 ? blocks : 1024, 256,
                              count_leaders, p->leads, n, p->number));
    if (p->once) SPS_TRY_RETURN(queue_sample(*p, p->number + 2));
    SPS_TRY_RETURN(read_numbers(*p, p->number, 2 + tiers, found));
    memcpy(p->sample, found + 2, sizeof p->sample);
    p->together = found[1];
    *pays = found[0] <= 0.6 * (double)n;
    return SPS_OK;
}

/* Chooses the method of p (p->way); `blocks`: whether the method by blocks may
 * be chosen. */
sps_status choose_way(product *p, holder *h, bool blocks)
{
    bool merge, pays;

    p->way = SINGLE;
    SPS_TRY_RETURN(look_for_blocks(p, blocks, &merge, &pays));
    if (merge || pays) {
        p->way = merge ? MERGED : BLOCKS;
        return SPS_OK;
    }
    SPS_TRY_RETURN(count_alike(p, h, &pays));
    if (!pays) return SPS_OK;
    SPS_TRY_RETURN(h->take(p->B->nrow, &p->same));
    SPS_TRY_RETURN(find_alike(*p, p->B, p->same));
    p->way = ALIKE;
    return SPS_OK;
}

/* ------------------------------------------------------------------ calls */

__global__ void __launch_bounds__(256)
widen_values(const float *__restrict__ from, int64_t n, double *to)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) to[i] = from[i];
}

/* *same becomes A, with its values converted to doubles if `wide`. */
sps_status as_doubles(sps_context *ctx, holder *h, const sps_csr *A, bool wide,
                      sps_csr *same)
{
    double *val;

    *same = *A;
    if (!wide || A->dtype == SPS_F64) return SPS_OK;
    SPS_TRY_RETURN(h->take(A->nnz, &val));
    same->val = val;
    same->dtype = SPS_F64;
    return run_items(ctx, A->nnz, widen_values, (const float *)A->val, A->nnz,
                     val);
}

/* Computes C, or sets *within to false if the products of A B may be more than
 * `most`. */
sps_status make_product(sps_context *ctx, const sps_csr *A, const sps_csr *B,
                        int64_t most, sps_csr *C, bool *within)
{
    holder h(ctx);
    sps_csr wide_A, wide_B;
    product p = {};
    row_list tier[tiers];
    bool made = false;
    int longest;

    p.ctx = ctx;
    p.A = &wide_A;
    p.B = &wide_B;
    p.once = true;
    SPS_TRY_RETURN(as_doubles(ctx, &h, A, C->dtype == SPS_F64, &wide_A));
    SPS_TRY_RETURN(as_doubles(ctx, &h, B, C->dtype == SPS_F64, &wide_B));
    SPS_TRY_RETURN(open_product(&p, &h));
    if (A->nrow > 0) SPS_TRY_RETURN(choose_way(&p, &h, true));
    *within = p.longest[1] == 0 || A->nnz <= most / p.longest[1];
    if (!*within) return SPS_OK;
    if (p.way == BLOCKS) SPS_TRY_RETURN(multiply_blocks(p, C, &made));
    if (made) return SPS_OK;
    if (p.way == BLOCKS) SPS_TRY_RETURN(choose_way(&p, &h, false));
    if (p.way == SINGLE) SPS_TRY_RETURN(multiply_once(&p, &h, C, &made));
    if (made) return SPS_OK;
    if (A->nrow > 0) SPS_TRY_RETURN(count_all(&p, &h));
    SPS_TRY_RETURN(open_result(p, C, p.count, tier, &longest));
    if (C->nnz == 0) return SPS_OK;
    return C->dtype == SPS_F64
               ? fill_all<double>(p, tier, false, longest, C, NULL)
               : fill_all<float>(p, tier, false, longest, C, NULL);
}

/* Lists the windows of the rows of C that fit no table. */
sps_status list_long(product *p, holder *h)
{
    row_list tier[tiers];

    SPS_TRY_RETURN(make_tiers(*p, p->count, 2, tier));
    if (tier[window_tier].count == 0) return SPS_OK;
    make_single(p);
    SPS_TRY_RETURN(h->take(2 * p->A->nrow, &p->rest));
    SPS_CUDA(p->ctx, cudaMemcpyAsync(
                         p->rest, tier[window_tier].row,
                         (size_t)tier[window_tier].count * sizeof *p->rest,
                         cudaMemcpyDeviceToDevice, p->stream()));
    return count_long(p, h, (int)tier[window_tier].count);
}

sps_status renew_product(sps_context *ctx, const sps_csr *A, const sps_csr *B,
                         sps_csr *C, unsigned long long *first_bad)
{
    holder h(ctx);
    sps_csr wide_A, wide_B;
    unsigned long long *bad;
    row_list tier[tiers];
    product p = {};
    bool made = false;

    p.ctx = ctx;
    p.A = &wide_A;
    p.B = &wide_B;
    SPS_TRY_RETURN(as_doubles(ctx, &h, A, C->dtype == SPS_F64, &wide_A));
    SPS_TRY_RETURN(as_doubles(ctx, &h, B, C->dtype == SPS_F64, &wide_B));
    SPS_TRY_RETURN(open_product(&p, &h));
    SPS_TRY_RETURN(h.take(1, &bad));
    SPS_TRY_RETURN(clear(ctx, 1, bad, 0xff));
    SPS_TRY_RETURN(choose_way(&p, &h, true));
    if (p.way == BLOCKS) SPS_TRY_RETURN(renew_blocks(p, C, bad, &made));
    if (made) return read_numbers(p, bad, 1, first_bad);
    if (p.way == BLOCKS) SPS_TRY_RETURN(choose_way(&p, &h, false));
    if (p.way != MERGED) {
        SPS_TRY_RETURN(count_known(p, C));
        SPS_TRY_RETURN(list_long(&p, &h));
        SPS_TRY_RETURN(count_known(p, C));
        if (p.way == ALIKE) SPS_TRY_RETURN(only_leaders(p, p.count, p.count));
        SPS_TRY_RETURN(make_tiers(p, p.count, 2, tier));
    }
    SPS_TRY_RETURN(C->dtype == SPS_F64
                       ? fill_all<double>(p, tier, true, 0, C, bad)
                       : fill_all<float>(p, tier, true, 0, C, bad));
    return read_numbers(p, bad, 1, first_bad);
}

} // namespace

/* Within a set-up (between spsi_cuda_pool_begin and spsi_cuda_pool_end), whose
 * stages wait for results only when necessary, the computation of C is queued
 * and not awaited. */
sps_status spsi_cuda_csr_multiply_within(sps_context *ctx, const sps_csr *A,
                                         const sps_csr *B, int64_t most,
                                         sps_csr **C_p)
{
    const bool single = A->dtype == SPS_F32 && B->dtype == SPS_F32;
    sps_csr made = {};
    bool within = true;
    sps_status st;

    *C_p = NULL;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    made.nrow = A->nrow;
    made.ncol = B->ncol;
    made.dtype = single ? SPS_F32 : SPS_F64;
    spsi_cuda_pool_begin(ctx);
    st = make_product(ctx, A, B, most, &made, &within);
    spsi_cuda_pool_end(ctx);
    if (st == SPS_OK && spsi_cuda_state(ctx)->pool.depth == 0)
        st = spsi_cuda_wait(ctx);
    if (st == SPS_OK && !within) return SPS_OK;
    return spsi_cuda_csr_finish(ctx, st, &made, C_p);
}

sps_status spsi_cuda_csr_multiply(sps_context *ctx, const sps_csr *A,
                                  const sps_csr *B, sps_csr **C_p)
{
    return A->place == SPS_HOST
               ? spsi_cuda_csr_multiply_far(ctx, A, B, C_p)
               : spsi_cuda_csr_multiply_within(ctx, A, B, INT64_MAX, C_p);
}

sps_status spsi_cuda_csr_count(sps_context *ctx, const sps_csr *A,
                               const sps_csr *B, int32_t *count)
{
    holder h(ctx);
    product p = {};

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (A->nrow == 0) return SPS_OK;
    p.ctx = ctx;
    p.A = A;
    p.B = B;
    SPS_TRY_RETURN(open_product(&p, &h));
    SPS_TRY_RETURN(choose_way(&p, &h, false));
    SPS_TRY_RETURN(count_all(&p, &h));
    return download(ctx, A->nrow, p.count, count);
}

sps_status spsi_cuda_csr_multiply_values(sps_context *ctx, const sps_csr *A,
                                         const sps_csr *B, sps_csr *C)
{
    unsigned long long bad = ULLONG_MAX;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (A->nrow == 0) return SPS_OK;
    SPS_TRY_RETURN(renew_product(ctx, A, B, C, &bad));
    if (bad == ULLONG_MAX) return SPS_OK;
    return spsi_fail(ctx, SPS_EMATRIX, "row %lld (counted from 0) of the "
                     "product has other columns than before; compute the "
                     "product anew",
                     (long long)bad);
}
