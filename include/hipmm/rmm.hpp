/* SPDX-License-Identifier: MIT */
/* hipmm/rmm.hpp: a resource of hipmm under RMM or hipMM, so that every library on RMM allocates from it.
 *
 *     #include <hipmm/rmm.hpp>
 *     hipmm::library library{"hipmm.json"};
 *     rmm::mr::set_current_device_resource(hipmm::rmm_resource{"weights"});        // RMM since 25.12 (CCCL's concepts)
 *
 *     hipmm::rmm_device_resource weights{"weights"};                               // RMM 23.12 to 25.10, and hipMM
 *     rmm::mr::set_current_device_resource(&weights);
 *
 * functions_of() is the other way: a stack of hipmm over a resource of RMM.
 *
 * The header adapts to the RMM that the compiler finds: rmm_resource if RMM has resources as values, rmm_device_resource
 * if it has the base class device_memory_resource. Exceptions are RMM's: rmm::out_of_memory, for a limit too, and
 * rmm::logic_error. Streams keep their order. The objects are thread-safe. */
#ifndef HIPMM_RMM_HPP
#define HIPMM_RMM_HPP

#include <hipmm/cpp/object.hpp>
#include <hipmm/cpp/resource.hpp>

#if __has_include(<rmm/error.hpp>)
#include <rmm/error.hpp>
#else
#include <rmm/detail/error.hpp>
#endif

#if __has_include(<rmm/mr/device/device_memory_resource.hpp>)
#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/device/device_memory_resource.hpp>
#else
#include <rmm/resource_ref.hpp>
#include <rmm/version_config.hpp>
#endif

#include <cstddef>
#include <string>
#include <utility>

namespace hipmm
{

namespace detail
{

/* Throws RMM's exception for a status that is not HIPMM_OK. */
[[noreturn]] inline void throw_as_rmm(status code)
{
  const failure &&reason = error{code};
  if (code == HIPMM_E_OUT_OF_MEMORY || code == HIPMM_E_LIMIT) throw rmm::out_of_memory{reason.message()};
  throw rmm::logic_error{reason.message()};
}

inline void *allocate_for_rmm(const resource &from, std::size_t bytes, std::size_t alignment, hipmm_stream_t stream)
{
  void *ptr = nullptr;
  const status code = ::hipmm_allocate_aligned(from.get(), bytes, alignment, stream, &ptr);
  if (code != HIPMM_OK) throw_as_rmm(code);
  return ptr;
}

} // namespace detail

#if __has_include(<rmm/mr/device/device_memory_resource.hpp>)

/* A resource as a class derived from RMM's. The object must outlive its use by RMM. */
class rmm_device_resource final : public rmm::mr::device_memory_resource
{
public:
  /* The current device's current resource, another one, or the one that the graph calls `name`. */
  rmm_device_resource() : from_{current_resource()}
  {
  }
  explicit rmm_device_resource(const resource &from) : from_{from ? from : current_resource()}
  {
  }
  explicit rmm_device_resource(const std::string &name) : from_{named_resource(name)}
  {
  }

  [[nodiscard]] const resource &get_resource() const noexcept
  {
    return from_;
  }

  /* Overrides of the releases that have them. */
  [[nodiscard]] bool supports_streams() const noexcept
  {
    return true;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept
  {
    return false;
  }

private:
  void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
  {
    return detail::allocate_for_rmm(from_, bytes, default_alignment, stream.value());
  }
  void do_deallocate(void *ptr, std::size_t bytes, rmm::cuda_stream_view stream) noexcept override
  {
    from_.deallocate(ptr, bytes, stream.value());
  }
  [[nodiscard]] bool do_is_equal(const rmm::mr::device_memory_resource &other) const noexcept override
  {
    const auto *same = dynamic_cast<const rmm_device_resource *>(&other);
    return same && same->from_ == from_;
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(rmm::cuda_stream_view) const
  {
    return {0, 0};
  }

  resource from_;
};

/* Gives graphs the memory of a resource of RMM: {"type": "callback", "allocator": "NAME"}. The resource must outlive the
 * stacks. RMM's alignment of 256 bytes is all that they can ask for. */
[[nodiscard]] inline allocator_functions functions_of(std::string name, rmm::mr::device_memory_resource &from)
{
  return {std::move(name),
          [&from](std::size_t bytes, std::size_t, stream_ref stream) {
            return from.allocate(bytes, rmm::cuda_stream_view{static_cast<cudaStream_t>(stream)});
          },
          [&from](void *ptr, std::size_t bytes, std::size_t, stream_ref stream) {
            from.deallocate(ptr, bytes, rmm::cuda_stream_view{static_cast<cudaStream_t>(stream)});
          }};
}

#else

/* A resource as a value, for cuda::mr::any_resource and RMM's functions. Copies refer to the same resource. */
class rmm_resource
{
public:
  /* RMM's sources refuse other alignments than powers of two up to 256 bytes since 26.08, so this resource does too, with
   * rmm::bad_alloc. With an earlier RMM an alignment is served if the resource can. */
  static constexpr bool is_alignment_limited = RMM_VERSION_MAJOR > 26 ||
                                               (RMM_VERSION_MAJOR == 26 && RMM_VERSION_MINOR >= 8);

  /* The current device's current resource, another one, or the one that the graph calls `name`. */
  rmm_resource() : from_{current_resource()}
  {
  }
  explicit rmm_resource(const resource &from) : from_{from ? from : current_resource()}
  {
  }
  explicit rmm_resource(const std::string &name) : from_{named_resource(name)}
  {
  }

  [[nodiscard]] void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = default_alignment)
  {
    check_alignment(bytes, alignment);
    return detail::allocate_for_rmm(from_, bytes, wide(alignment), stream.get());
  }
  void deallocate(cuda::stream_ref stream, void *ptr, std::size_t bytes,
                  std::size_t alignment = default_alignment) noexcept
  {
    from_.deallocate(ptr, bytes, stream.get(), wide(alignment));
  }

  /* On the default stream, for which the call waits. */
  [[nodiscard]] void *allocate_sync(std::size_t bytes, std::size_t alignment = default_alignment)
  {
    check_alignment(bytes, alignment);
    void *ptr = detail::allocate_for_rmm(from_, bytes, wide(alignment), nullptr);
    const status waited = ::hipmm_stream_synchronize(from_.device(), nullptr);
    if (waited == HIPMM_OK) return ptr;
    from_.deallocate(ptr, bytes, {}, wide(alignment));
    detail::throw_as_rmm(waited);
  }
  void deallocate_sync(void *ptr, std::size_t bytes, std::size_t alignment = default_alignment) noexcept
  {
    static_cast<void>(::hipmm_stream_synchronize(from_.device(), nullptr));
    from_.deallocate(ptr, bytes, {}, wide(alignment));
  }

  [[nodiscard]] const resource &get_resource() const noexcept
  {
    return from_;
  }

  friend bool operator==(const rmm_resource &one, const rmm_resource &other) noexcept
  {
    return one.from_ == other.from_;
  }
  friend bool operator!=(const rmm_resource &one, const rmm_resource &other) noexcept
  {
    return !(one == other);
  }
  friend constexpr void get_property(const rmm_resource &, cuda::mr::device_accessible) noexcept
  {
  }

private:
  /* Zero bytes have no address, so their alignment does not matter. */
  static void check_alignment(std::size_t bytes, std::size_t alignment)
  {
    const bool is_served = alignment != 0 && alignment <= default_alignment && (alignment & (alignment - 1)) == 0;
    if (!is_alignment_limited || is_served || bytes == 0) return;
    throw rmm::bad_alloc{"cannot align to " + std::to_string(alignment) +
                         " bytes: RMM's resources align to powers of two up to 256; aligned_resource_adaptor to more"};
  }
  static constexpr std::size_t wide(std::size_t alignment) noexcept
  {
    return is_alignment_limited || alignment < default_alignment ? default_alignment : alignment;
  }

  resource from_;
};

static_assert(cuda::mr::resource_with<rmm_resource, cuda::mr::device_accessible>);

/* The same for memory that the host can access too, over `pinned`, `managed` or `system`: it serves as a
 * rmm::host_device_async_resource_ref. Another resource is rmm::logic_error. */
class rmm_host_resource : public rmm_resource
{
public:
  rmm_host_resource() : rmm_host_resource{resource{}}
  {
  }
  explicit rmm_host_resource(const resource &from) : rmm_resource{from}
  {
    if (get_resource().is_host_accessible()) return;
    throw rmm::logic_error{"the host cannot access memory of \"" + get_resource().name() + "\""};
  }
  explicit rmm_host_resource(const std::string &name) : rmm_host_resource{named_resource(name)}
  {
  }

  friend bool operator==(const rmm_host_resource &one, const rmm_host_resource &other) noexcept
  {
    return one.get_resource() == other.get_resource();
  }
  friend bool operator!=(const rmm_host_resource &one, const rmm_host_resource &other) noexcept
  {
    return !(one == other);
  }
  friend constexpr void get_property(const rmm_host_resource &, cuda::mr::device_accessible) noexcept
  {
  }
  friend constexpr void get_property(const rmm_host_resource &, cuda::mr::host_accessible) noexcept
  {
  }
};

static_assert(cuda::mr::resource_with<rmm_host_resource, cuda::mr::device_accessible, cuda::mr::host_accessible>);

/* Gives graphs the memory of a resource of RMM: {"type": "callback", "allocator": "NAME"}. */
template <typename Resource> [[nodiscard]] allocator_functions functions_of(std::string name, Resource from)
{
  static_assert(cuda::mr::resource_with<Resource, cuda::mr::device_accessible>, "a resource as RMM has it");
  return {std::move(name),
          [from](std::size_t bytes, std::size_t alignment, stream_ref stream) mutable {
            return from.allocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, bytes, alignment);
          },
          [from](void *ptr, std::size_t bytes, std::size_t alignment, stream_ref stream) mutable {
            from.deallocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, ptr, bytes, alignment);
          }};
}

#endif

} // namespace hipmm

#endif
