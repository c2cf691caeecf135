/* SPDX-License-Identifier: MIT */
/* client.c: a program of version 0.1, compiled from the headers of that version (include/) and run against the library of
 * today, with a plugin of that version (plugin.c). Neither this file nor the headers are ever changed, except that a line
 * goes which was wrong in 0.1 already. Each line is a call whose result 0.1 promised. */
#include <hipmm/buffer.h>
#include <hipmm/hipmm.h>
#include <hipmm/share.h>
#include <hipmm/stream.h>
#include <hipmm/torch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "client.c:%d: %s: %s\n", __LINE__, #condition, hipmm_last_error_message()); \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)
#define OK(call)              CHECK((call) == HIPMM_OK)
#define REFUSED(call, status) CHECK((call) == (status) && *hipmm_last_error_message())

static const char graph[] = "{\"runtime\": {\"type\": \"software\", \"devices\": 2, \"memory\": \"256MiB\"}, "
                            "\"stack\": [\"statistics\", {\"type\": \"limiting\", \"limit\": \"64MiB\"}, "
                            "{\"type\": \"older\", \"level\": 3}, \"pool\", \"device\"]}";

static int lines;

static void count_line(void *arg, enum hipmm_log_level level, const char *about, const char *message)
{
  (void)level, (void)about, (void)message;
  ++*(int *)arg;
}

static void begin_and_end(void)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  CHECK(hipmm_version_number() >= HIPMM_VERSION && hipmm_version_number() / 10000 == HIPMM_VERSION_MAJOR);
  CHECK(strlen(hipmm_version()) >= 5 && !hipmm_is_initialized());
  OK(hipmm_log_set_sink(count_line, &lines, HIPMM_LOG_TRACE));
  REFUSED(hipmm_init_from_string("{\"stack\": [\"pol\", \"device\"]}"), HIPMM_E_CONFIG);
  hipmm_last_error(&error);
  CHECK(error.status == HIPMM_E_CONFIG && !strcmp(error.path, "/stack/0") && strstr(error.message, "\"pool\""));
  REFUSED(hipmm_init_from_file("/nowhere.json"), HIPMM_E_IO);
  OK(hipmm_init_from_string(graph));
  OK(hipmm_init_if_needed());
  OK(hipmm_finalize());
  CHECK(hipmm_is_initialized() && !strcmp(hipmm_runtime(), "software"));
  CHECK(!strcmp(hipmm_status_string(HIPMM_OK), "success"));
}

static void use_memory(void)
{
  void *one, *other;
  OK(hipmm_allocate(NULL, 1000, NULL, &one));
  OK(hipmm_allocate_aligned(NULL, 5000, 4096, NULL, &other));
  CHECK((size_t)other % 4096 == 0);
  REFUSED(hipmm_deallocate(NULL, one, 999, NULL), HIPMM_E_SIZE);
  REFUSED(hipmm_deallocate(NULL, &one, 0, NULL), HIPMM_E_POINTER);
  REFUSED(hipmm_allocate(NULL, (size_t)65 << 20, NULL, &one), HIPMM_E_LIMIT);
  OK(hipmm_deallocate(NULL, one, 1000, NULL));
  OK(hipmm_deallocate_aligned(NULL, other, 5000, 4096, NULL));
  OK(hipmm_allocate(NULL, 0, NULL, &one));
  CHECK(!one);
}

static void use_resources(void)
{
  struct hipmm_resource *top, *pool, *made, *stack, *previous = NULL;
  struct hipmm_statistics counters;
  int64_t value;
  size_t now, peak;
  void *ptr;
  OK(hipmm_resource_get_current(&top));
  OK(hipmm_resource_get_by_name(0, "pool", &pool));
  REFUSED(hipmm_resource_get_for_device(2, &made), HIPMM_E_NO_DEVICE);
  CHECK(!strcmp(hipmm_resource_name(pool), "pool") && !strcmp(hipmm_resource_type(top), "statistics"));
  CHECK(hipmm_resource_device(top) == 0);
  OK(hipmm_allocate(pool, 100, NULL, &ptr));
  OK(hipmm_resource_query(top, "current_bytes", &value));
  OK(hipmm_statistics_push(top, &counters));
  OK(hipmm_statistics_pop(top, &counters));
  OK(hipmm_statistics_get(top, &counters));
  CHECK(counters.current_bytes == 0 && counters.total_count >= 2 && counters.peak_bytes >= 5000);
  OK(hipmm_resource_perform(top, "push"));
  OK(hipmm_resource_perform(top, "pop"));
  OK(hipmm_deallocate(pool, ptr, 100, NULL));
  const struct hipmm_setting settings[] = {{"limit", "1MiB"}};
  const struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                      .type = "limiting",
                                      .name = "mine",
                                      .settings = settings,
                                      .n_settings = 1,
                                      .upstreams = &pool,
                                      .n_upstreams = 1};
  OK(hipmm_resource_create_from(0, &recipe, &made));
  OK(hipmm_resource_set_current(made, &previous));
  CHECK(previous == top);
  REFUSED(hipmm_allocate(NULL, (size_t)2 << 20, NULL, &ptr), HIPMM_E_LIMIT);
  OK(hipmm_resource_reset_current());
  OK(hipmm_resource_set_for_device(1, NULL, NULL));
  OK(hipmm_resource_reset_for_device(1));
  hipmm_resource_release(previous);
  hipmm_resource_release(made);
  OK(hipmm_resource_create(0, "statistics", NULL, &pool, 1, &made));
  hipmm_resource_retain(made);
  hipmm_resource_release(made);
  hipmm_resource_release(made);
  REFUSED(hipmm_resource_trim(made, 0), HIPMM_E_ARGUMENT);
  OK(hipmm_stack_build_from_string(1, "beside", "{\"stack\": [\"pool\", \"device\"]}", &stack));
  OK(hipmm_query("created/beside/held_bytes", &value));
  hipmm_resource_release(stack);
  OK(hipmm_resource_trim(NULL, 0));
  OK(hipmm_device_held_bytes(0, &now, &peak));
  CHECK(now <= peak);
  hipmm_resource_release(pool);
  hipmm_resource_release(top);
}

static void inspect(void)
{
  char *text;
  int64_t value;
  OK(hipmm_query("devices/0/older/allocations", &value));
  CHECK(value >= 2);
  OK(hipmm_get("devices/0/older/level", &text));
  CHECK(!strcmp(text, "3"));
  hipmm_string_free(text);
  OK(hipmm_set("devices/0/limiting/limit", "32MiB"));
  OK(hipmm_list("devices/0/pool", &text));
  CHECK(strstr(text, "\"path\": \"devices/0/pool/reserved_bytes\""));
  hipmm_string_free(text);
  REFUSED(hipmm_list("devices/0/pol", &text), HIPMM_E_ARGUMENT);
  OK(hipmm_snapshot(&text));
  CHECK(strstr(text, "\"stacks\"") && strstr(text, "\"held_bytes\""));
  hipmm_string_free(text);
  REFUSED(hipmm_resource_report(NULL, &text), HIPMM_E_NOT_SUPPORTED);
}

/* ---- Objects of the program ---- */

static enum hipmm_status allocate(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)arg, (void)stream;
  return posix_memalign(ptr_out, alignment, bytes) ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK;
}

static void deallocate(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)arg, (void)bytes, (void)alignment, (void)stream;
  free(ptr);
}

static int give_up(void *arg, size_t bytes)
{
  (void)arg, (void)bytes;
  return 0;
}

static void register_objects(void)
{
  const struct hipmm_allocator allocator = {
      .struct_size = sizeof allocator, .allocate = allocate, .deallocate = deallocate};
  const struct hipmm_failure_handler handler = {.struct_size = sizeof handler, .callback = give_up};
  static char memory[4096];
  const struct hipmm_region region = {.struct_size = sizeof region, .ptr = memory, .bytes = sizeof memory};
  const struct hipmm_mempool mempool = {.struct_size = sizeof mempool, .handle = memory};
  struct hipmm_resource *resource;
  void *ptr;
  OK(hipmm_allocator_register("mine", &allocator));
  OK(hipmm_failure_handler_register("mine", &handler));
  OK(hipmm_region_register("mine", &region));
  OK(hipmm_mempool_register("mine", &mempool));
  OK(hipmm_resource_create(0, "callback", "{\"allocator\": \"mine\"}", NULL, 0, &resource));
  OK(hipmm_allocate(resource, 100, NULL, &ptr));
  OK(hipmm_deallocate(resource, ptr, 100, NULL));
  hipmm_resource_release(resource);
  OK(hipmm_allocator_register("mine", NULL));
  OK(hipmm_failure_handler_register("mine", NULL));
  OK(hipmm_region_register("mine", NULL));
  OK(hipmm_mempool_register("mine", NULL));
}

/* ---- Streams, devices, containers ---- */

static void use_streams(void)
{
  hipmm_stream_t stream, pooled;
  struct hipmm_stream_pool *pool;
  int done, device, previous, value, version;
  size_t free_bytes, total_bytes, part;
  char name[64];
  OK(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream));
  OK(hipmm_stream_synchronize(0, stream));
  OK(hipmm_stream_query(0, stream, &done));
  OK(hipmm_stream_wait(0, stream, 0, HIPMM_DEFAULT_STREAM));
  OK(hipmm_stream_device(stream, &device));
  CHECK(done == 1 && device == 0 && hipmm_stream_is_default(HIPMM_LEGACY_STREAM));
  CHECK(hipmm_stream_is_per_thread_default(HIPMM_PER_THREAD_STREAM));
  OK(hipmm_stream_retain(0, stream));
  OK(hipmm_stream_retire(0, stream));
  OK(hipmm_stream_destroy(stream));
  OK(hipmm_stream_pool_create(0, 3, HIPMM_STREAM_SYNC_DEFAULT, &pool));
  OK(hipmm_stream_pool_get(pool, &pooled));
  OK(hipmm_stream_pool_get_at(pool, 1, &pooled));
  CHECK(hipmm_stream_pool_size(pool) == 3 && hipmm_stream_pool_device(pool) == 0);
  OK(hipmm_stream_pool_destroy(pool));
  OK(hipmm_device_count(&value));
  CHECK(value == 2);
  OK(hipmm_device_enter(1, &previous));
  OK(hipmm_device_current(&device));
  OK(hipmm_device_leave(previous));
  OK(hipmm_device_set(0));
  OK(hipmm_device_memory(0, &free_bytes, &total_bytes));
  OK(hipmm_device_percent_of_free_memory(0, 50, &part));
  CHECK(device == 1 && part <= free_bytes && free_bytes <= total_bytes);
  OK(hipmm_device_name(0, sizeof name, name));
  OK(hipmm_device_attribute(0, 88, &value));
  OK(hipmm_runtime_version(&version));
  OK(hipmm_driver_version(&version));
}

static void use_containers(void)
{
  struct hipmm_buffer *buffer, *copy;
  struct hipmm_vector *vector;
  struct hipmm_scalar *scalar;
  struct hipmm_host_buffer *host;
  struct hipmm_memory memory = {.struct_size = sizeof memory};
  double values[] = {1, 2, 3}, value = 0;
  char bytes[8] = "";
  OK(hipmm_buffer_create_from(NULL, "abcdefg", 8, NULL, &buffer));
  OK(hipmm_buffer_resize(buffer, 1000, NULL));
  OK(hipmm_buffer_read(buffer, 0, 8, NULL, bytes));
  CHECK(!strcmp(bytes, "abcdefg") && hipmm_buffer_bytes(buffer) == 1000);
  OK(hipmm_buffer_fill(buffer, 0, 'x', 1, NULL));
  OK(hipmm_buffer_copy(buffer, NULL, NULL, &copy));
  OK(hipmm_buffer_release(copy, &memory));
  CHECK(memory.ptr && memory.capacity_bytes == 1000);
  OK(hipmm_buffer_adopt(&memory, &copy));
  OK(hipmm_buffer_destroy(copy));
  REFUSED(hipmm_buffer_destroy(copy), HIPMM_E_POINTER);
  OK(hipmm_buffer_destroy(buffer));
  OK(hipmm_vector_create_from(NULL, sizeof *values, values, 3, NULL, &vector));
  OK(hipmm_vector_back(vector, NULL, &value));
  CHECK(value == 3 && hipmm_vector_count(vector) == 3);
  OK(hipmm_vector_release(vector, &buffer));
  OK(hipmm_buffer_destroy(buffer));
  OK(hipmm_scalar_create_from(NULL, values, sizeof *values, NULL, &scalar));
  OK(hipmm_scalar_get(scalar, NULL, &value));
  CHECK(value == 1);
  OK(hipmm_scalar_destroy(scalar));
  OK(hipmm_host_buffer_create(NULL, 100, NULL, &host));
  memset(hipmm_host_buffer_data(host), 1, 100);
  OK(hipmm_host_buffer_destroy(host));
}

static void share_and_serve_frameworks(void)
{
  struct hipmm_resource *owner, *imported;
  struct hipmm_share_pointer pointer;
  void *ptr, *same;
  int fd;
  OK(hipmm_resource_create(0, "async", "{\"handle_type\": \"posix_fd\"}", NULL, 0, &owner));
  OK(hipmm_allocate(owner, 4096, NULL, &ptr));
  OK(hipmm_stream_synchronize(0, NULL));
  OK(hipmm_share_export_fd(owner, &fd));
  OK(hipmm_share_export_pointer(owner, ptr, &pointer));
  CHECK(pointer.magic == HIPMM_SHARE_MAGIC && pointer.bytes == 4096);
  OK(hipmm_share_import_fd(0, fd, &imported));
  OK(hipmm_share_import_pointer(imported, &pointer, &same));
  OK(hipmm_deallocate(imported, same, 4096, NULL));
  OK(hipmm_stream_synchronize(0, NULL));
  hipmm_resource_release(imported);
  OK(hipmm_deallocate(owner, ptr, 4096, NULL));
  hipmm_resource_release(owner);
  ptr = hipmm_torch_malloc(1000, 0, NULL);
  CHECK(ptr);
  hipmm_torch_free(ptr, 1000, 0, NULL);
  ptr = hipmm_cupy_malloc(NULL, 1000, 0);
  CHECK(ptr);
  hipmm_cupy_free(NULL, ptr, 0);
  hipmm_torch_reset();
}

int main(void)
{
  begin_and_end();
  use_memory();
  use_resources();
  inspect();
  register_objects();
  use_streams();
  use_containers();
  share_and_serve_frameworks();
  OK(hipmm_finalize());
  REFUSED(hipmm_finalize(), HIPMM_E_STATE);
  CHECK(lines > 0);
  OK(hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_ERROR));
  return 0;
}
