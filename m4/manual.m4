dnl SPDX-License-Identifier: MIT
dnl
dnl The manual pages are made by the hipmm command, of what it knows. When cross-compiling the one that is built cannot
dnl run here; another may be named, and without one the pages refer to `hipmm --help` and `hipmm describe`.

AC_DEFUN([HIPMM_MANUAL], [
  AC_ARG_VAR([HIPMM_FOR_BUILD], [a hipmm command that runs on this machine, for the manual pages when cross-compiling])
  AM_CONDITIONAL([CROSS_COMPILING], [test "x$cross_compiling" = xyes])
])
