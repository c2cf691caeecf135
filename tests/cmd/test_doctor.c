/* SPDX-License-Identifier: MIT */
/* test_doctor.c: each probe of `hipmm doctor` is good on the software device, and finds the defect that it is for: a
 * function of HIP is replaced by one with that defect. */
#include "../../tools/command/doctor/probes.h"
#include "../support/fixture.h"

#include <stdint.h>
#include <string.h>

static struct hipmm_hip *lent;
static const struct hipmm_hip *usual;

static int setup(void **state)
{
  int status = fixture_setup(state);
  fixture_start("'stack': ['device']");
  lent = fixture_lend_hip();
  usual = fixture_usual_hip();
  return status;
}

static struct probe_context run(const char *name, enum probe_verdict wanted)
{
  struct probe_context context = {.hip = lent, .device = 0};
  const struct probe *probe = probes;
  while (probe->name && strcmp(probe->name, name) != 0) probe++;
  assert_non_null(probe->name);
  enum probe_verdict verdict = probe->run(&context);
  if (verdict != wanted) print_error("%s: verdict %d, seen: %s\n", name, verdict, context.found);
  assert_int_equal(verdict, wanted);
  return context;
}

static void finds(const char *name, const char *text)
{
  struct probe_context context = run(name, PROBE_BAD);
  assert_contains(context.found, text);
}

/* ---- Without a defect ---- */

static void is_content_with_the_software_device(void **state)
{
  size_t held = fixture_held_bytes();
  (void)state;
  for (const struct probe *probe = probes; probe->name; probe++) {
    struct probe_context context = run(probe->name, PROBE_GOOD);
    assert_string_equal(context.found, "");
    assert_non_null(probe->question);
    assert_non_null(probe->remedy);
  }
  assert_int_equal(fixture_held_bytes(), held);
}

static void tries_nothing_that_the_runtime_lacks(void **state)
{
  (void)state;
  lent->MallocFromPoolAsync = NULL;
  lent->MemMap = NULL;
  run("pool-order", PROBE_ABSENT);
  run("pool-threshold", PROBE_ABSENT);
  run("mapping-data", PROBE_ABSENT);
  run("mapping-wait", PROBE_ABSENT);
  lent->LaunchHostFunc = NULL;
  run("event-order", PROBE_ABSENT);
}

static int fails(void **ptr, size_t bytes)
{
  (void)ptr;
  (void)bytes;
  return HIPMM_HIP_ERROR_INVALID_VALUE;
}

static void says_which_call_failed(void **state)
{
  (void)state;
  lent->Malloc = fails;
  finds("event-order", "hipMalloc returned hipErrorInvalidValue (1)");
}

/* ---- Defects of streams ---- */

/* A defect that lets two streams write one block at once is a race between threads of the software device.
 * ThreadSanitizer reports each word of it, which takes minutes. */
#if defined(__SANITIZE_THREAD__)
enum { MAY_RACE = 0 };
#else
enum { MAY_RACE = 1 };
#endif

static int ignores_the_event(hipmm_stream_t stream, hipmm_hip_event_t event, unsigned flags)
{
  (void)stream;
  (void)event;
  (void)flags;
  return 0;
}

static void finds_that_streams_do_not_wait(void **state)
{
  (void)state;
  if (!MAY_RACE) return;
  lent->StreamWaitEvent = ignores_the_event;
  finds("event-order", "a copy that waits for the writing stream: ");
}

static int is_always_complete(hipmm_hip_event_t event)
{
  (void)event;
  return 0;
}

static int is_never_complete(hipmm_hip_event_t event)
{
  (void)event;
  return HIPMM_HIP_ERROR_NOT_READY;
}

static void finds_that_events_are_wrong(void **state)
{
  (void)state;
  lent->EventQuery = is_always_complete;
  finds("event-query", "complete before the work");
  lent->EventQuery = is_never_complete;
  finds("event-query", "not complete after its stream was waited for");
}

static int tells_always_the_same(size_t *free_bytes, size_t *total_bytes)
{
  *free_bytes = 100 << 20;
  *total_bytes = 256 << 20;
  return 0;
}

static void finds_that_free_memory_is_wrong(void **state)
{
  (void)state;
  lent->MemGetInfo = tells_always_the_same;
  finds("free-memory", "64 MiB were allocated, and 0 MiB less were free");
}

/* ---- Defects of pools ---- */

static void *kept; /* a freed block */

static int keeps_it(void *ptr, hipmm_stream_t stream)
{
  if (kept) return usual->FreeAsync(ptr, stream);
  kept = ptr;
  return 0;
}

/* Whatever stream its work is on. */
static int gives_the_kept_block(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream)
{
  if (!kept) return usual->MallocFromPoolAsync(ptr, bytes, pool, stream);
  *ptr = kept;
  kept = NULL;
  return 0;
}

static void finds_a_pool_that_does_not_wait(void **state)
{
  (void)state;
  if (!MAY_RACE) return;
  kept = NULL;
  lent->FreeAsync = keeps_it;
  lent->MallocFromPoolAsync = gives_the_kept_block;
  finds("pool-order", "a block that another stream had freed: ");
  if (kept) assert_int_equal(usual->FreeAsync(kept, NULL), 0);
}

static void *latest[2];

static int remembers_it(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream)
{
  int code = usual->MallocFromPoolAsync(ptr, bytes, pool, stream);
  latest[0] = latest[1];
  latest[1] = *ptr;
  return code;
}

/* As ROCm/rocm-systems#10943: a live block is zeros after another was freed. */
static int clears_another(void *ptr, hipmm_stream_t stream)
{
  if (latest[1] && latest[1] != ptr) {
    assert_int_equal(usual->MemsetAsync(latest[1], 0, 16, stream), 0);
    assert_int_equal(usual->StreamSynchronize(stream), 0); /* or the probe may read between two of the bytes */
    latest[1] = NULL;
  }
  return usual->FreeAsync(ptr, stream);
}

static void finds_a_pool_that_clears_live_blocks(void **state)
{
  (void)state;
  latest[0] = latest[1] = NULL;
  lent->MallocFromPoolAsync = remembers_it;
  lent->FreeAsync = clears_another;
  finds("pool-data", "a live block: 16 of 65536 bytes are wrong");
}

static int forgets_the_threshold(hipmm_hip_mempool_t pool, int attribute, void *value)
{
  uint64_t nothing = 0;
  return usual->MemPoolSetAttribute(pool, attribute, attribute == HIPMM_HIP_POOL_RELEASE_THRESHOLD ? &nothing : value);
}

static int keeps_everything(hipmm_hip_mempool_t pool, int attribute, void *value)
{
  uint64_t all = UINT64_MAX;
  return usual->MemPoolSetAttribute(pool, attribute, attribute == HIPMM_HIP_POOL_RELEASE_THRESHOLD ? &all : value);
}

static void finds_a_threshold_without_effect(void **state)
{
  (void)state;
  lent->MemPoolSetAttribute = forgets_the_threshold;
  finds("pool-threshold", "a pool without a limit kept 0 of 96 MiB");
  lent->MemPoolSetAttribute = keeps_everything;
  finds("pool-threshold", "a pool that is to keep nothing kept 96 MiB");
}

static void *lost;

/* As ROCm/rocm-systems#11642. */
static int loses_memory_as_it_fails(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream)
{
  int code = usual->MallocFromPoolAsync(ptr, bytes, pool, stream);
  if (code && !lost) assert_int_equal(usual->Malloc(&lost, 200 << 20), 0);
  return code;
}

static void finds_a_failure_that_holds_memory(void **state)
{
  (void)state;
  lost = NULL;
  lent->MallocFromPoolAsync = loses_memory_as_it_fails;
  finds("pool-failure", "after a failed allocation ");
  assert_int_equal(usual->Free(lost), 0);
}

/* ---- Defects of virtual memory ---- */

/* As ROCm/rocm-systems#11693: what is mapped reads as zeros. */
static int clears_what_it_maps(void *ptr, size_t bytes, int device)
{
  int code = usual->MemSetAccess(ptr, bytes, device);
  if (!code) assert_int_equal(usual->MemsetAsync(ptr, 0, bytes, NULL), 0);
  return code;
}

static void finds_mapped_memory_that_loses_data(void **state)
{
  (void)state;
  lent->MemSetAccess = clears_what_it_maps;
  finds("mapping-data", "memory that was mapped elsewhere: ");
}

static hipmm_hip_chunk_t first_chunk, others[8];
static int n_others;

static int maps_other_memory(void *ptr, size_t bytes, hipmm_hip_chunk_t chunk)
{
  if (!first_chunk) {
    first_chunk = chunk;
    return usual->MemMap(ptr, bytes, chunk);
  }
  assert_int_equal(usual->MemCreate(&others[n_others], bytes, 0), 0);
  return usual->MemMap(ptr, bytes, others[n_others++]);
}

static void finds_aliases_that_are_none(void **state)
{
  (void)state;
  first_chunk = NULL;
  n_others = 0;
  lent->MemMap = maps_other_memory;
  finds("mapping-alias", "the first address of memory that was written at its second: ");
  while (n_others > 0) assert_int_equal(usual->MemRelease(others[--n_others]), 0);
}

static int refuses_some_sizes(void *ptr, size_t bytes, int device)
{
  size_t granularity;
  assert_int_equal(usual->MemGetAllocationGranularity(&granularity, device), 0);
  return bytes / granularity == 5 ? HIPMM_HIP_ERROR_INVALID_VALUE : usual->MemSetAccess(ptr, bytes, device);
}

static void finds_sizes_that_are_refused(void **state)
{
  (void)state;
  lent->MemSetAccess = refuses_some_sizes;
  finds("mapping-access", "hipMemSetAccess returned hipErrorInvalidValue (1)");
}

static hipmm_hip_chunk_t unreleased[8];
static int n_unreleased;

/* As ROCm/hip#3781. */
static int releases_nothing(hipmm_hip_chunk_t chunk)
{
  unreleased[n_unreleased++] = chunk;
  return 0;
}

static void finds_memory_that_is_not_released(void **state)
{
  (void)state;
  n_unreleased = 0;
  lent->MemRelease = releases_nothing;
  finds("mapping-release", "64 MiB were released, and 0 MiB more are free");
  while (n_unreleased > 0) assert_int_equal(usual->MemRelease(unreleased[--n_unreleased]), 0);
}

static int waits_for_all(void *ptr, size_t bytes, hipmm_hip_chunk_t chunk)
{
  assert_int_equal(usual->DeviceSynchronize(), 0);
  return usual->MemMap(ptr, bytes, chunk);
}

static void finds_that_mapping_waits(void **state)
{
  (void)state;
  lent->MemMap = waits_for_all;
  finds("mapping-wait", "while another stream was busy for 100 ms");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(is_content_with_the_software_device),
      TEST(tries_nothing_that_the_runtime_lacks),
      TEST(says_which_call_failed),
      TEST(finds_that_streams_do_not_wait),
      TEST(finds_that_events_are_wrong),
      TEST(finds_that_free_memory_is_wrong),
      TEST(finds_a_pool_that_does_not_wait),
      TEST(finds_a_pool_that_clears_live_blocks),
      TEST(finds_a_threshold_without_effect),
      TEST(finds_a_failure_that_holds_memory),
      TEST(finds_mapped_memory_that_loses_data),
      TEST(finds_aliases_that_are_none),
      TEST(finds_sizes_that_are_refused),
      TEST(finds_memory_that_is_not_released),
      TEST(finds_that_mapping_waits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
