/* SPDX-License-Identifier: MIT */
/* Tests of each public function with each argument that can be wrong: NULL, stale, foreign, out of range; and before
 * initialisation and after finalisation. Whatever is wrong is refused by an error that names the argument, and no output is
 * written. The functions are found by name in libhipmm.so as built, and called through the rows of functions.c: every
 * argument is an integer or a pointer, which all 64-bit calling conventions pass in the same way. */
#include "functions.h"

#include <hipmm/buffer.h>
#include <hipmm/memory.h>
#include <hipmm/plugin.h>
#include <hipmm/spill.h>
#include <hipmm/stream.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_ARGUMENTS = 7, MOST_WRONG = 4, NO_DEVICE = 99 };

static const char graph[] = "{\"runtime\": {\"type\": \"software\", \"devices\": 2}, \"stack\": [\"statistics\", "
                            "\"spilling\", \"pool\", \"device\"]}";

/* An argument of a row. */
struct argument {
  char kind, name[32], words[32]; /* words: in the message */
  long bad;                       /* of a number */
  bool has_bad;
};

struct call {
  const struct function *row;
  struct argument arguments[MOST_ARGUMENTS];
  size_t n;
};

typedef long generic(long a, long b, long c, long d, long e, long f, long g);

static void *library;
static char scratch[1024]; /* for outputs */
static char graph_file[4096];
static struct hipmm_resource *resource, *stale_resource, *current;
static struct hipmm_memory memory = {.struct_size = sizeof memory};
static const struct hipmm_request request = {.struct_size = sizeof request, .bytes = 1};
static const struct hipmm_recipe recipe = {.struct_size = sizeof recipe, .type = "device"};

/* Live and stale objects by the letter of their kind. */
static struct {
  char kind;
  void *live, *stale;
} objects[] = {{'B', NULL, NULL}, {'H', NULL, NULL}, {'L', NULL, NULL}, {'E', NULL, NULL}, {'M', NULL, NULL}};

enum { OBJECTS = sizeof objects / sizeof *objects };

static int failures;

/* ---- Rows ---- */

static void parse_argument(const char *word, struct argument *argument_out)
{
  struct argument argument = {.kind = word[0]};
  char number[16] = "", words[32] = "";
  sscanf(word + 2, "%31[a-z_]", argument.name);
  const char *rest = word + 2 + strlen(argument.name);
  if (*rest == '=') argument.has_bad = sscanf(rest, "=%15[-0-9]~%31s", number, words) > 0;
  if (*rest == '~') sscanf(rest, "~%31s", words);
  argument.bad = strtol(number, NULL, 10);
  snprintf(argument.words, sizeof argument.words, "%s", *words ? words : argument.name);
  *argument_out = argument;
}

static struct call parse_row(const struct function *row)
{
  struct call call = {.row = row};
  char text[300], *rest = NULL;
  snprintf(text, sizeof text, "%s", row->arguments);
  for (char *word = strtok_r(text, " ", &rest); word && call.n < MOST_ARGUMENTS; word = strtok_r(NULL, " ", &rest))
    parse_argument(word, &call.arguments[call.n++]);
  return call;
}

/* ---- Values ---- */

static long good_pointer(const char *name)
{
  static const struct {
    const char *name, *text;
  } texts[] = {{"path", "devices/0/pool/reserved_bytes"},
               {"json", "{\"runtime\": \"software\"}"},
               {"name", "mine"},
               {"type", "device"},
               {"action", "push"}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (!strcmp(name, texts[i].name)) return (long)(uintptr_t)texts[i].text;
  if (!strcmp(name, "request")) return (long)(uintptr_t)&request;
  if (!strcmp(name, "file")) return (long)(uintptr_t)graph_file;
  if (!strcmp(name, "recipe")) return (long)(uintptr_t)&recipe;
  if (!strcmp(name, "memory") || !strcmp(name, "memory_out")) return (long)(uintptr_t)&memory;
  if (!strcmp(name, "upstreams")) return (long)(uintptr_t)&resource;
  return (long)(uintptr_t)scratch;
}

static size_t object_of(char kind)
{
  size_t i = 0;
  while (i < OBJECTS && (objects[i].kind | 0x20) != (kind | 0x20)) i++;
  return i;
}

static long good_value(const struct argument *argument)
{
  size_t object = object_of(argument->kind);
  switch (argument->kind) {
  case 'A':
  case 'R': return (long)(uintptr_t)current;
  case 'X': return (long)(uintptr_t)scratch;
  case 'o':
  case 'O': return good_pointer(strcmp(argument->name, "memory_out") ? "" : "memory_out");
  case 'p': return good_pointer(argument->name);
  case 'n': return 1;
  default: return object < OBJECTS ? (long)(uintptr_t)objects[object].live : 0;
  }
}

/* A wrong value, with the statuses that it may be refused with. */
struct wrong {
  long value;
  enum hipmm_status status, other_status;
};

static size_t wrong_resources(struct wrong *wrong_out)
{
  void *const values[] = {stale_resource, scratch, (char *)resource + 8, objects[0].live};
  for (size_t i = 0; i < 4; i++)
    wrong_out[i] = (struct wrong){(long)(uintptr_t)values[i], HIPMM_E_ARGUMENT, HIPMM_E_ARGUMENT};
  return 4;
}

static size_t wrong_objects(char kind, struct wrong *wrong_out)
{
  size_t i = object_of(kind), n = 0;
  if (objects[i].kind == kind) wrong_out[n++] = (struct wrong){0, HIPMM_E_ARGUMENT, HIPMM_E_ARGUMENT};
  wrong_out[n++] = (struct wrong){(long)(uintptr_t)objects[i].stale, HIPMM_E_POINTER, HIPMM_E_POINTER};
  wrong_out[n++] = (struct wrong){(long)(uintptr_t)objects[(i + 1) % OBJECTS].live, HIPMM_E_POINTER, HIPMM_E_POINTER};
  return n;
}

static size_t wrong_values(const struct argument *argument, struct wrong *wrong_out)
{
  switch (argument->kind) {
  case 'A': wrong_resources(wrong_out); return 1;
  case 'R': return wrong_resources(wrong_out);
  case 'o':
  case 'p': wrong_out[0] = (struct wrong){0, HIPMM_E_ARGUMENT, HIPMM_E_ARGUMENT}; return 1;
  case 'D': wrong_out[0] = (struct wrong){NO_DEVICE, HIPMM_E_NO_DEVICE, HIPMM_E_NO_DEVICE}; return 1;
  case 'd':
    wrong_out[0] = (struct wrong){-1, HIPMM_E_NO_DEVICE, HIPMM_E_NO_DEVICE};
    wrong_out[1] = (struct wrong){NO_DEVICE, HIPMM_E_NO_DEVICE, HIPMM_E_NO_DEVICE};
    return 2;
  case 'S': wrong_out[0] = (struct wrong){0x5a5a, HIPMM_E_ARGUMENT, HIPMM_E_POINTER}; return 1;
  case 'n': wrong_out[0] = (struct wrong){argument->bad, HIPMM_E_ARGUMENT, HIPMM_E_ARGUMENT}; return argument->has_bad;
  default: return object_of(argument->kind) < OBJECTS ? wrong_objects(argument->kind, wrong_out) : 0;
  }
}

/* ---- Calls ---- */

static long call_with(const struct call *call, size_t which, long value)
{
  long v[MOST_ARGUMENTS] = {0};
  generic *function;
  void *symbol = dlsym(library, call->row->name);
  memcpy(&function, &symbol, sizeof function);
  if (!function) {
    fprintf(stderr, "%s: the library does not export it\n", call->row->name);
    failures++;
    return 0;
  }
  for (size_t i = 0; i < call->n; i++) v[i] = i == which ? value : good_value(&call->arguments[i]);
  memset(scratch, 7, sizeof scratch);
  return function(v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
}

/* dlsym() finds the functions of the library; the program is linked to none of them. */
#define FIND(name) __typeof__(&(name)) open_##name = (__typeof__(&(name)))dlsym(library, #name)

static const char *last_message(void)
{
  FIND(hipmm_last_error_message);
  return open_hipmm_last_error_message();
}

static bool scratch_is_untouched(void)
{
  for (size_t i = 0; i < sizeof scratch; i++)
    if (scratch[i] != 7) return false;
  return true;
}

static void complain(const struct call *call, const struct argument *argument, long value, const char *what,
                     const char *more)
{
  fprintf(stderr, "%s: %s = %#lx: %s%s\n", call->row->name, argument ? argument->name : "(nothing wrong)",
          (unsigned long)value, what, more);
  failures++;
}

static bool is_empty_result(enum returns returns, long result)
{
  switch (returns) {
  case RETURNS_POINTER:
  case RETURNS_SIZE: return !result;
  case RETURNS_NUMBER: return (int)result == -1 || !(int)result;
  default: return true;
  }
}

static void try_wrong(const struct call *call, size_t which, const struct wrong *wrong)
{
  const struct argument *argument = &call->arguments[which];
  long result = call_with(call, which, wrong->value);
  const char *words = (argument->kind | 0x20) == 'd' ? "device " : argument->kind == 'S' ? "stream" : argument->words;
  if (!scratch_is_untouched()) complain(call, argument, wrong->value, "wrote an output", "");
  if (!is_empty_result(call->row->returns, result)) complain(call, argument, wrong->value, "returned something", "");
  if (call->row->returns != RETURNS_STATUS) return;
  FIND(hipmm_status_string);
  enum hipmm_status status = (enum hipmm_status)(int)result;
  if (status != wrong->status && status != wrong->other_status)
    complain(call, argument, wrong->value, "is ", open_hipmm_status_string(status));
  else if (!strstr(last_message(), words))
    complain(call, argument, wrong->value, "does not name the argument: ", last_message());
}

/* ---- Tests, in this order ---- */

static void every_function_has_a_row(void **state)
{
  (void)state;
  char file[4096], line[200], name[100];
  snprintf(file, sizeof file, "%s/core/libhipmm.map", getenv("top_srcdir"));
  FILE *map = fopen(file, "r");
  assert_non_null(map);
  size_t n = 0, missing = 0;
  while (fgets(line, sizeof line, map)) {
    if (sscanf(line, " %99[a-z0-9_];", name) != 1 || strncmp(name, "hipmm_", 6)) continue;
    size_t i = 0;
    while (i < n_functions && strcmp(functions[i].name, name)) i++;
    if (i == n_functions) fprintf(stderr, "%s has no row in tests/abi/functions.c\n", name);
    missing += i == n_functions;
    n++;
  }
  fclose(map);
  assert_int_equal(missing, 0);
  assert_int_equal(n, n_functions);
}

static void check_uninitialised(enum needs least)
{
  failures = 0;
  current = NULL;
  for (size_t i = 0; i < n_functions; i++) {
    if (functions[i].needs < least || functions[i].returns != RETURNS_STATUS) continue;
    struct call call = parse_row(&functions[i]);
    enum hipmm_status status = (enum hipmm_status)(int)call_with(&call, MOST_ARGUMENTS, 0);
    if (status != HIPMM_E_STATE || !strstr(last_message(), "not initialised"))
      complain(&call, NULL, status, "is not refused: ", last_message());
    if (!scratch_is_untouched()) complain(&call, NULL, status, "wrote an output", "");
  }
  assert_int_equal(failures, 0);
}

static void is_refused_before_initialisation(void **state)
{
  (void)state;
  check_uninitialised(NEEDS_RUNTIME);
}

#define MUST(call) assert_int_equal(call, HIPMM_OK)

/* Creates one of each kind twice, and destroys the second. */
static void make_objects(void)
{
  FIND(hipmm_buffer_create);
  FIND(hipmm_buffer_destroy);
  FIND(hipmm_host_buffer_create);
  FIND(hipmm_host_buffer_destroy);
  FIND(hipmm_stream_pool_create);
  FIND(hipmm_stream_event_create);
  FIND(hipmm_movable_create);
  FIND(hipmm_movable_destroy);
  FIND(hipmm_stream_pool_destroy);
  FIND(hipmm_stream_event_destroy);
  for (int i = 0; i < 2; i++) {
    MUST(open_hipmm_buffer_create(NULL, 64, NULL, i ? (void *)&objects[0].stale : (void *)&objects[0].live));
    MUST(open_hipmm_host_buffer_create(NULL, 64, NULL, i ? (void *)&objects[1].stale : (void *)&objects[1].live));
    MUST(open_hipmm_stream_pool_create(0, 2, 0, i ? (void *)&objects[2].stale : (void *)&objects[2].live));
    MUST(open_hipmm_stream_event_create(0, i ? (void *)&objects[3].stale : (void *)&objects[3].live));
    MUST(open_hipmm_movable_create(NULL, 64, i ? (void *)&objects[4].stale : (void *)&objects[4].live));
  }
  MUST(open_hipmm_buffer_destroy(objects[0].stale));
  MUST(open_hipmm_host_buffer_destroy(objects[1].stale));
  MUST(open_hipmm_stream_pool_destroy(objects[2].stale));
  MUST(open_hipmm_stream_event_destroy(objects[3].stale));
  MUST(open_hipmm_movable_destroy(objects[4].stale));
}

static void refuses_each_wrong_argument(void **state)
{
  (void)state;
  FIND(hipmm_init_from_string);
  FIND(hipmm_resource_get_current);
  FIND(hipmm_resource_create);
  FIND(hipmm_resource_release);
  MUST(open_hipmm_init_from_string(graph));
  MUST(open_hipmm_resource_get_current(&resource));
  MUST(open_hipmm_resource_create(0, "device", NULL, NULL, 0, &stale_resource));
  open_hipmm_resource_release(stale_resource);
  make_objects();
  failures = 0;
  for (size_t i = 0; i < n_functions; i++) {
    struct call call = parse_row(&functions[i]);
    for (size_t which = 0; which < call.n; which++) {
      struct wrong wrong[MOST_WRONG];
      size_t n = wrong_values(&call.arguments[which], wrong);
      for (size_t w = 0; w < n; w++) try_wrong(&call, which, &wrong[w]);
    }
  }
  assert_int_equal(failures, 0);
}

static void is_refused_after_finalisation(void **state)
{
  (void)state;
  FIND(hipmm_finalize);
  FIND(hipmm_buffer_destroy);
  FIND(hipmm_host_buffer_destroy);
  FIND(hipmm_stream_pool_destroy);
  FIND(hipmm_stream_event_destroy);
  FIND(hipmm_movable_destroy);
  FIND(hipmm_resource_release);
  MUST(open_hipmm_buffer_destroy(objects[0].live));
  MUST(open_hipmm_host_buffer_destroy(objects[1].live));
  MUST(open_hipmm_stream_pool_destroy(objects[2].live));
  MUST(open_hipmm_stream_event_destroy(objects[3].live));
  MUST(open_hipmm_movable_destroy(objects[4].live));
  open_hipmm_resource_release(resource);
  MUST(open_hipmm_finalize());
  check_uninitialised(NEEDS_INITIALISATION);
}

int main(void)
{
  char file[4096];
  snprintf(file, sizeof file, "%s/.libs/libhipmm.so", getenv("top_builddir"));
  if (access(file, F_OK)) {
    printf("1..0 # SKIP no shared library was built\n");
    return 0;
  }
  snprintf(graph_file, sizeof graph_file, "%s/etc/hipmm.json", getenv("top_srcdir"));
  setenv("HIPMM_LOG", "error:/dev/null", 1); /* functions without a status log what they refuse */
  library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_function_has_a_row),
      cmocka_unit_test(is_refused_before_initialisation),
      cmocka_unit_test(refuses_each_wrong_argument),
      cmocka_unit_test(is_refused_after_finalisation),
  };
  if (!library) print_error("%s\n", dlerror());
  return library ? cmocka_run_group_tests_name("bad input", tests, NULL, NULL) : 1;
}
