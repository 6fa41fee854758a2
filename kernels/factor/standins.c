/* SPDX-License-Identifier: BSD-3-Clause */
/* standins.c - functions that MUMPS, METIS and PORD find here instead of in
 * libc, in Fortran's run-time library or in MPI.  The module is loaded with
 * RTLD_DEEPBIND, so that it and the libraries that it loads search their own
 * scope first, in which the module comes first.  Code outside of that scope
 * does not see these functions; but a library is in a process once: one that
 * the process had loaded before keeps libc's, and one that is loaded here
 * (MUMPS, libgfortran) keeps these for whoever uses it later.  So they differ
 * from what they stand in for only in the thread that has a guarded call in
 * progress; for all others they call it.
 *
 *   exit, raise,      a library that gives up ends the process (MUMPS by
 *   mpi_abort_,       MPI_ABORT, PORD by exit, METIS by raise, an ALLOCATE of
 *   _gfortran_...     Fortran without memory by an error): here the call into
 *                     it returns instead, and it is never called again
 *   printf and        their parameters silence MUMPS and METIS, but for errors
 *   others, WRITE     inside of them and for lack of memory; a WRITE to a
 *                     variable of type CHARACTER prints nothing, and works
 *   rand, srand       METIS and PORD would draw from the process's sequence, so
 *                     that their orderings, and with them bits, would depend on
 *                     what other code has drawn
 *   __sysv_signal     METIS would set signal handlers of the process
 *
 * Only one caller at a time may use them (lib/core/factors.h). */
#undef _FORTIFY_SOURCE         /* vfprintf is libc's, not one of these */
#include "factor/standins.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

standins spsi_standins;

static unsigned long long state;

void spsi_standins_seed(void)
{
    state = 0;
}

void spsi_standins_arm(void)
{
    spsi_standins.thread = pthread_self();
    spsi_standins.armed = true;
}

/* Returns whether the calling thread has a guarded call in progress. */
static bool guarded(void)
{
    return spsi_standins.armed &&
           pthread_equal(spsi_standins.thread, pthread_self());
}

static void return_to_guard(void)
{
    if (guarded()) longjmp(spsi_standins.back, 1);
}

/* Functions are defined under a name of this file, which the assembler
 * replaces: the compiler knows some of the real names.  `next` is the function
 * that the defined one stands in for. */
#define STAND_IN(type, name, parameters)                                       \
    type standin_##name parameters __asm__(#name);                             \
    type standin_##name parameters
#define NEXT(type, name, parameters)                                           \
    type(*next) parameters;                                                    \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

/* ------------------------------------------------------ ends of the process */

#define ENDS(name, parameters, ...)                                            \
    STAND_IN(_Noreturn void, name, parameters)                                 \
    {                                                                          \
        NEXT(void, name, parameters);                                          \
        return_to_guard();                                                     \
        if (next) next(__VA_ARGS__);                                           \
        abort();                                                               \
    }
/* An error of Fortran, whose text is a format. */
#define ENDS_SAYING(name)                                                      \
    STAND_IN(_Noreturn void, name, (const char *where, const char *what, ...)) \
    {                                                                          \
        NEXT(void, name, (const char *, const char *, ...));                   \
        char text[1024];                                                       \
        va_list more;                                                          \
                                                                               \
        return_to_guard();                                                     \
        va_start(more, what);                                                  \
        vsnprintf(text, sizeof text, what, more);                              \
        va_end(more);                                                          \
        if (next) next(where, "%s", text);                                     \
        abort();                                                               \
    }

ENDS(exit, (int code), code)
ENDS(mpi_abort_, (int *comm, int *code, int *failed), comm, code, failed)
ENDS(_gfortran_stop_string, (const char *text, size_t length, bool quiet),
     text, length, quiet)
ENDS_SAYING(_gfortran_runtime_error_at)
ENDS_SAYING(_gfortran_os_error_at)

STAND_IN(int, raise, (int signal))
{
    NEXT(int, raise, (int));
    return_to_guard();
    return next ? next(signal) : -1;
}

/* ------------------------------------------------------------------- output */

#define SILENT(type, name, parameters, ...)                                    \
    STAND_IN(type, name, parameters)                                           \
    {                                                                          \
        NEXT(type, name, parameters);                                          \
        return guarded() || !next ? 0 : next(__VA_ARGS__);                     \
    }
#define SILENT_FORMAT(name, parameters, ...)                                   \
    STAND_IN(int, name, parameters)                                            \
    {                                                                          \
        va_list more;                                                          \
        int count;                                                             \
                                                                               \
        if (guarded()) return 0;                                               \
        va_start(more, format);                                                \
        count = __VA_ARGS__;                                                   \
        va_end(more);                                                          \
        return count;                                                          \
    }
/* `io` begins with flags, one of which says that an internal file, a variable,
 * is written. */
#define INTERNAL (1 << 14)
#define SILENT_WRITE(name, parameters, ...)                                    \
    STAND_IN(void, name, parameters)                                           \
    {                                                                          \
        NEXT(void, name, parameters);                                          \
        if (next && (!guarded() || *io & INTERNAL)) next(__VA_ARGS__);         \
    }

SILENT(int, puts, (const char *text), text)
SILENT(int, putchar, (int c), c)
SILENT(size_t, fwrite, (const void *from, size_t size, size_t n, FILE *to),
       from, size, n, to)
SILENT(int, __vfprintf_chk, (FILE *to, int flag, const char *format,
       va_list more), to, flag, format, more)
SILENT_FORMAT(printf, (const char *format, ...), vprintf(format, more))
SILENT_FORMAT(fprintf, (FILE *to, const char *format, ...),
              vfprintf(to, format, more))
SILENT_FORMAT(__printf_chk, (int flag, const char *format, ...),
              standin___vfprintf_chk(stdout, flag, format, more))
SILENT_FORMAT(__fprintf_chk, (FILE *to, int flag, const char *format, ...),
              standin___vfprintf_chk(to, flag, format, more))
SILENT_WRITE(_gfortran_st_write, (int32_t *io), io)
SILENT_WRITE(_gfortran_st_write_done, (int32_t *io), io)
SILENT_WRITE(_gfortran_transfer_array_write,
             (int32_t *io, void *from, int kind, size_t length),
             io, from, kind, length)
SILENT_WRITE(_gfortran_transfer_character_write,
             (int32_t *io, void *from, size_t length), io, from, length)
SILENT_WRITE(_gfortran_transfer_integer_write,
             (int32_t *io, void *from, int kind), io, from, kind)
SILENT_WRITE(_gfortran_transfer_logical_write,
             (int32_t *io, void *from, int kind), io, from, kind)
SILENT_WRITE(_gfortran_transfer_real_write,
             (int32_t *io, void *from, int kind), io, from, kind)

STAND_IN(void, perror, (const char *text))
{
    const int error = errno;
    NEXT(void, perror, (const char *));

    errno = error;
    if (!guarded() && next) next(text);
}

/* ----------------------------------------------------- state of the process */

/* A linear congruential generator with the multiplier of Knuth's MMIX. */
static int next_rand(void)
{
    NEXT(int, rand, (void));

    return next ? next() : 0;
}

STAND_IN(int, rand, (void))
{
    if (!guarded()) return next_rand();
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)(state >> 33);
}

STAND_IN(void, srand, (unsigned seed))
{
    NEXT(void, srand, (unsigned));

    if (guarded()) state = seed;
    else if (next) next(seed);
}

typedef void handler(int);
SILENT(handler *, __sysv_signal, (int signal, handler *h), signal, h)
