#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Counts of build-aux/summary.sh: a skipped test does not count as passed, in a
# suite that passes, in one that fails, and where all are skipped.
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failures=0

# ran NAME RESULT LINES...: writes a suite's log and the result file of make
ran() {
    echo ":test-result: $2" >"$tmp/$1.trs"
    name=$1
    shift 2
    printf '%s\n' "$@" >"$tmp/$name.log"
}

# expect EXIT LINE: exit code and summary of all suites so far
expect() {
    said=$(sh "${srcdir:-.}/build-aux/summary.sh" "$tmp")
    code=$?
    [ "$(echo "$said" | tail -n 1)" = "$2" ] && [ $code -eq "$1" ] || {
        echo "FAIL: exit $code for $1, not '$2' but:"
        echo "$said"
        failures=$((failures + 1))
    }
}

ran whole PASS '100%: Checks: 9, Failures: 0, Errors: 0'
expect 0 "9 passed, 0 failed, 0 skipped"
ran part PASS 'skip this: no GPU' 'skip by design that: long' \
    '100%: Checks: 5, Failures: 0, Errors: 0'
expect 0 "12 passed, 0 failed, 2 skipped"
ran nothing PASS 'skip this: no GPU' '100%: Checks: 1, Failures: 0, Errors: 0'
expect 0 "12 passed, 0 failed, 3 skipped"
ran script.sh PASS 'skip clients: no pkg-config' 'all: good'
expect 0 "13 passed, 0 failed, 4 skipped"
ran absent SKIP 'skipped: no device'
expect 0 "13 passed, 0 failed, 5 skipped"
ran wrong FAIL 'skip this: no GPU' '50%: Checks: 4, Failures: 1, Errors: 1'
expect 1 "14 passed, 2 failed, 6 skipped"
ran fell FAIL '100%: Checks: 3, Failures: 0, Errors: 0'
expect 1 "17 passed, 3 failed, 6 skipped"
said=$(sh "${srcdir:-.}/build-aux/summary.sh" "$tmp")
case $said in
*"by design that: long"*) ;;
*) echo "FAIL: what was skipped is not named"; failures=$((failures + 1)) ;;
esac

[ $failures -eq 0 ] && echo "counts of passed, failed, skipped: good"
exit $((failures > 0))
