/* SPDX-License-Identifier: MIT */
/* check.c: see check.h. */
#include "check.h"

enum hipmm_status check_fill_zones(struct guard *guard, const struct guard_record *record, hipStream_t stream)
{
  enum hipmm_status status = memory_fill(&guard->memory, guard_front(record), record->zone_bytes, MEMORY_ZONE, stream);
  return status ? status
                : memory_fill(&guard->memory, guard_tail(record), guard_tail_bytes(record), MEMORY_ZONE, stream);
}

/* ---- Looking ---- */

/* From the start backwards: what is first in memory is farthest. */
static struct memory_damage check_backwards(struct memory_damage damage, size_t zone_bytes)
{
  return (struct memory_damage){zone_bytes - damage.last, zone_bytes - damage.first, damage.count};
}

static enum hipmm_status check_look(struct guard *guard, const struct guard_record *record, bool is_freed,
                                    struct check_finds *finds_out)
{
  struct memory *memory = &guard->memory;
  struct memory_damage front = {0};
  enum hipmm_status status = memory_compare(memory, guard_front(record), record->zone_bytes, MEMORY_ZONE, &front);
  if (!status)
    status = memory_compare(memory, guard_tail(record), guard_tail_bytes(record), MEMORY_ZONE, &finds_out->overrun);
  if (!status && is_freed && record->is_poisoned)
    status = memory_compare(memory, record->block.ptr, record->block.bytes, MEMORY_POISON, &finds_out->after_free);
  if (!status && front.count) finds_out->underrun = check_backwards(front, record->zone_bytes);
  return status;
}

static enum hipmm_status check_mend(struct guard *guard, const struct guard_record *record,
                                    const struct check_finds *finds)
{
  hipStream_t stream = guard->memory.stream;
  enum hipmm_status status = check_fill_zones(guard, record, stream);
  if (!status && finds->after_free.count)
    status = memory_fill(&guard->memory, record->block.ptr, record->block.bytes, MEMORY_POISON, stream);
  return status;
}

/* ---- Telling ---- */

void check_log_traces(struct guard *guard, const struct guard_record *record, enum hipmm_log_level level)
{
  const struct hipmm_services *services = guard->services;
  if (record->allocated_by) services->log(services, level, " allocated here: callstack:");
  stack_traces_log(&guard->traces, record->allocated_by, level);
  if (record->freed_by) services->log(services, level, " freed here: callstack:");
  stack_traces_log(&guard->traces, record->freed_by, level);
}

static void check_tell(struct guard *guard, const struct guard_record *record, const struct memory_damage *damage,
                       const char *what, const char *where, const char *when)
{
  if (!damage->count) return;
  guard->services->log(guard->services, HIPMM_LOG_ERROR,
                       "allocation %llu (%zu bytes at %p, stream %p) was written %s: bytes %zu to %zu %s, %zu in all; "
                       "found when %s",
                       (unsigned long long)record->block.number, record->block.bytes, record->block.ptr,
                       (void *)record->block.stream, what, damage->first, damage->last, where, damage->count, when);
}

static void check_tell_all(struct guard *guard, const struct guard_record *record, bool is_freed,
                           const struct check_finds *finds, const char *when)
{
  check_tell(guard, record, &finds->overrun, is_freed ? "past its end, perhaps after it was freed" : "past its end",
             "after its end, from 0 on", when);
  check_tell(guard, record, &finds->underrun,
             is_freed ? "before its start, perhaps after it was freed" : "before its start",
             "before its start, from 1 on", when);
  check_tell(guard, record, &finds->after_free, "after it was freed", "of it, from 0 on", when);
  check_log_traces(guard, record, HIPMM_LOG_ERROR);
}

enum hipmm_status check_block(struct guard *guard, const struct guard_record *record, bool is_freed, const char *when,
                              struct check_finds *finds_out)
{
  struct check_finds finds = {0};
  enum hipmm_status status = check_look(guard, record, is_freed, &finds);
  if (!status && check_found(&finds)) status = check_mend(guard, record, &finds);
  if (status) return status;
  if (check_found(&finds)) check_tell_all(guard, record, is_freed, &finds, when);
  guard->overruns += finds.overrun.count > 0;
  guard->underruns += finds.underrun.count > 0;
  guard->writes_after_free += finds.after_free.count > 0;
  *finds_out = finds;
  return HIPMM_OK;
}

enum hipmm_status check_refuse(const struct guard *guard, const struct guard_record *record,
                               const struct check_finds *finds)
{
  const struct hipmm_services *services = guard->services;
  uintptr_t ptr = (uintptr_t)record->block.ptr;
  if (finds->after_free.count)
    return services->refuse(services, HIPMM_E_POINTER, "{0:hex} was written after it was freed: bytes {1} to {2} of it",
                            ptr, finds->after_free.first, finds->after_free.last);
  if (finds->overrun.count)
    return services->refuse(services, HIPMM_E_SIZE, "{0:hex} was written past its end: bytes {1} to {2} after its end",
                            ptr, finds->overrun.first, finds->overrun.last);
  return services->refuse(services, HIPMM_E_SIZE,
                          "{0:hex} was written before its start: bytes {1} to {2} before its start", ptr,
                          finds->underrun.first, finds->underrun.last);
}
