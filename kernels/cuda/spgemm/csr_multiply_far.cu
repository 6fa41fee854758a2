/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_multiply_far.cu - C = A B for matrices in host memory, computed on the
 * device, which need not hold them, and on the host (ApSpGEMM, ACM TACO 2024):
 * B is copied to the device as a whole, A passes in panels of rows, and the
 * rows of C leave while those of the next panel are computed.
 *
 *   count   panels of offsets and columns of A: entries of each row of C, so
 *           that C can be allocated, and cut by its bytes;
 *   fill    panels of A, so many rows that two panels of C fit beside them.
 *
 * In the second pass the calling thread drives the device, and the other
 * threads of the host do what csr_far_work.cuh says.  Let m be the stream of
 * the context, d a stream for copies to the host, i a panel:
 *
 *     threads   copy A_i+1 to a slot; C_i-1, C_i-2 from their slots to C;
 *               compute the last rows of C
 *     m         wait for A_i in its slot; copy it; compute C_i
 *     d         wait for C_i; copy it to a slot from which C_i-3 has left.
 *
 * Slots are page-locked; A and C are not.  A row of C is computed from the same
 * entries in the same order by either side and in core: all bits are the
 * same. */
#include "core/deadline.h"
#include "cuda/base/memory.cuh"
#include "cuda/base/upload.h"
#include "cuda/spgemm/csr_device.cuh"
#include "cuda/spgemm/csr_far_work.cuh"

namespace {

constexpr size_t largest_panel = (size_t)64 << 20;      /* bytes of A or C */
constexpr size_t largest_count = 4 * largest_panel;     /* bytes of A in the
                                                           first pass */
constexpr size_t least_shared = 4 * largest_panel;      /* bytes of C of which
                                                           the host computes
                                                           rows */
constexpr int64_t most_rows = (int64_t)1 << 20;
constexpr size_t work_of_row = 64;   /* upper bound of the work memory for a row
                                        of C */
constexpr int entries = 2, exits = 3;    /* slots for panels of A, and of C */

static_assert(entries + exits == loads);

struct panel {
    int64_t first, rows;
};

/* A panel of A on its way to the device. */
struct entering {
    char *slot;                /* offsets, columns, values: image_of */
    load *copies;
    cudaEvent_t sent;
};

/* A panel of C on its way to the host. */
struct leaving {
    panel is;
    sps_csr *C;                /* in device memory; NULL: none */
    char *slot;                /* columns, then values */
    load *copies;
    cudaEvent_t there;
};

struct far_product {
    sps_context *ctx;
    const sps_csr *A, *B;      /* in host memory, with values of one type */
    sps_csr *b, *C;            /* B in device memory, C in host memory */
    size_t value;              /* bytes of a value */
    size_t budget;             /* device memory for a panel */
    size_t room_in, room_out;  /* bytes of a slot */
    char *slots;               /* all of them; NULL before there are any */
    char *a;                   /* room_in bytes of device memory */
    int64_t *offset;           /* offsets of the rows of a panel of A */
    int32_t *count;            /* entries of the rows of a panel of C */
    cudaStream_t down;
    cudaEvent_t computed;
    entering in[entries];
    leaving out[exits];
    far_work work;
    bool driven;
    sps_status st;

    size_t entry() const { return sizeof(int32_t) + value; }
    size_t all_slots() const { return entries * room_in + exits * room_out; }
    size_t bytes(const sps_csr *M, int64_t row) const
    {
        return (size_t)(M->rowptr[row + 1] - M->rowptr[row]) * entry();
    }
};

/* ------------------------------------------------------------------ panels */

/* Returns the panel of rows before `end` that begins with row `first`: at least
 * one row, and as many as the budget allows; `fill`: C->rowptr is known, and
 * two panels of C have to fit as well. */
panel panel_at(const far_product &q, int64_t first, int64_t end, bool fill)
{
    const size_t most = fill ? largest_panel : largest_count;
    size_t all = 0, from = 0, result = 0;
    int64_t i = first;

    if (end - first > most_rows) end = first + most_rows;
    for (; i < end; i++) {
        const size_t c = fill ? q.bytes(q.C, i) : 0, a = q.bytes(q.A, i);

        from += a;
        result += c;
        all += a + 2 * c + work_of_row;
        if (i > first && (all > q.budget || from > most || result > most))
            break;
    }
    return {first, i - first};
}

/* Where the arrays of a panel of A begin in its slot, and its bytes. */
struct image {
    int64_t first, entries;    /* number of its first entry in A */
    size_t col, val, all;
};

image image_of(const far_product &q, const panel &p)
{
    const int64_t *ptr = q.A->rowptr + p.first;
    const int64_t n = ptr[p.rows] - ptr[0];
    const size_t col = (size_t)(p.rows + 1) * sizeof *ptr;
    const size_t val = (col + (size_t)n * sizeof(int32_t) + 7) & ~(size_t)7;

    return {ptr[0], n, col, val, val + (size_t)n * q.value};
}

void set_offsets(const far_product &q, const panel &p, int64_t *offset)
{
    for (int64_t i = 0; i <= p.rows; i++)
        offset[i] = q.A->rowptr[p.first + i] - q.A->rowptr[p.first];
}

/* The panel of A whose image is q.a. */
sps_csr rows_of(const far_product &q, const panel &p)
{
    const image m = image_of(q, p);
    sps_csr rows = *q.A;

    rows.nrow = p.rows;
    rows.nnz = m.entries;
    rows.rowptr = (int64_t *)q.a;
    rows.col = (int32_t *)(q.a + m.col);
    rows.val = q.a + m.val;
    rows.place = SPS_CUDA;
    return rows;
}

/* Where columns end and values begin in a slot of C with n entries. */
size_t columns(size_t n)
{
    return (n * sizeof(int32_t) + 7) & ~(size_t)7;
}

/* Sets the sizes of slots, which hold any panel. */
void measure(far_product &q, bool fill)
{
    q.room_in = q.room_out = 0;
    for (panel p = {}; p.first < q.A->nrow; p.first += p.rows) {
        p = panel_at(q, p.first, q.A->nrow, fill);
        const size_t in = image_of(q, p).all;
        const int64_t *c = q.C->rowptr + p.first;
        const size_t n = fill ? (size_t)(c[p.rows] - c[0]) : 0;
        const size_t out = columns(n) + n * q.value;

        q.room_in = in > q.room_in ? in : q.room_in;
        q.room_out = out > q.room_out ? out : q.room_out;
    }
    q.room_in = (q.room_in + 4095) & ~(size_t)4095;
    q.room_out = (q.room_out + 4095) & ~(size_t)4095;
}

/* ------------------------------------------------------------------- count */

sps_status count_panel(const far_product &q, const panel &p)
{
    const image m = image_of(q, p);
    const sps_csr rows = rows_of(q, p);
    int64_t *to = q.C->rowptr + p.first;

    set_offsets(q, p, q.offset);
    SPS_TRY_RETURN(spsi_cuda_upload(q.ctx, q.a, q.offset, m.col));
    SPS_TRY_RETURN(spsi_cuda_upload(q.ctx, q.a + m.col, q.A->col + m.first,
                                    (size_t)m.entries * sizeof(int32_t)));
    SPS_TRY_RETURN(spsi_cuda_csr_count(q.ctx, &rows, q.b, q.count));
    for (int64_t i = 0; i < p.rows; i++) to[i + 1] = to[i] + q.count[i];
    return spsi_check_deadline(q.ctx, "the product of two matrices");
}

/* Computes the offsets of C, and allocates its entries. */
sps_status open_result(far_product &q)
{
    sps_csr *C = q.C;

    for (panel p = {}; p.first < C->nrow; p.first += p.rows) {
        p = panel_at(q, p.first, C->nrow, false);
        SPS_TRY_RETURN(count_panel(q, p));
    }
    C->nnz = C->rowptr[C->nrow];
    return spsi_cpu_known_rows_room(q.ctx, C);
}

/* -------------------------------------------------------------------- fill */

/* Claims the next panel for the device; it has no rows if all are claimed. */
panel claim_panel(far_product &q)
{
    std::lock_guard<std::mutex> held(q.work.lock);
    const int64_t first = q.work.front;
    const panel p = first < q.work.back
        ? panel_at(q, first, q.work.back, true) : panel{first, 0};

    q.work.front += p.rows;
    return p;
}

/* Begins to copy a panel of A to its slot. */
sps_status enter(far_product &q, entering &e, const panel &p)
{
    const image m = image_of(q, p);
    const size_t n = (size_t)m.entries;
    load &l = *e.copies;

    if (p.rows == 0) return SPS_OK;
    SPS_CUDA(q.ctx, cudaEventSynchronize(e.sent));
    set_offsets(q, p, (int64_t *)e.slot);
    l.to[0] = e.slot + m.col;
    l.from[0] = (const char *)(q.A->col + m.first);
    l.bytes[0] = n * sizeof(int32_t);
    l.to[1] = e.slot + m.val;
    l.from[1] = (const char *)q.A->val + (size_t)m.first * q.value;
    l.bytes[1] = n * q.value;
    begin_copies(q.work, l);
    return SPS_OK;
}

/* Computes the panel of C from that of A in the slot of e. */
sps_status compute(const far_product &q, const panel &p, const entering &e,
                   leaving &l)
{
    const sps_csr rows = rows_of(q, p);

    SPS_CUDA(q.ctx, spsi_cuda_up(q.ctx, q.a, e.slot, image_of(q, p).all));
    SPS_CUDA(q.ctx, cudaEventRecord(e.sent, spsi_cuda_state(q.ctx)->stream));
    l.is = p;
    return spsi_cuda_csr_multiply(q.ctx, &rows, q.b, &l.C);
}

/* Queues the copy of l.C to its slot. */
sps_status depart(const far_product &q, const leaving &l)
{
    const size_t n = (size_t)l.C->nnz;

    SPS_CUDA(q.ctx, cudaEventRecord(q.computed,
                                    spsi_cuda_state(q.ctx)->stream));
    SPS_CUDA(q.ctx, cudaStreamWaitEvent(q.down, q.computed, 0));
    SPS_CUDA(q.ctx, cudaMemcpyAsync(l.slot, l.C->col, n * sizeof(int32_t),
                                    cudaMemcpyDeviceToHost, q.down));
    SPS_CUDA(q.ctx, cudaMemcpyAsync(l.slot + columns(n), l.C->val, n * q.value,
                                    cudaMemcpyDeviceToHost, q.down));
    SPS_CUDA(q.ctx, cudaEventRecord(l.there, q.down));
    q.ctx->memory.to_host += (int64_t)(n * q.entry());
    return SPS_OK;
}

/* Waits until l.C is in its slot, and begins to copy it to C. */
sps_status arrive(far_product &q, leaving &l)
{
    const size_t at = (size_t)q.C->rowptr[l.is.first], n = (size_t)l.C->nnz;
    load &c = *l.copies;

    SPS_CUDA(q.ctx, cudaEventSynchronize(l.there));
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

sps_status drive(far_product &q)
{
    panel next = claim_panel(q);
    int64_t i = 0;

    SPS_TRY_RETURN(enter(q, q.in[0], next));
    for (; next.rows > 0; i++) {
        const panel now = next;
        const entering &e = q.in[i % entries];
        leaving &l = q.out[i % exits];

        next = claim_panel(q);
        SPS_TRY_RETURN(enter(q, q.in[(i + 1) % entries], next));
        work(q.work, false, l.copies);
        work(q.work, false, e.copies);
        SPS_TRY_RETURN(compute(q, now, e, l));
        SPS_TRY_RETURN(depart(q, l));
        if (i > 0) SPS_TRY_RETURN(arrive(q, q.out[(i - 1) % exits]));
        SPS_TRY_RETURN(spsi_check_deadline(q.ctx,
                                           "the product of two matrices"));
    }
    if (i > 0) SPS_TRY_RETURN(arrive(q, q.out[(i - 1) % exits]));
    for (leaving &l : q.out) work(q.work, false, l.copies);
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
        SPS_CUDA(ctx, cudaEventCreateWithFlags(&e.sent,
                                               cudaEventDisableTiming));
    }
    return SPS_OK;
}

sps_status fill(far_product &q)
{
    sps_context *ctx = q.ctx;
    const size_t all = (size_t)q.C->nnz * q.entry();

    SPS_TRY_RETURN(open_slots(q));
    q.work.back = q.C->nrow;
    q.work.C = q.C;
    q.work.entry = q.entry();
    if (ctx->threads > 1 && all >= least_shared &&
        spsi_cpu_known_rows_open(ctx, q.A, q.B, q.C, &q.work.rows) != SPS_OK)
        q.work.rows = NULL;
    spsi_team_run(ctx, ctx->threads, (int64_t)all, take_part, &q);
    return q.st;
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

    SPS_TRY_RETURN(spsi_csr_upload(ctx, q.B, &q.b));
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
    for (entering &e : q.in) drop_event(e.sent);
    ctx->backend->unshare(ctx, q.slots, q.all_slots());
    spsi_cpu_known_rows_close(&q.work.rows);
    drop_image(q);
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
