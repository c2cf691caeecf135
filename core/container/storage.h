/* SPDX-License-Identifier: MIT */
/* storage.h: the common part of all containers: an object with one block of a resource. buffer.c and host_buffer.c add
 * public names. */
#ifndef HIPMM_CORE_CONTAINER_STORAGE_H
#define HIPMM_CORE_CONTAINER_STORAGE_H

#include "../call/handle.h"

#include <stdbool.h>

struct storage {
  struct handle handle;
  struct hipmm_resource *resource; /* of the stack that the handle retains */
  hipmm_stream_t stream;           /* to free the block on */
  int device;
  uint64_t stream_number; /* of a stream that hipmm created: shows whether the stream is destroyed; 0 of others */
  void *data;
  size_t bytes, capacity_bytes;
  struct storage *next; /* of those that wait for the end of a capture */
};

_Static_assert(sizeof(struct storage) <= HANDLE_OBJECT_BYTES, "struct storage");

/* Initialises a new object, which retains the stack of the resource, as a container of a block of `bytes`. */
void storage_init(struct storage *storage, struct hipmm_resource *resource, void *data, size_t bytes,
                  hipmm_stream_t stream);

/* A container of `bytes`, which has no kind until handle_open(). HIPMM_E_ARGUMENT if the stream is not of the resource's
 * device. */
enum hipmm_status storage_new(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                              struct storage **storage_out);

/* The same with a copy of `bytes` at `source`, which must not be NULL then. */
enum hipmm_status storage_new_from(struct hipmm_resource *resource, const void *source, const char *name, size_t bytes,
                                   hipmm_stream_t stream, struct storage **storage_out);

/* The same with the contents of another container, of any device; `resource` may be NULL. */
enum hipmm_status storage_new_copy(const struct storage *source, struct hipmm_resource *resource, hipmm_stream_t stream,
                                   struct storage **storage_out);

/* Frees a container that was never opened, after a failure whose error stays the thread's. */
void storage_abandon(struct storage *storage);

/* Frees the block, releases the stack and ends the object. On failure all is as it was. NULL has no effect. A block that cannot
 * be freed while its stream is being captured is freed by a later call, of this function or of one of those above with a stream
 * that is not, or of storage_free_waiting(). */
enum hipmm_status storage_destroy(void *container, enum handle_kind kind);
void storage_free_waiting(void);

/* As storage_new() and storage_destroy(), but only where the resource does its part at once (hipmm_ops.try_allocate) and
 * nothing else has to wait, nor to ask the runtime for more than the current device. NULL and false: not done, and the
 * thread's error is undefined; an object with the last reference to its stack may have lost its block. */
struct storage *storage_try_new(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream);
bool storage_try_destroy(void *container, enum handle_kind kind);

/* Reserve: a capacity of at least `bytes`. Resize: that size. Shrink: no more capacity than the size. `waits`: until the
 * contents are in the new block, if there is one. On failure all is as it was. */
enum hipmm_status storage_reserve(struct storage *storage, size_t bytes, hipmm_stream_t stream, bool waits);
enum hipmm_status storage_resize(struct storage *storage, size_t bytes, hipmm_stream_t stream, bool waits);
enum hipmm_status storage_shrink(struct storage *storage, hipmm_stream_t stream, bool waits);

enum hipmm_status storage_set_stream(struct storage *storage, hipmm_stream_t stream);

/* Copies in and out, within the size; `name` is what the program calls `source` or `target`; `waits`: for the stream. */
enum hipmm_status storage_write(struct storage *storage, size_t offset, const void *source, const char *name,
                                size_t bytes, hipmm_stream_t stream, bool waits);
enum hipmm_status storage_read(const struct storage *storage, size_t offset, void *target, const char *name,
                               size_t bytes, hipmm_stream_t stream, bool waits);
enum hipmm_status storage_fill(struct storage *storage, size_t offset, int value, size_t bytes, hipmm_stream_t stream);

/* The container behind a public handle, if it is a live one of the kind; NULL otherwise. */
static inline struct storage *storage_of(const void *container, enum handle_kind kind)
{
  return handle_is(container, kind) ? (struct storage *)(uintptr_t)container : NULL;
}

/* ---- copy.c: copies between memory that the devices of HIP or the host can reach. 0 bytes: nothing happens ---- */

/* Submits a copy to a stream of `device`; `waits`: and waits for the stream. */
enum hipmm_status copy_bytes(int device, void *to, const void *from, size_t bytes, hipmm_stream_t stream, bool waits);

/* Submits a copy from the memory of one device to the memory of another, to a stream of the latter. Where the runtime
 * cannot do that, the copy goes through host memory, and the caller waits. */
enum hipmm_status copy_between_devices(int to_device, void *to, int from_device, const void *from, size_t bytes,
                                       hipmm_stream_t stream);

/* Submits a fill to a stream of `device`. */
enum hipmm_status copy_fill(int device, void *to, int value, size_t bytes, hipmm_stream_t stream);

/* Waits for the stream and fills memory that no device can write. */
enum hipmm_status copy_fill_on_host(int device, void *to, int value, size_t bytes, hipmm_stream_t stream);

/* ---- pinned_resource.c: the pinned memory of each device for host buffers, a resource beside the device's stack ---- */

/* The pinned resource of a device, built at first use. The caller owns a reference. */
enum hipmm_status pinned_resource_get(int device, struct hipmm_resource **resource_out);

/* Releases all of them. Called with device_table_close(), under the same conditions. */
void pinned_resource_close(void);

/* Whether all memory of a resource comes from sources that the host can use. */
bool pinned_resource_is_one(const struct hipmm_resource *resource);

#endif
