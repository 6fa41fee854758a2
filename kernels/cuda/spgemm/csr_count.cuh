/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_count.cuh - counts the entries of each row of C = A B, tier by tier: for
 * rows with many products tables of 256, 1024 and 2048 columns are tried, then
 * windows of columns. */
#ifndef SPS_CUDA_CSR_COUNT_CUH
#define SPS_CUDA_CSR_COUNT_CUH

#include "cuda/spgemm/csr_merge.cuh"
#include "cuda/spgemm/csr_tiers.cuh"

namespace {

/* Counts the rows of a tier.  If there are enough rows for all groups that the
 * device can run, a group counts several rows, which may have repeated
 * patterns. */
sps_status count_tier(const product &p, row_list rows, int bits, int32_t *rest,
                      int *rest_count)
{
    const int run = rows.count >= (int64_t)1 << 16 ? 8 : 1;

    if (rows.count == 0) return SPS_OK;
    return with_group(group_of(p, bits), [&](auto constant) -> sps_status {
        constexpr int G = constant.value;
        unsigned blocks, threads;
        size_t shared;

        SPS_TRY_RETURN(launch_tier(p, count_rows<G>, G, bits, sizeof(int32_t),
                                   ceil_div(rows.count, run), &blocks,
                                   &threads, &shared));
        count_rows<G><<<blocks, threads, shared, p.stream()>>>(
            factor_of<float>(p.A), pattern_of(p, p.B),
            {rows, run, bits, p.count, rest, rest_count});
        SPS_LAUNCHED(p.ctx);
        return SPS_OK;
    });
}

/* Counts the rows in p.rest, `rows` of them, window by window. */
sps_status count_long(product *p, holder *h, int rows)
{
    const row_list list = {p->rest, rows};
    const unsigned blocks = (unsigned)ceil_div(rows, 8);
    int32_t *first, *windows;
    int64_t *item;
    window_list *w = &p->w;

    SPS_TRY_RETURN(h->take(rows, &first));
    SPS_TRY_RETURN(h->take(rows, &windows));
    SPS_TRY_RETURN(h->take(rows + 1, &item));
    SPS_TRY_RETURN(run_kernel(p->ctx, blocks, 256, measure_spans,
                              factor_of<float>(p->A), factor_of<float>(p->B),
                              list, first, windows));
    SPS_TRY_RETURN(spsi_cuda_scan(p->ctx, windows, rows, item));
    SPS_TRY_RETURN(read_numbers(*p, item + rows, 1, &w->items));
    SPS_TRY_RETURN(h->take(w->items, &w->at));
    *w = {p->rest, first, item, rows, w->items, w->at};
    if (w->items > 0)
        count_windows<<<(unsigned)ceil_div(w->items, window_warps),
                        32 * window_warps, 0, p->stream()>>>(
            factor_of<float>(p->A), factor_of<float>(p->B), *w);
    SPS_LAUNCHED(p->ctx);
    return run_kernel(p->ctx, blocks, 256, join_windows, *w, p->count);
}

/* Counts rows with many products: with a table of 256 columns (1024 for nodes,
 * whose rows are longer and fewer), then 1024, then 2048, then by windows.  The
 * rows of the window tier are put at the front of p.rest. */
sps_status count_many(product *p, holder *h, row_list tried, row_list windows)
{
    const int sure = (int)windows.count;
    int32_t *const list[] = {p->rest + p->A->nrow, p->list, p->rest + sure};
    int *left = p->number + tiers, rows = 0;

    if (sure > 0)
        SPS_CUDA(p->ctx, cudaMemcpyAsync(p->rest, windows.row,
                                         (size_t)sure * sizeof *p->rest,
                                         cudaMemcpyDeviceToDevice,
                                         p->stream()));
    for (int t = 0; t < 3 && tried.count > 0; t++) {
        SPS_TRY_RETURN(clear(p->ctx, 1, left));
        SPS_TRY_RETURN(count_tier(*p, tried,
                                  try_bits[t == 0 && p->way == ALIKE ? 1 : t],
                                  list[t], left));
        SPS_TRY_RETURN(read_numbers(*p, left, 1, &rows));
        tried = {list[t], rows};
    }
    rows += sure;
    return rows > 0 ? count_long(p, h, rows) : SPS_OK;
}

/* Returns whether the longest rows of A and B allow the method `merged`. */
bool merges(const product &p)
{
    return p.longest[0] <= merge_heads && p.B->nnz <= UINT32_MAX &&
           (int64_t)p.longest[0] * p.longest[1] <= merge_products;
}

sps_status count_by_merging(const product &p)
{
    SPS_TRY_RETURN(clear(p.ctx, 1, p.number));
    return run_kernel(p.ctx, (unsigned)ceil_div(p.A->nrow, merge_threads),
                      merge_threads, count_merged, factor_of<float>(p.A),
                      factor_of<float>(p.B), p.A->nrow, p.count, p.number);
}

/* Sets size = from for leaders, and to -1 (no tier) for the rows that another
 * row leads. */
sps_status only_leaders(const product &p, const int32_t *from, int32_t *size)
{
    return run_items(p.ctx, p.A->nrow, keep_leaders, p.leads, p.A->nrow, from,
                     size);
}

void make_single(product *p)
{
    p->way = SINGLE;
    p->same = NULL;
    p->w = {};
}

/* Counts the entries of the rows of C, in tiers of rows by their numbers of
 * products. */
sps_status count_by_products(product *p, holder *h)
{
    const int64_t n = p->A->nrow;
    const unsigned rows = (unsigned)ceil_div(n, 256);
    row_list tier[tiers];

    if (!p->work) SPS_TRY_RETURN(h->take(n, &p->work));
    if (!p->rest) SPS_TRY_RETURN(h->take(2 * n, &p->rest));
    SPS_TRY_RETURN(run_kernel(p->ctx, (unsigned)ceil_div(n, 32), 256,
                              count_products, factor_of<float>(p->A),
                              pattern_of(*p, p->B), n, p->work));
    if (p->way == ALIKE)
        SPS_TRY_RETURN(only_leaders(*p, p->work, p->work));
    SPS_TRY_RETURN(make_tiers(*p, p->work, p->way == ALIKE ? 3 : 0, tier));
    for (int t = 0; t < try_first - least_bits; t++)
        SPS_TRY_RETURN(count_tier(*p, tier[t], least_bits + t, NULL, NULL));
    SPS_TRY_RETURN(count_many(p, h, tier[try_first - least_bits],
                              tier[window_tier]));
    if (p->way != ALIKE) return SPS_OK;
    return run_kernel(p->ctx, rows, 256, follow_leaders, p->leads, n, p->count);
}

/* Adds to number[t] the rows of tier t in a sample of the rows of C. */
sps_status queue_sample(const product &p, int *number)
{
    const int64_t n = p.A->nrow, rows = n < sample_rows ? n : sample_rows;

    if (rows == 0) return SPS_OK;
    return run_kernel(p.ctx, (unsigned)rows, sample_threads, count_sample,
                      factor_of<float>(p.A), factor_of<float>(p.B), n, number);
}

/* p->sample becomes the number of rows of each tier in this sample. */
sps_status take_sample(product *p)
{
    SPS_TRY_RETURN(clear(p->ctx, tiers, p->number));
    SPS_TRY_RETURN(queue_sample(*p, p->number));
    return read_numbers(*p, p->number, tiers, p->sample);
}

/* Counts the entries of each row of C. */
sps_status count_all(product *p, holder *h)
{
    const int64_t n = p->A->nrow;
    const int64_t bound = (int64_t)p->longest[0] * p->longest[1];

    if (p->way == MERGED) return count_by_merging(*p);
    SPS_TRY_RETURN(clear(p->ctx, n, p->count));
    if (bound == 0) return SPS_OK;
    if (p->way == SINGLE && bound <= tight_limit)
        return count_tier(*p, {NULL, n}, least_bits + tier_of((int)bound), NULL,
                          NULL);
    SPS_TRY_RETURN(count_by_products(p, h));
    if (p->way == SINGLE || p->w.items == 0) return SPS_OK;
    make_single(p);   /* windows are computed row by row, so rows have no
                         leaders any more */
    return count_by_products(p, h);
}

} // namespace

#endif
