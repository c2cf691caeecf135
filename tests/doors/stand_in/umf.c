/* SPDX-License-Identifier: MIT */
/* umf.c: a small UMF, for tests: providers and pools by their tables of functions, and the provider
 * of host memory, which maps pages. It checks what callers promise: sizes of frees, alignments. UMF_STAND_IN_VERSION, such as
 * 0.11, is the version that it claims. */
#include "umf.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, MAP_FAILED_CODE = 1001, MODE_DEFAULT = 0, MODE_LOCAL = 5 };

struct umf_memory_provider_t {
  umf_memory_provider_ops_t ops;
  void *self;
};

struct umf_os_memory_provider_params_t {
  int mode;
  unsigned n_nodes;
};

struct umf_memory_pool_t {
  umf_memory_pool_ops_t ops;
  umf_memory_provider_handle_t owned;
  void *self;
};

int umfGetCurrentVersion(void)
{
  const char *claimed = getenv("UMF_STAND_IN_VERSION");
  int major = 1, minor = 0;
  if (claimed && sscanf(claimed, "%d.%d", &major, &minor) != 2) abort();
  return UMF_MAKE_VERSION(major, minor);
}

/* ---- Providers ---- */

umf_result_t umfMemoryProviderCreate(const umf_memory_provider_ops_t *ops, const void *params,
                                     umf_memory_provider_handle_t *provider)
{
  struct umf_memory_provider_t *made = calloc(1, sizeof *made);
  if (!made) return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  made->ops = *ops;
  umf_result_t result = ops->initialize(params, &made->self);
  if (result)
    free(made);
  else
    *provider = made;
  return result;
}

umf_result_t umfMemoryProviderDestroy(umf_memory_provider_handle_t provider)
{
  umf_result_t result = provider->ops.finalize(provider->self);
  free(provider);
  return result;
}

umf_result_t umfMemoryProviderAlloc(umf_memory_provider_handle_t provider, size_t size, size_t alignment, void **ptr)
{
  return provider->ops.alloc(provider->self, size, alignment, ptr);
}

umf_result_t umfMemoryProviderFree(umf_memory_provider_handle_t provider, void *ptr, size_t size)
{
  return provider->ops.free(provider->self, ptr, size);
}

umf_result_t umfMemoryProviderGetMinPageSize(umf_memory_provider_handle_t provider, const void *ptr, size_t *size)
{
  return provider->ops.get_min_page_size(provider->self, ptr, size);
}

umf_result_t umfMemoryProviderGetLastNativeError(umf_memory_provider_handle_t provider, const char **message,
                                                 int32_t *code)
{
  return provider->ops.get_last_native_error(provider->self, message, code);
}

umf_result_t umfMemoryProviderGetName(umf_memory_provider_handle_t provider, const char **name)
{
  return provider->ops.get_name(provider->self, name);
}

/* ---- Pages of the host, as a provider: `self` is nothing ---- */

/* In front of each block, in a page of its own. */
struct mapped {
  size_t size;
};

static umf_result_t pages_initialize(const void *params, void **self)
{
  static char nothing;
  *self = &nothing;
  const struct umf_os_memory_provider_params_t *wanted = params;
  bool has_nodes = wanted->n_nodes > 0, needs_nodes = wanted->mode != MODE_DEFAULT && wanted->mode != MODE_LOCAL;
  return has_nodes == needs_nodes ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

static umf_result_t pages_finalize(void *self)
{
  (void)self;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t pages_alloc(void *self, size_t size, size_t alignment, void **ptr)
{
  (void)self;
  if (alignment && alignment % PAGE && PAGE % alignment) return UMF_RESULT_ERROR_INVALID_ALIGNMENT;
  if (alignment > PAGE) return UMF_RESULT_ERROR_NOT_SUPPORTED;
  if (!size || size % PAGE) return UMF_RESULT_ERROR_INVALID_ARGUMENT;
  char *memory = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
  ((struct mapped *)(void *)memory)->size = size;
  *ptr = memory + PAGE;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t pages_free(void *self, void *ptr, size_t size)
{
  (void)self;
  struct mapped *mapped = (void *)((char *)ptr - PAGE);
  if (mapped->size != size) return UMF_RESULT_ERROR_INVALID_ARGUMENT;
  return munmap(mapped, size + PAGE) ? UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC : UMF_RESULT_SUCCESS;
}

static umf_result_t pages_error(void *self, const char **message, int32_t *code)
{
  (void)self;
  *message = "mmap() failed";
  *code = MAP_FAILED_CODE;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t pages_recommended(void *self, size_t size, size_t *page)
{
  (void)self, (void)size;
  *page = PAGE;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t pages_least(void *self, const void *ptr, size_t *page)
{
  (void)self, (void)ptr;
  *page = PAGE;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t pages_name(void *self, const char **name)
{
  (void)self;
  *name = "OS";
  return UMF_RESULT_SUCCESS;
}

static const umf_memory_provider_ops_t pages = {.version = UMF_PROVIDER_OPS_VERSION_CURRENT,
                                                .initialize = pages_initialize,
                                                .finalize = pages_finalize,
                                                .alloc = pages_alloc,
                                                .free = pages_free,
                                                .get_last_native_error = pages_error,
                                                .get_recommended_page_size = pages_recommended,
                                                .get_min_page_size = pages_least,
                                                .get_name = pages_name};

const umf_memory_provider_ops_t *umfOsMemoryProviderOps(void)
{
  return &pages;
}

umf_result_t umfOsMemoryProviderParamsCreate(umf_os_memory_provider_params_handle_t *params)
{
  *params = calloc(1, sizeof **params);
  return *params ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

umf_result_t umfOsMemoryProviderParamsDestroy(umf_os_memory_provider_params_handle_t params)
{
  free(params);
  return UMF_RESULT_SUCCESS;
}

umf_result_t umfOsMemoryProviderParamsSetNumaMode(umf_os_memory_provider_params_handle_t params, int mode)
{
  params->mode = mode;
  return mode >= MODE_DEFAULT && mode <= MODE_LOCAL ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

umf_result_t umfOsMemoryProviderParamsSetNumaList(umf_os_memory_provider_params_handle_t params, unsigned *nodes,
                                                  unsigned n)
{
  params->n_nodes = n;
  return nodes && n ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

/* ---- Pools ---- */

umf_result_t umfPoolCreate(const umf_memory_pool_ops_t *ops, umf_memory_provider_handle_t provider, const void *params,
                           uint32_t flags, umf_memory_pool_handle_t *pool)
{
  struct umf_memory_pool_t *made = calloc(1, sizeof *made);
  if (!made) return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  made->ops = *ops;
  umf_result_t result = ops->initialize(provider, params, &made->self);
  if (result) {
    free(made);
    return result;
  }
  if (flags & UMF_POOL_CREATE_FLAG_OWN_PROVIDER) made->owned = provider;
  *pool = made;
  return UMF_RESULT_SUCCESS;
}

umf_result_t umfPoolDestroy(umf_memory_pool_handle_t pool)
{
  umf_result_t result = pool->ops.finalize(pool->self);
  if (pool->owned) umfMemoryProviderDestroy(pool->owned);
  free(pool);
  return result;
}

void *umfPoolMalloc(umf_memory_pool_handle_t pool, size_t size)
{
  return pool->ops.malloc(pool->self, size);
}

void *umfPoolAlignedMalloc(umf_memory_pool_handle_t pool, size_t size, size_t alignment)
{
  return pool->ops.aligned_malloc(pool->self, size, alignment);
}

void *umfPoolCalloc(umf_memory_pool_handle_t pool, size_t n, size_t size)
{
  return pool->ops.calloc(pool->self, n, size);
}

void *umfPoolRealloc(umf_memory_pool_handle_t pool, void *ptr, size_t size)
{
  return pool->ops.realloc(pool->self, ptr, size);
}

umf_result_t umfPoolMallocUsableSize(umf_memory_pool_handle_t pool, const void *ptr, size_t *size)
{
  return pool->ops.malloc_usable_size(pool->self, ptr, size);
}

umf_result_t umfPoolFree(umf_memory_pool_handle_t pool, void *ptr)
{
  return pool->ops.free(pool->self, ptr);
}

umf_result_t umfPoolGetLastAllocationError(umf_memory_pool_handle_t pool)
{
  return pool->ops.get_last_allocation_error(pool->self);
}

umf_result_t umfPoolGetName(umf_memory_pool_handle_t pool, const char **name)
{
  return pool->ops.get_name(pool->self, name);
}

umf_result_t umfPoolTrimMemory(umf_memory_pool_handle_t pool, size_t keep)
{
  return pool->ops.ext_trim_memory ? pool->ops.ext_trim_memory(pool->self, keep) : UMF_RESULT_ERROR_NOT_SUPPORTED;
}
