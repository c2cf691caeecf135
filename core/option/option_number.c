/* SPDX-License-Identifier: MIT */
/* option_number.c: reads option values of ordered types (integers, ratios, sizes, durations) and checks their bounds.
 * Called by option_value.c and, to compare options with each other, by option.c. Never writes a field unless the value
 * is valid. */
#include "../base/rank.h"
#include "../base/text.h"
#include "../base/units.h"
#include "option_value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest signed value, so that no plugin overflows when it rounds a size up. */
#define LARGEST_SIZE ((long double)INT64_MAX)

/* Whole numbers may be written as 3.0 or 1e6: JSON does not tell them from 3 and 1000000. */
static bool option_number_whole(const json_t *value, long double *whole_out)
{
  static const double exact = 9007199254740992.0; /* 2^53: above, a double no longer holds what was written */
  if (json_is_integer(value)) {
    *whole_out = (long double)json_integer_value(value);
    return true;
  }
  double real = json_is_real(value) ? json_real_value(value) : NAN;
  if (!(fabs(real) <= exact) || real != floor(real)) return false;
  *whole_out = (long double)real;
  return true;
}

/* A size, percentage or duration as text. False, with errno, for another type or text, and if it is too large. */
static bool option_number_unit(const struct hipmm_option *row, const char *text, struct option_number *number)
{
  uint64_t bytes;
  double percent;
  int64_t ns;
  bool is_of_total;
  errno = EINVAL;
  if (row->type == HIPMM_OPTION_BYTES && units_parse_percent(text, &percent, &is_of_total))
    *number = (struct option_number){.value = (long double)percent, .is_percent = true, .is_of_total = is_of_total};
  else if (row->type == HIPMM_OPTION_BYTES && row->flags & HIPMM_OPTION_PERCENT && !strcmp(text, OPTION_SHARE))
    *number = (struct option_number){.value = 100, .is_percent = true, .is_of_total = true, .is_share = true};
  else if (row->type == HIPMM_OPTION_BYTES && units_parse_bytes(text, &bytes))
    number->value = (long double)bytes;
  else if (row->type == HIPMM_OPTION_DURATION && units_parse_duration(text, &ns))
    number->value = (long double)ns;
  else
    return false;
  errno = ERANGE;
  return number->is_percent || number->value <= LARGEST_SIZE;
}

bool option_number(const struct hipmm_option *row, const json_t *value, struct option_number *number_out)
{
  struct option_number number = {0};
  bool is_number = false;
  const char *text = json_string_value(value);
  errno = EINVAL;
  switch (row->type) {
  case HIPMM_OPTION_INTEGER: is_number = option_number_whole(value, &number.value); break;
  case HIPMM_OPTION_RATIO:
    is_number = json_is_number(value);
    number.value = (long double)json_number_value(value);
    break;
  case HIPMM_OPTION_BYTES:
    if (!text) is_number = option_number_whole(value, &number.value) && number.value >= 0;
    __attribute__((fallthrough));
  case HIPMM_OPTION_DURATION:
    if (text) is_number = option_number_unit(row, text, &number);
    break;
  default: break;
  }
  if (is_number) *number_out = number;
  return is_number;
}

/* Of a default or a bound of the row; allocates nothing. */
static bool option_number_from_text(const struct hipmm_option *row, const char *text, struct option_number *number_out)
{
  struct option_number number = {0};
  char *end = NULL;
  bool is_number = option_number_unit(row, text, &number);
  if (!is_number && row->type != HIPMM_OPTION_DURATION) {
    number.value = strtold(text, &end);
    is_number = end != text && !*end;
  }
  if (is_number) *number_out = number;
  return is_number;
}

bool option_current_number(const struct hipmm_option *row, const json_t *object, struct option_number *number_out)
{
  const json_t *given = json_object_get(object, row->name);
  return given ? option_number(row, given, number_out)
               : row->initial && option_number_from_text(row, row->initial, number_out);
}

/* Rounded down to a multiple of HIPMM_ALIGNMENT. */
uint64_t option_number_of_percent(struct option_number number, uint64_t free_bytes, uint64_t total_bytes, int n_devices)
{
  int n_ranks = number.is_share ? rank_per_device(n_devices) : 1;
  long double share = (long double)(number.is_of_total ? total_bytes : free_bytes) * number.value / 100;
  if (n_ranks > 1) share /= n_ranks;
  uint64_t bytes = share < LARGEST_SIZE ? (uint64_t)share : INT64_MAX; /* a bound may be above 100% */
  return bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
}

static long double option_number_in_bytes(struct option_number number, const struct option_context *context)
{
  if (!number.is_percent) return number.value;
  return (long double)option_number_of_percent(number, context->free_bytes, context->total_bytes, context->n_devices);
}

int option_compare_numbers(struct option_number a, struct option_number b, const struct option_context *context)
{
  if (a.is_percent != b.is_percent || a.is_of_total != b.is_of_total || a.is_share != b.is_share) {
    if (!context->free_bytes) return 0;
    a.value = option_number_in_bytes(a, context);
    b.value = option_number_in_bytes(b, context);
  }
  return (a.value > b.value) - (a.value < b.value);
}

/* Below 0, 0 or above 0 as the number lies below, on or above the bound. */
static int option_number_compare_to_bound(const struct option_reading *reading, struct option_number number,
                                          const char *bound_text)
{
  struct option_number bound;
  if (!option_number_from_text(reading->row, bound_text, &bound)) return 0;
  return option_compare_numbers(number, bound, reading->context);
}

static bool option_number_check_range(const struct option_reading *reading, const json_t *value,
                                      struct option_number number)
{
  char shown[TEXT_QUOTE_BYTES];
  const char *minimum = reading->row->minimum, *maximum = reading->row->maximum;
  if (minimum && option_number_compare_to_bound(reading, number, minimum) < 0)
    return option_refuse(reading, "%s is too little; the least is %s", option_show_plain(value, shown, sizeof shown),
                         minimum);
  if (maximum && option_number_compare_to_bound(reading, number, maximum) > 0)
    return option_refuse(reading, "%s is too much; the most is %s", option_show_plain(value, shown, sizeof shown),
                         maximum);
  return true;
}

/* The forms of a size, as the end of a message. */
static const char *option_number_size_forms(const struct hipmm_option *row, char *buffer, size_t buffer_bytes)
{
  const char *percent = row->flags & HIPMM_OPTION_PERCENT ? "\"50%\", \"50% of total\"" : NULL;
  const char *word = row->choices ? row->choices[0] : NULL;
  if (percent && word)
    snprintf(buffer, buffer_bytes, "write bytes, \"512MiB\", \"2GB\", %s, \"" OPTION_SHARE "\" or \"%s\"", percent,
             word);
  else if (percent)
    snprintf(buffer, buffer_bytes, "write bytes, \"512MiB\", \"2GB\", %s or \"" OPTION_SHARE "\"", percent);
  else if (word)
    snprintf(buffer, buffer_bytes, "write bytes, \"512MiB\", \"2GB\" or \"%s\"", word);
  else
    snprintf(buffer, buffer_bytes, "write bytes, \"512MiB\" or \"2GB\"");
  return buffer;
}

static bool option_number_refuse_size(const struct option_reading *reading, const json_t *value, bool is_percent,
                                      bool is_large)
{
  char shown[TEXT_QUOTE_BYTES], forms[160];
  option_show(value, shown, sizeof shown);
  option_number_size_forms(reading->row, forms, sizeof forms);
  const char *text = json_string_value(value), *choice = reading->row->choices ? reading->row->choices[0] : NULL;
  const char *words[] = {choice ? choice : OPTION_SHARE, OPTION_SHARE};
  size_t n_words = (size_t)(choice != NULL) + ((reading->row->flags & HIPMM_OPTION_PERCENT) != 0);
  const char *near = text ? text_nearest(text, words, n_words) : NULL;
  if (is_percent)
    return option_refuse(reading, "%s is a percentage, which \"%s\" cannot be; %s", shown, reading->row->name, forms);
  if (is_large) return option_refuse(reading, "%s is too large for a size; the most is 8 EiB", shown);
  if (near) return option_refuse(reading, "%s is not a size; did you mean \"%s\"?", shown, near);
  return option_refuse(reading, "%s is not a size; %s", shown, forms);
}

static bool option_number_read_bytes(const struct option_reading *reading, const json_t *value, uint64_t *field)
{
  const struct hipmm_option *row = reading->row;
  struct option_number number;
  char shown[TEXT_QUOTE_BYTES];
  if (row->choices && json_is_string(value) && !strcmp(json_string_value(value), row->choices[0])) {
    *field = HIPMM_UNLIMITED;
    return true;
  }
  if (!option_number(row, value, &number)) return option_number_refuse_size(reading, value, false, errno == ERANGE);
  if (number.is_percent && !(row->flags & HIPMM_OPTION_PERCENT))
    return option_number_refuse_size(reading, value, true, false);
  if (number.is_percent && number.value > 100)
    return option_refuse(reading, "%s is more than 100%%", option_show_plain(value, shown, sizeof shown));
  if (number.is_share && !rank_per_device(1))
    return option_refuse(reading,
                         "%s is not known: the launcher does not tell how many ranks this host has; set "
                         "HIPMM_RANKS_PER_DEVICE",
                         option_show(value, shown, sizeof shown));
  if (!option_number_check_range(reading, value, number)) return false;
  *field = (uint64_t)option_number_in_bytes(number, reading->context);
  return true;
}

static const char *option_number_what_is_wrong(uint32_t type)
{
  if (type == HIPMM_OPTION_INTEGER) return "is not a whole number";
  if (type == HIPMM_OPTION_RATIO) return "is not a number";
  if (errno == ERANGE) return "is too long a time";
  return "is not a duration; write \"10ms\" or \"1.5s\" (units: ns, us, ms, s, min, h)";
}

bool option_read_number(const struct option_reading *reading, const json_t *value, void *field)
{
  const struct hipmm_option *row = reading->row;
  struct option_number number;
  if (row->type == HIPMM_OPTION_BYTES) return option_number_read_bytes(reading, value, field);
  if (!option_number(row, value, &number))
    return option_refuse_value(reading, value, option_number_what_is_wrong(row->type));
  if (!option_number_check_range(reading, value, number)) return false;
  if (row->type == HIPMM_OPTION_RATIO)
    *(double *)field = json_number_value(value);
  else
    *(int64_t *)field = json_is_integer(value) ? json_integer_value(value) : (int64_t)number.value;
  return true;
}
