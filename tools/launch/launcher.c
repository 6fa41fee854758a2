/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.c - several processes of a program (launcher.h). */
#include "tools/launch/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int told(const char *const names[2], int otherwise)
{
    for (int i = 0; i < 2; i++)
        if (getenv(names[i])) return atoi(getenv(names[i]));
    return otherwise;
}

int launch_size(void)
{
    static const char *const names[2] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" };

    return told(names, 1);
}

int launch_rank(void)
{
    static const char *const names[2] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK" };

    return told(names, 0);
}

int launch_local(void)
{
    static const char *const names[2] = { "OMPI_COMM_WORLD_LOCAL_SIZE",
                                          "MPI_LOCALNRANKS" };

    return told(names, 1);
}

int launch_threads(int most)
{
    const int local = launch_local();
    const int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const int share = local > 0 && cores > local ? cores / local : 1;

    return local < 2 || most < share ? most : share;
}

bool launch_open(launch *l, bool apart)
{
    *l = (launch){ .size = 1 };
    if (apart || launch_size() < 2) return true;
    if (sps_comm_mpi(SPS_MPI_WORLD, &l->comm) != SPS_OK) return false;
    sps_comm_shape(l->comm, &l->rank, &l->size);
    return true;
}

void launch_close(launch *l)
{
    sps_comm_destroy(&l->comm);
}

/* Ends all processes, since there is no other way to inform them of the
 * failure. */
static void lost(const launch *l, const char *why, int code)
{
    fprintf(stderr, "process %d of %d: %s\n", l->rank, l->size, why);
    sps_comm_abort(l->comm, code);
    exit(code);
}

void launch_sum(const launch *l, double *values, int count, int code)
{
    if (l->size > 1 && sps_comm_sum(l->comm, values, count) != SPS_OK)
        lost(l, sps_context_error(NULL), code);
}

int launch_agree(const launch *l, int code, bool peer, bool *tells)
{
    const int otherwise = code ? code : EXIT_FAILURE;
    double *codes = calloc(2 * (size_t)l->size, sizeof *codes);
    int who = -1;

    if (!codes) lost(l, "no memory for the states of the processes", otherwise);
    codes[2 * l->rank] = code;
    codes[2 * l->rank + 1] = code && !peer;
    launch_sum(l, codes, 2 * l->size, otherwise);
    for (int r = l->size - 1; r >= 0; r--)
        if (codes[2 * r] != 0 && (who < 0 || codes[2 * r + 1] != 0 ||
                                  codes[2 * who + 1] == 0))
            who = r;
    code = who >= 0 ? (int)codes[2 * who] : 0;
    *tells = who == l->rank;
    free(codes);
    return code;
}
