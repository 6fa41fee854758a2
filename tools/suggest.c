/* SPDX-License-Identifier: BSD-3-Clause */
/* suggest.c - what somebody may have meant: the nearest word by edit
 * distance (optimal string alignment, case ignored), and the names that other
 * programs use for the same thing. */
#include "cli.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WORD = 64 };

/* What others call the same thing. */
static const char *const aliases[][2] = {
    {"h", "help"}, {"?", "help"}, {"v", "version"}, {"tol", "rtol"},
    {"ksp_rtol", "rtol"}, {"ksp_type", "solver"}, {"pc_type", "precond"},
    {"ksp_max_it", "maxit"}, {"maxiter", "maxit"}, {"max-it", "maxit"},
    {"iterations", "maxit"}, {"max-time", "maxtime"}, {"timeout", "maxtime"},
    {"time", "maxtime"}, {"matrix", "A"}, {"rhs", "B"}, {"out", "o"},
    {"output", "o"}, {"x", "o"}, {"guess", "x0"}, {"k", "nrhs"},
    {"n", "nrhs"}, {"gpu", "device"}, {"max-mem", "maxmem"}, {"j", "threads"},
    {"method", "solver"}, {"pc", "precond"}, {"q", "quiet"},
};

const char *cli_alias(const char *word)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcasecmp(word, aliases[i][0]) == 0) return aliases[i][1];
    return NULL;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Edit distance with transpositions, case ignored; words are short. */
static int distance(const char *a, const char *b)
{
    int d[WORD][WORD];
    int m = least((int)strlen(a), WORD - 1);
    int n = least((int)strlen(b), WORD - 1);

    for (int i = 0; i <= m; i++) d[i][0] = i;
    for (int j = 0; j <= n; j++) d[0][j] = j;
    for (int i = 1; i <= m; i++) {
        for (int j = 1; j <= n; j++) {
            int p = tolower((unsigned char)a[i - 1]);
            int q = tolower((unsigned char)b[j - 1]);
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1,
                            d[i - 1][j - 1] + (p != q));
            if (i > 1 && j > 1 && p == tolower((unsigned char)b[j - 2]) &&
                q == tolower((unsigned char)a[i - 2]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[m][n];
}

const char *cli_nearest(const char *word, const char *const *candidates,
                        int count)
{
    const char *best = NULL;
    int length = (int)strlen(word), limit = length / 3 + 1;

    if (length < 2) limit = 0;            /* one letter: case only */
    for (int i = 0; i < count; i++) {
        int d = distance(word, candidates[i]);
        if (d <= limit) {
            best = candidates[i];
            limit = d - 1;
        }
    }
    return best;
}
