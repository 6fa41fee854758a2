/* SPDX-License-Identifier: BSD-3-Clause */
/* panel_rows.cu - the product of a panel (rows of A packed as in
 * formats/panels.h) in device memory with X.
 *
 * A thread block decodes a window to shared memory, columns as 32-bit integers,
 * values in the type of the blocks; then `lanes` lanes process a strip of rows,
 * each with one or two columns of the block and 8 rows of X in flight.  A sum
 * starts from 0 and adds the entries of the row in order by fused
 * multiply-adds, as spmm.plain does, so both give the same bits for rows of up
 * to 1024 entries.  Sums of segments of long rows go to `part`, and are added
 * in order after all panels.
 *
 * One launch processes a panel of the ring, or all resident panels with one
 * type of values; blockIdx.y is then the panel.  The link carries at most 55
 * GB/s, or 18 entries per nanosecond at 3 bytes each; this kernel decodes
 * several times as many. */
#include "cuda/sparse/sparse.cuh"
#include "cuda/stream/stream.cuh"

namespace {

constexpr int threads = 256, ahead = 8;

struct view {
    const char *__restrict__ image;
    size_t strips, deltas, table, values;
    uint32_t windows;
};

/* The panel to multiply (`one`), or an array of panels in device memory
 * (`many`, else NULL). */
struct views {
    view one;
    const view *many;
};

view view_of(const sps_panel &p, const char *image)
{
    return {image, p.strips, p.deltas, p.table, p.values,
            (uint32_t)p.windows};
}

template <class T> struct room {
    T value[SPS_PANEL_ENTRIES];
    int32_t col[SPS_PANEL_ENTRIES];
    sps_strip strip[SPS_PANEL_STRIPS + 1];
    sps_panel_window window;
};

template <sps_panel_kind KIND>
__device__ __forceinline__ double value_of(const view &v, uint32_t e)
{
    const char *values = v.image + v.values;

    if (KIND == SPS_PANEL_DOUBLE) return __ldcs((const double *)values + e);
    if (KIND == SPS_PANEL_FLOAT) return __ldcs((const float *)values + e);
    return ((const double *)(v.image + v.table))
        [__ldcs((const uint8_t *)values + e)];
}

/* Decodes the window of this thread block from the panel to shared memory. */
template <sps_panel_kind KIND, class T>
__device__ __forceinline__ void decode(const view &v, room<T> &r)
{
    const uint32_t t = threadIdx.x;
    const int *from = (const int *)((const sps_panel_window *)v.image +
                                    blockIdx.x);

    if (t < sizeof r.window / sizeof(int)) ((int *)&r.window)[t] = from[t];
    __syncthreads();
    const sps_panel_window &w = r.window;
    const sps_strip *strip = (const sps_strip *)(v.image + v.strips) + w.strip;
    const uint16_t *delta = (const uint16_t *)(v.image + v.deltas) + w.delta;

    for (uint32_t s = t; s <= w.strips; s += threads) r.strip[s] = strip[s];
    for (uint32_t e = t; e < w.entries; e += threads)
        r.value[e] = (T)value_of<KIND>(v, w.value + e);
    for (uint32_t d = t; d < w.lists; d += threads) {
        if (w.whole) {
            r.col[d] = __ldcs((const int32_t *)delta + d);
        } else {
            const uint32_t packed = __ldcs(delta + d);

            r.col[d] = w.base[packed >> SPS_PACKED_BITS] +
                       (int32_t)(packed % SPS_PACKED_REACH);
        }
    }
    __syncthreads();
}

/* Loads C neighbouring elements of a row of X, of which `left` exist. */
template <int C, bool PAIRED, class T>
__device__ __forceinline__ void load(const T *x, int left, T (&b)[C])
{
    if constexpr (C == 2 && PAIRED) {
        const double2 two = fetch_pair<true>(x, left);

        b[0] = two.x;
        b[1] = two.y;
    } else {
#pragma unroll
        for (int j = 0; j < C; j++) b[j] = j < left ? __ldg(x + j) : T(0);
    }
}

/* Adds the products of strip s with C columns of X to sum; x points to the
 * first of these columns. */
template <int C, bool PAIRED, class T>
__device__ __forceinline__ void add_strip(const room<T> &r, int s, const T *x,
                                          int64_t ldx, int left, T (&sum)[C])
{
    const int first = r.strip[s].value, count = r.strip[s + 1].value - first;
    const T *a = r.value + first;
    const int32_t *col = r.col + r.strip[s].delta;

    for (int e = 0; e < count; e += ahead) {
        T b[ahead][C];

#pragma unroll
        for (int u = 0; u < ahead; u++)
            if (e + u < count)
                load<C, PAIRED>(x + (int64_t)col[e + u] * ldx, left, b[u]);
#pragma unroll
        for (int u = 0; u < ahead; u++)
#pragma unroll
            for (int j = 0; j < C; j++)
                if (e + u < count) sum[j] = fma(a[e + u], b[u][j], sum[j]);
    }
}

template <sps_panel_kind KIND, int C, bool PAIRED, class T>
__global__ void __launch_bounds__(threads)
panel_kernel(views all, blocks<T> b, int lanes, T *part)
{
    __shared__ room<T> r;
    const view v = all.many ? all.many[blockIdx.y] : all.one;
    const int first = (int)threadIdx.x % lanes * C;

    if (blockIdx.x >= v.windows) return;
    b.resolve();
    decode<KIND>(v, r);
    for (int c = first; c < b.k; c += lanes * C)
        for (int s = (int)threadIdx.x / lanes; s < r.window.strips;
             s += threads / lanes) {
            const int64_t i = r.window.row + s;
            T sum[C] = {};

            add_strip<C, PAIRED>(r, s, b.x + c, b.ldx, b.k - c, sum);
#pragma unroll
            for (int j = 0; j < C; j++) {
                T *y = b.y + i * b.ldy + c + j;

                if (c + j >= b.k) break;
                if (r.window.parts) part[i * b.k + c + j] = sum[j];
                else *y = b.join(sum[j], y, i);
            }
        }
}

/* Adds the sums of the segments of each long row, in order, to Y; a thread
 * processes one column of one row. */
template <class T>
__global__ void __launch_bounds__(threads)
fold_kernel(blocks<T> b, const T *__restrict__ part,
            const int64_t *__restrict__ row,
            const int64_t *__restrict__ first, int64_t longs)
{
    const int64_t t = (int64_t)blockIdx.x * threads + threadIdx.x;
    const int64_t l = t / b.k, c = t % b.k;

    b.resolve();
    if (l >= longs) return;
    T sum = part[first[l] * b.k + c], *y = b.y + row[l] * b.ldy + c;

    for (int64_t p = first[l] + 1; p < first[l + 1]; p++)
        sum += part[p * b.k + c];
    *y = b.join(sum, y, row[l]);
}

struct launch {
    cudaStream_t stream;
    dim3 grid;
    views v;
};

template <sps_panel_kind KIND, class T>
void product(const launch &l, const blocks<T> &b, bool pairs, T *part)
{
    const int lanes = b.k > 62 ? 32 : power_above((b.k + 1) / 2);

    if (b.k == 1) {
        panel_kernel<KIND, 1, false><<<l.grid, threads, 0, l.stream>>>(
            l.v, b, 1, part);
        return;
    }
    if constexpr (sizeof(T) == sizeof(double))
        if (pairs) {
            panel_kernel<KIND, 2, true><<<l.grid, threads, 0, l.stream>>>(
                l.v, b, lanes, part);
            return;
        }
    panel_kernel<KIND, 2, false><<<l.grid, threads, 0, l.stream>>>(
        l.v, b, lanes, part);
}

template <class T>
void product_as(const launch &l, sps_panel_kind kind,
                const sps_spmm_args *args, void *part)
{
    const blocks<T> b = blocks_of<T>(args);
    const bool pairs = paired(args->X);

    if constexpr (sizeof(T) == sizeof(double))
        if (kind == SPS_PANEL_DOUBLE)
            product<SPS_PANEL_DOUBLE>(l, b, pairs, (T *)part);
    if (kind == SPS_PANEL_FLOAT)
        product<SPS_PANEL_FLOAT>(l, b, pairs, (T *)part);
    if (kind == SPS_PANEL_TABLE)
        product<SPS_PANEL_TABLE>(l, b, pairs, (T *)part);
}

sps_status product_of(const sps_stream_plan *plan, const launch &l,
                      sps_panel_kind kind, const sps_spmm_args *args)
{
    if (args->Y->dtype == SPS_F64)
        product_as<double>(l, kind, args, plan->longs.part);
    else
        product_as<float>(l, kind, args, plan->longs.part);
    SPS_LAUNCHED(plan->super.ctx);
    return SPS_OK;
}

/* Returns the end of the run of resident panels with one type of values that
 * begins at panel i; *most is the largest number of windows of one of them. */
int64_t run_of(const sps_stream_plan *plan, int64_t i, unsigned *most)
{
    const sps_panel_kind kind = plan->panel[i].is.kind;
    const int64_t first = i;

    for (*most = 0; i < plan->resident && i - first < 65535 &&
         plan->panel[i].is.kind == kind; i++)
        if (*most < (unsigned)plan->panel[i].is.windows)
            *most = (unsigned)plan->panel[i].is.windows;
    return i;
}

} // namespace

sps_status spsi_stream_product(const sps_stream_plan *plan, const sps_panel *p,
                               const char *image, const sps_spmm_args *args)
{
    return product_of(plan, {spsi_cuda_state(plan->super.ctx)->stream,
                             dim3((unsigned)p->windows),
                             {view_of(*p, image), NULL}}, p->kind, args);
}

sps_status spsi_stream_residents(const sps_stream_plan *plan,
                                 const sps_spmm_args *args)
{
    const cudaStream_t stream = spsi_cuda_state(plan->super.ctx)->stream;

    for (int64_t i = 0, end; i < plan->resident; i = end) {
        unsigned most;

        end = run_of(plan, i, &most);
        SPS_TRY_RETURN(product_of(plan, {stream, dim3(most,
                                                      (unsigned)(end - i)),
                                         {{}, (const view *)plan->views + i}},
                                  plan->panel[i].is.kind, args));
    }
    return SPS_OK;
}

sps_status spsi_stream_list_residents(sps_stream_plan *plan)
{
    sps_context *ctx = plan->super.ctx;
    const size_t bytes = (size_t)plan->resident * sizeof(view);
    void *list;
    sps_status st;

    if (plan->resident == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_plan_take(&plan->super, bytes, &plan->views));
    SPS_TRY_RETURN(spsi_new(ctx, bytes, &list));
    for (int64_t i = 0; i < plan->resident; i++)
        ((view *)list)[i] = view_of(plan->panel[i].is, plan->panel[i].at);
    st = ctx->backend->upload(ctx, plan->views, list, bytes);
    spsi_free(ctx, list);
    return st;
}

sps_status spsi_stream_fold(const sps_stream_plan *plan,
                            const sps_spmm_args *args)
{
    sps_context *ctx = plan->super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    const unsigned grid = (unsigned)ceil_div(plan->longs.rows * args->Y->k,
                                             threads);

    if (plan->longs.rows == 0) return SPS_OK;
    if (args->Y->dtype == SPS_F64)
        fold_kernel<<<grid, threads, 0, stream>>>(
            blocks_of<double>(args), (const double *)plan->longs.part,
            plan->longs.row, plan->longs.first, plan->longs.rows);
    else
        fold_kernel<<<grid, threads, 0, stream>>>(
            blocks_of<float>(args), (const float *)plan->longs.part,
            plan->longs.row, plan->longs.first, plan->longs.rows);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}
