/* SPDX-License-Identifier: MIT */
/* error.c: the calling thread's error record. A failure costs a few stores on the allocation path; the message is
 * formatted when the caller asks for it. Nothing in this file may fail or allocate. */
#include "error.h"
#include "text.h"
#include "units.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char unknown_status[] = "unknown status";

static _Thread_local struct error_record record;

static void error_copy_text(char *to, size_t bytes, const char *from)
{
  snprintf(to, bytes, "%s", from ? from : "");
}

static void error_start_record(enum hipmm_status status, const char *resource)
{
  record.shown.status = status;
  record.shown.hip_code = 0;
  record.shown.line = record.shown.column = 0;
  record.shown.file[0] = record.shown.path[0] = record.shown.message[0] = '\0';
  error_copy_text(record.shown.resource, sizeof record.shown.resource, resource);
  record.unformatted = (struct error_unformatted){0};
  record.n_explanations = 0;
  record.is_reported = false;
}

enum hipmm_status error_set(enum hipmm_status status, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  char message[sizeof record.shown.message]; /* the arguments may lie in the record that is about to be overwritten */
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  error_start_record(status, NULL);
  text_make_plain(message);
  error_copy_text(record.shown.message, sizeof record.shown.message, message);
  return status;
}

enum hipmm_status error_set_located(const struct hipmm_error *error)
{
  error_start_record(HIPMM_OK, NULL);
  record.shown = *error;
  return (enum hipmm_status)record.shown.status;
}

enum hipmm_status error_refuse(enum hipmm_status status, const char *resource, const char *text, uint64_t first,
                               uint64_t second, uint64_t third)
{
  error_start_record(status, resource);
  record.unformatted = (struct error_unformatted){.text = text, .numbers = {first, second, third}};
  return status;
}

enum hipmm_status error_hip(enum hipmm_status status, const char *resource, const char *call, int code,
                            const char *code_name, size_t bytes)
{
  static const char sized[] = "{0:bytes}";
  static const char plain[] = "";
  error_start_record(status, resource);
  record.shown.hip_code = code;
  record.unformatted =
      (struct error_unformatted){bytes ? sized : plain, {bytes}, call, code_name ? code_name : "unknown error"};
  return status;
}

enum hipmm_status error_explain(enum hipmm_status status, const char *resource, const char *text,
                                const uint64_t numbers[ERROR_NUMBERS])
{
  bool is_refusal = record.is_reported || record.shown.status != (int32_t)status;
  if (is_refusal) error_start_record(status, resource);
  if (is_refusal)
    record.unformatted =
        (struct error_unformatted){.text = text, .numbers = {numbers[0], numbers[1], numbers[2], numbers[3]}};
  if (is_refusal || record.n_explanations == ERROR_MOST_EXPLANATIONS) return status;
  struct error_explanation *explanation = &record.explanations[record.n_explanations++];
  error_copy_text(explanation->resource, sizeof explanation->resource, resource);
  explanation->text = text;
  memcpy(explanation->numbers, numbers, sizeof explanation->numbers);
  return status;
}

enum hipmm_status error_of_op(enum hipmm_status status, const char *resource, const char *op)
{
  bool is_status = strcmp(hipmm_status_string(status), unknown_status) != 0;
  bool has_reason = !record.is_reported && record.shown.status == (int32_t)status &&
                    (record.unformatted.text || record.shown.message[0]);
  if (!is_status)
    status = error_set(HIPMM_E_INTERNAL, "%s: its %s returned %d, " ERROR_NO_STATUS, resource, op, (int)status);
  else if (!has_reason)
    error_set(status, "%s: its %s " ERROR_NO_REASON " (%s)", resource, op, hipmm_status_string(status));
  if (!is_status || !has_reason) error_copy_text(record.shown.resource, sizeof record.shown.resource, resource);
  record.is_reported = true;
  return status;
}

/* Appends as much of the text as fits. */
static void error_append(const char *text, size_t length)
{
  size_t used = strlen(record.shown.message), room = sizeof record.shown.message - 1 - used;
  if (length > room) length = room;
  memcpy(record.shown.message + used, text, length);
  record.shown.message[used + length] = '\0';
}

static void error_append_text(const char *text)
{
  error_append(text, strlen(text));
}

/* Appends the number that `field`, the inside of "{…}", names: "0", "0:bytes", "0:hex". */
static void error_append_number(const char *field, const uint64_t *numbers)
{
  char buffer[40];
  uint64_t number = field[0] >= '0' && field[0] < '0' + ERROR_NUMBERS ? numbers[field[0] - '0'] : 0;
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
  if (!record.unformatted.text) return;
  if (record.shown.resource[0]) {
    error_append_text(record.shown.resource);
    error_append_text(": ");
  }
  if (record.unformatted.hip_call) {
    error_append_text(record.unformatted.hip_call);
    if (record.unformatted.text[0]) error_append_text(" of ");
  }
  error_append_expanded(record.unformatted.text, record.unformatted.numbers);
  if (record.unformatted.hip_call) {
    error_append_text(" failed: ");
    error_append_text(record.unformatted.hip_name);
  }
  record.unformatted.text = NULL;
}

static void error_finish_record(void)
{
  error_finish_message();
  for (unsigned i = 0; i < record.n_explanations; i++) {
    error_append_text("; ");
    error_append_text(record.explanations[i].resource);
    error_append_text(": ");
    error_append_expanded(record.explanations[i].text, record.explanations[i].numbers);
  }
  record.n_explanations = 0;
  text_make_plain(record.shown.message);
}

struct error_record error_mark(void)
{
  return record;
}

void error_return_to_mark(const struct error_record *mark)
{
  record = *mark;
}

void error_keep_first(enum hipmm_status *first, struct error_record *mark, enum hipmm_status one)
{
  if (!one || *first) return;
  *first = one;
  *mark = error_mark();
}

bool error_is_out_of_device_memory(void)
{
  return record.shown.status == HIPMM_E_OUT_OF_MEMORY && record.shown.hip_code == HIPMM_HIP_ERROR_OUT_OF_MEMORY &&
         !record.is_reported;
}

void error_add(const char *text)
{
  error_finish_record();
  error_append_text(text);
}

enum hipmm_status error_locate(enum hipmm_status status, const char *resource, const char *file, const char *path)
{
  error_finish_record();
  const struct hipmm_error inner = record.shown;
  struct hipmm_error *shown = &record.shown;
  shown->status = status;
  error_copy_text(shown->resource, sizeof shown->resource, resource);
  error_copy_text(shown->file, sizeof shown->file, file);
  bool is_whole = snprintf(shown->path, sizeof shown->path, "%s%s", path, inner.path) >= 0 &&
                  snprintf(shown->message, sizeof shown->message, "%s%s%s%s%s", file, *file ? ": " : "", shown->path,
                           shown->path[0] ? ": " : "", inner.message) >= 0;
  if (!is_whole) *shown = inner;
  return (enum hipmm_status)shown->status;
}

enum hipmm_status error_blame_variable(const char *variable, enum hipmm_status status)
{
  char message[sizeof record.shown.message];
  error_finish_record();
  if (!strncmp(record.shown.message, "HIPMM_", strlen("HIPMM_"))) return status;
  memcpy(message, record.shown.message, sizeof message);
  bool is_whole = snprintf(record.shown.message, sizeof record.shown.message, "%s: %s", variable, message) >= 0;
  if (is_whole) record.shown.file[0] = '\0';
  return status;
}

void hipmm_last_error(struct hipmm_error *error_out)
{
  if (!error_out || error_out->struct_size < sizeof error_out->struct_size) return;
  error_finish_record();
  size_t bytes = error_out->struct_size < sizeof record.shown ? error_out->struct_size : sizeof record.shown;
  record.shown.struct_size = bytes;
  memcpy(error_out, &record.shown, bytes);
}

const char *hipmm_last_error_message(void)
{
  error_finish_record();
  return record.shown.message;
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
static char first_failure[sizeof record.shown.message];
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
