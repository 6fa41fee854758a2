/* SPDX-License-Identifier: BSD-3-Clause */
/* share_plan.cu - divides the entries of a matrix into shares on the device;
 * the method and the kernels are in share_plan.cuh.  The scratch memory holds,
 * for each size of a share, the states before all chunks of rows, and after
 * these, for each size, the tables of all chunks. */
#include "cuda/base/csr_view.cuh"
#include "cuda/plan/share_plan.cuh"

namespace {

/* Returns the number of rows of a chunk, such that the loops over the rows of a
 * chunk (done twice) and over the chunks need about the same time, about 50 ns
 * per step. */
int64_t reach_of(int64_t nrow)
{
    int64_t reach = 64;

    while (4 * reach * reach < nrow) reach *= 2;
    return reach;
}
int64_t chunks_of(int64_t nrow) { return ceil_div(nrow, reach_of(nrow)); }

size_t states_bytes(int64_t count)
{
    return ((size_t)count * sizeof(deal_state) + 255) / 256 * 256;
}

/* Counts the shares for `sizes` sizes; `total`, one state for each size, is in
 * pinned host memory and written by the device. */
sps_status count(sps_context *ctx, const sps_csr_local *A, int sizes,
                 const share_rules &rule, deal_state *total)
{
    const int64_t chunks = chunks_of(A->nrow), all = sizes * chunks;
    sps_cuda_state *state = spsi_cuda_state(ctx);

    SPS_TRY_RETURN(spsi_cuda_need_scratch(
        ctx, states_bytes(all) + (size_t)all * sizeof(chunk_table)));
    deal_state *from = (deal_state *)state->d_scratch;
    chunk_table *table =
        (chunk_table *)(state->d_scratch + states_bytes(all));

    if (chunks > 0)
        SPS_TRY_RETURN(with_offsets(A, [&](auto rowptr) -> sps_status {
            const dim3 grid((unsigned)chunks, (unsigned)sizes);

            survey_kernel<<<grid, 32, 0, state->stream>>>(
                rowptr, A->nrow, reach_of(A->nrow), rule, table);
            SPS_LAUNCHED(ctx);
            return SPS_OK;
        }));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)sizes, 32, chain_kernel, table,
                              chunks, rule, from, total));
    return spsi_cuda_wait(ctx);
}

} // namespace

sps_status spsi_cuda_shares_tally(sps_context *ctx, const sps_csr_local *A,
                                  int sizes, sps_shares *s)
{
    share_rules rule = {};
    deal_state *total;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, SPS_SHARE_SIZES * sizeof *total));
    total = (deal_state *)spsi_cuda_state(ctx)->down;
    rule.team = s->team;
    for (int n = 0; n < sizes; n++) rule.size[n] = s[n].size;
    SPS_TRY_RETURN(count(ctx, A, sizes, rule, total));
    ctx->memory.to_host += (int64_t)sizeof *total * sizes;
    for (int n = 0; n < sizes; n++) {
        s[n].count = ceil_div(total[n].count, s[n].team) * s[n].team;
        s[n].spans = total[n].spans;
        s[n].parts = total[n].parts;
        s[n].rows = total[n].rows;
        s[n].empty = A->nrow - total[n].rows;
    }
    return SPS_OK;
}

sps_status spsi_cuda_shares_fill(sps_context *ctx, const sps_csr_local *A,
                                 int n, const sps_shares *s)
{
    const int64_t chunks = chunks_of(A->nrow);
    sps_cuda_state *state = spsi_cuda_state(ctx);
    const deal_state *from = (const deal_state *)state->d_scratch + n * chunks;

    if (chunks > 0)
        SPS_TRY_RETURN(with_offsets(A, [&](auto rowptr) -> sps_status {
            deal_kernel<<<(unsigned)chunks, 32, 0, state->stream>>>(
                rowptr, A->nrow, reach_of(A->nrow), from, *s);
            SPS_LAUNCHED(ctx);
            return SPS_OK;
        }));
    if (s->count > 0)
        SPS_TRY_RETURN(run_kernel(ctx,
                                  (unsigned)ceil_div(s->count, SPS_SHARE_TEAM),
                                  SPS_SHARE_TEAM, finish_kernel, *s));
    return SPS_OK;
}
