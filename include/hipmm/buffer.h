/* SPDX-License-Identifier: MIT */
/* hipmm/buffer.h: memory with an owner: buffers of a device and of the host. hipmm/vector.h has vectors and scalars
 * over them.
 *
 *     #include <hipmm/buffer.h>
 *     #include <stdio.h>
 *     int main(void)
 *     {
 *       struct hipmm_buffer *buffer;
 *       char text[6] = "";
 *       if (hipmm_init() || hipmm_buffer_create_from(NULL, "hello", 6, NULL, &buffer)) return 1;
 *       if (hipmm_buffer_resize(buffer, 1000, NULL) || hipmm_buffer_read(buffer, 0, 6, NULL, text)) return 1;
 *       printf("%s in %zu bytes\n", text, hipmm_buffer_bytes(buffer));
 *       return hipmm_buffer_destroy(buffer) || hipmm_finalize();
 *     }
 *
 * Rules for all containers; the conventions of hipmm.h hold too:
 *
 *   - A container is an opaque handle that owns one block of memory. It stores three things for the block: the
 *     resource, to which it owns a reference; the stream, on which the block will be freed; and the resource's device,
 *     to which its functions switch while they run. `resource` NULL means the current device's resource.
 *   - Containers are stream-ordered. A function that submits work takes the stream as its last input, as in RMM; the
 *     stream must be of the container's device. Creating, resizing, reserving and shrinking store the stream as the
 *     container's. If it differs from the previous one, the caller orders the two (hipmm_stream_wait()). The stored
 *     stream must live until the container is destroyed or has another one. (If hipmm created the stream and it was
 *     destroyed nonetheless, destroying the container waits for the whole device.)
 *   - The calling thread waits for the stream only where the comment says "waits". Otherwise host memory that is copied
 *     from must stay unchanged, and host memory that is copied to must not be read, until the copy has completed.
 *   - A container of 0 bytes has no block: its data is NULL.
 *   - A failed call leaves block, size, capacity and stream unchanged, and may be repeated. (The bytes that a failed
 *     copy was to write are undefined.)
 *   - One thread at a time may use a container; different threads may use different containers at once.
 *   - A container may outlive hipmm_finalize(): its reference keeps the stack alive. In the child of a fork every call
 *     is HIPMM_E_STATE. A destroyed container is HIPMM_E_POINTER, as long as no new one has its place; an index or range
 *     out of bounds is HIPMM_E_ARGUMENT.
 *   - A getter (data, bytes, stream, …) returns NULL, 0 or, for the device, -1, if its argument is NULL or not a live
 *     container. */
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

/* Creates a buffer of `bytes`, whose contents are undefined. The caller destroys it, as every container. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_create(struct hipmm_resource *resource, size_t bytes,
                                                       hipmm_stream_t stream, struct hipmm_buffer **buffer_out);

/* Creates a buffer with a copy of `bytes` at `source`, which is memory of the host or of any device. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_create_from(struct hipmm_resource *resource, const void *source,
                                                            size_t bytes, hipmm_stream_t stream,
                                                            struct hipmm_buffer **buffer_out);

/* Creates a buffer with a copy of another buffer's contents, and with a capacity of its size. `resource` may be of
 * another device than the source. `stream` is of the new buffer's device: the caller orders it after the work that
 * writes the source, and orders work that changes or destroys the source after it. The caller waits for the copy if the
 * two devices cannot reach each other's memory and the runtime does not stage copies. HIPMM_E_STATE while the source's
 * resource, or one that it depends on, is suspended. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_copy(const struct hipmm_buffer *source, struct hipmm_resource *resource,
                                                     hipmm_stream_t stream, struct hipmm_buffer **buffer_out);

/* Frees the block on the buffer's stream. NULL has no effect. After a failure the buffer still exists.
 *
 * A source cannot free memory while the stream is being captured. Then the buffer ends nonetheless, and the block is
 * freed after the capture: when the next container is created or destroyed on a stream that is not being captured, or
 * by hipmm_finalize(). A stream that hipmm did not create and that was not retained must live until then. This holds
 * for all containers. */
enum hipmm_status hipmm_buffer_destroy(struct hipmm_buffer *buffer);

/* For a caller that holds a lock which other threads may want in a function of the program, such as Python's
 * interpreter lock: as hipmm_buffer_create() and hipmm_buffer_destroy(), but these wait for no thread and no device,
 * and call no function of the program. Today they serve blocks of less than 1 MiB of a pool that has memory for them.
 * Nonzero: the call was served. 0: it was not done, for whatever reason, and the thread's error is undefined; release
 * the lock and call the other function. (A buffer that has the last reference to its stack may be empty then.) */
HIPMM_MUST_CHECK int hipmm_buffer_try_create(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                             struct hipmm_buffer **buffer_out);
HIPMM_MUST_CHECK int hipmm_buffer_try_destroy(struct hipmm_buffer *buffer);

/* Changes the size. Up to the capacity only the number changes. Beyond the capacity, a new block of exactly `bytes` is
 * allocated, the contents are copied to it on `stream`, and the old block is freed on `stream`. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_resize(struct hipmm_buffer *buffer, size_t bytes,
                                                       hipmm_stream_t stream);

/* Grows the capacity to at least `bytes`, in the same way. The size stays. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_reserve(struct hipmm_buffer *buffer, size_t bytes,
                                                        hipmm_stream_t stream);

/* Makes the capacity equal to the size, in the same way. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_shrink_to_fit(struct hipmm_buffer *buffer, hipmm_stream_t stream);

/* Copy to the buffer from `source`, or from the buffer to `target_out`: memory of the host or of any device. The
 * `_async` functions return when the copy is submitted; the others wait. `offset` and `bytes`, in bytes, must lie
 * within the size. HIPMM_E_STATE while the block's resource, or one that it depends on, is suspended. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_write(struct hipmm_buffer *buffer, size_t offset, const void *source,
                                                      size_t bytes, hipmm_stream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_write_async(struct hipmm_buffer *buffer, size_t offset,
                                                            const void *source, size_t bytes, hipmm_stream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_read(const struct hipmm_buffer *buffer, size_t offset, size_t bytes,
                                                     hipmm_stream_t stream, void *target_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_read_async(const struct hipmm_buffer *buffer, size_t offset,
                                                           size_t bytes, hipmm_stream_t stream, void *target_out);

/* Sets `bytes` from `offset` on to the byte `value`, as memset() does, and refuses as these do. Does not wait, unless
 * no device can access the memory: then it waits for the stream, which is HIPMM_E_STATE in a capture. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_fill(struct hipmm_buffer *buffer, size_t offset, int value,
                                                     size_t bytes, hipmm_stream_t stream);

/* Stores another stream, on which the block will be freed. Submits no work. */
enum hipmm_status hipmm_buffer_set_stream(struct hipmm_buffer *buffer, hipmm_stream_t stream);

/* Getters. Sizes are in bytes. */
void *hipmm_buffer_data(const struct hipmm_buffer *buffer);
size_t hipmm_buffer_bytes(const struct hipmm_buffer *buffer);
size_t hipmm_buffer_capacity_bytes(const struct hipmm_buffer *buffer);
hipmm_stream_t hipmm_buffer_stream(const struct hipmm_buffer *buffer);
int hipmm_buffer_device(const struct hipmm_buffer *buffer);

/* Without a reference: valid as long as the buffer. */
struct hipmm_resource *hipmm_buffer_resource(const struct hipmm_buffer *buffer);

/* Memory without a container. The caller sets struct_size = sizeof(struct hipmm_memory). */
struct hipmm_memory {
  size_t struct_size;
  void *ptr;                       /* NULL when capacity_bytes is 0 */
  size_t bytes;                    /* in use, at most capacity_bytes */
  size_t capacity_bytes;           /* of the block: the size for hipmm_deallocate() */
  struct hipmm_resource *resource; /* with a reference, which the owner of the struct owns */
  hipmm_stream_t stream;
};

/* Transfers the buffer's memory and its reference to the caller, and destroys the buffer without freeing the memory.
 * The caller frees ptr with hipmm_deallocate() and releases the reference with hipmm_resource_release(). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_release(struct hipmm_buffer *buffer, struct hipmm_memory *memory_out);

/* Creates a buffer that takes ownership of the memory and the reference. The block must be live in the resource, and of
 * capacity_bytes: otherwise HIPMM_E_POINTER or HIPMM_E_SIZE, if the resource can tell. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_buffer_adopt(const struct hipmm_memory *memory,
                                                      struct hipmm_buffer **buffer_out);

/* ---- Host buffers ------------------------------------------------------------------------------------------------ */

/* Memory that the host can read and write, for copies between host and device: copies of other containers from and to
 * pinned memory are asynchronous. All sources below `resource` must give memory that the host can use (`pinned`,
 * `host`, `managed`, `system`, …), else HIPMM_E_ARGUMENT. `resource` NULL means pinned memory for the current device,
 * independent of the graph. The stream is the stream of the copies that use the buffer. */
struct hipmm_host_buffer;

/* Create a host buffer of `bytes`: with undefined contents, or with a copy of `bytes` at `source`, which is memory of the
 * host or of any device. create_from waits. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_host_buffer_create(struct hipmm_resource *resource, size_t bytes,
                                                            hipmm_stream_t stream,
                                                            struct hipmm_host_buffer **buffer_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_host_buffer_create_from(struct hipmm_resource *resource, const void *source,
                                                                 size_t bytes, hipmm_stream_t stream,
                                                                 struct hipmm_host_buffer **buffer_out);
enum hipmm_status hipmm_host_buffer_destroy(struct hipmm_host_buffer *buffer);

/* As those of buffers, but they wait for `stream` if they allocate a new block: the host may use the contents on
 * return. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_host_buffer_resize(struct hipmm_host_buffer *buffer, size_t bytes,
                                                            hipmm_stream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_host_buffer_reserve(struct hipmm_host_buffer *buffer, size_t bytes,
                                                             hipmm_stream_t stream);
HIPMM_MUST_CHECK enum hipmm_status hipmm_host_buffer_shrink_to_fit(struct hipmm_host_buffer *buffer,
                                                                   hipmm_stream_t stream);

enum hipmm_status hipmm_host_buffer_set_stream(struct hipmm_host_buffer *buffer, hipmm_stream_t stream);

/* Getters. Sizes are in bytes. */
void *hipmm_host_buffer_data(const struct hipmm_host_buffer *buffer);
size_t hipmm_host_buffer_bytes(const struct hipmm_host_buffer *buffer);
size_t hipmm_host_buffer_capacity_bytes(const struct hipmm_host_buffer *buffer);
hipmm_stream_t hipmm_host_buffer_stream(const struct hipmm_host_buffer *buffer);
int hipmm_host_buffer_device(const struct hipmm_host_buffer *buffer);
struct hipmm_resource *hipmm_host_buffer_resource(const struct hipmm_host_buffer *buffer); /* without a reference */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
