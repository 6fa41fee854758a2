/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_blocks.cu - Y = alpha A X + beta Y on node blocks: the shapes and the
 * launches of spmm_blocks.cuh.
 *
 * Bytes: 8 + 4 / b^2 a stored number, for each strip of 64 columns; X as L1 and
 * L2 forget it, each row once for b rows of Y; Y once.  A NaN in X meets the
 * zeros of its blocks: it reaches all b rows, in its own column.
 *
 * Tensor cores were tried (m16n8k8, a number of A in one lane, no ring): their
 * fragments want four rows of X at the same 32 bytes of a line from eight
 * lanes, which L1 gives one after the other, and 16 columns took 0.62 ms where
 * the ring takes 0.32. */
#include "spmm_blocks.cuh"

extern "C" const sps_kernel spsi_kernel_spmm_blocks;

namespace {

struct node_spmm_plan {
    sps_node_plan node;
    int64_t lead;            /* block rows to the next line, 0: none known */
};

/* Threads of a block, one a multiprocessor where rings leave room for L1: 128
 * registers a thread. */
template <int B, int L>
constexpr int threads = L == 4 && B > 4 ? 256 : 512;

template <class T> struct job {
    const sps_plan *plan;
    blocks<T> b;
    int width;               /* columns of a strip */
};

/* Tiles of `rows` block rows: four lines where lines are known. */
tile_order order_of(const node_spmm_plan *p, int64_t mb, int rows)
{
    tile_order o = { 0, mb, 0, rows, 1 };

    if (p->lead >= rows / 4) {
        o.lines = 4;
        o.lead = p->lead;
        o.run = rows / 4;
    }
    o.each = ceil_div(o.lead, o.run);
    o.tiles = ceil_div(mb, o.lines * o.lead) * o.each;
    return o;
}

template <int B, int L, int C, int W, class T, class V>
sps_status launch(const job<T> &o, const node_matrix<V> &A)
{
    constexpr int block = threads<B, L>;
    constexpr int bytes = block / L * (int)sizeof(ring<B, V>);
    auto kernel = ring_kernel<block, B, L, C, W, T, V>;
    sps_context *ctx = o.plan->ctx;
    const tile_order order = order_of((const node_spmm_plan *)o.plan, A.mb,
                                      block / L);
    const int64_t resident = (int64_t)(512 / block) *
                             spsi_cuda_state(ctx)->sms;
    const dim3 grid((unsigned)(order.tiles < resident ? order.tiles : resident),
                    (unsigned)ceil_div(o.b.k, o.width));

    static_assert(sizeof(ring<B, V>) % 32 == 16);
    SPS_CUDA(ctx, cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<grid, block, bytes, spsi_cuda_state(ctx)->stream>>>(
        A, (int32_t)(A.ncol - 1), o.b, order, o.width, stride_of<T>(o.b.ldx));
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

/* Columns of a strip when k of them go into strips of at most `most`, all
 * multiples of W. */
int strip_of(int k, int W, int most)
{
    return (int)ceil_div(ceil_div(k, ceil_div(k, most)), W) * W;
}

/* The smallest shape that holds the lumps of a strip; blocks beyond 4 x 4
 * leave registers for one lump a lane. */
template <int B, class T, class V>
sps_status choose(job<T> &o, const node_matrix<V> &A, bool aligned)
{
    constexpr int W = 16 / sizeof(T), C = B <= 4 ? 2 : 1;

    if (!aligned) {
        o.width = strip_of(o.b.k, 1, 16);
        return launch<B, 16 / C, C, 1>(o, A);
    }
    o.width = strip_of(o.b.k, W, 32 * W);
    if (o.width <= 4 * W) return launch<B, 4, 1, W>(o, A);
    if (o.width <= 8 * W) return launch<B, 8, 1, W>(o, A);
    if (o.width <= 16 * W) return launch<B, 16 / C, C, W>(o, A);
    return launch<B, 32 / C, C, W>(o, A);
}

template <class T, class V>
sps_status by_size(job<T> &o, const node_matrix<V> &A, bool aligned)
{
    switch (A.b) {
    case 2: return choose<2>(o, A, aligned);
    case 3: return choose<3>(o, A, aligned);
    case 4: return choose<4>(o, A, aligned);
    case 5: return choose<5>(o, A, aligned);
    case 6: return choose<6>(o, A, aligned);
    case 7: return choose<7>(o, A, aligned);
    default: return choose<8>(o, A, aligned);
    }
}

/* Whether rows consist of lumps of 16 bytes. */
bool in_lumps(const sps_block *X)
{
    const int64_t size = (int64_t)spsi_dtype_size(X->dtype);

    return X->k * size % 16 == 0 && X->ld * size % 16 == 0 &&
           (uintptr_t)X->data % 16 == 0;
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const bool aligned = in_lumps(args->X) && in_lumps(args->Y);

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    if (!near_rows(args->X)) return far_product(plan, args);
    return with_node_types(plan, args, [&](auto A, auto b) -> sps_status {
        job<std::remove_reference_t<decltype(*b.y)>> o = { plan, b, 0 };

        return by_size(o, A, aligned);
    });
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    node_spmm_plan *self;

    SPS_TRY_RETURN(node_plan_new(ctx, &spsi_kernel_spmm_blocks, p,
                                 sizeof *self, plan_p));
    self = (node_spmm_plan *)*plan_p;
    self->lead = spsi_node_lead(p->A, self->node.blocks.b);
    return SPS_OK;
}

bool fits(const sps_problem *p, const char **why_not)
{
    return spsi_node_fits(p, why_not);
}

/* Blocks, X and Y go by, then each row of X that a block names comes to its
 * lanes, out of L1 at 5.2 times the copy bandwidth (4.5 where they are longer
 * than 256 bytes), or out of L2 where rows find no neighbours there; odd widths
 * in strips of 16, each with all of A.  Fitted to elasticity 64^3.  Small
 * matrices wait for their longest row, whose blocks come one after the other:
 * 25 ns times b an entry, fitted to 20 matrices of 10^5 to 10^6 entries. */
double cost(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double row = moved_row(p), sectors = spsi_sectors(row);
    int b;
    const double all = node_floor(p, &b);
    const int lump = 16 / (int)spsi_dtype_size(p->block);
    const int strip = p->k % lump ? 16 : 32 * lump;
    const double again = (double)((p->k + strip - 1) / strip - 1);
    const double value = (double)spsi_dtype_size(p->A->dtype);
    const double A = (double)f->nnz * spsi_node_bytes(b, f->fill[b], value);
    const double stream = (all + again * A) / p->bandwidth;
    const double named = (double)f->nnz / (f->fill[b] * b) * row *
                         (b > 4 && p->k > 16 ? 2.0 : row > 256 ? 1.15 : 1.0);
    const double missed = (double)f->nnz * f->distinct64 * sectors;

    return stream + fmax(named / (5.2 * p->bandwidth),
                         missed / spsi_gather_rate(p->bandwidth,
                                                   footprint_of(p, sectors),
                                                   sectors)) +
           2.5e-8 * b * (double)f->max_length + 3.5e-6;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_blocks) = {
    .name = "spmm.blocks",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_SINGLE_BLOCKS,
    .fuses = true,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = node_refresh,
    .destroy = node_destroy,
};
