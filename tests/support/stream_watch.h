/* SPDX-License-Identifier: MIT */
/* stream_watch.h: counts the calls of HIP that name a stream which nobody may name just now. The table of HIP functions is
 * lent for that, until the fixture takes it back. */
#ifndef HIPMM_TESTS_SUPPORT_STREAM_WATCH_H
#define HIPMM_TESTS_SUPPORT_STREAM_WATCH_H

#include "fixture.h"

/* From now on no stream is watched, and none was named. Returns the table, for more to be put in it. */
struct hipmm_hip *watch_begin(void);

/* Which stream is; NULL for none. And whether this one is. */
void watch_stream(hipmm_stream_t stream);
bool watch_is_on(hipmm_stream_t stream);

/* How often it was named. */
unsigned watch_count(void);

#endif
