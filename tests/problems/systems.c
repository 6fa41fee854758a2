/* SPDX-License-Identifier: BSD-3-Clause */
/* systems.c - see systems.h. */
#include "tests/problems/systems.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/exact.h"
#include "tests/support/least.h"

#define COLUMNS 6            /* at most */
#define UNITS 498            /* 2^498 = 8e149 */

/* --------------------------------------------------------- right-hand sides */

enum { B_RANDOM, B_IMAGE, B_SMOOTH, B_UNIT, B_ZERO, B_TWICE, B_SUM, B_KINDS };

/* y = A x in long double, rounded once. */
static void image(const sps_csr *A, const double *x, double *y)
{
    const double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++) {
        long double sum = 0;

        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            sum += (long double)val[q] * x[A->col[q]];
        y[i] = (double)sum;
    }
}

/* What was drawn for a column; z is the solution where it is known. */
typedef struct column_kind {
    int kind, unit;
    bool solved;
} column_kind;

/* Draws a column b of A z together with z; integers where A has integer
 * entries, so that a singular system is exactly consistent. */
static column_kind draw_column(draw *d, const drawn_system *s, double *b,
                               double *z)
{
    const sps_csr *A = s->p.A;
    const int64_t n = A->nrow;
    const bool whole = s->kind->is & SPECTRUM_SINGULAR;
    column_kind c = { draw_int(d, 0, 9), 0, false };

    if (c.kind >= B_KINDS) c.kind = B_IMAGE;
    for (int64_t i = 0; i < n; i++)
        z[i] = whole ? draw_int(d, -9, 9) : draw_unit(d) - 0.5;
    memset(b, 0, (size_t)n * sizeof *b);
    switch (c.kind) {
    case B_RANDOM:
        for (int64_t i = 0; i < n; i++) b[i] = draw_unit(d) - 0.5;
        break;
    case B_SMOOTH:                       /* mostly the largest values */
        image(A, z, b);
        memcpy(z, b, (size_t)n * sizeof *b);
        /* fall through */
    case B_IMAGE:
        image(A, z, b);
        c.solved = true;
        break;
    case B_UNIT:
        b[draw_int(d, 0, (int)n - 1)] = 1;
        break;
    default: /* zero; `twice` and `sum` are filled once all others are there */
        break;
    }
    return c;
}

/* A column that depends linearly on previous ones. */
static void depend(double *b, int64_t n, int k, int j, int kind)
{
    const int one = j > 0 ? j - 1 : 0, two = j > 1 ? j - 2 : one;

    for (int64_t i = 0; i < n && j > 0; i++) {
        if (kind == B_TWICE) b[i * k + j] = b[i * k + one];
        if (kind == B_SUM) b[i * k + j] = b[i * k + one] + b[i * k + two];
    }
}

/* ------------------------------------------------------------------ guesses */

enum { X_RANDOM = 5, X_HUGE, X_TINY, X_BROKEN, X_KINDS };

static double guess(draw *d, int kind, int e)
{
    const double u = draw_unit(d) - 0.5;

    switch (kind) {
    case X_RANDOM: return ldexp(u, e);
    case X_HUGE: return ldexp(u, e + 90 < 1000 ? e + 90 : 1000);
    case X_TINY: return ldexp(u, e - 90);
    case X_BROKEN: return draw_int(d, 0, 9) ? u : NAN;
    default: return 0;
    }
}

/* Column j of b and of the guess: b scaled by 2^eb, the matrix by 2^ea. */
static void fill_column(draw *d, drawn_system *s, int j, int ea, int room)
{
    problem *p = &s->p;
    const int64_t n = p->A->nrow;
    double *b = malloc(2 * (size_t)(n + 1) * sizeof *b), *z = b + n;
    const column_kind c = draw_column(d, s, b, z);
    const bool exact = c.solved && draw_int(d, 0, 7) == 0;
    const int start = draw_int(d, 0, 2) ? 0 : draw_int(d, 0, X_KINDS - 1);
    int eb = draw_int(d, 0, 2) ? ea : draw_int(d, -UNITS, UNITS);

    if (eb - ea > room) eb = ea;         /* otherwise x would overflow */
    for (int64_t i = 0; i < n; i++) {
        p->b[i * p->k + j] = ldexp(b[i], eb);
        p->x[i * p->k + j] = exact ? ldexp(z[i], eb - ea)
                                   : guess(d, start, eb - ea);
    }
    if (c.kind == B_TWICE || c.kind == B_SUM)
        depend(p->b, n, p->k, j, c.kind);
    free(b);
}

static void scale_matrix(sps_csr *A, int e)
{
    double *val = A->val;

    for (int64_t q = 0; q < A->nnz; q++) val[q] = ldexp(val[q], e);
}

/* ------------------------------------------------------------------ options */

static const char *pick(draw *d, sps_context *ctx, const char *kind)
{
    int count = 0;

    while (sps_list(ctx, kind, count)) count++;
    count = draw_int(d, -1, count - 1);
    return count < 0 ? "auto" : sps_list(ctx, kind, count);
}

/* Any method with any preconditioner; those for SPD matrices rarely on others,
 * and in half of the cases where convergence is difficult a strong
 * preconditioner. */
static void draw_method(draw *d, drawn_system *s)
{
    static const char *const strong[] = { "ilut", "dense", "auto" };
    sps_options *o = &s->p.opt;
    const unsigned is = s->kind->is;

    o->solver = pick(d, s->p.ctx, "solver");
    while ((wants_spd(o->solver) && !(is & SPECTRUM_DEFINITE)) ||
           (wants_symmetry(o->solver) && !(is & SPECTRUM_SYMMETRIC))) {
        if (draw_int(d, 0, 9) == 0) break;
        o->solver = pick(d, s->p.ctx, "solver");
    }
    o->precond = pick(d, s->p.ctx, "precond");
    if (s->condition > 1e6 && draw_bits(d) % 2)
        o->precond = is & SPECTRUM_DEFINITE && draw_bits(d) % 2
                     ? "ic0" : strong[draw_int(d, 0, 2)];
    if (draw_int(d, 0, 9) == 0) o->precision = "mixed";
    o->max_iterations = draw_int(d, 0, 9) ? 1500 : draw_int(d, 0, 40);
}

/* Half of the tolerances are close to the attainable accuracy of doubles, eps
 * times condition. */
static void draw_tolerance(draw *d, drawn_system *s, int ea)
{
    static const sps_norm norm[] = { SPS_NORM_RHS, SPS_NORM_RHS, SPS_NORM_RHS,
                                     SPS_NORM_BACKWARD, SPS_NORM_START,
                                     SPS_NORM_ABSOLUTE };
    sps_options *o = &s->p.opt;
    double digits = 4 + 10 * draw_unit(d);

    if (s->condition > 0 && draw_bits(d) % 2)
        digits = 17 - log10(s->condition) * draw_unit(d) - 3 * draw_unit(d);
    digits = fmin(14, fmax(4, digits));
    o->rtol = pow(10, -digits);
    o->norm = norm[draw_int(d, 0, 5)];
    if (o->norm != SPS_NORM_ABSOLUTE) return;
    o->atol = ldexp(o->rtol, ea);
    o->rtol = 0;
}

static void draw_nullspace(draw *d, drawn_system *s)
{
    static const char *const name[] = { "auto", "auto", "none", "components" };
    const int kinds = strcmp(s->kind->name, "graph") ? 2 : 3;

    s->p.opt.nullspace = name[draw_int(d, 0, kinds)];
}

void system_open(drawn_system *s, sps_context *ctx, uint64_t number)
{
    draw d = { number * 7919 + 20261123 };
    const double log_c = draw_int(&d, 0, 2) ? 8 + 6 * draw_unit(&d)
                                            : 16 * draw_unit(&d);
    const int units = draw_int(&d, 0, 2) ? 0 : draw_int(&d, -UNITS, UNITS);
    int n, k;
    size_t bytes;
    sps_csr *A;

    memset(s, 0, sizeof *s);
    s->kind = &spectra[draw_int(&d, 0, spectrum_count - 1)];
    n = draw_int(&d, 0, 9) ? draw_int(&d, 1, 36) : draw_int(&d, 37, 160);
    if (s->kind->is & SPECTRUM_COMPLEX) n += n % 2;
    s->condition = s->kind->is & SPECTRUM_SET && n > 2 ? pow(10, log_c) : 0;
    A = s->kind->make(&d, n, pow(10, log_c));
    k = draw_int(&d, 1, COLUMNS);
    problem_open(&s->p, ctx, A, k);
    draw_method(&d, s);
    draw_tolerance(&d, s, units);
    draw_nullspace(&d, s);
    for (int j = 0; j < k; j++)
        fill_column(&d, s, j, units, (int)(950 - 3.33 * log_c));
    scale_matrix(A, units);
    bytes = (size_t)(A->nrow * k) * sizeof(double);
    s->guess = malloc(bytes + 8);
    memcpy(s->guess, s->p.x, bytes);
    snprintf(s->what, sizeof s->what, "%llu: %s, n %d, k %d, condition %.0e, "
             "units 2^%d, %s / %s, rtol %.1e atol %.1e norm %d, nullspace %s",
             (unsigned long long)number, s->kind->name, (int)A->nrow, k,
             s->condition, units, s->p.opt.solver, s->p.opt.precond,
             s->p.opt.rtol, s->p.opt.atol, (int)s->p.opt.norm,
             s->p.opt.nullspace);
}

void system_close(drawn_system *s)
{
    free(s->guess);
    problem_close(&s->p);
}

/* Norm of the initial residual; of a guess that is not finite: of the zero
 * guess. */
static long double at_start(const drawn_system *s, int j)
{
    const problem *p = &s->p;
    const int64_t n = p->A->nrow;
    exact_norms e = exact_residual(p->A, p->b, s->guess, p->k, j);

    for (int64_t i = 0; i < n; i++)
        if (!isfinite(s->guess[i * p->k + j])) return e.b;
    return e.residual;
}

long double system_threshold(const drawn_system *s, int j)
{
    const problem *p = &s->p;
    const sps_options *o = &p->opt;
    const exact_norms e = exact_residual(p->A, p->b, p->x, p->k, j);
    long double t = 0;

    if (o->norm == SPS_NORM_RHS) t = e.b;
    if (o->norm == SPS_NORM_BACKWARD) t = p->result.norm_A * e.x + e.b;
    if (o->norm == SPS_NORM_START) t = at_start(s, j);
    return fmaxl(o->rtol * t, o->atol);
}
