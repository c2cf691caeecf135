/* SPDX-License-Identifier: MIT */
/* umf.h: what hipmm/umf.h and the plugin `umf` need of UMF 1.x, for machines without UMF: our own declarations, by which a
 * program compiles with UMF's headers as well. umf.c implements them. */
#ifndef HIPMM_TESTS_DOORS_STAND_IN_UMF_H
#define HIPMM_TESTS_DOORS_STAND_IN_UMF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef UMF_STAND_IN_MAJOR
#define UMF_STAND_IN_MAJOR 1
#endif
#define UMF_MAKE_VERSION(major, minor)   ((major << 16) | (minor & 0x0000ffff))
#define UMF_VERSION_CURRENT              UMF_MAKE_VERSION(UMF_STAND_IN_MAJOR, 0)
#define UMF_PROVIDER_OPS_VERSION_CURRENT UMF_MAKE_VERSION(1, 2)
#define UMF_POOL_OPS_VERSION_CURRENT     UMF_MAKE_VERSION(1, 1)

typedef enum umf_result_t {
  UMF_RESULT_SUCCESS = 0,
  UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY = 1,
  UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC = 2,
  UMF_RESULT_ERROR_INVALID_ARGUMENT = 3,
  UMF_RESULT_ERROR_INVALID_ALIGNMENT = 4,
  UMF_RESULT_ERROR_NOT_SUPPORTED = 5,
  UMF_RESULT_ERROR_OUT_OF_RESOURCES = 8,
  UMF_RESULT_ERROR_UNKNOWN = 0x7ffffffe
} umf_result_t;

typedef enum umf_ctl_query_type { CTL_QUERY_READ } umf_ctl_query_type_t;
typedef enum ctl_query_source { CTL_UNKNOWN_QUERY_SOURCE } umf_ctl_query_source_t;
typedef struct umf_memory_provider_t *umf_memory_provider_handle_t;
typedef struct umf_memory_pool_t *umf_memory_pool_handle_t;

typedef struct umf_memory_provider_ops_t {
  uint32_t version;
  umf_result_t (*initialize)(const void *params, void **provider);
  umf_result_t (*finalize)(void *provider);
  umf_result_t (*alloc)(void *provider, size_t size, size_t alignment, void **ptr);
  umf_result_t (*free)(void *provider, void *ptr, size_t size);
  umf_result_t (*get_last_native_error)(void *provider, const char **message, int32_t *code);
  umf_result_t (*get_recommended_page_size)(void *provider, size_t size, size_t *page_size);
  umf_result_t (*get_min_page_size)(void *provider, const void *ptr, size_t *page_size);
  umf_result_t (*get_name)(void *provider, const char **name);
  umf_result_t (*ext_purge_lazy)(void *provider, void *ptr, size_t size);
  umf_result_t (*ext_purge_force)(void *provider, void *ptr, size_t size);
  umf_result_t (*ext_allocation_merge)(void *provider, void *low, void *high, size_t size);
  umf_result_t (*ext_allocation_split)(void *provider, void *ptr, size_t size, size_t first);
  umf_result_t (*get_cache_line_size)(void *provider, size_t *size); /* its place in UMF differs */
} umf_memory_provider_ops_t;

typedef struct umf_memory_pool_ops_t {
  uint32_t version;
  umf_result_t (*initialize)(umf_memory_provider_handle_t provider, const void *params, void **pool);
  umf_result_t (*finalize)(void *pool);
  void *(*malloc)(void *pool, size_t size);
  void *(*calloc)(void *pool, size_t n, size_t size);
  void *(*realloc)(void *pool, void *ptr, size_t size);
  void *(*aligned_malloc)(void *pool, size_t size, size_t alignment);
  umf_result_t (*malloc_usable_size)(void *pool, const void *ptr, size_t *size);
  umf_result_t (*free)(void *pool, void *ptr);
  umf_result_t (*get_last_allocation_error)(void *pool);
  umf_result_t (*get_name)(void *pool, const char **name);
  umf_result_t (*ext_ctl)(void *pool, umf_ctl_query_source_t source, const char *name, void *arg, size_t size,
                          umf_ctl_query_type_t type, va_list args);
  umf_result_t (*ext_trim_memory)(void *pool, size_t keep);
} umf_memory_pool_ops_t;

enum { UMF_POOL_CREATE_FLAG_OWN_PROVIDER = 1 };

int umfGetCurrentVersion(void);
umf_result_t umfMemoryProviderCreate(const umf_memory_provider_ops_t *ops, const void *params,
                                     umf_memory_provider_handle_t *provider);
umf_result_t umfMemoryProviderDestroy(umf_memory_provider_handle_t provider);
umf_result_t umfMemoryProviderAlloc(umf_memory_provider_handle_t provider, size_t size, size_t alignment, void **ptr);
umf_result_t umfMemoryProviderFree(umf_memory_provider_handle_t provider, void *ptr, size_t size);
umf_result_t umfMemoryProviderGetMinPageSize(umf_memory_provider_handle_t provider, const void *ptr, size_t *size);
umf_result_t umfMemoryProviderGetLastNativeError(umf_memory_provider_handle_t provider, const char **message,
                                                 int32_t *code);
umf_result_t umfMemoryProviderGetName(umf_memory_provider_handle_t provider, const char **name);
umf_result_t umfPoolCreate(const umf_memory_pool_ops_t *ops, umf_memory_provider_handle_t provider, const void *params,
                           uint32_t flags, umf_memory_pool_handle_t *pool);
umf_result_t umfPoolDestroy(umf_memory_pool_handle_t pool);
void *umfPoolMalloc(umf_memory_pool_handle_t pool, size_t size);
void *umfPoolAlignedMalloc(umf_memory_pool_handle_t pool, size_t size, size_t alignment);
void *umfPoolCalloc(umf_memory_pool_handle_t pool, size_t n, size_t size);
void *umfPoolRealloc(umf_memory_pool_handle_t pool, void *ptr, size_t size);
umf_result_t umfPoolMallocUsableSize(umf_memory_pool_handle_t pool, const void *ptr, size_t *size);
umf_result_t umfPoolFree(umf_memory_pool_handle_t pool, void *ptr);
umf_result_t umfPoolGetLastAllocationError(umf_memory_pool_handle_t pool);
umf_result_t umfPoolGetName(umf_memory_pool_handle_t pool, const char **name);
umf_result_t umfPoolTrimMemory(umf_memory_pool_handle_t pool, size_t keep);

typedef struct umf_os_memory_provider_params_t *umf_os_memory_provider_params_handle_t;
umf_result_t umfOsMemoryProviderParamsCreate(umf_os_memory_provider_params_handle_t *params);
umf_result_t umfOsMemoryProviderParamsDestroy(umf_os_memory_provider_params_handle_t params);
const umf_memory_provider_ops_t *umfOsMemoryProviderOps(void);
umf_result_t umfOsMemoryProviderParamsSetNumaMode(umf_os_memory_provider_params_handle_t params, int mode);
umf_result_t umfOsMemoryProviderParamsSetNumaList(umf_os_memory_provider_params_handle_t params, unsigned *nodes,
                                                  unsigned n);

#ifdef __cplusplus
}
#endif
#endif
