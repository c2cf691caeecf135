/* SPDX-License-Identifier: MIT */
/* pool.c: a pool with a deliberate mistake: where a stream should be made to wait for another one, it is only said that
 * it does. The rest is the pool's own code, linked with stream_wait() wrapped. test_order.c loads it in place of the
 * pool, to see that its check notices. */
#include "../../../../plugins/common/stream_order.h"

bool __wrap_stream_wait(struct streams *streams, uint32_t waiter, uint32_t id, uint64_t epoch);

bool __wrap_stream_wait(struct streams *streams, uint32_t waiter, uint32_t id, uint64_t epoch)
{
  (void)waiter;
  if (epoch > stream_of(streams, id)->completed && !stream_cover(streams, id)) return false;
  streams->waits++;
  return true;
}
