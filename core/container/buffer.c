/* SPDX-License-Identifier: MIT */
/* buffer.c: the public functions on buffers. A buffer is a storage whose unit is the byte; storage.c does the work. */
#include "../base/lifecycle.h"
#include "../stack/stack.h"
#include "../stream/stream.h"
#include "storage.h"

#include <hipmm/buffer.h>

struct hipmm_buffer {
  struct storage storage;
};

static const struct storage *buffer_storage(const struct hipmm_buffer *buffer)
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
  if (lifecycle_refuses_calls()) return lifecycle_check();
  return argument ? HIPMM_OK : error_set(HIPMM_E_ARGUMENT, "buffer_out is NULL");
}

enum hipmm_status hipmm_buffer_create(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                      struct hipmm_buffer **buffer_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = buffer_check_out(buffer_out);
  if (!status) status = storage_new(resource, bytes, stream, &storage);
  return status ? status : buffer_open(storage, buffer_out);
}

enum hipmm_status hipmm_buffer_create_from(struct hipmm_resource *resource, const void *source, size_t bytes,
                                           hipmm_stream_t stream, struct hipmm_buffer **buffer_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = buffer_check_out(buffer_out);
  if (!status) status = storage_new_from(resource, source, "source", bytes, stream, &storage);
  return status ? status : buffer_open(storage, buffer_out);
}

enum hipmm_status hipmm_buffer_copy(const struct hipmm_buffer *source, struct hipmm_resource *resource,
                                    hipmm_stream_t stream, struct hipmm_buffer **buffer_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = buffer_check_out(buffer_out);
  if (!status) status = handle_check_argument(source, HANDLE_BUFFER, "source");
  if (!status) status = storage_new_copy(&source->storage, resource, stream, &storage);
  return status ? status : buffer_open(storage, buffer_out);
}

enum hipmm_status hipmm_buffer_destroy(struct hipmm_buffer *buffer)
{
  return storage_destroy(buffer, HANDLE_BUFFER);
}

int hipmm_buffer_try_create(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                            struct hipmm_buffer **buffer_out)
{
  struct storage *storage = buffer_out ? storage_try_new(resource, bytes, stream) : NULL;
  if (!storage) return 0;
  buffer_open(storage, buffer_out);
  return 1;
}

int hipmm_buffer_try_destroy(struct hipmm_buffer *buffer)
{
  return storage_try_destroy(buffer, HANDLE_BUFFER);
}

/* ---- Size ---- */

enum hipmm_status hipmm_buffer_resize(struct hipmm_buffer *buffer, size_t bytes, hipmm_stream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_resize(&buffer->storage, bytes, stream, false);
}

enum hipmm_status hipmm_buffer_reserve(struct hipmm_buffer *buffer, size_t bytes, hipmm_stream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_reserve(&buffer->storage, bytes, stream, false);
}

enum hipmm_status hipmm_buffer_shrink_to_fit(struct hipmm_buffer *buffer, hipmm_stream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_shrink(&buffer->storage, stream, false);
}

/* ---- Contents ---- */

enum hipmm_status hipmm_buffer_write(struct hipmm_buffer *buffer, size_t offset, const void *source, size_t bytes,
                                     hipmm_stream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_write(&buffer->storage, offset, source, "source", bytes, stream, true);
}

enum hipmm_status hipmm_buffer_write_async(struct hipmm_buffer *buffer, size_t offset, const void *source, size_t bytes,
                                           hipmm_stream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_write(&buffer->storage, offset, source, "source", bytes, stream, false);
}

enum hipmm_status hipmm_buffer_read(const struct hipmm_buffer *buffer, size_t offset, size_t bytes,
                                    hipmm_stream_t stream, void *target_out)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_read(&buffer->storage, offset, target_out, "target_out", bytes, stream, true);
}

enum hipmm_status hipmm_buffer_read_async(const struct hipmm_buffer *buffer, size_t offset, size_t bytes,
                                          hipmm_stream_t stream, void *target_out)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_read(&buffer->storage, offset, target_out, "target_out", bytes, stream, false);
}

enum hipmm_status hipmm_buffer_fill(struct hipmm_buffer *buffer, size_t offset, int value, size_t bytes,
                                    hipmm_stream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_fill(&buffer->storage, offset, value, bytes, stream);
}

/* ---- Properties ---- */

enum hipmm_status hipmm_buffer_set_stream(struct hipmm_buffer *buffer, hipmm_stream_t stream)
{
  enum hipmm_status status = handle_check(buffer, HANDLE_BUFFER);
  return status ? status : storage_set_stream(&buffer->storage, stream);
}

void *hipmm_buffer_data(const struct hipmm_buffer *buffer)
{
  return buffer_storage(buffer) ? buffer_storage(buffer)->data : NULL;
}

size_t hipmm_buffer_bytes(const struct hipmm_buffer *buffer)
{
  return buffer_storage(buffer) ? buffer_storage(buffer)->bytes : 0;
}

size_t hipmm_buffer_capacity_bytes(const struct hipmm_buffer *buffer)
{
  return buffer_storage(buffer) ? buffer_storage(buffer)->capacity_bytes : 0;
}

hipmm_stream_t hipmm_buffer_stream(const struct hipmm_buffer *buffer)
{
  return buffer_storage(buffer) ? buffer_storage(buffer)->stream : NULL;
}

int hipmm_buffer_device(const struct hipmm_buffer *buffer)
{
  return buffer_storage(buffer) ? buffer_storage(buffer)->device : -1;
}

struct hipmm_resource *hipmm_buffer_resource(const struct hipmm_buffer *buffer)
{
  return buffer_storage(buffer) ? buffer_storage(buffer)->resource : NULL;
}

/* ---- Memory that leaves its buffer, and memory that gets a buffer: no block is allocated or freed ---- */

/* The struct as it was first published. */
enum { MEMORY_LEAST_BYTES = offsetof(struct hipmm_memory, stream) + sizeof(hipmm_stream_t) };

static enum hipmm_status buffer_check_memory(const struct hipmm_memory *memory, const char *name)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!memory) return error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  if (memory->struct_size >= MEMORY_LEAST_BYTES) return HIPMM_OK;
  return error_set(HIPMM_E_ARGUMENT, "struct_size is %zu; set it to sizeof(struct hipmm_memory)", memory->struct_size);
}

enum hipmm_status hipmm_buffer_release(struct hipmm_buffer *buffer, struct hipmm_memory *memory_out)
{
  struct storage *storage = storage_of(buffer, HANDLE_BUFFER);
  enum hipmm_status status = buffer_check_memory(memory_out, "memory_out");
  if (!status) status = handle_check(buffer, HANDLE_BUFFER);
  if (status) return status;
  if (!handle_close(buffer, HANDLE_BUFFER)) return handle_refuse(HANDLE_BUFFER);
  memory_out->ptr = storage->data;
  memory_out->bytes = storage->bytes;
  memory_out->capacity_bytes = storage->capacity_bytes;
  memory_out->resource = storage->resource;
  memory_out->stream = storage->stream;
  hipmm_resource_retain(storage->resource); /* for the caller; handle_free() releases the object's own */
  handle_free(storage);
  return HIPMM_OK;
}

/* Asks the resource for the block. HIPMM_OK where no resource can tell. */
static enum hipmm_status buffer_check_block(const struct hipmm_memory *memory)
{
  struct hipmm_block block = {NULL, 0};
  if (!memory->capacity_bytes) return HIPMM_OK;
  enum hipmm_status status = instance_find(instance_from(memory->resource), memory->ptr, &block);
  if (status == HIPMM_E_NOT_SUPPORTED) return HIPMM_OK;
  const char *name = hipmm_resource_name(memory->resource);
  if (status) return error_refuse(status, name, "{0:hex} is not a live block of it", (uintptr_t)memory->ptr, 0, 0);
  if (block.bytes == memory->capacity_bytes) return HIPMM_OK;
  return error_refuse(HIPMM_E_SIZE, name, "the block at {0:hex} is of {1:bytes}, not {2:bytes}", (uintptr_t)memory->ptr,
                      block.bytes, memory->capacity_bytes);
}

static enum hipmm_status buffer_check_fields(const struct hipmm_memory *memory)
{
  enum hipmm_status status = resource_check(memory->resource);
  if (status) return status;
  if (!memory->ptr != !memory->capacity_bytes)
    return error_set(HIPMM_E_ARGUMENT, "ptr is %s but capacity_bytes is %zu", memory->ptr ? "not NULL" : "NULL",
                     memory->capacity_bytes);
  if (memory->bytes > memory->capacity_bytes)
    return error_set(HIPMM_E_ARGUMENT, "bytes, %zu, are more than capacity_bytes, %zu", memory->bytes,
                     memory->capacity_bytes);
  status = stream_check(hipmm_resource_device(memory->resource), memory->stream);
  return status ? status : buffer_check_block(memory);
}

enum hipmm_status hipmm_buffer_adopt(const struct hipmm_memory *memory, struct hipmm_buffer **buffer_out)
{
  enum hipmm_status status = buffer_check_memory(memory, "memory");
  if (!status && !buffer_out) status = error_set(HIPMM_E_ARGUMENT, "buffer_out is NULL");
  if (!status) status = buffer_check_fields(memory);
  struct storage *storage = status ? NULL : handle_new(instance_from(memory->resource)->stack);
  if (!status && !storage) status = error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (status) return status;
  storage_init(storage, memory->resource, memory->ptr, memory->capacity_bytes, memory->stream);
  storage->bytes = memory->bytes;
  hipmm_resource_release(memory->resource); /* the object has its own reference */
  handle_open(storage, HANDLE_BUFFER);
  *buffer_out = (struct hipmm_buffer *)storage;
  return HIPMM_OK;
}
