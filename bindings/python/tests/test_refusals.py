# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be right is refused, by a text that names the argument."""
import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from libspsolve import (MatrixError, Preconditioner, Solver, eigsh, lsmr,
                        lsqr, solve)


@pytest.fixture
def B(rng):
    return rng.standard_normal((400, 3))


# ------------------------------------------------------------- coordinates

COORDS = {
    "3 coordinates for each": np.ones((400, 5)),
    "399 nodes": np.ones((399, 2)),
    "37 nodes": np.ones((37, 2)),
    "not finite": np.full((400, 2), np.nan),
    "coords is complex": np.ones((400, 2)) * 1j,
}


def coords_of(word, coords):
    return {"coords": coords}, "at most 3" if word.startswith("3") else word


@pytest.mark.parametrize("word", COORDS)
@pytest.mark.parametrize("precond", ["amg", "jacobi"])
def test_coordinates_that_do_not_fit(poisson, B, word, precond):
    wrong, text = coords_of(word, COORDS[word])
    for call in (lambda: solve(poisson, B, precond=precond, **wrong),
                 lambda: solve(poisson, B, reorder="morton", **wrong),
                 lambda: eigsh(poisson, 2, precond=precond, **wrong),
                 lambda: Preconditioner(poisson, precond, **wrong),
                 lambda: solve(lambda X: poisson @ X, B, **wrong)):
        with pytest.raises((TypeError, ValueError), match=text):
            call()


def test_coordinates_that_fit(poisson, B):
    for coords in (np.ones((400, 3)), np.arange(200.0), np.ones((100, 2))):
        r = solve(poisson, B, precond="jacobi", coords=coords)
        assert r.all_converged


# ------------------------------------------------------------------ arrays

def strided(memory, shape, strides):
    return np.lib.stride_tricks.as_strided(memory, shape, strides)


@pytest.mark.parametrize("out", [
    strided(np.empty(3), (400, 3), (0, 8)),
    strided(np.empty(500), (400, 3), (8, 8)),
    strided(np.empty(1200), (400, 3), (16, 8))])
def test_out_whose_numbers_overlap(poisson, B, out):
    with Solver(poisson) as s:
        with pytest.raises(ValueError, match="lie at the same place"):
            s.solve(B, out=out)


def test_out_in_order_of_columns_and_with_gaps_is_taken(poisson, B):
    with Solver(poisson) as s:
        X = s.solve(B).X
        for out in (np.empty((3, 400)).T, np.empty((400, 6))[:, ::2],
                    np.empty((800, 3))[::-2]):
            assert np.array_equal(s.solve(B, out=out).X, X)


def test_out_in_the_memory_of_A(poisson, B):
    before = poisson.copy()
    with Solver(poisson, 1) as s:
        for _ in range(2):
            with pytest.raises(ValueError, match="shares memory with A"):
                s.solve(B[:, 0], out=poisson.data[:400])
            s.solve(B[:, 0])
    assert (poisson != before).nnz == 0


def test_masked_arrays(poisson, B):
    masked = np.ma.masked_array(B, mask=B > 1)
    data = np.ma.masked_array(poisson.data)
    for call in (lambda: solve(poisson, masked),
                 lambda: solve(poisson, B, x0=masked),
                 lambda: solve((data, poisson.indices, poisson.indptr), B),
                 lambda: Solver(poisson).update(data)):
        with pytest.raises(TypeError, match="masked"):
            call()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("is_complex", [False, True])
def test_values_of_A_that_are_not_finite(poisson, B, value, is_complex):
    A = poisson.astype(complex) if is_complex else poisson.copy()
    A[3, 4] = value
    where = "row 3, column 4, counted from 0"
    with pytest.raises(MatrixError, match="^A has a value.*" + where):
        solve(A, B)
    with Solver(poisson.astype(A.dtype)) as s:
        for values in (A, A.data):
            with pytest.raises(MatrixError, match=where):
                s.update(values)
    if not is_complex:
        with pytest.raises(MatrixError, match=where):
            eigsh(A, 2)
        with pytest.raises(MatrixError, match="^M has a value.*" + where):
            eigsh(poisson, 2, M=A)


def test_large_values_of_A_are_finite(poisson, B):
    A = sp.diags([np.full(400, 1e308)], [0], format="csr")
    assert Solver(A).shape == (400, 400)


def test_a_real_solver_and_a_complex_matrix(poisson):
    for first, second in ((float, complex), (complex, float)):
        with Solver(poisson.astype(first), nrhs=1) as s:
            with pytest.raises(TypeError, match="make one for a complex"):
                s.update(poisson.astype(second))


# --------------------------------------------------------------- arguments

def test_arguments_without_effect(poisson, B):
    for text, call in {
            "^solver='cg': lsqr is": lambda: lsqr(poisson, B, solver="cg"),
            "^solver='lsqr': lsmr": lambda: lsmr(poisson, B, solver="lsqr"),
            "^constraints has no": lambda: solve(poisson, B, constraints=B),
            "^sigma has no": lambda: solve(poisson, B, sigma=1.0),
            "^maxiter and max_iterations are": lambda: solve(
                poisson, B, maxiter=5, max_iterations=7),
            "max_iterations and maxiter are": lambda: eigsh(
                poisson, 2, maxiter=5, max_iterations=7),
            "^tol and rtol": lambda: eigsh(poisson, 2, tol=1e-3, rtol=1e-5),
            "^iter_lim and": lambda: lsqr(poisson, B, iter_lim=3, maxiter=4),
            "^out is not an": lambda: solve(poisson, B, out=B.copy()),
            "^nrhs is not an": lambda: lsqr(poisson, B, nrhs=3),
            "^seed='a'": lambda: solve(poisson, B, seed="a"),
            "^callback=3": lambda: solve(poisson, B, callback=3),
            "^callback=4": lambda: eigsh(poisson, 2, callback=4)}.items():
        with pytest.raises(TypeError, match=text):
            call()
    for text, call in {
            "^n=3, but A has 400": lambda: solve(poisson, B, n=3),
            "n=3, but": lambda: eigsh(poisson, 2, n=3),
            "^seed=-1: 0 to": lambda: solve(poisson, B, seed=-1),
            "^seed=1180591620717411303424:": lambda: eigsh(
                poisson, 2, seed=2**70)}.items():
        with pytest.raises(ValueError, match=text):
            call()
    assert lsqr(poisson, B, solver="lsqr", seed=2**64 - 1).all_converged


def test_numbers_of_columns(poisson):
    wide = np.ones((400, 1025))
    for text, call in {
            "^B has 0 columns: 1 to": lambda: solve(poisson, wide[:, :0]),
            "^nrhs=0: 1 to 1024": lambda: Solver(poisson, nrhs=0),
            "^k=0: 1 to 1024": lambda: eigsh(poisson, k=0),
            "^B has 1025 columns.* in turn": lambda: solve(poisson, wide),
            "^B has 1025 col": lambda: Solver(poisson).solve(wide),
            "^k=1025.* in turn": lambda: eigsh(poisson, 1025)}.items():
        with pytest.raises(ValueError, match=text):
            call()


def test_texts_name_what_python_has(poisson, B):
    for call in (lambda: eigsh(poisson, 2, solver="cg"),
                 lambda: solve(poisson, B, solver="lobpcg")):
        with pytest.raises(ValueError, match="options") as e:
            call()
        assert "sps_" not in str(e.value)


def test_a_solver_tells_what_it_is():
    A = sp.csr_matrix(sp.identity(3))
    with Solver(A) as solver:
        assert repr(solver) == "<Solver of a 3 x 3 matrix of float64>"
    assert repr(solver).endswith(" of float64, closed>")
    with Solver(A * 1j) as solver:
        assert repr(solver) == "<Solver of a 3 x 3 matrix of complex128>"
    with Solver(lambda X: X, n=4) as solver:
        assert repr(solver) == "<Solver of a 4 x 4 operator of float64>"


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickle.dumps])
def test_solvers_are_not_copied(poisson, make):
    for thing in Solver(poisson), Preconditioner(poisson, "jacobi"):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            make(thing)
