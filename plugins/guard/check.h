/* SPDX-License-Identifier: MIT */
/* check.h: looks whether a block's zones, and a freed block's bytes, are as they were filled, and says what is not. The
 * guard's lock is held, the device is current, and the work that may touch the block is over. */
#ifndef HIPMM_GUARD_CHECK_H
#define HIPMM_GUARD_CHECK_H

#include "guard.h"

/* What was found in one block. Overruns count from its end: 0 is the first byte after it. Underruns count from its
 * start backwards: 1 is the byte before it. */
struct check_finds {
  struct memory_damage overrun, underrun, after_free;
};

static inline bool check_found(const struct check_finds *finds)
{
  return finds->overrun.count || finds->underrun.count || finds->after_free.count;
}

/* Fills both zones, on any stream; this needs no lock. */
enum hipmm_status check_fill_zones(struct guard *guard, const struct guard_record *record, hipStream_t stream);

/* Looks, counts, writes what it finds to the log, and fills again what was damaged, so that it is found once. `when`
 * ends the sentence "found when …". */
enum hipmm_status check_block(struct guard *guard, const struct guard_record *record, bool is_freed, const char *when,
                              struct check_finds *finds_out);

/* Reports the finds as the failure of a call: HIPMM_E_SIZE, or HIPMM_E_POINTER for a write after the free. */
enum hipmm_status check_refuse(const struct guard *guard, const struct guard_record *record,
                               const struct check_finds *finds);

/* Writes to the log who allocated a block and who freed it, where that is known. */
void check_log_traces(struct guard *guard, const struct guard_record *record, enum hipmm_log_level level);

#endif
