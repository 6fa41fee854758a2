#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Rules that are checked in the sources, besides the order of the rooms
# (check_rooms.sh): where CUDA and LAPACK are used, what the tests of the
# interface include, names of devices, SPDX lines, no printing or ending of the
# process in the library, no number conversion that depends on the locale.
cd "${srcdir:-.}" || exit 99
[ -f lib/spsolve.h ] || { echo "no sources in $(pwd): set srcdir"; exit 99; }
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }

# sources FOLDER...: its C and CUDA files, generated ones left out
sources() {
    find "$@" -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) \
        ! -name 'registry_host.c' ! -name 'registry_cuda.c' \
        ! -name 'powers_of_ten.c' 2>/dev/null | sort
}

# "file header" for each #include of the files on standard input; what is in
# quotes keeps its quotes and loses its folder
includes() {
    while read -r file; do
        sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*\([<"][^>"]*[>"]\).*/\1/p' \
            "$file" | sed 's|^"\(.*/\)\{0,1\}|"|' | sed "s|^|$file |"
    done
}

# refuse ANGLED_REGEX FILE...: no such system header; deny: no such own one
refuse() {
    regex=$1; shift
    sources "$@" | includes | grep -E " <($regex)>" |
        sed 's/ / must not include /'
}

deny() {
    regex=$1; shift
    sources "$@" | includes | grep -E " \"($regex)\"" |
        sed 's/ / must not include /'
}

cuda='cuda.*|cublas.*|cusparse.*|cub/.*|thrust/.*|nvtx3/.*|nv/.*'
layers=$(
    refuse "$cuda" lib
    sources lib | grep -vE '^lib/block/(small|small_factors|small_first|upper|inverse)\.c$' | includes |
        grep -E ' <(lapacke|cblas)\.h>' | sed 's/ / must not include /'
    # Methods use block.h and operator.h, never a backend directly.
    deny 'backend.h' solvers | grep -vE '^solvers/(auto|eigen)/'
    refuse "$cuda|lapacke.h|cblas.h" solvers
    deny 'planner.h|options.h' kernels
    refuse "$cuda" kernels/cpu kernels/formats
    # Programs that are built by hand, outside of the library, may use CUDA.
    refuse "$cuda|lapacke.h|cblas.h" tools examples | grep -v '^tools/peers/'
    refuse "$cuda" tests | grep -v '^tests/[a-z_/]*\.cu '
    for file in tests/api/api_*.c; do
        [ -f "$file" ] || continue
        echo "$file" | includes | grep '"' | tr -d '"' |
            grep -vE ' (spsolve|absent|runner|fail_alloc|zoo|oracle|fixture|problem|rig|contract|least)\.h$' |
            sed 's/ / must not include /'
    done
    echo lib/spsolve.h | includes |
        grep -vE ' <(stdbool|stddef|stdint)\.h>$' | sed 's/ / must not include /'
)
[ -z "$layers" ] || fail "layers:
$layers"

# The engine names no method, preconditioner or kernel, in sources and headers:
# what is built in is found in the registry by the caller's names, or by flags
# of its table.  Only rows of options name what reads them.  In literals "auto"
# alone is the value of several options, which three files list; "none" is
# another and a word of sentences; the readers of files say what a dense matrix
# is.
#
# In identifiers and comments (spsolve.h describes what the library offers):
# auto, none, dense, factor and refinement are words of sentences.  An operation
# of the backend keeps the mathematical name of what it computes, also where a
# preconditioner has that name: csr_NAME, and matrix_NAME and sps_NAME_... of its
# arguments; so do the fused passes of conjugate gradients, fused_cg.  Rotations
# by Jacobi and the iteration of Chebyshev are formulas.
named=$(sed -n 's#^SPS_\(SOLVERS\|PRECONDS\|EIGENSOLVERS\) += .*/\([a-z0-9_]*\)\.c$#\2#p' \
            solvers/solvers.am
        ls kernels/cpu kernels/cuda/*/ | sed -n \
            's/^\(spmm\|spmv\|sddmm\)_\([a-z0-9_]*\)\.cu\{0,1\}$/\1[.]\2/p')
# code FILE...: "file:line:text" of each line that has a literal, comments cut
code() {
    awk 'FNR == 1 { inside = 0 }
         { text = $0; kept = ""
           while (text != "") {
               at = index(text, inside ? "*/" : "/*")
               if (!inside) kept = kept (at ? substr(text, 1, at - 1) : text)
               text = at ? substr(text, at + 2) : ""
               if (at) inside = !inside
           }
           if (kept ~ /"/) print FILENAME ":" FNR ":" kept }' "$@"
}
engine=$(code $(sources lib | grep -v '^lib/core/options_table\.c$') |
    grep -vE ':[[:space:]]*#[[:space:]]*include')
engine_names=$(for name in $named; do
    case $name in
    none) continue ;;
    auto) but='"auto"|^lib/(plan/planner|driver/nullspace|core/options_text)\.c:' ;;
    dense) but='^lib/io/' ;;
    *) but='^$' ;;
    esac
    printf "%s\n" "$engine" | grep -E "\"([^\"]*[^a-z0-9_.\"])?$name([^a-z0-9_.\"][^\"]*)?\"" |
        grep -vE "$but" | sed "s/:.*/ $name/"
done | sort -u)
[ -z "$engine_names" ] || fail "the engine names what is built in:
$engine_names"
words=$(for name in $named; do
    case $name in auto|none|dense|factor|refinement) ;; *) echo "$name" ;; esac
done | sed 's/\[[.]\]/[._]/' | paste -sd '|')
operations=$(sed -n 's/.*(\*csr_\([a-z0-9_]*\)).*/\1/p' lib/core/backend.h |
    paste -sd '|')
engine_words=$(sources lib | grep -vE '^lib/(core/options_table\.c|spsolve\.h)$' |
    xargs awk -v words="(^|[^a-z0-9])($words|refinement[.]c)([^a-z0-9]|\$)" \
        -v but="(csr|matrix|sps)_($operations)|fused_cg|jacobi rotation|chebyshev iteration" '
        { text = tolower($0); gsub(but, "", text) }
        text ~ words { print FILENAME ":" FNR ": " $0 }')
[ -z "$engine_words" ] || fail "the engine names what is built in:
$engine_words"

# Predictions and choices name no device: its numbers stand in the record of the
# context (lib/core/rates.h), which machine.h fills in.  Comments may say on
# what something was measured.
models='(T4|V100|A100|H100|H200|GH200|B200|GB200|B300|RTX)'
devices=$(sources lib kernels solvers | grep -v '^kernels/cuda/base/machine\.h$' |
    xargs grep -nE "[A-Za-z0-9]_$models([^A-Za-z0-9]|\$)|\"[^\"]*$models[^\"]*\"" |
    grep -vE ':[0-9]+:[[:space:]]*(\*|/\*|//)')
[ -z "$devices" ] || fail "constants or texts name a device:
$devices"

# The library prints nothing and never ends the process; the factor module's
# stand-ins are what others call to end it.
noise=$(sources lib kernels solvers |
    grep -v '^kernels/factor/standins\.c$' | xargs grep -nE \
    '(^|[^a-z_])(printf|puts|putchar|abort|exit|_exit|perror)[[:space:]]*\(' |
    grep -vE ':[0-9]+:[[:space:]]*(\*|/\*|//)')
[ -z "$noise" ] || fail "the library must not print or exit:
$noise"

# Matrices and options are read by the library's own parser: exact and
# independent of the locale.  The lines of wisdom may use libc.
libc=$(sources lib | grep -vE '^lib/plan/wisdom\.c$' | xargs grep -nE \
    '(^|[^a-z_])(v?[sf]?scanf|strto[dfl]+|ato[fil]+)[[:space:]]*\(' |
    grep -vE ':[0-9]+:[[:space:]]*(\*|/\*|//)')
[ -z "$libc" ] || fail "numbers must not be read by libc here:
$libc"

# A test that ends early has not passed: it must report that (runner.h).
silent=$(awk '/^START_TEST/ { inside = 1 }
              inside && /(^|[^a-z_])return( *;|$)/ { print FILENAME ":" FNR }
              /^END_TEST/ { inside = 0 }' $(sources tests))
[ -z "$silent" ] || fail "a test returns instead of runner_skip(\"why\"):
$silent"
# runner_skip returns from the function it is in: only a test, or a macro.
lost=$(awk 'FNR == 1 { inside = macro = 0 }
            /^START_TEST/ { inside = 1 }
            /runner_(skip|leave_out)\(/ && !inside && !macro &&
                !/^#define/ { print FILENAME ":" FNR }
            { macro = /\\$/ }
            /^END_TEST/ { inside = 0 }' $(sources tests))
[ -z "$lost" ] || fail "runner_skip ends a function that is no test:
$lost"
# A claim of solve_run.py ends early by Skip alone, which is counted.
silent=$(grep -nE '^ +return *(#.*)?$|print\(.*skip(ped|s)?[ :]' \
    tests/scripts/solve_run.py | grep -v 'print(f"skip {claim')
[ -z "$silent" ] || fail "solve_run.py: a claim ends early without Skip:
$silent"

# The command is spsolve; its link `solve` need not be installed.
old=$(grep -rnE '([|] |`)solve \\?-|(of solve,|"solve:) ' lib tools doc README.md \
    --include='*.[ch]' --include='*.md' --include='*.[13]' | grep -v '^doc/log/')
[ -z "$old" ] || fail "texts that call the command solve:
$old"

# License line, within the first two lines (scripts begin with #!).
for file in $(sources lib kernels solvers tools examples tests) \
    configure.ac Makefile.am autogen.sh quickstart lib/libspsolve.map \
    build-aux/nvcc-libtool.sh build-aux/registry.sh build-aux/powers_of_ten.sh \
    $(find lib kernels solvers tools examples tests bindings m4 \
        -name '*.am' -o -name '*.sh' -o -name '*.py' -o -name 'sps_*.m4' \
        -o -name 'pyproject.toml'); do
    [ -f "$file" ] || continue
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' ||
        fail "$file: no SPDX-License-Identifier line"
done

[ $failures -eq 0 ] && echo "layers, SPDX lines and forbidden calls: good"
exit $((failures > 0))
