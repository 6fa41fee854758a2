/* SPDX-License-Identifier: BSD-3-Clause */
/* segments.cu - shares rows out on the device: what each row makes, prefix
 * sums over the rows, one pass that writes the lists, and a search for the
 * first row of each range.  About 90 bytes a row move. */
#include "segments.h"

#include "device.cuh"
#include "scan.h"

namespace {

/* Of every row: segments, slots, joins, cost. */
enum { SEGMENTS, SLOTS, JOINS, COST, LISTS };

struct work {
    int32_t *count[LISTS];
    int64_t *at[LISTS];
    void *memory;
    size_t bytes;
};

sps_status work_take(sps_context *ctx, int64_t nrow, work *w)
{
    size_t n = (size_t)nrow + 1;

    w->bytes = LISTS * n * (sizeof(int64_t) + sizeof(int32_t));
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, w->bytes, &w->memory));
    for (int l = 0; l < LISTS; l++) {
        w->at[l] = (int64_t *)w->memory + l * n;
        w->count[l] = (int32_t *)((int64_t *)w->memory + LISTS * n) + l * n;
    }
    return SPS_OK;
}

template <class I>
__global__ void __launch_bounds__(256)
count_kernel(const I *__restrict__ rowptr, int64_t nrow, int32_t cut,
             int32_t most, work w)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i >= nrow) return;
    int64_t length = (int64_t)rowptr[i + 1] - rowptr[i];
    int64_t pieces = spsi_segments_of(length, cut, most);

    w.count[SEGMENTS][i] = (int32_t)pieces;
    w.count[SLOTS][i] = pieces > 1 ? (int32_t)pieces : 0;
    w.count[JOINS][i] = pieces > 1;
    w.count[COST][i] = spsi_segments_cost(length, cut);
}

template <class I>
__global__ void __launch_bounds__(256)
fill_kernel(const I *__restrict__ rowptr, int64_t nrow, work w,
            sps_segments s)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < nrow)
        spsi_segments_row(&s, i, rowptr[i], (int64_t)rowptr[i + 1] - rowptr[i],
                          w.at[SEGMENTS][i], w.at[SLOTS][i], w.at[JOINS][i]);
}

/* First row before which r / ranges of the cost lies. */
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

sps_status take(sps_context *ctx, int64_t count, size_t size, void *p_p,
                size_t *bytes)
{
    *bytes += (size_t)count * size;
    return count ? spsi_cuda_alloc(ctx, (size_t)count * size, (void **)p_p)
                 : SPS_OK;
}

/* Room for the lists, from the totals of the scans. */
sps_status open_lists(sps_context *ctx, int64_t nrow, const work &w,
                      sps_segments *s, size_t *bytes)
{
    int64_t *total[] = { &s->count, &s->slots, &s->joins };

    for (int l = 0; l < 3; l++)
        SPS_CUDA(ctx, cudaMemcpyAsync(total[l], w.at[l] + nrow,
                                      sizeof(int64_t), cudaMemcpyDeviceToHost,
                                      spsi_cuda_state(ctx)->stream));
    SPS_TRY_RETURN(spsi_cuda_wait(ctx));
    if (s->slots > INT32_MAX)
        return spsi_fail(ctx, SPS_EUNFIT, "%lld segments of split rows: at "
                         "most 2^31 - 1 are served", (long long)s->slots);
    SPS_TRY_RETURN(take(ctx, s->count, sizeof *s->segment, &s->segment,
                        bytes));
    SPS_TRY_RETURN(take(ctx, s->joins, sizeof *s->join, &s->join, bytes));
    return take(ctx, s->ranges + 1, sizeof *s->range, &s->range, bytes);
}

template <class I>
sps_status build(sps_context *ctx, const I *rowptr, int64_t nrow, work &w,
                 sps_segments *s, size_t *bytes)
{
    unsigned grid = (unsigned)ceil_div(nrow, 256);
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;

    if (grid) {
        count_kernel<<<grid, 256, 0, stream>>>(rowptr, nrow, s->cut, s->most,
                                               w);
        SPS_LAUNCHED(ctx);
    }
    for (int l = 0; l < LISTS; l++)
        SPS_TRY_RETURN(spsi_cuda_scan(ctx, w.count[l], nrow, w.at[l]));
    SPS_TRY_RETURN(open_lists(ctx, nrow, w, s, bytes));
    if (grid) {
        fill_kernel<<<grid, 256, 0, stream>>>(rowptr, nrow, w, *s);
        SPS_LAUNCHED(ctx);
    }
    range_kernel<<<(unsigned)ceil_div(s->ranges + 1, 256), 256, 0, stream>>>(
        w.at[COST], nrow, *s);
    SPS_LAUNCHED(ctx);
    return spsi_cuda_wait(ctx);
}

} // namespace

sps_status spsi_cuda_segments(sps_context *ctx, const sps_csr_local *A,
                              int32_t cut, int32_t most, int64_t ranges,
                              sps_segments *s, size_t *bytes)
{
    work w = {};
    sps_status st;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    s->cut = cut;
    s->most = most;
    s->ranges = ranges > 0 ? ranges : 1;
    st = work_take(ctx, A->nrow, &w);
    if (st == SPS_OK)
        st = A->rowptr32 ? build(ctx, A->rowptr32, A->nrow, w, s, bytes)
                         : build(ctx, A->rowptr, A->nrow, w, s, bytes);
    if (w.memory) spsi_cuda_release(ctx, w.memory, w.bytes);
    return st;
}

void spsi_cuda_segments_clear(sps_context *ctx, sps_segments *s)
{
    if (s->segment)
        spsi_cuda_release(ctx, s->segment, (size_t)s->count *
                                               sizeof *s->segment);
    if (s->join)
        spsi_cuda_release(ctx, s->join, (size_t)s->joins * sizeof *s->join);
    if (s->range)
        spsi_cuda_release(ctx, s->range, (size_t)(s->ranges + 1) *
                                             sizeof *s->range);
    *s = sps_segments();
}
