// SPDX-License-Identifier: BSD-3-Clause
// poisson.cpp - the 5-point Laplacian of 100 x 100 points for 4 right-hand
// sides, its lowest eigenvalue, and an operator that is a lambda.
#include <spsolve.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>

static spsolve::matrix poisson(const spsolve::context &ctx, int m)
{
    std::vector<std::int64_t> rowptr(1, 0);
    std::vector<std::int32_t> col;
    std::vector<double> val;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++) {
            auto add = [&](bool there, int c, double v) {
                if (!there) return;
                col.push_back(c);
                val.push_back(v);
            };
            int row = i * m + j;
            add(i > 0, row - m, -1);
            add(j > 0, row - 1, -1);
            add(true, row, 4);
            add(j < m - 1, row + 1, -1);
            add(i < m - 1, row + m, -1);
            rowptr.push_back(std::int64_t(col.size()));
        }
    }
    return spsolve::matrix::copy(ctx, m * m, m * m, rowptr, col, val);
}

int main() try {
    const int m = 100, n = m * m, k = 4;
    spsolve::context ctx(SPS_HOST);
    spsolve::linear_operator A(poisson(ctx, m), k);

    spsolve::block B(ctx, n, k), X(ctx, n, k);
    B.random(1);
    spsolve::solver s(A, k, spsolve::options(ctx).set("rtol", 1e-10));
    spsolve::result r = s.solve(B, X);
    std::printf("%s by %s with %s in %d iterations, residual %.1e\n",
                r.reason().c_str(), r.solver.c_str(), r.precond.c_str(),
                r.iterations, r.residuals[0]);
    if (!r.converged()) return EXIT_FAILURE;

    spsolve::block V(ctx, n, 1);
    spsolve::eigensolver lowest(A, 1, spsolve::options(ctx));
    double lambda = lowest.solve(V).lambda[0];
    double exact = 8 * std::pow(std::sin(std::acos(-1.0) / (2 * m + 2)), 2);
    std::printf("lowest eigenvalue %.10f, exactly %.10f\n", lambda, exact);

    spsolve::linear_operator twice(ctx, n, [&](const spsolve::product &p) {
        for (std::int64_t i = 0; i < p.n; i++) {
            auto x = p.row_of_x(i);
            auto y = p.row_of_y(i);
            for (int j = 0; j < p.k; j++)
                y[j] = p.alpha * 2 * x[j] + (p.beta != 0 ? p.beta * y[j] : 0);
        }
    }, SPS_SYMMETRIC | SPS_SPD);
    r = spsolve::solver(twice, k).solve(B, X);
    return r.converged() ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const spsolve::error &e) {
    std::fprintf(stderr, "poisson: %s\n", e.what());
    return EXIT_FAILURE;
}
