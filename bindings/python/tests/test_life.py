# SPDX-License-Identifier: BSD-3-Clause
"""Handles and contexts end with their objects; threads; Ctrl-C."""
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import libspsolve
from libspsolve import Preconditioner, Solver, _result, eigsh, solve

from libspsolve._context import Context


@pytest.fixture
def contexts(monkeypatch):
    """Counts contexts created and destroyed, and what was left in them."""
    count = {"made": 0, "closed": 0, "left": 0}

    class Counted(Context):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            count["made"] += 1

        def close(self):
            while self.handles:
                self._destroy(*self.handles.pop())
            count["left"] += self.information()["live_objects"]
            count["closed"] += 1
            super().close()

    from libspsolve import _system
    monkeypatch.setattr(_system, "Context", Counted)
    return count


def test_every_handle_is_destroyed(poisson, convection, contexts, rng):
    B = rng.standard_normal((400, 3))
    solve(poisson, B)
    solve(poisson, np.asfortranarray(B), coords=B)
    solve(lambda X: convection @ X, B, M=lambda R: R, solver="gmres",
          callback=lambda p: True)
    eigsh(poisson, 2, sp.identity(400), precond="jacobi", constraints=B)
    with Preconditioner(poisson) as M:
        M @ B
    with Solver(poisson) as s:
        s.solve(B)
        s.solve(B[:, 0])
    assert contexts["made"] == contexts["closed"] == 6
    assert contexts["left"] == 0


def test_failures_leave_nothing_behind(poisson, contexts):
    with pytest.raises(ValueError):
        solve(poisson, np.ones(400), solver="nothing")
    with pytest.raises(ValueError):
        solve(poisson[:, :7], np.ones(400))
    with pytest.raises(ValueError):
        eigsh(poisson, 2, sp.identity(3))
    with pytest.raises(ZeroDivisionError):
        solve(lambda X: 1 / 0, np.ones(400))
    gc.collect()
    assert contexts["made"] == contexts["closed"] == 4
    assert contexts["left"] == 0


def test_many_solves_make_no_handles(poisson, rng):
    B = rng.standard_normal((400, 3))
    with Solver(poisson, nrhs=3) as s:
        for order in "CF":      # of the second the library keeps a copy
            s.solve(np.asarray(B, order=order))
        before = s.information
        for order in "CFCF":
            s.solve(np.asarray(B, order=order))
        after = s.information
    assert after["live_objects"] == before["live_objects"]
    assert after["host_bytes"] == before["host_bytes"]


def test_a_number_of_columns_that_fails_leaves_nothing(poisson):
    B = np.ones((400, 2))       # its address decides whether it is copied
    with Solver(poisson) as s:
        s.solve(B)
        before = s.information["live_objects"]
        for _ in range(8):
            with pytest.raises(libspsolve.Error):
                s.solve(np.ones((400, 1025)))
        assert s.solve(B).all_converged
        # Blocks of at most four places of X are kept.
        assert s.information["live_objects"] <= before + 3


def test_close_is_final_and_may_be_repeated(poisson):
    s = Solver(poisson, nrhs=1)
    s.close()
    s.close()
    s.cancel()
    with pytest.raises(RuntimeError, match="closed"):
        s.solve(np.ones(400))


def test_a_solver_that_is_dropped_is_closed_at_once(poisson, contexts):
    s = Solver(poisson, nrhs=1)
    s.solve(np.ones(400))
    del s
    assert contexts["closed"] == 1 and contexts["left"] == 0


def test_a_solver_in_a_cycle_with_its_callbacks_is_collected(poisson,
                                                             contexts):
    class Model:
        def __init__(self):
            self.solver = Solver(self.product, 1, n=400, M=self.invert,
                                 callback=self.watch)

        def product(self, X):
            return poisson @ X

        def invert(self, R):
            return R / 4

        def watch(self, progress):
            pass

    model = Model()
    assert model.solver.solve(np.ones(400)).all_converged
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    assert contexts["closed"] == 1 and contexts["left"] == 0


def test_results_outlive_the_solver(poisson):
    with Solver(poisson, nrhs=1) as s:
        r = s.solve(np.ones(400))
        kept = r.residuals.copy(), r.X.copy()
        s.solve(np.arange(400.0))
    np.testing.assert_array_equal(r.residuals, kept[0])
    np.testing.assert_array_equal(r.X, kept[1])


def test_arrays_of_A_live_as_long_as_the_solver(poisson):
    A = poisson.copy()
    values = weakref.ref(A.data)
    s = Solver(A, nrhs=1)
    del A
    gc.collect()
    assert values() is not None
    assert s.solve(np.ones(400)).all_converged
    s.close()
    del s
    gc.collect()
    assert values() is None


def test_arrays_of_a_solve_are_let_go_after_it(poisson):
    with Solver(poisson, nrhs=1) as s:
        b = np.ones(400)
        given = weakref.ref(b)
        r = s.solve(b)
        made = weakref.ref(r.X.base)
        del b, r
        assert given() is None and made() is None


# ------------------------------------------------------------------- threads


def in_threads(count, work):
    failures = []

    def guarded(i):
        try:
            work(i)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(i,))
               for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures


def test_threads_with_solvers_of_their_own(poisson, rng):
    B = rng.standard_normal((6, 400, 2))
    wanted = [solve(poisson, b).X for b in B]

    def work(i):
        for _ in range(5):
            np.testing.assert_array_equal(solve(poisson, B[i]).X, wanted[i])
    in_threads(6, work)


def test_threads_take_turns_with_one_solver(poisson, rng):
    B = rng.standard_normal((6, 400, 2))
    wanted = [solve(poisson, b).X for b in B]
    with Solver(poisson, nrhs=2) as s:
        def work(i):
            for _ in range(20):
                np.testing.assert_array_equal(s.solve(B[i]).X, wanted[i])
        in_threads(6, work)


def test_other_threads_run_during_a_solve(poisson):
    """The lock of the interpreter is free while the library works, so that
    another thread can cancel the solve."""
    n = 200000
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n))
    with Solver(line, nrhs=1, solver="cg", precond="none", rtol=1e-14,
                max_iterations=10**9, max_seconds=60) as s:
        timer = threading.Timer(0.5, s.cancel)
        timer.start()
        r = s.solve(np.ones(n))
        timer.join()
        assert r.stop == libspsolve.Stop.INTERRUPTED
        assert r.seconds["solve"] < 30
        again = threading.Timer(0.5, s.cancel)
        again.start()
        second = s.solve(np.ones(n))
        assert second.seconds["solve"] > 0.1    # the first request is withdrawn
        again.join()


def test_a_callback_cannot_use_its_solver(poisson):
    s = Solver(poisson, nrhs=1, solver="cg",
               callback=lambda p: s.solve(np.ones(400)))
    with pytest.raises(RuntimeError, match="callback"):
        s.solve(np.ones(400))
    s.close()


def test_a_solver_inside_of_a_callback_of_another(poisson, convection, rng):
    b = rng.standard_normal(400)
    with Solver(poisson, rtol=1e-12) as inner:
        r = solve(convection, b, solver="gmres",
                  M=lambda R: inner.solve(np.array(R)).X)
    assert r.all_converged and r.iterations < 40


# -------------------------------------------------------------------- Ctrl-C
#
# Programs that a shell starts in the background ignore SIGINT: Python's handler
# is set here.

ENDLESS = """
    import os, signal, sys, threading, time
    import numpy as np, scipy.sparse as sp
    import libspsolve
    signal.signal(signal.SIGINT, signal.default_int_handler)
    n = 200000
    A = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)).tocsr()
    endless = dict(solver="cg", precond="none", rtol=1e-14,
                   max_iterations=10**9, max_seconds=60)
    def press(seconds=0.5):
        t = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        t.start()
"""


def run(code):
    r = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ENDLESS) +
         textwrap.dedent(code)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True, timeout=100)
    assert r.returncode == 0, r.stderr
    return r.stdout


def test_ctrl_c_keeps_the_best_iterate():
    out = run("""
        s = libspsolve.Solver(A, nrhs=2, **endless)
        for turn in range(2):
            press()
            began = time.time()
            try:
                s.solve(np.ones((n, 2)))
            except KeyboardInterrupt as e:
                r = e.result
            assert time.time() - began < 30, "too late"
            assert r.stop == libspsolve.Stop.INTERRUPTED, r
            assert r.iterations > 10 and np.isfinite(r.X).all()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            print("interrupts again")
        small = sp.identity(5, format="csr")
        assert libspsolve.solve(small, np.ones(5)).all_converged
    """)
    assert out == "interrupts again\n"


def test_ctrl_c_that_comes_late_does_not_end_the_next_solve(poisson):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Solver(poisson, nrhs=1) as s:
            with pytest.raises(libspsolve.Interrupted) as e:
                with s._interruptible():
                    os.kill(os.getpid(), signal.SIGINT)
            assert e.value.result is None
            assert s.solve(np.ones(400)).all_converged
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_during_eigenvalues_and_python_products():
    run("""
        press(1.0)
        try:
            libspsolve.eigsh(A, 4, solver="lobpcg", precond="none",
                             rtol=1e-14, maxiter=10**9, max_seconds=60)
            raise SystemExit("not interrupted")
        except KeyboardInterrupt as e:
            assert e.result.V.shape == (n, 4)
        press()
        try:
            libspsolve.solve(lambda X: A @ X, np.ones(n), assume_a="pos",
                             **endless)
            raise SystemExit("not interrupted")
        except KeyboardInterrupt as e:
            assert e.result.stop == libspsolve.Stop.INTERRUPTED
    """)


def test_another_handler_is_called_and_may_go_on():
    out = run("""
        signal.signal(signal.SIGINT, lambda *a: print("handled", a[0]))
        press()
        r = libspsolve.solve(A, np.ones(n), **endless)
        assert r.stop == libspsolve.Stop.INTERRUPTED
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        press(0.2)
        r = libspsolve.solve(A, np.ones(n), **dict(endless, max_seconds=1))
        assert r.stop == libspsolve.Stop.MAX_TIME, r
    """)
    assert out == f"handled {int(signal.SIGINT)}\n"


def test_signals_reach_the_pipe_that_was_there_before():
    run("""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing)
        press()
        try:
            libspsolve.solve(A, np.ones(n), **endless)
            raise SystemExit("not interrupted")
        except KeyboardInterrupt:
            pass
        assert os.read(reading, 8) == bytes([signal.SIGINT])
        assert signal.set_wakeup_fd(-1) == writing
    """)


def test_a_pipe_that_a_callback_closes_is_given_up():
    run("""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing)
        small = sp.identity(5, format="csr")
        r = libspsolve.solve(small, np.ones(5), solver="cg", precond="none",
                             callback=lambda p: os.closerange(writing,
                                                              writing + 1))
        assert r.all_converged
        assert signal.set_wakeup_fd(-1) == -1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    """)


def test_a_solve_in_another_thread_is_not_interrupted():
    run("""
        found = []
        t = threading.Thread(target=lambda: found.append(libspsolve.solve(
            A, np.ones(n), **dict(endless, max_seconds=2))))
        t.start()
        press()
        try:
            time.sleep(30)
            raise SystemExit("not interrupted")
        except KeyboardInterrupt:
            pass
        t.join()
        assert found[0].stop == libspsolve.Stop.MAX_TIME
    """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_solves_after_a_fork():
    out = run("""
        small = sp.identity(5, format="csr")
        libspsolve.solve(small, np.ones(5))
        if os.fork() == 0:
            press()
            try:
                libspsolve.solve(A, np.ones(n), **endless)
            except KeyboardInterrupt as e:
                print("child", e.result.stop.name, flush=True)
            os._exit(0)
        os.wait()
    """)
    assert out == "child INTERRUPTED\n"


def test_a_request_to_end_ends_one_solve(poisson, rng):
    B = rng.standard_normal((400, 3))
    with Solver(poisson, nrhs=3) as s:
        assert s.solve(B).all_converged
        s.cancel()
        assert s.solve(B).stop == libspsolve.Stop.INTERRUPTED
        assert s.solve(B).all_converged


def test_a_solve_takes_few_calls_of_python(poisson, rng):
    """Each call of Python takes 0.2 to 1 microseconds, and these make up the
    time of a solve in addition to that of C."""
    B, out = rng.standard_normal((400, 3)), np.zeros((400, 3))
    calls = []
    with Solver(poisson, nrhs=3) as s:
        s.solve(B, out=out)
        sys.setprofile(lambda frame, event, arg: calls.append(event))
        s.solve(B, out=out)
        sys.setprofile(None)
    made = calls.count("call") + calls.count("c_call")
    assert made < 65, f"{made} calls"


def test_arrays_that_need_no_checks_are_known_as_such(poisson, rng):
    """Shape, order, type and place are asked at every call."""
    B, out = rng.standard_normal((400, 3)), np.zeros((400, 3))
    with Solver(poisson, nrhs=3, rtol=1e-10) as s:
        right = s.solve(B).X
        assert s.solve(B, out=out).X is out
        np.testing.assert_array_equal(out, right)
        for refused in (out[:, :2], out.T, out.astype(np.float32), [0.0]):
            with pytest.raises(TypeError, match="out must"):
                s.solve(B, out=refused)
        room = np.zeros(2399)
        with pytest.raises(ValueError, match="share memory"):
            s.solve(room[:1200].reshape(400, 3),
                    out=room[1199:].reshape(400, 3))
        frozen = B.copy()
        frozen.flags.writeable = False
        np.testing.assert_array_equal(s.solve(frozen).X, right)
        with pytest.raises(TypeError, match="writeable"):
            s.solve(B, out=frozen)
        with pytest.raises(libspsolve.ShapeError, match="399 rows"):
            s.solve(B[:399])
        for other in (np.asfortranarray(B), B.tolist()):
            np.testing.assert_array_equal(s.solve(other).X, right)
    with Solver(poisson, nrhs=1) as s:
        b, x = B[:, 0].copy(), np.zeros(400)
        assert s.solve(b).X.shape == (400,) and s.solve(b, out=x).X is x
        assert s.solve(b[:, None]).X.shape == (400, 1)
        with pytest.raises(TypeError, match="shape"):
            s.solve(b, out=x[:, None])


def test_results_that_are_kept_have_arrays_of_their_own(poisson, rng):
    kept, live = [], []
    with Solver(poisson, nrhs=3) as s:
        for i in range(12):
            B = rng.standard_normal((400, 3))
            kept.append((B, s.solve(B).X))
            live.append(s.information["live_objects"])
        assert max(live) <= live[0] + 6    # of four places are blocks kept
    for B, X in kept:
        assert np.abs(poisson @ X - B).max() < 1e-6


def test_no_array_is_held_between_solves(poisson, rng):
    with Solver(poisson, nrhs=3) as s:
        for order in "CF":
            B = np.array(rng.standard_normal((400, 3)), order=order)
            r = s.solve(B)
            held = weakref.ref(B), weakref.ref(r.X)
            del B, r
            assert [h() for h in held] == [None, None]


def test_a_result_outlives_its_solver_whenever_it_is_read(poisson, rng):
    B = rng.standard_normal((400, 3))
    with Solver(poisson, nrhs=3, rtol=1e-10) as s:
        first, read = s.solve(B), s.solve(B)
        assert read.residuals.shape == (3,)
        s.solve(0 * B)
    for r in (first, pickle.loads(pickle.dumps(copy_of(first)))):
        np.testing.assert_array_equal(r.residuals, read.residuals)
        assert (r.solver, r.stops) == (read.solver, read.stops)
        assert r.seconds.keys() == read.seconds.keys()
    with pytest.raises(AttributeError, match="no such"):
        first.such


def test_threads_may_read_a_result_first_at_once(poisson, rng, monkeypatch):
    facts, seen = _result._facts, []
    with Solver(poisson) as s:
        r = s.solve(rng.standard_normal(400))

    def beside_another(copy):
        monkeypatch.setattr(_result, "_facts", facts)
        other = threading.Thread(target=lambda: seen.append(r.residuals))
        other.start()
        other.join()
        return facts(copy)

    monkeypatch.setattr(_result, "_facts", beside_another)
    assert r.residuals.shape == (1,) and seen[0] is r.residuals


def copy_of(result):
    """Returns a copy of a result none of whose attributes has been read."""
    assert "residuals" not in result.__dict__
    return copy.copy(result)
