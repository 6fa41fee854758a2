#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Files of packages parse, have the version of configure, and install what there
# is: each path that Debian's lists name is in the tree or in Makefile.am.
src=$(cd "${srcdir:-.}" && pwd)
version=$(sed -n 's/^VERSION = //p' Makefile)
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
cd "$src/packaging" || exit 99

[ -n "$version" ] || fail "no version in the Makefile"
head -n 1 debian/changelog | grep -q "^libspsolve ($version-[0-9]*) " ||
    fail "debian/changelog has another version than $version"
license=$(sed '1,4d' "$src/LICENSE" | sed 's/^$/./; s/^/ /')
[ "$(sed '1,/^License: BSD-3-Clause$/d' debian/copyright |
    sed '1,/^License: BSD-3-Clause$/d')" = "$license" ] ||
    fail "debian/copyright has another license than LICENSE"
while read -r path; do
    case $path in
        debian/*|usr/*) ;;
        *) ls $src/$path >/dev/null 2>&1 || fail "debian/: no $path" ;;
    esac
done <<END
$(cat debian/*.examples debian/docs)
END
# A module that configure would guess depends on what the builder happens to
# have, and Debian's build then fails with a file that no package installs.
for recipe in debian/rules conda/meta.yaml spack/package.py; do
    for module in cuda mumps mpi; do
        grep -qE -e "--with(out)?-$module|with_or_without\(\"$module\"" \
            $recipe || fail "$recipe leaves it to configure whether $module"
    done
done
python3 - "$version" <<'END' || fail "conda or spack"
import ast
import sys

version = sys.argv[1]
with open("spack/package.py", encoding="utf-8") as f:
    tree = ast.parse(f.read())
made = [n for n in tree.body if isinstance(n, ast.ClassDef)]
assert [n.name for n in made] == ["Libspsolve"]
versions = [c.args[0].value for c in ast.walk(tree)
            if isinstance(c, ast.Call) and getattr(c.func, "id", "") == "version"]
assert versions == [version], versions
try:
    import jinja2
    import yaml
except ImportError as e:
    print("skip conda:", e)
    sys.exit()
with open("conda/meta.yaml", encoding="utf-8") as f:
    text = f.read()
recipe = yaml.safe_load(jinja2.Template(text).render(
    compiler=lambda name: name, pin_subpackage=lambda *a, **k: a[0]))
assert recipe["package"] == {"name": "libspsolve", "version": version}
assert {"build", "host", "run"} <= set(recipe["requirements"])
END
exit $((failures > 0))
