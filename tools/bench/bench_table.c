/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_table.c - prints the tables of bench_kernels.c: Markdown, one line of
 * tab-separated values per row (-tsv), geometric means over the widths, and the
 * time lost by the choices of "auto".
 *
 * The columns `runs` and `refresh` are the time to create the plan and to
 * update it with new values in device memory, as multiples of the time of one
 * run of the kernel.  The column `ratio` is the vendor's best time divided by
 * that of the kernel.  The vendor's best time is the minimum over its kernels
 * and over their times with column-major blocks, which this library does not
 * use. */
#include "tools/bench/bench_trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A choice of "auto" whose time is at most this factor times the best counts as
 * right. */
static const double NEAR = 1.1;

typedef struct mean {
    const sps_kernel *kernel;
    int ratios, fractions;
    double ratio, fraction;           /* sums of the logarithms of `ratio` and
                                         of the fraction of the lower bound */
} mean;

/* The kernel that auto chose at one width, and the fastest ones. */
typedef struct choice {
    int k;
    bench_row taken, bidder, any;     /* bidder: fastest candidate of auto; any:
                                         fastest of all in full precision */
} choice;

struct bench_table {
    bench *b;
    const bench_run *what;
    FILE *tsv;
    mean mean[BENCH_ROWS];
    choice choice[BENCH_WIDTHS];
    int means, choices;
};

static const char *op_name(const bench_run *what)
{
    return what->sddmm ? "sddmm" : "spmm";
}
static const char *precision(const bench_run *what)
{
    return what->single ? "single" : "double";
}

static FILE *open_tsv(const char *name)
{
    FILE *f = name ? fopen(name, "a") : NULL;

    if (name && !f)
        fprintf(stderr, "spbench: cannot write %s\n", name);
    if (f && fseek(f, 0, SEEK_END) == 0 && ftell(f) == 0)
        fprintf(f, "matrix\tm\tn\tnnz\tk\top\tprecision\tkernel\tms\tp10\t"
                "p90\tGF/s\tfrac\tratio\tplan_ms\tplan_MB\tpredicted_ms\t"
                "marks\tdetail\tlongest\tdeviation\tbandwidth\tdistinct8\t"
                "distinct64\trefresh_ms\n");
    return f;
}

bench_table *bench_table_open(bench *b, const bench_run *what)
{
    bench_table *table = calloc(1, sizeof *table);

    if (!table)
        return NULL;
    table->b = b;
    table->what = what;
    table->tsv = open_tsv(b->tsv);
    printf("\n%s, %s precision: %s, %lld rows, %lld nonzeros; %s, copy %.1f "
           "GB/s%s\n\n", op_name(what), precision(what), b->title,
           (long long)b->A->nrow, (long long)b->A->nnz, b->device,
           b->bandwidth / 1e9, b->replay ? "; recorded and replayed" : "");
    printf("| kernel                             |    k |        ms |       "
           "p10 |       p90 |      cold |    GB/s |    GF/s | floor%% | "
           "ratio | plan ms |   runs | refresh |      MB | |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    return table;
}

/* ------------------------------------------------------------------- rows */

/* Returns the index of the row with the vendor's best time, or -1 if there is
 * none; *best is that time. */
static int vendor_best(const bench_row *rows, int count, double *best)
{
    int at = -1;

    *best = 0;
    for (int i = 0; i < count; i++) {
        double s = rows[i].t.median;

        if (!(rows[i].kernel->gives & SPS_VENDOR) || s <= 0)
            continue;
        if (rows[i].aside > 0 && rows[i].aside < s)
            s = rows[i].aside;
        if (at < 0 || s < *best) {
            at = i;
            *best = s;
        }
    }
    return at;
}

/* Writes the remarks of a row: "auto", "named" (not a candidate by default),
 * "vendor" and so on. */
static void marks_of(const bench_row *row, bool best, bool replay,
                     char marks[80])
{
    const unsigned gives = row->kernel->gives;

    snprintf(marks, 80, "%s%s%s%s%s%s%s", row->chosen ? " auto" : "",
             row->bids ? "" : " named", gives & SPS_VENDOR ? " vendor" : "",
             best ? " best" : "",
             best && row->aside > 0 && row->aside < row->t.median
                 ? " by columns" : "",
             gives & SPS_FULL_PRECISION ? "" : " low",
             replay && row->plain ? " plain" : "");
}

static void add_mean(bench_table *table, const bench_row *row, double ratio,
                     double fraction)
{
    mean *m = table->mean;

    while (m < table->mean + table->means && m->kernel != row->kernel)
        m++;
    if (m == table->mean + table->means) {
        table->means++;
        m->kernel = row->kernel;
    }
    m->fraction += log(fraction);
    m->fractions++;
    if (ratio > 0) {
        m->ratio += log(ratio);
        m->ratios++;
    }
}

static void print_tsv(const bench_table *table, const bench_trial *t,
                      const bench_row *row, double flops, double fraction,
                      double ratio, const char *marks)
{
    const bench *b = table->b;
    const sps_features *f = t->p.f;
    const double s = row->t.median;

    if (!table->tsv)
        return;
    fprintf(table->tsv, "%s\t%lld\t%lld\t%lld\t%d\t%s\t%s\t%s\t%.6g\t%.6g\t"
            "%.6g\t%.5g\t%.4g\t%.4g\t%.4g\t%.4g\t%.4g\t%s\t%s\t%lld\t%.4g\t"
            "%lld\t%.4g\t%.4g\t%.4g\n", b->title,
            (long long)b->A->nrow, (long long)b->A->ncol,
            (long long)b->A->nnz, t->p.k, op_name(table->what),
            precision(table->what), row->kernel->name, 1e3 * s,
            1e3 * row->t.low, 1e3 * row->t.high, flops / s / 1e9, fraction,
            ratio, 1e3 * row->plan, row->megabytes, 1e3 * row->predicted,
            row->wrong ? "WRONG" : *marks ? marks + 1 : "", row->detail,
            (long long)f->max_length, f->deviation, (long long)f->bandwidth,
            f->distinct8, f->distinct64, 1e3 * row->refresh);
}

/* Returns the least number of bytes to be moved: A as stored, each block
 * once. */
static double floor_of(const bench_trial *t)
{
    const sps_csr *A = t->p.A;
    const double item = (double)spsi_dtype_size(t->p.block);
    const double blocks = item * t->p.k * (double)(A->nrow + A->ncol);

    return (double)A->nnz * (item + 4) + 4.0 * (double)(A->nrow + 1) + blocks;
}

static void print_row(bench_table *table, const bench_trial *t,
                      const bench_row *row, double vendor, bool best)
{
    const bench *b = table->b;
    const double s = row->t.median, flops = 2.0 * (double)b->A->nnz * t->p.k;
    const double ratio = vendor > 0 ? vendor / s : 0;
    const double fraction = floor_of(t) / s / b->bandwidth;
    char label[80], shown[16] = "-", cold[16] = "-", runs[16] = "-";
    char marks[80];

    marks_of(row, best, b->replay, marks);
    if (row->t.cold > 0)
        snprintf(cold, sizeof cold, "%.4f", row->t.cold * 1e3);
    if (ratio > 0)
        snprintf(shown, sizeof shown, "%.2f", ratio);
    if (row->refresh > 0)
        snprintf(runs, sizeof runs, "%.2f", row->refresh / s);
    snprintf(label, sizeof label, "%s%s%s", row->kernel->name,
             row->detail[0] ? " " : "", row->detail);
    printf("| %-34s | %4d | %9.4f | %9.4f | %9.4f | %9s | %7.0f | %7.1f | "
           "%6.1f | %5s | %7.2f | %6.1f | %7s | %7.1f |%s |\n", label, t->p.k,
           s * 1e3, row->t.low * 1e3, row->t.high * 1e3, cold,
           floor_of(t) / s / 1e9, flops / s / 1e9, 100 * fraction, shown,
           1e3 * row->plan, row->plan / s, runs, row->megabytes, marks);
    print_tsv(table, t, row, flops, fraction, ratio, marks);
    add_mean(table, row, ratio, fraction);
}

/* Returns the fastest row whose result is correct: with `bidders` among the
 * kernels that "auto" may choose, otherwise among all kernels of full
 * precision. */
static const bench_row *fastest(const bench_row *rows, int count, bool bidders)
{
    const bench_row *best = NULL;

    for (int i = 0; i < count; i++)
        if (!rows[i].wrong &&
            (bidders ? rows[i].bids
                     : (rows[i].kernel->gives & SPS_FULL_PRECISION) != 0) &&
            (!best || rows[i].t.median < best->t.median))
            best = &rows[i];
    return best;
}

static void add_choice(bench_table *table, const bench_trial *t,
                       const bench_row *rows, int count)
{
    const bench_row *bidder = fastest(rows, count, true);
    const bench_row *any = fastest(rows, count, false);

    for (int i = 0; i < count && bidder && any; i++)
        if (rows[i].chosen && !rows[i].wrong)
            table->choice[table->choices++] = (choice){
                .k = t->p.k, .taken = rows[i], .bidder = *bidder,
                .any = *any};
}

void bench_table_rows(bench_table *table, const bench_trial *t,
                      bench_row *rows, int count, int *wrong)
{
    double vendor;
    const int best = vendor_best(rows, count, &vendor);

    for (int i = 0; i < count; i++) {
        if (!rows[i].wrong) {
            print_row(table, t, &rows[i], vendor, i == best);
            continue;
        }
        printf("| %-34s | %4d | WRONG RESULT |\n", rows[i].kernel->name,
               t->p.k);
        print_tsv(table, t, &rows[i], 0, 0, 0, "");
        ++*wrong;
    }
    add_choice(table, t, rows, count);
    fflush(stdout);
}

/* --------------------------------------------------------------- summaries */

static void print_means(const bench_table *table)
{
    printf("\n| geometric means over k             | widths | floor%% | ratio "
           "|\n|---|---|---|---|\n");
    for (int i = 0; i < table->means; i++) {
        const mean *m = &table->mean[i];
        char ratio[16] = "-";

        if (m->ratios > 0)
            snprintf(ratio, sizeof ratio, "%.2f", exp(m->ratio / m->ratios));
        printf("| %-34s | %6d | %6.1f | %5s |\n", m->kernel->name,
               m->fractions, 100 * exp(m->fraction / m->fractions), ratio);
    }
}

static bool missed(const bench_row *taken, const bench_row *best)
{
    return taken->t.median > NEAR * best->t.median;
}

static void print_miss(int k, const bench_row *taken, const bench_row *best,
                       const char *of)
{
    printf("  k %d: auto took %s, %.4f ms; best of %s: %s, %.4f ms (auto takes "
           "%.0f %% more)\n", k, taken->kernel->name, 1e3 * taken->t.median,
           of, best->kernel->name, 1e3 * best->t.median,
           100 * (taken->t.median / best->t.median - 1));
}

static void print_choices(const bench_table *table)
{
    int near_bidder = 0, near_any = 0;

    for (int i = 0; i < table->choices; i++) {
        const choice *c = &table->choice[i];

        near_bidder += !missed(&c->taken, &c->bidder);
        near_any += !missed(&c->taken, &c->any);
    }
    if (table->choices == 0)
        return;
    printf("\nauto's choice is within 10 %% of its fastest candidate in %d of "
           "%d cases, and of\nthe fastest full-precision kernel of all in %d\n",
           near_bidder, table->choices, near_any);
    for (int i = 0; i < table->choices; i++) {
        const choice *c = &table->choice[i];

        if (missed(&c->taken, &c->bidder))
            print_miss(c->k, &c->taken, &c->bidder, "bidders");
        else if (missed(&c->taken, &c->any))
            print_miss(c->k, &c->taken, &c->any, "all");
    }
}

void bench_table_close(bench_table *table)
{
    print_means(table);
    print_choices(table);
    fflush(stdout);
    if (table->tsv)
        fclose(table->tsv);
    free(table);
}
