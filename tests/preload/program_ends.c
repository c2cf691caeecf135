/* SPDX-License-Identifier: MIT */
/* program_ends.c: how the HIP program ends. The scripts check the exit status and the report. */
#include "program.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KIB = 1 << 10 };

static void *leave_block(void)
{
  void *memory;
  GOOD(hipMalloc(&memory, KIB));
  return memory;
}

void scenario_end_exit_now(void)
{
  leave_block();
  _exit(7);
}

void scenario_end_quick(void)
{
  leave_block();
  quick_exit(7);
}

void scenario_end_abort(void)
{
  leave_block();
  abort();
}

void scenario_end_fault(void)
{
  static int *volatile nowhere;
  leave_block();
  *nowhere = 1;
}

void scenario_end_terminate(void)
{
  leave_block();
  raise(SIGTERM);
}

/* ---- Handlers of the program ---- */

static void exit_by_handler(int number)
{
  (void)number;
  _exit(5);
}

static struct sigaction earlier;

/* As programs do that put themselves in front of a handler. */
static void pass_on(int number)
{
  sigaction(number, &earlier, NULL);
  raise(number);
}

void scenario_end_own_early(void)
{
  signal(SIGTERM, exit_by_handler);
  leave_block();
  raise(SIGTERM);
}

void scenario_end_own_late(void)
{
  leave_block();
  sigaction(SIGTERM, &(struct sigaction){.sa_handler = pass_on}, &earlier);
  raise(SIGTERM);
}

void scenario_end_ignored(void)
{
  signal(SIGTERM, SIG_IGN);
  leave_block();
  raise(SIGTERM);
  struct sigaction now;
  CHECK(!sigaction(SIGTERM, NULL, &now) && now.sa_handler == SIG_IGN);
  exit(6);
}

/* ---- While it runs ---- */

static off_t report_bytes(void)
{
  struct stat status;
  const char *file = getenv("REPORT_FILE");
  return file && !stat(file, &status) ? status.st_size : 0;
}

static void await_report(off_t before)
{
  const struct timespec short_while = {.tv_nsec = 1000000};
  for (int i = 0; i < 20000 && report_bytes() == before; i++) nanosleep(&short_while, NULL);
  CHECK(report_bytes() > before);
}

/* A report that is asked for before hipmm is used, which comes when it is, and two later ones. */
void scenario_report_now(void)
{
  void *blocks[2];
  raise(SIGUSR1);
  for (int i = 0; i < 2; i++) {
    blocks[i] = leave_block();
    if (i == 0) await_report(0);
    off_t before = report_bytes();
    raise(SIGUSR1);
    await_report(before);
  }
  GOOD(hipFree(blocks[0]));
  GOOD(hipFree(blocks[1]));
}

static atomic_int usr1;

static void count_usr1(int number)
{
  (void)number;
  usr1++;
}

/* A handler of the program's stays its own. */
void scenario_report_own(void)
{
  signal(SIGUSR1, count_usr1);
  GOOD(hipFree(leave_block()));
  raise(SIGUSR1);
  CHECK(usr1 == 1);
}

/* ---- Children, and functions for the exit ---- */

void scenario_end_children(void)
{
  int status = 0;
  leave_block();
  pid_t child = vfork();
  if (child == 0) _exit(3);
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  child = fork();
  if (child == 0) raise(SIGTERM);
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void ask_for_report(void)
{
  const struct timespec while_it_could_come = {.tv_nsec = 100000000};
  raise(SIGUSR1);
  nanosleep(&while_it_could_come, NULL);
}

/* After the last report, which hipmm's function for the exit makes: it is registered later, and so called earlier. */
void scenario_end_asked_late(void)
{
  at_quick_exit(ask_for_report);
  leave_block();
  quick_exit(7);
}

/* ---- Reports that cannot be written ---- */

/* No byte can be added to a file. A program without a call of HIP has no thread for reports: its own thread writes. */
void scenario_end_limited(void)
{
  signal(SIGXFSZ, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  CHECK(!setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0}));
  exit(7);
}

/* Nor can the message about it be read. */
void scenario_end_unread(void)
{
  int ends[2];
  CHECK(!pipe(ends) && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO && !close(ends[0]) && !close(ends[1]));
  scenario_end_limited();
}

static void *late;

static void free_late(void)
{
  GOOD(hipFree(late));
}

void scenario_end_late_free(void)
{
  atexit(free_late);
  late = leave_block();
}

/* Run with a guard: a write past the end of a block that is never freed, and one into a freed block. */
void scenario_end_damage(void)
{
  char *memory = leave_block(), *other = leave_block();
  GOOD(hipMemset(memory + KIB, 1, 4));
  GOOD(hipFree(other));
  GOOD(hipMemset(other, 1, 4));
  GOOD(hipDeviceSynchronize());
}
