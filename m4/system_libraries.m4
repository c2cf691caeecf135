dnl SPDX-License-Identifier: MIT
dnl
dnl Threads, dlopen and mathematics: in libc itself with glibc 2.34 and newer, libraries of their own before.

AC_DEFUN([HIPMM_SYSTEM_LIBRARIES], [
  hipmm_saved_LIBS=$LIBS
  AC_SEARCH_LIBS([pthread_create], [pthread], [], [AC_MSG_ERROR([the C library has no pthread_create])])
  AC_SEARCH_LIBS([dlopen], [dl], [], [AC_MSG_ERROR([the C library has no dlopen])])
  AC_SEARCH_LIBS([log2], [m], [], [AC_MSG_ERROR([the C library has no log2])])
  AC_SUBST([SYSTEM_LIBS], [$LIBS])
  LIBS=$hipmm_saved_LIBS
])
