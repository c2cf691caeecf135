/* SPDX-License-Identifier: MIT */
/* fuzz_option.c: values of options. An input is lines: a type of resources, then "key=value,…" as in an environment variable
 * or, with "name:", what a program sets, and units. */
#include "../../../core/base/units.h"
#include "../../../core/option/option.h"
#include "../../../core/option/option_value.h"
#include "../../../core/plugin/plugin.h"
#include "fuzz.h"

static const struct plugin **plugins;
static size_t n_plugins;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  plugins = plugin_all(NULL, &n_plugins);
  FUZZ_REQUIRE(n_plugins > 0);
  return 0;
}

static void read_units(const char *text)
{
  char written[64];
  uint64_t bytes, again;
  bool is_of_total;
  double percent;
  int64_t nanoseconds;
  (void)units_parse_percent(text, &percent, &is_of_total);
  (void)units_parse_duration(text, &nanoseconds);
  if (!units_parse_bytes(text, &bytes) || bytes < 1024 || bytes > UINT64_C(1023) << 50) return;
  FUZZ_REQUIRE(units_parse_bytes(units_format_bytes(bytes, written, sizeof written), &again));
  FUZZ_REQUIRE((again > bytes ? again - bytes : bytes - again) <= bytes / 100);
}

static void fill(const struct hipmm_plugin *plugin, json_t *object, struct diagnostics *diagnostics)
{
  static const char *const keys[] = {"type", "upstream", NULL};
  struct option_context context = {
      .diagnostics = diagnostics, .path = "/fuzz", .keys = keys, .free_bytes = 1 << 30, .total_bytes = 2u << 30};
  void *options = calloc(1, plugin->options_bytes + 1);
  char shown[256];
  bool given;
  if (options && option_fill_valid(plugin, object, &context, NULL, options))
    option_free(plugin->options, plugin->n_options, options);
  free(options);
  for (uint32_t i = 0; i < plugin->n_options; i++) {
    json_t *value = option_current(&plugin->options[i], object, &given);
    if (value) option_show(value, shown, sizeof shown);
    json_decref(value);
  }
  free(option_overlay_text(object, "type"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
  struct fuzz_input input = {data, data + bytes};
  struct diagnostics diagnostics = {.source = "fuzz"};
  char *type = fuzz_take_line(&input);
  const struct hipmm_plugin *plugin = &plugins[strlen(type) % n_plugins]->descriptor;
  for (size_t i = 0; i < n_plugins; i++)
    if (strcmp(plugins[i]->descriptor.type, type) == 0) plugin = &plugins[i]->descriptor;
  json_t *object = json_object();
  while (object && input.at < input.end) {
    char *line = fuzz_take_line(&input), *colon = strchr(line, ':');
    read_units(colon ? colon + 1 : line);
    if (colon) {
      *colon = '\0';
      (void)option_set_text(plugin->options, plugin->n_options, line, colon + 1, object);
    } else {
      (void)option_overlay(plugin->options, plugin->n_options, "HIPMM_FUZZ", line, object, &diagnostics);
    }
    free(line);
  }
  fill(plugin, object, &diagnostics);
  json_decref(object);
  diagnostics_clear(&diagnostics);
  free(type);
  return 0;
}
