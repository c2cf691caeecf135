dnl SPDX-License-Identifier: MIT
dnl
dnl Whether the linker takes a symbol map. Without one the library still exports hipmm_* alone, only unversioned.

AC_DEFUN([HIPMM_VERSION_SCRIPT], [
  AC_MSG_CHECKING([whether the linker takes a version script])
  hipmm_saved_LDFLAGS=$LDFLAGS
  LDFLAGS="$LDFLAGS -Wl,--version-script=conftest.map"
  echo 'HIPMM_PROBE { global: main; local: *; };' >conftest.map
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [hipmm_version_script=yes], [hipmm_version_script=no])
  rm -f conftest.map
  LDFLAGS=$hipmm_saved_LDFLAGS
  AC_MSG_RESULT([$hipmm_version_script])
  AM_CONDITIONAL([HAVE_VERSION_SCRIPT], [test "$hipmm_version_script" = yes])
])
