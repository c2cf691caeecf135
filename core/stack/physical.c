/* SPDX-License-Identifier: MIT */
/* physical.c: see physical.h. The runtime's table asks here before each call that takes physical memory (hip_guard_memory()).
 * What a call is about to take is claimed until it is counted, so that two threads cannot both have the last bytes. Sources
 * that take no memory of the device's own (managed and host memory) are not counted. */
#include "physical.h"

#include "../base/peak.h"
#include "../graph/graph.h"
#include "../option/option_value.h"
#include "../runtime/hip.h"
#include "stack.h"

#include <pthread.h>
#include <stdatomic.h>

static struct {
  atomic_uint_fast64_t limit; /* that a percentage has become; 0: not yet */
  atomic_int_fast64_t held;   /* by sources */
  atomic_int_fast64_t claimed, past, peak_past, past_count;
} devices[STACK_MOST_DEVICES];

/* The graph's; 0: none. */
static atomic_uint_fast64_t wanted_bytes;
static _Atomic double wanted_percent;
static atomic_bool wanted_is_of_total, wanted_is_share;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one claim is decided at a time */

/* What the thread's call of the runtime has claimed and no source has counted yet. */
static _Thread_local struct {
  int device;
  int64_t bytes;
} claim;

/* ---- The limit ---- */

void physical_set_limit(const struct graph *graph)
{
  atomic_store(&wanted_bytes, graph ? graph->limit_bytes : 0);
  atomic_store(&wanted_percent, graph ? graph->limit_percent : 0);
  atomic_store(&wanted_is_of_total, graph && graph->limit_is_of_total);
  atomic_store(&wanted_is_share, graph && graph->limit_is_share);
  for (int device = 0; device < STACK_MOST_DEVICES; device++) atomic_store(&devices[device].limit, 0);
  hip_guard_memory(graph && (graph->limit_bytes || graph->limit_percent > 0) ? physical_claim : NULL);
}

static uint64_t physical_of_percent(uint64_t unused, uint64_t total)
{
  const struct option_number number = {.value = (long double)atomic_load(&wanted_percent),
                                       .is_percent = true,
                                       .is_of_total = atomic_load(&wanted_is_of_total),
                                       .is_share = atomic_load(&wanted_is_share)};
  uint64_t share = option_number_of_percent(number, unused, total, hip_device_count());
  return share ? share : 1;
}

/* 0: the runtime does not tell now. */
static uint64_t physical_of_free(int device)
{
  size_t unused = 0, total = 0;
  int previous = hip_enter_device(device), code = hip_table()->MemGetInfo(&unused, &total);
  if (code) hip_table()->GetLastError();
  hip_leave_device(device, previous);
  return code ? 0 : physical_of_percent(unused, total);
}

bool physical_limit_is_open(int device)
{
  return atomic_load(&wanted_percent) > 0 && !atomic_load(&devices[device].limit);
}

uint64_t physical_limit(int device)
{
  uint_fast64_t unknown = 0;
  if (!physical_limit_is_open(device)) return physical_expected_limit(device, 0);
  uint64_t limit = physical_of_free(device);
  if (!limit) return HIPMM_UNLIMITED;
  return atomic_compare_exchange_strong(&devices[device].limit, &unknown, limit) ? limit : unknown;
}

uint64_t physical_expected_limit(int device, uint64_t total)
{
  uint64_t known = atomic_load(&devices[device].limit), bytes = atomic_load(&wanted_bytes);
  if (!known && atomic_load(&wanted_percent) > 0) known = physical_of_percent(total, total);
  return known ? known : bytes ? bytes : HIPMM_UNLIMITED;
}

/* A source counts first and settles its claim then, so what is claimed is read first: memory is never missing here. */
uint64_t physical_held_bytes(int device)
{
  int64_t claimed = atomic_load(&devices[device].claimed), past = atomic_load(&devices[device].past);
  int64_t held = atomic_load(&devices[device].held) + claimed + past;
  return held > 0 ? (uint64_t)held : 0;
}

/* ---- Calls that take memory ---- */

static void physical_settle(int64_t bytes)
{
  if (bytes > claim.bytes) bytes = claim.bytes;
  if (!bytes) return;
  claim.bytes -= bytes;
  atomic_fetch_sub(&devices[claim.device].claimed, bytes);
}

/* A claim that is left is of a call whose memory its source did not count. */
bool physical_claim(int device, int64_t bytes)
{
  physical_settle(INT64_MAX);
  if (bytes <= 0 || device < 0 || device >= STACK_MOST_DEVICES) return true;
  uint64_t limit = physical_limit(device);
  if (physical_limit_is_open(device)) return false; /* a percentage of what the runtime does not tell now */
  pthread_mutex_lock(&lock);
  uint64_t held = physical_held_bytes(device);
  bool is_admitted = held <= limit && (uint64_t)bytes <= limit - held;
  if (is_admitted) atomic_fetch_add(&devices[device].claimed, bytes);
  pthread_mutex_unlock(&lock);
  claim.device = device;
  claim.bytes = is_admitted ? bytes : 0;
  return is_admitted;
}

void physical_count(const struct instance *source, int64_t bytes)
{
  if (!(source->node->plugin->descriptor.flags & HIPMM_PLUGIN_DEVICE_MEMORY)) return;
  bool is_claimed = bytes > 0 && claim.bytes > 0;
  if (is_claimed) pthread_mutex_lock(&lock); /* no thread decides while the bytes are counted twice */
  atomic_fetch_add(&devices[source->stack->device].held, bytes);
  if (is_claimed) physical_settle(bytes);
  if (is_claimed) pthread_mutex_unlock(&lock);
}

void physical_add_past(int device, uint64_t bytes)
{
  pthread_mutex_lock(&lock); /* as in physical_count() */
  peak_add(&devices[device].past, &devices[device].peak_past, (int64_t)bytes);
  physical_settle(INT64_MAX);
  pthread_mutex_unlock(&lock);
  atomic_fetch_add(&devices[device].past_count, 1);
}

void physical_remove_past(int device, uint64_t bytes)
{
  atomic_fetch_sub(&devices[device].past, (int64_t)bytes);
  atomic_fetch_sub(&devices[device].past_count, 1);
}

struct physical_past physical_past(int device)
{
  return (struct physical_past){.bytes = (uint64_t)atomic_load(&devices[device].past),
                                .peak_bytes = (uint64_t)atomic_load(&devices[device].peak_past),
                                .count = (uint64_t)atomic_load(&devices[device].past_count)};
}
