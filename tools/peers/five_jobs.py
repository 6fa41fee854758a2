#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does the same five jobs in SciPy, petsc4py, CuPy and this library, and counts
lines of code, seconds and residuals.

    five_jobs.py make FOLDER [SCALE]     the systems, with NumPy only
    five_jobs.py PEER FOLDER [JOB...]    scipy, petsc4py, cupy, libspsolve or
                                         libspsolve-gpu; all jobs, or these
    five_jobs.py table [wall] LOG...     Markdown of what they printed: lines,
                                         processor seconds (wall: elapsed
                                         ones), residual

A job is a function of the csr arrays A = (data, indices, indptr) and B; its
lines are counted without the first.  All programs must reach the same accuracy:
16 columns to 1e-8, eight pairs to 1e-6.  Jobs that a program does not support
are left out; if its package cannot be imported, one line says so.  Elapsed and
processor seconds are those of the second run; residuals are the largest ones,
computed here:
||b - A x|| / ||b||, ||A x - w x|| / |w|, ||A'r|| / (||A||_F ||r||).
"""
import inspect
import os
import sys
import time

import numpy as np

JOBS = ("poisson", "modes", "partition", "circuit", "least_squares")
MISSING = "-"


# ----------------------------------------------------------------- systems

def csr(rows, columns, values, n):
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    first = np.r_[True, (np.diff(rows) != 0) | (np.diff(columns) != 0)]
    values = np.add.reduceat(values, np.flatnonzero(first))
    rows, columns = rows[first], columns[first]
    return (values, columns.astype(np.int32),
            np.searchsorted(rows, np.arange(n + 1)).astype(np.int32))


def symmetric(i, j, w, extra):
    """Makes the matrix of couplings w between i and j, with row sums
    `extra`."""
    n = len(extra)
    diagonal = np.bincount(i, w, n) + np.bincount(j, w, n) + extra
    return csr(np.r_[i, j, :n], np.r_[j, i, :n], np.r_[-w, -w, diagonal], n)


def box(m):
    i = np.arange(m**3).reshape(m, m, m)
    pairs = [(np.take(i, range(m - 1), a).ravel(),
              np.take(i, range(1, m), a).ravel()) for a in range(3)]
    i, j = (np.concatenate(part) for part in zip(*pairs))
    degree = np.bincount(i, minlength=m**3) + np.bincount(j, minlength=m**3)
    return symmetric(i, j, np.ones(i.size), 6.0 - degree)


def make(folder, size=1.0):
    rng = np.random.default_rng(1)
    systems = {"poisson": box(int(40 * size)), "modes": box(int(24 * size))}
    m = int(120 * size)
    i = np.arange(m * m).reshape(m, m)
    i, j = (np.r_[i[1:].ravel(), i[:, 1:].ravel()],
            np.r_[i[:-1].ravel(), i[:, :-1].ravel()])
    keep = rng.random(i.size) < 0.9
    keep[:m * (m - 1)] = True
    systems["partition"] = symmetric(i[keep], j[keep], np.ones(keep.sum()),
                                     np.full(m * m, 1e-6))
    n = int(20000 * size)
    i, j = rng.integers(0, 16, (2, 3 * n)) - 8 + rng.integers(0, n, 3 * n)
    keep = (i != j) & (np.minimum(i, j) >= 0) & (np.maximum(i, j) < n)
    i, j = np.r_[i[keep], :n - 1], np.r_[j[keep], 1:n]
    g = 10.0 ** rng.uniform(-3, 3, i.size)
    gains = rng.integers(0, n - 30, n // 10) + np.array([[0], [30]])
    d, c, p = symmetric(i, j, g, 1e-3 * np.ones(n))
    systems["circuit"] = csr(
        np.r_[np.repeat(np.arange(n), np.diff(p)), gains[0]],
        np.r_[c, gains[1]], np.r_[d, rng.uniform(0, 1e-3, n // 10)], n)
    rows, columns = int(100000 * size), int(4000 * size)
    systems["least_squares"] = csr(
        np.repeat(np.arange(rows), 8),
        rng.integers(0, columns, 8 * rows), rng.standard_normal(8 * rows), rows)
    for name, A in systems.items():
        B = rng.random((len(A[2]) - 1, 16)) - 0.5
        np.savez(os.path.join(folder, name), data=A[0], indices=A[1],
                 indptr=A[2], B=B)


# ------------------------------------------------------------ verification

def times(A, X):
    """Returns A X; no row of A may be empty."""
    return np.add.reduceat(A[0][:, None] * X[A[1]], A[2][:-1])


def times_transposed(A, R):
    rows = np.repeat(np.arange(len(A[2]) - 1), np.diff(A[2]))
    n = A[1].max() + 1
    return np.stack([np.bincount(A[1], A[0] * r[rows], n) for r in R.T], 1)


def residual(job, A, B, answer):
    if job in ("modes", "partition"):
        w, V = answer
        norms = np.linalg.norm(times(A, V) - V * w, axis=0)
        return (norms / np.linalg.norm(V, axis=0) / abs(w)).max()
    R = B - times(A, answer)
    norm = np.linalg.norm(R, axis=0)
    if job != "least_squares":
        return (norm / np.linalg.norm(B, axis=0)).max()
    normal = np.linalg.norm(times_transposed(A, R), axis=0)
    return (normal / (np.linalg.norm(A[0]) * norm)).max()


# -------------------------------------------------------------------- jobs

def of_scipy():
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import cg, eigsh, lsqr, splu
    # SciPy before 1.12 calls it tol.
    new = "rtol" in inspect.signature(cg).parameters
    stop = {"rtol" if new else "tol": 1e-8}

    def poisson(A, B):
        A = csr_matrix(A)
        return np.stack([cg(A, b, **stop, atol=0)[0] for b in B.T], 1)

    def modes(A, B):
        return eigsh(csr_matrix(A), 8, sigma=0, tol=1e-8)

    def partition(A, B):
        return eigsh(csr_matrix(A), 2, sigma=0, tol=1e-8)

    def circuit(A, B):
        return splu(csr_matrix(A).tocsc()).solve(B)

    def least_squares(A, B):
        A = csr_matrix(A)
        return np.stack([lsqr(A, b, atol=1e-8, btol=1e-8)[0] for b in B.T], 1)
    return locals()


def of_petsc4py():
    import petsc4py
    petsc4py.init([])
    from petsc4py import PETSc

    def matrix(A, n):
        return PETSc.Mat().createAIJ((len(A[2]) - 1, n), csr=A[::-1])

    def by_columns(solver, A, B, n):
        X = np.empty((n, B.shape[1]))
        for j in range(B.shape[1]):
            b = PETSc.Vec().createWithArray(B[:, j].copy())
            x = PETSc.Vec().createSeq(n)
            solver.solve(b, x)
            X[:, j] = x.getArray()
        return X

    def poisson(A, B):
        solver = PETSc.KSP().create()
        solver.setOperators(matrix(A, len(B)))
        solver.setType("cg")
        solver.getPC().setType("gamg")
        solver.setTolerances(rtol=1e-8)
        solver.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
        return by_columns(solver, A, B, len(B))

    def circuit(A, B):
        solver = PETSc.KSP().create()
        solver.setOperators(matrix(A, len(B)))
        solver.setType("preonly")
        solver.getPC().setType("lu")
        return by_columns(solver, A, B, len(B))

    def least_squares(A, B):
        solver = PETSc.KSP().create()
        n = A[1].max() + 1
        solver.setOperators(matrix(A, n))
        solver.setType("lsqr")
        solver.getPC().setType("none")
        solver.setTolerances(rtol=1e-8, max_it=10000)
        return by_columns(solver, A, B, n)
    return locals()


def of_cupy():
    import cupy
    from cupyx.scipy.sparse import csr_matrix
    from cupyx.scipy.sparse.linalg import cg, eigsh, lsmr, splu
    new = "rtol" in inspect.signature(cg).parameters
    stop = {"rtol" if new else "tol": 1e-8}

    def matrix(A):
        return csr_matrix(tuple(map(cupy.asarray, A)))

    def poisson(A, B):
        A, B = matrix(A), cupy.asarray(B)
        X = [cg(A, b, **stop, atol=0)[0] for b in B.T]
        return cupy.stack(X, 1).get()

    def modes(A, B):
        w, V = eigsh(matrix(A), 8, which="SA", tol=1e-8, maxiter=100000)
        return w.get(), V.get()

    def circuit(A, B):
        return splu(matrix(A).tocsc()).solve(cupy.asarray(B)).get()

    def least_squares(A, B):
        A, B = matrix(A), cupy.asarray(B)
        X = [lsmr(A, b, atol=1e-8, btol=1e-8)[0] for b in B.T]
        return cupy.stack(X, 1).get()
    return locals()


def of_libspsolve(device="cpu"):
    from libspsolve import eigsh, lsmr, solve

    def poisson(A, B):
        return solve(A, B, assume_a="pos", device=device).X

    def modes(A, B):
        w, V = eigsh(A, 8, device=device)
        return w, V

    def partition(A, B):
        w, V = eigsh(A, 2, device=device)
        return w, V

    def circuit(A, B):
        return solve(A, B, device=device).X

    def least_squares(A, B):
        A = rectangular(A)
        return lsmr(A, B, rtol=1e-8, device=device).X
    return locals()


class rectangular:
    """A matrix with a number of columns, which three arrays do not have."""

    def __init__(self, A):
        self.data, self.indices, self.indptr = A
        self.shape = len(A[2]) - 1, int(A[1].max()) + 1
        self.dtype, self.nnz = A[0].dtype, A[0].size

    def tocsr(self):
        return self


PEERS = {"scipy": of_scipy, "petsc4py": of_petsc4py, "cupy": of_cupy,
         "libspsolve": of_libspsolve,
         "libspsolve-gpu": lambda: of_libspsolve("cuda")}


def lines(function):
    text = inspect.getsource(function).splitlines()[1:]
    return sum(1 for line in text if line.strip())


def run(peer, folder, wanted):
    try:
        jobs = PEERS[peer]()
    except ImportError as e:
        print(f"skip {peer}: {e}")
        return
    for job in wanted:
        if job not in jobs:
            continue
        with np.load(os.path.join(folder, job + ".npz")) as f:
            A, B = (f["data"], f["indices"], f["indptr"]), f["B"]
        for _ in range(2):
            wall, cpu = time.perf_counter(), time.process_time()
            answer = jobs[job](A, B)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{peer}\t{job}\t{lines(jobs[job])}\t{wall:.3f}\t{cpu:.3f}\t"
              f"{residual(job, A, B, answer):.1e}", flush=True)


def table(logs):
    seconds = 1 if logs[0] == "wall" else 2
    found, peers = {}, []
    for log in logs[seconds == 1:]:
        for line in open(log):
            part = line.rstrip("\n").split("\t")
            if len(part) == 6:
                found[part[0], part[1]] = part[2:]
                peers += [part[0]] if part[0] not in peers else []
    print("| Job | " + " | ".join(peers) + " |")
    print("|---|" + "---|" * len(peers))
    for job in JOBS:
        cells = ["%s, %s s, %s" % (f[0], f[seconds], f[3]) if f else MISSING
                 for f in (found.get((peer, job)) for peer in peers)]
        print(f"| {job.replace('_', ' ')} | " + " | ".join(cells) + " |")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    what, where = sys.argv[1:3]
    if what == "make":
        make(where, *map(float, sys.argv[3:]))
    elif what == "table":
        table(sys.argv[2:])
    elif what in PEERS:
        run(what, where, sys.argv[3:] or JOBS)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
