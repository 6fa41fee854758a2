/* SPDX-License-Identifier: BSD-3-Clause */
/* clieigen.c - words that ask for eigenvalues and for something else. */
#include "cli.h"
#include "spsolve.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool listed(const char *kind, const char *name)
{
    const char *s;

    for (int i = 0; (s = sps_list(NULL, kind, i)); i++)
        if (!strcmp(s, name)) return true;
    return false;
}

static bool tell(char *text, size_t size, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(text, size, format, list);
    va_end(list);
    return true;
}

/* Said with -eigs only: those that have another value than when not said. */
static bool of_eigenvalues(const cli_values *v)
{
    return v->mass || v->constraints || v->given_sigma || v->verify_count ||
           v->block || strcmp(v->which, "smallest");
}

bool cli_eigen_fault(const cli_values *v, char *text, size_t size)
{
    const char *other = v->eigs ? "solver" : "eigensolver";

    if (v->eigs && (v->B || v->given_nrhs))
        return tell(text, size, "-eigs asks for eigenvalues; there are no "
                                "right-hand sides (-B, -nrhs) then");
    if (v->eigs && strcmp(v->reorder, "none") && strcmp(v->reorder, "auto"))
        return tell(text, size, "-reorder %s is for A X = B; eigenvalues "
                                "(-eigs) keep the order of the file",
                    v->reorder);
    if (!v->eigs && of_eigenvalues(v))
        return tell(text, size, "-M, -Y, -which, -sigma, -block and "
                                "-verify-count belong to -eigs K");
    if (v->given_sigma && !strcmp(v->which, "largest"))
        return tell(text, size, "-sigma finds the eigenvalues nearest to it: "
                                "leave -which largest away");
    if (!strcmp(v->solver, "auto") || !listed(other, v->solver)) return false;
    return tell(text, size, "-solver %s is for %s", v->solver, v->eigs
                ? "A X = B; lobpcg finds eigenvalues (-eigs)"
                : "eigenvalues: say -eigs K");
}
