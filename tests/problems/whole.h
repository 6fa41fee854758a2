/* SPDX-License-Identifier: BSD-3-Clause */
/* whole.h - a generated matrix, completely in memory. */
#ifndef SPS_TEST_WHOLE_H
#define SPS_TEST_WHOLE_H

#include <check.h>
#include <lapacke.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/generator/gen.h"

/* A generated matrix, completely in memory. */
typedef struct whole {
    gen g;
    int64_t *rowptr;
    int32_t *col;
    double *val;
} whole;

/* Generates "KIND SIZES [options]". */
static inline whole make(const char *line)
{
    char text[200], error[160] = "", *word[24];
    int words = 0;
    gen_spec spec;
    whole w;

    snprintf(text, sizeof text, "%s", line);
    for (char *p = strtok(text, " "); p; p = strtok(NULL, " "))
        word[words++] = p;
    gen_default(&spec);
    for (int i = 0, taken; i < words; i += taken) {
        taken = gen_parse(&spec, words - i, word + i, error);
        if (!taken)
            taken = gen_option(&spec, words - i, word + i, error);
        ck_assert_msg(taken > 0, "%s: %s", line, error);
    }
    ck_assert_msg(gen_open(&spec, &w.g, error), "%s: %s", line, error);
    w.rowptr = malloc(((size_t)w.g.rows + 1) * sizeof *w.rowptr);
    w.col = malloc(((size_t)w.g.nnz + 1) * sizeof *w.col);
    w.val = malloc(((size_t)w.g.nnz + 1) * sizeof *w.val);
    gen_fill(&w.g, w.rowptr, w.col, w.val);
    return w;
}

static inline void drop(whole *w)
{
    gen_close(&w->g);
    free(w->rowptr);
    free(w->col);
    free(w->val);
}

/* Entry (i, j), or NULL. */
static inline const double *find(const whole *w, int64_t i, int64_t j)
{
    for (int64_t p = w->rowptr[i]; p < w->rowptr[i + 1]; p++)
        if (w->col[p] == j)
            return &w->val[p];
    return NULL;
}

static inline double row_times(const whole *w, int64_t i, const double *x)
{
    double sum = 0;

    for (int64_t p = w->rowptr[i]; p < w->rowptr[i + 1]; p++)
        sum += w->val[p] * (x ? x[w->col[p]] : 1);
    return sum;
}

/* Eigenvalues, ascending; the caller frees them. */
static inline double *eigenvalues(const whole *w)
{
    lapack_int n = (lapack_int)w->g.rows;
    double *a = calloc((size_t)n * (size_t)n, sizeof *a);
    double *e = malloc((size_t)n * sizeof *e);

    for (int64_t i = 0; i < n; i++)
        for (int64_t p = w->rowptr[i]; p < w->rowptr[i + 1]; p++)
            a[i * n + w->col[p]] = w->val[p];
    ck_assert_int_eq(LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'U', n, a, n, e),
                     0);
    free(a);
    return e;
}

/* Rows are ascending and finite, and as many and as long as is counted. */
static inline void check_rows(const whole *w, const char *line)
{
    int64_t diagonal = 0, widest = 0;

    ck_assert_msg(w->rowptr[w->g.rows] == w->g.nnz, "%s", line);
    for (int64_t i = 0; i < w->g.rows; i++) {
        int64_t length = w->rowptr[i + 1] - w->rowptr[i];

        widest = length > widest ? length : widest;
        diagonal += find(w, i, i) != NULL;
        for (int64_t p = w->rowptr[i]; p < w->rowptr[i + 1]; p++) {
            ck_assert_int_ge(w->col[p], 0);
            ck_assert_int_lt(w->col[p], w->g.columns);
            ck_assert(isfinite(w->val[p]));
            if (p > w->rowptr[i])
                ck_assert_int_lt(w->col[p - 1], w->col[p]);
        }
    }
    ck_assert_msg(diagonal == w->g.diagonal, "%s", line);
    ck_assert_msg(widest <= w->g.widest, "%s", line);
}

#endif
