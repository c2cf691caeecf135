/* SPDX-License-Identifier: MIT */
/* pinned.c: what a block of pinned memory costs until it can be used, and how fast copies from it are: memory of
 * hipHostMalloc, which both options "off" ask for, beside memory that hipmm maps. HIPMM_RUNTIME chooses the runtime. Prints a
 * JSON object a line; exit status 1 if data is wrong or a call was refused.
 *
 *     pinned BYTES...
 *     HIPMM_PLUGIN_PATH=$PWD/plugins HIPMM_RUNTIME=software tests/lab/gpu/pinned 64MiB     (in build) */
#include "../../../core/base/units.h"
#include "../../../core/runtime/hip.h"

#include <hipmm/memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const size_t LARGEST_COPY = (size_t)1 << 30;

static const struct way {
  const char *name, *options;
} ways[] = {
    {"hipHostMalloc", "\"numa_node\": \"off\", \"huge_pages\": \"off\""},
    {"mapped, pages of 4 KiB", "\"huge_pages\": \"off\""},
    {"mapped, huge pages", "\"huge_pages\": \"transparent\""},
};

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void need(const char *what, int code)
{
  if (!code) return;
  fprintf(stderr, "pinned: %s: %s\n", what, code > 0 ? hip_table()->GetErrorName(code) : hipmm_last_error_message());
  exit(1);
}

/* To the device and back, in bytes a second; with the data checked. */
static double copy(char *ptr, size_t bytes)
{
  const struct hipmm_hip *hip = hip_table();
  void *device;
  size_t part = bytes < LARGEST_COPY ? bytes : LARGEST_COPY;
  need("hipMalloc", hip->Malloc(&device, part));
  memset(ptr, 0x5A, part);
  double begin = now();
  need("hipMemcpy", hip->Memcpy(device, ptr, part, HIPMM_HIP_MEMCPY_DEFAULT));
  need("hipDeviceSynchronize", hip->DeviceSynchronize());
  double seconds = now() - begin;
  memset(ptr, 0, part);
  need("hipMemcpy", hip->Memcpy(ptr, device, part, HIPMM_HIP_MEMCPY_DEFAULT));
  for (size_t i = 0; i < part; i += 1001)
    if (ptr[i] != 0x5A) need("the data is wrong", HIPMM_HIP_ERROR_INVALID_VALUE);
  need("hipFree", hip->Free(device));
  return (double)part / seconds;
}

static void measure(const struct way *way, size_t bytes)
{
  char graph[200];
  void *ptr;
  snprintf(graph, sizeof graph, "{\"stack\": [{\"type\": \"pinned\", %s}]}", way->options);
  need("hipmm_init_from_string", hipmm_init_from_string(graph));
  struct hipmm_resource *resource = NULL;
  need("hipmm_resource_get_for_device", hipmm_resource_get_for_device(0, &resource));
  need("hipDeviceSynchronize", hip_table()->DeviceSynchronize()); /* a context is no cost of the block */
  double begin = now();
  need("hipmm_allocate", hipmm_allocate(resource, bytes, NULL, &ptr));
  double allocated = now();
  for (size_t i = 0; i < bytes; i += 4096) ((volatile char *)ptr)[i] = 1;
  double written = now(), speed = copy(ptr, bytes), copied = now();
  need("hipmm_deallocate", hipmm_deallocate(resource, ptr, bytes, NULL));
  printf("{\"way\": \"%s\", \"bytes\": %zu, \"allocate_s\": %.4f, \"first_write_s\": %.4f, \"free_s\": %.4f, "
         "\"to_device_bytes_per_s\": %.0f}\n",
         way->name, bytes, allocated - begin, written - allocated, now() - copied, speed);
  fflush(stdout);
  hipmm_resource_release(resource);
  need("hipmm_finalize", hipmm_finalize());
}

int main(int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    uint64_t bytes = 0;
    if (!units_parse_bytes(argv[i], &bytes) || !bytes) {
      fprintf(stderr, "usage: pinned BYTES...\n");
      return 2;
    }
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) measure(&ways[way], (size_t)bytes);
  }
  return 0;
}
