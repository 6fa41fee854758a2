/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_cycle.cu - operations of multigrid outside the set-up of its levels:
 * `weigh` scales rows and columns of a matrix, `ahead` makes a prolongation
 * with a smoothing step, `enter` converts the residual at the start of a cycle,
 * `subtract` does so where a residual is made (cuda/block/single_enter.cu).
 *
 * weigh: 16 bytes an entry for doubles, 12 for floats, and 4 more with column
 * factors.  ahead: 20 or 16 bytes an entry of A P, 12 an entry of P.  enter: 12
 * bytes an element. */
#include "cuda/amg/coarse.cuh"
#include "cuda/block/single_enter.h"

namespace {

/* *most becomes the maximum of its old value and the bits of |x|, compared as
 * integers, so that a NaN is larger than all other values. */
__device__ __forceinline__ void note_largest(unsigned long long *most, double x)
{
    unsigned long long bits =
        (unsigned long long)__double_as_longlong(x) & ~(1ull << 63);

    bits = group_most<32>(bits);
    if (threadIdx.x % 32 == 0 && bits > *(volatile unsigned long long *)most)
        atomicMax(most, bits);
}

/* Returns the larger magnitude of x and y, or NaN if one is NaN. */
__device__ __forceinline__ double larger(double x, double y)
{
    y = fabs(y);
    return y > x || isnan(y) ? y : x;
}

/* Factors of a matrix: row i is multiplied by r[i] and column k divided by
 * c[k]; r or c NULL stands for ones. */
struct line_factors {
    const double *__restrict__ r, *__restrict__ c;

    __device__ double of_row(int64_t i) const { return r ? r[i] : 1; }
    __device__ double apply(double by, double a, int32_t k) const
    {
        return c ? by * a / c[k] : by * a;
    }
};

/* val = the values of A with these factors.  G threads process 4 rows at a
 * time, and load the first G entries of each before the factors of one are
 * needed, then 3 G more of a row together.  *most receives the bits of the
 * largest magnitude, unless it is NULL. */
template <int G, class V> __global__ void __launch_bounds__(256)
weigh_entries(const entries A, int64_t n, const line_factors f,
              V *__restrict__ val, unsigned long long *most)
{
    constexpr int U = 4, more = 3;
    const int64_t step = (int64_t)gridDim.x * (256 / G);
    const int lane = (int)threadIdx.x % G;
    double largest = 0;

    auto put = [&](int64_t p, double by, double a, int32_t k) {
        const double x = f.apply(by, a, k);

        val[p] = (V)x;
        if (most) largest = larger(largest, x);
    };
    for (int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) / G; i < n;
         i += U * step) {
        int64_t p[U], end[U];
        double by[U], a[U];
        int32_t k[U];

#pragma unroll
        for (int u = 0; u < U; u++) {
            const int64_t row = i + u * step;

            p[u] = row < n ? A.rowptr[row] + lane : 0;
            end[u] = row < n ? A.rowptr[row + 1] : 0;
            by[u] = row < n ? f.of_row(row) : 0;
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            a[u] = p[u] < end[u] ? A.val[p[u]] : 0;
            k[u] = f.c && p[u] < end[u] ? A.col[p[u]] : 0;
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            if (p[u] < end[u]) put(p[u], by[u], a[u], k[u]);
            for (int64_t q = p[u] + G; q < end[u]; q += more * G) {
                double b[more];
                int32_t c[more];

#pragma unroll
                for (int v = 0; v < more; v++) {
                    const bool some = q + v * G < end[u];

                    b[v] = some ? A.val[q + v * G] : 0;
                    c[v] = f.c && some ? A.col[q + v * G] : 0;
                }
#pragma unroll
                for (int v = 0; v < more; v++)
                    if (q + v * G < end[u]) put(q + v * G, by[u], b[v], c[v]);
            }
        }
    }
    if (most) note_largest(most, largest);
}

/* Returns the first position in first .. last - 1 of ascending columns with a
 * column of at least k, or last. */
__device__ __forceinline__ int64_t lower_place(const int32_t *col,
                                               int64_t first, int64_t last,
                                               int32_t k)
{
    while (first < last) {
        const int64_t middle = first + (last - first) / 2;

        if (col[middle] < k) first = middle + 1;
        else last = middle;
    }
    return first;
}

/* val = the values of P - f diag(d) AP for n rows, on the pattern of AP.  Eight
 * threads process a row.  most as above; *lacks is set if an entry of P is not
 * in AP. */
template <class V> __global__ void __launch_bounds__(256)
ahead_entries(const entries AP, const entries P, int64_t n, double f,
              const double *__restrict__ d, V *__restrict__ val,
              unsigned long long *most, unsigned long long *lacks)
{
    const int64_t step = (int64_t)gridDim.x * 32;
    const int lane = (int)threadIdx.x % 8;
    const unsigned mine = 0xffu << (threadIdx.x % 32 / 8 * 8);
    double largest = 0;

    for (int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) / 8; i < n;
         i += step) {
        const int64_t first = P.rowptr[i], last = P.rowptr[i + 1];
        const int64_t end = AP.rowptr[i + 1];
        const double by = f * d[i];
        int64_t from = first;
        int found = 0;

        for (int64_t p = AP.rowptr[i] + lane; p < end; p += 8) {
            const int32_t k = AP.col[p];
            double x = -(by * AP.val[p]);

            from = lower_place(P.col, from, last, k);
            if (from < last && P.col[from] == k) {
                x += P.val[from];
                found++;
            }
            val[p] = (V)x;
            if (most) largest = larger(largest, x);
        }
        found = __reduce_add_sync(mine, found);
        if (lane == 0 && found != last - first) *lacks = 1;
    }
    if (most) note_largest(most, largest);
}

/* Returns the elements of an n x 1 block, or NULL. */
const double *column_of(const sps_block *X)
{
    return X ? (const double *)X->data : NULL;
}

/* Returns where the bits of element `at` of an n x 1 block are. */
unsigned long long *bits_of(sps_block *X, int at)
{
    return (unsigned long long *)X->data + at;
}

/* u_ij = d_i c_j r_ij, as floats.  A thread processes two neighbouring columns
 * of a row, and `across` threads process a row. */
__global__ void __launch_bounds__(256)
enter_rows(const double *__restrict__ d, const double *__restrict__ c,
           const double *__restrict__ r, int64_t ldr, int64_t n, int k,
           int across, float *__restrict__ u, int64_t ldu)
{
    const int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x;
    const int64_t i = e / across;
    const int j = 2 * (int)(e - i * across);

    if (i >= n) return;
    r += i * ldr + j;
    u += i * ldu + j;
    if (j + 1 < k && ldr % 2 == 0 && ldu % 2 == 0) {
        const double2 v = *reinterpret_cast<const double2 *>(r);

        *reinterpret_cast<float2 *>(u) =
            make_float2((float)(d[i] * (c[j] * v.x)),
                        (float)(d[i] * (c[j + 1] * v.y)));
    } else {
        u[0] = (float)(d[i] * (c[j] * r[0]));
        if (j + 1 < k) u[1] = (float)(d[i] * (c[j + 1] * r[1]));
    }
}

} // namespace

namespace {

template <int G, class V>
sps_status launch_weigh(sps_context *ctx, const sps_csr *A,
                        const line_factors &f, V *val,
                        unsigned long long *most)
{
    const int64_t blocks = ceil_div(A->nrow, 256 / G);
    const int64_t limit = 16 * (int64_t)spsi_cuda_state(ctx)->sms;

    return run_kernel(ctx, (unsigned)(blocks < limit ? blocks : limit), 256,
                      weigh_entries<G, V>, entries_of(A), A->nrow, f, val,
                      most);
}

/* G: about the mean length of a row. */
template <class V>
sps_status weigh_as(sps_context *ctx, const sps_csr *A, const line_factors &f,
                    V *val, unsigned long long *most)
{
    const int64_t mean = A->nnz / A->nrow;

    return mean <= 4  ? launch_weigh<4>(ctx, A, f, val, most)
         : mean <= 12 ? launch_weigh<8>(ctx, A, f, val, most)
                      : launch_weigh<32>(ctx, A, f, val, most);
}

} // namespace

sps_status spsi_coarse_weigh(sps_context *ctx, const sps_csr *A,
                             const sps_block *r, const sps_block *c,
                             sps_dtype dtype, void *val, sps_block *largest,
                             int at)
{
    const line_factors f = {column_of(r), column_of(c)};

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (A->nrow == 0) return SPS_OK;
    return dtype == SPS_F64
               ? weigh_as(ctx, A, f, (double *)val, NULL)
               : weigh_as(ctx, A, f, (float *)val, bits_of(largest, at));
}

template <class V>
sps_status launch_ahead(sps_context *ctx, const sps_csr *P, const sps_csr *AP,
                        double f, const sps_block *d, V *val,
                        unsigned long long *largest, unsigned long long *lacks)
{
    const int64_t blocks = ceil_div(AP->nrow, 32);
    const int64_t most = 16 * (int64_t)spsi_cuda_state(ctx)->sms;

    return run_kernel(ctx, (unsigned)(blocks < most ? blocks : most), 256,
                      ahead_entries<V>, entries_of(AP), entries_of(P), AP->nrow,
                      f, column_of(d), val, largest, lacks);
}

sps_status spsi_coarse_ahead(sps_context *ctx, const sps_csr *P,
                             const sps_csr *AP, double f, const sps_block *d,
                             sps_dtype dtype, void *val, sps_block *largest,
                             int at, bool *within)
{
    unsigned long long *lacks, host;
    holder h(ctx);

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    *within = true;
    if (AP->nrow == 0) return SPS_OK;
    SPS_TRY_RETURN(h.take(1, &lacks));
    SPS_TRY_RETURN(clear(ctx, 1, lacks));
    SPS_TRY_RETURN(dtype == SPS_F64
                       ? launch_ahead(ctx, P, AP, f, d, (double *)val, NULL,
                                      lacks)
                       : launch_ahead(ctx, P, AP, f, d, (float *)val,
                                      bits_of(largest, at), lacks));
    SPS_TRY_RETURN(download(ctx, 1, lacks, &host));
    *within = host == 0;
    return SPS_OK;
}

/* The rows of a view may be aligned to 8 bytes only: then elements are loaded
 * one by one. */
sps_status spsi_coarse_enter(const sps_block *d, const double *c,
                             const sps_block *R, sps_block *U)
{
    sps_context *ctx = R->ctx;
    const size_t bytes = (size_t)R->k * sizeof(double);
    const bool pairs = (uintptr_t)R->data % 16 == 0 &&
                       (uintptr_t)U->data % 8 == 0;
    const int across = (R->k + 1) / 2;
    void *host, *device;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (R->n == 0 || R->k == 0) return SPS_OK;
    if (!pairs) {
        SPS_TRY_RETURN(ctx->backend->axpby_cols(c, R, NULL, U));
        return ctx->backend->scale_rows(d, U, U);
    }
    SPS_TRY_RETURN(spsi_cuda_room(ctx, bytes, &host, &device));
    memcpy(host, c, bytes);
    SPS_TRY_RETURN(spsi_cuda_send(ctx, host, device, bytes));
    return run_items(ctx, R->n * across, enter_rows, column_of(d),
                     (const double *)device, (const double *)R->data, R->ld,
                     R->n, R->k, across, (float *)U->data, U->ld);
}

sps_status spsi_coarse_subtract(const sps_block *Q, const sps_small *a,
                                sps_block *R, sps_small *S, const sps_block *d,
                                const double *c, sps_block *U, bool *served)
{
    *served = spsi_cuda_single_enters(Q, a, R, U);
    return *served ? spsi_cuda_single_enter(Q, a, R, S, d, c, U) : SPS_OK;
}
