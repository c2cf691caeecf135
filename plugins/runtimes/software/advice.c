/* SPDX-License-Identifier: MIT */
/* advice.c: advice for managed memory, prefetches, and the stream that memory is attached to. Called by applications. As
 * in HIP, advice is stored by page (advice_ranges.c) and can be queried. It has no effect, since every device and the
 * host access all managed memory coherently. */
#include "internal.h"

static uintptr_t advice_first_page(const struct software_span *span)
{
  return (uintptr_t)span->start & ~(SOFTWARE_PAGE_BYTES - 1);
}

static uintptr_t advice_end_page(const struct software_span *span)
{
  return ((uintptr_t)span->start + span->bytes + SOFTWARE_PAGE_BYTES - 1) & ~(SOFTWARE_PAGE_BYTES - 1);
}

/* ---- Advice ---------------------------------------------------------------------------------------------------- */

static void advice_set_accessed_by(struct software_advice_facts *facts, int device, bool is_accessed)
{
  uint64_t bit = device == hipCpuDeviceId ? 0 : UINT64_C(1) << device;
  if (device == hipCpuDeviceId) facts->host_accesses = is_accessed;
  facts->accessing_devices = is_accessed ? facts->accessing_devices | bit : facts->accessing_devices & ~bit;
}

static void advice_set_prefetched(struct software_advice_facts *facts, hipMemoryAdvise unused, int device)
{
  (void)unused;
  facts->prefetched_device = device;
}

static void advice_set(struct software_advice_facts *facts, hipMemoryAdvise advice, int device)
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

/* Applies `set` to all pages of the span. Advice for memory of the application itself is not stored. */
static hipError_t advice_apply(const struct software_span *span,
                               void (*set)(struct software_advice_facts *, hipMemoryAdvise, int),
                               hipMemoryAdvise advice, int device)
{
  if (!span->allocation) return hipSuccess;
  return software_advice_apply(&span->allocation->advice, advice_first_page(span), advice_end_page(span), set, advice,
                               device);
}

/* Opens the span of advice or a prefetch: managed memory, or any memory of the application itself where devices read
 * pageable memory. */
static hipError_t advice_span(const void *pointer, size_t bytes, struct software_span *span_out)
{
  struct software_span span;
  hipError_t error = software_span_open(pointer, bytes, false, software_current_device(), &span);
  if (error != hipSuccess) return error;
  bool is_managed = span.allocation && span.allocation->is_managed;
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

static hipError_t advice_set_all(const void *pointer, size_t bytes, hipMemoryAdvise advice, int device)
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
  return software_end(error != hipSuccess ? error : advice_set_all(pointer, bytes, advice, device));
}

#if HIP_VERSION_MAJOR >= 7
hipError_t hipMemAdvise_v2(const void *pointer, size_t bytes, hipMemoryAdvise advice, hipMemLocation given)
#else
hipError_t hipMemAdvise_v2(const void *pointer, size_t bytes, hipMemoryAdvise advice, struct software_location given)
#endif
{
  int current, device;
  struct software_location location = {(int)given.type, given.id};
  hipError_t error = software_begin_on_device(SOFTWARE_hipMemAdvise_v2, &current);
  bool is_read_mostly = advice == hipMemAdviseSetReadMostly || advice == hipMemAdviseUnsetReadMostly;
  if (error == hipSuccess && !software_location_device(location, &device)) {
    device = hipInvalidDeviceId;
    if (!is_read_mostly) error = hipErrorInvalidValue; /* the location is ignored for these */
  }
  return software_end(error != hipSuccess ? error : advice_set_all(pointer, bytes, advice, device));
}

static hipError_t advice_prefetch(const void *pointer, size_t bytes, int device, hipStream_t stream)
{
  struct software_queue *queue;
  hipError_t error = software_queue_find(stream, &queue);
  if (error == hipSuccess) error = software_capture_forbid(queue);
  if (error == hipSuccess && (!pointer || bytes == 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess && !advice_has_target(device)) error = hipErrorInvalidDevice;
  if (error != hipSuccess) return error;
  struct software_operation *operation = software_operation_new(SOFTWARE_PREFETCH, SOFTWARE_hipMemPrefetchAsync);
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

#if HIP_VERSION_MAJOR >= 7
hipError_t hipMemPrefetchAsync_v2(const void *pointer, size_t bytes, hipMemLocation given, unsigned int flags,
                                  hipStream_t stream)
#else
hipError_t hipMemPrefetchAsync_v2(const void *pointer, size_t bytes, struct software_location given, unsigned int flags,
                                  hipStream_t stream)
#endif
{
  int device;
  struct software_location location = {(int)given.type, given.id};
  hipError_t error = software_begin(SOFTWARE_hipMemPrefetchAsync_v2);
  if (error == hipSuccess && (flags != 0 || !software_location_device(location, &device))) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : advice_prefetch(pointer, bytes, device, stream));
}

/* ---- Queries --------------------------------------------------------------------------------------------------- */

/* As many devices as fit, the host first, then hipInvalidDeviceId. */
static void advice_list_accessors(const struct software_advice_facts *facts, int *values_out, size_t n_values)
{
  size_t n = 0;
  if (facts->host_accesses && n < n_values) values_out[n++] = hipCpuDeviceId;
  for (int device = 0; device < SOFTWARE_MAX_DEVICES && n < n_values; device++)
    if (facts->accessing_devices >> device & 1) values_out[n++] = device;
  while (n < n_values) values_out[n++] = hipInvalidDeviceId;
}

static hipError_t advice_attribute(const struct software_advice_facts *facts, hipMemRangeAttribute attribute,
                                   int *values_out, size_t bytes)
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

static hipError_t advice_range(const void *pointer, size_t bytes, struct software_advice_facts *facts_out)
{
  struct software_span span;
  hipError_t error = advice_span(pointer, bytes, &span);
  if (error != hipSuccess) return error;
  if (span.allocation)
    *facts_out = software_advice_of(span.allocation->advice, advice_first_page(&span), advice_end_page(&span));
  else
    error = hipErrorInvalidValue;
  software_span_close(&span);
  return error;
}

/* The coherency mode is also known of memory that is not managed: it was chosen at the allocation. */
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
  struct software_advice_facts facts;
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
  struct software_advice_facts facts;
  hipError_t error = software_begin(SOFTWARE_hipMemRangeGetAttributes);
  if (error == hipSuccess && (!data || !data_bytes || !attributes || n_attributes == 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = advice_range(pointer, bytes, &facts);
  for (size_t i = 0; error == hipSuccess && i < n_attributes; i++)
    error = advice_attribute(&facts, attributes[i], data[i], data_bytes[i]);
  return software_end(error);
}

/* ---- Streams --------------------------------------------------------------------------------------------------- */

/* No effect: every stream may use managed memory at any time. The arguments are checked as in HIP. */
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
