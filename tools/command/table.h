/* SPDX-License-Identifier: MIT */
/* table.h: a table of a result: a JSON object that is made of other objects, by the paths of its columns, and printed for people.
 *
 *   {"heading": …, "columns": [{"name": …, "unit": "bytes" or null}…], "rows": [[value…]…]} */
#ifndef HIPMM_TOOLS_COMMAND_TABLE_H
#define HIPMM_TOOLS_COMMAND_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A column with its values' path in an object (lines_at()); the path "" is the row's name. A name that ends in "*" is of bytes, and has no
 * "*" in the table. A list of columns ends with NULL. */
struct table_column {
  const char *name, *path;
};

enum { TABLE_MOST_COLUMNS = 16, TABLE_CELL_BYTES = 512 };

/* A table without rows. */
json_t *table_make(const char *heading, const struct table_column *columns);

/* Adds the row of an object. What is neither an integer nor a string is null. */
void table_add(json_t *table, const struct table_column *columns, const char *name, const json_t *object);

/* The text of a value; "-" for one that is not known. Returns `cell`. */
const char *table_cell(const json_t *column, const json_t *value, char cell[TABLE_CELL_BYTES]);

struct table_width {
  size_t columns;
  bool is_right;
};

/* The widest text of each column, and whether it has numbers or is of bytes. Returns the width of all. */
size_t table_measure(const json_t *table, struct table_width widths[TABLE_MOST_COLUMNS]);

/* Prints the columns' names and the rows, each line after `indent`. */
void table_print(const json_t *table, const struct table_width *widths, const char *indent);

#endif
