/* SPDX-License-Identifier: BSD-3-Clause */
/* petsc_spsolve.c - libspsolve in PETSc: KSP and PC of the type "spsolve".
 *
 * Compile this file into a program, and call PetscSpsolveRegister() after
 * PetscInitialize.  PETSc 3.18 or later, real numbers in double precision.
 *
 *   -ksp_type spsolve -ksp_spsolve_solver cg -ksp_spsolve_precond amg
 *   -pc_type spsolve -pc_spsolve_precond ic0
 *
 * Every option of the library has such a name (-help lists them).  rtol, atol
 * and max_it are PETSc's.  KSPMatSolve solves for all columns at once.
 *
 * On one process the matrix (AIJ, or what converts to it) is the library's csr,
 * and so is the preconditioner, unless -ksp_spsolve_use_pc, by which the PC of
 * the KSP is a function of the library's solver.  Of several processes, and
 * with matrices that do not convert, products are PETSc's MatMult, and the
 * preconditioner is the PC of the KSP.
 */
#include <petsc/private/kspimpl.h>
#include <petsc/private/pcimpl.h>
#include <petscmat.h>

#include <spsolve.h>

#if defined(PETSC_USE_COMPLEX) || !defined(PETSC_USE_REAL_DOUBLE)
#error "libspsolve needs a PETSc of real numbers in double precision"
#endif
#if PETSC_VERSION_GE(3, 23, 0)
typedef PetscOptionItems Items;
#else
typedef PetscOptionItems *Items;
#endif

PETSC_EXTERN PetscErrorCode PetscSpsolveRegister(void);

/* The data that a KSP and a PC of type spsolve have in common. */
typedef struct {
    sps_context *ctx;
    sps_comm *comm;          /* communicator of the library, if there are
                                several processes */
    MPI_Comm mpi;
    char *options;           /* options of the library, in the syntax of
                                sps_options_parse */
    Mat mat;                 /* PETSc's matrix; not owned */
    PetscObjectState pattern; /* PETSc's nonzero state of the matrix for which
                                 the operator was made */
    PetscObjectState values; /* PETSc's object state of that matrix, which
                                changes with its values */
    sps_csr *A;
    sps_operator *op;
    Vec in, out;             /* vectors in which a column of a block is given to
                                PETSc's functions and received from them */
    PC pc;                   /* PETSc's preconditioner, which the library's
                                solver calls, or NULL */
} Core;

typedef struct {
    Core core;
    PetscBool use_pc;
    sps_precond *M;
    sps_solver *solver;
    int k;                   /* number of columns for which the solver was
                                made */
    PetscReal start;         /* norm of b, by which residuals are relative */
} Solver;

typedef struct {
    Core core;
    sps_precond *M;
    int width;
} Precond;

#define CALL_SPS(core, call)                                                   \
    do {                                                                       \
        if (call)                                                              \
            SETERRQ(PETSC_COMM_SELF, PETSC_ERR_LIB, "libspsolve: %s",          \
                    sps_context_error((core)->ctx));                           \
    } while (0)

/* ------------------------------------------------------------------ set-up */

static int sum_over_processes(double *values, int count, void *data)
{
    return MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM,
                         *(MPI_Comm *)data);
}

static PetscErrorCode CoreContext(Core *c, MPI_Comm mpi)
{
    sps_context_options o;
    sps_comm_calls calls = { .struct_size = sizeof calls,
                             .sum = sum_over_processes };
    const char *why = "";
    PetscMPIInt rank, size;

    PetscFunctionBegin;
    if (c->ctx) PetscFunctionReturn(0);
    c->mpi = mpi;
    PetscCallMPI(MPI_Comm_rank(mpi, &rank));
    PetscCallMPI(MPI_Comm_size(mpi, &size));
    sps_context_options_default(&o);
    o.place = SPS_HOST;
    if (size > 1) {
        PetscCheck(!sps_comm_user(rank, size, &calls, &c->mpi, &c->comm), mpi,
                   PETSC_ERR_LIB, "libspsolve: %s", sps_context_error(NULL));
        o.comm = c->comm;
    }
    PetscCheck(!sps_context_create(&o, &c->ctx, &why), mpi, PETSC_ERR_LIB,
               "libspsolve: %s", why);
    PetscFunctionReturn(0);
}

static PetscErrorCode CoreReset(Core *c)
{
    PetscFunctionBegin;
    sps_operator_destroy(&c->op);
    if (c->A) sps_csr_destroy(c->ctx, &c->A);
    PetscCall(VecDestroy(&c->in));
    PetscCall(VecDestroy(&c->out));
    c->mat = NULL;
    PetscFunctionReturn(0);
}

static PetscErrorCode CoreDestroy(Core *c)
{
    PetscFunctionBegin;
    PetscCall(CoreReset(c));
    if (c->ctx) sps_context_destroy(&c->ctx);
    if (c->comm) sps_comm_destroy(&c->comm);
    PetscCall(PetscFree(c->options));
    PetscFunctionReturn(0);
}

/* Copies column j of a row-major block: from `from` to v, or from v to `to`. */
static PetscErrorCode Column(Vec v, const double *from, double *to, int64_t ld,
                             int64_t n, int j)
{
    PetscScalar *a;

    PetscFunctionBegin;
    PetscCall(VecGetArray(v, &a));
    for (int64_t i = 0; i < n; i++) {
        if (from) a[i] = from[i * ld + j];
        else to[i * ld + j] = a[i];
    }
    PetscCall(VecRestoreArray(v, &a));
    PetscFunctionReturn(0);
}

/* Y = alpha A X + beta Y, one column after the other. */
static int multiply(double alpha, const double *X, int64_t ldx, double beta,
                    double *Y, int64_t ldy, int64_t n, int k, void *stream,
                    void *data)
{
    Core *c = data;
    PetscScalar *y;

    (void)stream;
    for (int j = 0; j < k; j++) {
        if (Column(c->in, X, NULL, ldx, n, j) ||
            MatMult(c->mat, c->in, c->out) || VecGetArray(c->out, &y))
            return 1;
        for (int64_t i = 0; i < n; i++)
            Y[i * ldy + j] = alpha * y[i] +
                             (beta != 0.0 ? beta * Y[i * ldy + j] : 0.0);
        if (VecRestoreArray(c->out, &y)) return 1;
    }
    return 0;
}

static int precondition(double alpha, const double *R, int64_t ldr,
                        double beta, double *Z, int64_t ldz, int64_t n, int k,
                        void *stream, void *data)
{
    Core *c = data;

    (void)alpha, (void)beta, (void)stream;
    for (int j = 0; j < k; j++)
        if (Column(c->in, R, NULL, ldr, n, j) ||
            PCApply(c->pc, c->in, c->out) || Column(c->out, NULL, Z, ldz, n, j))
            return 1;
    return 0;
}

/* Copies a sequential matrix to the library's csr, or only its new values.
 * PETSc's arrays are opened for reading only, so that the object state of the
 * matrix, which SLEPc examines, does not change. */
static PetscErrorCode TakeCsr(Core *c, Mat seq, const sps_options *o, int width)
{
    const PetscInt *ia, *ja;
    PetscInt n;
    PetscBool done;
    int64_t *rowptr;
    int32_t *col;
    const PetscScalar *val;

    PetscFunctionBegin;
    PetscCall(MatGetRowIJ(seq, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja,
                          &done));
    PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP,
               "PETSc gives no access to the rows of the matrix");
    PetscCall(MatSeqAIJGetArrayRead(seq, &val));
    if (!c->A) {
        PetscCall(PetscMalloc2(n + 1, &rowptr, ia[n], &col));
        for (PetscInt i = 0; i <= n; i++) rowptr[i] = ia[i];
        for (PetscInt p = 0; p < ia[n]; p++) col[p] = (int32_t)ja[p];
        CALL_SPS(c, sps_csr_wrap(c->ctx, n, n, ia[n], rowptr, col,
                                 (double *)val, SPS_F64, SPS_HOST, SPS_COPY,
                                 &c->A));
        PetscCall(PetscFree2(rowptr, col));
        CALL_SPS(c, sps_operator_csr(c->ctx, c->A, width, o, &c->op));
    } else {
        CALL_SPS(c, sps_operator_set_values(c->op, val, SPS_HOST));
    }
    PetscCall(MatSeqAIJRestoreArrayRead(seq, &val));
    PetscCall(MatRestoreRowIJ(seq, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja,
                              &done));
    PetscFunctionReturn(0);
}

/* Sets *seq to mat as a sequential AIJ matrix, which the caller destroys, or to
 * NULL if it cannot be converted. */
static PetscErrorCode AsSequential(Mat mat, Mat *seq)
{
    PetscBool same;
    PetscMPIInt size;

    PetscFunctionBegin;
    *seq = NULL;
    PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)mat), &size));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)mat, &same, MATSHELL,
                                        MATNEST, MATMFFD, ""));
    if (size > 1 || same) PetscFunctionReturn(0);
    PetscCall(PetscObjectTypeCompare((PetscObject)mat, MATSEQAIJ, &same));
    if (same) {
        PetscCall(PetscObjectReference((PetscObject)mat));
        *seq = mat;
    } else {
        PetscCall(MatConvert(mat, MATSEQAIJ, MAT_INITIAL_MATRIX, seq));
    }
    PetscFunctionReturn(0);
}

/* Compares the operator with mat: *same is set if it was made from mat with its
 * present pattern, *changed if the values of mat have changed since.  If not
 * *same, the operator must be made again. */
static PetscErrorCode Compare(Core *c, Mat mat, PetscBool *same,
                              PetscBool *changed)
{
    PetscObjectState pattern, values;

    PetscFunctionBegin;
    PetscCall(MatGetNonzeroState(mat, &pattern));
    PetscCall(PetscObjectStateGet((PetscObject)mat, &values));
    *same = (PetscBool)(c->op && c->mat == mat && c->pattern == pattern);
    *changed = (PetscBool)(c->A && c->values != values);
    c->pattern = pattern;
    c->values = values;
    PetscFunctionReturn(0);
}

static PetscErrorCode CoreOperator(Core *c, Mat mat, const sps_options *o,
                                   int width)
{
    Mat seq;
    PetscInt n;
    PetscBool known, spd = PETSC_FALSE, sym = PETSC_FALSE;

    PetscFunctionBegin;
    c->mat = mat;
    PetscCall(AsSequential(mat, &seq));
    if (seq) {
        PetscCall(TakeCsr(c, seq, o, width));
        PetscCall(MatDestroy(&seq));
        PetscFunctionReturn(0);
    }
    PetscCall(MatGetLocalSize(mat, &n, NULL));
    PetscCall(MatIsSPDKnown(mat, &known, &spd));
    PetscCall(MatIsSymmetricKnown(mat, &known, &sym));
    CALL_SPS(c, sps_operator_user(c->ctx, n, multiply, c,
                                  (spd ? SPS_SPD | SPS_SYMMETRIC : 0) |
                                      (sym ? SPS_SYMMETRIC : 0), &c->op));
    PetscFunctionReturn(0);
}

/* Reads the library's options, by the names in its table of options, into
 * c->options. */
static PetscErrorCode CoreFromOptions(Core *c, const char *kind,
                                      Items PetscOptionsObject)
{
    char name[96], value[512], line[640], text[8192] = "";
    PetscBool set;
    const char *option;

    PetscFunctionBegin;
    for (int i = 0; (option = sps_list(NULL, "option", i)); i++) {
        sps_option_info info = { .struct_size = sizeof info };
        if (sps_option_information(NULL, option, &info)) continue;
        PetscCall(PetscSNPrintf(name, sizeof name, "-%s_spsolve_%s", kind,
                                option));
        PetscCall(PetscOptionsString(name, info.help, "libspsolve",
                                     info.default_value, value, sizeof value,
                                     &set));
        if (!set) continue;
        PetscCall(PetscSNPrintf(line, sizeof line, "%s=%s\n", option, value));
        PetscCall(PetscStrlcat(text, line, sizeof text));
    }
    if (text[0]) {
        PetscCall(PetscFree(c->options));
        PetscCall(PetscStrallocpy(text, &c->options));
    }
    PetscFunctionReturn(0);
}

/* --------------------------------------------------------------------- KSP */

static bool watch(const sps_progress *p, void *data)
{
    KSP ksp = data;
    Solver *s = ksp->data;
    PetscReal norm = s->start * (s->k == 1 ? p->residual[0] : p->worst);

    ksp->its = p->iteration;
    ksp->rnorm = norm;
    return !KSPLogResidualHistory(ksp, norm) &&
           !KSPMonitor(ksp, p->iteration, norm);
}

static PetscErrorCode SolverOptions(KSP ksp, sps_options *o)
{
    Solver *s = ksp->data;
    char text[256];

    PetscFunctionBegin;
    PetscCall(PetscSNPrintf(text, sizeof text,
                            "rtol=%.17g atol=%.17g max_iterations=%d",
                            (double)PetscMin(ksp->rtol, 1.0),
                            (double)ksp->abstol, (int)ksp->max_it));
    CALL_SPS(&s->core, sps_options_parse(s->core.ctx, o, text));
    if (s->core.options)
        CALL_SPS(&s->core, sps_options_parse(s->core.ctx, o, s->core.options));
    o->monitor = watch;
    o->monitor_data = ksp;
    PetscFunctionReturn(0);
}

static PetscErrorCode SolverReset(Solver *s)
{
    PetscFunctionBegin;
    sps_solver_destroy(&s->solver);
    sps_precond_destroy(&s->M);
    s->k = 0;
    PetscFunctionReturn(0);
}

static PetscErrorCode KSPSetUp_Spsolve(KSP ksp)
{
    Solver *s = ksp->data;
    Core *c = &s->core;
    PetscBool same;
    PetscMPIInt size;

    PetscFunctionBegin;
    PetscCall(CoreContext(c, PetscObjectComm((PetscObject)ksp)));
    PetscCallMPI(MPI_Comm_size(c->mpi, &size));
    /* The library's own preconditioner is used: PETSc's is not built. */
    if (size == 1 && !s->use_pc) PetscCall(PCSetType(ksp->pc, PCNONE));
    PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCNONE, &same));
    c->pc = same ? NULL : ksp->pc;
    PetscFunctionReturn(0);
}

/* Makes the solver ready for k columns.  PETSc does not call the set-up if
 * values of the matrix have changed without KSPSetOperators, so changes are
 * looked for here. */
static PetscErrorCode Ready(KSP ksp, int k)
{
    Solver *s = ksp->data;
    Core *c = &s->core;
    sps_options o;
    Mat A;
    PetscInt n;
    PetscBool same, changed;

    PetscFunctionBegin;
    PetscCall(PCGetOperators(ksp->pc, &A, NULL));
    PetscCall(Compare(c, A, &same, &changed));
    if (!same) {
        PetscCall(SolverReset(s));
        PetscCall(CoreReset(c));
    } else if (changed) {
        PetscCall(CoreOperator(c, A, NULL, k));
    }
    if (s->solver && s->k == k) PetscFunctionReturn(0);
    PetscCall(SolverReset(s));
    sps_options_default(&o);
    PetscCall(SolverOptions(ksp, &o));
    if (!c->in) PetscCall(MatCreateVecs(A, &c->in, &c->out));
    if (!c->op) PetscCall(CoreOperator(c, A, &o, k));
    if (c->pc) {
        PetscCall(MatGetLocalSize(A, &n, NULL));
        CALL_SPS(c, sps_precond_user(c->ctx, n, precondition, c, &s->M));
    }
    CALL_SPS(c, sps_solver_create(c->op, s->M, k, &o, &s->solver));
    s->k = k;
    PetscFunctionReturn(0);
}

static KSPConvergedReason ReasonOf(sps_stop stop)
{
    switch (stop) {
    case SPS_STOP_CONVERGED:
    case SPS_STOP_CONVERGED_LEAST_SQUARES: return KSP_CONVERGED_RTOL;
    case SPS_STOP_MAX_ITERATIONS:
    case SPS_STOP_MAX_TIME:
    case SPS_STOP_INTERRUPTED: return KSP_DIVERGED_ITS;
    case SPS_STOP_INDEFINITE: return KSP_DIVERGED_INDEFINITE_MAT;
    case SPS_STOP_PRECOND_INDEFINITE: return KSP_DIVERGED_INDEFINITE_PC;
    case SPS_STOP_NOT_FINITE: return KSP_DIVERGED_NANORINF;
    default: return KSP_DIVERGED_BREAKDOWN;
    }
}

/* Solves A X = B. norm: the largest ||b||, by which relative residuals are
 * multiplied for PETSc's monitors. */
static PetscErrorCode Run(KSP ksp, sps_block *B, sps_block *X, PetscReal norm)
{
    Solver *s = ksp->data;
    sps_result r = { .struct_size = sizeof r };

    PetscFunctionBegin;
    s->start = norm;
    CALL_SPS(&s->core, sps_solver_linear(s->solver, B, X, &r));
    ksp->its = r.iterations;
    ksp->rnorm = r.worst_residual * norm;
    ksp->reason = ReasonOf(r.stop);
    if (r.stop < 0)
        PetscCall(PetscInfo(ksp, "libspsolve: %s\n", sps_stop_string(r.stop)));
    PetscFunctionReturn(0);
}

static PetscErrorCode KSPSolve_Spsolve(KSP ksp)
{
    Solver *s = ksp->data;
    sps_context *ctx = s->core.ctx;
    const PetscScalar *b;
    PetscScalar *x;
    PetscReal norm;
    PetscInt n;
    sps_block *B = NULL, *X = NULL;
    PetscErrorCode ierr;

    PetscFunctionBegin;
    PetscCall(Ready(ksp, 1));
    if (ksp->guess_zero) PetscCall(VecSet(ksp->vec_sol, 0.0));
    PetscCall(VecNorm(ksp->vec_rhs, NORM_2, &norm));
    PetscCall(VecGetLocalSize(ksp->vec_sol, &n));
    PetscCall(VecGetArrayRead(ksp->vec_rhs, &b));
    PetscCall(VecGetArray(ksp->vec_sol, &x));
    CALL_SPS(&s->core, sps_block_wrap(ctx, n, 1, (double *)b, 1, &B));
    CALL_SPS(&s->core, sps_block_wrap(ctx, n, 1, x, 1, &X));
    ierr = Run(ksp, B, X, norm);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    PetscCall(ierr);
    PetscCall(VecRestoreArrayRead(ksp->vec_rhs, &b));
    PetscCall(VecRestoreArray(ksp->vec_sol, &x));
    PetscFunctionReturn(0);
}

/* Solves for k columns, and copies B and X between the layouts: PETSc's dense
 * matrices are column-major, the library's blocks row-major. */
static PetscErrorCode SolveBlock(KSP ksp, Mat B, Mat X, int k, PetscReal norm)
{
    Solver *s = ksp->data;
    sps_context *ctx = s->core.ctx;
    const PetscScalar *b;
    PetscScalar *x;
    PetscInt n, ldb, ldx;
    sps_block *BB = NULL, *XX = NULL;
    PetscErrorCode ierr = 0;
    int bad;

    PetscFunctionBegin;
    PetscCall(MatGetLocalSize(X, &n, NULL));
    PetscCall(MatDenseGetLDA(B, &ldb));
    PetscCall(MatDenseGetLDA(X, &ldx));
    PetscCall(MatDenseGetArrayRead(B, &b));
    PetscCall(MatDenseGetArray(X, &x));
    bad = sps_block_create(ctx, n, k, &BB) ||
          sps_block_create(ctx, n, k, &XX) ||
          sps_block_set(BB, 0, k, b, ldb, SPS_COL_MAJOR, SPS_HOST) ||
          (!ksp->guess_zero &&
           sps_block_set(XX, 0, k, x, ldx, SPS_COL_MAJOR, SPS_HOST));
    if (!bad) ierr = Run(ksp, BB, XX, norm);
    bad = bad || sps_block_get(XX, 0, k, x, ldx, SPS_COL_MAJOR, SPS_HOST);
    sps_block_destroy(&BB);
    sps_block_destroy(&XX);
    PetscCall(ierr);
    CALL_SPS(&s->core, bad);
    PetscCall(MatDenseRestoreArrayRead(B, &b));
    PetscCall(MatDenseRestoreArray(X, &x));
    PetscFunctionReturn(0);
}

static PetscErrorCode KSPMatSolve_Spsolve(KSP ksp, Mat B, Mat X)
{
    PetscInt k;
    PetscReal *norms, norm = 0;

    PetscFunctionBegin;
    PetscCall(MatGetSize(B, NULL, &k));
    PetscCall(Ready(ksp, (int)k));
    PetscCall(PetscMalloc1(k, &norms));
    PetscCall(MatGetColumnNorms(B, NORM_2, norms));
    for (PetscInt j = 0; j < k; j++) norm = PetscMax(norm, norms[j]);
    PetscCall(PetscFree(norms));
    PetscCall(SolveBlock(ksp, B, X, (int)k, norm));
    PetscFunctionReturn(0);
}

static PetscErrorCode KSPSetFromOptions_Spsolve(KSP ksp,
                                                Items PetscOptionsObject)
{
    Solver *s = ksp->data;

    PetscFunctionBegin;
    PetscOptionsHeadBegin(PetscOptionsObject, "KSP spsolve options");
    PetscCall(PetscOptionsBool("-ksp_spsolve_use_pc",
                               "the PC of the KSP is the preconditioner",
                               "libspsolve", s->use_pc, &s->use_pc, NULL));
    PetscCall(CoreFromOptions(&s->core, "ksp", PetscOptionsObject));
    PetscOptionsHeadEnd();
    PetscFunctionReturn(0);
}

static PetscErrorCode KSPView_Spsolve(KSP ksp, PetscViewer viewer)
{
    Solver *s = ksp->data;

    PetscFunctionBegin;
    PetscCall(PetscViewerASCIIPrintf(viewer, "  libspsolve %s%s%s\n",
                                     sps_version(),
                                     s->core.options ? ", " : "",
                                     s->core.options ? s->core.options : ""));
    PetscFunctionReturn(0);
}

static PetscErrorCode KSPReset_Spsolve(KSP ksp)
{
    Solver *s = ksp->data;

    PetscFunctionBegin;
    PetscCall(SolverReset(s));
    PetscCall(CoreReset(&s->core));
    PetscFunctionReturn(0);
}

static PetscErrorCode KSPDestroy_Spsolve(KSP ksp)
{
    Solver *s = ksp->data;

    PetscFunctionBegin;
    PetscCall(SolverReset(s));
    PetscCall(CoreDestroy(&s->core));
    PetscCall(PetscFree(ksp->data));
    PetscFunctionReturn(0);
}

static PetscErrorCode KSPCreate_Spsolve(KSP ksp)
{
    Solver *s;

    PetscFunctionBegin;
    PetscCall(PetscNew(&s));
    ksp->data = s;
    PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_LEFT, 3));
    PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_RIGHT, 2));
    PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_LEFT, 1));
    ksp->ops->setup = KSPSetUp_Spsolve;
    ksp->ops->solve = KSPSolve_Spsolve;
    ksp->ops->matsolve = KSPMatSolve_Spsolve;
    ksp->ops->setfromoptions = KSPSetFromOptions_Spsolve;
    ksp->ops->view = KSPView_Spsolve;
    ksp->ops->reset = KSPReset_Spsolve;
    ksp->ops->destroy = KSPDestroy_Spsolve;
    ksp->ops->buildsolution = KSPBuildSolutionDefault;
    ksp->ops->buildresidual = KSPBuildResidualDefault;
    PetscFunctionReturn(0);
}

/* ---------------------------------------------------------------------- PC */

static PetscErrorCode PCSetUp_Spsolve(PC pc)
{
    Precond *p = pc->data;
    Core *c = &p->core;
    sps_options o;
    Mat seq;
    PetscBool same, changed;

    PetscFunctionBegin;
    PetscCall(CoreContext(c, PetscObjectComm((PetscObject)pc)));
    PetscCall(AsSequential(pc->pmat, &seq));
    PetscCheck(seq, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP,
               "PC spsolve needs a matrix that converts to seqaij; on several "
               "processes use it within -pc_type bjacobi or asm");
    PetscCall(MatDestroy(&seq));
    PetscCall(Compare(c, pc->pmat, &same, &changed));
    if (same) {
        PetscCall(CoreOperator(c, pc->pmat, NULL, p->width));
        CALL_SPS(c, sps_precond_update(p->M));
        PetscFunctionReturn(0);
    }
    sps_precond_destroy(&p->M);
    PetscCall(CoreReset(c));
    sps_options_default(&o);
    if (c->options)
        CALL_SPS(c, sps_options_parse(c->ctx, &o, c->options));
    PetscCall(CoreOperator(c, pc->pmat, &o, p->width));
    CALL_SPS(c, sps_precond_create(c->op, p->width, &o, &p->M));
    PetscFunctionReturn(0);
}

static PetscErrorCode PCApply_Spsolve(PC pc, Vec r, Vec z)
{
    Precond *p = pc->data;
    const PetscScalar *a;
    PetscScalar *b;
    PetscInt n;
    sps_block *R = NULL, *Z = NULL;
    int bad;

    PetscFunctionBegin;
    PetscCall(VecGetLocalSize(r, &n));
    PetscCall(VecGetArrayRead(r, &a));
    PetscCall(VecGetArrayWrite(z, &b));
    bad = sps_block_wrap(p->core.ctx, n, 1, (double *)a, 1, &R) ||
          sps_block_wrap(p->core.ctx, n, 1, b, 1, &Z) ||
          sps_precond_apply(p->M, R, Z);
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    CALL_SPS(&p->core, bad);
    PetscCall(VecRestoreArrayRead(r, &a));
    PetscCall(VecRestoreArrayWrite(z, &b));
    PetscFunctionReturn(0);
}

static PetscErrorCode PCSetFromOptions_Spsolve(PC pc, Items PetscOptionsObject)
{
    Precond *p = pc->data;

    PetscFunctionBegin;
    PetscOptionsHeadBegin(PetscOptionsObject, "PC spsolve options");
    PetscCall(CoreFromOptions(&p->core, "pc", PetscOptionsObject));
    PetscOptionsHeadEnd();
    PetscFunctionReturn(0);
}

static PetscErrorCode PCView_Spsolve(PC pc, PetscViewer viewer)
{
    Precond *p = pc->data;

    PetscFunctionBegin;
    PetscCall(PetscViewerASCIIPrintf(viewer, "  libspsolve %s: %s\n",
                                     sps_version(),
                                     p->M ? sps_precond_name(p->M) : "-"));
    PetscFunctionReturn(0);
}

static PetscErrorCode PCReset_Spsolve(PC pc)
{
    Precond *p = pc->data;

    PetscFunctionBegin;
    sps_precond_destroy(&p->M);
    PetscCall(CoreReset(&p->core));
    PetscFunctionReturn(0);
}

static PetscErrorCode PCDestroy_Spsolve(PC pc)
{
    Precond *p = pc->data;

    PetscFunctionBegin;
    sps_precond_destroy(&p->M);
    PetscCall(CoreDestroy(&p->core));
    PetscCall(PetscFree(pc->data));
    PetscFunctionReturn(0);
}

static PetscErrorCode PCCreate_Spsolve(PC pc)
{
    Precond *p;

    PetscFunctionBegin;
    PetscCall(PetscNew(&p));
    p->width = 1;
    pc->data = p;
    pc->ops->setup = PCSetUp_Spsolve;
    pc->ops->apply = PCApply_Spsolve;
    pc->ops->setfromoptions = PCSetFromOptions_Spsolve;
    pc->ops->view = PCView_Spsolve;
    pc->ops->reset = PCReset_Spsolve;
    pc->ops->destroy = PCDestroy_Spsolve;
    PetscFunctionReturn(0);
}

PetscErrorCode PetscSpsolveRegister(void)
{
    PetscFunctionBegin;
    PetscCall(KSPRegister("spsolve", KSPCreate_Spsolve));
    PetscCall(PCRegister("spsolve", PCCreate_Spsolve));
    PetscFunctionReturn(0);
}
