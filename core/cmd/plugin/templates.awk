# SPDX-License-Identifier: MIT
#
# Makes C of text files: a row of `templates` (templates.h) for each. A text is a list of its lines, since a compiler need
# not take a longer one.
BEGIN {
  print "/* Made by templates.awk. */\n#include \"templates.h\"\n\nconst struct template templates[] = {"
}

FNR == 1 {
  if (NR > 1) print "    },"
  name = FILENAME
  sub(/.*\//, "", name)
  print "    {\"" name "\","
}

{
  gsub(/\\/, "&&")
  gsub(/"/, "\\\"")
  print "     \"" $0 "\\n\""
}

END {
  print "    },\n    {(void *)0, (void *)0},\n};"
}
