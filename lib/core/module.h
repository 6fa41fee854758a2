/* SPDX-License-Identifier: BSD-3-Clause */
/* module.h - the modules: what that of CUDA exports (that of factors: see
 * factors.h) and those of MPI, and how they are found; other libraries that are loaded when they
 * are wanted. */
#ifndef SPS_MODULE_H
#define SPS_MODULE_H

#include "core/backend.h"
#include "core/factors.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sps_kernel;
struct sps_wire;

#define SPS_MODULE_ABI 4

/* The one exported symbol of the CUDA module: spsi_cuda_catalogue. */
typedef struct sps_module {
    int abi;                              /* SPS_MODULE_ABI */
    const char *version;                  /* sps_version() when it was built */
    const char *architectures;            /* "sm_90, compute_90" */
    const sps_backend *backend;
    const struct sps_kernel *const *kernels;  /* NULL-terminated */
    const struct sps_wire *wire;
} sps_module;

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

/* Finds and loads the module; NULL and a text in why if there is none.  Loaded
 * once per process, never unloaded. */
const sps_module *spsi_module_load(char *why, size_t size);
/* The same for the factor module. */
const sps_factor_library *spsi_module_factor(char *why, size_t size);
/* The same for the modules of MPI, by implementation. */
enum { SPS_OPENMPI, SPS_MPICH, SPS_ENGINES };
const sps_engine *spsi_module_engine(int which, char *why, size_t size);
/* Whether the file of a CUDA module exists where it is searched.  Loads
 * nothing. */
bool spsi_module_installed(void);
/* Whether it exists, or SPSOLVE_MODULE_PATH is set: then a note tells the user
 * why it could not be loaded.  Loads nothing. */
bool spsi_module_expected(void);
/* Whether the driver reports a GPU; otherwise the reason is written to `why`,
 * of size bytes.  The driver is called once per process. */
bool spsi_module_device(char *why, size_t size);

/* A function of another library, and where its address goes. */
typedef struct spsi_symbol {
    const char *name;                     /* NULL: end of the list */
    void **address;
} spsi_symbol;

/* Loads the shared library `file`, which stays loaded, and finds the symbols;
 * false: one or all are missing, and `why`, of size bytes, says it.  For what
 * is used where it is present and not needed otherwise. */
bool spsi_module_symbols(const char *file, const spsi_symbol *symbols,
                         char *why, size_t size);

#ifdef __cplusplus
}
#endif
#endif
