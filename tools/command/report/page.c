/* SPDX-License-Identifier: MIT */
/* page.c: see report.h. */
#include "../embedded.h"
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

struct page {
  FILE *file;
  const char *title;
  bool (*put)(FILE *file, const void *closure);
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
      good = page->put(page->file, page->closure);
    else
      fprintf(page->file, "%.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
  return good;
}

bool page_write(FILE *file, const char *part, const char *title, bool (*put)(FILE *file, const void *closure),
                const void *closure)
{
  const struct page page = {file, title, put, closure};
  return page_write_part(&page, "head.html") && page_write_part(&page, part);
}
