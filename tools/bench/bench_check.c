/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_check.c - checks the results of kernels.
 *
 * One kernel, the plain one if it supports the types, is checked on the host
 * against sums in long double on some thousand rows.  Every other kernel is
 * compared with it completely, on the device for doubles and on the host for
 * floats.  Let u be the unit roundoff of the precision, r that of a kernel that
 * rounds operands (else 0), l the length of the row, and |x| <= 1/2.  Two
 * results with sums in any order then differ by no more than
 *
 *     (8 (l + 4) u + 3 r) sum |a| / 2          spmm
 *     (8 (k + 4) u + 3 r) k / 4                sddmm
 *
 * Results are initialised with NaN, so that elements a kernel does not write
 * are detected. */
#include "tools/bench/bench_trial.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "philox.h"

enum { SAMPLED = 4096 };

static bool single(const bench_trial *t)
{
    return t->p.block == SPS_F32;
}

static double bound_of(const bench_trial *t, int64_t i, double roundoff)
{
    const double u = (single(t) ? FLT_EPSILON : DBL_EPSILON) / 2;
    const int64_t *start = t->p.A->rowptr;

    if (t->sddmm)
        return (8 * (t->p.k + 4) * u + 3 * roundoff) * t->p.k / 4;
    return (8 * ((double)(start[i + 1] - start[i]) + 4) * u + 3 * roundoff) *
           t->sum[i];
}

static sps_status set_sums(bench_trial *t)
{
    const sps_csr *A = t->p.A;

    t->sum = malloc((size_t)(A->nrow + 1) * sizeof *t->sum);
    if (!t->sum)
        return SPS_ENOMEM;
#pragma omp parallel for
    for (int64_t i = 0; i < A->nrow; i++) {
        double sum = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            sum += fabs(spsi_csr_value(A, p));
        t->sum[i] = sum / 2;
    }
    return SPS_OK;
}
sps_status bench_trial_run(void *trial)
{
    const bench_trial *t = trial;

    if (t->recording)
        return t->ctx->backend->replay(t->ctx, t->recording);
    if (t->sddmm)
        return t->plan->kernel->sddmm(t->plan, &(sps_sddmm_args){
            .alpha = 1, .U = t->in, .V = t->other, .val = t->out->data});
    return t->plan->kernel->spmm(t->plan, &(sps_spmm_args){
        .alpha = 1, .X = t->in, .Y = t->out});
}

/* Fills a block, in double or single precision, with NaN, including the
 * padding. */
static sps_status poison(const sps_block *X)
{
    sps_block all = *X;
    const uint64_t bits = UINT64_C(0x7ff800007fc00000); /* two NaNs in single
                                                           precision */
    double nan;

    memcpy(&nan, &bits, sizeof nan);
    all.dtype = SPS_F64;
    all.n = (int64_t)(X->bytes / sizeof(double));
    all.k = all.width = 1;
    all.ld = 1;
    return X->ctx->backend->fill(&all, nan);
}

static sps_status fresh_result(bench_trial *t)
{
    sps_status st = poison(t->out);

    return st == SPS_OK ? bench_trial_run(t) : st;
}

/* --------------------------------------------- the reference in long double */

/* Returns element (row, j) of the block `in` (seed 1) or `other` (seed 2). */
static double element(const bench_trial *t, uint64_t seed, int64_t row, int j)
{
    const double x = spsi_philox_at(seed, row, j);

    return single(t) ? (double)(float)x : x;
}

/* Returns the largest error of row i relative to its bound.  got: the k
 * elements of the row or, for sddmm, as many as the row has entries. */
static double row_error(const bench_trial *t, int64_t i, const double *got)
{
    const sps_csr *A = t->p.A;
    const int64_t first = A->rowptr[i], end = A->rowptr[i + 1];
    const int64_t count = t->sddmm ? end - first : t->p.k;
    const double bound = bound_of(t, i, 0) / 2;
    double worst = 0;

    for (int64_t q = 0; q < count; q++) {
        long double right = 0;
        double e;

        for (int j = 0; t->sddmm && j < t->p.k; j++)
            right += (long double)element(t, 1, i, j) *
                     element(t, 2, A->col[first + q], j);
        for (int64_t p = first; !t->sddmm && p < end; p++)
            right += (long double)spsi_csr_value(A, p) *
                     element(t, 1, A->col[p], (int)q);
        e = fabs(got[q] - (double)right);
        if (!(e <= bound))
            return INFINITY;
        worst = bound > 0 && e / bound > worst ? e / bound : worst;
    }
    return worst;
}

/* Copies elements first .. first + count - 1 of the array at `data` to the
 * host. */
static sps_status fetch(const bench_trial *t, int64_t first, int64_t count,
                        double *to)
{
    const size_t item = spsi_dtype_size(t->p.block);
    const sps_status st = t->ctx->backend->download(
        t->ctx, to, (const char *)t->out->data + (size_t)first * item,
        (size_t)count * item);

    for (int64_t i = count - 1; single(t) && i >= 0; i--) {
        float x;

        memcpy(&x, (const char *)to + (size_t)i * sizeof x, sizeof x);
        to[i] = x;
    }
    return st;
}

/* Compares rows distributed over the matrix with sums in long double. */
static sps_status check_rows(const bench_trial *t, bool *wrong)
{
    const sps_csr *A = t->p.A;
    const int64_t step = A->nrow / SAMPLED | 1;
    const int64_t rows = (A->nrow + step - 1) / step;
    const int64_t most = t->sddmm ? t->p.f->max_length : t->p.k;
    double *got = malloc((size_t)(rows * most + 1) * sizeof *got);
    sps_status st = got ? SPS_OK : SPS_ENOMEM;
    double worst = 0;

    for (int64_t r = 0; r < rows && st == SPS_OK; r++) {
        const int64_t i = r * step, first = A->rowptr[i];

        st = fetch(t, t->sddmm ? first : i * t->out->ld,
                   t->sddmm ? A->rowptr[i + 1] - first : t->p.k,
                   got + r * most);
    }
#pragma omp parallel for schedule(dynamic, 16) reduction(max : worst)
    for (int64_t r = 0; r < rows; r++)
        if (st == SPS_OK) {
            const double e = row_error(t, r * step, got + r * most);

            worst = e > worst ? e : worst;
        }
    free(got);
    *wrong = worst > 1;
    return st;
}

/* Keeps the result as the reference for the other kernels, by exchanging `out`
 * and `right`. */
static sps_status keep(bench_trial *t)
{
    sps_block *was = t->right;
    const size_t bytes = t->out->bytes;
    sps_status st = SPS_OK;

    if (single(t)) {
        for (int i = 0; i < 2; i++)
            if (!(t->host[i] = malloc(bytes + 8)))
                return SPS_ENOMEM;
        return t->ctx->backend->download(t->ctx, t->host[0], t->out->data,
                                         bytes);
    }
    st = spsi_block_create(t->ctx, t->out->n, t->out->k, SPS_F64, &was);
    if (st == SPS_OK) {
        t->right = t->out;
        t->out = was;
    }
    return st;
}

/* Returns the plain kernel of the device if it supports these types, otherwise
 * the vendor's, otherwise any kernel in full precision. */
static const sps_kernel *find_reference(const bench_trial *t)
{
    const char *host = t->sddmm ? "sddmm.ref" : "spmm.ref";
    const char *cuda = t->sddmm ? "sddmm.plain" : "spmm.plain";
    const char *name = t->b->place == SPS_CUDA ? cuda : host, *why = "";
    const sps_kernel *kernel, *best = NULL;
    int rank = 0;

    for (int i = 0; (kernel = spsi_registry_kernel(t->ctx, i)); i++) {
        const int found = !strcmp(kernel->name, name) ? 3
                          : kernel->gives & SPS_VENDOR ? 2 : 1;

        if (kernel->op != t->p.op || found <= rank ||
            !(kernel->gives & SPS_FULL_PRECISION) ||
            !spsi_kernel_fits(kernel, &t->p, &why))
            continue;
        best = kernel;
        rank = found;
    }
    return best;
}

sps_status bench_reference(bench_trial *t)
{
    const sps_kernel *kernel = find_reference(t);
    sps_plan *plan = NULL;
    bool wrong = false;
    sps_status st = set_sums(t);

    t->roundoff = -1;
    if (!kernel)
        return spsi_fail(t->ctx, SPS_EUNFIT, "no kernel supports these types: "
                         "there is nothing to measure");
    if (st == SPS_OK)
        st = spsi_planner_pin(t->ctx, &t->p, kernel, &plan);
    t->plan = plan;
    if (st == SPS_OK)
        st = fresh_result(t);
    if (st == SPS_OK)
        st = check_rows(t, &wrong);
    if (st == SPS_OK)
        st = wrong ? spsi_fail(t->ctx, SPS_EBUG, "the reference kernel %s is "
                               "wrong at width %d", kernel->name, t->p.k)
                   : keep(t);
    spsi_plan_destroy(&plan);
    t->plan = NULL;
    return st;
}

/* -------------------------------------------------------- the other kernels */

/* weight_i = 1 / bound_i; where the bound is zero, a large weight makes any
 * difference visible. */
static sps_status set_weights(bench_trial *t, double roundoff)
{
    const int64_t n = t->p.A->nrow;
    double *w;
    sps_status st = SPS_OK;

    if (t->sddmm || t->roundoff == roundoff)
        return SPS_OK;
    if (!t->weight)
        st = spsi_block_create(t->ctx, n, 1, SPS_F64, &t->weight);
    w = malloc((size_t)(n + 1) * sizeof *w);
    if (st == SPS_OK && !w)
        st = SPS_ENOMEM;
    if (st == SPS_OK) {
#pragma omp parallel for
        for (int64_t i = 0; i < n; i++) {
            const double bound = bound_of(t, i, roundoff);

            w[i] = bound > 0 ? 1 / bound : 1e300;
        }
        st = sps_block_set(t->weight, 0, 1, w, 1, SPS_ROW_MAJOR, SPS_HOST);
    }
    t->roundoff = st == SPS_OK ? roundoff : -1;
    free(w);
    return st;
}

/* *worst = max |right - out| / bound, computed on the device; overwrites
 * out. */
static sps_status compare_doubles(bench_trial *t, double roundoff,
                                  double *worst)
{
    const sps_backend *f = t->ctx->backend;
    double top[SPS_BLOCK_MAX];
    const double factor = t->sddmm ? 1 / bound_of(t, 0, roundoff) : 1;
    sps_status st = set_weights(t, roundoff);

    *worst = 0;
    if (t->out->n == 0)
        return st;
    if (st == SPS_OK)
        st = f->axpby(1, t->right, -1, t->out);
    if (st == SPS_OK && !t->sddmm)
        st = f->scale_rows(t->weight, t->out, t->out);
    if (st == SPS_OK)
        st = f->maxabs(t->out, top);
    for (int j = 0; j < t->out->k && st == SPS_OK; j++)
        if (!(factor * top[j] <= *worst))
            *worst = isnan(top[j]) ? INFINITY : factor * top[j];
    return st;
}

/* *worst = max |right - out| / bound for results in single precision, computed
 * on the host. */
static sps_status compare_floats(bench_trial *t, double roundoff,
                                 double *worst)
{
    const sps_csr *A = t->p.A;
    const int64_t ld = t->out->ld;
    double most = 0;
    sps_status st = t->ctx->backend->download(t->ctx, t->host[1],
                                              t->out->data, t->out->bytes);

    if (st != SPS_OK)
        return st;
#pragma omp parallel for schedule(dynamic, 4096) reduction(max : most)
    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t first = t->sddmm ? A->rowptr[i] : i * ld;
        const int64_t end = t->sddmm ? A->rowptr[i + 1] : first + t->p.k;
        const double bound = bound_of(t, i, roundoff);

        for (int64_t p = first; p < end; p++)
            if (!(fabs((double)t->host[0][p] - t->host[1][p]) <= bound))
                most = 2;
    }
    *worst = most;
    return SPS_OK;
}

sps_status bench_check(bench_trial *t, double roundoff, bool *wrong)
{
    double worst = 0;
    sps_status st = fresh_result(t);

    if (st == SPS_OK)
        st = single(t) ? compare_floats(t, roundoff, &worst)
                       : compare_doubles(t, roundoff, &worst);
    *wrong = !(worst <= 1);
    return st;
}

void bench_check_close(bench_trial *t)
{
    sps_block_destroy(&t->right);
    sps_block_destroy(&t->weight);
    free(t->host[0]);
    free(t->host[1]);
    free(t->sum);
}
