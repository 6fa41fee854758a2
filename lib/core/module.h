/* SPDX-License-Identifier: BSD-3-Clause */
/* module.h - loadable modules: what the CUDA module and the modules of MPI
 * export (for that of factors see factors.h), and how they are found; other
 * libraries that are loaded when they are needed. */
#ifndef SPS_MODULE_H
#define SPS_MODULE_H

#include "core/backend.h"
#include "core/factors.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sps_far_test;
struct sps_kernel;
struct sps_wire;

#define SPS_MODULE_ABI 6

/* The one exported symbol of the CUDA module: spsi_cuda_catalogue. */
typedef struct sps_module {
    int abi;                              /* SPS_MODULE_ABI */
    const char *version;                  /* sps_version() when it was built */
    const char *architectures;            /* "sm_90, compute_90" */
    const sps_backend *backend;
    const struct sps_kernel *const *kernels;  /* NULL-terminated */
    const struct sps_wire *wire;
    /* For tests: csr_multiply of the backend for matrices in host memory. */
    sps_status (*multiply_far)(sps_context *ctx, const sps_csr *A,
                               const sps_csr *B,
                               const struct sps_far_test *test, sps_csr **C_p);
} sps_module;

#define SPS_ENGINE_ABI 1

/* The one exported object of a module: spsi_engine_catalogue. */
typedef struct sps_engine {
    int abi;                  /* SPS_ENGINE_ABI */
    const char *version;      /* sps_version() when it was built */
    const char *name;         /* of the library it was built against */
    /* Duplicates the communicator with this Fortran handle, or MPI_COMM_WORLD
     * for SPS_MPI_WORLD, for which MPI is initialised if it is not yet.  *of is
     * passed to the other functions.  Returns NULL, or a static text that says
     * what failed. */
    const char *(*open)(int handle, int *rank, int *size, void **of);
    /* Also finalises MPI if open has initialised it. */
    void (*close)(void *of);
    void (*end_all)(void *of, int code); /* ends all processes (MPI_Abort) */
    int (*sum)(double *values, int count, void *of);
    int (*start)(const sps_message *send, int sends,
                 const sps_message *receive, int receives, void *of);
    int (*finish)(void *of);
} sps_engine;

/* Finds and loads the CUDA module; returns NULL with a text in `why` if there
 * is none.  It is loaded once per process and never unloaded. */
const sps_module *spsi_module_load(char *why, size_t size);
/* As spsi_module_load, for the module with sparse direct factors (MUMPS). */
const sps_factor_library *spsi_module_factor(char *why, size_t size);
/* Returns its path with the name and version of the library, or "absent: " and
 * why; loads it if that has not been done.  Static. */
const char *spsi_module_factor_state(void);
/* As spsi_module_load, for the module of an MPI implementation. */
enum { SPS_OPENMPI, SPS_MPICH, SPS_ENGINES };
const sps_engine *spsi_module_engine(int which, char *why, size_t size);
/* Returns whether the file of a CUDA module exists where it is searched for.
 * Loads nothing. */
bool spsi_module_installed(void);
/* Returns whether that file exists or SPSOLVE_MODULE_PATH is set, so that a
 * note should say why the module could not be loaded.  Loads nothing. */
bool spsi_module_expected(void);
/* Returns whether the driver reports a GPU; otherwise the reason is written to
 * `why`, of `size` bytes.  The driver is called once per process. */
bool spsi_module_device(char *why, size_t size);

/* A function of another library, and where its address goes. */
typedef struct spsi_symbol {
    const char *name;                     /* NULL: end of the list */
    void **address;
} spsi_symbol;

/* Loads the shared library `file`, which stays loaded, and finds the symbols.
 * Returns false, with the reason in `why` (of `size` bytes), if the library or
 * a symbol is missing.  For libraries that are used if they are present. */
bool spsi_module_symbols(const char *file, const spsi_symbol *symbols,
                         char *why, size_t size);

#ifdef __cplusplus
}
#endif
#endif
