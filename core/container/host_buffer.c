/* SPDX-License-Identifier: MIT */
/* host_buffer.c: buffers of the host, the public functions. A host buffer is a storage over memory that the host can
 * use; whenever its contents move, the caller waits, so that it may look at them at once. */
#include "../base/lifecycle.h"
#include "../call/device_table.h"
#include "storage.h"

#include <hipmm/buffer.h>

struct hipmm_host_buffer {
  struct storage storage;
};

static const struct storage *host_buffer_storage(const struct hipmm_host_buffer *buffer)
{
  return storage_of(buffer, HANDLE_HOST_BUFFER);
}

static enum hipmm_status host_buffer_check(const struct hipmm_host_buffer *buffer)
{
  return handle_check(buffer, HANDLE_HOST_BUFFER);
}

/* ---- Life ---- */

/* The resource to use, with a reference. */
static enum hipmm_status host_buffer_take_resource(struct hipmm_resource *given, struct hipmm_resource **resource_out)
{
  int device = 0;
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!given) {
    enum hipmm_status status = lifecycle_check();
    if (!status) status = device_table_current(&device);
    return status ? status : pinned_resource_get(device, resource_out);
  }
  enum hipmm_status status = resource_check(given);
  if (status) return status;
  if (!pinned_resource_is_one(given))
    return error_set(HIPMM_E_ARGUMENT,
                     "%s gives memory that the host cannot use; give one over pinned, host, managed or system",
                     hipmm_resource_name(given));
  hipmm_resource_retain(given);
  *resource_out = given;
  return HIPMM_OK;
}

static enum hipmm_status host_buffer_create(struct hipmm_resource *given, const void *source, size_t bytes,
                                            hipmm_stream_t stream, struct hipmm_host_buffer **buffer_out)
{
  struct hipmm_resource *resource = NULL;
  struct storage *storage = NULL;
  enum hipmm_status status = host_buffer_take_resource(given, &resource);
  if (!status) status = storage_new(resource, bytes, stream, &storage);
  if (!status && source) status = storage_write(storage, 0, source, "source", bytes, stream, true);
  if (status && storage) storage_abandon(storage);
  hipmm_resource_release(resource);
  if (status) return status;
  handle_open(storage, HANDLE_HOST_BUFFER);
  *buffer_out = (struct hipmm_host_buffer *)storage;
  return HIPMM_OK;
}

enum hipmm_status hipmm_host_buffer_create(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                           struct hipmm_host_buffer **buffer_out)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!buffer_out) return error_set(HIPMM_E_ARGUMENT, "buffer_out is NULL");
  return host_buffer_create(resource, NULL, bytes, stream, buffer_out);
}

enum hipmm_status hipmm_host_buffer_create_from(struct hipmm_resource *resource, const void *source, size_t bytes,
                                                hipmm_stream_t stream, struct hipmm_host_buffer **buffer_out)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!buffer_out) return error_set(HIPMM_E_ARGUMENT, "buffer_out is NULL");
  if (!source && bytes) return error_set(HIPMM_E_ARGUMENT, "source is NULL, but bytes is %zu", bytes);
  return host_buffer_create(resource, source, bytes, stream, buffer_out);
}

enum hipmm_status hipmm_host_buffer_destroy(struct hipmm_host_buffer *buffer)
{
  return storage_destroy(buffer, HANDLE_HOST_BUFFER);
}

/* ---- Size ---- */

enum hipmm_status hipmm_host_buffer_resize(struct hipmm_host_buffer *buffer, size_t bytes, hipmm_stream_t stream)
{
  enum hipmm_status status = host_buffer_check(buffer);
  return status ? status : storage_resize(&buffer->storage, bytes, stream, true);
}

enum hipmm_status hipmm_host_buffer_reserve(struct hipmm_host_buffer *buffer, size_t bytes, hipmm_stream_t stream)
{
  enum hipmm_status status = host_buffer_check(buffer);
  return status ? status : storage_reserve(&buffer->storage, bytes, stream, true);
}

enum hipmm_status hipmm_host_buffer_shrink_to_fit(struct hipmm_host_buffer *buffer, hipmm_stream_t stream)
{
  enum hipmm_status status = host_buffer_check(buffer);
  return status ? status : storage_shrink(&buffer->storage, stream, true);
}

/* ---- Looking ---- */

enum hipmm_status hipmm_host_buffer_set_stream(struct hipmm_host_buffer *buffer, hipmm_stream_t stream)
{
  enum hipmm_status status = host_buffer_check(buffer);
  return status ? status : storage_set_stream(&buffer->storage, stream);
}

void *hipmm_host_buffer_data(const struct hipmm_host_buffer *buffer)
{
  return host_buffer_storage(buffer) ? host_buffer_storage(buffer)->data : NULL;
}

size_t hipmm_host_buffer_bytes(const struct hipmm_host_buffer *buffer)
{
  return host_buffer_storage(buffer) ? host_buffer_storage(buffer)->bytes : 0;
}

size_t hipmm_host_buffer_capacity_bytes(const struct hipmm_host_buffer *buffer)
{
  return host_buffer_storage(buffer) ? host_buffer_storage(buffer)->capacity_bytes : 0;
}

hipmm_stream_t hipmm_host_buffer_stream(const struct hipmm_host_buffer *buffer)
{
  return host_buffer_storage(buffer) ? host_buffer_storage(buffer)->stream : NULL;
}

int hipmm_host_buffer_device(const struct hipmm_host_buffer *buffer)
{
  return host_buffer_storage(buffer) ? host_buffer_storage(buffer)->device : -1;
}

struct hipmm_resource *hipmm_host_buffer_resource(const struct hipmm_host_buffer *buffer)
{
  return host_buffer_storage(buffer) ? host_buffer_storage(buffer)->resource : NULL;
}
