/* SPDX-License-Identifier: MIT */
/* publish.h: publishes the counters of all live resources in shared memory, for `hipmm top` and other programs. */
#ifndef HIPMM_CORE_INSPECT_PUBLISH_H
#define HIPMM_CORE_INSPECT_PUBLISH_H

#include <stdbool.h>

/* Whether to publish: HIPMM_PUBLISH is 1 or 0, or else the graph's "publish" says it. */
bool publish_is_wanted(bool by_graph);

/* Within a change (lifecycle.h), after the table of devices was opened, and before it is closed. A thread copies the
 * counters ten times a second. Without the file or the thread a warning says why, and nothing is published. */
void publish_begin(void);
void publish_end(void);

#endif
