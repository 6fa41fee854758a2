/* SPDX-License-Identifier: BSD-3-Clause */
/* standins.c - functions that MUMPS, METIS and PORD find here instead of in
 * libc or MPI.  The module is loaded with RTLD_DEEPBIND, so that it and the
 * libraries that it loads search their own scope first, in which the module
 * comes first.  Nothing outside of that scope sees these functions.
 *
 *   exit, raise,      a library that gives up ends the process (MUMPS by
 *   mpi_abort_        MPI_ABORT, PORD by exit, METIS by raise): here the call
 *                     into it returns instead, and it is never called again
 *   rand, srand       METIS and PORD would draw from the process's sequence, so
 *                     that their orderings, and with them bits, would depend on
 *                     what other code has drawn
 *   __sysv_signal     METIS would set signal handlers of the process
 *
 * Only one caller at a time may use them (lib/core/factors.h). */
#include "factor/standins.h"

#include <stdlib.h>

standins spsi_standins;

static unsigned long long state;

void spsi_standins_seed(void)
{
    state = 0;
}

/* A linear congruential generator with the multiplier of Knuth's MMIX. */
int rand(void)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)(state >> 33);
}

void srand(unsigned seed)
{
    state = seed;
}

static _Noreturn void give_up(void)
{
    if (spsi_standins.armed) longjmp(spsi_standins.back, 1);
    /* Not reached: these functions are called within a guarded call only. */
    abort();
}

_Noreturn void exit(int code)
{
    (void)code;
    give_up();
}

int raise(int signal);
int raise(int signal)
{
    (void)signal;
    give_up();
}

void mpi_abort_(void);
void mpi_abort_(void)
{
    give_up();
}

typedef void handler(int);
handler *__sysv_signal(int signal, handler *h);
handler *__sysv_signal(int signal, handler *h)
{
    (void)signal;
    (void)h;
    return NULL;
}
