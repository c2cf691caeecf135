/* SPDX-License-Identifier: MIT */
/* buffer.c: buffers, the public functions. A buffer is a storage whose unit is the byte; storage.c does the work. */
#include "../base/lifecycle.h"
#include "../stack/device_table.h"
#include "storage.h"

#include <hipmm/buffer.h>

struct hipmm_buffer {
  struct storage storage;
};

static const struct storage *buffer_look(const struct hipmm_buffer *buffer)
{
  return storage_of(buffer, HANDLE_BUFFER);
}

/* ---- Life ---- */

static enum hipmm_status buffer_open(struct storage *storage, struct hipmm_buffer **buffer_out)
{
  handle_open(storage, HANDLE_BUFFER);
  *buffer_out = (struct hipmm_buffer *)storage;
  return HIPMM_OK;
}

static enum hipmm_status buffer_check_out(const void *argument)
{
  if (lifecycle_is_barred()) return lifecycle_check();
  return argument ? HIPMM_OK : error_set(HIPMM_E_ARGUMENT, "buffer_out is NULL");
}

enum hipmm_status hipmm_buffer_create(struct hipmm_resource *resource, size_t bytes, hipStream_t stream,
                                      struct hipmm_buffer **buffer_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = buffer_check_out(buffer_out);
  if (!status) status = storage_new(resource, bytes, stream, &storage);
  return status ? status : buffer_open(storage, buffer_out);
}

enum hipmm_status hipmm_buffer_create_from(struct hipmm_resource *resource, const void *source, size_t bytes,
                                           hipStream_t stream, struct hipmm_buffer **buffer_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = buffer_check_out(buffer_out);
  if (!status) status = storage_new_from(resource, source, bytes, stream, &storage);
  return status ? status : buffer_open(storage, buffer_out);
}

enum hipmm_status hipmm_buffer_copy(const struct hipmm_buffer *source, struct hipmm_resource *resource,
                                    hipStream_t stream, struct hipmm_buffer **buffer_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = buffer_check_out(buffer_out);
  if (!status) status = handle_check(source, HANDLE_BUFFER);
  if (!status) status = storage_new_copy(&source->storage, resource, stream, &storage);
  return status ? status : buffer_open(storage, buffer_out);
}

enum hipmm_status hipmm_buffer_destroy(struct hipmm_buffer *buffer)
{
  return storage_destroy(buffer, HANDLE_BUFFER);
}

/* ---- Size ---- */

enum hipmm_status hipmm_buffer_resize(struct hipmm_buffer *buffer, size_t bytes, hipStream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_resize(&buffer->storage, bytes, stream, false);
}

enum hipmm_status hipmm_buffer_reserve(struct hipmm_buffer *buffer, size_t bytes, hipStream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_reserve(&buffer->storage, bytes, stream, false);
}

enum hipmm_status hipmm_buffer_shrink_to_fit(struct hipmm_buffer *buffer, hipStream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_shrink(&buffer->storage, stream, false);
}

/* ---- Contents ---- */

enum hipmm_status hipmm_buffer_write(struct hipmm_buffer *buffer, size_t offset, const void *source, size_t bytes,
                                     hipStream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_write(&buffer->storage, offset, source, bytes, stream, true);
}

enum hipmm_status hipmm_buffer_write_async(struct hipmm_buffer *buffer, size_t offset, const void *source, size_t bytes,
                                           hipStream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_write(&buffer->storage, offset, source, bytes, stream, false);
}

enum hipmm_status hipmm_buffer_read(const struct hipmm_buffer *buffer, size_t offset, size_t bytes, hipStream_t stream,
                                    void *target_out)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_read(&buffer->storage, offset, target_out, bytes, stream, true);
}

enum hipmm_status hipmm_buffer_read_async(const struct hipmm_buffer *buffer, size_t offset, size_t bytes,
                                          hipStream_t stream, void *target_out)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_read(&buffer->storage, offset, target_out, bytes, stream, false);
}

enum hipmm_status hipmm_buffer_fill(struct hipmm_buffer *buffer, size_t offset, int value, size_t bytes,
                                    hipStream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_fill(&buffer->storage, offset, value, bytes, stream);
}

/* ---- Looking ---- */

enum hipmm_status hipmm_buffer_set_stream(struct hipmm_buffer *buffer, hipStream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_set_stream(&buffer->storage, stream);
}

void *hipmm_buffer_data(const struct hipmm_buffer *buffer)
{
  return buffer_look(buffer) ? buffer_look(buffer)->data : NULL;
}

size_t hipmm_buffer_bytes(const struct hipmm_buffer *buffer)
{
  return buffer_look(buffer) ? buffer_look(buffer)->bytes : 0;
}

size_t hipmm_buffer_capacity_bytes(const struct hipmm_buffer *buffer)
{
  return buffer_look(buffer) ? buffer_look(buffer)->capacity_bytes : 0;
}

hipStream_t hipmm_buffer_stream(const struct hipmm_buffer *buffer)
{
  return buffer_look(buffer) ? buffer_look(buffer)->stream : NULL;
}

int hipmm_buffer_device(const struct hipmm_buffer *buffer)
{
  return buffer_look(buffer) ? buffer_look(buffer)->device : -1;
}

struct hipmm_resource *hipmm_buffer_resource(const struct hipmm_buffer *buffer)
{
  return buffer_look(buffer) ? buffer_look(buffer)->resource : NULL;
}
