#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs solve with default options on the systems of a list and compares it
with a sparse direct solver.

    auto_table.py FOLDER LIST.tsv RESULTS.tsv -solve PATH [-seconds 60]
                  [-device cpu] [-dense auto] [-threads N] [-least NNZ]
                  [-table OUT.md]

LIST has a line for each system of FOLDER: name, n, nnz, class, residual and
seconds of the direct solver.  For each, and each (device, dense) pair,

    solve -A M -nrhs 4 -rtol 1e-8 -maxtime 60 -json FILE

adds one line to RESULTS.  Systems that are already in RESULTS are skipped, so
that an interrupted run can be continued, and so are those that FOLDER does not
contain.  -least leaves out matrices with fewer entries.  Prints a summary at
the end; -table writes Markdown.  Exit code 1 when a run ended with any code
except 0, 1 or 4, or exceeded its time limit.
"""
import os
import re
import sys

from peer_runs import Results, options, read_table, report

HEAD = ("name device dense exit status solver precond steps iterations "
        "residual backward seconds").split()
TOLERANCE = 1e-8
SMALL = 2000


def chain(notes):
    """The steps as 'solver/precond iterations residual; ...'."""
    text = []
    for note in notes:
        m = re.match(r"auto: step \d+, (\S+) with (\S+): (\d+) iterations?, "
                     r"\S+ s, residual (\S+),", note)
        if m:
            text.append("%s/%s %s %s" % m.groups())
    return "; ".join(text)


def run(name, path, opt):
    """One line of RESULTS."""
    words = [opt["solve"], "-A", path, "-nrhs", "4", "-rtol", str(TOLERANCE),
             "-maxtime", str(opt["seconds"]), "-device", opt["device"],
             "-dense", opt["dense"]]
    if opt["threads"]:
        words += ["-threads", str(opt["threads"])]
    code, r, _, seconds = report(words, 2 * opt["seconds"] + 60)
    r = r or {"status": "no report"}

    def text(key, form="%s"):
        return form % r[key] if r.get(key) is not None else "-"

    return {"name": name, "device": opt["device"], "dense": opt["dense"],
            "exit": code, "status": text("status"),
            "solver": text("solver"), "precond": text("precond"),
            "steps": chain(r.get("notes", [])) or "-",
            "iterations": text("iterations"),
            "residual": text("max_relative_residual", "%.2e"),
            "backward": text("max_backward_error", "%.2e"),
            "seconds": "%.2f" % seconds}


def reached(residual):
    try:
        return float(residual) <= TOLERANCE
    except ValueError:
        return False


def summary(peers, lines):
    """Counts, by size and -dense, the systems that the direct solver solves."""
    by_name = {p["name"]: p for p in peers}
    for dense in ("auto", "never"):
        mine = [x for x in lines if x["dense"] == dense]
        for small in (False, True):
            of = [x for x in mine
                  if (int(by_name[x["name"]]["n"] or SMALL + 1) <= SMALL) == small]
            both = [x for x in of if reached(by_name[x["name"]]["residual"])]
            good = [x for x in both if x["exit"] == "0"]
            more = [x for x in of if x["exit"] == "0" and x not in both]
            if of:
                print("n %s %d, dense %s: %d of %d that the direct solver "
                      "solves, and %d that it does not; others end %s"
                      % ("<=" if small else ">", SMALL, dense, len(good),
                         len(both), len(more),
                         sorted({x["exit"] for x in of
                                 if x["exit"] != "0"})))
                for x in both:
                    if x not in good:
                        print("  not:", x["name"], x["status"], x["residual"],
                              x["backward"])


def write_table(path, peers, lines):
    by_name = {p["name"]: p for p in peers}
    order = {p["name"]: i for i, p in enumerate(peers)}
    with open(path, "w") as f:
        f.write("| matrix | n | exit | residual | backward | ended with | "
                "steps before: iterations, residual | s | direct: residual | "
                "s |\n|---|---|---|---|---|---|---|---|---|---|\n")
        for x in sorted(lines, key=lambda x: order[x["name"]]):
            p = by_name[x["name"]]
            before = "; ".join(x["steps"].split("; ")[:-1]) or "-"
            end = x["exit"] if x["exit"] == "0" else "%s, %s" % (
                x["exit"], x["status"].replace("_", " "))
            f.write("| %s | %s | %s | %s | %s | %s, %s: %s | %s | %s | %s | "
                    "%s |\n" % (x["name"], p["n"], end, x["residual"],
                                x["backward"], x["solver"], x["precond"],
                                x["iterations"], before, x["seconds"],
                                p["residual"], p["seconds"]))


def main():
    opt, (folder, listed, path) = options(
        {"solve": "spsolve", "device": "cpu", "seconds": 60.0,
         "dense": "auto", "threads": 0, "least": 0, "table": ""},
        __doc__, 3, 3)
    peers = read_table(listed)
    results = Results(path, HEAD)
    for p in peers:
        file = os.path.join(folder, p["name"] + ".mtx")
        file = file if os.path.exists(file) else file + ".gz"
        if (int(p["nnz"] or 0) >= opt["least"] and os.path.exists(file) and
                not results.has(name=p["name"], device=opt["device"],
                                dense=opt["dense"])):
            results.add(run(p["name"], file, opt))
    lines = [x for x in results.lines if x["device"] == opt["device"]]
    summary(peers, lines)
    if opt["table"]:
        write_table(opt["table"], peers,
                    [x for x in lines if x["dense"] == opt["dense"]])
    late = [x for x in lines if float(x["seconds"]) > opt["seconds"] + 15]
    odd = [x for x in lines if x["exit"] not in ("0", "1", "4")]
    for x in late + odd:
        print("late or odd:", x["name"], x["exit"], x["seconds"])
    sys.exit(1 if late or odd else 0)


main()
