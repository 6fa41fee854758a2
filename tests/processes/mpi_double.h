/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_double.h - what engines/mpi.c uses of MPI, as a double that counts: what is
 * posted, of how many bytes, and what is still open.  No message travels. */
#ifndef SPS_TEST_MPI_H
#define SPS_TEST_MPI_H

#include <stddef.h>

enum { MPI_SUCCESS, MPI_ERR_NO_MEM = 34, MPI_THREAD_FUNNELED = 1, MPI_BYTE = 1,
       MPI_DOUBLE = 8, MPI_SUM = 1, MPI_BOR = 2, MPI_COMM_WORLD = 1,
       MPI_COMM_NULL = 0, MPI_COMM_TYPE_SHARED = 1, MPI_INFO_NULL = 0 };
#define MPI_IN_PLACE NULL
#define MPI_STATUS_IGNORE NULL
typedef int MPI_Comm, MPI_Request;
typedef struct MPI_Status { int unused; } MPI_Status;

static struct { int receives, sends, open; size_t received, sent; } posted;
/* Processes of this machine; calls of MPI_Wait; how often MPI_Test finds nothing
 * yet. */
static struct { int processes, waits, late; } machine;

static int take(int *count, size_t *bytes, int more, MPI_Request *r)
{
    ++*count;
    *bytes += (size_t)more;
    posted.open++;
    *r = 1;
    return MPI_SUCCESS;
}

static int MPI_Irecv(void *p, int count, int type, int peer, int tag,
                     MPI_Comm comm, MPI_Request *r)
{
    (void)p, (void)type, (void)peer, (void)tag, (void)comm;
    return take(&posted.receives, &posted.received, count, r);
}

static int MPI_Isend(const void *p, int count, int type, int peer, int tag,
                     MPI_Comm comm, MPI_Request *r)
{
    (void)p, (void)type, (void)peer, (void)tag, (void)comm;
    return take(&posted.sends, &posted.sent, count, r);
}

static int MPI_Wait(MPI_Request *r, MPI_Status *status)
{
    (void)status;
    machine.waits++;
    posted.open -= *r;
    *r = 0;
    return MPI_SUCCESS;
}

static int MPI_Test(MPI_Request *r, int *done, MPI_Status *status)
{
    (void)status;
    *done = machine.late-- <= 0;
    if (!*done) return MPI_SUCCESS;
    posted.open -= *r;
    *r = 0;
    return MPI_SUCCESS;
}

static int MPI_Allreduce(const void *in, void *out, int count, int type, int op,
                         MPI_Comm comm)
{
    (void)in, (void)out, (void)count, (void)type, (void)op, (void)comm;
    return MPI_SUCCESS;
}

static int MPI_Iallreduce(const void *in, void *out, int count, int type,
                          int op, MPI_Comm comm, MPI_Request *r)
{
    posted.open++;
    *r = 1;
    return MPI_Allreduce(in, out, count, type, op, comm);
}

static int MPI_Initialized(int *flag) { *flag = 1; return MPI_SUCCESS; }
static int MPI_Finalized(int *flag) { *flag = 0; return MPI_SUCCESS; }
static int MPI_Finalize(void) { return MPI_SUCCESS; }
static int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given)
{
    (void)argc, (void)argv;
    *given = wanted;
    return MPI_SUCCESS;
}
static MPI_Comm MPI_Comm_f2c(int handle) { return handle; }
static int MPI_Comm_dup(MPI_Comm from, MPI_Comm *to)
{
    *to = from;
    return MPI_SUCCESS;
}
static int MPI_Comm_split_type(MPI_Comm from, int how, int key, int info,
                               MPI_Comm *to)
{
    (void)from, (void)how, (void)key, (void)info;
    *to = machine.processes - 1;
    return MPI_SUCCESS;
}
static int MPI_Comm_free(MPI_Comm *comm) { *comm = 0; return MPI_SUCCESS; }
static int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    *rank = comm - 1;
    return MPI_SUCCESS;
}
static int MPI_Comm_size(MPI_Comm comm, int *size)
{
    *size = comm + 1;
    return MPI_SUCCESS;
}
static int MPI_Abort(MPI_Comm comm, int code)
{
    (void)comm;
    return code;
}

#endif
