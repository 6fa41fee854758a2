/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the option table of `solve`.  Adding an option is one entry
 * here and one member of cli_values. */
#include "cli.h"

#include <limits.h>
#include <float.h>

#define AT(member) offsetof(cli_values, member)
#define PROBLEM "Problem"
#define EIGEN "Eigenvalues"
#define METHOD "Method"
#define STOPPING "Stopping"
#define MACHINE "Machine"
#define OUTPUT "Output"
#define OTHER "Other"

const cli_option cli_options[] = {
    {"A", "FILE", NULL, CLI_FILE, AT(A), 0, 0, NULL, PROBLEM,
     "the matrix: Matrix Market coordinate or array file, plain or gzip; - is "
     "standard input"},
    {"B", "FILE", NULL, CLI_FILE, AT(B), 0, 0, NULL, PROBLEM,
     "right-hand sides, one per column, array or coordinate file; without it "
     "they are drawn from the seed, uniform in [-1/2, 1/2)"},
    {"nrhs", "K", "1", CLI_INT, AT(nrhs), 1, 1024, NULL, PROBLEM,
     "number of right-hand sides to draw when there is no -B"},
    {"x0", "FILE", NULL, CLI_FILE, AT(x0), 0, 0, NULL, PROBLEM,
     "initial guess, the shape of X; zero without it"},
    {"nullspace", "WHICH", "auto", CLI_TEXT, AT(nullspace), 0, 0,
     "none auto constant components", PROBLEM,
     "null space of a singular A, projected out of B and X: none, auto "
     "(found by zero row sums), constant, components (one constant for each "
     "connected component), or a file of basis vectors"},
    {"laplacian", NULL, NULL, CLI_FLAG, AT(laplacian), 0, 0, NULL, PROBLEM,
     "A is the adjacency matrix of a graph, with weights of 0 or more: work on "
     "its Laplacian D - W, direction and self-loops dropped"},
    {"rigid-body", "COORDS", NULL, CLI_FILE, AT(rigid_body), 0, 0, NULL,
     PROBLEM, "the null space is that of an unsupported structure: its rigid "
     "motions, from an array file of a row of 2 or 3 coordinates for each "
     "node; the unknowns of a node stand side by side in A"},
    {"lenient", NULL, NULL, CLI_FLAG, AT(lenient), 0, 0, NULL, PROBLEM,
     "accept a symmetric file with entries in both triangles when they agree"},
    {"strict", NULL, NULL, CLI_FLAG, AT(strict), 0, 0, NULL, PROBLEM,
     "refuse duplicate entries, which are summed otherwise"},
    {"allow-nonfinite", NULL, NULL, CLI_FLAG, AT(allow_nonfinite), 0, 0, NULL,
     PROBLEM, "read NaN and infinity as they stand"},
    {"maxmem", "BYTES", "0", CLI_SIZE, AT(maxmem), 0, 0, NULL, PROBLEM,
     "refuse an input that needs more memory than this (K, M, G or T may "
     "follow the number); 0 means no limit"},

    {"eigs", "K", NULL, CLI_INT, AT(eigs), 1, 1024, NULL, EIGEN,
     "find K eigenpairs of A x = lambda M x instead of solving A X = B; of each "
     "the report tells the error bound (+-), the residual ||A x - lambda M x|| in "
     "units of |lambda| ||M x||, and the backward error, in those of (||A|| + "
     "|lambda| ||M||) ||x||; -o writes the eigenvectors, -x0 may hold guesses of "
     "them"},
    {"M", "FILE", NULL, CLI_FILE, AT(mass), 0, 0, NULL, EIGEN,
     "the mass matrix, symmetric positive definite; the identity without it"},
    {"which", "WHICH", "smallest", CLI_CHOICE, AT(which), 0, 0,
     "smallest largest nearest", EIGEN,
     "which end of the spectrum, or those nearest to -sigma"},
    {"sigma", "X", "0", CLI_REAL, AT(sigma), -DBL_MAX, DBL_MAX, NULL, EIGEN,
     "find the eigenvalues nearest to X"},
    {"Y", "FILE", NULL, CLI_FILE, AT(constraints), 0, 0, NULL, EIGEN,
     "vectors that the eigenvectors are to be M-orthogonal to"},
    {"block", "M", "0", CLI_INT, AT(block), 0, 256, NULL, EIGEN,
     "columns worked on at a time; 0 takes the pairs asked and some to guard "
     "them, 40 at most"},
    {"verify-count", NULL, NULL, CLI_FLAG, AT(verify_count), 0, 0, NULL, EIGEN,
     "look for missed eigenvalues afterwards"},

    {"solver", "NAME", "auto", CLI_CHOICE, AT(solver), 0, 0,
     "auto @solver @eigensolver",
     METHOD, "iterative method; auto chooses and the report says why"},
    {"precond", "NAME", "auto", CLI_CHOICE, AT(precond), 0, 0,
     "auto @precond", METHOD, "preconditioner"},
    {"precond-block", "N", "0", CLI_INT, AT(precond_block), 0, 64, NULL,
     METHOD, "block size of block_jacobi; 0 finds it in the pattern"},
    {"precond-degree", "N", "0", CLI_INT, AT(precond_degree), 0, 100, NULL,
     METHOD, "degree of the chebyshev polynomial; 0 chooses it"},
    {"precision", "WHICH", "auto", CLI_CHOICE, AT(precision), 0, 0,
     "auto double mixed", METHOD,
     "mixed: block_cg and cg work in single precision and refine, bases of "
     "gmres and block_gmres and values of fsai, isai, block_jacobi, ilu0 and "
     "ic0 are stored in it (those of ilut stay double); residuals and "
     "tolerances stay double; solver auto does so where that pays"},
    {"basis", "WHICH", "auto", CLI_CHOICE, AT(basis), 0, 0,
     "auto double single", METHOD,
     "how gmres and block_gmres store a basis; auto as -precision"},
    {"precond-precision", "WHICH", "auto", CLI_CHOICE, AT(precond_precision),
     0, 0, "auto double single", METHOD,
     "how fsai, isai, block_jacobi, ilu0 and ic0 store their values; auto as "
     "-precision"},
    {"scale", "WHICH", "auto", CLI_CHOICE, AT(scale), 0, 0,
     "auto none equilibrate match", METHOD,
     "before ilut: equilibrate rows and columns, or match, which moves large "
     "entries to the diagonal as well; the system solved stays the same"},
    {"reorder", "WHICH", "none", CLI_CHOICE, AT(reorder), 0, 0,
     "none rcm morton auto", METHOD,
     "put the unknowns in another order to solve A X = B: rcm, morton (along a "
     "curve through the nodes, see -coords), or auto: rcm where faster "
     "products are predicted; seen in the report alone.  Eigenvalues keep the "
     "order of the file"},
    {"coords", "FILE", NULL, CLI_FILE, AT(coords), 0, 0, NULL, METHOD,
     "where the nodes are, for -reorder morton: an array file of a row of 1 to "
     "3 coordinates for each node, whose unknowns stand side by side in A"},
    {"order", "WHICH", "auto", CLI_CHOICE, AT(order), 0, 0,
     "auto none rcm degree", METHOD,
     "before ilut: order the unknowns for small bandwidth (rcm) or little "
     "fill (degree)"},
    {"dense", "WHETHER", "auto", CLI_CHOICE, AT(dense), 0, 0, "auto never",
     METHOD, "auto lets -solver auto end with dense factors where n is at most "
     "2000; never forbids it"},
    {"fsai-power", "N", "1", CLI_INT, AT(fsai_power), 1, 8, NULL, METHOD,
     "fsai takes the pattern of this power of A"},
    {"droptol", "X", "1e-3", CLI_REAL, AT(droptol), 0, 1, NULL, METHOD,
     "ilut drops entries below this part of their row"},
    {"fill", "X", "10", CLI_REAL, AT(fill), 0, 1e6, NULL, METHOD,
     "a row of L, and one of U, of ilut keeps at most this many times the mean "
     "row of A"},
    {"restart", "M", "50", CLI_INT, AT(restart), 1, 1000, NULL, METHOD,
     "steps of a cycle of gmres; takes memory for as many blocks of right-hand "
     "sides"},
    {"flexible", NULL, NULL, CLI_FLAG, AT(flexible), 0, 0, NULL, METHOD,
     "gmres lets the preconditioner change from step to step, for twice the "
     "memory"},
    {"recycle", "R", "0", CLI_INT, AT(recycle), 0, 256, NULL, METHOD,
     "vectors that block_gcrodr keeps from cycle to cycle; 0 means two for "
     "each right-hand side, 10 to 256"},
    {"bicgstab-l", "L", "2", CLI_INT, AT(bicgstab_l), 1, 8, NULL, METHOD,
     "degree of the stabilising polynomial of bicgstab; an iteration is 2 L "
     "products"},
    {"idr-s", "S", "4", CLI_INT, AT(idr_s), 1, 16, NULL, METHOD,
     "dimension of the shadow space of idr"},
    {"rank-tol", "X", "1e-10", CLI_REAL, AT(rank_tol), 0, 1, NULL, METHOD,
     "block methods drop a search direction below this relative singular "
     "value"},

    {"rtol", "X", "1e-8", CLI_REAL, AT(rtol), 0, 1, NULL, STOPPING,
     "relative tolerance of every column"},
    {"atol", "X", "0", CLI_REAL, AT(atol), 0, DBL_MAX, NULL, STOPPING,
     "absolute tolerance; a column is done below the larger of the two"},
    {"norm", "WHICH", "rhs", CLI_CHOICE, AT(norm), 0, 0,
     "rhs backward start absolute", STOPPING,
     "what the residual is compared with: rhs, rtol ||b||; backward, rtol "
     "(||A|| ||x|| + ||b||); start, rtol times the first residual; absolute, "
     "-atol alone"},
    {"maxit", "N", "10000", CLI_INT, AT(maxit), 0, INT_MAX, NULL, STOPPING,
     "iterations at most"},
    {"maxtime", "S", "0", CLI_REAL, AT(maxtime), 0, 1e9, NULL, STOPPING,
     "seconds of iterating at most, the best iterate is kept; 0 means no "
     "limit"},

    {"device", "WHERE", "auto", CLI_TEXT, AT(device), 0, 0, "auto cpu cuda",
     MACHINE,
     "auto (a GPU when there is one), cpu, cuda, or cuda:N for the GPU of "
     "that number"},
    {"kernel", "NAME", "auto", CLI_TEXT, AT(kernel), 0, 0,
     "auto measure @kernel.cpu", MACHINE,
     "sparse product: auto (predicted best), measure (timed best), or a name "
     "of -list"},
    {"wisdom", "FILE", NULL, CLI_FILE, AT(wisdom), 0, 0, NULL, MACHINE,
     "remember the measured choices of -kernel measure in this file"},
    {"strict-nonfinite", NULL, NULL, CLI_FLAG, AT(strict_nonfinite), 0, 0,
     NULL, MACHINE, "no kernel by which a NaN or infinity of X reaches rows of "
     "A X that do not store its column"},
    {"threads", "N", "0", CLI_INT, AT(threads), 0, 4096, NULL, MACHINE,
     "host threads; 0 means every core this process may use"},
    {"seed", "N", "1", CLI_NATURAL, AT(seed), 0, 0, NULL, MACHINE,
     "of every random number; the same seed gives the same numbers on every "
     "machine"},

    {"o", "FILE", NULL, CLI_FILE, AT(out), 0, 0, NULL, OUTPUT,
     "write X as Matrix Market array file; .gz compresses, - is standard "
     "output"},
    {"json", "FILE", NULL, CLI_FILE, AT(json), 0, 0, NULL, OUTPUT,
     "write the report as JSON; - is standard output, and the text report "
     "goes to standard error then"},
    {"monitor", "=FILE", NULL, CLI_OPTIONAL, AT(monitor), 0, 0, NULL, OUTPUT,
     "write the residuals of every iteration as a table to the file, or to "
     "standard error"},
    {"plot", "FILE.svg", NULL, CLI_FILE, AT(plot), 0, 0, NULL, OUTPUT,
     "draw the history of the residuals: worst, median and best column, or "
     "with -eigs each pair"},
    {"explain", NULL, NULL, CLI_FLAG, AT(explain), 0, 0, NULL, OUTPUT,
     "print which kernels bid for the matrix, and why the winner won"},
    {"dry-run", NULL, NULL, CLI_FLAG, AT(dry_run), 0, 0, NULL, OUTPUT,
     "read and set up but do not solve; print the memory that a run will "
     "take, and the bids"},
    {"quiet", NULL, NULL, CLI_FLAG, AT(quiet), 0, 0, NULL, OUTPUT,
     "no report and no progress line; errors are still told"},

    {"config", "FILE", NULL, CLI_FILE, AT(config), 0, 0, NULL, OTHER,
     "read options from lines of the form name = value; the command line "
     "wins"},
    {"list", NULL, NULL, CLI_FLAG, AT(list), 0, 0, NULL, OTHER,
     "list solvers, preconditioners and kernels of this machine"},
    {"version", NULL, NULL, CLI_FLAG, AT(version), 0, 0, NULL, OTHER,
     "print version, device and state of the CUDA module"},
    {"help", "=WHAT", NULL, CLI_OPTIONAL, AT(help), 0, 0, "man completion",
     OTHER,
     "print this text; -help=man prints the manual page, -help=completion "
     "the completion for bash"},
    {NULL, NULL, NULL, CLI_FLAG, 0, 0, 0, NULL, NULL, NULL},
};
