#!/bin/sh
# SPDX-License-Identifier: MIT
#
# README.md's installation without root, by its own lines: they install into the home folder, and compile and run README.md's
# program. Run by .ci/run as an ordinary user of a bare Debian, in a fresh clone.
set -eu
cd "$(dirname "$0")/.."

# block AFTER LANGUAGE: the first block of code in the language after the line that the pattern AFTER matches
block() {
  sed -n "/$1/,\$p" README.md | sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/{ /^\`\`\`\$/q; /^\`\`\`/!p }"
}
block '^## Embed it' c >program.c
block '^Without root' sh >without_root
cp etc/hipmm.json .
for word in etc/quickstart install PKG_CONFIG_PATH ./program; do
  grep -qF "$word" without_root || { echo "README.md's commands after \"Without root\" have no $word"; exit 1; }
done
sh -eux without_root
