/* SPDX-License-Identifier: MIT */
/* words.c: the phrases for a plugin's descriptor that several commands print: roles, ranges of values, upstreams. */
#include "../../../core/base/text.h"
#include "../cmd.h"
#include "describe.h"

#include <string.h>

const char *role_name(uint32_t role)
{
  switch (role) {
  case HIPMM_ROLE_SOURCE: return "source";
  case HIPMM_ROLE_SUB_ALLOCATOR: return "sub-allocator";
  case HIPMM_ROLE_ADAPTOR: return "adaptor";
  case HIPMM_ROLE_RUNTIME: return "runtime";
  default: return "unknown role";
  }
}

static void describe_words_join(char *cell, const char *separator, const char *text)
{
  size_t length = strlen(cell);
  snprintf(cell + length, DESCRIBE_CELL_BYTES - length, "%s%s", length ? separator : "", text);
}

void describe_allowed(const struct hipmm_option *row, char *cell)
{
  *cell = '\0';
  char text[DESCRIBE_CELL_BYTES];
  if (row->minimum && row->maximum) {
    snprintf(text, sizeof text, "%s to %s", row->minimum, row->maximum);
    describe_words_join(cell, ", ", text);
  } else if (row->minimum || row->maximum) {
    snprintf(text, sizeof text, "%s %s", row->minimum ? "from" : "up to", row->minimum ? row->minimum : row->maximum);
    describe_words_join(cell, ", ", text);
  }
  if (row->at_least) {
    snprintf(text, sizeof text, "at least %s", row->at_least);
    describe_words_join(cell, ", ", text);
  }
  for (const char *const *choice = row->choices; choice && *choice; choice++)
    describe_words_join(cell, row->type == HIPMM_OPTION_ENUM && choice != row->choices ? " | " : ", or ", *choice);
  if (row->flags & HIPMM_OPTION_RELOADABLE) describe_words_join(cell, ", ", "settable in use");
}

const char *describe_default(const struct hipmm_option *row, char *cell)
{
  if (!row->initial || text_is_plain(row->initial)) return row->initial;
  return text_quote(row->initial, cell, DESCRIBE_CELL_BYTES);
}

void describe_print_upstreams(const struct hipmm_plugin *descriptor)
{
  uint32_t least = descriptor->min_upstreams, most = descriptor->max_upstreams;
  if (most == 0)
    printf("no upstream");
  else if (least == most)
    printf("%u upstream%s", most, text_plural(most));
  else if (most == UINT32_MAX)
    printf("%u or more upstreams", least);
  else
    printf("%u to %u upstreams", least, most);
}
