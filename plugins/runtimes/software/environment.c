/* SPDX-License-Identifier: MIT */
/* environment.c: reads options written as text, "devices=2,memory=16GiB", by an option table. For a program that calls the
 * software device without hipmm, or before hipmm configures it. The core of hipmm reads the same text itself, with better
 * messages. Called by options.c. */
#include "../../../core/base/units.h"
#include "internal.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The items of "a;b", and the text that they point into. */
struct environment_list {
  char *text;
  const char *items[];
};

static void environment_free_list(struct hipmm_strings *field)
{
  if (!field->items) return;
  struct environment_list *list =
      (struct environment_list *)((char *)(uintptr_t)field->items - offsetof(struct environment_list, items));
  free(list->text);
  free(list);
  *field = (struct hipmm_strings){.items = NULL};
}

/* Replaces the list of a setting before, or of the default. */
static bool environment_read_list(const char *text, struct hipmm_strings *field)
{
  size_t n = 0, most = strlen(text) / 2 + 1; /* the shortest item is a letter and a semicolon */
  struct environment_list *list = malloc(sizeof *list + most * sizeof *list->items);
  char *rest = strdup(text);
  if (!list || !rest) {
    free(list);
    free(rest);
    return false;
  }
  list->text = rest;
  for (char *item; (item = strsep(&rest, ";"));)
    if (*item) list->items[n++] = item;
  environment_free_list(field);
  *field = (struct hipmm_strings){.items = list->items, .count = n};
  return true;
}

static bool environment_read_integer(const char *text, int64_t *field)
{
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno || end == text || *end) return false;
  *field = value;
  return true;
}

static bool environment_read_choice(const char *text, const char *const *choices, uint32_t *field)
{
  for (uint32_t i = 0; choices[i]; i++) {
    if (strcmp(choices[i], text) != 0) continue;
    *field = i;
    return true;
  }
  return false;
}

static bool environment_read_value(const struct hipmm_option *row, const char *text, void *field)
{
  static const char *const words[] = {"false", "true", NULL};
  switch (row->type) {
  case HIPMM_OPTION_INTEGER: return environment_read_integer(text, field);
  case HIPMM_OPTION_BYTES: return units_parse_bytes(text, field);
  case HIPMM_OPTION_BOOL: return environment_read_choice(text, words, field);
  case HIPMM_OPTION_ENUM: return environment_read_choice(text, row->choices, field);
  case HIPMM_OPTION_STRINGS: return environment_read_list(text, field);
  default: return false;
  }
}

/* Less than 0, 0 or more than 0: the value against a bound of its row. */
static int environment_compare(const struct hipmm_option *row, const void *field, const char *bound_text)
{
  int64_t bound, value;
  uint64_t bound_bytes, bytes;
  if (row->type == HIPMM_OPTION_BYTES) {
    memcpy(&bytes, field, sizeof bytes);
    return units_parse_bytes(bound_text, &bound_bytes) ? (bytes > bound_bytes) - (bytes < bound_bytes) : 0;
  }
  memcpy(&value, field, sizeof value);
  return environment_read_integer(bound_text, &bound) ? (value > bound) - (value < bound) : 0;
}

static bool environment_are_in_range(const struct hipmm_option *row, const void *field)
{
  return (!row->minimum || environment_compare(row, field, row->minimum) >= 0) &&
         (!row->maximum || environment_compare(row, field, row->maximum) <= 0);
}

static bool environment_set(const struct hipmm_option *table, size_t n, const char *name, const char *text,
                            void *options)
{
  for (size_t i = 0; i < n; i++) {
    void *field = (char *)options + table[i].offset;
    if (strcmp(table[i].name, name) != 0) continue;
    return environment_read_value(&table[i], text, field) && environment_are_in_range(&table[i], field);
  }
  return false;
}

void software_environment_default(const struct hipmm_option *table, size_t n, void *options)
{
  for (size_t i = 0; i < n; i++)
    if (table[i].initial) environment_set(table, n, table[i].name, table[i].initial, options);
}

bool software_environment_read(const struct hipmm_option *table, size_t n, const char *text, void *options,
                               char *wrong_out, size_t wrong_bytes)
{
  char *copy = strdup(text), *rest = copy;
  bool is_good = copy != NULL;
  if (!*text) rest = NULL;
  snprintf(wrong_out, wrong_bytes, "%s", text);
  for (char *setting; is_good && (setting = strsep(&rest, ","));) {
    snprintf(wrong_out, wrong_bytes, "%s", setting);
    char *equals = strchr(setting, '=');
    if (equals) *equals = '\0';
    is_good = equals && environment_set(table, n, setting, equals + 1, options);
  }
  free(copy);
  return is_good;
}

void software_environment_free(const struct hipmm_option *table, size_t n, void *options)
{
  for (size_t i = 0; i < n; i++) {
    struct hipmm_strings *field = (struct hipmm_strings *)((char *)options + table[i].offset);
    if (table[i].type == HIPMM_OPTION_STRINGS) environment_free_list(field);
  }
}
