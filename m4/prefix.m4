dnl SPDX-License-Identifier: MIT
dnl
dnl HIPMM_PREFIX: the installation must not be the source or the build: `make install` would copy files onto themselves, and
dnl leave the rest out.

AC_DEFUN([HIPMM_PREFIX], [
  for hipmm_folder in "$prefix" "$exec_prefix"; do
    hipmm_folder=`cd "$hipmm_folder" 2>/dev/null && pwd -P`
    for hipmm_own in "$srcdir" .; do
      AS_IF([test "$hipmm_folder" && test "$hipmm_folder" = "`cd "$hipmm_own" && pwd -P`"],
        [AC_MSG_ERROR([cannot install into $hipmm_folder, where hipmm's sources or its build are; choose another folder, such as --prefix=\$HOME/.local])])
    done
  done
])
