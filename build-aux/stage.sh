#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copies what a machine without compilers needs to run programs and tests into
# one folder that works wherever it is put:
#   bin/ lib/ tests/ examples/ data/    lib-fallback/: system libraries, for
#   machines that lack them             run-gpu-tests  env
#   usage: stage.sh FOLDER SRCDIR "SUITES" "PLACED SUITES" "PROGRAMS"
set -e
stage=$1 src=$2 suites=$3 placed=$4 programs=$5
rm -rf "$stage"
mkdir -p "$stage/bin" "$stage/lib/spsolve" "$stage/lib-fallback" \
    "$stage/tests/scripts" "$stage/examples"

# real PROGRAM: the binary itself, not libtool's script before it
real() {
    if [ -f "$(dirname "$1")/.libs/$(basename "$1")" ]; then
        echo "$(dirname "$1")/.libs/$(basename "$1")"
    else
        echo "$1"
    fi
}
for p in $programs; do
    case $p in examples/*) to=examples ;; *) to=bin ;; esac
    cp "$(real "$p")" "$stage/$to/"
done
[ ! -f "$stage/bin/spsolve" ] || ln -s spsolve "$stage/bin/solve"
for p in $suites $placed; do cp "$(real "$p")" "$stage/tests/"; done
cp -P .libs/libspsolve.so* "$stage/lib/"
[ ! -f .libs/libspsolve_private.so ] ||
    cp .libs/libspsolve_private.so "$stage/lib/"
for so in .libs/spsolve_mpi-*.so; do
    [ ! -f "$so" ] || cp "$so" "$stage/lib/spsolve/"
done
for so in .libs/spsolve_cuda.so .libs/spsolve_factor.so; do
    [ ! -f $so ] || cp $so "$stage/lib/spsolve/"
done
cp -R "$src/data" "$stage/data"
mkdir -p "$stage/doc"
cp "$src"/tests/scripts/*.sh "$src"/tests/scripts/*.py "$stage/tests/scripts/" \
    2>/dev/null || :
cp "$src"/doc/*.1 "$src"/tools/command/*.bash "$stage/doc/" 2>/dev/null || :

# The plain BLAS and LAPACK, where Debian keeps them, are a fifth of OpenBLAS
# and enough for small matrices.
reference=/usr/lib/$(uname -m)-linux-gnu
plain() {
    so=$1
    [ ! -f "$reference/$2/${so##*/}" ] || so=$reference/$2/${so##*/}
    cp -L "$so" "$stage/lib-fallback/"
}

# Libraries of this system: those of Check and of MUMPS always, BLAS and the
# like as a fallback, libc, the driver and libraries of CUDA never.
for file in "$stage"/bin/* "$stage"/tests/* "$stage"/lib/libspsolve.so \
    "$stage/lib/spsolve/spsolve_factor.so"; do
    LD_LIBRARY_PATH="$stage/lib" ldd "$file" 2>/dev/null || :
done | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u | while read -r so; do
    case ${so##*/} in
        libspsolve*) ;;
        libcheck*|libsubunit*) cp -L "$so" "$stage/lib/" ;;
        lib*mumps*|libscotch*|libmetis*|libpord*) cp -L "$so" "$stage/lib/" ;;
        libcusparse*|libnvJitLink*) ;;
        libc.so*|libm.so*|ld-*|libdl.*|librt.*|libpthread.*) ;;
        libopenblas*) [ -f "$reference/lapack/liblapack.so.3" ] ||
            cp -L "$so" "$stage/lib-fallback/" ;;
        liblapack.so*) plain "$so" lapack ;;
        libblas.so*) plain "$so" blas ;;
        *) cp -L "$so" "$stage/lib-fallback/" ;;
    esac
done
strip --strip-debug "$stage"/bin/* "$stage"/tests/* "$stage"/examples/* \
    "$stage"/lib/*.so* "$stage"/lib/spsolve/* 2>/dev/null || :

cat >"$stage/env" <<'END'
# Sourced from within the folder:  . ./env
SPS_STAGE=$(pwd)
LD_LIBRARY_PATH=$SPS_STAGE/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if ldd bin/spsolve | grep -q 'not found'; then
    LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$SPS_STAGE/lib-fallback
fi
PATH=$SPS_STAGE/bin:$PATH
SOLVE=$SPS_STAGE/bin/spsolve MTXGEN=$SPS_STAGE/bin/mtxgen
SPBENCH=$SPS_STAGE/bin/spbench srcdir=$SPS_STAGE
export LD_LIBRARY_PATH PATH SOLVE MTXGEN SPBENCH srcdir
END

{
    echo '#!/bin/sh'
    echo "placed='$(for p in $placed; do printf '%s ' "${p##*/}"; done)'"
    cat <<'END'
# Runs the suites of a place on the GPU (SPS_TEST_PLACE=cpu: on the host).
#   usage: run-gpu-tests [SUITE...]     WRAP="compute-sanitizer ..." before each
# A suite or a test that skips has failed, but by design: this machine is meant
# to have a GPU.  Last line: N passed, N failed, N skipped.  Logs are
# tests/SUITE.log, or in $LOGS.
cd "$(dirname "$0")" || exit 99
. ./env
SPS_TEST_PLACE=${SPS_TEST_PLACE:-cuda}
SPS_TEST_MODULE=1
export SPS_TEST_PLACE SPS_TEST_MODULE
logs=${LOGS:-tests}
passed=0 failed=0 skipped=0
for suite in ${*:-$placed}; do
    log=$logs/$suite.log
    start=$(date +%s)
    $WRAP "tests/$suite" >"$log" 2>&1
    code=$?
    sum=$(sed -n 's/^[0-9]*%: \(Checks: .*\)/\1/p' "$log" | tail -n 1)
    all=$(echo "$sum" | sed -n 's/^Checks: \([0-9]*\).*/\1/p')
    bad=$(echo "$sum" |
        sed -n 's/.*Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1 + \2/p')
    all=${all:-1} bad=$((${bad:-0}))
    [ $code -ne 0 ] && [ $bad -eq 0 ] && bad=1
    [ $bad -gt "$all" ] && all=$bad
    lost=0
    [ "$SPS_TEST_PLACE" != cuda ] || lost=$(grep -c '^skip [^ ]*:' "$log")
    cut=$(($(grep -c '^skip ' "$log") - lost)) bad=$((bad + lost))
    passed=$((passed + all - bad - cut)) failed=$((failed + bad))
    skipped=$((skipped + cut))
    echo "$suite: exit $code, ${sum:-no summary}, Skips: $((cut + lost))," \
        "$(($(date +%s) - start)) s"
    [ $lost -eq 0 ] || grep '^skip [^ ]*:' "$log" | sed 's/^/    failed: /'
    [ $code -eq 0 ] || grep -vE ':P:|^Running' "$log" | tail -n 15 |
        sed 's/^/    /'
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
END
} >"$stage/run-gpu-tests"
chmod +x "$stage/run-gpu-tests"
echo "staged in $stage: $(du -sh "$stage" | cut -f1)"
