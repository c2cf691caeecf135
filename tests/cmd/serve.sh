#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `hipmm serve` as a command: what it says, one server for each name, what is left of one that was killed, wrong names and
# folders. tests/plugins/test_served.c has what it does.
. "$top_srcdir/tests/cmd/common.sh"

# start NAME [nohup]: serves in the background, and has said that it is ready
start() {
  : >said
  ${2-} "$hipmm" serve "$1" >said 2>err </dev/null &
  one=$!
  tries=0
  until grep -q serving said || [ $tries = 200 ]; do sleep 0.05 && tries=$((tries + 1)); done
  grep -q "^serving \"$1\", process $one\$" said || fail "the server does not start: $(cat said err)"
}

# end SIGNAL: the server ends cleanly
end() {
  kill "-$1" $one
  wait $one || fail "the server failed: $(cat err)"
  [ -z "$(ls run/hipmm)" ] || fail "a socket is left"
}

unset XDG_RUNTIME_DIR
run 1 serve weights
says 'serve: .*\$XDG_RUNTIME_DIR, which is not set'
mkdir -m 777 run
XDG_RUNTIME_DIR=$work/run
export XDG_RUNTIME_DIR
chmod 777 run
run 1 serve weights
says 'serve: .*run/hipmm cannot be used for sockets'
chmod 700 run

run 2 serve
run 2 serve ../weights
says 'serve: "../weights": a store.s name has 1 to 64 letters'
run 2 serve ''
run 2 serve "$(printf 'a%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65)"

start weights
run 1 serve weights
says 'serve: another process serves "weights" already'
[ -S run/hipmm/store-weights ] || fail "the second server has removed the first one's socket"
end TERM
start weights
end INT

start weights
end HUP
start weights nohup
kill -HUP $one
sleep 0.1
kill -0 $one || fail "nohup's server ends with the terminal"
end TERM

start weights
kill -KILL $one
wait $one 2>/dev/null
[ -S run/hipmm/store-weights ] || fail "there is no socket for the next server to find"
start weights
end TERM
touch run/hipmm/store-weights
run 1 serve weights
says 'serve: another process serves\|serve: the socket in'
finish
