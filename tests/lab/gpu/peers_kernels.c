/* SPDX-License-Identifier: MIT */
/* peers_kernels.c: kernels that read and write memory of either device. They are PTX, which the driver compiles, so that
 * a C compiler is all that this program needs. */
#include "peers.h"

#ifdef PEERS_HIP

void peers_try_kernels(const char *state, const struct peers_blocks *blocks[DEVICES])
{
  (void)state, (void)blocks;
}

#else

#include <string.h>

/* The first two let thread i do all words i + k * threads below `count`:
 *     add(to, from, count, value)       to[i] = from[i] + value
 *     increment(to, count)              to[i] += 1, atomically for all devices
 *     delay(nanoseconds)                does nothing for that long */
static const char code[] =
    ".version 7.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry add(.param .u64 to, .param .u64 from, .param .u32 count, .param .u32 value)\n"
    "{\n"
    "  .reg .pred %p;\n"
    "  .reg .b32 %i, %step, %count, %value, %word, %a, %b;\n"
    "  .reg .b64 %to, %from, %offset, %at;\n"
    "  ld.param.u64 %to, [to];\n"
    "  ld.param.u64 %from, [from];\n"
    "  ld.param.u32 %count, [count];\n"
    "  ld.param.u32 %value, [value];\n"
    "  cvta.to.global.u64 %to, %to;\n"
    "  cvta.to.global.u64 %from, %from;\n"
    "  mov.u32 %a, %ctaid.x;\n"
    "  mov.u32 %b, %ntid.x;\n"
    "  mov.u32 %i, %tid.x;\n"
    "  mad.lo.u32 %i, %a, %b, %i;\n"
    "  mov.u32 %a, %nctaid.x;\n"
    "  mul.lo.u32 %step, %a, %b;\n"
    "next:\n"
    "  setp.ge.u32 %p, %i, %count;\n"
    "  @%p bra done;\n"
    "  mul.wide.u32 %offset, %i, 4;\n"
    "  add.u64 %at, %from, %offset;\n"
    "  ld.global.u32 %word, [%at];\n"
    "  add.u32 %word, %word, %value;\n"
    "  add.u64 %at, %to, %offset;\n"
    "  st.global.u32 [%at], %word;\n"
    "  add.u32 %i, %i, %step;\n"
    "  bra next;\n"
    "done:\n"
    "  ret;\n"
    "}\n"
    ".visible .entry increment(.param .u64 to, .param .u32 count)\n"
    "{\n"
    "  .reg .pred %p;\n"
    "  .reg .b32 %i, %step, %count, %a, %b;\n"
    "  .reg .b64 %to, %at;\n"
    "  ld.param.u64 %to, [to];\n"
    "  ld.param.u32 %count, [count];\n"
    "  cvta.to.global.u64 %to, %to;\n"
    "  mov.u32 %a, %ctaid.x;\n"
    "  mov.u32 %b, %ntid.x;\n"
    "  mov.u32 %i, %tid.x;\n"
    "  mad.lo.u32 %i, %a, %b, %i;\n"
    "  mov.u32 %a, %nctaid.x;\n"
    "  mul.lo.u32 %step, %a, %b;\n"
    "next:\n"
    "  setp.ge.u32 %p, %i, %count;\n"
    "  @%p bra done;\n"
    "  mul.wide.u32 %at, %i, 4;\n"
    "  add.u64 %at, %to, %at;\n"
    "  red.global.sys.add.u32 [%at], 1;\n"
    "  add.u32 %i, %i, %step;\n"
    "  bra next;\n"
    "done:\n"
    "  ret;\n"
    "}\n"
    ".visible .entry delay(.param .u64 nanoseconds)\n"
    "{\n"
    "  .reg .pred %p;\n"
    "  .reg .b64 %start, %now, %limit;\n"
    "  ld.param.u64 %limit, [nanoseconds];\n"
    "  mov.u64 %start, %globaltimer;\n"
    "again:\n"
    "  mov.u64 %now, %globaltimer;\n"
    "  sub.u64 %now, %now, %start;\n"
    "  setp.lt.u64 %p, %now, %limit;\n"
    "  @%p bra again;\n"
    "  ret;\n"
    "}\n";

static cudaKernel_t add, increment, delay;
static unsigned char before[LARGE], wanted[LARGE], scratch[LARGE];

static void load(void)
{
  cudaLibrary_t library;
  if (add) return;
  PREPARE(cudaLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0));
  PREPARE(cudaLibraryGetKernel(&add, library, "add"));
  PREPARE(cudaLibraryGetKernel(&increment, library, "increment"));
  PREPARE(cudaLibraryGetKernel(&delay, library, "delay"));
}

void peers_delay(int device)
{
  unsigned long long nanoseconds = 30000000;
  void *arguments[] = {&nanoseconds};
  dim3 one = {1, 1, 1};
  load();
  PREPARE(cudaSetDevice(device));
  PREPARE(cudaLaunchKernel((const void *)delay, one, one, arguments, 0, NULL));
}

static cudaError_t launch(cudaKernel_t kernel, int device, void **arguments)
{
  dim3 grid = {64, 1, 1}, block = {256, 1, 1};
  PREPARE(cudaSetDevice(device));
  cudaError_t status = cudaLaunchKernel((const void *)kernel, grid, block, arguments, 0, peers_streams[device]);
  return status ? status : cudaStreamSynchronize(peers_streams[device]);
}

/* What `wanted` has to be after `add`. */
static void add_on_host(size_t bytes, unsigned value)
{
  for (size_t at = 0; at < bytes; at += sizeof value) {
    unsigned word;
    memcpy(&word, before + at, sizeof word);
    word += value;
    memcpy(wanted + at, &word, sizeof word);
  }
}

static const char *try_add(int device, int to, void *target, int from, void *source, size_t bytes)
{
  static unsigned seed;
  unsigned value = ++seed * 77773u, count = (unsigned)(bytes / sizeof value);
  void *arguments[] = {&target, &source, &count, &value};
  peers_pattern(before, bytes, seed);
  add_on_host(bytes, value);
  peers_write(from, source, before, bytes);
  peers_write(to, target, before, bytes);
  const char *wrong = peers_error(launch(add, device, arguments));
  return wrong ? wrong : peers_compare(to, target, wanted, scratch, bytes);
}

/* Both devices increment the same words at the same time. */
static const char *try_increment(int owner, void *target, size_t bytes)
{
  unsigned count = (unsigned)(bytes / sizeof count), rounds = 20;
  void *arguments[] = {&target, &count};
  dim3 grid = {64, 1, 1}, block = {256, 1, 1};
  const char *wrong = NULL;
  peers_pattern(before, bytes, (unsigned)owner + 7);
  add_on_host(bytes, DEVICES * rounds);
  peers_write(owner, target, before, bytes);
  for (unsigned i = 0; i < rounds * DEVICES && !wrong; i++) {
    PREPARE(cudaSetDevice((int)(i % DEVICES)));
    wrong =
        peers_error(cudaLaunchKernel((const void *)increment, grid, block, arguments, 0, peers_streams[i % DEVICES]));
  }
  for (int device = 0; device < DEVICES && !wrong; device++)
    wrong = peers_error(cudaStreamSynchronize(peers_streams[device]));
  return wrong ? wrong : peers_compare(owner, target, wanted, scratch, bytes);
}

void peers_try_kernels(const char *state, const struct peers_blocks *blocks[DEVICES])
{
  load();
  for (int device = 0; device < DEVICES; device++) {
    struct peers_tally tally = {0};
    for (int from = 0; from < DEVICES; from++)
      for (int to = 0; to < DEVICES; to++)
        for (int size = 0; size < SIZES; size++)
          peers_count(
              &tally,
              try_add(device, to, blocks[to]->target[size], from, blocks[from]->source[size], peers_sizes[size]),
              "%zu bytes of device %d to device %d", peers_sizes[size], from, to);
    peers_tell(&tally, "%s: kernels of device %d", state, device);
  }
  for (int owner = 0; owner < DEVICES; owner++) {
    struct peers_tally tally = {0};
    for (int size = 0; size < SIZES; size++)
      peers_count(&tally, try_increment(owner, blocks[owner]->target[size], peers_sizes[size]), "%zu bytes",
                  peers_sizes[size]);
    peers_tell(&tally, "%s: atomics of both devices on device %d", state, owner);
  }
}

#endif
