# SPDX-License-Identifier: BSD-3-Clause
"""What the comparisons of this folder share: options, tables that an
interrupted run continues, reports of solve, and second runs of spbench."""
import csv
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time


def options(opt, doc, least=0, most=10**6):
    """Returns opt with the values of the command line, converted to the types
    of the defaults, and the other words.  Ends the program with `doc` where the
    number of those is not in least..most."""
    plain = []
    words = iter(sys.argv[1:])
    for w in words:
        if w.startswith("-") and w[1:] in opt:
            opt[w[1:]] = type(opt[w[1:]])(next(words))
        else:
            plain.append(w)
    if not least <= len(plain) <= most:
        sys.exit(doc)
    return opt, plain


def option(name, default):
    """Returns the value of one option, of the type of its default."""
    if name not in sys.argv:
        return default
    return type(default)(sys.argv[sys.argv.index(name) + 1])


def read_table(path):
    with open(path) as f:
        return list(csv.DictReader(f, delimiter="\t"))


class Results:
    """A table to which lines are added as soon as they are known: those that it
    had before need not be measured again."""

    def __init__(self, path, head):
        self.head = head
        self.begun = time.monotonic()
        self.lines = read_table(path) if os.path.exists(path) else []
        self.file = open(path, "a")
        if not os.path.getsize(path):
            print("\t".join(head), file=self.file, flush=True)

    def has(self, **key):
        return any(all(x[h] == v for h, v in key.items()) for x in self.lines)

    def add(self, line):
        """Adds a dictionary; what is None or absent is left empty."""
        texts = ["" if line.get(h) is None else str(line[h])
                 for h in self.head]
        print("\t".join(texts), file=self.file, flush=True)
        self.lines.append(dict(zip(self.head, texts)))

    def late(self, seconds):
        """Whether no further system is to be started; 0: no limit."""
        return 0 < seconds < time.monotonic() - self.begun


def report(words, limit=None):
    """Runs solve; returns its exit code (-1: it was killed after `limit`
    seconds), its JSON report ({} if there is none), its standard error and the
    elapsed seconds."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        start = time.monotonic()
        try:
            done = subprocess.run(words + ["-quiet", "-json", out.name],
                                  capture_output=True, text=True,
                                  timeout=limit)
            code, said = done.returncode, done.stderr.strip()
        except subprocess.TimeoutExpired:
            code, said = -1, "killed after the time limit"
        seconds = time.monotonic() - start
        try:
            with open(out.name) as f:
                return code, json.load(f), said, seconds
        except ValueError:
            return code, {}, said, seconds


def solved(words):
    """Returns the report of a run of solve that must succeed."""
    code, r, said, _ = report(words)
    if code:
        sys.exit("exit %d of %s: %s" % (code, " ".join(words), said))
    return r


def name_of(system):
    return os.path.basename(system).split(".mtx")[0]


def second_runs(system, words, opt):
    """Runs `spbench SYSTEM -solve` with further words, which makes all objects
    and solves twice in each case.  Returns a dictionary for the second run of
    each case, which excludes what a process does once."""
    given = ["-A", system] if os.path.exists(system) else system.split()
    out = subprocess.run(
        [opt["spbench"]] + given + ["-solve"] + words +
        ["-maxtime", str(opt["maxtime"]), "-device", opt["device"]],
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
            "system": name_of(system), "device": opt["device"], "rows": rows,
            "asked": cell[0], "k": cell[1], "iterations": cell[3],
            "products": cell[4], "setup": cell[5], "loop": cell[6],
            "residual": cell[14], "converged": "yes", "ended": cell[16],
            "when": cell[2]})
    return [x for x in lines if x["when"] == "again"]


def total(x):
    """Returns the seconds of set-up and iterations of a line of spbench."""
    return float(x["setup"]) + float(x["loop"])


def tolerance(method, value):
    """Returns the relative tolerance as an argument of a method of SciPy or
    CuPy, which called it tol before SciPy 1.12."""
    new = "rtol" in inspect.signature(method).parameters
    return {"rtol" if new else "tol": value}
