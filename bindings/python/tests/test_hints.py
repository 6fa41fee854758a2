# SPDX-License-Identifier: BSD-3-Clause
"""The type hints of the package by mypy, for a client as users write it."""
import os
import subprocess
import sys

import pytest

pytest.importorskip("mypy", reason="no mypy")

HERE = os.path.dirname(os.path.abspath(__file__))
RIGHT = """
from typing import Any
import numpy as np
import libspsolve
from libspsolve import Preconditioner, Solver, eigsh, lsmr, solve

def run(A: Any, B: "np.ndarray[Any, Any]") -> float:
    r = solve(A, B, rtol=1e-10, assume_a="pos")
    with Solver(A, nrhs=3, precond="amg") as s:
        s.update(A)
        q = s.solve(B, x0=r.X)
    with Preconditioner(A, "jacobi") as M:
        M @ B
    w, V = eigsh(A, 4, M=None)
    tall = lsmr(A, B, damp=0.5)
    name: str = r.solver
    done: bool = q.all_converged
    worst: float = max(q.residuals) + max(tall.normal_residuals)
    return worst if done and name and libspsolve.library_version() else 0.0
"""
WRONG = {
    "a name is a str": "n: int = libspsolve.solve(1, 2).solver",
    "k is a number": "libspsolve.eigsh(1, k='four')",
    "nrhs is a number": "libspsolve.Solver(1, nrhs='three')",
}


def mypy(tmp_path, text):
    path = tmp_path / "client.py"
    path.write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent",
         "--cache-dir", str(tmp_path / "cache"), str(path)],
        env={**os.environ, "MYPYPATH": os.path.dirname(HERE)},
        capture_output=True, text=True)


def test_a_client_passes(tmp_path):
    p = mypy(tmp_path, RIGHT)
    assert p.returncode == 0, p.stdout + p.stderr


@pytest.mark.parametrize("what", WRONG)
def test_mistakes_are_found(tmp_path, what):
    p = mypy(tmp_path, "import libspsolve\n" + WRONG[what] + "\n")
    assert p.returncode == 1 and "client.py:2: error" in p.stdout, p.stdout
