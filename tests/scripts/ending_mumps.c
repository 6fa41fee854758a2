/* SPDX-License-Identifier: BSD-3-Clause */
/* ending_mumps.c - check_factor_ends.sh: a library in place of MUMPS whose
 * analysis prints, and then ends the process in the way that WAY names. */
#include <dmumps_c.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mpi_abort_(const int *comm, const int *code, int *failed);
void _gfortran_stop_string(const char *text, size_t length, _Bool quiet);
void _gfortran_runtime_error_at(const char *where, const char *text, ...);
void _gfortran_os_error_at(const char *where, const char *text, ...);

static void print(void)
{
    printf("NOISE %d\n", 1);
    puts("NOISE 2");
    fprintf(stderr, "NOISE %d\n", 3);
    fwrite("NOISE 4\n", 1, 8, stderr);
    perror("NOISE 5");
}

/* What code of somebody else does: it ends the process. */
static void *end_elsewhere(void *unused)
{
    (void)unused;
    exit(7);
}

static void end(const char *way)
{
    int code = 1;
    pthread_t other;

    if (!strcmp(way, "elsewhere") &&
        !pthread_create(&other, NULL, end_elsewhere, NULL))
        pthread_join(other, NULL);
    if (!strcmp(way, "exit")) exit(3);
    if (!strcmp(way, "raise")) raise(SIGABRT);
    if (!strcmp(way, "mpi")) mpi_abort_(&code, &code, &code);
    if (!strcmp(way, "stop")) _gfortran_stop_string("NOISE", 5, 0);
    if (!strcmp(way, "runtime"))
        _gfortran_runtime_error_at("NOISE", "NOISE %d", 1);
    if (!strcmp(way, "memory"))
        _gfortran_os_error_at("NOISE", "NOISE %d", 1);
}

void dmumps_c(DMUMPS_STRUC_C *id)
{
    if (id->job != 1) return;
    print();
    end(getenv("WAY"));
}
