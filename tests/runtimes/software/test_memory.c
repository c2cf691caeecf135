/* SPDX-License-Identifier: MIT */
/* test_memory.c: device memory: exact capacity, addresses, frees, queries, and a random model that writes a pattern into
 * each block and checks it at the free, so that overlap is found. */
#include "device.h"
#include <stdlib.h>

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
  const unsigned flags[] = {hipDeviceMallocDefault, hipDeviceMallocFinegrained, 3, 4}; /* uncached, contiguous: HIP 6 */
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    assert_ok(hipExtMallocWithFlags(&memory, 10, flags[i]));
    assert_ok(hipFree(memory));
  }
  assert_hip(hipExtMallocWithFlags(&memory, 10, hipMallocSignalMemory), hipErrorInvalidValue);
  assert_ok(hipExtMallocWithFlags(&memory, 8, hipMallocSignalMemory));
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
  assert_hip(hipMemGetAddressRange(&base, &bytes, memory + 5000), hipErrorNotFound);
  assert_hip(hipMemGetAddressRange(NULL, NULL, memory), hipErrorInvalidValue);
  assert_ok(hipMemPtrGetInfo(memory, &bytes));
  assert_int_equal(bytes, 5000);
  assert_hip(hipMemPtrGetInfo(memory + 1, &bytes), hipErrorInvalidValue);
  assert_ok(hipPointerGetAttributes(&attributes, memory + 10));
  assert_int_equal(attributes.device, 1);
  assert_int_equal(memory_type(&attributes), hipMemoryTypeDevice);
  assert_ptr_equal(attributes.devicePointer, memory + 10);
  assert_int_equal(attributes.isManaged, 0);
#if HIP_VERSION_MAJOR < 6
  assert_hip(hipPointerGetAttributes(&attributes, &bytes), hipErrorInvalidValue);
#else
  assert_ok(hipPointerGetAttributes(&attributes, &bytes));
  assert_int_equal(memory_type(&attributes), hipMemoryTypeUnregistered);
  assert_int_equal(attributes.device, hipInvalidDeviceId);
  assert_null(attributes.devicePointer);
#endif
  assert_hip(hipPointerGetAttributes(NULL, memory), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
}

static void managed_memory_has_a_type_of_its_own(void **state)
{
  (void)state;
  void *managed;
  hipPointerAttribute_t attributes;
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  assert_ok(hipPointerGetAttributes(&attributes, managed));
  assert_int_equal(attributes.isManaged, 1);
#if HIP_VERSION_MAJOR < 6
  assert_int_equal(memory_type(&attributes), hipMemoryTypeDevice);
#else
  assert_int_equal(memory_type(&attributes), hipMemoryTypeManaged);
#endif
  assert_ok(hipFree(managed));
}

/* The headers of a program decide, and not those of the device. */
static void programs_get_the_numbers_of_their_hip(void **state)
{
  (void)state;
  static const struct {
    int version, device, pinned, managed;
    hipError_t unknown;
  } rows[] = {{50200000, 1, 0, 1, hipErrorInvalidValue},
              {50700000, 1, 0, 1, hipErrorInvalidValue},
              {60400000, 2, 1, 3, hipSuccess},
              {70100000, 2, 1, 3, hipSuccess}};
  int version, local, attributes[2 * sizeof(hipPointerAttribute_t) / sizeof(int)];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct software_config config = small_config(SOFTWARE_THREADS);
    void *memory[3];
    const int wanted[] = {rows[i].device, rows[i].pinned, rows[i].managed};
    config.hip_version = rows[i].version;
    restart(&config);
    assert_ok(hipRuntimeGetVersion(&version));
    assert_int_equal(version, rows[i].version);
    assert_ok(hipMalloc(&memory[0], 100));
    assert_ok(hipHostMalloc(&memory[1], 100, 0));
    assert_ok(hipMallocManaged(&memory[2], 100, hipMemAttachGlobal));
    for (int kind = 0; kind < 3; kind++) {
      unsigned number;
      assert_ok(hipPointerGetAttributes((void *)attributes, memory[kind]));
      assert_int_equal(attributes[0], wanted[kind]);
      assert_ok(hipPointerGetAttribute(&number, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, memory[kind]));
      assert_int_equal(number, wanted[kind]);
    }
    attributes[0] = -1;
    assert_hip(hipPointerGetAttributes((void *)attributes, &local), rows[i].unknown);
    assert_int_equal(attributes[0], rows[i].unknown ? -1 : 0);
    assert_ok(hipFree(memory[0]));
    assert_ok(hipHostFree(memory[1]));
    assert_ok(hipFree(memory[2]));
  }
}

/* One attribute as an unsigned number, or the error that HIP returns instead. */
static hipError_t pointer_number(const void *pointer, hipPointer_attribute attribute, unsigned *number_out)
{
  unsigned number[2] = {0, 12345};
  hipError_t error = hipPointerGetAttribute(number, attribute, (hipDeviceptr_t)(uintptr_t)pointer);
  assert_int_equal(number[1], 12345);
  *number_out = number[0];
  return error;
}

static void a_pointer_has_single_attributes(void **state)
{
  (void)state;
  void *pinned, *managed, *address;
  unsigned number, other;
  assert_ok(hipSetDevice(1));
  char *memory = allocate(5000), local[10];
  assert_ok(hipHostMalloc(&pinned, 100, hipHostMallocPortable));
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  assert_ok(pointer_number(memory + 7, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, &number));
  assert_int_equal(number, hipMemoryTypeDevice);
  assert_ok(pointer_number(pinned, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, &number));
  assert_int_equal(number, hipMemoryTypeHost);
  assert_ok(pointer_number(memory, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &number));
  assert_int_equal(number, 1);
  assert_ok(pointer_number(memory, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, &number));
  assert_int_equal(number, 5000);
  assert_ok(pointer_number(managed, HIP_POINTER_ATTRIBUTE_IS_MANAGED, &number));
  assert_int_equal(number, 1);
  assert_ok(pointer_number(memory, HIP_POINTER_ATTRIBUTE_IS_MANAGED, &number));
  assert_int_equal(number, 0);
  assert_ok(pointer_number(memory, HIP_POINTER_ATTRIBUTE_MAPPED, &number));
  assert_int_equal(number, 1);
  assert_ok(pointer_number(pinned, HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS, &number));
  assert_int_equal(number, hipHostMallocPortable);
  assert_ok(hipPointerGetAttribute(&address, HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, memory + 100));
  assert_ptr_equal(address, memory + 100);
  assert_ok(hipPointerGetAttribute(&address, HIP_POINTER_ATTRIBUTE_HOST_POINTER, (char *)pinned + 5));
  assert_ptr_equal(address, (char *)pinned + 5);
  assert_ok(hipPointerGetAttribute(&address, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 4999));
  assert_ptr_equal(address, memory);
  assert_ok(pointer_number(memory, HIP_POINTER_ATTRIBUTE_BUFFER_ID, &number));
  assert_ok(hipFree(memory));
  assert_ptr_equal(allocate(5000), memory);
  assert_ok(pointer_number(memory, HIP_POINTER_ATTRIBUTE_BUFFER_ID, &other));
  assert_int_not_equal(number, other);
  assert_hip(pointer_number(memory, HIP_POINTER_ATTRIBUTE_HOST_POINTER, &number), hipErrorInvalidValue);
  assert_hip(pointer_number(memory, HIP_POINTER_ATTRIBUTE_CONTEXT, &number), hipErrorNotSupported);
  assert_hip(pointer_number(memory, HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, &number), hipErrorNotSupported);
  assert_hip(pointer_number(memory, (hipPointer_attribute)-1, &number), hipErrorInvalidValue);
  assert_hip(pointer_number(local, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, &number), hipErrorInvalidValue);
  assert_hip(pointer_number(local, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &number), hipErrorInvalidValue);
  assert_hip(pointer_number(NULL, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, &number), hipErrorInvalidValue);
  assert_hip(hipPointerGetAttribute(NULL, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, memory), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
  assert_ok(hipFree(managed));
  assert_ok(hipHostFree(pinned));
}

static void rows_have_a_pitch(void **state)
{
  (void)state;
  void *memory = NULL;
  size_t pitch = 0, bytes, before = free_bytes();
  assert_ok(hipMallocPitch(&memory, &pitch, 1000, 30));
  assert_int_equal(pitch, 1024);
  assert_ok(hipMemPtrGetInfo(memory, &bytes));
  assert_int_equal(bytes, 1024 * 30);
  assert_ok(hipFree(memory));
  assert_int_equal(free_bytes(), before);
  assert_ok(hipMallocPitch(&memory, &pitch, 0, 30));
  assert_null(memory);
  assert_ok(hipMallocPitch(&memory, &pitch, 30, 0));
  assert_null(memory);
  assert_hip(hipMallocPitch(NULL, &pitch, 10, 10), hipErrorInvalidValue);
  assert_hip(hipMallocPitch(&memory, NULL, 10, 10), hipErrorInvalidValue);
  assert_hip(hipMallocPitch(&memory, &pitch, SIZE_MAX, 1), hipErrorInvalidValue);
  assert_hip(hipMallocPitch(&memory, &pitch, 1, SIZE_MAX), hipErrorOutOfMemory);
  assert_hip(hipMallocPitch(&memory, &pitch, 1000, SIZE_MAX / 1024 + 2), hipErrorOutOfMemory);
  assert_hip(hipMallocPitch(&memory, &pitch, MIB, 65), hipErrorOutOfMemory);
  assert_null(memory);
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
      {"managed memory has a type of its own", managed_memory_has_a_type_of_its_own, start_threads, finish, NULL},
      {"programs get the numbers of their HIP", programs_get_the_numbers_of_their_hip, start_threads, finish, NULL},
      {"a pointer has single attributes", a_pointer_has_single_attributes, start_threads, finish, NULL},
      {"rows have a pitch", rows_have_a_pitch, start_threads, finish, NULL},
      {"live memory is counted", live_memory_is_counted, start_threads, finish, NULL},
      {"a free waits for the work of its device (threads)", a_free_waits_for_the_work_of_its_device, start_threads,
       finish, NULL},
      {"a free waits for the work of its device (stepped)", a_free_waits_for_the_work_of_its_device, start_stepped,
       finish, NULL},
      {"random blocks never overlap", random_blocks_never_overlap, start_threads, finish, NULL},
  };
  return cmocka_run_group_tests_name("software: memory", tests, NULL, NULL);
}
