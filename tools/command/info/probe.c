/* SPDX-License-Identifier: MIT */
/* probe.c: asks a runtime for its devices, in a child process. A runtime that ends its process ends the child alone, and a
 * child whose runtime does not answer in time is killed. Called by info.c for each runtime. */
#include "info.h"

#include "../../../core/base/hip_layout.h"
#include "../../../core/runtime/hip.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <hipmm/stream.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROBE_MANAGED_BYTES = 4096, PROBE_ATTACH_GLOBAL = 1 };

/* Between two looks at a child that works; at a child that ends, so many times. */
enum { PROBE_PAUSE_MS = 100, PROBE_END_PAUSE_MS = 10, PROBE_MOST_PAUSES = 200 };

/* ---- The child ------------------------------------------------------------------------------------------------- */

/* Tried, since the attribute for managed memory differs between releases of HIP. */
static bool probe_has_managed(const struct hipmm_hip *hip)
{
  void *ptr;
  return !hip->MallocManaged(&ptr, PROBE_MANAGED_BYTES, PROBE_ATTACH_GLOBAL) && !hip->Free(ptr);
}

static json_t *probe_peers(const struct hipmm_hip *hip, int device, int n_devices)
{
  json_t *peers = json_array();
  for (int peer = 0; peer < n_devices; peer++) {
    int reaches = 0;
    if (peer == device || !hip->DeviceCanAccessPeer || hip->DeviceCanAccessPeer(&reaches, device, peer)) continue;
    if (reaches) json_array_append_new(peers, json_integer(peer));
  }
  return peers;
}

/* A chunk is asked: the driver may not give what a pool asks for. null: the runtime does not tell. */
static json_t *probe_rdma(const struct hipmm_hip *hip, int device)
{
  int has_rdma = 0;
  if (!hip->DeviceGetAttribute(&has_rdma, HIP_LAYOUT_DEVICE_RDMA, device)) return json_boolean(has_rdma);
  hip->GetLastError();
  return json_null();
}

static json_t *probe_device(int device, int n_devices)
{
  const struct hipmm_hip *hip = hip_table();
  char name[256] = "";
  size_t free_bytes = 0, total_bytes = 0, granularity = 0;
  hipmm_hip_mempool_t pool;
  (void)!hipmm_device_name(device, sizeof name, name);
  (void)!hipmm_device_memory(device, &free_bytes, &total_bytes);
  int previous = hip_enter_device(device);
  bool has_pools = hip->DeviceGetDefaultMemPool && !hip->DeviceGetDefaultMemPool(&pool, device);
  bool has_mapping = hip->MemGetAllocationGranularity && !hip->MemGetAllocationGranularity(&granularity, device);
  json_t *object =
      json_pack("{s:i, s:o, s:I, s:I, s:b, s:o, s:o, s:b, s:o}", "device", device, "name", output_json_string(name),
                "memory_bytes", (json_int_t)total_bytes, "free_bytes", (json_int_t)free_bytes, "memory_pools",
                has_pools, "mapping_granularity", has_mapping ? json_integer((json_int_t)granularity) : json_null(),
                "mapping_rdma", has_mapping ? probe_rdma(hip, device) : json_null(), "managed_memory",
                hip->MallocManaged && probe_has_managed(hip), "peers", probe_peers(hip, device, n_devices));
  hip_leave_device(device, previous);
  return object;
}

static json_t *probe_version(enum hipmm_status (*ask)(int *version_out))
{
  int version;
  char text[64];
  if (ask(&version) != HIPMM_OK) return json_null();
  snprintf(text, sizeof text, "%d.%d.%d", version / 10000000, version / 100000 % 100, version % 100000);
  return json_string(text);
}

static json_t *probe_find(const struct source *source)
{
  Dl_info info;
  char library[PATH_MAX] = "";
  int n_devices = 0;
  enum hipmm_status status = source ? source_initialise(source) : hipmm_init_from_string("{ \"stack\": [\"device\"] }");
  if (status == HIPMM_OK) status = hipmm_device_count(&n_devices);
  if (status != HIPMM_OK) {
    /* The message names the variable, which is set in this process alone. */
    static const char variable[] = "HIPMM_RUNTIME: ";
    const char *message = hipmm_last_error_message();
    bool is_of_variable = strncmp(message, variable, sizeof variable - 1) == 0;
    return json_pack("{s:o}", "reason", output_json_string(is_of_variable ? message + sizeof variable - 1 : message));
  }
  if (!dladdr(hip_symbol("hipMalloc"), &info) || !realpath(info.dli_fname, library)) library[0] = '\0';
  json_t *devices = json_array();
  for (int device = 0; device < n_devices; device++) json_array_append_new(devices, probe_device(device, n_devices));
  return json_pack("{s:n, s:o, s:o, s:o, s:o}", "reason", "library", output_json_string(library), "version",
                   probe_version(hipmm_runtime_version), "driver_version", probe_version(hipmm_driver_version),
                   "devices", devices);
}

/* Standard output is the parent's result, so what the runtime prints goes to standard error. */
static void probe_answer_and_exit(const struct source *source, const char *runtime, int pipe_end)
{
  setenv("HIPMM_LOG", "off", 1);
  setenv("HIPMM_PUBLISH", "0", 1); /* the file would be left behind */
  setenv("HIPMM_RUNTIME", runtime, 1);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  json_t *found = probe_find(source);
  char *text = found ? json_dumps(found, JSON_COMPACT) : NULL;
  for (const char *at = text; at && *at;) {
    ssize_t written = write(pipe_end, at, strlen(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(CMD_BAD);
    at += written;
  }
  _exit(text ? CMD_GOOD : CMD_BAD);
}

/* The package says it (python/hipmm/_bridge.py), and prints nothing where Python has no PyTorch. Python looks for modules in the
 * working directory too, which may be of another user. */
static void probe_ask_python_and_exit(int pipe_end)
{
  int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(pipe_end, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  if (!chdir("/")) execlp("python3", "python3", "-m", "hipmm._bridge", (char *)NULL);
  _exit(CMD_BAD);
}

/* ---- The parent ------------------------------------------------------------------------------------------------ */

static json_t *probe_failed(const char *why)
{
  return json_pack("{s:o}", "reason", output_json_string(why));
}

/* What the child writes until it closes the pipe, or the time is up; the caller frees it. NULL when there is no memory. */
static char *probe_read(int end, const char *runtime, unsigned timeout_s, bool *is_late_out)
{
  char *text = NULL, part[4096], label[64];
  size_t bytes;
  struct progress progress;
  struct pollfd poll_end = {.fd = end, .events = POLLIN};
  FILE *stream = open_memstream(&text, &bytes);
  int64_t start_ns = cmd_now_ns(), most_ms = timeout_s * INT64_C(1000), spent_ms = 0;
  snprintf(label, sizeof label, "asking %.32s", runtime);
  progress_start(&progress, label);
  for (ssize_t n = 1; stream && n && spent_ms < most_ms; spent_ms = (cmd_now_ns() - start_ns) / 1000000) {
    n = poll(&poll_end, 1, PROBE_PAUSE_MS) > 0 ? read(end, part, sizeof part) : 1;
    if (n > 0 && poll_end.revents) fwrite(part, 1, (size_t)n, stream);
    if (n < 0 && errno != EINTR) break;
    progress_show(&progress, (uint64_t)spent_ms, (uint64_t)most_ms);
  }
  progress_end(&progress);
  *is_late_out = spent_ms >= most_ms;
  if (stream && !fclose(stream)) return text;
  free(text);
  return NULL;
}

/* A child that waits for a device within the kernel cannot be killed, and is left to itself. */
static void probe_end_child(pid_t child, bool is_late)
{
  if (is_late) kill(child, SIGKILL);
  for (int pauses = 0; pauses < PROBE_MOST_PAUSES; pauses++) {
    pid_t ended = waitpid(child, NULL, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) break;
    poll(NULL, 0, PROBE_END_PAUSE_MS);
  }
}

json_t *info_probe(const struct source *source, const char *runtime, unsigned timeout_s)
{
  int ends[2];
  char why[80];
  bool is_late = false;
  if (pipe2(ends, O_CLOEXEC)) return probe_failed(strerror(errno));
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    if (!runtime) probe_ask_python_and_exit(ends[1]);
    probe_answer_and_exit(source, runtime, ends[1]);
  }
  int code = errno;
  close(ends[1]);
  char *text = child > 0 ? probe_read(ends[0], runtime ? runtime : "python3", timeout_s, &is_late) : NULL;
  close(ends[0]);
  json_t *found = text ? json_loads(text, 0, NULL) : NULL;
  free(text);
  if (child > 0) probe_end_child(child, is_late);
  if (found) return found;
  if (child < 0) return probe_failed(strerror(code));
  if (!is_late) return probe_failed("it ended the process that asked it");
  snprintf(why, sizeof why, "it did not answer within %u s; does its driver hang?", timeout_s);
  return probe_failed(why);
}
