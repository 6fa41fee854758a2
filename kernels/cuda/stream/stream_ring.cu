/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_ring.cu - one product: panels are copied into the slots of the ring,
 * on a stream of their own, ahead of the computation, with the order of work in
 * stream_plan.h.
 *
 * Without a share of its own (stream_share.cu), the host queues everything and
 * waits for nothing.  Within a recording (a CUDA graph being captured), and in
 * all passes after one, the contents of the slots are unknown when a pass
 * begins, since the recording may have been replayed before it.  Then copies
 * begin when the stream of the context has reached this pass (event `begun`),
 * and all panels are copied. */
#include "cuda/base/device.cuh"
#include "cuda/stream/stream.cuh"

#include <stdio.h>

namespace {

constexpr long long spin_ns = 2000000;

/* Keeps a stream busy; for tests. */
__global__ void spin()
{
    long long begin, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < spin_ns);
}

struct pass {
    sps_stream_plan *plan;
    sps_context *ctx;
    cudaStream_t main, copies;
    bool fresh;                /* whether the contents of the slots are
                                  unknown */

    cudaEvent_t copied(int s) const { return (cudaEvent_t)plan->copied[s]; }
    cudaEvent_t released(int s) const { return (cudaEvent_t)plan->released[s]; }
};

sps_status await(const pass &w, unsigned which, cudaStream_t stream,
                 cudaEvent_t event)
{
    if (!(w.plan->test.omit & which))
        SPS_CUDA(w.ctx, cudaStreamWaitEvent(stream, event, 0));
    return SPS_OK;
}

const sps_stream_panel *panel_of(const pass &w, int64_t step)
{
    return &w.plan->panel[w.plan->resident +
                          spsi_ring_panel(&w.plan->ring, step)];
}

char *slot_of(const pass &w, int64_t step)
{
    return w.plan->slots.at +
           (size_t)spsi_ring_slot(&w.plan->ring, step) * w.plan->slots.each;
}

/* Queues the copy of the panel of a step into its slot.  The copy waits until
 * the product of the step before in this slot has released it, unless the pass
 * began with slots of unknown contents. */
sps_status send(const pass &w, int64_t step)
{
    const int s = spsi_ring_slot(&w.plan->ring, step);
    const sps_stream_panel *p = panel_of(w, step);

    if (!(w.fresh && step < w.plan->ring.slots))
        SPS_TRY_RETURN(await(w, SPS_STREAM_RELEASED, w.copies, w.released(s)));
    SPS_TRY_RETURN(spsi_stream_late(w.plan, SPS_STREAM_COPY, w.copies));
    SPS_TRY_RETURN(spsi_stream_copied(
        w.plan, p->is.bytes,
        spsi_stream_fails(w.plan)
            ? cudaErrorInvalidValue
            : cudaMemcpyAsync(slot_of(w, step), p->at, p->is.bytes,
                              cudaMemcpyHostToDevice, w.copies)));
    w.ctx->memory.to_device += (int64_t)p->is.bytes;
    SPS_CUDA(w.ctx, cudaEventRecord(w.copied(s), w.copies));
    return SPS_OK;
}

/* Determines whether this pass is being recorded: then the host multiplies no
 * panels in it, nor in any pass after it. */
sps_status look(const pass &w)
{
    cudaStreamCaptureStatus capture;

    SPS_CUDA(w.ctx, cudaStreamIsCapturing(w.main, &capture));
    if (capture != cudaStreamCaptureStatusNone) w.plan->recorded = true;
    return SPS_OK;
}

/* Removes the panels that the host multiplies in this pass from the ring. */
void split(sps_stream_plan *plan, int64_t shared)
{
    const int64_t streamed = plan->panels - plan->resident;

    plan->shared = shared;
    if (plan->ring.panels == streamed - plan->shared) return;
    spsi_ring_open(&plan->ring, streamed - plan->shared, plan->ring.slots);
}

/* Determines whether the pass begins with slots of unknown contents. */
sps_status begin(pass &w)
{
    sps_stream_plan *plan = w.plan;

    if (plan->recorded) spsi_ring_forget(&plan->ring);
    w.fresh = plan->ring.held == 0;
    if (!w.fresh) return SPS_OK;
    SPS_CUDA(w.ctx, cudaEventRecord((cudaEvent_t)plan->begun, w.main));
    return await(w, SPS_STREAM_BEGUN, w.copies, (cudaEvent_t)plan->begun);
}

/* Queues a product of the panel of a step; `first`: that of the pass, which
 * waits for the copy. */
sps_status use(const pass &w, int64_t step, bool first,
               const sps_spmm_args *args)
{
    const sps_ring *r = &w.plan->ring;
    const sps_stream_panel *p = panel_of(w, step);

    if (first && step >= r->held)
        SPS_TRY_RETURN(await(w, SPS_STREAM_COPIED, w.main,
                             w.copied(spsi_ring_slot(r, step))));
    SPS_TRY_RETURN(spsi_stream_late(w.plan, SPS_STREAM_PRODUCT, w.main));
    return spsi_stream_product(w.plan, &p->is, slot_of(w, step), args);
}

/* Queues the release of the slot of a step, and the next copy into it. */
sps_status release(const pass &w, int64_t step)
{
    const sps_ring *r = &w.plan->ring;
    const bool last = step + r->slots >= r->panels;

    SPS_TRY_RETURN(spsi_stream_late(w.plan, SPS_STREAM_RELEASE, w.main));
    if (w.plan->test.poison && !last)
        SPS_CUDA(w.ctx, cudaMemsetAsync(slot_of(w, step), 0xff,
                                        w.plan->slots.each, w.main));
    SPS_CUDA(w.ctx, cudaEventRecord(w.released(spsi_ring_slot(r, step)),
                                    w.main));
    return last ? SPS_OK : send(w, step + r->slots);
}

/* The steps of a pass that are not queued yet. */
struct filling {
    const pass *w;
    const sps_spmm_args *args;
    int64_t next;
};

sps_status queue_step(void *data, bool *more)
{
    filling *f = (filling *)data;
    const sps_ring *r = &f->w->plan->ring;
    const int64_t t = f->next++;

    *more = f->next < r->panels;
    if (t >= r->panels) return SPS_OK;
    SPS_TRY_RETURN(use(*f->w, t, true, f->args));
    return release(*f->w, t);
}

/* Queues all steps of the ring, while other threads of the host multiply its
 * panels. */
sps_status stream_panels(const pass &w, const sps_spmm_args *args)
{
    filling f = {&w, args, 0};
    bool more = true;

    if (w.plan->shared > 0)
        return spsi_stream_share_sum(w.plan, args, queue_step, &f);
    while (more) SPS_TRY_RETURN(queue_step(&f, &more));
    return SPS_OK;
}

/* Queues the copies into free slots. */
sps_status send_first(const pass &w)
{
    const sps_ring *r = &w.plan->ring;

    for (int64_t t = r->held; t < r->slots && t < r->panels; t++)
        SPS_TRY_RETURN(send(w, t));
    return SPS_OK;
}

sps_status run(pass &w, const sps_spmm_args *args)
{
    sps_stream_plan *plan = w.plan;

    SPS_TRY_RETURN(look(w));
    SPS_TRY_RETURN(spsi_stream_judge_begin(plan, args));
    split(plan, spsi_stream_shared(plan, args));
    if (plan->ring.panels > 0) SPS_TRY_RETURN(begin(w));
    if (plan->shared > 0) SPS_TRY_RETURN(spsi_stream_share_ask(plan, args));
    SPS_TRY_RETURN(send_first(w));
    SPS_TRY_RETURN(spsi_stream_residents(plan, args));
    SPS_TRY_RETURN(stream_panels(w, args));
    SPS_TRY_RETURN(spsi_stream_judge_end(plan, args));
    return spsi_stream_fold(plan, args);
}

pass pass_of(sps_stream_plan *plan)
{
    return {plan, plan->super.ctx, spsi_cuda_state(plan->super.ctx)->stream,
            (cudaStream_t)plan->copies, false};
}

sps_status end(sps_stream_plan *plan, sps_status st)
{
    if (plan->ring.panels == 0) return st;
    if (st == SPS_OK) spsi_ring_turn(&plan->ring);
    else spsi_ring_forget(&plan->ring);
    return st;
}

/* -------------------------------------------------------- several products */

/* Queues a product of the panel at a position of the pass: forward passes begin
 * with resident panels, backward passes end with them.  `first` and `last`: the
 * first and the last product of this pass. */
sps_status take(const pass &w, int64_t position, bool first, bool last,
                const sps_spmm_args *args)
{
    const sps_stream_plan *plan = w.plan;
    const sps_ring *r = &plan->ring;
    const int64_t i = r->backward ? plan->panels - 1 - position : position;
    const int64_t step = r->backward ? position : position - plan->resident;

    if (i < plan->resident)
        return spsi_stream_product(plan, &plan->panel[i].is,
                                   plan->panel[i].at, args);
    SPS_TRY_RETURN(use(w, step, first, args));
    return last ? release(w, step) : SPS_OK;
}

sps_status run_wave(pass &w, const sps_spmm_args *args, int count)
{
    sps_stream_plan *plan = w.plan;
    sps_wave v;

    SPS_TRY_RETURN(look(w));
    split(plan, 0);
    if (plan->ring.panels > 0) SPS_TRY_RETURN(begin(w));
    SPS_TRY_RETURN(send_first(w));
    spsi_wave_open(&v, plan->after + (plan->ring.backward ? plan->panels : 0),
                   plan->panels, count);
    for (int j; (j = spsi_wave_next(&v)) > 0;)
        SPS_TRY_RETURN(take(w, v.done[j]++, j == 1, j == count, args + j - 1));
    return SPS_OK;
}

/* Returns the largest number of products, at most `count`, of one pass.  Two
 * slots beside those of the panels in use are for copies; if all panels have
 * one, none is released too late. */
int together(const sps_stream_plan *plan, int count)
{
    const int64_t n = plan->panels, slots = plan->ring.slots;
    int most = count < SPS_WAVE_MOST ? count : SPS_WAVE_MOST;

    if (!plan->after) return 1;
    if (slots == n - plan->resident) return most;
    while (most > 1 &&
           (spsi_wave_held(plan->after, n, most) > slots - 2 ||
            spsi_wave_held(plan->after + n, n, most) > slots - 2)) most--;
    return most;
}

} // namespace

sps_status spsi_stream_late(const sps_stream_plan *plan, unsigned stage,
                            cudaStream_t stream)
{
    if (!(plan->test.late & stage)) return SPS_OK;
    spin<<<1, 1, 0, stream>>>();
    SPS_LAUNCHED(plan->super.ctx);
    return SPS_OK;
}

bool spsi_stream_fails(sps_stream_plan *plan)
{
    return plan->test.fail > 0 && --plan->test.fail == 0;
}

sps_status spsi_stream_copied(const sps_stream_plan *plan, size_t bytes,
                              cudaError_t error)
{
    char what[64];

    if (error == cudaSuccess) return SPS_OK;
    snprintf(what, sizeof what, "a copy of %zu bytes", bytes);
    return spsi_cuda_failed(plan->super.ctx, error, what, __FILE__, __LINE__);
}

sps_status spsi_stream_pass(sps_stream_plan *plan, const sps_spmm_args *args)
{
    pass w = pass_of(plan);
    const sps_status st = run(w, args);

    if (st != SPS_OK) plan->share.timed = NULL;
    return end(plan, st);
}

int spsi_stream_passes(const sps_stream_plan *plan, int count)
{
    const int most = together(plan, count);

    return (count + most - 1) / most;
}

sps_status spsi_stream_sequence(sps_stream_plan *plan,
                                const sps_spmm_args *args, int count)
{
    const int most = together(plan, count);
    const int passes = (count + most - 1) / most;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->super.ctx));
    spsi_note(plan->super.ctx, "spmm.stream: %d products with the matrix by %d "
              "%s over its panels", count, passes,
              passes > 1 ? "passes" : "pass");
    for (int some; count > 0; count -= some, args += some) {
        pass w = pass_of(plan);

        some = count < most ? count : most;
        SPS_TRY_RETURN(some == 1 ? spsi_stream_pass(plan, args)
                                 : end(plan, run_wave(w, args, some)));
    }
    return SPS_OK;
}

namespace {

/* Returns the number of slots, and sets their size. */
int slots_for(sps_stream_plan *plan)
{
    const int64_t streamed = plan->panels - plan->resident;
    int64_t most = streamed < SPS_RING_MOST ? streamed : SPS_RING_MOST;

    plan->slots.each = 0;
    for (int64_t i = plan->resident; i < plan->panels; i++)
        if (plan->slots.each < plan->panel[i].is.bytes)
            plan->slots.each = plan->panel[i].is.bytes;
    plan->slots.each = (plan->slots.each + 255) & ~(size_t)255;
    if (streamed > 0 && (int64_t)(plan->slots.all / plan->slots.each) < most)
        most = (int64_t)(plan->slots.all / plan->slots.each);
    return (int)most;
}

sps_status make_event(sps_context *ctx, void **event)
{
    if (!*event)
        SPS_CUDA(ctx, cudaEventCreateWithFlags((cudaEvent_t *)event,
                                               cudaEventDisableTiming));
    return SPS_OK;
}

} // namespace

/* When only the values are new, the stream and events exist; there may be too
 * few of the latter, since panels have other sizes. */
sps_status spsi_stream_ring_open(sps_stream_plan *plan)
{
    sps_context *ctx = plan->super.ctx;
    const int64_t streamed = plan->panels - plan->resident;
    const int slots = slots_for(plan);

    spsi_ring_open(&plan->ring, streamed, slots);
    if (streamed == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_plan_take(&plan->super,
                                  (size_t)slots * plan->slots.each,
                                  (void **)&plan->slots.at));
    if (!plan->copies)
        SPS_CUDA(ctx, cudaStreamCreateWithFlags((cudaStream_t *)&plan->copies,
                                                cudaStreamNonBlocking));
    for (int s = 0; s < slots; s++) {
        SPS_TRY_RETURN(make_event(ctx, &plan->copied[s]));
        SPS_TRY_RETURN(make_event(ctx, &plan->released[s]));
    }
    return make_event(ctx, &plan->begun);
}

namespace {

void drop(void *&stream)
{
    if (!stream) return;
    cudaStreamSynchronize((cudaStream_t)stream);
    cudaStreamDestroy((cudaStream_t)stream);
    stream = NULL;
}

void drop_event(void *&event)
{
    if (event) cudaEventDestroy((cudaEvent_t)event);
    event = NULL;
}

} // namespace

void spsi_stream_ring_close(sps_stream_plan *plan)
{
    if (spsi_cuda_enter(plan->super.ctx) != SPS_OK) return;
    drop(plan->copies);
    drop(plan->share.down);
    for (int s = 0; s < SPS_RING_MOST; s++) {
        drop_event(plan->copied[s]);
        drop_event(plan->released[s]);
    }
    drop_event(plan->begun);
    drop_event(plan->share.asked);
    drop_event(plan->share.there);
    drop_event(plan->share.started);
    drop_event(plan->share.streamed);
    drop_event(plan->share.ended);
    cudaGetLastError();
}
