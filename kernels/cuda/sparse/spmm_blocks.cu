/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_blocks.cu - Y = alpha A X + beta Y on node blocks: kernel shapes and
 * launches of spmm_blocks.cuh.
 *
 * Bytes: 8 + 4 / b^2 per stored number, for each pass over at most 512 bytes of
 * each row of X; a row of X is loaded once for b rows of Y, from memory if L1
 * and L2 have evicted it; Y once.  A NaN in X is multiplied by the explicit
 * zeros of its blocks: it reaches all b rows, in its own column.
 *
 * Tensor cores were tried (m16n8k8, one number of A per lane, without the
 * staged pipeline): in their fragments eight lanes load the same 32 bytes of a
 * line from four rows of X, which L1 serialises, and 16 columns took 0.62 ms
 * instead of 0.32 with the staged pipeline. */
#include "cuda/base/shared_limit.cuh"
#include "cuda/sparse/spmm_blocks.cuh"

namespace {

struct node_spmm_plan {
    sps_node_plan node;
    int64_t lead;            /* distance in block rows to the next grid line,
                                or 0 if unknown */
};

/* Number of threads of the largest thread block. 512 threads with 128 registers
 * each fill a multiprocessor; it is 256 where the stage buffers of 512 would
 * leave little of its memory to L1, or would not fit (7 x 7). */
template <int B, int L>
constexpr int threads = L == 4 && B > 4 ? 256 : 512;

template <class T> struct job {
    const sps_plan *plan;
    padded_blocks<T> b;
};

/* Returns the number of threads of a block: less than `most` if that would
 * leave multiprocessors idle; tiles of four grid lines need four warps. */
int block_of(int64_t lanes, int most, int sms)
{
    int block = most;

    while (block > 128 && lanes < (int64_t)block * sms) block /= 2;
    return block;
}

/* Returns the order of tiles of `warps` groups of P block rows: they are taken
 * from four grid lines if these are known. */
tile_order order_of(const node_spmm_plan *p, int64_t mb, int P, int warps)
{
    tile_order o = { 0, mb, 0, 1 };

    if (p->lead >= warps * P / 4) {
        o.lines = 4;
        o.lead = p->lead;
    }
    o.each = (uint32_t)(o.lines * ceil_div(o.lead, P));
    o.tiles = ceil_div(ceil_div(mb, o.lines * o.lead) * o.each, warps);
    return o;
}

/* X: the type of the block X. */
template <int B, int L, int C, int W, bool BARE, bool TAIL, class X, class T,
          class V>
sps_status launch_with(const job<T> &o, const node_matrix<V> &A)
{
    constexpr int most = threads<B, L>, size = (int)sizeof(ring<B, V>);
    auto kernel = ring_kernel<most, B, L, C, W, BARE, TAIL, T, V, X>;
    sps_context *ctx = o.plan->ctx;
    const int sms = spsi_cuda_state(ctx)->sms;
    const int block = block_of(A.mb * L, most, sms);
    const tile_order order = order_of((const node_spmm_plan *)o.plan, A.mb,
                                      32 / L, block / 32);
    const int64_t resident = (int64_t)(512 / block) * sms;

    static_assert(size % 32 == 16);
    SPS_TRY_RETURN(allow_shared(ctx, kernel, most / L * size));
    kernel<<<(unsigned)min(order.tiles, resident), block,
             block / L * size, spsi_cuda_state(ctx)->stream>>>(
        A, (int32_t)(A.ncol - 1), o.b, order, stride_of<X>(o.b.ldx));
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

template <int B, int L, int C, int W, bool BARE, bool TAIL, class T, class V>
sps_status launch(const job<T> &o, const node_matrix<V> &A)
{
    return launch_with<B, L, C, W, BARE, TAIL, T>(o, A);
}

template <int B, int L, int C, int W, class T, class V>
sps_status run(const job<T> &o, const node_matrix<V> &A)
{
    if constexpr (W > 1)
        if (A.ncol % B || (o.b.k % W && !o.b.padded))
            return launch<B, L, C, W, true, false>(o, A);
    return launch<B, L, C, W, false, false>(o, A);
}

/* Launches the smallest kernel shape that holds the columns of a pass.  Blocks
 * larger than 4 x 4 leave registers for one vector per lane; for 7 x 7 and 8 x
 * 8 an additional tail column does not pay with 4 lanes. */
template <int B, class T, class V>
sps_status choose(const job<T> &o, const node_matrix<V> &A, bool aligned)
{
    constexpr int W = 16 / sizeof(T), C = B <= 4 ? 2 : 1, L = 16 / C;
    const int k = o.b.k;
    const bool tail = A.ncol % B == 0;

    if (!aligned)
        return k <= 16 ? run<B, L, C, 1>(o, A) : run<B, 2 * L, C, 1>(o, A);
    if (k <= 4 * W) return run<B, 4, 1, W>(o, A);
    if constexpr (B < 7)
        if (k <= 4 * W + 4 && tail)
            return launch<B, 4, 1, W, false, true>(o, A);
    if (k <= 8 * W) return run<B, 8, 1, W>(o, A);
    if (k <= 8 * W + 8 && tail)
        return launch<B, 8, 1, W, false, true>(o, A);
    if (k <= 16 * W) return run<B, L, C, W>(o, A);
    if (k <= 16 * W + L && tail)
        return launch<B, L, C, W, false, true>(o, A);
    if constexpr (B < 4)
        if (k <= 24 * W) return run<B, 8, 3, W>(o, A);
    return run<B, 2 * L, C, W>(o, A);
}

/* Returns the number of columns of the next slice when `left` are left.  Slices
 * are launched one after the other: each has the kernel shape for its width. */
int pass_of(int left, int b, int W)
{
    const int half = 16 * W;

    if (W == 1 || (b > 4 && left > half)) return min(left, 2 * half);
    return left <= 2 * half ? left : left <= 3 * half ? half : 2 * half;
}

template <int B, class T, class V>
sps_status passes(const job<T> &o, const node_matrix<V> &A, bool aligned)
{
    job<T> part = o;

    for (int c = 0; c < o.b.k; c += part.b.k) {
        part.b = o.b.columns(c, pass_of(o.b.k - c, B,
                                        aligned ? 16 / sizeof(T) : 1));
        SPS_TRY_RETURN(choose<B>(part, A, aligned));
    }
    return SPS_OK;
}

template <class T, class V>
sps_status by_size(const job<T> &o, const node_matrix<V> &A, bool aligned)
{
    switch (A.b) {
    case 2: return passes<2>(o, A, aligned);
    case 3: return passes<3>(o, A, aligned);
    case 4: return passes<4>(o, A, aligned);
    case 5: return passes<5>(o, A, aligned);
    case 6: return passes<6>(o, A, aligned);
    case 7: return passes<7>(o, A, aligned);
    default: return passes<8>(o, A, aligned);
    }
}

/* Returns whether all rows of X begin at multiples of 16 bytes. */
bool rows_aligned(const sps_block *X)
{
    return X->ld * (int64_t)spsi_dtype_size(X->dtype) % 16 == 0 &&
           (uintptr_t)X->data % 16 == 0;
}

/* The product of a matrix of doubles with 16 columns of floats. */
sps_status mixed(const job<double> &o, const node_matrix<double> &A)
{
    return A.b == 2 ? launch_with<2, 8, 1, 2, false, false, float>(o, A)
         : A.b == 3 ? launch_with<3, 8, 1, 2, false, false, float>(o, A)
                    : launch_with<6, 8, 1, 2, false, false, float>(o, A);
}

bool mixes(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_node_blocks *n = &((const node_spmm_plan *)plan)->node.blocks;
    const int b = n->b;

    return n->dtype == SPS_F64 && args->X->dtype == SPS_F32 &&
           args->Y->dtype == SPS_F64 && args->Y->k == 16 && !args->epilogue &&
           !args->scalars && args->beta == 0 && (b == 2 || b == 3 || b == 6) &&
           plan->A->ncol % b == 0 && rows_aligned(args->X) &&
           rows_aligned(args->Y) && near_rows(args->X);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const bool aligned = rows_aligned(args->X) && rows_aligned(args->Y);

    return with_node_types(plan, args, [&](auto A, auto b) -> sps_status {
        job<std::remove_reference_t<decltype(*b.y)>> o =
            { plan, with_padding(b, args) };

        if constexpr (std::is_same_v<decltype(A), node_matrix<double>>)
            if (args->X->dtype != args->Y->dtype) return mixed(o, A);
        return by_size(o, A, aligned);
    });
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    node_spmm_plan *self = (node_spmm_plan *)super;

    SPS_TRY_RETURN(node_plan_fill(&self->node, p));
    return spsi_cuda_node_lead(super->ctx, p->local, self->node.blocks.b,
                               &self->lead);
}

bool fits(const sps_problem *p, const char **why_not)
{
    return spsi_node_fits(p, why_not);
}

/* Returns the predicted seconds of a pass.  Blocks, X and Y are streamed; then
 * each row of X that a block uses is loaded, from L1 at 5.2 times the copy
 * bandwidth (4.5 and 4 times if rows are longer than 256 and 384 bytes), or
 * from L2 if no neighbouring row has loaded it.  Fitted to elasticity 64^3.
 * The blocks of a block row are processed sequentially: 16 ns per row of X, 8
 * more for each further vector of a lane, fitted to 16 matrices of 10^5 to 10^6
 * entries; the two terms overlap in part. */
double pass_cost(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double row = moved_row(p), sectors = spsi_sectors(row);
    const int W = 16 / (int)spsi_dtype_size(p->block);
    int b;
    const double stream = node_floor(p, &b) / p->machine->copy;
    const int wide = (int)ceil_div(p->k, 8 * W);
    const int vectors = b > 4 ? 1
                        : wide < 3 || (wide == 3 && b < 4) ? wide : 2;
    const double named = (double)f->nnz / (f->fill[b] * b) * row *
                         (b > 4 && p->k > 16 ? 2.0
                          : row > 384 ? 1.3 : row > 256 ? 1.15 : 1.0);
    const double missed = (double)f->nnz * f->distinct64 * sectors;
    const double chain = 8e-9 * (1 + vectors) * b * (double)f->max_length /
                         f->fill[b];

    return hypot(chain, stream + fmax(named / (5.2 * p->machine->copy),
                                      missed / spsi_gather_rate(
                                          p->machine,
                                          footprint_of(p, sectors),
                                          sectors))) + 2.9e-6;
}

/* Predicted seconds for blocks that own their memory, whose rows are
 * aligned. */
double cost(const sps_problem *p)
{
    const int W = 16 / (int)spsi_dtype_size(p->block);
    sps_problem part = *p;
    double sum = 0;
    int b;

    node_floor(p, &b);
    for (int c = 0; c < p->k; c += part.k) {
        part.k = pass_of(p->k - c, b, W);
        sum += pass_cost(&part);
    }
    return sum;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_blocks) = {
    .name = "spmm.blocks",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_SINGLE_BLOCKS,
    .fuses = true,
    .size = sizeof(node_spmm_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<near_only<spmm>>,
    .mixes = mixes,
    .refresh = node_refresh,
};
