/* SPDX-License-Identifier: MIT */
/* ready.c: whether the first operation of a queue may run, and the queues of which it may, so that a step of a scheduler
 * costs nothing for streams that wait. Called by queue.c for each change, by markers, and by the two schedulers.
 *
 * An operation of a default stream waits for all earlier operations of the blocking streams of the device, and an operation
 * of a blocking stream waits for all earlier operations of the default stream. Both are comparisons of sequence numbers. An
 * operation depends on earlier operations only, so some operation can always run.
 *
 * A queue that turns out to wait is parked where its wait ends, and comes back from there: at its marker, at its
 * device while the default stream holds it, or, being a default stream, at the queue that holds it.
 *
 * The queues that are ready are in the order of all active queues, the queue that became active last first: so a seed
 * of the stepped scheduler always gives the same order. */
#include "internal.h"

/* ---- Whether an operation may run ---- */

/* The blocking queue of the device whose first operation is the earliest. No blocking queue will ever have an earlier one,
 * so that most operations of the default stream need no search. */
static const struct software_queue *ready_earliest(struct software_device *device, int number)
{
  const struct software_queue *earliest = NULL;
  for (const struct software_queue *other = software.active; other; other = other->next_active)
    if (other->is_blocking && other->device == number &&
        (!earliest || other->head->sequence < earliest->head->sequence))
      earliest = other;
  device->earliest_sequence = earliest ? earliest->head->sequence : software.sequence + 1;
  return earliest;
}

static const struct software_queue *ready_holder(const struct software_queue *legacy, uint64_t sequence)
{
  struct software_device *device = &software.devices[legacy->device];
  if (sequence <= device->earliest_sequence) return NULL;
  const struct software_queue *earliest = ready_earliest(device, legacy->device);
  return earliest && earliest->head->sequence < sequence ? earliest : NULL;
}

bool software_ready_is_held(const struct software_queue *queue, uint64_t sequence)
{
  if (queue->is_legacy) return ready_holder(queue, sequence) != NULL;
  const struct software_queue *legacy = queue->is_blocking ? software.devices[queue->device].queue : NULL;
  return legacy && legacy->head && legacy->head->sequence < sequence;
}

bool software_ready_is_runnable(const struct software_queue *queue)
{
  const struct software_operation *head = queue->head;
  if (!head || queue->is_running) return false;
  if (head->kind == SOFTWARE_WAIT && !head->marker->done) return false;
  return !software_ready_is_held(queue, head->sequence);
}

/* ---- The list ---- */

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
    queue->holder = ready_holder(queue, queue->head->sequence);
  else
    ready_put(&software.devices[queue->device].held, queue);
}

struct software_queue *software_ready_next(const struct software_queue *queue)
{
  struct software_queue *next = queue ? queue->next_ready : software.ready;
  while (next && !software_ready_is_runnable(next)) {
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
