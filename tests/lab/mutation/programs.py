# SPDX-License-Identifier: MIT
"""Runs a test program until it fails, ends, or is seen to hang: what hangs or loops is told by processor time, not by
the clock, since the machine may be busy with other things."""
import glob
import os
import resource
import selectors
import signal
import subprocess
import time

MEMORY = 4 << 30  # resident bytes of a session: a mutant that allocates without end must not take the machine
PAGE = os.sysconf("SC_PAGESIZE")
TICKS = os.sysconf("SC_CLK_TCK")
FAILED = b"not ok "


class Limits:
    """From a run without a change. `cpu` seconds of one process, `idle` seconds in which none of them does anything,
    and `wall` for what sleeps and wakes for ever."""

    def __init__(self, wall=120.0, cpu=120.0, factor=3):
        self.cpu = int(factor * cpu + 3)
        self.idle = 3 + 2 * min(5.0, max(0.0, wall - cpu))
        self.wall = max(20.0, 10 * wall)


class Outcome:
    """`result` is passed, failed or hung; `case` the first test that failed, or how the program ended."""

    def __init__(self, result, case, wall, cpu):
        self.result, self.case, self.wall, self.cpu = result, case, wall, cpu


def prepare(cpu):
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def session_of(leader):
    """(pid, whether it is about to run, ticks of processor time, resident bytes) of all processes of the session."""
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader:
            yield int(path.split("/")[2]), fields[0] in "RD", int(fields[11]) + int(fields[12]), int(fields[21]) * PAGE


def end_session(leader):
    for pid, *_ in session_of(leader):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Watch:
    """Whether the processes of a session stand still, or take all memory."""

    def __init__(self, leader, seconds):
        self.leader, self.seconds = leader, seconds
        self.ticks, self.since, self.looked = -1, time.monotonic(), time.monotonic()

    def must_end(self):
        now = time.monotonic()
        if now - self.looked < 0.5:
            return False
        self.looked = now
        states = list(session_of(self.leader))
        ticks = sum(spent for _, _, spent, _ in states)
        if ticks != self.ticks or any(runs for _, runs, _, _ in states):
            self.ticks, self.since = ticks, now
        return now - self.since > self.seconds or sum(resident for *_, resident in states) > MEMORY


def run_program(path, folder, env, limits=None):
    """It is ended at its first case that fails."""
    limits = limits or Limits()
    began, output, result = time.monotonic(), b"", None
    process = subprocess.Popen([path], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=lambda: prepare(limits.cpu))
    watch, pid, usage = Watch(process.pid, limits.idle), 0, None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not result:
            if selector.select(0.1 if not pid else 0):
                part = os.read(process.stdout.fileno(), 1 << 16)
                output += part
                if failed_case(output):
                    result = "failed"
                elif not part:
                    selector.unregister(process.stdout)
            elif pid:
                break
            elif watch.must_end() or time.monotonic() - began > limits.wall:
                result = "hung"
            if not pid:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    if not pid:
        end_session(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
    end_session(process.pid)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if not result:
        looped = process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
        result = "hung" if looped else "failed" if process.returncode else "passed"
    case = failed_case(output) or ("did not end" if result == "hung" else f"status {process.returncode}")
    return Outcome(result, case, time.monotonic() - began, usage.ru_utime + usage.ru_stime)


def failed_case(output):
    """The name of the first test that failed, or nothing."""
    for line in output.split(b"\n")[:-1]:
        if line.startswith(FAILED) and b"# SKIP" not in line:
            return line[len(FAILED):].decode(errors="replace").partition(" - ")[2] or "?"
    return ""
