/* SPDX-License-Identifier: BSD-3-Clause */
/* mtxgen.h - what mtxgen is told to write, and the writing of one file. */
#ifndef MTXGEN_H
#define MTXGEN_H

#include "tools/generator/gen.h"
#include "tools/launch/launcher.h"

enum { USAGE = 2, MEMORY = 5, OUTPUT = 7 };   /* exit codes */

typedef struct mtxgen_job {
    gen_spec spec;
    const char *out;             /* NULL: standard output */
    const char *mass, *coords;   /* NULL if not requested */
    bool consistent;             /* whether the mass matrix is the consistent
                                    one */
    bool coordinates;            /* out is for coordinates, not for a matrix */
    const char *command;
    int threads;
    bool quiet;
    bool apart;                  /* processes of one launcher are separate
                                    runs */
    launch of;                   /* the processes that write together */
} mtxgen_job;

/* Writes the matrix, or the coordinates, to j->out; returns 0 or an exit code
 * with the text of an error, each process its own. */
int mtxgen_write(const gen *g, const mtxgen_job *j);

#endif
