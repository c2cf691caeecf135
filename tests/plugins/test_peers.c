/* SPDX-License-Identifier: MIT */
/* Tests of device's option "peers": who may write to a device's memory, from hipMalloc and mapped, and what is
 * refused. */
#include "rig.h"

#include <stdio.h>
#include <string.h>

enum { BYTES = 1 << 20 };

#define PEERS(list) "{'type': 'device', 'peers': [" list "]}"
#define BOTH_PEERS  PEERS("{'device': 0}, {'device': 1}")

/* Has `device`, on its default stream, fill a block of device 0's stack. Returns HIP's code. */
static int fill_from(int device, void *ptr, unsigned char value)
{
  int code = rig_hip()->SetDevice(device);
  if (!code) code = rig_hip()->MemsetAsync(ptr, value, BYTES, NULL);
  if (!code) code = rig_hip()->DeviceSynchronize();
  rig_hip()->SetDevice(0);
  return code;
}

struct stack {
  const char *name, *below; /* what stands on the device source */
};

static const struct stack stacks[] = {{"device", ""},
                                      {"segments", "{'type': 'pool', 'growth': 'segments'}, "},
                                      {"mapped", "{'type': 'pool', 'growth': 'mapped'}, "}};

static void start(const struct stack *stack, const char *device)
{
  char graph[300];
  snprintf(graph, sizeof graph, "'stack': [%s%s]", stack->below, device);
  rig_start(graph);
}

static void is_closed_to_others(void **state)
{
  start(*state, "'device'");
  void *ptr = rig_allocate(BYTES, NULL);
  rig_fill(ptr, 7, BYTES);
  assert_int_equal(fill_from(1, ptr, 8), HIPMM_HIP_ERROR_INVALID_VALUE);
  rig_hip()->GetLastError();
  assert_true(rig_holds(ptr, 7, BYTES));
  rig_free(ptr, BYTES, NULL);
}

static void is_open_to_peers(void **state)
{
  start(*state, PEERS("{'device': 1}"));
  void *ptr[20];
  for (int i = 0; i < 20; i++) ptr[i] = rig_allocate(BYTES, NULL); /* later memory too */
  for (int i = 0; i < 20; i++) assert_int_equal(fill_from(1, ptr[i], (unsigned char)(i + 1)), 0);
  for (int i = 0; i < 20; i++) assert_true(rig_holds(ptr[i], (unsigned char)(i + 1), BYTES));
  for (int i = 0; i < 20; i++) rig_free(ptr[i], BYTES, NULL);
}

static void lets_a_graph_name_all_devices(void **state)
{
  void *ptr[2] = {0};
  struct hipmm_resource *top[2];
  start(*state, BOTH_PEERS);
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_get_device_resource(i, &top[i]));
    hipmm_resource_release(top[i]);
    assert_ok(hipmm_allocate(top[i], BYTES, NULL, &ptr[i]));
  }
  for (int i = 0; i < 2; i++) assert_int_equal(fill_from(1 - i, ptr[i], (unsigned char)(i + 3)), 0);
  for (int i = 0; i < 2; i++) assert_true(rig_holds(ptr[i], (unsigned char)(i + 3), BYTES));
  for (int i = 0; i < 2; i++) assert_ok(hipmm_deallocate(top[i], ptr[i], BYTES, NULL));
}

static void may_be_asked_for_again(void **state)
{
  for (int i = 0; i < 3; i++) {
    start(*state, PEERS("{'device': 1}, {'device': 1}"));
    void *ptr = rig_allocate(BYTES, NULL);
    assert_int_equal(fill_from(1, ptr, 9), 0);
    rig_free(ptr, BYTES, NULL);
    assert_int_equal(rig_hip()->GetLastError(), 0);
    assert_ok(hipmm_finalize());
  }
}

static void leaves_the_current_device_as_it_was(void **state)
{
  int device = -1;
  start(*state, PEERS("{'device': 1}"));
  rig_free(rig_allocate(BYTES, NULL), BYTES, NULL);
  assert_int_equal(rig_hip()->GetDevice(&device), 0);
  assert_int_equal(device, 0);
}

static void refuses_devices_that_do_not_exist(void **state)
{
  (void)state;
  assert_status(rig_try("", "'stack': [" PEERS("{'device': 2}") "]"), HIPMM_E_CONFIG);
  assert_message("/stack/0/peers/0");
  assert_message("device 2 does not exist: there are 2");
  hipmm_finalize();
  assert_status(rig_try("", "'stack': [" PEERS("{'device': -1}") "]"), HIPMM_E_CONFIG);
  assert_message("/stack/0/peers/0/device");
  assert_status(rig_try("", "'stack': [" PEERS("{'devise': 1}") "]"), HIPMM_E_CONFIG);
  assert_message("did you mean \"device\"");
  assert_status(rig_try("", "'stack': [" PEERS("{}") "]"), HIPMM_E_CONFIG);
  assert_message("/stack/0/peers/0");
}

static int cannot(int *can_access, int device, int peer)
{
  (void)device, (void)peer;
  *can_access = 0;
  return 0;
}

static void refuses_devices_that_cannot(void **state)
{
  (void)state;
  rig_start("'stack': ['device']"); /* loads the runtime */
  assert_ok(hipmm_finalize());
  struct hipmm_hip *table = rig_lend_hip();
  table->DeviceCanAccessPeer = cannot;
  enum hipmm_status status = rig_try("", "'stack': [" PEERS("{'device': 1}") "]");
  table->DeviceCanAccessPeer = NULL;
  assert_status(status, HIPMM_E_NOT_SUPPORTED);
  assert_message("device 1 cannot reach the memory of device 0");
  hipmm_finalize();
  status = rig_try("", "'stack': [" PEERS("{'device': 1}") "]");
  rig_take_hip_back();
  assert_status(status, HIPMM_E_NOT_SUPPORTED);
  assert_message("hipDeviceCanAccessPeer");
}

static void allocate_and_free(void)
{
  void *ptr;
  if (!hipmm_allocate(NULL, BYTES, NULL, &ptr)) hipmm_deallocate(NULL, ptr, BYTES, NULL);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  char graph[300];
  const struct stack *stack = *state;
  snprintf(graph, sizeof graph, "'stack': [%s%s]", stack->below, BOTH_PEERS);
  assert_in_range(rig_fail_each_call("", graph, allocate_and_free), 5, 1000);
}

#define ONCE(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
#define ROW(test, row)                                                              \
  {                                                                                 \
#row ": " #test, test, rig_setup, rig_teardown, (void *)(uintptr_t)&stacks[row] \
  }
enum { DEVICE, SEGMENTS, MAPPED };
#define EACH(test) ROW(test, DEVICE), ROW(test, SEGMENTS), ROW(test, MAPPED)

int main(void)
{
  const struct CMUnitTest tests[] = {
      EACH(is_closed_to_others),
      EACH(is_open_to_peers),
      EACH(lets_a_graph_name_all_devices),
      EACH(may_be_asked_for_again),
      EACH(leaves_the_current_device_as_it_was),
      EACH(loses_nothing_whatever_call_fails),
      ONCE(refuses_devices_that_do_not_exist),
      ONCE(refuses_devices_that_cannot),
  };
  return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
