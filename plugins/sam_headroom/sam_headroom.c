/* SPDX-License-Identifier: MIT */
/* sam_headroom.c: a source of pageable host memory that resides on the device as far as it fits. The first part of each
 * block, up to what the device has free above `headroom`, prefers the device; the rest prefers the host (hipMemAdvise).
 * For devices that can access all host memory. A free waits for its stream.
 *
 * Advice applies to whole pages. Each block has its own pages, so advice reaches no other memory and ends with its
 * block. */
#include "../common/descriptor.h"
#include "../common/source.h"

#include <sys/mman.h>
#include <unistd.h>

struct sam_headroom_options {
  uint64_t headroom;
};

struct sam_headroom {
  struct source source; /* first, for the functions of source.h */
  uint64_t headroom_bytes;
};

static size_t sam_headroom_pages(size_t bytes)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

static enum hipmm_status sam_headroom_advise(const struct hipmm_services *services, char *start, size_t bytes,
                                             int device)
{
  if (!bytes) return HIPMM_OK;
  int code = services->hip->MemAdvise(start, bytes, HIPMM_HIP_ADVISE_PREFERRED_LOCATION, device);
  return code ? services->refuse_hip(services, "hipMemAdvise", code, bytes) : HIPMM_OK;
}

/* A page that both parts share prefers the host, as the second part does. */
static enum hipmm_status sam_headroom_place(const struct hipmm_services *services, uint64_t headroom, char *start,
                                            size_t bytes)
{
  size_t free_bytes = 0, total_bytes = 0;
  int code = services->hip->MemGetInfo(&free_bytes, &total_bytes);
  if (code) return services->refuse_hip(services, "hipMemGetInfo", code, 0);
  size_t allocatable = free_bytes > headroom ? free_bytes - (size_t)headroom : 0;
  size_t on_device = (allocatable < bytes ? allocatable : bytes) / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
  enum hipmm_status status = sam_headroom_advise(services, start, on_device, services->device);
  return status ? status : sam_headroom_advise(services, start + on_device, bytes - on_device, HIPMM_HIP_CPU_DEVICE);
}

static enum hipmm_status sam_headroom_map(const struct source *source, size_t bytes, void **ptr_out)
{
  const struct hipmm_services *services = source->services;
  const struct sam_headroom *self = (const struct sam_headroom *)source;
  void *start = mmap(NULL, sam_headroom_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "cannot allocate {0:bytes} of host memory", bytes, 0, 0);
  uint64_t headroom = __atomic_load_n(&self->headroom_bytes, __ATOMIC_RELAXED);
  enum hipmm_status status = sam_headroom_place(services, headroom, start, bytes);
  if (status)
    munmap(start, sam_headroom_pages(bytes));
  else
    *ptr_out = start;
  return status;
}

static enum hipmm_status sam_headroom_unmap(const struct source *source, void *ptr, size_t bytes)
{
  if (!munmap(ptr, sam_headroom_pages(bytes))) return HIPMM_OK;
  return source->services->refuse(source->services, HIPMM_E_INTERNAL, "{0:hex} of {1:bytes} cannot be unmapped",
                                  (uintptr_t)ptr, bytes, 0);
}

static const struct source_memory sam_headroom_memory = {.obtain = sam_headroom_map, .release = sam_headroom_unmap};

static enum hipmm_status sam_headroom_create(const struct hipmm_services *services, const void *options,
                                             struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                             void **self_out)
{
  const struct sam_headroom_options *wanted = options;
  void *self;
  (void)upstreams, (void)n_upstreams; /* it has none */
  enum hipmm_status status = source_require_attribute(
      services, HIPMM_HIP_DEVICE_PAGEABLE_MEMORY_ACCESS,
      "access to plain host memory (hipDeviceAttributePageableMemoryAccess is 0); use managed or pinned");
  if (!status) status = source_require_function(services, !!services->hip->MemAdvise, "hipMemAdvise");
  if (!status) status = source_create(services, &sam_headroom_memory, sizeof(struct sam_headroom), &self);
  if (status) return status;
  ((struct sam_headroom *)self)->headroom_bytes = wanted->headroom;
  *self_out = self;
  return HIPMM_OK;
}

static enum hipmm_status sam_headroom_reconfigure(void *self, const char *option, const void *options)
{
  const struct sam_headroom_options *wanted = options;
  (void)option; /* there is one */
  __atomic_store_n(&((struct sam_headroom *)self)->headroom_bytes, wanted->headroom, __ATOMIC_RELAXED);
  return HIPMM_OK;
}

static const struct hipmm_option sam_headroom_option_table[] = {
    {.name = "headroom",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_REQUIRED | HIPMM_OPTION_PERCENT | HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct sam_headroom_options, headroom),
     .unit = "bytes",
     .doc = "Device memory to leave free for others; the part of a block that would use it prefers the host"},
};

static const struct hipmm_ops sam_headroom_ops = {
    .struct_size = sizeof sam_headroom_ops,
    .allocate = source_allocate,
    .deallocate = source_deallocate,
    .find = source_find,
    .reconfigure = sam_headroom_reconfigure,
};

HIPMM_EXPORT extern const struct hipmm_plugin sam_headroom_LTX_hipmm_plugin;

const struct hipmm_plugin sam_headroom_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(sam_headroom_option_table, struct sam_headroom_options),
    .type = "sam_headroom",
    .version = "1.0",
    .doc = "Pageable host memory that prefers the device while enough device memory stays free",
    .role = HIPMM_ROLE_SOURCE,
    .flags = HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_FREE_WAITS,
    .ops = &sam_headroom_ops,
    .create = sam_headroom_create,
    .destroy = source_destroy,
};
