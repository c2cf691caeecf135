/* SPDX-License-Identifier: MIT */
/* sqlite.h: what the files of the reader of databases share. A database tells by its tables which program wrote it; each
 * such program has a query here that gives the rows of its log in columns of one form. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_SQLITE_H
#define HIPMM_TOOLS_COMMAND_TRACE_SQLITE_H

#ifdef HIPMM_HAVE_SQLITE
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum sqlite_column {
  SQLITE_COLUMN_TIME,    /* nanoseconds; NULL: not known */
  SQLITE_COLUMN_ADDRESS, /* of an allocation that failed 0 */
  SQLITE_COLUMN_BYTES,
  SQLITE_COLUMN_ACTION, /* an enum trace_action; NULL: the row is left out */
  SQLITE_COLUMN_STREAM,
  SQLITE_COLUMN_THREAD,
  SQLITE_COLUMN_PROCESS,
  SQLITE_COLUMN_DEVICE, /* TRACE_ANY_DEVICE: that of the allocation */
  SQLITE_COLUMN_MEMORY, /* an enum trace_memory */
  SQLITE_COLUMN_FRAMES  /* of PyTorch: JSON, or a pickle; NULL: none */
};

/* A question in memory of SQLite, which the caller frees; NULL: the database has no such log, or there is no memory. Adds the
 * processes that it leaves out. */
struct sqlite_query {
  char *(*make)(sqlite3 *database, uint64_t *left_processes);
  const char *left_out; /* what rows without an action are */
  const char *start;    /* the question for the time that times count from, nanoseconds since 1970; NULL: for none */
};

extern const struct sqlite_query sqlite_query_nsys, sqlite_query_rocpd, sqlite_query_torch;

/* The first column of the first row; `missing` without a row, or on an error. */
int64_t sqlite_ask(sqlite3 *database, const char *question, int64_t missing);

/* Whether a column can be selected from the table, which is no view. */
bool sqlite_has(sqlite3 *database, const char *table, const char *column);
#endif

#endif
