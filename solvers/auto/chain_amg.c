/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_amg.c - whether solver auto begins with multigrid, as predicted from
 * what is measured of A, and whether it keeps it after the set-up.
 *
 * Multigrid takes 7 to 20 iterations where its coarse spaces hold the smooth
 * vectors: where most rows know the constants (hardness.h).  Elsewhere it is
 * not tried first: on shells without coordinates it takes more time than
 * polynomials on half of the systems, and nothing measured says on which.
 *
 * The rival, block CG, needs J iterations with Jacobi (hardness.h) and
 * max(13.5, 1.15 J / d + 1) with the Chebyshev polynomial of degree d.
 *
 * Times are those of one thread of the machine whose memory copies 10 GB/s,
 * fitted to processor seconds of 20 systems with 16 columns; on a GPU they
 * follow from bytes, and the set-up of multigrid from the entries of A.  On an
 * H200 it took 71 ms for 28.5 million (7-point), 54 ms for 26.5 million
 * (27-point), and for node blocks without coordinates, matrix uploaded, 164 ms
 * for 61.7 million. */
#include "solvers/auto/chain.h"

#include <math.h>
#include <string.h>

#include "core/comm.h"
#include "driver/hardness.h"

/* Fraction of rows that know the constants, at least. */
#define KNOWN 0.9
#define KNOWN_BLOCKS 0.65
/* Set-up in nanoseconds, for a row, an entry, and in all: on the host, then on
 * a GPU. */
#define ROW_NS 1000
#define ENTRY_NS 150
#define SETUP_NS 2e7
#define ENTRY_NS_GPU 2
#define ENTRY_NS_GPU_BLOCKS 3
#define SETUP_NS_GPU 1e7
#define MULTIPLY_NS 0.1      /* a multiply-add on the host beside its bytes */
#define ITERATIONS 10        /* with multigrid */
#define PRODUCTS 5.6         /* a cycle in products with A */
#define LAUNCHES 30          /* and kernels that are too small to hide */
#define SETUP_SHARE 0.3      /* of a limit of time */
#define GAIN 1.15            /* predicted, at least: it must be certain */
/* A set-up that is made is not made again: the rest may take longer than the
 * rival. */
#define REST 1.5
#define WORST 1e6            /* a condition with which multigrid pays if ever */

/* Predicted seconds. */
typedef struct costs {
    double product;           /* A X with an epilogue */
    double step;              /* an iteration of block CG without M */
    double fused;             /* and with a diagonal M */
} costs;

static costs predict(const sps_chain *l)
{
    const sps_machine *m = &l->ctx->machine;
    const double n = (double)l->A->n, nnz = (double)l->A->A->nnz;
    const double block = 8 * n * l->k / m->copy;
    const double A = (12 * nnz + 4 * n) / m->copy;
    const double fma = MULTIPLY_NS * 10 / m->copy * nnz * l->k;
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

/* Seconds of a solve without multigrid. */
static double rival(const sps_chain *l, const costs *c, double condition)
{
    const double J = spsi_hardness_iterations(l->A->n, l->k, condition);
    double least = J * c->fused;

    for (int d = 3; d <= 15; d += 2)
        least = fmin(least, fmax(SPS_HARDNESS_POLYNOMIAL, 1.15 * J / d + 1) *
                            (c->step + (d - 1) * c->product));
    return least;
}

static double setup_seconds(const sps_chain *l)
{
    const double each = l->A->f.block > 1 ? ENTRY_NS_GPU_BLOCKS
                                          : ENTRY_NS_GPU;
    const double ns = SETUP_NS + ROW_NS * (double)l->A->n +
                      ENTRY_NS * (double)l->A->A->nnz;

    if (l->ctx->opt.place == SPS_CUDA)
        return 1e-9 * (SETUP_NS_GPU + each * (double)l->A->A->nnz);
    return 1e-9 * ns / sqrt(fmin(16, l->ctx->threads));
}

static double iteration_seconds(const sps_chain *l, const costs *c)
{
    return c->step + PRODUCTS * c->product +
           LAUNCHES * l->ctx->machine.launch;
}

/* Whether multigrid can serve at all, whatever it costs. */
static bool possible(const sps_chain *l)
{
    const sps_csr *A = l->A->A;

    return l->symmetric && !l->M && !strcmp(l->opt.precond, "auto") &&
           l->opt.degree == 0 && l->opt.norm != SPS_NORM_START &&
           !(A->props & SPS_INTERLEAVED) && !spsi_comm_many(l->ctx);
}

static bool knows_enough(const sps_chain *l, double *known)
{
    const int b = l->opt.block_size > 0
                      ? l->opt.block_size
                      : spsi_hardness_node(l->A, l->opt.coords);

    *known = spsi_hardness_known(l->ctx, l->A->A, b);
    return *known >= (b > 1 ? KNOWN_BLOCKS : KNOWN);
}

/* The time that multigrid must undercut, if it could be the least at all: with
 * the worst condition. */
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
    sps_status st = SPS_OK;

    *yes = false;
    if (!possible(l) || !pays(l, condition, &gain) || !knows_enough(l, &known))
        return SPS_OK;
    st = measure(l, &condition);
    if (st == SPS_EUNFIT || st == SPS_ENOMEM || st == SPS_EDEVMEM)
        return SPS_OK;
    if (st != SPS_OK || !pays(l, condition, &gain)) return st;
    l->condition = condition;
    *yes = true;
    spsi_note(l->ctx, "preconditioner auto: amg, since the condition of D^-1 A "
              "is at least %.0f and %.0f %% of the rows know the constants; "
              "predicted to be %.1f times as fast as a polynomial", condition,
              100 * known, gain);
    return SPS_OK;
}

/* Iterations by the usual bound, if M A has its spectrum in [1 - rate, 1]. */
static double iterations_by(double rate)
{
    return 10 / atanh(sqrt(fmin(1 - 1e-9, fmax(1 - rate, 1e-9))));
}

/* New values have another condition than those that were planned for; where it
 * cannot be measured, multigrid is kept as for the worst. */
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
                "a cycle leaves %.2f of the error, by which %.0f iterations "
                "are predicted", M->rate, iterations);
    spsi_note(l->ctx, "auto: amg is kept, since a cycle leaves %.2f of the "
              "error, by which %.0f iterations are predicted", M->rate,
              iterations);
fail:
    return st;
}
