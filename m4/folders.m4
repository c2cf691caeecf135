dnl SPDX-License-Identifier: MIT
dnl
dnl HIPMM_FOLDERS: where hipmm cannot be built or installed. It is asked first, since all else takes long.

AC_DEFUN([HIPMM_FOLDERS], [
  dnl Libtool breaks in such a folder, and the loader preloads no file with such a name.
  for hipmm_folder in "`pwd`" "`cd "$srcdir" && pwd`" "$prefix" "$exec_prefix"; do
    AS_CASE(["$hipmm_folder"], [*[[[:space:]:]]*],
      [AC_MSG_ERROR([hipmm cannot be built in, or installed into, a folder whose path has a blank or a colon: $hipmm_folder])])
  done
  dnl `make install` would copy files onto themselves, and leave the rest out.
  for hipmm_folder in "$prefix" "$exec_prefix"; do
    hipmm_folder=`cd "$hipmm_folder" 2>/dev/null && pwd -P`
    for hipmm_own in "$srcdir" .; do
      AS_IF([test "$hipmm_folder" && test "$hipmm_folder" = "`cd "$hipmm_own" && pwd -P`"],
        [AC_MSG_ERROR([cannot install into $hipmm_folder, where hipmm's sources or its build are; choose another folder, such as --prefix=\$HOME/.local])])
    done
  done
])
