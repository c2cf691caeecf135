/* SPDX-License-Identifier: MIT */
/* fuzz_log.c: allocation logs of every format: hipmm's record, RMM's CSV, and those of other tools. */
#include "../../../core/base/record_format.h"
#include "../../../tools/command/trace/rows.h"
#include "../../../tools/command/trace/trace.h"
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
  char message[1024];
  struct trace_row row;
  enum trace_line state;
  struct traces traces;
  const char *file = fuzz_file(data, bytes);
  struct trace_rows *rows = trace_rows_open(file, message, sizeof message);
  uint64_t n = 0;
  size_t tag_bytes;
  FUZZ_REQUIRE(rows || strncmp(message, file, strlen(file)) == 0);
  if (rows) trace_rows_want_all(rows);
  while (rows && (state = trace_rows_next(rows, &row)) == TRACE_LINE) {
    const char *stack = trace_rows_stack(rows, row.stack);
    FUZZ_REQUIRE(row.action <= TRACE_MARK_END && (!stack || strlen(stack) < 1 << 20));
    FUZZ_REQUIRE(!trace_rows_tag(rows, &row, &tag_bytes) || (tag_bytes && tag_bytes <= RECORD_MOST_TAG_BYTES));
    FUZZ_REQUIRE(!row.tags || trace_rows_have_tags(rows));
    FUZZ_REQUIRE(++n <= 16 * bytes + 16);
  }
  if (rows && state == TRACE_LINE_ERROR) FUZZ_REQUIRE(strncmp(trace_rows_message(rows), file, strlen(file)) == 0);
  if (rows) (void)trace_rows_remark(rows), (void)trace_rows_have_tags(rows);
  if (rows) trace_rows_close(rows);
  if (traces_read(file, NULL, &traces, message, sizeof message)) {
    for (size_t i = 0; i < traces.n; i++)
      FUZZ_REQUIRE(traces.items[i].allocations + traces.items[i].frees == traces.items[i].n_events);
    traces_clear(&traces);
  }
  unlink(file);
  return 0;
}
