#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The program spbench on the host: rows, lines for tables, exit codes.
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
failed=0
bad() { echo "FAILED: $*"; failed=1; }

# code WANTED words...: spbench must exit with that code.
code() {
    want=$1; shift
    "$SPBENCH" "$@" -device cpu -threads 2 >"$dir/out" 2>"$dir/err"
    got=$?
    [ $got -eq "$want" ] || bad "spbench $*: exit $got, not $want"
}

# Invalid arguments and files.
for line in '' 'poisson7 5 -A x.mtx' 'poisson7 5 -k 0' 'poisson7 5 -op trsv' \
    'poisson7 5 -precision half' 'poisson7 5 -run spmm:double' \
    'poisson7 5 -run spmm:double:1,x' 'poisson7 5 -tsv' 'poisson7 5 -blocks' \
    'poisson7 5 -solve -tsv x' '-blocks -precision single'; do
    # shellcheck disable=SC2086
    code 2 $line
    [ -s "$dir/err" ] || bad "$line: no text"
done
code 3 --A="$dir/none.mtx"
code 3 -A "$dir/none.mtx"
code 7 poisson7 5 -k 1 -once -tsv "$dir/none/x.tsv"
code 2 poisson7 5 -solve -k 1 -solver nothing
grep -q '^spbench: solver=nothing: unknown name' "$dir/err" ||
    bad "two texts run into one another"
code 2 poisson7 5 -kernel spmm.nothing
code 2 poisson7 5 -kernel spmm.tiles
grep -q 'spmm.tiles: runs on a GPU' "$dir/err" || bad "no word of the GPU"

# Three runs in one process: every case has its rows, a choice, and lines with
# as many words as the header.
code 0 rmat 7 4 -perturb 1 -seconds 0 -tsv "$dir/large.tsv" -replay -low \
    -run spmm:double:1,4 -run spmm:single:3 -run sddmm:double:5
grep -q WRONG "$dir/out" && bad "a kernel is wrong"
for kernel in spmm.ref spmm.omp sddmm.ref; do
    grep -q "^| $kernel " "$dir/out" || bad "no row of $kernel"
done
[ "$(grep -c 'within 10 % of its fastest candidate' "$dir/out")" -eq 3 ] ||
    bad "not three summaries"
awk -F '\t' 'NR == 1 { words = NF; next }
     NF != words { bad = 1 }
     $9 <= 0 || $1 != "rmat 7 4 -perturb 1" { bad = 1 }
     { cases[$5, $6, $7]; autos[$5, $6, $7] += $18 ~ /auto/ }
     END { for (c in cases) { n++; if (autos[c] != 1) bad = 1 }
           exit bad || n != 4 }' "$dir/large.tsv" || bad "lines for tables"

# MKL beside ours where it can be loaded, with one row for each width.
code 0 poisson7 6 -run spmm:double:1,4 -seconds 0
grep -q WRONG "$dir/out" && bad "a kernel is wrong on a grid"
if grep -q '^| mkl ' "$dir/out"; then
    [ "$(grep -c '^| mkl .*vendor best' "$dir/out")" -eq 2 ] ||
        bad "MKL is not timed at both widths"
else
    echo "skip mkl: it cannot be loaded"
fi

# The tables generated from them.
tables=${srcdir:-.}/tools/peers/kernel_tables.py
if command -v python3 >/dev/null && [ -f "$tables" ]; then
    python3 "$tables" "$dir" >"$dir/tables" || bad "kernel_tables.py fails"
    grep -q 'Within 10 % of the best of bidders: [0-4] of 4 cases' \
        "$dir/tables" || bad "kernel_tables.py lost cases"
    sed 's/auto[a-z ]*/WRONG/' "$dir/large.tsv" >"$dir/small.tsv"
    python3 "$tables" "$dir" | grep -q 'WRONG RESULT' ||
        bad "a wrong result is not named"
else
    echo "skip tables: no python3"
fi

[ $failed -eq 0 ] && echo "spbench: good"
exit $failed
