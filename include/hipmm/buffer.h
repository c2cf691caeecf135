/* SPDX-License-Identifier: MIT */
/* hipmm/buffer.h: memory with an owner: buffers, vectors, scalars and buffers of the host.
 *
 *     #include <hipmm/buffer.h>
 *     #include <stdio.h>
 *     int main(void)
 *     {
 *       struct hipmm_vector *vector;
 *       double values[] = {1, 2, 3}, last;
 *       if (hipmm_init() || hipmm_vector_create_from(NULL, sizeof *values, values, 3, NULL, &vector)) return 1;
 *       if (hipmm_vector_resize(vector, 1000, NULL) || hipmm_vector_get(vector, 2, NULL, &last)) return 1;
 *       printf("%g of %zu\n", last, hipmm_vector_count(vector));
 *       return hipmm_vector_destroy(vector) || hipmm_finalize();
 *     }
 *
 * What all containers have in common:
 *
 *   - They are opaque handles. Each owns one block of memory and remembers three things for it: the resource, of which
 *     it holds a reference; the stream, on which the block will be freed; and the resource's device, to which its
 *     functions switch for as long as they run. `resource` NULL means the current device's resource.
 *   - They are stream-ordered. Functions that submit work take the stream to submit it to, last of their inputs, as in
 *     RMM; it must be of the container's device. Creating, resizing, reserving and shrinking store it as the
 *     container's stream. When it is another than before, the caller sees to the order of the two
 *     (hipmm_stream_wait()). The stored stream must live until the container is destroyed or has another one. (If it
 *     was hipmm's and is destroyed nonetheless, destroying the container waits for the whole device.)
 *   - Only where it says "waits" does the calling thread wait for the stream. Otherwise memory of the host that is
 *     copied from must stay unchanged, and what is copied to must not be read, until the stream has come that far.
 *   - A container of 0 bytes has no block: its data is NULL.
 *   - A call that fails leaves the container as it was: block, size, capacity and stream. It may be made again. (The
 *     contents that a failed copy was to write, here or in the caller's memory, are not known.)
 *   - A container is used by one thread at a time; different ones by any threads at once.
 *   - They may outlive hipmm_finalize(): the reference keeps their stack alive. In the child of a fork every call is
 *     HIPMM_E_STATE. A container that was destroyed already is refused with HIPMM_E_POINTER, as long as no new one has
 *     taken its place; an index or range out of bounds with HIPMM_E_ARGUMENT.
 *   - What only looks (data, bytes, stream, …) returns its answer, and for NULL or what is no such container NULL, 0
 *     or, for the device, -1.
 */
#ifndef HIPMM_BUFFER_H
#define HIPMM_BUFFER_H

#include <hipmm/hipmm.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- Buffers: bytes (RMM: device_buffer) ------------------------------------------------------------------------ */

struct hipmm_buffer;

/* A buffer of `bytes` that nobody has written yet. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_create(struct hipmm_resource *resource, size_t bytes,
                                                       hipStream_t stream, struct hipmm_buffer **buffer_out);

/* A buffer with a copy of `bytes` at `source`, memory of the host or of any device. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_create_from(struct hipmm_resource *resource, const void *source,
                                                            size_t bytes, hipStream_t stream,
                                                            struct hipmm_buffer **buffer_out);

/* A buffer with a copy of another's contents; its capacity is the size of what it holds. `resource` may be of another
 * device than the source's; `stream` is of the new buffer's device, and the caller orders it after the work that writes
 * the source, and what changes or destroys the source after it. Between devices that cannot reach each other's memory,
 * and whose runtime does not stage copies itself, the caller waits for the copy. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_copy(const struct hipmm_buffer *source, struct hipmm_resource *resource,
                                                     hipStream_t stream, struct hipmm_buffer **buffer_out);

/* Frees the block on the buffer's stream. NULL has no effect. On failure the buffer is still there. */
enum hipmm_status hipmm_buffer_destroy(struct hipmm_buffer *buffer);

/* Changes the size. Up to the capacity only the number changes; beyond it, a new block of exactly `bytes` takes the
 * contents over by a copy on `stream`, and the old one is freed on `stream`. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_resize(struct hipmm_buffer *buffer, size_t bytes, hipStream_t stream);

/* Sees to a capacity of at least `bytes`, in the same way; the size stays. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_reserve(struct hipmm_buffer *buffer, size_t bytes, hipStream_t stream);

/* Makes the capacity equal to the size, in the same way. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_shrink_to_fit(struct hipmm_buffer *buffer, hipStream_t stream);

/* Copies to the buffer from `source`, or out of it to `target`: memory of the host or of any device. The `_async` ones
 * return when the copy is submitted, the others wait. `offset` and `bytes` must lie within the size. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_write(struct hipmm_buffer *buffer, size_t offset, const void *source,
                                                      size_t bytes, hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_write_async(struct hipmm_buffer *buffer, size_t offset,
                                                            const void *source, size_t bytes, hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_read(const struct hipmm_buffer *buffer, size_t offset, size_t bytes,
                                                     hipStream_t stream, void *target_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_read_async(const struct hipmm_buffer *buffer, size_t offset,
                                                           size_t bytes, hipStream_t stream, void *target_out);

/* Sets `bytes` from `offset` on to the byte `value`. Does not wait. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_fill(struct hipmm_buffer *buffer, size_t offset, int value,
                                                     size_t bytes, hipStream_t stream);

/* The stream on which the block will be freed. Touches neither the old stream nor the new one. */
enum hipmm_status hipmm_buffer_set_stream(struct hipmm_buffer *buffer, hipStream_t stream);

void *hipmm_buffer_data(const struct hipmm_buffer *buffer);
size_t hipmm_buffer_bytes(const struct hipmm_buffer *buffer);
size_t hipmm_buffer_capacity_bytes(const struct hipmm_buffer *buffer);
hipStream_t hipmm_buffer_stream(const struct hipmm_buffer *buffer);
int hipmm_buffer_device(const struct hipmm_buffer *buffer);

/* Borrowed: good for as long as the buffer is. */
struct hipmm_resource *hipmm_buffer_resource(const struct hipmm_buffer *buffer);

/* Memory without its container. The caller sets struct_size = sizeof(struct hipmm_memory). */
struct hipmm_memory {
  size_t struct_size;
  void *ptr;                       /* NULL when capacity_bytes is 0 */
  size_t bytes;                    /* in use, at most capacity_bytes */
  size_t capacity_bytes;           /* as the block was allocated: the size to give to hipmm_deallocate() */
  struct hipmm_resource *resource; /* with a reference that belongs to whoever has the struct */
  hipStream_t stream;
};

/* Hands the buffer's memory and its reference over to the caller, and destroys the buffer without freeing anything. The
 * caller frees ptr with hipmm_deallocate() and gives the reference back with hipmm_resource_release(). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_release(struct hipmm_buffer *buffer, struct hipmm_memory *memory_out);

/* The reverse: makes a buffer that takes the memory and the reference over. The block must be live in the resource, and
 * as large as capacity_bytes: HIPMM_E_POINTER and HIPMM_E_SIZE where the resource can tell. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_adopt(const struct hipmm_memory *memory,
                                                      struct hipmm_buffer **buffer_out);

/* ---- Vectors: elements of one size (RMM: device_uvector) -------------------------------------------------------- */

/* Elements are `element_bytes` long, which is not 0, and are moved as plain bytes; those that nobody wrote have no
 * value. Sizes and indices here count elements. A number of elements whose bytes cannot be counted is
 * HIPMM_E_OUT_OF_MEMORY. */
struct hipmm_vector;

HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_create(struct hipmm_resource *resource, size_t element_bytes,
                                                       size_t count, hipStream_t stream,
                                                       struct hipmm_vector **vector_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_create_from(struct hipmm_resource *resource, size_t element_bytes,
                                                            const void *source, size_t count, hipStream_t stream,
                                                            struct hipmm_vector **vector_out);

/* As hipmm_buffer_copy(), _destroy(), _resize(), _reserve(), _shrink_to_fit(), _set_stream(). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_copy(const struct hipmm_vector *source, struct hipmm_resource *resource,
                                                     hipStream_t stream, struct hipmm_vector **vector_out);
enum hipmm_status hipmm_vector_destroy(struct hipmm_vector *vector);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_resize(struct hipmm_vector *vector, size_t count, hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_reserve(struct hipmm_vector *vector, size_t count, hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_shrink_to_fit(struct hipmm_vector *vector, hipStream_t stream);
enum hipmm_status hipmm_vector_set_stream(struct hipmm_vector *vector, hipStream_t stream);

/* One element: to `value_out`, from `value`, to zero bytes. get and set wait; the others do not. front is the first
 * element, back the last; an empty vector has neither. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_get(const struct hipmm_vector *vector, size_t index, hipStream_t stream,
                                                    void *value_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_front(const struct hipmm_vector *vector, hipStream_t stream,
                                                      void *value_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_back(const struct hipmm_vector *vector, hipStream_t stream,
                                                     void *value_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_set(struct hipmm_vector *vector, size_t index, const void *value,
                                                    hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_set_async(struct hipmm_vector *vector, size_t index, const void *value,
                                                          hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_set_zero_async(struct hipmm_vector *vector, size_t index,
                                                               hipStream_t stream);

/* `count` elements from `first` on, from `source` or to `target`, as hipmm_buffer_write() and hipmm_buffer_read(). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_write(struct hipmm_vector *vector, size_t first, const void *source,
                                                      size_t count, hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_write_async(struct hipmm_vector *vector, size_t first,
                                                            const void *source, size_t count, hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_read(const struct hipmm_vector *vector, size_t first, size_t count,
                                                     hipStream_t stream, void *target_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_read_async(const struct hipmm_vector *vector, size_t first,
                                                           size_t count, hipStream_t stream, void *target_out);

/* The address of an element on the device, and of the first of `count` that exist. Good until the vector's block
 * changes. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_element(const struct hipmm_vector *vector, size_t index,
                                                        void **element_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_range(const struct hipmm_vector *vector, size_t first, size_t count,
                                                      void **elements_out);

/* Makes the vector's block a buffer's, and destroys the vector. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_vector_release(struct hipmm_vector *vector, struct hipmm_buffer **buffer_out);

void *hipmm_vector_data(const struct hipmm_vector *vector);
size_t hipmm_vector_count(const struct hipmm_vector *vector);
size_t hipmm_vector_capacity(const struct hipmm_vector *vector); /* elements */
size_t hipmm_vector_element_bytes(const struct hipmm_vector *vector);
hipStream_t hipmm_vector_stream(const struct hipmm_vector *vector);
int hipmm_vector_device(const struct hipmm_vector *vector);
struct hipmm_resource *hipmm_vector_resource(const struct hipmm_vector *vector); /* borrowed */

/* ---- Scalars: one element (RMM: device_scalar) ------------------------------------------------------------------ */

struct hipmm_scalar;

/* A scalar of `bytes`, which is not 0, without a value, or with that at `value`. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_scalar_create(struct hipmm_resource *resource, size_t bytes,
                                                       hipStream_t stream, struct hipmm_scalar **scalar_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_scalar_create_from(struct hipmm_resource *resource, const void *value,
                                                            size_t bytes, hipStream_t stream,
                                                            struct hipmm_scalar **scalar_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_scalar_copy(const struct hipmm_scalar *source, struct hipmm_resource *resource,
                                                     hipStream_t stream, struct hipmm_scalar **scalar_out);
enum hipmm_status hipmm_scalar_destroy(struct hipmm_scalar *scalar);

/* get and set wait; the others do not. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_scalar_get(const struct hipmm_scalar *scalar, hipStream_t stream,
                                                    void *value_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_scalar_set(struct hipmm_scalar *scalar, const void *value, hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_scalar_set_async(struct hipmm_scalar *scalar, const void *value,
                                                          hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_scalar_set_zero_async(struct hipmm_scalar *scalar, hipStream_t stream);

enum hipmm_status hipmm_scalar_set_stream(struct hipmm_scalar *scalar, hipStream_t stream);

void *hipmm_scalar_data(const struct hipmm_scalar *scalar);
size_t hipmm_scalar_bytes(const struct hipmm_scalar *scalar);
hipStream_t hipmm_scalar_stream(const struct hipmm_scalar *scalar);
int hipmm_scalar_device(const struct hipmm_scalar *scalar);
struct hipmm_resource *hipmm_scalar_resource(const struct hipmm_scalar *scalar); /* borrowed */

/* ---- Buffers of the host ---------------------------------------------------------------------------------------- */

/* Bytes that the host reads and writes at their address, to copy between host and device: with pinned memory the copies
 * of other containers are truly asynchronous. `resource` is one over sources whose memory the host can use (`pinned`,
 * `host`, `managed`, `system`, …), from the graph or from hipmm_resource_create(), else HIPMM_E_ARGUMENT; NULL means
 * pinned memory for the current device, whatever the graph says. The stream is the one whose copies use the buffer. */
struct hipmm_host_buffer;

/* A host buffer of `bytes`, or with a copy of `bytes` at `source`, memory of the host or of any device, for which it
 * waits. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_host_buffer_create(struct hipmm_resource *resource, size_t bytes,
                                                            hipStream_t stream, struct hipmm_host_buffer **buffer_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_host_buffer_create_from(struct hipmm_resource *resource, const void *source,
                                                                 size_t bytes, hipStream_t stream,
                                                                 struct hipmm_host_buffer **buffer_out);
enum hipmm_status hipmm_host_buffer_destroy(struct hipmm_host_buffer *buffer);

/* As those of buffers, but with a new block they wait for `stream`, so that the contents can be used on return. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_host_buffer_resize(struct hipmm_host_buffer *buffer, size_t bytes,
                                                            hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_host_buffer_reserve(struct hipmm_host_buffer *buffer, size_t bytes,
                                                             hipStream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_host_buffer_shrink_to_fit(struct hipmm_host_buffer *buffer,
                                                                   hipStream_t stream);

enum hipmm_status hipmm_host_buffer_set_stream(struct hipmm_host_buffer *buffer, hipStream_t stream);

void *hipmm_host_buffer_data(const struct hipmm_host_buffer *buffer);
size_t hipmm_host_buffer_bytes(const struct hipmm_host_buffer *buffer);
size_t hipmm_host_buffer_capacity_bytes(const struct hipmm_host_buffer *buffer);
hipStream_t hipmm_host_buffer_stream(const struct hipmm_host_buffer *buffer);
int hipmm_host_buffer_device(const struct hipmm_host_buffer *buffer);
struct hipmm_resource *hipmm_host_buffer_resource(const struct hipmm_host_buffer *buffer); /* borrowed */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
