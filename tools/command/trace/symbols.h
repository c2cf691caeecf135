/* SPDX-License-Identifier: MIT */
/* symbols.h: names the C functions of a call stack that was recorded as places in files. A program may be stripped, and its
 * functions need not be exported: the names come from the file's own tables, or from its debug file. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_SYMBOLS_H
#define HIPMM_TOOLS_COMMAND_TRACE_SYMBOLS_H

struct symbols;

/* NULL: out of memory. */
struct symbols *symbols_open(void);
void symbols_close(struct symbols *symbols);

/* The text of a stack with names in place of "?", where the file is still the one that was recorded, by its build ID. Frames
 * of hipmm's own extension of Python are left out. The caller frees it. NULL: out of memory. */
char *symbols_name_frames(struct symbols *symbols, const char *text);

#endif
