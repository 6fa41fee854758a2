# SPDX-License-Identifier: BSD-3-Clause
"""eigsh against SciPy's, and against eigenvalues that are known."""
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import linalg

import libspsolve
from libspsolve import eigsh

N = 900                     # beyond what LAPACK is used for by default


@pytest.fixture
def stiffness():
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(N, N))
    return sp.csr_matrix(line + sp.diags([np.linspace(0, 1, N)], [0]))


@pytest.fixture
def mass():
    return sp.csr_matrix(sp.diags([1.0, 4.0, 1.0], [-1, 0, 1], shape=(N, N))
                         / 6)


def check(A, M, result, wanted):
    w, V = result
    np.testing.assert_allclose(w, np.sort(wanted), rtol=1e-7)
    assert np.all(np.diff(w) >= 0)
    MV = V if M is None else M @ V
    np.testing.assert_allclose(V.T @ MV, np.eye(w.size), atol=1e-8)
    np.testing.assert_allclose(A @ V, MV * w, atol=1e-6)
    assert result.converged.all() and result.residuals.shape == w.shape


@pytest.mark.parametrize("which", ["SA", "LA", None, "smallest", "largest"])
@pytest.mark.parametrize("generalised", [False, True])
def test_pairs_are_those_of_scipy(stiffness, mass, which, generalised):
    M = mass if generalised else None
    result = eigsh(stiffness, k=4, M=M, which=which, rtol=1e-9)
    end = "LA" if which in ("LA", "largest") else "SA"
    wanted = linalg.eigsh(stiffness.tocsc(), k=4, M=M, which=end,
                          return_eigenvectors=False, maxiter=20000,
                          ncv=60)
    check(stiffness, M, result, wanted)


@pytest.mark.parametrize("sigma", [0.0, 1.3])
def test_pairs_nearest_to_a_number(stiffness, mass, sigma):
    wanted = linalg.eigsh(stiffness.tocsc(), k=4, M=mass.tocsc(), sigma=sigma,
                          return_eigenvectors=False)
    result = eigsh(stiffness, 4, mass, sigma, rtol=1e-9)
    check(stiffness, mass, result, wanted)
    if sigma == 0:
        check(stiffness, mass, eigsh(stiffness, 4, mass, which="SM",
                                     rtol=1e-9), wanted)


def test_operators_as_A_and_M(stiffness, mass):
    wanted = eigsh(stiffness, 3, mass, rtol=1e-8, return_eigenvectors=False)
    assert isinstance(wanted, np.ndarray)
    factors = linalg.splu(stiffness.tocsc())
    with pytest.warns(libspsolve.Note, match="callback"):
        result = eigsh(linalg.aslinearoperator(stiffness), 3,
                       linalg.aslinearoperator(mass), rtol=1e-8,
                       precond=lambda R: factors.solve(np.array(R)))
    check(stiffness, mass, result, wanted)


def test_a_guess_saves_iterations(stiffness):
    first = eigsh(stiffness, 4, solver="lobpcg", precond="ic0")
    again = eigsh(stiffness, 4, solver="lobpcg", precond="ic0", v0=first.V)
    assert again.iterations < first.iterations / 2
    one = eigsh(stiffness, 4, solver="lobpcg", precond="ic0",
                v0=first.V[:, 0])
    np.testing.assert_allclose(one.w, first.w, rtol=1e-7)
    with pytest.raises(ValueError, match="v0 has the shape"):
        eigsh(stiffness, 4, v0=np.ones((N, 5)))


def test_a_null_space_is_left_out():
    A = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(N, N)).tolil()
    A[0, 0] = A[N - 1, N - 1] = 1
    result = eigsh(A.tocsr(), 2, nullspace="constant")  # warns of nothing
    assert any("null space of dimension 1" in note for note in result.notes)
    exact = 2 - 2 * np.cos(np.arange(1, 3) * np.pi / N)
    np.testing.assert_allclose(result.w, exact, rtol=1e-5)
    assert result.nullspace == 1


def test_notes_name_the_matrix_of_which_they_are(stiffness):
    M = sp.identity(N, format="csr")
    told = [note.split(":")[0] for note in eigsh(stiffness, 3, M).notes
            if "widened" in note]
    assert told == ["A", "M"]


def test_eigenvalues_0_are_told_with_what_leaves_them_out():
    A = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(N, N)).tolil()
    A[0, 0] = A[N - 1, N - 1] = 1
    with pytest.warns(libspsolve.Note, match="1 of the eigenvalues is 0.*"
                      "nullspace=components.*nullspace_basis") as seen:
        eigsh(A.tocsr(), 3, precond="chebyshev")
    assert any(w.category is libspsolve.ConvergenceWarning and
               "1 of 3 pairs" in str(w.message) for w in seen)


def test_rigid_body_modes_of_a_structure(rng):
    """Bars between all nodes: any rigid motion leaves their lengths."""
    xyz = rng.random((12, 3))
    K = np.zeros((36, 36))
    for i in range(12):
        for j in range(i):
            e = np.zeros(36)
            d = (xyz[i] - xyz[j]) / np.linalg.norm(xyz[i] - xyz[j])
            e[3 * i:3 * i + 3], e[3 * j:3 * j + 3] = d, -d
            K += np.outer(e, e)
    R = libspsolve.rigid_body(xyz)
    assert R.shape == (36, 6) and np.abs(K @ R).max() < 1e-13
    result = eigsh(sp.csr_matrix(K), 4, nullspace_basis=R, coords=xyz)
    assert result.nullspace == 6 and result.all_converged
    np.testing.assert_allclose(result.w, np.linalg.eigvalsh(K)[6:10],
                               rtol=1e-8)
    with pytest.warns(libspsolve.Note, match="collinear"):
        assert libspsolve.rigid_body([[0, 0, 0], [1, 1, 1]]).shape == (6, 5)
    for wrong, what in ((np.zeros((3, 4)), "2 or 3 columns"),
                        ([[0, np.nan]], "not finite")):
        with pytest.raises(ValueError, match=what):
            libspsolve.rigid_body(wrong)
    with pytest.raises(TypeError, match="a row for each node"):
        libspsolve.rigid_body(np.zeros(3))
    with pytest.raises(TypeError, match="libspsolve.rigid_body"):
        eigsh(sp.csr_matrix(K), 4, rigid_body=xyz)
    with pytest.raises(TypeError, match="csgraph.laplacian"):
        eigsh(sp.csr_matrix(K), 4, laplacian=True)


def test_a_limit_of_time_that_ends_the_set_up_leaves_pairs():
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(60, 60))
    one = sp.identity(60)
    A = sp.csr_matrix(sp.kron(line, one) + sp.kron(one, line))
    with pytest.warns(libspsolve.SpsolveWarning):
        result = eigsh(A, 4, precond="ilut", max_seconds=1e-7)
    assert result.precond == "jacobi"
    assert result.stop == libspsolve.Stop.MAX_TIME
    assert np.isfinite(result.V).all() and np.isfinite(result.w).all()


def test_missed_pairs_are_looked_for_on_request(stiffness):
    assert eigsh(stiffness, 3, verify_count=True).missed == 0
    assert eigsh(stiffness, 3, verify_count=False).missed == -1


def test_what_has_not_converged_warns(stiffness):
    with pytest.warns(libspsolve.ConvergenceWarning, match="3 of 3 pairs"):
        result = eigsh(stiffness, 3, maxiter=2, tol=1e-12, solver="lobpcg")
    assert not result.converged.any() and "pairs converged" in repr(result)
    with pytest.raises(libspsolve.NotConverged):
        result.raise_if_not_converged()


def test_refusals_say_what_to_do(stiffness, mass):
    for which in ("LM", "BE", "XX"):
        with pytest.raises(ValueError, match="for those nearest to a number"):
            eigsh(stiffness, 2, which=which)
    with pytest.raises(ValueError, match="omit which"):
        eigsh(stiffness, 2, which="LA", sigma=1.0)
    with pytest.raises(ValueError, match="needs sigma"):
        eigsh(stiffness, 2, which="nearest")
    with pytest.raises(TypeError, match="A is complex"):
        eigsh(stiffness * 1j, 2)
    with pytest.raises(TypeError, match="M is complex"):
        eigsh(stiffness, 2, mass * 1j)
    with pytest.raises(ValueError, match="M has the shape"):
        eigsh(stiffness, 2, sp.identity(3))
    with pytest.raises(TypeError, match="M is a str"):
        eigsh(stiffness, 2, "mass")
    with pytest.raises(libspsolve.Error):
        eigsh(stiffness, 0)
    with pytest.raises(libspsolve.UnfitError, match="symmetric"):
        eigsh(sp.csr_matrix(stiffness + sp.diags([0.5], [1], shape=(N, N))), 2)


def exact(n, k):
    return 2 - 2 * np.cos(np.arange(1, k + 1) * np.pi / (n + 1))


@pytest.fixture
def line():
    return sp.csr_matrix(sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1],
                                  shape=(60, 60)))


def test_lobpcg_takes_and_gives_what_that_of_scipy_does(line, rng):
    from scipy.sparse.linalg import lobpcg
    X = rng.standard_normal((60, 4))
    for largest in (True, False):
        w, V = libspsolve.lobpcg(line, X.copy(), tol=1e-9, maxiter=300,
                                 largest=largest)
        other, _ = lobpcg(line, X.copy(), tol=1e-9, maxiter=300,
                          largest=largest)
        np.testing.assert_allclose(w, other, rtol=1e-8)
        assert np.linalg.norm(line @ V - V * w) < 1e-8


def test_lobpcg_names_a_guess_of_another_length(line):
    with pytest.raises(libspsolve.ShapeError, match="X has 5 rows, A has 60"):
        libspsolve.lobpcg(line, np.ones((5, 3)))


def test_lobpcg_with_a_mass_a_preconditioner_and_constraints(line, rng):
    B, X = 2 * sp.identity(60), rng.standard_normal((60, 2))
    w, V = libspsolve.lobpcg(line, X, B, M="ic0", tol=1e-9, maxiter=200,
                             largest=False)
    np.testing.assert_allclose(w, exact(60, 2) / 2, rtol=1e-8)
    np.testing.assert_allclose(V.T @ (2 * V), np.eye(2), atol=1e-8)
    more, _ = libspsolve.lobpcg(line, X, B, Y=V, tol=1e-9, maxiter=200,
                                largest=False)
    np.testing.assert_allclose(more, exact(60, 4)[2:] / 2, rtol=1e-8)


def test_lobpcg_returns_the_history_where_it_is_wanted(line, rng):
    w, V, history = libspsolve.lobpcg(
        line, rng.standard_normal((60, 3)), tol=1e-8, maxiter=200,
        largest=False, retResidualNormsHistory=True)
    assert len(history) > 3 and all(r.shape == (3,) for r in history)
    assert history[-1].max() < 1e-4 * history[0].max()
    with pytest.raises(TypeError, match="retLambdaHistory"):
        libspsolve.lobpcg(line, np.ones((60, 1)), retLambdaHistory=True)


def test_pairs_are_indexed_as_those_of_scipy(poisson):
    r = eigsh(poisson, 2)
    assert r[0] is r.w and r[1] is r.V and len(tuple(r)) == 2
