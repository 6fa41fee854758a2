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
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg


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
        try:
            x, info = cg(A, b, rtol=1e-8, atol=0, M=M, maxiter=20000,
                         callback=step)
        except TypeError:                    # before SciPy 1.12
            x, info = cg(A, b, tol=1e-8, atol=0, M=M, maxiter=20000,
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
        path, report = os.path.join(d, "p.mtx"), os.path.join(d, "r.json")
        subprocess.run([mtxgen, "poisson7", str(n), "-o", path, "-quiet"],
                       check=True)
        subprocess.run([solve, "-A", path, "-nrhs", str(columns), "-rtol",
                        "1e-8", "-precond", precond, "-solver", solver,
                        "-device", "cpu", "-quiet", "-json", report],
                       check=True)
        with open(report) as f:
            r = json.load(f)
    s = r["seconds"]
    return (s["setup"] + s["solve"], r["iterations"],
            r["max_relative_residual"])


def main():
    opt = {"-N": "64", "-columns": "16", "-solve": None, "-mtxgen": "mtxgen",
           "-precond": "none"}
    words = sys.argv[1:]
    skip = "-skip-scipy" in words
    words = [w for w in words if w != "-skip-scipy"]
    opt.update(zip(words[::2], words[1::2]))
    n, columns = int(opt["-N"]), int(opt["-columns"])
    A = poisson7(n)
    base = None
    form = "%-28s %8.2f s  %5d iterations  residual %.1e%s"
    if not skip:
        base, most, worst = scipy_solves(A, columns, opt["-precond"])
        print(form % ("scipy cg, %d in turn" % columns, base, most, worst,
                      ""), flush=True)
        print("%-28s %8.2f ms" % ("scipy A @ X", 1e3 * product(A, columns)))
    for solver in ("block_cg", "cg") if opt["-solve"] else ():
        t, iterations, worst = ours(opt["-solve"], opt["-mtxgen"], n, columns,
                                    opt["-precond"], solver)
        print(form % ("solve -solver " + solver, t, iterations, worst,
                      "  %.2f times faster" % (base / t) if base else ""))


if __name__ == "__main__":
    main()
