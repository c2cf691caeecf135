/* SPDX-License-Identifier: MIT */
/* child.c: runs a check in a child process. The child writes its finding into a pipe and ends; a child that ends without
 * one has crashed, and a child that does not end in time is killed. Called by test.c. Never loads the plugin in the
 * parent. */
#include "kit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const struct kit *kit;

static int child_pipe = -1;
static const struct kit_check *child_check;

/* ---- The child ---- */

/* Not exit(): what the plugin does when a process ends is not under test. One write, so that the first finding counts. */
static _Noreturn void child_end(const struct kit_finding *finding)
{
  ssize_t written = write(child_pipe, finding, sizeof *finding);
  _exit(written == (ssize_t)sizeof *finding ? CMD_GOOD : CMD_BAD);
}

static _Noreturn void child_end_with(enum kit_verdict verdict, const char *mend, const char *format, va_list arguments)
{
  struct kit_finding finding = {.verdict = verdict};
  vsnprintf(finding.text, sizeof finding.text, format, arguments);
  snprintf(finding.mend, sizeof finding.mend, "%s", mend);
  child_end(&finding);
}

void kit_fail(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  child_end_with(KIT_FAILED, child_check->mend, format, arguments);
}

void kit_fail_with_mend(const char *mend, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  child_end_with(KIT_FAILED, mend, format, arguments);
}

void kit_skip(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  child_end_with(KIT_SKIPPED, "", format, arguments);
}

/* Its messages go to a file: a crash is explained by the last of them. */
static _Noreturn void child_run(const struct kit *what, const struct kit_check *check, int end, int messages)
{
  static const char *const variables[] = {
      "HIPMM_CONFIG", "HIPMM_RUNTIME", "HIPMM_SOFTWARE", "HIPMM_LOG", "HIPMM_PUBLISH", "HIPMM_FLIGHT", NULL};
  const struct kit_finding passed = {.verdict = KIT_PASSED};
  for (size_t i = 0; variables[i]; i++) unsetenv(variables[i]);
  dup2(messages, STDOUT_FILENO);
  dup2(messages, STDERR_FILENO);
  child_pipe = end;
  kit = what;
  child_check = check;
  check->run();
  child_end(&passed);
}

/* ---- The parent ---- */

/* Whether the child wrote a finding before the time was up. `is_late_out`: it did not even end. */
static bool child_read(int end, unsigned timeout_s, struct kit_finding *finding, bool *is_late_out)
{
  int64_t deadline_ns = cmd_now_ns() + timeout_s * INT64_C(1000000000);
  struct pollfd poll_end = {.fd = end, .events = POLLIN};
  for (;;) {
    int64_t left_ms = (deadline_ns - cmd_now_ns()) / 1000000;
    int n = left_ms > 0 ? poll(&poll_end, 1, (int)left_ms) : 0;
    if (n < 0 && errno == EINTR) continue;
    *is_late_out = n == 0;
    return n > 0 && read(end, finding, sizeof *finding) == (ssize_t)sizeof *finding;
  }
}

/* The last line of what the child wrote, for people. */
static void child_last_line(FILE *messages, char *line, size_t bytes)
{
  char text[2000];
  fseek(messages, 0, SEEK_END);
  long end = ftell(messages), start = end > (long)sizeof text - 1 ? end - (long)sizeof text + 1 : 0;
  fseek(messages, start, SEEK_SET);
  size_t n = fread(text, 1, sizeof text - 1, messages);
  while (n && text[n - 1] == '\n') n--;
  text[n] = '\0';
  const char *last = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
  snprintf(line, bytes, "%s%.300s", *last ? "; its last message: " : "", last);
}

/* The check's own advice, and how to see where the plugin was. */
static void child_explain(int status, bool is_late, const struct kit *what, const struct kit_check *check,
                          FILE *messages, struct kit_finding *finding)
{
  char line[400];
  child_last_line(messages, line, sizeof line);
  finding->verdict = KIT_FAILED;
  snprintf(
      finding->mend, sizeof finding->mend,
      "%s; a debugger shows the place: gdb -ex 'set follow-fork-mode child' -ex run --args hipmm plugin test --only "
      "'%s' %s.so",
      is_late ? "look for a loop, a lock or a wait that never ends, or give it more time with --timeout" : check->mend,
      check->name, what->type);
  if (is_late)
    snprintf(finding->text, sizeof finding->text, "it did not end within %u s, and was killed%s", what->timeout_s,
             line);
  else if (WIFSIGNALED(status))
    snprintf(finding->text, sizeof finding->text, "the process crashed: %s%s", strsignal(WTERMSIG(status)), line);
  else
    snprintf(finding->text, sizeof finding->text, "the process ended with status %d%s", WEXITSTATUS(status), line);
}

static struct kit_finding child_cannot(const char *what)
{
  struct kit_finding finding = {.verdict = KIT_FAILED, .mend = "free what the system lacks, and try again"};
  snprintf(finding.text, sizeof finding.text, "the check cannot be run: %s: %s", what, strerror(errno));
  return finding;
}

struct kit_finding kit_run(const struct kit *what, const struct kit_check *check)
{
  struct kit_finding finding;
  int ends[2], status = 0;
  bool is_late = false;
  FILE *messages = tmpfile();
  if (!messages) return child_cannot("a temporary file");
  if (pipe(ends)) {
    fclose(messages);
    return child_cannot("pipe");
  }
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) child_run(what, check, ends[1], fileno(messages));
  close(ends[1]);
  bool is_found = child > 0 && child_read(ends[0], what->timeout_s + 2 * what->seconds, &finding, &is_late);
  close(ends[0]);
  if (child > 0 && !is_found && is_late) kill(child, SIGKILL);
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (child < 0)
    finding = child_cannot("fork");
  else if (!is_found)
    child_explain(status, is_late, what, check, messages, &finding);
  fclose(messages);
  return finding;
}
