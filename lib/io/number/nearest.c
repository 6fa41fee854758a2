/* SPDX-License-Identifier: BSD-3-Clause */
/* nearest.c - see nearest.h. */
#include "io/number/nearest.h"

#include <ctype.h>
#include <string.h>

#define LONGEST 32

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance: the number of insertions, deletions,
 * substitutions and exchanges of neighbours; LONGEST for longer words. */
static int distance(const char *a, const char *b)
{
    int d[LONGEST + 1][LONGEST + 1];
    const int m = (int)strlen(a), n = (int)strlen(b);

    if (m > LONGEST || n > LONGEST) return LONGEST;
    for (int i = 0; i <= m; i++) d[i][0] = i;
    for (int j = 0; j <= n; j++) d[0][j] = j;
    for (int i = 1; i <= m; i++) {
        for (int j = 1; j <= n; j++) {
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1,
                            d[i - 1][j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
                same(a[i - 2], b[j - 1]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[m][n];
}

/* Names are similar if their distance is at most a third of the word's length
 * (2 for short words) and below its length. */
bool spsi_nearer(const char *word, const char *name, int *limit)
{
    size_t length = strlen(word);
    int most = length < 6 ? 2 : (int)(length < 96 ? length / 3 : LONGEST);
    int d = distance(word, name);

    if (*limit > most) *limit = most;
    if (d > *limit || d >= (int)length) return false;
    *limit = d - 1;
    return true;
}
