/* SPDX-License-Identifier: MIT */
/* doctor.c: `hipmm doctor`: tries what hipmm relies on, on the runtime and device at hand. Each probe runs in a process of
 * its own, so that one that crashes or hangs spoils no other. */
#include "../../../core/runtime/hip.h"
#include "../cmd.h"
#include "probes.h"

#include <errno.h>
#include <fcntl.h>
#include <hipmm/stream.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DOCTOR_MOST_DEVICES = 1023, DOCTOR_MOST_TIMEOUT_S = 3600 };

struct doctor {
  struct source source;
  long device, timeout_s;
  const char *only; /* the name of a probe; NULL: all */
  char runtime[128];
};

/* What a child says. */
struct doctor_answer {
  uint32_t verdict; /* enum probe_verdict */
  char runtime[128];
  char found[PROBE_FOUND_BYTES];
};

enum { DOCTOR_FAILED = 100 /* in place of a verdict: hipmm could not be initialised */ };

/* ---- The child ------------------------------------------------------------------------------------------------- */

static void doctor_name_runtime(char *text, size_t text_bytes)
{
  int version = 0, driver = 0;
  char name[64] = "?";
  (void)!hipmm_runtime_version(&version);
  (void)!hipmm_driver_version(&driver);
  (void)!hipmm_device_name(0, sizeof name, name);
  snprintf(text, text_bytes, "%s, HIP %d.%d.%d, driver %d, %s", hipmm_runtime(), version / 10000000,
           version / 100000 % 100, version % 100000, driver, name);
}

static void doctor_answer_and_exit(const struct doctor *doctor, const struct probe *probe, int pipe_end)
{
  struct doctor_answer answer = {.verdict = DOCTOR_FAILED};
  struct probe_context context = {.device = (int)doctor->device};
  int n_devices = 0;
  setenv("HIPMM_LOG", "off", 1);
  setenv("HIPMM_PUBLISH", "0", 1);    /* the file would be left behind */
  dup2(STDERR_FILENO, STDOUT_FILENO); /* what the runtime prints is no result */
  if (source_initialise(&doctor->source) || hipmm_device_count(&n_devices)) {
    snprintf(answer.found, sizeof answer.found, "%s", hipmm_last_error_message());
  } else if (doctor->device >= n_devices) {
    snprintf(answer.found, sizeof answer.found, "there is no device %ld; the runtime %s has %d", doctor->device,
             hipmm_runtime(), n_devices);
  } else {
    doctor_name_runtime(answer.runtime, sizeof answer.runtime);
    context.hip = hip_table();
    (void)hip_enter_device(context.device);
    answer.verdict = probe->run(&context);
    memcpy(answer.found, context.found, sizeof answer.found);
  }
  _exit(write(pipe_end, &answer, sizeof answer) != sizeof answer);
}

/* ---- The parent ------------------------------------------------------------------------------------------------ */

static void doctor_fill(struct doctor_answer *answer, const char *found)
{
  answer->verdict = PROBE_BAD;
  snprintf(answer->found, sizeof answer->found, "%s", found);
}

/* Waits for the child's answer, and kills a child that gives none. */
static void doctor_await(const struct doctor *doctor, pid_t child, int end, struct doctor_answer *answer)
{
  struct pollfd input = {.fd = end, .events = POLLIN};
  int ready;
  do ready = poll(&input, 1, (int)doctor->timeout_s * 1000);
  while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    kill(child, SIGKILL);
    doctor_fill(answer, "it did not end; the probe was killed");
  } else if (read(end, answer, sizeof *answer) != sizeof *answer) {
    doctor_fill(answer, "it ended its process");
  }
  /* A child that waits within the driver cannot be killed at once. */
  for (int pauses = 0; pauses < 200 && waitpid(child, NULL, WNOHANG) == 0; pauses++) poll(NULL, 0, 10);
}

static struct doctor_answer doctor_ask(const struct doctor *doctor, const struct probe *probe)
{
  struct doctor_answer answer = {0};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) {
    doctor_fill(&answer, strerror(errno));
    return answer;
  }
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    doctor_answer_and_exit(doctor, probe, ends[1]);
  }
  if (child < 0) doctor_fill(&answer, strerror(errno));
  close(ends[1]);
  if (child > 0) doctor_await(doctor, child, ends[0], &answer);
  close(ends[0]);
  answer.runtime[sizeof answer.runtime - 1] = answer.found[sizeof answer.found - 1] = '\0';
  return answer;
}

/* ---- Printing -------------------------------------------------------------------------------------------------- */

static const char *doctor_word(uint32_t verdict)
{
  return verdict == PROBE_GOOD ? "good" : verdict == PROBE_ABSENT ? "absent" : "BAD";
}

enum { DOCTOR_NARROW = 64 }; /* columns of a terminal in which the questions have lines of their own */

/* Text whose lines begin in `column`, where the cursor is; at most 26. */
static void doctor_print_words(size_t column, const char *label, const char *text)
{
  static const char spaces[] = "                          ";
  struct wrap wrap = {.prefix = spaces + sizeof spaces - 1 - column, .column = column};
  wrap_words(&wrap, STYLE_FAINT, label);
  wrap_words(&wrap, STYLE_OFF, text);
  wrap_end(&wrap);
}

static void doctor_print_paragraph(const char *label, const char *text)
{
  if (!text || !*text) return;
  printf("          ");
  doctor_print_words(10, label, text);
}

static void doctor_print(const struct probe *probe, const struct doctor_answer *answer)
{
  enum style kind = answer->verdict == PROBE_GOOD     ? STYLE_GOOD
                    : answer->verdict == PROBE_ABSENT ? STYLE_FAINT
                                                      : STYLE_BAD;
  bool is_narrow = terminal_width() < DOCTOR_NARROW;
  print_padded(kind, doctor_word(answer->verdict), 9);
  printf(" ");
  print_padded(STYLE_NAME, probe->name, is_narrow ? 0 : 16);
  if (is_narrow) printf("\n          ");
  doctor_print_words(is_narrow ? 10 : 26, "", probe->question);
  if (answer->verdict != PROBE_BAD) return;
  doctor_print_paragraph("seen:", answer->found);
  doctor_print_paragraph("reported:", probe->reports);
  doctor_print_paragraph("what to do:", probe->remedy);
}

static json_t *doctor_json(const struct probe *probe, const struct doctor_answer *answer)
{
  bool is_bad = answer->verdict == PROBE_BAD;
  return json_pack("{s:s, s:s, s:s, s:o, s:s?, s:s?}", "probe", probe->name, "question", probe->question, "verdict",
                   is_bad ? "bad" : doctor_word(answer->verdict), "seen",
                   is_bad ? output_json_string(answer->found) : json_null(), "reports", probe->reports, "remedy",
                   probe->remedy);
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

/* Asks all probes, and prints or collects their answers. Returns how many are bad; -1: nothing can be probed. */
static int doctor_probe_all(struct doctor *doctor, json_t *array)
{
  int n_bad = 0;
  struct progress progress;
  for (const struct probe *probe = probes; probe->name; probe++) {
    if (doctor->only && strcmp(doctor->only, probe->name) != 0) continue;
    progress_start(&progress, probe->name);
    struct doctor_answer answer = doctor_ask(doctor, probe);
    progress_end(&progress);
    if (answer.verdict == DOCTOR_FAILED) {
      say("doctor: %s", answer.found);
      return -1;
    }
    if (!*doctor->runtime && *answer.runtime) {
      snprintf(doctor->runtime, sizeof doctor->runtime, "%s", answer.runtime);
      if (!array) {
        struct wrap wrap = {.prefix = "  "};
        printf("Runtime");
        wrap.column = strlen("Runtime");
        wrap_words(&wrap, STYLE_OFF, answer.runtime);
        wrap_end(&wrap);
        printf("\n");
      }
    }
    n_bad += answer.verdict == PROBE_BAD;
    if (array)
      json_array_append_new(array, doctor_json(probe, &answer));
    else
      doctor_print(probe, &answer);
    fflush(stdout);
  }
  return n_bad;
}

static bool doctor_knows(const char *name)
{
  const struct probe *probe = probes;
  while (probe->name && strcmp(probe->name, name) != 0) probe++;
  if (!probe->name) say("doctor: there is no probe \"%s\"; without --only all are run and named", name);
  return probe->name != NULL;
}

static int doctor_run(int argc, char **argv)
{
  struct doctor doctor = {.timeout_s = 60};
  const char *config = NULL;
  bool as_json = false;
  int status;
  const struct argument rows[] = {
      CONFIG_ARGUMENT(&config),
      {"device", "N", "the device that is tried; 0 by default", .number = &doctor.device, .most = DOCTOR_MOST_DEVICES},
      {"only", "PROBE", "run only this probe", .value = &doctor.only},
      {"timeout", "N", "seconds for each probe; 60 by default", .number = &doctor.timeout_s, .least = 1,
       .most = DOCTOR_MOST_TIMEOUT_S},
      {"json", NULL, "print one JSON object", .flag = &as_json},
  };
  struct arguments arguments = {&doctor_command, rows, sizeof rows / sizeof *rows, 0, 0, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (doctor.only && !doctor_knows(doctor.only)) return CMD_USAGE;
  source_choose(&doctor.source, config);
  json_t *array = as_json ? json_array() : NULL;
  int n_bad = doctor_probe_all(&doctor, array);
  status = n_bad ? CMD_BAD : CMD_GOOD;
  if (n_bad < 0) {
    json_decref(array);
    return CMD_BAD;
  }
  if (as_json)
    return output_json(json_pack("{s:o, s:I, s:i, s:o}", "runtime", output_json_string(doctor.runtime), "device",
                                 (json_int_t)doctor.device, "bad", n_bad, "probes", array),
                       status);
  struct wrap wrap = {.prefix = ""};
  printf("\n");
  wrap_words(&wrap, STYLE_OFF,
             n_bad ? "What is BAD breaks programs; the lines below each say what hipmm does about it."
                   : "Nothing bad was found.");
  wrap_end(&wrap);
  return output_finish(status);
}

const struct command doctor_command = {
    "doctor", "test the features of the runtime that programs rely on", "",
    "Tries on a device the features that hipmm and its users rely on, with data that is checked: events, what the "
    "device says of its memory, the driver's pools (order between streams, data, threshold), and virtual memory "
    "(data, aliases, sizes, release). For each defect it says where it was reported, what hipmm does about it, and "
    "what to set. It changes nothing, and needs some hundred MiB of free memory.\n"
    "\n"
    "A defect that shows only at times may not show in a minute. Exit status 1 if anything is bad.",
    doctor_run};
