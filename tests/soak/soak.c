/* SPDX-License-Identifier: MIT */
/* soak.c: random work for any time: stack after stack, of random types and limits. 8 threads start and end with each
 * stack, and use it on streams that are destroyed and created again. Another thread changes options and reads
 * values. Every block is checked against the naive model of tools/command/plugin/model.h, and after each stack the
 * runtime must have everything back.
 *
 *     tests/soak/soak [SECONDS [SEED]]        5 seconds without; a failure names the seed, which repeats that stack
 *
 * In runs of a minute or more: after the first tenth of the time, the resident memory of the process and hipmm's own
 * host memory must not grow, and an operation must not become slower. Ends with 0 if all was well. */
#include "../../tools/command/plugin/model.h"
#include "../../tools/command/plugin/random.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, JUDGED_SECONDS = 60, ALLOWED_PERCENT = 15 };
static const double ALLOWED_BYTES = 8 << 20;

/* ---- Stacks ---- */

struct middle {
  const char *json; /* %s: when events are recorded */
  size_t most_bytes;
};

static const struct middle middles[] = {
    {"{\"type\": \"pool\", \"growth\": \"auto\"%s}, ", 4 << 20},
    {"{\"type\": \"pool\", \"growth\": \"segments\"%s}, ", 4 << 20},
    {"{\"type\": \"pool\", \"maximum_size\": \"6MiB\"%s}, ", 2 << 20},
    {"{\"type\": \"pool\", \"growth\": \"segments\", \"maximum_size\": \"6MiB\"%s}, ", 2 << 20},
    {"{\"type\": \"arena\"%s}, ", 1 << 20},
    {"{\"type\": \"arena\", \"maximum_size\": \"8MiB\"%s}, ", 1 << 20},
    {"{\"type\": \"fixed_size\", \"block_size\": \"16KiB\"%s}, ", 16384},
    {"{\"type\": \"fixed_size\", \"block_size\": 3000%s}, \"pool\", ", 3000},
    {"{\"type\": \"binning\", \"bins\": [{\"size\": \"1KiB\"}, {\"size\": \"64KiB\"}]%s}, \"pool\", ", 1 << 20},
    {"{\"type\": \"limiting\", \"limit\": \"5MiB\"}, {\"type\": \"pool\"%s}, ", 1 << 20},
    {"", 1 << 20},
};

static const char *const tops[] = {"",
                                   "\"statistics\", ",
                                   "\"thread_safe\", ",
                                   "{\"type\": \"tracking\", \"stacks\": \"off\"}, ",
                                   "{\"type\": \"guard\", \"quarantine_size\": 100000}, ",
                                   "{\"type\": \"aligned\", \"alignment\": 512}, "};
static const char *const sources[] = {"\"device\"", "\"device\"", "\"async\"", "\"managed\""};

#define DRAW(random, items) (&(items)[random_below(random, sizeof(items) / sizeof *(items))])

/* Draws a stack and how it is used; `stack` gets the text. */
static struct model soak_draw(uint64_t seed, char *stack, size_t bytes)
{
  static const char *const records[] = {"", ", \"record\": \"lazy\"", ", \"record\": \"on_free\""};
  uint64_t random = seed;
  const struct middle *middle = DRAW(&random, middles);
  const char *const *record = DRAW(&random, records);
  char middle_text[300];
  const char *rest = strstr(middle->json, "%s");
  int length = rest ? (int)(rest - middle->json) : (int)strlen(middle->json);
  snprintf(middle_text, sizeof middle_text, "%.*s%s%s", length, middle->json, rest ? *record : "",
           rest ? rest + 2 : "");
  snprintf(stack, bytes, "[%s%s%s]", *DRAW(&random, tops), middle_text, *DRAW(&random, sources));
  return (struct model){.name = "soak",
                        .stack = stack,
                        .scheduler = random_chance(&random, 50) ? "stepped" : "threads",
                        .threads = THREADS,
                        .streams = 1 + (int)random_below(&random, MODEL_MOST_STREAMS),
                        .operations = 50u << random_below(&random, 4),
                        .most_bytes = middle->most_bytes,
                        .may_align = true,
                        .may_fail = true, /* limits change meanwhile */
                        .retires = record == &records[1]};
}

/* ---- The thread that changes options and looks ---- */

static atomic_bool is_over;
static atomic_ullong changes, looks;

/* A stack may be gone, or have no such resource: then the call is refused. The stack is never built by it. */
static void *soak_meddle(void *seed)
{
  static const char *const names[] = {"pool", "arena", "limiting", "tracking", "fixed_size"};
  static const char *const options[] = {"maximum_size", "limit", "stack_depth", "slack"};
  static const char *const settings[] = {"6MiB", "7MiB", "8MiB", "true", "false", "1MiB", NULL};
  static const char *const values[] = {"metadata_bytes", "live_bytes", "reserved_bytes", "stream_waits",
                                       "current_count"};
  uint64_t random = *(uint64_t *)seed;
  while (!atomic_load(&is_over)) {
    char path[100];
    int64_t value;
    const char *name = *DRAW(&random, names);
    snprintf(path, sizeof path, "devices/0/%s/%s", name, *DRAW(&random, values));
    if (!hipmm_query(path, &value)) atomic_fetch_add(&looks, 1);
    snprintf(path, sizeof path, "devices/0/%s/%s", name, *DRAW(&random, options));
    if (!hipmm_set(path, *DRAW(&random, settings))) atomic_fetch_add(&changes, 1);
    usleep(300);
  }
  return NULL;
}

/* ---- Host memory ---- */

static atomic_llong host_bytes, peak_host_bytes;

static void *soak_map(void *unused, size_t bytes)
{
  (void)unused;
  void *ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ptr == MAP_FAILED) return NULL;
  long long now = atomic_fetch_add(&host_bytes, (long long)bytes) + (long long)bytes,
            peak = atomic_load(&peak_host_bytes);
  while (now > peak && !atomic_compare_exchange_weak(&peak_host_bytes, &peak, now)) continue;
  return ptr;
}

static void soak_unmap(void *unused, void *ptr, size_t bytes)
{
  (void)unused;
  munmap(ptr, bytes);
  atomic_fetch_sub(&host_bytes, (long long)bytes);
}

static long long soak_resident_bytes(void)
{
  long long total, resident = 0;
  malloc_trim(0);
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%lld %lld", &total, &resident) != 2) resident = 0;
  if (file) fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

/* ---- The run ---- */

static double soak_seconds(clockid_t clock)
{
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct soak_state {
  unsigned long long stacks, allocations, refusals, waits;
  double cpu_seconds;
  long long resident, host; /* between two stacks */
};

static void soak_measure(struct soak_state *state)
{
  state->cpu_seconds = soak_seconds(CLOCK_PROCESS_CPUTIME_ID);
  state->resident = soak_resident_bytes();
  state->host = atomic_load(&host_bytes);
}

static void soak_print(unsigned percent, const struct soak_state *state)
{
  printf(
      "after %u %%: %llu stacks, %llu allocations, %llu refused for a limit, %llu waits of streams; %.1f MiB resident, "
      "%.1f KiB of hipmm's host memory\n",
      percent, state->stacks, state->allocations, state->refusals, state->waits, (double)state->resident / 1048576,
      (double)state->host / 1024);
  fflush(stdout);
}

/* True, with a line, if `now` is more than `then` by more than what is allowed. */
static bool soak_grew(const char *what, double then, double now, double allowed)
{
  bool grew = now > then * (1 + ALLOWED_PERCENT / 100.0) + allowed;
  if (grew) printf("FAIL: %s grew from %.0f to %.0f\n", what, then, now);
  return grew;
}

static bool soak_run_stack(uint64_t seed, struct soak_state *state)
{
  char stack[700];
  struct model model = soak_draw(seed, stack, sizeof stack);
  struct model_result result = model_run(&model, seed);
  state->stacks++;
  state->allocations += result.allocations;
  state->refusals += result.refusals;
  state->waits += result.waits_of_streams;
  if (result.failure[0]) printf("FAIL: soak 1 %llu: %s: %s\n", (unsigned long long)seed, stack, result.failure);
  return !result.failure[0];
}

/* Whether nothing failed and nothing grew from the first tenth of the time on. Prints a line after each tenth. */
static bool soak_run(double seconds, uint64_t seed)
{
  struct soak_state state = {0}, early = {0};
  double begin = soak_seconds(CLOCK_MONOTONIC), now = begin;
  bool good = true;
  unsigned tenths = 0;
  while (good && (now - begin < seconds || !state.stacks)) {
    good = soak_run_stack(seed++, &state);
    now = soak_seconds(CLOCK_MONOTONIC);
    if (now - begin < seconds * (tenths + 1) / 10) continue;
    while (tenths < 10 && now - begin >= seconds * (tenths + 1) / 10) tenths++;
    soak_measure(&state);
    if (!early.stacks) early = state;
    soak_print(10 * tenths, &state);
  }
  soak_measure(&state);
  printf("%llu changes of options, %llu values asked for; at most %.1f MiB of hipmm's host memory, most of it reserved "
         "addresses; CPU time for an "
         "allocation: %.1f us in the first tenth, %.1f us after it\n",
         atomic_load(&changes), atomic_load(&looks), (double)atomic_load(&peak_host_bytes) / 1048576,
         1e6 * early.cpu_seconds / (double)(early.allocations + 1),
         1e6 * (state.cpu_seconds - early.cpu_seconds) / (double)(state.allocations - early.allocations + 1));
  if (!good || seconds < JUDGED_SECONDS) return good;
  bool grew = soak_grew("resident memory", (double)early.resident, (double)state.resident, ALLOWED_BYTES);
  grew |= soak_grew("hipmm's host memory", (double)early.host, (double)state.host, 0);
  grew |= soak_grew("CPU time of an allocation in ns", 1e9 * early.cpu_seconds / (double)early.allocations,
                    1e9 * (state.cpu_seconds - early.cpu_seconds) / (double)(state.allocations - early.allocations + 1),
                    1e9 * early.cpu_seconds / (double)early.allocations);
  return !grew;
}

int main(int argc, char **argv)
{
  const struct hipmm_host_allocator allocator = {sizeof allocator, soak_map, soak_unmap, NULL};
  double seconds = argc > 1 ? atof(argv[1]) : 5;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  pthread_t meddler;
  software();
  hipmm_log_set_level(HIPMM_LOG_ERROR); /* what the model frees wrongly is refused with a warning */
  if (hipmm_host_allocator_set(&allocator) || pthread_create(&meddler, NULL, soak_meddle, &seed)) {
    fprintf(stderr, "soak: cannot begin: %s\n", hipmm_last_error_message());
    return 2;
  }
  bool good = soak_run(seconds, seed);
  atomic_store(&is_over, true);
  pthread_join(meddler, NULL);
  printf("%s\n", good ? "1 passed, 0 failed" : "0 passed, 1 failed");
  return !good;
}
