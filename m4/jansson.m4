dnl SPDX-License-Identifier: MIT
dnl
dnl jansson, which reads the graph and writes the command's JSON.

AC_DEFUN([HIPMM_JANSSON], [
  PKG_CHECK_MODULES([JANSSON], [jansson >= 2.10],
    [hipmm_jansson="yes, `$PKG_CONFIG --modversion jansson 2>/dev/null`"],
    [HIPMM_MISSING([jansson 2.10 or newer], [libjansson-dev], [jansson-devel])])
])
