/* SPDX-License-Identifier: MIT */
/* Tests of core/option: reading JSON into a plugin's option struct, with a table that has every type. */
#include "../../core/option/option.h"
#include "../../tools/command/schema/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bin {
  uint64_t size;
  struct hipmm_resource *resource;
  struct hipmm_strings tags;
};

struct options {
  uint32_t flag;
  int64_t count;
  uint64_t size, initial_size, maximum_size, cap;
  double ratio;
  int64_t delay;
  uint32_t mode;
  const char *label, *note;
  struct hipmm_strings names;
  struct hipmm_list bins;
  struct hipmm_resource *fallback;
  const struct hipmm_region *region;
};

static const char *const modes[] = {"auto", "mapped", "segments", NULL};
static const char *const unlimited[] = {"unlimited", NULL};
static const char *const keys[] = {"type", "upstream", NULL};

static const struct hipmm_option bin_table[] = {
    {.name = "size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct bin, size),
     .doc = "Largest request of the bin"},
    {.name = "resource", .type = HIPMM_OPTION_RESOURCE, .offset = offsetof(struct bin, resource)},
    {.name = "tags", .type = HIPMM_OPTION_STRINGS, .offset = offsetof(struct bin, tags)},
};

static const struct hipmm_option table[] = {
    {.name = "flag",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct options, flag),
     .initial = "true",
     .doc = "Whether"},
    {.name = "count",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct options, count),
     .initial = "128",
     .minimum = "1",
     .maximum = "1000",
     .unit = "blocks",
     .doc = "How many"},
    {.name = "size",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct options, size),
     .initial = "1MiB",
     .minimum = "256",
     .maximum = "1GiB",
     .doc = "How large"},
    {.name = "initial_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct options, initial_size),
     .initial = "0",
     .doc = "At first"},
    {.name = "maximum_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct options, maximum_size),
     .at_least = "initial_size",
     .initial = "90%",
     .minimum = "1",
     .doc = "At last",
     .choices = unlimited},
    {.name = "cap", .type = HIPMM_OPTION_BYTES, .offset = offsetof(struct options, cap), .doc = "A cap"},
    {.name = "ratio",
     .type = HIPMM_OPTION_RATIO,
     .offset = offsetof(struct options, ratio),
     .initial = "0.5",
     .minimum = "0",
     .maximum = "1",
     .doc = "A share"},
    {.name = "delay",
     .type = HIPMM_OPTION_DURATION,
     .offset = offsetof(struct options, delay),
     .initial = "10ms",
     .maximum = "1h",
     .doc = "A while"},
    {.name = "mode",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct options, mode),
     .initial = "mapped",
     .choices = modes,
     .doc = "How"},
    {.name = "label", .type = HIPMM_OPTION_STRING, .offset = offsetof(struct options, label), .initial = "plain"},
    {.name = "note", .type = HIPMM_OPTION_STRING, .offset = offsetof(struct options, note)},
    {.name = "names", .type = HIPMM_OPTION_STRINGS, .offset = offsetof(struct options, names), .initial = "one;two"},
    {.name = "bins",
     .type = HIPMM_OPTION_LIST,
     .offset = offsetof(struct options, bins),
     .fields = bin_table,
     .n_fields = 3,
     .field_bytes = sizeof(struct bin)},
    {.name = "fallback", .type = HIPMM_OPTION_RESOURCE, .offset = offsetof(struct options, fallback)},
    {.name = "region",
     .type = HIPMM_OPTION_OBJECT,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct options, region),
     .unit = "region",
     .doc = "Where"},
};
enum { N_ROWS = sizeof table / sizeof *table };

static struct hipmm_resource small_resource;

static struct hipmm_resource *resolve(void *closure, const char *name)
{
  return closure && !strcmp(name, "small") ? closure : NULL;
}

/* Fills from text; NULL text means no object. The object is returned, since strings point into it. */
static bool fill(const char *json, uint64_t free_bytes, struct diagnostics *diagnostics, struct options *options,
                 json_t **object)
{
  *diagnostics = (struct diagnostics){0};
  *object = json ? json_loads(json, 0, NULL) : NULL;
  if (json) assert_non_null(*object);
  struct option_context context = {.diagnostics = diagnostics,
                                   .path = "/resources/x",
                                   .free_bytes = free_bytes,
                                   .total_bytes = 2 * free_bytes,
                                   .n_devices = 2,
                                   .keys = keys,
                                   .owner = "thing",
                                   .resolve = resolve,
                                   .closure = &small_resource};
  memset(options, 0xff, sizeof *options);
  return option_fill(table, N_ROWS, *object, &context, options);
}

static void drop(struct options *options, json_t *object, struct diagnostics *diagnostics)
{
  option_free(table, N_ROWS, options);
  json_decref(object);
  diagnostics_clear(diagnostics);
}

static void fills_defaults(void **state)
{
  struct diagnostics diagnostics;
  struct options options;
  json_t *object;
  (void)state;
  assert_true(fill(NULL, 1000000, &diagnostics, &options, &object));
  assert_int_equal(options.flag, 1);
  assert_int_equal(options.count, 128);
  assert_int_equal(options.size, 1 << 20);
  assert_int_equal(options.initial_size, 0);
  assert_int_equal(options.maximum_size, 900000 / 256 * 256);
  assert_true(options.cap == HIPMM_UNLIMITED);
  assert_true(options.ratio == 0.5);
  assert_int_equal(options.delay, 10000000);
  assert_int_equal(options.mode, 1);
  assert_string_equal(options.label, "plain");
  assert_null(options.note);
  assert_int_equal(options.names.count, 2);
  assert_string_equal(options.names.items[0], "one");
  assert_string_equal(options.names.items[1], "two");
  assert_int_equal(options.bins.count, 0);
  assert_null(options.fallback);
  assert_int_equal(diagnostics.n_errors + diagnostics.n_warnings, 0);
  drop(&options, object, &diagnostics);
}

static void reads_every_type(void **state)
{
  struct diagnostics diagnostics;
  struct options options;
  json_t *object;
  (void)state;
  assert_true(fill("{\"type\":\"thing\",\"upstream\":\"y\",\"flag\":false,\"count\":7,\"size\":4096,"
                   "\"initial_size\":\"25%\",\"maximum_size\":\"unlimited\",\"cap\":\"2GB\",\"ratio\":1,"
                   "\"delay\":\"1.5s\",\"mode\":\"segments\",\"label\":\"größe\",\"note\":\"\",\"names\":[\"x\"],"
                   "\"bins\":[{\"size\":\"64KiB\",\"resource\":\"small\",\"tags\":[\"a\",\"b\"]},{\"size\":1e6}],"
                   "\"fallback\":\"small\"}",
                   1000000, &diagnostics, &options, &object));
  assert_int_equal(options.flag, 0);
  assert_int_equal(options.count, 7);
  assert_int_equal(options.size, 4096);
  assert_int_equal(options.initial_size, 250000 / 256 * 256);
  assert_true(options.maximum_size == HIPMM_UNLIMITED);
  assert_int_equal(options.cap, 2000000000);
  assert_true(options.ratio == 1);
  assert_int_equal(options.delay, 1500000000);
  assert_int_equal(options.mode, 2);
  assert_string_equal(options.label, "größe");
  assert_string_equal(options.note, "");
  assert_int_equal(options.names.count, 1);
  const struct bin *bins = options.bins.items;
  assert_int_equal(options.bins.count, 2);
  assert_int_equal(bins[0].size, 65536);
  assert_ptr_equal(bins[0].resource, &small_resource);
  assert_string_equal(bins[0].tags.items[1], "b");
  assert_int_equal(bins[1].size, 1000000);
  assert_null(bins[1].resource);
  assert_ptr_equal(options.fallback, &small_resource);
  drop(&options, object, &diagnostics);
}

static void takes_whole_percentages_of_free_memory(void **state)
{
  struct diagnostics diagnostics;
  struct options options;
  json_t *object;
  (void)state;
  assert_true(
      fill("{\"initial_size\":\"100%\",\"maximum_size\":\"100%\"}", 85899345920, &diagnostics, &options, &object));
  assert_true(options.initial_size == 85899345920);
  drop(&options, object, &diagnostics);
  assert_true(fill("{\"initial_size\":\"12.5%\"}", 1000000007, &diagnostics, &options, &object));
  assert_int_equal(options.initial_size, 125000000 / 256 * 256);
  drop(&options, object, &diagnostics);
  assert_true(fill("{\"initial_size\":\"12.5%\"}", 0, &diagnostics, &options, &object));
  assert_int_equal(options.initial_size, 0);
  drop(&options, object, &diagnostics);
}

static void takes_percentages_of_all_memory(void **state)
{
  struct diagnostics diagnostics;
  struct options options;
  json_t *object;
  (void)state;
  assert_true(fill("{\"initial_size\":\"45% of total\"}", 1000000, &diagnostics, &options, &object));
  assert_int_equal(options.initial_size, 900000 / 256 * 256);
  drop(&options, object, &diagnostics);
  assert_true(
      fill("{\"initial_size\":\"100%\", \"maximum_size\":\"50% of total\"}", 1 << 20, &diagnostics, &options, &object));
  assert_int_equal(options.maximum_size, 1 << 20); /* the same bytes, so not below initial_size */
  drop(&options, object, &diagnostics);
}

/* The part of a rank: the launchers' variables, and what it is of 2 x 3000 KiB on a host with two devices. */
static void gives_each_rank_its_share(void **state)
{
  static const struct {
    const char *name, *value;
    unsigned ranks;
  } launchers[] = {
      {"HIPMM_UNUSED", "1", 1},
      {"LOCAL_WORLD_SIZE", "6", 3},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "5", 3}, /* one device has 3 ranks, and the other fits too */
      {"MPI_LOCALNRANKS", "1", 1},
      {"SLURM_STEP_TASKS_PER_NODE", "2(x3),8,1(x2)", 4}, /* the largest, since this host may be it */
      {"HIPMM_RANKS_PER_DEVICE", "7", 7},
  };
  struct diagnostics diagnostics;
  struct options options;
  json_t *object;
  (void)state;
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
    setenv(launchers[i].name, launchers[i].value, 1);
    assert_true(fill("{\"maximum_size\":\"share\"}", 3000 << 10, &diagnostics, &options, &object));
    assert_int_equal(options.maximum_size, (6000 << 10) / launchers[i].ranks / 256 * 256);
    assert_true(launchers[i].ranks * options.maximum_size <= 6000 << 10);
    drop(&options, object, &diagnostics);
    unsetenv(launchers[i].name);
  }
}

static void wants_to_know_the_ranks_of_a_share(void **state)
{
  static const char *const jobs[] = {"PMIX_RANK", "SLURM_PROCID", "FLUX_TASK_RANK"};
  struct diagnostics diagnostics;
  struct options options;
  json_t *object;
  (void)state;
  for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
    setenv(jobs[i], "0", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "2(x3),", 1); /* no number of ranks */
    assert_false(fill("{\"maximum_size\":\"share\"}", 1 << 20, &diagnostics, &options, &object));
    assert_string_equal(diagnostics.first->path, "/resources/x/maximum_size");
    assert_string_equal(diagnostics.first->message, "\"share\" is not known: the launcher does not tell how many ranks "
                                                    "this host has; set HIPMM_RANKS_PER_DEVICE");
    json_decref(object);
    diagnostics_clear(&diagnostics);
    unsetenv("SLURM_STEP_TASKS_PER_NODE");
    unsetenv(jobs[i]);
  }
}

/* The expected diagnostics of an object: lines "path: message", in order. */
struct refusal {
  const char *name, *json;
  uint64_t free_bytes;
  const char *said;
};

static const struct refusal refusals[] = {
    {"names a near option", "{\"inital_size\": 1}", 0,
     "/inital_size: unknown option \"inital_size\" of thing; did you mean \"initial_size\"?\n"},
    {"names a near key that is no option", "{\"upstrem\": 1}", 0,
     "/upstrem: unknown option \"upstrem\" of thing; did you mean \"upstream\"?\n"},
    {"lists the options when none is near", "{\"zebra~/\": 1}", 0,
     "/zebra~0~1: unknown option \"zebra~/\" of thing; it has flag, count, size, initial_size, maximum_size, cap, "
     "ratio, "
     "delay, mode, label, note, names, bins, fallback, region\n"},
    {"wants true or false", "{\"flag\": \"yes\"}", 0, "/flag: \"yes\" is neither true nor false\n"},
    {"takes no number for true", "{\"flag\": 1}", 0, "/flag: 1 is neither true nor false\n"},
    {"wants whole numbers", "{\"count\": 1.5}", 0, "/count: 1.5 is not a whole number\n"},
    {"takes no text for a number", "{\"count\": \"7\"}", 0, "/count: \"7\" is not a whole number\n"},
    {"says the least number", "{\"count\": 0}", 0, "/count: 0 is too little; the least is 1\n"},
    {"says the most", "{\"count\": 1001}", 0, "/count: 1001 is too much; the most is 1000\n"},
    {"takes no number beyond what it can hold", "{\"count\": 1e300}", 0, "/count: 1e300 is not a whole number\n"},
    {"says what a size is", "{\"size\": \"1 gigs\"}", 0,
     "/size: \"1 gigs\" is not a size; write bytes, \"512MiB\" or \"2GB\"\n"},
    {"says what a size with percentages is", "{\"initial_size\": \"1 gigs\"}", 0,
     "/initial_size: \"1 gigs\" is not a size; write bytes, \"512MiB\", \"2GB\", \"50%\", \"50% of total\" or "
     "\"share\"\n"},
    {"says what a size with a word is", "{\"maximum_size\": true}", 0,
     "/maximum_size: true is not a size; write bytes, \"512MiB\", \"2GB\", \"50%\", \"50% of total\", \"share\" or "
     "\"unlimited\"\n"},
    {"names a near word of a size", "{\"maximum_size\": \"unlimted\"}", 0,
     "/maximum_size: \"unlimted\" is not a size; did you mean \"unlimited\"?\n"},
    {"names the near share", "{\"initial_size\": \"shares\"}", 0,
     "/initial_size: \"shares\" is not a size; did you mean \"share\"?\n"},
    {"takes no share of what is none", "{\"cap\": \"share\"}", 0,
     "/cap: \"share\" is not a size; write bytes, \"512MiB\" or \"2GB\"\n"},
    {"takes no percentage over 100 of all memory",
     "{\"initial_size\": \"101% of total\", \"maximum_size\": \"unlimited\"}", 0,
     "/initial_size: 101% of total is more than 100%\n"},
    {"takes no word where none is allowed", "{\"cap\": \"unlimited\"}", 0,
     "/cap: \"unlimited\" is not a size; write bytes, \"512MiB\" or \"2GB\"\n"},
    {"takes no negative size", "{\"cap\": -1}", 0, "/cap: -1 is not a size; write bytes, \"512MiB\" or \"2GB\"\n"},
    {"takes no broken size", "{\"cap\": 0.5}", 0, "/cap: 0.5 is not a size; write bytes, \"512MiB\" or \"2GB\"\n"},
    {"takes no list for a size", "{\"cap\": [1]}", 0,
     "/cap: a list is not a size; write bytes, \"512MiB\" or \"2GB\"\n"},
    {"takes no null for a size", "{\"cap\": null}", 0,
     "/cap: null is not a size; write bytes, \"512MiB\" or \"2GB\"\n"},
    {"knows sizes that overflow", "{\"cap\": \"99999999999PB\"}", 0,
     "/cap: \"99999999999PB\" is too large for a size; the most is 8 EiB\n"},
    {"stops sizes at 8 EiB", "{\"cap\": \"9223372036854775808\"}", 0,
     "/cap: \"9223372036854775808\" is too large for a size; the most is 8 EiB\n"},
    {"takes no percentage of what is no share", "{\"size\": \"50%\"}", 0,
     "/size: \"50%\" is a percentage, which \"size\" cannot be; write bytes, \"512MiB\" or \"2GB\"\n"},
    {"takes no percentage over 100", "{\"initial_size\": \"100.5%\", \"maximum_size\": \"unlimited\"}", 0,
     "/initial_size: 100.5% is more than 100%\n"},
    {"compares no percentage over 100", "{\"initial_size\": \"150%\", \"maximum_size\": 600000}", 1000000,
     "/initial_size: 150% is more than 100%\n"},
    {"computes no percentage far over 100", "{\"initial_size\": \"9999999999999999999%\", \"maximum_size\": 600000}",
     1000000, "/initial_size: 9999999999999999999% is more than 100%\n"},
    {"bounds sizes", "{\"size\": \"255B\"}", 0, "/size: 255B is too little; the least is 256\n"},
    {"bounds sizes above", "{\"size\": \"2GiB\"}", 0, "/size: 2GiB is too much; the most is 1GiB\n"},
    {"compares percentages without a device", "{\"initial_size\": \"80%\", \"maximum_size\": \"60%\"}", 0,
     "/maximum_size: 60% is below initial_size (80%)\n"},
    {"compares bytes without a device", "{\"initial_size\": \"2GiB\", \"maximum_size\": 1073741824}", 0,
     "/maximum_size: 1073741824 is below initial_size (2GiB)\n"},
    {"blames the option given, not the default", "{\"initial_size\": \"95%\"}", 0,
     "/initial_size: 95% is above maximum_size (90% by default)\n"},
    {"compares percentages with bytes on a device", "{\"initial_size\": 600000, \"maximum_size\": \"50%\"}", 1000000,
     "/maximum_size: 50% is below initial_size (600000)\n"},
    {"wants a number for a ratio", "{\"ratio\": \"half\"}", 0, "/ratio: \"half\" is not a number\n"},
    {"bounds ratios", "{\"ratio\": 1.25}", 0, "/ratio: 1.25 is too much; the most is 1\n"},
    {"bounds ratios below", "{\"ratio\": -0.5}", 0, "/ratio: -0.5 is too little; the least is 0\n"},
    {"says what a duration is", "{\"delay\": 10}", 0,
     "/delay: 10 is not a duration; write \"10ms\" or \"1.5s\" (units: ns, us, ms, s, min, h)\n"},
    {"knows durations that overflow", "{\"delay\": \"9999999999h\"}", 0,
     "/delay: \"9999999999h\" is too long a time\n"},
    {"bounds durations", "{\"delay\": \"2h\"}", 0, "/delay: 2h is too much; the most is 1h\n"},
    {"names a near word", "{\"mode\": \"maped\"}", 0,
     "/mode: \"maped\" is not allowed; did you mean \"mapped\"? Write \"auto\", \"mapped\" or \"segments\"\n"},
    {"lists the words", "{\"mode\": 3}", 0, "/mode: 3 is not allowed; write \"auto\", \"mapped\" or \"segments\"\n"},
    {"wants a string", "{\"label\": {}}", 0, "/label: an object is not a string\n"},
    {"says how to write one string as a list", "{\"names\": \"x\"}", 0, "/names: \"x\" is not a list; write [\"x\"]\n"},
    {"wants a list of strings", "{\"names\": 5}", 0, "/names: 5 is not a list of strings\n"},
    {"wants strings in the list", "{\"names\": [\"x\", 5]}", 0, "/names: 5 in the list is not a string\n"},
    {"wants a list of objects", "{\"bins\": {}}", 0, "/bins: an object is not a list of objects\n"},
    {"finds every error of a list",
     "{\"bins\": [{\"size\": \"64KiB\", \"tags\": [\"kept\"]}, 5, {\"resource\": \"small\"}, {\"size\": \"x\"}, "
     "{\"size\": 1, \"sise\": 2}]}",
     0,
     "/bins/1: 5 is not an object; write {\"size\": \"512MiB\"}\n"
     "/bins/2: bins needs \"size\"; write \"size\": \"512MiB\"\n"
     "/bins/3/size: \"x\" is not a size; write bytes, \"512MiB\" or \"2GB\"\n"
     "/bins/4/sise: unknown option \"sise\" of bins; did you mean \"size\"?\n"},
    {"tells a misspelt option once, also where it is required", "{\"bins\": [{\"sise\": 1}]}", 0,
     "/bins/0/sise: unknown option \"sise\" of bins; did you mean \"size\"?\n"},
    {"tells a missing option beside a misspelt other", "{\"bins\": [{\"tag\": []}]}", 0,
     "/bins/0/tag: unknown option \"tag\" of bins; did you mean \"tags\"?\n"
     "/bins/0: bins needs \"size\"; write \"size\": \"512MiB\"\n"},
    {"shows no control characters", "{\"flag\": \"\\u009b1m\"}", 0, "/flag: \"\\u009b1m\" is neither true nor false\n"},
    {"wants a name for a resource", "{\"fallback\": 1}", 0, "/fallback: 1 is not the name of a resource\n"},
    {"wants a resource of that name", "{\"fallback\": \"smal\"}", 0, "/fallback: no resource is called \"smal\"\n"},
    {"finds every error, in the order of the file", "{\"ratio\": 7, \"names\": [\"kept\"], \"x\\ny\": 0, \"flag\": 0}",
     0,
     "/ratio: 7 is too much; the most is 1\n"
     "/x?y: unknown option \"x\\ny\" of thing; it has flag, count, size, initial_size, maximum_size, cap, ratio, "
     "delay, "
     "mode, label, note, names, bins, fallback, region\n"
     "/flag: 0 is neither true nor false\n"},
};

static void assert_said(const struct diagnostics *diagnostics, const char *prefix, const char *expected)
{
  char text[4096] = "", line[1024];
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next) {
    assert_int_equal(diagnostic->status, HIPMM_E_CONFIG);
    diagnostics_line(diagnostics, diagnostic, line, sizeof line);
    assert_memory_equal(line, prefix, strlen(prefix));
    strcat(strcat(text, line + strlen(prefix)), "\n");
  }
  assert_string_equal(text, expected);
}

static void refuses(void **state)
{
  const struct refusal *row = *state;
  struct diagnostics diagnostics;
  struct options options;
  json_t *object;
  assert_false(fill(row->json, row->free_bytes, &diagnostics, &options, &object));
  assert_said(&diagnostics, "/resources/x", row->said);
  json_decref(object);
  diagnostics_clear(&diagnostics);
}

static void leaves_mixed_sizes_to_the_device(void **state)
{
  struct diagnostics diagnostics;
  struct options options;
  json_t *object;
  (void)state;
  assert_true(fill("{\"initial_size\": 600000, \"maximum_size\": \"50%\"}", 0, &diagnostics, &options, &object));
  drop(&options, object, &diagnostics);
  assert_true(fill("{\"initial_size\": 600000, \"maximum_size\": \"unlimited\"}", 1, &diagnostics, &options, &object));
  drop(&options, object, &diagnostics);
}

static void wants_what_is_required(void **state)
{
  struct diagnostics diagnostics = {0};
  struct bin bin;
  struct option_context context = {.diagnostics = &diagnostics, .path = "/resources/x"};
  (void)state;
  assert_false(option_fill(bin_table, 3, NULL, &context, &bin));
  assert_said(&diagnostics, "/resources/x", ": this object needs \"size\"; write \"size\": \"512MiB\"\n");
  diagnostics_clear(&diagnostics);
}

static void leaves_names_alone_when_only_checking(void **state)
{
  struct diagnostics diagnostics = {0};
  struct options options;
  json_t *object = json_loads("{\"fallback\": \"anything\"}", 0, NULL);
  struct option_context context = {.diagnostics = &diagnostics, .path = ""};
  (void)state;
  assert_true(option_fill(table, N_ROWS, object, &context, &options));
  assert_null(options.fallback);
  drop(&options, object, &diagnostics);
}

static void note_reference(void *closure, const char *name, const char *relative_path)
{
  strcat(strcat(strcat(strcat(closure, name), " at "), relative_path), "\n");
}

static void finds_references(void **state)
{
  char text[512] = "";
  json_t *object = json_loads("{\"fallback\": \"f\", \"bins\": [{\"resource\": \"a\"}, 5, {\"resource\": 6}, {}, "
                              "{\"resource\": \"b\"}], \"label\": \"no\"}",
                              0, NULL);
  (void)state;
  option_references(table, N_ROWS, object, note_reference, text);
  assert_string_equal(text, "a at /bins/0/resource\nb at /bins/4/resource\nf at /fallback\n");
  json_decref(object);
}

static void lays_the_environment_over(void **state)
{
  struct diagnostics diagnostics = {0};
  struct options options;
  json_t *object = json_loads("{\"count\": 3, \"ratio\": 0.25}", 0, NULL);
  struct option_context context = {.diagnostics = &diagnostics, .path = "HIPMM_THING"};
  (void)state;
  assert_true(option_overlay(table, N_ROWS, "HIPMM_THING",
                             "count=5,flag=false,size=16KiB,delay=1s,mode=auto,label=a=b,names=x;y:3;z", object,
                             &diagnostics));
  assert_true(option_overlay(table, N_ROWS, "HIPMM_THING", "", object, &diagnostics));
  assert_true(option_fill(table, N_ROWS, object, &context, &options));
  assert_int_equal(options.count, 5);
  assert_int_equal(options.flag, 0);
  assert_int_equal(options.size, 16384);
  assert_true(options.ratio == 0.25);
  assert_int_equal(options.delay, 1000000000);
  assert_int_equal(options.mode, 0);
  assert_string_equal(options.label, "a=b");
  assert_int_equal(options.names.count, 3);
  assert_string_equal(options.names.items[1], "y:3");
  drop(&options, object, &diagnostics);
}

static void assert_overlay(const char *json, const char *expected)
{
  json_t *object = json_loads(json, 0, NULL);
  char *text = option_overlay_text(object, "type");
  if (expected)
    assert_string_equal(text, expected);
  else
    assert_null(text);
  free(text);
  json_decref(object);
}

static void writes_an_object_as_an_environment(void **state)
{
  (void)state;
  assert_overlay("{}", "");
  assert_overlay("{\"type\": \"thing\", \"count\": 3, \"flag\": false, \"label\": \"a=b\", \"names\": [\"x\", \"y\"]}",
                 "count=3,flag=false,label=a=b,names=x;y");
  assert_overlay("{\"bins\": {}, \"count\": 3}", NULL); /* no text is an object */
  assert_overlay("{\"names\": [1], \"count\": 3}", NULL);
  assert_overlay("{\"label\": \"a,b\", \"count\": 3}", NULL);
}

static void refuses_broken_environments(void **state)
{
  struct diagnostics diagnostics = {0};
  struct options options;
  json_t *object = json_object();
  struct option_context context = {.diagnostics = &diagnostics, .path = "", .owner = "thing"};
  (void)state;
  assert_false(option_overlay(table, N_ROWS, "HIPMM_THING", "count=1,,flag,=3,label=\xff", object, &diagnostics));
  assert_true(option_overlay(table, N_ROWS, "HIPMM_THING", "count=two,cuont=3", object, &diagnostics));
  assert_false(option_fill(table, N_ROWS, object, &context, &options));
  assert_said(&diagnostics, "",
              "HIPMM_THING: \"\" is not KEY=VALUE; separate several with commas\n"
              "HIPMM_THING: \"flag\" is not KEY=VALUE; separate several with commas\n"
              "HIPMM_THING: \"=3\" is not KEY=VALUE; separate several with commas\n"
              "HIPMM_THING: \"label=\xff\" is not valid UTF-8\n"
              "/count: \"two\" is not a whole number\n"
              "/cuont: unknown option \"cuont\" of thing; did you mean \"count\"?\n");
  json_decref(object);
  diagnostics_clear(&diagnostics);
}

static void assert_current(const char *name, const json_t *object, const char *expected, bool expected_given)
{
  bool given = !expected_given;
  for (size_t i = 0; i < N_ROWS; i++) {
    if (strcmp(table[i].name, name)) continue;
    json_t *value = option_current(&table[i], object, &given);
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    assert_string_equal(text, expected);
    free(text);
    json_decref(value);
  }
  assert_int_equal(given, expected_given);
}

static void tells_what_is_current(void **state)
{
  json_t *object = json_loads("{\"count\": 3}", 0, NULL);
  (void)state;
  assert_current("count", object, "3", true);
  assert_current("count", NULL, "128", false);
  assert_current("flag", object, "true", false);
  assert_current("size", object, "\"1MiB\"", false);
  assert_current("initial_size", object, "0", false);
  assert_current("ratio", object, "0.5", false);
  assert_current("names", object, "[\"one\", \"two\"]", false);
  assert_current("note", object, "null", false);
  json_decref(object);
}

static void assert_schema(const char *name, const char *expected)
{
  for (size_t i = 0; i < N_ROWS; i++) {
    if (strcmp(table[i].name, name)) continue;
    json_t *schema = option_schema(&table[i]);
    char *text = json_dumps(schema, JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(schema);
  }
}

static void describes_options_as_schema(void **state)
{
  (void)state;
  assert_schema("flag", "{\"type\":\"boolean\",\"title\":\"Flag\",\"description\":\"Whether\",\"examples\":[true,false]"
                        ",\"default\":true}");
  assert_schema("count", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"title\":\"Count\",\"description\":"
                         "\"How many (in blocks)\","
                         "\"examples\":[128],\"default\":128}");
  assert_schema("delay", "{\"type\":\"string\",\"pattern\":\"^[0-9]+(\\\\.[0-9]*)?[ \\\\t]*(ns|us|ms|s|min|h)$\","
                         "\"title\":\"Delay\",\"description\":\"A while; at most 1h\",\"examples\":[\"10ms\",\"1s\"],"
                         "\"default\":\"10ms\"}");
  assert_schema("mode", "{\"enum\":[\"auto\",\"mapped\",\"segments\"],\"title\":\"Mode\",\"description\":\"How\","
                        "\"examples\":[\"mapped\",\"auto\",\"segments\"],\"default\":\"mapped\"}");
  assert_schema("region",
                "{\"type\":\"string\",\"pattern\":\"^[A-Za-z_.-][A-Za-z0-9_.-]*$\",\"maxLength\":100,"
                "\"title\":\"Region\",\"description\":\"Where; a name given to hipmm_region_register(); may be set "
                "while in use\",\"examples\":[\"mine\"]}");
  assert_schema("note", "{\"type\":\"string\",\"title\":\"Note\"}");
  assert_schema("size", "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":256,\"maximum\":1073741824},"
                        "{\"type\":\"string\",\"pattern\":\"^[0-9]+(\\\\.[0-9]*)?[ \\\\t]*([kKmMgGtTpP]?[iI]?[bB])?$\","
                        "\"not\":{\"pattern\":\"^[0.]*[^0-9.]*$\"}}],"
                        "\"title\":\"Size\",\"description\":\"How large; at least 256; at most 1GiB\","
                        "\"examples\":[\"1MiB\",\"64MiB\"],\"default\":\"1MiB\"}");
  for (size_t i = 0; i < N_ROWS; i++) json_decref(option_schema(&table[i]));
}

static void names_its_types(void **state)
{
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) assert_string_not_equal(option_type_name(table[i].type), "unknown");
  assert_string_equal(option_type_name(HIPMM_OPTION_BYTES), "bytes");
  assert_string_equal(option_type_name(0), "unknown");
  assert_string_equal(option_type_name(UINT32_MAX), "unknown");
}

static void refuses_types_that_it_does_not_know(void **state)
{
  static const struct hipmm_option odd[] = {{.name = "odd", .type = 99}};
  struct diagnostics diagnostics = {0};
  struct options options;
  json_t *object = json_loads("{\"odd\": 1}", 0, NULL);
  struct option_context context = {.diagnostics = &diagnostics, .path = ""};
  (void)state;
  assert_false(option_fill(odd, 1, object, &context, &options));
  assert_said(&diagnostics, "", "/odd: hipmm does not know options of type 99\n");
  json_decref(object);
  diagnostics_clear(&diagnostics);
}

int main(void)
{
  enum { N_REFUSALS = sizeof refusals / sizeof *refusals, N_PLAIN = 17 };
  static const struct CMUnitTest plain[N_PLAIN] = {
      {"fills in defaults", fills_defaults, NULL, NULL, NULL},
      {"reads every type", reads_every_type, NULL, NULL, NULL},
      {"takes percentages of the free memory in whole blocks", takes_whole_percentages_of_free_memory, NULL, NULL,
       NULL},
      {"takes percentages of all memory", takes_percentages_of_all_memory, NULL, NULL, NULL},
      {"gives each rank its share", gives_each_rank_its_share, NULL, NULL, NULL},
      {"wants to know the ranks of a share", wants_to_know_the_ranks_of_a_share, NULL, NULL, NULL},
      {"leaves sizes of mixed kinds to the device", leaves_mixed_sizes_to_the_device, NULL, NULL, NULL},
      {"wants what is required", wants_what_is_required, NULL, NULL, NULL},
      {"leaves names of resources alone when only checking", leaves_names_alone_when_only_checking, NULL, NULL, NULL},
      {"finds the resources that options name", finds_references, NULL, NULL, NULL},
      {"lays the environment over an object", lays_the_environment_over, NULL, NULL, NULL},
      {"writes an object as an environment", writes_an_object_as_an_environment, NULL, NULL, NULL},
      {"refuses broken environments", refuses_broken_environments, NULL, NULL, NULL},
      {"tells what is in force", tells_what_is_current, NULL, NULL, NULL},
      {"describes options as JSON Schema", describes_options_as_schema, NULL, NULL, NULL},
      {"names its types", names_its_types, NULL, NULL, NULL},
      {"refuses types that it does not know", refuses_types_that_it_does_not_know, NULL, NULL, NULL},
  };
  struct CMUnitTest tests[N_PLAIN + N_REFUSALS];
  memcpy(tests, plain, sizeof plain);
  for (size_t i = 0; i < N_REFUSALS; i++)
    tests[N_PLAIN + i] = (struct CMUnitTest){refusals[i].name, refuses, NULL, NULL, (void *)&refusals[i]};
  return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
