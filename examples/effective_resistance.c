/* SPDX-License-Identifier: BSD-3-Clause */
/* effective_resistance.c - effective resistances of all edges of a graph:
 *
 *     effective_resistance [graph.mtx [k]]
 *
 * R_uv = (e_u - e_v)' L+ (e_u - e_v) for the Laplacian L = B' W B, where a row
 * of B is an edge, -1 at one end and 1 at the other.  With the rows x_u of
 * X = L+ F and g(u, v) = x_u . y_v,
 *
 *     R_uv = g(u, u) + g(v, v) - 2 g(u, v)          wherever  F Y' ~ identity:
 *
 *   exact:  F = Y = I, n right-hand sides;
 *   k < n:  F = B' W^1/2 Q, Q random signs / sqrt(k), Y = X, and then
 *           R_uv = ||x_u - x_v||^2 (Spielman and Srivastava, Graph
 *           sparsification by effective resistances, STOC 2008).  That an
 *           edge is off by more than eps R has a chance below
 *           2 exp(-k (eps^2 / 4 - eps^3 / 6)) (Achlioptas 2003).
 *
 * The columns are solved for 64 at a time; g is sampled on the pattern of L,
 * diagonal and all, and added up over these blocks, so X is never stored whole.
 *
 * Accuracy: the library takes the mean over each component out of every
 * column, so g(u, u) is an entry of the diagonal of L+ (or near it) and no
 * more; a common shift of all rows by c would add ||c||^2, to be cancelled.
 * What remains is an error of R of about (1e-16 + that of the solves: 1e-11,
 * 1e-8 where k < n) times g(u, u) / R_uv, which is some units where a graph is
 * well connected and n / 3 on a path of n vertices.
 *
 * Checks: sum of w R over the edges = vertices - components (Foster 1949);
 * w R <= 1, with 1 for bridges alone; known values where it made the graph
 * itself, there also the mean square of the relative errors.  Exit status 1
 * when one of them fails. */
#include <spsolve.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 64, TOP = 5 };

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

/* ----------------------------------------------------------------- graphs */

/* Edges (u, v, w), room for as many as the maker knows; n vertices. */
typedef struct graph {
    int64_t n, m;
    int32_t *u, *v;
    double *w;
} graph;

static graph graph_new(int64_t n, int64_t room)
{
    return (graph){n, 0, array(room, sizeof(int32_t)),
                   array(room, sizeof(int32_t)), array(room, sizeof(double))};
}

static void graph_free(graph *g)
{
    free(g->u);
    free(g->v);
    free(g->w);
}

static void edge(graph *g, int64_t u, int64_t v, double w)
{
    g->u[g->m] = (int32_t)u;
    g->v[g->m] = (int32_t)v;
    g->w[g->m++] = w;
}

/* D - W, both triangles; sps_csr_check sorts the rows. */
static sps_csr *laplacian(const graph *g)
{
    int64_t *next = array(g->n, sizeof *next);
    sps_csr *L;
    double *val;

    check(sps_csr_create(ctx, g->n, g->n, g->n + 2 * g->m, SPS_F64, &L));
    val = L->val;
    for (int64_t i = 0; i < g->n; i++) L->rowptr[i + 1] = 1;
    for (int64_t e = 0; e < g->m; e++) {
        L->rowptr[g->u[e] + 1]++;
        L->rowptr[g->v[e] + 1]++;
    }
    for (int64_t i = 0; i < g->n; i++) {
        L->rowptr[i + 1] += L->rowptr[i];
        L->col[L->rowptr[i]] = (int32_t)i;      /* the diagonal comes first */
        next[i] = L->rowptr[i] + 1;
    }
    for (int64_t e = 0; e < g->m; e++) {
        const int32_t end[] = {g->u[e], g->v[e]};

        for (int s = 0; s < 2; s++) {
            L->col[next[end[s]]] = end[1 - s];
            val[next[end[s]]++] = -g->w[e];
            val[L->rowptr[end[s]]] += g->w[e];
        }
    }
    free(next);
    check(sps_csr_check(ctx, L));
    L->props |= SPS_SYMMETRIC;
    return L;
}

/* Weights are the entries off the diagonal, which may all be negative (the
 * file of a Laplacian); the diagonal is not looked at. */
static graph graph_read(const char *path)
{
    sps_csr *A;
    graph g;
    bool symmetric = false;
    int sign = 0;

    check(sps_csr_read(ctx, path, NULL, NULL, &A));
    if (A->nrow == A->ncol)
        check(sps_csr_symmetric(ctx, A, 1e-12, &symmetric, NULL));
    g = graph_new(A->nrow, A->nnz / 2 + 1);
    for (int64_t i = 0; symmetric && i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const double a = ((double *)A->val)[p];

            if (A->col[p] <= i || a == 0)
                continue;
            if (sign == 0)
                sign = a > 0 ? 1 : -1;
            symmetric = sign * a > 0;
            edge(&g, i, A->col[p], fabs(a));
        }
    if (!symmetric) {
        fprintf(stderr, "%s: not an adjacency matrix: it must be symmetric, "
                "with weights of one sign\n", path);
        exit(1);
    }
    sps_csr_destroy(ctx, &A);
    return g;
}

/* ------------------------------------------------------------ resistances */

/* 64 random bits of an edge (splitmix64). */
static uint64_t bits(uint64_t x)
{
    x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Columns first .. first + count - 1 of F, count <= WIDTH; the rest is zero,
 * and costs the solver nothing. */
static void fill(const sps_csr *L, int k, int first, int count, double *f)
{
    for (int64_t i = 0; i < L->nrow * WIDTH; i++) f[i] = 0;
    if (k >= L->nrow) {
        for (int j = 0; j < count; j++)
            f[(int64_t)(first + j) * WIDTH + j] = 1;
        return;
    }
    for (int64_t i = 0; i < L->nrow; i++)
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++) {
            const int64_t v = L->col[p];
            const uint64_t sign = bits((uint64_t)p << 16 ^ (uint64_t)first);
            double q = v > i ? sqrt(-((double *)L->val)[p] / k) : 0;

            for (int j = 0; v > i && j < count; j++) {
                const double t = sign >> j & 1 ? q : -q;

                f[i * WIDTH + j] += t;
                f[v * WIDTH + j] -= t;
            }
        }
}

/* g on the pattern of L, in G (nnz x 1); k >= n: exactly. */
static void sample(const sps_csr *L, const sps_operator *op, int k,
                   sps_block *G, int *components)
{
    double *f = array(L->nrow * WIDTH, sizeof *f);
    sps_result r = {.struct_size = sizeof r};
    sps_block *F, *X;
    sps_options opt;
    sps_solver *s;

    sps_options_default(&opt);
    opt.rtol = k >= L->nrow ? 1e-11 : 1e-8;     /* far below 2 / sqrt(k) */
    check(sps_block_create(ctx, L->nrow, WIDTH, &F));
    check(sps_block_create(ctx, L->nrow, WIDTH, &X));
    check(sps_solver_create(op, NULL, WIDTH, &opt, &s));
    for (int first = 0; first < k; first += WIDTH) {
        const int count = k - first < WIDTH ? k - first : WIDTH;

        fill(L, k, first, count, f);
        check(sps_block_set(F, 0, WIDTH, f, WIDTH, SPS_ROW_MAJOR, SPS_HOST));
        check(sps_solver_linear(s, F, X, &r));  /* guess: the last X */
        if (r.stop <= 0) {
            fprintf(stderr, "%s\n", sps_stop_string(r.stop));
            exit(1);
        }
        check(sps_operator_sample(op, 1, X, k >= L->nrow ? F : X, false,
                                  first > 0 ? 1 : 0, sps_block_data(G, NULL)));
    }
    *components = r.nullspace;
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_block_destroy(&F);
    free(f);
}

/* R of the stored entries (v > u) of row u; zero elsewhere. */
static double *resistances(const sps_csr *L, int k, int *components)
{
    double *g = array(L->nnz, sizeof *g), *R = array(L->nnz, sizeof *R);
    double *own = array(L->nrow, sizeof *own);
    sps_csr *A = (sps_csr *)L;
    sps_operator *op;
    sps_block *G;

    check(sps_operator_csr(ctx, A, WIDTH, NULL, &op));
    check(sps_block_create(ctx, L->nnz, 1, &G));
    sample(L, op, k, G, components);
    check(sps_block_get(G, 0, 1, g, 1, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t i = 0; i < L->nrow; i++)
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++)
            if (L->col[p] == i)
                own[i] = g[p];
    for (int64_t i = 0; i < L->nrow; i++)
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++)
            if (L->col[p] > i)
                R[p] = own[i] + own[L->col[p]] - 2 * g[p];
    sps_block_destroy(&G);
    sps_operator_destroy(&op);
    free(own);
    free(g);
    return R;
}

/* --------------------------------------------------------------- checking */

/* The eps that all m edges keep with a chance of 999 in 1000; 0: exact; 1: k
 * is too small to promise anything. */
static double promise(int64_t n, int64_t m, int k)
{
    const double want = log(2e3 * (double)(m + 1)) / k;
    double low = 0, high = 1;

    if (k >= n)
        return 0;
    for (int i = 0; i < 50; i++) {
        const double e = (low + high) / 2;

        if (e * e / 4 - e * e * e / 6 < want)
            low = e;
        else
            high = e;
    }
    return high;
}

/* The edges with the largest w R, as they stand in L. */
static void print_top(const sps_csr *L, const double *R)
{
    int64_t best[TOP] = {0}, row[TOP] = {0};
    double most[TOP] = {0};

    for (int64_t i = 0; i < L->nrow; i++)
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++) {
            const double wr = -((double *)L->val)[p] * R[p];
            int at = TOP;

            for (; at > 0 && wr > most[at - 1]; at--)
                if (at < TOP) {
                    most[at] = most[at - 1];
                    best[at] = best[at - 1];
                    row[at] = row[at - 1];
                }
            if (at < TOP && L->col[p] > i) {
                most[at] = wr;
                best[at] = p;
                row[at] = i;
            }
        }
    for (int t = 0; t < TOP && most[t] > 0; t++)
        printf("  edge %lld - %d: R %.6g, w R %.6f\n", (long long)row[t] + 1,
               L->col[best[t]] + 1, R[best[t]], most[t]);
}

/* Resistances of g by k columns, printed and checked; true_R(u, v): what is
 * known, or NULL.  Returns how many checks failed. */
static int study(const char *name, const graph *g, int k,
                 double (*true_R)(int64_t n, int64_t u, int64_t v))
{
    sps_csr *L = laplacian(g);
    const double *val = L->val;
    const double eps = promise(g->n, g->m, k), slack = eps + 1e-8;
    double sum = 0, most = 0, worst = 0, squares = 0, rank, spread, rms;
    int components = 0, failed = 0;
    double *R = resistances(L, k, &components);

    for (int64_t i = 0; i < L->nrow; i++)
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++) {
            double off = 0;

            if (L->col[p] <= i)
                continue;
            sum -= val[p] * R[p];
            most = fmax(most, -val[p] * R[p]);
            if (true_R)
                off = fabs(R[p] / true_R(g->n, i, L->col[p]) - 1);
            worst = fmax(worst, off);
            squares += off * off;
        }
    rms = sqrt(squares / fmax(1, (double)g->m));
    rank = (double)(g->n - components);
    /* The sum is ||P Q||^2, P a projector of that rank: its deviation is at
     * most sqrt(2 rank / k). */
    spread = eps > 0 ? 6 * sqrt(2 * rank / k) : 0;
    printf("%s: %lld vertices, %lld edges, %d columns%s\n", name,
           (long long)g->n, (long long)(L->nnz - g->n) / 2, k,
           eps > 0 ? "" : " (exact)");
    if (eps >= 1)
        printf("  too few columns to promise anything of single edges\n");
    else if (eps > 0)
        printf("  within %.0f %% of the truth, but for one chance in 1000\n",
               100 * eps);
    print_top(L, R);
    failed += !(fabs(sum - rank) <= spread + 1e-8 * (double)g->n);
    failed += !(most <= 1 + slack);
    failed += !(worst <= slack);
    /* The variance of R is below 2 R^2 / k, and edges far apart have little in
     * common: the mean square does not reach twice that. */
    failed += eps > 0 && !(rms <= 2 / sqrt(k));
    if (true_R)
        printf("  largest error %.1e, rms %.1e\n", worst, rms);
    printf("  sum of w R %.8g, vertices - components %.0f: %s\n", sum, rank,
           failed ? "WRONG" : "right");
    free(R);
    sps_csr_destroy(ctx, &L);
    return failed;
}

/* ------------------------------------------------------- graphs of our own */

static double weight(int64_t u) { return 1.0 + (double)(u % 3); }

/* One way only: R = 1 / w. */
static double path_R(int64_t n, int64_t u, int64_t v)
{
    (void)n, (void)v;
    return 1 / weight(u);
}

/* The edge beside the other n - 1 in a row. */
static double cycle_R(int64_t n, int64_t u, int64_t v)
{
    (void)u, (void)v;
    return (double)(n - 1) / (double)n;
}

static double complete_R(int64_t n, int64_t u, int64_t v)
{
    (void)u, (void)v;
    return 2 / (double)n;
}

/* The edges of a square torus are alike: each has its share of n - 1. */
static double torus_R(int64_t n, int64_t u, int64_t v)
{
    (void)u, (void)v;
    return (double)(n - 1) / (double)(2 * n);
}

/* Two square tori and a bridge: no current returns over the bridge, R = 1. */
static double tori_R(int64_t n, int64_t u, int64_t v)
{
    return u < n / 2 && v >= n / 2 ? 1 : torus_R(n / 2, u, v);
}

/* The edges of the torus of vertices base .. base + side^2 - 1. */
static void torus(graph *g, int64_t base, int64_t side)
{
    for (int64_t i = 0; i < side * side; i++) {
        const int64_t x = i % side, y = i / side;

        edge(g, base + i, base + y * side + (x + 1) % side, 1);
        edge(g, base + i, base + (y + 1) % side * side + x, 1);
    }
}

static int study_own(void)
{
    graph g = graph_new(90, 90);
    int failed;

    for (int64_t i = 0; i < 89; i++) edge(&g, i, i + 1, weight(i));
    failed = study("path", &g, 90, path_R);
    for (int64_t i = 0; i < 89; i++) g.w[i] = 1;
    edge(&g, 0, 89, 1);
    failed += study("cycle", &g, 90, cycle_R);
    graph_free(&g);
    g = graph_new(20, 190);
    for (int64_t i = 0; i < 20; i++)
        for (int64_t j = 0; j < i; j++) edge(&g, i, j, 1);
    failed += study("complete graph", &g, 20, complete_R);
    graph_free(&g);
    g = graph_new(128, 257);
    torus(&g, 0, 8);
    torus(&g, 64, 8);
    edge(&g, 63, 64, 1);
    failed += study("two tori and a bridge", &g, 128, tori_R);
    graph_free(&g);
    g = graph_new(56 * 56, 2 * 56 * 56);
    torus(&g, 0, 56);
    failed += study("torus", &g, 256, torus_R);
    graph_free(&g);
    return failed;
}

int main(int argc, char **argv)
{
    const char *why = "";
    int failed;

    if (sps_context_create(NULL, &ctx, &why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    if (argc > 1) {
        graph g = graph_read(argv[1]);
        int k = argc > 2 ? atoi(argv[2]) : g.n <= 1000 ? (int)g.n : 256;

        if (k < 1 || k > g.n)
            k = (int)g.n;
        failed = study(argv[1], &g, k, NULL);
        graph_free(&g);
    } else {
        failed = study_own();
    }
    sps_context_destroy(&ctx);
    return failed > 0;
}
