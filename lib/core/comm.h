/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.h - several processes that solve together: sums, and agreement.
 *
 * Control flow depends only on sums, which are the same on every process, and
 * on the data sent with them: whether a monitor requests a stop, whether
 * sps_cancel was called on some process, the clock of process 0, whether a
 * process has failed.  These are constant from one sum to the next, so that
 * decisions between two sums are the same on all processes.  A single process
 * (ctx->opt.comm NULL) uses its own clock and flags, and nothing is sent.
 *
 * A collective call is enclosed by spsi_comm_begin and spsi_comm_end.  A
 * process that fails within it calls spsi_comm_end at once.  The message of
 * spsi_comm_end counts as its part of the next sum of the others, by which they
 * learn of the failure and leave the call with EPEER. */
#ifndef SPS_COMM_H
#define SPS_COMM_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of this process; 0 without a comm. */
int spsi_comm_rank(const sps_context *ctx);
/* Number of processes; 1 without a comm. */
int spsi_comm_size(const sps_context *ctx);
/* Whether there is more than one process. */
bool spsi_comm_many(const sps_context *ctx);

/* Sums over processes, in place; every dot product and Gram matrix passes
 * through it.  EUSER: the caller's function failed; EPEER: another process
 * failed; EBUG: the processes are at different sums. */
sps_status spsi_reduce(sps_context *ctx, double *values, int count);

/* *whole = the sum of n, the rows of this process, over all processes: for
 * decisions that must be the same on all.  EUNFIT: the operator is a matrix
 * (its process knows its own rows only) rather than a callback, or n = 0. */
sps_status spsi_comm_rows(sps_context *ctx, int64_t n, bool matrix,
                          int64_t *whole);

/* all[r] = mine of process r; spsi_comm_size numbers. */
sps_status spsi_comm_gather(sps_context *ctx, double mine, double *all);
/* *value becomes that of process 0. */
sps_status spsi_comm_first(sps_context *ctx, double *value);

/* Messages to and from other processes.  One of `bytes` that a process sends is
 * received there as one of the same size; of two from one sender the first sent
 * is received first.  Between start and finish the memory sent is not written,
 * that received not read, and no other exchange is started.
 *
 * A process that fails before an exchange leaves the call by a sum, while its
 * neighbours would wait for its message.  So each exchange is preceded by a sum
 * of control numbers, by which they learn of the failure; but not while
 * `steady` is set, around loops that allocate nothing and in which the failures
 * of callbacks are deferred (spsi_comm_defer), and blocks are in host memory.
 * spsi_comm_steady returns what was set before. */
sps_status spsi_comm_exchange(sps_context *ctx, const sps_message *send,
                              int sends, const sps_message *receive,
                              int receives);
sps_status spsi_comm_start(sps_context *ctx, const sps_message *send, int sends,
                           const sps_message *receive, int receives);
sps_status spsi_comm_finish(sps_context *ctx);
bool spsi_comm_steady(sps_context *ctx, bool steady);

/* The pairs may be nested; only the outermost one communicates.  st: status of
 * the call so far; spsi_comm_end returns it, or if it is SPS_OK the failure of
 * another process. */
sps_status spsi_comm_begin(sps_context *ctx);
sps_status spsi_comm_end(sps_context *ctx, sps_status st);
/* Work of this process alone, on own rows: until spsi_comm_back, which takes
 * what this returns, nothing is sent and sums are its own. */
sps_comm *spsi_comm_apart(sps_context *ctx);
void spsi_comm_back(sps_context *ctx, sps_comm *of);
/* To be called when a callback of the caller has failed with st.  Within a
 * collective call of several processes the failure is kept until the next sum,
 * because the callbacks of the others may wait for data from this process, and
 * SPS_OK is returned; otherwise st. */
sps_status spsi_comm_defer(sps_context *ctx, sps_status st);

/* Time in seconds: the clock of process 0 at the last sum; with a single
 * process the current time. */
double spsi_agreed_now(const sps_context *ctx);
/* Whether sps_cancel was called on some process. */
bool spsi_agreed_cancel(const sps_context *ctx);
/* Calls the caller's monitor, unless it is NULL.  False: the monitor of some
 * process requests a stop; with several processes as of the last sum. */
bool spsi_agreed_monitor(sps_context *ctx, sps_monitor_fn monitor, void *data,
                         const sps_progress *p);

/* Messages and sums from and to the memory of a backend that is not the host's:
 * a table of the module.  A halo (operator/halo.h) goes by the wire where there
 * is one, else by the functions above.
 *
 * A wire is `queued` where the device sends and sums by itself: nothing is
 * waited for, and a failure of another process is learnt at the next sum of
 * spsi_reduce only.  Otherwise messages are staged in host memory and go by
 * spsi_comm_exchange, and there is no sum. */
typedef struct sps_wire {
    /* Collective, at set-up; does nothing if it has been called before. */
    sps_status (*open)(sps_context *ctx);
    bool (*queued)(const sps_context *ctx);
    /* Allocates buffers for exchanges of at most so many bytes; at set-up. */
    sps_status (*reserve)(sps_context *ctx, size_t sent, size_t received);
    /* As spsi_comm_start and spsi_comm_finish, of memory of the backend: what
     * is sent is what the work queued so far leaves there, and work queued
     * after finish finds what was received.  The messages are kept until
     * finish. */
    sps_status (*start)(sps_context *ctx, const sps_message *send, int sends,
                        const sps_message *receive, int receives);
    sps_status (*finish)(sps_context *ctx);
    /* to[i] = sum of from[i] over processes, queued; the same bits on all.  to
     * may be from. */
    sps_status (*sum)(sps_context *ctx, const double *from, double *to,
                      int count);
} sps_wire;

/* The wire of the context, or NULL: one process, or blocks in host memory. */
const sps_wire *spsi_wire(const sps_context *ctx);
/* Where the wire of ctx keeps its data: in the communicator, of which one
 * context on a GPU is in use at a time; NULL if another one is. */
void **spsi_wire_data(const sps_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
