/* SPDX-License-Identifier: MIT */
/* torch.cpp: PyTorch's allocator of CUDA memory as a type of hipmm, so that `hipmm replay` and `hipmm bench` measure it by the
 * same harness as hipmm's own: {"stack": ["torch"]}. Needs the headers and libraries of an installed PyTorch alone, and no
 * Python. Not installed; allocators.sh builds it.
 *
 * PyTorch has one allocator in a process, so only one of these resources can be there at a time; it leaves PyTorch as empty
 * as it found it. The caller has the device current, as PyTorch asks of a program: `replay` and `bench` have. */
#include "library_type.hpp"

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

struct options {
  std::uint64_t maximum_size;
  std::uint32_t expandable_segments;
};

/* ---- Streams: the number of a block is that of its stream, so that a free on another one is noticed ---- */

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

/* ---- PyTorch's allocator ---- */

std::atomic_flag is_in_use = ATOMIC_FLAG_INIT;

class only_user
{
public:
  explicit only_user(const hipmm_services *services)
  {
    if (is_in_use.test_and_set())
      throw failure{
          services->fail(services, HIPMM_E_NOT_SUPPORTED, nullptr,
                         "PyTorch has one allocator in a process, and another resource of this type uses it")};
  }
  only_user(const only_user &) = delete;
  ~only_user()
  {
    is_in_use.clear();
  }
};

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

class torch_allocator
{
public:
  torch_allocator(const hipmm_services *services, const options &wanted, hipmm_resource *)
      : services_{services}, device_{static_cast<c10::DeviceIndex>(services->device)}, only_user_{services}
  {
    c10::cuda::_internal::setHasPrimaryContext(has_primary_context);
    c10::CachingAllocator::setAllocatorSettings(wanted.expandable_segments ? "expandable_segments:True"
                                                                           : "expandable_segments:False");
    pytorch::init(c10::cuda::device_count());
    pytorch::emptyCache();
    pytorch::resetPeakStats(device_);
    pytorch::setMemoryFraction(fraction_of(wanted.maximum_size, device_), device_);
  }

  /* Leaves PyTorch empty and without a limit. */
  ~torch_allocator()
  {
    give_back([&] {
      pytorch::emptyCache();
      pytorch::setMemoryFraction(1, device_);
    });
  }

  block allocate(std::size_t bytes, hipmm_stream_t stream)
  {
    void *ptr = pytorch::raw_alloc_with_stream(bytes, static_cast<cudaStream_t>(stream));
    return {ptr, number_of(stream)};
  }

  void deallocate(const block &freed, std::size_t, hipmm_stream_t stream)
  {
    if (freed.number == most_streams || freed.number != number_of(stream)) record_use(freed.ptr, stream);
    pytorch::raw_delete(freed.ptr);
  }

  void abandon(void *ptr, std::size_t) noexcept
  {
    give_back([&] { pytorch::raw_delete(ptr); });
  }

  /* The segments without a live block. */
  void trim()
  {
    pytorch::emptyCache();
  }

  static constexpr unsigned ask_every = 32; /* asking copies all of PyTorch's figures */
  std::optional<held> ask_held()
  {
    const auto stats = pytorch::getDeviceStats(device_);
    const auto &reserved = stats.reserved_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    if (reserved.peak > reserved.current) pytorch::resetPeakStats(device_);
    return held{reserved.current, reserved.peak};
  }

  static hipmm_status explain(const hipmm_services *services, std::size_t bytes)
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

private:
  /* PyTorch gives a block back to the stream of its allocation. So a program that used it on another stream says so before
   * the free, and PyTorch keeps the block until an event on that stream has happened. */
  void record_use(void *ptr, hipmm_stream_t stream) const
  {
    c10::DataPtr block{ptr, ptr, pytorch::get()->raw_deleter(), c10::Device{c10::DeviceType::CUDA, device_}};
    pytorch::recordStream(block, c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream), device_));
    block.release_context();
  }

  template <typename Action> void give_back(Action action) const noexcept
  {
    try {
      action();
    } catch (const c10::Error &reason) {
      services_->log(services_, HIPMM_LOG_ERROR, "PyTorch's memory is not all given back: %s",
                     reason.what_without_backtrace());
    } catch (const std::exception &reason) {
      services_->log(services_, HIPMM_LOG_ERROR, "PyTorch's memory is not all given back: %s", reason.what());
    }
  }

  const hipmm_services *services_;
  c10::DeviceIndex device_;
  only_user only_user_;
};

using type = library_type<torch_allocator, options>;

/* PyTorch's own streams live as long as the process, so before it unmaps an expandable segment it waits for the stream that it
 * made the segment for, whether there still is such a stream or not. */
void stream_retire(void *self, hipmm_stream_t)
{
  static_cast<void>(type::trim(self, 0));
}

constexpr hipmm_ops make_ops()
{
  hipmm_ops ops = type::ops;
  ops.trim = type::trim;
  ops.stream_retire = stream_retire;
  return ops;
}

constexpr hipmm_ops ops = make_ops();

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
    .create = type::create,
    .destroy = type::destroy,
};
