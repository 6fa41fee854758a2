#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The program mtxgen: what it writes, where, and its exit codes.
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
failed=0
bad() { echo "FAILED: $*"; failed=1; }

# code WANTED words...: mtxgen must exit with that code.
code() {
    want=$1; shift
    "$MTXGEN" "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    [ $got -eq "$want" ] || bad "mtxgen $*: exit $got, not $want"
}

# Every kind: as many lines as the header says, lower triangle if symmetric.
for line in 'poisson7 8 7 6' 'laplace27 5 -perturb 1' 'elasticity 4 3 5' \
    'convection 5' 'elasticity 3 -free -shift 0.5' 'rmat 8 4' 'rmat 8 4 -laplacian' 'poisson7 30' \
    'blocks 64 4 3 0.5' 'leastsquares 70 30 -cond 9 -deficient 3'; do
    # shellcheck disable=SC2086
    code 0 $line -quiet
    [ -s "$dir/err" ] && bad "$line: -quiet is not quiet"
    head -n 1 "$dir/out" | grep -q '^%%MatrixMarket matrix coordinate real' ||
        bad "$line: banner"
    sed -n 2p "$dir/out" | grep -q "^% mtxgen $line" || bad "$line: line 2"
    awk 'NR == 1 { lower = / symmetric$/ } NR == 3 { n = $1; m = $2; want = $3 }
         NR > 3 { if ($1 < 1 || $1 > n || $2 < 1 || $2 > m) bad = 1
                  if (lower && $2 > $1) bad = 1
                  count++ }
         END { exit bad || count != want }' "$dir/out" || bad "$line: lines"
done

# File, compressed file, standard output, any number of threads: same text.
code 0 laplace27 20 -perturb 3 -jump -threads 1 -o "$dir/a.mtx"
code 0 laplace27 20 -perturb 3 -jump -threads 3 -o "$dir/b.mtx.gz"
gzip -dc "$dir/b.mtx.gz" | sed 2d >"$dir/b" || bad "not gzip"
sed 2d "$dir/a.mtx" >"$dir/a"
cmp -s "$dir/a" "$dir/b" || bad "threads or .gz change the text"
code 0 laplace27 20 -perturb 3 -jump
sed 2d "$dir/out" | cmp -s - "$dir/a" || bad "standard output differs"

# The mass matrix and the coordinates together with the matrix.
code 0 elasticity 3 2 4 -o "$dir/k.mtx" -mass "$dir/m.mtx.gz" \
    -coords "$dir/xyz.mtx"
gzip -dc "$dir/m.mtx.gz" | sed -n 3p | grep -qx '72 72 72' || bad "-mass: size"
sed -n 3p "$dir/xyz.mtx" | grep -qx '24 3' || bad "-coords: size"
sed 1,3d "$dir/xyz.mtx" | awk '{ want = int((NR - 49) / 6)
        if (NR <= 48) want = int((NR - 25) / 3) % 2
        if (NR <= 24) want = (NR - 1) % 3
        if ($1 != want) exit 1 }
    END { exit NR != 72 }' || bad "-coords: numbers"
code 0 elasticity 3 2 4 -o "$dir/k.mtx" -mass "$dir/m.mtx" -consistent -quiet
sed -n 3p "$dir/m.mtx" | grep -qx '72 72 456' || bad "-consistent: size"

# Invalid arguments.
for line in '' 'poisson7' 'poisson7 0' 'poisson7 4 4' 'poisson7 4x' \
    'nothing 4' 'poisson7 4 -aniso' 'poisson7 4 -aniso -1' 'rmat 4' \
    'rmat 40 2' 'poisson7 4 -laplacian' 'rmat 4 2 -jump' \
    'rmat 4 2 -shift 1' 'blocks 64 4 2 1 -shift 1' 'poisson7 4 -shift -1' 'poisson7 4 -threads 0' 'poisson7 4 -o' \
    'poisson7 4 rmat 4 2' 'elasticity 4 1 4' 'poisson7 2000' \
    'poisson7 4 -perturb x' 'poisson7 4 -Jump' 'blocks 64 5 2 0.5' \
    'poisson7 4 -free' 'elasticity 3 -neumann' 'elasticity 1 4 4 -free' 'rmat 4 2 -mass x' \
    'poisson7 4 -mass -' 'poisson7 4 -consistent' \
    'poisson7 4 -mass x -coords x' 'blocks 64 4 17 0.5' 'blocks 64 4 2 1.5' 'blocks 64 4 2'; do
    # shellcheck disable=SC2086
    code 2 $line
    [ -s "$dir/err" ] || bad "$line: no text"
    [ -s "$dir/out" ] && bad "$line: wrote something"
done

code 2 poisson3d 10
grep -q "poisson3d; matrices are poisson7, laplace27, .*, leastsquares" \
    "$dir/err" || bad "the known matrices are not named"

# Output that cannot be written leaves nothing behind.
code 7 poisson7 4 -o "$dir/no/such/x.mtx"
code 7 poisson7 4 -o "$dir"
if [ -w /dev/full ]; then
    code 7 poisson7 30 -o /dev/full
fi
[ -z "$(find "$dir" -name '*.part')" ] || bad "a part was left"
for word in -help --help -h; do
    code 0 $word
    grep -q '^usage: mtxgen' "$dir/out" || bad "$word is no help"
done
for word in --version -V; do
    code 0 $word
    grep -q '^mtxgen [0-9]' "$dir/out" || bad "$word tells no version"
done
code 0 poisson7 8 --perturb=3 --quiet --threads 1 -o="$dir/form.mtx"
code 0 poisson7 8 -perturb 3 -quiet -threads 1 -o "$dir/forms.mtx"
sed 2d "$dir/form.mtx" | cmp -s - "$dir/forms.mtx" &&
    bad "the line of the command was not compared"
sed 2d "$dir/forms.mtx" >"$dir/ours"
sed 2d "$dir/form.mtx" | cmp -s - "$dir/ours" || bad "--name=value differs"
code 2 convection 4 -velocity=-1 -quiet
grep -q "velocity.*-1" "$dir/err" || bad "the value behind = is lost"
code 2 poisson7 8 --nonsense=1
code 0 -version
exit $failed
