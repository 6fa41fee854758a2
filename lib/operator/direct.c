/* SPDX-License-Identifier: BSD-3-Clause */
/* direct.c - see direct.h.
 *
 * The library of factors is not made for several threads, even on separate
 * matrices: one lock for the process is held during each call.  BLAS has one
 * thread meanwhile (core/blas.h), so that bits do not depend on the number of
 * its threads. */
#include "operator/direct.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "core/blas.h"
#include "core/comm.h"
#include "core/deadline.h"
#include "core/module.h"

#define PIECE 0.5             /* seconds of a solve between two tests whether
                                 sps_cancel was called */
#define SAFE 2.0              /* factor by which a prediction may be wrong */

/* Failures begin with this. */
#define NAME "direct factors"

enum { FEW_COLUMNS = 8 };

/* Percent of working memory beyond the analysis, in the first attempt and in
 * the last one. */
enum { FIRST_SPARE = SPS_FACTOR_SPARE, LAST_SPARE = FIRST_SPARE * 64 };
/* Least limit of the working memory after the first attempt.  Predictions count
 * whole megabytes, and index arrays, which grow with the spare percent, may
 * take all of a small one: nothing is then left for postponed pivots. */
#define LEAST_BYTES 3.2e7

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------ one at a time */

/* Waits for other threads, but no longer than the time limit. */
static sps_status enter(sps_context *ctx)
{
    sps_status st = spsi_blas_begin(ctx, 1);
    struct timespec until;

    if (st != SPS_OK) return st;
    for (;;) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 20000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_mutex_timedlock(&lock, &until) == 0) return SPS_OK;
        st = spsi_check_deadline(ctx, NAME);
        if (st != SPS_OK) break;
    }
    spsi_blas_end(1);
    return st;
}

static void leave(void)
{
    pthread_mutex_unlock(&lock);
    spsi_blas_end(1);
}

/* Translates a failed call of the library into a status with a text. */
static sps_status failed(sps_context *ctx, const sps_factor_library *m,
                         int code, const sps_factor_facts *facts)
{
    const int *d = facts->detail;

    switch (code) {
    case SPS_FACTOR_OK:
        return SPS_OK;
    case SPS_FACTOR_MORE:
        return spsi_fail(ctx, SPS_EUNFIT, NAME ": more pivots were postponed "
                         "than %d times the predicted %.3g bytes hold, as in "
                         "a matrix that is nearly singular (%s: error %d, %d)",
                         (100 + LAST_SPARE) / (100 + FIRST_SPARE),
                         (double)facts->bytes, m->name, d[0], d[1]);
    case SPS_FACTOR_MEMORY:
        return spsi_fail(ctx, SPS_ENOMEM, NAME ": no host memory, %.3g bytes "
                         "by prediction (%s: error %d, %d)",
                         (double)facts->bytes, m->name, d[0], d[1]);
    case SPS_FACTOR_SINGULAR:
        return spsi_fail(ctx, SPS_EUNFIT, NAME ": the matrix is singular "
                         "(error %d, %d of %s); if B is in the range of A, an "
                         "iterative method without factors finds X", d[0],
                         d[1], m->name);
    case SPS_FACTOR_GAVE_UP:
        return spsi_fail(ctx, SPS_EUNFIT, NAME ": %s tried to end the "
                         "process; it will not be called any more", m->name);
    default:
        return spsi_fail(ctx, SPS_EUNFIT, NAME ": %s failed with error %d, "
                         "%d", m->name, d[0], d[1]);
    }
}

/* -------------------------------------------------------------- the entries */

/* Returns whether entry (i, j) is passed to the library: of a symmetric matrix
 * only the lower triangle is. */
static bool wanted(sps_factor_kind kind, int64_t i, int64_t j)
{
    return kind == SPS_FACTOR_GENERAL || j <= i;
}

static sps_status to_coordinates(const sps_direct *d, sps_factor_matrix *C)
{
    const sps_csr *A = d->A->A;
    sps_status st;

    C->kind = d->kind;
    C->n = (int32_t)A->nrow;
    SPS_TRY(SPS_NEW(d->ctx, A->nnz, &C->row));
    SPS_TRY(SPS_NEW(d->ctx, A->nnz, &C->col));
    SPS_TRY(SPS_NEW(d->ctx, A->nnz, &C->val));
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const double a = spsi_csr_value(A, p);

            SPS_REQUIRE(d->ctx, isfinite(a), SPS_EUNFIT, NAME ": entry (%lld, "
                        "%d) of the matrix is %g", (long long)i + 1,
                        A->col[p] + 1, a);
            if (!wanted(d->kind, i, A->col[p])) continue;
            C->row[C->nnz] = (int32_t)i + 1;
            C->col[C->nnz] = A->col[p] + 1;
            C->val[C->nnz++] = a;
        }
fail:
    return st;
}

static void drop_coordinates(sps_context *ctx, sps_factor_matrix *C)
{
    spsi_free(ctx, C->row);
    spsi_free(ctx, C->col);
    spsi_free(ctx, C->val);
}

static sps_status find_kind(sps_direct *d)
{
    const sps_operator *A = d->A;
    bool symmetric = A->props & (SPS_SYMMETRIC | SPS_SPD);
    sps_status st = SPS_OK;

    if (!symmetric)
        SPS_TRY(spsi_operator_symmetric(A, &symmetric, NULL));
    d->kind = A->props & SPS_SPD ? SPS_FACTOR_DEFINITE
              : symmetric ? SPS_FACTOR_SYMMETRIC : SPS_FACTOR_GENERAL;
fail:
    return st;
}

/* ----------------------------------------------------------------- analysis */

static double seconds_left(const sps_context *ctx)
{
    return ctx->deadline > 0 ? ctx->deadline - spsi_agreed_now(ctx) : INFINITY;
}

/* Fails if work that cannot be interrupted does not fit into the time left. */
static sps_status require_time(sps_context *ctx, double seconds,
                               const char *what)
{
    const double left = seconds_left(ctx);
    sps_status st = spsi_check_deadline(ctx, NAME);

    if (st != SPS_OK) return st;
    SPS_REQUIRE(ctx, SAFE * seconds <= left, SPS_EUNFIT, NAME ": the %s "
                "was not started: it may need %.2g s and cannot be "
                "interrupted, and %.2g s are left", what, SAFE * seconds, left);
fail:
    return st;
}

static sps_status load(sps_context *ctx, const sps_factor_library **m_p)
{
    char why[SPS_ERROR_SIZE / 2];
    sps_status st = SPS_OK;

    *m_p = spsi_module_factor(why, sizeof why);
    SPS_REQUIRE(ctx, *m_p, SPS_EABSENT, NAME ": no module for them: %s; "
                "configure builds it where MUMPS without MPI is installed "
                "(Debian, Ubuntu: libmumps-seq-dev), and "
                "SPSOLVE_MODULE_PATH names its folder where it is elsewhere",
                why);
fail:
    return st;
}

static sps_status run_analysis(sps_direct *d, double most)
{
    /* Nested dissection is always tried where operations are not limited. */
    const double dissected =
        most > 0 ? 0 : d->ctx->machine.core.library.dissected_entry;
    sps_factor_matrix C = { 0 };
    sps_status st;
    int code;

    SPS_TRY(to_coordinates(d, &C));
    SPS_TRY(require_time(d->ctx, spsi_direct_analysis_seconds(d->A) +
                         dissected * (double)d->A->A->nnz, "analysis"));
    SPS_TRY(enter(d->ctx));
    code = d->library->analyse(&C, most, &d->of, &d->facts);
    leave();
    SPS_TRY(failed(d->ctx, d->library, code, &d->facts));
fail:
    drop_coordinates(d->ctx, &C);
    return st;
}

sps_status spsi_direct_analyse(const sps_operator *A, double most,
                               sps_direct **d_p)
{
    sps_context *ctx = A->ctx;
    sps_direct *d = A->cache->direct;
    sps_status st = SPS_OK;

    A->cache->direct = NULL;
    *d_p = d;
    if (d) return st;
    SPS_TRY(SPS_NEW(ctx, 1, &d));
    d->ctx = ctx;
    d->A = A;
    SPS_TRY(load(ctx, &d->library));
    SPS_REQUIRE(ctx, A->n < INT32_MAX, SPS_EUNFIT, NAME ": the matrix has %lld "
                "unknowns; fewer than 2^31 - 1 are supported",
                (long long)A->n);
    SPS_TRY(spsi_operator_fetch(A));
    SPS_TRY(find_kind(d));
    if (A->n > 0) SPS_TRY(run_analysis(d, most));
    *d_p = d;
    return SPS_OK;

fail:
    spsi_direct_destroy(&d);
    return st;
}

void spsi_direct_keep(sps_direct *d)
{
    spsi_direct_destroy(&d->A->cache->direct);
    d->A->cache->direct = d;
}

sps_status spsi_direct_partition(sps_context *ctx, const sps_factor_matrix *A,
                                 int parts, const float *share, int32_t *part)
{
    const sps_factor_library *m;
    char why[SPS_ERROR_SIZE / 2];
    sps_status st = SPS_OK;
    int code;

    m = spsi_module_factor(why, sizeof why);
    SPS_REQUIRE(ctx, m, SPS_EABSENT, "partition metis: METIS is called by the "
                "module of sparse factors, which is absent: %s; partition "
                "morton needs coordinates only", why);
    SPS_REQUIRE(ctx, m->partition, SPS_EABSENT, "partition metis: the module "
                "of sparse factors was built without METIS (Debian, Ubuntu: "
                "libmetis-dev)");
    SPS_TRY(enter(ctx));
    code = m->partition(A, parts, share, part);
    leave();
    SPS_REQUIRE(ctx, code == SPS_FACTOR_OK, code == SPS_FACTOR_MEMORY
                ? SPS_ENOMEM : SPS_EUNFIT, "partition metis: METIS failed for "
                "a graph of %d nodes and %lld edges", A->n, (long long)A->nnz);
fail:
    return st;
}

bool spsi_direct_possible(void)
{
    char why[SPS_ERROR_SIZE / 2];

    return spsi_module_factor(why, sizeof why) != NULL;
}

double spsi_direct_analysis_seconds(const sps_operator *A)
{
    const sps_core *c = &A->ctx->machine.core;

    return c->library.analysed_entry * (double)A->A->nnz +
           c->library.analysed_row * (double)A->n;
}

double spsi_direct_operations(const sps_context *ctx, double seconds)
{
    return seconds / ctx->machine.core.library.flop;
}

double spsi_direct_factor_seconds(const sps_direct *d)
{
    const sps_core *c = &d->ctx->machine.core;

    return c->library.flop * d->facts.flops +
           c->library.entry * (double)d->facts.entries +
           c->library.row * (double)d->A->n;
}

double spsi_direct_solve_seconds(const sps_direct *d, int k)
{
    const sps_core *c = &d->ctx->machine.core;

    return (c->library.solve_entry + c->library.column_entry * k) *
           (double)d->facts.entries +
           (c->library.solve_row + c->library.column_row * k) *
           (double)d->A->n;
}

double spsi_direct_seconds(const sps_operator *A, double entries,
                           double squares)
{
    const int sides = A->props & (SPS_SYMMETRIC | SPS_SPD) ||
                      (A->cache->transpose.known &&
                       A->cache->transpose.symmetric) ? 1 : 2;
    const double n = (double)A->n;
    const sps_core *c = &A->ctx->machine.core;

    if (!spsi_direct_possible()) return INFINITY;
    return spsi_direct_analysis_seconds(A) + c->library.row * n +
           sides * (c->library.entry * entries + c->library.flop * squares) +
           2 * (c->library.solve_row * n +
                c->library.solve_entry * sides * entries);
}

/* ----------------------------------------------------- factors and solution */

static void release(sps_direct *d)
{
    spsi_unclaim(d->ctx, d->claimed);
    d->claimed = 0;
}

/* Counts `bytes` in place of what was counted before. */
static sps_status claim(sps_direct *d, size_t bytes)
{
    sps_status st;

    release(d);
    SPS_TRY(spsi_claim(d->ctx, bytes, "the factors"));
    d->claimed = bytes;
fail:
    return st;
}

/* Makes one attempt at a factorisation with `spare` percent of additional
 * memory; all its memory is counted first. */
static sps_status attempt(sps_direct *d, const sps_factor_matrix *C, int spare,
                          int width, int *code)
{
    const double more = (100.0 + spare) / (100 + FIRST_SPARE);
    const double least = spare > FIRST_SPARE ? LEAST_BYTES : 0;
    const size_t bytes =
        (size_t)fmax(least, more * (double)d->facts.bytes);
    sps_status st;

    SPS_TRY(claim(d, bytes));
    SPS_TRY(require_time(d->ctx, spsi_direct_factor_seconds(d) +
                         spsi_direct_solve_seconds(d, width),
                         "factorisation, with one solve,"));
    SPS_TRY(enter(d->ctx));
    *code = d->library->factor(d->of, C, spare, (int64_t)bytes, &d->found);
    leave();
fail:
    return st;
}

sps_status spsi_direct_predict(sps_direct *d)
{
    return claim(d, (size_t)d->facts.bytes);
}

sps_status spsi_direct_factor(sps_direct *d, int width)
{
    sps_factor_matrix C = { 0 };
    sps_factor_facts told = d->facts;
    int code = SPS_FACTOR_MORE;
    sps_status st = SPS_OK;

    if (!d->of) return st;
    SPS_TRY(to_coordinates(d, &C));
    for (int spare = FIRST_SPARE;
         spare <= LAST_SPARE && code == SPS_FACTOR_MORE; spare *= 4)
        SPS_TRY(attempt(d, &C, spare, width, &code));
    memcpy(told.detail, d->found.detail, sizeof told.detail);
    SPS_TRY(failed(d->ctx, d->library, code, &told));
fail:
    drop_coordinates(d->ctx, &C);
    return st;
}

const int32_t *spsi_direct_zero_rows(const sps_direct *d)
{
    return d->found.zero > 0 ? d->library->zero_rows(d->of) : NULL;
}

/* Returns the number of columns that are solved without testing whether
 * sps_cancel was called: as many as are predicted to take PIECE seconds, but at
 * least FEW_COLUMNS, since each part reads the factors once. */
static int columns_of_part(const sps_direct *d, int k)
{
    int part = k;

    while (part >= 2 * FEW_COLUMNS &&
           spsi_direct_solve_seconds(d, part) > PIECE)
        part = (part + 1) / 2;
    return part;
}

static sps_status solve_part(const sps_direct *d, double *X, int k)
{
    sps_factor_facts facts;
    sps_status st;
    int code;

    SPS_TRY(enter(d->ctx));
    code = d->library->solve(d->of, X, (int32_t)d->A->n, k, &facts);
    leave();
    SPS_TRY(failed(d->ctx, d->library, code, &facts));
fail:
    return st;
}

sps_status spsi_direct_solve(const sps_direct *d, double *X, int k)
{
    const int part = columns_of_part(d, k);
    const size_t n = (size_t)d->A->n;
    sps_status st = SPS_OK;
    int done = 0;

    if (!d->of || k == 0) return st;
    for (; done < k; done += part) {
        const int left = k - done;

        SPS_REQUIRE(d->ctx, !spsi_agreed_cancel(d->ctx), SPS_EUNFIT,
                    NAME ": the solution was interrupted by sps_cancel");
        SPS_TRY(solve_part(d, X + n * (size_t)done,
                           left < part ? left : part));
    }
fail:
    if (st != SPS_OK)
        memset(X + n * (size_t)done, 0, n * (size_t)(k - done) * sizeof *X);
    return st;
}

void spsi_direct_destroy(sps_direct **d_p)
{
    sps_direct *d = *d_p;

    if (!d) return;
    pthread_mutex_lock(&lock);
    if (d->of) d->library->close(d->of);
    pthread_mutex_unlock(&lock);
    release(d);
    spsi_free(d->ctx, d);
    *d_p = NULL;
}
