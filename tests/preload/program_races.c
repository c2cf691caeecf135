/* SPDX-License-Identifier: MIT */
/* program_races.c: wrong and right uses of stream order by the HIP program, in runs in which nothing goes wrong. */
#include "program.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 20000 };

static void make_streams(hipStream_t *stream, hipStream_t *other)
{
  GOOD(hipStreamCreateWithFlags(stream, hipStreamNonBlocking));
  GOOD(hipStreamCreateWithFlags(other, hipStreamNonBlocking));
}

void scenario_races_after_free(void)
{
  hipStream_t stream, other;
  void *memory;
  make_streams(&stream, &other);
  GOOD(hipMallocAsync(&memory, BYTES, stream));
  GOOD(hipFreeAsync(memory, stream));
  GOOD(hipDeviceSynchronize());
  GOOD(hipMemsetAsync(memory, 1, BYTES, other));
  GOOD(hipDeviceSynchronize());
}

void scenario_races_in_use(void)
{
  hipStream_t stream, other;
  void *memory;
  make_streams(&stream, &other);
  GOOD(hipMallocAsync(&memory, BYTES, stream));
  GOOD(hipStreamSynchronize(stream));
  GOOD(hipMemsetAsync(memory, 1, BYTES, other));
  GOOD(hipFreeAsync(memory, stream));
  GOOD(hipDeviceSynchronize());
}

/* Two streams that write the same bytes of memory that is ready for both. */
void scenario_races_unordered(void)
{
  hipStream_t stream, other;
  void *memory;
  make_streams(&stream, &other);
  GOOD(hipMalloc(&memory, BYTES));
  GOOD(hipMemsetAsync(memory, 1, BYTES / 2, stream));
  GOOD(hipMemsetAsync((char *)memory + BYTES / 2, 1, BYTES / 2, other)); /* the other half */
  GOOD(hipMemsetAsync((char *)memory + 100, 1, 100, other));
  GOOD(hipDeviceSynchronize());
  GOOD(hipFree(memory));
}

/* On a stream that is not ordered after the allocation. */
void scenario_races_early(void)
{
  hipStream_t stream, other;
  void *memory;
  make_streams(&stream, &other);
  GOOD(hipMallocAsync(&memory, BYTES, stream));
  GOOD(hipMemsetAsync(memory, 1, BYTES, other));
  GOOD(hipDeviceSynchronize());
  GOOD(hipFreeAsync(memory, stream));
  GOOD(hipDeviceSynchronize());
}

/* The program's own failure. */
void scenario_races_exit(void)
{
  scenario_races_in_use();
  exit(7);
}

/* The children end well, and soon: the race is the parent's. */
void scenario_races_fork(void)
{
  void (*const ends[])(int) = {exit, _exit};
  scenario_races_in_use();
  for (int i = 0; i < 2; i++) {
    int status = -1;
    pid_t child = fork();
    if (!child) ends[i](0);
    if (waitpid(child, &status, 0) != child || status) abort();
  }
}

void scenario_races_past_end(void)
{
  unsigned char *memory;
  void *next;
  GOOD(hipMalloc((void **)&memory, BYTES));
  GOOD(hipMalloc(&next, BYTES));
  GOOD(hipMemcpy(memory + BYTES / 2, next, BYTES / 2 + 1, hipMemcpyDeviceToDevice));
  GOOD(hipFree(memory));
  GOOD(hipFree(next));
}

/* The first block begins where the memory of its resource does, the second one in the middle of that. */
void scenario_races_free_twice(void)
{
  void *first, *second;
  GOOD(hipMalloc(&first, BYTES));
  GOOD(hipMalloc(&second, BYTES));
  GOOD(hipFree(second));
  EXPECT(hipErrorInvalidValue, hipFree(second));
  GOOD(hipFree(first));
}

void scenario_races_free_first_twice(void)
{
  void *first, *second;
  GOOD(hipMalloc(&first, BYTES));
  GOOD(hipMalloc(&second, BYTES));
  GOOD(hipFree(first));
  EXPECT(hipErrorInvalidValue, hipFree(first));
  GOOD(hipFree(second));
}

void scenario_races_free_async_twice(void)
{
  hipStream_t stream, other;
  void *memory[2];
  make_streams(&stream, &other);
  for (int i = 0; i < 2; i++) GOOD(hipMallocAsync(&memory[i], BYTES, stream));
  GOOD(hipFreeAsync(memory[1], stream));
  EXPECT(hipErrorInvalidValue, hipFreeAsync(memory[1], other));
  GOOD(hipFreeAsync(memory[0], stream));
  GOOD(hipDeviceSynchronize());
}

/* Memory from one stream is used on another and freed there, ordered by an event, a wait of the host, or the default
 * stream. */
void scenario_races_none(void)
{
  hipStream_t streams[2];
  hipEvent_t event;
  unsigned char *host = malloc(BYTES);
  make_streams(&streams[0], &streams[1]);
  GOOD(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  for (int i = 0; i < 40; i++) {
    void *memory, *copy;
    hipStream_t stream = streams[i % 2], other = streams[(i + 1) % 2];
    GOOD(hipMallocAsync(&memory, BYTES, stream));
    GOOD(hipMalloc(&copy, BYTES));
    GOOD(hipMemsetAsync(memory, i, BYTES, stream));
    GOOD(hipMemcpyAsync(copy, memory, BYTES, hipMemcpyDeviceToDevice, stream));
    GOOD(hipEventRecord(event, stream));
    if (i % 4 == 0) GOOD(hipEventSynchronize(event));
    if (i % 4 == 1) GOOD(hipStreamWaitEvent(other, event, 0));
    if (i % 4 == 2) GOOD(hipStreamSynchronize(stream));
    while (i % 4 == 3 && hipEventQuery(event) == hipErrorNotReady) continue;
    GOOD(hipFreeAsync(memory, other));
    GOOD(hipMemcpyAsync(host, copy, BYTES, hipMemcpyDeviceToHost, other));
    GOOD(hipStreamSynchronize(other));
    GOOD(hipFree(copy));
  }
  GOOD(hipEventDestroy(event));
  GOOD(hipStreamDestroy(streams[0]));
  GOOD(hipStreamDestroy(streams[1]));
  free(host);
}
