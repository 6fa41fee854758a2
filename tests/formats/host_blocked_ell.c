/* SPDX-License-Identifier: BSD-3-Clause */
/* host_blocked_ell.c - CSR to Blocked-ELL and back, on the host. */
#include "formats/block_merge.h"
#include "tests/formats/host_formats.h"

#include <string.h>

static void set_columns(const sps_csr *A, sps_blocked_ell *e)
{
    const sps_block_rows rows = { A->rowptr, A->col, A->nrow, e->b };

    for (int64_t block = 0; block < e->mb; block++) {
        int32_t *column = e->column + block * e->w;
        int64_t last = block < e->nb ? block : e->nb - 1;
        sps_block_merge m;

        spsi_block_merge_open(&m, &rows, block);
        for (int64_t s = 0; s < e->w; s++) {
            const int32_t next = spsi_block_merge_next(&m);

            if (next >= 0) last = next;
            column[s] = (int32_t)last;
        }
    }
}

/* Slot of a block column that is stored; the first of equal ones. */
static int64_t find_slot(const int32_t *column, int64_t w, int32_t wanted)
{
    int64_t low = 0, high = w;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (column[middle] < wanted) low = middle + 1;
        else high = middle;
    }
    return low;
}

void spsi_blocked_ell_refresh(const sps_csr *A, sps_blocked_ell *e)
{
    const size_t size = e->dtype == SPS_F64 ? sizeof(double) : sizeof(float);

    for (int64_t i = 0; i < A->nrow; i++) {
        const int32_t *column = e->column + i / e->b * e->w;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const int64_t s = find_slot(column, e->w, A->col[p] / e->b);
            const int64_t at = (i * e->w + s) * e->b + A->col[p] % e->b;

            memcpy((char *)e->val + (size_t)at * size,
                   (const char *)A->val + (size_t)p * size, size);
        }
    }
}

int64_t spsi_blocked_ell_width(const sps_csr *A, int b)
{
    const sps_block_rows rows = { A->rowptr, A->col, A->nrow, b };
    int64_t w = 0;

    for (int64_t block = 0; block < (A->nrow + b - 1) / b; block++) {
        int64_t count = 0;
        sps_block_merge m;

        spsi_block_merge_open(&m, &rows, block);
        while (spsi_block_merge_next(&m) >= 0) count++;
        if (count > w) w = count;
    }
    return w;
}

sps_status spsi_blocked_ell_from_csr(sps_context *ctx, const sps_csr *A, int b,
                                     sps_blocked_ell *e)
{
    sps_status st;
    int64_t slots;

    spsi_blocked_ell_shape(A->nrow, A->ncol, A->dtype, b, e);
    e->w = spsi_blocked_ell_width(A, b);
    slots = spsi_blocked_ell_slots(e);
    SPS_TRY(SPS_NEW(ctx, e->mb * e->w, &e->column));
    SPS_TRY(spsi_new(ctx, (size_t)slots * (A->dtype == SPS_F64 ? 8 : 4),
                     &e->val));
    set_columns(A, e);
    spsi_blocked_ell_refresh(A, e);
fail:
    return st;
}

void spsi_blocked_ell_clear(sps_context *ctx, sps_blocked_ell *e)
{
    spsi_free(ctx, e->column);
    spsi_free(ctx, e->val);
    e->column = NULL;
    e->val = NULL;
}

/* -------------------------------------------------------- conversion to CSR */

static double slot_value(const sps_blocked_ell *e, int64_t at)
{
    return e->dtype == SPS_F64 ? ((const double *)e->val)[at]
                               : (double)((const float *)e->val)[at];
}

/* The nonzeros of row i: counts them, and stores them if A has its arrays. */
static int64_t read_row(const sps_blocked_ell *e, int64_t i, sps_csr *A,
                        int64_t to)
{
    int64_t count = 0;

    for (int64_t s = 0; s < e->w; s++)
        for (int c = 0; c < e->b; c++) {
            const int64_t at = (i * e->w + s) * e->b + c;
            const double v = slot_value(e, at);

            if (v == 0.0) continue;
            if (A) {
                A->col[to + count] =
                    e->column[i / e->b * e->w + s] * e->b + c;
                if (e->dtype == SPS_F64) ((double *)A->val)[to + count] = v;
                else ((float *)A->val)[to + count] = (float)v;
            }
            count++;
        }
    return count;
}

sps_status spsi_blocked_ell_to_csr(sps_context *ctx, const sps_blocked_ell *e,
                                   sps_csr **A_p)
{
    sps_status st;
    sps_csr *A = NULL;
    int64_t nnz = 0;

    for (int64_t i = 0; i < e->nrow; i++) nnz += read_row(e, i, NULL, 0);
    SPS_TRY(sps_csr_create(ctx, e->nrow, e->ncol, nnz, e->dtype, &A));
    for (int64_t i = 0; i < e->nrow; i++)
        A->rowptr[i + 1] = A->rowptr[i] + read_row(e, i, A, A->rowptr[i]);
    *A_p = A;
fail:
    return st;
}
