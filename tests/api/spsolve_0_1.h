/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spsolve.h - libspsolve: sparse iterative solvers for many right-hand sides.
 *
 * A solver is mathematics on blocks: n x k matrices whose k columns are the
 * right-hand sides, stored row-major so that one sparse product serves all of
 * them.  The order of use is
 *
 *     context -> csr -> operator -> (precond) -> solver -> linear -> result
 *
 * Conventions that hold everywhere:
 *  - every function that can fail returns sps_status; SPS_OK is 0.  The text
 *    of the last failure is sps_context_error(ctx).
 *  - outputs are set only on success; destroy functions take the address of
 *    the handle, accept NULL inside and leave NULL there.
 *  - the library prints nothing, installs no signal handler, has no global
 *    state.  A context belongs to one thread at a time; any number of
 *    contexts may work at once.  sps_cancel() alone may be called from
 *    another thread or from a signal handler.
 *  - not converging is not an error: the status is SPS_OK and
 *    sps_result.stop says why.
 *  - "place" is SPS_HOST or SPS_CUDA.  A context has one place; blocks and
 *    operators live there.
 */
#ifndef SPSOLVE_H
#define SPSOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_VERSION_MAJOR 0
#define SPS_VERSION_MINOR 1
#define SPS_VERSION_PATCH 0

/* ------------------------------------------------------------------ codes */

/** Status of a call: name, number, text.  Numbers are stable. */
#define SPS_STATUS_LIST(X)                                                     \
    X(OK, 0, "success")                                                        \
    X(EINVAL, 1, "invalid argument")                                           \
    X(ESHAPE, 2, "shapes do not match")                                        \
    X(EMATRIX, 3, "the matrix is not usable")                                  \
    X(EUNFIT, 4, "the method does not fit the problem")                        \
    X(EPARSE, 5, "the file is not valid")                                      \
    X(EIO, 6, "the file could not be read or written")                         \
    X(ENOMEM, 7, "out of host memory")                                         \
    X(EDEVMEM, 8, "out of device memory")                                      \
    X(EDEVICE, 9, "the GPU failed")                                            \
    X(EABSENT, 10, "not built in or not present")                              \
    X(EUSER, 11, "a callback of the caller failed")                            \
    X(EBUG, 12, "internal error, please report")

typedef enum sps_status {
#define SPS_X(name, number, text) SPS_##name = number,
    SPS_STATUS_LIST(SPS_X)
#undef SPS_X
} sps_status;

/** Why a solve ended: name, number, text.  Positive: converged. */
#define SPS_STOP_LIST(X)                                                       \
    X(RUNNING, 0, "running")                                                   \
    X(CONVERGED, 1, "converged")                                               \
    X(MAX_ITERATIONS, -1, "iteration limit reached")                           \
    X(MAX_TIME, -2, "time limit reached")                                      \
    X(STAGNATED, -3, "stagnated: no further progress")                         \
    X(BREAKDOWN, -4, "numerical breakdown")                                    \
    X(INDEFINITE, -5, "the matrix is not positive definite")                   \
    X(NOT_FINITE, -6, "NaN or infinity met")                                   \
    X(SINGULAR, -7, "the matrix is singular and the system inconsistent")      \
    X(INTERRUPTED, -8, "interrupted")                                          \
    X(PRECOND_INDEFINITE, -9, "the preconditioner is not positive definite")   \
    X(ROUNDING, -10, "limited by rounding")                                    \
    X(MASS_INDEFINITE, -11, "the mass matrix is not positive definite")        \
    X(MISSED, -12, "there are more eigenvalues between those found")

typedef enum sps_stop {
#define SPS_X(name, number, text) SPS_STOP_##name = number,
    SPS_STOP_LIST(SPS_X)
#undef SPS_X
} sps_stop;

typedef enum sps_place { SPS_AUTO = 0, SPS_HOST = 1, SPS_CUDA = 2 } sps_place;
typedef enum sps_dtype { SPS_F64 = 0, SPS_F32 = 1 } sps_dtype;
typedef enum sps_order { SPS_ROW_MAJOR = 0, SPS_COL_MAJOR = 1 } sps_order;

/** How arrays cross the interface: COPY them, BORROW them (the caller keeps
 *  them alive and unchanged), ADOPT them (freed with the object by free()). */
typedef enum sps_own { SPS_COPY = 0, SPS_BORROW = 1, SPS_ADOPT = 2 } sps_own;

/** What the residual of a column is compared with (threshold of column j):
 *  RHS      rtol ||b||;                 BACKWARD rtol (||A|| ||x|| + ||b||);
 *  START    rtol ||b - A x0||;          ABSOLUTE atol alone.
 *  In every case max(that, atol). */
typedef enum sps_norm {
    SPS_NORM_RHS = 0,
    SPS_NORM_BACKWARD = 1,
    SPS_NORM_START = 2,
    SPS_NORM_ABSOLUTE = 3
} sps_norm;

typedef struct sps_context sps_context;
typedef struct sps_block sps_block;
typedef struct sps_operator sps_operator;
typedef struct sps_precond sps_precond;
typedef struct sps_solver sps_solver;

/** Text of a status; static. */
const char *sps_status_string(sps_status status);
/** Text of a stop reason; static. */
const char *sps_stop_string(sps_stop stop);
/** Short lower-case name of a stop reason, as the report's "status"; static. */
const char *sps_stop_name(sps_stop stop);
/** Version as "0.1.0"; static. */
const char *sps_version(void);

/* ---------------------------------------------------------------- context */

/** Allocator hooks.  NULL members mean the default.  free gets the size that
 *  was asked for.  Return NULL when there is no memory. */
typedef struct sps_allocator {
    void *(*alloc)(size_t bytes, void *data);
    void (*free)(void *p, size_t bytes, void *data);
    void *data;
} sps_allocator;

/** Options of a context; call sps_context_options_default first. */
typedef struct sps_context_options {
    size_t struct_size;      /**< sizeof(sps_context_options) */
    sps_place place;         /**< AUTO: a GPU when there is one, else host */
    int device;              /**< ordinal of the GPU */
    void *stream;            /**< caller's cudaStream_t, NULL: an own stream */
    int threads;             /**< of the host; 0: all cores this process has */
    uint64_t seed;           /**< of every random draw of this context */
    bool reproducible;       /**< same bits on the same machine (default) */
    sps_allocator host;      /**< host memory of the library */
    sps_allocator gpu;       /**< device memory of the library */
    /** Sum over processes of count doubles, in place; NULL: one process.
     *  Every norm and Gram matrix passes here.  Non-zero return: EUSER. */
    int (*reduce)(double *values, int count, void *data);
    void *reduce_data;
} sps_context_options;

/** Facts of a context, filled by sps_context_info. */
typedef struct sps_context_info {
    size_t struct_size;         /**< sizeof(sps_context_info), set by caller */
    sps_place place;            /**< where blocks and operators live */
    int threads;                /**< host threads in use */
    char device[96];            /**< "cpu, 2 threads" or the GPU's name */
    char module[160];           /**< state of the CUDA module, one line */
    size_t host_bytes, host_peak;     /**< bytes held now, and at most */
    size_t device_bytes, device_peak; /**< the same on the device */
    size_t device_free, device_total; /**< of the whole GPU; 0 on the host */
    int64_t live_objects;       /**< handles not yet destroyed */
} sps_context_info;

/** Fills *options with the defaults named above. */
void sps_context_options_default(sps_context_options *options);
/** Makes a context; options may be NULL.  EABSENT: SPS_CUDA was asked for and
 *  there is no module; EDEVICE: no usable device.  With SPS_AUTO both lead to
 *  the host and a note.  On failure *error (optional, may be NULL) points to
 *  a static or thread-local text. */
sps_status sps_context_create(const sps_context_options *options,
                              sps_context **ctx_p, const char **error);
/** Frees the context.  Every handle made from it must be destroyed before. */
void sps_context_destroy(sps_context **ctx_p);
/** Text of the last failure, "" if none; valid until the next call. */
const char *sps_context_error(const sps_context *ctx);
/** Note number i (things done that the caller may want to know, such as
 *  "mirrored an upper triangle"), NULL past the last. */
const char *sps_context_note(const sps_context *ctx, int i);
/** Facts; set info->struct_size before. */
sps_status sps_context_information(const sps_context *ctx,
                                   sps_context_info *info);
/** Asks running and later solves of this context to stop (INTERRUPTED), and
 *  running and later readings of files to give up (EIO, "interrupted").
 *  Async-signal-safe.  sps_cancel(ctx, false) clears the wish. */
void sps_cancel(sps_context *ctx, bool stop);
/** Waits for all work queued on the GPU; nothing to do on the host.  For
 *  timing, and before the caller's own stream reads a block.  EDEVICE. */
sps_status sps_context_sync(sps_context *ctx);

/* -------------------------------------------------------------------- csr */

/** Properties of a matrix, claimed by the caller or found by a check. */
enum {
    SPS_SYMMETRIC = 1,      /**< values equal to their mirror image */
    SPS_SPD = 2,            /**< symmetric positive definite (claimed) */
    SPS_INTERLEAVED = 4,    /**< 2 x 2 blocks [Re -Im; Im Re] of a complex one */
    SPS_SORTED = 8          /**< rows ascending, no duplicates (checked) */
};

/** A sparse matrix by rows, plain data.  Entries of row i are
 *  rowptr[i] .. rowptr[i+1]-1.  0-based. */
typedef struct sps_csr {
    int64_t nrow, ncol, nnz;
    int64_t *rowptr;  /**< nrow + 1 offsets, rowptr[0] = 0 */
    int32_t *col;     /**< nnz column numbers */
    void *val;        /**< nnz values of dtype */
    sps_dtype dtype;
    sps_place place;  /**< where the three arrays live: SPS_HOST or SPS_CUDA */
    sps_own own;      /**< what destroy does with the arrays */
    unsigned props;
} sps_csr;

/** How lenient the reader is.  All zero is the default. */
typedef struct sps_read_options {
    size_t struct_size;
    bool lenient;         /**< both triangles of a symmetric file: accept when
                               the values agree */
    bool strict;          /**< duplicates are an error */
    bool allow_nonfinite; /**< NaN and Inf are read as they stand */
    uint64_t max_bytes;   /**< limit of memory for the result, 0: none */
    /** Called now and then with bytes read and file size (0 if unknown). */
    void (*progress)(uint64_t done, uint64_t total, void *data);
    void *progress_data;
} sps_read_options;

/** What the reader found. */
typedef struct sps_read_info {
    size_t struct_size;
    char field[12];       /**< real integer pattern complex */
    char symmetry[16];    /**< general symmetric skew-symmetric hermitian */
    bool array;           /**< dense file */
    int64_t lines;        /**< lines read */
    int64_t stored;       /**< entries in the file */
    int64_t duplicates;   /**< entries summed into others */
    int64_t rounded;      /**< integers beyond 2^53, rounded */
    int64_t underflows;   /**< values below the normal range */
    bool upper;           /**< symmetric by the upper triangle, mirrored */
} sps_read_info;

/** Allocates host arrays for nrow, ncol, nnz (rowptr zeroed) of dtype.
 *  ENOMEM names the bytes.  Destroy with sps_csr_destroy. */
sps_status sps_csr_create(sps_context *ctx, int64_t nrow, int64_t ncol,
                          int64_t nnz, sps_dtype dtype, sps_csr **A_p);
/** Describes the caller's arrays in the given place as a csr handle; mode
 *  COPY, BORROW or ADOPT.  Nothing is checked yet (sps_operator_csr does). */
sps_status sps_csr_wrap(sps_context *ctx, int64_t nrow, int64_t ncol,
                        int64_t nnz, int64_t *rowptr, int32_t *col, void *val,
                        sps_dtype dtype, sps_place place, sps_own own,
                        sps_csr **A_p);
/** Reads a Matrix Market file (text or gzip, "-": standard input) into host
 *  memory, sorted, duplicates summed, symmetric files completed, complex ones
 *  in the interleaved real form.  ro, info may be NULL.  EIO, EPARSE (text
 *  "file:line: what"), ENOMEM. */
sps_status sps_csr_read(sps_context *ctx, const char *path,
                        const sps_read_options *ro, sps_read_info *info,
                        sps_csr **A_p);
/** Writes a host csr as coordinate file, shortest digits that read back to
 *  the same bits, to a temporary file that is then renamed; ".gz" compresses,
 *  "-" is standard output.  symmetric: lower triangle only. */
sps_status sps_csr_write(sps_context *ctx, const char *path, const sps_csr *A,
                         bool symmetric);
/** Checks a host csr: offsets monotone, columns in range; sorts rows and sums
 *  duplicates in place (with a note) unless they are in order.  EMATRIX names
 *  the first bad row. */
sps_status sps_csr_check(sps_context *ctx, sps_csr *A);
/** Whether the host csr A (checked) equals its transpose: |a_ij - a_ji| within
 *  tol times the larger of |a_ij|, |a_ji| and sqrt(|a_ii a_jj|), an entry that
 *  is not stored counting as 0; *difference (may be NULL) gets the largest
 *  |a_ij - a_ji|, infinity where one is NaN. */
sps_status sps_csr_symmetric(sps_context *ctx, const sps_csr *A, double tol,
                             bool *symmetric, double *difference);
/** What a Laplacian was made of. */
typedef struct sps_laplacian_info {
    size_t struct_size;   /**< sizeof(sps_laplacian_info), set by the caller */
    int64_t vertices, edges;   /**< an edge counts once */
    int64_t components;   /**< connected ones, isolated vertices among them:
                               the dimension of the null space */
    int64_t isolated;     /**< vertices without an edge */
    int64_t loops;        /**< self-loops left out */
    int64_t one_way;      /**< edges stored in one direction only, or with a
                               weight for each */
} sps_laplacian_info;

/** L = D - W of the graph whose host adjacency matrix A (n x n, weights >= 0)
 *  is: w_ij = max(a_ij, a_ji), so the direction of edges is dropped, with a
 *  note, and a symmetric A stays as it is; self-loops are left out with a
 *  note; duplicates add up; L is symmetric, every row has a diagonal entry.
 *  L is a new host csr, of doubles; A may go.  info may be NULL.  EMATRIX: a
 *  weight is negative, complex or not finite (the text says where); ESHAPE:
 *  not square. */
sps_status sps_csr_laplacian(sps_context *ctx, const sps_csr *A,
                             sps_laplacian_info *info, sps_csr **L_p);
void sps_csr_destroy(sps_context *ctx, sps_csr **A_p);

/* ------------------------------------------------------------------ block */

/** A zeroed n x k block in the context's place, double, row-major, padded. */
sps_status sps_block_create(sps_context *ctx, int64_t n, int k,
                            sps_block **X_p);
/** A block over the caller's row-major memory in the context's own place,
 *  never copied: element (i, j) is data[i * ld + j], ld >= k.  The caller
 *  keeps it alive.  For other layouts and places: _create, _set and _get. */
sps_status sps_block_wrap(sps_context *ctx, int64_t n, int k, double *data,
                          int64_t ld, sps_block **X_p);
/** Copies n x k numbers from the caller (host or device, either order, leading
 *  dimension ld) into columns first .. first+k-1 of X. */
sps_status sps_block_set(sps_block *X, int first, int k, const double *data,
                         int64_t ld, sps_order order, sps_place place);
/** The same outwards. */
sps_status sps_block_get(const sps_block *X, int first, int k, double *data,
                         int64_t ld, sps_order order, sps_place place);
/** Fills with numbers uniform in [-1/2, 1/2): Philox keyed by (seed, row,
 *  column), the same on every place and thread count. */
sps_status sps_block_random(sps_block *X, uint64_t seed);
/** Rows and columns; either may be NULL. */
void sps_block_shape(const sps_block *X, int64_t *n, int *k);
/** The memory behind the block and its leading dimension (row-major, in the
 *  context's place).  For kernels of the caller. */
double *sps_block_data(const sps_block *X, int64_t *ld);
/** Reads a block of right-hand sides: array file (n x k) or coordinate file.
 *  interleaved: a complex file gives two rows for each of its own, a real one
 *  is taken as complex with zero imaginary part. */
sps_status sps_block_read(sps_context *ctx, const char *path,
                          const sps_read_options *ro, bool interleaved,
                          sps_block **X_p);
/** Writes an array file, temporary then renamed; interleaved: as complex. */
sps_status sps_block_write(const sps_block *X, const char *path,
                           bool interleaved);
/** Rigid motions of the structure whose m nodes lie at coords (m x d, d = 2 or
 *  3): n x q with orthonormal columns in the context's place, n = d m, the d
 *  unknowns of a node side by side; q = 3 in the plane and 6 in space, fewer,
 *  with a note, where the nodes lie on a line.  A null space of the stiffness
 *  of an unsupported structure: sps_options.nullspace_basis, which checks it.
 *  ESHAPE, EINVAL (not finite). */
sps_status sps_block_rigid_body(const sps_block *coords, sps_block **R_p);
void sps_block_destroy(sps_block **X_p);

/* ---------------------------------------------------------------- options */

/** What one monitor call sees. */
typedef struct sps_progress {
    int iteration;
    int k;                    /**< columns */
    const double *residual;   /**< k, relative to what -norm says; recurrence */
    double worst, median;     /**< of the above */
    int converged;            /**< columns below their threshold */
    int width;                /**< search directions of this iteration */
    double seconds;           /**< since the solve began */
    const char *event;        /**< NULL, or what just happened ("fell back
                                   to cg", "residual replaced") */
} sps_progress;

/** Called once for each iteration, in turn; return false to stop
 *  (INTERRUPTED).  On a GPU up to check_every iterations may have been taken
 *  when the call for the first of them comes; they are counted. */
typedef bool (*sps_monitor_fn)(const sps_progress *p, void *data);

/** Options of operators, preconditioners and solvers.  Strings are borrowed:
 *  the caller keeps them alive. */
typedef struct sps_options {
    size_t struct_size;       /**< sizeof(sps_options) */
    const char *solver;       /**< auto block_cg cg refinement gmres block_gmres
                                   block_gcrodr bicgstab idr minres; of
                                   pairs: auto lobpcg chebyshev_filter */
    const char *precond;      /**< auto none jacobi block_jacobi chebyshev
                                   ilu0 ic0 ilut dense fsai isai */
    const char *kernel;       /**< auto, measure, or a kernel's name */
    const char *nullspace;    /**< auto (default) none constant components */
    const sps_block *nullspace_basis; /**< own basis, n x q; or NULL */
    const char *wisdom;       /**< file of measured choices, or NULL */
    double rtol, atol;        /**< 1e-8, 0 */
    sps_norm norm;            /**< SPS_NORM_RHS */
    int max_iterations;       /**< 10000 */
    double max_seconds;       /**< of one solve; 0: no limit */
    int block_size;           /**< of block_jacobi; 0: found in the pattern */
    int degree;               /**< of chebyshev; 0, the default: auto */
    const char *scale;        /**< before ilut: auto none equilibrate match */
    const char *reorder;      /**< of an operator, for its solvers of A X = B:
                                   none rcm morton auto (rcm where it is
                                   predicted to gain) */
    const sps_block *coords;  /**< for morton: a row for each node, 1 to 3
                                   columns; unknowns of a node follow each
                                   other.  Read when the operator is made */
    const char *order;        /**< before ilut: auto none rcm degree */
    const char *dense;        /**< auto: solver auto may end with dense factors
                                   where n <= 2000; never */
    int power;                /**< of fsai: pattern of A^power, 1 */
    double droptol;           /**< of ilut: entries below this part of their
                                   row are dropped, 1e-3 */
    double fill;              /**< of ilut: a row of L, and one of U, keeps at
                                   most this many times A's mean row, 10 */
    int restart;              /**< of gmres: steps of a cycle, 50; takes memory
                                   for as many blocks of right-hand sides */
    bool flexible;            /**< of gmres: the preconditioner may change from
                                   step to step; twice the memory (false) */
    int recycle;              /**< of block_gcrodr: vectors kept from cycle to
                                   cycle and from solve to solve; 0: two a
                                   right-hand side, 10 to 256 */
    int bicgstab_l;           /**< l of bicgstab: degree of the polynomial that
                                   stabilises a sweep of 2 l products, 2 */
    int idr_s;                /**< s of idr: dimension of the shadow space, 4 */
    double rank_tolerance;    /**< direction dropped below this relative
                                   singular value; 1e-10 */
    int true_residual_every;  /**< recomputed every so many steps, 50 */
    bool full_precision;      /**< kernels that drop bits may not bid (true) */
    bool strict_nonfinite;    /**< nor those in which a NaN or infinity of X
                                   reaches rows of A X that do not store its
                                   column (false; doc/numerics.md) */
    const char *precision;    /**< of the work; X, residuals and tolerances are
                                   double always.  double; mixed: corrections
                                   in single precision, refined (refinement in
                                   place of block_cg and cg), and single for
                                   the two below, of solver auto where that
                                   pays (doc/numerics.md); auto: double */
    const char *basis;        /**< of gmres and block_gmres, how it is stored:
                                   double, single, auto (as precision) */
    const char *precond_precision; /**< how fsai, isai, block_jacobi,
                                   ilu0, ic0 store: double, single, auto */
    int check_every;          /**< iterations on a GPU that may be under way
                                   before the host looks at them, 1 to 16
                                   (10); changes no result */
    bool replay;              /**< iterations of small systems are recorded
                                   once and replayed: CUDA graphs (true);
                                   changes no result */
    const char *which;        /**< eigenvalues: smallest (default) largest
                                   nearest (to sigma) */
    double sigma;             /**< of which = nearest */
    int block;                /**< columns of an eigensolver's block; 0: the
                                   pairs asked and some to guard them, 40 at
                                   most unless given */
    bool verify_count;        /**< after the pairs are found, look for missed
                                   ones (false) */
    const sps_block *constraints; /**< eigenvectors are wanted M-orthogonal to
                                   the columns of this block; or NULL */
    sps_monitor_fn monitor;   /**< or NULL */
    void *monitor_data;
} sps_options;

/** Fills in the defaults; auto where a name may be auto. */
void sps_options_default(sps_options *opt);
/** Sets members from text, "rtol=1e-8 solver=cg"; separators are blanks,
 *  commas or newlines, '#' comments to the end of the line.  EINVAL names the
 *  unknown word and the nearest known one.  The strings are kept in ctx. */
sps_status sps_options_parse(sps_context *ctx, sps_options *opt,
                             const char *text);
/** Writes every option as "name=value" lines to text (always terminated);
 *  returns the length that the whole text has. */
size_t sps_options_print(const sps_options *opt, char *text, size_t size);

/* --------------------------------------------------------------- operator */

/** Y = alpha A X + beta Y for k columns; row-major blocks in the context's
 *  place, double, which sps_block_wrap opens to calls of the library; stream is
 *  its cudaStream_t or NULL.  Return 0; anything else ends the solve: EUSER. */
typedef int (*sps_apply_fn)(double alpha, const double *X, int64_t ldx,
                            double beta, double *Y, int64_t ldy, int64_t n,
                            int k, void *stream, void *data);

/** An operator from a csr, for blocks of up to about width columns (wider ones
 *  work in slices).  A host csr is borrowed and must outlive the operator and
 *  keep its pattern; unsorted rows are sorted into an own copy with a note.
 *  A device csr (place SPS_CUDA) is used where it lies and is read back once
 *  to plan.  Names in opt->kernel choose; opt may be NULL.  EMATRIX, EUNFIT
 *  (a pinned kernel does not fit: the text says why), ENOMEM, EDEVMEM. */
sps_status sps_operator_csr(sps_context *ctx, sps_csr *A, int width,
                            const sps_options *opt, sps_operator **op_p);
/** An operator that is the caller's function; n rows and columns.  props:
 *  SPS_SYMMETRIC | SPS_SPD as the caller knows. */
sps_status sps_operator_user(sps_context *ctx, int64_t n, sps_apply_fn apply,
                             void *data, unsigned props, sps_operator **op_p);
/** Y = alpha A X + beta Y.  beta = 0: old numbers of Y, NaN too, vanish.
 *  Asynchronous on a GPU. */
sps_status sps_operator_apply(const sps_operator *op, double alpha,
                              const sps_block *X, double beta, sps_block *Y);
/** Sampled product (SDDMM) on the pattern of A: for each stored (i, j) val =
 *  alpha (u_i . v_j) [times a_ij if multiply] + beta val.  U is nrow x d, V
 *  ncol x d, val nnz numbers in the context's place: doubles, as blocks of the
 *  API are (floats: spbench alone has them).  Planned at the first call, and
 *  again at a much wider one, by the names in the operator's options; EUNFIT: a
 *  kernel pinned for it does not fit, or A was sorted or is a callback. */
sps_status sps_operator_sample(const sps_operator *op, double alpha,
                               const sps_block *U, const sps_block *V,
                               bool multiply, double beta, double *val);
/** New values, same pattern, in the order of the csr, on the host or in the
 *  context's place: read on its stream and, unless rows had to be sorted or are
 *  reordered, brought to the host only when that looks at them.
 *  Preconditioners follow by sps_precond_update, and what a solver made itself
 *  (preconditioner, null space) at its next solve. */
sps_status sps_operator_set_values(sps_operator *op, const void *val,
                                   sps_place place);
/** Writes what was measured of the matrix and the tables of bids (sampling's
 *  after the first sample) to text (always terminated); returns the length of
 *  the whole. */
size_t sps_operator_describe(const sps_operator *op, char *text, size_t size);
/** Name of the kernel that serves blocks; static. */
const char *sps_operator_kernel(const sps_operator *op);
void sps_operator_destroy(sps_operator **op_p);

/* ---------------------------------------------------------------- precond */

/** Builds opt->precond for A and blocks of up to width columns.  A must
 *  outlive it.  EUNFIT when its needs are not met. */
sps_status sps_precond_create(const sps_operator *A, int width,
                              const sps_options *opt, sps_precond **M_p);
/** The caller's function: Z = M R (called with alpha = 1, beta = 0). */
sps_status sps_precond_user(sps_context *ctx, int64_t n, sps_apply_fn apply,
                            void *data, sps_precond **M_p);
/** After sps_operator_set_values. */
sps_status sps_precond_update(sps_precond *M);
sps_status sps_precond_apply(const sps_precond *M, const sps_block *R,
                             sps_block *Z);
const char *sps_precond_name(const sps_precond *M);
void sps_precond_destroy(sps_precond **M_p);

/* ----------------------------------------------------------------- solver */

/** Seconds by phase. */
typedef struct sps_seconds {
    double setup, solve, verify;         /**< wall */
    double spmm, precond, gram, small;   /**< inside solve */
} sps_seconds;

/** What came out.  Arrays belong to the solver: valid until its next solve or
 *  destroy. */
typedef struct sps_result {
    size_t struct_size;
    sps_stop stop;              /**< > 0: all columns converged (verified) */
    int k, iterations, columns_converged;
    int restarts;               /**< residual replacements */
    int64_t applies_A, applies_M;   /**< counted in blocks */
    int min_width;              /**< fewest search directions used */
    double worst_residual;      /**< max of residual[] */
    double worst_backward;      /**< max of backward[] */
    double norm_A;              /**< estimate of ||A||_2 from below */
    double removed;             /**< ||part of B in the null space|| / ||B|| */
    int nullspace;              /**< dimension projected away */
    const double *residual;     /**< k, recomputed ||b - A x|| / ||b|| */
    const double *backward;     /**< k, ||b - A x|| / (||A|| ||x|| + ||b||) */
    const sps_stop *column;     /**< k, one reason for each */
    const char *solver, *precond, *kernel;  /**< static: what really ran */
    sps_seconds seconds;
} sps_result;

/** A solver for A X = B, k right-hand sides.  M may be NULL (then opt->precond
 *  is built and owned).  A and M must outlive it.  All memory is taken here, but
 *  for later steps of auto and what notes tell.  EUNFIT: needs, EINVAL: names. */
sps_status sps_solver_create(const sps_operator *A, sps_precond *M, int k,
                             const sps_options *opt, sps_solver **s_p);
/** Solves A X = B: X holds the guess and gets the best iterate found, whatever
 *  happens.  B is not changed.  result may be NULL. */
sps_status sps_solver_linear(sps_solver *s, const sps_block *B, sps_block *X,
                             sps_result *result);
void sps_solver_destroy(sps_solver **s_p);

/* ------------------------------------------------------- eigenvalue problems */

/** What came out of an eigenproblem.  Arrays belong to the solver: valid until
 *  its next solve or destroy.  All is recomputed in double from A, M, X. */
typedef struct sps_eigen_result {
    size_t struct_size;
    sps_stop stop;              /**< > 0: all pairs converged (verified) */
    int count, converged;       /**< pairs asked, and converged */
    int block;                  /**< columns that were iterated with */
    int iterations, restarts;
    int64_t applies_A, applies_M, applies_precond;   /**< counted in blocks */
    double worst_residual, worst_backward;
    double norm_A, norm_M;      /**< estimates of 2-norms from below */
    double orthogonality;       /**< max |X'MX - I| */
    int nullspace;              /**< dimension deflated: so many eigenvalues
                                     are known to be 0 (none, where M has the
                                     same null vectors) and not among these */
    int missed;                 /**< verify_count: eigenvalues found between
                                     or beyond the pairs; -1: not looked for */
    const double *lambda;       /**< count, in the order of `which`; 0, its
                                     residual and bound infinite, where a
                                     product was not finite */
    const double *residual;     /**< ||A x - l M x|| / (|l| ||M x||) */
    const double *backward;     /**< ||A x - l M x|| /
                                     ((||A|| + |l| ||M||) ||x||) */
    const double *bound;        /**< an eigenvalue lies within this of l:
                                     ||A x - l M x|| in the norm of M^-1 over
                                     ||x|| in that of M; infinite: unknown */
    const sps_stop *pair;       /**< one reason for each */
    const char *solver, *precond, *kernel;  /**< static: what really ran */
    sps_seconds seconds;
} sps_eigen_result;

/** A solver for count eigenpairs of A x = lambda M x, A symmetric, M symmetric
 *  positive definite or NULL for the identity; opt->which says which ones.  M
 *  may be singular in the null vectors of A, if those are named: pairs are those
 *  of the complement.
 *  T approximates the inverse of A (largest: of sigma M - A) or is NULL (then
 *  opt->precond is built and owned).  A pair has converged when
 *      ||A x - lambda M x|| <= max(rtol |lambda|, atol) ||M x||,
 *  with norm = backward when it is <= rtol (||A|| + |lambda| ||M||) ||x||.
 *  opt->nullspace other than none and auto (here the same) names a null space
 *  of A: its zero eigenvalues are left out.  A, M and T must outlive the
 *  solver.  EUNFIT: not symmetric, M seen not to be definite, no such method;
 *  EINVAL: more pairs than there are. */
sps_status sps_solver_create_eigen(const sps_operator *A,
                                   const sps_operator *M, sps_precond *T,
                                   int count, const sps_options *opt,
                                   sps_solver **s_p);
/** X (n x count) holds a guess, columns of zeros are drawn at random, and gets
 *  the eigenvectors, M-orthonormal, best first as `which` orders; lambda[count]
 *  (host) gets the eigenvalues.  Best pairs found, whatever happens.  lambda
 *  and result may be NULL.  Method: Knyazev, SIAM J. Sci. Comput. 23 (2001). */
sps_status sps_solver_eigen(sps_solver *s, sps_block *X, double *lambda,
                            sps_eigen_result *result);

/** Name number i of a kind ("solver", "eigensolver", "precond", "kernel.cpu",
 *  "kernel.cuda", "option"), NULL past the last.  ctx may be NULL: then those
 *  of "kernel.cuda" are what a GPU would have. */
const char *sps_list(const sps_context *ctx, const char *kind, int i);

#ifdef __cplusplus
}
#endif
#endif
