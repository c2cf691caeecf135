/* SPDX-License-Identifier: MIT */
/* queue.c: queues of operations. Called by submit.c, by streams, and by the two schedulers, which decide in which thread an
 * operation runs, and when. Every operation has a sequence number, assigned at submission over all devices. */
#include "internal.h"
#include <stdlib.h>
#include <time.h>

static struct software_queue *queue_idle; /* without a stream; reused for the next stream */

struct software_queue *software_queue_acquire(int device, bool is_blocking)
{
  struct software_queue *queue = queue_idle;
  if (queue) {
    queue_idle = queue->next_idle;
  } else {
    queue = calloc(1, sizeof *queue);
    if (!queue) return NULL;
    pthread_cond_init(&queue->wake, NULL);
  }
  queue->next_idle = NULL;
  queue->device = device;
  queue->is_blocking = is_blocking;
  queue->is_legacy = false;
  queue->is_abandoned = false;
  return queue;
}

void software_queue_abandon(struct software_queue *queue)
{
  queue->is_abandoned = true;
  software_watch_queue_end(queue);
  if (queue->head) return;
  queue->next_idle = queue_idle;
  queue_idle = queue;
}

static void queue_activate(struct software_queue *queue)
{
  software_ready_add(queue);
  queue->previous_active = NULL;
  queue->next_active = software.active;
  if (software.active) software.active->previous_active = queue;
  software.active = queue;
}

static void queue_deactivate(struct software_queue *queue, const struct software_operation *last)
{
  software_ready_remove(queue, last);
  if (queue->previous_active)
    queue->previous_active->next_active = queue->next_active;
  else
    software.active = queue->next_active;
  if (queue->next_active) queue->next_active->previous_active = queue->previous_active;
}

void software_queue_append(struct software_queue *queue, struct software_operation *operation)
{
  operation->sequence = ++software.sequence;
  software.pending++;
  if (queue->tail) {
    queue->tail->next = operation;
  } else {
    queue->head = operation;
    queue_activate(queue);
  }
  queue->tail = operation;
}

void software_queue_remove_last(struct software_queue *queue, struct software_operation *before)
{
  software.pending--;
  struct software_operation *last = queue->tail;
  queue->tail = before;
  if (before) {
    before->next = NULL;
    return;
  }
  queue->head = NULL;
  queue_deactivate(queue, last);
  software_ready_advance(queue);
}

void software_queue_run(struct software_queue *queue)
{
  struct software_operation *operation = queue->head;
  queue->is_running = true;
  software.running++;
  software_operation_execute(operation, queue->device);
  software.running--;
  queue->is_running = false;
  queue->head = operation->next;
  if (!queue->head) {
    queue->tail = NULL;
    queue_deactivate(queue, operation);
  }
  software_ready_advance(queue);
  if (!queue->head && queue->is_abandoned) software_queue_abandon(queue);
  software.pending--;
  software_operation_free(operation);
  pthread_cond_broadcast(&software.progress);
}

bool software_queue_is_done(const struct software_queue *queue, uint64_t sequence)
{
  if (queue->head && queue->head->sequence <= sequence) return false;
  return !queue->is_legacy || !software_ready_is_held(queue, sequence + 1);
}
