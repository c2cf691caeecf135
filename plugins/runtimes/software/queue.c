/* SPDX-License-Identifier: MIT */
/* queue.c: operations in line, when the head of a line may run, and waiting for lines to get somewhere. Called by every
 * function that submits or waits; the two schedulers decide who runs a head that may run, and when.
 *
 * Every operation has a sequence number, drawn at submission over all devices. An operation of a default stream waits
 * for all earlier ones of the device's blocking streams, and theirs for all earlier ones of the default stream: both
 * are comparisons of numbers. Operations depend on earlier ones only, so something can always run. */
#include "internal.h"
#include <stdlib.h>
#include <time.h>

static struct software_queue *queue_idle; /* served a stream once, wait for the next */

struct software_queue *software_queue_take(int device, bool is_blocking)
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

struct software_operation *software_operation_new(enum software_operation_kind kind, enum software_call call)
{
  struct software_operation *operation = calloc(1, sizeof *operation);
  if (!operation) return NULL;
  operation->kind = kind;
  operation->call = call;
  return operation;
}

void software_operation_free(struct software_operation *operation)
{
  software_span_close(&operation->to);
  software_span_close(&operation->from);
  software_marker_unreference(operation->marker);
  if (operation->allocation) software_allocation_unreference(operation->allocation);
  free(operation->staged);
  free(operation);
}

static void queue_activate(struct software_queue *queue)
{
  queue->previous_active = NULL;
  queue->next_active = software.active;
  if (software.active) software.active->previous_active = queue;
  software.active = queue;
}

static void queue_deactivate(struct software_queue *queue)
{
  if (queue->previous_active)
    queue->previous_active->next_active = queue->next_active;
  else
    software.active = queue->next_active;
  if (queue->next_active) queue->next_active->previous_active = queue->previous_active;
}

/* Whether an earlier operation of the other side (default stream, blocking streams) must finish first. */
static bool queue_is_held(const struct software_queue *queue, uint64_t sequence)
{
  if (!queue->is_blocking && !queue->is_legacy) return false;
  if (!queue->is_legacy) {
    const struct software_queue *legacy = software.devices[queue->device].queue;
    return legacy && legacy->head && legacy->head->sequence < sequence;
  }
  for (const struct software_queue *other = software.active; other; other = other->next_active)
    if (other->is_blocking && other->device == queue->device && other->head->sequence < sequence) return true;
  return false;
}

bool software_queue_is_runnable(const struct software_queue *queue)
{
  const struct software_operation *head = queue->head;
  if (!head || queue->is_running) return false;
  if (head->kind == SOFTWARE_WAIT && !head->marker->done) return false;
  return !queue_is_held(queue, head->sequence);
}

/* Operations that only keep books take no time on a device: with threads they run at the call if nothing is before
 * them, which spares a switch of threads. The stepped scheduler lets them wait, as everything else. */
static bool queue_runs_at_once(const struct software_queue *queue)
{
  if (software.config.scheduler != SOFTWARE_THREADS || queue->head != queue->tail) return false;
  enum software_operation_kind kind = queue->head->kind;
  bool is_books = kind == SOFTWARE_RECORD || kind == SOFTWARE_WAIT || kind == SOFTWARE_BIRTH || kind == SOFTWARE_DEATH;
  return is_books && software_queue_is_runnable(queue);
}

static void queue_append(struct software_queue *queue, struct software_operation *operation)
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

/* Only for an operation that has just been appended. */
static void queue_take_back(struct software_queue *queue, struct software_operation *before)
{
  software.pending--;
  queue->tail = before;
  if (before) {
    before->next = NULL;
  } else {
    queue->head = NULL;
    queue_deactivate(queue);
  }
}

hipError_t software_submit(struct software_queue *queue, struct software_operation *operation)
{
  struct software_operation *before = queue->tail;
  queue_append(queue, operation);
  if (software.config.scheduler == SOFTWARE_STEPPED) {
    pthread_cond_broadcast(&software.progress);
  } else if (queue_runs_at_once(queue)) {
    software_queue_run(queue);
  } else if (!software_threads_prepare(queue)) {
    queue_take_back(queue, before);
    software_operation_free(operation);
    return hipErrorOutOfMemory;
  } else if (software_queue_is_runnable(queue)) {
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
  /* From here on both queues have what they need to run, and take everything. */
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

void software_queue_run(struct software_queue *queue)
{
  struct software_operation *operation = queue->head;
  queue->is_running = true;
  software_operation_execute(operation, queue->device);
  queue->is_running = false;
  queue->head = operation->next;
  if (!queue->head) {
    queue->tail = NULL;
    queue_deactivate(queue);
    if (queue->is_abandoned) software_queue_abandon(queue);
  }
  software.pending--;
  software_operation_free(operation);
  pthread_cond_broadcast(&software.progress);
  if (software.active && software.config.scheduler == SOFTWARE_THREADS) software_threads_wake();
}

/* ---- Waiting --------------------------------------------------------------------------------------------------- */

bool software_queue_is_done(const struct software_queue *queue, uint64_t sequence)
{
  if (queue->head && queue->head->sequence <= sequence) return false;
  return !queue->is_legacy || !queue_is_held(queue, sequence + 1);
}

static bool queue_device_is_done(int device, uint64_t sequence)
{
  for (const struct software_queue *queue = software.active; queue; queue = queue->next_active)
    if ((device < 0 || queue->device == device) && queue->head->sequence <= sequence) return false;
  return true;
}

/* Lets time pass: with the stepped scheduler the waiter itself does the work. */
static void queue_wait_step(void)
{
  if (software.config.scheduler == SOFTWARE_STEPPED && software_stepped_step()) return;
  pthread_cond_wait(&software.progress, &software.lock);
}

void software_wait_queue(const struct software_queue *queue, uint64_t sequence)
{
  while (!software_queue_is_done(queue, sequence)) queue_wait_step();
}

void software_wait_device(int device, uint64_t sequence)
{
  while (!queue_device_is_done(device, sequence)) queue_wait_step();
}

void software_wait_marker(struct software_marker *marker)
{
  while (!marker->done) queue_wait_step();
}

/* ---- Markers --------------------------------------------------------------------------------------------------- */

struct software_marker *software_marker_new(void)
{
  struct software_marker *marker = calloc(1, sizeof *marker);
  return marker ? software_marker_reference(marker) : NULL;
}

struct software_marker *software_marker_reference(struct software_marker *marker)
{
  marker->references++;
  return marker;
}

void software_marker_unreference(struct software_marker *marker)
{
  if (marker && --marker->references == 0) free(marker);
}

void software_marker_finish(struct software_marker *marker)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  marker->time_ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
  marker->done = true;
}
