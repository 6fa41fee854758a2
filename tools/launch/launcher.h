/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.h - programs that run as several processes, as mpirun starts them.
 *
 * All processes perform the same steps, and agree after each whether one has
 * failed.  Only one of them prints an error, and all end with its code. */
#ifndef LAUNCHER_H
#define LAUNCHER_H

#include "spsolve.h"

#include <stdbool.h>

typedef struct launch {
    sps_comm *comm;              /* NULL: a single process */
    int rank, size;              /* 0 and 1 for a single process */
} launch;

/* What the launcher (Open MPI; MPICH and other users of its PMI) has told this
 * process by its environment: the number of processes, its own number, and the
 * number of processes on this machine; 1, 0 and 1 if it was not started by
 * one. */
int launch_size(void);
int launch_rank(void);
int launch_local(void);
/* Returns `most`, or the share of this process in the cores of the machine if
 * that is less: processes that may use the same cores share them. */
int launch_threads(int most);

/* Joins the processes if the launcher has started more than one.  Otherwise, or
 * if `apart`, this process remains a single one.  Returns false, with the
 * text in sps_context_error(NULL), if they cannot be joined. */
bool launch_open(launch *l, bool apart);
void launch_close(launch *l);

/* Sums over the processes, in place.  If this fails, all processes are ended
 * with the exit code `code`. */
void launch_sum(const launch *l, double *values, int count, int code);
/* Agrees on an exit code, after a step that has ended here with `code`, 0 if
 * it has succeeded.  peer: it has failed because another process has.  Returns
 * the code of the lowest process with a failure of its own, 0 if there is no
 * failure.  *tells becomes true on that process alone, which is to print its
 * error. */
int launch_agree(const launch *l, int code, bool peer, bool *tells);

#endif
