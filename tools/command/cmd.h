/* SPDX-License-Identifier: MIT */
/* cmd.h: what the sub-commands of `hipmm` share. A sub-command is one file, or one folder, with one `struct command`. It
 * prints its result on standard output and all messages on standard error, and returns its exit status. */
#ifndef HIPMM_TOOLS_COMMAND_CMD_H
#define HIPMM_TOOLS_COMMAND_CMD_H

#include <hipmm/plugin.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

struct diagnostic;
struct diagnostics;
struct graph;
struct plugin_path;

/* Exit statuses. */
enum { CMD_GOOD = 0, CMD_BAD = 1, CMD_USAGE = 2 };

struct command {
  const char *name;
  const char *summary;  /* one line for the list of commands */
  const char *operands; /* as in the usage line: "[FILE]"; "" for none */
  const char *help;     /* paragraphs, one a line, for --help */
  int (*run)(int argc, char **argv);
};

extern const struct command check_command, show_command, plugins_command, describe_command, schema_command,
    replay_command, plan_command, tune_command, report_command, top_command, ctl_command, serve_command, export_command,
    doctor_command, convert_command, bench_command, run_command, plugin_command, info_command, completion_command;

/* All of them in the order of `hipmm --help`, ended by NULL. Set by main() before a command runs. */
extern const struct command *const *all_commands;

/* Nanoseconds of a clock. */
static inline int64_t cmd_clock_ns(clockid_t clock)
{
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline int64_t cmd_now_ns(void)
{
  return cmd_clock_ns(CLOCK_MONOTONIC);
}

/* ---- arguments.c ----------------------------------------------------------------------------------------------- */

/* A long option of a sub-command: a flag, one with a value, or (where `flag` and `value` are both given) a flag that
 * may have a value, written after "=". The value is a text, or a whole number or a size between the bounds. What is not given
 * stays as it is. */
enum { ARGUMENTS_MOST_VALUES = 64 };

struct argument {
  const char *name;
  const char *value_name; /* "FILE"; NULL for a flag */
  const char *doc;
  bool *flag;
  const char **value;
  const char **all; /* of an option that may be given many times: ARGUMENTS_MOST_VALUES + 1 values, ended by NULL */
  long *number;
  uint64_t *bytes;
  long least, most; /* of both */
  bool is_required;
  const char *const *choices; /* the words that the value can be, ended by NULL; NULL: not a choice */
  char letter;                /* "-o FILE" for an option with a value; 0: it has a name alone */
};

/* The row of sub-commands that need one graph. */
#define CONFIG_ARGUMENT(variable)                                                                            \
  {                                                                                                          \
    "config", "FILE", "the graph file; by default the one that hipmm_init() would read", .value = (variable) \
  }

/* The row of sub-commands that need the folders of plugins. */
#define PLUGIN_PATH_ARGUMENT(variable)                                                                         \
  {                                                                                                            \
    "config", "FILE",                                                                                          \
        "a graph file whose \"plugin_path\" is searched too; by default the one that hipmm_init() would read", \
        .value = (variable)                                                                                    \
  }

struct arguments {
  const struct command *command;
  const struct argument *rows;
  size_t n_rows;
  size_t min_operands, max_operands;
  char **operands; /* the arguments after the options; set by arguments_read() */
  size_t n_operands;
};

/* Options that every command has; not in the rows. */
#define ARGUMENTS_COMMON 2
extern const struct argument arguments_common[ARGUMENTS_COMMON];

/* Reads argv by the rows; every command knows --help and --quiet. True: continue. False: return *exit_out; messages were
 * printed. */
bool arguments_read(struct arguments *arguments, int argc, char **argv, int *exit_out);

/* Visits the arguments of a command, which then does nothing else. */
void arguments_visit(const struct command *command, void (*visit)(void *closure, const struct arguments *arguments),
                     void *closure);

/* The operand at `index`, or NULL if it was not given. */
const char *arguments_operand(const struct arguments *arguments, size_t index);

/* Reads a whole number between the bounds. False: the error was printed. */
bool arguments_number(const struct arguments *arguments, const char *name, const char *text, long minimum, long maximum,
                      long *number_out);

/* ---- output.c -------------------------------------------------------------------------------------------------- */

/* Prints a line on standard error: "hipmm: …". Control characters are made visible. */
void say(const char *format, ...) HIPMM_PRINTF(1, 2);

/* The same for what is not an error: prints nothing with --quiet. */
void note(const char *format, ...) HIPMM_PRINTF(1, 2);

/* From here on only errors are printed: no notes, no progress, no warnings of hipmm (unless HIPMM_LOG asks for them). */
void output_be_quiet(void);
bool output_is_quiet(void);

/* Writes text on `stream` with control characters made visible, since it may come from a file. */
void output_text(FILE *stream, const char *text);

/* Opens the file for a result that the user names; "-" is standard output. NULL with errno. */
FILE *output_open_result(const char *name);

/* Closes what output_open_result() returned, unless it is standard output. `is_written`: all was, so far; else errno has the
 * reason. False if something could not be written; the error was printed. */
bool output_close_result(const char *command, const char *name, FILE *file, bool is_written);

/* Whether `option`, NULL if not given, leaves standard output to a result with that name. False: the error was printed. */
bool output_check_result(const char *command, const char *name, const char *option);

/* Closes standard output. Returns `status`, or CMD_BAD if something could not be written: with a
 * message, unless the reader has gone, as `head` does when it has read enough. */
int output_finish(int status);

/* A JSON string from any text, such as a file's name; bytes that are not UTF-8 become "?". NULL gives null. */
json_t *output_json_string(const char *text);

/* Adds a text to an array, as the sentences of a report. False: out of memory. */
bool output_add_sentence(json_t *array, const char *format, ...) HIPMM_PRINTF(2, 3);

/* Prints a JSON value, releases the reference, and finishes. NULL stands for a lack of memory. */
int output_json(json_t *value, int status);

/* From here on, a reader that goes away is a write error, and no signal; restored for a program that takes the place of
 * this one. */
void output_ignore_closed_pipes(void);
void output_restore_closed_pipes(void);

/* Opens the standard streams that the caller left closed, so that no other file gets their descriptors. */
void output_open_standard_streams(void);

/* ---- terminal.c ------------------------------------------------------------------------------------------------ */

enum style { STYLE_NAME, STYLE_TYPE, STYLE_FAINT, STYLE_GOOD, STYLE_BAD, STYLE_WARNING, STYLE_OFF };

/* The escape sequence for standard output; "" unless it is a terminal that wants colour. */
const char *style(enum style style);

/* Whether standard output is a terminal, where lines have an end. */
bool terminal_is_output(void);

/* Columns of standard output: the terminal's, or COLUMNS, or 100. */
size_t terminal_width(void);

/* The width of UTF-8 text in columns. */
size_t text_width(const char *text);

/* Cuts the text after so many columns. */
void text_cut(char *text, size_t columns);

/* Text that is broken into lines. Each line after the first begins with `prefix`. */
struct wrap {
  const char *prefix;
  size_t column;
};
/* Prints one unbreakable item, `gap` blanks after the previous one, on this line or the next. */
void wrap_item(struct wrap *wrap, size_t gap, enum style style, const char *item);
/* Prints words, each as an item with a gap of 1. */
void wrap_words(struct wrap *wrap, enum style style, const char *words);
void wrap_end(struct wrap *wrap);

/* Writes text and pads it to `width` columns. */
void print_padded(enum style style, const char *text, size_t width);

/* A progress bar on standard error, if that is a terminal. */
struct progress {
  const char *label;
  bool visible;
  int64_t shown_ns;
};
void progress_start(struct progress *progress, const char *label);
/* `total` 0: unknown. Draws at most ten times a second. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total);
void progress_end(struct progress *progress);

/* ---- source.c -------------------------------------------------------------------------------------------------- */

/* The graph of a command: the given file, standard input, or the file that hipmm_init() would read. */
struct source {
  const char *file; /* NULL: none; the built-in graph applies */
  const char *text; /* of standard input, or given in place of a file; else NULL */
  char *owned;      /* the text, if source_close() frees it */
  char buffer[PATH_MAX];
};

void source_choose(struct source *source, const char *given);

/* The same for an operand, which may be "-": standard input, which is read at once. False: the error was printed. Release
 * with source_close(). */
bool source_choose_operand(struct source *source, const char *given);
void source_close(struct source *source);

/* Reads the graph. On failure prints the diagnostics on standard error. */
bool source_read(const struct source *source, struct graph **graph_out);

/* Initialises hipmm with the graph. On failure the reason is in the error record. */
enum hipmm_status source_initialise(const struct source *source);

/* The file's name for output, or "built in". */
const char *source_name(const struct source *source);

/* Prints a diagnostic as a line without the newline; `warning: ` marks a warning. */
void diagnostic_print(FILE *stream, const char *file, const struct diagnostic *diagnostic);

/* The plugin path of the graph, for commands that also work without a valid graph. `file`: from --config, or NULL. False
 * if that file is not valid; the diagnostics were printed. Release *graph_out if it is not NULL. */
bool source_plugin_path(const char *file, struct graph **graph_out, struct plugin_path *path_out);

/* ---- describe/words.c ------------------------------------------------------------------------------------------ */

/* A HIPMM_ROLE_* in words: "source", "sub-allocator". */
const char *role_name(uint32_t role);

#endif
