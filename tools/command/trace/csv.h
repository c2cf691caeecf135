/* SPDX-License-Identifier: MIT */
/* csv.h: the fields of a line of comma-separated values, which are not copied. The readers of text call it, and choice.c for
 * numbers. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_CSV_H
#define HIPMM_TOOLS_COMMAND_TRACE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CSV_MOST_COLUMNS = 32 };

struct csv_field {
  const char *start, *end;
};

/* Splits at commas outside of quoted columns, and trims blanks and quotes; returns how many columns there are, of which at most
 * CSV_MOST_COLUMNS are stored. */
int csv_split(const char *line, const char *end, struct csv_field *fields);

/* Without regard to case. The index of the column with that name; -1 without. */
bool csv_field_is(struct csv_field field, const char *word);
int csv_find_column(const struct csv_field *fields, int n, const char *name);

bool csv_read_decimal(const char *at, const char *end, uint64_t *number_out);

/* "0x302000000", "(nil)", "0", and plain decimal as some write streams. */
bool csv_read_address(struct csv_field field, uint64_t *number_out);

/* Seconds with a fraction, from which a double has microseconds; TRACE_NO_TIME for a number that is no such time. */
bool csv_read_seconds(struct csv_field field, int64_t *nanoseconds_out);

/* Writes the field in quotes and `what` is wrong with it. Returns false. */
bool csv_refuse(char *message, size_t message_bytes, struct csv_field field, const char *what);

#endif
