/* SPDX-License-Identifier: MIT */
/* Tests of core/api.c and core/base/trust.c: where hipmm_init() finds its graph, and what becomes of every wrong
 * argument, on a stack of each type that allocates. */
#include "../../core/base/trust.h"
#include "../../core/runtime/hip.h"
#include "../support/support.h"

#include <hipmm/buffer.h>
#include <hipmm/inspect.h>
#include <hipmm/memory.h>
#include <hipmm/torch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Finding the graph ---- */

struct places {
  char *folder, *named, *working;
};

static int make_places(void **state)
{
  static struct places places;
  places = (struct places){.folder = new_folder()};
  places.named = path_in(places.folder, "named.json");
  places.working = path_in(places.folder, "hipmm.json");
  *state = &places;
  setenv("HIPMM_RUNTIME", "software", 1);
  unsetenv("HIPMM_CONFIG");
  return chdir(places.folder);
}

static int remove_places(void **state)
{
  struct places *places = *state;
  hipmm_finalize();
  unsetenv("HIPMM_CONFIG");
  unsetenv("HIPMM_RUNTIME");
  free(places->named);
  free(places->working);
  remove_folder(places->folder);
  return chdir("/");
}

static void put(const char *file, const char *graph)
{
  assert_true(write_file(file, graph, strlen(graph)));
}

static void assert_top(const char *type)
{
  struct hipmm_resource *resource;
  assert_ok(hipmm_resource_get_current(&resource));
  assert_string_equal(hipmm_resource_type(resource), type);
  hipmm_resource_release(resource);
}

static void prefers_the_file_that_the_environment_names(void **state)
{
  const struct places *places = *state;
  put(places->named, "{\"stack\": [\"pool\", \"device\"]}");
  put(places->working, "{\"stack\": [\"statistics\", \"device\"]}");
  setenv("HIPMM_CONFIG", places->named, 1);
  assert_ok(hipmm_init());
  assert_top("pool");
}

static void takes_the_working_folders_file(void **state)
{
  const struct places *places = *state;
  put(places->working, "{\"stack\": [\"statistics\", \"device\"]}");
  setenv("HIPMM_CONFIG", "", 1); /* is none */
  assert_ok(hipmm_init());
  assert_top("statistics");
}

static void does_without_a_file(void **state)
{
  (void)state;
  char buffer[100];
  if (trust_find_config(buffer, sizeof buffer)) return; /* this system has one for all */
  assert_ok(hipmm_init());
  assert_top("device");
}

enum { NOBODY = 65534 };

/* Without a word more than once, and not where the user names it. */
static void assert_passed_over(const struct places *places, const char *why)
{
  char before[2048];
  snprintf(before, sizeof before, "%s", hipmm_last_error_message());
  (void)logged();
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_init());
    assert_string_equal(hipmm_last_error_message(), before);
    assert_top("device");
    assert_ok(hipmm_finalize());
    const char *line = i ? NULL : logged(); /* it is said once */
    if (line) assert_contains(line, why);
    if (line) assert_contains(line, "set HIPMM_CONFIG=");
    if (line) assert_contains(line, places->working);
  }
  assert_string_equal(logged(), "");
  setenv("HIPMM_CONFIG", places->working, 1);
  assert_ok(hipmm_init()); /* who names it means it */
  assert_top("statistics");
  assert_ok(hipmm_finalize());
  unsetenv("HIPMM_CONFIG");
}

static void passes_over_a_file_that_another_user_can_change(void **state)
{
  static const char graph[] = "{\"runtime\": \"software\", \"stack\": [\"statistics\", \"device\"]}";
  const struct places *places = *state;
  char buffer[100];
  if (trust_find_config(buffer, sizeof buffer)) return; /* this system has one for all */
  put(places->working, graph);
  assert_int_equal(chmod(places->working, 0666), 0);
  assert_passed_over(places, "hipmm.json is not used: nobody named it, and it can be written by every user.");
  assert_int_equal(chmod(places->working, 0644) + chmod(places->folder, 01777), 0);
  assert_passed_over(places, "and its folder can be written by every user.");
  assert_int_equal(chmod(places->folder, 0755), 0);
  if (!chown(places->working, NOBODY, NOBODY)) {
    assert_passed_over(places, "and it belongs to another user.");
    assert_int_equal(chown(places->working, 0, NOBODY) + chown(places->folder, NOBODY, NOBODY), 0);
    assert_passed_over(places, "and its folder belongs to another user.");
    assert_int_equal(chown(places->folder, 0, 0) + chmod(places->working, 0664), 0);
    assert_passed_over(places, "and it can be written by its group.");
  }
  assert_int_equal(chmod(places->working, 0644), 0);
  assert_ok(hipmm_init());
  assert_top("statistics");
}

/* A link of the user's own is good where it leads to what is the user's, by folders that are. */
static void passes_over_a_link_that_others_can_lead_elsewhere(void **state)
{
  const struct places *places = *state;
  char buffer[100], *folder = path_in(places->folder, "open"), *target = path_in(folder, "hipmm.json");
  if (trust_find_config(buffer, sizeof buffer)) return;
  assert_int_equal(mkdir(folder, 0755) + symlink("open/hipmm.json", places->working), 0);
  put(target, "{\"runtime\": \"software\", \"stack\": [\"statistics\", \"device\"]}");
  assert_int_equal(chmod(folder, 01777), 0);
  assert_passed_over(places, "it is a link that other users can lead elsewhere.");
  assert_int_equal(chmod(folder, 0755), 0);
  assert_ok(hipmm_init());
  assert_top("statistics");
  free(target);
  free(folder);
}

static void refuses_a_missing_file_that_is_named(void **state)
{
  const struct places *places = *state;
  put(places->working, "{\"stack\": [\"statistics\", \"device\"]}");
  setenv("HIPMM_CONFIG", places->named, 1);
  assert_status(hipmm_init(), HIPMM_E_IO);
  assert_message("named.json: cannot be read: No such file or directory");
  assert_ok(hipmm_init_from_file(places->working)); /* that is not what was meant, but the caller may */
}

static void refuses_a_file_with_an_error(void **state)
{
  const struct places *places = *state;
  struct hipmm_error error = {.struct_size = sizeof error};
  put(places->working, "{\n  \"stack\": [\"device\",]\n}\n");
  assert_status(hipmm_init(), HIPMM_E_SYNTAX);
  hipmm_last_error(&error);
  assert_string_equal(error.file, "hipmm.json");
  assert_int_equal(error.line, 2);
  assert_int_equal(error.column, 21); /* the comma */
  assert_contains(error.message, "hipmm.json:2:");
  put(places->working, "{\"stack\": [\"statistics\", {\"type\": \"pool\", \"inital_size\": 1}, \"device\"]}");
  assert_status(hipmm_init(), HIPMM_E_CONFIG);
  hipmm_last_error(&error);
  assert_string_equal(error.path, "/stack/1/inital_size");
  assert_string_equal(error.resource, "pool");
  assert_string_equal(error.message,
                      "hipmm.json:1:43: /stack/1/inital_size: unknown option \"inital_size\" of pool; did you "
                      "mean \"initial_size\"?");
  assert_status(hipmm_init_from_file(places->folder), HIPMM_E_IO);
  assert_message("Is a directory");
}

static void names_folders_relative_to_the_graph(void **state)
{
  const struct places *places = *state;
  const char *top = getenv("top_builddir");
  char *from = path_in(top ? top : ".", "tests/bad/.libs/bare.so"), *to = path_in(places->folder, "bare.so");
  assert_true(copy_file(from, to));
  put(places->named, "{\"plugin_path\": \".\", \"stack\": [\"bare\", \"device\"]}");
  assert_int_equal(chdir("/"), 0);
  assert_ok(hipmm_init_from_file(places->named));
  assert_top("bare");
  free(from);
  free(to);
}

/* ---- Arguments, on every type ---- */

struct stack {
  const char *name, *stack;
  bool aligns; /* to more than HIPMM_ALIGNMENT */
};

static const struct stack stacks[] = {
    {"arguments: device", "[\"device\"]", false},
    {"arguments: managed", "[\"managed\"]", false},
    {"arguments: pinned", "[\"pinned\"]", true},
    {"arguments: host", "[\"host\"]", true},
    {"arguments: system", "[\"system\"]", true},
    {"arguments: async", "[\"async\"]", false},
    {"arguments: pool, mapped", "[{\"type\": \"pool\", \"growth\": \"mapped\"}, \"device\"]", true},
    {"arguments: pool, segments", "[{\"type\": \"pool\", \"growth\": \"segments\"}, \"device\"]", true},
    {"arguments: fixed_size", "[\"fixed_size\", \"device\"]", false},
    {"arguments: binning", "[{\"type\": \"binning\", \"bins\": [{\"size\": \"4KiB\"}]}, \"pool\", \"device\"]", true},
    {"arguments: statistics", "[\"statistics\", \"pool\", \"device\"]", true},
    {"arguments: limiting", "[{\"type\": \"limiting\", \"limit\": \"1GiB\"}, \"pool\", \"device\"]", true},
    {"arguments: thread_safe", "[\"thread_safe\", \"pool\", \"device\"]", true},
    {"arguments: logging", "[{\"type\": \"logging\", \"file\": \"/dev/null\"}, \"pool\", \"device\"]", true},
};

static int begin(const struct stack *stack)
{
  char graph[400];
  snprintf(graph, sizeof graph,
           "{\"runtime\": {\"type\": \"software\", \"memory\": \"64MiB\", \"pageable_memory_access\": true}, "
           "\"stack\": %s}",
           stack->stack);
  assert_ok(hipmm_init_from_string(graph));
  return 0;
}

static int end(void **state)
{
  (void)state;
  hipmm_finalize();
  return live_on_all_devices() ? -1 : 0;
}

static void *const untouched = (void *)(uintptr_t)0x5a5a5a00;

/* Sizes and alignments. */
static void allocates_what_makes_sense(void)
{
  static const size_t too_much[] = {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX / 2 + 1, PTRDIFF_MAX, (size_t)1 << 47};
  static const size_t no_powers[] = {0, 3, 255, 257, SIZE_MAX};
  void *ptr = untouched;
  for (size_t i = 0; i < sizeof too_much / sizeof *too_much; i++) {
    enum hipmm_status status = hipmm_allocate(NULL, too_much[i], NULL, &ptr);
    if (status != HIPMM_E_LIMIT) assert_status(status, HIPMM_E_OUT_OF_MEMORY);
    assert_string_not_equal(hipmm_last_error_message(), "");
    assert_ptr_equal(ptr, untouched);
  }
  for (size_t i = 0; i < sizeof no_powers / sizeof *no_powers; i++) {
    assert_status(hipmm_allocate_aligned(NULL, 100, no_powers[i], NULL, &ptr), HIPMM_E_ARGUMENT);
    assert_message("is not a power of two");
    assert_status(hipmm_deallocate_aligned(NULL, ptr, 100, no_powers[i], NULL), HIPMM_E_ARGUMENT);
    assert_ptr_equal(ptr, untouched);
  }
  assert_status(hipmm_allocate(NULL, 100, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_message("ptr_out is NULL");
  assert_ok(hipmm_allocate(NULL, 0, NULL, &ptr));
  assert_null(ptr);
  assert_ok(hipmm_deallocate(NULL, NULL, 0, NULL));
  assert_ok(hipmm_deallocate(NULL, NULL, 100, NULL));
}

static void aligns(const struct stack *stack)
{
  for (size_t alignment = 1; alignment <= 1 << 20; alignment *= 2) {
    void *ptr = untouched;
    enum hipmm_status status = hipmm_allocate_aligned(NULL, 100, alignment, NULL, &ptr);
    if (alignment > HIPMM_ALIGNMENT && !stack->aligns) {
      assert_status(status, HIPMM_E_ARGUMENT);
      assert_ptr_equal(ptr, untouched);
      continue;
    }
    assert_status(status, HIPMM_OK);
    assert_int_equal((uintptr_t)ptr % (alignment < HIPMM_ALIGNMENT ? HIPMM_ALIGNMENT : alignment), 0);
    assert_ok(hipmm_deallocate_aligned(NULL, ptr, 100, alignment, NULL));
  }
}

/* Pointers that are foreign, inside a block, of another size, or freed before: refused, and nothing is lost. */
static void refuses_wrong_frees(void)
{
  static char foreign[4096];
  void *ptr, *other;
  assert_ok(hipmm_allocate(NULL, 1000, NULL, &ptr));
  assert_ok(hipmm_allocate(NULL, 1000, NULL, &other));
  assert_ptr_not_equal(ptr, other);
  void *const foreigners[] = {foreign,
                              foreign + 256,
                              (char *)ptr + 256,
                              (char *)ptr + 1,
                              (void *)(uintptr_t)1,
                              (void *)(uintptr_t)256,
                              (void *)UINTPTR_MAX,
                              (void *)((uintptr_t)1 << 63)};
  for (size_t i = 0; i < sizeof foreigners / sizeof *foreigners; i++) {
    assert_status(hipmm_deallocate(NULL, foreigners[i], 1000, NULL), HIPMM_E_POINTER);
    assert_status(hipmm_deallocate(NULL, foreigners[i], 0, NULL), HIPMM_E_POINTER);
    assert_string_not_equal(hipmm_last_error_message(), "");
  }
  static const size_t sizes[] = {1, 999, 1001, 1024, SIZE_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_status(hipmm_deallocate(NULL, ptr, sizes[i], NULL), HIPMM_E_SIZE);
    assert_message("1000");
  }
  memset(ptr, 1, 1000); /* still ours */
  assert_ok(hipmm_deallocate(NULL, ptr, 1000, NULL));
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr, 0, NULL), HIPMM_E_POINTER);
  assert_ok(hipmm_deallocate(NULL, other, 0, NULL)); /* found by the pointer alone */
  assert_status(hipmm_deallocate(NULL, other, 0, NULL), HIPMM_E_POINTER);
}

static void runs_out_and_recovers(void)
{
  enum { MOST = 4096 };
  static void *pointers[MOST];
  int n = 0;
  enum hipmm_status status = HIPMM_OK;
  while (n < MOST && !(status = hipmm_allocate(NULL, MIB, NULL, &pointers[n]))) n++;
  if (status) assert_status(status, HIPMM_E_OUT_OF_MEMORY);
  if (status) assert_string_not_equal(hipmm_last_error_message(), "");
  for (int i = 0; i < n; i++) assert_ok(hipmm_deallocate(NULL, pointers[i], MIB, NULL));
  assert_ok(hipmm_allocate(NULL, MIB, NULL, &pointers[0]));
  assert_ok(hipmm_deallocate(NULL, pointers[0], MIB, NULL));
}

static void minds_its_arguments(void **state)
{
  const struct stack *stack = *state;
  begin(stack);
  allocates_what_makes_sense();
  aligns(stack);
  refuses_wrong_frees();
  if (!strstr(stack->stack, "host") && !strstr(stack->stack, "system") && !strstr(stack->stack, "pinned"))
    runs_out_and_recovers();
}

/* ---- Ops that fail without a reason ---- */

static void begin_with_mistake(const char *mistake)
{
  char graph[200];
  snprintf(graph, sizeof graph,
           "{\"runtime\": {\"type\": \"software\", \"memory\": \"256MiB\"}, "
           "\"stack\": [{\"type\": \"zoo\", \"mistake\": \"%s\"}, \"device\"]}",
           mistake);
  assert_ok(hipmm_init_from_string(graph));
}

/* An earlier failure of the same status had a reason, which is not that of the second. */
static void gives_a_reason_where_an_op_gives_none(void **state)
{
  (void)state;
  void *ptr;
  struct hipmm_buffer *buffer;
  begin_with_mistake("fails_silently");
  assert_status(hipmm_allocate(NULL, 1024 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("device: hipMalloc of 1 GiB failed");
  for (int i = 0; i < 2; i++) {
    assert_status(hipmm_allocate(NULL, 2048 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
    assert_string_equal(hipmm_last_error_message(), "zoo: its allocate failed and gave no reason (out of memory)");
    assert_status(hipmm_allocate_aligned(NULL, 2048 * MIB, 512, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
    assert_string_equal(hipmm_last_error_message(), "zoo: its allocate failed and gave no reason (out of memory)");
    assert_status(hipmm_buffer_create(NULL, 2048 * MIB, NULL, &buffer), HIPMM_E_OUT_OF_MEMORY);
    assert_message("zoo: its allocate failed and gave no reason (out of memory)");
  }
}

/* The same for the calls that allocate in other ways: before each, a failure has another reason. */
static void gives_a_reason_to_every_call_that_allocates(void **state)
{
  (void)state;
  void *ptr;
  begin_with_mistake("fails_silently");
  for (int call = 0; call < 4; call++) {
    assert_status(hipmm_allocate(NULL, 1024 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
    assert_message("device: hipMalloc of 1 GiB failed");
    switch (call) {
    case 0: assert_status(hipmm_allocate_zeroed(NULL, 2048 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY); break;
    case 1: assert_status(hipmm_allocate_sync(NULL, 2048 * MIB, &ptr), HIPMM_E_OUT_OF_MEMORY); break;
    case 2:
      assert_status(hipmm_allocate_batch(NULL, 1, (size_t[]){2048 * MIB}, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
      break;
    default: assert_null(hipmm_cupy_malloc(NULL, 2048 * MIB, 0)); break;
    }
    assert_string_equal(hipmm_last_error_message(), "zoo: its allocate failed and gave no reason (out of memory)");
  }
}

static void gives_a_status_where_an_op_gives_none(void **state)
{
  (void)state;
  void *ptr;
  begin_with_mistake("foreign_status");
  assert_status(hipmm_allocate(NULL, 2048 * MIB, NULL, &ptr), HIPMM_E_INTERNAL);
  assert_string_equal(hipmm_last_error_message(), "zoo: its allocate returned 7, which is not a status of hipmm");
  assert_status(hipmm_allocate_sync(NULL, 2048 * MIB, &ptr), HIPMM_E_INTERNAL);
  assert_status(hipmm_allocate(NULL, 2048 * MIB + 1, NULL, &ptr), HIPMM_E_INTERNAL); /* nobody has asked the program */
  assert_message("zoo: its allocate returned 1, which is not a status of hipmm");
}

/* ---- Arguments that are missing, and calls from where there may be none ---- */

static struct hipmm_resource *begin_with_a_block(void **ptr_out)
{
  struct hipmm_resource *resource = NULL;
  assert_ok(hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"device\"]}"));
  assert_ok(hipmm_resource_get_current(&resource));
  assert_ok(hipmm_allocate(resource, 1000, NULL, ptr_out));
  return resource;
}

static void end_with_a_block(struct hipmm_resource *resource, void *ptr)
{
  assert_ok(hipmm_deallocate(resource, ptr, 1000, NULL));
  hipmm_resource_release(resource);
}

enum { MOST_CALLS = 20 };

static enum hipmm_status missing[MOST_CALLS];

/* Calls without what they need: each is refused for its arguments, or before that for where it is made. */
static int call_without_arguments(struct hipmm_resource *resource)
{
  int n = 0;
  void *ptr = untouched;
  struct hipmm_resource *found = NULL;
  struct hipmm_error error = {.struct_size = sizeof error};
  missing[n++] = hipmm_allocate_ex(NULL, &ptr);
  missing[n++] = hipmm_allocate_batch(resource, 1, NULL, NULL, &ptr);
  missing[n++] = hipmm_allocate_batch(resource, 1, &(size_t){100}, NULL, NULL);
  missing[n++] = hipmm_stack_get_by_name(resource, NULL, &found);
  missing[n++] = hipmm_stack_build_from_string(0, NULL, NULL, &found);
  missing[n++] = hipmm_stack_build_from_string(0, NULL, "{\"stack\": [\"device\"]}", NULL);
  missing[n++] = hipmm_stack_build_from_file(0, NULL, NULL, &found);
  missing[n++] = hipmm_resource_set_user_data((struct hipmm_resource *)(void *)&error, NULL, NULL);
  missing[n++] = hipmm_resource_reset_peaks((struct hipmm_resource *)(void *)&error);
  missing[n++] = hipmm_log_set_level((enum hipmm_log_level)99);
  missing[n++] = hipmm_log_set_file("");
  missing[n++] = hipmm_host_allocator_set(&(struct hipmm_host_allocator){.struct_size = 1});
  missing[n++] = hipmm_resource_create_from(
      0, &(struct hipmm_recipe){.struct_size = sizeof(struct hipmm_recipe), .type = "callback", .n_objects = 1},
      &found);
  if (ptr != untouched || found) missing[n++] = HIPMM_E_INTERNAL;
  return n;
}

static void refuses_calls_without_arguments(void **state)
{
  (void)state;
  void *ptr;
  struct hipmm_resource *resource = begin_with_a_block(&ptr);
  int n = call_without_arguments(resource);
  for (int i = 0; i < n; i++)
    if (missing[i] != HIPMM_E_ARGUMENT) fail_msg("call %d: status %d", i, (int)missing[i]);
  end_with_a_block(resource, ptr);
}

static void moves_no_block_that_it_does_not_know(void **state)
{
  (void)state;
  char foreign[256];
  void *ptr, *moved = untouched;
  struct hipmm_resource *resource = begin_with_a_block(&ptr);
  assert_status(hipmm_reallocate(resource, foreign, 0, 0, NULL, &moved), HIPMM_E_POINTER);
  assert_status(hipmm_reallocate(resource, foreign, 0, 100, NULL, &moved), HIPMM_E_POINTER);
  assert_ptr_equal(moved, untouched);
  end_with_a_block(resource, ptr);
}

static int n_forbidden;

static void call_from_a_visitor(void *resource, const struct hipmm_extent *extent)
{
  (void)extent;
  n_forbidden = call_without_arguments(resource);
}

static void refuses_calls_from_a_visitor(void **state)
{
  (void)state;
  void *ptr;
  struct hipmm_resource *resource = begin_with_a_block(&ptr);
  assert_ok(hipmm_resource_visit_blocks(resource, call_from_a_visitor, resource));
  assert_true(n_forbidden > 0);
  for (int i = 0; i < n_forbidden; i++)
    if (missing[i] != HIPMM_E_STATE) fail_msg("call %d: status %d", i, (int)missing[i]);
  end_with_a_block(resource, ptr);
}

/* ---- Tags ---- */

static void refuses_names_that_are_no_tags(void **state)
{
  static const struct {
    const char *name, *message;
  } wrong[] = {{NULL, "the name is NULL"},
               {"", "the name is empty"},
               {"0123456789012345678901234567890123456789012345678901234567890123", "the name has more than 63 bytes"},
               {"layer\n7", "control characters"},
               {"\xff\xfe", "not UTF-8"},
               {"gr\xc3", "not UTF-8"}};
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(hipmm_tag_push(wrong[i].name), HIPMM_E_ARGUMENT);
    assert_contains(hipmm_last_error_message(), wrong[i].message);
    assert_contains(hipmm_last_error_message(), "hipmm_tag_push: ");
  }
  assert_status(hipmm_tag_pop(), HIPMM_E_STATE); /* nothing was pushed */
  assert_message("hipmm_tag_pop: this thread has no tag");
  assert_ok(hipmm_tag_push("012345678901234567890123456789012345678901234567890123456789012"));
  assert_ok(hipmm_tag_pop());
}

#define place_test(name) cmocka_unit_test_setup_teardown(name, make_places, remove_places)

int main(void)
{
  use_test_plugins();
  log_to_file("warning");
  struct CMUnitTest tests[35] = {
      place_test(prefers_the_file_that_the_environment_names),
      place_test(takes_the_working_folders_file),
      place_test(does_without_a_file),
      place_test(passes_over_a_file_that_another_user_can_change),
      place_test(passes_over_a_link_that_others_can_lead_elsewhere),
      place_test(refuses_a_missing_file_that_is_named),
      place_test(refuses_a_file_with_an_error),
      place_test(names_folders_relative_to_the_graph),
      place_test(gives_a_reason_where_an_op_gives_none),
      place_test(gives_a_reason_to_every_call_that_allocates),
      place_test(gives_a_status_where_an_op_gives_none),
      cmocka_unit_test_teardown(refuses_calls_without_arguments, end),
      cmocka_unit_test_teardown(moves_no_block_that_it_does_not_know, end),
      cmocka_unit_test_teardown(refuses_calls_from_a_visitor, end),
      cmocka_unit_test(refuses_names_that_are_no_tags),
  };
  size_t n = 0;
  while (tests[n].name) n++;
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
    tests[n++] = (struct CMUnitTest){.name = stacks[i].name,
                                     .test_func = minds_its_arguments,
                                     .teardown_func = end,
                                     .initial_state = (void *)(uintptr_t)&stacks[i]};
  return _cmocka_run_group_tests("api", tests, n, NULL, NULL);
}
