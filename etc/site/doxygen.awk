# SPDX-License-Identifier: MIT
#
# Doxygen's input filter for the C++ headers: the comment above a declaration, and the one behind it, become Doxygen's.
{
  marked = $0
  if (marked !~ /\/\* (SPDX|-)/) sub(/^ *\/\*/, "&*", marked)
  if (marked == $0 && match(marked, /[;,] +\/\* .*\*\/$/)) sub(/\/\* /, "/**< ", marked)
  if (!in_comment && marked ~ /\/\*\*/) in_comment = 1
  if (in_comment) gsub(/[<>&@\\%#]/, "\\\\&", marked)
  sub(/\/\*\*\\</, "/**<", marked)
  if (marked ~ /\*\//) in_comment = 0
  print marked
}
