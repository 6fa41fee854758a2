/* SPDX-License-Identifier: BSD-3-Clause */
/* registry.c - registered names by kind and number (sps_list of spsolve.h). */
#include <string.h>

#include "core/module.h"
#include "core/options.h"
#include "plan/planner.h"

const char *sps_list(const sps_context *ctx, const char *kind, int i)
{
    if (!kind || i < 0) return NULL;
    if (strcmp(kind, "kernel.cuda") == 0)
        return spsi_kernel_name(ctx, SPS_CUDA, i);
    if (strcmp(kind, "factor_module") == 0)
        return i == 0 ? spsi_module_factor_state() : NULL;
    return spsi_name(kind, i);
}
