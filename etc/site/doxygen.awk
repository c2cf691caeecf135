# SPDX-License-Identifier: MIT
#
# Doxygen's input filter for the C++ headers: the comment above a declaration, and the one behind it, become Doxygen's.
# Examples, which are indented by five, stay as they are.
{
  marked = $0
  if (marked !~ /\/\* (SPDX|-)/) sub(/^ *\/\*/, "&*", marked)
  if (marked == $0 && match(marked, /[;,] +\/\* .*\*\/$/)) sub(/\/\* /, "/**< ", marked)
  if (!in_comment && marked ~ /\/\*\*/) in_comment = 1
  if (in_comment && marked !~ /^ *\*     /) gsub(/[<>&@\\%#]/, "\\\\&", marked)
  sub(/\/\*\*\\</, "/**<", marked)
  if (FNR == 2) sub(/\/\*\* [^:]*:/, "/** @file\n *", marked) # what the file is
  if (marked ~ /\*\//) in_comment = 0
  print marked
}
