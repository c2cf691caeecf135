/* SPDX-License-Identifier: MIT */
/* umf.c: hipmm under UMF and UMF under hipmm, on the software device, whose memory the host reads. Compiled with the stand-in
 * of UMF, and with UMF itself where umf.sh knows it (-DREAL_UMF). */
#include <hipmm/umf.h>

#ifdef REAL_UMF
#include <umf/pools/pool_disjoint.h>
#include <umf/providers/provider_os_memory.h>
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                     \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "line %d: %s is wrong; hipmm's last error: %s\n", __LINE__, #condition, \
              hipmm_last_error_message());                                                    \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

static struct hipmm_statistics counters_of(struct hipmm_resource *resource)
{
  struct hipmm_statistics counters;
  EXPECT(!hipmm_statistics_get(resource, &counters));
  return counters;
}

static void hipmm_is_a_provider(struct hipmm_resource *resource)
{
  umf_memory_provider_handle_t provider;
  const char *text = NULL;
  int32_t code = 0;
  char *ptr = NULL, *other = NULL;
  EXPECT(hipmm_umf_provider_create(NULL, &provider) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
  EXPECT(!hipmm_umf_provider_create(resource, &provider));
  EXPECT(!umfMemoryProviderGetName(provider, &text) && !strcmp(text, "hipmm"));
  EXPECT(!umfMemoryProviderAlloc(provider, 5000, 4096, (void **)&ptr) && (uintptr_t)ptr % 4096 == 0);
  EXPECT(!umfMemoryProviderAlloc(provider, 100, 0, (void **)&other) && other != ptr);
  memset(ptr, 7, 5000);
  memset(other, 8, 100);
  EXPECT(ptr[0] == 7 && ptr[4999] == 7);
  EXPECT(counters_of(resource).current_bytes == 5100);
  EXPECT(umfMemoryProviderAlloc(provider, (size_t)1 << 45, 0, (void **)&other) ==
         UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
  EXPECT(!umfMemoryProviderGetLastNativeError(provider, &text, &code) && code == HIPMM_E_OUT_OF_MEMORY);
  EXPECT(strstr(text, "32 TiB"));
  EXPECT(umfMemoryProviderAlloc(provider, 100, 48, (void **)&other) == UMF_RESULT_ERROR_INVALID_ALIGNMENT);
  EXPECT(umfMemoryProviderFree(provider, ptr, 4999) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
  EXPECT(counters_of(resource).current_bytes == 5100);
  EXPECT(!umfMemoryProviderFree(provider, ptr, 5000) && !umfMemoryProviderFree(provider, other, 100));
  EXPECT(umfMemoryProviderFree(provider, ptr, 5000) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
  EXPECT(!umfMemoryProviderDestroy(provider));
  EXPECT(counters_of(resource).current_count == 0);
}

static void hipmm_is_a_pool(struct hipmm_resource *resource)
{
  umf_memory_pool_handle_t pool;
  const char *text = NULL;
  size_t bytes = 0;
  EXPECT(hipmm_umf_pool_create(NULL, &pool) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
  EXPECT(!hipmm_umf_pool_create(resource, &pool));
  EXPECT(!umfPoolGetName(pool, &text) && !strcmp(text, "hipmm"));
  char *first = umfPoolMalloc(pool, 1000), *zeroed = umfPoolCalloc(pool, 30, 100);
  char *aligned = umfPoolAlignedMalloc(pool, 10, 8192);
  EXPECT(first && zeroed && (uintptr_t)aligned % 8192 == 0);
  for (int i = 0; i < 3000; i++) EXPECT(!zeroed[i]);
  memset(first, 5, 1000);
  EXPECT(!umfPoolMallocUsableSize(pool, first, &bytes) && bytes >= 1000);
  EXPECT(!umfPoolMallocUsableSize(pool, NULL, &bytes) && !bytes);
  first = umfPoolRealloc(pool, first, 100000);
  EXPECT(first && first[0] == 5 && first[999] == 5);
  EXPECT(!umfPoolCalloc(pool, SIZE_MAX / 2, 3));
  EXPECT(umfPoolGetLastAllocationError(pool) == UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT(!umfPoolMalloc(pool, (size_t)1 << 45) && strstr(hipmm_last_error_message(), "32 TiB"));
  EXPECT(umfPoolGetLastAllocationError(pool) == UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT(!umfPoolFree(pool, first) && !umfPoolFree(pool, zeroed) && !umfPoolFree(pool, aligned) &&
         !umfPoolFree(pool, NULL));
  EXPECT(umfPoolFree(pool, zeroed) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
  EXPECT(counters_of(resource).current_count == 0);
#if UMF_POOL_OPS_VERSION_CURRENT >= UMF_MAKE_VERSION(1, 1)
  EXPECT(!umfPoolTrimMemory(pool, 0));
#endif
  EXPECT(!umfPoolDestroy(pool));
}

/* UMF's own pool divides memory of hipmm. */
static void a_pool_of_umf_is_over_hipmm(struct hipmm_resource *resource)
{
#ifdef REAL_UMF
  umf_memory_provider_handle_t provider;
  umf_disjoint_pool_params_handle_t params;
  umf_memory_pool_handle_t pool, found = NULL;
  enum { BLOCKS = 1000 };
  static unsigned char *blocks[BLOCKS];
  EXPECT(!hipmm_umf_provider_create(resource, &provider) && !umfDisjointPoolParamsCreate(&params));
  EXPECT(!umfPoolCreate(umfDisjointPoolOps(), provider, params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool));
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = umfPoolMalloc(pool, (size_t)(i % 50 * 700 + 1));
    EXPECT(blocks[i]);
    memset(blocks[i], i % 251, (size_t)(i % 50 * 700 + 1));
  }
  EXPECT(!umfPoolByPtr(blocks[5], &found) && found == pool);
  for (int i = 0; i < BLOCKS; i++) {
    for (int at = 0; at <= i % 50 * 700; at++) EXPECT(blocks[i][at] == i % 251);
    EXPECT(!umfPoolFree(pool, blocks[i]));
  }
  EXPECT(!umfPoolDestroy(pool) && !umfDisjointPoolParamsDestroy(params));
#endif
  EXPECT(counters_of(resource).current_count == 0);
}

static void fill_and_free(struct hipmm_resource *resource)
{
  static const size_t sizes[] = {1, 4096, 5000, 1 << 20, 40 << 20};
  enum { N = sizeof sizes / sizeof *sizes };
  char *ptrs[N];
  for (int i = 0; i < N; i++) {
    EXPECT(!hipmm_allocate(resource, sizes[i], NULL, (void **)&ptrs[i]));
    memset(ptrs[i], i + 1, sizes[i]);
  }
  for (int i = 0; i < N; i++) {
    EXPECT(ptrs[i][0] == i + 1 && ptrs[i][sizes[i] - 1] == i + 1);
    EXPECT(!hipmm_deallocate(resource, ptrs[i], sizes[i], NULL));
  }
}

/* The program's provider; and the provider that a graph names, for each of which a block is too large. */
static void umf_is_a_source(void)
{
  umf_os_memory_provider_params_handle_t params;
  umf_memory_provider_handle_t provider;
  struct hipmm_resource *resource;
  void *ptr;
  EXPECT(!umfOsMemoryProviderParamsCreate(&params));
  EXPECT(!umfMemoryProviderCreate(umfOsMemoryProviderOps(), params, &provider) &&
         !umfOsMemoryProviderParamsDestroy(params));
  EXPECT(!hipmm_umf_allocator_register("mine", provider));
  static const char *const graphs[] = {
      "{\"stack\": [{\"type\": \"callback\", \"allocator\": \"mine\"}]}",
      "{\"stack\": [{\"type\": \"pool\", \"growth\": \"segments\"}, "
      "{\"type\": \"callback\", \"allocator\": \"mine\"}]}",
      "{\"stack\": [\"umf\"]}", "{\"stack\": [{\"type\": \"pool\", \"growth\": \"segments\"}, \"umf\"]}",
      "{\"stack\": [\"arena\", {\"type\": \"umf\", \"numa_mode\": \"bind\", \"numa_nodes\": [\"0\"]}]}"};
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    EXPECT(!hipmm_stack_build_from_string(0, NULL, graphs[i], &resource));
    fill_and_free(resource);
    fill_and_free(resource);
    EXPECT(hipmm_allocate(resource, (size_t)1 << 50, NULL, &ptr) == HIPMM_E_OUT_OF_MEMORY);
    EXPECT(!hipmm_resource_trim(resource, 0));
    EXPECT(!hipmm_allocate(resource, 777, NULL, &ptr)); /* freed with the stack */
    hipmm_resource_release(resource);
  }
  EXPECT(!hipmm_umf_allocator_register("mine", NULL) && !umfMemoryProviderDestroy(provider));
}

int main(void)
{
  struct hipmm_resource *resource;
  EXPECT(!hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"statistics\", \"pool\", \"device\"]}"));
  EXPECT(!hipmm_resource_get_current(&resource));
  hipmm_is_a_provider(resource);
  hipmm_is_a_pool(resource);
  a_pool_of_umf_is_over_hipmm(resource);
  umf_is_a_source();
  hipmm_resource_release(resource);
  EXPECT(!hipmm_finalize());
  return 0;
}
