/* SPDX-License-Identifier: MIT */
/* checks_memory.c: building and destroying a stack, and what single allocations and frees must do, one rule
 * for each check. */
#include "../../../core/runtime/hip.h"
#include "../../../core/stack/instance.h"
#include "kit.h"
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

#define CHECKS_MIB ((size_t)1 << 20)

/* A type that only takes memory over from elsewhere allocates nothing. */
static void checks_memory_open(void)
{
  kit_open("threads");
  void *ptr = kit_allocate(1000, HIPMM_ALIGNMENT, NULL);
  if (!ptr) kit_skip("it allocates nothing here: %s", hipmm_last_error_message());
  kit_free(ptr, 1000, NULL);
}

static void checks_memory_create(void)
{
  kit_open("threads");
  kit_close(0);
}

/* ---- Allocations ----------------------------------------------------------------------------------------------- */

static void checks_memory_alignment(void)
{
  static const size_t sizes[] = {1, 255, 256, 257, 1000, 4096, 10000, 65537};
  enum { N = sizeof sizes / sizeof *sizes };
  void *ptrs[N];
  checks_memory_open();
  for (size_t i = 0; i < N; i++) ptrs[i] = kit_allocate(sizes[i], HIPMM_ALIGNMENT, NULL);
  for (size_t i = 0; i < N; i++)
    if (ptrs[i]) kit_free(ptrs[i], sizes[i], NULL);
  for (size_t alignment = 512; alignment <= 16384; alignment *= 2) {
    void *ptr = NULL;
    enum hipmm_status status = hipmm_allocate_aligned(kit_resource, 1000, alignment, NULL, &ptr);
    if (status && status != HIPMM_E_ARGUMENT && !hipmm_is_out_of_memory(status))
      kit_expect_refusal(status, HIPMM_E_ARGUMENT, "a larger alignment");
    if (!status && (uintptr_t)ptr % alignment) kit_fail("%p is not aligned to the %zu bytes asked for", ptr, alignment);
    if (!status) kit_expect_ok(hipmm_deallocate_aligned(kit_resource, ptr, 1000, alignment, NULL), "its free");
  }
  kit_close(0);
}

static void checks_memory_zero(void)
{
  char untouched;
  void *ptr = &untouched;
  checks_memory_open();
  kit_expect_ok(hipmm_allocate(kit_resource, 0, NULL, &ptr), "an allocation of 0 bytes");
  if (ptr) kit_fail("an allocation of 0 bytes gives %s", ptr == &untouched ? "nothing" : "a pointer");
  kit_expect_ok(hipmm_deallocate(kit_resource, NULL, 0, NULL), "a free of NULL");
  kit_expect_ok(hipmm_deallocate(kit_resource, NULL, 1000, NULL), "a free of NULL with a size");
  kit_close(0);
}

/* Many blocks at once: none overlaps another, and each is memory that can be filled to its end. */
static void checks_memory_distinct(void)
{
  enum { N = 64 };
  struct ranges live;
  struct range other;
  void *ptrs[N];
  ranges_open(&live);
  checks_memory_open();
  for (int i = 0; i < N; i++) {
    size_t bytes = (size_t)(i % 7 * 600 + 1);
    if (!(ptrs[i] = kit_allocate(bytes, HIPMM_ALIGNMENT, NULL))) continue;
    if (!ranges_add(&live, (uintptr_t)ptrs[i], bytes, &other))
      kit_fail("%p of %zu bytes overlaps a live block, %p of %zu bytes", ptrs[i], bytes, (void *)other.start,
               other.bytes);
    kit_expect_hip(hip_table()->MemsetAsync(ptrs[i], i, bytes, NULL), "hipMemsetAsync of a block");
  }
  kit_expect_hip(hip_table()->DeviceSynchronize(), "hipDeviceSynchronize");
  for (int i = 0; i < N; i++)
    if (ptrs[i]) kit_free(ptrs[i], (size_t)(i % 7 * 600 + 1), NULL);
  kit_close(0);
}

/* ---- Frees ----------------------------------------------------------------------------------------------------- */

static void checks_memory_wrong_size(void)
{
  checks_memory_open();
  void *ptr = kit_allocate(1000, HIPMM_ALIGNMENT, NULL);
  kit_expect_refusal(hipmm_deallocate(kit_resource, ptr, 999, NULL), HIPMM_E_SIZE, "a free with a size too small");
  kit_expect_refusal(hipmm_deallocate(kit_resource, ptr, 1001, NULL), HIPMM_E_SIZE, "a free with a size too large");
  kit_free(ptr, 1000, NULL);
  kit_close(0);
}

static void checks_memory_second_free(void)
{
  checks_memory_open();
  void *ptr = kit_allocate(1000, HIPMM_ALIGNMENT, NULL), *other = kit_allocate(1000, HIPMM_ALIGNMENT, NULL);
  kit_free(ptr, 1000, NULL);
  kit_expect_refusal(hipmm_deallocate(kit_resource, ptr, 1000, NULL), HIPMM_E_POINTER, "a second free");
  kit_expect_refusal(hipmm_deallocate(kit_resource, ptr, 0, NULL), HIPMM_E_POINTER, "a second free without a size");
  kit_free(other, 1000, NULL);
  kit_close(0);
}

static void checks_memory_foreign(void)
{
  int local = 0;
  checks_memory_open();
  char *ptr = kit_allocate(1000, HIPMM_ALIGNMENT, NULL);
  kit_expect_refusal(hipmm_deallocate(kit_resource, &local, sizeof local, NULL), HIPMM_E_POINTER,
                     "a free of a foreign pointer");
  kit_expect_refusal(hipmm_deallocate(kit_resource, ptr + 1, 1000, NULL), HIPMM_E_POINTER,
                     "a free of a pointer into a block");
  kit_expect_refusal(hipmm_deallocate(kit_resource, ptr + 256, 0, NULL), HIPMM_E_POINTER,
                     "a free of a pointer into a block, without a size");
  kit_free(ptr, 1000, NULL);
  kit_close(0);
}

static void checks_memory_unknown_size(void)
{
  checks_memory_open();
  for (size_t bytes = 1; bytes < 100000; bytes = bytes * 5 + 3) {
    void *ptr = kit_allocate(bytes, HIPMM_ALIGNMENT, NULL);
    if (ptr) kit_free(ptr, 0, NULL);
  }
  kit_close(0);
}

/* ---- Limits ---------------------------------------------------------------------------------------------------- */

static void checks_memory_huge(void)
{
  static const size_t sizes[] = {SIZE_MAX,     SIZE_MAX - 1,     SIZE_MAX - 255,  SIZE_MAX - 256,
                                 SIZE_MAX / 2, SIZE_MAX / 2 + 1, (size_t)1 << 60, (size_t)1 << 48};
  checks_memory_open();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (kit_allocate(sizes[i], HIPMM_ALIGNMENT, NULL)) kit_fail("an allocation of %zu bytes succeeds", sizes[i]);
  kit_free(kit_allocate(1000, HIPMM_ALIGNMENT, NULL), 1000, NULL);
  kit_close(0);
}

/* Allocates until nothing is left, and returns how many blocks there were. */
static int checks_memory_exhaust(void **ptrs, int most, size_t bytes)
{
  int n = 0;
  while (n < most && (ptrs[n] = kit_allocate(bytes, HIPMM_ALIGNMENT, NULL))) n++;
  return n;
}

static void checks_memory_exhaustion(void)
{
  enum { MOST = 1024, ROUNDS = 3 };
  static void *ptrs[MOST];
  const size_t bytes = CHECKS_MIB / 2;
  int first = 0;
  checks_memory_open();
  for (int round = 0; round < ROUNDS; round++) {
    int n = checks_memory_exhaust(ptrs, MOST, bytes);
    if (n == MOST) kit_skip("its memory has no end here: 512 MiB are to be had");
    if (!round) first = n;
    if (n < first) kit_fail("%d blocks were to be had at first, and %d after all were freed", first, n);
    while (n) kit_free(ptrs[--n], bytes, NULL);
    kit_expect_ok(hipmm_resource_trim(kit_resource, 0), "trim");
  }
  kit_close(0);
}

/* ---- Sizes at which a number of the plugin's own may end ------------------------------------------------------------- */

static void checks_memory_check_boundary(size_t bytes)
{
  const struct instance *instance = instance_from(kit_resource);
  const size_t wrong[] = {bytes + ((size_t)1 << 16), bytes + ((size_t)1 << 32), bytes & UINT16_MAX};
  struct hipmm_block block = {NULL, 0};
  char what[100];
  void *ptr = kit_allocate(bytes, HIPMM_ALIGNMENT, NULL);
  if (!ptr) return;
  if (!hipmm_deallocate(kit_resource, ptr, bytes + 1, NULL)) kit_skip("it heeds no size at all: see `wrong size`");
  if (instance->node->plugin->descriptor.ops->find) {
    snprintf(what, sizeof what, "find of a block of %zu bytes", bytes);
    kit_expect_ok(instance_find(instance, ptr, &block), what);
    if (block.bytes != bytes) kit_fail("%s says %zu bytes", what, block.bytes);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (wrong[i] == bytes || !wrong[i]) continue;
    snprintf(what, sizeof what, "a free of %zu bytes with the size %zu", bytes, wrong[i]);
    kit_expect_refusal(hipmm_deallocate(kit_resource, ptr, wrong[i], NULL), HIPMM_E_SIZE, what);
  }
  kit_free(ptr, bytes, NULL);
}

static void checks_memory_boundaries(void)
{
  checks_memory_open();
  for (size_t power = 128; power <= (size_t)64 << 20; power *= 2)
    for (size_t bytes = power - 1; bytes <= power + 1; bytes++) checks_memory_check_boundary(bytes);
  kit_close(0);
}

/* ---- At once, or not at all ------------------------------------------------------------------------------------- */

static size_t checks_memory_bytes_at_once(int i)
{
  return (size_t)i * 700 + 1;
}

/* Ends the check if the probe was called since it had so many calls. */
static void checks_memory_expect_calls(uint64_t calls, const char *op)
{
  if (kit_probe_tries + kit_probe_frees != calls) kit_fail("%s calls the upstream's allocate or deallocate", op);
}

static void *checks_memory_allocate_at_once(size_t bytes)
{
  const struct hipmm_ops *ops = kit_resource->ops;
  uint64_t calls = kit_probe_tries + kit_probe_frees;
  void *ptr = NULL;
  bool done = ops->try_allocate && ops->try_allocate(kit_resource->self, bytes, HIPMM_ALIGNMENT, NULL, &ptr);
  checks_memory_expect_calls(calls, "try_allocate");
  if (done && (!ptr || (uintptr_t)ptr % HIPMM_ALIGNMENT)) kit_fail("try_allocate succeeds, and gives %p", ptr);
  return done ? ptr : kit_allocate(bytes, HIPMM_ALIGNMENT, NULL);
}

static void checks_memory_free_at_once(void *ptr, size_t bytes)
{
  const struct hipmm_ops *ops = kit_resource->ops;
  uint64_t calls = kit_probe_tries + kit_probe_frees;
  if (ops->try_deallocate && ops->try_deallocate(kit_resource->self, ptr, bytes + 1, HIPMM_ALIGNMENT, NULL))
    kit_fail("try_deallocate frees a block with a wrong size");
  bool done = ops->try_deallocate && ops->try_deallocate(kit_resource->self, ptr, bytes, HIPMM_ALIGNMENT, NULL);
  if (done && ops->try_deallocate(kit_resource->self, ptr, bytes, HIPMM_ALIGNMENT, NULL))
    kit_fail("try_deallocate frees a block twice");
  checks_memory_expect_calls(calls, "try_deallocate");
  if (!done) kit_free(ptr, bytes, NULL);
}

static void checks_memory_at_once(void)
{
  enum { N = 8 };
  struct ranges live;
  struct range other;
  void *ptrs[N];
  ranges_open(&live);
  checks_memory_open();
  for (int i = 0; i < N; i++) ptrs[i] = kit_allocate(checks_memory_bytes_at_once(i), HIPMM_ALIGNMENT, NULL);
  for (int i = 0; i < N; i++)
    if (ptrs[i]) kit_free(ptrs[i], checks_memory_bytes_at_once(i), NULL);
  for (int i = 0; i < N; i++) {
    size_t bytes = checks_memory_bytes_at_once(i);
    if ((ptrs[i] = checks_memory_allocate_at_once(bytes)) && !ranges_add(&live, (uintptr_t)ptrs[i], bytes, &other))
      kit_fail("%p of %zu bytes overlaps a live block", ptrs[i], bytes);
  }
  for (int i = 0; i < N; i++)
    if (ptrs[i]) checks_memory_free_at_once(ptrs[i], checks_memory_bytes_at_once(i));
  ranges_close(&live);
  kit_close(0);
}

const struct kit_check kit_checks_memory[] = {
    {"create", "a stack with it can be built and destroyed",
     "report what is missing with services->fail; give required options with --options", checks_memory_create},
    {"alignment", "pointers are aligned to 256 bytes, and to a larger alignment unless that is refused",
     "pass `alignment` on to the upstream, or round addresses up to it; refuse one that cannot be had with "
     "HIPMM_E_ARGUMENT",
     checks_memory_alignment},
    {"zero size", "0 bytes give NULL and succeed, and NULL can be freed",
     "return NULL for 0 bytes, without asking for memory (an adaptor passes the request on)", checks_memory_zero},
    {"distinct blocks", "a success gives memory, and live blocks do not overlap",
     "return a status where there is no memory; give a block that is live to nobody else", checks_memory_distinct},
    {"wrong size", "a free with a wrong size is refused with HIPMM_E_SIZE and changes nothing",
     "compare the size with the block's before anything is changed; a source gets this from services->untrack",
     checks_memory_wrong_size},
    {"second free", "a second free is refused with HIPMM_E_POINTER and changes nothing",
     "keep a record of live blocks (services->track and untrack), or leave frees to the upstream",
     checks_memory_second_free},
    {"foreign pointer", "a pointer that is not the start of a live block is refused with HIPMM_E_POINTER",
     "look the pointer up among the live blocks, never in the memory before it", checks_memory_foreign},
    {"unknown size", "a block can be freed without its size",
     "take 0 for \"not known\": look the size up (services->lookup, find_below), or pass 0 on",
     checks_memory_unknown_size},
    {"huge sizes", "sizes that nobody has are refused as out of memory, with a reason",
     "check sums of sizes for overflow; report the failure with services->refuse or explain", checks_memory_huge},
    {"boundary sizes", "blocks of every size have that size, also at and beside the powers of two",
     "keep sizes in size_t, and 0 bytes for no block only where no size becomes 0", checks_memory_boundaries},
    {"exhaustion", "out of memory is reported as such, and all memory can be had again after the frees",
     "return the upstream's status; on a failure free what was obtained for the request", checks_memory_exhaustion},
    {"at once", "try_allocate and try_deallocate serve a call whole, or do nothing",
     "return 0 before anything is changed; call nothing of an upstream but these two ops", checks_memory_at_once},
    {.name = NULL},
};
