/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_csr.c - the arrays of an operator of a csr.
 *
 *   caller's A      host, sorted     host, unsorted    device, sorted
 *   op->A           A                own sorted copy   its shape; the arrays
 *                                                      by spsi_operator_fetch
 *   local, host     points at op->A  points at op->A   -
 *   local, GPU      uploaded         uploaded          A's arrays in place
 *   local, far      copied to        copied to         -
 *                   page-locked memory
 *
 * far: beside the arrays the GPU would have no room for the blocks of a solver.
 *
 * A csr on a GPU is checked there: its columns are read once, and 16 bytes come
 * back.  Where its rows are not sorted, or not valid, it is read back and goes
 * the way of a host csr. */
#include <string.h>

#include "operator/reorder.h"
#include "core/team.h"

/* Sets *good to whether A is stored on a GPU, and its rows are valid and sorted
 * (as they are if the library made A). */
static sps_status examine_there(const sps_operator *op, const sps_csr *A,
                                bool *good)
{
    const sps_backend *b = op->ctx->backend;
    int64_t bad;
    sps_status st = SPS_OK;

    *good = A->place == SPS_CUDA && op->inner;
    if (*good || A->place != SPS_CUDA || !b->csr_inspect) return SPS_OK;
    SPS_TRY(b->csr_inspect(op->ctx, A, &bad, good));
    *good = *good && bad < 0;
fail:
    return st;
}

/* Sets op->A to the shape of A, without arrays. */
static sps_status take_shape(sps_operator *op, const sps_csr *A)
{
    sps_status st;

    SPS_TRY(SPS_NEW(op->ctx, 1, &op->own_A));
    op->ctx->live++;
    *op->own_A = (sps_csr){
        .nrow = A->nrow, .ncol = A->ncol, .nnz = A->nnz, .dtype = A->dtype,
        .place = SPS_HOST, .own = SPS_COPY, .props = A->props,
        .struct_size = sizeof *A };
    op->A = op->own_A;
fail:
    return st;
}

/* Sets op->A to arrays in host memory with sorted rows. */
static sps_status take_host(sps_operator *op, sps_csr *A)
{
    sps_context *ctx = op->ctx;
    sps_status st;
    sps_csr *sorted_A = NULL;
    bool sorted;

    if (A->place == SPS_CUDA) SPS_TRY(spsi_csr_download(ctx, A, &op->own_A));
    op->A = op->own_A ? op->own_A : A;
    SPS_TRY(spsi_csr_inspect(ctx, op->A, &sorted));
    if (!sorted) {
        SPS_TRY(spsi_csr_sorted(ctx, op->A, &sorted_A, &op->caller.order));
        sps_csr_destroy(ctx, &op->own_A);
        op->A = op->own_A = sorted_A;
    }
fail:
    return st;
}

/* ------------------------------------------------------------------ local */

/* Allocates memory for an array, at least one byte: the backend's, or host
 * memory that the backend can read. */
static sps_status alloc_array(sps_operator *op, int which, size_t bytes,
                              const void **to)
{
    const sps_backend *b = op->ctx->backend;
    const size_t room = bytes > 0 ? bytes : 8;
    sps_status st;
    void *p = NULL;

    SPS_TRY(op->local.far ? b->share(op->ctx, room, &p)
                          : b->alloc(op->ctx, room, &p));
    *to = p;
    op->local_bytes[which] = room;
fail:
    return st;
}

typedef struct copy_job {
    char *to;
    const char *from;
    size_t bytes;
} copy_job;

enum { PIECE = 1 << 20 };

static void copy_pieces(void *data, int64_t first, int64_t last)
{
    const copy_job *j = data;
    const size_t at = (size_t)first * PIECE, end = (size_t)last * PIECE;

    memcpy(j->to + at, j->from + at, (end < j->bytes ? end : j->bytes) - at);
}

/* Copies within host memory, once no kernel uses either array any more. */
static sps_status copy_far(const sps_operator *op, void *to, const void *from,
                           size_t bytes)
{
    const int64_t pieces = (int64_t)((bytes + PIECE - 1) / PIECE);
    sps_status st;

    SPS_TRY(op->ctx->backend->sync(op->ctx));
    spsi_team_run(op->ctx, pieces, pieces * 100000, copy_pieces,
                  &(copy_job){ to, from, bytes });
fail:
    return st;
}

sps_status spsi_operator_write(const sps_operator *op, const void *to,
                               const void *from, size_t bytes)
{
    void *at = (void *)(uintptr_t)to;

    return op->local.far ? copy_far(op, at, from, bytes)
                         : op->ctx->backend->upload(op->ctx, at, from, bytes);
}

sps_status spsi_operator_read(const sps_operator *op, void *to,
                              const void *from, size_t bytes)
{
    return op->local.far ? copy_far(op, to, from, bytes)
                         : op->ctx->backend->download(op->ctx, to, from,
                                                      bytes);
}

static sps_status upload(sps_operator *op, int which, size_t bytes,
                         const void *from, const void **to)
{
    sps_status st;

    SPS_TRY(alloc_array(op, which, bytes, to));
    if (bytes > 0) SPS_TRY(spsi_operator_write(op, *to, from, bytes));
fail:
    return st;
}

sps_status spsi_operator_alloc_values(sps_operator *op)
{
    const size_t each = spsi_dtype_size(op->local.dtype);

    return alloc_array(op, SPS_LOCAL_VAL, (size_t)op->local.nnz * each,
                       &op->local.val);
}

typedef struct narrow_job {
    const int64_t *wide;
    int32_t *narrow;
} narrow_job;

static void narrow_offsets(void *data, int64_t first, int64_t last)
{
    const narrow_job *j = data;

    for (int64_t i = first; i < last; i++) j->narrow[i] = (int32_t)j->wide[i];
}

static sps_status upload_offsets32(sps_operator *op)
{
    const sps_csr *A = op->A;
    sps_status st;
    int32_t *narrow = NULL;

    SPS_TRY(SPS_NEW(op->ctx, A->nrow + 1, &narrow));
    spsi_team_run(op->ctx, A->nrow + 1, A->nrow, narrow_offsets,
                  &(narrow_job){ A->rowptr, narrow });
    SPS_TRY(upload(op, SPS_LOCAL_ROWPTR32,
                   (size_t)(A->nrow + 1) * sizeof *narrow, narrow,
                   (const void **)&op->local.rowptr32));
fail:
    spsi_free(op->ctx, narrow);
    return st;
}

/* Creates 32-bit offsets from those of A, which are in the backend's memory. */
static sps_status narrow_there(sps_operator *op, const sps_csr *A)
{
    const sps_backend *b = op->ctx->backend;
    sps_status st;

    SPS_TRY(alloc_array(op, SPS_LOCAL_ROWPTR32,
                        (size_t)(A->nrow + 1) * sizeof(int32_t),
                        (const void **)&op->local.rowptr32));
    SPS_TRY(b->csr_narrow(op->ctx, A->rowptr, A->nrow + 1,
                          (int32_t *)(uintptr_t)op->local.rowptr32));
fail:
    return st;
}

/* Uploads 64-bit offsets if nnz is too large for 32 bits, or for panels of a
 * matrix in host memory; spsi_operator_take_csr uploads 32-bit ones where these
 * suffice. */
static sps_status upload_all(sps_operator *op)
{
    const sps_csr *A = op->A;
    sps_status st = SPS_OK;

    if (A->nnz > INT32_MAX || op->local.far)
        SPS_TRY(upload(op, SPS_LOCAL_ROWPTR,
                       (size_t)(A->nrow + 1) * sizeof *A->rowptr, A->rowptr,
                       (const void **)&op->local.rowptr));
    SPS_TRY(upload(op, SPS_LOCAL_COL, (size_t)A->nnz * sizeof *A->col, A->col,
                   (const void **)&op->local.col));
    SPS_TRY(upload(op, SPS_LOCAL_VAL, spsi_csr_value_bytes(A), A->val,
                   (const void **)&op->local.val));
fail:
    return st;
}

/* Matrices of fewer entries are assumed to fit without asking the driver how
 * much memory is free. */
static const int64_t SMALL = (int64_t)5 << 20;

bool spsi_operator_may_be_far(const sps_operator *op, int64_t nnz)
{
    const sps_context *ctx = op->ctx;

    return !op->inner && ctx->backend->share &&
           (nnz >= SMALL || ctx->opt.max_device_bytes > 0);
}

size_t spsi_operator_blocks_room(const sps_operator *op, bool far)
{
    const int64_t n = op->n > op->ncol ? op->n : op->ncol;
    const int64_t k = spsi_block_ld(op->width);
    const int64_t columns = op->kept ? op->kept : (far ? 12 : 8) * k;

    return spsi_blocks_room(n, op->width) -
           (size_t)((12 * k - columns) * n) * sizeof(double);
}

sps_status spsi_operator_decide_far(sps_operator *op, const sps_csr *A)
{
    sps_context *ctx = op->ctx;
    const size_t bytes = (size_t)A->nnz * sizeof *A->col +
                         spsi_csr_value_bytes(A) + 8 * ((size_t)A->nrow + 1);
    const size_t blocks = spsi_operator_blocks_room(op, false);
    size_t unused = 0, total = 0;
    sps_status st = SPS_OK;

    if (!spsi_operator_may_be_far(op, A->nnz)) return SPS_OK;
    SPS_TRY(ctx->backend->memory(ctx, &unused, &total));
    op->local.far = bytes + blocks > unused;
    if (op->local.far)
        spsi_note(ctx, "the matrix, %zu bytes, stays in host memory: %zu bytes "
                  "of GPU memory are free, and blocks of %d columns need %zu "
                  "of them", bytes, unused, op->width, blocks);
fail:
    return st;
}

static void point_at(sps_operator *op, const sps_csr *A)
{
    op->local.rowptr = A->rowptr;
    op->local.col = A->col;
    op->local.val = A->val;
}

sps_status spsi_operator_take_csr(sps_operator *op, sps_csr *A)
{
    const bool host = op->ctx->backend->place == SPS_HOST;
    sps_status st;
    bool there;

    op->caller.nnz = A->nnz;
    SPS_TRY(examine_there(op, A, &there));
    SPS_TRY(there ? take_shape(op, A) : take_host(op, A));
    op->A->props |= SPS_SORTED;
    op->local = (sps_csr_local){ .nrow = A->nrow, .ncol = A->ncol,
                                 .nnz = op->A->nnz, .dtype = A->dtype };
    if (host || there) {
        point_at(op, there ? A : op->A);
    } else {
        SPS_TRY(spsi_operator_decide_far(op, op->A));
        SPS_TRY(upload_all(op));
    }
    if (!host && op->A->nnz <= INT32_MAX)
        SPS_TRY(there ? narrow_there(op, A) : upload_offsets32(op));
fail:
    return st;
}

static void release(sps_operator *op, int which, const void *p)
{
    const sps_backend *b = op->ctx->backend;
    const size_t bytes = op->local_bytes[which];
    void *array = (void *)(uintptr_t)p;

    if (bytes > 0 && op->local.far) b->unshare(op->ctx, array, bytes);
    else if (bytes > 0) b->release(op->ctx, array, bytes);
    op->local_bytes[which] = 0;
}

void spsi_operator_drop_csr(sps_operator *op)
{
    release(op, SPS_LOCAL_ROWPTR, op->local.rowptr);
    release(op, SPS_LOCAL_ROWPTR32, op->local.rowptr32);
    release(op, SPS_LOCAL_COL, op->local.col);
    release(op, SPS_LOCAL_VAL, op->local.val);
    sps_csr_destroy(op->ctx, &op->own_A);
    spsi_free(op->ctx, op->cache->own_val);
    spsi_free(op->ctx, op->caller.order);
    op->cache->own_val = op->caller.order = NULL;
    op->A = NULL;
}
