/* SPDX-License-Identifier: BSD-3-Clause */
/* segments_device.cu - divides rows into segments on the device: compares the
 * columns of groups of rows (one read of the columns), counts the segments of
 * each row, prefix sums over the rows, one pass that writes the lists, and a
 * bisection for the first row of each range.  Moves about 90 bytes per row
 * besides the columns. */
#include "cuda/plan/segments_device.h"

#include "cuda/base/device.cuh"
#include "cuda/plan/plan_memory.cuh"
#include "cuda/base/scan.h"

#include <stdio.h>

namespace {

/* Counts: for each row of A its segments, slots, joins and cost; for each group
 * of rows whether its rows differ. */
enum { SEGMENTS, SLOTS, JOINS, COST, ODD, LISTS };

struct work {
    int32_t *count[LISTS];
    int64_t *at[LISTS];
};

sps_status work_take(holder *memory, int64_t nrow, work *w)
{
    for (int l = 0; l < LISTS; l++) {
        SPS_TRY_RETURN(memory->take(nrow + 1, &w->at[l]));
        SPS_TRY_RETURN(memory->take(nrow + 1, &w->count[l]));
    }
    return SPS_OK;
}

/* s.alike[g]: whether all rows of group g have the same columns; w.count[ODD]
 * is the opposite.  Eight lanes process a group; all lanes of a warp take part
 * in the ballots. */
template <class I>
__global__ void __launch_bounds__(256)
compare_kernel(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
               sps_segments s, work w)
{
    int64_t g = ((int64_t)blockIdx.x * 256 + threadIdx.x) / 8;
    int l = (int)threadIdx.x % 8, size = s.limits.group;
    bool same = true;

    if (g < s.groups) {
        int64_t first = rowptr[g * size];
        int64_t length = rowptr[g * size + 1] - first;

        for (int r = 1; r < size; r++) {
            int64_t from = rowptr[g * size + r];

            same = same && rowptr[g * size + r + 1] - from == length;
            for (int64_t p = l; same && p < length; p += 8)
                same = col[first + p] == col[from + p];
        }
    }
    unsigned votes = __ballot_sync(all_lanes, same);

    if (g > s.groups || l > 0) return;
    /* The incomplete last group counts as not alike. */
    same = g < s.groups && (votes >> threadIdx.x % 32 & 255) == 255;
    s.alike[g] = same;
    if (g < s.groups) w.count[ODD][g] = !same;
}

__device__ __forceinline__ bool is_alike(const sps_segments &s, int64_t i)
{
    return !s.alike || s.alike[i / s.limits.group];
}

template <class I>
__global__ void __launch_bounds__(256)
count_kernel(const I *__restrict__ rowptr, int64_t nrow, sps_segments s,
             work w)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i >= nrow) return;
    int64_t length = (int64_t)rowptr[i + 1] - rowptr[i];
    int64_t pieces = spsi_segments_of(length, is_alike(s, i), s.limits);

    w.count[SEGMENTS][i] = (int32_t)pieces;
    w.count[SLOTS][i] = pieces > 1 ? (int32_t)pieces : 0;
    w.count[JOINS][i] = pieces > 1;
    w.count[COST][i] = spsi_segments_cost(length, s.limits);
}

template <class I>
__global__ void __launch_bounds__(256)
fill_kernel(const I *__restrict__ rowptr, int64_t nrow, work w,
            sps_segments s)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < nrow)
        spsi_segments_row(&s, i, rowptr[i], (int64_t)rowptr[i + 1] - rowptr[i],
                          is_alike(s, i), w.at[SEGMENTS][i], w.at[SLOTS][i],
                          w.at[JOINS][i]);
}

/* Finds the first row of each range: range r begins with the first row i with
 * before[i] >= r / ranges of the total cost. */
__global__ void __launch_bounds__(256)
range_kernel(const int64_t *__restrict__ before, int64_t nrow, sps_segments s)
{
    int64_t r = (int64_t)blockIdx.x * 256 + threadIdx.x, low = 0, high = nrow;

    if (r > s.ranges) return;
    int64_t want = r * before[nrow] / s.ranges;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (before[middle] < want) low = middle + 1;
        else high = middle;
    }
    s.range[r] = r < s.ranges ? low : nrow;
}

/* Allocates the lists of s, whose lengths are the totals of the prefix sums. */
sps_status open_lists(sps_plan *plan, int64_t nrow, const work &w,
                      sps_segments *s)
{
    sps_context *ctx = plan->ctx;
    int64_t *total[] = { &s->count, &s->slots, &s->joins };

    for (int l = 0; l < 3; l++)
        SPS_CUDA(ctx, spsi_cuda_down(ctx, total[l], w.at[l] + nrow,
                                     sizeof(int64_t)));
    SPS_TRY_RETURN(spsi_cuda_wait(ctx));
    if (s->slots > INT32_MAX)
        return spsi_fail(ctx, SPS_EUNFIT, "%lld segments of split rows: at "
                         "most 2^31 - 1 are supported", (long long)s->slots);
    SPS_TRY_RETURN(plan_take(plan, s->count, &s->segment));
    return plan_take(plan, s->joins, &s->join);
}

/* Fills s->alike and counts the groups whose rows differ. */
template <class I>
sps_status compare(sps_context *ctx, const I *rowptr, const int32_t *col,
                   const work &w, sps_segments *s)
{

    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(s->groups + 1, 32), 256,
                              compare_kernel<I>, rowptr, col, *s, w));
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, w.count[ODD], s->groups, w.at[ODD]));
    SPS_CUDA(ctx, spsi_cuda_down(ctx, &s->odd, w.at[ODD] + s->groups,
                                 sizeof s->odd));
    return spsi_cuda_wait(ctx);
}

template <class I>
sps_status build(sps_plan *plan, const I *rowptr, const work &w,
                 sps_segments *s)
{
    sps_context *ctx = plan->ctx;
    int64_t nrow = plan->A->nrow;
    unsigned grid = (unsigned)ceil_div(nrow, 256);

    if (s->alike) SPS_TRY_RETURN(compare(ctx, rowptr, plan->A->col,
                                         w, s));
    if (grid)
        SPS_TRY_RETURN(run_kernel(ctx, grid, 256, count_kernel<I>, rowptr, nrow,
                                  *s, w));
    for (int l = 0; l < (s->range ? ODD : COST); l++)
        SPS_TRY_RETURN(spsi_cuda_scan(ctx, w.count[l], nrow, w.at[l]));
    SPS_TRY_RETURN(open_lists(plan, nrow, w, s));
    if (grid)
        SPS_TRY_RETURN(run_kernel(ctx, grid, 256, fill_kernel<I>, rowptr, nrow,
                                  w, *s));
    if (s->range)
        SPS_TRY_RETURN(run_items(ctx, s->ranges + 1, range_kernel, w.at[COST],
                                 nrow, *s));
    return spsi_cuda_wait(ctx);
}

/* Allocates the arrays whose sizes do not depend on the totals. */
sps_status open_fixed(sps_plan *plan, int64_t ranges, sps_segments *s)
{
    if (s->limits.group > 1) {
        s->groups = plan->A->nrow / s->limits.group;
        return plan_take(plan, s->groups + 1, &s->alike);
    }
    s->ranges = ranges > 0 ? ranges : 1;
    return plan_take(plan, s->ranges + 1, &s->range);
}

} // namespace

sps_status spsi_cuda_segments(sps_plan *plan, sps_segments_limits limits,
                              int64_t ranges, sps_segments *s)
{
    const sps_csr_local *A = plan->A;
    holder memory(plan->ctx);
    work w;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    s->limits = limits;
    SPS_TRY_RETURN(open_fixed(plan, ranges, s));
    SPS_TRY_RETURN(work_take(&memory, A->nrow, &w));
    return A->rowptr32 ? build(plan, A->rowptr32, w, s)
                       : build(plan, A->rowptr, w, s);
}

sps_status spsi_cuda_segments_alike(sps_plan *plan, sps_segments_limits limits,
                                    int64_t ranges, sps_segments *s)
{
    SPS_TRY_RETURN(spsi_cuda_segments(plan, limits, ranges, s));
    if (s->odd * 8 <= s->groups) return SPS_OK;
    plan_give(plan, &s->segment);
    plan_give(plan, &s->join);
    plan_give(plan, &s->alike);
    *s = sps_segments();
    limits.group = 1;
    return spsi_cuda_segments(plan, limits, ranges, s);
}

void spsi_cuda_segments_tell(sps_plan *plan, const sps_segments *s)
{
    snprintf(plan->detail, sizeof plan->detail,
             s->limits.group > 1 ? "%d rows at once, %lld segments"
                                 : "rows beyond %d in %lld segments",
             s->limits.group > 1 ? (int)s->limits.group : (int)s->limits.cut,
             (long long)s->count);
}
