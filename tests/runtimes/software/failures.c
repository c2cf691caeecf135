/* SPDX-License-Identifier: MIT */
/* failures.c: see failures.h. */
#include "failures.h"

#include <errno.h>
#include <sys/mman.h>

_Thread_local int until_failure;
void *wanted_address;

static bool fails_now(void)
{
  return until_failure && !--until_failure;
}

void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
ssize_t __real_pwrite(int fd, const void *buffer, size_t bytes, off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
ssize_t __wrap_pwrite(int fd, const void *buffer, size_t bytes, off_t offset);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
  if (!fails_now()) return __real_mmap(address ? address : wanted_address, bytes, protection, flags, fd, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

void *__wrap_malloc(size_t bytes)
{
  return fails_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
  return fails_now() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
  return fails_now() ? NULL : __real_realloc(memory, bytes);
}

ssize_t __wrap_pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
  if (!fails_now()) return __real_pwrite(fd, buffer, bytes, offset);
  errno = ENOSPC;
  return -1;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
  return fails_now() ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

hipStream_t create_stream_without_thread(unsigned flags)
{
  enum { MOST = 1000 };
  hipStream_t streams[MOST];
  int n = 0;
  do {
    assert_in_range(n, 0, MOST - 1);
    assert_ok(hipStreamCreateWithFlags(&streams[n], flags));
  } while (((struct software_stream *)streams[n++])->queue->has_thread);
  for (int i = 0; i < n - 1; i++) assert_ok(hipStreamDestroy(streams[i]));
  return streams[n - 1];
}
