dnl SPDX-License-Identifier: MIT
dnl
dnl Where plugins are installed: a folder per plugin ABI, so that two hipmm of different ABI live side by side. The
dnl number itself belongs to include/hipmm/plugin.h, which third parties compile against.

AC_DEFUN([HIPMM_PLUGINS], [
  AS_VAR_IF([enable_shared], [no], [AC_MSG_ERROR([plugins are shared objects, so --disable-shared cannot be had;]dnl
[ --enable-static gives libhipmm.a besides])])
  AC_MSG_CHECKING([for the plugin ABI number])
  HIPMM_PLUGIN_ABI=`$SED -n 's/^#define HIPMM_PLUGIN_ABI \(@<:@0-9@:>@@<:@0-9@:>@*\)$/\1/p' "$srcdir/include/hipmm/plugin.h"`
  AC_MSG_RESULT([$HIPMM_PLUGIN_ABI])
  AS_VAR_IF([HIPMM_PLUGIN_ABI], [], [AC_MSG_ERROR([include/hipmm/plugin.h does not define HIPMM_PLUGIN_ABI])])
  AC_SUBST([HIPMM_PLUGIN_ABI])
  AC_SUBST([plugindir], ['${libdir}/hipmm/'$HIPMM_PLUGIN_ABI])
])
