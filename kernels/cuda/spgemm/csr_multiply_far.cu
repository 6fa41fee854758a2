/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_multiply_far.cu - C = A B for matrices in host memory, computed on the
 * device, which need not hold them (ApSpGEMM, ACM TACO 2024): B is copied there
 * as a whole, A passes in panels of rows, and the rows of C leave while those
 * of the next panel are computed.
 *
 *   count   panels of A: entries of each row of C, so that C can be allocated,
 *           and cut by its bytes;
 *   fill    panels of A again, so many rows that two panels of C fit beside
 *           them.  Let m be the stream of the context, d a stream for copies to
 *           the host, i a panel:
 *
 *     m: compute C_i      host: wait for copy of C_i-1; d: copy C_i to slot
 *     i % 2               host: move C_i-1 from its slot to C.
 *
 * Slots are page-locked; C itself is not.  A row of C is computed by the
 * kernels for matrices in device memory, from the same entries: all bits are
 * the same. */
#include "core/team.h"
#include "cuda/base/memory.cuh"
#include "cuda/spgemm/csr_device.cuh"
#include "matrix/csr.h"

#include <cstring>

namespace {

constexpr size_t largest_panel = (size_t)256 << 20;     /* bytes of C */
constexpr int64_t most_rows = (int64_t)1 << 20;
constexpr size_t work_of_row = 64;   /* upper bound of the work memory for a row
                                        of C */
constexpr size_t piece = (size_t)1 << 20;

size_t at_most(size_t a, size_t b) { return a < b ? a : b; }

struct panel {
    int64_t first, rows;
};

/* A panel of C on its way to the host. */
struct leaving {
    panel is;
    sps_csr *C;                /* in device memory; NULL: none */
    char *slot;                /* columns, then values */
    cudaEvent_t there;
};

struct far_product {
    sps_context *ctx;
    const sps_csr *A, *B;      /* in host memory, with values of one type */
    sps_csr *b, *C;            /* B in device memory, C in host memory */
    size_t value;              /* bytes of a value */
    size_t budget;             /* device memory for a panel */
    size_t room;               /* bytes of a slot */
    int64_t *offset;           /* offsets of the rows of a panel of A */
    int32_t *count;            /* entries of the rows of a panel of C */
    cudaStream_t down;
    leaving panel_of[2];

    size_t entry() const { return sizeof(int32_t) + value; }
    size_t bytes(const sps_csr *M, int64_t row) const
    {
        return (size_t)(M->rowptr[row + 1] - M->rowptr[row]) * entry();
    }
};

/* ------------------------------------------------------------------ panels */

/* Returns the panel that begins with row `first`: at least one row, and as many
 * as the budget allows; `fill`: C->rowptr is known, and two panels of C have to
 * fit as well. */
panel panel_at(const far_product &q, int64_t first, bool fill)
{
    const int64_t end = q.A->nrow - first < most_rows ? q.A->nrow
                                                      : first + most_rows;
    size_t all = 0, result = 0;
    int64_t i = first;

    for (; i < end; i++) {
        const size_t c = fill ? q.bytes(q.C, i) : 0;

        all += q.bytes(q.A, i) + 2 * c + work_of_row;
        result += fill ? c : q.bytes(q.A, i);
        if (i > first && (all > q.budget || result > largest_panel)) break;
    }
    return {first, i - first};
}

/* Creates a copy of rows of A in device memory. */
sps_status send_rows(const far_product &q, const panel &p, sps_csr **rows_p)
{
    const int64_t at = q.A->rowptr[p.first];
    sps_csr rows = *q.A;

    for (int64_t i = 0; i <= p.rows; i++)
        q.offset[i] = q.A->rowptr[p.first + i] - at;
    rows.nrow = p.rows;
    rows.nnz = q.offset[p.rows];
    rows.rowptr = q.offset;
    rows.col = q.A->col + at;
    rows.val = (char *)q.A->val + (size_t)at * q.value;
    return spsi_csr_upload(q.ctx, &rows, rows_p);
}

/* ------------------------------------------------------------------- count */

sps_status count_panel(const far_product &q, const panel &p)
{
    int64_t *to = q.C->rowptr + p.first;
    sps_csr *rows;
    sps_status st;

    SPS_TRY_RETURN(send_rows(q, p, &rows));
    st = spsi_cuda_csr_count(q.ctx, rows, q.b, q.count);
    sps_csr_destroy(q.ctx, &rows);
    for (int64_t i = 0; i < p.rows && st == SPS_OK; i++)
        to[i + 1] = to[i] + q.count[i];
    return st;
}

/* Computes the offsets of C, and allocates its entries. */
sps_status open_result(far_product &q)
{
    sps_csr *C = q.C;

    for (panel p = {}; p.first < C->nrow; p.first += p.rows) {
        p = panel_at(q, p.first, false);
        SPS_TRY_RETURN(count_panel(q, p));
    }
    C->nnz = C->rowptr[C->nrow];
    spsi_free(q.ctx, C->col);
    spsi_free(q.ctx, C->val);
    C->col = NULL;
    C->val = NULL;
    SPS_TRY_RETURN(spsi_new_raw(q.ctx, (size_t)C->nnz * sizeof *C->col,
                                (void **)&C->col));
    return spsi_new_raw(q.ctx, (size_t)C->nnz * q.value, &C->val);
}

/* -------------------------------------------------------------------- fill */

sps_status open_slots(far_product &q)
{
    for (panel p = {}; p.first < q.C->nrow; p.first += p.rows) {
        p = panel_at(q, p.first, true);
        const size_t bytes = q.entry() *
                             (size_t)(q.C->rowptr[p.first + p.rows] -
                                      q.C->rowptr[p.first]);

        q.room = bytes > q.room ? bytes : q.room;
    }
    q.room = (q.room + 4095) & ~(size_t)4095;
    SPS_CUDA(q.ctx, cudaStreamCreateWithFlags(&q.down, cudaStreamNonBlocking));
    for (leaving &l : q.panel_of) {
        SPS_TRY_RETURN(q.ctx->backend->share(q.ctx, q.room, (void **)&l.slot));
        SPS_CUDA(q.ctx, cudaEventCreateWithFlags(&l.there,
                                                 cudaEventDisableTiming));
    }
    return SPS_OK;
}

/* Queues the copy of l.C to its slot. */
sps_status depart(const far_product &q, const leaving &l)
{
    const size_t n = (size_t)l.C->nnz, columns = n * sizeof(int32_t);

    SPS_CUDA(q.ctx, cudaMemcpyAsync(l.slot, l.C->col, columns,
                                    cudaMemcpyDeviceToHost, q.down));
    SPS_CUDA(q.ctx, cudaMemcpyAsync(l.slot + columns, l.C->val, n * q.value,
                                    cudaMemcpyDeviceToHost, q.down));
    SPS_CUDA(q.ctx, cudaEventRecord(l.there, q.down));
    q.ctx->memory.to_host += (int64_t)(n * q.entry());
    return SPS_OK;
}

struct move {
    char *to;
    const char *from;
    size_t bytes;
};

void move_pieces(void *data, int64_t first, int64_t last)
{
    const move *m = (const move *)data;
    const size_t begin = (size_t)first * piece;
    const size_t end = at_most((size_t)last * piece, m->bytes);

    memcpy(m->to + begin, m->from + begin, end - begin);
}

void move_all(sps_context *ctx, move m)
{
    spsi_team_run(ctx, (int64_t)((m.bytes + piece - 1) / piece),
                  (int64_t)(0.2 * (double)m.bytes), move_pieces, &m);
}

/* Waits until l.C is in its slot, and moves it to C. */
sps_status arrive(const far_product &q, leaving &l)
{
    const size_t at = (size_t)q.C->rowptr[l.is.first], n = (size_t)l.C->nnz;

    SPS_CUDA(q.ctx, cudaEventSynchronize(l.there));
    sps_csr_destroy(q.ctx, &l.C);
    move_all(q.ctx, {(char *)(q.C->col + at), l.slot, n * sizeof(int32_t)});
    move_all(q.ctx, {(char *)q.C->val + at * q.value,
                     l.slot + n * sizeof(int32_t), n * q.value});
    return SPS_OK;
}

sps_status compute(const far_product &q, leaving &l)
{
    sps_csr *rows;
    sps_status st;

    SPS_TRY_RETURN(send_rows(q, l.is, &rows));
    st = spsi_cuda_csr_multiply(q.ctx, rows, q.b, &l.C);
    if (st == SPS_OK) st = spsi_cuda_wait(q.ctx);
    sps_csr_destroy(q.ctx, &rows);
    return st;
}

sps_status fill(far_product &q)
{
    int64_t i = 0;

    SPS_TRY_RETURN(open_slots(q));
    for (panel p = {}; p.first < q.C->nrow; p.first += p.rows, i++) {
        leaving &now = q.panel_of[i % 2], &before = q.panel_of[(i + 1) % 2];

        now.is = p = panel_at(q, p.first, true);
        SPS_TRY_RETURN(compute(q, now));
        SPS_TRY_RETURN(depart(q, now));
        if (before.C) SPS_TRY_RETURN(arrive(q, before));
    }
    leaving &last = q.panel_of[(i + 1) % 2];

    return last.C ? arrive(q, last) : SPS_OK;
}

/* ------------------------------------------------------------------- whole */

sps_status make(far_product &q)
{
    sps_context *ctx = q.ctx;
    const int64_t rows = q.A->nrow < most_rows ? q.A->nrow : most_rows;
    size_t unused, total;

    SPS_TRY_RETURN(spsi_csr_upload(ctx, q.B, &q.b));
    SPS_TRY_RETURN(ctx->backend->memory(ctx, &unused, &total));
    q.budget = unused / 2;
    SPS_TRY_RETURN(SPS_NEW(ctx, rows + 1, &q.offset));
    SPS_TRY_RETURN(SPS_NEW(ctx, rows, &q.count));
    SPS_TRY_RETURN(sps_csr_create(ctx, q.A->nrow, q.B->ncol, 0, q.A->dtype,
                                  &q.C));
    SPS_TRY_RETURN(open_result(q));
    if (q.C->nnz > 0) SPS_TRY_RETURN(fill(q));
    q.C->props = SPS_SORTED;
    return SPS_OK;
}

void release(far_product &q)
{
    sps_context *ctx = q.ctx;

    if (q.down) {
        cudaStreamSynchronize(q.down);
        cudaStreamDestroy(q.down);
    }
    for (leaving &l : q.panel_of) {
        sps_csr_destroy(ctx, &l.C);
        ctx->backend->unshare(ctx, l.slot, q.room);
        if (l.there) cudaEventDestroy(l.there);
    }
    sps_csr_destroy(ctx, &q.b);
    spsi_free(ctx, q.offset);
    spsi_free(ctx, q.count);
    cudaGetLastError();
}

} // namespace

sps_status spsi_cuda_csr_multiply_far(sps_context *ctx, const sps_csr *A,
                                      const sps_csr *B, sps_csr **C_p)
{
    far_product q = {};
    sps_status st;

    q.ctx = ctx;
    q.A = A;
    q.B = B;
    q.value = A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    spsi_cuda_pool_begin(ctx);
    st = make(q);
    release(q);
    spsi_cuda_pool_end(ctx);
    if (st == SPS_OK) *C_p = q.C;
    else sps_csr_destroy(ctx, &q.C);
    return st;
}
