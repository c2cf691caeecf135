/* SPDX-License-Identifier: MIT */
/* work.c: the helpers of work.h. */
#include "work.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_uint wrong; /* looks that found something else */

static const char *const growths[] = {"mapped", "segments"};
static const char *const records[] = {"auto", "lazy", "on_free"};

void start(const char *runtime_options, int growth, int record, const char *options)
{
  char graph[300];
  atomic_store(&wrong, 0);
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': '%s', 'record': '%s'%s}, 'device']",
           growths[growth], records[record], options);
  fixture_start_with(runtime_options, graph);
}

void finish(void)
{
  assert_ok(hipmm_finalize());
  assert_int_equal(live_on_all_devices(), 0);
  software()->reset();
}

/* ---- Work ---- */

void use(void *ptr, size_t bytes, hipmm_stream_t stream)
{
  static unsigned char last;
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, ++last, bytes, stream), 0);
  assert_int_equal(fixture_look(ptr, last, bytes, stream, &wrong), 0);
}

void *use_and_free(size_t bytes, hipmm_stream_t stream)
{
  void *ptr = fixture_allocate(bytes, stream);
  use(ptr, bytes, stream);
  fixture_free(ptr, bytes, stream);
  return ptr;
}

void assert_undisturbed(void)
{
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(atomic_exchange(&wrong, 0), 0);
  assert_int_equal(faults_on_all_devices(), 0);
}
