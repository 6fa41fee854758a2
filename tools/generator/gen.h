/* SPDX-License-Identifier: BSD-3-Clause */
/* gen.h - generated matrices, row by row.
 *
 * Each row is a function of its number: nothing is assembled, so rows can be
 * written as a stream, in parallel, in constant memory (only rmat keeps its
 * graph in memory).  Random numbers are Philox4x32-10 keyed by (seed, thing),
 * where `thing` numbers what the number belongs to, so a matrix depends on its
 * command line only.
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
    GEN_POISSON7,    /* 7 points, finite volumes, Dirichlet on all sides
                        (with `neumann`: Neumann) */
    GEN_LAPLACE27,   /* Q1 hexahedra, Dirichlet on all sides, eliminated
                        (with `neumann`: Neumann) */
    GEN_ELASTICITY,  /* Q1 hexahedra, 3 unknowns per node, E 1, nu 0.3; the face
                        x = -1 is clamped and eliminated, the others (with
                        `free`: all) are free */
    GEN_CONVECTION,  /* poisson7 + upwind convection: nonsymmetric M-matrix */
    GEN_RMAT,        /* R-MAT graph .57 .19 .19 .05, no loops, no duplicates */
    GEN_BLOCKS,      /* square blocks of a given fill, at random positions */
    GEN_LEAST        /* any shape, known singular values (gen_least.c) */
} gen_kind;

/* What is written for a grid. */
typedef enum gen_mass {
    GEN_NO_MASS,     /* the matrix itself */
    GEN_LUMPED,      /* its mass matrix, density 1, diagonal */
    GEN_CONSISTENT   /* the integrals of products of the shape functions */
} gen_mass;

typedef struct gen_spec {
    gen_kind kind;
    gen_mass mass;
    int64_t n[3];        /* unknown nodes along x, y, z */
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
    bool jump;           /* coefficient 1 or 1e4, boxes of 8^3 elements in a
                            checkerboard */
    double aniso;        /* elements 1 x 1 x aniso */
    bool perturb;        /* every value random; rmat: random weights */
    uint64_t perturb_seed;
    double velocity;     /* convection: cell Peclet number along x; half of it
                            along y, a quarter along z */
    bool laplacian;      /* rmat: D - W + shift I instead of W */
    double shift;        /* grids: K + shift M, M the lumped mass matrix */
    double cond;         /* leastsquares: largest singular value over the
                            smallest that is not 0 */
    int64_t deficient;   /* leastsquares: singular values that are 0 */
    int64_t scatter[2];  /* set by gen_least_open */
    uint64_t seed;       /* rmat, blocks, leastsquares: of the pattern */
} gen_spec;

typedef struct gen {
    gen_spec spec;
    int64_t rows, columns;
    int64_t nnz;         /* both triangles */
    int64_t diagonal;    /* entries of nnz that lie on the diagonal */
    int64_t widest;      /* most entries in a row */
    bool symmetric;
    /* grids: integer parts of the element matrices, see gen_grid.c */
    double element[24][24];
    double part[3][8][8];
    /* rmat: the graph, both directions, rows ascending */
    int64_t *rowptr;
    int32_t *col;
} gen;

/* Whether the kind has nodes with coordinates. */
bool gen_is_grid(const gen_spec *spec);
/* Fills in the defaults. */
void gen_default(gen_spec *spec);
/* Reads "KIND SIZES" from the words at argv[0]; returns the number of words
 * read, 0 if the first is no kind, -1 with an error text. */
int gen_parse(gen_spec *spec, int argc, char **argv, char error[160]);
/* Reads one option of the generators ("-aniso 0.1"), with the same results. */
int gen_option(gen_spec *spec, int argc, char **argv, char error[160]);
/* The options above, one line each, for a help text; static. */
const char *gen_help(void);
/* false with an error text: the parameters are invalid, or no memory (then
 * error begins with "out of memory"). */
bool gen_open(const gen_spec *spec, gen *g, char error[160]);
void gen_close(gen *g);
/* Row i: columns ascending, values; returns the count (<= widest). */
int64_t gen_row(const gen *g, int64_t i, int32_t *col, double *val);
/* Only the number of its entries. */
int64_t gen_count(const gen *g, int64_t i);
/* Fills the caller's arrays, of rows + 1, nnz and nnz numbers. */
void gen_fill(const gen *g, int64_t *rowptr, int32_t *col, double *val);

/* Grids: number of nodes (or cells) and their coordinates, in units of an edge
 * along x; 0 for other kinds. */
int64_t gen_nodes(const gen *g);
double gen_coordinate(const gen *g, int64_t node, int axis);

/* Uniform in [-1, 1), a function of its arguments: Philox4x32-10. */
double gen_uniform(uint64_t seed, uint64_t thing, uint32_t what);
/* Four random words of 32 bits. */
void gen_philox(uint64_t seed, uint64_t thing, uint32_t what, uint32_t out[4]);

/* Used by gen_open, gen_row and gen_count. */
bool gen_grid_open(gen *g, char error[160]);
int64_t gen_grid_row(const gen *g, int64_t i, int32_t *col, double *val);
int64_t gen_grid_count(const gen *g, int64_t i);
void gen_grid_place(const gen *g, int64_t node, int64_t c[3]);
bool gen_mass_open(gen *g);             /* after gen_grid_open */
int64_t gen_mass_row(const gen *g, int64_t i, int32_t *col, double *val);
int64_t gen_mass_count(const gen *g, int64_t i);
double gen_mass_lumped(const gen *g, int64_t i);   /* its diagonal entry */
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
