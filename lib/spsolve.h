/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spsolve.h - libspsolve: sparse iterative solvers for many right-hand sides.
 *
 * A solver works on blocks: n x k matrices whose k columns are the right-hand
 * sides, stored row-major so that one sparse product serves all of them.  The
 * order of use is
 *
 *     context -> csr -> operator -> (precond) -> solver -> linear -> result
 *
 * Conventions that hold everywhere:
 *  - every function that can fail returns sps_status; SPS_OK is 0.  The text
 *    of the last failure is sps_context_error(ctx), also for a call that was
 *    given NULL instead of the handle that would have named the context.
 *  - a public struct has its size in struct_size, so that programs and
 *    libraries of different versions work together from 0.2 on.  A shorter
 *    struct is accepted: the members that it lacks have their defaults, and
 *    are not written back.  A longer one is accepted if every byte unknown to
 *    the library is zero, otherwise EINVAL with both sizes.  New members are
 *    only ever added at the end.  Programs built against 0.1 continue to work,
 *    except for sps_context_options.reduce and sps_options.basis and
 *    .precond_precision, which EINVAL names.
 *  - outputs are set only on success; destroy functions take the address of
 *    the handle, accept NULL in it and set it to NULL.
 *  - the library prints nothing, installs no signal handler, keeps no state
 *    outside its handles (except the CUDA module, loaded once; the text of a
 *    thread's last failure without a context; and the number of threads of
 *    OpenBLAS, which is one while LAPACK is called).  A context may be used by
 *    one thread at a time; any number of contexts may be used at once.  Only
 *    sps_cancel() may be called from another thread or from a signal handler.
 *  - not converging is not an error: the status is SPS_OK and
 *    sps_result.stop has the reason.
 *  - "place" is a memory space: SPS_HOST (host memory) or SPS_CUDA (device
 *    memory).  A context has one place, in which its blocks and operators are.
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
#define SPS_VERSION_MINOR 2
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
    X(EBUG, 12, "internal error, please report")                               \
    X(EPEER, 13, "another process failed")

typedef enum sps_status {
#define SPS_X(name, number, text) SPS_##name = number,
    SPS_STATUS_LIST(SPS_X)
#undef SPS_X
} sps_status;

/** Why a solve ended: name, number, text.  Positive values mean converged.  An
 *  inconsistent system does not converge (LEAST_SQUARES) unless the caller
 *  gives its null space, except with lsqr and lsmr, which end
 *  CONVERGED_LEAST_SQUARES. */
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
    X(MISSED, -12, "there are more eigenvalues between those found")           \
    X(LEAST_SQUARES, -13, "the system is inconsistent; X solves it in the "    \
                          "sense of least squares")                            \
    X(CONVERGED_LEAST_SQUARES, 2, "converged in the sense of least squares: "  \
                                  "the right-hand side has a part outside "    \
                                  "the range of A, or there is damping")

typedef enum sps_stop {
#define SPS_X(name, number, text) SPS_STOP_##name = number,
    SPS_STOP_LIST(SPS_X)
#undef SPS_X
} sps_stop;

typedef enum sps_place { SPS_AUTO = 0, SPS_HOST = 1, SPS_CUDA = 2 } sps_place;
typedef enum sps_dtype { SPS_F64 = 0, SPS_F32 = 1 } sps_dtype;
typedef enum sps_order { SPS_ROW_MAJOR = 0, SPS_COL_MAJOR = 1 } sps_order;

/** Ownership of arrays passed to the library.  COPY: the object has copies.
 *  BORROW: the object points to the caller's arrays, which must stay alive and
 *  unchanged as long as it exists.  ADOPT: the arrays belong to the object, and
 *  are freed by free() when it is destroyed; host memory only. */
typedef enum sps_own { SPS_COPY = 0, SPS_BORROW = 1, SPS_ADOPT = 2 } sps_own;

/** Threshold for the residual of column j:
 *  RHS      rtol ||b||;                 BACKWARD rtol (||A|| ||x|| + ||b||);
 *  START    rtol ||b - A x0||;          ABSOLUTE atol alone.
 *  In every case at least atol. */
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

/** Returns the text of a status, a static string. */
const char *sps_status_string(sps_status status);
/** Returns the text of a stop reason, a static string. */
const char *sps_stop_string(sps_stop stop);
/** Returns the name of a stop reason in lower case, a static string. */
const char *sps_stop_name(sps_stop stop);
/** Returns the version of the library, such as "0.2.0", a static string. */
const char *sps_version(void);

/* ---------------------------------------------------------------- context */

/** Processes that solve together; each has a context and its own rows. */
typedef struct sps_comm sps_comm;

/** A message of `bytes` bytes at p, sent to or received from process `peer`. */
typedef struct sps_message {
    int peer;
    void *p;
    size_t bytes;
} sps_message;

/** Communication between processes by functions of the caller, each called by
 *  all processes in the same order.  They return 0; any other value leads to
 *  EUSER. */
typedef struct sps_comm_calls {
    size_t struct_size;      /**< sizeof(sps_comm_calls) */
    /** Replaces values[0 .. count-1] (host memory) by their sums over the
     *  processes, with the same bits on each, as MPI_Allreduce does. */
    int (*sum)(double *values, int count, void *data);
    /** Sends and receives messages, and returns when all are complete.
     *  Messages between two processes are received in the order in which they
     *  were sent. Needed for matrices of own rows (sps_csr_wrap_rows);
     *  callbacks exchange data themselves.  May be NULL. */
    int (*exchange)(const sps_message *send, int sends,
                    const sps_message *receive, int receives, void *data);
    /** The same in two halves, between which the library computes: `start` may
     *  return before the messages are complete (the arrays of messages stay
     *  valid until `finish`, and the memory is neither read nor written
     *  meanwhile), and `finish` waits for them.  If both are NULL, `exchange`
     *  is called. */
    int (*start)(const sps_message *send, int sends,
                 const sps_message *receive, int receives, void *data);
    int (*finish)(void *data);
} sps_comm_calls;

/** Creates a communicator from the caller's functions, for process `rank` (0 to
 *  size - 1) of `size` processes; data is passed to the functions, and *calls
 *  is copied.  The communicator must outlive the contexts that use it, and only
 *  one context may use it at a time.  EINVAL, ENOMEM; the text is
 *  sps_context_error(NULL). */
sps_status sps_comm_user(int rank, int size, const sps_comm_calls *calls,
                         void *data, sps_comm **c_p);
/** Creates a communicator from a duplicate of the MPI communicator with this
 *  Fortran handle (MPI_Comm_c2f(comm) in C, comm.py2f() in mpi4py), or, for
 *  SPS_MPI_WORLD, of MPI_COMM_WORLD; then, if the program has not initialised
 *  MPI, it is initialised, and finalised by sps_comm_destroy.  Loads the module
 *  of the MPI implementation that is loaded in the process, or otherwise of the
 *  one whose launcher has started it.  Must be called by all processes of the
 *  communicator.  EABSENT if there is no module, EINVAL; the text is
 *  sps_context_error(NULL). */
#define SPS_MPI_WORLD (-1)
sps_status sps_comm_mpi(int fortran_handle, sps_comm **c_p);
/** Sums and messages for the program itself, while no call of the library is
 *  running; all processes must make the same calls.  If c is NULL, nothing is
 *  done.  EUSER, EUNFIT (no exchange). */
sps_status sps_comm_sum(sps_comm *c, double *values, int count);
sps_status sps_comm_exchange(sps_comm *c, const sps_message *send, int sends,
                             const sps_message *receive, int receives);
/** Ends all processes, with this exit code if the launcher allows it
 *  (MPI_Abort); for a program that cannot continue while others wait for it.
 *  Does nothing for a communicator of sps_comm_user. */
void sps_comm_abort(sps_comm *c, int code);
/** Sets *rank to the number of this process and *size to the number of
 *  processes, or to 0 and 1 if c is NULL.  Either pointer may be NULL. */
void sps_comm_shape(const sps_comm *c, int *rank, int *size);
/** Frees the communicator; contexts that use it must have been destroyed. */
void sps_comm_destroy(sps_comm **c_p);

/** Functions of the caller that allocate and free memory.  alloc returns NULL
 *  if there is no memory; free receives the size with which p was allocated;
 *  data is passed to both. */
typedef struct sps_allocator {
    size_t struct_size;      /**< sizeof(sps_allocator) */
    void *(*alloc)(size_t bytes, void *data);
    void (*free)(void *p, size_t bytes, void *data);
    void *data;
} sps_allocator;

/** Options of a context; call sps_context_options_default first. */
typedef struct sps_context_options {
    size_t struct_size;      /**< sizeof(sps_context_options) */
    sps_place place;         /**< AUTO: a GPU if there is one, else host */
    int device;              /**< ordinal of the GPU; -1 (default) stands for
                                  the process number modulo the number of
                                  GPUs */
    void *stream;            /**< the caller's cudaStream_t; if NULL, the
                                  context creates one */
    int threads;             /**< host threads; 0 stands for the cores of
                                  this process by its affinity mask, the CPU
                                  quota of its control groups, and
                                  OMP_NUM_THREADS */
    uint64_t seed;           /**< of every random draw of this context */
    bool reproducible;       /**< same bits on the same machine (default) */
    bool across_ranks;       /**< same bits for any number of processes, 1
                                  included (false).  For tests: sums over
                                  rows take several times as long.  For
                                  matrices of sps_csr_wrap_rows or sps_csr_read
                                  and preconditioners none, jacobi and
                                  chebyshev, on the host; otherwise EUNFIT.
                                  Shares of more than 1024 rows begin at
                                  multiples of c = 6 * 2^i, the smallest with
                                  at most 1024 c rows in all.
                                  sps_block_random is then to be called by all
                                  processes */
    const sps_allocator *host; /**< for host memory of the library; NULL for
                                    malloc */
    const sps_allocator *gpu;  /**< for its device memory; NULL for the
                                    driver's.  Both are copied when the
                                    context is created */
    /** Processes that solve together, or NULL.  Operators are matrices of own
     *  rows (sps_csr_wrap_rows), or callbacks on own rows, which exchange data
     *  with other processes themselves.  Blocks hold own rows; norms and Gram
     *  matrices are summed over the processes.  sps_operator_csr and
     *  sps_operator_apply for own rows, sps_solver_create, _linear and _eigen,
     *  sps_precond_create and _update, and all functions that compute norms,
     *  must be called by all processes in the same order.  A limit, a monitor
     *  that returns false, sps_cancel or a failure on one process ends the call
     *  on all. */
    sps_comm *comm;
    double comm_seconds;     /**< longest wait for another process, in
                                  seconds; 0 (default): no limit. With
                                  sps_comm_user, whose functions do the
                                  waiting, it is not supported: EUNFIT */
    size_t max_device_bytes; /**< limit of the GPU memory that the context
                                  allocates, not counting what the driver
                                  needs for itself; 0 (default): no limit.  A
                                  matrix that leaves too little memory for
                                  its blocks stays in host memory and is
                                  streamed in each product */
} sps_context_options;

/** Facts of a context, filled by sps_context_info. */
typedef struct sps_context_info {
    size_t struct_size;         /**< sizeof(sps_context_info), set by the
                                     caller */
    sps_place place;            /**< memory of blocks and operators */
    int threads;                /**< host threads in use */
    char device[96];            /**< "cpu, 2 threads" or the GPU's name */
    char module[160];           /**< state of the CUDA module, truncated */
    size_t host_bytes, host_peak;     /**< allocated now; maximum so far */
    size_t device_bytes, device_peak; /**< the same on the device */
    size_t device_free, device_total; /**< of the whole GPU; 0 on the host */
    int64_t live_objects;       /**< handles not yet destroyed */
    const char *module_state;   /**< complete text of `module`; valid as long
                                     as the context */
    int64_t bytes_to_device;    /**< copied from host memory to the GPU so
                                     far; 0 on the host */
    int64_t bytes_to_host;      /**< copied from the GPU to host memory */
} sps_context_info;

/** Fills *options with the defaults given above.  The macro passes the size of
 *  the struct with which the program was compiled; the function of this name,
 *  which it hides, is for programs built against 0.1. */
void sps_context_options_default(sps_context_options *options);
void sps_context_options_init(sps_context_options *options, size_t size);
#define sps_context_options_default(options)                                   \
    sps_context_options_init((options), sizeof(sps_context_options))
/** Creates a context; options may be NULL.  EABSENT if SPS_CUDA was requested
 *  and there is no module; EDEVICE if there is no usable device (the driver is
 *  asked before the module is loaded).  With SPS_AUTO both lead to a context on
 *  the host with a note.  After a failure *error (unless error is NULL) points
 *  to a static or thread-local text. */
sps_status sps_context_create(const sps_context_options *options,
                              sps_context **ctx_p, const char **error);
/** Frees the context.  All handles created from it must be destroyed before. */
void sps_context_destroy(sps_context **ctx_p);
/** Returns the text of the last failure, "" if there is none; valid until the
 *  next call.  It is that of the context, or of a later call in this thread
 *  that failed without a context because a handle was NULL.  If ctx is NULL:
 *  the thread's last failure of the latter kind, including those of
 *  sps_context_create, sps_comm_user and sps_comm_mpi. */
const char *sps_context_error(const sps_context *ctx);
/** Returns note number i (on something that the caller may want to know, such
 *  as "mirrored an upper triangle"), or NULL past the last. */
const char *sps_context_note(const sps_context *ctx, int i);
/** Fills *info, whose struct_size must be set.  EINVAL, EDEVICE. */
sps_status sps_context_information(const sps_context *ctx,
                                   sps_context_info *info);
/** Requests running and later solves of this context to stop (INTERRUPTED), and
 *  running and later readings of files to give up (EIO, "interrupted").
 *  Async-signal-safe.  sps_cancel(ctx, false) withdraws the request. */
void sps_cancel(sps_context *ctx, bool stop);
/** Waits for all work queued on the GPU; does nothing on the host.  For timing,
 *  and before a stream of the caller reads a block.  EDEVICE. */
sps_status sps_context_sync(sps_context *ctx);

/* -------------------------------------------------------------------- csr */

/** Properties of a matrix, declared by the caller or found by a check. */
enum {
    SPS_SYMMETRIC = 1,      /**< values equal to their mirror image */
    SPS_SPD = 2,            /**< symmetric positive definite (declared) */
    SPS_INTERLEAVED = 4,    /**< 2 x 2 blocks [Re -Im; Im Re], from complex */
    SPS_SORTED = 8          /**< rows ascending, no duplicates (checked) */
};

/** A sparse matrix by rows, as plain data, with indices from 0: the entries of
 *  row i are numbers rowptr[i] .. rowptr[i+1]-1 of col and val.  A caller who
 *  fills in the struct directly must set struct_size, which follows the members
 *  that 0.1 had, and set all members after it to zero. */
typedef struct sps_csr {
    int64_t nrow, ncol, nnz;
    int64_t *rowptr;  /**< nrow + 1 offsets, rowptr[0] = 0 */
    int32_t *col;     /**< nnz column indices */
    void *val;        /**< nnz values of dtype */
    sps_dtype dtype;
    sps_place place;  /**< memory of the arrays: SPS_HOST or SPS_CUDA */
    sps_own own;      /**< what destroy does with the arrays */
    unsigned props;
    size_t struct_size; /**< sizeof(sps_csr) */
    /* For the rows of one process, of a matrix distributed over several
     * processes: see sps_csr_wrap_rows.  Only sps_operator_csr accepts such a
     * csr; other functions return EUNFIT. */
    int64_t first;      /**< global number of the first row */
    int64_t whole;      /**< rows and columns of the whole matrix; 0 if it is
                             not distributed */
    int64_t *global;    /**< nnz global column indices, which replace col
                             (NULL) */
} sps_csr;

/** Options of the reader.  All zero is the default. */
typedef struct sps_read_options {
    size_t struct_size;   /**< sizeof(sps_read_options) */
    bool lenient;         /**< accept a symmetric file with both triangles if
                               their values agree */
    bool strict;          /**< duplicates are an error */
    bool allow_nonfinite; /**< accept NaN and Inf */
    uint64_t max_bytes;   /**< limit of the bytes of the result (ENOMEM).  0
                               stands for the memory that the machine has
                               available; a result of more than 1 GB and more
                               than 1000 times the bytes of the text is then
                               rejected (EPARSE) */
    /** Called after each batch of text with the bytes of the file that have
     *  been read and its size (0 if unknown), both before decompression; or
     *  NULL. */
    void (*progress)(uint64_t done, uint64_t total, void *data);
    void *progress_data;
    const char *partition; /**< how several processes divide the rows: "nnz"
                                (or NULL), about equal numbers of rows and
                                entries together, or "rows", about equal
                                numbers of rows; EINVAL for others */
} sps_read_options;

/** What the reader found. */
typedef struct sps_read_info {
    size_t struct_size;   /**< sizeof(sps_read_info), set by the caller */
    char field[12];       /**< real integer pattern complex */
    char symmetry[16];    /**< general symmetric skew-symmetric hermitian */
    bool array;           /**< array file (dense), not a coordinate file */
    int64_t lines;        /**< lines of the file */
    int64_t stored;       /**< entries in the file */
    int64_t duplicates;   /**< entries summed into others */
    int64_t rounded;      /**< integers beyond 2^53, rounded */
    int64_t underflows;   /**< values below the normal range */
    bool upper;           /**< a file with a symmetry stores its upper triangle;
                               the lower one was completed from it */
} sps_read_info;

/** Creates a csr with host arrays of its own for nrow x ncol and nnz entries
 *  with values of dtype; rowptr is zeroed, and the caller fills the arrays.
 *  Destroy it with sps_csr_destroy.  ENOMEM (the text has the number of bytes),
 *  EINVAL. */
sps_status sps_csr_create(sps_context *ctx, int64_t nrow, int64_t ncol,
                          int64_t nnz, sps_dtype dtype, sps_csr **A_p);
/** Creates a csr from the caller's arrays, which are in the memory space
 *  `place`; `own` states who frees them.  Offsets and columns are checked by
 *  sps_operator_csr, not here. */
sps_status sps_csr_wrap(sps_context *ctx, int64_t nrow, int64_t ncol,
                        int64_t nnz, int64_t *rowptr, int32_t *col, void *val,
                        sps_dtype dtype, sps_place place, sps_own own,
                        sps_csr **A_p);
/** Creates a csr from rows first .. first+nrow-1 of a square matrix with
 *  `whole` rows that is distributed over the processes of the context's comm:
 *  each process has the rows that follow those of the process before it.
 *  `global` has the column indices of the whole matrix, ascending in each row
 *  without duplicates (sps_operator_csr checks that).  The arrays are in host
 *  memory. SPS_SYMMETRIC and SPS_SPD, if the caller sets them in props, refer
 *  to the whole matrix.  EINVAL, ENOMEM. */
sps_status sps_csr_wrap_rows(sps_context *ctx, int64_t first, int64_t nrow,
                             int64_t whole, int64_t nnz, int64_t *rowptr,
                             int64_t *global, void *val, sps_dtype dtype,
                             sps_own own, sps_csr **A_p);
/** Reads a file ("-" is standard input) into host memory: Matrix Market, .npz
 *  of scipy.sparse.save_npz, binary of PETSc, Harwell-Boeing, Rutherford-Boeing,
 *  MATLAB 5, or a dense .npy; plain or compressed by gzip, xz or zstd.
 *  The kind is recognised by the contents.  Rows are sorted, duplicates summed,
 *  and symmetric files completed; complex files (only of Matrix Market) are
 *  converted to the interleaved real form; integers and floats become doubles.
 *  "FILE:NAME" is an array of an .npz or .mat file.  ro, info: or NULL.  EIO;
 *  EPARSE (text "file:line: what", or with the byte); ENOMEM; EABSENT if
 *  liblzma or libzstd, which are loaded when they are needed, is missing.
 *
 *  In a context of several processes all must call it, and each gets own rows
 *  (as from sps_csr_wrap_rows), consecutive and with about equal numbers of
 *  entries, at least one where there are enough.  A plain square coordinate
 *  file is read in parts, one by each process; any other file by each as a
 *  whole.  Rows, notes and *info are those that one process gets, and so is the
 *  text of an error in the file; where a process fails alone, the others return
 *  EPEER.  EUNFIT for rectangular matrices, EMATRIX for empty ones. */
sps_status sps_csr_read(sps_context *ctx, const char *path,
                        const sps_read_options *ro, sps_read_info *info,
                        sps_csr **A_p);
/** Reads rows first .. first+rows-1 of a square matrix of `whole` rows; the
 *  file as for sps_csr_read, of which the rows are counted.  All processes of
 *  the context must call it, each with the rows that follow those of the
 *  process before it, as A->first and A->nrow of another matrix that is
 *  distributed: so that both have their rows in the same process.  One process
 *  reads all rows.  ESHAPE if the file is of another shape; otherwise as
 *  sps_csr_read. */
sps_status sps_csr_read_rows(sps_context *ctx, const char *path,
                             const sps_read_options *ro, sps_read_info *info,
                             int64_t first, int64_t rows, int64_t whole,
                             sps_csr **A_p);
/** Reads only the sizes of the matrix in a file of any kind: rows, columns, and
 *  entries in the file (rows times columns, or half of that, for an array
 *  file).  nrow, ncol and entries may be NULL.  EIO, EPARSE, EABSENT. */
sps_status sps_file_sizes(sps_context *ctx, const char *path, int64_t *nrow,
                          int64_t *ncol, int64_t *entries);
/** Writes a csr in host memory.  The end of the path selects the kind: ".npz"
 *  is what scipy.sparse.load_npz reads, ".petsc" binary of PETSc with 32-bit
 *  indices, anything else a coordinate file of Matrix Market, with each value
 *  as the shortest decimal that is read back as the same bits.  The file is
 *  replaced atomically when it is complete; symbolic links are followed.  A
 *  path that ends in ".gz" is compressed, "-" is standard output.  symmetric: a
 *  Matrix Market file contains only the lower triangle, and its banner says so.
 *  EIO; EINVAL for ".npy", or too many entries for PETSc. */
sps_status sps_csr_write(sps_context *ctx, const char *path, const sps_csr *A,
                         bool symmetric);
/** Checks a csr in host memory: offsets must be monotone and columns in range.
 *  Sorts rows and sums duplicates in place (with a note) if necessary.  EMATRIX
 *  names the first bad row. */
sps_status sps_csr_check(sps_context *ctx, sps_csr *A);
/** Determines whether the csr A in host memory (checked) equals its transpose:
 *  |a_ij - a_ji| is at most tol times the largest of |a_ij|, |a_ji| and
 *  sqrt(|a_ii a_jj|), where an entry that is not stored counts as 0.
 *  *difference (unless difference is NULL) is the largest |a_ij - a_ji|, or
 *  infinity if one is NaN. */
sps_status sps_csr_symmetric(sps_context *ctx, const sps_csr *A, double tol,
                             bool *symmetric, double *difference);
/** Facts of a graph and its Laplacian. */
typedef struct sps_laplacian_info {
    size_t struct_size;   /**< sizeof(sps_laplacian_info), set by the caller */
    int64_t vertices, edges;   /**< an edge counts once */
    int64_t components;   /**< connected, including isolated vertices: the
                               dimension of the null space */
    int64_t isolated;     /**< vertices without an edge */
    int64_t loops;        /**< self-loops, which are ignored */
    int64_t one_way;      /**< edges stored in one direction only, or with
                               different weights */
} sps_laplacian_info;

/** Creates L = D - W from the adjacency matrix A of a graph (n x n, in host
 *  memory, weights >= 0): w_ij = max(a_ij, a_ji), so that the direction of
 *  edges is ignored, with a note, and a symmetric A is unchanged; self-loops
 *  are ignored with a note; duplicates are summed.  L is symmetric, and every
 *  row has a diagonal entry.  L is a new csr of doubles in host memory,
 *  independent of A.  info may be NULL.  EMATRIX if a weight is negative,
 *  complex or not finite (the text says where); ESHAPE if A is not square. */
sps_status sps_csr_laplacian(sps_context *ctx, const sps_csr *A,
                             sps_laplacian_info *info, sps_csr **L_p);
/** Creates *C_p = A B from an m x l and an l x n csr, both in host memory or
 *  both on the context's GPU, as an m x n csr in the same memory, with arrays
 *  of its own; destroy it with sps_csr_destroy.  Rows of C are sorted without
 *  duplicates (SPS_SORTED); every entry that has a product is stored, even if
 *  the sum is zero.  Its values are floats if those of A and B are, otherwise
 *  doubles.  c_ij sums a_ik b_kj over ascending k by fused multiply-adds, so
 *  its bits are the same on host and GPU and for any number of threads.
 *  Unsorted rows and duplicates are sorted and summed in a copy, with a note.
 *  The product is computed row by row (Gustavson, ACM TOMS 4, 1978), on a GPU
 *  in groups of rows by their memory, and for large matrices in host memory by
 *  panels (after ApSpGEMM, ACM TACO 2024); on a GPU a matrix marked SPS_SORTED
 *  is not checked again.  EINVAL; ESHAPE if l differs; EMATRIX names the first
 *  bad row; EUNFIT for 2^31 rows or more on a GPU; ENOMEM, EDEVMEM. */
sps_status sps_csr_multiply(sps_context *ctx, const sps_csr *A,
                            const sps_csr *B, sps_csr **C_p);
/** Creates *T_p = A' as a new csr in the memory where A is stored, with the
 *  same dtype; destroy it with sps_csr_destroy.  Its rows are sorted without
 *  duplicates; unsorted rows and duplicates of A are handled as by
 *  sps_csr_multiply.  EINVAL, EMATRIX (a bad row, or more than 2^31 - 1 rows),
 *  ENOMEM, EDEVMEM. */
sps_status sps_csr_transpose(sps_context *ctx, const sps_csr *A,
                             sps_csr **T_p);
/** Frees the csr, and its arrays unless they are borrowed.  ctx must be the
 *  context with which it was created. */
void sps_csr_destroy(sps_context *ctx, sps_csr **A_p);

/* ------------------------------------------------------------------ block */

/** Creates a zeroed n x k block of doubles in the context's place, k = 1 to
 *  1024: row-major, with rows padded to the ld that sps_block_data returns.
 *  ESHAPE, ENOMEM, EDEVMEM. */
sps_status sps_block_create(sps_context *ctx, int64_t n, int k,
                            sps_block **X_p);
/** Creates a block that uses the caller's row-major memory in the context's
 *  place: element (i, j) is data[i * ld + j], ld >= k, data aligned to 8 bytes.
 *  The caller keeps the memory alive and frees it.  The elements are copied
 *  only during a solve, if alignment or ld differ from those of
 *  sps_block_create. For arrays of other layouts or memory spaces use
 *  sps_block_create, _set and _get. */
sps_status sps_block_wrap(sps_context *ctx, int64_t n, int k, double *data,
                          int64_t ld, sps_block **X_p);
/** Copies the caller's n x k array to columns first .. first+k-1 of X.  Element
 *  (i, j) is data[i * ld + j] (SPS_ROW_MAJOR, ld >= k) or data[i + j * ld]
 *  (SPS_COL_MAJOR, ld >= n), in host memory or, of a context on a GPU, in
 *  device memory.  Host arrays may be changed on return; copies between device
 *  arrays are queued on the context's stream. */
sps_status sps_block_set(sps_block *X, int first, int k, const double *data,
                         int64_t ld, sps_order order, sps_place place);
/** Copies columns first .. first+k-1 of X to the caller's array, whose layout
 *  is given as for sps_block_set.  A host array is complete on return; a copy
 *  to a device array is queued on the context's stream. */
sps_status sps_block_get(const sps_block *X, int first, int k, double *data,
                         int64_t ld, sps_order order, sps_place place);
/** Fills X with random values, uniform in [-1/2, 1/2): Philox keyed by (seed,
 *  row, column), the same for every place and number of threads; different on
 *  each of several processes. */
sps_status sps_block_random(sps_block *X, uint64_t seed);
/** Fills X with rows first .. first+n-1 of a larger random block: its row i
 *  gets the numbers that row first+i of the whole gets from sps_block_random,
 *  in a single process.  So rows that are divided among processes have the
 *  same numbers however they are divided.  EINVAL if first < 0. */
sps_status sps_block_random_rows(sps_block *X, uint64_t seed, int64_t first);
/** Sets *n to the number of rows and *k to the number of columns of X; either
 *  pointer may be NULL. */
void sps_block_shape(const sps_block *X, int64_t *n, int *k);
/** Returns the block's memory in the context's place; element (i, j) is at i *
 *  ld + j.  ld may be NULL.  The memory belongs to the block. */
double *sps_block_data(const sps_block *X, int64_t *ld);
/** Reads an n x k file of any kind that sps_csr_read accepts into a new block;
 *  from a file of PETSc the vectors, and from one of Harwell-Boeing the
 *  right-hand sides, if there are any.  Plain numbers are read as well, a row
 *  in each line, separated by blanks or commas.  interleaved: for a matrix in
 *  interleaved real form; row i of the file becomes rows 2 i (real part) and 2
 *  i + 1 (imaginary part, zero if the file is real); complex files are those of
 *  Matrix Market and of NumPy.  Otherwise a complex file is rejected.  ro may
 *  be NULL.  EIO, EPARSE, ENOMEM, EDEVMEM, EABSENT as sps_csr_read. */
sps_status sps_block_read(sps_context *ctx, const char *path,
                          const sps_read_options *ro, bool interleaved,
                          sps_block **X_p);
/** Reads rows first .. first+rows-1 of an n x k file into a new block, n =
 *  `whole`; the file as for sps_block_read, real.  In a context of several
 *  processes all must call it, each with its own rows; a plain array file of
 *  Matrix Market is then read in parts, one by each process, any other file by
 *  each as a whole.  Errors in the file have the text of one process.  ESHAPE
 *  if the file has not `whole` rows; otherwise as sps_block_read; EPEER. */
sps_status sps_block_read_rows(sps_context *ctx, const char *path,
                               const sps_read_options *ro, int64_t first,
                               int64_t rows, int64_t whole, sps_block **X_p);
/** Writes X, in the same way as sps_csr_write: ".npy" is an array of NumPy,
 *  ".npz" an archive with one array, X, ".petsc" a Vec, or a dense Mat for
 *  several columns, anything else an array file of Matrix Market.  interleaved:
 *  rows 2 i and 2 i + 1 become real and imaginary part of row i of a complex
 *  file (not of PETSc: EINVAL).  EIO.
 *
 *  In a context of several processes all must call it, with their own rows, in
 *  the order of the processes; one file results, with the bytes that one
 *  process would write.  Each process writes its part.  Only .npy and Matrix
 *  Market, not compressed, to a regular file that all processes see; otherwise
 *  EUNFIT on all.  If one process fails, there is no file, and an older one
 *  stays. */
sps_status sps_block_write(const sps_block *X, const char *path,
                           bool interleaved);
/** Creates *R_p, a block of the rigid body modes of the structure whose m nodes
 *  have the coordinates coords (m x d, d = 2 or 3).  It is n x q, n = d m, with
 *  orthonormal columns, where the d unknowns of a node are consecutive; q = 3
 *  for d = 2 and 6 for d = 3, or fewer, with a note, if the nodes are
 *  collinear. The modes span the null space of the stiffness matrix of an
 *  unsupported structure: for sps_options.nullspace_basis, which a solver
 *  verifies.  ESHAPE, EINVAL (not finite). */
sps_status sps_block_rigid_body(const sps_block *coords, sps_block **R_p);
void sps_block_destroy(sps_block **X_p);

/* ---------------------------------------------------------------- options */

/** What a monitor receives after an iteration; valid during the call. */
typedef struct sps_progress {
    int iteration;
    int k;                    /**< columns, or eigenpairs wanted */
    const double *residual;   /**< k residuals (host memory), relative to
                                   what option norm says; computed by the
                                   recurrence of the method, not verified */
    double worst, median;     /**< of residual[] */
    int converged;            /**< columns whose residual is below its threshold
                                   */
    int width;                /**< search directions of this iteration */
    double seconds;           /**< since the solve began */
    const char *event;        /**< NULL, or an event of this iteration, such
                                   as "residual replaced" */
    size_t struct_size;       /**< sizeof(sps_progress) of the library; it
                                   follows the members that 0.1 had */
} sps_progress;

/** Called once for each iteration, in order; return false to stop
 *  (INTERRUPTED).  On a GPU up to check_every iterations may be complete when
 *  the call for the first of them is made; they are counted. */
typedef bool (*sps_monitor_fn)(const sps_progress *p, void *data);

/** Options of operators, preconditioners and solvers; a value at the end of a
 *  comment is the default.  Strings and blocks are borrowed: the caller keeps
 *  them alive as long as the objects that were created with these options. */
typedef struct sps_options {
    size_t struct_size;       /**< sizeof(sps_options) */
    const char *solver;       /**< auto block_cg cg refinement gmres block_gmres
                                   block_gcrodr bicgstab idr minres; for least
                                   squares: auto lsqr lsmr; for pairs: auto
                                   lobpcg chebyshev_filter */
    const char *precond;      /**< auto none jacobi block_jacobi chebyshev
                                   ilu0 ic0 ilut dense fsai isai amg
                                   factor (where its module is installed) */
    const char *kernel;       /**< auto, measure, or a kernel's name */
    const char *nullspace;    /**< auto (default) none constant components */
    const sps_block *nullspace_basis; /**< basis of the null space, n x q; or
                                       NULL */
    const char *wisdom;       /**< file of kernels chosen by time, or NULL */
    double rtol, atol;        /**< tolerances (sps_norm); 1e-8 and 0 */
    sps_norm norm;            /**< SPS_NORM_RHS */
    int max_iterations;       /**< 10000 */
    double max_seconds;       /**< limit for one solve; the set-up of the
                                   solver counts as part of the first solve.
                                   At least one iteration is made.  0: no
                                   limit */
    int block_size;           /**< rows of a block of block_jacobi or of a node
                                   of amg; 0: determined from the pattern */
    int degree;               /**< degree of chebyshev, or of the smoother of
                                   amg (1 to 4); 0 (default): chosen */
    const char *scale;        /**< scaling before ilut: auto none equilibrate
                                   match */
    const char *reorder;      /**< of an operator, for its solvers of A X =
                                   B: none rcm morton auto (rcm if a gain is
                                   predicted).  With several processes rows
                                   move between them, as many to each as from
                                   it: morton, or metis (parts of the graph,
                                   by the module of sparse factors) */
    const sps_block *coords;  /**< for morton and amg: a row for each node, 1 to
                                   3 columns; the unknowns of a node are
                                   consecutive; with several processes, own
                                   nodes.  Read when the operator, or the
                                   preconditioner, is created */
    const char *order;        /**< order of the unknowns before ilut: auto none
                                   rcm degree */
    const char *dense;        /**< auto: solver auto may use dense factors as
                                   its last attempt if n <= 2000, and after
                                   lsmr; never */
    int power;                /**< of fsai: its pattern is that of A^power; 1 */
    double droptol;           /**< of ilut: entries below this fraction of
                                   their row's largest are dropped, 1e-3 */
    double fill;              /**< of ilut: a row of L, and one of U, keeps
                                   at most this multiple of the mean row
                                   length of A, 10 */
    int restart;              /**< of gmres: steps of a cycle, 50; a cycle
                                   needs memory for as many blocks of
                                   right-hand sides */
    bool flexible;            /**< of gmres: the preconditioner may change
                                   from step to step; needs twice the memory
                                   (false) */
    int recycle;              /**< of block_gcrodr: vectors kept from cycle to
                                   cycle and solve to solve; 0: two for each
                                   right-hand side, at least 10, at most 256 */
    int bicgstab_l;           /**< l of bicgstab: degree of the polynomial that
                                   stabilises a sweep of 2 l products, 2 */
    int idr_s;                /**< s of idr: dimension of the shadow space, 4 */
    double rank_tolerance;    /**< directions below this relative singular
                                   value are dropped; 1e-10 */
    int true_residual_every;  /**< iterations between two recomputations of
                                   the residual b - A x, 50 */
    bool full_precision;      /**< exclude kernels that drop bits of values
                                   or blocks (true) */
    bool strict_nonfinite;    /**< exclude kernels by which a NaN or infinity
                                   of X reaches rows of A X that do not store
                                   its column (false; doc/numerics.md) */
    const char *precision;    /**< precision of the work; X, residuals and
                                   tolerances are always double.  auto:
                                   double, but amg in single precision;
                                   single_basis: gmres and block_gmres store
                                   their basis in single precision;
                                   single_precond: fsai, isai, block_jacobi,
                                   ilu0 and ic0 store their values in it;
                                   mixed: both, and refinement, with
                                   corrections in single precision, replaces
                                   block_cg and cg; solver auto decides
                                   whether that is faster (doc/numerics.md) */
    const char *before_0_2[2]; /**< NULL; formerly basis and
                                    precond_precision */
    int check_every;          /**< iterations that may be queued on a GPU
                                   without host synchronisation, 1 to 16
                                   (10); changes no result */
    bool replay;              /**< iterations of small systems are recorded
                                   once and replayed as CUDA graphs (true);
                                   changes no result */
    const char *which;        /**< eigenvalues: smallest (default) largest
                                   nearest (to sigma) */
    double sigma;             /**< for which = nearest; 0 */
    int block;                /**< columns of an eigensolver's block; 0: the
                                   requested pairs and some guard columns, at
                                   most 40 together */
    bool verify_count;        /**< after the pairs are found, look for missed
                                   ones (false) */
    const sps_block *constraints; /**< eigenvectors are computed M-orthogonal
                                       to the columns of this block; or NULL */
    sps_monitor_fn monitor;   /**< called after each iteration, or NULL */
    void *monitor_data;
    double damp;              /**< of lsqr and lsmr, d >= 0: they minimise
                                   ||b - A x||^2 + d^2 ||x||^2; 0 */
    const char *factors;      /**< auto: solver auto may use sparse direct
                                   factors (preconditioner factor), first
                                   where they are predicted to be faster, and
                                   as its last attempt; never */
    const char *near_null;    /**< of amg: the vectors that coarse spaces
                                   contain for nodes of several rows: auto
                                   (rigid body modes if coords is given, else
                                   constants) or filtered (computed from the
                                   matrix).  Also of ic0, ilu0, ilut and factor
                                   over several processes: auto, or none for no
                                   coarse space */
    const sps_block *near_null_basis; /**< of amg: vectors to use in place of
                                       these, n x q with q <= 12; or NULL */
} sps_options;
/** Fills in the defaults; auto where a name may be auto.  For the macro see
 *  sps_context_options_default. */
void sps_options_default(sps_options *opt);
void sps_options_init(sps_options *opt, size_t size);
#define sps_options_default(opt) sps_options_init((opt), sizeof(sps_options))
/** Sets members from text, "rtol=1e-8 solver=cg"; separators are blanks, commas
 *  or newlines, blanks are allowed around '=', '#' begins a comment to the end
 *  of the line.  Names are those of the members, '-' may replace '_', and
 *  aliases are accepted.  On EINVAL no member is changed, and the error names
 *  the unknown word and the most similar one, or the range.  Strings are copied
 *  into memory of ctx and valid until it is destroyed. */
sps_status sps_options_parse(sps_context *ctx, sps_options *opt,
                             const char *text);
/** Writes every option as a "name=value" line to text, an array of size bytes:
 *  truncated to size - 1 characters and always terminated.  Returns the length
 *  of the whole text, so that a result >= size means that it was truncated. */
size_t sps_options_print(const sps_options *opt, char *text, size_t size);

/** Creates options with defaults, in memory of ctx, for callers that do not
 *  know the layout of the struct; accepted by all functions with an options
 *  argument.  Destroy them before ctx.  ENOMEM. */
sps_status sps_options_create(sps_context *ctx, sps_options **opt_p);
void sps_options_destroy(sps_context *ctx, sps_options **opt_p);
/** Sets one option from text, as sps_options_parse does; an empty text restores
 *  the default of a word or file name.  EINVAL. */
sps_status sps_options_set(sps_context *ctx, sps_options *opt,
                           const char *name, const char *text);
/** Writes the value of one option to text, from which sps_options_set restores
 *  the same value.  EINVAL if there is no such option, or if `size` bytes are
 *  too few (text then has the beginning, and the error the number of bytes). */
sps_status sps_options_get(sps_context *ctx, const sps_options *opt,
                           const char *name, char *text, size_t size);
/** Sets one of the members that are blocks: "nullspace_basis", "coords",
 *  "constraints" or "near_null_basis"; X is borrowed, NULL removes it. */
sps_status sps_options_set_block(sps_context *ctx, sps_options *opt,
                                 const char *name, const sps_block *X);
/** Sets monitor and monitor_data. */
sps_status sps_options_set_monitor(sps_context *ctx, sps_options *opt,
                                   sps_monitor_fn monitor, void *data);

/** Type of an option's value. */
typedef enum sps_option_type {
    SPS_OPTION_WORD = 0,      /**< one of a list of words */
    SPS_OPTION_NAME = 1,      /**< any text; the words are suggestions */
    SPS_OPTION_FILE = 2,      /**< a file name */
    SPS_OPTION_REAL = 3,
    SPS_OPTION_INTEGER = 4,
    SPS_OPTION_BOOLEAN = 5,   /**< true or false */
    SPS_OPTION_NATURAL = 6,   /**< a uint64_t */
    SPS_OPTION_SIZE = 7       /**< a size_t: bytes */
} sps_option_type;

/** Description of an option.  The texts are static and never NULL. */
typedef struct sps_option_info {
    size_t struct_size;       /**< sizeof(sps_option_info), set by the caller */
    const char *name;         /**< as the member of sps_options or, for an
                                   option of a context, sps_context_options */
    const char *aliases;      /**< other accepted names, separated by blanks */
    sps_option_type type;
    double low, high;         /**< range of numbers, inclusive; infinite for
                                   no limit, although the number must be
                                   finite */
    const char *words;        /**< separated by blanks; "@kind" stands for
                                   the names of sps_list(ctx, "kind", i) */
    const char *default_value; /**< "" if there is none */
    const char *unit;         /**< of numbers, such as "seconds" or "steps";
                                   or "" */
    const char *argument;     /**< name of the value in a synopsis */
    const char *group;        /**< a heading, such as "Method" or "Stopping";
                                   "" for what the command sets otherwise */
    const char *readers;      /**< methods and preconditioners that use it,
                                   separated by blanks; "" for general
                                   options */
    const char *help;         /**< the effect, without a full stop */
    size_t offset;            /**< of that member */
} sps_option_info;

/** Describes the option of that name or alias; info->struct_size must be set.
 *  ctx may be NULL.  sps_list(ctx, "option", i) returns all names, and
 *  sps_list(ctx, "context_option", i) those of a context.  EINVAL. */
sps_status sps_option_information(sps_context *ctx, const char *name,
                                  sps_option_info *info);

/* --------------------------------------------------------------- operator */

/** Computes Y = alpha A X + beta Y.  X and Y are n x k, row-major, with element
 *  (i, j) at i * ldx + j and i * ldy + j, doubles in the context's place;
 *  sps_block_wrap makes them blocks for functions of the library.  If beta = 0,
 *  Y must not be read.  On a GPU the work must be queued on `stream`, the
 *  context's cudaStream_t; on the host it is NULL.  `data` is that of
 *  sps_operator_user or sps_precond_user.  Returns 0; any other value ends the
 *  solve with EUSER. */
typedef int (*sps_apply_fn)(double alpha, const double *X, int64_t ldx,
                            double beta, double *Y, int64_t ldy, int64_t n,
                            int k, void *stream, void *data);

/** Creates an operator from a csr, for blocks of `width` columns (wider ones
 *  are multiplied in slices).  A is borrowed: it must outlive the operator and
 *  keep its pattern.  Unsorted rows are sorted into a copy, with a note.  A csr
 *  in device memory (place SPS_CUDA) is checked, planned and used there; it is
 *  copied to host memory once something reads its entries on the host (rows
 *  that are not sorted, most preconditioners, factors, eigenvalues).  opt->kernel
 *  selects the kernel; opt may be NULL.  For own rows (sps_csr_wrap_rows) all
 *  processes create the operator together: its blocks have own rows, each
 *  product exchanges the rows that others need, and option wisdom is ignored.
 *  EMATRIX; EUNFIT if the kernel requested by name does not fit (the text says
 *  why); ENOMEM, EDEVMEM. */
sps_status sps_operator_csr(sps_context *ctx, sps_csr *A, int width,
                            const sps_options *opt, sps_operator **op_p);
/** Creates an operator from the caller's function, with n rows and columns.
 *  props: SPS_SYMMETRIC | SPS_SPD, as far as the caller knows. */
sps_status sps_operator_user(sps_context *ctx, int64_t n, sps_apply_fn apply,
                             void *data, unsigned props, sps_operator **op_p);
/** Creates an operator of nrow rows and ncol columns from a pair of the
 *  caller's functions: `apply` computes Y = alpha A X + beta Y, `transposed`
 *  computes Y = alpha A'X + beta Y, and the n that both receive is the number
 *  of rows of Y. For lsqr and lsmr, which need both products.  EINVAL if a
 *  function is NULL. */
sps_status sps_operator_user_pair(sps_context *ctx, int64_t nrow, int64_t ncol,
                                  sps_apply_fn apply, sps_apply_fn transposed,
                                  void *data, sps_operator **op_p);
/** Computes rows first .. first+count-1 of a matrix: count + 1 offsets that
 *  begin with 0, and columns, ascending without duplicates, and values (double,
 *  or float for SPS_F32) from the beginning of col and val, which have room for
 *  `longest` entries a row.  Several threads call it at the same time for
 *  different rows.  Returns 0; any other value ends the call with EUSER. */
typedef int (*sps_rows_fn)(int64_t first, int64_t count, int64_t *rowptr,
                           int32_t *col, void *val, void *data);
/** Creates an operator from rows that the caller computes, for blocks of
 *  `width` columns.  `shape` is a csr without arrays: nrow, ncol, nnz (exact),
 *  dtype, props; no row has more than `longest` entries.  Each row is computed
 *  once, during this call.  If the matrix leaves the GPU too little memory for
 *  the blocks of a solver, rows are packed as they are computed, and the whole
 *  csr exists nowhere: products are streamed (kernel spmm.stream, whatever opt
 *  names), and otherwise the operator has the limits of a callback, so that
 *  preconditioners that read entries are refused.  If it fits, or the context
 *  is one of the host, the operator is that of a csr.  EINVAL, EUSER; EMATRIX
 *  (the text names the first bad row); ENOMEM, EDEVMEM. */
sps_status sps_operator_rows(sps_context *ctx, const sps_csr *shape,
                             int64_t longest, sps_rows_fn make, void *data,
                             int width, const sps_options *opt,
                             sps_operator **op_p);
/** Y = alpha A X + beta Y, where X is ncol x k, Y is nrow x k, and they do not
 *  overlap.  If beta = 0, Y is not read, so that a NaN in it does not matter.
 *  On a GPU the product is queued: the function returns before it is complete
 *  (sps_context_sync).  EINVAL, ESHAPE, EUSER, EDEVICE. */
sps_status sps_operator_apply(const sps_operator *op, double alpha,
                              const sps_block *X, double beta, sps_block *Y);
/** Sampled product (SDDMM) on the pattern of A.  For each entry p of the csr,
 *  at (i, j): val[p] = alpha (u_i . v_j) [times a_ij if multiply] + beta
 *  val[p], where u_i and v_j are rows of U and V.  U is nrow x d, V is ncol x
 *  d, and val has nnz doubles in the context's place.  Planned at the first
 *  call, and again for a much larger width, by the operator's options.  EUNFIT
 *  if a kernel requested by name does not fit, or A was sorted or is a
 *  callback. */
sps_status sps_operator_sample(const sps_operator *op, double alpha,
                               const sps_block *U, const sps_block *V,
                               bool multiply, double beta, double *val);
/** Sets new values for the same pattern: nnz values of the csr's dtype, in its
 *  order, in host memory or in that of the context.  Device values are read on
 *  the context's stream; they are copied to host memory at once if rows were
 *  sorted or reordered, otherwise when the host first needs them.  The caller
 *  must then update its preconditioners by sps_precond_update; a solver updates
 *  its own preconditioner and null space at its next solve.  EINVAL; EUNFIT if
 *  the operator is a callback, or if device values are given for a matrix over
 *  several processes. */
sps_status sps_operator_set_values(sps_operator *op, const void *val,
                                   sps_place place);
/** Writes the measured features of the matrix and the predicted times of the
 *  kernels (for sampled products after the first one) to text, truncated to
 *  size - 1 characters.  Returns the length of the whole text. */
size_t sps_operator_describe(const sps_operator *op, char *text, size_t size);
/** Writes what a product exchanges between processes, for each column of a
 *  block: *rows is the number of rows that all of them receive, *most that of
 *  the process that receives most, and *neighbours the largest number of
 *  processes with which one exchanges messages; each may be NULL.  All are 0
 *  for a single process and for callbacks. */
void sps_operator_halo(const sps_operator *op, int64_t *rows, int64_t *most,
                       int *neighbours);
/** Returns the name of the kernel used for blocks; static. */
const char *sps_operator_kernel(const sps_operator *op);
void sps_operator_destroy(sps_operator **op_p);

/* ---------------------------------------------------------------- precond */

/** Builds opt->precond for A and blocks of up to `width` columns.  A must
 *  outlive it.  EUNFIT if its requirements are not met, or if it was not
 *  complete within opt->max_seconds; a solver then uses jacobi instead. */
sps_status sps_precond_create(const sps_operator *A, int width,
                              const sps_options *opt, sps_precond **M_p);
/** Creates a preconditioner from the caller's function, Z = M R for blocks of n
 *  rows; it is called with X = R, Y = Z, alpha = 1, beta = 0. */
sps_status sps_precond_user(sps_context *ctx, int64_t n, sps_apply_fn apply,
                            void *data, sps_precond **M_p);
/** Computes M again from the values set by sps_operator_set_values. */
sps_status sps_precond_update(sps_precond *M);
/** Z = M R, both n x k, where k is at most the width for which M was built (any
 *  k for a function of the caller); R and Z do not overlap.  EINVAL, ESHAPE. */
sps_status sps_precond_apply(const sps_precond *M, const sps_block *R,
                             sps_block *Z);
/** Returns the name of the preconditioner (sps_options.precond); static. */
const char *sps_precond_name(const sps_precond *M);
/** Writes what was built (for amg the levels, for others the name) to text,
 *  truncated to size - 1 characters.  Returns the length of the whole text. */
size_t sps_precond_describe(const sps_precond *M, char *text, size_t size);
void sps_precond_destroy(sps_precond **M_p);

/* ----------------------------------------------------------------- solver */

/** Seconds by phase; part of results, never extended. */
typedef struct sps_seconds {
    double setup, solve, verify;         /**< wall time; setup: of the first
                                              solve what making the solver
                                              took, and of each what was done
                                              before the iteration, as for new
                                              values.  The operator and a
                                              preconditioner of the caller are
                                              not counted */
    double spmm, precond, gram, small;   /**< parts of solve: products with
                                              A, with M, of blocks, and of
                                              small matrices */
} sps_seconds;

/** Result of a solve.  Arrays belong to the solver: valid until its next solve
 *  or destroy. */
typedef struct sps_result {
    size_t struct_size;         /**< sizeof(sps_result), set by the caller */
    sps_stop stop;              /**< > 0: all columns converged (verified) */
    int k, iterations, columns_converged;
    int restarts;               /**< residual replacements */
    int64_t applies_A, applies_M;   /**< counted in blocks; M is not applied
                                     if it is a multiple of the identity */
    int min_width;              /**< fewest search directions used */
    double worst_residual;      /**< max of residual[] */
    double worst_backward;      /**< max of backward[] */
    double norm_A;              /**< lower estimate of ||A||_2 */
    double removed;             /**< ||component of B in the null space|| /
                                     ||B|| */
    int nullspace;              /**< dimension of the null space that was
                                     projected out */
    const double *residual;     /**< k, ||b - A x|| / ||b|| of the caller's b
                                     and the returned X, computed in twice
                                     the working precision; 0 if b = 0 */
    const double *backward;     /**< k, ||b - A x|| / (||A|| ||x|| + ||b||) */
    const sps_stop *column;     /**< k, the stop reason of each */
    const char *solver, *precond, *kernel;  /**< static: what was used */
    sps_seconds seconds;
    double worst_in_range;      /**< max of ||P (b - A x)|| / ||P b||, where
                                     P is the projection against the null
                                     space */
    bool in_doubles;            /**< A is a callback: residuals were computed
                                     by one more call, in doubles */
    /* Least squares (lsqr, lsmr) only; otherwise NULL and 0. */
    const double *normal;       /**< k, of the normal equations:
                                     ||A'r - d^2 x|| / (|A| |r|), r = b - A x,
                                     |A|^2 = ||A||^2 + d^2 with the estimate
                                     norm_A, |r|^2 = ||r||^2 + d^2 ||x||^2, d
                                     the option damp */
    double worst_normal;        /**< max of normal[] */
} sps_result;

/** A solver for A X = B, k right-hand sides.  A rectangular A, or option damp,
 *  is a problem of least squares, for lsqr and lsmr (auto takes one of them):
 *  column j has converged when, with the notation of sps_result.normal,
 *      |r| <= the threshold of option norm    (CONVERGED), or
 *      ||A'r - d^2 x|| <= rtol |A| |r|        (CONVERGED_LEAST_SQUARES);
 *  from the guess 0 they find the solution of least norm.  Preconditioners of
 *  theirs are none (auto) and jacobi: the columns of A are scaled to norm 1,
 *  and ||x|| is least in that scaling.  M NULL: the solver builds and
 *  owns opt->precond.  A and M must outlive the solver.  Its memory is
 *  allocated here, except for later steps of auto and where notes say so.  opt
 *  may be NULL.  EUNFIT: the method's requirements are not met; EINVAL: unknown
 *  names; ENOMEM, EDEVMEM. */
sps_status sps_solver_create(const sps_operator *A, sps_precond *M, int k,
                             const sps_options *opt, sps_solver **s_p);
/** Solves A X = B, X ncol x k and B nrow x k in the context's place.  X has the
 *  initial guess and receives for each column the best iterate: its ||b - A x||
 *  is at most 5 % above the lowest of the iteration, also after a failure, even
 *  of a callback.  Every entry of X is finite.  B is not changed.  result may
 *  be NULL.  A method that does not converge is no failure: see result->stop.
 */
sps_status sps_solver_linear(sps_solver *s, const sps_block *B, sps_block *X,
                             sps_result *result);
/** Projects B (n x k of the solver) against the null space that the solver
 *  projects out, so that a symmetric A X = B is consistent; does nothing if
 *  there is none. */
sps_status sps_solver_project(sps_solver *s, sps_block *B);
/** Writes the preconditioner in use, as sps_precond_describe does, or "none" to
 *  text, truncated to size - 1 characters: that of the last solve, or, before
 *  the first one, that with which it begins.  Returns the length of the whole
 *  text. */
size_t sps_solver_describe(const sps_solver *s, char *text, size_t size);
void sps_solver_destroy(sps_solver **s_p);

/* ------------------------------------------------------ eigenvalue problems */

/** Result of an eigenproblem.  Arrays belong to the solver: valid until its
 *  next solve or destroy.  All is recomputed in double from A, M, X. */
typedef struct sps_eigen_result {
    size_t struct_size;         /**< sizeof(sps_eigen_result), by the caller */
    sps_stop stop;              /**< > 0: all pairs converged (verified) */
    int count, converged;       /**< pairs wanted, and converged */
    int block;                  /**< columns of the iterated block */
    int iterations, restarts;
    int64_t applies_A, applies_M, applies_precond;   /**< counted in blocks */
    double worst_residual, worst_backward;
    double norm_A, norm_M;      /**< lower estimates of 2-norms */
    double orthogonality;       /**< max |X'MX - I| */
    int nullspace;              /**< dimension of the null space of A that
                                     was deflated.  Its eigenvalues 0 are not
                                     included; they do not exist where M has
                                     the same null vectors */
    int missed;                 /**< verify_count: number of wanted
                                     eigenvalues that are missing from the
                                     pairs; -1 if not checked */
    const double *lambda;       /**< count, in the order of `which`; 0, with
                                     infinite residual and bound, if a
                                     product was not finite */
    const double *residual;     /**< count, ||A x - l M x|| / (|l| ||M x||) */
    const double *backward;     /**< count, ||A x - l M x|| /
                                     ((||A|| + |l| ||M||) ||x||) */
    const double *bound;        /**< count: an eigenvalue lies within this
                                     distance of l, ||A x - l M x|| in the
                                     norm of M^-1 divided by ||x|| in that of
                                     M; infinite if unknown */
    const sps_stop *pair;       /**< count, the stop reason of each */
    const char *solver, *precond, *kernel;  /**< static: what was used */
    sps_seconds seconds;
} sps_eigen_result;

/** A solver for count eigenpairs of A x = lambda M x, A symmetric, M symmetric
 *  positive definite or NULL for the identity; opt->which selects them.  M may
 *  be singular on the null vectors of A, if these are given: then the pairs are
 *  those on the complement of the null vectors.
 *  T approximates the inverse of A (largest: of sigma M - A) or is NULL (then
 *  opt->precond is built and owned).  A pair has converged when
 *      ||A x - lambda M x|| <= max(rtol |lambda|, atol) ||M x||,
 *  with norm = backward when it is <= rtol (||A|| + |lambda| ||M||) ||x||.
 *  opt->nullspace = constant or components, or opt->nullspace_basis, names a
 *  null space of A, whose zero eigenvalues are excluded; auto is the same as
 *  none here.  A, M and T must outlive the solver.  EUNFIT: not symmetric, M
 *  found not to be definite, no such method; EINVAL: more pairs than exist. */
sps_status sps_solver_create_eigen(const sps_operator *A,
                                   const sps_operator *M, sps_precond *T,
                                   int count, const sps_options *opt,
                                   sps_solver **s_p);
/** Computes eigenpairs.  X (n x count, in the context's place) has a guess,
 *  whose zero columns are replaced by random ones, and receives M-orthonormal
 *  eigenvectors in the order of `which`; lambda (count values, host memory)
 *  receives the eigenvalues: the best pairs found, also after a failure. lambda
 *  and result may be NULL.  The method lobpcg is that of Knyazev, SIAM J. Sci.
 *  Comput. 23 (2001). */
sps_status sps_solver_eigen(sps_solver *s, sps_block *X, double *lambda,
                            sps_eigen_result *result);

/** Returns name i of a kind ("solver", "eigensolver", "precond", "kernel.cpu",
 *  "kernel.cuda", "option", "context_option"), or NULL past the last.  ctx may
 *  be NULL: "kernel.cuda" then gives the names that a context on a GPU would
 *  have.  "factor_module" has one text: the path of the module of sparse
 *  factors with the library and its version, or "absent: " and why. */
const char *sps_list(const sps_context *ctx, const char *kind, int i);

#ifdef __cplusplus
}
#endif
#endif
