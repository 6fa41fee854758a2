# SPDX-License-Identifier: BSD-3-Clause
"""Functions and LinearOperators as A and M, preconditioners of the library in
SciPy's solvers, and callbacks that fail."""
import re
import sys
import types
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg, spilu

import libspsolve
from libspsolve import Preconditioner, Solver, solve


class OnlyVectors:
    """Has only matvec, as older classes do."""

    def __init__(self, A):
        self.A, self.shape = A, A.shape

    def matvec(self, x):
        return self.A @ x


KINDS = {
    "LinearOperator": aslinearoperator,
    "LinearOperator of matvec": lambda A: LinearOperator(
        A.shape, matvec=lambda x: A @ x, dtype=float),
    "function": lambda A: lambda X: A @ X,
    "matvec": OnlyVectors,
}


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("k", [1, 5])
def test_operators_give_the_answer_of_the_matrix(poisson, rng, kind, k):
    B = rng.standard_normal((400, k))
    r = solve(KINDS[kind](poisson), B, solver="cg", assume_a="pos",
              rtol=1e-10)
    assert r.all_converged and r.in_doubles
    np.testing.assert_allclose(poisson @ r.X, B, atol=1e-8)


@pytest.mark.parametrize("solver, k", [("cg", 1), ("block_cg", 4)])
def test_a_nonsymmetric_M_is_told(poisson, rng, solver, k):
    B = rng.standard_normal((400, k))
    upper = sp.diags([1.0, 0.3], [0, 1], shape=(400, 400)).tocsr()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        r = solve(poisson, B, M=upper, solver=solver, max_iterations=50)
    assert any(issubclass(w.category, libspsolve.Note) and
               "not symmetric" in str(w.message) for w in seen)
    assert any("methods for nonsymmetric" in note for note in r.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solve(poisson, B, M=lambda R: R / 4, solver=solver).all_converged


@pytest.mark.parametrize("order", "CF")
def test_products_in_any_order_are_taken(poisson, rng, order):
    B = rng.standard_normal((400, 3))
    r = solve(lambda X: np.asarray(poisson @ X, order=order), B,
              solver="gmres", M="none")
    np.testing.assert_allclose(poisson @ r.X, B, atol=1e-5)


@pytest.mark.parametrize("kind", sorted(KINDS) + ["sparse", "dense"])
def test_M_approximates_the_inverse(convection, rng, kind):
    """With the exact inverse as M two iterations are enough."""
    inverse = np.linalg.inv(convection.toarray())
    kinds = dict(KINDS, sparse=sp.csr_matrix, dense=np.asarray)
    b = rng.standard_normal(400)
    r = solve(convection, b, M=kinds[kind](inverse), solver="gmres",
              rtol=1e-9)
    assert r.all_converged and r.iterations <= 2


def test_M_of_scipy_and_by_name(convection, rng):
    b = rng.standard_normal(400)
    ilu = spilu(convection.tocsc())
    with pytest.raises(TypeError, match=r"LinearOperator\(A.shape, M.solve"):
        solve(convection, np.ones(400), M=ilu)
    M = LinearOperator(convection.shape, ilu.solve)
    assert solve(convection, b, M=M, solver="bicgstab").all_converged
    assert solve(convection, b, M="ilu0", solver="gmres").precond == "ilu0"
    with pytest.raises(TypeError, match="M or precond"):
        solve(convection, b, M="ilu0", precond="jacobi")


def test_preconditioners_of_the_library_serve_scipy(poisson, rng):
    b = rng.standard_normal(400)
    count = {}
    for name, M in (("none", None), ("ic0", Preconditioner(poisson, "ic0"))):
        steps = []
        x, info = cg(poisson, b, M=M, atol=0, callback=steps.append)
        assert info == 0
        count[name] = len(steps)
    assert count["ic0"] < 0.7 * count["none"]
    assert M.name == "ic0" and M.dtype == np.float64


def test_what_was_built_is_described(poisson):
    with pytest.warns(libspsolve.Note, match="amg: 1 level"), \
            Preconditioner(poisson, "amg") as M:
        levels = M.describe()
        assert levels.startswith("amg: ")
        assert "\nlevel " in levels and "\n    0       400 " in levels
    with Solver(poisson, precond="amg", solver="cg") as solver:
        with pytest.raises(ValueError, match="before the first solve"):
            solver.describe()
        with pytest.warns(libspsolve.Note, match="amg: 1 level"):
            solver.solve(np.ones(400))
        assert solver.describe() == levels
    with Solver(poisson, 1, precond="none", solver="cg") as solver:
        assert solver.describe() == "none"


@pytest.mark.parametrize("width", [1, 2, 8])
def test_preconditioners_act_on_vectors_and_blocks(poisson, rng, width):
    R = rng.standard_normal((400, 5))
    with Preconditioner(poisson, "jacobi", width=width) as M:
        wanted = R / poisson.diagonal()[:, None]
        for given in (R, np.asfortranarray(R)):
            np.testing.assert_allclose(M @ given, wanted)
        np.testing.assert_allclose(M.matvec(R[:, 0]), wanted[:, 0])
        np.testing.assert_allclose(aslinearoperator(M).matmat(R), wanted)
        M.update(poisson * 2)
        np.testing.assert_allclose(M(R), wanted / 2)
        with pytest.raises(ValueError, match="3 rows"):
            M.matvec(np.ones(3))
        with pytest.raises(TypeError, match="complex"):
            M.matvec(np.ones(400) * 1j)


def test_complex_preconditioners(poisson, rng):
    A = sp.csr_matrix(poisson * (1 + 1j))
    r = rng.standard_normal(400) + 1j * rng.standard_normal(400)
    with Preconditioner(sp.diags([A.diagonal()], [0]), "ilu0") as M:
        np.testing.assert_allclose(M @ r, r / A.diagonal())
        np.testing.assert_allclose(M @ r.real, r.real / A.diagonal())
    with Preconditioner(poisson, "jacobi") as M:
        with pytest.raises(TypeError, match="a complex A needs"):
            solve(A, r, M=M)


def test_a_preconditioner_of_ours_as_M_of_ours(poisson, rng):
    b = rng.standard_normal(400)
    with Preconditioner(poisson, "ic0") as M:
        ours = solve(poisson, b, M=M, solver="cg")
    named = solve(poisson, b, M="ic0", solver="cg")
    assert abs(ours.iterations - named.iterations) <= 1


def test_what_a_function_raises_is_raised_by_the_solve(poisson, rng):
    calls = []

    def fails(X):
        calls.append(1)
        if len(calls) == 5:
            raise LookupError("in the middle")
        return poisson @ X

    with pytest.raises(LookupError, match="in the middle"):
        solve(fails, rng.standard_normal((400, 2)), solver="cg",
              assume_a="pos")
    with Solver(fails, 2, n=400, solver="cg", assume_a="pos") as s:
        assert s.solve(rng.standard_normal((400, 2))).all_converged


def test_wrong_products_are_refused(rng):
    b = rng.standard_normal(10)
    with pytest.raises(ValueError, match=r"\(10,\); \(10, 1\) is expected"):
        solve(lambda X: X[:, 0], b)
    with pytest.raises(TypeError, match="returned complex"):
        solve(lambda X: X * 1j, b)
    with pytest.raises(ValueError, match="read-only"):
        solve(lambda X: X.fill(1), b)


def test_operators_are_taken_as_nonsymmetric_unless_declared(poisson):
    b = np.ones(400)
    assert solve(lambda X: poisson @ X, b).solver == "gmres"
    assert solve(lambda X: poisson @ X, b, assume_a="pos").solver == "cg"
    with pytest.raises(libspsolve.UnfitError, match="assume_a='sym'"):
        solve(lambda X: poisson @ X, b, solver="cg")


def test_wrong_operators_are_refused(poisson):
    b = np.ones(400)
    with pytest.raises(TypeError, match="complex operator"):
        solve(aslinearoperator(poisson * 1j), b)
    with pytest.raises(TypeError, match="number of rows, n="):
        Solver(lambda X: X, 1)
    with pytest.raises(ValueError, match="must be square"):
        solve(LinearOperator((3, 4), matvec=lambda x: x[:3]), np.ones(3))
    with pytest.raises(TypeError, match="M is a int"):
        solve(poisson, b, M=5)
    with pytest.raises(ValueError, match="M has the shape"):
        solve(poisson, b, M=sp.identity(7))
    with pytest.raises(TypeError, match="no values"):
        Solver(lambda X: X, n=400).update(b)
    with pytest.raises(libspsolve.UnfitError):
        solve(lambda X: poisson @ X, b, M="ilu0", solver="gmres")


def test_a_callback_sees_every_iteration(poisson, rng):
    seen = []
    r = solve(poisson, rng.standard_normal((400, 3)), solver="cg",
              callback=seen.append)
    assert [p.iteration for p in seen] == list(range(
        seen[0].iteration, seen[0].iteration + len(seen)))
    assert len(seen) >= r.iterations
    assert seen[-1].residuals.shape == (3,)
    assert seen[-1].converged == 3 and seen[0].converged == 0
    assert seen[-1].worst == seen[-1].residuals.max()
    assert 0 <= seen[0].seconds <= seen[-1].seconds


class Bar:
    """Has the methods of tqdm that the package uses."""

    made = []

    def __init__(self, unit):
        self.count, self.closed = 0, False
        Bar.made.append(self)

    def update(self, more):
        self.count += more

    def set_postfix_str(self, text, refresh):
        self.text = text

    def close(self):
        self.closed = True


def test_progress_is_shown_by_tqdm(poisson, monkeypatch):
    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    monkeypatch.setattr(Bar, "made", [])
    seen = []
    with Solver(poisson, 2, solver="cg", progress=True,
                callback=seen.append) as s:
        for _ in range(2):
            last = s.solve(np.ones((400, 2)))
    libspsolve.eigsh(poisson, 2, solver="lobpcg", progress=True)
    assert len(Bar.made) == 3 and all(bar.closed for bar in Bar.made)
    assert Bar.made[1].count == seen[-1].iteration >= last.iterations
    assert Bar.made[1].text.startswith("2/2 converged, largest residual ")
    with pytest.raises(ZeroDivisionError):
        solve(poisson, np.ones(400), solver="cg", progress=True,
              callback=lambda p: 1 / 0)
    assert Bar.made[3].closed


def test_progress_is_told_in_lines_without_tqdm(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    n = 200000
    A = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n))
    r = solve(A, np.ones(n), solver="cg", precond="none", rtol=1e-14,
              max_iterations=10**9, max_seconds=60, progress=True,
              callback=lambda p: p.seconds < 2.5)
    assert r.stop == libspsolve.Stop.INTERRUPTED
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 3
    assert re.match(r"iteration \d+: 0/1 converged, largest residual ",
                    lines[0])


def test_a_callback_ends_a_solve_by_False_and_by_an_exception(poisson, rng):
    B = rng.standard_normal((400, 2))
    r = solve(poisson, B, solver="cg", callback=lambda p: p.iteration < 5)
    assert r.stop == libspsolve.Stop.INTERRUPTED and r.iterations <= 6
    with pytest.raises(LookupError, match="enough"):
        def enough(p):
            raise LookupError("enough")
        solve(poisson, B, solver="cg", callback=enough)
