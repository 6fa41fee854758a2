#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares lsqr and lsmr of this library with LAPACK's complete orthogonal
factorisation and with SciPy's lsqr on small least squares problems.

    PYTHONPATH=bindings/python SPSOLVE_LIBRARY=build/.libs/libspsolve.so.0 \\
        lapack_least.py A.mtx... [-columns 16] [-rtol 1e-10]

Prints for each matrix and method: reason, iterations, the largest ||r|| of a
column over LAPACK's, less 1; the largest ||A'r|| / (||A|| ||r||), the largest
||x|| over that of LAPACK's x, which has the least norm; and processor seconds.
"""
import sys
import time
import warnings

import libspsolve
import numpy as np
import scipy.io
import scipy.sparse
from scipy.linalg import lstsq
from scipy.sparse.linalg import lsqr

from peer_runs import option


def timed(function):
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


def norms(M):
    return np.linalg.norm(M, axis=0)


def line(name, text, A, B, X, best, seconds):
    R = B - A @ X
    size = scipy.sparse.linalg.norm(A)
    print(f"  {name:8s} {text:34s} {(norms(R) / best[0]).max() - 1:9.1e} "
          f"{(norms(A.T @ R) / (size * norms(R))).max():9.1e} "
          f"{(norms(X) / best[1]).max():8.4f} {seconds:9.5f} s")


def peer(A, B, rtol):
    """Returns X of SciPy's lsqr, column after column."""
    return np.column_stack([
        lsqr(A, b, atol=rtol, btol=rtol, conlim=0, iter_lim=10 * A.shape[1])[0]
        for b in B.T])


def compare(path, columns, rtol):
    A = scipy.io.mmread(path).tocsr().astype(float)
    B = np.random.default_rng(1).random((A.shape[0], columns)) - 0.5
    (X, _, rank, _), seconds = timed(
        lambda: lstsq(A.toarray(), B, lapack_driver="gelsy"))
    best = norms(B - A @ X), norms(X)
    print(f"{path}: {A.shape[0]} x {A.shape[1]}, rank {rank}")
    line("LAPACK", "gelsy", A, B, X, best, seconds)
    for solve in libspsolve.lsqr, libspsolve.lsmr:
        for precond in "none", "jacobi":
            r, seconds = timed(lambda: solve(
                A, B, rtol=rtol, threads=1, M=precond, max_iterations=100000))
            reason = r.reason.split(":")[0].removesuffix(
                " in the sense of least squares")
            line(r.solver, f"{precond}: {reason}, {r.iterations}", A, B, r.X,
                 best, seconds)
    X, seconds = timed(lambda: peer(A, B, rtol))
    line("SciPy", "lsqr", A, B, X, best, seconds)


def main():
    warnings.simplefilter("ignore")
    for path in sys.argv[1:]:
        if path.endswith((".mtx", ".gz")):
            compare(path, option("-columns", 16), option("-rtol", 1e-10))


if __name__ == "__main__":
    main()
