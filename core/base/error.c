/* SPDX-License-Identifier: MIT */
/* error.c: the calling thread's error record. A failure costs a few stores on the allocation path; the message is
 * formatted when the caller asks for it. Nothing in this file may fail or allocate. */
#include "error.h"
#include "text.h"
#include "units.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS = 4, MOST_EXPLANATIONS = 4 };

/* A message that is not formatted yet. `text` NULL: `record` is complete. */
struct unformatted {
  const char *text;
  uint64_t numbers[NUMBERS];
  const char *hip_call;
  const char *hip_name;
};

/* What another resource knows of the failure. */
struct explanation {
  char resource[112];
  const char *text;
  uint64_t numbers[NUMBERS];
};

static const char unknown_status[] = "unknown status";

static _Thread_local struct hipmm_error record;
static _Thread_local struct unformatted unformatted;
static _Thread_local struct explanation explanations[MOST_EXPLANATIONS];
static _Thread_local unsigned n_explanations;
static _Thread_local bool is_reported; /* the record is of an earlier failure, which the program knows */

static void error_copy_text(char *to, size_t bytes, const char *from)
{
  snprintf(to, bytes, "%s", from ? from : "");
}

static void error_start_record(enum hipmm_status status, const char *resource)
{
  record.status = status;
  record.hip_code = 0;
  record.line = record.column = 0;
  record.file[0] = record.path[0] = record.message[0] = '\0';
  error_copy_text(record.resource, sizeof record.resource, resource);
  unformatted = (struct unformatted){0};
  n_explanations = 0;
  is_reported = false;
}

enum hipmm_status error_set(enum hipmm_status status, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  char message[sizeof record.message]; /* the arguments may lie in the record that is about to be overwritten */
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  error_start_record(status, NULL);
  text_make_plain(message);
  error_copy_text(record.message, sizeof record.message, message);
  return status;
}

enum hipmm_status error_set_located(const struct hipmm_error *error)
{
  error_start_record(HIPMM_OK, NULL);
  record = *error;
  return (enum hipmm_status)record.status;
}

enum hipmm_status error_refuse(enum hipmm_status status, const char *resource, const char *text, uint64_t first,
                               uint64_t second, uint64_t third)
{
  error_start_record(status, resource);
  unformatted = (struct unformatted){.text = text, .numbers = {first, second, third}};
  return status;
}

enum hipmm_status error_hip(enum hipmm_status status, const char *resource, const char *call, int code,
                            const char *code_name, size_t bytes)
{
  static const char sized[] = "{0:bytes}";
  static const char plain[] = "";
  error_start_record(status, resource);
  record.hip_code = code;
  unformatted = (struct unformatted){bytes ? sized : plain, {bytes}, call, code_name ? code_name : "unknown error"};
  return status;
}

enum hipmm_status error_explain(enum hipmm_status status, const char *resource, const char *text,
                                const uint64_t numbers[NUMBERS])
{
  bool is_refusal = record.status != (int32_t)status;
  if (is_refusal) error_start_record(status, resource);
  if (is_refusal)
    unformatted = (struct unformatted){.text = text, .numbers = {numbers[0], numbers[1], numbers[2], numbers[3]}};
  if (is_refusal || n_explanations == MOST_EXPLANATIONS) return status;
  struct explanation *explanation = &explanations[n_explanations++];
  error_copy_text(explanation->resource, sizeof explanation->resource, resource);
  explanation->text = text;
  memcpy(explanation->numbers, numbers, sizeof explanation->numbers);
  return status;
}

enum hipmm_status error_of_op(enum hipmm_status status, const char *resource, const char *op)
{
  bool is_status = strcmp(hipmm_status_string(status), unknown_status) != 0;
  bool has_reason = !is_reported && record.status == (int32_t)status && (unformatted.text || record.message[0]);
  if (!is_status)
    status = error_set(HIPMM_E_INTERNAL, "%s: its %s returned %d, " ERROR_NO_STATUS, resource, op, (int)status);
  else if (!has_reason)
    error_set(status, "%s: its %s " ERROR_NO_REASON " (%s)", resource, op, hipmm_status_string(status));
  if (!is_status || !has_reason) error_copy_text(record.resource, sizeof record.resource, resource);
  is_reported = true;
  return status;
}

/* Appends as much of the text as fits. */
static void error_append(const char *text, size_t length)
{
  size_t used = strlen(record.message), room = sizeof record.message - 1 - used;
  if (length > room) length = room;
  memcpy(record.message + used, text, length);
  record.message[used + length] = '\0';
}

static void error_append_text(const char *text)
{
  error_append(text, strlen(text));
}

/* Appends the number that `field`, the inside of "{…}", names: "0", "0:bytes", "0:hex". */
static void error_append_number(const char *field, const uint64_t *numbers)
{
  char buffer[40];
  uint64_t number = field[0] >= '0' && field[0] < '0' + NUMBERS ? numbers[field[0] - '0'] : 0;
  const char *form = *field ? field + 1 : field;
  if (!strncmp(form, ":bytes", 6))
    units_format_bytes(number, buffer, sizeof buffer);
  else
    snprintf(buffer, sizeof buffer, strncmp(form, ":hex", 4) ? "%llu" : "0x%llx", (unsigned long long)number);
  error_append_text(buffer);
}

static void error_append_expanded(const char *text, const uint64_t *numbers)
{
  while (*text) {
    size_t plain = strcspn(text, "{");
    error_append(text, plain);
    text += plain;
    if (*text != '{') continue;
    error_append_number(text + 1, numbers);
    text += strcspn(text, "}");
    if (*text) text++;
  }
}

static void error_finish_message(void)
{
  if (!unformatted.text) return;
  if (record.resource[0]) {
    error_append_text(record.resource);
    error_append_text(": ");
  }
  if (unformatted.hip_call) {
    error_append_text(unformatted.hip_call);
    if (unformatted.text[0]) error_append_text(" of ");
  }
  error_append_expanded(unformatted.text, unformatted.numbers);
  if (unformatted.hip_call) {
    error_append_text(" failed: ");
    error_append_text(unformatted.hip_name);
  }
  unformatted.text = NULL;
}

static void error_finish_record(void)
{
  error_finish_message();
  for (unsigned i = 0; i < n_explanations; i++) {
    error_append_text("; ");
    error_append_text(explanations[i].resource);
    error_append_text(": ");
    error_append_expanded(explanations[i].text, explanations[i].numbers);
  }
  n_explanations = 0;
  text_make_plain(record.message);
}

bool error_is_out_of_device_memory(void)
{
  return record.status == HIPMM_E_OUT_OF_MEMORY && record.hip_code == HIPMM_HIP_ERROR_OUT_OF_MEMORY && !is_reported;
}

void error_add(const char *text)
{
  error_finish_record();
  error_append_text(text);
}

enum hipmm_status error_blame_variable(const char *variable, enum hipmm_status status)
{
  char message[sizeof record.message];
  error_finish_record();
  if (!strncmp(record.message, "HIPMM_", strlen("HIPMM_"))) return status;
  memcpy(message, record.message, sizeof message);
  bool is_whole = snprintf(record.message, sizeof record.message, "%s: %s", variable, message) >= 0;
  if (is_whole) record.file[0] = '\0';
  return status;
}

void hipmm_last_error(struct hipmm_error *error_out)
{
  if (!error_out || error_out->struct_size < sizeof error_out->struct_size) return;
  error_finish_record();
  size_t bytes = error_out->struct_size < sizeof record ? error_out->struct_size : sizeof record;
  record.struct_size = bytes;
  memcpy(error_out, &record, bytes);
}

const char *hipmm_last_error_message(void)
{
  error_finish_record();
  return record.message;
}

const char *hipmm_status_string(enum hipmm_status status)
{
  switch (status) {
  case HIPMM_OK: return "success";
  case HIPMM_E_ARGUMENT: return "invalid argument";
  case HIPMM_E_POINTER: return "not a live pointer of this resource";
  case HIPMM_E_SIZE: return "not the size that was allocated";
  case HIPMM_E_STATE: return "not possible in this state";
  case HIPMM_E_IO: return "file cannot be read";
  case HIPMM_E_SYNTAX: return "not JSON";
  case HIPMM_E_CONFIG: return "invalid configuration";
  case HIPMM_E_PLUGIN: return "plugin cannot be used";
  case HIPMM_E_PLUGIN_ABI: return "plugin of another ABI";
  case HIPMM_E_OUT_OF_MEMORY: return "out of memory";
  case HIPMM_E_LIMIT: return "limit reached";
  case HIPMM_E_NO_DEVICE: return "no device";
  case HIPMM_E_NOT_SUPPORTED: return "not supported";
  case HIPMM_E_HIP: return "HIP call failed";
  case HIPMM_E_INTERNAL: return "internal error";
  case HIPMM_STATUS_FORCE_32BIT: break;
  }
  return unknown_status;
}

/* ---- Allocations that failed ---- */

static atomic_uint_fast64_t failed_allocations;
static char first_failure[sizeof record.message];
static atomic_bool has_first_failure; /* it is written, and stays */

void error_count_allocation(void)
{
  if (atomic_fetch_add(&failed_allocations, 1)) return;
  error_copy_text(first_failure, sizeof first_failure, hipmm_last_error_message());
  atomic_store(&has_first_failure, true);
}

uint64_t error_failed_allocations(const char **first_out)
{
  *first_out = atomic_load(&has_first_failure) ? first_failure : NULL;
  return atomic_load(&failed_allocations);
}
