#!/bin/sh
# SPDX-License-Identifier: MIT
#
# etc/quickstart in a folder that is configured and built already, with make and the package manager replaced: it says that
# CONFIGURE_FLAGS has no effect, and that there is no GPU no more than once. And in folders that are not configured yet.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
unset HIPMM_PLUGIN_PATH BUILD CONFIGURE_FLAGS PACKAGES
command -v xz >/dev/null || {
  echo "xz is missing"
  exit 77
}

mkdir -p clone/etc clone/build clone/tests/data tools
cp "$top_srcdir/etc/quickstart" "$top_srcdir/etc/hipmm.json" clone/etc/
ln -s "$(cd "$top_builddir" && pwd)/hipmm" clone/build/hipmm
xz -c >clone/tests/data/resnet50_train.csv.xz <<'END'
Thread,Time,Action,Pointer,Size,Stream
1,10:00:00.000001,allocate,0x1000,256,0x0
1,10:00:00.000002,free,0x1000,256,0x0
END
echo all: >clone/build/Makefile
printf '#!/bin/sh\necho "--as-before"\n' >clone/build/config.status
printf '#!/bin/sh\nprintf installed\n' >tools/dpkg-query
printf '#!/bin/sh\nexit 0\n' >tools/make
cp tools/make tools/apt-get
chmod +x clone/build/config.status tools/*
PATH=$work/tools:$PATH
export PATH

# quickstart: in $work/out and $work/err
quickstart() {
  sh clone/etc/quickstart >"$work/out" 2>"$work/err" </dev/null || {
    fail "quickstart fails"
    sed 's/^/  /' "$work/out" "$work/err"
  }
}

quickstart
prints '^overhead\|peak requested'
! grep -q CONFIGURE_FLAGS "$work/out" "$work/err" || fail "it speaks of CONFIGURE_FLAGS, which is not set"
found=$(cat "$work/out" "$work/err" | grep -c 'no GPU found')
[ "$found" -le 1 ] || fail "it says $found times that there is no GPU"
CONFIGURE_FLAGS=--enable-werror
export CONFIGURE_FLAGS
quickstart
prints '^CONFIGURE_FLAGS has no effect: build is configured already, with: --as-before$'
prints 'BUILD=build-other'
unset CONFIGURE_FLAGS

# Of the log of the tests, what failed is shown, and nothing that a skipped test wrote.
mv tools/make tools/make-nothing
cat >tools/make <<'END'
#!/bin/sh
case $* in *check) ;; *) exit 0 ;; esac
cat >build/test-suite.log <<'LOG'
# PASS:  7
# XFAIL: 0
# SKIP:  1
# FAIL:  1
# XPASS: 0
# ERROR: 0

SKIP: tests/asks.sh
===================

ERROR: No matching distribution found
SKIP tests/asks.sh (exit status: 77)

FAIL: tests/fails.sh
====================

FAIL: the detail
FAIL tests/fails.sh (exit status: 1)
LOG
exit 1
END
chmod +x tools/make
! sh clone/etc/quickstart check >"$work/out" 2>"$work/err" </dev/null || fail "quickstart check passes with a failure"
prints '^FAIL: tests/fails.sh$'
prints '^FAIL: the detail$'
prints '^7 passed, 1 failed$'
! grep -q '^ERROR' "$work/out" || fail "what a skipped test wrote is among the failures"
mv tools/make-nothing tools/make

# A folder of the clone names the sources relative to itself, and any other folder by their path.
mkdir clone/m4 elsewhere
touch clone/configure.ac clone/m4/hipmm.m4 clone/Makefile.in
cat >clone/configure <<'END'
#!/bin/sh
echo "$0" >configured-by
echo all: >Makefile
cp "$0" config.status
END
chmod +x clone/configure
ln -s "$work/elsewhere" clone/linked

# configures FOLDER CONFIGURE
configures() {
  mkdir -p "clone/$1"
  ln -s "$work/clone/build/hipmm" "clone/$1/hipmm"
  BUILD=$1
  export BUILD
  for time in first second; do
    quickstart
    [ "$(cat "clone/$1/configured-by")" = "$2" ] || fail "BUILD=$1, the $time time: it does not run $2"
  done
  unset BUILD
}
configures build-new ../configure
configures linked "$work/clone/configure"
configures . "$work/clone/configure"
finish
