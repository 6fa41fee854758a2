#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tools of compute-sanitizer over the suites that run on a GPU, with their
# small set (SPS_TEST_QUICK); the suites of kernels once for each kernel.
#   usage: sanitize_gpu.sh [TOOL|SUITE|KERNEL...]    from within a stage
# All suites that take SPS_TEST_QUICK have a small set; others run whole.
# Words choose: memcheck racecheck synccheck initcheck, names of suites and of
# kernels; where none of a kind is named, all are taken.
#   JOBS     side by side (2); they share one GPU
#   LIMIT    seconds for one run (60)
#   SECONDS_IN_ALL  no further run is begun after that (1800)
#   LOGS     folder of logs (tests)
# Prints a line for each run and a table; exit 1 unless all are clean.
stage=$(cd "$(dirname "$0")/.." && pwd)
logs=${LOGS:-$stage/tests}

# Racecheck takes cuSPARSE's own kernels for racy: they keep partial sums in
# shared memory between barriers that it does not know.  They are not ours.
flags_of() {
    case $1 in
    racecheck) echo --kernel-regex-exclude kns=cusparse ;;
    esac
}

# one TOOL SUITE KERNEL: a run; its line goes to $logs/sanitize.lines, too
one() {
    tool=$1 suite=$2 kernel=$3 start=$(date +%s)
    log=$logs/$suite.$kernel.$tool.log
    if [ "$start" -ge "$END" ]; then
        echo "$tool $suite $kernel no-time 0"
        return
    fi
    [ "$kernel" = - ] || export SPS_TEST_KERNEL="$kernel"
    # shellcheck disable=SC2046
    timeout -k 5 "$LIMIT" compute-sanitizer --tool "$tool" $(flags_of "$tool") \
        --print-limit 5 --error-exitcode 9 "tests/$suite" >"$log" 2>&1
    code=$?
    found=$(sed -n 's/.*SUMMARY: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    case $code in
    0) what=clean; [ "${found:-0}" -eq 0 ] || what=$found-found ;;
    124|137) what=cut-off ;;
    9) what=${found:-some}-found ;;
    *) what=exit-$code ;;
    esac
    echo "$tool $suite $kernel $what $(($(date +%s) - start))"
}

cd "$stage" || exit 99
if [ "$1" = -one ]; then
    shift
    one "$@" | tee -a "$logs/sanitize.lines"
    exit 0
fi

# shellcheck disable=SC1091
. ./env
command -v compute-sanitizer >/dev/null ||
    { echo "sanitize_gpu.sh: no compute-sanitizer"; exit 77; }
SPS_TEST_PLACE=cuda SPS_TEST_MODULE=1 SPS_TEST_QUICK=1 CK_FORK=no
LIMIT=${LIMIT:-60} END=$(($(date +%s) + ${SECONDS_IN_ALL:-1800}))
export SPS_TEST_PLACE SPS_TEST_MODULE SPS_TEST_QUICK CK_FORK LIMIT END
export LOGS="$logs"

tools='' suites='' kernels=''
for word in "$@"; do
    case $word in
    memcheck|racecheck|synccheck|initcheck) tools="$tools $word" ;;
    *.*) kernels="$kernels $word" ;;
    *) suites="$suites $word" ;;
    esac
done
if [ -z "$suites" ]; then
    suites="conform_kernels conform_sddmm"
    [ -n "$kernels" ] || suites="$suites conform_backend conform_preconds \
check_block_cg conform_nonsymmetric conform_eigen check_lobpcg \
check_eigen_killers check_eigen_shift check_eigen_proof check_eigen_units \
check_graph"
fi
: "${kernels:=$("$SOLVE" -device cuda -list | sed -n 's/^kernels (cuda)://p')}"

# units: "SUITE KERNEL" for each run of a tool
units() {
    for suite in $suites; do
        case $suite in
        conform_kernels) of='spm' ;;
        conform_sddmm) of='sddmm' ;;
        *) echo "$suite -"; continue ;;
        esac
        for kernel in $kernels; do
            case $kernel in "$of"*) echo "$suite $kernel" ;; esac
        done
    done
}

: >"$logs/sanitize.lines"
for tool in ${tools:-memcheck racecheck synccheck initcheck}; do
    units | sed "s/^/$tool /"
done | xargs -P "${JOBS:-2}" -n 3 tests/sanitize_gpu.sh -one

awk '{ key = $2 " " $3; cell[key, $1] = $4 " (" $5 " s)"
       if (!(key in seen)) { seen[key] = 1; row[++rows] = key }
       if (!($1 in tool)) { tool[$1] = 1; column[++columns] = $1 }
       if ($4 == "clean") clean++ }
     END { printf "\n%-32s", "suite, kernel"
           for (c = 1; c <= columns; c++) printf " %-16s", column[c]
           print ""
           for (r = 1; r <= rows; r++) {
               printf "%-32s", row[r]
               for (c = 1; c <= columns; c++)
                   printf " %-16s", cell[row[r], column[c]]
               print ""
           }
           printf "%d of %d runs clean\n", clean, NR
           exit clean < NR }' "$logs/sanitize.lines"
