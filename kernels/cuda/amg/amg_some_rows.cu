/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_some_rows.cu - few rows of a matrix in device memory: finds those that
 * leave a range of columns, copies rows, and replaces rows by those of a matrix
 * in host memory (matrix/some_rows.h).  For levels of multigrid
 * that are spread over processes. */
#include "cuda/amg/coarse.cuh"

namespace {

template <class X>
sps_status upload(sps_context *ctx, int64_t n, const X *from, X *to)
{
    return n > 0 ? ctx->backend->upload(ctx, to, from, (size_t)n * sizeof *to)
                 : SPS_OK;
}

/* Columns ascend: the first and the last tell about all. */
struct leaves_range {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col;
    int64_t first, last;
    int32_t *count;

    __device__ void operator()(int64_t i) const
    {
        const int64_t p = rowptr[i], q = rowptr[i + 1];

        count[i] = p < q && (col[p] < first || col[q - 1] >= last);
    }
};

struct list_rows {
    const int32_t *__restrict__ count;
    const int64_t *__restrict__ offset;
    int32_t *row;

    __device__ void operator()(int64_t i) const
    {
        if (count[i]) row[offset[i]] = (int32_t)i;
    }
};

/* Row i of the result is row at(i) of A, or nothing if that is negative, or row
 * other(i) of B if that is not negative. */
template <class V> struct sources {
    const int64_t *__restrict__ rowptr, *__restrict__ rowptr_b;
    const int32_t *__restrict__ col, *__restrict__ col_b;
    const V *__restrict__ val, *__restrict__ val_b;
    const int32_t *__restrict__ row;     /* of `pick`: at(i), else NULL */
    const int32_t *__restrict__ where;   /* of `replace`: other(i) */
    int64_t before, nrow, shift;

    __device__ int64_t other(int64_t i) const { return where ? where[i] : -1; }
    __device__ int64_t at(int64_t i) const
    {
        const int64_t r = row ? row[i] : i - before;

        return r < nrow ? r : -1;
    }
    __device__ int64_t length(int64_t i) const
    {
        const int64_t b = other(i), a = b < 0 ? at(i) : -1;

        return b >= 0 ? rowptr_b[b + 1] - rowptr_b[b]
             : a >= 0 ? rowptr[a + 1] - rowptr[a] : 0;
    }
};

template <class V> struct count_sources : sources<V> {
    int32_t *count;

    __device__ void operator()(int64_t i) const
    {
        count[i] = (int32_t)this->length(i);
    }
};

template <class V> struct copy_sources : sources<V> {
    const int64_t *__restrict__ to;
    int32_t *to_col;
    V *to_val;

    template <int G> __device__ void run(int64_t i, int lane) const
    {
        if (i < 0) return;
        const int64_t b = this->other(i), a = b < 0 ? this->at(i) : -1;
        const int64_t from = b >= 0 ? this->rowptr_b[b]
                           : a >= 0 ? this->rowptr[a] : 0;
        const int64_t length = to[i + 1] - to[i];

        for (int64_t p = lane; p < length; p += G) {
            to_col[to[i] + p] = b >= 0 ? this->col_b[from + p]
                              : (int32_t)(this->col[from + p] + this->shift);
            to_val[to[i] + p] = b >= 0 ? this->val_b[from + p]
                                       : this->val[from + p];
        }
    }
};

struct place_rows {
    const int32_t *__restrict__ row;
    int32_t *where;

    __device__ void operator()(int64_t t) const { where[row[t]] = (int32_t)t; }
};

struct take_traits {
    const int32_t *__restrict__ row;
    const double *__restrict__ scale, *__restrict__ near;
    int vectors;
    double *to;

    __device__ void operator()(int64_t t) const
    {
        to[2 * t] = scale[row[t]];
        to[2 * t + 1] = near[row[t] * (int64_t)vectors];
    }
};

template <class V>
sps_status open_room(sps_context *ctx, int64_t nnz, sps_csr *made)
{
    void *got;

    made->nnz = nnz;
    if (nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)nnz * sizeof(int32_t), &got));
    made->col = (int32_t *)got;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)nnz * sizeof(V), &got));
    made->val = got;
    return SPS_OK;
}

/* Creates the matrix of n rows that s describes. */
template <class V>
sps_status copied(sps_context *ctx, const sources<V> &s, int64_t n,
                  int64_t ncol, sps_csr **C_p)
{
    holder h(ctx);
    int32_t *count;
    int64_t nnz = 0;
    sps_csr made = {};
    sps_status st;

    SPS_TRY_RETURN(h.take(n + 1, &count));
    SPS_TRY_RETURN(each(ctx, n, count_sources<V>{s, count}));
    st = open_offsets(ctx, count, n, ncol, &made);
    made.dtype = sizeof(V) == 8 ? SPS_F64 : SPS_F32;
    if (st == SPS_OK) st = download(ctx, 1, made.rowptr + n, &nnz);
    if (st == SPS_OK) st = open_room<V>(ctx, nnz, &made);
    if (st == SPS_OK)
        st = each_group(ctx, n, nnz / (n + 1), NULL,
                        copy_sources<V>{s, made.rowptr, made.col,
                                        (V *)made.val});
    return spsi_cuda_csr_finish(ctx, st, &made, C_p);
}

template <class V>
sps_status pick(sps_context *ctx, const sps_csr *A, const int32_t *row,
                int64_t rows, sps_csr **C_p)
{
    sources<V> s = {A->rowptr, NULL, A->col, NULL, (const V *)A->val, NULL};
    holder h(ctx);
    int32_t *list;

    SPS_TRY_RETURN(h.take(rows + 1, &list));
    SPS_TRY_RETURN(upload(ctx, rows, row, list));
    s.row = list;
    s.nrow = A->nrow;
    return copied(ctx, s, rows, A->ncol, C_p);
}

/* *where_p, of n numbers, becomes t at row[t] and -1 elsewhere. */
sps_status place(sps_context *ctx, holder &h, int64_t n, const int32_t *row,
                 int64_t rows, int32_t **where_p)
{
    int32_t *list;

    SPS_TRY_RETURN(h.take(rows + 1, &list));
    SPS_TRY_RETURN(h.take(n + 1, where_p));
    SPS_TRY_RETURN(upload(ctx, rows, row, list));
    SPS_CUDA(ctx, cudaMemsetAsync(*where_p, 0xff, (size_t)n * sizeof *list,
                                  stream_of(ctx)));
    return each(ctx, rows, place_rows{list, *where_p});
}

/* B: in device memory, as A, or NULL. */
template <class V>
sps_status replace(sps_context *ctx, const sps_csr *A, const spsi_placing *p,
                   const sps_csr *B, sps_csr **C_p)
{
    sources<V> s = {A->rowptr, NULL, A->col, NULL, (const V *)A->val, NULL};
    holder h(ctx);
    int32_t *where = NULL;

    if (B) {
        SPS_TRY_RETURN(place(ctx, h, p->nrow, p->row, B->nrow, &where));
        s.rowptr_b = B->rowptr;
        s.col_b = B->col;
        s.val_b = (const V *)B->val;
    }
    s.where = where;
    s.before = p->before;
    s.nrow = A->nrow;
    s.shift = p->shift;
    return copied(ctx, s, p->nrow, p->ncol, C_p);
}

} // namespace

sps_status spsi_coarse_outside(sps_context *ctx, const sps_csr *A,
                               int64_t first, int64_t last, int32_t **row_p,
                               int64_t *rows)
{
    const int64_t n = A->nrow;
    holder h(ctx);
    int32_t *count, *row;
    int64_t *offset;
    void *room;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(h.take(n + 1, &count));
    SPS_TRY_RETURN(h.take(n + 1, &offset));
    SPS_TRY_RETURN(each(ctx, n, leaves_range{A->rowptr, A->col, first, last,
                                             count}));
    SPS_TRY_RETURN(offsets(ctx, count, n, offset, rows));
    SPS_TRY_RETURN(h.take(*rows + 1, &row));
    SPS_TRY_RETURN(each(ctx, n, list_rows{count, offset, row}));
    SPS_TRY_RETURN(spsi_new(ctx, (size_t)(*rows + 1) * sizeof **row_p, &room));
    *row_p = (int32_t *)room;
    return download(ctx, *rows, row, *row_p);
}

sps_status spsi_coarse_pick(sps_context *ctx, const sps_csr *A,
                            const int32_t *row, int64_t rows, sps_csr **B_p)
{
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    return A->dtype == SPS_F64 ? pick<double>(ctx, A, row, rows, B_p)
                               : pick<float>(ctx, A, row, rows, B_p);
}

sps_status spsi_coarse_replace(sps_context *ctx, const sps_csr *A,
                               const spsi_placing *p, const sps_csr *B,
                               sps_csr **C_p)
{
    const bool here = B && B->place == SPS_HOST;
    sps_csr *there = NULL;
    sps_status st;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (here) SPS_TRY_RETURN(spsi_csr_upload(ctx, B, &there));
    if (here) B = there;
    st = A->dtype == SPS_F64 ? replace<double>(ctx, A, p, B, C_p)
                             : replace<float>(ctx, A, p, B, C_p);
    sps_csr_destroy(ctx, &there);
    return st;
}

sps_status spsi_coarse_traits(const sps_coarse *l, const int32_t *row,
                              int64_t rows, double *to)
{
    sps_context *ctx = l->ctx;
    holder h(ctx);
    int32_t *list;
    double *there;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (rows == 0) return SPS_OK;
    SPS_TRY_RETURN(h.take(rows, &list));
    SPS_TRY_RETURN(h.take(2 * rows, &there));
    SPS_TRY_RETURN(upload(ctx, rows, row, list));
    SPS_TRY_RETURN(each(ctx, rows, take_traits{list, l->scale, l->near,
                                               l->vectors, there}));
    return download(ctx, 2 * rows, there, to);
}
