/* SPDX-License-Identifier: MIT */
/* Tests of core/inspect/settings.c and path.c, and of core/stack/instance_options.c: values read and options set by
 * path, while threads use what is set. */
#include "../../core/option/registry.h"
#include "../support/fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "devices/0/variable_plugin"

static int start(void **state)
{
  fixture_setup(state);
  fixture_start("'stack': [{'type': 'variable_plugin', 'level': 7}, 'statistics', 'device']");
  return 0;
}

static int64_t number(const char *path)
{
  int64_t value = -1;
  assert_ok(hipmm_query(path, &value));
  return value;
}

static void assert_text(const char *path, const char *expected)
{
  char *text = NULL;
  assert_ok(hipmm_get(path, &text));
  assert_string_equal(text, expected);
  hipmm_string_free(text);
}

/* ---- Reading ---- */

static void reads_values_by_path(void **state)
{
  (void)state;
  void *memory = fixture_allocate(5000, NULL);
  assert_int_equal(number("devices/0/statistics/current_bytes"), 5000);
  assert_int_equal(number("devices/0/held_bytes"), 5000);
  fixture_free(memory, 5000, NULL);
  assert_int_equal(number("devices/0/held_bytes"), 0);
  assert_int_equal(number("devices/0/peak_held_bytes"), 5000);
  assert_text("devices/0/peak_held_bytes", "5000");
  assert_text("devices/0/statistics/peak_bytes", "5000");
}

static void reads_values_of_created_resources(void **state)
{
  (void)state;
  struct hipmm_resource *first = NULL, *second = NULL, *above = NULL;
  assert_ok(hipmm_resource_create(1, "device", NULL, NULL, 0, &first));
  assert_ok(hipmm_resource_create(1, "statistics", NULL, &first, 1, &second));
  assert_ok(hipmm_resource_create(1, "statistics", NULL, &second, 1, &above));
  void *memory;
  assert_ok(hipmm_allocate(above, 300, NULL, &memory));
  assert_int_equal(number("created/statistics/total_bytes"), 300);
  assert_int_equal(number("created/statistics.2/total_bytes"), 300);
  assert_ok(hipmm_deallocate(above, memory, 300, NULL));
  struct hipmm_resource *all[] = {first, second, above};
  for (int i = 0; i < 3; i++) hipmm_resource_release(all[i]);
  int64_t value = 5;
  assert_status(hipmm_query("created/statistics/total_bytes", &value), HIPMM_E_ARGUMENT);
  assert_message("created/statistics/total_bytes: there is no created resource \"statistics\"");
  assert_int_equal(value, 5);
}

static void reads_current_options(void **state)
{
  (void)state;
  assert_text(PATH "/level", "7");
  assert_text(PATH "/size", "\"50%\"");
  assert_text(PATH "/label", "null");
  assert_text(PATH "/level_now", "7"); /* a value */
}

struct lost {
  const char *path, *message;
  enum hipmm_status status;
};

static const struct lost lost[] = {
    {"", "\"\" is not a path; write \"devices/0/pool/reserved_bytes\"", HIPMM_E_ARGUMENT},
    {"devices", "\"devices\" is not a path", HIPMM_E_ARGUMENT},
    {"devices/0", "\"devices/0\" is not a path", HIPMM_E_ARGUMENT},
    {"device/0/variable_plugin/level_now", "is not a path", HIPMM_E_ARGUMENT},
    {"devices/0/", "is not a path", HIPMM_E_ARGUMENT},
    {"devices/0/variable_plugin/", "is not a path", HIPMM_E_ARGUMENT},
    {"devices/0/variable_plugin/level_now/more", "is not a path", HIPMM_E_ARGUMENT},
    {"devices/0//level_now", "there is no resource \"\"", HIPMM_E_ARGUMENT},
    {"devices/00/variable_plugin/level_now", "there is no device \"00\"", HIPMM_E_ARGUMENT},
    {"devices/-1/variable_plugin/level_now", "there is no device \"-1\"", HIPMM_E_ARGUMENT},
    {"devices/zero/variable_plugin/level_now", "there is no device \"zero\"", HIPMM_E_ARGUMENT},
    {"devices/99999999999/variable_plugin/level_now", "there is no device \"99999999999\"", HIPMM_E_ARGUMENT},
    {"devices/2/variable_plugin/level_now", "device 2 does not exist: runtime software has 2", HIPMM_E_NO_DEVICE},
    {"devices/1/variable_plugin/level_now", "the stack of device 1 is not built yet", HIPMM_E_STATE},
    {"devices/0/variable_plugni/level_now",
     "there is no resource \"variable_plugni\"; did you mean \"variable_plugin\"?", HIPMM_E_ARGUMENT},
    {"devices/0/variable_plugin/levelnow", "there is no value \"levelnow\" here; did you mean \"level_now\"?",
     HIPMM_E_ARGUMENT},
    {"devices/0/hold_bytes", "there is no value \"hold_bytes\" here; did you mean \"held_bytes\"?", HIPMM_E_ARGUMENT},
    {"created/pool/level_now", "there is no created resource \"pool\"", HIPMM_E_ARGUMENT},
};

static void says_where_a_path_gets_lost(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
    int64_t value = 5;
    char *text = NULL;
    assert_status(hipmm_query(lost[i].path, &value), lost[i].status);
    assert_message(lost[i].message);
    assert_status(hipmm_get(lost[i].path, &text), lost[i].status);
    assert_message(lost[i].message);
    assert_int_equal(value, 5);
    assert_null(text);
  }
}

/* A resource of another device's stack alone is not offered. */
static void proposes_only_what_is_there(void **state)
{
  (void)state;
  int64_t value;
  assert_ok(hipmm_finalize());
  fixture_start(
      "'resources': {'memory': {'type': 'device'}, 'pool': {'type': 'pool', 'upstream': 'memory'}}, 'devices': "
      "{'default': 'memory', '1': 'pool'}");
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_status(hipmm_query("devices/0/poll/live_bytes", &value), HIPMM_E_ARGUMENT);
  assert_message("there is no resource \"poll\"");
  assert_null(strstr(hipmm_last_error_message(), "did you mean"));
  assert_status(hipmm_query("devices/0/memroy/live_bytes", &value), HIPMM_E_ARGUMENT);
  assert_message("did you mean \"memory\"?");
}

static void survives_an_endless_path(void **state)
{
  (void)state;
  int64_t value;
  char path[5000] = "devices/0/";
  memset(path + 10, 'x', sizeof path - 11);
  path[sizeof path - 1] = '\0';
  assert_status(hipmm_query(path, &value), HIPMM_E_ARGUMENT);
  path[3000] = '/';
  assert_status(hipmm_query(path, &value), HIPMM_E_ARGUMENT);
  assert_status(hipmm_set(path, "1"), HIPMM_E_ARGUMENT);
}

/* ---- Setting ---- */

static void sets_an_option_while_it_is_in_use(void **state)
{
  (void)state;
  assert_ok(hipmm_set(PATH "/level", "42"));
  assert_int_equal(number(PATH "/level_now"), 42);
  assert_text(PATH "/level", "42");
  assert_ok(hipmm_set(PATH "/label", "plain text"));
  assert_int_equal(number(PATH "/label_length"), 10);
  assert_int_equal(number(PATH "/level_now"), 42); /* what was set before stays set */
  assert_ok(hipmm_set(PATH "/label", "\"JSON \\u0041\""));
  assert_int_equal(number(PATH "/label_length"), 6);
  assert_text(PATH "/label", "\"JSON A\"");
  assert_ok(hipmm_set(PATH "/size", "2MiB"));
  assert_int_equal(number(PATH "/size_now"), 2 * MIB);
  assert_ok(hipmm_set(PATH "/size", "\"3MiB\""));
  assert_int_equal(number(PATH "/size_now"), 3 * MIB);
  assert_ok(hipmm_set(PATH "/size", "4194304"));
  assert_int_equal(number(PATH "/size_now"), 4 * MIB);
  assert_ok(hipmm_set(PATH "/level", NULL)); /* its default */
  assert_int_equal(number(PATH "/level_now"), 5);
  assert_ok(hipmm_set(PATH "/label", NULL));
  assert_int_equal(number(PATH "/label_length"), -1);
}

static void sets_an_option_of_a_created_resource(void **state)
{
  (void)state;
  struct hipmm_resource *device = NULL, *variable_plugin = NULL;
  assert_ok(hipmm_resource_create(0, "device", NULL, NULL, 0, &device));
  assert_ok(hipmm_resource_create(0, "variable_plugin", "{\"level\": 1}", &device, 1, &variable_plugin));
  assert_ok(hipmm_set("created/variable_plugin/level", "2"));
  assert_int_equal(number("created/variable_plugin/level_now"), 2);
  assert_int_equal(number(PATH "/level_now"), 7);
  hipmm_resource_release(variable_plugin);
  hipmm_resource_release(device);
}

/* The percentage that is in force already does not change with what is free. */
static void leaves_percentages_as_they_were(void **state)
{
  (void)state;
  int64_t size = number(PATH "/size_now");
  void *memory = fixture_allocate(64 * MIB, NULL);
  assert_ok(hipmm_set(PATH "/level", "8"));
  assert_int_equal(number(PATH "/size_now"), size);
  assert_ok(hipmm_set(PATH "/size", "25%"));
  assert_int_equal(number(PATH "/size_now"), size / 2);
  fixture_free(memory, 64 * MIB, NULL);
}

/* No size is computed of it, as the result is in no range. */
static void refuses_percentages_far_over_100(void **state)
{
  (void)state;
  int64_t size = number(PATH "/size_now");
  assert_status(hipmm_set(PATH "/size", "9999999999999999999%"), HIPMM_E_CONFIG);
  assert_message("/size: 9999999999999999999% is more than 100%");
  assert_int_equal(number(PATH "/size_now"), size);
}

static void asks_the_plugin_only_for_what_is_new(void **state)
{
  (void)state;
  int64_t before = number(PATH "/times_set");
  assert_ok(hipmm_set(PATH "/level", "8"));
  assert_int_equal(number(PATH "/times_set"), before + 1);
  assert_ok(hipmm_set(PATH "/level", "8")); /* as it is */
  assert_int_equal(number(PATH "/times_set"), before + 1);
  assert_ok(hipmm_set(PATH "/level", "9"));
  assert_ok(hipmm_set(PATH "/level", "8"));
  assert_int_equal(number(PATH "/times_set"), before + 3);
  assert_int_equal(number(PATH "/level_now"), 8);
}

static void takes_the_object_that_is_registered_now(void **state)
{
  (void)state;
  struct hipmm_failure_handler failure = {sizeof failure, (int (*)(void *, size_t))(void (*)(void))abort, (void *)1};
  assert_ok(hipmm_failure_handler_register("mine", &failure));
  assert_ok(hipmm_set(PATH "/failure", "mine"));
  assert_int_equal(number(PATH "/failure_arg"), 1);
  failure.arg = (void *)2;
  assert_ok(hipmm_failure_handler_register("mine", &failure));
  assert_int_equal(number(PATH "/failure_arg"), 1);
  assert_ok(hipmm_set(PATH "/failure", "mine"));
  assert_int_equal(number(PATH "/failure_arg"), 2);
  assert_status(hipmm_set(PATH "/failure", "mime"), HIPMM_E_CONFIG);
  assert_message(PATH ": /failure: no failure is registered as \"mime\"; did you mean \"mine\"?");
  assert_ok(hipmm_failure_handler_register("mine", NULL));
  assert_int_equal(number(PATH "/failure_arg"), 2);
  assert_status(hipmm_set(PATH "/level", "8"), HIPMM_E_CONFIG); /* the options as a whole must be good still */
  assert_ok(hipmm_set(PATH "/failure", NULL));
  assert_ok(hipmm_set(PATH "/level", "8"));
}

struct refusal {
  const char *path, *value;
  enum hipmm_status status;
  const char *message;
};

static const struct refusal refusals[] = {
    {PATH "/level", "101", HIPMM_E_CONFIG, PATH ": /level: 101 is too much; the most is 100"},
    {PATH "/level", "many", HIPMM_E_CONFIG, PATH ": /level: \"many\" is not a whole number"},
    {PATH "/level", "", HIPMM_E_CONFIG, PATH ": /level: \"\" is not a whole number"},
    {PATH "/level", "\xff", HIPMM_E_ARGUMENT, PATH ": level is not valid UTF-8"},
    {PATH "/size", "1 gigs", HIPMM_E_CONFIG, PATH ": /size: \"1 gigs\" is not a size; write bytes"},
    {PATH "/fixed", "true", HIPMM_E_NOT_SUPPORTED,
     PATH "/fixed: fixed cannot be set while it is in use; of variable_plugin can be: failure, level, size, label, "
          "stubborn"},
    {PATH "/levle", "1", HIPMM_E_ARGUMENT,
     PATH "/levle: variable_plugin has no option \"levle\"; did you mean \"level\"?"},
    {PATH "/level_now", "1", HIPMM_E_ARGUMENT,
     PATH "/level_now: variable_plugin has no option \"level_now\"; it is a figure, which hipmm_query() reads and "
          "nothing sets"},
    {PATH "/stubborn", "true", HIPMM_E_ARGUMENT, PATH ": /stubborn: variable_plugin: will not be moved"},
    {PATH "/stubborn", "false", HIPMM_E_INTERNAL,
     "variable_plugin: its reconfigure returned 1, which is not a status of hipmm"},
    {"devices/0/device/limit", "1", HIPMM_E_ARGUMENT, "device has no option \"limit\""},
    {"devices/0/held_bytes", "1", HIPMM_E_ARGUMENT,
     "devices/0/held_bytes: a device as a whole has no options; it is a figure, which hipmm_query() reads and nothing "
     "sets"},
    {"devices/0/hold_bytes", "1", HIPMM_E_ARGUMENT, "devices/0/hold_bytes: a device as a whole has no options"},
    {"devices/1/variable_plugin/level", "1", HIPMM_E_STATE, "the stack of device 1 is not built yet"},
    {"level", "1", HIPMM_E_ARGUMENT, "\"level\" is not a path"},
};

static void refuses_and_leaves_all_as_it_was(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    assert_status(hipmm_set(refusals[i].path, refusals[i].value), refusals[i].status);
    assert_message(refusals[i].message);
    assert_text(PATH "/level", "7");
    assert_text(PATH "/stubborn", "false");
    assert_int_equal(number(PATH "/times_set"), 0);
  }
}

static void compares_with_what_stays(void **state)
{
  (void)state;
  assert_ok(hipmm_finalize());
  fixture_start("'stack': [{'type': 'variable_plugin', 'size': '8MiB', 'floor': '4MiB'}, 'device']");
  assert_ok(hipmm_set(PATH "/size", "4MiB"));
  assert_status(hipmm_set(PATH "/size", "1MiB"), HIPMM_E_CONFIG);
  assert_message(PATH ": /size: 1MiB is below floor (4MiB)");
  assert_int_equal(number(PATH "/size_now"), 4 * MIB);
}

static void refuses_missing_arguments(void **state)
{
  (void)state;
  int64_t value;
  char *text;
  assert_status(hipmm_query(NULL, &value), HIPMM_E_ARGUMENT);
  assert_message("path is NULL");
  assert_status(hipmm_query(PATH "/level_now", NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_get(NULL, &text), HIPMM_E_ARGUMENT);
  assert_status(hipmm_get(PATH "/level", NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_set(NULL, "1"), HIPMM_E_ARGUMENT);
  hipmm_string_free(NULL);
}

/* ---- States ---- */

static void needs_hipmm_to_be_there(void **state)
{
  (void)state;
  int64_t value;
  char *text;
  assert_ok(hipmm_finalize());
  assert_status(hipmm_query(PATH "/level_now", &value), HIPMM_E_STATE);
  assert_status(hipmm_get(PATH "/level", &text), HIPMM_E_STATE);
  assert_status(hipmm_set(PATH "/level", "1"), HIPMM_E_STATE);
}

/* A stack of before, which somebody still holds, is not that of the device any more. */
static void does_not_mistake_an_old_stack_for_the_new(void **state)
{
  (void)state;
  struct hipmm_resource *old = NULL;
  int64_t value;
  assert_ok(hipmm_resource_get_for_device(0, &old));
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_init_from_string("{\"stack\": [\"variable_plugin\", \"device\"]}"));
  assert_status(hipmm_query(PATH "/level_now", &value), HIPMM_E_STATE);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL); /* now it is built */
  assert_int_equal(number(PATH "/level_now"), 5);
  hipmm_resource_release(old);
}

static enum hipmm_status status_within;
static char message_within[300];

static int set_within(void *unused, size_t bytes)
{
  (void)unused, (void)bytes;
  status_within = hipmm_set(PATH "/level", "9");
  snprintf(message_within, sizeof message_within, "%s", hipmm_last_error_message());
  return 0;
}

/* The plugin calls a function of the program while it is set. */
static void is_refused_from_within_a_setting(void **state)
{
  (void)state;
  const struct hipmm_failure_handler failure = {sizeof failure, set_within, NULL};
  assert_ok(hipmm_finalize());
  fixture_start("'stack': [{'type': 'variable_plugin', 'calls': true}, 'device']");
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(hipmm_failure_handler_register("within", &failure));
  alarm(30);
  assert_ok(hipmm_set(PATH "/failure", "within"));
  alarm(0);
  assert_int_equal(status_within, HIPMM_E_STATE);
  assert_contains(message_within,
                  PATH "/level: this is called from within a setting of an option, which must end first");
  assert_int_equal(number(PATH "/level_now"), 5);
  assert_ok(hipmm_set(PATH "/failure", NULL));
  assert_ok(hipmm_failure_handler_register("within", NULL));
  assert_ok(hipmm_set(PATH "/level", "9"));
}

static int set_in_child(const void *unused)
{
  int64_t value;
  char *text;
  (void)unused;
  alarm(20);
  return hipmm_set(PATH "/level", "1") != HIPMM_E_STATE || hipmm_query(PATH "/level_now", &value) != HIPMM_E_STATE ||
         hipmm_get(PATH "/level", &text) != HIPMM_E_STATE;
}

static void is_refused_in_the_child_of_a_fork(void **state)
{
  (void)state;
  assert_int_equal(run_forked(set_in_child, NULL).status, 0);
}

/* ---- Threads ---- */

static atomic_int wrong;

static void *set_often(void *unused)
{
  char value[16];
  (void)unused;
  for (int i = 0; i < 200; i++) {
    snprintf(value, sizeof value, "%d", i % 100);
    if (hipmm_set(PATH "/level", value)) wrong++;
    if (hipmm_set(PATH "/label", i % 2 ? "one" : "three")) wrong++;
  }
  return NULL;
}

static void *read_often(void *unused)
{
  int64_t level, length;
  (void)unused;
  for (int i = 0; i < 1000; i++) {
    char *text = NULL;
    if (hipmm_query(PATH "/level_now", &level) || level < 0 || level > 100) wrong++;
    if (hipmm_query(PATH "/label_length", &length) || (length != 3 && length != 5 && length != -1)) wrong++;
    if (hipmm_get(PATH "/label", &text)) wrong++;
    hipmm_string_free(text);
  }
  return NULL;
}

static void is_set_and_read_by_many_threads(void **state)
{
  (void)state;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? set_often : read_often, NULL), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(wrong, 0);
}

/* ---- Many ---- */

static unsigned sets;

static void set_twenty(void)
{
  char text[32];
  for (int i = 0; i < 20; i++) {
    snprintf(text, sizeof text, "%uKiB", ++sets);
    assert_ok(hipmm_set("created/limiting/limit", text));
  }
}

/* What was in force before is kept, and found when it is set again. */
static void sets_a_value_as_fast_after_thousands_of_others(void **state)
{
  (void)state;
  struct hipmm_resource *device = NULL, *limiting = NULL;
  assert_ok(hipmm_resource_create(0, "device", NULL, NULL, 0, &device));
  assert_ok(hipmm_resource_create(0, "limiting", "{\"limit\": \"1KiB\"}", &device, 1, &limiting));
  uint64_t first = least_time(10, set_twenty);
  for (int i = 0; i < 180; i++) set_twenty();
  uint64_t later = least_time(10, set_twenty);
  assert_in_range(later, 1, 6 * first);
  assert_ok(hipmm_set("created/limiting/limit", "7KiB"));
  assert_int_equal(number("created/limiting/limit_bytes"), 7 * 1024);
  hipmm_resource_release(device);
  hipmm_resource_release(limiting);
}

#define control_test(name) cmocka_unit_test_setup_teardown(name, start, fixture_teardown)

int main(void)
{
  use_test_plugins();
  const struct CMUnitTest tests[] = {
      control_test(reads_values_by_path),
      control_test(reads_values_of_created_resources),
      control_test(reads_current_options),
      control_test(says_where_a_path_gets_lost),
      control_test(proposes_only_what_is_there),
      control_test(survives_an_endless_path),
      control_test(sets_an_option_while_it_is_in_use),
      control_test(sets_an_option_of_a_created_resource),
      control_test(leaves_percentages_as_they_were),
      control_test(refuses_percentages_far_over_100),
      control_test(asks_the_plugin_only_for_what_is_new),
      control_test(takes_the_object_that_is_registered_now),
      control_test(refuses_and_leaves_all_as_it_was),
      control_test(compares_with_what_stays),
      control_test(refuses_missing_arguments),
      control_test(needs_hipmm_to_be_there),
      control_test(does_not_mistake_an_old_stack_for_the_new),
      control_test(is_refused_from_within_a_setting),
      control_test(is_refused_in_the_child_of_a_fork),
      control_test(is_set_and_read_by_many_threads),
      control_test(sets_a_value_as_fast_after_thousands_of_others),
  };
  return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
