/* SPDX-License-Identifier: MIT */
/* table.c: see table.h. */
#include "table.h"
#include "../../core/base/units.h"
#include "lines.h"

#include <string.h>

enum { TABLE_GAP = 2 };

/* ---- Making ---------------------------------------------------------------------------------------------------- */

json_t *table_make(const char *heading, const struct table_column *columns)
{
  json_t *list = json_array();
  for (; columns->name; columns++) {
    size_t length = strlen(columns->name);
    bool is_bytes = columns->name[length - 1] == '*';
    json_array_append_new(list, json_pack("{s:s%, s:o}", "name", columns->name, length - is_bytes, "unit",
                                          is_bytes ? json_string("bytes") : json_null()));
  }
  return json_pack("{s:o, s:o, s:[]}", "heading", output_json_string(heading), "columns", list, "rows");
}

void table_add(json_t *table, const struct table_column *columns, const char *name, const json_t *object)
{
  json_t *row = json_array();
  for (; columns->name; columns++) {
    json_t *value = *columns->path ? lines_at(object, columns->path) : NULL;
    bool is_shown = json_is_integer(value) || json_is_string(value);
    json_array_append_new(row, is_shown ? json_incref(value) : output_json_string(*columns->path ? NULL : name));
  }
  json_array_append_new(json_object_get(table, "rows"), row);
}

/* ---- Printing -------------------------------------------------------------------------------------------------- */

static bool table_is_bytes(const json_t *column)
{
  return json_is_string(json_object_get(column, "unit"));
}

const char *table_cell(const json_t *column, const json_t *value, char cell[TABLE_CELL_BYTES])
{
  if (json_is_string(value) && *json_string_value(value))
    snprintf(cell, TABLE_CELL_BYTES, "%s", json_string_value(value));
  else if (!json_is_integer(value))
    snprintf(cell, TABLE_CELL_BYTES, "-");
  else if (table_is_bytes(column) && json_integer_value(value) >= 0)
    units_format_bytes((uint64_t)json_integer_value(value), cell, TABLE_CELL_BYTES);
  else
    snprintf(cell, TABLE_CELL_BYTES, "%lld", (long long)json_integer_value(value));
  return cell;
}

size_t table_measure(const json_t *table, struct table_width widths[TABLE_MOST_COLUMNS])
{
  size_t whole = 0, i, j;
  json_t *row, *column;
  char cell[TABLE_CELL_BYTES];
  json_array_foreach(json_object_get(table, "columns"), j, column)
  {
    widths[j] = (struct table_width){text_width(lines_text(column, "name")), table_is_bytes(column)};
    json_array_foreach(json_object_get(table, "rows"), i, row)
    {
      size_t width = text_width(table_cell(column, json_array_get(row, j), cell));
      if (width > widths[j].columns) widths[j].columns = width;
      widths[j].is_right |= json_is_integer(json_array_get(row, j));
    }
    whole += TABLE_GAP + widths[j].columns;
  }
  return whole;
}

/* A row; NULL: the columns' names. Nothing follows the last text. */
static void table_print_row(const json_t *columns, const json_t *row, const struct table_width *widths)
{
  char cell[TABLE_CELL_BYTES];
  size_t j, blanks = 0;
  json_t *column;
  json_array_foreach(columns, j, column)
  {
    const char *text = row ? table_cell(column, json_array_get(row, j), cell) : lines_text(column, "name");
    size_t used = text_width(text), left = widths[j].columns > used ? widths[j].columns - used : 0;
    printf("%*s", (int)(blanks + (j ? TABLE_GAP : 0) + (widths[j].is_right ? left : 0)), "");
    output_text(stdout, text);
    blanks = widths[j].is_right ? 0 : left;
  }
  putchar('\n');
}

void table_print(const json_t *table, const struct table_width *widths, const char *indent)
{
  const json_t *columns = json_object_get(table, "columns");
  size_t i;
  json_t *row;
  printf("%s", indent);
  table_print_row(columns, NULL, widths);
  json_array_foreach(json_object_get(table, "rows"), i, row)
  {
    printf("%s", indent);
    table_print_row(columns, row, widths);
  }
}
