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

static void state_page_sentences(FILE *file, const char *heading, const json_t *sentences)
{
  size_t i;
  json_t *sentence;
  fprintf(file, "<section class=\"wide\">\n<h2>%s</h2>\n<ul class=\"sentences\">\n", heading);
  json_array_foreach(sentences, i, sentence)
  {
    fputs("<li>", file);
    page_put_text(file, json_string_value(sentence));
    fputs("</li>\n", file);
  }
  fputs("</ul>\n</section>\n", file);
}

/* A row, or the names of the columns. */
static void state_page_row(FILE *file, const json_t *columns, const json_t *row, const struct table_width *widths)
{
  char cell[TABLE_CELL_BYTES];
  size_t j;
  json_t *column;
  fputs("<tr>", file);
  json_array_foreach(columns, j, column)
  {
    const char *tag = row ? "td" : "th";
    fprintf(file, "<%s class=\"%s\">", tag, widths[j].is_right ? "number" : "name");
    page_put_text(file, row ? table_cell(column, json_array_get(row, j), cell) : lines_text(column, "name"));
    fprintf(file, "</%s>", tag);
  }
  fputs("</tr>\n", file);
}

void state_page_tables(FILE *file, const json_t *tables)
{
  size_t i, j;
  json_t *table, *row;
  struct table_width widths[TABLE_MOST_COLUMNS];
  json_array_foreach(tables, i, table)
  {
    if (!json_array_size(json_object_get(table, "rows"))) continue;
    fputs("<section class=\"wide\">\n<h2>", file);
    page_put_text(file, json_string_value(json_object_get(table, "heading")));
    fputs("</h2>\n<div class=\"scroll\"><table>\n", file);
    table_measure(table, widths);
    state_page_row(file, json_object_get(table, "columns"), NULL, widths);
    json_array_foreach(json_object_get(table, "rows"), j, row)
        state_page_row(file, json_object_get(table, "columns"), row, widths);
    fputs("</table></div>\n</section>\n", file);
  }
}

static bool state_page(FILE *file, const void *closure)
{
  const json_t *summary = closure;
  state_page_sentences(file, "What is there", json_object_get(summary, "findings"));
  state_page_tables(file, json_object_get(summary, "tables"));
  state_page_sentences(file, "What this does not tell", json_object_get(summary, "missing"));
  return !ferror(file);
}

bool state_html(FILE *file, const json_t *summary)
{
  return page_write(file, "state.html", json_string_value(json_object_get(summary, "title")), state_page, summary) &&
         fflush(file) == 0;
}
