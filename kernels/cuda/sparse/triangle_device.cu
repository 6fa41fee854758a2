/* SPDX-License-Identifier: BSD-3-Clause */
/* triangle_device.cu - keeps a triangular matrix in device memory with its rows
 * in level order, and has the functions of the backend for it.  The kernels,
 * which solve T X = B, are in triangle_device.cuh. */
#include "cuda/sparse/triangle_device.cuh"

#include "plan/kernel.h"
#include "matrix/triangle.h"
#include "cuda/base/state.h"

namespace {

enum { PTR, FROM, TO, COL, VAL, INVERSE, TICKET, PARTS };

/* The arrays of a triangle in device memory; t->local of the triangle points to
 * this. */
struct device_triangle {
    triangle_view view;
    void *part[PARTS];
    size_t bytes[PARTS];
    double *staged;              /* buffer of values for transfers, nnz + n
                                    doubles in host memory */
};

sps_status send(sps_context *ctx, device_triangle *d, int which,
                const void *from, size_t bytes)
{
    if (!d->part[which]) {
        SPS_TRY_RETURN(spsi_cuda_alloc(ctx, bytes + 8, &d->part[which]));
        d->bytes[which] = bytes + 8;
    }
    if (bytes == 0) return SPS_OK;
    SPS_CUDA(ctx, spsi_cuda_up(ctx, d->part[which], from, bytes));
    return spsi_cuda_wait(ctx);
}

/* to = the values of S, of type VALUE, in level order. */
template <class VALUE>
void order_values(const sps_triangle *t, VALUE *to)
{
    const sps_csr *S = t->part.S;
    const VALUE *val = (const VALUE *)S->val;

    for (int64_t q = 0; q < t->n; q++) {
        int64_t i = t->levels.row[q];

        for (int64_t p = S->rowptr[i]; p < S->rowptr[i + 1]; p++)
            *to++ = val[p];
    }
}

/* Transfers values and inverse diagonal in level order. */
sps_status send_values(sps_triangle *t, device_triangle *d)
{
    const sps_csr *S = t->part.S;
    double *w = d->staged + S->nnz;

    if (S->dtype == SPS_F32) order_values(t, (float *)d->staged);
    else order_values(t, d->staged);
    for (int64_t q = 0; t->part.inverse && q < t->n; q++)
        w[q] = t->part.inverse[t->levels.row[q]];
    SPS_TRY_RETURN(send(t->ctx, d, VAL, d->staged,
                        (size_t)S->nnz * spsi_dtype_size(S->dtype)));
    if (!t->part.inverse) return SPS_OK;
    return send(t->ctx, d, INVERSE, w, (size_t)t->n * sizeof *w);
}

/* Transfers to array `which` of the device the numbers index[i] (i itself if
 * index is NULL) of the equations i in level order. */
sps_status send_index(sps_triangle *t, device_triangle *d, int which,
                      const int32_t *index)
{
    int32_t *by_place = (int32_t *)d->staged;

    for (int64_t q = 0; q < t->n; q++) {
        int32_t i = t->levels.row[q];

        by_place[q] = index ? index[i] : i;
    }
    return send(t->ctx, d, which, by_place, (size_t)t->n * sizeof *by_place);
}

/* Transfers offsets and columns in level order. */
sps_status send_pattern(sps_triangle *t, device_triangle *d)
{
    const sps_csr *S = t->part.S;
    sps_context *ctx = t->ctx;
    int64_t *ptr = NULL, at = 0;
    int32_t *col = NULL;
    sps_status st = SPS_NEW(ctx, t->n + 1, &ptr);

    if (st == SPS_OK) st = SPS_NEW(ctx, S->nnz, &col);
    for (int64_t q = 0; st == SPS_OK && q < t->n; q++) {
        int64_t i = t->levels.row[q];

        for (int64_t p = S->rowptr[i]; p < S->rowptr[i + 1]; p++)
            col[at++] = S->col[p];
        ptr[q + 1] = at;
    }
    if (st == SPS_OK)
        st = send(ctx, d, PTR, ptr, (size_t)(t->n + 1) * sizeof *ptr);
    if (st == SPS_OK)
        st = send(ctx, d, COL, col, (size_t)S->nnz * sizeof *col);
    spsi_free(ctx, ptr);
    spsi_free(ctx, col);
    return st;
}

} // namespace

sps_status spsi_cuda_triangle_open(sps_triangle *t)
{
    sps_context *ctx = t->ctx;
    device_triangle *d = NULL;
    unsigned zero = 0;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(SPS_NEW(ctx, 1, &d));
    t->local = d;
    SPS_TRY_RETURN(SPS_NEW(ctx, t->part.S->nnz + t->n, &d->staged));
    SPS_TRY_RETURN(send_pattern(t, d));
    SPS_TRY_RETURN(send_index(t, d, FROM, t->part.from));
    SPS_TRY_RETURN(send_index(t, d, TO, t->part.to));
    SPS_TRY_RETURN(send(ctx, d, TICKET, &zero, sizeof zero));
    SPS_TRY_RETURN(send_values(t, d));
    d->view.n = t->n;
    d->view.ptr = (const int64_t *)d->part[PTR];
    d->view.from = (const int32_t *)d->part[FROM];
    d->view.to = (const int32_t *)d->part[TO];
    d->view.col = (const int32_t *)d->part[COL];
    d->view.val = d->part[VAL];
    d->view.single = t->part.S->dtype == SPS_F32;
    d->view.inverse = (const double *)d->part[INVERSE];
    d->view.ticket = (unsigned *)d->part[TICKET];
    return SPS_OK;
}

sps_status spsi_cuda_triangle_refresh(sps_triangle *t)
{
    SPS_TRY_RETURN(spsi_cuda_enter(t->ctx));
    return send_values(t, (device_triangle *)t->local);
}

sps_status spsi_cuda_triangle_solve(const sps_triangle *t, const sps_block *B,
                                    sps_block *X)
{
    const device_triangle *d = (const device_triangle *)t->local;

    SPS_TRY_RETURN(spsi_cuda_enter(t->ctx));
    triangle_run(d->view, (const double *)B->data, B->ld, (double *)X->data,
                 X->ld, X->k, spsi_cuda_state(t->ctx)->stream);
    SPS_LAUNCHED(t->ctx);
    return SPS_OK;
}

void spsi_cuda_triangle_close(sps_triangle *t)
{
    device_triangle *d = (device_triangle *)t->local;

    if (!d) return;
    for (int i = 0; i < PARTS; i++)
        if (d->part[i]) spsi_cuda_release(t->ctx, d->part[i], d->bytes[i]);
    spsi_free(t->ctx, d->staged);
    spsi_free(t->ctx, d);
    t->local = NULL;
}
