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

# spsolve.1 tells of least squares: how they are judged, and how they are asked
# for.
part() { sed -n "/^\.SH $1\$/,/^\.SH $2\$/p" "$tmp/man"; }
for name in lsqr lsmr; do
    for section in "DESCRIPTION OPTIONS" "EXIT.STATUS FILES"; do
        part $section | grep -qw $name || fail "spsolve.1, $section: no $name"
    done
done
part EXAMPLES SEE.ALSO | grep -q '^least squares' ||
    fail "spsolve.1 has no example of least squares"

# spsolve.3 has every stop reason beside the exit code of tools/command/job.c,
# whose switch the compiler compares with spsolve.h.
sed 's/\\-/-/g; s/^\.BR* //' "$src/doc/spsolve.3" >"$tmp/man3"
awk '/^\.SS Stop reasons/ { on = 1; next } /^\.S/ { on = 0 } !on { next }
     tag { code = $1; tag = 0; next } /^\.TP/ { tag = 1; next }
     /^\.PP/ { code = "none" }
     { n = split($0, word, /[^A-Z_]+/)
       for (i = 1; i <= n; i++)
           if (word[i] ~ /^SPS_STOP_/) print word[i], code }' "$tmp/man3" |
    sort >"$tmp/told"
awk '/^static int exit_of_stop/ { on = 1 } /^}/ { on = 0 } !on { next }
     /case SPS_STOP_/ { split($2, word, ":"); name[++n] = word[1] }
     /EXIT_CONVERGED/ { code = 0 } /EXIT_NOT_CONVERGED/ { code = 1 }
     /EXIT_BREAKDOWN/ { code = 4 } /return 128/ { code = 128 }
     /break/ { code = "none" }
     /return|break/ { while (n) print name[n--], code }' \
    "$src/tools/command/job.c" | sort >"$tmp/exits"
[ "$(wc -l <"$tmp/exits")" -ge 16 ] || fail "few stop reasons in job.c"
diff "$tmp/told" "$tmp/exits" ||
    fail "spsolve.3, Stop reasons: not those of job.c"

# ... and every module that SPSOLVE_MODULE_PATH leads to.
for file in $(grep -oE '"spsolve_[a-z-]+\.so"' "$src/lib/core/module.c" |
    tr -d '"'); do
    sed -n '/^SPSOLVE_MODULE_PATH/,/^\.TP/p' "$tmp/man3" | grep -qF "$file" ||
        fail "spsolve.3, SPSOLVE_MODULE_PATH: no $file"
done

[ $failures -eq 0 ] && echo "names, and $checked defaults: good"
exit $((failures > 0))
