#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares SciPy's lsqr, column after column, with lsqr and lsmr of this
library.

    PYTHONPATH=bindings/python SPSOLVE_LIBRARY=build/.libs/libspsolve.so.0 \\
        scipy_least.py A.mtx|A.npz [-columns 16] [-rtol 1e-8] [-threads 1]
                       [-precond none] [-sample 16]

Right-hand sides are uniform in [-1/2, 1/2).  SciPy is made to do as many
iterations for each column as this library does for all columns at once, so that
both do the same work; its own rules stop earlier, since it estimates ||A|| by
the Frobenius norm; how many it takes by them is printed for one column.  Elapsed time and processor time of all threads are printed.
With -sample N SciPy solves only N columns, and its time is scaled to all.
"""
import sys
import time

import libspsolve
import numpy as np
import scipy.io
import scipy.sparse
from scipy.sparse.linalg import lsqr

from peer_runs import option


def timed(function):
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def ours(solve, A, B):
    r, wall, cpu = timed(lambda: solve(
        A, B, rtol=option("-rtol", 1e-8),
        threads=option("-threads", 1), M=option("-precond", "none"),
        max_iterations=100000))
    print(f"{r.solver}, {B.shape[1]} columns: {r.reason}, {r.iterations} "
          f"iterations, residual {r.residuals.max():.3e}, normal "
          f"{r.normal_residuals.max():.2e}; {wall:.2f} s, processor "
          f"{cpu:.2f} s")
    return r, wall, cpu


def main():
    A = (scipy.sparse.load_npz(sys.argv[1]) if sys.argv[1].endswith(".npz")
         else scipy.io.mmread(sys.argv[1]).tocsr())
    columns = option("-columns", 16)
    B = np.random.default_rng(1).random((A.shape[0], columns)) - 0.5
    print(f"{sys.argv[1]}: {A.shape[0]} x {A.shape[1]}, {A.nnz} entries")
    ours(libspsolve.lsmr, A, B)     # the first one warms up
    r, wall, cpu = ours(libspsolve.lsqr, A, B)
    one = ours(libspsolve.lsqr, A, B[:, :1])[0]
    rtol = option("-rtol", 1e-8)
    own = lsqr(A, np.ascontiguousarray(B[:, 0]), atol=rtol, btol=rtol,
               conlim=0, iter_lim=100000)
    print(f"SciPy by its own rules with that tolerance: {own[2]} iterations")
    total_wall = total_cpu = 0.0
    sample = option("-sample", columns)
    for j in range(sample):
        b = np.ascontiguousarray(B[:, j])
        steps = one.iterations if j == 0 else r.iterations
        s, w, c = timed(lambda: lsqr(A, b, atol=0, btol=0, conlim=0,
                                     iter_lim=steps))
        total_wall += w * columns / sample
        total_cpu += c * columns / sample
        if j == 0:
            apart = np.linalg.norm(s[0] - one.X[:, 0]) / np.linalg.norm(s[0])
            print(f"SciPy, column 1 after {s[2]} iterations: {apart:.1e} from "
                  f"ours; normal {s[7] / (r.norm_A * s[3]):.2e}")
    print(f"SciPy, {columns} columns: {total_wall:.2f} s, processor "
          f"{total_cpu:.2f} s: {total_wall / wall:.1f} and "
          f"{total_cpu / cpu:.1f} times ours")


if __name__ == "__main__":
    main()
