/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi.c - the module of MPI (interface: lib/core/module.h), the only file that
 * includes mpi.h.  It is compiled for each implementation of MPI that configure
 * finds, since their binary interfaces differ.
 *
 * MPI_Allreduce gives all processes the same bits if it sums in one order, as
 * implementations do (MPI 4.0, section 6.9.1, advice to implementors).
 * Messages of more than MOST bytes are sent in pieces, because MPI counts by
 * int.
 *
 * A process that waits within MPI polls for messages without a pause: MPICH
 * always, Open MPI by default.  Where there are more processes than cores, the
 * one that is waited for then runs only when the scheduler preempts a polling
 * one: of 132 small solves by 3 processes of MPICH on two busy cores 18 ended
 * in 15 minutes, and all of them in 4 s when waiting processes yield.  So they
 * yield where cores are shared. */
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>

#include "core/module.h"

enum { TAG = 1 };
#define MOST ((size_t)1 << 30)

typedef struct channel {
    MPI_Comm comm;
    bool initialised;         /* MPI was initialised by open_channel */
    bool crowded;             /* this machine has more of the processes than
                                 they have cores */
    MPI_Request *request;     /* requests of the exchange that has been
                                 started */
    int requests, room;
} channel;

static const char *take_world(channel *c)
{
    int given, started;

    if (MPI_Initialized(&started) != MPI_SUCCESS)
        return "MPI_Initialized fails";
    if (started) return NULL;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS)
        return "MPI_Init_thread fails";
    c->initialised = true;
    return NULL;
}

/* Finds out whether processes share cores; collective. */
static bool is_crowded(MPI_Comm comm)
{
    MPI_Comm here;
    cpu_set_t cores;
    int processes = 0;

    CPU_ZERO(&cores);
    (void)sched_getaffinity(0, sizeof cores, &cores);
    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                            &here) != MPI_SUCCESS) return false;
    (void)MPI_Comm_size(here, &processes);
    if (MPI_Allreduce(MPI_IN_PLACE, &cores, (int)sizeof cores, MPI_BYTE,
                      MPI_BOR, here) != MPI_SUCCESS) processes = 0;
    MPI_Comm_free(&here);
    return processes > CPU_COUNT(&cores);
}

static const char *open_channel(int handle, int *rank, int *size, void **of)
{
    channel *c = calloc(1, sizeof *c);
    const char *why = c ? NULL : "no memory";
    MPI_Comm from = MPI_COMM_WORLD;
    int started = 0, ended = 0;

    if (!why) (void)MPI_Finalized(&ended);
    if (ended) why = "MPI has been finalised";
    if (!why && handle == SPS_MPI_WORLD) why = take_world(c);
    if (!why) (void)MPI_Initialized(&started);
    if (!why && !started) why = "MPI has not been initialised";
    if (!why && handle != SPS_MPI_WORLD) from = MPI_Comm_f2c(handle);
    if (!why && from == MPI_COMM_NULL) why = "the communicator is null";
    if (!why && MPI_Comm_dup(from, &c->comm) != MPI_SUCCESS)
        why = "MPI_Comm_dup fails";
    if (!why && (MPI_Comm_rank(c->comm, rank) != MPI_SUCCESS ||
                 MPI_Comm_size(c->comm, size) != MPI_SUCCESS))
        why = "the communicator has no rank or size";
    if (!why) c->crowded = is_crowded(c->comm);
    if (why) free(c);
    else *of = c;
    return why;
}

static void close_channel(void *of)
{
    channel *c = of;
    int ended = 0;

    (void)MPI_Finalized(&ended);
    if (!ended) MPI_Comm_free(&c->comm);
    if (!ended && c->initialised) MPI_Finalize();
    free(c->request);
    free(c);
}

static void end_all(void *of, int code)
{
    MPI_Abort(((channel *)of)->comm, code);
}

static int await(const channel *c, MPI_Request *request)
{
    int code, done = 0;

    if (!c->crowded) return MPI_Wait(request, MPI_STATUS_IGNORE);
    while ((code = MPI_Test(request, &done, MPI_STATUS_IGNORE)) ==
           MPI_SUCCESS && !done)
        (void)sched_yield();
    return code;
}

static int sum(double *values, int count, void *of)
{
    const channel *c = of;
    MPI_Request request;
    int code;

    if (!c->crowded)
        return MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM,
                             c->comm);
    code = MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM,
                          c->comm, &request);
    return code == MPI_SUCCESS ? await(c, &request) : code;
}

static size_t pieces(const sps_message *m, int count)
{
    size_t sum = 0;

    for (int i = 0; i < count; i++)
        sum += m[i].bytes > 0 ? (m[i].bytes - 1) / MOST + 1 : 1;
    return sum;
}

/* Allocates requests for all pieces of an exchange before any is posted, since
 * a posted message cannot be withdrawn.  Returns false if there is no
 * memory. */
static bool make_room(channel *c, size_t count)
{
    MPI_Request *larger;

    if (count <= (size_t)c->room) return true;
    larger = realloc(c->request, count * sizeof *larger);
    if (!larger) return false;
    c->request = larger;
    c->room = (int)count;
    return true;
}

static int post(channel *c, const sps_message *m, bool receive)
{
    int code = MPI_SUCCESS;
    size_t done = 0;

    do {
        const size_t left = m->bytes - done;
        const int piece = (int)(left < MOST ? left : MOST);
        char *p = (char *)m->p + done;

        code = receive
            ? MPI_Irecv(p, piece, MPI_BYTE, m->peer, TAG, c->comm,
                        &c->request[c->requests])
            : MPI_Isend(p, piece, MPI_BYTE, m->peer, TAG, c->comm,
                        &c->request[c->requests]);
        c->requests += code == MPI_SUCCESS;
        done += (size_t)piece;
    } while (done < m->bytes && code == MPI_SUCCESS);
    return code;
}

static int start(const sps_message *send, int sends,
                 const sps_message *receive, int receives, void *of)
{
    channel *c = of;
    int code = MPI_SUCCESS;

    c->requests = 0;
    if (!make_room(c, pieces(receive, receives) + pieces(send, sends)))
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < receives && code == MPI_SUCCESS; i++)
        code = post(c, &receive[i], true);
    for (int i = 0; i < sends && code == MPI_SUCCESS; i++)
        code = post(c, &send[i], false);
    return code;
}

static int finish(void *of)
{
    channel *c = of;
    int code = MPI_SUCCESS;

    for (int i = 0; i < c->requests && code == MPI_SUCCESS; i++)
        code = await(c, &c->request[i]);
    return code;
}

extern const sps_engine spsi_engine_catalogue;
const sps_engine spsi_engine_catalogue = {
    .abi = SPS_ENGINE_ABI, .version = PACKAGE_VERSION, .name = SPS_ENGINE_NAME,
    .open = open_channel, .close = close_channel, .end_all = end_all,
    .sum = sum, .start = start, .finish = finish,
};
