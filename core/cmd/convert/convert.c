/* SPDX-License-Identifier: MIT */
/* convert.c: `hipmm convert`: reads allocation logs of any format and writes one log, in order of time. */
#include "convert.h"
#include "../../base/output_file.h"
#include "../../base/text.h"
#include "../cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONVERT_MOST_LOGS = 1024, CONVERT_TELL_ROWS = 1 << 14 };

struct convert_input {
  const char *file;
  struct trace_rows *rows;
  struct trace_row row; /* the next one */
  bool is_at_end;
};

struct convert {
  const char *output_file; /* NULL, "-": standard output */
  struct convert_output output;
  struct convert_input *inputs;
  size_t n_inputs;
  uint64_t rows;
};

/* ---- Input ----------------------------------------------------------------------------------------------------- */

/* Reads the next row. False: the error was printed. */
static bool convert_advance(struct convert_input *input)
{
  enum trace_line state = trace_rows_next(input->rows, &input->row);
  if (state == TRACE_LINE_ERROR) say("%s", trace_rows_message(input->rows));
  input->is_at_end = state != TRACE_LINE;
  if (state == TRACE_LINE_END && *trace_rows_remark(input->rows))
    note("%s: %s", input->file, trace_rows_remark(input->rows));
  return state != TRACE_LINE_ERROR;
}

static bool convert_open_inputs(struct convert *convert, char **files)
{
  char message[PATH_MAX + 512];
  for (size_t i = 0; i < convert->n_inputs; i++) {
    struct convert_input *input = &convert->inputs[i];
    input->file = files[i];
    input->rows = trace_rows_open(files[i], message, sizeof message);
    if (!input->rows) say("%s", message);
    if (!input->rows || !convert_advance(input)) return false;
  }
  return true;
}

/* The input with the earliest row; of equal times the first given. NULL: all are at their ends. */
static struct convert_input *convert_next_input(const struct convert *convert)
{
  struct convert_input *first = NULL;
  for (size_t i = 0; i < convert->n_inputs; i++) {
    struct convert_input *input = &convert->inputs[i];
    if (!input->is_at_end && (!first || input->row.nanoseconds < first->row.nanoseconds)) first = input;
  }
  return first;
}

/* ---- Output ---------------------------------------------------------------------------------------------------- */

static bool convert_fail_output(const struct convert *convert, int code)
{
  say("convert: cannot write \"%s\": %s", convert->output_file ? convert->output_file : "standard output",
      output_file_reason(code));
  return false;
}

/* Opening the output would empty an input. */
static bool convert_is_input(const struct convert *convert, char **files)
{
  struct stat output, input;
  if (stat(convert->output_file, &output) || !S_ISREG(output.st_mode)) return false;
  for (size_t i = 0; i < convert->n_inputs; i++) {
    int failed = strcmp(files[i], "-") == 0 ? fstat(STDIN_FILENO, &input) : stat(files[i], &input);
    if (!failed && input.st_dev == output.st_dev && input.st_ino == output.st_ino) return true;
  }
  return false;
}

static bool convert_open_output(struct convert *convert)
{
  convert->output.file = stdout;
  if (!convert->output_file) return true;
  int descriptor = output_file_open(convert->output_file, OUTPUT_FILE_EMPTY);
  if (descriptor < 0) return convert_fail_output(convert, errno);
  convert->output.file = fdopen(descriptor, "w");
  if (convert->output.file) return true;
  int code = errno;
  close(descriptor);
  return convert_fail_output(convert, code);
}

static bool convert_close_output(struct convert *convert, bool good)
{
  bool ended = convert->output.end(&convert->output);
  int code = errno;
  if (convert->output_file && fclose(convert->output.file) && ended) {
    ended = false;
    code = errno;
  }
  return good && (ended || convert_fail_output(convert, code));
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

static bool convert_rows(struct convert *convert)
{
  struct progress progress;
  bool good = true;
  progress_start(&progress, "converting");
  for (struct convert_input *input; good && (input = convert_next_input(convert)); convert->rows++) {
    good = convert->output.row(&convert->output, &input->row, input->rows);
    if (!good) convert_fail_output(convert, errno);
    if (convert->n_inputs == 1 && convert->rows % CONVERT_TELL_ROWS == 0)
      progress_show(&progress, trace_rows_done_bytes(input->rows), trace_rows_total_bytes(input->rows));
    good = good && convert_advance(input);
  }
  progress_end(&progress);
  return good;
}

static int convert_all(struct convert *convert, char **files)
{
  if (!convert_open_inputs(convert, files) || !convert_open_output(convert)) return CMD_BAD;
  bool good = convert->output.begin(&convert->output) || convert_fail_output(convert, errno);
  good = good && convert_rows(convert);
  good = convert_close_output(convert, good);
  if (good) note("%llu row%s", (unsigned long long)convert->rows, text_plural(convert->rows));
  return good ? CMD_GOOD : CMD_BAD;
}

/* The format that is asked for, or that the file's name has. */
static const struct convert_output *convert_format(const char *format, const char *file)
{
  size_t length = file ? strlen(file) : 0;
  if (format) return strcmp(format, "csv") == 0 ? &convert_csv : &convert_record;
  return !file || (length > 4 && strcmp(file + length - 4, ".csv") == 0) ? &convert_csv : &convert_record;
}

static int convert_run(int argc, char **argv)
{
  static const char *const formats[] = {"csv", "record", NULL};
  struct convert convert = {0};
  const char *format = NULL;
  int status;
  const struct argument rows[] = {
      {.name = "output",
       .letter = 'o',
       .value_name = "FILE",
       .doc = "the log that is written; standard output by default",
       .value = &convert.output_file},
      {.name = "format",
       .value_name = "NAME",
       .doc = "csv or record; by default csv for standard output and for names that end in .csv, else record",
       .value = &format,
       .choices = formats},
  };
  struct arguments arguments = {&convert_command, rows, sizeof rows / sizeof *rows, 1, CONVERT_MOST_LOGS, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (format && strcmp(format, "csv") != 0 && strcmp(format, "record") != 0) {
    say("convert: --format \"%s\" is not csv or record", format);
    return CMD_USAGE;
  }
  if (convert.output_file && strcmp(convert.output_file, "-") == 0) convert.output_file = NULL;
  convert.output = *convert_format(format, convert.output_file);
  convert.n_inputs = arguments.n_operands;
  if (convert.output_file && convert_is_input(&convert, arguments.operands)) {
    say("convert: \"%s\" is also read; write another file", convert.output_file);
    return CMD_USAGE;
  }
  convert.inputs = calloc(convert.n_inputs, sizeof *convert.inputs);
  status = CMD_BAD;
  if (convert.inputs)
    status = convert_all(&convert, arguments.operands);
  else
    say("convert: out of memory");
  for (size_t i = 0; convert.inputs && i < convert.n_inputs; i++)
    if (convert.inputs[i].rows) trace_rows_close(convert.inputs[i].rows);
  free(convert.inputs);
  return status == CMD_GOOD && !convert.output_file ? output_finish(status) : status;
}

const struct command convert_command = {
    "convert", "turn an allocation log into another format", "LOG…",
    "Reads allocation logs and writes one log with all their rows, in order of time.\n"
    "\n"
    "LOG: RMM's CSV, as the `logging` resource writes it, or the binary record of the `recording` resource, also of a "
    "program that was killed or still runs; `-` is standard input. Several, such as the files of a record that was "
    "rotated, become one.\n"
    "\n"
    "csv: what RMM's tools read. It has no call stacks, and times in microseconds of the day. record: about 10 bytes "
    "a row. Exit status 1 if a log is malformed or the output cannot be written.",
    convert_run};
