# SPDX-License-Identifier: BSD-3-Clause
# SPS_WARNINGS: WARN_CFLAGS for all C, STRICT_CFLAGS for what is shipped;
# --enable-werror makes them errors (developers and automatic tests).
AC_DEFUN([SPS_WARNINGS], [
AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror],
  [warnings are errors])], [], [enable_werror=no])
WARN_CFLAGS="-Wall -Wextra -Wmissing-prototypes"
STRICT_CFLAGS="-Wconversion"
AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
AC_SUBST([WARN_CFLAGS])
AC_SUBST([STRICT_CFLAGS])
])

# SPS_SIMD: SIMD_CFLAGS, by which the compiler heeds `omp simd`.
AC_DEFUN([SPS_SIMD], [
AC_CACHE_CHECK([whether $CC takes -fopenmp-simd], [sps_cv_simd],
  [sps_save_CFLAGS=$CFLAGS
   CFLAGS="$CFLAGS -Werror -fopenmp-simd"
   AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])], [sps_cv_simd=yes],
     [sps_cv_simd=no])
   CFLAGS=$sps_save_CFLAGS])
SIMD_CFLAGS=
AS_IF([test $sps_cv_simd = yes], [SIMD_CFLAGS=-fopenmp-simd])
AC_SUBST([SIMD_CFLAGS])
])

# SPS_SANITIZE: --enable-sanitize[=LIST]; SANITIZE_FLAGS for compiler and
# linker, any finding ends the program.  The CUDA module is left out: its
# device code is checked by compute-sanitizer.
AC_DEFUN([SPS_SANITIZE], [
AC_ARG_ENABLE([sanitize], [AS_HELP_STRING([--enable-sanitize@<:@=LIST@:>@],
  [run-time checks, default list: address,undefined])],
  [], [enable_sanitize=no])
AS_IF([test "x$enable_sanitize" = xyes], [enable_sanitize=address,undefined])
SANITIZE_FLAGS=
AS_IF([test "x$enable_sanitize" != xno], [
  SANITIZE_FLAGS="-fsanitize=$enable_sanitize -fno-sanitize-recover=all"
  SANITIZE_FLAGS="$SANITIZE_FLAGS -fno-omit-frame-pointer"
  sps_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $SANITIZE_FLAGS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [],
    [AC_MSG_ERROR([$CC does not link with $SANITIZE_FLAGS])])
  CFLAGS=$sps_save_CFLAGS
])
AC_SUBST([SANITIZE_FLAGS])
AM_CONDITIONAL([SPS_SANITIZED], [test "x$enable_sanitize" != xno])
])

# SPS_CHECK: the Check framework, wanted by `make check` alone.
AC_DEFUN([SPS_CHECK], [
PKG_CHECK_MODULES([CHECK], [check >= 0.13],
  [sps_have_check=yes
   sps_check_says="Check `$PKG_CONFIG --modversion check`"],
  [sps_have_check=no
   sps_check_says="no Check framework: make check runs the scripts only"])
AM_CONDITIONAL([SPS_HAVE_CHECK], [test $sps_have_check = yes])
])
