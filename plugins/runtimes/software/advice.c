/* SPDX-License-Identifier: MIT */
/* advice.c: what the application says of managed memory: advice, prefetches, the stream it is for. Called by
 * applications. All of it is kept by page, as HIP does, and can be asked for; none of it changes what the device does,
 * since every device and the host read and write all managed memory, coherently, anyway.
 *
 * An allocation has a list of ranges of pages, in the order of their addresses and without gaps; each range differs from
 * its neighbours. There is no list until something is said. */
#include "internal.h"
#include <stdlib.h>

struct advice_facts {
  int preferred_device, prefetched_device; /* hipInvalidDeviceId: none */
  hipMemRangeCoherencyMode coherency;
  bool read_mostly;
  bool host_accesses;
  uint64_t accessing_devices; /* a bit each */
};
_Static_assert(SOFTWARE_MAX_DEVICES <= 64, "the devices must fit into the bits");

struct software_advice {
  struct software_advice *next;
  uintptr_t end; /* of the range; the last one's is UINTPTR_MAX */
  struct advice_facts facts;
};

static const struct advice_facts advice_none = {.preferred_device = hipInvalidDeviceId,
                                                .prefetched_device = hipInvalidDeviceId,
                                                .coherency = hipMemRangeCoherencyModeFineGrain};

/* ---- Ranges of pages ------------------------------------------------------------------------------------------- */

void software_advice_free(struct software_advice *advice)
{
  while (advice) {
    struct software_advice *next = advice->next;
    free(advice);
    advice = next;
  }
}

static struct software_advice *advice_new(struct software_advice *next, uintptr_t end, struct advice_facts facts)
{
  struct software_advice *advice = malloc(sizeof *advice);
  if (advice) *advice = (struct software_advice){next, end, facts};
  return advice;
}

static bool advice_is_same(const struct advice_facts *one, const struct advice_facts *other)
{
  return one->preferred_device == other->preferred_device && one->prefetched_device == other->prefetched_device &&
         one->coherency == other->coherency && one->read_mostly == other->read_mostly &&
         one->host_accesses == other->host_accesses && one->accessing_devices == other->accessing_devices;
}

/* The range that holds `address`. */
static struct software_advice *advice_at(struct software_advice *advice, uintptr_t address)
{
  while (advice->end <= address) advice = advice->next;
  return advice;
}

/* Makes a range end at `address`; false if there is no memory. */
static bool advice_split(struct software_advice *advice, uintptr_t address)
{
  struct software_advice *range = advice_at(advice, address - 1);
  if (range->end == address) return true;
  struct software_advice *rest = advice_new(range->next, range->end, range->facts);
  if (!rest) return false;
  range->next = rest;
  range->end = address;
  return true;
}

static void advice_join(struct software_advice *advice)
{
  while (advice->next) {
    struct software_advice *next = advice->next;
    if (!advice_is_same(&advice->facts, &next->facts)) {
      advice = next;
      continue;
    }
    advice->end = next->end;
    advice->next = next->next;
    free(next);
  }
}

static uintptr_t advice_first_page(const struct software_span *span)
{
  return (uintptr_t)span->start & ~(SOFTWARE_PAGE_BYTES - 1);
}

static uintptr_t advice_end_page(const struct software_span *span)
{
  return ((uintptr_t)span->start + span->bytes + SOFTWARE_PAGE_BYTES - 1) & ~(SOFTWARE_PAGE_BYTES - 1);
}

/* ---- Advice ---------------------------------------------------------------------------------------------------- */

static void advice_set_accessed_by(struct advice_facts *facts, int device, bool is_accessed)
{
  uint64_t bit = device == hipCpuDeviceId ? 0 : UINT64_C(1) << device;
  if (device == hipCpuDeviceId) facts->host_accesses = is_accessed;
  facts->accessing_devices = is_accessed ? facts->accessing_devices | bit : facts->accessing_devices & ~bit;
}

static void advice_set_prefetched(struct advice_facts *facts, hipMemoryAdvise unused, int device)
{
  (void)unused;
  facts->prefetched_device = device;
}

static void advice_set(struct advice_facts *facts, hipMemoryAdvise advice, int device)
{
  switch (advice) {
  case hipMemAdviseSetReadMostly: facts->read_mostly = true; break;
  case hipMemAdviseUnsetReadMostly: facts->read_mostly = false; break;
  case hipMemAdviseSetPreferredLocation: facts->preferred_device = device; break;
  case hipMemAdviseUnsetPreferredLocation: facts->preferred_device = hipInvalidDeviceId; break;
  case hipMemAdviseSetAccessedBy: advice_set_accessed_by(facts, device, true); break;
  case hipMemAdviseUnsetAccessedBy: advice_set_accessed_by(facts, device, false); break;
  case hipMemAdviseSetCoarseGrain: facts->coherency = hipMemRangeCoherencyModeCoarseGrain; break;
  case hipMemAdviseUnsetCoarseGrain: facts->coherency = hipMemRangeCoherencyModeFineGrain; break;
  default: break;
  }
}

/* Applies `set` to all pages of the span. Of the application's own memory nothing is kept. */
static hipError_t advice_apply(const struct software_span *span,
                               void (*set)(struct advice_facts *, hipMemoryAdvise, int), hipMemoryAdvise advice,
                               int device)
{
  struct software_allocation *allocation = span->allocation;
  uintptr_t first = advice_first_page(span), end = advice_end_page(span);
  if (!allocation) return hipSuccess;
  if (!allocation->advice) allocation->advice = advice_new(NULL, UINTPTR_MAX, advice_none);
  if (!allocation->advice || !advice_split(allocation->advice, first) || !advice_split(allocation->advice, end))
    return hipErrorOutOfMemory;
  struct software_advice *range = advice_at(allocation->advice, first);
  for (; range && range->end <= end; range = range->next) set(&range->facts, advice, device);
  advice_join(allocation->advice);
  return hipSuccess;
}

/* Opens the span that advice or a prefetch is about: managed memory, or any of the application's own where devices
 * read pageable memory. */
static hipError_t advice_span(const void *pointer, size_t bytes, struct software_span *span_out)
{
  struct software_span span;
  hipError_t error = software_span_open(pointer, bytes, false, software_current_device(), &span);
  if (error != hipSuccess) return error;
  bool is_managed =
      span.allocation && (span.allocation->kind == SOFTWARE_MANAGED || software_pool_is_managed(span.allocation));
  if (!is_managed && !(software.config.pageable_memory_access && software_span_is_host(&span))) {
    software_span_close(&span);
    return hipErrorInvalidValue;
  }
  *span_out = span;
  return hipSuccess;
}

static bool advice_has_target(int device)
{
  return device == hipCpuDeviceId || software_device_exists(device);
}

static hipError_t advice_take(const void *pointer, size_t bytes, hipMemoryAdvise advice, int device)
{
  struct software_span span;
  bool is_read_mostly = advice == hipMemAdviseSetReadMostly || advice == hipMemAdviseUnsetReadMostly;
  bool is_coarse_grain = advice == hipMemAdviseSetCoarseGrain || advice == hipMemAdviseUnsetCoarseGrain;
  if (!is_coarse_grain && (advice < hipMemAdviseSetReadMostly || advice > hipMemAdviseUnsetAccessedBy))
    return hipErrorInvalidValue;
  if (!is_read_mostly && !advice_has_target(device)) return hipErrorInvalidDevice;
  hipError_t error = advice_span(pointer, bytes, &span);
  if (error != hipSuccess) return error;
  error = advice_apply(&span, advice_set, advice, device);
  software_span_close(&span);
  return error;
}

hipError_t hipMemAdvise(const void *pointer, size_t bytes, hipMemoryAdvise advice, int device)
{
  int current;
  hipError_t error = software_begin_on_device(SOFTWARE_hipMemAdvise, &current);
  return software_end(error != hipSuccess ? error : advice_take(pointer, bytes, advice, device));
}

static hipError_t advice_prefetch(const void *pointer, size_t bytes, int device, hipStream_t stream)
{
  struct software_queue *queue;
  hipError_t error = software_queue_find(stream, &queue);
  if (error == hipSuccess && (!pointer || bytes == 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess && !advice_has_target(device)) error = hipErrorInvalidDevice;
  if (error != hipSuccess) return error;
  struct software_operation *operation = software_operation_new(SOFTWARE_TOUCH, SOFTWARE_hipMemPrefetchAsync);
  if (!operation) return hipErrorOutOfMemory;
  error = advice_span(pointer, bytes, &operation->to);
  if (error == hipSuccess) error = advice_apply(&operation->to, advice_set_prefetched, 0, device);
  if (error == hipSuccess) return software_submit(queue, operation);
  software_operation_free(operation);
  return error;
}

hipError_t hipMemPrefetchAsync(const void *pointer, size_t bytes, int device, hipStream_t stream)
{
  hipError_t error = software_begin(SOFTWARE_hipMemPrefetchAsync);
  return software_end(error != hipSuccess ? error : advice_prefetch(pointer, bytes, device, stream));
}

/* ---- Questions ------------------------------------------------------------------------------------------------- */

/* Leaves in `all` what is true of `part`, too. */
static void advice_meet(struct advice_facts *all, const struct advice_facts *part)
{
  if (all->preferred_device != part->preferred_device) all->preferred_device = hipInvalidDeviceId;
  if (all->prefetched_device != part->prefetched_device) all->prefetched_device = hipInvalidDeviceId;
  if (all->coherency != part->coherency) all->coherency = hipMemRangeCoherencyModeIndeterminate;
  all->read_mostly = all->read_mostly && part->read_mostly;
  all->host_accesses = all->host_accesses && part->host_accesses;
  all->accessing_devices &= part->accessing_devices;
}

static struct advice_facts advice_of(const struct software_span *span)
{
  struct software_advice *range = span->allocation->advice;
  if (!range) return advice_none;
  range = advice_at(range, advice_first_page(span));
  struct advice_facts facts = range->facts;
  for (uintptr_t end = advice_end_page(span); range->end < end;) {
    range = range->next;
    advice_meet(&facts, &range->facts);
  }
  return facts;
}

/* As many devices as fit, the host first, then hipInvalidDeviceId. */
static void advice_list_accessors(const struct advice_facts *facts, int *values_out, size_t n_values)
{
  size_t n = 0;
  if (facts->host_accesses && n < n_values) values_out[n++] = hipCpuDeviceId;
  for (int device = 0; device < SOFTWARE_MAX_DEVICES && n < n_values; device++)
    if (facts->accessing_devices >> device & 1) values_out[n++] = device;
  while (n < n_values) values_out[n++] = hipInvalidDeviceId;
}

static hipError_t advice_attribute(const struct advice_facts *facts, hipMemRangeAttribute attribute, int *values_out,
                                   size_t bytes)
{
  size_t n_values = bytes / sizeof *values_out;
  bool is_list = attribute == hipMemRangeAttributeAccessedBy;
  if (!values_out || n_values == 0 || bytes % sizeof *values_out != 0 || (!is_list && n_values != 1))
    return hipErrorInvalidValue;
  switch (attribute) {
  case hipMemRangeAttributeAccessedBy: advice_list_accessors(facts, values_out, n_values); break;
  case hipMemRangeAttributeReadMostly: *values_out = facts->read_mostly; break;
  case hipMemRangeAttributePreferredLocation: *values_out = facts->preferred_device; break;
  case hipMemRangeAttributeLastPrefetchLocation: *values_out = facts->prefetched_device; break;
  case hipMemRangeAttributeCoherencyMode: *values_out = (int)facts->coherency; break;
  default: return hipErrorInvalidValue;
  }
  return hipSuccess;
}

static hipError_t advice_range(const void *pointer, size_t bytes, struct advice_facts *facts_out)
{
  struct software_span span;
  hipError_t error = advice_span(pointer, bytes, &span);
  if (error != hipSuccess) return error;
  if (span.allocation)
    *facts_out = advice_of(&span);
  else
    error = hipErrorInvalidValue;
  software_span_close(&span);
  return error;
}

/* Of memory that is not managed, HIP knows the coherency mode, which was chosen at its allocation. */
static hipError_t advice_coherency(const void *pointer, size_t bytes, hipMemRangeCoherencyMode *mode_out)
{
  struct software_span span;
  hipError_t error = software_span_open(pointer, bytes, false, software_current_device(), &span);
  if (error != hipSuccess) return error;
  const struct software_allocation *allocation = span.allocation;
  bool is_coarse = span.is_virtual; /* as all that hipMemCreate() gives */
  if (!allocation)
    error = span.is_virtual ? hipSuccess : hipErrorInvalidValue;
  else if (allocation->kind == SOFTWARE_PINNED)
    is_coarse = allocation->flags & hipHostMallocNonCoherent;
  else if (allocation->kind == SOFTWARE_REGISTERED)
    is_coarse = allocation->flags & hipExtHostRegisterCoarseGrained;
  else
    is_coarse = !(allocation->flags & (hipDeviceMallocFinegrained | hipMallocSignalMemory));
  software_span_close(&span);
  *mode_out = is_coarse ? hipMemRangeCoherencyModeCoarseGrain : hipMemRangeCoherencyModeFineGrain;
  return error;
}

hipError_t hipMemRangeGetAttribute(void *data, size_t data_bytes, hipMemRangeAttribute attribute, const void *pointer,
                                   size_t bytes)
{
  struct advice_facts facts;
  hipError_t error = software_begin(SOFTWARE_hipMemRangeGetAttribute);
  if (error != hipSuccess) return software_end(error);
  error = advice_range(pointer, bytes, &facts);
  if (error != hipSuccess && attribute == hipMemRangeAttributeCoherencyMode)
    error = advice_coherency(pointer, bytes, &facts.coherency);
  return software_end(error != hipSuccess ? error : advice_attribute(&facts, attribute, data, data_bytes));
}

hipError_t hipMemRangeGetAttributes(void **data, size_t *data_bytes, hipMemRangeAttribute *attributes,
                                    size_t n_attributes, const void *pointer, size_t bytes)
{
  struct advice_facts facts;
  hipError_t error = software_begin(SOFTWARE_hipMemRangeGetAttributes);
  if (error == hipSuccess && (!data || !data_bytes || !attributes || n_attributes == 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = advice_range(pointer, bytes, &facts);
  for (size_t i = 0; error == hipSuccess && i < n_attributes; i++)
    error = advice_attribute(&facts, attributes[i], data[i], data_bytes[i]);
  return software_end(error);
}

/* ---- Streams --------------------------------------------------------------------------------------------------- */

/* Nothing to do: every stream may use managed memory at any time. The arguments are checked as in HIP. */
static hipError_t advice_attach(hipStream_t stream, const void *pointer, size_t bytes, unsigned flags)
{
  struct software_queue *queue;
  struct software_span span;
  if (flags != hipMemAttachGlobal && flags != hipMemAttachHost && flags != hipMemAttachSingle)
    return hipErrorInvalidValue;
  if (flags == hipMemAttachSingle && !stream) return hipErrorInvalidValue;
  hipError_t error = software_queue_find(stream, &queue);
  const struct software_allocation *allocation = software_allocation_at(pointer);
  bool is_whole = bytes == 0 && allocation;
  if (error == hipSuccess) error = advice_span(pointer, is_whole ? allocation->by_address.minor : bytes, &span);
  if (error != hipSuccess) return error;
  if (span.allocation && span.bytes != span.allocation->by_address.minor) error = hipErrorInvalidValue;
  software_span_close(&span);
  return error;
}

hipError_t hipStreamAttachMemAsync(hipStream_t stream, void *pointer, size_t bytes, unsigned int flags)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamAttachMemAsync);
  return software_end(error != hipSuccess ? error : advice_attach(stream, pointer, bytes, flags));
}
