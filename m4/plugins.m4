dnl SPDX-License-Identifier: MIT
dnl
dnl Where plugins are installed: a folder per plugin ABI, so that two hipmm of different ABI live side by side. The
dnl number itself belongs to include/hipmm/plugin.h, which third parties compile against. And which plugins are linked into
dnl libhipmm: with --disable-shared all types of resources, unless --enable-builtin-plugins names some. Runtimes stay shared
dnl objects, and so does what `hipmm run` preloads: both are opened while a program runs, so libtool must build shared
dnl objects in any case. To be called before LT_INIT.

AC_DEFUN([HIPMM_LINKED_TYPES], [
  AC_ARG_ENABLE([builtin-plugins],
    [AS_HELP_STRING([--enable-builtin-plugins@<:@=LIST@:>@],
      [link these types into libhipmm ("pool,device"; without a list: all), so that it needs no files of them])],
    [], [enable_builtin_plugins=default])
  AS_VAR_IF([enable_shared], [no], [
    hipmm_only_static=yes
    enable_shared=yes
    enable_static=yes
    AS_VAR_IF([enable_builtin_plugins], [default], [enable_builtin_plugins=yes])
  ], [hipmm_only_static=no])
  AS_CASE([$enable_builtin_plugins],
    [default | no], [BUILTIN_PLUGINS=],
    [yes], [BUILTIN_PLUGINS=`sed -n 's:^include %D%/\(@<:@a-z_@:>@*\)/Makefile.inc:\1:p' "$srcdir/plugins/Makefile.inc"`],
    [BUILTIN_PLUGINS=`echo "$enable_builtin_plugins" | tr ',' ' '`])
  hipmm_builtin_list=
  BUILTIN_RULES=
  BUILTIN_OBJECTS=
  for hipmm_type in $BUILTIN_PLUGINS; do
    AS_IF([test ! -f "$srcdir/plugins/$hipmm_type/Makefile.inc"],
      [AC_MSG_ERROR([--enable-builtin-plugins: hipmm has no type of resources "$hipmm_type"])])
    AS_VAR_APPEND([hipmm_builtin_list], [" plugin($hipmm_type)"])
    hipmm_object=plugins/builtin/$hipmm_type.lo
    hipmm_objects="\$(plugins_${hipmm_type}_${hipmm_type}_la_OBJECTS)"
    AS_VAR_APPEND([BUILTIN_OBJECTS], [" $hipmm_object"])
    AS_VAR_APPEND([BUILTIN_RULES], ["$hipmm_object: $hipmm_objects
	\$(BUILTIN_LINK) --keep-global-symbol=${hipmm_type}_LTX_hipmm_plugin $hipmm_objects
"])
  done
  AS_IF([test "$BUILTIN_OBJECTS"], [
    AC_DEFINE_UNQUOTED([HIPMM_BUILTIN_PLUGINS(plugin)], [$hipmm_builtin_list], [The types that are linked into libhipmm.])
  ])
  AC_SUBST([BUILTIN_OBJECTS])
  AC_SUBST([BUILTIN_RULES])
  AM_SUBST_NOTMAKE([BUILTIN_RULES])
  AM_CONDITIONAL([ONLY_STATIC], [test "$hipmm_only_static" = yes])
])

AC_DEFUN([HIPMM_PLUGINS], [
  AC_CHECK_TOOL([OBJCOPY], [objcopy])
  AS_IF([test "$BUILTIN_OBJECTS" && test ! "$OBJCOPY"],
    [AC_MSG_ERROR([plugins are linked in with objcopy of GNU binutils, which was not found])])
  AC_MSG_CHECKING([for the plugin ABI number])
  HIPMM_PLUGIN_ABI=`$SED -n 's/^#define HIPMM_PLUGIN_ABI \(@<:@0-9@:>@@<:@0-9@:>@*\)$/\1/p' "$srcdir/include/hipmm/plugin.h"`
  AC_MSG_RESULT([$HIPMM_PLUGIN_ABI])
  AS_VAR_IF([HIPMM_PLUGIN_ABI], [], [AC_MSG_ERROR([include/hipmm/plugin.h does not define HIPMM_PLUGIN_ABI])])
  AC_SUBST([HIPMM_PLUGIN_ABI])
  AC_SUBST([plugindir], ['${libdir}/hipmm/'$HIPMM_PLUGIN_ABI])
])

dnl Without a shared library programs link what libhipmm itself needs (hipmm.pc). pkg-config wants even private requirements to
dnl be installed, so that they are named only if a static library is.
AC_DEFUN([HIPMM_STATIC_NEEDS], [
  AS_VAR_IF([hipmm_only_static], [yes],
    [PC_LIBS="$LTDL_LIBS $SYSTEM_LIBS" PC_REQUIRES='jansson >= 2.10'], [PC_LIBS= PC_REQUIRES=])
  AC_SUBST([PC_LIBS])
  AC_SUBST([PC_REQUIRES])
  AS_VAR_IF([enable_static], [yes], [PC_REQUIRES_PRIVATE='jansson >= 2.10'], [PC_REQUIRES_PRIVATE=])
  AC_SUBST([PC_REQUIRES_PRIVATE])
])
