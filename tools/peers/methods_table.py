#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares block methods, methods with separate columns, single solves and auto
on the same systems.

    methods_table.py RESULTS.tsv -spbench PATH [-device cuda] [-k 16]
                     [-maxtime 20] [-seconds 0] [-table OUT.md]
                     SYSTEM:PRECOND ...

SYSTEM is a file, or words of spbench such as 'convection 100'.  For each,

    spbench SYSTEM -solve -k K,1 -precond PRECOND -solver METHODS

and once more with -solver auto -precond auto, whatever PRECOND.  Each second
run (all objects created anew in a warm process) is a line of RESULTS; systems
that are already there are skipped, so that an interrupted run can be continued,
and no system is started after -seconds.  Solves of K columns that take less
than 0.1 s are repeated four times, and the line is the median of the five by
set-up plus iterations, since host activity changes single times by a third.  A
single solve counts K times.  Exit code 1 where a method converged and auto did
not, or where auto took more than 1.2 times as long as the best (set-up and
iterations, of the methods with the preconditioner that auto chose).
"""
import sys

from peer_runs import Results, name_of, options, second_runs, total

QUICK, MORE = 0.1, 4     # seconds; faster solves are repeated
METHODS = "gmres block_gmres block_gcrodr bicgstab idr".split()
HEAD = ("system precond device asked k iterations products setup loop "
        "residual converged ended").split()


def run(system, precond, methods, widths, opt):
    """Returns lines of RESULTS from spbench's table."""
    words = ["-k", widths, "-precond", precond, "-solver", ",".join(methods)]
    return [dict(x, precond=precond)
            for x in second_runs(system, words, opt)]


def middle(lines):
    return sorted(lines, key=total)[len(lines) // 2]


def measure(system, precond, methods, opt):
    """Returns one line per method and width; those of fast solves are
    medians."""
    k = str(opt["k"])
    lines = run(system, precond, methods, k + ",1", opt)
    quick = [x["asked"] for x in lines if x["k"] == k and total(x) < QUICK]
    if not quick:
        return lines
    more = run(system, precond, quick * MORE, k, opt)
    return [middle([x] + [y for y in more if y["asked"] == x["asked"]])
            if x["k"] == k and x["asked"] in quick else x for x in lines]


def collect(path, systems, opt):
    results = Results(path, HEAD)
    for system, precond in systems + [(s, "auto") for s, _ in systems]:
        if results.late(opt["seconds"]) or results.has(
                system=name_of(system), precond=precond,
                device=opt["device"]):
            continue
        for x in measure(system, precond,
                         ["auto"] if precond == "auto" else METHODS, opt):
            results.add(x)
    return [x for x in results.lines if x["device"] == opt["device"]]


def judge(lines, k):
    """Returns the cases in which auto failed or was too slow."""
    bad = []
    for a in lines:
        if a["asked"] != "auto" or a["k"] != str(k):
            continue
        took = a["ended"].split(", ")[-1]
        best = min((total(x) for x in lines
                    if x["system"] == a["system"] and x["k"] == str(k) and
                    x["precond"] == took and x["converged"] == "yes"),
                   default=float("inf"))
        if a["converged"] != "yes" and best < float("inf"):
            bad.append("%s: auto did not converge" % a["system"])
        elif total(a) > 1.2 * best:
            bad.append("%s: auto took %.4f s, the best with %s %.4f"
                       % (a["system"], total(a), took, best))
    return bad


def write_table(path, lines, k):
    single = {(x["system"], x["precond"], x["asked"]): x for x in lines
              if x["k"] == "1"}
    with open(path, "w") as f:
        f.write("| system | method, preconditioner | iterations | products x "
                "columns | set-up s | loop s | %d single solves: products | "
                "loop s |\n|---|---|---|---|---|---|---|---|\n" % k)
        for x in sorted(lines, key=lambda x: x["system"]):
            if x["k"] != str(k):
                continue
            one = single.get((x["system"], x["precond"], x["asked"]))
            what = ("auto: " + x["ended"] if x["asked"] == "auto"
                    else "%s, %s" % (x["asked"], x["precond"]))
            if x["converged"] != "yes":
                what += " (%s)" % x["residual"]
            f.write("| %s | %s | %s | %s x %d | %s | %s | %s | %s |\n" % (
                x["system"], what, x["iterations"], x["products"], k,
                x["setup"], x["loop"],
                k * int(one["products"]) if one else "-",
                "-" if not one else "%.3f%s" % (
                    k * float(one["loop"]),
                    "" if one["converged"] == "yes" else " (no)")))


def main():
    opt, (results, *systems) = options(
        {"spbench": "spbench", "device": "cuda", "k": 16, "maxtime": 20.0,
         "seconds": 0.0, "table": ""}, __doc__, 2)
    lines = collect(results, [s.rsplit(":", 1) for s in systems], opt)
    if opt["table"]:
        write_table(opt["table"], lines, opt["k"])
    bad = judge(lines, opt["k"])
    for text in bad:
        print(text)
    sys.exit(1 if bad else 0)


main()
