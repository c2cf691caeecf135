/* SPDX-License-Identifier: MIT */
/* check.c: see guard.h. */
#include "guard.h"

enum hipmm_status check_fill_zones(struct guard *guard, const struct guard_record *record, hipmm_stream_t stream)
{
  enum hipmm_status status = memory_fill(&guard->memory, guard_front(record), record->zone_bytes, MEMORY_ZONE, stream);
  return status ? status
                : memory_fill(&guard->memory, guard_tail(record), guard_tail_bytes(record), MEMORY_ZONE, stream);
}

/* ---- Comparing ---- */

/* Distances from the block's start: the first byte in memory is the farthest. */
static struct memory_damage check_count_backwards(struct memory_damage damage, size_t zone_bytes)
{
  return (struct memory_damage){zone_bytes - damage.last, zone_bytes - damage.first, damage.count};
}

static enum hipmm_status check_compare(struct guard *guard, const struct guard_record *record, bool is_freed,
                                       struct check_result *result_out)
{
  struct memory *memory = &guard->memory;
  struct memory_damage front = {0};
  enum hipmm_status status = memory_compare(memory, guard_front(record), record->zone_bytes, MEMORY_ZONE, &front);
  if (!status)
    status = memory_compare(memory, guard_tail(record), guard_tail_bytes(record), MEMORY_ZONE, &result_out->overrun);
  if (!status && is_freed && record->is_poisoned)
    status = memory_compare(memory, record->block.ptr, record->block.bytes, MEMORY_POISON, &result_out->after_free);
  if (!status && front.count) result_out->underrun = check_count_backwards(front, record->zone_bytes);
  return status;
}

static enum hipmm_status check_restore(struct guard *guard, const struct guard_record *record,
                                       const struct check_result *result)
{
  hipmm_stream_t stream = guard->memory.stream;
  enum hipmm_status status = check_fill_zones(guard, record, stream);
  if (!status && result->after_free.count)
    status = memory_fill(&guard->memory, record->block.ptr, record->block.bytes, MEMORY_POISON, stream);
  return status;
}

/* ---- Reporting ---- */

void check_log_traces(struct guard *guard, const struct guard_record *record, enum hipmm_log_level level)
{
  const struct hipmm_services *services = guard->services;
  if (record->allocated_by) services->log(services, level, " allocated here: callstack:");
  stack_traces_log(&guard->traces, record->allocated_by, level);
  if (record->freed_by) services->log(services, level, " freed here: callstack:");
  stack_traces_log(&guard->traces, record->freed_by, level);
}

static void check_report_damage(struct guard *guard, const struct guard_record *record,
                                const struct memory_damage *damage, const char *what, const char *where,
                                const char *when)
{
  if (!damage->count) return;
  guard->services->log(guard->services, HIPMM_LOG_ERROR,
                       "allocation %llu (%zu bytes at %p, stream %p) was written %s: bytes %zu to %zu %s, %zu in all; "
                       "found when %s",
                       (unsigned long long)record->block.number, record->block.bytes, record->block.ptr,
                       (void *)record->block.stream, what, damage->first, damage->last, where, damage->count, when);
}

static void check_report(struct guard *guard, const struct guard_record *record, bool is_freed,
                         const struct check_result *result, const char *when)
{
  check_report_damage(guard, record, &result->overrun,
                      is_freed ? "past its end, perhaps after it was freed" : "past its end",
                      "after its end, from 0 on", when);
  check_report_damage(guard, record, &result->underrun,
                      is_freed ? "before its start, perhaps after it was freed" : "before its start",
                      "before its start, from 1 on", when);
  check_report_damage(guard, record, &result->after_free, "after it was freed", "of it, from 0 on", when);
  check_log_traces(guard, record, HIPMM_LOG_ERROR);
}

/* Zones that a graph fills are no proof: nobody tells whether the graph was launched. */
static void check_excuse_zones(struct guard *guard, const struct guard_record *record, const char *when,
                               struct check_result *result)
{
  if (!result->overrun.count && !result->underrun.count) return;
  guard->services->log(guard->services, HIPMM_LOG_WARNING,
                       "allocation %llu (%zu bytes at %p, stream %p) was made in a graph capture, and the bytes around "
                       "it are not what a launch of the graph writes there: the graph was not launched, or they were "
                       "overwritten; found when %s",
                       (unsigned long long)record->block.number, record->block.bytes, record->block.ptr,
                       (void *)record->block.stream, when);
  result->overrun = result->underrun = (struct memory_damage){0};
}

enum hipmm_status check_block(struct guard *guard, const struct guard_record *record, bool is_freed, const char *when,
                              struct check_result *result_out)
{
  struct check_result result = {0};
  enum hipmm_status status = check_compare(guard, record, is_freed, &result);
  if (!status && check_is_damaged(&result)) status = check_restore(guard, record, &result);
  if (status) return status;
  if (record->is_captured) check_excuse_zones(guard, record, when, &result);
  if (check_is_damaged(&result)) check_report(guard, record, is_freed, &result, when);
  guard->overruns += result.overrun.count > 0;
  guard->underruns += result.underrun.count > 0;
  guard->writes_after_free += result.after_free.count > 0;
  *result_out = result;
  return HIPMM_OK;
}

enum hipmm_status check_refuse(const struct guard *guard, const struct guard_record *record,
                               const struct check_result *result)
{
  const struct hipmm_services *services = guard->services;
  uintptr_t ptr = (uintptr_t)record->block.ptr;
  if (result->after_free.count)
    return services->refuse(services, HIPMM_E_POINTER, "{0:hex} was written after it was freed: bytes {1} to {2} of it",
                            ptr, result->after_free.first, result->after_free.last);
  if (result->overrun.count)
    return services->refuse(services, HIPMM_E_SIZE, "{0:hex} was written past its end: bytes {1} to {2} after its end",
                            ptr, result->overrun.first, result->overrun.last);
  return services->refuse(services, HIPMM_E_SIZE,
                          "{0:hex} was written before its start: bytes {1} to {2} before its start", ptr,
                          result->underrun.first, result->underrun.last);
}
