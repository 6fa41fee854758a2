#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Adds up what `make check` left in build folders and prints one line,
#     N passed, N failed, N skipped
# A Check suite counts its tests, any other test counts as one.  A line
# `skip NAME: why` in a log (tests/support/runner.h) is a test, or of a script a
# part, that did not come to its end: it was skipped and has not passed.  Before
# the line, what was skipped and the claims that failed are named.  Exit 1 when
# something failed.
#   usage: summary.sh [-e PASSED FAILED SKIPPED] BUILD_FOLDER...
passed=0 failed=0 skipped=0
[ "$1" = -e ] && { passed=$2 failed=$3 skipped=$4; shift 4; }

# count LABEL LOG: the number behind LABEL, summed over suites
count() {
    sed -n "s/^[0-9]*%: .*$1: \([0-9]*\).*/\1/p" "$2" |
        awk '{ n += $1 } END { print n + 0 }'
}

for trs in $(find "$@" -name '*.trs' ! -path '*/_build/*' | sort); do
    log=${trs%.trs}.log
    case $(sed -n 's/^:test-result: *//p' "$trs") in
        SKIP*) skipped=$((skipped + 1)); echo "skipped: ${trs%.trs}"; continue ;;
        PASS*) bad=0 ;;
        *) bad=1; echo "failed: ${trs%.trs}" ;;
    esac
    all=$(count Checks "$log") wrong=$(count Failures "$log")
    wrong=$((wrong + $(count Errors "$log")))
    cut=$(grep -c '^skip ' "$log")
    skipped=$((skipped + cut))
    [ "$cut" -eq 0 ] || echo "skipped in ${trs%.trs}:"
    sed -n 's/^skip /    /p' "$log"
    if [ "$all" -gt 0 ]; then all=$((all - cut)); fi
    if ! grep -q '^[0-9]*%: Checks:' "$log"; then
        all=1 wrong=$bad
    elif [ $bad -eq 1 ] && [ $wrong -eq 0 ]; then
        all=$((all + 1)) wrong=1 # it fell after its tests
    fi
    [ $bad -eq 1 ] && grep -E ':[FE]:|^FAIL:' "$log" | sed 's/^/    /'
    passed=$((passed + all - wrong)) failed=$((failed + wrong))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
