# SPDX-License-Identifier: BSD-3-Clause
"""lsqr and lsmr, beside NumPy and SciPy."""
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.sparse.linalg import lsqr as scipy_lsqr

import libspsolve
from libspsolve import Solver, Stop, lsmr, lsqr, solve

BOTH = pytest.mark.parametrize("method", [lsqr, lsmr])


def tall(rng, m=60, n=20):
    A = sp.random(m, n, density=0.2, random_state=3, format="csr")
    return sp.csr_matrix(A + sp.eye(m, n))


@BOTH
@pytest.mark.parametrize("shape", [(60, 20), (20, 60), (30, 30)])
def test_solutions_are_those_of_numpy(method, shape, rng):
    A = tall(rng, *shape)
    B = rng.standard_normal((shape[0], 4))
    r = method(A, B, rtol=1e-12)
    assert r.all_converged and r.X.shape == (shape[1], 4)
    assert r.normal_residuals.max() <= 1e-12 or r.residuals.max() <= 1e-12
    wanted = np.linalg.lstsq(A.toarray(), B, rcond=None)[0]
    np.testing.assert_allclose(r.X, wanted, atol=1e-8)


@BOTH
def test_the_call_shape_is_that_of_scipy(method, rng):
    A, b = tall(rng), rng.standard_normal(60)
    x, info = method(A, b, 0.5, atol=1e-12, btol=1e-11, iter_lim=500)
    assert info == 0 and x.shape == (20,)
    np.testing.assert_allclose(
        x, scipy_lsqr(A, b, 0.5, atol=1e-14, btol=1e-14)[0], atol=1e-8)
    with pytest.warns(libspsolve.ConvergenceWarning):
        first = method(A, b, x0=np.ones(20), iter_lim=1, rtol=1e-14)
    assert first.iterations == 1 and first.stop == Stop.MAX_ITERATIONS


def test_iterates_are_those_of_scipy(rng):
    A, b = tall(rng), rng.standard_normal(60)
    for steps in (1, 3, 6):
        with pytest.warns(libspsolve.ConvergenceWarning):
            r = lsqr(A, b, rtol=1e-15, iter_lim=steps)
        theirs = scipy_lsqr(A, b, atol=0, btol=0, conlim=0, iter_lim=steps)
        np.testing.assert_allclose(r.X, theirs[0], rtol=1e-10, atol=1e-12)


@BOTH
def test_operators_bring_their_adjoint(method, rng):
    A, B = tall(rng), rng.standard_normal((60, 3))
    wanted = method(A, B, rtol=1e-10)
    blocks = method(aslinearoperator(A), B, rtol=1e-10)
    vectors = method(LinearOperator(A.shape, matvec=lambda x: A @ x,
                                    rmatvec=lambda y: A.T @ y, dtype=float),
                     B, rtol=1e-10)
    for r in (blocks, vectors):
        assert r.all_converged and r.in_doubles
        np.testing.assert_allclose(r.X, wanted.X, atol=1e-8)
    with pytest.raises(TypeError, match="adjoint"):
        method(lambda x: x, B, n=60)
    with pytest.raises(TypeError, match="with rmatvec or rmatmat"):
        method(LinearOperator(A.shape, matvec=A.dot, dtype=float), B)


@BOTH
def test_results_are_indexed_as_those_of_scipy(method, rng):
    r = method(tall(rng), np.ones(60))
    assert r[0] is r.X and r[1] == r[-1] == r.info == 0


@BOTH
def test_complex_matrices(method, rng):
    A = sp.csr_matrix(tall(rng) * (1 + 2j) + 1j * sp.eye(60, 20))
    b = rng.standard_normal(60) + 1j * rng.standard_normal(60)
    r = method(A, b, rtol=1e-12)
    wanted = np.linalg.lstsq(A.toarray(), b, rcond=None)[0]
    np.testing.assert_allclose(r.X, wanted, atol=1e-8)


def test_a_solver_of_least_squares(rng):
    A, B = tall(rng), rng.standard_normal((60, 2))
    with Solver(A, 2, solver="lsmr", rtol=1e-10, M="jacobi") as s:
        first = s.solve(B)
        s.update(2 * A)
        out = np.empty((20, 2))
        second = s.solve(B, out=out)
        assert second.X is out and second.precond == "jacobi"
        np.testing.assert_allclose(first.X, 2 * out, atol=1e-8)
        with pytest.raises(ValueError, match="20 rows, A has 60"):
            s.solve(np.ones((20, 2)))
        with pytest.raises(ValueError, match="A has 20 columns"):
            s.solve(B, x0=B)


def test_square_systems_have_no_normal_residuals(poisson, rng):
    r = solve(poisson, rng.standard_normal(400))
    assert r.normal_residuals.size == 0
    with pytest.raises(ValueError, match="lsqr and lsmr"):
        solve(tall(rng), np.ones(60))


def test_what_is_printed_of_least_squares():
    A = sp.csr_matrix([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    assert "of the normal equations" in repr(lsqr(A, [1.0, 2.0, 4.0]))
