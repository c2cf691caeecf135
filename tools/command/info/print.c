/* SPDX-License-Identifier: MIT */
/* print.c: prints what `hipmm info` found, for people. Called by info.c. */
#include "../lines.h"
#include "info.h"

#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include <dlfcn.h>
#include <string.h>

enum { PRINT_LABEL = 10, PRINT_CELL = 32, PRINT_LINE = 256 };

/* The label, and words beside it that are broken into lines. */
static struct wrap print_begin(const char *label)
{
  print_padded(STYLE_FAINT, label, PRINT_LABEL);
  return (struct wrap){.prefix = "          ", .column = PRINT_LABEL};
}

static void print_graph(const json_t *graph, const char *wanted)
{
  char text[PRINT_LINE];
  struct wrap wrap = print_begin("graph");
  const char *file = lines_text(graph, "file");
  wrap_item(&wrap, 0, STYLE_NAME, *file ? file : "built in");
  if (!json_is_true(json_object_get(graph, "ok"))) {
    wrap_words(&wrap, STYLE_BAD, "is not valid; `hipmm check` prints the errors");
  } else {
    json_int_t n = json_integer_value(json_object_get(graph, "resources"));
    snprintf(text, sizeof text, "(%s), %lld resource%s, runtime \"%s\"",
             *file ? lines_text(graph, "from") : "no graph file was found", (long long)n, text_plural((uint64_t)n),
             lines_text(graph, "runtime"));
    wrap_words(&wrap, STYLE_OFF, text);
    snprintf(text, sizeof text, "(HIPMM_RUNTIME=%s overrides it)", wanted);
    if (strcmp(wanted, lines_text(graph, "runtime")) != 0) wrap_words(&wrap, STYLE_OFF, text);
  }
  wrap_end(&wrap);
}

static void print_runtime(const json_t *runtime, const char *label)
{
  char text[PRINT_LINE];
  const char *reason = lines_text(runtime, "reason"), *name = lines_text(runtime, "name");
  bool is_current = json_is_true(json_object_get(runtime, "in_force"));
  size_t n = json_array_size(json_object_get(runtime, "devices"));
  struct wrap wrap = print_begin(label);
  wrap_item(&wrap, 0, STYLE_NAME, name);
  if (*reason) {
    /* The reason begins with the runtime's name, as a rule. */
    snprintf(text, sizeof text, "runtime %s: ", name);
    wrap_words(&wrap, STYLE_BAD, "cannot be used:");
    wrap_words(&wrap, STYLE_OFF, strncmp(reason, text, strlen(text)) == 0 ? reason + strlen(text) : reason);
  } else {
    wrap_words(&wrap, is_current ? STYLE_GOOD : STYLE_OFF, is_current ? "in use:" : "can be used:");
    snprintf(text, sizeof text, "HIP %s, %zu device%s,", lines_text(runtime, "version"), n, text_plural(n));
    wrap_words(&wrap, STYLE_OFF, text);
    wrap_item(&wrap, 1, STYLE_FAINT, lines_text(runtime, "library"));
  }
  wrap_end(&wrap);
}

static void print_add(char *text, const char *more)
{
  size_t used = strlen(text);
  snprintf(text + used, PRINT_LINE - used, "%s%s", used ? ", " : "", more);
}

static void print_peers(const json_t *peers, char *text)
{
  char list[PRINT_LINE / 2], number[PRINT_CELL];
  snprintf(list, sizeof list, "reaches device%s", text_plural(json_array_size(peers)));
  for (size_t i = 0; i < json_array_size(peers); i++) {
    size_t used = strlen(list);
    snprintf(number, sizeof number, "%s%lld", i ? ", " : " ", (long long)json_integer_value(json_array_get(peers, i)));
    snprintf(list + used, sizeof list - used, "%s", number);
  }
  if (json_array_size(peers) > 0) print_add(text, list);
}

static void print_device(const json_t *device)
{
  char text[PRINT_LINE], label[PRINT_CELL];
  snprintf(label, sizeof label, "device %lld", (long long)json_integer_value(json_object_get(device, "device")));
  struct wrap wrap = print_begin(label);
  wrap_item(&wrap, 0, STYLE_NAME, lines_text(device, "name"));
  wrap_item(&wrap, 0, STYLE_OFF, ",");
  snprintf(text, sizeof text, "%s,", UNITS_BYTES(lines_count(device, "memory_bytes")));
  wrap_words(&wrap, STYLE_OFF, text);
  snprintf(text, sizeof text, "%s free;", UNITS_BYTES(lines_count(device, "free_bytes")));
  wrap_words(&wrap, STYLE_OFF, text);
  text[0] = '\0';
  const json_t *mapping = json_object_get(device, "mapping_granularity");
  if (json_is_integer(mapping)) {
    char words[PRINT_CELL + 24];
    snprintf(words, sizeof words, "virtual memory in %s%s", UNITS_BYTES((uint64_t)json_integer_value(mapping)),
             json_is_true(json_object_get(device, "mapping_rdma")) ? " (RDMA)" : "");
    print_add(text, words);
  }
  if (json_is_true(json_object_get(device, "memory_pools"))) print_add(text, "memory pools");
  if (json_is_true(json_object_get(device, "managed_memory"))) print_add(text, "managed memory");
  print_peers(json_object_get(device, "peers"), text);
  wrap_words(&wrap, STYLE_OFF, *text ? text : "plain memory only");
  wrap_end(&wrap);
}

static void print_folder(const json_t *folder, const char *label)
{
  char text[PRINT_LINE];
  json_int_t n = json_integer_value(json_object_get(folder, "plugins"));
  json_int_t refused = json_integer_value(json_object_get(folder, "refused"));
  struct wrap wrap = print_begin(label);
  wrap_item(&wrap, 0, STYLE_NAME, lines_text(folder, "folder"));
  snprintf(text, sizeof text, "(%s)", lines_text(folder, "from"));
  wrap_words(&wrap, STYLE_FAINT, text);
  if (!json_is_true(json_object_get(folder, "exists")))
    snprintf(text, sizeof text, "does not exist");
  else if (refused)
    snprintf(text, sizeof text, "%lld found, %lld refused (`hipmm plugins` says why)", (long long)n,
             (long long)refused);
  else
    snprintf(text, sizeof text, "%lld found", (long long)n);
  wrap_words(&wrap, refused ? STYLE_WARNING : STYLE_OFF, text);
  wrap_end(&wrap);
}

/* A machine without NVIDIA's driver lacks nothing. */
static void print_nvidia_missing(const char *why)
{
  bool has_driver =
      dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != NULL; /* for the rest of the process, which ends */
  struct wrap wrap = print_begin("nvidia");
  if (has_driver) wrap_words(&wrap, STYLE_WARNING, "NVIDIA's driver is here, but hipmm cannot use it:");
  wrap_words(&wrap, STYLE_OFF, "this runtime was not built:");
  wrap_words(&wrap, STYLE_OFF, why);
  wrap_end(&wrap);
}

static void print_pytorch(const json_t *pytorch)
{
  struct wrap wrap = print_begin("PyTorch");
  wrap_item(&wrap, 0, STYLE_NAME, lines_text(pytorch, "version"));
  wrap_words(&wrap, STYLE_OFF, lines_text(pytorch, "allocator"));
  wrap_words(&wrap, STYLE_OFF, lines_text(pytorch, "detail"));
  wrap_end(&wrap);
}

void info_print(const json_t *info)
{
  const json_t *item, *runtimes = json_object_get(info, "runtimes"), *folders = json_object_get(info, "plugin_folders");
  size_t i, k;
  print_padded(STYLE_FAINT, "hipmm", PRINT_LABEL);
  printf("%s%s%s, plugin ABI %lld\n", style(STYLE_NAME), lines_text(info, "version"), style(STYLE_OFF),
         (long long)json_integer_value(json_object_get(info, "plugin_abi")));
  print_graph(json_object_get(info, "graph"), lines_text(info, "runtime"));
  for (i = 0; i < json_array_size(runtimes); i++) print_runtime(json_array_get(runtimes, i), i ? "" : "runtimes");
  for (i = 0; i < json_array_size(runtimes); i++) {
    item = json_array_get(runtimes, i);
    if (!json_is_true(json_object_get(item, "in_force"))) continue;
    const json_t *devices = json_object_get(item, "devices");
    for (k = 0; k < json_array_size(devices); k++) print_device(json_array_get(devices, k));
  }
  for (i = 0; i < json_array_size(folders); i++) print_folder(json_array_get(folders, i), i ? "" : "plugins");
  if (!json_is_null(json_object_get(info, "pytorch"))) print_pytorch(json_object_get(info, "pytorch"));
  if (*lines_text(info, "nvidia_missing")) print_nvidia_missing(lines_text(info, "nvidia_missing"));
}
