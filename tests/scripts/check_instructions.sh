#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Kernels and block operations of the host with each limit of its instruction
# set (SPSOLVE_ISA), by the small sets of their suites; on another processor
# than x86 there is one form only.  The largest limit is what make check runs.
failed=0
[ "$(uname -m)" = x86_64 ] || { echo "not an x86 processor"; exit 77; }
[ -x tests/conform_kernels ] || { echo "no Check: no suites"; exit 77; }
for isa in plain avx2; do
    for suite in conform_kernels conform_backend; do
        if SPSOLVE_ISA=$isa SPS_TEST_QUICK=1 SPS_TEST_PLACE=cpu \
            "tests/$suite" >"isa-$$.log" 2>&1; then
            echo "passed $suite $isa"
        else
            echo "FAILED $suite $isa"; cat "isa-$$.log"; failed=1
        fi
    done
done
rm -f "isa-$$.log"
exit $failed
