#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares multigrid on the CPU with PyAMG's smoothed aggregation and PETSc's
cg with hypre and with GAMG: set-up and solve of 16 columns to 1e-8.

    amg_peers.py -mtxgen PATH -library PATH [-runs 3] [-pyamg PYTHON]
                 [-petsc PYTHON] [-mpirun WORDS] [-before WORDS] [SYSTEM ...]

SYSTEM is a line of mtxgen ("poisson7 80", "elasticity 24").  This library runs
block_cg with amg on one thread and on two.  PyAMG runs conjugate gradients with
a smoothed aggregation hierarchy, PETSc with hypre's BoomerAMG and with its own
GAMG, all column after column, PETSc in one process and in two (-mpirun ""
omits the latter).  For elasticity this library, PyAMG and GAMG are given rigid
body modes from the nodes' coordinates, hypre the block size.

Every run is a process of its own, and the programs alternate.  The best of the
runs is printed: elapsed seconds of set-up and solve, then processor seconds
(user and system, all threads or processes), which grow less with other load on
the machine, each also as a multiple of this library's on as many threads as
there are processes; iterations of the worst column, and the largest true
relative residual.  An MPI process that waits for another one uses processor
time.  PYTHON is an interpreter with the package: pyamg and SciPy, or petsc4py.
WORDS of -before are put before the command of each run ("taskset -c 0,1").
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

from peer_runs import options

WIDTH, TOLERANCE = 16, 1e-8
HERE = os.path.dirname(os.path.abspath(__file__))
BINDINGS = os.path.join(HERE, "..", "..", "bindings", "python")


def load(folder):
    """Arrays of the system, memory-mapped."""
    import numpy as np
    names = ["indptr", "indices", "data", "B"]
    if os.path.exists(os.path.join(folder, "coords.npy")):
        names.append("coords")
    return {x: np.load(os.path.join(folder, x + ".npy")) for x in names}


def processor():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run_ours(s, threads):
    import scipy.sparse as sp
    sys.path.insert(0, BINDINGS)
    import libspsolve
    n = len(s["indptr"]) - 1
    A = sp.csr_matrix((s["data"], s["indices"], s["indptr"]), shape=(n, n))
    options = {"coords": s["coords"]} if "coords" in s else {}

    def solve():
        with libspsolve.Solver(A, nrhs=WIDTH, assume_a="pos", M="amg",
                               solver="block_cg", rtol=TOLERANCE,
                               threads=threads, **options) as solver:
            r = solver.solve(s["B"])
        return r.X, r.iterations
    return solve


def rigid_modes(x):
    import numpy as np
    modes = np.zeros((3 * len(x), 6))
    for i in range(3):
        modes[i::3, i] = 1
        j, k = (i + 1) % 3, (i + 2) % 3
        modes[j::3, 3 + i] = -x[:, k]
        modes[k::3, 3 + i] = x[:, j]
    return modes


def run_pyamg(s):
    import numpy as np
    import pyamg
    import scipy.sparse as sp
    n = len(s["indptr"]) - 1
    A = sp.csr_matrix((s["data"], s["indices"], s["indptr"]), shape=(n, n))
    modes = rigid_modes(s["coords"]) if "coords" in s else None

    def solve():
        M = A.tobsr((3, 3)) if modes is not None else A
        levels = pyamg.smoothed_aggregation_solver(M, B=modes,
                                                   symmetry="symmetric")
        X, most = np.empty_like(s["B"]), 0
        for j in range(WIDTH):
            residuals = []
            X[:, j] = levels.solve(s["B"][:, j], tol=TOLERANCE, accel="cg",
                                   maxiter=500, residuals=residuals)
            most = max(most, len(residuals) - 1)
        return X, most
    return solve


def precondition(ksp, A, kind, s, b, first, last):
    """Makes hypre's BoomerAMG or GAMG the preconditioner of ksp."""
    from petsc4py import PETSc
    ksp.getPC().setType(kind)
    if kind == "hypre":
        ksp.getPC().setHYPREType("boomeramg")
    elif b > 1:
        x = PETSc.Vec().createMPI((last - first, A.size[0]), bsize=b)
        x.setArray(s["coords"][first // b:last // b].ravel())
        A.setNearNullSpace(PETSc.NullSpace().createRigidBody(x))


def run_petsc(s, kind):
    import numpy as np
    import petsc4py
    petsc4py.init()
    from petsc4py import PETSc
    n = len(s["indptr"]) - 1
    size, rank = PETSc.COMM_WORLD.size, PETSc.COMM_WORLD.rank
    b = 3 if "coords" in s else 1
    first, last = (n // b * r // size * b for r in (rank, rank + 1))
    part = slice(s["indptr"][first], s["indptr"][last])
    rows = (s["indptr"][first:last + 1] - s["indptr"][first]).astype(np.int32)
    local = (last - first, n)

    def solve():
        A = PETSc.Mat().createAIJ((local, local), bsize=b, csr=(
            rows, s["indices"][part], s["data"][part]))
        A.setOption(PETSc.Mat.Option.SPD, True)
        ksp = PETSc.KSP().create()
        ksp.setOperators(A)
        ksp.setType("cg")
        ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
        precondition(ksp, A, kind, s, b, first, last)
        ksp.setTolerances(rtol=TOLERANCE, atol=0, max_it=2000)
        x, y = A.createVecs()
        X, most = np.empty((last - first, WIDTH)), 0
        for j in range(WIDTH):
            y.setArray(s["B"][first:last, j])
            ksp.solve(y, x)
            X[:, j] = x.getArray()
            most = max(most, ksp.getIterationNumber())
        return X, most
    return solve


def worst_residual(s, X):
    """Largest relative residual of X, column after column, without SciPy."""
    import numpy as np
    worst = 0.0
    for j in range(WIDTH):
        terms = s["data"] * X[s["indices"], j]
        r = s["B"][:, j] - np.add.reduceat(terms, s["indptr"][:-1])
        worst = max(worst, np.linalg.norm(r) / np.linalg.norm(s["B"][:, j]))
    return worst


def work(name, folder):
    """Makes one run in a process of its own; returns its line of JSON."""
    s = load(folder)
    if name.startswith("ours"):
        solve = run_ours(s, int(name[4:]))
    else:
        solve = run_pyamg(s) if name == "pyamg" else run_petsc(s, name)
    before, start = processor(), time.perf_counter()
    X, iterations = solve()
    out = {"processor": processor() - before,
           "elapsed": time.perf_counter() - start, "iterations": iterations}
    if len(X) == len(s["B"]):
        out["residual"] = worst_residual(s, X)
    sys.stdout.write(json.dumps(out) + "\n")


def store(line, mtxgen, folder):
    """Writes the system as arrays; needs an interpreter with SciPy (this
    one)."""
    import numpy as np
    import scipy.io
    import scipy.sparse as sp
    words = [mtxgen] + line.split() + ["-quiet", "-o", folder + "/A.mtx"]
    elastic = line.startswith("elasticity")
    subprocess.run(words + (["-coords", folder + "/x.mtx"] if elastic else []),
                   check=True)
    A = sp.csr_matrix(scipy.io.mmread(folder + "/A.mtx"))
    A.sort_indices()
    arrays = {"indptr": A.indptr, "indices": A.indices, "data": A.data,
              "B": np.random.default_rng(1).random((A.shape[0], WIDTH)) - 0.5}
    if elastic:
        arrays["coords"] = np.asarray(scipy.io.mmread(folder + "/x.mtx"))
    for name, a in arrays.items():
        np.save(folder + "/" + name, a)


def run(words, name, folder):
    one = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    text = subprocess.run(words + [__file__, "-work", name, folder], env=one,
                          check=True, capture_output=True, text=True).stdout
    lines = [json.loads(x) for x in text.splitlines() if x.startswith("{")]
    return {"processor": sum(x["processor"] for x in lines),
            "elapsed": max(x["elapsed"] for x in lines),
            "iterations": lines[0]["iterations"],
            "residual": lines[0].get("residual")}


def programs(opt):
    """Label, command, kind and threads or processes of each run."""
    out = [("ours", [sys.executable], "ours1", 1),
           ("ours, 2 threads", [sys.executable], "ours2", 2)]
    if opt["pyamg"]:
        out.append(("PyAMG", [opt["pyamg"]], "pyamg", 1))
    for label, kind in ("PETSc, hypre", "hypre"), ("PETSc, GAMG", "gamg"):
        if opt["petsc"]:
            out.append((label, [opt["petsc"]], kind, 1))
        if opt["petsc"] and opt["mpirun"]:
            out.append((label + ", 2 processes",
                        opt["mpirun"].split() + [opt["petsc"]], kind, 2))
    return out


def compare(line, opt):
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        store(line, opt["mtxgen"], folder)
        for _ in range(opt["runs"]):
            for label, words, name, size in programs(opt):
                r = run(opt["before"].split() + words, name, folder)
                old = best.setdefault(label, dict(r, size=size))
                for key in ("processor", "elapsed"):
                    old[key] = min(old[key], r[key])
    ours = {r["size"]: r for label, r in best.items() if "ours" in label}
    for label, r in best.items():
        worst, own = r["residual"], ours[r["size"]]
        print(f"| {line} | {label} | {r['iterations']} "
              f"| {r['elapsed']:.2f} "
              f"| {r['elapsed'] / own['elapsed']:.1f} "
              f"| {r['processor']:.2f} "
              f"| {r['processor'] / own['processor']:.1f} "
              f"| {'-' if worst is None else format(worst, '.1e')} |",
              flush=True)


def main(words):
    if words[:1] == ["-work"]:
        return work(words[1], words[2])
    opt, lines = options(
        {"mtxgen": "", "library": "", "runs": 3, "pyamg": "", "petsc": "",
         "mpirun": "mpirun -n 2 --oversubscribe", "before": ""}, __doc__)
    if not opt["mtxgen"] or not opt["library"]:
        sys.exit(__doc__)
    os.environ["SPSOLVE_LIBRARY"] = os.path.abspath(opt["library"])
    print("| system | | iterations | elapsed s | ours 1 | processor s "
          "| ours 1 | residual |\n|:--|:--|--:|--:|--:|--:|--:|--:|")
    for line in lines or ["poisson7 80", "poisson7 64", "elasticity 24"]:
        compare(line, opt)


if __name__ == "__main__":
    main(sys.argv[1:])
