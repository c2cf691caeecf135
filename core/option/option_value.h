/* SPDX-License-Identifier: MIT */
/* option_value.h: single option values, between the files of option. Nobody else includes it. */
#ifndef HIPMM_CORE_OPTION_OPTION_VALUE_H
#define HIPMM_CORE_OPTION_OPTION_VALUE_H

#include "option.h"

/* A value about to be read: for which row, and where it stands. */
struct option_reading {
  const struct hipmm_option *row;
  const struct option_context *context;
  const char *path; /* JSON pointer of the value */
};

/* A value of a type that has an order. */
struct option_number {
  long double value;
  bool is_percent;
};

/* Reports what is wrong with the value. Always false. */
bool option_refuse(const struct option_reading *reading, const char *format, ...) HIPMM_PRINTF(2, 3);

/* Reads a value of any type but LIST into the option's field. Reports what is wrong with it, then is false. */
bool option_read(const struct option_reading *reading, const json_t *value, void *field);

/* The same, for the types that have an order. */
bool option_read_number(const struct option_reading *reading, const json_t *value, void *field);

/* The value as a number, if the row's type has an order and the value is of that type. A size that is too large is no
 * number: errno is then ERANGE. The word for "unlimited" is not one either. */
bool option_number(const struct hipmm_option *row, const json_t *value, struct option_number *number_out);

/* The JSON value that `text`, a default or a piece of an environment variable, means for this row; a string if it is
 * not of the row's type. A new reference; NULL if the text is not valid UTF-8. */
json_t *option_from_text(const struct hipmm_option *row, const char *text);

/* The same for what a program sets: a string may also be written as JSON writes it, in quotes. */
json_t *option_from_setting(const struct hipmm_option *row, const char *text);

/* A percentage of the free memory, in whole blocks of HIPMM_ALIGNMENT. */
uint64_t option_percent_of(long double percent, uint64_t free_bytes);

/* As option_show, without the quotes. */
const char *option_show_plain(const json_t *value, char *buffer, size_t buffer_bytes);

#endif
