/* SPDX-License-Identifier: MIT */
/* state_print.c: the summary of state.h as text and as a page. A table that is wider than the terminal becomes a
 * list, with a line for each value. */
#include "../../../core/base/units.h"
#include "../cmd.h"
#include "page.h"
#include "report.h"
#include "state.h"

#include <string.h>

enum { STATE_CELL = 512, STATE_MOST_COLUMNS = 16, STATE_GAP = 2 };

/* The text of a value; "-" for one that is not known. */
static const char *state_cell(const json_t *column, const json_t *value, char cell[STATE_CELL])
{
  bool is_bytes = json_is_string(json_object_get(column, "unit"));
  if (json_is_string(value))
    snprintf(cell, STATE_CELL, "%s", json_string_value(value));
  else if (!json_is_integer(value))
    snprintf(cell, STATE_CELL, "-");
  else if (is_bytes && json_integer_value(value) >= 0)
    units_format_bytes((uint64_t)json_integer_value(value), cell, STATE_CELL);
  else
    snprintf(cell, STATE_CELL, "%lld", (long long)json_integer_value(value));
  return cell;
}

static const char *state_column_name(const json_t *column)
{
  return json_string_value(json_object_get(column, "name"));
}

struct state_width {
  size_t columns;
  bool is_right; /* of numbers */
};

/* The widest text of each column, and whether it has numbers. Returns the width of all. */
static size_t state_measure(const json_t *table, struct state_width widths[STATE_MOST_COLUMNS])
{
  size_t whole = 0, i, j;
  json_t *row, *column;
  char cell[STATE_CELL];
  json_array_foreach(json_object_get(table, "columns"), j, column)
  {
    widths[j] = (struct state_width){text_width(state_column_name(column)), false};
    json_array_foreach(json_object_get(table, "rows"), i, row)
    {
      size_t width = text_width(state_cell(column, json_array_get(row, j), cell));
      if (width > widths[j].columns) widths[j].columns = width;
      widths[j].is_right |= json_is_integer(json_array_get(row, j));
    }
    whole += STATE_GAP + widths[j].columns;
  }
  return whole;
}

/* ---- Text ------------------------------------------------------------------------------------------------------ */

/* Writes text in `width` columns, numbers to the right. */
static void state_put_cell(const char *text, size_t width, bool is_right)
{
  size_t used = text_width(text), blanks = width > used ? width - used : 0;
  if (is_right) printf("%*s", (int)blanks, "");
  output_text(stdout, text);
  if (!is_right) printf("%*s", (int)blanks, "");
}

static void state_put_list(const json_t *columns, const json_t *rows)
{
  char cell[STATE_CELL];
  size_t i, j;
  json_t *row, *value;
  json_array_foreach(rows, i, row)
  {
    json_array_foreach(row, j, value)
    {
      printf(j ? "    " : "  ");
      if (json_array_size(row) > 1) printf("%s: ", state_column_name(json_array_get(columns, j)));
      output_text(stdout, state_cell(json_array_get(columns, j), value, cell));
      putchar('\n');
    }
  }
}

/* A row, or the names of the columns. */
static void state_put_row(const json_t *columns, const json_t *row, const struct state_width *widths)
{
  char cell[STATE_CELL];
  size_t j;
  json_t *column;
  json_array_foreach(columns, j, column)
  {
    printf("%*s", STATE_GAP, "");
    state_put_cell(row ? state_cell(column, json_array_get(row, j), cell) : state_column_name(column),
                   widths[j].columns, widths[j].is_right);
  }
  putchar('\n');
}

static void state_put_table(const json_t *table)
{
  const json_t *columns = json_object_get(table, "columns"), *rows = json_object_get(table, "rows");
  struct state_width widths[STATE_MOST_COLUMNS];
  size_t i;
  json_t *row;
  if (!json_array_size(rows)) return;
  printf("\n%s", style(STYLE_NAME));
  output_text(stdout, json_string_value(json_object_get(table, "heading")));
  printf("%s\n", style(STYLE_OFF));
  if (state_measure(table, widths) > terminal_width() || json_array_size(columns) == 1) {
    state_put_list(columns, rows);
    return;
  }
  state_put_row(columns, NULL, widths);
  json_array_foreach(rows, i, row) state_put_row(columns, row, widths);
}

void state_text(const json_t *summary)
{
  size_t i;
  json_t *table;
  printf("%s", style(STYLE_NAME));
  output_text(stdout, json_string_value(json_object_get(summary, "title")));
  printf("%s\n", style(STYLE_OFF));
  report_put_sentences(json_object_get(summary, "findings"));
  json_array_foreach(json_object_get(summary, "tables"), i, table) state_put_table(table);
  printf("\n%sWhat this does not tell%s\n", style(STYLE_NAME), style(STYLE_OFF));
  report_put_sentences(json_object_get(summary, "missing"));
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
static void state_page_row(FILE *file, const json_t *columns, const json_t *row, const struct state_width *widths)
{
  char cell[STATE_CELL];
  size_t j;
  json_t *column;
  fputs("<tr>", file);
  json_array_foreach(columns, j, column)
  {
    const char *tag = row ? "td" : "th";
    fprintf(file, "<%s class=\"%s\">", tag, widths[j].is_right ? "number" : "name");
    page_put_text(file, row ? state_cell(column, json_array_get(row, j), cell) : state_column_name(column));
    fprintf(file, "</%s>", tag);
  }
  fputs("</tr>\n", file);
}

static bool state_page(FILE *file, const void *closure)
{
  const json_t *summary = closure;
  size_t i, j;
  json_t *table, *row;
  struct state_width widths[STATE_MOST_COLUMNS];
  state_page_sentences(file, "What is there", json_object_get(summary, "findings"));
  json_array_foreach(json_object_get(summary, "tables"), i, table)
  {
    if (!json_array_size(json_object_get(table, "rows"))) continue;
    fputs("<section class=\"wide\">\n<h2>", file);
    page_put_text(file, json_string_value(json_object_get(table, "heading")));
    fputs("</h2>\n<div class=\"scroll\"><table>\n", file);
    state_measure(table, widths);
    state_page_row(file, json_object_get(table, "columns"), NULL, widths);
    json_array_foreach(json_object_get(table, "rows"), j, row)
        state_page_row(file, json_object_get(table, "columns"), row, widths);
    fputs("</table></div>\n</section>\n", file);
  }
  state_page_sentences(file, "What this does not tell", json_object_get(summary, "missing"));
  return !ferror(file);
}

bool state_html(FILE *file, const json_t *summary)
{
  return page_write(file, "state.html", json_string_value(json_object_get(summary, "title")), state_page, summary) &&
         fflush(file) == 0;
}
