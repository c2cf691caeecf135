/* SPDX-License-Identifier: MIT */
/* print.c: the answer of `hipmm plan`, as text and as JSON. Called by plan.c. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "plan.h"

#include <string.h>

enum { PLAN_WORDS = 64, PLAN_NAME = 256 };

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static json_t *plan_list_json(const struct plan_log *log, const struct savings_list *list, enum moment_key by)
{
  json_t *array = json_array();
  for (size_t i = 0; i < list->n; i++) {
    const struct saving *saving = &list->items[i];
    json_t *row = json_pack("{s:I, s:I, s:I, s:I, s:I}", "blocks", (json_int_t)saving->at_peak.blocks, "bytes",
                            (json_int_t)saving->at_peak.bytes, "halved_saves_bytes", (json_int_t)saving->halved_bytes,
                            "gone_saves_bytes", (json_int_t)saving->gone_bytes, "together_save_bytes",
                            (json_int_t)saving->together_bytes);
    if (by == MOMENT_BY_STACK)
      json_object_set_new(row, "stack",
                          output_json_string(stack_texts_get(&log->blocks.stacks, (uint32_t)saving->at_peak.key)));
    else
      json_object_set_new(row, "size", json_integer((json_int_t)saving->at_peak.key));
    json_array_append_new(array, row);
  }
  return array;
}

static json_t *plan_log_json(const struct plan_log *log)
{
  return json_pack("{s:o, s:I, s:I, s:I, s:I, s:o, s:o}", "file", output_json_string(log->file), "needs_bytes",
                   (json_int_t)log->needs_bytes, "peak_requested_bytes", (json_int_t)log->peak_requested_bytes,
                   "copies", (json_int_t)log->copies, "peak_event", (json_int_t)log->savings.peak_event, "by_size",
                   plan_list_json(log, &log->savings.by_size, MOMENT_BY_SIZE), "by_stack",
                   plan_list_json(log, &log->savings.by_stack, MOMENT_BY_STACK));
}

int plan_print_json(const struct plan *plan, int status)
{
  json_t *logs = json_array();
  for (size_t i = 0; i < plan->n_logs; i++) json_array_append_new(logs, plan_log_json(&plan->logs[i]));
  bool has_device = plan->device_bytes;
  return output_json(
      json_pack("{s:o, s:I, s:o, s:o, s:b, s:I, s:I, s:o, s:o}", "logs", logs, "needs_bytes",
                (json_int_t)plan->needs_bytes, "device_memory_bytes",
                has_device ? json_integer((json_int_t)plan->device_bytes) : json_null(), "spare_bytes",
                has_device ? json_integer((json_int_t)plan->device_bytes - (json_int_t)plan->needs_bytes) : json_null(),
                "fits", plan_fits(plan), "sets", (json_int_t)(plan->device_bytes / plan->needs_bytes),
                "process_memory_bytes", (json_int_t)plan->process_bytes, "graph",
                output_json_string(source_name(&plan->source)), "runtime", output_json_string(plan->runtime)),
      status);
}

/* ---- Text ------------------------------------------------------------------------------------------------------ */

static void plan_say(enum style kind, const char *text)
{
  struct wrap wrap = {.prefix = ""};
  wrap_words(&wrap, kind, text);
  wrap_end(&wrap);
}

/* "2 blocks of 2.98 GiB", or the function that asked for them. */
static void plan_row_name(const struct plan_log *log, const struct saving *saving, enum moment_key by, char *name)
{
  char words[PLAN_NAME - PLAN_WORDS];
  if (by == MOMENT_BY_STACK)
    blocks_stack_name(&log->blocks, (uint32_t)saving->at_peak.key, words, sizeof words);
  else
    units_format_bytes(saving->at_peak.key, words, sizeof words);
  snprintf(name, PLAN_NAME, "%llu block%s %s %s", (unsigned long long)saving->at_peak.blocks,
           text_plural(saving->at_peak.blocks), by == MOMENT_BY_STACK ? "from" : "of", words);
}

static void plan_row(const char *held, const char *halved, const char *gone, const char *name)
{
  char numbers[4 * PLAN_WORDS];
  struct wrap wrap = {.prefix = "      "};
  snprintf(numbers, sizeof numbers, "%12s  %15s  %16s ", held, halved, gone);
  wrap_item(&wrap, 0, STYLE_OFF, numbers);
  wrap_words(&wrap, STYLE_OFF, name);
  wrap_end(&wrap);
}

static void plan_list(const struct plan_log *log, const struct savings_list *list, enum moment_key by)
{
  char held[PLAN_WORDS], halved[PLAN_WORDS], gone[PLAN_WORDS], name[PLAN_NAME];
  if (!list->n) return;
  printf("\n%s", style(STYLE_FAINT));
  plan_row("held at peak", "saved if halved", "saved if removed", by == MOMENT_BY_STACK ? "call stack" : "size");
  printf("%s", style(STYLE_OFF));
  for (size_t i = 0; i < list->n; i++) {
    const struct saving *saving = &list->items[i];
    plan_row_name(log, saving, by, name);
    plan_row(units_format_bytes(saving->at_peak.bytes, held, sizeof held),
             units_format_bytes(saving->halved_bytes, halved, sizeof halved),
             units_format_bytes(saving->gone_bytes, gone, sizeof gone), name);
  }
}

/* The fewest rows whose blocks must go before all fit; 0: no number of them is enough. */
static size_t plan_rows_to_fit(const struct plan *plan, const struct savings_list *list)
{
  for (size_t i = 0; i < list->n; i++)
    if (plan->needs_bytes <= plan->device_bytes + list->items[i].together_bytes) return i + 1;
  return 0;
}

static void plan_log_print(const struct plan *plan, const struct plan_log *log)
{
  char peak[PLAN_WORDS], needs[PLAN_WORDS], text[PATH_MAX + 4 * PLAN_WORDS];
  units_format_bytes(log->peak_requested_bytes, peak, sizeof peak);
  units_format_bytes(log->needs_bytes, needs, sizeof needs);
  printf("%s", style(STYLE_NAME));
  output_text(stdout, log->file);
  printf("%s\n", style(STYLE_OFF));
  snprintf(text, sizeof text, "Requests %s at its peak, which is event %u, and needs %s; %llu such process%s.", peak,
           (unsigned)log->savings.peak_event, needs, (unsigned long long)log->copies,
           log->copies == 1 ? " fits" : "es fit");
  plan_say(STYLE_OFF, text);
  if (log->savings.by_size.n) {
    printf("\n");
    plan_say(STYLE_OFF,
             "What the blocks that are live at the peak hold, and by how much the peak falls if each of them has "
             "half its size, or is not allocated at all:");
  }
  plan_list(log, &log->savings.by_size, MOMENT_BY_SIZE);
  plan_list(log, &log->savings.by_stack, MOMENT_BY_STACK);
  size_t rows = plan_fits(plan) ? 0 : plan_rows_to_fit(plan, &log->savings.by_size);
  if (rows) {
    const char *who = plan->n_logs > 1 ? "all" : "it";
    if (rows == 1)
      snprintf(text, sizeof text, "Without the blocks of the first size %s would fit.", who);
    else
      snprintf(text, sizeof text, "Without the blocks of the first %zu sizes %s would fit.", rows, who);
    printf("\n");
    plan_say(STYLE_OFF, text);
  }
  printf("\n");
}

/* "These 2 programs need 12.4 GiB together; they fit on a device of 16 GiB with 3.6 GiB to spare." */
static void plan_verdict(const struct plan *plan)
{
  char needs[PLAN_WORDS], device[PLAN_WORDS], rest[PLAN_WORDS], who[2 * PLAN_WORDS], text[8 * PLAN_WORDS];
  bool fits = plan_fits(plan), several = plan->n_logs > 1;
  uint64_t rest_bytes = fits ? plan->device_bytes - plan->needs_bytes : plan->needs_bytes - plan->device_bytes;
  units_format_bytes(plan->needs_bytes, needs, sizeof needs);
  units_format_bytes(plan->device_bytes, device, sizeof device);
  units_format_bytes(rest_bytes, rest, sizeof rest);
  if (several)
    snprintf(who, sizeof who, "These %zu programs need %s together; they", plan->n_logs, needs);
  else
    snprintf(who, sizeof who, "This program needs %s; it", needs);
  const char *verb = several ? (fits ? "fit" : "do not fit") : (fits ? "fits" : "does not fit");
  if (!plan->device_bytes)
    snprintf(text, sizeof text, "%s %s on any card.", who, verb);
  else if (fits)
    snprintf(text, sizeof text, "%s %s on a device of %s with %s to spare.", who, verb, device, rest);
  else
    snprintf(text, sizeof text, "%s %s on a device of %s: %s are missing.", who, verb, device, rest);
  plan_say(fits ? STYLE_GOOD : STYLE_BAD, text);
}

int plan_print(const struct plan *plan, int status)
{
  char text[PATH_MAX + PLAN_NAME], words[PLAN_WORDS];
  for (size_t i = 0; i < plan->n_logs; i++) plan_log_print(plan, &plan->logs[i]);
  plan_verdict(plan);
  int used = snprintf(text, sizeof text, "A need is the least memory with which the log runs through %s on runtime %s",
                      source_name(&plan->source), plan->runtime);
  if (plan->process_bytes)
    snprintf(text + used, sizeof text - (size_t)used, ", and %s that each process takes besides.",
             units_format_bytes(plan->process_bytes, words, sizeof words));
  else
    snprintf(text + used, sizeof text - (size_t)used,
             "; what each process takes besides, such as the driver's context, is not counted (--process-memory).");
  plan_say(STYLE_FAINT, text);
  return output_finish(status);
}
