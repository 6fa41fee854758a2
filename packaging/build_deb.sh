#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Debian packages from a tarball of `make dist`, and what lintian says of them.
#   usage: build_deb.sh TARBALL FOLDER [ARGUMENT OF DPKG-BUILDPACKAGE...]
here=$(cd "$(dirname "$0")" && pwd)
tarball=$(realpath "$1") to=$2
shift 2
version=$(basename "$tarball" | sed 's/libspsolve-\(.*\)\.tar.*/\1/')
rm -rf "$to" && mkdir -p "$to" && cd "$to" || exit 1
cp "$tarball" "libspsolve_$version.orig.tar.${tarball##*.}" &&
    tar xf "$tarball" && cd "libspsolve-$version" &&
    cp -R "$here/debian" debian && dpkg-buildpackage -us -uc "$@" &&
    cd .. && lintian --fail-on error ./*.changes && ls ./*.deb
