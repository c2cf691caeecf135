# SPDX-License-Identifier: MIT
#
# embedded.awk: makes C of text files: the list `list` (-v list=NAME) of embedded.h, with a row for each file. A text is a
# string literal for each line, since a compiler need not take a longer one.
BEGIN {
  print "/* Made by embedded.awk. */\n#include \"embedded.h\""
  print "\nconst struct embedded_file " list "[] = {"
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
