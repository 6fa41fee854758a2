/* SPDX-License-Identifier: BSD-3-Clause */
/* leads_device.cu - chooses the lead, the distance of two runs of rows that
 * share columns, from samples: one thread lists the candidates, then a thread
 * block examines each window of each candidate; the sums come back, and the
 * choice is made on the host. */
#include "cuda/plan/leads_device.h"

#include "cuda/plan/sample.cuh"
#include "formats/node_blocks.h"
#include "formats/row_windows.h"

namespace {

struct candidates {
    int64_t lead[SPSI_LEADS], sum[SPSI_LEADS][2];
    int64_t count;
};

/* Lists the candidates for the lead: of block rows of b rows, or, if b = 0, of
 * windows of rows. */
template <class I>
__global__ void list_kernel(const I *__restrict__ rowptr,
                            const int32_t *__restrict__ col, int64_t nrow,
                            int b, candidates *c)
{
    const int64_t middle = b ? nrow / b / 2 * b : nrow / 2;
    const int64_t first = rowptr[middle], last = rowptr[middle + 1];

    c->count = b ? spsi_node_leads(col, first, last, nrow, b, c->lead)
                 : spsi_window_leads(col, first, last, nrow, c->lead);
}

/* Adds the number of distinct columns and the number of entries of window x for
 * candidate y to c->sum[y]. */
template <class I>
__global__ void __launch_bounds__(sample_threads)
window_kernel(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
              int64_t nrow, candidates *c)
{
    __shared__ sample_rows<SPSI_WINDOW_ROWS> rows;
    const int y = (int)blockIdx.y;

    if (y >= c->count) return;
    const int64_t lead = c->lead[y];
    const int64_t i = spsi_lead_row(nrow, lead, (int)blockIdx.x);
    int64_t columns = 0;

    rows.open(SPSI_WINDOW_ROWS, [&](int r, int64_t *begin, int64_t *end) {
        const int64_t row = i + r % 4 + r / 4 * lead;

        *begin = rowptr[row];
        *end = min((int64_t)rowptr[row + 1], *begin + SPSI_LEAD_ENTRIES);
    });
    const int64_t entries = rows.at[SPSI_WINDOW_ROWS];

    rows.each(SPSI_WINDOW_ROWS, entries, [&](int r, int64_t p) {
        columns += spsi_sample_first(col, rows.begin, rows.end, r, p, 1);
    });
    columns = sum_over_block(columns);
    if (threadIdx.x > 0) return;
    atomicAdd((unsigned long long *)&c->sum[y][0], (unsigned long long)columns);
    atomicAdd((unsigned long long *)&c->sum[y][1], (unsigned long long)entries);
}

/* Counts, for pair x of candidate y, the block columns in common and those of
 * the first row. */
template <class I>
__global__ void __launch_bounds__(sample_threads)
pair_kernel(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
            int64_t nrow, int b, candidates *c)
{
    __shared__ sample_rows<2> rows;
    const int y = (int)blockIdx.y;

    if (y >= c->count) return;
    const int64_t lead = c->lead[y];
    const int64_t pair = spsi_node_lead_row(nrow, b, lead, (int)blockIdx.x);
    int64_t common = 0, all = 0;

    rows.open(2, [&](int r, int64_t *begin, int64_t *end) {
        *begin = rowptr[(pair + r * lead) * b];
        *end = rowptr[(pair + r * lead) * b + 1];
    });
    rows.each(2, rows.at[2], [&](int r, int64_t p) {
        /* whether this entry is the first of its block in its own row, and
         * whether it is the first in both rows */
        const bool head = spsi_sample_first(col, rows.begin + r, rows.end + r,
                                            0, p, b);

        all += r == 0 && head;
        common += r == 1 && head &&
                  !spsi_sample_first(col, rows.begin, rows.end, 1, p, b);
    });
    common = sum_over_block(common);
    all = sum_over_block(all);
    if (threadIdx.x > 0) return;
    atomicAdd((unsigned long long *)&c->sum[y][0], (unsigned long long)common);
    atomicAdd((unsigned long long *)&c->sum[y][1], (unsigned long long)all);
}

template <class I>
sps_status launch(sps_context *ctx, const sps_csr_local *A, const I *rowptr,
                  int b, candidates *c)
{

    SPS_TRY_RETURN(run_kernel(ctx, 1, 1, list_kernel<I>, rowptr, A->col,
                              A->nrow, b, c));
    if (b)
        return run_kernel(ctx, dim3(SPS_NODE_SAMPLE, SPS_NODE_LEADS),
                          sample_threads, pair_kernel<I>, rowptr, A->col,
                          A->nrow, b, c);
    return run_kernel(ctx, dim3(SPSI_LEAD_SAMPLE, SPSI_LEADS), sample_threads,
                      window_kernel<I>, rowptr, A->col, A->nrow, c);
}

sps_status sample(sps_context *ctx, const sps_csr_local *A, int b,
                  candidates *c)
{
    candidates *there;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(take_scratch(ctx, 1, &there));
    SPS_TRY_RETURN(clear(ctx, 1, there));
    SPS_TRY_RETURN(A->rowptr32 ? launch(ctx, A, A->rowptr32, b, there)
                               : launch(ctx, A, A->rowptr, b, there));
    return download(ctx, 1, there, c);
}

} // namespace

sps_status spsi_cuda_window_lead(sps_context *ctx, const sps_csr_local *A,
                                 int32_t *lead)
{
    candidates c;

    *lead = 4;
    if (A->nrow < SPSI_LEAD_ROWS) return SPS_OK;
    SPS_TRY_RETURN(sample(ctx, A, 0, &c));
    *lead = spsi_window_choose(c.lead, (int)c.count, c.sum);
    return SPS_OK;
}

sps_status spsi_cuda_node_lead(sps_context *ctx, const sps_csr_local *A, int b,
                               int64_t *lead)
{
    candidates c;

    *lead = 0;
    if (A->nrow / b < SPS_NODE_ROWS) return SPS_OK;
    SPS_TRY_RETURN(sample(ctx, A, b, &c));
    *lead = spsi_node_choose_lead(c.lead, (int)c.count, c.sum);
    return SPS_OK;
}
