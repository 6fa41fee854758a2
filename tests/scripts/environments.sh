#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The same results on other machines: suites and stop reasons with other BLAS
# libraries.
#   usage: environments.sh BUILD VERDICTS ENVIRONMENT... -- SUITE...
# An ENVIRONMENT is plain (verdicts only: make check runs the suites),
# reference (the reference BLAS and LAPACK), or KERNEL:THREADS, OpenBLAS with
# that kernel (OPENBLAS_CORETYPE) and that number of threads.  SUITEs are
# programs of BUILD/tests.  tests/verdicts prints the stop reasons of fixed
# systems, always of the long forms; the first environment writes the file
# VERDICTS, unless it exists, and all others must print the same.  Logs and
# results go to BUILD/environments, where build-aux/summary.sh counts them.
build=$1 verdicts=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
environments='' failed=0
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    environments="$environments $1"; shift
done
[ $# -eq 0 ] || shift

# has FLAG...: whether the processor has these instruction sets
has() {
    for flag; do
        grep -qw "$flag" /proc/cpuinfo 2>/dev/null || return 1
    done
}

reference=$(ls -d /usr/lib/*/blas /usr/lib/*/lapack 2>/dev/null | tr '\n' :)

# Prints why the environment is not available here; nothing if it is.
lacks() {
    case $1 in
    plain) ;;
    reference)
        case $reference in
        */blas:*/lapack:) ;;
        *) echo "no libblas3 and liblapack3" ;;
        esac ;;
    SkylakeX:*) has avx512f avx512bw avx512dq avx512vl ||
        echo "this processor has no AVX-512" ;;
    *:*) has avx2 fma || echo "this processor has no AVX2" ;;
    *) echo "no such environment" ;;
    esac
}

# within ENVIRONMENT COMMAND...
within() {
    name=$1; shift
    case $name in
    plain) "$@" ;;
    reference) LD_LIBRARY_PATH=$reference$LD_LIBRARY_PATH "$@" ;;
    *) OPENBLAS_CORETYPE=${name%:*} SPS_TEST_BLAS_THREADS=${name#*:} "$@" ;;
    esac
}

# The expected first line of verdicts.
expected() {
    case $1 in
    plain) echo 'blas .*' ;;
    reference) echo 'blas reference threads 1' ;;
    *) echo "blas ${1%:*} threads ${1#*:}" ;;
    esac
}

# result FOLDER TEST CODE: writes the result file as Automake does
result() {
    case $3 in
    0) word=PASS ;;
    77) word=SKIP ;;
    *) word=FAIL ;;
    esac
    echo ":test-result: $word" >"$1/$2.trs"
    [ $word != FAIL ] || echo "FAIL: $2 in $1"
}

compare() {
    out=$2/verdicts.log
    within "$1" env -u SPS_TEST_QUICK "$build/tests/verdicts" >"$out" 2>&1 ||
        return 1
    grep -qx "$(expected "$1")" "$out" || {
        echo "FAIL: wanted $(expected "$1")" >>"$out"
        return 1
    }
    grep '^verdict ' "$out" >"$2/verdicts.txt"
    [ -f "$verdicts" ] || cp "$2/verdicts.txt" "$verdicts"
    diff "$verdicts" "$2/verdicts.txt" >"$2/verdicts.diff" && return
    sed 's/^/FAIL: /' "$2/verdicts.diff" >>"$out"
    return 1
}

run() {
    folder=$build/environments/$1
    rm -rf "$folder"
    mkdir -p "$folder"
    why=$(lacks "$1")
    if [ -n "$why" ]; then
        echo "environment $1: skipped, $why"
        result "$folder" verdicts 77
        return
    fi
    name=$1; shift
    [ "$name" != plain ] || set --
    begin=$(date +%s)
    compare "$name" "$folder"
    result "$folder" verdicts $?
    export build folder
    [ $# -eq 0 ] || printf '%s\n' "$@" | within "$name" xargs -P "$jobs" -I{} \
        sh -c '"$build/tests/{}" >"$folder/{}.log" 2>&1; echo $? >"$folder/{}.rc"'
    for suite; do result "$folder" "$suite" "$(cat "$folder/$suite.rc")"; done
    echo "environment $name: $(($(date +%s) - begin)) s"
}

OMP_WAIT_POLICY=passive SPS_TEST_DATA=$here/../../data
export OMP_WAIT_POLICY SPS_TEST_DATA
for environment in $environments; do run "$environment" "$@"; done
! grep -rqs '^:test-result: FAIL' "$build/environments"
