#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The layering rule (doc/architecture.md), read off the #include lines, and
# other rules that a machine can check in the sources: SPDX lines, no printing
# or ending of the process in the library, no locale-bound number reading.
cd "${srcdir:-.}" || exit 99
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }

# sources FOLDER...: its C and CUDA files, generated ones left out
sources() {
    find "$@" -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) \
        ! -name 'registry_host.c' ! -name 'registry_cuda.c' 2>/dev/null | sort
}

# "file header" for each #include of the files on standard input; what is in
# quotes keeps its quotes and loses its folder
includes() {
    while read -r file; do
        sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*\([<"][^>"]*[>"]\).*/\1/p' \
            "$file" | sed 's|^"\(.*/\)\{0,1\}|"|' | sed "s|^|$file |"
    done
}

# allow FOLDER QUOTED...: beside headers of its own, only these in quotes
allow() {
    folder=$1; shift
    own=$(sources "$folder" | sed -n 's|.*/\([^/]*h\)$|\1|p')
    sources "$folder" | includes | while read -r file header; do
        case $header in \<*) continue ;; esac
        name=$(echo "$header" | tr -d '"')
        for ok in $own "$@"; do
            [ "$name" = "$ok" ] && continue 2
        done
        echo "$file must not include \"$name\""
    done
}

# refuse ANGLED_REGEX FILE...: no such system header
refuse() {
    regex=$1; shift
    sources "$@" | includes | grep -E " <($regex)>" |
        sed 's/ / must not include /'
}

engine=$(sources lib | sed -n 's|.*/\([^/]*h\)$|\1|p')
cuda='cuda.*|cublas.*|cusparse.*|cub/.*|thrust/.*|nvtx3/.*|nv/.*'
layers=$(
    allow lib
    refuse "$cuda" lib
    sources lib | grep -vE '^lib/(small|upper|inverse)\.c$' | includes |
        grep -E ' <(lapacke|cblas)\.h>' | sed 's/ / must not include /'
    allow solvers spsolve.h status.h context.h traits.h timer.h csr.h small.h \
        basis.h block.h triangle.h order.h operator.h precond.h solver.h \
        single.h steps.h eigen.h upper.h
    refuse "$cuda|lapacke.h|cblas.h" solvers
    allow kernels $(echo "$engine" |
        grep -vE '^(solver|precond|columns|operator|planner|options)\.h$')
    refuse "$cuda" kernels/cpu kernels/formats
    # Benchmarks time kernels and backend slots, which are not public.
    allow tools spsolve.h philox.h | grep -v '^tools/bench_[a-z]*\.[ch] '
    allow examples spsolve.h
    # Programs built by hand, beside the library, may be of CUDA.
    refuse "$cuda|lapacke.h|cblas.h" tools examples | grep -v '^tools/peers/'
    refuse "$cuda" tests | grep -v '^tests/[a-z_]*\.cu '
    for file in tests/api_*.c; do
        [ -f "$file" ] || continue
        echo "$file" | includes | grep '"' | tr -d '"' |
            grep -vE ' (spsolve|runner|fail_alloc|zoo|oracle|fixture|problem|rig|contract)\.h$' |
            sed 's/ / must not include /'
    done
    echo lib/spsolve.h | includes |
        grep -vE ' <(stdbool|stddef|stdint)\.h>$' | sed 's/ / must not include /'
)
[ -z "$layers" ] || fail "layers:
$layers"

# Headers of the engine, lower ones first; none includes a higher one.
order="spsolve status context timer small csr traits number text sink options
    upper block triangle ilut backend kernel registry planner operator precond solver eigen"
rank() {
    i=0
    for h in $order; do
        i=$((i + 1))
        [ "$h.h" = "$1" ] && { echo $i; return; }
    done
    echo 0 # not ranked
}
above=$(find lib -name '*.h' | includes | grep '"' | tr -d '"' |
    while read -r file name; do
        a=$(rank "${file##*/}") b=$(rank "$name")
        [ "$a" -gt 0 ] && [ "$b" -gt "$a" ] && echo "$file includes $name"
    done)
[ -z "$above" ] || fail "a lower header includes a higher one:
$above"

# The library prints nothing and never ends the process.
noise=$(sources lib kernels solvers | xargs grep -nE \
    '(^|[^a-z_])(printf|puts|putchar|abort|exit|_exit|perror)[[:space:]]*\(' |
    grep -vE ':[0-9]+:[[:space:]]*(\*|/\*|//)')
[ -z "$noise" ] || fail "the library must not print or exit:
$noise"

# Matrices are read by our own parser: exact and free of the locale.  The
# text of options and the lines of wisdom may use libc.
libc=$(sources lib | grep -vE '^lib/(options|wisdom)\.c$' | xargs grep -nE \
    '(^|[^a-z_])(v?[sf]?scanf|strto[dfl]+|ato[fil]+)[[:space:]]*\(' |
    grep -vE ':[0-9]+:[[:space:]]*(\*|/\*|//)')
[ -z "$libc" ] || fail "numbers must not be read by libc here:
$libc"

# License line, within the first two lines (scripts begin with #!).
for file in $(sources lib kernels solvers tools examples tests) \
    configure.ac Makefile.am autogen.sh quickstart lib/libspsolve.map \
    build-aux/nvcc-libtool.sh build-aux/registry.sh \
    $(find lib kernels solvers tools examples tests m4 -name '*.am' \
        -o -name '*.sh' -o -name '*.py' -o -name 'sps_*.m4'); do
    [ -f "$file" ] || continue
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' ||
        fail "$file: no SPDX-License-Identifier line"
done

[ $failures -eq 0 ] && echo "layers, SPDX lines and forbidden calls: good"
exit $((failures > 0))
