/* SPDX-License-Identifier: MIT */
/* state_print.c: the summary of state.c as text and as a page. A table that is wider than the terminal becomes a
 * list, with a line for each value. */
#include "../lines.h"
#include "../table.h"
#include "report.h"

/* ---- Text ------------------------------------------------------------------------------------------------------ */

static void state_put_list(const json_t *columns, const json_t *rows)
{
  char cell[TABLE_CELL_BYTES];
  size_t i, j;
  json_t *row, *value;
  json_array_foreach(rows, i, row)
  {
    json_array_foreach(row, j, value)
    {
      printf(j ? "    " : "  ");
      if (json_array_size(row) > 1) printf("%s: ", lines_text(json_array_get(columns, j), "name"));
      output_text(stdout, table_cell(json_array_get(columns, j), value, cell));
      putchar('\n');
    }
  }
}

static void state_put_table(const json_t *table)
{
  const json_t *columns = json_object_get(table, "columns"), *rows = json_object_get(table, "rows");
  struct table_width widths[TABLE_MOST_COLUMNS];
  if (!json_array_size(rows)) return;
  putchar('\n');
  lines_heading(lines_text(table, "heading"));
  if (table_measure(table, widths) > terminal_width() || json_array_size(columns) == 1)
    state_put_list(columns, rows);
  else
    table_print(table, widths, "  ");
}

void state_text_tables(const json_t *tables)
{
  size_t i;
  json_t *table;
  json_array_foreach(tables, i, table) state_put_table(table);
}

void state_text(const json_t *summary)
{
  lines_heading(lines_text(summary, "title"));
  lines_items(json_object_get(summary, "findings"));
  state_text_tables(json_object_get(summary, "tables"));
  putchar('\n');
  lines_heading("What this does not tell");
  lines_items(json_object_get(summary, "missing"));
}

/* ---- The page -------------------------------------------------------------------------------------------------- */

static bool state_page(FILE *file, const char *name, const void *closure)
{
  (void)name; /* there is one */
  const json_t *summary = closure;
  page_sentences(file, "What is there", json_object_get(summary, "findings"));
  page_tables(file, json_object_get(summary, "tables"));
  page_sentences(file, "What this does not tell", json_object_get(summary, "missing"));
  return !ferror(file);
}

bool state_html(FILE *file, const json_t *summary)
{
  return page_write(file, "state.html", json_string_value(json_object_get(summary, "title")), state_page, summary) &&
         fflush(file) == 0;
}
