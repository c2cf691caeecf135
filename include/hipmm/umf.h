/* SPDX-License-Identifier: MIT */
/* hipmm/umf.h: hipmm under UMF (Unified Memory Framework 1.x), and UMF under hipmm. It needs UMF's headers and library.
 *
 *     struct hipmm_resource *resource;                                     // such as hipmm_resource_get_current()
 *     umf_memory_provider_handle_t provider;
 *     umf_memory_pool_handle_t pool;
 *     hipmm_umf_provider_create(resource, &provider);                      // for UMF's pools: disjoint, scalable, …
 *     hipmm_umf_pool_create(resource, &pool);                              // or hipmm's own pool, as a pool of UMF
 *     hipmm_umf_allocator_register("umf", provider_of_umf);                // for {"type": "callback", "allocator": "umf"}
 *
 * UMF has no streams: memory may be used on every stream at once, and the program frees it after the work that uses it.
 * A handle has a reference to the resource, and UMF's function destroys it. When a provider fails,
 * umfMemoryProviderGetLastNativeError() has hipmm's message. When a pool fails, hipmm_last_error_message() has it.
 * umfPoolByPtr() and umfFree() know memory of UMF's pools over the provider, but not memory of hipmm's pool.
 *
 * With the type `umf` a graph gets memory of UMF's own providers, and the program needs no code. This file was tried with UMF
 * 1.0.2, 1.1.0 and 1.2.0. */
#ifndef HIPMM_UMF_H
#define HIPMM_UMF_H

#include <hipmm/inspect.h>
#include <hipmm/memory.h>
#include <hipmm/stream.h>

#include <stdint.h>
#include <string.h>
#include <umf.h>

#if !defined(UMF_VERSION_CURRENT) || (UMF_VERSION_CURRENT >> 16) != 1
#error "hipmm/umf.h needs the headers of UMF 1.x; those that the compiler finds are of another version"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The status of the calling thread's last failed call of a provider or pool. Each file that includes this one has its own. */
static __thread enum hipmm_status hipmm_umf_last;

static inline umf_result_t hipmm_umf_result(enum hipmm_status status)
{
  switch (status) {
  case HIPMM_OK: return UMF_RESULT_SUCCESS;
  case HIPMM_E_OUT_OF_MEMORY:
  case HIPMM_E_LIMIT: return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  case HIPMM_E_ARGUMENT:
  case HIPMM_E_POINTER:
  case HIPMM_E_SIZE: return UMF_RESULT_ERROR_INVALID_ARGUMENT;
  case HIPMM_E_NOT_SUPPORTED: return UMF_RESULT_ERROR_NOT_SUPPORTED;
  default: return UMF_RESULT_ERROR_UNKNOWN;
  }
}

static inline enum hipmm_status hipmm_umf_note(enum hipmm_status status)
{
  if (status) hipmm_umf_last = status;
  return status;
}

static inline enum hipmm_status hipmm_umf_allocate(void *resource, size_t bytes, size_t alignment, uint32_t flags,
                                                   void **ptr)
{
  struct hipmm_request request;
  if (!bytes) *ptr = NULL;
  if (!bytes) return HIPMM_OK; /* `statistics` would count it, and UMF's pools do not free NULL */
  memset(&request, 0, sizeof request);
  request.struct_size = sizeof request;
  request.resource = (struct hipmm_resource *)resource;
  request.bytes = bytes;
  request.alignment = alignment;
  request.flags = flags | HIPMM_ALLOCATE_SYNCHRONOUS;
  return hipmm_umf_note(hipmm_allocate_ex(&request, ptr));
}

/* ---- A provider; `provider` is the resource ---- */

static inline umf_result_t hipmm_umf_initialize(const void *resource, void **self)
{
  hipmm_resource_retain((struct hipmm_resource *)(uintptr_t)resource);
  *self = (void *)(uintptr_t)resource;
  return UMF_RESULT_SUCCESS;
}

static inline umf_result_t hipmm_umf_finalize(void *self)
{
  hipmm_resource_release((struct hipmm_resource *)self);
  return UMF_RESULT_SUCCESS;
}

static inline umf_result_t hipmm_umf_provider_alloc(void *provider, size_t bytes, size_t alignment, void **ptr)
{
  if (alignment & (alignment - 1)) return UMF_RESULT_ERROR_INVALID_ALIGNMENT;
  return hipmm_umf_allocate(provider, bytes, alignment, 0, ptr) ? UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC
                                                                : UMF_RESULT_SUCCESS;
}

/* The size is the whole allocation's, which hipmm compares: this provider does not let UMF divide memory. */
static inline umf_result_t hipmm_umf_provider_free(void *provider, void *ptr, size_t bytes)
{
  return hipmm_umf_result(hipmm_umf_note(hipmm_deallocate_sync((struct hipmm_resource *)provider, ptr, bytes)));
}

static inline umf_result_t hipmm_umf_provider_error(void *provider, const char **message, int32_t *code)
{
  (void)provider;
  *message = hipmm_last_error_message();
  *code = (int32_t)hipmm_umf_last;
  return UMF_RESULT_SUCCESS;
}

static inline umf_result_t hipmm_umf_provider_page(void *provider, size_t bytes, size_t *page)
{
  (void)provider, (void)bytes;
  *page = (size_t)2 << 20;
  return UMF_RESULT_SUCCESS;
}

static inline umf_result_t hipmm_umf_provider_least_page(void *provider, const void *ptr, size_t *page)
{
  (void)provider, (void)ptr;
  *page = 256;
  return UMF_RESULT_SUCCESS;
}

static inline umf_result_t hipmm_umf_name(void *self, const char **name)
{
  (void)self;
  *name = "hipmm";
  return UMF_RESULT_SUCCESS;
}

#if UMF_PROVIDER_OPS_VERSION_CURRENT >= UMF_MAKE_VERSION(1, 2)
static inline umf_result_t hipmm_umf_provider_line(void *provider, size_t *bytes)
{
  (void)provider;
  *bytes = 256;
  return UMF_RESULT_SUCCESS;
}
#endif

/* For umfMemoryProviderCreate(), whose `params` is the resource. */
static inline const umf_memory_provider_ops_t *hipmm_umf_provider_ops(void)
{
  static umf_memory_provider_ops_t ops; /* UMF copies it; each thread writes the same */
  ops.version = UMF_PROVIDER_OPS_VERSION_CURRENT;
  ops.initialize = hipmm_umf_initialize;
  ops.finalize = hipmm_umf_finalize;
  ops.alloc = hipmm_umf_provider_alloc;
  ops.free = hipmm_umf_provider_free;
  ops.get_last_native_error = hipmm_umf_provider_error;
  ops.get_recommended_page_size = hipmm_umf_provider_page;
  ops.get_min_page_size = hipmm_umf_provider_least_page;
  ops.get_name = hipmm_umf_name;
#if UMF_PROVIDER_OPS_VERSION_CURRENT >= UMF_MAKE_VERSION(1, 2)
  ops.get_cache_line_size = hipmm_umf_provider_line;
#endif
  return &ops;
}

static inline umf_result_t hipmm_umf_provider_create(struct hipmm_resource *resource,
                                                     umf_memory_provider_handle_t *provider_out)
{
  if (!resource || !provider_out) return UMF_RESULT_ERROR_INVALID_ARGUMENT;
  return umfMemoryProviderCreate(hipmm_umf_provider_ops(), resource, provider_out);
}

/* ---- A pool; `pool` is the resource ---- */

static inline umf_result_t hipmm_umf_pool_initialize(umf_memory_provider_handle_t provider, const void *resource,
                                                     void **self)
{
  (void)provider; /* the resource has its own upstream */
  return hipmm_umf_initialize(resource, self);
}

static inline void *hipmm_umf_pool_aligned_malloc(void *pool, size_t bytes, size_t alignment)
{
  void *ptr = NULL;
  return hipmm_umf_allocate(pool, bytes, alignment, 0, &ptr) ? NULL : ptr;
}

static inline void *hipmm_umf_pool_malloc(void *pool, size_t bytes)
{
  return hipmm_umf_pool_aligned_malloc(pool, bytes, 0);
}

static inline void *hipmm_umf_pool_calloc(void *pool, size_t n, size_t bytes)
{
  void *ptr = NULL;
  if (bytes && n > SIZE_MAX / bytes) {
    hipmm_umf_note(HIPMM_E_OUT_OF_MEMORY);
    return NULL;
  }
  return hipmm_umf_allocate(pool, n * bytes, 0, HIPMM_ALLOCATE_ZEROED, &ptr) ? NULL : ptr;
}

static inline void *hipmm_umf_pool_realloc(void *pool, void *old, size_t bytes)
{
  void *ptr = NULL;
  int device = hipmm_resource_device((struct hipmm_resource *)pool);
  enum hipmm_status status = hipmm_reallocate((struct hipmm_resource *)pool, old, 0, bytes, NULL, &ptr);
  if (!hipmm_umf_note(status)) hipmm_umf_note(hipmm_stream_synchronize(device, NULL)); /* after the copy */
  return status ? NULL : ptr;
}

static inline umf_result_t hipmm_umf_pool_usable(void *pool, const void *ptr, size_t *bytes)
{
  struct hipmm_pointer block;
  (void)pool;
  *bytes = 0;
  if (!ptr) return UMF_RESULT_SUCCESS;
  memset(&block, 0, sizeof block);
  block.struct_size = sizeof block;
  enum hipmm_status status = hipmm_umf_note(hipmm_pointer_lookup(ptr, &block));
  if (status) return hipmm_umf_result(status);
  *bytes = block.usable_bytes;
  hipmm_resource_release(block.resource);
  return UMF_RESULT_SUCCESS;
}

static inline umf_result_t hipmm_umf_pool_free(void *pool, void *ptr)
{
  return ptr ? hipmm_umf_result(hipmm_umf_note(hipmm_deallocate_sync((struct hipmm_resource *)pool, ptr, 0)))
             : UMF_RESULT_SUCCESS;
}

static inline umf_result_t hipmm_umf_pool_error(void *pool)
{
  (void)pool;
  return hipmm_umf_result(hipmm_umf_last);
}

static inline umf_result_t hipmm_umf_pool_trim(void *pool, size_t keep_bytes)
{
  return hipmm_umf_result(hipmm_umf_note(hipmm_resource_trim((struct hipmm_resource *)pool, keep_bytes)));
}

/* For umfPoolCreate(), whose `params` is the resource. No memory of its provider is used. */
static inline const umf_memory_pool_ops_t *hipmm_umf_pool_ops(void)
{
  static umf_memory_pool_ops_t ops;
  ops.version = UMF_POOL_OPS_VERSION_CURRENT;
  ops.initialize = hipmm_umf_pool_initialize;
  ops.finalize = hipmm_umf_finalize;
  ops.malloc = hipmm_umf_pool_malloc;
  ops.calloc = hipmm_umf_pool_calloc;
  ops.realloc = hipmm_umf_pool_realloc;
  ops.aligned_malloc = hipmm_umf_pool_aligned_malloc;
  ops.malloc_usable_size = hipmm_umf_pool_usable;
  ops.free = hipmm_umf_pool_free;
  ops.get_last_allocation_error = hipmm_umf_pool_error;
  ops.get_name = hipmm_umf_name;
#if UMF_POOL_OPS_VERSION_CURRENT >= UMF_MAKE_VERSION(1, 1)
  ops.ext_trim_memory = hipmm_umf_pool_trim;
#endif
  return &ops;
}

static inline umf_result_t hipmm_umf_pool_create(struct hipmm_resource *resource, umf_memory_pool_handle_t *pool_out)
{
  umf_memory_provider_handle_t provider;
  umf_result_t result = pool_out ? hipmm_umf_provider_create(resource, &provider) : UMF_RESULT_ERROR_INVALID_ARGUMENT;
  if (result) return result;
  result = umfPoolCreate(hipmm_umf_pool_ops(), provider, resource, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, pool_out);
  if (result) umfMemoryProviderDestroy(provider);
  return result;
}

/* ---- A provider of the program as a source; `arg` is the provider ---- */

static inline size_t hipmm_umf_whole_pages(umf_memory_provider_handle_t provider, size_t bytes, size_t *page)
{
  if (umfMemoryProviderGetMinPageSize(provider, NULL, page) || !*page) *page = 256;
  return (bytes + *page - 1) / *page * *page;
}

static inline enum hipmm_status hipmm_umf_obtain(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                                 void **ptr_out)
{
  umf_memory_provider_handle_t provider = (umf_memory_provider_handle_t)arg;
  size_t page, whole = hipmm_umf_whole_pages(provider, bytes, &page);
  (void)stream; /* the memory is new */
  switch (umfMemoryProviderAlloc(provider, whole, alignment > page ? alignment : page, ptr_out)) {
  case UMF_RESULT_SUCCESS: return HIPMM_OK;
  case UMF_RESULT_ERROR_INVALID_ALIGNMENT: return HIPMM_E_ARGUMENT;
  case UMF_RESULT_ERROR_NOT_SUPPORTED: return HIPMM_E_NOT_SUPPORTED;
  default: return HIPMM_E_OUT_OF_MEMORY;
  }
}

/* Work on the stream may still use the memory. */
static inline void hipmm_umf_release(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  umf_memory_provider_handle_t provider = (umf_memory_provider_handle_t)arg;
  size_t page;
  int device = 0;
  (void)alignment;
  if (!hipmm_device_current(&device)) hipmm_stream_synchronize(device, stream);
  (void)umfMemoryProviderFree(provider, ptr, hipmm_umf_whole_pages(provider, bytes, &page));
}

/* The provider must outlive each stack that uses it. */
static inline enum hipmm_status hipmm_umf_allocator_register(const char *name, umf_memory_provider_handle_t provider)
{
  struct hipmm_allocator allocator;
  memset(&allocator, 0, sizeof allocator);
  allocator.struct_size = sizeof allocator;
  allocator.allocate = hipmm_umf_obtain;
  allocator.deallocate = hipmm_umf_release;
  allocator.arg = provider;
  return hipmm_allocator_register(name, provider ? &allocator : NULL);
}

#ifdef __cplusplus
}
#endif
#endif
