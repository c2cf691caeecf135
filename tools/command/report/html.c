/* SPDX-License-Identifier: MIT */
/* html.c: a report of a log as one HTML file: in the page (report.h) stand the findings, the summary as JSON, and the blocks as
 * columns of numbers (columns.h), from which the script in the page draws. */
#include "../cmd.h"
#include "columns.h"

#include <stdlib.h>
#include <string.h>

/* The most blocks in a file. Of more, those that hold the most memory for the longest time are kept. */
enum { HTML_MOST_BLOCKS = 1000000, HTML_MOST_STACK_BYTES = 64 << 20 };

/* ---- Data ------------------------------------------------------------------------------------------------------ */

static double html_weight(const struct blocks *blocks, const struct block *block)
{
  uint64_t end = block->to == BLOCK_IS_LIVE ? blocks->n_events : block->to;
  return (double)block->bytes * (double)(end - block->from);
}

struct html_weighed {
  double weight;
  size_t index;
};

static int html_compare_weights(const void *one, const void *other)
{
  const struct html_weighed *a = one, *b = other;
  if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
  return a->index < b->index ? -1 : 1;
}

static int html_compare_blocks(const void *one, const void *other)
{
  const struct block *const *a = one, *const *b = other;
  return *a < *b ? -1 : *a > *b;
}

/* Chooses the blocks of the page. False: out of memory. */
static bool html_keep(struct html *html)
{
  const struct blocks *blocks = html->blocks;
  html->n_kept = blocks->n < HTML_MOST_BLOCKS ? blocks->n : HTML_MOST_BLOCKS;
  html->kept = calloc(html->n_kept + 1, sizeof(const struct block *));
  struct html_weighed *weighed = html->n_kept < blocks->n ? calloc(blocks->n, sizeof *weighed) : NULL;
  if (!html->kept || (html->n_kept < blocks->n && !weighed)) return false;
  for (size_t i = 0; weighed && i < blocks->n; i++)
    weighed[i] = (struct html_weighed){html_weight(blocks, &blocks->items[i]), i};
  if (weighed) qsort(weighed, blocks->n, sizeof *weighed, html_compare_weights);
  for (size_t i = 0; i < html->n_kept; i++) html->kept[i] = &blocks->items[weighed ? weighed[i].index : i];
  if (weighed) qsort(html->kept, html->n_kept, sizeof(const struct block *), html_compare_blocks);
  free(weighed);
  return true;
}

/* A text in the log cannot end the script that it stands in. */
static void html_put_json_text(FILE *file, const char *text)
{
  for (; *text; text++)
    if (*text == '<')
      fputs("\\u003c", file);
    else
      putc(*text, file);
}

static bool html_json(const struct html *html)
{
  json_t *object = json_copy((json_t *)html->summary), *stacks = json_array(), *names = json_array(),
         *tags = json_array();
  char name[BLOCKS_STACK_NAME_BYTES];
  size_t bytes = 0;
  for (uint32_t i = 0; i < html->blocks->stacks.n; i++) {
    const char *text = bytes < HTML_MOST_STACK_BYTES ? stack_texts_get(&html->blocks->stacks, i) : NULL;
    if (text) bytes += strlen(text);
    json_array_append_new(stacks, output_json_string(text ? text : ""));
    if (bytes < HTML_MOST_STACK_BYTES)
      blocks_stack_name(html->blocks, i, name, sizeof name);
    else
      snprintf(name, sizeof name, "(call stack %u: the page has room for fewer)", i);
    json_array_append_new(names, output_json_string(name));
  }
  for (uint32_t i = 0; i < html->blocks->tag_names.n && i < BLOCKS_OTHERS; i++)
    json_array_append_new(tags, output_json_string(stack_texts_get(&html->blocks->tag_names, i)));
  json_object_set_new(object, "tags", tags);
  json_object_set_new(object, "stacks", stacks);
  json_object_set_new(object, "stack_names", names);
  json_object_set_new(object, "stack_sample", json_integer((json_int_t)html->blocks->stack_sample));
  json_object_set_new(object, "kept_blocks", json_integer((json_int_t)html->n_kept));
  char *text = json_dumps(object, JSON_COMPACT);
  json_decref(object);
  if (!text) return false;
  html_begin(html, "application/json", "summary");
  html_put_json_text(html->file, text);
  fputs("</script>\n", html->file);
  free(text);
  return true;
}

/* ---- The page -------------------------------------------------------------------------------------------------- */

struct html_page {
  const json_t *summaries, *job;
  const struct blocks_list *list;
};

/* What a browser without scripts shows, too: the findings and tables of each memory. The script leaves those of one. */
static void html_put_summary(const struct html_page *page, FILE *file, size_t index)
{
  const json_t *summary = json_array_get(page->summaries, index), *findings = json_object_get(summary, "findings");
  json_t *none = json_pack("[s]", "The log has no events.");
  fprintf(file, "<div class=\"memory wide\" id=\"text-%zu\">\n", index);
  if (page->list->n > 1) {
    fputs("<h2>", file);
    page_put_text(file, json_string_value(json_object_get(summary, "title")));
    fputs("</h2>\n", file);
  }
  page_sentences(file, "What happened", findings ? findings : none);
  page_tables(file, json_object_get(json_object_get(summary, "held"), "tables"));
  fputs("</div>\n", file);
  json_decref(none);
}

static bool html_put_data(FILE *file, const struct html_page *page)
{
  bool good = true;
  for (size_t i = 0; good && i < page->list->n; i++) {
    struct html html = {
        .file = file, .index = i, .summary = json_array_get(page->summaries, i), .blocks = &page->list->items[i]};
    good = html_keep(&html) && html_json(&html) && html_columns(&html);
    free(html.kept);
  }
  return good;
}

static bool html_put(FILE *file, const char *name, const void *closure)
{
  const struct html_page *page = closure;
  if (strcmp(name, "data") == 0) return html_put_data(file, page);
  job_html(file, page->job);
  for (size_t i = 0; i < page->list->n; i++) html_put_summary(page, file, i);
  return true;
}

bool report_html(FILE *file, const char *title, const json_t *summaries, const json_t *job,
                 const struct blocks_list *list)
{
  const struct html_page page = {summaries, job, list};
  return page_write(file, "page.html", title, html_put, &page) && fflush(file) == 0 && !ferror(file);
}
