# SPDX-License-Identifier: BSD-3-Clause
"""Answers of solve and Solver against SciPy's direct solver, for every format,
type of numbers, order and shape."""
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

import libspsolve
from libspsolve import Solver, eigsh, solve

FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


def right(A, B):
    return np.column_stack([spsolve(sp.csc_matrix(A), b) for b in B.T])


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_direct_solution(poisson, rng, form):
    B = rng.standard_normal((400, 3))
    r = solve(poisson.asformat(form), B, rtol=1e-11)
    assert r.converged.all() and r.all_converged
    np.testing.assert_allclose(r.X, right(poisson, B), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("form", FORMATS)
def test_sparse_arrays_work_like_matrices(convection, rng, form):
    make = getattr(sp, form + "_array", None)
    if make is None:
        pytest.skip("this SciPy has no sparse arrays")
    B = rng.standard_normal((400, 2))
    r = solve(make(convection), B, rtol=1e-11)
    np.testing.assert_allclose(r.X, right(convection, B), rtol=1e-7, atol=1e-9)


def test_a_tuple_of_csr_arrays_is_a_matrix(poisson, rng):
    b = rng.standard_normal(400)
    parts = (poisson.data, poisson.indices, poisson.indptr)
    a, c = solve(parts, b), solve(poisson, b)
    np.testing.assert_array_equal(a.X, c.X)


@pytest.mark.parametrize("solver", ["auto", "gmres", "bicgstab", "idr"])
def test_methods_are_chosen_by_name(convection, rng, solver):
    B = rng.standard_normal((400, 2))
    r = solve(convection, B, solver=solver, M="ilu0", rtol=1e-10)
    np.testing.assert_allclose(r.X, right(convection, B), rtol=1e-6, atol=1e-8)
    if solver != "auto":
        assert (r.solver, r.precond) == (solver, "ilu0")


def packed(a):
    """Returns a view whose rows are 4 bytes more than a multiple of 8 bytes
    apart."""
    rows = np.zeros(len(a), [("a", "f8", (a.shape[1],)), ("b", "i4")])
    rows["a"] = a
    return rows["a"]


LAYOUTS = {
    "C": lambda a: np.ascontiguousarray(a),
    "F": lambda a: np.asfortranarray(a),
    "rows apart": lambda a: np.hstack([a, a])[:, :a.shape[1]],
    "columns apart": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "F, rows apart": lambda a: np.asfortranarray(np.vstack([a, a]))[
        :a.shape[0]],
    "a list": lambda a: a.tolist(),
    "rows an odd distance apart": lambda a: packed(a),
    "read-only": lambda a: (a.setflags(write=False), a)[1],
    "an odd address": lambda a: np.frombuffer(
        b"x" + np.ascontiguousarray(a).tobytes(), np.float64,
        offset=1).reshape(a.shape),
}


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("k", [1, 3, 16])
def test_layouts_of_B_give_the_same_bits(poisson, rng, layout, k):
    B = rng.standard_normal((400, k))
    wanted = solve(poisson, B).X
    given = LAYOUTS[layout](B.copy())
    r = solve(poisson, given)
    np.testing.assert_array_equal(r.X, wanted)
    np.testing.assert_array_equal(np.asarray(given), B)


def test_X_has_the_order_of_B(poisson, rng):
    B = rng.standard_normal((400, 3))
    assert solve(poisson, B).X.flags.c_contiguous
    assert solve(poisson, np.asfortranarray(B)).X.flags.f_contiguous


def test_a_vector_gives_a_vector_and_scipys_pair(poisson, rng):
    b = rng.standard_normal(400)
    x, info = solve(poisson, b, rtol=1e-11)
    assert x.shape == (400,) and info == 0
    np.testing.assert_allclose(x, spsolve(poisson.tocsc(), b), rtol=1e-8)
    np.testing.assert_array_equal(x, solve(poisson, b[:, None],
                                           rtol=1e-11).X[:, 0])


def test_the_same_bits_as_the_library(poisson, rng):
    """The binding changes no bits: a block of the library is solved directly
    for comparison."""
    import ctypes

    from libspsolve._arrays import Block
    from libspsolve._library import lib
    from libspsolve._structs import ResultData
    B = rng.standard_normal((400, 5))
    with Solver(poisson, nrhs=5) as s:
        got = s.solve(B).X
        X = np.zeros((400, 5))
        context = s._context
        blocks = Block(context, B), Block(context, X)
        data = ResultData(struct_size=ctypes.sizeof(ResultData))
        assert lib.sps_solver_linear(s._solver, blocks[0].handle,
                                     blocks[1].handle, data) == 0
        np.testing.assert_array_equal(got, X)


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.int64, np.uint16,
                                  np.float16])
def test_other_real_numbers_are_widened(poisson, rng, kind):
    wide = abs(poisson) if kind is np.uint16 else poisson
    b = rng.standard_normal(400)
    r = solve((wide.data.astype(kind), wide.indices, wide.indptr), b,
              solver="gmres", M="ilut", rtol=1e-11)
    np.testing.assert_allclose(r.X, spsolve(sp.csc_matrix(wide), b), rtol=1e-6,
                               atol=1e-9)


def test_booleans_count_as_ones(rng):
    b = rng.standard_normal(30)
    r = solve(sp.identity(30, dtype=bool, format="csr"), b)
    np.testing.assert_allclose(r.X, b)


def test_integers_beyond_doubles_are_rounded_with_a_note():
    A = sp.csr_matrix(np.diag(np.array([2**60 + 1, 3], dtype=np.int64)))
    with pytest.warns(libspsolve.Note, match="1 integers beyond 2.53"):
        r = solve(A, np.array([2.0**60, 3.0]))
    np.testing.assert_allclose(r.X, [1, 1], rtol=1e-15)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_offsets_of_32_and_64_bits(poisson, rng, index):
    b = rng.standard_normal(400)
    A = (poisson.data, poisson.indices.astype(index),
         poisson.indptr.astype(index))
    np.testing.assert_array_equal(solve(A, b).X, solve(poisson, b).X)


def test_arrays_of_the_right_types_are_not_copied(poisson):
    with Solver(poisson) as s:
        arrays = s._matrix.arrays
        assert np.shares_memory(arrays.values, poisson.data)
        assert np.shares_memory(arrays.indices, poisson.indices)
    B = np.ones((400, 16))
    from libspsolve._arrays import Block
    with Solver(poisson, nrhs=16) as s:
        assert Block(s._context, B).wrapped


def test_complex_systems_are_solved_in_their_real_form(poisson, rng):
    A = sp.csr_matrix(poisson + 1j * sp.diags(
        [0.5, 0.3], [0, 2], shape=poisson.shape))
    B = rng.standard_normal((400, 3)) + 1j * rng.standard_normal((400, 3))
    r = solve(A, B, rtol=1e-11)
    assert r.X.dtype == np.complex128 and r.converged.shape == (3,)
    np.testing.assert_allclose(r.X, right(A, B), rtol=1e-7, atol=1e-9)
    error = np.linalg.norm(B - A @ r.X, axis=0) / np.linalg.norm(B, axis=0)
    np.testing.assert_allclose(r.residuals, error, rtol=1e-2, atol=1e-14)
    with Solver(A) as s, Solver(poisson) as other:
        assert s._matrix._csr().props & libspsolve._structs.Property.INTERLEAVED
        assert not other._matrix._csr().props
    x, info = solve(A.astype(np.complex64), B[:, 0].real)
    assert x.shape == (400,) and info == 0


def test_new_values_of_a_complex_matrix(poisson, rng):
    A = sp.csr_matrix(poisson * (1 + 0.5j))
    b = rng.standard_normal(400) + 0j
    with Solver(A, 1, rtol=1e-10) as s:
        first = s.solve(b).X
        s.update(2 * A.data)
        np.testing.assert_allclose(s.solve(b).X, first / 2, rtol=1e-7)
        s.update(sp.csr_matrix(A * 4))
        np.testing.assert_allclose(s.solve(b).X, first / 4, rtol=1e-7)
        with pytest.raises(ValueError, match="values for a matrix of"):
            s.update(A.data[:-1])


def test_a_good_guess_takes_no_iterations(poisson, rng):
    B = rng.standard_normal((400, 2))
    with Solver(poisson, nrhs=2, solver="cg") as s:
        first = s.solve(B)
        again = s.solve(B, x0=first.X)
        assert again.iterations < 3 < first.iterations
        np.testing.assert_array_equal(again.X, first.X)


def test_out_receives_X(poisson, rng):
    B = rng.standard_normal((400, 3))
    for order in "CF":
        out = np.full((400, 3), np.nan, order=order)
        with Solver(poisson, nrhs=3) as s:
            r = s.solve(B, out=out)
            assert r.X is out
            np.testing.assert_array_equal(out, s.solve(B).X)
            with pytest.raises(TypeError, match="writeable array of float64"):
                s.solve(B, out=np.empty((400, 3), np.float32))
            given = np.array(B, order=order)
            with pytest.raises(ValueError, match="share memory"):
                s.solve(given, out=given)
            np.testing.assert_array_equal(given, B)
    A = sp.csr_matrix(poisson * (1 + 1j))
    out = np.empty((400, 3), complex)
    with Solver(A, nrhs=3) as s:
        assert s.solve(B, out=out).X is out
        np.testing.assert_allclose(A @ out, B, atol=1e-6)


def test_many_solves_with_new_values(poisson, rng):
    B = rng.standard_normal((400, 2))
    A = poisson.copy()
    with Solver(A, nrhs=2, rtol=1e-11) as s:
        for step in range(1, 4):
            new = sp.csr_matrix(poisson + step * sp.identity(400))
            s.update(new if step % 2 else new.data)
            np.testing.assert_allclose(s.solve(B).X, right(new, B), rtol=1e-7,
                                       atol=1e-9)
        A.data[:] = new.data * 2
        s.update(A.data)
        np.testing.assert_allclose(s.solve(B).X, right(new, B) / 2, rtol=1e-7,
                                   atol=1e-9)


def test_another_pattern_is_refused(poisson):
    with Solver(poisson, nrhs=1) as s:
        with pytest.raises(ValueError, match="another pattern"):
            s.update(sp.identity(400))
        moved = poisson.indices.copy()
        moved[0] = 399
        with pytest.raises(ValueError, match="another pattern"):
            s.update(sp.csr_matrix((poisson.data, moved, poisson.indptr)))
        with pytest.raises(ValueError, match="5 values"):
            s.update(np.ones(5))
        with pytest.raises(TypeError, match="complex"):
            s.update(poisson * 1j)
        with pytest.raises(TypeError, match="complex"):
            s.update(poisson.data * 1j)


def test_without_nrhs_any_number_of_columns(poisson, rng):
    with Solver(poisson) as s:
        s.update(2 * poisson.data)
        for k in (1, 4, 2, 2):
            B = rng.standard_normal((400, k))
            r = s.solve(B)
            np.testing.assert_allclose(r.X, right(poisson, B) / 2, rtol=1e-5,
                                       atol=1e-6)
        assert s.solve(B[:, 0]).X.shape == (400,)


def test_unsorted_rows_are_sorted_with_a_note(poisson, rng):
    b = rng.standard_normal(400)
    order = np.concatenate([np.arange(s, e)[::-1] for s, e in zip(
        poisson.indptr[:-1], poisson.indptr[1:])])
    A = sp.csr_matrix((poisson.data[order], poisson.indices[order],
                       poisson.indptr), shape=poisson.shape)
    before = A.indices.copy()
    with pytest.warns(libspsolve.Note, match="sorted the rows"):
        with Solver(A, 1) as s:
            first = s.solve(b)
            s.update(A.data * 2)
            second = s.solve(b)
    np.testing.assert_array_equal(first.X, solve(poisson, b).X)
    np.testing.assert_allclose(second.X, first.X / 2, rtol=1e-6)
    np.testing.assert_array_equal(A.indices, before)


def test_a_singular_system_tells_its_null_space(rng):
    n = 60
    A = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)).tolil()
    A[0, 0] = A[n - 1, n - 1] = 1
    b = rng.standard_normal(n)
    with pytest.warns(libspsolve.Note, match="null space"):
        r = solve(A, b - b.mean())
    assert r.all_converged and r.nullspace == 1
    basis = np.ones((n, 1)) / np.sqrt(n)
    r = solve(A, b, nullspace_basis=basis)      # warns of nothing
    assert any("given null space" in note for note in r.notes)
    assert r.stop == libspsolve.Stop.CONVERGED_LEAST_SQUARES
    assert r.removed > 0


def test_seconds_of_the_set_up_and_of_new_values(poisson, rng):
    B = rng.standard_normal((400, 2))
    with Solver(poisson, nrhs=2, M="ilut") as s:
        first, second = (s.solve(B).seconds for _ in range(2))
        s.update(2 * poisson)
        third = s.solve(B).seconds
    assert first["setup"] > 0 and first["solve"] > 0
    assert second["setup"] < first["setup"]
    assert third["setup"] > second["setup"]
    assert eigsh(poisson, 2).seconds["setup"] > 0


def test_what_has_not_converged_warns_and_keeps_the_best(poisson, rng):
    B = rng.standard_normal((400, 2))
    with pytest.warns(libspsolve.ConvergenceWarning, match="2 of 2 columns"):
        r = solve(poisson, B, solver="cg", maxiter=3)
    assert not r.converged.any() and r.info == 3
    assert r.stop == libspsolve.Stop.MAX_ITERATIONS
    assert r.reason == "iteration limit reached"
    assert r.reasons == [r.reason] * 2
    assert np.all(r.residuals < 1) and np.isfinite(r.X).all()
    with pytest.raises(libspsolve.NotConverged, match="2 of 2") as e:
        r.raise_if_not_converged()
    assert e.value.result is r
    solve(poisson, B).raise_if_not_converged()


def test_residuals_are_those_of_the_returned_X(poisson, rng):
    B = rng.standard_normal((400, 4))
    with pytest.warns(libspsolve.ConvergenceWarning):
        r = solve(poisson, B, solver="cg", maxiter=20)
    error = np.linalg.norm(B - poisson @ r.X, axis=0) / np.linalg.norm(
        B, axis=0)
    np.testing.assert_allclose(r.residuals, error, rtol=1e-6)
    assert np.all(r.backward_errors <= r.residuals)
    assert r.applies_A > 0 and r.seconds["solve"] > 0
    assert "0 of 4 columns" in repr(r) and "of cg with" in repr(r)


def test_a_row_for_a_column_is_refused_with_its_rows(poisson):
    with pytest.raises(ValueError, match="B has 1 rows, A has 400"):
        solve(poisson, np.ones((1, 400)))


def test_multigrid_takes_near_null_vectors(rng):
    """In units that change from point to point constants are none."""
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(40, 40))
    d = 2.0 ** (np.arange(1600) % 5)
    A = (sp.diags(d) @ sp.kronsum(line, line) @ sp.diags(d)).tocsr()
    B = rng.standard_normal((1600, 4))
    options = {"precond": "amg", "solver": "block_cg"}
    constants = solve(A, B, **options)
    r = solve(A, B, near_null_basis=1 / d[:, None], **options)
    assert r.all_converged and r.iterations < constants.iterations
    with pytest.raises(ValueError, match="1599 rows"):
        solve(A, B, near_null_basis=np.ones((1599, 1)), **options)
