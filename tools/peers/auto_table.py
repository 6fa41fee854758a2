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
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HEAD = ("name device dense exit status solver precond steps iterations "
        "residual backward seconds").split()
TOLERANCE = 1e-8
SMALL = 2000


def options(words):
    opt = {"solve": "spsolve", "device": "cpu", "seconds": 60.0, "dense": "auto",
           "threads": 0, "least": 0, "table": ""}
    plain = []
    words = iter(words)
    for w in words:
        if w.startswith("-") and w[1:] in opt:
            opt[w[1:]] = type(opt[w[1:]])(next(words))
        else:
            plain.append(w)
    if len(plain) != 3:
        sys.exit(__doc__)
    return opt, plain


def read_table(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return list(csv.DictReader(f, delimiter="\t"))


def ladder(report):
    """The steps as 'solver/precond iterations residual; ...'."""
    text = []
    for note in report.get("notes", []):
        m = re.match(r"auto: step \d+, (\S+) with (\S+): (\d+) iterations?, "
                     r"\S+ s, residual (\S+),", note)
        if m:
            text.append("%s/%s %s %s" % m.groups())
    return "; ".join(text)


def run(name, path, opt):
    """One line of RESULTS."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        words = [opt["solve"], "-A", path, "-nrhs", "4", "-rtol",
                 str(TOLERANCE), "-maxtime", str(opt["seconds"]), "-device",
                 opt["device"], "-dense", opt["dense"], "-quiet", "-json",
                 out.name]
        if opt["threads"]:
            words += ["-threads", str(opt["threads"])]
        start = time.monotonic()
        try:
            code = subprocess.run(words, capture_output=True,
                                  timeout=2 * opt["seconds"] + 60).returncode
        except subprocess.TimeoutExpired:
            code = -1
        seconds = time.monotonic() - start
        try:
            with open(out.name) as f:
                r = json.load(f)
        except ValueError:
            r = {"status": "no report"}

    def text(key, form="%s"):
        return form % r[key] if r.get(key) is not None else "-"

    return {"name": name, "device": opt["device"], "dense": opt["dense"],
            "exit": str(code), "status": text("status"),
            "solver": text("solver"), "precond": text("precond"),
            "steps": ladder(r) or "-", "iterations": text("iterations"),
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
    opt, (folder, listed, results) = options(sys.argv[1:])
    peers = read_table(listed)
    lines = read_table(results)
    done = {(x["name"], x["device"], x["dense"]) for x in lines}
    new = not os.path.exists(results)
    with open(results, "a") as f:
        if new:
            f.write("\t".join(HEAD) + "\n")
        for p in peers:
            path = os.path.join(folder, p["name"] + ".mtx")
            path = path if os.path.exists(path) else path + ".gz"
            key = (p["name"], opt["device"], opt["dense"])
            if (key in done or int(p["nnz"] or 0) < opt["least"] or
                    not os.path.exists(path)):
                continue
            line = run(p["name"], path, opt)
            f.write("\t".join(line[h] for h in HEAD) + "\n")
            f.flush()
            lines.append(line)
    lines = [x for x in lines if x["device"] == opt["device"]]
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
