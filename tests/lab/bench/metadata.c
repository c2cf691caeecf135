/* SPDX-License-Identifier: MIT */
/* metadata.c: how much host memory a pool spends on its records, for doc/performance.md. It plays the workload `random`
 * of `hipmm bench` until the pool is well stirred, stops with the blocks live, and asks. growth.py runs it.
 *
 *     metadata CONFIG THREADS STREAMS LIVE MAX_BYTES [uniform]
 *
 * THREADS, STREAMS and LIVE are totals, or nearly: each thread has its share of streams and of blocks. Prints one JSON
 * line: live_count, metadata_bytes and reserved_bytes as the pool says, resident_bytes as the process grew by. */
#include "../../../core/runtime/hip.h"
#include "../../../tools/command/bench/draw.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 256, MOST_STREAMS = 4096, STIRS = 4 };

struct block {
  void *ptr;
  size_t bytes;
  hipmm_stream_t stream;
};

struct member {
  const struct bench_plan *plan; /* live and streams are of one thread */
  struct hipmm_resource *resource;
  hipmm_stream_t *streams;
  size_t index, live;
  struct block *blocks;
  struct bench_step *steps;
  pthread_barrier_t *barrier;
  uint64_t failures;
};

static void member_allocate(struct member *member, const struct bench_step *step)
{
  struct block block = {NULL, step->bytes, member->streams[step->stream]};
  if (hipmm_allocate(member->resource, block.bytes, block.stream, &block.ptr) == HIPMM_OK)
    member->blocks[member->live++] = block;
  else
    member->failures++;
}

static void member_free(struct member *member, size_t pick)
{
  struct block block = member->blocks[pick];
  member->blocks[pick] = member->blocks[--member->live];
  member->failures += hipmm_deallocate(member->resource, block.ptr, block.bytes, block.stream) != HIPMM_OK;
}

/* The barriers: all are ready; all have stirred; the main thread has asked. A thread that ended would give back what it
 * cached. */
static void *member_run(void *closure)
{
  struct member *member = closure;
  size_t most = member->plan->live, at = 0;
  pthread_barrier_wait(member->barrier);
  while (member->live < most && member->failures == 0) member_allocate(member, &member->steps[at++ % BENCH_STEPS]);
  for (size_t i = 0; i < STIRS * most && member->live > 0; i++) {
    const struct bench_step *step = &member->steps[at++ % BENCH_STEPS];
    member_free(member, (size_t)(((uint64_t)step->pick * member->live) >> 32));
    member_allocate(member, step);
  }
  pthread_barrier_wait(member->barrier);
  pthread_barrier_wait(member->barrier);
  while (member->live > 0) member_free(member, member->live - 1);
  return NULL;
}

static int64_t resident_bytes(void)
{
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void fail(const char *message)
{
  fprintf(stderr, "metadata: %s\n", message);
  exit(EXIT_FAILURE);
}

/* Touches all own memory, so that the process grows only by what the pool touches. */
static void member_prepare(struct member *member)
{
  member->blocks = malloc(member->plan->live * sizeof *member->blocks);
  member->steps = malloc(BENCH_STEPS * sizeof *member->steps);
  if (!member->blocks || !member->steps) fail("no host memory left");
  memset(member->blocks, 0xff, member->plan->live * sizeof *member->blocks);
  bench_draw(member->plan, member->index, member->steps);
}

static void report(struct hipmm_resource *resource, int64_t before_bytes)
{
  static const char *const names[] = {"live_count", "metadata_bytes", "reserved_bytes"};
  int64_t grown_bytes = resident_bytes() - before_bytes, value;
  putchar('{');
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (hipmm_resource_query(resource, names[i], &value) != HIPMM_OK) fail(hipmm_last_error_message());
    printf("\"%s\": %lld, ", names[i], (long long)value);
  }
  printf("\"resident_bytes\": %lld}\n", (long long)grown_bytes);
}

static void play(const struct bench_plan *plan, struct hipmm_resource *resource, hipmm_stream_t *streams)
{
  static struct member members[MOST_THREADS];
  static pthread_t threads[MOST_THREADS];
  pthread_barrier_t barrier;
  uint64_t failures = 0;
  pthread_barrier_init(&barrier, NULL, (unsigned)plan->threads + 1);
  for (size_t i = 0; i < plan->threads; i++) {
    members[i] = (struct member){plan, resource, streams + i * plan->streams, .index = i, .barrier = &barrier};
    member_prepare(&members[i]);
    if (pthread_create(&threads[i], NULL, member_run, &members[i]) != 0) fail("no thread left");
  }
  int64_t before_bytes = resident_bytes();
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  report(resource, before_bytes);
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < plan->threads; i++) {
    pthread_join(threads[i], NULL);
    failures += members[i].failures;
    free(members[i].blocks);
    free(members[i].steps);
  }
  pthread_barrier_destroy(&barrier);
  if (failures) fail("some allocations failed");
}

static void play_on_streams(const struct bench_plan *plan, struct hipmm_resource *resource)
{
  static hipmm_stream_t streams[MOST_STREAMS];
  size_t n = plan->threads * plan->streams;
  for (size_t i = 0; i < n; i++) {
    if (hip_table()->StreamCreateWithFlags(&streams[i], HIPMM_HIP_STREAM_NON_BLOCKING) != HIPMM_HIP_SUCCESS)
      fail("no stream left");
    if (hipmm_stream_retain(0, streams[i]) != HIPMM_OK) fail(hipmm_last_error_message());
  }
  play(plan, resource, streams);
  for (size_t i = 0; i < n; i++) {
    hipmm_stream_retire(0, streams[i]);
    hip_table()->StreamDestroy(streams[i]);
  }
}

static size_t number(const char *word)
{
  return (size_t)strtoull(word, NULL, 10);
}

int main(int argc, char **argv)
{
  struct hipmm_resource *resource;
  if (argc < 6 || argc > 7) fail("usage: metadata CONFIG THREADS STREAMS LIVE MAX_BYTES [uniform]");
  struct bench_plan plan = {.workload = BENCH_RANDOM, .threads = number(argv[2]), .max_size_bytes = number(argv[5])};
  plan.distribution = argc > 6 ? BENCH_UNIFORM : BENCH_LOGNORMAL;
  plan.min_size_bytes = argc > 6 ? 1 : 256;
  if (plan.threads < 1 || plan.threads > MOST_THREADS) fail("THREADS is from 1 to 256");
  plan.streams = (number(argv[3]) + plan.threads - 1) / plan.threads;
  plan.live = (number(argv[4]) + plan.threads - 1) / plan.threads;
  if (plan.streams < 1 || plan.threads * plan.streams > MOST_STREAMS) fail("STREAMS is from 1 to 4096");
  if (plan.live < 1 || plan.max_size_bytes < plan.min_size_bytes) fail("LIVE or MAX_BYTES is too small");
  if (hipmm_init_from_file(argv[1]) != HIPMM_OK) fail(hipmm_last_error_message());
  if (hipmm_resource_get_for_device(0, &resource) != HIPMM_OK) fail(hipmm_last_error_message());
  play_on_streams(&plan, resource);
  hipmm_resource_release(resource);
  return hipmm_finalize() == HIPMM_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
