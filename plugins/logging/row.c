/* SPDX-License-Identifier: MIT */
/* row.c: see row.h. The program waits while rows are written slower than it adds them. So digits come two at a time from a
 * table, texts are copied in constant sizes, and the C library's calendar is called once a second. */
#include "row.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t SECOND = 1000000000;

static const char two_decimals[] = "0001020304050607080910111213141516171819"
                                   "2021222324252627282930313233343536373839"
                                   "4041424344454647484950515253545556575859"
                                   "6061626364656667686970717273747576777879"
                                   "8081828384858687888990919293949596979899";

/* Padded, so that a copy may have a fixed size. */
static const struct {
  char text[24];
  size_t length;
} actions[] = {
    [ROW_ALLOCATE] = {",allocate,", 10},
    [ROW_ALLOCATE_FAILURE] = {",allocate failure,", 18},
    [ROW_FREE] = {",free,", 6},
    [ROW_FREE_FAILURE] = {",free failure,", 14},
};

static char *row_put_text(char *at, const char *text, size_t length)
{
  memcpy(at, text, length);
  return at + length;
}

static void row_put_two_digits(char *at, uint64_t number)
{
  memcpy(at, two_decimals + 2 * number, 2);
}

static size_t row_count_digits(uint64_t number)
{
  size_t digits = 1;
  for (; number >= 10000; number /= 10000) digits += 4;
  return digits + (number >= 10) + (number >= 100) + (number >= 1000);
}

static char *row_put_decimal(char *at, uint64_t number)
{
  char *end = at + row_count_digits(number), *start = end;
  for (; number >= 100; number /= 100) row_put_two_digits(start -= 2, number % 100);
  if (number >= 10)
    row_put_two_digits(start - 2, number);
  else
    start[-1] = (char)('0' + number);
  return end;
}

/* Eight digits at once, the first in the lowest byte: spreads the half bytes over eight bytes, then turns each into its
 * character. */
static uint64_t row_hexadecimal_of(uint32_t number)
{
  uint64_t spread = number;
  spread = (spread << 16 | spread) & 0x0000FFFF0000FFFFu;
  spread = (spread << 8 | spread) & 0x00FF00FF00FF00FFu;
  spread = (spread << 4 | spread) & 0x0F0F0F0F0F0F0F0Fu;
  uint64_t above_nine = (spread + 0x0606060606060606u) >> 4 & 0x0101010101010101u;
  return __builtin_bswap64(spread + 0x3030303030303030u + above_nine * ('a' - '0' - 10));
}

/* Without leading zeros, but always writes eight bytes. The number is not 0. */
static char *row_put_eight(char *at, uint32_t number)
{
  unsigned unused = (unsigned)__builtin_clz(number) / 4;
  uint64_t digits = row_hexadecimal_of(number) >> 8 * unused;
  memcpy(at, &digits, sizeof digits);
  return at + 8 - unused;
}

static char *row_put_hexadecimal(char *at, uint64_t number)
{
  uint32_t high = (uint32_t)(number >> 32);
  at = row_put_text(at, "0x", 2);
  if (!high) return row_put_eight(at, (uint32_t)number);
  uint64_t low = row_hexadecimal_of((uint32_t)number);
  at = row_put_eight(at, high);
  memcpy(at, &low, sizeof low);
  return at + sizeof low;
}

/* As RMM 23.12. The "(nil)" of later releases is no number for the readers of earlier ones. */
static char *row_put_pointer(char *at, uint64_t ptr)
{
  return ptr ? row_put_hexadecimal(at, ptr) : row_put_text(at, "0x0", 3);
}

/* As the streams of C++ write it. */
static char *row_put_stream(char *at, uint64_t stream)
{
  return stream ? row_put_hexadecimal(at, stream) : row_put_text(at, "0", 1);
}

/* ---- Time ---- */

/* Reads the wall clock first: if the thread is delayed before it reads the other clock, the offset is too small, never
 * too large. So later calls only raise it, and no time goes back. */
void row_clock_set(struct row_clock *clock)
{
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  int64_t offset = (int64_t)((uint64_t)wall.tv_sec * SECOND + (uint64_t)wall.tv_nsec - monotonic_ns());
  if (offset > clock->wall_offset) clock->wall_offset = offset;
}

static void row_set_second(struct row_clock *clock, uint64_t wall)
{
  time_t seconds = (time_t)(wall / SECOND);
  struct tm local = {0};
  localtime_r(&seconds, &local);
  memcpy(clock->text, "00:00:00.", sizeof clock->text);
  row_put_two_digits(clock->text, (uint64_t)local.tm_hour);
  row_put_two_digits(clock->text + 3, (uint64_t)local.tm_min);
  row_put_two_digits(clock->text + 6, (uint64_t)local.tm_sec);
  clock->second = (uint64_t)seconds * SECOND;
}

static char *row_put_time(char *at, struct row_clock *clock, uint64_t time)
{
  uint64_t wall = time + (uint64_t)clock->wall_offset;
  if (wall - clock->second >= SECOND) row_set_second(clock, wall);
  uint32_t microseconds = (uint32_t)(wall - clock->second) / 1000;
  at = row_put_text(at, clock->text, 9);
  row_put_two_digits(at, microseconds / 10000);
  row_put_two_digits(at + 2, microseconds / 100 % 100);
  row_put_two_digits(at + 4, microseconds % 100);
  return at + 6;
}

/* ---- Rows ---- */

struct row_thread row_thread_now(void)
{
  struct row_thread thread;
  char *end = row_put_decimal(thread.text, (uint64_t)syscall(SYS_gettid));
  *end++ = ',';
  thread.length = (size_t)(end - thread.text);
  return thread;
}

char *row_write(struct row_clock *clock, const struct row_thread *thread, const struct row *row, char *text)
{
  enum row_action action = (enum row_action)(row->time_and_action & 3);
  memcpy(text, thread->text, sizeof thread->text);
  char *at = row_put_time(text + thread->length, clock, row_time(row));
  memcpy(at, actions[action].text, sizeof actions[action].text);
  at = row_put_pointer(at + actions[action].length, row->ptr);
  *at++ = ',';
  at = row_put_decimal(at, row->bytes);
  *at++ = ',';
  at = row_put_stream(at, row->stream);
  *at++ = '\n';
  return at;
}
