#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every example runs and ends with 0, or with 77 where it needs a GPU; each
# prints at least one line.
failed=0 ran=0
for example in $SPS_EXAMPLES; do
    said=$("./$example" 2>&1)
    code=$?
    echo "$example: exit $code: $(echo "$said" | tail -n 1)"
    case $code in
    0) [ -n "$said" ] || failed=1 ;;
    77) echo "$said" | grep -q '^skipped:' || failed=1 ;;
    *) failed=1 ;;
    esac
    ran=$((ran + 1))
done
[ $ran -gt 0 ] || { echo "no examples in SPS_EXAMPLES"; exit 1; }
exit $failed
