#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints counters of the kernels of block operations, measured by Nsight
Compute: a row for each kernel of `spbench -blocks`, in the order of its
operations.

usage: ncu_blocks.py SPBENCH [ROWS:WIDTH,WIDTH...]...

The default is 16000000:1 1000000:4,16,64,128.

DRAM is in TB/s.  The other columns are per cent of the peaks: sectors of L2,
wavefronts of shared memory and of loads, issue slots, fp64 and tensor pipes,
active warps."""
import csv
import re
import subprocess
import sys

from ncu_table import REGISTERS, STALL, TIME, number

SIZES = ["16000000:1", "1000000:4,16,64,128"]
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
ACTIVE = ".avg.pct_of_peak_sustained_active"
SHOWN = [
    ("L2", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"),
    ("shared", "l1tex__data_pipe_lsu_wavefronts" + ACTIVE),
    ("issue", "sm__inst_issued" + ACTIVE),
    ("fp64", "sm__pipe_fp64_cycles_active" + ACTIVE),
    ("tensor", "sm__pipe_tensor_op_dmma_cycles_active" + ACTIVE),
    ("warps", "sm__warps_active" + ACTIVE),
]
REASONS = ["long_scoreboard", "short_scoreboard", "math_pipe_throttle",
           "mio_throttle", "lg_throttle", "barrier", "wait"]
STALLS = 2      # number of stall reasons shown


def measure(spbench, rows, widths):
    """Returns the output of ncu and spbench."""
    metrics = [TIME, REGISTERS, READ, WRITTEN]
    metrics += [m for _, m in SHOWN] + [STALL % r for r in REASONS]
    run = ["ncu", "--clock-control", "none", "--csv", "--page", "raw",
           "--print-units", "base", "-k", "regex:kernel",
           "--metrics", ",".join(metrics),
           spbench, "-blocks", "-device", "cuda", "-once", "-n", rows,
           "-k", widths]
    return subprocess.run(run, capture_output=True, text=True).stdout


def kernels(text):
    """Returns the counters of every kernel with a significant part of the
    time."""
    table = list(csv.reader(t for t in text.splitlines() if t[:1] == '"'))
    if len(table) < 3:
        sys.stderr.write(text[-2000:])
    for line in table[2:]:
        c = dict(zip(table[0], line))
        if number(c, TIME) > 10e3:
            yield c


def row(k, c):
    stalls = sorted(((number(c, STALL % r), r) for r in REASONS
                     if number(c, STALL % r) > 0), reverse=True)
    name = re.sub(r"void |<unnamed>::| |\(.*", "", c["Kernel Name"])
    bytes_moved = number(c, READ) + number(c, WRITTEN)
    cells = [k, "`%s`" % name, "%.0f" % (number(c, TIME) / 1e3),
             "%.2f" % (number(c, READ) / 1e9),
             "%.2f" % (number(c, WRITTEN) / 1e9),
             "%.2f" % (bytes_moved / number(c, TIME) / 1e3)]
    cells += ["%.0f" % number(c, m) for _, m in SHOWN]
    cells += ["%.0f" % number(c, REGISTERS),
              ", ".join("%s %.1f" % (r.replace("_", " "), v)
                        for v, r in stalls[:STALLS])]
    return "| " + " | ".join(cells) + " |"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    names = ["k", "kernel", "us", "GB read", "GB written", "TB/s"]
    names += [n for n, _ in SHOWN]
    names += ["registers", "stalls: warps waiting for each issue"]
    print("| " + " | ".join(names) + " |")
    print("|--:|:--|" + "--:|" * (len(names) - 3) + ":--|")
    for size in sys.argv[2:] or SIZES:
        rows, widths = size.split(":")
        for k in widths.split(","):
            for c in kernels(measure(sys.argv[1], rows, k)):
                print(row(k, c), flush=True)


if __name__ == "__main__":
    main()
