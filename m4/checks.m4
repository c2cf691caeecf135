dnl SPDX-License-Identifier: MIT
dnl
dnl --enable-checks is for developers: the build asserts the order of locks (core/base/lock_order.h) and aborts where it
dnl is violated. It costs time, and is not to be installed: its objects need a library of the build folder. Sets
dnl CHECK_CFLAGS, CHECK_LIBS and the conditional CHECKS.

AC_DEFUN([HIPMM_CHECKS], [
  AC_ARG_ENABLE([checks],
    [AS_HELP_STRING([--enable-checks], [abort where locks are taken in a wrong order; for developers])],
    [], [enable_checks=no])
  AS_IF([test "$enable_checks" != no && test "$enable_shared" = no],
    [AC_MSG_ERROR([--enable-checks needs shared libraries; leave out --disable-shared])])
  AS_VAR_IF([enable_checks], [no], [],
    [CHECK_CFLAGS="-DHIPMM_CHECKS -include \$(abs_top_srcdir)/core/base/lock_order.h -fno-omit-frame-pointer"
     CHECK_LIBS="-L\$(abs_top_builddir) -Wl,-rpath,\$(abs_top_builddir) -llockorder"])
  AC_SUBST([CHECK_CFLAGS])
  AC_SUBST([CHECK_LIBS])
  AM_CONDITIONAL([CHECKS], [test "$enable_checks" != no])
])
