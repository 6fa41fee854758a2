/* SPDX-License-Identifier: BSD-3-Clause */
/* pencil_judge.c - what is true of a pencil: LAPACK first, and where a method
 * and LAPACK differ, the inertia of A - sigma M in long double (Sylvester):
 * the number of eigenvalues below sigma. */
#include <check.h>
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pencil.h"
#include "runner.h"

/* The unknowns in units of their own. */
static double *in_units(const pencil *p, const double *d)
{
    double *a = malloc((size_t)p->n * (size_t)p->n * sizeof *a + 8);

    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->n; j++) {
            int e = p->unit ? -p->unit[i] - p->unit[j] : 0;

            a[(long)i * p->n + j] = ldexp(d[(long)i * p->n + j], e);
        }
    return a;
}

static void judge(pencil *p)
{
    double *a = in_units(p, p->a), *m = p->m ? in_units(p, p->m) : NULL;
    int n = p->n;

    p->all = malloc((size_t)n * sizeof(double) + 8);
    ck_assert_int_eq(
        m ? LAPACKE_dsygvd(LAPACK_COL_MAJOR, 1, 'N', 'U', n, a, n, m, n,
                           p->all)
          : LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'U', n, a, n, p->all), 0);
    free(a);
    free(m);
}

/* The i-th nearest to sigma. */
static double nearest(const pencil *p, int i)
{
    int low = 0, high = p->n - 1;

    for (int drop = p->n - 1 - i; drop > 0; drop--)
        if (fabs(p->all[low] - p->opt.sigma) >
            fabs(p->all[high] - p->opt.sigma)) low++;
        else high--;
    return fabs(p->all[low] - p->opt.sigma) >
           fabs(p->all[high] - p->opt.sigma) ? p->all[low] : p->all[high];
}

static int place_of(const pencil *p, int i)
{
    return strcmp(p->opt.which, "largest") ? i + p->nulls : p->n - 1 - i;
}

double pencil_exact(const pencil *p, int i)
{
    if (!strcmp(p->opt.which, "nearest")) return nearest(p, i);
    return p->all[place_of(p, i)];
}

/* ------------------------------------------------------------------ inertia */

/* Negative pivots of A - sigma M = L D L'. */
static int below(const pencil *p, long double sigma)
{
    double *a = in_units(p, p->a), *m = p->m ? in_units(p, p->m) : NULL;
    int n = p->n, count = 0;
    long double *c = malloc((size_t)n * (size_t)n * sizeof *c);

    for (long t = 0; t < (long)n * n; t++)
        c[t] = a[t] - sigma * (m ? m[t] : t % (n + 1) == 0);
    for (int k = 0; k < n; k++) {
        long double *row = &c[(long)k * n], pivot = row[k];

        if (pivot == 0) pivot = LDBL_MIN;
        count += pivot < 0;
        for (int i = k + 1; i < n; i++) {
            long double f = row[i] / pivot;

            if (f == 0) continue;
            for (int j = i; j < n; j++) c[(long)i * n + j] -= f * row[j];
        }
    }
    free(a);
    free(m);
    free(c);
    return count;
}

static double greatest_row(const pencil *p, const double *d)
{
    double most = 0, *a = d ? in_units(p, d) : NULL;

    for (int i = 0; a && i < p->n; i++) {
        double sum = 0;

        for (int j = 0; j < p->n; j++) sum += fabs(a[(long)i * p->n + j]);
        most = fmax(most, sum);
    }
    free(a);
    return d ? most : 1;
}

/* y_i of y = D x_c. */
static long double row(const pencil *p, const double *d, int i, int c)
{
    long double sum = 0;

    if (!d) return p->x[(long)i * p->count + c];
    for (int j = 0; j < p->n; j++)
        sum += (long double)d[(long)i * p->n + j] *
               p->x[(long)j * p->count + c];
    return sum;
}

/* What rounding makes of x'A x / x'M x: 16 eps (||A|| + |l| ||M||) x'x / x'M x. */
static double rounding(const pencil *p, int c)
{
    double size = greatest_row(p, p->a) +
                  fabs(p->lambda[c]) * greatest_row(p, p->m);
    long double xx = 0, xmx = 0;

    for (int i = 0; i < p->n; i++) {
        long double x = p->x[(long)i * p->count + c];

        xmx += x * row(p, p->m, i, c);
        x = ldexpl(x, p->unit ? p->unit[i] : 0);
        xx += x * x;
    }
    return 16 * DBL_EPSILON * size * (double)(xx / xmx);
}

/* Whether the eigenvalue in that place lies within `error` of lambda. */
static bool lies_there(const pencil *p, int i, double error)
{
    int place = place_of(p, i);

    return below(p, (long double)p->lambda[i] - error) <= place &&
           below(p, (long double)p->lambda[i] + error) > place;
}

static void must_be_bounded(const pencil *p, int i, const char *what)
{
    double bound = p->bound[i] + rounding(p, i);

    ck_assert_msg(isinf(bound) || below(p, p->lambda[i] - (long double)bound) <
                                      below(p, p->lambda[i] + (long double)bound),
                  "%s: no eigenvalue is within the bound %g of lambda[%d]",
                  what, p->bound[i], i);
}

void pencil_must_be_within_bounds(const pencil *p)
{
    for (int i = 0; i < p->count; i++) must_be_bounded(p, i, "bounds");
}

static void must_be_near(const pencil *p, int i, const char *what)
{
    double exact = pencil_exact(p, i), error = fabs(p->lambda[i] - exact);
    double may = 1e-8 * fabs(p->lambda[i]);

    if (error > p->bound[i] + rounding(p, i)) must_be_bounded(p, i, what);
    if (error <= may) return;
    may += rounding(p, i);
    if (error <= may) return;
    ck_assert_msg(strcmp(p->opt.which, "nearest") && lies_there(p, i, may),
                  "%s, n = %d, %d pairs: lambda[%d] = %.17g, LAPACK has %.17g, "
                  "and it is not within %g", what, p->n, p->count, i,
                  p->lambda[i], exact, may);
}

/* ----------------------------------------------------------------- verdicts */

/* Of pair c in long double, in the numbers as they are given. */
typedef struct sizes {
    long double residual;    /* ||A x - lambda M x|| */
    long double mass;        /* ||M x|| */
    long double least;       /* u ||g||, g = |A||x| + |lambda||M||x|: what
                                rounding x may leave of it */
    long double formed;      /* u ||(nu_i + 3) g||, nu_i terms in row i: what
                                forming it in doubles may add */
} sizes;

/* |d_i| |x_c|, and more terms in *nu. */
static long double magnitude(const pencil *p, const double *d, int i, int c,
                             int *nu)
{
    long double sum = 0;

    if (!d) return ++*nu, fabsl(p->x[(long)i * p->count + c]);
    for (int j = 0; j < p->n; j++) {
        double v = d[(long)i * p->n + j];

        *nu += v != 0;
        sum += fabsl((long double)v * p->x[(long)j * p->count + c]);
    }
    return sum;
}

static sizes measure(const pencil *p, int c)
{
    long double rr = 0, mm = 0, gg = 0, ff = 0, l = p->lambda[c];
    const long double u = DBL_EPSILON / 2;

    for (int i = 0; i < p->n; i++) {
        int nu = 3;
        long double m = row(p, p->m, i, c), r = row(p, p->a, i, c) - l * m;
        long double g = magnitude(p, p->a, i, c, &nu) +
                        fabsl(l) * magnitude(p, p->m, i, c, &nu);

        rr += r * r;
        mm += m * m;
        gg += g * g;
        ff += nu * g * (nu * g);
    }
    return (sizes){ sqrtl(rr), sqrtl(mm), u * sqrtl(gg), u * sqrtl(ff) };
}

/* The most that a pair may have left. */
static long double limit_of(const pencil *p, int c, const sizes *s)
{
    return fmaxl(p->opt.rtol * fabsl((long double)p->lambda[c]),
                 p->opt.atol) * s->mass;
}

/* What a pair is said to be, it is: converged with a residual below its limit
 * but for what forming it in long double hides; limited by rounding where the limit
 * lies below what rounding leaves, and the residual is no more than that. */
static void must_be_as_said(const pencil *p, int c, const char *what)
{
    const long double slack = 1 + 1e-6L;
    sizes s = measure(p, c);
    long double limit = limit_of(p, c, &s);
    bool converged = p->pair[c] == SPS_STOP_CONVERGED;
    bool true_word = converged ? s.residual <= slack * limit + s.formed / 1000
                               : limit <= slack * s.least &&
                                 s.residual <= slack * s.formed + s.formed;

    if (!converged && p->pair[c] != SPS_STOP_ROUNDING) return;
    ck_assert_msg(true_word, "%s, n = %d, pair %d: says %s at %Lg; the limit is "
                  "%Lg, rounding leaves %Lg and adds %Lg", what, p->n, c,
                  converged ? "converged" : "rounding", s.residual, limit,
                  s.least, s.formed);
}

bool pencil_converged(const pencil *p)
{
    bool converged = p->result.stop == SPS_STOP_CONVERGED;

    ck_assert_msg(converged || runner_quick(),
                  "n = %d, %d pairs: %s after %d iterations, worst %g, "
                  "backward %g", p->n, p->count,
                  sps_stop_string(p->result.stop), p->result.iterations,
                  p->result.worst_residual, p->result.worst_backward);
    return converged;
}

static void must_be_true(pencil *p, const char *what)
{
    if (!p->all) judge(p);
    for (int i = 0; i < p->count; i++) {
        must_be_near(p, i, what);
        must_be_as_said(p, i, what);
    }
    ck_assert_msg(p->result.orthogonality <= 1e-10, "%s: X'MX - I = %g", what,
                  p->result.orthogonality);
}

static void solve(pencil *p, const char *what)
{
    sps_status st = pencil_solve(p);

    ck_assert_msg(st == SPS_OK, "%s, n = %d, %d pairs: %s: %s", what, p->n,
                  p->count, sps_status_string(st), sps_context_error(p->ctx));
}

void pencil_must_agree(pencil *p, const char *what)
{
    solve(p, what);
    if (pencil_converged(p)) must_be_true(p, what);
}

/* Whether 1000 eps (||A|| + |lambda| ||M||) ||x|| is above the tolerance, in
 * the numbers as they are given: then a pair may stagnate. */
static bool forbidden(const pencil *p, int c)
{
    pencil plain = *p;
    double l = fabs(p->lambda[c]), size;
    long double xx = 0, mm = 0;

    plain.unit = NULL;
    size = greatest_row(&plain, p->a) + l * greatest_row(&plain, p->m);
    for (int i = 0; i < p->n; i++) {
        long double x = row(p, NULL, i, c), m = row(p, p->m, i, c);

        xx += x * x;
        mm += m * m;
    }
    return 1e3 * DBL_EPSILON * size * (double)sqrtl(xx) >
           fmax(p->opt.rtol * l, p->opt.atol) * (double)sqrtl(mm);
}

static int held, stagnated;

int pencil_stagnated(int *of)
{
    if (of) *of = held;
    return stagnated;
}

void pencil_must_hold(pencil *p, const char *what)
{
    solve(p, what);
    for (int i = 0; i < p->count && !runner_quick(); i++) {
        bool gave_up = p->pair[i] == SPS_STOP_STAGNATED;

        held++;
        stagnated += gave_up;
        ck_assert_msg(p->pair[i] == SPS_STOP_CONVERGED ||
                      p->pair[i] == SPS_STOP_ROUNDING ||
                      (gave_up && forbidden(p, i)),
                      "%s, n = %d, pair %d of %d, %s, preconditioner %s: %s "
                      "after %d iterations, residual %g", what, p->n, i,
                      p->count, p->opt.which, p->opt.precond,
                      sps_stop_string(p->pair[i]), p->result.iterations,
                      p->residual[i]);
    }
    if (p->result.stop == SPS_STOP_CONVERGED || !runner_quick())
        must_be_true(p, what);
}
