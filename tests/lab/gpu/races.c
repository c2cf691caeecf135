/* SPDX-License-Identifier: MIT */
/* races.c: a program that knows nothing of hipmm, for `hipmm run --check-streams`: the same work on streams, once ordered as it
 * must be and else with one mistake. All data is right in each run, since the device is waited for before anything is
 * compared. It is built for CUDA's runtime or for HIP's, without their headers:
 *
 *   cc -O2 -o races races.c -L/usr/local/cuda/lib64 -lcudart
 *   cc -O2 -DAPI=hip -o races races.c /opt/rocm/lib/libamdhip64.so
 *   hipmm run --check-streams -- ./races free_in_use
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef API
#define API cuda
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define F(name)     JOIN(API, name)

int F(Malloc)(void **ptr, size_t bytes);
int F(Free)(void *ptr);
int F(MallocAsync)(void **ptr, size_t bytes, void *stream);
int F(FreeAsync)(void *ptr, void *stream);
int F(MemsetAsync)(void *ptr, int value, size_t bytes, void *stream);
int F(MemcpyAsync)(void *to, const void *from, size_t bytes, int kind, void *stream);
int F(StreamCreateWithFlags)(void **stream, unsigned flags);
int F(StreamDestroy)(void *stream);
int F(StreamSynchronize)(void *stream);
int F(StreamWaitEvent)(void *stream, void *event, unsigned flags);
int F(EventCreateWithFlags)(void **event, unsigned flags);
int F(EventRecord)(void *event, void *stream);
int F(EventDestroy)(void *event);
int F(DeviceSynchronize)(void);

enum { NON_BLOCKING = 1, NO_TIMING = 2, TO_HOST = 2, ON_DEVICE = 3, BYTES = 1 << 20, ROUNDS = 40 };

static void expect_good(int line, const char *call, int code)
{
  if (!code) return;
  fprintf(stderr, "races.c:%d: %s is %d\n", line, call, code);
  exit(1);
}

#define GOOD(call) expect_good(__LINE__, #call, (call))

static void *streams[2], *event;
static unsigned char host[BYTES];

/* What comes after it on the second stream is ordered after what the first stream has. */
static void order(void)
{
  GOOD(F(EventRecord)(event, streams[0]));
  GOOD(F(StreamWaitEvent)(streams[1], event, 0));
}

static void compare(const void *memory, int value)
{
  GOOD(F(DeviceSynchronize)());
  GOOD(F(MemcpyAsync)(host, memory, BYTES, TO_HOST, streams[1]));
  GOOD(F(StreamSynchronize)(streams[1]));
  for (size_t i = 0; i < BYTES; i++)
    if (host[i] != (unsigned char)value) expect_good(__LINE__, "the data", host[i] + 1);
}

/* The second stream fills what the first one has filled, and frees it. */
static void hand_over(int value)
{
  void *memory;
  GOOD(F(MallocAsync)(&memory, BYTES, streams[0]));
  GOOD(F(MemsetAsync)(memory, 0, BYTES, streams[0]));
  order();
  GOOD(F(MemsetAsync)(memory, value, BYTES, streams[1]));
  compare(memory, value);
  GOOD(F(FreeAsync)(memory, streams[1]));
}

/* Work of the second stream is under way when the first one frees. */
static void free_in_use(void)
{
  void *memory;
  GOOD(F(MallocAsync)(&memory, BYTES, streams[0]));
  order();
  GOOD(F(MemsetAsync)(memory, 1, BYTES, streams[1]));
  GOOD(F(FreeAsync)(memory, streams[0]));
  GOOD(F(DeviceSynchronize)());
}

static void use_after_free(void)
{
  void *memory;
  GOOD(F(MallocAsync)(&memory, BYTES, streams[0]));
  GOOD(F(FreeAsync)(memory, streams[0]));
  GOOD(F(MemsetAsync)(memory, 1, BYTES, streams[0]));
  GOOD(F(DeviceSynchronize)());
}

/* Within what the block is rounded up to, so that no driver refuses it. */
static void past_end(void)
{
  enum { ODD = BYTES - 100 };
  char *memory, *next;
  GOOD(F(Malloc)((void **)&memory, ODD));
  GOOD(F(Malloc)((void **)&next, ODD));
  GOOD(F(MemcpyAsync)(memory + ODD / 2, next, ODD / 2 + 1, ON_DEVICE, streams[0]));
  GOOD(F(DeviceSynchronize)());
  GOOD(F(Free)(memory));
  GOOD(F(Free)(next));
}

int main(int argc, char **argv)
{
  const char *mistake = argc > 1 ? argv[1] : "none";
  for (int i = 0; i < 2; i++) GOOD(F(StreamCreateWithFlags)(&streams[i], NON_BLOCKING));
  GOOD(F(EventCreateWithFlags)(&event, NO_TIMING));
  for (int i = 0; i < ROUNDS; i++) hand_over(i);
  if (!strcmp(mistake, "free_in_use")) free_in_use();
  if (!strcmp(mistake, "use_after_free")) use_after_free();
  if (!strcmp(mistake, "past_end")) past_end();
  GOOD(F(DeviceSynchronize)());
  for (int i = 0; i < ROUNDS; i++) hand_over(i);
  GOOD(F(EventDestroy)(event));
  for (int i = 0; i < 2; i++) GOOD(F(StreamDestroy)(streams[i]));
  printf("all is well\n");
  return 0;
}
