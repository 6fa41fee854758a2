/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_share.cu - Y = alpha A X + beta Y with the entries dealt out in equal
 * shares (kernels/formats/shares.h): for matrices so small, or of rows so
 * different, that the longest walk along a row is what one waits for.
 *
 * A chain has three loads, a descriptor, entries, rows of X, and no share is
 * longer than another; small shares keep the whole GPU at work on 10^5 entries.
 * Bits depend on the matrix, the width of the plan and the size of the GPU.
 * Kernel: spmm_share.cuh.
 *
 * Bytes: A once for each strip of columns and 16 for a share, Y once, a row of
 * X for each entry out of L1 or L2. */
#include "spmm_share.cuh"

#include <stdio.h>

extern "C" const sps_kernel spsi_kernel_spmm_share;

namespace {

/* How a width is cut: L lanes with C pairs each, shares of at most size. */
struct shape {
    int lanes, pairs, size;
};

struct share_plan {
    sps_plan super;
    shape use;
    sps_shares count;         /* how many of what: its arrays are in memory */
    int64_t ld;               /* of parts: whole strips of the plan's width */
    int strips;
    char *memory;
    size_t bytes, shares_at, spans_at, rows_at, empty_at, parts_at, arrived_at;
};

/* As many columns at a time as lanes can hold without idling, and the smallest
 * shares that these are good for. */
shape shape_of(const sps_problem *p)
{
    const int k = p->k, rest = k % 64;
    shape s = { k <= 4 ? 2 : k <= 8 ? 4 : 8, k <= 16 ? 1 : 2, 8 };

    if (k > 32 && (rest == 0 || rest > 32)) s.lanes = 16;
    if (s.pairs > 1) s.size = 16;
    return s;
}

/* Shares so small that all are at work at once, if they can be: a little more
 * than one wave of blocks costs more than twice the entries.  Few lanes do not
 * hold large ones.  Returns the size, counts in *h. */
int tally(const sps_context *ctx, const sps_problem *p, shape s, sps_shares *h)
{
    const int most = s.lanes == 2 ? 8 : s.lanes == 4 ? 16 : 32;
    const int team = block_threads(s.pairs) / s.lanes;
    const int64_t each = ceil_div(p->k, 2 * s.lanes * s.pairs) * s.lanes;

    for (; s.size < most; s.size *= 2)
        if (spsi_shares_tally(p->A->nrow, p->A->rowptr, s.size, team,
                              (int64_t)spsi_cuda_state(ctx)->sms *
                                  sm_threads(s.pairs, s.size) / each, h))
            return s.size;
    spsi_shares_tally(p->A->nrow, p->A->rowptr, s.size, team, INT64_MAX, h);
    return s.size;
}

template <class T> T *section(const share_plan *s, size_t at)
{
    return reinterpret_cast<T *>(s->memory + at);
}

dealt dealt_of(const share_plan *s)
{
    return { section<sps_share>(s, s->shares_at),
             section<sps_share_span>(s, s->spans_at),
             s->count.empty ? section<int32_t>(s, s->rows_at) : NULL,
             section<int32_t>(s, s->empty_at),
             (int)(s->count.count / s->count.team), (int)s->count.empty,
             s->strips, section<double>(s, s->parts_at), s->ld,
             section<unsigned>(s, s->arrived_at) };
}

template <int L, int C, int SIZE, columns M>
sps_status launch(const sps_plan *plan, const sps_spmm_args *args)
{
    constexpr int threads = block_threads(C);
    sps_context *ctx = plan->ctx;
    const blocks<double> b = blocks_of(args);
    const dealt d = dealt_of((const share_plan *)plan);
    const int64_t each = threads / L * empty_each;
    const dim3 grid((unsigned)(d.blocks + ceil_div(d.empty, each)),
                    (unsigned)ceil_div(b.k, 2 * L * C));

    return with_types(plan->A, [&](auto A) -> sps_status {
        share_kernel<L, C, SIZE, M>
            <<<grid, threads, 0, spsi_cuda_state(ctx)->stream>>>(A.col, A.val,
                                                                 d, b);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

/* MOST: entries of the largest share that these lanes are given. */
template <int L, int C, int SIZE, int MOST>
sps_status by_columns(const sps_plan *plan, const sps_spmm_args *args)
{
    if (!paired(args->X) || !paired(args->Y))
        return launch<L, C, MOST, SINGLE>(plan, args);
    return args->Y->k % (2 * L * C) == 0 && !args->scalars &&
                   args->beta == 0 && !args->epilogue
        ? launch<L, C, SIZE, WHOLE>(plan, args)
        : launch<L, C, SIZE, PAIRS>(plan, args);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const shape use = ((const share_plan *)plan)->use;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    switch (use.lanes * use.pairs * 100 + use.size) {
    case 208: return by_columns<2, 1, 8, 8>(plan, args);
    case 408: return by_columns<4, 1, 8, 16>(plan, args);
    case 416: return by_columns<4, 1, 16, 16>(plan, args);
    case 808: return by_columns<8, 1, 8, 32>(plan, args);
    case 816: return by_columns<8, 1, 16, 32>(plan, args);
    case 832: return by_columns<8, 1, 32, 32>(plan, args);
    case 1616: return by_columns<8, 2, 16, 32>(plan, args);
    case 1632: return by_columns<8, 2, 32, 32>(plan, args);
    case 3216: return by_columns<16, 2, 16, 32>(plan, args);
    default: return by_columns<16, 2, 32, 32>(plan, args);
    }
}

/* Room for `count` of size `each` at the end of the memory; where it is. */
size_t reserve(share_plan *s, int64_t count, size_t each)
{
    const size_t at = s->bytes;

    s->bytes += ((size_t)count * each + 255) / 256 * 256;
    return at;
}

sps_status send(const share_plan *s, size_t at, const void *from,
                int64_t count, size_t each)
{
    sps_context *ctx = s->super.ctx;

    if (count == 0) return SPS_OK;
    return ctx->backend->upload(ctx, s->memory + at, from,
                                (size_t)count * each);
}

/* All arrays in one piece of memory, sent there; nobody has arrived. */
sps_status place(share_plan *s, const sps_shares *h)
{
    sps_context *ctx = s->super.ctx;
    const int64_t flags = h->spans * s->strips, rows = h->empty ? h->rows : 0;
    void *memory;

    s->shares_at = reserve(s, h->count, sizeof *h->share);
    s->spans_at = reserve(s, h->spans, sizeof *h->span);
    s->rows_at = reserve(s, rows, sizeof *h->row);
    s->empty_at = reserve(s, h->empty, sizeof *h->no_entries);
    s->parts_at = reserve(s, h->parts * s->ld, sizeof(double));
    s->arrived_at = reserve(s, flags, sizeof(unsigned));
    if (s->bytes == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, s->bytes, &memory));
    s->memory = (char *)memory;
    s->super.bytes += s->bytes;
    SPS_TRY_RETURN(send(s, s->shares_at, h->share, h->count,
                        sizeof *h->share));
    SPS_TRY_RETURN(send(s, s->spans_at, h->span, h->spans, sizeof *h->span));
    SPS_TRY_RETURN(send(s, s->rows_at, h->row, rows, sizeof *h->row));
    SPS_TRY_RETURN(send(s, s->empty_at, h->no_entries, h->empty,
                        sizeof *h->no_entries));
    if (flags > 0)
        SPS_CUDA(ctx, cudaMemsetAsync(s->memory + s->arrived_at, 0,
                                      (size_t)flags * sizeof(unsigned),
                                      spsi_cuda_state(ctx)->stream));
    return SPS_OK;
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    share_plan *s;
    sps_shares h;
    sps_status st;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmm_share, p,
                                 sizeof(share_plan), plan_p));
    s = (share_plan *)*plan_p;
    s->use = shape_of(p);
    s->use.size = tally(ctx, p, s->use, &h);
    s->strips = (int)ceil_div(p->k, 2 * s->use.lanes * s->use.pairs);
    s->ld = (int64_t)s->strips * 2 * s->use.lanes * s->use.pairs;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_shares_fill(ctx, p->A->nrow, p->A->rowptr, &h));
    s->count = h;
    st = place(s, &h);
    spsi_shares_free(ctx, &h);
    snprintf(s->super.detail, sizeof s->super.detail,
             "%lld shares of %d entries", (long long)s->count.count,
             s->use.size);
    return st;
}

void destroy(sps_plan *plan)
{
    share_plan *s = (share_plan *)plan;

    if (s->memory) spsi_cuda_release(plan->ctx, s->memory, s->bytes);
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "made for fewer than 2^31 entries and rows";
    if (p->f->nnz >= INT32_MAX || p->f->nrow >= INT32_MAX) return false;
    *why_not = "planned on the host, which pays up to 2^22 entries";
    return p->pinned || p->f->nnz <= 1 << 22;
}

/* Seconds to deal out on the host and to send it there, measured for 8000 to
 * 125000 rows: 20 to 100 products.  A bid counts a thousandth, a solve or two
 * being of so many. */
constexpr double uses = 1000;

double planning(const sps_features *f)
{
    return 1.5e-4 + 6e-9 * (double)f->nrow + 5e-10 * (double)f->nnz;
}

/* Memory, L2 and instructions one after another: with one wave of short shares
 * little hides little.  What the caches hold from run to run streams faster.
 * Constants fitted to the small matrices of doc/benchmarks.md at 16 and 64
 * columns and three large systems: within 13 % (rms).  Strips that columns do
 * not fill walk with tests. */
double cost(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double nnz = (double)f->nnz, stream = spsi_spmm_floor(p);
    const double row = spsi_sectors(moved_row(p)), beta = p->bandwidth;
    const double out = fmin(fmax(stream / 40e6 - 1, 0), 1);
    const shape s = shape_of(p);
    const int width = 2 * s.lanes * s.pairs;
    const double walked = (double)(ceil_div(p->k, width) * width);

    return planning(f) / uses + 2.3e-6 + stream / beta * (0.27 + 0.23 * out) +
           0.28 * nnz * row * f->distinct64 /
               spsi_gather_rate(beta, footprint_of(p, row), row) +
           nnz * (3e-12 + 5e-13 * walked) * (p->k % width ? 1.5 : 1) +
           (p->k == 1 ? 6e-6 : 0);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_share) = {
    .name = "spmm.share",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .fuses = true,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = NULL,
    .destroy = destroy,
};
