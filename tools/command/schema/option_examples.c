/* SPDX-License-Identifier: MIT */
/* option_examples.c: values of an option that are valid in any graph, for editors, which offer them. They are made
 * of the option's row: its default, its words and bounds, and what its description has in quotes. */
#include "../../../core/option/option_value.h"
#include "schema.h"

#include <string.h>

static void option_examples_add(json_t *examples, json_t *value)
{
  size_t i;
  json_t *other;
  bool is_there = !value;
  json_array_foreach(examples, i, other) is_there |= json_equal(other, value);
  if (is_there)
    json_decref(value);
  else
    json_array_append_new(examples, value);
}

/* Whether a number of the type is within the bounds that are numbers too. */
static bool option_examples_fits(const struct hipmm_option *row, json_t *value)
{
  struct option_number number, bound;
  json_t *least = row->minimum ? option_from_text(row, row->minimum) : NULL;
  json_t *most = row->maximum ? option_from_text(row, row->maximum) : NULL;
  bool fits = option_number(row, value, &number);
  if (fits && least && option_number(row, least, &bound)) fits = number.value >= bound.value;
  if (fits && most && option_number(row, most, &bound)) fits = number.value <= bound.value;
  json_decref(least);
  json_decref(most);
  return fits;
}

/* The default, and what of the texts is within the bounds. */
static void option_examples_add_numbers(json_t *examples, const struct hipmm_option *row, const char *const *texts)
{
  for (; *texts; texts++) {
    json_t *value = option_from_text(row, *texts);
    if (value && option_examples_fits(row, value))
      option_examples_add(examples, value);
    else
      json_decref(value);
  }
}

static void option_examples_add_sizes(json_t *examples, const struct hipmm_option *row)
{
  static const char *const sizes[] = {"1MiB", "64MiB", "8GiB", NULL};
  option_examples_add_numbers(examples, row, sizes);
  if (row->flags & HIPMM_OPTION_PERCENT) option_examples_add(examples, json_string("50%"));
  if (row->flags & HIPMM_OPTION_PERCENT) option_examples_add(examples, json_string(OPTION_SHARE));
  if (row->choices) option_examples_add(examples, json_string(row->choices[0]));
}

/* The text in the first double quotes of the description. */
static json_t *option_examples_quoted(const struct hipmm_option *row)
{
  const char *start = row->doc ? strchr(row->doc, '"') : NULL, *end = start ? strchr(start + 1, '"') : NULL;
  return end ? json_stringn(start + 1, (size_t)(end - start) - 1) : NULL;
}

/* A list of one row, with the required fields, or the first. */
static json_t *option_examples_list(const struct hipmm_option *row)
{
  json_t *object = json_object();
  for (uint32_t i = 0; i < row->n_fields; i++) {
    if (i && !(row->fields[i].flags & HIPMM_OPTION_REQUIRED)) continue;
    json_t *values = option_examples(&row->fields[i]);
    json_object_set(object, row->fields[i].name, json_array_get(values, 0));
    json_decref(values);
  }
  return json_pack("[o]", object);
}

json_t *option_examples(const struct hipmm_option *row)
{
  static const char *const counts[] = {"1", "0", NULL}, *const shares[] = {"0.5", "2", NULL},
                           *const durations[] = {"10ms", "1s", NULL};
  json_t *examples = json_array();
  if (row->initial) option_examples_add(examples, option_from_text(row, row->initial));
  switch (row->type) {
  case HIPMM_OPTION_BOOL:
    option_examples_add(examples, json_true());
    option_examples_add(examples, json_false());
    break;
  case HIPMM_OPTION_INTEGER:
    if (!row->initial) option_examples_add_numbers(examples, row, counts);
    break;
  case HIPMM_OPTION_RATIO: option_examples_add_numbers(examples, row, shares); break;
  case HIPMM_OPTION_BYTES: option_examples_add_sizes(examples, row); break;
  case HIPMM_OPTION_DURATION: option_examples_add_numbers(examples, row, durations); break;
  case HIPMM_OPTION_ENUM:
    for (const char *const *word = row->choices; word && *word; word++)
      option_examples_add(examples, json_string(*word));
    break;
  case HIPMM_OPTION_STRINGS: option_examples_add(examples, json_pack("[o]", option_examples_quoted(row))); break;
  case HIPMM_OPTION_LIST: option_examples_add(examples, option_examples_list(row)); break;
  case HIPMM_OPTION_OBJECT: option_examples_add(examples, json_string("mine")); break;
  default: option_examples_add(examples, option_examples_quoted(row)); break;
  }
  return examples;
}
