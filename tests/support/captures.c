/* SPDX-License-Identifier: MIT */
/* captures.c: see captures.h. What ends a capture was found out on CUDA 13 (driver 580). */
#include "captures.h"
#include "graph_functions.h"
#include "stream_watch.h"

/* ---- On the software device ---- */

static int tell(hipmm_stream_t stream, int *status)
{
  *status = watch_is_on(stream);
  return 0;
}

static atomic_uint waits; /* for the device */

static int spy_on_device(void)
{
  atomic_fetch_add(&waits, 1);
  return fixture_usual_hip()->DeviceSynchronize();
}

static void pretend(hipmm_stream_t stream)
{
  struct hipmm_hip *table = watch_begin();
  table->StreamIsCapturing = tell;
  table->DeviceSynchronize = spy_on_device;
  atomic_store(&waits, 0);
  watch_stream(stream);
}

/* Whether nothing was done that would have ended it. */
static bool end_pretending(void)
{
  bool is_good = !watch_count() && !atomic_load(&waits);
  watch_stream(NULL);
  fixture_take_hip_back();
  return is_good;
}

/* ---- On a GPU ---- */

static struct graph_functions driver;

static hipmm_stream_t real; /* that is captured; NULL: none */
static void *graph;

/* ---- Either ---- */

void capture_begin(hipmm_stream_t stream)
{
  if (!strcmp(hipmm_runtime(), "software")) {
    pretend(stream);
    return;
  }
  if (!graph_functions_find(&driver)) skip();
  assert_int_equal(driver.begin(stream, GRAPH_MODE_GLOBAL), 0);
  real = stream;
}

bool capture_end(void)
{
  if (!real) return end_pretending();
  int code = driver.end(real, &graph);
  real = NULL;
  return !code && graph;
}

void capture_replay(hipmm_stream_t stream)
{
  void *program = NULL;
  if (!graph) return;
  assert_int_equal(driver.instantiate(&program, graph, 0), 0);
  assert_int_equal(driver.launch(program, stream), 0);
  assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
  assert_int_equal(driver.destroy_program(program), 0);
}

void capture_forget(void)
{
  if (real) capture_end();
  if (graph) driver.destroy_graph(graph);
  graph = NULL;
}

int capture_teardown(void **state)
{
  capture_forget();
  return fixture_teardown(state);
}

/* ---- In the middle of a call ---- */

static hipmm_stream_t late; /* to be captured; NULL: no more */

static int capture_and_record(hipmm_hip_event_t event, hipmm_stream_t stream)
{
  bool begins = late && stream == late;
  if (begins) late = NULL;
  if (begins && driver.begin(stream, GRAPH_MODE_GLOBAL)) return HIPMM_HIP_ERROR_INVALID_VALUE;
  return fixture_usual_hip()->EventRecord(event, stream);
}

void capture_at_record(hipmm_stream_t stream)
{
  assert_true(graph_functions_find(&driver));
  fixture_lend_hip()->EventRecord = capture_and_record;
  late = stream;
}

void capture_end_at_record(hipmm_stream_t stream)
{
  void *captured = NULL;
  assert_null(late);
  assert_int_equal(driver.end(stream, &captured), 0);
  assert_int_equal(driver.destroy_graph(captured), 0);
}
