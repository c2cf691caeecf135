/* SPDX-License-Identifier: MIT */
/* scheduler_threads.c: a thread for each queue, made when the queue gets its first operation. Queues are never freed, so
 * the thread never ends. Called by submit.c. The threads are detached and own nothing that must be released at exit. */
#include "../../../core/base/thread.h"
#include "internal.h"

void software_threads_run(struct software_queue *queue)
{
  software_queue_run(queue);
  for (struct software_queue *other = software_ready_next(NULL); other; other = software_ready_next(other))
    pthread_cond_signal(&other->wake);
}

static void *scheduler_threads_main(void *argument)
{
  struct software_queue *queue = argument;
  pthread_mutex_lock(&software.lock);
  for (;;) {
    while (software.config.scheduler != SOFTWARE_THREADS || !software_ready_is_runnable(queue))
      pthread_cond_wait(&queue->wake, &software.lock);
    software_threads_run(queue);
  }
  return NULL;
}

static bool scheduler_threads_start(struct software_queue *queue)
{
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int result = thread_start(&thread, &attributes, scheduler_threads_main, queue);
  pthread_attr_destroy(&attributes);
  return result == 0;
}

bool software_threads_prepare(struct software_queue *queue)
{
  if (!queue->has_thread) queue->has_thread = scheduler_threads_start(queue);
  return queue->has_thread;
}
