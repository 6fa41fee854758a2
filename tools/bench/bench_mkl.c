/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_mkl.c - Intel's MKL as one more row of the host's tables, where
 * libmkl_rt can be loaded (LD_LIBRARY_PATH); nothing is linked with it.
 *
 * MKL is used in its fastest form for repeated products: 32-bit CSR, hints for
 * this call, mkl_sparse_optimize, row-major blocks.  The threading layer is
 * that of libgomp, which spbench uses anyway; MKL_THREADING_LAYER chooses
 * another. */
#include "tools/bench/bench_trial.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Types and constants of mkl_spblas.h and mkl_service.h. */
typedef struct descr { int type, mode, diag; } descr;
typedef struct matrix *handle;
enum { PLAIN = 10, GENERAL = 20, ROW_MAJOR = 101, GNU = 3, CALLS = 1000 };
static const descr general = { GENERAL, 0, 0 };

static struct {
    void *library;
    int (*layer)(int);
    void (*threads)(int);
    int (*create)(handle *, int, int, int, int *, int *, int *, double *);
    int (*hint_mv)(handle, int, descr, int);
    int (*hint_mm)(handle, int, descr, int, int, int);
    int (*optimize)(handle);
    int (*mv)(int, double, handle, descr, const double *, double, double *);
    int (*mm)(int, double, handle, descr, int, const double *, int, int,
              double, double *, int);
    int (*destroy)(handle);
} mkl;

typedef struct mkl_plan {
    sps_plan super;
    int *start;              /* row offsets, 32 bits */
    handle A;
} mkl_plan;

static bool find(const char *name, void *function)
{
    return (*(void **)function = dlsym(mkl.library, name)) != NULL;
}

static bool load(void)
{
    static const char *const names[] = { "libmkl_rt.so", "libmkl_rt.so.3",
                                         "libmkl_rt.so.2", "libmkl_rt.so.1" };

    for (int i = 0; i < 4 && !mkl.library; i++)
        mkl.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return mkl.library &&
           find("MKL_Set_Threading_Layer", &mkl.layer) &&
           find("MKL_Set_Num_Threads", &mkl.threads) &&
           find("mkl_sparse_d_create_csr", &mkl.create) &&
           find("mkl_sparse_set_mv_hint", &mkl.hint_mv) &&
           find("mkl_sparse_set_mm_hint", &mkl.hint_mm) &&
           find("mkl_sparse_optimize", &mkl.optimize) &&
           find("mkl_sparse_d_mv", &mkl.mv) &&
           find("mkl_sparse_d_mm", &mkl.mm) &&
           find("mkl_sparse_destroy", &mkl.destroy);
}

static bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "MKL is used only for doubles and fewer than 2^31 entries";
    return p->A->dtype == SPS_F64 && p->block == SPS_F64 &&
           p->A->nnz < INT32_MAX && p->A->nnz > 0;
}

static double cost(const sps_problem *p)
{
    return spsi_spmm_floor(p) / p->machine->copy;
}

static bool hint(mkl_plan *m, int k)
{
    const int failed = k == 1
        ? mkl.hint_mv(m->A, PLAIN, general, CALLS)
        : mkl.hint_mm(m->A, PLAIN, general, ROW_MAJOR, k, CALLS);

    return !failed && !mkl.optimize(m->A);
}

static sps_status plan(sps_plan *super, const sps_problem *p)
{
    const sps_csr *A = p->A;
    mkl_plan *m = (mkl_plan *)super;

    m->start = malloc((size_t)(A->nrow + 1) * sizeof *m->start);
    if (!m->start) return SPS_ENOMEM;
    for (int64_t i = 0; i <= A->nrow; i++) m->start[i] = (int)A->rowptr[i];
    mkl.threads(super->ctx->threads);
    if (mkl.create(&m->A, 0, (int)A->nrow, (int)A->ncol, m->start,
                   m->start + 1, A->col, A->val) || !hint(m, p->k))
        return spsi_fail(super->ctx, SPS_EUNFIT, "MKL does not accept the "
                         "matrix");
    return SPS_OK;
}

static sps_status spmm(const sps_plan *super, const sps_spmm_args *a)
{
    const mkl_plan *m = (const mkl_plan *)super;
    const int failed = a->Y->k == 1
        ? mkl.mv(PLAIN, a->alpha, m->A, general, a->X->data, a->beta,
                 a->Y->data)
        : mkl.mm(PLAIN, a->alpha, m->A, general, ROW_MAJOR, a->X->data,
                 a->Y->k, (int)a->X->ld, a->beta, a->Y->data, (int)a->Y->ld);

    return failed ? spsi_fail(super->ctx, SPS_EUNFIT, "MKL fails") : SPS_OK;
}

static void destroy(sps_plan *super)
{
    mkl_plan *m = (mkl_plan *)super;

    if (m->A) mkl.destroy(m->A);
    free(m->start);
}

static const sps_kernel kernel = {
    .name = "mkl",
    .op = SPS_OP_SPMM,
    .gives = SPS_FULL_PRECISION | SPS_VENDOR,
    .size = sizeof(mkl_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .destroy = destroy,
};

const sps_kernel *bench_mkl(void)
{
    static int loaded = -1;

    if (loaded < 0) {
        loaded = load();
        if (loaded && !getenv("MKL_THREADING_LAYER")) mkl.layer(GNU);
    }
    return loaded ? &kernel : NULL;
}
