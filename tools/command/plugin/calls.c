/* SPDX-License-Identifier: MIT */
/* calls.c: calls of the tested resource and of HIP, with what every check expects of them. Called by checks, in a child. */
#include "../../../core/base/error.h"
#include "../../../core/runtime/hip.h"
#include "kit.h"

#include <string.h>

struct hipmm_resource *kit_resource;

void kit_expect_ok(enum hipmm_status status, const char *what)
{
  if (status) kit_fail("%s: %s: %s", what, hipmm_status_string(status), hipmm_last_error_message());
}

void kit_expect_hip(int code, const char *call)
{
  if (code) kit_fail("%s, called by the kit: %s", call, hip_table()->GetErrorName(code));
}

hipmm_stream_t kit_stream(void)
{
  hipmm_stream_t stream = NULL;
  kit_expect_hip(hip_table()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING), "hipStreamCreate");
  return stream;
}

void kit_expect_refusal(enum hipmm_status status, enum hipmm_status wanted, const char *what)
{
  const char *reason = status ? hipmm_last_error_message() : "";
  if (!status) kit_fail("%s succeeds", what);
  if (strstr(reason, ERROR_NO_REASON) || strstr(reason, ERROR_NO_STATUS)) kit_fail("%s: %s", what, reason);
  if (wanted && status != wanted)
    kit_fail("%s: %s (%s), where \"%s\" is right", what, hipmm_status_string(status), reason,
             hipmm_status_string(wanted));
}

void *kit_allocate(size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  char untouched;
  void *ptr = &untouched;
  char what[100];
  snprintf(what, sizeof what, "an allocation of %zu bytes", bytes);
  enum hipmm_status status = hipmm_allocate_aligned(kit_resource, bytes, alignment, stream, &ptr);
  if (status && ptr != &untouched) kit_fail("%s fails, and writes to *ptr_out", what);
  if (status) kit_expect_refusal(status, HIPMM_OK, what);
  if (status && status != HIPMM_E_NOT_SUPPORTED && !hipmm_is_out_of_memory(status))
    kit_fail("%s: %s: %s", what, hipmm_status_string(status), hipmm_last_error_message());
  if (status) return NULL;
  if (ptr == &untouched) kit_fail("%s succeeds, and does not write to *ptr_out", what);
  if (!ptr) kit_fail("%s succeeds, and gives NULL", what);
  if ((uintptr_t)ptr % alignment) kit_fail("%s: %p is not aligned to %zu bytes", what, ptr, alignment);
  return ptr;
}

void kit_free(void *ptr, size_t bytes, hipmm_stream_t stream)
{
  char what[100];
  snprintf(what, sizeof what, "the free of a block of %zu bytes", bytes);
  kit_expect_ok(hipmm_deallocate(kit_resource, ptr, bytes, stream), what);
}
