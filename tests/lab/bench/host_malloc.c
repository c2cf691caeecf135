/* SPDX-License-Identifier: MIT */
/* host_malloc.c: the yardstick of doc/performance.md: the workloads `pair`, `random` and `handoff` of `hipmm bench`, played with
 * the same draws through the process's own malloc and free, whichever is preloaded. figures.sh runs it in turns with
 * `hipmm bench`. The memory is never touched, as hipmm never touches a device's.
 *
 *     host_malloc pair|random|handoff [THREADS [LIVE [MAX_BYTES [SECONDS]]]]
 *
 * Prints one JSON line; ns_per_op is what one thread sees, where an allocation and a free count one each. */
#include "../../../tools/command/bench/draw.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_THREADS = 256, RING_SLOTS = 8 };

/* From a thread that allocates to one that frees. */
struct ring {
  _Alignas(64) atomic_size_t written; /* batches so far */
  _Alignas(64) atomic_size_t read;
  atomic_bool over; /* the other thread has ended */
  _Alignas(64) void *slots[RING_SLOTS][BENCH_BATCH];
};

struct walker {
  struct ring *ring; /* of handoff */
  const struct bench_plan *plan;
  pthread_barrier_t *barrier;
  size_t index;
  struct bench_step *steps;
  size_t at, live;
  void **blocks;
  uint64_t ops;
  int64_t spent_ns;
};

static int64_t now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Keeps the compiler from removing a malloc whose block is never used. */
static void *take(size_t bytes)
{
  void *ptr = malloc(bytes);
  __asm__ volatile("" : "+r"(ptr) : : "memory");
  return ptr;
}

static void pair_batch(struct walker *walker)
{
  for (int i = 0; i < BENCH_BATCH; i++) free(take(walker->plan->size_bytes));
  walker->ops += 2 * BENCH_BATCH;
}

static void random_batch(struct walker *walker)
{
  for (int i = 0; i < BENCH_BATCH; i++) {
    const struct bench_step *step = &walker->steps[walker->at++ % BENCH_STEPS];
    if (walker->live == 0 || (walker->live < walker->plan->live && step->allocate)) {
      walker->blocks[walker->live++] = take(step->bytes);
    } else {
      size_t pick = (size_t)(((uint64_t)step->pick * walker->live) >> 32);
      void *ptr = walker->blocks[pick];
      walker->blocks[pick] = walker->blocks[--walker->live];
      free(ptr);
    }
  }
  walker->ops += BENCH_BATCH;
}

/* The time of waiting does not count: false once the other thread has ended. */
static bool handoff_wait(const struct walker *walker)
{
  struct ring *ring = walker->ring;
  size_t ahead = walker->index % 2 ? 0 : RING_SLOTS;
  while (atomic_load(&ring->written) - atomic_load(&ring->read) == ahead) {
    if (atomic_load(&ring->over)) return false;
    sched_yield();
  }
  return true;
}

static void handoff_batch(struct walker *walker)
{
  struct ring *ring = walker->ring;
  bool frees = walker->index % 2;
  atomic_size_t *count = frees ? &ring->read : &ring->written;
  void **slot = ring->slots[atomic_load(count) % RING_SLOTS];
  for (int i = 0; i < BENCH_BATCH; i++)
    if (frees)
      free(slot[i]);
    else
      slot[i] = take(walker->plan->size_bytes);
  atomic_fetch_add(count, 1);
  walker->ops += BENCH_BATCH;
}

/* What is left when both have ended. */
static void handoff_end(struct walker *walker)
{
  struct ring *ring = walker->ring;
  if (walker->index % 2)
    while (atomic_load(&ring->written) != atomic_load(&ring->read)) handoff_batch(walker);
}

/* Half of the blocks are live from the start. */
static void random_begin(struct walker *walker)
{
  bench_draw(walker->plan, walker->index, walker->steps);
  while (walker->live < walker->plan->live / 2)
    walker->blocks[walker->live++] = take(walker->steps[walker->at++ % BENCH_STEPS].bytes);
}

static void *walk(void *closure)
{
  struct walker *walker = closure;
  enum bench_workload workload = walker->plan->workload;
  bool hands_off = workload == BENCH_HANDOFF;
  void (*batch)(struct walker *) = hands_off ? handoff_batch : workload == BENCH_PAIR ? pair_batch : random_batch;
  if (workload == BENCH_RANDOM) random_begin(walker);
  for (int i = 0; i < BENCH_WARM_BATCHES && (!hands_off || handoff_wait(walker)); i++) batch(walker);
  walker->ops = 0;
  pthread_barrier_wait(walker->barrier);
  int64_t began_ns = now_ns(), end_ns;
  do {
    if (hands_off && !handoff_wait(walker)) break;
    int64_t start_ns = now_ns();
    batch(walker);
    end_ns = now_ns();
    walker->spent_ns += end_ns - start_ns;
  } while (end_ns - began_ns < walker->plan->run_ns);
  if (hands_off) atomic_store(&walker->ring->over, true);
  pthread_barrier_wait(walker->barrier);
  if (hands_off) handoff_end(walker);
  while (walker->live > 0) free(walker->blocks[--walker->live]);
  return NULL;
}

/* The process ends, so threads already started need no end of their own. */
static int run(const struct bench_plan *plan)
{
  static struct walker walkers[MOST_THREADS];
  static pthread_t threads[MOST_THREADS];
  pthread_barrier_t barrier;
  uint64_t ops = 0;
  double spent_ns = 0;
  pthread_barrier_init(&barrier, NULL, (unsigned)plan->threads);
  for (size_t i = 0; i < plan->threads; i++) {
    struct walker *walker = &walkers[i];
    *walker = (struct walker){.plan = plan, .barrier = &barrier, .index = i};
    walker->steps = calloc(BENCH_STEPS, sizeof *walker->steps);
    walker->blocks = calloc(plan->live, sizeof *walker->blocks);
    walker->ring = i % 2 ? walkers[i - 1].ring : aligned_alloc(64, sizeof *walker->ring);
    if (walker->ring && i % 2 == 0) *walker->ring = (struct ring){0};
    if (!walker->steps || !walker->blocks || !walker->ring || pthread_create(&threads[i], NULL, walk, walker) != 0) {
      fprintf(stderr, "host_malloc: no memory or no thread left\n");
      return EXIT_FAILURE;
    }
  }
  for (size_t i = 0; i < plan->threads; i++) {
    pthread_join(threads[i], NULL);
    ops += walkers[i].ops;
    spent_ns += (double)walkers[i].spent_ns;
    free(walkers[i].steps);
    if (i % 2 == 0) free(walkers[i].ring);
    free(walkers[i].blocks);
  }
  pthread_barrier_destroy(&barrier);
  printf("{\"ops\": %llu, \"ns_per_op\": %.2f}\n", (unsigned long long)ops, spent_ns / (double)ops);
  return EXIT_SUCCESS;
}

static double number(int argc, char **argv, int index, double otherwise)
{
  return index < argc ? strtod(argv[index], NULL) : otherwise;
}

int main(int argc, char **argv)
{
  bool is_pair = argc > 1 && strcmp(argv[1], "pair") == 0, hands_off = argc > 1 && strcmp(argv[1], "handoff") == 0;
  struct bench_plan plan = {.workload = is_pair     ? BENCH_PAIR
                                        : hands_off ? BENCH_HANDOFF
                                                    : BENCH_RANDOM,
                            .size_bytes = 4096,
                            .min_size_bytes = 256};
  plan.threads = (size_t)number(argc, argv, 2, 1);
  plan.live = (size_t)number(argc, argv, 3, 1000);
  plan.max_size_bytes = (uint64_t)number(argc, argv, 4, 64 << 20);
  plan.run_ns = (int64_t)(number(argc, argv, 5, 1) * 1e9);
  plan.streams = 1;
  bool is_random = argc > 1 && strcmp(argv[1], "random") == 0;
  if (argc > 6 || (!is_pair && !is_random && !hands_off) || (hands_off && plan.threads % 2) || plan.threads < 1 ||
      plan.threads > MOST_THREADS || plan.live < 2 || plan.max_size_bytes < plan.min_size_bytes) {
    fprintf(stderr, "usage: host_malloc pair|random|handoff [THREADS [LIVE [MAX_BYTES [SECONDS]]]]\n");
    return 2;
  }
  return run(&plan);
}
