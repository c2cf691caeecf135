/* SPDX-License-Identifier: MIT */
/* test_memory.c: device memory: capacity to the byte, addresses, freeing, questions, and a random model that writes a
 * pattern into each block and checks it at free, so that overlap shows at once. */
#include "device.h"
#include <stdlib.h>

static size_t free_bytes(void)
{
  size_t available, total;
  assert_ok(hipMemGetInfo(&available, &total));
  assert_int_equal(total, software.config.memory_bytes);
  return available;
}

static void memory_info_counts_whole_pages(void **state)
{
  (void)state;
  size_t before = free_bytes();
  char *one = allocate(1), *more = allocate(4097);
  assert_int_equal(free_bytes(), before - 3 * 4096);
  assert_ok(hipFree(one));
  assert_int_equal(free_bytes(), before - 2 * 4096);
  assert_ok(hipFree(more));
  assert_int_equal(free_bytes(), before);
}

static void memory_is_aligned_and_the_hosts_to_touch(void **state)
{
  (void)state;
  char *memory[10];
  for (int i = 0; i < 10; i++) {
    memory[i] = allocate((size_t)i * 1000 + 1);
    assert_int_equal((uintptr_t)memory[i] % 4096, 0);
    memset(memory[i], i, (size_t)i * 1000 + 1);
  }
  for (int i = 0; i < 10; i++) {
    assert_true(is_filled(memory[i], i, (size_t)i * 1000 + 1));
    assert_ok(hipFree(memory[i]));
  }
}

static void a_device_gives_all_that_it_has_and_no_more(void **state)
{
  (void)state;
  void *memory = NULL;
  assert_hip(hipMalloc(&memory, 64 * MIB + 1), hipErrorOutOfMemory);
  assert_null(memory);
  char *all = allocate(64 * MIB);
  assert_int_equal(free_bytes(), 0);
  assert_hip(hipMalloc(&memory, 1), hipErrorOutOfMemory);
  assert_ok(hipSetDevice(1));
  assert_ok(hipFree(allocate(64 * MIB)));
  assert_ok(hipSetDevice(0));
  assert_ok(hipFree(all));
}

static void sizes_beyond_reason_are_out_of_memory(void **state)
{
  (void)state;
  void *memory = NULL;
  const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2, (size_t)1 << 50};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    assert_hip(hipMalloc(&memory, sizes[i]), hipErrorOutOfMemory);
  assert_null(memory);
}

static void holes_do_not_make_a_device_run_out(void **state)
{
  (void)state;
  char *memory[64];
  for (int i = 0; i < 64; i++) memory[i] = allocate(MIB);
  for (int i = 0; i < 64; i += 2) assert_ok(hipFree(memory[i]));
  char *large = allocate(32 * MIB);
  assert_int_equal(free_bytes(), 0);
  assert_ok(hipFree(large));
  for (int i = 1; i < 64; i += 2) assert_ok(hipFree(memory[i]));
}

static void terabytes_can_be_had(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.memory_bytes = (size_t)64 << 30;
  restart(&config);
  char *memory = allocate((size_t)48 << 30), *small = allocate(10);
  memory[((size_t)48 << 30) - 1] = 7;
  small[9] = 8;
  assert_int_equal(memory[((size_t)48 << 30) - 1], 7);
  assert_ok(hipFree(memory));
  assert_ok(hipFree(small));
  assert_int_equal(free_bytes(), config.memory_bytes);
}

static void no_bytes_are_no_pointer(void **state)
{
  (void)state;
  void *memory = &memory;
  assert_ok(hipMalloc(&memory, 0));
  assert_null(memory);
  assert_ok(hipFree(NULL));
}

static void what_is_not_live_cannot_be_freed(void **state)
{
  (void)state;
  int local;
  void *pinned;
  char *memory = allocate(10000);
  assert_ok(hipHostMalloc(&pinned, 10, 0));
  assert_hip(hipFree(&local), hipErrorInvalidValue);
  assert_hip(hipFree(memory + 1), hipErrorInvalidValue);
  assert_hip(hipFree(memory + 4096), hipErrorInvalidValue);
  assert_hip(hipFree(pinned), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
  assert_hip(hipFree(memory), hipErrorInvalidValue);
  assert_hip(hipFree((void *)-1), hipErrorInvalidValue);
  assert_ok(hipHostFree(pinned));
}

static void outputs_are_written_on_success_only(void **state)
{
  (void)state;
  void *memory = (void *)1;
  assert_hip(hipMalloc(NULL, 10), hipErrorInvalidValue);
  assert_hip(hipMalloc(&memory, SIZE_MAX), hipErrorOutOfMemory);
  assert_hip(hipExtMallocWithFlags(&memory, 10, 99), hipErrorInvalidValue);
  assert_ptr_equal(memory, (void *)1);
  assert_hip(hipMemGetInfo(NULL, NULL), hipErrorInvalidValue);
  assert_ok(hipExtMallocWithFlags(&memory, 10, hipDeviceMallocFinegrained));
  assert_ok(hipFree(memory));
}

static void pointers_can_be_asked_about(void **state)
{
  (void)state;
  hipDeviceptr_t base;
  size_t bytes;
  hipPointerAttribute_t attributes;
  assert_ok(hipSetDevice(1));
  char *memory = allocate(5000);
  assert_ok(hipMemGetAddressRange(&base, &bytes, memory + 4999));
  assert_ptr_equal(base, memory);
  assert_int_equal(bytes, 5000);
  assert_hip(hipMemGetAddressRange(&base, &bytes, memory + 5000), hipErrorInvalidDevicePointer);
  assert_hip(hipMemGetAddressRange(NULL, NULL, memory), hipErrorInvalidValue);
  assert_ok(hipMemPtrGetInfo(memory, &bytes));
  assert_int_equal(bytes, 5000);
  assert_hip(hipMemPtrGetInfo(memory + 1, &bytes), hipErrorInvalidValue);
  assert_ok(hipPointerGetAttributes(&attributes, memory + 10));
  assert_int_equal(attributes.device, 1);
  assert_int_equal(memory_type(&attributes), hipMemoryTypeDevice);
  assert_ptr_equal(attributes.devicePointer, memory + 10);
  assert_int_equal(attributes.isManaged, 0);
  assert_hip(hipPointerGetAttributes(&attributes, &bytes), hipErrorInvalidValue);
  assert_hip(hipPointerGetAttributes(NULL, memory), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
}

static void live_memory_is_counted(void **state)
{
  (void)state;
  uint64_t count, bytes;
  char *memory = allocate(5000), *more = allocate(1);
  assert_true(hipmm_software_live(0, &count, &bytes));
  assert_int_equal(count, 2);
  assert_int_equal(bytes, 5001);
  assert_ok(hipFree(memory));
  assert_ok(hipFree(more));
  assert_true(hipmm_software_live(0, &count, &bytes));
  assert_int_equal(count, 0);
  assert_int_equal(bytes, 0);
  assert_false(hipmm_software_live(2, &count, &bytes));
}

static void a_free_waits_for_the_work_of_its_device(void **state)
{
  (void)state;
  hipStream_t stream;
  int ran = 0;
  char *memory = allocate(100);
  assert_ok(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  assert_ok(hipMemsetAsync(memory, 1, 100, stream));
  assert_ok(hipLaunchHostFunc(stream, count_up, &ran));
  assert_ok(hipFree(memory));
  assert_int_equal(ran, 1);
  assert_ok(hipStreamDestroy(stream));
}

#define MODEL_BLOCKS 64

struct block {
  char *memory;
  size_t bytes;
  int value;
};

static size_t random_bytes(void)
{
  static const size_t scales[] = {100, 5000, 100000, 1 << 20};
  return 1 + (size_t)rand() % scales[rand() % 4];
}

static void random_blocks_never_overlap(void **state)
{
  (void)state;
  struct block blocks[MODEL_BLOCKS] = {{0}};
  size_t held = 0;
  srand(7);
  for (int step = 0; step < 20000; step++) {
    struct block *block = &blocks[rand() % MODEL_BLOCKS];
    if (block->memory) {
      assert_true(block->memory[0] == (char)block->value && block->memory[block->bytes - 1] == (char)block->value);
      if (step % 16 == 0) assert_true(is_filled(block->memory, block->value, block->bytes));
      assert_ok(hipFree(block->memory));
      held -= (block->bytes + 4095) & ~(size_t)4095;
      block->memory = NULL;
    } else {
      void *memory;
      size_t bytes = random_bytes(), rounded = (bytes + 4095) & ~(size_t)4095;
      hipError_t error = hipMalloc(&memory, bytes);
      assert_hip(error, held + rounded <= 64 * MIB ? hipSuccess : hipErrorOutOfMemory);
      if (error != hipSuccess) continue;
      *block = (struct block){memory, bytes, rand() & 127};
      memset(block->memory, block->value, bytes);
      held += rounded;
    }
    if (step % 64 == 0) assert_int_equal(free_bytes(), 64 * MIB - held);
  }
  for (int i = 0; i < MODEL_BLOCKS; i++) hipFree(blocks[i].memory);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"memory info counts whole pages", memory_info_counts_whole_pages, start_threads, finish, NULL},
      {"memory is aligned and the hosts to touch", memory_is_aligned_and_the_hosts_to_touch, start_threads, finish,
       NULL},
      {"a device gives all that it has and no more", a_device_gives_all_that_it_has_and_no_more, start_threads, finish,
       NULL},
      {"sizes beyond reason are out of memory", sizes_beyond_reason_are_out_of_memory, start_threads, finish, NULL},
      {"holes do not make a device run out", holes_do_not_make_a_device_run_out, start_threads, finish, NULL},
      {"terabytes can be had", terabytes_can_be_had, start_threads, finish, NULL},
      {"no bytes are no pointer", no_bytes_are_no_pointer, start_threads, finish, NULL},
      {"what is not live cannot be freed", what_is_not_live_cannot_be_freed, start_threads, finish, NULL},
      {"outputs are written on success only", outputs_are_written_on_success_only, start_threads, finish, NULL},
      {"pointers can be asked about", pointers_can_be_asked_about, start_threads, finish, NULL},
      {"live memory is counted", live_memory_is_counted, start_threads, finish, NULL},
      {"a free waits for the work of its device (threads)", a_free_waits_for_the_work_of_its_device, start_threads,
       finish, NULL},
      {"a free waits for the work of its device (stepped)", a_free_waits_for_the_work_of_its_device, start_stepped,
       finish, NULL},
      {"random blocks never overlap", random_blocks_never_overlap, start_threads, finish, NULL},
  };
  return cmocka_run_group_tests_name("software: memory", tests, NULL, NULL);
}
