/* SPDX-License-Identifier: MIT */
/* umf.c: a source over UMF's provider of host memory (Unified Memory Framework 1.x), which places pages on NUMA nodes. UMF's
 * library is opened when such a resource is created. Otherwise hipmm needs neither the library nor its headers. The
 * declarations below repeat those of UMF's headers that this file needs, which are the same in all releases 1.x. A program
 * that has another provider registers it with hipmm/umf.h. */
#include "../common/descriptor.h"
#include "../common/source.h"

#include <dlfcn.h>
#include <stdlib.h>

/* ---- UMF ---- */

enum { UMF_OUT_OF_HOST_MEMORY = 1, UMF_PROVIDER_SPECIFIC = 2, UMF_OUT_OF_RESOURCES = 8 };
enum { UMF_MAJOR = 1, UMF_MAJOR_SHIFT = 16, UMF_MINOR_MASK = 0xffff };

struct umf {
  int (*GetCurrentVersion)(void);
  int (*MemoryProviderCreate)(const void *ops, const void *params, void **provider_out);
  int (*MemoryProviderDestroy)(void *provider);
  int (*MemoryProviderAlloc)(void *provider, size_t bytes, size_t alignment, void **ptr_out);
  int (*MemoryProviderFree)(void *provider, void *ptr, size_t bytes);
  int (*MemoryProviderGetMinPageSize)(void *provider, const void *ptr, size_t *bytes_out);
  int (*MemoryProviderGetLastNativeError)(void *provider, const char **message_out, int32_t *code_out);
  const void *(*OsMemoryProviderOps)(void);
  int (*OsMemoryProviderParamsCreate)(void **params_out);
  int (*OsMemoryProviderParamsDestroy)(void *params);
  int (*OsMemoryProviderParamsSetNumaMode)(void *params, int mode);
  int (*OsMemoryProviderParamsSetNumaList)(void *params, unsigned *nodes, unsigned n);
};

static const struct umf_symbol {
  const char *name;
  size_t offset;
} umf_symbols[] = {
#define SYMBOL(name)                        \
  {                                         \
    "umf" #name, offsetof(struct umf, name) \
  }
    SYMBOL(GetCurrentVersion),
    SYMBOL(MemoryProviderCreate),
    SYMBOL(MemoryProviderDestroy),
    SYMBOL(MemoryProviderAlloc),
    SYMBOL(MemoryProviderFree),
    SYMBOL(MemoryProviderGetMinPageSize),
    SYMBOL(MemoryProviderGetLastNativeError),
    SYMBOL(OsMemoryProviderOps),
    SYMBOL(OsMemoryProviderParamsCreate),
    SYMBOL(OsMemoryProviderParamsDestroy),
    SYMBOL(OsMemoryProviderParamsSetNumaMode),
    SYMBOL(OsMemoryProviderParamsSetNumaList),
#undef SYMBOL
};

/* The library stays open: memory of a provider may outlive the resource that created it. */
static enum hipmm_status umf_open(const struct hipmm_services *services, struct umf *umf)
{
  const char *name = secure_getenv("HIPMM_UMF");
  if (!name || !*name) name = "libumf.so.1";
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                          "cannot open UMF: %s; install it, or name its library in HIPMM_UMF", dlerror());
  void *version = dlsym(library, "umfGetCurrentVersion");
  if (!version)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "%s is not UMF: it lacks umfGetCurrentVersion()",
                          name);
  umf->GetCurrentVersion = (int (*)(void))version;
  int number = umf->GetCurrentVersion(), major = number >> UMF_MAJOR_SHIFT;
  if (major != UMF_MAJOR)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                          "%s is UMF %d.%d, which is too %s: hipmm needs UMF 1.x", name, major, number & UMF_MINOR_MASK,
                          major < UMF_MAJOR ? "old" : "new");
  for (size_t i = 0; i < sizeof umf_symbols / sizeof *umf_symbols; i++) {
    void **function = (void **)((char *)umf + umf_symbols[i].offset);
    *function = dlsym(library, umf_symbols[i].name);
    if (!*function)
      return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "%s lacks %s(); install a complete UMF 1.x", name,
                            umf_symbols[i].name);
  }
  return HIPMM_OK;
}

/* ---- The resource ---- */

enum { UMF_MODES = 5, UMF_MOST_NODES = 1024 };

static const char *const umf_modes[UMF_MODES + 1] = {"default", "bind", "interleave", "preferred", "local", NULL};
static const int umf_mode_numbers[UMF_MODES] = {0, 1, 2, 3, 5}; /* umf_numa_mode_t */

struct umf_options {
  uint32_t numa_mode;
  struct hipmm_strings numa_nodes;
};

struct umf_source {
  struct source source; /* first */
  struct umf umf;
  void *provider;
  size_t page_bytes;
};

static enum hipmm_status umf_refuse(const struct umf_source *self, int result, const char *format, uint64_t bytes)
{
  const struct hipmm_services *services = self->source.services;
  const char *message = NULL;
  int32_t code = 0;
  if (result == UMF_PROVIDER_SPECIFIC) self->umf.MemoryProviderGetLastNativeError(self->provider, &message, &code);
  bool is_memory =
      result == UMF_OUT_OF_HOST_MEMORY || result == UMF_OUT_OF_RESOURCES || result == UMF_PROVIDER_SPECIFIC;
  return services->refuse(services, is_memory ? HIPMM_E_OUT_OF_MEMORY : HIPMM_E_NOT_SUPPORTED, format, bytes,
                          (uint64_t)result, (uint64_t)code);
}

/* A provider maps whole pages. */
static size_t umf_rounded(const struct umf_source *self, size_t bytes)
{
  return (bytes + self->page_bytes - 1) / self->page_bytes * self->page_bytes;
}

static enum hipmm_status umf_obtain(const struct source *source, size_t bytes, void **ptr_out)
{
  const struct umf_source *self = (const struct umf_source *)source;
  void *ptr = NULL;
  int result = self->umf.MemoryProviderAlloc(self->provider, umf_rounded(self, bytes), self->page_bytes, &ptr);
  if (!result && ptr) {
    *ptr_out = ptr;
    return HIPMM_OK;
  }
  return umf_refuse(self, result ? result : UMF_OUT_OF_HOST_MEMORY,
                    "cannot allocate {0:bytes} of host memory from UMF (umf_result_t {1}, error {2} of the provider)",
                    bytes);
}

static enum hipmm_status umf_release(const struct source *source, void *ptr, size_t bytes)
{
  const struct umf_source *self = (const struct umf_source *)source;
  int result = self->umf.MemoryProviderFree(self->provider, ptr, umf_rounded(self, bytes));
  if (!result) return HIPMM_OK;
  return umf_refuse(self, result, "UMF cannot free {0:bytes} (umf_result_t {1}, error {2} of the provider)", bytes);
}

static const struct source_memory umf_memory = {.obtain = umf_obtain, .release = umf_release};

static enum hipmm_status umf_read_nodes(const struct hipmm_services *services, const struct hipmm_strings *texts,
                                        unsigned *nodes)
{
  for (size_t i = 0; i < texts->count; i++) {
    char *end;
    unsigned long number = strtoul(texts->items[i], &end, 10);
    if (*end || end == texts->items[i] || number >= UMF_MOST_NODES || i >= UMF_MOST_NODES)
      return services->fail(services, HIPMM_E_CONFIG, "numa_nodes",
                            "\"%.40s\" is not the number of a NUMA node; write \"0\"", texts->items[i]);
    nodes[i] = (unsigned)number;
  }
  return HIPMM_OK;
}

static int umf_create_provider(struct umf_source *self, uint32_t mode, unsigned *nodes, size_t n)
{
  const struct umf *umf = &self->umf;
  void *params = NULL;
  int result = umf->OsMemoryProviderParamsCreate(&params);
  if (result) return result;
  result = umf->OsMemoryProviderParamsSetNumaMode(params, umf_mode_numbers[mode]);
  if (!result && n) result = umf->OsMemoryProviderParamsSetNumaList(params, nodes, (unsigned)n);
  if (!result) result = umf->MemoryProviderCreate(umf->OsMemoryProviderOps(), params, &self->provider);
  umf->OsMemoryProviderParamsDestroy(params);
  return result;
}

static enum hipmm_status umf_start(struct umf_source *self, const struct umf_options *wanted)
{
  const struct hipmm_services *services = self->source.services;
  unsigned nodes[UMF_MOST_NODES];
  enum hipmm_status status = umf_read_nodes(services, &wanted->numa_nodes, nodes);
  if (!status) status = umf_open(services, &self->umf);
  if (status) return status;
  int result = umf_create_provider(self, wanted->numa_mode, nodes, wanted->numa_nodes.count);
  if (result == UMF_OUT_OF_HOST_MEMORY)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory left for UMF's provider");
  if (result)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, "numa_mode",
                          "UMF refuses %s with %zu NUMA nodes (umf_result_t %d); bind, interleave and preferred need "
                          "numa_nodes, default and local have none",
                          umf_modes[wanted->numa_mode], wanted->numa_nodes.count, result);
  result = self->umf.MemoryProviderGetMinPageSize(self->provider, NULL, &self->page_bytes);
  if (result || self->page_bytes < HIPMM_ALIGNMENT) self->page_bytes = HIPMM_ALIGNMENT;
  return HIPMM_OK;
}

static void umf_destroy(void *self)
{
  const struct umf umf = ((struct umf_source *)self)->umf;
  void *provider = ((struct umf_source *)self)->provider;
  source_destroy(self); /* gives all blocks back, so the provider ends after it */
  if (provider) umf.MemoryProviderDestroy(provider);
}

static enum hipmm_status umf_create(const struct hipmm_services *services, const void *options,
                                    struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct umf_options *wanted = options;
  void *self = NULL;
  (void)upstreams, (void)n_upstreams; /* it has none */
  enum hipmm_status status = source_create(services, &umf_memory, sizeof(struct umf_source), &self);
  if (status) return status;
  status = umf_start(self, wanted);
  if (status)
    umf_destroy(self);
  else
    *self_out = self;
  return status;
}

static const struct hipmm_option umf_option_table[] = {
    {.name = "numa_mode",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct umf_options, numa_mode),
     .initial = "default",
     .doc =
         "Where pages lie: default, as the system places them; bind, on the nodes in numa_nodes; interleave, on "
         "these nodes in turn; preferred, on the one node there while it has memory; local, on the node of the thread "
         "that touches a page first",
     .choices = umf_modes},
    {.name = "numa_nodes",
     .type = HIPMM_OPTION_STRINGS,
     .offset = offsetof(struct umf_options, numa_nodes),
     .doc = "Numbers of NUMA nodes, such as [\"0\", \"1\"]"},
};

HIPMM_EXPORT extern const struct hipmm_plugin umf_LTX_hipmm_plugin;

const struct hipmm_plugin umf_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(umf_option_table, struct umf_options),
    .type = "umf",
    .version = "1.0",
    .doc =
        "Pageable host memory from UMF 1.x, placed on NUMA nodes; its library is opened when the resource is created",
    .role = HIPMM_ROLE_SOURCE,

    .flags = HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_HOST_ALONE | HIPMM_PLUGIN_FREE_WAITS,
    .ops = &source_ops,
    .create = umf_create,
    .destroy = umf_destroy,
};
