/* SPDX-License-Identifier: MIT */
/* test_copy.c: copies and fills move the right bytes, treat pageable memory as HIP does, refuse what is out of bounds, and
 * are a fault when they execute on freed memory. */
#include "device.h"
#include <sys/mman.h>
#include <unistd.h>

#define DEVICE_TO_DEVICE_NO_CU ((hipMemcpyKind)1024) /* hipMemcpyDeviceToDeviceNoCU, of HIP 6 */

static void copies_of_every_kind_move_the_bytes(void **state)
{
  (void)state;
  char from[100], to[100] = "";
  char *first = allocate(100), *second = allocate(100);
  for (int i = 0; i < 100; i++) from[i] = (char)i;
  assert_ok(hipMemcpy(first, from, 100, hipMemcpyHostToDevice));
  assert_ok(hipMemcpy(second, first, 100, hipMemcpyDeviceToDevice));
  assert_ok(hipMemcpy(to, second, 100, hipMemcpyDeviceToHost));
  assert_memory_equal(to, from, 100);
  memset(to, 0, sizeof to);
  assert_ok(hipMemcpy(to, from, 100, hipMemcpyHostToHost));
  assert_memory_equal(to, from, 100);
  assert_ok(hipMemcpy(first, first + 10, 90, hipMemcpyDefault)); /* overlapping */
  assert_ok(hipDeviceSynchronize());
  assert_memory_equal(first, from + 10, 90);
  assert_ok(hipMemcpyWithStream(to, first, 50, hipMemcpyDefault, NULL));
  assert_memory_equal(to, from + 10, 50);
  assert_ok(hipMemcpy(second, first, 90, DEVICE_TO_DEVICE_NO_CU));
  assert_ok(hipDeviceSynchronize());
  assert_memory_equal(second, from + 10, 90);
  assert_hip(hipMemcpy(to, first, 50, DEVICE_TO_DEVICE_NO_CU), hipErrorInvalidValue);
  assert_ok(hipMemcpy(to, first, 0, hipMemcpyDeviceToHost));
  assert_ok(hipFree(first));
  assert_ok(hipFree(second));
}

/* Rows of 10 bytes, 16 apart on the host and at hipMallocPitch()'s distance on the device. */
static void rows_are_copied_and_filled_and_nothing_between_them(void **state)
{
  (void)state;
  char from[5 * 16], to[5 * 16];
  char *memory, *other = allocate(5 * 20);
  size_t pitch;
  hipStream_t stream = create_stream();
  assert_ok(hipMallocPitch((void **)&memory, &pitch, 10, 5));
  for (int i = 0; i < 5 * 16; i++) from[i] = (char)i;
  memset(to, 99, sizeof to);
  assert_ok(hipMemset(memory, 7, pitch * 5));
  assert_ok(hipMemcpy2D(memory, pitch, from, 16, 10, 5, hipMemcpyHostToDevice));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipMemcpy2DAsync(other, 20, memory, pitch, 10, 5, hipMemcpyDeviceToDevice, stream));
  assert_ok(hipMemcpy2DAsync(to, 16, other, 20, 10, 5, hipMemcpyDeviceToHost, stream));
  assert_ok(hipMemcpy2DAsync(memory, pitch, from, 16, 10, 2, hipMemcpyHostToDevice, stream));
  memset(from, 0, sizeof from); /* pageable rows were taken at the call */
  assert_ok(hipStreamSynchronize(stream));
  for (size_t i = 0; i < 5 * 16; i++) assert_int_equal(to[i], i % 16 < 10 ? (int)i : 99);
  for (size_t i = 0; i < 2; i++) assert_int_equal(memory[i * pitch + 9], (int)(i * 16 + 9));
  for (size_t i = 0; i < 5; i++) assert_true(is_filled(memory + i * pitch + 10, 7, pitch - 10));
  assert_ok(hipMemset2DAsync(memory, pitch, 3, 10, 4, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipMemset2D(memory + 2, pitch, 4, 1, 5));
  assert_ok(hipDeviceSynchronize());
  for (size_t i = 0; i < 4; i++) assert_true(is_filled(memory + i * pitch, 3, 2) && memory[i * pitch + 2] == 4);
  assert_int_equal(memory[4 * pitch], 4 * 16);
  assert_ok(hipFree(memory));
  assert_ok(hipFree(other));
  assert_ok(hipStreamDestroy(stream));
}

static void wrong_rows_are_refused(void **state)
{
  (void)state;
  char local[100];
  char *memory = allocate(100);
  assert_hip(hipMemcpy2D(memory, 9, local, 10, 10, 3, hipMemcpyHostToDevice), hipErrorInvalidPitchValue);
  assert_hip(hipMemcpy2D(memory, 10, local, 9, 10, 3, hipMemcpyHostToDevice), hipErrorInvalidPitchValue);
  assert_hip(hipMemcpy2D(NULL, 10, local, 10, 10, 3, hipMemcpyHostToDevice), hipErrorInvalidValue);
  assert_hip(hipMemcpy2D(memory, 10, NULL, 10, 10, 3, hipMemcpyHostToDevice), hipErrorInvalidValue);
  assert_hip(hipMemcpy2D(memory, 46, local, 10, 10, 3, hipMemcpyHostToDevice), hipErrorInvalidValue);
  assert_hip(hipMemcpy2D(memory, SIZE_MAX / 2, local, 10, 10, 4, hipMemcpyHostToDevice), hipErrorInvalidValue);
  assert_hip(hipMemcpy2D(memory, 10, local, 10, 10, 3, (hipMemcpyKind)77), hipErrorInvalidMemcpyDirection);
  assert_hip(hipMemset2D(memory, 9, 0, 10, 3), hipErrorInvalidValue);
  assert_hip(hipMemset2D(NULL, 10, 0, 10, 3), hipErrorInvalidValue);
  assert_hip(hipMemset2D(memory, 46, 0, 10, 3), hipErrorInvalidValue);
  assert_hip(hipMemset2D(memory, (size_t)1 << 62, 0, 10, 5),
             hipErrorInvalidValue); /* the rows go once around all addresses */
  assert_hip(hipMemcpy2D(memory, (size_t)1 << 62, local, 10, 10, 5, hipMemcpyHostToDevice), hipErrorInvalidValue);
  assert_ok(hipMemcpy2D(memory, 10, local, 10, 10, 0, hipMemcpyHostToDevice));
  assert_ok(hipMemcpy2D(memory, 10, local, 10, 0, 10, hipMemcpyHostToDevice));
  assert_ok(hipMemset2D(memory, 45, 0, 10, 3)); /* the last row needs no rest */
  assert_ok(hipFree(memory));
}

static void copies_with_the_direction_in_the_name_move_the_bytes(void **state)
{
  (void)state;
  char from[100], to[100] = "";
  hipStream_t stream = create_stream();
  char *first = allocate(100), *second = allocate(100);
  for (int i = 0; i < 100; i++) from[i] = (char)i;
  assert_ok(hipMemcpyHtoD(first, from, 100));
  assert_ok(hipMemcpyDtoD(second, first, 100));
  assert_ok(hipMemcpyDtoH(to, second, 100));
  assert_memory_equal(to, from, 100);
  for (int i = 0; i < 100; i++) from[i] = (char)(i + 100);
  assert_ok(hipMemcpyHtoDAsync(first, from, 100, stream));
  assert_ok(hipMemcpyDtoDAsync(second, first, 100, stream));
  assert_ok(hipMemcpyDtoHAsync(to, second, 100, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_memory_equal(to, from, 100);
  assert_ok(hipMemcpyHtoD(first, from, 0));
  assert_hip(hipMemcpyHtoD(NULL, from, 100), hipErrorInvalidValue);
  assert_hip(hipMemcpyHtoD(to, from, 100), hipErrorInvalidValue);
  assert_hip(hipMemcpyDtoH(to, from, 100), hipErrorInvalidValue);
  assert_hip(hipMemcpyDtoD(first, to, 100), hipErrorInvalidValue);
  assert_hip(hipMemcpyDtoD(first, second, 101), hipErrorInvalidValue);
  assert_hip(hipMemcpyDtoHAsync(to, second, 100, (hipStream_t)from), hipErrorInvalidHandle);
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipFree(first));
  assert_ok(hipFree(second));
}

static void pageable_sources_are_taken_at_the_call(void **state)
{
  (void)state;
  char *memory = allocate(1000), source[1000];
  int go = software.config.scheduler == SOFTWARE_STEPPED;
  hipStream_t stream = create_stream();
  memset(source, 5, sizeof source);
  assert_ok(hipLaunchHostFunc(stream, wait_until_set, &go));
  assert_ok(hipMemcpyAsync(memory, source, 1000, hipMemcpyHostToDevice, stream));
  memset(source, 6, sizeof source);
  count_up(&go);
  assert_ok(hipStreamSynchronize(stream));
  assert_true(is_filled(memory, 5, 1000));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipFree(memory));
}

static void pinned_sources_are_read_at_execution(void **state)
{
  (void)state;
  void *pinned;
  char *memory = allocate(1000);
  int go = software.config.scheduler == SOFTWARE_STEPPED;
  hipStream_t stream = create_stream();
  assert_ok(hipHostMalloc(&pinned, 1000, 0));
  memset(pinned, 5, 1000);
  assert_ok(hipLaunchHostFunc(stream, wait_until_set, &go));
  assert_ok(hipMemcpyAsync(memory, pinned, 1000, hipMemcpyHostToDevice, stream));
  memset(pinned, 6, 1000);
  count_up(&go);
  assert_ok(hipStreamSynchronize(stream));
  assert_true(is_filled(memory, 6, 1000));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipFree(memory));
  assert_ok(hipHostFree(pinned));
}

static void a_copy_to_pageable_memory_is_done_at_return(void **state)
{
  (void)state;
  char to[1000] = "", *memory = allocate(1000);
  hipStream_t stream = create_stream();
  assert_ok(hipMemsetAsync(memory, 4, 1000, stream));
  assert_ok(hipMemcpyAsync(to, memory, 1000, hipMemcpyDeviceToHost, stream));
  assert_true(is_filled(to, 4, 1000));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipFree(memory));
}

static void copies_reach_other_devices(void **state)
{
  (void)state;
  char *near = allocate(100);
  assert_ok(hipSetDevice(1));
  char *far = allocate(100);
  assert_ok(hipMemset(far, 8, 100));
  assert_ok(hipMemcpyPeer(near, 0, far, 1, 100));
  assert_true(is_filled(near, 8, 100));
  assert_hip(hipMemcpyPeer(near, 1, far, 1, 100), hipErrorInvalidValue);
  assert_hip(hipMemcpyPeer(near, 0, far, 2, 100), hipErrorInvalidDevice);
  assert_hip(hipMemcpyPeerAsync(near, -1, far, 1, 100, NULL), hipErrorInvalidDevice);
  assert_ok(hipFree(near));
  assert_ok(hipFree(far));
}

/* As in HIP, a copy of another device's memory runs on that device's default stream, after what is there already, and
 * after what its own stream had before. */
static void a_copy_waits_for_the_default_stream_of_the_memorys_device(void **state)
{
  (void)state;
  int go = software.config.scheduler == SOFTWARE_STEPPED;
  char host[1000], *near = allocate(1000);
  hipStream_t here = create_stream(), there;
  assert_ok(hipSetDevice(1));
  char *far = allocate(3000);
  assert_ok(hipStreamCreate(&there));
  assert_ok(hipMemset(far, 1, 3000));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipLaunchHostFunc(there, wait_until_set, &go));
  assert_ok(hipMemsetAsync(far, 2, 1000, there)); /* the default stream waits for it */
  assert_ok(hipSetDevice(0));
  assert_ok(hipMemcpyAsync(far + 1000, far, 1000, hipMemcpyDeviceToDevice, here));
  assert_ok(hipMemsetAsync(near, 3, 1000, here));
  count_up(&go);
  assert_ok(hipMemcpy(host, far, 1000, hipMemcpyDeviceToHost));
  assert_true(is_filled(host, 2, 1000));
  assert_ok(hipStreamSynchronize(here));
  assert_true(is_filled(far + 1000, 2, 1000));
  assert_ok(hipSetDevice(1));
  assert_ok(hipMemcpyAsync(far + 2000, far + 1000, 1000, hipMemcpyDeviceToDevice, NULL));
  assert_ok(hipStreamSynchronize(NULL));
  assert_true(is_filled(far + 2000, 2, 1000));
  assert_ok(hipSetDevice(0));
  assert_ok(hipStreamDestroy(here));
  assert_ok(hipStreamDestroy(there));
  assert_ok(hipFree(near));
  assert_ok(hipFree(far));
}

/* And the stream goes on when the copy has run, and the copy begins when what the stream had before has run. */
static void a_copy_on_another_device_keeps_its_place_in_the_stream(void **state)
{
  (void)state;
  void *pinned;
  hipStream_t here = create_stream();
  assert_ok(hipHostMalloc(&pinned, 2000, 0));
  assert_ok(hipSetDevice(1));
  char *far = allocate(1000);
  assert_ok(hipSetDevice(0));
  for (int round = 1; round < 20; round++) {
    assert_ok(hipMemsetAsync(pinned, round, 1000, here));
    assert_ok(hipMemcpyAsync(far, pinned, 1000, hipMemcpyHostToDevice, here));
    assert_ok(hipMemcpyAsync((char *)pinned + 1000, far, 1000, hipMemcpyDeviceToHost, here));
    assert_ok(hipMemsetAsync(pinned, 99, 1000, here));
    assert_ok(hipStreamSynchronize(here));
    assert_true(is_filled((char *)pinned + 1000, round, 1000));
    assert_true(is_filled(far, round, 1000));
  }
  assert_ok(hipStreamDestroy(here));
  assert_ok(hipFree(far));
  assert_ok(hipHostFree(pinned));
}

/* As HIP allows, a fill of device memory, and a copy within a device, may run after the call has returned. */
static void fills_and_copies_within_a_device_return_at_once(void **state)
{
  (void)state;
  void *managed;
  char host[100], *first = allocate(100), *second = allocate(100);
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  memset(first, 1, 100);
  memset(second, 2, 100);
  assert_ok(hipMemset(first, 3, 100));
  assert_ok(hipMemcpy(second, first, 100, hipMemcpyDeviceToDevice));
  assert_true(is_filled(first, 1, 100) && is_filled(second, 2, 100));
  assert_int_equal(hipmm_software_pending(), 2);
  assert_ok(hipMemcpy(host, second, 100, hipMemcpyDeviceToHost)); /* waits */
  assert_true(is_filled(host, 3, 100));
  assert_ok(hipMemset(managed, 4, 100)); /* waits, as the host may use the memory */
  assert_true(is_filled(managed, 4, 100));
  assert_ok(hipMemcpy(managed, first, 100, hipMemcpyDefault));
  assert_true(is_filled(managed, 3, 100));
  assert_ok(hipSetDevice(1));
  char *far = allocate(100);
  assert_ok(hipMemcpy(far, first, 100, hipMemcpyDeviceToDevice)); /* waits */
  assert_true(is_filled(far, 3, 100));
  assert_ok(hipSetDevice(0));
  assert_ok(hipFree(far));
  assert_ok(hipFree(first));
  assert_ok(hipFree(second));
  assert_ok(hipFree(managed));
}

/* Memory of hipMalloc: copies work with either device current; a fill is work of the device itself. */
static void only_fills_need_peer_access(void **state)
{
  (void)state;
  char host[100], back[100], *memory = allocate(100);
  memset(host, 3, 100);
  assert_ok(hipSetDevice(1));
  char *other = allocate(100);
  assert_ok(hipMemcpy(memory, host, 100, hipMemcpyHostToDevice));
  assert_ok(hipMemcpy(other, memory, 100, hipMemcpyDeviceToDevice));
  assert_ok(hipMemcpy(back, other, 100, hipMemcpyDeviceToHost));
  assert_memory_equal(back, host, 100);
  assert_hip(hipMemset(memory, 4, 100), hipErrorInvalidValue);
  assert_ok(hipDeviceEnablePeerAccess(0, 0));
  assert_ok(hipMemset(memory, 4, 100));
  assert_ok(hipMemcpy(back, memory, 100, hipMemcpyDeviceToHost));
  assert_true(is_filled(back, 4, 100));
  assert_ok(hipDeviceDisablePeerAccess(0));
  assert_hip(hipMemset(memory, 4, 100), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
  assert_ok(hipFree(other));
}

static void fills_write_whole_values(void **state)
{
  (void)state;
  char *memory = allocate(103);
  uint32_t word;
  assert_ok(hipMemset(memory, 0x1ff, 103)); /* the low byte counts */
  assert_ok(hipDeviceSynchronize());
  assert_true(is_filled(memory, -1, 103));
  assert_ok(hipMemsetD32(memory + 3, 0x01020304, 25));
  assert_ok(hipDeviceSynchronize());
  for (int i = 0; i < 25; i++) {
    memcpy(&word, memory + 3 + 4 * i, 4);
    assert_int_equal(word, 0x01020304);
  }
  assert_true(is_filled(memory, -1, 3));
  assert_ok(hipMemsetD8(memory, 9, 2));
  assert_ok(hipMemsetD8Async(memory + 2, 9, 1, NULL));
  assert_ok(hipMemsetD32Async(memory + 99, 0x0a0a0a0a, 1, NULL));
  assert_ok(hipDeviceSynchronize());
  assert_true(is_filled(memory, 9, 3) && is_filled(memory + 99, 10, 4));
  assert_ok(hipMemsetD16(memory + 1, 0x0102, 10));
  assert_ok(hipMemsetD16Async(memory + 21, 0x0304, 41, NULL));
  assert_ok(hipDeviceSynchronize());
  for (int i = 0; i < 51; i++) {
    uint16_t half;
    memcpy(&half, memory + 1 + 2 * i, 2);
    assert_int_equal(half, i < 10 ? 0x0102 : 0x0304);
  }
  assert_true(memory[0] == 9);
  assert_hip(hipMemsetD16(memory, 0, 52), hipErrorInvalidValue);
  assert_hip(hipMemsetD32(memory, 0, 26), hipErrorInvalidValue);
  assert_hip(hipMemsetD32(memory, 0, SIZE_MAX / 2), hipErrorInvalidValue);
  assert_hip(hipMemsetD32(memory, 0, SIZE_MAX / 4 + 2),
             hipErrorInvalidValue); /* 4 bytes, if all addresses are passed */
  assert_ok(hipMemset(memory, 0, 0));
  assert_ok(hipFree(memory));
}

static void ranges_beyond_an_allocation_are_refused(void **state)
{
  (void)state;
  char host[200], *memory = allocate(100), *more = allocate(100);
  char *freed = allocate(100);
  assert_ok(hipFree(freed));
  assert_hip(hipMemset(memory, 1, 101), hipErrorInvalidValue);
  assert_hip(hipMemset(memory + 100, 1, 1), hipErrorInvalidValue);
  assert_hip(hipMemset(memory, 1, SIZE_MAX), hipErrorInvalidValue);
  assert_hip(hipMemcpy(memory, host, 101, hipMemcpyHostToDevice), hipErrorInvalidValue);
  assert_hip(hipMemcpy(host, memory + 1, 100, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  assert_hip(hipMemcpyAsync(memory, more, 101, hipMemcpyDeviceToDevice, NULL), hipErrorInvalidValue);
  assert_hip(hipMemset(freed, 1, 1), hipErrorInvalidValue);
  assert_hip(hipMemcpy(memory, freed, 1, hipMemcpyDefault), hipErrorInvalidValue);
  assert_int_equal(hipmm_software_pending(), 0);
  assert_ok(hipFree(memory));
  assert_ok(hipFree(more));
}

static void what_is_no_memory_is_refused(void **state)
{
  (void)state;
  char host[16] = "", *memory = allocate(16);
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *hole = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(hole + page, page);
  assert_hip(hipMemcpy(memory, NULL, 16, hipMemcpyHostToDevice), hipErrorInvalidValue);
  assert_hip(hipMemcpy(NULL, memory, 16, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  assert_hip(hipMemcpy(memory, (void *)64, 16, hipMemcpyDefault), hipErrorInvalidValue);
  assert_hip(hipMemcpy(memory, hole + page - 8, 16, hipMemcpyHostToDevice), hipErrorInvalidValue);
  assert_ok(hipMemcpy(memory, hole + page - 16, 16, hipMemcpyHostToDevice));
  assert_hip(hipMemset(host, 1, 16), hipErrorInvalidValue);
  assert_hip(hipMemcpy(host, memory, 16, hipMemcpyHostToDevice), hipErrorInvalidValue);
  assert_hip(hipMemcpy(memory, host, 16, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  assert_hip(hipMemcpy(memory, host, 16, (hipMemcpyKind)5), hipErrorInvalidMemcpyDirection);
  assert_hip(hipMemcpy(memory, host, 16, (hipMemcpyKind)-1), hipErrorInvalidMemcpyDirection);
  munmap(hole, page);
  assert_ok(hipFree(memory));
}

/* One stream works on memory that another stream frees, without any order between the two. */
static void a_copy_that_executes_on_freed_memory_is_a_fault(void **state)
{
  (void)state;
  void *memory;
  int go = 0;
  hipStream_t late = create_stream(), other = create_stream();
  assert_ok(hipMallocAsync(&memory, 1000, other));
  assert_ok(hipStreamSynchronize(other));
  assert_ok(hipLaunchHostFunc(late, wait_until_set, &go));
  assert_ok(hipMemsetAsync(memory, 1, 1000, late));
  assert_ok(hipFreeAsync(memory, other));
  assert_ok(hipStreamSynchronize(other));
  count_up(&go);
  assert_hip(hipStreamSynchronize(late), hipErrorIllegalAddress);
  assert_int_equal(hipmm_software_faults(0), 1);
}

static bool seed_finds_the_fault(uint64_t seed)
{
  struct software_config config = small_config(SOFTWARE_STEPPED);
  config.seed = seed;
  restart(&config);
  void *memory;
  hipStream_t late = create_stream(), other = create_stream();
  assert_ok(hipMallocAsync(&memory, 1000, other));
  assert_ok(hipStreamSynchronize(other));
  assert_ok(hipMemsetAsync(memory, 1, 1000, late));
  assert_ok(hipFreeAsync(memory, other));
  hipDeviceSynchronize();
  return hipmm_software_faults(0) > 0;
}

static void a_wrong_reuse_is_found_by_some_seed(void **state)
{
  (void)state;
  int found = 0;
  for (uint64_t seed = 0; seed < 40; seed++) found += seed_finds_the_fault(seed);
  assert_true(found > 5 && found < 35);
}

static void a_fault_stays_until_the_device_is_reset(void **state)
{
  (void)state;
  void *memory;
  int device, go = 0;
  hipStream_t stream = create_stream(), other = create_stream();
  char *kept = allocate(100);
  assert_ok(hipLaunchHostFunc(other, wait_until_set, &go));
  assert_ok(hipMallocAsync(&memory, 1000, other)); /* born only when its stream comes to it */
  assert_ok(hipMemsetAsync(memory, 1, 1000, stream));
  assert_hip(hipStreamSynchronize(stream), hipErrorIllegalAddress);
  count_up(&go);
  assert_hip(hipDeviceSynchronize(), hipErrorIllegalAddress);
  assert_hip(hipMalloc(&memory, 1), hipErrorIllegalAddress);
  assert_hip(hipMemset(kept, 1, 100), hipErrorIllegalAddress);
  assert_hip(hipStreamQuery(other), hipErrorIllegalAddress);
  assert_ok(hipGetDevice(&device));
  assert_ok(hipSetDevice(1));
  assert_ok(hipFree(allocate(10)));
  assert_ok(hipSetDevice(0));
  assert_ok(hipDeviceReset());
  assert_ok(hipFree(allocate(10)));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"copies of every kind move the bytes (threads)", copies_of_every_kind_move_the_bytes, start_threads, finish,
       NULL},
      {"copies of every kind move the bytes (stepped)", copies_of_every_kind_move_the_bytes, start_stepped, finish,
       NULL},
      {"copies with the direction in the name move the bytes (threads)",
       copies_with_the_direction_in_the_name_move_the_bytes, start_threads, finish, NULL},
      {"copies with the direction in the name move the bytes (stepped)",
       copies_with_the_direction_in_the_name_move_the_bytes, start_stepped, finish, NULL},
      {"pageable sources are taken at the call (threads)", pageable_sources_are_taken_at_the_call, start_threads,
       finish, NULL},
      {"pageable sources are taken at the call (stepped)", pageable_sources_are_taken_at_the_call, start_stepped,
       finish, NULL},
      {"pinned sources are read at execution (threads)", pinned_sources_are_read_at_execution, start_threads, finish,
       NULL},
      {"pinned sources are read at execution (stepped)", pinned_sources_are_read_at_execution, start_stepped, finish,
       NULL},
      {"a copy to pageable memory is done at return (threads)", a_copy_to_pageable_memory_is_done_at_return,
       start_threads, finish, NULL},
      {"a copy to pageable memory is done at return (stepped)", a_copy_to_pageable_memory_is_done_at_return,
       start_stepped, finish, NULL},
      {"copies reach other devices (threads)", copies_reach_other_devices, start_threads, finish, NULL},
      {"copies reach other devices (stepped)", copies_reach_other_devices, start_stepped, finish, NULL},
      {"a copy waits for the default stream of the memorys device (threads)",
       a_copy_waits_for_the_default_stream_of_the_memorys_device, start_threads, finish, NULL},
      {"a copy waits for the default stream of the memorys device (stepped)",
       a_copy_waits_for_the_default_stream_of_the_memorys_device, start_stepped, finish, NULL},
      {"a copy on another device keeps its place in the stream (threads)",
       a_copy_on_another_device_keeps_its_place_in_the_stream, start_threads, finish, NULL},
      {"a copy on another device keeps its place in the stream (stepped)",
       a_copy_on_another_device_keeps_its_place_in_the_stream, start_stepped, finish, NULL},
      {"fills and copies within a device return at once", fills_and_copies_within_a_device_return_at_once,
       start_stepped, finish, NULL},
      {"only fills need peer access", only_fills_need_peer_access, start_threads, finish, NULL},
      {"fills write whole values (threads)", fills_write_whole_values, start_threads, finish, NULL},
      {"rows are copied and filled (threads)", rows_are_copied_and_filled_and_nothing_between_them, start_threads,
       finish, NULL},
      {"rows are copied and filled (stepped)", rows_are_copied_and_filled_and_nothing_between_them, start_stepped,
       finish, NULL},
      {"wrong rows are refused", wrong_rows_are_refused, start_threads, finish, NULL},
      {"fills write whole values (stepped)", fills_write_whole_values, start_stepped, finish, NULL},
      {"ranges beyond an allocation are refused", ranges_beyond_an_allocation_are_refused, start_threads, finish, NULL},
      {"what is no memory is refused", what_is_no_memory_is_refused, start_threads, finish, NULL},
      {"a copy that executes on freed memory is a fault", a_copy_that_executes_on_freed_memory_is_a_fault,
       start_threads, finish_untidy, NULL},

      {"a wrong reuse is found by some seed", a_wrong_reuse_is_found_by_some_seed, start_stepped, finish_untidy, NULL},
      {"a fault stays until the device is reset", a_fault_stays_until_the_device_is_reset, start_threads, finish_untidy,
       NULL},
  };
  return cmocka_run_group_tests_name("software: copies", tests, NULL, NULL);
}
