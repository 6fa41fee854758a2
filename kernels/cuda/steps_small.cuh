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

/* Half of the threads of a block, SIZE, share the numbers of a W x W matrix:
 * number e, e = t, t + SIZE, ..., is in row e % W and column e / W, so that
 * nothing is divided by n.  Both halves come to the same barriers, those of the
 * block: racecheck does not follow barriers of a half.  In a half with nothing
 * to do all threads are beyond the last number. */
template <int SIZE> struct team {
    int t;
};
constexpr int idle = 1 << 20;

template <int W> struct dense_room {
    double m[W][2 * W + 1];            /* [A | I]; right: A as it is, then F */
    double d[W];
    int bad;
};

/* DO(row, column) for the numbers of an n x k matrix that are thread t's, of
 * SIZE threads. */
template <int W, int SIZE, class DO>
__device__ __forceinline__ void for_numbers(int t, int n, int k, DO act)
{
    constexpr int each = (W * W + SIZE - 1) / SIZE;

#pragma unroll
    for (int q = 0; q < each; q++) {
        const int e = t + q * SIZE, i = e % W, j = e / W;

        if (i < n && j < k) act(i, j);
    }
}

/* The sum over parts, stride apart, of number e, in order; MOST of them. */
template <int MOST>
__device__ __forceinline__ double add_parts(const double *part, int parts,
                                            int stride, int e)
{
    const double *at = part + e;
    double v[MOST], sum;

#pragma unroll
    for (int p = 0; p < MOST; p++, at += stride)
        v[p] = p < parts ? __ldcg(at) : 0.0;
    sum = v[0];
#pragma unroll
    for (int p = 1; p < MOST; p++) sum += v[p];
    return sum;
}

/* The right of m = A, n x n, packed in so many parts; whether a number of it is
 * not finite. */
template <int MOST, int W, int SIZE>
__device__ __forceinline__ bool fetch(dense_room<W> &s, const double *A,
                                      int parts, int stride, int n,
                                      const team<SIZE> &g)
{
    bool broken = false;

    for_numbers<W, SIZE>(g.t, n, n, [&](int i, int j) {
        double a = add_parts<MOST>(A, parts, stride, j * n + i);

        s.m[i][n + j] = a;
        broken = broken || !isfinite(a);
    });
    return broken;
}

/* Number c < n of row p + 1 of m -= row p, which eliminate_pair leaves undone;
 * columns from p + 1 on, as many as row p has. */
template <int W>
__device__ __forceinline__ void finish_pair(dense_room<W> &s, int p, int c)
{
    const double f = s.m[p + 1][p] / s.m[p][p];

    s.m[p + 1][p + 1 + c] -= f * s.m[p][p + 1 + c];
}

/* Rows p + 2 .. n - 1 of m -= what rows p and p + 1 have there, two pivots with
 * one barrier: with l and r the entries of row p + 1 and of column p + 1 that
 * the first pivot a changes, the second is (a d - l r) / a.  Nobody may write
 * row p + 1 while others read it, so that comes with the next pair, by the last
 * n threads. */
template <int W, int SIZE>
__device__ __forceinline__ void eliminate_pair(dense_room<W> &s, int n, int p,
                                               const team<SIZE> &g)
{
    const double a = s.m[p][p], l = s.m[p + 1][p], r = s.m[p][p + 1];
    const double det = fma(a, s.m[p + 1][p + 1], -l * r);
    const double first = 1 / a, second = a * (1 / det), f = l * first;

    for (int e = g.t; e < (n - 2 - p) * W; e += SIZE) {
        const int i = p + 2 + e / W, j = p + 2 + e % W;

        if (e % W >= n) continue;
        const double x = s.m[i][p] * first;
        const double y = fma(-x, r, s.m[i][p + 1]) * second;
        const double row = fma(-f, s.m[p][j], s.m[p + 1][j]);

        s.m[i][j] = fma(-y, row, fma(-x, s.m[p][j], s.m[i][j]));
    }
    if (p > 0 && g.t >= SIZE - n && g.t < SIZE)
        finish_pair(s, p - 2, g.t - (SIZE - n));
}

/* m = [D A D | L^-1], pivots on the diagonal of the left, from the A on the
 * right, whose two halves are averaged; after a barrier, with bad = 0.  False
 * when A is not regular: not finite, or a pivot too small.  All threads get the
 * same answer. */
template <int W, int SIZE>
__device__ __forceinline__ bool eliminate(dense_room<W> &s, int n,
                                          const team<SIZE> &g)
{
    bool bad = false;

    if (g.t < n) {
        double a = s.m[g.t][n + g.t];

        bad = !(a > 0 && a <= 1.7976931348623157e308);
        s.d[g.t] = bad ? 0 : rsqrt(a);
        if (bad) s.bad = 1;
    }
    __syncthreads();
    for_numbers<W, SIZE>(g.t, n, n, [&](int i, int j) {
        double a = (0.5 * s.m[i][n + j] + 0.5 * s.m[j][n + i]) * s.d[i] *
                   s.d[j];

        s.m[i][j] = a;
        if (!(fabs(a) <= 2)) s.bad = 1; /* NaN too */
    });
    __syncthreads();
    for_numbers<W, SIZE>(g.t, n, n, [&](int i, int j) {
        s.m[i][n + j] = i == j ? 1 : 0;
    });
    __syncthreads();
#pragma unroll 1
    for (int p = 0; p + 1 < n; p += 2) {
        eliminate_pair(s, n, p, g);
        __syncthreads();
    }
    if (n > 1 && g.t < n) finish_pair(s, (n - 2) / 2 * 2, g.t);
    __syncthreads();
    if (g.t < n && !(s.m[g.t][g.t] > least_pivot)) s.bad = 1;
    __syncthreads();
    return !s.bad;
}

/* The right of m = F. */
template <int W, int SIZE>
__device__ __forceinline__ void keep_factor(dense_room<W> &s, int n,
                                            const team<SIZE> &g)
{
    for_numbers<W, SIZE>(g.t, n, n, [&](int i, int j) {
        if (j <= i) s.m[i][n + j] *= s.d[j] * rsqrt(s.m[i][i]);
    });
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

/* b = sign F'F b for an n x k b, its columns W apart, and F(i, j) =
 * f[i * ld + j]; t: room for as much as b.  All threads, after a barrier; ends
 * with one. */
template <int W, int THREADS>
__device__ __forceinline__ void apply_inverse(const double *f, int ld,
                                              double sign, int n, int k,
                                              double *b, double *t)
{
    for_numbers<W, THREADS>((int)threadIdx.x, n, k, [&](int i, int j) {
        double sum = 0;

#pragma unroll 16
        for (int l = 0; l < n; l++)
            sum = fma(f[i * ld + l], b[j * W + l], sum);
        t[j * W + i] = sum;
    });
    __syncthreads();
    for_numbers<W, THREADS>((int)threadIdx.x, n, k, [&](int i, int j) {
        double sum = 0;

#pragma unroll 16
        for (int l = 0; l < n; l++)
            sum = fma(f[l * ld + i], t[j * W + l], sum);
        b[j * W + i] = sign * sum;
    });
    __syncthreads();
}

/* --------------------------------------------------------------- two passes */

/* The block that keeps the books: the last one, which has the fewest rows. */
__device__ __forceinline__ bool keeps_books()
{
    return blockIdx.x + 1 == gridDim.x;
}

/* Before `residual`: two teams look at G and at S. */
template <int W> struct lengths_room {
    dense_room<W> half[2];     /* later a and its scratch are in the second */
    int reasons;
};

/* a = G^-1 C to *a_p in shared memory, its columns W apart; false, and the
 * reasons with the state, when the step is not regular, or is not to be taken.
 * All sums are asked for before the state is known, which takes as long to come
 * as they do: S and C where they are not used, too.  All threads of each
 * block. */
template <int MOST, int W, int THREADS>
__device__ __forceinline__ bool find_lengths(lengths_room<W> &s,
                                             const step_arrays &w, double **a_p)
{
    constexpr int each = (W * W + THREADS - 1) / THREADS;
    constexpr int size = THREADS / 2;
    const bool first = (int)threadIdx.x < size;
    dense_room<W> &mine = s.half[first ? 0 : 1];
    const int square = w.k * w.k, r = w.r;
    const sps_steps_state state = state_of(w);
    team<size> g = { (int)threadIdx.x % size };
    double c[each] = {}, *a = &s.half[1].m[0][0], *scratch = a + W * W;
    bool broken = false;

#pragma unroll
    for (int q = 0; q < each; q++) {
        const int e = (int)threadIdx.x + q * THREADS, i = e % W, j = e / W;

        if (i < r && j < w.k)
            c[q] = add_parts<MOST>(w.S + square, w.parts, 2 * square,
                                   j * r + i);
    }
    if (g.t == 0) mine.bad = 0;
    if (first) broken = fetch<MOST>(mine, w.G, w.parts, r * r, r, g);
    else fetch<MOST>(mine, w.S, w.parts, 2 * square, r, g);
#pragma unroll
    for (int q = 0; q < each; q++) {
        const int e = (int)threadIdx.x + q * THREADS, i = e % W, j = e / W;

        if (i >= r || j >= w.k) continue;
        if (state.given) c[q] = __ldcg(w.C + j * r + i);
        broken = broken || !isfinite(c[q]);
    }
    if (!first && !state.unseen) g.t = idle;
    broken = __syncthreads_or(broken);
    if (threadIdx.x == 0) s.reasons = broken ? SPS_STEPS_BROKEN : 0;
    /* The book-keeper may have set a reason when only some have begun. */
    if (__syncthreads_or(state.stop)) {
        if (threadIdx.x == 0) s.reasons = 0;
        return false;
    }

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
        if ((int)threadIdx.x + q * THREADS < W * W)
            a[threadIdx.x + q * THREADS] = c[q];
    __syncthreads();
    apply_inverse<W, THREADS>(&s.half[0].m[0][r], 2 * W + 1, 1.0, r, w.k, a,
                              scratch);
    *a_p = a;
    return true;
}

/* What the book-keeper leaves to the next pass: F and a, or reasons to stop. */
template <int W, int THREADS>
__device__ __forceinline__ void leave_lengths(const lengths_room<W> &s,
                                              const step_arrays &w, bool go,
                                              const double *a)
{
    if (!keeps_books()) return;
    if (threadIdx.x == 0) {
        w.state->go = go;
        /* A basis that wants a look comes first; no reason: there was one. */
        if (s.reasons)
            w.state->stop = s.reasons & SPS_STEPS_BASIS ? SPS_STEPS_BASIS
                                                        : s.reasons;
    }
    if (!go) return;
    for_numbers<W, THREADS>((int)threadIdx.x, w.r, w.r, [&](int i, int j) {
        w.F[j * w.r + i] = s.half[0].m[i][w.r + j];
    });
    for_numbers<W, THREADS>((int)threadIdx.x, w.r, w.k, [&](int i, int j) {
        w.a[j * w.r + i] = a[j * W + i];
    });
}

/* Before `directions`.  Rows of f are an odd number of doubles apart: without
 * bank conflicts. */
template <int W> struct turn_room {
    double f[W][W + 1], b[W * W], t[W * W], squares[W];
};

/* What find_turn needs, before anyone knows whether the step is regular. */
template <int MOST, int W, int THREADS>
__device__ __forceinline__ void fetch_turn(turn_room<W> &s,
                                           const step_arrays &w)
{
    const int r = w.r, k = w.k, stride = r * k + k, t = (int)threadIdx.x;

    for_numbers<W, THREADS>(t, r, k, [&](int i, int j) {
        s.b[j * W + i] = add_parts<MOST>(w.W, w.parts, stride, j * r + i);
    });
    for_numbers<W, THREADS>(t, r, r, [&](int i, int j) {
        s.f[i][j] = __ldcg(w.F + j * r + i);
    });
    if (t >= THREADS - k)
        s.squares[t - (THREADS - k)] = add_parts<MOST>(
            w.W, w.parts, stride, r * k + t - (THREADS - k));
}

/* b = -G^-1 W to s.b, columns W apart.  The book-keeper notes the norms and
 * that the step is complete: nobody asks for that before the kernel is over. */
template <int W, int THREADS>
__device__ __forceinline__ void find_turn(turn_room<W> &s, const step_arrays &w)
{
    __syncthreads();
    apply_inverse<W, THREADS>(&s.f[0][0], W + 1, -1.0, w.r, w.k, s.b, s.t);
    if (!keeps_books()) return;

    const int reasons = look(count_open(w, s.squares), w.k, w.few);

    if (threadIdx.x > 0) return;
    w.state->unseen = 1;
    w.state->given = 0;
    w.state->parts = w.parts;
    complete(w.state, reasons);
}

} // namespace

#endif
