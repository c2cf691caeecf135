# SPDX-License-Identifier: MIT
#
# Makes C of text files: a row for each of the array `list`, which is `templates` unless awk is told otherwise (templates.h). A text is a list of its lines, since a compiler need
# not take a longer one.
BEGIN {
  if (!list) list = "templates"
  print "/* Made by templates.awk. */\n#include \"templates.h\"\n\nextern const struct template " list "[];"
  print "\nconst struct template " list "[] = {"
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
