#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes ./configure.  Needs autoconf, automake, libtool and pkg-config.
set -e
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize pkg-config; do
    command -v $tool >/dev/null || {
        echo "autogen.sh: $tool is missing (./quickstart installs it)" >&2
        exit 1
    }
done
autoreconf -fi
