/* SPDX-License-Identifier: BSD-3-Clause */
/* rates.h - the rates of a machine from which times are predicted: one record
 * for each context, filled in by the backend when it opens.  What was fitted on
 * one GPU is scaled by `work` if it is a time of instructions.  Factorisations,
 * and set-ups on the host, are predicted in seconds of one core: `core` is the
 * same for all contexts, so that choices repeat on all machines.
 *
 * The record influences choices (kernels, formats of cuSPARSE, degrees of
 * polynomials, whether a matrix is factored), never the order of the sums of a
 * kernel. */
#ifndef SPS_RATES_H
#define SPS_RATES_H

/* One core of the host. */
typedef struct sps_core {
    double copy;        /* bytes/s of a copy, read plus written */
    double multiply;    /* time of a multiply-add of a sparse product, beside
                           that of its bytes, in bytes of a copy */
    double iteration;   /* seconds that an iteration takes at least */
    double dense_factor;/* n^3 / s of dense factors L D L' */
    double dense_eigen; /* n^3 / s of all eigenpairs of a dense matrix */
    struct {            /* the library of sparse factors, in seconds */
        double analysed_row, analysed_entry;  /* of A */
        double dissected_entry;  /* of A, where it is ordered by nested
                                    dissection as well */
        double row, entry, flop; /* the factorisation: of A, of the factors */
        double solve_row, solve_entry;    /* a solve: of A, of the factors */
        double column_row, column_entry;  /* for each of its columns */
    } library;
    struct {            /* factors computed row by row, in seconds */
        double row, entry;       /* of A */
        double fill;             /* an entry of L */
        double flop;             /* a multiply-add */
        double least_row;        /* a row of a factorisation with almost no
                                    dropping, at least */
    } rows;
    struct {            /* complete factors of a small matrix, in seconds */
        double dense_entry;      /* n^2 of these as a dense matrix, */
        double dense_cube;       /* and n^3; half of them if A is definite */
        double row, entry;       /* as a sparse one, */
        double square;           /* and the square of the length of a row */
    } small;
    struct {            /* a hierarchy of coarse matrices, in nanoseconds */
        double fixed, row, entry;         /* of A */
    } hierarchy;
} sps_core;

typedef struct sps_machine {
    double copy;        /* bytes/s of a large copy, read plus written */
    double sync;        /* seconds that an iteration loses to synchronisation
                           with the host, small matrices there, and the launches
                           that follow */
    /* For GPUs; the host leaves them zero. */
    double launch;      /* seconds from one kernel to the next */
    double sms;         /* multiprocessors */
    double work;        /* time of instructions of the whole GPU, relative to
                           the one on which kernels were fitted */
    double slow_fma;    /* seconds of one multiply-add in double precision; 0
                           if their rate limits no product */
    double l2_step;     /* seconds of two dependent loads, from L2 */
    double memory_step; /* seconds of the same loads from device memory */
    double kept;        /* bytes of the operands of a product that stay in L2
                           until the next one */
    double l2_lines;    /* effective bytes of L2 for rows of whole lines */
    double l2_short;    /* the same for rows shorter than a line */
    /* Gathers of rows, in multiples of copy. */
    double l2;          /* from L2 */
    double memory;      /* from device memory */
    double l2_row;      /* from L2, per byte of a row: a limit of requests */
    double memory_row;  /* from device memory, per byte of a row */
    double link;        /* bytes/s of a copy from page-locked host memory */
    double level;       /* seconds of a level of a triangular solve */
    struct {            /* a hierarchy of coarse matrices, in nanoseconds, to
                           be multiplied by `work` */
        double fixed, row, entry;         /* of A */
    } hierarchy;
    sps_core core;      /* of the host, for every device */
} sps_machine;

/* Returns the record of a core on which the constants were fitted.
 *
 * library: factorisations of 2 000 to 90 000 unknowns and 10^5 to 3 10^10
 * operations by MUMPS, with AVX-512.  For small fronts the work for each row
 * and entry of the factors dominates, for large ones the arithmetic.
 * rows: a multiply-add took 1.2 ns on a Xeon and 1.8 ns on an EPYC.
 * small: fill and operations of sparse factors grow with the square of the
 * length of a row.
 * multiply, hierarchy: set-ups and solves of 20 systems with 16 columns, in
 * processor seconds, where a copy runs at 10 GB/s. */
static inline sps_core spsi_core_fitted(void)
{
    const sps_core c = {
        .copy = 1e10, .multiply = 1, .iteration = 4e-5, .dense_factor = 3e9,
        .dense_eigen = 1e8,
        .library = { .analysed_row = 1.5e-6, .analysed_entry = 5e-8,
                     .dissected_entry = 3e-6, .row = 2e-6, .entry = 4e-8,
                     .flop = 0.8e-10, .solve_row = 1e-6, .solve_entry = 2e-9,
                     .column_row = 1.2e-7, .column_entry = 4e-10 },
        .rows = { .row = 8e-7, .entry = 1e-7, .fill = 1e-7, .flop = 1.6e-9,
                  .least_row = 1e-5 },
        .small = { .dense_entry = 3e-9, .dense_cube = 2.2e-11, .row = 2e-7,
                   .entry = 4e-8, .square = 5e-9 },
        .hierarchy = { .fixed = 2e7, .row = 1000, .entry = 150 },
    };

    return c;
}

#endif
