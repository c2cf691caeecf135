dnl SPDX-License-Identifier: MIT
dnl
dnl SQLite, with which the command reads databases of Nsight Systems, rocprofv3 and PyTorch. Optional: without it the command says so.

AC_DEFUN([HIPMM_SQLITE], [
  AC_ARG_WITH([sqlite], [AS_HELP_STRING([--without-sqlite], [do not read databases of Nsight Systems, rocprofv3 and PyTorch])], [],
    [with_sqlite=check])
  hipmm_sqlite="no: not wanted (--without-sqlite)"
  AS_VAR_IF([with_sqlite], [no], [], [
    PKG_CHECK_MODULES([SQLITE], [sqlite3 >= 3.31],
      [hipmm_sqlite="yes, `$PKG_CONFIG --modversion sqlite3 2>/dev/null`"
       SQLITE_CFLAGS="$SQLITE_CFLAGS -DHIPMM_HAVE_SQLITE"],
      [hipmm_sqlite="no: not found (libsqlite3-dev); hipmm cannot read databases of Nsight Systems, rocprofv3 and PyTorch"
       AS_VAR_IF([with_sqlite], [yes], [HIPMM_MISSING([sqlite 3.31 or newer], [libsqlite3-dev], [sqlite-devel])])])
  ])
])
