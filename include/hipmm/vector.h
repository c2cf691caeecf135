/* SPDX-License-Identifier: MIT */
/* hipmm/vector.h: vectors and scalars for C: a buffer (hipmm/buffer.h) whose unit is an element instead of a byte (RMM:
 * device_uvector, device_scalar). All functions are inline, over those of buffers, whose rules hold.
 *
 *     #include <hipmm/vector.h>
 *     #include <stdio.h>
 *     int main(void)
 *     {
 *       struct hipmm_vector vector;
 *       double values[] = {1, 2, 3}, last;
 *       if (hipmm_init() || hipmm_vector_create_from(NULL, sizeof *values, values, 3, NULL, &vector)) return 1;
 *       if (hipmm_vector_resize(&vector, 1000, NULL) || hipmm_vector_get(&vector, 2, NULL, &last)) return 1;
 *       printf("%g of %zu\n", last, hipmm_vector_count(&vector));
 *       return hipmm_buffer_destroy(vector.buffer) || hipmm_finalize();
 *     }
 */
#ifndef HIPMM_VECTOR_H
#define HIPMM_VECTOR_H

#include <hipmm/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Vectors ----------------------------------------------------------------------------------------------------- */

/* The caller owns the buffer and destroys it. Functions of buffers serve for everything that is not counted in elements
 * (data, stream, device, resource, shrink_to_fit, set_stream, release). An element is copied as plain bytes; an element
 * that was not written is undefined. */
struct hipmm_vector {
  struct hipmm_buffer *buffer;
  size_t element_bytes; /* at least 1 */
};

/* The size in bytes of `count` elements; SIZE_MAX, which no memory has and no range is within, if that overflows. */
static inline size_t hipmm_vector_to_bytes(size_t element_bytes, size_t count)
{
  return element_bytes && count <= SIZE_MAX / element_bytes ? element_bytes * count : SIZE_MAX;
}

/* Create a vector of `count` elements: with undefined contents, or copied from `source` as by
 * hipmm_buffer_create_from(). */
HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_create(struct hipmm_resource *resource,
                                                                     size_t element_bytes, size_t count,
                                                                     hipmm_stream_t stream,
                                                                     struct hipmm_vector *vector_out)
{
  struct hipmm_buffer *buffer;
  enum hipmm_status status =
      hipmm_buffer_create(resource, hipmm_vector_to_bytes(element_bytes, count), stream, &buffer);
  if (status) return status;
  vector_out->buffer = buffer;
  vector_out->element_bytes = element_bytes;
  return HIPMM_OK;
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_create_from(struct hipmm_resource *resource,
                                                                          size_t element_bytes, const void *source,
                                                                          size_t count, hipmm_stream_t stream,
                                                                          struct hipmm_vector *vector_out)
{
  struct hipmm_buffer *buffer;
  enum hipmm_status status =
      hipmm_buffer_create_from(resource, source, hipmm_vector_to_bytes(element_bytes, count), stream, &buffer);
  if (status) return status;
  vector_out->buffer = buffer;
  vector_out->element_bytes = element_bytes;
  return HIPMM_OK;
}

/* As hipmm_buffer_copy(), _resize(), _reserve(). */
HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_copy(const struct hipmm_vector *source,
                                                                   struct hipmm_resource *resource,
                                                                   hipmm_stream_t stream,
                                                                   struct hipmm_vector *vector_out)
{
  struct hipmm_buffer *buffer;
  enum hipmm_status status = hipmm_buffer_copy(source->buffer, resource, stream, &buffer);
  if (status) return status;
  vector_out->buffer = buffer;
  vector_out->element_bytes = source->element_bytes;
  return HIPMM_OK;
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_resize(const struct hipmm_vector *vector, size_t count,
                                                                     hipmm_stream_t stream)
{
  return hipmm_buffer_resize(vector->buffer, hipmm_vector_to_bytes(vector->element_bytes, count), stream);
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_reserve(const struct hipmm_vector *vector, size_t count,
                                                                      hipmm_stream_t stream)
{
  return hipmm_buffer_reserve(vector->buffer, hipmm_vector_to_bytes(vector->element_bytes, count), stream);
}

/* In elements. */
static inline size_t hipmm_vector_count(const struct hipmm_vector *vector)
{
  return vector->element_bytes ? hipmm_buffer_bytes(vector->buffer) / vector->element_bytes : 0;
}

static inline size_t hipmm_vector_capacity(const struct hipmm_vector *vector)
{
  return vector->element_bytes ? hipmm_buffer_capacity_bytes(vector->buffer) / vector->element_bytes : 0;
}

/* The device address of an element, or of the end for the index hipmm_vector_count(); NULL: there is no such element, or no
 * block. Valid until the vector's block changes. */
static inline void *hipmm_vector_element(const struct hipmm_vector *vector, size_t index)
{
  char *data = (char *)hipmm_buffer_data(vector->buffer);
  return data && index <= hipmm_vector_count(vector) ? data + index * vector->element_bytes : NULL;
}

/* Copy `count` elements from index `first` on, as hipmm_buffer_write() and hipmm_buffer_read(). */
HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_write(const struct hipmm_vector *vector, size_t first,
                                                                    const void *source, size_t count,
                                                                    hipmm_stream_t stream)
{
  return hipmm_buffer_write(vector->buffer, hipmm_vector_to_bytes(vector->element_bytes, first), source,
                            hipmm_vector_to_bytes(vector->element_bytes, count), stream);
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_write_async(const struct hipmm_vector *vector,
                                                                          size_t first, const void *source,
                                                                          size_t count, hipmm_stream_t stream)
{
  return hipmm_buffer_write_async(vector->buffer, hipmm_vector_to_bytes(vector->element_bytes, first), source,
                                  hipmm_vector_to_bytes(vector->element_bytes, count), stream);
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_read(const struct hipmm_vector *vector, size_t first,
                                                                   size_t count, hipmm_stream_t stream,
                                                                   void *target_out)
{
  return hipmm_buffer_read(vector->buffer, hipmm_vector_to_bytes(vector->element_bytes, first),
                           hipmm_vector_to_bytes(vector->element_bytes, count), stream, target_out);
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_read_async(const struct hipmm_vector *vector,
                                                                         size_t first, size_t count,
                                                                         hipmm_stream_t stream, void *target_out)
{
  return hipmm_buffer_read_async(vector->buffer, hipmm_vector_to_bytes(vector->element_bytes, first),
                                 hipmm_vector_to_bytes(vector->element_bytes, count), stream, target_out);
}

/* Copy one element to `value_out` or from `value`, or set its bytes to zero. get and set wait. */
HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_get(const struct hipmm_vector *vector, size_t index,
                                                                  hipmm_stream_t stream, void *value_out)
{
  return hipmm_vector_read(vector, index, 1, stream, value_out);
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_set(const struct hipmm_vector *vector, size_t index,
                                                                  const void *value, hipmm_stream_t stream)
{
  return hipmm_vector_write(vector, index, value, 1, stream);
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_set_async(const struct hipmm_vector *vector, size_t index,
                                                                        const void *value, hipmm_stream_t stream)
{
  return hipmm_vector_write_async(vector, index, value, 1, stream);
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_vector_set_zero_async(const struct hipmm_vector *vector,
                                                                             size_t index, hipmm_stream_t stream)
{
  return hipmm_buffer_fill(vector->buffer, hipmm_vector_to_bytes(vector->element_bytes, index), 0,
                           hipmm_vector_to_bytes(vector->element_bytes, 1), stream);
}

/* ---- Scalars: a buffer that has one value ------------------------------------------------------------------------ */

/* hipmm_buffer_create() and hipmm_buffer_create_from() make one. Copy the value, or set its bytes to zero. get and set
 * wait. */
HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_scalar_get(const struct hipmm_buffer *scalar,
                                                                  hipmm_stream_t stream, void *value_out)
{
  return hipmm_buffer_read(scalar, 0, hipmm_buffer_bytes(scalar), stream, value_out);
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_scalar_set(struct hipmm_buffer *scalar, const void *value,
                                                                  hipmm_stream_t stream)
{
  return hipmm_buffer_write(scalar, 0, value, hipmm_buffer_bytes(scalar), stream);
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_scalar_set_async(struct hipmm_buffer *scalar, const void *value,
                                                                        hipmm_stream_t stream)
{
  return hipmm_buffer_write_async(scalar, 0, value, hipmm_buffer_bytes(scalar), stream);
}

HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_scalar_set_zero_async(struct hipmm_buffer *scalar,
                                                                             hipmm_stream_t stream)
{
  return hipmm_buffer_fill(scalar, 0, 0, hipmm_buffer_bytes(scalar), stream);
}

#ifdef __cplusplus
}
#endif
#endif
