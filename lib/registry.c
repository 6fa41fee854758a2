/* SPDX-License-Identifier: BSD-3-Clause */
/* registry.c - registered names by kind and number (sps_list of spsolve.h).  The
 * tables are generated from the build lists by build-aux/registry.sh,
 * NULL-terminated; each room declares its own. */
#include <string.h>

#include "core/options.h"
#include "driver/linear.h"
#include "eigen/eigen.h"
#include "plan/planner.h"

static const char *precond_name(int i)
{
    const sps_precond_type *const *type = spsi_preconds;

    if (i == 0) return "none"; /* not a type: the absence of one */
    for (; *type; type++)
        if (!(*type)->choose && strcmp((*type)->name, "none") != 0 &&
            --i == 0)
            return (*type)->name;
    return NULL;
}

static const char *solver_name(int i)
{
    for (const sps_linear_type *const *type = spsi_solvers; *type; type++)
        if (!(*type)->create && i-- == 0) return (*type)->name;
    return NULL;
}

static const char *eigensolver_name(int i)
{
    const sps_eigen_type *const *type = spsi_eigensolvers;

    for (; *type && i > 0; i--) type++;
    return *type ? (*type)->name : NULL;
}

const char *sps_list(const sps_context *ctx, const char *kind, int i)
{
    if (!kind || i < 0) return NULL;
    if (strcmp(kind, "solver") == 0) return solver_name(i);
    if (strcmp(kind, "eigensolver") == 0) return eigensolver_name(i);
    if (strcmp(kind, "precond") == 0) return precond_name(i);
    if (strcmp(kind, "option") == 0) return spsi_options_name(i);
    if (strcmp(kind, "kernel.cpu") == 0)
        return spsi_kernel_name(ctx, SPS_HOST, i);
    if (strcmp(kind, "kernel.cuda") == 0)
        return spsi_kernel_name(ctx, SPS_CUDA, i);
    return NULL;
}
