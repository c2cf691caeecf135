/* SPDX-License-Identifier: MIT */
/* source.c: every block that a source has allocated is in the core's block map, so that a foreign pointer, a second free and
 * a wrong size are refused before the runtime sees them. */
#include "source.h"

#include <stdlib.h>

/* ---- Blocks that are aligned to more than the memory is ---- */

struct source_shifted {
  struct key_tree_node by_ptr; /* first; major: the block */
  void *obtained;              /* what contains it */
  size_t obtained_bytes;
};

static void source_enter_shifted(struct source *source, struct source_shifted *shifted)
{
  pthread_mutex_lock(&source->lock);
  key_tree_insert(&source->shifted, &shifted->by_ptr);
  pthread_mutex_unlock(&source->lock);
}

/* NULL for a block that was obtained as it is. The caller frees it. */
static struct source_shifted *source_take_shifted(struct source *source, void *ptr)
{
  pthread_mutex_lock(&source->lock);
  struct source_shifted *shifted = (struct source_shifted *)key_tree_at(source->shifted, (uintptr_t)ptr);
  if (shifted) key_tree_remove(&source->shifted, &shifted->by_ptr);
  pthread_mutex_unlock(&source->lock);
  return shifted;
}

static enum hipmm_status source_obtain_aligned(struct source *source, size_t bytes, size_t alignment, void **ptr_out)
{
  const struct hipmm_services *services = source->services;
  struct source_shifted *shifted = calloc(1, sizeof *shifted);
  if (!shifted)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to record an aligned block", 0, 0, 0);
  shifted->obtained_bytes = bytes + alignment - HIPMM_ALIGNMENT;
  enum hipmm_status status = source->memory->obtain(source, shifted->obtained_bytes, &shifted->obtained);
  if (status) {
    free(shifted);
    return status;
  }
  *ptr_out = (char *)shifted->obtained + (-(uintptr_t)shifted->obtained & (alignment - 1));
  shifted->by_ptr.major = (uintptr_t)*ptr_out;
  source_enter_shifted(source, shifted);
  return HIPMM_OK;
}

static enum hipmm_status source_release(struct source *source, void *ptr, size_t bytes)
{
  struct source_shifted *shifted = source->memory->aligns_to_any ? source_take_shifted(source, ptr) : NULL;
  enum hipmm_status status =
      source->memory->release(source, shifted ? shifted->obtained : ptr, shifted ? shifted->obtained_bytes : bytes);
  if (status && shifted)
    source_enter_shifted(source, shifted);
  else
    free(shifted);
  return status;
}

/* ---- Life ---- */

enum hipmm_status source_create(const struct hipmm_services *services, const struct source_memory *memory,
                                size_t self_bytes, void **self_out)
{
  struct source *source = services->host_allocate(services, self_bytes);
  if (!source) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  source->services = services;
  source->memory = memory;
  source->self_bytes = self_bytes;
  pthread_mutex_init(&source->lock, NULL);
  *self_out = source;
  return HIPMM_OK;
}

void source_destroy(void *self)
{
  struct source *source = self;
  const struct hipmm_services *services = source->services;
  struct hipmm_block block;
  bool has_waited = false; /* a device without work may have no context yet, and the wait would make one */
  while (services->untrack_any(services, &block) == HIPMM_OK) {
    if (!has_waited) device_wait_at_end(services);
    has_waited = true;
    if (source_release(source, block.ptr, block.bytes)) source_release(source, block.ptr, block.bytes);
  }
  pthread_mutex_destroy(&source->lock);
  services->host_free(services, source, source->self_bytes);
}

/* ---- Checks ---- */

enum hipmm_status source_check(const struct hipmm_services *services, size_t bytes, size_t alignment)
{
  if (alignment > HIPMM_ALIGNMENT)
    return services->refuse(services, HIPMM_E_ARGUMENT,
                            "cannot align to {0:bytes}: a source aligns to {1:bytes}, pool to any power of two",
                            alignment, HIPMM_ALIGNMENT, 0);
  if (bytes > SIZE_MAX >> 8) /* half of the largest address space that there is */
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "cannot allocate {0:bytes}: no memory is that large",
                            bytes, 0, 0);
  return HIPMM_OK;
}

enum hipmm_status source_require_attribute(const struct hipmm_services *services, int attribute, const char *what)
{
  int value = 0;
  int code = services->hip->DeviceGetAttribute(&value, attribute, services->device);
  if (code) return services->refuse_hip(services, "hipDeviceGetAttribute", code, 0);
  if (value) return HIPMM_OK;
  return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "device %d has no %s", services->device, what);
}

enum hipmm_status source_require_function(const struct hipmm_services *services, int is_there, const char *name)
{
  if (is_there) return HIPMM_OK;
  return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "this runtime does not export %s", name);
}

enum hipmm_status source_require_device(const struct hipmm_services *services, const char *option, int64_t device)
{
  int count = 0;
  int code = services->hip->GetDeviceCount(&count);
  if (code) return services->refuse_hip(services, "hipGetDeviceCount", code, 0);
  if (device < count) return HIPMM_OK;
  return services->fail(services, HIPMM_E_CONFIG, option, "device %lld does not exist: there are %d, numbered from 0",
                        (long long)device, count);
}

/* ---- Memory ---- */

static enum hipmm_status source_obtain_and_track(struct source *source, size_t bytes, size_t alignment, void **ptr_out)
{
  const struct hipmm_services *services = source->services;
  void *ptr = NULL;
  enum hipmm_status status = alignment > HIPMM_ALIGNMENT ? source_obtain_aligned(source, bytes, alignment, &ptr)
                                                         : source->memory->obtain(source, bytes, &ptr);
  if (status) return status;
  status = services->track(services, ptr, bytes);
  if (status)
    source_release(source, ptr, bytes);
  else
    *ptr_out = ptr;
  return status;
}

enum hipmm_status source_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  struct source *source = self;
  const struct hipmm_services *services = source->services;
  (void)stream; /* memory from a source is ready for every stream */
  enum hipmm_status status = source->memory->aligns_to_any && alignment <= SIZE_MAX >> 8
                                 ? source_check(services, bytes > alignment ? bytes : alignment, HIPMM_ALIGNMENT)
                                 : source_check(services, bytes, alignment);
  if (status) return status;
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  int previous = services->enter_device(services);
  status = source_obtain_and_track(source, bytes, alignment, ptr_out);
  services->leave_device(services, previous);
  return status;
}

/* Work on the stream may still use the memory, and since HIP 7 hipFree does not wait for it. The memory is released also if
 * the handle is no stream any more: then the wait is for the whole device. */
static enum hipmm_status source_wait_for_work(const struct hipmm_services *services, hipmm_stream_t stream)
{
  if (hipmm_stream_is_captured(services->hip, stream))
    return services->refuse(
        services, HIPMM_E_STATE,
        "stream {0:hex} is being captured and cannot be waited for; free the block after the capture, "
        "or put a pool above this resource",
        (uintptr_t)stream, 0, 0);
  if (!services->hip->StreamSynchronize(stream)) return HIPMM_OK;
  services->hip->GetLastError();
  int code = services->hip->DeviceSynchronize();
  return code ? services->refuse_hip(services, "hipDeviceSynchronize", code, 0) : HIPMM_OK;
}

enum hipmm_status source_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct source *source = self;
  const struct hipmm_services *services = source->services;
  size_t held_bytes = 0;
  (void)alignment;
  if (!ptr) return HIPMM_OK;
  enum hipmm_status status = services->untrack(services, ptr, bytes, &held_bytes);
  if (status) return status;
  int previous = services->enter_device(services);
  status = source_wait_for_work(services, stream);
  if (!status) status = source_release(source, ptr, held_bytes);
  services->leave_device(services, previous);
  if (status && services->track(services, ptr, held_bytes))
    services->log(services, HIPMM_LOG_ERROR, "%p could not be freed and cannot be recorded either: it is lost", ptr);
  return status;
}

enum hipmm_status source_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct source *source = self;
  return source->services->lookup(source->services, ptr, block_out);
}

const struct hipmm_ops source_ops = {
    .struct_size = sizeof source_ops,
    .allocate = source_allocate,
    .deallocate = source_deallocate,
    .find = source_find,
};

/* ---- Host memory ---- */

static enum hipmm_status source_obtain_host(const struct source *source, size_t bytes, void **ptr_out)
{
  const struct hipmm_services *services = source->services;
  size_t rounded = (bytes + HIPMM_ALIGNMENT - 1) / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
  void *ptr = aligned_alloc(HIPMM_ALIGNMENT, rounded);
  if (!ptr)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "cannot allocate {0:bytes} of host memory", bytes, 0, 0);
  *ptr_out = ptr;
  return HIPMM_OK;
}

static enum hipmm_status source_release_host(const struct source *source, void *ptr, size_t bytes)
{
  (void)source, (void)bytes;
  free(ptr);
  return HIPMM_OK;
}

const struct source_memory source_host_memory = {
    .obtain = source_obtain_host, .release = source_release_host, .aligns_to_any = true};
