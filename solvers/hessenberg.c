/* SPDX-License-Identifier: BSD-3-Clause */
/* hessenberg.c - the least-squares problems of GMRES, by Givens rotations. */
#include "solvers/hessenberg.h"

#include <math.h>
#include <string.h>

#include "block/upper.h"

sps_status spsi_hessenberg_open(sps_owner *o, int k, int m,
                                sps_hessenberg *h)
{
    int64_t columns = (int64_t)k * m;
    sps_status st;

    h->k = k;
    h->m = m;
    SPS_TRY(SPS_OWN(o, columns * m, &h->r));
    SPS_TRY(SPS_OWN(o, columns, &h->cosine));
    SPS_TRY(SPS_OWN(o, columns, &h->sine));
    SPS_TRY(SPS_OWN(o, columns + k, &h->g));
    SPS_TRY(SPS_OWN(o, k, &h->size));
    SPS_TRY(SPS_OWN(o, 2 * (int64_t)m, &h->room));
fail:
    return st;
}

void spsi_hessenberg_start(sps_hessenberg *h, int p, double beta)
{
    h->size[p] = 0;
    h->g[(int64_t)p * (h->m + 1)] = beta;
}

static double rotate(double c, double s, double *a, double *b)
{
    double t = c * *a + s * *b;

    *b = c * *b - s * *a;
    *a = t;
    return *b;
}

double spsi_hessenberg_append(sps_hessenberg *h, int p, const double *top,
                              double below)
{
    int j = h->size[p]++;
    double *r = h->r + ((int64_t)p * h->m + j) * h->m;
    double *c = h->cosine + (int64_t)p * h->m, *s = h->sine + (int64_t)p * h->m;
    double *g = h->g + (int64_t)p * (h->m + 1), length;

    memcpy(r, top, (size_t)(j + 1) * sizeof *r);
    for (int i = 0; i < j; i++) rotate(c[i], s[i], &r[i], &r[i + 1]);
    length = hypot(r[j], below);
    c[j] = length > 0 ? r[j] / length : 1;
    s[j] = length > 0 ? below / length : 0;
    r[j] = length;
    g[j + 1] = 0;
    if (length > 0) return fabs(rotate(c[j], s[j], &g[j], &g[j + 1]));
    /* A zero column does not reduce the residual. */
    g[j + 1] = g[j];
    g[j] = 0;
    return fabs(g[j + 1]);
}

sps_status spsi_hessenberg_solve(sps_context *ctx, const sps_hessenberg *h,
                                 int p, double *y)
{
    const double *g = h->g + (int64_t)p * (h->m + 1);
    const double rest = fabs(g[h->size[p]]);

    return spsi_small_solve_steps(ctx, h->r + (int64_t)p * h->m * h->m,
                                  h->size[p], h->m, NULL, &rest, 1, g,
                                  h->m + 1, y, h->m, h->room);
}
