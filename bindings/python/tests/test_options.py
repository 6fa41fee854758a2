# SPDX-License-Identifier: BSD-3-Clause
"""Options, arguments that are refused, exceptions, notes and the library that
is loaded."""
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import libspsolve
from libspsolve import Preconditioner, Solver, eigsh, options, solve
from libspsolve import _library


@pytest.fixture
def b():
    return np.ones(400)


@pytest.mark.parametrize("name", sorted(options()))
def test_every_option_is_taken_by_keyword(poisson, name):
    o = options()[name]
    value = {"real": float, "integer": int, "boolean": lambda t: t == "true",
             }.get(o.type, str)(o.default)
    assert o.help and o.group
    if o.group == "Eigenvalues":
        with pytest.raises(TypeError, match=f"^{name} has no effect"):
            Solver(poisson, **{name: value})
        return
    with Solver(poisson, **{name: value}) as s:
        assert s.shape == (400, 400)
    for alias in o.aliases:
        Solver(poisson, **{alias: value}).close()


@pytest.mark.parametrize("value", [1e-6, np.float64(1e-6), np.float32(1e-6),
                                   "1e-6"])
def test_numbers_of_any_kind(poisson, b, value):
    r = solve(poisson, b, rtol=value, solver="cg")
    assert 1e-9 < r.residuals[0] <= 1.01e-6


@pytest.mark.parametrize("value", [7, np.int32(7), "7", 7.0])
def test_whole_numbers_of_any_kind(poisson, b, value):
    with pytest.warns(libspsolve.ConvergenceWarning):
        assert solve(poisson, b, max_iterations=value,
                     solver="cg").iterations == 7


def test_paths_and_booleans(poisson, b, tmp_path):
    wisdom = pathlib.Path(tmp_path) / "a b,c#d"
    solve(poisson, b, kernel="measure", wisdom=wisdom, full_precision=np.True_)
    assert wisdom.stat().st_size > 0


def test_unknown_options_are_type_errors_with_a_suggestion(poisson, b):
    with pytest.raises(TypeError, match="did you mean solver"):
        solve(poisson, b, sover="cg")
    with pytest.raises(TypeError, match="libspsolve.options"):
        solve(poisson, b, zzzzzzzzzzzz=1)
    with pytest.raises(TypeError, match="a word, a number"):
        solve(poisson, b, rtol=[1])
    with pytest.raises(TypeError, match="did you mean droptol"):
        Preconditioner(poisson, "ilut", dropto=1)
    with pytest.raises(TypeError, match="did you mean verify_count"):
        eigsh(poisson, 2, verify_cont=True)


def test_words_print_as_words():
    for stop in libspsolve.Stop:
        for shown in (str(stop), f"{stop}", "%s" % stop):
            assert shown == "Stop." + stop.name
    assert str(libspsolve.Status.OK) == "Status.OK"


def test_a_number_of_columns_that_is_fixed_is_told(poisson):
    with Solver(poisson, nrhs=3) as s:
        with pytest.raises(libspsolve.ShapeError,
                           match="B has 1 column; .* for 3: without nrhs"):
            s.solve(np.ones(400))


def test_wrong_values_are_value_errors(poisson, b):
    with pytest.raises(ValueError, match="did you mean gmres") as e:
        solve(poisson, b, solver="gmrse")
    assert isinstance(e.value, libspsolve.InvalidArgument)
    assert e.value.status == libspsolve.Status.EINVAL
    with pytest.raises(ValueError, match="it must lie in 0 to 1"):
        solve(poisson, b, rtol=2.0)
    with pytest.raises(ValueError, match="whole number"):
        solve(poisson, b, restart=2.5)
    with pytest.raises(ValueError, match="both zero"):
        solve(poisson, b, rtol=0)
    with pytest.raises(ValueError, match="device='tpu'"):
        solve(poisson, b, device="tpu")
    with pytest.raises(ValueError, match="assume_a='spd'"):
        solve(poisson, b, assume_a="spd")
    with pytest.raises(ValueError, match="0 to 4096"):
        solve(poisson, b, threads=-1)
    with pytest.raises(TypeError, match="threads='many'"):
        solve(poisson, b, threads="many")


def test_a_method_that_does_not_fit_says_so(convection, b):
    with pytest.raises(libspsolve.UnfitError, match="symmetric"):
        solve(convection, b, solver="cg")


def test_shapes_that_do_not_match(poisson):
    with pytest.raises(ValueError, match="B has 3 rows, A has 400"):
        solve(poisson, np.ones(3))
    with pytest.raises(ValueError, match="3 dimensions"):
        solve(poisson, np.ones((400, 2, 2)))
    with pytest.raises(ValueError, match="must be square"):
        solve(poisson[:, :7], np.ones(400))
    with pytest.raises(ValueError, match="x0 has 2 columns"):
        solve(poisson, np.ones(400), x0=np.ones((400, 2)))
    with pytest.raises(ValueError, match="1 to 1024"):
        solve(poisson, np.ones((400, 1025)))
    for k in (0, -1, 2**32 + 1):
        with pytest.raises(ValueError):
            Solver(poisson, nrhs=k)
    with pytest.raises(TypeError, match="nrhs=1.5"):
        Solver(poisson, nrhs=1.5)
    with Solver(poisson, nrhs=2) as s:
        with pytest.raises(libspsolve.ShapeError, match="made for 2"):
            s.solve(np.ones((400, 3)))


def test_what_cannot_be_used_is_named(poisson, b):
    with pytest.raises(TypeError, match="A is dense"):
        solve(poisson.toarray(), b)
    with pytest.raises(TypeError, match="A is a str"):
        solve("A.mtx", b)
    with pytest.raises(TypeError, match="A is a function"):
        Preconditioner(lambda X: X, "jacobi")
    with pytest.raises(ValueError, match="B has 0 dimensions"):
        solve(poisson, None)
    with pytest.raises(libspsolve.Error):
        solve(poisson, np.ones((400, 0)))
    with pytest.raises(TypeError, match="B is sparse"):
        solve(poisson, sp.csr_matrix(np.ones((400, 1))))
    with pytest.raises(TypeError, match="B is complex and A is real"):
        solve(poisson, b * 1j)
    with pytest.raises(TypeError, match="object"):
        solve(poisson, np.array([None] * 400))
    if np.dtype(np.longdouble).itemsize > 8:
        with pytest.raises(TypeError, match="B has the type"):
            solve(poisson, b.astype(np.longdouble))
        with pytest.raises(TypeError, match="A has the type"):
            solve((poisson.data.astype(np.longdouble), poisson.indices,
                   poisson.indptr), b)


def test_damaged_csr_arrays_are_refused():
    good = ([1.0, 2.0], [0, 1], [0, 1, 2])
    b = np.ones(2)
    np.testing.assert_allclose(solve(good, b).X, [1, 0.5])
    for part, value, match in ((1, [0, 2], "not in 0 to 1"),
                               (1, [0, -1], "not in 0 to 1"),
                               (1, [0, 2**32], "not in 0 to 1"),
                               (2, [0, 2, 1], "do not fit"),
                               (2, [1, 1, 2], "do not fit"),
                               (2, [0, 1, 3], "do not fit"),
                               (0, [1.0], "do not fit")):
        bad = list(good)
        bad[part] = value
        with pytest.raises(ValueError, match=match):
            solve(tuple(bad), b)
    with pytest.raises(TypeError, match="integers"):
        solve((good[0], [0.0, 1.0], good[2]), b)
    for value in (2, -1):
        columns = np.array([0, value], np.int32)
        with pytest.raises(libspsolve.MatrixError, match="row 1"):
            solve((good[0], columns, good[2]), b)
    columns = np.array([0, 2**30], np.int32)    # twice of it is no such number
    with pytest.raises(ValueError, match="not in 0 to 1"):
        solve((np.ones(2) + 1j, columns, good[2]), b)


def test_notes_warn_at_the_line_of_the_caller():
    A = (np.array([2.0, 1.0, 3.0]), [1, 0, 1], [0, 2, 3])
    with pytest.warns(libspsolve.Note, match="sorted the rows") as seen:
        r = solve(A, np.ones(2))
    assert seen[0].filename == __file__
    assert any("sorted the rows" in note for note in r.notes)


def test_choices_are_notes_of_the_result_and_no_warnings(poisson, b):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        r = solve(poisson, b)
    assert any(note.startswith(("solver auto:", "auto: direct"))    # or factors
               for note in r.notes)
    with Solver(poisson, 1) as s:
        assert s.solve(b).notes and not s.solve(b).notes


def test_a_note_comes_once_a_solver(poisson, b):
    bad = b.copy()
    bad[0] = np.nan
    with Solver(poisson, 1) as s:
        with pytest.warns(libspsolve.SpsolveWarning) as seen:
            r = s.solve(bad)
    assert any("not finite" in str(w.message) for w in seen)
    assert r.stop == libspsolve.Stop.NOT_FINITE and np.isfinite(r.X).all()


def test_the_module_for_the_gpu_is_absent_with_a_reason(poisson, b):
    with Solver(poisson, device="cpu") as s:
        assert s.information["device"].startswith("cpu")
    try:
        r = solve(poisson, b, device="cuda")
    except libspsolve.DeviceError as e:
        assert "CUDA" in str(e) or "GPU" in str(e)
    else:
        assert r.all_converged


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ, **environment),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        universal_newlines=True)


def test_a_library_that_cannot_be_loaded_is_named(tmp_path):
    missing = str(tmp_path / "nothing.so")
    r = run("import libspsolve", SPSOLVE_LIBRARY=missing)
    assert r.returncode and "ImportError" in r.stderr
    assert missing in r.stderr and "pip install" in r.stderr
    other = _library.path()
    assert run("import libspsolve", SPSOLVE_LIBRARY=other).returncode == 0


def test_another_library_is_refused():
    with pytest.raises(ImportError, match="has no sps_"):
        _library.load("libm.so.6")


def test_an_older_library_is_refused(monkeypatch):
    monkeypatch.setattr(_library, "OLDEST", (99, 0))
    with pytest.raises(ImportError, match="needs 99.0 or later"):
        _library.load()


def test_versions():
    assert libspsolve.library_version() == libspsolve.__version__


def test_scipy_is_not_needed():
    code = ("import sys; sys.modules['scipy'] = None\n"
            "import libspsolve as l\n"
            "r = l.solve(([4.0, 1.0], [0, 1], [0, 1, 2]), [4.0, 2.0])\n"
            "assert list(r.X) == [1, 2], r.X")
    r = run(code)
    assert r.returncode == 0, r.stderr


def test_the_history_of_residuals_is_kept_where_it_is_wanted(poisson, rng):
    told = []
    with Solver(poisson, 3, solver="cg", M="jacobi", history=True,
                callback=lambda p: told.append(p.residuals)) as s:
        for _ in range(2):
            told.clear()
            r = s.solve(rng.standard_normal((400, 3)))
            assert len(r.history) >= r.iterations > 5
            np.testing.assert_array_equal(r.history, told)
    assert solve(poisson, np.ones(400)).history.size == 0


def test_results_are_drawn_by_matplotlib(poisson, rng):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    B = rng.standard_normal((400, 3))
    r = solve(poisson, B, history=True, solver="cg", M="jacobi")
    ax = r.plot(pyplot.figure().gca())
    assert len(ax.lines) == 4 and ax.get_yscale() == "log"
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(),
                                  r.history.max(axis=1))
    pyplot.figure()
    ax = solve(poisson, B).plot()
    assert sum(len(line.get_xdata()) for line in ax.lines) == 3
    pyplot.close("all")


def test_without_matplotlib_plot_says_what_is_missing(poisson, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        solve(poisson, np.ones(400)).plot()
