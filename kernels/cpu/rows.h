/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.h - common code of the CPU operations: the fixed division of rows into
 * chunks, short vectors, and the selection of the instruction set.
 *
 * A chunk is a fixed range of rows, the unit of parallel work and of partial
 * sums.  Its size depends on the dimensions only, so that sums do not depend on
 * the number of threads.  Within a chunk rows are processed in strips, a few
 * rows at a time that stay in the L1 and L2 caches: fused operations perform
 * all of their parts on one strip before the next. */
#ifndef SPS_CPU_ROWS_H
#define SPS_CPU_ROWS_H

#include "block/single.h"
#include "core/backend.h"
#include "core/team.h"
#include "cpu/isa.h"

#include <string.h>

/* Allows fused multiply-adds if the instruction set has them; -std=c11 alone
 * would forbid them.  Bits are reproducible on one machine, not across
 * machines. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast")
#endif

/* Vectors of eight, four, two doubles at any 8-byte address. */
typedef double v8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef double v4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef double v2 __attribute__((vector_size(16), aligned(8), may_alias));
typedef double v1 __attribute__((may_alias));

/* Returns the number of rows of a strip: 8 KB of one block, but at least 64
 * rows, so that the k x k sums of wide blocks are not loaded and stored too
 * often. */
static inline int64_t strip_rows(int k)
{
    int64_t rows = 1024 / (k > 0 ? k : 1);

    return rows < 64 ? 64 : rows / 8 * 8;
}

/* In column-wise operations a block of k = 1, 2 or 4 columns without padding
 * can be treated as one of 8 columns with fewer rows.  Returns how many rows
 * become one, 8 / k, or 0 if that is not possible. */
static inline int fold_rows(int k, int64_t ldx, int64_t ldy)
{
    return k < 8 && 8 % k == 0 && ldx == k && ldy == k ? 8 / k : 0;
}

/* eight[j] = a[j mod k]. */
static inline void fold_scalars(int k, const double *a, double *eight)
{
    for (int j = 0; j < 8; j++) eight[j] = a[j % k];
}

typedef struct chunks {
    int64_t n, rows, count;
} chunks;

/* Divides n rows into chunks, each with `items` doubles of partial results: at
 * most 1024 chunks and 16 MB of partial results. */
static inline chunks chunks_of(int64_t n, int64_t items)
{
    chunks c = {n, 1024, 0};

    c.count = (n + c.rows - 1) / c.rows;
    while (c.count > 1 &&
           (c.count > 1024 || c.count * items > (int64_t)1 << 21)) {
        c.rows *= 2;
        c.count = (n + c.rows - 1) / c.rows;
    }
    return c;
}

/* Calls fn for the rows of each chunk, in parallel if ns, the estimated
 * nanoseconds, is large enough (lib/core/team.h). */
void spsi_cpu_over_chunks(sps_context *ctx, chunks c, int64_t ns,
                          spsi_team_fn *fn, void *data);

/* Returns the nanoseconds that one core needs for `rows` rows with these counts
 * of doubles moved and multiply-adds per row, at the speed of data in near
 * caches: the estimate that team.h needs. */
static inline int64_t work_ns(int64_t rows, int64_t numbers, int64_t products)
{
    return rows * (4 * numbers + products) / 8;
}

static inline int64_t chunk_end(chunks c, int64_t i)
{
    return (i + 1) * c.rows < c.n ? (i + 1) * c.rows : c.n;
}

static inline double *row_of(const sps_block *X, int64_t i)
{
    return (double *)X->data + i * X->ld;
}

/* For chunks.c: single-precision blocks are converted to double precision
 * and back a few rows at a time, in a buffer that fits the L1 cache
 * (lib/block/single.h). */
#define SINGLE_ROOM 2048 /* doubles in that buffer */
static inline int64_t single_rows(int k)
{
    return k > 32 ? SINGLE_ROOM / k : strip_rows(k);
}

/* Returns rows i .. i+m-1 of X, at most a strip, in double precision: in place,
 * or copied to room; *ld is their leading dimension. */
double *spsi_cpu_strip_in(const sps_block *X, int64_t i, int64_t m,
                          double *room, int64_t *ld);
/* Writes to X the rows that spsi_cpu_strip_in has copied. */
void spsi_cpu_strip_out(sps_block *X, int64_t i, int64_t m,
                        const double *rows, int64_t ld);

/* What ctx->backend_data points to. */
typedef struct cpu_state {
    double *scratch;
    int64_t doubles;
} cpu_state;

/* Sets *p_p to scratch memory of the context.  The memory is enlarged here only
 * if the backend's reserve() was called with smaller dimensions. */
sps_status spsi_cpu_scratch(sps_context *ctx, int64_t doubles, double **p_p);

/* Operations on strips; blocks are given by address and leading dimension. */

/* y = a x + b y for m rows of k columns; y is not read when b = 0. */
void spsi_cpu_strip_axpby(int64_t m, int64_t k, double a, const double *x,
                          int64_t ldx, double b, double *y, int64_t ldy);
/* C[a * ldc + b] += sum over m rows of x_a y_b, a < kx, b < ky. */
void spsi_cpu_strip_gram(int64_t m, const double *x, int64_t ldx, int kx,
                         const double *y, int64_t ldy, int ky, double *C,
                         int64_t ldc);
/* out[j] += the dot product of column j of x and of y, over m rows. */
void spsi_cpu_strip_dots(int64_t m, const double *x, int64_t ldx,
                         const double *y, int64_t ldy, int k, double *out);
/* y_j = a_j x_j + b_j y_j; if b is NULL, b_j = 0 and y is not read. */
void spsi_cpu_strip_axpby_cols(int64_t m, int k, const double *a,
                               const double *x, int64_t ldx, const double *b,
                               double *y, int64_t ldy);
/* y = x c + b z, where c has been packed by spsi_cpu_pack.  y may be x or z; z
 * is not read if b = 0. */
void spsi_cpu_strip_mul(int64_t m, const double *x, int64_t ldx, int kx,
                        const double *c, int ky, double b, const double *z,
                        int64_t ldz, double *y, int64_t ldy);

/* Packs a C: row-major, each row padded with zeros to a multiple of 8
 * columns. */
static inline int64_t packed_cols(int cols) { return (cols + 7) / 8 * 8; }
void spsi_cpu_pack(double a, const sps_small *C, double *packed);

/* Copies row-major values to C. */
void spsi_cpu_unpack(const double *rows, sps_small *C);

/* Adds the partial results of the chunks, `items` doubles each, pairwise and in
 * order; the result replaces the first one. */
void spsi_cpu_sum_chunks(sps_context *ctx, int64_t count, int64_t items,
                         double *partial);

/* The operations of the backend; each has the type of its slot in sps_backend,
 * into which backend_cpu.c puts it. */
#define SPS_CPU_OPERATIONS(DO)                                                 \
    DO(fill) DO(random) DO(set) DO(get) DO(gather) DO(scatter) DO(take_rows)   \
    DO(put_rows) DO(axpby) DO(axpby_cols) DO(scale_rows) DO(dots) DO(maxabs)   \
    DO(gram) DO(mul_small) DO(remove_means) DO(gram_pair) DO(subtract)         \
    DO(subtract_cols) DO(combine) DO(basis_dots) DO(basis_update)              \
    DO(fused_cg_lengths) DO(fused_cg_residual) DO(fused_cg_directions)         \
    DO(csr_diagonal) DO(csr_block_inverse) DO(csr_fsai) DO(csr_ilu0)           \
    DO(csr_ilut) DO(csr_multiply) DO(csr_multiply_values) DO(triangle_open)    \
    DO(triangle_solve) DO(triangle_close) DO(twofold) DO(two_way_there)        \
    DO(two_way_back)
#define DECLARE(slot)                                                          \
    __typeof__(*((sps_backend *)0)->slot) spsi_cpu_##slot;
SPS_CPU_OPERATIONS(DECLARE)

#endif
