#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The tree keeps its shape: an include of core/ goes down the list of layers or stays in its folder, a plugin includes
# only itself and plugins/common, a tool only itself and the headers that are listed here, a subcommand of `hipmm` nothing
# from another's folder, a library is used in the folders that it is named for, no files call each other in a circle, a name
# that one file needs is static, and each header compiles alone. doc/architecture.md says what each layer is. Run by
# `make check`.
set -eu

: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
[ -z "${SANITIZER_FLAGS-}" ] || { echo "the build without sanitizers looks at this"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$top_srcdir"
bad=0

# From the top down: a folder of core/, or a file in core/ itself without its suffix.
layers="compat init api framework inspect container stream call reclaim stack runtime graph plugin option base"

find core plugins tools -name '*.[ch]' | sort >"$work/sources"

# ---- Includes ----

# The included files, as "FILE INCLUDED", both from the top of the tree.
xargs grep -H '^#include "' <"$work/sources" | sed 's/:#include "\([^"]*\)".*/ \1/' | awk '
  $2 == "config.h" { next }
  {
    n = split($1, folder, "/") - 1
    m = split($2, part, "/")
    for (i = 1; i <= m; i++)
      if (part[i] == "..") n--
      else folder[++n] = part[i]
    path = folder[1]
    for (i = 2; i <= n; i++) path = path "/" folder[i]
    print $1, path
  }' >"$work/includes"
[ "$(wc -l <"$work/includes")" -gt 300 ] || { echo "found too few includes"; exit 1; }

# What knows nothing of a stack, and so is for plugins too.
helpers='^core/base/(asymmetric_fence|deadline|hip_layout|host_memory|key_map|key_tree|lock_order|memory_observer|output_file|own_symbol|record_format|share_format|text|thread|units)[.]h$'

# The headers of core/ that tools may include, and those of the socket between processes.
for_tools='^core/(base/(environment|error|hip_layout|key_map|key_tree|live_format|memory_observer|output_file|peak|rank|record_format|share_format|stack_sample|text|trust|units)|call/device_table|framework/framework_device|graph/(graph|graph_build)|inspect/(control|publish|report)|option/(option|option_value|registry)|plugin/(elf_file|loaded_object|plugin)|runtime/(hip|peer_access)|stack/(instance|instance_options|physical|stack))[.]h$|^plugins/common/(control_format|peer_message|peer_socket|serve_format)[.]h$'

# What the subcommands of `hipmm` share: reading a log, and playing it through a stack. Else each has a folder of its own.
shared_by_commands='^tools/command/(trace|play)/'

# The race detector is compiled into two objects: the software device and what `hipmm run` puts in front of a program.
races='^(plugins/runtimes/software|tools/preload)/'

# Types that are made of another type, whose files they compile.
made_of="binning:fixed_size fixed_buffer:pool pool:arena pool:heap arena:heap heap:pool"

awk -v layers="$layers" -v helpers="$helpers" -v for_tools="$for_tools" -v races="$races" \
  -v shared="$shared_by_commands" -v made_of="$made_of" '
  function layer(path, part) {
    split(path, part, "/")
    sub(/\.[ch]$/, "", part[2])
    if (!(part[2] in rank)) { print path ": core/" part[2] " is no layer that this test knows"; bad = 1 }
    return rank[part[2]]
  }
  function is_made_of(one, other) {
    return index(" " made_of " ", " " substr(one, 9) ":" substr(other, 9) " ")
  }
  function home(path, part) {
    split(path, part, "/")
    return part[2] == "runtimes" ? part[1] "/" part[2] "/" part[3] : part[1] "/" part[2]
  }
  function of_command(path, part) {
    return split(path, part, "/") > 3 && part[2] == "command" ? part[3] : ""
  }
  BEGIN { n = split(layers, name, " "); for (i = 1; i <= n; i++) rank[name[i]] = i }
  $1 ~ /^core\// && $2 !~ /^core\// { print $1 ": includes " $2 ", which is outside of core/"; bad = 1; next }
  $1 ~ /^plugins\// && $2 ~ helpers { next }
  $2 ~ /^plugins\/race\// && $1 ~ races { next }
  $1 ~ /^tools\// && $2 !~ for_tools && home($2) != home($1) {
    print $1 ": includes " $2 ", which is not for tools"; bad = 1
  }
  $2 ~ /^tools\/command\// && of_command($2) && of_command($2) != of_command($1) && ($2 !~ shared || $1 ~ /\/trace\//) {
    print $1 ": includes " $2 ", which is of another subcommand; what they share is in trace/, play/ or above"; bad = 1
  }
  $1 ~ /^core\// && layer($2) < layer($1) { print $1 ": includes " $2 ", which is above it"; bad = 1 }
  $1 ~ /^plugins\// && home($2) != "plugins/common" && home($2) != home($1) &&
    !is_made_of(home($1), home($2)) {
    print $1 ": includes " $2 ", which is of another plugin; what plugins share is in plugins/common"; bad = 1
  }
  $1 ~ /^plugins\/common\// && $2 !~ /^plugins\/common\// { print $1 ": includes " $2 ", which is above it"; bad = 1 }
  END { exit bad }' "$work/includes" || bad=1

# only HEADER FOLDERS...: the header is included below these folders alone
only() {
  header=$1
  shift
  xargs grep -l "^#include <$header" <"$work/sources" >"$work/users" || true
  for folder; do
    sed -i "\\|^$folder/|d" "$work/users"
  done
  [ ! -s "$work/users" ] || { echo "<$header> is for $*, and is included by:"; cat "$work/users"; bad=1; }
}

only jansson.h core/graph core/option core/inspect tools/command
only ltdl.h core/plugin
only hip/ core/runtime plugins/runtimes tools/preload
only cuda plugins/runtimes/nvidia tools/preload

# ---- Calls ----

# circle NAME FOLDER...: the objects of these folders that need each other's symbols in a circle
circle() {
  name=$1
  shift
  # "FILE[MEMBER]: SYMBOL TYPE …"; the objects of libtool's two ways of compiling count as one
  find "$@" -name '*.o' -exec ${NM:-nm} -A -P {} + 2>/dev/null | awk -v top="$top_builddir/" '
    {
      object = $1
      sub(/:$/, "", object)
      if (!(object in names)) {
        name = object
        if (index(name, top) == 1) name = substr(name, length(top) + 1)
        sub(/\/\.libs/, "", name)
        sub(/[^\/]*-/, "", name)
        names[object] = name
      }
      print names[object], $2, $3
    }' >"$work/symbols"
  awk '$3 == "U" { next } $3 ~ /[A-Z]/ { print $2, $1 }' "$work/symbols" | sort -u >"$work/defined"
  awk '$3 == "U" { print $2, $1 }' "$work/symbols" | sort -u >"$work/needed"
  cat "$work/defined" >>"$work/all_defined"
  cat "$work/needed" >>"$work/all_needed"
  join "$work/needed" "$work/defined" | awk '$2 != $3 { print $2, $3 }' | sort -u >"$work/calls"
  tsort "$work/calls" >/dev/null 2>"$work/loops" && return
  echo "$name: these files need each other:"
  sed 's/^tsort: //; /input contains a loop/d' "$work/loops" | sort -u
  bad=1
}

circle core $(find "$top_builddir/core" -name .libs)
circle "hipmm command" "$top_builddir/tools/command"
circle preload "$top_builddir/tools/preload"
for folder in plugins/[a-z]*/ plugins/runtimes/[a-z]*/; do
  [ "$folder" != plugins/runtimes/ ] || continue
  circle "${folder%/}" "$top_builddir/$folder"
done

# ---- Names ----

# A name that no other source needs, a test's included, is static. Not those that an object exports, nor one that only
# assembler calls.
sort -u "$work/all_needed" >"$work/needed"
sort -u "$work/all_defined" | join -v 1 - "$work/needed" | sed -E 's/[.]o$/.c/; /^(hip|cu|rmm|nv|_)|_LTX_|^exports_choose_lookup /d' >"$work/unneeded"
cut -d ' ' -f 1 "$work/unneeded" >"$work/names"
find core plugins tools tests \( -name '*.c' -o -name '*.cpp' \) -exec grep -owHFf "$work/names" {} + | sort -u |
  awk -F : '{ n[$2]++; file[$2] = $1 } END { for (name in n) if (n[name] == 1) print name, file[name] }' | sort |
  comm -12 - "$work/unneeded" >"$work/lonely"
[ ! -s "$work/lonely" ] || { echo "no other file needs these names, which can be static:"; cat "$work/lonely"; bad=1; }

# ---- Headers ----

flags="-std=gnu11 -D_GNU_SOURCE -I$top_srcdir/include -I$top_builddir ${HIP_CFLAGS-} ${CUDA_CFLAGS-} ${JANSSON_CFLAGS-}"
# Those of the nvidia runtime need CUDA's, as building it does.
[ -e "$top_builddir/plugins/runtimes/nvidia/nvidia.la" ] || sed -i '\|^plugins/runtimes/nvidia/|d' "$work/sources"
grep '\.h$' "$work/sources" | while read -r header; do
  # shellcheck disable=SC2086 # lists of words
  printf '#include "%s"\n' "$top_srcdir/$header" | ${CC:-cc} $flags -fsyntax-only -x c - 2>"$work/errors" ||
    { echo "$header does not compile alone:"; head -n 3 "$work/errors"; }
done >"$work/headers"
[ ! -s "$work/headers" ] || { cat "$work/headers"; bad=1; }

exit $bad
