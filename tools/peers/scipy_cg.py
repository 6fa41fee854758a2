#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares SciPy on a CPU with solve: 16 cg solves one after another, and
A @ X.

    scipy_cg.py [-N 64] [-columns 16] [-solve PATH] [-mtxgen PATH]
                [-precond none|jacobi] [-skip-scipy]

The system is the 7-point Poisson matrix on N^3 points; right-hand sides are
uniform in [-1/2, 1/2), the tolerance is 1e-8.  SciPy's times exclude assembly;
those of solve are set-up plus iterations, from its report.
"""
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from peer_runs import option, solved, tolerance


def poisson7(n):
    one = sp.diags([-1, 2, -1], [-1, 0, 1], (n, n))
    eye = sp.identity(n)
    return (sp.kron(sp.kron(one, eye), eye) + sp.kron(sp.kron(eye, one), eye)
            + sp.kron(sp.kron(eye, eye), one)).tocsr()


def scipy_solves(A, columns, precond):
    B = np.random.default_rng(1).random((A.shape[0], columns)) - 0.5
    inverse = 1.0 / A.diagonal()
    M = None
    if precond == "jacobi":
        M = LinearOperator(A.shape, matvec=lambda r: inverse * r, dtype=float)
    seconds, most, worst = 0.0, 0, 0.0
    for j in range(columns):
        b = np.ascontiguousarray(B[:, j])
        count = [0]

        def step(_):
            count[0] += 1
        start = time.perf_counter()
        x, info = cg(A, b, **tolerance(cg, 1e-8), atol=0, M=M, maxiter=20000,
                     callback=step)
        seconds += time.perf_counter() - start
        assert info == 0
        most = max(most, count[0])
        worst = max(worst, np.linalg.norm(b - A @ x) / np.linalg.norm(b))
    return seconds, most, worst


def product(A, columns):
    X = np.random.default_rng(2).random((A.shape[0], columns)) - 0.5
    A @ X
    times = []
    for _ in range(5):
        start = time.perf_counter()
        A @ X
        times.append(time.perf_counter() - start)
    return sorted(times)[2]


def ours(solve, mtxgen, n, columns, precond, solver):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "p.mtx")
        subprocess.run([mtxgen, "poisson7", str(n), "-o", path, "-quiet"],
                       check=True)
        r = solved([solve, "-A", path, "-nrhs", str(columns), "-rtol", "1e-8",
                    "-precond", precond, "-solver", solver, "-device", "cpu"])
    s = r["seconds"]
    return (s["setup"] + s["solve"], r["iterations"],
            r["max_relative_residual"])


def main():
    n, columns = option("-N", 64), option("-columns", 16)
    solve, precond = option("-solve", ""), option("-precond", "none")
    A = poisson7(n)
    base = None
    form = "%-28s %8.2f s  %5d iterations  residual %.1e%s"
    if "-skip-scipy" not in sys.argv:
        base, most, worst = scipy_solves(A, columns, precond)
        print(form % ("scipy cg, %d in turn" % columns, base, most, worst,
                      ""), flush=True)
        print("%-28s %8.2f ms" % ("scipy A @ X", 1e3 * product(A, columns)))
    for solver in ("block_cg", "cg") if solve else ():
        t, iterations, worst = ours(solve, option("-mtxgen", "mtxgen"), n,
                                    columns, precond, solver)
        print(form % ("solve -solver " + solver, t, iterations, worst,
                      "  %.2f times faster" % (base / t) if base else ""))


if __name__ == "__main__":
    main()
