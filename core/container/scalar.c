/* SPDX-License-Identifier: MIT */
/* scalar.c: scalars, the public functions. A scalar is a storage of one element, whose size never changes. */
#include "../base/lifecycle.h"
#include "storage.h"

#include <hipmm/buffer.h>

struct hipmm_scalar {
  struct storage storage;
};

static const struct storage *scalar_storage(const struct hipmm_scalar *scalar)
{
  return storage_of(scalar, HANDLE_SCALAR);
}

static enum hipmm_status scalar_check(const struct hipmm_scalar *scalar)
{
  return handle_check(scalar, HANDLE_SCALAR);
}

/* ---- Life ---- */

static enum hipmm_status scalar_open(struct storage *storage, struct hipmm_scalar **scalar_out)
{
  handle_open(storage, HANDLE_SCALAR);
  *scalar_out = (struct hipmm_scalar *)storage;
  return HIPMM_OK;
}

static enum hipmm_status scalar_check_new(size_t bytes, const void *scalar_out)
{
  if (lifecycle_is_barred()) return lifecycle_check();
  if (!scalar_out) return error_set(HIPMM_E_ARGUMENT, "scalar_out is NULL");
  if (!bytes) return error_set(HIPMM_E_ARGUMENT, "bytes is 0; a scalar has at least one byte");
  return HIPMM_OK;
}

enum hipmm_status hipmm_scalar_create(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                      struct hipmm_scalar **scalar_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = scalar_check_new(bytes, scalar_out);
  if (!status) status = storage_new(resource, bytes, stream, &storage);
  return status ? status : scalar_open(storage, scalar_out);
}

enum hipmm_status hipmm_scalar_create_from(struct hipmm_resource *resource, const void *value, size_t bytes,
                                           hipmm_stream_t stream, struct hipmm_scalar **scalar_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = scalar_check_new(bytes, scalar_out);
  if (!status) status = storage_new_from(resource, value, "value", bytes, stream, &storage);
  return status ? status : scalar_open(storage, scalar_out);
}

enum hipmm_status hipmm_scalar_copy(const struct hipmm_scalar *source, struct hipmm_resource *resource,
                                    hipmm_stream_t stream, struct hipmm_scalar **scalar_out)
{
  struct storage *storage = NULL;
  enum hipmm_status status = handle_check_argument(source, HANDLE_SCALAR, "source");
  if (!status && !scalar_out) status = error_set(HIPMM_E_ARGUMENT, "scalar_out is NULL");
  if (!status) status = storage_new_copy(&source->storage, resource, stream, &storage);
  return status ? status : scalar_open(storage, scalar_out);
}

enum hipmm_status hipmm_scalar_destroy(struct hipmm_scalar *scalar)
{
  return storage_destroy(scalar, HANDLE_SCALAR);
}

/* ---- Value ---- */

static enum hipmm_status scalar_write(struct hipmm_scalar *scalar, const void *value, hipmm_stream_t stream, bool waits)
{
  enum hipmm_status status = scalar_check(scalar);
  return status ? status : storage_write(&scalar->storage, 0, value, "value", scalar->storage.bytes, stream, waits);
}

enum hipmm_status hipmm_scalar_set(struct hipmm_scalar *scalar, const void *value, hipmm_stream_t stream)
{
  return scalar_write(scalar, value, stream, true);
}

enum hipmm_status hipmm_scalar_set_async(struct hipmm_scalar *scalar, const void *value, hipmm_stream_t stream)
{
  return scalar_write(scalar, value, stream, false);
}

enum hipmm_status hipmm_scalar_set_zero_async(struct hipmm_scalar *scalar, hipmm_stream_t stream)
{
  enum hipmm_status status = scalar_check(scalar);
  return status ? status : storage_fill(&scalar->storage, 0, 0, scalar->storage.bytes, stream);
}

enum hipmm_status hipmm_scalar_get(const struct hipmm_scalar *scalar, hipmm_stream_t stream, void *value_out)
{
  enum hipmm_status status = scalar_check(scalar);
  return status ? status
                : storage_read(&scalar->storage, 0, value_out, "value_out", scalar->storage.bytes, stream, true);
}

/* ---- Looking ---- */

enum hipmm_status hipmm_scalar_set_stream(struct hipmm_scalar *scalar, hipmm_stream_t stream)
{
  enum hipmm_status status = scalar_check(scalar);
  return status ? status : storage_set_stream(&scalar->storage, stream);
}

void *hipmm_scalar_data(const struct hipmm_scalar *scalar)
{
  return scalar_storage(scalar) ? scalar_storage(scalar)->data : NULL;
}

size_t hipmm_scalar_bytes(const struct hipmm_scalar *scalar)
{
  return scalar_storage(scalar) ? scalar_storage(scalar)->bytes : 0;
}

hipmm_stream_t hipmm_scalar_stream(const struct hipmm_scalar *scalar)
{
  return scalar_storage(scalar) ? scalar_storage(scalar)->stream : NULL;
}

int hipmm_scalar_device(const struct hipmm_scalar *scalar)
{
  return scalar_storage(scalar) ? scalar_storage(scalar)->device : -1;
}

struct hipmm_resource *hipmm_scalar_resource(const struct hipmm_scalar *scalar)
{
  return scalar_storage(scalar) ? scalar_storage(scalar)->resource : NULL;
}
