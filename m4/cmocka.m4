dnl SPDX-License-Identifier: MIT
dnl
dnl CMocka, which the tests are written with. hipmm builds without it; only `make check` then stops with the reason.

AC_DEFUN([HIPMM_CMOCKA], [
  PKG_CHECK_MODULES([CMOCKA], [cmocka >= 1.1.5],
    [hipmm_cmocka="yes, CMocka `$PKG_CONFIG --modversion cmocka 2>/dev/null`"],
    [hipmm_cmocka="no: CMocka 1.1.5 or newer is missing (Debian and Ubuntu libcmocka-dev, Fedora libcmocka-devel)"
     HIPMM_MISSING_OPTIONAL([CMocka 1.1.5 or newer, for make check alone], [libcmocka-dev], [libcmocka-devel])])
  AM_CONDITIONAL([HAVE_CMOCKA], [AS_CASE([$hipmm_cmocka], [yes*], [true], [false])])
])
