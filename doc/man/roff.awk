# SPDX-License-Identifier: MIT
#
# roff.awk: a text as a manual page has it. For headers.awk and commands.awk.

function roff(words) {
  gsub(/\\/, "\\(rs", words)
  gsub(/-/, "\\-", words)
  gsub(/`/, "\\(ga", words)
  gsub(/'/, "\\(aq", words)
  gsub(/\^/, "\\(ha", words)
  gsub(/~/, "\\(ti", words)
  gsub(/…/, "...", words) # which a terminal without UTF-8 has too
  gsub(/→/, "\\(->", words)
  gsub(/(^|\n)\./, "&\001", words)
  gsub(/\.\001/, "\\\\\\\&.", words)
  return words
}
