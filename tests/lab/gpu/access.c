/* SPDX-License-Identifier: MIT */
/* access.c: what it costs to give 1, 2, … devices access to mapped memory of device 0, and whether that is enough: copies
 * and fills of two chunks that are mapped side by side, over their border, with each of the devices current. HIPMM_RUNTIME
 * chooses the runtime. Prints a table in microseconds, the median of each call and the largest for access; exit status 1
 * if something was refused or data is wrong.
 *
 *     access [--chunks N] [BYTES…]     chunks of that many bytes, rounded up to granules; by default 2 MiB and 64 MiB
 *
 *     HIPMM_PLUGIN_PATH=$PWD/plugins HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=8 tests/lab/gpu/access     (in build) */
#include "../../../core/base/units.h"
#include "../../../core/runtime/hip.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_DEVICES = 64, MOST_CHUNKS = 4096, USUAL_CHUNKS = 32 };

enum step { CREATE, MAP, ACCESS, UNMAP, DESTROY, STEPS };

static const struct hipmm_hip *hip;
static int devices[MOST_DEVICES], n_devices; /* device 0, and those that reach its memory */
static int n_chunks = USUAL_CHUNKS;
static double times[STEPS][MOST_CHUNKS];
static int failures;

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void die(const char *what, const char *why)
{
  fprintf(stderr, "access: %s: %s\n", what, why);
  exit(2);
}

static void need(const char *call, int code)
{
  if (code) die(call, hip->GetErrorName(code));
}

/* ---- Time ---- */

static int by_size(const void *one, const void *other)
{
  double difference = *(const double *)one - *(const double *)other;
  return difference < 0 ? -1 : difference > 0;
}

static double median(enum step step)
{
  qsort(times[step], (size_t)n_chunks, sizeof **times, by_size);
  return times[step][n_chunks / 2];
}

static void give_access(char *at, size_t bytes, int n)
{
  for (int i = 0; i < n; i++) need("hipMemSetAccess", hip->MemSetAccess(at, bytes, devices[i]));
}

/* Puts chunks side by side, as a pool does, and takes them away again. */
static void time_chunks(size_t bytes, int n)
{
  static hipmm_hip_chunk_t handles[MOST_CHUNKS];
  void *range;
  need("hipMemAddressReserve", hip->MemAddressReserve(&range, bytes * (size_t)n_chunks, 0));
  for (int i = 0; i < n_chunks; i++) {
    char *at = (char *)range + (size_t)i * bytes;
    double start = now();
    need("hipMemCreate", hip->MemCreate(&handles[i], bytes, 0));
    double created = now();
    need("hipMemMap", hip->MemMap(at, bytes, handles[i]));
    double mapped = now();
    give_access(at, bytes, n);
    times[ACCESS][i] = now() - mapped;
    times[MAP][i] = mapped - created;
    times[CREATE][i] = created - start;
  }
  for (int i = 0; i < n_chunks; i++) {
    double start = now();
    need("hipMemUnmap", hip->MemUnmap((char *)range + (size_t)i * bytes, bytes));
    double unmapped = now();
    need("hipMemRelease", hip->MemRelease(handles[i]));
    times[DESTROY][i] = now() - unmapped;
    times[UNMAP][i] = unmapped - start;
  }
  need("hipMemAddressFree", hip->MemAddressFree(range, bytes * (size_t)n_chunks));
}

static void print_row(size_t bytes, int n)
{
  char size[40];
  time_chunks(bytes, n);
  double create = median(CREATE), map = median(MAP), access = median(ACCESS), unmap = median(UNMAP),
         destroy = median(DESTROY);
  printf("%7d  %9s  %8.1f  %8.1f  %8.1f  %8.1f  %8.1f  %8.1f  %8.1f\n", n, units_format_bytes(bytes, size, sizeof size),
         create, map, access, times[ACCESS][n_chunks - 1], unmap, destroy, create + map + access + unmap + destroy);
}

/* ---- Use ---- */

static void expect(int device, const char *what, int code)
{
  if (!code) return;
  hip->GetLastError();
  printf("device %d current: %s: %s\n", device, what, hip->GetErrorName(code));
  failures++;
}

static void expect_bytes(int device, const char *what, const unsigned char *host, int value, size_t bytes)
{
  size_t wrong = 0;
  for (size_t i = 0; i < bytes; i++) wrong += host[i] != (unsigned char)value;
  if (wrong) printf("device %d current: %s: %zu bytes are wrong\n", device, what, wrong);
  failures += wrong > 0;
}

/* All of two chunks: each copy and fill goes over their border. */
static void use_from(int device, char *memory, size_t bytes, unsigned char *host)
{
  void *own;
  int value = device * 3 + 1;
  need("hipSetDevice", hip->SetDevice(device));
  need("hipMalloc", hip->Malloc(&own, bytes));
  memset(host, value, bytes);
  expect(device, "hipMemcpy to it", hip->Memcpy(memory, host, bytes, HIPMM_HIP_MEMCPY_DEFAULT));
  expect(device, "hipMemcpy from it", hip->Memcpy(own, memory, bytes, HIPMM_HIP_MEMCPY_DEFAULT));
  memset(host, 0, bytes);
  expect(device, "hipMemcpy to the host", hip->Memcpy(host, own, bytes, HIPMM_HIP_MEMCPY_DEFAULT));
  expect_bytes(device, "copied there and back", host, value, bytes);
  expect(device, "hipMemsetAsync", hip->MemsetAsync(memory, value + 1, bytes, NULL));
  expect(device, "hipMemcpyAsync", hip->MemcpyAsync(own, memory, bytes, HIPMM_HIP_MEMCPY_DEFAULT, NULL));
  expect(device, "hipMemcpyAsync back", hip->MemcpyAsync(memory, own, bytes, HIPMM_HIP_MEMCPY_DEFAULT, NULL));
  expect(device, "hipDeviceSynchronize", hip->DeviceSynchronize());
  expect(device, "hipMemcpy from it", hip->Memcpy(host, memory, bytes, HIPMM_HIP_MEMCPY_DEFAULT));
  expect_bytes(device, "filled", host, value + 1, bytes);
  need("hipFree", hip->Free(own));
  need("hipSetDevice", hip->SetDevice(0));
}

static void use_chunks(size_t granule)
{
  hipmm_hip_chunk_t handles[2];
  void *range;
  unsigned char *host = malloc(2 * granule);
  if (!host) die("malloc", "no host memory");
  need("hipMemAddressReserve", hip->MemAddressReserve(&range, 2 * granule, 0));
  for (size_t i = 0; i < 2; i++) {
    char *at = (char *)range + i * granule;
    need("hipMemCreate", hip->MemCreate(&handles[i], granule, 0));
    need("hipMemMap", hip->MemMap(at, granule, handles[i]));
    give_access(at, granule, n_devices);
  }
  for (int i = 0; i < n_devices; i++) use_from(devices[i], range, 2 * granule, host);
  for (size_t i = 0; i < 2; i++) {
    need("hipMemUnmap", hip->MemUnmap((char *)range + i * granule, granule));
    need("hipMemRelease", hip->MemRelease(handles[i]));
  }
  need("hipMemAddressFree", hip->MemAddressFree(range, 2 * granule));
  free(host);
}

/* ---- Start ---- */

static void open_runtime(void)
{
  int count = 0, can = 0;
  if (hipmm_init_from_string("{\"stack\": [\"device\"]}")) die("hipmm", hipmm_last_error_message());
  hip = hip_table();
  if (!hip->MemCreate || !hip->MemSetAccess) die(hipmm_runtime(), "it has no virtual memory management");
  need("hipGetDeviceCount", hip->GetDeviceCount(&count));
  for (int device = 0; device < count && n_devices < MOST_DEVICES; device++) {
    if (device && (!hip->DeviceCanAccessPeer || hip->DeviceCanAccessPeer(&can, device, 0) || !can)) continue;
    devices[n_devices++] = device;
  }
  need("hipSetDevice", hip->SetDevice(0));
  printf("runtime %s, %d devices, %d of them reach the memory of device 0\n", hipmm_runtime(), count, n_devices);
}

static void print_table(size_t wanted, size_t granule)
{
  size_t bytes = (wanted + granule - 1) / granule * granule;
  if (!bytes) die("BYTES", "it must be a number above 0");
  for (int n = 1; n <= n_devices; n++) print_row(bytes, n);
}

int main(int argc, char **argv)
{
  static const struct option options[] = {{"chunks", required_argument, NULL, 'c'}, {NULL, 0, NULL, 0}};
  size_t granule = 0;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    n_chunks = option == 'c' ? atoi(optarg) : 0;
    if (n_chunks < 1 || n_chunks > MOST_CHUNKS) die("usage", "access [--chunks 1..4096] [BYTES...]");
  }
  open_runtime();
  need("hipMemGetAllocationGranularity", hip->MemGetAllocationGranularity(&granule, 0));
  printf("%7s  %9s  %8s  %8s  %8s  %8s  %8s  %8s  %8s   microseconds\n", "devices", "chunk", "create", "map", "access",
         "(worst)", "unmap", "destroy", "all");
  if (optind == argc) {
    print_table((size_t)2 << 20, granule);
    print_table((size_t)64 << 20, granule);
  }
  for (; optind < argc; optind++) print_table(strtoull(argv[optind], NULL, 10), granule);
  use_chunks(granule);
  printf("%s\n", failures ? "not all is as it should be" : "copies and fills over a border: good on each device");
  hipmm_finalize();
  return failures > 0;
}
