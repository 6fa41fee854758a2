/* SPDX-License-Identifier: BSD-3-Clause */
/* own_rows.c - divides the rows of a file among processes. */
#include <string.h>

#include "core/comm.h"
#include "core/team.h"
#include "io/own_rows.h"
#include "matrix/csr.h"

enum { BUCKETS = 8192 };     /* largest number for up to 64 processes */

spsi_own spsi_own_of(int64_t n, int size)
{
    const int64_t most = size > 64 ? (int64_t)128 * size : BUCKETS;
    spsi_own o = { .n = n, .size = size, .factor = UINT64_C(1) << 33 };

    if (n > most) {
        o.factor = UINT64_C(0xaaaaaaab);           /* x / 3, x < 2^32 */
        do o.shift++; while (n > most * 3 << o.shift);
    }
    o.buckets = n > 0 ? spsi_own_bucket(&o, n - 1) + 1 : 0;
    return o;
}

int64_t spsi_own_row(const spsi_own *o, int64_t bucket)
{
    const int64_t row = o->shift > 0 ? bucket * 3 << o->shift : bucket;

    return row < o->n ? row : o->n;
}

void spsi_own_cut(const spsi_own *o, const double *entries, int64_t *first)
{
    const int64_t node = o->shift == 0 && o->n >= (int64_t)100 * o->size ? 6
                                                                         : 1;
    const int64_t bucket = o->shift > 0 ? INT64_C(3) << o->shift : 1;
    const int64_t chunk = o->ordered ? spsi_comm_chunk(o->n) / bucket : 1;
    const int64_t unit = chunk > node ? chunk : node;
    double share = (double)o->n, before = 0;       /* rows, entries before b */
    int64_t b = 0;

    for (int64_t i = 0; i < o->buckets; i++) share += entries[i];
    share /= o->size;
    first[0] = 0;
    for (int q = 1; q < o->size; q++) {
        const int64_t last = o->buckets - (o->size - q);

        if (b < o->buckets) before += entries[b++];
        while (b < last && (before + (double)spsi_own_row(o, b) <
                            share * q || b % unit != 0))
            before += entries[b++];
        first[q] = spsi_own_row(o, b);
    }
    first[o->size] = o->n;
}

sps_status spsi_own_given(sps_context *ctx, const spsi_share *wanted,
                          int64_t *first)
{
    const int rank = spsi_comm_rank(ctx), size = spsi_comm_size(ctx);
    double *begin = NULL;
    bool wrong;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, size, &begin));
    SPS_TRY(spsi_comm_gather(ctx, (double)wanted->first, begin));
    for (int r = 0; r < size; r++) first[r] = (int64_t)begin[r];
    first[size] = wanted->whole;
    wrong = first[0] != 0 ||
            wanted->first + wanted->rows != first[rank + 1];
    SPS_TRY(spsi_comm_any(ctx, wrong, &wrong));
    SPS_REQUIRE(ctx, !wrong, SPS_EINVAL, "the rows of the processes do not "
                "follow each other; here they are %lld from %lld on",
                (long long)wanted->rows, (long long)wanted->first);
fail:
    spsi_free(ctx, begin);
    return st;
}

/* Converts `count` int32_t to int64_t in place, from the last to the first: the
 * new element p overwrites the old elements 2 p and 2 p + 1, which have been
 * read before. */
static void widen(void *columns, int64_t count)
{
    int32_t from[256];
    int64_t to[256];

    for (int64_t last = count; last > 0;) {
        const int64_t n = last < 256 ? last : 256;

        last -= n;
        memcpy(from, (char *)columns + last * 4, (size_t)n * 4);
        for (int64_t i = 0; i < n; i++) to[i] = from[i];
        memcpy((char *)columns + last * 8, to, (size_t)n * 8);
    }
}

sps_status spsi_own_spread(sps_context *ctx, sps_csr *A, int64_t first,
                           int64_t whole)
{
    void *columns = A->col;
    sps_status st;

    st = spsi_resize(ctx, (size_t)(A->nnz + 1) * sizeof(int64_t), &columns);
    if (st != SPS_OK) return st;
    widen(columns, A->nnz);
    A->col = NULL;
    A->global = columns;
    A->first = first;
    A->whole = whole;
    return st;
}

typedef struct order_job {
    const sps_csr *A;
    int64_t unordered;
} order_job;

static void inspect_rows(void *data, int64_t first, int64_t last)
{
    order_job *j = data;
    const int64_t *rowptr = j->A->rowptr, *global = j->A->global;
    int64_t falls = 0;

    for (int64_t i = first; i < last; i++)
        for (int64_t p = rowptr[i] + 1; p < rowptr[i + 1]; p++)
            falls += global[p] <= global[p - 1];
    spsi_team_add(&j->unordered, falls);
}

sps_status spsi_own_order(sps_context *ctx, sps_csr *A, bool *sorted)
{
    const int64_t first = A->first, whole = A->whole;
    order_job j = { A, 0 };
    int32_t *col = (int32_t *)A->global;
    sps_status st;

    spsi_team_run(ctx, A->nrow, A->nnz + A->nrow, inspect_rows, &j);
    *sorted = j.unordered == 0;
    A->props |= SPS_SORTED;
    if (*sorted) return SPS_OK;
    for (int64_t p = 0; p < A->nnz; p++) {
        const int32_t narrow = (int32_t)A->global[p];

        memcpy(col + p, &narrow, sizeof narrow);
    }
    A->col = col;
    A->global = NULL;
    A->first = A->whole = 0;
    SPS_TRY(spsi_csr_order(ctx, A, sorted));
    SPS_TRY(spsi_own_spread(ctx, A, first, whole));
fail:
    return st;
}

/* Makes sure that all processes have read a matrix of these sizes. */
static sps_status compare(sps_context *ctx, const char *name, const sps_csr *A)
{
    const double mine[4] = { (double)A->nrow, (double)A->ncol, (double)A->nnz,
                             A->props };
    double sum[4];
    bool differs = false;
    sps_status st;

    memcpy(sum, mine, sizeof sum);
    SPS_TRY(spsi_reduce(ctx, sum, 4));
    for (int i = 0; i < 4; i++)
        if (sum[i] != spsi_comm_size(ctx) * mine[i]) differs = true;
    SPS_TRY(spsi_comm_any(ctx, differs, &differs));
    SPS_REQUIRE(ctx, !differs, SPS_EPARSE, "%s: the processes have read "
                "different files under this name; this one has %lld rows and "
                "%lld entries", name, (long long)A->nrow, (long long)A->nnz);
    SPS_REQUIRE(ctx, A->nrow > 0 && A->ncol > 0, SPS_EMATRIX, "%s: the matrix "
                "is empty", name);
    SPS_REQUIRE(ctx, A->nrow == A->ncol, SPS_EUNFIT, "%s: a rectangular matrix "
                "is not supported with several processes", name);
fail:
    return st;
}

/* Copies rows first .. last-1 of A. */
static sps_status copy_rows(sps_context *ctx, const sps_csr *A, int64_t first,
                            int64_t last, sps_csr **own_p)
{
    const int64_t begin = A->rowptr[first], nnz = A->rowptr[last] - begin;
    sps_csr *own = NULL;
    sps_status st;

    SPS_TRY(sps_csr_create(ctx, last - first, A->ncol, nnz, SPS_F64, &own));
    for (int64_t i = first; i <= last; i++)
        own->rowptr[i - first] = A->rowptr[i] - begin;
    if (nnz > 0) {
        memcpy(own->col, A->col + begin, (size_t)nnz * sizeof *own->col);
        memcpy(own->val, (const double *)A->val + begin,
               (size_t)nnz * sizeof(double));
    }
    own->props = A->props;
    SPS_TRY(spsi_own_spread(ctx, own, first, A->nrow));
    *own_p = own;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &own);
    return st;
}

/* Divides the rows of the file, of which csr A has `scale` for each, by their
 * entries, or evenly. */
static sps_status cut_whole(sps_context *ctx, const sps_csr *A, int64_t scale,
                            bool even, int64_t *first)
{
    spsi_own o = spsi_own_of(A->nrow / scale, spsi_comm_size(ctx));
    double *entries = NULL;
    sps_status st;

    o.ordered = spsi_comm_ordered(ctx);
    SPS_TRY(SPS_NEW(ctx, o.buckets, &entries));
    for (int64_t b = 0; !even && b < o.buckets; b++)
        entries[b] = (double)(A->rowptr[scale * spsi_own_row(&o, b + 1)] -
                              A->rowptr[scale * spsi_own_row(&o, b)]) /
                     (double)(scale * scale);
    spsi_own_cut(&o, entries, first);
fail:
    spsi_free(ctx, entries);
    return st;
}

sps_status spsi_own_shape(sps_context *ctx, const char *name, const sps_csr *A,
                          const spsi_share *wanted)
{
    const int64_t scale = A->props & SPS_INTERLEAVED ? 2 : 1;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, wanted->whole == 0 || (A->nrow == A->ncol &&
                A->nrow == scale * wanted->whole), SPS_ESHAPE, "%s: %lld x "
                "%lld, but the matrix has %lld rows", name,
                (long long)(A->nrow / scale), (long long)(A->ncol / scale),
                (long long)wanted->whole);
fail:
    return st;
}

sps_status spsi_own_rows(sps_context *ctx, const char *name, const sps_csr *A,
                         const spsi_share *wanted, sps_csr **own_p)
{
    const int64_t scale = A->props & SPS_INTERLEAVED ? 2 : 1;
    const int rank = spsi_comm_rank(ctx), size = spsi_comm_size(ctx);
    int64_t *first = NULL;
    sps_status st;

    SPS_TRY(spsi_own_shape(ctx, name, A, wanted));
    SPS_TRY(compare(ctx, name, A));
    SPS_TRY(SPS_NEW(ctx, size + 1, &first));
    SPS_TRY(wanted->whole > 0 ? spsi_own_given(ctx, wanted, first)
                              : cut_whole(ctx, A, scale, wanted->even,
                                         first));
    SPS_TRY(copy_rows(ctx, A, scale * first[rank], scale * first[rank + 1],
                      own_p));
fail:
    spsi_free(ctx, first);
    return st;
}
