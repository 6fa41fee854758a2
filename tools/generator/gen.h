/* SPDX-License-Identifier: BSD-3-Clause */
/* gen.h - generated matrices, row by row.
 *
 * Each row is a function of its number: nothing is assembled, so rows can be
 * written as a stream, in parallel, in constant memory (only rmat keeps its
 * graph in memory).  Random numbers are Philox4x32-10 keyed by (seed, thing),
 * where `thing` is the index of the face, element, edge or entry for which the
 * number is drawn, so a matrix depends on its command line only.
 *
 * Symmetric kinds are symmetric bit for bit: (i, j) and (j, i) sum the same
 * products in the same order.
 *
 * With perturb a symmetric positive definite matrix remains so: it is a sum
 * over faces or elements of coefficient * (positive semidefinite part), and
 * only the coefficients change, by random factors in [3/4, 5/4).  poisson7: one
 * for each face; laplace27: three for each element (a diagonal conductivity
 * tensor, so that entries that vanish on cubes become nonzero); elasticity: one
 * modulus E for each element. */
#ifndef GEN_H
#define GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gen_kind {
    GEN_POISSON7,    /* 7 points, finite volumes, Dirichlet conditions on all
                        sides (with `neumann`: Neumann) */
    GEN_LAPLACE27,   /* Q1 hexahedra, Dirichlet conditions on all sides,
                        eliminated (with `neumann`: Neumann) */
    GEN_ELASTICITY,  /* Q1 hexahedra, 3 unknowns per node, Young's modulus 1,
                        Poisson's ratio 0.3; the face x = -1 is clamped and
                        eliminated, the others (with `free`: all) are free */
    GEN_CONVECTION,  /* poisson7 with upwind convection: a nonsymmetric
                        M-matrix */
    GEN_RMAT,        /* R-MAT graph with probabilities .57 .19 .19 .05, no
                        loops, no duplicates */
    GEN_BLOCKS,      /* square blocks of a given fill, at random positions */
    GEN_LEAST        /* any shape, known singular values (gen_least.c) */
} gen_kind;

/* Which matrix is written for a grid. */
typedef enum gen_mass {
    GEN_NO_MASS,     /* the matrix itself */
    GEN_LUMPED,      /* its diagonal mass matrix, density 1 */
    GEN_CONSISTENT   /* its mass matrix of integrals of products of the shape
                        functions */
} gen_mass;

typedef struct gen_spec {
    gen_kind kind;
    gen_mass mass;
    int64_t n[3];        /* number of nodes with unknowns along x, y, z */
    int scale;           /* rmat: 2^scale vertices */
    int64_t edges;       /* rmat: edges drawn for each vertex */
    int64_t block;       /* blocks: rows of a block */
    int64_t per_row;     /* blocks: blocks in a row of blocks */
    double fill;         /* blocks: fraction of a block's entries that are
                            stored */
    bool free;           /* elasticity: no face is clamped; positive
                            semidefinite, six rigid body motions */
    bool neumann;        /* poisson7, laplace27: no boundary values, zero row
                            sums; positive semidefinite, the constant is the
                            null space */
    bool jump;           /* coefficient 1 or 1e4, in boxes of 8^3 elements in a
                            checkerboard pattern */
    double aniso;        /* elements are bricks of 1 x 1 x aniso */
    bool perturb;        /* random coefficients; for rmat random weights */
    uint64_t perturb_seed;
    double velocity;     /* convection: cell Peclet number along x; half of it
                            along y, a quarter along z */
    bool laplacian;      /* rmat: D - W + shift I instead of W */
    double shift;        /* grids: K + shift M, M the lumped mass matrix */
    double cond;         /* leastsquares: largest singular value over the
                            smallest that is not 0 */
    int64_t deficient;   /* leastsquares: number of singular values that are
                            0 */
    int64_t scatter[2];  /* leastsquares: multipliers that permute the d_j and
                            the columns; set by gen_least_open */
    uint64_t seed;       /* rmat, blocks, leastsquares: seed of the pattern */
} gen_spec;

typedef struct gen {
    gen_spec spec;
    int64_t rows, columns;
    int64_t nnz;         /* number of entries, both triangles */
    int64_t diagonal;    /* number of entries on the diagonal */
    int64_t widest;      /* largest number of entries in a row */
    bool symmetric;
    /* for grids: integer parts of the element matrices (gen_grid.c) */
    double element[24][24];
    double part[3][8][8];
    /* for rmat: the graph, edges in both directions, rows ascending */
    int64_t *rowptr;
    int32_t *col;
} gen;

/* Returns whether the kind has nodes with coordinates. */
bool gen_is_grid(const gen_spec *spec);
/* Sets all options to their defaults. */
void gen_default(gen_spec *spec);
/* Reads "KIND SIZES" from the words at argv[0].  Returns the number of words
 * read, 0 if the first word is no kind, or -1 with a text in error. */
int gen_parse(gen_spec *spec, int argc, char **argv, char error[160]);
/* Writes a text about a word that is neither a kind nor an option. */
void gen_unknown(const char *word, char error[160]);
/* Reads one option of the generators ("-aniso 0.1") at argv[0].  Returns the
 * number of words read, 0 if it is no option, or -1 with a text in error. */
int gen_option(gen_spec *spec, int argc, char **argv, char error[160]);
/* Returns a static help text for the options above, one line each. */
const char *gen_help(void);
/* Prepares the rows.  Returns false with a text in error if the parameters are
 * invalid or there is no memory (then the text begins with "out of memory"). */
bool gen_open(const gen_spec *spec, gen *g, char error[160]);
void gen_close(gen *g);
/* Writes row i, columns ascending, with values; returns its number of entries,
 * which is at most widest. */
int64_t gen_row(const gen *g, int64_t i, int32_t *col, double *val);
/* Returns only the number of entries of row i. */
int64_t gen_count(const gen *g, int64_t i);
/* Fills the caller's arrays, which have rows + 1, nnz and nnz elements. */
void gen_fill(const gen *g, int64_t *rowptr, int32_t *col, double *val);

/* Rows that are divided among `size` processes: returns the first row of
 * process `rank`, and the number of rows for rank = size.  Shares have about
 * equal numbers of rows, of rmat of rows + entries; nodes of 2, 3 and 6
 * unknowns are not divided where there are enough rows. */
int64_t gen_share(const gen *g, int rank, int size);
/* Writes rowptr[0 .. count] of rows first .. first+count-1, which begin at 0,
 * and returns the number of their entries. */
int64_t gen_count_rows(const gen *g, int64_t first, int64_t count,
                       int64_t *rowptr);
/* Writes the entries of these rows.  Returns false if there is no memory. */
bool gen_fill_rows(const gen *g, int64_t first, int64_t count,
                   const int64_t *rowptr, int64_t *col, double *val);

/* For grids: return the number of nodes (or cells) and their coordinates, in
 * units of an element's edge along x; 0 for other kinds. */
int64_t gen_nodes(const gen *g);
double gen_coordinate(const gen *g, int64_t node, int axis);

/* gen_draw.c: returns a number uniform in [-1, 1), a function of the arguments
 * (Philox4x32-10). */
double gen_uniform(uint64_t seed, uint64_t thing, uint32_t what);
/* Writes four random words of 32 bits. */
void gen_philox(uint64_t seed, uint64_t thing, uint32_t what, uint32_t out[4]);

/* Functions of the kinds, called by gen_open, gen_row and gen_count. */
bool gen_grid_open(gen *g, char error[160]);
int64_t gen_grid_row(const gen *g, int64_t i, int32_t *col, double *val);
int64_t gen_grid_count(const gen *g, int64_t i);
void gen_grid_place(const gen *g, int64_t node, int64_t c[3]);
/* gen_mass_open is called after gen_grid_open. */
bool gen_mass_open(gen *g);
int64_t gen_mass_row(const gen *g, int64_t i, int32_t *col, double *val);
int64_t gen_mass_count(const gen *g, int64_t i);
/* Returns the diagonal entry of the lumped mass matrix. */
double gen_mass_lumped(const gen *g, int64_t i);
bool gen_blocks_open(gen *g, char error[160]);
int64_t gen_blocks_row(const gen *g, int64_t i, int32_t *col, double *val);
int64_t gen_blocks_count(const gen *g, int64_t i);
bool gen_least_open(gen *g, char error[160]);
int64_t gen_least_row(const gen *g, int64_t i, int32_t *col, double *val);
int64_t gen_least_count(const gen *g, int64_t i);
bool gen_rmat_open(gen *g, char error[160]);
int64_t gen_rmat_row(const gen *g, int64_t i, int32_t *col, double *val);
int64_t gen_rmat_count(const gen *g, int64_t i);

#endif
