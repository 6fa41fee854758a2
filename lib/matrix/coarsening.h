/* SPDX-License-Identifier: BSD-3-Clause */
/* coarsening.h - the set-up of multigrid by aggregation in the memory where the
 * matrix is stored: each stage of a level is an operation of a backend.
 *
 * The caller has the formulas of the stages, and computes them on the host.
 * The results of a backend have the same bits: sums are formed in the same
 * order, and each product and each sum is rounded (no fused multiply-add).
 * Constants and functions that both need are defined here.
 *
 * Each backend has its own representation of a level (sps_coarse); the matrices
 * of a level are csr's in the memory of the backend. */
#ifndef SPS_COARSENING_H
#define SPS_COARSENING_H

#include "core/backend.h"
#include "matrix/row_kinds.h"
#include "matrix/some_rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A coupling c_ij is strong if c_ij >= theta min(m_i, m_j); one theta for nodes
 * of one row, one for nodes of several rows. */
#define SPS_COARSE_THETA 0.3
#define SPS_COARSE_THETA_BLOCKS 0.1
/* A diagonal entry of a coarse matrix that is smaller than this, relative to
 * the unit diagonals from which it is computed, is rounding error. */
#define SPS_COARSE_NOTHING 1e-14
/* A near-null vector is left out if its norm, after orthogonalisation against
 * the vectors before it, is below this fraction of the largest norm. */
#define SPS_COARSE_RANK 1e-8
/* Entries above LARGE in the inverse of a matrix of unit diagonal mean that it
 * is singular.  A null vector b has ||C b|| / ||b|| of at most ZERO. */
#define SPS_COARSE_LARGE 1e11
#define SPS_COARSE_ZERO 1e-11
/* Filtering leaves at least this fraction of a diagonal entry. */
#define SPS_COARSE_LEAST 0.1

enum {
    /* In a graph with a mean of at least DENSE_GRAPH strong neighbours, phase 2
     * of aggregation requires MANY of them in an aggregate, else FEW. */
    SPS_COARSE_DENSE_GRAPH = 5, SPS_COARSE_MANY = 4, SPS_COARSE_FEW = 2,
    SPS_COARSE_STEPS = 8,     /* steps of Lanczos */
    /* Sums of CHUNK terms are formed from LANES partial sums: term t is added
     * to partial sum t % LANES in ascending order; then the upper half of the
     * partial sums is added to the lower half until one is left.  The sums of
     * chunks are summed in the same way. */
    SPS_COARSE_CHUNK = 2048, SPS_COARSE_LANES = 256
};

/* Functions for host and device; a backend may define the qualifiers it
 * needs. */
#ifndef SPS_COARSE_FN
#define SPS_COARSE_FN static inline
#endif

/* The key T of an undecided node in the computation of a MIS-2: 30 bits of a
 * hash (the finaliser of splitmix64, Steele, Lea and Flood 2014), plus one,
 * followed by the number of the node. */
SPS_COARSE_FN uint64_t spsi_coarse_priority(uint64_t i, uint64_t round)
{
    uint64_t x = i + round * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x = x ^ x >> 31;
    return ((x >> 34) + 1) << 32 | i;
}

/* Element i of the vector that Lanczos starts from, before it is scaled. */
SPS_COARSE_FN double spsi_coarse_start(int64_t i)
{
    const uint64_t h = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
    const uint64_t x = (h ^ h >> 31) * 0xbf58476d1ce4e5b9u;

    return (double)(x >> 11) * 0x1p-53 - 0.5;
}

/* Returns component c of rigid motion q of a node at x in d dimensions:
 * translation q if q < d, else a rotation u_a = -x_b, u_b = x_a for a pair a <
 * b of axes. */
SPS_COARSE_FN double spsi_coarse_motion(const double *x, int d, int q, int c)
{
    const int a = q < d ? q : (q - d) / 2, b = q < d ? -1 : 1 + (q - d + 1) / 2;

    if (b < 0) return c == a;
    return c == a ? -x[b] : c == b ? x[a] : 0;
}

/* The bounding box of the nodes: coordinates are taken relative to its centre,
 * in units of half its longest edge.  Centre and edge are exact up to one
 * rounding, in whatever order the nodes are visited. */
typedef struct spsi_coarse_box {
    double low[3], high[3];
} spsi_coarse_box;

/* Returns coordinate x of axis a relative to the box. */
SPS_COARSE_FN double spsi_coarse_centred(const spsi_coarse_box *box, int d,
                                         double x, int a)
{
    double size = 0;

    for (int e = 0; e < d; e++) {
        const double half = 0.5 * (box->high[e] - box->low[e]);

        if (half > size) size = half;
    }
    x -= 0.5 * (box->low[a] + box->high[a]);
    return size > 0 ? x / size : x;
}

/* Aggregates are numbered in the order of their roots.  Where the nodes are
 * those of a grid, line after line, this is the order of pencils of EDGE x EDGE
 * lines: then neighbouring rows of coarse matrices share most of their columns.
 *
 * A grid is given by the distance of two lines in its lower 32 bits, that of
 * two planes, or 0, in the upper ones; 0 is no grid. */
enum { SPS_COARSE_EDGE = 8, SPS_COARSE_SAMPLES = 64 };

/* Returns the grid that the columns of a row of node i suggest, b rows a node:
 * in the distances d of the nodes, the middle of the first run of consecutive
 * numbers, apart from the row's own line, is that of two lines, and the middle
 * of the runs beyond 4 lines that of two planes. */
SPS_COARSE_FN uint64_t spsi_coarse_grid(const int32_t *col, int64_t count,
                                        int b, int64_t i)
{
    int64_t low = 0, high = 0, line = 0, near = 0, far = 0;

    for (int64_t p = 0; p <= count; p++) {
        const int64_t d = p < count ? col[p] / b - i : INT64_MAX;
        const int64_t middle = (low + high) / 2;

        if (d <= 1 || d == high) continue;
        if (d == high + 1) {
            high = d;
            continue;
        }
        if (middle >= SPS_COARSE_EDGE && line == 0) line = middle;
        if (line > 0 && middle > 4 * line) {
            if (near == 0) near = middle;
            far = middle;
        }
        low = high = d;
    }
    far = (near + far) / 2;
    return (uint64_t)(line > 0 && far % line == 0 ? far : 0) << 32 |
           (uint64_t)line;
}

/* Returns the node whose row is sample s. */
SPS_COARSE_FN int64_t spsi_coarse_sample(int64_t nodes, int s)
{
    return (int64_t)((spsi_coarse_priority((uint64_t)s, 0) >> 32) %
                     (uint64_t)nodes);
}

/* Returns the grid that more than half of the samples suggest, or 0. */
SPS_COARSE_FN uint64_t spsi_coarse_majority(const uint64_t *grid)
{
    uint64_t most = 0;
    int lead = 0, count = 0;

    for (int s = 0; s < SPS_COARSE_SAMPLES; s++) {
        if (lead == 0) most = grid[s];
        lead += grid[s] == most ? 1 : -1;
    }
    for (int s = 0; s < SPS_COARSE_SAMPLES; s++) count += grid[s] == most;
    return 2 * count > SPS_COARSE_SAMPLES ? most : 0;
}

/* Returns the place of node i of n in the order of pencils; nodes behind the
 * last whole plane, or line, come last. */
SPS_COARSE_FN int64_t spsi_coarse_place(uint64_t grid, int64_t n, int64_t i)
{
    const uint32_t edge = SPS_COARSE_EDGE, line = (uint32_t)grid;
    const uint32_t plane = grid >> 32   ? (uint32_t)(grid >> 32)
                           : line > 0 ? (uint32_t)n / line * line : 0;
    const uint32_t v = (uint32_t)i, rows = line > 0 ? plane / line : 0;

    if (plane == 0 || v >= (uint32_t)n / plane * plane) return i;
    const uint32_t z = v / plane, y = v % plane / line, x = v % line;
    const uint32_t z0 = z / edge * edge, y0 = y / edge * edge;
    const uint32_t depth = (uint32_t)n / plane - z0, height = rows - y0;
    const uint32_t dz = depth < edge ? depth : edge;
    const uint32_t dy = height < edge ? height : edge;

    return (int64_t)z0 * plane + (int64_t)y0 * dz * line +
           (int64_t)x * dy * dz + (z - z0) * dy + (y - y0);
}

typedef struct sps_coarse sps_coarse;

typedef enum sps_coarse_array {
    SPS_COARSE_SCALE,         /* double, one for each row */
    SPS_COARSE_NEAR,          /* double, rows x vectors, row-major */
    SPS_COARSE_AGGREGATE,     /* int32_t, one for each node; -1 if in none */
    SPS_COARSE_BELOW          /* double, columns of T x vectors: near-null
                                 vectors of the next level */
} sps_coarse_array;

/* Operations of cycles, on matrices and blocks of any level. */
typedef struct sps_coarse_cycle {
    /* val[p] = r_i a_ij / c_j for the entries of A in doubles; r and c are n x
     * 1, and NULL stands for ones.  dtype is the type of val; if it is SPS_F32
     * the values are rounded to floats, and element `at` of `largest`, 0 at
     * first, becomes the largest magnitude before rounding, or NaN if there is
     * one. */
    sps_status (*weigh)(sps_context *ctx, const sps_csr *A, const sps_block *r,
                        const sps_block *c, sps_dtype dtype, void *val,
                        sps_block *largest, int at);
    /* val = the values of P - f diag(d) AP, on the pattern of AP, in doubles or
     * rounded to floats, with `largest` as in `weigh`.  P and AP are in
     * doubles, d is n x 1.  *within: whether AP has all entries of P; otherwise
     * the values are meaningless. */
    sps_status (*ahead)(sps_context *ctx, const sps_csr *P, const sps_csr *AP,
                        double f, const sps_block *d, sps_dtype dtype,
                        void *val, sps_block *largest, int at, bool *within);
    /* u_ij = d_i c_j r_ij for R in doubles and U in floats; c is in host
     * memory. */
    sps_status (*enter)(const sps_block *d, const double *c,
                        const sps_block *R, sps_block *U);
    /* R -= Q a for blocks in doubles, the squared norms of the columns of R in
     * S, and U as by `enter` from the new R, in one pass, if *served. */
    sps_status (*subtract)(const sps_block *Q, const sps_small *a, sps_block *R,
                           sps_small *S, const sps_block *d, const double *c,
                           sps_block *U, bool *served);
} sps_coarse_cycle;

/* What Lanczos steps need of other processes, whose columns are before and after
 * those of own rows. */
typedef struct spsi_coarse_across {
    int64_t first;            /* number of the first own row in the whole */
    int64_t low;              /* its column in A */
    /* Receives the elements of y, one for each column, that others own;
     * replaces *x by its sum over the processes; y and x are in the memory of
     * the level. */
    sps_status (*fill)(void *data, double *y);
    sps_status (*sum)(void *data, double *x);
    void *data;
} spsi_coarse_across;

/* The stages in the order of their use. */
typedef struct sps_coarsening {
    /* Called before and after a sequence of stages and products, between which
     * temporary memory is kept for reuse. */
    void (*begin)(sps_context *ctx);
    void (*end)(sps_context *ctx);
    /* Opens the finest level of A, which must outlive it. */
    sps_status (*open)(sps_context *ctx, const sps_csr_local *A,
                       sps_coarse **l_p);
    /* The matrix of the level has new values, possibly at another address, and
     * the same pattern. */
    sps_status (*renew)(sps_coarse *l, const sps_csr_local *A);
    /* Sets the nodes of the finest level, `block` rows each (the last node has
     * the rows that are left), and allocates `vectors` near-null vectors,
     * zero. */
    sps_status (*nodes)(sps_coarse *l, int block, int vectors);
    /* Sets near-null vectors `first` and following of the finest level to the
     * columns of X, or, if X is NULL, to the constant vector of each unknown of
     * a node. */
    sps_status (*near_null)(sps_coarse *l, int first, const sps_block *X);
    /* *box becomes that of nodes with these coordinates, d values for each
     * node, if all are below 1e300 (*finite).  The other function sets the
     * first near-null vectors to the rigid motions of these nodes. */
    sps_status (*box)(sps_coarse *l, const sps_block *coords,
                      spsi_coarse_box *box, bool *finite);
    sps_status (*motions)(sps_coarse *l, const sps_block *coords,
                          const spsi_coarse_box *box);
    /* Returns the matrix in doubles; valid until close. */
    const sps_csr *(*matrix)(const sps_coarse *l);
    /* As sps_csr_symmetric, for the matrix of the level. */
    sps_status (*symmetric)(sps_coarse *l, double tol, bool *symmetric,
                            double *difference);
    /* As spsi_row_kinds_count and spsi_rows_known, for the matrix of the
     * level, of which only integers come to host memory. */
    sps_status (*kinds)(sps_coarse *l, bool projected, sps_row_kinds *k);
    sps_status (*known)(sps_coarse *l, int b, int64_t *known);
    /* Sets a block of one column to spsi_diagonal_inverse of the diagonal, in
     * which an entry that is not stored is 0. */
    sps_status (*diagonal)(sps_coarse *l, sps_block *inverse,
                           sps_diagonal_kinds *k);
    /* Scales the matrix to unit diagonal.  *bad is the first nonempty row whose
     * diagonal entry, *value, is not positive and finite, or -1 if there is
     * none. */
    sps_status (*scale)(sps_coarse *l, bool finest, int64_t *bad,
                        double *value);
    /* Begins what `lanczos` computes for the matrix of the level, which then
     * waits for it; other stages may be called in between. */
    sps_status (*ahead_lanczos)(sps_coarse *l);
    /* Computes the coefficients of SPS_COARSE_STEPS steps of Lanczos, of which
     * `off` has one less (those after a breakdown are meaningless), and the
     * bound of the spectrum by row sums, of the filtered matrix if
     * `filtered`. */
    sps_status (*lanczos)(sps_coarse *l, bool filtered, double *diagonal,
                          double *off, double *bound);
    /* The same for own rows A of a matrix over several processes, of which the
     * level has the diagonal block; bound[0] and bound[1] are the largest row
     * sums on this process (spectrum.c). */
    sps_status (*lanczos_across)(sps_coarse *l, const sps_csr *A,
                                 const spsi_coarse_across *x, double *diagonal,
                                 double *off, double *bound);
    sps_status (*aggregate)(sps_coarse *l, int64_t *aggregates);
    /* Computes the tentative prolongation T and the near-null vectors of the
     * next level.  *columns: the number of columns of T.  *single: whether each
     * aggregate has one column. */
    sps_status (*tentative)(sps_coarse *l, bool again, int64_t *columns,
                            bool *single);
    /* Creates the filtered matrix if there are weak couplings. */
    sps_status (*filter)(sps_coarse *l, bool *filtered);
    /* Computes P = T - omega D_F^-1 (A_F T), with the filtered matrix F if
     * there is one, or P = T if not `smooth`. */
    sps_status (*prolong)(sps_coarse *l, bool smooth, double omega,
                          sps_csr **P_p);
    /* Computes P for own rows of a matrix over several processes, of which the
     * level has the diagonal block: F is A_F of these rows, `all` the T of all
     * its columns, from row `low` on that of this process.  For row row[t]
     * factor[t] is d^(-1/2), where d is its entry of D_F, or 0 where the scale
     * of the level is 0; other rows have the entries of D_F of the level. */
    sps_status (*smooth)(sps_coarse *l, const sps_csr *F, const sps_csr *all,
                         int64_t low, double omega, const int32_t *row,
                         const double *factor, int64_t rows, sps_csr **P_p);
    /* Returns the filtered matrix, or NULL. */
    const sps_csr *(*filtered)(const sps_coarse *l);
    /* Creates A B, unless this takes more than `most` multiplications: then
     * *C_p stays NULL. */
    sps_status (*multiply)(sps_context *ctx, const sps_csr *A,
                           const sps_csr *B, int64_t most, sps_csr **C_p);
    /* Frees T and the filtered matrix, which are no longer needed. */
    void (*drop)(sps_coarse *l);
    /* Creates the level below l from its matrix A, which must outlive it;
     * `single` as from `tentative`.  If *next_p is set already, only its
     * near-null vectors are renewed. */
    sps_status (*next)(sps_coarse *l, const sps_csr *A, bool single,
                       sps_coarse **next_p);
    /* Copies D^-1 to a block of one column. */
    sps_status (*inverse)(const sps_coarse *l, sps_block *d);
    /* most[0] is the largest scale, most[1] the largest inverse of a scale that
     * is not 0. */
    sps_status (*spread)(const sps_coarse *l, double most[2]);
    /* Computes the inverse of a small level as a csr of all entries; if *Z_p
     * exists it gets new values.  If not *regular, they are meaningless. */
    sps_status (*invert)(sps_coarse *l, sps_csr **Z_p, bool *regular);
    /* Copies an array of the level to host memory. */
    sps_status (*fetch)(const sps_coarse *l, sps_coarse_array which, void *to);
    /* Copies the scale and the first near-null vector of some rows to host
     * memory, two doubles each. */
    sps_status (*traits)(const sps_coarse *l, const int32_t *row, int64_t rows,
                         double *to);
    /* spsi_rows_outside, spsi_rows_pick and spsi_rows_replace (some_rows.h),
     * except that the copies of `pick` lie where A does. */
    sps_status (*outside)(sps_context *ctx, const sps_csr *A, int64_t first,
                          int64_t last, int32_t **row_p, int64_t *rows);
    sps_status (*pick)(sps_context *ctx, const sps_csr *A, const int32_t *row,
                       int64_t rows, sps_csr **B_p);
    sps_status (*replace)(sps_context *ctx, const sps_csr *A,
                          const spsi_placing *p, const sps_csr *B,
                          sps_csr **C_p);
    void (*close)(sps_coarse **l_p);
    sps_coarse_cycle cycle;
} sps_coarsening;

/* Returns the stages of the context's backend, or NULL if those of the host are
 * to be used. */
const sps_coarsening *spsi_coarsening(const sps_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
