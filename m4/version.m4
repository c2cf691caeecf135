dnl SPDX-License-Identifier: MIT
dnl
dnl HIPMM_CHECK_VERSION: the version has its place in configure.ac; programs need it as numbers in a header that they can
dnl include from the source tree too. The two must agree, and so must the soname's number.
AC_DEFUN([HIPMM_CHECK_VERSION], [
  AC_MSG_CHECKING([whether include/hipmm/version.h agrees with configure.ac])
  hipmm_header=$srcdir/include/hipmm/version.h
  hipmm_in_header=
  for hipmm_part in MAJOR MINOR PATCH; do
    hipmm_in_header=$hipmm_in_header.`$SED -n "s/^#define HIPMM_VERSION_$hipmm_part *//p" "$hipmm_header"`
  done
  hipmm_in_header=${hipmm_in_header#.}
  AS_IF([test "$hipmm_in_header" = "$PACKAGE_VERSION"], [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([configure.ac says $PACKAGE_VERSION, and include/hipmm/version.h says $hipmm_in_header; set both])])
  hipmm_current=${HIPMM_LT_VERSION%%:*}
  hipmm_soname=$(($hipmm_current - ${HIPMM_LT_VERSION##*:}))
  AS_IF([test "$hipmm_soname" = "${PACKAGE_VERSION%%.*}"], [],
    [AC_MSG_ERROR([the libtool version $HIPMM_LT_VERSION gives libhipmm.so.$hipmm_soname, and the version is $PACKAGE_VERSION; current - age must be the major version])])
  dnl The name of the file, by which gdb finds the script for it.
  AC_SUBST([HIPMM_FILE], [`echo "$HIPMM_LT_VERSION" | awk -F: '{ print "libhipmm.so." $[1] - $[3] "." $[3] "." $[2] }'`])
])
