dnl SPDX-License-Identifier: MIT
dnl
dnl HIP's headers, which core/runtime/hip_table.c, the runtimes in plugins/ and tools/preload include. Nothing of HIP is linked: the
dnl core loads the runtime when the program runs. Sets HIP_CFLAGS; the caller may set it instead.

AC_DEFUN([HIPMM_HIP_HEADERS], [
  AC_ARG_VAR([ROCM_PATH], [where ROCm is installed (looked in first; then /opt/rocm, then the system's headers)])
  AC_ARG_VAR([HIP_CFLAGS], [C compiler flags for HIP's headers, instead of looking for them])
  AC_MSG_CHECKING([for HIP headers])
  hipmm_hip=no
  AS_VAR_SET_IF([HIP_CFLAGS],
    [HIPMM_TRY_HIP_HEADERS([HIP_CFLAGS], [$HIP_CFLAGS])],
    [for hipmm_folder in ${ROCM_PATH:+"$ROCM_PATH/include"} /opt/rocm/include; do
       AS_IF([test "$hipmm_hip" = no && test -f "$hipmm_folder/hip/hip_runtime_api.h"],
         [HIPMM_TRY_HIP_HEADERS([$hipmm_folder], [-isystem $hipmm_folder])])
     done
     AS_VAR_IF([hipmm_hip], [no], [HIPMM_TRY_HIP_HEADERS([the system's headers], [])])])
  AC_MSG_RESULT([$hipmm_hip])
  AS_VAR_IF([hipmm_hip], [no],
    [HIPMM_MISSING([HIP headers], [libamdhip64-dev], [rocm-hip-devel],
      [looked in ${HIP_CFLAGS:-${ROCM_PATH:-/opt/rocm}/include} and the system headers; set ROCM_PATH if elsewhere])])
])

dnl HIPMM_TRY_HIP_HEADERS(PLACE, FLAGS): the headers must declare the memory pools that hipmm names, as HIP 5.2 does.
AC_DEFUN([HIPMM_TRY_HIP_HEADERS], [
  hipmm_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $2 -D__HIP_PLATFORM_AMD__"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
    #include <hip/hip_runtime_api.h>
    #include <hip/hip_version.h>
    ]], [[hipMemPool_t pool = 0; return hipMalloc((void **)0, 0) == hipSuccess && pool == 0;]])],
    [echo '#include <hip/hip_version.h>
hipmm_version HIP_VERSION_MAJOR.HIP_VERSION_MINOR.HIP_VERSION_PATCH' >conftest.$ac_ext
     hipmm_hip=`$CC -E -P $CFLAGS conftest.$ac_ext 2>/dev/null | tr -d '\n ' | $SED 's/.*hipmm_version//'`
     AC_SUBST([HIP_MAJOR], [`echo "$hipmm_hip" | $SED 's/[[.]].*//'`])
     hipmm_hip="yes, $hipmm_hip in $1"
     HIP_CFLAGS="$2 -D__HIP_PLATFORM_AMD__"])
  CFLAGS=$hipmm_saved_CFLAGS
])
