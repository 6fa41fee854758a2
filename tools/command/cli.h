/* SPDX-License-Identifier: BSD-3-Clause */
/* cli.h - the command line.  Two tables of options, the library's and that of
 * the command, are the source for parsing it and configuration files and for
 * the texts of -help, the manual page and the shell completion, so that these
 * cannot disagree. */
#ifndef CLI_H
#define CLI_H

#include "spsolve.h"

#include <stdio.h>

#if defined(__GNUC__)
#define CLI_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define CLI_PRINTF(a, b)
#endif

#define CLI_PROGRAM "spsolve"

/* Exit codes of the command.  130, 143, ...: 128 + signal, interrupted. */
enum {
    EXIT_CONVERGED = 0,
    EXIT_NOT_CONVERGED = 1,
    EXIT_USAGE = 2,
    EXIT_INPUT = 3,
    EXIT_BREAKDOWN = 4,
    EXIT_MEMORY = 5,
    EXIT_GPU = 6,
    EXIT_OUTPUT = 7,
    EXIT_BUG = 70
};

enum { CLI_MOST = 128 };         /* options at most */

/* The values of all options; the defaults are in the tables. */
typedef struct cli_values {
    sps_options settings;        /* the library's own; texts live until
                                    cli_free */
    struct {
        const char *A, *B, *x0, *out, *convert, *rigid_body, *coords;
        const char *nullspace_basis, *mass, *constraints;
    } file;                      /* names; NULL: none */
    const char *device, *mpi, *config, *json, *monitor, *plot, *help;
    int eigs, nrhs, threads;
    uint64_t seed, max_bytes, max_device_bytes;
    bool lenient, strict, allow_nonfinite, laplacian;
    bool explain, dry_run, quiet, list, version;
    bool given[CLI_MOST];        /* set by the user; index: cli_option.number */
    /* derived */
    sps_place place;
    int ordinal;                 /* of the GPU */
} cli_values;

typedef enum cli_kind {
    CLI_FLAG,                    /* bool */
    CLI_TEXT,                    /* const char *, any text */
    CLI_FILE,                    /* const char *, completes file names */
    CLI_OPTIONAL,                /* const char *: NULL, "" or the =VALUE */
    CLI_CHOICE,                  /* const char *, one of choices */
    CLI_INT,                     /* int in [min, max] */
    CLI_REAL,                    /* double in [min, max]: the library's */
    CLI_SIZE,                    /* uint64_t; K, M, G or T may follow */
    CLI_NATURAL                  /* uint64_t */
} cli_kind;

/* What "-" as the name of a file stands for. */
typedef enum cli_stream { CLI_NO_STREAM, CLI_INPUT, CLI_OUTPUT } cli_stream;

typedef struct cli_option {
    const char *name;            /* with '_', for which '-' may be typed */
    const char *arg, *standard;  /* standard: default as text, or NULL */
    cli_kind kind;
    size_t offset;               /* of the member of cli_values; unused if
                                    library */
    double min, max;
    const char *choices;         /* words; "@kind" stands for sps_list(kind) */
    const char *section, *help;
    const char *aliases, *unit, *readers; /* as in sps_option_info, or NULL */
    cli_stream stream;
    bool library;                /* set by sps_options_set */
    int number;
} cli_option;

/* cli_table.c.  Option number i, ordered by sections; NULL past the last. */
const cli_option *cli_row(int i);
/* The option whose name or alias is the first `length` letters of name; NULL:
 * unknown. */
const cli_option *cli_find(const char *name, size_t length);
/* "-rank-tolerance" from "rank_tolerance". */
const char *cli_dashed(const char *name, char *text, size_t size);

/* Reads the command line and the -config file it names (the command line
 * wins).  Returns 0, or EXIT_USAGE / EXIT_INPUT with a text in error. */
int cli_parse(int argc, char **argv, cli_values *v, char *error, size_t size);
/* Frees the memory to which values of options point. */
void cli_free(void);
/* Whether the option was set on the command line or in the -config file. */
bool cli_given(const cli_values *v, const char *name);
/* The value of option o as text (for reports); NULL when unset. */
const char *cli_text(const cli_option *o, const cli_values *v, char *text,
                     size_t size);
/* Word number i of the choices of o, NULL past the last. */
const char *cli_choice(const cli_option *o, int i, char *word, size_t size);
/* For the name of an option in another program: the name of our equivalent, or
 * NULL. */
const char *cli_alias(const char *word);

/* Formats the text into error; returns EXIT_USAGE. */
int cli_fail(char *error, size_t size, const char *format, ...)
    CLI_PRINTF(3, 4);

/* clirules.c.  Refuses options that exclude each other; returns 0 or
 * EXIT_USAGE. */
int cli_rules(cli_values *v, char *error, size_t size);
/* Sets v->place and v->ordinal from -device, likewise. */
int cli_device(cli_values *v, char *error, size_t size);
/* clihelp.c.  Prints text with lines that begin at column `at`, wrapped; the
 * current line already has `column` characters. */
void cli_wrap(FILE *f, const char *text, int column, int at);
/* The texts made from the table of options. */
void cli_help(FILE *f, const char *program);
void cli_man(FILE *f);
void cli_completion(FILE *f);

#endif
