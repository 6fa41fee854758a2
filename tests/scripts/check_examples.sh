#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every example runs and exits with 0, or with 77 where it needs a GPU; each
# prints at least one line.  SPS_LONG=1: also effective resistances of a graph
# of 102400 vertices, where 64 edges are checked by separate solves.
failed=0 ran=0

# one EXAMPLE words...
one() {
    said=$("./$@" 2>&1)
    code=$?
    echo "$*: exit $code: $(echo "$said" | tail -n 1)"
    case $code in
    0) [ -n "$said" ] || failed=1 ;;
    77) echo "$said" | grep -q '^skipped:' || failed=1
        echo "skip $1: $(echo "$said" | sed -n 's/^skipped: *//p')" ;;
    *) failed=1 ;;
    esac
    ran=$((ran + 1))
}

for example in $SPS_EXAMPLES; do one "$example"; done
[ $ran -gt 0 ] || { echo "no examples in SPS_EXAMPLES"; exit 1; }
[ -z "$SPS_LONG" ] || one examples/effective_resistance 320 512
exit $failed
