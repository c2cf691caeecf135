/* SPDX-License-Identifier: MIT */
/* simple.c: see simple.h. */
#include "simple.h"

#include "devices.h"
#include "failure.h"
#include "real.h"
#include "setup.h"
#include "streams.h"
#include "thread.h"

struct stream_request {
  hipStream_t *stream;
  unsigned flags;
  int priority;
};

static int create(enum hook hook, void *arguments)
{
  const struct stream_request *request = arguments;
  return real_pointer(hook, request->stream);
}

static int create_with_flags(enum hook hook, void *arguments)
{
  const struct stream_request *request = arguments;
  return ((int (*)(hipStream_t *, unsigned))real_function_of(hook))(request->stream, request->flags);
}

static int create_with_priority(enum hook hook, void *arguments)
{
  const struct stream_request *request = arguments;
  return ((int (*)(hipStream_t *, unsigned, int))real_function_of(hook))(request->stream, request->flags,
                                                                         request->priority);
}

int simple_create_stream(enum hook hook, hipStream_t *stream)
{
  struct stream_request request = {.stream = stream};
  return streams_create(hook, stream, create, &request);
}

int simple_create_stream_with_flags(enum hook hook, hipStream_t *stream, unsigned flags)
{
  struct stream_request request = {.stream = stream, .flags = flags};
  return streams_create(hook, stream, create_with_flags, &request);
}

int simple_create_stream_with_priority(enum hook hook, hipStream_t *stream, unsigned flags, int priority)
{
  struct stream_request request = {.stream = stream, .flags = flags, .priority = priority};
  return streams_create(hook, stream, create_with_priority, &request);
}

int simple_set_device(enum hook hook, int device)
{
  bool is_outermost = thread_enter();
  if (is_outermost) setup_before_first_use();
  int code = real_number(hook, device);
  if (is_outermost && !code) devices_mark_used(device);
  thread_leave();
  return code;
}

int simple_last_error(enum hook hook, bool clear)
{
  bool is_outermost = thread_enter();
  int code = is_outermost ? failure_last(hook, clear) : real_nothing(hook);
  thread_leave();
  return code;
}
