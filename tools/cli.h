/* SPDX-License-Identifier: BSD-3-Clause */
/* cli.h - the command line of `solve`: one table of options that parses,
 * reads configuration files, and writes -help, the manual page and the shell
 * completion, so that none of them can disagree. */
#ifndef CLI_H
#define CLI_H

#include "spsolve.h"

#include <stdio.h>

#if defined(__GNUC__)
#define CLI_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define CLI_PRINTF(a, b)
#endif

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

/* Everything the options say, with the defaults of the table. */
typedef struct cli_values {
    const char *A, *B, *x0, *out, *rigid_body, *coords;
    const char *mass, *constraints, *which;
    int eigs, block;
    double sigma;
    bool verify_count;
    const char *solver, *precond, *nullspace, *norm;
    const char *device, *kernel, *wisdom, *config;
    const char *json, *monitor, *plot, *help;
    int nrhs, maxit, threads, precond_block, precond_degree, restart;
    int fsai_power;
    const char *scale, *reorder, *order, *dense;
    const char *precision, *basis, *precond_precision;
    double droptol, fill;
    int recycle, bicgstab_l, idr_s;
    double rtol, atol, maxtime, rank_tol;
    uint64_t seed, maxmem;
    bool lenient, strict, allow_nonfinite;
    bool flexible, laplacian, strict_nonfinite;
    bool explain, dry_run, quiet, list, version;
    bool given_nrhs, given_sigma; /* said, not defaulted */
    /* derived */
    sps_place place;
    int ordinal;                 /* of the GPU */
    sps_norm norm_kind;
} cli_values;

typedef enum cli_kind {
    CLI_FLAG,                    /* bool */
    CLI_TEXT,                    /* const char *, any text */
    CLI_FILE,                    /* const char *, completes file names */
    CLI_OPTIONAL,                /* const char *: NULL, "" or the =VALUE */
    CLI_CHOICE,                  /* const char *, one of choices */
    CLI_INT,                     /* int in [min, max] */
    CLI_REAL,                    /* finite double in [min, max] */
    CLI_SIZE,                    /* uint64_t, with K, M, G or T behind */
    CLI_NATURAL                  /* uint64_t */
} cli_kind;

typedef struct cli_option {
    const char *name, *arg, *standard; /* standard: default as text, or NULL */
    cli_kind kind;
    size_t offset;               /* of the member of cli_values */
    double min, max;
    const char *choices;         /* words; "@kind" stands for sps_list(kind) */
    const char *section, *help;
} cli_option;

/* The table, ended by a NULL name. */
extern const cli_option cli_options[];

/* Reads the command line and the -config file it names (the command line
 * wins).  Returns 0, or EXIT_USAGE / EXIT_INPUT with a text in error. */
int cli_parse(int argc, char **argv, cli_values *v, char *error, size_t size);
/* Frees the texts that a -config file brought. */
void cli_free(void);
/* The value of option o as text (for reports); NULL when unset. */
const char *cli_text(const cli_option *o, const cli_values *v, char *text,
                     size_t size);
/* Word number i of the choices of o, NULL past the last. */
const char *cli_choice(const cli_option *o, int i, char *word, size_t size);
/* The candidate nearest to word, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *candidates,
                        int count);
/* Our name for an option of other programs, or NULL. */
const char *cli_alias(const char *word);

/* clieigen.c: true, with a text: the words of eigenvalues and others do not go
 * together. */
bool cli_eigen_fault(const cli_values *v, char *text, size_t size);
/* clihelp.c: writes the texts made from the table. */
/* Prints text from column at on, wrapped; the cursor stands at column. */
void cli_wrap(FILE *f, const char *text, int column, int at);
void cli_help(FILE *f, const char *program);
void cli_man(FILE *f);
void cli_completion(FILE *f);

#endif
