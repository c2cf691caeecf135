dnl SPDX-License-Identifier: MIT
dnl
dnl Collects what the probes did not find, so that a newcomer installs once instead of once per message.

dnl HIPMM_MISSING(WHAT, DEBIAN-PACKAGE, FEDORA-PACKAGE, [DETAIL]): hipmm cannot be built without it.
AC_DEFUN([HIPMM_MISSING], [
  HIPMM_MISSING_OPTIONAL([$1], [$2], [$3])
  m4_ifval([$4], [AS_VAR_APPEND([hipmm_missing], ["
    $4"])])
  hipmm_cannot_build=yes
])

dnl HIPMM_MISSING_OPTIONAL(WHAT, DEBIAN-PACKAGE, FEDORA-PACKAGE): named beside the others, but stops nothing by itself.
AC_DEFUN([HIPMM_MISSING_OPTIONAL], [
  AS_VAR_APPEND([hipmm_missing], ["
  $1: Debian and Ubuntu $2, Fedora $3"])
  AS_VAR_APPEND([hipmm_missing_debian], [" $2"])
  AS_VAR_APPEND([hipmm_missing_fedora], [" $3"])
])

AC_DEFUN([HIPMM_REPORT_MISSING], [
  AS_VAR_IF([hipmm_cannot_build], [yes], [AC_MSG_ERROR([these are needed and were not found:
$hipmm_missing

Install them and configure again:
  Debian, Ubuntu:  apt-get install$hipmm_missing_debian
  Fedora:          dnf install$hipmm_missing_fedora])])
])
