# SPDX-License-Identifier: MIT
#
# For a script of which a part needs what is not here; sourced. The part is a line of the log that begins with "SKIPPED: ",
# and script_driver.sh counts it as a skipped test.

# skip WHY: ends a script that cannot test anything here.
skip() {
  echo "$*"
  exit 77
}

# skip_part WHAT WHY
skip_part() {
  echo "SKIPPED: $1: $2"
}

# installed PROGRAM WHAT: whether the program is installed. If not, what is not tested without it is skipped.
installed() {
  command -v "$1" >/dev/null && return
  skip_part "$2" "${1##*/} is missing"
  return 1
}

# is_root WHAT: whether root runs this; else what only root can test is skipped.
is_root() {
  [ "$(id -u)" != 0 ] || return 0
  skip_part "$1" "only root can"
  return 1
}
