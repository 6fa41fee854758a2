/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_spectrum.cu - steps of the Lanczos method for S A S, S = diag(s), and
 * bounds by row sums, on the device with the formulas of
 * solvers/amg/spectrum.c.  All coefficients stay on the device until the last
 * step: the host waits once.  Those of the matrix of a level are computed on a
 * stream of their own, while the other one finds aggregates.
 *
 * Vectors are stored before they are scaled to norm 1, each with its factor f,
 * so that v_k = f w_k is formed where it is read.  A product reads y = S w, the
 * only vector that it gathers.  A step consists of a product, a sum of products
 * w'v, and w - alpha v with its norm and S w; the last thread block of a sum
 * adds up the partial sums and computes the factor.  Bytes of a step: the
 * matrix once, and vectors 11 times. */
#include "core/comm.h"
#include "cuda/amg/coarse.cuh"
#include "cuda/amg/row_sums.cuh"

#include <unistd.h>

namespace { constexpr int steps = SPS_COARSE_STEPS; }

/* The coefficients of the Lanczos steps.  Vector t, counted from 0, is scaled
 * by factor[t], which is 1 / beta[t - 1] for t > 0. */
struct coarse_spectrum {
    double alpha[steps], beta[steps - 1], factor[steps];
    unsigned long long bound[2];   /* bounds by row sums, as bits of nonnegative
                                      doubles */
    unsigned arrived;              /* number of thread blocks of a sum that
                                      have arrived */
    double part;                   /* a sum over the rows of this process */
};

namespace {

typedef coarse_spectrum coefficients;

/* A vector before it is scaled by *factor. */
struct scaled {
    const double *__restrict__ w, *factor;
};

/* ------------------------------------------------------------------- sums */

/* Returns the sum of the `count` terms f(i) from i = first on, in every
 * thread. */
template <class F>
__device__ double sum_chunk(int64_t first, int64_t count, double *lane,
                            const F &f)
{
    const int t = (int)threadIdx.x;
    double mine = 0;

    for (int64_t i = t; i < count; i += lanes) mine += f(first + i);
    __syncthreads();
    lane[t] = mine;
    for (int half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) lane[t] += lane[t + half];
    }
    __syncthreads();
    return lane[0];
}

/* Returns, in thread 0, the sum of the partial sums, computed by one thread
 * block. */
__device__ double sum_parts(int64_t parts, double *part, double *lane)
{
    while (parts > 1) {
        const int64_t next = (parts + chunk - 1) / chunk;

        for (int64_t c = 0; c < next; c++) {
            const int64_t left = parts - c * chunk;
            const double sum = sum_chunk(
                c * chunk, left < chunk ? left : chunk, lane,
                [&](int64_t i) { return ((volatile double *)part)[i]; });

            if (threadIdx.x == 0) part[c] = sum;
            __syncthreads();
        }
        parts = next;
    }
    return threadIdx.x == 0 ? *(volatile double *)part : 0;
}

/* Calls f.end(sum) with the sum of f(0, x) .. f(n - 1, x) in the order of
 * coarsening.h, where x = f.begin(). */
template <class F> __global__ void __launch_bounds__(lanes)
run_sum(int64_t n, const F f, double *part, unsigned *arrived)
{
    __shared__ double lane[lanes];
    __shared__ bool last;
    const int64_t first = (int64_t)blockIdx.x * chunk;
    const auto x = f.begin();
    const double sum = sum_chunk(
        first, n - first < chunk ? n - first : chunk, lane,
        [&](int64_t i) { return f(i, x); });

    if (threadIdx.x == 0) {
        part[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    const double all = sum_parts(gridDim.x, part, lane);

    if (threadIdx.x > 0) return;
    f.end(all);
    *arrived = 0;
}

/* Leaves the sum of f for `end_sum`, which passes it on when it has been summed
 * over the processes. */
template <class F> struct part_of {
    F f;
    double *part;

    __device__ auto begin(void) const { return f.begin(); }
    template <class X> __device__ double operator()(int64_t i, X x) const
    {
        return f(i, x);
    }
    __device__ void end(double sum) const { *part = sum; }
};

template <class F> __global__ void end_sum(const F f, const double *sum)
{
    f.end(*sum);
}

struct draw_start {
    const double *s;
    int64_t first;            /* number of row 0 */
    double *w, *y, *factor;

    __device__ int begin(void) const { return 0; }
    __device__ double operator()(int64_t i, int) const
    {
        const double x = s[i] == 0 ? 0 : spsi_coarse_start(first + i);

        w[i] = x;
        y[i] = s[i] * x;
        return x * x;
    }
    __device__ void end(double sum) const
    {
        *factor = sum > 0 ? 1 / sqrt(sum) : 0;
    }
};

/* Computes alpha = w'v from its terms w_i v_i. */
struct multiply_both {
    const double *__restrict__ w;
    scaled v;
    double *alpha;

    __device__ double begin(void) const { return *v.factor; }
    __device__ double operator()(int64_t i, double f) const
    {
        return w[i] * (v.w[i] * f);
    }
    __device__ void end(double sum) const { *alpha = sum; }
};

/* Computes w -= alpha v, y = S w, and beta, the norm of w, from its terms
 * w_i^2. */
struct subtract {
    const double *__restrict__ s, *alpha;
    scaled v;
    double *w, *y, *beta, *factor;

    __device__ double2 begin(void) const
    {
        return make_double2(*v.factor, *alpha);
    }
    __device__ double operator()(int64_t i, double2 f) const
    {
        const double x = w[i] - f.y * (v.w[i] * f.x);

        w[i] = x;
        y[i] = s[i] * x;
        return x * x;
    }
    __device__ void end(double sum) const
    {
        *beta = sqrt(sum);
        *factor = 1 / *beta;
    }
};

/* ---------------------------------------------------------------- products */

/* Computes w = H v - beta u with H = S A S, where y is S v before scaling by
 * *factor, and u (`before`) the Lanczos vector before v. */
struct multiply {
    typedef double number;
    const double *__restrict__ s, *y, *factor;
    scaled before;
    const double *beta;       /* NULL stands for 0 */
    double *w;

    struct numbers {
        double f, before, beta;
    };
    struct sums {
        double h, s, before;
    };
    __device__ numbers begin(void) const
    {
        if (!beta) return {*factor, 0, 0};
        return {*factor, *before.factor, *beta};
    }
    __device__ sums open(int64_t i) const
    {
        return {0, i < 0 ? 0 : s[i], i < 0 || !beta ? 0 : before.w[i]};
    }
    __device__ double term(const numbers &, double a, int32_t k) const
    {
        return a * y[k];
    }
    __device__ void add(sums &row, double term) const { row.h += term; }
    __device__ void close(const numbers &x, int64_t i, const sums &row) const
    {
        if (i < 0) return;
        const double own = row.h * x.f * row.s;

        w[i] = beta ? own - x.beta * (row.before * x.before) : own;
    }
};

/* bound[0] and bound[1] become the bits of the largest row sums of |S A S| and
 * of |S^2 A|.  For nodes of one row, most[i] becomes the largest coupling of
 * row i (amg_strength.cu): that of the diagonal entry, which is positive, is
 * negative. */
struct row_bounds {
    typedef double2 number;   /* the pair a_ik, s_k */
    const double *__restrict__ s, *__restrict__ column;   /* of rows and of
                                                             columns */
    unsigned long long *bound;
    double *most;             /* may be NULL */

    struct sums {
        double s, h, d, most;
    };
    __device__ int begin(void) const { return 0; }
    __device__ sums open(int64_t i) const
    {
        return {i < 0 ? 0 : s[i], 0, 0, 0};
    }
    __device__ double2 term(int, double a, int32_t k) const
    {
        return make_double2(a, column[k]);
    }
    __device__ void add(sums &x, double2 term) const
    {
        const double a = term.x * x.s, c = -(a * term.y);

        x.h += fabs(c);
        x.d += fabs(a) * x.s;
        if (c > x.most) x.most = c;
    }
    __device__ void raise(unsigned long long *to, double h) const
    {
#pragma unroll
        for (int d = 16; d > 0; d /= 2)
            h = fmax(h, __shfl_xor_sync(all_lanes, h, d));
        const unsigned long long bits =
            (unsigned long long)__double_as_longlong(h);

        if (threadIdx.x % 32 == 0 && h > 0 &&
            bits > *(volatile unsigned long long *)to)
            atomicMax(to, bits);
    }
    __device__ void close(int, int64_t i, const sums &x) const
    {
        raise(bound, x.h);
        raise(bound + 1, x.d);
        if (i >= 0 && most) most[i] = x.most;
    }
};

struct room {
    sps_context *ctx;
    int64_t n, nnz;
    entries A;
    const double *s;
    double *w[3], *y, *part;
    coefficients *c;          /* all zero at first */
    double *most;             /* largest coupling of each row, or NULL */
    const spsi_coarse_across *x;    /* NULL for a matrix of one process */
    double *column;           /* s, or with x that of all columns */
};

template <class F> sps_status sum_here(const room *r, const F &f)
{
    if (r->n == 0) return SPS_OK;
    return run_kernel(r->ctx, (unsigned)chunks_of(r->n), lanes, run_sum<F>,
                      r->n, f, r->part, &r->c->arrived);
}

template <class F> sps_status sum(const room *r, const F &f)
{
    if (!r->x) return sum_here(r, f);
    SPS_TRY_RETURN(sum_here(r, part_of<F>{f, &r->c->part}));
    SPS_TRY_RETURN(r->x->sum(r->x->data, &r->c->part));
    return run_kernel(r->ctx, 1, 1, end_sum<F>, f, &r->c->part);
}

/* Returns where the elements of own rows begin in a vector of all columns. */
double *own_part(const room *r, double *y)
{
    return y + (r->x ? r->x->low : 0);
}

sps_status fill(const room *r, double *y)
{
    return r->x ? r->x->fill(r->x->data, y) : SPS_OK;
}

/* Does step t of the Lanczos method: w[t % 3] is v, the next of the three
 * vectors receives the result, and the one after that is the vector before v.
 * Of the last step only alpha is needed. */
sps_status step(const room *r, int t)
{
    coefficients *c = r->c;
    double *w = r->w[(t + 1) % 3];
    const scaled v = {r->w[t % 3], &c->factor[t]};
    const scaled before = {r->w[(t + 2) % 3], t > 0 ? &c->factor[t - 1] : NULL};

    SPS_TRY_RETURN(each_row(r->ctx, r->n, r->nnz, r->A,
                            multiply{r->s, r->y, v.factor, before,
                                     t > 0 ? &c->beta[t - 1] : NULL, w}));
    SPS_TRY_RETURN(sum(r, multiply_both{w, v, &c->alpha[t]}));
    if (t + 1 == steps) return SPS_OK;
    SPS_TRY_RETURN(sum(r, subtract{r->s, &c->alpha[t], v, w, own_part(r, r->y),
                                   &c->beta[t], &c->factor[t + 1]}));
    return fill(r, r->y);
}

sps_status run_steps(const room *r)
{
    SPS_TRY_RETURN(sum(r, draw_start{r->s, r->x ? r->x->first : 0, r->w[0],
                                     own_part(r, r->y), r->c->factor}));
    SPS_TRY_RETURN(fill(r, r->y));
    for (int t = 0; t < steps; t++) SPS_TRY_RETURN(step(r, t));
    return SPS_OK;
}

sps_status run_bounds(const room *r)
{
    return each_row(r->ctx, r->n, r->nnz, r->A,
                    row_bounds{r->s, r->column, r->c->bound, r->most});
}

double number_of(unsigned long long bits)
{
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns the number of doubles for the vectors and partial sums. */
int64_t room_for(int64_t n) { return 4 * n + part_room(n); }

room lay_out(sps_coarse *l, const sps_csr *A, double *vectors, coefficients *c)
{
    const int64_t n = A->nrow;
    room r = {l->ctx, n, A->nnz, entries_of(A),
              A == l->F ? l->factor : l->scale};

    for (int t = 0; t < 3; t++) r.w[t] = vectors + t * n;
    r.y = vectors + 3 * n;
    r.part = vectors + 4 * n;
    r.c = c;
    r.column = (double *)r.s;
    return r;
}

/* ---------------------------------------------------------------- the side */

/* Makes what there is not yet of the second stream. */
sps_status open_side(sps_coarse *l)
{
    if (!l->side) {
        SPS_TRY_RETURN(SPS_NEW(l->ctx, 1, &l->side));
        l->side->users = 1;
    }
    if (!l->side->stream)
        SPS_CUDA(l->ctx, cudaStreamCreateWithFlags(&l->side->stream,
                                                   cudaStreamNonBlocking));
    if (!l->side->ready)
        SPS_CUDA(l->ctx, cudaEventCreateWithFlags(&l->side->ready,
                                                  cudaEventDisableTiming));
    if (!l->side->done)
        SPS_CUDA(l->ctx, cudaEventCreateWithFlags(&l->side->done,
                                                  cudaEventDisableTiming));
    return SPS_OK;
}

void close_side(coarse_side *side)
{
    if (side->stream) cudaStreamDestroy(side->stream);
    if (side->ready) cudaEventDestroy(side->ready);
    if (side->done) cudaEventDestroy(side->done);
    cudaGetLastError();
}

/* Runs the steps on the side, after what has been queued. */
sps_status run_aside(sps_coarse *l, const room *r)
{
    sps_cuda_state *s = spsi_cuda_state(l->ctx);
    const cudaStream_t stream = s->stream;
    const coarse_side *side = l->side;
    sps_status st;

    SPS_CUDA(l->ctx, cudaEventRecord(side->ready, stream));
    SPS_CUDA(l->ctx, cudaStreamWaitEvent(side->stream, side->ready, 0));
    s->stream = side->stream;
    st = run_steps(r);
    s->stream = stream;
    SPS_CUDA(l->ctx, cudaEventRecord(side->done, side->stream));
    return st;
}

/* Lets the stream wait for the steps on the side. */
sps_status await_side(sps_coarse *l)
{
    SPS_CUDA(l->ctx, cudaStreamWaitEvent(stream_of(l->ctx), l->side->done, 0));
    return SPS_OK;
}

/* The coefficients of the whole process for F or A, by the one stream. */
sps_status run_here(sps_coarse *l, const sps_csr *A, coefficients *c)
{
    holder h(l->ctx);
    coefficients *there;
    double *vectors;

    SPS_TRY_RETURN(h.take(room_for(A->nrow), &vectors));
    SPS_TRY_RETURN(h.take(1, &there));
    SPS_TRY_RETURN(clear(l->ctx, 1, there));
    const room r = lay_out(l, A, vectors, there);

    SPS_TRY_RETURN(run_bounds(&r));
    SPS_TRY_RETURN(run_steps(&r));
    return download(l->ctx, 1, there, c);
}

sps_status take_ahead(sps_coarse *l, coefficients *c)
{
    SPS_TRY_RETURN(await_side(l));
    SPS_TRY_RETURN(download(l->ctx, 1, l->ahead, c));
    give_back(l, &l->ahead_room);
    give_back(l, &l->ahead);
    return SPS_OK;
}

/* Allocates what r needs, with vectors y of `columns` elements. */
sps_status make_room(holder &h, int64_t columns, room *r)
{
    double *vectors;

    SPS_TRY_RETURN(h.take(3 * r->n, &vectors));
    SPS_TRY_RETURN(h.take(columns, &r->y));
    SPS_TRY_RETURN(h.take(part_room(r->n), &r->part));
    SPS_TRY_RETURN(h.take(1, &r->c));
    for (int t = 0; t < 3; t++) r->w[t] = vectors + t * r->n;
    return clear(r->ctx, 1, r->c);
}

void read_results(const coefficients *c, double *diagonal, double *off,
                  double bound[2])
{
    memcpy(diagonal, c->alpha, sizeof c->alpha);
    memcpy(off, c->beta, sizeof c->beta);
    for (int i = 0; i < 2; i++) bound[i] = number_of(c->bound[i]);
}

/* r->column = s of all columns.  A process that has had no memory until here has
 * said so at the latest by the sum: who waits for a queued message waits for the
 * GPU. */
sps_status spread_scale(holder &h, int64_t columns, room *r)
{
    double none = 0;

    SPS_TRY_RETURN(h.take(columns, &r->column));
    SPS_TRY_RETURN(spsi_reduce(r->ctx, &none, 1));
    SPS_CUDA(r->ctx, cudaMemcpyAsync(own_part(r, r->column), r->s,
                                     (size_t)r->n * sizeof *r->s,
                                     cudaMemcpyDeviceToDevice,
                                     stream_of(r->ctx)));
    return fill(r, r->column);
}

} // namespace

/* A process made by fork() leaves the stream to its parent. */
void spsi_coarse_leave_side(sps_coarse *l)
{
    coarse_side *side = l->side;

    const bool ours = spsi_cuda_state(l->ctx)->pid == getpid();

    if (!side) return;
    if (ours && l->ahead) (void)await_side(l);
    l->side = NULL;
    if (--side->users > 0) return;
    if (ours) close_side(side);
    spsi_free(l->ctx, side);
}

/* The bounds are computed at once, since strong couplings are found by the
 * largest ones, and the Lanczos steps on the side.  Steps that an update has
 * left behind, which failed, are for other values. */
sps_status spsi_coarse_ahead_lanczos(sps_coarse *l)
{
    const int64_t n = l->A.nrow;

    SPS_TRY_RETURN(open_side(l));
    if (l->ahead) SPS_TRY_RETURN(await_side(l));
    SPS_TRY_RETURN(keep(l, room_for(n), &l->ahead_room));
    SPS_TRY_RETURN(keep(l, 1, &l->ahead));
    SPS_TRY_RETURN(clear(l->ctx, 1, l->ahead));
    room r = lay_out(l, &l->A, l->ahead_room, l->ahead);

    if (!l->node) SPS_TRY_RETURN(keep(l, n, &l->most));
    r.most = l->most;
    SPS_TRY_RETURN(run_bounds(&r));
    return run_aside(l, &r);
}

sps_status spsi_coarse_lanczos(sps_coarse *l, bool filtered, double *diagonal,
                               double *off, double *bound)
{
    coefficients c;
    double bounds[2];

    SPS_TRY_RETURN(filtered || !l->ahead
                       ? run_here(l, filtered && l->F ? l->F : &l->A, &c)
                       : take_ahead(l, &c));
    read_results(&c, diagonal, off, bounds);
    *bound = fmin(bounds[0], bounds[1]);
    return SPS_OK;
}

sps_status spsi_coarse_lanczos_across(sps_coarse *l, const sps_csr *A,
                                      const spsi_coarse_across *x,
                                      double *diagonal, double *off,
                                      double *bound)
{
    const int64_t n = A->nrow;
    holder h(l->ctx);
    unsigned long long *unused;
    coefficients c;
    room r = {l->ctx, n, A->nnz, entries_of(A), l->scale};

    SPS_TRY_RETURN(spsi_cuda_enter(l->ctx));
    r.x = x;
    SPS_TRY_RETURN(make_room(h, A->ncol, &r));
    SPS_TRY_RETURN(spread_scale(h, A->ncol, &r));
    SPS_TRY_RETURN(run_steps(&r));
    SPS_TRY_RETURN(run_bounds(&r));
    if (!l->node) {   /* the couplings within the diagonal block */
        SPS_TRY_RETURN(keep(l, n, &l->most));
        SPS_TRY_RETURN(h.take_zeros(2, &unused));
        SPS_TRY_RETURN(each_row(l->ctx, n, l->A.nnz, entries_of(&l->A),
                                row_bounds{l->scale, l->scale, unused,
                                           l->most}));
    }
    SPS_TRY_RETURN(download(r.ctx, 1, r.c, &c));
    read_results(&c, diagonal, off, bound);
    return SPS_OK;
}
