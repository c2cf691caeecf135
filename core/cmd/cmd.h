/* SPDX-License-Identifier: MIT */
/* cmd.h: what the sub-commands of `hipmm` share. A sub-command is one file with one `struct command`; it prints its
 * result on standard output and everything else on standard error, and returns its exit status. */
#ifndef HIPMM_CMD_CMD_H
#define HIPMM_CMD_CMD_H

#include "../graph/graph.h"
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

/* Exit statuses. */
enum { CMD_GOOD = 0, CMD_BAD = 1, CMD_USAGE = 2 };

struct command {
  const char *name;
  const char *summary;  /* one line for the list of commands */
  const char *operands; /* as in the usage line: "[FILE]"; "" if there are none */
  const char *help;     /* paragraphs, one a line, for --help */
  int (*run)(int argc, char **argv);
};

extern const struct command check_command, show_command, plugins_command, describe_command, schema_command,
    replay_command, bench_command, run_command;

/* ---- arguments.c ----------------------------------------------------------------------------------------------- */

/* A long option of a sub-command: a flag, one with a value, or (where `flag` and `value` are both given) a flag that
 * may have a value, written after "=". */
struct argument {
  const char *name;
  const char *value_name; /* "FILE"; NULL for a mere flag */
  const char *doc;
  bool *flag;
  const char **value;
};

struct arguments {
  const struct command *command;
  const struct argument *rows;
  size_t n_rows;
  size_t min_operands, max_operands;
  char **operands; /* what is left, filled in by arguments_read */
  size_t n_operands;
};

/* Reads argv by the rows; --help is known to every command. True: go on. False: return *exit_out; all is said. */
bool arguments_read(struct arguments *arguments, int argc, char **argv, int *exit_out);

/* The operand at `index`, or NULL if it was not given. */
const char *arguments_operand(const struct arguments *arguments, size_t index);

/* Reads a whole number between the bounds. On false it is said what was wrong. */
bool arguments_number(const struct arguments *arguments, const char *name, const char *text, long minimum, long maximum,
                      long *number_out);

/* ---- output.c -------------------------------------------------------------------------------------------------- */

/* A line on standard error: "hipmm: …". Control characters are made visible. */
void say(const char *format, ...) HIPMM_PRINTF(1, 2);

/* Writes text on `stream` with control characters made visible, since it may come from a file. */
void output_text(FILE *stream, const char *text);

/* Closes standard output. Returns `status`, or CMD_BAD, with a message, if something could not be written. */
int output_finish(int status);

/* A JSON string of text that may hold anything, such as a file's name; bytes that are no UTF-8 become "?". NULL gives
 * null. */
json_t *output_json_string(const char *text);

/* Prints a JSON value, drops the reference, and finishes. NULL means that memory ran out while it was made. */
int output_json(json_t *value, int status);

/* Opens the standard streams that the caller left closed, so that no other file gets their numbers. */
void output_open_standard_streams(void);

/* ---- terminal.c ------------------------------------------------------------------------------------------------ */

enum style { STYLE_NAME, STYLE_TYPE, STYLE_FAINT, STYLE_GOOD, STYLE_BAD, STYLE_WARNING, STYLE_OFF };

/* The escape sequence for standard output; "" unless it is a terminal that wants colour. */
const char *style(enum style style);

/* Columns of standard output: the terminal's, or COLUMNS, or 100. */
size_t terminal_width(void);

/* Columns that UTF-8 text takes. */
size_t text_width(const char *text);

/* Ends it after so many columns. */
void text_cut(char *text, size_t columns);

/* Text that is broken into lines. Each line after the first begins with `prefix`. */
struct wrap {
  const char *prefix;
  size_t column;
};
/* One unbreakable item, `gap` blanks after the one before, on this line or the next. */
void wrap_item(struct wrap *wrap, size_t gap, enum style style, const char *item);
/* Words, in the same way. */
void wrap_words(struct wrap *wrap, enum style style, const char *words);
void wrap_end(struct wrap *wrap);

/* Writes text and pads it to `width` columns. */
void print_padded(enum style style, const char *text, size_t width);

/* A bar on standard error, if that is a terminal; silent otherwise. */
struct progress {
  const char *label;
  bool visible;
  long long shown_ns;
};
void progress_start(struct progress *progress, const char *label);
/* `total` 0: not known. Draws at most ten times a second. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total);
void progress_end(struct progress *progress);

/* ---- source.c -------------------------------------------------------------------------------------------------- */

/* The graph file that a command is about: the one given, or the one that hipmm_init() would take. */
struct source {
  const char *file; /* NULL: there is none, the built-in graph holds */
  char buffer[PATH_MAX];
};
void source_choose(struct source *source, const char *given);

/* Reads the graph. On failure prints the mistakes on standard error. */
bool source_read(const struct source *source, struct graph **graph_out);

/* Initialises hipmm with the graph. On failure the error record tells why. */
enum hipmm_status source_initialise(const struct source *source);

/* What the file is called in output: its name, or "built in". */
const char *source_name(const struct source *source);

/* A mistake as a line of text, without the newline; `warning: ` marks a warning. */
void mistake_print(FILE *stream, const char *file, const struct diagnostic *mistake);

/* The plugin path that the graph in force adds, for commands that work without a valid graph. `file` was given with
 * --config, or is NULL. False if the given file is not valid; mistakes are printed. Release *graph_out if not NULL. */
bool source_plugin_path(const char *file, struct graph **graph_out, struct plugin_path *path_out);

/* ---- describe/words.c ------------------------------------------------------------------------------------------ */

/* A HIPMM_ROLE_* in words: "source", "sub-allocator". */
const char *role_name(uint32_t role);

#endif
