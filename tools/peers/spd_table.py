#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs solve on every SPD matrix of a folder and compares it with SciPy's list.

    spd_table.py FOLDER RESULTS.tsv -solve PATH [-device cpu] [-scipy LIST.tsv]
                 [-seconds 300] [-maxit 20000] [-solver auto] [-table OUT.md]
                 [-threads N]

Each matrix whose definiteness in FOLDER/INDEX.tsv begins with SPD:

    solve -A M -nrhs 16 -precond jacobi -rtol 1e-8 -maxit 20000 -json FILE

One line of RESULTS for each run; (matrix, device) pairs that are there already
are skipped, so that an interrupted run can be continued, and one file may hold
several devices.  -table joins RESULTS with SciPy's list (scipy_spd.py) in
Markdown.
Exit code 1 if a matrix that SciPy solves is not solved here.
"""
import os
import sys

from peer_runs import Results, options, read_table, report

HEAD = ("name device exit status solver columns iterations residual backward "
        "seconds").split()


def run(name, path, opt):
    """One line of RESULTS."""
    words = [opt["solve"], "-A", path, "-nrhs", "16", "-precond", "jacobi",
             "-rtol", "1e-8", "-maxit", str(opt["maxit"]), "-solver",
             opt["solver"], "-device", opt["device"], "-maxtime",
             str(opt["seconds"])]
    if opt["threads"]:
        words += ["-threads", str(opt["threads"])]
    code, r, said, seconds = report(words, 2 * opt["seconds"] + 60)
    r = r or {"status": said.splitlines()[-1] if said else "no report"}

    def number(key, form="%.2e"):
        v = r.get(key)
        return form % v if isinstance(v, (int, float)) else "-"

    return {"name": name, "device": opt["device"], "exit": code,
            "status": r.get("status", "-"), "solver": r.get("solver") or "-",
            "columns": number("columns_converged", "%d"),
            "iterations": number("iterations", "%d"),
            "residual": number("max_relative_residual"),
            "backward": number("max_backward_error"),
            "seconds": "%.2f" % seconds}


def spd_names(folder):
    rows = [r for r in read_table(os.path.join(folder, "INDEX.tsv"))
            if r["definiteness"].startswith("SPD")]
    rows.sort(key=lambda r: int(r["nnz_full"]))
    return [(r["name"], r["rows"], r["nnz_full"]) for r in rows]


def cell(r):
    if r is None:
        return "- | - | - | - | -"
    return "%s | %s | %s | %s | %s" % (
        r["exit"] if r["status"] == "converged"
        else "%s %s" % (r["exit"], r["status"]),
        r["iterations"], r["residual"], r["backward"], r["seconds"])


def write_table(names, results, scipy, path):
    """Writes Markdown; returns matrices that SciPy solves and some run does
    not."""
    devices = sorted({r["device"] for r in results})
    by = {(r["name"], r["device"]): r for r in results}
    peer = {r["name"]: r for r in scipy}
    missed = []
    with open(path, "w") as f:
        f.write("| matrix | n | nnz | SciPy | iter. |")
        for d in devices:
            f.write(" %s: exit | iter. | residual | backward | s |" % d)
        f.write("\n" + "|---" * (5 + 5 * len(devices)) + "|\n")
        for name, n, nnz in names:
            p = peer.get(name, {"there": "-", "iterations_max": "-"})
            cells = [by.get((name, d)) for d in devices]
            f.write("| %s | %s | %s | %s | %s | %s |\n" % (
                name, n, nnz, p["there"], p["iterations_max"],
                " | ".join(cell(c) for c in cells)))
            if p["there"] == "yes":
                missed += ["%s on %s: %s" % (name, c["device"], c["status"])
                           for c in cells if c and c["exit"] != "0"]
    return missed


def main():
    opt, (folder, path) = options(
        {"solve": "spsolve", "device": "cpu", "scipy": "", "table": "",
         "seconds": 300.0, "maxit": 20000, "solver": "auto", "threads": 0},
        __doc__, 2, 2)
    names = spd_names(folder)
    results = Results(path, HEAD)
    for name, _, _ in names:
        if not results.has(name=name, device=opt["device"]):
            results.add(run(name, os.path.join(folder, name + ".mtx.gz"), opt))
    good = sum(r["exit"] == "0" for r in results.lines if
               r["device"] == opt["device"])
    print("%s: %d of %d solved" % (opt["device"], good, len(names)))
    if opt["table"]:
        scipy = read_table(opt["scipy"]) if opt["scipy"] else []
        missed = write_table(names, results.lines, scipy, opt["table"])
        for m in missed:
            print("SciPy solves, not solved here: " + m)
        sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
