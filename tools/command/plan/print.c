/* SPDX-License-Identifier: MIT */
/* print.c: the answer of `hipmm plan` as JSON, and as text that is made of it. Called by plan.c. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../lines.h"
#include "plan.h"

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static json_t *plan_list_json(const struct blocks *blocks, const struct savings_list *list, enum moment_key by)
{
  json_t *array = json_array();
  char name[BLOCKS_STACK_NAME_BYTES];
  for (size_t i = 0; i < list->n; i++) {
    const struct saving *saving = &list->items[i];
    json_t *row = json_pack("{s:I, s:I, s:I, s:I, s:I}", "blocks", (json_int_t)saving->at_peak.blocks, "bytes",
                            (json_int_t)saving->at_peak.bytes, "halved_saves_bytes", (json_int_t)saving->halved_bytes,
                            "gone_saves_bytes", (json_int_t)saving->gone_bytes, "together_save_bytes",
                            (json_int_t)saving->together_bytes);
    if (by == MOMENT_BY_STACK) {
      uint32_t stack = (uint32_t)saving->at_peak.key;
      blocks_stack_name(blocks, stack, name, sizeof name);
      json_object_set_new(row, "stack", output_json_string(stack_texts_get(&blocks->stacks, stack)));
      json_object_set_new(row, "name", output_json_string(name));
    } else if (by == MOMENT_BY_TAG) {
      json_object_set_new(row, "tag", output_json_string(blocks_tag_name(blocks, (uint32_t)saving->at_peak.key)));
    } else {
      json_object_set_new(row, "size", json_integer((json_int_t)saving->at_peak.key));
    }
    json_array_append_new(array, row);
  }
  return array;
}

json_t *plan_log_json(const char *file, const struct blocks *blocks, const struct savings *savings)
{
  return json_pack("{s:o, s:I, s:o, s:o, s:o}", "file", output_json_string(file), "peak_event",
                   (json_int_t)savings->peak_event, "by_size",
                   plan_list_json(blocks, &savings->by_size, MOMENT_BY_SIZE), "by_tag",
                   plan_list_json(blocks, &savings->by_tag, MOMENT_BY_TAG), "by_stack",
                   plan_list_json(blocks, &savings->by_stack, MOMENT_BY_STACK));
}

json_t *plan_json(const struct plan *plan)
{
  bool has_device = plan->device_bytes;
  json_int_t device_bytes = (json_int_t)plan->device_bytes, needs_bytes = (json_int_t)plan->needs_bytes;
  return json_pack("{s:O, s:I, s:o, s:o, s:b, s:I, s:I, s:o, s:o}", "logs", plan->logs, "needs_bytes", needs_bytes,
                   "device_memory_bytes", has_device ? json_integer(device_bytes) : json_null(), "spare_bytes",
                   has_device ? json_integer(device_bytes - needs_bytes) : json_null(), "fits",
                   device_bytes >= needs_bytes, "sets", device_bytes / needs_bytes, "process_memory_bytes",
                   (json_int_t)plan->process_bytes, "graph", output_json_string(source_name(&plan->source)), "runtime",
                   output_json_string(plan->runtime));
}

/* ---- Text ------------------------------------------------------------------------------------------------------ */

static void plan_row(const char *held, const char *halved, const char *gone, const char *name)
{
  char numbers[128];
  struct wrap wrap = {.prefix = "      "};
  snprintf(numbers, sizeof numbers, "%12s  %15s  %16s ", held, halved, gone);
  wrap_item(&wrap, 0, STYLE_OFF, numbers);
  wrap_words(&wrap, STYLE_OFF, name);
  wrap_end(&wrap);
}

static void plan_list(const json_t *list, const char *kind)
{
  char name[BLOCKS_STACK_NAME_BYTES + 64];
  size_t i;
  json_t *row;
  if (!json_array_size(list)) return;
  printf("\n%s", style(STYLE_FAINT));
  plan_row("held at peak", "saved if halved", "saved if removed", kind);
  printf("%s", style(STYLE_OFF));
  json_array_foreach(list, i, row)
  {
    unsigned long long blocks = lines_count(row, "blocks");
    const char *stack = lines_text(row, "name"), *tag = lines_text(row, "tag"); /* "2 blocks of 2.98 GiB", … */
    if (json_object_get(row, "tag"))
      snprintf(name, sizeof name, "%llu block%s with %s%s", blocks, text_plural(blocks), *tag ? "tag " : "no tag", tag);
    else
      snprintf(name, sizeof name, "%llu block%s %s %s", blocks, text_plural(blocks), *stack ? "from" : "of",
               *stack ? stack : UNITS_BYTES(lines_count(row, "size")));
    plan_row(UNITS_BYTES(lines_count(row, "bytes")), UNITS_BYTES(lines_count(row, "halved_saves_bytes")),
             UNITS_BYTES(lines_count(row, "gone_saves_bytes")), name);
  }
}

/* The fewest rows whose blocks must go before so many bytes are saved; 0: no number of them is enough, or nothing is
 * missing. */
static size_t plan_rows_to_save(const json_t *list, json_int_t missing_bytes)
{
  for (size_t i = 0; missing_bytes > 0 && i < json_array_size(list); i++)
    if (lines_count(json_array_get(list, i), "together_save_bytes") >= (uint64_t)missing_bytes) return i + 1;
  return 0;
}

/* What a process takes besides, such as its context, decides beyond so many. */
enum { PLAN_MOST_COPIES = 1000 };

static void plan_print_log(const json_t *plan, const json_t *log)
{
  unsigned long long copies = lines_count(log, "copies");
  const json_t *by_size = json_object_get(log, "by_size");
  lines_heading(lines_text(log, "file"));
  char fit[96];
  if (copies > PLAN_MOST_COPIES)
    snprintf(fit, sizeof fit, "how many such processes fit depends on what each takes besides (--process-memory)");
  else
    snprintf(fit, sizeof fit, "%llu such process%s", copies, copies == 1 ? " fits" : "es fit");
  lines_say(STYLE_OFF, "Requests %s at its peak, which is event %llu, and needs %s; %s.",
            UNITS_BYTES(lines_count(log, "peak_requested_bytes")), (unsigned long long)lines_count(log, "peak_event"),
            UNITS_BYTES(lines_count(log, "needs_bytes")), fit);
  if (json_array_size(by_size)) {
    putchar('\n');
    lines_say(STYLE_OFF, "What the blocks that are live at the peak hold, and by how much the peak falls if each of "
                         "them has half its size, or is not allocated at all:");
  }
  plan_list(by_size, "size");
  plan_list(json_object_get(log, "by_tag"), "tag");
  plan_list(json_object_get(log, "by_stack"), "call stack");
  json_int_t spare = json_integer_value(json_object_get(plan, "spare_bytes"));
  size_t rows = plan_rows_to_save(by_size, -spare);
  if (rows) {
    const char *who = json_array_size(json_object_get(plan, "logs")) > 1 ? "all" : "it";
    putchar('\n');
    if (rows == 1)
      lines_say(STYLE_OFF, "Without the blocks of the first size %s would fit.", who);
    else
      lines_say(STYLE_OFF, "Without the blocks of the first %zu sizes %s would fit.", rows, who);
  }
  putchar('\n');
}

/* "These 2 programs need 12.4 GiB together; they fit on a device of 16 GiB with 3.6 GiB to spare." */
static void plan_print_verdict(const json_t *plan)
{
  char who[128];
  const char *needs = UNITS_BYTES(lines_count(plan, "needs_bytes"));
  const char *device = UNITS_BYTES(lines_count(plan, "device_memory_bytes"));
  size_t n = json_array_size(json_object_get(plan, "logs"));
  bool fits = json_is_true(json_object_get(plan, "fits"));
  json_int_t spare = json_integer_value(json_object_get(plan, "spare_bytes"));
  if (n > 1)
    snprintf(who, sizeof who, "These %zu programs need %s together; they %s", n, needs, fits ? "fit" : "do not fit");
  else
    snprintf(who, sizeof who, "This program needs %s; it %s", needs, fits ? "fits" : "does not fit");
  if (!lines_count(plan, "device_memory_bytes"))
    lines_say(STYLE_BAD, "%s on any card.", who);
  else if (fits)
    lines_say(STYLE_GOOD, "%s on a device of %s with %s to spare.", who, device, UNITS_BYTES((uint64_t)spare));
  else
    lines_say(STYLE_BAD, "%s on a device of %s: %s are missing.", who, device, UNITS_BYTES((uint64_t)-spare));
}

void plan_print(const json_t *plan)
{
  size_t i;
  json_t *log;
  char more[64];
  uint64_t process_bytes = lines_count(plan, "process_memory_bytes");
  json_array_foreach(json_object_get(plan, "logs"), i, log) plan_print_log(plan, log);
  plan_print_verdict(plan);
  snprintf(more, sizeof more, ", and %s that each process takes besides.", UNITS_BYTES(process_bytes));
  lines_say(
      STYLE_FAINT, "A need is the least memory with which the log runs through %s on runtime %s%s",
      lines_text(plan, "graph"), lines_text(plan, "runtime"),
      process_bytes
          ? more
          : "; what each process takes besides, such as the driver's context, is not counted (--process-memory).");
}
