dnl SPDX-License-Identifier: MIT
dnl
dnl CUDA's headers, for the nvidia runtime; cuda.h is enough. Nothing of CUDA is linked: the runtime opens NVIDIA's driver
dnl when a program uses it. Without the headers, or --without-cuda, hipmm is built without that runtime.

AC_DEFUN([HIPMM_CUDA_HEADERS], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=DIR|no],
    [where CUDA's headers are (by default CUDA_PATH, /usr/local/cuda, then the system's); no: without the nvidia runtime])],
    [], [with_cuda=auto])
  AC_ARG_VAR([CUDA_PATH], [where CUDA's toolkit is installed])
  AC_SUBST([CUDA_CFLAGS])
  AC_MSG_CHECKING([for CUDA headers])
  hipmm_cuda=no
  AS_CASE([$with_cuda],
    [no], [hipmm_cuda="no: not wanted (--without-cuda)"],
    [auto|yes],
      [for hipmm_folder in ${CUDA_PATH:+"$CUDA_PATH"} /usr/local/cuda; do
         HIPMM_TRY_CUDA_FOLDER
       done
       AS_VAR_IF([hipmm_cuda], [no], [HIPMM_TRY_CUDA_HEADERS([the system's headers], [])])],
    [hipmm_folder=$with_cuda
     HIPMM_TRY_CUDA_FOLDER])
  AS_VAR_IF([hipmm_cuda], [no],
    [hipmm_cuda="no: cuda.h of CUDA 12 or newer is missing; install nvidia-cuda-toolkit (Debian 13, Ubuntu 24.04, or later) or NVIDIA's cuda-cudart-dev, or run: pip install --target DIR nvidia-cuda-runtime-cu12, and configure --with-cuda=DIR/nvidia/cuda_runtime"])
  AC_MSG_RESULT([$hipmm_cuda])
  AC_DEFINE_UNQUOTED([HIPMM_NVIDIA], ["$hipmm_cuda"], [whether the nvidia runtime is built, and if "no: ", why not])
  AS_CASE([$with_cuda:$hipmm_cuda],
    [auto:*|no:*|*:yes*], [],
    [AC_MSG_ERROR([--with-cuda=$with_cuda: DIR/include/cuda.h of CUDA 12 or newer is not there; config.log says more])])
  AM_CONDITIONAL([HAVE_CUDA], [AS_CASE([$hipmm_cuda], [yes*], [true], [false])])
])

dnl A toolkit has its headers in include, or below targets when it is installed for several machines.
AC_DEFUN([HIPMM_TRY_CUDA_FOLDER], [
  for hipmm_include in "$hipmm_folder/include" "$hipmm_folder/targets/x86_64-linux/include" "$hipmm_folder"; do
    AS_IF([test "$hipmm_cuda" = no && test -f "$hipmm_include/cuda.h"],
      [HIPMM_TRY_CUDA_HEADERS([$hipmm_include], [-isystem $hipmm_include])])
  done
])

dnl HIPMM_TRY_CUDA_HEADERS(PLACE, FLAGS)
AC_DEFUN([HIPMM_TRY_CUDA_HEADERS], [
  hipmm_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $2"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
    #include <cuda.h>
    #if CUDA_VERSION < 12000
    #error "older than CUDA 12"
    #endif
    ]], [[CUmemoryPool pool = 0; return pool != 0;]])],
    [echo '#include <cuda.h>
hipmm_version CUDA_VERSION' >conftest.$ac_ext
     hipmm_cuda=`$CC -E -P $CFLAGS conftest.$ac_ext 2>/dev/null | tr -d '\n ' | $SED 's/.*hipmm_version//'`
     hipmm_cuda="yes, CUDA `expr $hipmm_cuda / 1000`.`expr $hipmm_cuda % 1000 / 10` in $1"
     CUDA_CFLAGS="$2"])
  CFLAGS=$hipmm_saved_CFLAGS
])
