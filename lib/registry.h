/* SPDX-License-Identifier: BSD-3-Clause */
/* registry.h - the lists: what is built in, by kind.  The arrays are
 * generated from the build lists by build-aux/registry.sh, NULL-terminated. */
#ifndef SPS_REGISTRY_H
#define SPS_REGISTRY_H

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sps_precond_type;
struct sps_solver_type;
struct sps_eigen_type;

extern const sps_kernel *const spsi_kernels_host[];
extern const struct sps_precond_type *const spsi_preconds[];
extern const struct sps_solver_type *const spsi_solvers[];
extern const struct sps_eigen_type *const spsi_eigensolvers[];
/* Names of all kernels of the CUDA module, built here or not. */
extern const char *const spsi_kernel_names_cuda[];

#define SPS_MODULE_ABI 1

/* The one exported symbol of the CUDA module: spsi_cuda_catalogue. */
typedef struct sps_module {
    int abi;                              /* SPS_MODULE_ABI */
    const char *version;                  /* SPS_VERSION text it was built as */
    const char *architectures;            /* "sm_90, compute_90" */
    const sps_backend *backend;
    const sps_kernel *const *kernels;     /* NULL-terminated */
} sps_module;

/* Kernel number i that can run in the place of ctx, NULL past the last. */
const sps_kernel *spsi_registry_kernel(const sps_context *ctx, int i);

/* The name of sps_list(ctx, kind, .) that is nearest to word by edit distance,
 * for "did you mean"; NULL when none is near. */
const char *spsi_nearest(const sps_context *ctx, const char *kind,
                         const char *word);

/* module.c: finds and loads the module; NULL and a text in why when there is
 * none.  Loaded once per process, never unloaded. */
const sps_module *spsi_module_load(char *why, size_t size);
/* After that: whether somebody counts on a module, having named one or
 * installed one.  Its absence is then worth the paths. */
bool spsi_module_expected(void);

#ifdef __cplusplus
}
#endif
#endif
