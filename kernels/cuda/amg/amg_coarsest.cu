/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_coarsest.cu - the dense inverse of the coarsest matrix, by Gauss-Jordan
 * elimination on the device, with the formulas of solvers/amg/coarsest.c.
 *
 * A kernel exchanges `panel` unknowns for their right-hand sides; each element
 * is updated for one unknown after the other, as on the host.  The kernel reads
 * one copy of the matrix and writes another, 16 n^2 bytes, which stay in L2.
 * The host waits once, to learn whether there is an inverse. */
#include "cuda/amg/coarse.cuh"

namespace {

struct clear_dense {
    double *X;

    __device__ void operator()(int64_t e) const { X[e] = 0; }
};

struct load_dense {
    entries A;
    const double *s;
    int64_t n;
    double *X;

    __device__ void operator()(int64_t i) const
    {
        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
            X[i * n + A.col[p]] = A.val[p] * s[i] * s[A.col[p]];
        if (s[i] == 0) X[i * n + i] = 1;
    }
};

/* Y = (X + X') / 2; *bad is set if an element of X exceeds SPS_COARSE_LARGE. */
struct mean_of_both {
    const double *X;
    int64_t n;
    double *Y;
    int *bad;                 /* set if an element is too large; NULL if not
                                 needed */

    __device__ void operator()(int64_t e) const
    {
        const int64_t i = e / n, j = e % n;
        const double x = X[e], y = X[j * n + i];

        Y[e] = i == j ? x : i < j ? 0.5 * x + 0.5 * y : 0.5 * y + 0.5 * x;
        if (bad && !(fabs(x) <= SPS_COARSE_LARGE)) *bad = 1;
    }
};

/* Computes b = S^-1 v for each near-null vector v, and the terms of ||b||^2 and
 * of ||C b||^2, where C is the scaled matrix: n elements of each array for a
 * vector.  Item e is row e % n for vector e / n. */
struct null_terms {
    entries A;
    const double *s, *near;
    int64_t n;
    int vectors;
    double *b, *length, *image;

    __device__ void operator()(int64_t e) const
    {
        const int64_t v = e / n, i = e % n;
        double sum = 0;

        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
            sum += A.val[p] * near[(int64_t)A.col[p] * vectors + v];
        b[e] = s[i] > 0 ? near[i * vectors + v] / s[i] : 0;
        length[e] = b[e] * b[e];
        image[e] = sum * s[i] * sum * s[i];
    }
};

/* found[v] becomes ||b||^2 if C b = 0 to rounding, else 0.  A warp processes a
 * vector: 32 terms of each sum are loaded together and added one by one. */
__global__ void __launch_bounds__(32)
judge_null(const double *__restrict__ length, const double *__restrict__ image,
           int64_t n, double *found)
{
    const int64_t first = blockIdx.x * n, end = first + n;
    double whole = 0, other = 0;

    for (int64_t p = first; p < end; p += 32) {
        const int64_t mine = p + threadIdx.x;
        const double l = mine < end ? length[mine] : 0;
        const double c = mine < end ? image[mine] : 0;
        const int terms = (int)min(end - p, (int64_t)32);

        for (int t = 0; t < terms; t++) {
            whole += __shfl_sync(all_lanes, l, t);
            other += __shfl_sync(all_lanes, c, t);
        }
    }
    if (threadIdx.x > 0) return;
    found[blockIdx.x] =
        whole > 0 && other <= SPS_COARSE_ZERO * SPS_COARSE_ZERO * whole ? whole
                                                                        : 0;
}

struct add_null {
    const double *b, *found;
    int64_t n;
    int vectors;
    double *X;

    __device__ void operator()(int64_t e) const
    {
        for (int v = 0; v < vectors; v++)
            if (found[v] > 0)
                X[e] += b[v * n + e / n] * b[v * n + e % n] / found[v];
    }
};

/* Exchanges the unknowns k .. k + count - 1 for their right-hand sides.  Step t
 * computes x_ij <- x_ij - c_i f_j with c_i = x_it and f_j = x_tj (1 / x_tt),
 * and x_tj <- f_j, x_it <- -(c_i / x_tt), x_tt <- 1 / x_tt.  So at each step an
 * element needs c of its row and f of its column, which in turn need only those
 * of the square block of these unknowns. */
constexpr int panel = 16, side = 64;
constexpr int panel_threads = panel * panel;

struct exchanged {
    const double *X;
    int64_t n, k;
    int count;
    double *Y;
    int *bad;                 /* set if a pivot is not positive */

    __device__ bool within(int64_t i) const { return i >= k && i < k + count; }
};

/* Shared memory of a tile: for each step, the c and f of the square block, and
 * those of the rows and of the columns of the tile. */
struct panel_room {
    double inverse[panel], row[panel][panel], c[panel][panel], f[panel][panel];
    double row_c[panel][side], column_f[panel][side];
};

/* Exchanges the unknowns within the square block of their rows and columns, one
 * element for each thread. */
__device__ void exchange_square(const exchanged &e, panel_room &w)
{
    const int i = (int)threadIdx.x / panel, j = (int)threadIdx.x % panel;
    const bool some = i < e.count && j < e.count;
    double x = some ? e.X[(e.k + i) * e.n + e.k + j] : 0;

    for (int t = 0; t < e.count; t++) {
        if (i == t) w.row[t][j] = x;
        if (j == t) w.c[t][i] = x;
        __syncthreads();
        const double pivot = w.row[t][t], r = 1 / pivot;
        const double f = w.row[t][j] * r, c = w.c[t][i];

        if (i == t) w.f[t][j] = f;
        if (i == t && j == t) w.inverse[t] = r;
        if (i == t && j == t && !(pivot > 0)) *e.bad = 1;
        x = i == t ? (j == t ? r : f) : j == t ? -(c * r) : x - c * f;
    }
    if (some && blockIdx.x == 0 && blockIdx.y == 0)
        e.Y[(e.k + i) * e.n + e.k + j] = x;
    __syncthreads();
}

/* Computes the elements of row i (or, with `down`, of column i) in the columns
 * (rows) of the square block: stores what the tile needs of them in to[t][at],
 * and, if `store`, their new values. */
__device__ void exchange_line(const exchanged &e, const panel_room &w,
                              bool down, int64_t i, bool store,
                              double (*to)[side], int at)
{
    const int64_t first = down ? e.k * e.n + i : i * e.n + e.k;
    const int64_t step = down ? e.n : 1;
    double x[panel];

    if (i >= e.n || e.within(i)) return;
#pragma unroll
    for (int q = 0; q < panel; q++)
        x[q] = q < e.count ? e.X[first + q * step] : 0;
#pragma unroll
    for (int t = 0; t < panel; t++) {
        if (t >= e.count) break;
        const double own = x[t];
        const double f = own * w.inverse[t];

        to[t][at] = down ? f : own;
#pragma unroll
        for (int q = 0; q < panel; q++)
            x[q] -= down ? w.c[t][q] * f : own * w.f[t][q];
        x[t] = down ? f : -f;
    }
#pragma unroll
    for (int q = 0; q < panel; q++)
        if (store && q < e.count) e.Y[first + q * step] = x[q];
}

/* Updates the elements of column j in the rows of a tile that begin at `row`.
 * Each thread processes every fourth of these rows, four at a time: each of
 * their elements is a chain of dependent operations. */
__device__ void exchange_others(const exchanged &e, const panel_room &w,
                                int64_t row, int64_t j)
{
    constexpr int step = panel_threads / side, together = 4;
    double f[panel];

    if (j >= e.n || e.within(j)) return;
#pragma unroll
    for (int s = 0; s < panel; s++) f[s] = w.column_f[s][threadIdx.x % side];
    for (int q = (int)threadIdx.x / side; q < side; q += together * step) {
        double x[together];
        bool ours[together];

#pragma unroll
        for (int u = 0; u < together; u++) {
            const int64_t i = row + q + u * step;

            ours[u] = i < e.n && !e.within(i);
            x[u] = ours[u] ? e.X[i * e.n + j] : 0;
        }
#pragma unroll
        for (int s = 0; s < panel; s++) {
            if (s >= e.count) break;
#pragma unroll
            for (int u = 0; u < together; u++)
                x[u] -= w.row_c[s][q + u * step] * f[s];
        }
#pragma unroll
        for (int u = 0; u < together; u++)
            if (ours[u]) e.Y[(row + q + u * step) * e.n + j] = x[u];
    }
}

/* Exchanges `count` unknowns in all elements: a thread block processes a tile
 * of side x side elements. */
__global__ void __launch_bounds__(panel_threads)
exchange_panel(const exchanged e)
{
    __shared__ panel_room w;
    const int64_t row = (int64_t)blockIdx.y * side;
    const int64_t column = (int64_t)blockIdx.x * side;
    const int t = (int)threadIdx.x;

    exchange_square(e, w);
    if (t < side)
        exchange_line(e, w, false, row + t, blockIdx.x == 0, w.row_c, t);
    else if (t < 2 * side)
        exchange_line(e, w, true, column + t - side, blockIdx.y == 0,
                      w.column_f, t - side);
    __syncthreads();
    exchange_others(e, w, row, column + t % side);
}

struct store_dense {
    const double *Z, *s;
    int64_t n;
    double *val;

    __device__ void operator()(int64_t e) const
    {
        const double left = s[e / n] > 0 ? s[e / n] : 1;
        const double right = s[e % n] > 0 ? s[e % n] : 1;

        val[e] = left * Z[e] * right;
    }
};

struct full_pattern {
    int64_t n, *rowptr;
    int32_t *col;

    __device__ void operator()(int64_t e) const
    {
        if (e <= n) rowptr[e] = e * n;
        if (e < n * n) col[e] = (int32_t)(e % n);
    }
};

struct dense {
    sps_coarse *l;
    double *X, *Y, *b, *found;
    int *bad;
};

sps_status lift(const dense *d)
{
    sps_coarse *l = d->l;
    sps_context *ctx = l->ctx;
    const int64_t n = l->A.nrow, q = l->vectors;
    double *length = d->b + q * n, *image = d->b + 2 * q * n;

    if (q == 0) return SPS_OK;
    SPS_TRY_RETURN(each(ctx, q * n, null_terms{entries_of(&l->A), l->scale,
                                               l->near, n, l->vectors, d->b,
                                               length, image}));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)q, 32, judge_null, length, image,
                              n, d->found));
    return each(ctx, n * n, add_null{d->b, d->found, n, l->vectors, d->X});
}

void exchange(dense *d)
{
    double *spare = d->X;

    d->X = d->Y;
    d->Y = spare;
}

/* Sets d->X to the inverse of the scaled coarsest matrix, to which lift() has
 * added its null vectors. */
sps_status invert(dense *d)
{
    sps_coarse *l = d->l;
    sps_context *ctx = l->ctx;
    const int64_t n = l->A.nrow;

    SPS_TRY_RETURN(clear(ctx, 1, d->bad));
    SPS_TRY_RETURN(each(ctx, n * n, clear_dense{d->Y}));
    SPS_TRY_RETURN(each(ctx, n, load_dense{entries_of(&l->A), l->scale, n,
                                           d->Y}));
    SPS_TRY_RETURN(each(ctx, n * n, mean_of_both{d->Y, n, d->X, NULL}));
    SPS_TRY_RETURN(lift(d));
    for (int64_t k = 0; k < n; k += panel) {
        const unsigned tiles = (unsigned)ceil_div(n, side);

        exchange_panel<<<dim3(tiles, tiles), panel_threads, 0,
                         stream_of(ctx)>>>(
            exchanged{d->X, n, k, (int)min((int64_t)panel, n - k), d->Y,
                      d->bad});
        SPS_LAUNCHED(ctx);
        exchange(d);
    }
    SPS_TRY_RETURN(each(ctx, n * n, mean_of_both{d->X, n, d->Y, d->bad}));
    exchange(d);
    return SPS_OK;
}

sps_status open_full(sps_context *ctx, int64_t n, sps_csr *made)
{
    void *got;

    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)(n + 1) * sizeof(int64_t),
                                   &got));
    made->rowptr = (int64_t *)got;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)(n * n) * sizeof(int32_t),
                                   &got));
    made->col = (int32_t *)got;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)(n * n) * sizeof(double),
                                   &got));
    made->val = got;
    return each(ctx, n * n + n + 1, full_pattern{n, made->rowptr, made->col});
}

} // namespace

sps_status spsi_coarse_invert(sps_coarse *l, sps_csr **Z_p, bool *regular)
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->A.nrow;
    holder h(ctx);
    dense d = {l};
    sps_csr made = {};
    int bad;

    made.nrow = made.ncol = n;
    made.nnz = n * n;
    made.dtype = SPS_F64;
    if (!*Z_p)
        SPS_TRY_RETURN(spsi_cuda_csr_finish(ctx, open_full(ctx, n, &made),
                                            &made, Z_p));
    SPS_TRY_RETURN(h.take(n * n, &d.X));
    SPS_TRY_RETURN(h.take(n * n, &d.Y));
    SPS_TRY_RETURN(h.take(3 * l->vectors * n, &d.b));
    SPS_TRY_RETURN(h.take(l->vectors, &d.found));
    SPS_TRY_RETURN(h.take(1, &d.bad));
    SPS_TRY_RETURN(invert(&d));
    SPS_TRY_RETURN(each(ctx, n * n, store_dense{d.X, l->scale, n,
                                                (double *)(*Z_p)->val}));
    SPS_TRY_RETURN(download(ctx, 1, d.bad, &bad));
    *regular = bad == 0;
    return SPS_OK;
}
