/* SPDX-License-Identifier: MIT */
/* torch.cpp: PyTorch's allocator of CUDA memory as a type of hipmm, so that `hipmm replay` and `hipmm bench` measure it by the
 * same harness as hipmm's own: {"stack": ["torch"]}. Needs the headers and libraries of an installed PyTorch alone, and no
 * Python. Not installed; allocators.sh builds it.
 *
 * PyTorch has one allocator in a process, so only one of these resources can be there at a time; it leaves PyTorch as empty
 * as it found it. The caller has the device current, as PyTorch asks of a program: `replay` and `bench` have. */
#include "live_blocks.hpp"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <mutex>
#include <new>

/* ATen sets this function in a program of PyTorch; no header declares it. */
namespace c10::cuda::_internal
{
void setHasPrimaryContext(bool (*function)(c10::DeviceIndex));
}

namespace
{

namespace pytorch = c10::cuda::CUDACachingAllocator;

/* PyTorch is asked what it holds at one allocation in so many: asking copies all of its figures. Its own peak says what it
 * held meanwhile. */
constexpr unsigned ask_every = 32;

struct options {
  std::uint64_t maximum_size;
  std::uint32_t expandable_segments;
};

struct peer {
  const hipmm_services *services;
  c10::DeviceIndex device;
  live_blocks live;
  std::mutex mutex; /* of counted_bytes */
  std::int64_t counted_bytes = 0;
};

std::atomic_flag is_in_use = ATOMIC_FLAG_INIT;

/* ---- What PyTorch holds ---- */

void count(peer &that)
{
  std::unique_lock<std::mutex> lock{that.mutex, std::try_to_lock};
  if (!lock) return;
  const auto stats = pytorch::getDeviceStats(that.device);
  const auto &reserved = stats.reserved_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  that.services->count_held(that.services, reserved.peak - that.counted_bytes);
  that.services->count_held(that.services, reserved.current - reserved.peak);
  that.counted_bytes = reserved.current;
  if (reserved.peak > reserved.current) pytorch::resetPeakStats(that.device);
}

/* ---- Streams: a block knows the number of its stream, so that a free on another one is noticed ---- */

constexpr unsigned most_streams = 255;
std::atomic<hipmm_stream_t> streams[most_streams];
std::atomic<unsigned> n_streams;
std::mutex streams_mutex;

/* most_streams: the stream has no number. */
std::uint16_t number_of(hipmm_stream_t stream)
{
  unsigned i = 0, n = n_streams.load(std::memory_order_acquire);
  for (; i < n; i++)
    if (streams[i].load(std::memory_order_relaxed) == stream) return static_cast<std::uint16_t>(i);
  const std::lock_guard<std::mutex> lock{streams_mutex};
  for (n = n_streams.load(std::memory_order_relaxed); i < n; i++)
    if (streams[i].load(std::memory_order_relaxed) == stream) return static_cast<std::uint16_t>(i);
  if (n == most_streams) return most_streams;
  streams[n].store(stream, std::memory_order_relaxed);
  n_streams.store(n + 1, std::memory_order_release);
  return static_cast<std::uint16_t>(n);
}

/* PyTorch gives a block back to the stream of its allocation. So a program that used it on another stream says so before the
 * free, and PyTorch keeps the block until an event on that stream has happened. */
void record_use(const peer &that, void *ptr, hipmm_stream_t stream)
{
  c10::DataPtr block{ptr, ptr, pytorch::get()->raw_deleter(), c10::Device{c10::DeviceType::CUDA, that.device}};
  pytorch::recordStream(block, c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream), that.device));
  block.release_context();
}

/* ---- Ops ---- */

/* The status for the exception that is being handled. */
hipmm_status explain(const hipmm_services *services, std::size_t bytes)
{
  try {
    throw;
  } catch (const c10::OutOfMemoryError &) {
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "PyTorch has no {0:bytes}", bytes, 0, 0);
  } catch (const std::bad_alloc &) {
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "PyTorch has no host memory", 0, 0, 0);
  } catch (const c10::Error &reason) {
    return services->fail(services, HIPMM_E_HIP, nullptr, "PyTorch: %s", reason.what_without_backtrace());
  } catch (const std::exception &reason) {
    return services->fail(services, HIPMM_E_HIP, nullptr, "PyTorch: %s", reason.what());
  }
}

hipmm_status allocate(void *self, std::size_t bytes, std::size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  static thread_local unsigned allocations;
  auto &that = *static_cast<peer *>(self);
  if (!bytes) {
    *ptr_out = nullptr;
    return HIPMM_OK;
  }
  const hipmm_status status = that.live.check(bytes, alignment);
  if (status != HIPMM_OK) return status;
  try {
    void *ptr = pytorch::raw_alloc_with_stream(bytes, static_cast<cudaStream_t>(stream));
    that.live.add(ptr, bytes, number_of(stream));
    if (allocations++ % ask_every == 0) count(that);
    *ptr_out = ptr;
    return HIPMM_OK;
  } catch (...) {
    const hipmm_status why = explain(that.services, bytes);
    count(that);
    return why;
  }
}

hipmm_status deallocate(void *self, void *ptr, std::size_t bytes, std::size_t, hipmm_stream_t stream)
{
  auto &that = *static_cast<peer *>(self);
  std::uint16_t number = 0;
  std::size_t size = 0;
  if (!ptr) return HIPMM_OK;
  const hipmm_status status = that.live.remove(ptr, bytes, &size, &number);
  if (status != HIPMM_OK) return status;
  try {
    if (number == most_streams || number != number_of(stream)) record_use(that, ptr, stream);
    pytorch::raw_delete(ptr);
    return HIPMM_OK;
  } catch (...) {
    return explain(that.services, size); /* what has become of the block only PyTorch knows */
  }
}

hipmm_status find(void *self, const void *ptr, hipmm_block *block_out)
{
  return static_cast<peer *>(self)->live.find(ptr, block_out);
}

/* PyTorch gives back the segments without a live block. */
hipmm_status trim(void *self, std::size_t)
{
  auto &that = *static_cast<peer *>(self);
  try {
    pytorch::emptyCache();
    count(that);
    return HIPMM_OK;
  } catch (...) {
    return explain(that.services, 0);
  }
}

/* PyTorch's own streams live as long as the process, so before it unmaps an expandable segment it waits for the stream that it
 * made the segment for, whether there still is such a stream or not. */
void stream_retire(void *self, hipmm_stream_t)
{
  static_cast<void>(trim(self, 0));
}

/* ---- Life ---- */

/* The fraction of the device whose bytes PyTorch computes by multiplying it with the device's memory. 1: no limit. */
double fraction_of(std::uint64_t maximum, c10::DeviceIndex device)
{
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess || maximum >= properties.totalGlobalMem) return 1;
  return (static_cast<double>(maximum) + 0.5) / static_cast<double>(properties.totalGlobalMem);
}

/* What ATen answers in a program of PyTorch. hipmm has used the device. */
bool has_primary_context(c10::DeviceIndex)
{
  return true;
}

void open(const peer &that, const options &wanted)
{
  c10::cuda::_internal::setHasPrimaryContext(has_primary_context);
  c10::CachingAllocator::setAllocatorSettings(wanted.expandable_segments ? "expandable_segments:True"
                                                                         : "expandable_segments:False");
  pytorch::init(c10::cuda::device_count());
  pytorch::emptyCache();
  pytorch::resetPeakStats(that.device);
  pytorch::setMemoryFraction(fraction_of(wanted.maximum_size, that.device), that.device);
}

/* Frees what the program has not freed, and leaves PyTorch empty and without a limit. */
void close(peer &that)
{
  that.live.visit([](void *ptr, std::size_t) { pytorch::raw_delete(ptr); });
  pytorch::emptyCache();
  pytorch::setMemoryFraction(1, that.device);
}

void release(peer *that)
{
  const hipmm_services *services = that->services;
  services->count_held(services, -that->counted_bytes);
  that->live.close();
  that->~peer();
  services->host_free(services, that, sizeof *that);
  is_in_use.clear();
}

void destroy(void *self)
{
  auto *that = static_cast<peer *>(self);
  const hipmm_services *services = that->services;
  services->hip->DeviceSynchronize();
  try {
    close(*that);
  } catch (const c10::Error &reason) {
    services->log(services, HIPMM_LOG_ERROR, "PyTorch's memory is not all given back: %s",
                  reason.what_without_backtrace());
  } catch (const std::exception &reason) {
    services->log(services, HIPMM_LOG_ERROR, "PyTorch's memory is not all given back: %s", reason.what());
  }
  release(that);
}

hipmm_status create(const hipmm_services *services, const void *given, hipmm_resource *const *, std::size_t,
                    void **self_out)
{
  if (is_in_use.test_and_set())
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, nullptr,
                          "PyTorch has one allocator in a process, and another resource of this type uses it");
  void *memory = services->host_allocate(services, sizeof(peer));
  if (!memory) {
    is_in_use.clear();
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, nullptr, "no host memory for the resource itself");
  }
  auto *that = new (memory) peer{services, static_cast<c10::DeviceIndex>(services->device), {}, {}};
  hipmm_status status = that->live.open(services);
  try {
    if (status == HIPMM_OK) open(*that, *static_cast<const options *>(given));
  } catch (...) {
    const hipmm_status why = explain(services, 0);
    status = services->fail(services, why, nullptr, "PyTorch's allocator cannot be used");
  }
  if (status == HIPMM_OK)
    *self_out = that;
  else
    release(that);
  return status;
}

constexpr hipmm_option option_table[] = {
    {.name = "expandable_segments",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(options, expandable_segments),
     .initial = "false",
     .doc = "PyTorch's setting of that name (PYTORCH_CUDA_ALLOC_CONF)"},
    {.name = "maximum_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(options, maximum_size),
     .unit = "bytes",
     .doc = "The most that PyTorch takes from the device (torch.cuda.set_per_process_memory_fraction()); no limit "
            "without it",
     .minimum = "1"},
};

constexpr hipmm_ops ops = {.struct_size = sizeof(hipmm_ops),
                           .allocate = allocate,
                           .deallocate = deallocate,
                           .trim = trim,
                           .find = find,
                           .stream_retire = stream_retire};

} // namespace

extern "C" HIPMM_EXPORT const hipmm_plugin torch_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "torch",
    .version = "1.0",
    .doc = "PyTorch's allocator of CUDA memory, to be measured beside hipmm's",
    .role = HIPMM_ROLE_SOURCE,
    .flags = HIPMM_PLUGIN_KEEPS_MEMORY | HIPMM_PLUGIN_DEVICE_MEMORY,
    .options = option_table,
    .n_options = sizeof option_table / sizeof *option_table,
    .options_bytes = sizeof(options),
    .ops = &ops,
    .create = create,
    .destroy = destroy,
};
