/* SPDX-License-Identifier: BSD-3-Clause */
/* effective_resistance.c - effective resistances of all edges of a graph:
 *
 *     effective_resistance [graph.mtx | SIDE [k]]
 *
 * SIDE generates a square torus of SIDE x SIDE vertices with an additional long
 * edge at each vertex.
 *
 * R_uv = (e_u - e_v)' L+ (e_u - e_v) for the Laplacian L = B' W B, where each
 * row of B is an edge, with -1 at one end and 1 at the other, W contains the
 * weights and L+ is the pseudoinverse.  With the rows x_u of X = L+ F, those
 * y_v of Y, and g(u, v) = x_u . y_v,
 *
 *     R_uv = g(u, u) + g(v, v) - 2 g(u, v)          wherever  F Y' ~ identity:
 *
 *   exact:  F = Y = I, n right-hand sides;
 *   k < n:  F = B' W^1/2 Q, Q random signs / sqrt(k), Y = X, and then
 *           R_uv = ||x_u - x_v||^2 (Spielman and Srivastava, Graph
 *           sparsification by effective resistances, STOC 2008).  The error
 *           of an edge exceeds eps R with a probability of less than
 *           2 exp(-k (eps^2 / 4 - eps^3 / 6)) (Achlioptas 2003).
 *
 * The columns are solved for in blocks of 64; g is computed for the entries of
 * L, including the diagonal, and summed over these blocks, so that X is never
 * stored as a whole.
 *
 * Accuracy: the library removes the mean over each component from every column,
 * so g(u, u) is (about) a diagonal entry of L+; a common shift c of all rows
 * would add ||c||^2 to it, and cancellation would lose digits.  The error of R
 * is about (1e-16 + the error of the solves: 1e-11, 1e-8 where k < n) times
 * g(u, u) / R_uv, a ratio of a few units in a well connected graph and of n / 3
 * on a path of n vertices.
 *
 * Checks: sum of w R over the edges = vertices - components (Foster 1949); w R
 * <= 1, with equality for bridges only; known values on the built-in graphs; on
 * others, where k < n, R of 64 edges spread over the graph from solves to
 * 1e-10: the largest relative error and the mean square.  The exit status is 1
 * if one of these checks fails. */
#include "graphs.h"

enum { WIDTH = 64, TOP = 5 };

/* ------------------------------------------------------------ resistances */

/* Writes columns first .. first + count - 1 of F to f, count <= WIDTH; the
 * other columns are zero, and the solver does not iterate on them. */
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

/* A solver for WIDTH columns.  f is on the host, F and X are where the solver
 * computes. */
typedef struct solves {
    sps_solver *s;
    sps_block *F, *X;
    double *f;
    sps_result r;
    int count, iterations;
    double seconds;
} solves;

static void solves_open(solves *v, const sps_operator *op, int64_t n,
                        double rtol)
{
    sps_options opt;

    *v = (solves){.f = array(n * WIDTH, sizeof *v->f)};
    v->r.struct_size = sizeof v->r;
    sps_options_default(&opt);
    opt.rtol = rtol;
    /* Selected by name, so that X = L+ F for any F. */
    opt.nullspace = "components";
    check(sps_block_create(ctx, n, WIDTH, &v->F));
    check(sps_block_create(ctx, n, WIDTH, &v->X));
    check(sps_solver_create(op, NULL, WIDTH, &opt, &v->s));
}

/* Solves L X = F; the initial guess is the previous X. */
static void solve(solves *v)
{
    check(sps_block_set(v->F, 0, WIDTH, v->f, WIDTH, SPS_ROW_MAJOR, SPS_HOST));
    check(sps_solver_linear(v->s, v->F, v->X, &v->r));
    if (v->r.stop <= 0) {
        fprintf(stderr, "%s\n", sps_stop_string(v->r.stop));
        exit(1);
    }
    v->count++;
    v->iterations += v->r.iterations;
    v->seconds += v->r.seconds.solve;
}

static void solves_close(solves *v)
{
    printf("  %d solves of %d columns by %s: %d iterations, %.2f s\n",
           v->count, WIDTH, v->r.solver, v->iterations, v->seconds);
    sps_solver_destroy(&v->s);
    sps_block_destroy(&v->X);
    sps_block_destroy(&v->F);
    free(v->f);
}

/* G = g on the pattern of L (nnz x 1); exact if k >= n. */
static void sample(const sps_csr *L, const sps_operator *op, int k,
                   sps_block *G, int *components)
{
    const bool exact = k >= L->nrow;
    solves v;

    solves_open(&v, op, L->nrow, exact ? 1e-11 : 1e-8); /* far below 2 /
                                                           sqrt(k) */
    for (int first = 0; first < k; first += WIDTH) {
        fill(L, k, first, k - first < WIDTH ? k - first : WIDTH, v.f);
        solve(&v);
        check(sps_operator_sample(op, 1, v.X, exact ? v.F : v.X, false,
                                  first > 0 ? 1 : 0, sps_block_data(G, NULL)));
    }
    *components = v.r.nullspace;
    solves_close(&v);
}

/* Returns R of the stored entries (v > u) of each row u; zero elsewhere. */
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

/* Relative errors of a number of edges. */
typedef struct errors {
    double worst, squares;
    int64_t count;
} errors;

static void note(errors *e, double off)
{
    e->worst = fmax(e->worst, fabs(off));
    e->squares += off * off;
    e->count++;
}

/* Draws one edge from each 64th part of the m edges: column j of f becomes e_u
 * - e_v; row and at receive the edge's row and its offset in L. */
static void draw(const sps_csr *L, int64_t m, double *f, int64_t *row,
                 int64_t *at)
{
    const uint64_t each = (uint64_t)(m / WIDTH);
    uint64_t e = 0;

    for (int64_t i = 0, j = 0; i < L->nrow; i++)
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1] && j < WIDTH; p++) {
            const uint64_t next = (uint64_t)j * each + bits((uint64_t)j) % each;

            if (L->col[p] <= i || e++ != next)
                continue;
            f[i * WIDTH + j] = 1;
            f[(int64_t)L->col[p] * WIDTH + j] = -1;
            row[j] = i;
            at[j++] = p;
        }
}

/* Computes R = z_u - z_v with L z = e_u - e_v, at WIDTH edges, and compares. */
static void probe(const sps_csr *L, const double *R, int64_t m, errors *e)
{
    int64_t row[WIDTH], at[WIDTH];
    double *z = array(L->nrow * WIDTH, sizeof *z);
    sps_operator *op;
    solves v;

    check(sps_operator_csr(ctx, (sps_csr *)L, WIDTH, NULL, &op));
    solves_open(&v, op, L->nrow, 1e-10);
    draw(L, m, v.f, row, at);
    solve(&v);
    check(sps_block_get(v.X, 0, WIDTH, z, WIDTH, SPS_ROW_MAJOR, SPS_HOST));
    for (int j = 0; j < WIDTH; j++)
        note(e, R[at[j]] / (z[row[j] * WIDTH + j] -
                            z[(int64_t)L->col[at[j]] * WIDTH + j]) - 1);
    solves_close(&v);
    sps_operator_destroy(&op);
    free(z);
}

/* Returns the eps that bounds the errors of all m edges with probability 0.999;
 * 0 if R is exact, 1 if k is too small for a bound. */
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

/* Prints the edges with the largest w R. */
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

/* Returns the sum of w R, its largest term in *most, and the errors where
 * true_R is known. */
static double sum_up(const sps_csr *L, const double *R, double *most,
                     double (*true_R)(int64_t n, int64_t u, int64_t v),
                     errors *e)
{
    double sum = 0;

    for (int64_t i = 0; i < L->nrow; i++)
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++) {
            const double wr = -((double *)L->val)[p] * R[p];

            if (L->col[p] <= i)
                continue;
            sum += wr;
            *most = fmax(*most, wr);
            if (true_R)
                note(e, R[p] / true_R(L->nrow, i, L->col[p]) - 1);
        }
    return sum;
}

static void print_promise(double eps)
{
    if (eps >= 1)
        printf("  too few columns for an error bound of single edges\n");
    else if (eps > 0)
        printf("  within %.0f %% of the exact values, with probability 0.999\n",
               100 * eps);
}

/* Computes resistances of g with k columns, prints and checks them.  true_R(n,
 * u, v) is the known value, or true_R is NULL if none is known.  Returns the
 * number of failed checks. */
static int study(const char *name, const graph *g, int k,
                 double (*true_R)(int64_t n, int64_t u, int64_t v))
{
    sps_csr *L = laplacian(g);
    const double eps = promise(g->n, g->m, k), slack = eps + 1e-8;
    double sum, most = 0, rank, spread, rms;
    int components = 0, failed = 0;
    errors e = {0};
    double *R;

    printf("%s: %lld vertices, %lld edges, %d columns%s\n", name,
           (long long)g->n, (long long)g->m, k, eps > 0 ? "" : " (exact)");
    R = resistances(L, k, &components);
    print_promise(eps);
    print_top(L, R);
    sum = sum_up(L, R, &most, true_R, &e);
    if (!true_R && k < g->n && g->m >= WIDTH)
        probe(L, R, g->m, &e);
    rank = (double)(g->n - components);
    /* The sum is ||P Q||^2 with a projector P of that rank: its relative
     * deviation is at most sqrt(2 rank / k) in the mean square. */
    spread = eps > 0 ? 6 * sqrt(2 * rank / k) : 0;
    failed += !(fabs(sum - rank) <= spread + 1e-8 * (double)g->n);
    failed += !(most <= 1 + slack);
    failed += !(e.worst <= slack);
    /* The variance of R is below 2 R^2 / k, and errors of distant edges are
     * nearly independent: their mean square stays below twice that. */
    rms = sqrt(e.squares / fmax(1, (double)e.count));
    failed += eps > 0 && !(rms <= 2 / sqrt(k));
    if (e.count > 0)
        printf("  of %lld edges: largest error %.1e, rms %.1e\n",
               (long long)e.count, e.worst, rms);
    printf("  sum of w R %.8g, vertices - components %.0f: %s\n", sum, rank,
           failed ? "WRONG" : "right");
    free(R);
    sps_csr_destroy(ctx, &L);
    return failed;
}

/* ------------------------------------------------------- generated graphs */

static double weight(int64_t u) { return 1.0 + (double)(u % 3); }

/* There is only one path between the ends of an edge: R = 1 / w. */
static double path_R(int64_t n, int64_t u, int64_t v)
{
    (void)n, (void)v;
    return 1 / weight(u);
}

/* The edge is in parallel with the other n - 1 edges in series. */
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

/* All edges of a square torus have the same R: (n - 1) / (2 n). */
static double torus_R(int64_t n, int64_t u, int64_t v)
{
    (void)u, (void)v;
    return (double)(n - 1) / (double)(2 * n);
}

/* Two square tori and a bridge: no current returns over the bridge, so its R =
 * 1. */
static double tori_R(int64_t n, int64_t u, int64_t v)
{
    return u < n / 2 && v >= n / 2 ? 1 : torus_R(n / 2, u, v);
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
        char *end;
        const long side = strtol(argv[1], &end, 10);
        graph g = *end == 0 && side > 2 && side < 40000 ? world(side)
                                                        : graph_read(argv[1]);
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
