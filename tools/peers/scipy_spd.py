#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures what SciPy's cg with a Jacobi preconditioner reaches on SPD
matrices.

    scipy_spd.py FOLDER TABLE.tsv [-columns 16] [-rtol 1e-8] [-maxit 20000]
                 [-seconds 60] [NAME ...]

FOLDER contains INDEX.tsv (columns name ... definiteness) and NAME.mtx.gz.  Each
matrix whose definiteness begins with SPD is solved for the same columns,
uniform in [-1/2, 1/2), one after another, one line of TABLE for each:

    name n nnz columns_tried columns_converged iterations_max
    worst_true_residual seconds there

`there` is "yes" when every column converged by SciPy's own test within the
limits, "time" when the seconds ran out first, "no" otherwise.  A matrix whose
line is already in TABLE is skipped, so that an interrupted run can be
continued.
"""
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np                                           # noqa: E402
import scipy.io                                              # noqa: E402
from scipy.sparse.linalg import LinearOperator, cg           # noqa: E402

from peer_runs import (Results, options, read_table,         # noqa: E402
                       tolerance)

HEAD = ("name n nnz columns_tried columns_converged iterations_max "
        "worst_true_residual seconds there").split()


class OutOfTime(Exception):
    """Raised in cg's callback; the partial result is not needed."""


def solve_columns(A, opt):
    """Solves all columns; returns tried, converged, iterations, worst and
    there."""
    n = A.shape[0]
    B = np.random.default_rng(1).random((n, opt["columns"])) - 0.5
    inverse = 1.0 / A.diagonal()
    M = LinearOperator(A.shape, matvec=lambda r: inverse * r, dtype=float)
    deadline = time.monotonic() + opt["seconds"]
    tried = converged = most = 0
    worst, there = 0.0, "yes"
    for j in range(opt["columns"]):
        count = [0]

        def step(_):
            count[0] += 1
            if count[0] % 64 == 0 and time.monotonic() > deadline:
                raise OutOfTime
        tried += 1
        try:
            x, info = cg(A, B[:, j], **tolerance(cg, opt["rtol"]), atol=0.0,
                         M=M, maxiter=opt["maxit"], callback=step)
        except OutOfTime:
            there = "time"
            break
        most = max(most, count[0])
        r = np.linalg.norm(B[:, j] - A @ x) / np.linalg.norm(B[:, j])
        worst = max(worst, r) if np.isfinite(r) else float("inf")
        if info == 0:
            converged += 1
        else:
            there = "no"
    return tried, converged, most, worst, there


def main():
    opt, (folder, path, *only) = options(
        {"columns": 16, "rtol": 1e-8, "maxit": 20000, "seconds": 60.0},
        __doc__, 2)
    results = Results(path, HEAD)
    rows = [r for r in read_table(os.path.join(folder, "INDEX.tsv"))
            if r["definiteness"].startswith("SPD")]
    rows.sort(key=lambda r: int(r["nnz_full"]))
    np.seterr(all="ignore")
    for r in rows:
        name = r["name"]
        if results.has(name=name) or (only and name not in only):
            continue
        A = scipy.io.mmread(os.path.join(folder, name + ".mtx.gz")).tocsr()
        A = A.astype(float)
        start = time.monotonic()
        tried, good, most, worst, there = solve_columns(A, opt)
        line = (name, A.shape[0], A.nnz, tried, good, most, "%.2e" % worst,
                "%.2f" % (time.monotonic() - start), there)
        results.add(dict(zip(HEAD, line)))


if __name__ == "__main__":
    main()
