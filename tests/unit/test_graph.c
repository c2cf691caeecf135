/* SPDX-License-Identifier: MIT */
/* Tests of core/graph: the files under tests/graphs, and graphs that are too unusual or too large for a file. Plugins
 * are fake (fake_plugins.c).
 *
 * tests/graphs/valid/CASE.json has CASE.tree, the expected graph (see dump below). tests/graphs/invalid/CASE.json has
 * CASE.expect, the expected diagnostics, in order. */
#include "../../core/graph/graph.h"
#include "../../tools/command/schema/schema.h"
#include "../support/support.h"
#include "fake_plugins.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT_BYTES = 1 << 16 };

/* ---- What came of a graph, as text ----------------------------------------------------------------------------- */

static void add_warnings(const struct diagnostics *diagnostics, char *text)
{
  char line[4096];
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next) {
    if (diagnostic->status == HIPMM_OK) strcat(text, "warning: ");
    strcat(strcat(text, diagnostics_line(diagnostics, diagnostic, line, sizeof line)), "\n");
  }
}

/* A line "NAME TYPE UPSTREAM… (REFERENCE…)" for each node in its final order, then "DEVICE: NAME". */
static void dump(const struct graph *graph, char *text)
{
  for (size_t i = 0; i < graph->n_nodes; i++) {
    const struct graph_node *node = &graph->nodes[i];
    strcat(strcat(strcat(text, node->name), " "), node->plugin->descriptor.type);
    for (size_t u = 0; u < node->n_upstreams; u++) strcat(strcat(text, " "), graph->nodes[node->upstreams[u]].name);
    strcat(text, " (");
    for (size_t r = 0; r < node->n_references; r++)
      strcat(strcat(text, r ? " " : ""), graph->nodes[node->references[r]].name);
    strcat(text, ")\n");
  }
  sprintf(text + strlen(text), "runtime: %s\ndefault: %s\n", graph->runtime, graph->nodes[graph->default_node].name);
  for (size_t i = 0; i < graph->n_nodes; i++)
    if (graph->nodes[i].is_by_name) sprintf(text + strlen(text), "by name: %s\n", graph->nodes[i].name);
  for (size_t i = 0; i < graph->n_devices; i++)
    sprintf(text + strlen(text), "%d: %s\n", graph->devices[i].device, graph->nodes[graph->devices[i].node].name);
}

/* Every node comes after all nodes that it needs; references are unique and include the upstreams. */
static void assert_graph_is_valid(const struct graph *graph)
{
  assert_in_range(graph->default_node, 0, (int)graph->n_nodes - 1);
  for (size_t i = 0; i < graph->n_nodes; i++) {
    const struct graph_node *node = &graph->nodes[i];
    bool is_needed[GRAPH_MAX_NODES] = {false};
    assert_non_null(node->plugin);
    assert_true(json_is_object(node->object));
    assert_int_equal(graph_find(graph, node->name), i);
    assert_in_range(node->n_upstreams, node->plugin->descriptor.min_upstreams, node->plugin->descriptor.max_upstreams);
    for (size_t r = 0; r < node->n_references; r++) {
      assert_true(node->references[r] >= 0 && node->references[r] < (int)i);
      assert_false(is_needed[node->references[r]]);
      is_needed[node->references[r]] = true;
    }
    for (size_t u = 0; u < node->n_upstreams; u++) assert_true(is_needed[node->upstreams[u]]);
  }
}

/* ---- The case folders ------------------------------------------------------------------------------------------ */

struct graph_case {
  char name[320], file[520], expected_file[520], base[256];
  bool is_valid;
};

static struct graph_case cases[256];
static size_t n_cases;

static void add_case(const char *folder, const char *entry, bool is_valid)
{
  size_t length = strlen(entry);
  if (length < 6 || strcmp(entry + length - 5, ".json")) return;
  struct graph_case *new_case = &cases[n_cases++];
  int stem = (int)length - 5;
  snprintf(new_case->name, sizeof new_case->name, "%s: %.*s",
           is_valid ? "builds the tree of" : "says what is wrong with", stem, entry);
  snprintf(new_case->file, sizeof new_case->file, "%s/%s", folder, entry);
  snprintf(new_case->expected_file, sizeof new_case->expected_file, "%s/%.*s%s", folder, stem, entry,
           is_valid ? ".tree" : ".expect");
  snprintf(new_case->base, sizeof new_case->base, "%s", entry);
  new_case->is_valid = is_valid;
}

static void find_cases(const char *kind, bool is_valid)
{
  const char *top = getenv("top_srcdir");
  char folder[256];
  struct dirent **entries;
  snprintf(folder, sizeof folder, "%s/tests/graphs/%s", top ? top : ".", kind);
  int n = scandir(folder, &entries, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    if (n_cases < sizeof cases / sizeof *cases) add_case(folder, entries[i]->d_name, is_valid);
    free(entries[i]);
  }
  if (n >= 0) free(entries);
}

static void read_text(const char *file, char *text)
{
  FILE *stream = fopen(file, "r");
  if (!stream) fail_msg("%s is missing", file);
  size_t n = fread(text, 1, TEXT_BYTES - 1, stream);
  text[n] = '\0';
  fclose(stream);
}

static void runs_case(void **state)
{
  const struct graph_case *row = *state;
  static char text[TEXT_BYTES], expected[TEXT_BYTES];
  struct diagnostics diagnostics = {.source = row->base};
  struct graph *graph = NULL;
  text[0] = '\0';
  enum hipmm_status status = graph_from_file(row->file, &diagnostics, &graph);
  add_warnings(&diagnostics, text);
  if (graph) dump(graph, text);
  if (getenv("HIPMM_SHOW_CASES")) fprintf(stderr, "== %s\n%s", row->base, text);
  read_text(row->expected_file, expected);
  assert_string_equal(text, expected);
  assert_int_equal(status == HIPMM_OK, row->is_valid);
  assert_int_equal(graph != NULL, row->is_valid);
  assert_int_equal(diagnostics.n_errors == 0, row->is_valid);
  if (graph) {
    assert_graph_is_valid(graph);
    graph_release(graph);
  }
  diagnostics_clear(&diagnostics);
}

/* ---- Graphs made here ------------------------------------------------------------------------------------------ */

static enum hipmm_status check(const char *json, const char *expected)
{
  char text[8192] = "";
  struct diagnostics diagnostics = {.source = "g"};
  struct graph *graph = NULL;
  enum hipmm_status status = graph_from_string(json, "g", &diagnostics, &graph);
  add_warnings(&diagnostics, text);
  assert_string_equal(text, expected);
  assert_int_equal(status == HIPMM_OK, graph != NULL);
  if (graph) {
    assert_graph_is_valid(graph);
    graph_release(graph);
  }
  diagnostics_clear(&diagnostics);
  return status;
}

/* A text that grows. */
struct text {
  char *data;
  size_t length;
  FILE *stream;
};

static void open_text(struct text *text)
{
  text->stream = open_memstream(&text->data, &text->length);
  assert_non_null(text->stream);
}

/* Resources r0 … r(n-1), each on the next, the last a device. */
static void write_chain(struct text *text, int n)
{
  open_text(text);
  fputs("{\"resources\": {", text->stream);
  for (int i = 0; i + 1 < n; i++)
    fprintf(text->stream, "\"r%d\": {\"type\": \"statistics\", \"upstream\": \"r%d\"}, ", i, i + 1);
  fprintf(text->stream, "\"r%d\": {\"type\": \"device\"}}}", n - 1);
  fclose(text->stream);
}

static void limits_the_depth(void **state)
{
  struct text text;
  (void)state;
  write_chain(&text, 100);
  assert_int_equal(check(text.data, ""), HIPMM_OK);
  free(text.data);
  write_chain(&text, 101);
  assert_int_equal(check(text.data,
                         "g:1:16: /resources/r0: depends on more than 99 resources, one on the other; the most is "
                         "100 deep\n"),
                   HIPMM_E_CONFIG);
  free(text.data);
  write_chain(&text, 1000);
  assert_int_equal(check(text.data,
                         "g:1:46546: /resources/r899: depends on more than 99 resources, one on the other; the most "
                         "is 100 deep\n"),
                   HIPMM_E_CONFIG);
  free(text.data);
}

static void limits_the_number_of_resources(void **state)
{
  struct text text;
  (void)state;
  write_chain(&text, 10000);
  assert_int_equal(check(text.data, "g:1:2: /resources: 10000 resources are too many; the most is 1000\n"),
                   HIPMM_E_CONFIG);
  free(text.data);
}

static void limits_the_stack(void **state)
{
  struct text text;
  (void)state;
  for (int n = 100; n <= 101; n++) {
    open_text(&text);
    fputs("{\"stack\": [", text.stream);
    for (int i = 1; i < n; i++) fputs("\"statistics\", ", text.stream);
    fputs("\"device\"]}", text.stream);
    fclose(text.stream);
    check(text.data, n == 100 ? "" : "g:1:2: /stack: 101 resources are too deep a stack; the most is 100\n");
    free(text.data);
  }
}

/* A graph that is read again, to compare how long. */
static struct {
  char *json;
  enum hipmm_status status;
  struct diagnostics diagnostics;
} read_again = {.diagnostics.source = "g"};

static void read_graph_again(void)
{
  struct graph *graph = NULL;
  diagnostics_clear(&read_again.diagnostics);
  read_again.status = graph_from_string(read_again.json, "g", &read_again.diagnostics, &graph);
  if (graph) graph_release(graph);
}

/* Reads ten times as much in less than 40 times the time, which would be 100 times if each part were compared with each. */
static void assert_reads_in_linear_time(char *tenth, char *whole)
{
  read_again.json = tenth;
  uint64_t time_of_tenth = least_time(3, read_graph_again);
  read_again.json = whole;
  assert_in_range(least_time(1, read_graph_again), 1, 40 * time_of_tenth);
}

/* A resource that n others need, and one that names each of those ten times. */
static char *write_pools(int n)
{
  struct text text;
  open_text(&text);
  fputs("{\"resources\": {\"m\": {\"type\": \"device\"}", text.stream);
  for (int i = 0; i < n; i++)
    fprintf(text.stream, ", \"p%d\": {\"type\": \"pool\", \"upstream\": \"m\", \"initial_size\": \"1MiB\"}", i);
  fputs(", \"b\": {\"type\": \"binning\", \"upstream\": \"m\", \"bins\": [", text.stream);
  for (int i = 0; i < 10 * n; i++)
    fprintf(text.stream, "%s{\"size\": %d, \"resource\": \"p%d\"}", i ? ", " : "", i + 1, i % n);
  fputs("]}}}", text.stream);
  fclose(text.stream);
  return text.data;
}

static void reads_a_thousand_resources_at_once(void **state)
{
  char *tenth = write_pools(99), *whole = write_pools(998);
  (void)state;
  assert_int_equal(check(whole, ""), HIPMM_OK);
  assert_reads_in_linear_time(tenth, whole);
  assert_int_equal(read_again.status, HIPMM_OK);
  diagnostics_clear(&read_again.diagnostics);
  free(tenth);
  free(whole);
}

static char *write_errors(int n)
{
  struct text text;
  open_text(&text);
  fputs(
      "{\"resources\": {\"m\": {\"type\": \"device\"}, \"b\": {\"type\": \"binning\", \"upstream\": \"m\", \"bins\": [",
      text.stream);
  for (int i = 0; i < n; i++) fprintf(text.stream, "%s{\"size\": 1, \"resource\": \"nobody%d\"}", i ? ", " : "", i);
  fputs("]}}}", text.stream);
  fclose(text.stream);
  return text.data;
}

static void keeps_a_thousand_errors_and_counts_the_rest(void **state)
{
  char *tenth = write_errors(10000), *whole = write_errors(100000);
  size_t n_kept = 0;
  (void)state;
  assert_reads_in_linear_time(tenth, whole);
  assert_int_equal(read_again.status, HIPMM_E_CONFIG);
  for (const struct diagnostic *diagnostic = read_again.diagnostics.first; diagnostic; diagnostic = diagnostic->next)
    n_kept++;
  assert_int_equal(n_kept, DIAGNOSTICS_MOST_KEPT);
  assert_int_equal(read_again.diagnostics.n_errors, 100000);
  diagnostics_clear(&read_again.diagnostics);
  free(tenth);
  free(whole);
}

static void finds_long_cycles_without_recursion(void **state)
{
  struct text text;
  (void)state;
  open_text(&text);
  fputs("{\"resources\": {", text.stream);
  for (int i = 0; i < 1000; i++)
    fprintf(text.stream, "%s\"r%d\": {\"type\": \"statistics\", \"upstream\": \"r%d\"}", i ? ", " : "", i,
            (i + 1) % 1000);
  fputs("}}", text.stream);
  fclose(text.stream);
  check(text.data, "g:1:16: /resources/r0: cycle: r0 → r1 → r2 → r3 → r4 → r5 → r6 → r7 → … → r999 → r0\n");
  free(text.data);
}

static void nest(struct text *text, int depth, const char *open, const char *close)
{
  open_text(text);
  fputs("{\"stack\": ", text->stream);
  for (int i = 0; i < depth; i++) fputs(open, text->stream);
  for (int i = 0; i < depth; i++) fputs(close, text->stream);
  fputs("}", text->stream);
  fclose(text->stream);
}

static void survives_deep_nesting(void **state)
{
  struct text text;
  (void)state;
  nest(&text, 1000, "[", "]");
  check(text.data, "g:1:12: /stack/0: a list is not a resource; write a type, or {\"type\": …}\n");
  free(text.data);
  nest(&text, 100000, "[", "]");
  assert_int_equal(check(text.data, "g:1:2058: maximum parsing depth reached near '['\n"), HIPMM_E_SYNTAX);
  free(text.data);
}

/* ---- Files that are none --------------------------------------------------------------------------------------- */

static enum hipmm_status check_file(const char *file, const char *expected)
{
  char text[4096] = "";
  struct diagnostics diagnostics = {.source = "f"};
  enum hipmm_status status = graph_from_file(file, &diagnostics, NULL);
  add_warnings(&diagnostics, text);
  assert_string_equal(text, expected);
  diagnostics_clear(&diagnostics);
  return status;
}

static void refuses_folders_and_missing_files(void **state)
{
  (void)state;
  assert_int_equal(check_file("/", "f: cannot be read: Is a directory\n"), HIPMM_E_IO);
  assert_int_equal(check_file("/nowhere/hipmm.json", "f: cannot be read: No such file or directory\n"), HIPMM_E_IO);
  assert_int_equal(check_file("", "f: cannot be read: No such file or directory\n"), HIPMM_E_IO);
  assert_int_equal(check_file("/dev/null/x", "f: cannot be read: Not a directory\n"), HIPMM_E_IO);
}

static void refuses_files_that_it_may_not_read(void **state)
{
  char file[] = "/tmp/hipmm-graph-XXXXXX";
  (void)state;
  int descriptor = mkstemp(file);
  assert_true(descriptor >= 0);
  fchmod(descriptor, 0);
  close(descriptor);
  bool is_root = access(file, R_OK) == 0;
  check_file(file, is_root ? "f:1:1: is empty; the smallest graph is {\"stack\": [\"device\"]}\n"
                           : "f: cannot be read: Permission denied\n");
  unlink(file);
}

/* The file's blocks are never written, so the gigabyte costs nothing; it is refused by its size alone. */
static void refuses_a_gigabyte_unread(void **state)
{
  char file[] = "/tmp/hipmm-graph-XXXXXX";
  (void)state;
  int descriptor = mkstemp(file);
  assert_true(descriptor >= 0);
  assert_int_equal(ftruncate(descriptor, 1 << 30), 0);
  close(descriptor);
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  assert_int_equal(check_file(file, "f: is larger than 16 MiB, too large for a graph\n"), HIPMM_E_CONFIG);
  getrusage(RUSAGE_SELF, &after);
  assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 100 << 10); /* of KiB */
  unlink(file);
}

/* A device that never ends is read to the limit and no further. */
static void refuses_what_never_ends(void **state)
{
  (void)state;
  assert_int_equal(check_file("/dev/zero", "f: is larger than 16 MiB, too large for a graph\n"), HIPMM_E_CONFIG);
}

static void takes_spaces_up_to_the_limit(void **state)
{
  (void)state;
  size_t n = 16 << 20;
  char *text = malloc(n + 2);
  assert_non_null(text);
  memset(text, ' ', n + 1);
  text[n + 1] = '\0';
  check(text, "g: is larger than 16 MiB, too large for a graph\n");
  text[n] = '\0';
  check(text, "g:1:1: is empty; the smallest graph is {\"stack\": [\"device\"]}\n");
  memcpy(text + n - 20, "{\"stack\":[\"device\"]}", 20);
  check(text, "");
  free(text);
}

static void does_not_wait_for_a_pipe_without_writer(void **state)
{
  char folder[] = "/tmp/hipmm-graph-XXXXXX", file[64];
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/pipe", folder);
  assert_int_equal(mkfifo(file, 0600), 0);
  assert_int_equal(check_file(file, "f:1:1: is empty; the smallest graph is {\"stack\": [\"device\"]}\n"),
                   HIPMM_E_SYNTAX);
  unlink(file);
  rmdir(folder);
}

/* Each byte comes alone, as from a writer that waits between them. */
static void reads_a_file_in_any_number_of_pieces(void **state)
{
  static const char text[] = "{\"stack\": [\"statistics\", \"device\"]}";
  int ends[2];
  char file[32];
  (void)state;
  if (access("/dev/fd", R_OK)) skip();
  assert_int_equal(pipe2(ends, O_DIRECT), 0);
  assert_true(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) > 0);
  for (size_t i = 0; i < sizeof text - 1; i++) assert_int_equal(write(ends[1], text + i, 1), 1);
  close(ends[1]);
  snprintf(file, sizeof file, "/dev/fd/%d", ends[0]);
  assert_int_equal(check_file(file, ""), HIPMM_OK);
  close(ends[0]);
}

/* ---- Plugins ---------------------------------------------------------------------------------------------------- */

static void searches_once_for_a_type(void **state)
{
  struct text text;
  (void)state;
  write_chain(&text, 50);
  fake_plugins_searches = 0;
  check(text.data, "");
  assert_int_equal(fake_plugins_searches, 2);
  free(text.data);
}

/* For want of host memory, which there is when the plugin is asked for once more. */
static void takes_a_plugin_that_is_found_at_the_second_try(void **state)
{
  (void)state;
  fake_plugins_failures = 1;
  assert_int_equal(check("{\"stack\": [\"device\"]}", ""), HIPMM_OK);
  fake_plugins_failures = 1;
  assert_int_equal(check("{\"runtime\": \"software\", \"stack\": [\"device\"]}", ""), HIPMM_OK);
  fake_plugins_failures = 2;
  assert_int_equal(check("{\"stack\": [\"device\"]}", "g:1:12: /stack/0: out of host memory\n"), HIPMM_E_OUT_OF_MEMORY);
}

/* ---- The rest of the interface --------------------------------------------------------------------------------- */

static void gives_every_device_a_plain_device_without_a_file(void **state)
{
  struct diagnostics diagnostics = {0};
  struct graph *graph;
  (void)state;
  assert_int_equal(graph_built_in(&diagnostics, &graph), HIPMM_OK);
  assert_int_equal(graph->n_nodes, 1);
  assert_string_equal(graph->nodes[0].name, "device");
  assert_string_equal(graph->nodes[0].plugin->descriptor.type, "device");
  assert_string_equal(graph->source, "<built in>");
  assert_string_equal(graph->runtime, "auto");
  assert_int_equal(json_object_size(graph->runtime_object), 0);
  assert_int_equal(graph_top(graph, 7), 0);
  graph_release(graph);
  diagnostics_clear(&diagnostics);
}

static void finds_the_top_of_each_device(void **state)
{
  static const char json[] =
      "{\"resources\": {\"m\": {\"type\": \"device\"}, \"p\": {\"type\": \"pool\", \"upstream\": "
      "\"m\"}}, \"devices\": {\"default\": \"p\", \"1\": \"m\"}}";
  struct diagnostics diagnostics = {0};
  struct graph *graph;
  (void)state;
  assert_int_equal(graph_from_string(json, "<string>", &diagnostics, &graph), HIPMM_OK);
  assert_int_equal(graph_top(graph, 0), graph_find(graph, "p"));
  assert_int_equal(graph_top(graph, 1), graph_find(graph, "m"));
  assert_int_equal(graph_top(graph, 2), graph_find(graph, "p"));
  assert_int_equal(graph_find(graph, "q"), -1);
  graph_retain(graph);
  graph_release(graph);
  assert_string_equal(graph->source, "<string>");
  graph_release(graph);
}

static void resolves_the_plugin_path_from_the_files_folder(void **state)
{
  char folder[] = "/tmp/hipmm-graph-XXXXXX", file[64], expected[64];
  struct diagnostics diagnostics = {0};
  struct graph *graph;
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/g.json", folder);
  FILE *stream = fopen(file, "w");
  fputs("{\"plugin_path\": [\"mine\", \"/opt/theirs\"], \"stack\": [\"device\"]}", stream);
  fclose(stream);
  assert_int_equal(graph_from_file(file, &diagnostics, &graph), HIPMM_OK);
  snprintf(expected, sizeof expected, "%s/mine", folder);
  assert_int_equal(graph->plugin_path.n_folders, 2);
  assert_string_equal(graph->plugin_path.folders[0], expected);
  assert_string_equal(graph->plugin_path.folders[1], "/opt/theirs");
  assert_ptr_equal(fake_plugins_path.folders, graph->plugin_path.folders);
  graph_release(graph);
  assert_int_equal(graph_from_string("{\"plugin_path\": \"mine\"}", "<string>", &diagnostics, &graph), HIPMM_OK);
  assert_string_equal(graph->plugin_path.folders[0], "mine");
  graph_release(graph);
  unlink(file);
  rmdir(folder);
  diagnostics_clear(&diagnostics);
}

static void keeps_the_options_of_the_runtime(void **state)
{
  struct diagnostics diagnostics = {0};
  struct graph *graph;
  (void)state;
  assert_int_equal(
      graph_from_string("{\"runtime\": {\"type\": \"software\", \"devices\": 2}}", "g", &diagnostics, &graph),
      HIPMM_OK);
  assert_string_equal(graph->runtime, "software");
  assert_int_equal(json_integer_value(json_object_get(graph->runtime_object, "devices")), 2);
  graph_release(graph);
}

static void raises_the_first_error_and_counts_the_others(void **state)
{
  struct diagnostics diagnostics = {.source = "etc/hipmm.json"};
  struct hipmm_error error = {.struct_size = sizeof error};
  (void)state;
  graph_from_string(
      "{\"stack\": [{\"type\": \"pool\", \"inital_size\": 1}, {\"type\": \"device\", \"x\": 1}], \"z\": 0}",
      "etc/hipmm.json", &diagnostics, NULL);
  assert_int_equal(diagnostics.n_errors, 3);
  assert_int_equal(diagnostics_raise(&diagnostics), HIPMM_E_CONFIG);
  hipmm_last_error(&error);
  assert_string_equal(error.file, "etc/hipmm.json");
  assert_string_equal(error.path, "/stack/0/inital_size");
  assert_int_equal(error.line, 1);
  assert_int_equal(error.column, 29);
  assert_non_null(strstr(error.message, "etc/hipmm.json:1:29: /stack/0/inital_size: unknown option \"inital_size\""));
  assert_non_null(strstr(error.message, " (and 2 more errors)"));
  assert_string_equal(diagnostics.first->resource, "pool");
  assert_string_equal(diagnostics.last->path, "/z");
  diagnostics_clear(&diagnostics);
  assert_null(diagnostics.first);
  assert_int_equal(diagnostics_raise(&diagnostics), HIPMM_OK);
}

static void raises_syntax_errors_with_their_place(void **state)
{
  struct diagnostics diagnostics = {.source = "g"};
  struct hipmm_error error = {.struct_size = sizeof error};
  (void)state;
  assert_int_equal(graph_from_string("{\n  \"stack\" [] }", "g", &diagnostics, NULL), HIPMM_E_SYNTAX);
  assert_int_equal(diagnostics_raise(&diagnostics), HIPMM_E_SYNTAX);
  hipmm_last_error(&error);
  assert_int_equal(error.line, 2);
  assert_int_equal(error.column, 11);
  assert_string_equal(error.message, "g:2:11: ':' expected near '['; is a colon missing before it?");
  diagnostics_clear(&diagnostics);
}

static void assert_checked(const char *text, const char *said)
{
  char lines[TEXT_BYTES] = "", line[4096];
  struct diagnostics diagnostics = {.source = "g"};
  graph_check("g", text, &diagnostics, NULL);
  for (const struct diagnostic *one = diagnostics.first; one; one = one->next)
    strcat(strcat(lines, diagnostics_line(&diagnostics, one, line, sizeof line)), "\n");
  diagnostics_clear(&diagnostics);
  assert_string_equal(lines, said);
}

/* Each text has more than one syntax error, or errors in its meaning behind it. */
static const struct {
  const char *text, *said;
} first_errors[] = {
    {"{ // the stack\n \"stack\": [\"devise\",] }", "g:1:3: string or '}' expected near '/'; JSON has no comments\n"},
    {"{ \"stack\": [\"device\"], / \"x\": 1,\n\"y\": 2 }",
     "g:1:24: string or '}' expected near '/'; JSON has no comments\n"},
    {"{ \"stack\": [\"device\"], /* \"x\": 1,\n\"y\": 2 }",
     "g:1:24: string or '}' expected near '/'; JSON has no comments\n"},
    {"{ # the stack\n \"stack\": [] }", "g:1:3: string or '}' expected near '#'; JSON has no comments\n"},
    {"{ \"version\": 2, type: \"devise\", }",
     "g:1:17: string or '}' expected near 'type'; names stand in double quotes\n"},
    {"{ 'stack: [\n\"device\"] }", "g:1:3: string or '}' expected near '''; JSON has double quotes only\n"},
    {"{ \"a\": 'b', \"c\": None }", "g:1:8: invalid token near '''; JSON has double quotes only\n"},
    {"{ \"version\": 1 \"stack\": [None] }",
     "g:1:16: '}' expected near '\"stack\"'; is a comma or \"},\" missing before it?\n"},
    {"{ \"stack\": [\"devise\" ; \"x\": NaN ] }",
     "g:1:22: ']' expected near ';'; is a comma or \"],\" missing before it?\n"},
    {"{ \"stack\": [\"pool\", \"device\" \t, ], }",
     "g:1:31: unexpected token near ']'; the comma before it is one too many\n"},
    {"{ \"version\": 2,\n} }", "g:1:15: string or '}' expected near '}'; the comma before it is one too many\n"},
    {"{ \"version\" 2, \"version\" 2 }", "g:1:13: ':' expected near '2'; is a colon missing before it?\n"},
    {"{ \"version: 2, \"stack\": [] }", "g:1:17: ':' expected near 'stack'; is a quote missing before it?\n"},
    {"{ \"stack\": pool, \"x\": True }",
     "g:1:12: invalid token near 'pool'; a word is true, false or null, in lower case, or text in double quotes\n"},
    {"{ \"a\": [-1.50 \t KiB, 2MB] }",
     "g:1:9: ']' expected near 'KiB'; a number with a unit stands in double quotes\n"},
    {"{ \"a\": 1KiB, \"b\": 2MB }", "g:1:8: '}' expected near 'KiB'; a number with a unit stands in double quotes\n"},
    {"{ \"a\": 50%, \"b\": 2% }", "g:1:8: '}' expected near '%'; a number with a unit stands in double quotes\n"},
    {"{ \"a\": [1}, \"b\": [ }", "g:1:10: ']' expected near '}'\n"},
    {"{ \"a\": \"\\u0000\", \"\\u0000\": 1 }", "g:1:15: \\u0000 is not allowed\n"},
    {"{ \"a\xff\xff\": 1, \"b\xff\": 2, \"stack\": [\"devise\"] }", "g:1:4: unable to decode byte 0xff near '\"a'\n"},
    {"{ \"a\": { \"x\": [1] }, \"a\": 2, \"b\": [", "g:1:35: ']' expected near end of file\n"},
    {"{ \"stack\": [\"device\"], \"stack\": [\"device\"] ] }", "g:1:44: '}' expected near ']'\n"},
};

/* In checking as in building. */
static void stops_at_the_first_syntax_error(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof first_errors / sizeof *first_errors; i++) {
    assert_checked(first_errors[i].text, first_errors[i].said);
    assert_int_equal(check(first_errors[i].text, first_errors[i].said), HIPMM_E_SYNTAX);
  }
}

static const char with_duplicates[] =
    "{ \"resources\": { \"a\": { \"type\": \"devise\" }, \"b\": { \"type\": \"pool\", \"upstream\": \"a\" },\n"
    "\"\\u0061\": { \"type\": \"pool\", \"upstream\": \"b\", \"initial_size\": null, \"growth\": \"type\",\n"
    "\"type\": \"pool\" } } }";

/* The last of two counts. A value that is like a name is none. */
static void reports_duplicates_beside_all_other_errors(void **state)
{
  static const char said[] =
      "g:2:1: /resources/a: cycle: a → b → a\n"
      "g:2:1: duplicate object key near '\"a\"'; a name can stand once in an object, so remove one\n"
      "g:2:46: /resources/a/initial_size: null is not a size; write bytes, \"512MiB\", \"2GB\", \"50%\", \"50% of "
      "total\" or \"share\"\n"
      "g:2:68: /resources/a/growth: \"type\" is not allowed; write \"auto\", \"mapped\" or \"segments\"\n"
      "g:3:1: duplicate object key near '\"type\"'; a name can stand once in an object, so remove one\n";
  (void)state;
  assert_checked(with_duplicates, said);
  assert_int_equal(check(with_duplicates, said), HIPMM_E_CONFIG);
}

/* The parser goes 2048 levels deep. */
static void finds_duplicates_at_any_depth(void **state)
{
  enum { DEPTH = 2000 };
  struct text text;
  (void)state;
  open_text(&text);
  fputs("{\"stack\": [\"device\",\n", text.stream);
  for (int i = 0; i < DEPTH; i++) fputs(i % 2 ? "[1, " : "{\"x\":", text.stream);
  fputs("\n{\"x\": [], \"x\": {}}", text.stream);
  for (int i = DEPTH; i-- > 0;) fputs(i % 2 ? "]" : "}", text.stream);
  fputs("]}", text.stream);
  fclose(text.stream);
  check(text.data,
        "g:1:12: /stack/0: device takes no upstream, so it can only be the last of the stack\n"
        "g:2:1: /stack/1: has no \"type\"; write \"type\": \"pool\" or another (`hipmm plugins` lists them)\n"
        "g:3:11: duplicate object key near '\"x\"'; a name can stand once in an object, so remove one\n");
  free(text.data);
}

/* A file that was cut off has one mistake, wherever that was. */
static void a_text_that_is_cut_off_has_one_mistake(void **state)
{
  static const char whole[] = "{ \"stack\": [ { \"type\": \"binning\", \"bins\": [ { \"size\": 1 } ] }, \"device\" ], "
                              "\"runtime\": { \"type\": \"software\" } }";
  (void)state;
  for (size_t bytes = 1; bytes < sizeof whole - 1; bytes++) {
    char text[sizeof whole] = "";
    struct diagnostics diagnostics = {.source = "g"};
    memcpy(text, whole, bytes);
    graph_check("g", text, &diagnostics, NULL);
    if (diagnostics.n_errors != 1) fail_msg("%zu errors in %s", diagnostics.n_errors, text);
    diagnostics_clear(&diagnostics);
  }
}

/* As a program would read the file; and a library that is a runtime must be there. */
static void checks_files_and_libraries(void **state)
{
  static const char there[] = "{\"runtime\": \"/dev/null\"}", nowhere[] = "{\"runtime\": \"/nowhere/at.so\"}";
  char file[] = "/tmp/hipmm-graph-XXXXXX";
  (void)state;
  assert_checked(there, "");
  assert_checked(nowhere, "g:1:2: /runtime: the library \"/nowhere/at.so\" is not there\n");
  int descriptor = mkstemp(file);
  assert_int_equal(write(descriptor, nowhere, sizeof nowhere - 1), sizeof nowhere - 1);
  close(descriptor);
  struct diagnostics diagnostics = {.source = "g"};
  assert_int_equal(graph_check(file, NULL, &diagnostics, NULL), HIPMM_E_CONFIG);
  assert_string_equal(diagnostics.first->path, "/runtime");
  diagnostics_clear(&diagnostics);
  unlink(file);
}

/* Bytes that are replaced, removed and doubled, by numbers of a fixed sequence. */
static void survives_damaged_text(void **state)
{
  static const char bytes[] = "{}[]\",:'/*#\\\xff\x01 u0nT1.e-\n";
  char text[2 * sizeof with_duplicates];
  uint32_t random = 1;
  (void)state;
  for (int round = 0; round < 3000; round++) {
    struct diagnostics diagnostics = {.source = "g"};
    struct graph *graph = NULL;
    size_t length = strlen(strcpy(text, with_duplicates));
    for (int i = 0; i < 1 + round % 8; i++) {
      random = random * 1664525 + 1013904223;
      size_t at = (random >> 8) % length;
      if (random >> 30 == 0) memmove(text + at, text + at + 1, length - at), length--;
      if (random >> 30 == 1 && length + 2 < sizeof text) memmove(text + at + 1, text + at, length + 1 - at), length++;
      if (random >> 30 > 1) text[at] = bytes[random % (sizeof bytes - 1)];
    }
    enum hipmm_status status = graph_check("g", text, &diagnostics, &graph);
    assert_int_equal(status == HIPMM_OK, diagnostics.n_errors == 0);
    for (const struct diagnostic *one = diagnostics.first; one && one->next; one = one->next)
      assert_true(one->line < one->next->line || (one->line == one->next->line && one->column <= one->next->column));
    if (graph) graph_release(graph);
    diagnostics_clear(&diagnostics);
  }
}

/* ---- The schema ------------------------------------------------------------------------------------------------ */

/* Follows "#/$defs/NAME". */
static json_t *resolve(json_t *schema, const char *reference)
{
  assert_memory_equal(reference, "#/$defs/", 8);
  return json_object_get(json_object_get(schema, "$defs"), reference + 8);
}

static void assert_references_resolve(json_t *schema, json_t *value)
{
  const char *key;
  json_t *child;
  size_t i;
  json_object_foreach(value, key, child)
  {
    if (!strcmp(key, "$ref")) assert_non_null(resolve(schema, json_string_value(child)));
    assert_references_resolve(schema, child);
  }
  json_array_foreach(value, i, child) assert_references_resolve(schema, child);
}

static void describes_every_option_in_the_schema(void **state)
{
  json_t *schema = graph_schema(&(struct plugin_path){0});
  size_t n = 0;
  const struct plugin **plugins = plugin_all(&(struct plugin_path){0}, &n);
  (void)state;
  assert_string_equal(json_string_value(json_object_get(schema, "$schema")),
                      "https://json-schema.org/draft/2020-12/schema");
  for (size_t i = 0; i < n; i++) {
    const struct plugin *plugin = plugins[i];
    const char *type = plugin->descriptor.type;
    json_t *object = json_object_get(json_object_get(schema, "$defs"), type);
    assert_true(json_is_false(json_object_get(object, "additionalProperties")));
    json_t *properties = json_object_get(object, "properties");
    assert_string_equal(json_string_value(json_object_get(json_object_get(properties, "type"), "const")), type);
    for (size_t o = 0; o < plugin->descriptor.n_options; o++) {
      const struct hipmm_option *row = &plugin->descriptor.options[o];
      json_t *description = json_object_get(json_object_get(properties, row->name), "description");
      assert_non_null(strstr(json_string_value(description), row->doc));
    }
    assert_int_equal(json_object_get(properties, "upstream") != NULL, plugin->descriptor.max_upstreams > 0);
  }
  assert_references_resolve(schema, schema);
  free(plugins);
  json_decref(schema);
}

int main(void)
{
  static const struct CMUnitTest plain[] = {
      {"limits the depth of a graph", limits_the_depth, NULL, NULL, NULL},
      {"limits the number of resources", limits_the_number_of_resources, NULL, NULL, NULL},
      {"limits the depth of a stack", limits_the_stack, NULL, NULL, NULL},
      {"reads a thousand resources at once", reads_a_thousand_resources_at_once, NULL, NULL, NULL},
      {"keeps a thousand errors and counts the rest", keeps_a_thousand_errors_and_counts_the_rest, NULL, NULL, NULL},
      {"finds long cycles without recursion", finds_long_cycles_without_recursion, NULL, NULL, NULL},
      {"survives deep nesting", survives_deep_nesting, NULL, NULL, NULL},
      {"refuses folders and missing files", refuses_folders_and_missing_files, NULL, NULL, NULL},
      {"refuses files that it may not read", refuses_files_that_it_may_not_read, NULL, NULL, NULL},
      {"refuses a gigabyte unread", refuses_a_gigabyte_unread, NULL, NULL, NULL},
      {"refuses what never ends", refuses_what_never_ends, NULL, NULL, NULL},
      {"takes spaces up to the limit", takes_spaces_up_to_the_limit, NULL, NULL, NULL},
      {"does not wait for a pipe without a writer", does_not_wait_for_a_pipe_without_writer, NULL, NULL, NULL},
      {"reads a file in any number of pieces", reads_a_file_in_any_number_of_pieces, NULL, NULL, NULL},
      {"searches once for a type", searches_once_for_a_type, NULL, NULL, NULL},
      {"takes a plugin that is found at the second try", takes_a_plugin_that_is_found_at_the_second_try, NULL, NULL,
       NULL},
      {"gives every device a plain device without a file", gives_every_device_a_plain_device_without_a_file, NULL, NULL,
       NULL},
      {"finds the top of each device", finds_the_top_of_each_device, NULL, NULL, NULL},
      {"resolves plugin_path from the file's folder", resolves_the_plugin_path_from_the_files_folder, NULL, NULL, NULL},
      {"keeps the options of the runtime", keeps_the_options_of_the_runtime, NULL, NULL, NULL},
      {"raises the first error and counts the others", raises_the_first_error_and_counts_the_others, NULL, NULL, NULL},
      {"raises syntax errors with their place", raises_syntax_errors_with_their_place, NULL, NULL, NULL},
      {"stops at the first syntax error", stops_at_the_first_syntax_error, NULL, NULL, NULL},
      {"reports duplicates beside all other errors", reports_duplicates_beside_all_other_errors, NULL, NULL, NULL},
      {"finds duplicates at any depth", finds_duplicates_at_any_depth, NULL, NULL, NULL},
      {"says once that a text is cut off", a_text_that_is_cut_off_has_one_mistake, NULL, NULL, NULL},
      {"checks files and libraries", checks_files_and_libraries, NULL, NULL, NULL},
      {"survives damaged text", survives_damaged_text, NULL, NULL, NULL},
      {"describes every option in the schema", describes_every_option_in_the_schema, NULL, NULL, NULL},
  };
  enum { N_PLAIN = sizeof plain / sizeof *plain };
  static struct CMUnitTest tests[N_PLAIN + sizeof cases / sizeof *cases];
  find_cases("valid", true);
  size_t n_valid = n_cases;
  find_cases("invalid", false);
  if (n_valid < 10 || n_cases - n_valid < 50) {
    printf("1..0\nBail out! tests/graphs is missing or short\n");
    return 1;
  }
  memcpy(tests, plain, sizeof plain);
  for (size_t i = 0; i < n_cases; i++)
    tests[N_PLAIN + i] = (struct CMUnitTest){cases[i].name, runs_case, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("graph", tests, N_PLAIN + n_cases, NULL, NULL);
}
