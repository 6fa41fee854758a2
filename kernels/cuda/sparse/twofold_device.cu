/* SPDX-License-Identifier: BSD-3-Clause */
/* twofold_device.cu - H + L = W + V + A X diag(c) in twice the working
 * precision (backend.h), by rows (plain_rows.cuh), with the same sums as
 * kernels/cpu/csr_twofold.c; A may be the identity.  Intrinsics prevent the
 * compiler from contracting operations that must be rounded.
 *
 * Bytes: A once per slice of 32 columns; W, V, H, L once; rows of X again
 * whenever L1 and L2 have evicted them.  10 double-precision instructions per
 * entry and column: on an H200 (17e12 per second) these take longer than the
 * bytes for 27-point matrices, but not for 7-point ones. */
#include "cuda/sparse/plain_rows.cuh"

#include <string.h>

namespace {

/* Returns sum and *error with sum + *error = a + b exactly (Knuth). */
__device__ __forceinline__ double two_sum(double a, double b, double *error)
{
    double sum = __dadd_rn(a, b), z = __dsub_rn(sum, a);

    *error = __dadd_rn(__dsub_rn(a, __dsub_rn(sum, z)), __dsub_rn(b, z));
    return sum;
}

struct twofold_sum {
    static constexpr int threads = 512;   /* threads of a block, with 128
                                             registers each */
    double s = 0, e = 0;

    __device__ __forceinline__ void add(double a, double x)
    {
        double p = __dmul_rn(a, x), f;

        s = two_sum(s, p, &f);
        e = __dadd_rn(e, __dadd_rn(f, __fma_rn(a, x, -p)));
    }
};

/* A block of doubles; if data is NULL, it is read as zeros and not written. */
struct part {
    double *data;
    int64_t ld;

    template <bool PAIRED>
    __device__ __forceinline__ double2 get(int64_t i, int c, int left) const
    {
        return data ? load_pair<PAIRED>(data + i * ld + c, left)
                    : make_double2(0.0, 0.0);
    }
    template <bool PAIRED>
    __device__ __forceinline__ void put(int64_t i, int c, int left,
                                        double2 v) const
    {
        if (data) store_pair<PAIRED>(data + i * ld + c, left, v);
    }
};

part part_of(const sps_block *X)
{
    return X ? part{numbers(X), X->ld} : part{NULL, 0};
}

bool paired_if(const sps_block *X) { return !X || paired(X); }

struct to_pair {
    const double *c;      /* factors of the columns, in device memory; NULL
                             stands for -1 */
    part w, v, h, l;

    __device__ __forceinline__ void begin() const {}
    /* Returns high, with high + *low = w + v + c (s + e). */
    static __device__ __forceinline__ double finish(double c, twofold_sum t,
                                                    double w, double v,
                                                    double *low)
    {
        double plain = __dadd_rn(w, __dmul_rn(c, t.s)), f, g, e;
        double s = two_sum(t.s, t.e, &e), p = __dmul_rn(c, s);
        double high = two_sum(w, p, &f);

        g = __dadd_rn(__fma_rn(c, s, -p), __dmul_rn(c, e));
        high = two_sum(high, __dadd_rn(__dadd_rn(g, f), v), low);
        if (isfinite(high)) return high;
        *low = 0;
        return plain;
    }
    template <bool PAIRED>
    __device__ __forceinline__ void pair(int64_t i, int at, int left,
                                         const twofold_sum *sum) const
    {
        double2 factor = c ? load_pair<false>(c + at, left)
                           : make_double2(-1.0, -1.0);
        double2 a = w.get<PAIRED>(i, at, left), b = v.get<PAIRED>(i, at, left);
        double2 high, low;

        high.x = finish(factor.x, sum[0], a.x, b.x, &low.x);
        high.y = finish(factor.y, sum[1], a.y, b.y, &low.y);
        h.put<PAIRED>(i, at, left, high);
        l.put<PAIRED>(i, at, left, low);
    }
};

/* The product with the identity: A X = X. */
template <bool PAIRED>
__global__ void __launch_bounds__(256)
identity_kernel(const double *__restrict__ x, int64_t ldx, int64_t n, int k,
                to_pair out)
{
    const int across = (k + 1) / 2;
    const int64_t number = (int64_t)blockIdx.x * 256 + threadIdx.x;
    const int64_t i = number / across;
    const int c = 2 * (int)(number % across);
    twofold_sum sum[2];
    double2 v;

    if (i >= n) return;
    v = load_pair<PAIRED>(x + i * ldx + c, k - c);
    sum[0].s = v.x;
    sum[1].s = v.y;
    out.pair<PAIRED>(i, c, k - c, sum);
}

sps_status launch_identity(sps_context *ctx, const sps_block *X, bool pairs,
                           const to_pair &out)
{
    const int64_t count = X->n * ((X->k + 1) / 2);
    const unsigned grid = (unsigned)ceil_div(count, 256);

    if (pairs)
        return run_kernel(ctx, grid, 256, identity_kernel<true>, numbers(X),
                          X->ld, X->n, X->k, out);
    return run_kernel(ctx, grid, 256, identity_kernel<false>, numbers(X), X->ld,
                      X->n, X->k, out);
}

/* Copies the k factors c from host to device memory. */
sps_status send_factors(sps_context *ctx, const double *c, int k,
                        const double **to)
{
    const size_t bytes = (size_t)k * sizeof *c;
    void *host, *device;

    *to = NULL;
    if (!c) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_room(ctx, bytes, &host, &device));
    memcpy(host, c, bytes);
    *to = (const double *)device;
    return spsi_cuda_send(ctx, host, device, bytes);
}

} // namespace

sps_status spsi_cuda_twofold(const sps_csr_local *A,
                             const sps_twofold_args *g)
{
    sps_context *ctx = g->H->ctx;
    const bool pairs = paired(g->X) && paired(g->H) && paired_if(g->W) &&
                       paired_if(g->V) && paired_if(g->L);
    to_pair out = {NULL, part_of(g->W), part_of(g->V), part_of(g->H),
                   part_of(g->L)};

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (g->H->k == 0 || g->H->n == 0) return SPS_OK;
    SPS_TRY_RETURN(send_factors(ctx, g->c, g->H->k, &out.c));
    return A ? walk_plain<twofold_sum>(ctx, A, g->X, pairs, out)
             : launch_identity(ctx, g->X, pairs, out);
}
