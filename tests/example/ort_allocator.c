/* SPDX-License-Identifier: MIT */
/* ort_allocator.c: ONNX Runtime takes its memory from hipmm, as an OrtAllocator of the environment.
 *
 * Run: with ONNX Runtime 1.32.0 (PyPI's library, a header for API 12) on hipmm's software device; by tests/doors/recipes.sh with
 * a stand-in, whose declarations are those for API 13. Not run: on a GPU, nor a session. For the provider for NVIDIA the name in
 * memory_info is "Cuda" instead of "Cpu".
 *
 *     cc ort_allocator.c -o program $(pkg-config --cflags --libs hipmm) -I ONNXRUNTIME/include -lonnxruntime
 *
 * A session uses the allocator of the environment with the entry "session.use_env_allocators" of its options. */
#include <hipmm/hipmm.h>
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>

struct hipmm_ort_allocator {
  OrtAllocator base; /* first */
  OrtMemoryInfo *memory_info;
  struct hipmm_resource *resource;
};

static void *hipmm_ort_alloc(OrtAllocator *base, size_t bytes)
{
  void *ptr = NULL;
  return hipmm_allocate(((struct hipmm_ort_allocator *)base)->resource, bytes, NULL, &ptr) ? NULL : ptr;
}

static void hipmm_ort_free(OrtAllocator *base, void *ptr)
{
  if (!ptr) return;
  if (hipmm_deallocate(((struct hipmm_ort_allocator *)base)->resource, ptr, 0, NULL))
    fprintf(stderr, "%s\n", hipmm_last_error_message());
}

static const OrtMemoryInfo *hipmm_ort_info(const OrtAllocator *base)
{
  return ((const struct hipmm_ort_allocator *)base)->memory_info;
}

/* ---- A program ---- */

static const OrtApi *ort;

static void check(OrtStatus *status)
{
  if (!status) return;
  fprintf(stderr, "%s\n", ort->GetErrorMessage(status));
  exit(1);
}

static void check_hipmm(enum hipmm_status status)
{
  if (!status) return;
  fprintf(stderr, "%s\n", hipmm_last_error_message());
  exit(1);
}

int main(void)
{
  struct hipmm_ort_allocator allocator = {.base = {.version = 1, /* the fields up to Info */
                                                   .Alloc = hipmm_ort_alloc,
                                                   .Free = hipmm_ort_free,
                                                   .Info = hipmm_ort_info}};
  struct hipmm_statistics counters;
  const int64_t shape[] = {1000, 10};
  OrtEnv *env;
  OrtValue *tensor;
  ort = OrtGetApiBase()->GetApi(13);
  check_hipmm(hipmm_init());
  check_hipmm(hipmm_resource_get_current(&allocator.resource));
  check(ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "hipmm", &env));
  check(ort->CreateMemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault, &allocator.memory_info));
  check(ort->RegisterAllocator(env, &allocator.base));

  check(ort->CreateTensorAsOrtValue(&allocator.base, shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &tensor));
  check_hipmm(hipmm_statistics_get(allocator.resource, &counters));
  printf("a tensor has %lld bytes of hipmm\n", (long long)counters.current_bytes);
  ort->ReleaseValue(tensor);

  check(ort->UnregisterAllocator(env, allocator.memory_info));
  ort->ReleaseEnv(env);
  ort->ReleaseMemoryInfo(allocator.memory_info);
  check_hipmm(hipmm_statistics_get(allocator.resource, &counters));
  printf("%lld bytes are left\n", (long long)counters.current_bytes);
  hipmm_resource_release(allocator.resource);
  return hipmm_finalize() != HIPMM_OK;
}
