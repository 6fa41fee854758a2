/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_build.cu - packs a matrix into panels: the first ones that fit are
 * moved to the device, the others stay in page-locked memory, where they were
 * packed.
 *
 * The rows are read once, in order: from the arrays of a matrix in host memory
 * (sps_csr_local.far); from a host copy of the arrays of a matrix on the
 * device, and then no panel is kept on the device; or from a source, in
 * portions of about a panel, so that the matrix never exists as a whole.  The
 * host memory holds the streamed panels, and space for one more. */
#include "core/team.h"
#include "cuda/base/device.cuh"
#include "cuda/stream/stream.cuh"
#include "matrix/row_portion.h"

#include <string.h>

namespace {

constexpr size_t largest_panel = (size_t)16 << 20;
constexpr size_t small_panel = (size_t)1 << 20;
constexpr size_t host_chunk = (size_t)1 << 30, device_chunk = (size_t)256 << 20;
constexpr int fewest_panels = 32;   /* least number of panels of a matrix that
                                       is large enough for panels of full
                                       size */

size_t at_most(size_t a, size_t b) { return a < b ? a : b; }
size_t at_least(size_t a, size_t b) { return a > b ? a : b; }

/* Returns an upper bound of the bytes of all panels. */
size_t bound_of(const sps_csr_local *A)
{
    return 12 * (size_t)A->nnz + 8 * (size_t)A->nrow + SPS_PANEL_LEAST;
}

/* Returns the bytes of the smallest panel: copies of 64 KB reach a third of the
 * rate of 1 MB, and four panels of 1 MB, or of a 4096th of the free memory, are
 * little beside any blocks (smallest_ring in lib/operator/operator.c). */
size_t smallest(sps_context *ctx)
{
    size_t unused = 0, total = 0;

    if (ctx->backend->memory(ctx, &unused, &total) != SPS_OK) unused = 0;
    return at_least(small_panel, unused / 4096);
}

/* Returns the bytes of a panel: 16 MB, with which a copy reaches the rate of
 * the link and the host has time to queue its step; less for a small matrix, or
 * if the four slots of the ring would need more than half of the available
 * memory. */
size_t room_of(sps_context *ctx, const sps_csr_local *A, size_t budget)
{
    size_t room = at_most(largest_panel, bound_of(A) / fewest_panels);

    if (A->far)
        room = at_most(room, at_least(smallest(ctx),
                                      budget / (2 * SPS_RING_SLOTS)));
    return at_least(room & ~(size_t)4095, SPS_PANEL_LEAST);
}

/* ------------------------------------------------------------------ memory */

sps_status hold(sps_context *ctx, int64_t count, size_t size, int64_t *room,
                void **array)
{
    const int64_t more = 2 * *room + 64;
    void *p;

    if (count < *room) return SPS_OK;
    SPS_TRY_RETURN(spsi_new(ctx, (size_t)more * size, &p));
    if (*array) memcpy(p, *array, (size_t)*room * size);
    spsi_free(ctx, *array);
    *array = p;
    *room = more;
    return SPS_OK;
}

/* Returns the last chunk of device memory (of host memory if not `device`) if
 * it has `bytes` bytes left, else NULL. */
sps_stream_chunk *chunk_with(sps_stream_plan *plan, bool device, size_t bytes)
{
    for (int64_t i = plan->chunks - 1; i >= 0; i--) {
        sps_stream_chunk *c = &plan->chunk[i];

        if (c->device == device)
            return c->bytes - c->used >= bytes ? c : NULL;
    }
    return NULL;
}

sps_status add_chunk(sps_stream_plan *plan, bool device, size_t bytes)
{
    sps_context *ctx = plan->super.ctx;
    void *p;

    SPS_TRY_RETURN(hold(ctx, plan->chunks, sizeof *plan->chunk,
                        &plan->chunks_room, (void **)&plan->chunk));
    SPS_TRY_RETURN(device ? spsi_plan_take(&plan->super, bytes, &p)
                          : ctx->backend->share(ctx, bytes, &p));
    plan->chunk[plan->chunks++] = {(char *)p, bytes, 0, device};
    return SPS_OK;
}

/* Finds space for one more panel in host memory, whatever its size; allocates a
 * chunk of `bytes` bytes if there is none. */
sps_status host_room(sps_stream_plan *plan, size_t bytes, char **to)
{
    if (!chunk_with(plan, false, plan->room))
        SPS_TRY_RETURN(add_chunk(plan, false, bytes));
    const sps_stream_chunk *c = chunk_with(plan, false, plan->room);

    *to = c->at + c->used;
    return SPS_OK;
}

/* *to becomes space for a panel in device memory, or NULL if the device memory
 * is full; later panels then do not get any either. */
sps_status device_room(sps_stream_plan *plan, size_t bytes, size_t bound,
                       char **to)
{
    sps_stream_chunk *c = chunk_with(plan, true, bytes);
    const size_t size = at_most(at_most(device_chunk, bound), plan->left);

    *to = NULL;
    if (!c && size >= bytes) {
        const sps_status st = add_chunk(plan, true, size);

        if (st == SPS_EDEVMEM) plan->left = 0;
        else if (st != SPS_OK) return st;
        else plan->left -= size;
        c = chunk_with(plan, true, bytes);
    }
    if (!c) {
        plan->left = 0;
        return SPS_OK;
    }
    *to = c->at + c->used;
    c->used += bytes;
    return SPS_OK;
}

/* ------------------------------------------------------------------ panels */

struct builder {
    sps_stream_plan *plan;
    sps_packer packer;
    size_t bound;              /* upper bound of the bytes that are not
                                  packed yet */
    bool full;                 /* no further panel can stay on the device */
};

/* Moves the panel at `image` to device memory if it may stay there, otherwise
 * leaves it in place. */
sps_status keep(builder &b, char *image, const sps_panel &is)
{
    sps_stream_plan *plan = b.plan;
    sps_context *ctx = plan->super.ctx;
    char *to = NULL;

    SPS_TRY_RETURN(hold(ctx, plan->panels, sizeof *plan->panel,
                        &plan->panels_room, (void **)&plan->panel));
    if (!b.full)
        SPS_TRY_RETURN(device_room(plan, is.bytes, b.bound, &to));
    b.full = to == NULL;
    if (to) {
        SPS_CUDA(ctx, spsi_cuda_up(ctx, to, image, is.bytes));
        SPS_TRY_RETURN(spsi_cuda_wait(ctx));
        plan->resident++;
        plan->super.resident += is.bytes;
    } else {
        chunk_with(plan, false, is.bytes)->used += is.bytes;
        plan->super.streamed += is.bytes;
    }
    plan->panel[plan->panels++] = {is, to ? to : image};
    b.bound -= at_most(b.bound, 12 * (size_t)is.entries);
    return SPS_OK;
}

/* Returns the bytes of a chunk of host memory.  If all panels stay on the
 * device, one panel's space suffices, from which each is copied. */
size_t chunk_bytes(const builder &b)
{
    const size_t room = b.plan->room;

    return b.full ? at_most(host_chunk, b.bound + room) : room;
}

sps_status pack(builder &b, const sps_panel_rows &rows)
{
    while (b.packer.row < rows.first + rows.count) {
        sps_panel is;
        char *image;

        SPS_TRY_RETURN(host_room(b.plan, chunk_bytes(b), &image));
        SPS_TRY_RETURN(spsi_packer_next(b.plan->super.ctx, &b.packer, &rows,
                                        image, &is));
        SPS_TRY_RETURN(keep(b, image, is));
    }
    return SPS_OK;
}

/* ------------------------------------------------------------------ a csr */

/* A host copy of the arrays of a matrix on the device. */
struct copy {
    int64_t *rowptr;
    int32_t *col;
    void *val;
};

sps_status copy_offsets(sps_context *ctx, const sps_csr_local *A, copy &c)
{
    const int64_t n = A->nrow + 1;

    SPS_TRY_RETURN(SPS_NEW(ctx, n, &c.rowptr));
    if (A->rowptr)
        return download(ctx, n, A->rowptr, c.rowptr);
    int32_t *narrow = (int32_t *)c.rowptr;

    SPS_TRY_RETURN(download(ctx, n, A->rowptr32, narrow));
    for (int64_t i = n - 1; i >= 0; i--) c.rowptr[i] = narrow[i];
    return SPS_OK;
}

sps_status copy_all(sps_context *ctx, const sps_csr_local *A, copy &c)
{
    const size_t value = spsi_dtype_size(A->dtype), n = (size_t)A->nnz;

    SPS_TRY_RETURN(copy_offsets(ctx, A, c));
    SPS_TRY_RETURN(SPS_NEW(ctx, A->nnz, &c.col));
    SPS_TRY_RETURN(spsi_new(ctx, n * value, &c.val));
    SPS_TRY_RETURN(download(ctx, A->nnz, A->col, c.col));
    return ctx->backend->download(ctx, c.val, A->val, n * value);
}

sps_status pack_csr(builder &b, const sps_csr_local *A)
{
    sps_context *ctx = b.plan->super.ctx;
    copy c = {};
    sps_status st = SPS_OK;

    if (A->far)
        return pack(b, {0, A->nrow, A->rowptr, A->col, A->val, A->dtype});
    st = copy_all(ctx, A, c);
    if (st == SPS_OK)
        st = pack(b, {0, A->nrow, c.rowptr, c.col, c.val, A->dtype});
    spsi_free(ctx, c.rowptr);
    spsi_free(ctx, c.col);
    spsi_free(ctx, c.val);
    return st;
}

/* ---------------------------------------------------------------- a source */

/* The rows of a portion, without gaps. */
struct portion {
    sps_row_portion made;
    int64_t *rowptr;
    int32_t *col;
    void *val;
};

sps_status pack_portions(builder &b, const sps_csr_local *A, portion &q)
{
    sps_context *ctx = b.plan->super.ctx;
    const int64_t most = q.made.most;

    for (int64_t first = 0; first < A->nrow; first += most) {
        const int64_t left = A->nrow - first;

        spsi_row_portion_make(ctx, &q.made, first, left < most ? left : most);
        spsi_row_portion_put(ctx, &q.made, 0, q.rowptr, q.col, q.val);
        SPS_TRY_RETURN(pack(b, {first, q.made.count, q.rowptr, q.col, q.val,
                                A->dtype}));
    }
    return SPS_OK;
}

sps_status open_portion(sps_context *ctx, portion &q, const sps_problem *p,
                        int64_t most)
{
    const size_t value = spsi_dtype_size(p->local->dtype);

    SPS_TRY_RETURN(spsi_row_portion_open(ctx, &q.made, p->source, most,
                                         value));
    most = q.made.most;
    SPS_TRY_RETURN(SPS_NEW(ctx, most + 1, &q.rowptr));
    SPS_TRY_RETURN(SPS_NEW(ctx, most * q.made.longest, &q.col));
    return spsi_new(ctx, (size_t)(most * q.made.longest) * value, &q.val);
}

/* Packs the rows of a source by portions of several panels; a portion is no
 * smaller, since its end also ends a panel. */
sps_status pack_source(builder &b, const sps_problem *p)
{
    sps_context *ctx = b.plan->super.ctx;
    const int64_t longest = p->source->longest > 0 ? p->source->longest : 1;
    portion q = {};
    sps_status st = open_portion(ctx, q, p, 8 * (int64_t)(b.plan->room / 12) /
                                                longest);

    if (st == SPS_OK) st = pack_portions(b, p->local, q);
    spsi_row_portion_close(ctx, &q.made);
    spsi_free(ctx, q.rowptr);
    spsi_free(ctx, q.col);
    spsi_free(ctx, q.val);
    return st;
}

/* --------------------------------------------------------------- long rows */

sps_status send_long_rows(sps_stream_plan *plan, const sps_packer *k)
{
    sps_context *ctx = plan->super.ctx;
    const size_t each = sizeof(int64_t), bytes = (size_t)k->longs * each;
    const size_t number = spsi_dtype_size(plan->super.block);

    plan->longs.rows = k->longs;
    plan->longs.parts = k->parts;
    if (k->longs == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_plan_take(&plan->super, bytes + each,
                                  (void **)&plan->longs.row));
    SPS_TRY_RETURN(spsi_plan_take(&plan->super, bytes + each,
                                  (void **)&plan->longs.first));
    SPS_TRY_RETURN(spsi_plan_take(&plan->super, (size_t)k->parts *
                                      (size_t)plan->super.k * number,
                                  &plan->longs.part));
    SPS_TRY_RETURN(ctx->backend->upload(ctx, plan->longs.row, k->long_row,
                                        bytes));
    SPS_TRY_RETURN(ctx->backend->upload(ctx, plan->longs.first, k->long_part,
                                        bytes));
    return ctx->backend->upload(ctx, plan->longs.first + k->longs, &k->parts,
                                sizeof k->parts);
}

/* ------------------------------------------------------------------ order */

/* Sets plan->after.  With long rows a pass computes one product: their sums are
 * complete at its end only. */
sps_status order(sps_stream_plan *plan)
{
    sps_context *ctx = plan->super.ctx;
    const sps_csr_local *A = plan->super.A;
    const int64_t n = plan->panels;
    sps_wave_panel *panel;

    if (plan->longs.rows > 0 || A->nrow != A->ncol || n == 0) return SPS_OK;
    SPS_TRY_RETURN(SPS_NEW(ctx, 2 * n, &plan->after));
    SPS_TRY_RETURN(SPS_NEW(ctx, n, &panel));
    for (int64_t i = 0; i < n; i++) {
        const sps_panel *p = &plan->panel[i].is;

        panel[i] = {p->row, p->first_column, p->last_column};
    }
    spsi_wave_order(panel, n, false, plan->after);
    spsi_wave_order(panel, n, true, plan->after + n);
    spsi_free(ctx, panel);
    return SPS_OK;
}

sps_status build(builder &b, const sps_csr_local *A, const sps_problem *p)
{
    SPS_TRY_RETURN(p && p->source ? pack_source(b, p) : pack_csr(b, A));
    SPS_TRY_RETURN(send_long_rows(b.plan, &b.packer));
    SPS_TRY_RETURN(order(b.plan));
    SPS_TRY_RETURN(spsi_stream_list_residents(b.plan));
    SPS_TRY_RETURN(spsi_stream_ring_open(b.plan));
    return spsi_stream_share_open(b.plan);
}

/* Builds all panels; plan->room and plan->left must be set. */
sps_status build_all(sps_stream_plan *plan, const sps_problem *p)
{
    const sps_csr_local *A = plan->super.A;
    builder b = {plan, {}, bound_of(A), plan->left == 0};

    SPS_TRY_RETURN(spsi_cuda_enter(plan->super.ctx));
    spsi_packer_open(&b.packer, plan->room);
    const sps_status st = build(b, A, p);

    spsi_packer_close(plan->super.ctx, &b.packer);
    return st;
}

void release_chunks(sps_stream_plan *plan)
{
    sps_context *ctx = plan->super.ctx;

    for (int64_t i = 0; i < plan->chunks; i++) {
        sps_stream_chunk *c = &plan->chunk[i];

        if (c->device) spsi_plan_give(&plan->super, (void **)&c->at);
        else ctx->backend->unshare(ctx, c->at, c->bytes);
    }
    plan->chunks = plan->panels = plan->resident = 0;
    plan->super.resident = plan->super.streamed = 0;
}

/* Frees the panels, so that others can be built; the stream of the ring is
 * kept. */
void release_panels(sps_stream_plan *plan)
{
    spsi_stream_share_close(plan);
    release_chunks(plan);
    spsi_plan_give(&plan->super, (void **)&plan->slots.at);
    spsi_plan_give(&plan->super, (void **)&plan->longs.row);
    spsi_plan_give(&plan->super, (void **)&plan->longs.first);
    spsi_plan_give(&plan->super, &plan->longs.part);
    spsi_plan_give(&plan->super, &plan->views);
    spsi_free(plan->super.ctx, plan->after);
    plan->after = NULL;
    plan->longs.rows = 0;
}

} // namespace

/* Four slots keep the link busy.  More serve passes of several products; they
 * take a quarter of the memory of resident panels, and replace them in products
 * one by one, since the panels in the slots at the end of a pass are used in
 * the next one without a copy. */
sps_status spsi_stream_build(sps_stream_plan *plan, const sps_problem *p)
{
    size_t ring, more;

    plan->room = room_of(plan->super.ctx, p->local, p->room);
    ring = SPS_RING_SLOTS * plan->room;
    plan->left = p->local->far && p->room > ring ? p->room - ring : 0;
    more = at_most(plan->left / 4 / plan->room, SPS_RING_MOST -
                                                SPS_RING_SLOTS);
    plan->left -= more * plan->room;
    plan->slots.all = ring + more * plan->room;
    return build_all(plan, p);
}

/* Packs the panels again, since with the values the type in which a panel
 * stores them may have changed, and so its size.  Resident panels get as much
 * memory as before. */
sps_status spsi_stream_rebuild(sps_stream_plan *plan)
{
    const sps_csr_local *A = plan->super.A;

    if (!A->rowptr && !A->rowptr32)
        return spsi_fail(plan->super.ctx, SPS_EUNFIT, "spmm.stream: rows that "
                         "come from a source cannot get new values; make a "
                         "new operator");
    SPS_TRY_RETURN(spsi_cuda_enter(plan->super.ctx));
    SPS_TRY_RETURN(spsi_cuda_wait(plan->super.ctx));
    /* Copies of a pass that failed may still read the panels. */
    SPS_CUDA(plan->super.ctx, cudaStreamSynchronize(
                                   (cudaStream_t)plan->copies));
    for (int64_t i = 0; i < plan->chunks; i++)
        if (plan->chunk[i].device) plan->left += plan->chunk[i].bytes;
    release_panels(plan);
    return build_all(plan, NULL);
}

void spsi_stream_clear(sps_stream_plan *plan)
{
    sps_context *ctx = plan->super.ctx;

    if (!ctx->dead && spsi_cuda_enter(ctx) == SPS_OK)
        (void)spsi_cuda_wait(ctx);
    spsi_stream_ring_close(plan);
    release_panels(plan);
    spsi_free(ctx, plan->panel);
    spsi_free(ctx, plan->chunk);
}
