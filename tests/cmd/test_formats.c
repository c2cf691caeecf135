/* SPDX-License-Identifier: MIT */
/* test_formats.c: the logs of other tools: their rows, what is said of a file that is another, and damage of every kind. */
#include "../../core/base/record_format.h"
#include "../../tools/command/trace/rows.h"
#include "../../tools/command/trace/segments.h"
#include "../../tools/command/trace/stack_frames.h"

#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#ifdef HIPMM_HAVE_SQLITE
#include <sqlite3.h>
#endif

static char folder[] = "/tmp/test_formats.XXXXXX";
static char file[64];
static char message[PATH_MAX + 512];
static char remark[512];
static char text[1 << 16]; /* of the rows */
static char spaces[4096];  /* "PROCESS:DEVICE:MEMORY " of each of the first rows */

static int make_folder(void **state)
{
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(file, sizeof file, "%s/log", folder);
  return 0;
}

static int remove_folder(void **state)
{
  (void)state;
  unlink(file);
  return rmdir(folder);
}

static void write_bytes(const void *data, size_t bytes)
{
  unlink(file); /* a new file: to empty an old one waits for the disk */
  FILE *stream = fopen(file, "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(data, 1, bytes, stream), bytes);
  assert_int_equal(fclose(stream), 0);
}

/* A file of tests/data; the caller frees it. */
static char *sample(const char *name, size_t *bytes_out)
{
  char path[PATH_MAX];
  const char *top = getenv("top_srcdir");
  snprintf(path, sizeof path, "%s/tests/data/%s", top ? top : ".", name);
  FILE *stream = fopen(path, "rb");
  assert_non_null(stream);
  char *data = malloc(1 << 16);
  assert_non_null(data);
  *bytes_out = fread(data, 1, 1 << 16, stream);
  fclose(stream);
  return data;
}

static void add_row(const struct trace_rows *rows, const struct trace_row *row)
{
  static const char *const actions[] = {"allocate", "free", "allocate failure", "free failure"};
  size_t used = strlen(text);
  const char *stack = trace_rows_stack(rows, row->stack);
  size_t known = strlen(spaces);
  if (known < sizeof spaces - 64)
    snprintf(spaces + known, 64, "%" PRIu64 ":%d:%d ", row->space.process, (int)row->space.device,
             (int)row->space.memory);
  if (used > sizeof text - 4096) return;
  used += (size_t)snprintf(text + used, sizeof text - used, "%s %" PRIx64 " %" PRIu64 " %" PRIx64, actions[row->action],
                           row->pointer, row->bytes, row->stream);
  if (row->nanoseconds != TRACE_NO_TIME)
    used += (size_t)snprintf(text + used, sizeof text - used, " %" PRId64, row->nanoseconds % INT64_C(1000000000));
  if (stack) used += (size_t)snprintf(text + used, sizeof text - used, "%.2000s", stack);
  snprintf(text + used, sizeof text - used, "\n");
}

/* The rows of `file` as text; how many, or -1 if it is refused. */
static int read_rows(void)
{
  struct trace_row row;
  enum trace_line state = TRACE_LINE_ERROR;
  int n = 0;
  text[0] = message[0] = remark[0] = spaces[0] = '\0';
  struct trace_rows *rows = trace_rows_open(file, message, sizeof message);
  if (!rows) return -1;
  while ((state = trace_rows_next(rows, &row)) == TRACE_LINE) {
    add_row(rows, &row);
    n++;
  }
  if (state == TRACE_LINE_ERROR) snprintf(message, sizeof message, "%s", trace_rows_message(rows));
  snprintf(remark, sizeof remark, "%s", trace_rows_remark(rows));
  trace_rows_close(rows);
  return state == TRACE_LINE_ERROR ? -1 : n;
}

static int read_text(const char *contents)
{
  write_bytes(contents, strlen(contents));
  return read_rows();
}

static void assert_contains(const char *where, const char *part)
{
  if (!strstr(where, part)) fail_msg("\"%s\" lacks \"%s\"", where, part);
}

static void read_sample(const char *name, const char *expected, const char *expected_remark)
{
  size_t bytes;
  char *data = sample(name, &bytes);
  write_bytes(data, bytes);
  free(data);
  if (read_rows() < 0) fail_msg("%s", message);
  assert_string_equal(text, expected);
  assert_string_equal(remark, expected_remark);
}

/* ---- The rows of each ------------------------------------------------------------------------------------------ */

#define FORWARD                                                                             \
  "  #0 in forward from /home/user/model.py:41\n  #1 in step from /home/user/train.py:88\n" \
  "  #2 in main from /home/user/train.py:120\n\n"
#define LOAD "  #0 in load from /home/user/data.py:17\n  #1 in main from /home/user/train.py:120\n\n"
#define MAIN "  #0 in main from /home/user/train.py:120\n\n"

static const char snapshot_rows[] =
    "allocate 7f2c40100000 1048000 0 500000\n"
    "allocate 7f2c40000000 1000000 0 500000" LOAD "allocate 7f2c40200000 8388608 0 500000" FORWARD
    "allocate 7f2c40a00000 4194300 16fa2 750000" LOAD "free 7f2c40a00000 4194300 16fa2 1000000" MAIN
    "free 7f2c40200000 8388608 0 1250000" MAIN "allocate 7f2c40200000 8388608 0 2000000" FORWARD
    "allocate 7f2c40a00000 4194300 16fa2 2250000" LOAD "free 7f2c40a00000 4194300 16fa2 2500000" MAIN
    "free 7f2c40200000 8388608 0 2750000" MAIN "free 7f2c40100000 1048000 0 3500000" MAIN
    "allocate failure 0 85899345920 0 4000000" FORWARD "allocate 7f2c40200000 16777216 0 4250000" FORWARD;

static void reads_a_snapshot_of_pytorch(void **state)
{
  (void)state;
  read_sample("torch_snapshot.pickle", snapshot_rows, "2 blocks were allocated before its events begin");
  read_sample("torch_snapshot.json", snapshot_rows, "2 blocks were allocated before its events begin");
}

static void reads_a_log_of_umpire(void **state)
{
  (void)state;
  read_sample(
      "umpire.json",
      "allocate 7f2c40000000 4096 0 7500\nallocate 7f2c40001000 1048576 0 10500\nfree 7f2c40000000 4096 0 12000\n"
      "allocate 7f2c40000000 512 0 15000\nfree 7f2c40001000 1048576 0 18000\n",
      "left out: 2 events of host memory, 1 release of a pool's idle memory");
  read_sample("umpire_1.1.json",
              "allocate 7f2c40000000 4096 0 15000\nallocate failure 0 1099511627776 0 16500\n"
              "allocate 7f2c40001000 64 0 19500\nfree 7f2c40000000 4096 0 22500\n",
              "left out: 3 events of host memory");
}

/* Requests and results of two threads come between each other; of two processes in one file, the first is read; and a line of
 * a move() is no JSON. */
static void reads_a_log_of_umpire_with_threads(void **state)
{
  (void)state;
  read_sample("umpire_2022.03.json",
              "allocate 7f2c40001000 1048576 0 16500\nallocate 7f2c40000000 512 0 18000\n"
              "allocate 7f2c40000000 4096 0 19500\n"
              "allocate failure 0 1099511627776 0 21000\nallocate 7f2c80000000 1099511627776 0 25500\n"
              "free 7f2c40000000 4096 0 31500\nfree 7f2c40001000 1048576 0 34500\n",
              "left out: 2 events of host memory, 1 release of a pool's idle memory");
}

/* A function of PyTorch's is called "replay", as is the mark of Umpire's lines. */
static void tells_logs_of_umpire_from_other_json(void **state)
{
  (void)state;
  assert_int_equal(read_text("{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1, \"size\": 8, \"frames\": ["
                             "{\"name\": \"replay\", \"filename\": \"graphs.py\", \"line\": 1}]}]]}"),
                   1);
  assert_int_equal(read_text("{\"kind\":\"other\"}\n"), -1);
  assert_contains(message, "has no \"device_traces\" and no \"segments\"");
}

/* An allocator of host memory ends, and one of the device's begins at its address. */
static void forgets_an_allocator_of_umpire_that_ends(void **state)
{
  (void)state;
  assert_int_equal(
      read_text(
          "{\"category\":\"operation\",\"name\":\"make_memory_resource\",\"string_args\":{\"allocator_ref\":\"0x1\"},"
          "\"tags\":{\"allocator_name\":\"PINNED\"}}\n"
          "{\"category\":\"operation\",\"name\":\"allocate\",\"numeric_args\":{\"size\":1},\"string_args\":"
          "{\"allocator_ref\":\"0x1\",\"pointer\":\"0x10\"}}\n"
          "{\"category\":\"operation\",\"name\":\"make_allocator\",\"string_args\":{\"allocator_ref\":\"0x1\","
          "\"arg0\":\"UM\"},\"tags\":{\"allocator_name\":\"pool\"}}\n"
          "{\"category\":\"operation\",\"name\":\"allocate\",\"numeric_args\":{\"size\":2},\"string_args\":"
          "{\"allocator_ref\":\"0x1\",\"pointer\":\"0x20\"}}\n"),
      1);
  assert_string_equal(text, "allocate 20 2 0\n");
  assert_string_equal(remark, "left out: 1 event of host memory");
}

/* Until Umpire 1.1 some allocators were made of a number, as text, and then of the allocator that they take memory
 * from. */
static void finds_the_source_of_an_allocator_of_umpire(void **state)
{
  (void)state;
  assert_int_equal(
      read_text(
          "{\"kind\":\"replay\",\"event\":\"makeMemoryResource\",\"payload\":{\"name\":\"HOST\"},\"result\":\"0x1\"}\n"
          "{\"kind\":\"replay\",\"event\":\"makeAllocator\",\"payload\":{\"allocator_name\":\"slots\",\"args\":[\"64\","
          "\"HOST\"]},"
          "\"result\":{\"allocator_ref\":\"0x2\"}}\n"
          "{\"kind\":\"replay\",\"event\":\"makeAllocator\",\"payload\":{\"allocator_name\":\"HOST_copy\",\"args\":["
          "\"64\","
          "\"DEVICE\"]},\"result\":{\"allocator_ref\":\"0x3\"}}\n"
          "{\"kind\":\"replay\",\"event\":\"allocate\",\"payload\":{\"allocator_ref\":\"0x2\",\"size\":8},"
          "\"result\":{\"memory_ptr\":\"0x10\"}}\n"
          "{\"kind\":\"replay\",\"event\":\"allocate\",\"payload\":{\"allocator_ref\":\"0x3\",\"size\":9},"
          "\"result\":{\"memory_ptr\":\"0x20\"}}\n"),
      1);
  assert_string_equal(text, "allocate 20 9 0\n");
  assert_string_equal(remark, "left out: 1 event of host memory");
}

/* A program that is killed leaves the last line without its end. Another line that is no JSON is refused. */
static void reads_a_log_of_umpire_that_is_cut_off(void **state)
{
  (void)state;
  assert_int_equal(
      read_text("{\"category\":\"operation\",\"name\":\"allocate\",\"numeric_args\":{\"size\":2},\"string_args\":"
                "{\"allocator_ref\":\"0x1\",\"pointer\":\"0x20\"}}\n"
                "{\"category\":\"operation\",\"name\":\"release\"}\n{\"category\":\"operation\",\"na"),
      1);
  assert_string_equal(text, "allocate 20 2 0\n");
  assert_string_equal(remark,
                      "the file is cut off: its last line is not whole; left out: 1 release of a pool's idle memory");
  assert_int_equal(read_text("{\"category\":\"operation\",\"name\":\"release\"}\n{\"category\":\"operation\",\"na\n"),
                   -1);
  assert_contains(message, ":2: is cut off or no JSON: column");
}

/* ---- Logs that a crash cut, and logs among other lines ---------------------------------------------------------- */

static const char spark[] = "23/12/27 20:21:31 INFO RapidsExecutorPlugin: Initializing, memory\n"
                            "101,14:21:19.998533,allocate,0x30a000000,256,0x2\n"
                            "23/12/27 20:21:32 INFO DeviceMemoryEventHandler: Device allocation failed\n"
                            "102,14:21:20.000533,free,0x30a000000,256,0x2\n";

static const char rmm_events[] = "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current "
                                 "Allocs,Start,End,Elapsed,Location\n"
                                 "Alloc,0,0x7f613be00000,0,256,0,0,1,41.5,41.6,0.1,/src/main.cu:85\n"
                                 "Alloc,1,0x7f613be00000,0,512,0,0,2,41.75,41.8,0.1,/src/main.cu:86\n"
                                 "Free,0,0x7f613be00000,0,0,0,0,1,42.0,42.1,0.1,/src/main.cu:90\n";

static const char kokkos[] =
    "# Memory Events\n# Time     Ptr                  Size        MemSpace      Op         Name\n"
    "0.001320   0x7f2c40000000            256              HIP Allocate   left hand\n"
    "0.001500 PushRegion solve {\n"
    "0.002320   0x7f2c40000000           1024             Host Allocate   b\n"
    "0.002500   0x7f2c50000000             64          CudaUVM Allocate   c\n"
    "0.002600 } PopRegion solve\n"
    "0.003320   0x7f2c40000000           -256              HIP DeAllocate left hand\n";

static const char umpire_v2[] =
    "{\"kind\":\"umpire_replay\",\"process\":{\"pid\":77,\"rank\":0},\"schema\":\"v2\",\"umpire_version\":\"2026.3.0\"}"
    "\n"
    "{\"allocator_id\":\"a1\",\"args\":{\"resource_name\":\"DEVICE::1\",\"traits\":{}},\"name\":\"DEVICE::1\",\"op\":"
    "\"make_allocator\",\"seq\":1,\"status\":\"committed\",\"strategy\":\"MemoryResource\",\"tracking\":true}\n"
    "{\"allocator_id\":\"a2\",\"args\":{\"resource_name\":\"HOST\",\"traits\":{}},\"name\":\"HOST\",\"op\":"
    "\"make_allocator\",\"seq\":2,\"status\":\"committed\",\"strategy\":\"MemoryResource\",\"tracking\":true}\n"
    "{\"allocator_id\":\"a3\",\"args\":{\"allocator\":\"a1\"},\"name\":\"pool\",\"op\":\"make_allocator\",\"seq\":3,"
    "\"status\":\"committed\",\"strategy\":\"QuickPool\",\"tracking\":true}\n"
    "{\"allocation_id\":\"m1\",\"allocator_id\":\"a3\",\"op\":\"allocate\",\"seq\":4,\"size\":4096,\"status\":"
    "\"pending\"}\n"
    "{\"allocation_id\":\"m1\",\"allocator_id\":\"a3\",\"op\":\"allocate\",\"seq\":4,\"size\":4096,\"status\":"
    "\"committed\"}\n"
    "{\"allocation_id\":\"m2\",\"allocator_id\":\"a2\",\"op\":\"allocate\",\"seq\":5,\"size\":9,\"status\":"
    "\"committed\"}\n"
    "{\"allocation_id\":\"m3\",\"allocator_id\":\"a3\",\"op\":\"allocate\",\"seq\":6,\"size\":1048576,\"status\":"
    "\"pending\"}\n"
    "{\"allocation_id\":\"m1\",\"allocator_id\":\"a3\",\"op\":\"deallocate\",\"seq\":7,\"status\":\"pending\"}\n"
    "{\"allocation_id\":\"m1\",\"allocator_id\":\"a3\",\"op\":\"deallocate\",\"seq\":7,\"status\":\"committed\"}\n";

static const char rocprof[] =
    "Kind,Operation,Agent_Id,Allocation_Size,Address,Correlation_Id,Start_Timestamp,End_Timestamp\n"
    "M,MEMORY_ALLOCATION_ALLOCATE,Agent 0,64,0x100,1,1000,1100\n"
    "M,MEMORY_ALLOCATION_ALLOCATE,Agent 4,32,0x200,2,2000,2100\n"
    "M,MEMORY_ALLOCATION_FREE,null,0,0x0,3,2500,2600\n"
    "M,MEMORY_ALLOCATION_FREE,null,0,0x200,4,3000,3100\n";

static void reads_rows_among_other_lines(void **state)
{
  (void)state;
  assert_int_equal(read_text(spark), 2);
  assert_string_equal(text, "allocate 30a000000 256 2 998533000\nfree 30a000000 256 2 533000\n");
  assert_string_equal(remark, "left out: 2 lines that are no row of RMM's log");
  assert_int_equal(read_text("starting\n101,14:21:19.998533,allocate,here,256,0x2\n"), -1);
  assert_contains(message, ":2: \"here\" is no pointer");
  assert_int_equal(read_text("101,14:21:19.998533,alocate,0x100,256,0x2\n101,14:21:19.998533,allocate,0x200,256,0x2\n"),
                   -1);
  assert_contains(message, ":1: \"alocate\" is no action");
}

static void reads_the_action_deallocate_and_seconds_since_1970(void **state)
{
  (void)state;
  assert_int_equal(read_text("Thread,Time,Action,Pointer,Size,Stream\n1,1700000000.25,allocate,0x100,8,0\n"
                             "1,1700000001,deallocate,0x100,8,0\n"),
                   2);
  assert_string_equal(text, "allocate 100 8 0 250000000\nfree 100 8 0 0\n");
  assert_string_equal(remark, "");
}

static void reads_the_events_of_early_releases_of_rmm(void **state)
{
  (void)state;
  assert_int_equal(read_text(rmm_events), 3);
  assert_string_equal(text, "allocate 7f613be00000 256 0 500000000\nallocate 7f613be00000 512 0 750000000\n"
                            "free 7f613be00000 256 0 0\n");
  assert_string_equal(spaces, "0:0:0 0:1:0 0:0:0 ");
  assert_int_equal(read_text("Event Type,Address,Size (bytes)\nRealloc,0x100,8\nCopy,0x200,8\n"), -1);
  assert_contains(message, ":3: \"Copy\" is no event; RMM writes Alloc, Realloc and Free");
}

static void reads_the_memory_events_of_kokkos(void **state)
{
  (void)state;
  assert_int_equal(read_text(kokkos), 4);
  assert_string_equal(text, "allocate 7f2c40000000 256 0 1320000  #0 in left hand\n\n"
                            "allocate 7f2c40000000 1024 0 2320000  #0 in b\n\n"
                            "allocate 7f2c50000000 64 0 2500000  #0 in c\n\n"
                            "free 7f2c40000000 256 0 3320000  #0 in left hand\n\n");
  assert_string_equal(spaces, "0:0:0 0:0:2 0:0:1 0:0:0 ");
  assert_string_equal(remark, "left out: 2 lines of regions");
}

static void reads_the_second_replay_format_of_umpire(void **state)
{
  (void)state;
  assert_int_equal(read_text(umpire_v2), 3);
  assert_string_equal(text, "allocate 100000000 4096 0\nallocate failure 0 1048576 0\nfree 100000000 4096 0\n");
  assert_string_equal(spaces, "77:1:0 77:1:0 77:1:0 ");
  assert_string_equal(
      remark, "the log has numbers of blocks, for which addresses were made up; left out: 1 event of host memory");
}

/* An agent is the host; a free without an agent is of the agent that has its address. */
static void keeps_agents_of_rocprofv3_apart(void **state)
{
  (void)state;
  assert_int_equal(read_text(rocprof), 4);
  assert_string_equal(spaces, "0:0:2 0:4:0 0:4:0 0:4:0 ");
  assert_int_equal(
      read_text("Kind,Operation,Agent_Id,Allocation_Size,Address,Correlation_Id,Start_Timestamp,End_Timestamp\n"
                "M,MEMORY_ALLOCATION_ALLOCATE,GPU 0,64,0x100,1,1000,1100\n"
                "M,MEMORY_ALLOCATION_ALLOCATE,CPU 1,64,0x100,2,2000,2100\n"
                "M,MEMORY_ALLOCATION_FREE,,0,0x100,3,2500,2600\n"),
      3);
  assert_string_equal(spaces, "0:0:0 0:0:2 0:0:2 ");
}

/* Each log is cut at each byte of its last row: all before it is read, and the cut is told; where the cut leaves a whole row,
 * that is read too. */
static void reads_up_to_a_cut(void **state)
{
  static const char csv[] = "Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00.000001,allocate,0x1000,1048576,0x10\n"
                            "1,10:00:00.000005,free,0x1000,1048576,0x10\n";
  static const char replay[] =
      "{\"category\":\"operation\",\"name\":\"allocate\",\"numeric_args\":{\"size\":2},\"string_args\":"
      "{\"allocator_ref\":\"0x1\",\"pointer\":\"0x20\"}}\n"
      "{\"category\":\"operation\",\"name\":\"deallocate\",\"string_args\":{\"pointer\":\"0x20\"}}\n";
  static const struct {
    const char *log;
    int rows;
    bool ends_in_number; /* a cut in the last field leaves a row */
  } cases[] = {{csv, 2, true},        {spark, 2, true},    {rmm_events, 3, false}, {kokkos, 4, false},
               {umpire_v2, 3, false}, {rocprof, 4, false}, {replay, 2, false}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t length = strlen(cases[i].log), start = length - 1;
    while (cases[i].log[start - 1] != '\n') start--;
    for (size_t bytes = start + 1; bytes < length; bytes++) {
      write_bytes(cases[i].log, bytes);
      int n = read_rows();
      bool is_cut = strstr(remark, "the file is cut off: its last line is not whole") != NULL;
      bool is_open = strstr(remark, "its last line has no newline") != NULL;
      if (n != cases[i].rows - is_cut || (n == cases[i].rows && is_open != cases[i].ends_in_number))
        fail_msg("log %zu cut at %zu of %zu: %d rows, \"%s\", \"%s\"", i, bytes, length, n, message, remark);
      assert_true(is_cut || bytes + 20 > length);
    }
  }
}

static void reads_a_list_of_snapshots(void **state)
{
  static const char one[] =
      "{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 512, \"size\": 8, \"time_us\": %d}]]}";
  char list[512], first[200], second[200];
  (void)state;
  snprintf(first, sizeof first, one, 2);
  snprintf(second, sizeof second, one, 1);
  snprintf(list, sizeof list, "[%s, %s]", first, second);
  assert_int_equal(read_text(list), 2);
  assert_string_equal(spaces, "2:0:0 1:0:0 ");
  assert_string_equal(remark, "it has 2 snapshots, each of which was read as that of a process");
  snprintf(list, sizeof list, "[%s]", first);
  assert_int_equal(read_text(list), 1);
  assert_string_equal(spaces, "0:0:0 ");
  assert_int_equal(
      read_text("[{\"address\": 4096, \"device\": 1, \"blocks\": [{\"state\": \"active_allocated\", \"size\": 8}]}]"),
      1);
  assert_string_equal(spaces, "0:1:0 ");
}

static void reads_a_log_of_rocprofv3(void **state)
{
  (void)state;
  read_sample("rocprofv3_memory_allocation_trace.csv",
              "allocate 7f2c40000000 4194304 0 791339655\nallocate 7f2c40400000 2097152 0 791429655\n"
              "allocate 7f2b00000000 65536 0 791519655\nfree 7f2c40000000 4194304 0 791552238\n"
              "allocate 7f2c40000000 1024 0 791699655\nfree 7f2c40400000 2097152 0 791732238\n",
              "");
}

/* rocpd, which writes the files of rocprofv3 anew, has one column more. Rows are in the order in which calls ended: a thread
 * can have an address that another thread has freed, and end first. */
static void reads_a_log_of_rocpd(void **state)
{
  (void)state;
  assert_int_equal(
      read_text("\"Guid\",\"Kind\",\"Operation\",\"Agent_Id\",\"Allocation_Size\",\"Address\",\"Correlation_Id\","
                "\"Start_Timestamp\",\"End_Timestamp\"\n"
                "\"00-8b\",\"MEMORY_ALLOCATION\",\"ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE\",\"Agent 1\",64,"
                "\"0x0000000000000100\",1,10,20\n"
                "\"00-8b\",\"MEMORY_ALLOCATION\",\"MEMORY_ALLOCATION_ALLOCATE\",\"Agent "
                "1\",32,\"0x0000000000000100\",3,35,40\n"
                "\"00-8b\",\"MEMORY_ALLOCATION\",\"MEMORY_ALLOCATION_FREE\",\"\",0,\"0x0000000000000100\",2,30,50\n"),
      3);
  assert_string_equal(text, "allocate 100 64 0 20\nfree 100 64 0 30\nallocate 100 32 0 40\n");
  static const uint32_t lines[] = {2, 4, 3};
  struct trace_rows *rows = trace_rows_open(file, message, sizeof message);
  assert_non_null(rows);
  for (size_t i = 0; i < 3; i++) {
    struct trace_row row;
    assert_int_equal(trace_rows_next(rows, &row), TRACE_LINE);
    assert_int_equal(trace_rows_line(rows), lines[i]);
  }
  trace_rows_close(rows);
  assert_string_equal(remark, "");
}

static void reads_an_export_of_nsys(void **state)
{
  (void)state;
#ifdef HIPMM_HAVE_SQLITE
  read_sample("nsys.sqlite",
              "allocate 7f2c40000000 4194304 0 1000\nallocate 7f2c40400000 2097152 0 3000\n"
              "free 7f2c40000000 4194304 0 4000\nallocate 7f2c40000000 1024 d 6000\n",
              "left out: 2 events of memory that is neither device nor managed memory");
#else
  size_t bytes;
  char *data = sample("nsys.sqlite", &bytes);
  write_bytes(data, bytes);
  free(data);
  assert_int_equal(read_rows(), -1);
  assert_contains(message, "is a SQLite file, which this build of hipmm cannot read");
#endif
}

/* ---- What stacks are called ------------------------------------------------------------------------------------ */

static void calls_a_stack_by_what_the_program_does(void **state)
{
  static const struct {
    const char *text, *expected;
  } cases[] = {
      {FORWARD, "forward from /home/user/model.py:41"},
      {"  #0 in mul\n  #1 in linear from /env/lib/python3.12/site-packages/torch/nn/functional.py:9\n"
       "  #2 in call from /env/lib/python3.12/site-packages/torch/nn/module.py:5\n"
       "  #3 in step from /home/user/train.py:88\n  #4 in main from /home/user/train.py:120\n",
       "linear from torch/nn/functional.py:9 ← step from /home/user/train.py:88"},
      {"  #0 in run from /usr/lib/python3.12/threading.py:1012\n", "run from threading.py:1012"},
      {"  #0 in f from <stdin>:1\n", "f from <stdin>:1"},
      {"  #0 in fill+0x1c from /opt/lib/libmodel.so (+0x4f1c)\n  #1 in main+0x20 from /opt/train (+0x1020)\n"
       "  #2 in ? from /lib/libc.so.6 (+0x29d90)\n  #3 in _start+0x25 from /opt/train (+0x1125)\n",
       "fill from libmodel.so ← main ← libc.so.6"},
      {"  #0 in c10::Allocator::allocate(unsigned long)\n  #1 in at::detail::empty_cuda(c10::ArrayRef<long>) from ??\n"
       "  #2 in at::native::(anonymous namespace)::addmm(at::Tensor&) from Blas.cpp\n"
       "  #3 in void run<float, float>(char) from ??\n  #4 in Node::operator()(int) from ??\n",
       "at::native::(anonymous namespace)::addmm from Blas.cpp ← void run ← Node::operator()"},
      {"  #0 in at::_ops::mm::call() from ??\n  #1 in torch::autograd::generated::AddmmBackward0::apply(int) from ??\n",
       "AddmmBackward0::apply"},
      {"  #0 in c10::Allocator::allocate(unsigned long)\n", "c10::Allocator::allocate"},
      {"  #0 in \n", ""},
      {"no frame", "no frame"},
      {"", ""},
      {"\n\n", ""},
      {"  #0 in ä from ü.py:1\n", "ä from ü.py:1"},
  };
  char name[96];
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    stack_frames_name(cases[i].text, name, sizeof name);
    assert_string_equal(name, cases[i].expected);
  }
  for (size_t bytes = 16; bytes < 96; bytes++) { /* a name that is cut ends with a whole character */
    stack_frames_name("  #0 in ääääääääääääääää from ü.py:1\n", name, bytes);
    size_t length = strlen(name);
    assert_true(length < bytes);
    assert_true(strcmp(name, "ääääääääääääääää from ü.py:1") == 0 ||
                (strcmp(name + length - strlen("…"), "…") == 0 && (unsigned char)name[length - 4] != 0xc3));
  }
}

/* ---- Odd snapshots --------------------------------------------------------------------------------------------- */

static void merges_the_events_of_devices(void **state)
{
  (void)state;
  int n = read_text("{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1, \"size\": 8, \"time_us\": 1},"
                    "{\"action\": \"alloc\", \"addr\": 2, \"size\": 8, \"time_us\": 30},"
                    "{\"action\": \"alloc\", \"addr\": 3, \"size\": 8, \"time_us\": 29}],"
                    "[{\"action\": \"alloc\", \"addr\": 4, \"size\": 8, \"time_us\": 2}]]}");
  assert_int_equal(n, 4);
  assert_string_equal(text, "allocate 1 8 0 1000\nallocate 4 8 0 2000\nallocate 2 8 0 30000\nallocate 3 8 0 29000\n");
  assert_string_equal(remark, "");
}

static void reads_the_blocks_of_a_snapshot_without_events(void **state)
{
  (void)state;
  int n = read_text("{\"device_traces\": [[]], \"segments\": [{\"address\": 4096, \"stream\": 7, \"blocks\": ["
                    "{\"size\": 512, \"state\": \"inactive\"}, {\"size\": 1024, \"state\": \"active_allocated\", "
                    "\"history\": [{\"frames\": [{\"name\": \"f\", \"filename\": \"a.py\", \"line\": 3}]}]}]}]}");
  assert_int_equal(n, 1);
  assert_string_equal(text, "allocate 1200 1024 7  #0 in f from a.py:3\n\n");
  assert_contains(remark, "has no events, so that only its live blocks were read");
}

static void counts_events_of_other_releases(void **state)
{
  (void)state;
  assert_int_equal(read_text("{\"device_traces\": [[{\"action\": \"teleport\", \"addr\": 1}, 7, {}]]}"), 0);
  assert_string_equal(remark, "left out: 3 events of kinds that are not known");
}

/* Names are those of files that anybody may have written. */
static void shows_no_control_characters_of_names(void **state)
{
  (void)state;
  assert_int_equal(read_text("{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1, \"size\": 8, \"frames\": ["
                             "{\"name\": \"a\\u001b[31m\\nb\", \"filename\": \"x\\u0000y\", \"line\": 1}]}]]}"),
                   1);
  assert_null(strchr(text, '\033'));
  assert_contains(text, "#0 in a?[31m?b");
}

/* ---- Pickles --------------------------------------------------------------------------------------------------- */

static int read_pickle(const char *pickle, size_t bytes)
{
  write_bytes(pickle, bytes);
  return read_rows();
}

#define PICKLE(text) read_pickle(text, sizeof text - 1)

static void never_runs_a_pickle(void **state)
{
  (void)state;
  /* os.system("…"), as pickle.dumps() writes an object whose __reduce__ returns it, in protocols 2 and 4. */
  assert_int_equal(PICKLE("\x80\2cposix\nsystem\nq\0X\4\0\0\0trueq\1\x85q\2Rq\3."), -1);
  assert_contains(message,
                  "has Python objects other than numbers, texts, lists and dictionaries at byte 2 of its pickle");
  assert_int_equal(PICKLE("\x80\4\x8c\5posix\x94\x8c\6system\x94\x93\x94."), -1);
  assert_contains(message, "has Python objects other than numbers");
}

static void refuses_pickles_that_are_none(void **state)
{
  (void)state;
  assert_int_equal(PICKLE("\x80\4}"), -1);
  assert_contains(message, "is cut off at byte 3 of its pickle; nothing was read");
  assert_int_equal(PICKLE("\x80\4a."), -1);
  assert_contains(message, "is damaged at byte 2");
  assert_int_equal(PICKLE("\x80\4X\xff\xff\xff\xffzz."), -1);
  assert_contains(message, "is cut off");
  assert_int_equal(PICKLE("\x80\4h\5."), -1);
  assert_int_equal(PICKLE("\x80\4]r\xff\xff\xff\xff."), -1);
  assert_int_equal(PICKLE("\x80\4(u."), -1);
  assert_int_equal(PICKLE("\x80\4K\1."), -1);
  assert_contains(message, "has no \"device_traces\" and no \"segments\"");
}

/* A list that holds itself, below "device_traces" and as it. */
static void reads_a_pickle_that_holds_itself(void **state)
{
  (void)state;
  assert_int_equal(PICKLE("\x80\4}\x94\x8c\rdevice_traces]\x94h\1as."), 0);
  assert_int_equal(PICKLE("\x80\4}\x94\x8c\rdevice_tracesh\0s."), -1);
}

static void takes_addresses_of_64_bits(void **state)
{
  (void)state;
  assert_int_equal(PICKLE("\x80\4}\x8c\rdevice_traces]]}(\x8c\6action\x8c\5"
                          "alloc\x8c\4"
                          "addr\x8a\t"
                          "\0\0\0\0\0\0\0\xff\0\x8c\4sizeK\x08uaas."),
                   1);
  assert_string_equal(text, "allocate ff00000000000000 8 0\n");
}

/* ---- Files that are others ------------------------------------------------------------------------------------- */

static void says_what_a_file_is_instead(void **state)
{
  static const struct {
    const char *contents, *expected;
  } cases[] = {
      {"{\"segments\"", "is cut off: its JSON has no end; nothing was read"},
      {"{\"segments\": nul}", "is no valid JSON: line 1, column"},
      {"{\"resources\": {}}", "has no \"device_traces\" and no \"segments\": neither a snapshot"},
      {"[{\"address\": 1}]", "is a list, but neither of PyTorch's snapshots nor of the segments of one"},
      {"[]", "is a list, but neither of PyTorch's snapshots nor of the segments of one"},
      {"{}", "of torch.cuda.memory._snapshot(), nor one of hipmm (\"runtime\", \"stacks\"), the report of a process "
             "(\"process\", \"memory\") or a log of Umpire (\"replay\")"},
      {"starting\nREPLAY,17755,Umpire v0.3.5\nREPLAY,17755,allocate_attempt,64,0x1\n",
       "is a log of Umpire 0.3, which wrote CSV; logs of Umpire 1.0 and later can be read"},
      {"YALPER\x7f", "is what Umpire's replay tool compiles from a log; name the log, whose name lacks \".bin\""},
      {"PK\3\4.....", "is an archive, as torch.save() writes"},
      {"{\"category\":\"operation\",\"name\":\"allocate\",\"tags\":{\"replay\":\"true\"}}\n",
       ":1: the event lacks a size, or an address"},
      {"{\"event\":\"allocate\",\"payload\":{\"size\":-1},\"result\":{\"memory_ptr\":\"0x1\"}}\n",
       ":1: the event lacks a size, or an address"},
      {"hello\n{\"event\":\"allocate\",\"payload\":{\"si\n", ":2: is cut off or no JSON: column"},
      {"\"Kind\",\"Operation\",\"Correlation_Id\"\n\"MEMORY_COPY\",\"X\",1\n",
       "of rocprofv3's files only the one of --memory-allocation-trace has allocations"},
      {"Kind,Operation,Allocation_Size,Address,Correlation_Id\nM,FREE,0\n", ":2: 3 columns instead of 5"},
      {"Kind,Operation,Allocation_Size,Address,Correlation_Id\nM,FREE,0,here,1\n", ":2: \"here\" is no address"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(read_text(cases[i].contents), -1);
    assert_contains(message, cases[i].expected);
  }
}

#ifdef HIPMM_HAVE_SQLITE
/* Columns and tables of newer releases, or of a profile with CUDA calls; another process has a call with the number too. */
static void reads_the_streams_and_threads_of_nsys(void **state)
{
  struct trace_row row;
  sqlite3 *database = NULL;
  (void)state;
  unlink(file);
  assert_int_equal(sqlite3_open(file, &database), SQLITE_OK);
  assert_int_equal(
      sqlite3_exec(database,
                   "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER, "
                   "address INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER, correlationId "
                   "INTEGER, streamId INTEGER);"
                   "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, globalTid INTEGER, correlationId INTEGER);"
                   "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, (7 << 24) + 41, 9), (1, (8 << 24) + 42, 9), "
                   "(2, (7 << 24) + 43, 10), (2, (7 << 24) + 43, 10);"
                   "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, 7 << 24, 0, 4096, 64, 2, 0, 9, 13), "
                   "(2, 7 << 24, 0, 4096, 64, 2, 1, 10, 14), (3, 7 << 24, 0, 8192, 32, 2, 0, 11, NULL);",
                   NULL, NULL, NULL),
      SQLITE_OK);
  sqlite3_close(database);
  struct trace_rows *rows = trace_rows_open(file, message, sizeof message);
  static const unsigned expected[][2] = {{13, 41}, {14, 43}, {0, 0}};
  assert_non_null(rows);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(trace_rows_next(rows, &row), TRACE_LINE);
    assert_int_equal(row.stream, expected[i][0]);
    assert_int_equal(row.thread, expected[i][1]);
  }
  assert_int_equal(trace_rows_next(rows, &row), TRACE_LINE_END);
  trace_rows_close(rows);
}

/* Before schema 3.16 there were no streams. */
static void reads_an_older_export_of_nsys(void **state)
{
  sqlite3 *database = NULL;
  (void)state;
  unlink(file);
  assert_int_equal(sqlite3_open(file, &database), SQLITE_OK);
  assert_int_equal(
      sqlite3_exec(database,
                   "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT "
                   "NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc "
                   "INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType "
                   "INTEGER NOT NULL, name TEXT, correlationId INTEGER, localMemoryPoolAddress INTEGER);"
                   "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, 0, 0, 1, 4096, 0, 64, 2, 0, NULL, 1, "
                   "NULL), (2, 0, 0, 1, 4096, 0, 64, 2, 1, NULL, 2, NULL);",
                   NULL, NULL, NULL),
      SQLITE_OK);
  sqlite3_close(database);
  assert_int_equal(read_rows(), 2);
  assert_string_equal(text, "allocate 1000 64 0 1\nfree 1000 64 0 2\n");
}

static void says_that_a_database_has_no_memory_events(void **state)
{
  size_t bytes, length = strlen("CUDA_GPU_MEMORY_USAGE_EVENTS");
  char *data = sample("nsys.sqlite", &bytes);
  (void)state;
  for (size_t i = 0; i + length < bytes; i++)
    if (memcmp(data + i, "CUDA_GPU_MEMORY_USAGE_EVENTS", length) == 0) data[i] = 'D';
  write_bytes(data, bytes);
  assert_int_equal(read_rows(), -1);
  assert_contains(message,
                  "has no table CUDA_GPU_MEMORY_USAGE_EVENTS: no export of Nsight Systems, or one without memory");
  write_bytes(data, 700);
  assert_int_equal(read_rows(), -1);
  assert_contains(message, "cannot be read: ");
  free(data);
}
#endif

/* ---- Records --------------------------------------------------------------------------------------------------- */

enum { RECORD_BLOCKS = 300, RECORD_EVENTS = 100 };

/* Writes a record of blocks that all begin at one time, the last one first, each of its own thread. */
static void write_record(enum record_action action, uint64_t ticks)
{
  char *block = calloc(1, RECORD_BLOCK_BYTES);
  assert_non_null(block);
  *(struct record_head *)block = (struct record_head){.magic = RECORD_MAGIC,
                                                      .byte_order = RECORD_BYTE_ORDER,
                                                      .block_bytes = RECORD_BLOCK_BYTES,
                                                      .ticks_per_second = 1000000000};
  unlink(file);
  FILE *stream = fopen(file, "wb");
  assert_non_null(stream);
  fwrite(block, sizeof(struct record_head), 1, stream);
  for (uint32_t i = 0; i < RECORD_BLOCKS; i++) {
    struct record_context context = {0};
    memset(block, 0, RECORD_BLOCK_BYTES);
    *(struct record_block *)block =
        (struct record_block){.magic = RECORD_BLOCK_MAGIC, .thread = i + 1, .sequence = RECORD_BLOCKS - i};
    char *at = block + sizeof(struct record_block);
    for (uint64_t event = 0; event < RECORD_EVENTS; event++)
      at = record_put(at, &context,
                      &(struct record_event){.action = action,
                                             .ticks = event * ticks,
                                             .ptr = (event * RECORD_BLOCKS + RECORD_BLOCKS - i) << 8,
                                             .bytes = 8});
    fseek(stream, (long)(i + 1) * RECORD_BLOCK_BYTES, SEEK_SET);
    fwrite(block, 4096, 1, stream);
  }
  fseek(stream, (long)(RECORD_BLOCKS + 1) * RECORD_BLOCK_BYTES - 1, SEEK_SET);
  fwrite("", 1, 1, stream);
  fclose(stream);
  free(block);
}

/* Blocks that begin at one time are read in the order of their sequence numbers, and their events in order of time. */
static void merges_many_blocks_of_one_moment(void **state)
{
  struct trace_row row;
  uint64_t address = 0, n = 0;
  (void)state;
  write_record(RECORD_ALLOCATE, 10000);
  struct trace_rows *rows = trace_rows_open(file, message, sizeof message);
  assert_non_null(rows);
  for (; trace_rows_next(rows, &row) == TRACE_LINE; n++, address = row.pointer) assert_true(row.pointer > address);
  assert_int_equal(n, RECORD_BLOCKS * RECORD_EVENTS);
  assert_string_equal(trace_rows_remark(rows), "");
  trace_rows_close(rows);
}

/* A log that begins in the middle of a program has frees that nothing allocates. To look for the allocation of each in all
 * threads would take minutes. */
static void reads_frees_of_blocks_from_before_the_log(void **state)
{
  struct trace_row row;
  uint64_t n = 0;
  (void)state;
  write_record(RECORD_FREE, 1);
  struct trace_rows *rows = trace_rows_open(file, message, sizeof message);
  assert_non_null(rows);
  while (trace_rows_next(rows, &row) == TRACE_LINE) n++;
  assert_int_equal(n, RECORD_BLOCKS * RECORD_EVENTS);
  trace_rows_close(rows);
}

/* Writes a record of one block, in whose place older events stood. */
static void write_over_old_block(char *block)
{
  char *page = calloc(1, RECORD_BLOCK_BYTES);
  assert_non_null(page);
  *(struct record_head *)page = (struct record_head){.magic = RECORD_MAGIC,
                                                     .byte_order = RECORD_BYTE_ORDER,
                                                     .block_bytes = RECORD_BLOCK_BYTES,
                                                     .ticks_per_second = 1000000000};
  *(struct record_block *)block = (struct record_block){.magic = RECORD_BLOCK_MAGIC, .thread = 7, .sequence = 1};
  unlink(file);
  FILE *stream = fopen(file, "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(page, RECORD_BLOCK_BYTES, 1, stream), 1);
  assert_int_equal(fwrite(block, RECORD_BLOCK_BYTES, 1, stream), 1);
  fclose(stream);
  free(page);
}

/* Places with numbers that no memory has are rows as they stand, with the name of who has them, once the record
 * has told what is held; and a row of a kind that no release writes ends its block. */
static void reads_places_and_nothing_unknown(void **state)
{
  static const struct record_place places[] = {
      {5, 4096, 512}, {6, 4096, -512}, {7, 0, RECORD_NOWHERE}, {8, UINT64_MAX, INT64_MAX}, {UINT64_MAX, 0, 0}};
  enum { PLACES = sizeof places / sizeof *places };
  static const struct record_held held = {6, 512, UINT64_MAX};
  char *block = calloc(1, RECORD_BLOCK_BYTES), *at = block + sizeof(struct record_block);
  struct record_context context = {0};
  struct trace_row row;
  size_t bytes;
  (void)state;
  assert_non_null(block);
  for (size_t i = 0; i < PLACES; i++) {
    char data[sizeof *places + 5] = "";
    if (i == 1) at = record_put_meta(at, RECORD_META_HELD, &held, sizeof held);
    memcpy(data, &places[i], sizeof *places);
    memcpy(data + sizeof *places, i % 2 ? "\4pool" : "", i % 2 ? 5 : 1);
    at = record_put_meta(at, RECORD_META_PLACE, data, sizeof *places + (i % 2 ? 5 : 1));
  }
  at = record_put(at, &context, &(struct record_event){.ptr = 4096, .bytes = 8});
  at = record_put_meta(at, (enum record_meta)(RECORD_META_PLACE + 1), "12345678", 8);
  record_put(at, &context, &(struct record_event){.ptr = 8192, .bytes = 8});
  write_over_old_block(block);
  free(block);
  struct trace_rows *rows = trace_rows_open(file, message, sizeof message);
  assert_non_null(rows);
  trace_rows_want_all(rows);
  assert_int_equal(trace_rows_next(rows, &row), TRACE_LINE);
  assert_int_equal(row.action, TRACE_HELD);
  for (size_t i = 1; i < PLACES; i++) {
    const int64_t told = places[i].bytes;
    assert_int_equal(trace_rows_next(rows, &row), TRACE_LINE);
    assert_int_equal(row.action, told > 0 ? TRACE_HOLD : TRACE_RELEASE);
    assert_int_equal(row.pointer, places[i].address);
    assert_int_equal(row.bytes, told > 0 ? (uint64_t)told : -(uint64_t)told);
    const char *holder = trace_rows_tag(rows, &row, &bytes);
    assert_int_equal(holder != NULL, i % 2);
    if (holder) assert_memory_equal(holder, "pool", bytes);
  }
  assert_false(trace_rows_have_tags(rows)); /* names are none */
  assert_int_equal(trace_rows_next(rows, &row), TRACE_LINE);
  assert_int_equal(row.pointer, 4096);
  assert_int_equal(trace_rows_next(rows, &row), TRACE_LINE_END);
  assert_string_equal(trace_rows_remark(rows), "1 damaged block was skipped from the damage on");
  trace_rows_close(rows);
}

/* Events in each form, with numbers at the ends of what it takes, in a block that was not cleared: each is read, and nothing
 * behind the last. */
static void reads_events_of_every_form(void **state)
{
  static const uint64_t numbers[] = {0,       1,       255,        256,        65535,      65536,      0xffffff,
                                     1 << 24, 1 << 25, 0xffffffff, 1ull << 32, 1ull << 33, 1ull << 40, 1ull << 47};
  enum { NUMBERS = sizeof numbers / sizeof *numbers, MOST = NUMBERS * NUMBERS };
  struct record_event events[MOST];
  struct record_context context = {0};
  char *block = malloc(RECORD_BLOCK_BYTES), *at = block + sizeof(struct record_block);
  unsigned of_form[3] = {0};
  (void)state;
  assert_non_null(block);
  memset(block, 0x39, RECORD_BLOCK_BYTES);
  for (unsigned i = 0; i < MOST; i++) {
    uint64_t ticks = context.ticks + numbers[i % 10], ptr = (i % 2 ? numbers[i / NUMBERS] << 8 : 4096) + (i % 11 == 0);
    events[i] =
        (struct record_event){i % 2 ? RECORD_FREE : RECORD_ALLOCATE, ticks, ptr + (1 << 20), numbers[i % NUMBERS],
                              i % 5 == 4 ? i : context.stream,       0};
    char *end = events[i].stream != context.stream ? NULL : record_put_fixed(at, &context, &events[i], 2, 3, 3);
    if (!end && events[i].stream == context.stream) end = record_put_fixed(at, &context, &events[i], 4, 4, 4);
    of_form[!end ? 2 : end - at == 10 ? 0 : 1]++;
    at = end ? end : record_put(at, &context, &events[i]);
    assert_int_equal(*at, 0);
    uint32_t thread = 7;
    if (i % 17 == 0) at = record_put_meta(at, RECORD_META_THREAD, &thread, sizeof thread);
    assert_int_equal(*at, 0);
  }
  for (int form = 0; form < 3; form++) assert_true(of_form[form] > 8);
  write_over_old_block(block);
  free(block);
  struct trace_row row;
  struct trace_rows *rows = trace_rows_open(file, message, sizeof message);
  assert_non_null(rows);
  for (unsigned i = 0; i < MOST; i++) {
    assert_int_equal(trace_rows_next(rows, &row), TRACE_LINE);
    assert_int_equal(row.pointer, events[i].ptr);
    assert_int_equal(row.bytes, events[i].bytes);
    assert_int_equal(row.stream, events[i].stream);
    assert_int_equal(row.action, i % 2 ? TRACE_FREE : TRACE_ALLOCATE);
    assert_int_equal(row.nanoseconds, events[i].ticks);
  }
  assert_int_equal(trace_rows_next(rows, &row), TRACE_LINE_END);
  trace_rows_close(rows);
}

static uint64_t draw(uint64_t *random, uint64_t below)
{
  *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
  return *random % below;
}

/* Segments of any numbers are what an array of pages has, and none is empty. */
static void keeps_segments_that_are_cut_anywhere(void **state)
{
  enum { PAGES = 64, STEPS = 5000 };
  uint32_t pages[PAGES] = {0}; /* the pool of each */
  struct segments segments = {NULL};
  uint64_t random = 3;
  (void)state;
  for (uint32_t step = 1; step < STEPS; step++) {
    const uint64_t at = draw(&random, PAGES), n = draw(&random, PAGES - at + 1) / (1 + draw(&random, 8));
    const uint32_t pool = draw(&random, 2) ? step : 0;
    assert_true(pool ? segments_hold(&segments, step, at, n, pool) : segments_release(&segments, step, at, n));
    for (uint64_t page = at; page < at + n; page++) pages[page] = pool;
    uint64_t held = 0;
    for (uint64_t page = 0; page < PAGES; page++) {
      assert_int_equal(segments_pool(&segments, page), pages[page]);
      held += pages[page] != 0;
    }
    assert_int_equal(segments.held_bytes, held);
  }
  for (size_t i = 0; i < segments.n; i++) assert_int_not_equal(segments.items[i].bytes, 0);
  segments_clear(&segments);
}

/* ---- Damage ---------------------------------------------------------------------------------------------------- */

static void damage(const char *data, size_t bytes, uint64_t *random)
{
  enum { TIMES = 250 };
  char *damaged = malloc(bytes);
  assert_non_null(damaged);
  for (int time = 0; time < TIMES; time++) {
    memcpy(damaged, data, bytes);
    for (uint64_t n = draw(random, 4); n > 0; n--) damaged[draw(random, bytes)] = (char)draw(random, 256);
    write_bytes(damaged, draw(random, 2) ? bytes : draw(random, bytes + 1));
    assert_in_range(read_rows() + 1, 0, 20);
  }
  free(damaged);
}

/* Nothing in a file is trusted: no damage leads a reader astray (the sanitizers look). */
static void survives_every_damage(void **state)
{
  static const char *const names[] = {"torch_snapshot.pickle",
                                      "torch_snapshot.json",
                                      "umpire.json",
                                      "umpire_1.1.json",
                                      "umpire_2022.03.json",
                                      "rocprofv3_memory_allocation_trace.csv",
                                      "nsys.sqlite"};
  static const char tagged[] = "Thread,Time,Action,Pointer,Size,Stream,Tag\n"
                               "1,10:00:00.000000,allocate,0x100,8,0,\"step \"\"1\"\";a\\;b\\\\c, d\"\n"
                               "1,10:00:01.000000,free,0x100,8,0,\n";
  static const char *const logs[] = {spark, rmm_events, kokkos, umpire_v2, rocprof, tagged};
  uint64_t random = 7;
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t bytes;
    char *data = sample(names[i], &bytes);
    damage(data, bytes, &random);
    free(data);
  }
  for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) damage(logs[i], strlen(logs[i]), &random);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_a_snapshot_of_pytorch),
      cmocka_unit_test(reads_a_log_of_umpire),
      cmocka_unit_test(reads_a_log_of_umpire_with_threads),
      cmocka_unit_test(reads_rows_among_other_lines),
      cmocka_unit_test(reads_the_action_deallocate_and_seconds_since_1970),
      cmocka_unit_test(reads_the_events_of_early_releases_of_rmm),
      cmocka_unit_test(reads_the_memory_events_of_kokkos),
      cmocka_unit_test(reads_the_second_replay_format_of_umpire),
      cmocka_unit_test(keeps_agents_of_rocprofv3_apart),
      cmocka_unit_test(reads_up_to_a_cut),
      cmocka_unit_test(reads_a_list_of_snapshots),
      cmocka_unit_test(reads_a_log_of_rocprofv3),
      cmocka_unit_test(reads_a_log_of_rocpd),
      cmocka_unit_test(reads_an_export_of_nsys),
      cmocka_unit_test(tells_logs_of_umpire_from_other_json),
      cmocka_unit_test(forgets_an_allocator_of_umpire_that_ends),
      cmocka_unit_test(finds_the_source_of_an_allocator_of_umpire),
      cmocka_unit_test(reads_a_log_of_umpire_that_is_cut_off),
      cmocka_unit_test(calls_a_stack_by_what_the_program_does),
      cmocka_unit_test(merges_the_events_of_devices),
      cmocka_unit_test(reads_the_blocks_of_a_snapshot_without_events),
      cmocka_unit_test(counts_events_of_other_releases),
      cmocka_unit_test(shows_no_control_characters_of_names),
      cmocka_unit_test(never_runs_a_pickle),
      cmocka_unit_test(refuses_pickles_that_are_none),
      cmocka_unit_test(reads_a_pickle_that_holds_itself),
      cmocka_unit_test(takes_addresses_of_64_bits),
      cmocka_unit_test(says_what_a_file_is_instead),
#ifdef HIPMM_HAVE_SQLITE
      cmocka_unit_test(reads_the_streams_and_threads_of_nsys),
      cmocka_unit_test(reads_an_older_export_of_nsys),
      cmocka_unit_test(says_that_a_database_has_no_memory_events),
#endif
      cmocka_unit_test(merges_many_blocks_of_one_moment),
      cmocka_unit_test(reads_frees_of_blocks_from_before_the_log),
      cmocka_unit_test(reads_events_of_every_form),
      cmocka_unit_test(reads_places_and_nothing_unknown),
      cmocka_unit_test(keeps_segments_that_are_cut_anywhere),
      cmocka_unit_test(survives_every_damage),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
