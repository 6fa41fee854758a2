/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_warp.cu - Y = alpha A X + beta Y, a team of warps for each row: for
 * matrices so small that a row for a few lanes would leave most of the GPU
 * idle.
 *
 * L lanes hold the columns of a strip, C pairs each; the 32 / L groups of a
 * warp, and the warps of a team, take the entries of the row in turn, four at
 * a time.  Groups add up by a tree of shuffles, warps in order through shared
 * memory, so bits depend on the matrix and the width alone.  Rows beyond
 * `beyond` entries have a block of threads of their own, whatever the size of
 * the teams.
 *
 * Bytes: A once for each strip of 64 columns, Y once, a row of X for each
 * entry out of L2: nothing is done for L1, which is why large matrices are
 * served better by others. */
#include "sparse.cuh"

#include <stdio.h>

extern "C" const sps_kernel spsi_kernel_spmm_warp;

namespace {

constexpr int warps = 16, threads = 32 * warps, unroll = 4;
constexpr int64_t beyond = 512;

struct warp_plan {
    sps_plan super;
    int team;               /* warps of a row: 1, 2, 4, 8 or 16 */
    int64_t long_rows;
    int32_t *long_row;      /* on the device */
    size_t bytes;
};

struct teams {
    int team;
    int64_t long_rows;
    const int32_t *__restrict__ long_row;
};

/* The row of this warp, -1: none; *size: the team that shares it.  The first
 * blocks take a long row each. */
template <class I, class V>
__device__ __forceinline__ int64_t row_of(const matrix<I, V> &A,
                                          const teams &t, int *size)
{
    int64_t block = blockIdx.x, i;

    *size = warps;
    if (block < t.long_rows) return t.long_row[block];
    *size = t.team;
    i = (block - t.long_rows) * (warps / t.team) +
        (int)threadIdx.x / 32 / t.team;
    if (i >= A.nrow || A.rowptr[i + 1] - A.rowptr[i] > beyond) return -1;
    return i;
}

/* What this group of lanes adds of entries p .. q - 1; first: the number of
 * the group in the team, all: groups there. */
template <int L, int C, bool PAIRED, class I, class V>
__device__ __forceinline__ void add_entries(const matrix<I, V> &A,
                                            const double *x, int64_t ldx,
                                            int left, int64_t p, int64_t q,
                                            int first, int all, double2 *sum)
{
    for (int64_t base = p; base < q; base += (int64_t)unroll * all) {
        int32_t col[unroll];
        double val[unroll];
        double2 v[unroll][C];

#pragma unroll
        for (int u = 0; u < unroll; u++) {
            int64_t e = base + first + (int64_t)u * all;

            col[u] = e < q ? __ldcs(A.col + e) : -1;
            val[u] = e < q ? (double)__ldcs(A.val + e) : 0.0;
        }
#pragma unroll
        for (int u = 0; u < unroll; u++)
#pragma unroll
            for (int w = 0; w < C; w++)
                v[u][w] = fetch_pair<PAIRED>(x + col[u] * ldx + 2 * L * w,
                                             col[u] >= 0 ? left - 2 * L * w
                                                         : 0);
#pragma unroll
        for (int u = 0; u < unroll; u++)
#pragma unroll
            for (int w = 0; w < C; w++) {
                sum[w].x = fma(val[u], v[u][w].x, sum[w].x);
                sum[w].y = fma(val[u], v[u][w].y, sum[w].y);
            }
    }
}

template <int L, int C>
__device__ __forceinline__ void add_groups(double2 *sum)
{
#pragma unroll
    for (int far = L; far < 32; far *= 2)
#pragma unroll
        for (int w = 0; w < C; w++) {
            sum[w].x += __shfl_xor_sync(all_lanes, sum[w].x, far);
            sum[w].y += __shfl_xor_sync(all_lanes, sum[w].y, far);
        }
}

template <int L, int C, bool PAIRED, class I, class V>
__global__ void __launch_bounds__(threads)
warp_kernel(matrix<I, V> A, blocks<double> b, teams t)
{
    __shared__ double2 part[warps][L * C];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, size;
    int64_t i = row_of(A, t, &size);
    int c = (int)blockIdx.y * 2 * L * C + 2 * (lane % L), left = b.k - c;
    int member = warp % size, groups = 32 / L;
    double2 sum[C] = {};

    b.resolve();
    if (i >= 0)
        add_entries<L, C, PAIRED>(A, b.x + c, b.ldx, left, A.rowptr[i],
                                  A.rowptr[i + 1], member * groups + lane / L,
                                  size * groups, sum);
    add_groups<L, C>(sum);
    if (size > 1) { /* the same for all of the block */
        if (lane < L)
#pragma unroll
            for (int w = 0; w < C; w++) part[warp][lane + L * w] = sum[w];
        __syncthreads();
        if (member > 0) return;
        for (int m = 1; m < size && lane < L; m++)
#pragma unroll
            for (int w = 0; w < C; w++) {
                sum[w].x += part[warp + m][lane + L * w].x;
                sum[w].y += part[warp + m][lane + L * w].y;
            }
    }
    if (i < 0 || lane >= L) return;
#pragma unroll
    for (int w = 0; w < C; w++) {
        double *y = b.y + i * b.ldy + c + 2 * L * w;
        int some = left - 2 * L * w;
        double2 old = make_double2(0.0, 0.0);

        if (b.beta != 0) old = load_pair<PAIRED>(y, some);
        store_pair<PAIRED>(y, some, make_double2(b.join(sum[w].x, &old.x),
                                                 b.join(sum[w].y, &old.y)));
    }
}

template <int L, int C>
sps_status launch(const sps_plan *plan, const sps_spmm_args *args)
{
    const warp_plan *w = (const warp_plan *)plan;
    sps_context *ctx = plan->ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    bool pairs = paired(args->X) && paired(args->Y);
    teams t = { w->team, w->long_rows, w->long_row };
    blocks<double> b = blocks_of(args);
    dim3 grid((unsigned)(w->long_rows +
                         ceil_div(plan->A->nrow, warps / w->team)),
              (unsigned)ceil_div(b.k, 2 * L * C));

    return with_types(plan->A, [&](auto A) -> sps_status {
        if (pairs)
            warp_kernel<L, C, true><<<grid, threads, 0, stream>>>(A, b, t);
        else
            warp_kernel<L, C, false><<<grid, threads, 0, stream>>>(A, b, t);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    int k = args->Y->k;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    if (k <= 8) return launch<4, 1>(plan, args);
    if (k <= 16) return launch<8, 1>(plan, args);
    if (k <= 32) return launch<16, 1>(plan, args);
    return launch<16, 2>(plan, args);
}

/* Teams so large that the warps fill the GPU, as far as rows have entries for
 * so many. */
int team_of(const sps_problem *p)
{
    const double full = 132 * 40; /* about what an H200 runs at a time */
    const int groups = p->k <= 8 ? 8 : p->k <= 16 ? 4 : 2;
    int team = 1;

    while (team < warps && (double)p->f->nrow * team < full &&
           p->f->mean_length > team * groups * unroll)
        team *= 2;
    return team;
}

sps_status take_long_rows(sps_context *ctx, const sps_problem *p,
                          warp_plan *w)
{
    const int64_t *rowptr = p->A->rowptr;
    int32_t *host;
    void *room;
    int64_t n = 0;
    sps_status st;

    for (int64_t i = 0; i < p->A->nrow; i++)
        n += rowptr[i + 1] - rowptr[i] > beyond;
    if (n == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_new(ctx, (size_t)n * sizeof *host, &room));
    host = (int32_t *)room;
    for (int64_t i = 0, at = 0; i < p->A->nrow; i++)
        if (rowptr[i + 1] - rowptr[i] > beyond) host[at++] = (int32_t)i;
    w->bytes = (size_t)n * sizeof *host;
    st = spsi_cuda_alloc(ctx, w->bytes, &room);
    if (st == SPS_OK) {
        w->long_row = (int32_t *)room;
        w->long_rows = n;
        st = ctx->backend->upload(ctx, room, host, w->bytes);
    }
    spsi_free(ctx, host);
    return st;
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    warp_plan *w;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmm_warp, p,
                                 sizeof(warp_plan), plan_p));
    w = (warp_plan *)*plan_p;
    w->team = team_of(p);
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (p->f->max_length > beyond)
        SPS_TRY_RETURN(take_long_rows(ctx, p, w));
    w->super.bytes = w->bytes;
    snprintf(w->super.detail, sizeof w->super.detail, "%d warp%s a row",
             w->team, w->team > 1 ? "s" : "");
    return SPS_OK;
}

void destroy(sps_plan *plan)
{
    warp_plan *w = (warp_plan *)plan;

    if (w->long_row) spsi_cuda_release(plan->ctx, w->long_row, w->bytes);
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "made for fewer than 2^20 rows";
    return p->A->nrow < 1 << 20;
}

/* Every entry asks L2; beside that the rows themselves, a wave of teams after
 * the other, and the steps of the longest row that one team walks.  Constants
 * fitted to the small matrices of doc/benchmarks.md. */
double cost(const sps_problem *p)
{
    const int groups = p->k <= 8 ? 8 : p->k <= 16 ? 4 : 2;
    const double longest = (double)p->f->max_length;
    const int team = team_of(p);
    const double share = longest > beyond ? warps : team;
    const double waves = (double)p->f->nrow * team / (132 * 48);
    const double walked = longest > beyond ? (double)beyond : longest;

    return predicted(p, {1, 1, 1.5e-12, 0.1, 1, 0, 0}) +
           1e-6 * longest / (share * groups * unroll) + 6e-7 * waves +
           2e-7 * walked / (team * groups * unroll) +
           (p->k == 1 ? 6e-6 : 0);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_warp) = {
    .name = "spmm.warp",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = NULL,
    .destroy = destroy,
};
