/* SPDX-License-Identifier: MIT */
/* hipmm/stream.h: streams, events, pools of streams, and devices.
 *
 *     #include <hipmm/stream.h>
 *     int main(void)
 *     {
 *       hipmm_stream_t stream;
 *       void *memory;
 *       if (hipmm_init() || hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream)) return 1;
 *       if (hipmm_allocate(NULL, 1000, stream, &memory)) return 1; // and work on it, submitted to the stream
 *       if (hipmm_deallocate(NULL, memory, 1000, stream) || hipmm_stream_synchronize(0, stream)) return 1;
 *       return hipmm_stream_destroy(stream) || hipmm_finalize();
 *     }
 *
 * A stream is the runtime's own handle, which every library accepts. There is no object around it: a handle is
 * what RMM calls a view (cuda_stream_view), whichever library created the stream. hipmm_stream_destroy() accepts only
 * streams from hipmm_stream_create() (RMM: cuda_stream).
 *
 * The conventions of hipmm.h hold; all functions are thread-safe. Functions that take a stream, except create, work after
 * hipmm_finalize() too, since the runtime stays in the process. */
#ifndef HIPMM_STREAM_H
#define HIPMM_STREAM_H

#include <hipmm/hipmm.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- Streams ---------------------------------------------------------------------------------------------------- */

/* The streams that every device has. The default stream is HIP's legacy stream: it and every stream without
 * HIPMM_STREAM_NON_BLOCKING wait for each other. The per-thread stream is a different stream in each thread. */
#define HIPMM_DEFAULT_STREAM    ((hipmm_stream_t)0)
#define HIPMM_LEGACY_STREAM     ((hipmm_stream_t)1)
#define HIPMM_PER_THREAD_STREAM ((hipmm_stream_t)2)

/* Flags of hipmm_stream_create() (RMM: cuda_stream::flags). */
enum {
  HIPMM_STREAM_SYNC_DEFAULT = 0, /* ordered with the device's default stream */
  HIPMM_STREAM_NON_BLOCKING = 1  /* independent of it */
};

/* Creates a stream on a device. It is retained in every stack of the device until hipmm_stream_destroy(), so
 * hipmm_stream_retain() is not needed. An unknown flag is HIPMM_E_ARGUMENT. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_create(int device, unsigned flags, hipmm_stream_t *stream_out);

/* The same with a priority: if the device can choose between work of several streams, it takes work of the stream with
 * the lower number first. priority_range writes the device's least and greatest priority; the greatest is the lowest
 * number, and 0 is usual. A priority outside this range is HIPMM_E_ARGUMENT; a runtime without priorities is
 * HIPMM_E_NOT_SUPPORTED (HIP: hipStreamCreateWithPriority, which clamps). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_create_with_priority(int device, unsigned flags, int priority,
                                                                     hipmm_stream_t *stream_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_priority_range(int device, int *least_out, int *greatest_out);

/* Retires the stream in every stack, then destroys it. Work that was submitted to it still completes. No container may
 * have it as its stream. HIPMM_E_POINTER: hipmm did not create it, or it was destroyed already; HIPMM_E_ARGUMENT: it is
 * a default stream, or belongs to a pool. After another failure it is unchanged. */
enum hipmm_status hipmm_stream_destroy(hipmm_stream_t stream);

/* Waits until all work that was submitted to `stream` so far has completed. `device` is the stream's device, and
 * selects the default stream. */
enum hipmm_status hipmm_stream_synchronize(int device, hipmm_stream_t stream);

/* Whether all of this work has completed: 1 or 0. Does not wait. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_query(int device, hipmm_stream_t stream, int *done_out);

/* Makes all later work of `stream` wait for the work that was submitted to `other` so far. The calling thread does not
 * wait. The streams may be of different devices. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_wait(int device, hipmm_stream_t stream, int other_device,
                                                     hipmm_stream_t other);

/* The device of a stream. For a default stream, the current device. HIPMM_E_NOT_SUPPORTED for a stream that hipmm did
 * not create, if the runtime cannot tell (HIP before 5.7). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_device(hipmm_stream_t stream, int *device_out);

/* Whether it is the device's default stream, by either handle, and whether it is the per-thread stream: 1 or 0. */
int hipmm_stream_is_default(hipmm_stream_t stream);
int hipmm_stream_is_per_thread_default(hipmm_stream_t stream);

/* ---- Events ------------------------------------------------------------------------------------------------------ */

/* A point in the work of a stream (HIP: hipEvent_t without times). Events work after hipmm_finalize(), too. All functions are
 * thread-safe, except that no other thread may use an event that is being destroyed. An event that is not live is
 * HIPMM_E_ARGUMENT, a failure of the runtime HIPMM_E_HIP. */
struct hipmm_stream_event;

/* Creates an event on a device. The caller destroys it. Before the first record it stands for work that has completed.
 * HIPMM_E_NO_DEVICE if there is no such device. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_event_create(int device, struct hipmm_stream_event **event_out);

/* NULL has no effect. Streams that wait for the event's work go on waiting. After a failure the event is unchanged. */
enum hipmm_status hipmm_stream_event_destroy(struct hipmm_stream_event *event);

/* From now on the event stands for the work that was submitted to `stream` so far, a stream of the event's device. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_event_record(struct hipmm_stream_event *event, hipmm_stream_t stream);

/* Whether this work has completed: 1 or 0. Does not wait. synchronize waits until it has. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_event_query(struct hipmm_stream_event *event, int *done_out);
enum hipmm_status hipmm_stream_event_synchronize(struct hipmm_stream_event *event);

/* Makes all later work of `stream`, a stream of `device`, wait for this work. The calling thread does not wait. The device
 * may be another one than the event's. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_event_wait(struct hipmm_stream_event *event, int device,
                                                           hipmm_stream_t stream);

/* ---- Pools of streams ------------------------------------------------------------------------------------------- */

/* Streams of one device, created at their first use and returned in turn (RMM: cuda_stream_pool). */
struct hipmm_stream_pool;

enum { HIPMM_STREAM_POOL_SIZE = 16, HIPMM_STREAM_POOL_MAX_SIZE = 65536 };

/* Creates a pool. `size` is the number of streams, at most HIPMM_STREAM_POOL_MAX_SIZE; 0 means HIPMM_STREAM_POOL_SIZE.
 * `flags`: as for hipmm_stream_create(). The caller destroys the pool. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_pool_create(int device, size_t size, unsigned flags,
                                                            struct hipmm_stream_pool **pool_out);

/* Destroys the pool's streams as hipmm_stream_destroy() does, then the pool. NULL has no effect. If one stream cannot
 * be destroyed, the others are destroyed; the pool stays, and the call can be repeated. */
enum hipmm_status hipmm_stream_pool_destroy(struct hipmm_stream_pool *pool);

/* The next stream in turn, and the stream number `index` modulo the pool's size. The pool owns both. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_pool_get(struct hipmm_stream_pool *pool, hipmm_stream_t *stream_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_pool_get_at(struct hipmm_stream_pool *pool, size_t index,
                                                            hipmm_stream_t *stream_out);

/* The number of streams, and their device. 0 and -1 if `pool` is not a live pool. */
size_t hipmm_stream_pool_size(const struct hipmm_stream_pool *pool);
int hipmm_stream_pool_device(const struct hipmm_stream_pool *pool);

/* ---- Devices ---------------------------------------------------------------------------------------------------- */

/* Makes a device current for the calling thread. See also hipmm_device_count() and hipmm_device_current(). */
enum hipmm_status hipmm_device_set(int device);

/* enter makes a device current and writes the previous one; leave makes that one current again (RMM:
 * cuda_set_device_raii). Pairs may be nested. leave may be called only after a successful enter. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_enter(int device, int *previous_out);
enum hipmm_status hipmm_device_leave(int previous);

/* The device's free memory now, and all of its memory, in bytes. Either argument may be NULL. Memory that pools hold or
 * other processes use is not free (RMM: available_device_memory). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_memory(int device, size_t *free_bytes_out, size_t *total_bytes_out);

/* `percent`, 0 to 100, per cent of the free memory now, in bytes, rounded down to a multiple of 256 (RMM:
 * percent_of_free_device_memory). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_percent_of_free_memory(int device, int percent, size_t *bytes_out);

/* The device's name, cut to `bytes` including its terminating 0. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_name(int device, size_t bytes, char *name_out);

/* An attribute of the device, by its number in HIP (hipDeviceAttribute_t). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_attribute(int device, int attribute, int *value_out);

/* The versions of the runtime in use and of its driver, as numbers in the runtime's own form. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_runtime_version(int *version_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_driver_version(int *version_out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
