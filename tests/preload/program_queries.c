/* SPDX-License-Identifier: MIT */
/* program_queries.c: queries and wrong calls of the HIP program, and memory of other kinds. */
#include "program.h"

#include <dlfcn.h>
#include <hipmm/version.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Run with a limit of 4 MiB. */
void scenario_shortage(void)
{
  void *memory = (void *)8, *small;
  EXPECT(hipErrorOutOfMemory, hipMalloc(&memory, 5 * MIB));
  CHECK(memory == (void *)8);
  EXPECT(hipErrorOutOfMemory, hipPeekAtLastError());
  EXPECT(hipErrorOutOfMemory, hipGetLastError());
  GOOD(hipGetLastError());
  EXPECT(hipErrorOutOfMemory, hipMalloc(&memory, SIZE_MAX));
  EXPECT(hipErrorOutOfMemory, hipMallocAsync(&memory, SIZE_MAX / 2, NULL));
  EXPECT(hipErrorInvalidValue,
         hipMemset((void *)16, 0, 4)); /* the runtime's own error is the last one: it came later */
  EXPECT(hipErrorInvalidValue, hipGetLastError());
  GOOD(hipGetLastError());
  GOOD(hipMalloc(&small, 3 * MIB));
  EXPECT(hipErrorOutOfMemory, hipMalloc(&memory, 2 * MIB));
  GOOD(hipFree(small));
  GOOD(hipMalloc(&memory, 2 * MIB));
  GOOD(hipFree(memory));
}

/* A device of 64 MiB, whose memory hipmm keeps after the program's free: calls that hipmm does not serve get it. */
void scenario_shortage_of_runtime(void)
{
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                     .location = {.type = hipMemLocationTypeDevice, .id = 0}};
  hipMemGenericAllocationHandle_t handle;
  void *memory, *fine;
  size_t pitch;
  GOOD(hipMalloc(&memory, 48 * MIB));
  EXPECT(hipErrorOutOfMemory, hipMemCreate(&handle, 48 * MIB, &properties, 0)); /* nothing is idle */
  EXPECT(hipErrorOutOfMemory, hipGetLastError());
  GOOD(hipFree(memory));
  GOOD(hipMemCreate(&handle, 48 * MIB, &properties, 0));
  GOOD(hipGetLastError());
  GOOD(hipMemRelease(handle));
  GOOD(hipMalloc(&memory, 48 * MIB));
  GOOD(hipFree(memory));
  GOOD(hipMallocPitch(&memory, &pitch, 1 * MIB, 48));
  GOOD(hipGetLastError());
  GOOD(hipFree(memory));
  GOOD(hipMalloc(&memory, 48 * MIB));
  GOOD(hipFree(memory));
  GOOD(hipExtMallocWithFlags(&fine, 48 * MIB, hipDeviceMallocFinegrained)); /* passed on, for its flag */
  GOOD(hipGetLastError());
  GOOD(hipFree(fine));
}

/* Run with a device whose functions fail once for want of memory. */
void scenario_repeats(void)
{
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                     .location = {.type = hipMemLocationTypeDevice, .id = 0}};
  hipMemAccessDesc access = {.location = properties.location, .flags = hipMemAccessFlagsProtReadWrite};
  static unsigned char host[64 * KIB];
  hipMemGenericAllocationHandle_t handle;
  hipMemPool_t pool;
  hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned, .location = properties.location};
  hipStream_t streams[2];
  hipEvent_t event;
  hipGraph_t graph;
  hipGraphExec_t executable;
  void *memory;
  GOOD(hipMalloc(&memory, KIB));
  GOOD(hipFree(memory));
  GOOD(hipStreamCreate(&streams[0]));
  GOOD(hipStreamCreateWithPriority(&streams[1], hipStreamNonBlocking, 0));
  GOOD(hipEventCreate(&event));
  GOOD(hipHostRegister(host, sizeof host, 0));
  GOOD(hipMemPoolCreate(&pool, &props));
  GOOD(hipMemCreate(&handle, 2 * MIB, &properties, 0));
  GOOD(hipMemAddressReserve(&memory, 2 * MIB, 0, NULL, 0));
  GOOD(hipMemMap(memory, 2 * MIB, 0, handle, 0));
  GOOD(hipMemSetAccess(memory, 2 * MIB, &access, 1));
  GOOD(hipGraphCreate(&graph, 0));
  GOOD(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
  GOOD(hipGraphLaunch(executable, streams[0]));
  GOOD(hipGetLastError());
  GOOD(hipStreamSynchronize(streams[0]));
  GOOD(hipGraphExecDestroy(executable));
  GOOD(hipGraphDestroy(graph));
  GOOD(hipMemUnmap(memory, 2 * MIB));
  GOOD(hipMemRelease(handle));
  GOOD(hipMemAddressFree(memory, 2 * MIB));
  GOOD(hipMemPoolDestroy(pool));
  GOOD(hipHostUnregister(host));
  GOOD(hipEventDestroy(event));
  GOOD(hipStreamDestroy(streams[0]));
  GOOD(hipStreamDestroy(streams[1]));
}

/* Run with a "limit_physical" of 16 MiB. */
void scenario_past(void)
{
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                     .location = {.type = hipMemLocationTypeDevice, .id = 0}};
  hipMemGenericAllocationHandle_t handle, other;
  void *memory;
  GOOD(hipMemCreate(&handle, 10 * MIB, &properties, 0));
  EXPECT(hipErrorOutOfMemory, hipMemCreate(&other, 8 * MIB, &properties, 0));
  EXPECT(hipErrorOutOfMemory, hipGetLastError());
  GOOD(hipGetLastError());
  EXPECT(hipErrorOutOfMemory, hipMalloc(&memory, 8 * MIB));
  EXPECT(hipErrorOutOfMemory, hipGetLastError());
  GOOD(hipMalloc(&memory, 6 * MIB));
  GOOD(hipFree(memory));
  GOOD(hipMemCreate(&other, 6 * MIB, &properties, 0)); /* the pool's idle memory made room */
  GOOD(hipGetLastError());
  GOOD(hipMemRelease(other));
  GOOD(hipMemRelease(handle));
  GOOD(hipMalloc(&memory, 16 * MIB));
  GOOD(hipFree(memory));
}

/* Run with a pool. */
void scenario_wrong(void)
{
  void *first, *second;
  unsigned char host[KIB];
  GOOD(hipMalloc(&first, KIB));
  GOOD(hipMalloc(&second, KIB));
  GOOD(hipMemset(second, 5, KIB));
  EXPECT(hipErrorInvalidValue, hipFree((char *)second + 256));
  EXPECT(hipErrorInvalidValue, hipFree(host));
  GOOD(hipFree(first));
  EXPECT(hipErrorInvalidValue, hipFree(first)); /* the pool's own memory may begin there */
  EXPECT(hipErrorInvalidValue, hipGetLastError());
  EXPECT(hipErrorInvalidValue, hipFreeAsync(first, NULL));
  GOOD(hipMemcpy(host, second, KIB, hipMemcpyDeviceToHost));
  CHECK(all_are(host, KIB, 5));
  GOOD(hipFreeAsync(second, NULL));
  EXPECT(hipErrorInvalidValue, hipFreeAsync(second, NULL));
  GOOD(hipMalloc(&first, KIB));
  GOOD(hipFree(first));
}

/* The device has so much by all functions. */
static void expect_total(size_t bytes)
{
  size_t total = 0;
  hipDeviceProp_t properties;
  GOOD(hipDeviceTotalMem(&total, 0));
  CHECK(total == bytes);
  GOOD(hipGetDeviceProperties(&properties, 0));
  CHECK(properties.totalGlobalMem == bytes && properties.warpSize > 0);
}

/* Run on a device of 64 MiB: with a `limiting` of 16 MiB on a pool, a pool of at most 16 MiB, or a "limit_physical". */
void scenario_info(void)
{
  size_t free_bytes, total_bytes;
  void *memory;
  expect_total(16 * MIB); /* before the stack is built, and after */
  GOOD(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes == 16 * MIB && free_bytes == 16 * MIB);
  GOOD(hipMalloc(&memory, 5 * MIB));
  GOOD(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes == 16 * MIB && free_bytes == 11 * MIB);
  GOOD(hipFree(memory));
  GOOD(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(free_bytes == 16 * MIB);
  expect_total(16 * MIB);
}

/* Run with `async` on a device of 64 MiB: a failed allocation makes the driver give idle memory back, which is free once. */
void scenario_info_released(void)
{
  size_t free_bytes, total_bytes;
  void *first, *second, *third;
  GOOD(hipMallocAsync(&first, 40 * MIB, NULL));
  GOOD(hipMallocAsync(&second, 20 * MIB, NULL));
  GOOD(hipFreeAsync(first, NULL));
  GOOD(hipFreeAsync(second, NULL));
  GOOD(hipMallocAsync(&first, 22 * MIB, NULL));
  EXPECT(hipErrorOutOfMemory, hipMallocAsync(&third, 30 * MIB, NULL));
  GOOD(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes == 64 * MIB && free_bytes == 42 * MIB);
  GOOD(hipFreeAsync(first, NULL));
  GOOD(hipStreamSynchronize(NULL));
  GOOD(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(free_bytes == 64 * MIB);
}

/* Run with a pool that holds more memory than the program allocates. */
void scenario_ranges(void)
{
  void *memory, *base;
  size_t bytes, free_bytes, total_bytes;
  GOOD(hipMalloc(&memory, 5000));
  GOOD(hipMemGetAddressRange(&base, &bytes, (char *)memory + 4999));
  CHECK(base == memory && bytes == 5000);
  GOOD(hipMemGetAddressRange(NULL, &bytes, memory));
  EXPECT(hipErrorNotFound, hipMemGetAddressRange(&base, &bytes, &bytes));
  bytes = 0;
  GOOD(hipMemPtrGetInfo(memory, &bytes));
  CHECK(bytes == 5000);
  hipPointerAttribute_t attributes;
  GOOD(hipPointerGetAttributes(&attributes, memory));
  CHECK(attributes.device == 0);
  GOOD(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes - free_bytes == 5000); /* memory that the pool holds idle is free */
  GOOD(hipFree(memory));
}

#if HIP_VERSION < 60200000
typedef int hipDriverProcAddressQueryResult;
hipError_t hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *status);
#endif

static void *find(const char *name)
{
  void *function = NULL;
  hipDriverProcAddressQueryResult status = 7;
  GOOD(hipGetProcAddress(name, &function, HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR, 0, &status));
  CHECK(function && status == 0);
  return function;
}

/* A function that the program gets by its name works as the one that it is linked to. */
void scenario_proc_address(void)
{
  hipError_t (*allocate)(void **, size_t), (*release)(void *), (*fill)(void *, int, size_t);
  hipError_t (*properties)(hipDeviceProp_t *, int);
  unsigned char host[KIB];
  void *memory, *function = NULL;
  *(void **)&allocate = find("hipMalloc");
  *(void **)&release = find("hipFree");
  *(void **)&fill = find("hipMemset");
  *(void **)&properties = find("hipGetDeviceProperties");
  GOOD(allocate(&memory, KIB));
  GOOD(fill(memory, 9, KIB));
  GOOD(hipMemcpy(host, memory, KIB, hipMemcpyDeviceToHost));
  CHECK(all_are(host, KIB, 9));
  GOOD(release(memory));
  hipDeviceProp_t found, called; /* in the layout of the version that is asked for */
  memset(&found, 0, sizeof found);
  memset(&called, 0, sizeof called);
  GOOD(properties(&found, 0));
  GOOD(hipGetDeviceProperties(&called, 0));
  CHECK(found.totalGlobalMem == called.totalGlobalMem && found.warpSize == called.warpSize);
  EXPECT(hipErrorInvalidValue, hipGetProcAddress("hipNothing", &function, 500, 0, NULL));
  EXPECT(hipErrorInvalidValue, hipGetProcAddress(NULL, &function, 500, 0, NULL));
  EXPECT(hipErrorInvalidValue, hipGetProcAddress("hipMalloc", NULL, 500, 0, NULL));
}

#define TEXT_OF(number) #number
#define NAME_OF(number) "libamdhip64.so." TEXT_OF(number)
#define LIBRARY         NAME_OF(HIP_VERSION_MAJOR)

/* The library that the program opens is the one that it is linked to, so its functions know one another's memory. */
void scenario_opened(void)
{
  hipError_t (*allocate)(void **, size_t) = NULL, (*enter)(void *, size_t, unsigned) = NULL;
  static unsigned char host[64 * KIB];
  void *memory, *mapped, *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  *(void **)&allocate = library ? dlsym(library, "hipMalloc") : NULL;
  *(void **)&enter = library ? dlsym(library, "hipHostRegister") : NULL; /* has no hook */
  CHECK(allocate && enter && !dlerror());
  CHECK(!dlsym(library, "hipNothing") && strstr(dlerror(), "hipNothing"));
  GOOD(allocate(&memory, 64 * KIB));
  GOOD(hipMemset(memory, 3, 64 * KIB));
  GOOD(enter(host, sizeof host, 0));
  GOOD(hipMemcpy(host, memory, sizeof host, hipMemcpyDeviceToHost));
  CHECK(all_are(host, sizeof host, 3));
  GOOD(hipHostGetDevicePointer(&mapped, host, 0));
  GOOD(hipHostUnregister(host));
  GOOD(hipFree(memory));
  dlclose(library);
}

static unsigned attribute_of(hipPointer_attribute attribute, void *ptr)
{
  unsigned value = 0;
  GOOD(hipPointerGetAttribute(&value, attribute, ptr));
  return value;
}

/* The runtime's answer differs between releases; a freed block gets the one of an address that the runtime never knew. */
static void check_unknown(void *freed)
{
  static char never;
  hipPointerAttribute_t wanted, found;
  memset(&wanted, 1, sizeof wanted);
  memset(&found, 1, sizeof found);
  hipError_t code = hipPointerGetAttributes(&wanted, &never);
  EXPECT(code, hipPointerGetAttributes(&found, freed));
  CHECK(!memcmp(&wanted, &found, sizeof found));
  unsigned ids[2] = {5, 5}, sizes[2] = {5, 5};
  hipPointer_attribute attributes[] = {HIP_POINTER_ATTRIBUTE_BUFFER_ID, HIP_POINTER_ATTRIBUTE_RANGE_SIZE};
  code = hipDrvPointerGetAttributes(2, attributes, (void *[]){&ids[0], &sizes[0]}, &never);
  EXPECT(code, hipDrvPointerGetAttributes(2, attributes, (void *[]){&ids[1], &sizes[1]}, freed));
  CHECK(ids[0] == ids[1] && sizes[0] == sizes[1]);
  hipGetLastError();
}

static void check_known(void *memory, unsigned bytes)
{
  hipPointerAttribute_t found;
  unsigned id = 0, range = 0;
  void *start = NULL;
  hipPointer_attribute attributes[] = {HIP_POINTER_ATTRIBUTE_BUFFER_ID, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                       HIP_POINTER_ATTRIBUTE_RANGE_SIZE};
  void *values[] = {&id, &start, &range};
  GOOD(hipPointerGetAttributes(&found, (char *)memory + 1));
  CHECK(found.devicePointer == (char *)memory + 1 && found.device == 0);
  GOOD(hipDrvPointerGetAttributes(3, attributes, values, (char *)memory + 1));
  CHECK(id == attribute_of(HIP_POINTER_ATTRIBUTE_BUFFER_ID, memory) && start == memory && range == bytes);
}

/* A pointer has the attributes of the program's block, not of the allocation that the block is a part of. */
void scenario_attributes(void)
{
  void *first, *memory, *start = NULL;
  size_t bytes;
  hipMemRangeCoherencyMode mode = hipMemRangeCoherencyModeIndeterminate;
  GOOD(hipMalloc(&first, KIB));
  GOOD(hipMalloc(&memory, 5000));
  unsigned id = attribute_of(HIP_POINTER_ATTRIBUTE_BUFFER_ID, memory);
  CHECK(id == attribute_of(HIP_POINTER_ATTRIBUTE_BUFFER_ID, (char *)memory + 4999));
  CHECK(id != attribute_of(HIP_POINTER_ATTRIBUTE_BUFFER_ID, first));
  GOOD(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, (char *)memory + 2));
  CHECK(start == memory);
  CHECK(attribute_of(HIP_POINTER_ATTRIBUTE_RANGE_SIZE, memory) == 5000);
  CHECK(attribute_of(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, memory) == hipMemoryTypeDevice);
  CHECK(attribute_of(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory) == 0);
  GOOD(hipMemRangeGetAttribute(&mode, sizeof mode, hipMemRangeAttributeCoherencyMode, memory, 5000));
  CHECK(mode == hipMemRangeCoherencyModeCoarseGrain);
  GOOD(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, (char *)memory + 100));
  CHECK(start == (char *)memory + 100);
  EXPECT(hipErrorInvalidValue, hipPointerGetAttribute(NULL, HIP_POINTER_ATTRIBUTE_BUFFER_ID, memory));
  EXPECT(hipErrorInvalidValue, hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_BUFFER_ID, NULL));
  EXPECT(hipErrorInvalidValue, hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_BUFFER_ID, &id));
  hipGetLastError();
  GOOD(hipFree(memory));
  EXPECT(hipErrorInvalidValue, hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, memory));
  EXPECT(hipErrorInvalidValue, hipGetLastError());
  EXPECT(hipErrorInvalidValue, hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory));
  EXPECT(hipErrorNotFound, hipMemGetAddressRange(&start, &bytes, memory));
  EXPECT(hipErrorInvalidValue, hipMemPtrGetInfo(memory, &bytes));
  check_unknown(memory);
  GOOD(hipMalloc(&memory, 5000));
  check_known(memory, 5000);
  CHECK(id != attribute_of(HIP_POINTER_ATTRIBUTE_BUFFER_ID, memory));
  GOOD(hipFree(memory));
  GOOD(hipFree(first));
}

/* Blocks that the package allocates, as frameworks do, are not the hooks' own, and are known to the driver. */
void scenario_package(void)
{
  int (*attach)(int version);
  void *(*find_in_run)(const char *name);
  void *(*allocate)(ssize_t bytes, int device, hipStream_t stream);
  void (*release)(void *ptr, ssize_t bytes, int device, hipStream_t stream);
  void (*pass_on)(int is_passed);
  void *start = NULL, *memory;
  hipPointerAttribute_t found;
  size_t before, after, total_bytes;
  *(void **)&attach = dlsym(RTLD_DEFAULT, "hipmm_run_attach");
  *(void **)&find_in_run = dlsym(RTLD_DEFAULT, "hipmm_run_function");
  CHECK(attach && find_in_run && attach(HIPMM_VERSION));
  *(void **)&allocate = find_in_run("hipmm_torch_malloc");
  *(void **)&release = find_in_run("hipmm_torch_free");
  *(void **)&pass_on = find_in_run("hipmm_run_pass");
  CHECK(allocate && release && pass_on && !find_in_run("hipmm_run_nothing"));
  char *block = allocate(5000, 0, NULL);
  CHECK(block);
  for (size_t offset = 0; offset < 5000; offset += 4999) {
    GOOD(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, block + offset));
    CHECK(start == block + offset);
    GOOD(hipPointerGetAttributes(&found, block + offset));
    CHECK(found.devicePointer == block + offset);
  }
  release(block, 5000, 0, NULL);
  /* What is passed on is no memory of the stack's, and its owner is found when it is freed. */
  GOOD(hipMemGetInfo(&before, &total_bytes));
  pass_on(1);
  GOOD(hipMalloc(&memory, MIB));
  pass_on(0);
  GOOD(hipMemGetInfo(&after, &total_bytes));
  CHECK(before - after == MIB);
  GOOD(hipMemset(memory, 1, MIB));
  GOOD(hipFree(memory));
  GOOD(hipMemGetInfo(&after, &total_bytes));
  CHECK(before == after);
}

/* With several devices PyTorch's memory is mapped, whoever was first, and what the program allocates by itself is not. */
void scenario_package_devices(void)
{
  int (*attach)(int version);
  void *(*find_in_run)(const char *name);
  void (*begin)(int device_count);
  void *(*allocate)(ssize_t bytes, int device, hipStream_t stream);
  void (*release)(void *ptr, ssize_t bytes, int device, hipStream_t stream);
  *(void **)&attach = dlsym(RTLD_DEFAULT, "hipmm_run_attach");
  *(void **)&find_in_run = dlsym(RTLD_DEFAULT, "hipmm_run_function");
  CHECK(attach && find_in_run && attach(HIPMM_VERSION));
  *(void **)&begin = find_in_run("hipmm_torch_init");
  *(void **)&allocate = find_in_run("hipmm_torch_malloc");
  *(void **)&release = find_in_run("hipmm_torch_free");
  begin(2);
  for (int device = 0; device < 2; device++) {
    unsigned char *own[2], first = 0, *torch;
    GOOD(hipSetDevice(device));
    for (int i = 0; i < 2; i++) {
      GOOD(hipMalloc((void **)&own[i], MIB));
      GOOD(hipMemset(own[i], 7 + i, MIB));
    }
    torch = allocate(MIB, device, NULL);
    CHECK(torch);
    GOOD(hipMemset(torch, 9, MIB));
    for (int i = 0; i < 2; i++) {
      GOOD(hipMemcpy(&first, own[i] + MIB - 1, 1, hipMemcpyDeviceToHost));
      CHECK(first == 7 + i);
      GOOD(hipFree(own[i]));
    }
    GOOD(hipMemcpy(&first, torch, 1, hipMemcpyDeviceToHost));
    CHECK(first == 9);
    release(torch, MIB, device, NULL);
  }
}

/* Without resources called "managed" and "pinned": through the runtime. */
void scenario_host(void)
{
  unsigned char *memory;
  GOOD(hipHostMalloc((void **)&memory, KIB, 0));
  memset(memory, 1, KIB);
  GOOD(hipHostFree(memory));
  GOOD(hipHostAlloc((void **)&memory, KIB, hipHostMallocPortable));
  GOOD(hipHostFree(memory));
  GOOD(hipMallocHost((void **)&memory, KIB));
  GOOD(hipFreeHost(memory));
  GOOD(hipMallocManaged((void **)&memory, KIB, hipMemAttachGlobal));
  memset(memory, 1, KIB);
  GOOD(hipFree(memory));
}

/* Not declared by the headers of HIP before 6.3. */
hipError_t hipExtHostAlloc(void **ptr, size_t bytes, unsigned flags);

/* The flags are the program's, also where the resource allocates with others. */
void scenario_host_flags(void)
{
  static const unsigned given[] = {0, hipHostMallocPortable, hipHostMallocMapped, hipHostMallocWriteCombined};
  unsigned char host;
  unsigned char *pinned;
  unsigned flags;
  void *device;
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    GOOD(hipExtHostAlloc((void **)&pinned, KIB, given[i]));
    memset(pinned, 5, KIB);
    flags = ~0U;
    GOOD(hipHostGetFlags(&flags, pinned));
    CHECK(flags == given[i]);
    flags = ~0U;
    GOOD(hipHostGetFlags(&flags, pinned + KIB - 1));
    CHECK(flags == given[i]);
    hipPointerAttribute_t attributes;
    GOOD(hipPointerGetAttributes(&attributes, pinned + 1));
    CHECK(attributes.allocationFlags == given[i]);
    EXPECT(hipErrorInvalidValue, hipHostGetFlags(NULL, pinned));
    GOOD(hipHostFree(pinned));
  }
  GOOD(hipMalloc(&device, KIB));
  EXPECT(hipErrorInvalidValue, hipHostGetFlags(&flags, device));
  EXPECT(hipErrorInvalidValue, hipHostGetFlags(&flags, &host));
  EXPECT(hipErrorInvalidValue, hipHostGetFlags(&flags, NULL));
  GOOD(hipFree(device));
}

/* Run with resources called "managed" and "pinned". */
void scenario_kinds(void)
{
  unsigned char *pinned, *managed, *other;
  void *device;
  GOOD(hipHostMalloc((void **)&pinned, 64 * KIB, 0));
  memset(pinned, 9, 64 * KIB);
  GOOD(hipMalloc(&device, 64 * KIB));
  GOOD(hipMemcpy(device, pinned, 64 * KIB, hipMemcpyHostToDevice));
  GOOD(hipMallocManaged((void **)&managed, 64 * KIB, hipMemAttachGlobal));
  GOOD(hipMemcpy(managed, device, 64 * KIB, hipMemcpyDefault));
  GOOD(hipDeviceSynchronize());
  CHECK(all_are(managed, 64 * KIB, 9));
  EXPECT(hipErrorInvalidValue, hipFree(pinned));
  EXPECT(hipErrorInvalidValue, hipHostFree(managed));
  EXPECT(hipErrorInvalidValue, hipFreeAsync(managed, NULL));
  EXPECT(hipErrorInvalidValue, hipHostFree(device));
  GOOD(hipHostMalloc((void **)&other, KIB, hipHostMallocWriteCombined));
  GOOD(hipHostFree(other));
  GOOD(hipFree(managed));
  GOOD(hipHostFree(pinned));
  GOOD(hipFree(device));
}

/* A function of the runtime calls another one that the runtime exports. */
void scenario_nested(void)
{
  void *memory;
  GOOD(hipMemAllocHost(&memory, KIB));
  memset(memory, 1, KIB);
  GOOD(hipHostFree(memory));
}
