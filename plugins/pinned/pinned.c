/* SPDX-License-Identifier: MIT */
/* pinned.c: a source of pinned host memory, which every device accesses over the bus: for staging buffers, and for data that
 * host and device share. Large blocks are mapped here and registered (hipHostRegister), which is faster; small ones come
 * from hipHostMalloc. A free waits for its stream. */
#include "../common/descriptor.h"
#include "../common/numa_node.h"
#include "../common/source.h"
#include "mapped.h"

#include <string.h>

enum { ATTRIBUTE_REGISTERED_IS_MAPPED = 4 /* hipDeviceAttributeCanUseHostPointerForRegisteredMem */ };

static const size_t LARGE_BYTES = 16 << 20; /* where the threads cost less than they save */

enum huge_pages { OFF, TRANSPARENT, OF_2_MIB, OF_1_GIB };

static const char *const huge_pages_choices[] = {"off", "transparent", "2MiB", "1GiB", NULL};
static const size_t huge_pages_bytes[] = {[OF_2_MIB] = 2 << 20, [OF_1_GIB] = 1 << 30};

struct pinned_options {
  const char *numa_node;
  uint32_t huge_pages; /* enum huge_pages */
};

struct pinned {
  struct source source; /* first, for the functions of source.h */
  struct mapped mapped;
  size_t least_bytes; /* of a block that is mapped here */
};

static enum hipmm_status pinned_obtain(const struct source *source, size_t bytes, void **ptr_out)
{
  const struct hipmm_services *services = source->services;
  const struct pinned *self = (const struct pinned *)source;
  if (bytes >= self->least_bytes) return mapped_obtain(services, &self->mapped, bytes, ptr_out);
  int code = services->hip->HostMalloc(ptr_out, bytes, HIPMM_HIP_HOST_MALLOC_PORTABLE);
  return code ? services->refuse_hip(services, "hipHostMalloc", code, bytes) : HIPMM_OK;
}

static enum hipmm_status pinned_release(const struct source *source, void *ptr, size_t bytes)
{
  const struct hipmm_services *services = source->services;
  const struct pinned *self = (const struct pinned *)source;
  if (bytes >= self->least_bytes) return mapped_release(services, &self->mapped, ptr, bytes);
  int code = services->hip->HostFree(ptr);
  return code ? services->refuse_hip(services, "hipHostFree", code, 0) : HIPMM_OK;
}

static const struct source_memory pinned_memory = {
    .obtain = pinned_obtain, .release = pinned_release, .aligns_to_any = true};

/* ---- Life ---- */

/* A device that knows registered memory under another address cannot use it here: AMD's do not promise the same one. */
static enum hipmm_status pinned_require_registration(const struct hipmm_services *services)
{
  enum hipmm_status status = source_require_function(services, !!services->hip->HostRegister, "hipHostRegister");
  if (!status) status = source_require_function(services, !!services->hip->HostUnregister, "hipHostUnregister");
  return status ? status
                : source_require_attribute(services, ATTRIBUTE_REGISTERED_IS_MAPPED,
                                           "registered memory at the host's addresses "
                                           "(hipDeviceAttributeCanUseHostPointerForRegisteredMem); set numa_node to "
                                           "\"auto\" and huge_pages to \"transparent\"");
}

static bool pinned_can_register(const struct hipmm_services *services)
{
  int value = 0;
  if (!services->hip->HostRegister || !services->hip->HostUnregister) return false;
  if (!services->hip->DeviceGetAttribute(&value, ATTRIBUTE_REGISTERED_IS_MAPPED, services->device)) return value != 0;
  services->hip->GetLastError();
  return false;
}

/* What the graph asks for in words of its own must be there, for blocks of every size. */
static enum hipmm_status pinned_choose(const struct hipmm_services *services, const struct pinned_options *options,
                                       struct mapped *mapped, size_t *least_bytes_out)
{
  bool is_node_given = strcmp(options->numa_node, "auto") != 0 && strcmp(options->numa_node, "off") != 0;
  mapped->is_encouraged = options->huge_pages == TRANSPARENT;
  mapped->huge_bytes = options->huge_pages >= OF_2_MIB ? huge_pages_bytes[options->huge_pages] : 0;
  enum hipmm_status status = HIPMM_OK;
  if (is_node_given || mapped->huge_bytes) status = pinned_require_registration(services);
  if (!status && mapped->huge_bytes) status = mapped_check_huge_pages(services, mapped->huge_bytes);
  bool is_off = !strcmp(options->numa_node, "off") && options->huge_pages == OFF;
  *least_bytes_out = is_node_given || mapped->huge_bytes        ? 0
                     : is_off || !pinned_can_register(services) ? SIZE_MAX
                                                                : LARGE_BYTES;
  mapped->node = NUMA_NODE_ANY;
  if (status || *least_bytes_out == SIZE_MAX) return status;
  status = numa_node_find(services, options->numa_node, &mapped->node);
  if (!status && mapped->node != NUMA_NODE_ANY) status = numa_node_try(services, is_node_given, &mapped->node);
  return status;
}

static enum hipmm_status pinned_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)upstreams, (void)n_upstreams; /* it has none */
  struct mapped mapped;
  size_t least_bytes;
  void *self;
  enum hipmm_status status = source_require_function(services, !!services->hip->HostMalloc, "hipHostMalloc");
  if (!status) status = source_require_function(services, !!services->hip->HostFree, "hipHostFree");
  if (!status) status = pinned_choose(services, options, &mapped, &least_bytes);
  if (!status) status = source_create(services, &pinned_memory, sizeof(struct pinned), &self);
  if (status) return status;
  ((struct pinned *)self)->mapped = mapped;
  ((struct pinned *)self)->least_bytes = least_bytes;
  *self_out = self;
  return HIPMM_OK;
}

static void pinned_validate(const struct hipmm_validation *validation, const void *options)
{
  numa_node_validate(validation, ((const struct pinned_options *)options)->numa_node);
}

static const struct hipmm_option pinned_option_table[] = {
    {.name = "numa_node",
     .type = HIPMM_OPTION_STRING,
     .offset = offsetof(struct pinned_options, numa_node),
     .initial = "auto",
     .doc =
         "Where memory lies: auto, blocks of 16 MiB and more on the device's node; off, where the system places it; a "
         "number such as \"1\", on that node. A full node gives way to another"},
    {.name = "huge_pages",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct pinned_options, huge_pages),
     .initial = "transparent",
     .doc =
         "transparent: the kernel may use huge pages for blocks of 16 MiB and more; off: it may not, and "
         "with numa_node off too the driver gives all memory; 2MiB or 1GiB: blocks take whole pages of that size, of "
         "which the machine must have some",
     .choices = huge_pages_choices},
};

HIPMM_EXPORT extern const struct hipmm_plugin pinned_LTX_hipmm_plugin;

const struct hipmm_plugin pinned_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(pinned_option_table, struct pinned_options),
    .type = "pinned",
    .version = "1.1",
    .doc = "Pinned host memory, which every device can access (hipHostMalloc, hipHostRegister)",
    .role = HIPMM_ROLE_SOURCE,
    .flags = HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_FREE_WAITS,
    .ops = &source_ops,
    .create = pinned_create,
    .destroy = source_destroy,
    .validate = pinned_validate,
};
