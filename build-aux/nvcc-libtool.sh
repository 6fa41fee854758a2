#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Stands between libtool and nvcc: host flags that nvcc does not know
# (-fPIC, -W..., -pthread) go on as one word -Xcompiler=FLAG; libtool would
# reorder two words.  Everything else passes unchanged.
#   usage: nvcc-libtool.sh NVCC ARGUMENT...
nvcc=$1
shift
for arg; do
    shift
    case $arg in
        -f*|-W*|-pthread) set -- "$@" "-Xcompiler=$arg" ;;
        *) set -- "$@" "$arg" ;;
    esac
done
exec "$nvcc" "$@"
