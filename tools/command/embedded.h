/* SPDX-License-Identifier: MIT */
/* embedded.h: text files that are linked into the command. embedded.awk makes a list of them when hipmm is built: the files
 * that `hipmm plugin new` writes, and the parts of the page of `hipmm report`. */
#ifndef HIPMM_TOOLS_COMMAND_EMBEDDED_H
#define HIPMM_TOOLS_COMMAND_EMBEDDED_H

struct embedded_file {
  const char *name; /* without its folder; NULL in the row that ends a list */
  const char *text;
};

/* plugin/template/ */
extern const struct embedded_file plugin_templates[];

/* report/head.html, page.html, state.html, page.css and page.js */
extern const struct embedded_file report_parts[];

#endif
