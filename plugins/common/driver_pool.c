/* SPDX-License-Identifier: MIT */
/* driver_pool.c: memory, values, creation and destruction of a driver's pool.
 *
 * For a pool that this resource has made, the stack counts the memory that the driver's pool reserves, not the memory that
 * is allocated from it. The driver is asked after each allocation and each trim. What the driver releases by itself, at a
 * synchronisation (release_threshold) or before an allocation fails, is counted at the next of these, or when reserved_bytes
 * is read, as the core does before it tells what is held (HIPMM_PLUGIN_RECOUNTS). */
#include "driver_pool.h"

#include <string.h>
#include <unistd.h>

/* ---- Attributes of the driver's pool ---- */

static enum hipmm_status driver_pool_get_attribute(const struct driver_pool *pool, int attribute, uint64_t *value_out)
{
  const struct hipmm_services *services = pool->services;
  uint64_t value = 0; /* a policy is an int, the lower half */
  int code = services->hip->MemPoolGetAttribute(pool->pool, attribute, &value);
  if (code) return services->refuse_hip(services, "hipMemPoolGetAttribute", code, 0);
  *value_out = value;
  return HIPMM_OK;
}

/* An amount, or a policy. */
static enum hipmm_status driver_pool_set_attribute(const struct driver_pool *pool, int attribute, uint64_t value)
{
  const struct hipmm_services *services = pool->services;
  int code = services->hip->MemPoolSetAttribute(pool->pool, attribute, &value);
  return code ? services->refuse_hip(services, "hipMemPoolSetAttribute", code, 0) : HIPMM_OK;
}

/* Sets the stack's count to what the driver's pool reserves. */
static enum hipmm_status driver_pool_count_reserved(struct driver_pool *pool, uint64_t *reserved_out)
{
  uint64_t reserved = 0;
  pthread_mutex_lock(&pool->lock);
  enum hipmm_status status = driver_pool_get_attribute(pool, HIPMM_HIP_POOL_RESERVED_CURRENT, &reserved);
  if (!status && pool->counts_reserve) {
    pool->services->count_held(pool->services, (int64_t)(reserved - pool->counted_bytes));
    pool->counted_bytes = reserved;
  }
  pthread_mutex_unlock(&pool->lock);
  if (!status) *reserved_out = reserved;
  return status;
}

/* ---- The block map; it counts no bytes where the reserve is counted ---- */

enum hipmm_status driver_pool_track(const struct driver_pool *pool, void *ptr, size_t bytes)
{
  const struct hipmm_services *services = pool->services;
  if (!pool->counts_reserve) return services->track(services, ptr, bytes);
  services->count_held(services, -(int64_t)bytes);
  enum hipmm_status status = services->track(services, ptr, bytes);
  if (status) services->count_held(services, (int64_t)bytes);
  return status;
}

static enum hipmm_status driver_pool_untrack(const struct driver_pool *pool, void *ptr, size_t bytes, size_t *bytes_out)
{
  const struct hipmm_services *services = pool->services;
  enum hipmm_status status = services->untrack(services, ptr, bytes, bytes_out);
  if (!status && pool->counts_reserve) services->count_held(services, (int64_t)*bytes_out);
  return status;
}

/* ---- Allocating and freeing; the device is current in the static functions ---- */

static enum hipmm_status driver_pool_allocate_block(const struct driver_pool *pool, size_t bytes, hipmm_stream_t stream,
                                                    void **ptr_out)
{
  const struct hipmm_services *services = pool->services;
  void *ptr = NULL;
  int code = services->hip->MallocFromPoolAsync(&ptr, bytes, pool->pool, stream);
  if (code) return services->refuse_hip(services, "hipMallocFromPoolAsync", code, bytes);
  if (!ptr) /* ROCm 5.4 says success */
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                            "hipMallocFromPoolAsync of {0:bytes} gave no memory and no error", bytes, 0, 0);
  enum hipmm_status status = driver_pool_track(pool, ptr, bytes);
  if (status)
    services->hip->FreeAsync(ptr, stream);
  else
    *ptr_out = ptr;
  return status;
}

/* Frees the memory also if the handle is no stream any more: then waits for the whole device, and frees on the default
 * stream. */
static enum hipmm_status driver_pool_release(const struct hipmm_services *services, void *ptr, hipmm_stream_t stream)
{
  const struct hipmm_hip *hip = services->hip;
  if (!hip->FreeAsync(ptr, stream)) return HIPMM_OK;
  hip->GetLastError();
  if (hipmm_stream_is_captured(hip, stream))
    return services->refuse(services, HIPMM_E_STATE,
                            "stream {0:hex} is being captured, and a graph frees only memory that a graph allocated; "
                            "free the block after the capture",
                            (uintptr_t)stream, 0, 0);
  int code = hip->DeviceSynchronize();
  if (code) return services->refuse_hip(services, "hipDeviceSynchronize", code, 0);
  code = hip->FreeAsync(ptr, NULL);
  return code ? services->refuse_hip(services, "hipFreeAsync", code, 0) : HIPMM_OK;
}

struct driver_import *driver_pool_import_of(const struct driver_pool *pool, const void *ptr)
{
  for (size_t i = 0; i < pool->n_imports; i++)
    if (pool->imports[i].ptr == ptr) return &pool->imports[i];
  return NULL;
}

/* With the lock, so that no import runs meanwhile: it might be of the same block, or get the same address. */
static enum hipmm_status driver_pool_release_import(struct driver_pool *pool, void *ptr, hipmm_stream_t stream)
{
  pthread_mutex_lock(&pool->lock);
  enum hipmm_status status = driver_pool_release(pool->services, ptr, stream);
  struct driver_import *import = status ? NULL : driver_pool_import_of(pool, ptr);
  if (import) *import = pool->imports[--pool->n_imports];
  pthread_mutex_unlock(&pool->lock);
  return status;
}

enum hipmm_status driver_pool_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                       void **ptr_out)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  uint64_t reserved;
  enum hipmm_status status = source_check(services, bytes, alignment);
  if (status) return status;
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  if (pool->is_imported)
    return services->refuse(services, HIPMM_E_NOT_SUPPORTED,
                            "cannot allocate {0:bytes} from a pool of another process: allocate there, and import the "
                            "pointer here",
                            bytes, 0, 0);
  int previous = services->enter_device(services);
  status = driver_pool_allocate_block(pool, bytes, stream, ptr_out);
  /* The allocation has succeeded, even if the driver does not report the reserve. */
  if (!status && pool->counts_reserve) driver_pool_count_reserved(pool, &reserved);
  services->leave_device(services, previous);
  return status;
}

enum hipmm_status driver_pool_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  size_t held_bytes = 0;
  (void)alignment;
  if (!ptr) return HIPMM_OK;
  enum hipmm_status status = driver_pool_untrack(pool, ptr, bytes, &held_bytes);
  if (status) return status;
  int previous = services->enter_device(services);
  status =
      pool->is_imported ? driver_pool_release_import(pool, ptr, stream) : driver_pool_release(services, ptr, stream);
  services->leave_device(services, previous);
  if (status && driver_pool_track(pool, ptr, held_bytes))
    services->log(services, HIPMM_LOG_ERROR, "%p could not be freed and cannot be recorded either: it is lost", ptr);
  return status;
}

enum hipmm_status driver_pool_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct driver_pool *pool = self;
  return pool->services->lookup(pool->services, ptr, block_out);
}

/* The driver's pool releases only memory whose free has completed on the device, and it knows of that at a wait. */
enum hipmm_status driver_pool_trim(void *self, size_t keep_bytes)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  uint64_t reserved;
  int previous = services->enter_device(services);
  const char *call = "hipDeviceSynchronize";
  int code = hipmm_may_wait(services, HIPMM_OK) ? services->hip->DeviceSynchronize() : HIPMM_HIP_SUCCESS;
  if (!code) {
    call = "hipMemPoolTrimTo";
    code = services->hip->MemPoolTrimTo(pool->pool, keep_bytes);
  }
  enum hipmm_status status =
      code ? services->refuse_hip(services, call, code, 0) : driver_pool_count_reserved(pool, &reserved);
  services->leave_device(services, previous);
  return status;
}

/* ---- Values ---- */

enum value {
  RESERVED_BYTES,
  PEAK_RESERVED_BYTES,
  USED_BYTES,
  PEAK_USED_BYTES,
  THRESHOLD_BYTES,
  FOLLOWS_EVENTS,
  IS_OPPORTUNISTIC,
  MAKES_STREAMS_WAIT,
  POOL_HANDLE,
};

const struct hipmm_feature driver_pool_values[DRIVER_POOL_VALUES] = {
    [RESERVED_BYTES] = {"reserved_bytes", "bytes", "Memory that the driver's pool holds"},
    [PEAK_RESERVED_BYTES] = {"peak_reserved_bytes", "bytes", "The most that it held since reset_peaks"},
    [USED_BYTES] = {"used_bytes", "bytes", "Memory of it that is allocated"},
    [PEAK_USED_BYTES] = {"peak_used_bytes", "bytes", "The most that was allocated since reset_peaks"},
    [THRESHOLD_BYTES] = {"threshold_bytes", "bytes",
                         "Idle memory that it keeps at synchronisations, as the driver says"},
    [FOLLOWS_EVENTS] = {"follows_events", "0 or 1",
                        "Whether it reuses memory of streams that the allocating one waits for, as the driver says"},
    [IS_OPPORTUNISTIC] = {"is_opportunistic", "0 or 1",
                          "Whether it reuses memory of other streams whose free has happened, as the driver says"},
    [MAKES_STREAMS_WAIT] =
        {"makes_streams_wait", "0 or 1",
         "Whether it makes a stream wait in order to reuse another one's memory, as the driver says"},
    [POOL_HANDLE] = {"pool_handle", "address",
                     "The driver's handle of the pool, a hipMemPool_t (hipmm_resource_pool_handle())"},
};

static const int attributes[DRIVER_POOL_VALUES] = {
    [RESERVED_BYTES] = HIPMM_HIP_POOL_RESERVED_CURRENT,
    [PEAK_RESERVED_BYTES] = HIPMM_HIP_POOL_RESERVED_HIGH,
    [USED_BYTES] = HIPMM_HIP_POOL_USED_CURRENT,
    [PEAK_USED_BYTES] = HIPMM_HIP_POOL_USED_HIGH,
    [THRESHOLD_BYTES] = HIPMM_HIP_POOL_RELEASE_THRESHOLD,
    [FOLLOWS_EVENTS] = HIPMM_HIP_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES,
    [IS_OPPORTUNISTIC] = HIPMM_HIP_POOL_REUSE_ALLOW_OPPORTUNISTIC,
    [MAKES_STREAMS_WAIT] = HIPMM_HIP_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
};

/* An unlimited threshold is more than a value can hold. */
static enum hipmm_status driver_pool_read_value(struct driver_pool *pool, size_t index, int64_t *value_out)
{
  uint64_t value = (uintptr_t)pool->pool;
  enum hipmm_status status = index == POOL_HANDLE      ? HIPMM_OK
                             : index == RESERVED_BYTES ? driver_pool_count_reserved(pool, &value)
                                                       : driver_pool_get_attribute(pool, attributes[index], &value);
  if (!status) *value_out = value > INT64_MAX ? INT64_MAX : (int64_t)value;
  return status;
}

/* The core may ask in a thread in which the program has another context of NVIDIA's driver: which device is current does not
 * matter to the driver, and stays as it is. */
enum hipmm_status driver_pool_query(void *self, size_t index, int64_t *value_out)
{
  return driver_pool_read_value(self, index, value_out);
}

const struct hipmm_feature driver_pool_actions[DRIVER_POOL_ACTIONS] = {
    {.name = "reset_peaks", .doc = "Starts both peaks again from what is reserved and allocated now"},
};

enum hipmm_status driver_pool_perform(void *self, size_t index, int64_t *values_out)
{
  struct driver_pool *pool = self;
  enum hipmm_status status = HIPMM_OK;
  (void)index; /* there is one action */
  int previous = pool->services->enter_device(pool->services);
  for (size_t i = 0; !status && i < DRIVER_POOL_VALUES; i++) status = driver_pool_read_value(pool, i, &values_out[i]);
  if (!status)
    status = driver_pool_set_attribute(pool, HIPMM_HIP_POOL_RESERVED_HIGH, 0); /* HIP takes no other number */
  if (!status) status = driver_pool_set_attribute(pool, HIPMM_HIP_POOL_USED_HIGH, 0);
  pool->services->leave_device(pool->services, previous);
  return status;
}

/* ---- Options ---- */

const char *const driver_pool_unlimited[] = {"unlimited", NULL};

/* The options that are attributes of the driver's pool. */
static const struct driver_setting {
  const char *option;
  int attribute;
} settings[] = {
    {"release_threshold", HIPMM_HIP_POOL_RELEASE_THRESHOLD},
    {"reuse_follow_event_dependencies", HIPMM_HIP_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES},
    {"reuse_allow_opportunistic", HIPMM_HIP_POOL_REUSE_ALLOW_OPPORTUNISTIC},
    {"reuse_allow_internal_dependencies", HIPMM_HIP_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES},
};

enum { N_SETTINGS = sizeof settings / sizeof *settings };

static enum hipmm_status driver_pool_apply_setting(const struct driver_pool *pool, const struct driver_setting *setting,
                                                   const struct driver_pool_options *options)
{
  switch (setting->attribute) {
  case HIPMM_HIP_POOL_RELEASE_THRESHOLD:
    return driver_pool_set_attribute(pool, setting->attribute, options->release_threshold);
  case HIPMM_HIP_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    return driver_pool_set_attribute(pool, setting->attribute, options->reuse_follow_event_dependencies);
  case HIPMM_HIP_POOL_REUSE_ALLOW_OPPORTUNISTIC:
    return driver_pool_set_attribute(pool, setting->attribute, options->reuse_allow_opportunistic);
  default: return driver_pool_set_attribute(pool, setting->attribute, options->reuse_allow_internal_dependencies);
  }
}

enum hipmm_status driver_pool_reconfigure(void *self, const char *option, const void *options)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  for (size_t i = 0; i < N_SETTINGS; i++) {
    if (strcmp(settings[i].option, option) != 0) continue;
    int previous = services->enter_device(services);
    enum hipmm_status status = driver_pool_apply_setting(pool, &settings[i], options);
    services->leave_device(services, previous);
    return status;
  }
  return services->fail(services, HIPMM_E_NOT_SUPPORTED, option, "cannot be set while the pool is in use");
}

/* The driver's pool keeps what is freed into it. */
static enum hipmm_status driver_pool_fill(struct driver_pool *pool, uint64_t bytes)
{
  const struct hipmm_services *services = pool->services;
  void *ptr = NULL;
  enum hipmm_status status = driver_pool_allocate(pool, bytes, HIPMM_ALIGNMENT, NULL, &ptr);
  if (!status) return driver_pool_deallocate(pool, ptr, bytes, HIPMM_ALIGNMENT, NULL);
  return services->fail(services, status, "initial_pool_size",
                        "the device does not give %llu bytes; ask for less (a percentage is of what is free)",
                        (unsigned long long)bytes);
}

enum hipmm_status driver_pool_prepare(struct driver_pool *pool, const struct driver_pool_options *options)
{
  enum hipmm_status status = HIPMM_OK;
  for (size_t i = 0; !status && i < N_SETTINGS; i++) status = driver_pool_apply_setting(pool, &settings[i], options);
  return status ? status : driver_pool_fill(pool, options->initial_pool_size);
}

/* ---- Life ---- */

static enum hipmm_status driver_pool_require_pools(const struct hipmm_services *services)
{
  const struct hipmm_hip *hip = services->hip;
  const struct {
    int is_there;
    const char *name;
  } functions[] = {
      {!!hip->MallocFromPoolAsync, "hipMallocFromPoolAsync"},
      {!!hip->FreeAsync, "hipFreeAsync"},
      {!!hip->MemPoolCreate, "hipMemPoolCreate"},
      {!!hip->MemPoolDestroy, "hipMemPoolDestroy"},
      {!!hip->MemPoolSetAttribute, "hipMemPoolSetAttribute"},
      {!!hip->MemPoolGetAttribute, "hipMemPoolGetAttribute"},
      {!!hip->MemPoolTrimTo, "hipMemPoolTrimTo"},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    enum hipmm_status status = source_require_function(services, functions[i].is_there, functions[i].name);
    if (status) return status;
  }
  return source_require_attribute(services, HIPMM_HIP_DEVICE_MEMORY_POOLS,
                                  "stream-ordered pools (hipDeviceAttributeMemoryPoolsSupported is 0); use pool over "
                                  "device");
}

/* A failure is repeated once: no later call could try again. */
static void driver_pool_destroy_handle(const struct driver_pool *pool)
{
  const struct hipmm_hip *hip = pool->services->hip;
  if (!pool->pool || !pool->is_ours || !hip->MemPoolDestroy(pool->pool)) return;
  int code = hip->MemPoolDestroy(pool->pool);
  if (code) pool->services->refuse_hip(pool->services, "hipMemPoolDestroy", code, 0);
}

void driver_pool_destroy(void *self)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  struct hipmm_block block;
  device_wait_at_end(services);
  while (services->untrack_any(services, &block) == HIPMM_OK) {
    if (pool->counts_reserve) services->count_held(services, (int64_t)block.bytes);
    driver_pool_release(services, block.ptr, NULL);
  }
  device_wait_at_end(services);
  if (pool->exported_fd >= 0) close(pool->exported_fd);
  if (pool->imports)
    pool->services->host_free(pool->services, pool->imports, pool->most_imports * sizeof *pool->imports);
  driver_pool_destroy_handle(pool);
  services->count_held(services, -(int64_t)pool->counted_bytes);
  pthread_mutex_destroy(&pool->lock);
  services->host_free(services, pool, sizeof *pool);
}

enum hipmm_status driver_pool_create(const struct hipmm_services *services,
                                     enum hipmm_status (*open)(struct driver_pool *pool, const void *options),
                                     const void *options, void **self_out)
{
  enum hipmm_status status = driver_pool_require_pools(services);
  if (status) return status;
  struct driver_pool *pool = services->host_allocate(services, sizeof *pool);
  if (!pool) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  pool->services = services;
  pool->exported_fd = -1;
  pthread_mutex_init(&pool->lock, NULL);
  status = open(pool, options);
  if (status)
    driver_pool_destroy(pool);
  else
    *self_out = pool;
  return status;
}

const struct hipmm_ops driver_pool_ops = {
    .struct_size = sizeof driver_pool_ops,
    .allocate = driver_pool_allocate,
    .deallocate = driver_pool_deallocate,
    .trim = driver_pool_trim,
    .query = driver_pool_query,
    .perform = driver_pool_perform,
    .find = driver_pool_find,
    .reconfigure = driver_pool_reconfigure,
};
