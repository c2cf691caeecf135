/* SPDX-License-Identifier: MIT */
/* gpu_smoke.c: the nvidia runtime on a real GPU. Opens nvidia.so as the core does and checks each part with data. Run
 * by gpu_smoke.sh on a machine that needs only a driver and a C compiler. Prints "ok", "FAIL" or "--" (not on this
 * machine) and what was checked; ends with 1 if anything failed.
 *
 *     gpu_smoke PATH/nvidia.so
 */
#include "gpu_smoke.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void sleep_ms(int ms)
{
  struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
  nanosleep(&time, NULL);
}

/* ---- Checks ---------------------------------------------------------------------------------------------------- */

static void *ask_device(void *device)
{
  if (hip.GetDevice(device)) *(int *)device = -2;
  return NULL;
}

static void check_devices(int count)
{
  char name[128] = "";
  int device = -1, version = 0, driver = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, ask_device, &device);
  pthread_join(thread, NULL);
  check(device == 0, 0, "a thread that has done nothing is on device 0");
  int code = hip.DeviceGetName(name, sizeof name, 0);
  check(code == 0 && *name, code, "device 0 is %s (of %d)", name, count);
  hip.RuntimeGetVersion(&version);
  hip.DriverGetVersion(&driver);
  check(version >= 50000000 && driver >= 11030, 0, "HIP %d.%d on a driver for CUDA %d.%d", version / 10000000,
        version / 100000 % 100, driver / 1000, driver % 1000 / 10);
  check(attribute(87) == 32, 0, "a warp has 32 threads; pools %d, virtual memory %d, managed memory %d",
        attribute(ATTRIBUTE_POOLS), attribute(ATTRIBUTE_VIRTUAL), attribute(ATTRIBUTE_MANAGED));
  code = hip.SetDevice(count);
  check(code == INVALID_DEVICE, code, "device %d is refused", count);
}

static void check_memory(void)
{
  void *a = NULL, *b = NULL, *base = NULL;
  size_t bytes = 4 * MIB, length = 0, before = 0, after = 0, total = 0;
  int code = hip.Malloc(&a, bytes);
  check(code == 0 && a, code, "device memory is allocated");
  hip.Malloc(&b, bytes);
  hip.Memset(a, 0x5a, bytes);
  check(device_holds(a, 0x5a, bytes), 0, "memset fills it");
  for (size_t i = 0; i < bytes; i++) host[i] = (unsigned char)(i * 7 + i / 251);
  code = hip.Memcpy(a, host, bytes, TO_DEVICE);
  if (!code) code = hip.Memcpy(b, a, bytes, ANY);
  memset(host, 0, bytes);
  if (!code) code = hip.Memcpy(host, b, bytes, TO_HOST);
  size_t wrong = 0;
  for (size_t i = 0; i < bytes; i++) wrong += host[i] != (unsigned char)(i * 7 + i / 251);
  check(code == 0 && wrong == 0, code, "host to device to device to host keeps %zu bytes", bytes);
  hip.MemsetD32(a, 0x04030201, MIB);
  hip.Memcpy(host, a, 8, TO_HOST);
  check(!memcmp(host, "\1\2\3\4\1\2\3\4", 8), 0, "memset of 32-bit words");
  code = hip.MemGetAddressRange(&base, &length, (char *)a + 100);
  check(code == 0 && base == a && length >= bytes, code, "the range of an address is found");
  hip.MemGetInfo(&before, &total);
  check(hip.Free(a) == 0 && hip.Free(b) == 0, 0, "and freed");
  hip.MemGetInfo(&after, &total);
  check(after >= before && total > after, 0, "free memory is told: %zu of %zu MiB", after / MIB, total / MIB);
}

static void check_mistakes(void)
{
  void *ptr = (void *)1;
  int code = hip.Malloc(&ptr, 0);
  check(code == 0 && !ptr && hip.Free(NULL) == 0, code, "zero bytes are NULL, and NULL can be freed");
  ptr = (void *)1;
  code = hip.Malloc(&ptr, (size_t)1 << 46);
  check(code == OUT_OF_MEMORY && ptr == (void *)1, code, "64 TiB are out of memory and write no pointer");
  code = hip.GetLastError();
  check(code == 0, code, "the last error was taken");
  hip.Malloc(&ptr, (size_t)1 << 46);
  code = hip.GetLastError();
  check(code == OUT_OF_MEMORY && hip.GetLastError() == 0, code, "the last error is kept once");
  code = hip.Malloc(&ptr, MIB);
  check(code == 0, code, "and the device still gives memory");
  hip.Free(ptr);
  code = hip.Free((void *)0x1000);
  check(code == INVALID_VALUE, code, "an address that is not memory is refused");
  code = hip.Memcpy(host, host, 1, 9);
  check(code == 21, code, "a direction that is none is refused");
}

static void nap(void *ms)
{
  sleep_ms(*(int *)ms);
}

/* Fills on one stream, after a delay, and copies on another, with or without a wait. */
static bool handed_over(void *ptr, void *pinned, void *first, void *second, void *event, bool waits)
{
  static int ms = 100;
  hip.Memset(ptr, 1, MIB);
  hip.DeviceSynchronize();
  memset(pinned, 0, MIB);
  hip.LaunchHostFunc(first, nap, &ms);
  hip.MemsetAsync(ptr, 2, MIB, first);
  hip.EventRecord(event, first);
  if (waits) hip.StreamWaitEvent(second, event, 0);
  hip.MemcpyAsync(pinned, ptr, MIB, TO_HOST, second);
  hip.StreamSynchronize(second);
  bool good = holds(pinned, waits ? 2 : 1, MIB);
  hip.DeviceSynchronize();
  return good;
}

static void check_streams(void)
{
  void *first = NULL, *second = NULL, *event = NULL, *ptr = NULL, *pinned = NULL, *start = NULL, *stop = NULL;
  unsigned long long id_1 = 0, id_2 = 0;
  int ms = 50, device = -1;
  float elapsed = 0;
  int code = hip.StreamCreateWithFlags(&first, 1);
  if (!code) code = hip.StreamCreateWithFlags(&second, 1);
  if (!code) code = hip.EventCreateWithFlags(&event, 2);
  hip.EventCreateWithFlags(&start, 0);
  hip.EventCreateWithFlags(&stop, 0);
  check(code == 0, code, "streams and events are made");
  hip.Malloc(&ptr, MIB);
  hip.HostMalloc(&pinned, MIB, 1);
  check(handed_over(ptr, pinned, first, second, event, true), 0, "a stream that waits for an event sees the data");
  check(handed_over(ptr, pinned, first, second, event, false), 0, "one that does not wait sees the data before");
  hip.EventRecord(start, first);
  hip.LaunchHostFunc(first, nap, &ms);
  hip.EventRecord(stop, first);
  code = hip.EventQuery(stop);
  check(code == NOT_READY, code, "an event ahead is not ready");
  code = hip.StreamQuery(first);
  check(code == NOT_READY, code, "nor is its stream");
  code = hip.EventSynchronize(stop);
  check(code == 0 && hip.EventQuery(stop) == 0, code, "until it is waited for");
  code = hip.EventElapsedTime(&elapsed, start, stop);
  check(code == 0 && elapsed > 45 && elapsed < 1000, code, "a nap of 50 ms took %.1f ms", (double)elapsed);
  code = hip.StreamGetId(first, &id_1);
  if (!code) code = hip.StreamGetId(second, &id_2);
  check(code == 0 && id_1 != id_2, code, "streams have ids: %llu, %llu", id_1, id_2);
  code = hip.StreamGetDevice(first, &device);
  check(code == 0 && device == 0, code, "and a device");
  for (uintptr_t i = 0; i < 3; i++) {
    code = hip.MemsetAsync(ptr, (int)i + 5, MIB, (void *)i);
    if (!code) code = hip.StreamSynchronize((void *)i);
    check(code == 0 && device_holds(ptr, (int)i + 5, MIB), code, "stream %d (default, legacy, the thread's) works",
          (int)i);
  }
  check(hip.StreamDestroy(NULL) == 400, 0, "the default stream cannot be destroyed");
  code = hip.EventDestroy(event) | hip.EventDestroy(start) | hip.EventDestroy(stop);
  code |= hip.StreamDestroy(first) | hip.StreamDestroy(second) | hip.Free(ptr) | hip.HostFree(pinned);
  check(code == 0, code, "all are given back");
}

/* Two chunks are mapped, filled, and mapped in the other order. */
static void check_virtual_memory(void)
{
  if (!attribute(ATTRIBUTE_VIRTUAL)) {
    absent("virtual memory");
    return;
  }
  int version = 0;
  hip.RuntimeGetVersion(&version);
  struct prop_5_2 old = {.location = {1, 0}, .type = 1};
  struct prop_5_3 new = {.location = {1, 0}, .type = 1};
  const void *prop = version < 50300000 ? (const void *)&old : (const void *)&new;
  struct access access = {.location = {1, 0}, .flags = 3};
  size_t size = 0;
  void *range = NULL, *pieces[2] = {NULL, NULL};
  int code = hip.MemGetAllocationGranularity(&size, prop, 0);
  check(code == 0 && size >= 4096 && size <= sizeof host, code, "the granularity is %zu KiB", size / 1024);
  if (code || size > sizeof host) return;
  code = hip.MemAddressReserve(&range, 4 * size, 0, NULL, 0);
  for (int i = 0; !code && i < 2; i++) code = hip.MemCreate(&pieces[i], size, prop, 0);
  check(code == 0 && range, code, "addresses are reserved and pieces made");
  char *at = range;
  for (int i = 0; !code && i < 2; i++) code = hip.MemMap(at + (size_t)i * size, size, 0, pieces[i], 0);
  if (!code) code = hip.MemSetAccess(at, 2 * size, &access, 1);
  if (!code) code = hip.Memset(at, 0x11, size) | hip.Memset(at + size, 0x22, size);
  if (!code) code = hip.DeviceSynchronize();
  check(code == 0 && device_holds(at, 0x11, size) && device_holds(at + size, 0x22, size), code, "pieces are mapped");
  code = hip.MemUnmap(at, size) | hip.MemUnmap(at + size, size);
  for (int i = 0; !code && i < 2; i++) code = hip.MemMap(at + (size_t)(3 - i) * size, size, 0, pieces[i], 0);
  if (!code) code = hip.MemSetAccess(at + 2 * size, 2 * size, &access, 1);
  check(code == 0 && device_holds(at + 3 * size, 0x11, size) && device_holds(at + 2 * size, 0x22, size), code,
        "mapped elsewhere they keep their data");
  code = hip.MemUnmap(at + 2 * size, size) | hip.MemUnmap(at + 3 * size, size) | hip.MemRelease(pieces[0]) |
         hip.MemRelease(pieces[1]) | hip.MemAddressFree(range, 4 * size);
  check(code == 0, code, "and all is given back");
}

static void check_pools(void)
{
  if (!attribute(ATTRIBUTE_POOLS)) {
    absent("pools");
    return;
  }
  struct pool_props props = {.type = 1, .location = {1, 0}};
  void *pool = NULL, *a = NULL, *b = NULL, *standard = NULL, *stream = NULL;
  uint64_t threshold = UINT64_MAX, got = 0, used = 0, reserved = 0;
  hip.StreamCreateWithFlags(&stream, 1);
  int code = hip.MemPoolCreate(&pool, &props);
  if (!code) code = hip.MemPoolSetAttribute(pool, 4, &threshold) | hip.MemPoolGetAttribute(pool, 4, &got);
  check(code == 0 && got == threshold, code, "a pool keeps its release threshold");
  code = hip.MallocFromPoolAsync(&a, 2 * MIB, pool, stream);
  if (!code) code = hip.MemsetAsync(a, 0x33, 2 * MIB, stream);
  if (!code) code = hip.StreamSynchronize(stream);
  hip.MemPoolGetAttribute(pool, 7, &used);
  check(code == 0 && used >= 2 * MIB && device_holds(a, 0x33, 2 * MIB), code, "it gives memory in stream order");
  code = hip.FreeAsync(a, stream) | hip.StreamSynchronize(stream);
  hip.MemPoolGetAttribute(pool, 7, &used);
  hip.MemPoolGetAttribute(pool, 5, &reserved);
  check(code == 0 && used == 0 && reserved > 0, code, "takes it back and holds it");
  code = hip.MemPoolTrimTo(pool, 0);
  hip.MemPoolGetAttribute(pool, 5, &reserved);
  check(code == 0 && reserved == 0, code, "until it is trimmed");
  code = hip.DeviceGetDefaultMemPool(&standard, 0) | hip.MallocAsync(&b, MIB, stream);
  if (!code) code = hip.MemsetAsync(b, 0x44, MIB, stream) | hip.StreamSynchronize(stream);
  check(code == 0 && standard && device_holds(b, 0x44, MIB), code, "the default pool gives memory too");
  code =
      hip.FreeAsync(b, stream) | hip.StreamSynchronize(stream) | hip.MemPoolDestroy(pool) | hip.StreamDestroy(stream);
  check(code == 0, code, "and all is given back");
}

/* Memory of the host's node that is nearest to the device, for both. */
static void check_mapped_node(struct location node)
{
  struct prop_5_2 old = {.location = node, .type = 1};
  struct prop_5_3 new = {.location = node, .type = 1};
  struct access both[] = {{{1, 0}, 3}, {node, 3}};
  int version = 0;
  size_t size = 0;
  void *range = NULL, *piece = NULL;
  hip.RuntimeGetVersion(&version);
  const void *prop = version < 50300000 ? (const void *)&old : (const void *)&new;
  if (hip.MemGetAllocationGranularity(&size, prop, 0) || size > sizeof host || hip.MemCreate(&piece, size, prop, 0)) {
    hip.GetLastError();
    absent("mapped memory of the host");
    return;
  }
  int code = hip.MemAddressReserve(&range, size, 0, NULL, 0);
  if (!code) code = hip.MemMap(range, size, 0, piece, 0);
  if (!code) code = hip.MemSetAccess(range, size, both, 2);
  if (!code) code = hip.MemsetAsync(range, 0x51, size, NULL);
  if (!code) code = hip.StreamSynchronize(NULL);
  check(code == 0 && holds(range, 0x51, size), code, "memory of the host's node %d is mapped for both", node.id);
  code = hip.MemUnmap(range, size) | hip.MemRelease(piece) | hip.MemAddressFree(range, size);
  check(code == 0, code, "and is given back");
}

/* What HIP 7 and CUDA 13 name by its location, and descriptors of ranges. */
static void check_locations(void)
{
  struct location device = {1, 0}, node = {3, attribute(ATTRIBUTE_NODE)};
  void *one = NULL, *other = NULL, *memory = NULL;
  int fd = -1, code = hip.MemGetDefaultMemPool(&one, &device, 1);
  if (code == 801)
    absent("pools by location");
  else
    check(code == 0 && !hip.DeviceGetDefaultMemPool(&other, 0) && one == other, code, "a location has a pool");
  if (attribute(ATTRIBUTE_VIRTUAL)) check_mapped_node(node);
  code = hip.Malloc(&memory, 2 * MIB);
  int range_code = code ? code : hip.MemGetHandleForAddressRange(&fd, memory, 2 * MIB, 1, 0);
  if (range_code) absent("descriptors of ranges (dma-buf)");
  if (!range_code) check(fd >= 0 && !close(fd), 0, "a range of memory has a descriptor");
  check(!hip.Free(memory), 0, "its memory is freed");
  if (!attribute(ATTRIBUTE_MANAGED) || hip.MallocManaged(&memory, MIB, 1)) return;
  code = hip.MemAdvise_v2(memory, MIB, 3, node);
  if (!code) code = hip.MemPrefetchAsync_v2(memory, MIB, device, 0, NULL) | hip.StreamSynchronize(NULL);
  if (code == 801)
    absent("advice by location");
  else
    check(code == 0, code, "managed memory is advised and prefetched by location");
  hip.GetLastError();
  hip.Free(memory);
}

static void check_host_memory(void)
{
  void *pinned = NULL, *device = NULL, *own = NULL;
  int code = hip.HostMalloc(&pinned, MIB, 0x40000001); /* coherent, portable */
  check(code == 0 && pinned, code, "pinned memory is allocated, with flags of AMD's");
  memset(pinned, 0x66, MIB);
  hip.Malloc(&device, MIB);
  code = hip.MemcpyAsync(device, pinned, MIB, ANY, NULL) | hip.StreamSynchronize(NULL);
  check(code == 0 && device_holds(device, 0x66, MIB), code, "and copied from");
  code = hip.MemsetAsync(pinned, 0x67, MIB, NULL) | hip.StreamSynchronize(NULL);
  check(code == 0 && holds(pinned, 0x67, MIB), code, "and filled by the device");
  own = aligned_alloc(4096, MIB);
  memset(own, 0x68, MIB);
  code = hip.HostRegister(own, MIB, 0);
  if (!code) code = hip.MemcpyAsync(device, own, MIB, TO_DEVICE, NULL) | hip.StreamSynchronize(NULL);
  check(code == 0 && device_holds(device, 0x68, MIB), code, "memory of the program's own is registered");
  code = hip.HostUnregister(own) | hip.HostFree(pinned) | hip.Free(device);
  check(code == 0, code, "and all is given back");
  free(own);
  if (!attribute(ATTRIBUTE_MANAGED)) {
    absent("managed memory");
    return;
  }
  code = hip.MallocManaged(&pinned, MIB, 1);
  if (!code) memset(pinned, 0x70, MIB);
  if (!code) code = hip.MemAdvise(pinned, MIB, 3, 0) | hip.MemPrefetchAsync(pinned, MIB, 0, NULL);
  check(code == 0, code, "managed memory is advised and prefetched");
  code = hip.MemsetAsync(pinned, 0x71, MIB / 2, NULL) | hip.DeviceSynchronize();
  check(code == 0 && holds(pinned, 0x71, MIB / 2) && holds((unsigned char *)pinned + MIB / 2, 0x70, MIB / 2), code,
        "and written by both sides");
  code = hip.Free(pinned);
  check(code == 0, code, "and freed as device memory is");
}

/* Starts without a context, as the threads of any program do. */
static void *work(void *wrong)
{
  unsigned char bytes[4096];
  void *stream = NULL, *ptr = NULL;
  if (hip.StreamCreateWithFlags(&stream, 1)) return (*(int *)wrong = 1000, NULL);
  for (int i = 0; i < 300; i++) {
    if (hip.Malloc(&ptr, 64 * 1024)) return (*(int *)wrong += 1, NULL);
    int code = hip.MemsetAsync(ptr, i, 64 * 1024, stream) |
               hip.MemcpyAsync(bytes, (char *)ptr + 1000 * (i % 50), sizeof bytes, TO_HOST, stream) |
               hip.StreamSynchronize(stream) | hip.Free(ptr);
    *(int *)wrong += code != 0 || !holds(bytes, i, sizeof bytes);
  }
  *(int *)wrong += hip.StreamDestroy(stream) != 0;
  return NULL;
}

static void check_threads(void)
{
  pthread_t threads[2];
  int wrong[2] = {0, 0};
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &wrong[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  check(wrong[0] == 0 && wrong[1] == 0, 0, "two threads, 300 rounds each, are right (%d and %d wrong)", wrong[0],
        wrong[1]);
}

/* ---- All ------------------------------------------------------------------------------------------------------- */

int main(int n_arguments, char **arguments)
{
  if (n_arguments < 2) {
    fprintf(stderr, "usage: gpu_smoke PATH/nvidia.so\n");
    return 2;
  }
  if (!open_runtime(arguments[1])) return 1;
  if (n_arguments > 2) return other_process(arguments[2]);
  int count = 0, code = hip.GetDeviceCount(&count);
  check(code == 0 && count > 0, code, "there are %d devices", count);
  if (code) return 1;
  check_devices(count);
  check_memory();
  check_mistakes();
  check_streams();
  check_virtual_memory();
  check_pools();
  check_locations();
  check_host_memory();
  check_threads();
  check_others();
  check_cuda_runtime(count);
  check_two_devices(count);
  check_other_processes(arguments[1]);
  check_fork();
  show_cost();
  printf("%s\n", failures ? "FAILED" : "all is well");
  return failures != 0;
}
