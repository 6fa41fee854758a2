/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_share.cu - the host's share of a streamed product: it multiplies the
 * last panels, which are in its memory anyway, while the others pass over the
 * link (the split of ApSpGEMM between CPU and GPU).
 *
 * Let B be the bytes of the streamed panels, L and H the rates at which device
 * and host multiply them, and w the time until the host has its rows of X.  For
 * a fraction f of the panels both sides end at the same time if
 * (1 - f) B / L = w + f B / H; then the device reads the host's rows of Y over
 * the link.  Nothing is gained if Y is not smaller than B.  For the first
 * product with a number of columns L is the rate of the link, and H is
 * estimated from the number of threads; then all three are measured in four
 * products, while both sides read the same memory.  The host's time ends with
 * its last sum, not when its calling thread has queued the steps of the device,
 * which takes as long as the device does.  Two products with the share and two
 * without it are timed, and if those without it are as fast, the share is 0.
 * Then it is fixed.  A sum has the same bits on either side, so the split
 * changes no result.
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
 * rate, link: bytes of panels per second that they multiply; wait: seconds
 * after which the host begins. */
int64_t balanced(const sps_stream_plan *plan, double rate, double link,
                 double wait)
{
    const int64_t streamed = plan->panels - plan->resident;
    const double all = (double)plan->super.streamed;
    const double f = (all / link - wait) / (all / link + all / rate);
    const int64_t panels = (int64_t)(f * (double)streamed);

    if (panels < 0) return 0;
    return panels < plan->share.most ? panels : plan->share.most;
}

/* The split before anything is measured, for k columns. */
sps_stream_split estimated(const sps_stream_plan *plan, int k)
{
    const sps_context *ctx = plan->super.ctx;
    const double rate = fmin(host_rate, thread_rate * ctx->threads) /
                        (1 + 0.1 * k);
    const double link = ctx->machine.link;
    const double x = 8.0 * k * (double)columns_of(plan,
                                                  plan->share.most).count;

    return {balanced(plan, rate, link, x / link), 0, rate, link, INFINITY,
            INFINITY};
}

/* --------------------------------------------------------------- the host */

struct work {
    const sps_stream_plan *plan;
    const sps_stream_panel *panel;
    sps_panel_sums sums;
    int64_t items, next;       /* number of work items, and of those claimed */
    /* Nanoseconds since `start`: sum over all threads of the time in which they
     * summed; negative of the time of the last sum. */
    double start;
    int64_t busy, last;
    /* step(data, &more) queues the next step of the pass; more: whether there
     * are further steps; st: status of the last.  Only the calling thread uses
     * these members, and the context. */
    sps_stream_step *step;
    void *data;
    bool more, queued;
    sps_status st;
};

void queue_one(work *w)
{
    w->st = w->step(w->data, &w->more);
    w->more = w->more && w->st == SPS_OK;
}

sps_status mark(const sps_stream_plan *plan, void *event)
{
    sps_context *ctx = plan->super.ctx;

    SPS_CUDA(ctx, cudaEventRecord((cudaEvent_t)event,
                                  spsi_cuda_state(ctx)->stream));
    return SPS_OK;
}

void queue_rest(work *w)
{
    sps_stream_plan *plan = (sps_stream_plan *)w->plan;

    while (w->more) queue_one(w);
    if (w->queued) return;
    w->queued = true;
    plan->share.host.queued = spsi_now() - w->start;
    if (w->st == SPS_OK) w->st = mark(plan, plan->share.streamed);
}

/* Computes the sums of item i.  Each panel of the host is divided into `pieces`
 * items, numbered panel by panel. */
void sum_item(const work *w, int64_t i)
{
    const sps_stream_panel *p = w->panel + i / pieces;
    const int64_t all = p->is.windows, at = i % pieces;
    sps_panel_sums t = w->sums;

    t.image = p->at;
    t.panel = &p->is;
    spsi_cpu_panel_sums(&t, (int32_t)(all * at / pieces),
                        (int32_t)(all * (at + 1) / pieces));
}

/* The part of one thread: items one by one, so that all threads end at the same
 * time, whenever they begin.  The calling thread begins when it has queued all
 * steps. */
void take_part(void *data, int64_t, int64_t)
{
    work *w = (work *)data;
    double begin, end;

    if (spsi_team_self() == 0) queue_rest(w);
    begin = end = spsi_now();
    for (int64_t i; (i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) <
                    w->items; end = spsi_now())
        sum_item(w, i);
    spsi_team_add(&w->busy, (int64_t)(1e9 * (end - begin)));
    spsi_team_least(&w->last, (int64_t)(1e9 * (w->start - end)) *
                                  (end > begin));
}

double bytes_of(const sps_stream_plan *plan)
{
    double bytes = 0;

    for (int64_t i = plan->panels - plan->shared; i < plan->panels; i++)
        bytes += (double)plan->panel[i].is.bytes;
    return bytes;
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
    SPS_CUDA(ctx, cudaEventCreate((cudaEvent_t *)&s->there));
    SPS_CUDA(ctx, cudaEventCreate((cudaEvent_t *)&s->started));
    SPS_CUDA(ctx, cudaEventCreate((cudaEvent_t *)&s->streamed));
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

/* Sets the number of panels by the time of the last pass. */
sps_status correct(sps_stream_plan *plan, sps_stream_split *b)
{
    const sps_stream_share *s = &plan->share;
    const sps_stream_host *h = &s->host;
    sps_context *ctx = plan->super.ctx;
    float ms, wait;

    SPS_CUDA(ctx, cudaEventElapsedTime(&wait, (cudaEvent_t)s->started,
                                       (cudaEvent_t)s->there));
    SPS_CUDA(ctx, cudaEventElapsedTime(&ms, (cudaEvent_t)s->started,
                                       (cudaEvent_t)s->streamed));
    b->products++;
    if (!(h->summed > 0 && ms > 0)) return SPS_OK;
    b->rate = h->bytes / h->summed;
    b->link = 1e3 * ((double)plan->super.streamed - h->bytes) / ms;
    b->panels = balanced(plan, b->rate, b->link, 1e-3 * wait);
    if (b->panels == 0) b->panels = 1;   /* whether it pays is judged later */
    return SPS_OK;
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
    if (b->products < corrections) return correct(plan, b);
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
    sps_stream_share *s = &plan->share;
    const int64_t streamed = plan->panels - plan->resident;
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
        s->by[c] = estimated(plan, 1 << c);
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

double spsi_stream_share_left(const sps_stream_plan *plan, int k)
{
    const int64_t streamed = plan->panels - plan->resident;

    if (plan->share.most == 0 || k > plan->share.columns) return 1;
    return 1 - (double)estimated(plan, k).panels / (double)streamed;
}

sps_status spsi_stream_judge_begin(sps_stream_plan *plan,
                                   const sps_spmm_args *args)
{
    sps_stream_share *s = &plan->share;
    sps_stream_split *b = &s->by[class_of(args->Y->k)];

    SPS_TRY_RETURN(settle(plan));
    if (!chosen(plan, args->Y->k)) return SPS_OK;
    if (b->panels > 0 && b->products < corrections + 2 * trials) s->timed = b;
    return mark(plan, s->started);
}

sps_status spsi_stream_judge_end(const sps_stream_plan *plan,
                                 const sps_spmm_args *args)
{
    if (!chosen(plan, args->Y->k)) return SPS_OK;
    return mark(plan, plan->share.ended);
}

namespace {

/* Queues the copy of rows of X.  Rows without gaps are one piece: initcheck
 * takes minutes for millions of rows. */
cudaError_t copy_rows(double *to, const double *from, size_t ld, size_t row,
                      size_t rows, cudaStream_t stream)
{
    if (ld == row)
        return cudaMemcpyAsync(to, from, rows * row, cudaMemcpyDeviceToHost,
                               stream);
    return cudaMemcpy2DAsync(to, row, from, ld, row, rows,
                             cudaMemcpyDeviceToHost, stream);
}

} // namespace

sps_status spsi_stream_share_ask(sps_stream_plan *plan,
                                 const sps_spmm_args *args)
{
    sps_context *ctx = plan->super.ctx;
    sps_stream_share *s = &plan->share;
    const cudaStream_t down = (cudaStream_t)s->down;
    const range c = columns_of(plan, plan->shared);
    const size_t row = (size_t)args->X->k * sizeof(double);
    const double *x = (const double *)args->X->data + c.first * args->X->ld;

    SPS_TRY_RETURN(mark(plan, s->asked));
    if (!(plan->test.omit & SPS_STREAM_ASKED))
        SPS_CUDA(ctx, cudaStreamWaitEvent(down, (cudaEvent_t)s->asked, 0));
    SPS_TRY_RETURN(spsi_stream_late(plan, SPS_STREAM_DOWN, down));
    if (c.count > 0)
        SPS_TRY_RETURN(spsi_stream_copied(
            plan, (size_t)c.count * row,
            spsi_stream_fails(plan)
                ? cudaErrorInvalidValue
                : copy_rows(s->x, x, (size_t)args->X->ld * sizeof(double), row,
                            (size_t)c.count, down)));
    ctx->memory.to_host += c.count * (int64_t)row;
    SPS_CUDA(ctx, cudaEventRecord((cudaEvent_t)s->there, down));
    return SPS_OK;
}

namespace {

/* Waits for the rows of X, and sums. */
sps_status sum(sps_stream_plan *plan, work *w)
{
    sps_context *ctx = plan->super.ctx;
    sps_stream_host *h = &plan->share.host;

    h->bytes = bytes_of(plan);
    SPS_TRY_RETURN(await_rows(plan, w));
    if (plan->test.late & SPS_STREAM_HOST) usleep(2000);
    w->start = spsi_now();
    spsi_team_run(ctx, ctx->threads,
                  (int64_t)(0.2 * h->bytes * (1 + 0.25 * w->sums.k)),
                  take_part, w);
    queue_rest(w);
    h->summed = -1e-9 * (double)w->last;
    h->busy = 1e-9 * (double)w->busy / ctx->threads;
    return w->st;
}

} // namespace

sps_status spsi_stream_share_sum(sps_stream_plan *plan,
                                 const sps_spmm_args *args,
                                 sps_stream_step *step, void *data)
{
    const range rows = rows_of(plan, plan->shared);
    work w = {};

    w.plan = plan;
    w.panel = first_of(plan, plan->shared);
    w.sums = {NULL, NULL, plan->share.x, columns_of(plan, plan->shared).first,
              rows.first, args->Y->k, plan->share.sum};
    w.items = plan->shared * pieces;
    w.step = step;
    w.data = data;
    w.more = true;
    SPS_TRY_RETURN(sum(plan, &w));
    return place(plan, args, rows);
}
