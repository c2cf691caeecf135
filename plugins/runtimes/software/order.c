/* SPDX-License-Identifier: MIT */
/* order.c: which operations are ordered before the next operation of a queue, by waits for markers. Called by submit.c for
 * each operation, by waits for events, and by pools, which may reuse a block as soon as its free is ordered before the
 * stream that asks for memory, although the free has not executed.
 *
 * Each queue has a list of other queues, with the sequence number up to which the operations of that queue are finished
 * before its own next operation. A marker has the list that its queue had when the marker was submitted. A list is never
 * changed while something else refers to it. It has the queues that were waited for last, so that a wait costs the same
 * however many streams there are. Where the list has no room, or there is no memory for it, the order is not known: pools
 * then wait for the free. */
#include "internal.h"
#include <stdlib.h>

enum { ORDER_MOST_ENTRIES = 64 };

struct order_entry {
  const struct software_queue *queue;
  uint64_t sequence;
};

struct software_order {
  unsigned references;
  size_t count;
  struct order_entry entries[];
};

void software_order_unreference(struct software_order *order)
{
  if (order && --order->references == 0) free(order);
}

static uint64_t order_sequence(const struct software_order *order, const struct software_queue *queue)
{
  for (size_t i = 0; order && i < order->count; i++)
    if (order->entries[i].queue == queue) return order->entries[i].sequence;
  return 0;
}

static void order_raise(struct software_order *order, const struct software_queue *queue, uint64_t sequence)
{
  for (size_t i = 0; i < order->count; i++) {
    if (order->entries[i].queue != queue) continue;
    if (order->entries[i].sequence < sequence) order->entries[i].sequence = sequence;
    return;
  }
  if (order->count < ORDER_MOST_ENTRIES) order->entries[order->count++] = (struct order_entry){queue, sequence};
}

void software_order_learn(struct software_queue *queue, const struct software_marker *marker)
{
  const struct software_order *known = queue->order, *added = marker->order;
  if (marker->queue == queue || order_sequence(known, marker->queue) >= marker->sequence) return;
  struct software_order *order = malloc(sizeof *order + ORDER_MOST_ENTRIES * sizeof *order->entries);
  if (!order) return;
  order->references = 1;
  order->count = 0;
  order_raise(order, marker->queue, marker->sequence);
  for (size_t i = 0; added && i < added->count; i++)
    if (added->entries[i].queue != queue) order_raise(order, added->entries[i].queue, added->entries[i].sequence);
  for (size_t i = 0; known && i < known->count; i++)
    order_raise(order, known->entries[i].queue, known->entries[i].sequence);
  software_order_unreference(queue->order);
  queue->order = order;
}

void software_order_submitted(struct software_queue *queue, struct software_operation *operation)
{
  struct software_marker *marker = operation->marker;
  queue->last_sequence = operation->sequence;
  if (!marker) return;
  if (operation->kind == SOFTWARE_WAIT) {
    software_order_learn(queue, marker);
    return;
  }
  marker->queue = queue;
  marker->sequence = operation->sequence;
  marker->order = queue->order;
  if (marker->order) marker->order->references++;
}

/* What the operation added to the order cannot be told from the rest, so the queue forgets all. */
void software_order_forget(struct software_queue *queue, const struct software_operation *before)
{
  queue->last_sequence = before ? before->sequence : 0;
  software_order_unreference(queue->order);
  queue->order = NULL;
}

/* The default stream and the blocking streams of a device wait for each other's earlier operations. */
static bool order_is_implied(const struct software_queue *queue, const struct software_marker *marker)
{
  const struct software_queue *legacy = software.devices[queue->device].queue, *other = marker->queue;
  if (!legacy || other->device != queue->device) return false;
  if (queue->is_legacy) return other->is_blocking;
  if (!queue->is_blocking) return false;
  return other->is_legacy || (other->is_blocking && legacy->last_sequence > marker->sequence) ||
         order_sequence(legacy->order, other) >= marker->sequence;
}

bool software_order_is_after(const struct software_queue *queue, const struct software_marker *marker)
{
  return marker->queue == queue || order_sequence(queue->order, marker->queue) >= marker->sequence ||
         order_is_implied(queue, marker);
}
