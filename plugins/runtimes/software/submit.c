/* SPDX-License-Identifier: MIT */
/* submit.c: hands operations to queues, and waits until they have executed. Called by every HIP function that submits or
 * waits. It asks the scheduler in force to run what can run. */
#include "internal.h"

/* Operations that move no data take no time on a device. With threads, such an operation runs at the call if its queue is
 * empty, which saves a switch of threads. With the stepped scheduler it waits like every other operation. */
static bool submit_runs_at_once(const struct software_queue *queue)
{
  if (queue->head != queue->tail) return false;
  enum software_operation_kind kind = queue->head->kind;
  bool moves_no_data = kind == SOFTWARE_RECORD || kind == SOFTWARE_WAIT || kind == SOFTWARE_ALLOC_VISIBLE ||
                       kind == SOFTWARE_FREE_VISIBLE;
  return moves_no_data && software_ready_is_runnable(queue);
}

bool software_submit_prepare(struct software_queue *queue)
{
  return software.config.scheduler == SOFTWARE_STEPPED || software_threads_prepare(queue);
}

hipError_t software_submit(struct software_queue *queue, struct software_operation *operation)
{
  if (queue->capture) return software_capture_add(queue, operation);
  hipError_t error = software_capture_check(queue);
  if (error != hipSuccess) {
    software_operation_free(operation);
    return error;
  }
  struct software_operation *before = queue->tail;
  software_queue_append(queue, operation);
  software_order_submitted(queue, operation);
  software_watch_submitted(queue, operation);
  if (software.config.scheduler == SOFTWARE_STEPPED) {
    if (operation->kind == SOFTWARE_HOST) software_stepped_watch();
    pthread_cond_broadcast(&software.progress);
  } else if (submit_runs_at_once(queue)) {
    software_threads_run(queue);
  } else if (!software_threads_prepare(queue)) {
    software_queue_remove_last(queue, before);
    software_order_forget(queue, before);
    software_operation_free(operation);
    return hipErrorOutOfMemory;
  } else if (software_ready_is_runnable(queue)) {
    pthread_cond_signal(&queue->wake);
  }
  return hipSuccess;
}

hipError_t software_submit_to(struct software_queue *runner, struct software_operation *operation,
                              struct software_queue *queue)
{
  struct software_operation *before = software_operation_new(SOFTWARE_RECORD, operation->call);
  struct software_operation *turn = software_operation_new(SOFTWARE_WAIT, operation->call);
  struct software_operation *after = software_operation_new(SOFTWARE_WAIT, operation->call);
  struct software_marker *reached = software_marker_new(), *done = software_marker_new();
  hipError_t error = hipErrorOutOfMemory;
  if (!before || !turn || !after || !reached || !done) goto free_rest;
  before->marker = software_marker_reference(reached);
  turn->marker = software_marker_reference(reached);
  operation->marker = software_marker_reference(done);
  after->marker = software_marker_reference(done);
  error = software_submit(queue, before);
  before = NULL;
  if (error != hipSuccess) goto free_rest;
  error = software_submit(runner, turn);
  turn = NULL;
  if (error != hipSuccess) goto free_rest;
  /* From here on both queues have a thread, so no submission fails. */
  error = software_submit(runner, operation);
  operation = NULL;
  if (error == hipSuccess) {
    error = software_submit(queue, after);
    after = NULL;
  }

free_rest:
  if (before) software_operation_free(before);
  if (turn) software_operation_free(turn);
  if (after) software_operation_free(after);
  if (operation) software_operation_free(operation);
  software_marker_unreference(reached);
  software_marker_unreference(done);
  return error;
}

/* ---- Waiting --------------------------------------------------------------------------------------------------- */

static bool submit_device_is_done(int device, uint64_t sequence)
{
  for (const struct software_queue *queue = software.active; queue; queue = queue->next_active)
    if ((device < 0 || queue->device == device) && queue->head->sequence <= sequence) return false;
  return true;
}

/* With the stepped scheduler the waiting thread itself does the work. */
static void submit_wait_step(void)
{
  if (software.config.scheduler == SOFTWARE_STEPPED && software_stepped_step()) return;
  pthread_cond_wait(&software.progress, &software.lock);
}

void software_wait_queue(const struct software_queue *queue, uint64_t sequence)
{
  while (!software_queue_is_done(queue, sequence)) submit_wait_step();
  software_watch_queue_over(queue);
}

void software_wait_device(int device, uint64_t sequence)
{
  while (!submit_device_is_done(device, sequence)) submit_wait_step();
  software_watch_device_over(device);
}

void software_wait_marker(struct software_marker *marker)
{
  while (!marker->done) submit_wait_step();
  software_watch_marker_over(marker);
}
