/* SPDX-License-Identifier: BSD-3-Clause */
/* standins.c - functions that MUMPS, METIS and PORD find here instead of in
 * libc, in Fortran's run-time library or in MPI.  The module is loaded with
 * RTLD_DEEPBIND, so that it and the libraries that it loads search their own
 * scope first, in which the module comes first.  Code outside of that scope
 * does not see these functions; but a library is in a process once: one that
 * the process had loaded before keeps libc's, and one that is loaded here
 * (MUMPS, libgfortran) keeps these for whoever uses it later.
 *
 *   exit, raise,      a library that gives up ends the process (MUMPS by
 *   mpi_abort_,       MPI_ABORT, PORD by exit, METIS by raise, an ALLOCATE of
 *   _gfortran_...     Fortran without memory by an error): here the call into
 *                     it returns instead, and it is never called again
 *   printf and        their parameters silence MUMPS and METIS, but for errors
 *   others, WRITE     inside of them and for lack of memory
 *   rand, srand       METIS and PORD would draw from the process's sequence, so
 *                     that their orderings, and with them bits, would depend on
 *                     what other code has drawn
 *   __sysv_signal     METIS would set signal handlers of the process
 *
 * Only one caller at a time may use them (lib/core/factors.h). */
#include "factor/standins.h"

#include <dlfcn.h>
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

void spsi_standins_arm(void)
{
    spsi_standins.thread = pthread_self();
    spsi_standins.armed = true;
}

/* Returns unless the calling thread has a guarded call in progress. */
static void return_to_guard(void)
{
    if (spsi_standins.armed &&
        pthread_equal(spsi_standins.thread, pthread_self()))
        longjmp(spsi_standins.back, 1);
}

/* Outside of a guarded call, which only another user of a library that was
 * loaded here can be, exit and raise are those of libc. */
_Noreturn void exit(int code)
{
    void (*next)(int);

    return_to_guard();
    *(void **)&next = dlsym(RTLD_NEXT, "exit");
    if (next) next(code);
    abort();
}

int raise(int signal);
int raise(int signal)
{
    int (*next)(int);

    return_to_guard();
    *(void **)&next = dlsym(RTLD_NEXT, "raise");
    return next ? next(signal) : -1;
}

static _Noreturn void give_up(void)
{
    return_to_guard();
    abort();
}

/* Functions whose arguments are not used; the name that others call is given to
 * the assembler, for the compiler knows the types of some of them. */
#define ENDS(name)                                                             \
    _Noreturn void ends_##name(void) __asm__(#name);                           \
    _Noreturn void ends_##name(void) { give_up(); }
#define SILENT(name)                                                           \
    int silent_##name(void) __asm__(#name);                                    \
    int silent_##name(void) { return 0; }

ENDS(mpi_abort_)
ENDS(_gfortran_stop_string)
ENDS(_gfortran_runtime_error_at)
ENDS(_gfortran_os_error_at)
SILENT(printf)
SILENT(fprintf)
SILENT(puts)
SILENT(putchar)
SILENT(fwrite)
SILENT(perror)
SILENT(__printf_chk)
SILENT(__fprintf_chk)
SILENT(__vfprintf_chk)
SILENT(_gfortran_st_write)
SILENT(_gfortran_st_write_done)
SILENT(_gfortran_transfer_array_write)
SILENT(_gfortran_transfer_character_write)
SILENT(_gfortran_transfer_integer_write)
SILENT(_gfortran_transfer_logical_write)
SILENT(_gfortran_transfer_real_write)

typedef void handler(int);
handler *__sysv_signal(int signal, handler *h);
handler *__sysv_signal(int signal, handler *h)
{
    (void)signal;
    (void)h;
    return NULL;
}
