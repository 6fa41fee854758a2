#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares solver auto with single methods and preconditioners on the
nonsymmetric systems of a list, by processor seconds of set-up and solve.  All
runs are made in one process.

    PYTHONPATH=bindings/python SPSOLVE_LIBRARY=build/.libs/libspsolve.so.0 \\
        auto_methods.py FOLDER INDEX.tsv RESULTS.tsv [-columns 4] [-threads 1]
                        [-maxtime 4] [-most NNZ] [-again COUNT]

INDEX has a line for each matrix with its name, rows and cols, nnz_full and
symmetry.  Right-hand sides are uniform in [-1/2, 1/2), rtol is 1e-8; times
below a tenth of a second are the least of three.  Systems that are already in
RESULTS are skipped; with -again 3, auto and the three pairs that were the
fastest there are measured again, in turn, the least of nine or of a second.
Prints the systems on which auto takes more than 1.5 times as long as the best
single pair of method and preconditioner, and 5 ms longer, the worst first.
"""
import csv
import os
import sys
import time
import warnings

import libspsolve
import numpy as np
import scipy.io

from peer_runs import option, read_table

PAIRS = [("auto", {})] + [
    (f"{solver}/{precond}", dict(solver=solver, precond=precond))
    for solver, precond in (
        ("bicgstab", "ilu0"), ("gmres", "ilu0"), ("block_gmres", "ilu0"),
        ("block_gcrodr", "ilu0"), ("bicgstab", "jacobi"), ("gmres", "jacobi"),
        ("gmres", "factor"), ("gmres", "dense"))] + [
    (f"gmres/ilut {drop:g} {fill}",
     dict(solver="gmres", precond="ilut", droptol=drop, fill=fill))
    for drop, fill in ((1e-3, 10), (1e-6, 50))]
QUICK, SLACK, RATIO, TURNS = 0.1, 0.005, 1.5, 9
FAILED = float("inf")


def once(A, B, options):
    begin = time.process_time()
    try:
        with libspsolve.Solver(A, B.shape[1], rtol=1e-8,
                               threads=option("-threads", 1),
                               max_seconds=option("-maxtime", 4.0),
                               **options) as s:
            r = s.solve(B)
    except libspsolve.Error:
        return FAILED, "refused"
    seconds = time.process_time() - begin
    ended = f"{r.solver}/{r.precond} {r.iterations}"
    return (seconds if r.all_converged else FAILED), ended


def least(A, B, options):
    seconds, ended = once(A, B, options)
    for _ in range(2 if seconds < QUICK else 0):
        seconds = min(seconds, once(A, B, options)[0])
    return seconds, ended


def in_turn(line, A, B):
    """Measures auto and the fastest pairs of the line again."""
    singles = sorted(PAIRS[1:], key=lambda pair: float(line[pair[0]]))
    taken = PAIRS[:1] + singles[:option("-again", 3)]
    found, end = {}, time.monotonic() + 1
    for _ in range(TURNS):
        for name, options in taken:
            seconds, ended = once(A, B, options)
            found[name] = min(seconds, found.get(name, FAILED))
            if name == "auto":
                line["ended"] = ended
        if time.monotonic() > end:
            break
    return dict(line, **{name: f"{s:.5f}" for name, s in found.items()})


def systems():
    for line in read_table(sys.argv[2]):
        path = os.path.join(sys.argv[1], line["name"] + ".mtx.gz")
        if line["symmetry"] == "general" and line["rows"] == line["cols"] \
                and int(line["nnz_full"] or 0) <= option("-most", 400000) \
                and os.path.exists(path):
            yield line["name"], path


def read(path):
    A = scipy.io.mmread(path)
    if not hasattr(A, "tocsr") or A.dtype.kind == "c":
        return None
    return A.tocsr().astype(float)


def run(done, path, again):
    A = read(path)
    if A is None:
        return None
    B = np.random.default_rng(1).random((A.shape[0],
                                         option("-columns", 4))) - 0.5
    line = dict(done, n=str(A.shape[0]), nnz=str(A.nnz))
    if again:
        return in_turn(line, A, B)
    for name, options in PAIRS:
        seconds, ended = least(A, B, options)
        line[name] = f"{seconds:.4f}"
        if name == "auto":
            line["ended"] = ended
    return line


def report(lines):
    worst, counted, within = [], 0, 0
    for line in lines:
        single = {name: float(line[name]) for name, _ in PAIRS[1:]}
        best = min(single, key=single.get)
        if single[best] == FAILED:
            continue
        counted += 1
        auto = float(line["auto"])
        good = auto <= max(RATIO * single[best], single[best] + SLACK)
        within += auto <= RATIO * single[best]
        if not good:
            worst.append((auto / single[best], line, best, single[best]))
    print(f"{counted} systems that a single pair solves; auto within {RATIO} "
          f"times on {within}, or {SLACK * 1e3:g} ms on "
          f"{counted - len(worst)}")
    for ratio, line, best, seconds in sorted(worst, key=lambda w: -w[0]):
        print(f"{ratio:7.1f}  {line['name']} ({line['n']}, {line['nnz']}): "
              f"auto {line['auto']} by {line['ended']}; {best} {seconds:.4f}")


def main():
    warnings.simplefilter("ignore")
    path, again = sys.argv[3], option("-again", 0) > 0
    lines = read_table(path) if os.path.exists(path) else []
    known = {line["name"]: line for line in lines}
    head = ["name", "n", "nnz", "ended"] + [name for name, _ in PAIRS]
    result = []
    for name, file in systems():
        line = known.get(name, {"name": name})
        if again or name not in known:
            line = run(line, file, again and name in known)
        if line is not None:
            result.append(line)
            with open(path, "w") as f:
                out = csv.DictWriter(f, head, delimiter="\t")
                out.writeheader()
                out.writerows(result)
    report(result)


if __name__ == "__main__":
    main()
