/* SPDX-License-Identifier: BSD-3-Clause */
/* pencil_judge.c - reference results for a pencil: LAPACK, and where a method
 * and LAPACK differ, the inertia of A - sigma M in long double (Sylvester's
 * law), that is, the number of eigenvalues below sigma. */
#include <check.h>
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/pencil.h"
#include "tests/support/runner.h"

/* d_ij scaled by 2^-(u_i + u_j), u = p->unit. */
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

/* The i-th eigenvalue by distance from sigma. */
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

/* Number of negative pivots of A - sigma M = L D L'. */
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

/* Row i of D x_c. */
static long double row(const pencil *p, const double *d, int i, int c)
{
    long double sum = 0;

    if (!d) return p->x[(long)i * p->count + c];
    for (int j = 0; j < p->n; j++)
        sum += (long double)d[(long)i * p->n + j] *
               p->x[(long)j * p->count + c];
    return sum;
}

/* Rounding error of the Rayleigh quotient x'A x / x'M x: 16 eps (||A|| +
 * |lambda| ||M||) x'x / x'M x. */
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

/* Whether eigenvalue number i lies within `error` of lambda. */
static bool lies_there(const pencil *p, int i, double error)
{
    int place = place_of(p, i);

    return below(p, (long double)p->lambda[i] - error) <= place &&
           below(p, (long double)p->lambda[i] + error) > place;
}

/* First LAPACK's eigenvalues; where none of them is close enough LAPACK may be
 * inaccurate, and the inertia decides. (The inertia alone does not suffice:
 * leading minors of grids often share an eigenvalue with the matrix, so that
 * pivots vanish next to it.) */
bool pencil_bounded(pencil *p, int i)
{
    const double bound = p->bound[i] + rounding(p, i);

    if (!p->all) judge(p);
    for (int t = 0; t < p->n; t++)
        if (fabs(p->all[t] - p->lambda[i]) <= bound) return true;
    return isinf(bound) || below(p, p->lambda[i] - (long double)bound) <
                               below(p, p->lambda[i] + (long double)bound);
}

static void must_be_bounded(pencil *p, int i, const char *what)
{
    ck_assert_msg(pencil_bounded(p, i),
                  "%s: no eigenvalue is within the bound %g of lambda[%d]",
                  what, p->bound[i], i);
}

void pencil_must_be_within_bounds(pencil *p)
{
    for (int i = 0; i < p->count; i++) must_be_bounded(p, i, "bounds");
}

static void must_be_near(pencil *p, int i, const char *what)
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

/* Norms of pair c in long double, in the caller's units. */
typedef struct sizes {
    long double residual;    /* ||A x - lambda M x|| */
    long double mass;        /* ||M x|| */
    long double least;       /* u ||g||, g = |A||x| + |lambda||M||x|: the
                                residual that rounding x alone may leave */
    long double formed;      /* u ||(nu_i + 3) g||, nu_i terms in row i:
                                rounding error of a residual in doubles */
} sizes;

/* Row i of |D| |x_c|; adds the number of terms to *nu. */
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

/* The largest residual that a converged pair may have. */
static long double limit_of(const pencil *p, int c, const sizes *s)
{
    return fmaxl(p->opt.rtol * fabsl((long double)p->lambda[c]),
                 p->opt.atol) * s->mass;
}

/* The reported residual must agree to six digits, up to the error bound of the
 * long double one. */
static void must_be_told(const pencil *p, int c, const sizes *s,
                         const char *what)
{
    long double unit = fabsl((long double)p->lambda[c]) * s->mass;
    long double told = p->residual[c] * unit;

    ck_assert_msg(!(unit > 0) || fabsl(told - s->residual) <=
                                     1e-6L * told + s->formed / 1000,
                  "%s, n = %d, pair %d: a residual of %g is told, it is %Lg",
                  what, p->n, c, p->residual[c], s->residual / unit);
}

/* The reported state of a pair must be true: if converged, the residual is
 * below its limit, up to the error bound of the long double computation; if
 * limited by rounding, the limit is below what rounding leaves, and the
 * residual is not larger than that. */
static void must_be_as_said(const pencil *p, int c, const char *what)
{
    const long double slack = 1 + 1e-6L;
    sizes s = measure(p, c);
    long double limit = limit_of(p, c, &s);
    bool converged = p->pair[c] == SPS_STOP_CONVERGED;
    bool true_word = converged ? s.residual <= slack * limit + s.formed / 1000
                               : limit <= slack * s.least &&
                                 s.residual <= slack * s.formed + s.formed;

    must_be_told(p, c, &s, what);
    if (!converged && p->pair[c] != SPS_STOP_ROUNDING) return;
    ck_assert_msg(true_word, "%s, n = %d, pair %d: says %s at %Lg; the limit is "
                  "%Lg, rounding leaves %Lg and adds %Lg", what, p->n, c,
                  converged ? "converged" : "rounding", s.residual, limit,
                  s.least, s.formed);
}

/* Whether the few iterations of the quick form have been used up. */
static bool cut_short(const pencil *p)
{
    return runner_quick() && p->result.stop == SPS_STOP_MAX_ITERATIONS &&
           p->result.iterations == p->opt.max_iterations;
}

bool pencil_converged(const pencil *p)
{
    bool converged = p->result.stop == SPS_STOP_CONVERGED;

    ck_assert_msg(converged || cut_short(p),
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
    else for (int i = 0; i < p->count; i++) must_be_as_said(p, i, what);
}

/* Whether 1000 eps (||A|| + |lambda| ||M||) ||x|| exceeds the tolerance, in the
 * caller's units: only then may a pair stagnate. */
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
    for (int i = 0; i < p->count; i++) {
        bool gave_up = p->pair[i] == SPS_STOP_STAGNATED;

        must_be_as_said(p, i, what);
        if (cut_short(p) && p->pair[i] == SPS_STOP_MAX_ITERATIONS) continue;
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
    if (!cut_short(p)) must_be_true(p, what);
}
