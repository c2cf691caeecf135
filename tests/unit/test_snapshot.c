/* SPDX-License-Identifier: MIT */
/* Tests of core/inspect/values.c and snapshot.c: what lives, as JSON that can be read again, with numbers
 * that agree with what was done. */
#include "../../core/runtime/hip.h"
#include "../support/fixture.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *parse(char *text)
{
  json_error_t error;
  json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
  if (!value) print_error("%s: %s\n", text, error.text);
  hipmm_string_free(text);
  assert_non_null(value);
  return value;
}

static json_t *list(const char *prefix)
{
  char *text = NULL;
  assert_ok(hipmm_list(prefix, &text));
  return parse(text);
}

static json_t *snapshot(void)
{
  char *text = NULL;
  assert_ok(hipmm_snapshot(&text));
  return parse(text);
}

/* The entry of a path; NULL if it is not in the list. */
static json_t *entry(json_t *entries, const char *path)
{
  for (size_t i = 0; i < json_array_size(entries); i++) {
    json_t *one = json_array_get(entries, i);
    if (!strcmp(json_string_value(json_object_get(one, "path")), path)) return one;
  }
  return NULL;
}

static void assert_number(json_t *object, const char *key, json_int_t expected)
{
  json_t *value = json_object_get(object, key);
  if (!json_is_integer(value)) fail_msg("no number \"%s\"", key);
  if (json_integer_value(value) != expected)
    fail_msg("%s is %lld, not %lld", key, (long long)json_integer_value(value), (long long)expected);
}

static void assert_string(json_t *object, const char *key, const char *expected)
{
  const char *value = json_string_value(json_object_get(object, key));
  assert_non_null(value);
  assert_string_equal(value, expected);
}

static void assert_sum(json_t *object, const char *key, json_int_t bytes, json_int_t blocks)
{
  assert_number(json_object_get(object, key), "bytes", bytes);
  assert_number(json_object_get(object, key), "blocks", blocks);
}

static void assert_fragmentation(json_t *memory, double expected)
{
  double difference = json_real_value(json_object_get(memory, "fragmentation")) - expected;
  assert_true(difference < 1e-8 && difference > -1e-8);
}

/* ---- The list ---- */

static void lists_values_and_options(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'variable_plugin', 'level': 7}, {'type': 'limiting', 'limit': '1MiB'}, 'device']");
  json_t *all = list(NULL), *level = entry(all, "devices/0/variable_plugin/level"), *now, *limit, *held;
  assert_string(level, "kind", "option");
  assert_number(level, "value", 7);
  assert_true(json_is_false(json_object_get(level, "default")));
  assert_true(json_is_true(json_object_get(level, "reloadable")));
  assert_string(level, "type", "integer");
  now = entry(all, "devices/0/variable_plugin/level_now");
  assert_string(now, "kind", "value");
  assert_number(now, "value", 7);
  limit = entry(all, "devices/0/limiting/limit_bytes");
  assert_number(limit, "value", 1 << 20);
  assert_string(limit, "unit", "bytes");
  held = entry(all, "devices/0/held_bytes");
  assert_number(held, "value", 0);
  assert_true(json_is_true(json_object_get(entry(all, "devices/0/variable_plugin/fixed"), "default")));
  assert_true(json_is_false(json_object_get(entry(all, "devices/0/variable_plugin/fixed"), "reloadable")));
  assert_null(entry(all, "devices/1/held_bytes")); /* not built */
  json_decref(all);
}

/* Whatever is listed can be got, with the same value; and what is said to be reloadable can be set to what it is. */
static void lists_what_can_be_got(void **state)
{
  (void)state;
  fixture_start("'stack': ['statistics', {'type': 'variable_plugin', 'extents': [{'at': 4096, 'bytes': 256}]}, 'pool', "
                "'device']");
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  json_t *all = list("");
  assert_true(json_array_size(all) > 40);
  for (size_t i = 0; i < json_array_size(all); i++) {
    json_t *one = json_array_get(all, i);
    const char *path = json_string_value(json_object_get(one, "path"));
    char *text = NULL;
    assert_ok(hipmm_get(path, &text));
    json_t *got = parse(text);
    if (!json_equal(got, json_object_get(one, "value"))) fail_msg("%s is not what hipmm_get says", path);
    char *written = json_is_null(got) ? NULL : json_dumps(got, JSON_ENCODE_ANY);
    enum hipmm_status status = hipmm_set(path, written);
    bool reloadable = json_is_true(json_object_get(one, "reloadable"));
    if (reloadable && !strstr(path, "stubborn")) assert_ok(status);
    if (!reloadable) assert_int_not_equal(status, HIPMM_OK);
    free(written);
    json_decref(got);
  }
  json_decref(all);
}

static void lists_what_is_below_a_prefix(void **state)
{
  (void)state;
  fixture_start(
      "'resources': {'pool': {'type': 'pool', 'upstream': 'pool2'}, 'pool2': {'type': 'statistics', 'upstream': "
      "'device'}, 'device': {'type': 'device'}}");
  json_t *pool = list("devices/0/pool"), *one = list("devices/0/pool/initial_size");
  assert_true(json_array_size(pool) > 5);
  for (size_t i = 0; i < json_array_size(pool); i++)
    assert_ptr_equal(strstr(json_string_value(json_object_get(json_array_get(pool, i), "path")), "devices/0/pool/"),
                     json_string_value(json_object_get(json_array_get(pool, i), "path")));
  assert_int_equal(json_array_size(one), 1);
  json_decref(pool);
  json_decref(one);
}

static void lists_nothing_where_a_prefix_leads_nowhere(void **state)
{
  (void)state;
  static const struct {
    const char *prefix, *message;
    enum hipmm_status status;
  } rows[] = {
      {"devices/0/pol", "devices/0/pol: there is no resource \"pol\"; did you mean \"pool\"?", HIPMM_E_ARGUMENT},
      {"devices/0/pool/initial_sze", "there is no value \"initial_sze\" here; did you mean \"initial_size\"?",
       HIPMM_E_ARGUMENT},
      {"devices/0/held_byte", "there is no value \"held_byte\" here; did you mean \"held_bytes\"?", HIPMM_E_ARGUMENT},
      {"devices/zero", "devices/zero: there is no device \"zero\"", HIPMM_E_ARGUMENT},
      {"devices/9", "device 9 does not exist", HIPMM_E_NO_DEVICE},
      {"devices/1", "devices/1: the stack of device 1 is not built yet", HIPMM_E_STATE},
      {"device/0", "\"device/0\" is not a path", HIPMM_E_ARGUMENT},
      {"created/pool", "created/pool: there is no created resource \"pool\"", HIPMM_E_ARGUMENT},
  };
  fixture_start("'stack': ['pool', 'device']");
  fixture_resource("pool");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char *text = NULL;
    assert_status(hipmm_list(rows[i].prefix, &text), rows[i].status);
    assert_message(rows[i].message);
    assert_null(text);
  }
  json_t *devices = list("devices"), *device = list("devices/0"), *created = list("created");
  assert_int_equal(json_array_size(devices), json_array_size(device));
  assert_int_equal(json_array_size(created), 0);
  json_decref(devices);
  json_decref(device);
  json_decref(created);
}

/* ---- The snapshot ---- */

static uint64_t attribute_calls(void)
{
  uint64_t (*calls)(const char *name) = NULL;
  *(void **)&calls = hip_symbol("hipmm_software_calls");
  assert_non_null(calls);
  return calls("hipMemPoolGetAttribute");
}

/* A value may come from the driver, and be of a pool that the program has destroyed. */
static void lists_without_asking_other_resources(void **state)
{
  (void)state;
  needs_software();
  fixture_start("'resources': {'driver': {'type': 'async'}, 'top': {'type': 'statistics', 'upstream': 'driver'}}");
  fixture_resource("top");
  uint64_t before = attribute_calls();
  json_t *top = list("devices/0/top"), *one = list("devices/0/top/current_bytes"),
         *peak = list("devices/0/peak_held_bytes");
  assert_true(json_array_size(top) > 1 && json_array_size(one) == 1 && json_array_size(peak) == 1);
  assert_int_equal(attribute_calls(), before);
  json_t *now = list("devices/0/held_bytes");
  assert_true(attribute_calls() > before); /* what the driver's pool holds */
  before = attribute_calls();
  json_t *driver = list("devices/0/driver");
  assert_true(attribute_calls() > before);
  json_decref(top);
  json_decref(one);
  json_decref(peak);
  json_decref(now);
  json_decref(driver);
}

static void tells_of_every_stack(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'statistics'}, 'device']");
  struct hipmm_resource *above = NULL, *top = fixture_resource("statistics");
  assert_ok(hipmm_resource_create(0, "variable_plugin", "{\"level\": 3}", &top, 1, &above));
  void *memory = fixture_allocate(5000, NULL);
  json_t *all = snapshot(), *stacks = json_object_get(all, "stacks"), *first, *second, *resources;
  assert_string(all, "version", hipmm_version());
  assert_string(all, "runtime", "software");
  assert_int_equal(json_array_size(stacks), 2);
  first = json_array_get(stacks, 0), second = json_array_get(stacks, 1);
  assert_number(first, "device", 0);
  assert_string(first, "source", "<string>");
  assert_string(first, "top", "devices/0/statistics");
  assert_number(first, "held_bytes", 5000);
  resources = json_object_get(first, "resources");
  assert_int_equal(json_array_size(resources), 2);
  json_t *statistics = json_array_get(resources, 0), *device = json_array_get(resources, 1);
  assert_string(statistics, "type", "statistics");
  assert_string(statistics, "path", "devices/0/statistics");
  assert_string_equal(json_string_value(json_array_get(json_object_get(statistics, "below"), 0)), "devices/0/device");
  assert_number(json_object_get(statistics, "values"), "current_bytes", 5000);
  assert_sum(device, "held", 5000, 1);
  assert_null(json_object_get(device, "memory"));
  assert_string(second, "source", "<options>");
  json_t *made = json_array_get(json_object_get(second, "resources"), 0);
  assert_string(made, "path", "created/variable_plugin");
  assert_string_equal(json_string_value(json_array_get(json_object_get(made, "below"), 0)), "devices/0/statistics");
  json_t *level = json_object_get(json_object_get(made, "options"), "level");
  assert_number(level, "value", 3);
  assert_true(json_is_false(json_object_get(level, "default")));
  json_decref(all);
  fixture_free(memory, 5000, NULL);
  hipmm_resource_release(above);
}

static void tells_of_a_stack_of_before_without_a_path(void **state)
{
  (void)state;
  struct hipmm_resource *old = NULL;
  fixture_start("'stack': ['statistics', 'device']");
  assert_ok(hipmm_resource_get_for_device(0, &old));
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_init_from_string("{}"));
  json_t *all = snapshot(), *stacks = json_object_get(all, "stacks");
  assert_int_equal(json_array_size(stacks), 1);
  json_t *resource = json_array_get(json_object_get(json_array_get(stacks, 0), "resources"), 0);
  assert_string(resource, "name", "statistics");
  assert_true(json_is_null(json_object_get(resource, "path")));
  json_decref(all);
  json_t *none = list(NULL);
  json_decref(none);
  hipmm_resource_release(old);
}

/* ---- Memory ---- */

static json_t *memory_of(json_t *all)
{
  json_t *resources = json_object_get(json_array_get(json_object_get(all, "stacks"), 0), "resources");
  return json_object_get(json_array_get(resources, 0), "memory");
}

/* Two pieces of memory. In the first: free, two live blocks, free, a live and a pending one, free; in the second: live,
 * free. Not in the order of addresses. */
static const char pieces[] =
    "'stack': [{'type': 'variable_plugin', 'extents': ["
    "{'at': 1052672, 'bytes': 4000, 'stream': 1}, {'at': 1060864, 'bytes': 65536, 'state': 'free'},"
    "{'at': 65536, 'bytes': 4096, 'state': 'free'}, {'at': 69632, 'bytes': 1000, 'stream': 1},"
    "{'at': 70656, 'bytes': 1024, 'stream': 2}, {'at': 71680, 'bytes': 8192, 'state': 'free'},"
    "{'at': 79872, 'bytes': 256, 'stream': 2}, {'at': 80128, 'bytes': 512, 'stream': 2, 'state': 'pending'},"
    "{'at': 80640, 'bytes': 1024, 'state': 'free'}, {'at': 81664, 'bytes': 256, 'state': 'cached', 'stream': 1}"
    "]}, 'device']";

static void sums_memory_up(void **state)
{
  (void)state;
  fixture_start(pieces);
  json_t *all = snapshot(), *memory = memory_of(all), *streams = json_object_get(memory, "streams"), *stream;
  assert_sum(memory, "live", 4000 + 1000 + 1024 + 256, 4);
  assert_sum(memory, "free", 65536 + 4096 + 8192 + 1024, 4);
  assert_sum(memory, "pending", 512, 1);
  assert_sum(memory, "cached", 256, 1);
  assert_number(memory, "largest_free_bytes", 65536);
  assert_fragmentation(memory, 1 - 65536.0 / 78848.0);
  assert_int_equal(json_array_size(streams), 2);
  stream = json_array_get(streams, 0);
  assert_string(stream, "stream", "0x1");
  assert_sum(stream, "live", 5000, 2);
  assert_sum(stream, "cached", 256, 1);
  assert_sum(stream, "pending", 0, 0);
  stream = json_array_get(streams, 1);
  assert_string(stream, "stream", "0x2");
  assert_sum(stream, "live", 1280, 2);
  assert_sum(stream, "pending", 512, 1);
  json_decref(all);
}

static void names_the_blocks_that_keep_holes_apart(void **state)
{
  (void)state;
  fixture_start(pieces);
  json_t *all = snapshot(), *blockers = json_object_get(memory_of(all), "blockers"), *blocker, *block;
  assert_int_equal(json_array_size(blockers), 2); /* none across the two pieces */
  blocker = json_array_get(blockers, 0);
  assert_number(blocker, "joined_bytes", 79872 - 65536);
  assert_number(blocker, "below_bytes", 4096);
  assert_number(blocker, "above_bytes", 8192);
  assert_number(blocker, "n_blocks", 2);
  block = json_array_get(json_object_get(blocker, "blocks"), 0);
  assert_string(block, "address", "0x11000");
  assert_string(block, "stream", "0x1");
  assert_string(block, "state", "live");
  assert_number(block, "bytes", 1000);
  blocker = json_array_get(blockers, 1);
  assert_number(blocker, "joined_bytes", 81664 - 71680);
  assert_string(json_array_get(json_object_get(blocker, "blocks"), 1), "state", "pending");
  json_decref(all);
}

/* Addresses that touch are not enough: the second piece of memory begins where the first ends. */
static void joins_nothing_across_pieces(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'variable_plugin', 'extents': ["
                "{'at': 4096, 'bytes': 4096, 'state': 'free'}, {'at': 8192, 'bytes': 4096},"
                "{'at': 12288, 'bytes': 4096, 'state': 'free', 'apart': true},"
                "{'at': 16384, 'bytes': 8192, 'state': 'free', 'apart': true}, {'at': 24576, 'bytes': 256},"
                "{'at': 24832, 'bytes': 256, 'state': 'free'}]}, 'device']");
  json_t *all = snapshot(), *memory = memory_of(all), *blockers = json_object_get(memory, "blockers");
  assert_sum(memory, "free", 4096 + 4096 + 8192 + 256, 4);
  assert_number(memory, "largest_free_bytes", 8192);
  assert_int_equal(json_array_size(blockers), 1);
  assert_number(json_array_get(blockers, 0), "joined_bytes", 8192 + 256 + 256);
  json_decref(all);
}

/* Free memory of which a part can be moved is one hole; all that can be moved counts as one piece. */
/* Of a plugin of a later release. */
static void leaves_out_states_that_it_does_not_know(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'variable_plugin', 'extents': [{'at': 4096, 'bytes': 1024}, {'at': 8192, 'bytes': "
                "4096, 'state': 'later', 'stream': 5}, {'at': 12288, 'bytes': 512, 'state': 'free'}]}, 'device']");
  json_t *all = snapshot(), *memory = memory_of(all);
  assert_sum(memory, "live", 1024, 1);
  assert_sum(memory, "free", 512, 1);
  assert_sum(memory, "pending", 0, 0);
  assert_sum(memory, "cached", 0, 0);
  assert_int_equal(json_array_size(json_object_get(memory, "streams")), 1);
  json_decref(all);
}

static void counts_what_can_be_moved_as_one_piece(void **state)
{
  (void)state;
  fixture_start(
      "'stack': [{'type': 'variable_plugin', 'extents': ["
      "{'at': 4096, 'bytes': 1024, 'state': 'free'}, {'at': 5120, 'bytes': 8192, 'state': 'free', 'movable': true},"
      "{'at': 13312, 'bytes': 256}, {'at': 13568, 'bytes': 512, 'state': 'free'},"
      "{'at': 65536, 'bytes': 8192, 'state': 'free', 'movable': true, 'apart': true},"
      "{'at': 73728, 'bytes': 8192, 'state': 'pending', 'movable': true}]}, 'device']");
  json_t *all = snapshot(), *memory = memory_of(all), *blockers = json_object_get(memory, "blockers");
  assert_sum(memory, "free", 1024 + 8192 + 512 + 8192, 3);
  assert_number(memory, "largest_free_bytes", 16384);
  assert_fragmentation(memory, 1 - 16384.0 / 17920.0);
  assert_int_equal(json_array_size(blockers), 1);
  assert_number(json_array_get(blockers, 0), "below_bytes", 1024 + 8192);
  assert_number(json_array_get(blockers, 0), "joined_bytes", 1024 + 8192 + 256 + 512);
  json_decref(all);
}

/* More holes than are told of: the largest are. */
static void keeps_the_largest_of_many_holes(void **state)
{
  (void)state;
  char graph[8000] = "'stack': [{'type': 'variable_plugin', 'extents': [{'at': 4096, 'bytes': 256, 'state': 'free'}";
  for (int i = 1; i <= 40; i++) {
    size_t used = strlen(graph);
    int at = 4096 + 16384 * i; /* of a hole; before it, live from the last one on */
    snprintf(graph + used, sizeof graph - used, ", {'at': %d, 'bytes': %d}, {'at': %d, 'bytes': %d, 'state': 'free'}",
             4096 + 256 + 16384 * (i - 1), 16384 - 256, at, 256);
  }
  strcat(graph, "]}, 'device']");
  fixture_start(graph);
  json_t *all = snapshot(), *blockers = json_object_get(memory_of(all), "blockers");
  assert_int_equal(json_array_size(blockers), 8);
  for (size_t i = 0; i < 8; i++) assert_number(json_array_get(blockers, i), "joined_bytes", 16384 + 256);
  assert_fragmentation(memory_of(all), 1 - 1.0 / 41);
  json_decref(all);
}

static void orders_holes_by_what_would_be_gained(void **state)
{
  (void)state;
  char graph[8000] = "'stack': [{'type': 'variable_plugin', 'extents': [{'at': 65536, 'bytes': 256, 'state': 'free'}";
  int at = 65536 + 256;
  for (int i = 1; i <= 20; i++) {
    size_t used = strlen(graph);
    int hole = 256 * (1 + (i * 7) % 20);
    snprintf(graph + used, sizeof graph - used, ", {'at': %d, 'bytes': 256}, {'at': %d, 'bytes': %d, 'state': 'free'}",
             at, at + 256, hole);
    at += 256 + hole;
  }
  strcat(graph, "]}, 'device']");
  fixture_start(graph);
  json_t *all = snapshot(), *blockers = json_object_get(memory_of(all), "blockers");
  json_int_t before = INT64_MAX, largest = 0;
  for (int i = 1; i < 20; i++) {
    json_int_t joined = 256 * (3 + (i * 7) % 20 + ((i + 1) * 7) % 20);
    if (joined > largest) largest = joined;
  }
  assert_int_equal(json_array_size(blockers), 8);
  for (size_t i = 0; i < 8; i++) {
    json_int_t joined = json_integer_value(json_object_get(json_array_get(blockers, i), "joined_bytes"));
    if (!i) assert_int_equal(joined, largest);
    assert_true(joined <= before);
    before = joined;
  }
  json_decref(all);
}

static json_int_t bytes_in(json_t *memory, const char *state)
{
  return json_integer_value(json_object_get(json_object_get(memory, state), "bytes"));
}

/* What fixed_size shows agrees with what it counts, and with what was done. */
static void agrees_with_a_sub_allocator(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '64KiB', 'blocks_to_preallocate': 8}, 'device']");
  hipmm_stream_t stream = fixture_stream();
  void *kept = fixture_allocate(1000, NULL), *other = fixture_allocate(65536, stream),
       *freed = fixture_allocate(2000, NULL);
  fixture_free(freed, 2000, NULL);
  json_t *all = snapshot(), *memory = memory_of(all);
  assert_sum(memory, "live", 66536, 2);
  json_int_t idle = bytes_in(memory, "free") + bytes_in(memory, "pending") + bytes_in(memory, "cached");
  assert_int_equal(idle, 6 * 65536);
  assert_int_equal(fixture_value("fixed_size", "free_count"), 6);
  json_decref(all);
  fixture_free(kept, 1000, NULL);
  fixture_free(other, 65536, stream);
  fixture_drop_stream(stream);
}

/* ---- The pool, with memory in several places ---- */

static void *blocks[16];

static void fill_pool(const char *options, size_t bytes, int n)
{
  char graph[200];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', %s}, 'device']", options);
  fixture_start(graph);
  for (int i = 0; i < n; i++) blocks[i] = fixture_allocate(bytes, NULL);
}

/* Frees all but one, and sees to it that no work uses what is free, which the pool keeps. */
static void free_all_but(int kept, size_t bytes, int n)
{
  for (int i = 0; i < n; i++)
    if (i != kept) fixture_free(blocks[i], bytes, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("pool"), 64 * MIB));
}

static json_t *pins_of(json_t *memory)
{
  return json_object_get(memory, "blockers");
}

/* Each block is a segment of its own: nothing is gained when one ends, wherever the device put them. */
static void joins_no_segments(void **state)
{
  (void)state;
  fill_pool("'growth': 'segments'", 2 * MIB, 4);
  assert_int_equal(fixture_value("pool", "chunks"), 4);
  bool touch = false;
  for (int i = 0; i < 3; i++) touch |= (char *)blocks[i] + 2 * MIB == (char *)blocks[i + 1];
  assert_true(touch || getenv("HIPMM_RUNTIME")); /* or this says nothing */
  free_all_but(1, 2 * MIB, 4);
  json_t *all = snapshot(), *memory = memory_of(all);
  assert_sum(memory, "free", 6 * MIB, 3);
  assert_number(memory, "largest_free_bytes", 2 * MIB);
  assert_int_equal(json_array_size(pins_of(memory)), 0);
  json_decref(all);
  fixture_free(blocks[1], 2 * MIB, NULL);
}

static void joins_blocks_of_a_segment(void **state)
{
  (void)state;
  fill_pool("'growth': 'segments', 'initial_size': '8MiB'", 2 * MIB, 4);
  free_all_but(1, 2 * MIB, 4);
  json_t *all = snapshot(), *memory = memory_of(all), *blocker = json_array_get(pins_of(memory), 0);
  assert_number(memory, "largest_free_bytes", 4 * MIB);
  assert_int_equal(json_array_size(pins_of(memory)), 1);
  assert_number(blocker, "joined_bytes", 8 * MIB);
  assert_number(blocker, "below_bytes", 2 * MIB);
  assert_number(blocker, "above_bytes", 4 * MIB);
  json_decref(all);
  fixture_free(blocks[1], 2 * MIB, NULL);
}

/* A block in the midst keeps the granule that it lies in, and no more: what is said to be had in one piece can be. */
static void counts_idle_granules_as_one_piece(void **state)
{
  (void)state;
  fill_pool("'growth': 'mapped', 'slack': 0", MIB, 12);
  free_all_but(5, MIB, 12);
  json_t *all = snapshot(), *memory = memory_of(all), *blocker = json_array_get(pins_of(memory), 0);
  json_int_t largest = json_integer_value(json_object_get(memory, "largest_free_bytes")), free_bytes;
  free_bytes = bytes_in(memory, "free");
  assert_int_equal(free_bytes, fixture_value("pool", "free_bytes"));
  assert_true(largest > (json_int_t)(6 * MIB) && largest < free_bytes); /* more than on either side of the block */
  assert_int_equal(json_array_size(pins_of(memory)), 1);
  assert_number(blocker, "below_bytes", 5 * MIB);
  assert_string(json_array_get(json_object_get(blocker, "blocks"), 0), "state", "live");
  json_decref(all);
  size_t held = fixture_held_bytes();
  fixture_free(fixture_allocate((size_t)largest, NULL), (size_t)largest, NULL);
  assert_int_equal(fixture_held_bytes(), held);
  fixture_free(blocks[5], MIB, NULL);
}

/* Pieces that were moved leave addresses without memory behind: those are shown nowhere, and join nothing. */
static void joins_nothing_across_addresses_without_memory(void **state)
{
  (void)state;
  fill_pool("'growth': 'mapped', 'slack': 0", 2 * MIB, 6);
  for (int i = 0; i < 6; i += 2) fixture_free(blocks[i], 2 * MIB, NULL);
  void *moved = fixture_allocate(6 * MIB, NULL); /* out of the three holes */
  assert_true(fixture_value("pool", "moves") > 0);
  assert_int_equal(fixture_held_bytes(), 12 * MIB);
  fixture_free(moved, 6 * MIB, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("pool"), 64 * MIB));
  json_t *all = snapshot(), *memory = memory_of(all);
  assert_number(json_object_get(memory, "live"), "bytes", 6 * MIB);
  assert_int_equal(bytes_in(memory, "free"), 6 * MIB);
  assert_number(memory, "largest_free_bytes", 6 * MIB);
  assert_fragmentation(memory, 0);
  assert_int_equal(json_array_size(pins_of(memory)), 0);
  json_decref(all);
  for (int i = 1; i < 6; i += 2) fixture_free(blocks[i], 2 * MIB, NULL);
}

static void has_nothing_free_and_no_fragmentation(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'variable_plugin', 'extents': [{'at': 4096, 'bytes': 256}]}, 'device']");
  json_t *all = snapshot();
  assert_true(json_real_value(json_object_get(memory_of(all), "fragmentation")) == 0);
  assert_int_equal(json_array_size(json_object_get(memory_of(all), "blockers")), 0);
  json_decref(all);
}

/* ---- Wrong calls and states ---- */

static void refuses_what_cannot_be(void **state)
{
  (void)state;
  char *text = NULL;
  assert_status(hipmm_snapshot(&text), HIPMM_E_STATE);
  assert_status(hipmm_list(NULL, &text), HIPMM_E_STATE);
  fixture_start("'stack': ['device']");
  assert_status(hipmm_snapshot(NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_list(NULL, NULL), HIPMM_E_ARGUMENT);
  assert_null(text);
}

static int look_in_child(const void *unused)
{
  char *text;
  (void)unused;
  alarm(20);
  return hipmm_snapshot(&text) != HIPMM_E_STATE || hipmm_list(NULL, &text) != HIPMM_E_STATE;
}

static void is_refused_in_the_child_of_a_fork(void **state)
{
  (void)state;
  fixture_start("'stack': ['device']");
  assert_int_equal(run_forked(look_in_child, NULL).status, 0);
}

/* ---- Threads ---- */

static atomic_int wrong;
static atomic_bool done;

static void *look_often(void *unused)
{
  (void)unused;
  while (!done) {
    char *text = NULL;
    json_t *value;
    if (hipmm_snapshot(&text) || !(value = json_loads(text, 0, NULL))) {
      wrong++;
      continue;
    }
    json_decref(value);
    hipmm_string_free(text);
  }
  return NULL;
}

static void looks_while_others_work(void **state)
{
  (void)state;
  pthread_t threads[2];
  fixture_start("'stack': ['statistics', {'type': 'pool', 'growth': 'segments'}, 'device']");
  struct hipmm_resource *top = fixture_resource("statistics");
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, look_often, NULL), 0);
  for (int i = 0; i < 150; i++) {
    struct hipmm_resource *made = NULL;
    void *memory = fixture_allocate(1000 + (size_t)i, NULL);
    assert_ok(hipmm_resource_create(0, "statistics", NULL, &top, 1, &made));
    hipmm_resource_release(made);
    fixture_free(memory, 1000 + (size_t)i, NULL);
  }
  done = true;
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_int_equal(wrong, 0);
}

#define snapshot_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
  use_test_plugins();
  const struct CMUnitTest tests[] = {
      snapshot_test(lists_values_and_options),
      snapshot_test(lists_what_can_be_got),
      snapshot_test(lists_what_is_below_a_prefix),
      snapshot_test(lists_without_asking_other_resources),
      snapshot_test(lists_nothing_where_a_prefix_leads_nowhere),
      snapshot_test(tells_of_every_stack),
      snapshot_test(tells_of_a_stack_of_before_without_a_path),
      snapshot_test(sums_memory_up),
      snapshot_test(names_the_blocks_that_keep_holes_apart),
      snapshot_test(joins_nothing_across_pieces),
      snapshot_test(leaves_out_states_that_it_does_not_know),
      snapshot_test(counts_what_can_be_moved_as_one_piece),
      snapshot_test(joins_no_segments),
      snapshot_test(joins_blocks_of_a_segment),
      snapshot_test(counts_idle_granules_as_one_piece),
      snapshot_test(joins_nothing_across_addresses_without_memory),
      snapshot_test(keeps_the_largest_of_many_holes),
      snapshot_test(orders_holes_by_what_would_be_gained),
      snapshot_test(agrees_with_a_sub_allocator),
      snapshot_test(has_nothing_free_and_no_fragmentation),
      snapshot_test(refuses_what_cannot_be),
      snapshot_test(is_refused_in_the_child_of_a_fork),
      snapshot_test(looks_while_others_work),
  };
  return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
