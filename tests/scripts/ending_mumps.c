/* SPDX-License-Identifier: BSD-3-Clause */
/* ending_mumps.c - check_factor_ends.sh: a library in place of MUMPS whose
 * analysis prints, and then ends the process in the way that WAY names.  What it
 * prints in another thread and at the end of the process is to be seen. */
#include <dmumps_c.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mpi_abort_(const int *comm, const int *code, int *failed);
void _gfortran_stop_string(const char *text, size_t length, _Bool quiet);
void _gfortran_runtime_error_at(const char *where, const char *text, ...);
void _gfortran_os_error_at(const char *where, const char *text, ...);

/* What Fortran passes to its library for a WRITE (libgfortran 8 and later). */
typedef struct transfer {
    int flags, unit;
    const char *file;
    int line;
    char unused[92];
    char *to;                 /* the variable that is written, and its length */
    size_t length;
    char rest[1024];
} transfer;

_Static_assert(offsetof(transfer, to) == 112, "as in libgfortran's io.h");

void _gfortran_st_write(transfer *t);
void _gfortran_transfer_character_write(transfer *t, const char *text,
                                        size_t length);
void _gfortran_st_write_done(transfer *t);
int __printf_chk(int flag, const char *format, ...);
int __fprintf_chk(FILE *to, int flag, const char *format, ...);

static void transfer_text(transfer *t, const char *text)
{
    _gfortran_st_write(t);
    _gfortran_transfer_character_write(t, text, strlen(text));
    _gfortran_st_write_done(t);
}

/* WRITE (6, *) text */
static void write_out(const char *text)
{
    transfer_text(&(transfer){ .flags = 128, .unit = 6, .file = "f" }, text);
}

/* WRITE (to, *) text */
static void write_in(char *to, size_t length, const char *text)
{
    transfer_text(&(transfer){ .flags = 16384 + 128, .unit = -1, .file = "f",
                               .to = to, .length = length }, text);
}

static char written[33];

static void print(const char *what)
{
    char text[32];

    printf("%s %d\n", what, 1);
    snprintf(text, sizeof text, "%s 2", what);
    puts(text);
    fprintf(stdout, "%s %d\n", what, 3);
    fwrite(what, 1, strlen(what), stdout);
    __printf_chk(1, " %d\n%s %d\n", 4, what, 5);
    __fprintf_chk(stdout, 1, "%s %d", what, 6);
    putchar('\n');
    fflush(stdout);
    snprintf(text, sizeof text, "%s 7", what);
    write_out(text);
    perror(what);
}

__attribute__((destructor)) static void print_late(void)
{
    print("LATE");
    printf("internal:%s\n", written);
}

/* What code of somebody else does: it prints and ends the process. */
static void *end_elsewhere(void *unused)
{
    (void)unused;
    print("ELSEWHERE");
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
    print("NOISE");
    write_in(written, sizeof written - 1, "within");
    end(getenv("WAY"));
}
