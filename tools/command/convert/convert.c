/* SPDX-License-Identifier: MIT */
/* convert.c: `hipmm convert`: reads allocation logs of any format and writes one log, in order of time. */
#include "convert.h"
#include "../../../core/base/output_file.h"
#include "../../../core/base/text.h"
#include "../cmd.h"
#include "../inputs.h"
#include "../trace/logs.h"
#include "result_file.h"

#include <errno.h>
#include <string.h>

enum { CONVERT_TELL_ROWS = 1 << 14 };

struct convert {
  const char *output_file; /* "-": standard output */
  struct convert_output output;
  struct result_file result;
  struct trace_logs logs;
  char *const *files;
  size_t n_files;
  uint64_t rows;
  struct trace_choice choice;
  struct trace_spaces spaces; /* of the memory that is chosen */
  bool is_refused; /* it is too much for one log: no more rows are written, but all are read for their spaces */
  bool has_failed;
};

/* ---- Output ---------------------------------------------------------------------------------------------------- */

/* Who reads standard output may have enough of it, as `head` has. */
static bool convert_fail_output(const struct convert *convert, int code)
{
  bool is_standard = convert->output.file == stdout;
  if (!is_standard || code != EPIPE)
    say("convert: cannot write \"%s\": %s", is_standard ? "standard output" : convert->output_file,
        output_file_reason(code));
  return false;
}

static bool convert_open_output(struct convert *convert)
{
  if (!result_file_open(&convert->result, convert->output_file)) return convert_fail_output(convert, errno);
  convert->output.file = convert->result.file;
  return true;
}

static bool convert_close_output(struct convert *convert, bool good)
{
  bool ended = convert->output.end(&convert->output);
  if (good && !ended) good = convert_fail_output(convert, errno);
  if (good) return result_file_keep(&convert->result) || convert_fail_output(convert, errno);
  if (result_file_drop(&convert->result)) say("convert: \"%s\" was not written", convert->output_file);
  return false;
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

/* Whether the row is of the memory that is written: that of one process, and of one device unless the format has several.
 * Memory of the host and managed memory are written if they are chosen. */
static bool convert_takes(struct convert *convert, const struct trace_space *space)
{
  size_t index;
  if (!convert->choice.has_device && space->memory != TRACE_DEVICE_MEMORY) return false;
  if (!trace_choice_takes(&convert->choice, space)) return false;
  if (!trace_spaces_find(&convert->spaces, space, &index)) {
    say("convert: out of memory, or more processes and devices than can be counted");
    convert->has_failed = true;
    return false;
  }
  const struct trace_space *first = convert->spaces.items;
  bool is_other_process = space->process != first->process || space->log != first->log;
  convert->is_refused = convert->is_refused || (index && (is_other_process || !convert->output.has_devices));
  return !convert->is_refused;
}

static bool convert_rows(struct convert *convert)
{
  struct progress progress;
  const struct trace_row *row;
  const struct trace_rows *rows;
  uint64_t done, total, read = 0;
  bool good = true;
  progress_start(&progress, "converting");
  while (good && trace_logs_next(&convert->logs, &row, &rows)) {
    if (convert_takes(convert, &row->space)) {
      good = convert->output.row(&convert->output, row, rows) || convert_fail_output(convert, errno);
      convert->rows++;
    }
    good = good && !convert->has_failed;
    if (read++ % CONVERT_TELL_ROWS) continue;
    trace_logs_progress(&convert->logs, &done, &total);
    progress_show(&progress, done, total);
  }
  progress_end(&progress);
  return good && !convert->logs.has_failed;
}

/* Says what was left out. False: all was, or what is left is too much for one log; the error was printed. */
static bool convert_check_choice(const struct convert *convert)
{
  bool takes[TRACE_MOST_SPACES];
  if (!convert->logs.spaces.n) return true;
  if (!trace_choice_mark(&convert->choice, &convert->logs.spaces, convert->files, takes)) return false;
  if (convert->is_refused)
    trace_choice_refuse(&convert->choice, &convert->spaces, convert->files, ", and one log has one");
  return !convert->is_refused;
}

static int convert_all(struct convert *convert)
{
  bool good = false;
  if (!trace_logs_open(&convert->logs, convert->files, convert->n_files)) return CMD_BAD;
  if (convert_open_output(convert)) {
    convert->output.logs = &convert->logs;
    good = convert->output.begin(&convert->output) || convert_fail_output(convert, errno);
    good = good && convert_rows(convert) && convert_check_choice(convert);
    good = convert_close_output(convert, good);
  }
  trace_logs_close(&convert->logs);
  trace_spaces_clear(&convert->spaces);
  if (good) note("%llu row%s", (unsigned long long)convert->rows, text_plural(convert->rows));
  return good ? CMD_GOOD : CMD_BAD;
}

#define CONVERT_FORMATS "csv, record, pytorch, chrome or pprof"

struct convert_name {
  const char *format, *ending;         /* no ending: the format shares that of another */
  const struct convert_output *output; /* NULL: the format is read and not written */
};

static const struct convert_name convert_names[] = {{"csv", ".csv", &convert_csv},
                                                    {"record", ".record", &convert_record},
                                                    {"pytorch", ".pickle", &convert_snapshot},
                                                    {"chrome", ".trace.json", &convert_chrome},
                                                    {"pprof", ".pprof", &convert_pprof},
                                                    {"umpire", ".json", NULL},
                                                    {"nsys", ".sqlite", NULL},
                                                    {"rocprof", NULL, NULL}};

enum { CONVERT_NAMES = sizeof convert_names / sizeof *convert_names };

/* The format that is asked for, or that the file's name has; NULL: the error was printed. */
static const struct convert_output *convert_format(const char *format, const char *file)
{
  size_t length = file ? strlen(file) : 0;
  for (size_t i = 0; i < CONVERT_NAMES; i++) {
    const struct convert_name *name = &convert_names[i];
    size_t ending = name->ending ? strlen(name->ending) : length;
    bool is_meant = format ? strcmp(format, name->format) == 0
                           : length > ending && strcmp(file + length - ending, name->ending) == 0;
    if (!is_meant) continue;
    if (!name->output && format)
      say("convert: --format \"%s\" can be read and not written; write " CONVERT_FORMATS, format);
    else if (!name->output)
      say("convert: logs whose names end in %s can be read and not written; end the name in .csv, .record, .pickle, "
          ".trace.json or .pprof, or say --format",
          name->ending);
    return name->output;
  }
  if (format) say("convert: --format \"%s\" is not " CONVERT_FORMATS, format);
  if (format) return NULL;
  return file ? &convert_record : &convert_csv;
}

static int convert_run(int argc, char **argv)
{
  static const char *const formats[] = {"csv", "record", "pytorch", "chrome", "pprof", NULL};
  struct convert convert = {.output_file = "-", .choice.command = "convert"};
  const char *format = NULL;
  int status;
  const struct argument rows[] = {
      {"output", "FILE", "the log that is written; standard output by default", .letter = 'o',
       .value = &convert.output_file},
      {"format", "NAME",
       CONVERT_FORMATS
       "; by default csv for standard output and for names that end in .csv, pytorch for names that end in "
       ".pickle, chrome for .trace.json, pprof for .pprof, else record",
       .value = &format, .choices = formats},
      TRACE_CHOICE_ARGUMENTS(convert.choice, "", TRACE_CHOICE_OF_ALL),
  };
  struct arguments arguments = {&convert_command, rows, sizeof rows / sizeof *rows, 1, TRACE_MOST_LOGS, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (!trace_choice_read(&convert.choice)) return CMD_USAGE;
  const bool is_standard = strcmp(convert.output_file, "-") == 0;
  const struct convert_output *output = convert_format(format, is_standard ? NULL : convert.output_file);
  if (!output) return CMD_USAGE;
  convert.output = *output;
  convert.files = arguments.operands;
  convert.n_files = arguments.n_operands;
  const struct inputs inputs = {"convert", convert.files, convert.n_files};
  if (!inputs_check_output(&inputs, is_standard ? NULL : convert.output_file)) return CMD_USAGE;
  status = convert_all(&convert);
  return status == CMD_GOOD && is_standard ? output_finish(status) : status;
}

const struct command convert_command = {
    "convert", "turn an allocation log into another format", "LOG…",
    "Reads allocation logs and writes one log with all their rows, in order of time.\n"
    "\n"
    "LOG: `-` is standard input; a log and its rotated files (log.record, log.record.1, …) become one. What is written "
    "is the "
    "memory of one process and one device (pytorch and chrome: of all its devices): --process and --device choose it. "
    "Managed "
    "memory "
    "and memory of the host are left out unless --device chooses them. A log whose last row is cut off, as that of a "
    "program that was killed, is read up to there. Every command that reads logs reads these formats:\n"
    "RMM's CSV, which the `logging` resource writes; its rows among other lines, as in an executor's log of Spark "
    "RAPIDS; "
    "and the CSV of RMM 0.5 to 0.13\n"
    "the binary record of the `recording` resource, even of a program that was killed or still runs\n"
    "PyTorch's snapshot: the pickle of torch.cuda.memory._dump_snapshot(), of which nothing is executed, "
    "torch.cuda.memory._snapshot() as JSON, a list of snapshots, or the database of _dump_snapshot_sqlite()\n"
    "the replay log of Umpire 1.0 and later (UMPIRE_REPLAY=On; a file umpire.PID.N.stats, or .replay before Umpire "
    "2022.10), without its host memory\n"
    "the memory events of Kokkos Tools (HOST-PID.mem_events)\n"
    "the SQLite export of NVIDIA Nsight Systems, of a profile with --cuda-memory-usage=true\n"
    "the database or the CSV of AMD's rocprofv3 --memory-allocation-trace\n"
    "\n"
    "It writes five formats:\n"
    "csv: for RMM's tools; it has no call stacks, and times in microseconds of the day; if the log has tags "
    "(hipmm_tag_push()), a last column \"Tag\" has them, from the outermost on, as \"step 2;layer 7\"\n"
    "record: about 10 bytes a row\n"
    "pytorch: a pickle like that of torch.cuda.memory._dump_snapshot(), for https://pytorch.org/memory_viz\n"
    "chrome: Chrome's trace events in JSON, for https://ui.perfetto.dev: each block over time, and how much is live\n"
    "pprof: how much each call stack allocated, has live at the end, and had live at the peak, for `pprof` and `go "
    "tool pprof`\n"
    "\n"
    "Exit status 1 if a log is malformed or the output cannot be written.",
    convert_run};
