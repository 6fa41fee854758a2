/* SPDX-License-Identifier: BSD-3-Clause */
/* spectral_partition.c - cuts a graph in two by its Fiedler vector.
 *
 *     spectral_partition [ADJACENCY.mtx]
 *
 * The eigenvector x of the smallest non-zero eigenvalue of the Laplacian
 * minimises the sum of w_uv (x_u - x_v)^2 over unit vectors of mean 0 (Fiedler
 * 1973).  This is the relaxation of the minimum cut, where x_u is 1 on one side
 * and -1 on the other.  Vertices are sorted by x; two cuts of that order are
 * printed: the one into halves, and the one with the smallest quotient, that
 * is, the weight of the edges cut divided by the number of vertices on the
 * smaller side.  For every cut
 *     quotient >= lambda_2 / 2,
 * since its indicator vector is feasible for that minimum; the bound tells how
 * far a cut may be from the best one.  The smallest quotient is at most sqrt(2
 * d lambda_2), d the largest degree (Mohar 1989).
 *
 * Without a file the graph consists of two grids joined by three edges.  The
 * exit status is 1 if other edges than these three are cut, or if a bound does
 * not hold. */
#include <spsolve.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NX = 24, NY = 20, BRIDGES = 3 };

static sps_context *ctx;

static void check(sps_status st)
{
    if (st == SPS_OK)
        return;
    fprintf(stderr, "%s: %s\n", sps_status_string(st),
            sps_context_error(ctx));
    exit(1);
}

static void *array(int64_t count, size_t size)
{
    void *p = calloc((size_t)count + 1, size);

    if (!p) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return p;
}

/* ------------------------------------------------------------------ graphs */

static void edge(sps_csr *A, int64_t v, int64_t *p)
{
    A->col[*p] = (int32_t)v;
    ((double *)A->val)[(*p)++] = 1;
}

/* Two NX x NY grids whose facing sides are joined by BRIDGES edges.  Each edge
 * is stored once, in the row of its first vertex; sps_csr_laplacian makes the
 * matrix symmetric. */
static sps_csr *two_grids(void)
{
    const int64_t n = NX * NY;
    int64_t p = 0;
    sps_csr *A;

    check(sps_csr_create(ctx, 2 * n, 2 * n, 4 * n + BRIDGES, SPS_F64, &A));
    for (int64_t i = 0; i < 2 * n; i++) {
        const int64_t x = i % n % NX, y = i % n / NX;

        if (x + 1 < NX) edge(A, i + 1, &p);
        if (y + 1 < NY) edge(A, i + NX, &p);
        if (i < n && x == NX - 1 && y < BRIDGES) edge(A, n + y * NX, &p);
        A->rowptr[i + 1] = p;
    }
    A->nnz = p;
    return A;
}

/* -------------------------------------------------------------------- cuts */

typedef struct cut {
    double weight, quotient;
    int64_t smaller;             /* number of vertices on the smaller side */
} cut;

static const double *by_value;

static int rising(const void *a, const void *b)
{
    const int32_t u = *(const int32_t *)a, v = *(const int32_t *)b;

    if (by_value[u] != by_value[v]) return by_value[u] < by_value[v] ? -1 : 1;
    return u < v ? -1 : u > v;
}

/* Moves vertices to the other side one by one, in order.  The weight of the cut
 * grows by a vertex's edges to vertices that have not moved, and falls by its
 * edges to those that have. */
static void sweep(const sps_csr *L, const double *x, cut *half, cut *best)
{
    const int64_t n = L->nrow;
    int32_t *order = array(n, sizeof *order);
    char *moved = array(n, 1);
    double weight = 0;

    for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
    by_value = x;
    qsort(order, (size_t)n, sizeof *order, rising);
    best->quotient = INFINITY;
    for (int64_t t = 0; t + 1 < n; t++) {
        const int32_t u = order[t];
        const int64_t smaller = t + 1 < n - t - 1 ? t + 1 : n - t - 1;

        moved[u] = 1;
        for (int64_t p = L->rowptr[u]; p < L->rowptr[u + 1]; p++) {
            const double w = -((double *)L->val)[p];

            if (L->col[p] != u) weight += moved[L->col[p]] ? -w : w;
        }
        const cut now = {weight, weight / (double)smaller, smaller};
        if (t + 1 == n / 2) *half = now;
        if (now.quotient < best->quotient) *best = now;
    }
    free(order);
    free(moved);
}

static double largest_degree(const sps_csr *L)
{
    double most = 0;

    for (int64_t i = 0; i < L->nrow; i++)
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++)
            if (L->col[p] == i) most = fmax(most, ((double *)L->val)[p]);
    return most;
}

/* Computes lambda_2 and its eigenvector; returns false if it has not
 * converged. */
static bool fiedler(sps_csr *L, double *lambda, double *x)
{
    sps_eigen_result r = {.struct_size = sizeof r};
    sps_options opt;
    sps_operator *op;
    sps_solver *s;
    sps_block *X;

    sps_options_default(&opt);
    opt.nullspace = "components";
    check(sps_operator_csr(ctx, L, 4, NULL, &op));
    check(sps_block_create(ctx, L->nrow, 1, &X));
    check(sps_solver_create_eigen(op, NULL, NULL, 1, &opt, &s));
    check(sps_solver_eigen(s, X, lambda, &r));
    check(sps_block_get(X, 0, 1, x, 1, SPS_ROW_MAJOR, SPS_HOST));
    printf("lambda_2 = %.8g: %s after %d iterations (%s, %s), residual %.1e\n",
           *lambda, sps_stop_string(r.stop), r.iterations, r.solver, r.precond,
           r.residual[0]);
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_operator_destroy(&op);
    return r.stop > 0;
}

/* Cuts the graph, and returns the number of checks that fail. */
static int partition(sps_csr *L, bool own)
{
    double *x = array(L->nrow, sizeof *x), lambda;
    cut half = {0}, best = {0};
    int wrong = !fiedler(L, &lambda, x);

    sweep(L, x, &half, &best);
    printf("halves: weight %g cut\n", half.weight);
    printf("least quotient: weight %g cut, %lld of %lld vertices on the "
           "smaller side\n", best.weight, (long long)best.smaller,
           (long long)L->nrow);
    printf("quotient %.6g, at least %.6g for any cut of this graph\n",
           best.quotient, lambda / 2);
    wrong += !(best.quotient >= lambda / 2 * (1 - 1e-6));
    wrong += !(best.quotient <= sqrt(2 * largest_degree(L) * lambda));
    if (own) wrong += best.weight != BRIDGES || half.weight != BRIDGES;
    free(x);
    return wrong;
}

int main(int argc, char **argv)
{
    sps_laplacian_info info = {.struct_size = sizeof info};
    const char *why = "";
    sps_csr *A, *L;
    int wrong = 0;

    if (sps_context_create(NULL, &ctx, &why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    if (argc > 1) check(sps_csr_read(ctx, argv[1], NULL, NULL, &A));
    else A = two_grids();
    check(sps_csr_laplacian(ctx, A, &info, &L));
    printf("%lld vertices, %lld edges, %lld connected component%s\n",
           (long long)info.vertices, (long long)info.edges,
           (long long)info.components, info.components == 1 ? "" : "s");
    if (info.components == 1 && info.vertices > 2)
        wrong = partition(L, argc < 2);
    else
        printf("nothing to cut: the connected components already are a "
               "partition\n");
    sps_csr_destroy(ctx, &L);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    return wrong > 0;
}
