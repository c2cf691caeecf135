/* SPDX-License-Identifier: MIT */
/* queue.c: queues of operations, and whether the first operation of a queue may run. Called by submit.c, by streams, and
 * by the two schedulers, which decide in which thread an operation runs, and when.
 *
 * Every operation has a sequence number, assigned at submission over all devices. An operation of a default stream waits
 * for all earlier operations of the blocking streams of the device, and an operation of a blocking stream waits for all
 * earlier operations of the default stream. Both are comparisons of numbers. An operation depends on earlier operations
 * only, so some operation can always run. */
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

/* The blocking queue of the device whose first operation is the earliest. No blocking queue will ever have an earlier one,
 * so that most operations of the default stream need no search. */
static const struct software_queue *queue_earliest(struct software_device *device, int number)
{
  const struct software_queue *earliest = NULL;
  for (const struct software_queue *other = software.active; other; other = other->next_active)
    if (other->is_blocking && other->device == number &&
        (!earliest || other->head->sequence < earliest->head->sequence))
      earliest = other;
  device->earliest_sequence = earliest ? earliest->head->sequence : software.sequence + 1;
  return earliest;
}

const struct software_queue *software_queue_holder(const struct software_queue *legacy, uint64_t sequence)
{
  struct software_device *device = &software.devices[legacy->device];
  if (sequence <= device->earliest_sequence) return NULL;
  const struct software_queue *earliest = queue_earliest(device, legacy->device);
  return earliest && earliest->head->sequence < sequence ? earliest : NULL;
}

/* Whether an earlier operation of the other side (default stream or blocking streams) must finish first. */
static bool queue_is_held(const struct software_queue *queue, uint64_t sequence)
{
  if (queue->is_legacy) return software_queue_holder(queue, sequence) != NULL;
  const struct software_queue *legacy = queue->is_blocking ? software.devices[queue->device].queue : NULL;
  return legacy && legacy->head && legacy->head->sequence < sequence;
}

bool software_queue_is_runnable(const struct software_queue *queue)
{
  const struct software_operation *head = queue->head;
  if (!head || queue->is_running) return false;
  if (head->kind == SOFTWARE_WAIT && !head->marker->done) return false;
  return !queue_is_held(queue, head->sequence);
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
  software_operation_execute(operation, queue->device);
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
  return !queue->is_legacy || !queue_is_held(queue, sequence + 1);
}
