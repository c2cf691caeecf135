/* SPDX-License-Identifier: MIT */
/* test_pool.c: stream-ordered allocation: reuse in one stream and across streams, the attributes, the
 * release threshold, exhaustion, and the lifetime of pools. */
#include "device.h"
#include <stdlib.h>

static hipMemPool_t create_pool(hipMemAllocationHandleType type)
{
  hipMemPool_t pool;
  hipMemPoolProps properties = {
      .allocType = hipMemAllocationTypePinned, .handleTypes = type, .location = {hipMemLocationTypeDevice, 0}};
  assert_ok(hipMemPoolCreate(&pool, &properties));
  return pool;
}

static void the_freeing_stream_gets_a_block_back_at_once(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  char *memory = allocate_on(stream, 5000), *again;
  assert_ok(hipMemsetAsync(memory, 1, 5000, stream));
  assert_ok(hipFreeAsync(memory, stream));
  again = allocate_on(stream, 4800);
  assert_ptr_equal(again, memory);
  assert_ok(hipMemsetAsync(again, 2, 4800, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_true(is_filled(again, 2, 4800));
  assert_true(is_filled(again + 4800, 1, 200));
  assert_ok(hipFreeAsync(again, stream));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipStreamDestroy(stream));
}

static void another_stream_gets_it_when_the_free_has_executed(void **state)
{
  (void)state;
  int go = 0;
  hipStream_t first = create_stream(), second = create_stream();
  set_pool_amount(default_pool(), hipMemPoolAttrReleaseThreshold, UINT64_MAX);
  void *memory = allocate_on(first, 5000);
  assert_ok(hipStreamSynchronize(first));
  if (software.config.scheduler == SOFTWARE_STEPPED) go = 1;
  assert_ok(hipLaunchHostFunc(first, wait_until_set, &go));
  assert_ok(hipFreeAsync(memory, first));
  void *other = allocate_on(second, 5000);
  assert_ptr_not_equal(other, memory);
  count_up(&go);
  assert_ok(hipStreamSynchronize(first));
  void *same = allocate_on(second, 5000);
  assert_ptr_equal(same, memory);
  assert_ok(hipFreeAsync(other, second));
  assert_ok(hipFreeAsync(same, second));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipStreamDestroy(first));
  assert_ok(hipStreamDestroy(second));
}

static void opportunistic_reuse_can_be_forbidden(void **state)
{
  (void)state;
  int no = 0, value = -1;
  hipMemPool_t pool = default_pool();
  hipStream_t first = create_stream(), second = create_stream();
  set_pool_amount(pool, hipMemPoolAttrReleaseThreshold, UINT64_MAX);
  assert_ok(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &no));
  assert_ok(hipMemPoolGetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &value));
  assert_int_equal(value, 0);
  void *memory = allocate_on(first, 5000);
  assert_ok(hipFreeAsync(memory, first));
  assert_ok(hipDeviceSynchronize());
  void *other = allocate_on(second, 5000);
  assert_ptr_not_equal(other, memory);
  assert_ok(hipFreeAsync(other, second));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipStreamDestroy(first));
  assert_ok(hipStreamDestroy(second));
}

static void the_attributes_count_used_and_reserved(void **state)
{
  (void)state;
  hipMemPool_t pool = default_pool();
  hipStream_t stream = create_stream();
  set_pool_amount(pool, hipMemPoolAttrReleaseThreshold, MIB);
  void *one = allocate_on(stream, MIB), *two = allocate_on(stream, 2 * MIB);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemCurrent), 3 * MIB);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemCurrent), 3 * MIB);
  assert_ok(hipFreeAsync(two, stream));
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemCurrent), MIB);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemHigh), 3 * MIB);
  assert_ok(hipStreamSynchronize(stream)); /* gives back what is above the threshold */
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemCurrent), MIB);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemHigh), 3 * MIB);
  assert_int_equal(free_bytes(), 63 * MIB);
  set_pool_amount(pool, hipMemPoolAttrUsedMemHigh, 0);
  set_pool_amount(pool, hipMemPoolAttrReservedMemHigh, 0);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemHigh), MIB);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemHigh), MIB);
  assert_ok(hipFreeAsync(one, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(free_bytes(), 63 * MIB);
  assert_ok(hipMemPoolTrimTo(pool, 0));
  assert_int_equal(free_bytes(), 64 * MIB);
  assert_ok(hipStreamDestroy(stream));
}

/* Used are the requested bytes; reserved are whole pages. */
static void used_bytes_are_those_asked_for(void **state)
{
  (void)state;
  hipMemPool_t pool = default_pool();
  hipStream_t stream = create_stream();
  void *one = allocate_on(stream, 100), *two = allocate_on(stream, 5000);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemCurrent), 5100);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemCurrent), 3 * 4096);
  assert_ok(hipFreeAsync(two, stream));
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemCurrent), 100);
  two = allocate_on(stream, 8000); /* the same block */
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemCurrent), 8100);
  assert_ok(hipFreeAsync(two, stream));
  assert_ok(hipFree(one));
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemCurrent), 0);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemHigh), 8100);
  assert_ok(hipStreamDestroy(stream));
}

static hipMemPool_t create_pool_of_at_most(size_t bytes)
{
  hipMemPool_t pool;
  hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned, .location = {hipMemLocationTypeDevice, 0}};
  /* maxSize of HIP 6, which has the first of the reserved bytes of HIP 5. */
  memcpy((char *)&properties + offsetof(hipMemPoolProps, win32SecurityAttributes) + sizeof(void *), &bytes,
         sizeof bytes);
  assert_ok(hipMemPoolCreate(&pool, &properties));
  return pool;
}

static void a_pool_keeps_its_maximum(void **state)
{
  (void)state;
  hipStream_t stream = create_stream(), other = create_stream();
  hipMemPool_t pool = create_pool_of_at_most(3 * MIB);
  void *one, *two, *refused = NULL;
  set_pool_amount(pool, hipMemPoolAttrReleaseThreshold, UINT64_MAX);
  assert_ok(hipMallocFromPoolAsync(&one, MIB, pool, stream));
  assert_ok(hipMallocFromPoolAsync(&two, 2 * MIB, pool, stream));
  assert_hip(hipMallocFromPoolAsync(&refused, 1, pool, stream), hipErrorOutOfMemory);
  assert_null(refused);
  assert_ok(hipFreeAsync(two, stream));
  assert_ok(hipMallocFromPoolAsync(&two, MIB, pool, other)); /* in place of what is idle */
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemCurrent), 2 * MIB);
  assert_true(pool_amount(pool, hipMemPoolAttrReservedMemHigh) <= 3 * MIB);
  void *elsewhere = allocate_on(stream, 32 * MIB);
  assert_ok(hipFreeAsync(one, stream));
  assert_ok(hipFreeAsync(two, other));
  assert_ok(hipFreeAsync(elsewhere, stream));
  assert_ok(hipMemPoolDestroy(pool));
  pool = create_pool_of_at_most(1000); /* less than a page, and yet enough for so much */
  assert_ok(hipMallocFromPoolAsync(&one, 1000, pool, stream));
  assert_hip(hipMallocFromPoolAsync(&two, 1000, pool, stream), hipErrorOutOfMemory);
  assert_ok(hipFreeAsync(one, stream));
  assert_ok(hipMemPoolDestroy(pool));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipStreamDestroy(other));
}

static void a_trim_leaves_what_has_not_been_freed_yet(void **state)
{
  (void)state;
  int go = software.config.scheduler == SOFTWARE_STEPPED;
  hipMemPool_t pool = default_pool();
  hipStream_t stream = create_stream();
  void *memory = allocate_on(stream, MIB);
  assert_ok(hipLaunchHostFunc(stream, wait_until_set, &go));
  assert_ok(hipFreeAsync(memory, stream));
  assert_ok(hipMemPoolTrimTo(pool, 0));
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemCurrent), MIB);
  count_up(&go);
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemCurrent), 0);
  assert_ok(hipStreamDestroy(stream));
}

static void a_full_device_waits_in_the_stream_for_a_free(void **state)
{
  (void)state;
  int go = software.config.scheduler == SOFTWARE_STEPPED, no = 0;
  hipStream_t first = create_stream(), second = create_stream();
  void *memory = allocate_on(first, 60 * MIB), *refused = NULL;
  assert_hip(hipMallocAsync(&refused, 60 * MIB, second), hipErrorOutOfMemory);
  assert_ok(hipLaunchHostFunc(first, wait_until_set, &go));
  assert_ok(hipMemsetAsync(memory, 1, 1000, first));
  assert_ok(hipFreeAsync(memory, first));
  assert_ok(hipMemPoolSetAttribute(default_pool(), hipMemPoolReuseAllowInternalDependencies, &no));
  assert_hip(hipMallocAsync(&refused, 60 * MIB, second), hipErrorOutOfMemory);
  assert_null(refused);
  no = 1;
  assert_ok(hipMemPoolSetAttribute(default_pool(), hipMemPoolReuseAllowInternalDependencies, &no));
  char *reused = allocate_on(second, 60 * MIB);
  assert_ptr_equal(reused, memory);
  assert_ok(hipMemsetAsync(reused, 2, 1000, second));
  assert_ok(hipFreeAsync(reused, second));
  count_up(&go);
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipStreamDestroy(first));
  assert_ok(hipStreamDestroy(second));
}

static void a_full_device_waits_for_all_frees_if_one_is_not_enough(void **state)
{
  (void)state;
  hipStream_t first = create_stream(), second = create_stream();
  void *one = allocate_on(first, 30 * MIB), *two = allocate_on(first, 30 * MIB), *plain = NULL;
  for (int i = 0; i < 20; i++) assert_ok(hipMemsetAsync(two, i, 30 * MIB, first));
  assert_ok(hipFreeAsync(one, first));
  assert_ok(hipFreeAsync(two, first));
  void *large = allocate_on(second, 60 * MIB);
  assert_hip(hipMalloc(&plain, 60 * MIB), hipErrorOutOfMemory);
  assert_ok(hipMemsetAsync(large, 1, 60 * MIB, second));
  assert_ok(hipFreeAsync(large, second));
  assert_ok(hipMalloc(&plain, 60 * MIB)); /* waits too */
  assert_ok(hipFree(plain));
  assert_ok(hipStreamDestroy(first));
  assert_ok(hipStreamDestroy(second));
}

static void plain_allocation_takes_what_pools_keep_idle(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  set_pool_amount(default_pool(), hipMemPoolAttrReleaseThreshold, UINT64_MAX);
  assert_ok(hipFreeAsync(allocate_on(stream, 40 * MIB), stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(free_bytes(), 24 * MIB);
  assert_ok(hipFree(allocate(40 * MIB)));
  assert_ok(hipStreamDestroy(stream));
}

static void pooled_memory_can_be_freed_at_once(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  char *memory = allocate_on(stream, 1000);
  assert_ok(hipMemsetAsync(memory, 1, 1000, stream));
  assert_ok(hipFree(memory));
  assert_hip(hipFreeAsync(memory, stream), hipErrorInvalidValue);
  assert_ok(hipMemPoolTrimTo(default_pool(), 0));
  assert_int_equal(free_bytes(), 64 * MIB);
  assert_ok(hipStreamDestroy(stream));
}

static void what_no_pool_gave_is_refused(void **state)
{
  (void)state;
  int local;
  hipStream_t stream = create_stream();
  char *plain = allocate(100), *pooled = allocate_on(stream, 100);
  void *memory = (void *)1;
  assert_hip(hipFreeAsync(NULL, stream), hipErrorInvalidValue);
  assert_hip(hipFreeAsync(pooled + 1, stream), hipErrorInvalidValue);
  assert_hip(hipFreeAsync(&local, stream), hipErrorInvalidValue);
  assert_hip(hipFreeAsync(pooled, (hipStream_t)&local), hipErrorInvalidHandle);
  assert_ok(hipFreeAsync(pooled, stream));
  assert_hip(hipFreeAsync(pooled, stream), hipErrorInvalidValue);
  assert_hip(hipMallocAsync(NULL, 100, stream), hipErrorInvalidValue);
  assert_hip(hipMallocAsync(&memory, SIZE_MAX, stream), hipErrorOutOfMemory);
  assert_hip(hipMallocAsync(&memory, 65 * MIB, stream), hipErrorOutOfMemory);
  assert_ptr_equal(memory, (void *)1);
  assert_ok(hipMallocAsync(&memory, 0, stream));
  assert_null(memory);
  assert_ok(hipFree(plain));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipStreamDestroy(stream));
}

/* As in HIP, the free is after the work of the device. */
static void plain_and_managed_memory_can_be_freed_in_a_stream(void **state)
{
  (void)state;
  void *managed;
  int ran = 0;
  hipStream_t stream = create_stream();
  char *plain = allocate(100);
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  assert_ok(hipMemsetAsync(plain, 1, 100, stream));
  assert_ok(hipLaunchHostFunc(stream, count_up, &ran));
  assert_ok(hipFreeAsync(plain, stream));
  assert_int_equal(ran, 1);
  assert_hip(hipFreeAsync(plain, stream), hipErrorInvalidValue);
  assert_hip(hipFree(plain), hipErrorInvalidValue);
  assert_ok(hipFreeAsync(managed, NULL));
  assert_int_equal(free_bytes(), 64 * MIB);
  assert_ok(hipStreamDestroy(stream));
}

static void what_is_no_pool_is_refused(void **state)
{
  (void)state;
  int local = 0;
  uint64_t value = 0;
  void *memory;
  hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned, .location = {hipMemLocationTypeDevice, 0}};
  hipMemPool_t pool = create_pool(hipMemHandleTypeNone), dead = pool;
  assert_ok(hipMemPoolDestroy(pool));
  const hipMemPool_t wrong[] = {NULL, dead, (hipMemPool_t)&local};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_hip(hipMemPoolDestroy(wrong[i]), hipErrorInvalidValue);
    assert_hip(hipMemPoolTrimTo(wrong[i], 0), hipErrorInvalidValue);
    assert_hip(hipMemPoolGetAttribute(wrong[i], hipMemPoolAttrUsedMemHigh, &value), hipErrorInvalidValue);
    assert_hip(hipMallocFromPoolAsync(&memory, 10, wrong[i], NULL), hipErrorInvalidValue);
    assert_hip(hipDeviceSetMemPool(0, wrong[i]), hipErrorInvalidValue);
  }
  pool = default_pool();
  value = 1;
  assert_hip(hipMemPoolDestroy(pool), hipErrorInvalidValue);
  assert_hip(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &value), hipErrorInvalidValue);
  assert_hip(hipMemPoolSetAttribute(pool, hipMemPoolAttrReservedMemHigh, &value), hipErrorInvalidValue);
  assert_hip(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowOpportunistic, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &value), hipErrorInvalidValue);
  assert_hip(hipMemPoolSetAttribute(pool, (hipMemPoolAttr)99, &value), hipErrorInvalidValue);
  assert_hip(hipMemPoolGetAttribute(pool, (hipMemPoolAttr)99, &value), hipErrorInvalidValue);
  assert_hip(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemHigh, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPoolCreate(NULL, &properties), hipErrorInvalidValue);
  assert_hip(hipMemPoolCreate(&pool, NULL), hipErrorInvalidValue);
  properties.location.id = 2;
  assert_hip(hipMemPoolCreate(&pool, &properties), hipErrorInvalidValue);
  properties = (hipMemPoolProps){.allocType = hipMemAllocationTypeInvalid, .location = {hipMemLocationTypeDevice, 0}};
  assert_hip(hipMemPoolCreate(&pool, &properties), hipErrorInvalidValue);
  properties = (hipMemPoolProps){.allocType = hipMemAllocationTypePinned,
                                 .handleTypes = hipMemHandleTypeWin32,
                                 .location = {hipMemLocationTypeDevice, 0}};
  assert_hip(hipMemPoolCreate(&pool, &properties), hipErrorNotSupported);
  properties = (hipMemPoolProps){.allocType = (hipMemAllocationType)2, /* managed, which cannot be shared */
                                 .handleTypes = hipMemHandleTypePosixFileDescriptor,
                                 .location = {hipMemLocationTypeDevice, 0}};
  assert_hip(hipMemPoolCreate(&pool, &properties), hipErrorInvalidValue);
}

static void a_device_uses_the_pool_it_was_given(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  hipMemPool_t pool = create_pool(hipMemHandleTypeNone), current;
  assert_hip(hipDeviceSetMemPool(1, pool), hipErrorInvalidDevice);
  assert_hip(hipDeviceSetMemPool(2, pool), hipErrorInvalidValue);
  assert_hip(hipDeviceSetMemPool(-1, pool), hipErrorInvalidValue);
  assert_ok(hipDeviceSetMemPool(0, pool));
  assert_ok(hipDeviceGetMemPool(&current, 0));
  assert_ptr_equal(current, pool);
  void *memory = allocate_on(stream, MIB);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrUsedMemCurrent), MIB);
  assert_int_equal(pool_amount(default_pool(), hipMemPoolAttrUsedMemCurrent), 0);
  assert_ok(hipFreeAsync(memory, stream));
  assert_ok(hipMemPoolDestroy(pool));
  assert_ok(hipDeviceGetMemPool(&current, 0));
  assert_ptr_equal(current, default_pool());
  assert_ok(hipDeviceSynchronize());
  assert_int_equal(free_bytes(), 64 * MIB);
  assert_ok(hipStreamDestroy(stream));
}

static void a_destroyed_pool_stays_until_its_memory_is_back(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  hipMemPool_t pool = create_pool(hipMemHandleTypePosixFileDescriptor);
  void *memory;
  assert_ok(hipMallocFromPoolAsync(&memory, MIB, pool, stream));
  assert_ok(hipMemPoolDestroy(pool));
  assert_ok(hipMemsetAsync(memory, 1, MIB, stream));
  assert_int_equal(free_bytes(), 63 * MIB);
  assert_ok(hipFreeAsync(memory, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(free_bytes(), 64 * MIB);
  assert_ok(hipStreamDestroy(stream));
}

static void access_is_kept_and_cannot_be_revoked(void **state)
{
  (void)state;
  hipMemPool_t pool = create_pool(hipMemHandleTypeNone);
  hipMemLocation there = {hipMemLocationTypeDevice, 1};
  hipMemAccessDesc access = {there, hipMemAccessFlagsProtReadWrite};
  hipMemAccessFlags flags;
  assert_ok(hipMemPoolGetAccess(&flags, pool, &there));
  assert_int_equal(flags, hipMemAccessFlagsProtNone);
  assert_ok(hipMemPoolSetAccess(pool, &access, 1));
  assert_ok(hipMemPoolGetAccess(&flags, pool, &there));
  assert_int_equal(flags, hipMemAccessFlagsProtReadWrite);
  access.flags = hipMemAccessFlagsProtNone;
  assert_hip(hipMemPoolSetAccess(pool, &access, 1), hipErrorInvalidDevice);
  access.flags = (hipMemAccessFlags)2;
  assert_hip(hipMemPoolSetAccess(pool, &access, 1), hipErrorInvalidValue);
  assert_hip(hipMemPoolSetAccess(pool, &access, 3), hipErrorInvalidDevice); /* more than there are devices */
  access = (hipMemAccessDesc){{hipMemLocationTypeInvalid, 1}, hipMemAccessFlagsProtReadWrite};
  assert_hip(hipMemPoolSetAccess(pool, &access, 1), hipErrorInvalidValue);
  access = (hipMemAccessDesc){{hipMemLocationTypeDevice, 9}, hipMemAccessFlagsProtRead};
  assert_hip(hipMemPoolSetAccess(pool, &access, 1), hipErrorInvalidDevice);
  assert_hip(hipMemPoolSetAccess(pool, NULL, 1), hipErrorInvalidValue);
  assert_hip(hipMemPoolGetAccess(NULL, pool, &there), hipErrorInvalidValue);
  there.id = 9;
  assert_hip(hipMemPoolGetAccess(&flags, pool, &there), hipErrorInvalidValue);
  assert_ok(hipMemPoolDestroy(pool));
}

struct block {
  char *memory;
  size_t bytes;
  int value;
  hipStream_t stream;
};

/* Each block is filled when it is allocated and compared, in its stream, when it is freed. A reuse that is too early gives
 * a wrong byte or a fault. */
static void random_blocks_keep_their_data_in_stream_order(void **state)
{
  (void)state;
  enum { BLOCKS = 40, STREAMS = 4, BYTES = 30000 };
  struct block blocks[BLOCKS] = {{0}};
  hipStream_t streams[STREAMS];
  void *seen;
  srand(3);
  for (int i = 0; i < STREAMS; i++) streams[i] = create_stream();
  assert_ok(hipHostMalloc(&seen, BYTES, 0));
  for (int step = 0; step < 3000; step++) {
    struct block *block = &blocks[rand() % BLOCKS];
    if (block->memory) {
      bool looks = step % 8 == 0;
      if (looks) assert_ok(hipMemcpyAsync(seen, block->memory, block->bytes, hipMemcpyDeviceToHost, block->stream));
      if (looks) assert_ok(hipStreamSynchronize(block->stream));
      if (looks) assert_true(is_filled(seen, block->value, block->bytes));
      assert_ok(hipFreeAsync(block->memory, block->stream));
      block->memory = NULL;
    } else {
      block->bytes = 1 + (size_t)rand() % BYTES;
      block->value = rand() & 127;
      block->stream = streams[rand() % STREAMS];
      block->memory = allocate_on(block->stream, block->bytes);
      assert_ok(hipMemsetAsync(block->memory, block->value, block->bytes, block->stream));
    }
  }
  for (int i = 0; i < BLOCKS; i++)
    if (blocks[i].memory) assert_ok(hipFreeAsync(blocks[i].memory, blocks[i].stream));
  assert_ok(hipDeviceSynchronize());
  assert_int_equal(pool_amount(default_pool(), hipMemPoolAttrUsedMemCurrent), 0);
  assert_int_equal(free_bytes(), 64 * MIB);
  for (int i = 0; i < STREAMS; i++) assert_ok(hipStreamDestroy(streams[i]));
  assert_ok(hipHostFree(seen));
}

/* The queries of a program about a block of async_managed, and of async. */
static void attributes_tell_managed_pools(void **state)
{
  (void)state;
  hipMemPoolProps properties = {.allocType = (hipMemAllocationType)2, .location = {hipMemLocationTypeDevice, 1}};
  hipPointerAttribute_t attributes;
  hipMemPool_t managed_pool;
  char *managed, *plain;
  assert_ok(hipMemPoolCreate(&managed_pool, &properties));
  assert_ok(hipMallocFromPoolAsync((void **)&managed, 1000, managed_pool, NULL));
  assert_ok(hipMallocAsync((void **)&plain, 1000, NULL));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipPointerGetAttributes(&attributes, managed + 10));
  assert_true(attributes.isManaged);
  assert_int_equal(attributes.device, 1);
  assert_ptr_equal(attributes.devicePointer, managed + 10);
  assert_ptr_equal(attributes.hostPointer, managed + 10);
  managed[999] = 1; /* the host's, too */
  assert_ok(hipPointerGetAttributes(&attributes, plain));
  assert_false(attributes.isManaged);
  assert_int_equal(attributes.device, 0);
  assert_null(attributes.hostPointer);
  assert_int_equal(memory_type(&attributes), hipMemoryTypeDevice);
  assert_ok(hipFreeAsync(managed, NULL));
  assert_ok(hipFreeAsync(plain, NULL));
  assert_ok(hipMemPoolDestroy(managed_pool));
}

/* Pools of the host, as CUDA has them: its memory is charged to the host, and is no device's. */
static void pools_of_the_host_give_pinned_memory(void **state)
{
  (void)state;
  enum { HOST = 2, HOST_NUMA };
  hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned,
                                .location = {(hipMemLocationType)HOST_NUMA, 1}};
  hipMemPool_t pool;
  hipPointerAttribute_t attributes;
  char *memory;
  size_t before = free_bytes();
  assert_hip(hipMemPoolCreate(&pool, &properties), hipErrorInvalidValue); /* it has the node 0 */
  properties.location.id = 0;
  properties.handleTypes = hipMemHandleTypePosixFileDescriptor;
  assert_hip(hipMemPoolCreate(&pool, &properties), hipErrorInvalidValue);
  properties.handleTypes = hipMemHandleTypeNone;
  for (int type = HOST; type <= HOST_NUMA; type++) {
    properties.location.type = (hipMemLocationType)type;
    assert_ok(hipMemPoolCreate(&pool, &properties));
    assert_hip(hipDeviceSetMemPool(0, pool), hipErrorInvalidValue);
    assert_ok(hipMallocFromPoolAsync((void **)&memory, MIB, pool, NULL));
    assert_ok(hipMemsetAsync(memory, 7, MIB, NULL));
    assert_ok(hipDeviceSynchronize());
    assert_int_equal(memory[MIB - 1], 7);
    assert_int_equal(free_bytes(), before);
    assert_ok(hipPointerGetAttributes(&attributes, memory));
    assert_int_equal(memory_type(&attributes), hipMemoryTypeHost);
    assert_ptr_equal(attributes.hostPointer, memory);
    assert_ok(hipFreeAsync(memory, NULL));
    assert_ok(hipMemPoolDestroy(pool));
  }
}

/* Beside a global capture, no stream of the process may allocate or free. */
static void a_capture_forbids_pools_elsewhere(void **state)
{
  (void)state;
  hipStream_t captures = create_stream(), stream = create_stream();
  hipGraph_t graph;
  void *memory = allocate_on(stream, 100), *refused = NULL;
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipStreamBeginCapture(captures, hipStreamCaptureModeGlobal));
  assert_hip(hipMallocAsync(&refused, 100, stream), hipErrorStreamCaptureUnsupported);
  assert_null(refused);
  assert_hip(hipStreamEndCapture(captures, &graph), hipErrorStreamCaptureInvalidated);
  assert_ok(hipStreamBeginCapture(captures, hipStreamCaptureModeGlobal));
  assert_hip(hipFreeAsync(memory, stream), hipErrorStreamCaptureUnsupported);
  assert_hip(hipStreamEndCapture(captures, &graph), hipErrorStreamCaptureInvalidated);
  assert_ok(hipFreeAsync(memory, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipStreamDestroy(captures));
  assert_ok(hipStreamDestroy(stream));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"attributes tell managed pools", attributes_tell_managed_pools, start_threads, finish, NULL},
      {"pools of the host give pinned memory", pools_of_the_host_give_pinned_memory, start_threads, finish, NULL},
      {"the freeing stream gets a block back at once (threads)", the_freeing_stream_gets_a_block_back_at_once,
       start_threads, finish, NULL},
      {"the freeing stream gets a block back at once (stepped)", the_freeing_stream_gets_a_block_back_at_once,
       start_stepped, finish, NULL},
      {"another stream gets it when the free has executed (threads)", another_stream_gets_it_when_the_free_has_executed,
       start_threads, finish, NULL},
      {"another stream gets it when the free has executed (stepped)", another_stream_gets_it_when_the_free_has_executed,
       start_stepped, finish, NULL},
      {"opportunistic reuse can be forbidden (threads)", opportunistic_reuse_can_be_forbidden, start_threads, finish,
       NULL},
      {"opportunistic reuse can be forbidden (stepped)", opportunistic_reuse_can_be_forbidden, start_stepped, finish,
       NULL},
      {"the attributes count used and reserved (threads)", the_attributes_count_used_and_reserved, start_threads,
       finish, NULL},
      {"the attributes count used and reserved (stepped)", the_attributes_count_used_and_reserved, start_stepped,
       finish, NULL},
      {"used bytes are those asked for (threads)", used_bytes_are_those_asked_for, start_threads, finish, NULL},
      {"used bytes are those asked for (stepped)", used_bytes_are_those_asked_for, start_stepped, finish, NULL},
      {"a pool keeps its maximum (threads)", a_pool_keeps_its_maximum, start_threads, finish, NULL},
      {"a pool keeps its maximum (stepped)", a_pool_keeps_its_maximum, start_stepped, finish, NULL},
      {"a trim leaves what has not been freed yet (threads)", a_trim_leaves_what_has_not_been_freed_yet, start_threads,
       finish, NULL},
      {"a trim leaves what has not been freed yet (stepped)", a_trim_leaves_what_has_not_been_freed_yet, start_stepped,
       finish, NULL},
      {"a full device waits in the stream for a free (threads)", a_full_device_waits_in_the_stream_for_a_free,
       start_threads, finish, NULL},
      {"a full device waits in the stream for a free (stepped)", a_full_device_waits_in_the_stream_for_a_free,
       start_stepped, finish, NULL},
      {"a full device waits for all frees if one is not enough (threads)",
       a_full_device_waits_for_all_frees_if_one_is_not_enough, start_threads, finish, NULL},
      {"a full device waits for all frees if one is not enough (stepped)",
       a_full_device_waits_for_all_frees_if_one_is_not_enough, start_stepped, finish, NULL},
      {"plain allocation takes what pools keep idle (threads)", plain_allocation_takes_what_pools_keep_idle,
       start_threads, finish, NULL},
      {"plain allocation takes what pools keep idle (stepped)", plain_allocation_takes_what_pools_keep_idle,
       start_stepped, finish, NULL},
      {"pooled memory can be freed at once (threads)", pooled_memory_can_be_freed_at_once, start_threads, finish, NULL},
      {"pooled memory can be freed at once (stepped)", pooled_memory_can_be_freed_at_once, start_stepped, finish, NULL},
      {"what no pool gave is refused (threads)", what_no_pool_gave_is_refused, start_threads, finish, NULL},
      {"what no pool gave is refused (stepped)", what_no_pool_gave_is_refused, start_stepped, finish, NULL},
      {"plain and managed memory can be freed in a stream (threads)", plain_and_managed_memory_can_be_freed_in_a_stream,
       start_threads, finish, NULL},
      {"plain and managed memory can be freed in a stream (stepped)", plain_and_managed_memory_can_be_freed_in_a_stream,
       start_stepped, finish, NULL},
      {"what is no pool is refused", what_is_no_pool_is_refused, start_threads, finish, NULL},
      {"a device uses the pool it was given (threads)", a_device_uses_the_pool_it_was_given, start_threads, finish,
       NULL},
      {"a device uses the pool it was given (stepped)", a_device_uses_the_pool_it_was_given, start_stepped, finish,
       NULL},
      {"a destroyed pool stays until its memory is back (threads)", a_destroyed_pool_stays_until_its_memory_is_back,
       start_threads, finish, NULL},
      {"a destroyed pool stays until its memory is back (stepped)", a_destroyed_pool_stays_until_its_memory_is_back,
       start_stepped, finish, NULL},
      {"access is kept and cannot be revoked", access_is_kept_and_cannot_be_revoked, start_threads, finish, NULL},
      {"random blocks keep their data in stream order (threads)", random_blocks_keep_their_data_in_stream_order,
       start_threads, finish, NULL},
      {"random blocks keep their data in stream order (stepped)", random_blocks_keep_their_data_in_stream_order,
       start_stepped, finish, NULL},
      {"a capture forbids pools elsewhere", a_capture_forbids_pools_elsewhere, start_threads, finish, NULL},
  };
  return cmocka_run_group_tests_name("software: pools", tests, NULL, NULL);
}
