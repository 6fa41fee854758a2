// SPDX-License-Identifier: BSD-3-Clause
// client.cpp - spsolve.hpp: handles moved and destroyed in any order, errors,
// what functions of the caller throw, spans.  check_bindings.sh compiles it by
// every standard from C++11, check_install.sh by pkg-config and CMake.
#include <spsolve.hpp>

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>

static int failures = 0;

#define EXPECT(what)                                                           \
    do {                                                                       \
        if (!(what)) {                                                         \
            std::fprintf(stderr, "line %d: not %s\n", __LINE__, #what);        \
            failures++;                                                        \
        }                                                                      \
    } while (0)

template <class E, class F> static bool throws(F f, const char *text)
{
    try {
        f();
    } catch (const E &e) {
        return std::string(e.what()).find(text) != std::string::npos;
    }
    return false;
}

static const int rowptr[] = { 0, 1, 2, 3 };     // of 32 bits: widened
static const std::vector<std::int32_t> col = { 0, 1, 2 };
static const std::vector<double> val = { 1, 2, 4 };
static const std::vector<double> b = { 1, 4, 2, 8, 4, 16 };

static_assert(!std::is_copy_constructible<spsolve::context>::value &&
                  !std::is_copy_constructible<spsolve::block>::value &&
                  !std::is_copy_assignable<spsolve::solver>::value,
              "handles are moved");

static spsolve::matrix diagonal(const spsolve::context &ctx)
{
    return spsolve::matrix::copy(ctx, 3, 3, rowptr, col, val);
}

// All but the solver and its context's counts are gone when it is used.
static spsolve::solver solver_of(const spsolve::context &ctx, int *calls)
{
    spsolve::options o(ctx);
    o.set("rtol", 1e-12).set("solver", "cg").set("max_iterations", 50);
    o.monitor([calls](const sps_progress &) {
        ++*calls;
        return true;
    });
    spsolve::solver s(spsolve::linear_operator(diagonal(ctx), 2), 2, o);
    return s;
}

static void solves()
{
    int calls = 0;
    spsolve::context ctx(SPS_HOST);
    {
        spsolve::solver s = solver_of(ctx, &calls);
        spsolve::block B(ctx, 3, 2, b), X(ctx, 3, 2);
        spsolve::result r = s.solve(B, X);
        EXPECT(r.converged() && r.solver == "cg" && r.residuals.size() == 2);
        EXPECT(calls > 0);
        std::vector<double> x = X.get(SPS_COL_MAJOR);
        for (int i = 0; i < 3; i++)
            EXPECT(std::fabs(x[i] - 1) + std::fabs(x[3 + i] - 4) < 1e-9);
        spsolve::block moved(std::move(X));
        EXPECT(X.c() == nullptr && moved.row(1)[1] == x[4]);
        EXPECT(ctx.information().live_objects > 0);
    }
    EXPECT(ctx.information().live_objects == 0);
}

static void outlives_its_context()
{
    spsolve::context *ctx = new spsolve::context(SPS_HOST);
    spsolve::block B(*ctx, 3, 2, b);
    delete ctx;
    EXPECT(B.get() == b);
}

static void errors()
{
    spsolve::context ctx(SPS_HOST);
    EXPECT(throws<spsolve::error>(
        [&] { spsolve::options(ctx).set("sovler", "cg"); }, "solver"));
    EXPECT(throws<spsolve::error>(
        [&] { spsolve::matrix::read(ctx, "nowhere.mtx"); }, "nowhere.mtx"));
    EXPECT(throws<spsolve::error>(
        [&] { spsolve::block(ctx, 3, 1, b); }, "as many numbers"));
    EXPECT(throws<spsolve::error>(
        [&] {
            spsolve::matrix::copy(ctx, 2, 2, rowptr, col, val);
        }, "nrow + 1"));
    try {
        spsolve::block wrong(ctx, 3, 0);
        EXPECT(!"reached");
    } catch (const spsolve::error &e) {
        EXPECT(e.status() == SPS_ESHAPE);
    }
}

static void functions_that_throw()
{
    spsolve::context ctx(SPS_HOST);
    spsolve::block B(ctx, 3, 2, b), X(ctx, 3, 2);
    spsolve::linear_operator bad(ctx, 3, [](const spsolve::product &) {
        throw std::range_error("out of range");
    }, SPS_SYMMETRIC | SPS_SPD);
    EXPECT(throws<std::range_error>(
        [&] { spsolve::solver(bad, 2).solve(B, X); }, "out of range"));

    spsolve::linear_operator A(diagonal(ctx), 2);
    spsolve::options o(ctx);
    o.set("solver", "cg").monitor([](const sps_progress &) -> bool {
        throw std::logic_error("enough");
    });
    spsolve::solver s(A, 2, o);
    EXPECT(throws<std::logic_error>([&] { s.solve(B, X); }, "enough"));
}

static void preconditioners_and_pairs()
{
    spsolve::context ctx(SPS_HOST);
    spsolve::linear_operator A(diagonal(ctx), 2);
    spsolve::options o(ctx);
    o.set("precond", "jacobi").set("solver", "cg");
    spsolve::preconditioner M(A, 2, o);
    spsolve::block B(ctx, 3, 2, b), Z(ctx, 3, 2), V(ctx, 3, 1);
    M.apply(B, Z);
    EXPECT(M.name() == "jacobi" && std::fabs(Z.get()[4] - 1) < 1e-15);
    EXPECT(M.describe() == "jacobi\n");
    spsolve::solver s(A, M, 2, o);
    EXPECT(s.solve(B, Z).converged() && s.describe() == "jacobi\n");
    A.set_values(std::vector<double>{ 2, 4, 8 });
    M.update();
    M.apply(B, Z);
    EXPECT(std::fabs(Z.get()[4] - 0.5) < 1e-15);
    spsolve::eigen_result e =
        spsolve::eigensolver(A, 1, spsolve::options(ctx)).solve(V);
    EXPECT(e.converged() && std::fabs(e.lambda[0] - 2) < 1e-8);
}

int main()
{
    try {
        solves();
        outlives_its_context();
        errors();
        functions_that_throw();
        preconditioners_and_pairs();
    } catch (const std::exception &e) {
        std::fprintf(stderr, "thrown: %s\n", e.what());
        return 2;
    }
    if (!failures)
        std::printf("client: libspsolve %s works in C++ %ld\n", sps_version(),
                    long(__cplusplus));
    return failures > 0;
}
