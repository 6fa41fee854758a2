#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Turns the lines that spbench -tsv wrote into the kernel tables of
doc/kernel_tables.md: times of cuSPARSE, ratios of every kernel, geometric
means, the targets and whether they are met, and what the choices of "auto"
lost.

    kernel_tables.py OUT      a folder of measure_kernels.sh
"""
import csv
import math
import os
import sys
from collections import defaultdict

NEAR = 1.1
NUMBERS = ("ms", "p10", "p90", "GF/s", "frac", "ratio", "plan_ms", "plan_MB",
           "predicted_ms")


class Row(dict):
    """Returns a line of the file as a dictionary, with numbers converted."""

    def __init__(self, line):
        super().__init__(line)
        for name in NUMBERS:
            self[name] = float(self[name])
        self["refresh_ms"] = float(self.get("refresh_ms") or 0)
        self["k"] = int(self["k"])
        self.marks = set(self["marks"].split())
        self.case = (self["matrix"], self["op"], self["precision"], self["k"])
        self.kernel = self["kernel"]

    def wrong(self):
        return "WRONG" in self.marks

    def vendor(self):
        return "vendor" in self.marks

    def bids(self):
        return not self.marks & {"named", "low", "WRONG"}


def read(name):
    """Returns the rows of a file; of a case measured twice the last lines are
    kept."""
    rows = {}
    if os.path.exists(name):
        with open(name, newline="") as f:
            for line in csv.DictReader(f, delimiter="\t"):
                row = Row(line)
                rows[row.case + (row.kernel,)] = row
    return list(rows.values())


def mean(values):
    values = [v for v in values if v > 0]
    if not values:
        return 0.0
    return math.exp(sum(map(math.log, values)) / len(values))


def cases(rows):
    found = defaultdict(list)
    for row in rows:
        found[row.case].append(row)
    return found


def short(matrix):
    words = matrix.replace("-perturb 1", "").split("/")[-1].split(".mtx")[0]
    return words.strip()


def table(head, lines):
    print("| " + " | ".join(head) + " |")
    print("|:--|" + "--:|" * (len(head) - 1))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def order(rows, key):
    """Returns the values of a column, in the order of the measurements."""
    return list(dict.fromkeys(key(row) for row in rows))


# ---------------------------------------------------------------- per system

def vendor_ms(rows):
    """Returns the time of the vendor's best kernel, from any ratio of the
    case."""
    for row in rows:
        if row["ratio"] > 0:
            return row["ms"] * row["ratio"]
    return 0.0


def vendor_how(rows):
    for row in rows:
        if "best" in row.marks and "columns" in row.marks:
            return "c"
    return ""


def print_vendor(rows, widths):
    print("cuSPARSE's best, ms (c: on column-major blocks):\n")
    by_case = cases(rows)
    lines = []
    for m in order(rows, lambda r: r["matrix"]):
        line = [short(m)]
        for k in widths:
            some = [r for c in by_case for r in by_case[c]
                    if c[0] == m and c[3] == k]
            line.append("%.4g%s" % (vendor_ms(some), vendor_how(some))
                        if some else "-")
        lines.append(line)
    table(["system"] + ["k = %d" % k for k in widths], lines)


def cell(row, best):
    if row.wrong():
        return "WRONG"
    text = "%.2f" % row["ratio"] if row["ratio"] > 0 else "?"
    if row is best:
        text = "**%s**" % text
    return text + ("*" if "auto" in row.marks else "")


def print_system(rows, widths):
    by_kernel = defaultdict(dict)
    best = {}
    for row in rows:
        k = row["k"]
        by_kernel[row.kernel][k] = row
        if not row.wrong() and not row.vendor() and (
                k not in best or row["ms"] < best[k]["ms"]):
            best[k] = row
    lines = []
    for kernel, at in by_kernel.items():
        lines.append([kernel] + [cell(at[k], best.get(k)) if k in at else "-"
                                 for k in widths])
    floor = ["% of the floor, auto"]
    for k in widths:
        auto = [r for r in rows if r["k"] == k and "auto" in r.marks]
        floor.append("%.0f" % (100 * auto[0]["frac"]) if auto else "-")
    lines.append(floor)
    if rows[0]["op"] == "spmm" and rows[0]["precision"] == "double":
        own = ["% of the copy, own bytes, auto"]
        for k in widths:
            auto = [r for r in rows if r["k"] == k and "auto" in r.marks]
            own.append("%.0f" % (100 * own_fraction(auto[0])) if auto else "-")
        lines.append(own)
    table(["k"] + [str(k) for k in widths], lines)


def print_ratios(rows, op, precision):
    rows = [r for r in rows
            if r["op"] == op and r["precision"] == precision]
    if not rows:
        return
    widths = order(rows, lambda r: r["k"])
    print("### %s, %s precision\n" % (op, precision))
    print_vendor(rows, widths)
    print("cuSPARSE's best time over that of each kernel (* the default "
          "choice, bold the best\nof ours):\n")
    for m in order(rows, lambda r: r["matrix"]):
        print("%s\n" % short(m))
        print_system([r for r in rows if r["matrix"] == m], widths)
    print_means(rows, widths)


def print_means(rows, widths):
    print("Geometric means over the systems:\n")
    lines = []
    kernels = order(rows, lambda r: r.kernel)
    for kernel in kernels + ["auto", "best of ours"]:
        line = [kernel]
        for k in widths:
            line.append("%.2f" % mean(ratios(rows, kernel, k, k)))
        lines.append([c if c != "0.00" else "-" for c in line])
    table(["k"] + [str(k) for k in widths], lines)


def ratios(rows, kernel, low, high):
    """Returns the ratios of a kernel, of "auto", or of each case's best
    candidate."""
    rows = [r for r in rows if low <= r["k"] <= high and not r.wrong()]
    if kernel == "auto":
        return [r["ratio"] for r in rows if "auto" in r.marks]
    if kernel == "best of ours":
        return [max([r["ratio"] for r in some
                     if r.bids() and not r.vendor()] or [0])
                for some in cases(rows).values()]
    return [r["ratio"] for r in rows if r.kernel == kernel]


# ----------------------------------------------------- bytes of own formats

COPIES = ("spmm.tiles", "spmm.blocks", "spmv.blocks", "spmv.cusparse_bsr",
          "spmv.cusparse_sell", "spmm.blocked_ell")


def own_fraction(row):
    """Returns the fraction of the copy bandwidth for the bytes of the kernel's
    own format: that for the minimum bytes times own bytes over minimum bytes.
    The plans of COPIES contain A, that of spmv.packed its columns; other
    kernels read the csr and their plan."""
    rows, columns, nnz = (float(row[name]) for name in ("m", "n", "nnz"))
    blocks = 8 * row["k"] * (rows + columns)
    floor = 12 * nnz + 4 * (rows + 1) + blocks
    own = 1e6 * row["plan_MB"] + blocks
    if row.kernel == "spmv.packed":
        own += 8 * nnz
    elif row.kernel not in COPIES:
        own += 12 * nnz + 4 * (rows + 1)
    return row["frac"] * own / floor


# ------------------------------------------------------------------- targets

def verdict(what, value, least, count):
    word = "met" if value >= least else "MISSED"
    if not count:
        word = "not measured"
    asked = "%.2f" % least
    if not least:
        word, asked = "beside it", "-"
    print("| %s | %.2f | %s | %d | %s |" % (what, value, asked, count, word))


def target(what, values, least, worst=False):
    values = [v for v in values if v > 0]
    value = (min(values) if worst else mean(values)) if values else 0
    verdict(what, value, least, len(values))


def fractions(rows, system, widths):
    """Returns the minimum time by bytes over that of the default choice."""
    return [r["frac"] for r in rows if r["matrix"].startswith(system)
            and r["k"] in widths and "auto" in r.marks and not r.wrong()]


def fast_targets(spmm, small):
    """Returns SpMM relative to the minimum time of fp64 CSR, and the gain over
    it."""
    for system, least, ahead in (("poisson7", 0.65, (2.6, 2.6, 2.3)),
                                 ("laplace27", 0.55, (2.6, 2.6, 2.6)),
                                 ("elasticity", 0.60, (2.6, 2.6, 2.6))):
        of = [r for r in spmm if r["matrix"].startswith(system)]
        for k, times in zip((8, 16, 32), ahead):
            target("%s k = %d, of the floor" % (system, k),
                   fractions(spmm, system, (k,)), least)
            target("%s k = %d, auto" % (system, k), ratios(of, "auto", k, k),
                   times)
    target("SpMM k = 8..64, auto", ratios(spmm, "auto", 8, 64), 2.2)
    rmat = [r for r in spmm if r["matrix"].startswith("rmat")]
    target("SpMM R-MAT, auto, worst", ratios(rmat, "auto", 2, 128), 1.0, True)
    for system, kernel, least in (("laplace27", "spmv.packed", 0.85),
                                  ("elasticity", "spmv.packed", 0.85),
                                  ("poisson7", "spmv.packed", 0.75)):
        target("SpMV %s, %s, own bytes" % (system, kernel),
               [own_fraction(r) for r in spmm if r["k"] == 1 and
                r.kernel == kernel and r["matrix"].startswith(system)], least)
    target("small matrices, auto, worst", ratios(small, "auto", 1, 128), 0.9,
           True)
    target("small matrices, SpMM, auto, worst",
           ratios(small, "auto", 2, 128), 0.95, True)


def chosen_well(rows):
    """Returns the fractions of cases in which "auto" is close to the best of
    all."""
    right = [[r for r in some if not r.wrong() and "low" not in r.marks]
             for some in cases(rows).values()]
    right = [some for some in right if any("auto" in r.marks for r in some)]
    return [float(any("auto" in r.marks and
                      r["ms"] <= NEAR * min(q["ms"] for q in some)
                      for r in some)) for some in right]


def cliffs(folder):
    """Returns the results of bench_cliff.c for each system: the largest
    fraction of the allowed ratio and its width, and all steps beyond it; None
    where the run did not complete."""
    found, system, beyond = {}, "", []
    name = os.path.join(folder, "cliff.md")
    for line in open(name) if os.path.exists(name) else ():
        if line.startswith("cliffs: "):
            system = short(line[len("cliffs: "):].split(",")[0])
            found[system], beyond = None, []
        if "CLIFF" in line:
            cells = [c.strip() for c in line.strip("|\n ").split("|")]
            beyond.append("%d to %s: %s" % (int(cells[0]) - 1, cells[0],
                                            cells[-1].split()[0]))
        if line.startswith("worst: "):
            found[system] = (float(line.split()[1]),
                             line.split("from ")[1].split(" columns")[0],
                             beyond)
    return found


def step_share(rows, system, k):
    """Returns the ratio of the times for k + 1 and k columns, as a fraction of
    the allowed 1.35 times the bytes in whole sectors; None unless both times
    are in the table."""
    at = {r["k"]: r for r in rows if r["matrix"] == system and
          "auto" in r.marks}
    if k not in at or k + 1 not in at:
        return None
    m, n, nnz = (float(at[k][name]) for name in ("m", "n", "nnz"))
    bytes_of = [12 * nnz + 4 * m + 32 * math.ceil(c / 4) * (m + n)
                for c in (k, k + 1)]
    return at[k + 1]["ms"] / at[k]["ms"] / (1.35 * bytes_of[1] / bytes_of[0])


def print_steps(rows):
    print("### Steps to one column more, of what is allowed (at most 1)\n")
    lines = []
    for system in order(rows, lambda r: r["matrix"]):
        shares = [step_share(rows, system, k) for k in (8, 32)]
        lines.append([short(system)] + ["-" if s is None else "%.3f" % s
                                        for s in shares])
    table(["system", "8 to 9", "32 to 33"], lines)


def print_targets(rows, small, decided, cliff):
    spmm = [r for r in rows if (r["op"], r["precision"]) == ("spmm", "double")]
    rmat = [r for r in spmm if r["matrix"].startswith("rmat")]
    print("### Targets, against cuSPARSE's best\n")
    print("| | is | target | cases | |\n|:--|--:|--:|--:|:--|")
    for who in ("auto", "best of ours"):
        target("SpMV, %s, mean" % who, ratios(spmm, who, 1, 1), 1.0)
        target("SpMV, %s, worst" % who, ratios(spmm, who, 1, 1), 0.9, True)
        target("SpMV, %s, R-MAT" % who, ratios(rmat, who, 1, 1), 1.15)
    for kernel, asked in (("spmm.rode", (1.8, 1.3)), ("auto", (1.8, 1.3)),
                          ("spmm.rode_paper", (0, 0))):
        target("SpMM k = 8..32, %s" % kernel, ratios(spmm, kernel, 8, 32),
               asked[0])
        target("SpMM k = 64..128, %s" % kernel,
               ratios(spmm, kernel, 64, 128), asked[1])
    for precision in ("double", "single"):
        some = [r for r in rows
                if (r["op"], r["precision"]) == ("sddmm", precision)]
        for who in ("sddmm.rode", "auto"):
            target("SDDMM %s, %s" % (precision, who),
                   ratios(some, who, 1, 1024), 1.5)
    fast_targets(spmm, small)
    well = chosen_well(decided)
    verdict("auto within 10 % of the best, share",
            sum(well) / max(len(well), 1), 0.9, len(well))
    for system, worst in cliff.items():
        share, where, beyond = worst or (0, "not to the end", ["?"])
        print("| no cliff, %s, worst %s (at most) | %.3f | 1.000 | 61 | %s |" %
              (system, where, share, "MISSED: " + "; ".join(beyond)
               if beyond else "met"))
    print()


# ---------------------------------------------------------------------- auto

def print_auto(rows):
    print("### What the default choice missed\n")
    near = {"bidders": 0, "all": 0}
    total, lines = 0, []
    for case, some in cases(rows).items():
        right = [r for r in some if not r.wrong() and "low" not in r.marks]
        auto = [r for r in right if "auto" in r.marks]
        if not auto:
            continue
        total += 1
        for of in ("bidders", "all"):
            best = min((r for r in right if of == "all" or r.bids()),
                       key=lambda r: r["ms"])
            if auto[0]["ms"] <= NEAR * best["ms"]:
                near[of] += 1
                continue
            lines.append([short(case[0]), case[1], case[2], str(case[3]),
                          auto[0].kernel, best.kernel, of,
                          "%.2f" % (auto[0]["ms"] / best["ms"])])
    if not total:
        return
    for of in near:
        print("Within 10 %% of the best of %s: %d of %d cases (%.0f %%)%s" %
              (of, near[of], total, 100 * near[of] / total,
               "." if of == "all" else ","))
    print()
    table(["system", "op", "precision", "k", "taken", "best", "of", "times"],
          lines)


# --------------------------------------------------------------------- small

def print_small(rows):
    widths = order(rows, lambda r: r["k"])
    print("### Small matrices, recorded and replayed\n")
    print("%d matrices. Geometric means of cuSPARSE's best time over that of "
          "each kernel,\nand the least:\n" %
          len(order(rows, lambda r: r["matrix"])))
    lines = []
    for kernel in order(rows, lambda r: r.kernel) + ["auto", "best of ours"]:
        line = [kernel]
        for k in widths:
            values = [v for v in ratios(rows, kernel, k, k) if v > 0]
            line.append("%.2f (%.2f)" % (mean(values), min(values))
                        if values else "-")
        lines.append(line)
    table(["k"] + [str(k) for k in widths], lines)
    below = [r for r in rows if "auto" in r.marks and 0 < r["ratio"] < 0.9]
    print("The default choice is below 0.9 of cuSPARSE in %d of %d cases%s\n"
          % (len(below), sum("auto" in r.marks for r in rows),
             ":" if below else "."))
    if below:
        table(["matrix", "k", "taken", "ms", "ratio", "best of ours"],
              [[short(r["matrix"]), str(r["k"]), r.kernel,
                "%.4f" % r["ms"], "%.2f" % r["ratio"],
                "%.2f" % max(ratios([q for q in rows if q.case == r.case],
                                    "best of ours", 1, 1024))]
               for r in sorted(below, key=lambda r: r["ratio"])])
    plain = {(r.kernel) for r in rows if "plain" in r.marks}
    if plain:
        print("Not recorded, timed with their launches: %s.\n" %
              ", ".join(sorted(plain)))


def print_low(rows):
    print("### Single precision and kernels that drop bits, ms and ratio\n")
    widths = order(rows, lambda r: r["k"])
    lines = []
    for m in order(rows, lambda r: r["matrix"]):
        for kernel in order(rows, lambda r: r.kernel):
            at = {r["k"]: r for r in rows
                  if r["matrix"] == m and r.kernel == kernel}
            if at:
                lines.append([short(m), kernel] + [
                    "-" if k not in at else "WRONG" if at[k].wrong() else
                    "%.4f (%.2f)" % (at[k]["ms"], at[k]["ratio"])
                    for k in widths])
    table(["system", "kernel"] + ["k = %d" % k for k in widths], lines)


def print_blocks(rows):
    """Writes times by fill for `blocks N B COUNT FILL`, and where blocks
    gain."""
    print("### Matrices of square blocks, ms by fill\n")
    for k in order(rows, lambda r: r["k"]):
        fills = sorted({r["matrix"].split()[4] for r in rows}, key=float)
        lines = []
        for size in sorted({int(r["matrix"].split()[2]) for r in rows}):
            for kernel in order(rows, lambda r: r.kernel):
                at = {r["matrix"].split()[4]: r for r in rows
                      if int(r["matrix"].split()[2]) == size and
                      r.kernel == kernel and r["k"] == k}
                if at:
                    lines.append(["%d x %d" % (size, size), kernel] +
                                 ["%.4f" % at[f]["ms"] if f in at and
                                  not at[f].wrong() else "-" for f in fills])
        print("k = %d:\n" % k)
        table(["blocks", "kernel"] + fills, lines)


def plan_cells(rows):
    if not rows:
        return ["-"] * 4
    ms = [r["plan_ms"] for r in rows]
    runs = [r["plan_ms"] / r["ms"] for r in rows]
    new = [r["refresh_ms"] / r["ms"] for r in rows]
    return ["%.2f" % max(ms), "%.1f..%.1f" % (min(runs), max(runs)),
            "%.2f..%.2f" % (min(new), max(new)) if max(new) > 0 else "-",
            "%.1f" % max(r["plan_MB"] for r in rows)]


def print_plans(rows, small):
    """Writes set-up times, of kernels for single vectors at k = 1, of others at
    k = 16.  The vendor's are left out, since they include timing of its
    algorithms."""
    print("### Plans: most ms, that and new values in runs of the kernel, most "
          "MB\n")
    lines = []
    for kernel in order(rows + small, lambda r: r.kernel):
        k = 1 if kernel.startswith("spmv.") else 16
        of, few = ([r for r in some if r.kernel == kernel and r["k"] == k and
                    r["op"] == "spmm" and not r.wrong() and not r.vendor()]
                   for some in (rows, small))
        if of or few:
            lines.append([kernel, str(k)] + plan_cells(of) + plan_cells(few))
    table(["kernel", "k", "large: ms", "runs", "values", "MB", "small: ms",
           "runs", "values", "MB"], lines)


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    large, low, small, blocks = (
        read(os.path.join(sys.argv[1], name + ".tsv"))
        for name in ("large", "low", "small", "blocks"))
    decided = large + [r for r in low if "low" not in r.marks] + small
    if large:
        print_targets(large, small, decided, cliffs(sys.argv[1]))
        print_steps([r for r in large if r["op"] == "spmm" and
                     r["precision"] == "double"])
        print_ratios(large, "spmm", "double")
        print_ratios(large, "sddmm", "double")
        print_ratios(large, "sddmm", "single")
        print_plans([r for r in large if r["precision"] == "double"], small)
    if low:
        print_low(low)
    if blocks:
        print_blocks(blocks)
    if small:
        print_small(small)
    print_auto(decided)
    wrong = [r for r in large + low + small + blocks if r.wrong()]
    for r in wrong:
        print("WRONG RESULT: %s, %s, k = %d" % (r["matrix"], r.kernel, r["k"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
