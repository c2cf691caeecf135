/* SPDX-License-Identifier: MIT */
/* interleave_device.c: see interleave_device.h. It is no part of what is explored: nothing here is a step. */
#include "interleave_device.h"
#include "interleave_memory.h"

#include <string.h>
#include <sys/mman.h>

enum { MOST_GIVEN = 64, MOST_FREED = 64 };

static const uint64_t FIRST_ADDRESS = 4 << 20; /* small, since trims go over a table of all addresses up to the last */

struct extent {
  uint64_t start, bytes; /* 0: none */
};

static struct extent given[MOST_GIVEN], live[DEVICE_BLOCKS];
static uint64_t next_address, held_bytes, capacity;
static int64_t host_bytes;

/* Host memory that a thread freed: nobody gets it again in the run. Left mapped, it would give the next runs other addresses,
 * and the search, which knows its steps by their addresses, would begin again and again. */
static struct extent freed[MOST_FREED];
static size_t n_freed;

/* ---- Services ---- */

static enum hipmm_status device_fail(const struct hipmm_services *services, enum hipmm_status status,
                                     const char *option, const char *format, ...)
{
  (void)services, (void)option, (void)format;
  return status;
}

static enum hipmm_status device_refuse(const struct hipmm_services *services, enum hipmm_status status,
                                       const char *text, uint64_t first, uint64_t second, uint64_t third)
{
  (void)services, (void)text, (void)first, (void)second, (void)third;
  return status;
}

static enum hipmm_status device_explain(const struct hipmm_services *services, enum hipmm_status status,
                                        const char *text, uint64_t first, uint64_t second, uint64_t third,
                                        uint64_t fourth)
{
  (void)services, (void)text, (void)first, (void)second, (void)third, (void)fourth;
  return status;
}

static enum hipmm_status device_refuse_hip(const struct hipmm_services *services, const char *call, int code,
                                           size_t bytes)
{
  (void)services, (void)call, (void)code, (void)bytes;
  return HIPMM_E_HIP;
}

static void device_log(const struct hipmm_services *services, enum hipmm_log_level level, const char *format, ...)
{
  (void)services, (void)level, (void)format;
}

static void *device_host_allocate(const struct hipmm_services *services, size_t bytes)
{
  (void)services;
  void *ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ptr == MAP_FAILED) return NULL;
  host_bytes += (int64_t)bytes;
  interleave_memory_make(ptr, bytes);
  return ptr;
}

static void device_host_free(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  (void)services;
  if (!ptr) return;
  host_bytes -= (int64_t)bytes;
  if (interleave_running == INTERLEAVE_NOBODY || n_freed == MOST_FREED) {
    munmap(ptr, bytes);
    return;
  }
  interleave_memory_free(ptr, bytes);
  freed[n_freed++] = (struct extent){(uintptr_t)ptr, bytes};
}

static int device_enter(const struct hipmm_services *services)
{
  (void)services;
  return 0;
}

static void device_leave(const struct hipmm_services *services, int previous)
{
  (void)services, (void)previous;
}

static enum hipmm_reclaim_level device_reclaim_level(const struct hipmm_services *services, enum hipmm_status status)
{
  (void)services, (void)status;
  return HIPMM_RECLAIM_ALL;
}

static enum hipmm_status device_check_wait(const struct hipmm_services *services)
{
  (void)services;
  return HIPMM_OK;
}

/* ---- A runtime ---- */

static int device_synchronize(void)
{
  return 0;
}

static int device_wait_stream(hipmm_stream_t stream)
{
  (void)stream;
  return 0;
}

static int device_make_event(hipmm_hip_event_t *event, unsigned flags)
{
  static char events[1024];
  static unsigned n;
  (void)flags;
  *event = (hipmm_hip_event_t)(void *)&events[n++ % sizeof events];
  return 0;
}

static int device_use_event(hipmm_hip_event_t event)
{
  (void)event;
  return 0;
}

bool device_is_busy;

static int device_query_event(hipmm_hip_event_t event)
{
  (void)event;
  return device_is_busy ? HIPMM_HIP_ERROR_NOT_READY : 0;
}

static int device_record(hipmm_hip_event_t event, hipmm_stream_t stream)
{
  (void)event, (void)stream;
  return 0;
}

static int device_wait_event(hipmm_stream_t stream, hipmm_hip_event_t event, unsigned flags)
{
  (void)stream, (void)event, (void)flags;
  return 0;
}

static int device_stream_id(hipmm_stream_t stream, unsigned long long *id)
{
  *id = (uintptr_t)stream;
  return 0;
}

static int device_no_number(hipmm_stream_t stream, int *number)
{
  (void)stream;
  *number = 0;
  return 0;
}

static const struct hipmm_hip device_hip = {.struct_size = sizeof device_hip,
                                            .DeviceSynchronize = device_synchronize,
                                            .StreamSynchronize = device_wait_stream,
                                            .StreamQuery = device_wait_stream,
                                            .StreamGetId = device_stream_id,
                                            .StreamGetDevice = device_no_number,
                                            .StreamIsCapturing = device_no_number,
                                            .EventCreateWithFlags = device_make_event,
                                            .EventDestroy = device_use_event,
                                            .EventQuery = device_query_event,
                                            .EventSynchronize = device_use_event,
                                            .EventRecord = device_record,
                                            .StreamWaitEvent = device_wait_event,
                                            .GetLastError = device_synchronize};

const struct hipmm_services device_services = {.struct_size = sizeof device_services,
                                               .name = "explored",
                                               .hip = &device_hip,
                                               .fail = device_fail,
                                               .refuse = device_refuse,
                                               .explain = device_explain,
                                               .refuse_hip = device_refuse_hip,
                                               .log = device_log,
                                               .host_allocate = device_host_allocate,
                                               .host_free = device_host_free,
                                               .enter_device = device_enter,
                                               .leave_device = device_leave,
                                               .reclaim_level = device_reclaim_level,
                                               .check_wait = device_check_wait,
                                               .tags_used = &(const uint32_t){0}};

/* ---- An upstream ---- */

static enum hipmm_status device_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                         void **ptr_out)
{
  (void)self, (void)alignment, (void)stream;
  for (struct extent *extent = given; extent < given + MOST_GIVEN && held_bytes + bytes <= capacity; extent++) {
    if (extent->bytes) continue;
    *extent = (struct extent){next_address, bytes};
    next_address += (bytes + (4 << 20)) >> 21 << 21;
    held_bytes += bytes;
    *ptr_out = (void *)(uintptr_t)extent->start;
    return HIPMM_OK;
  }
  return HIPMM_E_OUT_OF_MEMORY;
}

static enum hipmm_status device_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)self, (void)alignment, (void)stream;
  for (struct extent *extent = given; extent < given + MOST_GIVEN; extent++) {
    if (extent->bytes != bytes || extent->start != (uintptr_t)ptr) continue;
    for (unsigned i = 0; i < DEVICE_BLOCKS; i++)
      if (live[i].bytes && live[i].start >= extent->start && live[i].start < extent->start + bytes)
        interleave_fail("memory of a live block is given back");
    held_bytes -= bytes;
    extent->bytes = 0;
    return HIPMM_OK;
  }
  interleave_fail("what is given back was not got, or is given back twice");
  return HIPMM_E_POINTER;
}

static const struct hipmm_ops device_ops = {
    .struct_size = sizeof device_ops, .allocate = device_allocate, .deallocate = device_deallocate};
static struct hipmm_resource device_upstream = {.ops = &device_ops};

struct hipmm_resource *device_begin(uint64_t bytes)
{
  while (n_freed) {
    struct extent *extent = &freed[--n_freed];
    munmap((void *)(uintptr_t)extent->start, extent->bytes);
  }
  memset(given, 0, sizeof given);
  memset(live, 0, sizeof live);
  next_address = FIRST_ADDRESS;
  held_bytes = 0;
  host_bytes = 0;
  device_is_busy = false;
  capacity = bytes;
  return &device_upstream;
}

uint64_t device_held_bytes(void)
{
  return held_bytes;
}

int64_t device_host_bytes(void)
{
  return host_bytes;
}

/* ---- The program's blocks ---- */

bool device_keep(unsigned place, void *ptr, size_t bytes)
{
  uint64_t start = (uintptr_t)ptr, end = start + bytes;
  bool is_inside = false;
  for (unsigned i = 0; i < MOST_GIVEN; i++)
    is_inside |= given[i].bytes && start >= given[i].start && end <= given[i].start + given[i].bytes;
  for (unsigned i = 0; i < DEVICE_BLOCKS; i++)
    if (live[i].bytes && start < live[i].start + live[i].bytes && live[i].start < end) return false;
  live[place] = (struct extent){start, bytes};
  return is_inside;
}

void *device_take(unsigned place, size_t *bytes_out)
{
  struct extent extent = live[place];
  live[place].bytes = 0;
  *bytes_out = extent.bytes;
  return extent.bytes ? (void *)(uintptr_t)extent.start : NULL;
}

unsigned device_live_count(void)
{
  unsigned n = 0;
  for (unsigned i = 0; i < DEVICE_BLOCKS; i++) n += live[i].bytes > 0;
  return n;
}
