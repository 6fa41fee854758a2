/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_kernels.c - measures every kernel that fits, at each width: it is
 * planned by name through the planner, checked and timed.
 *
 * With -replay, 20 runs are captured as a CUDA graph and replayed, as a solver
 * does on a GPU, so that the time of small kernels is not dominated by launch
 * overhead.
 *
 * The choice of "auto" is the kernel with the lowest predicted time among those
 * that operators accept by default: reproducible and in full precision. */
#include "tools/bench/bench_trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "philox.h"

/* ------------------------------------------------------------- the matrix */

/* Makes a copy of A with its values rounded to single precision, which shares
 * the pattern. */
static sps_status make_single(bench *b)
{
    sps_csr *A = b->A;
    sps_status st;

    b->single_values = malloc((size_t)(A->nnz + 1) * sizeof(float));
    if (!b->single_values)
        return SPS_ENOMEM;
#pragma omp parallel for
    for (int64_t p = 0; p < A->nnz; p++)
        b->single_values[p] = (float)spsi_csr_value(A, p);
    st = sps_csr_wrap(b->ctx, A->nrow, A->ncol, A->nnz, A->rowptr, A->col,
                      b->single_values, SPS_F32, SPS_HOST, SPS_BORROW,
                      &b->single);
    if (st == SPS_OK)
        b->single->props = A->props;
    return st;
}

/* Returns the operator that provides the matrix in this precision; it is
 * created once. */
static sps_status operator_of(bench *b, bool single, sps_operator **op_p)
{
    sps_options opt;
    sps_status st = SPS_OK;

    sps_options_default(&opt);
    opt.kernel = b->place == SPS_CUDA ? "spmm.plain" : "spmm.ref";
    if (!b->op[single] && single && !b->single)
        st = make_single(b);
    if (!b->op[single] && st == SPS_OK)
        st = sps_operator_csr(b->ctx, single ? b->single : b->A, 1, &opt,
                              &b->op[single]);
    *op_p = b->op[single];
    return st;
}

/* ----------------------------------------------- one operation at one width */

/* Fills X with random elements, the same in both precisions up to rounding. */
static sps_status randomize(sps_block *X, uint64_t seed)
{
    const size_t count = (size_t)X->n * (size_t)X->ld;
    float *v;
    sps_status st;

    if (X->dtype == SPS_F64)
        return sps_block_random(X, seed);
    v = calloc(count + 1, sizeof *v);
    if (!v)
        return SPS_ENOMEM;
#pragma omp parallel for
    for (int64_t i = 0; i < X->n; i++)
        for (int j = 0; j < X->k; j += 2) {
            double even, odd;

            spsi_philox_pair(seed, i, j / 2, &even, &odd);
            v[i * X->ld + j] = (float)even;
            if (j + 1 < X->k)
                v[i * X->ld + j + 1] = (float)odd;
        }
    st = count ? X->ctx->backend->upload(X->ctx, X->data, v,
                                         count * sizeof *v) : SPS_OK;
    free(v);
    return st;
}

static sps_status make_blocks(bench_trial *t)
{
    const sps_csr *A = t->p.A;
    const sps_dtype type = t->p.block;
    sps_status st = spsi_block_create(t->ctx, t->sddmm ? A->nrow : A->ncol,
                                      t->p.k, type, &t->in);

    if (st == SPS_OK && t->sddmm)
        st = spsi_block_create(t->ctx, A->ncol, t->p.k, type, &t->other);
    if (st == SPS_OK)
        st = spsi_block_create(t->ctx, t->sddmm ? A->nnz : A->nrow,
                               t->sddmm ? 1 : t->p.k, type, &t->out);
    if (st == SPS_OK)
        st = spsi_reserve(t->ctx, t->out->n, t->out->k);
    if (st == SPS_OK)
        st = randomize(t->in, 1);
    if (st == SPS_OK && t->sddmm)
        st = randomize(t->other, 2);
    return st;
}

/* ----------------------------------------------------------- new values */

/* Copies A's values to device memory, as if a caller had computed them on the
 * GPU. */
static sps_status lay_down_values(bench_trial *t)
{
    const sps_csr *A = t->p.A;
    const size_t bytes = spsi_csr_value_bytes(A);
    sps_status st;

    if (t->b->place == SPS_HOST || t->sddmm || bytes == 0)
        return SPS_OK;
    st = t->ctx->backend->alloc(t->ctx, bytes, &t->values);
    return st == SPS_OK ? t->ctx->backend->upload(t->ctx, t->values, A->val,
                                                  bytes) : st;
}

/* Does what sps_operator_set_values does: one copy for the operator's values,
 * and the update of the plan. */
static sps_status refresh(void *trial)
{
    const bench_trial *t = trial;
    const sps_kernel *kernel = t->plan->kernel;
    sps_status st = SPS_OK;

    if (t->values)
        st = t->ctx->backend->copy(t->ctx,
                                   (void *)(uintptr_t)t->p.local->val,
                                   t->values, spsi_csr_value_bytes(t->p.A));
    return st == SPS_OK && kernel->refresh ? kernel->refresh(t->plan) : st;
}

static sps_status time_refresh(bench_trial *t, bench_row *row)
{
    bench few = *t->b;
    bench_times times;
    sps_status st;

    if (!t->values && !row->kernel->refresh)
        return SPS_OK;
    few.seconds = 0;
    few.cold = false;
    st = bench_time(&few, refresh, t, &times);
    row->refresh = times.median;
    return st;
}

/* -------------------------------------------------- set-up of one operation */

sps_status bench_trial_open(bench *b, const bench_run *what, int k,
                            bench_trial *t)
{
    sps_operator *op;
    sps_status st = operator_of(b, what->single, &op);

    *t = (bench_trial){.b = b, .ctx = b->ctx, .sddmm = what->sddmm};
    if (st != SPS_OK)
        return st;
    t->p = (sps_problem){
        .op = what->sddmm ? SPS_OP_SDDMM : SPS_OP_SPMM, .A = op->A,
        .local = &op->local, .f = &op->f, .k = k,
        .block = what->single ? SPS_F32 : SPS_F64,
        .need = SPS_REPRODUCIBLE | SPS_FULL_PRECISION,
        .machine = &b->ctx->machine,
    };
    st = make_blocks(t);
    if (st == SPS_OK)
        st = lay_down_values(t);
    return st == SPS_OK ? bench_reference(t) : st;
}

void bench_trial_close(bench_trial *t)
{
    bench_check_close(t);
    if (t->values)
        t->ctx->backend->release(t->ctx, t->values,
                                 spsi_csr_value_bytes(t->p.A));
    sps_block_destroy(&t->in);
    sps_block_destroy(&t->other);
    sps_block_destroy(&t->out);
}

/* ------------------------------------------------------------- one kernel */

/* Returns kernel number i of the place; MKL follows those of the host. */
static const sps_kernel *listed(const bench_trial *t, int i)
{
    const sps_kernel *kernel = spsi_registry_kernel(t->ctx, i);
    const bool last = i > 0 && spsi_registry_kernel(t->ctx, i - 1);

    return kernel || !last || t->b->place != SPS_HOST ? kernel : bench_mkl();
}

const sps_kernel *bench_next_kernel(const bench_trial *t, int *i)
{
    const bench *b = t->b;
    const sps_kernel *kernel;

    while ((kernel = listed(t, (*i)++))) {
        if (kernel->op != t->p.op)
            continue;
        if (b->kernel ? !strcmp(b->kernel, kernel->name)
                      : b->low || kernel->gives & SPS_FULL_PRECISION)
            break;
    }
    return kernel;
}

/* Captures the runs as a CUDA graph; if that fails they are launched
 * directly. */
static sps_status record(bench_trial *t, bench_row *row)
{
    const sps_backend *f = t->ctx->backend;
    void *recording = NULL;
    sps_status st, ended;

    if (!t->b->replay)
        return SPS_OK;
    row->plain = true;
    if (!f->record_begin)
        return SPS_OK;
    st = f->record_begin(t->ctx);
    for (int i = 0; i < BENCH_REPEATS && st == SPS_OK; i++)
        st = bench_trial_run(t);
    ended = f->record_end(t->ctx, &recording);
    if (st == SPS_OK && ended == SPS_OK) {
        row->plain = false;
        t->recording = recording;
        return SPS_OK;
    }
    if (recording)
        f->record_drop(t->ctx, recording);
    return t->ctx->dead ? SPS_EDEVICE : SPS_OK;
}

static sps_status time_row(bench_trial *t, bench_row *row)
{
    double *times[] = {&row->t.median, &row->t.low, &row->t.high,
                       &row->t.cold};
    sps_status st = record(t, row);

    if (st == SPS_OK)
        st = bench_time(t->b, bench_trial_run, t, &row->t);
    for (int i = 0; i < 4 && t->recording; i++)
        *times[i] /= BENCH_REPEATS;
    if (t->recording)
        t->ctx->backend->record_drop(t->ctx, t->recording);
    t->recording = NULL;
    return st;
}

/* Creates one plan; *seconds is the time of that.  Kernels of the vendor may
 * time their algorithms; other kernels are planned as for "auto". */
static sps_status plan_once(bench_trial *t, const bench_row *row,
                            sps_plan **plan_p, double *seconds)
{
    sps_problem p = t->p;
    sps_status st = sps_context_sync(t->ctx);
    double start = bench_now();

    p.timed = row->kernel->gives & SPS_VENDOR;
    p.pinned = row->pinned;
    if (st == SPS_OK)
        st = spsi_planner_pin(t->ctx, &p, row->kernel, plan_p);
    if (st == SPS_OK)
        st = sps_context_sync(t->ctx);
    *seconds = bench_now() - start;
    return st;
}

/* Plans the kernel; *done is false if that is not possible.  row->plan is the
 * median time of three creations, since the first plan of a process loads code
 * and allocates memory that is kept; for slow kernels and those of the vendor
 * it is the time of one. */
static sps_status plan(bench_trial *t, bench_row *row, sps_plan **plan_p,
                       bool *done)
{
    double a, b = 0, c = 0;
    sps_status st = plan_once(t, row, plan_p, &a);

    row->plan = a;
    if (st == SPS_OK && !(row->kernel->gives & SPS_VENDOR) && a < 0.5) {
        spsi_plan_destroy(plan_p);
        st = plan_once(t, row, plan_p, &b);
        if (st == SPS_OK) spsi_plan_destroy(plan_p);
        if (st == SPS_OK) st = plan_once(t, row, plan_p, &c);
        row->plan = fmax(fmin(a, b), fmin(fmax(a, b), c));
    }
    *done = st == SPS_OK;
    if (!*done)
        fprintf(stderr, "spbench: %s at width %d: %s\n", row->kernel->name,
                t->p.k, sps_context_error(t->ctx));
    return st == SPS_EUNFIT || st == SPS_ENOMEM || st == SPS_EDEVMEM ? SPS_OK
                                                                     : st;
}

sps_status bench_measure(bench_trial *t, bench_row *row, bool *done)
{
    const unsigned need = t->p.need, gives = row->kernel->gives;
    const char *why;
    sps_plan *made = NULL;
    sps_status st;

    *done = false;
    row->bids = (need & gives) == need;
    if (!spsi_kernel_fits(row->kernel, &t->p, &why)) {
        sps_problem pinned = t->p;

        pinned.pinned = true;
        if (!(t->b->all || t->b->kernel) ||
            !spsi_kernel_fits(row->kernel, &pinned, &why))
            return SPS_OK;
        row->pinned = true;
        row->bids = false;
    }
    row->predicted = row->kernel->cost(&t->p);
    st = plan(t, row, &made, done);
    if (st == SPS_OK && *done) {
        t->plan = made;
        row->megabytes = 1e-6 * (double)made->bytes;
        row->aside = made->aside;
        memcpy(row->detail, made->detail, sizeof row->detail);
        st = bench_check(t, gives & SPS_FULL_PRECISION ? 0
                                                       : row->kernel->roundoff,
                         &row->wrong);
    }
    if (st == SPS_OK && *done && !row->wrong)
        st = time_row(t, row);
    if (st == SPS_OK && *done && !row->wrong)
        st = time_refresh(t, row);
    t->plan = NULL;
    spsi_plan_destroy(&made);
    return st;
}

/* Marks the choice of "auto": the lowest predicted time among kernels that can
 * be planned. */
static void mark_auto(bench_row *rows, int count)
{
    int best = -1;

    for (int i = 0; i < count; i++)
        if (rows[i].bids &&
            (best < 0 || rows[i].predicted < rows[best].predicted))
            best = i;
    if (best >= 0)
        rows[best].chosen = true;
}

/* ------------------------------------------------------------- all of them */

static sps_status one_width(bench *b, const bench_run *what, int k,
                            bench_table *table, int *wrong)
{
    bench_trial t;
    bench_row rows[BENCH_ROWS] = {{0}};
    int count = 0, i = 0;
    sps_status st = bench_trial_open(b, what, k, &t);

    while (st == SPS_OK && count < BENCH_ROWS) {
        bool done;

        rows[count] = (bench_row){.kernel = bench_next_kernel(&t, &i)};
        if (!rows[count].kernel)
            break;
        st = bench_measure(&t, &rows[count], &done);
        count += done;
    }
    if (st == SPS_OK) {
        mark_auto(rows, count);
        bench_table_rows(table, &t, rows, count, wrong);
    }
    bench_trial_close(&t);
    return st;
}

sps_status bench_kernels(bench *b, int *wrong)
{
    sps_status st = SPS_OK;

    for (int r = 0; r < b->runs && st == SPS_OK; r++) {
        const bench_run *what = &b->run[r];
        bench_table *table = bench_table_open(b, what);

        if (!table)
            return SPS_ENOMEM;
        for (int i = 0; i < what->widths && st == SPS_OK; i++)
            st = one_width(b, what, what->k[i], table, wrong);
        bench_table_close(table);
    }
    return st;
}
