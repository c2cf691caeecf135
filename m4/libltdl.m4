dnl SPDX-License-Identifier: MIT
dnl
dnl libltdl of the system, 2.2 or newer, which has no .pc file. Never a bundled copy: two copies share no state. (A file
dnl named ltdl.m4 would be taken for libtool's own and removed by libtoolize.)

AC_DEFUN([HIPMM_LIBLTDL], [
  AC_ARG_VAR([LTDL_CFLAGS], [C compiler flags for libltdl])
  AC_ARG_VAR([LTDL_LIBS], [linker flags for libltdl, -lltdl by default])
  AS_VAR_SET_IF([LTDL_LIBS], [], [LTDL_LIBS=-lltdl])
  AC_MSG_CHECKING([for libltdl])
  hipmm_saved_CFLAGS=$CFLAGS hipmm_saved_LIBS=$LIBS
  CFLAGS="$CFLAGS $LTDL_CFLAGS" LIBS="$LTDL_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <ltdl.h>]],
      [[lt_dladvise advise; return lt_dladvise_init(&advise);]])],
    [hipmm_ltdl="yes, $LTDL_LIBS"],
    [hipmm_ltdl=no
     HIPMM_MISSING([libltdl 2.2 or newer], [libltdl-dev], [libtool-ltdl-devel])])
  CFLAGS=$hipmm_saved_CFLAGS LIBS=$hipmm_saved_LIBS
  AC_MSG_RESULT([$hipmm_ltdl])
])
