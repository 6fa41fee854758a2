# SPDX-License-Identifier: BSD-3-Clause
# SPS_LAPACKE: LAPACKE_CFLAGS, LAPACKE_LIBS.  The names in order: what the
# caller sets, lapacke.pc, -llapacke, and the libraries that carry LAPACKE
# inside.  Generic names come first, so that the system's choice of BLAS holds.
AC_DEFUN([SPS_LAPACKE], [
AC_ARG_VAR([LAPACKE_CFLAGS], [compiler flags for LAPACKE])
AC_ARG_VAR([LAPACKE_LIBS], [linker flags for LAPACKE])
AS_IF([test -z "$LAPACKE_LIBS"], [
  AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists lapacke], [
    LAPACKE_CFLAGS="$LAPACKE_CFLAGS `$PKG_CONFIG --cflags lapacke`"
    LAPACKE_LIBS=`$PKG_CONFIG --libs lapacke`
  ])
])
sps_save_LIBS=$LIBS
sps_save_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $LAPACKE_CFLAGS"
sps_found=no
AC_MSG_CHECKING([for LAPACKE])
for sps_try in "$LAPACKE_LIBS" "-llapacke" "-llapacke -llapack" "-lopenblas"
do
  test -n "$sps_try" || continue
  LIBS="$sps_try $sps_save_LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <lapacke.h>]],
    [[double a = 4; return LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', 1, &a, 1)
                         + (LAPACKE_dlange(LAPACK_ROW_MAJOR, 'F', 1, 1, &a, 1)
                            < 0);]])],
    [sps_found=yes; LAPACKE_LIBS=$sps_try])
  test $sps_found = yes && break
done
AC_MSG_RESULT([${LAPACKE_LIBS:-no}])
LIBS=$sps_save_LIBS
CPPFLAGS=$sps_save_CPPFLAGS
AS_IF([test $sps_found = no], [AC_MSG_ERROR([LAPACKE is missing: install
  liblapacke-dev (Debian, Ubuntu), or name it with LAPACKE_CFLAGS and
  LAPACKE_LIBS])])
])

# SPS_ZLIB: ZLIB_CFLAGS, ZLIB_LIBS.
AC_DEFUN([SPS_ZLIB], [
PKG_CHECK_MODULES([ZLIB], [zlib], [], [
  AC_CHECK_HEADER([zlib.h], [], [AC_MSG_ERROR([zlib is missing: install
  zlib1g-dev])])
  ZLIB_LIBS=-lz])
])
