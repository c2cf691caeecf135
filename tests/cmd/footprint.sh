#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The peak of memory held from the driver over the peak of memory requested by real programs: in the first pass, and in
# later ones, where it must not grow.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_RUNTIME=software
HIPMM_SOFTWARE=memory=64GiB
export HIPMM_RUNTIME HIPMM_SOFTWARE

command -v xz >/dev/null || {
  echo "xz is missing, so the logs of real programs were not replayed"
  exit 77
}
echo '{ "stack": ["pool", "device"] }' >default.json
echo '{ "stack": [{ "type": "pool", "growth": "mapped" }, "device"] }' >mapped.json
config=default.json

# holds_at_most LOG BOUND
holds_at_most() {
  xz -dc "$top_srcdir/tests/data/$1.csv.xz" >"$1.csv" || exit 99
  for passes in 1 8; do
    run 0 replay --json --repeat $passes --config "$config" "$1.csv"
    overhead=$(sed -n 's/^ *"overhead": \([0-9.]*\),*$/\1/p' "$work/out")
    echo "$1, passes: $passes, held over requested: $overhead, at most $2"
    awk -v held="$overhead" -v bound="$2" 'BEGIN { exit !(held >= 1 && held <= bound) }' ||
      fail "$1, passes: $passes: held $overhead times what was requested"
  done
}

holds_at_most resnet50_train 1.01
holds_at_most gpt2_steps 1.01
holds_at_most cupy_frames 1.06

# hipmm does not know whether a runtime named by its path can map a chunk twice. A pool with "growth": "mapped" would have
# to wait before it moves a chunk, so it grows first.
config=mapped.json
HIPMM_RUNTIME=$(realpath "$top_builddir/plugins/runtimes/software/.libs/software.so")
holds_at_most resnet50_train 1.03
holds_at_most cupy_frames 1.07

finish
