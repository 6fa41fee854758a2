#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Measures every GPU figure of doc/benchmarks.md: block operations, kernels and
# whole solves by spbench, and CuPy (cuBLAS, cuSPARSE, cg) in the same call.
# Single parts can be named; all of them take about ten minutes on an H200.
#   usage: measure_gpu.sh BUILD_DIR OUT_DIR [blocks solve spmv spmm sddmm peers]
build=$1 out=$2
[ -x "$build/tools/spbench" ] && [ -n "$out" ] || { sed -n 6p "$0"; exit 2; }
shift 2
[ $# -gt 0 ] || set -- blocks solve spmv spmm sddmm peers
here=$(dirname "$0")
python=${PYTHON:-python3}
mkdir -p "$out"
failed=0

# bench FILE words...: appends spbench's tables to FILE.
bench() {
    file=$out/$1; shift
    echo "spbench $* -device cuda" >&2
    "$build/tools/spbench" "$@" -device cuda >>"$file" 2>&1 ||
        { echo "exit $?: spbench $*" | tee -a "$file"; failed=1; }
}

# The four systems of the benchmark, with random values.
systems() {
    file=$1; shift
    bench "$file" poisson7 160 -perturb 1 "$@"
    bench "$file" laplace27 128 -perturb 1 "$@"
    bench "$file" elasticity 64 -perturb 1 "$@"
    bench "$file" rmat 20 16 -perturb 1 "$@"
}

for part in "$@"; do
    case $part in
    blocks) bench blocks.md -blocks -n 4000000 -k 1,4,8,16,32,64 ;;
    solve)
        bench solve.md poisson7 160 -solve -k 16
        bench solve.md poisson7 160 -perturb 1 -solve -k 1,4,16,32
        bench solve.md laplace27 100 -solve -k 16
        bench solve.md elasticity 40 -solve -k 16 ;;
    spmv) systems spmv.md -k 1 -cold ;;
    spmm) systems spmm.md -k 4,8,16,32,64 ;;
    sddmm) systems sddmm.md -op sddmm -k 1,16,32 ;;
    peers)
        for job in 'cg -N 160' 'blocks -n 4000000' 'spmm -N 160'; do
            # shellcheck disable=SC2086
            $python "$here/cupy_peers.py" $job >>"$out/peers.md" 2>&1 ||
                failed=1
        done ;;
    *) echo "unknown part $part"; exit 2 ;;
    esac
done
exit $failed
