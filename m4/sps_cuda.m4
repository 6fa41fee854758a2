# SPDX-License-Identifier: BSD-3-Clause
# SPS_CUDA: decides whether the CUDA module is built, and for which GPUs.
#
#   --with-cuda=guess   (default) built where nvcc is found, else not
#   --with-cuda[=yes]   nvcc must be found, in PATH or /usr/local/cuda
#   --with-cuda=DIR     the toolkit in DIR, which must work
#   --without-cuda      not built
#   --with-cuda-arch="80 90"  SASS for these; "native": the GPU of this
#       machine; "release": all of the list below that this nvcc knows, and
#       PTX of the newest for GPUs to come.  Default: native where there is a
#       GPU, else 90.  The kernels need 80 or newer.
#
# Sets NVCC, NVCC_GENCODE, CUDA_CPPFLAGS, CUDA_LIBDIR, CUDA_LIBS,
# CUDA_ARCHITECTURES, condition SPS_WITH_CUDA.
AC_DEFUN([SPS_CUDA], [
AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=no|guess|yes|DIR],
  [build the CUDA module (default: guess)])], [], [with_cuda=guess])
AC_ARG_WITH([cuda-arch], [AS_HELP_STRING([--with-cuda-arch=LIST],
  [e.g. "80 90", native, release])], [], [with_cuda_arch=default])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS],
           [CUDA compiler flags, default "-O1"; profilers want -lineinfo])
# -O is that of the host code, which only launches kernels; device code is
# always optimised fully.
: ${NVCCFLAGS="-O1"}

sps_cuda=no
sps_cuda_why=
AS_CASE([$with_cuda],
  [no], [sps_cuda_why="not wanted"],
  [guess|yes], [_SPS_CUDA_FIND([$PATH$PATH_SEPARATOR/usr/local/cuda/bin])],
  [NVCC=; _SPS_CUDA_FIND([$with_cuda/bin])])
AS_IF([test $sps_cuda = yes && test "x$enable_sanitize" != xno],
  [sps_cuda=no; sps_cuda_why="not with --enable-sanitize"])
AS_IF([test $sps_cuda = yes && test "x$enable_shared" = xno], [
  AS_IF([test "x$with_cuda" = xguess],
    [sps_cuda=no; sps_cuda_why="a static library cannot load it"],
    [AC_MSG_ERROR([the CUDA module needs the shared library: drop
  --disable-shared or give --without-cuda])])])
AS_IF([test $sps_cuda = no], [
  AS_CASE([$with_cuda], [no|guess], [],
    [AC_MSG_ERROR([--with-cuda=$with_cuda: $sps_cuda_why])])
  AS_IF([test "x$with_cuda" = xguess && test "x$enable_sanitize" = xno],
    [AC_MSG_WARN([CUDA module is not built: $sps_cuda_why; all else works])])
  sps_cuda_says="not built ($sps_cuda_why)"
], [
  _SPS_CUDA_ARCH
  _SPS_CUDA_COMPRESS
  sps_cuda_says="$NVCC for $CUDA_ARCHITECTURES"
])
AM_CONDITIONAL([SPS_WITH_CUDA], [test $sps_cuda = yes])
AC_SUBST([NVCC_GENCODE])
AC_SUBST([CUDA_CPPFLAGS])
AC_SUBST([CUDA_LIBDIR])
AC_SUBST([CUDA_LIBS])
AC_SUBST([CUDA_ARCHITECTURES])
])

# Looks for nvcc in the path given, then for the libraries beside it, and
# compiles and links one kernel.
AC_DEFUN([_SPS_CUDA_FIND], [
AC_PATH_PROG([NVCC], [nvcc], [], [$1])
AS_IF([test -z "$NVCC"], [sps_cuda_why="no nvcc"], [
  sps_nvcc=`readlink -f "$NVCC" 2>/dev/null || echo "$NVCC"`
  sps_cuda_root=`AS_DIRNAME(["$sps_nvcc"])`
  sps_cuda_root=`AS_DIRNAME(["$sps_cuda_root"])`
  CUDA_LIBDIR=
  for sps_dir in "$sps_cuda_root/lib64" "$sps_cuda_root/lib" \
      "$sps_cuda_root/targets/x86_64-linux/lib" \
      "/usr/lib/$host_cpu-linux-gnu" /usr/lib64 /usr/lib; do
    AS_IF([test -z "$CUDA_LIBDIR" && test -f "$sps_dir/libcudart_static.a"],
          [CUDA_LIBDIR=$sps_dir])
  done
  CUDA_CPPFLAGS=
  for sps_dir in "$sps_cuda_root/include" \
      "$sps_cuda_root/targets/x86_64-linux/include"; do
    AS_IF([test -z "$CUDA_CPPFLAGS" && test -f "$sps_dir/cuda_runtime.h"],
          [CUDA_CPPFLAGS="-I$sps_dir"])
  done
  CUDA_LIBS="-L$CUDA_LIBDIR -lcublas -lcusparse -lcudart_static"
  CUDA_LIBS="$CUDA_LIBS -lstdc++ -ldl -lrt -lpthread"
  AS_IF([test -z "$CUDA_LIBDIR"],
    [sps_cuda_why="no libcudart_static.a beside $NVCC"],
    [_SPS_CUDA_TRY])
])
])

AC_DEFUN([_SPS_CUDA_TRY], [
AC_MSG_CHECKING([whether $NVCC compiles and links C++20 with cuBLAS, cuSPARSE])
cat >conftest.cu <<_SPS_EOF
#include <cublas_v2.h>
#include <cusparse.h>
__global__ void f(double *x) { *x += 1; }
int main()
{
    cublasHandle_t b;
    cusparseHandle_t s;
    f<<<1, 1>>>(nullptr);
    return cublasCreate(&b) || cusparseCreate(&s);
}
_SPS_EOF
AS_IF([$NVCC -ccbin "${CXX%% *}" -std=c++20 -cudart static -o conftest$EXEEXT \
         conftest.cu -L"$CUDA_LIBDIR" -lcublas -lcusparse \
         >conftest.err 2>&1],
  [sps_cuda=yes],
  [cat conftest.err >&AS_MESSAGE_LOG_FD
   sps_cuda_why="$NVCC cannot make a program (see config.log)"])
rm -f conftest.cu conftest.err conftest$EXEEXT
AC_MSG_RESULT([$sps_cuda])
])

# Machine code compressed for size, by CUDA 13: every driver that runs its
# programs unpacks it, at the first use of a file's kernels.  With CUDA 12 the
# module would need a driver of 12.4.
AC_DEFUN([_SPS_CUDA_COMPRESS], [
AC_MSG_CHECKING([whether $NVCC compresses machine code for size])
cat >conftest.cu <<_SPS_EOF
#if __CUDACC_VER_MAJOR__ < 13
#error older
#endif
__global__ void f(double *x) { *x += 1; }
_SPS_EOF
AS_IF([$NVCC -ccbin "${CXX%% *}" --compress-mode=size -c -o conftest.$OBJEXT conftest.cu \
         >&AS_MESSAGE_LOG_FD 2>&1],
  [NVCC_COMPRESS=--compress-mode=size
   AC_MSG_RESULT([yes])],
  [NVCC_COMPRESS=
   AC_MSG_RESULT([no])])
rm -f conftest.cu conftest.$OBJEXT
AC_SUBST([NVCC_COMPRESS])
])

# NVCC_GENCODE and CUDA_ARCHITECTURES from --with-cuda-arch.
AC_DEFUN([_SPS_CUDA_ARCH], [
AC_MSG_CHECKING([GPU architectures])
sps_known=`$NVCC --list-gpu-arch | sed 's/compute_//' | tr '\n' ' '`
sps_ptx=
AS_CASE([$with_cuda_arch],
  [default|native|yes], [
    sps_arch=`nvidia-smi --query-gpu=compute_cap --format=csv,noheader \
              2>/dev/null | tr -d . | grep '^@<:@0-9@:>@*$' | sort -u |
              tr '\n' ' '`
    AS_IF([test -z "$sps_arch"], [
      AS_IF([test "x$with_cuda_arch" = xnative],
        [AC_MSG_ERROR([--with-cuda-arch=native, but no GPU is seen])])
      sps_arch=90])],
  [release], [
    sps_arch=
    for sps_a in 80 86 89 90 100 120; do
      AS_CASE([" $sps_known"], [*" $sps_a "*],
              [sps_arch="$sps_arch $sps_a"; sps_ptx=$sps_a])
    done],
  [sps_arch=`AS_ECHO(["$with_cuda_arch"]) | sed 's/sm_//g; s/,/ /g'`])
NVCC_GENCODE=
CUDA_ARCHITECTURES=
for sps_a in $sps_arch; do
  AS_CASE([" $sps_known"], [*" ${sps_a%@<:@af@:>@} "*], [],
    [AC_MSG_ERROR([$NVCC does not know sm_$sps_a; it knows: $sps_known])])
  AS_IF([test "${sps_a%@<:@af@:>@}" -lt 80],
    [AC_MSG_ERROR([sm_$sps_a: the kernels need sm_80 (Ampere) or newer])])
  NVCC_GENCODE="$NVCC_GENCODE -gencode=arch=compute_$sps_a,code=sm_$sps_a"
  CUDA_ARCHITECTURES="$CUDA_ARCHITECTURES${CUDA_ARCHITECTURES:+ }sm_$sps_a"
done
AS_IF([test -n "$sps_ptx"], [
  NVCC_GENCODE="$NVCC_GENCODE -gencode=arch=compute_$sps_ptx"
  NVCC_GENCODE="$NVCC_GENCODE,code=compute_$sps_ptx"
  CUDA_ARCHITECTURES="$CUDA_ARCHITECTURES compute_$sps_ptx"])
AC_MSG_RESULT([$CUDA_ARCHITECTURES])
])
