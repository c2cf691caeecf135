/* SPDX-License-Identifier: MIT */
/* captures.h: a graph that is captured from a stream, under whatever the allocator does meanwhile. On a GPU it is one;
 * the software device captures nothing, so there the table of HIP functions is lent to these, which pretend. */
#ifndef HIPMM_TESTS_SUPPORT_CAPTURES_H
#define HIPMM_TESTS_SUPPORT_CAPTURES_H

#include "fixture.h"

/* Begins to capture what is given to the stream, in the mode that forbids most. Ends the test as skipped where neither
 * can be. */
void capture_begin(hipmm_stream_t stream);

/* Whether nothing has ended the capture before. */
bool capture_end(void);

/* Has the stream do, after a capture that ended well, what was captured, and waits. What was pretended is done. */
void capture_replay(hipmm_stream_t stream);

/* Goes before the fixture's teardown; and does both. */
void capture_forget(void);
int capture_teardown(void **state);

/* On the software device's own graphs: a capture begins when an event is next recorded on the stream, as another thread
 * could begin it at any moment; and ends, with its graph. It must have begun. */
void capture_at_record(hipmm_stream_t stream);
void capture_end_at_record(hipmm_stream_t stream);

#endif
