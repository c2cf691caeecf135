dnl SPDX-License-Identifier: MIT
dnl
dnl hipmm is written in C11 with GNU extensions, whatever newer standard the compiler takes by default.

AC_DEFUN([HIPMM_C11], [
  AC_MSG_CHECKING([for C11 with atomics and thread-local storage])
  hipmm_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -std=gnu11"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
    #include <stdatomic.h>
    #if __STDC_VERSION__ < 201112L
    #error "not C11"
    #endif
    static _Thread_local atomic_int count;
    _Static_assert(sizeof(void *) == 8, "hipmm is for 64-bit machines");
    ]], [[ return atomic_load(&count); ]])],
    [AC_MSG_RESULT([yes])
     AC_SUBST([STANDARD_CFLAGS], [-std=gnu11])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([hipmm needs a 64-bit C11 compiler: gcc 8 or clang 7, or newer])])
  CFLAGS=$hipmm_saved_CFLAGS
])
