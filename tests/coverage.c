/* SPDX-License-Identifier: MIT */
/* coverage.c: linked by coverage.sh into every program and library. gcov's counts are written when a process exits;
 * here _exit() and abort() write them too, with which children of tests and of commands end, and so does SIGTERM, with
 * which tests end `hipmm export` and the programs that `hipmm top` shows. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>

void __gcov_dump(void);
__attribute__((noreturn)) void __real__exit(int status);
__attribute__((noreturn)) void __wrap__exit(int status);

void __wrap__exit(int status)
{
  __gcov_dump();
  __real__exit(status);
}

__attribute__((noreturn)) void __real_abort(void);
__attribute__((noreturn)) void __wrap_abort(void);

void __wrap_abort(void)
{
  __gcov_dump();
  __real_abort();
}

static void coverage_end(int number)
{
  __gcov_dump();
  signal(number, SIG_DFL);
  raise(number);
}

/* In the command alone: the signals of other programs may be what a test is about. */
__attribute__((constructor)) static void coverage_watch(void)
{
  if (!strcmp(program_invocation_short_name, "hipmm")) signal(SIGTERM, coverage_end);
}
