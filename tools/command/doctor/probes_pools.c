/* SPDX-License-Identifier: MIT */
/* probes_pools.c: the driver's stream-ordered pools. */
#include "probes.h"

#include <stdint.h>

enum { POOLS_BYTES = 8 << 20, POOLS_ROUNDS = 8, POOLS_DELAY_MS = 5, POOLS_BLOCKS = 48, POOLS_SMALL_BYTES = 1 << 16 };
enum { POOLS_LARGE_BYTES = 32 << 20, POOLS_LARGE_BLOCKS = 3 };

struct pools {
  hipmm_stream_t first, second;
  hipmm_hip_mempool_t pool;
};

static bool pools_are_absent(const struct probe_context *context)
{
  const struct hipmm_hip *hip = context->hip;
  hipmm_hip_mempool_t pool;
  if (!hip->MallocFromPoolAsync || !hip->FreeAsync || !hip->MemPoolCreate || !hip->LaunchHostFunc) return true;
  if (!hip->DeviceGetDefaultMemPool || !hip->DeviceGetDefaultMemPool(&pool, context->device)) return false;
  (void)hip->GetLastError();
  return true;
}

static bool pools_make(struct probe_context *context, struct pools *pools)
{
  const struct hipmm_hip *hip = context->hip;
  return probe_call(context, "StreamCreate",
                    hip->StreamCreateWithFlags(&pools->first, HIPMM_HIP_STREAM_NON_BLOCKING)) &&
         probe_call(context, "StreamCreate",
                    hip->StreamCreateWithFlags(&pools->second, HIPMM_HIP_STREAM_NON_BLOCKING)) &&
         probe_call(context, "MemPoolCreate", hip->MemPoolCreate(&pools->pool, context->device, 0));
}

static void pools_drop(struct probe_context *context, const struct pools *pools)
{
  const struct hipmm_hip *hip = context->hip;
  (void)hip->DeviceSynchronize();
  if (pools->pool) (void)hip->MemPoolDestroy(pools->pool);
  if (pools->second) (void)hip->StreamDestroy(pools->second);
  if (pools->first) (void)hip->StreamDestroy(pools->first);
}

/* Runs a probe with two streams and a pool. */
static enum probe_verdict pools_probe(struct probe_context *context,
                                      bool (*run)(struct probe_context *context, const struct pools *pools))
{
  struct pools pools = {0};
  if (pools_are_absent(context)) return PROBE_ABSENT;
  bool good = pools_make(context, &pools) && run(context, &pools);
  pools_drop(context, &pools);
  return good ? PROBE_GOOD : PROBE_BAD;
}

static bool pools_allocate(struct probe_context *context, const struct pools *pools, size_t bytes,
                           hipmm_stream_t stream, void **ptr_out)
{
  return probe_call(context, "MallocFromPoolAsync",
                    context->hip->MallocFromPoolAsync(ptr_out, bytes, pools->pool, stream));
}

static bool pools_fill(struct probe_context *context, void *ptr, int value, size_t bytes, hipmm_stream_t stream)
{
  return probe_call(context, "MemsetAsync", context->hip->MemsetAsync(ptr, value, bytes, stream));
}

static bool pools_free(struct probe_context *context, void *ptr, hipmm_stream_t stream)
{
  return probe_call(context, "FreeAsync", context->hip->FreeAsync(ptr, stream));
}

/* ---- Order ---- */

/* A block is freed while its stream has yet to write it; the next block, on the other stream, must not be it. */
static bool pools_order_once(struct probe_context *context, const struct pools *pools)
{
  const struct hipmm_hip *hip = context->hip;
  unsigned delay = POOLS_DELAY_MS;
  void *old = NULL, *fresh = NULL;
  bool good = pools_allocate(context, pools, POOLS_BYTES, pools->first, &old) &&
              pools_fill(context, old, 1, POOLS_BYTES, pools->first) && probe_delay(context, pools->first, &delay) &&
              pools_fill(context, old, 2, POOLS_BYTES, pools->first) && pools_free(context, old, pools->first) &&
              pools_allocate(context, pools, POOLS_BYTES, pools->second, &fresh) &&
              pools_fill(context, fresh, 3, POOLS_BYTES, pools->second);
  good = probe_call(context, "DeviceSynchronize", hip->DeviceSynchronize()) && good;
  good = good && probe_holds(context, "a block that another stream had freed", fresh, POOLS_BYTES, 3);
  return (!fresh || pools_free(context, fresh, pools->second)) && good;
}

static bool pools_order(struct probe_context *context, const struct pools *pools)
{
  bool good = true;
  for (int round = 0; good && round < POOLS_ROUNDS; round++) good = pools_order_once(context, pools);
  return good;
}

enum probe_verdict probe_pool_order(struct probe_context *context)
{
  return pools_probe(context, pools_order);
}

/* ---- Data ---- */

/* Blocks of both streams in turns; every other one is freed on the other stream, and the rest must be as it was. */
static bool pools_data_once(struct probe_context *context, const struct pools *pools, void **blocks)
{
  const struct hipmm_hip *hip = context->hip;
  bool good = true;
  for (int i = 0; good && i < POOLS_BLOCKS; i++) {
    hipmm_stream_t stream = i % 2 ? pools->first : pools->second;
    if (!blocks[i])
      good = pools_allocate(context, pools, POOLS_SMALL_BYTES, stream, &blocks[i]) &&
             pools_fill(context, blocks[i], i + 1, POOLS_SMALL_BYTES, stream);
  }
  good = good && probe_call(context, "DeviceSynchronize", hip->DeviceSynchronize());
  for (int i = 0; good && i < POOLS_BLOCKS; i += 2) {
    good = pools_free(context, blocks[i], i % 4 ? pools->first : pools->second);
    blocks[i] = NULL;
  }
  good = good && probe_call(context, "StreamSynchronize", hip->StreamSynchronize(pools->first));
  for (int i = 1; good && i < POOLS_BLOCKS; i += 2)
    good = probe_holds(context, "a live block", blocks[i], POOLS_SMALL_BYTES, i + 1);
  return good;
}

static bool pools_data(struct probe_context *context, const struct pools *pools)
{
  void *blocks[POOLS_BLOCKS] = {0};
  bool good = true;
  for (int round = 0; good && round < POOLS_ROUNDS; round++) good = pools_data_once(context, pools, blocks);
  for (int i = 0; i < POOLS_BLOCKS; i++)
    if (blocks[i]) good = pools_free(context, blocks[i], pools->first) && good;
  return good;
}

enum probe_verdict probe_pool_data(struct probe_context *context)
{
  return pools_probe(context, pools_data);
}

/* ---- Threshold ---- */

static bool pools_set_threshold(struct probe_context *context, const struct pools *pools, uint64_t threshold)
{
  return probe_call(context, "MemPoolSetAttribute",
                    context->hip->MemPoolSetAttribute(pools->pool, HIPMM_HIP_POOL_RELEASE_THRESHOLD, &threshold));
}

/* What the pool holds after large blocks were freed and the device was waited for. */
static bool pools_hold(struct probe_context *context, const struct pools *pools, uint64_t *held_out)
{
  const struct hipmm_hip *hip = context->hip;
  void *blocks[POOLS_LARGE_BLOCKS] = {0};
  bool good = true;
  for (int i = 0; good && i < POOLS_LARGE_BLOCKS; i++)
    good = pools_allocate(context, pools, POOLS_LARGE_BYTES, pools->first, &blocks[i]);
  for (int i = 0; i < POOLS_LARGE_BLOCKS; i++)
    if (blocks[i]) good = pools_free(context, blocks[i], pools->first) && good;
  return probe_call(context, "StreamSynchronize", hip->StreamSynchronize(pools->first)) &&
         probe_call(context, "DeviceSynchronize", hip->DeviceSynchronize()) &&
         probe_call(context, "MemPoolGetAttribute",
                    hip->MemPoolGetAttribute(pools->pool, HIPMM_HIP_POOL_RESERVED_CURRENT, held_out)) &&
         good;
}

static bool pools_threshold(struct probe_context *context, const struct pools *pools)
{
  const uint64_t freed = (uint64_t)POOLS_LARGE_BLOCKS * POOLS_LARGE_BYTES;
  uint64_t kept = 0, left = 0;
  if (!pools_set_threshold(context, pools, UINT64_MAX) || !pools_hold(context, pools, &kept) ||
      !pools_set_threshold(context, pools, 0) || !pools_hold(context, pools, &left))
    return false;
  if (kept < freed)
    probe_bad(context, "a pool without a limit kept %llu of %llu MiB", (unsigned long long)kept >> 20,
              (unsigned long long)freed >> 20);
  else if (left >= freed)
    probe_bad(context, "a pool that is to keep nothing kept %llu MiB", (unsigned long long)left >> 20);
  return kept >= freed && left < freed;
}

enum probe_verdict probe_pool_threshold(struct probe_context *context)
{
  if (!context->hip->MemPoolSetAttribute || !context->hip->MemPoolGetAttribute) return PROBE_ABSENT;
  return pools_probe(context, pools_threshold);
}

/* ---- Failure ---- */

static bool pools_failure(struct probe_context *context, const struct pools *pools)
{
  const struct hipmm_hip *hip = context->hip;
  size_t before = probe_free_bytes(context), ignored, total = 0;
  void *ptr = NULL;
  if (!probe_call(context, "MemGetInfo", hip->MemGetInfo(&ignored, &total))) return false;
  int code = hip->MallocFromPoolAsync(&ptr, 2 * total, pools->pool, pools->first);
  (void)hip->GetLastError();
  if (!code) {
    (void)hip->FreeAsync(ptr, pools->first);
    probe_bad(context, "twice the device's memory was allocated");
    return false;
  }
  if (!probe_call(context, "DeviceSynchronize", hip->DeviceSynchronize())) return false;
  size_t after = probe_free_bytes(context);
  if (after < before / 2) {
    probe_bad(context, "after a failed allocation %zu of %zu MiB are free", after >> 20, before >> 20);
    return false;
  }
  return pools_allocate(context, pools, POOLS_BYTES, pools->first, &ptr) && pools_free(context, ptr, pools->first);
}

enum probe_verdict probe_pool_failure(struct probe_context *context)
{
  return pools_probe(context, pools_failure);
}
