/* SPDX-License-Identifier: MIT */
/* captures.c: see captures.h. What ends a capture was found out on CUDA 13 (driver 580). */
#include "captures.h"

#include <dlfcn.h>
#include <string.h>

/* ---- On the software device ---- */

static hipStream_t _Atomic captured; /* NULL: none */
static atomic_uint mistakes;         /* calls that would have ended the capture */

static void note(hipStream_t stream)
{
  if (stream && stream == atomic_load(&captured)) atomic_fetch_add(&mistakes, 1);
}

static int tell(hipStream_t stream, int *status)
{
  *status = stream && stream == atomic_load(&captured);
  return 0;
}

static int spy_on_record(hipEvent_t event, hipStream_t stream)
{
  note(stream);
  return rig_usual_hip()->EventRecord(event, stream);
}

static int spy_on_wait(hipStream_t stream, hipEvent_t event, unsigned flags)
{
  note(stream);
  return rig_usual_hip()->StreamWaitEvent(stream, event, flags);
}

static int spy_on_synchronize(hipStream_t stream)
{
  note(stream);
  return rig_usual_hip()->StreamSynchronize(stream);
}

static int spy_on_query(hipStream_t stream)
{
  note(stream);
  return rig_usual_hip()->StreamQuery(stream);
}

static int spy_on_id(hipStream_t stream, unsigned long long *id)
{
  note(stream);
  return rig_usual_hip()->StreamGetId(stream, id);
}

static int spy_on_prefetch(const void *ptr, size_t bytes, int device, hipStream_t stream)
{
  note(stream);
  return rig_usual_hip()->MemPrefetchAsync(ptr, bytes, device, stream);
}

static int spy_on_device(void)
{
  note(atomic_load(&captured));
  return rig_usual_hip()->DeviceSynchronize();
}

static void pretend(hipStream_t stream)
{
  struct hipmm_hip *table = rig_lend_hip();
  table->StreamIsCapturing = tell;
  table->EventRecord = spy_on_record;
  table->StreamWaitEvent = spy_on_wait;
  table->StreamSynchronize = spy_on_synchronize;
  table->StreamQuery = spy_on_query;
  table->StreamGetId = spy_on_id;
  table->MemPrefetchAsync = spy_on_prefetch;
  table->DeviceSynchronize = spy_on_device;
  atomic_store(&mistakes, 0);
  atomic_store(&captured, stream);
}

/* ---- On a GPU ---- */

enum { MODE_GLOBAL = 0 };

/* The driver's functions; HIP's are alike. */
static struct {
  int (*begin)(hipStream_t stream, int mode);
  int (*end)(hipStream_t stream, void **graph);
  int (*instantiate)(void **program, void *graph, unsigned long long flags);
  int (*launch)(void *program, hipStream_t stream);
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

static hipStream_t real; /* that is captured; NULL: none */
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

void capture_begin(hipStream_t stream)
{
  if (on_software()) {
    pretend(stream);
    return;
  }
  if (!find_driver()) skip();
  assert_int_equal(driver.begin(stream, MODE_GLOBAL), 0);
  real = stream;
}

bool capture_end(void)
{
  atomic_store(&captured, NULL);
  if (!real) return atomic_load(&mistakes) == 0;
  int code = driver.end(real, &graph);
  real = NULL;
  return !code && graph;
}

void capture_replay(hipStream_t stream)
{
  void *program = NULL;
  if (!graph) return;
  assert_int_equal(driver.instantiate(&program, graph, 0), 0);
  assert_int_equal(driver.launch(program, stream), 0);
  assert_int_equal(rig_hip()->StreamSynchronize(stream), 0);
  assert_int_equal(driver.destroy_program(program), 0);
}

void capture_forget(void)
{
  if (real || atomic_load(&captured)) capture_end();
  if (graph) driver.destroy_graph(graph);
  graph = NULL;
}
