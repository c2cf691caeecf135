/* SPDX-License-Identifier: MIT */
/* page.h: pages for browsers, which need no other file. Called by html.c and state_print.c. */
#ifndef HIPMM_TOOLS_COMMAND_REPORT_PAGE_H
#define HIPMM_TOOLS_COMMAND_REPORT_PAGE_H

#include <stdbool.h>
#include <stdio.h>

/* Writes the embedded page `part` with the title; `put` writes what is in the place of the line "@data@". False: a
 * function failed, with errno. */
bool page_write(FILE *file, const char *part, const char *title, bool (*put)(FILE *file, const void *closure),
                const void *closure);

/* Writes text so that none of it is HTML. */
void page_put_text(FILE *file, const char *text);

#endif
