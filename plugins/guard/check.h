/* SPDX-License-Identifier: MIT */
/* check.h: compares the zones of a block, and the bytes of a freed block, with their patterns, and reports differences. The
 * guard's lock is held, the device is current, and all work on the block has ended. */
#ifndef HIPMM_PLUGINS_GUARD_CHECK_H
#define HIPMM_PLUGINS_GUARD_CHECK_H

#include "guard.h"

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

#endif
