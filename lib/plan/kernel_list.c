/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_list.c - the kernels of each backend: those built into the library,
 * and those of the CUDA module. */
#include <string.h>

#include "core/module.h"
#include "plan/measure.h"

/* Returns kernel i of a list that ends with NULL, or NULL past its end. */
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

const sps_kernel *spsi_kernel_named(const sps_context *ctx, const char *name)
{
    const sps_kernel *found;

    for (int i = 0; (found = spsi_registry_kernel(ctx, i)); i++)
        if (strcmp(found->name, name) == 0) break;
    return found;
}

static const char *name_on_gpus(int i)
{
    const char *const *name = spsi_kernel_names_cuda;

    for (; *name && i > 0; i--) name++;
    return *name;
}

const char *spsi_kernel_name(const sps_context *ctx, sps_place place, int i)
{
    const sps_kernel *found;

    if (place == SPS_CUDA && !ctx) return name_on_gpus(i);
    found = kernel(place == SPS_HOST ? spsi_kernels_host
                   : ctx->module ? ctx->module->kernels : NULL, i);
    return found ? found->name : NULL;
}
