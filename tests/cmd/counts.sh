# SPDX-License-Identifier: MIT
#
# What the tests that count instructions share; sourced after common.sh. Callgrind counts the instructions of the functions
# that allocate and free, and of all that they call, between two functions of the program.

leave() {
  [ $failed = 0 ] || finish
  skip "$*, so instructions were not counted"
}

needs_callgrind() {
  command -v valgrind >/dev/null || leave "valgrind is missing"
  [ -z "${SANITIZER_FLAGS-}" ] || leave "this build has sanitizers"
  [ -z "${CHECK_CFLAGS-}" ] || leave "this build checks the order of locks"
  case $(sed -n 's/^CFLAGS = / /p' "$top_builddir/Makefile") in
  *\ -O[123s]*) ;;
  *) leave "this build is not optimised" ;;
  esac
}

# instructions NAME FIRST LAST PROGRAM ARGUMENT...: of an operation between the functions FIRST and LAST, into the variable
# NAME
instructions() {
  name=$1 first=$2 last=$3
  shift 3
  rm -f "$work"/profile*
  valgrind --tool=callgrind --callgrind-out-file="$work/profile" --compress-strings=no --compress-pos=no \
    --zero-before="$first" --dump-before="$last" "$@" >"$work/out" 2>"$work/err" </dev/null || {
    fail "callgrind: $*"
    sed 's/^/  /' "$work/out" "$work/err"
  }
  shift
  found=$(awk '/^cfn=/ { name = $0; next }
    /^calls=/ {
      split($0, word, /[= ]/)
      getline
      if (name ~ /^cfn=hipmm_((de)?allocate|buffer_(try_)?(create|destroy))$/) { calls += word[2]; cost += $2 }
    }
    END { if (calls > 0) printf "%.1f", cost / calls }' "$work/profile.1")
  [ -n "$found" ] || {
    fail "callgrind saw no operation of: $*"
    found=0
  }
  echo "$*: $found instructions an operation"
  eval "$name=\$found"
}

# at_most WHAT FOUND BOUND FACTOR
at_most() {
  awk -v found="$2" -v bound="$3" -v factor="$4" 'BEGIN { exit !(found > 0 && found <= bound * factor) }' ||
    fail "$1: $2 instructions an operation; at most $4 times $3 are allowed"
}
