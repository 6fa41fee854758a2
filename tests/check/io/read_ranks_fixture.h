/* SPDX-License-Identifier: BSD-3-Clause */
/* read_ranks_fixture.h - a file read by several processes, played by threads,
 * and by one, and comparison of what they got; generated texts of matrices.
 * For Check tests. */
#ifndef SPS_TEST_READ_RANKS_FIXTURE_H
#define SPS_TEST_READ_RANKS_FIXTURE_H

#include "tests/problems/invalid_mtx.h"
#include "tests/problems/mtx_fixture.h"
#include "tests/problems/valid_mtx.h"
#include "tests/processes/crew.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/runner.h"

#define COUNT(list) (sizeof list / sizeof *list)

/* What all ranks share. */
typedef struct work {
    const char *path, *other;   /* other: the file of rank 1, or NULL */
    int flags;
    fail_alloc *memory;         /* of rank 1, or NULL */
    long allowed;
    bool cancelled;             /* on rank 1 */
    const char *partition;
    const int64_t *chosen;      /* first row of each rank, and the number of
                                   all; NULL: the library chooses them */
    int64_t whole;
} work;

/* What a rank, or one process, has read. */
typedef struct found {
    sps_status st;
    char error[1024], notes[2048];
    sps_read_info info;
    int64_t nrow, ncol, nnz, first, whole, *rowptr, *col;
    double *val;
    unsigned props;
} found;

static crew_member member[CREW];
static found of_rank[CREW];
static int exchanges;           /* of the last crew: 2 if read in parts */

static inline void forget(found *f)
{
    free(f->rowptr);
    free(f->col);
    free(f->val);
    *f = (found){ .st = SPS_OK };
}

static inline void keep(const sps_csr *A, found *f)
{
    f->nrow = A->nrow;
    f->ncol = A->ncol;
    f->nnz = A->nnz;
    f->first = A->first;
    f->whole = A->whole;
    f->props = A->props;
    f->rowptr = calloc((size_t)A->nrow + 1, sizeof *f->rowptr);
    f->col = calloc((size_t)A->nnz + 1, sizeof *f->col);
    f->val = calloc((size_t)A->nnz + 1, sizeof *f->val);
    memcpy(f->rowptr, A->rowptr, ((size_t)A->nrow + 1) * sizeof *f->rowptr);
    for (int64_t p = 0; p < A->nnz; p++) {
        f->col[p] = A->whole > 0 ? A->global[p] : A->col[p];
        f->val[p] = ((const double *)A->val)[p];
    }
}

static inline void read_file(sps_context *ctx, const char *path, int flags,
                             const char *partition, const int64_t *rows,
                             int64_t whole, found *f)
{
    const sps_read_options ro = { .struct_size = sizeof ro,
                                  .strict = flags & STRICT,
                                  .lenient = flags & LENIENT,
                                  .max_bytes = flags & SMALL ? 4000 : 0,
                                  .partition = partition };
    sps_csr *A = NULL;
    const char *note;

    f->info.struct_size = sizeof f->info;
    f->st = rows ? sps_csr_read_rows(ctx, path, &ro, &f->info, rows[0],
                                     rows[1] - rows[0], whole, &A)
                 : sps_csr_read(ctx, path, &ro, &f->info, &A);
    if (f->st)
        snprintf(f->error, sizeof f->error, "%s", sps_context_error(ctx));
    if (A) keep(A, f);
    sps_csr_destroy(ctx, &A);
    for (int i = 0; (note = sps_context_note(ctx, i)); i++) {
        const size_t at = strlen(f->notes);

        snprintf(f->notes + at, sizeof f->notes - at, "%s\n", note);
    }
}

static inline void read_rank(crew_member *m)
{
    const work *w = m->data;
    const bool odd = m->rank == 1;

    if (odd && w->cancelled) sps_cancel(m->ctx, true);
    if (odd && w->memory) fail_alloc_allow(w->memory, w->allowed);
    read_file(m->ctx, odd && w->other ? w->other : w->path, w->flags,
              w->partition, w->chosen ? w->chosen + m->rank : NULL, w->whole,
              &of_rank[m->rank]);
}

static inline void read_by(int size, work *w)
{
    for (int r = 0; r < CREW; r++) forget(&of_rank[r]);
    ck_assert_msg(crew_run(member, size, read_rank, w), "%s, %d ranks: a "
                  "deadlock, or a lost message", w->path, size);
    exchanges = (int)member[0].all->exchanges;
}

static inline void read_alone(const char *path, int flags, found *f)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    forget(f);
    read_file(ctx, path, flags, NULL, NULL, 0, f);
    fixture_close(&ctx);
}

/* The rows of rank r are those of the whole; returns the row after them. */
static inline int64_t assert_rows(const char *text, const found *all,
                                  const found *f, int64_t first)
{
    ck_assert_msg(f->first == first && f->whole == all->nrow &&
                  f->ncol == all->ncol, "%.300s: rows %d to %d of %d", text,
                  (int)f->first, (int)(f->first + f->nrow), (int)f->whole);
    ck_assert_msg(f->props == all->props, "%.300s: properties %u, not %u", text,
                  f->props, all->props);
    ck_assert_int_eq(f->nnz, f->rowptr[f->nrow]);
    for (int64_t i = 0; i < f->nrow; i++) {
        const int64_t p = f->rowptr[i], q = all->rowptr[first + i];
        const int64_t n = f->rowptr[i + 1] - p;

        ck_assert_msg(n == all->rowptr[first + i + 1] - q &&
                      !memcmp(f->col + p, all->col + q, (size_t)n * 8) &&
                      !memcmp(f->val + p, all->val + q, (size_t)n * 8),
                      "%.300s: row %d differs", text, (int)(first + i));
    }
    return first + f->nrow;
}

static inline void assert_facts(const char *text, const found *all,
                                const found *f)
{
    const sps_read_info *a = &all->info, *b = &f->info;

    ck_assert_msg(!strcmp(f->notes, all->notes), "%.300s: notes\n%s, not\n%s",
                  text, f->notes, all->notes);
    ck_assert_msg(!strcmp(a->field, b->field) && a->array == b->array &&
                  !strcmp(a->symmetry, b->symmetry) && a->upper == b->upper &&
                  a->lines == b->lines && a->stored == b->stored &&
                  a->duplicates == b->duplicates && a->rounded == b->rounded &&
                  a->underflows == b->underflows, "%.300s: %d lines, %d "
                  "duplicates, not %d, %d", text, (int)b->lines,
                  (int)b->duplicates, (int)a->lines, (int)a->duplicates);
}

/* --------------------------------------------------------------- long files */

typedef struct kind {
    const char *field, *symmetry;
    bool sorted;             /* by rows, near the diagonal; else scattered */
} kind;

enum { N = 3000 };

/* Entry p of the file: below the diagonal if the file has a symmetry. */
static inline void place(const kind *k, int64_t p, int64_t entries, int64_t *i,
                         int64_t *j)
{
    const uint64_t h = ((uint64_t)p + 1) * UINT64_C(0x9e3779b97f4a7c15);

    *i = k->sorted ? 1 + p * (N - 1) / entries : (int64_t)((h >> 40) % N);
    *j = k->sorted ? *i - (int64_t)(h >> 60) : (int64_t)((h >> 8) % N);
    if (*j < 0) *j = 0;
    if (strcmp(k->symmetry, "general") && *j > *i) {
        const int64_t t = *i;
        *i = *j;
        *j = t;
    }
    if (!strcmp(k->symmetry, "skew-symmetric") && *i == *j)
        *j = *i > 0 ? *i - 1 : (*i = 1, 0);
}

static inline char *long_text(const kind *k, int64_t entries)
{
    char *text = malloc((size_t)entries * 80 + 1024), *t = text;

    t += sprintf(t, BANNER "coordinate %s %s\n%d %d %lld\n", k->field,
                 k->symmetry, N, N, (long long)entries);
    for (int64_t p = 0; p < entries; p++) {
        const double x = (double)(int64_t)((uint64_t)p *
                                           UINT64_C(0xda942042e4dd58b5)) / 3e17;
        int64_t i, j;

        place(k, p, entries, &i, &j);
        if (p % 1000 == 999) t += sprintf(t, "%% a comment\n\n");
        t += sprintf(t, "%lld %lld", (long long)i + 1, (long long)j + 1);
        if (strcmp(k->field, "pattern")) t += sprintf(t, " %.17g", x);
        if (!strcmp(k->field, "complex")) t += sprintf(t, " %.17g", 3 - x);
        t += sprintf(t, "\n");
    }
    return text;
}

#endif
