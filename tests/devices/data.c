/* SPDX-License-Identifier: MIT */
/* data.c: the helpers of data.h. */
#include "data.h"
#include "../../core/runtime/hip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 << 10, TO_HOST = 2 };

void data_start(const char *stack)
{
  char *graph;
  int length =
      asprintf(&graph, "{'runtime': {'type': 'software', 'devices': 2, 'memory': '256MiB'}, 'stack': %s}", stack);
  assert_true(length > 0);
  for (char *at = graph; *at; at++)
    if (*at == '\'') *at = '"';
  enum hipmm_status status = hipmm_init_from_string(graph);
  free(graph);
  assert_ok(status);
}

int data_teardown(void **state)
{
  (void)state;
  hipmm_finalize(); /* the test may have done it */
  uint64_t live = live_on_all_devices();
  if (live) print_error("%llu blocks were never given back\n", (unsigned long long)live);
  return live ? -1 : 0;
}

const struct hipmm_hip *data_hip(void)
{
  return hip_table();
}

size_t data_free_bytes(void)
{
  size_t free_bytes = 0, total_bytes = 0;
  assert_int_equal(data_hip()->MemGetInfo(&free_bytes, &total_bytes), 0);
  return free_bytes;
}

void data_fill(void *ptr, unsigned char value, size_t bytes, hipmm_stream_t stream)
{
  assert_int_equal(data_hip()->MemsetAsync(ptr, value, bytes, stream), 0);
}

bool data_holds(const void *ptr, unsigned char value, size_t bytes)
{
  static unsigned char copy[PIECE];
  size_t piece = bytes < PIECE ? bytes : PIECE;
  const size_t starts[] = {0, (bytes - piece) / 2, bytes - piece};
  if (data_hip()->DeviceSynchronize()) return false;
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    if (data_hip()->Memcpy(copy, (const char *)ptr + starts[i], piece, TO_HOST)) return false;
    if (copy[0] != value || memcmp(copy, copy + 1, piece - 1)) return false;
  }
  return true;
}
