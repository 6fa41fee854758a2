#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Measures the two tables of kernels: large generated systems, and the small
# matrices of a folder, captured and replayed as CUDA graphs.  Searches for
# widths k that are much slower than k - 1, and measures matrices of blocks by
# their fill.
#   usage: measure_kernels.sh BUILD_OR_STAGE OUT [large small cliff blocks]
# BUILD_OR_STAGE has tools/spbench, or bin/spbench, lib and env (make stage).
# OUT/large.tsv, small.tsv and the tables with them are read by
# kernel_tables.py.
#   MATRICES       folder of .mtx and .mtx.gz (small)
#   LARGE_SECONDS  seconds after which no further large system is started (240)
#   SMALL_SECONDS  the same for the small matrices (120)
#   SAMPLE         seconds of sampling for each measurement (0.05)
#   DEVICE         cuda
place=$1 out=$2
[ -n "$out" ] && [ -d "$place" ] || { sed -n 6p "$0"; exit 2; }
shift 2
[ $# -gt 0 ] || set -- large small cliff blocks
mkdir -p "$out"
out=$(cd "$out" && pwd)
sample=${SAMPLE:-0.05} device=${DEVICE:-cuda}
matrices=${MATRICES:+$(cd "$MATRICES" && pwd)}
if [ -x "$place/bin/spbench" ]; then
    cd "$place" || exit 2
    # shellcheck disable=SC1091
    . ./env
    spbench=$SPBENCH
else
    spbench=$place/tools/spbench
fi
[ -x "$spbench" ] || { echo "no spbench in $place"; exit 2; }
failed=0

# begin SECONDS starts the time limit of a part; left tells whether it has not
# been reached.
begin() { end=$(($(date +%s) + $1)); }
left() { [ "$(date +%s)" -lt "$end" ]; }

# bench FILE words...: appends tables to FILE.md and lines to FILE.tsv
bench() {
    file=$out/$1; shift
    left || { echo "out of time: $*" | tee -a "$file.md" >&2; return; }
    "$spbench" "$@" -device "$device" -tsv "$file.tsv" >>"$file.md" 2>&1 ||
        { echo "exit $?: spbench $*" | tee -a "$file.md" >&2; failed=1; }
}

large() {
    bench large "$@" -perturb 1 -seconds "$sample" \
        -run spmm:double:1,2,4,8,9,12,16,32,33,64,128 \
        -run sddmm:double:16,32,128 -run sddmm:single:16,32,128
    bench low "$@" -perturb 1 -seconds "$sample" -low \
        -run spmm:single:16,64
}

# Prints the number of nonzeros by the header, of both triangles if only one is
# stored.
nonzeros() {
    case $1 in *.gz) gzip -dc "$1" ;; *) cat "$1" ;; esac 2>/dev/null |
        awk 'NR == 1 { twice = /symmetric|hermitian/ } /^%/ { next }
             { print $3 * (twice ? 2 : 1); exit }'
}

for part in "$@"; do
    case $part in
    large)
        begin "${LARGE_SECONDS:-240}"
        large rmat 20 16
        large poisson7 160
        large laplace27 128
        large elasticity 64
        large convection 128 ;;
    small)
        [ -n "$matrices" ] || { echo "small: no MATRICES"; failed=1; continue; }
        begin "${SMALL_SECONDS:-120}"
        for file in "$matrices"/*.mtx "$matrices"/*.mtx.gz; do
            [ -f "$file" ] && [ "$(nonzeros "$file")" -gt 100000 ] || continue
            (cd "$matrices" && bench small -A "${file##*/}" -perturb 1 \
                -replay -seconds "$sample" -k 1,16,64) || failed=1
        done ;;
    cliff)
        begin "${LARGE_SECONDS:-240}"
        for system in 'rmat 20 16' 'poisson7 160' 'laplace27 128' \
            'elasticity 64' 'convection 128' 'rmat 18 16' 'poisson7 100' \
            'laplace27 80' 'elasticity 48'; do
            left || continue
            # shellcheck disable=SC2086
            "$spbench" $system -perturb 1 -cliff -seconds 0.01 \
                -device "$device" >>"$out/cliff.md" 2>&1 || failed=1
        done ;;
    blocks)
        begin "${LARGE_SECONDS:-240}"
        for fill in 0.25 0.5 0.75 1.0; do
            bench blocks blocks 262144 16 8 $fill -all -seconds "$sample" \
                -run spmm:double:16,64
            bench blocks blocks 262144 32 4 $fill -all -seconds "$sample" \
                -run spmm:double:16,64
        done ;;
    *) echo "unknown part $part"; exit 2 ;;
    esac
done
exit $failed
