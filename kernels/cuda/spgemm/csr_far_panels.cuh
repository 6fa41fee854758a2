/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_far_panels.cuh - a product by panels (csr_multiply_far.cu): its state,
 * how panels of A and C are cut and laid out, and copies and delays for
 * tests. */
#ifndef SPS_CUDA_CSR_FAR_PANELS_CUH
#define SPS_CUDA_CSR_FAR_PANELS_CUH

#include "cuda/base/memory.cuh"
#include "cuda/base/upload.h"
#include "cuda/spgemm/csr_far_work.cuh"
#include "formats/row_parts.h"

#include <cstdio>

namespace {

constexpr size_t largest_panel = (size_t)64 << 20;      /* bytes of A or C */
constexpr size_t largest_count = 4 * largest_panel;     /* bytes of A in the
                                                           first pass */
constexpr int64_t most_rows = (int64_t)1 << 20;
constexpr size_t work_of_row = 64;   /* upper bound of the work memory for a row
                                        of C */

struct panel {
    int64_t first, rows;
};

/* A panel of A on its way to the device. */
struct entering {
    char *slot;                /* offsets, columns, values: layout_of */
    load *copies;
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
    sps_far_test test;
    const sps_csr *A, *B;      /* in host memory, with values of one type */
    sps_csr *C;                /* in host memory */
    size_t value;              /* bytes of a value */
    size_t budget;             /* device memory for a panel */
    size_t most;               /* largest_panel, except in tests */
    size_t room_in, room_out;  /* bytes of a slot */
    char *slots;               /* all of them; NULL before there are any */
    char *a;                   /* room_in bytes of device memory */
    int64_t *offset;           /* offsets of the rows of a panel of A */
    int32_t *count;            /* entries of the rows of a panel of C */
    sps_row_parts parts;
    sps_csr **by_host;         /* the rows of C of each part that the host has
                                  multiplied */
    sps_csr b;                 /* the rows of B of the present part, in device
                                  memory at b_at, of b_bytes bytes */
    char *b_at;
    size_t b_bytes;
    const int32_t *a_col;      /* columns of the rows of A of the part, whose
                                  first entry is number a_first in A, and whose
                                  last row is end - 1 */
    int64_t a_first, end;
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

/* ------------------------------------------------- copies, delays for tests */

/* Returns whether this copy is the one that has to fail. */
bool fails(far_product &q)
{
    return q.test.fail > 0 && --q.test.fail == 0;
}

/* Returns the status of a copy of `bytes` bytes, queued with `error`. */
sps_status copied(far_product &q, size_t bytes, cudaError_t error)
{
    char what[64];

    if (fails(q)) error = cudaErrorInvalidValue;
    if (error == cudaSuccess) return SPS_OK;
    snprintf(what, sizeof what, "a copy of %zu bytes", bytes);
    return spsi_cuda_failed(q.ctx, error, what, __FILE__, __LINE__);
}

/* Copies to the device. */
sps_status send(far_product &q, void *to, const void *from, size_t bytes)
{
    if (bytes == 0) return SPS_OK;
    SPS_TRY_RETURN(copied(q, bytes, cudaSuccess));
    return spsi_cuda_upload(q.ctx, to, from, bytes);
}

__global__ void spin()
{
    for (int i = 0; i < 2000; i++) __nanosleep(1000);
}

sps_status late(const far_product &q, unsigned stage, cudaStream_t stream)
{
    if (!(q.test.late & stage)) return SPS_OK;
    spin<<<1, 1, 0, stream>>>();
    SPS_LAUNCHED(q.ctx);
    return SPS_OK;
}

__global__ void __launch_bounds__(256) flip(uint32_t *word, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) word[i] = ~word[i];
}

/* Delays the values of C: they are wrong until the delay is over. */
sps_status late_values(const far_product &q, const sps_csr *C)
{
    const int64_t words = C->nnz * (int64_t)(q.value / 4);

    if (!(q.test.late & SPS_FAR_PRODUCT)) return SPS_OK;
    SPS_TRY_RETURN(run_items(q.ctx, words, flip, (uint32_t *)C->val, words));
    SPS_TRY_RETURN(late(q, SPS_FAR_PRODUCT, spsi_cuda_state(q.ctx)->stream));
    return run_items(q.ctx, words, flip, (uint32_t *)C->val, words);
}

/* Fills released memory with NaN, on the device in the order of m. */
sps_status spoil(const far_product &q, char *slot, size_t bytes)
{
    if (q.test.poison && bytes > 0)
        SPS_CUDA(q.ctx, cudaMemsetAsync(slot, 0xff, bytes,
                                        spsi_cuda_state(q.ctx)->stream));
    return SPS_OK;
}

/* ------------------------------------------------------------------ panels */

/* Returns the panel of rows before `end` that begins with row `first`: at least
 * one row, and as many as the budget allows; `fill`: C->rowptr is known, and
 * two panels of C have to fit as well. */
panel panel_at(const far_product &q, int64_t first, int64_t end, bool fill)
{
    const size_t most = fill ? q.most : largest_count;
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

/* Where columns and values of a csr begin that is in one piece of memory, and
 * its bytes. */
struct layout {
    size_t col, val, all;
};

layout layout_of(const far_product &q, int64_t rows, int64_t n)
{
    const size_t col = (size_t)(rows + 1) * sizeof(int64_t);
    const size_t val = (col + (size_t)n * sizeof(int32_t) + 7) & ~(size_t)7;

    return {col, val, val + (size_t)n * q.value};
}

int64_t entries_of(const far_product &q, const panel &p)
{
    return q.A->rowptr[p.first + p.rows] - q.A->rowptr[p.first];
}

layout layout_of(const far_product &q, const panel &p)
{
    return layout_of(q, p.rows, entries_of(q, p));
}

/* The csr of n rows with the given number of entries at `at` in device
 * memory. */
sps_csr placed(const far_product &q, const sps_csr *like, int64_t rows,
               int64_t n, char *at)
{
    const layout l = layout_of(q, rows, n);
    sps_csr A = *like;

    A.nrow = rows;
    A.nnz = n;
    A.rowptr = (int64_t *)at;
    A.col = (int32_t *)(at + l.col);
    A.val = at + l.val;
    A.place = SPS_CUDA;
    return A;
}

void set_offsets(const far_product &q, const panel &p, int64_t *offset)
{
    for (int64_t i = 0; i <= p.rows; i++)
        offset[i] = q.A->rowptr[p.first + i] - q.A->rowptr[p.first];
}

/* The columns of a panel of A among the rows of b. */
const int32_t *columns_of(const far_product &q, const panel &p)
{
    return q.a_col + (q.A->rowptr[p.first] - q.a_first);
}

/* The panel of A whose image is q.a. */
sps_csr rows_of(const far_product &q, const panel &p)
{
    sps_csr rows = placed(q, q.A, p.rows, entries_of(q, p), q.a);

    rows.ncol = q.b.nrow;
    return rows;
}

/* Where columns end and values begin in a slot of C with n entries. */
size_t columns(size_t n)
{
    return (n * sizeof(int32_t) + 7) & ~(size_t)7;
}

/* Enlarges the sizes of slots for a panel. */
void measure_panel(far_product &q, const panel &p, bool fill)
{
    const int64_t *c = q.C->rowptr + p.first;
    const size_t in = layout_of(q, p).all;
    const size_t n = fill ? (size_t)(c[p.rows] - c[0]) : 0;
    const size_t out = columns(n) + n * q.value;

    q.room_in = in > q.room_in ? in : q.room_in;
    q.room_out = out > q.room_out ? out : q.room_out;
}

/* Sets the sizes of slots, which hold any panel. */
void measure(far_product &q, bool fill)
{
    q.room_in = q.room_out = 0;
    for (int64_t i = 0; i < q.parts.count; i++) {
        const sps_row_part &part = q.parts.part[i];
        const int64_t end = part.first + part.rows;

        if (part.named < 0) continue;
        for (panel p = {part.first, 0}; p.first < end; p.first += p.rows) {
            p = panel_at(q, p.first, end, fill);
            measure_panel(q, p, fill);
        }
    }
    q.room_in = (q.room_in + 4095) & ~(size_t)4095;
    q.room_out = (q.room_out + 4095) & ~(size_t)4095;
}

} // namespace

#endif
