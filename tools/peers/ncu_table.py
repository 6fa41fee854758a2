#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints what limits the main kernels: counters of one launch each, measured by
Nsight Compute, as rows of the table in doc/log/what-limits-kernels.md.

usage: ncu_table.py SPBENCH [KERNEL...]

SPBENCH is tools/spbench of a build (or bin/spbench of a stage, with its env
sourced); without names of kernels, all of LAUNCHES."""
import csv
import subprocess
import sys

# kernel, its function, system, operation, columns
LAUNCHES = [
    ("spmv.adaptive", "adaptive_kernel", "laplace27 128", "spmm", 1),
    ("spmv.hot", "hot_kernel", "rmat 20 16", "spmm", 1),
    ("spmv.packed", "packed_kernel", "laplace27 128", "spmm", 1),
    ("spmm.rode", "rows_kernel", "poisson7 160", "spmm", 16),
    ("spmm.rode", "rows_kernel", "rmat 20 16", "spmm", 16),
    ("spmm.share", "share_kernel", "rmat 14 16", "spmm", 16),
    ("spmm.tiles", "tiles_kernel", "laplace27 128", "spmm", 16),
    ("spmm.blocks", "ring_kernel", "elasticity 64", "spmm", 16),
    ("spmm.blocks", "ring_kernel", "elasticity 64", "spmm", 32),
    ("sddmm.rode", "rows_kernel", "poisson7 160", "sddmm", 16),
    ("spmm.tca", "direct_rows", "poisson7 160", "spmm", 16),
]
TIME = "gpu__time_duration.sum"
PERCENT = [
    ("DRAM", "dram__throughput.avg.pct_of_peak_sustained_elapsed"),
    ("L2", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
    ("L1", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
    ("L1 hits", "l1tex__t_sector_hit_rate.pct"),
    ("issue", "sm__inst_issued.avg.pct_of_peak_sustained_active"),
    ("fp64", "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"),
    ("warps", "sm__warps_active.avg.pct_of_peak_sustained_active"),
]
REGISTERS = "launch__registers_per_thread"
STALL = "smsp__average_warps_issue_stalled_%s_per_issue_active.ratio"
REASONS = ["long_scoreboard", "short_scoreboard", "lg_throttle",
           "mio_throttle", "math_pipe_throttle", "barrier", "wait",
           "not_selected", "no_instruction", "dispatch_stall", "drain",
           "membar", "imc_miss", "branch_resolving", "sleeping"]


def launches(which, metrics, reasons, program):
    """Runs a program under ncu; returns {metric: value} of every launch that
    the words `which` select."""
    metrics = [TIME, REGISTERS] + metrics + [STALL % r for r in reasons]
    run = ["ncu", "--clock-control", "none", "--csv", "--page", "raw",
           "--print-units", "base"] + which
    text = subprocess.run(run + ["--metrics", ",".join(metrics)] + program,
                          capture_output=True, text=True).stdout
    rows = list(csv.reader(t for t in text.splitlines() if t[:1] == '"'))
    if len(rows) < 3:                   # names, units, values
        sys.stderr.write(text[-2000:])
    return [dict(zip(rows[0], line)) for line in rows[2:]]


def counters(spbench, kernel, function, system, op, k):
    """Returns {metric: value of the third launch}, or None."""
    found = launches(
        ["--kill", "yes", "-k", function, "-s", "2", "-c", "1"],
        [m for _, m in PERCENT], REASONS,
        [spbench] + system.split() +
        ["-perturb", "1", "-device", "cuda", "-kernel", kernel, "-op", op,
         "-k", str(k), "-seconds", "0.001"])
    return found[0] if found else None


def number(c, metric):
    try:
        return float(c.get(metric, "").replace(",", ""))
    except ValueError:
        return float("nan")


def row(cells, c, shown, reasons):
    """Returns a row: cells, the metrics shown, registers and the two main
    reasons of stalls."""
    stalls = sorted(((number(c, STALL % r), r) for r in reasons
                     if number(c, STALL % r) > 0), reverse=True)
    cells = cells + ["%.0f" % number(c, m) for _, m in shown]
    cells += ["%.0f" % number(c, REGISTERS),
              ", ".join("%s %.1f" % (r.replace("_", " "), v)
                        for v, r in stalls[:2])]
    return "| " + " | ".join(cells) + " |"


def print_head(names, shown, sides):
    names = names + [n for n, _ in shown]
    names += ["registers", "stalls: warps waiting for each issue"]
    print("| " + " | ".join(names) + " |")
    print(sides + "--:|" * (len(names) - 3) + ":--|")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print_head(["kernel", "system", "k", "us"], PERCENT, "|:--|:--|")
    for launch in LAUNCHES:
        if sys.argv[2:] and launch[0] not in sys.argv[2:]:
            continue
        c = counters(sys.argv[1], *launch)
        kernel, _, system, _, k = launch
        print(row([kernel, system, str(k), "%.1f" % (number(c, TIME) / 1e3)],
                  c, PERCENT, REASONS)
              if c else "| %s | not measured |" % kernel, flush=True)


if __name__ == "__main__":
    main()
