#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `hipmm plugin test` passes on all types that come with hipmm, and fails on each plugin of a zoo, by the check that the
# mistake concerns. `plugins` is the list of plugins that were built.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
: "${plugins:?set it to the list of plugins}"
# A plugin that crashes is a finding; a sanitizer must not turn the signal into an exit status.
ASAN_OPTIONS=${ASAN_OPTIONS-}:handle_segv=0:handle_abort=0:handle_sigfpe=0
TSAN_OPTIONS=${TSAN_OPTIONS-}:handle_segv=0:handle_abort=0:handle_sigfpe=0
UBSAN_OPTIONS=${UBSAN_OPTIONS-}:handle_segv=0:handle_abort=0:handle_sigfpe=0
export ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS
bad=$top_builddir/tests/bad/.libs

# ---- All types ----

for plugin in $plugins; do
  type=${plugin##*/} type=${type%.la}
  file=$top_builddir/${plugin%/*}/.libs/$type.so
  case $type in
  advise | prefetch) run 0 plugin test --seconds 0 --over managed "$file" ;; # they refuse memory that does not migrate
  logging) run 0 plugin test --seconds 0 --options "{\"file\": \"$work/log.csv\"}" "$file" ;;
  recording) run 0 plugin test --seconds 0 --options "{\"file\": \"$work/log.record\"}" "$file" ;;
  async_import | served) # they need another process
    for check in load imports descriptor; do run 0 plugin test --seconds 0 --only $check "$file"; done ;;
  pool) run 0 plugin test --seconds 0 --over managed "$file" ;;
  *) run 0 plugin test --seconds 0 "$file" ;;
  esac
  prints ' 0 failed, '
done

# Over other types than the usual one.
run 0 plugin test --seconds 0 --over pool "$top_builddir/plugins/statistics/.libs/statistics.so"
prints '^statistics: [0-9]* passed, 0 failed, 2 skipped$' # look-ups and keep, which are not for adaptors
run 0 plugin test --seconds 0 --options '{"bins": [{"size": "4KiB"}]}' --over pool "$top_builddir/plugins/binning/.libs/binning.so"

# ---- The zoo ----

# finds CHECK TEXT ARGUMENT...: the check fails and says so, in one line that also says how to mend it
finds() {
  check=$1 text=$2
  shift 2
  run 1 plugin test --seconds 0 "$@"
  prints "^FAILED   $check: .*; came: .*$text.*; to mend it: .\{20\}"
}

run 0 plugin test --seconds 0 "$bad/zoo.so"
while read -r mistake check text; do
  finds "$(echo "$check" | tr _ ' ')" "$text" --only "$(echo "$check" | tr _ ' ')" --options "{\"mistake\": \"$mistake\"}" \
    "$bad/zoo.so"
done <<END
crashes values the process [a-z]*ed
double_free second_free a second free succeeds
double_free foreign_pointer a free of a foreign pointer succeeds
ends_captures captures a free on the stream that is captured ends the capture
fails_at_end values process_end
fails_silently huge_sizes gave no reason
foreign_status huge_sizes its allocate returned 7, which is not a status of hipmm
forgets_size wrong_size a free with a size too small succeeds
gives_null distinct_blocks succeeds, and gives NULL
gives_twice distinct_blocks overlaps a live block
half_serves at_once try_allocate calls the upstream's allocate
hoards leaks 1 of the upstream's blocks were not given back
ignores_hip HIP_failures 1 of the upstream's blocks were not given back
ignores_host host_memory the process [a-z]*ed
ignores_upstream upstream_failures 1 of the upstream's blocks were not given back
keeps_blocks exhaustion 384 blocks were to be had at first, and 192
leaks_host create blocks of services->host_allocate() (.* bytes) were not given back
misaligns alignment is not aligned to 256 bytes
needs_size unknown_size the free of a block
no_query values query of the value zoo_value succeeds, and writes no value
overflows huge_sizes an allocation of 18446744073709551615 bytes succeeds
races threads .
refuses_zero zero_size an allocation of 0 bytes
rounds sizes 1 bytes were asked for, and 512 of the upstream
writes_on_failure exhaustion fails, and writes to
END
finds values 'it did not end within 1 s, and was killed' --timeout 1 --only values --options '{"mistake": "hangs"}' \
  "$bad/zoo.so"
finds streams 'lost its pattern .* on stream' --only streams --options '{"mistake": "order"}' \
  "$top_builddir/tests/model/.libs/no_wait_plugin.so"
finds load 'no plugin descriptor: it exports neither no_descriptor_LTX_hipmm_plugin nor' "$bad/no_descriptor.so"
finds load 'nobody_has_this' "$bad/undefined_symbol.so"
head -c 2000 "$bad/zoo.so" >"$work/zoo.so"
finds load 'the file is cut off' "$work/zoo.so"

# descriptor CHECK TEXT FLAG...: the mistake is in what the compiler gets
descriptor() {
  check=$1 text=$2
  shift 2
  # shellcheck disable=SC2086 # lists of words
  ${CC:-cc} -std=gnu11 -shared -fPIC ${SANITIZER_FLAGS-} -Wno-override-init -I "$top_srcdir/include" "$@" -o \
    "$work/zoo_descriptor.so" "$top_srcdir/tests/bad/zoo_descriptor.c" || fail "zoo_descriptor.c cannot be compiled"
  if [ "$check" ]; then
    finds "$check" "$text" "$work/zoo_descriptor.so"
  else
    run 0 plugin test --seconds 0 "$work/zoo_descriptor.so"
  fi
}

# row NAME TYPE FIELD TEXT...: the second option
row() {
  echo "-DZOO_OPTION={.name=\"$1\",.type=HIPMM_OPTION_$2,AT($3)$4}"
}

descriptor '' ''
descriptor descriptor 'an option is called "type"' "$(row type INTEGER number)"
descriptor load 'has size twice' "$(row size BYTES more)"
descriptor descriptor 'option "Size" is not written in lower-case' "$(row Size BYTES more)"
descriptor descriptor 'option number: its default is not a value of it: ' "$(row number INTEGER number ,.initial=\"many\")"
descriptor descriptor 'option number: its default is not a value of it: .*' \
  "$(row number INTEGER number ,.initial=\"5\",.maximum=\"4\")"
descriptor descriptor 'option number: its minimum is not a value of it: ' \
  "$(row number INTEGER number ,.minimum=\"5\",.maximum=\"4\")"
descriptor descriptor 'at_least names nothing' "$(row more BYTES more ,.at_least=\"nothing\")"
descriptor descriptor 'options size and more fill the same bytes' "$(row more BYTES size)"
descriptor descriptor 'option more must be given, and has a default' \
  "$(row more BYTES more ,.initial=\"1\",.flags=HIPMM_OPTION_REQUIRED)"
descriptor descriptor 'value of_zoo is there twice' -DZOO_FIELDS=.values=zoo_descriptor_values,.n_values=2
descriptor descriptor 'it is a source, and takes upstreams' -DZOO_FIELDS=.role=HIPMM_ROLE_SOURCE
descriptor descriptor 'flags 0x400 are unknown' -DZOO_FIELDS=.flags=1024
descriptor values 'query of the value of_zoo' -DZOO_FIELDS=.values=zoo_descriptor_values,.n_values=1
descriptor load 'hipmm_version' -DZOO_IMPORTS
run 1 plugin test --seconds 0 --only imports "$work/zoo_descriptor.so"
prints '^FAILED   imports: it imports nothing of libhipmm; came: it imports hipmm_version; to mend it: '

# ---- As JSON, and wrong usage ----

run 1 plugin test --seconds 0 --json --only 'second free' --options '{"mistake": "double_free"}' "$bad/zoo.so"
prints '"failed": 1'
prints '"verdict": "failed"'
prints '"came": "a second free succeeds"'
prints '"mend": "keep a record'
run 0 plugin test --seconds 0 --json "$top_builddir/plugins/limiting/.libs/limiting.so"
prints '"over": "device"'
prints '"skipped": 2'

run 2 plugin
says 'write `hipmm plugin new NAME` or `hipmm plugin test FILE.so`$'
run 2 plugin tset
says 'unknown action "tset"; did you mean "test"?'
mkdir "$work/new"
cd "$work/new"
for name in test hipmm hipmm_resource; do
  run 2 plugin new $name
  says "\"$name\" cannot be a type's name: \"test\" and names that begin with \"hipmm\" are taken"
  [ ! -e $name ] || fail "plugin new $name: there is a folder"
done
run 2 plugin new
says 'the name of the type is missing: hipmm plugin new NAME$'
run 2 plugin new Mine
says '"Mine" cannot be a type.s name: write at most'
run 1 plugin new pool
says 'there is a type "pool" already; choose another name$'
mkdir there
run 1 plugin new there
says 'there: there is a file or folder of this name already$'
run 2 plugin new --role divider mine
says '\--role "divider" is not known; it is adaptor, sub-allocator or source$'
for role in adaptor sub-allocator source; do
  run 0 plugin new --role $role mine
  grep -q "a resource type for hipmm: an* $role, which" mine/mine.c || fail "plugin new --role $role writes another one"
  grep -q '@[A-Z]*@' mine/* && fail "plugin new --role $role leaves a place unfilled"
  rm -r mine
done
cd - >/dev/null
run 2 plugin test
says "the plugin's file is missing"
run 2 plugin test --only nonsense "$bad/zoo.so"
says 'there is no check "nonsense"; the checks are load, imports, '
run 2 plugin test --options '[]' "$bad/zoo.so"
says '\--options is not a JSON object'
run 2 plugin test --timeout 0 "$bad/zoo.so"
says 'timeout'
run 1 plugin test --seconds 0 "$work/none.so"
says "none.so: no such file; name the plugin's file, TYPE.so (hipmm describe TYPE shows where that of a type is)$"
run 1 plugin test --seconds 0 "$top_srcdir/README.md"
says "a plugin's file is called TYPE.so"
finds create '.*--over: no plugin nothing.so in ' --over nothing "$bad/zoo.so"
finds create '.*option "mistaek"' --options '{"mistaek": "none"}' "$bad/zoo.so"

finish
