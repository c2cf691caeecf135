#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm top and export: what two programs publish, what is left of one that is killed, files that are something else, the
# screen with its keys, and a Prometheus that asks.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_RUNTIME=software
HIPMM_LOG=error
export HIPMM_RUNTIME HIPMM_LOG
[ -w /dev/shm ] || skip "/dev/shm cannot be written here"

echo '{ "publish": true, "stack": ["statistics", "pool", "device"] }' >hipmm.json
echo '{ "stack": ["statistics", "pool", "device"] }' >silent.json
python3=$(command -v python3) || skip "python3 is missing"
# Ends all programs, and removes what they leave.
clean() {
  kill -9 $box $other 2>/dev/null
  for process in $one $two $quiet $three $odd $holder; do
    kill "$process" 2>/dev/null
    rm -f "$published.$process"
  done
  rm -rf "$work" $junk $foreign
}
trap clean EXIT

# Other programs publish here too, and may have left files: this test looks for its own names alone. `mark` is in the command
# of a process, and no process has the number `beyond`.
user=$(id -u)
space=$(stat -Lc %i /proc/self/ns/pid)
published=/dev/shm/hipmm.$user.$space
mark=mark-${work##*.}
beyond=$((4194304 + $$))
ln -s "$hipmm" "$mark"

# start NAME GRAPH: a program that has allocated 1 MiB and freed 3 MiB, and waits for the end of its input, which this test holds
# open; its process is $NAME
program=$top_builddir/tests/cmd/controlled
ln -s "$program" "$mark-program"
mkfifo hold
exec 4<>hold
start() {
  HIPMM_CONFIG=$2 "$program" --graph "$2" train <hold >/dev/null 2>&1 &
  eval "$1=$!"
}

# value PROCESS PATH NAME LEAST: of `hipmm top --json`, which is asked until the value is at least LEAST: a program that has just
# started publishes zero, then its first few blocks
value() {
  "$python3" - "$hipmm" "$@" <<'END'
import json, subprocess, sys, time
hipmm, process, path, name, least = sys.argv[1:]
found = None
for _ in range(100):
    out = subprocess.run([hipmm, "top", "--json"], capture_output=True, text=True, check=True).stdout
    for row in [row for one in json.loads(out) if one["process"] == int(process) for row in one["resources"]]:
        if row["path"] == path: found = row[name]
    if found is not None and found >= int(least): break
    time.sleep(0.05)
else: raise SystemExit(f"{name} of {path} in process {process} is {found}, at least {least} was expected")
END
}

start one hipmm.json
start two hipmm.json
start quiet silent.json
value $one devices/0/pool live_bytes 65536 || fail "the first program's memory is not shown"
value $two devices/0/statistics allocations 1 || fail "the second program's allocations are not shown"
value $two devices/0 reserved_bytes 65536 || fail "the device's memory is not shown"
run 0 top --once
prints "^ *$one devices/0 of [0-9.]* GiB  *- .* controlled --graph hipmm.json train$"
prints "^device 0: [0-9.]* MiB of [0-9.]* GiB reserved ([0-9]*%) by [0-9]* processes$"
prints "^ *$two   devices/0/pool .* pool$"
grep -q "^ *$quiet " "$work/out" && fail "a program is shown that did not ask for it"
[ "$(stat -c %a "$published.$one")" = 600 ] || fail "others may read what is published"
run 0 top --process "$one"
grep -q "^ *$two " "$work/out" && fail "another process than the one asked for is shown"

# The variable decides over the graph.
HIPMM_PUBLISH=1 start three silent.json
holder=
value $three devices/0/pool live_blocks 1 || fail "HIPMM_PUBLISH=1 does not publish"
HIPMM_PUBLISH=0 HIPMM_CONFIG=hipmm.json "$program" </dev/null >/dev/null
HIPMM_LOG=warning HIPMM_PUBLISH=yes HIPMM_CONFIG=hipmm.json "$program" </dev/null >out 2>err
grep -q 'HIPMM_PUBLISH is "yes"; write 1 to publish counters, 0 not to' err || fail "a wrong HIPMM_PUBLISH is not told: $(cat err)"

# ---- Killed, ended, and files that are something else ----

kill -9 "$two"
wait "$two" 2>/dev/null
killed=$two two=
run 0 top
grep -q "^ *$killed " "$work/out" && fail "a process that was killed is shown"
[ ! -e "$published.$killed" ] || fail "what the killed process published is still there"
junk="$published.9$beyond $published.99$beyond"
newer="$published."
# Their writers live as long as they are tested: a shell that holds the locks of random bytes, and of what a process of a later
# release would publish, whose head and rows are larger.
"$python3" - $junk "$newer" "$published.$one" <<'END' &
import fcntl, os, struct, sys, time
held = []
while True: # between two updates
    head, again = (open(sys.argv[4], "rb").read() for _ in range(2))
    if head[48:56] == again[48:56] and head[48] % 2 == 0: break
file_bytes, row_bytes, process, n_rows, n_wanted, offset = struct.unpack_from("<6I", head, 8)
rows = [head[offset + i * row_bytes:][:row_bytes] + b"\xff" * 40 for i in range(n_rows)]
number = os.getpid()
newer = sys.argv[3] + str(number)
sizes = struct.pack("<6I", offset + 128 + 300 * (row_bytes + 40), row_bytes + 40, number, n_rows, n_wanted, offset + 128)
sequence = struct.pack("<Q", 2) # of a process that writes nothing now
rows[1] = rows[1][:264] + struct.pack("<3q", 3 << 20, 2 << 30, 5 << 20) + rows[1][288:] # all that a row may have below it
rows[-1] = rows[0] # which would be two series with the same labels
later = head[:8] + sizes + head[32:48] + sequence + head[56:offset] + b"\xff" * 128 + b"".join(rows)
for name, content in zip(sys.argv[1:3] + [newer], (b"HIPMMLV1" + os.urandom(70000), b"HIPMMLV1" + os.urandom(10), later)):
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    os.write(file, content)
    fcntl.fcntl(file, 37, struct.pack("hhqqhxxxxxx", fcntl.F_WRLCK, 0, 0, 0, 0)[:32].ljust(32, b"\0"))  # F_OFD_SETLK
    held.append(file)
open("held", "w").close()
time.sleep(60)
END
holder=$!
tries=0
until [ -e held ] || [ $tries = 100 ]; do sleep 0.05 && tries=$((tries + 1)); done
run 0 top
prints "^ *$one devices/0 "
prints "^ *$holder   devices/0/pool "
prints '^             3 MiB idle in pieces, pinned 2 GiB, file 5 MiB$'
run 0 export
[ "$(grep '^hipmm_' "$work/out" | sed 's/ [^ ]*$//' | sort | uniq -d)" = "" ] || fail "two series have the same labels"
kill "$holder"
ln -sf "$work/hipmm.json" "$published.link-$$"
run 0 top
[ -f hipmm.json ] || fail "a symbolic link was followed"
rm -f "$published.link-$$"

# Files of other programs, and one in the name of another user, stay, and are not shown.
foreign="/dev/shm/hipmm.notes-$$ $published.$$.bak $published.8$beyond
  /dev/shm/hipmm.9$user.$space.$$ /dev/shm/hipmm.$user.0$space.7$beyond"
for file in $foreign; do echo "a user's own" >"$file"; done
cp "$published.$one" "/dev/shm/hipmm.9$user.$space.$$"
run 0 top
for file in $foreign; do [ -f "$file" ] || fail "hipmm top removed $file"; done
rm -f $foreign

# A user who speaks of another user's process is not heard, and speaks of its own beside that.
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 "$@"; }
if is_root "what another user publishes" && installed setpriv "what another user publishes" && as_nobody -c ''; then
  cp "$published.$one" copy
  chmod 755 "$work"
  chmod 644 copy
  setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 - "$space" "$one" "$work/copy" <<'END' &
import fcntl, os, struct, sys, time
held, copy = [], open(sys.argv[3], "rb").read()
names = ["/dev/shm/hipmm.65534.%s.%d" % (sys.argv[1], process) for process in (int(sys.argv[2]), os.getpid())]
for name in names:
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    process = struct.pack("<I", int(name.rsplit(".", 1)[1]))
    os.write(file, copy[:16] + process + copy[20:48] + struct.pack("<Q", 2) + copy[56:])
    fcntl.fcntl(file, 37, struct.pack("hhqqhxxxxxx", fcntl.F_WRLCK, 0, 0, 0, 0)[:32].ljust(32, b"\0"))  # F_OFD_SETLK
    held.append(file)
for _ in range(200):
    time.sleep(0.05)
    if os.getppid() == 1 or not os.path.exists(sys.argv[3]): break
for name in names: os.unlink(name)
END
  liar=$!
  tries=0
  until "$hipmm" export | grep -q "process=\"$liar\",user=\"65534\"" || [ $tries = 100 ]; do sleep 0.05 && tries=$((tries + 1)); done
  run 0 export
  rm copy
  prints "^hipmm_process_info{process=\"$liar\",user=\"65534\","
  prints "^hipmm_live_bytes{process=\"$one\",user=\"0\",device=\"0\",resource=\"pool\",type=\"pool\"} "
  grep -q "process=\"$one\",user=\"65534\"" "$work/out" && fail "a user speaks of another user's process"
  wait $liar
fi

# ---- Containers: processes of the same number ----

if ! unshare --pid --fork --kill-child --mount-proc true 2>/dev/null; then
  skip_part "processes of containers, which have the same number" "unshare cannot make a namespace here"
else
  for name in box other; do
    HIPMM_CONFIG=hipmm.json unshare --pid --fork --kill-child --mount-proc "./$mark-program" <hold >/dev/null 2>&1 &
    eval "$name=$!"
  done
  firsts() {
    "$hipmm" top --json | "$python3" -c '
import json, sys
print(sum(one["process"] == 1 and sys.argv[1] in one["command"] for one in json.load(sys.stdin)))' "$mark"
  }
  tries=0
  until [ "$(firsts)" = 2 ] || [ $tries = 400 ]; do sleep 0.05 && tries=$((tries + 1)); done
  [ "$(firsts)" = 2 ] || fail "of two processes with the number 1, $(firsts) are shown"
  kill -9 $box
  wait $box 2>/dev/null
  box=
  tries=0
  until [ "$(firsts)" = 1 ] || [ $tries = 400 ]; do sleep 0.05 && tries=$((tries + 1)); done
  [ "$(firsts)" = 1 ] || fail "a killed process is shown, or has taken the other one along"
  kill -9 $other
  wait $other 2>/dev/null
  other=
fi

# ---- The screen ----

"$python3" - "$hipmm" <<'END' || fail "the screen"
import os, pty, select, struct, fcntl, termios, sys, time
def look(columns, keys):
    process, terminal = pty.fork()
    if process == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 20, columns, 0, 0))
        os.environ.update(TERM="xterm")
        os.execv(sys.argv[1], [sys.argv[1], "top", "--interval", "0.1"])
    shown, until = b"", time.time() + 10
    keys = list(keys)
    while time.time() < until:
        if select.select([terminal], [], [], 0.3)[0]:
            try: part = os.read(terminal, 65536)
            except OSError: break
            if not part: break
            shown += part
        if keys and shown.count(b"\x1b[H") > 2: os.write(terminal, keys.pop(0).encode())
    else:
        os.kill(process, 9)
        raise SystemExit("it does not leave on q")
    status = os.waitpid(process, 0)[1]
    assert status == 0, status
    return shown.decode(errors="replace")
import re
def lines(columns): return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", look(columns, "q")).split("\n")
for columns in 80, 100, 250: # the device's size, and the command
    device = [line for line in lines(columns) if re.match(r" *\d+ devices/0 of [\d.]+ [KMGT]iB ", line)]
    assert any(" controlled" in line for line in device), (columns, device)
    assert all(len(line) <= columns for line in device), (columns, device)
shown = look(120, "lraq")
for text in ("devices/0/pool", "by process", "by live bytes", "by reserved bytes", "by allocations a second", "q quit"):
    assert text in shown, text
assert shown.endswith("\x1b[?25h\x1b[?1049l"), "the terminal is not as it was"
for line in lines(40):
    assert len(line.rstrip("\r")) <= 65, line # the keys are in one line
END

# Without escape sequences and bars, whatever reads it, until it is stopped.
TERM=xterm "$hipmm" top --plain --interval 0.1 >out &
plain=$!
tries=0
until [ "$(grep -c '^ PROCESS ' out)" -ge 2 ] || [ $tries = 100 ]; do sleep 0.05 && tries=$((tries + 1)); done
kill $plain
wait $plain || fail "top --plain ends with $?"
[ "$(grep -c '^ PROCESS DEVICE / RESOURCE .* ALLOC/S TYPE / COMMAND$' out)" -ge 2 ] || fail "top --plain: $(cat out)"
"$python3" - "$hipmm" <<'END' || fail "top --plain has escape sequences, or is late"
import os, pty, sys, time
begun = time.monotonic()
process, terminal = pty.fork()
if process == 0:
    os.environ.update(TERM="xterm")
    os.execv(sys.argv[1], [sys.argv[1], "top", "--plain"])
shown = b""
while b" devices/0/pool " not in shown: shown += os.read(terminal, 65536)
late = time.monotonic() - begun
os.kill(process, 15)
assert os.waitpid(process, 0)[1] == 0
assert b"\x1b" not in shown, shown
assert late < 1, late # a few milliseconds on a machine that is idle
END

# ---- Monitors ----

run 0 export --prometheus
prints "^hipmm_live_bytes{process=\"$one\",user=\"$user\",device=\"0\",resource=\"pool\",type=\"pool\"} [0-9]*$"
prints "^hipmm_allocations_total{process=\"$one\",user=\"$user\",device=\"0\",resource=\"statistics\",type=\"statistics\"} [0-9]*$"
prints '^# EOF$'
cp "$work/out" metrics
# The dashboard tells processes of one number apart, and asks for metrics and labels that exist.
"$python3" - "$top_srcdir/etc/grafana.json" <<'END' || fail "etc/grafana.json"
import json, re, sys
metrics = open("metrics").read()
labels = set(re.findall(r'[{,](\w+)="', metrics)) | {"namespace"} # of containers
for panel in json.load(open(sys.argv[1]))["panels"]:
    for target in panel["targets"]:
        shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        assert {"process", "user", "namespace", "device"} <= shown <= labels, target
        for name in re.findall(r"hipmm_\w+", target["expr"]): assert f"# TYPE {name.removesuffix('_total')} " in metrics, name
END
installed promtool "whether Prometheus reads the metrics" && {
  promtool check metrics <metrics >out 2>&1 # which expects the help of counters under another name
  ! grep -v 'hipmm_[a-z_]*_total no help text' out || fail "promtool: $(cat out)"
}
run 0 export --prometheus -o metrics.prom
tail -1 metrics.prom | grep -q '^# EOF$' || fail "the file of metrics is not whole"
[ "$(ls metrics.prom* | wc -l)" = 1 ] || fail "a part of a file is left: $(ls metrics.prom*)"
run 1 export --prometheus -o none/metrics.prom
says '^hipmm: export: cannot write "none/metrics.prom": No such file or directory$'
mkfifo pipe.prom # what is no regular file stays what it is
exec 3<>pipe.prom # so there is a reader from now on
run 0 export -o pipe.prom
[ -p pipe.prom ] || fail "a pipe became a file"
timeout 10 sed '/^# EOF$/q' <&3 >piped
exec 3<&-
tail -1 piped | grep -q '^# EOF$' || fail "the metrics are not in the pipe"
ln -s metrics.prom link.prom
: >metrics.prom
run 0 export -o link.prom
{ [ -h link.prom ] && tail -1 metrics.prom | grep -q '^# EOF$'; } || fail "a symbolic link became a file"
cp hipmm.json "$(printf 'a\302\233b\033.json')" # U+009B and U+001B begin commands for a terminal
start odd "$(printf 'a\302\233b\033.json')"
value $odd devices/0/pool live_blocks 1 || fail "the program with an odd name does not publish"
run 0 export
kill $odd
prints "^hipmm_process_info{process=\"$odd\",user=\"$user\",command=\".* a?b?.json train\"} 1$"
run 0 export # OpenMetrics text is the default
prints "^hipmm_live_bytes{process=\"$one\",user=\"$user\",device=\"0\",resource=\"pool\",type=\"pool\"} [0-9]*$"
prints '^# EOF$'
"$hipmm" export --prometheus --listen 0 2>said &
server=$!
"$python3" - <<'END' || fail "the server"
import errno, re, socket, time, urllib.request, urllib.error
for _ in range(100):
    found = re.search(r"http://127.0.0.1:(\d+)/metrics", open("said").read())
    if found: break
    time.sleep(0.05)
url = found.group(0)
try:
    socket.create_connection(("127.0.0.1", int(found.group(1))), 5).close()
except OSError as error:
    if error.errno != errno.ENETUNREACH: raise
    print("SKIPPED: the server: this machine has no loopback network")
    raise SystemExit
with urllib.request.urlopen(url, timeout=5) as answer:
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text"), answer.headers
    assert answer.read().endswith(b"# EOF\n")
try:
    urllib.request.urlopen(url.replace("metrics", "secrets"), timeout=5)
    raise SystemExit("another page is there")
except urllib.error.HTTPError as error:
    assert error.code == 404
port = int(found.group(1))
for rubbish in (b"", b"\0" * 10000, b"GET"):  # clients that hang up, or say nothing sensible
    with socket.create_connection(("127.0.0.1", port)) as client: client.sendall(rubbish)
with urllib.request.urlopen(url, timeout=20) as answer: assert answer.status == 200
# Clients that send a byte now and then, and that take nothing, keep the server for some seconds and no longer.
import threading
slow, over = socket.create_connection(("127.0.0.1", port)), threading.Event()
def drip():
    try:
        while not over.wait(0.3): slow.sendall(b"G")
    except OSError: pass
threading.Thread(target=drip, daemon=True).start()
with urllib.request.urlopen(url, timeout=8) as answer: assert answer.status == 200
over.set()
END
kill $server

# Commands ask the runtime in processes of their own, which leave nothing.
[ -n "${SANITIZER_FLAGS-}" ] || "./$mark" run --config hipmm.json -- true "$mark" || fail "hipmm run"
"./$mark" info --config hipmm.json >out 2>&1 || fail "hipmm info: $(cat out)"
"./$mark" doctor --config hipmm.json >out 2>&1 || fail "hipmm doctor: $(cat out)"
left=$(grep -lF -e "$mark" "$published".* "/dev/shm/.${published##*/}".* 2>/dev/null) && fail "a command leaves $left"

finish
