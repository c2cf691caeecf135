/* SPDX-License-Identifier: MIT */
/* ready.c: the queues whose first operation may be able to run, so that a step of a scheduler costs nothing for streams that
 * wait. A queue that turns out to wait is parked where its wait ends, and comes back from there: at its marker, at its
 * device while the default stream holds it, or, being a default stream, at the queue that holds it. Called by queue.c for
 * each change, and by the two schedulers.
 *
 * The queues that are ready are in the order of all active queues, the queue that became active last first: so a seed
 * of the stepped scheduler always gives the same order. */
#include "internal.h"

static void ready_insert(struct software_queue *queue)
{
  struct software_queue *before = NULL, *behind = software.ready;
  for (; behind && behind->activated > queue->activated; behind = behind->next_ready) before = behind;
  queue->previous_ready = before;
  queue->next_ready = behind;
  *(before ? &before->next_ready : &software.ready) = queue;
  if (behind) behind->previous_ready = queue;
  queue->readiness = SOFTWARE_READY;
}

static void ready_extract(struct software_queue *queue)
{
  *(queue->previous_ready ? &queue->previous_ready->next_ready : &software.ready) = queue->next_ready;
  if (queue->next_ready) queue->next_ready->previous_ready = queue->previous_ready;
}

/* ---- Parked queues ---- */

/* In the order of their first operations. The queues of a step come with the newest first, so the search is short. */
static void ready_put(struct software_queue **list, struct software_queue *queue)
{
  while (*list && (*list)->head->sequence < queue->head->sequence) list = &(*list)->next_parked;
  queue->next_parked = *list;
  *list = queue;
}

static void ready_take_out(struct software_queue **list, const struct software_queue *queue)
{
  while (*list != queue) list = &(*list)->next_parked;
  *list = queue->next_parked;
}

/* Those whose first operation is earlier than `sequence`. */
static void ready_insert_until(struct software_queue **list, uint64_t sequence)
{
  while (*list && (*list)->head->sequence < sequence) {
    struct software_queue *queue = *list;
    *list = queue->next_parked;
    ready_insert(queue);
  }
}

/* A queue that is not runnable, and of which no operation runs. */
static void ready_park(struct software_queue *queue)
{
  struct software_marker *marker = queue->head->kind == SOFTWARE_WAIT ? queue->head->marker : NULL;
  ready_extract(queue);
  if (marker && !marker->done) {
    queue->readiness = SOFTWARE_WAITING;
    ready_put(&marker->waiting, queue);
    return;
  }
  queue->readiness = SOFTWARE_HELD;
  if (queue->is_legacy)
    queue->holder = software_queue_holder(queue, queue->head->sequence);
  else
    ready_put(&software.devices[queue->device].held, queue);
}

struct software_queue *software_ready_next(const struct software_queue *queue)
{
  struct software_queue *next = queue ? queue->next_ready : software.ready;
  while (next && !software_queue_is_runnable(next)) {
    struct software_queue *waiting = next;
    next = next->next_ready;
    if (!waiting->is_running) ready_park(waiting);
  }
  return next;
}

/* ---- Changes ---- */

void software_ready_add(struct software_queue *queue)
{
  static uint64_t activations;
  queue->activated = ++activations;
  ready_insert(queue);
}

void software_ready_remove(struct software_queue *queue, const struct software_operation *last)
{
  if (queue->readiness == SOFTWARE_READY) ready_extract(queue);
  if (queue->readiness == SOFTWARE_WAITING) ready_take_out(&last->marker->waiting, queue);
  if (queue->readiness == SOFTWARE_HELD && !queue->is_legacy)
    ready_take_out(&software.devices[queue->device].held, queue);
  queue->readiness = SOFTWARE_INACTIVE;
}

void software_ready_advance(const struct software_queue *queue)
{
  struct software_device *device = &software.devices[queue->device];
  struct software_queue *legacy = device->queue;
  if (queue->is_legacy) ready_insert_until(&device->held, queue->head ? queue->head->sequence : UINT64_MAX);
  if (!queue->is_blocking || !legacy || legacy->readiness != SOFTWARE_HELD || legacy->holder != queue) return;
  if (!queue->head || queue->head->sequence > legacy->head->sequence) ready_insert(legacy);
}

void software_ready_wake(struct software_marker *marker)
{
  ready_insert_until(&marker->waiting, UINT64_MAX);
}
