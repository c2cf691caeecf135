/* SPDX-License-Identifier: MIT */
/* test_volumes.c: copies and fills in three dimensions, copies whose sides are described in a struct, batches of copies,
 * and fills of rows of 1, 2 and 4 bytes: which bytes are written, and which are not. */
#include "device.h"

enum { PITCH = 64, ROWS = 8, SLICES = 4, ALL = PITCH * ROWS * SLICES };

/* The value of a byte by its place. */
static unsigned char mark(size_t x, size_t y, size_t z)
{
  return (unsigned char)(1 + x + 7 * y + 31 * z);
}

static void fill_with_marks(unsigned char *memory)
{
  unsigned char data[ALL];
  for (size_t i = 0; i < ALL; i++) data[i] = mark(i % PITCH, i / PITCH % ROWS, i / PITCH / ROWS);
  assert_ok(hipMemcpy(memory, data, ALL, hipMemcpyHostToDevice));
}

static void read_back(unsigned char *data, const unsigned char *memory)
{
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipMemcpy(data, memory, ALL, hipMemcpyDeviceToHost));
}

static bool is_within(size_t at, hipPos first, hipExtent extent)
{
  size_t x = at % PITCH, y = at / PITCH % ROWS, z = at / PITCH / ROWS;
  return x >= first.x && x - first.x < extent.width && y >= first.y && y - first.y < extent.height && z >= first.z &&
         z - first.z < extent.depth;
}

static void a_part_of_a_volume_is_copied(void **state)
{
  (void)state;
  unsigned char *to = (unsigned char *)allocate(ALL), *from = (unsigned char *)allocate(ALL), data[ALL];
  const hipExtent extents[] = {{10, 3, 2}, {PITCH, ROWS, 2}, {20, ROWS, 3}, {20, 2, 1}, {0, 2, 2}, {20, 2, 0}};
  fill_with_marks(from);
  for (size_t i = 0; i < 2 * sizeof extents / sizeof *extents; i++) {
    hipExtent extent = extents[i / 2];
    hipMemcpy3DParms copy = {.srcPtr = {from, PITCH, PITCH, ROWS}, .dstPtr = {to, PITCH, PITCH, ROWS}};
    copy.kind = hipMemcpyDeviceToDevice;
    copy.extent = extent;
    if (extent.width < 40) copy.srcPos.x = 4, copy.dstPos.x = 20;
    if (extent.height < ROWS) copy.srcPos.y = 1, copy.dstPos.y = 5;
    copy.srcPos.z = 0, copy.dstPos.z = 1;
    assert_ok(hipMemset(to, 0, ALL));
    if (i % 2)
      assert_ok(hipMemcpy3D(&copy));
    else
      assert_ok(hipMemcpy3DAsync(&copy, NULL));
    read_back(data, to);
    for (size_t at = 0; at < ALL; at++) {
      size_t x = at % PITCH - copy.dstPos.x + copy.srcPos.x, y = at / PITCH % ROWS - copy.dstPos.y + copy.srcPos.y,
             z = at / PITCH / ROWS - copy.dstPos.z + copy.srcPos.z;
      assert_int_equal(data[at], is_within(at, copy.dstPos, extent) ? mark(x, y, z) : 0);
    }
  }
  assert_ok(hipFree(to));
  assert_ok(hipFree(from));
}

static void a_part_of_a_volume_is_filled(void **state)
{
  (void)state;
  unsigned char *memory = (unsigned char *)allocate(ALL), data[ALL];
  const hipExtent extents[] = {{10, 3, 2}, {PITCH, ROWS, SLICES}, {20, ROWS, 3}, {0, 1, 1}, {1, 1, 0}};
  const hipPos first = {0, 0, 0};
  for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
    const hipPitchedPtr volume = {memory, PITCH, PITCH, ROWS};
    assert_ok(hipMemset(memory, 0, ALL));
    assert_ok(hipMemset3DAsync(volume, 0x105, extents[i], NULL));
    read_back(data, memory);
    for (size_t at = 0; at < ALL; at++) assert_int_equal(data[at], is_within(at, first, extents[i]) ? 5 : 0);
  }
  assert_ok(hipFree(memory));
}

static void volumes_that_are_too_small_are_refused(void **state)
{
  (void)state;
  unsigned char *memory = (unsigned char *)allocate(ALL), data[ALL];
  hipPitchedPtr volume = {memory, PITCH, PITCH, ROWS};
  assert_ok(hipMemset(memory, 0, ALL));
  assert_hip(hipMemset3D(volume, 1, (hipExtent){PITCH + 1, 1, 1}), hipErrorInvalidPitchValue);
  assert_hip(hipMemset3D(volume, 1, (hipExtent){1, ROWS + 1, 2}), hipErrorInvalidValue);
  assert_hip(hipMemset3D(volume, 1, (hipExtent){1, 1, 1000}), hipErrorInvalidValue); /* beyond the memory */
  hipMemcpy3DParms copy = {.srcPtr = volume, .dstPtr = volume, .extent = {8, 2, 2}, .kind = hipMemcpyDeviceToDevice};
  assert_hip(hipMemcpy3D(NULL), hipErrorInvalidValue);
  copy.srcPos.x = PITCH - 7;
  assert_hip(hipMemcpy3D(&copy), hipErrorInvalidPitchValue);
  copy.srcPos.x = 0;
  copy.dstPos.y = ROWS - 1;
  assert_hip(hipMemcpy3D(&copy), hipErrorInvalidValue);
  copy.dstPos.y = 0;
  copy.dstPos.z = SLICES - 1;
  assert_hip(hipMemcpy3D(&copy), hipErrorInvalidValue);
  copy.dstPos.z = 0;
  copy.dstPtr.ptr = NULL;
  assert_hip(hipMemcpy3D(&copy), hipErrorInvalidValue);
  copy.dstArray = (void *)memory;
  assert_hip(hipMemcpy3D(&copy), hipErrorInvalidValue);
  assert_hip(hipMalloc3D(NULL, (hipExtent){1, 1, 1}), hipErrorInvalidValue);
  assert_hip(hipMalloc3D(&volume, (hipExtent){1, SIZE_MAX / 2, 4}), hipErrorOutOfMemory);
  void *rows;
  size_t pitch;
  assert_hip(hipMemAllocPitch(&rows, &pitch, 8, 8, 3), hipErrorInvalidValue);
  assert_hip(hipMemAllocPitch(&rows, &pitch, 0, 8, 4), hipErrorInvalidValue);
  read_back(data, memory);
  for (size_t at = 0; at < ALL; at++) assert_int_equal(data[at], 0);
  assert_ok(hipFree(memory));
}

/* The numbers of hipMemoryType by the program's release. */
static void a_copy_of_rows_may_be_described(void **state)
{
  (void)state;
  unsigned char *memory = (unsigned char *)allocate(ALL), host[ALL], data[ALL];
  for (size_t i = 0; i < ALL; i++) host[i] = mark(i % PITCH, i / PITCH % ROWS, 0);
  for (int is_old = 0; is_old < 2; is_old++) {
    struct software_config config = software.config;
    config.hip_version = is_old ? 50700000 : 70100000;
    pthread_mutex_lock(&software.lock);
    software.config = config;
    pthread_mutex_unlock(&software.lock);
    hip_Memcpy2D copy = {.srcXInBytes = 3, .srcY = 2, .srcHost = host, .srcPitch = PITCH};
    copy.srcMemoryType = (hipMemoryType)(is_old ? 0 : 1);
    copy.dstMemoryType = (hipMemoryType)(is_old ? 1 : 2);
    copy.dstXInBytes = 5;
    copy.dstY = 1;
    copy.dstDevice = (hipDeviceptr_t)memory;
    copy.dstPitch = PITCH;
    copy.WidthInBytes = 9;
    copy.Height = 4;
    assert_ok(hipMemset(memory, 0, ALL));
    assert_ok(hipMemcpyParam2D(&copy));
    read_back(data, memory);
    for (size_t at = 0; at < ALL; at++) {
      bool is_copied = is_within(at, (hipPos){5, 1, 0}, (hipExtent){9, 4, 1});
      assert_int_equal(data[at], is_copied ? mark(at % PITCH - 2, at / PITCH % ROWS + 1, 0) : 0);
    }
    copy.srcMemoryType = (hipMemoryType)(is_old ? 2 : 10); /* an array */
    assert_hip(hipMemcpyParam2DAsync(&copy, NULL), hipErrorInvalidValue);
    copy.WidthInBytes = PITCH;
    assert_hip(hipMemcpyParam2D(&copy), hipErrorInvalidPitchValue);
  }
  assert_hip(hipMemcpyParam2D(NULL), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
}

static void a_batch_says_which_copy_failed(void **state)
{
  (void)state;
  unsigned char *memory = (unsigned char *)allocate(ALL), data[ALL], host[100];
  void *to[] = {memory, memory + 200, memory + ALL - 10}, *from[] = {host, host, host};
  size_t bytes[] = {100, 50, 20}, first = 0, failed = 77;
  char attributes[64] = ""; /* larger than the struct, whose members may all be 0 */
  hipMemcpyAttributes *given = (void *)attributes;
  memset(host, 6, sizeof host);
  assert_ok(hipMemset(memory, 0, ALL));
  assert_hip(hipMemcpyBatchAsync(to, from, bytes, 3, given, &first, 1, &failed, NULL), hipErrorInvalidValue);
  assert_int_equal(failed, 2);
  memset(host, 0, sizeof host); /* was read at the call */
  read_back(data, memory);
  for (size_t at = 0; at < ALL; at++) assert_int_equal(data[at], at < 100 || (at >= 200 && at < 250) ? 6 : 0);
  assert_hip(hipMemcpyBatchAsync(to, from, bytes, 0, given, &first, 1, &failed, NULL), hipErrorInvalidValue);
  assert_true(failed == SIZE_MAX);
  assert_hip(hipMemcpyBatchAsync(to, from, bytes, 2, given, &first, 0, NULL, NULL), hipErrorInvalidValue);
  assert_hip(hipMemcpyBatchAsync(NULL, from, bytes, 2, given, &first, 1, NULL, NULL), hipErrorInvalidValue);
  from[0] = NULL;
  assert_hip(hipMemcpyBatchAsync(to, from, bytes, 2, given, &first, 1, &failed, NULL), hipErrorInvalidValue);
  assert_int_equal(failed, 0);
  assert_ok(hipFree(memory));
}

static void rows_of_values_are_filled(void **state)
{
  (void)state;
  unsigned char *memory = (unsigned char *)allocate(ALL), data[ALL];
  for (int bytes = 1; bytes <= 4; bytes *= 2) {
    hipDeviceptr_t to = (hipDeviceptr_t)memory;
    assert_ok(hipMemset(memory, 0, ALL));
    if (bytes == 1) assert_ok(hipMemsetD2D8(to, PITCH, 0x44, 3, 2));
    if (bytes == 2) assert_ok(hipMemsetD2D16Async(to, PITCH, 0x3344, 3, 2, NULL));
    if (bytes == 4) assert_ok(hipMemsetD2D32(to, PITCH, 0x11223344, 3, 2));
    read_back(data, memory);
    for (size_t at = 0; at < ALL; at++) {
      bool is_filled_here = at / PITCH < 2 && at % PITCH < 3 * (size_t)bytes;
      unsigned char value = (unsigned char)(0x44 - 0x11 * (int)(at % (size_t)bytes));
      assert_int_equal(data[at], is_filled_here ? value : 0);
    }
  }
  assert_hip(hipMemsetD2D32((hipDeviceptr_t)memory, PITCH, 1, PITCH / 4 + 1, 2), hipErrorInvalidValue);
  assert_hip(hipMemsetD2D16((hipDeviceptr_t)memory, PITCH, 1, PITCH / 2, SLICES * ROWS + 1), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
}

#define BOTH(test)                                              \
  cmocka_unit_test_setup_teardown(test, start_threads, finish), \
  {                                                             \
#test ", stepped", test, start_stepped, finish, NULL        \
  }

int main(void)
{
  const struct CMUnitTest tests[] = {
      BOTH(a_part_of_a_volume_is_copied),           BOTH(a_part_of_a_volume_is_filled),
      BOTH(volumes_that_are_too_small_are_refused), BOTH(a_copy_of_rows_may_be_described),
      BOTH(a_batch_says_which_copy_failed),         BOTH(rows_of_values_are_filled),
  };
  return cmocka_run_group_tests_name("software: volumes", tests, NULL, NULL);
}
