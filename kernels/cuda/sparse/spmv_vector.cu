/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_vector.cu - y = alpha A x + beta y for 1 to 4 columns, T threads per
 * row.
 *
 * Bell and Garland's vector kernel (SC 2009) with the number of threads adapted
 * to the rows: T threads with U entries each, where T U is the smallest that
 * holds a typical row, so that most rows take one step with all their entries
 * in flight.  The lanes load consecutive entries of a row; each lane has a
 * partial sum for every column and the T sums are added by a tree of shuffles,
 * so the order is fixed by T and U, which depend on the matrix only.  Every
 * lane of a warp takes the same number of steps.  The sums are passed to the
 * epilogue (sparse.cuh).
 *
 * Bytes: A once, y once, entries of x again whenever the caches have evicted
 * them; with 2 to 4 columns a row of x is 16 or 32 contiguous bytes in a single
 * sector. */
#include "cuda/sparse/ordered.cuh"

#include <stdio.h>

namespace {

constexpr int threads = 256, widest = 4;

struct vector_plan {
    sps_plan super;
    int per_row, each;       /* T, threads per row; U, entries per thread */
};

/* Loads K columns of a row of X, of which the first k exist (none if k <= 0);
 * the others become zero. */
template <int K, bool PAIRED, class N>
__device__ __forceinline__ void load_row(N *v, const N *x, int k)
{
#pragma unroll
    for (int j = 0; j < K; j++) v[j] = N(0);
    if constexpr (PAIRED) {
#pragma unroll
        for (int j = 0; j < K; j += 2) {
            if (j + 2 <= k) {
                double2 w = fetch(reinterpret_cast<const double2 *>(x + j));

                v[j] = w.x;
                v[j + 1] = w.y;
            } else if (j < k) {
                v[j] = fetch(x + j);
            }
        }
    } else {
#pragma unroll
        for (int j = 0; j < K; j++)
            if (j < k) v[j] = fetch(x + j);
    }
}

template <int T, int U, int K, bool PAIRED, class I, class V, class N, class E>
__global__ void __launch_bounds__(threads)
vector_kernel(matrix<I, V> A, blocks<N> b, E finish)
{
    int64_t i = ((int64_t)blockIdx.x * threads + threadIdx.x) / T;
    int lane = (int)threadIdx.x % T, length = 0, most;
    const int32_t *cols = A.col;
    const V *vals = A.val;
    uint32_t stride = stride_of<N>(b.ldx);
    N sum[K] = {};

    finish.begin();
    if (i < A.nrow) {
        I p = A.rowptr[i];

        length = (int)(A.rowptr[i + 1] - p);
        cols += p;
        vals += p;
    }
    most = __reduce_max_sync(all_lanes, length);
#pragma unroll 1
    for (int e = lane; e < most + lane; e += T * U) {
        int32_t col[U];
        N val[U], x[U][K];

#pragma unroll
        for (int u = 0; u < U; u++)
            col[u] = e + u * T < length ? __ldcs(cols + e + u * T) : -1;
#pragma unroll
        for (int u = 0; u < U; u++)
            val[u] = e + u * T < length ? (N)__ldcs(vals + e + u * T) : N(0);
        __syncwarp();
#pragma unroll
        for (int u = 0; u < U; u++)
            load_row<K, PAIRED>(x[u], row_at(b.x, col[u], stride),
                                col[u] >= 0 ? b.k : 0);
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int j = 0; j < K; j++)
                sum[j] = fma(val[u], x[u][j], sum[j]);
    }
#pragma unroll
    for (int j = 0; j < K; j++) {
#pragma unroll
        for (int far = T / 2; far > 0; far /= 2)
            sum[j] += __shfl_xor_sync(all_lanes, sum[j], far);
        if (lane == 0 && i < A.nrow && j < b.k) finish(i, j, sum[j]);
    }
}

template <int T, int U, int K, bool PAIRED, class I, class V, class N>
sps_status launch(const sps_plan *plan, const matrix<I, V> &A,
                  const blocks<N> &b)
{
    vector_kernel<T, U, K, PAIRED>
        <<<(unsigned)ceil_div(A.nrow * T, threads), threads, 0,
           spsi_cuda_state(plan->ctx)->stream>>>(A, b, epilogue_of(b));
    SPS_LAUNCHED(plan->ctx);
    return SPS_OK;
}

template <int T>
sps_status choose(const sps_plan *plan, const sps_spmm_args *args)
{
    bool pairs = paired(args->X);
    bool three = ((const vector_plan *)plan)->each == 3;

    return with_all_types(plan->A, args, [&](auto A, auto b) -> sps_status {
        if (b.k == 1)
            return three ? launch<T, 3, 1, false>(plan, A, b)
                         : launch<T, 4, 1, false>(plan, A, b);
        if constexpr (sizeof *b.x == sizeof(double)) {
            if (b.k == 2 && pairs) return launch<T, 2, 2, true>(plan, A, b);
            if (pairs) return launch<T, 2, 4, true>(plan, A, b);
        }
        return launch<T, 2, 4, false>(plan, A, b);
    });
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    switch (((const vector_plan *)plan)->per_row) {
    case 1: return choose<1>(plan, args);
    case 2: return choose<2>(plan, args);
    case 4: return choose<4>(plan, args);
    case 8: return choose<8>(plan, args);
    case 16: return choose<16>(plan, args);
    default: return choose<32>(plan, args);
    }
}

/* Chooses T (*per_row) and U (*each), U = 3 or 4, with the least T U >= length
 * up to 32; longer rows take three steps, which keeps more loads in flight (27
 * entries: 0.21 ms in one step, 81: 0.19 ms in three steps of 32, 0.22 in
 * one). */
void fit_row(double length, int *per_row, int *each)
{
    double step = length <= 32 ? length : fmax(length / 3, 32);

    *per_row = 1;
    while (*per_row < 32 && 4 * *per_row < step) *per_row *= 2;
    *each = 3 * *per_row >= step ? 3 : 4;
}

/* Returns the length of the longest row if all lengths are about equal,
 * otherwise the mean length. */
double usual_length(const sps_features *f)
{
    const double longest = (double)f->max_length;

    return longest <= 1.5 * f->mean_length ? longest : f->mean_length;
}

/* Returns the expected number of steps of a warp: that of its longest row, the
 * maximum of 32 / T independent draws from the distribution of row lengths. */
double usual_steps(const sps_features *f, int per_row, int each)
{
    const double rows = 32.0 / per_row;
    double below = 0, steps = 0, all = 0;

    for (int b = 0; b < SPS_LENGTH_BINS; b++) {
        const double length = fmin(0.75 * ldexp(1.0, b),
                                   (double)f->max_length);
        double upto;

        all += (double)f->lengths[b] / (double)(f->nrow > 0 ? f->nrow : 1);
        upto = pow(fmin(all, 1.0), rows);
        steps += (upto - below) * ceil(length / (per_row * each));
        below = upto;
    }
    return steps;
}

/* Components of the run time: streaming A (stream), loading x (gather), issuing
 * instructions (a hundred per step of a warp; four per cycle on each
 * multiprocessor), and the longest row by one group of threads (walk).
 * Fractions of the copy bandwidth measured on an H200. */
struct waits {
    double stream, gather, issue, walk;
};

waits waits_of(const sps_problem *p, int per_row, int each)
{
    const double share = p->k == 1 ? 0.88 : p->k == 2 ? 0.62 : 0.45;
    const sps_features *f = p->f;
    waits w;

    w.stream = stream_seconds(p, share);
    w.gather = scattered(p);
    w.issue = 3.1e-12 * (double)f->nrow * per_row *
              usual_steps(f, per_row, each) * p->machine->work;
    w.walk = ceil((double)f->max_length / (per_row * each)) * step_seconds(p);
    return w;
}

/* Returns the longest component of the run time, assuming complete overlap. */
double lasting(const sps_problem *p, int per_row, int each)
{
    const waits w = waits_of(p, per_row, each);

    return fmax(fmax(w.stream + w.gather, w.issue), w.walk);
}

/* Chooses T (*per_row) and U (*each) of a plan for k columns: those of typical
 * rows, and more threads while the longest row dominates the predicted time.
 * The bits of the result depend on both, so they are chosen as for the GPU on
 * which the constants were fitted. */
void choose_shape(const sps_problem *p, int *per_row, int *each)
{
    const sps_machine fitted = spsi_machine_fitted();
    sps_problem same = *p;

    same.machine = &fitted;
    fit_row(usual_length(p->f), per_row, each);
    if (p->k > 1) *each = 2;
    while (*per_row < 32 && lasting(&same, 2 * *per_row, *each) <
                                0.9 * lasting(&same, *per_row, *each))
        *per_row *= 2;
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "it multiplies blocks of up to 4 columns";
    return p->k <= widest;
}

/* Predicted seconds.  For data in L2 the components do not overlap: a long row
 * starts only when its turn comes and is then processed alone, more slowly if x
 * is scattered (fitted to 60 matrices, 9 % error). */
double cost(const sps_problem *p)
{
    int per_row, each;
    waits w;

    choose_shape(p, &per_row, &each);
    w = waits_of(p, per_row, each);
    if (p->k == 1 && stays_in_l2(p))
        return 1.29e-6 + 0.24 * w.stream + 0.15 * w.gather + 1.2 * w.issue +
               (0.72 + 0.42 * w.gather / (w.stream + w.gather)) * w.walk;
    return 1.4e-6 + lasting(p, per_row, each);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    vector_plan *v = (vector_plan *)super;

    choose_shape(p, &v->per_row, &v->each);
    snprintf(v->super.detail, sizeof v->super.detail,
             "%d threads a row, %d entries each", v->per_row, v->each);
    return SPS_OK;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_vector) = {
    .name = "spmv.vector",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .size = sizeof(vector_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<near_only<spmm>>,
};
