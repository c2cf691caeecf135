/* SPDX-License-Identifier: MIT */
/* execute.c: what each operation does when its queue comes to it. Called by queue.c alone. The memory is checked again,
 * since the application may have freed it after the call: a wrong reuse of memory is found in this way, and is a fault.
 *
 * Where the application cannot touch device memory, this process cannot either: copies and fills go by way of the files
 * that hold the memory. That is slower, and for programs that will run on a GPU. */
#include "../../../core/base/lock_order.h"
#include "internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Stores that an operation of `device` touched memory that it must not touch, and reports it on stderr. */
static void execute_fault(int device, enum software_call call, const struct software_span *span, const char *why)
{
  struct software_device *faulty = &software.devices[device];
  faulty->faults++;
  faulty->fault = hipErrorIllegalAddress;
  fprintf(stderr, "hipmm software device %d: fault: %s %s %zu bytes at %p: the memory %s\n", device,
          software_call_name(call), span->is_write ? "writes" : "reads", span->bytes, (void *)span->start, why);
}

static bool execute_pin(struct software_operation *operation, const struct software_span *span, int device)
{
  const char *why = software_span_pin(span, operation->sequence);
  if (why) execute_fault(device, operation->call, span, why);
  return !why;
}

/* Fills in doubling copies, since the start need not be aligned to the value. */
static void execute_fill_bytes(char *start, size_t bytes, uint32_t value, size_t value_bytes)
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

/* ---- By way of files ------------------------------------------------------------------------------------------- */

#define EXECUTE_CHUNK_BYTES ((size_t)1 << 20)

static const char execute_no_memory[] = "cannot be reached: out of host memory";
static const char execute_no_file[] = "cannot be reached: the program has closed the device's file that holds it";

/* Between memory and a buffer. Memory in no file of a device is memory of the host, and is accessed directly. Returns
 * why it failed, or NULL. */
static const char *execute_transfer(char *memory, char *buffer, size_t bytes, bool is_write)
{
  while (bytes > 0) {
    struct software_file_range range;
    uintptr_t at = (uintptr_t)memory;
    if (!software_heap_locate(at, &range) && !software_virtual_locate(at, &range)) {
      memmove(is_write ? memory : buffer, is_write ? buffer : memory, bytes);
      return NULL;
    }
    if (range.fd < 0) return execute_no_file;
    size_t count = bytes < range.bytes ? bytes : range.bytes;
    ssize_t done = is_write ? pwrite(range.fd, buffer, count, (off_t)range.offset)
                            : pread(range.fd, buffer, count, (off_t)range.offset);
    if (done <= 0) return execute_no_memory;
    memory += done;
    buffer += done;
    bytes -= (size_t)done;
  }
  return NULL;
}

/* By way of a buffer of the whole, since the two may overlap. */
static const char *execute_copy_by_file(const struct software_operation *operation)
{
  const char *why = NULL;
  size_t width = operation->width;
  char *buffer = operation->staged ? operation->staged : malloc(width * operation->rows);
  if (!buffer) return execute_no_memory;
  for (size_t row = 0; row < operation->rows && !why && !operation->staged; row++)
    why = execute_transfer(operation->from.start + row * operation->from_pitch, buffer + row * width, width, false);
  for (size_t row = 0; row < operation->rows && !why; row++)
    why = execute_transfer(operation->to.start + row * operation->to_pitch, buffer + row * width, width, true);
  if (!operation->staged) free(buffer);
  return why;
}

static const char *execute_fill_by_file(const struct software_operation *operation)
{
  size_t width = operation->width, chunk = width < EXECUTE_CHUNK_BYTES ? width : EXECUTE_CHUNK_BYTES;
  char *buffer = malloc(chunk);
  if (!buffer) return execute_no_memory;
  execute_fill_bytes(buffer, chunk, operation->value, operation->value_bytes);
  const char *why = NULL;
  for (size_t row = 0; row < operation->rows; row++) {
    char *start = operation->to.start + row * operation->to_pitch;
    for (size_t done = 0; done < width && !why; done += chunk)
      why = execute_transfer(start + done, buffer, width - done < chunk ? width - done : chunk, true);
  }
  free(buffer);
  return why;
}

/* ---- Operations ------------------------------------------------------------------------------------------------ */

static void execute_report(const struct software_operation *operation, const char *why, int device)
{
  if (why) execute_fault(device, operation->call, &operation->to, why);
}

static void execute_copy(struct software_operation *operation, int device)
{
  bool is_staged = operation->staged;
  if (!execute_pin(operation, &operation->to, device)) return;
  if (!is_staged && !execute_pin(operation, &operation->from, device)) {
    software_span_unpin(&operation->to);
    return;
  }
  if (software.config.no_host_access) {
    execute_report(operation, execute_copy_by_file(operation), device);
  } else {
    pthread_mutex_unlock(&software.lock);
    const char *from = is_staged ? operation->staged : operation->from.start;
    size_t from_pitch = is_staged ? operation->width : operation->from_pitch;
    for (size_t row = 0; row < operation->rows; row++)
      memmove(operation->to.start + row * operation->to_pitch, from + row * from_pitch, operation->width);
    pthread_mutex_lock(&software.lock);
  }
  software_span_unpin(&operation->to);
  if (!is_staged) software_span_unpin(&operation->from);
}

static void execute_fill(struct software_operation *operation, int device)
{
  if (!execute_pin(operation, &operation->to, device)) return;
  if (software.config.no_host_access) {
    execute_report(operation, execute_fill_by_file(operation), device);
  } else {
    pthread_mutex_unlock(&software.lock);
    for (size_t row = 0; row < operation->rows; row++)
      execute_fill_bytes(operation->to.start + row * operation->to_pitch, operation->width, operation->value,
                         operation->value_bytes);
    pthread_mutex_lock(&software.lock);
  }
  software_span_unpin(&operation->to);
}

static void execute_host(struct software_operation *operation, int device)
{
  hipError_t fault = software.devices[device].fault;
  software_watch_host_runs(operation);
  pthread_mutex_unlock(&software.lock);
  lock_order_enter_program();
  if (operation->function)
    operation->function(operation->argument);
  else
    operation->callback(operation->stream, fault, operation->argument);
  lock_order_leave_program();
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
  case SOFTWARE_WAIT:
  case SOFTWARE_EMPTY: break;
  case SOFTWARE_ALLOC_VISIBLE: operation->allocation->is_visible = true; break;
  case SOFTWARE_FREE_VISIBLE: software_pool_free_visible(operation); break;
  case SOFTWARE_GRAPH_ALLOC:
  case SOFTWARE_GRAPH_FREE: software_graph_memory_execute(operation); break;
  case SOFTWARE_GRAPH_END:
    software_marker_finish(operation->marker);
    software_program_unreference(operation->program);
    break;
  case SOFTWARE_PREFETCH:
    if (execute_pin(operation, &operation->to, device)) software_span_unpin(&operation->to);
    break;
  }
}
