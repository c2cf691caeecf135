/* SPDX-License-Identifier: MIT */
/* option_value.h: single option values. Included by the files of option, by graph for the one option that is no
 * plugin's, and by the command for the schema. */
#ifndef HIPMM_CORE_OPTION_OPTION_VALUE_H
#define HIPMM_CORE_OPTION_OPTION_VALUE_H

#include "option.h"

/* A value to read: its row, and its place in the file. */
struct option_reading {
  const struct hipmm_option *row;
  const struct option_context *context;
  const char *path; /* JSON pointer of the value */
};

/* A value of an ordered type: an integer, a ratio, a size or a duration. */
struct option_number {
  long double value;
  bool is_percent;  /* of the free memory, or */
  bool is_of_total; /* of all memory, or */
  bool is_share;    /* of one rank's part of all memory */
};

/* The size that is a rank's part of the device's memory, for options with percentages. */
#define OPTION_SHARE "share"

/* The bytes of a percentage, for a device of this memory. */
uint64_t option_number_of_percent(struct option_number number, uint64_t free_bytes, uint64_t total_bytes,
                                  int n_devices);

/* Reports an error of the value. Always false. */
bool option_refuse(const struct option_reading *reading, const char *format, ...) HIPMM_PRINTF(2, 3);

/* The same, of what the value "is …". */
bool option_refuse_value(const struct option_reading *reading, const json_t *value, const char *what);

/* The same for want of host memory. */
bool option_refuse_memory(const struct option_reading *reading);

/* How a user would write the option, for a message: "\"limit\": \"512MiB\""; and the required fields of an item of a LIST,
 * or its first. Return `buffer`. */
const char *option_example(const struct hipmm_option *row, char *buffer, size_t buffer_bytes);
const char *option_example_item(const struct hipmm_option *row, char *buffer, size_t buffer_bytes);

/* Reads a value of any type but LIST into the option's field, if it is valid; otherwise reports the error and returns
 * false. */
bool option_read(const struct option_reading *reading, const json_t *value, void *field);

/* The same for the ordered types. */
bool option_read_number(const struct option_reading *reading, const json_t *value, void *field);

/* Converts a value of an ordered type. False if the row's type has no order, or the value is of another type; for a
 * size or duration that is too large, with errno ERANGE; and for the word that means "unlimited". */
bool option_number(const struct hipmm_option *row, const json_t *value, struct option_number *number_out);

/* The same for the current value: the one in `object`, else the default. */
bool option_current_number(const struct hipmm_option *row, const json_t *object, struct option_number *number_out);

/* The JSON value that `text`, a default or a part of an environment variable, means for this row; a string if it is not
 * of the row's type. The caller owns the reference; NULL if the text is not valid UTF-8, and without host memory. */
json_t *option_from_text(const struct hipmm_option *row, const char *text);

/* Below 0, 0 or above 0 as `a` lies below, on or above `b`; 0 for a percentage and a size, and for percentages of different
 * things, if the free memory is not known. */
int option_compare_numbers(struct option_number a, struct option_number b, const struct option_context *context);

/* As option_show, without the quotes. */
const char *option_show_plain(const json_t *value, char *buffer, size_t buffer_bytes);

#endif
