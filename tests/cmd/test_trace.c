/* SPDX-License-Identifier: MIT */
/* test_trace.c: the reader of allocation logs: events of good logs, messages about bad ones. */
#include "../../tools/command/trace/trace.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"

static char folder[] = "/tmp/test_trace.XXXXXX";
static char file[64];
static char message[PATH_MAX + 512];

static int make_folder(void **state)
{
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(file, sizeof file, "%s/log.csv", folder);
  return 0;
}

static int remove_folder(void **state)
{
  (void)state;
  unlink(file);
  return rmdir(folder);
}

static void write_bytes(const char *text, size_t bytes)
{
  FILE *stream = fopen(file, "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(text, 1, bytes, stream), bytes);
  assert_int_equal(fclose(stream), 0);
}

/* The trace of a log with one space. */
static bool read_one(const char *name, struct trace *trace_out)
{
  struct traces traces;
  if (!traces_read(name, NULL, &traces, message, sizeof message)) return false;
  assert_int_equal(traces.n, 1);
  *trace_out = traces.items[0];
  traces.items[0] = (struct trace){0};
  traces_clear(&traces);
  return true;
}

static struct trace read_text(const char *text)
{
  struct trace trace = {0};
  write_bytes(text, strlen(text));
  message[0] = '\0';
  if (!read_one(file, &trace)) fail_msg("%s", message);
  return trace;
}

static void assert_event(const struct trace *trace, size_t index, int is_free, uint64_t bytes, unsigned stream,
                         unsigned line)
{
  assert_true(index < trace->n_events);
  assert_int_equal(trace->events[index].is_free, is_free);
  assert_int_equal(trace->events[index].bytes, bytes);
  assert_int_equal(trace->events[index].stream, stream);
  assert_int_equal(trace->lines[index], line);
}

/* Equal addresses of two devices are two blocks, each with a free of its own. */
static void keeps_devices_apart(void **state)
{
  struct traces traces;
  static const char log[] = "{\"segments\": [], \"device_traces\": ["
                            "[{\"action\": \"alloc\", \"addr\": 512, \"size\": 1000, \"time_us\": 1},"
                            " {\"action\": \"free_requested\", \"addr\": 512, \"size\": 1000, \"time_us\": 4}],"
                            "[{\"action\": \"alloc\", \"addr\": 512, \"size\": 3000, \"time_us\": 2},"
                            " {\"action\": \"free_requested\", \"addr\": 512, \"size\": 3000, \"time_us\": 3}]]}";
  (void)state;
  write_bytes(log, sizeof log - 1);
  assert_true(traces_read(file, NULL, &traces, message, sizeof message));
  assert_int_equal(traces.n, 2);
  for (size_t i = 0; i < 2; i++) {
    const struct trace *trace = &traces.items[i];
    assert_int_equal(traces.spaces.items[i].device, i);
    assert_int_equal(trace->n_events, 2);
    assert_int_equal(trace->overlaid + trace->other_sizes + trace->unmatched_frees, 0);
    assert_int_equal(trace->events[0].bytes, i ? 3000 : 1000);
    assert_int_equal(trace->events[1].slot, trace->events[0].slot);
  }
  assert_int_equal(traces.items[1].lines[0], 2); /* a row counts among all */
  traces_clear(&traces);
}

static void matches_a_free_with_its_allocation(void **state)
{
  (void)state;
  struct trace trace = read_text(HEADER "1,14:52:15:656257,allocate,0x302000000,35112,0x0\n"
                                        "1,14:52:15:656258,allocate,0x302009000,256,0x0\n"
                                        "2,14:52:15:656259,free,0x302000000,35112,0x0\n"
                                        "1,14:52:15:656260,allocate,0x302000000,512,0x0\n");
  assert_int_equal(trace.n_events, 4);
  assert_event(&trace, 0, 0, 35112, 0, 2);
  assert_event(&trace, 1, 0, 256, 0, 3);
  assert_event(&trace, 2, 1, 35112, 0, 4);
  assert_event(&trace, 3, 0, 512, 0, 5);
  assert_int_equal(trace.events[0].slot, trace.events[2].slot);
  assert_int_not_equal(trace.events[0].slot, trace.events[1].slot);
  assert_int_equal(trace.rows, 4);
  assert_int_equal(trace.allocations, 3);
  assert_int_equal(trace.frees, 1);
  trace_clear(&trace);
}

static void uses_a_slot_again_after_the_free(void **state)
{
  (void)state;
  char text[8192] = "";
  for (unsigned i = 0; i < 50; i++) {
    char rows[128];
    snprintf(rows, sizeof rows, "1,t,allocate,0x%x00,8,0\n1,t,free,0x%x00,8,0\n", i + 1, i + 1);
    strcat(text, rows);
  }
  struct trace trace = read_text(text);
  assert_int_equal(trace.n_events, 100);
  assert_int_equal(trace.n_slots, 2); /* the null pointer's and one */
  trace_clear(&trace);
}

static void numbers_streams_by_first_use(void **state)
{
  (void)state;
  struct trace trace = read_text(HEADER "1,t,allocate,0x100,8,0x7f41c40036a0\n"
                                        "1,t,allocate,0x200,8,0x0\n"
                                        "1,t,free,0x100,8,0x2\n"
                                        "1,t,free,0x200,8,0x7f41c40036a0\n");
  assert_int_equal(trace.n_streams, 3);
  assert_int_equal(trace.streams[0], 0x7f41c40036a0);
  assert_int_equal(trace.streams[1], 0);
  assert_int_equal(trace.streams[2], 2);
  assert_event(&trace, 0, 0, 8, 0, 2);
  assert_event(&trace, 1, 0, 8, 1, 3);
  assert_event(&trace, 2, 1, 8, 2, 4);
  assert_event(&trace, 3, 1, 8, 0, 5);
  trace_clear(&trace);
}

static void takes_every_spelling_of_null(void **state)
{
  (void)state;
  struct trace trace = read_text(HEADER "1,t,allocate,(nil),0,(nil)\n"
                                        "1,t,allocate,0x0,0,0x0\n"
                                        "1,t,allocate,0,0,0\n"
                                        "1,t,free,(nil),0,0x0\n"
                                        "1,t,free,0,0,0x0\n");
  assert_int_equal(trace.n_streams, 1);
  assert_int_equal(trace.n_events, 5);
  for (size_t i = 0; i < trace.n_events; i++) {
    assert_int_equal(trace.events[i].slot, TRACE_NULL_SLOT);
    assert_int_equal(trace.events[i].bytes, 0);
  }
  assert_int_equal(trace.unmatched_frees, 0);
  assert_int_equal(trace.overlaid, 0);
  trace_clear(&trace);
}

static void keeps_zero_bytes_at_a_real_address_apart_from_null(void **state)
{
  (void)state;
  struct trace trace = read_text("1,t,allocate,0x100,0,0\n1,t,free,0x100,0,0\n");
  assert_int_equal(trace.n_events, 2);
  assert_int_not_equal(trace.events[0].slot, TRACE_NULL_SLOT);
  assert_int_equal(trace.events[0].slot, trace.events[1].slot);
  trace_clear(&trace);
}

static void counts_and_skips_what_cannot_be_matched(void **state)
{
  (void)state;
  struct trace trace = read_text(HEADER "1,t,free,0x100,8,0x0\n"
                                        "1,t,allocate failure,(nil),99,0x0\n"
                                        "1,t,allocate,0x100,8,0x0\n"
                                        "1,t,free,0x100,8,0x0\n"
                                        "1,t,free,0x100,8,0x0\n");
  assert_int_equal(trace.rows, 5);
  assert_int_equal(trace.n_events, 2);
  assert_event(&trace, 0, 0, 8, 0, 4);
  assert_event(&trace, 1, 1, 8, 0, 5);
  assert_int_equal(trace.unmatched_frees, 2);
  assert_int_equal(trace.failed_rows, 1);
  trace_clear(&trace);
}

static void leaves_the_older_block_live_when_an_address_comes_twice(void **state)
{
  (void)state;
  struct trace trace = read_text("1,t,allocate,0x100,8,0\n"
                                 "1,t,allocate,0x100,16,0\n"
                                 "1,t,free,0x100,16,0\n"
                                 "1,t,free,0x100,8,0\n");
  assert_int_equal(trace.overlaid, 1);
  assert_int_equal(trace.frees, 1);
  assert_int_equal(trace.unmatched_frees, 1);
  assert_int_equal(trace.n_events, 3);
  assert_int_equal(trace.events[2].slot, trace.events[1].slot);
  assert_int_not_equal(trace.events[0].slot, trace.events[1].slot);
  trace_clear(&trace);
}

static void frees_with_the_size_of_the_allocation(void **state)
{
  (void)state;
  struct trace trace = read_text("1,t,allocate,0x100,4096,0\n1,t,free,0x100,12,0\n");
  assert_event(&trace, 1, 1, 4096, 0, 2);
  assert_int_equal(trace.other_sizes, 1);
  trace_clear(&trace);
}

static void finds_columns_by_name(void **state)
{
  (void)state;
  struct trace trace = read_text("Size,stream,Pointer,Note,Action\n8,0x2,0x100,hello,allocate\n8,0x1,0x100,,free\n");
  assert_int_equal(trace.n_events, 2);
  assert_event(&trace, 0, 0, 8, 0, 2);
  assert_event(&trace, 1, 1, 8, 1, 3);
  assert_int_equal(trace.streams[0], 2);
  trace_clear(&trace);

  trace = read_text("Action,Pointer,Size\nallocate,0x100,8\n");
  assert_event(&trace, 0, 0, 8, 0, 2);
  assert_int_equal(trace.streams[0], 0);
  trace_clear(&trace);
}

static void forgives_what_editors_do_to_lines(void **state)
{
  (void)state;
  struct trace trace = read_text("Thread,Time,Action,Pointer,Size,Stream\r\n"
                                 "1,t,allocate,0x100,8,0x0\r\n"
                                 "\r\n"
                                 "1, t, free , 0X100 ,\t8, 0x0");
  assert_int_equal(trace.n_events, 2);
  assert_event(&trace, 1, 1, 8, 0, 4);
  trace_clear(&trace);
}

static void takes_a_log_in_which_nothing_happened(void **state)
{
  (void)state;
  struct trace trace = read_text(HEADER);
  assert_int_equal(trace.n_events, 0);
  assert_int_equal(trace.rows, 0);
  trace_clear(&trace);
}

static void takes_the_largest_numbers(void **state)
{
  (void)state;
  struct trace trace = read_text("1,t,allocate,0xFFFFFFFFFFFFFFFF,18446744073709551615,0xffffffffffffffff\n"
                                 "1,t,free,0xffffffffffffffff,18446744073709551615,18446744073709551615\n");
  assert_event(&trace, 1, 1, UINT64_MAX, 0, 2);
  assert_int_equal(trace.streams[0], UINT64_MAX);
  assert_int_equal(trace.n_streams, 1);
  trace_clear(&trace);
}

/* Rows that straddle the reader's buffer must come out whole. */
static void reads_a_log_larger_than_its_buffer(void **state)
{
  (void)state;
  enum { BLOCKS = 40000 };
  size_t bytes = 0;
  char *text = malloc((size_t)BLOCKS * 2 * 96);
  assert_non_null(text);
  for (unsigned i = 0; i < BLOCKS; i++)
    bytes += (size_t)sprintf(text + bytes, "12345,14:52:15:%06u,allocate,0x%x00,%u,0x0\n", i, i + 1, i);
  for (unsigned i = BLOCKS; i-- > 0;)
    bytes += (size_t)sprintf(text + bytes, "12345,14:52:16:%06u,free,0x%x00,%u,0x0\n", i, i + 1, i);
  assert_true(bytes > 3u << 20);
  struct trace trace = read_text(text);
  free(text);
  assert_int_equal(trace.n_events, 2 * BLOCKS);
  assert_int_equal(trace.n_slots, BLOCKS + 1);
  for (unsigned i = 0; i < BLOCKS; i++) {
    const struct trace_event *last = &trace.events[2 * BLOCKS - 1 - i];
    assert_int_equal(trace.events[i].bytes, i);
    assert_int_equal(last->bytes, i);
    assert_int_equal(last->slot, trace.events[i].slot);
  }
  trace_clear(&trace);
}

static void assert_refused(const char *text, size_t bytes, const char *expected)
{
  struct trace trace;
  char full[PATH_MAX + 512];
  write_bytes(text, bytes);
  message[0] = '\0';
  assert_false(read_one(file, &trace));
  snprintf(full, sizeof full, "%s%s", file, expected);
  assert_string_equal(message, full);
}

static void says_what_is_wrong_with_a_row_and_where(void **state)
{
  (void)state;
  static const struct {
    const char *row, *expected;
  } cases[] = {
      {"1,t,allocate,0x100,8\n", "5 columns instead of 6"},
      {"1,t,allocate,0x100,8,0x0,9\n", "7 columns instead of 6"},
      {"hello\n", "1 column instead of 6"},
      {"1,t,alloc,0x100,8,0x0\n",
       "\"alloc\" is no action; allowed are allocate, free, deallocate, allocate failure and free failure"},
      {"1,t,,0x100,8,0x0\n",
       "\"\" is no action; allowed are allocate, free, deallocate, allocate failure and free failure"},
      {"1,t,allocate,0x,8,0x0\n", "\"0x\" is no pointer; write it as 0x302000000"},
      {"1,t,allocate,302g,8,0x0\n", "\"302g\" is no pointer; write it as 0x302000000"},
      {"1,t,allocate,0x11112222333344445,8,0x0\n", "\"0x11112222333344445\" is no pointer; write it as 0x302000000"},
      {"1,t,allocate,0x100,-8,0x0\n", "\"-8\" is no size; write it in bytes, as 4096"},
      {"1,t,allocate,0x100,,0x0\n", "\"\" is no size; write it in bytes, as 4096"},
      {"1,t,allocate,0x100,18446744073709551616,0x0\n",
       "\"18446744073709551616\" is no size; write it in bytes, as 4096"},
      {"1,t,allocate,0x100,8,zero\n", "\"zero\" is no stream; write it as 0x0 or 0x7f41c40036a0"},
      {"1,t,allocate,0x100,111111111122222222223333333333444444444455555,0x0\n",
       "\"1111111111222222222233333333334444444444…\" is no size; write it in bytes, as 4096"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512], expected[512];
    snprintf(text, sizeof text, HEADER "1,t,allocate,0x900,8,0x0\n\n%s1,t,free,0x900,8,0x0\n", cases[i].row);
    snprintf(expected, sizeof expected, ":4: %s", cases[i].expected);
    assert_refused(text, strlen(text), expected);
  }
}

static void refuses_a_header_that_lacks_a_column(void **state)
{
  (void)state;
  const char *text = "Thread,Time,Action,Pointer,Stream\n";
  assert_refused(text, strlen(text),
                 ":1: the header has no column \"Size\"; RMM writes Thread,Time,Action,Pointer,Size,Stream");
}

static void refuses_an_empty_file(void **state)
{
  (void)state;
  assert_refused("", 0, ": is empty; expected a log as the `logging` resource writes it");
}

static void tells_how_to_unpack_a_packed_log(void **state)
{
  (void)state;
  char expected[256];
  snprintf(expected, sizeof expected, ": is xz-compressed; pipe it: xz -dc %s | hipmm replay -", file);
  assert_refused("\xfd"
                 "7zXZ\0\0\4\xe6\n",
                 10, expected);
  snprintf(expected, sizeof expected, ": is gzip-compressed; pipe it: gzip -dc %s | hipmm replay -", file);
  assert_refused("\x1f\x8b\x08\0\0", 5, expected);
  snprintf(expected, sizeof expected, ": is zstd-compressed; pipe it: zstd -dc %s | hipmm replay -", file);
  assert_refused("\x28\xb5\x2f\xfd\x24", 5, expected);
}

static void survives_bytes_that_are_no_text(void **state)
{
  (void)state;
  assert_refused("\0\0\0\n", 4, ":1: 1 column instead of 6; a log begins with Thread,Time,Action,Pointer,Size,Stream");
}

static void refuses_a_line_without_an_end(void **state)
{
  (void)state;
  static const char row[] = "1,t,allocate,0x100,8,0x0\n";
  enum { BYTES = (1 << 20) + (1 << 10) };
  char *text = malloc(BYTES);
  assert_non_null(text);
  memset(text, ' ', BYTES);
  memcpy(text, row, strlen(row));
  assert_refused(text, BYTES, ":2: the line is longer than 1 MiB");
  free(text);
}

static void says_why_a_file_cannot_be_read(void **state)
{
  (void)state;
  struct trace trace;
  char expected[256];
  assert_false(read_one("/nowhere/log.csv", &trace));
  assert_string_equal(message, "/nowhere/log.csv: No such file or directory");
  assert_false(read_one(folder, &trace));
  snprintf(expected, sizeof expected, "%s: Is a directory", folder);
  assert_string_equal(message, expected);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matches_a_free_with_its_allocation),
      cmocka_unit_test(keeps_devices_apart),
      cmocka_unit_test(uses_a_slot_again_after_the_free),
      cmocka_unit_test(numbers_streams_by_first_use),
      cmocka_unit_test(takes_every_spelling_of_null),
      cmocka_unit_test(keeps_zero_bytes_at_a_real_address_apart_from_null),
      cmocka_unit_test(counts_and_skips_what_cannot_be_matched),
      cmocka_unit_test(leaves_the_older_block_live_when_an_address_comes_twice),
      cmocka_unit_test(frees_with_the_size_of_the_allocation),
      cmocka_unit_test(finds_columns_by_name),
      cmocka_unit_test(forgives_what_editors_do_to_lines),
      cmocka_unit_test(takes_a_log_in_which_nothing_happened),
      cmocka_unit_test(takes_the_largest_numbers),
      cmocka_unit_test(reads_a_log_larger_than_its_buffer),
      cmocka_unit_test(says_what_is_wrong_with_a_row_and_where),
      cmocka_unit_test(refuses_a_header_that_lacks_a_column),
      cmocka_unit_test(refuses_an_empty_file),
      cmocka_unit_test(tells_how_to_unpack_a_packed_log),
      cmocka_unit_test(survives_bytes_that_are_no_text),
      cmocka_unit_test(refuses_a_line_without_an_end),
      cmocka_unit_test(says_why_a_file_cannot_be_read),
  };
  return cmocka_run_group_tests_name("trace", tests, make_folder, remove_folder);
}
