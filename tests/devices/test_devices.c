/* SPDX-License-Identifier: MIT */
/* Several devices in one process: a stack for each, data on both, and each refuses what is the other's. Over two
 * software devices, or the GPUs that HIPMM_RUNTIME names. */
#include "data.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEVICES = 2, BYTES = 3 << 20, ROUNDS = 200, ON_DEVICE = 3 };

static struct hipmm_resource *top[DEVICES];

static void start(const char *stack)
{
  data_start(stack);
  for (int i = 0; i < DEVICES; i++) {
    assert_ok(hipmm_resource_get_for_device(i, &top[i]));
    hipmm_resource_release(top[i]);
  }
}

static void *allocate_on(int device, unsigned char value)
{
  void *ptr = NULL;
  assert_int_equal(data_hip()->SetDevice(device), 0);
  assert_ok(hipmm_allocate(top[device], BYTES, NULL, &ptr));
  data_fill(ptr, value, BYTES, NULL);
  return ptr;
}

static void assert_on(int device, const void *ptr, unsigned char value)
{
  assert_int_equal(data_hip()->SetDevice(device), 0);
  assert_true(data_holds(ptr, value, BYTES));
}

static int back_to_the_first(void **state)
{
  data_hip()->SetDevice(0);
  return data_teardown(state);
}

static void keeps_data_on_both(void **state)
{
  void *ptr[DEVICES][8];
  size_t held[DEVICES];
  start(*state);
  for (unsigned char k = 0; k < 8; k++)
    for (unsigned char i = 0; i < DEVICES; i++) ptr[i][k] = allocate_on(i, (unsigned char)(16 * i + k + 1));
  for (unsigned char k = 0; k < 8; k++)
    for (unsigned char i = 0; i < DEVICES; i++) assert_on(i, ptr[i][k], (unsigned char)(16 * i + k + 1));
  for (int i = 0; i < DEVICES; i++) {
    assert_ok(hipmm_device_held_bytes(i, &held[i], NULL));
    assert_in_range(held[i], 8 * BYTES, SIZE_MAX);
    for (int k = 0; k < 8; k++) assert_ok(hipmm_deallocate(top[i], ptr[i][k], BYTES, NULL));
  }
}

static void refuses_the_other_devices_blocks(void **state)
{
  void *ptr[DEVICES];
  start(*state);
  for (unsigned char i = 0; i < DEVICES; i++) ptr[i] = allocate_on(i, (unsigned char)(i + 1));
  for (int i = 0; i < DEVICES; i++) {
    assert_status(hipmm_deallocate(top[i], ptr[1 - i], BYTES, NULL), HIPMM_E_POINTER);
    assert_status(hipmm_deallocate(top[i], ptr[1 - i], 0, NULL), HIPMM_E_POINTER);
  }
  for (unsigned char i = 0; i < DEVICES; i++) {
    assert_on(i, ptr[i], (unsigned char)(i + 1));
    assert_ok(hipmm_deallocate(top[i], ptr[i], BYTES, NULL));
    assert_status(hipmm_deallocate(top[i], ptr[i], BYTES, NULL), HIPMM_E_POINTER);
  }
}

/* What is current decides nothing but where NULL goes. */
static void allocates_on_its_own_device_whatever_is_current(void **state)
{
  void *ptr = NULL, *current = NULL;
  start(*state);
  assert_int_equal(data_hip()->SetDevice(0), 0);
  assert_ok(hipmm_allocate(top[1], BYTES, NULL, &ptr));
  int device = -1;
  assert_int_equal(data_hip()->GetDevice(&device), 0);
  assert_int_equal(device, 0);
  assert_int_equal(data_hip()->SetDevice(1), 0);
  data_fill(ptr, 0x77, BYTES, NULL);
  assert_true(data_holds(ptr, 0x77, BYTES));
  assert_ok(hipmm_allocate(NULL, BYTES, NULL, &current));
  assert_ok(hipmm_deallocate(top[1], current, BYTES, NULL));
  assert_int_equal(data_hip()->SetDevice(0), 0);
  assert_ok(hipmm_deallocate(top[1], ptr, BYTES, NULL));
}

/* ---- Peers ---- */

static void needs_peers(void)
{
  int reaches[DEVICES] = {0};
  data_start("['device']");
  for (int i = 0; i < DEVICES; i++) assert_int_equal(data_hip()->DeviceCanAccessPeer(&reaches[i], i, 1 - i), 0);
  assert_ok(hipmm_finalize());
  if (!reaches[0] || !reaches[1]) skip();
}

/* Each device's own work writes to the other's memory, and copies from it. */
static void lets_peers_use_each_others_memory(void **state)
{
  void *ptr[DEVICES], *copy[DEVICES];
  needs_peers();
  start(*state);
  for (int i = 0; i < DEVICES; i++) {
    ptr[i] = allocate_on(i, 0xFF);
    copy[i] = allocate_on(i, 0xFE);
    assert_int_equal(data_hip()->DeviceSynchronize(), 0);
  }
  for (int i = 0; i < DEVICES; i++) {
    assert_int_equal(data_hip()->SetDevice(i), 0);
    data_fill(ptr[1 - i], (unsigned char)(i + 1), BYTES, NULL);
    assert_int_equal(data_hip()->MemcpyAsync(copy[i], ptr[1 - i], BYTES, ON_DEVICE, NULL), 0);
    assert_int_equal(data_hip()->DeviceSynchronize(), 0);
  }
  for (int i = 0; i < DEVICES; i++) {
    assert_on(i, ptr[i], (unsigned char)(2 - i));
    assert_on(i, copy[i], (unsigned char)(i + 1));
    assert_ok(hipmm_deallocate(top[i], ptr[i], BYTES, NULL));
    assert_ok(hipmm_deallocate(top[i], copy[i], BYTES, NULL));
  }
}

/* ---- Threads ---- */

struct worker {
  pthread_t thread;
  int device;
  unsigned wrong;
};

static void *work(void *closure)
{
  struct worker *worker = closure;
  const struct hipmm_hip *hip = data_hip();
  hipmm_stream_t stream = NULL;
  unsigned char last = 0;
  worker->wrong += hip->SetDevice(worker->device) != 0;
  worker->wrong += hip->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING) != 0;
  for (int i = 0; i < ROUNDS; i++) {
    void *ptr = NULL;
    size_t bytes = (size_t)(1 + i % 37) * 64 * 1024;
    worker->wrong += hipmm_allocate(NULL, bytes, stream, &ptr) != HIPMM_OK;
    worker->wrong += hip->MemsetAsync(ptr, i, bytes, stream) != 0;
    worker->wrong += hip->MemcpyAsync(&last, (char *)ptr + bytes - 1, 1, 2, stream) != 0;
    worker->wrong += hipmm_deallocate(NULL, ptr, bytes, stream) != HIPMM_OK;
    worker->wrong += hip->StreamSynchronize(stream) != 0;
    worker->wrong += last != (unsigned char)i;
  }
  worker->wrong += hip->StreamDestroy(stream) != 0;
  return NULL;
}

static void works_in_threads_of_both(void **state)
{
  struct worker workers[2 * DEVICES] = {0};
  start(*state);
  for (int i = 0; i < 2 * DEVICES; i++) {
    workers[i].device = i % DEVICES;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < 2 * DEVICES; i++) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < 2 * DEVICES; i++) assert_int_equal(workers[i].wrong, 0);
}

#define ROW(text, test, stack) DATA_ROW(text, test, back_to_the_first, stack)
#define EACH(test)             DATA_ROWS(test, back_to_the_first), ROW("async: " #test, test, "['async']")

#define PEERS "{'type': 'device', 'peers': [{'device': 0}, {'device': 1}]}"

int main(void)
{
  int count = 0;
  const struct CMUnitTest tests[] = {
      EACH(keeps_data_on_both),
      EACH(refuses_the_other_devices_blocks),
      EACH(allocates_on_its_own_device_whatever_is_current),
      EACH(works_in_threads_of_both),
      ROW("mapped: lets_peers_use_each_others_memory", lets_peers_use_each_others_memory,
          "[{'type': 'pool', 'growth': 'mapped'}, " PEERS "]"),
      ROW("segments: lets_peers_use_each_others_memory", lets_peers_use_each_others_memory,
          "[{'type': 'pool', 'growth': 'segments'}, " PEERS "]"),
      ROW("device: lets_peers_use_each_others_memory", lets_peers_use_each_others_memory, "[" PEERS "]"),
  };
  data_start("['device']");
  if (hipmm_device_count(&count) || hipmm_finalize()) return 1;
  if (count < DEVICES) {
    printf("1..0 # SKIP there is only %d device\n", count);
    return 0;
  }
  return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
