/* SPDX-License-Identifier: MIT */
/* fit_print.c: `hipmm replay --fit`: asks for the least budget, and prints it. Called by replay.c. */
#include "../lines.h"
#include "../play/fit.h"
#include "replay.h"

#include "../../../core/base/units.h"
#include "../../../core/graph/graph.h"

static json_t *fit_json(const struct fit *fit, uint64_t card_bytes)
{
  double overhead = lines_overhead(fit->held_bytes, fit->peak_requested_bytes);
  json_t *pools = json_array();
  for (size_t i = 0; i < fit->graph.n_pools; i++)
    json_array_append_new(pools, json_pack("{s:s, s:I}", "name", fit->graph.pools[i].node->name, "maximum_size",
                                           (json_int_t)fit->graph.pools[i].maximum_bytes));
  return json_pack("{s:I, s:I, s:f, s:o, s:I, s:o, s:o, s:b, s:o}", "needs_bytes", (json_int_t)fit->held_bytes,
                   "peak_requested_bytes", (json_int_t)fit->peak_requested_bytes, "overhead", overhead, "pools", pools,
                   "replays", (json_int_t)fit->replays, "card_bytes",
                   card_bytes ? json_integer((json_int_t)card_bytes) : json_null(), "spare_bytes",
                   card_bytes ? json_integer((json_int_t)card_bytes - (json_int_t)fit->held_bytes) : json_null(),
                   "fits", card_bytes >= fit->held_bytes, "runtime", output_json_string(fit->runtime));
}

/* "This program needs 12.4 GiB; it fits on a 16 GiB card with 3.6 GiB to spare." */
static void fit_print_verdict(const json_t *json)
{
  bool fits = json_is_true(json_object_get(json, "fits"));
  const char *card = UNITS_BYTES(lines_count(json, "card_bytes"));
  json_int_t spare = json_integer_value(json_object_get(json, "spare_bytes"));
  printf("\n%sThis program needs %s", style(fits ? STYLE_GOOD : STYLE_BAD),
         UNITS_BYTES(lines_count(json, "needs_bytes")));
  if (!lines_count(json, "card_bytes"))
    printf(", more than any card has");
  else if (fits)
    printf("; it fits on a %s card with %s to spare", card, UNITS_BYTES((uint64_t)spare));
  else
    printf("; it does not fit on a %s card: %s are missing", card, UNITS_BYTES((uint64_t)-spare));
  printf(".%s\n", style(STYLE_OFF));
}

static const struct line fit_lines[] = {
    {"peak_requested_bytes", "peak requested", LINE_BYTES, NULL},
    {"needs_bytes", "needed", LINE_BYTES, NULL},
    {"overhead", "overhead", LINE_RATIO, "needed over requested"},
    {"replays", "replays", LINE_COUNT, NULL},
};

static int fit_print(const struct replay *replay, const struct fit *fit, uint64_t card_bytes, int status)
{
  json_t *json = fit_json(fit, card_bytes), *pool;
  size_t i;
  if (replay->json || !json) return output_json(json, status);
  replay_print_head(replay, fit->runtime);
  lines_print(json, fit_lines, sizeof fit_lines / sizeof *fit_lines);
  fit_print_verdict(json);
  json_array_foreach(json_object_get(json, "pools"), i, pool)
      printf("The least for %s: \"maximum_size\": %llu\n", lines_text(pool, "name"),
             (unsigned long long)lines_count(pool, "maximum_size"));
  json_decref(json);
  return output_finish(status);
}

int fit_run(const struct replay *replay)
{
  const struct fit_request request = {"replay: --fit", &replay->trace, &replay->source, (int)replay->device,
                                      replay->passes};
  struct fit fit;
  if (!fit_find(&fit, &request)) return CMD_BAD;
  uint64_t card_bytes = replay->card_bytes ? replay->card_bytes : fit_smallest_card(fit.held_bytes);
  int status = card_bytes >= fit.held_bytes ? CMD_GOOD : CMD_BAD;
  status = fit_print(replay, &fit, card_bytes, status);
  fit_clear(&fit);
  return status;
}
