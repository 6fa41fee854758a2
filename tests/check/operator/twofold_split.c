/* SPDX-License-Identifier: BSD-3-Clause */
/* twofold_split.c - the CPU's product in twice the working precision, compiled
 * again as for a processor without fused multiply-add: with Dekker's
 * splitting. */
#include "core/backend.h"

sps_status twofold_split(const sps_csr_local *A, const sps_twofold_args *args);

#define FUSED 0
#define FUSED_ONLY
#define spsi_cpu_twofold twofold_split
#include "cpu/csr_twofold.c"
