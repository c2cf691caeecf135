/* SPDX-License-Identifier: MIT */
/* services.c: the functions behind struct hipmm_services. Each finds the instance that it serves from the table's own
 * address, so plugins need no handle of the core's. */
#include "services.h"
#include "error.h"
#include "hip.h"
#include "ledger.h"
#include "log.h"
#include "pages.h"
#include "stack.h"

#include <stdio.h>

static struct instance *instance_of(const struct hipmm_services *services)
{
  return (struct instance *)((char *)(uintptr_t)services - offsetof(struct instance, services));
}

/* Names the option in the thread's record: the stack builder, which knows the graph, adds file and path. */
static enum hipmm_status fail(const struct hipmm_services *services, enum hipmm_status status, const char *option,
                              const char *format, ...)
{
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  struct hipmm_error error = {.struct_size = sizeof error, .status = status};
  snprintf(error.resource, sizeof error.resource, "%s", services->name);
  if (option) snprintf(error.path, sizeof error.path, "/%s", option);
  snprintf(error.message, sizeof error.message, "%s: %s", services->name, message);
  return error_set_located(&error);
}

static enum hipmm_status refuse(const struct hipmm_services *services, enum hipmm_status status, const char *text,
                                uint64_t first, uint64_t second, uint64_t third)
{
  return error_refuse(status, services->name, text, first, second, third);
}

static enum hipmm_status explain(const struct hipmm_services *services, enum hipmm_status status, const char *text,
                                 uint64_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
  return error_explain(status, services->name, text, (const uint64_t[]){first, second, third, fourth});
}

static enum hipmm_status refuse_hip(const struct hipmm_services *services, const char *call, int code, size_t bytes)
{
  services->hip->GetLastError();
  return error_hip(hip_status(code), services->name, call, code, services->hip->GetErrorName(code), bytes);
}

static void write_log(const struct hipmm_services *services, enum hipmm_log_level level, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  log_line_arguments(level, services->name, format, arguments);
  va_end(arguments);
}

static void *host_allocate(const struct hipmm_services *services, size_t bytes)
{
  (void)services;
  return pages_allocate(bytes);
}

static void host_free(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  (void)services;
  pages_free(ptr, bytes);
}

static int enter_device(const struct hipmm_services *services)
{
  return hip_enter_device(services->device);
}

static void leave_device(const struct hipmm_services *services, int previous)
{
  hip_leave_device(services->device, previous);
}

static void count_held(const struct hipmm_services *services, int64_t bytes)
{
  stack_count_held(instance_of(services)->stack, bytes);
}

static enum hipmm_status hold(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  if (!ledger_insert(&instance_of(services)->ledger, ptr, bytes))
    return refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to note a block of {0:bytes}", bytes, 0, 0);
  count_held(services, (int64_t)bytes);
  return HIPMM_OK;
}

static enum hipmm_status release(const struct hipmm_services *services, void *ptr, size_t bytes, size_t *bytes_out)
{
  struct hipmm_block block;
  enum hipmm_status status = ledger_remove(&instance_of(services)->ledger, ptr, bytes, &block);
  if (status == HIPMM_E_POINTER)
    return refuse(services, status, "{0:hex} is not allocated here: it is foreign, or was freed before", (uintptr_t)ptr,
                  0, 0);
  if (status == HIPMM_E_SIZE)
    return refuse(services, status, "{0:hex} was allocated with {1} bytes and cannot be freed with {2}", (uintptr_t)ptr,
                  block.bytes, bytes);
  count_held(services, -(int64_t)block.bytes);
  *bytes_out = block.bytes;
  return HIPMM_OK;
}

static enum hipmm_status held(const struct hipmm_services *services, const void *ptr, struct hipmm_block *block_out)
{
  if (ledger_find(&instance_of(services)->ledger, ptr, block_out)) return HIPMM_OK;
  return refuse(services, HIPMM_E_POINTER, "{0:hex} is not allocated here", (uintptr_t)ptr, 0, 0);
}

static enum hipmm_status release_next(const struct hipmm_services *services, struct hipmm_block *block_out)
{
  if (!ledger_remove_any(&instance_of(services)->ledger, block_out)) return HIPMM_E_POINTER;
  count_held(services, -(int64_t)block_out->bytes);
  return HIPMM_OK;
}

static enum hipmm_status find_below(const struct hipmm_services *services, const void *ptr,
                                    struct hipmm_block *block_out)
{
  enum hipmm_status status = instance_find_below(instance_of(services), ptr, block_out);
  if (status == HIPMM_E_NOT_SUPPORTED)
    return refuse(services, status, "no resource below knows the size of {0:hex}; free it with its size",
                  (uintptr_t)ptr, 0, 0);
  return status;
}

struct hipmm_services services_of_runtime(const char *name)
{
  return (struct hipmm_services){.struct_size = sizeof(struct hipmm_services),
                                 .name = name,
                                 .device = -1,
                                 .fail = fail,
                                 .refuse = refuse,
                                 .log = write_log,
                                 .host_allocate = host_allocate,
                                 .host_free = host_free};
}

void services_fill(struct hipmm_services *services, const char *name, int device, const struct hipmm_hip *hip)
{
  *services = services_of_runtime(name);
  services->device = device;
  services->hip = hip;
  services->refuse_hip = refuse_hip;
  services->enter_device = enter_device;
  services->leave_device = leave_device;
  services->hold = hold;
  services->release = release;
  services->held = held;
  services->release_next = release_next;
  services->count_held = count_held;
  services->find_below = find_below;
  services->explain = explain;
}
