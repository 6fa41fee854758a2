#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The command line of `spsolve`: help and the texts generated from it, option
# errors, exit codes.  Needs only a shell.
solve=${SOLVE:-./tools/spsolve}
src=${srcdir:-.}
data=$src/data
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failures=0
"$solve" -help >/dev/null || { echo "no $solve"; exit 99; }

fail() { echo "FAIL: $*"; failures=$((failures + 1)); }

# expect CODE WORDS ARGUMENT...: exit code, and text on standard error
expect() {
    code=$1 words=$2; shift 2
    "$solve" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; got=$?
    if [ $got -ne "$code" ]; then
        fail "solve $*: exit $got, not $code"; cat "$tmp/err"
    elif [ -n "$words" ] && ! grep -qF -- "$words" "$tmp/err"; then
        fail "solve $*: '$words' is not in:"; cat "$tmp/err"
    fi
}

p2=$data/poisson2d.mtx
quick="-nrhs 2 -device cpu -threads 1"

# --- help, manual page, completion: generated from one table, kept in the tree
expect 0 "" -help
"$solve" -help=man >"$tmp/man" || fail "-help=man"
"$solve" -help=completion >"$tmp/bash" || fail "-help=completion"
# every option, as the report names them: once in each of the three
"$solve" -A "$tmp/nowhere" -device cpu -json "$tmp/o.json" 2>/dev/null
names=$(sed -n '/^  "options"/,/^  }/s/^    "\(.*\)": .*/\1/p' "$tmp/o.json")
[ "$(echo "$names" | wc -w)" -gt 60 ] || fail "few options in the report"
once() { # FILE PATTERN NAME: one line of the file matches
    [ "$(grep -cE -- "$2" "$1")" -eq 1 ] ||
        fail "$3 stands $(grep -cE -- "$2" "$1") times in ${1##*/}, not once"
}
for o in $names; do
    d=$(echo "$o" | tr _ -)
    once "$tmp/out" "^  -$d([[ ]|\$)" "$d"
    once "$tmp/man" "^\.B .-$(echo "$d" | sed 's/-/.-/g')( |.fR|\$)" "$d"
    once "$tmp/bash" "^(        |.*-W ')$d('|\$)" "$d"
done
[ "$(grep -c '^  -' "$tmp/out")" -eq "$(echo "$names" | wc -w)" ] ||
    fail "the report has not the options that -help has"
for o in solver precond rtol max-iterations rank-tolerance block-size o eigs \
    nullspace nullspace-basis near-null-basis config help; do
    grep -q -- "^  -$o\b" "$tmp/out" || fail "-help does not list -$o"
done
awk 'length > 80 { exit 1 }' "$tmp/out" || fail "-help is wider than 80"
cmp -s "$tmp/man" "$src/doc/spsolve.1" ||
    fail "doc/spsolve.1 is old: make option-texts"
cmp -s "$tmp/bash" "$src/tools/command/spsolve.bash" ||
    fail "tools/command/spsolve.bash is old: make option-texts"
if command -v bash >/dev/null; then
    # completes WORDS IN-ORDER: the last word of the line
    completes() {
        want=$1; shift
        got=$(bash -c '. "$1"; shift; COMP_WORDS=("$@")
            COMP_CWORD=$(($# - 1)); _spsolve "$1"; echo "${COMPREPLY[@]}"' x \
            "$tmp/bash" "$@")
        [ "$got" = "$want" ] || fail "completion of $*: '$got', not '$want'"
    }
    completes jacobi solve -precond jac
    completes jacobi solve --precond jac
    completes jacobi solve --precond = jac
    completes -plot solve -pl
    completes --plot solve --pl
    completes "-max-seconds" solve -max-s
    completes "--max-seconds" solve --max-s
    completes spmm.ref "$solve" -kernel spmm.re
else
    echo "skip completion: no bash"
fi
expect 0 "" -version
grep -q '^cuda module:' "$tmp/out" || fail "-version tells no module state"
if [ -f .libs/spsolve_factor.so ]; then
    factors='^factor module: .*spsolve_factor.so (MUMPS [0-9.]*)$'
else
    factors='^factor module: absent: '
fi
for form in -version -list; do
    expect 0 "" $form
    grep -q "$factors" "$tmp/out" || fail "$form tells no factor module"
done
export SPSOLVE_MODULE_PATH="$tmp"
expect 0 "" -version
unset SPSOLVE_MODULE_PATH
grep -q "^factor module: absent: $tmp/spsolve_factor.so (absent)" "$tmp/out" ||
    fail "-version does not tell where it looked for the factor module"
for form in "-version" "--version" "-V"; do
    expect 0 "" $form
    grep -q '^spsolve (libspsolve)' "$tmp/out" || fail "$form tells no version"
done
for form in "--help" "-h"; do
    expect 0 "" $form
    grep -q '^usage: spsolve' "$tmp/out" || fail "$form is no help"
done
expect 0 "" -list
grep -q 'block_cg' "$tmp/out" || fail "-list has no block_cg"

# --- usage errors: exit 2 and the nearest name
expect 2 "-A FILE"
expect 2 "did you mean -nrhs?" -A $p2 -nrsh 4
expect 2 "did you mean -nrhs?" -A $p2 -n 4
expect 2 "did you mean -rtol?" -A $p2 -tol 1e-6
expect 2 "did you mean -A?" -a $p2
expect 2 "did you mean -precond?" -A $p2 -precon jacobi
expect 2 "did you mean -max-iterations?" -A $p2 -max-iteration=5
expect 2 "did you mean -max-iterations?" -A $p2 --ksp-max-it 5
expect 2 "did you mean -rank-tolerance?" -A $p2 --rank_tolerence 5
expect 2 "did you mean -max-iterations?" -A $p2 --maxitr=5
expect 2 "did you mean -max-seconds?" -A $p2 -max_tiem 5
expect 2 "unknown option ---rtol" -A $p2 ---rtol 1
expect 2 "is not an option" -A $p2 -
expect 2 "unknown option --" -A $p2 --
expect 2 "unknown option -zzzzzzz" -A $p2 -zzzzzzz
expect 2 "is not an option" $p2
expect 2 "-nrhs needs a value" -A $p2 -nrhs
expect 2 "-o needs a value" -A $p2 -o -quiet
expect 2 "neither yes nor no" -A $p2 -quiet=2
expect 2 "flexible=2: true or false" -A $p2 -flexible=2
expect 2 "-rtol needs a value" -A $p2 --rtol --quiet
expect 2 "not a whole number" -A $p2 -nrhs four
expect 2 "not a whole number" -A $p2 -nrhs 4x
expect 2 "outside 1 .. 1024" -A $p2 -nrhs 0
expect 2 "outside 1 .. 1024" -A $p2 -nrhs 1025
expect 2 "outside" -A $p2 -nrhs 99999999999999999999
expect 2 "rtol=1e-8x: a number is expected" -A $p2 -rtol 1e-8x
expect 2 "rtol=nan: a number is expected" -A $p2 -rtol nan
expect 2 "rtol=-1: it must lie in 0 to 1" -A $p2 -rtol -1
expect 2 "restart=0: it must lie in 1 to 1000" -A $p2 --restart=0
expect 2 "whole number" -A $p2 -seed -1
expect 2 "number of bytes" -A $p2 -maxmem 5Q
expect 2 "number of bytes" -A $p2 -maxdevmem 5Q
expect 2 "did you mean jacobi?" -A $p2 -precond jacobbi
expect 2 "did you mean block_cg?" -A $p2 -solver blok_cg
expect 2 "did you mean backward?" -A $p2 -norm backwards
expect 2 "did you mean cuda?" -A $p2 -device cud
expect 2 "unknown name 'gpu:x'" -A $p2 -device gpu:x
expect 2 "known: auto, none, jacobi" -A $p2 -precond zzzzzzzz
expect 2 "known: auto, cpu, cuda, cuda:N" -A $p2 -device gpu
expect 2 "known: auto, cpu, cuda, cuda:N" -A $p2 -device cuda:x
expect 2 "-kernel: unknown name" -A $p2 -device cpu -kernel spmm_omb
expect 2 "spmm.tiles runs on a GPU" -A $p2 -device cpu -kernel spmm.tiles
expect 2 "-norm absolute needs -atol" -A $p2 -norm absolute
expect 2 "-rtol or -atol must be above 0" -A $p2 -rtol 0
expect 2 "only one of -A" -A - -B -
expect 2 "only one of -o" -A $p2 -o - -json -
expect 2 "known: man, completion" -help=html
expect 2 "the name is empty" -A ""

# --- a configuration file; the command line has precedence
cat >"$tmp/good.conf" <<END
# nightly
nrhs = 3
-device = cpu
quiet = yes   # no report
max-iterations 7
-rank_tol = 1e-9
--solver=cg
END
expect 1 "" -A $p2 -config "$tmp/good.conf" -json "$tmp/c.json" -rtol 1e-14
grep -q '"nrhs": 3' "$tmp/c.json" || fail "-config: nrhs is not 3"
grep -q '"max_iterations": 7' "$tmp/c.json" ||
    fail "-config: max_iterations is not 7"
grep -q '"rank_tolerance": 1e-9' "$tmp/c.json" || fail "-config: -rank_tol"
grep -q '"solver": "cg"' "$tmp/c.json" || fail "-config: --solver=cg"
expect 1 "" -A $p2 -maxit 5 -config "$tmp/good.conf" -json "$tmp/c.json" \
    -rtol 1e-14
grep -q '"max_iterations": 5' "$tmp/c.json" ||
    fail "-config beats the command line"
printf 'nrhs = 3\nprecnd = jacobi\n' >"$tmp/bad.conf"
expect 2 "bad.conf:2: unknown option precnd; did you mean -precond?" -A $p2 \
    -config "$tmp/bad.conf"
printf 'nrhs = many\n' >"$tmp/bad.conf"
expect 2 "bad.conf:1: -nrhs: 'many'" -A $p2 -config "$tmp/bad.conf"
expect 3 "nowhere.conf" -A $p2 -config "$tmp/nowhere.conf"

# --- names of 0.1 that are now values of another option
expect 0 "" -A $p2 $quick -basis single --precond_precision=single \
    -json "$tmp/c.json"
grep -q '"precision": "mixed"' "$tmp/c.json" || fail "-basis single is lost"
expect 2 "basis=half: unknown name" -A $p2 -basis half

# --- the same bits for any number of BLAS threads
for t in 1 2; do
    OPENBLAS_NUM_THREADS=$t "$solve" -A $data/poisson3d.mtx -nrhs 200 \
        -maxit 6 -device cpu -threads $t -quiet -o "$tmp/bits$t" 2>/dev/null
done
cmp -s "$tmp/bits1" "$tmp/bits2" || fail "bits change with threads"

# --- outputs that would overwrite each other, or the matrix
cp $p2 "$tmp/p2.mtx"
expect 2 "-o and -json name the same file" -A $p2 -o "$tmp/1" -json "$tmp/1"
expect 2 "-monitor and -A name the same file" -A "$tmp/p2.mtx" \
    -monitor="$tmp/p2.mtx"
expect 2 "-o and -A name the same file" -A "$tmp/p2.mtx" -o "$tmp/p2.mtx"
(cd "$tmp" && ln -s p2.mtx link.mtx)
expect 2 "-o and -A name the same file" -A "$tmp/p2.mtx" -o "$tmp/./p2.mtx"
expect 2 "-o and -A name the same file" -A "$tmp/p2.mtx" -o "$tmp/link.mtx"
expect 2 "-json and -B name the same file" -A $p2 -B "$tmp/b.mtx" \
    -json "$tmp/b.mtx"
expect 2 "-plot and -x0 name the same file" -A $p2 -x0 "$tmp/b.mtx" \
    -plot "$tmp/b.mtx"
expect 2 "-o and -wisdom name the same file" -A $p2 -wisdom "$tmp/w" -o "$tmp/w"
: >"$tmp/c"
expect 2 "-json and -config name the same file" -config "$tmp/c" \
    -json "$tmp/c" -A $p2
cmp -s $p2 "$tmp/p2.mtx" || fail "-monitor or -o wrote over the matrix"
expect 0 "" -A $p2 $quick -o /dev/null -json /dev/null

# --- exit codes
expect 0 "" -A $p2 $quick
expect 1 "" -A $p2 $quick -maxit 3 -factors never
expect 1 "" -A $p2 --nrhs=2 --device cpu --threads=1 --max_iterations=3 --factors=never --quiet
expect 1 "" -A $data/poisson3d.mtx -device cpu -nrhs 64 -maxtime 1e-9
expect 3 "nowhere.mtx" -A "$tmp/nowhere.mtx"
expect 2 "did you mean constant? (nor is there such a file)" -A $p2 \
    -nullspace constants
expect 3 "nowhere.mtx" -A $p2 -nullspace-basis "$tmp/nowhere.mtx"
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n' \
    >"$tmp/range.mtx"
expect 3 "range.mtx:3" -A "$tmp/range.mtx"
printf '%%%%MatrixMarket matrix array real general\n2 1\n1\n1\n' >"$tmp/b2.mtx"
printf '%%%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1.0\n' \
    >"$tmp/wide.mtx"
expect 0 "" -A "$tmp/wide.mtx" -nrhs 3 -o "$tmp/x.mtx"
grep -q 'solver auto: lsmr, least squares, since the matrix is 2 x 3' \
    "$tmp/out" || fail "least squares are not told"
grep -q "normal .*worst .* of ||A|| ||r||" "$tmp/out" ||
    fail "the residual of the normal equations is not told"
sed -n 2p "$tmp/x.mtx" | grep -qx '3 3' || fail "X does not have 3 rows"
expect 0 "" -A "$tmp/wide.mtx" -solver lsqr -damp 1 -precond jacobi -quiet
printf '%%%%MatrixMarket matrix coordinate real general
3 2 4\n1 1 1\n2 1 2\n2 2 1\n3 2 3\n' >"$tmp/tall.mtx"
# Least squares by two files: X is (1, 2) where b is A X, and (-1, 2.5) / 23
# where A'A = [5 2; 2 10] and A'b = (0, 1).
printf '%%%%MatrixMarket matrix array real general
3 2\n1\n4\n6\n-2\n1\n0\n' >"$tmp/b32.mtx"
expect 0 "" -A "$tmp/tall.mtx" -B "$tmp/b32.mtx" -rtol 1e-12 -o "$tmp/x.mtx"
sed 1d "$tmp/x.mtx" | awk 'function far(a, b) { return (a - b) ^ 2 > 1e-20 }
    NR == 1 && $0 != "2 2" || NR == 2 && far($1, 1) || NR == 3 && far($1, 2) ||
    NR == 4 && far($1, -1 / 23) || NR == 5 && far($1, 2.5 / 23) { bad = 1 }
    END { exit bad || NR != 5 }' || { fail "X of least squares:"; cat "$tmp/x.mtx"; }
expect 3 "2 rows, but the matrix has 3" -A "$tmp/tall.mtx" -B "$tmp/b2.mtx"
expect 0 "" -A "$tmp/tall.mtx" -nrhs 3 -damp 0.5 -json "$tmp/damp.json"
grep -q "normal .*||A'r - d^2 x|| of |A| |r|" "$tmp/out" ||
    fail "damped normal equations are not told"
grep -q 'damped least squares; 3 of 3' "$tmp/out" || fail "damp is not told"
grep -q '"message": "converged in the sense of damped' "$tmp/damp.json" ||
    fail "the JSON report does not tell of damp"
grep -q "outside the range" "$tmp/out" "$tmp/damp.json" &&
    fail "with -damp, the report speaks of the range of A"
expect 0 "" -A "$tmp/tall.mtx" -nrhs 3
grep -q 'a part outside the range' "$tmp/out" || fail "the range is not told"
expect 1 "" -A "$tmp/tall.mtx" -maxit 1
grep -q 'try next .*-precond jacobi' "$tmp/out" || fail "no word of jacobi"
expect 1 "" -A "$tmp/tall.mtx" -maxit 1 -precond jacobi
grep -q 'try next  *a larger limit' "$tmp/out" || fail "no word of a limit"
grep -q 'try next .*-precond' "$tmp/out" && fail "jacobi is advised twice"
expect 3 "-eigs needs a square one" -A "$tmp/wide.mtx" -eigs 1
expect 3 "2 rows, but the matrix has 3 columns" -A "$tmp/wide.mtx" \
    -x0 "$tmp/b2.mtx"
expect 2 "gmres needs a square one" -A "$tmp/wide.mtx" -solver gmres
expect 2 "damp = 1 is for" -A $p2 -solver cg -damp 1
printf '%%%%MatrixMarket matrix array complex general\n2 1\n1 0\n1 0\n' \
    >"$tmp/c21.mtx"
expect 0 "" -A "$tmp/c21.mtx"
grep -q '2 rows, 1 columns' "$tmp/out" || fail "complex sizes are not told"
grep -q 'since the matrix is 2 x 1' "$tmp/out" ||
    fail "the note of complex least squares has other sizes than the file"
expect 2 "the matrix is 2 x 1; gmres" -A "$tmp/c21.mtx" -solver gmres
printf '%%%%MatrixMarket matrix array complex symmetric\n1 1\n1 1\n' \
    >"$tmp/c1.mtx"
expect 2 "not Hermitian" -A "$tmp/c1.mtx" -solver cg
expect 3 "900" -A $p2 -B "$tmp/b2.mtx"
expect 4 "" -A $data/indefinite.mtx $quick -solver cg -precond none
expect 4 "" -A $data/indefinite.mtx $quick -solver block_cg -precond none
expect 2 "not symmetric: it differs from its transpose by up to 0.5" \
    -A $data/convection.mtx $quick -solver block_cg
expect 0 "" -A $data/convection.mtx $quick
grep -q "solver auto: [a-z_]* with [a-z0-9]*, since" "$tmp/out" ||
    fail "the report does not tell what auto chose"
expect 0 "" -A $data/graph.mtx $quick -nullspace auto
grep -q 'less their part in the null space' "$tmp/out" ||
    fail "right-hand sides were drawn that no X meets"
grep -q 'in twice the working precision' "$tmp/out" ||
    fail "the report does not tell how residuals were formed"
printf '%%%%MatrixMarket matrix coordinate real symmetric
3 3 5\n1 1 1\n2 1 -1\n2 2 2\n3 2 -1\n3 3 1\n' >"$tmp/path.mtx"
printf '%%%%MatrixMarket matrix array real general\n3 1\n1\n1\n1.1\n' \
    >"$tmp/mean.mtx"
expect 1 "" -A "$tmp/path.mtx" -B "$tmp/mean.mtx"
grep -q 'status *the system is inconsistent' "$tmp/out" ||
    fail "an inconsistent system is not called one"
grep -q 'try next *-solver lsmr' "$tmp/out" ||
    fail "an inconsistent system is not sent to lsmr"
expect 0 "" -A "$tmp/path.mtx" -B "$tmp/mean.mtx" -solver lsmr
expect 0 "" -A "$tmp/path.mtx" -B "$tmp/mean.mtx" -nullspace constant
grep -q 'converged in the sense of least squares' "$tmp/out" ||
    fail "least squares are not told"
expect 3 "row 1, column 4 is -1" -A $data/graph.mtx $quick -laplacian
printf '%%%%MatrixMarket matrix coordinate pattern general
5 5 5\n1 2\n2 3\n3 1\n1 3\n4 4\n' >"$tmp/adjacency.mtx"
expect 0 "" -A "$tmp/adjacency.mtx" $quick -laplacian
for words in '3 edges, 3 connected components, 2 of a single vertex' \
    '1 self-loop is left out' '2 of 3 edges are directed'; do
    grep -q "$words" "$tmp/out" || fail "-laplacian does not tell '$words'"
done
# A spring between two nodes in the plane: free except for its length.
printf '%%%%MatrixMarket matrix coordinate real symmetric
4 4 3\n1 1 1\n3 1 -1\n3 3 1\n' >"$tmp/spring.mtx"
printf '%%%%MatrixMarket matrix array real general\n2 2\n0\n2\n0\n0\n' \
    >"$tmp/nodes.mtx"
expect 0 "" -A "$tmp/spring.mtx" $quick -rigid-body "$tmp/nodes.mtx"
grep -q 'dimension 3 projected out' "$tmp/out" ||
    fail "-rigid-body does not project 3 motions"
expect 0 "" -A "$tmp/spring.mtx" -eigs 1 -rigid-body "$tmp/nodes.mtx" \
    -device cpu
grep -q '1   [12]\.[09]\{8\}' "$tmp/out" ||
    fail "a free spring does not swing with eigenvalue 2"
expect 0 "" -A "$tmp/adjacency.mtx" -eigs 2 -laplacian -device cpu
grep -q '2   [23]\.[09]\{8\}' "$tmp/out" ||
    fail "a triangle's Laplacian has not the eigenvalues 3 and 3"
number='[0-9][0-9.e+-]*'
grep -Eq "^ +2 +$number +$number +$number +$number +converged" "$tmp/out" ||
    fail "-eigs does not tell bound, residual and backward error of each pair"
grep -Eq 'eigenvalue +\+- +residual +backward +status' "$tmp/out" ||
    fail "-eigs does not name the columns"
grep -q 'null space  dimension 3' "$tmp/out" ||
    fail "-laplacian -eigs does not count the zero eigenvalues"
# An indefinite mass matrix with a positive diagonal.
printf '%%%%MatrixMarket matrix coordinate real symmetric
4 4 5\n1 1 1\n2 1 2\n2 2 1\n3 3 1\n4 4 1\n' >"$tmp/mass.mtx"
expect 2 "x'M x is negative" -A "$tmp/spring.mtx" -M "$tmp/mass.mtx" -eigs 1 \
    -device cpu
sed 's/^3 1 -1$/3 1 -0.9/' "$tmp/spring.mtx" >"$tmp/held.mtx"
expect 2 "not span a null space" -A "$tmp/held.mtx" $quick -rigid-body "$tmp/nodes.mtx"
expect 3 "are 4 unknowns" -A $p2 $quick -rigid-body "$tmp/nodes.mtx"
expect 0 "" -A "$tmp/held.mtx" $quick -reorder morton -coords "$tmp/nodes.mtx"
grep -q 'Morton changes the bandwidth' "$tmp/out" ||
    fail "-reorder morton does not tell what it did"
expect 2 "add -coords" -A $p2 $quick -reorder morton
sed 's/^2 2$/3 1/' "$tmp/nodes.mtx" | sed '$d' >"$tmp/three.mtx"
expect 3 "is not a multiple of it" -A "$tmp/held.mtx" $quick -reorder morton \
    -coords "$tmp/three.mtx"
sed 's/^2 2$/1 4/' "$tmp/nodes.mtx" >"$tmp/four.mtx"
expect 3 "there must be 1 to 3" -A "$tmp/held.mtx" $quick -reorder morton \
    -coords "$tmp/four.mtx"
printf '%%%%MatrixMarket matrix coordinate real general
2 2 2\n1 1 nan\n2 2 1\n' >"$tmp/nan.mtx"
expect 4 "" -A "$tmp/nan.mtx" -allow-nonfinite -device cpu
grep -q 'worst inf, median inf' "$tmp/out" ||
    fail "the median of one residual is not the worst where it is NaN"
expect 2 "-o and -M name the same file" -A $p2 -eigs 2 -M m.mtx -o m.mtx
expect 2 "add -eigs K" -A $p2 -solver lobpcg
expect 2 "outside 1" -A $p2 -eigs 0
expect 2 "-which applies to eigenvalues only: add -eigs K" -A $p2 -which largest
expect 2 "-block applies to eigenvalues only: add -eigs K" -A $p2 -block 8
expect 2 "-M applies to eigenvalues only" -A $p2 -M $p2
expect 2 "omit -which largest" -A $p2 -eigs 2 -sigma 1 -which largest
printf '%%%%MatrixMarket matrix coordinate complex hermitian
4 4 1\n1 1 1 0\n' >"$tmp/complex.mtx"
expect 2 "is complex" -A "$tmp/held.mtx" -eigs 1 -M "$tmp/complex.mtx"
expect 2 "as many as unknowns, 4" -A "$tmp/held.mtx" -eigs 5
expect 2 "lobpcg finds eigenvalues" -A $p2 -eigs 2 -solver cg
expect 2 "applies to A X = B only" -A $p2 -eigs 2 -reorder rcm
expect 2 "omit -nullspace constant" -A $p2 -nullspace constant \
    -rigid-body "$tmp/nodes.mtx"
printf '%%%%MatrixMarket matrix coordinate real symmetric
4 4 4\n1 1 2\n2 1 -1\n2 2 2\n4 4 3\n' >"$tmp/row.mtx"
expect 0 "" -A "$tmp/row.mtx" $quick
grep -q '1 row of A contains only zeros' "$tmp/out" ||
    fail "an empty row is not told"
expect 0 "" -A $data/hermitian.mtx $quick
expect 0 "" -A $data/elasticity2d.mtx $quick -precond block_jacobi
CUDA_VISIBLE_DEVICES= expect 6 "" -A $p2 -device cuda
expect 2 "use a name that ends in .svg" -A $p2 $quick -plot "$tmp/x.png"
[ -e "$tmp/x.png" ] && fail "-plot x.png wrote x.png"
expect 0 "" -A $p2 $quick -plot "$tmp/x.SVG"
# -device auto compares the size with the cost of starting a GPU; a file that is
# no module shows whether loading it is tried.
echo garbage >"$tmp/no_module.so"
auto() {
    SPSOLVE_MODULE_PATH=$tmp/no_module.so CUDA_VISIBLE_DEVICES= \
        expect 0 "" "$@" -maxit 1 -rtol 1 -json "$tmp/auto.json"
}
auto -A $p2 -nrhs 2
grep -q 'device auto: the host, since 900 rows and 2 columns' "$tmp/auto.json" ||
    fail "-device auto does not say why it took the host"
grep -q '"cuda_module": "not asked for"' "$tmp/auto.json" ||
    fail "a small system looks for a GPU"
for words in "-nrhs 512" "-kernel spmm.ref"; do
    auto -A $p2 $words
    grep -q 'running on the host: no GPU' "$tmp/auto.json" ||
        fail "-device auto $words does not look for a GPU"
done
expect 5 "" -A $p2 $quick -maxmem 1K
# With little address space threads of OpenBLAS find no memory: the command says
# so and ends.  OpenBLAS itself may need more to be loaded (0.3.29: 300 MB).
within() {
    (ulimit -v "$1"; shift; timeout -s KILL 20 "$solve" "$@" >/dev/null 2>&1)
}
if [ -z "$SANITIZE_FLAGS" ] && command -v timeout >/dev/null; then
    for space in 200000 300000 400000 500000; do
        within $space -version && break
    done
    for run in "1 0" "40 5"; do
        within $space -A $p2 -device cpu -nrhs ${run% *} -quiet
        got=$?
        [ $got -eq ${run#* } ] || [ $got -eq 0 ] ||
            fail "ulimit -v $space, ${run% *} columns: exit $got"
    done
else
    echo "skip address space: a sanitizer needs it, or no timeout"
fi
expect 7 "nowhere" -A $p2 $quick -o "$tmp/nowhere/x.mtx"
expect 7 "nowhere" -A $p2 $quick -json "$tmp/nowhere/x.json"
[ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "-json nowhere is told twice"
expect 7 "nowhere" -A $p2 $quick -plot "$tmp/nowhere/x.svg"
expect 7 "nowhere" -A $p2 $quick -monitor="$tmp/nowhere/x.tsv"
expect 7 "directory" -A $p2 $quick -o "$tmp"
(ulimit -f 8 2>/dev/null && "$solve" -A $data/poisson3d.mtx -nrhs 16 \
    -device cpu -o "$tmp/limited.mtx" >/dev/null 2>&1)
[ $? -eq 7 ] || fail "beyond the limit of file sizes: not 7"
ls "$tmp" | grep -q limited && fail "beyond the limit: a file is left"
if [ -c /dev/full ]; then
    expect 7 "" -A $p2 $quick -o /dev/full
    expect 7 "" -A $p2 $quick -json /dev/full
    [ -c /dev/full ] || fail "/dev/full was replaced"
    "$solve" -A $p2 $quick >/dev/full 2>"$tmp/err"
    [ $? -eq 7 ] || fail "report to a full device: not 7"
fi

# --- a matrix scaled by 1e-170: auto continues, block_cg names another method
awk '/^%/ { print; next } !size { print; size = 1; next }
     { print $1, $2, $3 "e-170" }' "$p2" >"$tmp/unit.mtx"
expect 0 "" -A "$tmp/unit.mtx" $quick
expect 4 "" -A "$tmp/unit.mtx" $quick -solver block_cg
grep -q -- "-solver cg: products" "$tmp/out" || fail "no word of cg"
expect 0 "" -A "$tmp/unit.mtx" $quick -solver cg

# --- quiet prints nothing; pipes get no progress line
expect 0 "" -A $p2 $quick -quiet
[ -s "$tmp/out" ] || [ -s "$tmp/err" ] && fail "-quiet is not quiet"
expect 0 "" -A $p2 $quick
[ -s "$tmp/err" ] && fail "something on standard error of a good run"
grep -q "$(printf '\r')" "$tmp/out" && fail "a progress line in a pipe"
expect 1 "columns converged" -A $p2 $quick -maxit 3 -factors never -quiet

[ $failures -eq 0 ] && echo "all good"
exit $((failures > 0))
