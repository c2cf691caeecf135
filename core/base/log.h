/* SPDX-License-Identifier: MIT */
/* log.h: the debug log. HIPMM_LOG=LEVEL[:FILE], LEVEL one of off error warning info debug trace; without it, warnings
 * and errors go to the program's sink (log_sink.h) or else to standard error. One line per message, written with one
 * write(). */
#ifndef HIPMM_CORE_BASE_LOG_H
#define HIPMM_CORE_BASE_LOG_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* `about` is the resource or the part of the core that speaks; NULL for none. */
void log_line(enum hipmm_log_level level, const char *about, const char *format, ...) HIPMM_PRINTF(3, 4);
void log_line_arguments(enum hipmm_log_level level, const char *about, const char *format, va_list arguments);

/* Whether lines of this level are written at all. */
bool log_wants(enum hipmm_log_level level);

#endif
