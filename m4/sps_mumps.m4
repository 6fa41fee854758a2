# SPDX-License-Identifier: BSD-3-Clause
# SPS_MUMPS: decides whether the factor module is built.
#
#   --with-mumps=guess  (default) built where MUMPS without MPI is found
#   --with-mumps[=yes]  it must be found
#   --without-mumps     not built
#
# MUMPS_CPPFLAGS and MUMPS_LIBS may be set by the caller.  METIS, where it is
# found, orders large systems.  Sets condition SPS_WITH_MUMPS.
AC_DEFUN([SPS_MUMPS], [
AC_ARG_WITH([mumps], [AS_HELP_STRING([--with-mumps=no|guess|yes],
  [build the factor module (default: guess)])], [], [with_mumps=guess])
AC_ARG_VAR([MUMPS_CPPFLAGS], [preprocessor flags for dmumps_c.h])
AC_ARG_VAR([MUMPS_LIBS], [linker flags for MUMPS without MPI])
sps_mumps=no
sps_mumps_why=
AS_CASE([$with_mumps],
  [no], [sps_mumps_why="not wanted"],
  [guess|yes], [_SPS_MUMPS_FIND],
  [AC_MSG_ERROR([--with-mumps=$with_mumps: no, guess or yes; MUMPS_CPPFLAGS
  and MUMPS_LIBS name another place])])
AS_IF([test $sps_mumps = yes && test "x$enable_sanitize" != xno],
  [sps_mumps=no; sps_mumps_why="not with --enable-sanitize"])
AS_IF([test $sps_mumps = yes && test "x$enable_shared" = xno],
  [sps_mumps=no; sps_mumps_why="a static library cannot load it"])
AS_IF([test $sps_mumps = no && test "x$with_mumps" = xyes],
  [AC_MSG_ERROR([--with-mumps=yes: $sps_mumps_why])])
AS_IF([test $sps_mumps = no], [sps_mumps_says="not built ($sps_mumps_why)"],
  [sps_mumps_says="$MUMPS_LIBS"])
AM_CONDITIONAL([SPS_WITH_MUMPS], [test $sps_mumps = yes])
])

# Debian keeps the header of the library without MPI beside that of the one
# with it, and its mpi.h in mumps_seq/.
AC_DEFUN([_SPS_MUMPS_FIND], [
sps_save_LIBS=$LIBS
sps_save_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $MUMPS_CPPFLAGS"
AC_MSG_CHECKING([for MUMPS without MPI])
for sps_try in "$MUMPS_LIBS" "-ldmumps_seq" "-ldmumps_seq -lmumps_common_seq"
do
  test -n "$sps_try" || continue
  LIBS="$sps_try $sps_save_LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <dmumps_c.h>]],
    [[static DMUMPS_STRUC_C id; dmumps_c(&id); return MUMPS_VERSION@<:@0@:>@;]])],
    [sps_mumps=yes; MUMPS_LIBS=$sps_try])
  test $sps_mumps = yes && break
done
AC_MSG_RESULT([$sps_mumps])
AS_IF([test $sps_mumps = no],
  [sps_mumps_why="no MUMPS without MPI: libmumps-seq-dev"], [
  AC_MSG_CHECKING([for METIS])
  LIBS="-lmetis $sps_save_LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <metis.h>]],
    [[idx_t n = 0; return METIS_NodeND(&n, &n, &n, 0, 0, &n, &n) +
      1 / (IDXTYPEWIDTH == 32);]])],
    [MUMPS_LIBS="$MUMPS_LIBS -lmetis"
     MUMPS_CPPFLAGS="$MUMPS_CPPFLAGS -DSPS_HAVE_METIS=1"
     AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])])])
LIBS=$sps_save_LIBS
CPPFLAGS=$sps_save_CPPFLAGS
])
