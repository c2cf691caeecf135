/* SPDX-License-Identifier: MIT */
/* log_sink.h: the program's own function for lines of the log. */
#ifndef HIPMM_CORE_BASE_LOG_SINK_H
#define HIPMM_CORE_BASE_LOG_SINK_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* Whether there is one, and it wants lines of this level. One load. */
bool log_sink_wants(enum hipmm_log_level level);

/* Whether there is one at all: then the log speaks to nobody else unless HIPMM_LOG asks for it. */
bool log_sink_exists(void);

/* Hands a line over, without its end. Nothing happens when the calling thread is in the sink already. */
void log_sink_write(enum hipmm_log_level level, const char *about, const char *message);

#endif
