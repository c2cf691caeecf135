#!/bin/sh
# SPDX-License-Identifier: MIT
#
# completion.sh SHELL OUTPUT: makes the completion of bash or zsh. Called by make, which sets HIPMM to a hipmm that runs here;
# if that is empty, the shell asks the installed command instead.
set -eu
shell=$1 output=$2
trap 'rm -f "$output.part"' EXIT
unset HIPMM_CONFIG HIPMM_RUNTIME HIPMM_LOG
if [ "$HIPMM" ]; then
  "$HIPMM" completion "$shell" >"$output.part"
else
  printf '#compdef hipmm\neval "$(hipmm completion %s)"\n' "$shell" >"$output.part"
fi
mv "$output.part" "$output"
