#!/bin/sh
# SPDX-License-Identifier: MIT
#
# etc/quickstart in a folder that is configured and built already, with make and the package manager replaced: it says that
# CONFIGURE_FLAGS has no effect, and that there is no GPU no more than once. And in folders that are not configured yet.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
unset HIPMM_PLUGIN_PATH BUILD CONFIGURE_FLAGS PACKAGES
command -v xz >/dev/null || skip "xz is missing"

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
cp tools/make tools/apt-cache
chmod +x clone/build/config.status tools/*
PATH=$work/tools:$PATH
export PATH

# quickstart ARGUMENT...: in $work/out and $work/err
quickstart() {
  sh clone/etc/quickstart "$@" >"$work/out" 2>"$work/err" </dev/null || {
    fail "quickstart $* fails"
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

# The first run ends with something to look at.
prints "^Open in a browser: $work/clone/build/report.html\$"
grep -q '<html' clone/build/report.html || fail "the report is no page"

# On a terminal no line with progress reaches the last column: it would not be overwritten, but stay.
printf '#!/bin/sh\nsleep .3\n' >tools/make
if installed script "progress on a terminal"; then
  for columns in 30 60 100; do
    script -qec "stty cols $columns; sh clone/etc/quickstart" /dev/null >"$work/out" 2>&1 </dev/null ||
      fail "quickstart fails on a terminal of $columns columns"
    grep "$(printf '\r')." "$work/out" | grep -v 'resnet50_train.csv' | tr '\r' '\n' >"$work/lines"
    grep -q '^compiling .*0 files, . s' "$work/lines" || [ $columns = 30 ] || fail "no progress is shown"
    awk -v most="$columns" 'length >= most { print "too long for " most " columns: " $0; bad = 1 } END { exit bad }' \
      "$work/lines" || fail "progress goes beyond $columns columns"
  done
fi

# The logs of a run that failed stay, whatever is run after it.
cat >tools/make <<'END'
#!/bin/sh
case "$*" in
*check)
  printf '# %s\n' 'PASS:  1' 'FAIL:  1' 'XFAIL: 0' 'XPASS: 0' 'ERROR: 0' 'SKIP:  0' >"$2/test-suite.log"
  printf '%s\n' 'SKIP: tests/asks' '=====' 'ERROR: a tool said' '' 'FAIL: tests/one' '=====' '' 'FAIL: the detail' \
    >>"$2/test-suite.log"
  echo "first test"
  exit 1
  ;;
esac
END
sh clone/etc/quickstart check >"$work/out" 2>&1 </dev/null && fail "it succeeds although a test failed"
prints '^FAIL: tests/one$'
prints '^FAIL: the detail$'
! grep -q '^ERROR' "$work/out" || fail "what a skipped test wrote is among the failures"
[ "$(tail -n 1 "$work/out")" = "1 passed, 1 failed" ] || fail "the last line is $(tail -n 1 "$work/out")"
sed -i "s/'PASS:  1' 'FAIL:  1'/'PASS:  2' 'FAIL:  0'/; s/'SKIP:  0'/'SKIP:  1'/; /tests.one/d; /exit 1/d
  s/first test/&\nSKIP: tests\/asks - a part: a tool is missing/" tools/make
quickstart check
prints '^SKIP: tests/asks - a part: a tool is missing$'
prints '^1 skipped$'
[ "$(tail -n 1 "$work/out")" = "2 passed, 0 failed" ] || fail "the last line is $(tail -n 1 "$work/out")"
grep -q '^first test$' clone/build/quickstart.failed.log || fail "the log of the run that failed is lost"
grep -q '^FAIL: tests/one$' clone/build/test-suite.failed.log || fail "the tests' log of the run that failed is lost"
printf '#!/bin/sh\necho second; exit 1\n' >tools/make
sh clone/etc/quickstart >"$work/out" 2>&1 </dev/null && fail "it succeeds although make failed"
prints 'build/quickstart.failed.log$'
grep -q '^second$' clone/build/quickstart.failed.log || fail "the log of a build that failed is not kept"
printf '#!/bin/sh\nexit 0\n' >tools/make

# What it runs ends with it.
printf '#!/bin/sh\necho $$ >%s/process\nexec sleep 60\n' "$work" >tools/make
sh clone/etc/quickstart >"$work/out" 2>&1 </dev/null &
for pause in 1 2 3 4 5 6 7 8 9 10; do [ -s process ] || sleep .$pause; done
kill $!
wait $!
[ $? = 130 ] || fail "an interrupted quickstart does not end with 130"
prints 'interrupted$'
kill -0 "$(cat process)" 2>/dev/null && sleep .5
kill "$(cat process)" 2>/dev/null && fail "make goes on after an interruption"
printf '#!/bin/sh\nexit 0\n' >tools/make

# What configure found of CUDA is told: in a line, and loudly where NVIDIA's driver is.
config_log() {
  printf 'configure:1: checking for CUDA headers\nconfigure:2: gcc x\nconfigure:3: result: %s\n' "$1" >clone/build/config.log
}
printf '#!/bin/sh\n[ ! "$DRIVER" ] || echo "	libcuda.so.1 (libc6,x86-64) => /lib/libcuda.so.1"\n' >tools/ldconfig
chmod +x tools/ldconfig
config_log "no: cuda.h is missing; install it"
quickstart
prints '^The nvidia runtime, for NVIDIA GPUs, was not built: cuda.h is missing; install it$'
DRIVER=yes
export DRIVER
quickstart
prints "^WARNING: this machine has NVIDIA's driver, "
prints '^  cuda.h is missing; install it$'
config_log "yes, CUDA 12.9 in here"
HIPMM_RUNTIME=software # a GPU of this machine would be named
export HIPMM_RUNTIME
quickstart
unset HIPMM_RUNTIME
! grep -qi nvidia "$work/out" || fail "it speaks of NVIDIA although the runtime was built"
unset DRIVER

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
rm clone/config.status

# Where NVIDIA's driver is and CUDA's headers are not, they are fetched; without them hipmm is built all the same.
cat >>clone/configure <<'END'
case "$*" in
'--prefix=/x --with-cuda='*/cuda/nvidia/cuda_runtime) found="yes, CUDA 12.9" ;;
*) found="no: cuda.h is missing; install it" ;;
esac
printf 'configure:1: checking for CUDA headers\nconfigure:3: result: %s\n' "$found" >config.log
END
DRIVER=yes CONFIGURE_FLAGS=--prefix=/x
export DRIVER CONFIGURE_FLAGS
for status in 0 1; do
  mkdir "clone/build-$status"
  ln -s "$work/clone/build/hipmm" "clone/build-$status/hipmm"
  printf '#!/bin/sh\nexit %s\n' $status >tools/python3
  chmod +x tools/python3
  BUILD=build-$status quickstart
  grep -q '^WARNING: ' "$work/out" && warned=1 || warned=0
  [ $warned = $status ] || fail "fetching with status $status: the warning is given $warned times"
done
prints "^fetching CUDA's headers .*failed\$"
unset DRIVER CONFIGURE_FLAGS

# Where no package has HIP's headers, those of Debian are fetched, once; all else is installed.
printf '#!/bin/sh\ncase "$*" in *libamdhip64-dev*|*cmocka*) ;; *) printf installed ;; esac\n' >tools/dpkg-query
printf '#!/bin/sh\n[ "$2" != libamdhip64-dev ] && [ -e lists ]\n' >tools/apt-cache
printf '#!/bin/sh\ncase "$*" in update) touch lists ;; *install*) echo "$*" >>installed ;; esac\n' >tools/apt-get
printf '#!/bin/sh\necho "$2 $4" >>fetched\ntouch "$3"\n' >tools/apt-helper
printf '#!/bin/sh\nmkdir -p "$3/usr/include/hip" && touch "$3/usr/include/hip/hip_runtime_api.h"\n' >tools/dpkg-deb
printf '#!/bin/sh\necho all: >Makefile; echo "$ROCM_PATH" >given\n' >clone/configure
printf '#!/bin/sh\necho 0\n' >tools/id
chmod +x tools/*
mkdir clone/build-hip
ln -s "$work/clone/build/hipmm" clone/build-hip/hipmm
for time in first second; do
  BUILD=build-hip ROCM_PATH=/nowhere quickstart
  rm -f clone/build-hip/Makefile
done
[ "$(cat clone/build-hip/given)" = "$work/clone/build-hip/hip/usr" ] || fail "configure does not get HIP's headers"
[ "$(wc -l <clone/fetched)" = 1 ] || fail "they are fetched again"
grep -q '^http://deb.debian.org/.*_amd64.deb SHA256:[0-9a-f]\{64\}$' clone/fetched || fail "they are fetched without a checksum"
! grep -q libamdhip64-dev clone/installed && grep -q libcmocka-dev clone/installed || fail "the packages are: $(cat clone/installed)"
rm tools/id tools/apt-helper tools/dpkg-deb
printf '#!/bin/sh\nprintf installed\n' >tools/dpkg-query
cp tools/make tools/apt-get
cp tools/make tools/apt-cache

# A step that broke half-way is not taken for done, and its failure says what the machine lacks.
printf '#!/bin/sh\necho all: >Makefile; exit 1\n' >clone/configure
BUILD=build-broken sh clone/etc/quickstart >"$work/out" 2>&1 </dev/null && fail "it succeeds although configure failed"
[ ! -e clone/build-broken/Makefile ] || fail "a failed configure leaves a Makefile"
! grep -q 'is full' "$work/out" || fail "a disk with room is called full"
printf '#!/bin/sh\necho; echo "/dev/disk 100 99 1 99%% /"\n' >tools/df
chmod +x tools/df
BUILD=build-broken sh clone/etc/quickstart >"$work/out" 2>&1 </dev/null && fail "it succeeds although configure failed"
prints '^The disk of build-broken is full'
rm tools/df
BUILD=etc/hipmm.json sh clone/etc/quickstart >"$work/out" 2>&1 </dev/null && fail "a file is taken for the build folder"
prints ' cannot write in .*, or in etc/hipmm.json\. '
mkdir "with a blank"
if [ -x "$top_srcdir/configure" ]; then
  (cd "with a blank" && "$top_srcdir/configure") >"$work/out" 2>&1 && fail "configure goes on in a folder with a blank"
  prints '^configure: error: hipmm cannot be built in, or installed into, a folder whose path has a blank'
fi
printf '#!/bin/sh\nprintf not-installed\n' >tools/dpkg-query
printf '#!/bin/sh\necho 0\n' >tools/id
printf "#!/bin/sh\necho \"Temporary failure resolving 'deb.debian.org'\"; exit 1\n" >tools/apt-get
chmod +x tools/id
sh clone/etc/quickstart >"$work/out" 2>&1 </dev/null && fail "it goes on although packages cannot be fetched"
prints '^The packages cannot be fetched'

# Who cannot install is told what is missing.
printf '#!/bin/sh\necho 1000\n' >tools/id
printf '#!/bin/sh\necho "sudo: no" >&2; exit 1\n' >tools/sudo
chmod +x tools/sudo
sh clone/etc/quickstart >"$work/out" 2>"$work/err" </dev/null && fail "it goes on without packages"
prints '^  apt-get install gcc libc6-dev '
finish
