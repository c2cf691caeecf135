dnl SPDX-License-Identifier: MIT
dnl
dnl Warnings, each only if the compiler knows it. CFLAGS belongs to the user and is not touched. --enable-werror is for
dnl developers and machines that check: a newer compiler's new warning must not break a user's build.

AC_DEFUN([HIPMM_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat warnings as errors])], [], [enable_werror=no])
  for hipmm_flag in -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wconversion; do
    HIPMM_TRY_WARNING([$hipmm_flag])
  done
  AS_VAR_IF([enable_werror], [yes], [AS_VAR_APPEND([WARNING_CFLAGS], [" -Werror"])])
  AC_SUBST([WARNING_CFLAGS])
])

AC_DEFUN([HIPMM_TRY_WARNING], [
  AC_MSG_CHECKING([whether $CC knows $1])
  hipmm_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror $1"
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int hipmm_probe; ]])],
    [AC_MSG_RESULT([yes]); AS_VAR_APPEND([WARNING_CFLAGS], [" $1"])],
    [AC_MSG_RESULT([no])])
  CFLAGS=$hipmm_saved_CFLAGS
])
