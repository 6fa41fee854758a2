/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.h - what a module of MPI offers: communication between processes by a
 * library that this one does not link, one module for each implementation. */
#ifndef SPS_ENGINE_H
#define SPS_ENGINE_H

#include "spsolve.h"

#define SPS_ENGINE_ABI 1

/* The one exported object of a module: spsi_engine_catalogue. */
typedef struct sps_engine {
    int abi;                  /* SPS_ENGINE_ABI */
    const char *version;      /* sps_version() when it was built */
    const char *name;         /* of the library it was built against */
    /* Takes a duplicate of the communicator with this Fortran handle, or of the
     * world (SPS_MPI_WORLD), for which MPI is initialised if it is not.  *of is
     * the data of the calls.  NULL, or why not (static). */
    const char *(*open)(int handle, int *rank, int *size, void **of);
    /* Also finalises MPI if open has initialised it. */
    void (*close)(void *of);
    void (*end_all)(void *of, int code); /* ends all processes */
    int (*sum)(double *values, int count, void *of);
    int (*start)(const sps_message *send, int sends,
                 const sps_message *receive, int receives, void *of);
    int (*finish)(void *of);
} sps_engine;

#endif
