/* SPDX-License-Identifier: BSD-3-Clause */
/* registry.c - what exists, by kind and number, and the nearest name to one
 * that does not. */
#include <string.h>

#include "eigen.h"
#include "options.h"
#include "registry.h"
#include "solver.h"

/* The lists end with NULL and their lengths are known nowhere else. */
static const sps_kernel *kernel(const sps_kernel *const *list, int i)
{
    if (!list || i < 0) return NULL;
    for (; *list && i > 0; i--) list++;
    return *list;
}

const sps_kernel *spsi_registry_kernel(const sps_context *ctx, int i)
{
    return kernel(ctx->opt.place == SPS_CUDA ? ctx->module->kernels
                                             : spsi_kernels_host, i);
}

static const char *kernel_name(const sps_kernel *const *list, int i)
{
    const sps_kernel *found = kernel(list, i);

    return found ? found->name : NULL;
}

static const char *name_on_gpus(int i)
{
    const char *const *name = spsi_kernel_names_cuda;

    for (; *name && i > 0; i--) name++;
    return *name;
}

static const char *precond_name(int i)
{
    const sps_precond_type *const *type = spsi_preconds;

    if (i == 0) return "none"; /* not a type: the absence of one */
    for (; *type; type++)
        if (strcmp((*type)->name, "none") != 0 && --i == 0)
            return (*type)->name;
    return NULL;
}

static const char *solver_name(int i)
{
    const sps_solver_type *const *type = spsi_solvers;

    for (; *type && i > 0; i--) type++;
    return *type ? (*type)->name : NULL;
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
        return kernel_name(spsi_kernels_host, i);
    if (strcmp(kind, "kernel.cuda") == 0)
        return !ctx ? name_on_gpus(i)
               : kernel_name(ctx->module ? ctx->module->kernels : NULL, i);
    return NULL;
}

#define LONGEST 32

/* Levenshtein's distance by one rolling row; words beyond LONGEST are far. */
static int distance(const char *a, const char *b)
{
    int row[LONGEST + 1], n = (int)strlen(b);

    if (strlen(a) > LONGEST || n > LONGEST) return LONGEST;
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int corner = row[0];

        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = corner + (a[i - 1] != b[j - 1]);
            int least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

            corner = row[j];
            row[j] = change < least ? change : least;
        }
    }
    return row[n];
}

/* Near: at most a third of the word's letters wrong, and two in short ones. */
const char *spsi_nearest(const sps_context *ctx, const char *kind,
                         const char *word)
{
    size_t length = strlen(word);
    int limit = length < 6 ? 2 : (int)(length < 96 ? length / 3 : LONGEST);
    const char *best = NULL, *name;

    for (int i = 0; (name = sps_list(ctx, kind, i)); i++) {
        int d = distance(word, name);

        if (d > limit || d >= (int)length) continue;
        best = name;
        limit = d - 1;
    }
    return best;
}
