/* SPDX-License-Identifier: BSD-3-Clause */
/* blocked_ell_run.cu - cuSPARSE's Blocked-ELL: block size, plan and run, for
 * spmm_blocked_ell.c, which describes the method, and its sibling in single
 * precision.
 *
 * cuSPARSE needs whole blocks, so X is copied to memory of the plan if its rows
 * end in an incomplete block column; likewise single-precision blocks whose
 * width is not a multiple of 4, of which it reads the columns up to the next
 * multiple (12.6.3), beyond the end of a block without padding.  The product
 * goes to memory of the plan too, and a kernel of ours combines it with Y, if
 *   - rows of Y end in an incomplete block row;
 *   - a block row is empty: its padding multiplies rows of X not used by it;
 *   - the scalars are in device memory, which cuSPARSE does not support here;
 *   - single-precision blocks have a width that is not a multiple of 4, as it
 *     writes the columns up to the next multiple (12.6.3). */
#include "cuda/vendor/blocked_ell_device.cuh"
#include "cuda/vendor/blocked_ell_run.h"
#include "cuda/vendor/cusparse_spmm.cuh"

#include <math.h>
#include <stdio.h>

namespace {

constexpr int sizes[] = {8, 16, 32};
constexpr int size_count = sizeof sizes / sizeof *sizes;
/* Largest number of stored slots per nonzero at which the kernel is a candidate
 * (a fill of 0.4) and at which it can be requested by name (0.2).  Its time
 * does not depend on the fill: with 64 columns and blocks of 32 it is 1.5 times
 * as fast as any other kernel at fill 0.5. */
constexpr double slots_to_bid = 2.5, slots_by_name = 5.0;
/* Block rows per call: cuSPARSE (12.6.3) uses them as the second grid
 * dimension, and beyond 65535 it returns success without having multiplied. */
constexpr int64_t panel_rows = 32768;

/* ----------------------------------------------- choice of the block size */

double slots_of(const sps_problem *p, int b, int64_t w)
{
    return (double)ceil_div(p->A->nrow, b) * (double)w * b * b;
}

double slots_allowed(const sps_problem *p)
{
    return (double)p->f->nnz * (p->pinned ? slots_by_name : slots_to_bid);
}

/* Predicted seconds with blocks of size b, w per block row, fitted to an H200
 * (within 6 %): a tile (a block row and 64 columns, all used or not) takes a
 * time per block and a constant; X and Y move at copy bandwidth.  Fewer tiles
 * than are resident at once, four per multiprocessor, take no less time. */
double predict(const sps_problem *p, int b, int64_t w)
{
    static const double each[2][size_count] = {{1.6e-9, 2.0e-9, 4.05e-9},
                                               {1.0e-9, 1.25e-9, 1.5e-9}};
    bool single = p->block == SPS_F32;
    double size = (double)spsi_dtype_size(p->block), k = p->k;
    double rows = (double)p->f->nrow, columns = (double)p->f->ncol;
    double tiles = (double)ceil_div(p->f->nrow, b) * ceil(k / 64);
    double at_once = 4 * p->machine->sms;
    double products = (tiles < at_once ? at_once : tiles) *
                      ((double)w * each[single][shift_of(b) - 3] + 2e-9) *
                      p->machine->work;
    double values = slots_of(p, b, w) * size / (0.8 * p->machine->copy);
    double moved = (rows + columns) * k * size;

    if (p->f->ncol % b || (single && p->k % 4))
        moved += 2 * columns * k * size;
    if (p->f->nrow % b || (single && p->k % 4)) moved += 2 * rows * k * size;
    return (products > values ? products : values) + moved / p->machine->copy +
           5e-6;
}

/* Estimates, for all block sizes, w[s], the largest number of blocks in a block
 * row, from the features: exactly for matrices of few entries, else a lower
 * bound from a sample of block rows. *fill becomes an upper bound of the
 * fill. */
void guess_widths(const sps_problem *p, int64_t *w, double *fill)
{
    *fill = 0;
    for (int s = 0; s < size_count; s++) {
        int b = sizes[s];
        /* Below a fill of a tenth its exact value is irrelevant. */
        double most = 10.0 * (double)p->f->nnz / slots_of(p, b, 1) + 1.0;
        double slots;

        w[s] = p->f->widest[s];
        if ((double)ceil_div(p->f->max_length, b) <= most &&
            w[s] > (int64_t)most)
            w[s] = (int64_t)most + 1;
        slots = slots_of(p, b, w[s]);
        if ((double)p->f->nnz / slots > *fill)
            *fill = (double)p->f->nnz / slots;
    }
}

/* Returns the index of the fastest block size with at most `slots` slots, or -1
 * if there is none; *least becomes its predicted seconds. */
int best_size(const sps_problem *p, const int64_t *w, double slots,
              double *least)
{
    int best = -1;

    for (int s = 0; s < size_count; s++) {
        double t = predict(p, sizes[s], w[s]);

        if (slots_of(p, sizes[s], w[s]) > slots) continue;
        if (best < 0 || t < *least) {
            best = s;
            *least = t;
        }
    }
    return best;
}

/* Returns a text with the upper bound of the fill in tenths. */
const char *emptiness(double fill)
{
    static const char *const text[] = {
        "blocks of 8 to 32 would be at most 10 % full",
        "blocks of 8 to 32 would be at most 20 % full",
        "blocks of 8 to 32 would be at most 30 % full",
        "blocks of 8 to 32 would be at most 40 % full",
    };
    int tenth = (int)(fill * 10);

    return text[tenth < 3 ? tenth : 3];
}

/* ----------------------------------------------------------------- the plan */

/* Counts the blocks for all block sizes, exactly. */
sps_status count_all(sps_context *ctx, const sps_csr_local *A, block_count *c)
{
    block_count *there;

    SPS_TRY_RETURN(take_scratch(ctx, size_count, &there));
    SPS_TRY_RETURN(clear(ctx, size_count, there));
    SPS_TRY_RETURN(launch_count<8>(ctx, A, there));
    SPS_TRY_RETURN(launch_count<16>(ctx, A, there + 1));
    SPS_TRY_RETURN(launch_count<32>(ctx, A, there + 2));
    return download(ctx, size_count, there, c);
}

/* Chooses the block size; *empty becomes the number of block rows without
 * blocks. */
sps_status choose_size(sps_context *ctx, const sps_problem *p,
                       sps_blocked_ell *e, int *empty)
{
    block_count count[size_count];
    int64_t w[size_count];
    double least;
    int best;

    SPS_TRY_RETURN(count_all(ctx, p->local, count));
    for (int s = 0; s < size_count; s++) w[s] = count[s].widest;
    /* If the kernel is requested by name, its fill was limited by the estimate
     * in `fits` only; any exact fill is accepted now. */
    best = best_size(p, w, p->pinned ? HUGE_VAL : slots_allowed(p), &least);
    if (best < 0)
        return spsi_fail(ctx, SPS_EUNFIT, "Blocked-ELL: the fullest block row "
                         "has %lld blocks of %d x %d, so that %.0f slots "
                         "would hold %lld entries, too few for this kernel",
                         (long long)w[0], sizes[0], sizes[0],
                         slots_of(p, sizes[0], w[0]),
                         (long long)p->f->nnz);
    spsi_blocked_ell_shape(p->local->nrow, p->local->ncol, p->local->dtype,
                           sizes[best], e);
    e->w = w[best];
    *empty = count[best].empty;
    return SPS_OK;
}

sps_status convert(sps_bell_plan *v, int empty)
{
    sps_plan *plan = &v->base.super;
    sps_context *ctx = plan->ctx;
    const sps_csr_local *A = plan->A;
    sps_blocked_ell *e = &v->base.ell;
    const size_t bytes = (size_t)spsi_blocked_ell_slots(e) *
                         spsi_dtype_size(e->dtype);

    SPS_TRY_RETURN(plan_take(plan, e->mb * e->w, &e->column));
    SPS_TRY_RETURN(spsi_plan_take(plan, bytes, &e->val));
    if (empty > 0) SPS_TRY_RETURN(plan_take(plan, e->mb, &v->empty));
    SPS_TRY_RETURN(e->b == 8    ? launch_columns<8>(ctx, A, e, v->empty)
                   : e->b == 16 ? launch_columns<16>(ctx, A, e, v->empty)
                                : launch_columns<32>(ctx, A, e, v->empty));
    SPS_TRY_RETURN(clear(ctx, (int64_t)bytes, (char *)e->val));
    return write_values(ctx, A, e);
}

/* A panel of up to panel_rows block rows, with its descriptor for the duration
 * of a call. */
struct panel {
    engine e;
    int64_t first, rows;     /* the first block row and the number of block
                                rows */

    ~panel()
    {
        if (e.A) cusparseDestroySpMat(e.A);
    }
};

sps_status describe_panel(sps_context *ctx, const sps_bell_plan *v, panel *p)
{
    const sps_blocked_ell *e = &v->base.ell;
    size_t row = (size_t)(e->b * e->w * e->b) * spsi_dtype_size(e->dtype);

    p->rows = e->mb - p->first < panel_rows ? e->mb - p->first : panel_rows;
    p->e = engine{NULL, {CUSPARSE_SPMM_BLOCKED_ELL_ALG1, "BLOCKED_ELL_ALG1"},
                  e->dtype, v->buffer};
    SPS_CUSPARSE(ctx, cusparseCreateBlockedEll(
                          &p->e.A, p->rows * e->b, e->nb * e->b, e->b,
                          e->w * e->b, e->column + p->first * e->w,
                          (char *)e->val + (size_t)p->first * row,
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                          number_type(e->dtype)));
    return SPS_OK;
}

/* Allocates the buffer of cuSPARSE for every width; 12.6.3 needs none. */
sps_status need_buffer(sps_bell_plan *v)
{
    const sps_blocked_ell *e = &v->base.ell;
    panel p = {};

    SPS_TRY_RETURN(describe_panel(v->base.super.ctx, v, &p));
    SPS_TRY_RETURN(engine_any(&v->base.super,
                              operand{e->nb * e->b, v->y, v->ld},
                              operand{p.rows * e->b, v->y, v->ld}, &p.e));
    v->buffer = p.e.buffer;
    return SPS_OK;
}

/* Allocates memory for the padded copies of X and Y, and the buffer. */
sps_status reserve(sps_bell_plan *v)
{
    sps_plan *plan = &v->base.super;
    const sps_blocked_ell *e = &v->base.ell;
    size_t row = (size_t)v->ld * spsi_dtype_size(e->dtype);

    if (e->ncol % e->b || e->dtype == SPS_F32)
        SPS_TRY_RETURN(spsi_plan_take(plan, (size_t)(e->nb * e->b) * row,
                                      &v->x));
    SPS_TRY_RETURN(spsi_plan_take(plan, (size_t)(e->mb * e->b) * row, &v->y));
    return need_buffer(v);
}

/* ------------------------------------------------------------------ the run */

/* to = from (n x k), zero-padded to `padded` rows and `wide` columns. */
template <class T>
__global__ void __launch_bounds__(256)
pad_rows(const T *__restrict__ from, int64_t from_ld, int64_t n, int k, T *to,
         int64_t to_ld, int64_t padded, int wide)
{
    int64_t t = (int64_t)blockIdx.x * 256 + threadIdx.x, i = t / wide;
    int64_t j = t % wide;

    if (i < padded)
        to[i * to_ld + j] = i < n && j < k ? from[i * from_ld + j] : T(0);
}

/* Y = alpha t + beta Y, where b.x is the product t computed by cuSPARSE; its
 * empty block rows, of 2^shift rows, count as zero. */
template <class T>
__global__ void __launch_bounds__(256)
join_rows(blocks<T> b, int64_t n, int shift, const uint8_t *empty)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, i = e / b.k;
    int64_t j = e % b.k;
    T *y = b.y + i * b.ldy + j;

    b.resolve();
    if (i < n)
        *y = b.join(empty && empty[i >> shift] ? T(0) : b.x[i * b.ldx + j], y);
}

template <class T>
sps_status pad(const sps_bell_plan *v, const sps_block *X)
{
    sps_context *ctx = X->ctx;
    const sps_blocked_ell *e = &v->base.ell;
    int64_t padded = e->nb * e->b;
    int wide = (X->k + 3) / 4 * 4;

    return run_items(ctx, padded * wide, pad_rows<T>, (const T *)X->data, X->ld,
                     X->n, X->k, (T *)v->x, v->ld, padded, wide);
}

template <class T>
sps_status join(const sps_bell_plan *v, const sps_spmm_args *args)
{
    sps_context *ctx = v->base.super.ctx;
    blocks<T> b = blocks_of<T>(args);

    b.x = (const T *)v->y;
    b.ldx = v->ld;
    return run_items(ctx, args->Y->n * b.k, join_rows<T>, b, args->Y->n,
                     shift_of(v->base.ell.b), v->empty);
}

/* Multiplies the block rows of panel p; the product is written to the same rows
 * of y. */
sps_status multiply_panel(const sps_bell_plan *v, const sps_spmm_args *args,
                          operand x, void *y, int64_t ld, panel *p)
{
    sps_context *ctx = v->base.super.ctx;
    const sps_blocked_ell *e = &v->base.ell;
    size_t row = (size_t)ld * spsi_dtype_size(e->dtype);
    dense d;

    SPS_TRY_RETURN(describe_panel(ctx, v, p));
    SPS_TRY_RETURN(describe_dense(
        ctx, e->dtype, args->Y->k, x,
        operand{p->rows * e->b, (char *)y + (size_t)(p->first * e->b) * row,
                ld}, CUSPARSE_ORDER_ROW, &d));
    return with_host_scalars(
        args, [&](const void *alpha, const void *beta) -> sps_status {
            return product(ctx, &p->e, alpha, beta, &d);
        });
}

/* Returns whether X must be copied for cuSPARSE, because it has an incomplete
 * block column or a width that cuSPARSE would exceed. */
bool copies_x(const sps_bell_plan *v, const sps_block *X)
{
    const sps_blocked_ell *e = &v->base.ell;

    return e->ncol % e->b || (e->dtype == SPS_F32 && X->k % 4);
}

/* Computes the product into y; the scalars of args are in host memory. */
sps_status multiply(const sps_bell_plan *v, const sps_spmm_args *args, void *y,
                    int64_t ld)
{
    const sps_blocked_ell *e = &v->base.ell;
    const sps_block *X = args->X;
    bool copy = copies_x(v, X);
    operand x = {e->nb * e->b, copy ? v->x : X->data, copy ? v->ld : X->ld};

    for (int64_t first = 0; first < e->mb; first += panel_rows) {
        panel p = {};

        p.first = first;
        SPS_TRY_RETURN(multiply_panel(v, args, x, y, ld, &p));
    }
    return SPS_OK;
}

/* Returns whether cuSPARSE may write to Y directly: none of the four cases at
 * the top of this file applies. */
bool writes_y(const sps_bell_plan *v, const sps_spmm_args *args)
{
    const sps_blocked_ell *e = &v->base.ell;

    return e->nrow % e->b == 0 && !v->empty && !args->scalars &&
           (e->dtype == SPS_F64 || args->Y->k % 4 == 0);
}

/* Returns whether X has less than 2^31 numbers; beyond, cuSPARSE 12.6.3
 * multiplies wrong rows. */
bool counts_in_32_bits(const sps_block *X)
{
    return (X->n - 1) * X->ld + X->k <= INT32_MAX;
}

sps_status product_of(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_bell_plan *v = (const sps_bell_plan *)plan;
    const sps_block *X = args->X, *Y = args->Y;
    bool wide = X->dtype == SPS_F64;
    sps_spmm_args plain = *args;

    if (!counts_in_32_bits(X) || !counts_in_32_bits(Y))
        return spsi_cuda_far_product(plan, args);
    if (copies_x(v, X))
        SPS_TRY_RETURN(wide ? pad<double>(v, X) : pad<float>(v, X));
    if (writes_y(v, args)) return multiply(v, args, Y->data, Y->ld);
    plain.alpha = 1.0;
    plain.beta = 0.0;
    SPS_TRY_RETURN(multiply(v, &plain, v->y, v->ld));
    return wide ? join<double>(v, args) : join<float>(v, args);
}

} // namespace

bool spsi_bell_fits(const sps_problem *p, const char **why_not)
{
    int64_t w[size_count];
    double fill, least = 0;

    if (p->f->nnz == 0) {
        *why_not = "the matrix has no entries, so it has no blocks";
        return p->pinned;
    }
    guess_widths(p, w, &fill);
    *why_not = emptiness(fill);
    return best_size(p, w, slots_allowed(p), &least) >= 0;
}

/* Returns the predicted seconds, also for problems for which the kernel is no
 * candidate, since it may be requested by name. */
double spsi_bell_cost(const sps_problem *p)
{
    int64_t w[size_count];
    double fill, least = 5e-6;

    if (p->f->nnz == 0) return least;
    guess_widths(p, w, &fill);
    if (best_size(p, w, slots_allowed(p), &least) < 0)
        best_size(p, w, HUGE_VAL, &least);
    return least;
}

sps_status spsi_bell_plan(sps_plan *super, const sps_problem *p)
{
    sps_context *ctx = super->ctx;
    cusparseHandle_t handle;
    sps_bell_plan *v = (sps_bell_plan *)super;
    sps_blocked_ell *e = &v->base.ell;
    int empty;

    v->ld = spsi_block_ld(p->k < 4 ? 4 : p->k);
    if (p->local->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_sparse(ctx, &handle));
    SPS_TRY_RETURN(choose_size(ctx, p, e, &empty));
    SPS_TRY_RETURN(convert(v, empty));
    SPS_TRY_RETURN(reserve(v));
    snprintf(v->base.super.detail, sizeof v->base.super.detail,
             "b %d, fill %.2f", e->b,
             spsi_blocked_ell_fill(e, p->local->nnz));
    return SPS_OK;
}

sps_status spsi_bell_spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    return guarded<product_of>(plan, args);
}

sps_status spsi_bell_refresh(sps_plan *plan)
{
    const sps_bell_plan *v = (const sps_bell_plan *)plan;

    if (plan->A->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    return write_values(plan->ctx, plan->A, &v->base.ell);
}
