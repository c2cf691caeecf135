/* SPDX-License-Identifier: MIT */
/* storage.c: the block of a container: allocates it, moves it to another size, copies to and from it, frees it. Called by
 * the containers, which have checked handles and units. A failure leaves the block as it was; a resource that fails to free
 * a block has not freed it. */
#include "storage.h"
#include "../base/lifecycle.h"
#include "../base/log.h"
#include "../call/device_table.h"
#include "../reclaim/reclaim.h"
#include "../runtime/hip.h"
#include "../stack/stack.h"
#include "../stream/stream.h"

/* ---- Blocks: 0 bytes have none ---- */

static enum hipmm_status storage_allocate(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                          void **ptr_out)
{
  if (bytes) return reclaim_allocate_and_count(resource, bytes, HIPMM_ALIGNMENT, stream, ptr_out);
  *ptr_out = NULL;
  return HIPMM_OK;
}

static enum hipmm_status storage_deallocate(struct hipmm_resource *resource, void *ptr, size_t bytes,
                                            hipmm_stream_t stream)
{
  if (!bytes) return HIPMM_OK;
  return instance_deallocate(resource, ptr, bytes, HIPMM_ALIGNMENT, stream);
}

/* Frees a new block after a failure, and leaves the error of that failure to the caller. */
static void storage_undo_allocate(struct hipmm_resource *resource, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  const struct error_record failure = error_mark();
  if (storage_deallocate(resource, ptr, bytes, stream))
    log_line(HIPMM_LOG_WARNING, hipmm_resource_name(resource),
             "a block of %zu bytes is lost until its stack is destroyed: %s", bytes, hipmm_last_error_message());
  error_return_to_mark(&failure);
}

/* ---- The stored stream ---- */

static void storage_store_stream(struct storage *storage, hipmm_stream_t stream)
{
  storage->stream = stream;
  storage->stream_number = stream_registry_number(stream);
}

static bool storage_stream_is_gone(const struct storage *storage)
{
  return storage->stream_number && stream_registry_number(storage->stream) != storage->stream_number;
}

/* The stream to free on. If the program destroyed the stored stream, against the contract, no stream is left to order the
 * free, and this waits for the whole device. A later stream may have the same handle. */
static enum hipmm_status storage_find_stream(const struct storage *storage, hipmm_stream_t *stream_out)
{
  int previous = 0;
  *stream_out = storage->stream;
  if (!storage_stream_is_gone(storage)) return HIPMM_OK;
  enum hipmm_status status = device_table_enter(storage->device, &previous);
  if (status) return status;
  int code = hip_table()->DeviceSynchronize();
  hip_leave_device(storage->device, previous);
  *stream_out = HIPMM_DEFAULT_STREAM;
  return code ? hip_refuse(NULL, "hipDeviceSynchronize", code, 0) : HIPMM_OK;
}

/* ---- Blocks that wait for the end of a capture ---- */

static struct storage *_Atomic waiting;

static bool storage_any_waits(void)
{
  return __builtin_expect(atomic_load_explicit(&waiting, memory_order_relaxed) != NULL, 0);
}

static void storage_wait(struct storage *storage)
{
  storage->next = atomic_load(&waiting);
  while (!atomic_compare_exchange_weak(&waiting, &storage->next, storage)) continue;
}

static enum hipmm_status storage_free_block(const struct storage *storage)
{
  hipmm_stream_t stream;
  enum hipmm_status status = storage_find_stream(storage, &stream);
  return status ? status : storage_deallocate(storage->resource, storage->data, storage->capacity_bytes, stream);
}

/* Frees the blocks whose captures have ended. The calls of the objects' owners are over: the thread's error stays. */
void storage_free_waiting(void)
{
  if (!storage_any_waits() || lifecycle_is_forked()) return;
  const struct error_record failure = error_mark();
  for (struct storage *storage = atomic_exchange(&waiting, NULL), *next; storage; storage = next) {
    next = storage->next;
    if (storage_free_block(storage))
      storage_wait(storage);
    else
      handle_free(storage);
  }
  error_return_to_mark(&failure);
}

/* A free may wait for the whole device, which would end the capture of the stream that the caller works on. */
static void storage_free_waiting_beside(int device, hipmm_stream_t stream)
{
  if (storage_any_waits() && !hip_is_captured(device, stream)) storage_free_waiting();
}

/* Whether the free was refused because of a capture; the block is kept then until a later call frees it. Destructors of C++
 * and Python could do nothing about the refusal. */
static bool storage_waits_for_capture(struct storage *storage, enum hipmm_status status)
{
  if (status != HIPMM_E_STATE || lifecycle_is_forked()) return false;
  if (!storage_stream_is_gone(storage) && !hip_is_captured(storage->device, storage->stream)) return false;
  storage_wait(storage);
  return true;
}

/* ---- Life ---- */

void storage_init(struct storage *storage, struct hipmm_resource *resource, void *data, size_t bytes,
                  hipmm_stream_t stream)
{
  storage->resource = resource;
  storage->device = instance_from(resource)->stack->device;
  storage->data = data;
  storage->bytes = storage->capacity_bytes = bytes;
  storage_store_stream(storage, stream);
}

/* The resource is live. */
static enum hipmm_status storage_new_from_resource(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                                   struct storage **storage_out)
{
  void *data = NULL;
  int device = instance_from(resource)->stack->device;
  enum hipmm_status status = stream_check(device, stream);
  if (!status) storage_free_waiting_beside(device, stream);
  if (!status) status = storage_allocate(resource, bytes, stream, &data);
  if (status) return status;
  struct storage *storage = handle_new(instance_from(resource)->stack);
  if (!storage) {
    storage_undo_allocate(resource, data, bytes, stream);
    return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  }
  storage_init(storage, resource, data, bytes, stream);
  *storage_out = storage;
  return HIPMM_OK;
}

/* The resource of the current device lives until lifecycle_leave(), and from then on with the new object. */
enum hipmm_status storage_new(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                              struct storage **storage_out)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  enum hipmm_status status = resource ? resource_check(resource) : lifecycle_enter();
  if (resource && !status) return storage_new_from_resource(resource, bytes, stream, storage_out);
  if (status) return status;
  status = device_table_current_resource(&resource);
  if (!status) status = storage_new_from_resource(resource, bytes, stream, storage_out);
  lifecycle_leave();
  return status;
}

/* The object comes before the block: a block without an object might not go back at once. The object's reference to the
 * stack is not the last: the call has one. */
static struct storage *storage_try_new_from_resource(struct hipmm_resource *resource, size_t bytes,
                                                     hipmm_stream_t stream)
{
  void *data;
  const struct hipmm_ops *ops = resource->ops;
  struct storage *storage = bytes && ops->try_allocate ? handle_try_new(instance_from(resource)->stack) : NULL;
  if (!storage) return NULL;
  if (ops->try_allocate(resource->self, bytes, HIPMM_ALIGNMENT, stream, &data)) {
    storage_init(storage, resource, data, bytes, stream);
    return storage;
  }
  handle_free(storage);
  return NULL;
}

/* Of streams that hipmm did not create the runtime would have to be asked. */
static bool storage_knows_stream(const struct hipmm_resource *resource, hipmm_stream_t stream)
{
  int device;
  if (stream_is_by_name(stream)) return true;
  return stream_registry_find(stream, &device) && device == instance_from(resource)->stack->device;
}

struct storage *storage_try_new(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream)
{
  int device;
  struct storage *storage = NULL;
  struct caller_thread *this_thread = storage_any_waits() ? NULL : lifecycle_enter_thread();
  if (!this_thread) return NULL;
  if (!resource && !device_table_current(&device)) resource = device_table_resource_if_built(device);
  if (instance_is_live(resource) && storage_knows_stream(resource, stream))
    storage = storage_try_new_from_resource(resource, bytes, stream);
  lifecycle_leave_thread(this_thread);
  return storage;
}

void storage_abandon(struct storage *storage)
{
  storage_undo_allocate(storage->resource, storage->data, storage->capacity_bytes, storage->stream);
  handle_free(storage);
}

enum hipmm_status storage_new_from(struct hipmm_resource *resource, const void *source, const char *name, size_t bytes,
                                   hipmm_stream_t stream, struct storage **storage_out)
{
  struct storage *storage = NULL;
  if (!source && bytes) return error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  enum hipmm_status status = storage_new(resource, bytes, stream, &storage);
  if (!status) status = copy_bytes(storage->device, storage->data, source, bytes, stream, false);
  if (status && storage) storage_abandon(storage);
  if (!status) *storage_out = storage;
  return status;
}

/* The block may lie in a resource below that is suspended: the runtime would be told of memory that is not there. */
static enum hipmm_status storage_check_content(const struct storage *storage)
{
  const struct instance *suspended = storage->bytes ? instance_suspended_below(instance_from(storage->resource)) : NULL;
  if (!suspended) return HIPMM_OK;
  return error_refuse(HIPMM_E_STATE, suspended->node->name,
                      "cannot read or write {0:bytes}: it is suspended; resume it first (hipmm_resource_resume())",
                      storage->bytes, 0, 0);
}

enum hipmm_status storage_new_copy(const struct storage *source, struct hipmm_resource *resource, hipmm_stream_t stream,
                                   struct storage **storage_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = storage_check_content(source);
  if (!status) status = storage_new(resource, source->bytes, stream, &storage);
  if (status) return status;
  status =
      storage->device == source->device
          ? copy_bytes(storage->device, storage->data, source->data, source->bytes, stream, false)
          : copy_between_devices(storage->device, storage->data, source->device, source->data, source->bytes, stream);
  if (status)
    storage_abandon(storage);
  else
    *storage_out = storage;
  return status;
}

enum hipmm_status storage_destroy(void *container, enum handle_kind kind)
{
  struct storage *storage = container;
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!storage) return HIPMM_OK;
  if (!handle_close(storage, kind)) return handle_refuse(kind);
  if (storage_any_waits() && !storage_stream_is_gone(storage))
    storage_free_waiting_beside(storage->device, storage->stream);
  enum hipmm_status status = storage_free_block(storage);
  if (storage_waits_for_capture(storage, status)) return HIPMM_OK;
  if (status) {
    handle_open(storage, kind);
    return status;
  }
  handle_free(storage);
  return HIPMM_OK;
}

static bool storage_try_deallocate(const struct storage *storage)
{
  const struct hipmm_resource *resource = storage->resource;
  if (!resource->ops->try_deallocate || !storage->data) return false;
  if (stream_registry_number(storage->stream) != storage->stream_number) return false;
  return resource->ops->try_deallocate(resource->self, storage->data, storage->capacity_bytes, HIPMM_ALIGNMENT,
                                       storage->stream);
}

/* Destroying a stack may wait. So an object with the last reference to its stack stays, without a block. */
bool storage_try_destroy(void *container, enum handle_kind kind)
{
  struct storage *storage = container;
  struct caller_thread *this_thread = storage_any_waits() ? NULL : lifecycle_enter_thread();
  if (!this_thread) return false;
  bool is_closed = handle_close(storage, kind), is_empty = is_closed && storage_try_deallocate(storage);
  if (is_empty) {
    storage->data = NULL;
    storage->bytes = storage->capacity_bytes = 0;
  }
  bool is_gone = is_empty && handle_try_free(storage);
  if (is_closed && !is_gone) handle_open(storage, kind);
  lifecycle_leave_thread(this_thread);
  return is_gone;
}

/* ---- Size ---- */

/* Moves the contents to a new block of `capacity_bytes`. */
static enum hipmm_status storage_move(struct storage *storage, size_t capacity_bytes, hipmm_stream_t stream, bool waits)
{
  struct hipmm_resource *resource = storage->resource;
  size_t copied_bytes = storage->bytes < capacity_bytes ? storage->bytes : capacity_bytes;
  void *data = NULL;
  enum hipmm_status status = storage_allocate(resource, capacity_bytes, stream, &data);
  if (status) return status;
  status = copy_bytes(storage->device, data, storage->data, copied_bytes, stream, waits);
  /* The copy runs on `stream`, so the old block is freed on it. */
  if (!status) status = storage_deallocate(resource, storage->data, storage->capacity_bytes, stream);
  if (status) {
    storage_undo_allocate(resource, data, capacity_bytes, stream);
    return status;
  }
  storage->data = data;
  storage->capacity_bytes = capacity_bytes;
  return HIPMM_OK;
}

enum hipmm_status storage_reserve(struct storage *storage, size_t bytes, hipmm_stream_t stream, bool waits)
{
  enum hipmm_status status = stream_check(storage->device, stream);
  if (!status && bytes > storage->capacity_bytes) status = storage_move(storage, bytes, stream, waits);
  if (!status) storage_store_stream(storage, stream);
  return status;
}

enum hipmm_status storage_resize(struct storage *storage, size_t bytes, hipmm_stream_t stream, bool waits)
{
  enum hipmm_status status = storage_reserve(storage, bytes, stream, waits);
  if (!status) storage->bytes = bytes;
  return status;
}

enum hipmm_status storage_shrink(struct storage *storage, hipmm_stream_t stream, bool waits)
{
  enum hipmm_status status = stream_check(storage->device, stream);
  if (!status && storage->bytes != storage->capacity_bytes)
    status = storage_move(storage, storage->bytes, stream, waits);
  if (!status) storage_store_stream(storage, stream);
  return status;
}

enum hipmm_status storage_set_stream(struct storage *storage, hipmm_stream_t stream)
{
  enum hipmm_status status = stream_check(storage->device, stream);
  if (!status) storage_store_stream(storage, stream);
  return status;
}

/* ---- Contents ---- */

/* The message counts elements; an element of a buffer is a byte. */
static enum hipmm_status storage_refuse_range(const struct storage *storage, size_t offset, size_t bytes)
{
  return error_refuse(HIPMM_E_ARGUMENT, NULL, "{0} bytes from {1} on are not within the size, {2} bytes", bytes, offset,
                      storage->bytes);
}

/* Checks a range of the contents, the pointer that it is copied to or from, and the stream. */
static enum hipmm_status storage_check(const struct storage *storage, size_t offset, size_t bytes, const void *other,
                                       const char *name, hipmm_stream_t stream)
{
  if (offset > storage->bytes || bytes > storage->bytes - offset) return storage_refuse_range(storage, offset, bytes);
  if (!other && bytes) return error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  enum hipmm_status status = stream_check(storage->device, stream);
  return status || !bytes ? status : storage_check_content(storage);
}

enum hipmm_status storage_write(struct storage *storage, size_t offset, const void *source, const char *name,
                                size_t bytes, hipmm_stream_t stream, bool waits)
{
  enum hipmm_status status = storage_check(storage, offset, bytes, source, name, stream);
  if (status || !bytes) return status;
  return copy_bytes(storage->device, (char *)storage->data + offset, source, bytes, stream, waits);
}

enum hipmm_status storage_read(const struct storage *storage, size_t offset, void *target, const char *name,
                               size_t bytes, hipmm_stream_t stream, bool waits)
{
  enum hipmm_status status = storage_check(storage, offset, bytes, target, name, stream);
  if (status || !bytes) return status;
  return copy_bytes(storage->device, target, (char *)storage->data + offset, bytes, stream, waits);
}

enum hipmm_status storage_fill(struct storage *storage, size_t offset, int value, size_t bytes, hipmm_stream_t stream)
{
  enum hipmm_status status = storage_check(storage, offset, bytes, storage, "", stream);
  if (status || !bytes) return status;
  char *to = (char *)storage->data + offset;
  if (!(instance_access(instance_from(storage->resource)) & HIPMM_ACCESS_DEVICE))
    return copy_fill_on_host(storage->device, to, value, bytes, stream);
  return copy_fill(storage->device, to, value, bytes, stream);
}
