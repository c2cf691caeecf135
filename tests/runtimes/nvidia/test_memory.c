/* SPDX-License-Identifier: MIT */
/* test_memory.c: device, host and managed memory, copies and fills, other processes: how the driver is called. */
#include "runtime.h"
#include <string.h>

static void device_memory_is_the_drivers(void **state)
{
  (void)state;
  void *ptr = NULL;
  assert_ok(hipMalloc(&ptr, 1000));
  assert_called("cuMemAlloc", 1000);
  assert_ptr_equal(ptr, POINTER(FAKE_ADDRESS));
  assert_ok(hipFree(ptr));
  assert_called("cuMemFree", FAKE_ADDRESS);
  assert_ok(hipExtMallocWithFlags(&ptr, 8, hipDeviceMallocDefault));
  assert_called("cuMemAlloc", 8);
  assert_error(hipExtMallocWithFlags(&ptr, 8, hipDeviceMallocFinegrained), hipErrorNotSupported);
  assert_error(hipExtMallocWithFlags(&ptr, 8, 99), hipErrorInvalidValue);
}

static void nothing_is_no_error_and_no_call(void **state)
{
  (void)state;
  void *ptr = POINTER(1);
  assert_ok(hipMalloc(&ptr, 0));
  assert_null(ptr);
  ptr = POINTER(1);
  assert_ok(hipHostMalloc(&ptr, 0, 0));
  assert_null(ptr);
  ptr = POINTER(1);
  size_t pitch = 1;
  assert_ok(hipMallocPitch(&ptr, &pitch, 0, 5));
  assert_null(ptr);
  ptr = POINTER(1);
  assert_ok(hipMallocAsync(&ptr, 0, NULL));
  assert_null(ptr);
  assert_ok(hipFree(NULL));
  assert_ok(hipHostFree(NULL));
  assert_ok(hipMemcpy(NULL, NULL, 0, hipMemcpyDefault));
  assert_ok(hipMemcpyAsync(NULL, NULL, 0, hipMemcpyDefault, NULL));
  assert_ok(hipMemset(NULL, 1, 0));
  assert_ok(hipMemsetAsync(NULL, 1, 0, NULL));
  assert_ok(hipMemsetD16(NULL, 1, 0));
  assert_ok(hipMemsetD16Async(NULL, 1, 0, NULL));
  assert_ok(hipMemsetD32(NULL, 1, 0));
  assert_ok(hipMemsetD32Async(NULL, 1, 0, NULL));
  assert_not_called();
}

static void a_failure_writes_no_result(void **state)
{
  (void)state;
  void *ptr = POINTER(1);
  fake->failure = CUDA_ERROR_OUT_OF_MEMORY;
  fake->fails = "cuMemAlloc";
  assert_error(hipMalloc(&ptr, 1), hipErrorOutOfMemory);
  fake->fails = "cuMemHostAlloc";
  assert_error(hipHostMalloc(&ptr, 1, 0), hipErrorOutOfMemory);
  fake->fails = "cuMemAllocManaged";
  assert_error(hipMallocManaged(&ptr, 1, hipMemAttachGlobal), hipErrorOutOfMemory);
  fake->fails = "cuMemAllocAsync";
  assert_error(hipMallocAsync(&ptr, 1, NULL), hipErrorOutOfMemory);
  fake->fails = "cuMemAddressReserve";
  assert_error(hipMemAddressReserve(&ptr, 1, 0, NULL, 0), hipErrorOutOfMemory);
  assert_ptr_equal(ptr, POINTER(1));
}

static void nowhere_to_put_the_result_is_refused(void **state)
{
  (void)state;
  size_t bytes;
  assert_error(hipMalloc(NULL, 1), hipErrorInvalidValue);
  assert_error(hipMalloc(NULL, 0), hipErrorInvalidValue);
  assert_error(hipHostMalloc(NULL, 1, 0), hipErrorInvalidValue);
  assert_error(hipMallocManaged(NULL, 1, hipMemAttachGlobal), hipErrorInvalidValue);
  assert_error(hipMallocPitch(NULL, &bytes, 1, 1), hipErrorInvalidValue);
  assert_error(hipMemGetInfo(NULL, &bytes), hipErrorInvalidValue);
  assert_error(hipMemGetAddressRange(NULL, NULL, POINTER(FAKE_ADDRESS)), hipErrorInvalidValue);
  assert_error(hipMemPtrGetInfo(POINTER(FAKE_ADDRESS), NULL), hipErrorInvalidValue);
  assert_error(hipPointerGetAttributes(NULL, POINTER(FAKE_ADDRESS)), hipErrorInvalidValue);
  assert_error(hipHostGetDevicePointer(NULL, POINTER(FAKE_HOST), 0), hipErrorInvalidValue);
  assert_error(hipHostGetFlags(NULL, POINTER(FAKE_HOST)), hipErrorInvalidValue);
  assert_not_called();
}

static void questions_about_memory_are_answered(void **state)
{
  (void)state;
  size_t free_bytes = 0, total_bytes = 0, bytes = 0;
  hipDeviceptr_t base = NULL;
  assert_ok(hipMemGetInfo(&free_bytes, &total_bytes));
  assert_int_equal(free_bytes, 600);
  assert_int_equal(total_bytes, 1000);
  fake->calls = 0;
  assert_ok(hipMemGetAddressRange(&base, &bytes, POINTER(FAKE_ADDRESS + 10)));
  assert_called("cuMemGetAddressRange", FAKE_ADDRESS + 10);
  assert_ptr_equal(base, POINTER(FAKE_ADDRESS));
  assert_int_equal(bytes, 4096);
  assert_ok(hipMemPtrGetInfo(POINTER(FAKE_ADDRESS), &bytes));
  assert_error(hipMemPtrGetInfo(POINTER(FAKE_ADDRESS + 10), &bytes), hipErrorInvalidValue);
}

static void pointers_are_known_by_their_memory(void **state)
{
  (void)state;
  hipPointerAttribute_t attributes;
  assert_ok(hipPointerGetAttributes(&attributes, POINTER(FAKE_ADDRESS + 8)));
  assert_int_equal(attributes.device, 1);
  assert_ptr_equal(attributes.devicePointer, POINTER(FAKE_ADDRESS + 8));
  assert_null(attributes.hostPointer);
  assert_false(attributes.isManaged);
  assert_ok(hipPointerGetAttributes(&attributes, POINTER(FAKE_HOST)));
  assert_ptr_equal(attributes.hostPointer, POINTER(FAKE_HOST));
  assert_int_equal(attributes.allocationFlags, hipHostMallocPortable);
  assert_ok(hipPointerGetAttributes(&attributes, POINTER(FAKE_HANDLE)));
  assert_true(attributes.isManaged);
#if HIP_VERSION < 60000000
  assert_int_equal(attributes.memoryType, hipMemoryTypeDevice);
  assert_error(hipPointerGetAttributes(&attributes, POINTER(0x1234)), hipErrorInvalidValue);
#endif
}

static void host_memory_takes_only_flags_that_cuda_knows_along(void **state)
{
  (void)state;
  void *ptr = NULL;
  unsigned flags = 0;
  assert_ok(hipHostMalloc(&ptr, 64, hipHostMallocPortable | hipHostMallocWriteCombined | hipHostMallocCoherent));
  assert_called("cuMemHostAlloc", 64, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED);
  assert_ptr_equal(ptr, POINTER(FAKE_HOST));
  assert_error(hipHostMalloc(&ptr, 64, 0x40), hipErrorInvalidValue);
  assert_ok(hipHostFree(ptr));
  assert_called("cuMemFreeHost", FAKE_HOST);
  assert_ok(hipHostRegister(ptr, 4096, hipHostRegisterMapped | hipExtHostRegisterCoarseGrained));
  assert_called("cuMemHostRegister", FAKE_HOST, 4096, CU_MEMHOSTREGISTER_DEVICEMAP);
  assert_ok(hipHostUnregister(ptr));
  assert_called("cuMemHostUnregister", FAKE_HOST);
  assert_ok(hipHostGetDevicePointer(&ptr, POINTER(FAKE_HOST), 0));
  assert_called("cuMemHostGetDevicePointer", FAKE_HOST, 0);
  assert_ok(hipHostGetFlags(&flags, ptr));
  assert_int_equal(flags, hipHostMallocPortable);
}

static void managed_memory_is_advised_and_moved(void **state)
{
  (void)state;
  void *ptr = NULL;
  int value = 3;
  assert_ok(hipMallocManaged(&ptr, 4096, hipMemAttachHost));
  assert_called("cuMemAllocManaged", 4096, CU_MEM_ATTACH_HOST);
  assert_error(hipMallocManaged(&ptr, 4096, 0), hipErrorInvalidValue);
  assert_ok(hipMemAdvise(ptr, 4096, hipMemAdviseSetPreferredLocation, hipCpuDeviceId));
  assert_called("cuMemAdvise", FAKE_ADDRESS, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, (uint64_t)-1);
  assert_ok(hipMemAdvise(ptr, 4096, hipMemAdviseSetCoarseGrain, 0));
  assert_not_called();
  assert_error(hipMemAdvise(ptr, 4096, (hipMemoryAdvise)77, 0), hipErrorInvalidValue);
  assert_ok(hipMemPrefetchAsync(ptr, 4096, 1, hipStreamPerThread));
  assert_called("cuMemPrefetchAsync", FAKE_ADDRESS, 4096, 1, 2);
  const hipMemLocation node = {(hipMemLocationType)CU_MEM_LOCATION_TYPE_HOST_NUMA, 1};
  assert_ok(hipMemAdvise_v2(ptr, 4096, hipMemAdviseSetPreferredLocation, node));
  assert_called("cuMemAdvise_v2", FAKE_ADDRESS, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, node.type, 1);
  assert_ok(hipMemAdvise_v2(ptr, 4096, hipMemAdviseUnsetCoarseGrain, node));
  assert_not_called();
  assert_error(hipMemAdvise_v2(ptr, 4096, (hipMemoryAdvise)77, node), hipErrorInvalidValue);
  assert_ok(hipMemPrefetchAsync_v2(ptr, 4096, node, 0, hipStreamPerThread));
  assert_called("cuMemPrefetchAsync_v2", FAKE_ADDRESS, 4096, (uint64_t)node.type << 32 | 1, 0, 2);
  assert_ok(hipMemRangeGetAttribute(&value, sizeof value, hipMemRangeAttributePreferredLocation, ptr, 4096));
  assert_called("cuMemRangeGetAttribute", sizeof value, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, FAKE_ADDRESS, 4096);
  assert_error(hipMemRangeGetAttribute(&value, sizeof value, hipMemRangeAttributeCoherencyMode, ptr, 4096),
               hipErrorNotSupported);
}

static void copies_go_by_address_in_any_direction(void **state)
{
  (void)state;
  void *to = POINTER(FAKE_ADDRESS), *from = POINTER(FAKE_HOST), *stream = POINTER(FAKE_STREAM);
  for (int kind = hipMemcpyHostToHost; kind <= hipMemcpyDefault; kind++) {
    assert_ok(hipMemcpy(to, from, 30, (hipMemcpyKind)kind));
    assert_called("cuMemcpy", FAKE_ADDRESS, FAKE_HOST, 30);
    assert_ok(hipMemcpyAsync(to, from, 31, (hipMemcpyKind)kind, stream));
    assert_called("cuMemcpyAsync", FAKE_ADDRESS, FAKE_HOST, 31, FAKE_STREAM);
  }
  assert_error(hipMemcpy(to, from, 30, (hipMemcpyKind)5), hipErrorInvalidMemcpyDirection);
  assert_error(hipMemcpyAsync(to, from, 30, (hipMemcpyKind)-1, stream), hipErrorInvalidMemcpyDirection);
  assert_not_called();
  assert_ok(hipMemcpyPeerAsync(to, 1, from, 0, 32, stream));
  assert_called("cuMemcpyAsync", FAKE_ADDRESS, FAKE_HOST, 32, FAKE_STREAM);
  assert_ok(hipMemcpyWithStream(to, from, 33, hipMemcpyDefault, stream));
  assert_int_equal(fake->calls, 2);
  assert_string_equal(fake->last.name, "cuStreamSynchronize");
}

/* Mapped memory to which the current device has no access: the driver copies it when it gets both devices. */
static void copies_that_name_both_devices_need_no_access(void **state)
{
  (void)state;
  void *to = POINTER(FAKE_ADDRESS), *from = POINTER(FAKE_HOST), *stream = POINTER(FAKE_STREAM);
  CUstream given;
  assert_ok(hipMemcpyPeer(to, 1, from, 0, 32));
  assert_called("cuMemcpy", FAKE_ADDRESS, FAKE_HOST, 32);
  fake->failure = CUDA_ERROR_ILLEGAL_ADDRESS;
  fake->fails = "cuMemcpy";
  assert_error(hipMemcpyPeer(to, 1, from, 0, 32), hipErrorIllegalAddress);
  assert_string_equal(fake->last.name, "cuMemcpy");
  fake->failure = CUDA_ERROR_INVALID_VALUE;
  assert_ok(hipMemcpyPeer(to, 1, from, 0, 32));
  assert_string_equal(fake->last.name, "cuMemcpyPeer");
  assert_int_equal(fake->last.arguments[0], FAKE_ADDRESS);
  assert_int_equal(fake->last.arguments[1], FAKE_CONTEXT(1));
  assert_int_equal(fake->last.arguments[2], FAKE_HOST);
  assert_int_equal(fake->last.arguments[3], FAKE_CONTEXT(0));
  assert_int_equal(fake->last.arguments[4], 32);
  fake->fails = "cuMemcpyAsync";
  assert_ok(hipMemcpyPeerAsync(to, 0, from, 1, 33, stream));
  assert_string_equal(fake->last.name, "cuMemcpyPeerAsync");
  assert_int_equal(fake->last.arguments[1], FAKE_CONTEXT(0));
  assert_int_equal(fake->last.arguments[3], FAKE_CONTEXT(1));
  assert_int_equal(fake->last.arguments[4], 33);
  memcpy(&given, fake->last.data, sizeof given);
  assert_ptr_equal(given, stream);
  assert_error(hipMemcpyAsync(to, from, 33, hipMemcpyDefault, stream), hipErrorInvalidValue);
  fake->failure = CUDA_ERROR_ILLEGAL_ADDRESS;
  assert_error(hipMemcpyPeerAsync(to, 0, from, 1, 33, stream), hipErrorIllegalAddress);
  assert_string_equal(fake->last.name, "cuMemcpyAsync");
  fake->fails = NULL;
}

static void assert_copied_as_it_is(void *to, void *from)
{
  CUcontext before = current();
  assert_ok(hipMemcpyAsync(to, from, 0x1000, hipMemcpyDefault, POINTER(FAKE_STREAM)));
  assert_string_equal(fake->last.name, "cuMemcpyAsync");
  assert_int_equal(fake->last.arguments[2], 0x1000);
  assert_ptr_equal(current(), before);
}

static void copies_over_a_border_of_pieces_go_by_the_stream(void **state)
{
  (void)state;
  void *across = POINTER(FAKE_BORDER - 0x800), *host = POINTER(FAKE_HOST);
  static const uint64_t contexts[] = {0, FAKE_CONTEXT(0), FAKE_CONTEXT(1)};
  for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
    set_current(POINTER(contexts[i]));
    assert_copied_as_it_is(host, across);
    assert_copied_as_it_is(across, host);
    assert_copied_as_it_is(host, POINTER(FAKE_BORDER));
  }
}

/* The caller's context stays current, whatever fails. */
static void a_copy_whose_stream_cannot_be_entered_says_why(void **state)
{
  (void)state;
  void *across = POINTER(FAKE_BORDER - 0x800), *host = POINTER(FAKE_HOST);
  fake->fails = "cuCtxPushCurrent";
  fake->failure = CUDA_ERROR_OUT_OF_MEMORY;
  assert_error(hipMemcpyAsync(host, across, 0x1000, hipMemcpyDefault, POINTER(FAKE_STREAM)), hipErrorOutOfMemory);
  assert_ptr_equal(current(), POINTER(FAKE_CONTEXT(0)));
  fake->fails = "cuStreamGetCtx";
  assert_error(hipMemcpyAsync(host, across, 0x1000, hipMemcpyDefault, POINTER(FAKE_STREAM)), hipErrorInvalidValue);
  assert_ptr_equal(current(), POINTER(FAKE_CONTEXT(0)));
}

/* Where the stream's context is current already, a second try would fail like the first. */
static void a_copy_is_tried_once_where_the_stream_is(void **state)
{
  (void)state;
  set_current(POINTER(FAKE_CONTEXT(1)));
  fake->fails = "cuMemcpyAsync";
  fake->failure = CUDA_ERROR_INVALID_VALUE;
  assert_error(hipMemcpyAsync(POINTER(FAKE_ADDRESS), POINTER(FAKE_HOST), 8, hipMemcpyDefault, POINTER(FAKE_STREAM)),
               hipErrorInvalidValue);
  assert_int_equal(fake->calls, 2); /* the copy, and the question for the context */
  assert_string_equal(fake->last.name, "cuStreamGetCtx");
}

static void a_copy_that_is_wrong_everywhere_is_refused(void **state)
{
  (void)state;
  fake->fails = "cuMemcpyAsync";
  fake->failure = CUDA_ERROR_INVALID_VALUE;
  void *to = POINTER(FAKE_ADDRESS), *from = POINTER(FAKE_HOST);
  assert_error(hipMemcpyAsync(to, from, 8, hipMemcpyDefault, POINTER(FAKE_STREAM)), hipErrorInvalidValue);
  assert_error(hipMemcpyAsync(to, from, 8, hipMemcpyDefault, NULL), hipErrorInvalidValue);
  assert_ptr_equal(current(), POINTER(FAKE_CONTEXT(0)));
}

static void fills_take_the_low_byte(void **state)
{
  (void)state;
  void *ptr = POINTER(FAKE_ADDRESS), *stream = POINTER(FAKE_STREAM);
  assert_ok(hipMemset(ptr, 0x1ab, 10));
  assert_called("cuMemsetD8", FAKE_ADDRESS, 0xab, 10);
  assert_ok(hipMemsetAsync(ptr, -1, 11, stream));
  assert_called("cuMemsetD8Async", FAKE_ADDRESS, 0xff, 11, FAKE_STREAM);
  assert_ok(hipMemsetD16(ptr, 0xfffe, 12));
  assert_called("cuMemsetD16", FAKE_ADDRESS, 0xfffe, 12);
  assert_ok(hipMemsetD16Async(ptr, 7, 13, stream));
  assert_called("cuMemsetD16Async", FAKE_ADDRESS, 7, 13, FAKE_STREAM);
  assert_ok(hipMemsetD32(ptr, -2, 12));
  assert_called("cuMemsetD32", FAKE_ADDRESS, 0xfffffffe, 12);
  assert_ok(hipMemsetD32Async(ptr, 7, 13, stream));
  assert_called("cuMemsetD32Async", FAKE_ADDRESS, 7, 13, FAKE_STREAM);
}

static void copies_have_a_direction_in_their_name(void **state)
{
  (void)state;
  hipStream_t stream = POINTER(FAKE_STREAM);
  void *device = POINTER(FAKE_ADDRESS), *host = POINTER(FAKE_HOST);
  assert_ok(hipMemcpyHtoD(device, host, 5));
  assert_called("cuMemcpy", FAKE_ADDRESS, FAKE_HOST, 5);
  assert_ok(hipMemcpyDtoH(host, device, 6));
  assert_called("cuMemcpy", FAKE_HOST, FAKE_ADDRESS, 6);
  assert_ok(hipMemcpyDtoD(device, device, 7));
  assert_called("cuMemcpy", FAKE_ADDRESS, FAKE_ADDRESS, 7);
  assert_ok(hipMemcpyHtoDAsync(device, host, 8, stream));
  assert_called("cuMemcpyAsync", FAKE_ADDRESS, FAKE_HOST, 8, FAKE_STREAM);
  assert_ok(hipMemcpyDtoHAsync(host, device, 9, stream));
  assert_called("cuMemcpyAsync", FAKE_HOST, FAKE_ADDRESS, 9, FAKE_STREAM);
  assert_ok(hipMemcpyDtoDAsync(device, device, 10, stream));
  assert_called("cuMemcpyAsync", FAKE_ADDRESS, FAKE_ADDRESS, 10, FAKE_STREAM);
  assert_ok(hipMemcpy(device, device, 11, (hipMemcpyKind)1024)); /* hipMemcpyDeviceToDeviceNoCU */
  assert_called("cuMemcpy", FAKE_ADDRESS, FAKE_ADDRESS, 11);
}

static void rows_are_the_drivers(void **state)
{
  (void)state;
  void *ptr = POINTER(1);
  size_t pitch = 3;
  assert_ok(hipMallocPitch(&ptr, &pitch, 500, 7));
  assert_called("cuMemAllocPitch", 500, 7, 16);
  assert_ptr_equal(ptr, POINTER(FAKE_ADDRESS));
  assert_int_equal(pitch, 512);
  pitch = 3;
  fake->fails = "cuMemAllocPitch";
  fake->failure = CUDA_ERROR_OUT_OF_MEMORY;
  assert_error(hipMallocPitch(&ptr, &pitch, 500, 7), hipErrorOutOfMemory);
  assert_int_equal(pitch, 3);
}

static void a_pointer_has_single_attributes(void **state)
{
  (void)state;
  unsigned number = 9;
  bool truth = false;
  void *address = NULL;
  assert_ok(hipPointerGetAttribute(&number, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, POINTER(FAKE_ADDRESS)));
  assert_int_equal(number, hipMemoryTypeDevice);
  assert_ok(hipPointerGetAttribute(&number, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, POINTER(FAKE_HOST)));
  assert_int_equal(number, hipMemoryTypeHost);
  assert_ok(hipPointerGetAttribute(&number, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, POINTER(FAKE_ADDRESS)));
  assert_int_equal(number, 1);
  assert_ok(hipPointerGetAttribute(&truth, HIP_POINTER_ATTRIBUTE_IS_MANAGED, POINTER(FAKE_HANDLE)));
  assert_true(truth);
  assert_ok(hipPointerGetAttribute(&truth, HIP_POINTER_ATTRIBUTE_IS_MANAGED, POINTER(FAKE_ADDRESS)));
  assert_false(truth);
  assert_ok(hipPointerGetAttribute(&address, HIP_POINTER_ATTRIBUTE_HOST_POINTER, POINTER(FAKE_HOST)));
  assert_ptr_equal(address, POINTER(FAKE_HOST));
  assert_error(hipPointerGetAttribute(&address, HIP_POINTER_ATTRIBUTE_HOST_POINTER, POINTER(FAKE_ADDRESS)),
               hipErrorInvalidValue);
  assert_error(hipPointerGetAttribute(&number, HIP_POINTER_ATTRIBUTE_CONTEXT, POINTER(FAKE_HOST)),
               hipErrorNotSupported);
  assert_error(hipPointerGetAttribute(&number, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, POINTER(64)), hipErrorInvalidValue);
  assert_error(hipPointerGetAttribute(NULL, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, POINTER(FAKE_HOST)),
               hipErrorInvalidValue);
}

static void ranges_and_streams_of_managed_memory_are_the_drivers(void **state)
{
  (void)state;
  int first = -1, second = -1;
  void *data[] = {&first, &second};
  size_t sizes[] = {sizeof first, sizeof second};
  hipMemRangeAttribute attributes[] = {hipMemRangeAttributeReadMostly, hipMemRangeAttributePreferredLocation};
  assert_ok(hipMemRangeGetAttributes(data, sizes, attributes, 2, POINTER(FAKE_ADDRESS), 100));
  assert_called("cuMemRangeGetAttributes", 2, FAKE_ADDRESS, 100);
  assert_int_equal(first, 0x01010101);
  assert_int_equal(second, 0x02020202);
  attributes[1] = hipMemRangeAttributeCoherencyMode;
  assert_error(hipMemRangeGetAttributes(data, sizes, attributes, 2, POINTER(FAKE_ADDRESS), 100), hipErrorNotSupported);
  assert_error(hipMemRangeGetAttributes(data, sizes, attributes, 0, POINTER(FAKE_ADDRESS), 100), hipErrorInvalidValue);
  assert_ok(hipStreamAttachMemAsync(POINTER(FAKE_STREAM), POINTER(FAKE_ADDRESS), 0, hipMemAttachSingle));
  assert_called("cuStreamAttachMemAsync", FAKE_STREAM, FAKE_ADDRESS, 0, CU_MEM_ATTACH_SINGLE);
  assert_error(hipMallocManaged(data, 0, hipMemAttachGlobal), hipErrorInvalidValue);
}

static void other_processes_get_nothing_for_nothing(void **state)
{
  (void)state;
  hipIpcMemHandle_t handle;
  hipIpcEventHandle_t event_handle;
  memset(&handle, 0, sizeof handle);
  memset(&event_handle, 0, sizeof event_handle);
  assert_error(hipIpcGetMemHandle(NULL, POINTER(FAKE_ADDRESS)), hipErrorInvalidValue);
  assert_error(hipIpcGetMemHandle(&handle, NULL), hipErrorInvalidValue);
  assert_error(hipIpcOpenMemHandle(NULL, handle, hipIpcMemLazyEnablePeerAccess), hipErrorInvalidValue);
  assert_error(hipIpcGetEventHandle(NULL, POINTER(FAKE_EVENT)), hipErrorInvalidValue);
  assert_error(hipIpcOpenEventHandle(NULL, event_handle), hipErrorInvalidValue);
  assert_not_called();
}

static void other_processes_get_the_drivers_handles(void **state)
{
  (void)state;
  hipIpcMemHandle_t handle;
  hipIpcEventHandle_t event_handle;
  hipEvent_t event = NULL;
  void *ptr = NULL;
  assert_ok(hipIpcGetMemHandle(&handle, POINTER(FAKE_ADDRESS)));
  assert_called("cuIpcGetMemHandle", FAKE_ADDRESS);
  assert_ok(hipIpcOpenMemHandle(&ptr, handle, hipIpcMemLazyEnablePeerAccess));
  assert_called("cuIpcOpenMemHandle", CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  assert_memory_equal(fake->last.data, &handle, sizeof handle);
  assert_int_equal(fake->last.data[63], 'm');
  assert_ptr_equal(ptr, POINTER(FAKE_ADDRESS));
  assert_error(hipIpcOpenMemHandle(&ptr, handle, 2), hipErrorInvalidValue);
  assert_ok(hipIpcCloseMemHandle(ptr));
  assert_called("cuIpcCloseMemHandle", FAKE_ADDRESS);
  assert_ok(hipIpcGetEventHandle(&event_handle, POINTER(FAKE_EVENT)));
  assert_called("cuIpcGetEventHandle", FAKE_EVENT);
  assert_ok(hipIpcOpenEventHandle(&event, event_handle));
  assert_int_equal(fake->last.data[63], 'e');
  assert_ptr_equal(event, POINTER(FAKE_EVENT));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(device_memory_is_the_drivers, start_test),
      cmocka_unit_test_setup(nothing_is_no_error_and_no_call, start_test),
      cmocka_unit_test_setup(a_failure_writes_no_result, start_test),
      cmocka_unit_test_setup(nowhere_to_put_the_result_is_refused, start_test),
      cmocka_unit_test_setup(questions_about_memory_are_answered, start_test),
      cmocka_unit_test_setup(pointers_are_known_by_their_memory, start_test),
      cmocka_unit_test_setup(host_memory_takes_only_flags_that_cuda_knows_along, start_test),
      cmocka_unit_test_setup(managed_memory_is_advised_and_moved, start_test),
      cmocka_unit_test_setup(copies_go_by_address_in_any_direction, start_test),
      cmocka_unit_test_setup(copies_that_name_both_devices_need_no_access, start_test),
      cmocka_unit_test_setup(copies_over_a_border_of_pieces_go_by_the_stream, start_test),
      cmocka_unit_test_setup(a_copy_whose_stream_cannot_be_entered_says_why, start_test),
      cmocka_unit_test_setup(a_copy_is_tried_once_where_the_stream_is, start_test),
      cmocka_unit_test_setup(a_copy_that_is_wrong_everywhere_is_refused, start_test),
      cmocka_unit_test_setup(fills_take_the_low_byte, start_test),
      cmocka_unit_test_setup(copies_have_a_direction_in_their_name, start_test),
      cmocka_unit_test_setup(rows_are_the_drivers, start_test),
      cmocka_unit_test_setup(a_pointer_has_single_attributes, start_test),
      cmocka_unit_test_setup(ranges_and_streams_of_managed_memory_are_the_drivers, start_test),
      cmocka_unit_test_setup(other_processes_get_nothing_for_nothing, start_test),
      cmocka_unit_test_setup(other_processes_get_the_drivers_handles, start_test),
  };
  return cmocka_run_group_tests_name("nvidia: memory", tests, start_runtime, NULL);
}
