/* SPDX-License-Identifier: BSD-3-Clause */
/* isa.c - determines the instruction set of this processor. */
#include "cpu/isa.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = { "plain", "avx2", "avx512" };

static sps_isa present(void)
{
#if SPS_X86_CLONES
    if (__builtin_cpu_supports("x86-64-v4")) return SPS_ISA_AVX512;
    if (__builtin_cpu_supports("x86-64-v3")) return SPS_ISA_AVX2;
#endif
    return SPS_ISA_PLAIN;
}

/* Returns the index of SPSOLVE_ISA in names: the last one if the variable is
 * not set, -1 if its value is not among them. */
static int limit(const char **text)
{
    *text = getenv("SPSOLVE_ISA");
    if (!*text || !**text) return SPS_ISA_AVX512;
    for (int i = 0; i <= SPS_ISA_AVX512; i++)
        if (strcmp(*text, names[i]) == 0) return i;
    return -1;
}

bool spsi_cpu_isa_valid(const char **text)
{
    return limit(text) >= 0;
}

/* The level is determined once and stored as 1 + level. */
sps_isa spsi_cpu_isa(void)
{
    static int known;
    int level = __atomic_load_n(&known, __ATOMIC_RELAXED);

    if (!level) {
        const char *text;
        const int most = limit(&text), own = (int)present();

        level = 1 + (most >= 0 && most < own ? most : own);
        __atomic_store_n(&known, level, __ATOMIC_RELAXED);
    }
    return (sps_isa)(level - 1);
}
