/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_share.cu - the host's share of a streamed product: it multiplies the
 * last panels, which are in its memory anyway, while the others pass over the
 * link (the split of ApSpGEMM between CPU and GPU).
 *
 * Let B be the bytes of the streamed panels, X and Y the bytes of the rows that
 * are copied to and from the host, L the rate of the link, and H that of the
 * host.  For a fraction f of the panels both sides end at the same time if (1 -
 * f) B / L + f Y / L = X / L + f B / H.  Nothing is gained if Y is not smaller
 * than B.  H is estimated for the first product with a number of columns from
 * the number of threads, and corrected by the time of the first four products.
 * The model leaves out that both sides read the same memory: two products with
 * the share and two without it are timed, and if those without it are as fast,
 * the share is 0.  Then it is fixed.  A sum has the same bits on either side,
 * so the split changes no result.
 *
 * The product returns when the host has finished its share.  Matrices with long
 * rows have no share, nor does a product that is recorded. */
#include "core/team.h"
#include "core/timer.h"
#include "cpu/stream/panel_sums.h"
#include "cuda/sparse/sparse.cuh"
#include "cuda/stream/stream.cuh"

#include <unistd.h>

namespace {

constexpr int64_t least_panels = 16;    /* smallest number of streamed panels
                                           with which the host gets a share */
constexpr int corrections = 4, trials = 2, pieces = 8;
constexpr double thread_rate = 5e9, host_rate = 80e9;

/* Returns the first panel of the host in the present pass. */
const sps_stream_panel *first_of(const sps_stream_plan *plan, int64_t panels)
{
    return plan->panel + plan->panels - panels;
}

/* Rows first .. first + count - 1 of X or Y. */
struct range {
    int64_t first, count;
};

range rows_of(const sps_stream_plan *plan, int64_t panels)
{
    const int64_t first = first_of(plan, panels)->is.row;

    return {first, plan->super.A->nrow - first};
}

range columns_of(const sps_stream_plan *plan, int64_t panels)
{
    int64_t least = INT32_MAX, last = -1;

    for (int64_t i = plan->panels - panels; i < plan->panels; i++) {
        const sps_panel *p = &plan->panel[i].is;

        if (p->last_column < 0) continue;
        least = p->first_column < least ? p->first_column : least;
        last = p->last_column > last ? p->last_column : last;
    }
    return last < 0 ? range{0, 0} : range{least, last - least + 1};
}

int class_of(int k)
{
    int c = 0;

    while (1 << c < k) c++;
    return c;
}

/* Returns whether the number of the host's panels for blocks of k columns is
 * chosen by the measured rates. */
bool chosen(const sps_stream_plan *plan, int k)
{
    return plan->share.most > 0 && k <= plan->share.columns &&
           !plan->recorded && plan->test.share == 0;
}

/* Returns the largest number of columns for which the rows of Y have less than
 * half of the bytes of a panel. */
int64_t columns_worth(const sps_stream_plan *plan)
{
    const double row = (double)plan->super.streamed /
                       (double)rows_of(plan, plan->panels -
                                             plan->resident).count;
    const int64_t k = (int64_t)(row / 16);

    return k < plan->super.k ? k : plan->super.k;
}

/* Returns the number of panels with which host and device end at the same time;
 * rate: bytes of panels that the host multiplies per second. */
int64_t balanced(const sps_stream_plan *plan, double rate, int k)
{
    const int64_t streamed = plan->panels - plan->resident;
    const double link = plan->super.ctx->machine.link;
    const double number = 8.0 * k, all = (double)plan->super.streamed;
    const double x = number * (double)columns_of(plan,
                                                 plan->share.most).count;
    const double y = number * (double)rows_of(plan, streamed).count;
    const double f = (all - x) / link / (all / link + all / rate - y / link);
    const int64_t panels = (int64_t)(f * (double)streamed);

    if (panels < 0) return 0;
    return panels < plan->share.most ? panels : plan->share.most;
}

/* --------------------------------------------------------------- the host */

struct work {
    const sps_stream_plan *plan;
    const sps_stream_panel *panel;
    sps_panel_sums sums;
    /* step(data, &more) queues the next step of the pass; more: whether there
     * are further steps; st: status of the last.  Only the calling thread uses
     * these members, and the context. */
    sps_stream_step *step;
    void *data;
    bool more;
    sps_status st;
};

void queue_one(work *w)
{
    w->st = w->step(w->data, &w->more);
    w->more = w->more && w->st == SPS_OK;
}

/* Computes the products of work items from .. to - 1.  Each panel of the host
 * is divided into `pieces` items, numbered panel by panel. */
void add_up(void *data, int64_t from, int64_t to)
{
    work *w = (work *)data;

    while (spsi_team_self() == 0 && w->more) queue_one(w);
    for (int64_t i = from; i < to; i++) {
        const sps_stream_panel *p = w->panel + i / pieces;
        const int64_t all = p->is.windows, at = i % pieces;
        sps_panel_sums t = w->sums;

        t.image = p->at;
        t.panel = &p->is;
        spsi_cpu_panel_sums(&t, (int32_t)(all * at / pieces),
                            (int32_t)(all * (at + 1) / pieces));
    }
}

double bytes_of(const sps_stream_plan *plan)
{
    double bytes = 0;

    for (int64_t i = plan->panels - plan->shared; i < plan->panels; i++)
        bytes += (double)plan->panel[i].is.bytes;
    return bytes;
}

void correct(sps_stream_plan *plan, int k, double seconds)
{
    sps_stream_split *s = &plan->share.by[class_of(k)];

    if (plan->test.share || s->products >= corrections) return;
    s->rate = bytes_of(plan) / seconds;
    s->panels = balanced(plan, s->rate, k);
    s->products++;
}

/* --------------------------------------------------------------- the device */

__global__ void __launch_bounds__(256)
place_kernel(blocks<double> b, const double *__restrict__ sum, int64_t first,
             int64_t count)
{
    const int64_t t = (int64_t)blockIdx.x * 256 + threadIdx.x;
    const int64_t i = first + t / b.k, c = t % b.k;

    b.resolve();
    if (t >= count) return;
    double *y = b.y + i * b.ldy + c;

    *y = b.join(sum[t], y, i);
}

sps_status place(sps_stream_plan *plan, const sps_spmm_args *args, range rows)
{
    sps_context *ctx = plan->super.ctx;
    const int64_t count = rows.count * args->Y->k;

    SPS_TRY_RETURN(run_items(ctx, count, place_kernel, blocks_of<double>(args),
                             plan->share.sum, rows.first, count));
    ctx->memory.to_device += count * (int64_t)sizeof(double);
    return SPS_OK;
}

sps_status take(sps_stream_plan *plan)
{
    sps_context *ctx = plan->super.ctx;
    sps_stream_share *s = &plan->share;
    const size_t row = (size_t)s->columns * sizeof(double);

    s->x_bytes = (size_t)columns_of(plan, s->most).count * row;
    s->sum_bytes = (size_t)rows_of(plan, s->most).count * row;
    SPS_TRY_RETURN(ctx->backend->share(ctx, s->x_bytes, (void **)&s->x));
    SPS_TRY_RETURN(ctx->backend->share(ctx, s->sum_bytes, (void **)&s->sum));
    if (s->down) return SPS_OK;
    SPS_CUDA(ctx, cudaStreamCreateWithFlags((cudaStream_t *)&s->down,
                                            cudaStreamNonBlocking));
    SPS_CUDA(ctx, cudaEventCreateWithFlags((cudaEvent_t *)&s->asked,
                                           cudaEventDisableTiming));
    SPS_CUDA(ctx, cudaEventCreateWithFlags((cudaEvent_t *)&s->there,
                                           cudaEventDisableTiming));
    SPS_CUDA(ctx, cudaEventCreate((cudaEvent_t *)&s->started));
    SPS_CUDA(ctx, cudaEventCreate((cudaEvent_t *)&s->ended));
    return SPS_OK;
}

/* Queues steps of the pass until the rows of X that the host needs have
 * arrived. */
sps_status await_rows(const sps_stream_plan *plan, work *w)
{
    const cudaEvent_t there = (cudaEvent_t)plan->share.there;

    if (plan->test.omit & SPS_STREAM_THERE) return SPS_OK;
    while (w->more && cudaEventQuery(there) == cudaErrorNotReady) {
        cudaGetLastError();              /* clears the "not ready" of the
                                            query */
        queue_one(w);
    }
    if (w->st == SPS_OK)
        SPS_CUDA(plan->super.ctx, cudaEventSynchronize(there));
    return w->st;
}

/* Reads the time of the last timed pass, and gives the host no panels if passes
 * without its share were as fast. */
sps_status settle(sps_stream_plan *plan)
{
    sps_context *ctx = plan->super.ctx;
    sps_stream_share *s = &plan->share;
    sps_stream_split *b = s->timed;
    float ms, *best;

    s->timed = NULL;
    if (!b || plan->recorded) return SPS_OK;
    SPS_CUDA(ctx, cudaEventSynchronize((cudaEvent_t)s->ended));
    SPS_CUDA(ctx, cudaEventElapsedTime(&ms, (cudaEvent_t)s->started,
                                       (cudaEvent_t)s->ended));
    best = b->products++ < corrections + trials ? &b->with : &b->alone;
    *best = fminf(*best, ms);
    if (b->products == corrections + 2 * trials && b->with >= b->alone)
        b->panels = 0;
    return SPS_OK;
}

} // namespace

sps_status spsi_stream_share_open(sps_stream_plan *plan)
{
    sps_context *ctx = plan->super.ctx;
    sps_stream_share *s = &plan->share;
    const int64_t streamed = plan->panels - plan->resident;
    const double guess = fmin(host_rate, thread_rate * ctx->threads);
    sps_status st;

    if (plan->super.block != SPS_F64 || plan->longs.rows > 0 ||
        streamed < least_panels)
        return SPS_OK;
    s->columns = columns_worth(plan);
    if (s->columns == 0) return SPS_OK;
    s->most = 7 * streamed / 8;
    st = take(plan);
    if (st != SPS_OK) spsi_stream_share_close(plan);
    for (int c = 0; c < SPS_STREAM_CLASSES && s->most > 0; c++)
        s->by[c] = {balanced(plan, guess / (1 + 0.1 * (1 << c)), 1 << c), 0,
                    guess, INFINITY, INFINITY};
    /* If memory for the host's share is lacking, the device computes all of the
     * product. */
    return st == SPS_ENOMEM ? SPS_OK : st;
}

/* Frees the memory of the host's share, but keeps its stream, which is used
 * again for new values. */
void spsi_stream_share_close(sps_stream_plan *plan)
{
    sps_context *ctx = plan->super.ctx;
    sps_stream_share *s = &plan->share;

    ctx->backend->unshare(ctx, s->x, s->x_bytes);
    ctx->backend->unshare(ctx, s->sum, s->sum_bytes);
    s->x = s->sum = NULL;
    s->timed = NULL;
    s->most = 0;
}

int64_t spsi_stream_shared(const sps_stream_plan *plan,
                           const sps_spmm_args *args)
{
    const sps_stream_share *s = &plan->share;
    const int k = args->Y->k;

    if (s->most == 0 || k > s->columns || plan->recorded ||
        plan->test.share < 0)
        return 0;
    if (plan->test.share > 0)
        return plan->test.share < s->most ? plan->test.share : s->most;
    const sps_stream_split *b = &s->by[class_of(k)];
    const int judged = b->products - corrections;

    return judged >= trials && judged < 2 * trials ? 0 : b->panels;
}

sps_status spsi_stream_judge_begin(sps_stream_plan *plan,
                                   const sps_spmm_args *args)
{
    sps_context *ctx = plan->super.ctx;
    sps_stream_share *s = &plan->share;
    sps_stream_split *b = &s->by[class_of(args->Y->k)];

    SPS_TRY_RETURN(settle(plan));
    if (!chosen(plan, args->Y->k) || b->panels == 0 ||
        b->products < corrections || b->products >= corrections + 2 * trials)
        return SPS_OK;
    SPS_CUDA(ctx, cudaEventRecord((cudaEvent_t)s->started,
                                  spsi_cuda_state(ctx)->stream));
    s->timed = b;
    return SPS_OK;
}

sps_status spsi_stream_judge_end(const sps_stream_plan *plan)
{
    sps_context *ctx = plan->super.ctx;

    if (!plan->share.timed) return SPS_OK;
    SPS_CUDA(ctx, cudaEventRecord((cudaEvent_t)plan->share.ended,
                                  spsi_cuda_state(ctx)->stream));
    return SPS_OK;
}

sps_status spsi_stream_share_ask(sps_stream_plan *plan,
                                 const sps_spmm_args *args)
{
    sps_context *ctx = plan->super.ctx;
    sps_stream_share *s = &plan->share;
    const cudaStream_t down = (cudaStream_t)s->down;
    const range c = columns_of(plan, plan->shared);
    const size_t row = (size_t)args->X->k * sizeof(double);
    const double *x = (const double *)args->X->data + c.first * args->X->ld;

    SPS_CUDA(ctx, cudaEventRecord((cudaEvent_t)s->asked,
                                  spsi_cuda_state(ctx)->stream));
    if (!(plan->test.omit & SPS_STREAM_ASKED))
        SPS_CUDA(ctx, cudaStreamWaitEvent(down, (cudaEvent_t)s->asked, 0));
    SPS_TRY_RETURN(spsi_stream_late(plan, SPS_STREAM_DOWN, down));
    if (c.count > 0)
        SPS_TRY_RETURN(spsi_stream_copied(
            plan, (size_t)c.count * row,
            spsi_stream_fails(plan)
                ? cudaErrorInvalidValue
                : cudaMemcpy2DAsync(s->x, row, x, (size_t)args->X->ld *
                                    sizeof(double), row, (size_t)c.count,
                                    cudaMemcpyDeviceToHost, down)));
    ctx->memory.to_host += c.count * (int64_t)row;
    SPS_CUDA(ctx, cudaEventRecord((cudaEvent_t)s->there, down));
    return SPS_OK;
}

sps_status spsi_stream_share_sum(sps_stream_plan *plan,
                                 const sps_spmm_args *args,
                                 sps_stream_step *step, void *data)
{
    sps_context *ctx = plan->super.ctx;
    const int k = args->Y->k;
    const range rows = rows_of(plan, plan->shared);
    work w = {plan, first_of(plan, plan->shared),
                    {NULL, NULL, plan->share.x,
                     columns_of(plan, plan->shared).first, rows.first, k,
                     plan->share.sum}, step, data, true, SPS_OK};
    double start;

    SPS_TRY_RETURN(await_rows(plan, &w));
    if (plan->test.late & SPS_STREAM_HOST) usleep(2000);
    start = spsi_now();
    spsi_team_run(ctx, plan->shared * pieces,
                  (int64_t)(0.2 * bytes_of(plan) * (1 + 0.25 * k)), add_up,
                  &w);
    while (w.more) queue_one(&w);
    SPS_TRY_RETURN(w.st);
    correct(plan, k, spsi_now() - start);
    return place(plan, args, rows);
}
