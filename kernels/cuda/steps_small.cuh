/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_small.cuh - k x k work of a step by one block of 256 threads, k up to
 * SPS_STEPS_WIDEST, in shared memory.
 *
 * A symmetric A is scaled to a unit diagonal, D A D, and Gaussian elimination
 * without pivoting carries the unit matrix along:
 *
 *     [D A D | I]  ->  [U | L^-1],   pivots u = diag(U)
 *
 * For positive definite A that is Cholesky (Golub and Van Loan, 4.2), a step
 * costs one barrier, and no substitution is left to do:
 * F = diag(u)^-1/2 L^-1 D gives A^-1 = F'F. */
#ifndef SPS_CUDA_STEPS_SMALL_CUH
#define SPS_CUDA_STEPS_SMALL_CUH

#include "steps.cuh"

namespace {

constexpr int widest = SPS_STEPS_WIDEST;

/* Pivots of the scaled matrix below this are left to the host. */
constexpr double least_pivot = 1e-13;
/* The bound of the condition of P, squared, below which it needs no look:
 * CONDITION_LIMIT of solvers/block_cg.c. */
constexpr double condition_limit2 = 1e6;

struct dense_room {
    double m[widest][2 * widest + 1];  /* [A | I]; later [F | .] */
    double b[widest * widest], t[widest * widest];
    double d[widest];
};

/* The one of this block of threads. */
__device__ inline dense_room &shared_room()
{
    __shared__ dense_room room;

    return room;
}

/* m = [D A D | L^-1], pivots on the diagonal of the left part, from A packed in
 * s.t, whose two halves are averaged.  False when A is not regular: not
 * finite, or a pivot too small.  All threads get the same answer. */
__device__ inline bool eliminate(dense_room &s, int n)
{
    int t = (int)threadIdx.x;
    bool bad = false;

    if (t < n) {
        double a = s.t[t * n + t];

        bad = !(a > 0 && a <= 1.7976931348623157e308);
        s.d[t] = bad ? 0 : rsqrt(a);
    }
    if (__syncthreads_or(bad)) return false;
    for (int e = t; e < n * n; e += 256) {
        int i = e % n, j = e / n;
        double a = (0.5 * s.t[e] + 0.5 * s.t[i * n + j]) * s.d[i] * s.d[j];

        s.m[i][j] = a;
        s.m[i][n + j] = i == j ? 1 : 0;
        bad = bad || !(fabs(a) <= 2); /* NaN too */
    }
    if (__syncthreads_or(bad)) return false;
    for (int p = 0; p < n - 1; p++) {
        double inverse = 1 / s.m[p][p];

        /* Columns p + 1 .. n + p: the rest of U, and of L^-1 what is not 0. */
        for (int e = t; e < (n - 1 - p) * n; e += 256) {
            int i = p + 1 + e / n, j = p + 1 + e % n;

            s.m[i][j] -= s.m[i][p] * inverse * s.m[p][j];
        }
        __syncthreads();
    }
    return !__syncthreads_or(t < n && !(s.m[t][t] > least_pivot));
}

/* F = diag(u)^-1/2 L^-1 D to memory, packed, and to the left part of m. */
__device__ inline void keep_factor(dense_room &s, double *F, int n)
{
    constexpr int each = (widest * widest + 255) / 256;
    double f[each];

#pragma unroll
    for (int q = 0; q < each; q++) {
        int e = (int)threadIdx.x + 256 * q, i = e % n, j = e / n;

        f[q] = 0;
        if (e < n * n && j <= i)
            f[q] = s.m[i][n + j] * s.d[j] * rsqrt(s.m[i][i]);
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < each; q++) {
        int e = (int)threadIdx.x + 256 * q;

        if (e >= n * n) continue;
        s.m[e % n][e / n] = f[q];
        F[e] = f[q];
    }
}

/* out = sign F'F B for an n x k B in s.b and F in m, after a barrier. */
__device__ inline void apply_inverse(dense_room &s, double sign, int n, int k,
                                     double *out)
{
    __syncthreads();
    for (int e = (int)threadIdx.x; e < n * k; e += 256) {
        int i = e % n, j = e / n;
        double sum = 0;

        for (int l = 0; l < n; l++) sum = fma(s.m[i][l], s.b[j * n + l], sum);
        s.t[e] = sum;
    }
    __syncthreads();
    for (int e = (int)threadIdx.x; e < n * k; e += 256) {
        int i = e % n, j = e / n;
        double sum = 0;

        for (int l = 0; l < n; l++) sum = fma(s.m[l][i], s.t[j * n + l], sum);
        out[e] = sign * sum;
    }
}

/* to = count numbers of memory; whether one of them is not finite. */
__device__ inline bool fetch_small(double *to, const double *from, int count)
{
    bool broken = false;

    for (int e = (int)threadIdx.x; e < count; e += 256) {
        to[e] = __ldcg(from + e);
        broken = broken || !isfinite(to[e]);
    }
    return broken;
}

/* With S = P'P scaled to a unit diagonal: the condition of P, squared, is at
 * most trace(S) trace(S^-1) = k |diag(u)^-1/2 L^-1|^2.  One block looks while
 * others add up G, so it holds up nothing. */
__device__ inline void look_at_basis(const step_arrays &w)
{
    dense_room &s = shared_room();
    double sum = 0;
    bool regular;

    if (!w.state->unseen) return;
    fetch_small(s.t, w.S, w.r * w.r);
    __syncthreads();
    regular = eliminate(s, w.r);
    if (threadIdx.x >= 32) return;
    for (int i = (int)threadIdx.x; regular && i < w.r; i += 32)
        for (int j = 0; j <= i; j++)
            sum += s.m[i][w.r + j] * s.m[i][w.r + j] / s.m[i][i];
    for (int far = 16; far > 0; far /= 2)
        sum += __shfl_xor_sync(all_lanes, sum, far);
    if (threadIdx.x > 0) return;
    w.state->unseen = 0;
    if (!(regular && w.r * sum <= condition_limit2)) w.state->found = 1;
}

/* a = G^-1 C, or a reason to stop. */
struct dense_lengths {
    static constexpr bool aside = true;

    __device__ void beside(const step_arrays &w) const { look_at_basis(w); }
    __device__ void operator()(const step_arrays &w) const
    {
        dense_room &s = shared_room();
        bool broken = fetch_small(s.t, w.G, w.r * w.r);
        int reason = 0;

        broken = fetch_small(s.b, w.C, w.r * w.k) || broken;
        if (__syncthreads_or(broken)) reason = SPS_STEPS_BROKEN;
        else if (!eliminate(s, w.r)) reason = SPS_STEPS_LENGTHS;
        if (reason) {
            if (threadIdx.x == 0) w.state->stop = reason;
            return;
        }
        keep_factor(s, w.F, w.r);
        apply_inverse(s, 1.0, w.r, w.k, w.a);
    }
};

/* b = -G^-1 W; norms, and whether they say something. */
struct dense_residual {
    static constexpr bool aside = false;

    __device__ void beside(const step_arrays &) const {}
    __device__ void operator()(const step_arrays &w) const
    {
        dense_room &s = shared_room();
        int open;

        for (int e = (int)threadIdx.x; e < w.r * w.r; e += 256)
            s.m[e % w.r][e / w.r] = __ldcg(w.F + e);
        fetch_small(s.b, w.W, w.r * w.k);
        open = count_open(w, w.W + w.r * w.k);
        if (threadIdx.x == 0) w.state->pending = look(open, w.k);
        apply_inverse(s, -1.0, w.r, w.k, w.b);
    }
};

/* The step is complete, with an S that nobody has looked at. */
struct dense_directions {
    static constexpr bool aside = false;

    __device__ void beside(const step_arrays &) const {}
    __device__ void operator()(const step_arrays &w) const
    {
        if (threadIdx.x > 0) return;
        w.state->unseen = 1;
        complete(w.state, w.state->pending);
    }
};

} // namespace

#endif
