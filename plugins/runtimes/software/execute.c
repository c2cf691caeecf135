/* SPDX-License-Identifier: MIT */
/* execute.c: what each operation does when its turn has come. Called by queue.c alone. It checks memory again, since
 * the application may have freed it after the call: that is the fault by which a wrong reuse is caught. */
#include "internal.h"
#include <string.h>

static bool execute_enter(struct software_operation *operation, const struct software_span *span, int device)
{
  const char *why = software_span_enter(span, operation->sequence);
  if (why) software_device_fault(device, operation->call, span, why);
  return !why;
}

static void execute_closed(const struct software_operation *operation, const char *why, int device)
{
  if (why) software_device_fault(device, operation->call, &operation->to, why);
}

static void execute_copy(struct software_operation *operation, int device)
{
  bool is_staged = operation->staged;
  if (!execute_enter(operation, &operation->to, device)) return;
  if (!is_staged && !execute_enter(operation, &operation->from, device)) {
    software_span_exit(&operation->to);
    return;
  }
  if (software.config.closed) {
    execute_closed(operation, software_closed_copy(operation), device);
  } else {
    pthread_mutex_unlock(&software.lock);
    memmove(operation->to.start, is_staged ? operation->staged : operation->from.start, operation->to.bytes);
    pthread_mutex_lock(&software.lock);
  }
  software_span_exit(&operation->to);
  if (!is_staged) software_span_exit(&operation->from);
}

/* Fills in doubling copies, since the start need not be aligned to the value. */
void software_fill(char *start, size_t bytes, uint32_t value, size_t value_bytes)
{
  if (value_bytes == 1) {
    memset(start, (int)value, bytes);
    return;
  }
  memcpy(start, &value, value_bytes);
  for (size_t done = value_bytes; done < bytes;) {
    size_t next = bytes - done < done ? bytes - done : done;
    memcpy(start + done, start, next);
    done += next;
  }
}

static void execute_fill(struct software_operation *operation, int device)
{
  if (!execute_enter(operation, &operation->to, device)) return;
  if (software.config.closed) {
    execute_closed(operation, software_closed_fill(operation), device);
  } else {
    pthread_mutex_unlock(&software.lock);
    software_fill(operation->to.start, operation->to.bytes, operation->value, operation->value_bytes);
    pthread_mutex_lock(&software.lock);
  }
  software_span_exit(&operation->to);
}

static void execute_host(struct software_operation *operation, int device)
{
  hipError_t fault = software.devices[device].fault;
  pthread_mutex_unlock(&software.lock);
  if (operation->function)
    operation->function(operation->argument);
  else
    operation->callback(operation->stream, fault, operation->argument);
  pthread_mutex_lock(&software.lock);
}

void software_operation_execute(struct software_operation *operation, int device)
{
  switch (operation->kind) {
  case SOFTWARE_COPY:
    execute_copy(operation, device);
    if (operation->marker) software_marker_finish(operation->marker);
    break;
  case SOFTWARE_FILL: execute_fill(operation, device); break;
  case SOFTWARE_HOST: execute_host(operation, device); break;
  case SOFTWARE_RECORD: software_marker_finish(operation->marker); break;
  case SOFTWARE_WAIT: break;
  case SOFTWARE_BIRTH: operation->allocation->born = true; break;
  case SOFTWARE_DEATH: software_pool_bury(operation); break;
  case SOFTWARE_TOUCH:
    if (execute_enter(operation, &operation->to, device)) software_span_exit(&operation->to);
    break;
  }
}
