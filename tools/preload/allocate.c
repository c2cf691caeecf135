/* SPDX-License-Identifier: MIT */
/* allocate.c: the functions that allocate. Called by exports.c. A call that hipmm does not serve goes to the runtime with
 * its arguments unchanged: a size of 0, no address for the result, flags that ask for special memory, a stream that is
 * being captured (its memory belongs to the graph), a pool that hipmm does not serve (pools.h), a context of the driver
 * that is not the primary one of its device (contexts.h), a stack whose memory is not what the function promises. */
#include "operations.h"

#include "blocks.h"
#include "contexts.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "pools.h"
#include "shortage.h"
#include "streams.h"

#include <stdlib.h>

/* The arguments of a function besides the pointer and the size. */
enum takes { TAKES_NOTHING, TAKES_FLAGS, TAKES_STREAM, TAKES_POOL, TAKES_ROWS };

/* Memory in rows, of which `bytes` is the sum. */
struct rows {
  size_t *pitch_out;
  size_t width, height, pitch;
  unsigned element_bytes;
  size_t alignment; /* of the first row */
};

/* A call of any of the functions. */
struct request {
  enum hook hook;
  enum takes takes;
  void **ptr;
  size_t bytes;
  enum kind kind;
  unsigned flags, flags_served; /* the call is passed on if it has other flags than these, */
  unsigned flags_needed;        /* or lacks these */
  hipmm_stream_t stream;        /* as given */
  hipmm_hip_mempool_t pool;
  const struct rows *rows;
};

static int allocate_pass_on(const struct request *request)
{
  if (next_recurses(request->hook)) return HIPMM_HIP_ERROR_NOT_SUPPORTED;
  next_function next = next_function_of(request->hook);
  void **ptr = request->ptr;
  size_t bytes = request->bytes;
  hipmm_stream_t stream = request->stream;
  switch (request->takes) {
  case TAKES_NOTHING: return ((int (*)(void **, size_t))next)(ptr, bytes);
  case TAKES_FLAGS: return ((int (*)(void **, size_t, unsigned))next)(ptr, bytes, request->flags);
  case TAKES_STREAM: return ((int (*)(void **, size_t, hipmm_stream_t))next)(ptr, bytes, stream);
  case TAKES_POOL:
    return ((int (*)(void **, size_t, hipmm_hip_mempool_t, hipmm_stream_t))next)(ptr, bytes, request->pool, stream);
  default:
    return ((int (*)(void **, size_t *, size_t, size_t, unsigned))next)(
        ptr, request->rows->pitch_out, request->rows->width, request->rows->height, request->rows->element_bytes);
  }
}

/* Where the memory comes from, and for which stream. */
struct target {
  int device;
  hipmm_stream_t stream;
  bool is_ordered;              /* by the stream; false: the memory must be ready for every stream */
  struct pool_account *account; /* of the pool that the request names; a reference */
};

/* False if hipmm does not serve the request. The stream may be of another device than the pool: the memory is then made
 * ready for every stream. */
static bool allocate_find_target(const struct request *request, struct target *target_out)
{
  enum family family = hook_family(request->hook);
  int code = 0;
  if (!request->ptr || !request->bytes) return false;
  if (request->flags & ~request->flags_served || ~request->flags & request->flags_needed) return false;
  *target_out = (struct target){.stream = streams_of_caller(request->hook, request->stream)};
  /* Before hipmm is initialised: a driver that the program has not initialised refuses the call. */
  if (family == FAMILY_DRIVER && (init_is_off(family) || !contexts_are_primary(target_out->stream))) return false;
  if (!init_ready(family)) return false;
  if (request->takes != TAKES_STREAM && request->takes != TAKES_POOL) {
    target_out->device = contexts_current_device(family);
    return true;
  }
  hipmm_stream_t stream = target_out->stream;
  if ((uintptr_t)stream > 1 && (next_is_capturing(family, stream, &code) || code)) return false;
  int device = target_out->device = streams_device(family, stream);
  target_out->account =
      request->takes == TAKES_POOL ? pools_find(request->pool, &target_out->device) : pools_find_current(device);
  target_out->is_ordered = target_out->device == device;
  return target_out->account != NULL;
}

/* In the place of an error code: the resource does not align memory so, or its memory lacks the order of copies that the
 * runtime promises for this function's memory. */
enum { NOT_SUITED = -1 };

/* Between devices, a copy of this function's memory on a default stream waits for the default stream of the memory's device.
 * A copy of mapped memory does not. Nor does one of a driver's pool, which a graph has chosen by "async". */
static bool promises_order(const struct request *request)
{
  return request->kind == KIND_DEVICE && request->takes != TAKES_STREAM && request->takes != TAKES_POOL;
}

/* Memory that is not ordered by a stream must be ready for every stream: it is allocated for the idle stream, and the
 * thread waits for all that the idle stream was made to wait for. */
static int allocate_obtain(const struct request *request, const struct target *target, struct served_device *served,
                           struct block *block)
{
  struct hipmm_resource *resource = served->resources[request->kind];
  hipmm_stream_t stream = target->is_ordered ? target->stream : served->idle;
  size_t alignment = request->rows ? request->rows->alignment : HIPMM_ALIGNMENT;
  void *ptr = NULL, *base;
  size_t bytes;
  enum hipmm_status status = hipmm_allocate_aligned(resource, request->bytes, alignment, stream, &ptr);
  if (status == HIPMM_E_OUT_OF_MEMORY && release_has_deferred() && !release_synchronize())
    status = hipmm_allocate_aligned(resource, request->bytes, alignment, stream, &ptr);
  if (status == HIPMM_E_ARGUMENT && alignment > HIPMM_ALIGNMENT) return NOT_SUITED;
  if (status) return failure_of_hipmm(request->hook, request->bytes);
  if (served->may_lack_order && promises_order(request) && devices_are_mapped_at(ptr, &base, &bytes)) {
    atomic_store(&served->lacks_order, true);
    hipmm_deallocate_aligned(resource, ptr, request->bytes, alignment, stream);
    return NOT_SUITED;
  }
  *block = (struct block){.by_address = {.major = (uintptr_t)ptr, .minor = request->bytes},
                          .served = served,
                          .kind = request->kind,
                          .id = blocks_new_id(),
                          .flags = request->flags,
                          .account = pools_retain(target->account)};
  int code = target->is_ordered ? 0 : devices_wait_for_idle_stream(served);
  if (code) {
    blocks_release(block);
    return failure_of_call(request->hook, code);
  }
  blocks_insert(block);
  *request->ptr = ptr;
  if (request->rows) *request->rows->pitch_out = request->rows->pitch;
  return 0;
}

static enum outcome allocate_try(const struct request *request, int *code_out)
{
  struct target target;
  if (!allocate_find_target(request, &target)) return OUTCOME_PASSED;
  struct served_device *served = devices_get(hook_family(request->hook), target.device);
  bool is_served = served && served->resources[request->kind] &&
                   !(promises_order(request) && atomic_load_explicit(&served->lacks_order, memory_order_relaxed));
  if (is_served) {
    struct block *block = calloc(1, sizeof *block);
    *code_out = block ? allocate_obtain(request, &target, served, block)
                      : failure_refuse(request->hook, HIPMM_HIP_ERROR_OUT_OF_MEMORY, "no host memory is left");
    if (*code_out && block) blocks_free(block);
  }
  pools_release(target.account);
  if (!is_served || *code_out == NOT_SUITED) return OUTCOME_PASSED;
  return *code_out ? OUTCOME_FAILED : OUTCOME_SERVED;
}

static int allocate_from_stack(const struct request *request)
{
  int code = 0;
  bool is_outermost = init_enter();
  enum outcome outcome = is_outermost ? allocate_try(request, &code) : OUTCOME_PASSED;
  if (outcome == OUTCOME_PASSED) SHORTAGE_REPEAT(request->hook, is_outermost, code, allocate_pass_on(request));
  return reentry_finish(request->hook, outcome, code);
}

/* ---- The functions, by their arguments ---- */

int allocate_device(enum hook hook, void **ptr, size_t bytes)
{
  return allocate_from_stack(&(struct request){.hook = hook, .ptr = ptr, .bytes = bytes});
}

/* Flags ask for memory of a special kind: fine-grained, uncached, or for signals. */
int allocate_device_with_flags(enum hook hook, void **ptr, size_t bytes, unsigned flags)
{
  return allocate_from_stack(
      &(struct request){.hook = hook, .takes = TAKES_FLAGS, .ptr = ptr, .bytes = bytes, .flags = flags});
}

int allocate_device_on(enum hook hook, void **ptr, size_t bytes, hipmm_stream_t stream)
{
  return allocate_from_stack(
      &(struct request){.hook = hook, .takes = TAKES_STREAM, .ptr = ptr, .bytes = bytes, .stream = stream});
}

int allocate_device_from_pool(enum hook hook, void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream)
{
  return allocate_from_stack(
      &(struct request){.hook = hook, .takes = TAKES_POOL, .ptr = ptr, .bytes = bytes, .stream = stream, .pool = pool});
}

/* The bytes from row to row and the alignment of the first: what a texture needs, as the driver has it. False if the
 * request is one that the driver refuses. */
static bool allocate_measure_rows(struct rows *rows)
{
  enum { MAX_PITCH = 11, TEXTURE_ALIGNMENT = 14, TEXTURE_PITCH_ALIGNMENT = 51 };
  int alignment = 0, unit = 0, most = 0, device = contexts_current_device(FAMILY_DRIVER);
  next_function next = next_find(HOOK_cuDeviceGetAttribute);
  int (*attribute)(int *, int, int) = (int (*)(int *, int, int))next;
  bool is_known = next && device >= 0 && !attribute(&alignment, TEXTURE_ALIGNMENT, device) &&
                  !attribute(&unit, TEXTURE_PITCH_ALIGNMENT, device) && !attribute(&most, MAX_PITCH, device);
  if (unit < alignment) unit = alignment;
  bool is_sound = is_known && alignment > 0 && !(alignment & (alignment - 1)) && rows->pitch_out &&
                  rows->width <= (size_t)most &&
                  (rows->element_bytes == 4 || rows->element_bytes == 8 || rows->element_bytes == 16);
  if (!is_sound) return false;
  rows->alignment = (size_t)alignment;
  rows->pitch = (rows->width + (size_t)unit - 1) / (size_t)unit * (size_t)unit;
  return rows->pitch && rows->height <= SIZE_MAX / rows->pitch;
}

int allocate_pitch(enum hook hook, void **ptr, size_t *pitch, size_t width, size_t height, unsigned element_bytes)
{
  struct rows rows = {.pitch_out = pitch, .width = width, .height = height, .element_bytes = element_bytes};
  size_t bytes = allocate_measure_rows(&rows) ? rows.pitch * height : 0; /* 0: to be passed on */
  return allocate_from_stack(
      &(struct request){.hook = hook, .takes = TAKES_ROWS, .ptr = ptr, .bytes = bytes, .rows = &rows});
}

int allocate_managed(enum hook hook, void **ptr, size_t bytes, unsigned flags)
{
  return allocate_from_stack(&(struct request){.hook = hook,
                                               .takes = TAKES_FLAGS,
                                               .ptr = ptr,
                                               .bytes = bytes,
                                               .kind = KIND_MANAGED,
                                               .flags = flags,
                                               .flags_served = HIPMM_HIP_MEM_ATTACH_GLOBAL,
                                               .flags_needed = HIPMM_HIP_MEM_ATTACH_GLOBAL});
}

int allocate_pinned(enum hook hook, void **ptr, size_t bytes)
{
  return allocate_from_stack(&(struct request){.hook = hook, .ptr = ptr, .bytes = bytes, .kind = KIND_PINNED});
}

int allocate_pinned_with_flags(enum hook hook, void **ptr, size_t bytes, unsigned flags)
{
  enum { MAPPED = 2 /* as all pinned memory is */ };
  return allocate_from_stack(&(struct request){.hook = hook,
                                               .takes = TAKES_FLAGS,
                                               .ptr = ptr,
                                               .bytes = bytes,
                                               .kind = KIND_PINNED,
                                               .flags = flags,
                                               .flags_served = HIPMM_HIP_HOST_MALLOC_PORTABLE | MAPPED});
}
