/* SPDX-License-Identifier: BSD-3-Clause */
/* coarsening.h - the set-up of multigrid by aggregation where the matrix lies:
 * the stages of a level as operations of a backend.
 *
 * solvers/amg/ has the formulas of each stage and computes them on the host.  A
 * backend's results have the same bits: sums are taken in the same order, and
 * each product and each sum is rounded (no fused multiply-add).  Constants and
 * functions that both need are defined here.
 *
 * A level is the backend's own (sps_coarse); its matrices are csr's in the
 * memory of the backend. */
#ifndef SPS_COARSENING_H
#define SPS_COARSENING_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strong: c_ij >= theta min(m_i, m_j), for nodes of one row and of several. */
#define SPS_COARSE_THETA 0.3
#define SPS_COARSE_THETA_BLOCKS 0.1
/* A diagonal entry of a coarse matrix, relative to the unit diagonals that it
 * comes from, that is rounding only. */
#define SPS_COARSE_NOTHING 1e-14
/* The remainder of a near-null vector behind those before it, relative to the
 * longest one, below which it is left out. */
#define SPS_COARSE_RANK 1e-8
/* Entries of the inverse of a matrix of unit diagonal beyond LARGE mean that it
 * is singular; ||C b|| / ||b|| of a null vector is at most ZERO. */
#define SPS_COARSE_LARGE 1e11
#define SPS_COARSE_ZERO 1e-11
/* What filtering leaves of a diagonal entry, at least. */
#define SPS_COARSE_LEAST 0.1

enum {
    /* Mean number of strong neighbours from which phase 2 of aggregation wants
     * MANY of them, else FEW. */
    SPS_COARSE_DENSE_GRAPH = 5, SPS_COARSE_MANY = 4, SPS_COARSE_FEW = 2,
    SPS_COARSE_STEPS = 8,     /* of Lanczos */
    /* Sums: of CHUNK terms by LANES partial sums, term t to lane t % LANES in
     * ascending order; the upper half of the lanes is added to the lower one
     * until one is left.  Sums of chunks are terms again. */
    SPS_COARSE_CHUNK = 2048, SPS_COARSE_LANES = 256
};

/* Functions of both places; a backend may define what they are for it. */
#ifndef SPS_COARSE_FN
#define SPS_COARSE_FN static inline
#endif

/* T of an undecided node of a MIS-2: 30 bits of a hash (the finaliser of
 * splitmix64, Steele, Lea and Flood 2014), plus one, then its number. */
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

/* Component c of rigid motion q of a node in d dimensions at x: translation q <
 * d, else a rotation, u_a = -x_b, u_b = x_a for a pair a < b of axes. */
SPS_COARSE_FN double spsi_coarse_motion(const double *x, int d, int q, int c)
{
    const int a = q < d ? q : (q - d) / 2, b = q < d ? -1 : 1 + (q - d + 1) / 2;

    if (b < 0) return c == a;
    return c == a ? -x[b] : c == b ? x[a] : 0;
}

/* The box of the nodes: coordinates are taken relative to its middle, in units
 * of half its longest edge.  The middle and the edge are exact up to one
 * rounding, in whatever order nodes are looked at. */
typedef struct spsi_coarse_box {
    double low[3], high[3];
} spsi_coarse_box;

/* Coordinate x of axis a in these terms. */
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

typedef struct sps_coarse sps_coarse;

typedef enum sps_coarse_array {
    SPS_COARSE_SCALE,         /* double, of each row */
    SPS_COARSE_NEAR,          /* double, rows x vectors, row-major */
    SPS_COARSE_AGGREGATE      /* int32_t, of each node, or -1 */
} sps_coarse_array;

/* Stages in the order of their use; amg.h has what each computes. */
typedef struct sps_coarsening {
    /* Around a sequence of stages and products: work memory is kept from one to
     * the next in between. */
    void (*begin)(sps_context *ctx);
    void (*end)(sps_context *ctx);
    /* The finest level; A must outlive it. */
    sps_status (*open)(sps_context *ctx, const sps_csr_local *A,
                       sps_coarse **l_p);
    /* Its matrix has new values, perhaps elsewhere; same pattern. */
    sps_status (*renew)(sps_coarse *l, const sps_csr_local *A);
    /* Nodes of the finest level, of `block` rows, the last one of what is left;
     * room for near-null vectors, zero. */
    sps_status (*nodes)(sps_coarse *l, int block, int vectors);
    /* Near-null vectors first .. of the finest level: the columns of X; NULL:
     * the constant of each unknown of a node. */
    sps_status (*near_null)(sps_coarse *l, int first, const sps_block *X);
    /* The first ones: the rigid motions of nodes at these coordinates, of which
     * each is d numbers; *finite: all are below 1e300. */
    sps_status (*motions)(sps_coarse *l, const sps_block *coords, bool *finite);
    /* In doubles; valid until close. */
    const sps_csr *(*matrix)(const sps_coarse *l);
    /* As sps_csr_symmetric. */
    sps_status (*symmetric)(sps_coarse *l, double tol, bool *symmetric,
                            double *difference);
    /* *bad: the first row whose diagonal entry, *value, is not positive and
     * finite, in a row that is not empty; -1: none. */
    sps_status (*scale)(sps_coarse *l, bool finest, int64_t *bad,
                        double *value);
    /* The coefficients of SPS_COARSE_STEPS steps, those behind a breakdown
     * meaningless, and the bound by row sums; of the filtered matrix if that
     * was made. */
    sps_status (*lanczos)(sps_coarse *l, bool filtered, double *diagonal,
                          double *off, double *bound);
    sps_status (*aggregate)(sps_coarse *l, int64_t *aggregates);
    /* T and the near-null vectors behind it; *columns of T; *single: each
     * aggregate has one. */
    sps_status (*tentative)(sps_coarse *l, bool again, int64_t *columns,
                            bool *single);
    /* Makes the filtered matrix if there are weak couplings. */
    sps_status (*filter)(sps_coarse *l, bool *filtered);
    /* P = T - omega D_F^-1 (A_F T), F the filtered matrix if there is one; not
     * smooth: T. */
    sps_status (*prolong)(sps_coarse *l, bool smooth, double omega,
                          sps_csr **P_p);
    /* Multiplications of A B. */
    sps_status (*products)(sps_context *ctx, const sps_csr *A,
                           const sps_csr *B, int64_t *count);
    /* T and the filtered matrix are needed no more. */
    void (*drop)(sps_coarse *l);
    /* The level below l, of the matrix A, which must outlive it; single: as
     * from `tentative`.  With *next_p set, its near-null vectors alone. */
    sps_status (*next)(sps_coarse *l, const sps_csr *A, bool single,
                       sps_coarse **next_p);
    /* D^-1 as a block of one column. */
    sps_status (*inverse)(const sps_coarse *l, sps_block *d);
    /* The largest scale and the largest inverse of one that is not 0. */
    sps_status (*spread)(const sps_coarse *l, double most[2]);
    /* val[p] = r_i a_ij / c_j for the entries of A, doubles; r, c: n x 1, NULL:
     * 1.  dtype: of val, rounded to floats by SPS_F32, and then *largest: the
     * largest magnitude before it is rounded, NaN if there is one. */
    sps_status (*weigh)(sps_context *ctx, const sps_csr *A, const sps_block *r,
                        const sps_block *c, sps_dtype dtype, void *val,
                        double *largest);
    /* u_ij = d_i c_j r_ij: doubles R, floats U, c in host memory. */
    sps_status (*enter)(const sps_block *d, const double *c,
                        const sps_block *R, sps_block *U);
    /* The inverse of a small level, solvers/amg/coarsest.c, as a csr of all
     * entries; one that exists gets new values.  Not *regular: they mean
     * nothing. */
    sps_status (*invert)(sps_coarse *l, sps_csr **Z_p, bool *regular);
    /* An array to host memory. */
    sps_status (*fetch)(const sps_coarse *l, sps_coarse_array which, void *to);
    void (*close)(sps_coarse **l_p);
} sps_coarsening;

/* The stages of the context's backend; NULL: those of the host are used. */
const sps_coarsening *spsi_coarsening(const sps_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
