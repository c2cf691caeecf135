/* SPDX-License-Identifier: MIT */
/* vector.c: vectors, the public functions. Turns elements into bytes, with care for overflow; storage.c does the
 * work. */
#include "../base/lifecycle.h"
#include "storage.h"

#include <hipmm/buffer.h>

struct hipmm_vector {
  struct storage storage;
};

static const struct storage *vector_storage(const struct hipmm_vector *vector)
{
  return storage_of(vector, HANDLE_VECTOR);
}

static enum hipmm_status vector_check(const struct hipmm_vector *vector)
{
  return handle_check(vector, HANDLE_VECTOR);
}

static size_t vector_count_of(const struct storage *storage)
{
  return storage->bytes / storage->element_bytes;
}

/* The bytes of so many elements. */
static enum hipmm_status vector_to_bytes(size_t element_bytes, size_t count, size_t *bytes_out)
{
  if (!__builtin_mul_overflow(element_bytes, count, bytes_out)) return HIPMM_OK;
  return error_refuse(HIPMM_E_OUT_OF_MEMORY, NULL, "no memory is large enough for {0} elements of {1} bytes", count,
                      element_bytes, 0);
}

/* Where elements `first` to `first + count` lie, all of which exist. */
static enum hipmm_status vector_to_range(const struct storage *storage, size_t first, size_t count, size_t *offset_out,
                                         size_t *bytes_out)
{
  size_t total = vector_count_of(storage);
  if (first > total || count > total - first)
    return error_refuse(HIPMM_E_ARGUMENT, NULL, "{0} elements from index {1} on are not within the {2} that there are",
                        count, first, total);
  *offset_out = first * storage->element_bytes;
  *bytes_out = count * storage->element_bytes;
  return HIPMM_OK;
}

/* ---- Life ---- */

static enum hipmm_status vector_open(struct storage *storage, size_t element_bytes, struct hipmm_vector **vector_out)
{
  storage->element_bytes = element_bytes;
  handle_open(storage, HANDLE_VECTOR);
  *vector_out = (struct hipmm_vector *)storage;
  return HIPMM_OK;
}

static enum hipmm_status vector_check_new(size_t element_bytes, size_t count, const void *vector_out, size_t *bytes_out)
{
  if (lifecycle_is_barred()) return lifecycle_check();
  if (!vector_out) return error_set(HIPMM_E_ARGUMENT, "vector_out is NULL");
  if (!element_bytes) return error_set(HIPMM_E_ARGUMENT, "element_bytes is 0; an element has at least one byte");
  return vector_to_bytes(element_bytes, count, bytes_out);
}

enum hipmm_status hipmm_vector_create(struct hipmm_resource *resource, size_t element_bytes, size_t count,
                                      hipmm_stream_t stream, struct hipmm_vector **vector_out)
{
  struct storage *storage = NULL;
  size_t bytes = 0;
  enum hipmm_status status = vector_check_new(element_bytes, count, vector_out, &bytes);
  if (!status) status = storage_new(resource, bytes, stream, &storage);
  return status ? status : vector_open(storage, element_bytes, vector_out);
}

enum hipmm_status hipmm_vector_create_from(struct hipmm_resource *resource, size_t element_bytes, const void *source,
                                           size_t count, hipmm_stream_t stream, struct hipmm_vector **vector_out)
{
  struct storage *storage = NULL;
  size_t bytes = 0;
  enum hipmm_status status = vector_check_new(element_bytes, count, vector_out, &bytes);
  if (!status) status = storage_new_from(resource, source, "source", bytes, stream, &storage);
  return status ? status : vector_open(storage, element_bytes, vector_out);
}

enum hipmm_status hipmm_vector_copy(const struct hipmm_vector *source, struct hipmm_resource *resource,
                                    hipmm_stream_t stream, struct hipmm_vector **vector_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = handle_check_argument(source, HANDLE_VECTOR, "source");
  if (!status && !vector_out) status = error_set(HIPMM_E_ARGUMENT, "vector_out is NULL");
  if (!status) status = storage_new_copy(&source->storage, resource, stream, &storage);
  return status ? status : vector_open(storage, source->storage.element_bytes, vector_out);
}

enum hipmm_status hipmm_vector_destroy(struct hipmm_vector *vector)
{
  return storage_destroy(vector, HANDLE_VECTOR);
}

enum hipmm_status hipmm_vector_release(struct hipmm_vector *vector, struct hipmm_buffer **buffer_out)
{
  enum hipmm_status status = vector_check(vector);
  if (!status && !buffer_out) status = error_set(HIPMM_E_ARGUMENT, "buffer_out is NULL");
  if (status) return status;
  if (!handle_close(vector, HANDLE_VECTOR)) return handle_refuse(HANDLE_VECTOR);
  vector->storage.element_bytes = 1;
  handle_open(vector, HANDLE_BUFFER);
  *buffer_out = (struct hipmm_buffer *)vector;
  return HIPMM_OK;
}

/* ---- Size ---- */

enum hipmm_status hipmm_vector_resize(struct hipmm_vector *vector, size_t count, hipmm_stream_t stream)
{
  size_t bytes = 0;
  enum hipmm_status status = vector_check(vector);
  if (!status) status = vector_to_bytes(vector->storage.element_bytes, count, &bytes);
  return status ? status : storage_resize(&vector->storage, bytes, stream, false);
}

enum hipmm_status hipmm_vector_reserve(struct hipmm_vector *vector, size_t count, hipmm_stream_t stream)
{
  size_t bytes = 0;
  enum hipmm_status status = vector_check(vector);
  if (!status) status = vector_to_bytes(vector->storage.element_bytes, count, &bytes);
  return status ? status : storage_reserve(&vector->storage, bytes, stream, false);
}

enum hipmm_status hipmm_vector_shrink_to_fit(struct hipmm_vector *vector, hipmm_stream_t stream)
{
  enum hipmm_status status = vector_check(vector);
  return status ? status : storage_shrink(&vector->storage, stream, false);
}

/* ---- Elements ---- */

static enum hipmm_status vector_write(struct hipmm_vector *vector, size_t first, const void *source, const char *name,
                                      size_t count, hipmm_stream_t stream, bool waits)
{
  size_t offset = 0, bytes = 0;
  enum hipmm_status status = vector_check(vector);
  if (!status) status = vector_to_range(&vector->storage, first, count, &offset, &bytes);
  return status ? status : storage_write(&vector->storage, offset, source, name, bytes, stream, waits);
}

static enum hipmm_status vector_read(const struct hipmm_vector *vector, size_t first, size_t count,
                                     hipmm_stream_t stream, void *target, const char *name, bool waits)
{
  size_t offset = 0, bytes = 0;
  enum hipmm_status status = vector_check(vector);
  if (!status) status = vector_to_range(&vector->storage, first, count, &offset, &bytes);
  return status ? status : storage_read(&vector->storage, offset, target, name, bytes, stream, waits);
}

enum hipmm_status hipmm_vector_write(struct hipmm_vector *vector, size_t first, const void *source, size_t count,
                                     hipmm_stream_t stream)
{
  return vector_write(vector, first, source, "source", count, stream, true);
}

enum hipmm_status hipmm_vector_write_async(struct hipmm_vector *vector, size_t first, const void *source, size_t count,
                                           hipmm_stream_t stream)
{
  return vector_write(vector, first, source, "source", count, stream, false);
}

enum hipmm_status hipmm_vector_read(const struct hipmm_vector *vector, size_t first, size_t count,
                                    hipmm_stream_t stream, void *target_out)
{
  return vector_read(vector, first, count, stream, target_out, "target_out", true);
}

enum hipmm_status hipmm_vector_read_async(const struct hipmm_vector *vector, size_t first, size_t count,
                                          hipmm_stream_t stream, void *target_out)
{
  return vector_read(vector, first, count, stream, target_out, "target_out", false);
}

enum hipmm_status hipmm_vector_get(const struct hipmm_vector *vector, size_t index, hipmm_stream_t stream,
                                   void *value_out)
{
  return vector_read(vector, index, 1, stream, value_out, "value_out", true);
}

enum hipmm_status hipmm_vector_front(const struct hipmm_vector *vector, hipmm_stream_t stream, void *value_out)
{
  return vector_read(vector, 0, 1, stream, value_out, "value_out", true);
}

enum hipmm_status hipmm_vector_back(const struct hipmm_vector *vector, hipmm_stream_t stream, void *value_out)
{
  size_t count = hipmm_vector_count(vector);
  return vector_read(vector, count ? count - 1 : 0, 1, stream, value_out, "value_out", true);
}

enum hipmm_status hipmm_vector_set(struct hipmm_vector *vector, size_t index, const void *value, hipmm_stream_t stream)
{
  return vector_write(vector, index, value, "value", 1, stream, true);
}

enum hipmm_status hipmm_vector_set_async(struct hipmm_vector *vector, size_t index, const void *value,
                                         hipmm_stream_t stream)
{
  return vector_write(vector, index, value, "value", 1, stream, false);
}

enum hipmm_status hipmm_vector_set_zero_async(struct hipmm_vector *vector, size_t index, hipmm_stream_t stream)
{
  size_t offset = 0, bytes = 0;
  enum hipmm_status status = vector_check(vector);
  if (!status) status = vector_to_range(&vector->storage, index, 1, &offset, &bytes);
  return status ? status : storage_fill(&vector->storage, offset, 0, bytes, stream);
}

static enum hipmm_status vector_address(const struct hipmm_vector *vector, size_t first, size_t count,
                                        void **elements_out, const char *name)
{
  size_t offset = 0, bytes = 0;
  enum hipmm_status status = vector_check(vector);
  if (!status && !elements_out) status = error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  if (!status) status = vector_to_range(&vector->storage, first, count, &offset, &bytes);
  if (!status) *elements_out = vector->storage.data ? (char *)vector->storage.data + offset : NULL;
  return status;
}

enum hipmm_status hipmm_vector_element(const struct hipmm_vector *vector, size_t index, void **element_out)
{
  return vector_address(vector, index, 1, element_out, "element_out");
}

enum hipmm_status hipmm_vector_range(const struct hipmm_vector *vector, size_t first, size_t count, void **elements_out)
{
  return vector_address(vector, first, count, elements_out, "elements_out");
}

/* ---- Properties ---- */

enum hipmm_status hipmm_vector_set_stream(struct hipmm_vector *vector, hipmm_stream_t stream)
{
  enum hipmm_status status = vector_check(vector);
  return status ? status : storage_set_stream(&vector->storage, stream);
}

void *hipmm_vector_data(const struct hipmm_vector *vector)
{
  return vector_storage(vector) ? vector_storage(vector)->data : NULL;
}

size_t hipmm_vector_count(const struct hipmm_vector *vector)
{
  return vector_storage(vector) ? vector_count_of(vector_storage(vector)) : 0;
}

size_t hipmm_vector_capacity(const struct hipmm_vector *vector)
{
  return vector_storage(vector) ? vector_storage(vector)->capacity_bytes / vector_storage(vector)->element_bytes : 0;
}

size_t hipmm_vector_element_bytes(const struct hipmm_vector *vector)
{
  return vector_storage(vector) ? vector_storage(vector)->element_bytes : 0;
}

hipmm_stream_t hipmm_vector_stream(const struct hipmm_vector *vector)
{
  return vector_storage(vector) ? vector_storage(vector)->stream : NULL;
}

int hipmm_vector_device(const struct hipmm_vector *vector)
{
  return vector_storage(vector) ? vector_storage(vector)->device : -1;
}

struct hipmm_resource *hipmm_vector_resource(const struct hipmm_vector *vector)
{
  return vector_storage(vector) ? vector_storage(vector)->resource : NULL;
}
