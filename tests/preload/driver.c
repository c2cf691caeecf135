/* SPDX-License-Identifier: MIT */
/* driver.c: a program that calls NVIDIA's driver and knows nothing of hipmm, over the stand-in of libcuda.c. DRIVER_WAY is
 * how it finds the functions: "opened", by dlopen() and dlsym(); "asked", by cuGetProcAddress() for the release that
 * brought each, as a CUDA runtime does that is linked statically; "asked-old", by the function that CUDA 11 has for that;
 * "default", by dlsym(RTLD_DEFAULT); "linked". For the latter two it is linked to the library (LINKED). */
#include "libcuda.h"
#include "scenario.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };
enum {
  INVALID = 1,
  MEMORY = 2,
  UNINITIALISED = 3,
  NO_CONTEXT = 201,
  NOT_FOUND = 500,
  UNSUPPORTED = 801,
  PEER_ALREADY_ENABLED = 704,
  PEER_NOT_ENABLED = 705,
  CAPTURE = 900
};

#define EXPECT(wanted, call) CHECK((call) == (wanted))
#define GOOD(call)           EXPECT(0, call)

/* ---- The functions ---- */

#define MEMBER(name, base, since, parameters, arguments) int(*name) parameters;
static struct {
  DRIVER_FUNCTIONS(MEMBER)
} driver;

static void *library, *runtime_lookup;
static unsigned (*fake_allocations_found)(void), (*fake_frees_found)(void);
static void (*fake_capture_found)(CUstream stream);

static void *look_up(const char *name, const char *base, int since, bool is_per_thread)
{
  typedef int old_function(const char *, void **, int, uint64_t);
  typedef int new_function(const char *, void **, int, uint64_t, int *);
  const char *way = getenv("DRIVER_WAY");
  void *found = NULL;
  int status = 0, code = 0;
  if (!strncmp(way, "asked", 5) && strcmp(base, "cuGetProcAddress") != 0) {
    if (!strcmp(way, "asked"))
      code = ((new_function *)runtime_lookup)(base, &found, since, is_per_thread ? 2 : 0, &status);
    else
      code = ((old_function *)runtime_lookup)(base, &found, since, is_per_thread ? 2 : 1);
    if (code || status) found = NULL;
  } else {
    found = dlsym(strcmp(way, "default") ? library : RTLD_DEFAULT, name);
  }
  if (!found) complain(__FILE__, __LINE__, "%s is not there", name);
  return found;
}

#define LOOK_UP(name, base, since, parameters, arguments)               \
  found = look_up(#name, #base, since, strstr(#name, "_ptsz") != NULL); \
  memcpy(&driver.name, &found, sizeof found);

static void find_functions(void)
{
  const char *way = getenv("DRIVER_WAY");
  void *found;
  library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) complain(__FILE__, __LINE__, "%s", dlerror());
  if (!library) exit(1);
  runtime_lookup = dlsym(library, strcmp(way, "asked") ? "cuGetProcAddress" : "cuGetProcAddress_v2");
#define FIND(name)               \
  found = dlsym(library, #name); \
  memcpy(&name##_found, &found, sizeof found)
  FIND(fake_allocations);
  FIND(fake_frees);
  FIND(fake_capture);
#ifdef LINKED
#define TAKE(name, base, since, parameters, arguments) driver.name = name;
  if (!strcmp(way, "linked")) {
    DRIVER_FUNCTIONS(TAKE)
    return;
  }
#endif
  DRIVER_FUNCTIONS(LOOK_UP)
}

/* ---- What all do ---- */

static CUcontext start(void)
{
  CUcontext context = NULL;
  GOOD(driver.cuInit(0));
  GOOD(driver.cuDevicePrimaryCtxRetain(&context, 0));
  GOOD(driver.cuCtxSetCurrent(context));
  return context;
}

static void verify(CUdeviceptr memory, int value, size_t bytes)
{
  static unsigned char host[64 * KIB];
  GOOD(driver.cuMemcpy((CUdeviceptr)(uintptr_t)host, memory, bytes));
  for (size_t i = 0; i < bytes; i++)
    if (host[i] != (unsigned char)value) {
      complain(__FILE__, __LINE__, "byte %zu is %d and not %d", i, host[i], value);
      return;
    }
}

static void fill(CUdeviceptr memory, int value, size_t bytes, CUstream stream)
{
  GOOD(driver.cuMemsetD8Async(memory, (unsigned char)value, bytes, stream));
  GOOD(driver.cuStreamSynchronize(stream));
  verify(memory, value, bytes);
}

static void use_memory(void)
{
  CUdeviceptr memory, ordered;
  CUstream stream;
  start();
  GOOD(driver.cuStreamCreate(&stream, 1));
  for (int i = 0; i < 10; i++) {
    GOOD(driver.cuMemAlloc_v2(&memory, 64 * KIB));
    GOOD(driver.cuMemAllocAsync(&ordered, 64 * KIB, stream));
    fill(memory, i, 64 * KIB, stream);
    fill(ordered, i + 1, 64 * KIB, stream);
    verify(memory, i, 64 * KIB);
    GOOD(driver.cuMemFree_v2(memory));
    GOOD(driver.cuMemFreeAsync(ordered, stream));
    GOOD(driver.cuMemAllocAsync_ptsz(&ordered, 32 * KIB, NULL)); /* stream 0 is the thread's own default stream */
    fill(ordered, i + 2, 32 * KIB, (CUstream)2);
    GOOD(driver.cuMemFreeAsync_ptsz(ordered, NULL));
  }
  GOOD(driver.cuStreamDestroy_v2(stream));
}

/* With a graph that has resources for managed and pinned memory, and a pool below a limit of 4 MiB. */
static void use_kinds(void)
{
  CUdeviceptr memory, base;
  void *pinned;
  size_t pitch = 0, bytes = 0, total = 0;
  unsigned flags = 9;
  start();
  GOOD(driver.cuMemAllocPitch_v2(&memory, &pitch, 100, 20, 4));
  CHECK(pitch == 512 && memory % 512 == 0);
  fill(memory, 3, pitch * 20, NULL);
  GOOD(driver.cuMemGetAddressRange_v2(&base, &bytes, memory + 700));
  CHECK(base == memory && bytes == pitch * 20);
  GOOD(driver.cuMemFree_v2(memory));
  EXPECT(INVALID, driver.cuMemAllocPitch_v2(&memory, &pitch, 100, 20, 5)); /* passed on */
  GOOD(driver.cuMemAllocManaged(&memory, KIB, 1));
  memset((void *)(uintptr_t)memory, 1, KIB);
  GOOD(driver.cuMemFree_v2(memory));
  EXPECT(INVALID, driver.cuMemAllocManaged(&memory, KIB, 0)); /* passed on */
  GOOD(driver.cuMemHostAlloc(&pinned, KIB, 1));
  memset(pinned, 1, KIB);
  GOOD(driver.cuMemHostGetFlags(&flags, pinned));
  CHECK(flags == 1);
  EXPECT(INVALID, driver.cuMemFree_v2((CUdeviceptr)(uintptr_t)pinned));
  GOOD(driver.cuMemFreeHost(pinned));
  GOOD(driver.cuMemAllocHost_v2(&pinned, KIB));
  GOOD(driver.cuMemFreeHost(pinned));
  GOOD(driver.cuMemGetInfo_v2(&bytes, &total));
  CHECK(total == 4 * MIB && bytes == 4 * MIB);
}

/* What the program asks of a pointer. */
static void ask(void)
{
  int attributes[] = {2, 7, 11, 12};
  uint32_t type = 0;
  uint64_t id = 1;
  CUdeviceptr memory, other, start_found = 0;
  size_t bytes = 0;
  void *values[] = {&type, &id, &start_found, &bytes};
  CUcontext context = start(), found = NULL;
  GOOD(driver.cuMemAlloc_v2(&other, KIB));
  GOOD(driver.cuMemAlloc_v2(&memory, 3 * KIB));
  GOOD(driver.cuPointerGetAttributes(4, attributes, values, memory + 8));
  CHECK(type == 2 && start_found == memory && bytes == 3 * KIB && id >> 31 == 1);
  bytes = 0;
  GOOD(driver.cuPointerGetAttribute(&bytes, 12, memory));
  CHECK(bytes == 3 * KIB);
  GOOD(driver.cuPointerGetAttribute(&found, 1, memory));
  CHECK(found == context);
  GOOD(driver.cuMemFree_v2(memory));
  EXPECT(NOT_FOUND, driver.cuMemGetAddressRange_v2(&start_found, &bytes, memory)); /* idle in the stack */
  EXPECT(INVALID, driver.cuPointerGetAttribute(&bytes, 12, memory));
  EXPECT(INVALID, driver.cuPointerGetAttribute(&bytes, 12, (CUdeviceptr)(uintptr_t)&bytes));
  GOOD(driver.cuMemFree_v2(other));
}

/* Run with a limit of 4 MiB. */
static void be_wrong(void)
{
  CUdeviceptr memory = 5, inner;
  CUcontext context = NULL;
  EXPECT(UNINITIALISED, driver.cuMemAlloc_v2(&memory, KIB));
  CHECK(memory == 5);
  GOOD(driver.cuInit(0));
  EXPECT(NO_CONTEXT, driver.cuMemAlloc_v2(&memory, KIB));
  GOOD(driver.cuDevicePrimaryCtxRetain(&context, 0));
  GOOD(driver.cuCtxSetCurrent(context));
  EXPECT(INVALID, driver.cuMemAlloc_v2(&memory, 0));
  EXPECT(INVALID, driver.cuMemAlloc_v2(NULL, KIB));
  EXPECT(MEMORY, driver.cuMemAlloc_v2(&memory, 5 * MIB));
  CHECK(memory == 5);
  GOOD(driver.cuMemAlloc_v2(&memory, KIB));
  inner = memory + 256;
  EXPECT(INVALID, driver.cuMemFree_v2(inner));
  GOOD(driver.cuMemFree_v2(memory));
  EXPECT(INVALID, driver.cuMemFree_v2(memory));
  EXPECT(INVALID, driver.cuMemFree_v2((CUdeviceptr)(uintptr_t)&memory));
  GOOD(driver.cuMemFree_v2(0));
}

/* Memory of another context than the device's primary one stays with the driver, and hipmm's is freed from there too. */
static void use_contexts(void)
{
  CUcontext primary = start(), own = NULL, found = NULL;
  CUdeviceptr ours, theirs;
  CUstream stream;
  GOOD(driver.cuMemAlloc_v2(&ours, KIB));
  fill(ours, 5, KIB, NULL);
  GOOD(driver.cuCtxCreate_v2(&own, 0, 0));
  unsigned before = fake_allocations_found();
  GOOD(driver.cuStreamCreate(&stream, 1));
  GOOD(driver.cuMemAlloc_v2(&theirs, KIB));
  CHECK(fake_allocations_found() == before + 1);
  GOOD(driver.cuMemFree_v2(theirs));
  GOOD(driver.cuMemAllocAsync(&theirs, KIB, stream)); /* passed on */
  GOOD(driver.cuMemFreeAsync(theirs, stream));
  verify(ours, 5, KIB);
  GOOD(driver.cuMemFree_v2(ours));
  GOOD(driver.cuCtxGetCurrent(&found));
  CHECK(found == own);
  GOOD(driver.cuCtxSetCurrent(primary));
  GOOD(driver.cuMemAllocAsync(&theirs, KIB, stream)); /* passed on */
  GOOD(driver.cuMemFreeAsync(theirs, stream));
  GOOD(driver.cuMemAlloc_v2(&ours, KIB));
  GOOD(driver.cuCtxSetCurrent(NULL));
  GOOD(driver.cuMemFree_v2(ours));
  GOOD(driver.cuCtxGetCurrent(&found));
  CHECK(!found);
  GOOD(driver.cuCtxSetCurrent(own));
  GOOD(driver.cuStreamDestroy_v2(stream));
}

/* Memory allocated in a capture belongs to the graph, and a capture can only free memory of its graph. */
static void use_capture(void)
{
  CUstream stream;
  CUdeviceptr ours, graphs;
  start();
  GOOD(driver.cuStreamCreate(&stream, 1));
  GOOD(driver.cuMemAllocAsync(&ours, KIB, stream));
  fake_capture_found(stream);
  GOOD(driver.cuMemAllocAsync(&graphs, KIB, stream)); /* passed on */
  GOOD(driver.cuMemFreeAsync(graphs, stream));        /* passed on */
  EXPECT(CAPTURE, driver.cuMemFreeAsync(ours, stream));
  fake_capture_found(NULL);
  GOOD(driver.cuMemFreeAsync(ours, stream));
  GOOD(driver.cuStreamDestroy_v2(stream));
}

static void use_pools(void)
{
  enum { RELEASE_THRESHOLD = 4, USED_CURRENT = 7 };
  struct {
    int type, handles, location, device;
    char rest[120];
  } props = {.type = 1, .location = 1, .device = 0};
  CUmemoryPool pool;
  CUdeviceptr memory;
  uint64_t used = 0;
  start();
  GOOD(driver.cuMemPoolCreate(&pool, &props));
  GOOD(driver.cuMemAllocFromPoolAsync(&memory, KIB, pool, NULL));
  GOOD(driver.cuMemPoolGetAttribute(pool, USED_CURRENT, &used));
  CHECK(used == KIB);
  GOOD(driver.cuMemFreeAsync(memory, NULL));
  GOOD(driver.cuMemPoolDestroy(pool));
  GOOD(driver.cuDeviceGetDefaultMemPool(&pool, 0));
  GOOD(driver.cuMemAllocFromPoolAsync(&memory, KIB, pool, NULL));
  GOOD(driver.cuMemFreeAsync(memory, NULL));
  GOOD(driver.cuCtxSynchronize());
  GOOD(driver.cuMemPoolTrimTo(pool, 0));
  EXPECT(INVALID, driver.cuMemAllocFromPoolAsync(&memory, KIB, NULL, NULL));
}

static void reset(void)
{
  CUdeviceptr memory;
  CUmemoryPool pool;
  CUstream stream;
  CUcontext context = start(), found = NULL;
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 5; i++) GOOD(driver.cuStreamCreate(&stream, 1)); /* they end with the reset */
    GOOD(driver.cuMemAlloc_v2(&memory, MIB));
    GOOD(driver.cuDevicePrimaryCtxReset_v2(0));
    GOOD(driver.cuCtxGetCurrent(&found));
    CHECK(found == context);
  }
  GOOD(driver.cuMemAlloc_v2(&memory, MIB));
  unsigned before = fake_frees_found();
  GOOD(driver.cuMemFree_v2(memory));
  GOOD(driver.cuDeviceGetDefaultMemPool(&pool, 0));
  GOOD(driver.cuMemPoolTrimTo(pool, 0));
  CHECK(fake_frees_found() == before + 1);
}

/* Run with two devices: memory of both, wherever it is freed; and streams of the device that is not current. */
static void use_devices(void)
{
  CUcontext contexts[2] = {start(), NULL}, found = NULL;
  CUdeviceptr memory[2], ordered;
  CUstream stream;
  GOOD(driver.cuDevicePrimaryCtxRetain(&contexts[1], 1));
  for (int device = 0; device < 2; device++) {
    GOOD(driver.cuCtxSetCurrent(contexts[device]));
    GOOD(driver.cuMemAlloc_v2(&memory[device], KIB));
    fill(memory[device], device + 1, KIB, NULL);
  }
  GOOD(driver.cuStreamCreate(&stream, 1));
  GOOD(driver.cuCtxSetCurrent(contexts[0]));
  GOOD(driver.cuPointerGetAttribute(&found, 1, memory[1]));
  CHECK(found == contexts[1]);
  GOOD(driver.cuMemAllocAsync(&ordered, KIB, stream));
  GOOD(driver.cuPointerGetAttribute(&found, 1, ordered));
  CHECK(found == contexts[1]);
  GOOD(driver.cuMemFreeAsync(ordered, stream));
  GOOD(driver.cuMemFree_v2(memory[1]));
  GOOD(driver.cuCtxGetCurrent(&found));
  CHECK(found == contexts[0]);
  GOOD(driver.cuCtxSetCurrent(contexts[1]));
  GOOD(driver.cuMemFree_v2(memory[0]));
  GOOD(driver.cuDevicePrimaryCtxReset_v2(1)); /* the memory of both devices stays, which a message says */
  GOOD(driver.cuCtxGetCurrent(&found));
  CHECK(found == contexts[1]);
  GOOD(driver.cuStreamDestroy_v2(stream));
}

/* Run with a graph whose device resource names peers: the program finds its own state of access all the same. */
static void use_peers(void)
{
  CUcontext contexts[2] = {start(), NULL};
  CUdeviceptr memory;
  GOOD(driver.cuDevicePrimaryCtxRetain(&contexts[1], 1));
  GOOD(driver.cuMemAlloc_v2(&memory, KIB));
  GOOD(driver.cuCtxSetCurrent(contexts[1]));
  EXPECT(PEER_NOT_ENABLED, driver.cuCtxDisablePeerAccess(contexts[0]));
  GOOD(driver.cuCtxEnablePeerAccess(contexts[0], 0));
  EXPECT(PEER_ALREADY_ENABLED, driver.cuCtxEnablePeerAccess(contexts[0], 0));
  GOOD(driver.cuCtxDisablePeerAccess(contexts[0]));
  GOOD(driver.cuMemFree_v2(memory));
}

/* The child opens the handle of a block that begins within an allocation, and fills the block. */
static int open_part(int pipe_end)
{
  CUipcMemHandle handle;
  CUdeviceptr memory;
  if (read(pipe_end, &handle, sizeof handle) != (ssize_t)sizeof handle) return 1;
  start();
  if (driver.cuIpcOpenMemHandle_v2(&memory, handle, 1)) return 2;
  if (driver.cuMemsetD8_v2(memory, 9, KIB) || driver.cuCtxSynchronize()) return 3;
  return driver.cuIpcCloseMemHandle(memory) ? 4 : 0;
}

static void share(void)
{
  CUipcMemHandle handle;
  CUdeviceptr first, memory;
  int ends[2], status = 1;
  CHECK(!pipe(ends));
  pid_t child = fork(); /* before the first call */
  if (!child) exit(open_part(ends[0]));
  start();
  GOOD(driver.cuMemAlloc_v2(&first, KIB));
  GOOD(driver.cuMemAlloc_v2(&memory, KIB));
  fill(first, 1, KIB, NULL);
  GOOD(driver.cuIpcGetMemHandle(&handle, memory));
  CHECK(write(ends[1], &handle, sizeof handle) == (ssize_t)sizeof handle);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  verify(memory, 9, KIB);
  verify(first, 1, KIB);
  GOOD(driver.cuMemFree_v2(memory));
  GOOD(driver.cuMemFree_v2(first));
}

/* Each thread has a context of its own choice, or none. */
static void *use_in_thread(void *context)
{
  CUdeviceptr memory;
  EXPECT(NO_CONTEXT, driver.cuMemAlloc_v2(&memory, KIB));
  GOOD(driver.cuCtxSetCurrent(context));
  for (int i = 0; i < 50; i++) {
    GOOD(driver.cuMemAlloc_v2(&memory, 4 * KIB));
    GOOD(driver.cuMemsetD8_v2(memory, (unsigned char)i, 4 * KIB));
    GOOD(driver.cuMemFree_v2(memory));
  }
  return NULL;
}

static void use_threads(void)
{
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  CUcontext context = start();
  for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, use_in_thread, context));
  for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
}

/* A name stands for other functions in other releases; hipmm has a hook for one of them. */
static void ask_for_releases(void)
{
  typedef int lookup(const char *, void **, int, uint64_t, int *);
  void *first = NULL, *second = NULL, *third = NULL, *again = NULL, *itself = NULL;
  int status;
  lookup *find = (lookup *)driver.cuGetProcAddress_v2;
  GOOD(find("cuMemAlloc", &first, 2000, 0, &status));
  GOOD(find("cuMemAlloc", &second, 12000, 0, &status));
  GOOD(find("cuMemAlloc", &third, 99000, 0, &status));
  CHECK(first != second && second != third && first != third);
  EXPECT(UNSUPPORTED, ((int (*)(unsigned *, unsigned))first)(NULL, 1));
  EXPECT(UNSUPPORTED, ((int (*)(CUdeviceptr *, size_t, int))third)(NULL, 1, 0));
  GOOD(find("cuGetProcAddress", &itself, 12000, 0, &status));
  GOOD(((lookup *)itself)("cuMemAlloc", &again, 12000, 0, &status));
  CHECK(again == second);
  EXPECT(NOT_FOUND, find("cuNothing", &again, 12000, 0, &status));
  CHECK(!again);
  CHECK(!dlsym(library, "cuNothing") && strstr(dlerror(), "cuNothing"));
  CHECK(dlsym(library, "cuMemAlloc_v2") && !dlerror());
  CHECK(!dlsym(RTLD_DEFAULT, "cudaMalloc") && dlerror()); /* without hipmm it would not be there either */
}

int main(int argc, char **argv)
{
  static const struct scenario scenarios[] = {
      {"memory", use_memory},        {"kinds", use_kinds},     {"ask", ask},         {"wrong", be_wrong},
      {"contexts", use_contexts},    {"capture", use_capture}, {"pools", use_pools}, {"reset", reset},
      {"threads", use_threads},      {"devices", use_devices}, {"peers", use_peers}, {"share", share},
      {"releases", ask_for_releases}};
  find_functions();
  return scenario_main(scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
