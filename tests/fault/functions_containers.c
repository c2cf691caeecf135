/* SPDX-License-Identifier: MIT */
/* functions_containers.c: scenarios of streams, devices and containers; see functions.h. */
#include "functions.h"

#include <hipmm/buffer.h>
#include <hipmm/memory.h>
#include <hipmm/stream.h>
#include <string.h>

/* ---- Streams and devices ---- */

static void use_streams(const void *argument)
{
  hipmm_stream_t made = NULL, urgent = NULL;
  int least = 0, greatest = 0, done = 0, device = -1;
  (void)argument;
  SWEEP_OUT(made, hipmm_stream_create, 1, HIPMM_STREAM_NON_BLOCKING);
  SWEEP(hipmm_stream_priority_range, 0, &least, &greatest);
  SWEEP_OUT(urgent, hipmm_stream_create_with_priority, 0, HIPMM_STREAM_NON_BLOCKING, greatest);
  SWEEP(hipmm_stream_wait, 1, made, 0, stream);
  SWEEP(hipmm_stream_synchronize, 1, made);
  SWEEP_OUT(done, hipmm_stream_query, 1, made);
  SWEEP_OUT(device, hipmm_stream_device, made);
  expect(done == 1 && device == 1, "a stream tells something wrong");
  expect(!SWEEP_PLAIN(hipmm_stream_is_default, made), "a stream is a default stream");
  expect(!SWEEP_PLAIN(hipmm_stream_is_per_thread_default, made), "a stream is the thread's");
  SWEEP(hipmm_stream_retain, 0, urgent);
  SWEEP(hipmm_stream_retire, 0, urgent);
  SWEEP(hipmm_stream_destroy, urgent);
  SWEEP(hipmm_stream_destroy, made);
}

static void use_events(const void *argument)
{
  struct hipmm_stream_event *event = NULL;
  struct hipmm_stream_pool *pool = NULL;
  hipmm_stream_t first = NULL, third = NULL;
  int done = 0;
  (void)argument;
  SWEEP_OUT(event, hipmm_stream_event_create, 0);
  SWEEP(hipmm_stream_event_record, event, stream);
  SWEEP(hipmm_stream_event_wait, event, 1, NULL);
  SWEEP(hipmm_stream_event_synchronize, event);
  SWEEP_OUT(done, hipmm_stream_event_query, event);
  expect(done == 1, "an event has not come");
  SWEEP(hipmm_stream_event_destroy, event);
  SWEEP_OUT(pool, hipmm_stream_pool_create, 1, 3, HIPMM_STREAM_NON_BLOCKING);
  SWEEP_OUT(first, hipmm_stream_pool_get, pool);
  SWEEP_OUT(third, hipmm_stream_pool_get_at, pool, 2);
  expect(SWEEP_PLAIN(hipmm_stream_pool_size, pool) == 3, "a pool of streams has another size");
  expect(SWEEP_PLAIN(hipmm_stream_pool_device, pool) == 1, "a pool of streams has another device");
  SWEEP(hipmm_stream_pool_destroy, pool);
}

static void use_devices(const void *argument)
{
  int count = 0, current = -1, previous = -1, version = 0, driver = 0, attribute = 0;
  size_t free_bytes = 0, total_bytes = 0, percent = 0;
  char name[100] = "";
  (void)argument;
  SWEEP_OUT_ONLY(count, hipmm_device_count);
  SWEEP(hipmm_device_set, 1);
  SWEEP_OUT_ONLY(current, hipmm_device_current);
  SWEEP_OUT(previous, hipmm_device_enter, 0);
  SWEEP(hipmm_device_leave, previous);
  SWEEP(hipmm_device_set, 0);
  SWEEP(hipmm_device_memory, 0, &free_bytes, &total_bytes);
  SWEEP_OUT(percent, hipmm_device_percent_of_free_memory, 0, 50);
  SWEEP(hipmm_device_name, 0, sizeof name, name);
  SWEEP_OUT(attribute, hipmm_device_attribute, 0, 1);
  SWEEP_OUT_ONLY(version, hipmm_runtime_version);
  SWEEP_OUT_ONLY(driver, hipmm_driver_version);
  expect(count == 2 && current == 1 && previous == 1 && free_bytes && free_bytes <= total_bytes &&
             percent <= free_bytes && *name && version && driver,
         "a device tells something wrong");
}

/* ---- Containers ---- */

static void use_buffers(const void *argument)
{
  char site[100];
  static unsigned char source[BYTES], target[BYTES];
  struct hipmm_buffer *buffer = NULL, *empty = NULL, *copy = NULL, *adopted = NULL;
  struct hipmm_memory memory = {.struct_size = sizeof memory};
  (void)argument;
  memset(source, 9, BYTES);
  SWEEP_OUT(empty, hipmm_buffer_create, NULL, 100, stream);
  SWEEP_OUT(buffer, hipmm_buffer_create_from, NULL, source, BYTES, stream);
  SWEEP_OUT(copy, hipmm_buffer_copy, buffer, NULL, stream);
  SWEEP(hipmm_buffer_resize, copy, 3 * BYTES, stream);
  SWEEP(hipmm_buffer_resize, copy, BYTES, stream);
  SWEEP(hipmm_buffer_reserve, empty, 1000, stream);
  SWEEP(hipmm_buffer_shrink_to_fit, copy, stream);
  SWEEP(hipmm_buffer_read, copy, 0, BYTES, stream, target);
  expect(holds(target, BYTES, 9), "a copied buffer has other data");
  SWEEP(hipmm_buffer_fill, buffer, 0, 5, BYTES, stream);
  SWEEP(hipmm_buffer_write, copy, 10, source, 20, stream);
  SWEEP(hipmm_buffer_write_async, copy, 10, source, 20, stream);
  SWEEP(hipmm_buffer_read_async, buffer, 0, BYTES, stream, target);
  SWEEP(hipmm_stream_synchronize, 0, stream);
  expect(holds(target, BYTES, 5), "a filled buffer has other data");
  SWEEP(hipmm_buffer_set_stream, copy, NULL);
  expect(SWEEP_PLAIN(hipmm_buffer_bytes, copy) == BYTES && SWEEP_PLAIN(hipmm_buffer_data, copy) &&
             SWEEP_PLAIN(hipmm_buffer_capacity_bytes, copy) >= BYTES && !SWEEP_PLAIN(hipmm_buffer_stream, copy) &&
             SWEEP_PLAIN(hipmm_buffer_device, copy) == 0 && SWEEP_PLAIN(hipmm_buffer_resource, copy) == resource,
         "a buffer tells something wrong");
  SWEEP_OUT(memory, hipmm_buffer_release, copy);
  SWEEP_OUT(adopted, hipmm_buffer_adopt, &memory);
  SWEEP(hipmm_buffer_destroy, adopted);
  SWEEP(hipmm_buffer_destroy, empty);
  if (!SWEEP_PLAIN(hipmm_buffer_try_destroy, buffer)) SWEEP(hipmm_buffer_destroy, buffer);
  buffer = NULL;
  SWEEP_PLAIN(hipmm_call_site, 100, site, sizeof site);
  expect(!SWEEP_PLAIN(hipmm_buffer_try_create, NULL, 100, NULL, &buffer) == !buffer, "a call is half served");
  SWEEP_PLAIN(hipmm_call_site, 0, NULL, 0);
  if (buffer) SWEEP(hipmm_buffer_destroy, buffer);
}

static void use_host_buffers(const void *argument)
{
  static unsigned char source[BYTES];
  struct hipmm_host_buffer *buffer = NULL, *empty = NULL;
  (void)argument;
  memset(source, 8, BYTES);
  SWEEP_OUT(empty, hipmm_host_buffer_create, NULL, 100, stream);
  SWEEP_OUT(buffer, hipmm_host_buffer_create_from, NULL, source, BYTES, stream);
  SWEEP(hipmm_host_buffer_resize, buffer, 4 * BYTES, stream);
  SWEEP(hipmm_host_buffer_reserve, empty, 1000, stream);
  SWEEP(hipmm_host_buffer_shrink_to_fit, empty, stream);
  expect(holds(SWEEP_PLAIN(hipmm_host_buffer_data, buffer), BYTES, 8), "a host buffer has other data");
  SWEEP(hipmm_host_buffer_set_stream, empty, NULL);
  expect(SWEEP_PLAIN(hipmm_host_buffer_bytes, empty) == 100 &&
             SWEEP_PLAIN(hipmm_host_buffer_capacity_bytes, empty) == 100 &&
             !SWEEP_PLAIN(hipmm_host_buffer_stream, empty) && SWEEP_PLAIN(hipmm_host_buffer_device, empty) == 0 &&
             SWEEP_PLAIN(hipmm_host_buffer_resource, empty),
         "a host buffer tells something wrong");
  SWEEP(hipmm_host_buffer_destroy, empty);
  SWEEP(hipmm_host_buffer_destroy, buffer);
}

/* ---- Scenarios ---- */

const struct sweep_scenario container_scenarios[] = {
    {.name = "streams", .begin = begin, .run = use_streams, .end = end},
    {.name = "events", .begin = begin, .run = use_events, .end = end},
    {.name = "devices", .begin = begin, .run = use_devices, .end = end},
    {.name = "buffers", .begin = begin, .run = use_buffers, .end = end},
    {.name = "host buffers", .begin = begin, .run = use_host_buffers, .end = end},
};

const size_t n_container_scenarios = sizeof container_scenarios / sizeof *container_scenarios;
