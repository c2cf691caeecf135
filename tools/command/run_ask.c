/* SPDX-License-Identifier: MIT */
/* run_ask.c: asks which runtime a program would get and whether the graph is good, before the program is started. */
#include "run.h"

#include "../../core/base/environment.h"
#include "../../core/base/rank.h"
#include "../../core/call/device_table.h"
#include "../../core/option/option.h"
#include "../../core/runtime/hip.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The child ---- */

/* Whether neither the environment nor the graph in use names a runtime. */
static bool run_ask_is_automatic(void)
{
  const char *wanted = environment_get("HIPMM_RUNTIME");
  struct graph *graph;
  if (wanted && *wanted) return !strcmp(wanted, "auto");
  if (device_table_graph(0, &graph)) return false;
  bool is_automatic = !strcmp(graph->runtime, "auto");
  graph_release(graph);
  return is_automatic;
}

/* The software device would read a part of them as settings of their own. */
static void run_ask_refuse_settings(struct run_answer *answer)
{
  answer->is_good = false;
  snprintf(answer->why, sizeof answer->why,
           "run: HIPMM_SOFTWARE and the graph's settings of the software device are longer together than %zu bytes; "
           "shorten them",
           sizeof answer->settings - 1);
}

/* The software device reads its settings from the environment at its first call, which may come before hipmm reads the
 * graph. So the graph's settings go into the environment, before those that are there: the last setting counts. */
static void run_ask_find_settings(struct run_answer *answer)
{
  const char *given = environment_get("HIPMM_SOFTWARE");
  struct graph *graph;
  if (strcmp(answer->runtime, "software") != 0 || device_table_graph(0, &graph)) return;
  char *text = strcmp(graph->runtime, "software") ? NULL : option_overlay_text(graph->runtime_object, "type");
  if (text && *text) {
    int length = snprintf(answer->settings, sizeof answer->settings, "%s%s%s", text, given && *given ? "," : "",
                          given ? given : "");
    if (length < 0 || (size_t)length >= sizeof answer->settings) run_ask_refuse_settings(answer);
  }
  free(text);
  graph_release(graph);
}

/* What the graph says about a job of many ranks: the name of the report, and the device by the local rank, which must be
 * chosen before the program starts. The software device has equal devices: the process gets one. */
static void run_ask_find_place(struct run_answer *answer)
{
  const char *given = environment_get("HIPMM_SOFTWARE");
  struct graph *graph;
  int rank = rank_on_host(), n_devices = device_table_count();
  if (device_table_graph(0, &graph)) return;
  if (graph->report) snprintf(answer->report, sizeof answer->report, "%s", graph->report);
  if (graph->follows_local_rank && rank >= 0 && n_devices > 1) answer->device = rank % n_devices;
  graph_release(graph);
  if (answer->device < 0 || strcmp(answer->runtime, "software") != 0) return;
  if (!*answer->settings && given) snprintf(answer->settings, sizeof answer->settings, "%s", given);
  size_t used = strlen(answer->settings), room = sizeof answer->settings - used;
  if ((size_t)snprintf(answer->settings + used, room, "%sdevices=1", used ? "," : "") >= room)
    run_ask_refuse_settings(answer);
}

static void run_ask_find(const struct source *source, struct run_answer *answer)
{
  Dl_info info;
  answer->is_good = source_initialise(source) == HIPMM_OK;
  if (!answer->is_good) {
    snprintf(answer->why, sizeof answer->why, "%s", hipmm_last_error_message());
    return;
  }
  snprintf(answer->runtime, sizeof answer->runtime, "%s", hipmm_runtime());
  if (strcmp(answer->runtime, "amd") && dladdr(hip_symbol("hipMalloc"), &info))
    (void)!realpath(info.dli_fname, answer->library);
  if (strchr(answer->runtime, '/')) snprintf(answer->runtime, sizeof answer->runtime, "%s", answer->library);
  run_ask_find_settings(answer);
  run_ask_find_place(answer);
  answer->is_last_resort = !strcmp(answer->runtime, "software") && run_ask_is_automatic();
}

/* The log is off, also if the command has opened it: hipmm logs the same in the program. What this process published it
 * would leave behind. */
static void run_ask_answer_and_exit(const struct source *source, int pipe_end)
{
  struct run_answer answer = {.is_good = false, .device = -1};
  setenv("HIPMM_LOG", "off", 1);
  hipmm_log_set_level(HIPMM_LOG_OFF);
  setenv("HIPMM_PUBLISH", "0", 1);
  run_ask_find(source, &answer);
  const char *from = (const char *)&answer;
  for (size_t left = sizeof answer; left;) {
    ssize_t written = write(pipe_end, from, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(CMD_BAD);
    from += written;
    left -= (size_t)written;
  }
  _exit(CMD_GOOD);
}

/* ---- The parent ---- */

static bool run_ask_read(int pipe_end, struct run_answer *answer)
{
  char *to = (char *)answer;
  size_t left = sizeof *answer;
  while (left) {
    ssize_t got = read(pipe_end, to, left);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    left -= (size_t)got;
  }
  return true;
}

static void run_ask_fail(struct run_answer *answer, const char *what, const char *why)
{
  *answer = (struct run_answer){.is_good = false};
  snprintf(answer->why, sizeof answer->why, "%s%s%s", what, *why ? ": " : "", why);
}

void run_ask(const struct source *source, struct run_answer *answer_out)
{
  int ends[2], status = 0;
  if (pipe(ends)) {
    run_ask_fail(answer_out, "run: pipe", strerror(errno));
    return;
  }
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run_ask_answer_and_exit(source, ends[1]);
  }
  int code = errno;
  close(ends[1]);
  bool is_read = child > 0 && run_ask_read(ends[0], answer_out);
  close(ends[0]);
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (child < 0) run_ask_fail(answer_out, "run: fork", strerror(code));
  if (child > 0 && !is_read)
    run_ask_fail(answer_out, "run: the process that asked the GPU runtime for its devices ended early",
                 WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
}
