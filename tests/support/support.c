/* SPDX-License-Identifier: MIT */
/* support.c: the helpers of support.h. */
#include "support.h"
#include "../../core/base/live_format.h"
#include "../../core/plugin/plugin.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Assertions ---- */

void support_assert_status(enum hipmm_status status, enum hipmm_status wanted, const char *call, const char *file,
                           int line)
{
  if (status == wanted) return;
  print_error("%s: %s (%d), not %s: %s\n", call, hipmm_status_string(status), status, hipmm_status_string(wanted),
              status ? hipmm_last_error_message() : "");
  _fail(file, line);
}

void support_assert_contains(const char *text, const char *part, const char *file, int line)
{
  if (text && strstr(text, part)) return;
  print_error("\"%s\" does not contain \"%s\"\n", text ? text : "(null)", part);
  _fail(file, line);
}

int64_t resource_value(struct hipmm_resource *resource, const char *name)
{
  int64_t number = INT64_MIN;
  assert_ok(hipmm_resource_query(resource, name, &number));
  assert_true(number != INT64_MIN);
  return number;
}

/* ---- The runtime ---- */

bool on_software(void)
{
  const char *runtime = getenv("HIPMM_RUNTIME"), *software = getenv("HIPMM_SOFTWARE");
  bool is_closed = software && strstr(software, "host_access=false");
  return (!runtime || !*runtime || !strcmp(runtime, "software")) && !is_closed;
}

void needs_software(void)
{
  if (!on_software()) skip();
}

void needs_devices(int count)
{
  int there = 0;
  if (!on_software() && (hipmm_device_count(&there) || there < count)) skip();
}

/* ---- The software runtime ---- */

const char *plugin_file(const char *type)
{
  const struct plugin *plugin;
  if (!plugin_get(NULL, type, &plugin)) return plugin->file;
  fprintf(stderr, "%s\n", hipmm_last_error_message());
  exit(1);
}

uint64_t live_on(int device)
{
  uint64_t count = 0;
  assert_true(software()->live(device, &count, NULL));
  return count;
}

uint64_t live_on_all_devices(void)
{
  return software_live();
}

uint64_t faults_on_all_devices(void)
{
  return software_faults();
}

void use_test_plugins(void)
{
  const char *top = getenv("top_builddir"), *ours = getenv("HIPMM_PLUGIN_PATH");
  char *path;
  if (!top) top = ".";
  if (asprintf(&path, "%s/tests/bad/.libs:%s/tests/model/.libs:%s", top, top, ours ? ours : "") < 0) exit(1);
  setenv("HIPMM_PLUGIN_PATH", path, 1);
  free(path);
}

/* ---- The log ---- */

static char *log_folder;

static void remove_log(void)
{
  remove_folder(log_folder);
}

void log_to_file(const char *level)
{
  char *variable;
  log_folder = new_folder();
  atexit(remove_log);
  if (asprintf(&variable, "%s:%s/log", level, log_folder) < 0) exit(1);
  setenv("HIPMM_LOG", variable, 1);
  free(variable);
}

const char *logged(void)
{
  static char text[16384];
  static long read_up_to;
  char *file = path_in(log_folder, "log");
  FILE *stream = fopen(file, "r");
  size_t bytes = 0;
  if (stream) {
    fseek(stream, read_up_to, SEEK_SET);
    bytes = fread(text, 1, sizeof text - 1, stream);
    fseek(stream, 0, SEEK_END);
    read_up_to = ftell(stream);
    fclose(stream);
  }
  text[bytes] = '\0';
  free(file);
  return text;
}

/* ---- How much ---- */

uint64_t number_from_environment(const char *name, uint64_t usual)
{
  const char *text = getenv(name);
  return text && *text ? strtoull(text, NULL, 10) : usual;
}

/* ---- Files ---- */

char *new_folder(void)
{
  const char *parent = getenv("TMPDIR");
  char *folder;
  if (asprintf(&folder, "%s/hipmm-test-XXXXXX", parent && *parent ? parent : "/tmp") < 0) return NULL;
  if (mkdtemp(folder)) return folder;
  perror(folder);
  exit(1);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
  (void)status, (void)type, (void)place;
  return remove(path);
}

void remove_folder(char *folder)
{
  if (folder) nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  free(folder);
}

char *path_in(const char *folder, const char *name)
{
  char *path;
  return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

char *published_file(bool is_draft)
{
  struct stat status = {0};
  char *file;
  (void)stat("/proc/self/ns/pid", &status);
  int length = asprintf(&file, is_draft ? LIVE_DRAFT : LIVE_NAME, (unsigned)geteuid(),
                        (unsigned long long)status.st_ino, (long)getpid());
  return length < 0 ? NULL : file;
}

int take_place_of_file(const char *file, const char *own)
{
  char link[64], target[4096];
  for (int descriptor = STDERR_FILENO + 1; descriptor < 1024; descriptor++) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0 || (size_t)length != strlen(file) || memcmp(target, file, (size_t)length) != 0) continue;
    int opened = open(own, O_RDWR | O_CREAT | O_EXCL, 0600);
    bool is_there = opened >= 0 && dup2(opened, descriptor) == descriptor;
    close(opened);
    return is_there ? descriptor : -1;
  }
  return -1;
}

bool write_file(const char *file, const void *data, size_t bytes)
{
  FILE *stream = fopen(file, "w");
  if (!stream) return false;
  bool good = fwrite(data, 1, bytes, stream) == bytes;
  return !fclose(stream) && good;
}

char *read_file(const char *file, size_t *bytes_out)
{
  struct stat status;
  FILE *stream = fopen(file, "r");
  if (!stream) return NULL;
  size_t bytes = fstat(fileno(stream), &status) ? 0 : (size_t)status.st_size;
  char *data = malloc(bytes + 1);
  if (data) bytes = fread(data, 1, bytes, stream);
  if (data) data[bytes] = '\0';
  fclose(stream);
  if (bytes_out) *bytes_out = bytes;
  return data;
}

bool copy_file(const char *from, const char *to)
{
  size_t bytes;
  char *data = read_file(from, &bytes);
  bool good = data && write_file(to, data, bytes);
  free(data);
  return good;
}

/* ---- Processes ---- */

enum { SECONDS = 60 }; /* that a process may take, sanitizers and a busy machine included */

static void read_output(FILE *file, char *text, size_t bytes)
{
  rewind(file);
  text[fread(text, 1, bytes - 1, file)] = '\0';
  fclose(file);
}

/* Becomes the child: output goes into the files, and it ends by itself when it hangs. */
static void start_child(FILE *out, FILE *error)
{
  dup2(fileno(out), STDOUT_FILENO);
  dup2(fileno(error), STDERR_FILENO);
  alarm(SECONDS);
}

static struct outcome finish_child(pid_t child, FILE *out, FILE *error)
{
  struct outcome outcome = {.status = -1};
  int status;
  if (waitpid(child, &status, 0) == child && WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  read_output(out, outcome.out, sizeof outcome.out);
  read_output(error, outcome.error, sizeof outcome.error);
  return outcome;
}

struct outcome run_forked(int (*run)(const void *argument), const void *argument)
{
  FILE *out = tmpfile(), *error = tmpfile();
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    start_child(out, error);
    int status = run(argument);
    fflush(NULL);
    _exit(status);
  }
  return finish_child(child, out, error);
}

static void set_variables(const char *const *environment)
{
  for (; environment && *environment; environment++) {
    char *copy = strdup(*environment), *equals = strchr(copy, '=');
    if (equals) *equals = '\0';
    if (equals)
      setenv(copy, equals + 1, 1);
    else
      unsetenv(copy);
    free(copy);
  }
}

static char own_file[PATH_MAX]; /* the program, whatever folder it is in by then */

__attribute__((constructor)) static void find_own_file(void)
{
  if (!realpath((const char *)(uintptr_t)getauxval(AT_EXECFN), own_file)) *own_file = '\0';
}

struct outcome run_again(const char *const *arguments, const char *const *environment)
{
  FILE *out = tmpfile(), *error = tmpfile();
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    char *argv[16] = {own_file};
    for (int i = 0; i < 14 && arguments[i]; i++) argv[i + 1] = (char *)(uintptr_t)arguments[i];
    start_child(out, error);
    set_variables(environment);
    execv(own_file, argv);
    perror(own_file);
    _exit(127);
  }
  return finish_child(child, out, error);
}
