#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Logs of real programs, replayed through each of the sub-allocators that grow under each adaptor that `hipmm describe`
# lists: nothing fails, nothing is said in the log, and the numbers are those of a plain device. $traces: the logs; by
# default a short one. $poisoned: how many events of each guard plays with every freed block filled and looked at again,
# which writes all the memory that the program ever allocated; it plays the whole without.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_PLUGIN_PATH=$top_builddir/plugins
HIPMM_RUNTIME=software
HIPMM_LOG=warning:$work/said
export HIPMM_RUNTIME HIPMM_LOG
traces=${traces-$top_srcdir/tests/data/cupy_frames.csv.xz}
poisoned=${poisoned-1500}
HIPMM_SOFTWARE=memory=64GiB
export HIPMM_SOFTWARE
command -v xz >/dev/null || skip "xz is missing, so no log was replayed"

# options ADAPTOR: with what it stands in a graph, each option with a comma behind it. An adaptor that is not here takes
# none. They let everything pass, and make it do all its work.
options() {
  case $1 in
  advise) echo '"read_mostly": true, "preferred_location": "device", "accessed_by": ["cpu"],' ;;
  aligned) echo '"alignment": 4096, "alignment_threshold": 65536,' ;;
  failure_callback) echo '"callback": "give_up",' ;;
  fault) echo '"above": "1TiB", "after_total": "1000TiB",' ;;
  hooks) echo '"hooks": "ignore",' ;;
  guard) echo '"quarantine_size": "16MiB", "poison": '$poison', "on_damage": "error",' ;;
  limiting) echo '"limit": "48GiB",' ;;
  logging) echo "\"file\": \"$work/log.csv\"," ;;
  recording) echo "\"file\": \"$work/log.record\", \"stacks\": \"all\"," ;;
  tracking) echo '"report_at_end": true,' ;;
  esac
}

# Managed memory has what these two ask for.
source_for() {
  case $1 in advise | prefetch) echo managed ;; *) echo device ;; esac
}

# The sub-allocators, each as the resource "middle".
sub_allocator() {
  case $1 in
  arena) echo '"middle": { "type": "arena", "upstream": "bottom" }' ;;
  binning)
    echo '"middle": { "type": "binning", "upstream": "pool", "min_size_exponent": 9, "max_size_exponent": 20 },'
    echo '"pool": { "type": "pool", "upstream": "bottom" }'
    ;;
  *) echo "\"middle\": { \"type\": \"$1\", \"upstream\": \"bottom\" }" ;;
  esac
}

# What takes several upstreams gets one that is soon at its limit, and the one that all others get.
graph() {
  upstream='"middle"'
  narrow=
  [ "$1" != fallback ] || {
    upstream='["narrow", "middle"]'
    narrow=', "narrow": { "type": "limiting", "limit": "64MiB", "upstream": "middle" }'
  }
  echo '{ "resources": {'
  echo "\"top\": { \"type\": \"$1\", $(options "$1") \"upstream\": $upstream }$narrow,"
  echo "$(sub_allocator "$2"),"
  echo "\"bottom\": { \"type\": \"$(source_for "$1")\" } } }"
}

# number NAME: the value of that name in the JSON printed
number() {
  sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" "$work/out"
}

# play ARGUMENT...: replays; the numbers that must not differ are in $numbers
play() {
  : >"$work/said"
  "$top_builddir/tests/traces/replay" --json "$@" >"$work/out" 2>"$work/err" </dev/null
  got=$?
  numbers=
  for number in events allocations frees failures unmatched_frees live_at_end peak_requested_bytes; do
    numbers="$numbers $number $(number $number)"
  done
  [ $got = 0 ] || {
    fail "$what: exit status $got"
    sed 's/^/  /' "$work/out" "$work/err"
  }
  [ ! -s "$work/said" ] || {
    fail "$what: in the log:"
    sed 's/^/  /;20q' "$work/said"
  }
}

# What the log of `logging` or `recording` has is what it was played.
check_log() {
  what="$what, its own log"
  "$hipmm" convert -q "$1" -o log.csv.again --format csv || fail "$what: cannot be converted"
  [ "$(grep -c ',allocate,' log.csv.again)" = "$(grep -c ',allocate,' trace.csv)" ] || fail "$what: other allocations"
  play --config plain.json "$1"
  [ "${numbers##*peak}" = "${plain##*peak}" ] || fail "$what:$numbers instead of$plain"
}

# through ADAPTOR SUB_ALLOCATOR TRACE: what a plain device makes of it is in $expected
through() {
  what="$name through $1 over $2"
  graph "$1" "$2" >graph.json
  play --config graph.json "$3"
  [ "$numbers" = "$expected" ] || fail "$what:$numbers instead of$expected"
}

# plainly TRACE: the numbers without any of it
plainly() {
  what="$name through nothing"
  play --config plain.json "$1"
}

adaptors=$("$hipmm" describe | awk '/^Adaptors/ { on = 1; next } /^[A-Z]/ { on = 0 } on && /^  [a-z]/ { print $1 }')
[ "$(echo "$adaptors" | wc -l)" -ge 12 ] || fail "hipmm describe lists only these adaptors: $adaptors"
echo '{ "stack": ["device"] }' >plain.json

for trace in $traces; do
  name=$(basename "$trace" .csv.xz)
  xz -dc "$trace" >trace.csv || exit 99
  head -n $((poisoned + 1)) trace.csv >head.csv
  plainly head.csv
  plain_head=$numbers
  plainly trace.csv
  plain=$numbers
  for sub_allocator in arena binning pool; do
    for adaptor in $adaptors; do
      poison=false
      expected=$plain
      through "$adaptor" $sub_allocator trace.csv
      [ "$adaptor" != logging ] || check_log log.csv
      [ "$adaptor" != recording ] || check_log log.record
    done
    poison=true
    expected=$plain_head
    through guard $sub_allocator head.csv
  done
  echo "$name: done"
done

finish
