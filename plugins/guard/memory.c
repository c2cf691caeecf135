/* SPDX-License-Identifier: MIT */
/* memory.c: see guard.h. Copies name no direction: the runtime knows where each side is. */
#include "guard.h"

#include <string.h>

enum hipmm_status memory_open(struct memory *memory, const struct hipmm_services *services)
{
  const struct hipmm_hip *hip = services->hip;
  *memory = (struct memory){.services = services};
  if (!hip->HostMalloc || !hip->HostFree)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "this runtime does not export hipHostMalloc");
  int code = hip->StreamCreateWithFlags(&memory->stream, HIPMM_HIP_STREAM_NON_BLOCKING);
  if (code) return services->refuse_hip(services, "hipStreamCreateWithFlags", code, 0);
  void *buffers = NULL;
  code = hip->HostMalloc(&buffers, sizeof *memory->buffers, HIPMM_HIP_HOST_MALLOC_PORTABLE);
  if (code) {
    enum hipmm_status status = services->refuse_hip(services, "hipHostMalloc", code, sizeof *memory->buffers);
    hip->StreamDestroy(memory->stream);
    return status;
  }
  memory->buffers = buffers;
  memset(memory->buffers->zone, MEMORY_ZONE, sizeof memory->buffers->zone);
  memset(memory->buffers->poison, MEMORY_POISON, sizeof memory->buffers->poison);
  return HIPMM_OK;
}

/* Each failed call is repeated once, since nothing can repeat it later. */
void memory_close(struct memory *memory)
{
  const struct hipmm_hip *hip = memory->services->hip;
  if (memory_wait(memory)) memory_wait(memory);
  if (hip->HostFree(memory->buffers) && hip->HostFree(memory->buffers)) hip->GetLastError();
  if (hip->StreamDestroy(memory->stream) && hip->StreamDestroy(memory->stream)) hip->GetLastError();
}

/* ---- Filling ---- */

static enum hipmm_status memory_copy(struct memory *memory, void *to, const void *from, size_t bytes,
                                     hipmm_stream_t stream)
{
  int code = memory->services->hip->MemcpyAsync(to, from, bytes, HIPMM_HIP_MEMCPY_DEFAULT, stream);
  return code ? memory->services->refuse_hip(memory->services, "hipMemcpyAsync", code, bytes) : HIPMM_OK;
}

static enum hipmm_status memory_fill_by_copies(struct memory *memory, char *ptr, size_t bytes,
                                               enum memory_pattern pattern, hipmm_stream_t stream)
{
  const unsigned char *from = pattern == MEMORY_ZONE ? memory->buffers->zone : memory->buffers->poison;
  enum hipmm_status status = HIPMM_OK;
  for (size_t done = 0; !status && done < bytes;) {
    size_t part = bytes - done < sizeof memory->buffers->zone ? bytes - done : sizeof memory->buffers->zone;
    status = memory_copy(memory, ptr + done, from, part, stream);
    done += part;
  }
  return status;
}

/* A device refuses to fill pageable host memory unless it can access all of it. */
enum hipmm_status memory_fill(struct memory *memory, void *ptr, size_t bytes, enum memory_pattern pattern,
                              hipmm_stream_t stream)
{
  const struct hipmm_hip *hip = memory->services->hip;
  if (!bytes) return HIPMM_OK;
  int code = hip->MemsetAsync(ptr, (int)pattern, bytes, stream);
  if (!code) return HIPMM_OK;
  if (code != HIPMM_HIP_ERROR_INVALID_VALUE)
    return memory->services->refuse_hip(memory->services, "hipMemsetAsync", code, bytes);
  hip->GetLastError();
  return memory_fill_by_copies(memory, ptr, bytes, pattern, stream);
}

/* ---- Comparing ---- */

static bool memory_is_filled(const unsigned char *data, size_t bytes, enum memory_pattern pattern)
{
  return data[0] == (unsigned char)pattern && !memcmp(data, data + 1, bytes - 1);
}

static void memory_scan(const unsigned char *data, size_t bytes, enum memory_pattern pattern, size_t offset,
                        struct memory_damage *damage)
{
  if (memory_is_filled(data, bytes, pattern)) return;
  for (size_t i = 0; i < bytes; i++) {
    if (data[i] == (unsigned char)pattern) continue;
    if (!damage->count++) damage->first = offset + i;
    damage->last = offset + i;
  }
}

/* Waits for fills first, since a runtime may read pageable host memory at the time of the call. */
enum hipmm_status memory_compare(struct memory *memory, const void *ptr, size_t bytes, enum memory_pattern pattern,
                                 struct memory_damage *damage_out)
{
  unsigned char *data = memory->buffers->read;
  struct memory_damage damage = {0};
  enum hipmm_status status = memory_wait(memory);
  for (size_t done = 0; !status && done < bytes;) {
    size_t part = bytes - done < sizeof memory->buffers->read ? bytes - done : sizeof memory->buffers->read;
    status = memory_copy(memory, data, (const char *)ptr + done, part, memory->stream);
    if (!status) status = memory_wait(memory);
    if (!status) memory_scan(data, part, pattern, done, &damage);
    done += part;
  }
  if (!status) *damage_out = damage;
  return status;
}

/* ---- Waiting ---- */

enum hipmm_status memory_wait(struct memory *memory)
{
  int code = memory->services->hip->StreamSynchronize(memory->stream);
  return code ? memory->services->refuse_hip(memory->services, "hipStreamSynchronize", code, 0) : HIPMM_OK;
}

enum hipmm_status memory_wait_for_device(struct memory *memory)
{
  int code = memory->services->hip->DeviceSynchronize();
  return code ? memory->services->refuse_hip(memory->services, "hipDeviceSynchronize", code, 0) : HIPMM_OK;
}

enum hipmm_status memory_wait_for_stream(struct memory *memory, hipmm_stream_t stream)
{
  if (!memory->services->hip->StreamSynchronize(stream)) return HIPMM_OK;
  memory->services->hip->GetLastError();
  return memory_wait_for_device(memory);
}

/* ---- Marks ---- */

enum hipmm_status memory_mark(struct memory *memory, hipmm_stream_t stream, hipmm_hip_event_t *event_out)
{
  const struct hipmm_services *services = memory->services;
  hipmm_hip_event_t event = NULL;
  int code = services->hip->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING);
  if (code) return services->refuse_hip(services, "hipEventCreateWithFlags", code, 0);
  code = services->hip->EventRecord(event, stream);
  if (!code) {
    *event_out = event;
    return HIPMM_OK;
  }
  enum hipmm_status status = services->refuse_hip(services, "hipEventRecord", code, 0);
  memory_drop_mark(memory, event);
  return status;
}

enum hipmm_status memory_wait_for_mark(struct memory *memory, hipmm_hip_event_t event)
{
  int code = event ? memory->services->hip->EventSynchronize(event) : 0;
  return code ? memory->services->refuse_hip(memory->services, "hipEventSynchronize", code, 0) : HIPMM_OK;
}

/* A failed call is repeated once, since nothing can repeat it later. */
void memory_drop_mark(struct memory *memory, hipmm_hip_event_t event)
{
  const struct hipmm_hip *hip = memory->services->hip;
  if (event && hip->EventDestroy(event) && hip->EventDestroy(event)) hip->GetLastError();
}
