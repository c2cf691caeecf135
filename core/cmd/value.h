/* SPDX-License-Identifier: MIT */
/* value.h: an option's value on one line for people: "64KiB", "[{size=64KiB, resource=small}]", "not set". */
#ifndef HIPMM_CMD_VALUE_H
#define HIPMM_CMD_VALUE_H

#include <hipmm/plugin.h>
#include <jansson.h>

/* The text, to be freed; NULL: out of memory. `row` may be NULL. */
char *value_text(const struct hipmm_option *row, const json_t *value);

/* Appends to a text on the heap. When memory is short *text becomes NULL, and stays so. */
void value_append(char **text, const char *more);

#endif
