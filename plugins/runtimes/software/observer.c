/* SPDX-License-Identifier: MIT */
/* observer.c: how hipmm's core tells the race detector of the blocks of its resources, and what the detector has found.
 * Called by the core, and by tests. */
#include "watch.h"

/* The stream of a call; false if there is no such stream, which the call itself refuses or takes no notice of. */
static bool observer_find_stream(const struct memory_event *event, struct race_stream *stream_out)
{
  struct software_queue *queue;
  pthread_mutex_lock(&software.lock);
  bool is_there = software_queue_find_on(event->device, (hipStream_t)event->stream, &queue) == hipSuccess;
  if (is_there) *stream_out = software_watch_stream(queue);
  pthread_mutex_unlock(&software.lock);
  return is_there;
}

static void observer_allocated(const struct memory_event *event)
{
  struct race_stream stream;
  if (observer_find_stream(event, &stream)) races_allocated(event, &stream);
}

static void *observer_freeing(const struct memory_event *event)
{
  struct race_stream stream;
  return observer_find_stream(event, &stream) ? races_freeing(event, &stream) : NULL;
}

static const struct memory_observer observer_functions = {.struct_size = sizeof observer_functions,
                                                          .enter = races_enter,
                                                          .leave = races_leave,
                                                          .allocated = observer_allocated,
                                                          .freeing = observer_freeing,
                                                          .freed = races_freed,
                                                          .destroyed = races_destroyed};

const struct memory_observer *hipmm_software_observer(void)
{
  software_prepare();
  return races_are_on() ? &observer_functions : NULL;
}

/* ---- What was found ---- */

const char *hipmm_software_race(size_t index, const char **kind_out)
{
  return races_report(index, kind_out);
}

size_t hipmm_software_race_count(void)
{
  return races_count();
}

__attribute__((destructor)) static void observer_finish(void)
{
  if (races_are_on()) races_summarise();
}
