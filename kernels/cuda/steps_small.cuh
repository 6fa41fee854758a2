/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_small.cuh - k x k work of a step, in shared memory, k up to 16 T.  Each
 * block of threads does all of it at the begin of the pass that needs it: the
 * sums are there when the kernel begins, nobody waits for a block that would do
 * it for all, and all get the same bits.
 *
 * A symmetric A is scaled to a unit diagonal, D A D, and Gaussian elimination
 * without pivoting carries the unit matrix along:
 *
 *     [D A D | I]  ->  [U | L^-1],   pivots u = diag(U)
 *
 * For positive definite A that is Cholesky (Golub and Van Loan, 4.2), two steps
 * cost one barrier, and no substitution is left to do:
 * F = diag(u)^-1/2 L^-1 D gives A^-1 = F'F. */
#ifndef SPS_CUDA_STEPS_SMALL_CUH
#define SPS_CUDA_STEPS_SMALL_CUH

#include "steps.cuh"

namespace {

/* Pivots of the scaled matrix below this are left to the host. */
constexpr double least_pivot = 1e-13;

/* Half of the threads of a block.  Both halves come to the same barriers, those
 * of the block: racecheck does not follow barriers of a half.  In a half with
 * nothing to do all threads are beyond the last number. */
struct team {
    int t, size;
};
constexpr int idle = 1 << 20;

template <int W> struct dense_room {
    double m[W][2 * W + 1];            /* [A | I]; right: A as it is, then F */
    double d[W];
    int bad;
};

/* The sum over parts, stride apart, of number e, in order; MOST of them. */
template <int MOST>
__device__ __forceinline__ double add_parts(const double *part, int parts,
                                            int stride, int e)
{
    double v[MOST], sum;

#pragma unroll
    for (int p = 0; p < MOST; p++)
        v[p] = p < parts ? __ldcg(part + p * stride + e) : 0.0;
    sum = v[0];
#pragma unroll
    for (int p = 1; p < MOST; p++) sum += v[p];
    return sum;
}

/* The right of m = A, n x n, packed in so many parts; whether a number of it is
 * not finite. */
template <int MOST, int W>
__device__ __forceinline__ bool fetch(dense_room<W> &s, const double *A,
                                      int parts, int stride, int n,
                                      const team &g)
{
    bool broken = false;

    for (int e = g.t; e < n * n; e += g.size) {
        double a = add_parts<MOST>(A, parts, stride, e);

        s.m[e % n][n + e / n] = a;
        broken = broken || !isfinite(a);
    }
    return broken;
}

/* Row p + 1 of m -= row p, which eliminate_pair leaves undone, for the columns
 * first, + step, ... of those that row p has. */
template <int W>
__device__ __forceinline__ void finish_pair(dense_room<W> &s, int n, int p,
                                            int first, int step)
{
    const double f = s.m[p + 1][p] / s.m[p][p];

    for (int j = p + 1 + first; j < n + p + 1; j += step)
        s.m[p + 1][j] -= f * s.m[p][j];
}

/* Rows p + 2 .. n - 1 of m -= what rows p and p + 1 have there, two pivots with
 * one barrier: with l and r the entries of row p + 1 and of column p + 1 that
 * the first pivot a changes, the second is (a d - l r) / a.  Nobody may write
 * row p + 1 while others read it, so that comes with the next pair. */
template <int W>
__device__ __forceinline__ void eliminate_pair(dense_room<W> &s, int n, int p,
                                               const team &g)
{
    const double a = s.m[p][p], l = s.m[p + 1][p], r = s.m[p][p + 1];
    const double det = fma(a, s.m[p + 1][p + 1], -l * r);
    const double first = 1 / a, second = a * (1 / det), f = l * first;

    for (int e = g.t; e < (n - 2 - p) * n; e += g.size) {
        const int i = p + 2 + e / n, j = p + 2 + e % n;
        const double x = s.m[i][p] * first;
        const double y = fma(-x, r, s.m[i][p + 1]) * second;
        const double row = fma(-f, s.m[p][j], s.m[p + 1][j]);

        s.m[i][j] = fma(-y, row, fma(-x, s.m[p][j], s.m[i][j]));
    }
    if (p > 0 && g.t >= g.size - n)
        finish_pair(s, n, p - 2, g.t - (g.size - n), n);
}

/* m = [D A D | L^-1], pivots on the diagonal of the left, from the A on the
 * right, whose two halves are averaged; after a barrier, with bad = 0.  False
 * when A is not regular: not finite, or a pivot too small.  All threads get the
 * same answer. */
template <int W>
__device__ __forceinline__ bool eliminate(dense_room<W> &s, int n,
                                          const team &g)
{
    bool bad = false;

    if (g.t < n) {
        double a = s.m[g.t][n + g.t];

        bad = !(a > 0 && a <= 1.7976931348623157e308);
        s.d[g.t] = bad ? 0 : rsqrt(a);
        if (bad) s.bad = 1;
    }
    __syncthreads();
    for (int e = g.t; e < n * n; e += g.size) {
        int i = e % n, j = e / n;
        double a = (0.5 * s.m[i][n + j] + 0.5 * s.m[j][n + i]) * s.d[i] *
                   s.d[j];

        s.m[i][j] = a;
        if (!(fabs(a) <= 2)) s.bad = 1; /* NaN too */
    }
    __syncthreads();
    for (int e = g.t; e < n * n; e += g.size)
        s.m[e % n][n + e / n] = e % n == e / n ? 1 : 0;
    __syncthreads();
    for (int p = 0; p + 1 < n; p += 2) {
        eliminate_pair(s, n, p, g);
        __syncthreads();
    }
    if (n > 1) finish_pair(s, n, (n - 2) / 2 * 2, g.t, g.size);
    __syncthreads();
    if (g.t < n && !(s.m[g.t][g.t] > least_pivot)) s.bad = 1;
    __syncthreads();
    return !s.bad;
}

/* The right of m = F. */
template <int W>
__device__ __forceinline__ void keep_factor(dense_room<W> &s, int n,
                                            const team &g)
{
    for (int e = g.t; e < n * n; e += g.size) {
        int i = e % n, j = e / n;

        if (j <= i) s.m[i][n + j] *= s.d[j] * rsqrt(s.m[i][i]);
    }
}

/* With A = P'P scaled to a unit diagonal: the condition of P, squared, is at
 * most trace(A) trace(A^-1) = n |diag(u)^-1/2 L^-1|^2.  By the first warp, the
 * answer in lane 0. */
template <int W>
__device__ __forceinline__ bool ill_conditioned(const dense_room<W> &s, int n,
                                                double condition)
{
    int i = (int)threadIdx.x % 32;
    double sum = 0;

    if (i < n) {
        for (int j = 0; j <= i; j++)
            sum = fma(s.m[i][n + j], s.m[i][n + j], sum);
        sum /= s.m[i][i];
    }
    for (int far = 16; far > 0; far /= 2)
        sum += __shfl_xor_sync(all_lanes, sum, far);
    return !(n * sum <= condition * condition);
}

/* b = sign F'F b for an n x k b and F(i, j) = f[i * ld + j]; t: room for as
 * much as b.  All threads, after a barrier; ends with one. */
__device__ inline void apply_inverse(const double *f, int ld, double sign,
                                     int n, int k, double *b, double *t)
{
    for (int e = (int)threadIdx.x; e < n * k; e += (int)blockDim.x) {
        int i = e % n, j = e / n;
        double sum = 0;

        for (int l = 0; l < n; l++) sum = fma(f[i * ld + l], b[j * n + l], sum);
        t[e] = sum;
    }
    __syncthreads();
    for (int e = (int)threadIdx.x; e < n * k; e += (int)blockDim.x) {
        int i = e % n, j = e / n;
        double sum = 0;

        for (int l = 0; l < n; l++) sum = fma(f[l * ld + i], t[j * n + l], sum);
        b[e] = sign * sum;
    }
    __syncthreads();
}

/* --------------------------------------------------------------- two passes */

/* Before `residual`: two teams look at G and at S. */
template <int W> struct lengths_room {
    dense_room<W> half[2];     /* later a and its scratch are in the second */
    int reasons;
};

/* a = G^-1 C to *a_p in shared memory; false, and the reasons with the state,
 * when the step is not regular.  All threads of each block. */
template <int MOST, int W, int THREADS>
__device__ __forceinline__ bool find_lengths(lengths_room<W> &s,
                                             const step_arrays &w, double **a_p)
{
    constexpr int each = (W * W + THREADS - 1) / THREADS;
    const bool first = (int)threadIdx.x < THREADS / 2;
    dense_room<W> &mine = s.half[first ? 0 : 1];
    const int square = w.k * w.k, r = w.r;
    const bool given = w.state->given, look = w.state->unseen;
    const team g = { first || look ? (int)threadIdx.x % (THREADS / 2) : idle,
                     THREADS / 2 };
    double c[each], *a = &s.half[1].m[0][0], *scratch = a + W * W;
    bool broken = false;

#pragma unroll
    for (int q = 0; q < each; q++) {
        int e = (int)threadIdx.x + q * THREADS;

        c[q] = e >= r * w.k ? 0
             : given ? __ldcg(w.C + e)
                     : add_parts<MOST>(w.S + square, w.parts, 2 * square, e);
        broken = broken || !isfinite(c[q]);
    }
    if (g.t == 0) mine.bad = 0;
    if (first) broken = fetch<MOST>(mine, w.G, w.parts, r * r, r, g) || broken;
    else if (look) fetch<MOST>(mine, w.S, w.parts, 2 * square, r, g);
    broken = __syncthreads_or(broken);
    if (threadIdx.x == 0) s.reasons = broken ? SPS_STEPS_BROKEN : 0;
    __syncthreads();

    const bool regular = eliminate(mine, r, g);

    if (first) {
        if (regular) keep_factor(mine, r, g);
        else if (g.t == 0 && !broken) atomicOr(&s.reasons, SPS_STEPS_LENGTHS);
    } else if (g.t < 32) {
        bool ill = ill_conditioned(mine, r, w.condition) || !regular;

        if (g.t == 0 && ill) atomicOr(&s.reasons, SPS_STEPS_BASIS);
    }
    __syncthreads();
    if (s.reasons) return false;
#pragma unroll
    for (int q = 0; q < each; q++)
        if ((int)threadIdx.x + q * THREADS < r * w.k)
            a[threadIdx.x + q * THREADS] = c[q];
    __syncthreads();
    apply_inverse(&s.half[0].m[0][r], 2 * W + 1, 1.0, r, w.k, a, scratch);
    *a_p = a;
    return true;
}

/* What the first block leaves to the next pass: F and a, or reasons to stop. */
template <int W>
__device__ __forceinline__ void leave_lengths(const lengths_room<W> &s,
                                              const step_arrays &w, bool go,
                                              const double *a)
{
    if (blockIdx.x > 0) return;
    if (threadIdx.x == 0) {
        w.state->go = go;
        /* A basis that wants a look comes first. */
        if (!go)
            w.state->stop = s.reasons & SPS_STEPS_BASIS ? SPS_STEPS_BASIS
                                                        : s.reasons;
    }
    for (int e = (int)threadIdx.x; go && e < w.r * w.r; e += (int)blockDim.x)
        w.F[e] = s.half[0].m[e % w.r][w.r + e / w.r];
    for (int e = (int)threadIdx.x; go && e < w.r * w.k; e += (int)blockDim.x)
        w.a[e] = a[e];
}

/* Before `directions`. */
template <int W> struct turn_room {
    double f[W * W], b[W * W], t[W * W], squares[W];
};

/* b = -G^-1 W to s.b.  The first block notes the norms and that the step is
 * complete: nobody asks for that before the kernel is over. */
template <int MOST, int W>
__device__ __forceinline__ void find_turn(turn_room<W> &s, const step_arrays &w)
{
    const int rk = w.r * w.k, stride = rk + w.k;

    for (int e = (int)threadIdx.x; e < w.r * w.r; e += (int)blockDim.x)
        s.f[e % w.r * w.r + e / w.r] = __ldcg(w.F + e);
    for (int e = (int)threadIdx.x; e < stride; e += (int)blockDim.x)
        (e < rk ? s.b : s.squares - rk)[e] =
            add_parts<MOST>(w.W, w.parts, stride, e);
    __syncthreads();
    apply_inverse(s.f, w.r, -1.0, w.r, w.k, s.b, s.t);
    if (blockIdx.x > 0) return;

    const int reasons = look(count_open(w, s.squares), w.k);

    if (threadIdx.x > 0) return;
    w.state->unseen = 1;
    w.state->given = 0;
    w.state->parts = w.parts;
    complete(w.state, reasons);
}

} // namespace

#endif
