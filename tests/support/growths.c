/* SPDX-License-Identifier: MIT */
/* growths.c: see growths.h. */
#include "growths.h"

#include <stdio.h>

const char mapped[] = "mapped", segments[] = "segments";

void start_with(const char *runtime_options, const char *growth, const char *options)
{
  char graph[400];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': '%s'%s}, 'device']", growth, options);
  fixture_start_with(runtime_options, graph);
}

void start(void **state, const char *options)
{
  start_with("", *state, options);
}

void trim(size_t keep_bytes)
{
  assert_ok(hipmm_resource_trim(fixture_resource("pool"), keep_bytes));
}

int64_t value(const char *name)
{
  return fixture_value("pool", name);
}
