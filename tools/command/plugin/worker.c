/* SPDX-License-Identifier: MIT */
/* worker.c: a thread of a run of the model. It allocates, fills, hands from stream to stream and frees blocks of its own,
 * on streams that all threads share. Whatever a stream should find in a block was written in stream order, so memory that
 * is reused too early shows as a wrong pattern; ranges.h tells at once when two live blocks overlap. Called by model.c. */
#include "worker.h"
#include "random.h"
#include "use.h"

#include <stdio.h>
#include <string.h>

/* ---- Failures ---- */

void worker_fail_run(struct run *run, enum model_fault fault, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&run->result_lock);
  if (!run->result.failure[0]) {
    vsnprintf(run->result.failure, sizeof run->result.failure, format, arguments);
    run->result.fault = fault;
  }
  pthread_mutex_unlock(&run->result_lock);
  va_end(arguments);
}

bool worker_has_failed(struct run *run)
{
  pthread_mutex_lock(&run->result_lock);
  bool failed = run->result.failure[0] != '\0';
  pthread_mutex_unlock(&run->result_lock);
  return failed;
}

void worker_check_hip(struct run *run, const char *call, int code)
{
  if (code) worker_fail_run(run, MODEL_CALL, "%s: %s", call, run->hip->GetErrorName(code));
}

void worker_check_status(struct run *run, const char *call, enum hipmm_status status, enum hipmm_status wanted)
{
  if (status != wanted)
    worker_fail_run(run, MODEL_CALL, "%s: %s, where \"%s\" is right: %s", call, hipmm_status_string(status),
                    hipmm_status_string(wanted), status ? hipmm_last_error_message() : "it succeeded");
}

/* ---- Streams and devices ---- */

bool worker_is_default_stream(const struct run *run, int stream)
{
  return run->model->has_defaults && stream < MODEL_DEFAULT_STREAMS;
}

/* Around calls of the resource, for a model whose device is not the one that its callers use. */
static void worker_leave_device(const struct run *run)
{
  if (run->model->device) (void)run->hip->SetDevice(0);
}

static void worker_return_to_device(struct run *run)
{
  int current = 0;
  if (!run->model->device) return;
  worker_check_hip(run, "hipGetDevice", run->hip->GetDevice(&current));
  if (current) worker_fail_run(run, MODEL_CALL, "a call left device %d current, where device 0 was", current);
  worker_check_hip(run, "hipSetDevice", run->hip->SetDevice(run->model->device));
}

/* ---- Checks of patterns ---- */

static bool worker_is_filled(const char *data, int pattern, size_t bytes)
{
  return data[0] == (char)pattern && !memcmp(data, data + 1, bytes - 1);
}

static void worker_look_at_checks(struct worker *worker, int stream)
{
  struct run *run = worker->run;
  if (!worker->n_checks[stream]) return;
  worker_check_hip(run, "hipStreamSynchronize", run->hip->StreamSynchronize(run->streams[stream]));
  for (size_t i = 0; i < worker->n_checks[stream]; i++) {
    struct block_check *check = &worker->checks[stream][i];
    if (!worker_is_filled(check->copy, check->pattern, check->bytes))
      worker_fail_run(run, MODEL_ORDER, "a block of %zu bytes lost its pattern %02x on stream %d%s", check->bytes,
                      check->pattern, stream, worker_is_default_stream(run, stream) ? ", a default stream" : "");
  }
  worker->n_checks[stream] = 0;
  worker->copied_bytes[stream] = 0;
}

/* Has the stream read the whole block. */
static void worker_add_check(struct worker *worker, const struct held_block *block)
{
  struct run *run = worker->run;
  if (run->model->has_no_data) return;
  int stream = block->stream;
  bool full = worker->copied_bytes[stream] + block->bytes > run->model->most_bytes;
  if (full || worker->n_checks[stream] == WORKER_CHECKS) worker_look_at_checks(worker, stream);
  struct block_check check = {worker->copies[stream] + worker->copied_bytes[stream], block->bytes, block->pattern};
  worker->copied_bytes[stream] += block->bytes;
  worker_check_hip(run, "hipMemcpyAsync",
                   use_submit(run->hip, run->model->by_host, (struct use){check.copy, block->ptr, block->bytes, 0},
                              run->streams[stream]));
  worker->checks[stream][worker->n_checks[stream]++] = check;
}

static void worker_fill(struct worker *worker, struct held_block *block)
{
  struct run *run = worker->run;
  if (run->model->has_no_data) return;
  block->pattern = worker->pattern = worker->pattern % 251 + 1;
  worker_check_hip(run, "hipMemsetAsync",
                   use_submit(run->hip, run->model->by_host,
                              (struct use){block->ptr, NULL, block->bytes, block->pattern},
                              run->streams[block->stream]));
}

/* Orders `to` after what `from` has been given so far. */
static void worker_order_streams(struct run *run, int from, int to)
{
  hipmm_hip_event_t event;
  if (from == to) return;
  worker_check_hip(run, "hipEventCreate", run->hip->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING));
  worker_check_hip(run, "hipEventRecord", run->hip->EventRecord(event, run->streams[from]));
  worker_check_hip(run, "hipStreamWaitEvent", run->hip->StreamWaitEvent(run->streams[to], event, 0));
  worker_check_hip(run, "hipEventDestroy", run->hip->EventDestroy(event));
}

/* ---- Operations ---- */

static size_t worker_draw_bytes(struct worker *worker)
{
  static const size_t limits[] = {512, 4096, 65536, 1 << 20, 8 << 20};
  static const unsigned weights[] = {25, 60, 90, 99, 100};
  unsigned draw = (unsigned)random_below(&worker->random, 100);
  size_t class = 0;
  while (draw >= weights[class]) class ++;
  size_t limit = limits[class] < worker->run->model->most_bytes ? limits[class] : worker->run->model->most_bytes;
  return random_below(&worker->random, limit) + 1;
}

static void worker_check_place(struct worker *worker, const struct held_block *block)
{
  struct run *run = worker->run;
  struct range other;
  if (!block->ptr) worker_fail_run(run, MODEL_CALL, "%zu bytes at NULL", block->bytes);
  if ((uintptr_t)block->ptr % block->alignment)
    worker_fail_run(run, MODEL_PLACE, "%p is not aligned to %zu", (void *)block->ptr, block->alignment);
  if (!ranges_add(&run->ranges, (uintptr_t)block->ptr, block->bytes, &other))
    worker_fail_run(run, MODEL_PLACE, "%zu bytes at %p overlap %zu bytes at %p", block->bytes, (void *)block->ptr,
                    other.bytes, (void *)other.start);
}

static void worker_allocate(struct worker *worker)
{
  struct run *run = worker->run;
  struct held_block block = {.bytes = worker_draw_bytes(worker),
                             .alignment = HIPMM_ALIGNMENT,
                             .stream = (int)random_below(&worker->random, (uint64_t)run->model->streams)};
  void *ptr = NULL;
  if ((run->model->aligns || run->model->may_align) && random_chance(&worker->random, 10))
    block.alignment <<= random_below(&worker->random, 6);
  worker_leave_device(run);
  enum hipmm_status status =
      hipmm_allocate_aligned(run->resource, block.bytes, block.alignment, run->streams[block.stream], &ptr);
  worker_return_to_device(run);
  if (hipmm_is_out_of_memory(status) && run->model->may_fail) {
    worker->refusals++;
    return;
  }
  bool is_refusable = status == HIPMM_E_ARGUMENT || hipmm_is_out_of_memory(status);
  if (is_refusable && run->model->may_align && block.alignment > HIPMM_ALIGNMENT) return;
  worker_check_status(run, "hipmm_allocate", status, HIPMM_OK);
  if (status) return;
  block.ptr = ptr;
  worker_check_place(worker, &block);
  if (worker_has_failed(run)) return; /* the memory is not ours to write */
  worker_fill(worker, &block);
  worker->blocks[worker->n_blocks++] = block;
  worker->allocations++;
}

/* Goes on with the block on another stream: what it holds must still be there, and is replaced. */
static void worker_hand_over(struct worker *worker, struct held_block *block)
{
  struct run *run = worker->run;
  int to = (int)random_below(&worker->random, (uint64_t)run->model->streams);
  worker_order_streams(run, block->stream, to);
  block->stream = to;
  worker_add_check(worker, block);
  worker_fill(worker, block);
}

/* A free that must be refused and change nothing; where no other thread can get the pointer in between. */
static void worker_free_wrongly(struct worker *worker, const struct held_block *block)
{
  struct run *run = worker->run;
  hipmm_stream_t stream = run->streams[block->stream];
  worker_check_status(run, "freeing with another size",
                      hipmm_deallocate(run->resource, block->ptr, block->bytes + 1, stream), HIPMM_E_SIZE);
  worker_check_status(run, "freeing inside a block",
                      hipmm_deallocate(run->resource, block->ptr + 1, block->bytes, stream), HIPMM_E_POINTER);
}

static void worker_deallocate(struct worker *worker, size_t index)
{
  struct run *run = worker->run;
  struct held_block block = worker->blocks[index];
  worker->blocks[index] = worker->blocks[--worker->n_blocks];
  if (random_chance(&worker->random, 20)) {
    int to = (int)random_below(&worker->random, (uint64_t)run->model->streams);
    worker_order_streams(run, block.stream, to);
    block.stream = to;
  }
  worker_add_check(worker, &block);
  if (!run->model->is_plain && random_chance(&worker->random, 10)) worker_free_wrongly(worker, &block);
  if (!ranges_remove(&run->ranges, (uintptr_t)block.ptr, block.bytes))
    worker_fail_run(run, MODEL_PLACE, "%p was forgotten", block.ptr);
  size_t bytes = !run->model->is_plain && random_chance(&worker->random, 10) ? 0 : block.bytes;
  size_t alignment = random_chance(&worker->random, 50) ? block.alignment : HIPMM_ALIGNMENT; /* it need not be known */
  worker_leave_device(run);
  enum hipmm_status status =
      hipmm_deallocate_aligned(run->resource, block.ptr, bytes, alignment, run->streams[block.stream]);
  worker_return_to_device(run);
  worker_check_status(run, "hipmm_deallocate", status, HIPMM_OK);
  if (!run->model->is_plain && run->model->threads == 1 && random_chance(&worker->random, 10))
    worker_check_status(run, "freeing twice",
                        hipmm_deallocate(run->resource, block.ptr, block.bytes, run->streams[block.stream]),
                        HIPMM_E_POINTER);
}

/* Zero bytes are given without memory, and freed without effect. */
static void worker_allocate_nothing(struct worker *worker)
{
  struct run *run = worker->run;
  hipmm_stream_t stream = run->streams[random_below(&worker->random, (uint64_t)run->model->streams)];
  void *ptr = worker;
  enum hipmm_status status = hipmm_allocate(run->resource, 0, stream, &ptr);
  if (hipmm_is_out_of_memory(status) && run->model->may_fail) return;
  worker_check_status(run, "hipmm_allocate of nothing", status, HIPMM_OK);
  if (ptr) worker_fail_run(run, MODEL_CALL, "zero bytes at %p", ptr);
  worker_check_status(run, "freeing nothing", hipmm_deallocate(run->resource, NULL, 0, stream), HIPMM_OK);
}

static void worker_trim(struct worker *worker)
{
  struct run *run = worker->run;
  size_t keep_bytes = random_below(&worker->random, 2) ? 0 : random_below(&worker->random, (size_t)16 << 20);
  worker_leave_device(run);
  enum hipmm_status status = hipmm_resource_trim(run->resource, keep_bytes);
  worker_return_to_device(run);
  worker_check_status(run, "hipmm_resource_trim", status, HIPMM_OK);
}

/* Destroys a stream that has nothing left to do, and makes another. */
static void worker_renew_stream(struct worker *worker)
{
  struct run *run = worker->run;
  int stream = (int)random_below(&worker->random, (uint64_t)run->model->streams);
  if (worker_is_default_stream(run, stream)) return;
  pthread_rwlock_unlock(&run->streams_lock);
  pthread_rwlock_wrlock(&run->streams_lock);
  worker_check_hip(run, "hipStreamSynchronize", run->hip->StreamSynchronize(run->streams[stream]));
  if (run->model->retires || random_chance(&worker->random, 50))
    worker_check_status(run, "hipmm_stream_retire", hipmm_stream_retire(run->model->device, run->streams[stream]),
                        HIPMM_OK);
  worker_check_hip(run, "hipStreamDestroy", run->hip->StreamDestroy(run->streams[stream]));
  worker_check_hip(run, "hipStreamCreate",
                   run->hip->StreamCreateWithFlags(&run->streams[stream], HIPMM_HIP_STREAM_NON_BLOCKING));
  pthread_rwlock_unlock(&run->streams_lock);
  pthread_rwlock_rdlock(&run->streams_lock);
}

static void worker_operate(struct worker *worker)
{
  unsigned draw = (unsigned)random_below(&worker->random, 1000);
  bool full = worker->n_blocks == WORKER_BLOCKS;
  if (!full && (draw < 480 || !worker->n_blocks))
    worker_allocate(worker);
  else if (draw < 880)
    worker_deallocate(worker, random_below(&worker->random, worker->n_blocks));
  else if (draw < 980)
    worker_hand_over(worker, &worker->blocks[random_below(&worker->random, worker->n_blocks)]);
  else if (draw < 985)
    worker_trim(worker);
  else if (draw < 990 && !worker->run->model->is_plain)
    worker_allocate_nothing(worker);
  else if (!worker->run->model->no_streams)
    worker_renew_stream(worker);
}

/* Checks of a thread may name a stream that another thread is about to destroy: nothing is left unread by then, since a
 * copy that has been executed stays good. */
void *worker_run(void *closure)
{
  struct worker *worker = closure;
  struct run *run = worker->run;
  worker_check_hip(run, "hipSetDevice", run->hip->SetDevice(run->model->device));
  pthread_rwlock_rdlock(&run->streams_lock);
  for (unsigned i = 0; i < run->model->operations && !worker_has_failed(run); i++) worker_operate(worker);
  while (worker->n_blocks && !worker_has_failed(run)) worker_deallocate(worker, worker->n_blocks - 1);
  for (int stream = 0; stream < run->model->streams; stream++) worker_look_at_checks(worker, stream);
  pthread_rwlock_unlock(&run->streams_lock);
  pthread_mutex_lock(&run->result_lock);
  run->result.allocations += worker->allocations;
  run->result.refusals += worker->refusals;
  pthread_mutex_unlock(&run->result_lock);
  return NULL;
}
