/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_rows.c - an operator of rows that the caller computes.
 *
 *   the matrix fits           rows become a csr of the library in host memory,
 *                             and the operator is one of that csr
 *   it exceeds the GPU        rows are packed a portion at a time by the plan
 *                             of a streamed matrix; no csr exists.  To solvers
 *                             and preconditioners the operator is a callback
 *                             with a diagonal
 *
 * Host memory in the second case: the packed panels that do not stay on the
 * GPU, 8 bytes a row, and two portions of 128 MB at 12 bytes an entry.  Every
 * computed row is checked, whichever case it is. */
#include <string.h>

#include "core/abi.h"
#include "core/team.h"
#include "operator/operator.h"

typedef struct rows_job {
    sps_rows_fn make;
    void *data;
    const sps_csr *shape;
    int64_t longest;
    double *diagonal;            /* of a square matrix; NULL: not wanted */
    int64_t entries;             /* entries of all rows so far */
    int64_t bad;                 /* first row that is not valid, or nrow */
    int code;                    /* what `make` returned; 0: success */
} rows_job;

/* Returns the first of these rows whose offsets or columns are not valid, or
 * `count`. */
static int64_t invalid_row(const rows_job *j, int64_t count,
                           const int64_t *rowptr, const int32_t *col)
{
    if (rowptr[0] != 0) return 0;
    for (int64_t i = 0; i < count; i++) {
        if (rowptr[i + 1] < rowptr[i] || rowptr[i + 1] - rowptr[i] > j->longest)
            return i;
        for (int64_t e = rowptr[i], last = -1; e < rowptr[i + 1]; e++) {
            if (col[e] <= last || col[e] >= j->shape->ncol) return i;
            last = col[e];
        }
    }
    return count;
}

/* Copies the diagonal entries of these rows, which are valid; it was 0. */
static void take_diagonal(const rows_job *j, int64_t first, int64_t count,
                          const int64_t *rowptr, const int32_t *col,
                          const void *val)
{
    const bool wide = j->shape->dtype == SPS_F64;

    for (int64_t i = 0; j->diagonal && i < count; i++) {
        int64_t e = rowptr[i];

        while (e < rowptr[i + 1] && col[e] < first + i) e++;
        if (e < rowptr[i + 1] && col[e] == first + i)
            j->diagonal[first + i] = wide ? ((const double *)val)[e]
                                          : ((const float *)val)[e];
    }
}

static bool failed(const rows_job *j)
{
    return __atomic_load_n(&j->code, __ATOMIC_RELAXED) != 0 ||
           __atomic_load_n(&j->bad, __ATOMIC_RELAXED) < j->shape->nrow;
}

/* The sps_row_source of the caller's function.  After a failure it computes
 * empty rows, so that packing ends soon. */
static void make_checked(void *data, int64_t first, int64_t count,
                         int64_t *rowptr, int32_t *col, void *val)
{
    rows_job *j = data;
    int64_t bad = 0;
    int code = 0;

    if (!failed(j)) {
        code = j->make(first, count, rowptr, col, val, j->data);
        if (code == 0) bad = invalid_row(j, count, rowptr, col);
        if (code == 0 && bad == count) {
            spsi_team_add(&j->entries, rowptr[count]);
            take_diagonal(j, first, count, rowptr, col, val);
            return;
        }
        if (code == 0) spsi_team_least(&j->bad, first + bad);
        else __atomic_store_n(&j->code, code, __ATOMIC_RELAXED);
    }
    memset(rowptr, 0, (size_t)(count + 1) * sizeof *rowptr);
}

static sps_status verdict(sps_context *ctx, const rows_job *j)
{
    const sps_csr *A = j->shape;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, j->code == 0, SPS_EUSER, "sps_operator_rows: the caller's "
                "function returned %d", j->code);
    SPS_REQUIRE(ctx, j->bad == A->nrow, SPS_EMATRIX, "sps_operator_rows: row "
                "%lld has more than %lld entries, or columns that do not "
                "ascend or are out of range", (long long)j->bad,
                (long long)j->longest);
    SPS_REQUIRE(ctx, j->entries == A->nnz, SPS_EMATRIX, "sps_operator_rows: "
                "the rows have %lld entries, not %lld", (long long)j->entries,
                (long long)A->nnz);
fail:
    return st;
}

/* ------------------------------------------------------------ a whole csr */

enum { PORTION = 4 << 20 };      /* entries computed at a time */

static sps_status fill_csr(sps_context *ctx, const sps_row_source *source,
                           const rows_job *j, sps_csr *A)
{
    const size_t each = spsi_dtype_size(A->dtype);
    sps_row_portion q = { 0 };
    int64_t entries = 0, count;
    sps_status st;

    SPS_TRY(spsi_row_portion_open(ctx, &q, source, PORTION / (j->longest + 1),
                                  each));
    for (int64_t row = 0; row < A->nrow; row += count) {
        count = A->nrow - row < q.most ? A->nrow - row : q.most;
        spsi_row_portion_make(ctx, &q, row, count);
        if (failed(j) || entries + q.entries > A->nnz) break;
        spsi_row_portion_put(ctx, &q, entries, A->rowptr + row,
                             A->col + entries,
                             (char *)A->val + (size_t)entries * each);
        entries += q.entries;
    }
fail:
    spsi_row_portion_close(ctx, &q);
    return st;
}

static sps_status create_near(sps_context *ctx, rows_job *j, int width,
                              const sps_options *opt, int64_t kept,
                              sps_operator **op_p)
{
    const sps_row_source source = { make_checked, j, j->longest };
    const sps_csr *shape = j->shape;
    sps_csr *A = NULL;
    sps_status st;

    SPS_TRY(sps_csr_create(ctx, shape->nrow, shape->ncol, shape->nnz,
                           shape->dtype, &A));
    A->props = shape->props & ~(unsigned)SPS_SORTED;
    SPS_TRY(fill_csr(ctx, &source, j, A));
    SPS_TRY(verdict(ctx, j));
    SPS_TRY(spsi_operator_csr(ctx, A, width, opt, kept, op_p));
    (*op_p)->computed = A;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &A);
    return st;
}

/* --------------------------------------------------------------- streamed */

/* Computes the product by the streamed panels: the callback (sps_apply_fn) of
 * the operator. */
static int apply_panels(double alpha, const double *x, int64_t ldx, double beta,
                        double *y, int64_t ldy, int64_t n, int k, void *stream,
                        void *data)
{
    const sps_operator *op = data;
    sps_context *ctx = op->ctx;
    sps_block X = { ctx, op->ncol, k, ldx, SPS_F64, (void *)(uintptr_t)x, 0,
                    k };
    sps_block Y = { ctx, n, k, ldy, SPS_F64, y, 0, k };
    sps_status st = SPS_OK;

    (void)stream;
    for (int j = 0, some; j < k && st == SPS_OK; j += some) {
        sps_block from, to;

        some = k - j < op->block->k ? k - j : op->block->k;
        spsi_block_view(&X, j, some, &from);
        spsi_block_view(&Y, j, some, &to);
        st = op->block->kernel->spmm(op->block, &(sps_spmm_args){
            .alpha = alpha, .X = &from, .beta = beta, .Y = &to });
    }
    return (int)st;
}

/* Returns the kernel that packs computed rows, or NULL if there is none. */
static const sps_kernel *find_kernel(const sps_context *ctx,
                                     const sps_problem *p)
{
    const sps_kernel *kernel;
    const char *why;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (kernel->op == SPS_OP_SPMM && kernel->gives & SPS_STREAMS &&
            spsi_kernel_fits(kernel, p, &why))
            return kernel;
    return NULL;
}

static void shape_features(const rows_job *j, sps_features *f)
{
    f->nrow = j->shape->nrow;
    f->ncol = j->shape->ncol;
    f->nnz = j->shape->nnz;
    f->max_length = j->longest;
}

/* Makes op an operator of streamed panels.  *far becomes false, and op is not
 * changed, if the matrix fits on the GPU or no kernel streams. */
static sps_status create_far(rows_job *j, sps_operator *op, bool *far)
{
    const sps_row_source source = { make_checked, j, j->longest };
    const sps_kernel *kernel;
    sps_problem p;
    sps_status st;

    shape_features(j, &op->f);
    p = spsi_operator_problem(op, op->width);
    p.A = j->shape;
    p.source = &source;
    p.pinned = true;
    kernel = op->local.far ? find_kernel(op->ctx, &p) : NULL;
    *far = kernel != NULL;
    if (!kernel) return SPS_OK;
    if (op->n == op->ncol) SPS_TRY(SPS_NEW(op->ctx, op->n, &op->diagonal));
    j->diagonal = op->diagonal;
    SPS_TRY(spsi_planner_pin(op->ctx, &p, kernel, &op->block));
    SPS_TRY(verdict(op->ctx, j));
    op->vector = op->plain = op->block;
    op->callback.apply = apply_panels;
    op->callback.data = op;
fail:
    return st;
}

/* ----------------------------------------------------------------- public */

static sps_status check(sps_context *ctx, const sps_csr *shape, int64_t longest,
                        sps_rows_fn make, int width, sps_operator **op_p)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, ctx && shape && make && op_p, SPS_EINVAL,
                "sps_operator_rows: NULL argument");
    SPS_TRY(spsi_abi_csr(ctx, "sps_operator_rows", shape));
    SPS_REQUIRE(ctx, width >= 1 && width <= SPS_BLOCK_MAX, SPS_EINVAL,
                "width %d: an operator serves blocks of 1 to %d columns",
                width, SPS_BLOCK_MAX);
    SPS_REQUIRE(ctx, shape->nrow >= 0 && shape->ncol >= 0 &&
                shape->ncol <= INT32_MAX && longest >= 0 &&
                shape->nnz >= 0 && (shape->nnz == 0 || (longest > 0 &&
                (shape->nnz - 1) / longest < shape->nrow)), SPS_EMATRIX,
                "sps_operator_rows: %lld x %lld with %lld entries, at most "
                "%lld in a row, is out of range", (long long)shape->nrow,
                (long long)shape->ncol, (long long)shape->nnz,
                (long long)longest);
    SPS_REQUIRE(ctx, !shape->rowptr && !shape->col && !shape->val, SPS_EINVAL,
                "sps_operator_rows: the shape has arrays; sps_operator_csr "
                "takes these");
fail:
    return st;
}

/* Sets *op_p to an operator without rows, and op->local.far. */
static sps_status begin(sps_context *ctx, const sps_csr *shape, int width,
                        int64_t kept, sps_operator **op_p)
{
    sps_operator *op;
    sps_status st;

    SPS_TRY(spsi_operator_new(ctx, op_p));
    op = *op_p;
    op->n = shape->nrow;
    op->ncol = shape->ncol;
    op->width = width;
    op->kept = kept;
    op->props = shape->props & (SPS_SYMMETRIC | SPS_SPD);
    op->caller.nnz = shape->nnz;
    op->local = (sps_csr_local){ .nrow = shape->nrow, .ncol = shape->ncol,
                                 .nnz = shape->nnz, .dtype = shape->dtype };
    SPS_TRY(spsi_operator_decide_far(op, shape));
fail:
    return st;
}

sps_status spsi_operator_rows(sps_context *ctx, const sps_csr *shape,
                              int64_t longest, sps_rows_fn make, void *data,
                              int width, const sps_options *opt, int64_t kept,
                              sps_operator **op_p)
{
    rows_job j = { .make = make, .data = data, .shape = shape,
                   .longest = longest };
    sps_operator *op = NULL;
    bool far;
    sps_status st;

    SPS_TRY(check(ctx, shape, longest, make, width, op_p));
    j.bad = shape->nrow;
    SPS_TRY(begin(ctx, shape, width, kept, &op));
    SPS_TRY(create_far(&j, op, &far));
    if (far) {
        *op_p = op;
        return SPS_OK;
    }
    sps_operator_destroy(&op);
    return create_near(ctx, &j, width, opt, kept, op_p);

fail:
    sps_operator_destroy(&op);
    return st;
}
