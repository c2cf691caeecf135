/* SPDX-License-Identifier: MIT */
/* Tests of what the pool remembers of where large blocks went. */
#include "../../../plugins/pool/placement_hints.h"
#include "../../support/support.h"
#include "fake.h"

enum { REQUESTS = 3000, TIMES = 4 };

static struct placement_hints hints;
static const struct hipmm_services *services;

static int open_history(void **state)
{
  (void)state;
  services = fake_begin();
  return placement_hints_open(&hints, services) ? 0 : -1;
}

static int close_history(void **state)
{
  (void)state;
  placement_hints_close(&hints, services);
  return fake_end();
}

/* What was noted of a request of so many bytes, at the moment of this number. */
static const uint64_t *find(uint64_t bytes, uint64_t moment)
{
  return placement_hints_find(&hints, bytes, moment * 4096, moment % 7);
}

static void note(uint64_t bytes, uint64_t moment, uint64_t address)
{
  find(bytes, moment);
  placement_hints_record(&hints, address);
}

static void knows_what_was_noted_and_nothing_else(void **state)
{
  (void)state;
  assert_null(find(100, 1));
  note(100, 1, 0x1000);
  assert_null(find(100, 2));
  assert_null(find(101, 1));
  const uint64_t *addresses = find(100, 1);
  assert_non_null(addresses);
  assert_int_equal(addresses[0], 0x1000);
  assert_int_equal(addresses[1], 0);
  placement_hints_forget(&hints);
  assert_null(find(100, 1));
}

static void knows_the_last_two_addresses(void **state)
{
  static const uint64_t noted[][3] = {{1, 1, 0}, {1, 1, 0}, {2, 2, 1}, {2, 2, 1}, {1, 1, 2}, {3, 3, 1}, {1, 1, 3}};
  (void)state;
  for (unsigned i = 0; i < sizeof noted / sizeof *noted; i++) {
    note(100, 1, noted[i][0]);
    note(100, 2, 9);
    const uint64_t *addresses = find(100, 1);
    assert_int_equal(addresses[0], noted[i][1]);
    assert_int_equal(addresses[1], noted[i][2]);
  }
}

/* A round of a large program, in its order and in another: not even by chance does one request displace another for
 * ever. */
static void knows_all_requests_of_a_round(void **state)
{
  unsigned lost = 0;
  (void)state;
  for (unsigned time = 0; time < TIMES; time++)
    for (unsigned n = 0; n < REQUESTS; n++) {
      unsigned i = n * (time % 2 ? 7 : 1) % REQUESTS; /* each once */
      const uint64_t *addresses = find(i % 50 * 256, i);
      if (time && (!addresses || addresses[0] != i + 1)) lost++;
      placement_hints_record(&hints, i + 1);
    }
  assert_int_equal(lost, 0);
}

static void forgets_the_oldest_first(void **state)
{
  enum { MANY = 1 << 16, RECENT = 1000 };
  unsigned known = 0;
  (void)state;
  for (unsigned i = 0; i < MANY; i++) note(4096, i, i + 1);
  for (unsigned i = MANY - RECENT; i < MANY; i++) assert_non_null(find(4096, i));
  for (unsigned i = 0; i < MANY; i++) known += find(4096, i) != NULL;
  assert_in_range(known, RECENT, PLACEMENT_HINTS);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_history, close_history)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(knows_what_was_noted_and_nothing_else),
      TEST(knows_the_last_two_addresses),
      TEST(knows_all_requests_of_a_round),
      TEST(forgets_the_oldest_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
