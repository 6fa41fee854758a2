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

/* Returns the number of this process (its rank), or 0 without a
 * communicator. */
int spsi_comm_rank(const sps_context *ctx);
/* Returns the number of processes, or 1 without a communicator. */
int spsi_comm_size(const sps_context *ctx);
/* Returns whether there is more than one process, or one that computes as
 * several would (across_ranks). */
bool spsi_comm_many(const sps_context *ctx);
/* Returns whether sums over rows must not depend on the number of processes
 * (across_ranks, block/chunk_sums.h). */
bool spsi_comm_ordered(const sps_context *ctx);
/* Returns the number of rows of a chunk of the fixed division of `whole` rows,
 * between which processes must then be divided: 1 if there are at most 1024,
 * otherwise the smallest 6 * 2^i with at most 1024 chunks. */
int64_t spsi_comm_chunk(int64_t whole);
/* Sets *c_p to a communicator of a single process. */
sps_status spsi_comm_alone(sps_comm **c_p);

/* Sums over processes, in place; every dot product and Gram matrix passes
 * through it.  EUSER: the caller's function failed; EPEER: another process
 * failed; EBUG: the processes are at different sums. */
sps_status spsi_reduce(sps_context *ctx, double *values, int count);
/* The same for long arrays, by sums of at most 4096 numbers. */
sps_status spsi_reduce_long(sps_context *ctx, double *values, int64_t count);
/* *any = whether `mine` is set on some process. */
sps_status spsi_comm_any(sps_context *ctx, bool mine, bool *any);

/* *whole = the sum over all processes of n, the number of rows of this process:
 * for decisions that must be the same on all.  EUNFIT if the operator is a
 * matrix (so that the process knows its own rows only) rather than a callback,
 * or if n = 0. */
sps_status spsi_comm_rows(sps_context *ctx, int64_t n, bool matrix,
                          int64_t *whole);

/* all[r] = the value `mine` of process r; `all` has spsi_comm_size elements. */
sps_status spsi_comm_gather(sps_context *ctx, double mine, double *all);
/* Replaces *value by that of process 0. */
sps_status spsi_comm_first(sps_context *ctx, double *value);
/* Replaces *value by the largest one of all processes. */
sps_status spsi_comm_largest(sps_context *ctx, double *value);
/* Extends the box low .. high in d dimensions to that of all processes. */
sps_status spsi_comm_box(sps_context *ctx, int d, double *low, double *high);
/* *same becomes whether `mine` has the same value on all processes. */
sps_status spsi_comm_same(sps_context *ctx, double mine, bool *same);

/* Messages to and from other processes.  A message of `bytes` that one process
 * sends must be received by the other with the same size; two messages from one
 * sender arrive in the order in which they were sent.  Between start and
 * finish, memory that is sent must not be written, memory that receives must
 * not be read, and no other exchange may be started.
 *
 * A process that fails before an exchange leaves the call at a sum, while its
 * neighbours would wait for its message.  So each exchange is preceded by a sum
 * of control numbers, by which they learn of the failure.  This sum is omitted
 * while `steady` is set: around loops that allocate nothing, in which failures
 * of callbacks are deferred (spsi_comm_defer) and blocks are in host memory.
 * spsi_comm_steady returns the previous setting. */
sps_status spsi_comm_exchange(sps_context *ctx, const sps_message *send,
                              int sends, const sps_message *receive,
                              int receives);
sps_status spsi_comm_start(sps_context *ctx, const sps_message *send, int sends,
                           const sps_message *receive, int receives);
sps_status spsi_comm_finish(sps_context *ctx);
bool spsi_comm_steady(sps_context *ctx, bool steady);

/* Every collective call is enclosed by this pair; pairs may be nested, and only
 * the outermost one communicates.  spsi_comm_end gets `st`, the status of the
 * call so far, and returns it, or the failure of another process if st is
 * SPS_OK. */
sps_status spsi_comm_begin(sps_context *ctx);
sps_status spsi_comm_end(sps_context *ctx, sps_status st);
/* Begins work that concerns the rows of this process only.  Until
 * spsi_comm_back, which gets the pointer returned here, nothing is sent, and
 * sums are those of this process, as are the clock and the flag of sps_cancel:
 * spsi_rejoin (deadline.h) agrees on what they have caused. */
sps_comm *spsi_comm_apart(sps_context *ctx);
void spsi_comm_back(sps_context *ctx, sps_comm *of);
/* To be called when a callback of the caller has failed with st.  Within a
 * collective call of several processes the failure is kept until the next sum,
 * because the callbacks of the others may wait for data from this process, and
 * SPS_OK is returned; otherwise st. */
sps_status spsi_comm_defer(sps_context *ctx, sps_status st);

/* Returns the time in seconds: that of process 0 at the last sum, or, with a
 * single process, the current time. */
double spsi_agreed_now(const sps_context *ctx);
/* Sets that time to `seconds` if it is earlier: all processes know that it has
 * come for one of them. */
void spsi_comm_pass(sps_context *ctx, double seconds);
/* Returns whether sps_cancel was called on some process. */
bool spsi_agreed_cancel(const sps_context *ctx);
/* Calls the caller's monitor, unless it is NULL.  Returns false if the monitor
 * of some process requests a stop; with several processes this is known from
 * the last sum. */
bool spsi_agreed_monitor(sps_context *ctx, sps_monitor_fn monitor, void *data,
                         const sps_progress *p);

/* Boundary rows of a matrix over several processes (operator_ranks.h), in
 * device memory.  Columns count the rows of the operand, of which `touched`
 * rows from `low` on are rows touch[] of X, and the others are ghosts. */
typedef struct sps_edge {
    int64_t rows;
    const int32_t *row;       /* their numbers, distinct */
    const int64_t *rowptr;    /* NULL if there is rowptr32, the same */
    const int32_t *rowptr32;
    const int32_t *col;
    const void *val;          /* NULL: row i of the product is row i of X */
    sps_dtype dtype;          /* of val */
    int64_t low, touched;
    const int32_t *touch;
} sps_edge;

/* Messages and sums between processes from and to device memory: the functions
 * of a GPU module (a "wire").  The exchange of boundary rows (halo/halo.h)
 * uses the wire if there is one, and the functions above otherwise.
 *
 * A wire is `queued` where the device itself sends and sums: the host waits for
 * nothing, and learns of the failure of another process only at the next call
 * of spsi_reduce.  Otherwise messages are staged in host memory and sent by
 * spsi_comm_exchange, and `sum` is not available. */
typedef struct sps_wire {
    /* Opens the wire; collective, called at set-up.  Does nothing if it has
     * been called before. */
    sps_status (*open)(sps_context *ctx);
    bool (*queued)(const sps_context *ctx);
    /* Allocates buffers for exchanges of at most `sent` and `received` bytes;
     * called at set-up. */
    sps_status (*reserve)(sps_context *ctx, size_t sent, size_t received);
    /* As spsi_comm_start and spsi_comm_finish, for device memory: what is sent
     * is the result of the work queued before start, and work queued after
     * finish finds what was received.  The arrays of messages must stay valid
     * until finish.  `aside`: messages pass while the work queued between start
     * and finish runs, and take multiprocessors from it; otherwise a queued
     * wire completes them before that work. */
    sps_status (*start)(sps_context *ctx, bool aside, const sps_message *send,
                        int sends, const sps_message *receive, int receives);
    sps_status (*finish)(sps_context *ctx);
    /* As spsi_take_rows, between start and finish, after which Y is complete:
     * beside the product if the messages are. */
    sps_status (*take_rows)(const sps_block *X, const int32_t *row,
                            sps_block *Y);
    /* Queues to[i] = sum of from[i] over all processes, with the same bits on
     * each.  `to` may be `from`. */
    sps_status (*sum)(sps_context *ctx, const double *from, double *to,
                      int count);
    /* Adds to row row[i] of Y row i of the product of e with X and the ghosts
     * in `operand`, times alpha and, unless D is NULL, element row[i] of D (n x
     * 1, doubles).  X and the operand have elements of one type, Y of any. */
    sps_status (*add_edge)(const sps_edge *e, double alpha, const sps_block *D,
                           const sps_block *X, const sps_block *operand,
                           sps_block *Y);
} sps_wire;

/* Returns the wire of the context, or NULL for a single process and for blocks
 * in host memory. */
const sps_wire *spsi_wire(const sps_context *ctx);
/* Returns where the wire of ctx stores its data: in the communicator, which
 * serves one context on a GPU at a time.  NULL if another context uses it. */
void **spsi_wire_data(const sps_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
