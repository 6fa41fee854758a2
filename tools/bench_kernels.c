/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_kernels.c - every kernel that fits, by name, at each width.
 *
 * The reference kernel of the place is checked on the host in long double on
 * some thousand rows, every other kernel against it in full, with the bound
 * of a sum in any order: |y - y'| <= 8 (l + 4) eps/2 sum |a| |x|, l the length
 * of the row and |x| <= 1/2.  A wrong kernel is named and not timed. */
#include "bench.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, SAMPLED = 4096 };

typedef struct row {
    const char *name;
    char detail[48];
    bench_times t;
    double plan;                  /* seconds to make it */
    double megabytes;             /* of the place, matrix included */
    bool wrong;
} row;

/* One width of one operation: the blocks and what is right. */
typedef struct trial {
    bench *b;
    bool sddmm;
    int k;
    sps_operator *op;
    sps_block *X, *Y;             /* sddmm: U, V */
    sps_block *val;               /* sddmm: nnz x 1 */
    double *right, *got;          /* host copies of the result */
    double *bound;                /* of each row */
    size_t length;
    bool have_right;
} trial;

static sps_status run(void *data)
{
    trial *t = data;
    int64_t ld;

    if (!t->sddmm)
        return sps_operator_apply(t->op, 1, t->X, 0, t->Y);
    return sps_operator_sample(t->op, 1, t->X, t->Y, false, 0,
                               sps_block_data(t->val, &ld));
}

static double value(const sps_csr *A, int64_t p)
{
    return A->dtype == SPS_F64 ? ((const double *)A->val)[p]
                               : (double)((const float *)A->val)[p];
}

/* Both sides may err, so twice 4 (l + 4) u. */
static void set_bounds(trial *t)
{
    const sps_csr *A = t->b->A;

    for (int64_t i = 0; i < A->nrow; i++) {
        double sum = 0, length = (double)(A->rowptr[i + 1] - A->rowptr[i]);

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            sum += fabs(value(A, p));
        t->bound[i] = t->sddmm ? 4 * (t->k + 4) * DBL_EPSILON * t->k / 4
                               : 4 * (length + 4) * DBL_EPSILON * sum / 2;
    }
}

static void close_trial(trial *t)
{
    sps_operator_destroy(&t->op);
    sps_block_destroy(&t->X);
    sps_block_destroy(&t->Y);
    sps_block_destroy(&t->val);
    free(t->right);
    free(t->got);
    free(t->bound);
}

static sps_status open_trial(trial *t)
{
    const sps_csr *A = t->b->A;
    sps_context *ctx = t->b->ctx;
    sps_status st;

    t->length = t->sddmm ? (size_t)A->nnz : (size_t)A->nrow * (size_t)t->k;
    t->right = malloc((t->length + 1) * sizeof *t->right);
    t->got = malloc((t->length + 1) * sizeof *t->got);
    t->bound = malloc((size_t)(A->nrow + 1) * sizeof *t->bound);
    if (!t->right || !t->got || !t->bound)
        return SPS_ENOMEM;
    set_bounds(t);
    st = sps_block_create(ctx, t->sddmm ? A->nrow : A->ncol, t->k, &t->X);
    if (st == SPS_OK)
        st = sps_block_create(ctx, t->sddmm ? A->ncol : A->nrow, t->k, &t->Y);
    if (st == SPS_OK && t->sddmm)
        st = sps_block_create(ctx, A->nnz, 1, &t->val);
    if (st == SPS_OK)
        st = sps_block_random(t->X, 1);
    if (st == SPS_OK)
        st = sps_block_random(t->Y, 2);
    return st;
}

static sps_status fetch(trial *t)
{
    if (t->sddmm)
        return sps_block_get(t->val, 0, 1, t->got, 1, SPS_ROW_MAJOR,
                             SPS_HOST);
    return sps_block_get(t->Y, 0, t->k, t->got, t->k, SPS_ROW_MAJOR,
                         SPS_HOST);
}

/* ----------------------------------------------------------------- checks */

/* Largest |got - right| / bound; 1 and below is right.  NaN gives INFINITY. */
static double compare(const trial *t)
{
    const sps_csr *A = t->b->A;
    double worst = 0;

#pragma omp parallel for reduction(max : worst)
    for (int64_t i = 0; i < A->nrow; i++) {
        int64_t first = t->sddmm ? A->rowptr[i] : i * t->k;
        int64_t end = t->sddmm ? A->rowptr[i + 1] : first + t->k;

        for (int64_t p = first; p < end; p++) {
            double e = fabs(t->got[p] - t->right[p]);

            if (!(e <= t->bound[i]))
                e = isnan(e) || t->bound[i] == 0 ? INFINITY
                                                 : e / t->bound[i];
            else
                e = t->bound[i] > 0 ? e / t->bound[i] : 0;
            worst = e > worst ? e : worst;
        }
    }
    return worst;
}

/* Right numbers of row i, in long double. */
static void right_row(const trial *t, int64_t i, const double *X,
                      const double *Y, double *out)
{
    const sps_csr *A = t->b->A;
    const int64_t first = A->rowptr[i], end = A->rowptr[i + 1], k = t->k;

    for (int64_t p = first; t->sddmm && p < end; p++) {
        long double sum = 0;

        for (int64_t j = 0; j < k; j++)
            sum += (long double)X[i * k + j] * Y[A->col[p] * k + j];
        out[p - first] = (double)sum;
    }
    for (int64_t j = 0; !t->sddmm && j < k; j++) {
        long double sum = 0;

        for (int64_t p = first; p < end; p++)
            sum += (long double)value(A, p) * X[A->col[p] * k + j];
        out[j] = (double)sum;
    }
}

/* Overwrites rows of right with exact ones and leaves the others as the
 * kernel gave them, so that compare finds rows that were wrong. */
static sps_status refine(trial *t)
{
    const sps_csr *A = t->b->A;
    size_t k = (size_t)t->k;
    double *X = malloc(sizeof *X * (size_t)(t->sddmm ? A->nrow : A->ncol) * k);
    double *Y = malloc(sizeof *Y * (size_t)A->ncol * k);
    int64_t step = A->nrow / SAMPLED | 1;
    sps_status st = X && Y ? SPS_OK : SPS_ENOMEM;

    if (st == SPS_OK)
        st = sps_block_get(t->X, 0, t->k, X, t->k, SPS_ROW_MAJOR, SPS_HOST);
    if (st == SPS_OK && t->sddmm)
        st = sps_block_get(t->Y, 0, t->k, Y, t->k, SPS_ROW_MAJOR, SPS_HOST);
#pragma omp parallel for
    for (int64_t i = 0; i < A->nrow; i += step)
        if (st == SPS_OK)
            right_row(t, i, X, Y, t->right +
                      (t->sddmm ? A->rowptr[i] : i * t->k));
    free(X);
    free(Y);
    return st;
}

/* ------------------------------------------------------------------ trials */

/* The vendor's algorithm and the like: what stands behind "chosen". */
static void find_detail(const sps_operator *op, const char *name,
                        char detail[48])
{
    char text[8192], *line, *found;

    *detail = 0;
    sps_operator_describe(op, text, sizeof text);
    for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        size_t begin = strspn(line, " ");

        found = strstr(line, " chosen  ");
        if (found && !strncmp(line + begin, name, strlen(name)) &&
            line[begin + strlen(name)] == ' ') {
            snprintf(detail, 48, "%s", found + 9);
            return;
        }
    }
}

/* Makes the operator with this kernel; *fits false if it does not. */
static sps_status plan(trial *t, row *r, bool *fits)
{
    bench *b = t->b;
    sps_context_info before = {.struct_size = sizeof before};
    sps_context_info after = {.struct_size = sizeof after};
    sps_options opt;
    sps_status st;
    double start;

    sps_options_default(&opt);
    opt.kernel = r->name;
    sps_context_information(b->ctx, &before);
    start = bench_now();
    st = sps_operator_csr(b->ctx, b->A, t->k, &opt, &t->op);
    if (st == SPS_OK && t->sddmm)
        st = run(t);               /* sampling plans at its first call */
    if (st == SPS_OK)
        st = sps_context_sync(b->ctx);
    r->plan = bench_now() - start;
    *fits = st == SPS_OK &&
            (t->sddmm || !strcmp(sps_operator_kernel(t->op), r->name));
    if (st == SPS_EUNFIT)
        return SPS_OK;
    sps_context_information(b->ctx, &after);
    r->megabytes = b->place == SPS_CUDA
        ? ((double)after.device_bytes - (double)before.device_bytes) / 1e6
        : ((double)after.host_bytes - (double)before.host_bytes) / 1e6;
    return st;
}

static sps_status check(trial *t, row *r)
{
    sps_status st = run(t);

    if (st == SPS_OK)
        st = fetch(t);
    if (st == SPS_OK && !t->have_right) {
        memcpy(t->right, t->got, t->length * sizeof *t->got);
        st = refine(t);
        t->have_right = true;
    }
    if (st == SPS_OK)
        r->wrong = compare(t) > 1;
    return st;
}

/* Measures kernel r->name; *done false if it does not fit. */
static sps_status measure(trial *t, row *r, bool *done)
{
    sps_status st = plan(t, r, done);

    if (st == SPS_OK && *done) {
        find_detail(t->op, r->name, r->detail);
        st = check(t, r);
    }
    if (st == SPS_OK && *done && !r->wrong)
        st = bench_time(t->b, run, t, &r->t);
    sps_operator_destroy(&t->op);
    return st;
}

/* ------------------------------------------------------------------- table */

static double floor_bytes(const trial *t)
{
    const sps_csr *A = t->b->A;
    double blocks = 8.0 * t->k * (double)(A->nrow + A->ncol);

    return (double)A->nnz * 12 + 4.0 * (double)(A->nrow + 1) + blocks;
}

static void print_rows(const trial *t, const row *r, int count, int *wrong)
{
    double least = floor_bytes(t), vendor = 0;

    for (int i = 0; i < count; i++)
        if (strstr(r[i].name, "cusparse") && r[i].t.median > 0 &&
            (vendor == 0 || r[i].t.median < vendor))
            vendor = r[i].t.median;
    for (int i = 0; i < count; i++) {
        double s = r[i].t.median;
        char label[80], ratio[16] = "-", cold[16] = "-";

        snprintf(label, sizeof label, "%s%s%s", r[i].name,
                 r[i].detail[0] ? " " : "", r[i].detail);
        if (r[i].wrong) {
            printf("| %-34s | %4d | WRONG RESULT |\n", label, t->k);
            ++*wrong;
            continue;
        }
        if (vendor > 0)
            snprintf(ratio, sizeof ratio, "%.2f", vendor / s);
        if (r[i].t.cold > 0)
            snprintf(cold, sizeof cold, "%.4f", r[i].t.cold * 1e3);
        printf("| %-34s | %4d | %9.4f | %9.4f | %9.4f | %9s | %7.0f | %7.1f "
               "| %6.1f | %5s | %6.3f | %7.0f |\n", label, t->k, s * 1e3,
               r[i].t.low * 1e3, r[i].t.high * 1e3, cold, least / s / 1e9,
               2e-9 * (double)t->b->A->nnz * t->k / s,
               100 * least / s / t->b->bandwidth, ratio, r[i].plan,
               r[i].megabytes);
    }
    fflush(stdout);
}

static void print_head(const bench *b)
{
    printf("\n%s: %s, %lld rows, %lld nonzeros; %s, copy %.1f GB/s\n\n",
           b->op ? b->op : "spmm", b->title, (long long)b->A->nrow,
           (long long)b->A->nnz, b->device, b->bandwidth / 1e9);
    printf("| kernel                             |    k |        ms |       "
           "p10 |       p90 |      cold |    GB/s |    GF/s | floor%% | "
           "ratio | plan s |      MB |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

/* Kernel number i of the place that serves this operation, or NULL. */
static const char *next_kernel(const bench *b, bool sddmm, int *i)
{
    const char *kind = b->place == SPS_CUDA ? "kernel.cuda" : "kernel.cpu";
    const char *name;

    while ((name = sps_list(b->ctx, kind, (*i)++)))
        if (!strncmp(name, "sddmm.", 6) == sddmm &&
            (!b->kernel || !strcmp(b->kernel, name)))
            break;
    return name;
}

/* The reference sets what is right, timed or not. */
static sps_status reference(trial *t)
{
    const char *host = t->sddmm ? "sddmm.ref" : "spmm.ref";
    const char *cuda = t->sddmm ? "sddmm.plain" : "spmm.plain";
    row r = {.name = t->b->place == SPS_CUDA ? cuda : host};
    bool done;
    sps_status st = plan(t, &r, &done);

    if (st == SPS_OK && done)
        st = check(t, &r);
    sps_operator_destroy(&t->op);
    if (st == SPS_OK && (!done || r.wrong)) {
        printf("the reference kernel %s is %s\n", r.name,
               done ? "WRONG" : "not there");
        return SPS_EBUG;
    }
    return st;
}

static sps_status one_width(bench *b, bool sddmm, int k, int *wrong)
{
    trial t = {.b = b, .sddmm = sddmm, .k = k};
    row rows[ROWS] = {{0}};
    int count = 0, i = 0;
    sps_status st = open_trial(&t);

    if (st == SPS_OK)
        st = reference(&t);
    while (st == SPS_OK && count < ROWS) {
        bool done;

        rows[count].name = next_kernel(b, sddmm, &i);
        if (!rows[count].name)
            break;
        st = measure(&t, &rows[count], &done);
        count += done;
    }
    if (st == SPS_OK)
        print_rows(&t, rows, count, wrong);
    close_trial(&t);
    return st;
}

sps_status bench_kernels(bench *b, int *wrong)
{
    bool sddmm = b->op && !strcmp(b->op, "sddmm");
    sps_status st = SPS_OK;

    print_head(b);
    for (int i = 0; i < b->widths && st == SPS_OK; i++)
        st = one_width(b, sddmm, b->k[i], wrong);
    return st;
}
