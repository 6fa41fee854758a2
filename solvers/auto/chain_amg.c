/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_amg.c - decides whether solver auto begins with multigrid, from
 * predicted times, and whether it keeps it after the set-up.
 *
 * Multigrid takes 7 to 20 iterations where its coarse spaces contain the smooth
 * vectors, that is, where A nearly annihilates the constants of the unknowns of
 * a node in most rows (hardness.h).  Elsewhere it is not tried first: on shells
 * without coordinates it takes more time than polynomials on half of the
 * systems, and no measured property tells on which half.
 *
 * The alternative, block CG, needs J iterations with Jacobi (hardness.h) and
 * max(13.5, 1.15 J / d + 1) with the Chebyshev polynomial of degree d.
 *
 * Times are those of core/rates.h: on a GPU they follow from bytes, and those
 * of the set-up from the numbers of rows and entries of A. */
#include "solvers/auto/chain.h"

#include <math.h>
#include <string.h>

#include "core/comm.h"
#include "driver/hardness.h"

/* Smallest fraction of rows that nearly annihilate the constants (hardness.h)
 * with which multigrid is used, for nodes of one unknown and of several. */
#define KNOWN 0.9
#define KNOWN_BLOCKS 0.65
#define ITERATIONS 10        /* assumed iterations with multigrid */
#define PRODUCTS 5.6         /* time of a cycle, in products with A */
#define LAUNCHES 30          /* kernels of a cycle too small to hide their
                                launches */
#define SETUP_SHARE 0.3      /* largest part of a time limit that the set-up may
                                use */
#define GAIN 1.15            /* smallest predicted ratio of the times without
                                and with multigrid */
#define LONGER 1.5           /* factor on the predicted time without multigrid
                                on a GPU: it is made of bytes and of a lower
                                bound of the condition, and loops took 1.3 to
                                3.3 times as long (doc/log/amg-growth.md) */
/* Once multigrid has been set up, that time is spent: its iterations may take
 * REST times as long as the alternative. */
#define REST 1.5
#define WORST 1e6            /* condition with which multigrid would be of most
                                use */

/* Predicted seconds: */
typedef struct costs {
    double product;           /* a product A X with an epilogue */
    double step;              /* an iteration of block CG without a
                                 preconditioner */
    double fused;             /* an iteration of block CG with a diagonal
                                 preconditioner */
} costs;

static costs predict(const sps_chain *l)
{
    const sps_machine *m = &l->ctx->machine;
    const double n = (double)l->A->n, nnz = (double)l->A->A->nnz;
    const double block = 8 * n * l->k / m->copy;
    const double A = (12 * nnz + 4 * n) / m->copy;
    const double fma = m->core.multiply / m->copy * nnz * l->k;
    costs c;

    if (l->ctx->opt.place == SPS_CUDA) {
        c.product = A + 3 * block + nnz * l->k * m->slow_fma;
        c.step = m->sync + 18 * block + A;
        c.fused = 0.18 * m->sync + 12 * block + A;
    } else {
        c.product = A + 2 * block + fma;
        c.step = c.fused = 10 * block + c.product;
    }
    return c;
}

/* Returns the predicted seconds of a solve without multigrid. */
static double rival(const sps_chain *l, const costs *c, double condition)
{
    const double J = spsi_hardness_iterations(l->A->n, l->k, condition);
    double least = J * c->fused;

    /* Not by fmin: gcc 12 for aarch64 fails on that reduction. */
    for (int d = 3; d <= 15; d += 2) {
        const double t = fmax(SPS_HARDNESS_POLYNOMIAL, 1.15 * J / d + 1) *
                         (c->step + (d - 1) * c->product);

        if (t < least) least = t;
    }
    return l->ctx->opt.place == SPS_CUDA ? LONGER * least : least;
}

static double setup_seconds(const sps_chain *l)
{
    const sps_machine *m = &l->ctx->machine;
    const sps_core *c = &m->core;
    const double n = (double)l->A->n, nnz = (double)l->A->A->nnz;

    if (l->ctx->opt.place == SPS_CUDA)
        return 1e-9 * m->work * (m->hierarchy.fixed + m->hierarchy.row * n +
                                 m->hierarchy.entry * nnz);
    return 1e-9 * (c->hierarchy.fixed + c->hierarchy.row * n +
                   c->hierarchy.entry * nnz) /
           sqrt(fmin(16, l->ctx->threads));
}

static double iteration_seconds(const sps_chain *l, const costs *c)
{
    return c->step + PRODUCTS * c->product +
           LAUNCHES * l->ctx->machine.launch;
}

/* Returns whether multigrid is applicable at all, whatever its cost. */
static bool possible(const sps_chain *l)
{
    const sps_csr *A = l->A->A;

    return l->symmetric && !l->M && !strcmp(l->opt.precond, "auto") &&
           l->opt.degree == 0 && l->opt.norm != SPS_NORM_START &&
           !(A->props & SPS_INTERLEAVED) && !spsi_comm_many(l->ctx);
}

static sps_status knows_enough(const sps_chain *l, double *known, bool *enough)
{
    const int b = l->opt.block_size > 0
                      ? l->opt.block_size
                      : spsi_hardness_node(l->A, l->opt.coords);

    const sps_status st = spsi_hardness_known(l->A, b, known);

    *enough = *known >= (b > 1 ? KNOWN_BLOCKS : KNOWN);
    return st;
}

/* Returns whether multigrid is predicted to be faster than the alternative for
 * this lower bound of the condition of D^-1 A; *gain is the ratio of the
 * times. */
static bool pays(sps_chain *l, double condition, double *gain)
{
    const costs c = predict(l);
    const double setup = setup_seconds(l);
    const double whole = setup + ITERATIONS * iteration_seconds(l, &c);

    l->multigrid = whole;
    *gain = rival(l, &c, condition) / whole;
    return *gain >= GAIN && (l->opt.max_seconds <= 0 ||
                          setup <= SETUP_SHARE * l->opt.max_seconds);
}

static sps_status measure(const sps_chain *l, double *condition)
{
    sps_nullspace *null = NULL;
    sps_status st;

    SPS_TRY(spsi_nullspace_create(l->A, 1, &l->opt, &null));
    SPS_TRY(spsi_hardness_condition(l->A, null, condition));
fail:
    spsi_nullspace_destroy(&null);
    return st;
}

sps_status spsi_chain_multigrid(sps_chain *l, bool *yes)
{
    double known, condition = WORST, gain;
    bool enough = false;
    sps_status st;

    *yes = false;
    if (!possible(l) || !pays(l, condition, &gain)) return SPS_OK;
    st = knows_enough(l, &known, &enough);
    if (st != SPS_OK || !enough) return st;
    st = measure(l, &condition);
    if (st == SPS_EUNFIT || st == SPS_ENOMEM || st == SPS_EDEVMEM)
        return SPS_OK;
    if (st != SPS_OK || !pays(l, condition, &gain)) return st;
    l->condition = condition;
    *yes = true;
    spsi_note(l->ctx, "preconditioner auto: amg, since the condition of D^-1 A "
              "is at least %.0f and %.0f %% of the rows nearly annihilate "
              "constant vectors; predicted to be %.1f times as fast as a "
              "polynomial", condition,
              100 * known, gain);
    return SPS_OK;
}

/* Iterations by the usual bound of conjugate gradients, if the spectrum of M A
 * lies in [1 - rate, 1]. */
static double iterations_by(double rate)
{
    return 10 / atanh(sqrt(fmin(1 - 1e-9, fmax(1 - rate, 1e-9))));
}

/* Measures the condition again after new values.  Where it cannot be measured,
 * WORST is assumed and multigrid is kept. */
static sps_status measure_again(sps_chain *l)
{
    double condition = WORST;
    sps_status st = measure(l, &condition);

    if (st == SPS_EUNFIT || st == SPS_ENOMEM || st == SPS_EDEVMEM) st = SPS_OK;
    l->condition = condition;
    return st;
}

sps_status spsi_chain_keeps(sps_chain *l, const sps_precond *M)
{
    const costs c = predict(l);
    const double iterations = iterations_by(M->rate);
    const double rest = iterations * iteration_seconds(l, &c);
    sps_status st = SPS_OK;

    if (l->condition <= 0) SPS_TRY(measure_again(l));
    SPS_REQUIRE(l->ctx, rest <= REST * rival(l, &c, l->condition), SPS_EUNFIT,
                "a cycle leaves %.2f of the error, which predicts %.0f "
                "iterations: a polynomial is faster", M->rate, iterations);
    spsi_note(l->ctx, "auto: amg is kept, since a cycle leaves %.2f of the "
              "error, which predicts %.0f iterations", M->rate,
              iterations);
fail:
    return st;
}
