/* SPDX-License-Identifier: MIT */
/* hipmm/stream.h: streams, pools of streams, and devices.
 *
 *     #include <hipmm/stream.h>
 *     int main(void)
 *     {
 *       hipStream_t stream;
 *       void *memory;
 *       if (hipmm_init() || hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream)) return 1;
 *       if (hipmm_allocate(NULL, 1000, stream, &memory)) return 1; // and work on it, submitted to the stream
 *       if (hipmm_deallocate(NULL, memory, 1000, stream) || hipmm_stream_synchronize(0, stream)) return 1;
 *       return hipmm_stream_destroy(stream) || hipmm_finalize();
 *     }
 *
 * A stream is HIP's own handle, a hipStream_t, so that it can be given to every library as it is. There is no object
 * round it: a handle by itself is what RMM calls a view (cuda_stream_view), whoever made the stream. Only streams that
 * came from hipmm_stream_create() (RMM: cuda_stream) can be given to hipmm_stream_destroy(); hipmm knows which.
 *
 * The conventions of hipmm.h hold. All functions here may be called from any thread at once. Those that take streams
 * work past hipmm_finalize() too, save create; the runtime stays in the process.
 */
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

/* The streams that every device has. The default stream is HIP's legacy one, which waits for and is waited for by every
 * stream without HIPMM_STREAM_NON_BLOCKING. The per-thread one is another stream in each thread. */
#define HIPMM_DEFAULT_STREAM    ((hipStream_t)0)
#define HIPMM_LEGACY_STREAM     ((hipStream_t)1)
#define HIPMM_PER_THREAD_STREAM ((hipStream_t)2)

/* Flags of hipmm_stream_create() (RMM: cuda_stream::flags). */
enum {
  HIPMM_STREAM_SYNC_DEFAULT = 0, /* ordered with the device's default stream */
  HIPMM_STREAM_NON_BLOCKING = 1  /* not so */
};

/* Makes a stream on a device. hipmm promises every stack of the device that it lives until hipmm_stream_destroy(), so
 * hipmm_stream_retain() is not needed, and memory that was freed on it is cheap to use again. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_create(int device, unsigned flags, hipStream_t *stream_out);

/* Retires the stream in every stack, then destroys it. Work that was submitted to it is finished all the same. No
 * container may have it as its stream any more. HIPMM_E_POINTER: hipmm did not make it, or it is destroyed already;
 * HIPMM_E_ARGUMENT: it is a default stream, or belongs to a pool. On another failure it is as before. */
enum hipmm_status hipmm_stream_destroy(hipStream_t stream);

/* Waits until all work that was submitted to `stream` so far is finished. `device` is the stream's, and tells which of
 * the default streams is meant. */
enum hipmm_status hipmm_stream_synchronize(int device, hipStream_t stream);

/* Whether it is finished: 1 or 0. Does not wait. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_query(int device, hipStream_t stream, int *done_out);

/* Makes what is submitted to `stream` from now on wait for what was submitted to `other` so far. The caller does not
 * wait. The two may be on different devices. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_wait(int device, hipStream_t stream, int other_device,
                                                     hipStream_t other);

/* The device of a stream. For a default stream, the current device. HIPMM_E_NOT_SUPPORTED for a stream that hipmm did
 * not make where the runtime cannot tell (HIP before 5.7). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_device(hipStream_t stream, int *device_out);

/* 1 or 0: whether it is the device's default stream, by either name; whether it is the thread's. */
int hipmm_stream_is_default(hipStream_t stream);
int hipmm_stream_is_per_thread_default(hipStream_t stream);

/* ---- Pools of streams ------------------------------------------------------------------------------------------- */

/* Streams of one device, each made when it is first asked for, and given out in turn (RMM: cuda_stream_pool). */
struct hipmm_stream_pool;

enum { HIPMM_STREAM_POOL_SIZE = 16, HIPMM_STREAM_POOL_MAX_SIZE = 65536 };

/* `size` is the number of streams, at most HIPMM_STREAM_POOL_MAX_SIZE; 0 means HIPMM_STREAM_POOL_SIZE. `flags` are
 * those of hipmm_stream_create(). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_pool_create(int device, size_t size, unsigned flags,
                                                            struct hipmm_stream_pool **pool_out);

/* Destroys the pool's streams as hipmm_stream_destroy() does, then the pool. NULL has no effect. When a stream cannot
 * be destroyed the others are all the same; the pool stays, and the call can be made again. */
enum hipmm_status hipmm_stream_pool_destroy(struct hipmm_stream_pool *pool);

/* The next stream in turn; that of `index` modulo the pool's size. They stay the pool's. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_pool_get(struct hipmm_stream_pool *pool, hipStream_t *stream_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_stream_pool_get_at(struct hipmm_stream_pool *pool, size_t index,
                                                            hipStream_t *stream_out);

/* The number of streams, and their device; 0 and -1 for what is no pool. */
size_t hipmm_stream_pool_size(const struct hipmm_stream_pool *pool);
int hipmm_stream_pool_device(const struct hipmm_stream_pool *pool);

/* ---- Devices ---------------------------------------------------------------------------------------------------- */

/* Beside hipmm_device_count() and hipmm_device_current(). Makes a device current for the calling thread. */
enum hipmm_status hipmm_device_set(int device);

/* Makes a device current for a scope, and the one that was before current again (RMM: cuda_set_device_raii). Pairs
 * nest. Call leave, with what enter gave, after a successful enter only. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_enter(int device, int *previous_out);
enum hipmm_status hipmm_device_leave(int previous);

/* Bytes of the device's memory that are free now, and all that it has. Either may be NULL. Free memory counts neither
 * what pools keep nor what other processes use (RMM: available_device_memory). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_memory(int device, size_t *free_bytes_out, size_t *total_bytes_out);

/* `percent` per cent of the bytes that are free now, 0 to 100, rounded down to a multiple of 256 (RMM:
 * percent_of_free_device_memory). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_percent_of_free_memory(int device, int percent, size_t *bytes_out);

/* The device's name, cut to `bytes` with its terminating 0. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_name(int device, size_t bytes, char *name_out);

/* A property of the device, by the number that HIP gives it (hipDeviceAttribute_t). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_attribute(int device, int attribute, int *value_out);

/* The version of the runtime in use and of the driver under it, in the form that the runtime has for it. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_runtime_version(int *version_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_driver_version(int *version_out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
