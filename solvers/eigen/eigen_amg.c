/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_amg.c - decides whether multigrid is the preconditioner of an
 * eigensolver.
 *
 * An iteration with multigrid costs a few products.  It resolves the lowest
 * pairs about as fast as factors do, which have much fill for three-dimensional
 * bodies and networks, and faster than polynomials unless all eigenvalues are
 * far from zero.  So multigrid is used where its coarse spaces contain the
 * smooth vectors (hardness.h), and kept if its cycle reduces errors by
 * enough. */
#include "eigen_policy.h"

#include "core/comm.h"
#include "driver/hardness.h"

/* Number of rows below which nearly complete factors are cheap, and more
 * reliable.  KNOWN, KNOWN_BLOCKS: smallest fraction of rows that nearly
 * annihilate the constants (hardness.h) with which multigrid is used, for nodes
 * of one unknown and of several. */
#define FEW_ROWS 5000
#define KNOWN 0.9
#define KNOWN_BLOCKS 0.65
/* EASY: condition below which polynomials of low degree are as good as
 * multigrid.  SLOW_RATE: largest fraction of the error that a cycle may
 * leave. */
#define EASY 100
#define SLOW_RATE 0.9

static sps_status serves(const sps_eigen_precond *t, const sps_operator *op,
                         bool *yes)
{
    const int b = spsi_hardness_node(op, t->opt->coords);
    double condition, known;
    sps_status st;

    *yes = op->n >= FEW_ROWS && t->opt->degree == 0 && b <= 6 &&
           !(op->A->props & SPS_INTERLEAVED) && !spsi_comm_many(op->ctx);
    if (!*yes) return SPS_OK;
    SPS_TRY(spsi_hardness_known(op, b, &known));
    *yes = known >= (b > 1 ? KNOWN_BLOCKS : KNOWN);
    if (!*yes) return SPS_OK;
    st = spsi_hardness_condition(op, t->space->deflation->null, &condition);
    *yes = st == SPS_OK && condition >= EASY;
fail:
    return st;
}

sps_status spsi_eigen_multigrid(sps_eigen_precond *t, const sps_operator *op,
                                int passes)
{
    sps_options o = *t->opt;
    bool yes;
    sps_status st;

    SPS_TRY(serves(t, op, &yes));
    if (!yes) return SPS_EUNFIT;
    o.precond = "amg";
    SPS_TRY(spsi_precond_create(op, t->space->width, &o, false, passes, &t->T));
    if (t->T->rate <= SLOW_RATE) return SPS_OK;
    spsi_note(op->ctx, "preconditioner auto: not amg, because a cycle leaves "
              "%.2f of the error", t->T->rate);
    sps_precond_destroy(&t->T);
    st = SPS_EUNFIT;
fail:
    return st;
}
