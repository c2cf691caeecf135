/* SPDX-License-Identifier: MIT */
/* page.c: a plugin's descriptor as a page of text. All of it comes from the descriptor's tables. */
#include "describe.h"

#include "../../../core/option/option.h"
#include "../cmd.h"
#include <stdlib.h>
#include <string.h>

enum { PAGE_COLUMNS = 5, PAGE_MOST_ROWS = 256, PAGE_GAP = 2 };

/* A line of the option table. */
struct page_row {
  char cells[PAGE_COLUMNS][DESCRIBE_CELL_BYTES];
  const char *doc;
};

struct page_table {
  struct page_row *rows;
  size_t n;
  size_t widths[PAGE_COLUMNS];
};

static const char *const page_headings[PAGE_COLUMNS] = {"name", "type", "default", "unit", "allowed"};

static void describe_page_fill_row(const struct hipmm_option *row, const char *parent, struct page_row *line)
{
  snprintf(line->cells[0], DESCRIBE_CELL_BYTES, "%s%s%s", parent ? parent : "", parent ? "[]." : "", row->name);
  snprintf(line->cells[1], DESCRIBE_CELL_BYTES, "%s%s", option_type_name(row->type),
           row->flags & HIPMM_OPTION_PERCENT ? " or %" : "");
  const char *without = row->flags & HIPMM_OPTION_REQUIRED ? "required" : "none";
  char quoted[DESCRIBE_CELL_BYTES];
  const char *initial = describe_default(row, quoted);
  snprintf(line->cells[2], DESCRIBE_CELL_BYTES, "%s", initial ? initial : without);
  snprintf(line->cells[3], DESCRIBE_CELL_BYTES, "%s", row->unit ? row->unit : "");
  describe_allowed(row, line->cells[4]);
  line->doc = row->doc;
}

static void describe_page_add(struct page_table *table, const struct hipmm_option *options, uint32_t n,
                              const char *parent)
{
  for (uint32_t i = 0; i < n && table->n < PAGE_MOST_ROWS; i++) {
    describe_page_fill_row(&options[i], parent, &table->rows[table->n++]);
    if (options[i].n_fields > 0 && !parent)
      describe_page_add(table, options[i].fields, options[i].n_fields, options[i].name);
  }
}

static void describe_page_measure(struct page_table *table)
{
  for (size_t column = 0; column < PAGE_COLUMNS; column++) {
    for (size_t i = 0; i < table->n; i++) {
      size_t width = text_width(table->rows[i].cells[column]);
      if (width > table->widths[column]) table->widths[column] = width;
    }
    size_t heading = text_width(page_headings[column]);
    if (table->widths[column] > 0 && table->widths[column] < heading) table->widths[column] = heading;
  }
}

/* A column that is empty in all rows is left out. Blanks go before a cell, so that no line ends in them. */
static void describe_page_print_cells(const struct page_table *table, const char *const *cells, enum style first,
                                      enum style others)
{
  struct wrap wrap = {.prefix = "          ", .column = 2};
  size_t column_start = 2;
  printf("  ");
  for (size_t column = 0; column < PAGE_COLUMNS; column++) {
    if (table->widths[column] == 0) continue;
    bool last = column + 1 == PAGE_COLUMNS;
    if (*cells[column]) {
      printf("%*s", (int)(column_start - wrap.column) - last, ""); /* wrap_words puts a blank before its words */
      wrap.column = column_start - last;
      if (last) {
        wrap_words(&wrap, others, cells[column]);
      } else {
        print_padded(column == 0 ? first : others, cells[column], 0);
        wrap.column += text_width(cells[column]);
      }
    }
    column_start += table->widths[column] + PAGE_GAP;
  }
  wrap_end(&wrap);
}

static void describe_page_print_doc(const char *doc)
{
  struct wrap wrap = {.prefix = "      ", .column = 6};
  printf("%s", wrap.prefix);
  wrap_words(&wrap, STYLE_FAINT, doc ? doc : "");
  wrap_end(&wrap);
}

static void describe_page_print_options(const struct hipmm_plugin *descriptor)
{
  struct page_table table = {.rows = calloc(PAGE_MOST_ROWS, sizeof *table.rows)};
  if (!table.rows) return say("out of memory");
  describe_page_add(&table, descriptor->options, descriptor->n_options, NULL);
  describe_page_measure(&table);
  printf("\n%sOptions%s\n", style(STYLE_NAME), style(STYLE_OFF));
  describe_page_print_cells(&table, page_headings, STYLE_FAINT, STYLE_FAINT);
  for (size_t i = 0; i < table.n; i++) {
    const char *cells[PAGE_COLUMNS];
    for (size_t column = 0; column < PAGE_COLUMNS; column++) cells[column] = table.rows[i].cells[column];
    describe_page_print_cells(&table, cells, STYLE_NAME, STYLE_OFF);
    describe_page_print_doc(table.rows[i].doc);
  }
  free(table.rows);
}

static void describe_page_print_features(const char *heading, const struct hipmm_feature *features, uint32_t n)
{
  size_t name_width = 0, unit_width = 0;
  for (uint32_t i = 0; i < n; i++) {
    size_t name = text_width(features[i].name), unit = features[i].unit ? text_width(features[i].unit) : 0;
    if (name > name_width) name_width = name;
    if (unit > unit_width) unit_width = unit;
  }
  if (n > 0) printf("\n%s%s%s\n", style(STYLE_NAME), heading, style(STYLE_OFF));
  for (uint32_t i = 0; i < n; i++) {
    struct wrap wrap = {.prefix = "      ", .column = 2 + name_width};
    printf("  ");
    print_padded(STYLE_NAME, features[i].name, name_width);
    if (unit_width > 0) {
      printf("%*s", PAGE_GAP, "");
      print_padded(STYLE_OFF, features[i].unit ? features[i].unit : "", unit_width);
      wrap.column += PAGE_GAP + unit_width;
    }
    printf(" "); /* and wrap_words puts the second */
    wrap.column++;
    wrap_words(&wrap, STYLE_FAINT, features[i].doc ? features[i].doc : "");
    wrap_end(&wrap);
  }
}

void describe_print_plugin(const struct plugin *plugin)
{
  const struct hipmm_plugin *descriptor = &plugin->descriptor;
  struct wrap wrap = {.prefix = ""};
  print_padded(STYLE_NAME, descriptor->type, 0);
  printf(" %s, %s%s%s, ", descriptor->version, style(STYLE_TYPE), role_name(descriptor->role), style(STYLE_OFF));
  if (descriptor->role != HIPMM_ROLE_RUNTIME) {
    describe_print_upstreams(descriptor);
    printf(", ");
  }
  print_padded(STYLE_FAINT, plugin->file, 0);
  putchar('\n');
  wrap_words(&wrap, STYLE_OFF, descriptor->doc);
  wrap_end(&wrap);
  if (descriptor->n_options > 0)
    describe_page_print_options(descriptor);
  else
    printf("\nTakes no options.\n");
  describe_page_print_features("Values (hipmm_resource_query)", descriptor->values, descriptor->n_values);
  describe_page_print_features("Actions (hipmm_resource_perform)", descriptor->actions, descriptor->n_actions);
}
