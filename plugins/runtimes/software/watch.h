/* SPDX-License-Identifier: MIT */
/* watch.h: what the files share that feed the race detector. */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_WATCH_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_WATCH_H

#include "../../race/race_detector.h"
#include "internal.h"

/* Expects the lock held. */
struct race_stream software_watch_stream(const struct software_queue *queue);

#endif
