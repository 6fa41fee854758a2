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

/* Exit codes of the command.  128 + signal (130, 143, ...) means
 * interrupted. */
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

enum { CLI_MOST = 128 };         /* largest number of options */

/* The values of all options; the defaults are in the tables. */
typedef struct cli_values {
    sps_options settings;        /* the library's options; their texts are valid
                                    until cli_free */
    struct {
        const char *A, *B, *x0, *out, *convert, *rigid_body, *coords;
        const char *nullspace_basis, *near_null_basis, *mass, *constraints;
    } file;                      /* file names, NULL if not given */
    const char *device, *mpi, *partition, *config;
    const char *json, *monitor, *plot, *help;
    sps_context_options machine; /* place and device: from -device (`on`) */
    int eigs, nrhs;
    uint64_t max_bytes;
    struct {
        bool lenient, strict, allow_nonfinite;
    } read;                      /* how files are read */
    bool laplacian;
    bool explain, dry_run, quiet, list, version;
    bool given[CLI_MOST];        /* whether the user has set the option; indexed
                                    by cli_option.number */
    struct {
        sps_place place;
        int ordinal;             /* number of the GPU, or -1 */
    } on;                        /* derived from -device */
} cli_values;

typedef enum cli_kind {
    CLI_FLAG,                    /* bool */
    CLI_TEXT,                    /* const char *, any text */
    CLI_FILE,                    /* const char *, completes file names */
    CLI_OPTIONAL,                /* const char *: NULL, "" or the =VALUE */
    CLI_CHOICE,                  /* const char *, one of choices */
    CLI_INT,                     /* int in [min, max] */
    CLI_REAL,                    /* double in [min, max] */
    CLI_SIZE,                    /* uint64_t; a suffix K, M, G or T is
                                    allowed */
    CLI_NATURAL                  /* uint64_t */
} cli_kind;

/* What "-" as the name of a file stands for. */
typedef enum cli_stream { CLI_NO_STREAM, CLI_INPUT, CLI_OUTPUT } cli_stream;

typedef struct cli_option {
    const char *name;            /* with '_', instead of which '-' may be
                                    typed */
    const char *arg, *standard;  /* name of the argument in texts; default value
                                    as text, or NULL */
    cli_kind kind;
    size_t offset;               /* offset of the member of cli_values; unused
                                    if library */
    double min, max;
    const char *choices;         /* words; "@kind" means the names that
                                    sps_list(kind) gives */
    const char *section, *help;
    const char *aliases, *unit, *readers; /* as in sps_option_info (spsolve.h),
                                             or NULL */
    cli_stream stream;
    bool library;                /* set by sps_options_set */
    int number;
} cli_option;

/* cli_table.c: returns option number i, ordered by sections, or NULL after the
 * last. */
const cli_option *cli_row(int i);
/* Returns the option whose name or alias is the first `length` letters of name,
 * or NULL if there is none. */
const cli_option *cli_find(const char *name, size_t length);
/* Writes "-rank-tolerance" for "rank_tolerance", and returns text. */
const char *cli_dashed(const char *name, char *text, size_t size);

/* Reads the command line and the -config file that it names (the command line
 * has precedence).  Returns 0, or EXIT_USAGE or EXIT_INPUT with a text in
 * error. */
int cli_parse(int argc, char **argv, cli_values *v, char *error, size_t size);
/* Frees the memory to which values of options point. */
void cli_free(void);
/* Returns whether the option was set on the command line or in the -config
 * file. */
bool cli_given(const cli_values *v, const char *name);
/* Returns the value of option o as text, for reports, or NULL if it is not
 * set. */
const char *cli_text(const cli_option *o, const cli_values *v, char *text,
                     size_t size);
/* Returns word number i of the choices of o, or NULL after the last. */
const char *cli_choice(const cli_option *o, int i, char *word, size_t size);
/* Returns this command's equivalent of an option that another program has under
 * this name, or NULL. */
const char *cli_alias(const char *word);

/* Formats a text into error and returns EXIT_USAGE. */
int cli_fail(char *error, size_t size, const char *format, ...)
    CLI_PRINTF(3, 4);

/* clirules.c: rejects options that exclude each other, and sets what the
 * command derives from them; returns 0 or EXIT_USAGE. */
int cli_rules(cli_values *v, char *error, size_t size);
/* Sets v->on from -device; returns 0 or EXIT_USAGE. */
int cli_device(cli_values *v, char *error, size_t size);
/* clihelp.c: prints text, wrapped, with lines that begin at column `at`; the
 * current line already has `column` characters. */
void cli_wrap(FILE *f, const char *text, int column, int at);
/* Print the texts made from the table of options. */
void cli_help(FILE *f, const char *program);
void cli_man(FILE *f);
void cli_completion(FILE *f);

#endif
