/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.c - messages and sums of device memory between processes (core/comm.h).
 *
 * With a GPU for each process, and NCCL that all of them can load
 * (libnccl.so.2, or the library that SPSOLVE_NCCL names; "none" for none),
 * messages and sums are NCCL's and are queued.  Otherwise messages are staged:
 * copied to pinned memory on a stream of their own while the product of the
 * interior rows runs, exchanged by the host (comm.h), and copied up.
 *
 * NCCL's kernels take multiprocessors from a product that runs beside them; its
 * blocks in their place would begin when the messages have passed.  So messages
 * aside have a communicator of their own, with LEFT blocks, and the kernels
 * beside are launched for LEFT multiprocessors less.
 *
 * Two events order the streams.  `ready`: the data to be sent have been packed;
 * `arrived`: all messages have been sent and received, so that the next data
 * may be packed in their place. */
#include "core/comm.h"
#include "core/module.h"
#include "cuda/base/nccl.h"
#include "cuda/base/wire_device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* With 2 blocks 3.3 MB each way take 164 us on an H200, with all 25, and a
 * product of 442 us takes 450 beside them. */
enum { LEFT = 2 };

typedef struct sps_cuda_wire {
    cudaStream_t side;
    cudaEvent_t ready, arrived;
    sps_nccl nccl;
    sps_nccl_comm comm;        /* communicator of NCCL; NULL if messages are
                                  staged */
    sps_nccl_comm few;         /* that of messages aside; NULL until the first,
                                  and where NCCL is older than 2.17 */
    bool tried;                /* to make it */
    char *out, *in;            /* pinned buffers of the messages to be sent and
                                  received */
    size_t out_bytes, in_bytes;
    sps_message *message;      /* the messages with their places in `out` and
                                  `in`: `most` to send, `most` to receive */
    int most;                  /* largest number of either */
    const sps_message *send, *receive;   /* of the open exchange */
    int sends, receives;       /* number of its messages */
    bool aside;                /* the open exchange runs on `side` */
} sps_cuda_wire;

#define SPS_NCCL(ctx, w, call)                                                 \
    do {                                                                       \
        const int error_ = (w)->nccl.call;                                     \
        if (error_ != 0)                                                       \
            return spsi_fail((ctx), SPS_EDEVICE, "NCCL: " #call ": %s",        \
                             (w)->nccl.text(error_));                          \
    } while (0)

static sps_cuda_wire *wire_of(const sps_context *ctx)
{
    void **data = spsi_wire_data(ctx);

    return data ? (sps_cuda_wire *)*data : NULL;
}

/* ------------------------------------------------------------------ opening */

static bool load_nccl(sps_nccl *n)
{
    int version = 0, (*get_version)(int *) = NULL;
    const char *named = getenv("SPSOLVE_NCCL");
    const char *file = named ? named : "libnccl.so.2";
    char why[SPS_ERROR_SIZE];
    const spsi_symbol wanted[] = {
        { "ncclGetUniqueId", (void **)&n->get_id },
        { "ncclCommInitRank", (void **)&n->init_rank },
        { "ncclCommDestroy", (void **)&n->destroy },
        { "ncclCommAbort", (void **)&n->give_up },
        { "ncclGroupStart", (void **)&n->group_start },
        { "ncclGroupEnd", (void **)&n->group_end },
        { "ncclSend", (void **)&n->send },
        { "ncclRecv", (void **)&n->receive },
        { "ncclAllReduce", (void **)&n->sum },
        { "ncclGetErrorString", (void **)&n->text },
        { NULL, NULL } };

    const spsi_symbol newer[] = {
        { "ncclGetVersion", (void **)&get_version },
        { "ncclCommInitRankConfig", (void **)&n->init_config },
        { NULL, NULL } };

    if (!*file || !strcmp(file, "none") ||
        !spsi_module_symbols(file, wanted, why, sizeof why)) return false;
    if (!spsi_module_symbols(file, newer, why, sizeof why) ||
        get_version(&version) != 0 || version < SPS_NCCL_VERSION)
        n->init_config = NULL;
    return true;
}

/* Returns an integer below 2^53 that identifies the GPU, exact as a double
 * (FNV-1a of its UUID). */
static double name_of(const struct cudaDeviceProp *prop)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < sizeof prop->uuid.bytes; i++)
        h = (h ^ (unsigned char)prop->uuid.bytes[i]) * UINT64_C(1099511628211);
    return (double)(h >> 12);
}

/* *own becomes whether each process has a GPU for itself, which NCCL requires. */
static sps_status compare_gpus(sps_context *ctx, bool *own)
{
    const int size = spsi_comm_size(ctx);
    struct cudaDeviceProp prop;
    double *all;
    void *room;
    sps_status st;

    SPS_CUDA(ctx, cudaGetDeviceProperties(&prop, spsi_cuda_state(ctx)->device));
    SPS_TRY_RETURN(spsi_new(ctx, (size_t)size * sizeof *all, &room));
    all = (double *)room;
    st = spsi_comm_gather(ctx, name_of(&prop), all);
    *own = true;
    for (int r = 0; r < size; r++)
        for (int q = 0; q < r; q++) *own = *own && all[q] != all[r];
    spsi_free(ctx, room);
    return st;
}

/* *one becomes whether all messages are NCCL's.  It is loaded only if they can
 * be. */
static sps_status ask_all(sps_context *ctx, sps_cuda_wire *w, bool *one)
{
    double without;
    sps_status st;

    SPS_TRY_RETURN(compare_gpus(ctx, one));
    if (!*one) return SPS_OK;
    without = load_nccl(&w->nccl) ? 0 : 1;
    st = spsi_reduce(ctx, &without, 1);
    *one = without == 0;
    return st;
}

/* Distributes an identifier that process 0 has created to all processes, one
 * double per byte. */
static sps_status share_id(sps_context *ctx, const sps_cuda_wire *w,
                           sps_nccl_id *id)
{
    double byte[sizeof(sps_nccl_id)] = { 0 };

    memset(id, 0, sizeof *id);
    if (spsi_comm_rank(ctx) == 0) SPS_NCCL(ctx, w, get_id(id));
    for (size_t i = 0; i < sizeof *id; i++)
        byte[i] = (unsigned char)id->bytes[i];
    SPS_TRY_RETURN(spsi_reduce(ctx, byte, (int)sizeof *id));
    for (size_t i = 0; i < sizeof *id; i++)
        id->bytes[i] = (char)(unsigned char)byte[i];
    return SPS_OK;
}

static sps_status join_nccl(sps_context *ctx, sps_cuda_wire *w)
{
    sps_nccl_id id;

    SPS_TRY_RETURN(share_id(ctx, w, &id));
    SPS_NCCL(ctx, w, init_rank(&w->comm, spsi_comm_size(ctx), id,
                               spsi_comm_rank(ctx)));
    return SPS_OK;
}

/* Makes the communicator of messages aside, where all processes can. */
static sps_status join_few(sps_context *ctx, sps_cuda_wire *w)
{
    sps_nccl_config config = {
        sizeof config, (unsigned)SPS_NCCL_MAGIC, SPS_NCCL_VERSION,
        SPS_NCCL_UNDEFINED, SPS_NCCL_UNDEFINED, 1, LEFT, NULL };
    double without = w->nccl.init_config ? 0 : 1;
    sps_nccl_id id;

    w->tried = true;
    SPS_TRY_RETURN(spsi_reduce(ctx, &without, 1));
    if (without > 0) return SPS_OK;
    SPS_TRY_RETURN(share_id(ctx, w, &id));
    SPS_NCCL(ctx, w, init_config(&w->few, spsi_comm_size(ctx), id,
                                 spsi_comm_rank(ctx), &config));
    return SPS_OK;
}

/* Makes what *w needs, which is zero. */
static sps_status set_up(sps_context *ctx, sps_cuda_wire *w)
{
    int least = 0, most = 0;
    bool one = false;
    void *p;

    w->most = spsi_comm_size(ctx);
    SPS_TRY_RETURN(spsi_new(ctx, 2 * (size_t)w->most * sizeof *w->message, &p));
    w->message = (sps_message *)p;
    SPS_CUDA(ctx, cudaDeviceGetStreamPriorityRange(&least, &most));
    SPS_CUDA(ctx, cudaStreamCreateWithPriority(&w->side, cudaStreamNonBlocking,
                                               most));
    SPS_CUDA(ctx, cudaEventCreateWithFlags(&w->ready,
                                           cudaEventDisableTiming));
    SPS_CUDA(ctx, cudaEventCreateWithFlags(&w->arrived,
                                           cudaEventDisableTiming));
    SPS_TRY_RETURN(ask_all(ctx, w, &one));
    return one ? join_nccl(ctx, w) : SPS_OK;
}

/* A wire that could not be opened is closed, and may be opened again. */
static sps_status open_wire(sps_context *ctx)
{
    void **data = spsi_wire_data(ctx);
    sps_status st;

    if (!data)
        return spsi_fail(ctx, SPS_EUNFIT, "a communicator serves one context "
                         "on a GPU at a time, and another context uses "
                         "this one: destroy that context first, or use "
                         "another communicator");
    if (*data) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_new(ctx, sizeof(sps_cuda_wire), data));
    st = set_up(ctx, (sps_cuda_wire *)*data);
    if (st != SPS_OK) spsi_cuda_wire_close(ctx);
    return st;
}

static bool is_queued(const sps_context *ctx)
{
    return wire_of(ctx) && wire_of(ctx)->comm;
}

static sps_status enlarge(sps_context *ctx, size_t bytes, char **p,
                          size_t *room)
{
    if (bytes <= *room) return SPS_OK;
    if (*p) SPS_CUDA(ctx, cudaFreeHost(*p));
    *p = NULL;
    *room = 0;
    SPS_CUDA(ctx, cudaHostAlloc((void **)p, bytes, cudaHostAllocDefault));
    *room = bytes;
    return SPS_OK;
}

static sps_status reserve(sps_context *ctx, size_t sent, size_t received)
{
    sps_cuda_wire *w = wire_of(ctx);

    if (w->comm) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_CUDA(ctx, cudaStreamSynchronize(w->side));
    SPS_TRY_RETURN(enlarge(ctx, sent, &w->out, &w->out_bytes));
    return enlarge(ctx, received, &w->in, &w->in_bytes);
}

/* ---------------------------------------------------------------- messages */

/* Queues the messages of the open exchange. */
static sps_status post_nccl(sps_context *ctx, sps_cuda_wire *w)
{
    cudaStream_t on = w->aside ? w->side : spsi_cuda_state(ctx)->stream;
    sps_nccl_comm comm = w->aside && w->few ? w->few : w->comm;

    SPS_NCCL(ctx, w, group_start());
    for (int i = 0; i < w->sends; i++)
        SPS_NCCL(ctx, w, send(w->send[i].p, w->send[i].bytes, SPS_NCCL_BYTE,
                              w->send[i].peer, comm, on));
    for (int i = 0; i < w->receives; i++)
        SPS_NCCL(ctx, w, receive(w->receive[i].p, w->receive[i].bytes,
                                 SPS_NCCL_BYTE, w->receive[i].peer, comm, on));
    SPS_NCCL(ctx, w, group_end());
    return SPS_OK;
}

/* Messages aside are queued by finish_nccl: this takes the host 20 us or more,
 * during which the product that they pass beside runs already. */
static sps_status start_nccl(sps_context *ctx, sps_cuda_wire *w)
{
    if (!w->aside) return post_nccl(ctx, w);
    if (w->few) spsi_cuda_state(ctx)->sms -= LEFT;
    return SPS_OK;
}

static sps_status finish_nccl(sps_context *ctx, sps_cuda_wire *w)
{
    if (w->few) spsi_cuda_state(ctx)->sms += LEFT;
    SPS_TRY_RETURN(post_nccl(ctx, w));
    SPS_CUDA(ctx, cudaEventRecord(w->arrived, w->side));
    return SPS_OK;
}

/* Assigns places in pinned memory, from `at` on, to the messages, one after
 * another; `room` is the number of bytes there. */
static sps_status place(sps_context *ctx, const sps_message *m, int count,
                        char *at, size_t room, sps_message *to)
{
    for (int i = 0; i < count; i++) {
        const size_t bytes = m[i].bytes;

        if (bytes > room)
            return spsi_fail(ctx, SPS_EBUG, "a message has %zu bytes, but only "
                             "%zu of the reserved memory are left: please "
                             "report it", bytes, room);
        to[i] = (sps_message){ m[i].peer, at, bytes };
        at += bytes;
        room -= bytes;
    }
    return SPS_OK;
}

static sps_status start_staged(sps_context *ctx, sps_cuda_wire *w)
{
    SPS_TRY_RETURN(place(ctx, w->send, w->sends, w->out, w->out_bytes,
                         w->message));
    SPS_TRY_RETURN(place(ctx, w->receive, w->receives, w->in, w->in_bytes,
                         w->message + w->most));
    for (int i = 0; i < w->sends; i++) {
        const sps_message *m = &w->send[i];

        ctx->memory.to_host += (int64_t)m->bytes;
        SPS_CUDA(ctx, cudaMemcpyAsync(w->message[i].p, m->p, m->bytes,
                                      cudaMemcpyDeviceToHost, w->side));
    }
    SPS_CUDA(ctx, cudaEventRecord(w->arrived, w->side));
    return SPS_OK;
}

static sps_status start(sps_context *ctx, bool aside, const sps_message *send,
                        int sends, const sps_message *receive, int receives)
{
    sps_cuda_wire *w = wire_of(ctx);

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (aside && w->comm && !w->tried) SPS_TRY_RETURN(join_few(ctx, w));
    w->aside = !w->comm || (aside && w->few);
    w->send = send;
    w->sends = sends;
    w->receive = receive;
    w->receives = receives;
    if (!w->aside) return start_nccl(ctx, w);
    SPS_CUDA(ctx, cudaEventRecord(w->ready, spsi_cuda_state(ctx)->stream));
    SPS_CUDA(ctx, cudaStreamWaitEvent(w->side, w->ready, 0));
    return w->comm ? start_nccl(ctx, w) : start_staged(ctx, w);
}

/* Exchanges the staged messages and queues the copies of what was received.
 * The host waits only for its copies of what is sent. */
static sps_status finish_staged(sps_context *ctx, sps_cuda_wire *w)
{
    const sps_message *in = w->message + w->most;

    SPS_CUDA(ctx, cudaEventSynchronize(w->arrived));
    SPS_TRY_RETURN(spsi_comm_exchange(ctx, w->message, w->sends, in,
                                      w->receives));
    for (int i = 0; i < w->receives; i++) {
        ctx->memory.to_device += (int64_t)in[i].bytes;
        SPS_CUDA(ctx, cudaMemcpyAsync(w->receive[i].p, in[i].p, in[i].bytes,
                                      cudaMemcpyHostToDevice, w->side));
    }
    SPS_CUDA(ctx, cudaEventRecord(w->arrived, w->side));
    return SPS_OK;
}

static sps_status finish(sps_context *ctx)
{
    sps_cuda_wire *w = wire_of(ctx);

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (!w->aside) return SPS_OK;
    SPS_TRY_RETURN(w->comm ? finish_nccl(ctx, w) : finish_staged(ctx, w));
    SPS_CUDA(ctx, cudaStreamWaitEvent(spsi_cuda_state(ctx)->stream, w->arrived,
                                      0));
    return SPS_OK;
}

static sps_status take_rows(const sps_block *X, const int32_t *row,
                            sps_block *Y)
{
    sps_cuda_state *s = spsi_cuda_state(X->ctx);
    const sps_cuda_wire *w = wire_of(X->ctx);
    const cudaStream_t usual = s->stream;
    sps_status st;

    if (Y->n == 0 || Y->k == 0) return SPS_OK;
    if (w->aside) s->stream = w->side;
    st = X->ctx->backend->take_rows(X, row, Y);
    s->stream = usual;
    return st;
}

static sps_status sum(sps_context *ctx, const double *from, double *to,
                      int count)
{
    sps_cuda_wire *w = wire_of(ctx);

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_NCCL(ctx, w, sum(from, to, (size_t)count, SPS_NCCL_DOUBLE, SPS_NCCL_SUM,
                         w->comm, spsi_cuda_state(ctx)->stream));
    return SPS_OK;
}

/* A process whose GPU has failed does not wait for messages from others. */
void spsi_cuda_wire_close(sps_context *ctx)
{
    void **data = spsi_wire_data(ctx);
    sps_cuda_wire *w = data ? (sps_cuda_wire *)*data : NULL;

    if (!w) return;
    *data = NULL;
    if (spsi_cuda_state(ctx)->pid == getpid()) {
        if (w->few) (ctx->dead ? w->nccl.give_up : w->nccl.destroy)(w->few);
        if (w->comm)
            (ctx->dead ? w->nccl.give_up : w->nccl.destroy)(w->comm);
        if (w->side) cudaStreamDestroy(w->side);
        if (w->ready) cudaEventDestroy(w->ready);
        if (w->arrived) cudaEventDestroy(w->arrived);
        if (w->out) cudaFreeHost(w->out);
        if (w->in) cudaFreeHost(w->in);
    }
    spsi_free(ctx, w->message);
    spsi_free(ctx, w);
}

SPS_DEFINE(sps_wire, spsi_wire_cuda) = {
    .open = open_wire,
    .queued = is_queued,
    .reserve = reserve,
    .start = start,
    .finish = finish,
    .take_rows = take_rows,
    .sum = sum,
    .add_edge = spsi_cuda_add_edge,
};
