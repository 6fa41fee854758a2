/* SPDX-License-Identifier: BSD-3-Clause */
/* verdicts.c - solves a fixed set of systems and pencils and prints one line
 * `verdict ...` with the stop reason of each, for environments.sh, which
 * compares different BLAS libraries, compilers and numbers of threads.  A line
 * `blas ...` names the BLAS. SPS_TEST_DATA is the folder of the files. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/families.h"
#include "tests/support/methods.h"

#define ROWS 240
#define COLUMNS 4

static const char *const precond[] = { "none", "jacobi", "auto", "ilut" };

/* Name and number of threads of OpenBLAS, if that is what was loaded. */
static void print_blas(void)
{
    char *(*name)(void);
    int (*threads)(void);

    *(void **)&name = dlsym(RTLD_DEFAULT, "openblas_get_corename");
    *(void **)&threads = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
    if (name && threads) printf("blas %s threads %d\n", name(), threads());
    else printf("blas reference threads 1\n");
}

static void print_stop(const char *name, const char *method,
                       const char *other, int converged, int of,
                       sps_status st, sps_stop stop)
{
    printf("verdict %s, %s / %s: ", name, method, other);
    if (st == SPS_OK) printf("%s, %d of %d\n", sps_stop_name(stop), converged,
                             of);
    else printf("%s\n", sps_status_string(st));
}

/* One system by every method; A remains the caller's. */
static void judge_matrix(const char *name, const sps_csr *A)
{
    const char *method;

    FOR_SOLVERS(method) {
        for (size_t t = 0; t < sizeof precond / sizeof *precond; t++) {
            problem p;
            sps_status st;

            problem_open(&p, ctx, zoo_copy(A), COLUMNS);
            p.opt.solver = method;
            p.opt.precond = precond[t];
            p.opt.rtol = 1e-8;
            p.opt.max_iterations = 2000;
            st = problem_solve(&p);
            print_stop(name, method, precond[t], p.result.columns_converged,
                       COLUMNS, st, p.result.stop);
            problem_close(&p);
        }
    }
}

static void judge_file(const char *name)
{
    const char *folder = getenv("SPS_TEST_DATA");
    char path[1024];
    sps_csr *A = NULL;

    snprintf(path, sizeof path, "%s/%s.mtx", folder ? folder : "data", name);
    ck_assert_msg(sps_csr_read(ctx, path, NULL, NULL, &A) == SPS_OK, "%s",
                  sps_context_error(ctx));
    judge_matrix(name, A);
    sps_csr_destroy(ctx, &A);
}

static void judge_zoo(void)
{
    static const zoo_values values[] = { ZOO_SPD, ZOO_LAPLACIAN };
    char name[80];

    for (int f = 0; f < zoo_count(); f++) {
        if (!zoo_symmetric(f)) continue;
        for (int v = 0; v < 2; v++) {
            sps_csr *A = zoo_matrix(f, ROWS, 5, values[v], SPS_F64);

            snprintf(name, sizeof name, "zoo %s %s", zoo_name(f),
                     v ? "laplacian" : "spd");
            judge_matrix(name, A);
            zoo_free(&A);
        }
    }
}

static void judge_dominant(void)
{
    static const char *const family[] = { "tridiagonal", "grid5", "grid7" };
    char name[80];

    for (int f = 0; f < 3; f++)
        for (int indefinite = 0; indefinite < 2; indefinite++) {
            sps_csr *A = dominant(family[f], ROWS, indefinite);

            snprintf(name, sizeof name, "dominant %s%s", family[f],
                     indefinite ? " of both signs" : "");
            judge_matrix(name, A);
            zoo_free(&A);
        }
}

/* Families of pencils; the end of the spectrum and the number of pairs depend
 * on the number. */
static void judge_pencils(const char *method, bool mass, bool easy)
{
    for (int number = 0; number < 3 * family_count; number++) {
        pencil p;
        const family *f = family_open(&p, ctx, number, 60, mass, easy);
        char name[80];
        sps_status st;

        snprintf(name, sizeof name, "pencil %d, %s", number, f->name);
        p.opt.solver = method;
        p.opt.rtol = 1e-6;         /* above rounding errors for every family */
        p.opt.verify_count = true;
        st = pencil_solve(&p);
        print_stop(name, method, p.opt.which, p.result.converged, p.count, st,
                   p.result.stop);
        pencil_close(&p);
    }
}

/* One thread: small systems would only wait for more. */
static void open_alone(void)
{
    ctx = pencil_context(1);
}

START_TEST(files)
{
    static const char *const file[] = {
        "poisson2d", "poisson3d", "elasticity2d", "graph", "convection",
        "indefinite", "hermitian",
    };

    print_blas();
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        judge_file(file[i]);
}
END_TEST

START_TEST(zoos)
{
    judge_zoo();
    judge_dominant();
}
END_TEST

START_TEST(pencils)
{
    judge_pencils("lobpcg", true, false);
    judge_pencils("auto", true, false);
    judge_pencils("chebyshev_filter", false, true);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(files),
    RUNNER_TEST(zoos),
    RUNNER_TEST(pencils),
};
RUNNER_MAIN_WITHIN("verdicts", tests, open_alone, close_context)
