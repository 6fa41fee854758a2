/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_plan.c - the properties of A that solver auto examines, and the plan of
 * steps that follows from them.
 *
 * The plan depends on symmetry, signs and zeros of the diagonal, diagonal
 * dominance, size and place.  The steps, in order:
 *
 *   On a GPU first, where rows are short and many depend on the row above
 *   (find_depth), and A is not symmetric:
 *     gmres, ilut 1e-6, fill 50   unless its predicted fill takes longer than
 *                                 iterations with ilu0
 *   On the host, first (add_early), each if predicted to be fastest:
 *     direct, dense               tiny or nearly full A (chain_factors.c), if
 *                                 the next two take longer
 *     bicgstab, jacobi            A not definite, most rows strongly dominant
 *     bicgstab, ilu0              A not definite: a few iterations
 *     direct, ilut                complete factors (chain_factors.c)
 *     gmres, ilut 1e-6, fill 50   A not symmetric, short rows
 *   direct, factor                if predicted to be fastest (chain_factors.c)
 *
 *   A may be positive definite:
 *     block_cg, amg               if predicted to be fastest (chain_amg.c)
 *     block_cg, fallback cg       not abandoned as too slow if the caller names
 *                                 a symmetric preconditioner
 *     block_cg, ic0               unless block_cg found A indefinite
 *   else, if no diagonal entry is small relative to its row, on the host and
 *   for large blocks on a GPU:
 *     bicgstab, jacobi            on a GPU, where rows are dominated
 *     bicgstab, ilu0
 *     gmres or block_gmres, ilu0
 *   or for small blocks on a GPU:
 *     block_gmres, ilu0
 *     block_gcrodr, ilu0
 *     bicgstab, ilu0
 *
 *   minres, jacobi                A symmetric and indefinite
 *   block_cg or gmres, factor     where the factor module is installed
 *   gmres, ilut 1e-3, fill 10
 *   gmres, ilut 1e-6, fill 50
 *   gmres, ilut 1e-12             fill as far as work and memory allow
 *   gmres, dense                  n <= 2000, unless dense=never
 *
 * A step of bicgstab with l = 2 makes 4 products and about 60 block passes; in
 * gmres the orthogonalisation after product j makes about 4 j passes.  So short
 * recurrences are faster where passes dominate.  Where products dominate,
 * methods that need few of them are faster.  This is the case for small blocks
 * on a GPU: a triangular solve takes 1 to 2 microseconds for each level of its
 * dependences, while blocks of up to SMALL_BLOCK elements stay in the cache.
 *
 * A block Krylov space gains k dimensions with each product, so it needs at
 * most n / k products, in practice a small fraction of that.  Deflated restarts
 * (block_gcrodr) have a cost that is recovered from the third cycle on.
 * Diagonally dominant matrices with large blocks need no triangular solves at
 * all. */
#include "solvers/auto/chain.h"

#include <math.h>
#include <string.h>

#include "core/backend.h"
#include "driver/precond.h"
#include "operator/direct.h"
#include "operator/operator_matrix.h"
#include "matrix/triangle.h"

/* Rows below which all steps together take less time than loading the factor
 * module. */
enum { FACTOR_ROWS = 100 };
/* SMALL_BLOCK: largest number of elements of a block that is small on a GPU,
 * counting at least four columns, since factors are applied by rows.
 * SMALL_ROWS: largest number of rows per column for which a block Krylov space
 * is used on the host. */
enum { SMALL_BLOCK = 1 << 19, SMALL_ROWS = 500 };
/* Limits within which single precision is faster on a GPU, as measured
 * (doc/benchmarks.md).  An iteration moves little more than half of the bytes.
 * With 16 columns it is 1.3 to 1.6 times as fast for blocks of at least
 * LARGE_BLOCK elements, or MANY times that where rows have more than
 * FEW_ENTRIES entries, since the product gains less there.  The gain of a solve
 * depends on the additional iterations of block CG: 5 to 10 % on grids, whose
 * rows are nearly diagonally dominant (SPS_ROW_NEAR, in a fraction MOST_ROWS of
 * the rows), but 30 to 200 % on vector problems, shells and plates, whose rows
 * are not.  A row longer than LONGER times the mean is typical of graphs, where
 * the product is bound by gathers: there a solve is 0.65 times as fast as in
 * double precision. */
#define LARGE_BLOCK ((int64_t)1 << 22)
#define FEW_ENTRIES 10
#define MANY 8
#define MOST_ROWS 0.9
#define LONGER 4
/* Smallest fraction of diagonally dominant rows with which jacobi is tried on a
 * GPU. */
#define DOMINATED 0.9
/* Constants of add_early and add_short. */
enum { BRIEF_ROWS = 400, BRIEF = 5, TRIAL = 2, SHORT_TRIAL = 4, LONG_TRIAL = 6,
       QUICK = 30, FEW_ROWS = 6000, SHORT_ROWS = 20000, SHORT = 8,
       VERY_QUICK = 10 };
/* Smallest fraction of strongly dominant rows with which jacobi is tried before
 * ilu0 on the host. */
#define MOSTLY_STRONG 0.75
/* Iterations with ilu0 whose time the factors in place of long chains may take:
 * of networks with large differences of conductance ilu0 takes 200. */
enum { UNTIL = 100 };
#define HEAD ((int64_t)1 << 16)   /* rows whose levels are counted first */
/* Multiply-adds of the last ilut step if its rows have the largest length that
 * its fill allows. */
#define WORK 1e11
/* Factors may take SURE times the predicted time of multigrid: that assumes 10
 * iterations, where 20 are common, while the work of factors is known. */
#define SURE 2.5
/* Predicted seconds that factors may take once cheaper steps have failed: about
 * those of the last ilut step (WORK). */
#define LAST_WORTH 60

/* ---------------------------------------------------------- properties of A */

/* projected: empty rows are null vectors that are projected away (nullspace.c),
 * so they do not make A indefinite. */
static sps_status examine_rows(const sps_operator *A, bool projected,
                               sps_chain_traits *o)
{
    const double n = (double)A->n, nnz = (double)A->A->nnz;
    sps_row_kinds k;
    sps_status st;

    SPS_TRY(spsi_matrix_kinds(A, projected, &k));
    o->zero = k.zero;
    o->negative = k.negative;
    o->weak = k.weak;
    o->odd = k.odd;
    o->spread = nnz > 0 ? (double)k.squares * n / (nnz * nnz) : 1;
    o->dominated = n > 0 ? (double)k.dominated / n : 1;
    o->near = n > 0 ? (double)k.near / n : 1;
    o->strong = n > 0 ? (double)k.strong / n : 1;
fail:
    return st;
}

/* Sets *seconds to those of QUICK iterations with ilu0 of the first `rows` rows
 * on a GPU, each with two triangular solves; 0 if the factors of add_short take
 * longer whatever their fill. */
static sps_status weigh_levels(const sps_chain *l, int64_t rows,
                               double *seconds)
{
    const sps_machine *m = &l->ctx->machine;
    sps_csr head = *l->A->A;
    sps_levels levels = { 0 };
    sps_status st;

    head.nrow = rows;
    SPS_TRY(spsi_levels_find(l->ctx, &head, false, &levels));
    *seconds = 2 * QUICK * m->level * (double)levels.count;
    if (*seconds <= m->core.rows.least_row * (double)rows) *seconds = 0;
fail:
    spsi_levels_clear(l->ctx, &levels);
    return st;
}

/* Sets o->deep.  In a network that is numbered along its paths each row depends
 * on the one above it, and an iteration takes 3 microseconds times the number
 * of rows.  Whether the factors have too much fill is known once they are
 * ordered (ilut.c).  The levels of a large grid are not counted: its first rows
 * show that they are few. */
static sps_status find_depth(const sps_chain *l, sps_chain_traits *o)
{
    const sps_csr *A = l->A->A;
    sps_status st = SPS_OK;

    if (l->ctx->opt.place != SPS_CUDA || o->symmetric ||
        A->nnz > SHORT * A->nrow)
        return SPS_OK;
    SPS_TRY(spsi_operator_fetch(l->A));
    SPS_TRY(weigh_levels(l, A->nrow < HEAD ? A->nrow : HEAD, &o->deep));
    if (o->deep > 0 && A->nrow > HEAD)
        SPS_TRY(weigh_levels(l, A->nrow, &o->deep));
fail:
    return st;
}

sps_status spsi_chain_examine(sps_chain *l, sps_chain_traits *o)
{
    sps_status st = SPS_OK;

    *o = (sps_chain_traits){
        .symmetric = l->A->props & (SPS_SYMMETRIC | SPS_SPD) };
    if (!o->symmetric)
        SPS_TRY(spsi_operator_symmetric(l->A, &o->symmetric, NULL));
    SPS_TRY(examine_rows(l->A, !l->opt.nullspace_basis &&
                         (!l->opt.nullspace ||
                          strcmp(l->opt.nullspace, "none")), o));
    SPS_TRY(find_depth(l, o));
    l->version = l->A->version;
    l->finite = o->odd == 0;
    l->symmetric = o->symmetric && !o->zero && !o->negative;
    l->indefinite = !l->symmetric;
fail:
    return st;
}

/* ------------------------------------------------------------------ steps */

static void add(sps_chain *l, sps_step step)
{
    l->step[l->count++] = step;
}

/* Returns the limit of fill for the last ilut step. */
static double largest_fill(const sps_chain *l)
{
    const double n = (double)l->A->n + 1;
    const double mean = (double)l->A->A->nnz / n + 1;

    return fmax(60, fmin(1000, sqrt(WORK / n) / mean));
}

/* Adds steps with sparse direct factors (factor.c): with conjugate gradients if
 * A may be definite, and with gmres, since conjugate gradients break down at
 * their first iteration if A is indefinite. */
static void add_factors(sps_chain *l)
{
    if (l->A->n < FACTOR_ROWS || !strcmp(l->opt.factors, "never") ||
        !spsi_direct_possible())
        return;
    if (l->symmetric)
        add(l, (sps_step){ "auto", "factor", 0, 0, 10, 40, 0.5, 1, false });
    add(l, (sps_step){ "gmres", "factor", 0, 0, 10, 40, 0.5,
                       l->symmetric ? -1 : 0, false });
}

/* Returns whether A is not definite and is solved on the host. */
static bool quick(const sps_chain *l)
{
    return !l->symmetric &&
           l->ctx->opt.place != SPS_CUDA && l->opt.norm != SPS_NORM_START;
}

/* Returns whether A is nonsymmetric and has many levels, on a GPU. */
static bool deep(const sps_chain *l, const sps_chain_traits *o)
{
    return o->deep > 0 && l->opt.norm != SPS_NORM_START;
}

/* Returns the predicted seconds of an iteration of bicgstab with ilu0: 60
 * passes over blocks and 8 over A. */
static double iteration(const sps_chain *l)
{
    const double block = 8.0 * (double)l->A->n * l->k;
    const double A = 12.0 * (double)l->A->A->nnz;

    return (60 * block + 8 * A) / l->ctx->machine.core.copy;
}

/* Returns how many iterations of bicgstab with ilu0 are tried: as many as take
 * no longer than the analysis for factors, which is a fifth to a third of all
 * their time; 0 if TRIAL take more than half of it, as with many columns.
 * Complete factors by ilut are quicker than that. */
static int trial(const sps_chain *l)
{
    const double count = spsi_direct_analysis_seconds(l->A) / iteration(l);
    const int most = l->factors.complete > 0 ? SHORT_TRIAL : LONG_TRIAL;

    return count < 2 * TRIAL ? 0 : (int)fmin(count, most);
}

/* Returns whether dense factors are predicted to take at least twice the time
 * of TRIAL iterations with ilu0. */
static bool slow_dense(const sps_chain *l)
{
    const double nnz = (double)l->A->A->nnz;
    const double work = 0.5 * nnz * nnz / (double)(l->A->n + 1);

    return spsi_chain_dense(l) > 2 * (TRIAL * iteration(l) +
                                     work * l->ctx->machine.core.rows.flop);
}

static void add_dense(sps_chain *l)
{
    if (!strcmp(l->opt.dense, "auto") && spsi_chain_dense(l) > 0)
        add(l, (sps_step){ "gmres", "dense", 0, 0, 10, 40, 0.5, 0, true });
}

/* Adds a step with ilut and almost no dropping, if rows are short. */
static void add_short(sps_chain *l, const sps_chain_traits *o, int64_t least,
                      int64_t most)
{
    const int64_t n = l->A->n;
    const bool host = quick(l) && !o->symmetric;

    if (!(host || deep(l, o)) || n <= least || n > most ||
        l->A->A->nnz > SHORT * n)
        return;
    if (deep(l, o)) l->factors.deep = l->count;
    add(l, (sps_step){ "gmres", "ilut", 1e-6, 50, 10, 60, 0.2, 0, false });
}

/* Adds complete factors by ilut. */
static void add_complete(sps_chain *l)
{
    if (l->factors.complete > 0)
        add(l, (sps_step){ "gmres", "ilut", 0, (double)l->A->n + 1, 10, 40, 0.5,
                           0, true });
}

/* Adds the steps that are tried first.  Measured on 71 nonsymmetric systems of
 * many kinds with 30 to 36 000 rows: ilu0 is fastest where bicgstab needs fewer
 * than QUICK iterations, 0.15 to 0.7 of the time of factors, and TRIAL to
 * LONG_TRIAL iterations show whether it will: where values differ by many
 * orders of magnitude (reservoirs, plasticity) residuals grow a thousandfold
 * first, and converge within 10 iterations.  Where jacobi needs fewer than
 * VERY_QUICK iterations, these take half of the set-up of ilu0.  Complete
 * factors of few or very short rows take no longer than that trial.  Elsewhere
 * ilut takes 0.3 to 1 of that time where rows are short and few (networks,
 * stochastic processes), since factors have an overhead for each row and front;
 * where factors are refused, ilut is better than many iterations with ilu0
 * (memplus: 0.05 of the time).  Circuits and other graphs with hubs and short
 * rows fill up around these: there ilut is first, 0.2 to 0.9 of the time of
 * factors on six of eight such systems, 1.2 at most. */
static void add_early(sps_chain *l, const sps_chain_traits *o)
{
    const bool brief = l->A->n <= BRIEF_ROWS ||
                       l->A->A->nnz <= BRIEF * l->A->n;
    const bool hubs = o->spread > SPS_CHAIN_HUBS;
    const bool wait = quick(l) && slow_dense(l);
    const int64_t few = hubs ? SHORT_ROWS : FEW_ROWS;

    if (!wait) add_dense(l);
    if (hubs) add_short(l, o, 0, few);
    if (brief && !wait) add_complete(l);
    if (quick(l) && o->zero == 0 && o->strong >= MOSTLY_STRONG)
        add(l, (sps_step){ "bicgstab", "jacobi", 0, 0, TRIAL, VERY_QUICK, 0.1,
                           0, false });
    if (quick(l) && o->zero == 0 && trial(l) > 0)
        add(l, (sps_step){ "bicgstab", "ilu0", 0, 0, trial(l), QUICK, 0.1, 0,
                           false });
    if (wait) add_dense(l);
    if (!brief || wait) add_complete(l);
    if (!hubs) add_short(l, o, 0, few);
    add_factors(l);
    l->factors.early = l->count;
    add_short(l, o, few, deep(l, o) ? l->A->n : SHORT_ROWS);
}

static void add_strong(sps_chain *l)
{
    add_factors(l);
    add(l, (sps_step){ "gmres", "ilut", 1e-3, 10, 60, 600, 0.25, 0, false });
    add(l, (sps_step){ "gmres", "ilut", 1e-6, 50, 40, 400, 0.5, 0, false });
    add(l, (sps_step){ "gmres", "ilut", 1e-12, largest_fill(l), 20, 200,
                       0.5, 0, false });
    if (l->A->n <= SPS_CHAIN_DENSE_ROWS && !strcmp(l->opt.dense, "auto"))
        add(l, (sps_step){ "gmres", "dense", 0, 0, 20, 200, 1, 0, false });
}

static bool small_on_gpu(const sps_chain *l)
{
    return l->ctx->opt.place == SPS_CUDA &&
           l->A->n * (l->k > 4 ? l->k : 4) <= (int64_t)SMALL_BLOCK;
}

/* Adds methods for general matrices, all with one preconditioner.  An iteration
 * of bicgstab makes four products.  With norm SPS_NORM_START there is only one
 * step. */
static void add_general(sps_chain *l, const char *precond, double last)
{
    const bool one = l->opt.norm == SPS_NORM_START;
    const bool small = small_on_gpu(l);
    const bool narrow = !small && l->k > 1 &&
                        l->A->n <= SMALL_ROWS * (int64_t)l->k;
    const char *space = l->k > 1 ? "block_gmres" : "gmres";

    if (small) {
        add(l, (sps_step){ space, precond, 0, 0, 50, 200, 0.2, 0, false });
        add(l, (sps_step){ "block_gcrodr", precond, 0, 0, 80, 800, 0.2, 0,
                           false });
    }
    if (!one) add(l, (sps_step){ "bicgstab", precond, 0, 0, 30, 300, 0.2, 0,
                                 false });
    if (narrow) add(l, (sps_step){ space, precond, 0, 0, 40, 400, 0.2, 0,
                                   false });
    if ((!small && !narrow) || last == 1)
        add(l, (sps_step){ "gmres", precond, 0, 0, 100, 1000, last, 0, false });
}

/* Returns whether the caller has chosen a preconditioner that is suitable for
 * CG; for a callback this is not known, and false is returned. */
static bool own_symmetric(const sps_chain *l)
{
    const sps_precond_type *type =
        l->M ? l->M->type : spsi_precond_type(l->opt.precond);

    return type && type->symmetric && !(l->M && l->M->user);
}

/* Plans the steps.  With a symmetric preconditioner given by the caller, no
 * method is faster than CG if A is definite, however slowly CG converges: that
 * step is abandoned only if A is found to be indefinite, on breakdown or on
 * stagnation. */
sps_status spsi_chain_plan(sps_chain *l, const sps_chain_traits *o)
{
    const bool own = l->M || strcmp(l->opt.precond, "auto");
    const char *precond = l->opt.precond;
    bool multigrid;
    sps_status st;

    l->count = l->at = l->factors.early = 0;
    l->factors.deep = -1;
    l->factors.deep_worth = o->deep * UNTIL / QUICK;
    l->factors.factored = l->factors.unfit = l->factors.completed = false;
    l->factors.refused = l->factors.worth[0] = l->factors.worth[1] = 0;
    if (!own) {
        l->factors.worth[0] = spsi_chain_worth(l, o);
        l->factors.worth[1] = LAST_WORTH;
        SPS_TRY(spsi_chain_complete(l, o, &l->factors.complete));
        add_early(l, o);
    }
    SPS_TRY(spsi_chain_multigrid(l, &multigrid));
    if (multigrid) {
        add(l, (sps_step){ "auto", "amg", 0, 0, 50, 400, 0.5, 1, false });
        l->factors.worth[0] = fmin(l->factors.worth[0], SURE * l->multigrid);
    }
    if (l->symmetric && own_symmetric(l))
        add(l, (sps_step){ "auto", precond, 0, 0, 0, 0, 1, 0, false });
    else if (l->symmetric)
        add(l, (sps_step){ "auto", precond, 0, 0, 500, 5000, 0.2, 0, false });
    if (own && !strcmp(precond, "factor"))
        add(l, (sps_step){ "gmres", precond, 0, 0, 10, 40, 1, 0, false });
    else if (own)
        add_general(l, precond, 1);
    if (own) return SPS_OK;
    if (l->symmetric) {
        add(l, (sps_step){ l->k > 1 ? "block_cg" : "cg", "ic0", 0, 0, 200,
                           2000, 0.2, 1, false });
    } else if (o->weak == 0) {
        if (l->ctx->opt.place == SPS_CUDA && !small_on_gpu(l) &&
            o->dominated >= DOMINATED && l->opt.norm != SPS_NORM_START)
            add(l, (sps_step){ "bicgstab", "jacobi", 0, 0, 20, 200, 0.1, 0,
                               false });
        add_general(l, "ilu0", 0.2);
    }
    if (o->symmetric)
        add(l, (sps_step){ "minres", "jacobi", 0, 0, 50, 1000, 0.2, -1,
                           false });
    add_strong(l);
fail:
    return st;
}

/* Returns the reason against single precision, or NULL.  For blocks that stay
 * in cache an iteration is bound by launches or arithmetic, and single
 * precision only adds iterations. */
const char *spsi_chain_against_single(const sps_chain_traits *o, bool definite,
                                      const sps_features *f, int k)
{
    const bool full = definite && f->mean_length > FEW_ENTRIES;

    if (f->nrow * k < LARGE_BLOCK * (full ? MANY : 1))
        return "blocks with so few elements are not faster in single precision";
    if (definite && o->near < MOST_ROWS)
        return "the rows are not diagonally dominant, and block_cg in single "
               "precision then needs many more iterations";
    if (definite && (double)f->max_length > LONGER * f->mean_length)
        return "some rows are much longer than others, and the product is not "
               "faster in single precision";
    return NULL;
}

void spsi_chain_precision(sps_chain *l, const sps_chain_traits *o)
{
    const sps_features *f = &l->A->f;
    const char *why = "the host is not faster in single precision";

    if (strcmp(l->opt.precision, "mixed")) return;
    if (l->ctx->opt.place == SPS_CUDA)
        why = spsi_chain_against_single(o, l->symmetric, f, l->k);
    if (!why) return;
    spsi_note(l->ctx, "auto: double precision, since %s (%lld x %d, %.1f "
              "entries per row)", why, (long long)l->A->n, l->k,
              f->mean_length);
    l->opt.precision = "double";
}

void spsi_chain_note(const sps_chain *l, const sps_chain_traits *o)
{
    if (l->symmetric) return;     /* block_cg adds its own note */
    spsi_note(l->ctx, "solver auto: %s with %s, since the matrix is %s (%lld "
              "zero, %lld negative diagonal entries; %.0f %% of the rows are "
              "diagonally dominant)", spsi_chain_name(l, 0),
              l->M ? "the given preconditioner" : l->step[0].precond,
              o->symmetric ? "symmetric and indefinite" : "not symmetric",
              (long long)o->zero, (long long)o->negative,
              100 * o->dominated);
}
