/* SPDX-License-Identifier: MIT */
/* page.c: see report.h. */
#include "../embedded.h"
#include "../lines.h"
#include "../table.h"
#include "report.h"

#include <string.h>

static const char *page_part(const char *name)
{
  const struct embedded_file *part = report_parts;
  while (part->name && strcmp(part->name, name) != 0) part++;
  return part->text ? part->text : "";
}

void page_put_text(FILE *file, const char *text)
{
  for (; *text; text++) switch (*text) {
    case '<': fputs("&lt;", file); break;
    case '>': fputs("&gt;", file); break;
    case '"': fputs("&quot;", file); break;
    case '&': fputs("&amp;", file); break;
    default: putc(*text, file);
    }
}

static bool page_line_is(const char *line, size_t length, const char *wanted)
{
  return strlen(wanted) == length && strncmp(line, wanted, length) == 0;
}

/* ---- Parts of a page ------------------------------------------------------------------------------------------------ */

void page_sentences(FILE *file, const char *heading, const json_t *sentences)
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
static void page_row(FILE *file, const json_t *columns, const json_t *row, const struct table_width *widths)
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

void page_tables(FILE *file, const json_t *tables)
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
    page_row(file, json_object_get(table, "columns"), NULL, widths);
    json_array_foreach(json_object_get(table, "rows"), j, row)
        page_row(file, json_object_get(table, "columns"), row, widths);
    fputs("</table></div>\n</section>\n", file);
  }
}

/* ---- The page ------------------------------------------------------------------------------------------------------- */

struct page {
  FILE *file;
  const char *title;
  bool (*put)(FILE *file, const char *name, const void *closure);
  const void *closure;
};

/* A part has a line "@NAME@" in the place of another one. */
static bool page_write_part(const struct page *page, const char *part)
{
  const char *line = page_part(part);
  bool good = true;
  while (good && *line) {
    size_t length = strcspn(line, "\n");
    if (page_line_is(line, length, "@title@"))
      page_put_text(page->file, page->title);
    else if (page_line_is(line, length, "@style@"))
      fputs(page_part("page.css"), page->file);
    else if (page_line_is(line, length, "@script@"))
      fputs(page_part("page.js"), page->file);
    else if (page_line_is(line, length, "@data@"))
      good = page->put(page->file, "data", page->closure);
    else if (page_line_is(line, length, "@text@"))
      good = page->put(page->file, "text", page->closure);
    else
      fprintf(page->file, "%.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
  return good;
}

bool page_write(FILE *file, const char *part, const char *title,
                bool (*put)(FILE *file, const char *name, const void *closure), const void *closure)
{
  const struct page page = {file, title, put, closure};
  return page_write_part(&page, "head.html") && page_write_part(&page, part);
}
