/* SPDX-License-Identifier: MIT */
/* stream.c: stream handles. Called by applications, and by every function that takes a stream, to find its queue. The
 * work of a destroyed stream continues. Its handle is invalid at once, and the next stream may get the same handle. */
#include "internal.h"
#include <stdlib.h>

#define STREAM_LEGACY     ((hipStream_t)1) /* the default stream by name */
#define STREAM_PER_THREAD hipStreamPerThread

/* As on ROCm's devices: a smaller number is a higher priority. */
#define STREAM_LEAST_PRIORITY    1
#define STREAM_GREATEST_PRIORITY (-1)

/* A thread's default streams, one per device, made at first use. */
struct stream_thread {
  struct software_queue *queues[SOFTWARE_MAX_DEVICES];
  uint64_t ids[SOFTWARE_MAX_DEVICES];
};

static struct software_handles streams = {.object_bytes = sizeof(struct software_stream)};
static uint64_t stream_last_id = 2; /* as in HIP and CUDA, the default streams are 1 and 2 by name */
static pthread_key_t stream_key;
static pthread_once_t stream_once = PTHREAD_ONCE_INIT;
static bool stream_has_key;

static void stream_thread_end(void *argument)
{
  struct stream_thread *thread = argument;
  pthread_mutex_lock(&software.lock);
  for (int device = 0; device < SOFTWARE_MAX_DEVICES; device++)
    if (thread->queues[device]) {
      software_capture_leave(thread->queues[device]);
      software_queue_abandon(thread->queues[device]);
    }
  pthread_mutex_unlock(&software.lock);
  free(thread);
}

static void stream_make_key(void)
{
  stream_has_key = pthread_key_create(&stream_key, stream_thread_end) == 0;
}

static struct stream_thread *stream_get_thread(void)
{
  pthread_once(&stream_once, stream_make_key);
  if (!stream_has_key) return NULL;
  struct stream_thread *thread = pthread_getspecific(stream_key);
  if (thread) return thread;
  thread = calloc(1, sizeof *thread);
  if (thread && pthread_setspecific(stream_key, thread) == 0) return thread;
  free(thread);
  return NULL;
}

static hipError_t stream_per_thread(int device, struct software_queue **queue_out, uint64_t *id_out)
{
  struct stream_thread *thread = stream_get_thread();
  if (!thread) return hipErrorOutOfMemory;
  if (!thread->queues[device]) {
    thread->queues[device] = software_queue_acquire(device, true);
    if (thread->queues[device]) thread->queues[device]->stream = STREAM_PER_THREAD;
    thread->ids[device] = ++stream_last_id;
  }
  if (!thread->queues[device]) return hipErrorOutOfMemory;
  *queue_out = thread->queues[device];
  if (id_out) *id_out = thread->ids[device];
  return hipSuccess;
}

hipError_t software_default_queue(int device, struct software_queue **queue_out)
{
  struct software_queue **queue = &software.devices[device].queue;
  if (!*queue) {
    *queue = software_queue_acquire(device, false);
    if (!*queue) return hipErrorOutOfMemory;
    (*queue)->is_legacy = true;
    (*queue)->stream = NULL;
  }
  *queue_out = *queue;
  return hipSuccess;
}

hipError_t software_queue_find(hipStream_t stream, struct software_queue **queue_out)
{
  return software_queue_find_on(software_current_device(), stream, queue_out);
}

hipError_t software_queue_find_on(int device, hipStream_t stream, struct software_queue **queue_out)
{
  struct software_queue *queue;
  hipError_t error = hipSuccess;
  if (!stream || stream == STREAM_LEGACY)
    error = software_default_queue(device, &queue);
  else if (stream == STREAM_PER_THREAD)
    error = stream_per_thread(device, &queue, NULL);
  else if (software_handle_is_live(&streams, stream))
    queue = ((struct software_stream *)stream)->queue;
  else
    error = hipErrorInvalidHandle;
  if (error == hipSuccess) error = software.devices[queue->device].fault;
  if (error == hipSuccess) *queue_out = queue;
  return error;
}

/* NULL for the default streams, which have no object. */
static struct software_stream *stream_find_object(hipStream_t stream)
{
  return software_handle_is_live(&streams, stream) ? (struct software_stream *)stream : NULL;
}

/* ---- Life ------------------------------------------------------------------------------------------------------ */

static hipError_t stream_create(int device, unsigned flags, int priority, hipStream_t *stream_out)
{
  if (!stream_out || (flags & ~(unsigned)hipStreamNonBlocking)) return hipErrorInvalidValue;
  struct software_stream *stream = software_handle_allocate(&streams);
  if (!stream) return hipErrorOutOfMemory;
  stream->queue = software_queue_acquire(device, !(flags & hipStreamNonBlocking));
  if (!stream->queue) {
    software_handle_free(&streams, stream);
    return hipErrorOutOfMemory;
  }
  stream->queue->stream = (hipStream_t)stream;
  stream->id = ++stream_last_id;
  stream->device = device;
  stream->flags = flags;
  stream->priority = priority;
  *stream_out = (hipStream_t)stream;
  return hipSuccess;
}

hipError_t hipStreamCreate(hipStream_t *stream)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipStreamCreate, &device);
  return software_end(error != hipSuccess ? error : stream_create(device, hipStreamDefault, 0, stream));
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipStreamCreateWithFlags, &device);
  return software_end(error != hipSuccess ? error : stream_create(device, flags, 0, stream));
}

/* Priorities are stored and have no effect. */
hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipStreamCreateWithPriority, &device);
  if (priority > STREAM_LEAST_PRIORITY) priority = STREAM_LEAST_PRIORITY;
  if (priority < STREAM_GREATEST_PRIORITY) priority = STREAM_GREATEST_PRIORITY;
  return software_end(error != hipSuccess ? error : stream_create(device, flags, priority, stream));
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
  hipError_t error = software_enter(SOFTWARE_hipDeviceGetStreamPriorityRange);
  if (error == hipSuccess && least) *least = STREAM_LEAST_PRIORITY;
  if (error == hipSuccess && greatest) *greatest = STREAM_GREATEST_PRIORITY;
  return software_leave(error);
}

static void stream_destroy(struct software_stream *stream)
{
  software_capture_leave(stream->queue);
  software_queue_abandon(stream->queue);
  software_handle_free(&streams, stream);
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamDestroy);
  struct software_stream *object = stream_find_object(stream);
  if (error == hipSuccess && !object) error = hipErrorInvalidHandle;
  if (error == hipSuccess) {
    error = software.devices[object->device].fault;
    stream_destroy(object);
  }
  return software_end(error);
}

void software_streams_reset(int device)
{
  struct software_stream *next = software_handle_next(&streams, NULL);
  while (next) {
    struct software_stream *stream = next;
    next = software_handle_next(&streams, stream);
    if (device < 0 || stream->device == device) stream_destroy(stream);
  }
}

/* ---- Order ----------------------------------------------------------------------------------------------------- */

static hipError_t stream_synchronize(hipStream_t stream)
{
  struct software_queue *queue;
  hipError_t error = software_queue_find(stream, &queue);
  if (error == hipSuccess) error = software_capture_forbid_wait(queue);
  if (error != hipSuccess) return error;
  int device = queue->device;
  software_wait_queue(queue, software.sequence);
  software_pools_trim(device, NULL);
  return software.devices[device].fault;
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamSynchronize);
  return software_end(error != hipSuccess ? error : stream_synchronize(stream));
}

static hipError_t stream_query(hipStream_t stream)
{
  struct software_queue *queue;
  hipError_t error = software_queue_find(stream, &queue);
  if (error == hipSuccess) error = software_capture_forbid_wait(queue);
  if (error != hipSuccess) return error;
  int device = queue->device;
  software_stepped_poll();
  error = software.devices[device].fault;
  if (error != hipSuccess) return error;
  if (!software_queue_is_done(queue, software.sequence)) return hipErrorNotReady;
  software_watch_queue_over(queue);
  return hipSuccess;
}

hipError_t hipStreamQuery(hipStream_t stream)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamQuery);
  return software_end(error != hipSuccess ? error : stream_query(stream));
}

/* ---- Queries --------------------------------------------------------------------------------------------------- */

/* As in ROCm, NULL is refused here, although it is the default stream elsewhere. */
hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *flags)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamGetFlags);
  struct software_queue *queue;
  if (error == hipSuccess && (!flags || !stream)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = software_queue_find(stream, &queue);
  if (error == hipSuccess) *flags = stream_find_object(stream) ? stream_find_object(stream)->flags : hipStreamDefault;
  return software_end(error);
}

hipError_t hipStreamGetPriority(hipStream_t stream, int *priority)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamGetPriority);
  struct software_queue *queue;
  if (error == hipSuccess && !priority) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = software_queue_find(stream, &queue);
  if (error == hipSuccess) *priority = stream_find_object(stream) ? stream_find_object(stream)->priority : 0;
  return software_end(error);
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamGetDevice);
  struct software_queue *queue;
  if (error == hipSuccess && !device) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = software_queue_find(stream, &queue);
  if (error == hipSuccess) *device = queue->device;
  return software_end(error);
}

static hipError_t stream_id(hipStream_t stream, unsigned long long *id_out)
{
  struct software_queue *queue;
  uint64_t id = 1;
  hipError_t error = software_queue_find(stream, &queue);
  if (error == hipSuccess && stream == STREAM_PER_THREAD)
    error = stream_per_thread(software_current_device(), &queue, &id);
  if (error == hipSuccess && stream_find_object(stream)) id = stream_find_object(stream)->id;
  if (error == hipSuccess) *id_out = id;
  return error;
}

/* Unlike a handle, an id is never reused. */
hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *id)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamGetId);
  if (error == hipSuccess && !id) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : stream_id(stream, id));
}

/* ---- Host functions -------------------------------------------------------------------------------------------- */

static hipError_t stream_call(hipStream_t stream, struct software_operation model)
{
  struct software_queue *queue;
  hipError_t error = software_queue_find(stream, &queue);
  if (error != hipSuccess) return error;
  if (model.callback) error = software_capture_forbid(queue); /* as in CUDA, only a host function can be a node */
  if (error != hipSuccess) return error;
  struct software_operation *operation = software_operation_new(SOFTWARE_HOST, model.call);
  if (!operation) return hipErrorOutOfMemory;
  *operation = model;
  return software_submit(queue, operation);
}

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *argument)
{
  hipError_t error = software_begin(SOFTWARE_hipLaunchHostFunc);
  if (error == hipSuccess && !function) error = hipErrorInvalidValue;
  struct software_operation model = {
      .kind = SOFTWARE_HOST, .call = SOFTWARE_hipLaunchHostFunc, .function = function, .argument = argument};
  return software_end(error != hipSuccess ? error : stream_call(stream, model));
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *argument, unsigned int flags)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamAddCallback);
  if (error == hipSuccess && (!callback || flags != 0)) error = hipErrorInvalidValue;
  struct software_operation model = {.kind = SOFTWARE_HOST,
                                     .call = SOFTWARE_hipStreamAddCallback,
                                     .callback = callback,
                                     .stream = stream,
                                     .argument = argument};
  return software_end(error != hipSuccess ? error : stream_call(stream, model));
}
