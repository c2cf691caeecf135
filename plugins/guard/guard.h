/* SPDX-License-Identifier: MIT */
/* guard.h: what the files of guard share. A block of the upstream has four parts: padding that keeps the requested
 * alignment, a zone, the application's bytes, another zone. Records are in host memory, not in the block.
 *
 * Lock order: the locks of `live`, then `lock`. No upstream is called while one is held. */
#ifndef HIPMM_PLUGINS_GUARD_GUARD_H
#define HIPMM_PLUGINS_GUARD_GUARD_H

#include "../common/live_blocks.h"
#include "../common/stack_traces.h"

#include <hipmm/plugin.h>
#include <stdbool.h>

/* ---- Memory (memory.c) ----
 *
 * Fills and compares memory of any kind: device, managed, pinned or pageable. It uses its own stream, which no work of the
 * application waits for; work of the application on the memory must have ended. Only fills may run on a stream of the
 * application. The device is current in all calls. */

/* Fill patterns. Programs seldom write these values. As floating-point numbers both are huge or tiny, which shows in
 * results. */
enum memory_pattern { MEMORY_ZONE = 0xB5, MEMORY_POISON = 0xFB };

/* Pinned memory: copies from and to it do not wait for a stream. */
struct memory_buffers {
  unsigned char zone[16384], poison[16384]; /* patterns, for memory that a device cannot fill */
  unsigned char read[65536];
};

struct memory {
  const struct hipmm_services *services;
  hipmm_stream_t stream;
  struct memory_buffers *buffers;
};

/* The bytes that differ from the pattern: offsets of the first and the last one, and their number. */
struct memory_damage {
  size_t first, last, count; /* count 0: none */
};

enum hipmm_status memory_open(struct memory *memory, const struct hipmm_services *services);
void memory_close(struct memory *memory);

enum hipmm_status memory_fill(struct memory *memory, void *ptr, size_t bytes, enum memory_pattern pattern,
                              hipmm_stream_t stream);

/* One thread at a time. */
enum hipmm_status memory_compare(struct memory *memory, const void *ptr, size_t bytes, enum memory_pattern pattern,
                                 struct memory_damage *damage_out);

/* Waits for fills on the memory's own stream. */
enum hipmm_status memory_wait(struct memory *memory);

/* Waits for a stream of the application, or for the whole device if that stream is gone. */
enum hipmm_status memory_wait_for_stream(struct memory *memory, hipmm_stream_t stream);

/* An event that is recorded on a stream of the application now; a wait for it, which needs no stream; its end. NULL: none. */
enum hipmm_status memory_mark(struct memory *memory, hipmm_stream_t stream, hipmm_hip_event_t *event_out);
enum hipmm_status memory_wait_for_mark(struct memory *memory, hipmm_hip_event_t event);
void memory_drop_mark(struct memory *memory, hipmm_hip_event_t event);
enum hipmm_status memory_wait_for_device(struct memory *memory);

/* ---- The resource ---- */

/* Named as the words of the option "on_damage". */
enum guard_on_damage { GUARD_LOG, GUARD_ERROR };

struct guard_options {
  uint64_t zone_size;
  uint64_t quarantine_size;
  uint32_t poison;
  uint32_t on_damage;
  struct stack_options stack;
  int64_t sample_interval;
};

struct guard_record {
  struct live_block block; /* the application's bytes; after the free, `stream` is the stream of the free */
  void *upstream_ptr;
  size_t upstream_bytes, alignment, zone_bytes;
  uint32_t allocated_by, freed_by; /* traces; 0: none */
  uint64_t is_poisoned;            /* was filled when it was freed */
  uint64_t is_captured;            /* allocated in a graph capture, or as one began: a launch may fill the zones */
  hipmm_hip_event_t filled;        /* live: recorded when the zones were filled; NULL if is_captured */
};

/* Freed blocks, oldest first, in a ring. */
struct quarantine {
  struct guard_record *items;
  size_t capacity, head, count;
  size_t leaving;        /* removed and perhaps restored; their room is kept */
  uint64_t bytes;        /* of the upstream's blocks */
  uint64_t left;         /* counts the blocks that have left */
  struct key_map by_ptr; /* `left` of the block's turn, plus 1 */
};

enum { GUARD_CELLS = 1 << 13 };

struct guard {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct guard_options options; /* may change while in use: read and written atomically */
  uint32_t is_sampling;         /* there was a block without a guard; atomic */
  uint32_t cells[GUARD_CELLS];  /* how many records, live or in the quarantine, have pointers of a hash; atomic */
  struct live_blocks live;
  struct stack_traces traces;
  pthread_mutex_t lock; /* all below */
  struct memory memory; /* filling on the application's streams needs no lock */
  struct quarantine quarantine;
  int64_t overruns, underruns, writes_after_free, double_frees;
};

static inline uint64_t guard_option(const uint64_t *option)
{
  return __atomic_load_n(option, __ATOMIC_RELAXED);
}

static inline bool guard_is_on(const uint32_t *option)
{
  return __atomic_load_n(option, __ATOMIC_RELAXED);
}

/* Where it is 0, no block with a guard starts at `ptr`. */
static inline uint32_t *guard_cell(struct guard *guard, const void *ptr)
{
  return &guard->cells[(uintptr_t)ptr / HIPMM_ALIGNMENT * UINT64_C(0x9e3779b97f4a7c15) >> 51];
}

static inline void guard_leave_cell(struct guard *guard, const void *ptr)
{
  __atomic_sub_fetch(guard_cell(guard, ptr), 1, __ATOMIC_RELAXED);
}

static inline char *guard_tail(const struct guard_record *record)
{
  return (char *)record->block.ptr + record->block.bytes;
}

static inline size_t guard_tail_bytes(const struct guard_record *record)
{
  return (size_t)((char *)record->upstream_ptr + record->upstream_bytes - guard_tail(record));
}

static inline char *guard_front(const struct guard_record *record)
{
  return (char *)record->block.ptr - record->zone_bytes;
}

/* ---- Checks (check.c) ----
 *
 * Compare the zones of a block, and the bytes of a freed block, with their patterns, and report differences. The guard's lock
 * is held, the device is current, and all work on the block has ended. */

/* The damage to one block. Overruns count from its end: 0 is the first byte after it. Underruns count backwards from its
 * start: 1 is the byte before it. */
struct check_result {
  struct memory_damage overrun, underrun, after_free;
};

static inline bool check_is_damaged(const struct check_result *result)
{
  return result->overrun.count || result->underrun.count || result->after_free.count;
}

/* Fills both zones, on any stream; this needs no lock. */
enum hipmm_status check_fill_zones(struct guard *guard, const struct guard_record *record, hipmm_stream_t stream);

/* Compares, counts, logs the damage, and fills damaged parts again so that damage is found once. `when` ends the
 * sentence "found when …". */
enum hipmm_status check_block(struct guard *guard, const struct guard_record *record, bool is_freed, const char *when,
                              struct check_result *result_out);

/* Reports the damage as the failure of a call: HIPMM_E_SIZE, or HIPMM_E_POINTER for a write after the free. */
enum hipmm_status check_refuse(const struct guard *guard, const struct guard_record *record,
                               const struct check_result *result);

/* Logs the stack traces of the block's allocation and free, if they were recorded. */
void check_log_traces(struct guard *guard, const struct guard_record *record, enum hipmm_log_level level);

/* ---- The quarantine (quarantine.c) ----
 *
 * Freed blocks are kept for a while, so that a late write finds no data of others and is detected. The device is current in
 * all calls. */

/* Makes room for one more block, at `ptr`. False when there is no host memory for it. The guard's lock is held. */
bool quarantine_reserve(struct guard *guard, const void *ptr);

/* Adds the block, for which there is room; the guard's lock is still held. */
void quarantine_add(struct guard *guard, const struct guard_record *record);

/* The block that starts at `ptr`, or NULL; the lock is held. */
const struct guard_record *quarantine_find(const struct guard *guard, const void *ptr);

/* Frees the oldest blocks, each after a last check, until at most `bytes` are left. A block whose check or free fails
 * stays. `stream` is valid now. The lock is not held. */
enum hipmm_status quarantine_shrink(struct guard *guard, uint64_t bytes, hipmm_stream_t stream);

/* Checks all blocks and adds the number of damaged ones to `damaged`. The lock is held. */
enum hipmm_status quarantine_verify(struct guard *guard, uint64_t *damaged);

/* Visits all blocks. The lock is held. */
void quarantine_visit(const struct guard *guard, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                      void *closure);

/* Frees all blocks, whatever fails. No other thread is in the guard. */
void quarantine_close(struct guard *guard);

/* ---- Allocating and freeing (blocks.c) ----
 *
 * With "sample_interval" most blocks have no guard: they are the upstream's, as they are. The free of one looks at a cell.
 *
 * A free waits for the work on the block, checks the zones, fills the block with the poison pattern and puts it into the
 * quarantine. A block that the quarantine has no place for goes to the upstream as it is. If a free fails, the block stays
 * allocated as it was. */

enum hipmm_status blocks_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
enum hipmm_status blocks_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);

#endif
