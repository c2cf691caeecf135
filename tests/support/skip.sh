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

# is_clone FOLDER WHAT: whether git reads the folder; it refuses a clone of another user. If not, what needs a clone is skipped.
is_clone() {
  [ -e "$1/.git" ] && installed git "$2" || return
  git -C "$1" rev-parse --quiet --verify HEAD >/dev/null 2>&1 && return
  skip_part "$2" "git does not read the clone"
  return 1
}

# is_root WHAT: whether root runs this; else what only root can test is skipped.
is_root() {
  [ "$(id -u)" != 0 ] || return 0
  skip_part "$1" "only root can"
  return 1
}
