#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares SciPy on a CPU with solve: gmres with spilu, 16 columns one after
another.

    scipy_gmres.py [-N 48] [-columns 16] [-fill 10] [-drop 1e-4]
                   [-precond ilu0] [-solve PATH] [-mtxgen PATH] [-skip-scipy]

The system is upwind convection-diffusion on N^3 points (mtxgen convection);
right-hand sides are uniform in [-1/2, 1/2), the tolerance is 1e-8, cycles have
50 steps.  SciPy's times are factorisation plus solves, those of solve set-up
plus iterations, from its report.
"""
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.io
from scipy.sparse.linalg import LinearOperator, gmres, spilu

from peer_runs import option, solved, tolerance


def scipy_solves(A, columns):
    B = np.random.default_rng(1).random((A.shape[0], columns)) - 0.5
    start = time.perf_counter()
    lu = spilu(A.tocsc(), drop_tol=option("-drop", 1e-4),
               fill_factor=option("-fill", 10.0))
    factor = time.perf_counter() - start
    M = LinearOperator(A.shape, matvec=lu.solve, dtype=float)
    most, worst = 0, 0.0
    start = time.perf_counter()
    for j in range(columns):
        b = np.ascontiguousarray(B[:, j])
        count = [0]

        def step(_):
            count[0] += 1
        x, info = gmres(A, b, **tolerance(gmres, 1e-8), atol=0, restart=50,
                        maxiter=200, M=M, callback=step,
                        callback_type="pr_norm")
        assert info == 0
        most = max(most, count[0])
        worst = max(worst, np.linalg.norm(b - A @ x) / np.linalg.norm(b))
    return factor, time.perf_counter() - start, most, worst


def ours(path, columns, solver, precond):
    r = solved([option("-solve", "spsolve"), "-A", path, "-nrhs", str(columns),
                "-solver", solver, "-precond", precond, "-device", "cpu"])
    s = r["seconds"]
    print(f"{solver:12} {precond:7} set-up {s['setup']:8.2f} solve "
          f"{s['solve']:8.2f} iterations {r['iterations']:4d} worst "
          f"{r['max_relative_residual']:.1e}", flush=True)


def main():
    n, columns = option("-N", "48"), option("-columns", 16)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.mtx")
        subprocess.run([option("-mtxgen", "mtxgen"), "convection", n, "-quiet",
                        "-o", path], check=True)
        for solver in ("auto", "gmres", "block_gmres", "bicgstab", "idr"):
            ours(path, columns, solver, option("-precond", "ilu0"))
        if "-skip-scipy" not in sys.argv:
            A = scipy.io.mmread(path).tocsr()
            factor, solve, most, worst = scipy_solves(A, columns)
            print(f"scipy gmres  spilu   set-up {factor:8.2f} solve "
                  f"{solve:8.2f} iterations {most:4d} worst {worst:.1e}")


if __name__ == "__main__":
    main()
