/* SPDX-License-Identifier: MIT */
/* probe_tools.c: what the probes share. */
#include "probes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum probe_verdict probe_bad(struct probe_context *context, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(context->found, sizeof context->found, format, arguments);
  va_end(arguments);
  return PROBE_BAD;
}

bool probe_call(struct probe_context *context, const char *name, int code)
{
  if (!code) return true;
  const char *word = context->hip->GetErrorName ? context->hip->GetErrorName(code) : "?";
  (void)context->hip->GetLastError();
  probe_bad(context, "hip%s returned %s (%d)", name, word, code);
  return false;
}

static void probe_sleep(void *milliseconds)
{
  const unsigned wanted = *(const unsigned *)milliseconds;
  struct timespec left = {.tv_sec = wanted / 1000, .tv_nsec = wanted % 1000 * 1000000L};
  while (nanosleep(&left, &left)) continue;
}

bool probe_delay(struct probe_context *context, hipmm_stream_t stream, unsigned *milliseconds)
{
  return probe_call(context, "LaunchHostFunc", context->hip->LaunchHostFunc(stream, probe_sleep, milliseconds));
}

bool probe_holds(struct probe_context *context, const char *what, const void *ptr, size_t bytes, int value)
{
  unsigned char *copy = malloc(bytes);
  size_t wrong = 0;
  if (!copy) {
    probe_bad(context, "no host memory for %zu bytes", bytes);
    return false;
  }
  bool is_read = probe_call(context, "Memcpy", context->hip->Memcpy(copy, ptr, bytes, HIPMM_HIP_MEMCPY_DEFAULT));
  for (size_t i = 0; is_read && i < bytes; i++) wrong += copy[i] != (unsigned char)value;
  if (wrong) probe_bad(context, "%s: %zu of %zu bytes are wrong", what, wrong, bytes);
  free(copy);
  return is_read && !wrong;
}

size_t probe_free_bytes(const struct probe_context *context)
{
  size_t free_bytes = 0, total_bytes;
  (void)context->hip->MemGetInfo(&free_bytes, &total_bytes);
  return free_bytes;
}
