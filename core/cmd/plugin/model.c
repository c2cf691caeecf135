/* SPDX-License-Identifier: MIT */
/* model.c: the run of model.h. Each thread allocates, fills, hands from stream to stream and frees blocks of its own,
 * on streams that all threads share. Whatever a stream should find in a block was written in stream order, so that
 * memory that is reused too early shows as a wrong pattern; ranges.h tells at once when two live blocks overlap. */
#include "model.h"
#include "../../runtime/hip.h"
#include "program.h"
#include "random.h"
#include "ranges.h"
#include "use.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 200, CHECKS = 24 };

#define MODEL_MIB ((size_t)1 << 20)

/* A block that the thread has allocated. Its last use is on `stream`. */
struct held_block {
  char *ptr;
  size_t bytes, alignment;
  int stream, pattern;
};

/* What a stream has read of a block before it was freed; to be looked at once the stream has come so far. */
struct check {
  char *copy;
  size_t bytes;
  int pattern;
};

struct run {
  const struct model *model;
  struct hipmm_resource *resource;
  const struct hipmm_hip *hip;
  struct ranges ranges;
  pthread_rwlock_t streams_lock; /* written while a stream is made anew */
  hipmm_stream_t streams[MODEL_MOST_STREAMS];
  pthread_mutex_t result_lock;
  struct model_result result;
};

struct worker {
  struct run *run;
  uint64_t random;
  struct held_block blocks[BLOCKS];
  size_t n_blocks;
  struct check checks[MODEL_MOST_STREAMS][CHECKS]; /* by stream */
  size_t n_checks[MODEL_MOST_STREAMS];
  char *copies[MODEL_MOST_STREAMS]; /* where checks are copied to: pinned, or copying would wait for the stream */
  size_t copied_bytes[MODEL_MOST_STREAMS];
  unsigned long long allocations, refusals;
  int pattern;
};

/* ---- Failures ---- */

static void model_fail_run(struct run *run, const char *format, ...) HIPMM_PRINTF(2, 3);

/* The first one counts. */
static void model_fail_run(struct run *run, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&run->result_lock);
  if (!run->result.failure[0]) vsnprintf(run->result.failure, sizeof run->result.failure, format, arguments);
  pthread_mutex_unlock(&run->result_lock);
  va_end(arguments);
}

static bool model_has_failed(struct run *run)
{
  pthread_mutex_lock(&run->result_lock);
  bool failed = run->result.failure[0] != '\0';
  pthread_mutex_unlock(&run->result_lock);
  return failed;
}

static void model_check_hip(struct run *run, const char *call, int code)
{
  if (code) model_fail_run(run, "%s: %s", call, run->hip->GetErrorName(code));
}

static void model_check_status(struct run *run, const char *call, enum hipmm_status status, enum hipmm_status wanted)
{
  if (status != wanted)
    model_fail_run(run, "%s: %s, where \"%s\" is right: %s", call, hipmm_status_string(status),
                   hipmm_status_string(wanted), status ? hipmm_last_error_message() : "it succeeded");
}

/* ---- Checks of patterns ---- */

static bool model_is_filled(const char *data, int pattern, size_t bytes)
{
  return data[0] == (char)pattern && !memcmp(data, data + 1, bytes - 1);
}

static void model_look_at_checks(struct worker *worker, int stream)
{
  struct run *run = worker->run;
  if (!worker->n_checks[stream]) return;
  model_check_hip(run, "hipStreamSynchronize", run->hip->StreamSynchronize(run->streams[stream]));
  for (size_t i = 0; i < worker->n_checks[stream]; i++) {
    struct check *check = &worker->checks[stream][i];
    if (!model_is_filled(check->copy, check->pattern, check->bytes))
      model_fail_run(run, "a block of %zu bytes lost its pattern %02x on stream %d", check->bytes, check->pattern,
                     stream);
  }
  worker->n_checks[stream] = 0;
  worker->copied_bytes[stream] = 0;
}

/* Has the stream read the whole block. */
static void model_add_check(struct worker *worker, const struct held_block *block)
{
  struct run *run = worker->run;
  int stream = block->stream;
  bool full = worker->copied_bytes[stream] + block->bytes > run->model->most_bytes;
  if (full || worker->n_checks[stream] == CHECKS) model_look_at_checks(worker, stream);
  struct check check = {worker->copies[stream] + worker->copied_bytes[stream], block->bytes, block->pattern};
  worker->copied_bytes[stream] += block->bytes;
  model_check_hip(run, "hipMemcpyAsync",
                  use_submit(run->hip, run->model->by_host, (struct use){check.copy, block->ptr, block->bytes, 0},
                             run->streams[stream]));
  worker->checks[stream][worker->n_checks[stream]++] = check;
}

static void model_fill(struct worker *worker, struct held_block *block)
{
  struct run *run = worker->run;
  block->pattern = worker->pattern = worker->pattern % 251 + 1;
  model_check_hip(run, "hipMemsetAsync",
                  use_submit(run->hip, run->model->by_host,
                             (struct use){block->ptr, NULL, block->bytes, block->pattern},
                             run->streams[block->stream]));
}

/* Orders `to` after what `from` has been given so far. */
static void model_order_streams(struct run *run, int from, int to)
{
  hipmm_hip_event_t event;
  if (from == to) return;
  model_check_hip(run, "hipEventCreate", run->hip->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING));
  model_check_hip(run, "hipEventRecord", run->hip->EventRecord(event, run->streams[from]));
  model_check_hip(run, "hipStreamWaitEvent", run->hip->StreamWaitEvent(run->streams[to], event, 0));
  model_check_hip(run, "hipEventDestroy", run->hip->EventDestroy(event));
}

/* ---- Operations ---- */

static size_t model_draw_bytes(struct worker *worker)
{
  static const size_t limits[] = {512, 4096, 65536, 1 << 20, 8 << 20};
  static const unsigned weights[] = {25, 60, 90, 99, 100};
  unsigned draw = (unsigned)random_below(&worker->random, 100);
  size_t class = 0;
  while (draw >= weights[class]) class ++;
  size_t limit = limits[class] < worker->run->model->most_bytes ? limits[class] : worker->run->model->most_bytes;
  return random_below(&worker->random, limit) + 1;
}

static void model_check_place(struct worker *worker, const struct held_block *block)
{
  struct run *run = worker->run;
  struct range other;
  if (!block->ptr) model_fail_run(run, "%zu bytes at NULL", block->bytes);
  if ((uintptr_t)block->ptr % block->alignment)
    model_fail_run(run, "%p is not aligned to %zu", (void *)block->ptr, block->alignment);
  if (!ranges_add(&run->ranges, (uintptr_t)block->ptr, block->bytes, &other))
    model_fail_run(run, "%zu bytes at %p overlap %zu bytes at %p", block->bytes, (void *)block->ptr, other.bytes,
                   (void *)other.start);
}

static void model_allocate(struct worker *worker)
{
  struct run *run = worker->run;
  struct held_block block = {.bytes = model_draw_bytes(worker),
                             .alignment = HIPMM_ALIGNMENT,
                             .stream = (int)random_below(&worker->random, (uint64_t)run->model->streams)};
  void *ptr = NULL;
  if ((run->model->aligns || run->model->may_align) && random_chance(&worker->random, 10))
    block.alignment <<= random_below(&worker->random, 6);
  enum hipmm_status status =
      hipmm_allocate_aligned(run->resource, block.bytes, block.alignment, run->streams[block.stream], &ptr);
  if (status == HIPMM_E_OUT_OF_MEMORY && run->model->may_fail) {
    worker->refusals++;
    return;
  }
  bool is_refusable = status == HIPMM_E_ARGUMENT || status == HIPMM_E_OUT_OF_MEMORY;
  if (is_refusable && run->model->may_align && block.alignment > HIPMM_ALIGNMENT) return;
  model_check_status(run, "hipmm_allocate", status, HIPMM_OK);
  if (status) return;
  block.ptr = ptr;
  model_check_place(worker, &block);
  if (model_has_failed(run)) return; /* the memory is not ours to write */
  model_fill(worker, &block);
  worker->blocks[worker->n_blocks++] = block;
  worker->allocations++;
}

/* Goes on with the block on another stream: what it holds must still be there, and is replaced. */
static void model_hand_over(struct worker *worker, struct held_block *block)
{
  struct run *run = worker->run;
  int to = (int)random_below(&worker->random, (uint64_t)run->model->streams);
  model_order_streams(run, block->stream, to);
  block->stream = to;
  model_add_check(worker, block);
  model_fill(worker, block);
}

/* A free that must be refused and change nothing; where no other thread can get the pointer in between. */
static void model_free_wrongly(struct worker *worker, const struct held_block *block)
{
  struct run *run = worker->run;
  hipmm_stream_t stream = run->streams[block->stream];
  model_check_status(run, "freeing with another size",
                     hipmm_deallocate(run->resource, block->ptr, block->bytes + 1, stream), HIPMM_E_SIZE);
  model_check_status(run, "freeing inside a block",
                     hipmm_deallocate(run->resource, block->ptr + 1, block->bytes, stream), HIPMM_E_POINTER);
}

static void model_deallocate(struct worker *worker, size_t index)
{
  struct run *run = worker->run;
  struct held_block block = worker->blocks[index];
  worker->blocks[index] = worker->blocks[--worker->n_blocks];
  if (random_chance(&worker->random, 20)) {
    int to = (int)random_below(&worker->random, (uint64_t)run->model->streams);
    model_order_streams(run, block.stream, to);
    block.stream = to;
  }
  model_add_check(worker, &block);
  if (!run->model->is_plain && random_chance(&worker->random, 10)) model_free_wrongly(worker, &block);
  if (!ranges_remove(&run->ranges, (uintptr_t)block.ptr, block.bytes))
    model_fail_run(run, "%p was forgotten", block.ptr);
  size_t bytes = !run->model->is_plain && random_chance(&worker->random, 10) ? 0 : block.bytes;
  size_t alignment = random_chance(&worker->random, 50) ? block.alignment : HIPMM_ALIGNMENT; /* it need not be known */
  model_check_status(run, "hipmm_deallocate",
                     hipmm_deallocate_aligned(run->resource, block.ptr, bytes, alignment, run->streams[block.stream]),
                     HIPMM_OK);
  if (!run->model->is_plain && run->model->threads == 1 && random_chance(&worker->random, 10))
    model_check_status(run, "freeing twice",
                       hipmm_deallocate(run->resource, block.ptr, block.bytes, run->streams[block.stream]),
                       HIPMM_E_POINTER);
}

/* Zero bytes are given without memory, and freed without effect. */
static void model_allocate_nothing(struct worker *worker)
{
  struct run *run = worker->run;
  hipmm_stream_t stream = run->streams[random_below(&worker->random, (uint64_t)run->model->streams)];
  void *ptr = worker;
  enum hipmm_status status = hipmm_allocate(run->resource, 0, stream, &ptr);
  if (status == HIPMM_E_OUT_OF_MEMORY && run->model->may_fail) return;
  model_check_status(run, "hipmm_allocate of nothing", status, HIPMM_OK);
  if (ptr) model_fail_run(run, "zero bytes at %p", ptr);
  model_check_status(run, "freeing nothing", hipmm_deallocate(run->resource, NULL, 0, stream), HIPMM_OK);
}

static void model_trim(struct worker *worker)
{
  struct run *run = worker->run;
  size_t keep_bytes = random_below(&worker->random, 2) ? 0 : random_below(&worker->random, 16 * MODEL_MIB);
  model_check_status(run, "hipmm_resource_trim", hipmm_resource_trim(run->resource, keep_bytes), HIPMM_OK);
}

/* Destroys a stream that has nothing left to do, and makes another. */
static void model_renew_stream(struct worker *worker)
{
  struct run *run = worker->run;
  int stream = (int)random_below(&worker->random, (uint64_t)run->model->streams);
  pthread_rwlock_unlock(&run->streams_lock);
  pthread_rwlock_wrlock(&run->streams_lock);
  model_check_hip(run, "hipStreamSynchronize", run->hip->StreamSynchronize(run->streams[stream]));
  if (run->model->retires || random_chance(&worker->random, 50))
    model_check_status(run, "hipmm_stream_retire", hipmm_stream_retire(0, run->streams[stream]), HIPMM_OK);
  model_check_hip(run, "hipStreamDestroy", run->hip->StreamDestroy(run->streams[stream]));
  model_check_hip(run, "hipStreamCreate",
                  run->hip->StreamCreateWithFlags(&run->streams[stream], HIPMM_HIP_STREAM_NON_BLOCKING));
  pthread_rwlock_unlock(&run->streams_lock);
  pthread_rwlock_rdlock(&run->streams_lock);
}

static void model_operate(struct worker *worker)
{
  unsigned draw = (unsigned)random_below(&worker->random, 1000);
  bool full = worker->n_blocks == BLOCKS;
  if (!full && (draw < 480 || !worker->n_blocks))
    model_allocate(worker);
  else if (draw < 880)
    model_deallocate(worker, random_below(&worker->random, worker->n_blocks));
  else if (draw < 980)
    model_hand_over(worker, &worker->blocks[random_below(&worker->random, worker->n_blocks)]);
  else if (draw < 985)
    model_trim(worker);
  else if (draw < 990 && !worker->run->model->is_plain)
    model_allocate_nothing(worker);
  else if (!worker->run->model->no_streams)
    model_renew_stream(worker);
}

/* Checks of a thread may name a stream that another thread is about to destroy: nothing is left unread by then, since a
 * copy that has been executed stays good. */
static void *model_work(void *closure)
{
  struct worker *worker = closure;
  struct run *run = worker->run;
  pthread_rwlock_rdlock(&run->streams_lock);
  for (unsigned i = 0; i < run->model->operations && !model_has_failed(run); i++) model_operate(worker);
  while (worker->n_blocks && !model_has_failed(run)) model_deallocate(worker, worker->n_blocks - 1);
  for (int stream = 0; stream < run->model->streams; stream++) model_look_at_checks(worker, stream);
  pthread_rwlock_unlock(&run->streams_lock);
  pthread_mutex_lock(&run->result_lock);
  run->result.allocations += worker->allocations;
  run->result.refusals += worker->refusals;
  pthread_mutex_unlock(&run->result_lock);
  return NULL;
}

/* ---- The whole ---- */

static void model_prepare(struct worker *worker, struct run *run, uint64_t seed, int number)
{
  memset(worker, 0, sizeof *worker);
  worker->run = run;
  worker->random = seed * 1000 + (uint64_t)number;
  worker->pattern = 30 * number;
  for (int i = 0; i < run->model->streams; i++)
    model_check_hip(
        run, "hipHostMalloc",
        run->hip->HostMalloc((void **)&worker->copies[i], run->model->most_bytes, HIPMM_HIP_HOST_MALLOC_PORTABLE));
}

static void model_clean_up(struct worker *worker)
{
  for (int i = 0; i < worker->run->model->streams; i++) worker->run->hip->HostFree(worker->copies[i]);
}

static void model_run_threads(struct run *run, uint64_t seed)
{
  static struct worker workers[MODEL_MOST_THREADS];
  pthread_t threads[MODEL_MOST_THREADS];
  for (int i = 0; i < run->model->threads; i++) model_prepare(&workers[i], run, seed, i);
  for (int i = 0; i < run->model->threads; i++) {
    if (run->model->threads > 1)
      pthread_create(&threads[i], NULL, model_work, &workers[i]);
    else
      model_work(&workers[i]);
  }
  for (int i = 0; i < run->model->threads && run->model->threads > 1; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < run->model->threads; i++) model_clean_up(&workers[i]);
}

/* Everything has been freed: nothing is live, and nothing stays behind when it is trimmed. */
static void model_check_rest(struct run *run)
{
  int64_t live = 0, waits = 0;
  size_t now = 1;
  if (run->ranges.count) model_fail_run(run, "%zu blocks were not freed", run->ranges.count);
  if (!hipmm_resource_query(run->resource, "stream_waits", &waits)) run->result.waits_of_streams += (uint64_t)waits;
  model_check_hip(run, "hipDeviceSynchronize", run->hip->DeviceSynchronize());
  model_check_status(run, "hipmm_resource_trim", hipmm_resource_trim(run->resource, 0), HIPMM_OK);
  model_check_status(run, "hipmm_device_held_bytes", hipmm_device_held_bytes(0, &now, NULL), HIPMM_OK);
  if (!hipmm_resource_query(run->resource, "live_bytes", &live) && live)
    model_fail_run(run, "%lld bytes are said to be live", (long long)live);
  if (now && !run->model->keeps_memory) model_fail_run(run, "%zu bytes are held after a trim of all", now);
}

static void model_make_streams(struct run *run)
{
  uint64_t random = 1;
  for (int i = 0; i < run->model->streams; i++) {
    model_check_hip(run, "hipStreamCreate",
                    run->hip->StreamCreateWithFlags(&run->streams[i], HIPMM_HIP_STREAM_NON_BLOCKING));
    if (random_chance(&random, 30) && run->model->no_streams)
      model_check_status(run, "hipmm_stream_retain", hipmm_stream_retain(0, run->streams[i]), HIPMM_OK);
  }
}

/* With the first stream already gone where the configuration allows that: finalize must do without it. */
static void model_destroy_streams(struct run *run)
{
  for (int i = 0; i < run->model->streams; i++) {
    if (run->model->retires || run->model->no_streams) hipmm_stream_retire(0, run->streams[i]);
    model_check_hip(run, "hipStreamDestroy", run->hip->StreamDestroy(run->streams[i]));
  }
}

static bool model_begin(struct run *run, uint64_t seed)
{
  const struct model *model = run->model;
  char graph[1500];
  snprintf(graph, sizeof graph,
           "{\"runtime\": {%s\"type\": \"software\", \"memory\": \"256MiB\", \"scheduler\": \"%s\", \"seed\": %llu}, "
           "\"%s\": %s}",
           model->runtime ? model->runtime : "", model->scheduler, (unsigned long long)seed,
           model->resources ? "resources" : "stack", model->resources ? model->resources : model->stack);
  enum hipmm_status status = hipmm_init_from_string(graph);
  run->hip = hip_table();
  if (!status) program_begin(model->region_bytes);
  if (!status) status = hipmm_resource_get_current(&run->resource);
  model_check_status(run, "initialisation", status, HIPMM_OK);
  run->result.status = status;
  return !status;
}

/* The balance: the runtime has everything back. */
static void model_end(struct run *run)
{
  model_check_status(run, "hipmm_finalize", hipmm_finalize(), HIPMM_OK);
  program_end();
  uint64_t lost = software_live(), faults = software_faults();
  if (lost) model_fail_run(run, "%llu blocks or handles were not given back", (unsigned long long)lost);
  if (faults) model_fail_run(run, "%llu times work ran on memory that was gone", (unsigned long long)faults);
  software()->reset();
}

struct model_result model_run(const struct model *model, uint64_t seed)
{
  struct run run = {.model = model};
  ranges_open(&run.ranges);
  pthread_rwlock_init(&run.streams_lock, NULL);
  pthread_mutex_init(&run.result_lock, NULL);
  if (model_begin(&run, seed)) {
    model_make_streams(&run);
    model_run_threads(&run, seed);
    if (!model_has_failed(&run)) model_check_rest(&run);
    model_destroy_streams(&run);
    hipmm_resource_release(run.resource);
  }
  model_end(&run);
  ranges_close(&run.ranges);
  pthread_rwlock_destroy(&run.streams_lock);
  pthread_mutex_destroy(&run.result_lock);
  return run.result;
}
