/* SPDX-License-Identifier: MIT */
/* log.h: the debug log, and the program's sink for it. HIPMM_LOG=LEVEL[:FILE] sets it up; LEVEL is one of off error
 * warning info debug trace; FILE is expanded (output_file.h). Without HIPMM_LOG, warnings and errors go to the sink or,
 * without a sink, to standard error. One line per message, written with one write(). All functions are thread-safe. */
#ifndef HIPMM_CORE_BASE_LOG_H
#define HIPMM_CORE_BASE_LOG_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* Writes a line. `about` is the name of the resource, or of the part of the core, that writes; NULL for none. */
void log_line(enum hipmm_log_level level, const char *about, const char *format, ...) HIPMM_PRINTF(3, 4);
void log_line_arguments(enum hipmm_log_level level, const char *about, const char *format, va_list arguments);

/* Whether lines of this level are written at all. */
bool log_wants(enum hipmm_log_level level);

/* The function that is called whenever the log may want other lines than before; there is one. */
void log_watch(void (*changed)(void));
void log_notify_change(void);

/* ---- The sink ---- */

/* Whether the program has set a sink: then lines go to other places only if HIPMM_LOG asks for it. One load. */
bool log_sink_exists(void);

/* Whether there is a sink that wants lines of this level. One load. */
bool log_sink_wants(enum hipmm_log_level level);

/* Calls the sink with a line, without its end. Does nothing if the calling thread is inside the sink already. */
void log_sink_write(enum hipmm_log_level level, const char *about, const char *message);

#endif
