/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_small.cuh - the k x k work of a fused iteration, in shared memory, k up
 * to W.  Each thread block does all of this work at the beginning of the pass
 * that needs the result, since the sums are complete when that kernel begins.
 * So no thread block waits for another one that would do the work for all, and
 * all obtain the same bits.
 *
 * A symmetric A is scaled to a unit diagonal, D A D, and Gaussian elimination
 * without pivoting is applied to it and the identity:
 *
 *     [D A D | I]  ->  [U | L^-1],   pivots u = diag(U)
 *
 * For positive definite A this is equivalent to a Cholesky factorisation (Golub
 * and Van Loan, 4.2); two steps cost one barrier, and no substitution is
 * needed: F = diag(u)^-1/2 L^-1 D gives A^-1 = F'F. */
#ifndef SPS_CUDA_STEPS_SMALL_CUH
#define SPS_CUDA_STEPS_SMALL_CUH

#include "cuda/fused_cg/steps_device.cuh"

namespace {

/* Smallest pivot of the scaled matrix that is accepted; with a smaller one the
 * step is left to the host. */
constexpr double least_pivot = 1e-13;

/* A team is one half of a thread block, SIZE threads, with t the index within
 * it. Thread t has entries e = t, t + SIZE, ... of a W x W matrix; entry e is
 * in row e % W and column e / W, so that no division by n is needed.  Both
 * halves pass the same barriers, those of the thread block, since racecheck
 * does not support barriers of a half.  A half without work sets t = idle,
 * which is beyond the last entry. */
template <int SIZE> struct team {
    int t;
};
constexpr int idle = 1 << 20;

template <int W> struct dense_room {
    double m[W][2 * W + 1];            /* [A | I]; the right half holds A at
                                          first, F at the end */
    double d[W];
    int bad;
};

/* Calls act(row, column) for those entries of an n x k matrix that belong to
 * thread t of SIZE threads. */
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

/* Returns the sum, in order, of entry e over `parts` <= MOST partial sums with
 * the given stride. */
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

/* Sets the right half of m to the n x n matrix A, which is stored without gaps
 * as `parts` partial sums that are `stride` apart; returns whether one of this
 * thread's entries is not finite. */
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

/* Subtracts from row p + 1 of m the multiple of row p that eliminate_pair
 * leaves undone, in column p + 1 + c, 0 <= c < n. */
template <int W>
__device__ __forceinline__ void finish_pair(dense_room<W> &s, int p, int c)
{
    const double f = s.m[p + 1][p] / s.m[p][p];

    s.m[p + 1][p + 1 + c] -= f * s.m[p][p + 1 + c];
}

/* Eliminates columns p and p + 1 from rows p + 2 .. n - 1 of m: two pivots with
 * one barrier.  With l = m[p+1][p] and r = m[p][p+1], the first pivot a changes
 * the second one to (a d - l r) / a.  Row p + 1 must not be written while other
 * threads read it; it is updated by the last n threads in the call for the next
 * pair. */
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

/* m = [U | L^-1] with D ((A + A') / 2) D = L U, from A in the right half of m;
 * U is valid on and above the diagonal, which has the pivots.  Needs a barrier
 * before, and bad = 0.  Returns false, to all threads, if A is not regular: an
 * entry is not finite or a pivot too small. */
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
        if (!(fabs(a) <= 2)) s.bad = 1; /* also if a is NaN */
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

/* Stores F = diag(u)^-1/2 L^-1 D in the right half of m, from the result of
 * `eliminate`. */
template <int W, int SIZE>
__device__ __forceinline__ void keep_factor(dense_room<W> &s, int n,
                                            const team<SIZE> &g)
{
    for_numbers<W, SIZE>(g.t, n, n, [&](int i, int j) {
        if (j <= i) s.m[i][n + j] *= s.d[j] * rsqrt(s.m[i][i]);
    });
}

/* Returns whether P may have a condition above `condition`, from the factors of
 * A = P'P scaled to a unit diagonal: the squared condition of P is at most
 * trace(A) trace(A^-1) = n |diag(u)^-1/2 L^-1|^2.  Called by one warp; the
 * answer is in lane 0. */
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

/* Replaces b, n x k, W doubles from column to column, by sign F'F b, where F(i,
 * j) = f[i * ld + j]; t is scratch memory of the size of b.  Called by all
 * threads, after a barrier; ends with a barrier. */
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

/* --------------------------------------------------------- the two passes */

/* Returns whether this thread block updates the state: the last one, which has
 * the fewest rows. */
__device__ __forceinline__ bool updates_state()
{
    return blockIdx.x + 1 == gridDim.x;
}

/* Shared memory for `residual`: one team factorises G, the other S. */
template <int W> struct lengths_room {
    dense_room<W> half[2];     /* afterwards a and its workspace are in
                                  half[1] */
    int reasons;
};

/* Loads c, this thread's entries of C, as `parts` partial sums. */
template <int MOST, int W, int THREADS>
__device__ __forceinline__ void fetch_right(const step_arrays &w, double *c)
{
    constexpr int each = (W * W + THREADS - 1) / THREADS;
    const int square = w.k * w.k;

#pragma unroll
    for (int q = 0; q < each; q++) {
        const int e = (int)threadIdx.x + q * THREADS, i = e % W, j = e / W;

        if (i < w.r && j < w.k)
            c[q] = add_parts<MOST>(w.S + square, w.parts, 2 * square,
                                   j * w.r + i);
    }
}

/* Replaces c by the C that is stored, if it is given; returns whether one of
 * this thread's entries is not finite. */
template <int W, int THREADS>
__device__ __forceinline__ bool check_right(const step_arrays &w, bool given,
                                            double *c)
{
    constexpr int each = (W * W + THREADS - 1) / THREADS;
    bool broken = false;

#pragma unroll
    for (int q = 0; q < each; q++) {
        const int e = (int)threadIdx.x + q * THREADS, i = e % W, j = e / W;

        if (i >= w.r || j >= w.k) continue;
        if (given) c[q] = __ldcg(w.C + j * w.r + i);
        broken = broken || !isfinite(c[q]);
    }
    return broken;
}

/* One team of threads factorises G.  The other factorises S, whose factor only
 * shows whether the basis is ill-conditioned.  Adds the reasons to stop, if
 * any, to s.reasons. */
template <int W, int SIZE>
__device__ __forceinline__ void factorise_both(lengths_room<W> &s,
                                               const step_arrays &w,
                                               bool first, bool broken,
                                               const team<SIZE> &g)
{
    dense_room<W> &mine = s.half[first ? 0 : 1];
    const bool regular = eliminate(mine, w.r, g);

    if (first) {
        if (regular) keep_factor(mine, w.r, g);
        else if (g.t == 0 && !broken) atomicOr(&s.reasons, SPS_FUSED_LENGTHS);
    } else if (g.t < 32) {
        bool ill = ill_conditioned(mine, w.r, w.condition) || !regular;

        if (g.t == 0 && ill) atomicOr(&s.reasons, SPS_FUSED_BASIS);
    }
    __syncthreads();
}

/* Computes a = G^-1 C; *a_p becomes its address in shared memory, W doubles
 * from column to column.  Returns false, with the reasons in s.reasons, if the
 * step is not regular or must not be taken.  All sums are loaded before the
 * state is known, since loading it takes as long; so S and C are loaded even if
 * they are not used.  Called by all threads of each thread block. */
template <int MOST, int W, int THREADS>
__device__ __forceinline__ bool find_lengths(lengths_room<W> &s,
                                             const step_arrays &w, double **a_p)
{
    constexpr int each = (W * W + THREADS - 1) / THREADS;
    constexpr int size = THREADS / 2;
    const bool first = (int)threadIdx.x < size;
    dense_room<W> &mine = s.half[first ? 0 : 1];
    const int square = w.k * w.k, r = w.r;
    const sps_fused_cg_state state = state_of(w);
    team<size> g = { (int)threadIdx.x % size };
    double c[each] = {}, *a = &s.half[1].m[0][0], *scratch = a + W * W;
    bool broken = false;

    fetch_right<MOST, W, THREADS>(w, c);
    if (g.t == 0) mine.bad = 0;
    if (first) broken = fetch<MOST>(mine, w.G, w.parts, r * r, r, g);
    else fetch<MOST>(mine, w.S, w.parts, 2 * square, r, g);
    if (check_right<W, THREADS>(w, state.given, c)) broken = true;
    if (!first && !state.unchecked) g.t = idle;
    broken = __syncthreads_or(broken);
    if (threadIdx.x == 0) s.reasons = broken ? SPS_FUSED_BROKEN : 0;
    /* The last thread block may set a reason to stop while other thread blocks
     * are still loading the state, so the threads of a block first agree on
     * what they have seen. */
    if (__syncthreads_or(state.stop)) {
        if (threadIdx.x == 0) s.reasons = 0;
        return false;
    }
    factorise_both(s, w, first, broken, g);
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

/* Lets the last thread block store F and a for the next pass, or the reasons to
 * stop. */
template <int W, int THREADS>
__device__ __forceinline__ void leave_lengths(const lengths_room<W> &s,
                                              const step_arrays &w, bool go,
                                              const double *a)
{
    if (!updates_state()) return;
    if (threadIdx.x == 0) {
        w.state->go = go;
        /* SPS_FUSED_BASIS takes precedence over other reasons.  If s.reasons is
         * 0, the step was stopped by a reason that is already in
         * w.state->stop. */
        if (s.reasons)
            w.state->stop = s.reasons & SPS_FUSED_BASIS ? SPS_FUSED_BASIS
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

/* Shared memory for `directions`.  The stride of rows of f is an odd number of
 * doubles, which avoids bank conflicts. */
template <int W> struct beta_room {
    double f[W][W + 1], b[W * W], t[W * W], squares[W];
};

/* Loads the operands of find_beta to shared memory, before it is known whether
 * the step is regular. */
template <int MOST, int W, int THREADS>
__device__ __forceinline__ void fetch_beta(beta_room<W> &s,
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

/* Computes beta, b = -G^-1 W, in s.b, W doubles from column to column.  Returns
 * false if X must not be changed: a norm is not finite, or, unless go is 2, an
 * iterate of a column has to be stored first.  The last thread block stores the
 * norms, and that the step is complete or why it is not; these are not read
 * before the kernel has ended. */
template <int W, int THREADS>
__device__ __forceinline__ bool find_beta(beta_room<W> &s, const step_arrays &w,
                                          int go)
{
    const int j = (int)threadIdx.x - (THREADS - w.k);
    bool broken = false, left = false;

    if (j >= 0) {   /* this thread loaded the norm of column j */
        const double norm = sqrt(s.squares[j]);

        broken = !finite(norm);
        left = go < 2 && leaves(w, j, norm);
    }
    if (__syncthreads_or(broken || left)) {
        if (!updates_state()) return false;
        broken = __syncthreads_or(broken);
        count_open(w, s.squares);
        if (threadIdx.x > 0) return false;
        w.state->go = 0;
        w.state->stop = broken ? SPS_FUSED_BROKEN : SPS_FUSED_STORE;
        return false;
    }
    apply_inverse<W, THREADS>(&s.f[0][0], W + 1, -1.0, w.r, w.k, s.b, s.t);
    if (!updates_state()) return true;

    const int reasons = look(count_open(w, s.squares), w.k, w.few);

    if (threadIdx.x > 0) return true;
    w.state->unchecked = 1;
    w.state->given = 0;
    w.state->parts = w.parts;
    complete(w.state, reasons);
    return true;
}

} // namespace

#endif
