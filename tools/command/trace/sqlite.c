/* SPDX-License-Identifier: MIT */
/* sqlite.c: reads logs in SQLite databases: exports of NVIDIA Nsight Systems, what AMD's rocprofv3 writes by default, and
 * snapshots of PyTorch. The database is not trusted: it is opened without its views and triggers, and only read. */
#include "sqlite.h"
#include "../../../core/base/text.h"
#include "format.h"
#include "snapshot_frames.h"
#include "stack_texts.h"

#include <stdlib.h>
#include <string.h>

static bool sqlite_is(const char *start, size_t bytes)
{
  static const char magic[] = "SQLite format 3";
  return bytes > sizeof magic && memcmp(start, magic, sizeof magic) == 0;
}

#ifdef HIPMM_HAVE_SQLITE

struct sqlite_reader {
  sqlite3 *database;
  sqlite3_stmt *rows;
  const struct sqlite_query *query;
  int64_t start; /* of times, nanoseconds since 1970; 0: not known */
  uint64_t others, left_processes;
  struct stack_texts stacks;
};

static void sqlite_close(void *state)
{
  struct sqlite_reader *reader = state;
  sqlite3_finalize(reader->rows);
  sqlite3_close(reader->database);
  stack_texts_clear(&reader->stacks);
  free(reader);
}

/* Prepares the rows of the program that wrote the database. False: `message` has the reason. */
static bool sqlite_select(struct sqlite_reader *reader, char *message, size_t message_bytes)
{
  static const struct sqlite_query *const queries[] = {&sqlite_query_nsys, &sqlite_query_rocpd, &sqlite_query_torch};
  char *question = NULL;
  for (size_t i = 0; !question && i < sizeof queries / sizeof *queries; i++) {
    reader->query = queries[i];
    question = queries[i]->make(reader->database, &reader->left_processes);
  }
  bool good = question && sqlite3_prepare_v2(reader->database, question, -1, &reader->rows, NULL) == SQLITE_OK;
  if (question && !good)
    snprintf(message, message_bytes, "is a database of another release of its program: %s",
             sqlite3_errmsg(reader->database));
  sqlite3_free(question);
  if (question) return good;
  if (sqlite_ask(reader->database, "SELECT count(*) FROM sqlite_master", -1) < 0)
    snprintf(message, message_bytes, "cannot be read: %s", sqlite3_errmsg(reader->database));
  else if (sqlite_has(reader->database, "EVENTS", "EVENT"))
    snprintf(message, message_bytes,
             "is a database of Umpire; its events can be read as text: sqlite3 FILE 'SELECT EVENT FROM EVENTS' | hipmm "
             "convert -");
  else
    snprintf(message, message_bytes,
             "has no table CUDA_GPU_MEMORY_USAGE_EVENTS: no export of Nsight Systems, or one without memory; profile "
             "with nsys profile --cuda-memory-usage=true. Nor has it a table rocpd_memory_allocate of rocprofv3 "
             "--memory-allocation-trace, or device_traces of PyTorch");
  return false;
}

static void *sqlite_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  char file[64];
  struct sqlite_reader *reader = lines->total_bytes ? calloc(1, sizeof *reader) : NULL;
  if (!reader) {
    snprintf(message, message_bytes, "%s",
             lines->total_bytes ? "out of memory"
                                : "is a SQLite file, which cannot be read from a pipe; name the file");
    return NULL;
  }
  snprintf(file, sizeof file, "/proc/self/fd/%d", lines->fd);
  bool good = sqlite3_open_v2(file, &reader->database, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK;
  if (!good) snprintf(message, message_bytes, "cannot be read: %s", sqlite3_errmsg(reader->database));
  if (good) {
    sqlite3_db_config(reader->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(reader->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(reader->database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL); /* a view may have no end */
    good = sqlite_select(reader, message, message_bytes);
  }
  if (!good) return sqlite_close(reader), NULL;
  if (reader->query->start) reader->start = sqlite_ask(reader->database, reader->query->start, 0);
  return reader;
}

/* The number of the row's call stack; frames that cannot be read are none. False: out of memory. */
static bool sqlite_stack_of(struct sqlite_reader *reader, uint32_t *number_out)
{
  char reason[256];
  const char *data = sqlite3_column_blob(reader->rows, SQLITE_COLUMN_FRAMES);
  size_t bytes = (size_t)sqlite3_column_bytes(reader->rows, SQLITE_COLUMN_FRAMES);
  struct tree tree = {0};
  *number_out = 0;
  if (!data || !bytes) return true;
  const struct tree_value *frames = *data == (char)0x80 ? tree_read_pickle(&tree, data, bytes, reason, sizeof reason)
                                                        : tree_read_json(&tree, data, bytes, reason, sizeof reason);
  bool is_list = tree_first(frames) != NULL;
  struct key_map lines = {0};
  bool good = !is_list || snapshot_frames_add(&reader->stacks, &lines, frames, number_out);
  key_map_clear(&lines);
  tree_clear(&tree);
  return good;
}

/* The row of the current event; false: it is of no interest. */
static bool sqlite_read_row(struct sqlite_reader *reader, struct trace_row *row_out)
{
  sqlite3_stmt *rows = reader->rows;
  int64_t time = sqlite3_column_int64(rows, SQLITE_COLUMN_TIME),
          bytes = sqlite3_column_int64(rows, SQLITE_COLUMN_BYTES);
  if (sqlite3_column_type(rows, SQLITE_COLUMN_ACTION) == SQLITE_NULL || bytes < 0) return false;
  *row_out = (struct trace_row){.action = (enum trace_action)sqlite3_column_int(rows, SQLITE_COLUMN_ACTION),
                                .pointer = (uint64_t)sqlite3_column_int64(rows, SQLITE_COLUMN_ADDRESS),
                                .bytes = (uint64_t)bytes,
                                .stream = (uint64_t)sqlite3_column_int64(rows, SQLITE_COLUMN_STREAM),
                                .thread = (uint32_t)sqlite3_column_int64(rows, SQLITE_COLUMN_THREAD),
                                .space = {(uint64_t)sqlite3_column_int64(rows, SQLITE_COLUMN_PROCESS),
                                          sqlite3_column_int(rows, SQLITE_COLUMN_DEVICE),
                                          (enum trace_memory)sqlite3_column_int(rows, SQLITE_COLUMN_MEMORY), 0},
                                .nanoseconds = TRACE_NO_TIME};
  bool has_time = sqlite3_column_type(rows, SQLITE_COLUMN_TIME) != SQLITE_NULL && time >= 0;
  if (has_time && !__builtin_add_overflow(time, reader->start, &time)) row_out->nanoseconds = time;
  return true;
}

static enum trace_line sqlite_next(void *state, struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct sqlite_reader *reader = state;
  int status;
  while ((status = sqlite3_step(reader->rows)) == SQLITE_ROW) {
    if (!sqlite_read_row(reader, row_out)) {
      reader->others++;
      continue;
    }
    if (sqlite_stack_of(reader, &row_out->stack)) return TRACE_LINE;
    snprintf(message, message_bytes, "out of memory while reading it");
    return TRACE_LINE_ERROR;
  }
  if (status == SQLITE_DONE) return TRACE_LINE_END;
  snprintf(message, message_bytes, "cannot be read further: %s", sqlite3_errmsg(reader->database));
  return TRACE_LINE_ERROR;
}

static void sqlite_remark(const void *state, char *text, size_t text_bytes)
{
  const struct sqlite_reader *reader = state;
  unsigned long long others = reader->others, processes = reader->left_processes;
  *text = '\0';
  if (processes)
    text_append(text, text_bytes, "left out: all of %llu process%s, which are too many for one reading", processes,
                processes == 1 ? "" : "es");
  if (others)
    text_append(text, text_bytes, "%sleft out: %llu event%s of %s", processes ? "; " : "", others,
                others == 1 ? "" : "s", reader->query->left_out);
}

static const struct stack_texts *sqlite_stacks(const void *state)
{
  return &((const struct sqlite_reader *)state)->stacks;
}

const struct trace_format trace_format_sqlite = {.is = sqlite_is,
                                                 .open = sqlite_open,
                                                 .close = sqlite_close,
                                                 .next = sqlite_next,
                                                 .frees_lack_sizes = true,
                                                 .remark = sqlite_remark,
                                                 .stacks = sqlite_stacks};

#else

static void *sqlite_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  (void)lines;
  snprintf(message, message_bytes,
           "is a SQLite file, which this build of hipmm cannot read, such as that of a wheel; build hipmm from its "
           "sources, with libsqlite3-dev installed");
  return NULL;
}

static void sqlite_close(void *state)
{
  (void)state;
}

static enum trace_line sqlite_next(void *state, struct trace_row *row_out, char *message, size_t message_bytes)
{
  (void)state, (void)row_out, (void)message, (void)message_bytes;
  return TRACE_LINE_END;
}

const struct trace_format trace_format_sqlite = {
    .is = sqlite_is, .open = sqlite_open, .close = sqlite_close, .next = sqlite_next};
#endif
