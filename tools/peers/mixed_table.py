#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares mixed with double precision at the same verified tolerance.

    mixed_table.py RESULTS.tsv -spbench PATH [-device cuda] [-k 16]
                   [-rtol 1e-10] [-maxtime 20] [-seconds 0] [-large 1000000]
                   [-table OUT.md] SYSTEM:METHOD:PRECOND ...

SYSTEM is a file, or words of spbench such as 'poisson7 160 -perturb 1'.  For
each

    spbench SYSTEM -solve -precond PRECOND -solver METHOD:double,METHOD:mixed

whose second runs (all objects created anew in a warm process) are two lines of
RESULTS; systems that are already there are skipped, so that an interrupted run
can be continued, and no system is started after -seconds.  Prints for each
system the seconds of set-up and iterations, the number of iterations, and the
ratio.  Exit code 1 if double precision reached the tolerance on some system and
mixed precision did not, or if mixed precision was 1.3 times as fast on less
than half of the systems of at least -large rows.
"""
import csv
import os
import subprocess
import sys
import time

HEAD = ("system method precond device k rtol rows precision iterations setup "
        "loop residual converged ended").split()


def options(words):
    opt = {"spbench": "spbench", "device": "cuda", "k": 16, "rtol": 1e-10,
           "maxtime": 20.0, "seconds": 0.0, "large": 1000000, "table": ""}
    plain = []
    words = iter(words)
    for w in words:
        if w.startswith("-") and w[1:] in opt:
            opt[w[1:]] = type(opt[w[1:]])(next(words))
        else:
            plain.append(w)
    if len(plain) < 2:
        sys.exit(__doc__)
    return opt, plain[0], [w.rsplit(":", 2) for w in plain[1:]]


def read_table(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return list(csv.DictReader(f, delimiter="\t"))


def name_of(system):
    return os.path.basename(system).split(".mtx")[0]


def run(system, method, precond, opt):
    """Returns two lines of RESULTS from spbench's table, or none."""
    words = ["-A", system] if os.path.exists(system) else system.split()
    out = subprocess.run(
        [opt["spbench"]] + words +
        ["-solve", "-k", str(opt["k"]), "-precond", precond, "-solver",
         "%s:double,%s:mixed" % (method, method), "-rtol", str(opt["rtol"]),
         "-maxtime", str(opt["maxtime"]), "-device", opt["device"]],
        stdout=subprocess.PIPE, text=True).stdout
    lines, rows = [], "0"
    for row in out.splitlines():
        cell = [c.strip() for c in row.strip("| ").split("|")]
        if row.startswith("solve: "):
            rows = row.split(" rows,")[0].split()[-1]
        if row.startswith("not converged") and lines:
            lines[-1]["converged"] = "no"
        if len(cell) != 18 or cell[2] not in ("first", "again"):
            continue
        lines.append({
            "system": name_of(system), "method": method, "precond": precond,
            "device": opt["device"], "k": str(opt["k"]),
            "rtol": "%g" % opt["rtol"], "rows": rows,
            "precision": cell[0].split(":")[-1], "iterations": cell[3],
            "setup": cell[5], "loop": cell[6], "residual": cell[14],
            "converged": "yes", "ended": cell[16], "when": cell[2]})
    return [x for x in lines if x["when"] == "again"]


def key(x):
    return tuple(x[h] for h in HEAD[:6])


def collect(results, systems, opt):
    lines = read_table(results)
    begun = time.monotonic()
    new = not os.path.exists(results)
    with open(results, "a") as f:
        if new:
            f.write("\t".join(HEAD) + "\n")
        for system, method, precond in systems:
            late = 0 < opt["seconds"] < time.monotonic() - begun
            this = (name_of(system), method, precond, opt["device"],
                    str(opt["k"]), "%g" % opt["rtol"])
            if late or this in {key(x) for x in lines}:
                continue
            more = run(system, method, precond, opt)
            for x in more:
                f.write("\t".join(x[h] for h in HEAD) + "\n")
            f.flush()
            lines += more
    return [x for x in lines if x["device"] == opt["device"]]


def total(x):
    return float(x["setup"]) + float(x["loop"])


def pairs(lines):
    """Returns (double, mixed) for each system."""
    by = {}
    for x in lines:
        by.setdefault(key(x), {})[x["precision"]] = x
    return [(p["double"], p["mixed"]) for p in by.values() if len(p) == 2]


def show(both, f):
    f.write("| system | method, preconditioner | iterations | double s | mixed "
            "s | times faster | residual |\n|---|---|---|---|---|---|---|\n")
    for d, m in both:
        f.write("| %s | %s, %s | %s, %s | %.4f%s | %.4f%s | %.2f | %s |\n" % (
            d["system"], d["method"], d["precond"], d["iterations"],
            m["iterations"], total(d),
            "" if d["converged"] == "yes" else " (no)", total(m),
            "" if m["converged"] == "yes" else " (no)", total(d) / total(m),
            m["residual"]))


def main():
    opt, results, systems = options(sys.argv[1:])
    both = pairs(collect(results, systems, opt))
    show(both, sys.stdout)
    if opt["table"]:
        with open(opt["table"], "w") as f:
            show(both, f)
    lost = [d["system"] for d, m in both
            if d["converged"] == "yes" and m["converged"] != "yes"]
    large = [total(d) / total(m) for d, m in both
             if int(d["rows"]) >= opt["large"] and d["converged"] == "yes"]
    fast = sum(1 for r in large if r >= 1.3)
    print("reached in doubles but not mixed: %s; 1.3 times faster: %d of %d "
          "large ones" % (", ".join(lost) or "none", fast, len(large)))
    sys.exit(1 if lost or 2 * fast < len(large) else 0)


main()
