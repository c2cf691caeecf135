dnl SPDX-License-Identifier: MIT
dnl
dnl The last thing that configure prints: what was decided, and why each "no".

AC_DEFUN([HIPMM_SUMMARY], [
  AS_VAR_IF([hipmm_version_script], [no], [hipmm_version_script="no: the linker does not take --version-script"])
  AS_VAR_IF([hipmm_z_defs], [no], [hipmm_z_defs="no: the linker refuses -z defs with these flags"])
  AS_VAR_IF([enable_sanitizers], [no], [hipmm_sanitizers="no: not asked for (--enable-sanitizers=address,undefined)"],
    [hipmm_sanitizers="$enable_sanitizers${TEST_LAUNCHER:+, tests under $TEST_LAUNCHER}"])
  AS_VAR_IF([enable_checks], [no], [hipmm_checks="not checked: not asked for (--enable-checks)"], [hipmm_checks=checked])
  AS_VAR_IF([enable_werror], [no], [enable_werror="no: not asked for (--enable-werror)"])
  hipmm_builtin=`echo $BUILTIN_PLUGINS`
  AS_IF([test ! "$hipmm_builtin"], [hipmm_builtin="no: not asked for (--enable-builtin-plugins or --disable-shared)"])
  AS_VAR_IF([enable_static], [no], [hipmm_static="no: not asked for (--enable-static)"], [hipmm_static=yes])
  hipmm_plugindir=$plugindir
  for hipmm_round in 1 2 3; do
    hipmm_plugindir=`eval "echo $hipmm_plugindir"`
  done
  AC_MSG_NOTICE([

hipmm $PACKAGE_VERSION
  prefix             $prefix
  plugins            $hipmm_plugindir (plugin ABI $HIPMM_PLUGIN_ABI)
  shared library     libtool version $HIPMM_LT_VERSION
  static library     $hipmm_static
  linked-in types    $hipmm_builtin
  HIP headers        $hipmm_hip
  nvidia runtime     $hipmm_cuda
  libltdl            $hipmm_ltdl
  jansson            $hipmm_jansson
  SQLite             $hipmm_sqlite
  tests              $hipmm_cmocka
  symbol map         $hipmm_version_script
  complete plugins   $hipmm_z_defs
  sanitizers         $hipmm_sanitizers
  order of locks     $hipmm_checks
  warnings as errors $enable_werror

Next: make, then make check.])
])
