/* SPDX-License-Identifier: MIT */
/* row.c: see row.h. On the allocation path: digits by hand, and the C library's calendar once a second. */
#include "row.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char *text;
  size_t length;
} actions[] = {
    [ROW_ALLOCATE] = {",allocate,", 10},
    [ROW_ALLOCATE_FAILURE] = {",allocate failure,", 18},
    [ROW_FREE] = {",free,", 6},
};

static char *put_text(char *at, const char *text, size_t length)
{
  memcpy(at, text, length);
  return at + length;
}

static char *put_decimal(char *at, uint64_t number)
{
  char digits[20], *end = digits + sizeof digits, *start = end;
  do *--start = (char)('0' + number % 10);
  while (number /= 10);
  return put_text(at, start, (size_t)(end - start));
}

static char *put_hexadecimal(char *at, uint64_t number)
{
  int digits = number ? (67 - __builtin_clzll(number)) / 4 : 1;
  *at++ = '0';
  *at++ = 'x';
  for (int i = digits; i-- > 0;) *at++ = "0123456789abcdef"[number >> 4 * i & 15];
  return at;
}

/* As C's %p has it. */
static char *put_pointer(char *at, const void *ptr)
{
  return ptr ? put_hexadecimal(at, (uintptr_t)ptr) : put_text(at, "(nil)", 5);
}

/* As C++'s streams have it. */
static char *put_stream(char *at, hipStream_t stream)
{
  return stream ? put_hexadecimal(at, (uintptr_t)stream) : put_text(at, "0", 1);
}

static void put_two_digits(char *at, int number)
{
  at[0] = (char)('0' + number / 10);
  at[1] = (char)('0' + number % 10);
}

static char *put_time(char *at, struct row_clock *clock)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (now.tv_sec != clock->second) {
    struct tm local = {0};
    localtime_r(&now.tv_sec, &local);
    memcpy(clock->text, "00:00:00.", sizeof clock->text);
    put_two_digits(clock->text, local.tm_hour);
    put_two_digits(clock->text + 3, local.tm_min);
    put_two_digits(clock->text + 6, local.tm_sec);
    clock->second = now.tv_sec;
  }
  at = put_text(at, clock->text, 9);
  uint32_t microseconds = (uint32_t)(now.tv_nsec / 1000);
  for (int i = 6; i-- > 0; microseconds /= 10) at[i] = (char)('0' + microseconds % 10);
  return at + 6;
}

static uint64_t thread_id(void)
{
  static _Thread_local uint64_t id;
  if (!id) id = (uint64_t)syscall(SYS_gettid);
  return id;
}

size_t row_write(struct row_clock *clock, enum row_action action, const void *ptr, size_t bytes, hipStream_t stream,
                 char *row)
{
  char *at = put_decimal(row, thread_id());
  *at++ = ',';
  at = put_time(at, clock);
  at = put_text(at, actions[action].text, actions[action].length);
  at = put_pointer(at, ptr);
  *at++ = ',';
  at = put_decimal(at, bytes);
  *at++ = ',';
  at = put_stream(at, stream);
  *at++ = '\n';
  return (size_t)(at - row);
}
