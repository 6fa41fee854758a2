# SPDX-License-Identifier: BSD-3-Clause
# SPS_MPI: decides which modules of MPI are built: one for each implementation
# that pkg-config knows (Debian: libopenmpi-dev, libmpich-dev).
#
#   --with-mpi=guess  (default) those that are found
#   --with-mpi[=yes]  one must be found
#   --without-mpi     none
#
# OPENMPI_CFLAGS, OPENMPI_LIBS, MPICH_CFLAGS, MPICH_LIBS may be set by the caller.
# Sets conditions SPS_WITH_OPENMPI and SPS_WITH_MPICH.
AC_DEFUN([SPS_MPI], [
AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi=no|guess|yes],
  [build the modules of MPI (default: guess)])], [], [with_mpi=guess])
sps_openmpi=no
sps_mpich=no
sps_mpi_why="no Open MPI or MPICH: libopenmpi-dev, libmpich-dev"
test "x$with_mpi" != xno || sps_mpi_why="not wanted"
AS_CASE([$with_mpi], [no|guess|yes], [],
  [AC_MSG_ERROR([--with-mpi=$with_mpi: no, guess or yes])])
AS_IF([test "x$enable_shared" = xno],
  [with_mpi=no; sps_mpi_why="a static library cannot load it"])
AS_IF([test "x$enable_sanitize" != xno && test "x$enable_sanitize" != x],
  [with_mpi=no; sps_mpi_why="not with --enable-sanitize"])
AS_IF([test $with_mpi != no], [
  PKG_CHECK_MODULES([OPENMPI], [ompi-c], [sps_openmpi=yes], [sps_openmpi=no])
  PKG_CHECK_MODULES([MPICH], [mpich], [sps_mpich=yes], [sps_mpich=no])
])
AS_IF([test $sps_openmpi = yes],
  [OPENMPI_VERSION=`$PKG_CONFIG --modversion ompi-c`])
AS_IF([test $sps_mpich = yes], [MPICH_VERSION=`$PKG_CONFIG --modversion mpich`])
AC_SUBST([OPENMPI_VERSION])
AC_SUBST([MPICH_VERSION])
sps_mpi_says=
AS_IF([test $sps_openmpi = yes], [sps_mpi_says="Open MPI $OPENMPI_VERSION"])
AS_IF([test $sps_mpich = yes],
  [sps_mpi_says="${sps_mpi_says:+$sps_mpi_says, }MPICH $MPICH_VERSION"])
AS_IF([test "x$sps_mpi_says" = x], [
  AS_IF([test "x$with_mpi" = xyes], [AC_MSG_ERROR([--with-mpi=yes: $sps_mpi_why])])
  sps_mpi_says="not built ($sps_mpi_why)"])
AM_CONDITIONAL([SPS_WITH_OPENMPI], [test $sps_openmpi = yes])
AM_CONDITIONAL([SPS_WITH_MPICH], [test $sps_mpich = yes])
])
