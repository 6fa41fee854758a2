/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_cliff.c - checks that no width is much slower than its neighbour: for n
 * = 4 .. 64
 *
 *     time(n + 1) / time(n) <= 1.35 bytes(n + 1) / bytes(n)
 *
 * with the kernel that "auto" chooses at each width (or the one named by
 * -kernel).  bytes(n) are those of A, X and Y, where each row of a block is
 * counted in whole sectors of 32 bytes.  A violation is measured a second time,
 * since another program may have interfered. */
#include "tools/bench/bench_trial.h"

#include <stdio.h>

enum { FIRST = 4, LAST = 64 };

static const double ALLOWED = 1.35;

static double sector_bytes(const bench_trial *t)
{
    const sps_csr *A = t->p.A;
    const int item = (int)spsi_dtype_size(t->p.block);
    const int row = (t->p.k * item + 31) / 32 * 32;

    return (double)A->nnz * (item + 4) + 4.0 * (double)(A->nrow + 1) +
           (double)row * (double)(A->nrow + A->ncol);
}

/* Finds the kernel with the lowest predicted time; *row receives its name. */
static bool choose(const bench_trial *t, bench_row *row)
{
    const sps_kernel *kernel;
    const char *why;
    bool found = false;

    for (int i = 0; (kernel = bench_next_kernel(t, &i));) {
        const bool bids = (t->p.need & kernel->gives) == t->p.need;
        double cost;

        if ((!bids && !t->b->kernel) ||
            !spsi_kernel_fits(kernel, &t->p, &why))
            continue;
        cost = kernel->cost(&t->p);
        if (!found || cost < row->predicted)
            *row = (bench_row){.kernel = kernel, .predicted = cost};
        found = true;
    }
    return found;
}

static sps_status one(bench *b, const bench_run *what, int k, bench_row *row,
                      double *bytes)
{
    bench_trial t;
    bool done = false;
    sps_status st = bench_trial_open(b, what, k, &t);

    if (st == SPS_OK && choose(&t, row))
        st = bench_measure(&t, row, &done);
    if (st == SPS_OK && !done)
        st = spsi_fail(b->ctx, SPS_EUNFIT, "no kernel fits blocks of %d "
                       "columns", k);
    if (st == SPS_OK)
        *bytes = sector_bytes(&t);
    bench_trial_close(&t);
    return st;
}

static double share_of(const bench_row *from, const bench_row *to,
                       double bytes)
{
    return to->t.median / from->t.median / (ALLOWED * bytes);
}

/* Measures widths k - 1 and k again and keeps the shorter times. */
static sps_status again(bench *b, const bench_run *what, int k,
                        bench_row *from, bench_row *to)
{
    bench_row *const old[2] = {from, to};
    sps_status st = SPS_OK;

    for (int i = 0; i < 2 && st == SPS_OK; i++) {
        bench_row row = {0};
        double bytes;

        st = one(b, what, k - 1 + i, &row, &bytes);
        if (st == SPS_OK && row.t.median < old[i]->t.median)
            old[i]->t = row.t;
        old[i]->wrong |= row.wrong;
    }
    return st;
}

static void print_step(int k, const bench_row *from, const bench_row *to,
                       double bytes, double share)
{
    printf("| %3d | %-24s | %9.4f | %9.4f | %6.3f | %6.3f | %6.3f%s |\n", k,
           to->kernel->name, 1e3 * from->t.median, 1e3 * to->t.median,
           to->t.median / from->t.median, bytes, share,
           share > 1 ? " CLIFF" : "");
}

sps_status bench_cliffs(bench *b, int *wrong)
{
    const bench_run *what = &b->run[0];
    bench_row last = {0}, next = {0};
    double before, bytes, worst = 0;
    int at = FIRST;
    sps_status st = one(b, what, FIRST, &last, &before);

    printf("\ncliffs: %s, %s; share: times / (1.35 bytes), at most 1"
           "\n\n| n+1 | kernel                   |  ms at n |    n + 1 "
           "| times  | bytes  | share  |\n|---|---|---|---|---|---|---|\n",
           b->title, b->device);
    for (int k = FIRST + 1; k <= LAST + 1 && st == SPS_OK; k++) {
        double share;

        st = one(b, what, k, &next, &bytes);
        share = st == SPS_OK ? share_of(&last, &next, bytes / before) : 0;
        if (share > 1)
            st = again(b, what, k, &last, &next);
        if (st != SPS_OK)
            break;
        share = share_of(&last, &next, bytes / before);
        *wrong += next.wrong;
        print_step(k, &last, &next, bytes / before, share);
        if (share > worst) {
            worst = share;
            at = k;
        }
        last = next;
        before = bytes;
    }
    if (st == SPS_OK)
        printf("\nworst: %.3f of what is allowed, from %d to %d columns\n",
               worst, at - 1, at);
    *wrong += worst > 1;
    return st;
}
