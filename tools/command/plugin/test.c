/* SPDX-License-Identifier: MIT */
/* test.c: `hipmm plugin test`: runs the checks of the conformance kit on a plugin and prints a line for each. */
#include "plugin.h"

#include "kit.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct kit_check *const test_tables[] = {kit_checks_file, kit_checks_memory, kit_checks_stack,
                                                      kit_checks_streams, kit_checks_failures};

enum { TEST_TABLES = sizeof test_tables / sizeof *test_tables };

/* How a run goes. */
struct test {
  struct kit kit;
  const char *only; /* the name of the one check to run; NULL: all */
  json_t *rows;     /* NULL when text is printed */
  size_t n[3];      /* by verdict */
};

static const struct {
  const char *word;
  enum style style;
} test_verdicts[] = {
    [KIT_PASSED] = {"ok", STYLE_GOOD}, [KIT_FAILED] = {"FAILED", STYLE_BAD}, [KIT_SKIPPED] = {"skipped", STYLE_FAINT}};

/* ---- Printing -------------------------------------------------------------------------------------------------- */

static void test_print(const struct kit_check *check, const struct kit_finding *finding)
{
  print_padded(test_verdicts[finding->verdict].style, test_verdicts[finding->verdict].word, 9);
  print_padded(STYLE_NAME, check->name, 0);
  printf(": ");
  output_text(stdout, finding->verdict == KIT_SKIPPED ? finding->text : check->expected);
  if (finding->verdict == KIT_FAILED) {
    printf("; came: ");
    output_text(stdout, finding->text);
    printf("; to mend it: ");
    output_text(stdout, finding->mend);
  }
  putchar('\n');
  fflush(stdout);
}

static void test_add_json(json_t *rows, const struct kit_check *check, const struct kit_finding *finding)
{
  bool has_failed = finding->verdict == KIT_FAILED;
  json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", check->name, "verdict",
                                        has_failed                        ? "failed"
                                        : finding->verdict == KIT_SKIPPED ? "skipped"
                                                                          : "passed",
                                        "expected", check->expected, has_failed ? "came" : "reason",
                                        output_json_string(finding->verdict == KIT_PASSED ? NULL : finding->text),
                                        "mend", output_json_string(has_failed ? finding->mend : NULL)));
}

static int test_finish(struct test *test)
{
  int status = test->n[KIT_FAILED] ? CMD_BAD : CMD_GOOD;
  if (test->rows)
    return output_json(json_pack("{s:o, s:s, s:s, s:i, s:i, s:i, s:o}", "file", output_json_string(test->kit.file),
                                 "type", test->kit.type, "over", test->kit.over, "passed", (int)test->n[KIT_PASSED],
                                 "failed", (int)test->n[KIT_FAILED], "skipped", (int)test->n[KIT_SKIPPED], "checks",
                                 test->rows),
                       status);
  printf("\n");
  output_text(stdout, test->kit.type);
  printf(": %zu passed, %s%zu failed%s, %zu skipped\n", test->n[KIT_PASSED],
         style(test->n[KIT_FAILED] ? STYLE_BAD : STYLE_OFF), test->n[KIT_FAILED], style(STYLE_OFF),
         test->n[KIT_SKIPPED]);
  return output_finish(status);
}

/* ---- Running --------------------------------------------------------------------------------------------------- */

/* The first check of the first two tables, `load` and `create`, is what all others need: without it the rest would only
 * say the same again. */
static void test_run_all(struct test *test)
{
  bool goes_on = true;
  for (size_t table = 0; goes_on && table < TEST_TABLES; table++)
    for (const struct kit_check *check = test_tables[table]; goes_on && check->name; check++) {
      if (test->only && strcmp(test->only, check->name) != 0) continue;
      struct kit_finding finding = kit_run(&test->kit, check);
      test->n[finding.verdict]++;
      if (test->rows)
        test_add_json(test->rows, check, &finding);
      else
        test_print(check, &finding);
      if (check == kit_checks_file || check == kit_checks_memory) goes_on = finding.verdict != KIT_FAILED;
    }
}

/* ---- The command line ------------------------------------------------------------------------------------------ */

static bool test_is_check(const char *name)
{
  for (size_t table = 0; table < TEST_TABLES; table++)
    for (const struct kit_check *check = test_tables[table]; check->name; check++)
      if (!strcmp(name, check->name)) return true;
  return false;
}

static bool test_choose_check(const char *name)
{
  if (!name || test_is_check(name)) return true;
  fprintf(stderr, "hipmm: plugin test: there is no check \"%s\"; the checks are", name);
  const char *comma = " ";
  for (size_t table = 0; table < TEST_TABLES; table++)
    for (const struct kit_check *check = test_tables[table]; check->name; check++, comma = ", ")
      fprintf(stderr, "%s%s", comma, check->name);
  fprintf(stderr, "\n");
  return false;
}

/* The file with its folder: it is looked for by its type in that folder. */
static bool test_choose_file(const char *file, struct kit *kit_out, char *path)
{
  if (!realpath(file, path)) {
    say("plugin test: %s: no such file; name the plugin's file, TYPE.so (hipmm describe TYPE shows where that of a "
        "type "
        "is)",
        file);
    return false;
  }
  const char *name = strrchr(path, '/') + 1;
  size_t length = strlen(name);
  bool is_plugin = length > 3 && !strcmp(name + length - 3, ".so") && length - 3 < sizeof kit_out->type;
  if (!is_plugin) say("plugin test: %s: a plugin's file is called TYPE.so", file);
  bool has_colon = memchr(path, ':', (size_t)(name - path)) != NULL;
  if (has_colon) say("plugin test: %s: a folder with \":\" in its name cannot be on the plugin path", file);
  if (!is_plugin || has_colon) return false;
  snprintf(kit_out->type, sizeof kit_out->type, "%.*s", (int)(length - 3), name);
  kit_out->file = path;
  return true;
}

static bool test_read_options(const char *text, json_t **options_out)
{
  json_error_t error;
  if (!text) return true;
  *options_out = json_loads(text, 0, &error);
  if (json_is_object(*options_out)) return true;
  say("plugin test: --options is not a JSON object%s%s", *options_out ? "" : ": ", *options_out ? "" : error.text);
  json_decref(*options_out);
  return false;
}

int plugin_test(const struct arguments *arguments, const struct plugin_words *words)
{
  char path[PATH_MAX];
  struct test test = {.only = words->only, .kit.over = words->over ? words->over : "device"};
  const char *file = arguments_operand(arguments, 1);
  if (!file) {
    say("plugin test: the plugin's file is missing: hipmm plugin test TYPE.so");
    return CMD_USAGE;
  }
  if (!test_choose_check(test.only)) return CMD_USAGE;
  test.kit.timeout_s = (unsigned)words->timeout_s;
  test.kit.seconds = (unsigned)words->seconds;
  if (!test_read_options(words->options, &test.kit.options)) return CMD_USAGE;
  if (!test_choose_file(file, &test.kit, path)) return CMD_BAD;
  if (words->json) test.rows = json_array();
  test_run_all(&test);
  json_decref(test.kit.options);
  return test_finish(&test);
}
