/* SPDX-License-Identifier: MIT */
/* test_device.c: the devices, their names, properties and attributes, the current device, and what is refused. */
#include "device.h"

static void there_are_as_many_devices_as_configured(void **state)
{
  (void)state;
  int count, device = -1;
  assert_ok(hipInit(0));
  assert_ok(hipGetDeviceCount(&count));
  assert_int_equal(count, 2);
  assert_ok(hipDeviceGet(&device, 1));
  assert_int_equal(device, 1);
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.devices = 64;
  restart(&config);
  assert_ok(hipGetDeviceCount(&count));
  assert_int_equal(count, 64);
  assert_ok(hipSetDevice(63));
  hipFree(allocate(100));
}

static void *current_of_thread(void *argument)
{
  hipGetDevice(argument);
  return NULL;
}

static void each_thread_has_its_current_device(void **state)
{
  (void)state;
  int mine, theirs = -1;
  pthread_t thread;
  assert_ok(hipSetDevice(1));
  assert_int_equal(pthread_create(&thread, NULL, current_of_thread, &theirs), 0);
  pthread_join(thread, NULL);
  assert_ok(hipGetDevice(&mine));
  assert_int_equal(mine, 1);
  assert_int_equal(theirs, 0);
}

static void devices_say_what_they_are(void **state)
{
  (void)state;
  char name[64], bus[16];
  size_t bytes;
  int version, value;
  assert_ok(hipDeviceGetName(name, sizeof name, 0));
  assert_string_equal(name, "hipmm software device");
  assert_ok(hipDeviceGetName(name, 6, 0));
  assert_string_equal(name, "hipmm");
  assert_ok(hipDeviceGetPCIBusId(bus, sizeof bus, 1));
  assert_string_equal(bus, "0000:01:00.0");
  assert_ok(hipDeviceGetPCIBusId(bus, 13, 1));
  assert_string_equal(bus, "0000:01:00.0");
  assert_ok(hipDeviceTotalMem(&bytes, 1));
  assert_int_equal(bytes, 64 * MIB);
  assert_ok(hipRuntimeGetVersion(&version));
  assert_int_equal(version, HIP_VERSION);
  assert_ok(hipDriverGetVersion(&version));
  assert_ok(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0));
  assert_int_equal(value, 64);
  hipDeviceProp_t properties;
  assert_ok(hipGetDeviceProperties(&properties, 1));
  assert_int_equal(properties.totalGlobalMem, 64 * MIB);
  assert_string_equal(properties.name, "hipmm software device");
}

static void a_bus_id_names_its_device(void **state)
{
  (void)state;
  char bus[16];
  int device = -1;
  for (int i = 0; i < 2; i++) {
    assert_ok(hipDeviceGetPCIBusId(bus, sizeof bus, i));
    assert_ok(hipDeviceGetByPCIBusId(&device, bus));
    assert_int_equal(device, i);
  }
  device = -1;
  const char *const wrong[] = {"", "0000:", "0000:02:00.0", "0001:01:00.0", "0000:01:00", "0000:01:00.1", "none"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_hip(hipDeviceGetByPCIBusId(&device, wrong[i]), hipErrorInvalidValue);
  assert_hip(hipDeviceGetByPCIBusId(NULL, bus), hipErrorInvalidValue);
  assert_hip(hipDeviceGetByPCIBusId(&device, NULL), hipErrorInvalidValue);
  assert_int_equal(device, -1);
}

static void devices_have_ids_of_their_own(void **state)
{
  (void)state;
  hipUUID first, again, second, zero = {{0}};
  assert_ok(hipDeviceGetUuid(&first, 0));
  assert_ok(hipDeviceGetUuid(&again, 0));
  assert_ok(hipDeviceGetUuid(&second, 1));
  assert_memory_equal(&first, &again, sizeof first);
  assert_memory_not_equal(&first, &second, sizeof first);
  assert_memory_not_equal(&first, &zero, sizeof first);
  assert_hip(hipDeviceGetUuid(NULL, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceGetUuid(&first, 2), hipErrorInvalidDevice);
  assert_hip(hipDeviceGetUuid(&first, -1), hipErrorInvalidDevice);
}

static unsigned flags_of_device(void)
{
  unsigned flags = 99;
  assert_ok(hipGetDeviceFlags(&flags));
  return flags;
}

static void flags_are_a_devices_own(void **state)
{
  (void)state;
  assert_int_equal(flags_of_device(), hipDeviceScheduleAuto);
  assert_ok(hipSetDeviceFlags(hipDeviceScheduleYield | hipDeviceMapHost));
  assert_int_equal(flags_of_device(), hipDeviceScheduleYield); /* no other is kept, as with ROCm */
  assert_ok(hipSetDevice(1));
  assert_int_equal(flags_of_device(), hipDeviceScheduleAuto);
  assert_ok(hipSetDeviceFlags(hipDeviceScheduleBlockingSync));
  assert_int_equal(flags_of_device(), hipDeviceScheduleBlockingSync);
  const unsigned wrong[] = {3, 5, 6, 7, 0x20, 0xffff};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_hip(hipSetDeviceFlags(wrong[i]), hipErrorInvalidValue);
  assert_int_equal(flags_of_device(), hipDeviceScheduleBlockingSync);
  assert_ok(hipDeviceReset());
  assert_int_equal(flags_of_device(), hipDeviceScheduleAuto);
  assert_ok(hipSetDevice(0));
  assert_int_equal(flags_of_device(), hipDeviceScheduleYield);
  assert_hip(hipGetDeviceFlags(NULL), hipErrorInvalidValue);
}

static void limits_are_kept(void **state)
{
  (void)state;
  const int limits[] = {0, 2}; /* hipLimitStackSize, which HIP 5.2 has no name for, and hipLimitMallocHeapSize */
  size_t before, after;
  for (size_t i = 0; i < 2; i++) {
    enum hipLimit_t limit = (enum hipLimit_t)limits[i];
    assert_ok(hipDeviceGetLimit(&before, limit));
    assert_true(before > 0);
    assert_ok(hipDeviceSetLimit(limit, before + 8));
    assert_ok(hipDeviceGetLimit(&after, limit));
    assert_int_equal(after, before + 8);
    assert_ok(hipSetDevice(1));
    assert_ok(hipDeviceGetLimit(&after, limit));
    assert_int_equal(after, before);
    assert_ok(hipSetDevice(0));
    assert_hip(hipDeviceSetLimit(limit, SIZE_MAX), hipErrorInvalidValue);
  }
  assert_hip(hipDeviceGetLimit(NULL, hipLimitMallocHeapSize), hipErrorInvalidValue);
  assert_hip(hipDeviceGetLimit(&after, hipLimitPrintfFifoSize), hipErrorUnsupportedLimit);
  assert_hip(hipDeviceSetLimit(hipLimitPrintfFifoSize, 1), hipErrorUnsupportedLimit);
  assert_hip(hipDeviceSetLimit((enum hipLimit_t)99, 1), hipErrorInvalidValue);
  assert_hip(hipDeviceGetLimit(&after, (enum hipLimit_t)99), hipErrorInvalidValue);
}

/* Members of the struct of HIP 6, compared with the struct of HIP 5, or with the attributes. */
static void properties_have_the_layout_of_hip_6(void **state)
{
  (void)state;
  union {
    char bytes[4096];
    size_t aligned;
  } properties;
  hipUUID uuid;
  size_t total;
  int warp, major, processors, bus;
  memset(&properties, 1, sizeof properties);
  assert_ok(hipGetDevicePropertiesR0600((void *)&properties, 1));
  assert_string_equal(properties.bytes, "hipmm software device");
  assert_ok(hipDeviceGetUuid(&uuid, 1));
  assert_memory_equal(properties.bytes + 256, &uuid, sizeof uuid);
  memcpy(&total, properties.bytes + 288, sizeof total);
  memcpy(&warp, properties.bytes + 308, sizeof warp);
  memcpy(&major, properties.bytes + 360, sizeof major);
  memcpy(&processors, properties.bytes + 388, sizeof processors);
  memcpy(&bus, properties.bytes + 576, sizeof bus);
  assert_int_equal(total, 64 * MIB);
  assert_int_equal(warp, 64);
  assert_int_equal(major, 0);
  assert_int_equal(processors, 1);
  assert_int_equal(bus, 1);
  assert_string_equal(properties.bytes + 1160, "software");
  assert_int_equal(properties.bytes[1472], 1); /* nothing is written behind it */
  assert_hip(hipGetDevicePropertiesR0600(NULL, 0), hipErrorInvalidValue);
  assert_hip(hipGetDevicePropertiesR0600((void *)&properties, 2), hipErrorInvalidDevice);
}

/* Programs of HIP 5 call the function that has kept the plain name. */
static void properties_have_the_layout_of_hip_5(void **state)
{
  (void)state;
  union {
    char bytes[4096];
    size_t aligned;
  } properties;
  hipError_t (*get)(void *, int) = NULL;
  void *function = NULL;
  size_t total;
  int warp;
  memset(&properties, 1, sizeof properties);
  assert_ok(hipGetProcAddress("hipGetDeviceProperties", &function, 500, 0, NULL));
  memcpy(&get, &function, sizeof get);
  assert_ok(get(&properties, 1));
  assert_string_equal(properties.bytes, "hipmm software device");
  memcpy(&total, properties.bytes + 256, sizeof total);
  memcpy(&warp, properties.bytes + 276, sizeof warp);
  assert_int_equal(total, 64 * MIB);
  assert_int_equal(warp, 64);
  assert_int_equal(properties.bytes[792], 1); /* nothing is written behind it */
  assert_hip(get(NULL, 0), hipErrorInvalidValue);
}

static void functions_are_found_by_name(void **state)
{
  (void)state;
  hipDriverProcAddressQueryResult status;
  hipError_t (*allocate_function)(void **, size_t) = NULL;
  void *function = NULL, *other = NULL, *memory = NULL;
  assert_ok(hipGetProcAddress("hipMalloc", &function, 603, 0, &status));
  assert_int_equal(status, HIP_GET_PROC_ADDRESS_SUCCESS);
  memcpy(&allocate_function, &function, sizeof function);
  assert_ok(allocate_function(&memory, 100));
  assert_ok(hipFree(memory));
  assert_ok(hipGetProcAddress("hipGetDevicePropertiesR0600", &function, 500, 0, NULL));
  assert_ok(hipGetProcAddress("hipGetDeviceProperties", &other, 600, 0, NULL));
  assert_ptr_equal(function, other);
  other = NULL;
  assert_hip(hipGetProcAddress("hipNoSuchFunction", &other, 603, 0, &status), hipErrorInvalidValue);
  assert_int_equal(status, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  assert_hip(hipGetProcAddress("", &other, 603, 0, &status), hipErrorInvalidValue);
  assert_hip(hipGetProcAddress(NULL, &other, 603, 0, &status), hipErrorInvalidValue);
  assert_hip(hipGetProcAddress("hipMalloc", NULL, 603, 0, &status), hipErrorInvalidValue);
  assert_hip(hipGetProcAddress("hipMalloc", &other, 603, 7, &status), hipErrorInvalidValue);
  assert_null(other);
}

static int attribute(int which)
{
  int value = -1;
  assert_ok(hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)which, 0));
  return value;
}

/* hipDeviceAttributeMemoryPoolSupportedHandleTypes of HIP 6.2. */
static void tells_how_pools_can_be_shared(void **state)
{
  enum { HANDLE_TYPES = 91 };
  struct software_config config = software.config;
  (void)state;
  assert_int_equal(attribute(HANDLE_TYPES), hipMemHandleTypePosixFileDescriptor);
  config.memory_pools = false;
  restart(&config);
  assert_int_equal(attribute(HANDLE_TYPES), hipMemHandleTypeNone);
}

/* All attributes that HIP 6.3 has for an AMD device, in the order of their numbers. */
static void attributes_and_properties_agree(void **state)
{
  (void)state;
  hipDeviceProp_t properties;
  assert_ok(hipGetDeviceProperties(&properties, 0));
  const struct {
    int attribute;
    size_t value;
  } rows[] = {
      {hipDeviceAttributeEccEnabled, (size_t)properties.ECCEnabled},
      {hipDeviceAttributeCanMapHostMemory, (size_t)properties.canMapHostMemory},
      {hipDeviceAttributeClockRate, (size_t)properties.clockRate},
      {hipDeviceAttributeComputeMode, (size_t)properties.computeMode},
      {hipDeviceAttributeConcurrentKernels, (size_t)properties.concurrentKernels},
      {hipDeviceAttributeConcurrentManagedAccess, (size_t)properties.concurrentManagedAccess},
      {hipDeviceAttributeCooperativeLaunch, (size_t)properties.cooperativeLaunch},
      {hipDeviceAttributeCooperativeMultiDeviceLaunch, (size_t)properties.cooperativeMultiDeviceLaunch},
      {hipDeviceAttributeDirectManagedMemAccessFromHost, (size_t)properties.directManagedMemAccessFromHost},
      {hipDeviceAttributeIntegrated, (size_t)properties.integrated},
      {hipDeviceAttributeIsMultiGpuBoard, (size_t)properties.isMultiGpuBoard},
      {hipDeviceAttributeKernelExecTimeout, (size_t)properties.kernelExecTimeoutEnabled},
      {hipDeviceAttributeL2CacheSize, (size_t)properties.l2CacheSize},
      {hipDeviceAttributeComputeCapabilityMajor, (size_t)properties.major},
      {hipDeviceAttributeManagedMemory, (size_t)properties.managedMemory},
      {hipDeviceAttributeMaxBlockDimX, (size_t)properties.maxThreadsDim[0]},
      {hipDeviceAttributeMaxBlockDimY, (size_t)properties.maxThreadsDim[1]},
      {hipDeviceAttributeMaxBlockDimZ, (size_t)properties.maxThreadsDim[2]},
      {hipDeviceAttributeMaxGridDimX, (size_t)properties.maxGridSize[0]},
      {hipDeviceAttributeMaxGridDimY, (size_t)properties.maxGridSize[1]},
      {hipDeviceAttributeMaxGridDimZ, (size_t)properties.maxGridSize[2]},
      {hipDeviceAttributeMaxTexture1DWidth, (size_t)properties.maxTexture1D},
      {hipDeviceAttributeMaxTexture1DLinear, (size_t)properties.maxTexture1DLinear},
      {hipDeviceAttributeMaxTexture2DWidth, (size_t)properties.maxTexture2D[0]},
      {hipDeviceAttributeMaxTexture2DHeight, (size_t)properties.maxTexture2D[1]},
      {hipDeviceAttributeMaxTexture3DWidth, (size_t)properties.maxTexture3D[0]},
      {hipDeviceAttributeMaxTexture3DHeight, (size_t)properties.maxTexture3D[1]},
      {hipDeviceAttributeMaxTexture3DDepth, (size_t)properties.maxTexture3D[2]},
      {hipDeviceAttributeMaxThreadsPerBlock, (size_t)properties.maxThreadsPerBlock},
      {hipDeviceAttributeMaxThreadsPerMultiProcessor, (size_t)properties.maxThreadsPerMultiProcessor},
      {hipDeviceAttributeMaxPitch, properties.memPitch},
      {hipDeviceAttributeMemoryBusWidth, (size_t)properties.memoryBusWidth},
      {hipDeviceAttributeMemoryClockRate, (size_t)properties.memoryClockRate},
      {hipDeviceAttributeComputeCapabilityMinor, (size_t)properties.minor},
      {hipDeviceAttributeMultiprocessorCount, (size_t)properties.multiProcessorCount},
      {hipDeviceAttributePageableMemoryAccess, (size_t)properties.pageableMemoryAccess},
      {hipDeviceAttributePciBusId, (size_t)properties.pciBusID},
      {hipDeviceAttributePciDeviceId, (size_t)properties.pciDeviceID},
      {hipDeviceAttributePciDomainID, (size_t)properties.pciDomainID},
      {hipDeviceAttributeMaxRegistersPerBlock, (size_t)properties.regsPerBlock},
      {hipDeviceAttributeMaxSharedMemoryPerBlock, properties.sharedMemPerBlock},
      {hipDeviceAttributeTextureAlignment, properties.textureAlignment},
      {hipDeviceAttributeTexturePitchAlignment, properties.texturePitchAlignment},
      {hipDeviceAttributeTotalConstantMemory, properties.totalConstMem},
      {hipDeviceAttributeTotalGlobalMem, properties.totalGlobalMem},
      {hipDeviceAttributeWarpSize, (size_t)properties.warpSize},
      {hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, properties.maxSharedMemoryPerMultiProcessor},
      {hipDeviceAttributeAsicRevision, (size_t)properties.asicRevision},
      {hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc, (size_t)properties.cooperativeMultiDeviceUnmatchedFunc},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_int_equal(attribute(rows[i].attribute), rows[i].value);
  assert_int_equal(properties.maxThreadsDim[0], 1024);
  assert_true(properties.maxGridSize[0] > 0 && properties.regsPerBlock > 0 && properties.clockRate > 0);
}

static void attributes_without_a_property_have_a_value(void **state)
{
  (void)state;
  const int alone[] = {hipDeviceAttributeAsyncEngineCount,
                       hipDeviceAttributeCanUseHostPointerForRegisteredMem,
                       hipDeviceAttributeComputePreemptionSupported,
                       hipDeviceAttributeDeviceOverlap,
                       hipDeviceAttributeGlobalL1CacheSupported,
                       hipDeviceAttributeHostNativeAtomicSupported,
                       hipDeviceAttributeLocalL1CacheSupported,
                       hipDeviceAttributeLuidDeviceNodeMask,
                       hipDeviceAttributeMaxBlocksPerMultiProcessor,
                       hipDeviceAttributeMaxSurface1D,
                       hipDeviceAttributeMaxTexture1DMipmap,
                       hipDeviceAttributeMaxTextureCubemap,
                       hipDeviceAttributeMultiGpuBoardGroupID,
                       hipDeviceAttributePageableMemoryAccessUsesHostPageTables,
                       hipDeviceAttributePersistingL2CacheMaxSize,
                       hipDeviceAttributeMaxRegistersPerMultiprocessor,
                       hipDeviceAttributeReservedSharedMemPerBlock,
                       hipDeviceAttributeSharedMemPerBlockOptin,
                       hipDeviceAttributeSharedMemPerMultiprocessor,
                       hipDeviceAttributeStreamPrioritiesSupported,
                       hipDeviceAttributeSurfaceAlignment,
                       hipDeviceAttributeUnifiedAddressing,
                       hipDeviceAttributeAccessPolicyMaxWindowSize,
                       hipDeviceAttributeCanUseStreamWaitValue,
                       hipDeviceAttributeImageSupport,
                       hipDeviceAttributePhysicalMultiProcessorCount,
                       hipDeviceAttributeFineGrainSupport};
  for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) assert_true(attribute(alone[i]) >= 0);
  int value;
  assert_hip(hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)-1, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceGetAttribute(&value, hipDeviceAttributeCudaCompatibleEnd, 0), hipErrorInvalidValue);
}

static void attributes_follow_the_configuration(void **state)
{
  (void)state;
  const int virtual_memory = hipDeviceAttributeMemoryPoolsSupported + 1;
  assert_int_equal(attribute(hipDeviceAttributeMemoryPoolsSupported), 1);
  assert_int_equal(attribute(virtual_memory), 1);
  assert_int_equal(attribute(hipDeviceAttributeManagedMemory), 1);
  assert_int_equal(attribute(hipDeviceAttributePageableMemoryAccess), 0);
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.memory_pools = config.virtual_memory = config.managed_memory = false;
  config.pageable_memory_access = true;
  restart(&config);
  assert_int_equal(attribute(hipDeviceAttributeMemoryPoolsSupported), 0);
  assert_int_equal(attribute(virtual_memory), 0);
  assert_int_equal(attribute(hipDeviceAttributeManagedMemory), 0);
  assert_int_equal(attribute(hipDeviceAttributeConcurrentManagedAccess), 0);
  assert_int_equal(attribute(hipDeviceAttributePageableMemoryAccess), 1);
}

static void what_the_device_lacks_is_not_supported(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.memory_pools = config.virtual_memory = config.managed_memory = false;
  restart(&config);
  void *memory = NULL;
  hipMemPool_t pool;
  const hipMemPoolProps managed = {.allocType = (hipMemAllocationType)2, .location = {hipMemLocationTypeDevice, 0}};
  assert_hip(hipMallocManaged(&memory, 10, hipMemAttachGlobal), hipErrorNotSupported);
  assert_hip(hipMallocAsync(&memory, 10, NULL), hipErrorNotSupported);
  assert_hip(hipFreeAsync(memory, NULL), hipErrorNotSupported);
  assert_hip(hipDeviceGetDefaultMemPool(&pool, 0), hipErrorNotSupported);
  assert_hip(hipMemAddressReserve(&memory, 2 * MIB, 0, NULL, 0), hipErrorNotSupported);
  assert_null(memory);
  config.memory_pools = true;
  restart(&config);
  assert_hip(hipMemPoolCreate(&pool, &managed), hipErrorNotSupported);
}

static void devices_that_do_not_exist_are_refused(void **state)
{
  (void)state;
  char text[16];
  size_t bytes;
  int value;
  hipDeviceProp_t properties;
  hipMemPool_t pool;
  const int wrong[] = {-1, 2, 64, 1000000};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_hip(hipSetDevice(wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceGet(&value, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceGetName(text, sizeof text, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceGetPCIBusId(text, sizeof text, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceTotalMem(&bytes, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipGetDeviceProperties(&properties, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceCanAccessPeer(&value, 0, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceEnablePeerAccess(wrong[i], 0), hipErrorInvalidDevice);
    assert_hip(hipDeviceGetMemPool(&pool, wrong[i]), hipErrorInvalidValue);
    assert_int_equal(hipmm_software_faults(wrong[i]), 0);
  }
  assert_ok(hipGetDevice(&value));
  assert_int_equal(value, 0);
}

static void missing_outputs_are_refused(void **state)
{
  (void)state;
  char text[16];
  assert_hip(hipInit(1), hipErrorInvalidValue);
  assert_hip(hipGetDeviceCount(NULL), hipErrorInvalidValue);
  assert_hip(hipGetDevice(NULL), hipErrorInvalidValue);
  assert_hip(hipDeviceGet(NULL, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceGetName(NULL, 5, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceGetName(text, 0, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceGetPCIBusId(NULL, 5, 0), hipErrorInvalidValue);
  memset(text, 1, sizeof text);
  assert_hip(hipDeviceGetPCIBusId(text, 12, 0), hipErrorInvalidValue);
  assert_string_equal(text, "0000:00:00."); /* as much as there is room for */
  assert_int_equal(text[12], 1);
  assert_hip(hipDeviceTotalMem(NULL, 0), hipErrorInvalidValue);
  assert_hip(hipRuntimeGetVersion(NULL), hipErrorInvalidValue);
  assert_hip(hipDriverGetVersion(NULL), hipErrorInvalidValue);
  assert_hip(hipGetDeviceProperties(NULL, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceGetAttribute(NULL, hipDeviceAttributeWarpSize, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceCanAccessPeer(NULL, 0, 1), hipErrorInvalidValue);
  assert_hip(hipDeviceGetMemPool(NULL, 0), hipErrorInvalidValue);
  int value;
  assert_hip(hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)9998, 0), hipErrorInvalidValue);
}

static void peer_access_is_switched_on_and_off_once(void **state)
{
  (void)state;
  int can;
  assert_ok(hipDeviceCanAccessPeer(&can, 0, 1));
  assert_int_equal(can, 1);
  assert_ok(hipDeviceCanAccessPeer(&can, 1, 1));
  assert_int_equal(can, 0);
  assert_hip(hipDeviceDisablePeerAccess(1), hipErrorPeerAccessNotEnabled);
  assert_ok(hipDeviceEnablePeerAccess(1, 0));
  assert_hip(hipDeviceEnablePeerAccess(1, 0), hipErrorPeerAccessAlreadyEnabled);
  assert_ok(hipDeviceDisablePeerAccess(1));
  assert_hip(hipDeviceEnablePeerAccess(0, 0), hipErrorInvalidDevice);
  assert_hip(hipDeviceEnablePeerAccess(1, 7), hipErrorInvalidValue);
}

static void devices_of_other_groups_are_out_of_reach(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_THREADS);
  hipMemPool_t pool;
  hipMemAccessDesc access = {{hipMemLocationTypeDevice, 2}, hipMemAccessFlagsProtReadWrite};
  int can = -1;
  config.devices = 4;
  config.peer_group = 2;
  restart(&config);
  for (int i = 0; i < 16; i++) {
    assert_ok(hipDeviceCanAccessPeer(&can, i / 4, i % 4));
    assert_int_equal(can, i / 4 != i % 4 && i / 4 / 2 == i % 4 / 2);
  }
  assert_hip(hipDeviceEnablePeerAccess(2, 0), hipErrorPeerAccessUnsupported);
  assert_ok(hipDeviceEnablePeerAccess(1, 0));
  assert_ok(hipDeviceGetDefaultMemPool(&pool, 0));
  assert_hip(hipMemPoolSetAccess(pool, &access, 1), hipErrorInvalidDevice);
  char *memory = allocate(100), host[100] = "hipmm";
  assert_ok(hipSetDevice(2));
  assert_ok(hipMemcpy(memory, host, 100, hipMemcpyHostToDevice)); /* by staging */
  assert_hip(hipMemset(memory, 1, 100), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
}

static void a_device_reset_takes_all_of_that_device(void **state)
{
  (void)state;
  hipStream_t stream, other_stream;
  hipEvent_t event;
  void *pooled;
  size_t free_bytes, total_bytes;
  hipMemGenericAllocationHandle_t other_handle;
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned, .location = {hipMemLocationTypeDevice, 1}};
  assert_ok(hipSetDevice(1));
  char *other = allocate(100);
  assert_ok(hipStreamCreate(&other_stream));
  assert_ok(hipMemCreate(&other_handle, 2 * MIB, &properties, 0));
  assert_ok(hipSetDevice(0));
  char *memory = allocate(MIB);
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipEventCreate(&event));
  assert_ok(hipMallocAsync(&pooled, 1000, stream));
  assert_ok(hipMemsetAsync(memory, 1, MIB, stream));
  assert_ok(hipDeviceReset());
  assert_hip(hipFree(memory), hipErrorInvalidValue);
  assert_hip(hipStreamSynchronize(stream), hipErrorInvalidHandle);
  assert_hip(hipEventQuery(event), hipErrorInvalidHandle);
  assert_ok(hipMemGetInfo(&free_bytes, &total_bytes));
  assert_int_equal(free_bytes, total_bytes);
  assert_ok(hipStreamSynchronize(other_stream));
  assert_ok(hipStreamDestroy(other_stream));
  assert_ok(hipMemRelease(other_handle));
  assert_ok(hipFree(other));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"there are as many devices as configured", there_are_as_many_devices_as_configured, start_threads, finish, NULL},
      {"each thread has its current device", each_thread_has_its_current_device, start_threads, finish, NULL},
      {"devices say what they are", devices_say_what_they_are, start_threads, finish, NULL},
      {"a bus id names its device", a_bus_id_names_its_device, start_threads, finish, NULL},
      {"devices have ids of their own", devices_have_ids_of_their_own, start_threads, finish, NULL},
      {"flags are a devices own", flags_are_a_devices_own, start_threads, finish, NULL},
      {"limits are kept", limits_are_kept, start_threads, finish, NULL},
      {"properties have the layout of HIP 6", properties_have_the_layout_of_hip_6, start_threads, finish, NULL},
      {"properties have the layout of HIP 5", properties_have_the_layout_of_hip_5, start_threads, finish, NULL},
      {"functions are found by name", functions_are_found_by_name, start_threads, finish, NULL},
      {"a device tells how pools can be shared", tells_how_pools_can_be_shared, start_threads, finish, NULL},
      {"attributes and properties agree", attributes_and_properties_agree, start_threads, finish, NULL},
      {"attributes without a property have a value", attributes_without_a_property_have_a_value, start_threads, finish,
       NULL},
      {"attributes follow the configuration", attributes_follow_the_configuration, start_threads, finish, NULL},
      {"what the device lacks is not supported", what_the_device_lacks_is_not_supported, start_threads, finish, NULL},
      {"devices that do not exist are refused", devices_that_do_not_exist_are_refused, start_threads, finish, NULL},
      {"missing outputs are refused", missing_outputs_are_refused, start_threads, finish, NULL},
      {"peer access is switched on and off once", peer_access_is_switched_on_and_off_once, start_threads, finish, NULL},
      {"devices of other groups are out of reach", devices_of_other_groups_are_out_of_reach, start_threads, finish,
       NULL},
      {"a device reset takes all of that device (threads)", a_device_reset_takes_all_of_that_device, start_threads,
       finish, NULL},
      {"a device reset takes all of that device (stepped)", a_device_reset_takes_all_of_that_device, start_stepped,
       finish, NULL},
  };
  return cmocka_run_group_tests_name("software: devices", tests, NULL, NULL);
}
