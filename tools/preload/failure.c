/* SPDX-License-Identifier: MIT */
/* failure.c: see failure.h. The codes used here are the same numbers in HIP and CUDA. */
#include "failure.h"

#include "../../core/base/units.h"
#include "next_symbol.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_NOT_INITIALIZED = 3, ERROR_UNKNOWN = 999 };

static char first[2300];
static atomic_bool has_first; /* `first` is set, and does not change any more */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void failure_record_first(const char *text)
{
  pthread_mutex_lock(&lock);
  if (!atomic_load(&has_first)) {
    snprintf(first, sizeof first, "%s", text);
    atomic_store(&has_first, true);
  }
  pthread_mutex_unlock(&lock);
}

const char *failure_first(void)
{
  return atomic_load(&has_first) ? first : NULL;
}

static int failure_call(enum hook hook)
{
  next_function function = next_find(hook);
  return function ? ((int (*)(void))function)() : 0;
}

/* HIP up to release 6 clears the last error at the next call that succeeds; later releases and CUDA keep it until the
 * program asks for it. So a HIP runtime is made to fail with the same code where it can: its own rule then holds. */
static bool failure_make_runtime_fail(int code)
{
  void *ptr = NULL;
  if (code == HIPMM_HIP_ERROR_INVALID_VALUE) return next_memory(HOOK_hipMalloc, NULL, 1) == code;
  if (code != HIPMM_HIP_ERROR_OUT_OF_MEMORY) return false;
  if (next_memory(HOOK_hipMalloc, &ptr, (size_t)1 << 62) == code) return true;
  if (ptr) next_pointer(HOOK_hipFree, ptr);
  return false;
}

/* The runtime's last error is cleared: an error that it has later is newer than this one. The driver has no last error. */
int failure_set(enum family family, int code)
{
  if (family == FAMILY_DRIVER) return code;
  reentry_set_error(family, 0);
  if (family == FAMILY_HIP && failure_make_runtime_fail(code)) return code;
  failure_call(family == FAMILY_HIP ? HOOK_hipGetLastError : HOOK_cudaGetLastError);
  reentry_set_error(family, code);
  return code;
}

int failure_last(enum hook hook)
{
  bool clear = hook == HOOK_hipGetLastError || hook == HOOK_cudaGetLastError;
  enum family family = hook_family(hook);
  bool is_outermost = reentry_enter();
  int code = is_outermost ? failure_call(hook) : next_void(hook), ours = is_outermost ? reentry_error(family) : 0;
  if (is_outermost && (clear || code)) reentry_set_error(family, 0);
  reentry_leave();
  return code ? code : ours;
}

static int failure_code(const struct hipmm_error *error)
{
  switch ((enum hipmm_status)error->status) {
  case HIPMM_OK: return HIPMM_HIP_SUCCESS;
  case HIPMM_E_OUT_OF_MEMORY:
  case HIPMM_E_LIMIT: return HIPMM_HIP_ERROR_OUT_OF_MEMORY;
  case HIPMM_E_ARGUMENT:
  case HIPMM_E_POINTER:
  case HIPMM_E_SIZE: return HIPMM_HIP_ERROR_INVALID_VALUE;
  case HIPMM_E_NO_DEVICE: return error->hip_code ? error->hip_code : HIPMM_HIP_ERROR_NO_DEVICE;
  case HIPMM_E_NOT_SUPPORTED: return HIPMM_HIP_ERROR_NOT_SUPPORTED;
  case HIPMM_E_STATE: return ERROR_NOT_INITIALIZED;
  default: return error->hip_code ? error->hip_code : ERROR_UNKNOWN;
  }
}

int failure_of_hipmm(enum hook hook, size_t bytes)
{
  static atomic_bool is_written;
  struct hipmm_error error = {.struct_size = sizeof error};
  char text[2300], size[40], of[48] = "";
  hipmm_last_error(&error);
  if (bytes) snprintf(of, sizeof of, " of %s", units_format_bytes(bytes, size, sizeof size));
  snprintf(text, sizeof text, "%s%s: %s", hook_name(hook), of, error.message);
  failure_record_first(text);
  int code = failure_code(&error);
  if (code != HIPMM_HIP_ERROR_OUT_OF_MEMORY) message_write_once(&is_written, "%s", text);
  return failure_set(hook_family(hook), code ? code : ERROR_UNKNOWN);
}

int failure_of_call(enum hook hook, int code)
{
  char text[200];
  snprintf(text, sizeof text, "%s: the device cannot be waited for: error %d of the runtime", hook_name(hook), code);
  failure_record_first(text);
  return failure_set(hook_family(hook), code);
}

int failure_refuse(enum hook hook, int code, const char *format, ...)
{
  static atomic_bool is_written[HOOK_COUNT];
  char text[1000];
  int used = snprintf(text, sizeof text, "%s: ", hook_name(hook));
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
  va_end(arguments);
  failure_record_first(text);
  message_write_once(&is_written[hook], "%s", text);
  return failure_set(hook_family(hook), code);
}
