#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Turns build lists into a C file of NULL-terminated tables: the line of a
# file in a list is its registration.  Order in the list breaks ties.
#   usage: registry.sh {TYPE PREFIX ARRAY {FILE} --}...
# FILE dir/NAME.c or .cu must define  const TYPE PREFIX_NAME.  With the TYPE
# char the table is one of run-time names, spmm.plain of spmm_plain.cu, with
# the TYPE word of the names as they are, and nothing need be linked.
echo "/* Made by build-aux/registry.sh from the build lists. */"
echo '#include "plan/planner.h"'
echo '#include "eigen/eigen.h"'
while [ $# -ge 3 ]; do
    type=$1 prefix=$2 array=$3 rows=
    shift 3
    echo
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        name=${1##*/}
        name=${name%.*}
        shift
        if [ "$type" = char ]; then
            rows="$rows    \"${name%%_*}.${name#*_}\",
"
            continue
        elif [ "$type" = word ]; then
            rows="$rows    \"$name\",
"
            continue
        fi
        echo "extern const $type ${prefix}_$name;"
        rows="$rows    &${prefix}_$name,
"
    done
    [ $# -gt 0 ] && shift
    [ "$type" = word ] && type=char
    echo "extern const $type *const $array[];"
    echo "const $type *const $array[] = {"
    echo "$rows    NULL"
    echo "};"
done
