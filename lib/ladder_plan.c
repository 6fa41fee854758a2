/* SPDX-License-Identifier: BSD-3-Clause */
/* ladder_plan.c - what solver auto sees of A, and the steps that follow.
 *
 * Symmetry, signs and zeros of the diagonal, how far it dominates, size and
 * place:
 *
 *   may be positive definite    else
 *   block_cg, cg by its side    as below (to the end where the caller names a
 *                               symmetric preconditioner)
 *   block_cg, ic0  (unless block_cg found A indefinite)
 *                  minres, jacobi        (symmetric, indefinite)
 *                  gmres, ilut 1e-3, fill 10
 *                  gmres, ilut 1e-6, fill 50
 *                  gmres, ilut 1e-12, fill as far as work and memory allow
 *                  gmres, dense          (n <= 2000, unless dense=never)
 *
 * Not definite, no entry of the diagonal small beside its row:
 *
 *   host, and large blocks on a GPU     small blocks on a GPU
 *   bicgstab, jacobi (GPU, dominated)   block_gmres, ilu0
 *   bicgstab, ilu0                      block_gcrodr, ilu0
 *   gmres or block_gmres, ilu0          bicgstab, ilu0
 *
 * A step of bicgstab, l = 2, is 4 products and about 60 block passes; the
 * product numbered j of gmres costs 2 j + 4 passes twice.  So short recurrences
 * win where passes count.  Where products count, those win that need few: a
 * triangular solve on a GPU takes its chain of levels, 1 to 2 microseconds
 * each, and blocks up to SMALL_BLOCK numbers pass through its cache meanwhile.
 * A block space gains k dimensions with each product: at most n / k of them,
 * in practice a small part of that.  Deflated restarts (block_gcrodr) cost some
 * and pay from the third cycle on.  Dominated matrices with large blocks need
 * no triangular solves at all. */
#include "ladder.h"

#include <math.h>
#include <string.h>

#include "backend.h"
#include "precond.h"

enum { DENSE_ROWS = 2000 };
/* Numbers of a block (of four columns at least: factors are made by rows) that
 * make it small on a GPU; rows over columns that make a block space on the
 * host. */
enum { SMALL_BLOCK = 1 << 19, SMALL_ROWS = 500 };
/* Where floats pay on a GPU, by what was measured (doc/benchmarks.md).  An
 * iteration in floats moves little more than half of the bytes and is 1.3 to 1.6
 * times as fast at 16 columns, from LARGE_BLOCK numbers on, or MANY times that
 * with more than FEW_ENTRIES a row, whose product is no faster by that much.
 * What that is worth hangs on the iterations that floats add to block CG, which
 * no count of bytes tells: 5 to 10 % on grids, whose rows are all but dominated
 * by their diagonals (NEAR of it, in MOST_ROWS of them), 30 to 200 % on vector
 * problems, shells and plates, which are far from it.  Rows much LONGER than
 * others are those of graphs, where the product waits for gathers: 0.65. */
#define LARGE_BLOCK ((int64_t)1 << 22)
#define FEW_ENTRIES 10
#define MANY 8
#define NEAR 0.8
#define MOST_ROWS 0.9
#define LONGER 4
/* Share of dominated rows from which jacobi is tried on a GPU. */
#define DOMINATED 0.9
/* Multiply-adds that rows of full length would cost the last ilut. */
#define WORK 1e11

/* ------------------------------------------------------------------- look */

/* projected: rows without entries are null vectors that are taken out
 * (nullspace.c), and no sign of an indefinite A. */
static void look_at_rows(const sps_csr *A, int threads, bool projected,
                         sps_looks *o)
{
    int64_t dominated = 0, near = 0, zero = 0, negative = 0, weak = 0;

#pragma omp parallel for schedule(static, 1024) num_threads(threads)           \
    reduction(+ : dominated, near, zero, negative, weak) if (A->nnz > 100000)
    for (int64_t i = 0; i < A->nrow; i++) {
        double d = 0, others = 0, largest = 0;
        bool alone = projected;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const double a = spsi_csr_value(A, p);

            if (A->col[p] == i) d += a;
            else others += fabs(a);
            largest = fmax(largest, fabs(a));
            alone = alone && A->col[p] == i;
        }
        zero += d == 0 && !alone;
        negative += d < 0;
        weak += fabs(d) < 1e-3 * largest;
        dominated += d != 0 && fabs(d) >= (1 - 1e-12) * others;
        near += d != 0 && fabs(d) >= NEAR * others;
    }
    o->zero = zero;
    o->negative = negative;
    o->weak = weak;
    o->dominated = A->nrow ? (double)dominated / (double)A->nrow : 1;
    o->near = A->nrow ? (double)near / (double)A->nrow : 1;
}

sps_status spsi_ladder_look(sps_ladder *l, sps_looks *o)
{
    sps_status st = SPS_OK;

    *o = (sps_looks){ .symmetric = l->A->props & (SPS_SYMMETRIC | SPS_SPD) };
    SPS_TRY(spsi_operator_fetch(l->A));
    if (!o->symmetric)
        SPS_TRY(sps_csr_symmetric(l->ctx, l->A->A, 1e-10, &o->symmetric,
                                  NULL));
    look_at_rows(l->A->A, l->ctx->threads, !l->opt.nullspace_basis &&
                 (!l->opt.nullspace || strcmp(l->opt.nullspace, "none")), o);
    l->version = l->A->version;
    l->symmetric = o->symmetric && !o->zero && !o->negative;
    l->indefinite = !l->symmetric;
fail:
    return st;
}

/* ------------------------------------------------------------------ steps */

static void add(sps_ladder *l, sps_step step)
{
    l->step[l->count++] = step;
}

/* The bound on rows of the last ilut. */
static double largest_fill(const sps_ladder *l)
{
    const double n = (double)l->A->n + 1;
    const double mean = (double)l->A->A->nnz / n + 1;

    return fmax(60, fmin(1000, sqrt(WORK / n) / mean));
}

static void add_strong(sps_ladder *l)
{
    add(l, (sps_step){ "gmres", "ilut", 1e-3, 10, 60, 600, 0.25, 0 });
    add(l, (sps_step){ "gmres", "ilut", 1e-6, 50, 40, 400, 0.5, 0 });
    add(l, (sps_step){ "gmres", "ilut", 1e-12, largest_fill(l), 20, 200,
                       0.5, 0 });
    if (l->A->n <= DENSE_ROWS && !strcmp(l->opt.dense, "auto"))
        add(l, (sps_step){ "gmres", "dense", 0, 0, 20, 200, 1, 0 });
}

static bool small_on_gpu(const sps_ladder *l)
{
    return l->ctx->opt.place == SPS_CUDA &&
           l->A->n * (l->k > 4 ? l->k : 4) <= (int64_t)SMALL_BLOCK;
}

/* Methods for any matrix with one preconditioner.  Iterations of bicgstab are
 * four products.  With norm START there is one step. */
static void add_general(sps_ladder *l, const char *precond, double last)
{
    const bool one = l->opt.norm == SPS_NORM_START;
    const bool small = small_on_gpu(l);
    const bool narrow = !small && l->k > 1 &&
                        l->A->n <= SMALL_ROWS * (int64_t)l->k;
    const char *space = l->k > 1 ? "block_gmres" : "gmres";

    if (small) {
        add(l, (sps_step){ space, precond, 0, 0, 50, 200, 0.2, 0 });
        add(l, (sps_step){ "block_gcrodr", precond, 0, 0, 80, 800, 0.2, 0 });
    }
    if (!one) add(l, (sps_step){ "bicgstab", precond, 0, 0, 30, 300, 0.2, 0 });
    if (narrow) add(l, (sps_step){ space, precond, 0, 0, 40, 400, 0.2, 0 });
    if ((!small && !narrow) || last == 1)
        add(l, (sps_step){ "gmres", precond, 0, 0, 100, 1000, last, 0 });
}

/* Whether the caller has named a preconditioner that conjugate gradients may
 * have; a callback promises nothing. */
static bool own_symmetric(const sps_ladder *l)
{
    const sps_precond_type *type =
        l->M ? l->M->type : spsi_precond_type(l->opt.precond);

    return type && type->symmetric && !(l->M && l->M->user);
}

/* With a preconditioner that stays the same no method gains on conjugate
 * gradients where A is definite, however long its residual stays: it is left
 * when it finds that A is not, breaks down or stagnates. */
void spsi_ladder_plan(sps_ladder *l, const sps_looks *o)
{
    const bool own = l->M || strcmp(l->opt.precond, "auto");
    const char *precond = l->opt.precond;

    l->count = l->at = 0;
    if (l->symmetric && own_symmetric(l))
        add(l, (sps_step){ "auto", precond, 0, 0, 0, 0, 1, 0 });
    else if (l->symmetric)
        add(l, (sps_step){ "auto", precond, 0, 0, 500, 5000, 0.2, 0 });
    if (own) {
        add_general(l, precond, 1);
        return;
    }
    if (l->symmetric) {
        add(l, (sps_step){ l->k > 1 ? "block_cg" : "cg", "ic0", 0, 0, 200,
                           2000, 0.2, 1 });
    } else if (o->weak == 0) {
        if (l->ctx->opt.place == SPS_CUDA && !small_on_gpu(l) &&
            o->dominated >= DOMINATED && l->opt.norm != SPS_NORM_START)
            add(l, (sps_step){ "bicgstab", "jacobi", 0, 0, 20, 200, 0.1, 0 });
        add_general(l, "ilu0", 0.2);
    }
    if (o->symmetric)
        add(l, (sps_step){ "minres", "jacobi", 0, 0, 50, 1000, 0.2, -1 });
    add_strong(l);
}

/* Where blocks stay in a cache an iteration waits for launches or for the
 * arithmetic of a core, and floats only add iterations to it. */
const char *spsi_ladder_against_floats(const sps_looks *o, bool definite,
                                       const sps_features *f, int k)
{
    const bool full = definite && f->mean_length > FEW_ENTRIES;

    if (f->nrow * k < LARGE_BLOCK * (full ? MANY : 1))
        return "blocks of so few numbers are not faster in floats";
    if (definite && o->near < MOST_ROWS)
        return "rows are not dominated by their diagonals, and block_cg in "
               "floats takes many more steps there";
    if (definite && (double)f->max_length > LONGER * f->mean_length)
        return "some rows are much longer than others, and the product is not "
               "faster in floats";
    return NULL;
}

void spsi_ladder_weigh(sps_ladder *l, const sps_looks *o)
{
    const sps_features *f = &l->A->f;
    const char *why = "the host is not faster in floats";

    if (strcmp(l->opt.precision, "mixed")) return;
    if (l->ctx->opt.place == SPS_CUDA)
        why = spsi_ladder_against_floats(o, l->symmetric, f, l->k);
    if (!why) return;
    spsi_note(l->ctx, "auto: in doubles, since %s (%lld x %d, %.1f entries a "
              "row)", why, (long long)l->A->n, l->k, f->mean_length);
    l->opt.precision = "double";
}

void spsi_ladder_tell(const sps_ladder *l, const sps_looks *o)
{
    if (l->symmetric) return;     /* the first step tells its own */
    spsi_note(l->ctx, "solver auto: %s with %s, since the matrix is %s "
              "(%lld zero, %lld negative diagonal entries; %.0f %% of the "
              "rows are dominated by theirs)", l->step[0].solver,
              l->M ? "the given preconditioner" : l->step[0].precond,
              o->symmetric ? "symmetric and indefinite" : "not symmetric",
              (long long)o->zero, (long long)o->negative,
              100 * o->dominated);
}
