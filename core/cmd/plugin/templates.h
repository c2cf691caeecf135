/* SPDX-License-Identifier: MIT */
/* templates.h: the files of template/ as texts; templates.awk makes templates.c of them when hipmm is built. */
#ifndef HIPMM_CMD_PLUGIN_TEMPLATES_H
#define HIPMM_CMD_PLUGIN_TEMPLATES_H

struct template
{
  const char *name; /* of the file in template/ */
  const char *text;
};

/* Ended by a row without a name. */
extern const struct template templates[];

#endif
