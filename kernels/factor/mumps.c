/* SPDX-License-Identifier: BSD-3-Clause */
/* mumps.c - the factor module: it calls MUMPS (Amestoy, Duff, L'Excellent and
 * Koster, SIAM J. Matrix Anal. Appl. 23, 2001) without MPI, found at configure
 * time.
 *
 * A is factored as L U, as L D L' with pivots of 1 x 1 and 2 x 2, or as L D L'
 * without pivoting.  Pivots that are zero up to rounding are treated as zeros
 * of a singular matrix and counted.  The ordering is approximate minimum fill,
 * or nested dissection where METIS is built in and its time is worthwhile. */
#include "core/factors.h"

#include <dmumps_c.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "factor/dissection.h"
#include "factor/standins.h"

#define JOB_BEGIN (-1)
#define JOB_END (-2)
#define JOB_ANALYSE 1
#define JOB_FACTOR 2
#define JOB_SOLVE 3
#define ANY_COMMUNICATOR (-987654)
/* Control parameters with the numbers of MUMPS's manual. */
#define ICNTL(i) icntl[(i) - 1]
#define CNTL(i) cntl[(i) - 1]
#define INFOG(i) infog[(i) - 1]
#define RINFOG(i) rinfog[(i) - 1]

/* Smallest number of pivots of a front.  A front takes some microseconds
 * whatever its size, and MUMPS merges one with fewer pivots than this into its
 * parent (parameter KEEP(1), which is not in the manual; MUMPS's default is 5).
 * For networks and grids of 700 to 16 000 rows, factorisation and solves with
 * 16 columns then take 0.5 to 0.7 times as long, with 1.3 to 1.8 times the
 * entries. */
enum { MERGED = 12 };
enum { ORDER_GIVEN = 1, ORDER_FILL = 2 };
/* Smallest number of operations per entry of A for which nested dissection is
 * worthwhile: it takes about 3 us per entry and halves the operations of
 * three-dimensional grids. */
#define DISSECTED 1e5
/* Nested dissection often reduces the operations by this factor.  It is not
 * tried if they exceed the limit by more than that. */
#define GAIN 1.5

typedef struct factors {
    DMUMPS_STRUC_C id;
    bool begun;               /* MUMPS has initialised id */
    int *order;               /* ordering given to MUMPS, or NULL */
} factors;

static bool gone;             /* the library tried to end the process once */

/* Decodes a count: MUMPS returns numbers above 10^6 as negative millions. */
static int64_t in_millions(int x)
{
    return x < 0 ? (int64_t)-x * 1000000 : x;
}

/* Returns at least 1, since 0 means no limit to MUMPS. */
static int megabytes(int64_t bytes)
{
    const int64_t millions = bytes / 1000000;

    return millions < 1 ? 1 : millions < INT_MAX ? (int)millions : INT_MAX;
}

static int code_of(const DMUMPS_STRUC_C *id)
{
    switch (id->INFOG(1)) {
    case -6: case -10: return SPS_FACTOR_SINGULAR;
    case -8: case -9: case -11: case -14: case -15: case -19:
        return SPS_FACTOR_MORE;
    case -5: case -7: case -13: case -17: case -18: case -20:
        return SPS_FACTOR_MEMORY;
    default: return id->INFOG(1) < 0 ? SPS_FACTOR_FAILED : SPS_FACTOR_OK;
    }
}

/* Makes one call of MUMPS.  The library may try to end the process instead of
 * returning (standins.h). */
static int call(DMUMPS_STRUC_C *id, int job)
{
    if (gone) return SPS_FACTOR_GAVE_UP;
    spsi_standins_seed();
    if (setjmp(spsi_standins.back)) {
        spsi_standins.armed = false;
        gone = true;
        return SPS_FACTOR_GAVE_UP;
    }
    spsi_standins_arm();
    id->job = job;
    dmumps_c(id);
    spsi_standins.armed = false;
    return code_of(id);
}

static void tell(const DMUMPS_STRUC_C *id, sps_factor_facts *facts, bool done)
{
    *facts = (sps_factor_facts){
        .detail = { id->INFOG(1), id->INFOG(2) },
        .flops = id->RINFOG(done ? 3 : 1),
        .entries = in_millions(id->INFOG(done ? 29 : 20)),
        .bytes = (int64_t)id->INFOG(done ? 18 : 16) * 1000000,
        .negative = done && id->sym ? id->INFOG(12) : 0,
        .zero = done ? id->INFOG(28) : 0,
    };
}

static void take(DMUMPS_STRUC_C *id, const sps_factor_matrix *A)
{
    id->n = A->n;
    id->nnz = A->nnz;
    id->irn = A->row;
    id->jcn = A->col;
    id->a = A->val;
}

static void drop(DMUMPS_STRUC_C *id)
{
    id->irn = id->jcn = NULL;
    id->a = NULL;
}

/* ------------------------------------------------------------- the module */

/* Returns whether every diagonal entry is stored: otherwise MUMPS may permute
 * columns first, and then accepts no given ordering. */
static bool full_diagonal(const sps_factor_matrix *A)
{
    int64_t count = 0;

    for (int64_t p = 0; p < A->nnz; p++)
        count += A->row[p] == A->col[p] && A->val[p] != 0;
    return count >= A->n;
}

static int analyse_by(factors *f, int ordering)
{
    f->id.ICNTL(7) = ordering;
    return call(&f->id, JOB_ANALYSE);
}

/* Orders by minimum fill, and again by nested dissection if that is predicted
 * to be worthwhile; the second ordering is discarded if it needs more
 * operations. */
static int analyse_best(factors *f, const sps_factor_matrix *A, double most)
{
    int code = analyse_by(f, ORDER_FILL);
    const double flops = f->id.RINFOG(1);

    if (code != SPS_FACTOR_OK || flops < DISSECTED * (double)A->nnz ||
        (most > 0 && flops > GAIN * most) || !full_diagonal(A))
        return code;
    f->id.perm_in = f->order = spsi_dissection(A);
    if (f->order) code = analyse_by(f, ORDER_GIVEN);
    if (f->order && (code != SPS_FACTOR_OK || f->id.RINFOG(1) > flops))
        code = analyse_by(f, ORDER_FILL);
    return code;
}

/* Disables all output of MUMPS: parameters 1 to 3 are its streams, 4 its
 * level. */
static void set_parameters(DMUMPS_STRUC_C *id)
{
    for (int i = 1; i <= 4; i++) id->ICNTL(i) = i == 4 ? 0 : -1;
    id->ICNTL(14) = SPS_FACTOR_SPARE;   /* the predicted bytes include this */
    id->ICNTL(13) = 1;        /* process the last front like the others, since
                                 there is no MPI */
    id->ICNTL(24) = 1;        /* count zero pivots instead of reporting an
                                 error */
    id->keep[0] = MERGED;
}

static int analyse(const sps_factor_matrix *A, double most, void **of,
                   sps_factor_facts *facts)
{
    static const int kinds[] = { 0, 2, 1 };   /* indexed by sps_factor_kind */
    factors *f = calloc(1, sizeof *f);
    int code;

    *facts = (sps_factor_facts){ 0 };
    *of = f;
    if (!f) return SPS_FACTOR_MEMORY;
    f->id.sym = kinds[A->kind];
    f->id.par = 1;
    f->id.comm_fortran = ANY_COMMUNICATOR;
    code = call(&f->id, JOB_BEGIN);
    f->begun = code == SPS_FACTOR_OK;
    if (f->begun) {
        set_parameters(&f->id);
        take(&f->id, A);
        code = analyse_best(f, A, most);
        drop(&f->id);
    }
    tell(&f->id, facts, false);
    return code;
}

static int factor(void *of, const sps_factor_matrix *A, int spare,
                  int64_t most, sps_factor_facts *facts)
{
    factors *f = of;
    int code;

    take(&f->id, A);
    f->id.ICNTL(14) = spare;
    f->id.ICNTL(23) = megabytes(most);
    code = call(&f->id, JOB_FACTOR);
    drop(&f->id);
    tell(&f->id, facts, true);
    return code;
}

static int solve(void *of, double *X, int32_t ld, int32_t k,
                 sps_factor_facts *facts)
{
    factors *f = of;
    int code;

    f->id.rhs = X;
    f->id.lrhs = ld;
    f->id.nrhs = k;
    code = call(&f->id, JOB_SOLVE);
    f->id.rhs = NULL;
    tell(&f->id, facts, true);
    return code;
}

static const int32_t *zero_rows(void *of)
{
    return ((const factors *)of)->id.pivnul_list;
}

static void close(void *of)
{
    factors *f = of;

    if (f && f->begun) (void)call(&f->id, JOB_END);
    if (f) free(f->order);
    free(f);
}

extern const sps_factor_library spsi_factor_catalogue;
const sps_factor_library spsi_factor_catalogue = {
    .abi = SPS_FACTOR_ABI, .version = PACKAGE_VERSION,
    .name = "MUMPS " MUMPS_VERSION,
    .analyse = analyse, .factor = factor, .solve = solve, .zero_rows = zero_rows,
    .close = close, .partition = SPS_PARTITION,
};
