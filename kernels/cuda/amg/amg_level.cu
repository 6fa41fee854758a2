/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_level.cu - opens and closes levels of multigrid in device memory;
 * contains the table of the functions that compute the stages of a level. */
#include "cuda/amg/coarse.cuh"

namespace {

struct widen_offsets {
    const int32_t *from;
    int64_t *to;

    __device__ void operator()(int64_t i) const { to[i] = from[i]; }
};

struct widen_values {
    const float *from;
    double *to;

    __device__ void operator()(int64_t p) const { to[p] = from[p]; }
};

struct regular_nodes {
    int64_t n, block;
    int64_t *start;

    __device__ void operator()(int64_t v) const
    {
        start[v] = v * block < n ? v * block : n;
    }
};

struct number_rows {
    const int64_t *start;
    int32_t *node;

    __device__ void operator()(int64_t v) const
    {
        for (int64_t i = start[v]; i < start[v + 1]; i++) node[i] = (int32_t)v;
    }
};

struct take_constants {
    int64_t block;
    int vectors;
    double *near;

    __device__ void operator()(int64_t i) const
    {
        near[i * vectors + i % block] = 1;
    }
};

struct take_columns {
    const double *x;
    int64_t ld;
    int k, first, vectors;
    double *near;

    __device__ void operator()(int64_t e) const
    {
        near[e / k * vectors + first + e % k] = x[e / k * ld + e % k];
    }
};

void close_level(sps_coarse **l_p)
{
    sps_coarse *l = *l_p;

    if (!l) return;
    spsi_coarse_leave_side(l);
    sps_csr_destroy(l->ctx, &l->T);
    sps_csr_destroy(l->ctx, &l->F);
    while (l->pieces > 0) {
        l->pieces--;
        spsi_cuda_release(l->ctx, l->piece[l->pieces].p,
                          l->piece[l->pieces].bytes);
    }
    spsi_free(l->ctx, l);
    *l_p = NULL;
}

void drop_level(sps_coarse *l)
{
    give_back(l, &l->factor);
    give_back(l, &l->most);
    sps_csr_destroy(l->ctx, &l->T);
    sps_csr_destroy(l->ctx, &l->F);
}

/* Sets the matrix of the level, l->A, from A: columns and values are used in
 * place, but offsets are converted to 64 bits and values to doubles where A has
 * other types. */
sps_status take_matrix(sps_coarse *l, const sps_csr_local *A)
{
    sps_csr *M = &l->A;
    double *wide = M->dtype == SPS_F64 ? (double *)M->val : NULL;
    int64_t *rowptr = M->rowptr;

    SPS_TRY_RETURN(spsi_cuda_enter(l->ctx));
    if (!A->rowptr && !rowptr) {
        SPS_TRY_RETURN(keep(l, A->nrow + 1, &rowptr));
        SPS_TRY_RETURN(each(l->ctx, A->nrow + 1,
                            widen_offsets{A->rowptr32, rowptr}));
    }
    M->rowptr = A->rowptr ? (int64_t *)(uintptr_t)A->rowptr : rowptr;
    M->col = (int32_t *)(uintptr_t)A->col;
    if (A->dtype == SPS_F32) {
        SPS_TRY_RETURN(keep(l, A->nnz, &wide));
        SPS_TRY_RETURN(each(l->ctx, A->nnz,
                            widen_values{(const float *)A->val, wide}));
    } else {
        wide = (double *)(uintptr_t)A->val;
    }
    M->val = wide;
    M->dtype = SPS_F64;
    return SPS_OK;
}

sps_status number_all(sps_coarse *l)
{
    SPS_TRY_RETURN(keep(l, l->A.nrow, &l->node));
    return each(l->ctx, l->nodes, number_rows{l->start, l->node});
}

sps_status number_nodes(sps_coarse *l, int block, int vectors)
{
    const int64_t n = l->A.nrow;

    l->block = block;
    l->vectors = vectors;
    l->nodes = ceil_div(n, block);
    if (block > 1) {
        SPS_TRY_RETURN(keep(l, l->nodes + 1, &l->start));
        SPS_TRY_RETURN(each(l->ctx, l->nodes + 1,
                            regular_nodes{n, block, l->start}));
        SPS_TRY_RETURN(number_all(l));
    }
    SPS_TRY_RETURN(keep(l, n * vectors, &l->near));
    return clear(l->ctx, n * vectors, l->near);
}

sps_status open_level(sps_context *ctx, const sps_csr_local *A,
                      sps_coarse **l_p)
{
    sps_coarse *l;
    sps_status st;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(SPS_NEW(ctx, 1, &l));
    l->ctx = ctx;
    l->A.nrow = A->nrow;
    l->A.ncol = A->ncol;
    l->A.nnz = A->nnz;
    l->A.place = SPS_CUDA;
    l->A.own = SPS_BORROW;
    l->A.props = SPS_SORTED;
    l->A.dtype = A->dtype;
    st = take_matrix(l, A);
    if (st != SPS_OK) close_level(&l);
    else *l_p = l;
    return st;
}

sps_status near_null(sps_coarse *l, int first, const sps_block *X)
{
    const int64_t n = l->A.nrow;

    if (!X)
        return each(l->ctx, n, take_constants{l->block, l->vectors, l->near});
    return each(l->ctx, n * X->k, take_columns{numbers(X), X->ld, X->k, first,
                                               l->vectors, l->near});
}

/* Returns an integer for x such that integers have the same order as the
 * doubles. */
__device__ __forceinline__ unsigned long long order_of(double x)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(x);

    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

/* The largest x and the largest -x on each axis of the coordinates, as integers
 * by order_of. */
struct extent {
    unsigned long long high[3], low[3];
    int bad;                  /* set if a coordinate is too large or not a
                                 number */
};

constexpr int64_t extent_items = 1 << 16;   /* a multiple of 256 */

struct find_extent {
    const double *x;
    int64_t ld;
    int d;
    int64_t n;
    extent *e;

    __device__ void raise(unsigned long long *to, unsigned long long key) const
    {
        key = group_most<32>(key);
        if (threadIdx.x % 32 == 0 && key > *(volatile unsigned long long *)to)
            atomicMax(to, key);
    }
    /* Looks at the points t, t + extent_items, ...; called by whole warps. */
    __device__ void operator()(int64_t t) const
    {
        for (int a = 0; a < d; a++) {
            unsigned long long high = 0, low = 0;

            for (int64_t i = t; i < n; i += extent_items) {
                const double v = x[i * ld + a];

                if (!(fabs(v) < 1e300)) e->bad = 1;
                high = max(high, order_of(v));
                low = max(low, order_of(-v));
            }
            raise(&e->high[a], high);
            raise(&e->low[a], low);
        }
    }
};

struct fill_motions {
    const double *x;
    int64_t ld;
    int d, motions, vectors;
    spsi_coarse_box box;
    double *near;

    __device__ void operator()(int64_t i) const
    {
        double own[3] = {0, 0, 0};

        for (int a = 0; a < d; a++)
            own[a] = spsi_coarse_centred(&box, d, x[i / d * ld + a], a);
        for (int q = 0; q < motions; q++)
            near[i * vectors + q] = spsi_coarse_motion(own, d, q,
                                                       (int)(i % d));
    }
};

double number_of(unsigned long long key)
{
    const unsigned long long bits = key >> 63 ? key & ~(1ull << 63) : ~key;
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

sps_status find_box(sps_coarse *l, const sps_block *X, spsi_coarse_box *box,
                    bool *finite)
{
    sps_context *ctx = l->ctx;
    extent *there, here;
    holder h(ctx);

    SPS_TRY_RETURN(h.take(1, &there));
    SPS_TRY_RETURN(clear(ctx, 1, there));
    SPS_TRY_RETURN(each(ctx, extent_items,
                        find_extent{numbers(X), X->ld, X->k, X->n, there}));
    SPS_TRY_RETURN(download(ctx, 1, there, &here));
    *finite = here.bad == 0;
    for (int a = 0; a < X->k; a++) {
        box->high[a] = number_of(here.high[a]);
        box->low[a] = -number_of(here.low[a]);
    }
    return SPS_OK;
}

sps_status rigid_motions(sps_coarse *l, const sps_block *X,
                         const spsi_coarse_box *box)
{
    return each(l->ctx, l->A.nrow,
                fill_motions{numbers(X), X->ld, X->k, X->k == 2 ? 3 : 6,
                             l->vectors, *box, l->near});
}

const sps_csr *matrix_of_level(const sps_coarse *l) { return &l->A; }

const sps_csr *filtered_of_level(const sps_coarse *l) { return l->F; }

/* Opens the next level, whose nodes are the aggregates of this one. */
sps_status open_next(const sps_coarse *l, bool single, sps_coarse *next)
{
    next->nodes = l->aggregates;
    if (single) return SPS_OK;
    SPS_TRY_RETURN(keep(next, l->aggregates + 1, &next->start));
    SPS_TRY_RETURN(copy(l->ctx, l->aggregates + 1, l->place, next->start));
    return number_all(next);
}

sps_status next_level(sps_coarse *l, const sps_csr *A, bool single,
                      sps_coarse **next_p)
{
    sps_coarse *next = *next_p;
    sps_status st = SPS_OK;

    if (next) return spsi_coarse_fill_near(l, next->near);
    SPS_TRY_RETURN(SPS_NEW(l->ctx, 1, &next));
    next->ctx = l->ctx;
    next->vectors = l->vectors;
    next->A = *A;
    next->side = l->side;
    if (next->side) next->side->users++;
    st = open_next(l, single, next);
    if (st == SPS_OK) st = keep(next, A->nrow * l->vectors, &next->near);
    if (st == SPS_OK) st = spsi_coarse_fill_near(l, next->near);
    if (st != SPS_OK) close_level(&next);
    else *next_p = next;
    return st;
}

/* Computes the near-null vectors of the next level and copies them to `to`. */
sps_status fetch_below(const sps_coarse *l, double *to)
{
    const int64_t count = l->T->ncol * l->vectors;
    holder h(l->ctx);
    double *near;

    SPS_TRY_RETURN(h.take(count + 1, &near));
    SPS_TRY_RETURN(spsi_coarse_fill_near(l, near));
    return download(l->ctx, count, near, to);
}

sps_status fetch_array(const sps_coarse *l, sps_coarse_array which, void *to)
{
    const int64_t n = l->A.nrow;

    switch (which) {
    case SPS_COARSE_SCALE:
        return download(l->ctx, n, l->scale, (double *)to);
    case SPS_COARSE_NEAR:
        return download(l->ctx, n * l->vectors, l->near, (double *)to);
    case SPS_COARSE_BELOW:
        return fetch_below(l, (double *)to);
    default:
        return download(l->ctx, l->nodes, l->aggregate, (int32_t *)to);
    }
}

} // namespace

SPS_DEFINE(sps_coarsening, spsi_coarsening_cuda) = {
    .begin = spsi_cuda_pool_begin,
    .end = spsi_cuda_pool_end,
    .open = open_level,
    .renew = take_matrix,
    .nodes = number_nodes,
    .near_null = near_null,
    .box = find_box,
    .motions = rigid_motions,
    .matrix = matrix_of_level,
    .symmetric = spsi_coarse_symmetric,
    .kinds = spsi_coarse_kinds,
    .known = spsi_coarse_known,
    .diagonal = spsi_coarse_diagonal,
    .scale = spsi_coarse_scale,
    .ahead_lanczos = spsi_coarse_ahead_lanczos,
    .lanczos = spsi_coarse_lanczos,
    .lanczos_across = spsi_coarse_lanczos_across,
    .aggregate = spsi_coarse_aggregate,
    .tentative = spsi_coarse_tentative,
    .filter = spsi_coarse_filter,
    .prolong = spsi_coarse_prolong,
    .smooth = spsi_coarse_smooth,
    .filtered = filtered_of_level,
    .multiply = spsi_coarse_multiply,
    .drop = drop_level,
    .next = next_level,
    .inverse = spsi_coarse_inverse,
    .spread = spsi_coarse_spread,
    .invert = spsi_coarse_invert,
    .fetch = fetch_array,
    .traits = spsi_coarse_traits,
    .outside = spsi_coarse_outside,
    .pick = spsi_coarse_pick,
    .replace = spsi_coarse_replace,
    .close = close_level,
    .cycle = { .weigh = spsi_coarse_weigh, .ahead = spsi_coarse_ahead,
               .enter = spsi_coarse_enter, .subtract = spsi_coarse_subtract },
};
