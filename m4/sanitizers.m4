dnl SPDX-License-Identifier: MIT
dnl
dnl --enable-sanitizers=LIST builds everything with -fsanitize=LIST and proves first that such a program runs: older
dnl ThreadSanitizers refuse to start under the address randomisation of newer kernels, which `setarch -R` turns off.
dnl Sets SANITIZER_FLAGS, TEST_LAUNCHER (what tests must be started with) and Z_DEFS.

AC_DEFUN([HIPMM_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST], [build with sanitizers: address,undefined or thread])],
    [], [enable_sanitizers=no])
  AS_CASE([,$enable_sanitizers,],
    [,yes,], [enable_sanitizers=address,undefined],
    [*,thread,*address,*|*,address,*thread,*],
      [AC_MSG_ERROR([--enable-sanitizers: address and thread exclude each other; use two build folders])])
  AS_VAR_IF([enable_sanitizers], [no], [],
    [SANITIZER_FLAGS="-fsanitize=$enable_sanitizers -fno-omit-frame-pointer -g"
     AS_CASE([$enable_sanitizers],
       [*undefined*], [AS_VAR_APPEND([SANITIZER_FLAGS], [" -fno-sanitize-recover=undefined"])])
     HIPMM_TRY_SANITIZERS])
  HIPMM_TRY_Z_DEFS
  AC_SUBST([SANITIZER_FLAGS])
  AM_CONDITIONAL([THREAD_SANITIZER], [AS_CASE([$enable_sanitizers], [*thread*], [true], [false])])
  AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" != no])
  AC_SUBST([TEST_LAUNCHER])
])

AC_DEFUN([HIPMM_TRY_SANITIZERS], [
  AC_MSG_CHECKING([whether programs run with $SANITIZER_FLAGS])
  hipmm_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $SANITIZER_FLAGS"
  hipmm_sanitized=no
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
    [AS_IF([test "$cross_compiling" = yes || ./conftest$EXEEXT 2>&AS_MESSAGE_LOG_FD], [hipmm_sanitized=yes],
       [setarch "`uname -m`" -R ./conftest$EXEEXT 2>&AS_MESSAGE_LOG_FD],
       [TEST_LAUNCHER="setarch `uname -m` -R"
        hipmm_sanitized="yes, under $TEST_LAUNCHER"])])
  CFLAGS=$hipmm_saved_CFLAGS
  AC_MSG_RESULT([$hipmm_sanitized])
  AS_VAR_IF([hipmm_sanitized], [no],
    [AC_MSG_ERROR([programs built with $SANITIZER_FLAGS do not link or do not run; config.log says why]dnl
[ (Fedora has the sanitizers in libasan, libubsan and libtsan)])])
])

dnl A plugin must not lean on symbols of whoever loads it, so its link must be complete. clang cannot promise that with
dnl sanitizers: it leaves their symbols to the program.
AC_DEFUN([HIPMM_TRY_Z_DEFS], [
  AC_MSG_CHECKING([whether shared objects link without undefined symbols])
  hipmm_saved_CFLAGS=$CFLAGS hipmm_saved_LDFLAGS=$LDFLAGS
  CFLAGS="$CFLAGS $SANITIZER_FLAGS -fPIC" LDFLAGS="$LDFLAGS -shared -Wl,-z,defs"
  AC_LINK_IFELSE([AC_LANG_SOURCE([[int hipmm_probe(int *number); int hipmm_probe(int *number) { return ++*number; }]])],
    [hipmm_z_defs=yes Z_DEFS=-Wl,-z,defs], [hipmm_z_defs=no Z_DEFS=])
  CFLAGS=$hipmm_saved_CFLAGS LDFLAGS=$hipmm_saved_LDFLAGS
  AC_MSG_RESULT([$hipmm_z_defs])
  AC_SUBST([Z_DEFS])
])
