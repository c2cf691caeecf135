/* SPDX-License-Identifier: MIT */
/* captures.c: see captures.h. What ends a capture was found out on CUDA 13 (driver 580). */
#include "captures.h"
#include "stream_watch.h"

#include <dlfcn.h>
#include <string.h>

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

enum { MODE_GLOBAL = 0 };

/* The driver's functions; HIP's are alike. */
static struct {
  int (*begin)(hipmm_stream_t stream, int mode);
  int (*end)(hipmm_stream_t stream, void **graph);
  int (*instantiate)(void **program, void *graph, unsigned long long flags);
  int (*launch)(void *program, hipmm_stream_t stream);
  int (*destroy_program)(void *program);
  int (*destroy_graph)(void *graph);
} driver;

static const struct {
  const char *cuda, *hip;
  void *slot;
} functions[] = {
    {"cuStreamBeginCapture_v2", "hipStreamBeginCapture", &driver.begin},
    {"cuStreamEndCapture", "hipStreamEndCapture", &driver.end},
    {"cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags", &driver.instantiate},
    {"cuGraphLaunch", "hipGraphLaunch", &driver.launch},
    {"cuGraphExecDestroy", "hipGraphExecDestroy", &driver.destroy_program},
    {"cuGraphDestroy", "hipGraphDestroy", &driver.destroy_graph},
};

static hipmm_stream_t real; /* that is captured; NULL: none */
static void *graph;

static bool find_driver(void)
{
  bool is_cuda = !strcmp(hipmm_runtime(), "nvidia");
  void *library = dlopen(is_cuda ? "libcuda.so.1" : "libamdhip64.so", RTLD_NOW);
  for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
    void *address = dlsym(library, is_cuda ? functions[i].cuda : functions[i].hip);
    if (!address) return false;
    memcpy(functions[i].slot, &address, sizeof address);
  }
  return library != NULL;
}

/* ---- Either ---- */

void capture_begin(hipmm_stream_t stream)
{
  if (!strcmp(hipmm_runtime(), "software")) {
    pretend(stream);
    return;
  }
  if (!find_driver()) skip();
  assert_int_equal(driver.begin(stream, MODE_GLOBAL), 0);
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
