#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the tools of compute-sanitizer on the suites for a GPU, with their small
# set (SPS_TEST_QUICK); suites of kernels once for each kernel, and others, with
# the slow tools, once for each of their cases.
#   usage: sanitize_gpu.sh [TOOL|SUITE|SUITE/CASE|KERNEL...]   within a stage
# All suites that read SPS_TEST_QUICK have a small set; others run completely.
# Of multigrid's set-up only a case of small systems ends under racecheck.
# Arguments select: memcheck racecheck synccheck initcheck, names of suites,
# their cases and kernels; where none of a kind is named, all are run.
#   JOBS     concurrent runs (2); they share one GPU
#   LIMIT    seconds for one run (60)
#   SECONDS_IN_ALL  no further run is started after that (1800)
#   BY_CASE  tools that run a suite case by case (racecheck)
#   LOGS     folder of logs (tests)
# Prints a line for each run and a table; exit 1 unless all are clean.
stage=$(cd "$(dirname "$0")/../.." && pwd)
logs=${LOGS:-$stage/tests}

# Racecheck reports cuSPARSE's kernels: they keep partial sums in shared memory
# between barriers that it does not recognise.  They are not this library's.
# Synccheck fails kernels with more barriers in shared memory than it expects.
# check_steps makes calls fail during graph capture: these are no findings.
flags_of() {
    case $1/$2 in
    synccheck/*) echo --num-cuda-barriers 64 ;;
    racecheck/*) echo --kernel-regex-exclude kns=cusparse ;;
    memcheck/check_steps) echo --report-api-errors no ;;
    esac
}

# one TOOL SUITE KERNEL CASE: a run; its line is also appended to
# $logs/sanitize.lines.  A run without any test is not clean.
one() {
    tool=$1 suite=$2 kernel=$3 case=$4 start=$(date +%s)
    log=$logs/$suite.$kernel.$case.$tool.log
    if [ "$start" -ge "$END" ]; then
        echo "$tool $suite $kernel $case no-time 0"
        return
    fi
    [ "$kernel" = - ] || export SPS_TEST_KERNEL="$kernel"
    [ "$case" = - ] || export CK_RUN_CASE="$case"
    # shellcheck disable=SC2046
    timeout -k 5 "$LIMIT" compute-sanitizer --tool "$tool" $(flags_of "$tool" "$suite") \
        --print-limit 500 --error-exitcode 9 "tests/$suite" >"$log" 2>&1
    code=$?
    found=$(sed -n 's/.*SUMMARY: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    case $code in
    0) what=clean; [ "${found:-0}" -eq 0 ] || what=$found-found
       grep -q 'Checks: [1-9]' "$log" || what=no-test ;;
    124|137) what=cut-off ;;
    9) what=${found:-some}-found ;;
    *) what=exit-$code ;;
    esac
    echo "$tool $suite $kernel $case $what $(($(date +%s) - start))"
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
    */*) suites="$suites $word" ;;
    *.*) kernels="$kernels $word" ;;
    *) suites="$suites $word" ;;
    esac
done
if [ -z "$suites" ]; then
    suites="conform_kernels conform_sddmm"
    [ -n "$kernels" ] || suites="$suites conform_backend check_fused \
check_block_ops check_shares check_steps conform_preconds check_block_cg \
conform_nonsymmetric conform_eigen conform_pencils check_lobpcg \
check_eigen_killers check_eigen_shift check_eigen_moved_shift check_eigen_nulls \
check_eigen_proof check_eigen_units check_eigen_graph \
check_amg_set_up/small_hierarchies_do_not_depend_on_the_place"
fi
: "${kernels:=$("$SOLVE" -device cuda -list | sed -n 's/^kernels (cuda)://p')}"

# cases TOOL SUITE: the cases that TOOL runs separately, or -
cases() {
    case " ${BY_CASE-racecheck} " in
    *" $1 "*) SPS_TEST_LIST=1 "tests/$2" | sed -n 's/^case //p' | grep . ||
        echo - ;;
    *) echo - ;;
    esac
}

# units TOOL: "TOOL SUITE KERNEL CASE" for each of its runs
units() {
    for suite in $suites; do
        case $suite in
        */*) of='' each=${suite#*/} suite=${suite%%/*} ;;
        *) of='' each='' ;;
        esac
        case $suite in
        conform_kernels) of='spm' ;;
        conform_sddmm) of='sddmm' ;;
        *) for case in ${each:-$(cases "$1" "$suite")}; do
               echo "$1 $suite - $case"
           done ;;
        esac
        for kernel in $kernels; do
            [ -n "$of" ] || break
            case $kernel in
            "$of"*) echo "$1 $suite $kernel ${each:--}" ;;
            esac
        done
    done
}

: >"$logs/sanitize.lines"
for tool in ${tools:-memcheck racecheck synccheck initcheck}; do
    units "$tool"
done | xargs -P "${JOBS:-2}" -n 4 tests/scripts/sanitize_gpu.sh -one

awk '{ key = $2 ($3 == "-" ? "" : " " $3) ($4 == "-" ? "" : " " $4)
       cell[key, $1] = $5 " (" $6 " s)"
       if (!(key in seen)) { seen[key] = 1; row[++rows] = key }
       if (length(key) > width) width = length(key)
       if (!($1 in tool)) { tool[$1] = 1; column[++columns] = $1 }
       if ($5 == "clean") clean++ }
     END { printf "\n%-*s", width, "suite, kernel or case"
           for (c = 1; c <= columns; c++) printf " %-16s", column[c]
           print ""
           for (r = 1; r <= rows; r++) {
               printf "%-*s", width, row[r]
               for (c = 1; c <= columns; c++)
                   printf " %-16s", cell[row[r], column[c]]
               print ""
           }
           printf "%d of %d runs clean\n", clean, NR
           exit clean < NR }' "$logs/sanitize.lines"
