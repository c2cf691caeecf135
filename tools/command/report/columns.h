/* SPDX-License-Identifier: MIT */
/* columns.h: the numbers of a page of `hipmm report`. Called by html.c. */
#ifndef HIPMM_TOOLS_COMMAND_REPORT_COLUMNS_H
#define HIPMM_TOOLS_COMMAND_REPORT_COLUMNS_H

#include "report.h"

/* What is written of a log. */
struct html {
  FILE *file;
  size_t index; /* of the summary, among several */
  const json_t *summary;
  const struct blocks *blocks;
  const struct block **kept; /* in the order of their allocation */
  size_t n_kept;
};

/* Begins data of the page, which the script finds by its name and, of another summary than the first, its number. */
void html_begin(const struct html *html, const char *type, const char *name);

/* Writes the columns. False: out of memory. */
bool html_columns(const struct html *html);

#endif
