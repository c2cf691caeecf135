#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the default stack holds from the driver at most, over what real programs ask for at most: in the first pass, and in
# later ones, in which nothing may creep.
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

# Of a runtime that is named by its path nobody knows that it can map a piece twice: a pool that is to map all the same
# would have to wait before it moves one, and grows first.
config=mapped.json
HIPMM_RUNTIME=$(realpath "$top_builddir/plugins/runtimes/software/.libs/software.so")
holds_at_most resnet50_train 1.03
holds_at_most cupy_frames 1.07

finish
