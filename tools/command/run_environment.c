/* SPDX-License-Identifier: MIT */
/* run_environment.c: the environment that makes the loader preload the object, and that tells the object what to do. File
 * names are made absolute: the program may change its folder before it allocates. */
#include "../../core/base/output_file.h"
#include "../../core/graph/graph.h"
#include "../../core/plugin/plugin.h"
#include "inputs.h"
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sets a variable. False, after a message, if there is no memory for it. */
static bool run_environment_set(const char *name, const char *value)
{
  if (!setenv(name, value, 1)) return true;
  say("run: %s: %s", name, strerror(errno));
  return false;
}

/* Puts a word before those of the variable, which colons separate. */
static bool run_environment_put_before(const char *name, const char *word)
{
  char *all;
  const char *others = getenv(name);
  if (asprintf(&all, "%s%s%s", word, others && *others ? ":" : "", others ? others : "") < 0) {
    say("run: out of memory");
    return false;
  }
  bool is_set = run_environment_set(name, all);
  free(all);
  return is_set;
}

/* ---- The preload object ---- */

/* The object is in the folder of the plugins. `file` has PATH_MAX bytes. */
static bool run_environment_find_object(char *file)
{
  static const char *const names[] = {"preload/preload.so",
                                      "../tools/preload/.libs/preload.so"}; /* the latter in a build tree */
  char found[PATH_MAX];
  if (plugin_find_beside(names, sizeof names / sizeof *names, found) && realpath(found, file)) return true;
  say("run: preload.so is neither beside this program nor in %s/preload; is the installation of hipmm complete?",
      HIPMM_PLUGIN_DIR);
  return false;
}

bool run_find_pool(struct source *source)
{
  static const char *const names[] = {"preload/check_streams.json", "../tools/preload/.libs/check_streams.json"};
  char found[PATH_MAX];
  if (plugin_find_beside(names, sizeof names / sizeof *names, found) && realpath(found, source->buffer)) {
    source->file = source->buffer;
    note("run: --check-streams: no hipmm.json was found, so device memory comes from a pool (%s)", source->file);
    return run_environment_set("HIPMM_CONFIG", source->file);
  }
  say("run: --check-streams: check_streams.json is neither beside this program nor in %s/preload; is the installation "
      "of hipmm complete? Or write a graph and name it with --config",
      HIPMM_PLUGIN_DIR);
  return false;
}

/* For the loader a blank or a colon ends a name. */
static bool run_environment_can_name(const char *file)
{
  if (!strpbrk(file, " :\t\n")) return true;
  say("run: %s: the loader cannot preload a file whose name has a blank or a colon; install hipmm in another folder",
      file);
  return false;
}

static bool run_environment_preload(const char *object, const char *library)
{
  if (!run_environment_can_name(object) || !run_environment_can_name(library)) return false;
  return (!*library || run_environment_put_before("LD_PRELOAD", library)) &&
         run_environment_put_before("LD_PRELOAD", object);
}

/* gcc's -fsanitize=address ends a program before main() where a preloaded library comes before the sanitizer's, unless the
 * options say not to look. Those of the user come later, and hold. */
static bool run_environment_set_sanitizer(void)
{
  return run_environment_put_before("ASAN_OPTIONS", "verify_asan_link_order=0");
}

/* ---- Python ---- */

/* The folder of the hook, sitecustomize.py, goes in front of PYTHONPATH, and the object's name into HIPMM_RUN_PYTHON, which
 * the hook and the Python package read. An installation without the hook serves Python as any program. */
static bool run_environment_set_python(const char *object, bool is_without)
{
  static const char *const names[] = {"preload/python/sitecustomize.py", "../tools/preload/python/sitecustomize.py"};
  char found[PATH_MAX], file[PATH_MAX];
  unsetenv("HIPMM_RUN_PYTHON");
  unsetenv("HIPMM_RUN_HOOK");
  if (is_without || !plugin_find_beside(names, sizeof names / sizeof *names, found) || !realpath(found, file))
    return true;
  *strrchr(file, '/') = '\0';
  return run_environment_put_before("PYTHONPATH", file) && run_environment_set("HIPMM_RUN_PYTHON", object);
}

/* ---- Folders and files ---- */

/* The folder's absolute name, or the name as it is if there is no such folder. */
static bool run_environment_append_folder(char **folders, const char *folder, size_t length)
{
  char name[PATH_MAX], absolute[PATH_MAX], *longer;
  snprintf(name, sizeof name, "%.*s", (int)length, folder);
  bool found = realpath(name, absolute) != NULL;
  if (asprintf(&longer, "%s%s%s", *folders ? *folders : "", *folders ? ":" : "", found ? absolute : name) < 0)
    return false;
  free(*folders);
  *folders = longer;
  return true;
}

static bool run_environment_set_plugin_path(void)
{
  char *folders = NULL;
  bool is_good = true;
  for (const char *at = getenv("HIPMM_PLUGIN_PATH"); at && *at && is_good;) {
    size_t length = strcspn(at, ":");
    if (length) is_good = run_environment_append_folder(&folders, at, length);
    at += length + (at[length] == ':');
  }
  if (!is_good) say("run: out of memory");
  if (is_good && folders) is_good = run_environment_set("HIPMM_PLUGIN_PATH", folders);
  free(folders);
  return is_good;
}

/* Writes the pattern from the root: the processes may have another working folder, in whose name a percent sign is doubled.
 * False with errno, as where the folder is known and not there. */
static bool run_environment_make_absolute(const char *pattern, char *absolute_out, size_t bytes)
{
  char given[PATH_MAX], here[PATH_MAX] = "";
  const char *slash = strrchr(pattern, '/');
  size_t used = 0;
  snprintf(given, sizeof given, "%.*s", slash ? (int)(slash - pattern) + 1 : 1, slash ? pattern : ".");
  if (!strchr(given, '%') && access(given, F_OK)) return false;
  if (*pattern != '/' && !getcwd(here, sizeof here)) return false;
  for (const char *at = here; *at && used + 3 < bytes; at++) {
    if (*at == '%') absolute_out[used++] = '%';
    absolute_out[used++] = *at;
  }
  errno = ENAMETOOLONG;
  return snprintf(absolute_out + used, bytes - used, "%s%s", *here ? "/" : "", pattern) < (int)(bytes - used);
}

/* The graph, and what the program's command line names, such as a script or a file of data. */
static bool run_environment_check_inputs(const struct run_settings *settings, const char *report)
{
  char *config = (char *)settings->config;
  struct inputs inputs = {"run: --report", settings->words, 0};
  const struct inputs graph = {"run: --report", &config, config != NULL};
  while (settings->words[inputs.n]) inputs.n++;
  return inputs_check_output(&graph, report) && inputs_check_output(&inputs, report);
}

/* The report file is emptied here, if its name is known: every process of the run appends to it. A file of each process's
 * own is emptied by the process. */
static bool run_environment_set_report(const struct run_settings *settings)
{
  char pattern[2 * PATH_MAX], name[OUTPUT_FILE_NAME_BYTES];
  const char *report = settings->report;
  unsetenv("HIPMM_RUN_REPORT");
  unsetenv("HIPMM_RUN_REPORT_FORMAT");
  if (!report) return true;
  if (settings->is_json && !run_environment_set("HIPMM_RUN_REPORT_FORMAT", "json")) return false;
  if (!strcmp(report, "-") || output_file_standard(report) >= 0) return run_environment_set("HIPMM_RUN_REPORT", report);
  if (!output_file_expand(report, -1, name)) {
    say("run: --report: %s", name);
    return false;
  }
  if (!run_environment_check_inputs(settings, name)) return false;
  /* Opened by the name that the processes get. */
  bool is_absolute = run_environment_make_absolute(report, pattern, sizeof pattern);
  if (is_absolute && output_file_expand(pattern, -1, name)) {
    bool has_own = output_file_has_letter(report, "p");
    int file = has_own ? -1 : output_file_open(name, OUTPUT_FILE_EMPTY);
    if (file >= 0) close(file);
    if (file >= 0 || has_own) return run_environment_set("HIPMM_RUN_REPORT", pattern);
  }
  say("run: --report=%s: %s", report, output_file_reason(errno));
  return false;
}

/* What was only found is named here for the program, which is told the difference. */
static bool run_environment_set_config(const char *config, bool is_found)
{
  char absolute[PATH_MAX];
  unsetenv("HIPMM_RUN_FOUND");
  if (!config) return true;
  if (is_found && !run_environment_set("HIPMM_RUN_FOUND", "1")) return false;
  if (graph_is_text(config)) return run_environment_set("HIPMM_CONFIG", config);
  return run_environment_set("HIPMM_CONFIG", realpath(config, absolute) ? absolute : config);
}

/* Leaves the process the one device that was chosen for it: among those that the user made visible, if the user did. */
static bool run_environment_set_device(const struct run_answer *answer)
{
  bool is_cuda = !strcmp(answer->runtime, "nvidia");
  const char *variable = is_cuda ? "CUDA_VISIBLE_DEVICES" : "HIP_VISIBLE_DEVICES", *list = getenv(variable);
  char device[256];
  if (answer->device < 0 || !strcmp(answer->runtime, "software")) return true;
  if (!list && !is_cuda) list = getenv("CUDA_VISIBLE_DEVICES"); /* which HIP heeds too */
  snprintf(device, sizeof device, "%d", answer->device);
  for (int i = 0; list && *list && i <= answer->device; i++) {
    size_t length = strcspn(list, ",");
    snprintf(device, sizeof device, "%.*s", (int)length, list);
    list += length + (list[length] == ',');
  }
  return run_environment_set(variable, device);
}

/* HIPMM_RUN_CHECK is 1 where the preload object checks, and 2 where the software device does, which sees more. */
static bool run_environment_set_check(const struct run_settings *settings, const struct run_answer *answer)
{
  char all[sizeof answer->settings + 32];
  const char *given = *answer->settings ? answer->settings : getenv("HIPMM_SOFTWARE");
  unsetenv("HIPMM_RUN_CHECK");
  if (!settings->checks_streams) return true;
  if (strcmp(answer->runtime, "software") != 0) return run_environment_set("HIPMM_RUN_CHECK", "1");
  int length = snprintf(all, sizeof all, "%s%scheck_streams=true", given ? given : "", given && *given ? "," : "");
  if (length < 0 || (size_t)length >= sizeof all) {
    say("run: --check-streams: HIPMM_SOFTWARE is too long");
    return false;
  }
  return run_environment_set("HIPMM_SOFTWARE", all) && run_environment_set("HIPMM_RUN_CHECK", "2");
}

bool run_prepare(const struct run_settings *settings, const struct run_answer *answer)
{
  char pid[32], time[32], object[PATH_MAX];
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(pid, sizeof pid, "%ld", (long)getpid());
  snprintf(time, sizeof time, "%lld%06ld", (long long)now.tv_sec, now.tv_nsec / 1000);
  return run_environment_find_object(object) && run_environment_set_config(settings->config, settings->is_found) &&
         run_environment_set_plugin_path() && run_environment_set("HIPMM_RUNTIME", answer->runtime) &&
         (!*answer->settings || run_environment_set("HIPMM_SOFTWARE", answer->settings)) &&
         run_environment_set_check(settings, answer) && run_environment_set_report(settings) &&
         run_environment_set("HIPMM_RUN_PID", pid) && run_environment_set("HIPMM_RUN_TIME", time) &&
         run_environment_set_device(answer) &&
         run_environment_set("HIPMM_RUN_STRICT", settings->is_strict ? "1" : "0") &&
         run_environment_set("HIPMM_RUN_DRIVER", settings->is_without_driver ? "0" : "1") &&
         run_environment_set_python(object, settings->is_without_python) && run_environment_set_sanitizer() &&
         run_environment_preload(object, answer->library);
}
