/* SPDX-License-Identifier: MIT */
/* Sweeps (sweep.h) over every public function: each HIP call, allocation of host memory and call on a file that it
 * makes fails once. A function that no scenario calls fails the test. */
#include "../../core/runtime/hip.h"
#include "../abi/functions.h"
#include "../support/support.h"
#include "sweep.h"

#include <fcntl.h>
#include <hipmm/buffer.h>
#include <hipmm/inspect.h>
#include <hipmm/memory.h>
#include <hipmm/share.h>
#include <hipmm/stream.h>
#include <hipmm/torch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 5000, BYSTANDERS = 3 };

#define RUNTIME \
  "\"runtime\": {\"type\": \"software\", \"devices\": 2, \"memory\": \"256MiB\", \"granularity\": \"128KiB\"}"

static const char graph[] =
    "{" RUNTIME ", \"resources\": {"
    "\"memory\": {\"type\": \"device\", \"handle_type\": \"posix_fd\"}, "
    "\"pool\": {\"type\": \"pool\", \"upstream\": \"memory\", \"growth\": \"mapped\"}, "
    "\"shared\": {\"type\": \"async\", \"handle_type\": \"posix_fd\"}, "
    "\"pages\": {\"type\": \"host\"}, "
    "\"tracked\": {\"type\": \"tracking\", \"upstream\": \"pool\"}, "
    "\"main\": {\"type\": \"statistics\", \"upstream\": \"tracked\"}}, \"devices\": {\"default\": \"main\"}}";

static hipmm_stream_t stream; /* of device 0, retained */
static struct hipmm_resource *resource;
static unsigned char *bystanders[BYSTANDERS]; /* live blocks that no function is to touch */
static char *folder, *graph_file, *log_file;

/* ---- Before and after ---- */

static void begin_without_a_stack(const void *argument)
{
  (void)argument;
  resource = NULL;
  stream = NULL;
  memset(bystanders, 0, sizeof bystanders);
  if (hipmm_init_from_string(graph)) sweep_note("hipmm_init_from_string: %s", hipmm_last_error_message());
}

static void begin(const void *argument)
{
  begin_without_a_stack(argument);
  if (hipmm_resource_get_current(&resource) || hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream))
    sweep_note("begin: %s", hipmm_last_error_message());
  for (int i = 0; i < BYSTANDERS; i++) {
    void *block = NULL;
    if (hipmm_allocate_sync(resource, BYTES << 3 * i, &block)) sweep_note("begin: %s", hipmm_last_error_message());
    bystanders[i] = block;
    if (block) memset(block, 0x50 + i, BYTES);
  }
}

static void end(const void *argument)
{
  (void)argument;
  for (int i = 0; i < BYSTANDERS && bystanders[i]; i++) {
    for (size_t j = 0; j < BYTES; j++)
      if (bystanders[i][j] != 0x50 + i) sweep_note("byte %zu of live block %d was changed", j, i);
    if (hipmm_deallocate_sync(resource, bystanders[i], BYTES << 3 * i)) sweep_note("live block %d is gone", i);
  }
  if (stream && hipmm_stream_destroy(stream)) sweep_note("end: %s", hipmm_last_error_message());
  hipmm_resource_release(resource);
  hipmm_finalize();
}

static void expect(bool is_so, const char *what)
{
  if (!is_so) sweep_note("%s", what);
}

/* ---- Initialisation ---- */

static void initialise(const void *argument)
{
  (void)argument;
  SWEEP(hipmm_init_from_string, graph);
  expect(SWEEP_PLAIN(hipmm_is_initialized) == 1, "hipmm is not initialised");
  SWEEP(hipmm_init_if_needed);
  SWEEP(hipmm_finalize);
  SWEEP(hipmm_finalize);
  SWEEP(hipmm_init_from_file, graph_file);
  SWEEP(hipmm_finalize);
  SWEEP(hipmm_init);
  SWEEP_OUT(resource, hipmm_resource_get_for_device, 1);
  hipmm_resource_release(resource);
  SWEEP(hipmm_finalize);
}

static void build_beside(const void *argument)
{
  struct hipmm_resource *first = NULL, *second = NULL, *inner = NULL;
  void *block = NULL;
  (void)argument;
  SWEEP_OUT(first, hipmm_stack_build_from_string, 0, "mine", graph);
  SWEEP_OUT(second, hipmm_stack_build_from_file, 1, NULL, graph_file);
  SWEEP_OUT(inner, hipmm_stack_get_by_name, first, "pool");
  SWEEP_OUT(block, hipmm_allocate, first, BYTES, NULL);
  SWEEP(hipmm_deallocate, first, block, BYTES, NULL);
  hipmm_resource_release(inner);
  hipmm_resource_release(first);
  hipmm_resource_release(second);
}

/* ---- Blocks ---- */

static void use_blocks(const void *argument)
{
  void *block = NULL, *aligned = NULL, *zeroed = NULL, *ready = NULL, *asked = NULL, *batch[3] = {NULL, NULL, NULL};
  const size_t sizes[] = {100, 5000, 700000};
  struct hipmm_request request = {
      .struct_size = sizeof request, .bytes = 300, .alignment = 512, .flags = HIPMM_ALLOCATE_ZEROED};
  (void)argument;
  SWEEP_OUT(block, hipmm_allocate, NULL, 1 << 20, stream);
  SWEEP_OUT(aligned, hipmm_allocate_aligned, NULL, 1000, 4096, stream);
  SWEEP_OUT(zeroed, hipmm_allocate_zeroed, NULL, 4000, stream);
  SWEEP_OUT(ready, hipmm_allocate_sync, NULL, 6000);
  SWEEP_OUT(asked, hipmm_allocate_ex, &request);
  SWEEP(hipmm_allocate_batch, NULL, 3, sizes, stream, batch);
  SWEEP_OUT(block, hipmm_reallocate, NULL, block, 1 << 20, 3 << 20, stream);
  SWEEP(hipmm_deallocate_batch, NULL, 3, batch, sizes, stream);
  SWEEP(hipmm_deallocate_sync, NULL, ready, 0);
  SWEEP(hipmm_deallocate_aligned, NULL, aligned, 1000, 4096, stream);
  SWEEP(hipmm_deallocate, NULL, zeroed, 4000, stream);
  SWEEP(hipmm_deallocate, NULL, asked, 300, NULL);
  SWEEP(hipmm_deallocate, NULL, block, 3 << 20, stream);
  SWEEP(hipmm_resource_trim, NULL, 0);
  SWEEP(hipmm_device_trim, 0, 0);
  SWEEP(hipmm_trim, 0);
}

/* ---- Resources ---- */

static void release_user_data(void *data)
{
  *(int *)data += 1;
}

static void ask_resources(const void *argument)
{
  struct hipmm_resource *current = NULL, *named = NULL, *upstream = NULL;
  int64_t value = 0;
  size_t count = 0, now = 0, peak = 0;
  unsigned access = 0;
  void *data = NULL, *handle = NULL;
  int released = 0;
  (void)argument;
  SWEEP_OUT_ONLY(current, hipmm_resource_get_current);
  SWEEP_OUT(named, hipmm_resource_get_by_name, 0, "shared");
  SWEEP_OUT(value, hipmm_resource_query, current, "reserved_bytes");
  SWEEP(hipmm_device_held_bytes, 0, &now, &peak);
  SWEEP_OUT(count, hipmm_resource_upstream_count, current);
  SWEEP_OUT(upstream, hipmm_resource_upstream, current, 0);
  SWEEP_OUT(access, hipmm_resource_access, current);
  SWEEP_OUT(handle, hipmm_resource_pool_handle, named);
  SWEEP(hipmm_resource_set_user_data, current, &released, release_user_data);
  SWEEP_OUT(data, hipmm_resource_get_user_data, current);
  SWEEP(hipmm_resource_set_user_data, current, NULL, NULL);
  SWEEP(hipmm_resource_reset_peaks, current);
  expect(value >= BYTES && count == 1 && data == &released && released == 1 && now <= peak && handle && access,
         "a resource tells something wrong");
  expect(SWEEP_PLAIN(hipmm_resource_is_equal, current, resource) == 1, "a resource is not itself");
  expect(!strcmp(SWEEP_PLAIN(hipmm_resource_name, current), "main"), "a resource has another name");
  expect(!strcmp(SWEEP_PLAIN(hipmm_resource_type, current), "statistics"), "a resource has another type");
  expect(SWEEP_PLAIN(hipmm_resource_device, current) == 0, "a resource has another device");
  SWEEP_PLAIN(hipmm_resource_retain, current);
  SWEEP_PLAIN(hipmm_resource_release, current);
  hipmm_resource_release(current);
  hipmm_resource_release(named);
  hipmm_resource_release(upstream);
}

static void create_resources(const void *argument)
{
  struct hipmm_resource *source = NULL, *made = NULL, *before = NULL;
  const struct hipmm_setting settings[] = {{"maximum_size", "1GiB"}};
  struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                .type = "pool",
                                .name = "made",
                                .options = "{\"growth\": \"segments\"}",
                                .settings = settings,
                                .n_settings = 1,
                                .n_upstreams = 1};
  (void)argument;
  SWEEP_OUT(source, hipmm_resource_create, 0, "device", NULL, NULL, 0);
  recipe.upstreams = &source;
  SWEEP_OUT(made, hipmm_resource_create_from, 0, &recipe);
  SWEEP_OUT(before, hipmm_resource_set_current, made);
  hipmm_resource_release(before);
  SWEEP(hipmm_resource_reset_current);
  SWEEP_OUT(before, hipmm_resource_set_for_device, 0, made);
  hipmm_resource_release(before);
  SWEEP(hipmm_resource_reset_for_device, 0);
  hipmm_resource_release(made);
  hipmm_resource_release(source);
}

/* The live blocks of the test keep their data. */
static void suspend(const void *argument)
{
  (void)argument;
  SWEEP(hipmm_resource_suspend, NULL, HIPMM_CONTENT_KEEP);
  SWEEP(hipmm_resource_resume, NULL);
}

/* ---- Inspection ---- */

static void visit_resource(void *arg, struct hipmm_resource *visited)
{
  (void)visited;
  ++*(int *)arg;
}

static void visit_value(void *arg, const struct hipmm_value *value)
{
  (void)value;
  ++*(int *)arg;
}

static void visit_option(void *arg, const struct hipmm_option_state *option)
{
  (void)option;
  ++*(int *)arg;
}

static void visit_extent(void *arg, const struct hipmm_extent *extent)
{
  *(int *)arg += extent->state == HIPMM_EXTENT_LIVE;
}

static void inspect(const void *argument)
{
  struct hipmm_pointer pointer = {.struct_size = sizeof pointer};
  struct hipmm_resource *pool = NULL;
  int64_t value = 0;
  char *text = NULL;
  int resources = 0, values = 0, options = 0, blocks = 0;
  (void)argument;
  SWEEP_OUT(value, hipmm_query, "devices/0/pool/reserved_bytes");
  if (!SWEEP_OUT(text, hipmm_get, "devices/0/pool/maximum_size")) SWEEP_PLAIN(hipmm_string_free, text);
  SWEEP(hipmm_set, "devices/0/pool/maximum_size", "200MiB");
  SWEEP(hipmm_set, "devices/0/pool/maximum_size", "\"50%\"");
  SWEEP(hipmm_set, "devices/0/pool/maximum_size", NULL);
  if (!SWEEP_OUT(text, hipmm_list, NULL)) hipmm_string_free(text);
  if (!SWEEP_OUT_ONLY(text, hipmm_snapshot)) hipmm_string_free(text);
  if (!SWEEP_OUT(text, hipmm_resource_report, NULL)) hipmm_string_free(text);
  if (!SWEEP_OUT(pointer, hipmm_pointer_lookup, bystanders[0] + 7)) {
    expect(pointer.ptr == bystanders[0] && pointer.bytes == BYTES, "a pointer was found in another block");
    hipmm_resource_release(pointer.resource);
  }
  SWEEP(hipmm_resource_visit, -1, visit_resource, &resources);
  SWEEP_OUT(pool, hipmm_resource_get_by_name, 0, "pool");
  SWEEP(hipmm_resource_visit_values, pool, visit_value, &values);
  SWEEP(hipmm_resource_visit_options, pool, visit_option, &options);
  SWEEP(hipmm_resource_visit_blocks, pool, visit_extent, &blocks);
  expect(resources >= 4 && values > 5 && options > 3 && blocks >= BYSTANDERS, "a visit leaves something out");
  hipmm_resource_release(pool);
}

static void use_statistics(const void *argument)
{
  struct hipmm_statistics statistics = {0}, outer = {0}, inner = {0};
  (void)argument;
  SWEEP_OUT(statistics, hipmm_statistics_get, NULL);
  SWEEP_OUT(outer, hipmm_statistics_push, NULL);
  SWEEP_OUT(inner, hipmm_statistics_pop, NULL);
  SWEEP(hipmm_resource_perform, NULL, "push");
  SWEEP(hipmm_resource_perform, NULL, "pop");
  expect(statistics.current_count == BYSTANDERS && outer.current_count == BYSTANDERS && !inner.current_count,
         "the counters are wrong");
}

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

static bool holds(const unsigned char *data, size_t bytes, unsigned char value)
{
  for (size_t i = 0; i < bytes; i++)
    if (data[i] != value) return false;
  return true;
}

static void use_buffers(const void *argument)
{
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
  expect(!SWEEP_PLAIN(hipmm_buffer_try_create, NULL, 100, NULL, &buffer) == !buffer, "a call is half served");
  if (buffer) SWEEP(hipmm_buffer_destroy, buffer);
}

static void use_vectors(const void *argument)
{
  int source[50] = {1, 2, 3}, target[50] = {0}, value = 0;
  void *address = NULL;
  struct hipmm_vector *vector = NULL, *copy = NULL;
  struct hipmm_buffer *buffer = NULL;
  (void)argument;
  SWEEP_OUT(vector, hipmm_vector_create, NULL, sizeof value, 50, stream);
  SWEEP(hipmm_vector_write, vector, 0, source, 50, stream);
  SWEEP_OUT(copy, hipmm_vector_copy, vector, NULL, stream);
  SWEEP(hipmm_vector_destroy, vector);
  SWEEP_OUT(vector, hipmm_vector_create_from, NULL, sizeof value, source, 50, stream);
  SWEEP(hipmm_vector_resize, copy, 500, stream);
  SWEEP(hipmm_vector_reserve, copy, 1000, stream);
  SWEEP(hipmm_vector_shrink_to_fit, copy, stream);
  SWEEP(hipmm_vector_read, copy, 0, 50, stream, target);
  expect(!memcmp(source, target, sizeof source), "a copied vector has other data");
  SWEEP(hipmm_vector_set, vector, 49, &source[2], stream);
  SWEEP(hipmm_vector_back, vector, stream, &value);
  expect(value == 3, "the last element is another one");
  SWEEP(hipmm_vector_front, vector, stream, &value);
  SWEEP(hipmm_vector_get, vector, 1, stream, &value);
  expect(value == 2, "an element is another one");
  SWEEP(hipmm_vector_set_async, vector, 4, &source[2], stream);
  SWEEP(hipmm_vector_set_zero_async, vector, 5, stream);
  SWEEP(hipmm_vector_write_async, vector, 6, source, 3, stream);
  SWEEP(hipmm_vector_read_async, vector, 0, 50, stream, target);
  SWEEP_OUT(address, hipmm_vector_element, vector, 3);
  SWEEP_OUT(address, hipmm_vector_range, vector, 3, 4);
  SWEEP(hipmm_stream_synchronize, 0, stream);
  SWEEP(hipmm_vector_set_stream, vector, NULL);
  expect(SWEEP_PLAIN(hipmm_vector_data, vector) && SWEEP_PLAIN(hipmm_vector_count, vector) == 50 &&
             SWEEP_PLAIN(hipmm_vector_capacity, vector) == 50 &&
             SWEEP_PLAIN(hipmm_vector_element_bytes, vector) == sizeof value &&
             !SWEEP_PLAIN(hipmm_vector_stream, vector) && SWEEP_PLAIN(hipmm_vector_device, vector) == 0 &&
             SWEEP_PLAIN(hipmm_vector_resource, vector) == resource,
         "a vector tells something wrong");
  SWEEP_OUT(buffer, hipmm_vector_release, vector);
  SWEEP(hipmm_buffer_destroy, buffer);
  SWEEP(hipmm_vector_destroy, copy);
}

static void use_scalars(const void *argument)
{
  double source = 2.5, value = 0;
  struct hipmm_scalar *scalar = NULL, *copy = NULL, *empty = NULL;
  (void)argument;
  SWEEP_OUT(empty, hipmm_scalar_create, NULL, sizeof value, stream);
  SWEEP_OUT(scalar, hipmm_scalar_create_from, NULL, &source, sizeof value, stream);
  SWEEP_OUT(copy, hipmm_scalar_copy, scalar, NULL, stream);
  SWEEP(hipmm_scalar_get, copy, stream, &value);
  expect(value == source, "a copied scalar has another value");
  SWEEP(hipmm_scalar_set_zero_async, copy, stream);
  SWEEP(hipmm_scalar_set_async, copy, &source, stream);
  SWEEP(hipmm_scalar_set, empty, &source, stream);
  SWEEP(hipmm_scalar_set_stream, empty, NULL);
  expect(SWEEP_PLAIN(hipmm_scalar_data, empty) && SWEEP_PLAIN(hipmm_scalar_bytes, empty) == sizeof value &&
             !SWEEP_PLAIN(hipmm_scalar_stream, empty) && SWEEP_PLAIN(hipmm_scalar_device, empty) == 0 &&
             SWEEP_PLAIN(hipmm_scalar_resource, empty) == resource,
         "a scalar tells something wrong");
  SWEEP(hipmm_scalar_destroy, empty);
  SWEEP(hipmm_scalar_destroy, copy);
  SWEEP(hipmm_scalar_destroy, scalar);
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

/* ---- Other processes ---- */

/* close() is a cancellation point, and not hipmm's. */
static int to_close[16];
static size_t n_to_close;

static void keep_to_close(int fd)
{
  to_close[n_to_close++] = fd;
}

static void end_share(const void *argument)
{
  while (n_to_close) close(to_close[--n_to_close]);
  end(argument);
}

static void share(const void *argument)
{
  struct hipmm_resource *shared = NULL, *imported = NULL, *memory = NULL;
  struct hipmm_share_pointer pointer;
  struct hipmm_share_block block;
  struct hipmm_share_part parts[8];
  void *ptr = NULL, *seen = NULL;
  int fd = -1;
  (void)argument;
  memset(&pointer, 0, sizeof pointer);
  memset(&block, 0, sizeof block);
  SWEEP_OUT(shared, hipmm_resource_get_by_name, 0, "shared");
  SWEEP_OUT(ptr, hipmm_allocate, shared, BYTES, NULL);
  SWEEP_OUT(fd, hipmm_share_export_fd, shared);
  SWEEP_OUT(pointer, hipmm_share_export_pointer, shared, ptr);
  SWEEP_OUT(imported, hipmm_share_import_fd, 0, fd);
  SWEEP_OUT(seen, hipmm_share_import_pointer, imported, &pointer);
  SWEEP(hipmm_deallocate, imported, seen, 0, NULL);
  SWEEP(hipmm_deallocate, shared, ptr, BYTES, NULL);
  keep_to_close(fd);
  hipmm_resource_release(imported);
  hipmm_resource_release(shared);
  SWEEP(hipmm_share_export_block, NULL, bystanders[1], &block, parts, 8);
  SWEEP_OUT(memory, hipmm_resource_get_by_name, 0, "memory");
  SWEEP_OUT(seen, hipmm_share_import_block, memory, &block, parts, block.n_parts);
  expect(seen && holds(seen, BYTES, 0x51), "an imported block has other data");
  for (size_t i = 0; i < block.n_parts; i++) keep_to_close(parts[i].fd);
  SWEEP(hipmm_deallocate, memory, seen, block.bytes, NULL);
  hipmm_resource_release(memory);
}

/* ---- Frameworks ---- */

/* Tries a function that returns a pointer twice. */
#define TWICE(pointer, function, ...)            \
  (pointer = SWEEP_PLAIN(function, __VA_ARGS__), \
   !(pointer) && sweep_may_fail() ? (pointer) = function(__VA_ARGS__) : (pointer))

static void use_torch(const void *argument)
{
  const struct hipmm_torch_pool pool = {1, 2};
  void *first = NULL, *second = NULL, *third = NULL;
  size_t bytes = 0, live = 0, peak = 0;
  (void)argument;
  SWEEP_PLAIN(hipmm_torch_on_failure, NULL);
  SWEEP_PLAIN(hipmm_torch_init, 2);
  expect(TWICE(first, hipmm_torch_malloc, BYTES, 0, stream), "hipmm_torch_malloc");
  SWEEP_PLAIN(hipmm_torch_record_stream, first, NULL);
  SWEEP_PLAIN(hipmm_torch_begin_allocate_to_pool, 0, pool, NULL);
  TWICE(second, hipmm_torch_malloc, BYTES, 0, stream);
  SWEEP_PLAIN(hipmm_torch_end_allocate_to_pool, 0, pool);
  SWEEP_PLAIN(hipmm_torch_free, second, BYTES, 0, stream);
  SWEEP_PLAIN(hipmm_torch_release_pool, 0, pool);
  SWEEP_PLAIN(hipmm_torch_memory_fraction, 1.0, 0);
  SWEEP(hipmm_torch_memory, 0, &live, &peak);
  SWEEP(hipmm_torch_reset_peak, 0);
  expect(SWEEP_PLAIN(hipmm_torch_base_alloc, first, &bytes) == first && bytes == BYTES,
         "a block of torch is not known");
  SWEEP_PLAIN(hipmm_torch_is_allocation, first);
  SWEEP_PLAIN(hipmm_torch_free, first, BYTES, 0, stream);
  SWEEP_PLAIN(hipmm_torch_reset);
  expect(TWICE(third, hipmm_cupy_malloc, stream, BYTES, 0), "hipmm_cupy_malloc");
  SWEEP_PLAIN(hipmm_cupy_free, stream, third, 0);
}

/* ---- What a program registers; the log ---- */

static enum hipmm_status never_allocate(void *arg, size_t bytes, size_t alignment, hipmm_stream_t on, void **ptr_out)
{
  (void)arg, (void)bytes, (void)alignment, (void)on, (void)ptr_out;
  return HIPMM_E_OUT_OF_MEMORY;
}

static void never_free(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t on)
{
  (void)arg, (void)ptr, (void)bytes, (void)alignment, (void)on;
}

static int give_up(void *arg, size_t bytes)
{
  (void)arg, (void)bytes;
  return 0;
}

static void ignore_event(void *arg, const struct hipmm_event *event)
{
  (void)arg, (void)event;
}

static void register_objects(const void *argument)
{
  static char region_memory[256];
  const struct hipmm_allocator allocator = {sizeof allocator, never_allocate, never_free, NULL};
  const struct hipmm_failure_handler failure = {sizeof failure, give_up, NULL};
  const struct hipmm_region region = {sizeof region, region_memory, sizeof region_memory};
  const struct hipmm_mempool mempool = {sizeof mempool, region_memory};
  const struct hipmm_hooks hooks = {sizeof hooks, 0, ignore_event, NULL};
  (void)argument;
  SWEEP(hipmm_allocator_register, "mine", &allocator);
  SWEEP(hipmm_failure_handler_register, "mine", &failure);
  SWEEP(hipmm_region_register, "mine", &region);
  SWEEP(hipmm_mempool_register, "mine", &mempool);
  SWEEP(hipmm_hooks_register, "mine", &hooks);
  SWEEP(hipmm_hooks_register, "mine", NULL);
  SWEEP(hipmm_allocator_register, "mine", NULL);
  SWEEP(hipmm_failure_handler_register, "mine", NULL);
  SWEEP(hipmm_region_register, "mine", NULL);
  SWEEP(hipmm_mempool_register, "mine", NULL);
}

static void ignore_line(void *arg, enum hipmm_log_level level, const char *about, const char *message)
{
  (void)arg, (void)level, (void)about, (void)message;
}

static void use_the_log(const void *argument)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  enum hipmm_log_level level = SWEEP_PLAIN(hipmm_log_get_level);
  int refused = -1;
  (void)argument;
  SWEEP(hipmm_log_set_file, log_file);
  SWEEP(hipmm_log_set_level, HIPMM_LOG_DEBUG);
  if (!hipmm_resource_query(NULL, "nothing", &(int64_t){0})) sweep_note("there is a value \"nothing\"");
  SWEEP_PLAIN(hipmm_last_error, &error);
  expect((error.status == HIPMM_E_ARGUMENT || sweep_may_fail()) && *SWEEP_PLAIN(hipmm_last_error_message),
         "an error has no record");
  SWEEP(hipmm_trim, 0); /* tells the log */
  SWEEP(hipmm_log_set_level, level);
  SWEEP(hipmm_log_set_sink, ignore_line, NULL, HIPMM_LOG_ERROR);
  SWEEP(hipmm_log_set_sink, NULL, NULL, HIPMM_LOG_ERROR);
  refused = SWEEP_PLAIN(hipmm_host_allocator_set, NULL) != HIPMM_OK; /* hipmm holds memory */
  expect(refused, "the host allocator was replaced while hipmm holds memory");
  expect(*SWEEP_PLAIN(hipmm_version) && SWEEP_PLAIN(hipmm_version_number) == HIPMM_VERSION, "the version is wrong");
  expect(*SWEEP_PLAIN(hipmm_status_string, HIPMM_OK) && *SWEEP_PLAIN(hipmm_runtime), "a text is missing");
}

static void end_log(const void *argument)
{
  end(argument);
  if (hipmm_log_set_file(getenv("HIPMM_LOG_OF_TEST"))) sweep_note("the log cannot be set back");
}

/* ---- Tests ---- */

static const struct sweep_scenario scenarios[] = {
    {.name = "initialisation", .run = initialise},
    {.name = "stacks beside the table", .run = build_beside},
    {.name = "blocks", .begin = begin, .run = use_blocks, .end = end},
    {.name = "resources", .begin = begin, .run = ask_resources, .end = end},
    {.name = "resources in code", .begin = begin_without_a_stack, .run = create_resources, .end = end},
    {.name = "suspension", .begin = begin, .run = suspend, .end = end},
    {.name = "inspection", .begin = begin, .run = inspect, .end = end},
    {.name = "statistics", .begin = begin, .run = use_statistics, .end = end},
    {.name = "streams", .begin = begin, .run = use_streams, .end = end},
    {.name = "events", .begin = begin, .run = use_events, .end = end},
    {.name = "devices", .begin = begin, .run = use_devices, .end = end},
    {.name = "buffers", .begin = begin, .run = use_buffers, .end = end},
    {.name = "vectors", .begin = begin, .run = use_vectors, .end = end},
    {.name = "scalars", .begin = begin, .run = use_scalars, .end = end},
    {.name = "host buffers", .begin = begin, .run = use_host_buffers, .end = end},
    {.name = "sharing", .begin = begin, .run = share, .end = end_share},
    {.name = "torch", .begin = begin, .run = use_torch, .end = end},
    {.name = "registration", .begin = begin, .run = register_objects, .end = end},
    {.name = "log", .begin = begin, .run = use_the_log, .end = end_log},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void sweeps(void **state)
{
  sweep_over(*state);
}

static void has_a_scenario_for_every_function(void **state)
{
  unsigned missing = 0;
  (void)state;
  for (size_t i = 0; i < n_functions; i++) {
    if (sweep_has_called(functions[i].name)) continue;
    print_error("%s is in no scenario of tests/fault/test_functions.c\n", functions[i].name);
    missing++;
  }
  assert_int_equal(missing, 0);
}

int main(void)
{
  struct CMUnitTest tests[SCENARIOS + 1];
  folder = new_folder();
  graph_file = path_in(folder, "graph.json");
  log_file = path_in(folder, "lines");
  log_to_file("error");
  setenv("HIPMM_LOG_OF_TEST", strchr(getenv("HIPMM_LOG"), ':') + 1, 1);
  setenv("HIPMM_CONFIG", graph_file, 1);
  if (!write_file(graph_file, graph, sizeof graph - 1)) return 1;
  for (size_t i = 0; i < SCENARIOS; i++)
    tests[i] = (struct CMUnitTest){
        .name = scenarios[i].name, .test_func = sweeps, .initial_state = (void *)(uintptr_t)&scenarios[i]};
  tests[SCENARIOS] = (struct CMUnitTest)cmocka_unit_test(has_a_scenario_for_every_function);
  int failed_tests = _cmocka_run_group_tests("faults of functions", tests, SCENARIOS + 1, NULL, NULL);
  sweep_print_sums();
  free(graph_file);
  free(log_file);
  remove_folder(folder);
  return failed_tests;
}
