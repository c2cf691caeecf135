/* SPDX-License-Identifier: MIT */
/* state.c: what is known of the driver: whether it is loaded, its devices, why it could not be loaded, and the debug log
 * of hipmm. Read by every file, and written by driver.c. It calls no other file. */
#include "nvidia.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

atomic_bool nvidia_is_loaded;
int nvidia_n_devices;
_Atomic(CUcontext) *nvidia_contexts;

static struct hipmm_services state_services; /* the fields that this plugin knows; log is NULL without hipmm */

/* Written under the lock of driver.c, and read without it: it changes only while the driver is not loaded. */
static char state_failure[1024];

void nvidia_set_services(const struct hipmm_services *services)
{
  size_t bytes = services->struct_size;
  memset(&state_services, 0, sizeof state_services);
  memcpy(&state_services, services, bytes < sizeof state_services ? bytes : sizeof state_services);
}

void nvidia_log(enum hipmm_log_level level, const char *format, ...)
{
  if (!state_services.log) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  state_services.log(&state_services, level, "%s", text);
}

hipError_t nvidia_set_load_failure(hipError_t error, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(state_failure, sizeof state_failure, format, arguments);
  va_end(arguments);
  return error;
}

const char *nvidia_load_failure(void)
{
  return !atomic_load(&nvidia_is_loaded) && *state_failure ? state_failure : NULL;
}
