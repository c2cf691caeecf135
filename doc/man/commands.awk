# SPDX-License-Identifier: MIT
#
# commands.awk: what `hipmm COMMAND --help` prints, unwrapped, as a subsection of hipmm(1): the usage line, paragraphs of a
# line each, options as "  --name VALUE  words".

/^Usage: / {
  print ".SS " name
  print ".B " roff(substr($0, 8))
  next
}

/^$/ {
  paragraph = 1
  next
}

/^  -/ {
  text = substr($0, 3)
  gap = match(text, /   */)
  print ".TP\n.B " roff(substr(text, 1, gap - 1))
  print roff(substr(text, gap + RLENGTH))
  next
}

{
  print paragraph ? ".PP" : ".br"
  print roff($0)
  paragraph = 0
}
