/* SPDX-License-Identifier: MIT */
/* async.c: the runtime's own stream-ordered allocator, as a source with a pool of its own in the driver
 * (hipMemPoolCreate). Allocation and free are work on their stream; nothing here waits but trim.
 *
 * What the stack holds from the runtime is what the driver's pool reserves, not what is allocated from it. The driver
 * is asked after each allocation and trim, when the reserve can have grown or shrunk through us; what it gives back by
 * itself at synchronisations (release_threshold) shows at the next of these, or when reserved_bytes is read. */
#include "../source.h"

#include <pthread.h>
#include <stdbool.h>

struct async_options {
  uint64_t initial_size;
  uint64_t release_threshold;
  uint32_t reuse_follow_event_dependencies;
  uint32_t reuse_allow_opportunistic;
  uint32_t reuse_allow_internal_dependencies;
  uint32_t handle_type; /* HIP's numbers are the indices of async_handle_types */
};

struct async {
  const struct hipmm_services *services;
  hipMemPool_t pool;
  pthread_mutex_t lock;
  uint64_t counted_bytes; /* what the stack counts for this resource; under the lock */
};

/* ---- Asking the driver's pool ---- */

static enum hipmm_status get_attribute(const struct async *async, int attribute, uint64_t *value_out)
{
  const struct hipmm_services *services = async->services;
  uint64_t value = 0;
  int previous = services->enter_device(services);
  int code = services->hip->MemPoolGetAttribute(async->pool, attribute, &value);
  enum hipmm_status status = code ? services->refuse_hip(services, "hipMemPoolGetAttribute", code, 0) : HIPMM_OK;
  services->leave_device(services, previous);
  if (!status) *value_out = value;
  return status;
}

/* Brings the stack's count up to what the driver's pool reserves. */
static enum hipmm_status count_reserved(struct async *async, uint64_t *reserved_out)
{
  uint64_t reserved = 0;
  pthread_mutex_lock(&async->lock);
  enum hipmm_status status = get_attribute(async, HIPMM_HIP_POOL_RESERVED_CURRENT, &reserved);
  if (!status) {
    async->services->count_held(async->services, (int64_t)(reserved - async->counted_bytes));
    async->counted_bytes = reserved;
    *reserved_out = reserved;
  }
  pthread_mutex_unlock(&async->lock);
  return status;
}

/* ---- The ledger, for pointers only: its bytes are taken out of the stack's count ---- */

static enum hipmm_status hold_uncounted(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  services->count_held(services, -(int64_t)bytes);
  enum hipmm_status status = services->hold(services, ptr, bytes);
  if (status) services->count_held(services, (int64_t)bytes);
  return status;
}

static enum hipmm_status release_uncounted(const struct hipmm_services *services, void *ptr, size_t bytes,
                                           size_t *bytes_out)
{
  enum hipmm_status status = services->release(services, ptr, bytes, bytes_out);
  if (!status) services->count_held(services, (int64_t)*bytes_out);
  return status;
}

/* ---- Allocating and freeing; the device is current ---- */

static enum hipmm_status obtain(const struct async *async, size_t bytes, hipStream_t stream, void **ptr_out)
{
  const struct hipmm_services *services = async->services;
  void *ptr = NULL;
  int code = services->hip->MallocFromPoolAsync(&ptr, bytes, async->pool, stream);
  if (code) return services->refuse_hip(services, "hipMallocFromPoolAsync", code, bytes);
  if (!ptr) /* ROCm 5.4 says success */
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                            "hipMallocFromPoolAsync of {0:bytes} gave no memory and no error", bytes, 0, 0);
  enum hipmm_status status = hold_uncounted(services, ptr, bytes);
  if (status)
    services->hip->FreeAsync(ptr, stream);
  else
    *ptr_out = ptr;
  return status;
}

/* A handle that is no stream any more is no reason to keep the memory: then the whole device is waited for, and the
 * default stream frees it. */
static enum hipmm_status give_back(const struct hipmm_services *services, void *ptr, hipStream_t stream)
{
  const struct hipmm_hip *hip = services->hip;
  if (!hip->FreeAsync(ptr, stream)) return HIPMM_OK;
  hip->GetLastError();
  int code = hip->DeviceSynchronize();
  if (code) return services->refuse_hip(services, "hipDeviceSynchronize", code, 0);
  code = hip->FreeAsync(ptr, NULL);
  return code ? services->refuse_hip(services, "hipFreeAsync", code, 0) : HIPMM_OK;
}

static enum hipmm_status async_allocate(void *self, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out)
{
  struct async *async = self;
  const struct hipmm_services *services = async->services;
  uint64_t reserved;
  enum hipmm_status status = source_check(services, bytes, alignment);
  if (status) return status;
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  int previous = services->enter_device(services);
  status = obtain(async, bytes, stream, ptr_out);
  if (!status) count_reserved(async, &reserved); /* the memory is there, whatever the driver says of its size */
  services->leave_device(services, previous);
  return status;
}

static enum hipmm_status async_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipStream_t stream)
{
  struct async *async = self;
  const struct hipmm_services *services = async->services;
  size_t held_bytes = 0;
  (void)alignment;
  if (!ptr) return HIPMM_OK;
  enum hipmm_status status = release_uncounted(services, ptr, bytes, &held_bytes);
  if (status) return status;
  int previous = services->enter_device(services);
  status = give_back(services, ptr, stream);
  services->leave_device(services, previous);
  if (status && hold_uncounted(services, ptr, held_bytes))
    services->log(services, HIPMM_LOG_ERROR, "%p could not be freed and cannot be noted either: it is lost", ptr);
  return status;
}

static enum hipmm_status async_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct async *async = self;
  return async->services->held(async->services, ptr, block_out);
}

/* ---- Giving back ---- */

/* The driver's pool lets go only of memory whose free has happened on the device. */
static enum hipmm_status async_trim(void *self, size_t keep_bytes)
{
  struct async *async = self;
  const struct hipmm_services *services = async->services;
  uint64_t reserved;
  int previous = services->enter_device(services);
  const char *call = "hipDeviceSynchronize";
  int code = services->hip->DeviceSynchronize();
  if (!code) {
    call = "hipMemPoolTrimTo";
    code = services->hip->MemPoolTrimTo(async->pool, keep_bytes);
  }
  enum hipmm_status status = code ? services->refuse_hip(services, call, code, 0) : count_reserved(async, &reserved);
  services->leave_device(services, previous);
  return status;
}

/* ---- Values ---- */

enum async_value { RESERVED_BYTES, PEAK_RESERVED_BYTES, USED_BYTES, PEAK_USED_BYTES, N_VALUES };

static const struct hipmm_feature async_values[N_VALUES] = {
    [RESERVED_BYTES] = {"reserved_bytes", "bytes", "Memory that the driver's pool holds from the device"},
    [PEAK_RESERVED_BYTES] = {"peak_reserved_bytes", "bytes", "The most that it held since reset_peaks"},
    [USED_BYTES] = {"used_bytes", "bytes", "Memory of it that is allocated"},
    [PEAK_USED_BYTES] = {"peak_used_bytes", "bytes", "The most that was allocated since reset_peaks"},
};

static const int async_attributes[N_VALUES] = {
    [RESERVED_BYTES] = HIPMM_HIP_POOL_RESERVED_CURRENT,
    [PEAK_RESERVED_BYTES] = HIPMM_HIP_POOL_RESERVED_HIGH,
    [USED_BYTES] = HIPMM_HIP_POOL_USED_CURRENT,
    [PEAK_USED_BYTES] = HIPMM_HIP_POOL_USED_HIGH,
};

static enum hipmm_status async_query(void *self, size_t index, int64_t *value_out)
{
  uint64_t value = 0;
  enum hipmm_status status =
      index == RESERVED_BYTES ? count_reserved(self, &value) : get_attribute(self, async_attributes[index], &value);
  if (!status) *value_out = (int64_t)value;
  return status;
}

static const struct hipmm_feature async_actions[] = {
    {.name = "reset_peaks", .doc = "Starts both peaks again from what is reserved and allocated now"},
};

static int set_attribute(const struct async *async, int attribute, uint64_t value)
{
  return async->services->hip->MemPoolSetAttribute(async->pool, attribute, &value);
}

/* There is one action. */
static enum hipmm_status async_perform(void *self, size_t index, int64_t *values_out)
{
  struct async *async = self;
  const struct hipmm_services *services = async->services;
  (void)index;
  for (size_t i = 0; i < N_VALUES; i++) {
    enum hipmm_status status = async_query(self, i, &values_out[i]);
    if (status) return status;
  }
  int previous = services->enter_device(services);
  int code = set_attribute(async, HIPMM_HIP_POOL_RESERVED_HIGH, 0); /* HIP takes no other number */
  if (!code) code = set_attribute(async, HIPMM_HIP_POOL_USED_HIGH, 0);
  enum hipmm_status status = code ? services->refuse_hip(services, "hipMemPoolSetAttribute", code, 0) : HIPMM_OK;
  services->leave_device(services, previous);
  return status;
}

/* ---- Life ---- */

static enum hipmm_status require_pools(const struct hipmm_services *services)
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

static enum hipmm_status set_policies(const struct async *async, const struct async_options *options)
{
  int follow = options->reuse_follow_event_dependencies != 0;
  int opportunistic = options->reuse_allow_opportunistic != 0;
  int internal = options->reuse_allow_internal_dependencies != 0;
  const struct hipmm_hip *hip = async->services->hip;
  int code = set_attribute(async, HIPMM_HIP_POOL_RELEASE_THRESHOLD, options->release_threshold);
  if (!code) code = hip->MemPoolSetAttribute(async->pool, HIPMM_HIP_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follow);
  if (!code) code = hip->MemPoolSetAttribute(async->pool, HIPMM_HIP_POOL_REUSE_ALLOW_OPPORTUNISTIC, &opportunistic);
  if (!code) code = hip->MemPoolSetAttribute(async->pool, HIPMM_HIP_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &internal);
  return code ? async->services->refuse_hip(async->services, "hipMemPoolSetAttribute", code, 0) : HIPMM_OK;
}

/* The driver's pool keeps what is freed into it. */
static enum hipmm_status fill(struct async *async, uint64_t bytes)
{
  const struct hipmm_services *services = async->services;
  void *ptr = NULL;
  if (!bytes) return HIPMM_OK;
  enum hipmm_status status = async_allocate(async, bytes, HIPMM_ALIGNMENT, NULL, &ptr);
  if (!status) return async_deallocate(async, ptr, bytes, HIPMM_ALIGNMENT, NULL);
  return services->fail(services, status, "initial_size", "the device does not give %llu bytes; %s",
                        (unsigned long long)bytes, "ask for less, or for a percentage such as \"50%\"");
}

static void async_destroy(void *self)
{
  struct async *async = self;
  const struct hipmm_services *services = async->services;
  const struct hipmm_hip *hip = services->hip;
  struct hipmm_block block;
  if (hip->DeviceSynchronize()) hip->GetLastError(); /* a broken device frees all the same */
  while (services->release_next(services, &block) == HIPMM_OK) {
    services->count_held(services, (int64_t)block.bytes);
    give_back(services, block.ptr, NULL);
  }
  if (hip->DeviceSynchronize()) hip->GetLastError();
  int code = async->pool ? hip->MemPoolDestroy(async->pool) : 0;
  if (code) services->refuse_hip(services, "hipMemPoolDestroy", code, 0);
  services->count_held(services, -(int64_t)async->counted_bytes);
  pthread_mutex_destroy(&async->lock);
  services->host_free(services, async, sizeof *async);
}

static enum hipmm_status open_pool(struct async *async, const struct async_options *options)
{
  const struct hipmm_services *services = async->services;
  int code = services->hip->MemPoolCreate(&async->pool, services->device, (int)options->handle_type);
  if (code) {
    async->pool = NULL;
    return services->refuse_hip(services, "hipMemPoolCreate", code, 0);
  }
  enum hipmm_status status = set_policies(async, options);
  return status ? status : fill(async, options->initial_size);
}

static enum hipmm_status async_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)upstreams, (void)n_upstreams; /* it has none */
  enum hipmm_status status = require_pools(services);
  if (status) return status;
  struct async *async = services->host_allocate(services, sizeof *async);
  if (!async) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  async->services = services;
  pthread_mutex_init(&async->lock, NULL);
  status = open_pool(async, options);
  if (status)
    async_destroy(async);
  else
    *self_out = async;
  return status;
}

static const char *const async_unlimited[] = {"unlimited", NULL};
static const char *const async_handle_types[] = {"none", "posix_fd", NULL};

static const struct hipmm_option async_option_table[] = {
    {.name = "initial_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct async_options, initial_size),
     .initial = "0",
     .unit = "bytes",
     .doc = "Memory that the driver's pool takes from the device at once; it grows by itself"},
    {.name = "release_threshold",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct async_options, release_threshold),
     .initial = "unlimited",
     .unit = "bytes",
     .doc = "Idle memory above this is given back to the device at synchronisations",
     .choices = async_unlimited},
    {.name = "reuse_follow_event_dependencies",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct async_options, reuse_follow_event_dependencies),
     .initial = "true",
     .doc = "Reuse memory freed on another stream that the allocating stream already waits for"},
    {.name = "reuse_allow_opportunistic",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct async_options, reuse_allow_opportunistic),
     .initial = "true",
     .doc = "Reuse memory freed on another stream once that free has happened"},
    {.name = "reuse_allow_internal_dependencies",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct async_options, reuse_allow_internal_dependencies),
     .initial = "true",
     .doc = "Let the allocating stream wait for another one in order to reuse its memory"},
    {.name = "handle_type",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct async_options, handle_type),
     .initial = "none",
     .doc = "How the pool can be shared with other processes",
     .choices = async_handle_types},
};

_Static_assert(HIPMM_HIP_HANDLE_NONE == 0 && HIPMM_HIP_HANDLE_POSIX_FD == 1, "async_handle_types");

static const struct hipmm_ops async_ops = {
    .struct_size = sizeof async_ops,
    .allocate = async_allocate,
    .deallocate = async_deallocate,
    .trim = async_trim,
    .query = async_query,
    .perform = async_perform,
    .find = async_find,
};

HIPMM_EXPORT extern const struct hipmm_plugin async_LTX_hipmm_plugin;

const struct hipmm_plugin async_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "async",
    .version = "1.0",
    .doc = "The runtime's own stream-ordered allocator (hipMallocAsync), with a pool of its own",
    .role = HIPMM_ROLE_SOURCE,
    .options = async_option_table,
    .n_options = sizeof async_option_table / sizeof *async_option_table,
    .options_bytes = sizeof(struct async_options),
    .values = async_values,
    .n_values = N_VALUES,
    .actions = async_actions,
    .n_actions = sizeof async_actions / sizeof *async_actions,
    .ops = &async_ops,
    .create = async_create,
    .destroy = async_destroy,
};
