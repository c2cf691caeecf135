/* SPDX-License-Identifier: MIT */
/* hip.c: chooses the runtime, and wraps the calls that need care: the current device and error codes. libhipmm links no
 * HIP library: it opens one when the process initialises hipmm. Called by initialisation and by everything above that
 * calls HIP. */
#include "hip.h"
#include "../base/environment.h"
#include "../base/error.h"
#include "../base/log.h"
#include "../base/memory_observer.h"
#include "../base/own_symbol.h"
#include "../base/text.h"
#include "../graph/graph.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

static const char *name_in_use;
static void *library_in_use;
static atomic_int device_count;
static const struct memory_observer *observer;

/* `address`: of a function that gives one; NULL if there is none. */
static const struct memory_observer *hip_ask_for_observer(void *address)
{
  memory_observer_get *get;
  memcpy(&get, &address, sizeof get);
  const struct memory_observer *found = get ? get() : NULL;
  return found && found->struct_size >= sizeof *found ? found : NULL;
}

/* The detector of the runtime, which knows all work; else that of `hipmm run`. The table is not in use yet. */
static void hip_find_observer(void)
{
  const struct memory_observer *found = hip_ask_for_observer(own_symbol(library_in_use, "hipmm_software_observer"));
  if (!found) found = hip_ask_for_observer(dlsym(RTLD_DEFAULT, "hipmm_run_observer"));
  if (!found) return;
  if (found->observe_hip && !observer) found->observe_hip(&hip_table_functions);
  observer = found;
}

static enum hipmm_status hip_use_library(void *library, const char *name)
{
  const char *missing = hip_table_find(library);
  if (missing)
    return error_set(HIPMM_E_NOT_SUPPORTED, "runtime %s: it does not export %s, which hipmm needs", name, missing);
  int count = 0, code = hip_table_functions.GetDeviceCount(&count);
  if (code || count < 1) {
    hip_table_functions.GetLastError();
    return error_set(HIPMM_E_NO_DEVICE, "runtime %s: no device (hipGetDeviceCount: %s)", name,
                     code ? hip_table_functions.GetErrorName(code) : "0 devices");
  }
  code = hip_table_read_version();
  if (code) {
    hip_table_functions.GetLastError();
    return error_set(HIPMM_E_HIP, "runtime %s: hipRuntimeGetVersion failed: %s", name,
                     hip_table_functions.GetErrorName(code));
  }
  library_in_use = library;
  hip_find_observer();
  atomic_store(&device_count, count);
  return HIPMM_OK;
}

/* Opens the library of one runtime, and uses it if it has a device. */
static enum hipmm_status hip_try_runtime(const struct graph *graph, const char *name)
{
  void *library;
  enum hipmm_status status = runtime_library_load(graph, name, &library);
  return status ? status : hip_use_library(library, name);
}

/* Nothing to warn of where there is no other runtime. */
static void hip_warn_of_software(const struct graph *graph)
{
  if (runtime_library_exists(graph, "amd") || runtime_library_exists(graph, "nvidia"))
    log_line(HIPMM_LOG_WARNING, NULL,
             "no GPU found, using the software device (HIPMM_RUNTIME=software silences this; HIPMM_LOG=info says why)");
}

static enum hipmm_status hip_try_each(const struct graph *graph, const char **name_out)
{
  char reasons[1024] = "";
  for (size_t i = 0; i < GRAPH_AUTO_RUNTIMES; i++) {
    const char *name = graph_auto_runtimes[i];
    if (!hip_try_runtime(graph, name)) {
      if (!strcmp(name, "software")) hip_warn_of_software(graph);
      *name_out = name;
      return HIPMM_OK;
    }
    log_line(HIPMM_LOG_INFO, "auto", "%s", hipmm_last_error_message());
    text_append(reasons, sizeof reasons, "%s%s", *reasons ? "; " : "", hipmm_last_error_message());
  }
  return error_set(HIPMM_E_NO_DEVICE, "no runtime has a device: %s", reasons);
}

static const char *hip_wanted(const struct graph *graph)
{
  const char *wanted = environment_get("HIPMM_RUNTIME");
  return wanted && *wanted ? wanted : graph->runtime;
}

enum hipmm_status hip_check(const struct graph *graph)
{
  const char *wanted = hip_wanted(graph);
  if (!strcmp(wanted, "auto") || !strcmp(wanted, name_in_use)) return HIPMM_OK;
  return error_set(HIPMM_E_STATE, "runtime %s: this process already uses %s, and a process can use only one", wanted,
                   name_in_use);
}

/* The table is constant after the first use; only the runtime itself may be configured again. */
static enum hipmm_status hip_reopen(const struct graph *graph, bool is_in_use)
{
  void *library;
  enum hipmm_status status = hip_check(graph);
  if (status || is_in_use) return status;
  status = runtime_library_load(graph, name_in_use, &library);
  int count = 0, code = status ? 0 : hip_table_functions.GetDeviceCount(&count);
  if (code) return hip_refuse(NULL, "hipGetDeviceCount", code, 0);
  if (!status) atomic_store(&device_count, count);
  if (!status) hip_find_observer();
  return status;
}

static enum hipmm_status hip_open_wanted(const struct graph *graph, const char *wanted, bool is_in_use)
{
  const char *name = NULL;
  if (name_in_use) return hip_reopen(graph, is_in_use);
  bool automatic = !strcmp(wanted, "auto");
  enum hipmm_status status = automatic ? hip_try_each(graph, &name) : hip_try_runtime(graph, wanted);
  if (status) return status;
  if (!automatic) name = strdup(wanted);
  if (!name) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  name_in_use = name;
  hip_table_functions.runtime = name;
  int version = hip_table_version();
  log_line(HIPMM_LOG_INFO, "runtime", "%s, HIP %d.%d (%s)", name, version / 10000000, version / 100000 % 100,
           automatic ? "auto: the first that has a device" : "as asked for");
  return HIPMM_OK;
}

enum hipmm_status hip_open(const struct graph *graph, bool is_in_use)
{
  const char *variable = environment_get("HIPMM_RUNTIME");
  bool is_variable = variable && *variable;
  enum hipmm_status status = hip_open_wanted(graph, hip_wanted(graph), is_in_use);
  return status && is_variable ? error_blame_variable("HIPMM_RUNTIME", status) : status;
}

int hip_device_count(void)
{
  return atomic_load_explicit(&device_count, memory_order_relaxed);
}

const struct hipmm_hip *hip_table(void)
{
  return &hip_table_functions;
}

void *hip_symbol(const char *name)
{
  return library_in_use ? own_symbol(library_in_use, name) : NULL;
}

const struct memory_observer *hip_observer(void)
{
  return observer;
}

bool hip_observer_enter(void)
{
  return observer && observer->enter();
}

void hip_observer_leave(void)
{
  if (observer) observer->leave();
}

const char *hip_name(void)
{
  return name_in_use;
}

static void hip_set_device(int device)
{
  if (!hip_table_functions.SetDevice(device)) return;
  hip_table_functions.SetDevice(device);
  hip_table_functions.GetLastError();
}

int hip_enter_device(int device)
{
  int previous;
  bool known = !hip_table_functions.GetDevice(&previous);
  if (!known) {
    known = !hip_table_functions.GetDevice(&previous);
    hip_table_functions.GetLastError();
  }
  if (!known || previous != device) hip_set_device(device);
  return known ? previous : device;
}

void hip_leave_device(int device, int previous)
{
  if (previous != device) hip_set_device(previous);
}

bool hip_is_captured(int device, hipmm_stream_t stream)
{
  int previous = hip_enter_device(device);
  bool is_captured = hipmm_stream_is_captured(&hip_table_functions, stream);
  hip_leave_device(device, previous);
  return is_captured;
}

enum hipmm_status hip_status(int code)
{
  switch (code) {
  case HIPMM_HIP_SUCCESS: return HIPMM_OK;
  case HIPMM_HIP_ERROR_OUT_OF_MEMORY: return HIPMM_E_OUT_OF_MEMORY;
  case HIPMM_HIP_ERROR_NOT_SUPPORTED: return HIPMM_E_NOT_SUPPORTED;
  case HIPMM_HIP_ERROR_NO_DEVICE:
  case HIPMM_HIP_ERROR_INVALID_DEVICE: return HIPMM_E_NO_DEVICE;
  case HIPMM_HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED: return HIPMM_E_STATE;
  default: return HIPMM_E_HIP;
  }
}

enum hipmm_status hip_refuse(const char *resource, const char *call, int code, size_t bytes)
{
  hip_table_functions.GetLastError(); /* HIP keeps it */
  return error_hip(hip_status(code), resource, call, code, hip_table_functions.GetErrorName(code), bytes);
}
