#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times A X by SciPy and by this library on the CPU, with one thread each, and
by this library on all threads relative to the copy bandwidth.

    scipy_spmm.py SPBENCH [SYSTEM...]

SYSTEM is laplace27 N or elasticity N (default laplace27 64), as in spbench;
SciPy's matrix has the same pattern and other values.  Every figure is the best
of RUNS (5) runs that alternate between the programs, so that other load on the
machine affects the figures little; the copy bandwidth is the best of those runs
as well."""
import csv
import os
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402

WIDTH = 16
RUNS = int(os.environ.get("RUNS", "5"))


def pattern(kind, n):
    """Returns a matrix with 27 neighbours of each node; for elasticity three
    unknowns per node, one face clamped and eliminated."""
    one = sp.diags([1.0, 1.0, 1.0], [-1, 0, 1], (n, n))
    A = sp.kron(sp.kron(one, one), one)
    if kind == "elasticity":
        A = sp.kron(A, np.ones((3, 3)))
    A = A.tocsr()
    A.data = np.random.default_rng(1).random(A.nnz)
    return A


def scipy_best(A, X):
    best = None
    for _ in range(5):
        start = time.perf_counter()
        A @ X
        t = time.perf_counter() - start
        best = t if best is None else min(best, t)
    return best


def ours(spbench, system, threads):
    """Returns {kernel: best ms} and the copy bandwidth in GB/s."""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "t.tsv")
        text = subprocess.run(
            [spbench] + system + ["-perturb", "1", "-device", "cpu", "-k",
                                  str(WIDTH), "-threads", str(threads),
                                  "-seconds", "0.5", "-tsv", path],
            check=True, capture_output=True, text=True).stdout
        with open(path) as f:
            rows = list(csv.DictReader(f, delimiter="\t"))
    copy = float(text.split("copy ")[1].split()[0])
    return {r["kernel"]: float(r["p10"]) for r in rows}, copy, rows[0]


def main():
    spbench = sys.argv[1]
    system = sys.argv[2:] or ["laplace27", "64"]
    A = pattern(system[0], int(system[1]))
    X = np.random.default_rng(2).random((A.shape[0], WIDTH))
    peer, copies, best = 1e9, {}, {}
    for _ in range(RUNS):
        peer = min(peer, 1e3 * scipy_best(A, X))
        for threads in (1, os.cpu_count()):
            times, copy, row = ours(spbench, system, threads)
            copies[threads] = max(copies.get(threads, 0), copy)
            for kernel, ms in times.items():
                key = (kernel, threads)
                best[key] = min(best.get(key, 1e9), ms)
    floor = (12.0 * int(row["nnz"]) + 4.0 * int(row["m"]) +
             16.0 * int(row["m"]) * WIDTH)
    print("%s, %s nonzeros, k = %d: SciPy %.1f ms" %
          (" ".join(system), row["nnz"], WIDTH, peer))
    print("| kernel | threads | ms | GB/s | % of copy | times SciPy |")
    print("|:--|--:|--:|--:|--:|--:|")
    for (kernel, threads), ms in sorted(best.items()):
        rate = floor / ms / 1e6
        print("| %s | %d | %.2f | %.1f | %.0f | %.1f |" %
              (kernel, threads, ms, rate, 100 * rate / copies[threads],
               peer / ms))


if __name__ == "__main__":
    main()
