/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_factors.c - decides whether solver auto uses sparse direct factors.
 *
 * The work of factors is known from the symbolic analysis, that of iterations
 * is not.  Factors may therefore take the time of EXPECTED iterations of a
 * cheap method, of FEW if every row is strongly diagonally dominant, with one
 * more for each of up to FEW rows that are not, of MANY if less than the
 * fraction NEARLY_ALL of the rows is nearly dominant (vector problems, shells).
 * Grids in two dimensions and band matrices need more iterations than that and
 * have little fill; grids in three dimensions need few iterations and have much
 * fill.
 *
 * Small systems: the library of factors spends 2 microseconds on each row, as
 * long as all the arithmetic.  There our own complete factors are faster: dense
 * ones of tiny or nearly full matrices, and those of ilut, which drops nothing
 * then, after a minimum degree order that has counted the fill (ilut.c).  Their
 * time may be neither above that of iterations nor above that of the library.
 *
 * Both sides are counts times the rates of core/rates.h, not measured times, so
 * that the choice repeats. */
#include "solvers/auto/chain.h"

#include <math.h>
#include <string.h>

#include "operator/direct.h"

#define EXPECTED 100
#define FEW 25
#define MANY 300
#define NEARLY_ALL 0.9
#define PASSES 12   /* reads and writes of a block in an iteration */
/* Matrices for which complete factors by ilut are predicted: with more rows or
 * longer ones, the ordering alone takes as long as other methods.  Without the
 * factor module the other methods are iterations: then longer rows, and more
 * rows of a matrix that may be definite, are tried, and factors may take
 * ALONE_WORTH times as long, since plates and shells need thousands of
 * iterations.  Chains and trees, with at most LOOPS entries that close a loop,
 * are ordered at once and have hardly any fill. */
enum { COMPLETE_ROWS = 4000, COMPLETE_LENGTH = 16, ALONE_ROWS = 10000,
       ALONE_LENGTH = 64, ALONE_WORTH = 2, CHAIN_ROWS = 100000, LOOPS = 8 };
/* Seconds that factors may take in any case where A is not symmetric, since
 * iterations may fail there. */
#define AT_LEAST 5e-3

/* Returns whether A is a graph with hubs and more than a few neighbours per
 * vertex.  Such graphs have no small separators, and an analysis that finds
 * this out takes seconds.  In them the mean degree of a neighbour is more than
 * SPS_CHAIN_HUBS times that of a vertex: 1.9 to 9 times in networks, but 1.0 to
 * 1.4 times in meshes, even in those with some long rows. */
static bool fills_up(const sps_features *f, const sps_chain_traits *o)
{
    return f->nrow > 5000 && f->mean_length > 12 && o->spread > SPS_CHAIN_HUBS;
}

double spsi_chain_worth(const sps_chain *l, const sps_chain_traits *o)
{
    const bool gpu = l->ctx->opt.place == SPS_CUDA;
    /* The host is assumed to move as much with any number of threads. */
    const sps_machine *m = &l->ctx->machine;
    const double rate = gpu ? m->copy : m->core.copy;
    const double numbers = PASSES * (double)l->A->n * l->k;
    const double bytes = 12.0 * (double)l->A->A->nnz + 8 * numbers;
    const double each = fmax(m->core.iteration, gpu ? m->sync : 0) +
                        bytes / rate;
    const double other = ceil((1 - o->strong) * (double)l->A->n - 0.5);
    const double count = other <= FEW           ? FEW + other
                         : o->near < NEARLY_ALL ? MANY
                                                : EXPECTED;

    if (fills_up(&l->A->f, o)) return 1e-9;
    /* An iteration of bicgstab makes four products. */
    return l->symmetric ? each * count : AT_LEAST + 2 * each * count;
}

/* Returns whether complete factors may be the first step. */
static bool allowed(const sps_chain *l)
{
    return l->ctx->opt.place != SPS_CUDA && l->opt.norm != SPS_NORM_START &&
           strcmp(l->opt.factors, "never") != 0;
}

/* Sets *yes to whether A is a chain or a tree but for a few entries. */
static sps_status is_chain(const sps_chain *l, bool *yes)
{
    const sps_operator *A = l->A;
    int64_t loops;
    sps_status st = SPS_OK;

    *yes = A->n <= CHAIN_ROWS && A->A->nnz <= 3 * A->n;
    if (!*yes) return st;
    SPS_TRY(spsi_loops_count(l->ctx, A->A, &loops));
    *yes = loops <= LOOPS;
fail:
    return st;
}

sps_status spsi_chain_complete(const sps_chain *l, const sps_chain_traits *o,
                               double *seconds)
{
    const double n = (double)l->A->n, nnz = (double)l->A->A->nnz;
    const bool beside = spsi_direct_possible();
    const double rows = beside || !l->symmetric ? COMPLETE_ROWS : ALONE_ROWS;
    const double length = beside ? COMPLETE_LENGTH : ALONE_LENGTH;
    bool chain = false;
    sps_status st = SPS_OK;

    *seconds = 0;
    if (!allowed(l) || nnz > length * n) return st;
    if (n > rows) SPS_TRY(is_chain(l, &chain));
    if (n <= rows || chain)
        *seconds = (beside ? 1 : ALONE_WORTH) * spsi_chain_worth(l, o);
fail:
    return st;
}

double spsi_chain_dense(const sps_chain *l)
{
    const double n = (double)l->A->n, length = (double)l->A->A->nnz / n;
    const sps_core *c = &l->ctx->machine.core;
    const double cube = l->symmetric ? c->small.dense_cube / 2
                                     : c->small.dense_cube;
    const double each = c->small.dense_entry * n + cube * n * n;

    if (!allowed(l) || n < 1 || n > SPS_CHAIN_DENSE_ROWS ||
        each > c->small.row + (c->small.entry + c->small.square * length) *
                              length)
        return 0;
    return n * each;
}

sps_status spsi_chain_weigh(sps_chain *l, double worth)
{
    sps_direct *d = NULL;
    double seconds = 2 * spsi_direct_analysis_seconds(l->A);
    sps_status st;

    if (seconds > worth) l->factors.refused = worth;
    SPS_REQUIRE(l->ctx, seconds <= worth, SPS_EUNFIT, "the analysis of %lld "
                "entries would take longer than iterations are expected to "
                "take",
                (long long)l->A->A->nnz);
    SPS_TRY(spsi_direct_analyse(l->A, spsi_direct_operations(l->ctx, worth),
                                &d));
    seconds = spsi_direct_factor_seconds(d) +
              2 * spsi_direct_solve_seconds(d, l->k);
    if (seconds > worth) l->factors.refused = worth;
    SPS_REQUIRE(l->ctx, seconds <= worth, SPS_EUNFIT, "factors with %.2g "
                "operations and %.2g entries would take longer than iterations "
                "are expected to take", d->facts.flops,
                (double)d->facts.entries);
    spsi_direct_keep(d);
    return SPS_OK;

fail:
    spsi_direct_destroy(&d);
    /* Where time is limited, the refusal may apply to this solve only. */
    l->factors.unfit = st == SPS_EUNFIT && l->opt.max_seconds <= 0 &&
               l->factors.refused < worth;
    return st;
}
