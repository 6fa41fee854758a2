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
import re
import sys

from ncu_table import TIME, launches, number, print_head, row

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


def kernels(spbench, rows, widths):
    """Returns the counters of every kernel with a significant part of the
    time."""
    found = launches(["-k", "regex:kernel"],
                     [READ, WRITTEN] + [m for _, m in SHOWN], REASONS,
                     [spbench, "-blocks", "-device", "cuda", "-once", "-n",
                      rows, "-k", widths])
    return [c for c in found if number(c, TIME) > 10e3]


def first_cells(k, c):
    name = re.sub(r"void |<unnamed>::| |\(.*", "", c["Kernel Name"])
    bytes_moved = number(c, READ) + number(c, WRITTEN)
    return [k, "`%s`" % name, "%.0f" % (number(c, TIME) / 1e3),
            "%.2f" % (number(c, READ) / 1e9),
            "%.2f" % (number(c, WRITTEN) / 1e9),
            "%.2f" % (bytes_moved / number(c, TIME) / 1e3)]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print_head(["k", "kernel", "us", "GB read", "GB written", "TB/s"], SHOWN,
               "|--:|:--|")
    for size in sys.argv[2:] or SIZES:
        rows, widths = size.split(":")
        for k in widths.split(","):
            for c in kernels(sys.argv[1], rows, k):
                print(row(first_cells(k, c), c, SHOWN, REASONS), flush=True)


if __name__ == "__main__":
    main()
