/* SPDX-License-Identifier: MIT */
/* both_schedulers.h: tests of streams and containers run on either scheduler of the software device: streams that run
 * at once, in threads, and streams that run as late as they may. A test starts with both_start(state, graph). */
#ifndef HIPMM_TESTS_SUPPORT_BOTH_SCHEDULERS_H
#define HIPMM_TESTS_SUPPORT_BOTH_SCHEDULERS_H

#include "fixture.h"

#include <hipmm/buffer.h>
#include <hipmm/stream.h>

static const char both_threads[] = "", both_stepped[] = "'scheduler': 'stepped', 'seed': 11";

#define BOTH(test)                                                                             \
  {#test ", threads", test, fixture_setup, fixture_teardown, (void *)(uintptr_t)both_threads}, \
  {                                                                                            \
#test ", stepped", test, fixture_setup, fixture_teardown, (void *)(uintptr_t)both_stepped  \
  }

static inline void both_start(void **state, const char *graph)
{
  fixture_start_with(*state, graph);
}

/* A non-blocking stream. */
static inline hipmm_stream_t both_stream(int device)
{
  hipmm_stream_t stream = NULL;
  assert_ok(hipmm_stream_create(device, HIPMM_STREAM_NON_BLOCKING, &stream));
  return stream;
}

/* A value that tells where it belongs. */
static inline unsigned char both_byte(size_t at, unsigned seed)
{
  return (unsigned char)((at * 31 + at / 256 * 7 + seed * 101) & 255);
}

static inline void both_write(unsigned char *bytes, size_t n, unsigned seed)
{
  for (size_t i = 0; i < n; i++) bytes[i] = both_byte(i, seed);
}

/* How many of the bytes are those that both_write() wrote, from the first on. */
static inline size_t both_good(const unsigned char *bytes, size_t n, unsigned seed)
{
  size_t i = 0;
  while (i < n && bytes[i] == both_byte(i, seed)) i++;
  return i;
}

#endif
