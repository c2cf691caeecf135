/* SPDX-License-Identifier: MIT */
/* test_order.c: the order of work on the default streams of two devices, for each kind of device memory. A copy on one
 * device's default stream waits for the default stream of the other device if the other device's memory is hipMalloc's.
 * For mapped memory and memory of pools, only hipMemcpyPeer waits. Fills never wait.
 *
 * The stepped scheduler takes the next operation from any stream, at random. Work that is behind PENDING others on the
 * other device comes last unless a copy waits for it. */
#include "device.h"

#define GRANULE (2 * MIB)

enum { BYTES = 1000, PENDING = 40, OLD = 1, NEW = 2 };

/* ---- Memory of device 1, which both devices may use ---- */

struct memory {
  bool is_ordered;
  char *(*allocate)(void);
  void (*free)(char *start);
};

static void allow_peer(int device, int peer)
{
  hipError_t error = hipSetDevice(device);
  if (error == hipSuccess) error = hipDeviceEnablePeerAccess(peer, 0);
  if (error == hipErrorPeerAccessAlreadyEnabled) hipGetLastError();
}

static char *plain_allocate(void)
{
  allow_peer(0, 1);
  assert_ok(hipSetDevice(1));
  return allocate(BYTES);
}

static void plain_free(char *start)
{
  assert_ok(hipFree(start));
}

static char *mapped_allocate(void)
{
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned, .location = {hipMemLocationTypeDevice, 1}};
  hipMemAccessDesc access[2] = {{{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite},
                                {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite}};
  hipMemGenericAllocationHandle_t handle;
  void *start;
  assert_ok(hipMemAddressReserve(&start, GRANULE, 0, NULL, 0));
  assert_ok(hipMemCreate(&handle, GRANULE, &properties, 0));
  assert_ok(hipMemMap(start, GRANULE, 0, handle, 0));
  assert_ok(hipMemSetAccess(start, GRANULE, access, 2));
  assert_ok(hipMemRelease(handle));
  return start;
}

static void mapped_free(char *start)
{
  assert_ok(hipMemUnmap(start, GRANULE));
  assert_ok(hipMemAddressFree(start, GRANULE));
}

static char *pooled_allocate(void)
{
  hipMemPool_t pool;
  void *start;
  hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
  assert_ok(hipSetDevice(1));
  assert_ok(hipDeviceGetDefaultMemPool(&pool, 1));
  assert_ok(hipMemPoolSetAccess(pool, &access, 1));
  assert_ok(hipMallocAsync(&start, BYTES, NULL));
  assert_ok(hipStreamSynchronize(NULL));
  return start;
}

static void pooled_free(char *start)
{
  assert_ok(hipSetDevice(1));
  assert_ok(hipFreeAsync(start, NULL));
  assert_ok(hipDeviceSynchronize());
}

static const struct memory plain = {true, plain_allocate, plain_free};
static const struct memory mapped = {false, mapped_allocate, mapped_free};
static const struct memory pooled = {false, pooled_allocate, pooled_free};

/* ---- Two devices ---- */

struct scene {
  char *near, *far, *work[2]; /* far: on device 1, of the kind in question; the others are hipMalloc's */
  char host[BYTES];
};

static void wait_for_both(void)
{
  for (int device = 0; device < 2; device++) {
    assert_ok(hipSetDevice(device));
    assert_ok(hipDeviceSynchronize());
  }
}

static void open_scene(struct scene *scene, const struct memory *memory)
{
  memset(scene->host, 0, BYTES);
  for (int device = 0; device < 2; device++) {
    assert_ok(hipSetDevice(device));
    scene->work[device] = allocate(BYTES);
  }
  assert_ok(hipSetDevice(0));
  scene->near = allocate(BYTES);
  scene->far = memory->allocate();
  assert_ok(hipSetDevice(1));
  assert_ok(hipMemsetAsync(scene->far, OLD, BYTES, NULL));
  wait_for_both();
}

static void close_scene(struct scene *scene, const struct memory *memory)
{
  wait_for_both();
  memory->free(scene->far);
  assert_ok(hipFree(scene->near));
  for (int device = 0; device < 2; device++) assert_ok(hipFree(scene->work[device]));
  assert_ok(hipSetDevice(0));
}

/* Makes `device` current, and gives its default stream much to do. */
static void keep_busy(const struct scene *scene, int device)
{
  assert_ok(hipSetDevice(device));
  for (int i = 0; i < PENDING; i++) assert_ok(hipMemsetAsync(scene->work[device], i, BYTES, NULL));
}

/* ---- Copies from the memory ---- */

enum how { TO_OWN, TO_OWN_ASYNC, TO_HOST, TO_ITS_DEVICE, BY_NAME, ON_A_STREAM, WITH_PEER, HOWS };

static hipError_t copy(struct scene *scene, enum how how, hipStream_t stream)
{
  switch (how) {
  case TO_OWN: return hipMemcpy(scene->near, scene->far, BYTES, hipMemcpyDefault);
  case TO_OWN_ASYNC: return hipMemcpyAsync(scene->near, scene->far, BYTES, hipMemcpyDeviceToDevice, NULL);
  case TO_HOST: return hipMemcpy(scene->host, scene->far, BYTES, hipMemcpyDeviceToHost);
  case TO_ITS_DEVICE: return hipMemcpy(scene->work[1], scene->far, BYTES, hipMemcpyDeviceToDevice);
  case BY_NAME: return hipMemcpyDtoD(scene->near, scene->far, BYTES);
  case ON_A_STREAM: return hipMemcpyAsync(scene->near, scene->far, BYTES, hipMemcpyDeviceToDevice, stream);
  default: return hipMemcpyPeer(scene->near, 0, scene->far, 1, BYTES);
  }
}

/* What the copy found: OLD or NEW. */
static int found_by(struct scene *scene, enum how how, int current)
{
  hipStream_t stream;
  assert_ok(hipSetDevice(current));
  assert_ok(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  keep_busy(scene, 1);
  assert_ok(hipMemsetAsync(scene->far, NEW, BYTES, NULL));
  assert_ok(hipSetDevice(current));
  assert_ok(copy(scene, how, stream));
  assert_ok(hipStreamSynchronize(how == ON_A_STREAM ? stream : NULL));
  const char *target = how == TO_HOST ? scene->host : how == TO_ITS_DEVICE ? scene->work[1] : scene->near;
  int found = target[0];
  assert_true(found == OLD || found == NEW || how == TO_ITS_DEVICE);
  assert_true(how == TO_ITS_DEVICE || is_filled(target, found, BYTES));
  assert_ok(hipStreamDestroy(stream));
  return found;
}

static void a_copy_waits_for_the_other_device_where_the_memory_is_hipmallocs(void **state)
{
  const struct memory *memory = *state;
  for (int how = 0; how < HOWS; how++)
    for (int current = 0; current < 2; current++) {
      struct scene scene;
      bool waits = current == 1 ? how != ON_A_STREAM : how == WITH_PEER || (memory->is_ordered && how != ON_A_STREAM);
      if (how == TO_ITS_DEVICE && !waits) continue; /* its target is written to meanwhile */
      open_scene(&scene, memory);
      int found = found_by(&scene, (enum how)how, current);
      if (found != (waits ? NEW : OLD)) fail_msg("copy %d, device %d current: found %d", how, current, found);
      close_scene(&scene, memory);
    }
}

/* ---- Copies to the memory, and fills ---- */

/* What work of device 1's default stream that was there before finds: OLD, or what a copy from device 0 has written. */
static void a_copy_comes_after_earlier_reads_of_its_target(void **state)
{
  const struct memory *memory = *state;
  struct scene scene;
  open_scene(&scene, memory);
  assert_ok(hipSetDevice(0));
  assert_ok(hipMemset(scene.near, NEW, BYTES));
  wait_for_both();
  keep_busy(&scene, 1);
  assert_ok(hipMemcpyAsync(scene.work[1], scene.far, BYTES, hipMemcpyDeviceToDevice, NULL));
  assert_ok(hipSetDevice(0));
  assert_ok(hipMemcpy(scene.far, scene.near, BYTES, hipMemcpyDeviceToDevice));
  wait_for_both();
  assert_true(is_filled(scene.far, NEW, BYTES));
  assert_true(is_filled(scene.work[1], memory->is_ordered ? OLD : NEW, BYTES));
  close_scene(&scene, memory);
}

static void later_work_comes_after_a_copy_that_does_not_wait(void **state)
{
  const struct memory *memory = *state;
  struct scene scene;
  open_scene(&scene, memory);
  assert_ok(hipSetDevice(0));
  assert_ok(hipMemset(scene.near, NEW, BYTES));
  wait_for_both();
  keep_busy(&scene, 0);
  assert_ok(hipMemcpyAsync(scene.far, scene.near, BYTES, hipMemcpyDeviceToDevice, NULL));
  assert_ok(hipSetDevice(1));
  assert_ok(hipMemsetAsync(scene.far, OLD, BYTES, NULL));
  wait_for_both();
  assert_true(is_filled(scene.far, memory->is_ordered ? OLD : NEW, BYTES));
  close_scene(&scene, memory);
}

static void a_fill_does_not_wait_for_the_other_device(void **state)
{
  const struct memory *memory = *state;
  struct scene scene;
  open_scene(&scene, memory);
  keep_busy(&scene, 1);
  assert_ok(hipMemsetAsync(scene.far, OLD, BYTES, NULL));
  assert_ok(hipSetDevice(0));
  assert_ok(hipMemsetAsync(scene.far, NEW, BYTES, NULL));
  assert_ok(hipStreamSynchronize(NULL));
  assert_true(is_filled(scene.far, NEW, BYTES));
  wait_for_both();
  assert_true(is_filled(scene.far, OLD, BYTES));
  close_scene(&scene, memory);
}

#define ROW(test, memory)                                                           \
  {                                                                                 \
#memory ": " #test, test, start_stepped, finish, (void *)(uintptr_t) & (memory) \
  }
#define EACH(test) ROW(test, plain), ROW(test, mapped), ROW(test, pooled)

int main(void)
{
  static const struct CMUnitTest tests[] = {
      EACH(a_copy_waits_for_the_other_device_where_the_memory_is_hipmallocs),
      EACH(a_copy_comes_after_earlier_reads_of_its_target),
      EACH(later_work_comes_after_a_copy_that_does_not_wait),
      EACH(a_fill_does_not_wait_for_the_other_device),
  };
  return cmocka_run_group_tests_name("software: order between devices", tests, NULL, NULL);
}
