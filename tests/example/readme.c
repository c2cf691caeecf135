/* SPDX-License-Identifier: MIT */
/* readme.c: the examples of RMM's README, in C. Every example is a function of its own; a failure ends the program with
 * what hipmm says about it. It needs hipmm's public headers alone:
 *
 *     cc -std=gnu11 $(pkg-config --cflags --libs hipmm) -o readme readme.c && ./readme rmm.csv
 *
 * tests/example/readme.sh runs it on the software device. */
#include <hipmm/hipmm.h>
#include <hipmm/stream.h>
#include <hipmm/vector.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(enum hipmm_status status)
{
  if (!status) return;
  fprintf(stderr, "%s: %s\n", hipmm_status_string(status), hipmm_last_error_message());
  exit(1);
}

static void expect(bool is_so, const char *what)
{
  if (is_so) return;
  fprintf(stderr, "not so: %s\n", what);
  exit(1);
}

/* A resource made in code, over another one or none: RMM's constructors. */
static struct hipmm_resource *make(int device, const char *type, const char *options, struct hipmm_resource *upstream)
{
  struct hipmm_resource *resource;
  must(hipmm_resource_create(device, type, options, &upstream, upstream != NULL, &resource));
  return resource;
}

/* ---- device_memory_resource ---- */

/* "Returns a pointer to an allocation of at least `bytes` bytes" and "Reclaims a previous allocation". */
static void allocate_and_deallocate(void)
{
  void *memory;
  must(hipmm_allocate(NULL, 1000, HIPMM_DEFAULT_STREAM, &memory));
  expect((uintptr_t)memory % 256 == 0, "all allocations are aligned to 256 bytes");
  must(hipmm_deallocate(NULL, memory, 1000, HIPMM_DEFAULT_STREAM));
  expect(hipmm_deallocate(NULL, memory, 1000, HIPMM_DEFAULT_STREAM) == HIPMM_E_POINTER,
         "freeing twice is refused, where RMM's behaviour is undefined");
}

/* ---- cuda_stream, cuda_stream_view, cuda_stream_pool ---- */

static void use_streams(void)
{
  hipmm_stream_t stream, from_pool, again;
  struct hipmm_stream_pool *pool;
  must(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream));
  must(hipmm_stream_synchronize(0, stream));
  must(hipmm_stream_destroy(stream));
  must(hipmm_stream_pool_create(0, 2, HIPMM_STREAM_NON_BLOCKING, &pool));
  must(hipmm_stream_pool_get(pool, &from_pool));
  must(hipmm_stream_pool_get(pool, &again));
  must(hipmm_stream_pool_get(pool, &again));
  expect(from_pool == again, "a pool of two streams gives the first one again at the third call");
  must(hipmm_stream_pool_destroy(pool));
}

/* "Using the memory on a different stream is Undefined Behavior unless the two streams are first synchronized". */
static void order_streams(void)
{
  hipmm_stream_t stream_a, stream_b;
  struct hipmm_buffer *buffer;
  char data[100];
  must(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream_a));
  must(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream_b));
  must(hipmm_buffer_create(NULL, sizeof data, stream_a, &buffer));
  must(hipmm_buffer_fill(buffer, 0, 7, sizeof data, stream_a));
  must(hipmm_stream_wait(0, stream_b, 0, stream_a)); /* an event on stream_a that stream_b waits for */
  must(hipmm_buffer_read(buffer, 0, sizeof data, stream_b, data));
  expect(data[0] == 7 && data[99] == 7, "stream_b sees what stream_a wrote");
  must(hipmm_buffer_set_stream(buffer, stream_b)); /* the last to use it is the one that frees it */
  must(hipmm_buffer_destroy(buffer));
  must(hipmm_stream_destroy(stream_b));
  must(hipmm_stream_destroy(stream_a));
}

/* ---- Default resources and per-device resources ---- */

static void set_current_resource(void)
{
  struct hipmm_resource *device = make(0, "device", NULL, NULL), *pool = make(0, "pool", NULL, device), *current;
  must(hipmm_resource_set_current(pool, NULL));
  must(hipmm_resource_get_current(&current));
  expect(current == pool, "the current device's resource is the pool");
  must(hipmm_resource_reset_current());
  hipmm_resource_release(current);
  hipmm_resource_release(pool);
  hipmm_resource_release(device);
}

/* The loop that sets a pool for each device: RMM needs a vector that keeps them alive, here the table does. */
static void set_resource_of_each_device(void)
{
  int n_devices;
  must(hipmm_device_count(&n_devices));
  for (int i = 0; i < n_devices; i++) {
    struct hipmm_resource *device = make(i, "device", NULL, NULL), *pool = make(i, "pool", NULL, device);
    must(hipmm_resource_set_for_device(i, pool, NULL));
    hipmm_resource_release(pool);
    hipmm_resource_release(device);
  }
}

/* README's example of an error: buf_a is destroyed while another device is current. Here a buffer knows its device. */
static void destroy_on_another_device(void)
{
  struct hipmm_buffer *buf_a, *buf_b;
  int n_devices, previous;
  must(hipmm_device_count(&n_devices));
  must(hipmm_buffer_create(NULL, 16, HIPMM_DEFAULT_STREAM, &buf_a));
  must(hipmm_device_enter(n_devices - 1, &previous));
  must(hipmm_buffer_create(NULL, 16, HIPMM_DEFAULT_STREAM, &buf_b));
  expect(hipmm_buffer_device(buf_b) == n_devices - 1, "buf_b is on the device that was current");
  must(hipmm_buffer_destroy(buf_b));
  must(hipmm_buffer_destroy(buf_a));
  must(hipmm_device_leave(previous));
}

/* ---- device_buffer, device_uvector, device_scalar ---- */

static void use_buffers(struct hipmm_resource *mine)
{
  struct hipmm_buffer *b, *b2;
  must(hipmm_buffer_create(NULL, 100, HIPMM_DEFAULT_STREAM, &b)); /* at least 100 bytes, of the current resource */
  expect(hipmm_buffer_data(b) && hipmm_buffer_bytes(b) == 100, "a buffer has its memory");
  must(hipmm_buffer_create(mine, 100, HIPMM_DEFAULT_STREAM, &b2));
  expect(hipmm_buffer_resource(b2) == mine, "the second one is of the resource given");
  must(hipmm_buffer_destroy(b2));
  must(hipmm_buffer_destroy(b));
}

/* DeviceBuffer.to_device(a.tobytes()), then np.frombuffer(buf.tobytes()). */
static void copy_to_the_device_and_back(void)
{
  static const double a[] = {1, 2, 3};
  double back[3] = {0};
  struct hipmm_buffer *buffer;
  must(hipmm_buffer_create_from(NULL, a, sizeof a, HIPMM_DEFAULT_STREAM, &buffer));
  expect(hipmm_buffer_bytes(buffer) == 24, "three doubles are 24 bytes");
  must(hipmm_buffer_read(buffer, 0, sizeof back, HIPMM_DEFAULT_STREAM, back));
  expect(back[0] == 1 && back[1] == 2 && back[2] == 3, "they come back as they were");
  must(hipmm_buffer_destroy(buffer));
}

static void use_vectors(struct hipmm_resource *mine)
{
  int32_t values[100] = {0}, last = -1;
  struct hipmm_vector v = {NULL, 0}, v2 = {NULL, 0};
  must(hipmm_vector_create(NULL, sizeof *values, 100, HIPMM_DEFAULT_STREAM, &v));
  must(hipmm_vector_write(&v, 0, values, 100, HIPMM_DEFAULT_STREAM)); /* the elements begin without a value */
  must(hipmm_vector_get(&v, 99, HIPMM_DEFAULT_STREAM, &last));
  expect(last == 0, "the elements are 0");
  must(hipmm_vector_create(mine, sizeof *values, 100, HIPMM_DEFAULT_STREAM, &v2));
  must(hipmm_buffer_destroy(v2.buffer));
  must(hipmm_buffer_destroy(v.buffer));
}

static void use_scalars(void)
{
  static const int32_t value = 42;
  int32_t v = 0;
  struct hipmm_buffer *a;
  must(hipmm_buffer_create(NULL, sizeof value, HIPMM_DEFAULT_STREAM, &a));
  must(hipmm_scalar_set_async(a, &value, HIPMM_DEFAULT_STREAM));
  must(hipmm_scalar_get(a, HIPMM_DEFAULT_STREAM, &v));
  expect(v == 42, "a scalar gives the value that was set");
  must(hipmm_buffer_destroy(a));
}

/* ---- host_memory_resource: new_delete_resource and pinned_memory_resource ---- */

static void use_host_memory(void)
{
  static const char *const types[] = {"host", "pinned"};
  for (int i = 0; i < 2; i++) {
    struct hipmm_resource *resource = make(0, types[i], NULL, NULL);
    struct hipmm_host_buffer *buffer;
    must(hipmm_host_buffer_create(resource, 1000, HIPMM_DEFAULT_STREAM, &buffer));
    memset(hipmm_host_buffer_data(buffer), 1, 1000);
    must(hipmm_host_buffer_destroy(buffer));
    hipmm_resource_release(resource);
  }
}

/* ---- Resources to choose from ---- */

/* Allocates from it, and lets go of it. */
static void try_out(struct hipmm_resource *resource, size_t bytes)
{
  void *memory;
  must(hipmm_allocate(resource, bytes, HIPMM_DEFAULT_STREAM, &memory));
  must(hipmm_deallocate(resource, memory, bytes, HIPMM_DEFAULT_STREAM));
  hipmm_resource_release(resource);
}

static void use_other_resources(void)
{
  struct hipmm_resource *device = make(0, "device", NULL, NULL);
  try_out(make(0, "managed", NULL, NULL), 1000);
  try_out(make(0, "pool", "{\"initial_size\": \"16MiB\", \"maximum_size\": \"4GiB\"}", device), 1000);
  try_out(make(0, "fixed_size", "{\"block_size\": \"64KiB\"}", device), 65536);
  struct hipmm_resource *pool = make(0, "pool", NULL, device);
  try_out(make(0, "binning", "{\"min_size_exponent\": 10, \"max_size_exponent\": 16}", pool), 5000);
  hipmm_resource_release(pool);
  hipmm_resource_release(device);
}

/* ---- Logging ---- */

static void log_to(const char *filename)
{
  char options[4200];
  snprintf(options, sizeof options, "{\"file\": \"%s\"}", filename);
  struct hipmm_resource *upstream = make(0, "device", NULL, NULL), *log_mr = make(0, "logging", options, upstream);
  void *memory;
  must(hipmm_allocate(log_mr, 1000, HIPMM_DEFAULT_STREAM, &memory));
  must(hipmm_deallocate(log_mr, memory, 1000, HIPMM_DEFAULT_STREAM));
  must(hipmm_resource_perform(log_mr, "flush"));
  hipmm_resource_release(log_mr);
  hipmm_resource_release(upstream);
}

/* ---- Statistics ---- */

static void count_allocations(void)
{
  struct hipmm_resource *device = make(0, "device", NULL, NULL), *mr = make(0, "statistics", NULL, device);
  struct hipmm_statistics outer, inner;
  void *first, *second;
  must(hipmm_allocate(mr, 100, HIPMM_DEFAULT_STREAM, &first));
  must(hipmm_statistics_push(mr, NULL));
  must(hipmm_allocate(mr, 50, HIPMM_DEFAULT_STREAM, &second));
  must(hipmm_deallocate(mr, second, 50, HIPMM_DEFAULT_STREAM));
  must(hipmm_statistics_pop(mr, &inner));
  must(hipmm_deallocate(mr, first, 100, HIPMM_DEFAULT_STREAM));
  must(hipmm_statistics_get(mr, &outer));
  expect(inner.peak_bytes == 50 && inner.total_count == 1, "a scope counts what is allocated in it");
  expect(outer.peak_bytes == 150 && outer.current_bytes == 0, "and adds it to the scope around it");
  hipmm_resource_release(mr);
  hipmm_resource_release(device);
}

/* ---- A callback for failures ---- */

/* What the callback can give up, from whom, and how often it was called. */
struct cache {
  struct hipmm_resource *resource;
  void *memory;
  int calls;
};

enum { CACHE_BYTES = 1 << 20 };

static int drop_cache(void *arg, size_t bytes)
{
  struct cache *cache = arg;
  (void)bytes;
  cache->calls++;
  if (!cache->memory) return 0; /* nothing left to give: let it fail */
  must(hipmm_deallocate(cache->resource, cache->memory, CACHE_BYTES, HIPMM_DEFAULT_STREAM));
  cache->memory = NULL;
  return 1; /* try again */
}

static void survive_failures(void)
{
  struct cache cache = {NULL, NULL, 0};
  const struct hipmm_failure_handler failure = {sizeof failure, drop_cache, &cache};
  struct hipmm_resource *device = make(0, "device", NULL, NULL);
  struct hipmm_resource *limit = make(0, "limiting", "{\"limit\": \"1MiB\"}", device);
  void *memory;
  must(hipmm_failure_handler_register("drop_cache", &failure));
  cache.resource = make(0, "failure_callback", "{\"callback\": \"drop_cache\"}", limit);
  must(hipmm_allocate(cache.resource, CACHE_BYTES, HIPMM_DEFAULT_STREAM, &cache.memory));
  must(hipmm_allocate(cache.resource, 1000, HIPMM_DEFAULT_STREAM, &memory)); /* there is room once the cache is gone */
  expect(cache.calls == 1 && !cache.memory, "the callback made room");
  expect(hipmm_allocate(cache.resource, CACHE_BYTES, HIPMM_DEFAULT_STREAM, &cache.memory) == HIPMM_E_LIMIT,
         "without more to give up, it fails");
  must(hipmm_deallocate(cache.resource, memory, 1000, HIPMM_DEFAULT_STREAM));
  must(hipmm_failure_handler_register("drop_cache", NULL));
  hipmm_resource_release(cache.resource);
  hipmm_resource_release(limit);
  hipmm_resource_release(device);
}

int main(int argc, char **argv)
{
  if (argc != 2) {
    fprintf(stderr, "usage: %s LOG_FILE\n", argv[0]);
    return 2;
  }
  must(hipmm_init());
  allocate_and_deallocate();
  use_streams();
  order_streams();
  set_current_resource();
  set_resource_of_each_device();
  destroy_on_another_device();
  struct hipmm_resource *mine = make(0, "device", NULL, NULL);
  use_buffers(mine);
  use_vectors(mine);
  hipmm_resource_release(mine);
  copy_to_the_device_and_back();
  use_scalars();
  use_host_memory();
  use_other_resources();
  log_to(argv[1]);
  count_allocations();
  survive_failures();
  must(hipmm_finalize());
  return 0;
}
