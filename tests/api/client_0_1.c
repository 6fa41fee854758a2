/* SPDX-License-Identifier: BSD-3-Clause */
/* client_0_1.c - a program built against the header of version 0.1 (commit
 * afffb56, of which spsolve_0_1.h is the copy): it must work with the present
 * library, whose structs have more members. */
#include "tests/api/spsolve_0_1.h"

#include <stdlib.h>
#include <string.h>

#include "tests/api/client_0_1.h"

#define TRY(call)                                                              \
    do {                                                                       \
        if (call) return #call;                                                \
    } while (0)
#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition)) return #condition;                                   \
    } while (0)

enum { N = 50, K = 2 };

static long blocks;
static int seen;

static void *counting_alloc(size_t bytes, void *data)
{
    ++*(long *)data;
    return malloc(bytes);
}

static void counting_free(void *p, size_t bytes, void *data)
{
    (void)bytes;
    --*(long *)data;
    free(p);
}

static bool watch(const sps_progress *p, void *data)
{
    seen += p->iteration == seen && p->k == K && p->residual && p->worst >= 0 &&
            p->seconds >= 0 && data == &seen;
    return true;
}

/* The second difference matrix; sets the members of the struct directly. */
static void fill(sps_csr *A)
{
    int64_t p = 0;

    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = i - 1; j <= i + 1; j++)
            if (j >= 0 && j < N) {
                A->col[p] = (int32_t)j;
                ((double *)A->val)[p++] = i == j ? 2 : -1;
            }
        A->rowptr[i + 1] = p;
    }
    A->props = SPS_SYMMETRIC | SPS_SPD;
}

/* The library must not write beyond the caller's struct. */
typedef struct guarded {
    sps_options opt;
    unsigned char behind[64];
} guarded;

static const char *solve(sps_context *ctx)
{
    guarded g;
    sps_result r = { .struct_size = sizeof r };
    sps_context_info info = { .struct_size = sizeof info };
    sps_laplacian_info graph = { .struct_size = sizeof graph };
    sps_csr *A = NULL, *L = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    unsigned char clean[sizeof g.behind];

    memset(&g, 0x5a, sizeof g);
    memset(clean, 0x5a, sizeof clean);
    sps_options_default(&g.opt);
    TRY(sps_options_parse(ctx, &g.opt, "solver=block_cg rtol=1e-10"));
    MUST(!memcmp(g.behind, clean, sizeof clean));
    MUST(g.opt.struct_size == sizeof g.opt && g.opt.rtol == 1e-10);
    g.opt.monitor = watch;
    g.opt.monitor_data = &seen;
    TRY(sps_csr_create(ctx, N, N, 3 * N - 2, SPS_F64, &A));
    MUST(A->nrow == N && A->nnz == 3 * N - 2 && A->own == SPS_COPY);
    fill(A);
    TRY(sps_csr_check(ctx, A));
    MUST(A->props & SPS_SORTED);
    TRY(sps_operator_csr(ctx, A, K, &g.opt, &op));
    TRY(sps_solver_create(op, NULL, K, &g.opt, &s));
    TRY(sps_block_create(ctx, N, K, &B));
    TRY(sps_block_create(ctx, N, K, &X));
    TRY(sps_block_random(B, 7));
    TRY(sps_solver_linear(s, B, X, &r));
    MUST(r.stop == SPS_STOP_CONVERGED && r.k == K && r.iterations > 0);
    MUST(r.worst_residual <= 1e-10 && r.struct_size == sizeof r);
    MUST(!strcmp(r.solver, "block_cg") && r.seconds.solve >= 0);
    MUST(seen >= r.iterations);
    for (int64_t p = 0; p < A->nnz; p++)
        ((double *)A->val)[p] = A->col[p] >= 0;
    TRY(sps_csr_laplacian(ctx, A, &graph, &L));
    MUST(graph.vertices == N && graph.edges == N - 1 && L->nrow == N);
    TRY(sps_context_information(ctx, &info));
    MUST(info.place == SPS_HOST && info.live_objects >= 6);
    sps_csr_destroy(ctx, &L);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    return NULL;
}

const char *client_0_1_solves(void)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *failure;

    memset(&o, 0x5a, sizeof o);
    sps_context_options_default(&o);
    MUST(o.struct_size == sizeof o && o.seed == 1 && o.reproducible);
    MUST(!o.host.alloc && !o.gpu.free && !o.reduce && o.device == 0);
    o.place = SPS_HOST;
    o.threads = 2;
    o.host = (sps_allocator){ counting_alloc, counting_free, &blocks };
    TRY(sps_context_create(&o, &ctx, NULL));
    MUST(blocks > 0);
    failure = solve(ctx);
    if (failure) return failure;
    sps_context_destroy(&ctx);
    MUST(blocks == 0);
    return NULL;
}

static int no_sum(double *values, int count, void *data)
{
    (void)values, (void)count, (void)data;
    return 0;
}

const char *client_0_1_is_told(void)
{
    sps_context_options o;
    sps_options opt;
    sps_context *ctx = NULL;
    sps_csr *A = NULL;
    sps_operator *op = NULL;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    o.reduce = no_sum;
    MUST(sps_context_create(&o, &ctx, &why) == SPS_EINVAL && !ctx);
    MUST(strstr(why, "sps_comm_user"));
    o.reduce = NULL;
    TRY(sps_context_create(&o, &ctx, &why));
    TRY(sps_csr_create(ctx, N, N, 3 * N - 2, SPS_F64, &A));
    fill(A);
    sps_options_default(&opt);
    opt.basis = "single";
    MUST(sps_operator_csr(ctx, A, K, &opt, &op) == SPS_EINVAL && !op);
    MUST(strstr(sps_context_error(ctx), "single_basis"));
    opt.basis = opt.precond_precision = "auto";
    TRY(sps_operator_csr(ctx, A, K, &opt, &op));
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    return NULL;
}
