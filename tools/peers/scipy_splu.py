#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares solver auto with SciPy's splu and one step of refinement on the
systems of a list, in alternating runs of one process.

    PYTHONPATH=bindings/python SPSOLVE_LIBRARY=build/.libs/libspsolve.so.0 \\
        scipy_splu.py FOLDER LIST.tsv RESULTS.tsv [-columns 4,16]
                      [-seconds 60] [-pairs 5] [-only NAME,...] [-factors auto]
                      [-methods SOLVER/PRECOND,...]

Times are processor time of this process, one thread, set-up and solve, the
least of -pairs pairs of runs (fewer where a pair takes long).  Systems on which
the direct solver timed out according to LIST are left out.  Residuals are
||b - A x|| / ||b|| in extended precision, of the worst column.  With -methods
auto is compared with the best of those methods instead of splu.
"""
import sys
import time
import warnings

import libspsolve
import numpy as np
import scipy.io
from scipy.sparse.linalg import splu

from peer_runs import Results, option, read_table

HEAD = ("name columns n nnz peer_s peer_residual ours_s residual reason method "
        "iterations").split()


def residual(A, X, B):
    """Returns the residual of the worst column, in extended precision."""
    wide = np.clongdouble if np.iscomplexobj(A) else np.longdouble
    R = B.astype(wide)
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    val = A.data.astype(wide)
    for j in range(B.shape[1]):
        y = np.zeros(A.shape[0], wide)
        np.add.at(y, row, val * X[A.indices, j])
        R[:, j] -= y
    bad = np.sqrt((abs(R) ** 2).sum(0)) / np.linalg.norm(B, axis=0)
    return float(np.nan_to_num(bad, nan=np.inf).max())


def direct(C, A, B):
    try:
        factors = splu(C)
        X = factors.solve(B)
        return X + factors.solve(B - A @ X)
    except (RuntimeError, MemoryError):
        return np.full_like(B, np.nan)


def ours(A, B, solver="auto", precond="auto"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return libspsolve.solve(
            A, B, solver=solver, M=precond, rtol=1e-8, threads=1,
            device="cpu", factors=option("-factors", "auto"),
            max_seconds=option("-seconds", 60.0))


def timed(function, *a):
    start = time.process_time()
    r = function(*a)
    return r, time.process_time() - start


def peers(C, A, B):
    """Returns result and seconds of the program compared with auto."""
    names = option("-methods", "")
    if not names:
        X, s = timed(direct, C, A, B)
        return lambda: residual(A, X, B), s
    best, res = np.inf, np.inf
    for name in names.split(","):
        try:
            r, s = timed(ours, A, B, *name.split("/"))
        except (libspsolve.Error, ValueError):
            continue
        if r.converged.all() and s < best:
            best, res = s, r.residuals.max()
    return lambda: res, best


def compare(name, A, k):
    rng = np.random.default_rng(1)
    B = rng.random((A.shape[0], k)) - 0.5
    if np.iscomplexobj(A):
        B = B + 1j * (rng.random(B.shape) - 0.5)
    C = A.tocsc()
    here = there = np.inf
    spent = time.monotonic()
    for _ in range(option("-pairs", 5)):
        r, s = timed(ours, A, B)
        here = min(here, s)
        other, s = peers(C, A, B)
        there = min(there, s)
        if time.monotonic() - spent > 3:
            break
    return [name, k, A.shape[0], A.nnz, f"{there:.5f}", f"{other():.1e}",
            f"{here:.5f}", f"{residual(A, r.X, B):.1e}", r.reason,
            f"{r.solver}/{r.precond}", r.iterations]


def summary(lines):
    for k in option("-columns", "4,16").split(","):
        rows = [r for r in lines
                if r["columns"] == k and float(r["peer_residual"]) <= 1e-8]
        good = [r for r in rows if float(r["residual"]) <= 1.0001e-8]
        a = np.array([(float(r["ours_s"]), float(r["peer_s"])) for r in good])
        if not len(a):
            continue
        ratio = a[:, 0] / a[:, 1]
        close = (ratio <= 1.5) | (a[:, 0] <= a[:, 1] + 0.05)
        print(f"{k} columns: peer solves {len(rows)}, ours {len(good)} of "
              f"them; geometric mean of ratios "
              f"{np.exp(np.log(ratio).mean()):.2f}, within 1.5 times or 50 ms "
              f"{100 * close.mean():.1f} %, seconds {a[:, 0].sum():.2f} "
              f"against {a[:, 1].sum():.2f}")
        for i in np.argsort(-ratio)[:10]:
            print(f"   {ratio[i]:6.2f} {good[i]['name']} n {good[i]['n']} "
                  f"nnz {good[i]['nnz']} {a[i, 0]:.4f} {a[i, 1]:.4f} "
                  f"{good[i]['method']} {good[i]['iterations']}")
        for r in rows:
            if r not in good:
                print("   not met:", r["name"], r["residual"], r["reason"])


def main():
    folder, names, path = sys.argv[1:4]
    only = option("-only", "")
    systems = [r["name"] for r in read_table(names)
               if r["residual"] != "timeout"]
    results = Results(path, HEAD)
    for name in systems:
        if only and name not in only.split(","):
            continue
        A = scipy.io.mmread(f"{folder}/{name}.mtx.gz").tocsr()
        A = A.astype(complex if np.iscomplexobj(A) else float)
        A.sum_duplicates()
        for k in option("-columns", "4,16").split(","):
            if not results.has(name=name, columns=k):
                results.add(dict(zip(HEAD, compare(name, A, int(k)))))
    summary(results.lines)


if __name__ == "__main__":
    main()
