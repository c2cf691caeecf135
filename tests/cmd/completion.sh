#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm completion: the scripts of bash and zsh are good, complete what the tables have, and are what is installed.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_RUNTIME=software
export HIPMM_RUNTIME

run 2 completion
run 2 completion fish
says 'there is none for "fish"; it is bash or zsh'
for shell in bash zsh; do
  run 0 completion $shell
  cp "$work/out" "$work/script.$shell"
done
cmp "$work/script.bash" "$top_builddir/etc/completion/hipmm" || fail "the installed completion of bash is another"
cmp "$work/script.zsh" "$top_builddir/etc/completion/_hipmm" || fail "the installed completion of zsh is another"
run 0 completion types
prints '^pool$'
prints '^sample$'

# Every command with every option is in both.
run 0 --help
awk '/^  [a-z]/ { print $1 }' "$work/out" >"$work/commands"
while read -r command; do
  run 0 "$command" --help
  grep -q "^  $command:-\*) " "$work/script.bash" || fail "bash: no $command"
  grep -q "^    '$command:" "$work/script.zsh" || fail "zsh: no $command"
  sed -n "/^  $command)\$/,/^    ;;/p" "$work/script.zsh" >"$work/part"
  for option in $(sed -n 's/^  \(--[a-z-]*\).*/\1/p' "$work/out"); do
    grep -q "^  $command:-\*).* $option\( \|$\)" "$work/script.bash" || fail "bash: no $option of $command"
    grep -q -- "'$option[=[]" "$work/part" || fail "zsh: no $option of $command"
  done
done <"$work/commands"

# complete WORD...: what bash offers for the last word, on one line
complete() {
  bash -c '. "$0"; hipmm=$1; shift; hash -p "$hipmm" hipmm
    COMP_WORDS=("$hipmm" "$@") COMP_CWORD=$#; _hipmm; echo "${COMPREPLY[*]}"' "$work/script.bash" "$hipmm" "$@" 2>"$work/err"
}

# offers WANTED WORD...
offers() {
  wanted=$1
  shift
  got=$(complete "$@")
  [ "$got" = "$wanted" ] || fail "bash offers \"$got\" for \"hipmm $*\", and not \"$wanted\": $(cat "$work/err")"
}

if installed bash "what bash completes"; then
  : >graph.json
  offers "check" ch
  offers "show schema serve" s
  offers "--version" --v
  offers "--json --strict --quiet --help" check --
  offers "graph.json" check gra
  for command in replay plan tune report convert; do offers "graph.json" $command gra; done
  offers "graph.json" bench --config gra
  offers "handoff" bench --workload h
  offers "handoff" bench --workload = h
  offers "lognormal" bench --dist l
  offers "" bench --seconds ""
  offers "sample" describe samp
  offers "describe" help de
  offers "bash" completion b
  offers "graph.json" run --report = gra
fi
if installed zsh "whether zsh can read its completion"; then
  zsh -n "$work/script.zsh" || fail "zsh cannot read its completion"
fi
finish
