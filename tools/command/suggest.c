/* SPDX-License-Identifier: BSD-3-Clause */
/* suggest.c - names of options in other programs, for suggestions. */
#include "tools/command/cli.h"

#include <strings.h>

/* Pairs of the name of an option in another program and its name here. */
static const char *const aliases[][2] = {
    {"?", "help"}, {"v", "version"}, {"tol", "rtol"}, {"ksp_rtol", "rtol"},
    {"ksp_atol", "atol"}, {"ksp_type", "solver"}, {"pc_type", "precond"},
    {"ksp_max_it", "max_iterations"}, {"max_it", "max_iterations"},
    {"max_iter", "max_iterations"}, {"iterations", "max_iterations"},
    {"max_time", "max_seconds"}, {"timeout", "max_seconds"},
    {"time", "max_seconds"}, {"matrix", "A"}, {"rhs", "B"}, {"out", "o"},
    {"output", "o"}, {"x", "o"}, {"guess", "x0"}, {"k", "nrhs"},
    {"n", "nrhs"}, {"gpu", "device"}, {"max_mem", "max_bytes"},
    {"max_gpu_mem", "max_device_bytes"},
    {"j", "threads"}, {"method", "solver"}, {"pc", "precond"}, {"q", "quiet"},
    {"nev", "eigs"}, {"ksp_gmres_restart", "restart"},
};

const char *cli_alias(const char *word)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcasecmp(word, aliases[i][0]) == 0) return aliases[i][1];
    return NULL;
}
