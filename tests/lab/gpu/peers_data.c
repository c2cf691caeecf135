/* SPDX-License-Identifier: MIT */
/* peers_data.c: memory of each device, and what it holds. */
#include "peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PEERS_HIPMM
#include <hipmm/hipmm.h>
#endif

const size_t peers_sizes[SIZES] = {SMALL, LARGE};
GPU(Stream_t) peers_streams[DEVICES];

/* ---- Memory ---- */

/* Makes `device` current and returns which one was. */
static int make_current(int device)
{
  int before = 0;
  PREPARE(GPU(GetDevice)(&before));
  PREPARE(GPU(SetDevice)(device));
  return before;
}

#ifdef PEERS_HIPMM

const char *peers_memory_error(void)
{
  return hipmm_last_error_message();
}

/* What is allocated on a stream can be used by other streams and devices once the stream has come to that. */
void *peers_allocate(int device, size_t bytes)
{
  struct hipmm_resource *resource = NULL;
  void *ptr = NULL;
  if (hipmm_resource_get_for_device(device, &resource)) return NULL;
  enum hipmm_status status = hipmm_allocate(resource, bytes, NULL, &ptr);
  hipmm_resource_release(resource);
  if (status) return NULL;
  int before = make_current(device);
  PREPARE(GPU(StreamSynchronize)(NULL));
  PREPARE(GPU(SetDevice)(before));
  return ptr;
}

const char *peers_free(int device, void *ptr, size_t bytes)
{
  struct hipmm_resource *resource = NULL;
  if (hipmm_resource_get_for_device(device, &resource)) return hipmm_last_error_message();
  enum hipmm_status status = hipmm_deallocate(resource, ptr, bytes, NULL);
  hipmm_resource_release(resource);
  return status ? hipmm_last_error_message() : NULL;
}

#else

static _Thread_local const char *memory_error;

const char *peers_memory_error(void)
{
  return memory_error;
}

void *peers_allocate(int device, size_t bytes)
{
  void *ptr = NULL;
  int before = make_current(device);
  memory_error = peers_error(GPU(Malloc)(&ptr, bytes));
  PREPARE(GPU(SetDevice)(before));
  return memory_error ? NULL : ptr;
}

const char *peers_free(int device, void *ptr, size_t bytes)
{
  (void)device, (void)bytes;
  return peers_error(GPU(Free)(ptr));
}

#endif

static void *allocate(int device, size_t bytes)
{
  void *ptr = peers_allocate(device, bytes);
  if (ptr) return ptr;
  peers_print();
  fprintf(stderr, "peers_data.c: no %zu bytes on device %d: %s\n", bytes, device, peers_memory_error());
  exit(1);
}

struct peers_blocks peers_allocate_blocks(int device)
{
  struct peers_blocks blocks;
  for (int size = 0; size < SIZES; size++) {
    blocks.source[size] = allocate(device, peers_sizes[size]);
    blocks.target[size] = allocate(device, peers_sizes[size]);
  }
  return blocks;
}

/* ---- Data ---- */

void peers_pattern(unsigned char *bytes, size_t count, unsigned seed)
{
  unsigned long long state = seed * 0x9E3779B97F4A7C15ull + 1;
  for (size_t i = 0; i < count; i += sizeof state) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    memcpy(bytes + i, &state, count - i < sizeof state ? count - i : sizeof state);
  }
}

void peers_write(int device, void *to, const void *bytes, size_t count)
{
  int before = make_current(device);
  PREPARE(GPU(Memcpy)(to, bytes, count, GPU(MemcpyHostToDevice)));
  PREPARE(GPU(DeviceSynchronize)());
  PREPARE(GPU(SetDevice)(before));
}

void peers_read(int device, void *bytes, const void *from, size_t count)
{
  int before = make_current(device);
  PREPARE(GPU(DeviceSynchronize)());
  PREPARE(GPU(Memcpy)(bytes, from, count, GPU(MemcpyDeviceToHost)));
  PREPARE(GPU(SetDevice)(before));
}

const char *peers_compare(int device, const void *memory, const unsigned char *wanted, unsigned char *scratch,
                          size_t count)
{
  static _Thread_local char where[64];
  size_t i = 0;
  peers_read(device, scratch, memory, count);
  if (!memcmp(scratch, wanted, count)) return NULL;
  while (scratch[i] == wanted[i]) i++;
  snprintf(where, sizeof where, "byte %zu is %d and not %d", i, scratch[i], wanted[i]);
  return where;
}

void peers_wait(void)
{
  int before = 0;
  PREPARE(GPU(GetDevice)(&before));
  for (int device = 0; device < DEVICES; device++) {
    if (!peers_streams[device]) continue;
    PREPARE(GPU(SetDevice)(device));
    PREPARE(GPU(DeviceSynchronize)());
  }
  PREPARE(GPU(SetDevice)(before));
}
