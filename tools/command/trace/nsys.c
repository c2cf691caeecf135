/* SPDX-License-Identifier: MIT */
/* nsys.c: reads the table CUDA_GPU_MEMORY_USAGE_EVENTS of a SQLite export of NVIDIA Nsight Systems: nsys profile
 * --cuda-memory-usage=true, then nsys export --type sqlite. Taken are the allocations of device and managed memory; pinned
 * memory and arrays are not what a stack serves. The stream is in the table itself where the release has that column; the
 * thread is that of the CUDA call with the event's correlation, if the profile has CUDA calls (--trace=cuda). */
#include "format.h"

#include <string.h>

static bool nsys_is(const char *start, size_t bytes)
{
  static const char magic[] = "SQLite format 3";
  return bytes > sizeof magic && memcmp(start, magic, sizeof magic) == 0;
}

#ifdef HIPMM_HAVE_SQLITE
#include <sqlite3.h>
#include <stdlib.h>

enum { NSYS_KIND_DEVICE = 2, NSYS_KIND_MANAGED = 4 }; /* CUDA_MEMOPR_MEMORY_KIND_… */
enum { NSYS_NO_STREAM = 0xffffffff };                 /* CUPTI_INVALID_STREAM_ID: of a call that takes no stream */
enum { NSYS_ALLOCATION = 0, NSYS_DEALLOCATION = 1 };  /* CUDA_DEV_MEM_EVENT_OPR_… */

struct nsys_reader {
  sqlite3 *database;
  sqlite3_stmt *rows;
  int64_t start; /* of the session, nanoseconds since 1970; 0: not known */
  uint64_t others, processes, devices;
};

static void nsys_close(void *state)
{
  struct nsys_reader *reader = state;
  sqlite3_finalize(reader->rows);
  sqlite3_close(reader->database);
  free(reader);
}

/* The first column of the first row; `missing` without a row, or on an error. */
static int64_t nsys_ask(struct nsys_reader *reader, const char *question, int64_t missing)
{
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2(reader->database, question, -1, &statement, NULL) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    missing = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  return missing;
}

/* Whether both columns can be selected from the table; one name twice for one column. */
static bool nsys_has(struct nsys_reader *reader, const char *table, const char *column, const char *other)
{
  char question[256];
  snprintf(question, sizeof question,
           "SELECT count(DISTINCT name) >= 1 + ('%s' <> '%s') FROM pragma_table_info('%s') WHERE name IN ('%s', '%s')",
           column, other, table, column, other);
  return nsys_ask(reader, question, 0) > 0;
}

/* Prepares the rows. A global number of a thread is that of its process, shifted, and its own in 24 bits. */
static int nsys_select(struct nsys_reader *reader)
{
  char question[1024];
  bool has_stream = nsys_has(reader, "CUDA_GPU_MEMORY_USAGE_EVENTS", "streamId", "streamId");
  bool has_process = nsys_has(reader, "CUDA_GPU_MEMORY_USAGE_EVENTS", "globalPid", "globalPid");
  bool has_device = nsys_has(reader, "CUDA_GPU_MEMORY_USAGE_EVENTS", "deviceId", "deviceId");
  bool has_thread = nsys_has(reader, "CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid", "correlationId") &&
                    nsys_has(reader, "CUDA_GPU_MEMORY_USAGE_EVENTS", "globalPid", "correlationId");
  snprintf(question, sizeof question,
           "SELECT start, address, bytes, memKind, memoryOperationType, %s, %s, %s, %s FROM "
           "CUDA_GPU_MEMORY_USAGE_EVENTS event %s ORDER BY start, event.rowid",
           has_stream ? "event.streamId" : "0", has_thread ? "call.thread" : "0", has_process ? "event.globalPid" : "0",
           has_device ? "event.deviceId" : "0",
           has_thread ? "LEFT JOIN (SELECT correlationId, globalTid >> 24 AS process, min(globalTid & 16777215) AS "
                        "thread FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY correlationId, process) call ON "
                        "call.correlationId = event.correlationId AND call.process = event.globalPid >> 24"
                      : "");
  return sqlite3_prepare_v2(reader->database, question, -1, &reader->rows, NULL);
}

static bool nsys_refuse(struct nsys_reader *reader, char *message, size_t message_bytes)
{
  if (nsys_ask(reader, "SELECT count(*) FROM sqlite_master", -1) < 0)
    snprintf(message, message_bytes, "cannot be read: %s", sqlite3_errmsg(reader->database));
  else if (nsys_has(reader, "EVENTS", "EVENT", "EVENT"))
    snprintf(message, message_bytes,
             "is a database of Umpire; its events can be read as text: sqlite3 FILE 'SELECT EVENT FROM EVENTS' | hipmm "
             "convert -");
  else if (!nsys_ask(
               reader,
               "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'CUDA_GPU_MEMORY_USAGE_EVENTS'", 0))
    snprintf(message, message_bytes,
             "has no table CUDA_GPU_MEMORY_USAGE_EVENTS: no export of Nsight Systems, or one without memory; profile "
             "with nsys profile --cuda-memory-usage=true");
  else if (nsys_select(reader) != SQLITE_OK)
    snprintf(message, message_bytes, "is an export of another release of Nsight Systems: %s",
             sqlite3_errmsg(reader->database));
  else
    return false;
  return true;
}

static void *nsys_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  char file[64];
  struct nsys_reader *reader = lines->total_bytes ? calloc(1, sizeof *reader) : NULL;
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
    good = !nsys_refuse(reader, message, message_bytes);
  }
  if (!good) return nsys_close(reader), NULL;
  reader->start = nsys_ask(reader, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME", 0);
  reader->processes =
      (uint64_t)nsys_ask(reader, "SELECT count(DISTINCT globalPid) FROM CUDA_GPU_MEMORY_USAGE_EVENTS", 1);
  reader->devices = (uint64_t)nsys_ask(
      reader, "SELECT count(DISTINCT deviceId) FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE memKind = 2", 1);
  return reader;
}

/* The row of the current event; false: it is of no interest. */
static bool nsys_read_row(struct nsys_reader *reader, struct trace_row *row_out)
{
  int64_t time = sqlite3_column_int64(reader->rows, 0), kind = sqlite3_column_int64(reader->rows, 3);
  int64_t operation = sqlite3_column_int64(reader->rows, 4), bytes = sqlite3_column_int64(reader->rows, 2);
  int64_t stream = sqlite3_column_int64(reader->rows, 5);
  if ((kind != NSYS_KIND_DEVICE && kind != NSYS_KIND_MANAGED) || bytes < 0 ||
      (operation != NSYS_ALLOCATION && operation != NSYS_DEALLOCATION))
    return false;
  *row_out = (struct trace_row){.action = operation == NSYS_ALLOCATION ? TRACE_ALLOCATE : TRACE_FREE,
                                .pointer = (uint64_t)sqlite3_column_int64(reader->rows, 1),
                                .bytes = (uint64_t)bytes,
                                .stream = stream == NSYS_NO_STREAM ? 0 : (uint64_t)stream,
                                .thread = (uint32_t)sqlite3_column_int64(reader->rows, 6),
                                .space.process = (uint64_t)sqlite3_column_int64(reader->rows, 7),
                                .nanoseconds = TRACE_NO_TIME};
  if (kind == NSYS_KIND_MANAGED)
    row_out->space.memory = TRACE_MANAGED_MEMORY;
  else
    row_out->space.device = sqlite3_column_int(reader->rows, 8);
  if (time >= 0 && !__builtin_add_overflow(time, reader->start, &time)) row_out->nanoseconds = time;
  return true;
}

static enum trace_line nsys_next(void *state, struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct nsys_reader *reader = state;
  int status;
  while ((status = sqlite3_step(reader->rows)) == SQLITE_ROW) {
    if (nsys_read_row(reader, row_out)) return TRACE_LINE;
    reader->others++;
  }
  if (status == SQLITE_DONE) return TRACE_LINE_END;
  snprintf(message, message_bytes, "cannot be read further: %s", sqlite3_errmsg(reader->database));
  return TRACE_LINE_ERROR;
}

static void nsys_remark(const void *state, char *text, size_t text_bytes)
{
  const struct nsys_reader *reader = state;
  int used = 0;
  *text = '\0';
  if (reader->others)
    used = snprintf(text, text_bytes, "left out: %llu event%s of memory that is neither device nor managed memory",
                    (unsigned long long)reader->others, reader->others == 1 ? "" : "s");
  if ((reader->processes > 1 || reader->devices > 1) && used >= 0 && (size_t)used < text_bytes)
    snprintf(text + used, text_bytes - (size_t)used,
             "%sthe events of %llu process%s and %llu device%s were read as those of one", used ? "; " : "",
             (unsigned long long)reader->processes, reader->processes == 1 ? "" : "es",
             (unsigned long long)reader->devices, reader->devices == 1 ? "" : "s");
}

const struct trace_format trace_format_nsys = {
    .is = nsys_is, .open = nsys_open, .close = nsys_close, .next = nsys_next, .remark = nsys_remark};

#else

static void *nsys_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  (void)lines;
  snprintf(message, message_bytes,
           "is a SQLite file, which this build of hipmm cannot read, such as that of a wheel; build hipmm from its "
           "sources, with libsqlite3-dev installed");
  return NULL;
}

static void nsys_close(void *state)
{
  (void)state;
}

static enum trace_line nsys_next(void *state, struct trace_row *row_out, char *message, size_t message_bytes)
{
  (void)state, (void)row_out, (void)message, (void)message_bytes;
  return TRACE_LINE_END;
}

const struct trace_format trace_format_nsys = {
    .is = nsys_is, .open = nsys_open, .close = nsys_close, .next = nsys_next};
#endif
