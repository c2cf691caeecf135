/* SPDX-License-Identifier: MIT */
/* torch.c: the hooks of PyTorch's pluggable allocator (hipmm/torch.h). They return no status: a failure is logged, and
 * PyTorch gets NULL. They never throw, except through the function that hipmm_torch_on_failure() was given. Functions that
 * are no hooks return a status, and leave it to the caller to tell of it. */
#include "../base/error.h"
#include "../base/lock_order.h"
#include "../base/log.h"
#include "../base/units.h"
#include "../graph/graph.h"
#include "../inspect/inspect.h"
#include "../runtime/hip.h"
#include "framework_device.h"
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
  lock_order_enter_program();
  lock_order_leave_program();
  if (function) function(message);
  return NULL;
}

static enum hipmm_status torch_last_status(void)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  hipmm_last_error(&error);
  return error.status;
}

/* The status of the thread's allocation that has failed, whose message now has what private pools keep too, and the memory
 * fraction. */
static enum hipmm_status torch_explain(int number)
{
  enum hipmm_status status = torch_last_status();
  const struct framework_device *device = framework_find(number);
  size_t limit = device ? atomic_load(&device->limit) : SIZE_MAX;
  char text[100], size[UNITS_TEXT_BYTES];
  if (hipmm_is_out_of_memory(status)) torch_pools_explain(number);
  if (status != HIPMM_E_OUT_OF_MEMORY || limit == SIZE_MAX) return status;
  snprintf(text, sizeof text, "; the memory fraction is %s", units_format_bytes(limit, size, sizeof size));
  error_add(text);
  return status;
}

/* The message begins with the words by which programs recognise PyTorch's own error. */
static void *torch_refuse(int number)
{
  static _Thread_local char message[2200];
  (void)torch_explain(number);
  bool amd = hipmm_runtime() && !strcmp(hipmm_runtime(), "amd");
  snprintf(message, sizeof message, "%s out of memory. hipmm: %s", amd ? "HIP" : "CUDA", hipmm_last_error_message());
  framework_fail_allocation("torch");
  return torch_fail(message);
}

/* Under a limit the bytes are counted first. Without one they are counted once they are allocated, so that the peak never has
 * those of an allocation that fails. */
static inline void *torch_allocate_counted(struct framework_device *device, size_t bytes, hipmm_stream_t stream)
{
  void *ptr = NULL;
  size_t limit = atomic_load_explicit(&device->limit, memory_order_relaxed);
  bool is_limited = __builtin_expect(limit != SIZE_MAX, 0);
  if (is_limited && !framework_count_within(device, bytes, limit)) return NULL;
  enum hipmm_status status = framework_allocate(device, bytes, stream, &ptr);
  if (__builtin_expect(status, 0)) {
    if (is_limited) framework_uncount(device, bytes);
    return NULL;
  }
  framework_count(device, is_limited ? 0 : bytes);
  return ptr;
}

/* There are private pools, or blocks that wait for further streams: the resource gets those whose wait is over, and all of them
 * when memory is short. */
static void *torch_allocate_apart(struct framework_device *device, size_t bytes, hipmm_stream_t stream)
{
  struct torch_pool *pool;
  torch_waiting_look(device);
  void *ptr = torch_pool_allocate(device, bytes, stream, &pool);
  if (ptr) return ptr;
  ptr = torch_allocate_counted(device, bytes, stream);
  if (!ptr && hipmm_is_out_of_memory(torch_last_status()) && torch_waiting_free(device, true))
    ptr = torch_allocate_counted(device, bytes, stream);
  if (!pool || torch_pool_adopt(pool, ptr) || !ptr) return ptr;
  framework_free(device, ptr, bytes, stream);
  error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  return NULL;
}

static inline void *torch_allocate_for(struct framework_device *device, size_t bytes, hipmm_stream_t stream)
{
  if (__builtin_expect(!framework_has_stream(device, stream), 0)) framework_retain_stream(device, stream);
  bool is_apart = atomic_load_explicit(&device->n_apart, memory_order_acquire) != 0;
  return __builtin_expect(is_apart, 0) ? torch_allocate_apart(device, bytes, stream)
                                       : torch_allocate_counted(device, bytes, stream);
}

void *hipmm_torch_malloc(ssize_t bytes, int number, hipmm_stream_t stream)
{
  void *ptr = NULL;
  if (!bytes) return NULL;
  struct framework_call call = framework_enter(number, FRAMEWORK_TORCH);
  if (__builtin_expect(!call.device, 0)) {
    framework_fail_allocation("torch");
    return torch_fail(hipmm_last_error_message());
  }
  if (__builtin_expect(bytes > 0, 1))
    ptr = torch_allocate_for(call.device, (size_t)bytes, stream);
  else
    error_set(HIPMM_E_ARGUMENT, "%zd is not a size", bytes);
  framework_leave(call);
  return __builtin_expect(ptr != NULL, 1) ? ptr : torch_refuse(number);
}

enum hipmm_status hipmm_torch_try_malloc(size_t bytes, int number, hipmm_stream_t stream, void **ptr_out)
{
  void *ptr = NULL;
  if (!ptr_out && lifecycle_refuses_calls()) return lifecycle_check();
  if (!ptr_out) return error_set(HIPMM_E_ARGUMENT, "ptr_out is NULL");
  if (bytes) {
    struct framework_call call = framework_enter(number, FRAMEWORK_TORCH);
    if (!call.device) return torch_last_status();
    ptr = torch_allocate_for(call.device, bytes, stream);
    framework_leave(call);
    if (!ptr) return torch_explain(number);
  }
  *ptr_out = ptr;
  return HIPMM_OK;
}

/* ---- Freeing ---- */

/* For callers that do not know the size; 0 if no resource can tell. */
static size_t torch_size_of(const struct framework_device *device, const void *ptr)
{
  struct hipmm_block block;
  return instance_find(instance_from(framework_owner(device, ptr)), ptr, &block) ? 0 : block.bytes;
}

/* After hipmm_finalize() the memory is gone, and PyTorch may still free its last blocks: nothing happens. */
void hipmm_torch_free(void *ptr, ssize_t bytes, int number, hipmm_stream_t stream)
{
  if (!ptr) return;
  struct framework_call call = framework_enter_known(number);
  if (!call.device) return;
  if (__builtin_expect(!bytes, 0)) bytes = (ssize_t)torch_size_of(call.device, ptr);
  if (__builtin_expect(torch_blocks_may_have(ptr), 0))
    torch_pool_free(call.device, ptr, (size_t)bytes, stream);
  else
    framework_free(call.device, ptr, (size_t)bytes, stream);
  framework_leave(call);
}

/* ---- The further hooks ---- */

/* The pool of segments divides allocations of the runtime, which the program can hand to other processes. */
static const char torch_pool[] = "{\"stack\": [\"pool\", \"device\"]}",
                  torch_segments[] = "{\"stack\": [{\"type\": \"pool\", \"growth\": \"segments\"}, \"device\"]}";

/* PyTorch calls it with 0 devices before it has counted them, and only for its current allocator. */
void hipmm_torch_init(int device_count)
{
  int ours;
  if (device_count < 0 && atomic_load(&lifecycle_now) == LIFECYCLE_BEFORE)
    graph_set_without_file(device_count == HIPMM_TORCH_POOL ? torch_pool : torch_segments);
  if (device_count > 0) framework_begin_torch();
  if (device_count <= 0 || framework_initialise() || hipmm_device_count(&ours)) return;
  if (ours != device_count)
    log_line(HIPMM_LOG_WARNING, "torch",
             "PyTorch has %d devices and the %s runtime %d; the memory of another runtime "
             "is of no use to it: set HIPMM_RUNTIME, or \"runtime\" in the graph",
             device_count, hipmm_runtime(), ours);
}

void hipmm_torch_reset(void)
{
  for (int number = 0; number < STACK_MOST_DEVICES; number++) {
    struct framework_call call = framework_enter_known(number);
    if (!call.device) continue;
    struct hipmm_resource *current = device_table_resource_if_built(number);
    torch_waiting_free(call.device, true);
    if (hipmm_resource_trim(call.device->resource, 0) ||
        (current != call.device->resource && hipmm_resource_trim(current, 0)))
      framework_log_failure("torch", "idle memory is not freed");
    framework_leave(call);
  }
}

/* A pool that holds memory for several blocks rounds and divides it, so it has the limit too. With a limit of 0 nothing is
 * allocated from it. */
static enum hipmm_status torch_set_fraction(struct framework_device *device, double fraction)
{
  size_t total;
  if (!(fraction >= 0 && fraction <= 1))
    return error_set(HIPMM_E_ARGUMENT, "%g is not a fraction; it is from 0 to 1", fraction);
  enum hipmm_status status = hipmm_device_memory(device->device, NULL, &total);
  if (status) return status;
  size_t limit = fraction < 1 ? (size_t)((double)total * fraction) : SIZE_MAX;
  atomic_store(&device->limit, limit);
  if (!limit) return HIPMM_OK;
  return settings_bound(instance_from(device->resource)->stack, "maximum_size",
                        limit == SIZE_MAX ? HIPMM_UNLIMITED : limit);
}

void hipmm_torch_memory_fraction(double fraction, int number)
{
  struct framework_call call = framework_enter(number, FRAMEWORK_TORCH);
  if (!call.device || torch_set_fraction(call.device, fraction))
    framework_log_failure("torch", "the memory fraction is not set");
  if (call.device) framework_leave(call);
}

enum hipmm_status hipmm_torch_memory(int number, size_t *live_out, size_t *peak_out)
{
  enum hipmm_status status = lifecycle_enter();
  if (status) return status;
  status = device_table_check(number);
  const struct framework_device *device = status ? NULL : framework_find(number);
  if (!status && live_out) *live_out = device ? atomic_load(&device->live) : 0;
  if (!status && peak_out) *peak_out = device ? atomic_load(&device->peak) : 0;
  lifecycle_leave();
  return status;
}

enum hipmm_status hipmm_torch_reset_peak(int number)
{
  enum hipmm_status status = lifecycle_enter();
  if (status) return status;
  status = device_table_check(number);
  struct framework_device *device = status ? NULL : framework_find(number);
  if (device) atomic_store(&device->peak, atomic_load(&device->live));
  lifecycle_leave();
  return status;
}

/* PyTorch does not tell the device of the pointer. */
static bool torch_find_block(void *ptr, struct hipmm_block *block_out, bool *is_certain_out)
{
  *is_certain_out = true;
  for (int number = 0; number < STACK_MOST_DEVICES; number++) {
    struct framework_call call = framework_enter_known(number);
    if (!call.device) continue;
    enum hipmm_status status = instance_find(instance_from(framework_owner(call.device, ptr)), ptr, block_out);
    framework_leave(call);
    if (!status) return true;
    if (status != HIPMM_E_POINTER) *is_certain_out = false;
  }
  return false;
}

void *hipmm_torch_base_alloc(void *ptr, size_t *bytes_out)
{
  bool is_certain;
  struct hipmm_block block = {NULL, 0};
  if (!ptr || !torch_find_block(ptr, &block, &is_certain)) block = (struct hipmm_block){NULL, 0};
  if (bytes_out) *bytes_out = block.bytes;
  return block.ptr;
}

/* A source knows its allocations. The driver's own answer is no help: a mapping can begin at the address too. */
int hipmm_torch_is_allocation(void *ptr)
{
  struct hipmm_block block;
  bool is_found = false;
  for (int number = 0; number < STACK_MOST_DEVICES && !is_found; number++) {
    struct framework_call call = framework_enter_known(number);
    if (!call.device) continue;
    const struct instance *owner = instance_from(framework_owner(call.device, ptr));
    if (!instance_find(owner, ptr, &block))
      CLOSURE_EACH(one, owner) is_found = is_found || block_map_find(&one->block_map, ptr, &block);
    framework_leave(call);
  }
  return is_found;
}

/* PyTorch also records streams of foreign memory, whose record would never be removed. */
void hipmm_torch_record_stream(void *ptr, hipmm_stream_t stream)
{
  bool is_certain;
  int current;
  struct hipmm_block block;
  if (!ptr || (!torch_find_block(ptr, &block, &is_certain) && is_certain)) return;
  torch_block_add_use(ptr, stream, device_table_current(&current) ? 0 : current);
}

void hipmm_torch_begin_allocate_to_pool(int number, struct hipmm_torch_pool pool, const void *filter)
{
  struct framework_call call = framework_enter(number, FRAMEWORK_TORCH);
  if (call.device) torch_pool_begin(call.device, pool, filter);
  if (call.device) framework_leave(call);
  if (!call.device) framework_log_failure("torch", "no private pool is begun");
}

void hipmm_torch_end_allocate_to_pool(int number, struct hipmm_torch_pool pool)
{
  struct framework_call call = framework_enter_known(number);
  if (!call.device) return;
  torch_pool_end(call.device, pool);
  framework_leave(call);
}

void hipmm_torch_release_pool(int number, struct hipmm_torch_pool pool)
{
  struct framework_call call = framework_enter_known(number);
  if (!call.device) return;
  torch_pool_release(call.device, pool);
  framework_leave(call);
}
