/* SPDX-License-Identifier: MIT */
/* probe.c: asks a runtime for its devices, in a child process. A runtime that ends its process ends
 * the child alone. Called by info.c for each runtime. */
#include "info.h"

#include "../../runtime/hip.h"
#include <dlfcn.h>
#include <errno.h>
#include <hipmm/stream.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROBE_MANAGED_BYTES = 4096, PROBE_ATTACH_GLOBAL = 1 };

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
  json_t *object = json_pack(
      "{s:i, s:o, s:I, s:I, s:b, s:o, s:b, s:o}", "device", device, "name", output_json_string(name), "memory_bytes",
      (json_int_t)total_bytes, "free_bytes", (json_int_t)free_bytes, "memory_pools", has_pools, "mapping_granularity",
      has_mapping ? json_integer((json_int_t)granularity) : json_null(), "managed_memory",
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

/* ---- The parent ------------------------------------------------------------------------------------------------ */

static json_t *probe_failed(const char *why)
{
  return json_pack("{s:o}", "reason", output_json_string(why));
}

json_t *info_probe(const struct source *source, const char *runtime)
{
  int ends[2], status = 0;
  char why[64];
  if (pipe(ends)) return probe_failed(strerror(errno));
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    probe_answer_and_exit(source, runtime, ends[1]);
  }
  int code = errno;
  close(ends[1]);
  FILE *stream = child > 0 ? fdopen(ends[0], "r") : NULL;
  json_t *found = stream ? json_loadf(stream, 0, NULL) : NULL;
  if (stream)
    fclose(stream);
  else
    close(ends[0]);
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (found) return found;
  if (child < 0) return probe_failed(strerror(code));
  snprintf(why, sizeof why, "runtime %.16s: it ended the process that asked it", runtime);
  return probe_failed(why);
}
