/* SPDX-License-Identifier: BSD-3-Clause */
/* host_product.h - common parts of the host's products Y = D (alpha A X + gamma
 * W) + beta Y + delta X, whatever the format of A: operands, how a sum is
 * stored, and how rows are divided among the threads. */
#ifndef SPS_CPU_PRODUCT_H
#define SPS_CPU_PRODUCT_H

#include "cpu/rows.h"
#include "plan/kernel.h"

typedef struct product {
    double alpha, beta;
    const void *x;         /* in double precision, or in single precision if
                              `single` */
    int64_t ldx;
    void *y;
    int64_t ldy;
    int k;
    bool single;           /* x and y are in single precision */
    bool stream;           /* vectors of 64 bytes are stored past the caches */
    const sps_epilogue *e;
} product;

INLINE double load(const void *val, const bool f32, int64_t p)
{
    return f32 ? (double)((const float *)val)[p] : ((const double *)val)[p];
}

/* Fetches into the caches what follows `at` at a distance, in an array that is
 * read from one end to the other: by themselves processors fetch to the end of
 * a page of 4 KB only. */
INLINE void fetch_ahead(const void *at)
{
    __builtin_prefetch((const char *)at + 6144);
}

/* Stores a vector V of 64 bytes at a multiple of 64: in memory, and in no
 * cache, which would first read what is replaced. */
#if SPS_X86_CLONES && defined __OPTIMIZE__
#define PAST_CACHES(V, to, s)                                                  \
    do {                                                                       \
        V s_ = (s);                                                            \
        __asm__("vmovntpd %1, %0" : "=m"(*(V *)(to)) : "v"(s_));               \
    } while (0)
#else
#define PAST_CACHES(V, to, s) *(V *)(to) = (s)
#endif

/* Stores row i of Y from column j on, as vectors V of type T, from the sum s of
 * A X.  Operands with a zero factor are not read. */
#define STORE(V, T, t, i, j, s)                                                \
    do {                                                                       \
        V *out_ = (V *)((T *)(t)->y + (i) * (t)->ldy + (j));                   \
        V sum_ = (T)(t)->alpha * (s);                                          \
        const sps_epilogue *e_ = (t)->e;                                       \
                                                                               \
        if (e_ && e_->W)                                                       \
            sum_ += (T)e_->gamma *                                             \
                    *(const V *)((const T *)e_->W->data + (i) * e_->W->ld +    \
                                 (j));                                         \
        if (e_ && e_->D) sum_ *= (T)*row_of(e_->D, i);                         \
        if ((t)->beta != 0) sum_ += (T)(t)->beta * *out_;                      \
        if (e_ && e_->delta != 0)                                              \
            sum_ += (T)e_->delta *                                             \
                    *(const V *)((const T *)(t)->x + (i) * (t)->ldx + (j));    \
        if (sizeof(V) == 64 && (t)->stream)                                    \
            PAST_CACHES(V, out_, sum_);                                        \
        else                                                                   \
            *out_ = sum_;                                                      \
    } while (0)

/* Stores `rows` rows of Y, w columns each, from row i and column j on, given
 * the sums of A X: the general form of STORE.  It is not inlined; a kernel
 * stores plain sums itself. */
void spsi_cpu_product_rows(const product *t, int64_t i, int rows, int j, int w,
                           const double *sum);
/* Returns whether the product is Y = alpha A X. */
INLINE bool is_plain(const product *t) { return !t->e && t->beta == 0; }

/* Stores the first `rows` of R rows of N vectors V of sums, sum[r][v], from row
 * i and column j on; R and N are constants after inlining. */
#define STORE_SUMS(V, t, i, rows, R, N, j)                                     \
    do {                                                                       \
        enum { W_ = sizeof(V) / sizeof(double) };                              \
        double made_[24 * W_]; /* a copy: sum stays in registers */            \
        const bool plain_ = is_plain(t) && (rows) == (R);                      \
        double *to_ = plain_ ? (double *)(t)->y + (i) * (t)->ldy + (j)         \
                             : made_;                                          \
        const int64_t ld_ = plain_ ? (t)->ldy : (N) * W_;                      \
        const double a_ = plain_ ? (t)->alpha : 1;                             \
                                                                               \
        if (W_ == 8 && plain_ && (t)->stream)                                  \
            UNROLL for (int r = 0; r < R; r++)                                 \
                UNROLL for (int v = 0; v < N; v++)                             \
                    PAST_CACHES(V, to_ + r * ld_ + v * W_, a_ * sum[r][v]);    \
        else                                                                   \
            UNROLL for (int r = 0; r < R; r++)                                 \
                UNROLL for (int v = 0; v < N; v++)                             \
                    *(V *)(to_ + r * ld_ + v * W_) = a_ * sum[r][v];           \
        if (!plain_)                                                           \
            spsi_cpu_product_rows(t, i, rows, j, (N) * W_, made_);             \
    } while (0)
#define UNROLL _Pragma("GCC unroll 8")

/* A division of rows (or groups of rows) into pieces for the threads, about 16
 * for each thread.  The cost of a row is its number of entries plus `each`, and
 * pieces have about equal costs; start[i] is the number of entries before row
 * i. */
typedef struct pieces {
    int64_t count;
    struct range { int64_t first, last; } *at;
} pieces;

/* The pieces are memory of the plan (spsi_plan_take). */
sps_status spsi_cpu_pieces_open(sps_plan *plan, const int64_t *start,
                                int64_t rows, int64_t each, pieces *p);

/* The same for groups of `group` rows of A.  If A is the stencil of a grid and
 * three planes of X exceed most of a second-level cache of at least 2 MB,
 * pieces are parts of planes, the same part of all planes one after the other,
 * so that a row of X stays in that cache until the last plane that needs it. */
sps_status spsi_cpu_pieces_of_grid(sps_plan *plan, const sps_problem *problem,
                                   const int64_t *start, int group,
                                   int64_t each, pieces *p);

/* Calls fn for the rows (or groups) of each piece, in parallel; for alpha = 0
 * scales Y instead, and neither A nor X is read. */
typedef void product_fn(const void *format, const product *t, int64_t first,
                        int64_t last);
sps_status spsi_cpu_product_run(const sps_plan *plan,
                                const sps_spmm_args *args, const pieces *p,
                                product_fn *fn, const void *format);

/* Returns the predicted bytes of rows of X that are read from memory more than
 * once. */
double spsi_cpu_product_again(const sps_problem *p);

#endif
