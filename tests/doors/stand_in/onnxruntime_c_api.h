/* SPDX-License-Identifier: MIT */
/* onnxruntime_c_api.h: what tests/example/ort_allocator.c needs of ONNX Runtime: our own declarations and implementation, by
 * which it compiles with ONNX Runtime's header as well. A tensor's memory comes from the allocator that it is given. */
#ifndef HIPMM_TESTS_DOORS_STAND_IN_ORT_H
#define HIPMM_TESTS_DOORS_STAND_IN_ORT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtValue OrtValue;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtAllocator {
  uint32_t version;
  void *(*Alloc)(struct OrtAllocator *allocator, size_t size);
  void (*Free)(struct OrtAllocator *allocator, void *ptr);
  const struct OrtMemoryInfo *(*Info)(const struct OrtAllocator *allocator);
} OrtAllocator;
enum {
  ORT_LOGGING_LEVEL_WARNING = 2,
  OrtDeviceAllocator = 0,
  OrtMemTypeDefault = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1
};

typedef struct OrtApi {
  const char *(*GetErrorMessage)(const OrtStatus *status);
  OrtStatus *(*CreateEnv)(int level, const char *name, OrtEnv **env);
  OrtStatus *(*CreateMemoryInfo)(const char *name, int type, int id, int memory, OrtMemoryInfo **info);
  OrtStatus *(*RegisterAllocator)(OrtEnv *env, OrtAllocator *allocator);
  OrtStatus *(*UnregisterAllocator)(OrtEnv *env, const OrtMemoryInfo *info);
  OrtStatus *(*CreateTensorAsOrtValue)(OrtAllocator *allocator, const int64_t *shape, size_t n, int type,
                                       OrtValue **value);
  void (*ReleaseValue)(OrtValue *value);
  void (*ReleaseEnv)(OrtEnv *env);
  void (*ReleaseMemoryInfo)(OrtMemoryInfo *info);
} OrtApi;
typedef struct OrtApiBase {
  const OrtApi *(*GetApi)(uint32_t version);
} OrtApiBase;

struct OrtStatus {
  const char *text;
};
struct OrtEnv {
  OrtAllocator *allocator;
};
struct OrtMemoryInfo {
  char name[20];
};
struct OrtValue {
  OrtAllocator *allocator;
  void *memory;
};

static inline const char *ort_message(const OrtStatus *status)
{
  return status->text;
}

static inline OrtStatus *ort_create_env(int level, const char *name, OrtEnv **env)
{
  (void)level, (void)name;
  *env = calloc(1, sizeof **env);
  return NULL;
}

static inline OrtStatus *ort_create_info(const char *name, int type, int id, int memory, OrtMemoryInfo **info)
{
  (void)type, (void)id, (void)memory;
  *info = calloc(1, sizeof **info);
  strncpy((*info)->name, name, sizeof(*info)->name - 1);
  return NULL;
}

static inline OrtStatus *ort_register(OrtEnv *env, OrtAllocator *allocator)
{
  static OrtStatus failure = {"the allocator is incomplete"};
  if (!allocator->version || !allocator->Alloc || !allocator->Free || !allocator->Info(allocator)) return &failure;
  env->allocator = allocator;
  return NULL;
}

static inline OrtStatus *ort_unregister(OrtEnv *env, const OrtMemoryInfo *info)
{
  static OrtStatus failure = {"there is no such allocator"};
  if (!env->allocator || env->allocator->Info(env->allocator) != info) return &failure;
  env->allocator = NULL;
  return NULL;
}

static inline OrtStatus *ort_create_tensor(OrtAllocator *allocator, const int64_t *shape, size_t n, int type,
                                           OrtValue **value)
{
  static OrtStatus failure = {"no memory"};
  size_t bytes = 4;
  (void)type;
  for (size_t i = 0; i < n; i++) bytes *= (size_t)shape[i];
  *value = calloc(1, sizeof **value);
  (*value)->allocator = allocator;
  (*value)->memory = allocator->Alloc(allocator, bytes);
  return (*value)->memory ? NULL : &failure;
}

static inline void ort_release_value(OrtValue *value)
{
  value->allocator->Free(value->allocator, value->memory);
  free(value);
}

static inline void ort_release_env(OrtEnv *env)
{
  free(env);
}

static inline void ort_release_info(OrtMemoryInfo *info)
{
  free(info);
}

static inline const OrtApi *ort_api(uint32_t version)
{
  static const OrtApi api = {ort_message,       ort_create_env,    ort_create_info, ort_register,    ort_unregister,
                             ort_create_tensor, ort_release_value, ort_release_env, ort_release_info};
  return version ? &api : NULL;
}

static inline const OrtApiBase *OrtGetApiBase(void)
{
  static const OrtApiBase base = {ort_api};
  return &base;
}

#endif
