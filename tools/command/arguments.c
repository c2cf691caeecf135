/* SPDX-License-Identifier: MIT */
/* arguments.c: reads the options of a sub-command by a table, and prints its --help from the same table. Names must be
 * complete: with abbreviations, as getopt_long() allows them, a new option could break a script. */
#include "cmd.h"

#include "../../core/base/text.h"
#include "../../core/base/units.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS_MOST = 16, ARGUMENTS_HELP = ARGUMENTS_MOST, ARGUMENTS_QUIET, ARGUMENTS_WORD = 64 };

const struct argument arguments_common[ARGUMENTS_COMMON] = {
    {.name = "quiet", .doc = "print only errors: no progress, notes or warnings"},
    {.name = "help", .doc = "print this"}};

const struct command *const *all_commands;

/* Of arguments_visit(). */
static void (*arguments_visitor)(void *closure, const struct arguments *arguments);
static void *arguments_closure;

static void arguments_usage(const struct arguments *arguments)
{
  struct wrap wrap = {.prefix = "             "}; /* as wide as "Usage: hipmm " */
  char item[ARGUMENTS_WORD];
  printf("Usage: hipmm ");
  wrap.column = text_width(wrap.prefix);
  wrap_item(&wrap, 1, STYLE_OFF, arguments->command->name);
  for (size_t i = 0; i < arguments->n_rows; i++) {
    const struct argument *row = &arguments->rows[i];
    snprintf(item, sizeof item,
             row->is_required               ? "--%s %s"
             : row->value_name && row->flag ? "[--%s[=%s]]"
             : row->value_name              ? "[--%s %s]"
                                            : "[--%s]",
             row->name, row->value_name);
    wrap_item(&wrap, 1, STYLE_OFF, item);
  }
  if (*arguments->command->operands) wrap_item(&wrap, 1, STYLE_OFF, arguments->command->operands);
  wrap_end(&wrap);
}

static void arguments_help_paragraphs(const char *text)
{
  struct wrap wrap = {.prefix = ""};
  char *copy = strdup(text);
  char *rest = copy;
  for (char *line; copy && (line = strsep(&rest, "\n"));) {
    wrap_words(&wrap, STYLE_OFF, line);
    wrap_end(&wrap);
  }
  free(copy);
}

static void arguments_help_row(const char *name, const char *value_name, char letter, bool may_lack, const char *doc)
{
  char head[ARGUMENTS_WORD];
  if (letter)
    snprintf(head, sizeof head, "-%c, --%s %s", letter, name, value_name);
  else if (may_lack)
    snprintf(head, sizeof head, "--%s[=%s]", name, value_name);
  else
    snprintf(head, sizeof head, "--%s%s%s", name, value_name ? " " : "", value_name ? value_name : "");
  printf("  ");
  size_t width = text_width(head) < 17 ? 18 : text_width(head) + 2;
  print_padded(STYLE_NAME, head, width);
  struct wrap wrap = {.prefix = "                    ", .column = 2 + width};
  wrap_words(&wrap, STYLE_OFF, doc);
  wrap_end(&wrap);
}

static int arguments_help(const struct arguments *arguments)
{
  arguments_usage(arguments);
  printf("\n");
  arguments_help_paragraphs(arguments->command->help);
  printf("\n");
  for (size_t i = 0; i < arguments->n_rows; i++)
    arguments_help_row(arguments->rows[i].name, arguments->rows[i].value_name, arguments->rows[i].letter,
                       arguments->rows[i].value_name && arguments->rows[i].flag, arguments->rows[i].doc);
  for (size_t i = 0; i < ARGUMENTS_COMMON; i++)
    arguments_help_row(arguments_common[i].name, NULL, 0, false, arguments_common[i].doc);
  return output_finish(CMD_GOOD);
}

static const struct argument *arguments_find(const struct arguments *arguments, const char *name, size_t length)
{
  for (size_t i = 0; i < arguments->n_rows; i++) {
    const struct argument *row = &arguments->rows[i];
    if (strlen(row->name) == length && strncmp(row->name, name, length) == 0) return row;
  }
  return NULL;
}

static bool arguments_refuse(const struct arguments *arguments, const char *word, size_t length)
{
  const char *names[ARGUMENTS_MOST + ARGUMENTS_COMMON];
  for (size_t i = 0; i < arguments->n_rows; i++) names[i] = arguments->rows[i].name;
  for (size_t i = 0; i < ARGUMENTS_COMMON; i++) names[arguments->n_rows + i] = arguments_common[i].name;
  char name[ARGUMENTS_WORD];
  snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), word);
  const char *near = text_nearest(name, names, arguments->n_rows + ARGUMENTS_COMMON);
  if (near)
    say("%s: unknown option \"--%s\"; did you mean \"--%s\"?", arguments->command->name, name, near);
  else
    say("%s: unknown option \"--%s\"; `hipmm %s --help` lists them", arguments->command->name, name,
        arguments->command->name);
  return false;
}

static bool arguments_is_common(const char *word, size_t length)
{
  for (size_t i = 0; i < ARGUMENTS_COMMON; i++)
    if (strlen(arguments_common[i].name) == length && strncmp(arguments_common[i].name, word, length) == 0) return true;
  return false;
}

/* Checks every --word before getopt_long(), which would accept an abbreviation. */
static bool arguments_known(const struct arguments *arguments, int argc, char **argv)
{
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strncmp(argv[i], "--", 2) != 0) continue;
    const char *word = argv[i] + 2;
    size_t length = strcspn(word, "=");
    if (arguments_is_common(word, length)) continue;
    const struct argument *row = arguments_find(arguments, word, length);
    if (!row) return arguments_refuse(arguments, word, length);
    if (row->value_name && !row->flag && word[length] != '=') i++;
  }
  return true;
}

static void arguments_prepare(const struct arguments *arguments, struct option *options)
{
  for (size_t i = 0; i < arguments->n_rows; i++)
    options[i] = (struct option){.name = arguments->rows[i].name,
                                 .has_arg = !arguments->rows[i].value_name ? no_argument
                                            : arguments->rows[i].flag      ? optional_argument
                                                                           : required_argument,
                                 .val = (int)i};
  options[arguments->n_rows] = (struct option){.name = "help", .val = ARGUMENTS_HELP};
  options[arguments->n_rows + 1] = (struct option){.name = "quiet", .val = ARGUMENTS_QUIET};
}

static bool arguments_bad(const struct arguments *arguments, int code, char *const *argv)
{
  const char *name = arguments->command->name;
  if (code == ':')
    say("%s: option \"%s\" needs a value", name, argv[optind - 1]);
  else if (optopt > ARGUMENTS_QUIET)
    say("%s: unknown option \"-%c\"; `hipmm %s --help` lists them", name, optopt, name);
  else
    say("%s: option \"%s\" takes no value", name, argv[optind - 1]);
  return false;
}

/* The index of the row; a letter that no row has is refused by getopt_long(). */
static int arguments_row_of_letter(const struct arguments *arguments, int letter)
{
  int i = 0;
  while (arguments->rows[i].letter != letter) i++;
  return i;
}

/* Keeps each value of an option that may be given many times. False: the error was printed. */
static bool arguments_append(const struct arguments *arguments, const struct argument *row, const char *value)
{
  size_t n = 0;
  while (row->all[n]) n++;
  if (n == ARGUMENTS_MOST_VALUES)
    say("%s: --%s is given more than %d times", arguments->command->name, row->name, ARGUMENTS_MOST_VALUES);
  else
    row->all[n] = value;
  return n < ARGUMENTS_MOST_VALUES;
}

/* False: the error was printed. */
static bool arguments_scan(const struct arguments *arguments, int argc, char **argv, const char **values_out,
                           bool *help_out)
{
  struct option options[ARGUMENTS_MOST + ARGUMENTS_COMMON + 1] = {0};
  arguments_prepare(arguments, options);
  char letters[2 * ARGUMENTS_MOST + 4] = ":hq";
  for (size_t i = 0; i < arguments->n_rows; i++)
    if (arguments->rows[i].letter) strcat(letters, (char[]){arguments->rows[i].letter, ':', '\0'});
  *help_out = false;
  opterr = 0;
  for (int code; (code = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
    if (code == '?' || code == ':') return arguments_bad(arguments, code, argv);
    bool is_help = code == ARGUMENTS_HELP || code == 'h';
    bool is_quiet = code == ARGUMENTS_QUIET || code == 'q';
    if (is_help) *help_out = true;
    if (is_quiet) output_be_quiet();
    if (is_help || is_quiet) continue;
    if (code >= ARGUMENTS_MOST) code = arguments_row_of_letter(arguments, code);
    if (arguments->rows[code].flag) *arguments->rows[code].flag = true;
    if (optarg) values_out[code] = optarg;
    if (optarg && arguments->rows[code].all && !arguments_append(arguments, &arguments->rows[code], optarg))
      return false;
  }
  return true;
}

static bool arguments_count(const struct arguments *arguments)
{
  const char *name = arguments->command->name, *operands = arguments->command->operands;
  if (arguments->n_operands < arguments->min_operands)
    say("%s: %s is missing; usage: hipmm %s [OPTION]… %s", name, operands, name, operands);
  else if (arguments->n_operands > arguments->max_operands && arguments->max_operands == 0)
    say("%s: takes no operand, but \"%s\" was given", name, arguments->operands[0]);
  else if (arguments->n_operands > arguments->max_operands)
    say("%s: \"%s\" is one operand too many; usage: hipmm %s [OPTION]… %s", name,
        arguments->operands[arguments->max_operands], name, operands);
  else
    return true;
  return false;
}

void arguments_visit(const struct command *command, void (*visit)(void *closure, const struct arguments *arguments),
                     void *closure)
{
  char *argv[] = {(char *)command->name, NULL};
  arguments_visitor = visit;
  arguments_closure = closure;
  command->run(1, argv);
  arguments_visitor = NULL;
}

bool arguments_number(const struct arguments *arguments, const char *name, const char *text, long minimum, long maximum,
                      long *number_out)
{
  char *end = NULL;
  errno = 0;
  long number = strtol(text, &end, 10);
  if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && number >= minimum && number <= maximum) {
    *number_out = number;
    return true;
  }
  say("%s: --%s \"%s\" is not a whole number from %ld to %ld", arguments->command->name, name, text, minimum, maximum);
  return false;
}

static bool arguments_size(const struct arguments *arguments, const struct argument *row, const char *text)
{
  char quoted[TEXT_QUOTE_BYTES];
  if (units_parse_bytes(text, row->bytes) && *row->bytes >= (uint64_t)row->least && *row->bytes <= (uint64_t)row->most)
    return true;
  say("%s: --%s %s is not a size; write \"16GiB\" or \"24GB\"", arguments->command->name, row->name,
      text_quote(text, quoted, sizeof quoted));
  return false;
}

/* False: the error was printed. */
static bool arguments_read_values(const struct arguments *arguments, const char *const *values)
{
  for (size_t i = 0; i < arguments->n_rows; i++) {
    const struct argument *row = &arguments->rows[i];
    if (!values[i]) continue;
    if (row->value) *row->value = values[i];
    if (row->number && !arguments_number(arguments, row->name, values[i], row->least, row->most, row->number))
      return false;
    if (row->bytes && !arguments_size(arguments, row, values[i])) return false;
  }
  return true;
}

bool arguments_read(struct arguments *arguments, int argc, char **argv, int *exit_out)
{
  const char *values[ARGUMENTS_MOST] = {NULL};
  bool help = false;
  if (arguments_visitor) {
    *exit_out = CMD_GOOD;
    arguments_visitor(arguments_closure, arguments);
    return false;
  }
  *exit_out = CMD_USAGE;
  optind = 0; /* a command may run another one */
  if (!arguments_known(arguments, argc, argv)) return false;
  if (!arguments_scan(arguments, argc, argv, values, &help)) return false;
  if (help) {
    *exit_out = arguments_help(arguments);
    return false;
  }
  arguments->operands = argv + optind;
  arguments->n_operands = (size_t)(argc - optind);
  return arguments_count(arguments) && arguments_read_values(arguments, values);
}

const char *arguments_operand(const struct arguments *arguments, size_t index)
{
  return index < arguments->n_operands ? arguments->operands[index] : NULL;
}
