#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Texts written by hand against the tables: names of methods, preconditioners
# and kernels in README.md and spsolve.1, and names and defaults in the comments
# of sps_options (lib/spsolve.h).
solve=${SOLVE:-./tools/spsolve}
src=${srcdir:-.}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
"$solve" -list >"$tmp/list" || exit 99
"$solve" -help=man | sed 's/\\-/-/g' >"$tmp/man" || exit 99

# names KIND: those of the table; kernels of all builds, by their sources
names() { sed -n "s/^$1: //p" "$tmp/list"; }
kernels=$(grep -rhoE '\.name = "(spmm|spmv|sddmm)\.[a-z0-9_]+"' \
    "$src/kernels" | sed 's/.*"\(.*\)"/\1/')
[ "$(echo "$kernels" | wc -w)" -gt 25 ] || fail "few kernels in the sources"

# README.md has `spmm.tiles_single` also as `spmm.tiles` ... `_single`.
for name in auto $(names solvers) $(names eigensolvers) \
    $(names preconditioners) factor $kernels; do
    grep -qE "\`$name\`|\`${name%_*}\`.*\`_${name##*_}\`" "$src/README.md" ||
        fail "README.md does not name $name"
done
for name in $(echo "$kernels" | grep -v '^sddmm'); do
    grep -qE "[ ]$name(,|\$)" "$tmp/man" || fail "spsolve.1 does not name $name"
done

# "member: comment" for each member of sps_options
awk '/^typedef struct sps_options \{/ { on = 1; next } /^\} sps_options;/ { on = 0 }
     !on { next }
     match($0, /[a-z_0-9]+(, *[a-z_0-9]+)*(\[[0-9]\])?;/) && /\/\*\*</ {
         if (n) print n ": " t
         n = substr($0, RSTART, RLENGTH); gsub(/[,;]/, " ", n); t = "" }
     { sub(/.*\/\*\*</, ""); sub(/\*\//, ""); t = t " " $0 }
     END { print n ": " t }' "$src/lib/spsolve.h" |
    tr -s ' ' >"$tmp/comments"

# same WHAT EXPECTED FOUND: the same words in any order
same() {
    a=$(echo "$2" | tr ' ' '\n' | sort -u | xargs)
    b=$(echo "$3" | tr ' ' '\n' | sort -u | xargs)
    [ "$a" = "$b" ] || fail "spsolve.h, $1: $b, not $a"
}
same solver "auto $(names solvers) $(names eigensolvers)" \
    "$(sed -n 's/^solver *: //p' "$tmp/comments" |
       sed 's/for least squares//; s/for pairs//; s/[:;]//g')"
same precond "auto $(names preconditioners) factor" \
    "$(sed -n 's/^precond *: //p' "$tmp/comments" | sed 's/(.*)//')"

# The default, as spsolve.1 has it, is a word of the comment.
checked=0
sed -n '/^\.B -/{s/^\.B -\([a-z0-9-]*\).*/\1/;N;s/\n/ /
    s/^\([^ ]*\) .*[(; ]default \([^ )]*\))$/\1 \2/p;}' "$tmp/man" >"$tmp/defaults"
while read -r option value; do
    member=$(echo "$option" | tr - _)
    comment=$(sed -n "s/^\([a-z_0-9 ]* \)\{0,1\}$member\( [a-z_0-9 ]*\)\{0,1\}: //p" \
        "$tmp/comments")
    [ -n "$comment" ] || continue
    checked=$((checked + 1))
    [ "$member" != norm ] || value=SPS_NORM_$value
    echo "$comment" | tr ' ' '\n' | sed 's/[.,;:)(]*$//; s/^(//' |
        grep -qixF -e "$value" ||
        fail "spsolve.h, $member: the default, $value, is not in: $comment"
done <"$tmp/defaults"
[ $checked -ge 25 ] || fail "only $checked defaults were compared"
[ $failures -eq 0 ] && echo "names, and $checked defaults: good"
exit $((failures > 0))
