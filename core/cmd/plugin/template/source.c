/* @NAME@.c: a resource type for hipmm: a source, which gets memory from the runtime. Change it to what you need;
 * <hipmm/plugin.h> describes every function. `make check` tests it. */
#include <hipmm/plugin.h>
#include <stdatomic.h>

struct @NAME@_self {
  const struct hipmm_services *services;
  atomic_int_least64_t allocations;
};

/* The runtime's functions, each with the resource's device current. */
static int @NAME@_hip_malloc(const struct @NAME@_self *self, void **ptr_out, size_t bytes)
{
  int previous = self->services->enter_device(self->services);
  int code = self->services->hip->Malloc(ptr_out, bytes);
  self->services->leave_device(self->services, previous);
  return code;
}

/* hipFree waits for the device, so that no work uses the memory any more. */
static enum hipmm_status @NAME@_hip_free(const struct @NAME@_self *self, void *ptr)
{
  int previous = self->services->enter_device(self->services);
  int code = self->services->hip->Free(ptr);
  self->services->leave_device(self->services, previous);
  return code == HIPMM_HIP_SUCCESS ? HIPMM_OK : self->services->refuse_hip(self->services, "hipFree", code, 0);
}

static enum hipmm_status @NAME@_allocate(void *self_, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                         void **ptr_out)
{
  struct @NAME@_self *self = self_;
  const struct hipmm_services *services = self->services;
  void *ptr = NULL;
  (void)stream; /* memory of hipMalloc is ready on every stream */
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  int code = @NAME@_hip_malloc(self, &ptr, bytes);
  if (code != HIPMM_HIP_SUCCESS) return services->refuse_hip(services, "hipMalloc", code, bytes);
  enum hipmm_status status = HIPMM_OK;
  if ((uintptr_t)ptr % alignment)
    status = services->refuse(services, HIPMM_E_ARGUMENT, "the runtime does not align to {0:bytes}", alignment, 0, 0);
  if (status == HIPMM_OK) status = services->track(services, ptr, bytes);
  if (status != HIPMM_OK) {
    @NAME@_hip_free(self, ptr);
    return status;
  }
  atomic_fetch_add_explicit(&self->allocations, 1, memory_order_relaxed);
  *ptr_out = ptr;
  return HIPMM_OK;
}

/* services->untrack() refuses what is not live, and wrong sizes. It comes first: another thread may get the address as
 * soon as the runtime has it. */
static enum hipmm_status @NAME@_deallocate(void *self_, void *ptr, size_t bytes, size_t alignment,
                                           hipmm_stream_t stream)
{
  struct @NAME@_self *self = self_;
  size_t tracked_bytes;
  (void)alignment, (void)stream;
  if (!ptr) return HIPMM_OK;
  enum hipmm_status status = self->services->untrack(self->services, ptr, bytes, &tracked_bytes);
  if (status == HIPMM_OK) status = @NAME@_hip_free(self, ptr);
  else return status;
  if (status != HIPMM_OK && self->services->track(self->services, ptr, tracked_bytes) != HIPMM_OK)
    return HIPMM_E_OUT_OF_MEMORY;
  return status;
}

static enum hipmm_status @NAME@_find(void *self_, const void *ptr, struct hipmm_block *block_out)
{
  struct @NAME@_self *self = self_;
  return self->services->lookup(self->services, ptr, block_out);
}

static enum hipmm_status @NAME@_query(void *self_, size_t index, int64_t *value_out)
{
  struct @NAME@_self *self = self_;
  (void)index; /* there is one value */
  *value_out = atomic_load_explicit(&self->allocations, memory_order_relaxed);
  return HIPMM_OK;
}

static enum hipmm_status @NAME@_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  struct @NAME@_self *self = services->host_allocate(services, sizeof *self);
  (void)options, (void)upstreams, (void)n_upstreams; /* it has none */
  if (!self) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  self->services = services;
  *self_out = self;
  return HIPMM_OK;
}

static void @NAME@_destroy(void *self_)
{
  struct @NAME@_self *self = self_;
  struct hipmm_block block;
  while (self->services->untrack_any(self->services, &block) == HIPMM_OK) @NAME@_hip_free(self, block.ptr);
  self->services->host_free(self->services, self, sizeof *self);
}

static const struct hipmm_feature @NAME@_values[] = {
    {.name = "@NAME@_allocations", .unit = "allocations", .doc = "Allocations since creation"},
};

static const struct hipmm_ops @NAME@_ops = {
    .struct_size = sizeof @NAME@_ops,
    .allocate = @NAME@_allocate,
    .deallocate = @NAME@_deallocate,
    .query = @NAME@_query,
    .find = @NAME@_find,
};

/* The one symbol that the plugin exports: the file's stem, then _LTX_hipmm_plugin. */
HIPMM_EXPORT extern const struct hipmm_plugin @NAME@_LTX_hipmm_plugin;

const struct hipmm_plugin @NAME@_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "@NAME@",
    .version = "0.1",
    .doc = "Device memory from the runtime (hipMalloc), counted",
    .role = HIPMM_ROLE_SOURCE,
    .values = @NAME@_values,
    .n_values = sizeof @NAME@_values / sizeof *@NAME@_values,
    .ops = &@NAME@_ops,
    .create = @NAME@_create,
    .destroy = @NAME@_destroy,
};
