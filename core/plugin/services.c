/* SPDX-License-Identifier: MIT */
/* services.c: the functions of struct hipmm_services that need no resource: errors, the log, host memory. Called by
 * runtimes and resources. The functions for resources alone are in instance_services.c. */
#include "../base/call_site.h"
#include "../base/error.h"
#include "../base/log.h"
#include "../base/os_memory.h"
#include "../base/tag.h"
#include "../base/text.h"
#include "plugin.h"

#include <stdio.h>

static _Thread_local bool keeps_reason;

bool services_keep_reason(bool keeps)
{
  bool before = keeps_reason;
  keeps_reason = keeps;
  return before;
}

/* Appends the record of a failure on the way, if it is one. Returns its HIP code. */
static int services_append_reason(char *message, size_t bytes)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  const char *reason = keeps_reason ? hipmm_last_error_message() : "";
  if (!*reason) return 0;
  text_append(message, bytes, " (%s)", reason);
  hipmm_last_error(&error);
  return error.hip_code;
}

/* Writes the option's path; the stack builder, which knows the graph, adds the file and the resource's path. */
static enum hipmm_status services_fail(const struct hipmm_services *services, enum hipmm_status status,
                                       const char *option, const char *format, ...)
{
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  struct hipmm_error error = {.struct_size = sizeof error, .status = status};
  error.hip_code = services_append_reason(message, sizeof message);
  snprintf(error.resource, sizeof error.resource, "%s", services->name);
  if (option) snprintf(error.path, sizeof error.path, "/%s", option);
  snprintf(error.message, sizeof error.message, "%s: %s", services->name, message);
  return error_set_located(&error);
}

static enum hipmm_status services_refuse(const struct hipmm_services *services, enum hipmm_status status,
                                         const char *text, uint64_t first, uint64_t second, uint64_t third)
{
  return error_refuse(status, services->name, text, first, second, third);
}

static void services_write_log(const struct hipmm_services *services, enum hipmm_log_level level, const char *format,
                               ...)
{
  va_list arguments;
  va_start(arguments, format);
  log_line_arguments(level, services->name, format, arguments);
  va_end(arguments);
}

struct hipmm_services services_plain(const char *name)
{
  return (struct hipmm_services){.struct_size = sizeof(struct hipmm_services),
                                 .name = name,
                                 .device = -1,
                                 .fail = services_fail,
                                 .refuse = services_refuse,
                                 .log = services_write_log,
                                 .host_allocate = os_memory_services.host_allocate,
                                 .host_free = os_memory_services.host_free,
                                 .call_site = call_site_take,
                                 .tags = tag_lines,
                                 .tags_used = &tag_is_used};
}
