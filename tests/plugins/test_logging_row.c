/* SPDX-License-Identifier: MIT */
/* Tests of the times of a log's rows, by clocks that the test sets: they are the wall's, and never step back. */
#include "../../plugins/logging/row.h"
#include "../support/support.h"

#include <stdio.h>
#include <stdlib.h>

#define US     UINT64_C(1000)
#define MS     (1000 * US)
#define SECOND (1000 * MS)
#define NOON   (UINT64_C(1789992000) * SECOND) /* some day's, of the wall */

/* ---- The clocks ---- */

static uint64_t now;  /* of the monotonic clock, in nanoseconds */
static uint64_t wall; /* what the wall's clock is ahead of it */
static uint64_t pace; /* time that passes once a clock is read: the thread is held up */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time_out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time_out)
{
  uint64_t time = clock == CLOCK_REALTIME ? now + wall : now;
  *time_out = (struct timespec){.tv_sec = (time_t)(time / SECOND), .tv_nsec = (long)(time % SECOND)};
  now += pace;
  return 0;
}

static struct row_clock row_clock;

static int begin(void **state)
{
  (void)state;
  setenv("TZ", "UTC", 1);
  row_clock = (struct row_clock){0};
  now = 100 * SECOND;
  wall = NOON - now;
  pace = 0;
  return 0;
}

/* The time that is written of a row of `time`, once the clocks were read at the given pace, in nanoseconds since that
 * day began. */
static uint64_t time_written(uint64_t time, uint64_t pace_then)
{
  char text[ROW_TEXT_BYTES];
  unsigned hours, minutes, seconds, microseconds;
  const struct row_thread thread = {"1,", 2};
  const struct row row = {.time_and_action = time << 2 | ROW_FREE, .ptr = 0x1000, .bytes = 1};
  pace = pace_then;
  row_clock_set(&row_clock);
  pace = 0;
  *row_write(&row_clock, &thread, &row, text) = '\0';
  assert_int_equal(sscanf(text, "1,%2u:%2u:%2u.%6u,free,", &hours, &minutes, &seconds, &microseconds), 4);
  return ((hours * 60 + minutes) * 60 + seconds) * SECOND + microseconds * US;
}

static uint64_t of_the_day(uint64_t time)
{
  return time % (24 * 60 * 60 * SECOND);
}

/* ---- Tests ---- */

static void are_the_walls(void **state)
{
  (void)state;
  assert_int_equal(time_written(now, 0), of_the_day(NOON));
  assert_int_equal(time_written(now + 1234567 * US, 0), of_the_day(NOON) + 1234567 * US);
}

static void never_step_back_when_a_reading_was_held_up(void **state)
{
  uint64_t last = 0;
  (void)state;
  for (unsigned i = 0; i < 1000; i++) {
    uint64_t row = now, time = time_written(row, i % 7 ? 100 : (10 - i * 37 % 11) * MS);
    assert_in_range(time, of_the_day(row + wall) - 10 * MS, of_the_day(row + wall));
    assert_true(time >= last);
    last = time;
    now += MS / 10;
  }
}

static void are_corrected_by_a_better_reading(void **state)
{
  (void)state;
  assert_int_equal(time_written(now, 5 * MS), of_the_day(NOON) - 5 * MS);
  assert_int_equal(time_written(now, 0), of_the_day(now + wall));
}

static void stay_where_the_wall_is_set_back(void **state)
{
  (void)state;
  uint64_t before = time_written(now, 0);
  wall -= 60 * SECOND;
  now += SECOND;
  assert_int_equal(time_written(now, 0), before + SECOND);
  wall += 60 * SECOND;
  now += SECOND;
  assert_int_equal(time_written(now, 0), before + 2 * SECOND);
}

static void follow_the_wall_where_it_is_set_forward(void **state)
{
  (void)state;
  uint64_t before = time_written(now, 0);
  wall += 60 * SECOND;
  assert_int_equal(time_written(now, 0), before + 60 * SECOND);
}

/* A machine without a battery starts in 1970, and learns later what time it is. */
static void follow_a_wall_that_was_behind(void **state)
{
  (void)state;
  wall = (uint64_t)0 - 10 * SECOND;
  uint64_t before = time_written(now, 0);
  now += SECOND;
  assert_int_equal(time_written(now, 0), before + SECOND);
  wall = NOON - now;
  assert_int_equal(time_written(now, 0), of_the_day(NOON));
}

#define TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(are_the_walls),
      TEST(never_step_back_when_a_reading_was_held_up),
      TEST(are_corrected_by_a_better_reading),
      TEST(stay_where_the_wall_is_set_back),
      TEST(follow_the_wall_where_it_is_set_forward),
      TEST(follow_a_wall_that_was_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
