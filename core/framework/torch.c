/* SPDX-License-Identifier: MIT */
/* torch.c: the hooks of PyTorch's pluggable allocator (hipmm/torch.h). They return no status: what fails is logged, and
 * PyTorch sees NULL. They never throw, save through the function that hipmm_torch_on_failure() was given. */
#include "../base/error.h"
#include "../base/log.h"
#include "../runtime/hip.h"
#include "framework_device.h"
#include "torch_blocks.h"
#include "torch_pools.h"

#include <hipmm/stream.h>
#include <hipmm/torch.h>
#include <stdio.h>
#include <string.h>

static void (*_Atomic on_failure)(const char *message);

void hipmm_torch_on_failure(void (*function)(const char *message))
{
  atomic_store(&on_failure, function);
}

/* ---- Allocating ---- */

/* Nothing may be done after the call: the function may throw. */
static void *torch_fail(const char *message)
{
  void (*function)(const char *) = atomic_load(&on_failure);
  if (function) function(message);
  return NULL;
}

/* Begins with the words by which programs know PyTorch's own error. */
static void *torch_refuse(void)
{
  static _Thread_local char message[2200];
  bool amd = hipmm_runtime() && !strcmp(hipmm_runtime(), "amd");
  snprintf(message, sizeof message, "%s out of memory. hipmm: %s", amd ? "HIP" : "CUDA", hipmm_last_error_message());
  framework_complain("torch", "cannot allocate");
  return torch_fail(message);
}

static inline void *torch_allocate_counted(struct framework_device *device, size_t bytes, hipStream_t stream)
{
  void *ptr = NULL;
  struct hipmm_resource *resource = device->resource;
  if (__builtin_expect(!framework_count(device, bytes), 0)) return NULL;
  if (__builtin_expect(!resource->ops->allocate(resource->self, bytes, HIPMM_ALIGNMENT, stream, &ptr), 1)) return ptr;
  framework_uncount(device, bytes);
  return NULL;
}

static void *torch_allocate_in_pool(struct framework_device *device, size_t bytes, hipStream_t stream)
{
  void *ptr = torch_pool_take(device, bytes, stream);
  if (ptr) return ptr;
  ptr = torch_allocate_counted(device, bytes, stream);
  if (!ptr || torch_pool_adopt(device, ptr)) return ptr;
  framework_free(device, ptr, bytes, stream);
  error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  return NULL;
}

static void *torch_fail_without_device(void)
{
  framework_complain("torch", "cannot allocate");
  return torch_fail(hipmm_last_error_message());
}

static inline void *torch_allocate_for(struct framework_device *device, size_t bytes, hipStream_t stream)
{
  if (__builtin_expect(!framework_knows_stream(device, stream), 0)) framework_promise_stream(device, stream);
  bool in_pool = atomic_load_explicit(&device->pool, memory_order_acquire) != NULL;
  return __builtin_expect(in_pool, 0) ? torch_allocate_in_pool(device, bytes, stream)
                                      : torch_allocate_counted(device, bytes, stream);
}

void *hipmm_torch_malloc(ssize_t bytes, int number, hipStream_t stream)
{
  void *ptr = NULL;
  if (!bytes) return NULL;
  struct framework_device *device = framework_enter(number, FRAMEWORK_TORCH);
  if (__builtin_expect(!device, 0)) return torch_fail_without_device();
  if (__builtin_expect(bytes > 0, 1))
    ptr = torch_allocate_for(device, (size_t)bytes, stream);
  else
    error_set(HIPMM_E_ARGUMENT, "%zd is not a size", bytes);
  framework_leave();
  return __builtin_expect(ptr != NULL, 1) ? ptr : torch_refuse();
}

/* ---- Freeing ---- */

/* What the resource would say of the size, or that the block is not live: a pool that keeps the block does not ask. */
static enum hipmm_status torch_check_live(const struct framework_device *device, const void *ptr, size_t bytes)
{
  struct hipmm_block block;
  enum hipmm_status status = instance_find(instance_from(device->resource), ptr, &block);
  if (status == HIPMM_E_NOT_SUPPORTED) return HIPMM_OK; /* nobody can tell */
  if (status || block.bytes == bytes) return status;
  return error_refuse(HIPMM_E_SIZE, NULL, "{0:hex} was allocated with {1} bytes and cannot be freed with {2}",
                      (uintptr_t)ptr, block.bytes, bytes);
}

static void torch_free_noted(struct framework_device *device, void *ptr, size_t bytes, hipStream_t stream)
{
  if (torch_check_live(device, ptr, bytes) == HIPMM_E_SIZE) {
    framework_complain("torch", "a block is not freed");
    return; /* its note stays */
  }
  struct torch_block note = torch_blocks_take(ptr);
  if (note.kept) {
    torch_block_pool(ptr, note.pool, true);
    error_set(HIPMM_E_POINTER, "%p was freed before", ptr);
    framework_complain("torch", "a block is not freed");
    return;
  }
  if (torch_pool_keep(device, note, ptr, bytes, stream)) return;
  torch_settle(note.uses, device->device, stream);
  framework_free(device, ptr, bytes, stream);
}

/* For callers that do not know; 0 if nobody does. */
static size_t torch_size_of(const struct framework_device *device, const void *ptr)
{
  struct hipmm_block block;
  return instance_find(instance_from(device->resource), ptr, &block) ? 0 : block.bytes;
}

/* After hipmm_finalize() the memory is gone, and PyTorch may still come with its last blocks. */
void hipmm_torch_free(void *ptr, ssize_t bytes, int number, hipStream_t stream)
{
  struct framework_device *device = ptr ? framework_enter_known(number) : NULL;
  if (!device) return;
  if (__builtin_expect(!bytes, 0)) bytes = (ssize_t)torch_size_of(device, ptr);
  if (__builtin_expect(torch_blocks_may_have(ptr), 0))
    torch_free_noted(device, ptr, (size_t)bytes, stream);
  else
    framework_free(device, ptr, (size_t)bytes, stream);
  framework_leave();
}

/* ---- The further hooks ---- */

/* PyTorch calls it with 0 devices before it knows them. */
void hipmm_torch_init(int device_count)
{
  int ours;
  if (device_count <= 0 || framework_initialise() || hipmm_device_count(&ours)) return;
  if (ours != device_count)
    log_line(HIPMM_LOG_WARNING, "torch",
             "PyTorch has %d devices and the %s runtime %d; the memory of another runtime "
             "is of no use to it: set HIPMM_RUNTIME, or \"runtime\" in the graph",
             device_count, hipmm_runtime(), ours);
}

void hipmm_torch_reset(void)
{
  for (int number = 0; number < DEVICE_TABLE_MOST; number++) {
    struct framework_device *device = framework_enter_known(number);
    if (!device) continue;
    if (hipmm_resource_trim(device->resource, 0)) framework_complain("torch", "idle memory is not given back");
    framework_leave();
  }
}

static enum hipmm_status torch_set_fraction(struct framework_device *device, double fraction)
{
  size_t total;
  if (!(fraction >= 0 && fraction <= 1))
    return error_set(HIPMM_E_ARGUMENT, "%g is not a fraction; it is from 0 to 1", fraction);
  enum hipmm_status status = hipmm_device_memory(device->device, NULL, &total);
  if (!status) atomic_store(&device->limit, fraction < 1 ? (size_t)((double)total * fraction) : SIZE_MAX);
  return status;
}

void hipmm_torch_memory_fraction(double fraction, int number)
{
  struct framework_device *device = framework_get(number, FRAMEWORK_TORCH);
  if (!device || torch_set_fraction(device, fraction)) framework_complain("torch", "the memory fraction is not set");
}

/* Which device a pointer belongs to is not said. */
static bool torch_find_block(void *ptr, struct hipmm_block *block_out, bool *sure_out)
{
  *sure_out = true;
  for (int number = 0; number < DEVICE_TABLE_MOST; number++) {
    struct framework_device *device = framework_enter_known(number);
    if (!device) continue;
    enum hipmm_status status = instance_find(instance_from(device->resource), ptr, block_out);
    framework_leave();
    if (!status) return true;
    if (status != HIPMM_E_POINTER) *sure_out = false;
  }
  return false;
}

void *hipmm_torch_base_alloc(void *ptr, size_t *bytes_out)
{
  bool sure;
  struct hipmm_block block = {NULL, 0};
  if (!ptr || !torch_find_block(ptr, &block, &sure)) block = (struct hipmm_block){NULL, 0};
  if (bytes_out) *bytes_out = block.bytes;
  return block.ptr;
}

int hipmm_torch_is_allocation(void *ptr)
{
  bool sure;
  size_t bytes = 0;
  void *base = NULL, *symbol = NULL;
  int (*get_range)(void **, size_t *, void *) = NULL;
  struct hipmm_block block;
  if (!ptr || lifecycle_is_forked() || !torch_find_block(ptr, &block, &sure)) return 0;
  symbol = hip_symbol("hipMemGetAddressRange");
  memcpy(&get_range, &symbol, sizeof get_range);
  if (!get_range) return 0;
  int code = get_range(&base, &bytes, ptr);
  if (code) hip_table()->GetLastError();
  return !code && base == ptr;
}

/* PyTorch brings tensors of foreign memory as well: a note of it would never be taken away. */
void hipmm_torch_record_stream(void *ptr, hipStream_t stream)
{
  bool sure;
  int current;
  struct hipmm_block block;
  if (!ptr || lifecycle_is_forked() || atomic_load(&lifecycle_now) != LIFECYCLE_READY) return;
  if (!torch_find_block(ptr, &block, &sure) && sure) return;
  torch_block_use(ptr, stream, device_table_current(&current) ? 0 : current);
}

void hipmm_torch_begin_allocate_to_pool(int number, struct hipmm_torch_pool pool, const void *filter)
{
  (void)filter;
  struct framework_device *device = framework_enter(number, FRAMEWORK_TORCH);
  if (device) torch_pool_begin(device, pool);
  if (device) framework_leave();
  if (!device) framework_complain("torch", "no private pool is begun");
}

void hipmm_torch_end_allocate_to_pool(int number, struct hipmm_torch_pool pool)
{
  struct framework_device *device = framework_enter_known(number);
  if (!device) return;
  torch_pool_end(device, pool);
  framework_leave();
}

void hipmm_torch_release_pool(int number, struct hipmm_torch_pool pool)
{
  struct framework_device *device = framework_enter_known(number);
  if (!device) return;
  torch_pool_release(device, pool);
  framework_leave();
}
