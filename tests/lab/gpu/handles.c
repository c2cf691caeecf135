/* SPDX-License-Identifier: MIT */
/* handles.c: what NVIDIA's driver takes to create, map and release physical memory: plain, for RDMA, with a file
 * descriptor, and both. Prints microseconds, the median of the calls, and whether the memory says that it has RDMA. Knows
 * nothing of hipmm.
 *
 *     cc -O2 -I/usr/local/cuda/include -o handles handles.c -ldl && ./handles [MIB…]        chunks of 2 and 64 MiB by default
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CHUNKS = 64 };

enum step { CREATE, MAP, ACCESS, UNMAP, RELEASE, STEPS };

#define FUNCTIONS(X)               \
  X(cuInit)                        \
  X(cuDevicePrimaryCtxRetain)      \
  X(cuCtxSetCurrent)               \
  X(cuDeviceGetAttribute)          \
  X(cuMemGetAllocationGranularity) \
  X(cuMemAddressReserve)           \
  X(cuMemAddressFree)              \
  X(cuMemCreate)                   \
  X(cuMemRelease)                  \
  X(cuMemMap)                      \
  X(cuMemUnmap)                    \
  X(cuMemSetAccess)                \
  X(cuMemGetAllocationPropertiesFromHandle)

static struct {
#define MEMBER(name) __typeof__(name) *name;
  FUNCTIONS(MEMBER)
} driver;

static double times[STEPS][CHUNKS];

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void need(const char *call, CUresult code)
{
  if (!code) return;
  fprintf(stderr, "handles: %s: error %d\n", call, (int)code);
  exit(2);
}

static int by_size(const void *one, const void *other)
{
  double difference = *(const double *)one - *(const double *)other;
  return difference < 0 ? -1 : difference > 0;
}

static void print_row(const char *name, size_t bytes, CUmemAllocationProp prop)
{
  CUmemGenericAllocationHandle handles[CHUNKS];
  CUmemAllocationProp found;
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr range;
  double sum = 0;
  need("cuMemAddressReserve", driver.cuMemAddressReserve(&range, bytes * CHUNKS, 0, 0, 0));
  for (int i = 0; i < CHUNKS; i++) {
    CUdeviceptr at = range + (size_t)i * bytes;
    double start = now();
    CUresult code = driver.cuMemCreate(&handles[i], bytes, &prop, 0);
    if (code) {
      printf("%-22s  refused: error %d\n", name, (int)code);
      return;
    }
    double created = now();
    need("cuMemMap", driver.cuMemMap(at, bytes, 0, handles[i], 0));
    double mapped = now();
    need("cuMemSetAccess", driver.cuMemSetAccess(at, bytes, &access, 1));
    times[ACCESS][i] = now() - mapped;
    times[MAP][i] = mapped - created;
    times[CREATE][i] = created - start;
  }
  need("cuMemGetAllocationPropertiesFromHandle", driver.cuMemGetAllocationPropertiesFromHandle(&found, handles[0]));
  for (int i = 0; i < CHUNKS; i++) {
    double start = now();
    need("cuMemUnmap", driver.cuMemUnmap(range + (size_t)i * bytes, bytes));
    double unmapped = now();
    need("cuMemRelease", driver.cuMemRelease(handles[i]));
    times[RELEASE][i] = now() - unmapped;
    times[UNMAP][i] = unmapped - start;
  }
  need("cuMemAddressFree", driver.cuMemAddressFree(range, bytes * CHUNKS));
  printf("%-22s  %5zu", name, bytes >> 20);
  for (int step = 0; step < STEPS; step++) {
    qsort(times[step], CHUNKS, sizeof **times, by_size);
    printf("  %8.1f", times[step][CHUNKS / 2]);
    sum += times[step][CHUNKS / 2];
  }
  printf("  %8.1f  %s\n", sum, found.allocFlags.gpuDirectRDMACapable ? "yes" : "no");
}

static void print_rows(size_t mib)
{
  CUmemAllocationProp plain = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
  CUmemAllocationProp rdma = plain, descriptor = plain, both, fabric = plain;
  rdma.allocFlags.gpuDirectRDMACapable = 1;
  descriptor.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  both = descriptor;
  both.allocFlags.gpuDirectRDMACapable = 1;
  fabric.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  print_row("plain", mib << 20, plain);
  print_row("RDMA", mib << 20, rdma);
  print_row("file descriptor", mib << 20, descriptor);
  print_row("descriptor and RDMA", mib << 20, both);
  print_row("fabric", mib << 20, fabric);
  print_row("plain, once more", mib << 20, plain);
}

int main(int argc, char **argv)
{
  CUcontext context;
  int can = 0;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return fprintf(stderr, "handles: %s\n", dlerror()), 2;
#define LOAD(name) *(void **)&driver.name = dlsym(library, #name);
  FUNCTIONS(LOAD)
  need("cuInit", driver.cuInit(0));
  need("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(&context, 0));
  need("cuCtxSetCurrent", driver.cuCtxSetCurrent(context));
  driver.cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0);
  printf("the device %s RDMA of mapped memory; microseconds\n", can ? "has" : "lacks");
  printf("%-22s  %5s  %8s  %8s  %8s  %8s  %8s  %8s  RDMA\n", "memory", "MiB", "create", "map", "access", "unmap",
         "release", "all");
  for (int i = 1; i < argc; i++) {
    if (atoi(argv[i]) < 2 || atoi(argv[i]) % 2) return fprintf(stderr, "usage: handles [MIB…], even numbers\n"), 2;
    print_rows((size_t)atoi(argv[i]));
  }
  if (argc < 2) print_rows(2), print_rows(64);
  return 0;
}
