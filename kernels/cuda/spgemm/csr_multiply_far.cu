/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_multiply_far.cu - C = A B for matrices in host memory, computed on the
 * device, which need not hold them, and on the host (ApSpGEMM, ACM TACO 2024):
 * B is copied to the device as a whole, A passes in panels of rows, and the
 * rows of C leave while those of the next panel are computed.  If B does not
 * fit, the rows of A are cut into parts (formats/row_parts.h), and for each of
 * them the device has the rows of B that it needs; rows of A that need too many
 * are multiplied by the host.
 *
 *   count   panels of offsets and columns of A: entries of each row of C, so
 *           that C can be allocated, and cut by its bytes;
 *   fill    panels of A, so many rows that two panels of C fit beside them.
 *
 * In the second pass the calling thread drives the device, and the other
 * threads of the host do what csr_far_work.cuh says.  Let m be the stream of
 * the context, d a stream for copies to the host, i a panel of the part:
 *
 *     threads   copy A_i+1 to a slot; C_i-1, C_i-2 from their slots to C;
 *               compute the last rows of C
 *     m         wait for A_i in its slot; copy it; compute C_i
 *     d         wait for C_i; copy it to a slot from which C_i-3 has left.
 *
 * The device counts the entries of C_i for the calling thread, so A_i has left
 * its slot when that thread goes on.  Slots are page-locked; A and C are not.
 * A row of C is computed from the same entries in the same order by either side
 * and in core: all bits are the same. */
#include "core/deadline.h"
#include "cuda/spgemm/csr_device.cuh"
#include "cuda/spgemm/csr_far_panels.cuh"

namespace {

constexpr size_t shared_panels = 4;     /* least number of panels of C of which
                                           the host computes rows */
constexpr size_t least_part = (size_t)16 << 20; /* bytes of rows of B for which
                                                   a part is made */
constexpr size_t enough_left = (size_t)1 << 30; /* device memory beside B that
                                                   is enough for panels */
constexpr int least_products = 4;       /* for an entry of the rows of B of a
                                           part: with fewer the host is as fast
                                           as it copies these rows */

/* ------------------------------------------------------------------- parts */

/* Copies the rows of B of a part to the device; values only if `values`. */
sps_status open_part(far_product &q, int64_t i, bool values)
{
    const sps_row_part &part = q.parts.part[i];
    const layout l = layout_of(q, part.named, part.entries);
    const size_t n = (size_t)part.entries;
    sps_csr b;

    q.a_first = q.A->rowptr[part.first];
    q.end = part.first + part.rows;
    spsi_row_parts_make(&q.parts, i, values, &q.a_col, &b);
    SPS_TRY_RETURN(spoil(q, q.b_at, q.parts.count > 1 ? q.b_bytes : 0));
    q.b = placed(q, &b, part.named, part.entries, q.b_at);
    if (q.parts.count > 1 || !values) {
        SPS_TRY_RETURN(send(q, q.b_at, b.rowptr, l.col));
        SPS_TRY_RETURN(send(q, q.b_at + l.col, b.col, n * sizeof *b.col));
    }
    return values ? send(q, q.b_at + l.val, b.val, n * q.value) : SPS_OK;
}

/* Returns how many entries of A are in rows that the host has to multiply. */
int64_t entries_by_host(const far_product &q)
{
    int64_t n = 0;

    for (int64_t i = 0; i < q.parts.count; i++) {
        const sps_row_part &part = q.parts.part[i];

        if (part.named < 0)
            n += entries_of(q, {part.first, part.rows});
    }
    return n;
}

/* Cuts the product into parts, one if B fits. */
sps_status open_parts(far_product &q)
{
    sps_context *ctx = q.ctx;
    const size_t all = spsi_row_parts_bytes(q.B, q.B->nrow, q.B->nnz);
    size_t unused, total;

    SPS_TRY_RETURN(ctx->backend->memory(ctx, &unused, &total));
    const size_t rest = unused / 4 < enough_left ? unused / 4 : enough_left;
    const bool fit = !q.test.room && all <= unused - rest;
    const size_t room = fit ? all : q.test.room ? q.test.room : unused / 2;

    if (!fit && !q.test.room && room < least_part)
        return spsi_cuda_no_memory(ctx, all);
    SPS_TRY_RETURN(spsi_row_parts_open(ctx, q.A, q.B, room,
                                       q.test.room ? 0 : least_products,
                                       &q.parts));
    if (q.parts.count == 0 || entries_by_host(q) > q.A->nnz / 2)
        return spsi_cuda_no_memory(ctx, all);
    for (int64_t i = 0; i < q.parts.count; i++) {
        const sps_row_part &part = q.parts.part[i];
        const size_t b = layout_of(q, part.named, part.entries).all;

        if (part.named >= 0 && b > q.b_bytes) q.b_bytes = b;
    }
    SPS_TRY_RETURN(SPS_NEW(ctx, q.parts.count, &q.by_host));
    void *p;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, q.b_bytes, &p));
    q.b_at = (char *)p;
    return SPS_OK;
}

/* ------------------------------------------------------------------- count */

sps_status count_panel(far_product &q, const panel &p)
{
    const layout l = layout_of(q, p);
    const sps_csr rows = rows_of(q, p);
    int64_t *to = q.C->rowptr + p.first;

    set_offsets(q, p, q.offset);
    SPS_TRY_RETURN(send(q, q.a, q.offset, l.col));
    SPS_TRY_RETURN(send(q, q.a + l.col, columns_of(q, p),
                        (size_t)rows.nnz * sizeof(int32_t)));
    SPS_TRY_RETURN(spsi_cuda_csr_count(q.ctx, &rows, &q.b, q.count));
    for (int64_t i = 0; i < p.rows; i++) to[i + 1] = to[i] + q.count[i];
    return spsi_check_deadline(q.ctx, "the product of two matrices");
}

/* Multiplies rows of A on the host, which is done before C is allocated. */
sps_status multiply_by_host(far_product &q, int64_t i)
{
    const sps_row_part &part = q.parts.part[i];
    int64_t *to = q.C->rowptr + part.first;
    sps_csr rows = *q.A;

    rows.nrow = part.rows;
    rows.rowptr += part.first;
    SPS_TRY_RETURN(spsi_cpu_csr_multiply(q.ctx, &rows, q.B, &q.by_host[i]));
    for (int64_t r = 1; r <= part.rows; r++)
        to[r] = to[0] + q.by_host[i]->rowptr[r];
    return SPS_OK;
}

sps_status count_part(far_product &q, int64_t i)
{
    panel p = {q.parts.part[i].first, 0};

    if (q.parts.part[i].named < 0) return multiply_by_host(q, i);
    SPS_TRY_RETURN(open_part(q, i, false));
    for (; p.first < q.end; p.first += p.rows) {
        p = panel_at(q, p.first, q.end, false);
        SPS_TRY_RETURN(count_panel(q, p));
    }
    return SPS_OK;
}

/* Computes the offsets of C, and allocates its entries. */
sps_status open_result(far_product &q)
{
    sps_csr *C = q.C;

    for (int64_t i = 0; i < q.parts.count; i++)
        SPS_TRY_RETURN(count_part(q, i));
    C->nnz = C->rowptr[C->nrow];
    return spsi_cpu_known_rows_room(q.ctx, C);
}

/* -------------------------------------------------------------------- fill */

/* Claims the next panel for the device; it has no rows if all are claimed. */
panel claim_panel(far_product &q)
{
    std::lock_guard<std::mutex> held(q.work.lock);
    const int64_t first = q.work.front;
    const int64_t end = q.end < q.work.back ? q.end : q.work.back;
    const panel p = first < end ? panel_at(q, first, end, true)
                                : panel{first, 0};

    q.work.front += p.rows;
    return p;
}

/* Begins to copy a panel of A to its slot. */
void enter(far_product &q, entering &e, const panel &p)
{
    const layout at = layout_of(q, p);
    const int64_t first = q.A->rowptr[p.first];
    const size_t n = (size_t)entries_of(q, p);
    load &l = *e.copies;

    if (p.rows == 0) return;
    if (q.test.poison) memset(e.slot, 0xff, q.room_in);
    set_offsets(q, p, (int64_t *)e.slot);
    l.to[0] = e.slot + at.col;
    l.from[0] = (const char *)columns_of(q, p);
    l.bytes[0] = n * sizeof(int32_t);
    l.to[1] = e.slot + at.val;
    l.from[1] = (const char *)q.A->val + (size_t)first * q.value;
    l.bytes[1] = n * q.value;
    begin_copies(q.work, l);
}

/* Computes the panel of C from that of A in the slot of e. */
sps_status compute(far_product &q, const panel &p, const entering &e,
                   leaving &l)
{
    const sps_csr rows = rows_of(q, p);
    const size_t bytes = layout_of(q, p).all;

    SPS_TRY_RETURN(late(q, SPS_FAR_UP, spsi_cuda_state(q.ctx)->stream));
    SPS_TRY_RETURN(copied(q, bytes, spsi_cuda_up(q.ctx, q.a, e.slot, bytes)));
    l.is = p;
    SPS_TRY_RETURN(spsi_cuda_csr_multiply(q.ctx, &rows, &q.b, &l.C));
    SPS_TRY_RETURN(late_values(q, l.C));
    return spoil(q, q.a, q.room_in);
}

/* Queues the copy of l.C to its slot. */
sps_status depart(far_product &q, const leaving &l)
{
    const size_t n = (size_t)l.C->nnz;

    if (q.test.poison) memset(l.slot, 0xff, q.room_out);
    SPS_CUDA(q.ctx, cudaEventRecord(q.computed,
                                    spsi_cuda_state(q.ctx)->stream));
    if (!(q.test.omit & SPS_FAR_COMPUTED))
        SPS_CUDA(q.ctx, cudaStreamWaitEvent(q.down, q.computed, 0));
    SPS_TRY_RETURN(late(q, SPS_FAR_DOWN, q.down));
    SPS_TRY_RETURN(copied(q, n * sizeof(int32_t), cudaMemcpyAsync(
        l.slot, l.C->col, n * sizeof(int32_t), cudaMemcpyDeviceToHost,
        q.down)));
    SPS_TRY_RETURN(copied(q, n * q.value, cudaMemcpyAsync(
        l.slot + columns(n), l.C->val, n * q.value, cudaMemcpyDeviceToHost,
        q.down)));
    SPS_CUDA(q.ctx, cudaEventRecord(l.there, q.down));
    q.ctx->memory.to_host += (int64_t)(n * q.entry());
    return SPS_OK;
}

/* Waits until l.C is in its slot, and begins to copy it to C. */
sps_status arrive(far_product &q, leaving &l)
{
    const size_t at = (size_t)q.C->rowptr[l.is.first], n = (size_t)l.C->nnz;
    load &c = *l.copies;

    if (!(q.test.omit & SPS_FAR_THERE))
        SPS_CUDA(q.ctx, cudaEventSynchronize(l.there));
    SPS_TRY_RETURN(spoil(q, (char *)l.C->val, n * q.value));
    sps_csr_destroy(q.ctx, &l.C);
    c.to[0] = (char *)(q.C->col + at);
    c.from[0] = l.slot;
    c.bytes[0] = n * sizeof(int32_t);
    c.to[1] = (char *)q.C->val + at * q.value;
    c.from[1] = l.slot + columns(n);
    c.bytes[1] = n * q.value;
    begin_copies(q.work, c);
    return SPS_OK;
}

/* Waits for the copies of l, itself one of those that copy. */
void await_copies(far_product &q, unsigned wait, const load *l)
{
    if (!(q.test.omit & wait)) work(q.work, false, l);
}

sps_status drive(far_product &q)
{
    panel next = claim_panel(q);
    int64_t i = 0;

    enter(q, q.in[0], next);
    for (; next.rows > 0; i++) {
        const panel now = next;
        const entering &e = q.in[i % entries];
        leaving &l = q.out[i % exits];

        next = claim_panel(q);
        enter(q, q.in[(i + 1) % entries], next);
        await_copies(q, SPS_FAR_LEFT, l.copies);
        await_copies(q, SPS_FAR_ENTERED, e.copies);
        SPS_TRY_RETURN(compute(q, now, e, l));
        SPS_TRY_RETURN(depart(q, l));
        if (i > 0) SPS_TRY_RETURN(arrive(q, q.out[(i - 1) % exits]));
        SPS_TRY_RETURN(spsi_check_deadline(q.ctx,
                                           "the product of two matrices"));
    }
    if (i > 0) SPS_TRY_RETURN(arrive(q, q.out[(i - 1) % exits]));
    for (leaving &l : q.out) await_copies(q, SPS_FAR_DONE, l.copies);
    return SPS_OK;
}

/* The part of one thread; the calling thread drives the device. */
void take_part(void *data, int64_t, int64_t)
{
    far_product *q = (far_product *)data;

    if (spsi_team_self() > 0) {
        work(q->work, spsi_team_self() > q->ctx->threads / 4, NULL);
    } else if (!q->driven) {
        q->driven = true;
        q->st = drive(*q);
        end_work(q->work);
    }
}

/* Slots are one allocation: page-locked memory costs less in large pieces. */
sps_status open_slots(far_product &q)
{
    sps_context *ctx = q.ctx;
    load *l = q.work.all;
    void *p;

    SPS_CUDA(ctx, cudaStreamCreateWithFlags(&q.down, cudaStreamNonBlocking));
    SPS_CUDA(ctx, cudaEventCreateWithFlags(&q.computed,
                                           cudaEventDisableTiming));
    SPS_TRY_RETURN(ctx->backend->share(ctx, q.all_slots(), &p));
    char *slot = q.slots = (char *)p;
    if (q.test.omit) memset(p, 0, q.all_slots());   /* valid columns */

    for (leaving &o : q.out) {
        o.copies = l++;
        o.slot = slot;
        slot += q.room_out;
        SPS_CUDA(ctx, cudaEventCreateWithFlags(&o.there,
                                               cudaEventDisableTiming));
    }
    for (entering &e : q.in) {
        e.copies = l++;
        e.slot = slot;
        slot += q.room_in;
    }
    return SPS_OK;
}

/* Moves the rows of C that the host has multiplied to C. */
void take_from_host(far_product &q, int64_t i)
{
    const size_t at = (size_t)q.C->rowptr[q.parts.part[i].first];
    const size_t n = (size_t)q.by_host[i]->nnz;

    if (n == 0) return;
    memcpy(q.C->col + at, q.by_host[i]->col, n * sizeof *q.C->col);
    memcpy((char *)q.C->val + at * q.value, q.by_host[i]->val, n * q.value);
    sps_csr_destroy(q.ctx, &q.by_host[i]);
}

sps_status fill_part(far_product &q, int64_t i, size_t bytes)
{
    SPS_TRY_RETURN(open_part(q, i, true));
    q.work.front = q.parts.part[i].first;
    q.work.over = q.driven = false;
    spsi_team_run(q.ctx, q.ctx->threads, (int64_t)bytes, take_part, &q);
    return q.st;
}

sps_status fill(far_product &q)
{
    sps_context *ctx = q.ctx;
    const size_t all = (size_t)q.C->nnz * q.entry();

    SPS_TRY_RETURN(open_slots(q));
    q.work.back = q.C->nrow;
    q.work.C = q.C;
    q.work.entry = q.entry();
    if (ctx->threads > 1 && !q.test.alone && all >= shared_panels * q.most &&
        spsi_cpu_known_rows_open(ctx, q.A, q.B, q.C, &q.work.rows) != SPS_OK)
        q.work.rows = NULL;
    for (int64_t i = 0; i < q.parts.count; i++) {
        if (q.parts.part[i].first >= q.work.back) break;
        if (q.parts.part[i].named < 0) take_from_host(q, i);
        else SPS_TRY_RETURN(fill_part(q, i, all));
    }
    return SPS_OK;
}

/* ------------------------------------------------------------------- whole */

/* *p_p becomes q.room_in bytes of device memory. */
sps_status take_image(far_product &q)
{
    void *p;

    SPS_TRY_RETURN(spsi_cuda_alloc(q.ctx, q.room_in, &p));
    q.a = (char *)p;
    return SPS_OK;
}

void drop_image(far_product &q)
{
    if (q.a) spsi_cuda_release(q.ctx, q.a, q.room_in);
    q.a = NULL;
}

sps_status make(far_product &q)
{
    sps_context *ctx = q.ctx;
    const int64_t rows = q.A->nrow < most_rows ? q.A->nrow : most_rows;
    size_t unused, total;

    SPS_TRY_RETURN(open_parts(q));
    SPS_TRY_RETURN(ctx->backend->memory(ctx, &unused, &total));
    q.budget = unused / 2;
    SPS_TRY_RETURN(SPS_NEW(ctx, rows + 1, &q.offset));
    SPS_TRY_RETURN(SPS_NEW(ctx, rows, &q.count));
    SPS_TRY_RETURN(sps_csr_create(ctx, q.A->nrow, q.B->ncol, 0, q.A->dtype,
                                  &q.C));
    measure(q, false);
    SPS_TRY_RETURN(take_image(q));
    SPS_TRY_RETURN(open_result(q));
    drop_image(q);
    if (q.C->nnz > 0) {
        measure(q, true);
        SPS_TRY_RETURN(take_image(q));
        SPS_TRY_RETURN(fill(q));
    }
    q.C->props = SPS_SORTED;
    return SPS_OK;
}

void drop_event(cudaEvent_t event)
{
    if (event) cudaEventDestroy(event);
}

void release(far_product &q)
{
    sps_context *ctx = q.ctx;

    if (!ctx->dead) (void)spsi_cuda_wait(ctx);
    if (q.down) {
        cudaStreamSynchronize(q.down);
        cudaStreamDestroy(q.down);
    }
    drop_event(q.computed);
    for (leaving &l : q.out) {
        sps_csr_destroy(ctx, &l.C);
        drop_event(l.there);
    }
    ctx->backend->unshare(ctx, q.slots, q.all_slots());
    spsi_cpu_known_rows_close(&q.work.rows);
    drop_image(q);
    if (q.b_at) spsi_cuda_release(ctx, q.b_at, q.b_bytes);
    for (int64_t i = 0; q.by_host && i < q.parts.count; i++)
        sps_csr_destroy(ctx, &q.by_host[i]);
    spsi_free(ctx, q.by_host);
    spsi_row_parts_close(&q.parts);
    spsi_free(ctx, q.offset);
    spsi_free(ctx, q.count);
    cudaGetLastError();
}

} // namespace

sps_status spsi_cuda_csr_multiply_far_tested(sps_context *ctx,
                                             const sps_csr *A,
                                             const sps_csr *B,
                                             const sps_far_test *test,
                                             sps_csr **C_p)
{
    far_product q = {};
    sps_status st;

    q.ctx = ctx;
    q.test = *test;
    q.A = A;
    q.B = B;
    q.value = A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    q.most = test->panel ? test->panel : largest_panel;
    q.work.late = test->late;
    spsi_cuda_pool_begin(ctx);
    st = make(q);
    release(q);
    spsi_cuda_pool_end(ctx);
    if (st == SPS_OK) *C_p = q.C;
    else sps_csr_destroy(ctx, &q.C);
    return st;
}

sps_status spsi_cuda_csr_multiply_far(sps_context *ctx, const sps_csr *A,
                                      const sps_csr *B, sps_csr **C_p)
{
    const sps_far_test none = {};

    return spsi_cuda_csr_multiply_far_tested(ctx, A, B, &none, C_p);
}
