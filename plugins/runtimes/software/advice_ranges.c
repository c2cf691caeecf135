/* SPDX-License-Identifier: MIT */
/* advice_ranges.c: the advice for one allocation: a list of ranges of pages, in the order of their addresses and without
 * gaps. Each range differs from its neighbours. There is no list until there is advice. Called by advice.c, and by
 * allocation.c to free the list. */
#include "internal.h"
#include <stdlib.h>

_Static_assert(SOFTWARE_MAX_DEVICES <= 64, "the devices must fit into the bits");

struct software_advice {
  struct software_advice *next;
  uintptr_t end; /* of the range; the last one's is UINTPTR_MAX */
  struct software_advice_facts facts;
};

static const struct software_advice_facts advice_ranges_none = {.preferred_device = hipInvalidDeviceId,
                                                                .prefetched_device = hipInvalidDeviceId,
                                                                .coherency = hipMemRangeCoherencyModeFineGrain};

void software_advice_free(struct software_advice *advice)
{
  while (advice) {
    struct software_advice *next = advice->next;
    free(advice);
    advice = next;
  }
}

static struct software_advice *advice_ranges_new(struct software_advice *next, uintptr_t end,
                                                 struct software_advice_facts facts)
{
  struct software_advice *advice = malloc(sizeof *advice);
  if (advice) *advice = (struct software_advice){next, end, facts};
  return advice;
}

static bool advice_ranges_is_same(const struct software_advice_facts *one, const struct software_advice_facts *other)
{
  return one->preferred_device == other->preferred_device && one->prefetched_device == other->prefetched_device &&
         one->coherency == other->coherency && one->read_mostly == other->read_mostly &&
         one->host_accesses == other->host_accesses && one->accessing_devices == other->accessing_devices;
}

/* The range that holds `address`. */
static struct software_advice *advice_ranges_at(struct software_advice *advice, uintptr_t address)
{
  while (advice->end <= address) advice = advice->next;
  return advice;
}

/* Makes a range end at `address`; false if there is no memory. */
static bool advice_ranges_split(struct software_advice *advice, uintptr_t address)
{
  struct software_advice *range = advice_ranges_at(advice, address - 1);
  if (range->end == address) return true;
  struct software_advice *rest = advice_ranges_new(range->next, range->end, range->facts);
  if (!rest) return false;
  range->next = rest;
  range->end = address;
  return true;
}

static void advice_ranges_join(struct software_advice *advice)
{
  while (advice->next) {
    struct software_advice *next = advice->next;
    if (!advice_ranges_is_same(&advice->facts, &next->facts)) {
      advice = next;
      continue;
    }
    advice->end = next->end;
    advice->next = next->next;
    free(next);
  }
}

hipError_t software_advice_apply(struct software_advice **advice, uintptr_t start, uintptr_t end,
                                 void (*set)(struct software_advice_facts *, hipMemoryAdvise, int),
                                 hipMemoryAdvise what, int device)
{
  if (!*advice) *advice = advice_ranges_new(NULL, UINTPTR_MAX, advice_ranges_none);
  if (!*advice || !advice_ranges_split(*advice, start) || !advice_ranges_split(*advice, end))
    return hipErrorOutOfMemory;
  struct software_advice *range = advice_ranges_at(*advice, start);
  for (; range && range->end <= end; range = range->next) set(&range->facts, what, device);
  advice_ranges_join(*advice);
  return hipSuccess;
}

/* Leaves in `all` only what is also true of `part`. */
static void advice_ranges_meet(struct software_advice_facts *all, const struct software_advice_facts *part)
{
  if (all->preferred_device != part->preferred_device) all->preferred_device = hipInvalidDeviceId;
  if (all->prefetched_device != part->prefetched_device) all->prefetched_device = hipInvalidDeviceId;
  if (all->coherency != part->coherency) all->coherency = hipMemRangeCoherencyModeIndeterminate;
  all->read_mostly = all->read_mostly && part->read_mostly;
  all->host_accesses = all->host_accesses && part->host_accesses;
  all->accessing_devices &= part->accessing_devices;
}

struct software_advice_facts software_advice_of(struct software_advice *advice, uintptr_t start, uintptr_t end)
{
  if (!advice) return advice_ranges_none;
  struct software_advice *range = advice_ranges_at(advice, start);
  struct software_advice_facts facts = range->facts;
  while (range->end < end) {
    range = range->next;
    advice_ranges_meet(&facts, &range->facts);
  }
  return facts;
}
